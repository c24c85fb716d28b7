/* Condition, channel and group: what fibers of one loop wait for from each other. */
#include "base/fiber_priv.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void fiber_cond_init(struct fiber_cond *c, const char *what)
{
	list_init(&c->waiters);
	c->what = what;
}

int fiber_cond_wait(struct fiber_cond *c, struct err *err) { return fiber_wait(&c->waiters, c->what, -1, err); }

void fiber_cond_signal(struct fiber_cond *c)
{
	if (!list_empty(&c->waiters))
		fiber_wake(LIST_FIRST(struct fiber, &c->waiters, link));
}

void fiber_cond_broadcast(struct fiber_cond *c)
{
	while (!list_empty(&c->waiters))
		fiber_wake(LIST_FIRST(struct fiber, &c->waiters, link));
}

/* ---- Channel ---- */

void channel_init(struct channel *c, size_t cap, const char *what)
{
	assert(cap > 0);
	*c = (struct channel){ .cap = cap };
	fiber_cond_init(&c->filled, what);
	fiber_cond_init(&c->drained, what);
}

void channel_done(struct channel *c)
{
	assert(list_empty(&c->filled.waiters) && list_empty(&c->drained.waiters));
	free(TAKE(c->items));
}

/* Most channels never hold more than a few. */
static void grow(struct channel *c)
{
	size_t room = MIN(c->room ? c->room * 2 : 8, c->cap);
	void **items = mem_array(room, sizeof(void *));

	for (size_t i = 0; i < c->n; i++)
		items[i] = c->items[(c->first + i) % c->room];
	free(c->items);
	c->items = items;
	c->room = room;
	c->first = 0;
}

bool channel_try_send(struct channel *c, void *item)
{
	if (c->closed || c->n == c->cap)
		return false;
	if (c->n == c->room)
		grow(c);
	c->items[(c->first + c->n++) % c->room] = item;
	fiber_cond_signal(&c->filled);
	return true;
}

bool channel_try_recv(struct channel *c, void **ret_item)
{
	if (!c->n)
		return false;
	*ret_item = c->items[c->first];
	c->first = (c->first + 1) % c->room;
	c->n--;
	fiber_cond_signal(&c->drained);
	return true;
}

int channel_send(struct channel *c, void *item, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && !c->closed && !channel_try_send(c, item))
		r = fiber_cond_wait(&c->drained, err);
	if (r == 0 && c->closed)
		return err_set(err, ERR_GONE, "%s is closed", c->filled.what);
	return r;
}

int channel_recv(struct channel *c, void **ret_item, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0) {
		if (channel_try_recv(c, ret_item))
			return 1;
		if (c->closed)
			return 0;
		r = fiber_cond_wait(&c->filled, err);
	}
	return r;
}

void channel_close(struct channel *c)
{
	c->closed = true;
	fiber_cond_broadcast(&c->filled);
	fiber_cond_broadcast(&c->drained);
}

/* ---- Group ---- */

void fiber_group_init(struct fiber_group *g)
{
	list_init(&g->members);
	g->n = 0;
	fiber_cond_init(&g->empty, "the fibers of a group to end");
}

int fiber_group_spawn(struct fiber_group *g, int (*fn)(void *arg), void *arg, struct err *err, const char *name, ...)
{
	va_list ap;
	va_start(ap, name);
	int r = fiber_vspawn(fn, arg, g, NULL, err, name, ap);
	va_end(ap);
	return r;
}

void fiber_group_cancel(struct fiber_group *g)
{
	LIST_EACH(struct fiber, f, &g->members, group_link)
		fiber_cancel(f);
}

int fiber_group_wait(struct fiber_group *g, struct err *err)
{
	int r = fiber_check(err);

	while (r == 0 && g->n)
		r = fiber_cond_wait(&g->empty, err);
	return r;
}

void fiber_group_done(struct fiber_group *g)
{
	SHIELD_SCOPE();
	/* A member may spawn another while it ends. */
	while (g->n) {
		fiber_group_cancel(g);
		(void)fiber_group_wait(g, NULL);
	}
}
