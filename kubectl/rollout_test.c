#include "kubectl/ktl_testing.h"
#include "kubectl/rollout.h"

TEST(rollout_states)
{
	static const struct { enum ktl_workload what; const char *yaml; int result; const char *text; } cases[] = {
		{ KTL_DEPLOYMENT, "{metadata: {name: w, generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1}}", 0,
		  "Waiting for deployment spec update to be observed...\n" },
		{ KTL_DEPLOYMENT, "{metadata: {name: w, generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, updatedReplicas: 1, replicas: 3}}", 0,
		  "Waiting for deployment \"w\" rollout to finish: 1 out of 3 new replicas have been updated...\n" },
		{ KTL_DEPLOYMENT, "{metadata: {name: w, generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, updatedReplicas: 3, replicas: 4}}", 0,
		  "Waiting for deployment \"w\" rollout to finish: 1 old replicas are pending termination...\n" },
		{ KTL_DEPLOYMENT, "{metadata: {name: w}, spec: {replicas: 3}, status: {updatedReplicas: 3, replicas: 3, availableReplicas: 2}}", 0,
		  "Waiting for deployment \"w\" rollout to finish: 2 of 3 updated replicas are available...\n" },
		{ KTL_DEPLOYMENT, "{metadata: {name: w}, spec: {replicas: 3}, status: {updatedReplicas: 3, replicas: 3, availableReplicas: 3}}", 1,
		  "deployment \"w\" successfully rolled out\n" },
		{ KTL_DEPLOYMENT, "{metadata: {name: w}, spec: {replicas: 3}, status: {conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}", -1,
		  "deployment \"w\" exceeded its progress deadline" },
		{ KTL_DAEMON_SET, "{metadata: {name: d}, spec: {updateStrategy: {type: OnDelete}}}", -1,
		  "rollout status is only available for RollingUpdate strategy type" },
		{ KTL_DAEMON_SET, "{metadata: {name: d}, spec: {updateStrategy: {type: RollingUpdate}}, status: {desiredNumberScheduled: 2, updatedNumberScheduled: 1}}", 0,
		  "Waiting for daemon set \"d\" rollout to finish: 1 out of 2 new pods have been updated...\n" },
		{ KTL_STATEFUL_SET, "{metadata: {name: s, generation: 1}, spec: {replicas: 2, updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 1, readyReplicas: 1}}", 0,
		  "Waiting for 1 pods to be ready...\n" },
		{ KTL_STATEFUL_SET, "{metadata: {name: s, generation: 1}, spec: {replicas: 1, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, readyReplicas: 1, updatedReplicas: 1}}", 1,
		  "partitioned roll out complete: 1 new pods have been updated...\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(ktl_test_done) struct ktl k = { 0 };
		str text = STR_NONE;
		CHECK_INT(ktl_rollout_state(&k, cases[i].what, ktl_test_tree(&k, cases[i].yaml), 0, &text), cases[i].result);
		if (cases[i].result < 0)
			text = k.failures->text;
		CHECK_STR_ROW(i, text, cases[i].text);
	}
}
