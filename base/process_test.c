#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fiber_test.h"

/* Valgrind 3.19 does not know pidfds. */
static bool have_pidfd(void)
{
	int fd = pidfd_open(getpid(), 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

#define PROCESS_TEST(name) FIBER_TEST_IF(have_pidfd(), name)

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHELL(script) ((struct process_spec){ .argv = ARGV("/bin/sh", "-c", script) })

PROCESS_TEST(process_exit_codes_and_signals)
{
	static const struct {
		const char *script;
		struct process_status want;
	} t[] = {
		{ "exit 0", { 0, 0 } },
		{ "exit 7", { 7, 0 } },
		{ "exit 255", { 255, 0 } },
		{ "kill -TERM $$", { 128 + SIGTERM, SIGTERM } },
		{ "kill -KILL $$", { 128 + SIGKILL, SIGKILL } },
		{ "kill -PIPE $$", { 128 + SIGPIPE, SIGPIPE } }, /* ignored here, but not in the child */
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(process_freep) struct process *p = NULL;
		struct process_spec spec = SHELL(t[i].script);
		struct process_status got = { -1, -1 };
		CHECK_ROW(i, process_spawn(&spec, &p, NULL) == 0);
		CHECK_ROW(i, process_wait(p, &got, NULL) == 0);
		CHECK_ROW(i, got.exit_code == t[i].want.exit_code && got.signal == t[i].want.signal);
		got.exit_code = -1;
		CHECK_ROW(i, process_wait(p, &got, NULL) == 0 && got.exit_code == t[i].want.exit_code);
		CHECK_ROW(i, process_ended(p, NULL));
		CHECK_ROW(i, process_kill(p, SIGKILL, NULL) == 0);
	}
}

PROCESS_TEST(process_that_cannot_start)
{
	static const struct {
		const char *path, *cwd;
		int want, sys;
		const char *msg;
	} t[] = {
		{ "/no/such/program", NULL, -ERR_NOT_FOUND, ENOENT, "start /no/such/program: No such file or directory" },
		{ "no-such-program-in-path", NULL, -ERR_NOT_FOUND, ENOENT, "start no-such-program-in-path: No such file or directory" },
		{ "/dev/null", NULL, -ERR_FORBIDDEN, EACCES, "start /dev/null: Permission denied" },
		{ "/bin/sh", "/no/such/dir", -ERR_NOT_FOUND, ENOENT, "directory /no/such/dir: No such file or directory" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct process_spec spec = { .argv = ARGV(t[i].path), .cwd = t[i].cwd };
		struct process *p = NULL;
		struct err err = ERR_INIT;
		CHECK_ROW(i, process_spawn(&spec, &p, &err) == t[i].want);
		CHECK_ROW(i, p == NULL && err.sys == t[i].sys);
		CHECK_STR_ROW(i, err_str(&err), t[i].msg);
	}
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* nothing is left behind */
}

PROCESS_TEST(process_run_talks_to_the_child)
{
	CLEANUP(process_output_done) struct process_output o;
	struct process_spec spec = SHELL("cat; echo oops >&2; echo \"$X in $(pwd)\"; exit 3");
	spec.env = ARGV("X=42", "PATH=/usr/bin:/bin");
	spec.cwd = "/dev";

	CHECK_INT(process_run(&spec, STR("hello "), 1000, &o, NULL), 0);
	CHECK_STR(buf_str(&o.out), "hello 42 in /dev\n");
	CHECK_STR(buf_str(&o.err), "oops\n");
	CHECK_INT(o.status.exit_code, 3);
}

PROCESS_TEST(process_run_with_more_than_a_pipe_holds)
{
	enum { SIZE = 300000 };
	CLEANUP(process_output_done) struct process_output o;
	CLEANUP(buf_done) struct buf input = BUF_INIT(SIZE);
	struct process_spec spec = SHELL("cat");

	for (int i = 0; i < SIZE; i++)
		buf_addc(&input, (char)('a' + i % 26));
	CHECK_INT(process_run(&spec, buf_str(&input), SIZE, &o, NULL), 0); /* exactly the maximum */
	CHECK(str_eq(buf_str(&o.out), buf_str(&input)));
	process_output_done(&o);

	struct process_spec deaf = SHELL("exec <&-; exit 0"); /* does not read */
	CHECK_INT(process_run(&deaf, buf_str(&input), SIZE, &o, NULL), 0);
	CHECK_INT(o.status.exit_code, 0);
}

PROCESS_TEST(process_run_stops_at_the_maximum)
{
	static const struct {
		const char *script, *msg;
	} t[] = {
		{ "yes", "run /bin/sh: standard output is larger than 100 bytes" },
		{ "yes >&2", "run /bin/sh: standard error is larger than 100 bytes" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(process_output_done) struct process_output o;
		struct process_spec spec = SHELL(t[i].script);
		struct err err = ERR_INIT;
		spec.group = true;
		CHECK_ROW(i, process_run(&spec, STR_NONE, 100, &o, &err) == -ERR_TOO_LARGE);
		CHECK_STR_ROW(i, err_str(&err), t[i].msg);
		CHECK_ROW(i, o.out.n + o.err.n == 100);
	}
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

PROCESS_TEST(process_run_ends_with_the_deadline)
{
	CLEANUP(process_output_done) struct process_output o;
	struct process_spec spec = SHELL("echo started; sleep 1000 & wait");
	struct err err = ERR_INIT;

	spec.group = true;
	{
		DEADLINE_SCOPE(200);
		CHECK_INT(process_run(&spec, STR_NONE, 100, &o, &err), -ERR_TIMEOUT);
	}
	CHECK_STR(err_str(&err), "run /bin/sh: timed out while waiting for several descriptors");
	CHECK_STR(buf_str(&o.out), "started\n");
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static int wait_for(void *arg) { return process_wait(arg, NULL, NULL); }

static int run_sleep(void *arg)
{
	CLEANUP(process_output_done) struct process_output o;
	struct process_spec spec = { .argv = ARGV("sleep", "1000") };
	(void)arg;
	return process_run(&spec, STR_NONE, 100, &o, NULL);
}

PROCESS_TEST(process_wait_honours_cancel_and_the_child_goes_on)
{
	struct process_spec spec = { .argv = ARGV("sleep", "1000") };
	struct process *p = NULL;

	CHECK_INT(process_spawn(&spec, &p, NULL), 0);
	struct fiber *f = start(wait_for, p);
	fiber_settle();
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	CHECK(!process_ended(p, NULL));
	CHECK_INT(kill(process_pid(p), 0), 0);

	struct process_status status;
	CHECK_INT(process_kill(p, SIGTERM, NULL), 0);
	CHECK_INT(process_wait(p, &status, NULL), 0);
	CHECK_INT(status.signal, SIGTERM);
	process_free(p);

	CHECK_INT(process_spawn(&spec, &p, NULL), 0);
	process_free(p); /* killed and waited for */
	f = start(run_sleep, NULL);
	fiber_settle();
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	process_free(NULL);
}

static int pipe_with(const char *text)
{
	int fd[2];
	CHECK_INT(pipe2(fd, O_CLOEXEC), 0);
	CHECK_INT(write(fd[1], text, strlen(text)), strlen(text));
	close(fd[1]);
	return fd[0];
}

/* Two descriptors take each other's number, and one that would be inherited by a mere exec does not leak. */
PROCESS_TEST(process_gets_exactly_its_descriptors)
{
	CLEANUP(process_output_done) struct process_output o;
	int leak = open("/dev/null", O_RDONLY), a = pipe_with("a "), b = pipe_with("b ");
	char script[200];

	CHECK(leak >= 0 && a > 2 && b > 2 && a < PROCESS_FDS_MAX && b < PROCESS_FDS_MAX);
	(void)snprintf(script, sizeof(script), "cat /dev/fd/%d /dev/fd/%d; exec ls /proc/self/fd", a, b);
	struct process_spec spec = SHELL(script);
	spec.n_fds = PROCESS_FDS_MAX;
	for (int i = 0; i < PROCESS_FDS_MAX; i++)
		spec.fds[i] = -1;
	spec.fds[a] = b;
	spec.fds[b] = a;
	CHECK_INT(process_run(&spec, STR_NONE, 1000, &o, NULL), 0);
	/* ls shows the one it reads the directory with, too. In the order of strings. */
	CHECK_STR(buf_str(&o.out), "b a 0\n1\n10\n11\n12\n13\n14\n15\n16\n2\n3\n4\n5\n6\n7\n8\n9\n");
	CHECK_STR(buf_str(&o.err), "");

	struct process_spec three = { .argv = ARGV("ls", "/proc/self/fd") };
	process_output_done(&o);
	CHECK_INT(process_run(&three, STR_NONE, 1000, &o, NULL), 0);
	CHECK_STR(buf_str(&o.out), "0\n1\n2\n3\n");
	close(a);
	close(b);
	close(leak);
}

PROCESS_TEST(process_leaves_foreign_children_alone)
{
	struct process_spec spec = SHELL("exit 0");
	struct process_status status;
	struct process *p = NULL;
	pid_t foreign = fork();

	CHECK(foreign >= 0);
	if (foreign == 0)
		_exit(9);
	CHECK_INT(process_spawn(&spec, &p, NULL), 0);
	CHECK_INT(process_wait(p, &status, NULL), 0);
	process_free(p);
	int raw = 0;
	CHECK(waitpid(foreign, &raw, 0) == foreign);
	CHECK(WIFEXITED(raw) && WEXITSTATUS(raw) == 9);
}
