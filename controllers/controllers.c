/*
 * All controllers of a process. They share informers, which use the manager's own client, and have a client, a recorder and a queue each. No
 * worker begins before every informer has seen everything once: what is not there would look as if it were gone.
 */
#include "controllers/controllers.h"

#include <stdlib.h>

#include "base/fiber.h"
#include "base/mem.h"
#include "controllers/controller_priv.h"

enum { WORKERS = 5 };

static bool is_enabled(const struct controllers_options *o, const struct controller_kind *kind)
{
	bool all = !o->enabled;

	for (const char *const *e = o->enabled; e && *e; e++) {
		bool off = (*e)[0] == '-';
		if (controller_is_called(kind, *e + off))
			return !off;
		all |= strcmp(*e, "*") == 0;
	}
	return all && !kind->off;
}

struct manager {
	const struct controllers_options *options;
	struct informers *informers;
	struct controller **all;
	size_t n;
	struct fiber_cond ended;       /* a part has */
	int result;
	struct err err;
};

/* One fiber: a controller's queue, or what it runs beside that. */
struct part {
	struct manager *manager;
	struct controller *controller;
	bool beside;
};

static int run_part(void *arg)
{
	struct part p = *(struct part *)arg;
	struct controller *c = p.controller;
	struct err err = ERR_INIT;

	free(arg);
	int r = p.beside ? c->run(c, &err) : work_queue_run(c->queue, c->kind->workers ? c->kind->workers : WORKERS, controller_sync_key, c, &err);
	if (r < 0 && r != -ERR_CANCELED) {
		p.manager->result = err_wrap(&err, r, "%s", c->kind->name);
		p.manager->err = err;
		fiber_cond_broadcast(&p.manager->ended);
	}
	return r;
}

static int spawn(struct manager *m, struct fiber_group *group, struct controller *c, bool beside, struct err *err)
{
	struct part *p = mem_alloc(sizeof *p);

	*p = (struct part){ m, c, beside };
	int r = fiber_group_spawn(group, run_part, p, err, "%s", c->kind->name);
	if (r < 0)
		free(p);
	return r;
}

/* (suspends) */
static void controller_free(struct controller *c)
{
	controller_unwatch(c);
	if (c->kind->stop && c->state)
		c->kind->stop(c);
	recorder_free(c->recorder);
	work_queue_free(c->queue);
	free(c);
}

static int controller_make(struct manager *m, const struct controller_kind *kind, struct err *err)
{
	const struct controllers_options *o = m->options;
	const char *account = kind->account ? kind->account : kind->name, *source = kind->source ? kind->source : kind->name;
	struct controller *c = mem_zalloc(sizeof *c);
	int r;

	*c = (struct controller){ .kind = kind, .o = o, .informers = m->informers, .client = o->client_for(o->arg, account[0] ? account : NULL) };
	c->queue = work_queue_new(&(struct work_queue_options){ .name = kind->name, .base_ms = kind->retry_ms, .max_ms = kind->retry_max_ms });
	m->all[m->n++] = c;
	if (!c->client)
		return err_set(err, ERR_UNAVAILABLE, "%s: no client for the account %s", kind->name, account);
	if ((r = recorder_new(c->client, str_of(source), STR_NONE, &c->recorder, err)) == 0)
		r = kind->start(c, err);
	return r < 0 ? err_wrap(err, r, "%s", kind->name) : 0;
}

static int start_all(struct manager *m, struct err *err)
{
	size_t n = 0;
	int r = 0;

	while (controller_kinds[n])
		n++;
	m->all = mem_array(n, sizeof(*m->all));
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_enabled(m->options, controller_kinds[i]))
			r = controller_make(m, controller_kinds[i], err);
	if (r == 0)
		r = informers_start(m->informers, err);
	return r == 0 ? informers_wait(m->informers, err) : r;
}

static int work(struct manager *m, void (*on_ready)(void *arg), void *arg, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	int r = 0;

	fiber_group_init(&group);
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		struct controller *c = m->all[i];
		if (c->sync)
			r = spawn(m, &group, c, false, err);
		if (r == 0 && c->run)
			r = spawn(m, &group, c, true, err);
	}
	if (r == 0 && on_ready)
		on_ready(arg);
	while (r == 0 && m->result == 0)
		r = fiber_cond_wait(&m->ended, err);
	if (m->result < 0 && err)
		*err = m->err;
	return m->result < 0 ? m->result : r;
}

int controllers_run(const struct controllers_options *o, void (*on_ready)(void *arg), void *arg, struct err *err)
{
	struct client *own = o->client_for(o->arg, NULL);
	struct manager m = { .options = o };
	int r;

	if (!own)
		return err_set(err, ERR_UNAVAILABLE, "no client for the controllers");
	m.informers = informers_new(own);
	fiber_cond_init(&m.ended, "a controller that ends");
	if ((r = start_all(&m, err)) == 0)
		r = work(&m, on_ready, arg, err);
	for (size_t i = m.n; i-- > 0;)
		controller_free(m.all[i]);
	informers_free(m.informers);
	free(m.all);
	return r;
}
