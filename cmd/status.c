/* c8s status: how a cluster is, in plain words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "apiserver/pki.h"
#include "base/fiber.h"
#include "base/file.h"
#include "client/client.h"
#include "cmd/serve.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/quantity.h"
#include "codec/types.h"

enum { ASK_MS = 3000, TEXT_MAX = 1 << 20, REMARKS_MAX = 16, NAME_WIDTH = 15, DISK_LOW_PERCENT = 5, FRESH_S = 10, STEADY_S = 60, MINUTE_S = 60, HOUR_S = 3600,
       DAY_S = 24 * 3600, SHOWN_TWICE = 2 };

struct remarks {
	str items[REMARKS_MAX];
	size_t n;
};

struct status {
	const char *data_dir;
	struct up_cluster cluster;
	int64_t runs_s;               /* the supervisor, for how long */
	struct remarks problems, notes; /* notes: what may be as it should */
};

static const struct flag flags[] = {
	FLAG_GROUP("Cluster"),
	{ "data-dir", FLAG_STRING, FLAG_WORKS, offsetof(struct status, data_dir), "/var/lib/c8s", "which one" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

static void line(const char *name, str text) { printf("%-*s" STR_FMT "\n", NAME_WIDTH, name, STR_ARG(text)); }

static void remark(struct remarks *r, str text)
{
	if (r->n < REMARKS_MAX)
		r->items[r->n++] = text;
}

static void show_remarks(const struct remarks *r, const char *what)
{
	for (size_t i = 0; i < r->n; i++)
		printf("%s%s: " STR_FMT "\n", i ? "" : "\n", what, STR_ARG(r->items[i]));
}

/* ---- processes ---- */

/* A number of kilobytes behind this word in a file of /proc. */
static int64_t kilobytes(struct arena *a, pid_t pid, const char *file, str word)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

	if (file_read(arena_printf(a, "/proc/%d/%s", pid, file).p, &text, NULL) < 0)
		return 0;
	ptrdiff_t at = str_find(buf_str(&text), word);
	return at < 0 ? 0 : strtoll(text.p + at + word.n, NULL, 10);
}

/* Whose child it is, and for how many seconds it runs. False: there is no such process. */
static bool look_at_process(struct arena *a, pid_t pid, pid_t *ret_parent, int64_t *ret_seconds)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX), uptime = BUF_INIT(TEXT_MAX);
	unsigned long long began;
	int parent;

	if (pid <= 0 || file_read(arena_printf(a, "/proc/%d/stat", pid).p, &text, NULL) < 0 || file_read("/proc/uptime", &uptime, NULL) < 0)
		return false;
	buf_addc(&text, '\0');
	const char *rest = strrchr(text.p, ')'); /* the name before it may have anything in it */
	if (!rest || sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &parent, &began) != 2)
		return false;
	*ret_parent = parent;
	*ret_seconds = strtoll(uptime.p, NULL, 10) - (int64_t)(began / (unsigned long long)sysconf(_SC_CLK_TCK));
	return true;
}

static str duration(struct arena *a, int64_t s)
{
	return s < SHOWN_TWICE * MINUTE_S ? arena_printf(a, "%" PRId64 " s", s) : s < SHOWN_TWICE * HOUR_S ? arena_printf(a, "%" PRId64 " min", s / MINUTE_S) :
	       s < SHOWN_TWICE * DAY_S ? arena_printf(a, "%" PRId64 " h", s / HOUR_S) : arena_printf(a, "%" PRId64 " days", s / DAY_S);
}

static pid_t read_pid(const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);

	if (file_read(path, &text, NULL) < 0)
		return 0;
	buf_addc(&text, '\0');
	return (pid_t)strtol(text.p, NULL, 10);
}

static void show_process(struct status *s, pid_t supervisor, const char *name)
{
	struct arena *a = s->cluster.arena;
	pid_t parent, pid = read_pid(arena_printf(a, "%s/%s.pid", s->cluster.run_dir, name).p);
	const char *log = arena_printf(a, "%s/%s.log", s->cluster.log_dir, name).p;
	int64_t runs_s;

	if (!look_at_process(a, pid, &parent, &runs_s) || parent != supervisor) {
		line(name, STR("not running"));
		remark(&s->problems, arena_printf(a, "the %s does not run; it is started again in a few seconds, and %s says why it ended", name, log));
		return;
	}
	int64_t kb = kilobytes(a, pid, "smaps_rollup", STR("\nPss:"));
	line(name, arena_printf(a, "pid %d, runs for " STR_FMT ", %.1f MB of memory", pid, STR_ARG(duration(a, runs_s)), (double)kb / 1024));
	if (runs_s < FRESH_S && s->runs_s > STEADY_S)
		remark(&s->notes, arena_printf(a, "the %s was started again a moment ago; %s says why", name, log));
}

/* ---- what the API server says ---- */

static struct val condition_of(struct val object, str type)
{
	VAL_EACH(condition, val_get(object, status, conditions))
		if (str_eq(val_str(*condition, type), type))
			return *condition;
	return VAL_NULL_VALUE;
}

static bool is_true(struct val object, const char *condition) { return str_eq(val_str(condition_of(object, str_of(condition)), status), STR("True")); }

static void add_quantity(struct quantity *sum, str text)
{
	struct quantity q;

	if (text.n && quantity_parse(text, &q, NULL) == 0)
		*sum = quantity_add(*sum, q);
}

struct resources {
	struct quantity cpu, memory;
};

static bool judge_node(struct status *s, struct val node)
{
	static const struct { const char *condition, *says; } pressures[] = {
		{ "MemoryPressure", "is short of memory: pods are evicted" },
		{ "DiskPressure", "is short of disk space: images are removed and pods are evicted" },
		{ "PIDPressure", "is short of process numbers: pods are evicted" },
	};
	struct arena *a = s->cluster.arena;
	str name = val_str(node, metadata, name);
	struct val condition = condition_of(node, STR("Ready"));
	bool ready = is_true(node, "Ready");

	if (!ready)
		remark(&s->problems, arena_printf(a, "node " STR_FMT " is not ready: " STR_FMT, STR_ARG(name),
						  STR_ARG(condition.type == VAL_OBJECT ? val_str(condition, message) : STR("its kubelet has not reported yet"))));
	for (size_t i = 0; i < ARRAY_LEN(pressures); i++)
		if (is_true(node, pressures[i].condition))
			remark(&s->problems, arena_printf(a, "node " STR_FMT " %s", STR_ARG(name), pressures[i].says));
	if (val_bool(node, spec, unschedulable))
		remark(&s->notes, arena_printf(a, "node " STR_FMT " takes no new pods (kubectl patch node " STR_FMT " -p '{\"spec\":{\"unschedulable\":null}}' "
					       "changes that)", STR_ARG(name), STR_ARG(name)));
	return ready;
}

static bool show_nodes(struct status *s, struct client *client, struct resources *ret)
{
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	struct arena *a = s->cluster.arena;
	struct client_list_options own = { .fields = arena_printf(a, "metadata.name=%s", s->cluster.settings.node_name) };
	struct err err = ERR_INIT;
	int64_t ready = 0, all = 0;

	/* A machine that has joined sees itself. */
	if (client_list(client, TYPE(core_v1, Node), s->cluster.settings.server ? &own : NULL, &list, &err) < 0) {
		remark(&s->problems, arena_printf(a, "nodes cannot be listed: %s", err.msg));
		return false;
	}
	VAL_EACH(node, val_get(list->val, items)) {
		all++;
		ready += judge_node(s, *node);
		add_quantity(&ret->cpu, val_str(*node, status, allocatable, cpu));
		add_quantity(&ret->memory, val_str(*node, status, allocatable, memory));
	}
	line("nodes", arena_printf(a, "%" PRId64 " of %" PRId64 " ready", ready, all));
	return true;
}

/* Why a pod does not run, in Kubernetes' words; empty when it does, or is about to. */
static str waits_for(struct val pod)
{
	struct val scheduled = condition_of(pod, STR("PodScheduled"));

	if (str_eq(val_str(scheduled, status), STR("False")))
		return val_str(scheduled, message);
	VAL_EACH(container, val_get(pod, status, containerStatuses)) {
		str reason = val_str(*container, state, waiting, reason);
		if (reason.n && !str_eq(reason, STR("ContainerCreating")) && !str_eq(reason, STR("PodInitializing")))
			return reason;
	}
	return STR_NONE;
}

static void judge_pod(struct status *s, struct val pod, struct resources *asked)
{
	str phase = val_str(pod, status, phase), waits = waits_for(pod);

	if (str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed")))
		return;
	VAL_EACH(container, val_get(pod, spec, containers)) {
		add_quantity(&asked->cpu, val_str(*container, resources, requests, cpu));
		add_quantity(&asked->memory, val_str(*container, resources, requests, memory));
	}
	if (waits.n)
		remark(&s->notes, arena_printf(s->cluster.arena, "pod " STR_FMT "/" STR_FMT " waits: " STR_FMT, STR_ARG(val_str(pod, metadata, namespace)),
					       STR_ARG(val_str(pod, metadata, name)), STR_ARG(waits)));
}

static void show_pods(struct status *s, struct client *client, const struct resources *there)
{
	static const char *const phases[] = { "Running", "Pending", "Succeeded", "Failed", "Unknown" };
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(256);
	int64_t counts[ARRAY_LEN(phases)] = { 0 };
	struct resources asked = { 0 };

	if (client_list(client, TYPE(core_v1, Pod), NULL, &list, NULL) < 0)
		return;
	VAL_EACH(pod, val_get(list->val, items)) {
		for (size_t i = 0; i < ARRAY_LEN(phases); i++)
			counts[i] += str_eq(val_str(*pod, status, phase), str_of(phases[i]));
		judge_pod(s, *pod, &asked);
	}
	for (size_t i = 0; i < ARRAY_LEN(phases); i++)
		if (counts[i])
			buf_addf(&text, "%s%" PRId64 " %s", text.n ? ", " : "", counts[i], phases[i]);
	line("pods", text.n ? buf_str(&text) : STR("none"));
	line("resources", arena_printf(s->cluster.arena, "pods ask for %.2g of %" PRId64 " CPUs and %" PRId64 " of %" PRId64 " MiB of memory",
				       (double)quantity_milli(asked.cpu) / 1000, quantity_value(there->cpu), quantity_value(asked.memory) >> 20,
				       quantity_value(there->memory) >> 20));
}

static str version_of_server(struct arena *a, struct client *client)
{
	struct val version;
	str answer;

	if (client_get_raw(client, a, STR("/version"), TEXT_MAX, &answer, NULL) < 0 ||
	    json_decode(a, answer, &(struct json_decode_options){ .type = NULL }, &version, NULL) < 0)
		return STR("of an unknown version");
	return val_as_str(val_find(version, STR("gitVersion")));
}

static void show_api(struct status *s)
{
	CLEANUP(client_freep) struct client *client = NULL;
	struct arena *a = s->cluster.arena;
	struct resources there = { 0 };
	struct err err = ERR_INIT;
	str answer;
	DEADLINE_SCOPE(ASK_MS);

	if (up_connect(&s->cluster, &client, &err) < 0 || client_get_raw(client, a, STR("/readyz"), TEXT_MAX, &answer, &err) < 0) {
		line("API server", arena_printf(a, "%s does not answer", s->cluster.url));
		remark(&s->problems, arena_printf(a, "the API server does not answer: %s", err.msg));
		return;
	}
	line("API server", arena_printf(a, "%s, Kubernetes " STR_FMT ", ready", s->cluster.url, STR_ARG(version_of_server(a, client))));
	if (show_nodes(s, client, &there) && !s->cluster.settings.server)
		show_pods(s, client, &there);
}

/* ---- files ---- */

static void show_disk(struct status *s)
{
	struct arena *a = s->cluster.arena;
	struct statfs fs;

	if (statfs(s->cluster.settings.data_dir, &fs) < 0 || !fs.f_blocks)
		return;
	int64_t mb = (int64_t)fs.f_bavail * fs.f_bsize / (1 << 20), percent = (int64_t)(fs.f_bavail * 100 / fs.f_blocks);
	line("disk", arena_printf(a, "%" PRId64 " MiB free, %" PRId64 " %%", mb, percent));
	if (percent < DISK_LOW_PERCENT)
		remark(&s->problems, arena_printf(a, "the disk of %s is nearly full: the API server may not be able to write, and pods are evicted; make room",
						  s->cluster.settings.data_dir));
}

static void show_certificates(struct status *s)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX), expired = BUF_INIT(TEXT_MAX);
	struct arena *a = s->cluster.arena;

	if (!s->cluster.settings.server)
		(void)pki_show(s->cluster.control_dir, &text, NULL);
	(void)pki_show_file("kubelet-client", "the node, towards the API server", arena_printf(a, "%s/pki/kubelet-client-current.pem", s->cluster.node_dir).p, &text, NULL);
	(void)pki_show_file("kubelet", "the node's own server", arena_printf(a, "%s/pki/kubelet.crt", s->cluster.node_dir).p, &text, NULL);
	if (text.n)
		printf("\n" STR_FMT, STR_ARG(buf_str(&text)));
	for (str rest = buf_str(&text), one, name, more; rest.n; ) {
		(void)str_cut(rest, '\n', &one, &rest);
		(void)str_cut(one, ' ', &name, &more);
		if (str_find(more, STR("EXPIRED")) >= 0)
			buf_addf(&expired, "%s" STR_FMT, expired.n ? ", " : "", STR_ARG(name));
	}
	if (expired.n)
		remark(&s->problems, arena_printf(a, "certificates have expired: " STR_FMT "; if the clock is right, a restart renews them ('c8s down --keep-containers "
						  "--data-dir %s', then up)", STR_ARG(buf_str(&expired)), s->cluster.settings.data_dir));
}

/* ---- all of it ---- */

static int show(void *arg, struct err *err)
{
	struct status *s = arg;
	struct arena *a = s->cluster.arena;
	const char *dir = s->cluster.settings.data_dir;
	pid_t pid = 0, parent;

	(void)err;
	if (!up_running(&s->cluster, &pid)) {
		line("cluster", arena_printf(a, "%s, not running; 'c8s up --data-dir %s' starts it", dir, dir));
		show_certificates(s);
		return -ERR_UNAVAILABLE;
	}
	(void)look_at_process(a, pid, &parent, &s->runs_s);
	line("cluster", arena_printf(a, "%s, runs for " STR_FMT " (supervisor: pid %d)", dir, STR_ARG(duration(a, s->runs_s)), pid));
	if (!s->cluster.settings.server)
		show_process(s, pid, "control-plane");
	show_process(s, pid, "node");
	show_api(s);
	show_disk(s);
	show_certificates(s);
	show_remarks(&s->problems, "problem");
	show_remarks(&s->notes, "note");
	return s->problems.n ? -ERR_UNAVAILABLE : 0;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(64);
	struct status s = { 0 };
	struct err err = ERR_INIT;
	int r = flags_parse(&cmd_status, argc, argv, flags, &s, &a, &later);

	if (r != 0)
		return r;
	if (up_load(&cmd_status, &a, s.data_dir, &s.cluster, &err) < 0)
		return cmd_fail(&cmd_status, &err);
	return cmd_serve("status", show, &s, &err) < 0 ? (err.code ? cmd_fail(&cmd_status, &err) : 1) : 0;
}

static void help(void) { flags_help(flags); }

const struct command cmd_status = {
	.name = "status",
	.summary = "how a cluster is",
	.manual =
		"Usage: c8s status [--data-dir DIR]\n"
		"\n"
		"Shows the processes of the cluster that 'c8s up' has started, what its API server says of nodes and pods, how much of the\n"
		"machine pods ask for, disk space, certificates and until when they are valid. Then problems in plain words, and notes:\n"
		"what may be as it should, such as a pod that waits for its image.\n"
		"\n"
		"Exit code: 0 all is well, 1 it does not run or there is a problem, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
