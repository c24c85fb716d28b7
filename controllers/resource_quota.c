/*
 * The status of ResourceQuotas: what the objects of a namespace use. Admission raises it as objects are made; here it is counted anew when
 * something goes or shrinks, when a quota is new or limits something else, and every five minutes.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/monitors.h"
#include "controllers/quota_usage.h"

enum {
	ROUNDS = 10,                  /* of monitors.h, of 30 seconds */
	COVERED_MAX = 64,             /* kinds that a quota can be about; there are far fewer */
	CHARGED_MS = 3000,            /* until what admission has charged for is surely seen, or was never made */
};

/* Admission has charged for something that may not be there yet. */
struct charge {
	int64_t at_ns;
	size_t n;
	char key[];
};

struct state {
	struct informer *quotas;
	struct monitors monitors;
	struct map charges;           /* by key of the quota: the last one */
	unsigned round;
};

/* ---- charges ---- */

static bool has_less(struct val used, struct val other)
{
	VAL_EACH_MEMBER(m, other) {
		struct quantity has, had;
		if (quantity_parse(val_as_str(val_member(used, m->key)), &has, NULL) < 0 || quantity_parse(val_as_str(m->val), &had, NULL) < 0)
			continue;
		if (quantity_cmp(has, had) < 0)
			return true;
	}
	return false;
}

static void charged(struct state *s, str key)
{
	struct charge *x = map_get(&s->charges, key);

	if (!x) {
		x = mem_zalloc(sizeof *x + key.n);
		x->n = key.n;
		memcpy(x->key, key.p, key.n);
		(void)map_put(&s->charges, str_span(x->key, x->n), x);
	}
	x->at_ns = clock_now_ns();
}

/* In how many milliseconds a count may say less than the quota does. */
static int64_t too_early_ms(struct state *s, str key)
{
	const struct charge *x = map_get(&s->charges, key);
	return x ? CHARGED_MS - (clock_now_ns() - x->at_ns) / NS_PER_MS : 0;
}

static void note_charge(struct state *s, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (!object)
		free(map_remove(&s->charges, object_key(&a, old->val)));
	else if (!old || has_less(val_get(old->val, status, used), val_get(object->val, status, used)))
		charged(s, object_key(&a, object->val));
}

/* ---- when to count ---- */

static void quota_keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	note_charge(c->state, old, object);
	if (object && old && val_equal(val_get(old->val, spec, hard), val_get(object->val, spec, hard)))
		return;
	controller_key_self(c, old, object);
	if (object) /* and once more with what was let in before it was in force */
		controller_add_after(c, object_key(&a, object->val), CHARGED_MS);
}

/* Of the quotas of the namespace, those that the object has to do with. */
static void changed(struct controller *c, struct monitor *m, struct frozen *old, struct frozen *object)
{
	struct state *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (!old) /* admission has charged for it */
		return;
	INFORMER_EACH(quota, informer_each_indexed(s->quotas, "namespace", val_str(old->val, metadata, namespace))) {
		struct quota_count q;
		quota_count_init(&q, &a, quota->val);
		if (quota_count_covers(&q, m->resource) && (!object || quota_count_differs(&q, m->resource, old->val, object->val)))
			controller_add(c, object_key(&a, quota->val));
	}
}

static void again(struct controller *c)
{
	struct state *s = c->state;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (++s->round % ROUNDS)
		return;
	INFORMER_EACH(quota, informer_each(s->quotas))
		controller_add(c, object_key(&a, quota->val));
}

static bool wanted(const struct served *s)
{
	struct request about = { .group = s->resource->group, .resource = s->resource->name };
	return served_namespaced(s) && served_can(s, VERB_CREATE | VERB_LIST | VERB_WATCH | VERB_DELETE) && quota_evaluator_of(&about);
}

/* ---- counting ---- */

/* What the informers have: the status as it shall be; VAL_EMPTY: as it is. */
static struct val count_seen(struct state *s, struct arena *a, struct val quota)
{
	struct quota_count q;
	quota_count_init(&q, a, quota);
	LIST_EACH(struct monitor, m, &s->monitors.list, link) {
		if (!quota_count_covers(&q, m->resource))
			continue;
		informer_index(m->informer, "namespace", informer_by_namespace);
		INFORMER_EACH(object, informer_each_indexed(m->informer, "namespace", val_str(quota, metadata, namespace)))
			quota_count_add(&q, m->resource, object->val);
	}
	return quota_count_status(&q);
}

/* (suspends) What the server has, which is slower and never behind. Monitors may come and go meanwhile. */
static int count_stored(struct controller *c, struct arena *a, struct val quota, struct val *ret, struct err *err)
{
	struct state *s = c->state;
	const struct resource *covered[COVERED_MAX];
	struct quota_count q;
	size_t n = 0;
	int r = 0;
	quota_count_init(&q, a, quota);
	LIST_EACH(struct monitor, m, &s->monitors.list, link)
		if (n < COVERED_MAX && quota_count_covers(&q, m->resource))
			covered[n++] = m->resource;
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct client_list_options o = { .namespace = val_str(quota, metadata, namespace) };
		CLEANUP(frozen_unrefp) struct frozen *list = NULL;
		r = client_list(c->client, covered[i]->type, &o, &list, err);
		VAL_EACH(object, r == 0 ? val_get(list->val, items) : VAL_EMPTY)
			quota_count_add(&q, covered[i], *object);
	}
	*ret = quota_count_status(&q);
	return r;
}

/*
 * It must not take back what was charged for an object that it cannot see: others would be let in for it. Such an object may not be written
 * yet, or the informer of its kind may be behind that of quotas.
 */
static int sync_quota(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct state *s = c->state;
	int r = monitors_wait(&s->monitors, err);
	struct frozen *frozen = r < 0 ? NULL : informer_get(s->quotas, key);
	if (!frozen)
		return r;
	struct val quota = controller_hold(c, a, frozen), used = val_get(quota, status, used);
	struct val status = count_seen(s, a, quota);
	if (has_less(val_get(status, used), used)) {
		int64_t wait_ms = too_early_ms(s, key);
		if (wait_ms > 0) {
			controller_add_after(c, key, wait_ms);
			return 0;
		}
		if ((r = count_stored(c, a, quota, &status, err)) < 0)
			return r;
	}
	const struct client_write_options o = { .subresource = STR("status"), .reply = TYPE(core_v1, ResourceQuota) };
	if (!val_exists(status))
		return 0;
	r = client_update(c->client, TYPE(core_v1, ResourceQuota), val_with(a, quota, status, status), &o, NULL, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int run(struct controller *c, struct err *err) { return monitors_run(&((struct state *)c->state)->monitors, err); }

static int start(struct controller *c, struct err *err)
{
	struct state *s = mem_zalloc(sizeof *s);
	(void)err;
	c->state = s;
	s->quotas = controller_informer(c, TYPE(core_v1, ResourceQuota));
	informer_index(s->quotas, "namespace", informer_by_namespace);
	s->monitors = (struct monitors){ .c = c, .wanted = wanted, .changed = changed, .again = again };
	map_init(&s->charges);
	monitors_init(&s->monitors);
	controller_watch(c, s->quotas, quota_keys);
	c->sync = sync_quota;
	c->run = run;
	return 0;
}

static void stop(struct controller *c)
{
	struct state *s = c->state;
	struct map_iter it = map_iter(&s->charges);
	for (struct charge *x; (x = map_next(&it, NULL));)
		free(x);
	map_done(&s->charges);
	monitors_done(&s->monitors);
	free(s);
}

const struct controller_kind controller_resource_quota = {
	.name = "resourcequota-controller", .start = start, .workers = 5, .stop = stop,
};
