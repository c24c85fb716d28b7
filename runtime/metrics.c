/*
 * Figures as metrics, by the names that cAdvisor gave them. Values are whole numbers: times are in seconds, as their names say. A
 * table has one row per metric: its name, what it means, and how it comes from the figures.
 */
#include "base/clock.h"
#include "codec/atoms.h"
#include "runtime/cri.h"
#include "runtime/stats.h"

enum labels { LABELS_BASE, LABELS_INTERFACE };

/* All that a row may take its value from. */
struct figures {
	const struct cgroup_stats *g;
	const struct interface_stats *interface;
	const struct container *container;
};

struct metric {
	const char *name, *help;
	bool gauge;
	enum labels labels;
	uint64_t (*value)(const struct figures *f);
};

#define FIGURE(fn, expression) \
	static uint64_t fn(const struct figures *f __attribute__((unused))) { return expression; }

FIGURE(cpu_user, f->g->cpu_user_ns / NS_PER_S)
FIGURE(cpu_system, f->g->cpu_system_ns / NS_PER_S)
FIGURE(cpu_usage, f->g->cpu_usage_ns / NS_PER_S)
FIGURE(cpu_periods, f->g->cpu_periods)
FIGURE(cpu_throttled_periods, f->g->cpu_throttled_periods)
FIGURE(cpu_throttled, f->g->cpu_throttled_ns / NS_PER_S)
FIGURE(memory_cache, f->g->memory_cache)
FIGURE(memory_rss, f->g->memory_rss)
FIGURE(memory_swap, f->g->memory_swap)
FIGURE(memory_usage, f->g->memory_usage)
FIGURE(memory_working_set, f->g->memory_working_set)
FIGURE(oom_events, f->g->oom_kills)
FIGURE(fs_read, f->g->io_read_bytes)
FIGURE(fs_written, f->g->io_write_bytes)
FIGURE(fs_usage, f->container->layer_bytes)
FIGURE(processes, f->g->pids)
FIGURE(threads_max, f->g->pids_limit == UINT64_MAX ? 0 : f->g->pids_limit)
FIGURE(last_seen, (uint64_t)(clock_wall_ns() / NS_PER_S))
FIGURE(start_time, (uint64_t)(f->container->started_ns / NS_PER_S))
FIGURE(spec_cpu_period, (uint64_t)val_int(container_resources(f->container), cpuPeriod))
FIGURE(spec_cpu_shares, (uint64_t)val_int(container_resources(f->container), cpuShares))
FIGURE(spec_memory, (uint64_t)val_int(container_resources(f->container), memoryLimitInBytes))
FIGURE(spec_swap, (uint64_t)val_int(container_resources(f->container), memorySwapLimitInBytes))
FIGURE(rx_bytes, f->interface->rx_bytes)
FIGURE(rx_packets, f->interface->rx_packets)
FIGURE(rx_dropped, f->interface->rx_dropped)
FIGURE(rx_errors, f->interface->rx_errors)
FIGURE(tx_bytes, f->interface->tx_bytes)
FIGURE(tx_packets, f->interface->tx_packets)
FIGURE(tx_dropped, f->interface->tx_dropped)
FIGURE(tx_errors, f->interface->tx_errors)

static const struct metric of_containers[] = {
	{ "container_cpu_user_seconds_total", "CPU time spent in user mode so far, in seconds.", false, LABELS_BASE, cpu_user },
	{ "container_cpu_system_seconds_total", "CPU time spent in the kernel so far, in seconds.", false, LABELS_BASE, cpu_system },
	{ "container_cpu_usage_seconds_total", "CPU time used so far, in seconds.", false, LABELS_BASE, cpu_usage },
	{ "container_cpu_cfs_periods_total", "Periods of the CPU limit that have passed.", false, LABELS_BASE, cpu_periods },
	{ "container_cpu_cfs_throttled_periods_total", "Periods in which the CPU limit was reached.", false, LABELS_BASE,
	  cpu_throttled_periods },
	{ "container_cpu_cfs_throttled_seconds_total", "Time spent waiting because of the CPU limit, in seconds.", false, LABELS_BASE,
	  cpu_throttled },
	{ "container_memory_cache", "Bytes of page cache.", true, LABELS_BASE, memory_cache },
	{ "container_memory_rss", "Bytes of anonymous memory.", true, LABELS_BASE, memory_rss },
	{ "container_memory_swap", "Bytes of swap.", true, LABELS_BASE, memory_swap },
	{ "container_memory_usage_bytes", "Bytes of memory in use, with caches.", true, LABELS_BASE, memory_usage },
	{ "container_memory_working_set_bytes", "Bytes of memory that cannot be taken back easily.", true, LABELS_BASE,
	  memory_working_set },
	{ "container_oom_events_total", "Processes killed for want of memory.", false, LABELS_BASE, oom_events },
	{ "container_fs_reads_bytes_total", "Bytes read from disks.", false, LABELS_BASE, fs_read },
	{ "container_fs_writes_bytes_total", "Bytes written to disks.", false, LABELS_BASE, fs_written },
	{ "container_fs_usage_bytes", "Bytes that the container has written to its root file system.", true, LABELS_BASE, fs_usage },
	{ "container_processes", "Processes and threads in the container.", true, LABELS_BASE, processes },
	{ "container_threads_max", "Limit of processes and threads; 0 is none.", true, LABELS_BASE, threads_max },
	{ "container_last_seen", "When the container was last seen, in seconds since 1970.", true, LABELS_BASE, last_seen },
	{ "container_start_time_seconds", "When the container was started, in seconds since 1970.", true, LABELS_BASE, start_time },
	{ "container_spec_cpu_period", "Period of the CPU limit, in microseconds.", true, LABELS_BASE, spec_cpu_period },
	{ "container_spec_cpu_shares", "Weight of the container against others.", true, LABELS_BASE, spec_cpu_shares },
	{ "container_spec_memory_limit_bytes", "Memory limit; 0 is none.", true, LABELS_BASE, spec_memory },
	{ "container_spec_memory_swap_limit_bytes", "Limit of memory and swap together; 0 is none.", true, LABELS_BASE, spec_swap },
};

static const struct metric of_interfaces[] = {
	{ "container_network_receive_bytes_total", "Bytes received.", false, LABELS_INTERFACE, rx_bytes },
	{ "container_network_receive_packets_total", "Packets received.", false, LABELS_INTERFACE, rx_packets },
	{ "container_network_receive_packets_dropped_total", "Packets dropped on arrival.", false, LABELS_INTERFACE, rx_dropped },
	{ "container_network_receive_errors_total", "Errors on arrival.", false, LABELS_INTERFACE, rx_errors },
	{ "container_network_transmit_bytes_total", "Bytes sent.", false, LABELS_INTERFACE, tx_bytes },
	{ "container_network_transmit_packets_total", "Packets sent.", false, LABELS_INTERFACE, tx_packets },
	{ "container_network_transmit_packets_dropped_total", "Packets dropped when sending.", false, LABELS_INTERFACE, tx_dropped },
	{ "container_network_transmit_errors_total", "Errors when sending.", false, LABELS_INTERFACE, tx_errors },
};

/* ---- names ---- */

static struct val label_keys(struct arena *a, enum labels labels)
{
	struct val base = LIST(a, VAL_LIT("pod"), VAL_LIT("namespace"), VAL_LIT("container"), VAL_LIT("id"), VAL_LIT("image"));

	return labels == LABELS_INTERFACE ? val_list_append(a, base, VAL_LIT("interface")) : base;
}

static void add_descriptors(struct val_builder *b, const struct metric *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		val_add_item(b, OBJECT(b->arena, F(name, VAL_STR(str_of(all[i].name))), F(help, VAL_STR(str_of(all[i].help))),
				       F(labelKeys, label_keys(b->arena, all[i].labels))));
}

int cri_list_metric_descriptors(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);

	(void)r, (void)request, (void)err;
	add_descriptors(&b, of_containers, ARRAY_LEN(of_containers));
	add_descriptors(&b, of_interfaces, ARRAY_LEN(of_interfaces));
	*ret = OBJECT(a, F(descriptors, val_end_list(&b)));
	return 0;
}

/* ---- values ---- */

static void add_values(struct val_builder *b, const struct metric *all, size_t n, const struct figures *f, struct val labels)
{
	struct val now = val_of_int(clock_wall_ns());

	for (size_t i = 0; i < n; i++)
		val_add_item(b, OBJECT(b->arena, F(name, VAL_STR(str_of(all[i].name))), F(timestamp, now),
				       F(metricType, all[i].gauge ? VAL_LIT("GAUGE") : VAL_LIT("COUNTER")), F(labelValues, labels),
				       F(value, OBJECT(b->arena, F(value, val_of_int((int64_t)all[i].value(f)))))));
}

static struct val labels_of(struct arena *a, const struct sandbox *s, str container, str id, str image)
{
	struct val metadata = val_get(sandbox_cri(s), metadata);

	return LIST(a, VAL_STR(val_str(metadata, name)), VAL_STR(val_str(metadata, namespace)), VAL_STR(container), VAL_STR(id),
		    VAL_STR(image));
}

static bool container_metrics(struct container *c, struct arena *a, struct val *ret)
{
	struct val record = container_record(c), config = container_config(c);
	struct cgroup_stats g;
	struct figures f = { &g, NULL, c };
	struct val_builder b = val_builder(a);

	if (container_state(c) != CONTAINER_RUNNING ||
	    stats_of_cgroup(arena_str(a, val_str(record, cgroup)).p, &g, NULL) < 0)
		return false;
	struct val labels = labels_of(a, c->sandbox, val_str(config, metadata, name), str_of(c->id), val_str(record, imageName));
	add_values(&b, of_containers, ARRAY_LEN(of_containers), &f, labels);
	*ret = OBJECT(a, F(containerId, VAL_STR(str_of(c->id))), F(metrics, val_end_list(&b)));
	return true;
}

static struct val sandbox_metrics(struct sandbox *s, struct arena *a)
{
	struct interface_stats *interfaces;
	size_t n = stats_interfaces(s, a, &interfaces);
	struct val_builder own = val_builder(a), containers = val_builder(a);
	struct val base = labels_of(a, s, STR(""), str_of(s->id), STR("")), one;

	for (size_t i = 0; i < n; i++) {
		struct figures f = { .interface = &interfaces[i] };
		add_values(&own, of_interfaces, ARRAY_LEN(of_interfaces), &f, val_list_append(a, base, VAL_STR(interfaces[i].name)));
	}
	LIST_EACH(struct container, c, &s->containers, in_sandbox)
		if (container_metrics(c, a, &one))
			val_add_item(&containers, one);
	return OBJECT(a, F(podSandboxId, VAL_STR(str_of(s->id))), F(metrics, val_end_list(&own)),
		      F(containerMetrics, val_end_list(&containers)));
}

static struct val all_metrics(struct runtime *r, struct arena *a)
{
	struct val_builder b = val_builder(a);

	LIST_EACH(struct sandbox, s, &r->sandboxes, link)
		if (s->state == SANDBOX_READY)
			val_add_item(&b, sandbox_metrics(s, a));
	return val_copy(a, val_end_list(&b));
}

int cri_list_pod_sandbox_metrics(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)request, (void)err;
	*ret = OBJECT(a, F(podMetrics, all_metrics(r, a)));
	return 0;
}

int cri_stream_pod_sandbox_metrics(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	(void)request;
	return cri_send_list(s, A_podSandboxMetrics, all_metrics(r, s->arena), err);
}
