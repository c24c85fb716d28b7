/* c8s status: how a cluster is, in plain words. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/pki.h"
#include "base/fiber.h"
#include "base/file.h"
#include "client/client.h"
#include "cmd/serve.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { ASK_MS = 3000, TEXT_MAX = 1 << 20, PROBLEMS_MAX = 16, NAME_WIDTH = 15 };

struct status {
	const char *data_dir;
	struct up_cluster cluster;
	str problems[PROBLEMS_MAX];
	size_t n_problems;
};

static const struct flag flags[] = {
	FLAG_GROUP("Cluster"),
	{ "data-dir", FLAG_STRING, FLAG_WORKS, offsetof(struct status, data_dir), "/var/lib/c8s", "which one" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

static void line(const char *name, str text) { printf("%-*s" STR_FMT "\n", NAME_WIDTH, name, STR_ARG(text)); }

static void problem(struct status *s, str text)
{
	if (s->n_problems < PROBLEMS_MAX)
		s->problems[s->n_problems++] = text;
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

static void show_process(struct status *s, const char *name)
{
	struct arena *a = s->cluster.arena;
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	pid_t pid = 0;

	if (file_read(arena_printf(a, "%s/%s.pid", s->cluster.run_dir, name).p, &text, NULL) == 0) {
		buf_addc(&text, '\0');
		pid = (pid_t)strtol(text.p, NULL, 10);
	}
	if (pid <= 0 || access(arena_printf(a, "/proc/%d", pid).p, F_OK) < 0) {
		line(name, STR("not running"));
		problem(s, arena_printf(a, "the %s does not run; %s/%s.log says why", name, s->cluster.log_dir, name));
		return;
	}
	int64_t kb = kilobytes(a, pid, "smaps_rollup", STR("\nPss:"));
	line(name, arena_printf(a, "pid %d, %.1f MB of memory", pid, (double)kb / 1024));
}

/* ---- what the API server says ---- */

static str condition_of(struct val object, str type)
{
	VAL_EACH(condition, val_get(object, status, conditions))
		if (str_eq(val_str(*condition, type), type))
			return val_str(*condition, status);
	return STR("Unknown");
}

static void show_nodes(struct status *s, struct client *client)
{
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	struct arena *a = s->cluster.arena;
	struct client_list_options own = { .fields = arena_printf(a, "metadata.name=%s", s->cluster.settings.node_name) };
	struct err err = ERR_INIT;
	int64_t ready = 0, all = 0;

	/* A machine that has joined sees itself. */
	if (client_list(client, TYPE(core_v1, Node), s->cluster.settings.server ? &own : NULL, &list, &err) < 0) {
		problem(s, arena_printf(a, "nodes cannot be listed: %s", err.msg));
		return;
	}
	VAL_EACH(node, val_get(list->val, items)) {
		bool is_ready = str_eq(condition_of(*node, STR("Ready")), STR("True"));
		static const char *const pressures[] = { "MemoryPressure", "DiskPressure", "PIDPressure" };
		str name = val_str(*node, metadata, name);
		all++;
		ready += is_ready;
		if (!is_ready)
			problem(s, arena_printf(a, "node " STR_FMT " is not ready", STR_ARG(name)));
		for (size_t i = 0; i < ARRAY_LEN(pressures); i++)
			if (str_eq(condition_of(*node, str_of(pressures[i])), STR("True")))
				problem(s, arena_printf(a, "node " STR_FMT " has %s", STR_ARG(name), pressures[i]));
	}
	line("nodes", arena_printf(a, "%" PRId64 " of %" PRId64 " ready", ready, all));
}

static void show_pods(struct client *client)
{
	static const char *const phases[] = { "Running", "Pending", "Succeeded", "Failed", "Unknown" };
	CLEANUP(frozen_unrefp) struct frozen *list = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(256);
	int64_t counts[ARRAY_LEN(phases)] = { 0 };

	if (client_list(client, TYPE(core_v1, Pod), NULL, &list, NULL) < 0)
		return;
	VAL_EACH(pod, val_get(list->val, items))
		for (size_t i = 0; i < ARRAY_LEN(phases); i++)
			counts[i] += str_eq(val_str(*pod, status, phase), str_of(phases[i]));
	for (size_t i = 0; i < ARRAY_LEN(phases); i++)
		if (counts[i])
			buf_addf(&text, "%s%" PRId64 " %s", text.n ? ", " : "", counts[i], phases[i]);
	line("pods", text.n ? buf_str(&text) : STR("none"));
}

static void show_api(struct status *s)
{
	CLEANUP(client_freep) struct client *client = NULL;
	struct arena *a = s->cluster.arena;
	struct err err = ERR_INIT;
	str answer;
	DEADLINE_SCOPE(ASK_MS);

	if (up_connect(&s->cluster, &client, &err) < 0 || client_get_raw(client, a, STR("/readyz"), TEXT_MAX, &answer, &err) < 0) {
		line("API server", arena_printf(a, "%s does not answer", s->cluster.url));
		problem(s, arena_printf(a, "the API server does not answer: %s", err.msg));
		return;
	}
	line("API server", arena_printf(a, "%s, " KUBERNETES_VERSION ", ready", s->cluster.url));
	show_nodes(s, client);
	if (!s->cluster.settings.server)
		show_pods(client);
}

/* ---- all of it ---- */

static int show(void *arg, struct err *err)
{
	struct status *s = arg;
	struct arena *a = s->cluster.arena;
	CLEANUP(buf_done) struct buf certificates = BUF_INIT(TEXT_MAX);
	pid_t pid = 0;

	(void)err;
	if (!up_running(&s->cluster, &pid)) {
		line("cluster", arena_printf(a, "%s, not running; 'c8s up --data-dir %s' starts it", s->data_dir, s->data_dir));
		return -ERR_UNAVAILABLE;
	}
	line("cluster", arena_printf(a, "%s, running (supervisor: pid %d)", s->data_dir, pid));
	if (!s->cluster.settings.server)
		show_process(s, "control-plane");
	show_process(s, "node");
	show_api(s);
	if (!s->cluster.settings.server && pki_show(s->cluster.control_dir, &certificates, NULL) == 0)
		printf("\n" STR_FMT, STR_ARG(buf_str(&certificates)));
	for (size_t i = 0; i < s->n_problems; i++)
		printf("%sproblem: " STR_FMT "\n", i ? "" : "\n", STR_ARG(s->problems[i]));
	return s->n_problems ? -ERR_UNAVAILABLE : 0;
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
		"Shows the processes of the cluster that 'c8s up' has started, what its API server says, certificates and until when\n"
		"they are valid, and problems in plain words.\n"
		"\n"
		"Exit code: 0 all is well, 1 it does not run or there is a problem, 2 wrong usage.\n",
	.help = help,
	.run = run_command,
};
