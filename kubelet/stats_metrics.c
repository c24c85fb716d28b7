/*
 * Figures as metrics. resource: a summary of CPU and memory. cadvisor: every cgroup from the node's down to the containers', by the names
 * and labels that cAdvisor gave them. Of the kubelet itself: what its parts have counted.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apiserver/metrics_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/go.h"
#include "codec/time.h"
#include "kubelet/stats_priv.h"

static void add_number(struct buf *b, double d)
{
	char text[GO_FLOAT_MAX];

	buf_add(b, go_format_float(d, false, GO_FLOAT_G, text));
}

/* Label values have \, " and line ends escaped. */
static void add_label(struct buf *b, const char *name, str value)
{
	buf_addf(b, "%s%s=\"", b->n && b->p[b->n - 1] != '{' ? "," : "", name);
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];
		if (c == '\\' || c == '"' || c == '\n')
			buf_addc(b, '\\');
		buf_addc(b, c == '\n' ? 'n' : c);
	}
	buf_addc(b, '"');
}

/* ---- resource ---- */

enum level { NODE, POD, CONTAINER };

struct resource_row {
	const char *name, *help;
	enum level level;
	const char *type;
	atom group;                   /* cpu, memory, swap; 0: the object itself */
	double scale;
};

static bool resource_value(const struct resource_row *row, struct val of, double *ret, int64_t *ret_ms)
{
	struct val group = row->group ? val_member(of, row->group) : of, number = VAL_EMPTY;
	struct timestamp t = { 0 };
	str when = row->group ? val_str(group, time) : val_str(of, startTime);

	if (!val_exists(group) || !when.n || time_parse(when, &t, NULL) < 0)
		return false;
	*ret_ms = t.seconds * 1000 + t.nanos / 1000000;
	if (row->group == A_cpu)
		number = val_get(group, usageCoreNanoSeconds);
	else if (row->group == A_memory)
		number = val_get(group, workingSetBytes);
	else if (row->group == A_swap && str_ends(str_of(row->name), STR("limit_bytes")))
		number = val_has(group, swapAvailableBytes) ?
			val_of_int(val_int(group, swapAvailableBytes) + val_int(group, swapUsageBytes)) : VAL_EMPTY;
	else if (row->group == A_swap)
		number = val_get(group, swapUsageBytes);
	else
		number = t.seconds > 0 ? val_of_int(t.seconds) : VAL_EMPTY;
	*ret = val_as_double(number) * row->scale;
	return val_exists(number);
}

static void resource_series(struct buf *b, const struct resource_row *row, struct val pod, struct val of)
{
	double value;
	int64_t ms;

	if (!resource_value(row, of, &value, &ms))
		return;
	buf_addf(b, "%s", row->name);
	if (row->level != NODE) {
		buf_addc(b, '{');
		if (row->level == CONTAINER)
			add_label(b, "container", val_str(of, name));
		add_label(b, "namespace", val_str(pod, podRef, namespace));
		add_label(b, "pod", val_str(pod, podRef, name));
		buf_addc(b, '}');
	}
	buf_addc(b, ' ');
	add_number(b, value);
	if (row->group)
		buf_addf(b, " %lld", (long long)ms);
	buf_addc(b, '\n');
}

static void resource_row_write(struct buf *b, const struct resource_row *row, struct val summary)
{
	struct metrics_family f = metrics_family(b, row->name, row->type, row->help);

	if (row->level == NODE)
		resource_series(b, row, VAL_EMPTY, val_get(summary, node));
	else
		VAL_EACH(pod, val_get(summary, pods)) {
			if (row->level == POD)
				resource_series(b, row, *pod, *pod);
			else
				VAL_EACH(c, val_get(*pod, containers))
					resource_series(b, row, *pod, *c);
		}
	metrics_family_end(&f);
}

static void write_resource(struct stats *s, struct buf *b)
{
	static const struct resource_row rows[] = {
		{ "container_cpu_usage_seconds_total", "[STABLE] CPU time used by the container, in seconds of a core", CONTAINER, "counter", A_cpu, 1e-9 },
		{ "container_memory_working_set_bytes", "[STABLE] Working set of the container in bytes", CONTAINER, "gauge", A_memory, 1 },
		{ "container_start_time_seconds", "[STABLE] When the container began, in seconds since 1970", CONTAINER, "gauge", 0, 1 },
		{ "container_swap_limit_bytes", "[ALPHA] Swap that the container may use, in bytes", CONTAINER, "gauge", A_swap, 1 },
		{ "container_swap_usage_bytes", "[ALPHA] Swap that the container uses, in bytes", CONTAINER, "gauge", A_swap, 1 },
		{ "node_cpu_usage_seconds_total", "[STABLE] CPU time used by the node, in seconds of a core", NODE, "counter", A_cpu, 1e-9 },
		{ "node_memory_working_set_bytes", "[STABLE] Working set of the node in bytes", NODE, "gauge", A_memory, 1 },
		{ "node_swap_usage_bytes", "[ALPHA] Swap that the node uses, in bytes", NODE, "gauge", A_swap, 1 },
		{ "pod_cpu_usage_seconds_total", "[STABLE] CPU time used by the pod, in seconds of a core", POD, "counter", A_cpu, 1e-9 },
		{ "pod_memory_working_set_bytes", "[STABLE] Working set of the pod in bytes", POD, "gauge", A_memory, 1 },
		{ "pod_swap_usage_bytes", "[ALPHA] Swap that the pod uses, in bytes", POD, "gauge", A_swap, 1 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct look l;
	struct err err = ERR_INIT;
	bool failed = stats_look(s, &a, STR_NONE, LOOK_LEAN, &l, &err) < 0;

	if (failed) {
		log_warn("no figures for metrics", KV("err", &err));
	} else {
		struct val_builder pods = val_builder(&a);
		struct val node = stats_node(s, &a, &l, true);
		for (size_t i = 0; i < l.n; i++)
			val_add_item(&pods, stats_pod_tree(s, &a, &l.pods[i], true));
		struct val summary = OBJECT(&a, F(node, node), F(pods, val_end_list(&pods)));
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			resource_row_write(b, &rows[i], summary);
	}
	(void)metrics_family(b, "resource_scrape_error", "gauge", "[STABLE] 1 if there was an error in getting these figures, else 0");
	buf_addf(b, "resource_scrape_error %d\n", failed);
}

/* ---- cadvisor ---- */

/* Whose figures they are, with labels ready to be written: those before, between and behind where others may come. */
struct subject {
	const struct cgroup_look *cgroup;
	str container, id, name;      /* `container="c"`, `id="/x",image="i"`, `name="n",namespace="ns",pod="p"` */
	int64_t begun_ns;
	struct val network;           /* runtime.v1.NetworkUsage */
};

struct subjects {
	struct subject *all;
	size_t n;
};

static str label_text(struct arena *a, const char *const *names, const str *values, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);

	for (size_t i = 0; i < n; i++)
		add_label(&b, names[i], values[i]);
	return arena_str(a, buf_str(&b));
}

static void subject_add(struct subjects *l, struct arena *a, const struct cgroup_look *g, struct val meta, str container, str name, str image,
			int64_t begun_ns, struct val network)
{
	if (!g->ok)
		return;
	l->all[l->n++] = (struct subject){
		.cgroup = g, .begun_ns = begun_ns, .network = network,
		.container = label_text(a, (const char *const[]){ "container" }, &container, 1),
		.id = label_text(a, (const char *const[]){ "id", "image" }, (const str[]){ str_of(g->path), image }, 2),
		.name = label_text(a, (const char *const[]){ "name", "namespace", "pod" },
				   (const str[]){ name, val_str(meta, namespace), val_str(meta, name) }, 3),
	};
}

static struct subjects subjects_of(struct stats *s, struct arena *a, const struct look *l)
{
	struct subjects r = { 0 };
	size_t max = 2;

	for (size_t i = 0; i < l->n; i++)
		max += 2 + l->pods[i].n;
	r.all = ARENA_ARRAY(a, struct subject, max);
	subject_add(&r, a, &l->root, VAL_EMPTY, STR_NONE, STR_NONE, STR_NONE, s->boot_ns, VAL_EMPTY);
	subject_add(&r, a, &l->top, VAL_EMPTY, STR_NONE, STR_NONE, STR_NONE, s->begun_ns, VAL_EMPTY);
	for (size_t i = 0; i < l->n; i++) {
		const struct pod_look *p = &l->pods[i];
		struct val meta = val_get(p->sandbox, metadata);
		int64_t made = val_int(p->sandbox, createdAt);
		/* The network is that of the sandbox; where its own cgroup is not known, that of the pod stands for it. */
		struct val network = val_get(p->stats, network);
		subject_add(&r, a, &p->cgroup, meta, STR_NONE, STR_NONE, STR_NONE, made, p->own.ok ? VAL_EMPTY : network);
		subject_add(&r, a, &p->own, meta, STR_NONE, val_str(p->sandbox, id), STR_NONE, made, network);
		for (size_t k = 0; k < p->n; k++) {
			struct val c = p->containers[k].container;
			str image = val_str(c, image, userSpecifiedImage);
			subject_add(&r, a, &p->containers[k].cgroup, meta, val_str(c, metadata, name), val_str(c, id),
				    image.n ? image : val_str(c, image, image), val_int(c, createdAt), VAL_EMPTY);
		}
	}
	return r;
}

struct cadvisor_row {
	const char *name, *type, *help;
	const char *first, *last;     /* labels behind container, and at the end; NULL: none */
	bool (*value)(const struct subject *s, double *ret);
};

#define FIGURE(fn, expression)                                          \
	static bool fn(const struct subject *s, double *ret)            \
	{                                                               \
		const struct cgroup_stats *g = &s->cgroup->g;           \
		(void)g;                                                \
		*ret = (double)(expression);                            \
		return true;                                            \
	}
#define FIGURE_IF(fn, condition, expression)                            \
	static bool fn(const struct subject *s, double *ret)            \
	{                                                               \
		const struct cgroup_stats *g = &s->cgroup->g;           \
		const struct cgroup_limits *l = &s->cgroup->limits;     \
		(void)g, (void)l;                                       \
		*ret = (double)(expression);                            \
		return condition;                                       \
	}

FIGURE_IF(cfs_periods, l->cpu_quota_us > 0, g->cpu_periods)
FIGURE_IF(cfs_throttled, l->cpu_quota_us > 0, g->cpu_throttled_periods)
FIGURE_IF(cfs_throttled_seconds, l->cpu_quota_us > 0, (double)g->cpu_throttled_ns / 1e9)
FIGURE(cpu_system, (double)g->cpu_system_ns / 1e9)
FIGURE(cpu_usage, (double)g->cpu_usage_ns / 1e9)
FIGURE(cpu_user, (double)g->cpu_user_ns / 1e9)
FIGURE(fs_reads, g->io_read_bytes)
FIGURE(fs_writes, g->io_write_bytes)
FIGURE(last_seen, clock_wall_ns() / NS_PER_S)
FIGURE(memory_cache, g->memory_cache)
FIGURE(memory_faults, g->memory_page_faults)
FIGURE(memory_major_faults, g->memory_major_page_faults)
FIGURE(memory_rss, g->memory_rss)
FIGURE(memory_swap, g->memory_swap)
FIGURE(memory_usage, g->memory_usage)
FIGURE(memory_working_set, g->memory_working_set)
FIGURE(oom_events, g->oom_kills)
FIGURE_IF(spec_period, l->cpu_period_us > 0, l->cpu_period_us)
FIGURE_IF(spec_quota, l->cpu_quota_us > 0, l->cpu_quota_us)
FIGURE(spec_memory, g->memory_limit < MEMORY_UNLIMITED ? g->memory_limit : 0)
FIGURE_IF(started, s->begun_ns > 0, s->begun_ns / NS_PER_S)
FIGURE(threads, g->pids)
FIGURE(threads_max, g->pids_limit < MEMORY_UNLIMITED ? g->pids_limit : 0)

/* In the order of names, as Prometheus' libraries write them. */
static const struct cadvisor_row cadvisor_rows[] = {
	{ "container_cpu_cfs_periods_total", "counter", "Periods of the CPU limit that have passed.", NULL, NULL, cfs_periods },
	{ "container_cpu_cfs_throttled_periods_total", "counter", "Periods in which the limit was reached.", NULL, NULL, cfs_throttled },
	{ "container_cpu_cfs_throttled_seconds_total", "counter", "Seconds held up by the limit.", NULL, NULL, cfs_throttled_seconds },
	{ "container_cpu_system_seconds_total", "counter", "CPU time in the kernel, in seconds.", NULL, NULL, cpu_system },
	{ "container_cpu_usage_seconds_total", "counter", "CPU time in seconds.", "cpu=\"total\"", NULL, cpu_usage },
	{ "container_cpu_user_seconds_total", "counter", "CPU time in programs, in seconds.", NULL, NULL, cpu_user },
	{ "container_fs_reads_bytes_total", "counter", "Bytes read from disks.", "device=\"\"", NULL, fs_reads },
	{ "container_fs_writes_bytes_total", "counter", "Bytes written to disks.", "device=\"\"", NULL, fs_writes },
	{ "container_last_seen", "gauge", "When it was last looked at, in seconds since 1970.", NULL, NULL, last_seen },
	{ "container_memory_cache", "gauge", "Page cache in bytes.", NULL, NULL, memory_cache },
	{ "container_memory_failures_total", "counter", "Page faults.", "failure_type=\"pgfault\"", "scope=\"hierarchy\"", memory_faults },
	{ "container_memory_failures_total", NULL, NULL, "failure_type=\"pgmajfault\"", "scope=\"hierarchy\"", memory_major_faults },
	{ "container_memory_rss", "gauge", "Anonymous memory in bytes.", NULL, NULL, memory_rss },
	{ "container_memory_swap", "gauge", "Swap in bytes.", NULL, NULL, memory_swap },
	{ "container_memory_usage_bytes", "gauge", "Memory in bytes, with caches.", NULL, NULL, memory_usage },
	{ "container_memory_working_set_bytes", "gauge", "Working set in bytes.", NULL, NULL, memory_working_set },
	{ "container_oom_events_total", "counter", "Processes killed for want of memory.", NULL, NULL, oom_events },
	{ "container_spec_cpu_period", "gauge", "Period of the CPU limit in microseconds.", NULL, NULL, spec_period },
	{ "container_spec_cpu_quota", "gauge", "CPU limit, in microseconds of a period.", NULL, NULL, spec_quota },
	{ "container_spec_memory_limit_bytes", "gauge", "Memory limit in bytes; 0: none.", NULL, NULL, spec_memory },
	{ "container_start_time_seconds", "gauge", "When it began, in seconds since 1970.", NULL, NULL, started },
	{ "container_threads", "gauge", "Number of its threads.", NULL, NULL, threads },
	{ "container_threads_max", "gauge", "Greatest number of threads; 0: no limit.", NULL, NULL, threads_max },
};

static void add_series(struct buf *b, const char *name, const struct subject *s, const char *first, str interface, const char *last, double value)
{
	buf_addf(b, "%s{" STR_FMT "%s%s," STR_FMT, name, STR_ARG(s->container), first ? "," : "", first ? first : "", STR_ARG(s->id));
	if (interface.n)
		add_label(b, "interface", interface);
	buf_addf(b, "," STR_FMT "%s%s} ", STR_ARG(s->name), last ? "," : "", last ? last : "");
	add_number(b, value);
	buf_addf(b, " %lld\n", (long long)(clock_wall_ns() / NS_PER_MS));
}

static void write_interfaces(struct buf *b, const struct subjects *l)
{
	static const struct {
		const char *name, *help;
		atom member;
	} rows[] = {
		{ "container_network_receive_bytes_total", "Bytes received.", A_rxBytes },
		{ "container_network_receive_errors_total", "Errors in receiving.", A_rxErrors },
		{ "container_network_transmit_bytes_total", "Bytes sent.", A_txBytes },
		{ "container_network_transmit_errors_total", "Errors in sending.", A_txErrors },
	};

	for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
		struct metrics_family f = metrics_family(b, rows[r].name, "counter", rows[r].help);
		for (size_t i = 0; i < l->n; i++) {
			struct val network = l->all[i].network, first = val_get(network, defaultInterface);
			if (val_exists(first))
				add_series(b, rows[r].name, &l->all[i], NULL, val_str(first, name), NULL,
					   (double)val_int(val_member(first, rows[r].member), value));
			VAL_EACH(one, val_get(network, interfaces))
				add_series(b, rows[r].name, &l->all[i], NULL, val_str(*one, name), NULL,
					   (double)val_int(val_member(*one, rows[r].member), value));
		}
		metrics_family_end(&f);
	}
}

static void write_machine(const struct stats *s, struct buf *b)
{
	const struct {
		const char *name, *help;
		int64_t value;
	} rows[] = {
		{ "machine_cpu_cores", "Number of processors.", s->machine.cpus },
		{ "machine_memory_bytes", "Memory in bytes.", s->machine.memory_bytes },
		{ "machine_swap_bytes", "Swap in bytes.", s->machine.swap_bytes },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)metrics_family(b, rows[i].name, "gauge", rows[i].help);
		buf_addf(b, "%s{", rows[i].name);
		add_label(b, "boot_id", s->machine.boot_id);
		add_label(b, "machine_id", s->machine.machine_id);
		add_label(b, "system_uuid", s->machine.system_uuid);
		buf_addf(b, "} ");
		add_number(b, (double)rows[i].value);
		buf_addc(b, '\n');
	}
}

static void write_cadvisor(struct stats *s, struct buf *b)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct look l;
	struct err err = ERR_INIT;
	struct metrics_family f = { 0 };
	bool failed = stats_look(s, &a, STR_NONE, LOOK_CGROUPS, &l, &err) < 0;

	if (failed)
		log_warn("no figures for metrics", KV("err", &err));
	struct subjects all = subjects_of(s, &a, &l);
	for (size_t r = 0; r < ARRAY_LEN(cadvisor_rows); r++) {
		const struct cadvisor_row *row = &cadvisor_rows[r];
		if (row->type) {
			if (f.b)
				metrics_family_end(&f);
			f = metrics_family(b, row->name, row->type, row->help);
		}
		for (size_t i = 0; i < all.n; i++) {
			double value;
			if (row->value(&all.all[i], &value))
				add_series(b, row->name, &all.all[i], row->first, STR_NONE, row->last, value);
		}
	}
	metrics_family_end(&f);
	write_interfaces(b, &all);
	write_machine(s, b);
	(void)metrics_family(b, "container_scrape_error", "gauge", "1 if there was an error in getting these figures, else 0");
	buf_addf(b, "container_scrape_error %d\n", failed);
}

/* ---- the kubelet itself ---- */

void stats_count(struct stats *s, const char *metric, const char *labels, double add)
{
	CLEANUP(buf_done) struct buf key = BUF_INIT(4096);
	struct counter *c;

	buf_addf(&key, labels && labels[0] ? "%s{%s}" : "%s%s", metric, labels ? labels : "");
	if (key.overflow)
		return;
	if (!(c = map_get(&s->counters, buf_str(&key)))) {
		c = mem_zalloc(sizeof(*c));
		c->key = buf_take(&key);
		map_put(&s->counters, str_of(c->key), c);
	}
	c->value += add;
}

static int counter_order(const void *x, const void *y)
{
	return str_cmp(str_of((*(struct counter *const *)x)->key), str_of((*(struct counter *const *)y)->key));
}

static str name_of(const struct counter *c)
{
	str name, rest;

	(void)str_cut(str_of(c->key), '{', &name, &rest);
	return name;
}

static void write_counters(struct stats *s, struct buf *b)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct counter **all = ARENA_ARRAY(&a, struct counter *, map_len(&s->counters) + 1), *c;
	struct map_iter it = map_iter(&s->counters);
	size_t n = 0;

	while ((c = map_next(&it, NULL)))
		all[n++] = c;
	qsort(all, n, sizeof(*all), counter_order);
	for (size_t i = 0; i < n; i++) {
		str name = name_of(all[i]);
		if (!i || !str_eq(name, name_of(all[i - 1])))
			buf_addf(b, "# TYPE " STR_FMT " %s\n", STR_ARG(name), str_ends(name, STR("_total")) ? "counter" : "gauge");
		buf_addf(b, "%s ", all[i]->key);
		add_number(b, all[i]->value);
		buf_addc(b, '\n');
	}
}

static void write_memory_kept(struct stats *s, struct buf *b)
{
	int64_t min, low;

	cgroups_memory_kept(s->o.cgroups, &min, &low);
	(void)metrics_family(b, "kubelet_memory_qos_node_memory_min_bytes", "gauge", "Memory of Guaranteed pods that the kernel never takes back.");
	buf_addf(b, "kubelet_memory_qos_node_memory_min_bytes %lld\n", (long long)min);
	(void)metrics_family(b, "kubelet_memory_qos_node_memory_low_bytes", "gauge", "Memory of Burstable pods that the kernel takes back last.");
	buf_addf(b, "kubelet_memory_qos_node_memory_low_bytes %lld\n", (long long)low);
}

static void write_own(struct stats *s, struct buf *b)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf memory = BUF_INIT(4096);
	str total, resident, rest;
	int64_t pages = 0;
	struct rusage used;

	(void)metrics_family(b, "kubelet_node_name", "gauge", "The name of the node. It is always 1.");
	buf_addf(b, "kubelet_node_name{");
	add_label(b, "node", s->o.node->name);
	buf_addf(b, "} 1\n");
	(void)metrics_family(b, "kubelet_running_pods", "gauge", "Pods that are active.");
	buf_addf(b, "kubelet_running_pods %u\n", val_len(s->o.pods(s->o.arg, &a)));
	if (s->o.node->memory_qos)
		write_memory_kept(s, b);
	write_counters(s, b);
	getrusage(RUSAGE_SELF, &used);
	(void)metrics_family(b, "process_cpu_seconds_total", "counter", "Processor time used, in seconds.");
	buf_addf(b, "process_cpu_seconds_total %.6f\n", (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	if (file_read("/proc/self/statm", &memory, NULL) >= 0 && str_cut(buf_str(&memory), ' ', &total, &rest)) {
		(void)str_cut(rest, ' ', &resident, &rest);
		(void)str_to_i64(resident, &pages);
	}
	(void)metrics_family(b, "process_resident_memory_bytes", "gauge", "Resident memory in bytes.");
	buf_addf(b, "process_resident_memory_bytes %lld\n", (long long)pages * sysconf(_SC_PAGESIZE));
	(void)metrics_family(b, "process_start_time_seconds", "gauge", "When the process began, in seconds since 1970.");
	buf_addf(b, "process_start_time_seconds %.3f\n", (double)s->begun_ns / 1e9);
}

void stats_metrics(struct stats *s, str which, struct buf *text)
{
	if (str_eq(which, STR("resource")))
		write_resource(s, text);
	else if (str_eq(which, STR("cadvisor")))
		write_cadvisor(s, text);
	else if (!which.n)
		write_own(s, text);
}
