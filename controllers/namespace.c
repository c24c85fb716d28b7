/*
 * Namespaces that are deleted: everything in them is deleted, pods first and alone, and when nothing is left, the finalizer
 * "kubernetes" is taken away. What is in the way is told in the status.
 */
#include "base/clock.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/controller.h"
#include "controllers/discovery.h"
#include "controllers/moment.h"
#include "controllers/namespace_plan.h"

/* Servers beside this one shall have noticed that the namespace is closed before its content is counted. */
enum { DELETION_GRACE_MS = 5000 };

#define FINALIZER "kubernetes"

/* One attempt at a namespace. */
struct attempt {
	struct controller *c;
	struct arena *arena;
	str name;
	int64_t deleted_ns;
	struct namespace_content content;
	int64_t estimate_s;           /* when to look again; 0: no idea */
};

static void keys(struct controller *c, struct frozen *old, struct frozen *object)
{
	(void)old;
	if (object && val_has(object->val, metadata, deletionTimestamp))
		controller_add_after(c, val_str(object->val, metadata, name), DELETION_GRACE_MS);
}

/* ---- content ---- */

static bool not_there(int r) { return r == -ERR_NOT_FOUND || r == -ERR_METHOD_NOT_ALLOWED; }

/* (suspends) 1 with the list, held; 0: there is no such resource. */
static int list_items(struct attempt *t, const struct resource *r, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	struct client_list_options o = { .namespace = t->name };
	int e = client_list(t->c->client, r->type, &o, &list, err);
	if (not_there(e)) {
		err_clear(err);
		return 0;
	}
	if (e < 0)
		return e;
	*ret = val_get(controller_hold(t->c, t->arena, list), items);
	return 1;
}

/* (suspends) All at once, where the server can do that: 1; 0: it cannot. */
static int delete_collection(struct attempt *t, const struct served *s, struct err *err)
{
	const struct client_delete_options how = { .grace_s = -1, .propagation = STR("Background") };
	if (!served_can(s, VERB_DELETE_COLLECTION))
		return 0;
	int r = client_delete_collection(t->c->client, s->resource->type, &(struct client_list_options){ .namespace = t->name }, &how, err);
	if (r < 0 && !not_there(r))
		return r;
	err_clear(err);
	return r == 0;
}

/* (suspends) */
static int delete_items(struct attempt *t, const struct resource *r, struct val items, struct err *err)
{
	const struct client_delete_options o = { .grace_s = -1, .propagation = STR("Background") };
	VAL_EACH(item, items) {
		int e = client_delete(t->c->client, r->type, t->name, val_str(*item, metadata, name), &o, err);
		if (e < 0 && !not_there(e) && e != -ERR_CONFLICT)
			return e;
		err_clear(err);
	}
	return 0;
}

static bool has_finalizers(struct val items)
{
	VAL_EACH(item, items)
		if (val_len(val_get(*item, metadata, finalizers)))
			return true;
	return false;
}

/* (suspends) What remains is added to the content. */
static int delete_resource(struct attempt *t, const struct served *s, struct err *err)
{
	const struct resource *r = s->resource;
	struct val items;
	int e = list_items(t, r, &items, err);
	if (e <= 0 || !val_len(items))
		return MIN(e, 0);
	bool pods = r->type == TYPE(core_v1, Pod);
	int64_t estimate = pods ? namespace_pods_estimate(items, t->deleted_ns, clock_wall_ns()) : 0;
	t->estimate_s = MAX(t->estimate_s, estimate);
	e = delete_collection(t, s, err);
	if (e == 0)
		e = delete_items(t, r, items, err);
	if (e < 0 || (e = list_items(t, r, &items, err)) <= 0 || !val_len(items))
		return MIN(e, 0);
	namespace_content_remains(&t->content, r->group, r->name, items);
	if (estimate)
		return 0;
	if (!has_finalizers(items))
		return err_set(err, ERR_INTERNAL, "unexpected items still remain in namespace: " STR_FMT " for gvr: " STR_FMT "/" STR_FMT
			       ", Resource=" STR_FMT, STR_ARG(t->name), STR_ARG(r->group), STR_ARG(r->version), STR_ARG(r->name));
	t->estimate_s = MAX(t->estimate_s, (int64_t)NAMESPACE_FINALIZER_ESTIMATE_S);
	return 0;
}

/* (suspends) Only a cancel ends it: what fails with one resource is no reason to leave the others. */
static int try_resource(struct attempt *t, const struct served *s, struct err *err)
{
	struct err why = ERR_INIT;
	int e = delete_resource(t, s, &why);
	if (e == -ERR_CANCELED)
		return err_set(err, why.code, "%s", why.msg);
	if (e < 0)
		namespace_content_fail(&t->content, err_str(&why));
	return 0;
}

/* (suspends) */
static int delete_content(struct attempt *t, const struct discovery *d, struct err *err)
{
	const struct served pods = { .resource = schema_resource(TYPE(core_v1, Pod), STR("")), .verbs = VERB_DELETE_COLLECTION };
	int r = try_resource(t, &pods, err);
	if (r < 0)
		return r;
	if (t->content.n_resources) {
		t->content.pods_first = true;
		return 0;
	}
	for (size_t i = 0; i < d->n && r == 0; i++) {
		const struct served *s = &d->all[i];
		if (s->preferred && served_namespaced(s) && served_can(s, VERB_DELETE | VERB_LIST) && s->resource != pods.resource)
			r = try_resource(t, s, err);
	}
	return r;
}

/* ---- the namespace itself ---- */

static struct val to_terminating(struct arena *a, struct val live, void *arg)
{
	(void)arg;
	if (!val_has(live, metadata, deletionTimestamp) || str_eq(val_str(live, status, phase), STR("Terminating")))
		return VAL_EMPTY;
	return val_with(a, live, VAL_LIT("Terminating"), status, phase);
}

static struct val without_finalizer(struct arena *a, struct val live, void *arg)
{
	struct val_builder b = val_builder(a);
	(void)arg;
	VAL_EACH(f, val_get(live, spec, finalizers))
		if (!str_eq(val_as_str(*f), STR(FINALIZER)))
			val_add_item(&b, *f);
	return val_with(a, live, b.n ? val_end_list(&b) : VAL_EMPTY_LIST, spec, finalizers);
}

/* (suspends) A failure is no reason to stop: the conditions are for people. */
static void write_conditions(struct attempt *t, struct val namespace)
{
	struct err why = ERR_INIT;
	struct val had = val_get(namespace, status, conditions);
	struct val conditions = namespace_conditions(t->arena, had, &t->content);
	if (val_same(conditions, had))
		return;
	struct val changed = val_with(t->arena, namespace, conditions, status, conditions);
	const struct client_write_options o = { .subresource = STR("status"), .reply = TYPE(core_v1, Namespace) };
	if (client_update(t->c->client, TYPE(core_v1, Namespace), changed, &o, NULL, &why) < 0)
		log_warn("couldn't update status condition for namespace", KV("namespace", t->name), KV("err", &why));
}

/* (suspends) 0: everything is gone; 1: something remains and is on its way out. */
static int delete_all(struct attempt *t, struct val namespace, struct err *err)
{
	struct discovery d;
	discovery_init(&d);
	int r = discovery_refresh(&d, t->c->client, err);
	if (r == -ERR_CANCELED)
		return r;
	if (r < 0) {
		t->content.discovery_failure = arena_str(t->arena, err_str(err));
		err_clear(err);
	} else if (d.n_failed) {
		t->content.n_discovery_failed = d.n_failed;
		t->content.discovery_failure = arena_str(t->arena, str_of(d.failure));
	}
	r = delete_content(t, &d, err);
	discovery_done(&d);
	if (r < 0)
		return r;
	write_conditions(t, namespace);
	if (t->content.discovery_failure.n)
		return err_set(err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(t->content.discovery_failure));
	if (t->content.n_errors)
		return err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(t->content.errors[0]));
	return t->estimate_s > 0;
}

static int sync_namespace(struct controller *c, struct arena *a, str key, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *namespace = NULL;
	const struct client_write_options status = { .subresource = STR("status"), .reply = TYPE(core_v1, Namespace) },
					  finalize = { .subresource = STR("finalize"), .reply = TYPE(core_v1, Namespace) };
	struct attempt t = { .c = c, .arena = a, .name = key, .content = { .arena = a } };
	int r = client_change_object(c->client, TYPE(core_v1, Namespace), STR_NONE, key, to_terminating, NULL, &status, &namespace, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r < 0)
		return r;
	t.deleted_ns = moment_of(val_get(namespace->val, metadata, deletionTimestamp));
	if (!t.deleted_ns || !val_len(val_get(namespace->val, spec, finalizers)))
		return 0;
	if ((r = delete_all(&t, namespace->val, err)) < 0)
		return err_wrap(err, r, "deletion of namespace failed");
	if (r > 0) {
		controller_add_after(c, key, (t.estimate_s / 2 + 1) * 1000);
		return 0;
	}
	r = client_change_object(c->client, TYPE(core_v1, Namespace), STR_NONE, key, without_finalizer, NULL, &finalize, NULL, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int start(struct controller *c, struct err *err)
{
	(void)err;
	controller_watch(c, controller_informer(c, TYPE(core_v1, Namespace)), keys);
	c->sync = sync_namespace;
	return 0;
}

const struct controller_kind controller_namespace = { .name = "namespace-controller", .start = start, .workers = 10, .retry_max_ms = 60 * 1000 };
