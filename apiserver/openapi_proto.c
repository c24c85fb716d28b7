/*
 * OpenAPI version 2 as protobuf, for clients (kubectl up to 1.26, helm) that read nothing else: messages of gnostic's
 * openapi.v2, where maps are lists of named entries, choices are messages with one member, and free values are texts of
 * YAML, which JSON is.
 *
 * One function per message writes its content; tables hold the members that need nothing special. The length of a
 * message is put before it when it is known, by moving the content.
 */
#include "apiserver/documents_priv.h"
#include "codec/json.h"

struct writer {
	struct buf *b;
	unsigned depth;
	bool too_deep;
	struct err *err;
	int failed;
};

typedef void write_fn(struct writer *w, struct val v);

enum how { AS_TEXT, AS_TEXTS, AS_FLAG, AS_NUMBER, AS_REAL, AS_ANY, AS_ANYS, AS_MESSAGE, AS_MESSAGES };

struct row {
	str key;
	unsigned number;
	enum how how;
	write_fn *content;        /* AS_MESSAGE, AS_MESSAGES */
};

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };

static size_t varint(char out[10], uint64_t v)
{
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		out[n++] = (char)(v | 0x80);
	out[n++] = (char)v;
	return n;
}

static void put_varint(struct writer *w, uint64_t v)
{
	char out[10];
	buf_add(w->b, str_span(out, varint(out, v)));
}

static void put_tag(struct writer *w, unsigned number, unsigned wire) { put_varint(w, number << 3 | wire); }

static void put_text(struct writer *w, unsigned number, str s)
{
	put_tag(w, number, BYTES);
	put_varint(w, s.n);
	buf_add(w->b, s);
}

/* The content of a message begins at begin and is complete: its length goes before it. */
static void put_length(struct writer *w, size_t begin)
{
	char length[10];
	size_t size = w->b->n - begin, n = varint(length, size);

	if (!buf_reserve(w->b, n))
		return;
	memmove(w->b->p + begin + n, w->b->p + begin, size);
	memcpy(w->b->p + begin, length, n);
	buf_commit(w->b, n);
}

static void put_message(struct writer *w, unsigned number, struct val v, write_fn *content)
{
	if (w->depth >= VAL_RECURSION_MAX) {
		w->too_deep = true;
		return;
	}
	put_tag(w, number, BYTES);
	size_t begin = w->b->n;
	w->depth++;
	content(w, v);
	w->depth--;
	put_length(w, begin);
}

/* Any: {yaml = 2} */
static void any(struct writer *w, struct val v)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(DOCUMENT_MAX);
	int r = json_encode(&json, v, &(struct json_encode_options){ .plain = true }, w->err);
	if (r < 0)
		w->failed = r;
	buf_addc(&json, '\n');
	put_text(w, 2, buf_str(&json));
}

static void put_row(struct writer *w, const struct row *row, struct val v)
{
	double real = val_as_double(v);

	switch (row->how) {
	case AS_TEXT:
		put_text(w, row->number, val_as_str(v));
		break;
	case AS_TEXTS:
		VAL_EACH(item, v)
			put_text(w, row->number, val_as_str(*item));
		break;
	case AS_FLAG:
	case AS_NUMBER:
		put_tag(w, row->number, VARINT);
		put_varint(w, row->how == AS_FLAG ? val_as_bool(v) : (uint64_t)val_as_int(v));
		break;
	case AS_REAL:
		put_tag(w, row->number, FIXED64);
		buf_add(w->b, str_span((const char *)&real, sizeof real));
		break;
	case AS_ANY:
		put_message(w, row->number, v, any);
		break;
	case AS_ANYS:
		VAL_EACH(item, v)
			put_message(w, row->number, *item, any);
		break;
	case AS_MESSAGE:
		put_message(w, row->number, v, row->content);
		break;
	case AS_MESSAGES:
		VAL_EACH(item, v)
			put_message(w, row->number, *item, row->content);
		break;
	}
}

/* ---- named entries: {name = 1, value = 2} ---- */

static void put_entry(struct writer *w, unsigned number, const struct member *m, write_fn *content)
{
	put_tag(w, number, BYTES);
	size_t begin = w->b->n;
	put_text(w, 1, atom_str(m->key));
	put_message(w, 2, m->val, content);
	put_length(w, begin);
}

static void put_entries(struct writer *w, unsigned number, struct val object, write_fn *content)
{
	VAL_EACH_MEMBER(m, object)
		put_entry(w, number, m, content);
}

/* The members that the table knows, in its order, and as extension those that begin with "x-". */
static void put_rows(struct writer *w, struct val v, const struct row *rows, size_t n, unsigned extension)
{
	for (size_t i = 0; i < n; i++) {
		struct val member = val_find(v, rows[i].key);
		if (!val_is_nil(member))
			put_row(w, &rows[i], member);
	}
	VAL_EACH_MEMBER(m, v)
		if (str_starts(atom_str(m->key), STR("x-")))
			put_entry(w, extension, m, any);
}

#define PUT_ROWS(w, v, rows, extension) put_rows((w), (v), (rows), ARRAY_LEN(rows), (extension))

/* ---- schemas ---- */

static void schema(struct writer *w, struct val v);

static void properties(struct writer *w, struct val v) { put_entries(w, 1, v, schema); }

/* TypeItem and ItemsItem: one or several. */
static void one_or_more_texts(struct writer *w, struct val v)
{
	if (val_is(v, VAL_STRING))
		put_text(w, 1, val_as_str(v));
	VAL_EACH(item, v)
		put_text(w, 1, val_as_str(*item));
}

static void one_or_more_schemas(struct writer *w, struct val v)
{
	if (val_is(v, VAL_OBJECT))
		put_message(w, 1, v, schema);
	VAL_EACH(item, v)
		put_message(w, 1, *item, schema);
}

/* AdditionalPropertiesItem: a schema, or whether there may be any. */
static void schema_or_flag(struct writer *w, struct val v)
{
	if (val_is(v, VAL_OBJECT)) {
		put_message(w, 1, v, schema);
		return;
	}
	put_tag(w, 2, VARINT);
	put_varint(w, val_as_bool(v));
}

static void schema(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("$ref"), 1, AS_TEXT, NULL }, { STR_INIT("format"), 2, AS_TEXT, NULL },
		{ STR_INIT("title"), 3, AS_TEXT, NULL }, { STR_INIT("description"), 4, AS_TEXT, NULL },
		{ STR_INIT("default"), 5, AS_ANY, NULL }, { STR_INIT("multipleOf"), 6, AS_REAL, NULL },
		{ STR_INIT("maximum"), 7, AS_REAL, NULL }, { STR_INIT("exclusiveMaximum"), 8, AS_FLAG, NULL },
		{ STR_INIT("minimum"), 9, AS_REAL, NULL }, { STR_INIT("exclusiveMinimum"), 10, AS_FLAG, NULL },
		{ STR_INIT("maxLength"), 11, AS_NUMBER, NULL }, { STR_INIT("minLength"), 12, AS_NUMBER, NULL },
		{ STR_INIT("pattern"), 13, AS_TEXT, NULL }, { STR_INIT("maxItems"), 14, AS_NUMBER, NULL },
		{ STR_INIT("minItems"), 15, AS_NUMBER, NULL }, { STR_INIT("uniqueItems"), 16, AS_FLAG, NULL },
		{ STR_INIT("maxProperties"), 17, AS_NUMBER, NULL }, { STR_INIT("minProperties"), 18, AS_NUMBER, NULL },
		{ STR_INIT("required"), 19, AS_TEXTS, NULL }, { STR_INIT("enum"), 20, AS_ANYS, NULL },
		{ STR_INIT("additionalProperties"), 21, AS_MESSAGE, schema_or_flag },
		{ STR_INIT("type"), 22, AS_MESSAGE, one_or_more_texts }, { STR_INIT("items"), 23, AS_MESSAGE, one_or_more_schemas },
		{ STR_INIT("allOf"), 24, AS_MESSAGES, schema }, { STR_INIT("properties"), 25, AS_MESSAGE, properties },
		{ STR_INIT("discriminator"), 26, AS_TEXT, NULL }, { STR_INIT("readOnly"), 27, AS_FLAG, NULL },
		{ STR_INIT("example"), 30, AS_ANY, NULL },
	};
	PUT_ROWS(w, v, rows, 31);
}

/* ---- operations ---- */

static void body_parameter(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("description"), 1, AS_TEXT, NULL }, { STR_INIT("name"), 2, AS_TEXT, NULL },
		{ STR_INIT("in"), 3, AS_TEXT, NULL }, { STR_INIT("required"), 4, AS_FLAG, NULL },
		{ STR_INIT("schema"), 5, AS_MESSAGE, schema },
	};
	PUT_ROWS(w, v, rows, 6);
}

/* Query parameters have allow_empty_value = 5, which shifts what follows. */
static void query_parameter(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("required"), 1, AS_FLAG, NULL }, { STR_INIT("in"), 2, AS_TEXT, NULL },
		{ STR_INIT("description"), 3, AS_TEXT, NULL }, { STR_INIT("name"), 4, AS_TEXT, NULL },
		{ STR_INIT("type"), 6, AS_TEXT, NULL }, { STR_INIT("format"), 7, AS_TEXT, NULL },
		{ STR_INIT("default"), 10, AS_ANY, NULL }, { STR_INIT("pattern"), 17, AS_TEXT, NULL },
		{ STR_INIT("uniqueItems"), 20, AS_FLAG, NULL }, { STR_INIT("enum"), 21, AS_ANYS, NULL },
	};
	PUT_ROWS(w, v, rows, 23);
}

/* Of the path and of headers. */
static void plain_parameter(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("required"), 1, AS_FLAG, NULL }, { STR_INIT("in"), 2, AS_TEXT, NULL },
		{ STR_INIT("description"), 3, AS_TEXT, NULL }, { STR_INIT("name"), 4, AS_TEXT, NULL },
		{ STR_INIT("type"), 5, AS_TEXT, NULL }, { STR_INIT("format"), 6, AS_TEXT, NULL },
		{ STR_INIT("default"), 9, AS_ANY, NULL }, { STR_INIT("pattern"), 16, AS_TEXT, NULL },
		{ STR_INIT("uniqueItems"), 19, AS_FLAG, NULL }, { STR_INIT("enum"), 20, AS_ANYS, NULL },
	};
	PUT_ROWS(w, v, rows, 22);
}

static void non_body_parameter(struct writer *w, struct val v)
{
	str in = val_as_str(val_find(v, STR("in")));
	if (str_eq(in, STR("query")))
		put_message(w, 3, v, query_parameter);
	else
		put_message(w, str_eq(in, STR("header")) ? 1 : 4, v, plain_parameter);
}

static void parameter(struct writer *w, struct val v)
{
	if (str_eq(val_as_str(val_find(v, STR("in"))), STR("body")))
		put_message(w, 1, v, body_parameter);
	else
		put_message(w, 2, v, non_body_parameter);
}

static void reference(struct writer *w, struct val v) { put_text(w, 1, val_as_str(val_find(v, STR("$ref")))); }

static void parameter_item(struct writer *w, struct val v)
{
	bool elsewhere = val_exists(val_find(v, STR("$ref")));
	put_message(w, elsewhere ? 2 : 1, v, elsewhere ? reference : parameter);
}

static void schema_item(struct writer *w, struct val v) { put_message(w, 1, v, schema); }

static void response(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("description"), 1, AS_TEXT, NULL }, { STR_INIT("schema"), 2, AS_MESSAGE, schema_item },
	};
	PUT_ROWS(w, v, rows, 5);
}

static void response_value(struct writer *w, struct val v) { put_message(w, 1, v, response); }

static void responses(struct writer *w, struct val v) { put_entries(w, 1, v, response_value); }

static void operation(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("tags"), 1, AS_TEXTS, NULL }, { STR_INIT("summary"), 2, AS_TEXT, NULL },
		{ STR_INIT("description"), 3, AS_TEXT, NULL }, { STR_INIT("operationId"), 5, AS_TEXT, NULL },
		{ STR_INIT("produces"), 6, AS_TEXTS, NULL }, { STR_INIT("consumes"), 7, AS_TEXTS, NULL },
		{ STR_INIT("parameters"), 8, AS_MESSAGES, parameter_item }, { STR_INIT("responses"), 9, AS_MESSAGE, responses },
		{ STR_INIT("schemes"), 10, AS_TEXTS, NULL }, { STR_INIT("deprecated"), 11, AS_FLAG, NULL },
	};
	PUT_ROWS(w, v, rows, 13);
}

static void path_item(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("$ref"), 1, AS_TEXT, NULL }, { STR_INIT("get"), 2, AS_MESSAGE, operation },
		{ STR_INIT("put"), 3, AS_MESSAGE, operation }, { STR_INIT("post"), 4, AS_MESSAGE, operation },
		{ STR_INIT("delete"), 5, AS_MESSAGE, operation }, { STR_INIT("options"), 6, AS_MESSAGE, operation },
		{ STR_INIT("head"), 7, AS_MESSAGE, operation }, { STR_INIT("patch"), 8, AS_MESSAGE, operation },
		{ STR_INIT("parameters"), 9, AS_MESSAGES, parameter_item },
	};
	PUT_ROWS(w, v, rows, 10);
}

static void paths(struct writer *w, struct val v) { put_entries(w, 2, v, path_item); }

/* ---- the document ---- */

static void info(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("title"), 1, AS_TEXT, NULL }, { STR_INIT("version"), 2, AS_TEXT, NULL },
		{ STR_INIT("description"), 3, AS_TEXT, NULL },
	};
	PUT_ROWS(w, v, rows, 7);
}

static void api_key(struct writer *w, struct val v)
{
	static const struct row rows[] = {
		{ STR_INIT("type"), 1, AS_TEXT, NULL }, { STR_INIT("name"), 2, AS_TEXT, NULL }, { STR_INIT("in"), 3, AS_TEXT, NULL },
		{ STR_INIT("description"), 4, AS_TEXT, NULL },
	};
	PUT_ROWS(w, v, rows, 5);
}

static void security_definition(struct writer *w, struct val v) { put_message(w, 2, v, api_key); }

static void security_definitions(struct writer *w, struct val v) { put_entries(w, 1, v, security_definition); }

static void security(struct writer *w, struct val v) { put_entries(w, 1, v, one_or_more_texts); }

int openapi_proto(struct val doc, struct buf *b, struct err *err)
{
	static const struct row rows[] = {
		{ STR_INIT("swagger"), 1, AS_TEXT, NULL }, { STR_INIT("info"), 2, AS_MESSAGE, info },
		{ STR_INIT("host"), 3, AS_TEXT, NULL }, { STR_INIT("basePath"), 4, AS_TEXT, NULL },
		{ STR_INIT("schemes"), 5, AS_TEXTS, NULL }, { STR_INIT("consumes"), 6, AS_TEXTS, NULL },
		{ STR_INIT("produces"), 7, AS_TEXTS, NULL }, { STR_INIT("paths"), 8, AS_MESSAGE, paths },
		{ STR_INIT("definitions"), 9, AS_MESSAGE, properties }, { STR_INIT("security"), 12, AS_MESSAGES, security },
		{ STR_INIT("securityDefinitions"), 13, AS_MESSAGE, security_definitions },
	};
	struct writer w = { .b = b, .err = err };

	PUT_ROWS(&w, doc, rows, 16);
	if (w.failed)
		return w.failed;
	if (w.too_deep)
		return err_set(err, ERR_INTERNAL, "the OpenAPI document is nested deeper than %d levels", VAL_RECURSION_MAX);
	return buf_check(b, "the OpenAPI document", err);
}
