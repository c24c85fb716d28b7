/*
 * Values are aligned from the beginning of the message; the body begins at a multiple of 8, so it can be read for itself. Of header fields
 * only plain values are understood, which all that exist have.
 */
#include "kubelet/dbus.h"

enum { FIXED = 12, FIELDS_MAX = 16 << 10 };

enum field {
	FIELD_PATH = 1, FIELD_INTERFACE, FIELD_MEMBER, FIELD_ERROR, FIELD_REPLY_TO, FIELD_DESTINATION, FIELD_SENDER, FIELD_SIGNATURE, FIELD_FDS,
};

/* ---- reading ---- */

static size_t align_up(size_t at, size_t to) { return (at + to - 1) / to * to; }

static size_t size_of(char type)
{
	switch (type) {
	case 'y':
		return 1;
	case 'n':
	case 'q':
		return 2;
	case 'b':
	case 'i':
	case 'u':
	case 'h':
		return 4;
	case 'x':
	case 't':
		return 8;
	default:
		return 0;
	}
}

static bool take_number(struct dbus_reader *r, size_t size, uint64_t *ret)
{
	size_t at = align_up(r->at, size);
	uint64_t v = 0;

	if (at > r->body.n || r->body.n - at < size)
		return false;
	for (size_t i = 0; i < size; i++)
		v |= (uint64_t)(unsigned char)r->body.p[at + i] << 8 * (r->big_endian ? size - 1 - i : i);
	r->at = at + size;
	*ret = v;
	return true;
}

/* Length, bytes, and a 0 after them that does not count. */
static bool take_text(struct dbus_reader *r, size_t length_size, str *ret)
{
	uint64_t n;

	if (!take_number(r, length_size, &n) || n >= r->body.n - r->at || r->body.p[r->at + n] != '\0' || memchr(r->body.p + r->at, '\0', n))
		return false;
	*ret = str_span(r->body.p + r->at, n);
	r->at += n + 1;
	return true;
}

static bool take_type(struct dbus_reader *r, char type)
{
	if (!r->signature.n || r->signature.p[0] != type)
		return false;
	r->signature = str_skip(r->signature, 1);
	return true;
}

struct dbus_reader dbus_reader_of(const struct dbus_message *m)
{
	return (struct dbus_reader){ .body = m->body, .signature = m->signature, .big_endian = m->big_endian };
}

bool dbus_read_number(struct dbus_reader *r, char type, uint64_t *ret)
{
	return size_of(type) && take_type(r, type) && take_number(r, size_of(type), ret);
}

bool dbus_read_text(struct dbus_reader *r, char type, str *ret)
{
	return (type == 's' || type == 'o' || type == 'g') && take_type(r, type) && take_text(r, type == 'g' ? 1 : 4, ret);
}

bool dbus_read_variant(struct dbus_reader *r)
{
	return take_type(r, 'v') && take_text(r, 1, &r->signature);
}

/* ---- a whole message ---- */

static str *text_field(struct dbus_message *m, uint64_t code)
{
	switch (code) {
	case FIELD_PATH:
		return &m->path;
	case FIELD_INTERFACE:
		return &m->interface;
	case FIELD_MEMBER:
		return &m->member;
	case FIELD_ERROR:
		return &m->error;
	case FIELD_SENDER:
		return &m->sender;
	case FIELD_SIGNATURE:
		return &m->signature;
	default:
		return NULL;
	}
}

static uint32_t *number_field(struct dbus_message *m, uint64_t code)
{
	return code == FIELD_REPLY_TO ? &m->reply_to : code == FIELD_FDS ? &m->n_fds : NULL;
}

/* One (yv). */
static bool parse_field(struct dbus_reader *r, struct dbus_message *m)
{
	uint64_t code, number;
	str text;

	r->at = align_up(r->at, 8);
	if (!take_number(r, 1, &code) || !take_text(r, 1, &r->signature) || r->signature.n != 1)
		return false;
	char type = r->signature.p[0];
	if (size_of(type)) {
		uint32_t *to = number_field(m, code);
		if (!dbus_read_number(r, type, &number))
			return false;
		if (to && type != 'u')
			return false;
		if (to)
			*to = (uint32_t)number;
		return true;
	}
	str *to = text_field(m, code);
	if (!dbus_read_text(r, type, &text))
		return false;
	if (to)
		*to = text;
	return true;
}

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_BAD_REQUEST, "D-Bus: %s", what);
}

static int parse_fields(struct dbus_message *m, str fields, struct err *err)
{
	/* Their alignment counts from the beginning of the message: FIXED + 4 is a multiple of 8. */
	struct dbus_reader r = { .body = fields, .big_endian = m->big_endian };

	while (r.at < fields.n)
		if (!parse_field(&r, m))
			return bad(err, "a header field that cannot be understood");
	return 0;
}

int dbus_parse(str bytes, struct dbus_message *ret, size_t *ret_n, struct err *err)
{
	uint64_t n_body, serial, n_fields;

	if (bytes.n < FIXED + 4)
		return 0;
	struct dbus_message m = { .type = (enum dbus_type)(unsigned char)bytes.p[1], .big_endian = bytes.p[0] == 'B' };
	struct dbus_reader r = { .body = bytes, .at = 4, .big_endian = m.big_endian };
	if ((bytes.p[0] != 'l' && bytes.p[0] != 'B') || bytes.p[3] != 1)
		return bad(err, "a message of an unknown version");
	if (!take_number(&r, 4, &n_body) || !take_number(&r, 4, &serial) || !take_number(&r, 4, &n_fields))
		return bad(err, "a message without a head");
	if (n_fields > FIELDS_MAX || n_body > DBUS_MESSAGE_MAX)
		return err_set(err, ERR_TOO_LARGE, "D-Bus: a message of more than %d bytes", DBUS_MESSAGE_MAX);
	size_t body = align_up(FIXED + 4 + n_fields, 8);
	if (body + n_body > DBUS_MESSAGE_MAX)
		return err_set(err, ERR_TOO_LARGE, "D-Bus: a message of more than %d bytes", DBUS_MESSAGE_MAX);
	if (bytes.n < body + n_body)
		return 0;
	m.serial = (uint32_t)serial;
	m.body = str_head(str_skip(bytes, body), n_body);
	int x = parse_fields(&m, str_head(str_skip(bytes, FIXED + 4), n_fields), err);
	if (x < 0)
		return x;
	if (m.n_fds > DBUS_FDS_MAX)
		return err_set(err, ERR_TOO_LARGE, "D-Bus: a message with more than %d descriptors", DBUS_FDS_MAX);
	*ret = m;
	*ret_n = body + n_body;
	return 1;
}

/* ---- building ---- */

static void pad(struct buf *b, size_t begin, size_t to)
{
	while ((b->n - begin) % to && !b->overflow)
		buf_addc(b, '\0');
}

static void add_u32(struct buf *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		buf_addc(b, (char)(v >> 8 * i));
}

static void add_text(struct buf *b, size_t begin, str s)
{
	pad(b, begin, 4);
	add_u32(b, (uint32_t)s.n);
	buf_add(b, s);
	buf_addc(b, '\0');
}

static void add_signature(struct buf *b, str s)
{
	buf_addc(b, (char)s.n);
	buf_add(b, s);
	buf_addc(b, '\0');
}

static void add_field(struct buf *b, size_t begin, enum field code, char type, str value)
{
	pad(b, begin, 8);
	buf_addc(b, (char)code);
	add_signature(b, str_span(&type, 1));
	if (type == 'g')
		add_signature(b, value);
	else
		add_text(b, begin, value);
}

void dbus_build(const struct dbus_call *c, uint32_t serial, struct buf *b)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(DBUS_MESSAGE_MAX), fields = BUF_INIT(FIELDS_MAX);
	char signature[ARRAY_LEN(c->texts) + 1];
	size_t n = 0, begin = b->n;

	for (; n < ARRAY_LEN(c->texts) && c->texts[n]; n++) {
		signature[n] = 's';
		add_text(&body, 0, str_of(c->texts[n]));
	}
	if (c->has_number) {
		signature[n++] = 'i';
		pad(&body, 0, 4);
		add_u32(&body, (uint32_t)c->number);
	}
	/* They begin at a multiple of 8 in the message, as they do in their own buffer. */
	add_field(&fields, 0, FIELD_PATH, 'o', str_of(c->path));
	add_field(&fields, 0, FIELD_INTERFACE, 's', str_of(c->interface));
	add_field(&fields, 0, FIELD_MEMBER, 's', str_of(c->member));
	add_field(&fields, 0, FIELD_DESTINATION, 's', str_of(c->destination));
	if (n)
		add_field(&fields, 0, FIELD_SIGNATURE, 'g', str_span(signature, n));
	buf_add(b, str_span((const char[]){ 'l', DBUS_CALL, 0, 1 }, 4));
	add_u32(b, (uint32_t)body.n);
	add_u32(b, serial);
	add_u32(b, (uint32_t)fields.n);
	buf_add(b, buf_str(&fields));
	pad(b, begin, 8);
	buf_add(b, buf_str(&body));
}
