#include "oci/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "codec/time.h"
#include "oci/oci_priv.h"
#include "oci/self.h"

#define CLI_VERSION "0.1.0"

/* ---- flags ---- */

enum flag_type { FLAG_BOOL, FLAG_TEXT, FLAG_NUMBER, FLAG_LIST };

struct flag {
	const char *name;
	char letter;
	enum flag_type type;
	size_t offset;
};

#define FLAG(name, letter, type, member) { name, letter, type, offsetof(struct cli, member) }
#define FLAGS_END { NULL, 0, FLAG_BOOL, 0 }

static const struct flag global_flags[] = {
	FLAG("root", 0, FLAG_TEXT, root), FLAG("log", 0, FLAG_TEXT, log), FLAG("log-format", 0, FLAG_TEXT, log_format),
	FLAG("debug", 0, FLAG_BOOL, debug), FLAG("systemd-cgroup", 0, FLAG_BOOL, systemd_cgroup),
	FLAG("rootless", 0, FLAG_TEXT, rootless), FLAG("version", 'v', FLAG_BOOL, version), FLAG("help", 'h', FLAG_BOOL, help), FLAGS_END,
};

static const struct flag no_flags[] = { FLAGS_END };

static const struct flag run_flags[] = {
	FLAG("bundle", 'b', FLAG_TEXT, bundle), FLAG("console-socket", 0, FLAG_TEXT, console_socket),
	FLAG("pidfd-socket", 0, FLAG_TEXT, pidfd_socket), FLAG("pid-file", 0, FLAG_TEXT, pid_file), FLAG("no-pivot", 0, FLAG_BOOL, no_pivot),
	FLAG("no-new-keyring", 0, FLAG_BOOL, no_new_keyring), FLAG("preserve-fds", 0, FLAG_NUMBER, preserve_fds),
	FLAG("detach", 'd', FLAG_BOOL, detach), FLAG("keep", 0, FLAG_BOOL, keep), FLAG("no-subreaper", 0, FLAG_BOOL, no_subreaper), FLAGS_END,
};

static const struct flag exec_flags[] = {
	FLAG("console-socket", 0, FLAG_TEXT, console_socket), FLAG("pidfd-socket", 0, FLAG_TEXT, pidfd_socket),
	FLAG("cwd", 0, FLAG_TEXT, cwd), FLAG("env", 'e', FLAG_LIST, env), FLAG("tty", 't', FLAG_BOOL, tty),
	FLAG("user", 'u', FLAG_TEXT, user), FLAG("additional-gids", 'g', FLAG_LIST, gids), FLAG("process", 'p', FLAG_TEXT, process),
	FLAG("detach", 'd', FLAG_BOOL, detach), FLAG("pid-file", 0, FLAG_TEXT, pid_file),
	FLAG("process-label", 0, FLAG_TEXT, process_label), FLAG("apparmor", 0, FLAG_TEXT, apparmor),
	FLAG("no-new-privs", 0, FLAG_BOOL, no_new_privs), FLAG("cap", 'c', FLAG_LIST, caps),
	FLAG("preserve-fds", 0, FLAG_NUMBER, preserve_fds), FLAG("cgroup", 0, FLAG_LIST, cgroups),
	FLAG("ignore-paused", 0, FLAG_BOOL, ignore_paused), FLAG("no-subreaper", 0, FLAG_BOOL, no_subreaper), FLAGS_END,
};

static const struct flag kill_flags[] = { FLAG("all", 'a', FLAG_BOOL, all), FLAGS_END };
static const struct flag delete_flags[] = { FLAG("force", 'f', FLAG_BOOL, force), FLAGS_END };
static const struct flag list_flags[] = { FLAG("format", 'f', FLAG_TEXT, format), FLAG("quiet", 'q', FLAG_BOOL, quiet), FLAGS_END };
static const struct flag events_flags[] = { FLAG("interval", 0, FLAG_TEXT, interval), FLAG("stats", 0, FLAG_BOOL, stats), FLAGS_END };
static const struct flag spec_flags[] = { FLAG("bundle", 'b', FLAG_TEXT, bundle), FLAGS_END };

static const struct flag update_flags[] = {
	FLAG("resources", 'r', FLAG_TEXT, resources), FLAG("blkio-weight", 0, FLAG_TEXT, blkio_weight),
	FLAG("cpu-period", 0, FLAG_TEXT, cpu_period), FLAG("cpu-quota", 0, FLAG_TEXT, cpu_quota), FLAG("cpu-burst", 0, FLAG_TEXT, cpu_burst),
	FLAG("cpu-share", 0, FLAG_TEXT, cpu_share), FLAG("cpu-rt-period", 0, FLAG_TEXT, cpu_rt_period),
	FLAG("cpu-rt-runtime", 0, FLAG_TEXT, cpu_rt_runtime), FLAG("cpuset-cpus", 0, FLAG_TEXT, cpuset_cpus),
	FLAG("cpuset-mems", 0, FLAG_TEXT, cpuset_mems), FLAG("cpu-idle", 0, FLAG_TEXT, cpu_idle),
	FLAG("kernel-memory", 0, FLAG_TEXT, kernel_memory), FLAG("kernel-memory-tcp", 0, FLAG_TEXT, kernel_memory_tcp),
	FLAG("memory", 0, FLAG_TEXT, memory), FLAG("memory-reservation", 0, FLAG_TEXT, memory_reservation),
	FLAG("memory-swap", 0, FLAG_TEXT, memory_swap), FLAG("pids-limit", 0, FLAG_TEXT, pids_limit),
	FLAG("l3-cache-schema", 0, FLAG_TEXT, l3_cache_schema), FLAG("mem-bw-schema", 0, FLAG_TEXT, mem_bw_schema), FLAGS_END,
};

static const struct flag *find_flag(const struct flag *flags, str name, char letter)
{
	for (; flags->name; flags++)
		if (letter ? flags->letter == letter : str_eq(name, str_of(flags->name)))
			return flags;
	return NULL;
}

static int set_flag(struct cli *c, const struct flag *f, const char *value, struct err *err)
{
	void *member = (char *)c + f->offset;
	struct cli_list *list = member;
	str text = str_of(value);

	switch (f->type) {
	case FLAG_TEXT:
		*(const char **)member = value;
		return 0;
	case FLAG_NUMBER:
		if (str_to_i64(text, member))
			return 0;
		return err_set(err, ERR_BAD_REQUEST, "invalid value \"%s\" for flag -%s", value, f->name);
	case FLAG_LIST:
		if (list->n == CLI_LIST_MAX)
			return err_set(err, ERR_BAD_REQUEST, "flag -%s was given too often", f->name);
		list->text[list->n++] = value;
		return 0;
	case FLAG_BOOL:
		break;
	}
	*(bool *)member = !value || str_eq(text, STR("true")) || str_eq(text, STR("1"));
	return *(bool *)member || str_eq(text, STR("false")) || str_eq(text, STR("0")) ?
		       0 :
		       err_set(err, ERR_BAD_REQUEST, "invalid boolean value \"%s\" for -%s", value, f->name);
}

/* Flags up to the first argument that is none; c->argc and c->argv are what is left. */
static int parse_flags(struct cli *c, const struct flag *flags, struct err *err)
{
	int at = 0, r;

	for (; at < c->argc && c->argv[at][0] == '-' && c->argv[at][1]; at++) {
		const char *arg = c->argv[at], *value = NULL;
		if (str_eq(str_of(arg), STR("--"))) {
			at++;
			break;
		}
		/* As Go has them, one dash or two are the same. */
		str name = str_of(arg + (arg[1] == '-' ? 2 : 1)), after;
		if (str_cut(name, '=', &name, &after))
			value = after.p;
		const struct flag *f = find_flag(flags, name, name.n == 1 ? name.p[0] : 0);
		if (!f)
			return err_set(err, ERR_BAD_REQUEST, "flag provided but not defined: -" STR_FMT, STR_ARG(name));
		if (f->type != FLAG_BOOL && !value) {
			if (at + 1 == c->argc)
				return err_set(err, ERR_BAD_REQUEST, "flag needs an argument: -" STR_FMT, STR_ARG(name));
			value = c->argv[++at];
		}
		if ((r = set_flag(c, f, value, err)) < 0)
			return r;
	}
	c->argc -= at;
	c->argv += at;
	return 0;
}

/* ---- the short commands ---- */

static int cli_start(struct cli *c, struct err *err)
{
	return oci_start(c->root, c->argv[0], err);
}

static int cli_pause(struct cli *c, struct err *err)
{
	return oci_pause(c->root, c->argv[0], true, err);
}

static int cli_resume(struct cli *c, struct err *err)
{
	return oci_pause(c->root, c->argv[0], false, err);
}

/* In either case; libc's functions for that are large in a static program. */
static bool is_signal(str name, str known)
{
	bool same = name.n == known.n;

	for (size_t i = 0; i < name.n && same; i++)
		same = (name.p[i] >= 'a' && name.p[i] <= 'z' ? name.p[i] - 'a' + 'A' : name.p[i]) == known.p[i];
	return same;
}

static int parse_signal(const char *text, int *ret, struct err *err)
{
	str name = str_of(text);
	int64_t number;

	if (str_to_i64(name, &number) && number >= 0 && number < NSIG) {
		*ret = (int)number;
		return 0;
	}
	if (str_starts(name, STR("SIG")) || str_starts(name, STR("sig")))
		name = str_skip(name, 3);
	for (int s = 1; s < NSIG; s++) {
		const char *known = sigabbrev_np(s);
		if (known && is_signal(name, str_of(known))) {
			*ret = s;
			return 0;
		}
	}
	return err_set(err, ERR_BAD_REQUEST, "unknown signal \"%s\"", text);
}

static int cli_kill(struct cli *c, struct err *err)
{
	int signal = SIGTERM, r = c->argc > 1 ? parse_signal(c->argv[1], &signal, err) : 0;
	return r < 0 ? r : oci_kill(c->root, c->argv[0], signal, c->all, err);
}

static int cli_delete(struct cli *c, struct err *err)
{
	return oci_delete(c->root, c->argv[0], c->force, err);
}

static const struct command {
	const char *name;
	const struct flag *flags;
	int least, most;          /* arguments */
	int (*run)(struct cli *c, struct err *err);
	const char *help;
} commands[] = {
	{ "create", run_flags, 1, 1, cli_create, "create a container; its process waits for start" },
	{ "delete", delete_flags, 1, 1, cli_delete, "delete a container that has stopped" },
	{ "events", events_flags, 1, 1, cli_events, "print out-of-memory events and figures" },
	{ "exec", exec_flags, 1, 1 << 20, cli_exec, "execute one more process in a container" },
	{ "features", no_flags, 0, 0, cli_features, "print what this runtime can do" },
	{ "kill", kill_flags, 1, 2, cli_kill, "send a signal (SIGTERM) to a container's process" },
	{ "list", list_flags, 0, 0, cli_list, "list the containers of --root" },
	{ "pause", no_flags, 1, 1, cli_pause, "suspend all processes of a container" },
	{ "ps", list_flags, 1, 1 << 20, cli_ps, "show the processes of a container" },
	{ "resume", no_flags, 1, 1, cli_resume, "go on after pause" },
	{ "run", run_flags, 1, 1, cli_run, "create and start a container, and wait for it" },
	{ "spec", spec_flags, 0, 0, cli_spec, "write an example config.json" },
	{ "start", no_flags, 1, 1, cli_start, "start the process of a created container" },
	{ "state", no_flags, 1, 1, cli_state, "print the state of a container" },
	{ "update", update_flags, 1, 1, cli_update, "change the limits of a container" },
};

/* ---- errors and their log ---- */

static void log_line(const struct cli *c, const struct err *e)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(64 << 10);
	char text[TIME_TEXT_MAX];
	int64_t ns = clock_wall_ns();
	str when = time_format((struct timestamp){ ns / NS_PER_S, 0 }, text);
	CLEANUP(fd_closep) int fd = open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	if (str_eq(str_of(c->log_format), STR("json"))) {
		buf_add(&line, STR("{\"level\":\"error\",\"msg\":"));
		json_quote(&line, err_str(e), true);
		buf_addf(&line, ",\"time\":\"" STR_FMT "\"}\n", STR_ARG(when));
	} else {
		buf_addf(&line, "time=\"" STR_FMT "\" level=error msg=", STR_ARG(when));
		buf_add_quoted(&line, err_str(e));
		buf_addc(&line, '\n');
	}
	if (write(fd, line.p, line.n) < 0)
		return;
}

static int fail(const struct cli *c, const struct err *e, int code)
{
	if (c->log)
		log_line(c, e);
	fprintf(stderr, "runc: %s\n", e->msg);
	return code;
}

static void print_help(void)
{
	printf("Usage: runc [--root DIR] [--log FILE] [--log-format text|json] [--debug] COMMAND [FLAGS] [ARGUMENTS]\n\n"
	       "An OCI runtime with the command line of runc.\n\nCommands:\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
}

static int check_globals(const struct cli *c, struct err *err)
{
	str format = str_of(c->log_format);

	if (c->systemd_cgroup)
		return err_set(err, ERR_INVALID, "--systemd-cgroup is not supported: cgroups are made by the runtime itself");
	if (c->rootless && !str_eq(str_of(c->rootless), STR("auto")) && !str_eq(str_of(c->rootless), STR("false")))
		return err_set(err, ERR_INVALID, "--rootless=%s is not supported", c->rootless);
	if (!str_eq(format, STR("json")) && !str_eq(format, STR("text")))
		return err_set(err, ERR_INVALID, "unknown log-format \"%s\"", c->log_format);
	return 0;
}

/* The descriptors that are to be passed on must be there before we open any of our own. */
static int check_preserved(const struct cli *c, struct err *err)
{
	if (c->preserve_fds < 0 || c->preserve_fds > 1024)
		return err_set(err, ERR_BAD_REQUEST, "--preserve-fds is not from 0 to 1024");
	for (int64_t i = 0; i < c->preserve_fds; i++)
		if (fcntl((int)(3 + i), F_GETFD) < 0)
			return err_set(err, ERR_BAD_REQUEST, "unable to stat preserved-fd %lld (of %lld)", (long long)i,
				       (long long)c->preserve_fds);
	return 0;
}

static int dispatch(struct cli *c, struct err *err)
{
	str name = str_of(c->argv[0]);
	size_t i = 0;
	int r;

	while (i < ARRAY_LEN(commands) && !str_eq(name, str_of(commands[i].name)))
		i++;
	if (i == ARRAY_LEN(commands))
		return err_set(err, ERR_BAD_REQUEST, "no such command: %s; see --help", c->argv[0]);
	c->argc--;
	c->argv++;
	if ((r = parse_flags(c, commands[i].flags, err)) < 0)
		return r;
	if (c->argc < commands[i].least || c->argc > commands[i].most)
		return err_set(err, ERR_BAD_REQUEST, "\"%s\" requires %s %d argument(s)", commands[i].name,
			       commands[i].least == commands[i].most ? "exactly" : "a minimum of", commands[i].least);
	if ((r = check_preserved(c, err)) < 0)
		return r;
	r = commands[i].run(c, err);
	return r < 0 && commands[i].run != cli_exec ? err_wrap(err, r, "%s failed", commands[i].name) : r;
}

int cli_print(struct val v, unsigned indent, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64 << 20);
	int r = json_encode(&text, v, &(struct json_encode_options){ .indent = indent, .plain = true }, err);

	if (r < 0)
		return r;
	printf("%s\n", text.p);
	return 0;
}

int oci_main(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cli *c = ARENA_NEW(&a, struct cli);
	struct err err = ERR_INIT;
	bool is_exec = false;

	*c = (struct cli){ .root = "/run/runc", .log_format = "text", .argc = argc - 1, .argv = argv + 1, .arena = &a };
	if (self_protect(argv, &err) < 0 || parse_flags(c, global_flags, &err) < 0)
		return fail(c, &err, 1);
	if (c->version) {
		printf("runc version %s\ncommit: c8s\nspec: %s\n", CLI_VERSION, OCI_VERSION);
		return 0;
	}
	if (c->help || !c->argc || str_eq(str_of(c->argv[0]), STR("help"))) {
		print_help();
		return 0;
	}
	log_set_level(c->debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	is_exec = str_eq(str_of(c->argv[0]), STR("exec"));
	int r = check_globals(c, &err);
	if (r == 0)
		r = dispatch(c, &err);
	if (r < 0)
		return fail(c, &err, is_exec ? 255 : 1);
	return fflush(stdout) == 0 ? r : 1;
}
