/*
 * Counting. A request's series is found through its endpoint's place in the table and a list of the few combinations of
 * verb and scope that this endpoint has seen, so nothing is hashed. Verbs and scopes are constants, compared as pointers.
 */
#include "apiserver/metrics.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/metrics_priv.h"
#include "base/clock.h"
#include "base/mem.h"

static const char no_scope[] = "", resource_scope[] = "resource", namespace_scope[] = "namespace";
static const char cluster_scope[] = "cluster";

static const char *const verbs[] = {
	[REQUEST_GET] = "GET", [REQUEST_LIST] = "LIST", [REQUEST_WATCH] = "WATCH", [REQUEST_CREATE] = "POST",
	[REQUEST_UPDATE] = "PUT", [REQUEST_PATCH] = "PATCH", [REQUEST_DELETE] = "DELETE",
	[REQUEST_DELETE_COLLECTION] = "DELETE", [REQUEST_CONNECT] = "CONNECT",
};

/* Paths that are counted by themselves; a path that is none of them might be anything and is not counted. */
static const char *const paths[] = {
	"/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version",
};

struct metrics *metrics_new(const struct kinds *kinds)
{
	struct metrics *m = mem_zalloc(sizeof *m);
	m->kinds = kinds;
	m->endpoints = mem_zalloc((kinds->n_endpoints + 1) * sizeof *m->endpoints);
	m->stores = mem_zalloc((kinds->n_kinds * METRICS_STORE_MAX + 1) * sizeof *m->stores);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i <= m->kinds->n_endpoints; i++)
		for (struct metrics_series *s = m->endpoints[i], *next; s; s = next) {
			next = s->next;
			free(s);
		}
	for (size_t i = 0; i < m->kinds->n_kinds * METRICS_STORE_MAX; i++)
		free(m->stores[i]);
	free(m->endpoints);
	free(m->stores);
	free(m);
}

static const char *verb_of(const struct request *q)
{
	static const char apply[] = "APPLY", other[] = "other";

	if (q->verb == REQUEST_OTHER) {
		for (size_t i = REQUEST_GET; i < ARRAY_LEN(verbs); i++)
			if (str_eq(q->method, str_of(verbs[i])))
				return verbs[i];
		return str_eq(q->method, STR("HEAD")) ? verbs[REQUEST_GET] : other;
	}
	if (q->verb == REQUEST_PATCH && q->http &&
	    str_starts(http_request_header(q->http, STR("content-type")), STR("application/apply-patch")))
		return apply;
	return verbs[q->verb == REQUEST_DELETE_COLLECTION ? REQUEST_DELETE : q->verb];
}

static const char *scope_of(const struct request *q)
{
	if (!q->is_resource)
		return no_scope;
	if (q->name.n || q->verb == REQUEST_CREATE)
		return resource_scope;
	return q->namespace.n ? namespace_scope : cluster_scope;
}

static const char *path_of(const struct request *q)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		str path = str_of(paths[i]);
		if (str_starts(q->path, path) && (q->path.n == path.n || q->path.p[path.n] == '/'))
			return paths[i];
	}
	return NULL;
}

struct metrics_series *metrics_series(const struct request *q)
{
	struct metrics *m = q->server->metrics;
	const char *path = q->endpoint ? "" : path_of(q);
	if (!m || (!q->endpoint && (q->is_resource || !path)))
		return NULL;

	size_t at = q->endpoint ? (size_t)(q->endpoint - m->kinds->endpoints) : m->kinds->n_endpoints;
	const char *verb = verb_of(q), *scope = scope_of(q);
	for (struct metrics_series *s = m->endpoints[at]; s; s = s->next)
		if (s->verb == verb && s->scope == scope && s->dry_run == q->dry_run && (q->endpoint || s->subresource == path))
			return s;

	struct metrics_series *s = mem_zalloc(sizeof *s);
	*s = (struct metrics_series){
		.next = m->endpoints[at], .endpoint = q->endpoint, .verb = verb, .scope = scope,
		.subresource = path, .dry_run = q->dry_run,
	};
	m->endpoints[at] = s;
	return s;
}

size_t metrics_bucket(const int64_t *limits, size_t n, int64_t value)
{
	size_t i = 0;
	while (i < n && value > limits[i])
		i++;
	return i;
}

static void observe(struct metrics_duration *d, int64_t ns)
{
#define LIMIT(seconds) (int64_t)((seconds) * 1e9),
	static const int64_t limits[] = { METRICS_SECONDS(LIMIT) };
#undef LIMIT
	d->buckets[metrics_bucket(limits, ARRAY_LEN(limits), ns)]++;
	d->sum_ns += ns;
}

void metrics_request(const struct request *q, int status, int64_t ns)
{
	struct metrics_series *s = metrics_series(q);
	if (!s)
		return;
	size_t i = 0;
	while (i < s->n_codes && s->codes[i].status != status)
		i++;
	if (i == s->n_codes) {
		if (i == METRICS_CODES_MAX)
			return;
		s->codes[s->n_codes++].status = status;
	}
	s->codes[i].n++;
	if (q->answer.kind != ANSWER_SENT && q->verb != REQUEST_WATCH)
		observe(&s->duration, ns);
}

void metrics_longrunning(struct metrics_series *s, int change)
{
	if (!s)
		return;
	s->running += change;
	s->lasts = true;
}

void metrics_watch_event(struct metrics_series *s, size_t bytes)
{
#define LIMIT(size) size,
	static const int64_t limits[] = { METRICS_BYTES(LIMIT) };
#undef LIMIT
	if (!s)
		return;
	s->event_buckets[metrics_bucket(limits, ARRAY_LEN(limits), (int64_t)bytes)]++;
	s->event_bytes += bytes;
}

void metrics_store(struct metrics *m, const struct kind *kind, enum metrics_store_op op, bool failed, int64_t ns)
{
	if (!m)
		return;
	struct metrics_store **s = &m->stores[(size_t)(kind - m->kinds->kinds) * METRICS_STORE_MAX + op];
	if (!*s)
		*s = mem_zalloc(sizeof **s);
	(*s)->requests++;
	(*s)->errors += failed;
	observe(&(*s)->duration, ns);
}

enum { TEXT_MAX = 64 << 20 };

int metrics_handle(struct request *q, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	metrics_write(q->server->metrics, q->server, &b);
	int r = buf_check(&b, "the metrics", err);
	if (r < 0)
		return r;
	answer_bytes(q, 200, STR("text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
		     arena_str(q->arena, buf_str(&b)));
	return 0;
}
