/*
 * Events and lists only say that a pod is worth a look; what it is like is then asked for, so that an event that comes late tells nothing
 * wrong. A list is compared with the last one by ids and states.
 */
#include "kubelet/runtime_pods.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/last_words.h"

#define UID_LABEL STR("io.kubernetes.pod.uid")

/* Between lists: where events come, and where they do not. */
enum { LIST_SLOW_MS = 60000, LIST_FAST_MS = 1000, FOLLOW_AGAIN_MS = 200 };

struct known {
	struct frozen *pod;           /* { uid, namespace, name, items, containers }; NULL: not looked at yet */
	uint64_t signature;           /* of ids and states */
	size_t uid_n;
	char uid[];
};

struct runtime_pods {
	struct runtime_pods_options o;
	struct map pods;              /* uid -> struct known */
	int64_t listed_ns;
	bool events;                  /* are being followed */
	bool away;                    /* events have ended, and nothing was listed since */
	struct fiber_cond listed, relist;
};

struct runtime_pods *runtime_pods_new(const struct runtime_pods_options *o)
{
	struct runtime_pods *p = mem_zalloc(sizeof(*p));

	p->o = *o;
	map_init(&p->pods);
	fiber_cond_init(&p->listed, "the first list of the runtime's pods");
	fiber_cond_init(&p->relist, "time to list the runtime's pods");
	return p;
}

static void known_free(struct known *k)
{
	frozen_unref(k->pod);
	free(k);
}

void runtime_pods_free(struct runtime_pods *p)
{
	if (!p)
		return;
	struct map_iter it = map_iter(&p->pods);
	for (struct known *k; (k = map_next(&it, NULL));)
		known_free(k);
	map_done(&p->pods);
	free(p);
}

static struct known *known_make(struct runtime_pods *p, str uid)
{
	struct known *k = map_get(&p->pods, uid);

	if (k)
		return k;
	k = mem_zalloc(sizeof(*k) + uid.n);
	memcpy(k->uid, uid.p, k->uid_n = uid.n);
	map_put(&p->pods, str_span(k->uid, k->uid_n), k);
	return k;
}

static void known_remove(struct runtime_pods *p, str uid)
{
	struct known *k = map_remove(&p->pods, uid);

	if (k)
		known_free(k);
}

/* ---- one pod ---- */

/* Order does not matter. */
static uint64_t signature_of(str id, str state)
{
	uint64_t h = str_hash(state);
	return str_hash(id) * 31 + (h ^ h >> 7);
}

static bool newer(struct val a, struct val b) { return val_int(a, createdAt) > val_int(b, createdAt); }

/* The newest first; there are a few of them. */
static struct val newest_first(struct arena *a, const struct val *items, size_t n)
{
	struct val *sorted = ARENA_ARRAY(a, struct val, n + 1);

	for (size_t i = 0; i < n; i++) {
		size_t at = i;
		for (; at && newer(items[i], sorted[at - 1]); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = items[i];
	}
	return val_list(a, sorted, n);
}

static struct val uid_filter(struct arena *a, str uid)
{
	return OBJECT(a, F(labelSelector, val_object(a, &(struct member){ atom_make(a, UID_LABEL), VAL_STR(uid) }, 1)));
}

/* What has vanished since it was listed is left out. */
static int look_sandboxes(struct runtime_pods *p, struct arena *a, str uid, struct val *ret, uint64_t *signature, struct err *err)
{
	struct val_builder b = val_builder(a);
	struct val list, answer;
	int r = cri_ask(p->o.cri, &rpc_RuntimeService_ListPodSandbox, a, OBJECT(a, F(filter, uid_filter(a, uid))), 0, &list, err);

	if (r < 0)
		return r;
	VAL_EACH(s, val_get(list, items)) {
		r = cri_ask(p->o.cri, &rpc_RuntimeService_PodSandboxStatus, a, OBJECT(a, F(podSandboxId, val_get(*s, id))), 0, &answer, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
		if (r < 0)
			continue;
		val_add_item(&b, val_get(answer, status));
		*signature += signature_of(val_str(answer, status, id), val_str(answer, status, state));
	}
	struct val found = val_end_list(&b);
	*ret = newest_first(a, found.items, val_len(found));
	return 0;
}

static int look_containers(struct runtime_pods *p, struct arena *a, str uid, struct val *ret, uint64_t *signature, struct err *err)
{
	struct val_builder b = val_builder(a);
	struct val list, answer;
	int r = cri_ask(p->o.cri, &rpc_RuntimeService_ListContainers, a, OBJECT(a, F(filter, uid_filter(a, uid))), 0, &list, err);

	if (r < 0)
		return r;
	VAL_EACH(c, val_get(list, containers)) {
		r = cri_ask(p->o.cri, &rpc_RuntimeService_ContainerStatus, a, OBJECT(a, F(containerId, val_get(*c, id))), 0, &answer, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
		if (r < 0)
			continue;
		val_add_item(&b, last_words_add(a, val_get(answer, status)));
		*signature += signature_of(val_str(answer, status, id), val_str(answer, status, state));
	}
	struct val found = val_end_list(&b);
	*ret = newest_first(a, found.items, val_len(found));
	return 0;
}

int runtime_pods_look(struct runtime_pods *p, struct arena *a, str uid, struct runtime_pod *ret, struct err *err)
{
	uint64_t signature = 0;
	struct val sandboxes, containers, of;
	int r;

	*ret = (struct runtime_pod){ 0 };
	if ((r = look_sandboxes(p, a, uid, &sandboxes, &signature, err)) < 0 ||
	    (r = look_containers(p, a, uid, &containers, &signature, err)) < 0)
		return r;
	if (!val_len(sandboxes) && !val_len(containers)) {
		known_remove(p, uid);
		return 0;
	}
	struct known *k = known_make(p, uid);
	of = val_len(sandboxes) ? val_get(val_at(sandboxes, 0), labels) : val_get(val_at(containers, 0), labels);
	frozen_unref(k->pod);
	k->pod = val_freeze(OBJECT(a, F(uid, VAL_STR(uid)), F(namespace, val_find(of, STR("io.kubernetes.pod.namespace"))),
				   F(name, val_find(of, STR("io.kubernetes.pod.name"))), F(items, sandboxes), F(containers, containers)));
	k->signature = signature;
	runtime_pods_get(p, a, uid, ret);
	return 0;
}

void runtime_pods_get(const struct runtime_pods *p, struct arena *a, str uid, struct runtime_pod *ret)
{
	const struct known *k = map_get(&p->pods, uid);

	*ret = (struct runtime_pod){ 0 };
	if (!k || !k->pod)
		return;
	struct val pod = val_copy(a, k->pod->val);
	*ret = (struct runtime_pod){ val_str(pod, uid), val_str(pod, namespace), val_str(pod, name), val_get(pod, items),
				     val_get(pod, containers), k->signature };
}

bool runtime_pods_has(const struct runtime_pods *p, str uid) { return map_get(&p->pods, uid); }

struct val runtime_pods_list(const struct runtime_pods *p, struct arena *a)
{
	struct val_builder b = val_builder(a);
	struct map_iter it = map_iter(&p->pods);

	for (struct known *k; (k = map_next(&it, NULL));)
		val_add_item(&b, VAL_STR(arena_str(a, str_span(k->uid, k->uid_n))));
	return val_end_list(&b);
}

int64_t runtime_pods_listed_ns(const struct runtime_pods *p) { return p->listed_ns; }

/* ---- all of them ---- */

struct listed {
	uint64_t signature;
};

static void count(struct arena *a, struct map *seen, struct val labels, str id, str state)
{
	str uid = val_as_str(val_find(labels, UID_LABEL));
	struct listed *l = uid.n ? map_get(seen, uid) : NULL;

	if (!uid.n)
		return; /* somebody else's */
	if (!l)
		map_put(seen, uid, l = ARENA_NEW(a, struct listed));
	l->signature += signature_of(id, state);
}

static int list_all(struct runtime_pods *p, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(map_done) struct map seen = MAP_INIT;
	struct val sandboxes, containers;
	str uid;
	int r;

	map_init(&seen);
	if ((r = cri_ask(p->o.cri, &rpc_RuntimeService_ListPodSandbox, &a, VAL_EMPTY_OBJECT, 0, &sandboxes, err)) < 0 ||
	    (r = cri_ask(p->o.cri, &rpc_RuntimeService_ListContainers, &a, VAL_EMPTY_OBJECT, 0, &containers, err)) < 0)
		return r;
	VAL_EACH(s, val_get(sandboxes, items))
		count(&a, &seen, val_get(*s, labels), val_str(*s, id), val_str(*s, state));
	VAL_EACH(c, val_get(containers, containers))
		count(&a, &seen, val_get(*c, labels), val_str(*c, id), val_str(*c, state));

	struct map_iter it = map_iter(&seen);
	for (struct listed *l; (l = map_next(&it, &uid));) {
		struct known *k = known_make(p, uid);
		if (k->pod && k->signature == l->signature)
			continue;
		k->signature = l->signature;
		p->o.changed(uid, p->o.arg);
	}
	struct val all = runtime_pods_list(p, &a);
	VAL_EACH(known, all)
		if (!map_get(&seen, val_as_str(*known))) {
			known_remove(p, val_as_str(*known));
			p->o.changed(val_as_str(*known), p->o.arg);
		}
	p->listed_ns = clock_wall_ns();
	fiber_cond_broadcast(&p->listed);
	if (p->away && p->o.back)
		p->o.back(p->o.arg);
	p->away = false;
	return 0;
}

int runtime_pods_wait(struct runtime_pods *p, struct err *err)
{
	int r = 0;

	while (!p->listed_ns && (r = fiber_cond_wait(&p->listed, err)) == 0)
		;
	return r;
}

static void on_event(struct val event, void *arg)
{
	struct runtime_pods *p = arg;
	str uid = val_str(event, podSandboxStatus, metadata, uid);

	p->events = true;
	if (uid.n)
		p->o.changed(uid, p->o.arg);
}

/* What happened before the events were followed is found by a list, which is asked for each time that it begins anew. */
static int follow(void *arg)
{
	struct runtime_pods *p = arg;
	struct err err = ERR_INIT;
	int r;

	while ((r = cri_follow_events(p->o.cri, on_event, p, &err)) != -ERR_CANCELED && r != -ERR_UNAVAILABLE) {
		p->events = false;
		p->away = true;
		log_debug("the runtime's events have ended, they are followed again", KV("error", &err));
		err_clear(&err);
		if ((r = fiber_sleep_ms(FOLLOW_AGAIN_MS, &err)) < 0)
			break;
		fiber_cond_broadcast(&p->relist);
	}
	p->events = false;
	return 0;
}

/* Until it is time for a list: by the clock, or because events may have been missed. */
static int wait_for_list(struct runtime_pods *p, struct err *err)
{
	struct err waited = ERR_INIT;
	DEADLINE_SCOPE(p->events ? LIST_SLOW_MS : LIST_FAST_MS);
	int r = fiber_cond_wait(&p->relist, &waited);

	return r == -ERR_CANCELED ? err_set(err, ERR_CANCELED, "canceled") : 0;
}

int runtime_pods_run(struct runtime_pods *p, struct err *err)
{
	CLEANUP(fiber_stopp) struct fiber *follower = NULL;
	int r = fiber_spawn(follow, p, &follower, err, "runtime events");

	while (r >= 0) {
		struct err failed = ERR_INIT;
		if (list_all(p, &failed) < 0 && failed.code != ERR_CANCELED)
			log_warn("the runtime's pods cannot be listed", KV("error", &failed));
		r = wait_for_list(p, err);
	}
	return r;
}
