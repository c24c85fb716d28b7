/*
 * ResourceQuota. What a write uses is charged to the quotas of its namespace (their status.used) before it is stored, and given
 * back when it turns out that it was not.
 *
 * Requests of one namespace are charged by one fiber, as many together as are waiting: it sees which of them fit, one after the
 * other, and then writes each quota once for all of them. Nobody but this fiber charges in this process; that another server
 * has written a quota meanwhile shows in its resourceVersion, and what was planned with it is planned again. So no room
 * is given away twice, and none gets lost. A request that asks for nothing of any quota does not wait.
 *
 * Where a write has an unknown end (the store did not answer), its charge stays: too much is charged rather than too little,
 * until somebody counts anew. The same goes for objects that are removed.
 */
#include "apiserver/admission/resource_quota.h"

#include <stdlib.h>

#include "apiserver/cache.h"
#include "apiserver/inprocess.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { WAIT_MS = 10000, ATTEMPTS_MAX = 100 };

struct plugin {
	struct apiserver *server;
	const struct kind *kind;      /* of ResourceQuotas */
	struct frozen *config;
	struct val limited;           /* limitedResources */
	struct map namespaces;        /* name to struct queue: those in which somebody waits */
	struct fiber_group workers;   /* one for each */
};

struct queue {
	struct plugin *plugin;
	struct list waiting, batch;   /* struct quota_charge */
	char name[];
};

/* Who waits for a charge, on the stack of its request. */
struct waiter {
	struct quota_demand demand;
	struct fiber_cond done;
	bool finished;
	int result;                   /* and how it ended: */
	struct err err;
	struct quota_charge *charge;  /* what was charged, the waiter's own from then on; NULL: nothing */
};

/* One write in the queue; then what was charged for it. */
struct quota_charge {
	struct list link;
	struct arena memory;          /* of the shares */
	struct waiter *waiter;        /* NULL: nobody cares any more */
	bool back;                    /* what is written is to be given back */
	int result;                   /* of the last plan */
	struct quota_share *shares;   /* written ones, and those that are planned */
	size_t n;
};

static struct quota_charge *charge_new(void)
{
	struct quota_charge *c = mem_zalloc(sizeof *c);
	list_init(&c->link);
	arena_init(&c->memory);
	return c;
}

static void charge_free(struct quota_charge *c)
{
	arena_done(&c->memory);
	free(c);
}

static bool charge_is_written(const struct quota_charge *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->shares[i].written)
			return true;
	return false;
}

/* Whoever waits goes on. */
static void charge_tell(struct quota_charge *c, int r, const struct err *err)
{
	struct waiter *w = TAKE(c->waiter);
	if (!w)
		return;
	w->result = r;
	if (r < 0 && err)
		w->err = *err;
	w->finished = true;
	fiber_cond_broadcast(&w->done);
}

/* The end of its way through the queue. */
static void charge_end(struct quota_charge *c, int r, const struct err *err)
{
	struct waiter *w = c->waiter;
	list_remove(&c->link);
	bool kept = w && r >= 0 && !c->back && charge_is_written(c);
	if (kept)
		w->charge = c;
	charge_tell(c, r, err);
	if (!kept)
		charge_free(c);
}

/* ---- quotas ---- */

struct quotas {
	struct quota *list;
	size_t n;
};

static void quotas_done(struct quotas *all)
{
	for (size_t i = 0; i < all->n; i++)
		object_unref(all->list[i].object);
	all->n = 0;
}

/* Those of a namespace, with references; one seek when there are none. */
static struct quotas quotas_load(struct arena *a, const struct kind *kind, str namespace)
{
	struct quotas all = { NULL, 0 };
	size_t room = 0;
	struct omap_iter it;
	struct object *o;
	str key;
	if (!kind || !omap_len(kind->objects))
		return all;
	str prefix = arena_join(a, namespace, STR("/"));
	omap_seek(&it, kind->objects, prefix);
	while ((o = omap_next(&it, &key)) && str_starts(key, prefix)) {
		if (all.n == room) {
			room = room ? 2 * room : 4;
			struct quota *wider = ARENA_ARRAY(a, struct quota, room);
			if (all.n)
				memcpy(wider, all.list, all.n * sizeof *wider);
			all.list = wider;
		}
		all.list[all.n++] = quota_of(a, object_ref(o));
	}
	return all;
}

static struct quota *quotas_find(const struct quotas *all, str uid)
{
	for (size_t i = 0; i < all->n; i++)
		if (str_eq(val_str(all->list[i].object->val, metadata, uid), uid))
			return &all->list[i];
	return NULL;
}

/* ---- planning: what is used when all that fits is charged, and all that is to be given back is ---- */

struct batch {
	struct queue *queue;
	struct arena arena;           /* of one attempt */
	struct quotas quotas;
	bool again;                   /* not all could be written as planned */
};

static void batch_done(struct batch *b)
{
	quotas_done(&b->quotas);
	arena_done(&b->arena);
}

static void plan_back(struct batch *b, struct quota_charge *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct quota *quota = c->shares[i].written ? quotas_find(&b->quotas, c->shares[i].uid) : NULL;
		if (!quota) {
			c->shares[i].written = false; /* never was, or is gone with its quota */
			continue;
		}
		struct quota_amounts had = quota_merge(&b->arena, c->shares[i].amounts, quota->used, QUOTA_MASK);
		quota->used = quota_merge(&b->arena, quota->used, had, QUOTA_LESS);
		quota->changed = true;
	}
}

/* The shares that are written already, and these. */
static void keep_shares(struct quota_charge *c, const struct quota_share *more, size_t n)
{
	struct quota_share *all = ARENA_ARRAY(&c->memory, struct quota_share, c->n + n);
	size_t kept = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->shares[i].written)
			all[kept++] = c->shares[i];
	for (size_t i = 0; i < n; i++)
		all[kept++] = (struct quota_share){
			.name = arena_str(&c->memory, more[i].name),
			.uid = arena_str(&c->memory, more[i].uid),
			.amounts = quota_amounts_copy(&c->memory, more[i].amounts),
		};
	c->shares = all;
	c->n = kept;
}

static void plan_charge(struct batch *b, struct quota_charge *c)
{
	struct quota_demand *d = &c->waiter->demand;
	struct quota_share *shares;
	size_t n;
	d->q->failure = VAL_EMPTY;
	c->result = quota_check(d, b->quotas.list, b->quotas.n, c->shares, c->n, &shares, &n);
	keep_shares(c, shares, c->result < 0 || d->q->dry_run ? 0 : n);
	for (size_t i = 0; i < c->n; i++) {
		struct quota *quota = c->shares[i].written ? NULL : quotas_find(&b->quotas, c->shares[i].uid);
		if (!quota)
			continue;
		quota->used = quota_merge(&b->arena, quota->used, c->shares[i].amounts, QUOTA_ADD);
		quota->changed = true;
	}
}

/* True: everything that wants something gets it. */
static bool plan(struct batch *b)
{
	bool all = true;
	quotas_done(&b->quotas);
	arena_reset(&b->arena);
	b->quotas = quotas_load(&b->arena, b->queue->plugin->kind, str_of(b->queue->name));
	LIST_EACH(struct quota_charge, c, &b->queue->batch, link) {
		c->back = c->back || !c->waiter;
		c->result = 0;
		if (c->back)
			plan_back(b, c);
		else
			plan_charge(b, c);
		all = all && c->result >= 0;
	}
	return all;
}

/* Those that know their end without a write. */
static void end_decided(struct batch *b)
{
	LIST_EACH_SAFE(struct quota_charge, c, &b->queue->batch, link) {
		if (c->result < 0 && charge_is_written(c)) {
			charge_tell(c, c->result, NULL);
			c->back = true;
			b->again = true;
		} else if (c->result < 0 || !c->n || (c->back && !charge_is_written(c))) {
			charge_end(c, c->result, NULL);
		}
	}
}

/* ---- writing ---- */

struct change {
	const struct quota *quota;
	bool conflict;
};

static struct val change(struct arena *a, struct val live, void *arg)
{
	struct change *c = arg;
	struct val before = c->quota->object->val, used = val_get(live, status, used);
	c->conflict = !str_eq(val_str(live, metadata, resourceVersion), val_str(before, metadata, resourceVersion));
	if (c->conflict)
		return VAL_EMPTY;
	struct quota_amounts was = quota_amounts_of(a, used);
	for (size_t i = 0; i < c->quota->used.n; i++) {
		const struct quota_amount *now = &c->quota->used.list[i], *then = quota_amount_find(was, now->name);
		char text[QUANTITY_TEXT_MAX];
		if (!then || quantity_cmp(now->q, then->q))
			used = val_put(a, used, atom_make(a, now->name), val_of_str(arena_str(a, quantity_format(now->q, text))));
	}
	return val_with(a, live, used, status, used);
}

/* 1: written; 0: it is no longer what it was; or an error. */
static int write_quota(struct batch *b, const struct quota *quota, struct err *err)
{
	const struct inprocess w = {
		.server = b->queue->plugin->server,
		.resource = STR("resourcequotas"),
		.subresource = STR("status"),
		.manager = STR("kube-apiserver"),
	};
	struct change c = { .quota = quota };
	int r = inprocess_update(&w, str_of(b->queue->name), quota->name, change, &c, err);
	return r == -ERR_NOT_FOUND ? 0 : r < 0 ? r : !c.conflict;
}

/* One quota was written, or could not be: for each that has a share of it. */
static void note(struct quota_charge *c, str uid, int r, const struct err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct quota_share *share = &c->shares[i];
		if (!str_eq(share->uid, uid) || share->written != c->back)
			continue;
		if (r < 0 && c->back)
			log_warn("ignoring a quota that cannot be given back", KV("quota", share->name), KV("error", err));
		share->written = !c->back && r > 0;
		if (r < 0 && !c->back) {
			charge_tell(c, r, err);
			c->back = true;
			return;
		}
	}
}

static void write_all(struct batch *b)
{
	for (size_t i = 0; i < b->quotas.n; i++) {
		const struct quota *quota = &b->quotas.list[i];
		struct err err = ERR_INIT;
		int r = quota->changed ? write_quota(b, quota, &err) : 0;
		b->again = b->again || (quota->changed && r == 0);
		str uid = val_str(quota->object->val, metadata, uid);
		LIST_EACH(struct quota_charge, c, &b->queue->batch, link)
			if (r != 0)
				note(c, uid, r, &err);
		if (r < 0)
			return; /* the others are planned again, without those that this has ended */
	}
}

/* Those that have all that they want. */
static void end_written(struct batch *b)
{
	LIST_EACH_SAFE(struct quota_charge, c, &b->queue->batch, link) {
		bool open = false;
		c->back = c->back || !c->waiter;
		for (size_t i = 0; i < c->n; i++)
			open = open || c->shares[i].written == c->back;
		if (!open)
			charge_end(c, 0, NULL);
		else
			b->again = true;
	}
}

/* One attempt; with what others have written up to now, if somebody would be refused. */
static int attempt(struct batch *b, struct err *err)
{
	const struct kind *kind = b->queue->plugin->kind;
	int r = 0;
	b->again = false;
	if (!plan(b) && kind) {
		int64_t seen = kind->changed;
		r = cache_wait_current(b->queue->plugin->server->cache, err);
		if (r == 0 && kind->changed != seen)
			(void)plan(b);
	}
	if (r < 0)
		return r;
	end_decided(b);
	write_all(b);
	end_written(b);
	return b->again ? cache_wait_current(b->queue->plugin->server->cache, err) : 0;
}

static void batch_run(struct queue *queue)
{
	CLEANUP(batch_done) struct batch b = { .queue = queue };
	struct err err = ERR_INIT;
	int r = 0;
	arena_init(&b.arena);
	for (unsigned i = 0; i < ATTEMPTS_MAX && r == 0 && !list_empty(&queue->batch); i++)
		r = attempt(&b, &err);
	if (r == 0 && !list_empty(&queue->batch))
		r = err_set(&err, ERR_CONFLICT, "quotas of namespace %s change too fast", queue->name);
	LIST_EACH_SAFE(struct quota_charge, c, &queue->batch, link)
		charge_end(c, r, &err);
}

/* ---- the queue ---- */

static int work(void *arg)
{
	struct queue *queue = arg;
	while (!list_empty(&queue->waiting)) {
		LIST_EACH_SAFE(struct quota_charge, c, &queue->waiting, link) {
			list_remove(&c->link);
			list_add(&queue->batch, &c->link);
		}
		batch_run(queue);
	}
	map_remove(&queue->plugin->namespaces, str_of(queue->name));
	free(queue);
	return 0;
}

static int enqueue(struct plugin *p, str namespace, struct quota_charge *c, struct err *err)
{
	struct queue *queue = map_get(&p->namespaces, namespace);
	if (!queue) {
		queue = mem_zalloc(sizeof *queue + namespace.n + 1);
		queue->plugin = p;
		list_init(&queue->waiting);
		list_init(&queue->batch);
		memcpy(queue->name, namespace.p, namespace.n);
		int r = fiber_group_spawn(&p->workers, work, queue, err, "quota %s", queue->name);
		if (r < 0) {
			free(queue);
			return r;
		}
		map_put(&p->namespaces, str_of(queue->name), queue);
	}
	list_add(&queue->waiting, &c->link);
	return 0;
}

/* (suspends) Until its charge is through. It is not its own any more then, whatever the result. */
static int wait_for(struct waiter *w, struct quota_charge *c, struct err *err)
{
	DEADLINE_SCOPE(WAIT_MS);
	int r = 0;
	while (!w->finished && r == 0)
		r = fiber_cond_wait(&w->done, err);
	if (w->finished)
		return 0;
	c->waiter = NULL;
	return r;
}

static int charge(struct plugin *p, struct waiter *w, struct err *err)
{
	struct request *q = w->demand.q;
	struct quota_charge *c = charge_new();
	c->waiter = w;
	q->failure = VAL_EMPTY;
	fiber_cond_init(&w->done, "quota");
	int r = enqueue(p, q->namespace, c, err);
	if (r < 0) {
		charge_free(c);
		return r;
	}
	r = wait_for(w, c, err);
	if (r == -ERR_TIMEOUT && fiber_check(NULL) == 0)
		return fail_internal(q, "resource quota evaluation timed out");
	if (r < 0)
		return r;
	if (w->result < 0 && err)
		*err = w->err;
	q->charged = w->charge;
	return w->result;
}

void admission_finish(struct request *q, bool kept)
{
	struct quota_charge *c = TAKE(q->charged);
	struct err err = ERR_INIT;
	if (!c)
		return;
	if (kept) {
		charge_free(c);
		return;
	}
	struct waiter w = { .finished = false };
	fiber_cond_init(&w.done, "quota");
	c->waiter = &w;
	c->back = true;
	c->result = 0;
	if (enqueue(admission_state(q->server, &admission_resource_quota), q->namespace, c, &err) == 0) {
		(void)wait_for(&w, c, NULL);
		return;
	}
	log_warn("ignoring a quota that cannot be given back", KV("namespace", q->namespace), KV("error", &err));
	charge_free(c);
}

/* ---- the plugin ---- */

static int validate(struct request *q, struct err *err)
{
	struct plugin *p = admission_state(q->server, &admission_resource_quota);
	enum admission_operation op = admission_operation(q);
	if (!q->namespace.n || !q->endpoint || !(q->endpoint->main->resource->flags & RESOURCE_NAMESPACED) ||
	    (op != ADMISSION_CREATE && op != ADMISSION_UPDATE))
		return 0;
	const struct quota_evaluator *e = quota_evaluator_of(q);
	if (!e || !e->handles(q))
		return 0;
	CLEANUP(quotas_done) struct quotas all = quotas_load(q->arena, p->kind, q->namespace);
	if (!all.n && !val_len(p->limited))
		return 0;
	struct waiter w = { .finished = false };
	struct quota_share *shares;
	size_t n;
	quota_demand_init(&w.demand, q, e, p->limited);
	/* what is known of the quotas here and now is enough to see that nothing is asked of them */
	if (quota_check(&w.demand, all.list, all.n, NULL, 0, &shares, &n) == 0 && (!n || q->dry_run))
		return 0;
	return charge(p, &w, err);
}

static bool is_config(struct val config)
{
	str version = val_str(config, apiVersion), kind = val_str(config, kind);
	if (str_eq(version, STR("apiserver.config.k8s.io/v1")))
		return str_eq(kind, STR("ResourceQuotaConfiguration"));
	return str_eq(kind, STR("Configuration")) && (str_eq(version, STR("resourcequota.admission.k8s.io/v1beta1")) ||
						      str_eq(version, STR("resourcequota.admission.k8s.io/v1alpha1")));
}

static int check_config(struct val config, struct err *err)
{
	size_t i = 0;
	if (!val_exists(config))
		return 0;
	if (!is_config(config))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(val_str(config, kind)), STR_ARG(val_str(config, apiVersion)));
	VAL_EACH(l, val_get(config, limitedResources)) {
		if (!val_str(*l, resource).n)
			return err_set(err, ERR_BAD_REQUEST, "limitedResources[%zu].resource: Required value", i);
		i++;
	}
	return 0;
}

static int quota_open(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	int r = check_config(config, err);
	if (r < 0)
		return r;
	struct plugin *p = mem_zalloc(sizeof *p);
	p->server = s;
	p->kind = kinds_find(&s->kinds, STR(""), STR("resourcequotas"));
	p->config = val_freeze(config);
	p->limited = val_get(p->config->val, limitedResources);
	map_init(&p->namespaces);
	fiber_group_init(&p->workers);
	*ret_state = p;
	return 0;
}

static void quota_close(void *state)
{
	struct plugin *p = state;
	fiber_group_done(&p->workers);
	map_done(&p->namespaces);
	frozen_unref(p->config);
	free(p);
}

const struct admission_plugin admission_resource_quota = {
	.name = "ResourceQuota", .validate = validate, .open = quota_open, .close = quota_close,
};
