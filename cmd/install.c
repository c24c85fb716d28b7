/*
 * c8s install: the cluster becomes a service of systemd. The unit is a few lines around `c8s up`; what it was told besides is kept in its command.
 */
#include "cmd/install.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "client/kubeconfig.h"
#include "cmd/machine_stop.h"
#include "cmd/serve.h"
#include "cmd/up.h"

enum { UNIT_MAX = 1 << 16, OUTPUT_MAX = 1 << 16 };

#define FIRST_LINE "# Made by 'c8s install'.\n"

static const char units[] = "/etc/systemd/system";

struct install {
	const char *unit_dir;
	bool print, uninstall, now, stopped;
	struct up_cluster cluster;
	const char *const *flags;     /* that `up` shall have */
	const char *unit, *path;      /* "c8s.service", and where it is */
};

#define AT(member) FLAG_WORKS, offsetof(struct install, member)

static const struct flag flags[] = {
	FLAG_GROUP("Service"),
	{ "now", FLAG_BOOL, AT(now), "false", "start it at once, too, in the place of one that was started by hand" },
	{ "print", FLAG_BOOL, AT(print), "false", "show the unit and change nothing" },
	{ "stopped", FLAG_BOOL, AT(stopped), "false", "for the unit: the service has stopped; when systemd stops the machine, containers end, too" },
	{ "uninstall", FLAG_BOOL, AT(uninstall), "false", "stop the service and remove the unit; containers and data stay: 'c8s down' and 'c8s reset' are for them" },
	{ "unit-dir", FLAG_STRING, AT(unit_dir), units, "where units are" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

/* ---- the unit ---- */

/* One word, in plain sight where that is possible: systemd takes quotes, and has a meaning for some characters, which are written twice then. */
static void add_word(struct buf *b, const char *word, const char *twice)
{
	bool quoted = word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=/.,:@+")] || !*word;

	buf_add(b, quoted ? STR("\"") : STR_NONE);
	for (; *word; word++) {
		if (*word == '"' || *word == '\\')
			buf_addc(b, '\\');
		if (strchr(twice, *word))
			buf_addc(b, *word);
		buf_addc(b, *word);
	}
	buf_add(b, quoted ? STR("\"") : STR_NONE);
}

static void add_argument(struct buf *b, const char *word)
{
	buf_addc(b, ' ');
	add_word(b, word, "%$");
}

/* c8s itself, with the command and the cluster that it is about. */
static void add_command(struct buf *b, const struct up_cluster *c, const char *command)
{
	add_word(b, c->program, "%");
	buf_addf(b, " %s", command);
	add_argument(b, arena_printf(c->arena, "--data-dir=%s", c->settings.data_dir).p);
}

static void write_unit(const struct install *x, struct buf *b)
{
	const struct up_cluster *c = &x->cluster;
	struct arena *a = c->arena;

	buf_add(b, STR(FIRST_LINE "[Unit]\nDescription=Kubernetes (c8s)\nWants=network-online.target\nAfter=network-online.target\nRequiresMountsFor="));
	add_word(b, c->settings.data_dir, "%");
	buf_add(b, STR("\n# However often it fails.\nStartLimitIntervalSec=0\n\n[Service]\nType=notify\nExecStart="));
	add_command(b, c, "up");
	/* A service has no home. */
	if (!c->settings.kubeconfig && !c->settings.server)
		add_argument(b, arena_printf(a, "--kubeconfig=%s", kubeconfig_main_path(a, NULL)).p);
	for (size_t i = 0; x->flags[i]; i++)
		add_argument(b, x->flags[i]);
	buf_add(b, STR("\n# Containers run on when the service stops or is replaced; 'c8s down' ends them, and so does the end of the machine.\n"
		       "KillMode=process\nExecStopPost="));
	add_command(b, c, "install --stopped");
	buf_add(b, STR("\nRestart=on-failure\nRestartSec=2\n"
		       "# 0: 'c8s down' has stopped it, even before it was ready; 2: trying again does not help.\nRestartPreventExitStatus=0 2\n"
		       "TimeoutStartSec=infinity\nDelegate=yes\nOOMScoreAdjust=-999\nLimitNOFILE=1048576\nLimitNPROC=infinity\nTasksMax=infinity\n\n"
		       "[Install]\nWantedBy=multi-user.target\n"));
}

/* ---- systemd ---- */

/* As sd_booted(3) knows it. */
static bool runs_systemd(void) { return access("/run/systemd/system", F_OK) == 0; }

/* (suspends) */
static int systemctl(const char *const *words, struct err *err)
{
	CLEANUP(process_output_done) struct process_output output = { .out = BUF_INIT(OUTPUT_MAX), .err = BUF_INIT(OUTPUT_MAX) };
	int r = process_run(&(struct process_spec){ .argv = words }, STR_NONE, OUTPUT_MAX, &output, err);

	if (r == 0 && output.status.exit_code)
		return err_set(err, ERR_SYSTEM, "systemctl %s: " STR_FMT, words[1], STR_ARG(str_trim(buf_str(&output.err))));
	return r;
}

static int reload(struct err *err) { return systemctl((const char *const[]){ "systemctl", "daemon-reload", NULL }, err); }

/* (suspends) What systemctl prints, which counts even if it exits with 1. */
static str ask_systemd(struct arena *a, const char *const *words)
{
	CLEANUP(process_output_done) struct process_output output = { .out = BUF_INIT(OUTPUT_MAX), .err = BUF_INIT(OUTPUT_MAX) };

	return process_run(&(struct process_spec){ .argv = words }, STR_NONE, OUTPUT_MAX, &output, NULL) < 0 ? STR_NONE : arena_str(a, str_trim(buf_str(&output.out)));
}

/* (suspends) From now on the machine is going down, not only the service. One that has not come up wholly is "starting" even then. */
static bool machine_stops(struct arena *a)
{
	str state = ask_systemd(a, (const char *const[]){ "systemctl", "is-system-running", NULL });
	int64_t job;

	if (!str_eq(state, STR("starting")) && !str_eq(state, STR("initializing")))
		return str_eq(state, STR("stopping"));
	return str_to_i64(ask_systemd(a, (const char *const[]){ "systemctl", "show", "--property=Job", "--value", "shutdown.target", NULL }), &job) && job > 0;
}

/* ---- the service ---- */

static const char *unit_of(const struct up_cluster *c) { return arena_printf(c->arena, STR_FMT ".service", STR_ARG(up_name(c, c->arena))).p; }

/* What would keep it from running is said here, not in a journal. One that runs shows that it can. */
static int check(const struct up_cluster *c, struct err *err)
{
	struct up_findings findings;
	pid_t pid;

	if (up_running(c, &pid))
		return 0;
	up_look(c->arena, c, &findings);
	return up_check(&findings, err);
}

static int write_file(const struct install *x, struct err *err)
{
	CLEANUP(buf_done) struct buf unit = BUF_INIT(UNIT_MAX);
	int r;

	write_unit(x, &unit);
	if ((r = buf_check(&unit, x->unit, err)) < 0 || (r = file_make_dirs(x->unit_dir, 0755, err)) < 0)
		return r;
	return file_write(x->path, buf_str(&unit), 0644, err);
}

static int install(struct install *x, struct err *err)
{
	int r;

	if ((x->now && runs_systemd() && (r = check(&x->cluster, err)) < 0) || (r = write_file(x, err)) < 0)
		return r;
	printf("%s is there\n", x->path);
	if (!runs_systemd()) {
		printf("systemd does not run here: nothing is enabled\n");
		return 0;
	}
	/* By its path, wherever that is. */
	if ((r = reload(err)) < 0 || (r = systemctl((const char *const[]){ "systemctl", "enable", "--quiet", x->path, NULL }, err)) < 0)
		return r;
	/* One that was started by hand makes way: it has the lock and the ports. Its containers run on. */
	if (x->now && ((r = up_stop(&x->cluster, err)) < 0 || (r = systemctl((const char *const[]){ "systemctl", "start", x->unit, NULL }, err)) < 0))
		return r;
	printf(x->now ? "%s runs, and starts with the machine\n" : "%s starts with the machine; now: systemctl start %s\n", x->unit, x->unit);
	return 0;
}

/* (suspends) One that systemd does not know is not active either. */
static int stop(const char *unit, struct err *err)
{
	int r = systemctl((const char *const[]){ "systemctl", "stop", unit, NULL }, err);

	if (r < 0 && systemctl((const char *const[]){ "systemctl", "is-active", "--quiet", unit, NULL }, NULL) < 0) {
		err_clear(err);
		return 0;
	}
	return r;
}

/* (suspends) -ERR_NOT_FOUND when there is none. Stopped first: one that is linked from elsewhere is not known any more once it is disabled. */
static int uninstall(const char *unit, const char *path, struct err *err)
{
	int r;

	if (access(path, F_OK) < 0)
		return err_set(err, ERR_NOT_FOUND, "there is no %s", path);
	if (runs_systemd() && ((r = stop(unit, err)) < 0 || (r = systemctl((const char *const[]){ "systemctl", "disable", "--quiet", unit, NULL }, err)) < 0))
		return r;
	if (unlink(path) < 0)
		return err_sys(err, errno, "removing %s", path);
	printf("%s is removed\n", path);
	if (!runs_systemd())
		return 0;
	(void)systemctl((const char *const[]){ "systemctl", "reset-failed", unit, NULL }, NULL); /* systemd remembers one that has failed */
	return reload(err);
}

/* One that an administrator wrote stays. */
int install_remove(const struct up_cluster *c, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(UNIT_MAX);
	const char *unit = unit_of(c), *path = arena_printf(c->arena, "%s/%s", units, unit).p;

	return file_read(path, &text, NULL) == 0 && str_starts(buf_str(&text), STR(FIRST_LINE)) ? uninstall(unit, path, err) : 0;
}

static int act(void *arg, struct err *err)
{
	struct install *x = arg;

	if (x->stopped)
		return machine_stops(x->cluster.arena) ? machine_stop_containers(&x->cluster, err) : 0;
	return x->uninstall ? uninstall(x->unit, x->path, err) : install(x, err);
}

/* ---- the command ---- */

static bool is_own(str arg)
{
	for (const struct flag *f = flags + 1; f->name; f++)
		if (str_starts(arg, STR("--")) && str_starts(str_skip(arg, 2), str_of(f->name)) && (arg.n == 2 + strlen(f->name) || arg.p[2 + strlen(f->name)] == '='))
			return true;
	return false;
}

/* Our own arguments, and those of up; the name of the command is the first of both. */
static void split(struct arena *a, int argc, char **argv, char ***own, int *n_own, char ***up, int *n_up)
{
	*own = ARENA_ARRAY(a, char *, (size_t)argc + 1);
	*up = ARENA_ARRAY(a, char *, (size_t)argc + 1);
	(*own)[0] = (*up)[0] = argv[0];
	*n_own = *n_up = 1;
	for (int i = 1; i < argc; i++) {
		bool ours = is_own(str_of(argv[i])), alone = strcmp(argv[i], "--unit-dir") == 0;
		char **to = ours ? *own : *up;
		int *n = ours ? n_own : n_up;
		to[(*n)++] = argv[i];
		if (alone && i + 1 < argc)
			to[(*n)++] = argv[++i];
	}
	(*own)[*n_own] = (*up)[*n_up] = NULL;
}

static int run_command(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT(UNIT_MAX);
	struct install x = { 0 };
	struct err err = ERR_INIT;
	char **own, **up;
	int n_own, n_up, r;

	split(&a, argc, argv, &own, &n_own, &up, &n_up);
	if ((r = flags_parse(&cmd_install, n_own, own, flags, &x, &a, &text)) != 0)
		return r;
	if ((r = up_open(&cmd_install, &a, n_up, up, &x.cluster, &err)) != 0 || (r = up_typed(&cmd_install, &a, n_up, up, &x.flags, &err)) != 0)
		return r < 0 ? cmd_fail(&cmd_install, &err) : r;
	if (x.cluster.settings.token || x.cluster.settings.pki)
		return cmd_usage(&cmd_install, "--token and --pki are for the first start: start once with them, then install");
	x.unit = unit_of(&x.cluster);
	x.path = arena_printf(&a, "%s/%s", path_absolute(&a, x.unit_dir).p, x.unit).p;
	if (x.print) {
		write_unit(&x, &text);
		fputs(text.p, stdout);
		return 0;
	}
	return cmd_serve("install", act, &x, &err) < 0 ? cmd_fail(&cmd_install, &err) : 0;
}

static void help(void)
{
	flags_help(flags);
	flags_help(up_flags);
}

const struct command cmd_install = {
	.name = "install",
	.summary = "a cluster becomes a service of systemd",
	.manual =
		"Usage: c8s install [--now] [FLAGS OF UP]\n"
		"       c8s install --print [FLAGS OF UP]\n"
		"       c8s install --uninstall [--data-dir DIR]\n"
		"\n"
		"Writes a unit for systemd that runs 'c8s up' with these flags, and enables it: the cluster starts with the machine, and\n"
		"again when it fails. The unit of /var/lib/c8s is c8s.service, that of another DIR c8s-TAG.service. Containers run on when\n"
		"the service is stopped or started again, as after an upgrade of c8s. When the machine stops they are asked to end, and have\n"
		"half a minute. A machine that has joined a cluster is installed in the same way, by its data directory. The program stays\n"
		"where it is: install it first ('make install'). 'journalctl -u c8s' shows starts and stops; the rest is in DIR/log.\n"
		"\n"
		"Exit code: 0 success, 1 failure, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s install --now\n"
		"  systemctl status c8s\n",
	.help = help,
	.run = run_command,
};
