/* Reading one object, and what all reads have in common. */
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/read.h"
#include "codec/atoms.h"

/* How long a reader waits for a revision that the cache does not have yet, and is told to wait before it tries again. */
enum { FRESH_TIMEOUT_MS = 3000, RETRY_S = 1 };

int read_revision(str text, int64_t *ret, struct err *err)
{
	uint64_t v = 0;
	bool digits = true, fits = true;
	for (size_t i = 0; i < text.n; i++) {
		unsigned d = (unsigned char)text.p[i] - (unsigned)'0';
		digits = digits && d <= 9;
		fits = fits && !__builtin_mul_overflow(v, 10, &v) && !__builtin_add_overflow(v, d, &v);
	}
	*ret = (int64_t)MIN(v, (uint64_t)INT64_MAX);
	if (digits && fits)
		return 0;
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(1 << 16);
	buf_add_quoted(&quoted, text);
	return err_set(err, ERR_BAD_REQUEST,
		       "resourceVersion: Invalid value: " STR_FMT ": strconv.ParseUint: parsing " STR_FMT ": %s",
		       STR_ARG(buf_str(&quoted)), STR_ARG(buf_str(&quoted)), digits ? "value out of range" : "invalid syntax");
}

static int fail_too_large(struct request *q, int64_t revision)
{
	struct val cause = OBJECT(q->arena, F(reason, VAL_LIT("ResourceVersionTooLarge")),
				  F(message, VAL_LIT("Too large resource version")));
	struct val details = OBJECT(q->arena, F(causes, LIST(q->arena, cause)), F(retryAfterSeconds, val_of_int(RETRY_S)));
	return request_fail(q, ERR_TIMEOUT, details, "Timeout: Too large resource version: %lld, current: %lld",
			    (long long)revision, (long long)cache_revision(q->server->cache));
}

int read_wait(struct request *q, int64_t revision, bool current, struct err *err)
{
	struct cache *cache = q->server->cache;
	if (!revision)
		return current ? cache_wait_current(cache, err) : 0;
	if (cache_revision(cache) >= revision)
		return 0;
	int r = cache_wait(cache, revision, FRESH_TIMEOUT_MS, err);
	return r == -ERR_TIMEOUT && fiber_check(NULL) == 0 ? fail_too_large(q, revision) : r;
}

struct val read_expired(struct arena *a, str message)
{
	return status_of(a, 410, STR("Expired"), VAL_EMPTY, message);
}

int read_get(struct request *q, struct err *err)
{
	const struct kind *kind = q->endpoint->kind;
	str text = request_query(q, STR("resourceVersion"));
	int64_t revision;
	int r = read_revision(text, &revision, err);
	if (r < 0)
		return request_fail_as(q, ERR_INTERNAL, 500, STR_NONE, VAL_EMPTY, STR_FMT, STR_ARG(err_str(err)));
	r = read_wait(q, revision, !text.n, err);
	if (r < 0)
		return r;
	str key = q->name;
	if (kind->namespaced) {
		char *p = arena_alloc(q->arena, q->namespace.n + 1 + q->name.n, 1);
		memcpy(p, q->namespace.p, q->namespace.n);
		p[q->namespace.n] = '/';
		memcpy(p + q->namespace.n + 1, q->name.p, q->name.n);
		key = str_span(p, q->namespace.n + 1 + q->name.n);
	}
	struct object *o = cache_get(kind, key);
	if (!o)
		return fail_not_found(q, q->group, q->resource, q->name);
	answer_object(q, 200, object_ref(o));
	return 0;
}
