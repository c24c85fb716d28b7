/*
 * A node that is new is made whole, with its status. One that exists stays what it is, with those labels, annotations and resources that
 * the kubelet answers for brought up to date; taints are for the first time only, others may have removed them since.
 */
#include <unistd.h>

#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/register_priv.h"
#include "machinery/resources.h"

static const char attach_annotation[] = "volumes.kubernetes.io/controller-managed-attach-detach";

/* ---- an existing node ---- */

static struct val put(struct arena *a, struct val map, str key, struct val v)
{
	return val_put(a, map, atom_make(a, key), v);
}

static struct val reconcile_labels(struct arena *a, struct val initial, struct val existing)
{
	static const char *const names[] = {
		"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region", "node.kubernetes.io/instance-type",
		"beta.kubernetes.io/instance-type", "kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/windows-build",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct val v = val_find(initial, str_of(names[i]));
		if (val_exists(v))
			existing = put(a, existing, str_of(names[i]), val_as_str(v).n ? v : VAL_EMPTY);
	}
	return val_len(existing) ? val_sorted(a, existing) : VAL_EMPTY;
}

/* Sizes of huge pages are those of this machine now. */
static struct val reconcile_huge(struct arena *a, struct val initial, struct val existing)
{
	VAL_EACH_MEMBER(m, initial) {
		struct val was = val_member(existing, m->key);
		if (resource_is_huge_page(atom_str(m->key)) && (!val_exists(was) || quantity_cmp(quantity_of(was), quantity_of(m->val)) != 0))
			existing = val_put(a, existing, m->key, m->val);
	}
	VAL_EACH_MEMBER(m, existing)
		if (resource_is_huge_page(atom_str(m->key)) && !val_exists(val_member(initial, m->key)))
			existing = val_put(a, existing, m->key, VAL_EMPTY);
	return existing;
}

static struct val reconcile_resources(struct arena *a, struct val initial, struct val existing, bool reset)
{
	if (!val_len(existing))
		existing = initial;
	if (reset)
		VAL_EACH_MEMBER(m, existing)
			if (resource_is_extended(atom_str(m->key)))
				existing = val_put(a, existing, m->key, VAL_LIT("0"));
	existing = reconcile_huge(a, initial, existing);
	return val_len(existing) ? val_sorted(a, existing) : VAL_EMPTY;
}

struct val node_reconcile(struct arena *a, struct val initial, struct val existing, bool reset)
{
	struct val wanted = val_find(val_get(initial, metadata, annotations), str_of(attach_annotation));
	struct val annotations = put(a, val_get(existing, metadata, annotations), str_of(attach_annotation), wanted), node = existing;

	annotations = val_len(annotations) ? val_sorted(a, annotations) : VAL_EMPTY;
	node = val_with(a, node, annotations, metadata, annotations);
	node = val_with(a, node, reconcile_labels(a, val_get(initial, metadata, labels), val_get(node, metadata, labels)), metadata, labels);
	node = val_with(a, node, reconcile_resources(a, val_get(initial, status, capacity), val_get(node, status, capacity), reset), status,
			capacity);
	node = val_with(a, node, reconcile_resources(a, val_get(initial, status, allocatable), val_get(node, status, allocatable), reset), status,
			allocatable);
	return val_equal(node, existing) ? existing : node;
}

/* Without notes of who has which device this may be a machine that was set up anew. */
static bool devices_unknown(struct node_keeper *n, struct arena *a)
{
	return access(arena_printf(a, STR_FMT "/device-plugins/kubelet_internal_checkpoint", STR_ARG(n->o.node->root)).p, F_OK) < 0;
}

static int take_over(struct node_keeper *n, struct arena *a, struct val initial, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *existing = NULL;
	{
		DEADLINE_SCOPE(node_keeper_timeout_ms(n));
		int r = client_get(n->o.client, TYPE(core_v1, Node), STR_NONE, n->o.node->name, &existing, err);
		if (r < 0)
			return err_wrap(err, r, "error getting existing node");
	}
	log_info("node was previously registered", KV("node", n->o.node->name));
	struct val node = node_reconcile(a, initial, existing->val, devices_unknown(n, a));
	if (val_same(node, existing->val)) {
		node_keeper_see(n, TAKE(existing));
		return 0;
	}
	int r = node_keeper_patch(n, a, existing->val, node, err);
	return r < 0 ? err_wrap(err, r, "error updating node") : 0;
}

/* ---- a new one ---- */

/* (suspends) */
static int make_initial(struct node_keeper *n, struct arena *a, struct val *ret, struct err *err)
{
	struct val attach = val_get(n->config, enableControllerAttachDetach), status;
	struct node_facts facts;
	int r = node_keeper_status(n, a, VAL_EMPTY, &facts, &status, err);

	if (r < 0)
		return r;
	struct val node = node_object_make(n->o.node, &facts, a);
	if (val_exists(attach) && !val_as_bool(attach))
		node = val_without(a, node, metadata, annotations);
	*ret = val_with(a, node, status, status);
	return 0;
}

int node_keeper_register(struct node_keeper *n, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct frozen *made = NULL;
	struct val initial;
	int r = make_initial(n, &a, &initial, err);

	if (r < 0)
		return r;
	frozen_unref(n->initial);
	n->initial = val_freeze(initial);
	if (!n->told_initial)
		node_keeper_tell(n, &a, VAL_EMPTY, val_get(initial, status));
	n->told_initial = true;
	{
		DEADLINE_SCOPE(node_keeper_timeout_ms(n));
		r = client_create(n->o.client, TYPE(core_v1, Node), initial, NULL, &made, err);
	}
	if (r == 0)
		node_keeper_see(n, made);
	/* Who may not make nodes may still have one that was made for him. */
	else if (r == -ERR_ALREADY_EXISTS || r == -ERR_FORBIDDEN)
		r = take_over(n, &a, initial, err);
	if (r == 0) {
		n->registered = true;
		log_info("node is registered", KV("node", n->o.node->name));
	}
	return r;
}
