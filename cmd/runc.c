/* c8s runc: the OCI runtime. It is in c8s-pod, the small program beside this one, which takes our place. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd/cmd.h"

static int run(int argc, char **argv)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX);
	struct err err = ERR_INIT;

	(void)argc;
	ssize_t n = readlink("/proc/self/exe", buf_reserve(&path, PATH_MAX - 1), PATH_MAX - 1);
	if (n > 0)
		buf_commit(&path, (size_t)n);
	ptrdiff_t slash = str_rchr(buf_str(&path), '/');
	if (slash < 0) {
		err_sys(&err, errno, "finding c8s-pod");
		return cmd_fail(&cmd_runc, &err);
	}
	path.n = (size_t)slash + 1;
	buf_add(&path, STR("c8s-pod"));
	argv[0] = (char[]){ "runc" };
	execv(path.p, argv);
	err_sys(&err, errno, "%s", path.p);
	return cmd_fail(&cmd_runc, &err);
}

const struct command cmd_runc = {
	.name = "runc",
	.summary = "the OCI runtime",
	.manual = "Usage: c8s runc [--root DIR] [--log FILE] COMMAND [FLAGS] [ARGUMENTS]\n\n"
		  "An OCI runtime with the command line of runc: create, start, state, kill, delete, run, exec, ps, list, pause, resume,\n"
		  "update, events, spec, features. containerd and others can call it in runc's place. 'c8s runc help' lists the commands.\n",
	.help_within = 2,
	.run = run,
};
