/* Figures: CPU and memory from cgroups, network from /proc, file systems from walks that are not repeated for some seconds. */
#include "runtime/stats.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "runtime/cri.h"

enum { LAYER_KEEP_S = 10, NET_DEV_MAX = 1 << 20, INTERFACES_MAX = 256, SAMPLE_MIN_MS = 100 };

/* ---- sources ---- */

int stats_of_cgroup(const char *path, struct cgroup_stats *ret, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	int r = cgroup_open(path, &g, err);

	return r < 0 ? r : cgroup_stats(g, ret, err);
}

bool interface_stats_parse(str line, struct interface_stats *ret)
{
	uint64_t n[16] = { 0 };
	str name, rest;
	size_t i = 0;

	if (!str_cut(line, ':', &name, &rest))
		return false;
	while (i < ARRAY_LEN(n) && (rest = str_trim(rest)).n) {
		str one;
		int64_t value;
		(void)str_cut(rest, ' ', &one, &rest);
		if (!str_to_i64(one, &value))
			return false;
		n[i++] = (uint64_t)value;
	}
	*ret = (struct interface_stats){ str_trim(name), n[0], n[1], n[2], n[3], n[8], n[9], n[10], n[11] };
	return i == ARRAY_LEN(n);
}

size_t stats_interfaces(const struct sandbox *s, struct arena *a, struct interface_stats **ret)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(NET_DEV_MAX);
	size_t n = 0;

	*ret = ARENA_ARRAY(a, struct interface_stats, INTERFACES_MAX);
	if (sandbox_host_network(s) || !s->pid || file_read(runtime_text(a, "/proc/%d/net/dev", (int)s->pid), &b, NULL) < 0)
		return 0;
	str text = arena_str(a, buf_str(&b)), line;
	while (text.n && n < INTERFACES_MAX) {
		(void)str_cut(text, '\n', &line, &text);
		if (interface_stats_parse(line, &(*ret)[n]) && !str_eq((*ret)[n].name, STR("lo")))
			n++;
	}
	return n;
}

int stats_layer(struct container *c, struct err *err)
{
	int64_t now = clock_now_ns();

	if (c->layer_at_ns && now - c->layer_at_ns < LAYER_KEEP_S * NS_PER_S)
		return 0;
	uint64_t bytes, inodes;
	int r = snapshot_usage(c->runtime->snapshots, str_of(c->id), &bytes, &inodes, err);
	if (r < 0)
		return r;
	c->layer_at_ns = now;
	c->layer_bytes = bytes;
	c->layer_inodes = inodes;
	return 0;
}

/* ---- trees ---- */

static struct val uint64_value(struct arena *a, uint64_t n) { return OBJECT(a, F(value, val_of_int((int64_t)n))); }

static struct val cpu_value(struct arena *a, struct cpu_sample *last, const struct cgroup_stats *g)
{
	int64_t now = clock_wall_ns(), since = now - last->at_ns;

	if (!last->at_ns || since >= SAMPLE_MIN_MS * NS_PER_MS) {
		if (last->at_ns && g->cpu_usage_ns >= last->cpu_ns) {
			last->nano_cores = (uint64_t)((double)(g->cpu_usage_ns - last->cpu_ns) / (double)since * 1e9);
			last->has_rate = true;
		}
		last->at_ns = now;
		last->cpu_ns = g->cpu_usage_ns;
	}
	return OBJECT(a, F(timestamp, val_of_int(now)), F(usageCoreNanoSeconds, uint64_value(a, g->cpu_usage_ns)),
		      F(usageNanoCores, last->has_rate ? uint64_value(a, last->nano_cores) : VAL_EMPTY));
}

static struct val memory_value(struct arena *a, const struct cgroup_stats *g)
{
	bool limited = g->memory_limit != UINT64_MAX && g->memory_limit < (UINT64_C(1) << 62);
	uint64_t left = limited && g->memory_limit > g->memory_working_set ? g->memory_limit - g->memory_working_set : 0;

	return OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())), F(workingSetBytes, uint64_value(a, g->memory_working_set)),
		      F(availableBytes, uint64_value(a, left)), F(usageBytes, uint64_value(a, g->memory_usage)),
		      F(rssBytes, uint64_value(a, g->memory_rss)), F(pageFaults, uint64_value(a, g->memory_page_faults)),
		      F(majorPageFaults, uint64_value(a, g->memory_major_page_faults)));
}

static struct val swap_value(struct arena *a, const struct cgroup_stats *g)
{
	bool limited = g->memory_swap_limit != UINT64_MAX && g->memory_swap_limit < (UINT64_C(1) << 62);
	uint64_t left = limited && g->memory_swap_limit > g->memory_swap ? g->memory_swap_limit - g->memory_swap : 0;

	return OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())), F(swapAvailableBytes, uint64_value(a, left)),
		      F(swapUsageBytes, uint64_value(a, g->memory_swap)));
}

static struct val file_system_value(struct arena *a, const char *path, uint64_t bytes, uint64_t inodes)
{
	return OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())),
		      F(fsId, OBJECT(a, F(mountpoint, VAL_STR(arena_str(a, str_of(path)))))), F(usedBytes, uint64_value(a, bytes)),
		      F(inodesUsed, uint64_value(a, inodes)));
}

static const char *snapshots_path(const struct runtime *r, struct arena *a)
{
	return runtime_text(a, "%s/snapshots", r->o.root);
}

/* (suspends) -ERR_UNAVAILABLE: it does not run. */
static int container_stats(struct container *c, struct arena *a, struct val *ret, struct err *err)
{
	struct val config = container_config(c);
	struct cgroup_stats g;
	int r;

	if (container_state(c) != CONTAINER_RUNNING)
		return err_set(err, ERR_UNAVAILABLE, "container \"%s\" is not running", c->id);
	if ((r = stats_of_cgroup(arena_str(a, val_str(container_record(c), cgroup)).p, &g, err)) < 0)
		return err_wrap(err, r, "failed to fetch metrics for task");
	if (stats_layer(c, err) < 0)
		log_debug("what a container has written cannot be measured", KV("container", c->id), KV("err", err));
	struct val attributes = OBJECT(a, F(id, VAL_STR(str_of(c->id))), F(metadata, val_get(config, metadata)),
				       F(labels, val_get(config, labels)), F(annotations, val_get(config, annotations)));
	*ret = val_copy(a, OBJECT(a, F(attributes, attributes), F(cpu, cpu_value(a, &c->cpu, &g)), F(memory, memory_value(a, &g)),
				  F(writableLayer,
				    file_system_value(a, snapshots_path(c->runtime, a), c->layer_bytes, c->layer_inodes)),
				  F(swap, swap_value(a, &g))));
	return 0;
}

static struct val interface_value(struct arena *a, const struct interface_stats *i)
{
	return OBJECT(a, F(name, VAL_STR(i->name)), F(rxBytes, uint64_value(a, i->rx_bytes)),
		      F(rxErrors, uint64_value(a, i->rx_errors)), F(txBytes, uint64_value(a, i->tx_bytes)),
		      F(txErrors, uint64_value(a, i->tx_errors)));
}

static struct val network_value(const struct sandbox *s, struct arena *a)
{
	struct interface_stats *all;
	size_t n = stats_interfaces(s, a, &all);
	struct val first = VAL_EMPTY;
	struct val_builder others = val_builder(a);

	for (size_t i = 0; i < n; i++) {
		if (str_eq(all[i].name, STR("eth0")))
			first = interface_value(a, &all[i]);
		else
			val_add_item(&others, interface_value(a, &all[i]));
	}
	return n ? OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())), F(defaultInterface, first),
			  F(interfaces, val_end_list(&others))) :
		   VAL_EMPTY;
}

/* ---- all of them, however they come and go meanwhile ---- */

typedef bool container_filter(const struct container *c, struct val filter);

static bool stats_wanted(const struct container *c, struct val filter)
{
	str id = val_str(filter, id), pod = val_str(filter, podSandboxId);

	return (!id.n || str_starts(str_of(c->id), id)) && (!pod.n || str_starts(str_of(c->sandbox->id), pod)) &&
	       cri_labels_match(val_get(container_config(c), labels), val_get(filter, labelSelector));
}

static int list_containers(struct runtime *r, struct arena *a, struct val filter, struct val *ret, struct err *err)
{
	size_t n = 0, max = map_len(&r->container_ids);
	struct container **all = ARENA_ARRAY(a, struct container *, max + 1);
	struct val_builder b = val_builder(a);
	struct val one;
	int code = 0;

	LIST_EACH(struct container, c, &r->containers, link)
		if (container_state(c) == CONTAINER_RUNNING && stats_wanted(c, filter))
			all[n++] = container_ref(c);
	for (size_t i = 0; i < n; i++) {
		if (code == 0 && container_stats(all[i], a, &one, NULL) == 0)
			val_add_item(&b, one); /* others have ended meanwhile */
		if (code == 0)
			code = fiber_check(err);
		container_unref(all[i]);
	}
	*ret = val_end_list(&b);
	return code;
}

static int sandbox_stats(struct sandbox *s, struct arena *a, struct val *ret, struct err *err)
{
	struct val config = sandbox_cri(s), containers;
	struct cgroup_stats g;
	int r;

	if (s->state != SANDBOX_READY)
		return err_set(err, ERR_UNAVAILABLE, "failed to get pod sandbox stats since sandbox container \"%s\" is not in ready state",
			       s->id);
	if ((r = stats_of_cgroup(sandbox_cgroup(s, a), &g, err)) < 0)
		return err_wrap(err, r, "failed getting metrics for sandbox %s", s->id);
	struct val filter = OBJECT(a, F(podSandboxId, VAL_STR(str_of(s->id))));
	if ((r = list_containers(s->runtime, a, filter, &containers, err)) < 0)
		return r;
	struct val attributes = OBJECT(a, F(id, VAL_STR(str_of(s->id))), F(metadata, val_get(config, metadata)),
				       F(labels, val_get(config, labels)), F(annotations, val_get(config, annotations)));
	struct val process = OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())), F(processCount, uint64_value(a, g.pids)));
	*ret = val_copy(a, OBJECT(a, F(attributes, attributes),
				  F(linux, OBJECT(a, F(cpu, cpu_value(a, &s->cpu, &g)), F(memory, memory_value(a, &g)),
						  F(network, network_value(s, a)), F(process, process),
						  F(containers, containers)))));
	return 0;
}

static int list_sandboxes(struct runtime *r, struct arena *a, struct val filter, struct val *ret, struct err *err)
{
	size_t n = 0, max = map_len(&r->sandbox_ids);
	struct sandbox **all = ARENA_ARRAY(a, struct sandbox *, max + 1);
	str id = val_str(filter, id);
	struct val_builder b = val_builder(a);
	struct val one;
	int code = 0;

	LIST_EACH(struct sandbox, s, &r->sandboxes, link)
		if (s->state == SANDBOX_READY && (!id.n || str_starts(str_of(s->id), id)) &&
		    cri_labels_match(val_get(sandbox_cri(s), labels), val_get(filter, labelSelector)))
			all[n++] = sandbox_ref(s);
	for (size_t i = 0; i < n; i++) {
		if (code == 0 && sandbox_stats(all[i], a, &one, NULL) == 0)
			val_add_item(&b, one);
		if (code == 0)
			code = fiber_check(err);
		sandbox_unref(all[i]);
	}
	*ret = val_end_list(&b);
	return code;
}

/* ---- calls ---- */

int cri_container_stats(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	struct val stats;
	int code = container_find(r, val_str(request, containerId), &c, err);

	if (code < 0)
		return err_wrap(err, code, "failed to find container");
	if ((code = container_stats(c, a, &stats, err)) == 0)
		*ret = OBJECT(a, F(stats, stats));
	return code;
}

int cri_list_container_stats(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val list;
	int code = list_containers(r, a, val_get(request, filter), &list, err);

	if (code == 0)
		*ret = OBJECT(a, F(stats, list));
	return code;
}

int cri_stream_container_stats(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	struct val list;
	int code = list_containers(r, s->arena, val_get(request, filter), &list, err);

	return code < 0 ? code : cri_send_list(s, A_containerStats, list, err);
}

int cri_pod_sandbox_stats(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;
	struct val stats;
	str id = val_str(request, podSandboxId);
	int code = sandbox_find(r, id, &s, err);

	if (code < 0)
		return err_wrap(err, code, "an error occurred when trying to find sandbox " STR_FMT, STR_ARG(id));
	if ((code = sandbox_stats(s, a, &stats, err)) == 0)
		*ret = OBJECT(a, F(stats, stats));
	return code;
}

int cri_list_pod_sandbox_stats(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val list;
	int code = list_sandboxes(r, a, val_get(request, filter), &list, err);

	if (code == 0)
		*ret = OBJECT(a, F(stats, list));
	return code;
}

int cri_stream_pod_sandbox_stats(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	struct val list;
	int code = list_sandboxes(r, s->arena, val_get(request, filter), &list, err);

	return code < 0 ? code : cri_send_list(s, A_podSandboxStats, list, err);
}
