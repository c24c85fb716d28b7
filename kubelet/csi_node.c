/*
 * The CSINode of this node: which CSI drivers it has, none to begin with, and that the volume plugins of former times are drivers now. It
 * belongs to the Node; one of an earlier Node of the name is removed first. The node is not ready before.
 */
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/register_priv.h"

enum { FIRST_POLL_MS = 10, POLL_MS = 1000, CALL_MS = 10000, TRY_MS = 500, TRIES = 6, FIRST_WAIT_MS = 30, FACTOR = 8, QUICK_TRIES = 4, QUICK_WAIT_MS = 10, QUICK_FACTOR = 5 };

#define CSI_NODE TYPE(storage_v1, CSINode)
#define MIGRATED_KEY "storage.alpha.kubernetes.io/migrated-plugins"
#define MIGRATED "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd," \
		 "kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume"

/* (suspends) Until the API server answers, and lets us look: soon, where both start at the same time. */
static int wait_for_server(const struct csi_node_options *o, struct err *err)
{
	for (int64_t pause_ms = FIRST_POLL_MS;; pause_ms = MIN(2 * pause_ms, (int64_t)POLL_MS)) {
		CLEANUP(frozen_unrefp) struct frozen *found = NULL;
		struct err failed = ERR_INIT;
		int r;
		{
			DEADLINE_SCOPE(CALL_MS);
			r = client_get(o->client, CSI_NODE, STR_NONE, o->node_name, &found, &failed);
		}
		if (r >= 0 || r == -ERR_NOT_FOUND)
			return 0;
		if ((r = fiber_sleep_ms(pause_ms, err)) < 0)
			return r;
	}
}

static struct val annotated(struct arena *a, struct val csi_node)
{
	struct val annotations = val_get(csi_node, metadata, annotations);

	annotations = val_sorted(a, val_put(a, annotations, atom_make(a, STR(MIGRATED_KEY)), VAL_LIT(MIGRATED)));
	return val_with(a, csi_node, annotations, metadata, annotations);
}

static int create(const struct csi_node_options *o, struct arena *a, str uid, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *made = NULL;
	struct val owner = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Node")), F(name, VAL_STR(o->node_name)), F(uid, VAL_STR(uid)));
	struct val metadata = OBJECT(a, F(name, VAL_STR(o->node_name)), F(ownerReferences, LIST(a, owner)));
	struct val csi_node = OBJECT(a, F(metadata, metadata), F(spec, OBJECT(a, F(drivers, VAL_EMPTY_LIST))));

	return client_create(o->client, CSI_NODE, annotated(a, csi_node), NULL, &made, err);
}

/* ret_owner: the last one that is a node. */
static bool is_owned(struct val csi_node, str name, str uid, str *ret_owner)
{
	*ret_owner = STR_NONE;
	VAL_EACH(owner, val_get(csi_node, metadata, ownerReferences)) {
		if (!str_eq(val_str(*owner, kind), STR("Node")))
			continue;
		*ret_owner = val_str(*owner, uid);
		if (str_eq(val_str(*owner, name), name) && str_eq(*ret_owner, uid))
			return true;
	}
	return false;
}

/* Removing it is half the way: the next attempt makes a new one. */
static int give_up(const struct csi_node_options *o, str owner, str uid, struct err *err)
{
	int r = client_delete(o->client, CSI_NODE, STR_NONE, o->node_name, NULL, err);

	if (r < 0)
		return err_wrap(err, r, "error deleting existing CSINode \"" STR_FMT "\"", STR_ARG(o->node_name));
	return err_set(err, ERR_CONFLICT, "CSINode \"" STR_FMT "\" was owned by different node (oldNodeID=\"" STR_FMT "\", newNodeID=\"" STR_FMT
		       "\"), deleted it", STR_ARG(o->node_name), STR_ARG(owner), STR_ARG(uid));
}

/* (suspends) */
static int attempt(const struct csi_node_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *node = NULL, *found = NULL, *written = NULL;
	str owner;
	int r;
	DEADLINE_SCOPE(CALL_MS);

	if ((r = client_get(o->client, TYPE(core_v1, Node), STR_NONE, o->node_name, &node, err)) < 0)
		return r;
	str uid = val_str(node->val, metadata, uid);
	r = client_get(o->client, CSI_NODE, STR_NONE, o->node_name, &found, err);
	if (r == -ERR_NOT_FOUND)
		return create(o, &a, uid, err);
	if (r < 0)
		return r;
	if (!is_owned(found->val, o->node_name, uid, &owner))
		return give_up(o, owner, uid, err);
	if (str_eq(val_as_str(val_find(val_get(found->val, metadata, annotations), STR(MIGRATED_KEY))), STR(MIGRATED)))
		return 0;
	return client_update(o->client, CSI_NODE, annotated(&a, found->val), NULL, &written, err);
}

/* (suspends) Some attempts, one soon after another. */
static int attempt_quickly(const struct csi_node_options *o, struct err *err)
{
	int64_t wait_ms = QUICK_WAIT_MS;
	int r = attempt(o, err);

	for (int i = 1; i < QUICK_TRIES && r < 0 && fiber_check(NULL) >= 0; i++, wait_ms *= QUICK_FACTOR)
		r = fiber_sleep_ms(wait_ms, err) < 0 ? -ERR_CANCELED : attempt(o, err);
	return r < 0 ? err_wrap(err, r, "error updating CSINode annotation: timed out waiting for the condition; caused by") : 0;
}

int csi_node_try(const struct csi_node_options *o, struct err *err)
{
	DEADLINE_SCOPE(TRY_MS);
	return attempt(o, err);
}

int csi_node_run(const struct csi_node_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int64_t wait_ms = FIRST_WAIT_MS;
	int r = wait_for_server(o, err);

	for (int i = 0; i < TRIES && r >= 0; i++, wait_ms *= FACTOR) {
		struct err failed = ERR_INIT;
		if (attempt_quickly(o, &failed) >= 0) {
			o->problem(o->arg, STR_NONE);
			return 0;
		}
		if ((r = fiber_check(err)) < 0)
			break;
		log_error("the CSINode cannot be made", KV("error", &failed));
		o->problem(o->arg, arena_printf(&a, "failed to initialize CSINode: " STR_FMT, STR_ARG(err_str(&failed))));
		if (i + 1 == TRIES)
			return err_set(err, ERR_UNAVAILABLE, "Failed to initialize CSINode after retrying: " STR_FMT, STR_ARG(err_str(&failed)));
		r = fiber_sleep_ms(wait_ms, err);
	}
	return r;
}
