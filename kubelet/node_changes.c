/* What is told about a node beyond its status: whether that has changed, events, and that it is alive. */
#include "codec/atoms.h"
#include "codec/time.h"
#include "kubelet/node_status.h"

static struct val without_heartbeats(struct arena *a, struct val status)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(c, val_get(status, conditions))
		val_add_item(&b, val_without(a, *c, lastHeartbeatTime));
	return val_with(a, status, val_end_list(&b), conditions);
}

bool node_status_changed(struct arena *a, struct val before, struct val after)
{
	return !val_equal(without_heartbeats(a, before), without_heartbeats(a, after));
}

/* ---- events ---- */

static str condition_status(struct val status, const char *type)
{
	VAL_EACH(c, val_get(status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)))
			return val_str(*c, status);
	return STR_NONE;
}

static void add_event(struct val_builder *b, const char *type, const char *reason, str message)
{
	val_add_item(b, OBJECT(b->arena, F(type, val_of_str(str_of(type))), F(reason, val_of_str(str_of(reason))),
			       F(message, val_of_str(message))));
}

struct val node_status_events(const struct kubelet_node *n, struct arena *a, struct val before, struct val after)
{
	static const struct {
		const char *type, *yes, *no;
		bool of_new;          /* told about a condition that was not there before, too */
	} kinds[] = {
		{ "MemoryPressure", "NodeHasInsufficientMemory", "NodeHasSufficientMemory", true },
		{ "DiskPressure", "NodeHasDiskPressure", "NodeHasNoDiskPressure", true },
		{ "PIDPressure", "NodeHasInsufficientPID", "NodeHasSufficientPID", true },
		{ "Ready", "NodeReady", "NodeNotReady", false },
	};
	struct val_builder b = val_builder(a);
	str was = val_str(before, nodeInfo, bootID), is = val_str(after, nodeInfo, bootID);

	if (was.n && !str_eq(was, is))
		add_event(&b, "Warning", "Rebooted",
			  arena_printf(a, "Node " STR_FMT " has been rebooted, boot id: " STR_FMT, STR_ARG(n->name), STR_ARG(is)));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		str old = condition_status(before, kinds[i].type), new = condition_status(after, kinds[i].type);
		const char *reason = str_eq(new, STR("True")) ? kinds[i].yes : kinds[i].no;
		if (!str_eq(old, new) && (old.n || kinds[i].of_new))
			add_event(&b, "Normal", reason, arena_printf(a, "Node " STR_FMT " status is now: %s", STR_ARG(n->name), reason));
	}
	return val_end_list(&b);
}

/* ---- the lease ---- */

struct val node_lease_make(const struct kubelet_node *n, struct arena *a, struct val before, str node_uid, int64_t duration_s, int64_t now_ns)
{
	struct val lease = before, name = val_of_str(n->name);
	char text[TIME_TEXT_MAX];
	str now = microtime_format((struct timestamp){ now_ns / 1000000000, (int32_t)(now_ns % 1000000000) }, text);

	if (!val_exists(before)) {
		struct val spec = OBJECT(a, F(holderIdentity, name), F(leaseDurationSeconds, val_of_int(duration_s)));
		lease = OBJECT(a, F(kind, VAL_LIT("Lease")), F(apiVersion, VAL_LIT("coordination.k8s.io/v1")),
			       F(metadata, OBJECT(a, F(name, name), F(namespace, VAL_LIT("kube-node-lease")))), F(spec, spec));
	}
	if (node_uid.n && !val_len(val_get(lease, metadata, ownerReferences))) {
		struct val owner = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Node")), F(name, name), F(uid, val_of_str(node_uid)));
		lease = val_with(a, lease, LIST(a, owner), metadata, ownerReferences);
	}
	/* The configuration may be another one than when it was made. */
	lease = val_with(a, lease, val_of_int(duration_s), spec, leaseDurationSeconds);
	return val_with(a, lease, val_of_str(arena_str(a, now)), spec, renewTime);
}
