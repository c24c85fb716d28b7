/*
 * DELETE. Removing an object can take three steps: told to stop (pods, with a grace period), waited for by those who asked
 * to (finalizers), gone. Each step that is not the last is a write of the object with a deletionTimestamp; the last one is
 * made here, when nothing stands in its way, or by the update that takes the last finalizer away (commit.c).
 */
#include "apiserver/admission/admission.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/list.h"
#include "apiserver/meta.h"
#include "apiserver/read.h"
#include "apiserver/stored.h"
#include "apiserver/strategy.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "machinery/convert.h"

#define ORPHAN "orphan"
#define FOREGROUND "foregroundDeletion"

enum { ATTEMPTS_MAX = 100 };

/* One object on its way out. */
struct removal {
	struct request *q;
	struct kind *kind;
	str key;
	unsigned strategy;
	struct object *current;       /* owned */
	struct val object;            /* current with what the deletion changes in it */
	bool graceful;                /* it is told to stop first */
	int64_t grace_s;
	struct object *shown;         /* the outcome (owned): the object as it was when it went, or as it is now */
	struct val shown_val;         /* the same when nothing was written (dry run) */
	bool told;                    /* this request has told it to stop at once: only the removal itself is missing */
	bool removed;
};

/* A status instead of the object is enough for most kinds, once it is gone. */
enum next { NEXT_REMOVE, NEXT_WRITE, NEXT_NOTHING };

static int refused(struct removal *m, str what, struct val wanted, str record, const char *might)
{
	struct request *q = m->q;
	const struct type *t = m->kind->hub;
	str want = val_as_str(wanted), name = val_str(m->current->val, metadata, name);
	/* these two have a way of their own, also in words */
	if (str_eq(m->kind->resource, STR("namespaces")) || str_eq(m->kind->resource, STR("customresourcedefinitions")))
		return fail_conflict(q, q->group, q->resource, name,
				     "Precondition failed: " STR_FMT " in precondition: " STR_FMT
				     ", " STR_FMT " in object meta: " STR_FMT, STR_ARG(what), STR_ARG(want), STR_ARG(what),
				     STR_ARG(record));
	return fail_conflict(q, t->package->group, t->name, name,
			     "the " STR_FMT " in the precondition (" STR_FMT ") does not match the " STR_FMT " in record (" STR_FMT
			     "). The object might have been %s", STR_ARG(what), STR_ARG(want), STR_ARG(what),
			     STR_ARG(record), might);
}

static int check_preconditions(struct removal *m)
{
	struct val uid = val_get(m->q->delete_options, preconditions, uid);
	struct val version = val_get(m->q->delete_options, preconditions, resourceVersion);
	str has_uid = val_str(m->current->val, metadata, uid),
		has_version = val_str(m->current->val, metadata, resourceVersion);
	if (val_exists(uid) && !str_eq(val_as_str(uid), has_uid))
		return refused(m, STR("UID"), uid, has_uid, "deleted and then recreated");
	if (val_exists(version) && !str_eq(val_as_str(version), has_version))
		return refused(m, STR("ResourceVersion"), version, has_version, "modified");
	return 0;
}

static struct val time_val(struct request *q, struct timestamp t)
{
	char text[TIME_TEXT_MAX];
	return val_of_str(arena_str(q->arena, time_format(t, text)));
}

static void put_meta(struct removal *m, atom key, struct val v)
{
	m->object = meta_put(m->q->arena, m->object, key, v);
}

static void bump_generation(struct removal *m)
{
	int64_t generation = val_int(m->object, metadata, generation);
	if (generation > 0)
		put_meta(m, A_generation, val_of_int(generation + 1));
}

/* The grace period of a pod's first deletion: what the client says, else the pod; none for one that is not running. */
static int64_t pod_grace(const struct removal *m)
{
	struct val asked = val_get(m->q->delete_options, gracePeriodSeconds), pod = m->current->val;
	str phase = val_str(pod, status, phase);
	int64_t s = val_exists(asked) ? val_as_int(asked) : val_int(pod, spec, terminationGracePeriodSeconds);
	if (!val_str(pod, spec, nodeName).n || str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		return 0;
	return s < 0 ? 1 : s;
}

/* A pod that is told to stop a second time can only be told to be quicker. False: nothing changes. */
static bool shorten_grace(struct removal *m)
{
	struct request *q = m->q;
	struct val asked = val_get(q->delete_options, gracePeriodSeconds);
	int64_t now_grace = val_int(m->current->val, metadata, deletionGracePeriodSeconds);
	int64_t period = val_as_int(asked) < 0 ? 1 : val_as_int(asked);
	if (!val_exists(asked) || period >= now_grace)
		return false;
	struct timestamp due, now = meta_timestamp(q);
	if (time_parse(val_str(m->current->val, metadata, deletionTimestamp), &due, NULL) < 0)
		due = now;
	due.seconds += period - now_grace;
	if (due.seconds < now.seconds) {
		due = now;
		period = period ? 1 : 0;
	}
	put_meta(m, A_deletionTimestamp, time_val(q, due));
	put_meta(m, A_deletionGracePeriodSeconds, val_of_int(period));
	m->graceful = true;
	m->grace_s = period;
	return true;
}

/* Sets graceful and what goes with it; false when the object is already on its way and nothing changes. */
static bool begin_grace(struct removal *m)
{
	struct request *q = m->q;
	struct val meta = val_get(m->current->val, metadata);
	m->graceful = false;
	if (!(m->strategy & STRATEGY_GRACEFUL))
		return true;
	if (val_exists(val_member(meta, A_deletionTimestamp))) {
		if (val_as_int(val_member(meta, A_deletionGracePeriodSeconds)) == 0)
			return true;
		return shorten_grace(m);
	}
	m->graceful = true;
	m->grace_s = pod_grace(m);
	struct timestamp due = meta_timestamp(q);
	due.seconds += m->grace_s;
	put_meta(m, A_deletionTimestamp, time_val(q, due));
	put_meta(m, A_deletionGracePeriodSeconds, val_of_int(m->grace_s));
	bump_generation(m);
	return true;
}

static bool has_finalizer(struct val finalizers, str name)
{
	VAL_EACH(f, finalizers)
		if (str_eq(val_as_str(*f), name))
			return true;
	return false;
}

/* The finalizers that the garbage collector works off, by the options, else as they are, else by the kind. */
static void set_finalizers(struct removal *m)
{
	struct request *q = m->q;
	if (m->strategy & STRATEGY_NO_DEPENDENTS)
		return;
	struct val had = val_get(m->object, metadata, finalizers), orphans = val_get(q->delete_options, orphanDependents);
	str policy = val_str(q->delete_options, propagationPolicy);
	bool orphan = false, foreground = false;
	if (val_exists(orphans)) {
		orphan = val_as_bool(orphans);
	} else if (policy.n) {
		orphan = str_eq(policy, STR("Orphan"));
		foreground = str_eq(policy, STR("Foreground"));
	} else if (has_finalizer(had, STR(ORPHAN)) || has_finalizer(had, STR(FOREGROUND))) {
		orphan = has_finalizer(had, STR(ORPHAN));
		foreground = !orphan;
	} else {
		orphan = m->strategy & STRATEGY_ORPHAN;
	}
	struct val_builder b = val_builder(q->arena);
	VAL_EACH(f, had)
		if (!str_eq(val_as_str(*f), STR(ORPHAN)) && !str_eq(val_as_str(*f), STR(FOREGROUND)))
			val_add_item(&b, *f);
	if (orphan)
		val_add_item(&b, VAL_LIT(ORPHAN));
	if (foreground)
		val_add_item(&b, VAL_LIT(FOREGROUND));
	if (orphan == has_finalizer(had, STR(ORPHAN)) && foreground == has_finalizer(had, STR(FOREGROUND)))
		return;
	put_meta(m, A_finalizers, b.n ? val_end_list(&b) : VAL_EMPTY);
}

static void mark_deleting(struct removal *m)
{
	struct timestamp was, now = meta_timestamp(m->q);
	str text = val_str(m->object, metadata, deletionTimestamp);
	if (!text.n)
		bump_generation(m);
	if (!text.n || time_parse(text, &was, NULL) < 0 || was.seconds > now.seconds)
		put_meta(m, A_deletionTimestamp, time_val(m->q, now));
	put_meta(m, A_deletionGracePeriodSeconds, val_of_int(0));
}

static enum next plan(struct removal *m)
{
	m->object = m->current->val;
	if (!begin_grace(m))
		return NEXT_NOTHING;
	set_finalizers(m);
	bool held = val_len(val_get(m->object, metadata, finalizers)) > 0;
	if (!m->graceful && held) {
		mark_deleting(m);
		return NEXT_WRITE;
	}
	return m->graceful ? NEXT_WRITE : NEXT_REMOVE;
}

/* A namespace is first emptied by the namespace controller, which then finalizes it. */
static enum next plan_namespace(struct removal *m)
{
	m->object = m->current->val;
	if (val_has(m->object, metadata, deletionTimestamp))
		return val_len(val_get(m->object, spec, finalizers)) ? NEXT_NOTHING : plan(m);
	put_meta(m, A_deletionTimestamp, meta_now(m->q));
	set_finalizers(m);
	m->object = val_with(m->q->arena, m->object, VAL_LIT("Terminating"), status, phase);
	return NEXT_WRITE;
}

/* ---- doing it: 1 when somebody else was faster ---- */

static int write_object(struct removal *m, struct err *err)
{
	if (m->q->dry_run) {
		m->shown_val = m->object;
		return 0;
	}
	if (val_equal(m->object, m->current->val)) {
		m->shown = object_ref(m->current);
		return 0;
	}
	struct object *now;
	int r = stored_put(m->q, m->kind, m->key, m->object, m->current->revision, &now, err);
	if (r < 0)
		return r;
	if (r == 0)
		object_unref(now);
	else
		m->shown = now;
	return r == 0;
}

static int remove_object(struct removal *m, struct err *err)
{
	struct request *q = m->q;
	const struct kind_hooks *hooks = m->kind->hooks;
	m->removed = true;
	if (q->dry_run) {
		m->shown_val = val_exists(m->shown_val) ? m->shown_val : m->current->val;
		return 0;
	}
	struct val none = VAL_EMPTY;
	int r = hooks->begin ? hooks->begin(q, m->current->val, &none) : 0;
	if (r < 0)
		return r;
	int64_t revision;
	r = stored_remove(q, m->current, &revision, NULL, err);
	if (hooks->finish)
		hooks->finish(q, r > 0, m->current->val, VAL_EMPTY);
	if (r <= 0)
		return r < 0 ? r : 1;
	object_unref(m->shown);
	m->shown = object_at_revision(m->current, revision);
	return 0;
}

static int not_found(struct removal *m)
{
	str name = m->kind->namespaced ? str_skip(m->key, (size_t)str_chr(m->key, '/') + 1) : m->key;
	return fail_not_found(m->q, m->q->group, m->q->resource, name);
}

/* Is it held back by finalizers? */
static bool is_held(const struct removal *m, bool is_namespace)
{
	return val_len(val_get(m->object, metadata, finalizers)) ||
	       (is_namespace && val_len(val_get(m->object, spec, finalizers)));
}

/* Told to stop at once, and nothing holds it: it is removed as it was written, if it was. */
static int remove_stopped(struct removal *m, struct err *err)
{
	if (m->shown) {
		object_unref(m->current);
		m->current = object_ref(m->shown);
		m->told = true;
	}
	return remove_object(m, err);
}

/* Another of the same name is another one. */
static bool is_same(const struct object *a, const struct object *b)
{
	return str_eq(val_str(a->val, metadata, uid), val_str(b->val, metadata, uid));
}

/* Once: 0 done, 1 again with the newest object. */
static int remove_once(struct removal *m, bool fresh, struct err *err)
{
	struct request *q = m->q;
	bool is_namespace = str_eq(m->kind->resource, STR("namespaces")) && !m->kind->group.n;
	CLEANUP(object_unrefp) struct object *before = TAKE(m->current);
	int r = stored_get(q, m->kind, m->key, fresh, &m->current, err);
	if (r < 0)
		return r;
	if (m->told && (!m->current || !is_same(before, m->current))) {
		m->shown = TAKE(before); /* who was told to stop (a kubelet) removed it first: that is as good */
		return 0;
	}
	if (!m->current)
		return not_found(m);
	if ((r = m->told ? 0 : check_preconditions(m)) < 0)
		return r;
	q->old = m->current->val;
	if ((r = admission_remove(q, err)) < 0)
		return r;
	switch (is_namespace ? plan_namespace(m) : plan(m)) {
	case NEXT_NOTHING:
		m->shown = object_ref(m->current);
		return 0;
	case NEXT_WRITE:
		r = write_object(m, err);
		return r != 0 || is_held(m, is_namespace) || !m->graceful || m->grace_s > 0 ? r : remove_stopped(m, err);
	default:
		return remove_object(m, err);
	}
}

static int remove_one(struct removal *m, struct err *err)
{
	for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
		int r = remove_once(m, attempt > 0, err);
		if (r <= 0)
			return r;
		object_unref(TAKE(m->shown));
		m->shown_val = VAL_EMPTY;
	}
	return err_set(err, ERR_CONFLICT, "the object changes too fast to be deleted");
}

/* The answer may show parts of the objects, and outlives them. */
static void removal_done(struct removal *m)
{
	m->q->failure = val_copy(m->q->arena, m->q->failure);
	m->q->answer.val = val_copy(m->q->arena, m->q->answer.val);
	m->q->old = VAL_EMPTY;
	object_unref(m->current);
	object_unref(m->shown);
}

static void warn_of_orphans(struct request *q)
{
	bool says = val_has(q->delete_options, propagationPolicy) || val_has(q->delete_options, orphanDependents);
	if (!says && str_eq(q->resource, STR("jobs")) && str_eq(q->group, STR("batch")))
		request_warn(q,
			     STR("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
				    "remove them or set propagationPolicy=Orphan to suppress this warning"));
}

/* Classes that the system cannot do without; a collection's removal takes them along, as in Kubernetes. */
static bool is_system_class(const struct request *q)
{
	return str_eq(q->resource, STR("priorityclasses")) && str_eq(q->group, STR("scheduling.k8s.io")) &&
	       (str_eq(q->name, STR("system-node-critical")) || str_eq(q->name, STR("system-cluster-critical")));
}

int write_delete(struct request *q, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	CLEANUP(removal_done) struct removal m = { .q = q, .kind = kind, .strategy = strategy_of(kind) };
	int r = meta_key_of(q, &m.key);
	if (r < 0)
		return r;
	if (is_system_class(q))
		return fail_forbidden(q, q->group, q->resource, q->name,
				      "this is a system priority class and cannot be deleted");
	warn_of_orphans(q);
	if ((r = remove_one(&m, err)) < 0)
		return r;
	struct val orphans = val_get(q->delete_options, orphanDependents);
	int status = !m.removed && val_exists(orphans) && !val_as_bool(orphans) ? 202 : 200;
	struct val last = m.shown ? m.shown->val : m.shown_val;
	if (m.removed && !(m.strategy & STRATEGY_RETURN_DELETED)) {
		answer_success(q, val_str(last, metadata, name), val_str(last, metadata, uid));
		q->answer.status = status;
	} else if (m.shown) {
		answer_object(q, status, TAKE(m.shown));
	} else {
		r = convert_object(q->arena, last, kind->hub, q->endpoint->type, &last, err);
		answer_val(q, status, last, q->endpoint->type);
	}
	return r;
}

int write_delete_collection(struct request *q, struct err *err)
{
	struct kind *kind = q->endpoint->kind;
	struct list_options options;
	struct list_page shown;
	int r = list_options_read(q, &options, err);
	if (r < 0 || (r = list_gather(q, &options, &shown, err)) < 0)
		return r;
	CLEANUP(list_page_done) struct list_page page = list_page_ref(&shown);
	warn_of_orphans(q);
	if ((r = list_answer(q, &shown, err)) < 0) /* what there was */
		return r;
	for (size_t i = 0; i < page.n; i++) {
		CLEANUP(removal_done) struct removal m = { .q = q, .kind = kind, .strategy = strategy_of(kind),
							   .key = page.objects[i]->key };
		r = remove_one(&m, err);
		if (r == -ERR_NOT_FOUND)
			q->failure = VAL_EMPTY;
		else if (r < 0)
			return r;
	}
	return 0;
}
