/*
 * Dead containers and sandboxes. What stays: the newest dead ones of each container (for its last state and `kubectl logs --previous`), and
 * the newest sandbox of each pod. Of pods that are gone nothing stays.
 */
#include "kubelet/collect.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/collect_priv.h"
#include "kubelet/pod_rules.h"

enum { CONTAINERS_MS = 60000, LOGS_MS = 10000, GRACE_MIN_S = 2 };

/* A dead container or a sandbox, of a group of which the newest stay: those of one name in a pod, or the sandboxes of a pod. */
struct dead {
	str uid, name, id;
	int64_t created_ns;
	bool unknown;                 /* it may still run */
	bool active;                  /* of sandboxes: ready, or with containers */
	bool gone;
	struct val container;
};

struct dead_list {
	struct dead *all;
	size_t n;
};

/* ---- calls ---- */

static int ask(const struct collect_options *o, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val unused;

	return cri_ask(o->cri, rpc, a, request, 0, ret ? ret : &unused, err);
}

static int64_t grace_of(struct val container)
{
	int64_t s;

	return str_to_i64(val_as_str(val_find(val_get(container, annotations), STR("io.kubernetes.pod.terminationGracePeriod"))), &s) ?
		MAX(s, (int64_t)GRACE_MIN_S) : GRACE_MIN_S;
}

/* Whether it worked or not, it counts as gone: the next round tries again. */
static void remove_container(const struct collect_options *o, struct arena *a, struct dead *d)
{
	struct err err = ERR_INIT;

	d->gone = true;
	if (d->unknown && ask(o, &rpc_RuntimeService_StopContainer, a,
			      OBJECT(a, F(containerId, VAL_STR(d->id)), F(timeout, val_of_int(grace_of(d->container)))), NULL, &err) < 0) {
		log_warn("cannot stop a container", KV("container", d->id), KV("err", &err));
		return;
	}
	collect_remove_log(o, d->container);
	if (ask(o, &rpc_RuntimeService_RemoveContainer, a, OBJECT(a, F(containerId, VAL_STR(d->id))), NULL, &err) < 0 &&
	    err.code != ERR_NOT_FOUND)
		log_warn("cannot remove a container", KV("container", d->id), KV("err", &err));
}

static void remove_sandbox(const struct collect_options *o, struct arena *a, str id)
{
	struct val request = OBJECT(a, F(podSandboxId, VAL_STR(id)));
	struct err err = ERR_INIT;

	/* Mostly it was stopped long ago. */
	if (ask(o, &rpc_RuntimeService_StopPodSandbox, a, request, NULL, &err) < 0 ||
	    ask(o, &rpc_RuntimeService_RemovePodSandbox, a, request, NULL, &err) < 0)
		log_warn("cannot remove a sandbox", KV("sandbox", id), KV("err", &err));
}

/* ---- groups ---- */

/* By pod and name, the newest first. */
static int dead_order(const void *x, const void *y)
{
	const struct dead *a = x, *b = y;
	int c = str_cmp(a->uid, b->uid);

	if (!c)
		c = str_cmp(a->name, b->name);
	return c ? c : a->created_ns > b->created_ns ? -1 : a->created_ns < b->created_ns;
}

static int age_order(const void *x, const void *y)
{
	const struct dead *a = *(struct dead *const *)x, *b = *(struct dead *const *)y;

	return a->created_ns < b->created_ns ? -1 : a->created_ns > b->created_ns;
}

/* How many follow that are of the same group as the one at i, with it. */
static size_t group_len(const struct dead_list *l, size_t i)
{
	size_t n = 1;

	while (i + n < l->n && str_eq(l->all[i + n].uid, l->all[i].uid) && str_eq(l->all[i + n].name, l->all[i].name))
		n++;
	return n;
}

static size_t count_left(const struct dead_list *l, size_t *ret_groups)
{
	size_t n = 0;

	*ret_groups = 0;
	for (size_t i = 0, len; i < l->n; i += len) {
		size_t before = n;
		len = group_len(l, i);
		for (size_t k = i; k < i + len; k++)
			n += !l->all[k].gone;
		*ret_groups += n > before;
	}
	return n;
}

static bool goes_with_pod(const struct collect_options *o, str uid, bool all_dead)
{
	return o->deleted(o->arg, uid) || (all_dead && o->ended(o->arg, uid));
}

/* ---- containers ---- */

static int list_dead(const struct collect_options *o, struct arena *a, struct dead_list *ret, struct err *err)
{
	int64_t newest = clock_wall_ns() - o->min_age_ns;
	struct val reply;
	int r = ask(o, &rpc_RuntimeService_ListContainers, a, VAL_EMPTY_OBJECT, &reply, err);

	if (r < 0)
		return r;
	ret->all = ARENA_ARRAY(a, struct dead, val_len(val_get(reply, containers)) + 1);
	ret->n = 0;
	VAL_EACH(c, val_get(reply, containers)) {
		enum cri_state state = container_cri_state(*c);
		if (state == CRI_RUNNING || val_int(*c, createdAt) > newest)
			continue;
		ret->all[ret->n++] = (struct dead){
			.uid = val_as_str(val_find(val_get(*c, labels), STR("io.kubernetes.pod.uid"))), .name = val_str(*c, metadata, name),
			.id = val_str(*c, id), .created_ns = val_int(*c, createdAt), .unknown = state == CRI_UNKNOWN, .container = *c,
		};
	}
	if (ret->n)
		qsort(ret->all, ret->n, sizeof(*ret->all), dead_order);
	return 0;
}

static void keep_newest(const struct collect_options *o, struct arena *a, struct dead_list *l, size_t keep)
{
	for (size_t i = 0, len; i < l->n; i += len) {
		len = group_len(l, i);
		for (size_t k = len; k-- > keep;)
			if (!l->all[i + k].gone)
				remove_container(o, a, &l->all[i + k]);
	}
}

static void keep_total(const struct collect_options *o, struct arena *a, struct dead_list *l, size_t total)
{
	size_t groups, left = count_left(l, &groups), n = 0;

	if (left <= total)
		return;
	/* The same number of each first, then the oldest of all. */
	keep_newest(o, a, l, MAX(total / groups, (size_t)1));
	left = count_left(l, &groups);
	struct dead **by_age = ARENA_ARRAY(a, struct dead *, l->n + 1);
	for (size_t i = 0; i < l->n; i++)
		if (!l->all[i].gone)
			by_age[n++] = &l->all[i];
	if (n)
		qsort(by_age, n, sizeof(*by_age), age_order);
	for (size_t i = 0; i < n && left > total; i++, left--)
		remove_container(o, a, by_age[i]);
}

static int collect_dead(const struct collect_options *o, struct arena *a, bool all_dead, struct err *err)
{
	struct dead_list l;
	int r = list_dead(o, a, &l, err);

	if (r < 0)
		return r;
	for (size_t i = l.n; i-- > 0;) /* the oldest first */
		if (goes_with_pod(o, l.all[i].uid, all_dead))
			remove_container(o, a, &l.all[i]);
	if (o->per_pod >= 0)
		keep_newest(o, a, &l, (size_t)o->per_pod);
	if (o->total >= 0)
		keep_total(o, a, &l, (size_t)o->total);
	return 0;
}

/* ---- sandboxes ---- */

static int list_sandboxes(const struct collect_options *o, struct arena *a, struct dead_list *ret, struct err *err)
{
	CLEANUP(map_done) struct map used = MAP_INIT;
	struct val containers, sandboxes;
	int r = ask(o, &rpc_RuntimeService_ListContainers, a, VAL_EMPTY_OBJECT, &containers, err);

	map_init(&used);
	if (r < 0 || (r = ask(o, &rpc_RuntimeService_ListPodSandbox, a, VAL_EMPTY_OBJECT, &sandboxes, err)) < 0)
		return r;
	VAL_EACH(c, val_get(containers, containers))
		map_put(&used, val_str(*c, podSandboxId), (void *)(uintptr_t)c);
	ret->all = ARENA_ARRAY(a, struct dead, val_len(val_get(sandboxes, items)) + 1);
	ret->n = 0;
	VAL_EACH(s, val_get(sandboxes, items)) {
		str id = val_str(*s, id);
		ret->all[ret->n++] = (struct dead){ .uid = val_str(*s, metadata, uid), .id = id, .created_ns = val_int(*s, createdAt),
						    .active = sandbox_is_ready(*s) || map_get(&used, id) };
	}
	if (ret->n)
		qsort(ret->all, ret->n, sizeof(*ret->all), dead_order);
	return 0;
}

static int collect_sandboxes(const struct collect_options *o, struct arena *a, bool all_dead, struct err *err)
{
	struct dead_list l;
	int r = list_sandboxes(o, a, &l, err);

	if (r < 0)
		return r;
	for (size_t i = 0, len; i < l.n; i += len) {
		size_t keep = goes_with_pod(o, l.all[i].uid, all_dead) ? 0 : 1;
		len = group_len(&l, i);
		for (size_t k = len; k-- > keep;)
			if (!l.all[i + k].active)
				remove_sandbox(o, a, l.all[i + k].id);
	}
	return 0;
}

int collect_containers(const struct collect_options *o, bool all_dead, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err second = ERR_INIT, third = ERR_INIT;
	int r = collect_dead(o, &a, all_dead, err);

	/* What one of them cannot do the others can. */
	if (collect_sandboxes(o, &a, all_dead, &second) < 0 && r >= 0) {
		r = -(int)second.code;
		if (err)
			*err = second;
	}
	if (collect_folders(o, &third) < 0 && r >= 0) {
		r = -(int)third.code;
		if (err)
			*err = third;
	}
	return r;
}

int collect_run(const struct collect_options *o, struct err *err)
{
	int64_t look_ms = o->log_look_ms > 0 ? o->log_look_ms : LOGS_MS;

	for (int64_t waited_ms = CONTAINERS_MS;; waited_ms += look_ms) {
		struct err why = ERR_INIT;
		int r;
		if (waited_ms >= CONTAINERS_MS) {
			waited_ms = 0;
			if (collect_containers(o, false, &why) < 0 && why.code != ERR_CANCELED)
				log_warn("cannot collect containers", KV("err", &why));
		}
		if (collect_logs(o, &why) < 0 && why.code != ERR_CANCELED)
			log_warn("cannot rotate logs", KV("err", &why));
		if ((r = fiber_sleep_ms(look_ms, err)) < 0)
			return r;
	}
}
