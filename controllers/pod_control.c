/*
 * Pods are found by an index that has every pod once: under the uid of its controlling owner, or under "/namespace" when it has none. A sync
 * therefore costs as much as there are pods to look at, however many others there are.
 */
#include "controllers/pod_control.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "machinery/names.h"
#include "machinery/selector.h"

#define OWNER_INDEX "pod-owner"

/* ---- one pod ---- */

struct val pod_from_template(struct arena *a, struct val template, struct val owner, struct val owner_ref)
{
	struct val meta = val_get(template, metadata);
	str name = val_str(owner, metadata, name);
	str prefix = name.n <= NAME_SUBDOMAIN_MAX ? arena_join(a, name, STR("-")) : name;

	meta = OBJECT(a, F(generateName, VAL_STR(prefix)), F(namespace, val_get(owner, metadata, namespace)), F(labels, val_get(meta, labels)),
		      F(annotations, val_get(meta, annotations)),
		      F(ownerReferences, val_exists(owner_ref) ? LIST(a, owner_ref) : VAL_EMPTY), F(finalizers, val_get(meta, finalizers)));
	return OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")), F(metadata, meta), F(spec, val_get(template, spec)));
}

int pod_control_create(struct controller *c, struct arena *a, struct val owner, struct val pod, struct frozen **ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *made = NULL;

	(void)a;
	if (!val_len(val_get(pod, metadata, labels)))
		return err_set(err, ERR_INTERNAL, "unable to create pods, no labels");
	int r = client_create(c->client, TYPE(core_v1, Pod), pod, NULL, &made, err);
	if (r < 0) {
		if (r != -ERR_CANCELED && !error_is_namespace_ending(err))
			controller_event(c, owner, true, "FailedCreate", "Error creating: %s", err ? err->msg : "");
		return r;
	}
	controller_event(c, owner, false, "SuccessfulCreate", "Created pod: " STR_FMT, STR_ARG(val_str(made->val, metadata, name)));
	if (ret)
		*ret = TAKE(made);
	return 0;
}

int pod_control_delete(struct controller *c, struct val owner, str namespace, str name, struct err *err)
{
	int r = client_delete(c->client, TYPE(core_v1, Pod), namespace, name, NULL, err);

	if (r == -ERR_NOT_FOUND)
		return 1;
	if (r < 0) {
		if (r != -ERR_CANCELED)
			controller_event(c, owner, true, "FailedDelete", "Error deleting: %s", err ? err->msg : "");
		return err_wrap(err, r, "unable to delete pods");
	}
	controller_event(c, owner, false, "SuccessfulDelete", "Deleted pod: " STR_FMT, STR_ARG(name));
	return 0;
}

/* ---- many at a time ---- */

/* A Job may have more pods than the loop may have fibers, and others need some too. */
enum { AT_ONCE_MAX = 500 };

struct call {
	int (*make)(size_t i, void *arg, struct err *err);
	void *arg;
	size_t i;
	int result;
	struct err err;
};

static int run_call(void *arg)
{
	struct call *c = arg;

	c->result = c->make(c->i, c->arg, &c->err);
	return c->result;
}

/* Calls from..from+n-1, all at once: how many succeeded. err is that of the first that failed. */
static size_t run_batch(size_t from, size_t n, int (*make)(size_t i, void *arg, struct err *err), void *arg, struct err *err)
{
	struct call *calls = mem_array(n, sizeof(*calls));
	size_t good = 0;
	bool told = false;
	struct fiber_group group;

	fiber_group_init(&group);
	for (size_t i = 0; i < n; i++) {
		calls[i] = (struct call){ .make = make, .arg = arg, .i = from + i, .result = -ERR_CANCELED };
		if (n == 1)
			(void)run_call(&calls[i]);
		else if ((calls[i].result = fiber_group_spawn(&group, run_call, &calls[i], &calls[i].err, "pod %zu", from + i)) == 0)
			calls[i].result = -ERR_CANCELED;
	}
	(void)fiber_group_wait(&group, NULL);
	fiber_group_done(&group);
	for (size_t i = 0; i < n; i++) {
		good += calls[i].result >= 0;
		if (calls[i].result < 0 && !told && err) {
			*err = calls[i].err;
			if (!err->code)
				(void)err_set(err, (enum err_code)-calls[i].result, "canceled");
			told = true;
		}
	}
	free(calls);
	return good;
}

size_t pod_control_at_once(size_t n, int (*make)(size_t i, void *arg, struct err *err), void *arg, struct err *err)
{
	size_t good = 0;

	for (size_t done = 0, now; done < n; done += now) {
		now = MIN(n - done, (size_t)AT_ONCE_MAX);
		good += run_batch(done, now, make, arg, good == done ? err : NULL); /* the first error stays */
	}
	return good;
}

size_t pod_control_batches(size_t n, int (*make)(size_t i, void *arg, struct err *err), void *arg, struct err *err)
{
	size_t done = 0, good = 0;

	for (size_t batch = 1; done < n; batch = MIN(2 * batch, (size_t)AT_ONCE_MAX)) {
		size_t now = MIN(batch, n - done), succeeded = run_batch(done, now, make, arg, err);
		good += succeeded;
		done += now;
		if (succeeded < now)
			break;
	}
	return good;
}

/* ---- whose ---- */

static void by_owner(struct val object, void (*add)(str value, void *arg), void *arg)
{
	struct val ref = owner_controller(object);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	add(val_exists(ref) ? val_str(ref, uid) : arena_join(&a, STR("/"), val_str(object, metadata, namespace)), arg);
}

void pod_control_index(struct informer *pods) { informer_index(pods, OWNER_INDEX, by_owner); }
struct informer_iter pods_of_owner(const struct informer *pods, str uid) { return informer_each_indexed(pods, OWNER_INDEX, uid); }

struct informer_iter pods_without_owner(const struct informer *pods, str namespace)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	return informer_each_indexed(pods, OWNER_INDEX, arena_join(&a, STR("/"), namespace));
}

/* ---- adopting and releasing ---- */

struct claim {
	struct controller *controller;
	struct arena *arena;
	const struct type *type;      /* of what is claimed */
	struct val owner, ref;
	const struct type *owner_type;
	const char *kind;
	struct selector selector;
	bool (*member)(struct val object, struct val owner);
	bool asked;                   /* may_adopt has been asked, and this was the answer */
	int allowed;
	struct err why_not;
};

/* The copy of an informer may be old: an owner that is being deleted must not take on more. */
static int ask_owner(struct claim *m, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *fresh = NULL;
	str namespace = val_str(m->owner, metadata, namespace), name = val_str(m->owner, metadata, name);
	int r = client_get(m->controller->client, m->owner_type, namespace, name, &fresh, err);

	if (r < 0)
		return r;
	str uid = val_str(fresh->val, metadata, uid), wanted = val_str(m->owner, metadata, uid), ends = val_str(fresh->val, metadata, deletionTimestamp);
	if (!str_eq(uid, wanted))
		return err_set(err, ERR_CONFLICT, "original %s " STR_FMT "/" STR_FMT " is gone: got uid " STR_FMT ", wanted " STR_FMT, m->kind,
			       STR_ARG(namespace), STR_ARG(name), STR_ARG(uid), STR_ARG(wanted));
	if (ends.n)
		return err_set(err, ERR_CONFLICT, STR_FMT "/" STR_FMT " has just been deleted at " STR_FMT, STR_ARG(namespace), STR_ARG(name), STR_ARG(ends));
	return 0;
}

static int adopt(struct claim *m, struct val object, struct err *err)
{
	str namespace = val_str(object, metadata, namespace), name = val_str(object, metadata, name);

	if (!m->asked)
		m->allowed = ask_owner(m, &m->why_not);
	m->asked = true;
	if (m->allowed < 0)
		return err_set(err, m->why_not.code, "can't adopt " STR_FMT " " STR_FMT "/" STR_FMT " (" STR_FMT "): %s", STR_ARG(m->type->name),
			       STR_ARG(namespace), STR_ARG(name), STR_ARG(val_str(object, metadata, uid)), m->why_not.msg);
	return client_patch(m->controller->client, m->type, namespace, name, CLIENT_PATCH_STRATEGIC, owner_adopt_patch(m->arena, object, m->ref), NULL,
			    NULL, err);
}

static int release(struct claim *m, struct val object, struct err *err)
{
	struct val patch = owner_release_patch(m->arena, object, val_str(m->owner, metadata, uid));
	int r = client_patch(m->controller->client, m->type, val_str(object, metadata, namespace), val_str(object, metadata, name),
			     CLIENT_PATCH_STRATEGIC, patch, NULL, NULL, err);

	/* Invalid: it has no such owner any more, or is another object of that name. */
	return r == -ERR_INVALID ? 0 : r;
}

/* 1: it is the owner's. */
static int claim_one(struct claim *m, struct val object, struct err *err)
{
	bool matches = selector_matches(&m->selector, val_get(object, metadata, labels)) && (!m->member || m->member(object, m->owner));
	bool ending = val_has(m->owner, metadata, deletionTimestamp);
	int r;

	if (val_exists(owner_controller(object))) {
		if (!owner_is(object, m->owner))
			return 0;
		if (matches || ending)
			return matches;
		r = release(m, object, err);
		return r == -ERR_NOT_FOUND ? 0 : MIN(r, 0);
	}
	if (ending || !matches || val_has(object, metadata, deletionTimestamp))
		return 0;
	r = adopt(m, object, err);
	return r == -ERR_NOT_FOUND ? 0 : r < 0 ? r : 1;
}

int controller_claim(struct controller *c, struct arena *a, const struct type *type, struct val candidates, struct val owner,
		     const char *api_version, const char *kind, struct val selector, bool (*member)(struct val object, struct val owner),
		     struct val *ret, struct err *err)
{
	struct claim m = { .controller = c, .arena = a, .type = type, .owner = owner, .ref = owner_ref(a, owner, api_version, kind), .kind = kind,
		.owner_type = schema_kind(str_of(api_version), str_of(kind)), .member = member };
	struct val_builder mine = val_builder(a);
	int result = 0, r = selector_of_object(a, selector, &m.selector, err);

	if (r < 0)
		return r;
	VAL_EACH(object, candidates) {
		struct err failed = ERR_INIT;
		r = claim_one(&m, *object, &failed);
		if (r < 0 && result == 0) {
			result = r;
			if (err)
				*err = failed;
		}
		if (r > 0)
			val_add_item(&mine, *object);
	}
	*ret = val_end_list(&mine);
	return result;
}

static void gather(struct controller *c, struct arena *a, struct informer_iter it, bool active, struct val_builder *list)
{
	struct frozen *pod;

	while ((pod = informer_next(&it)))
		if (!active || pod_is_active(pod->val))
			val_add_item(list, controller_hold(c, a, pod));
	informer_iter_done(&it);
}

static int claim_pods(struct controller *c, struct arena *a, struct val owner, const char *api_version, const char *kind, struct val selector,
		      struct informer *pods, bool active, struct val *ret, struct err *err)
{
	struct val_builder list = val_builder(a);

	gather(c, a, pods_of_owner(pods, val_str(owner, metadata, uid)), active, &list);
	gather(c, a, pods_without_owner(pods, val_str(owner, metadata, namespace)), active, &list);
	return controller_claim(c, a, TYPE(core_v1, Pod), val_end_list(&list), owner, api_version, kind, selector, NULL, ret, err);
}

int pod_control_claim(struct controller *c, struct arena *a, struct val owner, const char *api_version, const char *kind, struct val selector,
		      struct informer *pods, struct val *ret, struct err *err)
{
	return claim_pods(c, a, owner, api_version, kind, selector, pods, false, ret, err);
}

int pod_control_claim_active(struct controller *c, struct arena *a, struct val owner, const char *api_version, const char *kind,
			     struct val selector, struct informer *pods, struct val *ret, struct err *err)
{
	return claim_pods(c, a, owner, api_version, kind, selector, pods, true, ret, err);
}

/* ---- what a pod is like ---- */

static bool is_terminal(struct val pod)
{
	str phase = val_str(pod, status, phase);
	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

bool pod_is_active(struct val pod) { return !is_terminal(pod) && !val_has(pod, metadata, deletionTimestamp); }
bool pod_is_terminating(struct val pod) { return !is_terminal(pod) && val_has(pod, metadata, deletionTimestamp); }
struct val pod_condition(struct val pod, const char *type) { return condition_find(val_get(pod, status, conditions), type); }

/* When a ready pod will have been so for long enough; INT64_MAX: nobody knows since when it is. */
static int64_t available_at(struct val pod, int64_t min_ready_s)
{
	int64_t since_ns = moment_of(val_get(pod_condition(pod, "Ready"), lastTransitionTime));
	return since_ns ? since_ns + min_ready_s * NS_PER_S : INT64_MAX;
}

bool pod_is_available(struct val pod, int64_t min_ready_s, int64_t now_ns)
{
	return pod_is_ready(pod) && (min_ready_s == 0 || available_at(pod, min_ready_s) <= now_ns);
}

int64_t pods_available_in_ns(struct val pods, int64_t min_ready_s, int64_t now_ns)
{
	int64_t first_ns = INT64_MAX;

	VAL_EACH(pod, pods)
		if (min_ready_s > 0 && pod_is_ready(*pod) && available_at(*pod, min_ready_s) > now_ns)
			first_ns = MIN(first_ns, available_at(*pod, min_ready_s));
	return first_ns == INT64_MAX ? -1 : first_ns - now_ns;
}
