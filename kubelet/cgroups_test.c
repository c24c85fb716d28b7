#include "kubelet/cgroups.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_test.h"
#include "kubelet/cgroups_priv.h"
#include "kubelet/cgroups_testing.h"
#include "kubelet/cri_config_testing.h"
#include "oci/cgroup_priv.h"

/* A tree of its own, which goes with the test. */
struct world {
	struct arena arena;
	struct kubelet_node node;
	struct kubelet_hooks hooks;
	struct cgroups *c;
	str told;                     /* the last event */
};

static void event(void *arg, struct val pod, bool warning, const char *reason, str message)
{
	struct world *w = arg;

	CHECK(!val_exists(pod));
	w->told = arena_printf(&w->arena, "%s %s: " STR_FMT, warning ? "Warning" : "Normal", reason, STR_ARG(message));
}

static void world_init(struct world *w, const char *config, const char *reserved)
{
	struct err err = ERR_INIT;

	*w = (struct world){ 0 };
	cgroups_name_root();
	w->node = testing_node();
	w->hooks = (struct kubelet_hooks){ .event = event, .arg = w };
	w->node.hooks = &w->hooks;
	w->node.cgroup_root = arena_str(&w->arena, str_of(cgroups_left));
	w->node.cgroup_v2 = cgroup_mode() == CGROUP_V2;
	w->node.memory_bytes = 8LL << 30;
	w->node.cpus_milli = 4000;
	w->node.pod_pids_limit = 500;
	struct cgroups_options o = { .node = &w->node, .config = testing_typed(&w->arena, NULL, config),
				     .reserved = testing_typed(&w->arena, NULL, reserved) };
	if (cgroups_new(&o, &w->c, &err) < 0)
		fail_msg("%s", err.msg);
}

static void world_done(struct world *w)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct err err = ERR_INIT;

	cgroups_free(w->c);
	CHECK_INT(cgroup_open(arena_str(&w->arena, w->node.cgroup_root).p, &g, &err), 0);
	if (cgroup_remove(g, &err) < 0)
		fail_msg("%s", err.msg);
	arena_done(&w->arena);
}

static struct val pod(struct world *w, const char *uid, const char *containers, const char *rest)
{
	return testing_typed(&w->arena, TYPE(core_v1, Pod),
			     arena_printf(&w->arena, "{'metadata':{'name':'p','namespace':'ns','uid':'%s'},'spec':{%s'containers':[%s]}}", uid, rest,
					  containers).p);
}

/* "shares quota memory pids" of a cgroup below the root; -1: none. Shares as those of v1, or the weight that they are. */
static str shown(struct world *w, const char *path)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct cgroup_limits l;
	uint64_t weight = 0, pids = UINT64_MAX;
	struct err err = ERR_INIT;

	if (cgroup_open(arena_printf(&w->arena, STR_FMT "%s", STR_ARG(w->node.cgroup_root), path).p, &g, &err) < 0)
		return STR("none");
	cgroup_limits(g, &l);
	const struct cgroup_hierarchy *cpu = cgroup_hierarchy(g, CGROUP_CPU), *of_pids = cgroup_hierarchy(g, CGROUP_PIDS);
	CHECK(cpu && cgroup_read_u64(cpu, w->node.cgroup_v2 ? "cpu.weight" : "cpu.shares", &weight, &err) >= 0);
	if (of_pids)
		(void)cgroup_read_u64(of_pids, "pids.max", &pids, NULL);
	return arena_printf(&w->arena, "%llu %lld %lld %lld", (unsigned long long)weight, (long long)l.cpu_quota_us,
			    l.memory > INT64_MAX ? -1LL : (long long)l.memory, pids == UINT64_MAX ? -1LL : (long long)pids);
}

static const char *with_shares(struct world *w, uint64_t shares, const char *rest)
{
	return arena_printf(&w->arena, "%llu %s", (unsigned long long)(w->node.cgroup_v2 ? cgroup_weight_of_shares(shares) : shares), rest).p;
}

#define LIMITED "{'name':'c','resources':{'limits':{'cpu':'500m','memory':'64Mi'},'requests':{'cpu':'500m','memory':'64Mi'}}}"

TEST(cgroups_tree)
{
	struct world w;

	if (!cgroups_possible())
		skip();
	world_init(&w, "{}", "{'cpu':'1','memory':'1Gi'}");
	CHECK_STR(w.told, "Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods");
	/* Four CPUs less one; seven GiB; a class of nobody. */
	str top = shown(&w, "/kubepods");
	CHECK(str_starts(top, str_of(with_shares(&w, 3072, "-1 7516192768 "))));
	CHECK_STR(shown(&w, "/kubepods/besteffort"), with_shares(&w, 2, "-1 -1 -1"));
	CHECK(!str_eq(shown(&w, "/kubepods/burstable"), STR("none")));
	CHECK_STR(cgroups_pod_path(w.c, &w.arena, VAL_EMPTY), arena_join(&w.arena, w.node.cgroup_root, STR("/kubepods")).p);

	struct val burst = pod(&w, "b", "{'name':'c','resources':{'requests':{'cpu':'250m','memory':'1Gi'}}}", "");
	struct val fixed = pod(&w, "g", LIMITED, "");
	struct val all = LIST(&w.arena, burst, fixed, pod(&w, "e", "{'name':'c'}", ""));
	CHECK_INT(cgroups_classes_update(w.c, all, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/burstable"), with_shares(&w, 256, "-1 -1 -1"));
	CHECK_STR(shown(&w, "/kubepods/besteffort"), with_shares(&w, 2, "-1 -1 -1"));
	/* Which pods there are is not known: what is set stays. */
	CHECK_INT(cgroups_classes_update(w.c, VAL_EMPTY, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/burstable"), with_shares(&w, 256, "-1 -1 -1"));
	world_done(&w);
}

/* A file of a cgroup below the root. */
static str file_of(struct world *w, const char *path, const char *file)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	struct err err = ERR_INIT;

	if (cgroup_open(arena_printf(&w->arena, STR_FMT "%s", STR_ARG(w->node.cgroup_root), path).p, &g, &err) < 0 ||
	    cgroup_read(cgroup_hierarchy(g, CGROUP_MEMORY), file, &b, &err) < 0)
		fail_msg("%s", err.msg);
	return arena_str(&w->arena, str_trim(buf_str(&b)));
}

TEST(cgroups_memory_quality)
{
	struct world w;

	if (!cgroups_possible() || cgroup_mode() != CGROUP_V2) {
		print_message("# needs cgroup v2: tests/machine has it\n");
		return;
	}
	world_init(&w, "{}", "{}");
	w.node.memory_qos = w.node.memory_tiered = true;
	struct val burst = pod(&w, "b", "{'name':'c','resources':{'requests':{'memory':'32Mi'}}}", ""), fixed = pod(&w, "g", LIMITED, "");
	CHECK_INT(cgroups_classes_update(w.c, LIST(&w.arena, burst, fixed), NULL), 0);
	CHECK_STR(file_of(&w, "/kubepods", "memory.min"), "100663296");
	CHECK_STR(file_of(&w, "/kubepods/burstable", "memory.low"), "33554432");
	int64_t min, low;
	cgroups_memory_kept(w.c, &min, &low);
	CHECK_INT(min, 67108864);
	CHECK_INT(low, 33554432);
	CHECK_INT(cgroups_pod_make(w.c, burst, NULL), 0);
	CHECK_INT(cgroups_pod_make(w.c, fixed, NULL), 0);
	CHECK_STR(file_of(&w, "/kubepods/burstable/podb", "memory.low"), "33554432");
	CHECK_STR(file_of(&w, "/kubepods/podg", "memory.min"), "67108864");
	/* Switched off again. */
	w.node.memory_tiered = false;
	CHECK_INT(cgroups_classes_update(w.c, LIST(&w.arena, burst, fixed), NULL), 0);
	CHECK_STR(file_of(&w, "/kubepods", "memory.min"), "0");
	CHECK_STR(file_of(&w, "/kubepods/burstable", "memory.low"), "0");
	/* What is reserved for the system is left to it. */
	struct cgroups *again = NULL;
	struct cgroups_options o = { .node = &w.node };
	o.config = testing_typed(&w.arena, NULL, arena_printf(&w.arena, "{'enforceNodeAllocatable':['system-reserved'],'systemReservedCgroup':'" STR_FMT
							      "/kubepods/besteffort','systemReserved':{'memory':'256Mi'}}",
							      STR_ARG(w.node.cgroup_root)).p);
	CHECK_INT(cgroups_new(&o, &again, NULL), 0);
	CHECK_STR(file_of(&w, "/kubepods/besteffort", "memory.min"), "268435456");
	CHECK_STR(file_of(&w, "/kubepods/besteffort", "memory.max"), "268435456");
	cgroups_free(again);
	world_done(&w);
}

TEST(cgroups_memory_of_classes)
{
	struct world w;

	if (!cgroups_possible())
		skip();
	world_init(&w, "{'enforceNodeAllocatable':['none'],'qosReserved':{'memory':'50%'}}", "{'memory':'1Gi'}");
	CHECK(str_starts(shown(&w, "/kubepods"), str_of(with_shares(&w, 4096, "-1 -1 "))));
	struct val all = LIST(&w.arena, pod(&w, "b", "{'name':'c','resources':{'requests':{'memory':'2Gi'}}}", ""), pod(&w, "g", LIMITED, ""));
	CHECK_INT(cgroups_classes_update(w.c, all, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/burstable"), with_shares(&w, 2, "-1 7482638336 -1")); /* 7 GiB less half of 64 MiB */
	CHECK_STR(shown(&w, "/kubepods/besteffort"), with_shares(&w, 2, "-1 6408896512 -1")); /* and less half of 2 GiB */
	world_done(&w);
}

TEST(cgroups_pods)
{
	static const struct {
		const char *containers, *rest, *path;
		uint64_t shares;
		const char *want;
	} t[] = {
		{ LIMITED, "", "/kubepods/podu", 512, "50000 67108864 500" },
		{ "{'name':'c'}", "", "/kubepods/besteffort/podu", 2, "-1 -1 500" },
		{ "{'name':'c','resources':{'requests':{'cpu':'100m'}}}", "", "/kubepods/burstable/podu", 102, "-1 -1 500" },
		/* Limits of a pod count only if all containers have them; init containers too. */
		{ LIMITED ",{'name':'d','resources':{'limits':{'cpu':'1'},'requests':{'cpu':'1m'}}}", "", "/kubepods/burstable/podu", 513,
		  "150000 -1 500" },
		{ LIMITED ",{'name':'d','resources':{'limits':{'memory':'64Mi'},'requests':{'cpu':'1m'}}}", "", "/kubepods/burstable/podu", 513,
		  "-1 134217728 500" },
		{ LIMITED, "'initContainers':[{'name':'i'}],", "/kubepods/burstable/podu", 512, "-1 -1 500" },
		/* What is said for the whole pod stands above its containers. */
		{ "{'name':'c'}", "'resources':{'limits':{'cpu':'2','memory':'1Gi'},'requests':{'cpu':'1','memory':'1Gi'}},",
		  "/kubepods/burstable/podu", 1024, "200000 1073741824 500" },
		/* Overhead is added to what is limited. */
		{ LIMITED, "'overhead':{'cpu':'250m','memory':'64Mi'},", "/kubepods/podu", 768, "75000 134217728 500" },
		{ "{'name':'c','resources':{'limits':{'cpu':'1m'},'requests':{'cpu':'1m'}}}", "", "/kubepods/burstable/podu", 2, "1000 -1 500" },
	};
	struct world w;

	if (!cgroups_possible())
		skip();
	world_init(&w, "{}", "{}");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(cgroup_freep) struct cgroup *g = NULL;
		struct val p = pod(&w, "u", t[i].containers, t[i].rest);
		struct err err = ERR_INIT;
		if (cgroups_pod_make(w.c, p, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		CHECK_STR_ROW(i, shown(&w, t[i].path), with_shares(&w, t[i].shares, t[i].want));
		CHECK_INT(cgroup_open(cgroups_pod_path(w.c, &w.arena, p).p, &g, NULL), 0);
		CHECK_INT(cgroup_remove(g, &err), 0);
	}
	world_done(&w);
}

TEST(cgroups_no_quota)
{
	struct world w;

	if (!cgroups_possible())
		skip();
	world_init(&w, "{}", "{}");
	w.node.no_cfs_quota = true;
	w.node.pod_pids_limit = -1;
	CHECK_INT(cgroups_pod_make(w.c, pod(&w, "u", LIMITED, ""), NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/podu"), with_shares(&w, 512, "-1 67108864 -1"));
	world_done(&w);
}

/* Larger limits before those of the containers, smaller ones after. */
TEST(cgroups_resize)
{
	static const char *const larger = "{'name':'c','resources':{'limits':{'cpu':'1','memory':'32Mi'},'requests':{'cpu':'1','memory':'32Mi'}}}";
	struct world w;

	if (!cgroups_possible())
		skip();
	world_init(&w, "{}", "{}");
	CHECK_INT(cgroups_pod_resize(w.c, pod(&w, "u", LIMITED, ""), true, NULL), -ERR_NOT_FOUND);
	CHECK_INT(cgroups_pod_make(w.c, pod(&w, "u", LIMITED, ""), NULL), 0);
	CHECK_INT(cgroups_pod_resize(w.c, pod(&w, "u", larger, ""), true, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/podu"), with_shares(&w, 1024, "100000 67108864 500"));
	CHECK_INT(cgroups_pod_resize(w.c, pod(&w, "u", larger, ""), false, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/podu"), with_shares(&w, 1024, "100000 33554432 500"));
	CHECK_INT(cgroups_pod_resize(w.c, pod(&w, "u", LIMITED, ""), true, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/podu"), with_shares(&w, 512, "100000 67108864 500"));
	CHECK_INT(cgroups_pod_resize(w.c, pod(&w, "u", LIMITED, ""), false, NULL), 0);
	CHECK_STR(shown(&w, "/kubepods/podu"), with_shares(&w, 512, "50000 67108864 500"));
	world_done(&w);
}

FIBER_TEST_IF(cgroups_possible(), cgroups_removal)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct world w;
	struct err err = ERR_INIT;
	int status;

	world_init(&w, "{}", "{}");
	CHECK_INT(cgroups_pod_remove(w.c, STR("nobody"), &err), 0);
	CHECK_INT(cgroups_pod_remove(w.c, STR("../burstable"), &err), 0);
	CHECK_INT(cgroups_pod_make(w.c, pod(&w, "u1", LIMITED, ""), NULL), 0);
	CHECK_INT(cgroups_pod_make(w.c, pod(&w, "u2", "{'name':'c'}", ""), NULL), 0);
	CHECK_STR(testing_text(&w.arena, cgroups_pods(w.c, &w.arena)), "['u1','u2']");

	/* A process of a container that somebody has left behind. */
	str below = arena_printf(&w.arena, STR_FMT "/kubepods/besteffort/podu2/x", STR_ARG(w.node.cgroup_root));
	CHECK_INT(cgroup_make(below.p, &g, &err), 0);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	CHECK_INT(cgroup_add(g, child, &err), 0);
	if (cgroups_pod_remove(w.c, STR("u2"), &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_STR(testing_text(&w.arena, cgroups_pods(w.c, &w.arena)), "['u1']");
	CHECK_INT(cgroups_pod_remove(w.c, STR("u1"), &err), 0);
	CHECK_STR(testing_text(&w.arena, cgroups_pods(w.c, &w.arena)), "[]");
	world_done(&w);
}

TEST(cgroups_reserved_must_exist)
{
	struct kubelet_node node = testing_node();
	struct arena a = ARENA_INIT;
	struct cgroups *c = NULL;
	struct err err = ERR_INIT;

	if (!cgroups_possible())
		skip();
	/* Without classes: nothing is made that the test would have to remove. */
	struct val config = testing_typed(&a, NULL, "{'cgroupsPerQOS':false,'enforceNodeAllocatable':['kube-reserved'],"
						    "'kubeReservedCgroup':'/c8s-test-none','kubeReserved':{'memory':'1Gi'}}");
	CHECK(cgroups_new(&(struct cgroups_options){ .node = &node, .config = config }, &c, &err) < 0);
	CHECK(str_starts(err_str(&err), STR("Failed to enforce Kube Reserved Cgroup Limits on \"/c8s-test-none\": ")));
	arena_done(&a);
}
