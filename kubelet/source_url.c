/*
 * staticPodURL: a manifest of one pod or of a list of them, asked for every url_check_ms. Nothing is done while it stays the same.
 */
#include <stdlib.h>

#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/source_priv.h"
#include "net/http_client.h"
#include "net/tls.h"

enum { ANSWER_MS = 10 * 1000, HEADERS_MAX = 100, COMPLAINTS_MAX = 3 };

struct asking {
	struct sources *sources;
	struct http_client *client;
	struct arena texts;           /* of headers */
	struct http_header *headers;
	size_t n_headers;
	struct buf last;              /* the last answer that was looked at */
	unsigned complaints;
};

static void headers_make(struct asking *q)
{
	q->headers = ARENA_ARRAY(&q->texts, struct http_header, HEADERS_MAX + 1);
	VAL_EACH_MEMBER(m, q->sources->o.url_header)
		VAL_EACH(value, m->val)
			if (q->n_headers < HEADERS_MAX)
				q->headers[q->n_headers++] =
					(struct http_header){ source_lower(&q->texts, atom_str(m->key)), arena_str(&q->texts, val_as_str(*value)) };
	q->headers[q->n_headers++] = (struct http_header){ STR("accept"), STR("*/*") };
}

static int answer_take(struct asking *q, str body, struct err *err)
{
	struct sources *s = q->sources;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pods;
	int r;

	if (!body.n) {
		sources_seen(s, SOURCE_URL);
		return err_set(err, ERR_INVALID, "zero-length data received from %s", s->o.url);
	}
	if (str_eq(body, buf_str(&q->last)))
		return 0;
	buf_reset(&q->last);
	buf_add(&q->last, body);
	if ((r = static_pods_decode(&a, s->o.node, SOURCE_URL, str_of(s->o.url), body, true, &pods, err)) < 0)
		return r;
	sources_replace(s, SOURCE_URL, pods);
	return 0;
}

/* (suspends) */
static int ask(struct asking *q, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct http_request request = { .method = STR("GET"), .url = str_of(q->sources->o.url), .headers = q->headers,
					.n_headers = q->n_headers };
	const struct http1_head *head;
	str body;
	int r;

	DEADLINE_SCOPE(ANSWER_MS);
	if ((r = http_call_open(q->client, &request, &call, err)) < 0 || (r = http_call_head(call, &head, err)) < 0 ||
	    (r = http_call_read_all(call, MANIFEST_MAX, &body, err)) < 0)
		return r;
	if (head->status != 200)
		return err_set(err, ERR_UNAVAILABLE, "%s: %d", q->sources->o.url, head->status);
	return answer_take(q, body, err);
}

static void asking_done(struct asking *q)
{
	http_client_free(q->client);
	buf_done(&q->last);
	arena_done(&q->texts);
}

static void tls_freep(struct tls_context **t) { tls_context_free(*t); }

int source_url_run(void *arg)
{
	struct sources *s = arg;
	CLEANUP(tls_freep) struct tls_context *tls = NULL;
	CLEANUP(asking_done) struct asking q = { .sources = s, .last = BUF_INIT(MANIFEST_MAX) };
	int r;

	if (str_starts(str_of(s->o.url), STR("https:"))) {
		struct err err = ERR_INIT;
		if ((r = tls_client_new(&(struct tls_options){ 0 }, &tls, &err)) < 0) {
			log_error("static pods cannot be asked for", KV("url", s->o.url), KV("err", &err));
			return r;
		}
	}
	q.client = http_client_new(&(struct http_client_options){ .tls = tls });
	headers_make(&q);
	do {
		struct err err = ERR_INIT;
		r = ask(&q, &err);
		/* The first few are enough to get the point across. */
		if (r < 0 && fiber_check(NULL) == 0 && q.complaints++ < COMPLAINTS_MAX)
			log_warn("pods cannot be read from the URL", KV("err", &err));
		if (r == 0)
			q.complaints = 0;
	} while ((r = fiber_sleep_ms(s->o.url_check_ms, NULL)) == 0);
	return r;
}
