#include "scheduler/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/profile.h"
#include "scheduler/scheduler.h"

#define HEAD "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

static int load(const char *text, struct frozen **ret, struct err *err)
{
	char path[] = "/tmp/c8s-scheduler-config-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC), r;

	CHECK(fd >= 0);
	CHECK_INT(file_write_fd(fd, str_of(text), -1, path, NULL), 0);
	close(fd);
	r = scheduler_config_load(path, VAL_EMPTY, ret, err);
	unlink(path);
	return r;
}

TEST(config_defaults_are_those_of_kubernetes)
{
	CLEANUP(frozen_unrefp) struct frozen *f = NULL;
	struct err err = ERR_INIT;

	CHECK_INT(scheduler_config_load(NULL, VAL_EMPTY, &f, &err), 0);
	struct val c = f->val, p = val_at(val_get(c, profiles), 0);
	CHECK_INT(val_int(c, parallelism), 16);
	CHECK_INT(val_int(c, podInitialBackoffSeconds), 1);
	CHECK_INT(val_int(c, podMaxBackoffSeconds), 10);
	CHECK_STR(val_str(c, leaderElection, resourceName), "kube-scheduler");
	CHECK_STR(val_str(c, leaderElection, leaseDuration), "15s");
	CHECK(val_bool(c, leaderElection, leaderElect));
	CHECK_INT(val_int(c, clientConnection, burst), 100);
	CHECK_STR(val_str(p, schedulerName), "default-scheduler");
	CHECK_INT(val_len(val_get(p, plugins, multiPoint, enabled)), plugins_count());
	CHECK_STR(val_str(val_at(val_get(p, pluginConfig), 0), name), "DefaultPreemption");
	CHECK_INT(val_int(val_at(val_get(p, pluginConfig), 0), args, minCandidateNodesAbsolute), 100);
}

TEST(config_profiles_say_which_plugins)
{
	CLEANUP(frozen_unrefp) struct frozen *f = NULL;
	struct profile p = { .n = 0 };
	struct err err = ERR_INIT;

	CHECK_INT(load(HEAD "profiles:\n- schedulerName: x\n  percentageOfNodesToScore: 50\n  plugins:\n    multiPoint:\n      disabled:\n"
		       "      - name: ImageLocality\n    score:\n      enabled:\n      - name: NodeResourcesFit\n        weight: 7\n"
		       "      disabled:\n      - name: TaintToleration\n", &f, &err), 0);
	CHECK_INT(profile_init(&p, val_at(val_get(f->val, profiles), 0), &err), 0);
	CHECK_INT(p.percentage, 50);
	CHECK_STR(str_of(p.plugins[p.order[POINT_SCORE][0]]->name), "NodeResourcesFit");
	CHECK_INT(p.weight[p.order[POINT_SCORE][0]], 7);
	for (unsigned k = 0; k < p.n_order[POINT_SCORE]; k++) {
		CHECK(strcmp(p.plugins[p.order[POINT_SCORE][k]]->name, "TaintToleration") != 0);
		CHECK(strcmp(p.plugins[p.order[POINT_SCORE][k]]->name, "ImageLocality") != 0);
	}
	profile_done(&p);
}

TEST(config_refuses_what_kubernetes_refuses)
{
	static const struct { const char *text, *message; } t[] = {
		{ "kind: KubeSchedulerConfiguration\n", "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration\n'" },
		{ HEAD "parallelism: -1\n", "parallelism: Invalid value: -1: should be an integer value greater than zero" },
		{ HEAD "percentageOfNodesToScore: 101\n", "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]" },
		{ HEAD "podInitialBackoffSeconds: 20\n",
		  "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds" },
		{ HEAD "nonsense: 1\n", "strict decoding error: unknown field \"nonsense\"" },
		{ HEAD "profiles:\n- schedulerName: a\n- {}\n", "profiles[1].schedulerName: Required value" },
		{ HEAD "extenders:\n- urlPrefix: http://x\n  prioritizeVerb: p\n",
		  "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it" },
		{ HEAD "extenders:\n- urlPrefix: http://x\n  bindVerb: p\n- urlPrefix: http://y\n  bindVerb: p\n",
		  "extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can implement bind" },
		{ HEAD "leaderElection:\n  resourceLock: endpoints\n",
		  "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be \"leases\"" },
		{ HEAD "profiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    args:\n      hardPodAffinityWeight: 101\n",
		  "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]" },
		{ HEAD "profiles:\n- pluginConfig:\n  - name: DefaultPreemption\n    args:\n      minCandidateNodesPercentage: 0\n      minCandidateNodesAbsolute: 0\n",
		  "[profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
		  "minCandidateNodesAbsolute, profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same "
		  "time as minCandidateNodesPercentage]" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct frozen *f = NULL;
		struct err err = ERR_INIT;
		CHECK_ROW(i, load(t[i].text, &f, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}
