/*
 * create, run and exec. In the foreground we are the parent of the process: signals are passed on to it, its terminal is copied to
 * and from ours, and its exit code becomes our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/cli.h"
#include "oci/oci_priv.h"
#include "oci/state.h"
#include "oci/sync.h"

/* ---- the foreground ---- */

struct front {
	int signals, master;         /* master: of its terminal; -1: it has ours */
	bool raw, in_open;
	struct termios before;
	pid_t pid;
};

static void front_resize(const struct front *f)
{
	struct winsize size;
	if (f->master >= 0 && ioctl(0, TIOCGWINSZ, &size) == 0)
		(void)ioctl(f->master, TIOCSWINSZ, &size);
}

/* Before there is a child, so that none of its signals is lost. */
static int front_open(struct front *f, struct err *err)
{
	sigset_t set;

	*f = (struct front){ .signals = -1, .master = -1, .in_open = true };
	sigfillset(&set);
	for (const int *s = (const int[]){ SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGURG, 0 }; *s; s++)
		sigdelset(&set, *s);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || (f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return err_sys(err, errno, "signals");
	return 0;
}

/* The master that oci_create has put into our own console socket. */
static int front_terminal(struct front *f, int socket, struct err *err)
{
	struct sync_message ignored;
	struct termios raw;

	(void)sync_next(socket, &ignored, &f->master, NULL);
	if (f->master < 0)
		return err_set(err, ERR_INTERNAL, "the terminal did not come");
	if (tcgetattr(0, &f->before) == 0) {
		raw = f->before;
		cfmakeraw(&raw);
		f->raw = tcsetattr(0, TCSANOW, &raw) == 0;
	}
	front_resize(f);
	return 0;
}

static void front_close(struct front *f)
{
	if (f->raw)
		(void)tcsetattr(0, TCSANOW, &f->before);
	fd_closep(&f->signals);
	fd_closep(&f->master);
}

static bool copy(int from, int to)
{
	char data[2048];
	ssize_t n = read(from, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	for (ssize_t done = 0; done < n;) {
		ssize_t wrote = write(to, data + done, (size_t)(n - done));
		if (wrote < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		done += wrote > 0 ? wrote : 0;
	}
	return n > 0;
}

/* True when the process has ended. */
static bool front_reap(const struct front *f, int *ret_code)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != f->pid)
			continue;
		*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		return true;
	}
	return false;
}

static bool front_signals(const struct front *f, int *ret_code)
{
	struct signalfd_siginfo info;
	bool ended = false;

	while (read(f->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			ended |= front_reap(f, ret_code);
		else if (info.ssi_signo == SIGWINCH)
			front_resize(f);
		else if (info.ssi_signo != SIGPIPE)
			kill(f->pid, (int)info.ssi_signo);
	}
	return ended;
}

static int front_wait(struct front *f)
{
	int code = 0;
	bool ended = front_reap(f, &code);

	while (!ended) {
		struct pollfd p[3] = { { f->signals, POLLIN, 0 },
				       { f->master, POLLIN, 0 },
				       { f->master >= 0 && f->in_open ? 0 : -1, POLLIN, 0 } };
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents && !copy(f->master, 1))
			fd_closep(&f->master);
		if (p[2].revents)
			f->in_open = copy(0, f->master);
		if (p[0].revents)
			ended = front_signals(f, &code);
	}
	/* What it wrote before it ended. */
	while (f->master >= 0) {
		struct pollfd p = { f->master, POLLIN, 0 };
		if (poll(&p, 1, 0) <= 0 || !copy(f->master, 1))
			break;
	}
	return code;
}

/* ---- sockets for the terminal ---- */

static int connect_console(const char *path, struct err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	if (n >= sizeof(at.sun_path))
		return err_set(err, ERR_BAD_REQUEST, "console socket %s: the path is too long", path);
	memcpy(at.sun_path, path, n + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	int sys = errno;
	fd_closep(&fd);
	return err_sys(err, sys, "console socket %s", path);
}

/* Where the terminal goes: to a socket that was named, or to ourselves. ours: our end, or -1. */
static int open_console(const struct cli *c, bool terminal, bool detach, int *ret_socket, int *ret_ours, struct err *err)
{
	int pair[2];

	*ret_socket = *ret_ours = -1;
	if (c->pidfd_socket)
		return err_set(err, ERR_INVALID, "--pidfd-socket is not supported");
	if (c->console_socket) {
		if (!detach || !terminal)
			return err_set(err, ERR_INVALID, "cannot use console socket if runc will not detach or allocate tty");
		return (*ret_socket = connect_console(c->console_socket, err)) < 0 ? *ret_socket : 0;
	}
	if (!terminal || detach)
		return 0;
	if (sync_pair(pair, err) < 0)
		return -ERR_SYSTEM;
	*ret_socket = pair[0];
	*ret_ours = pair[1];
	return 0;
}

/* ---- create and run ---- */

static struct oci_create_options create_options(const struct cli *c, int socket)
{
	return (struct oci_create_options){
		.root = c->root,
		.id = c->argv[0],
		.bundle = c->bundle ? c->bundle : ".",
		.console_socket = socket,
		.stdio = { 0, 1, 2 },
		.preserve_fds = (int)c->preserve_fds,
		.pid_file = c->pid_file,
		.no_pivot = c->no_pivot,
		.no_new_keyring = c->no_new_keyring,
	};
}

static int wants_terminal(const struct cli *c, bool *ret, struct err *err)
{
	struct spec spec;
	int r = spec_read(c->bundle ? c->bundle : ".", c->arena, &spec, err);

	if (r == 0)
		*ret = val_bool(spec.config, process, terminal);
	return r;
}

int cli_create(struct cli *c, struct err *err)
{
	CLEANUP(fd_closep) int socket = -1, ours = -1;
	bool terminal;
	pid_t pid;
	int r;

	if ((r = wants_terminal(c, &terminal, err)) < 0 || (r = open_console(c, terminal, true, &socket, &ours, err)) < 0)
		return r;
	struct oci_create_options o = create_options(c, socket);
	return oci_create(&o, &pid, err);
}

static int run_foreground(struct cli *c, struct front *f, int ours, struct err *err)
{
	int r = ours >= 0 ? front_terminal(f, ours, err) : 0;

	if (r == 0)
		r = oci_start(c->root, c->argv[0], err);
	return r < 0 ? r : front_wait(f);
}

int cli_run(struct cli *c, struct err *err)
{
	CLEANUP(fd_closep) int socket = -1, ours = -1;
	CLEANUP(front_close) struct front f = { .signals = -1, .master = -1 };
	bool terminal;
	int r;

	if ((r = wants_terminal(c, &terminal, err)) < 0 || (r = open_console(c, terminal, c->detach, &socket, &ours, err)) < 0)
		return r;
	if (!c->detach && (r = front_open(&f, err)) < 0)
		return r;
	if (!c->detach && !c->no_subreaper && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "PR_SET_CHILD_SUBREAPER");
	struct oci_create_options o = create_options(c, socket);
	if ((r = oci_create(&o, &f.pid, err)) < 0)
		return r;
	r = c->detach ? oci_start(c->root, c->argv[0], err) : run_foreground(c, &f, ours, err);
	if (r < 0 || (!c->detach && !c->keep)) {
		struct err ignored = ERR_INIT;
		(void)oci_delete(c->root, c->argv[0], true, &ignored);
	}
	return r;
}

/* ---- exec ---- */

static int read_process(const struct cli *c, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(16 << 20);
	int r = file_read(c->process, &text, err);

	if (r < 0)
		return r;
	return json_decode(c->arena, arena_str(c->arena, buf_str(&text)), &(struct json_decode_options){ 0 }, ret, err);
}

static struct val text_list(struct arena *a, struct val list, const char *const *text, size_t n)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(v, list)
		val_add_item(&b, *v);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(str_of(text[i])));
	return val_end_list(&b);
}

static int apply_user(const struct cli *c, struct val *p, struct err *err)
{
	str uid, gid;
	int64_t number = 0;
	bool has_gid = str_cut(str_of(c->user), ':', &uid, &gid);

	if (!str_to_i64(uid, &number))
		return err_set(err, ERR_BAD_REQUEST, "parsing %s as int for uid failed", c->user);
	*p = val_with(c->arena, *p, val_of_int(number), user, uid);
	number = 0;
	if (has_gid && !str_to_i64(gid, &number))
		return err_set(err, ERR_BAD_REQUEST, "parsing %s as int for gid failed", c->user);
	if (has_gid)
		*p = val_with(c->arena, *p, val_of_int(number), user, gid);
	return 0;
}

static int apply_gids(const struct cli *c, struct val *p, struct err *err)
{
	struct val list = val_get(*p, user, additionalGids);

	for (size_t i = 0; i < c->gids.n; i++) {
		int64_t gid;
		if (!str_to_i64(str_of(c->gids.text[i]), &gid))
			return err_set(err, ERR_BAD_REQUEST, "additional gid %s is no number", c->gids.text[i]);
		list = val_list_append(c->arena, list, val_of_int(gid));
	}
	if (c->gids.n)
		*p = val_with(c->arena, *p, list, user, additionalGids);
	return 0;
}

/* The process of config.json with what the flags say. */
static int change_process(const struct cli *c, struct val *p, struct err *err)
{
	static const atom sets[] = { A_bounding, A_effective, A_permitted, A_ambient };
	struct arena *a = c->arena;
	int r;

	if (c->argc < 2)
		return err_set(err, ERR_BAD_REQUEST, "process args cannot be empty");
	*p = val_with(a, *p, text_list(a, VAL_EMPTY, (const char *const *)c->argv + 1, (size_t)c->argc - 1), args);
	*p = val_with(a, *p, text_list(a, val_get(*p, env), c->env.text, c->env.n), env);
	*p = val_with(a, *p, val_of_bool(c->tty), terminal);
	if (c->cwd)
		*p = val_with(a, *p, VAL_STR(str_of(c->cwd)), cwd);
	if (c->apparmor)
		*p = val_with(a, *p, VAL_STR(str_of(c->apparmor)), apparmorProfile);
	if (c->process_label)
		*p = val_with(a, *p, VAL_STR(str_of(c->process_label)), selinuxLabel);
	if (c->no_new_privs)
		*p = val_with(a, *p, val_of_bool(true), noNewPrivileges);
	if (c->user && (r = apply_user(c, p, err)) < 0)
		return r;
	for (size_t i = 0; c->caps.n && i < ARRAY_LEN(sets); i++) {
		const atom path[] = { A_capabilities, sets[i] };
		*p = val_put_path(a, *p, path, 2, text_list(a, val_path(*p, path, 2), c->caps.text, c->caps.n));
	}
	return apply_gids(c, p, err);
}

static int exec_process(const struct cli *c, struct val *ret, struct err *err)
{
	struct state s;
	struct spec spec;
	int r;

	if (c->process)
		return read_process(c, ret, err);
	if ((r = state_open(c->root, c->argv[0], false, c->arena, &s, err)) < 0)
		return r;
	state_close(&s);
	r = spec_read_file(arena_printf(c->arena, "%s/config.json", s.folder).p, s.bundle.p, c->arena, &spec, err);
	if (r < 0)
		return r;
	*ret = val_get(spec.config, process);
	return change_process(c, ret, err);
}

int cli_exec(struct cli *c, struct err *err)
{
	CLEANUP(fd_closep) int socket = -1, ours = -1;
	CLEANUP(front_close) struct front f = { .signals = -1, .master = -1 };
	struct val process;
	int r;

	if (c->cgroups.n)
		return err_set(err, ERR_INVALID, "exec failed: --cgroup is not supported");
	if ((r = exec_process(c, &process, err)) < 0 ||
	    (r = open_console(c, val_bool(process, terminal), c->detach, &socket, &ours, err)) < 0 ||
	    (!c->detach && (r = front_open(&f, err)) < 0))
		return err_wrap(err, r, "exec failed");
	struct oci_exec_options o = {
		.root = c->root,
		.id = c->argv[0],
		.process = process,
		.console_socket = socket,
		.stdio = { 0, 1, 2 },
		.preserve_fds = (int)c->preserve_fds,
		.pid_file = c->pid_file,
		.ignore_paused = c->ignore_paused,
	};
	if ((r = oci_exec(&o, &f.pid, err)) < 0)
		return err_wrap(err, r, "exec failed");
	if (c->detach)
		return 0;
	if (ours >= 0 && (r = front_terminal(&f, ours, err)) < 0)
		return r;
	return front_wait(&f);
}
