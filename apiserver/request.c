/* Reading a request, and filling in its answer. */
#include "apiserver/request.h"

#include "apiserver/audit/audit.h"
#include "apiserver/list.h"
#include "codec/atoms.h"
#include "codec/types.h"

str request_query(const struct request *q, str name)
{
	for (size_t i = 0; i < q->n_query; i++)
		if (str_eq(q->query[i].name, name))
			return q->query[i].value;
	return STR_NONE;
}

bool request_query_bool(const struct request *q, str name)
{
	for (size_t i = 0; i < q->n_query; i++)
		if (str_eq(q->query[i].name, name))
			return !str_eq(q->query[i].value, STR("false")) && !str_eq(q->query[i].value, STR("0"));
	return false;
}

str request_manager(const struct request *q)
{
	if (q->field_manager.n)
		return q->field_manager;
	str agent = http_request_header(q->http, STR("user-agent")), product, rest;
	str_cut(agent, '/', &product, &rest);
	/* As Kubernetes: characters that are not printable are left out, the rest is cut to 128 bytes. */
	char *out = arena_alloc(q->arena, 128, 1);
	size_t n = 0;
	for (size_t i = 0, len; i < product.n; i += len) {
		uint32_t rune;
		len = str_rune(str_skip(product, i), &rune);
		if (!len || rune < 0x20 || rune == 0x7f) {
			len = len ? len : 1;
			continue;
		}
		if (n + len > 128)
			break;
		memcpy(out + n, product.p + i, len);
		n += len;
	}
	return str_span(out, n);
}

void answer_header(struct request *q, str name, str value)
{
	size_t n = q->answer.n_headers;
	if ((n & (n - 1)) == 0 && n != 1) { /* 0, 2, 4, 8, ...: the room is used up */
		struct http_header *room = ARENA_ARRAY(q->arena, struct http_header, n ? 2 * n : 2);
		if (n)
			memcpy(room, q->answer.headers, n * sizeof *room);
		q->answer.headers = room;
	}
	q->answer.headers[q->answer.n_headers++] = (struct http_header){ name, value };
}

/* Kubernetes cuts a warning at 256 characters once they exceed 4,096 together; more than fit are dropped. */
enum { WARNING_LONG = 256, WARNINGS_TOTAL = 4096, WARNINGS_MAX = 128 };

void request_warn(struct request *q, str text)
{
	size_t total = text.n;
	for (unsigned i = 0; i < q->n_warnings; i++) {
		if (str_eq(q->warnings[i], text))
			return;
		total += q->warnings[i].n;
	}
	if (total > WARNINGS_TOTAL)
		text = str_head(text, WARNING_LONG);
	if (q->n_warnings == WARNINGS_MAX || total - text.n > WARNINGS_TOTAL)
		return;
	if (!q->warnings)
		q->warnings = ARENA_ARRAY(q->arena, str, WARNINGS_MAX);
	q->warnings[q->n_warnings++] = arena_str(q->arena, text);
}

void answer_val(struct request *q, int status, struct val v, const struct type *type)
{
	q->answer.kind = ANSWER_OBJECT;
	q->answer.status = status;
	q->answer.val = v;
	q->answer.type = type;
}

void answer_object(struct request *q, int status, struct object *o)
{
	object_unref(q->answer.object);
	q->answer.kind = ANSWER_OBJECT;
	q->answer.status = status;
	q->answer.object = o;
}

void answer_bytes(struct request *q, int status, str content_type, str bytes)
{
	q->answer.kind = ANSWER_BYTES;
	q->answer.status = status;
	q->answer.content_type = content_type;
	q->answer.bytes = bytes;
}

void answer_sent(struct request *q, int status)
{
	q->answer.kind = ANSWER_SENT;
	q->answer.status = status;
	audit_response_started(q, status);
}

void answer_success(struct request *q, str name, str uid)
{
	struct val details = OBJECT(q->arena, F(name, name.n ? val_of_str(name) : VAL_EMPTY),
				    F(group, q->group.n ? val_of_str(q->group) : VAL_EMPTY), F(kind, val_of_str(q->resource)),
				    F(uid, uid.n ? val_of_str(uid) : VAL_EMPTY));
	struct val status = OBJECT(q->arena, F(kind, VAL_LIT("Status")), F(apiVersion, VAL_LIT("v1")),
				   F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Success")), F(details, details));
	answer_val(q, 200, status, TYPE(meta_v1, Status));
}

void answer_done(struct request *q)
{
	if (q->answer.kind == ANSWER_LIST && q->answer.list)
		q->answer.list->source->stop(q->answer.list->source);
	q->answer.list = NULL;
	object_unref(TAKE(q->answer.object));
}
