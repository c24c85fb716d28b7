/*
 * A link is a transport (client/client_priv.h) around that of client_inside. Each call runs on a fiber of its own at the server's side, so that
 * it can break there when the server ends, and go on there when its caller has given up. A watch holds one of the server's; whoever takes the
 * server away takes that too.
 */
#include "simulation/link.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/watch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "client/client_priv.h"

enum { GIVE_UP_MS = 10000, TRY_MS = 50 };

struct link {
	struct client client;
	struct list link;                /* in the hub */
	struct hub *hub;
	struct user user;
	str groups[4];
	const char *agent;
	struct client *inner;            /* NULL until needed */
	bool cut;
	struct fiber_cond mended;
	void (*asks)(void *arg, const struct client_request *q);
	void *asks_arg;
};

/* One call at the server's side. */
struct passage {
	struct list link;                /* in the hub */
	struct link *of;
	const struct client_request *request;
	int (*run)(struct passage *p);
	struct client_reply reply;
	struct client_watch *watch;
	struct arena *arena;
	size_t max;
	str body;
	struct fiber *fiber;
	struct err err;
	bool broken;                     /* the server has ended */
};

struct link_watch {
	struct client_watch watch;
	struct list link;                /* in the hub */
	struct link *of;
	struct client_watch *inner;      /* NULL: it has ended */
	struct frozen *object;           /* of the last event: the server may go while it is looked at */
	bool waiting;
};

static struct link *link_of(struct client *c) { return CONTAINER_OF(c, struct link, client); }

/* ---- the hub ---- */

void hub_init(struct hub *h, struct dice *dice)
{
	*h = (struct hub){ .dice = dice };
	list_init(&h->links);
	list_init(&h->calls);
	list_init(&h->watches);
	fiber_cond_init(&h->drained, "calls and watches that end");
}

static void drained(struct hub *h)
{
	if (list_empty(&h->calls) && list_empty(&h->watches))
		fiber_cond_broadcast(&h->drained);
}

static void inner_free(struct link_watch *w)
{
	if (!w->inner)
		return;
	list_remove(&w->link);
	client_watch_free(TAKE(w->inner));
	drained(w->of->hub);
}

void hub_up(struct hub *h, struct apiserver *s) { h->server = s; }

void hub_down(struct hub *h)
{
	SHIELD_SCOPE();
	struct apiserver *s = TAKE(h->server);

	if (!s)
		return;
	LIST_EACH(struct passage, p, &h->calls, link) {
		p->broken = true;
		fiber_cancel(p->fiber);
	}
	LIST_EACH_SAFE(struct link_watch, w, &h->watches, link)
		if (!w->waiting)
			inner_free(w);
	LIST_EACH(struct link, l, &h->links, link)
		fiber_cond_broadcast(&l->mended);
	s->stopping = true;
	watches_end(s);
	while (!list_empty(&h->calls) || !list_empty(&h->watches))
		(void)fiber_cond_wait(&h->drained, NULL);
	LIST_EACH(struct link, l, &h->links, link)
		client_free(TAKE(l->inner));
}

/* ---- calls ---- */

static int run_call(struct passage *p)
{
	struct client *inner = p->of->inner;
	return inner->transport->call(inner, p->request, &p->reply, &p->err);
}

static int run_raw(struct passage *p)
{
	struct client *inner = p->of->inner;
	return inner->transport->call_raw(inner, p->request, p->arena, p->max, &p->body, &p->reply, &p->err);
}

static int run_watch(struct passage *p)
{
	struct client *inner = p->of->inner;
	return inner->transport->watch(inner, p->request, &p->watch, &p->reply, &p->err);
}

static int run_passage(void *arg)
{
	struct passage *p = arg;
	return p->run(p);
}

static int no_answer(struct client_reply *reply, struct err *err)
{
	reply->status = 0;
	reply->retry_after_s = -1;
	return err_set(err, ERR_UNAVAILABLE, "connection refused");
}

/* (suspends) The way there; an error when nothing arrives. */
static int go(struct link *l, struct client_reply *reply, struct err *err)
{
	struct hub *h = l->hub;
	int r = h->faults.latency_ns ? fiber_sleep_ns(dice_below(h->dice, h->faults.latency_ns), err) : 0;

	if (r == 0 && l->cut)
		r = fiber_sleep_ms(dice_between(h->dice, TRY_MS, GIVE_UP_MS), err);
	else if (r == 0 && !h->server)
		r = fiber_sleep_ms(TRY_MS, err);
	if (r < 0)
		return r;
	if (l->cut || !h->server)
		return no_answer(reply, err);
	if (!dice_chance(h->dice, h->faults.refused))
		return 0;
	if (dice_chance(h->dice, 5000))
		return no_answer(reply, err);
	reply->status = 429;
	reply->retry_after_s = 1;
	return err_set(err, ERR_TOO_MANY_REQUESTS, "too many requests, please try again later");
}

/* (suspends) At the server. */
static int pass(struct passage *p, struct client_reply *ret, struct err *err)
{
	struct link *l = p->of;
	struct hub *h = l->hub;
	int result = 0;
	int r = go(l, ret, err);

	if (r < 0)
		return r;
	if (!l->inner)
		l->inner = client_inside(h->server, &l->user, l->agent);
	p->reply = *ret;
	if ((r = fiber_spawn(run_passage, p, &p->fiber, err, "call")) < 0)
		return r;
	list_add(&h->calls, &p->link);
	r = fiber_join(p->fiber, &result, err);
	if (r < 0)
		result = fiber_stop(p->fiber);
	if (p->watch && (r < 0 || p->broken))
		client_watch_free(TAKE(p->watch));
	if (r < 0 || p->broken)
		frozen_unref(TAKE(p->reply.object));
	list_remove(&p->link);
	drained(h);
	if (r < 0)
		return r;
	*ret = p->reply;
	if (p->broken)
		return no_answer(ret, err);
	if (result < 0 && err)
		*err = p->err;
	return result;
}

/* The way back of a call that was done. */
static int come_back(struct link *l, int result, struct client_reply *ret, struct err *err)
{
	struct hub *h = l->hub;

	if (!l->cut && !dice_chance(h->dice, h->faults.failed))
		return result;
	frozen_unref(TAKE(ret->object));
	if (l->cut || dice_chance(h->dice, 5000))
		return no_answer(ret, err);
	ret->status = 500;
	ret->retry_after_s = -1;
	return err_set(err, ERR_INTERNAL, "etcdserver: request timed out");
}

static int link_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	struct passage p = { .of = link_of(c), .request = q, .run = run_call };

	if (p.of->asks)
		p.of->asks(p.of->asks_arg, q);
	int r = pass(&p, ret, err);
	return r < 0 ? r : come_back(p.of, r, ret, err);
}

static int link_call_raw(struct client *c, const struct client_request *q, struct arena *a, size_t max, str *ret_body, struct client_reply *ret,
			 struct err *err)
{
	struct passage p = { .of = link_of(c), .request = q, .run = run_raw, .arena = a, .max = max };
	int r = pass(&p, ret, err);

	if (r == 0)
		*ret_body = p.body;
	return r < 0 ? r : come_back(p.of, r, ret, err);
}

/* ---- watches ---- */

static int link_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret, struct err *err)
{
	struct passage p = { .of = link_of(c), .request = q, .run = run_watch };
	int r = pass(&p, ret, err);

	if (r < 0)
		return r;
	struct link_watch *w = mem_zalloc(sizeof *w);
	*w = (struct link_watch){ .watch.client = c, .of = p.of, .inner = p.watch };
	list_add(&p.of->hub->watches, &w->link);
	*ret_watch = &w->watch;
	return 0;
}

/* (suspends) An event that came while the link was cut is held back, and may never come. */
static int hold_back(struct link_watch *w, struct err *err)
{
	struct link *l = w->of;
	int r = 0;

	while (r == 0 && l->cut && l->hub->server)
		r = fiber_cond_wait(&l->mended, err);
	if (r == 0 && (!l->hub->server || dice_chance(l->hub->dice, 5000)))
		r = err_set(err, ERR_UNAVAILABLE, "connection reset by peer");
	return r;
}

static int link_watch_next(struct client_watch *watch, struct client_event *ret, struct err *err)
{
	struct link_watch *w = CONTAINER_OF(watch, struct link_watch, watch);
	struct hub *h = w->of->hub;

	frozen_unref(TAKE(w->object));
	if (!w->inner)
		return err_set(err, ERR_UNAVAILABLE, "connection refused");
	w->waiting = true;
	int r = client_watch_next(w->inner, ret, err);
	if (r > 0 && w->of->cut && (r = hold_back(w, err)) == 0)
		r = 1;
	w->waiting = false;
	if (r > 0 && dice_chance(h->dice, h->faults.closed))
		r = 0;
	else if (r > 0 && dice_chance(h->dice, h->faults.expired))
		r = err_set(err, ERR_EXPIRED, "too old resource version");
	if (r > 0)
		w->object = frozen_ref(ret->object);
	else
		inner_free(w);
	return r;
}

static void link_watch_free(struct client_watch *watch)
{
	struct link_watch *w = CONTAINER_OF(watch, struct link_watch, watch);

	inner_free(w);
	frozen_unref(w->object);
	free(w);
}

/* ---- life ---- */

static void link_free(struct client *c)
{
	struct link *l = link_of(c);

	list_remove(&l->link);
	client_free(l->inner);
	free(l);
}

static const struct client_transport transport = {
	.call = link_call,
	.call_raw = link_call_raw,
	.watch = link_watch,
	.watch_next = link_watch_next,
	.watch_free = link_watch_free,
	.free = link_free,
};

struct client *link_new(struct hub *h, const char *user, const char *const *groups, const char *agent)
{
	struct link *l = mem_zalloc(sizeof *l);

	*l = (struct link){ .client.transport = &transport, .hub = h, .agent = agent };
	for (size_t i = 0; groups[i] && i < ARRAY_LEN(l->groups); i++)
		l->groups[l->user.n_groups++] = str_of(groups[i]);
	l->user.name = str_of(user);
	l->user.groups = l->groups;
	fiber_cond_init(&l->mended, "a link that is mended");
	list_add(&h->links, &l->link);
	return &l->client;
}

void link_cut(struct client *c, bool cut)
{
	struct link *l = link_of(c);

	l->cut = cut;
	if (!cut)
		fiber_cond_broadcast(&l->mended);
}

void link_listen(struct client *c, void (*asks)(void *arg, const struct client_request *q), void *arg)
{
	link_of(c)->asks = asks;
	link_of(c)->asks_arg = arg;
}
