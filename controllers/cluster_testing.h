/*
 * Controllers on a whole API server in the same process, with the identities that they have in a cluster, and their roles; the test plays the
 * kubelet, and may meddle right before any request of theirs.
 */
#ifndef C8S_CONTROLLERS_CLUSTER_TESTING_H
#define C8S_CONTROLLERS_CLUSTER_TESTING_H

#include "base/clock.h"
#include "client/client_priv.h"
#include "client/inside_testing.h"
#include "client/recorder.h"
#include "codec/atoms.h"
#include "controllers/controllers.h"

#define DEPLOYMENT TYPE(apps_v1, Deployment)
#define SET TYPE(apps_v1, ReplicaSet)
#define POD TYPE(core_v1, Pod)

enum { WAIT_MS = 15000, CLIENTS_MAX = 8, WATCHES_MAX = 64 };

struct cluster {
	struct world w;
	struct fiber *controllers;
	struct client *clients[CLIENTS_MAX];
	const char *accounts[CLIENTS_MAX];
	size_t n;
	bool ready;
	struct controllers_options options; /* who runs, and how */
	/* Called before each request of a controller; NULL: nothing happens then. The test's own requests may be made there. */
	void (*before)(struct cluster *k, const struct client_request *q);
	enum err_code fails;                /* set by before: the request gets no other answer */
	const struct type *held;            /* informers hear nothing of this kind as long as it is set */
	struct { const struct client_watch *watch; const struct type *type; } watches[WATCHES_MAX];
	size_t n_watches;
	struct client_transport transport;  /* that of all clients, with our calls */
	const struct client_transport *inside;
};

/* Clients do not know whose they are; tests run one after another. */
static struct cluster *cluster_now;

static inline bool cluster_fails(struct cluster *k, const struct client_request *q)
{
	k->fails = ERR_NONE;
	if (k->before)
		k->before(k, q);
	return k->fails != ERR_NONE;
}

static inline int cluster_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	struct cluster *k = cluster_now;
	return cluster_fails(k, q) ? err_set(err, k->fails, "refused by the test") : k->inside->call(c, q, ret, err);
}

static inline int cluster_call_raw(struct client *c, const struct client_request *q, struct arena *a, size_t max, str *ret_body,
				   struct client_reply *ret, struct err *err)
{
	struct cluster *k = cluster_now;
	return cluster_fails(k, q) ? err_set(err, k->fails, "refused by the test") : k->inside->call_raw(c, q, a, max, ret_body, ret, err);
}

static inline int cluster_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch, struct client_reply *ret, struct err *err)
{
	struct cluster *k = cluster_now;
	int r = k->inside->watch(c, q, ret_watch, ret, err);

	if (r == 0) {
		CHECK(k->n_watches < WATCHES_MAX);
		k->watches[k->n_watches].watch = *ret_watch;
		k->watches[k->n_watches++].type = q->type;
	}
	return r;
}

static inline int cluster_watch_next(struct client_watch *w, struct client_event *ret, struct err *err)
{
	const struct cluster *k = cluster_now;
	const struct type *type = NULL;
	int r = k->inside->watch_next(w, ret, err);

	for (size_t i = 0; i < k->n_watches; i++)
		if (k->watches[i].watch == w) /* the last one: memory is used again */
			type = k->watches[i].type;
	while (r > 0 && type == k->held && k->held)
		if (fiber_sleep_ms(5, err) < 0)
			return -ERR_CANCELED;
	return r;
}

static inline struct client *client_for(void *arg, const char *account)
{
	static const str manager[] = { STR_INIT("system:authenticated") },
			 groups[] = { STR_INIT("system:serviceaccounts"), STR_INIT("system:serviceaccounts:kube-system"), STR_INIT("system:authenticated") };
	struct cluster *k = arg;

	for (size_t i = 0; i < k->n; i++)
		if (k->accounts[i] == account || (account && k->accounts[i] && strcmp(k->accounts[i], account) == 0))
			return k->clients[i];
	CHECK(k->n < CLIENTS_MAX);
	struct user user = { .name = STR("system:kube-controller-manager"), .groups = manager, .n_groups = ARRAY_LEN(manager) };
	if (account)
		user = (struct user){ .name = arena_printf(&k->w.arena, "system:serviceaccount:kube-system:%s", account), .groups = groups,
				      .n_groups = ARRAY_LEN(groups) };
	k->accounts[k->n] = account;
	struct client *c = client_inside(k->w.server, &user, "kube-controller-manager/v1 (x)");
	k->inside = c->transport;
	k->transport = *c->transport;
	k->transport.call = cluster_call;
	k->transport.call_raw = cluster_call_raw;
	k->transport.watch = cluster_watch;
	k->transport.watch_next = cluster_watch_next;
	c->transport = &k->transport;
	return k->clients[k->n++] = c;
}

static inline void on_ready(void *arg) { ((struct cluster *)arg)->ready = true; }

static inline int run_controllers(void *arg)
{
	struct cluster *k = arg;
	struct err err = ERR_INIT;
	int r = controllers_run(&k->options, on_ready, k, &err);

	if (r != -ERR_CANCELED)
		fail_msg("controllers: %s", err.msg);
	return 0;
}

/* prepare: what there is when the controllers begin; may be NULL. */
static inline void cluster_begin(struct cluster *k, struct controllers_options options, void (*prepare)(struct cluster *k))
{
	*k = (struct cluster){ .options = options };
	k->options.client_for = client_for;
	k->options.arg = k;
	cluster_now = k;
	world_init(&k->w);
	CHECK_OK(&k->w, client_create(k->w.c, TYPE(core_v1, ServiceAccount), tree(&k->w, "{'metadata':{'name':'default','namespace':'n'}}"), NULL, NULL, &k->w.err));
	if (prepare)
		prepare(k);
	k->controllers = start(run_controllers, k);
}

static inline void cluster_init(struct cluster *k, struct controllers_options options) { cluster_begin(k, options, NULL); }

static inline void cluster_done(struct cluster *k)
{
	(void)fiber_stop(k->controllers);
	for (size_t i = 0; i < k->n; i++)
		client_free(k->clients[i]);
	world_done(&k->w);
}

/* ---- looking ---- */

/* Plays the kubelet: every pod is ready at once. */
static inline void make_ready(struct cluster *k, struct val pods)
{
	VAL_EACH(pod, pods) {
		if (val_exists(val_get(*pod, status, conditions)))
			continue;
		struct val status = tree(&k->w, "{'phase':'Running','conditions':[{'type':'Ready','status':'True','lastTransitionTime':'2026-01-01T00:00:00Z'}]}");
		(void)client_update(k->w.c, POD, val_with(&k->w.arena, *pod, status, status), &(struct client_write_options){ .subresource = STR("status") }, NULL, NULL);
	}
}

static inline struct val list_of(struct cluster *k, const struct type *type)
{
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	CHECK_OK(&k->w, client_list(k->w.c, type, &(struct client_list_options){ .namespace = STR("n") }, &list, &k->w.err));
	return val_copy(&k->w.arena, val_get(list->val, items));
}

static inline struct val get(struct cluster *k, const struct type *type, const char *name)
{
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;
	CHECK_OK(&k->w, client_get(k->w.c, type, STR("n"), str_of(name), &object, &k->w.err));
	return val_copy(&k->w.arena, object->val);
}

/* "replicas updated ready available" of a status. */
static inline str numbers(struct cluster *k, struct val object)
{
	struct val s = val_get(object, status);
	return arena_printf(&k->w.arena, "%lld %lld %lld %lld", (long long)val_int(s, replicas), (long long)val_int(s, updatedReplicas),
			    (long long)val_int(s, readyReplicas), (long long)val_int(s, availableReplicas));
}

/* (suspends) Until it is so; the test fails when that takes too long. */
static inline void cluster_wait(struct cluster *k, bool (*is_so)(struct cluster *k), const char *what)
{
	int64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;

	while (!is_so(k)) {
		if (clock_now_ns() > until_ns)
			fail_msg("waited in vain for %s", what);
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	}
}

/* (suspends) Until the numbers are these and the newest spec was seen; pods become ready meanwhile. */
static inline struct val settle(struct cluster *k, const struct type *type, const char *name, const char *want)
{
	int64_t until_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
	struct val object = VAL_EMPTY;

	while (clock_now_ns() < until_ns) {
		make_ready(k, list_of(k, POD));
		object = get(k, type, name);
		if (val_int(object, status, observedGeneration) == val_int(object, metadata, generation) && str_eq(numbers(k, object), str_of(want)))
			return object;
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	}
	fail_msg("%s is %s, not %s", name, numbers(k, object).p, want);
	return object;
}

static inline void patch(struct cluster *k, const struct type *type, const char *name, const char *json)
{
	CHECK_OK(&k->w, client_patch(k->w.c, type, STR("n"), str_of(name), CLIENT_PATCH_MERGE, tree(&k->w, json), NULL, NULL, &k->w.err));
}

static inline str reason_of(struct val object, const char *type)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)))
			return val_str(*c, reason);
	return STR_NONE;
}

static inline bool has_event(struct cluster *k, const char *reason, const char *message)
{
	VAL_EACH(e, list_of(k, TYPE(core_v1, Event)))
		if (str_eq(val_str(*e, reason), str_of(reason)) && str_starts(val_str(*e, message), str_of(message)))
			return true;
	return false;
}

#endif
