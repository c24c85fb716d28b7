#include "kubelet/stats.h"

#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "kubelet/cgroups_testing.h"
#include "kubelet/stats_priv.h"
#include "kubelet/stats_testing.h"
#include "kubelet/volume_testing.h"

struct world {
	struct usage_fake fake;
	struct arena arena;
	struct kubelet_node node;
	struct stats *s;
	char root[64];
};

static const char one_pod[] =
	"{'items':[{'metadata':{'name':'p','namespace':'ns','uid':'u1'},'spec':{'containers':[{'name':'c'}],"
	"'volumes':[{'name':'v','emptyDir':{}},{'name':'m','emptyDir':{'medium':'Memory'}}]}}]}";

static void world_init(struct world *w)
{
	*w = (struct world){ .node = testing_node(), .root = "/tmp/c8s-test-stats-XXXXXX" };
	CHECK(mkdtemp(w->root));
	w->node.root = str_of(w->root);
	w->node.log_root = arena_printf(&w->arena, "%s/logs", w->root);
	w->fake = (struct usage_fake){ .cri = CRI_FAKE(usage_answer, &w->fake), .image_path = "/nowhere" };
	w->fake.pods = val_get(testing_typed(&w->arena, TYPE(core_v1, PodList), one_pod), items);
	w->fake.usage = testing_typed(&w->arena, NULL, "[{'memory':5000,'rootfs':700,'processes':4}]");
	w->s = stats_new(&(struct stats_options){ .node = &w->node, .cri = &w->fake.cri.cri, .pods = usage_pods, .arg = &w->fake });
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void world_done(struct world *w)
{
	stats_free(w->s);
	CHECK_INT(nftw(w->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
	arena_done(&w->arena);
}

static int run_stats(void *arg) { return stats_run(arg, NULL); }

static str first_pod(struct world *w, bool brief)
{
	return testing_text(&w->arena, val_at(val_get(stats_summary(w->s, &w->arena, brief), pods), 0));
}

#define WHEN "'time':'2023-11-14T22:13:20Z'"
#define HEAD "{'podRef':{'name':'p','namespace':'ns','uid':'u1'},'startTime':'2023-11-14T22:13:20Z','containers':[{'name':'c'," \
	     "'startTime':'2023-11-14T22:13:20Z','cpu':{" WHEN ",'usageCoreNanoSeconds':250000000},'memory':{" WHEN ",'workingSetBytes':5000}"

CLOCK_TEST(stats_of_a_pod)
{
	struct world w;

	world_init(&w);
	CHECK_STR(first_pod(&w, true), HEAD "}],'cpu':{" WHEN ",'usageCoreNanoSeconds':500000000},'memory':{" WHEN ",'workingSetBytes':5000}}");
	/* The file system of an unknown place has no size; the rest is that of the node, and changes. */
	str all = first_pod(&w, false);
	CHECK(str_starts(all, STR(HEAD ",'rootfs':{" WHEN ",'usedBytes':700,'inodesUsed':3}}],")));
	CHECK(str_find(all, STR("'network':{" WHEN ",'name':'eth0','rxBytes':11,'txBytes':12,'interfaces':[{'name':'eth0','rxBytes':11,'txBytes':12}]}")) > 0);
	CHECK(str_find(all, STR("'process_stats':{'process_count':4}")) > 0);
	CHECK(str_find(all, STR("'usedBytes':700,'inodesFree'")) > 0); /* ephemeral-storage */

	/* A second later its use of CPU is known. */
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	struct val again = val_at(val_get(stats_summary(w.s, &w.arena, true), pods), 0);
	CHECK_INT(val_int(again, cpu, usageNanoCores), 500000000);
	CHECK_INT(val_int(val_at(val_get(again, containers), 0), cpu, usageNanoCores), 250000000);
	world_done(&w);
}

/* A runtime that knows figures of containers only. */
CLOCK_TEST(stats_of_an_old_runtime)
{
	struct world w;

	world_init(&w);
	w.fake.old = true;
	CHECK_STR(first_pod(&w, true), HEAD "}]}");
	w.fake.fails = true;
	CHECK_STR(testing_text(&w.arena, val_get(stats_summary(w.s, &w.arena, true), pods)), "[]");
	CHECK(!val_exists(stats_pod(w.s, &w.arena, val_at(w.fake.pods, 0))));
	world_done(&w);
}

/* Logs, the hosts file, layers and volumes on the disk together are a pod's ephemeral storage. */
CLOCK_TEST(stats_of_storage)
{
	struct world w;
	static const char block[4096];
	const char *files[] = { "logs/ns_p_u1/c/0.log", "logs/ns_p_u1/c/0.log.20230101-000000.gz", "pods/u1/etc-hosts" };

	world_init(&w);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		str path = arena_printf(&w.arena, "%s/%s", w.root, files[i]);
		CHECK_INT(file_make_dirs(arena_str(&w.arena, str_head(path, (size_t)str_rchr(path, '/'))).p, 0755, NULL), 0);
		CHECK_INT(file_replace(path.p, str_span(block, sizeof block), 0644, NULL), 0);
	}
	struct val pod = stats_pod(w.s, &w.arena, val_at(w.fake.pods, 0)), container = val_at(val_get(pod, containers), 0);
	CHECK_INT(val_int(container, logs, usedBytes), 8192);
	CHECK_INT(val_int(container, logs, inodesUsed), 2);
	CHECK_INT(val_int(pod, ephemeral_storage, usedBytes), 3 * 4096 + 700);
	CHECK_INT(val_int(pod, ephemeral_storage, inodesUsed), 3 + 3);
	CHECK(val_int(pod, ephemeral_storage, capacityBytes) > 0);
	struct val other = testing_typed(&w.arena, TYPE(core_v1, Pod), "{'metadata':{'name':'q','namespace':'ns','uid':'u2'}}");
	CHECK(!val_exists(stats_pod(w.s, &w.arena, other)));
	world_done(&w);
}

static const char with_volume[] =
	"{'metadata':{'name':'p','namespace':'ns','uid':'u1'},'spec':{'containers':[{'name':'c',"
	"'volumeMounts':[{'name':'v','mountPath':'/v'}]}],'volumes':[{'name':'v','emptyDir':{'sizeLimit':'1Ki'}}]}}";

/* Volumes are walked through; what their walk has found is kept for a while, and goes with the pod. */
CLOCK_TEST(stats_of_volumes)
{
	static const char block[4096];
	struct world w;
	struct err err = ERR_INIT;

	world_init(&w);
	struct val pod = testing_typed(&w.arena, TYPE(core_v1, Pod), with_volume);
	struct volumes *volumes = volumes_new(&(struct volumes_options){ .node = &w.node });
	w.fake.pods = LIST(&w.arena, pod);
	w.s->o.volumes = volumes;
	if (volumes_mount(volumes, pod, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_INT(file_replace(arena_printf(&w.arena, "%s/pods/u1/volumes/kubernetes.io~empty-dir/v/f", w.root).p, str_span(block, sizeof block), 0644,
			       &err), 0);
	struct val shown = stats_pod(w.s, &w.arena, pod), volume = val_at(val_get(shown, volume), 0);
	CHECK_STR(val_str(volume, name), "v");
	CHECK(val_int(volume, usedBytes) >= 4096 && val_int(volume, inodesUsed) == 2 && val_int(volume, capacityBytes) > 0);
	CHECK_INT(val_int(shown, ephemeral_storage, usedBytes), val_int(volume, usedBytes) + 700);
	CHECK_INT(map_len(&w.s->measured), 1);

	struct fiber *f = start(run_stats, w.s);
	fiber_settle();
	CHECK_INT(map_len(&w.s->measured), 1);
	w.fake.pods = VAL_EMPTY_LIST;
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	fiber_settle();
	CHECK_INT(map_len(&w.s->measured), 0);
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	CHECK_INT(volumes_unmount(volumes, STR("u1"), &err), 0);
	volumes_free(volumes);
	world_done(&w);
}

struct hanging {
	int fuse;
	atomic_bool ended;
};

/* Answers, after a while, with an error, as a server of files that is gone. */
static void *hang_up(void *arg)
{
	struct hanging *h = arg;

	for (int i = 0; i < 300 && !atomic_load(&h->ended); i++)
		usleep(10000);
	atomic_store(&h->ended, true);
	close(h->fuse);
	return NULL;
}

/* Beside a pod's volume there is a file system that does not answer: nobody asks it. (Volumes on other machines: volume_walk_test.c.) */
MOUNT_TEST(stats_beside_what_hangs)
{
	struct world w;
	pthread_t thread;
	struct hanging h = { .fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC) };

	if (h.fuse < 0)
		skip();
	world_init(&w);
	struct val pod = testing_typed(&w.arena, TYPE(core_v1, Pod), with_volume);
	const char *other = arena_printf(&w.arena, "%s/pods/u1/volumes/other", w.root).p;
	struct volumes *volumes = w.s->o.volumes = volumes_new(&(struct volumes_options){ .node = &w.node });
	CHECK_INT(volumes_mount(volumes, pod, NULL), 0);
	CHECK_INT(file_make_dirs(other, 0755, NULL), 0);
	CHECK_INT(mount("hangs", other, "fuse", 0, arena_printf(&w.arena, "fd=%d,rootmode=40000,user_id=0,group_id=0", h.fuse).p), 0);
	CHECK_INT(pthread_create(&thread, NULL, hang_up, &h), 0);
	CHECK_INT(stats_measure(w.s, pod, true, NULL), 0);
	CHECK(!atomic_exchange(&h.ended, true));
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK_INT(umount2(other, MNT_DETACH), 0);
	volumes_free(volumes);
	world_done(&w);
}

CLOCK_TEST(stats_of_the_node)
{
	struct world w;

	world_init(&w);
	struct val node = val_get(stats_summary(w.s, &w.arena, false), node);
	CHECK_STR(val_str(node, nodeName), "n1");
	CHECK(val_int(node, memory, workingSetBytes) > 0);
	CHECK(val_int(node, memory, availableBytes) > 0);
	CHECK(val_int(node, fs, capacityBytes) >= val_int(node, fs, usedBytes));
	CHECK_INT(val_int(node, runtime, imageFs, usedBytes), 1000);
	CHECK_INT(val_int(node, runtime, containerFs, usedBytes), 1000);
	CHECK(val_int(node, rlimit, maxpid) > val_int(node, rlimit, curproc) && val_int(node, rlimit, curproc) > 0);
	node = val_get(stats_summary(w.s, &w.arena, true), node);
	CHECK(val_has(node, memory) && !val_has(node, fs) && !val_has(node, runtime) && !val_has(node, rlimit) && !val_has(node, network));
	world_done(&w);
}

/* ---- metrics ---- */

static str metrics(struct world *w, const char *which)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	stats_metrics(w->s, str_of(which), &b);
	return arena_str(&w->arena, buf_str(&b));
}

static void has_line(str text, const char *line)
{
	if (str_find(text, str_of(line)) < 0)
		fail_msg("no %s in\n%.*s", line, STR_ARG(text));
}

CLOCK_TEST(stats_metrics_of_resources)
{
	struct world w;

	world_init(&w);
	str text = metrics(&w, "resource");
	has_line(text, "# TYPE container_cpu_usage_seconds_total counter\n"
		       "container_cpu_usage_seconds_total{container=\"c\",namespace=\"ns\",pod=\"p\"} 0.25 1700000000000\n");
	has_line(text, "container_memory_working_set_bytes{container=\"c\",namespace=\"ns\",pod=\"p\"} 5000 1700000000000\n");
	has_line(text, "container_start_time_seconds{container=\"c\",namespace=\"ns\",pod=\"p\"} 1.7e+09\n");
	has_line(text, "pod_cpu_usage_seconds_total{namespace=\"ns\",pod=\"p\"} 0.5 1700000000000\n");
	has_line(text, "pod_memory_working_set_bytes{namespace=\"ns\",pod=\"p\"} 5000 1700000000000\n");
	has_line(text, "# TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes ");
	has_line(text, "\nresource_scrape_error 0\n");
	CHECK(str_find(text, STR("container_swap_usage_bytes")) < 0); /* nobody knows it */
	w.fake.fails = true;
	text = metrics(&w, "resource");
	has_line(text, "resource_scrape_error 1\n");
	CHECK(str_find(text, STR("pod_")) < 0);
	world_done(&w);
}

CLOCK_TEST(stats_metrics_of_cadvisor)
{
	struct world w;

	world_init(&w);
	str text = metrics(&w, "cadvisor");
	has_line(text, "container_cpu_usage_seconds_total{container=\"\",cpu=\"total\",id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\"} ");
	has_line(text, "container_memory_failures_total{container=\"\",failure_type=\"pgmajfault\",id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\","
		       "scope=\"hierarchy\"} ");
	has_line(text, "# TYPE machine_cpu_cores gauge\nmachine_cpu_cores{boot_id=");
	has_line(text, "container_scrape_error 0\n");
	world_done(&w);
}

CLOCK_TEST(stats_metrics_of_the_kubelet)
{
	struct world w;

	world_init(&w);
	stats_count(w.s, "kubelet_b_total", "code=\"2\"", 1);
	stats_count(w.s, "kubelet_b_total", "code=\"1\"", 1);
	stats_count(w.s, "kubelet_b_total", "code=\"2\"", 2);
	stats_count(w.s, "kubelet_a", NULL, 0.5);
	stats_count(w.s, "kubelet_a", "", -0.25);
	str text = metrics(&w, "");
	has_line(text, "kubelet_node_name{node=\"n1\"} 1\n");
	has_line(text, "kubelet_running_pods 1\n");
	has_line(text, "# TYPE kubelet_a gauge\nkubelet_a 0.25\n"
		       "# TYPE kubelet_b_total counter\nkubelet_b_total{code=\"1\"} 1\nkubelet_b_total{code=\"2\"} 3\n");
	has_line(text, "process_start_time_seconds 1700000000.000\n");
	CHECK_STR(metrics(&w, "else"), "");
	world_done(&w);
}

/* With cgroups, figures of pods are those of theirs, and containers have their own. */
FIBER_TEST_IF(cgroups_possible(), stats_of_cgroups)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct cgroups *c = NULL;
	struct world w;
	struct err err = ERR_INIT;

	world_init(&w);
	cgroups_name_root();
	w.node.cgroup_root = arena_str(&w.arena, str_of(cgroups_left));
	w.node.cgroup_v2 = cgroup_mode() == CGROUP_V2;
	if (cgroups_new(&(struct cgroups_options){ .node = &w.node }, &c, &err) < 0)
		fail_msg("%s", err.msg);
	struct val pod = testing_typed(&w.arena, TYPE(core_v1, Pod),
				       "{'metadata':{'name':'p','namespace':'ns','uid':'u1'},'spec':{'containers':[{'name':'c',"
				       "'resources':{'limits':{'cpu':'1','memory':'64Mi'},'requests':{'cpu':'1','memory':'64Mi'}}}]}}");
	w.fake.pods = LIST(&w.arena, pod);
	w.s->o.cgroups = c;
	CHECK_INT(cgroups_pod_make(c, pod, &err), 0);
	CHECK_INT(cgroup_make(arena_printf(&w.arena, STR_FMT "/c-u1", STR_ARG(cgroups_pod_path(c, &w.arena, pod))).p, &g, &err), 0);

	struct val summary = stats_summary(w.s, &w.arena, true), shown = val_at(val_get(summary, pods), 0);
	CHECK_INT(val_int(shown, memory, availableBytes) + val_int(shown, memory, workingSetBytes), 64 << 20);
	CHECK(val_int(shown, cpu, usageCoreNanoSeconds) < NS_PER_S / 2); /* not what the runtime says */
	CHECK_INT(w.fake.asked, 0);                                     /* nor was it asked */
	CHECK(val_int(val_at(val_get(shown, containers), 0), memory, workingSetBytes) != 5000);
	CHECK_STR(val_str(val_at(val_get(summary, node, systemContainers), val_len(val_get(summary, node, systemContainers)) - 1), name), "pods");
	str text = metrics(&w, "cadvisor");
	has_line(text, arena_printf(&w.arena, "container_spec_memory_limit_bytes{container=\"\",id=\"%s/kubepods/podu1\",image=\"\",name=\"\","
					      "namespace=\"ns\",pod=\"p\"} 6.7108864e+07 ", cgroups_left).p);
	has_line(text, arena_printf(&w.arena, "container_memory_working_set_bytes{container=\"c\",id=\"%s/kubepods/podu1/c-u1\",image=\"busy\\\"box\","
					      "name=\"c-u1\",namespace=\"ns\",pod=\"p\"} ", cgroups_left).p);
	has_line(text, arena_printf(&w.arena, "container_network_receive_bytes_total{container=\"\",id=\"%s/kubepods/podu1\",image=\"\","
					      "interface=\"eth0\",name=\"\",namespace=\"ns\",pod=\"p\"} 11 ", cgroups_left).p);
	CHECK_INT(w.fake.asked, 1);
	/* A container whose cgroup is elsewhere. */
	CHECK_INT(cgroup_remove(g, &err), 0);
	shown = val_at(val_get(stats_summary(w.s, &w.arena, true), pods), 0);
	CHECK_INT(val_int(val_at(val_get(shown, containers), 0), memory, workingSetBytes), 5000);
	cgroups_free(c);
	world_done(&w);
	cgroups_tidy();
}

/* A rate needs two looks at some distance; one that runs back is a new container. */
CLOCK_TEST(stats_rates)
{
	struct world w;

	world_init(&w);
	CHECK_INT(stats_rate(w.s, STR("x"), 1000), -1);
	CHECK_INT(fiber_sleep_ms(500, NULL), 0);
	CHECK_INT(stats_rate(w.s, STR("x"), 2000), -1);
	CHECK_INT(fiber_sleep_ms(1500, NULL), 0);
	CHECK_INT(stats_rate(w.s, STR("x"), 1000 + NS_PER_S), 500000000);
	CHECK_INT(stats_rate(w.s, STR("x"), 1000 + 9 * NS_PER_S), 500000000);
	CHECK_INT(fiber_sleep_ms(2000, NULL), 0);
	CHECK_INT(stats_rate(w.s, STR("x"), 5), -1);
	world_done(&w);
}
