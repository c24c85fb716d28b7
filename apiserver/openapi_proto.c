/* What both versions of OpenAPI need. A message's length is put before it when it is known, by moving the content. */
#include "apiserver/openapi_proto.h"

#include "apiserver/documents_priv.h"
#include "codec/json.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };

static size_t varint(char out[10], uint64_t v)
{
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		out[n++] = (char)(v | 0x80);
	out[n++] = (char)v;
	return n;
}

static void put_varint(struct gnostic *g, uint64_t v)
{
	char out[10];
	buf_add(g->b, str_span(out, varint(out, v)));
}

static void put_tag(struct gnostic *g, unsigned number, unsigned wire) { put_varint(g, number << 3 | wire); }

void gnostic_text(struct gnostic *g, unsigned number, str s)
{
	put_tag(g, number, BYTES);
	put_varint(g, s.n);
	buf_add(g->b, s);
}

static void put_number(struct gnostic *g, unsigned number, uint64_t v)
{
	put_tag(g, number, VARINT);
	put_varint(g, v);
}

void gnostic_flag(struct gnostic *g, unsigned number, bool flag) { put_number(g, number, flag); }

void gnostic_real(struct gnostic *g, unsigned number, double real)
{
	uint64_t bits;
	char bytes[8];

	memcpy(&bits, &real, sizeof bits);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(bits >> 8 * i);
	put_tag(g, number, FIXED64);
	buf_add(g->b, str_span(bytes, sizeof bytes));
}

/* The content of a message begins at begin and is complete: its length goes before it. */
static void put_length(struct gnostic *g, size_t begin)
{
	char length[10];
	size_t size = g->b->n - begin, n = varint(length, size);

	if (!buf_reserve(g->b, n))
		return;
	memmove(g->b->p + begin + n, g->b->p + begin, size);
	memcpy(g->b->p + begin, length, n);
	buf_commit(g->b, n);
}

void gnostic_message(struct gnostic *g, unsigned number, struct val v, gnostic_fn *content)
{
	if (g->depth >= VAL_RECURSION_MAX) {
		g->too_deep = true;
		return;
	}
	put_tag(g, number, BYTES);
	size_t begin = g->b->n;
	g->depth++;
	content(g, v);
	g->depth--;
	put_length(g, begin);
}

/* Any: {yaml = 2} */
static void any(struct gnostic *g, struct val v)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(DOCUMENT_MAX);
	int r = json_encode(&json, v, &(struct json_encode_options){ .plain = true }, g->err);
	if (r < 0)
		g->failed = r;
	buf_addc(&json, '\n');
	gnostic_text(g, 2, buf_str(&json));
}

static void put_row(struct gnostic *g, const struct gnostic_row *row, struct val v)
{
	switch (row->how) {
	case GNOSTIC_TEXT:
		gnostic_text(g, row->number, val_as_str(v));
		break;
	case GNOSTIC_TEXTS:
		VAL_EACH(item, v)
			gnostic_text(g, row->number, val_as_str(*item));
		break;
	case GNOSTIC_FLAG:
		gnostic_flag(g, row->number, val_as_bool(v));
		break;
	case GNOSTIC_NUMBER:
		put_number(g, row->number, (uint64_t)val_as_int(v));
		break;
	case GNOSTIC_REAL:
		gnostic_real(g, row->number, val_as_double(v));
		break;
	case GNOSTIC_ANY:
		gnostic_message(g, row->number, v, any);
		break;
	case GNOSTIC_ANYS:
		VAL_EACH(item, v)
			gnostic_message(g, row->number, *item, any);
		break;
	case GNOSTIC_MESSAGE:
		gnostic_message(g, row->number, v, row->content);
		break;
	case GNOSTIC_MESSAGES:
		VAL_EACH(item, v)
			gnostic_message(g, row->number, *item, row->content);
		break;
	}
}

static void put_entry(struct gnostic *g, unsigned number, const struct member *m, gnostic_fn *content)
{
	put_tag(g, number, BYTES);
	size_t begin = g->b->n;
	gnostic_text(g, 1, atom_str(m->key));
	gnostic_message(g, 2, m->val, content);
	put_length(g, begin);
}

void gnostic_entries(struct gnostic *g, unsigned number, struct val object, gnostic_fn *content)
{
	VAL_EACH_MEMBER(m, object)
		put_entry(g, number, m, content);
}

void gnostic_rows(struct gnostic *g, struct val v, const struct gnostic_row *rows, size_t n, unsigned extension)
{
	for (size_t i = 0; i < n; i++) {
		struct val member = val_find(v, rows[i].key);
		if (!val_is_nil(member))
			put_row(g, &rows[i], member);
	}
	VAL_EACH_MEMBER(m, v)
		if (str_starts(atom_str(m->key), STR("x-")))
			put_entry(g, extension, m, any);
}

void gnostic_text_list(struct gnostic *g, struct val v)
{
	if (val_is(v, VAL_STRING))
		gnostic_text(g, 1, val_as_str(v));
	VAL_EACH(item, v)
		gnostic_text(g, 1, val_as_str(*item));
}

void gnostic_one_or_more(struct gnostic *g, struct val v, gnostic_fn *content)
{
	if (val_is(v, VAL_OBJECT))
		gnostic_message(g, 1, v, content);
	VAL_EACH(item, v)
		gnostic_message(g, 1, *item, content);
}

void gnostic_or_flag(struct gnostic *g, struct val v, gnostic_fn *content)
{
	if (val_is(v, VAL_OBJECT))
		gnostic_message(g, 1, v, content);
	else
		gnostic_flag(g, 2, val_as_bool(v));
}

/* Reference: {_ref = 1} */
static void reference(struct gnostic *g, struct val v) { gnostic_text(g, 1, val_as_str(val_find(v, STR("$ref")))); }

void gnostic_or_reference(struct gnostic *g, struct val v, gnostic_fn *content)
{
	bool elsewhere = val_exists(val_find(v, STR("$ref")));
	gnostic_message(g, elsewhere ? 2 : 1, v, elsewhere ? reference : content);
}

int gnostic_document(struct val doc, gnostic_fn *content, struct buf *b, struct err *err)
{
	struct gnostic g = { .b = b, .err = err };

	content(&g, doc);
	if (g.failed)
		return g.failed;
	if (g.too_deep)
		return err_set(err, ERR_INTERNAL, "the OpenAPI document is nested deeper than %d levels", VAL_RECURSION_MAX);
	return buf_check(b, "the OpenAPI document", err);
}
