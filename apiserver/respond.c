/*
 * STAGE_RESPOND: one answer, sent. What is found out here too late to be sent (an object has no form as asked for)
 * becomes a failure and is sent instead.
 */
#include <stdlib.h>

#include "apiserver/fairness/fairness.h"
#include "apiserver/list.h"
#include "apiserver/local.h"
#include "apiserver/negotiate.h"
#include "apiserver/pipeline.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { GZIP_FROM = 128 << 10, GZIP_LEVEL = 1, HEADERS_OWN = 4 };

/* ---- headers ---- */

struct headers {
	struct http_header *v;
	size_t n;
};

static void header_add(struct headers *h, str name, str value)
{
	h->v[h->n++] = (struct http_header){ name, value };
}

static struct headers headers_of(struct request *q, str content_type)
{
	struct headers h = { ARENA_ARRAY(q->arena, struct http_header, HEADERS_OWN + q->answer.n_headers), 0 };
	if (content_type.n)
		header_add(&h, STR("content-type"), content_type);
	if (!http_header_find(q->answer.headers, q->answer.n_headers, STR("cache-control")).n)
		header_add(&h, STR("cache-control"), STR("no-cache, private"));
	for (size_t i = 0; i < q->answer.n_headers; i++)
		h.v[h.n++] = q->answer.headers[i];
	return h;
}

/* ---- bodies ---- */

static void send_source(struct request *q, int status, str content_type, struct http_source *source, bool compress)
{
	struct headers h = headers_of(q, content_type);
	if (compress) {
		header_add(&h, STR("content-encoding"), STR("gzip"));
		header_add(&h, STR("vary"), STR("Accept-Encoding"));
		source = http_gzip(source, GZIP_LEVEL);
	}
	http_answer_source(q->http, status, h.v, h.n, source, -1);
}

/* Bytes that are compressed while they are sent. */
struct bytes_source {
	struct http_source source;
	str left;
	char bytes[];
};

static ssize_t bytes_fill(struct http_source *source, char *p, size_t n)
{
	struct bytes_source *s = CONTAINER_OF(source, struct bytes_source, source);
	n = MIN(n, s->left.n);
	memcpy(p, s->left.p, n);
	s->left = str_skip(s->left, n);
	return (ssize_t)n;
}

static void bytes_stop(struct http_source *source) { free(CONTAINER_OF(source, struct bytes_source, source)); }

static void send_bytes(struct request *q, int status, str content_type, str body)
{
	bool is_encoded = http_header_find(q->answer.headers, q->answer.n_headers, STR("content-encoding")).n;
	if (LIKELY(body.n <= GZIP_FROM) || is_encoded || !negotiate_gzip(q)) {
		struct headers h = headers_of(q, content_type);
		http_answer(q->http, status, h.v, h.n, body);
		return;
	}
	struct bytes_source *s = mem_alloc(sizeof(*s) + body.n);
	memcpy(s->bytes, body.p, body.n);
	s->source = (struct http_source){ .fill = bytes_fill, .stop = bytes_stop };
	s->left = str_span(s->bytes, body.n);
	send_source(q, status, content_type, &s->source, true);
}

/* ---- answers ---- */

static void send_failure(struct request *q)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
	struct val status = q->failure;
	int64_t retry = val_int(status, details, retryAfterSeconds);
	bool told = http_header_find(q->answer.headers, q->answer.n_headers, STR("retry-after")).n;
	if (retry > 0 && !told)
		answer_header(q, STR("retry-after"), arena_printf(q->arena, "%lld", (long long)retry));
	/* A client that takes none of our forms gets plain JSON with indents, as Kubernetes has it. */
	if (!negotiate_status(q, &q->accept))
		q->accept = (struct accept){ .media = MEDIA_JSON, .pretty = true };
	if (encode_val(q, status, TYPE(meta_v1, Status), false, &body, NULL) < 0)
		buf_reset(&body); /* cannot be: a Status of ours has every form */
	send_bytes(q, (int)val_int(status, code), encode_content_type(&q->accept, false), buf_str(&body));
}

/* What a GET of one object comes down to: bytes that exist already. */
static bool send_shared(struct request *q)
{
	const struct answer *answer = &q->answer;
	const struct endpoint *e = q->endpoint;
	if (!answer->object || q->accept.as != AS_OBJECT || q->accept.media != MEDIA_JSON || q->accept.pretty || !e ||
	    e->type != answer->object->kind->hub || answer->object->kind->hooks->decorate)
		return false;
	const struct bytes *json = object_json(answer->object);
	char *body = arena_alloc(q->arena, json->n + 1, 1);
	memcpy(body, json->p, json->n);
	body[json->n] = '\n';
	send_bytes(q, answer->status, STR("application/json"), str_span(body, json->n + 1));
	return true;
}

static int send_object(struct request *q, struct err *err)
{
	if (send_shared(q))
		return 0;
	CLEANUP(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
	int r = q->answer.object ? encode_object(q, q->answer.object, false, &body, err) :
				   encode_val(q, q->answer.val, q->answer.type, false, &body, err);
	if (r < 0)
		return val_exists(q->failure) ? r : fail_err(q, err);
	send_bytes(q, q->answer.status, encode_content_type(&q->accept, false), buf_str(&body));
	return 0;
}

int stage_respond(struct request *q, struct err *err)
{
	const struct answer *answer = &q->answer;
	if (q->local) {
		local_respond(q);
		return 0;
	}
	if (val_exists(q->failure)) {
		send_failure(q);
		return 0;
	}
	switch (answer->kind) {
	case ANSWER_OBJECT:
		if (send_object(q, err) < 0)
			send_failure(q);
		return 0;
	case ANSWER_LIST:
		send_source(q, answer->status, encode_content_type(&q->accept, answer->list->watch),
			    answer->list->watch ? answer->list->source : fairness_hold(q, answer->list->source),
			    answer->list->large && negotiate_gzip(q));
		q->answer.list = NULL; /* the connection has it now */
		return 0;
	case ANSWER_BYTES:
		send_bytes(q, answer->status, answer->content_type, answer->bytes);
		return 0;
	case ANSWER_SENT:
		return 0;
	case ANSWER_NONE:
		break;
	}
	(void)fail_internal(q, "there is no answer");
	send_failure(q);
	return 0;
}
