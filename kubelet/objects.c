/*
 * Two tables: objects by kind, namespace and name, and pods by uid, each pod with the objects that it refers to. Informers tell changes
 * from within their own fibers, where nothing may wait: pods are only marked then, and objects whose watch is to end are put aside. The
 * fiber of objects_run does the rest.
 */
#include "kubelet/objects.h"

#include <stdlib.h>

#include "base/fiber.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/informer.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { SYNC_MS = 1000 }; /* how long a lookup waits for the first list */

struct object {
	struct objects *all;
	const struct type *type;
	struct informer *informer;    /* NULL: its watch has ended, kept is all there is */
	struct informer_listener listener;
	struct frozen *kept;          /* it is immutable */
	bool missed;                  /* a lookup did not wait for the first list to the end */
	size_t users;                 /* pods, and lookups that wait */
	struct list link;             /* among those to be put right by objects_run */
	str namespace, name;          /* in key */
	size_t key_n;
	char key[];                   /* "ConfigMap/ns/name" */
};

struct pod_objects {
	struct frozen *pod;           /* as it was last looked at */
	struct object **refs;
	size_t n_refs;
	struct list link;             /* among those that have changed */
	bool appeared;
	str uid;                      /* in pod */
};

struct objects {
	struct objects_options o;
	struct informers *informers;  /* NULL: no watches */
	struct map objects, pods;
	struct list changed;          /* of struct pod_objects */
	struct list idle;             /* of struct object: nobody uses them, or they are immutable */
	struct fiber_cond work, synced;
};

struct objects *objects_new(const struct objects_options *o)
{
	struct objects *all = mem_zalloc(sizeof(*all));
	struct err err = ERR_INIT;

	all->o = *o;
	map_init(&all->objects);
	map_init(&all->pods);
	list_init(&all->changed);
	list_init(&all->idle);
	fiber_cond_init(&all->work, "changes of what pods refer to");
	fiber_cond_init(&all->synced, "the first list of an object");
	if (o->client && !o->no_watches) {
		all->informers = informers_new(o->client);
		(void)informers_start(all->informers, &err); /* there are none yet: it cannot fail */
	}
	return all;
}

static bool is_config_map(const struct type *type) { return type == TYPE(core_v1, ConfigMap); }

/* ---- marks ---- */

static void mark_pod(struct objects *all, struct pod_objects *p, bool appeared)
{
	p->appeared |= appeared;
	if (!list_linked(&p->link))
		list_add(&all->changed, &p->link);
	fiber_cond_signal(&all->work);
}

static void mark_object(struct object *o)
{
	if (!list_linked(&o->link))
		list_add(&o->all->idle, &o->link);
	fiber_cond_signal(&o->all->work);
}

static bool refers(const struct pod_objects *p, const struct object *o)
{
	for (size_t i = 0; i < p->n_refs; i++)
		if (p->refs[i] == o)
			return true;
	return false;
}

static void mark_users(struct object *o, bool appeared)
{
	struct map_iter it = map_iter(&o->all->pods);

	for (struct pod_objects *p; (p = map_next(&it, NULL));)
		if (refers(p, o))
			mark_pod(o->all, p, appeared);
}

static void on_change(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct object *o = CONTAINER_OF(l, struct object, listener);

	if (object && val_bool(object->val, immutable)) {
		frozen_unref(o->kept);
		o->kept = frozen_ref(object);
		mark_object(o);
	}
	if (informer_synced(o->informer)) /* before, it is waited for */
		mark_users(o, !old);
}

static void on_synced(struct informer_listener *l)
{
	struct object *o = CONTAINER_OF(l, struct object, listener);

	fiber_cond_broadcast(&o->all->synced);
	if (o->missed)
		mark_users(o, true);
	o->missed = false;
}

/* ---- objects ---- */

static void begin_watch(struct object *o)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str fields = arena_printf(&a, "metadata.name=" STR_FMT, STR_ARG(o->name));

	o->informer = informers_get(o->all->informers, o->type,
				    &(struct informer_options){ .namespace = o->namespace, .fields = fields, .shared = true });
	o->listener = (struct informer_listener){ .changed = on_change, .synced = on_synced };
	informer_listen(o->informer, &o->listener);
}

static str make_key(struct arena *a, const struct type *type, str namespace, str name)
{
	return arena_printf(a, "%s/" STR_FMT "/" STR_FMT, is_config_map(type) ? "ConfigMap" : "Secret", STR_ARG(namespace), STR_ARG(name));
}

/* With one user more. */
static struct object *object_use(struct objects *all, const struct type *type, str namespace, str name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str key = make_key(&a, type, namespace, name);
	struct object *o = map_get(&all->objects, key);

	if (!o) {
		o = mem_zalloc(sizeof(*o) + key.n);
		o->all = all;
		o->type = type;
		memcpy(o->key, key.p, o->key_n = key.n);
		o->name = str_span(o->key + key.n - name.n, name.n);
		o->namespace = str_span(o->key + key.n - name.n - 1 - namespace.n, namespace.n);
		map_put(&all->objects, str_span(o->key, o->key_n), o);
		begin_watch(o);
	}
	o->users++;
	return o;
}

static void object_release(struct object *o)
{
	if (--o->users == 0)
		mark_object(o);
}

/* (suspends) Nobody can find it any more. */
static void object_free(struct object *o)
{
	if (o->informer) {
		informer_unlisten(&o->listener);
		informers_drop(o->informer);
	}
	list_remove(&o->link);
	frozen_unref(o->kept);
	free(o);
}

/* (suspends) */
static void put_right(struct objects *all, struct object *o)
{
	list_remove(&o->link);
	if (!o->users) {
		(void)map_remove(&all->objects, str_span(o->key, o->key_n));
		object_free(o);
	} else if (o->kept && o->informer) {
		struct informer *ended = TAKE(o->informer);
		informer_unlisten(&o->listener);
		informers_drop(ended);
	}
}

size_t objects_watched(const struct objects *all)
{
	struct map_iter it = map_iter(&all->objects);
	size_t n = 0;

	for (struct object *o; (o = map_next(&it, NULL));)
		n += o->informer != NULL;
	return n;
}

/* ---- what a pod refers to ---- */

struct refs {
	struct objects *all;
	str namespace;
	struct object **list;
	size_t n, cap;
};

static void add(struct refs *r, const struct type *type, str name)
{
	if (!name.n)
		return;
	struct object *o = object_use(r->all, type, r->namespace, name);
	for (size_t i = 0; i < r->n; i++)
		if (r->list[i] == o) {
			o->users--; /* each pod counts once */
			return;
		}
	if (r->n == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 4;
		r->list = mem_resize(r->list, r->cap * sizeof(struct object *));
	}
	r->list[r->n++] = o;
}

static void add_container(struct refs *r, struct val c)
{
	VAL_EACH(from, val_get(c, envFrom)) {
		add(r, TYPE(core_v1, ConfigMap), val_str(*from, configMapRef, name));
		add(r, TYPE(core_v1, Secret), val_str(*from, secretRef, name));
	}
	VAL_EACH(env, val_get(c, env)) {
		add(r, TYPE(core_v1, ConfigMap), val_str(*env, valueFrom, configMapKeyRef, name));
		add(r, TYPE(core_v1, Secret), val_str(*env, valueFrom, secretKeyRef, name));
	}
}

static void add_volume(struct refs *r, struct val v)
{
	add(r, TYPE(core_v1, ConfigMap), val_str(v, configMap, name));
	add(r, TYPE(core_v1, Secret), val_str(v, secret, secretName));
	VAL_EACH(source, val_get(v, projected, sources)) {
		add(r, TYPE(core_v1, ConfigMap), val_str(*source, configMap, name));
		add(r, TYPE(core_v1, Secret), val_str(*source, secret, name));
	}
}

static struct refs refs_of(struct objects *all, struct val pod)
{
	static const atom lists[] = { A_initContainers, A_containers, A_ephemeralContainers };
	struct refs r = { .all = all, .namespace = val_str(pod, metadata, namespace) };

	if (!all->informers)
		return r;
	VAL_EACH(ref, val_get(pod, spec, imagePullSecrets))
		add(&r, TYPE(core_v1, Secret), val_str(*ref, name));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), lists[i]))
			add_container(&r, *c);
	VAL_EACH(v, val_get(pod, spec, volumes))
		add_volume(&r, *v);
	return r;
}

static void release_all(struct object **refs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		object_release(refs[i]);
	free(refs);
}

/* What of a pod itself can be seen in its volumes. */
static bool same_metadata(struct val a, struct val b)
{
	return val_equal(val_get(a, metadata, labels), val_get(b, metadata, labels)) &&
	       val_equal(val_get(a, metadata, annotations), val_get(b, metadata, annotations));
}

void objects_follow(struct objects *all, struct frozen *pod)
{
	struct pod_objects *p = map_get(&all->pods, val_str(pod->val, metadata, uid));

	if (p && p->pod == pod)
		return;
	if (!p) {
		p = mem_zalloc(sizeof(*p));
	} else {
		(void)map_remove(&all->pods, p->uid);
		if (!same_metadata(p->pod->val, pod->val))
			mark_pod(all, p, false);
	}
	struct refs r = refs_of(all, pod->val); /* before the old ones go: what stays is not watched anew */
	release_all(p->refs, p->n_refs);
	frozen_unref(p->pod);
	p->pod = frozen_ref(pod);
	p->refs = r.list;
	p->n_refs = r.n;
	p->uid = val_str(pod->val, metadata, uid);
	map_put(&all->pods, p->uid, p);
}

static void pod_free(struct pod_objects *p)
{
	list_remove(&p->link);
	release_all(p->refs, p->n_refs);
	frozen_unref(p->pod);
	free(p);
}

void objects_forget(struct objects *all, str uid)
{
	struct pod_objects *p = map_remove(&all->pods, uid);

	if (p)
		pod_free(p);
}

void objects_touch(struct objects *all, str uid)
{
	struct pod_objects *p = map_get(&all->pods, uid);

	if (p)
		mark_pod(all, p, false);
}

static bool projects_bundle(struct val pod)
{
	VAL_EACH(v, val_get(pod, spec, volumes))
		VAL_EACH(source, val_get(*v, projected, sources))
			if (val_has(*source, clusterTrustBundle))
				return true;
	return false;
}

void objects_touch_bundles(struct objects *all)
{
	struct map_iter it = map_iter(&all->pods);

	for (struct pod_objects *p; (p = map_next(&it, NULL));)
		if (projects_bundle(p->pod->val))
			mark_pod(all, p, false);
}

/* ---- lookups ---- */

static int not_found(const struct type *type, str name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "%s \"" STR_FMT "\" not found", is_config_map(type) ? "configmap" : "secret", STR_ARG(name));
}

/* (suspends) Without a copy. */
static int ask(struct objects *all, const struct type *type, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;
	int r = all->o.client ? client_get(all->o.client, type, namespace, name, &object, err) : -ERR_NOT_FOUND;

	if (r == -ERR_NOT_FOUND)
		return not_found(type, name, err);
	if (r >= 0)
		*ret = val_copy(a, object->val);
	return r;
}

static bool is_ready(const struct object *o) { return o->kept || informer_synced(o->informer); }

/* (suspends) */
static int wait_ready(struct object *o, struct err *err)
{
	struct err waited = ERR_INIT;
	int r = 0;

	{
		DEADLINE_SCOPE(SYNC_MS);
		while (!is_ready(o) && (r = fiber_cond_wait(&o->all->synced, &waited)) == 0)
			;
	}
	if (is_ready(o) || r == 0)
		return fiber_check(err);
	if ((r = fiber_check(err)) < 0)
		return r;
	o->missed = true;
	return err_set(err, ERR_UNAVAILABLE, "failed to sync %s cache: timed out waiting for the condition",
		       is_config_map(o->type) ? "configmap" : "secret");
}

int objects_get(struct objects *all, const struct type *type, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;

	*ret = VAL_EMPTY;
	struct object *o = all->informers ? map_get(&all->objects, make_key(&scratch, type, namespace, name)) : NULL;
	if (!o)
		return ask(all, type, a, namespace, name, ret, err);
	o->users++;
	int r = wait_ready(o, err);
	if (r >= 0) {
		str key = arena_printf(&scratch, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
		struct frozen *object = o->kept ? o->kept : informer_get(o->informer, key);
		if (object)
			*ret = val_copy(a, object->val);
		else
			r = not_found(type, name, err);
	}
	object_release(o);
	return r;
}

/* ---- life ---- */

/* (suspends) One of what has been marked; false: there is nothing. */
static bool work_once(struct objects *all)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct object *o = LIST_FIRST(struct object, &all->idle, link);
	struct pod_objects *p = LIST_FIRST(struct pod_objects, &all->changed, link);

	if (p) {
		str uid = arena_str(&a, p->uid);
		bool appeared = p->appeared;
		list_remove(&p->link);
		p->appeared = false;
		all->o.changed(all->o.arg, uid, appeared); /* the pod may be gone after it */
	} else if (o) {
		put_right(all, o);
	}
	return p || o;
}

int objects_run(struct objects *all, struct err *err)
{
	int r;

	while ((r = fiber_check(err)) >= 0)
		if (!work_once(all) && (r = fiber_cond_wait(&all->work, err)) < 0)
			break;
	return r;
}

void objects_free(struct objects *all)
{
	if (!all)
		return;
	struct map_iter it = map_iter(&all->pods);
	for (struct pod_objects *p; (p = map_next(&it, NULL));)
		pod_free(p);
	map_done(&all->pods); /* before anything suspends: informers that still run look there */
	it = map_iter(&all->objects);
	for (struct object *o; (o = map_next(&it, NULL));)
		object_free(o);
	map_done(&all->objects);
	if (all->informers)
		informers_free(all->informers);
	free(all);
}
