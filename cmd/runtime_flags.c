#include "cmd/runtime_flags.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

enum { HANDLERS_MAX = 64 };

/* The program that is where this one is. */
static const char *beside(struct arena *a, const char *name)
{
	char *self = arena_alloc(a, PATH_MAX, 1);
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX);
	ptrdiff_t slash = n > 0 ? str_rchr(str_span(self, (size_t)n), '/') : -1;

	return slash < 0 ? name : arena_printf(a, "%.*s/%s", (int)slash, self, name).p;
}

static int take_handlers(const struct command *c, const char *const *texts, struct arena *a, struct runtime_options *ret)
{
	struct runtime_handler *handlers = ARENA_ARRAY(a, struct runtime_handler, HANDLERS_MAX);
	size_t n = 0;

	handlers[n++] = (struct runtime_handler){ "", NULL };
	for (; *texts; texts++) {
		str name, program;
		if (n == HANDLERS_MAX || !str_cut(str_of(*texts), '=', &name, &program) || !name.n || !program.n)
			return cmd_usage(c, "'%s' is not NAME=PROGRAM", *texts);
		handlers[n++] = (struct runtime_handler){ arena_str(a, name).p, arena_str(a, program).p };
	}
	ret->handlers = handlers;
	ret->n_handlers = n;
	return 0;
}

int runtime_flags_complete(const struct command *c, const char *prefix, const struct runtime_flags *f, struct arena *a,
			   struct runtime_options *ret)
{
	struct err err = ERR_INIT;
	int r;

	*ret = (struct runtime_options){
		.version = C8S_VERSION, .root = f->root, .state = f->state, .cni_conf_dir = f->cni_conf_dir,
		.cni_bin_dirs = f->cni_bin_dirs, .cdi_dirs = f->cdi_dirs, .cgroup_parent = f->cgroup_parent,
		.sandbox_image = f->sandbox_image, .registry_config = f->registry_config,
		.stream_address = f->stream_address, .stream_port = (int)f->stream_port,
		.listen = f->listen ? f->listen : arena_printf(a, "unix://%s/cri.sock", f->state).p,
		.pod_program = f->pod_program ? f->pod_program : beside(a, "c8s-pod"),
	};
	if ((r = take_handlers(c, f->handlers, a, ret)) != 0)
		return r;
	if (f->stream_port < 0 || f->stream_port > UINT16_MAX)
		return cmd_usage(c, "--%sstream-server-port: %lld is no port", prefix, (long long)f->stream_port);
	if (f->root[0] != '/' || f->state[0] != '/' || ret->pod_program[0] != '/')
		return cmd_usage(c, "--%sroot, --%sstate and --%spod-program are absolute paths", prefix, prefix, prefix);
	if (access(ret->pod_program, X_OK) < 0) {
		err_sys(&err, errno, "%s (it is built and installed together with c8s; --%spod-program says where it is)", ret->pod_program, prefix);
		return cmd_fail(c, &err);
	}
	return 0;
}
