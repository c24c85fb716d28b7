#include "base/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"

struct process {
	pid_t pid;
	int pidfd;
	bool group, ended;
	struct process_status status;
};

/* ---- Start ---- */

/* What posix_spawn needs, built step by step; sys keeps the first errno. */
struct plan {
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int cwd;
	int copies[PROCESS_FDS_MAX + 1]; /* of descriptors that stand where another one must go */
	size_t n_copies;
	int sys;
};

static void note(struct plan *p, int sys)
{
	if (!p->sys)
		p->sys = sys;
}

static void plan_init(struct plan *p)
{
	*p = (struct plan){ .cwd = -1 };
	note(p, posix_spawn_file_actions_init(&p->actions));
	note(p, posix_spawnattr_init(&p->attr));
}

static void plan_done(struct plan *p)
{
	(void)posix_spawn_file_actions_destroy(&p->actions);
	(void)posix_spawnattr_destroy(&p->attr);
	fd_closep(&p->cwd);
	while (p->n_copies)
		(void)close(p->copies[--p->n_copies]);
}

/* fd, or a copy of it above all numbers that the child's descriptors will get. */
static int out_of_the_way(struct plan *p, int fd, int n)
{
	if (fd >= n)
		return fd;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, n);
	if (copy < 0)
		note(p, errno);
	else
		p->copies[p->n_copies++] = copy;
	return copy;
}

static void plan_fds(struct plan *p, const struct process_spec *spec)
{
	int n = (int)MAX(spec->n_fds, (size_t)3);

	assert(spec->n_fds <= PROCESS_FDS_MAX);
	for (int i = 0; i < n; i++) {
		int from = (size_t)i < spec->n_fds ? spec->fds[i] : -1;
		if (from >= 0)
			note(p, posix_spawn_file_actions_adddup2(&p->actions, out_of_the_way(p, from, n), i));
		else
			note(p, posix_spawn_file_actions_addopen(&p->actions, i, "/dev/null", O_RDWR, 0));
	}
	if (p->cwd >= 0)
		note(p, posix_spawn_file_actions_addfchdir_np(&p->actions, out_of_the_way(p, p->cwd, n)));
	note(p, posix_spawn_file_actions_addclosefrom_np(&p->actions, n));
}

static void plan_attr(struct plan *p, const struct process_spec *spec)
{
	sigset_t all, none;

	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	note(p, posix_spawnattr_setsigdefault(&p->attr, &all));
	note(p, posix_spawnattr_setsigmask(&p->attr, &none));
	note(p, posix_spawnattr_setflags(&p->attr, (short)(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
							   (spec->group ? POSIX_SPAWN_SETPGROUP : 0))));
}

/* The child is ours and not waited for, so its number cannot be another's yet when the pidfd is opened. */
static int hold(struct process *p, struct err *err)
{
	p->pidfd = pidfd_open(p->pid, 0);
	if (p->pidfd >= 0)
		return 0;
	int sys = errno;
	(void)kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	return err_sys(err, sys, "hold process %d", (int)p->pid);
}

int process_spawn(const struct process_spec *spec, struct process **ret_process, struct err *err)
{
	CLEANUP(plan_done) struct plan plan;
	CLEANUP(mem_freep) struct process *p = mem_zalloc(sizeof(*p));
	const char *path = spec->path ? spec->path : spec->argv[0];

	plan_init(&plan);
	/* Opened here, so that a missing directory is not taken for a missing program. */
	if (spec->cwd && (plan.cwd = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_sys(err, errno, "directory %s", spec->cwd);
	plan_fds(&plan, spec);
	plan_attr(&plan, spec);
	if (!plan.sys)
		plan.sys = posix_spawnp(&p->pid, path, &plan.actions, &plan.attr, (char *const *)spec->argv,
					spec->env ? (char *const *)spec->env : environ);
	if (plan.sys)
		return err_sys(err, plan.sys, "start %s", path);
	p->group = spec->group;
	int r = hold(p, err);
	if (r < 0)
		return r;
	*ret_process = TAKE(p);
	return 0;
}

/* ---- Life ---- */

pid_t process_pid(const struct process *p) { return p->pid; }

bool process_ended(struct process *p, struct process_status *ret_status)
{
	siginfo_t info = { .si_pid = 0 };

	if (!p->ended && waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid) {
		p->ended = true;
		if (info.si_code == CLD_EXITED)
			p->status.exit_code = info.si_status;
		else
			p->status = (struct process_status){ .exit_code = 128 + info.si_status, .signal = info.si_status };
	}
	if (p->ended && ret_status)
		*ret_status = p->status;
	return p->ended;
}

int process_wait(struct process *p, struct process_status *ret_status, struct err *err)
{
	int r = fiber_check(err);

	while (r >= 0 && !process_ended(p, ret_status))
		r = fiber_wait_fd(p->pidfd, POLLIN, err);
	return MIN(r, 0);
}

int process_kill(struct process *p, int sig, struct err *err)
{
	if (p->ended)
		return 0;
	/* The group keeps the child's number, and the number stays taken until the child has been waited for. */
	int r = p->group ? kill(-p->pid, sig) : pidfd_send_signal(p->pidfd, sig, NULL, 0);
	return r < 0 && errno != ESRCH ? err_sys(err, errno, "signal process %d", (int)p->pid) : 0;
}

void process_free(struct process *p)
{
	if (!p)
		return;
	if (!process_ended(p, NULL)) {
		(void)process_kill(p, SIGKILL, NULL);
		SHIELD_SCOPE();
		(void)process_wait(p, NULL, NULL);
	}
	(void)close(p->pidfd);
	free(p);
}

void process_freep(struct process **p) { process_free(TAKE(*p)); }

/* ---- Run to the end ---- */

void process_output_done(struct process_output *o)
{
	buf_done(&o->out);
	buf_done(&o->err);
}

/* The pipes between us and a child: ours are non-blocking. */
struct pipes {
	int ours[3], theirs[3];
};

static void pipes_done(struct pipes *p)
{
	for (int i = 0; i < 3; i++) {
		fd_closep(&p->ours[i]);
		fd_closep(&p->theirs[i]);
	}
}

static int pipes_open(struct pipes *p, struct err *err)
{
	for (int i = 0; i < 3; i++) {
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) < 0)
			return err_sys(err, errno, "make a pipe");
		p->theirs[i] = ends[i == 0 ? 0 : 1];
		p->ours[i] = ends[i == 0 ? 1 : 0];
		if (fcntl(p->ours[i], F_SETFL, O_NONBLOCK) < 0)
			return err_sys(err, errno, "make a pipe non-blocking");
	}
	return 0;
}

static int feed(int *fd, str *input, struct err *err)
{
	ssize_t n = write(*fd, input->p, input->n);

	if (n < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
		return err_sys(err, errno, "write to the child");
	if (n > 0)
		*input = str_skip(*input, (size_t)n);
	/* A child need not read all that it is given. */
	if (input->n == 0 || (n < 0 && errno == EPIPE))
		fd_closep(fd);
	return 0;
}

static int collect(int *fd, struct buf *b, const char *what, struct err *err)
{
	enum { PIECE = 4096 };
	/* One byte more than allowed tells a full buffer from too much. */
	size_t room = MIN((size_t)PIECE, b->max - b->n);
	char spare, *at = room ? buf_reserve(b, room) : &spare;
	ssize_t n = read(*fd, at, room ? room : 1);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : err_sys(err, errno, "read from the child");
	if (n == 0)
		fd_closep(fd);
	else if (room)
		buf_commit(b, (size_t)n);
	else
		return err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes", what, b->max);
	return 0;
}

static int talk(struct pipes *p, str input, struct process_output *o, struct err *err)
{
	while (p->ours[0] >= 0 || p->ours[1] >= 0 || p->ours[2] >= 0) {
		struct pollfd fds[] = { { p->ours[0], POLLOUT, 0 }, { p->ours[1], POLLIN, 0 }, { p->ours[2], POLLIN, 0 } };
		int r = fiber_poll(fds, ARRAY_LEN(fds), err);
		if (r >= 0 && fds[0].revents)
			r = feed(&p->ours[0], &input, err);
		if (r >= 0 && fds[1].revents)
			r = collect(&p->ours[1], &o->out, "standard output", err);
		if (r >= 0 && fds[2].revents)
			r = collect(&p->ours[2], &o->err, "standard error", err);
		if (r < 0)
			return r;
	}
	return 0;
}

int process_run(const struct process_spec *spec, str input, size_t max, struct process_output *ret_output, struct err *err)
{
	CLEANUP(pipes_done) struct pipes pipes = { { -1, -1, -1 }, { -1, -1, -1 } };
	CLEANUP(process_freep) struct process *p = NULL;
	struct process_spec with_pipes = *spec;

	*ret_output = (struct process_output){ .out = BUF_INIT(max), .err = BUF_INIT(max) };
	int r = fiber_check(err);
	if (r == 0)
		r = pipes_open(&pipes, err);
	if (r < 0)
		return r;
	with_pipes.n_fds = MAX(spec->n_fds, (size_t)3);
	for (int i = 0; i < 3; i++)
		with_pipes.fds[i] = pipes.theirs[i];
	r = process_spawn(&with_pipes, &p, err);
	for (int i = 0; i < 3; i++)
		fd_closep(&pipes.theirs[i]);
	if (input.n == 0)
		fd_closep(&pipes.ours[0]);
	if (r == 0)
		r = talk(&pipes, input, ret_output, err);
	if (r == 0)
		r = process_wait(p, &ret_output->status, err);
	return r < 0 ? err_wrap(err, r, "run %s", spec->argv[0]) : 0;
}
