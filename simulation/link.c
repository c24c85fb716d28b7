/*
 * A link is a transport (client/client_priv.h) around that of client_inside. Each call runs on a fiber of its own at the server's side, so that
 * it can break there when the server ends, and go on there when its caller has given up. A watch holds one of the server's; whoever takes the
 * server away takes that too.
 *
 * A write whose caller has given up is late: it goes on at the server, or stays on the way until the link is mended, as packets do that are
 * sent again and again when the process is long gone. Those of nodes are never late: what they say of pods has no precondition, in Kubernetes
 * as here, and the newest is what counts.
 */
#include "simulation/link.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/watch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "client/client_priv.h"

enum { GIVE_UP_MS = 10000, TRY_MS = 50, LATE_MS = 3000 };

struct link {
	struct client client;
	struct list link;                /* in the hub */
	struct hub *hub;
	struct user user;
	str groups[4];
	const char *agent;
	struct client *inner;            /* NULL until needed */
	bool cut, dead;
	bool in_time;                    /* nothing is ever late */
	struct fiber_cond mended;
	struct link_listener listener;
};

/* One call at the server's side. */
struct passage {
	struct list link;                /* in the hub, while it is at the server */
	struct link *of;
	struct client_request request;
	struct arena memory;             /* of the request of a write, which may outlive its caller */
	int (*run)(struct passage *p);
	struct client_reply reply;
	struct client_watch *watch;
	struct arena *arena;
	size_t max;
	str body;
	struct fiber *fiber;
	struct err err;
	bool broken;                     /* the server has ended */
	bool done;                       /* at the server */
	bool late;                       /* its caller has given up: it is on its own */
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
	fiber_group_init(&h->late);
}

void hub_done(struct hub *h) { fiber_group_done(&h->late); }

bool hub_is_late(const struct hub *h)
{
	const struct fiber *self = fiber_self();

	LIST_EACH(struct passage, p, &h->calls, link)
		if (p->fiber == self)
			return p->late;
	return false;
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
	return inner->transport->call(inner, &p->request, &p->reply, &p->err);
}

static int run_raw(struct passage *p)
{
	struct client *inner = p->of->inner;
	return inner->transport->call_raw(inner, &p->request, p->arena, p->max, &p->body, &p->reply, &p->err);
}

static int run_watch(struct passage *p)
{
	struct client *inner = p->of->inner;
	return inner->transport->watch(inner, &p->request, &p->watch, &p->reply, &p->err);
}

static bool can_be_late(const struct passage *p) { return !p->of->in_time && !str_eq(p->request.method, STR("GET")); }

static struct passage *passage_new(struct client *c, const struct client_request *q, int (*run)(struct passage *p))
{
	struct passage *p = mem_zalloc(sizeof *p);
	struct client_request *own = &p->request;

	*p = (struct passage){ .of = link_of(c), .request = *q, .run = run };
	list_init(&p->link);
	if (!can_be_late(p))
		return p;
	str *const texts[] = { &own->namespace, &own->name, &own->subresource, &own->path, &own->query, &own->content_type };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = arena_str(&p->memory, *texts[i]);
	own->body = val_copy(&p->memory, q->body);
	return p;
}

static void passage_free(struct passage *p)
{
	if (!p)
		return;
	frozen_unref(p->reply.object);
	arena_done(&p->memory);
	free(p);
}

static void passage_freep(struct passage **p) { passage_free(*p); }

static void arrive(struct passage *p)
{
	struct link *l = p->of;

	if (!l->inner)
		l->inner = client_inside(l->hub->server, &l->user, l->agent);
	list_add(&l->hub->calls, &p->link);
}

static void leave(struct passage *p)
{
	list_remove(&p->link);
	drained(p->of->hub);
}

/* One that became late on the way is nobody's any more. */
static int run_passage(void *arg)
{
	struct passage *p = arg;
	int r = p->run(p);

	p->done = true;
	if (p->late) {
		leave(p);
		passage_free(p);
	}
	return r;
}

/* (suspends) Stays on the way for as long as nothing passes there, and then a little longer. */
static int run_late(void *arg)
{
	CLEANUP(passage_freep) struct passage *p = arg;
	struct link *l = p->of;
	int r = 0;

	while (r == 0 && l->cut)
		r = fiber_cond_wait(&l->mended, NULL);
	if (r == 0)
		r = fiber_sleep_ms(dice_below(l->hub->dice, LATE_MS), NULL);
	if (r < 0 || l->cut || !l->hub->server)
		return r;
	p->fiber = fiber_self();
	arrive(p);
	r = p->run(p);
	leave(p);
	return r;
}

/* The caller hears nothing more of it; half of them arrive all the same. */
static void send_late(struct passage **of)
{
	struct passage *p = *of;
	struct hub *h = p->of->hub;

	if (p->of->dead || !can_be_late(p) || !dice_chance(h->dice, 5000))
		return;
	p->late = true;
	if (fiber_group_spawn(&h->late, run_late, p, NULL, "late call") == 0)
		*of = NULL;
}

static int no_answer(struct client_reply *reply, struct err *err)
{
	reply->status = 0;
	reply->retry_after_s = -1;
	return err_set(err, ERR_UNAVAILABLE, "connection refused");
}

/* (suspends) The way there; an error when nothing arrives in time. */
static int go(struct passage **of, struct client_reply *reply, struct err *err)
{
	struct link *l = (*of)->of;
	struct hub *h = l->hub;
	int r = h->faults.latency_ns && !l->dead ? fiber_sleep_ns(dice_below(h->dice, h->faults.latency_ns), err) : 0;
	bool lost = r < 0 || l->cut;

	if (lost)
		send_late(of);
	if (r == 0 && l->cut)
		r = fiber_sleep_ms(dice_between(h->dice, TRY_MS, GIVE_UP_MS), err);
	else if (r == 0 && !h->server)
		r = fiber_sleep_ms(TRY_MS, err);
	if (r < 0)
		return r;
	if (lost || l->dead || l->cut || !h->server)
		return no_answer(reply, err);
	if (!dice_chance(h->dice, h->faults.refused))
		return 0;
	if (dice_chance(h->dice, 5000))
		return no_answer(reply, err);
	reply->status = 429;
	reply->retry_after_s = 1;
	return err_set(err, ERR_TOO_MANY_REQUESTS, "too many requests, please try again later");
}

/* (suspends) The caller gives up: what it has asked for is broken off, or done all the same. */
static void give_up(struct passage **of)
{
	struct passage *p = *of;

	if (can_be_late(p) && !p->broken && !p->done && dice_chance(p->of->hub->dice, 5000)) {
		p->late = true;
		fiber_detach(p->fiber);
		*of = NULL;
		return;
	}
	(void)fiber_stop(p->fiber);
	if (p->watch)
		client_watch_free(TAKE(p->watch));
	leave(p);
}

/* (suspends) At the server. On an error *of may be NULL: it goes on without its caller. */
static int pass(struct passage **of, struct client_reply *ret, struct err *err)
{
	struct passage *p = *of;
	int result = 0;
	int r = go(of, ret, err);

	if (r < 0)
		return r;
	p->reply = *ret;
	if ((r = fiber_spawn(run_passage, p, &p->fiber, err, "call")) < 0)
		return r;
	arrive(p);
	r = fiber_join(p->fiber, &result, err);
	if (r < 0) {
		give_up(of);
		return r;
	}
	if (p->watch && p->broken)
		client_watch_free(TAKE(p->watch));
	leave(p);
	if (p->broken)
		return no_answer(ret, err);
	*ret = p->reply;
	p->reply.object = NULL;
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
	CLEANUP(passage_freep) struct passage *p = passage_new(c, q, run_call);
	struct link *l = link_of(c);
	const struct link_listener *listener = &l->listener;

	if (listener->asks)
		listener->asks(listener->arg, q);
	int r = pass(&p, ret, err);
	if (r == 0)
		r = come_back(l, r, ret, err);
	if (listener->fails && (r == -ERR_UNAVAILABLE || r == -ERR_INTERNAL || r == -ERR_TIMEOUT || r == -ERR_CANCELED))
		listener->fails(listener->arg, q);
	return r;
}

static int link_call_raw(struct client *c, const struct client_request *q, struct arena *a, size_t max, str *ret_body, struct client_reply *ret,
			 struct err *err)
{
	CLEANUP(passage_freep) struct passage *p = passage_new(c, q, run_raw);

	p->arena = a;
	p->max = max;
	int r = pass(&p, ret, err);
	if (r == 0)
		*ret_body = p->body;
	return r < 0 ? r : come_back(link_of(c), r, ret, err);
}

/* ---- watches ---- */

static int link_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret, struct err *err)
{
	CLEANUP(passage_freep) struct passage *p = passage_new(c, q, run_watch);
	int r = pass(&p, ret, err);

	if (r < 0)
		return r;
	struct link_watch *w = mem_zalloc(sizeof *w);
	*w = (struct link_watch){ .watch.client = c, .of = p->of, .inner = p->watch };
	list_add(&p->of->hub->watches, &w->link);
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

void link_die(struct client *c, bool dead) { link_of(c)->dead = dead; }

void link_in_time(struct client *c) { link_of(c)->in_time = true; }

void link_listen(struct client *c, struct link_listener listener) { link_of(c)->listener = listener; }
