#include "kubelet/eviction.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "kubelet/eviction_priv.h"
#include "kubelet/stats_testing.h"

struct world {
	struct usage_fake fake;       /* first: pods(arg) reads it */
	struct arena arena;
	struct kubelet_node node;
	struct stats *stats;
	struct eviction *e;
	struct buf told;              /* events, evictions, what was freed */
	const char *signals;
	const char *signals_after;    /* once something was freed; NULL: the same */
	unsigned changes;
	int64_t gone_at_ns;           /* of pods that were evicted */
	char root[64];
};

static struct val pods(void *arg, struct arena *a) { return usage_pods(&((struct world *)arg)->fake, a); }

static int evict(void *arg, struct val pod, str reason, str message, struct val condition, int64_t grace_s, struct err *err)
{
	struct world *w = arg;

	(void)message;
	buf_addf(&w->told, "evict " STR_FMT " " STR_FMT " %llds" STR_FMT "\n", STR_ARG(val_str(pod, metadata, name)), STR_ARG(reason),
		 (long long)grace_s, STR_ARG(val_exists(condition) ? arena_join(&w->arena, STR(" "), val_str(condition, reason)) : STR_NONE));
	return str_eq(val_str(pod, metadata, name), STR("stuck")) ? fiber_sleep_ms(INT32_MAX, err) : 0;
}

static bool gone(void *arg, str uid)
{
	(void)uid;
	return clock_now_ns() >= ((struct world *)arg)->gone_at_ns;
}

static void free_containers(void *arg) { buf_addf(&((struct world *)arg)->told, "free containers\n"); }

static int64_t free_images(void *arg, struct err *err)
{
	struct world *w = arg;

	(void)err;
	buf_addf(&w->told, "free images\n");
	if (w->signals_after)
		w->signals = w->signals_after;
	return 1;
}

static void event(void *arg, struct val pod, bool warning, const char *reason, str message)
{
	buf_addf(&((struct world *)arg)->told, "%s %s " STR_FMT ": " STR_FMT "\n", warning ? "Warning" : "Normal", reason,
		 STR_ARG(val_exists(pod) ? val_str(pod, metadata, name) : STR("node")), STR_ARG(message));
}

static void changed(void *arg) { ((struct world *)arg)->changes++; }

static struct val observe(void *arg, struct arena *a)
{
	return testing_typed(a, NULL, ((struct world *)arg)->signals);
}

static void world_init(struct world *w, const char *config, const char *pod_list, const char *usage)
{
	*w = (struct world){ .node = testing_node(), .told = BUF_INIT(1 << 20), .signals = "[]", .root = "/tmp/c8s-test-evict-XXXXXX" };
	CHECK(mkdtemp(w->root));
	w->node.root = str_of(w->root);
	w->node.log_root = arena_printf(&w->arena, "%s/logs", w->root);
	w->fake = (struct usage_fake){ .cri = CRI_FAKE(usage_answer, &w->fake), .image_path = w->root };
	w->fake.pods = val_get(testing_typed(&w->arena, TYPE(core_v1, PodList), arena_printf(&w->arena, "{'items':[%s]}", pod_list).p), items);
	w->fake.usage = testing_typed(&w->arena, NULL, usage);
	w->stats = stats_new(&(struct stats_options){ .node = &w->node, .cri = &w->fake.cri.cri, .pods = usage_pods, .arg = &w->fake });
	w->e = eviction_new(&(struct eviction_options){
		.node = &w->node, .config = testing_typed(&w->arena, NULL, config), .stats = w->stats, .pods = pods, .evict = evict, .gone = gone,
		.free_containers = free_containers, .free_images = free_images, .event = event, .changed = changed, .observe = observe, .arg = w });
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void world_done(struct world *w)
{
	eviction_free(w->e);
	stats_free(w->stats);
	CHECK_INT(nftw(w->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
	buf_done(&w->told);
	arena_done(&w->arena);
}

static void look(struct world *w, bool ended, const char *told)
{
	CHECK_INT(eviction_look(w->e), ended);
	CHECK_STR(buf_str(&w->told), told);
	buf_reset(&w->told);
}

#define POD(name, priority, resources, rest) \
	"{'metadata':{'name':'" name "','namespace':'ns','uid':'" name "','generation':2},'spec':{'priority':" priority "," rest \
	"'containers':[{'name':'c','resources':{" resources "}}]}}"

#define HARD "{'evictionHard':{'memory.available':'100Mi','nodefs.available':'10%','nodefs.inodesFree':'5%','imagefs.available':'15%'," \
	     "'pid.available':'10%'},'evictionPressureTransitionPeriod':'5m'}"

CLOCK_TEST(eviction_by_memory)
{
	struct world w;

	world_init(&w, HARD, POD("quiet", "0", "'requests':{'memory':'1Gi'}", "") "," POD("big", "0", "'requests':{'memory':'16Mi'}", "") ","
			     POD("small", "0", "", "") "," POD("dear", "100", "", ""),
		   "[{'memory':1000},{'memory':209715200},{'memory':1048576},{'memory':419430400}]");
	w.signals = "[{'signal':'memory.available','available':104857600,'capacity':1073741824}]";
	look(&w, false, ""); /* just enough */
	CHECK(!eviction_memory_pressure(w.e) && w.changes == 0);

	w.signals = "[{'signal':'memory.available','available':104857599,'capacity':1073741824}]";
	look(&w, true,
	     "Warning EvictionThresholdMet node: Attempting to reclaim memory\n"
	     "Warning Evicted big: The node was low on resource: memory. Threshold quantity: 100Mi, available: 104857599. "
	     "Container c was using 200Mi, request is 16Mi, has larger consumption of memory. \n"
	     "evict big Evicted 1s TerminationByKubelet\n");
	CHECK(eviction_memory_pressure(w.e) && !eviction_disk_pressure(w.e) && !eviction_pids_pressure(w.e) && w.changes == 1);

	/* Nothing is short any more: the pressure is told for five minutes on. */
	w.signals = "[{'signal':'memory.available','available':'1Gi','capacity':'2Gi'}]";
	CHECK_INT(fiber_sleep_ms(299999, NULL), 0);
	look(&w, false, "");
	CHECK(eviction_memory_pressure(w.e));
	CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	look(&w, false, "");
	CHECK(!eviction_memory_pressure(w.e) && w.changes == 2);
	world_done(&w);
}

/* Those above what they asked for, then the least important, then the largest; those that nobody knows before all. */
CLOCK_TEST(eviction_order)
{
	static const struct {
		const char *signal, *usage, *want;
		bool dedicated;
	} t[] = {
		{ "memory.available", "[{'memory':100},{'memory':3000},{'memory':9000},{'memory':9000},{'memory':5000}]", "c b e d a ", false },
		{ "memory.available", "[{'memory':100},{'memory':3000},null,{'memory':9000},{'memory':5000}]", "c b e d a ", false },
		{ "memory.available", "[{'memory':100},null,{'memory':1},{'memory':9000},{'memory':5000}]", "b c e d a ", false },
		{ "pid.available", "[{'processes':9},{'processes':5},{'processes':3},{'processes':9},{'processes':1}]", "a b c e d ", false },
		{ "nodefs.available", "[{'rootfs':9},{'rootfs':100},{'rootfs':3},{'rootfs':9},{'rootfs':1}]", "b a c e d ", false },
		{ "imagefs.available", "[{'rootfs':9},{'rootfs':5},{'rootfs':3},{'rootfs':9},{'rootfs':1}]", "a b c e d ", true },
		/* With images elsewhere only logs and volumes count on the node's disk. */
		{ "nodefs.available", "[{'rootfs':9},{'rootfs':100},{'rootfs':3},{'rootfs':9},{'rootfs':1}]", "a b c e d ", true },
	};
	struct world w;

	world_init(&w, "{}", POD("a", "0", "'requests':{'memory':'1000'}", "") "," POD("b", "0", "", "") "," POD("c", "0", "", "") ","
			     POD("d", "10", "", "") "," POD("e", "5", "", ""), "[]");
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
		struct disks d = { .known = true, .dedicated = t[i].dedicated };
		unsigned s = 0;
		size_t n;
		while (!str_eq(signal_facts[s].name, str_of(t[i].signal)))
			s++;
		w.fake.usage = testing_typed(&w.arena, NULL, t[i].usage);
		struct candidate *all = eviction_rank(&w.arena, w.fake.pods, val_get(stats_summary(w.stats, &w.arena, false), pods), (enum signal)s, &d, &n);
		for (size_t k = 0; k < n; k++)
			buf_addf(&b, STR_FMT " ", STR_ARG(val_str(all[k].pod, metadata, name)));
		CHECK_STR_ROW(i, buf_str(&b), t[i].want);
	}
	world_done(&w);
}

CLOCK_TEST(eviction_by_disk)
{
	struct world w;

	world_init(&w, HARD, POD("p", "0", "'requests':{'ephemeral-storage':'1Ki'}", ""), "[{'rootfs':4096}]");
	CHECK_INT(file_make_dirs(arena_printf(&w.arena, "%s/logs/ns_p_p/c", w.root).p, 0755, NULL), 0);
	/* What is freed is enough. */
	w.signals = "[{'signal':'nodefs.available','available':99,'capacity':1000},{'signal':'imagefs.available','available':99,'capacity':1000}]";
	w.signals_after = "[{'signal':'nodefs.available','available':200,'capacity':1000},{'signal':'imagefs.available','available':200,'capacity':1000}]";
	look(&w, false, "Warning EvictionThresholdMet node: Attempting to reclaim ephemeral-storage\nfree containers\nfree images\n");
	CHECK(eviction_disk_pressure(w.e) && w.changes == 1);
	look(&w, false, "");
	/* Or it is not. */
	w.signals = w.signals_after = "[{'signal':'nodefs.available','available':99,'capacity':1000}]";
	look(&w, true,
	     "Warning EvictionThresholdMet node: Attempting to reclaim ephemeral-storage\nfree containers\nfree images\n"
	     "Warning Evicted p: The node was low on resource: ephemeral-storage. Threshold quantity: 100, available: 99. "
	     "Container c was using 4Ki, request is 1Ki, has larger consumption of ephemeral-storage. \n"
	     "evict p Evicted 1s TerminationByKubelet\n");
	w.signals = w.signals_after = "[{'signal':'nodefs.inodesFree','available':40000,'capacity':1000000}]";
	look(&w, true,
	     "Warning EvictionThresholdMet node: Attempting to reclaim inodes\nfree containers\nfree images\n"
	     "Warning Evicted p: The node was low on resource: inodes. Threshold quantity: 50000, available: 40k. \n"
	     "evict p Evicted 1s TerminationByKubelet\n");
	world_done(&w);
}

CLOCK_TEST(eviction_by_pids)
{
	struct world w;

	world_init(&w, HARD, POD("p", "0", "", ""), "[{'processes':7}]");
	w.signals = "[{'signal':'pid.available','available':50,'capacity':1000}]";
	look(&w, true,
	     "Warning EvictionThresholdMet node: Attempting to reclaim pids\n"
	     "Warning Evicted p: The node was low on resource: pids. Threshold quantity: 100, available: 50. \n"
	     "evict p Evicted 1s TerminationByKubelet\n");
	CHECK(eviction_pids_pressure(w.e));
	world_done(&w);
}

/* A soft threshold waits, and gives pods time; one that has acted acts until enough is free. */
CLOCK_TEST(eviction_soft)
{
	struct world w;

	world_init(&w, "{'evictionSoft':{'memory.available':'200'},'evictionSoftGracePeriod':{'memory.available':'90s'},'evictionMaxPodGracePeriod':60,"
		       "'evictionMinimumReclaim':{'memory.available':'50'},'evictionPressureTransitionPeriod':'30s'}",
		   POD("p", "0", "", "'terminationGracePeriodSeconds':40,") "," POD("q", "5", "", "'terminationGracePeriodSeconds':400,"), "[{},{}]");
	w.signals = "[{'signal':'memory.available','available':199,'capacity':1000}]";
	look(&w, false, "");
	CHECK(eviction_memory_pressure(w.e));
	CHECK_INT(fiber_sleep_ms(89999, NULL), 0);
	look(&w, false, "");
	CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	look(&w, true,
	     "Warning EvictionThresholdMet node: Attempting to reclaim memory\n"
	     "Warning Evicted p: The node was low on resource: memory. Threshold quantity: 200, available: 199. \n"
	     "evict p Evicted 40s TerminationByKubelet\n");
	w.fake.pods = LIST(&w.arena, val_at(w.fake.pods, 1));
	w.signals = "[{'signal':'memory.available','available':249,'capacity':1000}]";
	look(&w, true,
	     "Warning EvictionThresholdMet node: Attempting to reclaim memory\n"
	     "Warning Evicted q: The node was low on resource: memory. Threshold quantity: 200, available: 249. \n"
	     "evict q Evicted 60s TerminationByKubelet\n");
	w.signals = "[{'signal':'memory.available','available':250,'capacity':1000}]";
	look(&w, false, "");
	/* From here on it is a new shortage, which waits again. */
	w.signals = "[{'signal':'memory.available','available':199,'capacity':1000}]";
	look(&w, false, "");
	world_done(&w);
}

CLOCK_TEST(eviction_spares_the_critical)
{
	struct world w;

	world_init(&w, HARD, POD("first", "2000000000", "", "") "," POD("next", "2000001000", "", ""), "[{'memory':1},{'memory':1}]");
	w.signals = "[{'signal':'memory.available','available':1,'capacity':1000}]";
	look(&w, false, "Warning EvictionThresholdMet node: Attempting to reclaim memory\n");
	w.fake.pods = VAL_EMPTY_LIST;
	look(&w, false, "Warning EvictionThresholdMet node: Attempting to reclaim memory\n");
	world_done(&w);
}

/* A runtime that hangs holds up an eviction for a while, and not all others for good. */
CLOCK_TEST(eviction_gives_up_on_pods_that_do_not_end)
{
	static const struct {
		int64_t grace_s, took_s;
	} t[] = { { 0, 10 }, { 6, 10 }, { 40, 60 } };

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct world w;
		world_init(&w, HARD, POD("stuck", "0", "", ""), "[{'memory':1}]");
		int64_t began = clock_now_ns();
		CHECK_ROW(i, eviction_within_grace(&w.e->o, val_at(w.fake.pods, 0), STR("R"), STR("m"), VAL_EMPTY, t[i].grace_s, NULL) == -ERR_TIMEOUT);
		CHECK_ROW(i, clock_now_ns() - began == t[i].took_s * NS_PER_S);
		CHECK_STR_ROW(i, buf_str(&w.told), arena_printf(&w.arena, "evict stuck R %llds\nWarning ExceededGracePeriod stuck: Container runtime did not "
								"kill the pod within specified grace period.\n", (long long)t[i].grace_s).p);
		world_done(&w);
	}
	struct world w;
	world_init(&w, HARD, POD("stuck", "0", "", "") "," POD("next", "5", "", ""), "[{'memory':1},{'memory':1}]");
	w.signals = "[{'signal':'memory.available','available':1,'capacity':1000}]";
	log_set_level(LOG_LEVEL_ERROR);
	DEADLINE_SCOPE(100000);
	CHECK(eviction_look(w.e));
	w.fake.pods = LIST(&w.arena, val_at(w.fake.pods, 1));
	CHECK(eviction_look(w.e) && str_find(buf_str(&w.told), STR("\nevict next Evicted 1s")) > 0);
	log_set_level(LOG_LEVEL_INFO);
	world_done(&w);
}

/* Disk that a pod's volumes take is free when they are gone. */
CLOCK_TEST(eviction_waits_for_what_is_left)
{
	static const int after_s[] = { 0, 5, 100 }, took_s[] = { 0, 5, 30 };

	for (size_t i = 0; i < ARRAY_LEN(after_s); i++) {
		struct world w;
		world_init(&w, HARD, POD("p", "0", "", ""), "[{'rootfs':4096}]");
		w.signals = "[{'signal':'nodefs.available','available':99,'capacity':1000}]";
		int64_t began = clock_now_ns();
		w.gone_at_ns = began + after_s[i] * NS_PER_S;
		CHECK_ROW(i, eviction_look(w.e));
		CHECK_ROW(i, clock_now_ns() - began == took_s[i] * NS_PER_S);
		world_done(&w);
	}
}

/* Who uses what is not known: nobody goes, rather than anybody. */
CLOCK_TEST(eviction_waits_for_figures)
{
	struct world w;

	world_init(&w, HARD, POD("dear", "100", "'requests':{'memory':'1Gi'}", "") "," POD("big", "0", "", ""), "[{'memory':1000},{'memory':209715200}]");
	w.signals = "[{'signal':'memory.available','available':1,'capacity':1073741824}]";
	w.fake.fails = true;
	log_set_level(LOG_LEVEL_ERROR);
	look(&w, false, "Warning EvictionThresholdMet node: Attempting to reclaim memory\n");
	CHECK(eviction_memory_pressure(w.e));
	w.fake.fails = false;
	CHECK(eviction_look(w.e));
	CHECK(str_find(buf_str(&w.told), STR("\nevict big Evicted")) > 0);
	log_set_level(LOG_LEVEL_INFO);
	world_done(&w);
}

/* The memory of all pods together; not with that enforcement off. */
CLOCK_TEST(eviction_thresholds)
{
	static const struct {
		const char *config, *want;
	} t[] = {
		{ HARD, "memory.available allocatableMemory.available nodefs.available nodefs.inodesFree imagefs.available pid.available " },
		{ "{'evictionHard':{'memory.available':'1Gi'},'enforceNodeAllocatable':['none']}", "memory.available " },
		{ "{'evictionHard':{'memory.available':'0%','nodefs.available':'100%','pid.available':'0','containerfs.available':'5%','x':'1'}}", "" },
		{ "{'evictionSoft':{'memory.available':'5%'},'evictionSoftGracePeriod':{'memory.available':'1m30s'}}", "memory.available " },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
		struct thresholds all;
		thresholds_of_config(testing_typed(&a, NULL, t[i].config), &all);
		for (size_t k = 0; k < all.n; k++)
			buf_addf(&b, STR_FMT " ", STR_ARG(signal_facts[all.all[k].signal].name));
		CHECK_STR_ROW(i, buf_str(&b), t[i].want);
	}
	arena_done(&a);
}

TEST(eviction_reserves)
{
	struct arena a = ARENA_INIT;

	CHECK_STR(testing_text(&a, eviction_reserved(testing_typed(&a, NULL, HARD), &a, 8LL << 30, 1000000)),
		  "{'ephemeral-storage':'100000','memory':'100Mi'}");
	CHECK_STR(testing_text(&a, eviction_reserved(testing_typed(&a, NULL, "{'evictionHard':{'memory.available':'25%'}}"), &a, 8LL << 30, 1)),
		  "{'memory':'2Gi'}");
	CHECK_STR(testing_text(&a, eviction_reserved(VAL_EMPTY, &a, 8LL << 30, 1)), "{}");
	arena_done(&a);
}

/* ---- limits of local storage ---- */

CLOCK_TEST(eviction_local_limits)
{
	static const struct {
		const char *pod, *stats, *want;
	} t[] = {
		{ POD("p", "0", "", "'volumes':[{'name':'v','emptyDir':{'sizeLimit':'1Mi'}}],"), "{'volume':[{'name':'v','usedBytes':1048576}]}", "" },
		{ POD("p", "0", "", "'volumes':[{'name':'v','emptyDir':{'sizeLimit':'1Mi'}}],"), "{'volume':[{'name':'v','usedBytes':1048577}]}",
		  "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". " },
		{ POD("p", "0", "", "'volumes':[{'name':'v','emptyDir':{}}],"), "{'volume':[{'name':'v','usedBytes':1048577}]}", "" },
		{ POD("p", "0", "'limits':{'ephemeral-storage':'1Ki'}", ""), "{'ephemeral-storage':{'usedBytes':1025}}",
		  "Pod ephemeral local storage usage exceeds the total limit of containers 1Ki. " },
		{ POD("p", "0", "'limits':{'ephemeral-storage':'1Ki'}", ""),
		  "{'ephemeral-storage':{'usedBytes':1024},'containers':[{'name':'c','rootfs':{'usedBytes':1000},'logs':{'usedBytes':25}}]}",
		  "Container c exceeded its local ephemeral storage limit \"1Ki\". " },
		{ POD("p", "0", "'limits':{'ephemeral-storage':'1Ki'}", ""),
		  "{'containers':[{'name':'c','rootfs':{'usedBytes':1000},'logs':{'usedBytes':24}}]}", "" },
		{ POD("p", "0", "", ""), "{'ephemeral-storage':{'usedBytes':1025},'containers':[{'name':'c','rootfs':{'usedBytes':1000}}]}", "" },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct val pod = testing_typed(&a, TYPE(core_v1, Pod), t[i].pod), stats = testing_typed(&a, NULL, t[i].stats);
		CHECK_STR_ROW(i, eviction_local_message(&a, pod, stats, &(struct disks){ 0 }), t[i].want);
		CHECK_ROW(i, !t[i].want[0] || eviction_has_local_limit(&a, pod));
	}
	CHECK(!eviction_has_local_limit(&a, testing_typed(&a, TYPE(core_v1, Pod), t[2].pod)));
	arena_done(&a);
}

CLOCK_TEST(eviction_of_those_beyond_their_limit)
{
	struct world w;

	world_init(&w, HARD, POD("p", "0", "'limits':{'ephemeral-storage':'1Ki'}", "") "," POD("q", "0", "", "") ","
			     POD("r", "0", "'limits':{'ephemeral-storage':'1Mi'}", ""), "[{'rootfs':2048},{'rootfs':99999},{'rootfs':2048}]");
	w.signals = "[{'signal':'memory.available','available':1,'capacity':1000}]";
	look(&w, true,
	     "Warning Evicted p: Pod ephemeral local storage usage exceeds the total limit of containers 1Ki. \nevict p Evicted 1s\n");
	world_done(&w);
	world_init(&w, "{'localStorageCapacityIsolation':false}", POD("p", "0", "'limits':{'ephemeral-storage':'1Ki'}", ""), "[{'rootfs':2048}]");
	look(&w, false, "");
	world_done(&w);
}
