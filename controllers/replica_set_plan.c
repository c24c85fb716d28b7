#include "controllers/replica_set_plan.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"
#include "machinery/selector.h"

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* How many of the n names, which are sorted, come before that one; with same_too also those that are it. */
static int64_t count_before(const str *names, size_t n, str name, bool same_too)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = str_cmp(names[middle], name);
		if (order < 0 || (same_too && order == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low;
}

/* How many active ones of related are on the node of each. */
static const int64_t *ranks_of(struct arena *a, struct val pods, struct val related)
{
	int64_t *ranks = ARENA_ARRAY(a, int64_t, val_len(pods));
	str *nodes = ARENA_ARRAY(a, str, val_len(related) + 1);
	size_t n = 0, i = 0;

	VAL_EACH(pod, related)
		if (pod_is_active(*pod))
			nodes[n++] = val_str(*pod, spec, nodeName);
	if (n > 1)
		qsort(nodes, n, sizeof(*nodes), by_text);
	VAL_EACH(pod, pods) {
		str node = val_str(*pod, spec, nodeName);
		ranks[i++] = count_before(nodes, n, node, true) - count_before(nodes, n, node, false);
	}
	return ranks;
}

struct replica_set_plan replica_set_plan(struct arena *a, struct val set, struct val active, struct val related, int64_t now_ns)
{
	int64_t have = (int64_t)val_len(active), want = val_int(set, spec, replicas);
	struct replica_set_plan plan = { .delete = VAL_EMPTY_LIST };

	if (have < want) {
		plan.create = (size_t)MIN(want - have, (int64_t)REPLICA_SET_BURST);
	} else if (have > want) {
		int64_t n = MIN(have - want, (int64_t)REPLICA_SET_BURST);
		struct val order = n < have ? pods_in_deletion_order(a, active, ranks_of(a, active, related), now_ns) : active;
		plan.delete = val_list(a, order.items, (size_t)n);
	}
	return plan;
}

static struct val number(int64_t n) { return n ? val_of_int(n) : VAL_EMPTY; }

/* A failure that is told already stays as it was told first; one that is over is not told any more. */
static struct val conditions_of(struct arena *a, struct val set, size_t active, const char *failure, int64_t now_ns)
{
	struct val conditions = val_get(set, status, conditions);
	bool told = val_exists(condition_find(conditions, "ReplicaFailure"));
	int64_t more = (int64_t)active - val_int(set, spec, replicas);

	if (!failure && told) {
		conditions = condition_remove(a, conditions, "ReplicaFailure");
	} else if (failure && !told) {
		struct val reason = more < 0 ? VAL_LIT("FailedCreate") : more > 0 ? VAL_LIT("FailedDelete") : VAL_EMPTY;
		struct val condition = OBJECT(a, F(type, VAL_LIT("ReplicaFailure")), F(status, VAL_LIT("True")),
					      F(lastTransitionTime, moment_time(a, now_ns)), F(reason, reason), F(message, VAL_STR(str_of(failure))));
		conditions = val_list_append(a, val_exists(conditions) ? conditions : VAL_EMPTY_LIST, condition);
	}
	return val_len(conditions) ? conditions : VAL_EMPTY;
}

struct val replica_set_status(struct arena *a, struct val set, struct val active, int64_t terminating, const char *failure, int64_t now_ns)
{
	struct selector labels = selector_of_labels(a, val_get(set, spec, template, metadata, labels));
	int64_t labeled = 0, ready = 0, available = 0, min_ready_s = val_int(set, spec, minReadySeconds);

	VAL_EACH(pod, active) {
		labeled += selector_matches(&labels, val_get(*pod, metadata, labels));
		ready += pod_is_ready(*pod);
		available += pod_is_available(*pod, min_ready_s, now_ns);
	}
	struct val status = OBJECT(a, F(replicas, number((int64_t)val_len(active))), F(fullyLabeledReplicas, number(labeled)),
				   F(readyReplicas, number(ready)), F(availableReplicas, number(available)),
				   F(terminatingReplicas, terminating >= 0 ? val_of_int(terminating) : VAL_EMPTY),
				   F(observedGeneration, number(val_int(set, metadata, generation))),
				   F(conditions, conditions_of(a, set, val_len(active), failure, now_ns)));
	struct val old = val_get(set, status);
	return val_equal(val_exists(old) ? old : VAL_EMPTY_OBJECT, status) ? set : val_with(a, set, status, status);
}
