/* The frames themselves; see spdy_headers.c for what some of them carry. */
#include "net/spdy_frame.h"

enum { VERSION = 3 };

static uint32_t get_u32(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;
	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static void put_u32(char *p, uint32_t v)
{
	p[0] = (char)(v >> 24);
	p[1] = (char)(v >> 16);
	p[2] = (char)(v >> 8);
	p[3] = (char)v;
}

int spdy_frame_parse(const char p[SPDY_FRAME_HEAD], struct spdy_frame *ret_frame, struct err *err)
{
	uint32_t first = get_u32(p), second = get_u32(p + 4);
	struct spdy_frame f = { .control = first >> 31, .flags = (uint8_t)(second >> 24), .length = second & SPDY_DATA_MAX };
	if (f.control) {
		f.type = (uint16_t)first;
		if ((first >> 16 & 0x7fff) != VERSION)
			return err_set(err, ERR_BAD_REQUEST, "spdy: unknown version %u", first >> 16 & 0x7fff);
		if (f.length > SPDY_CONTROL_MAX)
			return err_set(err, ERR_BAD_REQUEST, "spdy: a control frame of %u bytes", f.length);
	} else {
		f.stream = first;
		if (!f.stream)
			return err_set(err, ERR_BAD_REQUEST, "spdy: stream id zero is disallowed");
	}
	*ret_frame = f;
	return 0;
}

static int bad_frame(struct err *err) { return err_set(err, ERR_BAD_REQUEST, "spdy: invalid control frame"); }

/* The block starts after the numbers. */
static int parse_headers(const struct spdy_frame *f, str payload, struct spdy_unpacker *u, struct arena *a,
			 struct spdy_control *c, struct err *err)
{
	size_t numbers = f->type == SPDY_SYN_STREAM ? 10 : 4;
	struct http_header *headers;
	if (payload.n < numbers)
		return bad_frame(err);
	c->stream = get_u32(payload.p) & INT32_MAX;
	if (!c->stream)
		return err_set(err, ERR_BAD_REQUEST, "spdy: stream id zero is disallowed");
	int r = spdy_unpack(u, str_skip(payload, numbers), a, &headers, &c->n_headers, err);
	if (r == 0)
		c->headers = headers;
	return r;
}

int spdy_control_parse(const struct spdy_frame *f, str payload, struct spdy_unpacker *u, struct arena *a,
		       struct spdy_control *ret_control, struct err *err)
{
	struct spdy_control *c = ret_control;
	*c = (struct spdy_control){ 0 };
	switch (f->type) {
	case SPDY_SYN_STREAM:
	case SPDY_SYN_REPLY:
	case SPDY_HEADERS:
		return parse_headers(f, payload, u, a, c, err);
	case SPDY_RST_STREAM:
	case SPDY_GOAWAY:
	case SPDY_WINDOW_UPDATE:
		if (payload.n != 8 || (f->flags && f->type != SPDY_RST_STREAM))
			return bad_frame(err);
		c->stream = get_u32(payload.p) & INT32_MAX;
		c->value = get_u32(payload.p + 4);
		return f->type == SPDY_RST_STREAM && (!c->stream || !c->value) ? bad_frame(err) : 0;
	case SPDY_PING:
		if (payload.n != 4 || f->flags)
			return bad_frame(err);
		c->value = get_u32(payload.p);
		return c->value ? 0 : bad_frame(err);
	case SPDY_SETTINGS:
		return payload.n < 4 || get_u32(payload.p) > (payload.n - 4) / 8 ? bad_frame(err) : 0;
	}
	return 0;
}

/* ---- writing ---- */

void spdy_write_data_head(char p[SPDY_FRAME_HEAD], uint32_t stream, uint8_t flags, size_t length)
{
	put_u32(p, stream);
	put_u32(p + 4, (uint32_t)flags << 24 | (uint32_t)length);
}

static void put_control_head(char *p, enum spdy_type type, uint8_t flags, size_t length)
{
	put_u32(p, 0x80000000u | VERSION << 16 | (uint32_t)type);
	put_u32(p + 4, (uint32_t)flags << 24 | (uint32_t)length);
}

int spdy_add_headers(struct buf *b, enum spdy_type type, uint32_t stream, uint8_t flags, struct spdy_packer *p,
		     const struct http_header *headers, size_t n, struct err *err)
{
	char head[SPDY_FRAME_HEAD + 10] = { 0 };
	size_t numbers = type == SPDY_SYN_STREAM ? 10 : 4, start = b->n;
	put_u32(head + SPDY_FRAME_HEAD, stream);
	buf_add(b, str_span(head, SPDY_FRAME_HEAD + numbers));
	int r = spdy_pack(p, headers, n, b, err);
	if (r == 0 && (r = buf_check(b, "the frame", err)) == 0)
		put_control_head(b->p + start, type, flags, b->n - start - SPDY_FRAME_HEAD);
	return r;
}

static void add_numbers(struct buf *b, enum spdy_type type, uint32_t first, uint32_t second, size_t n)
{
	char p[SPDY_FRAME_HEAD + 8];
	put_control_head(p, type, 0, n);
	put_u32(p + SPDY_FRAME_HEAD, first);
	put_u32(p + SPDY_FRAME_HEAD + 4, second);
	buf_add(b, str_span(p, SPDY_FRAME_HEAD + n));
}

void spdy_add_rst(struct buf *b, uint32_t stream, enum spdy_status status)
{
	add_numbers(b, SPDY_RST_STREAM, stream, (uint32_t)status, 8);
}

void spdy_add_ping(struct buf *b, uint32_t id) { add_numbers(b, SPDY_PING, id, 0, 4); }

void spdy_add_goaway(struct buf *b, uint32_t last_stream, uint32_t status)
{
	add_numbers(b, SPDY_GOAWAY, last_stream, status, 8);
}
