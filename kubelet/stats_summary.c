/* The Summary: trees of api/stats.api from a look at the node and its pods. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/pod_rules.h"
#include "kubelet/stats_priv.h"
#include "runtime/stats.h"

enum { NET_DEV_MAX = 1 << 20 };

struct val stats_time(struct arena *a, int64_t wall_ns)
{
	char text[TIME_TEXT_MAX];

	return val_of_str(arena_str(a, time_format((struct timestamp){ wall_ns / NS_PER_S, (int32_t)(wall_ns % NS_PER_S) }, text)));
}

static struct val number(uint64_t n) { return val_of_int((int64_t)MIN(n, (uint64_t)INT64_MAX)); }

/* ---- file systems ---- */

/* used: of this user of the file system. */
static struct val fs_tree(struct arena *a, const struct fs_look *fs, struct val used, struct val inodes_used, int64_t now)
{
	return OBJECT(a, F(time, stats_time(a, now)), F(availableBytes, fs->ok ? number(fs->available) : VAL_EMPTY),
		      F(capacityBytes, fs->ok ? number(fs->capacity) : VAL_EMPTY), F(usedBytes, used),
		      F(inodesFree, fs->ok ? number(fs->inodes_free) : VAL_EMPTY), F(inodes, fs->ok ? number(fs->inodes) : VAL_EMPTY),
		      F(inodesUsed, inodes_used));
}

static struct fs_look fs_at(struct arena *a, str path)
{
	return path.n ? stats_fs(arena_str(a, path).p) : (struct fs_look){ 0 };
}

/* ---- from the runtime: UInt64Value is { value } ---- */

static struct val optional(struct val box) { return val_exists(box) ? val_of_int(val_int(box, value)) : VAL_EMPTY; }

static struct val cri_time(struct arena *a, struct val usage) { return stats_time(a, val_int(usage, timestamp)); }

static struct val psi_data(struct arena *a, struct val d)
{
	return OBJECT(a, F(total, val_of_int(val_int(d, Total))), F(avg10, val_of_double(val_double(d, Avg10))),
		      F(avg60, val_of_double(val_double(d, Avg60))), F(avg300, val_of_double(val_double(d, Avg300))));
}

static struct val psi_tree(struct arena *a, struct val psi)
{
	return val_exists(psi) ? OBJECT(a, F(full, psi_data(a, val_get(psi, Full))), F(some, psi_data(a, val_get(psi, Some)))) : VAL_EMPTY;
}

/* A runtime that knows no rate leaves it to us. */
static struct val cri_cpu(struct stats *s, struct arena *a, str id, struct val cpu)
{
	struct val rate = optional(val_get(cpu, usageNanoCores)), used = optional(val_get(cpu, usageCoreNanoSeconds));

	if (!val_exists(cpu))
		return VAL_EMPTY;
	if (!val_exists(rate) && val_exists(used)) {
		int64_t own = stats_rate(s, id, (uint64_t)val_as_int(used));
		rate = own < 0 ? VAL_EMPTY : val_of_int(own);
	}
	return OBJECT(a, F(time, cri_time(a, cpu)), F(usageNanoCores, rate), F(usageCoreNanoSeconds, used), F(psi, psi_tree(a, val_get(cpu, psi))));
}

static struct val cri_memory(struct arena *a, struct val m)
{
	if (!val_exists(m))
		return VAL_EMPTY;
	return OBJECT(a, F(time, cri_time(a, m)), F(availableBytes, optional(val_get(m, availableBytes))),
		      F(usageBytes, optional(val_get(m, usageBytes))), F(workingSetBytes, optional(val_get(m, workingSetBytes))),
		      F(rssBytes, optional(val_get(m, rssBytes))), F(pageFaults, optional(val_get(m, pageFaults))),
		      F(majorPageFaults, optional(val_get(m, majorPageFaults))), F(psi, psi_tree(a, val_get(m, psi))));
}

static struct val cri_swap(struct arena *a, struct val swap)
{
	if (!val_exists(swap))
		return VAL_EMPTY;
	return OBJECT(a, F(time, cri_time(a, swap)), F(swapAvailableBytes, optional(val_get(swap, swapAvailableBytes))),
		      F(swapUsageBytes, optional(val_get(swap, swapUsageBytes))));
}

static struct val cri_interface(struct arena *a, struct val i)
{
	return OBJECT(a, F(name, val_get(i, name)), F(rxBytes, optional(val_get(i, rxBytes))), F(rxErrors, optional(val_get(i, rxErrors))),
		      F(txBytes, optional(val_get(i, txBytes))), F(txErrors, optional(val_get(i, txErrors))));
}

/* The first interface stands in the object itself, and in the list too. */
static struct val network_tree(struct arena *a, struct val first, struct val list, int64_t when)
{
	struct val t = OBJECT(a, F(time, stats_time(a, when)));

	VAL_EACH_MEMBER(m, first)
		t = val_put(a, t, m->key, m->val);
	return val_put(a, t, A_interfaces, list);
}

static struct val cri_network(struct arena *a, struct val n)
{
	struct val_builder b = val_builder(a);
	struct val first = VAL_EMPTY;

	if (!val_exists(n))
		return VAL_EMPTY;
	if (val_has(n, defaultInterface)) {
		first = cri_interface(a, val_get(n, defaultInterface));
		val_add_item(&b, first);
	}
	VAL_EACH(i, val_get(n, interfaces))
		val_add_item(&b, cri_interface(a, *i));
	return network_tree(a, first, val_end_list(&b), val_int(n, timestamp));
}

/* ---- from cgroups ---- */

static struct val cgroup_cpu(struct stats *s, struct arena *a, const struct cgroup_look *l, int64_t now)
{
	int64_t rate = stats_rate(s, str_of(l->path), l->g.cpu_usage_ns);

	return OBJECT(a, F(time, stats_time(a, now)), F(usageNanoCores, val_of_int(MAX(rate, INT64_C(0)))),
		      F(usageCoreNanoSeconds, number(l->g.cpu_usage_ns)));
}

static struct val cgroup_memory(struct arena *a, const struct cgroup_look *l, int64_t now)
{
	const struct cgroup_stats *g = &l->g;
	bool limited = g->memory_limit < MEMORY_UNLIMITED;

	return OBJECT(a, F(time, stats_time(a, now)),
		      F(availableBytes, limited ? number(g->memory_limit - MIN(g->memory_working_set, g->memory_limit)) : VAL_EMPTY),
		      F(usageBytes, number(g->memory_usage)), F(workingSetBytes, number(g->memory_working_set)),
		      F(rssBytes, number(g->memory_rss)), F(pageFaults, number(g->memory_page_faults)),
		      F(majorPageFaults, number(g->memory_major_page_faults)));
}

static struct val cgroup_swap(struct arena *a, const struct cgroup_look *l, int64_t now)
{
	const struct cgroup_stats *g = &l->g;
	bool limited = g->memory_swap_limit < MEMORY_UNLIMITED;

	return OBJECT(a, F(time, stats_time(a, now)),
		      F(swapAvailableBytes, limited ? number(g->memory_swap_limit - MIN(g->memory_swap, g->memory_swap_limit)) : VAL_EMPTY),
		      F(swapUsageBytes, number(g->memory_swap)));
}

/* ---- pods ---- */

static struct val container_tree(struct stats *s, struct arena *a, const struct container_look *c, const struct fs_look *root_fs, bool brief,
				 int64_t now)
{
	struct val layer = val_get(c->stats, writableLayer), rootfs = VAL_EMPTY, logs = VAL_EMPTY;

	if (!brief && val_exists(layer)) {
		struct fs_look fs = fs_at(a, val_str(layer, fsId, mountpoint));
		rootfs = fs_tree(a, &fs, optional(val_get(layer, usedBytes)), optional(val_get(layer, inodesUsed)), val_int(layer, timestamp));
	}
	if (!brief && c->logs.ok)
		logs = fs_tree(a, root_fs, number(c->logs.bytes), number(c->logs.inodes), now);
	return OBJECT(a, F(name, val_get(c->container, metadata, name)), F(startTime, stats_time(a, val_int(c->container, createdAt))),
		      F(cpu, c->cgroup.ok ? cgroup_cpu(s, a, &c->cgroup, now) : cri_cpu(s, a, val_str(c->container, id), val_get(c->stats, cpu))),
		      F(memory, c->cgroup.ok ? cgroup_memory(a, &c->cgroup, now) : cri_memory(a, val_get(c->stats, memory))),
		      F(io, brief || !val_has(c->stats, io) ? VAL_EMPTY :
			    OBJECT(a, F(time, cri_time(a, val_get(c->stats, io))), F(psi, psi_tree(a, val_get(c->stats, io, psi))))),
		      F(rootfs, rootfs), F(logs, logs), F(swap, c->cgroup.ok ? cgroup_swap(a, &c->cgroup, now) : cri_swap(a, val_get(c->stats, swap))));
}

bool stats_volume_is_local(struct val v)
{
	str medium = val_str(v, emptyDir, medium);

	return val_has(v, configMap) || val_has(v, secret) || val_has(v, downwardAPI) || val_has(v, projected) || val_has(v, gitRepo) ||
	       (val_has(v, emptyDir) && !str_eq(medium, STR("Memory")) && !str_starts(medium, STR("HugePages")));
}

static bool is_local(struct val pod, str name) { return stats_volume_is_local(find_named(val_get(pod, spec, volumes), name)); }

struct sum {
	uint64_t bytes, inodes;
};

static void sum_add(struct sum *t, struct val fs)
{
	t->bytes += (uint64_t)val_int(fs, usedBytes);
	t->inodes += (uint64_t)val_int(fs, inodesUsed);
}

static struct val ephemeral_tree(struct arena *a, const struct pod_look *p, struct val containers, struct val volumes,
				 const struct fs_look *fs, int64_t now)
{
	struct sum t = { p->logs.bytes + p->hosts.bytes, p->logs.inodes + p->hosts.inodes };

	VAL_EACH(c, containers) {
		sum_add(&t, val_get(*c, rootfs));
		sum_add(&t, val_get(*c, logs));
	}
	VAL_EACH(v, volumes)
		if (is_local(p->pod, val_str(*v, name)))
			sum_add(&t, *v);
	return fs_tree(a, fs, number(t.bytes), number(t.inodes), now);
}

/* Those that go with the pod first. */
static struct val pod_volumes(struct stats *s, struct arena *a, const struct pod_look *p)
{
	const struct measured *m = map_get(&s->measured, val_str(p->sandbox, metadata, uid));
	struct val_builder b = val_builder(a);

	for (int local = 1; m && local >= 0; local--)
		VAL_EACH(v, m->volumes->val)
			if (is_local(p->pod, val_str(*v, name)) == (local == 1))
				val_add_item(&b, val_copy(a, *v));
	return val_end_list(&b);
}

struct val stats_pod_tree(struct stats *s, struct arena *a, const struct pod_look *p, bool brief)
{
	int64_t now = clock_wall_ns();
	struct fs_look fs = fs_at(a, s->o.node->root);
	struct val meta = val_get(p->sandbox, metadata), linux_stats = p->stats, volumes = brief ? VAL_EMPTY : pod_volumes(s, a, p);
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < p->n; i++)
		val_add_item(&b, container_tree(s, a, &p->containers[i], &fs, brief, now));
	struct val containers = val_end_list(&b), count = optional(val_get(linux_stats, process, processCount));
	return OBJECT(a, F(podRef, OBJECT(a, F(name, val_get(meta, name)), F(namespace, val_get(meta, namespace)), F(uid, val_get(meta, uid)))),
		      F(startTime, stats_time(a, val_int(p->sandbox, createdAt))), F(containers, containers),
		      F(cpu, p->cgroup.ok ? cgroup_cpu(s, a, &p->cgroup, now) : cri_cpu(s, a, val_str(p->sandbox, id), val_get(linux_stats, cpu))),
		      F(memory, p->cgroup.ok ? cgroup_memory(a, &p->cgroup, now) : cri_memory(a, val_get(linux_stats, memory))),
		      F(network, brief ? VAL_EMPTY : cri_network(a, val_get(linux_stats, network))), F(volume, val_len(volumes) ? volumes : VAL_EMPTY),
		      F(ephemeral_storage, brief ? VAL_EMPTY : ephemeral_tree(a, p, containers, volumes, &fs, now)),
		      F(process_stats, brief || !val_exists(count) ? VAL_EMPTY : OBJECT(a, F(process_count, count))),
		      F(swap, p->cgroup.ok ? cgroup_swap(a, &p->cgroup, now) : VAL_EMPTY));
}

/* ---- the node ---- */

static struct val node_memory(struct arena *a, const struct memory_look *m, int64_t now)
{
	return OBJECT(a, F(time, stats_time(a, now)), F(availableBytes, number(m->total - MIN(m->working_set, m->total))),
		      F(usageBytes, number(m->usage)), F(workingSetBytes, number(m->working_set)), F(rssBytes, number(m->rss)),
		      F(pageFaults, number(m->faults)), F(majorPageFaults, number(m->major_faults)));
}

static bool is_of_pods(str name)
{
	return str_eq(name, STR("lo")) || str_starts(name, STR("veth")) || str_starts(name, STR("docker"));
}

static struct val node_network(struct arena *a, int64_t now)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(NET_DEV_MAX);
	struct val_builder list = val_builder(a);
	struct val first = VAL_EMPTY;

	if (file_read("/proc/net/dev", &b, NULL) < 0)
		return VAL_EMPTY;
	for (str line, text = arena_str(a, buf_str(&b)); text.n;) {
		struct interface_stats i;
		(void)str_cut(text, '\n', &line, &text);
		if (!interface_stats_parse(line, &i) || is_of_pods(i.name))
			continue;
		struct val tree = OBJECT(a, F(name, VAL_STR(i.name)), F(rxBytes, number(i.rx_bytes)), F(rxErrors, number(i.rx_errors)),
					 F(txBytes, number(i.tx_bytes)), F(txErrors, number(i.tx_errors)));
		if (str_eq(i.name, STR("eth0")))
			first = tree;
		val_add_item(&list, tree);
	}
	return network_tree(a, first, val_end_list(&list), now);
}

/* (suspends) */
static struct val runtime_tree(struct stats *s, struct arena *a)
{
	struct val reply, image, containers;
	struct err err = ERR_INIT;

	if (cri_ask(s->o.cri, &rpc_ImageService_ImageFsInfo, a, VAL_EMPTY_OBJECT, 0, &reply, &err) < 0) {
		log_debug("the runtime tells nothing of its file systems", KV("err", &err));
		return VAL_EMPTY;
	}
	image = val_at(val_get(reply, imageFilesystems), 0);
	containers = val_at(val_get(reply, containerFilesystems), 0);
	struct fs_look image_fs = fs_at(a, val_str(image, fsId, mountpoint)), container_fs = fs_at(a, val_str(containers, fsId, mountpoint));
	struct val image_tree = fs_tree(a, &image_fs, optional(val_get(image, usedBytes)), optional(val_get(image, inodesUsed)),
					val_int(image, timestamp));
	/* Where both are in one place, Kubernetes shows it twice. */
	bool apart = val_exists(containers) && !str_eq(val_str(image, fsId, mountpoint), val_str(containers, fsId, mountpoint));
	return OBJECT(a, F(imageFs, image_tree),
		      F(containerFs, !apart ? image_tree :
				     fs_tree(a, &container_fs, optional(val_get(containers, usedBytes)), optional(val_get(containers, inodesUsed)),
					     val_int(containers, timestamp))));
}

static struct val system_container(struct stats *s, struct arena *a, const char *name, const struct cgroup_look *l, int64_t begun_ns, int64_t now)
{
	return OBJECT(a, F(name, VAL_STR(str_of(name))), F(startTime, stats_time(a, begun_ns)), F(cpu, cgroup_cpu(s, a, l, now)),
		      F(memory, cgroup_memory(a, l, now)), F(swap, cgroup_swap(a, l, now)));
}

static struct val rlimit_tree(struct arena *a, int64_t now)
{
	int64_t max, count;

	stats_tasks(&max, &count);
	return OBJECT(a, F(time, stats_time(a, now)), F(maxpid, max < 0 ? VAL_EMPTY : val_of_int(max)),
		      F(curproc, count < 0 ? VAL_EMPTY : val_of_int(count)));
}

struct val stats_node(struct stats *s, struct arena *a, const struct look *l, bool brief)
{
	int64_t now = clock_wall_ns();
	struct memory_look m = stats_memory();
	struct fs_look fs = fs_at(a, s->o.node->root);
	struct val_builder system = val_builder(a);

	if (l->self.ok)
		val_add_item(&system, system_container(s, a, "kubelet", &l->self, s->begun_ns, now));
	if (l->top.ok)
		val_add_item(&system, system_container(s, a, "pods", &l->top, s->begun_ns, now));
	return OBJECT(a, F(nodeName, VAL_STR(s->o.node->name)), F(systemContainers, val_end_list(&system)), F(startTime, stats_time(a, s->boot_ns)),
		      F(cpu, l->root.ok ? cgroup_cpu(s, a, &l->root, now) : VAL_EMPTY), F(memory, node_memory(a, &m, now)),
		      F(network, brief ? VAL_EMPTY : node_network(a, now)),
		      F(fs, brief ? VAL_EMPTY : fs_tree(a, &fs, number(fs.used), number(fs.inodes - MIN(fs.inodes_free, fs.inodes)), now)),
		      F(runtime, brief ? VAL_EMPTY : runtime_tree(s, a)), F(rlimit, brief ? VAL_EMPTY : rlimit_tree(a, now)),
		      F(swap, OBJECT(a, F(time, stats_time(a, now)), F(swapAvailableBytes, number(m.swap_total - m.swap_used)),
				     F(swapUsageBytes, number(m.swap_used)))));
}

static struct val typed(struct arena *a, struct val loose, const struct type *type)
{
	struct val v;
	struct err err = ERR_INIT;

	if (val_canonical(a, loose, type, NULL, &v, &err) >= 0)
		return v;
	log_error("figures that fit no schema", KV("err", &err));
	return loose;
}

struct val stats_summary(struct stats *s, struct arena *a, bool brief)
{
	struct val_builder pods = val_builder(a);
	struct look l;
	struct err err = ERR_INIT;

	if (stats_look(s, a, STR_NONE, brief ? LOOK_LEAN : LOOK_FOLDERS, &l, &err) < 0)
		log_warn("the runtime tells nothing of its containers", KV("err", &err));
	struct val node = stats_node(s, a, &l, brief);
	for (size_t i = 0; i < l.n; i++)
		val_add_item(&pods, stats_pod_tree(s, a, &l.pods[i], brief));
	return typed(a, OBJECT(a, F(node, node), F(pods, val_end_list(&pods))), TYPE(stats_v1alpha1, Summary));
}

struct val stats_pod(struct stats *s, struct arena *a, struct val pod)
{
	struct look l;
	struct err err = ERR_INIT;
	size_t newest = 0;

	if (stats_measure(s, pod, true, &err) < 0)
		log_debug("volumes cannot be measured", KV("pod", val_str(pod, metadata, name)), KV("err", &err));
	if (stats_look(s, a, val_str(pod, metadata, uid), LOOK_FOLDERS, &l, &err) < 0 || !l.n)
		return VAL_EMPTY;
	for (size_t i = 1; i < l.n; i++)
		if (val_int(l.pods[i].sandbox, createdAt) > val_int(l.pods[newest].sandbox, createdAt))
			newest = i;
	return typed(a, stats_pod_tree(s, a, &l.pods[newest], false), TYPE(stats_v1alpha1, PodStats));
}
