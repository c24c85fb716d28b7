/*
 * Jobs. Each is a child that does one thing with an OCI runtime: with our own by calling oci/ as a library, with another one by its
 * command line. What it makes becomes a child of the monitor, the subreaper, when the job ends. A job has the descriptors that it needs
 * and no others, so none of those of other containers or connections is held open by a container that waits for its start.
 *
 * Our own reports by a pipe; another one by its exit code, --pid-file and --log (in JSON). Its files are job-N.* in the pod's folder.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/oci.h"

enum { CONSOLE_WAIT_MS = 1000, PROGRAM_LOG_MAX = 256 << 10, ARGS_MAX = 24 };

/* What comes through the pipe; smaller than what a pipe takes at once. */
struct report {
	int r;
	pid_t pid;
	struct err err;
};

static const char *const names[] = {
	[JOB_CREATE] = "create", [JOB_START] = "start", [JOB_KILL] = "kill", [JOB_DELETE] = "delete",
	[JOB_EXEC] = "exec", [JOB_UPDATE] = "update", [JOB_PAUSE] = "pause", [JOB_RESUME] = "resume",
};

enum { FILE_NAME_MAX = 32 };

static const char *file_name(const struct job *j, const char *end, char out[FILE_NAME_MAX])
{
	snprintf(out, FILE_NAME_MAX, "job-%u.%s", j->number, end);
	return out;
}

/* ---- in the child ---- */

static int run_own(const struct job *j, struct arena *a, int console, pid_t *ret_pid, struct err *err)
{
	const char *root = j->pod->oci_root, *id = j->container->id;

	switch (j->op) {
	case JOB_CREATE:
		return oci_create(&(struct oci_create_options){ .root = root, .id = id, .bundle = j->container->bundle,
				.console_socket = console, .stdio = { j->stdio[0], j->stdio[1], j->stdio[2] } }, ret_pid, err);
	case JOB_EXEC:
		return oci_exec(&(struct oci_exec_options){ .root = root, .id = id,
				.process = val_with(a, j->value, val_of_bool(j->terminal), terminal),
				.console_socket = console, .stdio = { j->stdio[0], j->stdio[1], j->stdio[2] } }, ret_pid, err);
	case JOB_START:
		return oci_start(root, id, err);
	case JOB_KILL:
		return oci_kill(root, id, j->signal, j->all, err);
	case JOB_DELETE:
		return oci_delete(root, id, j->force, err);
	case JOB_UPDATE:
		return oci_update(root, id, j->value, err);
	case JOB_PAUSE:
	case JOB_RESUME:
		return oci_pause(root, id, j->op == JOB_PAUSE, err);
	}
	return err_set(err, ERR_INTERNAL, "there is no such job");
}

static const char *file_path(const struct job *j, struct arena *a, const char *end)
{
	char name[FILE_NAME_MAX];

	return arena_printf(a, "%s/%s", j->pod->folder, file_name(j, end, name)).p;
}

static int write_value(struct val v, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4 * MONITOR_PACKET_MAX);
	int r = json_encode(&text, v, &(struct json_encode_options){ .plain = true }, err);

	return r < 0 ? r : file_write(path, buf_str(&text), 0600, err);
}

struct args {
	const char *v[ARGS_MAX];
	size_t n;
};

static void add(struct args *args, const char *a, const char *b)
{
	args->v[args->n++] = a;
	if (b)
		args->v[args->n++] = b;
}

static int add_options(const struct job *j, struct arena *a, bool console, struct args *args, struct err *err)
{
	int r = 0;

	if (j->op == JOB_CREATE)
		add(args, "--bundle", j->container->bundle);
	if (j->op == JOB_EXEC) {
		const char *path = file_path(j, a, "json");
		r = write_value(val_with(a, j->value, val_of_bool(j->terminal), terminal), path, err);
		add(args, "--detach", NULL);
		add(args, "--process", path);
	}
	if (j->op == JOB_UPDATE) {
		const char *path = file_path(j, a, "json");
		r = write_value(j->value, path, err);
		add(args, "--resources", path);
	}
	if (j->op == JOB_CREATE || j->op == JOB_EXEC)
		add(args, "--pid-file", file_path(j, a, "pid"));
	if (console) {
		/* By the monitor's descriptor of the folder, because the address of a socket is short. */
		char name[FILE_NAME_MAX];
		add(args, "--console-socket", arena_printf(a, "/proc/%d/fd/%d/%s", getppid(), j->pod->folder_fd, file_name(j, "sock", name)).p);
	}
	if (j->op == JOB_KILL && j->all)
		add(args, "--all", NULL);
	if (j->op == JOB_DELETE && j->force)
		add(args, "--force", NULL);
	return r;
}

/* Becomes the program; returns only when that fails. */
static int run_program(const struct job *j, struct arena *a, struct err *err)
{
	const char *program = j->pod->program;
	struct args args = { .n = 0 };
	int r;

	add(&args, program, "--root");
	add(&args, j->pod->oci_root, "--log");
	add(&args, file_path(j, a, "log"), "--log-format");
	add(&args, "json", names[j->op]);
	if ((r = add_options(j, a, j->console >= 0, &args, err)) < 0)
		return r;
	add(&args, j->container->id, j->op == JOB_KILL ? arena_printf(a, "%d", j->signal).p : NULL);
	for (int i = 0; i < 3; i++)
		if (j->stdio[i] >= 0 && dup2(j->stdio[i], i) < 0)
			return err_sys(err, errno, "standard descriptors");
	execvp(program, (char *const *)args.v);
	return err_sys(err, errno, "%s", program);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Closes all but the standard descriptors and these. */
static void keep_only(int *fds, size_t n)
{
	unsigned from = 3;

	qsort(fds, n, sizeof(*fds), compare);
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < (int)from)
			continue;
		if (fds[i] > (int)from)
			close_range(from, (unsigned)fds[i] - 1, 0);
		from = (unsigned)fds[i] + 1;
	}
	close_range(from, ~0u, 0);
}

static __attribute__((noreturn)) void run_child(const struct job *j, int report, int console)
{
	struct arena a = ARENA_INIT;
	struct report result = { .err = ERR_INIT };
	sigset_t none;

	keep_only((int[]){ j->stdio[0], j->stdio[1], j->stdio[2], report, console }, 5);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	result.r = j->pod->program ? run_program(j, &a, &result.err) : run_own(j, &a, console, &result.pid, &result.err);
	_exit(write(report, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

/* ---- around it ---- */

/* Where the master of a terminal comes in: a pair of sockets for our own, a listening one for others. */
static int open_console(struct job *j, int *ret_theirs, struct err *err)
{
	struct sockaddr_un address;
	char name[FILE_NAME_MAX];
	int ends[2], r;

	*ret_theirs = -1;
	if (!j->terminal)
		return 0;
	if (!j->pod->program) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
			return err_sys(err, errno, "a pair of sockets");
		j->console = ends[0];
		*ret_theirs = ends[1];
		return 0;
	}
	if ((r = monitor_wire_address(j->pod->folder_fd, file_name(j, "sock", name), &address, err)) < 0)
		return r;
	j->console = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (j->console < 0 || bind(j->console, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fchmodat(j->pod->folder_fd, name, 0600, 0) < 0 || listen(j->console, 1) < 0)
		return err_sys(err, errno, "a socket for the terminal");
	return 0;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, CONSOLE_WAIT_MS) > 0;
}

static int receive_master(const struct job *j, struct err *err)
{
	int fd = j->pod->program ? -1 : fcntl(j->console, F_DUPFD_CLOEXEC, 3), master = -1;
	char text[256];
	struct iovec iov = { text, sizeof(text) };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room) };

	if (j->pod->program && readable(j->console))
		fd = accept4(j->console, NULL, NULL, SOCK_CLOEXEC);
	if (readable(fd) && recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) > 0) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&master, CMSG_DATA(c), sizeof(int));
	}
	if (fd >= 0)
		close(fd);
	return master >= 0 ? master : err_set(err, ERR_INTERNAL, "the runtime has sent no terminal");
}

static void remove_files(const struct job *j)
{
	static const char *const ends[] = { "json", "log", "pid", "sock" };
	char name[FILE_NAME_MAX];

	for (size_t i = 0; j->pod->program && i < ARRAY_LEN(ends); i++)
		unlinkat(j->pod->folder_fd, file_name(j, ends[i], name), 0);
}

static void job_free(struct job *j)
{
	list_remove(&j->link);
	timer_stop(&j->timer);
	if (j->report >= 0)
		close(j->report);
	if (j->console >= 0)
		close(j->console);
	free(j);
}

static void job_late(struct timer *t)
{
	struct job *j = CONTAINER_OF(t, struct job, timer);

	log_error("a runtime does not come to an end", KV("job", names[j->op]), KV("container", j->container->id));
	j->late = true;
	kill(j->pid, SIGKILL);
}

void job_hurry(struct container *c)
{
	LIST_EACH(struct job, j, &c->pod->jobs, link)
		if (j->container == c && j->op == JOB_EXEC && !j->late)
			timer_set(c->pod, &j->timer, EXEC_LAST_MS, job_late);
}

int job_begin(const struct job *model, struct err *err)
{
	struct pod *pod = model->pod;
	struct job *j = mem_alloc(sizeof(*j));
	int pipe[2] = { -1, -1 }, console = -1, r;

	*j = *model;
	j->number = pod->n_jobs_ever++;
	j->report = j->console = -1;
	list_init(&j->link);
	if ((r = open_console(j, &console, err)) < 0)
		goto failed;
	if (pipe2(pipe, O_CLOEXEC) < 0) {
		r = err_sys(err, errno, "a pipe");
		goto failed;
	}
	j->report = pipe[0];
	j->pid = fork();
	if (j->pid == 0)
		run_child(j, pipe[1], console);
	if (j->pid < 0) {
		r = err_sys(err, errno, "fork");
		goto failed;
	}
	close(pipe[1]);
	if (console >= 0)
		close(console);
	j->value = VAL_EMPTY;
	j->container->jobs++;
	list_add(&pod->jobs, &j->link);
	timer_set(pod, &j->timer, j->op == JOB_EXEC ? EXEC_PATIENCE_MS : JOB_PATIENCE_MS, job_late);
	return 0;
failed:
	if (pipe[1] >= 0)
		close(pipe[1]);
	if (console >= 0)
		close(console);
	remove_files(j);
	job_free(j);
	return r;
}

/* ---- its result ---- */

static enum err_code code_of_text(str text)
{
	static const struct {
		str part;
		enum err_code code;
	} table[] = {
		{ STR_INIT("does not exist"), ERR_NOT_FOUND },
		{ STR_INIT("/status`: No such file"), ERR_NOT_FOUND },
		{ STR_INIT("not running"), ERR_CONFLICT },
		{ STR_INIT("already finished"), ERR_CONFLICT },
		{ STR_INIT("No such process"), ERR_CONFLICT },
		{ STR_INIT("not paused"), ERR_CONFLICT },
		{ STR_INIT("already exists"), ERR_ALREADY_EXISTS },
		{ STR_INIT("given id"), ERR_ALREADY_EXISTS },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_find(text, table[i].part) >= 0)
			return table[i].code;
	return ERR_INTERNAL;
}

/* The last error in the program's log. */
static int program_error(const struct job *j, int status, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PROGRAM_LOG_MAX);
	struct arena a = ARENA_INIT;
	str found = STR_NONE;

	(void)file_read(file_path(j, &a, "log"), &text, NULL);
	for (str line, rest = buf_str(&text); rest.n;) {
		struct val v;
		str_cut(rest, '\n', &line, &rest);
		if (json_decode(&a, line, &(struct json_decode_options){ 0 }, &v, NULL) == 0 && val_str(v, msg).n)
			found = val_str(v, msg);
	}
	if (found.n)
		err_set(err, code_of_text(found), STR_FMT, STR_ARG(found));
	else if (WIFEXITED(status))
		err_set(err, ERR_INTERNAL, "%s %s: exit code %d", j->pod->program, names[j->op], WEXITSTATUS(status));
	else
		err_set(err, ERR_INTERNAL, "%s %s: ended by signal %d", j->pod->program, names[j->op], WTERMSIG(status));
	arena_done(&a);
	return -(int)err->code;
}

static int program_pid(const struct job *j, pid_t *ret_pid, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	struct arena a = ARENA_INIT;
	int64_t n = 0;
	int r = file_read(file_path(j, &a, "pid"), &text, err);

	arena_done(&a);
	if (r < 0)
		return r;
	if (!str_to_i64(str_trim(buf_str(&text)), &n) || n <= 1 || n > INT32_MAX)
		return err_set(err, ERR_INTERNAL, "%s has written no process number", j->pod->program);
	*ret_pid = (pid_t)n;
	return 0;
}

static void find_result(struct job *j, int status, struct job_result *ret)
{
	bool makes = j->op == JOB_CREATE || j->op == JOB_EXEC;
	struct report report;

	if (j->late) {
		if (j->op == JOB_EXEC && j->container->status == STATUS_STOPPED)
			ret->r = err_set(&ret->err, ERR_CONFLICT, "container %s is not running: it is stopped", j->container->id);
		else
			ret->r = err_set(&ret->err, ERR_TIMEOUT, "%s: the runtime did not come to an end in %d s", names[j->op],
					 (j->op == JOB_EXEC ? EXEC_PATIENCE_MS : JOB_PATIENCE_MS) / 1000);
		return;
	}
	if (read(j->report, &report, sizeof(report)) == sizeof(report)) {
		ret->r = report.r;
		ret->pid = report.pid;
		ret->err = report.err;
	} else if (!j->pod->program) {
		ret->r = err_set(&ret->err, ERR_INTERNAL, "%s: the runtime failed (status %d)", names[j->op], status);
	} else if (status != 0) {
		ret->r = program_error(j, status, &ret->err);
	} else if (makes) {
		ret->r = program_pid(j, &ret->pid, &ret->err);
	}
	if (ret->r >= 0 && makes && j->terminal) {
		ret->master = receive_master(j, &ret->err);
		if (ret->master < 0) {
			ret->r = ret->master;
			ret->master = -1;
		}
	}
}

bool job_reap(struct pod *pod, pid_t pid, int status)
{
	LIST_EACH(struct job, j, &pod->jobs, link) {
		if (j->pid != pid)
			continue;
		struct job_result result = { .master = -1, .err = ERR_INIT };
		find_result(j, status, &result);
		remove_files(j);
		j->container->jobs--;
		job_done(j, &result);
		job_free(j);
		if (list_empty(&pod->jobs))
			pod->n_unclaimed = 0;
		return true;
	}
	return false;
}
