/*
 * Mirror pods: what the API shows of static pods. They are kept in order by a queue of names: whatever happens to a static pod or to a
 * mirror pod, its name is looked at, and what should be is compared with what the informer shows. The annotation config.mirror, which is
 * the uid of the static pod, says which one a mirror shows. A mirror stays as long as anything of its static pod is left: its last
 * status goes there.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "client/work_queue.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/source_priv.h"

enum { MIRROR_FIBERS = 2 };

#define POD TYPE(core_v1, Pod)

/* ---- what the API has ---- */

bool pod_is_mirror_of_static(struct val pod) { return val_exists(val_find(val_get(pod, metadata, annotations), CONFIG_MIRROR)); }

static str uid_of(struct val pod) { return val_str(pod, metadata, uid); }

static void mirror_free(struct sources *s, struct mirror *m)
{
	str shows = pod_annotation(m->pod->val, CONFIG_MIRROR);

	(void)map_remove(&s->mirrors, uid_of(m->pod->val));
	if (map_get(&s->mirrors_of, shows) == m)
		(void)map_remove(&s->mirrors_of, shows);
	frozen_unref(m->pod);
	free(m);
}

void mirror_changed(struct sources *s, struct frozen *old, struct frozen *pod)
{
	struct frozen *any = pod ? pod : old;
	struct mirror *m = map_get(&s->mirrors, uid_of(any->val));

	if (m)
		mirror_free(s, m);
	if (pod) {
		m = mem_zalloc(sizeof *m);
		m->pod = frozen_ref(pod);
		(void)map_put(&s->mirrors, uid_of(pod->val), m);
		(void)map_put(&s->mirrors_of, pod_annotation(pod->val, CONFIG_MIRROR), m);
	}
	mirror_queue(s, any->val);
	if (s->o.mirror)
		s->o.mirror(s->o.arg, pod_annotation(any->val, CONFIG_MIRROR), pod);
}

void mirrors_done(struct sources *s)
{
	struct map_iter it = map_iter(&s->mirrors);
	struct mirror *m;

	while ((m = map_next(&it, NULL))) {
		frozen_unref(m->pod);
		free(m);
	}
	map_done(&s->mirrors);
	map_done(&s->mirrors_of);
}

/* Anybody may write the annotation: who shows a pod of another name is no mirror of it. */
static bool is_foreign(const struct sources *s, struct val mirror)
{
	const struct source_pod *p = map_get(&s->pods, pod_annotation(mirror, CONFIG_MIRROR));

	return p && (!str_eq(val_str(p->pod->val, metadata, name), val_str(mirror, metadata, name)) ||
		     !str_eq(val_str(p->pod->val, metadata, namespace), val_str(mirror, metadata, namespace)));
}

str sources_mirror_uid(struct sources *s, struct arena *a, str static_uid)
{
	const struct mirror *m = map_get(&s->mirrors_of, static_uid);
	struct map_iter it = map_iter(&s->mirrors);

	if (!m || is_foreign(s, m->pod->val))
		while ((m = map_next(&it, NULL)) &&
		       (!str_eq(pod_annotation(m->pod->val, CONFIG_MIRROR), static_uid) || is_foreign(s, m->pod->val)))
			;
	return m ? arena_str(a, uid_of(m->pod->val)) : STR_NONE;
}

str sources_static_uid(struct sources *s, struct arena *a, str mirror_uid)
{
	const struct mirror *m = map_get(&s->mirrors, mirror_uid);
	return m ? arena_str(a, pod_annotation(m->pod->val, CONFIG_MIRROR)) : STR_NONE;
}

/* ---- what it should have ---- */

static struct val owner(struct arena *a, const struct kubelet_node *node, struct val uid)
{
	return OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Node")), F(name, VAL_STR(node->name)), F(uid, uid),
		      F(controller, val_of_bool(true)));
}

/* (suspends) */
static int mirror_make(struct sources *s, struct frozen *pod, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *node = NULL, *there = NULL;
	str hash = pod_annotation(pod->val, CONFIG_HASH);
	struct val mirror = pod_annotate(&a, pod->val, CONFIG_MIRROR, hash);
	int r = client_get(s->o.client, TYPE(core_v1, Node), STR_NONE, s->o.node->name, &node, err);

	if (r == -ERR_NOT_FOUND) /* it will be registered, or there is nothing to show pods for */
		return err_set(err, ERR_CONFLICT, "the node is not registered");
	if (r < 0)
		return r;
	mirror = val_with(&a, mirror, LIST(&a, owner(&a, s->o.node, val_get(node->val, metadata, uid))), metadata, ownerReferences);
	log_info("making a mirror pod", KV("namespace", val_str(mirror, metadata, namespace)), KV("pod", val_str(mirror, metadata, name)));
	r = client_create(s->o.client, POD, mirror, NULL, NULL, err);
	if (r != -ERR_ALREADY_EXISTS)
		return r;
	/* Fine if it was this one, whose event is still on its way. */
	err_clear(err);
	r = client_get(s->o.client, POD, val_str(mirror, metadata, namespace), val_str(mirror, metadata, name), &there, err);
	if (r == 0 && !str_eq(pod_annotation(there->val, CONFIG_MIRROR), hash))
		return err_set(err, ERR_ALREADY_EXISTS, "there is another pod of that name in the API");
	return r;
}

/* (suspends) */
static int mirror_remove(struct sources *s, struct frozen *mirror, struct err *err)
{
	struct val pod = mirror->val;
	struct client_delete_options o = { .uid = uid_of(pod) };
	int r;

	log_info("removing a mirror pod", KV("namespace", val_str(pod, metadata, namespace)), KV("pod", val_str(pod, metadata, name)));
	r = client_delete(s->o.client, POD, val_str(pod, metadata, namespace), val_str(pod, metadata, name), &o, err);
	if (r < 0 && r != -ERR_NOT_FOUND && r != -ERR_CONFLICT)
		return r;
	err_clear(err);
	return 0;
}

/* (suspends) key: "namespace/name" */
static int sync_key(struct sources *s, str key, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *mirror = NULL, *pod = NULL;
	str namespace, name, shows;
	struct frozen *found;
	int r = 0;

	if (!s->queue || !s->informer || !informer_synced(s->informer))
		return 0; /* what is there is not known yet: all are looked at then */
	(void)str_cut(key, '/', &namespace, &name);
	if ((found = sources_static(s, namespace, name)))
		pod = frozen_ref(found);
	if ((found = informer_get(s->informer, key)) && pod_is_mirror_of_static(found->val))
		mirror = frozen_ref(found);
	if (!pod && (!mirror || !s->complete))
		return 0;
	shows = mirror ? pod_annotation(mirror->val, CONFIG_MIRROR) : STR_NONE;
	bool fits = pod && mirror && str_eq(shows, pod_annotation(pod->val, CONFIG_HASH));
	if (fits && !val_has(mirror->val, metadata, deletionTimestamp))
		return 0;
	if (mirror && !fits && !is_foreign(s, mirror->val) && s->o.gone && !s->o.gone(s->o.arg, shows))
		return err_set(err, ERR_CONFLICT, "something of the static pod is left");
	if (mirror)
		r = mirror_remove(s, mirror, err);
	return r == 0 && pod ? mirror_make(s, pod, err) : r;
}

static int work(str key, void *arg, struct err *err) { return sync_key(arg, key, err); }

int mirrors_run(void *arg)
{
	struct sources *s = arg;
	return work_queue_run(s->queue, MIRROR_FIBERS, work, s, NULL);
}

void mirror_queue(struct sources *s, struct val pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (s->queue)
		work_queue_add(s->queue, object_key(&a, pod));
}

void mirror_queue_all(struct sources *s)
{
	struct map_iter pods = map_iter(&s->pods), mirrors = map_iter(&s->mirrors);
	const struct source_pod *p;
	const struct mirror *m;

	while ((p = map_next(&pods, NULL)))
		if (p->kind != SOURCE_API)
			mirror_queue(s, p->pod->val);
	while ((m = map_next(&mirrors, NULL)))
		mirror_queue(s, m->pod->val);
}

int sources_mirror_sync(struct sources *s, struct val static_pod, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return sync_key(s, object_key(&a, static_pod), err);
}

int sources_mirror_clean(struct sources *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct map_iter it = map_iter(&s->mirrors);
	struct val_builder keys = val_builder(&a);
	const struct mirror *m;
	int r = 0;

	while ((m = map_next(&it, NULL)))
		if (!sources_static(s, val_str(m->pod->val, metadata, namespace), val_str(m->pod->val, metadata, name)))
			val_add_item(&keys, VAL_STR(object_key(&a, m->pod->val)));
	VAL_EACH(key, val_end_list(&keys)) {
		r = sync_key(s, val_as_str(*key), err);
		if (r < 0 && r != -ERR_CONFLICT)
			return r;
		err_clear(err);
	}
	return 0;
}
