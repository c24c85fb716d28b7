#include "base/fiber_io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "base/mem.h"

static void make_pair(int fd[2])
{
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

/* ---- Reading and writing ---- */

enum { LOTS = 1 << 20 };

static int write_lots(void *arg)
{
	int fd = *(int *)arg;
	CLEANUP(mem_freep) char *p = mem_alloc(LOTS);
	for (int i = 0; i < LOTS; i++)
		p[i] = (char)(i * 31 >> 4);
	return fiber_write(fd, p, LOTS, NULL);
}

static int read_lots(void *arg)
{
	int fd = *(int *)arg, at = 0;
	char piece[1000];

	while (at < LOTS) {
		ssize_t n = fiber_read(fd, piece, sizeof(piece), NULL);
		if (n <= 0)
			return (int)n;
		for (ssize_t i = 0; i < n; i++, at++)
			if (piece[i] != (char)(at * 31 >> 4))
				return -1;
	}
	return at;
}

FIBER_TEST(fiber_io_both_directions_of_one_descriptor_at_once)
{
	int fd[2];
	make_pair(fd);
	struct fiber *f[] = {
		start(write_lots, &fd[0]), start(write_lots, &fd[1]), start(read_lots, &fd[0]), start(read_lots, &fd[1]),
	};
	CHECK_INT(join(f[0]), 0);
	CHECK_INT(join(f[1]), 0);
	CHECK_INT(join(f[2]), LOTS);
	CHECK_INT(join(f[3]), LOTS);
	close(fd[0]);
	char c;
	CHECK_INT(fiber_read(fd[1], &c, 1, NULL), 0);
	struct err err = ERR_INIT;
	CHECK_INT(fiber_write(fd[1], "x", 1, &err), -ERR_UNAVAILABLE);
	CHECK_INT(err.sys, EPIPE);
	close(fd[1]);
}

static int read_one(void *arg)
{
	char c;
	ssize_t n = fiber_read(*(int *)arg, &c, 1, NULL);
	return n == 1 ? c : (int)n;
}

FIBER_TEST(fiber_io_descriptor_number_used_again)
{
	int fd[2], number = -1;

	for (int i = 0; i < 5; i++) {
		make_pair(fd);
		CHECK(number < 0 || fd[0] == number);
		number = fd[0];
		struct fiber *f = start(read_one, &fd[0]);
		fiber_settle();
		if (i % 2) { /* every other wait ends by cancel, and leaves the descriptor armed */
			CHECK_INT(fiber_stop(f), -ERR_CANCELED);
		} else {
			CHECK_INT(fiber_write(fd[1], "x", 1, NULL), 0);
			CHECK_INT(join(f), 'x');
		}
		close(fd[0]);
		close(fd[1]);
	}
}

FIBER_TEST(fiber_io_several_readers_of_one_descriptor)
{
	int fd[2];

	make_pair(fd);
	struct fiber *a = start(read_one, &fd[0]), *b = start(read_one, &fd[0]);
	fiber_settle();
	CHECK_INT(fiber_write(fd[1], "1", 1, NULL), 0);
	fiber_settle();
	CHECK_INT(fiber_write(fd[1], "2", 1, NULL), 0);
	CHECK_INT(join(a) + join(b), '1' + '2');
	close(fd[0]);
	close(fd[1]);
}

FIBER_TEST(fiber_poll_several)
{
	int a[2], b[2];
	struct err err = ERR_INIT;

	make_pair(a);
	make_pair(b);
	struct pollfd fds[] = { { a[0], POLLIN, 0 }, { -1, POLLIN, 0 }, { b[0], POLLIN, 0 } };
	{
		DEADLINE_SCOPE(5);
		CHECK_INT(fiber_poll(fds, 3, &err), -ERR_TIMEOUT);
		CHECK_STR(err_str(&err), "timed out while waiting for several descriptors");
	}
	CHECK_INT(fiber_write(b[1], "x", 1, NULL), 0);
	CHECK_INT(fiber_poll(fds, 3, NULL), 1);
	CHECK(fds[0].revents == 0 && fds[1].revents == 0 && fds[2].revents == POLLIN);
	fds[2].events = POLLIN | POLLOUT;
	CHECK_INT(fiber_poll(fds, 3, NULL), 1);
	CHECK_INT(fds[2].revents, POLLIN | POLLOUT);
	close(a[1]);
	CHECK_INT(fiber_wait_fd(a[0], POLLIN, NULL) & POLLHUP, POLLHUP);
	close(a[0]);
	CHECK_INT(fiber_wait_fd(a[0], POLLIN, &err), -ERR_SYSTEM);
	CHECK_INT(err.sys, EBADF);
	CHECK_INT(fiber_wait_fd(-1, POLLIN, NULL), -ERR_SYSTEM);
	close(b[0]);
	close(b[1]);

	/* A regular file is always ready. */
	int fd = memfd_create("file", MFD_CLOEXEC);
	CHECK_INT(fiber_wait_fd(fd, POLLIN, NULL), POLLIN);
	CHECK_INT(fiber_fsync(fd, NULL), 0);
	close(fd);
}

/* ---- Sockets ---- */

static int accept_and_echo(void *arg)
{
	struct sockaddr_storage addr;
	int fd = fiber_accept(*(int *)arg, &addr, NULL);
	char c = 0;

	if (fd < 0)
		return fd;
	bool ok = fiber_read(fd, &c, 1, NULL) == 1 && fiber_write(fd, &c, 1, NULL) == 0;
	close(fd);
	return ok ? addr.ss_family : -1;
}

static int listen_on(struct sockaddr *addr, socklen_t *len)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK_INT(bind(fd, addr, *len), 0);
	CHECK_INT(listen(fd, 1), 0);
	*len = sizeof(struct sockaddr_storage);
	CHECK_INT(getsockname(fd, addr, len), 0);
	return fd;
}

FIBER_TEST(fiber_accept_and_connect)
{
	static const int families[] = { AF_INET, AF_UNIX };

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		struct sockaddr_storage addr = { .ss_family = (sa_family_t)families[i] };
		socklen_t len = families[i] == AF_UNIX ? sizeof(sa_family_t) : sizeof(struct sockaddr_in);
		int listener = listen_on((struct sockaddr *)&addr, &len); /* any port; an abstract name */
		struct fiber *f = start(accept_and_echo, &listener);
		fiber_settle();
		int fd = socket(families[i], SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		char c = 0;
		CHECK_INT(fiber_connect(fd, (struct sockaddr *)&addr, len, NULL), 0);
		CHECK_INT(fiber_write(fd, "x", 1, NULL), 0);
		CHECK_INT(fiber_read(fd, &c, 1, NULL), 1);
		CHECK_INT(c, 'x');
		CHECK_INT(join(f), families[i]);
		close(fd);
		close(listener);
		fd = socket(families[i], SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		CHECK_INT(fiber_connect(fd, (struct sockaddr *)&addr, len, NULL), -ERR_UNAVAILABLE); /* nobody listens */
		close(fd);
	}
}

/* ---- Cancel and deadline ---- */

static int pair[2], listener, backlog[8];
static struct sockaddr_storage busy_addr;
static socklen_t busy_len;

static int wait_read(void)
{
	char c;
	return (int)fiber_read(pair[0], &c, 1, NULL);
}

static int wait_write(void)
{
	static const char zeros[1 << 16];
	int r;
	while ((r = fiber_write(pair[0], zeros, sizeof(zeros), NULL)) == 0)
		;
	return r;
}

static int wait_accept(void) { return fiber_accept(listener, NULL, NULL); }
static int wait_fd(void) { return fiber_wait_fd(pair[0], POLLPRI, NULL); }
static int wait_poll(void) { return fiber_poll(&(struct pollfd){ pair[0], POLLPRI, 0 }, 1, NULL); }

/* To a unix socket whose queue is full: the kernel offers nothing to poll for. */
static int wait_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int r = fiber_connect(fd, (struct sockaddr *)&busy_addr, busy_len, NULL);
	close(fd);
	return r;
}

static int (*const waits[])(void) = { wait_read, wait_write, wait_accept, wait_fd, wait_poll, wait_connect };

static int cleaned;

static void count_cleanup(int *unused)
{
	(void)unused;
	cleaned++;
}

static int wait_with_cleanup(void *arg)
{
	CLEANUP(count_cleanup) __attribute__((unused)) int guard = 0;
	return (*(int (*const *)(void))arg)();
}

static int wait_under_deadline(void *arg)
{
	DEADLINE_SCOPE(10);
	return wait_with_cleanup(arg);
}

FIBER_TEST(fiber_io_cancel_and_deadline_end_every_wait)
{
	cleaned = 0;
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		struct sockaddr_storage addr = { .ss_family = AF_UNIX };
		socklen_t len = sizeof(sa_family_t);
		busy_addr = addr, busy_len = len;
		make_pair(pair);
		listener = listen_on((struct sockaddr *)&addr, &len);
		int busy = listen_on((struct sockaddr *)&busy_addr, &busy_len);
		for (size_t n = 0; n < ARRAY_LEN(backlog); n++) {
			backlog[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
			(void)connect(backlog[n], (struct sockaddr *)&busy_addr, busy_len);
		}
		struct fiber *f = start(wait_with_cleanup, (void *)&waits[i]);
		fiber_settle();
		CHECK_ROW(i, cleaned == (int)i * 2);
		CHECK_ROW(i, fiber_stop(f) == -ERR_CANCELED);
		CHECK_ROW(i, join(start(wait_under_deadline, (void *)&waits[i])) == -ERR_TIMEOUT);
		CHECK_ROW(i, cleaned == (int)i * 2 + 2);
		for (size_t n = 0; n < ARRAY_LEN(backlog); n++)
			close(backlog[n]);
		close(busy);
		close(listener);
		close(pair[0]);
		close(pair[1]);
	}
}

/* ---- Thread pool ---- */

static int add_on_thread(void *arg, struct err *err)
{
	int *n = arg;
	if (loop_self() || fiber_self())
		return err_set(err, ERR_INTERNAL, "this is still the loop's thread");
	++*n;
	return *n == 3 ? err_set(err, ERR_CONFLICT, "three") : *n;
}

FIBER_TEST(fiber_blocking_returns_result_and_error)
{
	struct err err = ERR_INIT;
	int n = 0;

	CHECK_INT(fiber_blocking(add_on_thread, &n, &err), 1);
	CHECK_INT(fiber_blocking(add_on_thread, &n, &err), 2);
	CHECK_INT(fiber_blocking(add_on_thread, &n, &err), -ERR_CONFLICT);
	CHECK_STR(err_str(&err), "three");
	CHECK_INT(fiber_fsync(-1, &err), -ERR_SYSTEM);
	CHECK_STR(err_str(&err), "fsync: Bad file descriptor");
}

static int run_on_worker(void *arg) { return worker_run(arg, add_on_thread, &(int){ 41 }, NULL); }

FIBER_TEST(worker_runs_one_job_after_another)
{
	struct worker *w;
	struct err err = ERR_INIT;
	int n = 0;

	CHECK_INT(worker_start("a-test", &w, &err), 0);
	CHECK_INT(worker_run(w, add_on_thread, &n, &err), 1);
	CHECK_INT(worker_run(w, add_on_thread, &n, &err), 2);
	CHECK_INT(worker_run(w, add_on_thread, &n, &err), -ERR_CONFLICT);
	CHECK_STR(err_str(&err), "three");

	struct fiber *late = start(run_on_worker, w);
	fiber_cancel(late); /* not handed over yet: it never is */
	CHECK_INT(join(late), -ERR_CANCELED);
	late = start(run_on_worker, w);
	CHECK_INT(fiber_yield(NULL), 0);
	CHECK_INT(fiber_stop(late), 42); /* handed over: waited for */
	worker_stop(w);
	worker_stop(NULL);
}

/* More than the pool has threads: the last of them, and whatever comes later, waits in the queue. */
enum { BLOCKERS = 32 };

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static int gate_running;

static int pass_gate(void *arg, struct err *err)
{
	(void)err;
	pthread_mutex_lock(&gate_lock);
	gate_running++;
	while (!gate_open)
		pthread_cond_wait(&gate_moved, &gate_lock);
	pthread_mutex_unlock(&gate_lock);
	*(int *)arg = 1;
	return 1;
}

static int block_at_gate(void *arg) { return fiber_blocking(pass_gate, arg, NULL); }

static int block_with_deadline(void *arg)
{
	DEADLINE_SCOPE(10);
	return fiber_blocking(pass_gate, arg, NULL);
}

static int look_up(void *arg)
{
	struct addrinfo *list = NULL;
	(void)arg;
	int r = fiber_getaddrinfo("127.0.0.1", "80", NULL, &list, NULL);
	if (list)
		freeaddrinfo(list);
	return r;
}

static void set_gate(bool open)
{
	pthread_mutex_lock(&gate_lock);
	gate_open = open;
	if (!open)
		gate_running = 0;
	pthread_cond_broadcast(&gate_moved);
	pthread_mutex_unlock(&gate_lock);
}

static int gate_count(void)
{
	pthread_mutex_lock(&gate_lock);
	int n = gate_running;
	pthread_mutex_unlock(&gate_lock);
	return n;
}

FIBER_TEST(fiber_blocking_canceled_in_the_queue_never_runs)
{
	struct fiber *f[BLOCKERS];
	int done[BLOCKERS] = { 0 }, timed_done = 0;

	set_gate(false);
	for (int i = 0; i < BLOCKERS; i++)
		f[i] = start(block_at_gate, &done[i]);
	struct fiber *timed = start(block_with_deadline, &timed_done), *lookup = start(look_up, NULL);
	while (gate_count() == 0)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_INT(fiber_stop(f[BLOCKERS - 1]), -ERR_CANCELED);
	CHECK_INT(fiber_stop(lookup), -ERR_CANCELED);
	CHECK_INT(join(timed), -ERR_TIMEOUT);
	CHECK_INT(done[BLOCKERS - 1] + timed_done, 0);

	fiber_cancel(f[0]); /* it is running: waited for, and then successful */
	CHECK_INT(fiber_sleep_ms(5, NULL), 0);
	CHECK_INT(done[0], 0);
	set_gate(true);
	for (int i = 0; i < BLOCKERS - 1; i++) {
		CHECK_INT(join(f[i]), 1);
		CHECK_INT(done[i], 1);
	}
}

FIBER_TEST(fiber_getaddrinfo_finds_and_does_not_find)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST }, *list = NULL;
	struct err err = ERR_INIT;

	CHECK_INT(fiber_getaddrinfo("127.0.0.1", "443", &hints, &list, &err), 0);
	struct sockaddr_in *addr = (struct sockaddr_in *)(void *)list->ai_addr;
	CHECK_INT(addr->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	CHECK_INT(addr->sin_port, htons(443));
	freeaddrinfo(list);
	CHECK_INT(fiber_getaddrinfo("no.such.host", NULL, &hints, &list, &err), -ERR_UNAVAILABLE);
	CHECK_STR(err_str(&err), "look up no.such.host: no such host");
}
