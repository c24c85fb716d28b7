/*
 * Claims that are made from templates for pods, and who uses claims. A pod that names a template gets a claim of its own, whose name is told in
 * its status; claims of pods that have ended are given back, and those that were made for them deleted. The scheduler allocates and reserves;
 * only for pods that it has nothing to do with (they come with a node) reservations are made here. Keys are "pod:namespace/name" and
 * "claim:namespace/name".
 */
#include "controllers/resource_claim.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/owner.h"
#include "controllers/resource_claim_plan.h"
#include "machinery/resource_claim.h"

#define CLAIM TYPE(resource_v1, ResourceClaim)
#define TEMPLATE TYPE(resource_v1, ResourceClaimTemplate)
#define POD TYPE(core_v1, Pod)
#define CLAIM_INDEX "resourceClaim"
#define TEMPLATE_INDEX "resourceClaimTemplate"
#define OWNER_INDEX "owner"

struct made {
	str key, name;                /* in the block */
};

/* ---- which pods, which claims ---- */

static void add_in_namespace(struct val pod, str name, void (*add)(str value, void *arg), void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	add(arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(name)), arg);
}

static void pods_by_claim(struct val pod, void (*add)(str value, void *arg), void *arg)
{
	str name;
	bool made;

	VAL_EACH(e, val_get(pod, spec, resourceClaims))
		if (pod_claim_name(pod, *e, &name, &made) > 0)
			add_in_namespace(pod, name, add, arg);
}

static void pods_by_template(struct val pod, void (*add)(str value, void *arg), void *arg)
{
	VAL_EACH(e, val_get(pod, spec, resourceClaims))
		if (val_has(*e, resourceClaimTemplateName))
			add_in_namespace(pod, val_str(*e, resourceClaimTemplateName), add, arg);
}

static struct frozen *find(struct controller *c, const struct type *type, str namespace, str name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	return informer_get(controller_informer(c, type), arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)));
}

static bool needs_reservation(struct val pod, struct val claim)
{
	return val_str(pod, spec, nodeName).n && val_has(claim, status, allocation) && !claim_is_reserved_for(claim, pod);
}

static bool pod_needs_work(struct controller *c, struct val pod)
{
	str name;
	bool made;

	if (val_has(pod, metadata, deletionTimestamp) || pod_is_done(pod))
		return false;
	VAL_EACH(e, val_get(pod, spec, resourceClaims)) {
		int r = pod_claim_name(pod, *e, &name, &made);
		struct frozen *claim = r > 0 ? find(c, CLAIM, val_str(pod, metadata, namespace), name) : NULL;
		if (r < 0 || (r > 0 && !claim && made))
			return true;
		if (claim && (!made || owner_is(claim->val, pod)) && needs_reservation(pod, claim->val))
			return true;
	}
	return false;
}

static void add_key(struct controller *c, const char *kind, str namespace, str name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	controller_add(c, arena_printf(&a, "%s:" STR_FMT "/" STR_FMT, kind, STR_ARG(namespace), STR_ARG(name)));
}

static void consider_pod(struct controller *c, struct val pod, bool gone)
{
	str namespace = val_str(pod, metadata, namespace), name, extended = val_str(pod, status, extendedResourceClaimStatus, resourceClaimName);
	bool made;

	if (gone || pod_is_done(pod)) {
		VAL_EACH(e, val_get(pod, spec, resourceClaims))
			if (pod_claim_name(pod, *e, &name, &made) > 0)
				add_key(c, "claim", namespace, name);
		if (extended.n)
			add_key(c, "claim", namespace, extended);
	}
	if (!gone && pod_needs_work(c, pod))
		add_key(c, "pod", namespace, val_str(pod, metadata, name));
}

static str made_key(struct arena *a, struct val pod, str entry)
{
	return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(val_str(pod, metadata, uid)), STR_ARG(entry));
}

static void pod_changed(struct controller *c, struct frozen *old, struct frozen *pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct claims_state *s = c->state;
	bool replaced = old && pod && !str_eq(val_str(old->val, metadata, uid), val_str(pod->val, metadata, uid));

	if (old && (!pod || replaced)) {
		VAL_EACH(e, val_get(old->val, spec, resourceClaims))
			free(map_remove(&s->made, made_key(&a, old->val, val_str(*e, name))));
		consider_pod(c, old->val, true);
	}
	if (pod)
		consider_pod(c, pod->val, false);
}

static void consider_pods(struct controller *c, const char *index, struct val object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	INFORMER_EACH(pod, informer_each_indexed(controller_informer(c, POD), index, object_key(&a, object)))
		consider_pod(c, pod->val, false);
}

static void claim_changed(struct controller *c, struct frozen *old, struct frozen *claim)
{
	struct val object = claim ? claim->val : old->val;

	if (claim)
		add_key(c, "claim", val_str(object, metadata, namespace), val_str(object, metadata, name));
	consider_pods(c, CLAIM_INDEX, object);
}

static void template_changed(struct controller *c, struct frozen *old, struct frozen *template)
{
	(void)old;
	if (template)
		consider_pods(c, TEMPLATE_INDEX, template->val);
}

/* ---- claims from templates ---- */

/* One that was made before, though the pod does not say so; empty: none. */
static str made_before(struct controller *c, struct arena *a, struct val pod, str entry)
{
	const struct claims_state *s = c->state;

	INFORMER_EACH(claim, informer_each_indexed(controller_informer(c, CLAIM), OWNER_INDEX, val_str(pod, metadata, uid)))
		if (str_eq(val_as_str(val_find(val_get(claim->val, metadata, annotations), STR(POD_CLAIM_ANNOTATION))), entry))
			return arena_str(a, val_str(claim->val, metadata, name));
	const struct made *m = map_get(&s->made, made_key(a, pod, entry));
	return m ? arena_str(a, m->name) : STR("");
}

static void remember(struct controller *c, struct arena *a, struct val pod, str entry, str name)
{
	struct claims_state *s = c->state;
	const struct frozen *shown = find(c, POD, val_str(pod, metadata, namespace), val_str(pod, metadata, name));
	str key = made_key(a, pod, entry);

	/* The pod went while its claim was made: nobody will tell any more that this can be forgotten. */
	if (!shown || !str_eq(val_str(shown->val, metadata, uid), val_str(pod, metadata, uid)))
		return;
	struct made *m = mem_zalloc(sizeof(*m) + key.n + name.n);
	char *text = (char *)(m + 1);

	memcpy(text, key.p, key.n);
	memcpy(text + key.n, name.p, name.n);
	*m = (struct made){ str_span(text, key.n), str_span(text + key.n, name.n) };
	free(map_put(&s->made, m->key, m));
}

/* (suspends) */
static int make_claim(struct controller *c, struct arena *a, struct val pod, struct val entry, str *ret_name, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *claim = NULL;
	str name = val_str(entry, resourceClaimTemplateName);
	struct frozen *template = find(c, TEMPLATE, val_str(pod, metadata, namespace), name);

	if (!template)
		return err_set(err, ERR_NOT_FOUND, "resource claim template \"" STR_FMT "\": resourceclaimtemplate.resource.k8s.io \"" STR_FMT "\" not found",
			       STR_ARG(name), STR_ARG(name));
	struct val object = claim_from_template(a, controller_hold(c, a, template), pod, entry);
	int r = client_create(c->client, CLAIM, object, NULL, &claim, err);
	if (r < 0)
		return err_wrap(err, r, "create ResourceClaim ");
	*ret_name = arena_str(a, val_str(claim->val, metadata, name));
	remember(c, a, pod, val_str(entry, name), *ret_name);
	return 0;
}

/* (suspends) *ret_name is empty when there is nothing to tell; *ret_new: the pod does not know it. */
static int claim_for(struct controller *c, struct arena *a, struct val pod, struct val entry, str *ret_name, bool *ret_new, struct err *err)
{
	str name;
	bool made;
	int r = pod_claim_name(pod, entry, &name, &made);

	*ret_name = STR("");
	if (r == -ERR_INVALID)
		return err_set(err, ERR_INVALID, "checking for claim before creating it: pod \"" STR_FMT "/" STR_FMT "\", spec.resourceClaim \"" STR_FMT
			       "\": none of the supported fields are set", STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)),
			       STR_ARG(val_str(entry, name)));
	if (r == 0 || !made)
		return 0;
	const struct frozen *claim = r > 0 ? find(c, CLAIM, val_str(pod, metadata, namespace), name) : NULL;
	if (claim && owner_is(claim->val, pod)) {
		*ret_name = name;
		return 0;
	}
	if (r > 0 && !claim) {
		CLEANUP(frozen_unrefp) struct frozen *asked = NULL;
		/* It may only not be shown yet: of the pod we may have heard sooner. */
		int known = client_get(c->client, CLAIM, val_str(pod, metadata, namespace), name, &asked, err);
		if (known < 0 && known != -ERR_NOT_FOUND)
			return known;
		err_clear(err);
		if (asked && owner_is(asked->val, pod)) {
			*ret_name = name;
			return 0;
		}
	}
	*ret_new = true;
	*ret_name = made_before(c, a, pod, val_str(entry, name));
	/* The pod knows one that is gone: not the one that was made for it once. */
	if (ret_name->n && !(r > 0 && str_eq(*ret_name, name)))
		return 0;
	return make_claim(c, a, pod, entry, ret_name, err);
}

/* (suspends) */
static int tell_pod(struct controller *c, struct arena *a, struct val pod, struct val statuses, struct err *err)
{
	struct val meta = OBJECT(a, F(name, val_get(pod, metadata, name)), F(namespace, val_get(pod, metadata, namespace)));
	struct val object = OBJECT(a, F(metadata, meta), F(status, OBJECT(a, F(resourceClaimStatuses, statuses))));
	int r = client_apply(c->client, POD, object, &(struct client_write_options){ .subresource = STR("status"), .manager = STR("ResourceClaimController"),
			     .force = true }, NULL, err);

	return r < 0 ? err_wrap(err, r, "update pod " STR_FMT "/" STR_FMT " ResourceClaimStatuses", STR_ARG(val_str(pod, metadata, namespace)),
				STR_ARG(val_str(pod, metadata, name))) : 0;
}

/* (suspends) */
static int make_claims(struct controller *c, struct arena *a, struct val pod, struct err *err)
{
	struct val_builder statuses = val_builder(a);
	bool new = false;

	VAL_EACH(e, val_get(pod, spec, resourceClaims)) {
		str name, entry = val_str(*e, name);
		int r = claim_for(c, a, pod, *e, &name, &new, err);
		if (r == -ERR_CANCELED)
			return r;
		if (r < 0) {
			controller_event(c, pod, true, "FailedResourceClaimCreation", "PodResourceClaim " STR_FMT ": %s", STR_ARG(entry), err->msg);
			return err_wrap(err, r, "pod " STR_FMT "/" STR_FMT ", PodResourceClaim " STR_FMT, STR_ARG(val_str(pod, metadata, namespace)),
					STR_ARG(val_str(pod, metadata, name)), STR_ARG(entry));
		}
		if (name.n)
			val_add_item(&statuses, OBJECT(a, F(name, VAL_STR(entry)), F(resourceClaimName, VAL_STR(name))));
	}
	return new ? tell_pod(c, a, pod, val_end_list(&statuses), err) : 0;
}

/* (suspends) For a pod that came with a node. */
static int reserve_claims(struct controller *c, struct arena *a, struct val pod, struct err *err)
{
	str name;
	bool made;

	VAL_EACH(e, val_get(pod, spec, resourceClaims)) {
		if (pod_claim_name(pod, *e, &name, &made) <= 0)
			continue;
		struct frozen *shown = find(c, CLAIM, val_str(pod, metadata, namespace), name);
		if (!shown)
			return 0;
		struct val claim = controller_hold(c, a, controller_latest(c, shown));
		if ((made && !owner_is(claim, pod)) || !needs_reservation(pod, claim))
			continue;
		struct val users = val_list_append(a, val_get(claim, status, reservedFor), claim_user(a, pod));
		int r = controller_write(c, CLAIM, val_with(a, claim, users, status, reservedFor), "status", err);
		if (r < 0)
			return err_wrap(err, r, "reserve claim " STR_FMT, STR_ARG(object_key(a, claim)));
	}
	return 0;
}

static int sync_pod(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *shown = informer_get(controller_informer(c, POD), key);

	/* One that has ended gets nothing: sync_claim would take it away again, and so on for ever. */
	if (!shown || val_has(shown->val, metadata, deletionTimestamp) || pod_is_done(shown->val))
		return 0;
	struct val pod = controller_hold(c, a, shown);
	int r = make_claims(c, a, pod, err);
	return r == 0 && val_str(pod, spec, nodeName).n ? reserve_claims(c, a, pod, err) : r;
}

/* ---- who uses a claim ---- */

/* (suspends) 1: still; 0: not any more. Only the server knows of pods that informers do not show, as they may be late. */
static int user_stays(struct controller *c, struct val claim, struct val user, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *asked = NULL;
	str namespace = val_str(claim, metadata, namespace), name = val_str(user, name), uid = val_str(user, uid);

	if (val_str(user, apiGroup).n || !str_eq(val_str(user, resource), STR("pods")))
		return 1;
	const struct frozen *pod = find(c, POD, namespace, name);
	if (pod)
		return str_eq(val_str(pod->val, metadata, uid), uid) && !pod_is_done(pod->val);
	int r = client_get(c->client, POD, namespace, name, &asked, err);
	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	err_clear(err);
	return asked && str_eq(val_str(asked->val, metadata, uid), uid);
}

/* (suspends) Each write begins with the result of the one before. */
static int carry_out(struct controller *c, struct arena *a, struct val claim, const struct claim_plan *p, struct err *err)
{
	struct frozen *answer = NULL;
	int r = 0;

	if (val_exists(p->status)) {
		r = client_update(c->client, CLAIM, p->status, &(struct client_write_options){ .subresource = STR("status") }, &answer, err);
		if (r < 0)
			return r;
		claim = val_copy(a, answer->val);
		frozen_unref(answer);
	}
	if (p->unlock && claim_has_finalizer(claim) && !val_has(claim, status, allocation))
		r = client_update(c->client, CLAIM, claim_without_finalizer(a, claim), NULL, NULL, err);
	return r;
}

static int sync_claim(struct controller *c, struct arena *a, str key, struct err *err)
{
	struct frozen *shown = informer_get(controller_informer(c, CLAIM), key);
	size_t n = 0;

	if (!shown)
		return 0;
	struct val claim = controller_hold(c, a, controller_latest(c, shown));
	bool *keep = ARENA_ARRAY(a, bool, val_len(val_get(claim, status, reservedFor)) + 1);
	VAL_EACH(u, val_get(claim, status, reservedFor)) {
		int r = user_stays(c, claim, *u, err);
		if (r < 0)
			return r;
		keep[n++] = r > 0;
	}
	struct claim_plan p = claim_plan_users(a, claim, keep);
	int r = carry_out(c, a, claim, &p, err);
	if (r < 0 || !p.unused || !claim_pod_name(claim).n)
		return r;
	const struct frozen *pod = find(c, POD, val_str(claim, metadata, namespace), claim_pod_name(claim));
	if (!claim_is_left_over(claim, pod ? pod->val : VAL_EMPTY))
		return 0;
	r = client_delete(c->client, CLAIM, val_str(claim, metadata, namespace), val_str(claim, metadata, name), NULL, err);
	return r < 0 && r != -ERR_NOT_FOUND ? err_wrap(err, r, "delete unused generated claim " STR_FMT, STR_ARG(key)) : 0;
}

/* ---- */

static int sync_key(struct controller *c, struct arena *a, str key, struct err *err)
{
	str kind, object;

	(void)str_cut(key, ':', &kind, &object);
	return str_eq(kind, STR("pod")) ? sync_pod(c, a, object, err) : sync_claim(c, a, object, err);
}

static int start(struct controller *c, struct err *err)
{
	struct informer *pods = controller_informer(c, POD), *claims = controller_informer(c, CLAIM);

	(void)err;
	c->sync = sync_key;
	c->state = mem_zalloc(sizeof(struct claims_state));
	informer_index(pods, CLAIM_INDEX, pods_by_claim);
	informer_index(pods, TEMPLATE_INDEX, pods_by_template);
	informer_index(claims, OWNER_INDEX, informer_by_owner);
	controller_watch(c, pods, pod_changed);
	controller_watch(c, claims, claim_changed);
	controller_watch(c, controller_informer(c, TEMPLATE), template_changed);
	return 0;
}

static void stop(struct controller *c)
{
	struct claims_state *s = c->state;
	struct map_iter it = map_iter(&s->made);

	for (struct made *m; (m = map_next(&it, NULL));)
		free(m);
	map_done(&s->made);
	free(s);
}

const struct controller_kind controller_resource_claim = { .name = "resourceclaim-controller", .start = start, .stop = stop,
	.account = "resource-claim-controller", .source = "resource_claim" };
