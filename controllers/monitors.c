#include "controllers/monitors.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { PERIOD_MS = 30000, SYNC_POLL_MS = 100 };

void monitors_init(struct monitors *all)
{
	discovery_init(&all->discovery);
	list_init(&all->list);
	fiber_cond_init(&all->ready_changed, "the informers of all kinds");
	all->ready = false;
}

/* ---- one ---- */

static void on_change(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct monitor *m = CONTAINER_OF(l, struct monitor, listener);
	m->all->changed(m->all->c, m, old, object);
}

static void monitor_new(struct monitors *all, const struct resource *r)
{
	size_t n = r->group.n + 1 + r->version.n;
	struct monitor *m = mem_zalloc(sizeof *m + n);
	char *text = (char *)(m + 1);
	*m = (struct monitor){ .all = all, .resource = r, .found = true, .listener = { .changed = on_change }, .api_version = r->version };
	if (r->group.n) {
		memcpy(text, r->group.p, r->group.n);
		text[r->group.n] = '/';
		memcpy(text + r->group.n + 1, r->version.p, r->version.n);
		m->api_version = str_span(text, n);
	}
	list_add(&all->list, &m->link);
	m->informer = controller_informer(all->c, r->type);
	informer_listen(m->informer, &m->listener);
}

static void monitor_free(struct monitor *m)
{
	informer_unlisten(&m->listener);
	list_remove(&m->link);
	free(m);
}

void monitors_done(struct monitors *all)
{
	LIST_EACH_SAFE(struct monitor, m, &all->list, link)
		monitor_free(m);
	discovery_done(&all->discovery);
}

/* ---- following ---- */

static struct monitor *find(struct monitors *all, const struct resource *r)
{
	LIST_EACH(struct monitor, m, &all->list, link)
		if (m->resource == r)
			return m;
	return NULL;
}

/* The informer of a kind that is no longer served stays: others may use it. */
static void follow(struct monitors *all)
{
	LIST_EACH(struct monitor, m, &all->list, link)
		m->found = false;
	for (size_t i = 0; i < all->discovery.n; i++) {
		const struct served *s = &all->discovery.all[i];
		struct monitor *m = s->preferred && all->wanted(s) ? find(all, s->resource) : NULL;
		if (m)
			m->found = true;
		else if (s->preferred && all->wanted(s))
			monitor_new(all, s->resource);
	}
	LIST_EACH_SAFE(struct monitor, m, &all->list, link)
		if (!m->found)
			monitor_free(m);
}

static bool all_synced(const struct monitors *all)
{
	LIST_EACH(struct monitor, m, &all->list, link)
		if (!informer_synced(m->informer))
			return false;
	return !list_empty(&all->list);
}

/* (suspends) Until all has been seen once, but not for longer than until the next discovery. */
static int wait_synced(struct monitors *all, struct err *err)
{
	int64_t end_ns = clock_now_ns() + PERIOD_MS * NS_PER_MS;
	while (!all_synced(all) && clock_now_ns() < end_ns) {
		int r = fiber_sleep_ms(SYNC_POLL_MS, err);
		if (r < 0)
			return r;
	}
	if (!all_synced(all))
		log_warn("not all resource monitors could be synced, proceeding anyways", KV("controller", all->c->kind->name));
	all->ready = true;
	fiber_cond_broadcast(&all->ready_changed);
	return 0;
}

/* (suspends) Only a cancel is an error. */
static int discover(struct monitors *all, struct err *err)
{
	struct err why = ERR_INIT;
	int r = discovery_refresh(&all->discovery, all->c->client, &why);
	if (r == -ERR_CANCELED)
		return err_set(err, why.code, "%s", why.msg);
	if (r < 0) {
		log_warn("discovery failed, trying again", KV("controller", all->c->kind->name), KV("err", &why));
		return 0;
	}
	if (all->discovery.n_failed)
		log_warn("some groups could not be discovered", KV("controller", all->c->kind->name), KV("err", str_of(all->discovery.failure)));
	follow(all);
	return all->ready ? 0 : wait_synced(all, err);
}

int monitors_run(struct monitors *all, struct err *err)
{
	for (;;) {
		int r = discover(all, err);
		if (r < 0)
			return r;
		if (all->again)
			all->again(all->c);
		/* Nothing works before the first discovery has. */
		if ((r = fiber_sleep_ms(all->ready ? PERIOD_MS : 1000, err)) < 0)
			return r;
	}
}

int monitors_wait(struct monitors *all, struct err *err)
{
	while (!all->ready) {
		int r = fiber_cond_wait(&all->ready_changed, err);
		if (r < 0)
			return r;
	}
	return 0;
}
