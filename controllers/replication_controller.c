/* ReplicationControllers are ReplicaSets of an older form: their selector is a map of labels. */
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/replica_set.h"

static struct val selector_of(struct arena *a, struct val set)
{
	struct val labels = val_get(set, spec, selector);

	/* One without labels matches nothing, not everything. */
	return val_len(labels) ? OBJECT(a, F(matchLabels, labels)) : VAL_EMPTY;
}

static int start(struct controller *c, struct err *err)
{
	static const struct replica_set_flavor flavor = { TYPE(core_v1, ReplicationController), "v1", "ReplicationController", selector_of, false };
	return replica_set_start(c, &flavor, err);
}

const struct controller_kind controller_replication_controller = {
	.name = "replicationcontroller-controller", .start = start, .workers = 5, .stop = replica_set_stop,
	.account = "replication-controller", .source = "replication-controller",
};
