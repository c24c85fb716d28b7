/*
 * EventRateLimit: who tells too much is not heard for a while. Each limit has buckets (one for the server, or one per
 * namespace, user, or source and object) that hold `burst` events and get `qps` of them back per second; those that were not
 * used for longest are forgotten when there are too many.
 */
#include <stdlib.h>

#include "apiserver/admission/plugins.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { BUCKETS_DEFAULT = 4096 };

struct bucket {
	struct list link;             /* the least recently used first */
	double events;                /* that it holds now */
	int64_t filled_ns;
	str key;                      /* in text */
	char text[];
};

struct limit {
	str type;
	str (*key_of)(const struct request *q);
	double qps, burst;
	size_t buckets_max;
	struct map by_key;
	struct list buckets;
};

struct rate_limits {
	struct frozen *config;
	size_t n;
	struct limit limits[];
};

/* ---- keys ---- */

static str key_of_server(const struct request *q)
{
	(void)q;
	return STR("");
}

static str key_of_namespace(const struct request *q) { return q->namespace; }
static str key_of_user(const struct request *q) { return q->user.name; }

static str key_of_source_and_object(const struct request *q)
{
	struct val source = val_get(q->object, source), about = val_get(q->object, involvedObject);
	return arena_printf(q->arena, STR_FMT STR_FMT STR_FMT STR_FMT STR_FMT STR_FMT STR_FMT, STR_ARG(val_str(source, component)),
			    STR_ARG(val_str(source, host)), STR_ARG(val_str(about, kind)), STR_ARG(val_str(about, namespace)),
			    STR_ARG(val_str(about, name)), STR_ARG(val_str(about, uid)), STR_ARG(val_str(about, apiVersion)));
}

static const struct {
	str type;
	str (*key_of)(const struct request *q);
} types[] = {
	{ STR_INIT("Namespace"), key_of_namespace },
	{ STR_INIT("Server"), key_of_server },
	{ STR_INIT("SourceAndObject"), key_of_source_and_object },
	{ STR_INIT("User"), key_of_user },
};

/* ---- buckets ---- */

static struct bucket *bucket_of(struct limit *l, str key)
{
	struct bucket *b = map_get(&l->by_key, key);
	if (b) {
		list_remove(&b->link);
		list_add(&l->buckets, &b->link);
		return b;
	}
	if (map_len(&l->by_key) >= l->buckets_max) {
		struct bucket *oldest = LIST_FIRST(struct bucket, &l->buckets, link);
		list_remove(&oldest->link);
		map_remove(&l->by_key, oldest->key);
		free(oldest);
	}
	b = mem_alloc(sizeof *b + key.n);
	if (key.n)
		memcpy(b->text, key.p, key.n);
	b->key = str_span(b->text, key.n);
	b->events = l->burst;
	b->filled_ns = clock_now_ns();
	list_init(&b->link);
	list_add(&l->buckets, &b->link);
	map_put(&l->by_key, b->key, b);
	return b;
}

static bool limit_takes(struct limit *l, str key)
{
	struct bucket *b = bucket_of(l, key);
	int64_t now_ns = clock_now_ns();
	double events = b->events + (double)(now_ns - b->filled_ns) * 1e-9 * l->qps;
	if (events > l->burst)
		events = l->burst;
	if (events < 1)
		return false;
	b->events = events - 1;
	b->filled_ns = now_ns;
	return true;
}

/* ---- the plugin ---- */

static int refuse(struct request *q, str why, unsigned n)
{
	return request_fail(q, ERR_TOO_MANY_REQUESTS, VAL_EMPTY, "Too many requests: %s" STR_FMT "%s", n > 1 ? "[" : "", STR_ARG(why),
			    n > 1 ? "]" : "");
}

static int rate_validate(struct request *q, struct err *err)
{
	struct rate_limits *all = admission_state(q->server, &admission_event_rate_limit);
	CLEANUP(buf_done) struct buf why = BUF_INIT(8 << 20);
	unsigned n = 0;
	(void)err;
	if (!admits(q, STR(""), STR("events")) || q->dry_run || !val_exists(q->object))
		return 0;
	for (size_t i = 0; i < all->n; i++) { /* each is asked, also when another has refused already */
		str key = all->limits[i].key_of(q);
		if (limit_takes(&all->limits[i], key))
			continue;
		str text = arena_printf(q->arena, "limit reached on type " STR_FMT " for key " STR_FMT, STR_ARG(all->limits[i].type),
					STR_ARG(key));
		if (str_find(buf_str(&why), text) < 0)
			buf_addf(&why, "%s" STR_FMT, n++ ? ", " : "", STR_ARG(text));
	}
	return n ? refuse(q, buf_str(&why), n) : 0;
}

/* ---- configuration ---- */

static void check_limit(struct field_errors *e, const struct field_path *at, struct val limit)
{
	str supported[ARRAY_LEN(types) + 1] = { 0 }, type = val_str(limit, type);
	bool known = false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		supported[i] = types[i].type;
		known = known || str_eq(type, types[i].type);
	}
	if (!known)
		field_not_supported(e, FIELD(at, "type"), val_of_str(type), supported);
	if (val_int(limit, burst) <= 0)
		field_invalid(e, FIELD(at, "burst"), val_of_int(val_int(limit, burst)), "must be positive");
	if (val_int(limit, qps) <= 0)
		field_invalid(e, FIELD(at, "qps"), val_of_int(val_int(limit, qps)), "must be positive");
	if (!str_eq(type, STR("Server")) && val_int(limit, cacheSize) < 0)
		field_invalid(e, FIELD(at, "cacheSize"), val_get(limit, cacheSize), "must not be negative");
}

static int check_config(struct val config, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val limits = val_get(config, limits);
	struct field_errors e;
	if (val_exists(config) && (!str_eq(val_str(config, apiVersion), STR("eventratelimit.admission.k8s.io/v1alpha1")) ||
				   !str_eq(val_str(config, kind), STR("Configuration"))))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(val_str(config, kind)), STR_ARG(val_str(config, apiVersion)));
	field_errors_init(&e, &a);
	if (!val_len(limits))
		field_invalid(&e, FIELD(NULL, "limits"), VAL_NULL_VALUE, "must not be empty");
	for (size_t i = 0; i < val_len(limits); i++)
		check_limit(&e, FIELD_INDEX(FIELD(NULL, "limits"), i), val_at(limits, i));
	return e.n ? err_set(err, ERR_BAD_REQUEST, STR_FMT, STR_ARG(field_errors_plain(&e))) : 0;
}

static void limit_init(struct limit *l, struct val config)
{
	int64_t size = val_int(config, cacheSize);
	l->type = val_str(config, type);
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(l->type, types[i].type))
			l->key_of = types[i].key_of;
	l->qps = (double)val_int(config, qps);
	l->burst = (double)val_int(config, burst);
	l->buckets_max = size > 0 ? (size_t)size : BUCKETS_DEFAULT;
	map_init(&l->by_key);
	list_init(&l->buckets);
}

static int rate_open(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	(void)s;
	int r = check_config(config, err);
	if (r < 0)
		return r;
	struct frozen *frozen = val_freeze(config);
	struct val limits = val_get(frozen->val, limits);
	struct rate_limits *all = mem_zalloc(sizeof *all + val_len(limits) * sizeof all->limits[0]);
	all->config = frozen;
	all->n = val_len(limits);
	for (size_t i = 0; i < all->n; i++)
		limit_init(&all->limits[i], val_at(limits, i));
	*ret_state = all;
	return 0;
}

static void rate_close(void *state)
{
	struct rate_limits *all = state;
	for (size_t i = 0; i < all->n; i++) {
		LIST_EACH_SAFE(struct bucket, b, &all->limits[i].buckets, link)
			free(b);
		map_done(&all->limits[i].by_key);
	}
	frozen_unref(all->config);
	free(all);
}

const struct admission_plugin admission_event_rate_limit = {
	.name = "EventRateLimit", .optional = true, .validate = rate_validate, .open = rate_open, .close = rate_close,
};
