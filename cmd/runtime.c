/* c8s runtime: the CRI service. */
#include <limits.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/runtime_flags.h"
#include "cmd/serve.h"
#include "codec/quantity.h"

struct command_flags {
	struct runtime_flags runtime;
	const char *log_max_size, *logging_format;
	int64_t log_max_files, verbosity;
};

static const struct flag flags[] = {
	FLAG_GROUP("Runtime"),
	RUNTIME_FLAGS("", offsetof(struct command_flags, runtime)),
	FLAG_GROUP("Network"),
	RUNTIME_NETWORK_FLAGS("", offsetof(struct command_flags, runtime)),
	FLAG_GROUP("Logs"),
	{ "container-log-max-size", FLAG_STRING, FLAG_WORKS, offsetof(struct command_flags, log_max_size), "0", "10Mi: a container's log becomes no"
	  " larger than that: it is renamed as kubelets do (0.log.20060102-150405), and another one begun; 0: that is left to the kubelet."
	  " For containers that start from now on" },
	{ "container-log-max-files", FLAG_INT, FLAG_WORKS, offsetof(struct command_flags, log_max_files), "5",
	  "files that are kept of a log, with the one that is written; at least 2" },
	{ "v", FLAG_INT, FLAG_WORKS, offsetof(struct command_flags, verbosity), "0", "4 and more: everything" },
	{ "logging-format", FLAG_STRING, FLAG_WORKS, offsetof(struct command_flags, logging_format), "text", "text or json" },
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

enum { VERBOSE_DEBUG = 4 };

static int take_log_limits(const struct command_flags *f, struct runtime_options *ret)
{
	struct err err = ERR_INIT;
	struct quantity q;

	if (quantity_parse(str_of(f->log_max_size), &q, &err) < 0)
		return cmd_usage(&cmd_runtime, "--container-log-max-size: '%s': %s", f->log_max_size, err.msg);
	if (quantity_cmp(q, quantity_of_int(0, QUANTITY_BINARY_SI)) < 0)
		return cmd_usage(&cmd_runtime, "--container-log-max-size: '%s' is less than nothing", f->log_max_size);
	if (f->log_max_files < 2 || f->log_max_files > INT_MAX)
		return cmd_usage(&cmd_runtime, "--container-log-max-files: %lld is less than 2, or too many", (long long)f->log_max_files);
	ret->log_max_size = quantity_value(q);
	ret->log_max_files = f->log_max_files;
	return 0;
}

static void ready(struct runtime *r, void *arg)
{
	const struct runtime_options *o = arg;

	(void)r;
	log_info("ready", KV("listen", o->listen));
	printf("c8s runtime: ready; containers are seen by: c8s crictl --runtime-endpoint %s\n", o->listen);
	fflush(stdout);
}

static int serve(void *arg, struct err *err) { return runtime_run(arg, ready, arg, err); }

static int run(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct command_flags f = { 0 };
	struct runtime_options o;
	struct err err = ERR_INIT;
	int r = flags_parse(&cmd_runtime, argc, argv, flags, &f, &a, &later);

	if (r != 0)
		return r;
	if (str_eq(str_of(f.logging_format), STR("json")))
		log_set_format(LOG_FORMAT_JSON);
	else if (!str_eq(str_of(f.logging_format), STR("text")))
		return cmd_usage(&cmd_runtime, "--logging-format: unsupported log format '%s'; give text or json", f.logging_format);
	if (f.verbosity >= VERBOSE_DEBUG)
		log_set_level(LOG_LEVEL_DEBUG);
	if ((r = runtime_flags_complete(&cmd_runtime, "", &f.runtime, &a, &o)) != 0 || (r = take_log_limits(&f, &o)) != 0)
		return r;
	return cmd_serve("runtime", serve, &o, &err) < 0 ? cmd_fail(&cmd_runtime, &err) : 0;
}

static void help(void) { flags_help(flags); }

const struct command cmd_runtime = {
	.name = "runtime",
	.summary = "the container runtime, a CRI service",
	.manual =
		"Usage: c8s runtime [FLAGS]\n"
		"\n"
		"Serves CRI v1 on a unix socket: pods, containers and images of this machine, for c8s' own kubelet, the kubelet of\n"
		"Kubernetes, and crictl. Needs root. Pods run on when it is stopped or killed; the next one takes them up.\n"
		"\n"
		"SIGTERM and SIGINT stop it in good order, a second one at once; SIGUSR2 shows what it is doing.\n"
		"\n"
		"Exit code: 0 stopped by a signal, 1 it could not go on, 2 wrong usage.\n"
		"\n"
		"Example:\n"
		"  c8s runtime &\n"
		"  c8s crictl pull docker.io/library/busybox:latest\n",
	.help = help,
	.run = run,
};
