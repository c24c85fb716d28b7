/* c8s runtime: the CRI service. */
#include "runtime/runtime.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/flags.h"
#include "cmd/serve.h"

struct runtime_flags {
	const char *root, *state, *listen, *pod_program, *cni_conf_dir, *const *cni_bin_dirs, *const *cdi_dirs,
		*cgroup_parent, *sandbox_image, *registry_config, *const *handlers, *stream_address, *logging_format;
	int64_t stream_port, verbosity;
};

#define FLAG(name, type, member, initial, help) { name, type, FLAG_WORKS, offsetof(struct runtime_flags, member), initial, help }

static const struct flag flags[] = {
	FLAG_GROUP("Runtime"),
	FLAG("root", FLAG_STRING, root, "/var/lib/c8s/runtime", "images, snapshots, containers"),
	FLAG("state", FLAG_STRING, state, "/run/c8s/runtime", "sockets and mounts: what need not survive a reboot"),
	FLAG("listen", FLAG_STRING, listen, NULL, "where CRI is served: unix:///path; in the state folder, cri.sock, unless given"),
	FLAG("sandbox-image", FLAG_STRING, sandbox_image, NULL, "image of the first process of a pod; none is needed"),
	FLAG("registry-config", FLAG_STRING, registry_config, NULL, "folder with hosts.toml per registry, as containerd has it"),
	FLAG("handler", FLAG_ARRAY, handlers, NULL, "NAME=PROGRAM: another OCI runtime, for the RuntimeClass handler of that name"),
	FLAG("cdi-spec-dirs", FLAG_LIST, cdi_dirs, "/etc/cdi,/var/run/cdi", "where vendors describe devices (CDI); later folders win"),
	FLAG("cgroup-parent", FLAG_STRING, cgroup_parent, "/c8s", "cgroup of pods that name none"),
	FLAG("pod-program", FLAG_STRING, pod_program, NULL, "c8s-pod; beside this program unless given"),
	FLAG_GROUP("Network"),
	FLAG("cni-conf-dir", FLAG_STRING, cni_conf_dir, "/etc/cni/net.d", "where network configurations are; the first one is used"),
	FLAG("cni-bin-dir", FLAG_LIST, cni_bin_dirs, "/opt/cni/bin,/usr/lib/cni", "where network plugins are; bridge, host-local, loopback,"
	     " portmap and ptp are built in"),
	FLAG("stream-server-address", FLAG_STRING, stream_address, "127.0.0.1", "where exec, attach and port-forward are served"),
	FLAG("stream-server-port", FLAG_INT, stream_port, "0", "its port; 0: any"),
	FLAG_GROUP("Logs"),
	FLAG("v", FLAG_INT, verbosity, "0", "4 and more: everything"),
	FLAG("logging-format", FLAG_STRING, logging_format, "text", "text or json"),
	{ NULL, FLAG_HEADING, FLAG_WORKS, 0, NULL, NULL },
};

enum { VERBOSE_DEBUG = 4, HANDLERS_MAX = 64 };

/* The program that is where this one is. */
static const char *beside(struct arena *a, const char *name)
{
	char *self = arena_alloc(a, PATH_MAX, 1);
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX);
	ptrdiff_t slash = n > 0 ? str_rchr(str_span(self, (size_t)n), '/') : -1;

	return slash < 0 ? name : arena_printf(a, "%.*s/%s", (int)slash, self, name).p;
}

static int take_handlers(const char *const *texts, struct arena *a, struct runtime_handler *ret, size_t *ret_n)
{
	size_t n = 0;

	ret[n++] = (struct runtime_handler){ "", NULL };
	for (; *texts; texts++) {
		str name, program;
		if (n == HANDLERS_MAX || !str_cut(str_of(*texts), '=', &name, &program) || !name.n || !program.n)
			return cmd_usage(&cmd_runtime, "'%s' is not NAME=PROGRAM", *texts);
		ret[n++] = (struct runtime_handler){ arena_str(a, name).p, arena_str(a, program).p };
	}
	*ret_n = n;
	return 0;
}

static void ready(struct runtime *r, void *arg)
{
	const struct runtime_options *o = arg;

	(void)r;
	log_info("ready", KV("listen", o->listen));
}

static int serve(void *arg, struct err *err) { return runtime_run(arg, ready, arg, err); }

static int run_with(const struct runtime_flags *f, struct arena *a)
{
	struct runtime_handler handlers[HANDLERS_MAX];
	struct runtime_options o = {
		.version = C8S_VERSION, .root = f->root, .state = f->state, .cni_conf_dir = f->cni_conf_dir,
		.cni_bin_dirs = f->cni_bin_dirs, .cdi_dirs = f->cdi_dirs, .cgroup_parent = f->cgroup_parent,
		.sandbox_image = f->sandbox_image, .registry_config = f->registry_config, .handlers = handlers,
		.stream_address = f->stream_address, .stream_port = (int)f->stream_port,
		.listen = f->listen ? f->listen : arena_printf(a, "unix://%s/cri.sock", f->state).p,
		.pod_program = f->pod_program ? f->pod_program : beside(a, "c8s-pod"),
	};
	struct err err = ERR_INIT;
	int r = take_handlers(f->handlers, a, handlers, &o.n_handlers);

	if (r != 0)
		return r;
	if (f->stream_port < 0 || f->stream_port > UINT16_MAX)
		return cmd_usage(&cmd_runtime, "--stream-server-port: %lld is no port", (long long)f->stream_port);
	if (f->root[0] != '/' || f->state[0] != '/' || o.pod_program[0] != '/')
		return cmd_usage(&cmd_runtime, "--root, --state and --pod-program are absolute paths");
	if (access(o.pod_program, X_OK) < 0) {
		err_sys(&err, errno, "%s (it is built and installed together with c8s; --pod-program says where it is)", o.pod_program);
		return cmd_fail(&cmd_runtime, &err);
	}
	return cmd_serve("runtime", serve, &o, &err) < 0 ? cmd_fail(&cmd_runtime, &err) : 0;
}

static int run(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf later = BUF_INIT(4096);
	struct runtime_flags f = { 0 };
	int r = flags_parse(&cmd_runtime, argc, argv, flags, &f, &a, &later);

	if (r != 0)
		return r;
	if (str_eq(str_of(f.logging_format), STR("json")))
		log_set_format(LOG_FORMAT_JSON);
	else if (!str_eq(str_of(f.logging_format), STR("text")))
		return cmd_usage(&cmd_runtime, "--logging-format: unsupported log format '%s'; give text or json", f.logging_format);
	if (f.verbosity >= VERBOSE_DEBUG)
		log_set_level(LOG_LEVEL_DEBUG);
	return run_with(&f, &a);
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
