/*
 * The plugin VolumeBinding. The filter only asks; how the chosen node's claims are served is found once more in reserve, so that nothing has
 * to be kept per node. What reserve decides is assumed at once: the next pod sees those volumes taken. pre_bind writes it and waits for the
 * controllers to do the rest.
 */
#include "scheduler/volume_binding.h"

#include "base/mem.h"
#include "client/client.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "scheduler/plugin.h"

enum { BIND_TIMEOUT_S = 600 };

struct bind_write {                   /* an object that pre_bind writes */
	struct frozen *object;        /* as assumed, then as the server answered; owned */
	str key, version;             /* of the assumption */
	str claim;                    /* of a volume: the claim that gets it */
	bool done;
};

struct binding {
	struct pod_bindings needs;
	bool all_bound;               /* there is nothing to write */
	struct bind_write *volumes, *claims;
	size_t n_volumes, n_claims;
	str node;
};

#define CONFLICT "node(s) didn't match PersistentVolume's node affinity"
#define NO_VOLUME "node(s) didn't find available persistent volumes to bind"
#define NO_SPACE "node(s) did not have enough free storage"
#define GONE "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

/* One of the bound volumes, one of the others, or both: all that pod_bindings_find says. */
static const struct { unsigned why; str text; } why_texts[] = {
	{ BIND_NODE_CONFLICT, STR_INIT(CONFLICT) },
	{ BIND_NO_VOLUME, STR_INIT(NO_VOLUME) },
	{ BIND_NO_SPACE, STR_INIT(NO_SPACE) },
	{ BIND_VOLUME_GONE, STR_INIT(GONE) },
	{ BIND_NODE_CONFLICT | BIND_NO_VOLUME, STR_INIT(CONFLICT "\n" NO_VOLUME) },
	{ BIND_NODE_CONFLICT | BIND_NO_SPACE, STR_INIT(CONFLICT "\n" NO_SPACE) },
	{ BIND_VOLUME_GONE | BIND_NO_VOLUME, STR_INIT(GONE "\n" NO_VOLUME) },
	{ BIND_VOLUME_GONE | BIND_NO_SPACE, STR_INIT(GONE "\n" NO_SPACE) },
};

/* All claims are there and usable; *ret_any: there are some. */
static enum verdict claims_check(struct cycle *c, bool *ret_any)
{
	str name;
	bool ephemeral;
	*ret_any = false;
	VAL_EACH(v, val_get(c->pod, spec, volumes)) {
		if (!pod_volume_claim(c->arena, c->pod, *v, &name, &ephemeral))
			continue;
		*ret_any = true;
		struct val claim = storage_claim(c->storage, val_str(c->pod, metadata, namespace), name);
		if (!val_exists(claim) && ephemeral)
			c->reason = arena_printf(c->arena, "waiting for ephemeral volume controller to create the persistentvolumeclaim \"" STR_FMT "\"",
						 STR_ARG(name));
		else if (!val_exists(claim))
			c->reason = arena_printf(c->arena, "persistentvolumeclaim \"" STR_FMT "\" not found", STR_ARG(name));
		else if (str_eq(val_str(claim, status, phase), STR("Lost")))
			c->reason = arena_printf(c->arena, "persistentvolumeclaim \"" STR_FMT "\" bound to non-existent persistentvolume \"" STR_FMT "\"",
						 STR_ARG(name), STR_ARG(val_str(claim, spec, volumeName)));
		else if (val_has(claim, metadata, deletionTimestamp))
			c->reason = arena_printf(c->arena, "persistentvolumeclaim \"" STR_FMT "\" is being deleted", STR_ARG(name));
		else if (!ephemeral || claim_is_for_pod(c->arena, claim, c->pod, &c->reason))
			continue;
		return UNRESOLVABLE;
	}
	return FIT;
}

static enum verdict fail(struct cycle *c, const struct err *err)
{
	c->reason = arena_str(c->arena, err_str(err));
	return FAILED;
}

static enum verdict binding_pre_filter(struct cycle *c, void **ret_state, bool *ret_skip)
{
	struct err err = ERR_INIT;
	bool any;
	enum verdict r = claims_check(c, &any);
	*ret_skip = !any;
	if (r != FIT || !any)
		return r;
	struct binding *b = ARENA_NEW(c->arena, struct binding);
	if (pod_bindings_make(c->arena, c->storage, c->pod, &b->needs, &err) < 0)
		return fail(c, &err);
	if (b->needs.unbound) {
		c->reason = STR("pod has unbound immediate PersistentVolumeClaims");
		return UNRESOLVABLE;
	}
	*ret_state = b;
	return FIT;
}

static struct val node_labels(const struct cycle *c, uint32_t node)
{
	return val_get(c->nodes->object[node]->val, metadata, labels);
}

static str why_text(unsigned why)
{
	size_t i = 0;
	while (i < ARRAY_LEN(why_texts) - 1 && why_texts[i].why != why)
		i++;
	return why_texts[i].text;
}

static enum verdict binding_filter(struct cycle *c, void *state, uint32_t node)
{
	struct binding *b = state;
	struct err err = ERR_INIT;
	unsigned why;
	if (pod_bindings_find(&b->needs, word_str(c->nodes, c->nodes->name[node]), node_labels(c, node), &why, &err) < 0)
		return fail(c, &err);
	if (!why)
		return FIT;
	c->reason = why_text(why);
	return UNRESOLVABLE;
}

/* ---- the chosen node ---- */

static struct binding *binding_of(const struct cycle *c)
{
	return c->state ? c->state[c->at] : NULL;
}

static void forget(struct copies *kind, struct bind_write *all, size_t n, bool keep_done)
{
	for (size_t i = 0; i < n; i++) {
		if (!keep_done || !all[i].done)
			copies_restore(kind, all[i].key, all[i].version);
		frozen_unref(all[i].object);
		all[i].object = NULL;
	}
}

static void binding_forget(struct cycle *c, struct binding *b, bool keep_done)
{
	forget(&c->storage->kinds[STORAGE_VOLUME], b->volumes, b->n_volumes, keep_done);
	forget(&c->storage->kinds[STORAGE_CLAIM], b->claims, b->n_claims, keep_done);
}

static int assume(struct cycle *c, enum storage_kind kind, struct val object, struct bind_write *ret, struct err *err)
{
	*ret = (struct bind_write){ .object = val_freeze(object), .key = object_key(c->arena, object) };
	ret->version = arena_str(c->arena, val_str(object, metadata, resourceVersion));
	return copies_assume(&c->storage->kinds[kind], ret->object, err);
}

static enum verdict binding_reserve(struct cycle *c, uint32_t node)
{
	struct binding *b = binding_of(c);
	struct err err = ERR_INIT;
	unsigned why;
	if (!b)
		return FIT;
	size_t n = b->needs.n_waiting;
	b->all_bound = n == 0;
	if (b->all_bound)
		return FIT;
	b->node = arena_str(c->arena, word_str(c->nodes, c->nodes->name[node]));
	if (pod_bindings_find(&b->needs, b->node, node_labels(c, node), &why, &err) < 0)
		return fail(c, &err);
	if (why) {
		c->reason = why_text(why);
		return FAILED;
	}
	b->volumes = ARENA_ARRAY(c->arena, struct bind_write, n);
	b->claims = ARENA_ARRAY(c->arena, struct bind_write, n);
	b->n_volumes = b->n_claims = 0;
	for (size_t i = 0; i < n; i++) {
		const struct waiting_claim *w = &b->needs.waiting[i];
		int r;
		if (w->chosen) {
			struct bind_write *to = &b->volumes[b->n_volumes++];
			r = assume(c, STORAGE_VOLUME, volume_with_claim(c->arena, w->chosen->volume, w->claim), to, &err);
			to->claim = object_key(c->arena, w->claim);
		} else {
			r = assume(c, STORAGE_CLAIM, claim_with_node(c->arena, w->claim, b->node), &b->claims[b->n_claims++], &err);
		}
		if (r < 0) {
			binding_forget(c, b, false);
			return fail(c, &err);
		}
	}
	return FIT;
}

static void binding_unreserve(struct cycle *c, uint32_t node)
{
	struct binding *b = binding_of(c);
	(void)node;
	if (b)
		binding_forget(c, b, false);
}

static int write_all(struct cycle *c, const struct type *type, struct bind_write *all, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		struct frozen *answer = NULL;
		int r = client_update(c->storage->client, type, all[i].object->val, NULL, &answer, err);
		if (r < 0)
			return r;
		frozen_unref(all[i].object);
		all[i].object = answer;
		all[i].done = true;
	}
	return 0;
}

static int check_affinity(struct val volume, str node, struct val labels, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct bind_candidate x = { .anywhere = !val_has(volume, spec, nodeAffinity, required) };
	if (x.anywhere)
		return 0;
	node_selector_compile(&a, val_get(volume, spec, nodeAffinity, required), NULL, &x.nodes);
	struct val thing = OBJECT(&a, F(metadata, OBJECT(&a, F(labels, labels))));
	if (node_selector_matches(&x.nodes, thing, NULL) == 1)
		return 0;
	return err_set(err, ERR_INTERNAL, "pv \"" STR_FMT "\" node affinity doesn't match node \"" STR_FMT "\": no matching NodeSelectorTerms",
		       STR_ARG(val_str(volume, metadata, name)), STR_ARG(node));
}

/* 1: bound; 0: not yet. */
static int check_volume(struct cycle *c, const struct bind_write *w, str node, struct val labels, struct err *err)
{
	struct frozen *volume = copies_told(&c->storage->kinds[STORAGE_VOLUME], w->key);
	struct frozen *claim = copies_told(&c->storage->kinds[STORAGE_CLAIM], w->claim);
	if (!volume || !claim)
		return err_set(err, ERR_NOT_FOUND, "failed to check binding: %s \"" STR_FMT "\" not found",
			       volume ? "persistentvolumeclaims" : "persistentvolumes", STR_ARG(volume ? w->claim : w->key));
	if (object_version_compare(w->object->val, volume->val) > 0)
		return 0;
	int r = check_affinity(volume->val, node, labels, err);
	if (r < 0)
		return r;
	if (!val_str(volume->val, spec, claimRef, uid).n)
		return err_set(err, ERR_INTERNAL, "ClaimRef got reset for pv \"" STR_FMT "\"", STR_ARG(w->key));
	return claim_is_bound(claim->val);
}

static int check_claim(struct cycle *c, const struct bind_write *w, str node, struct val labels, struct err *err)
{
	struct frozen *claim = copies_told(&c->storage->kinds[STORAGE_CLAIM], w->key);
	if (!claim)
		return err_set(err, ERR_NOT_FOUND, "failed to check provisioning pvc: persistentvolumeclaims \"" STR_FMT "\" not found",
			       STR_ARG(w->key));
	if (object_version_compare(w->object->val, claim->val) > 0)
		return 0;
	str name = val_str(claim->val, metadata, name), volume_name = val_str(claim->val, spec, volumeName);
	struct val annotations = val_get(claim->val, metadata, annotations);
	if (!val_len(annotations))
		return err_set(err, ERR_INTERNAL, "selectedNode annotation reset for PVC \"" STR_FMT "\"", STR_ARG(name));
	if (!str_eq(val_as_str(val_find(annotations, STR(SELECTED_NODE_ANNOTATION))), node))
		return err_set(err, ERR_INTERNAL, "provisioning failed for PVC \"" STR_FMT "\"", STR_ARG(name));
	if (volume_name.n) {
		struct frozen *volume = copies_told(&c->storage->kinds[STORAGE_VOLUME], volume_name);
		if (!volume) /* the informer is behind */
			return 0;
		int r = check_affinity(volume->val, node, labels, err);
		if (r < 0)
			return r;
	}
	return claim_is_bound(claim->val);
}

static int check_all(struct cycle *c, const struct binding *b, struct err *err)
{
	uint32_t at = nodes_find(c->nodes, b->node);
	int r = 1;
	if (at == UINT32_MAX)
		return err_set(err, ERR_NOT_FOUND, "failed to get node \"" STR_FMT "\": node \"" STR_FMT "\" not found", STR_ARG(b->node), STR_ARG(b->node));
	for (size_t i = 0; i < b->n_volumes && r > 0; i++)
		r = check_volume(c, &b->volumes[i], b->node, node_labels(c, at), err);
	for (size_t i = 0; i < b->n_claims && r > 0; i++)
		r = check_claim(c, &b->claims[i], b->node, node_labels(c, at), err);
	return r;
}

static int64_t bind_timeout_ms(const struct cycle *c)
{
	const int64_t *seconds = c->config ? c->config[c->at] : NULL;
	return 1000 * (seconds ? *seconds : BIND_TIMEOUT_S);
}

static int wait_bound(struct cycle *c, const struct binding *b, struct err *err)
{
	int r;
	DEADLINE_SCOPE(bind_timeout_ms(c));
	while ((r = check_all(c, b, err)) == 0)
		if ((r = fiber_cond_wait(&c->storage->changed, err)) < 0)
			break;
	return r == -ERR_TIMEOUT ? err_set(err, ERR_TIMEOUT, "context deadline exceeded") : r;
}

static int binding_pre_bind(struct cycle *c, uint32_t node, struct err *err)
{
	struct binding *b = binding_of(c);
	(void)node;
	if (!b || b->all_bound)
		return 0;
	int r = write_all(c, TYPE(core_v1, PersistentVolume), b->volumes, b->n_volumes, err);
	if (r == 0)
		r = write_all(c, TYPE(core_v1, PersistentVolumeClaim), b->claims, b->n_claims, err);
	if (r == 0 && (r = wait_bound(c, b, err)) < 0)
		r = err_wrap(err, r, "binding volumes");
	/* What was written stays: there is no way back through the server, and the informer will show it. */
	binding_forget(c, b, true);
	return r < 0 ? r : 0;
}

static bool binding_works(const struct cycle *c)
{
	const struct binding *b = binding_of(c);
	return b && !b->all_bound;
}

static int binding_configure(struct val args, void **ret_config, struct err *err)
{
	int64_t s = val_has(args, bindTimeoutSeconds) ? val_int(args, bindTimeoutSeconds) : BIND_TIMEOUT_S;
	if (s < 0)
		return err_set(err, ERR_INVALID, "bindTimeoutSeconds: Invalid value: %lld: invalid BindTimeoutSeconds, should not be a negative value",
			       (long long)s);
	int64_t *config = mem_alloc(sizeof(*config));
	*config = s;
	*ret_config = config;
	return 0;
}

static bool binding_hint(struct cycle *c, struct val pod, unsigned event, struct val old, struct val new)
{
	(void)c;
	if (event == EV_PVC)
		return pod_names_claim(pod, new, true);
	if (event == EV_CSI_NODE)
		return !val_exists(new); /* drivers, which share the event and are not shown; nodes of CSI do not matter here */
	/* Capacities share the event of classes, and are not shown either. */
	return event != EV_STORAGE_CLASS || !val_exists(old) || !val_equal(val_get(old, allowedTopologies), val_get(new, allowedTopologies));
}

const struct plugin plugin_volume_binding = {
	.name = "VolumeBinding",
	.events = EV_PVC | EV_PV | EV_STORAGE_CLASS | EV_NODE_ADD | EV_NODE_LABEL | EV_CSI_NODE,
	.hint = binding_hint,
	.pre_filter = binding_pre_filter,
	.filter = binding_filter,
	.reserve = binding_reserve,
	.unreserve = binding_unreserve,
	.pre_bind = binding_pre_bind,
	.pre_bind_works = binding_works,
	.configure = binding_configure,
};
