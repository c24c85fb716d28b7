/*
 * How wide requests are, as Kubernetes estimates it: what lists will have in memory at once, and what writes cause after they are
 * done, where many watch. Everything else is one seat wide.
 */
#include <math.h>
#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/fairness/fairness_priv.h"
#include "base/clock.h"
#include "base/mem.h"

enum {
	BYTES_PER_SEAT = 100000,
	FROM_CACHE_BYTES = 1000000,   /* lists from the cache have no more than this in memory at once */
	LIST_SEATS_MAX = 100,
	WATCHES_PER_SEAT = 10,
	WRITE_SEATS_MAX = 10,
	SAMPLES = 16, SAMPLE_S = 60,
};

#define EVENT_NS (5 * NS_PER_MS) /* that one event keeps the seats of its watches busy */

/* ---- lists ---- */

/* From a few objects; values as they are stored are about half as long as they are in memory. */
static unsigned object_size(struct kind_load *load, const struct kind *kind)
{
	int64_t now = clock_now_ns();
	if (load->size && now < load->size_until_ns)
		return load->size;
	struct omap_iter it;
	size_t total = 0, n = 0;
	omap_seek(&it, kind->objects, STR_NONE);
	for (const struct object *o; n < SAMPLES && (o = omap_next(&it, NULL)); n++)
		total += o->frozen->size / 2;
	load->size = n ? (unsigned)MIN(total / n + 1, (size_t)INT32_MAX) : 0;
	load->size_until_ns = now + SAMPLE_S * NS_PER_S;
	return load->size;
}

/* A list that can only have one object in it. */
static bool matches_one(const struct request *q)
{
	struct field_selector fields;
	str text = request_query(q, STR("fieldSelector")), name;
	if (q->name.n)
		return true;
	return text.n && str_find(text, STR("metadata.name")) >= 0 && field_selector_parse(q->arena, text, &fields, NULL) >= 0 &&
	       field_selector_requires(&fields, STR("metadata.name"), &name);
}

/* Whether Kubernetes would not have to ask its store. */
static bool from_cache(const struct request *q, str revision, int64_t limit)
{
	str match = request_query(q, STR("resourceVersionMatch"));
	if (q->verb == REQUEST_WATCH || str_eq(match, STR("NotOlderThan")))
		return true;
	bool legacy_exact = limit > 0 && revision.n && !str_eq(revision, STR("0"));
	return !match.n && !request_query(q, STR("continue")).n && !legacy_exact;
}

static int64_t list_bytes(struct kind_load *load, const struct kind *kind, const struct request *q, str revision)
{
	int64_t stored = (int64_t)omap_len(kind->objects), limit = 0, loaded = stored;
	(void)str_to_i64(request_query(q, STR("limit")), &limit);
	if (limit > 0)
		loaded = MIN(limit, stored);
	bool cached = from_cache(q, revision, limit);
	if (matches_one(q))
		loaded = 1;
	else if (!cached && (request_query(q, STR("fieldSelector")).n || request_query(q, STR("labelSelector")).n))
		loaded = MAX(loaded, stored / 2);
	int64_t bytes = loaded * object_size(load, kind);
	return cached ? MIN(bytes, (int64_t)FROM_CACHE_BYTES) : bytes;
}

static unsigned list_seats(struct kind_load *load, const struct kind *kind, const struct request *q, unsigned max_seats)
{
	str revision = request_query(q, STR("resourceVersion"));
	if (q->verb == REQUEST_WATCH && !request_query_bool(q, STR("sendInitialEvents")) && revision.n &&
	    !str_eq(revision, STR("0")))
		return 1; /* it begins with nothing */
	int64_t seats = (list_bytes(load, kind, q, revision) + BYTES_PER_SEAT - 1) / BYTES_PER_SEAT;
	int64_t most = max_seats && max_seats < LIST_SEATS_MAX ? max_seats : LIST_SEATS_MAX;
	return seats < 1 ? 1 : (unsigned)MIN(seats, most);
}

/* ---- writes ---- */

struct fairness_watch {
	struct kind_load *load;
	unsigned n;
	bool everywhere;
	str key;
	char text[];
};

static unsigned watches_of(const struct kind_load *load, struct arena *a, str namespace, str name)
{
	const struct fairness_watch *w = map_get(&load->narrower, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)));
	return w ? w->n : 0;
}

/* Who will hear of the write: watches of the kind, of the namespace, and of the object. */
static unsigned watchers(const struct kind_load *load, const struct request *q)
{
	unsigned n = load->everywhere;
	if (!map_len(&load->narrower))
		return n;
	if (q->namespace.n)
		n += watches_of(load, q->arena, q->namespace, STR_NONE);
	if (q->name.n)
		n += watches_of(load, q->arena, q->namespace, q->name);
	return n;
}

static struct seat_work write_work(const struct kind_load *load, const struct request *q, unsigned max_seats)
{
	struct seat_work work = { .initial = 1 };
	bool token = str_eq(q->resource, STR("serviceaccounts")) && str_eq(q->subresource, STR("token"));
	unsigned n = token ? 0 : watchers(load, q);
	if (n < WATCHES_PER_SEAT)
		return work;
	unsigned most = max_seats && max_seats < WRITE_SEATS_MAX ? max_seats : WRITE_SEATS_MAX;
	unsigned seats = (n + WATCHES_PER_SEAT - 1) / WATCHES_PER_SEAT;
	work.final = MIN(seats, most);
	work.after_ns = EVENT_NS * seats / work.final; /* as much work, if narrower */
	return work;
}

struct seat_work estimate_work(struct flow_control *f, const struct request *q, unsigned max_seats)
{
	struct seat_work work = { .initial = 1 };
	if (q->verb <= REQUEST_GET || q->verb > REQUEST_DELETE)
		return work;
	const struct kinds *kinds = &q->server->kinds;
	const struct endpoint *e = kinds_endpoint(kinds, q->group, q->version, q->resource, STR_NONE);
	if (!e || !e->kind || !e->kind->objects)
		return work;
	struct kind_load *load = &f->loads[e->kind - kinds->kinds];
	if (q->verb != REQUEST_LIST && q->verb != REQUEST_WATCH)
		return write_work(load, q, max_seats);
	work.initial = list_seats(load, e->kind, q, max_seats);
	return work;
}

/* ---- watches ---- */

struct fairness_watch *fairness_watch_begin(struct request *q, str name, const struct field_selector *fields)
{
	struct flow_control *f = q->server->flow;
	str node;
	if (!f || !f->shares)
		return NULL;
	/* these are found by an index: nearly no event is for them */
	if (!q->group.n && str_eq(q->resource, STR("pods")) && field_selector_requires(fields, STR("spec.nodeName"), &node) && node.n)
		return NULL;
	struct kind_load *load = &f->loads[q->endpoint->kind - q->server->kinds.kinds];
	bool everywhere = !q->namespace.n && !name.n;
	load->everywhere += everywhere;
	str key = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(q->namespace), STR_ARG(name));
	struct fairness_watch *w = everywhere ? NULL : map_get(&load->narrower, key);
	if (!w) {
		w = mem_zalloc(sizeof *w + key.n);
		w->load = load;
		w->everywhere = everywhere;
		w->key = str_span(memcpy(w->text, key.p, key.n), key.n);
		if (!everywhere)
			map_put(&load->narrower, w->key, w);
	}
	w->n++;
	return w;
}

void fairness_watch_end(struct fairness_watch *w)
{
	if (!w)
		return;
	w->load->everywhere -= w->everywhere;
	if (--w->n)
		return;
	if (!w->everywhere)
		map_remove(&w->load->narrower, w->key);
	free(w);
}
