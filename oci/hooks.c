/* hooks: programs that config.json names for certain moments. They get the state on stdin and have no other descriptor of ours. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "codec/atoms.h"
#include "oci/oci_priv.h"

enum { OUTPUT_MAX = 4096 };

struct hook {
	const char *path;
	const char **args, **env;
	int64_t deadline_ns;         /* INT64_MAX: none */
};

static const char **texts(struct arena *a, struct val list)
{
	const char **all = ARENA_ARRAY(a, const char *, val_len(list) + 1);
	size_t n = 0;

	VAL_EACH(v, list)
		all[n++] = arena_str(a, val_as_str(*v)).p;
	all[n] = NULL;
	return all;
}

static void hook_exec(const struct hook *h, int in, int out)
{
	static const char *const none[] = { NULL };
	const char *const alone[] = { h->path, NULL };
	sigset_t all;

	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(127);
	execve(h->path, (char **)(uintptr_t)(h->args[0] ? h->args : (const char **)(uintptr_t)alone),
	       (char **)(uintptr_t)(h->env[0] ? h->env : (const char **)(uintptr_t)none));
	dprintf(2, "%s", strerrordesc_np(errno));
	_exit(127);
}

/* Feeds the state and takes what it says until it has ended; false when its time was over. */
static bool attend(const struct hook *h, int pidfd, int *in, int out, str state, struct buf *said)
{
	(void)fcntl(*in, F_SETFL, O_NONBLOCK);
	(void)fcntl(out, F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd p[3] = { { pidfd, POLLIN, 0 }, { out, POLLIN, 0 }, { *in, POLLOUT, 0 } };
		int64_t left = h->deadline_ns == INT64_MAX ? INT64_MAX : h->deadline_ns - clock_now_ns();
		int ms = left == INT64_MAX ? -1 : left <= 0 ? 0 : (int)MIN(left / NS_PER_MS + 1, INT64_C(3600000));
		int n = poll(p, 3, ms);
		if (n < 0 && errno != EINTR)
			return false;
		if (n == 0 && left <= 0)
			return false;
		if (n > 0 && p[2].revents) {
			ssize_t wrote = write(*in, state.p, state.n);
			state = wrote > 0 ? str_skip(state, (size_t)wrote) : errno == EAGAIN ? state : STR_NONE;
			if (!state.n)
				fd_closep(in);
		}
		if (n > 0 && p[1].revents) {
			char text[512];
			ssize_t got = read(out, text, sizeof(text));
			if (got > 0 && said->n < OUTPUT_MAX)
				buf_add(said, str_span(text, (size_t)got));
			if (got == 0)
				out = -1;
		}
		if (n > 0 && p[0].revents && !(p[1].revents & POLLIN))
			return true;
	}
}

static int outcome(const struct hook *h, bool in_time, int status, const struct buf *said, struct err *err)
{
	str text = str_trim(buf_str(said));

	if (!in_time)
		return err_set(err, ERR_TIMEOUT, "hook %s ran past its timeout", h->path);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, ERR_INTERNAL, "hook %s: %s %d, stdout+stderr: " STR_FMT, h->path, WIFEXITED(status) ? "exit status" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), STR_ARG(text));
}

static int hook_run(const struct hook *h, str state, struct err *err)
{
	CLEANUP(buf_done) struct buf said = BUF_INIT(2 * OUTPUT_MAX);
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
		int sys = errno;
		fd_closep(&in[0]);
		fd_closep(&in[1]);
		return err_sys(err, sys, "hook %s", h->path);
	}
	pid_t pid = process_clone(0);
	if (pid == 0)
		hook_exec(h, in[0], out[1]);
	int sys = errno;
	fd_closep(&in[0]);
	fd_closep(&out[1]);
	CLEANUP(fd_closep) int pidfd = pid < 0 ? -1 : pidfd_open(pid, 0);
	if (pidfd < 0) {
		sys = pid < 0 ? sys : errno;
		if (pid > 0)
			kill(pid, SIGKILL);
	}
	/* A hook may end without reading its state. */
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	sigaction(SIGPIPE, &ignore, &before);
	bool in_time = pidfd >= 0 && attend(h, pidfd, &in[1], out[0], state, &said);
	sigaction(SIGPIPE, &before, NULL);
	if (pid > 0 && !in_time)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	fd_closep(&in[1]);
	fd_closep(&out[0]);
	return pidfd < 0 ? err_sys(err, sys, "hook %s", h->path) : outcome(h, in_time, status, &said, err);
}

int hooks_run(struct val hooks, atom kind, str state, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	VAL_EACH(v, val_member(hooks, kind)) {
		int64_t seconds = val_int(*v, timeout);
		struct hook h = {
			.path = arena_str(&a, val_str(*v, path)).p,
			.args = texts(&a, val_get(*v, args)),
			.env = texts(&a, val_get(*v, env)),
			.deadline_ns = seconds > 0 ? clock_now_ns() + MIN(seconds, INT64_C(86400)) * NS_PER_S : INT64_MAX,
		};
		int r = hook_run(&h, state, err);
		if (r < 0)
			return err_wrap(err, r, STR_FMT, STR_ARG(atom_str(kind)));
	}
	return 0;
}
