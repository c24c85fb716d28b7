/*
 * Towards a monitor. One fiber per monitor reads: answers go to those who wait for them, in the order of their questions; events go to
 * the callback. Who gives up waiting leaves its place in the queue, so that the answers behind it still find theirs.
 *
 * A connection that ends is made again: the monitor closes one that reads too slowly. What ended meanwhile is then told from the
 * state, so an exit may be told twice. When nobody listens any more, the monitor was killed: that is told as an exit without a name.
 *
 * Questions of one connection are answered one after the other, so a question whose answer may take long by the doing of a container
 * (an exec) has a connection of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/monitor_wire.h"

enum { START_MS = 30000, CONNECT_TRIES = 100, CONNECT_RETRY_MS = 10, STDERR_MAX = 64 << 10, EXIT_FILE_MAX = 64 << 10, APART_MAX = 32 };

struct monitor {
	char *folder;
	monitor_on_exit *fn;
	void *arg;
	int fd;                       /* -1: the monitor is gone */
	struct fiber *reader;
	struct list waiters;          /* in the order of their questions */
	bool sending;                 /* somebody has the turn */
	bool ending;                  /* it was told to end, so that is no news */
	bool freed;                   /* by its owner: the last of those who ask frees it */
	size_t asking;
	size_t apart;                 /* of those, with a connection of their own */
	struct fiber_cond turn, apart_turn;
};

struct waiter {
	struct list link;
	struct fiber_cond answered;
	bool done, abandoned, failed;
	struct buf text;
	struct monitor_fds fds;
};

static void waiter_free(struct waiter *w)
{
	list_remove(&w->link);
	buf_done(&w->text);
	monitor_fds_done(&w->fds);
	free(w);
}

static int gone(const struct monitor *m, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the monitor of %s does not answer", m->folder);
}

/* ---- packets ---- */

static int send_packet(int fd, str text, const struct monitor_fds *fds, struct err *err)
{
	while (monitor_wire_send(fd, text, fds) < 0) {
		int r;
		if (errno != EAGAIN)
			return err_sys(err, errno, "asking a monitor");
		if ((r = fiber_wait_fd(fd, POLLOUT, err)) < 0)
			return r;
	}
	return 0;
}

/* 1, or 0 at the end. */
static int receive_packet(int fd, struct buf *b, struct monitor_fds *fds, struct err *err)
{
	for (;;) {
		int r;
		ssize_t n = monitor_wire_receive(fd, b, fds);
		if (n >= 0)
			return n > 0;
		if (errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN)
			return err_sys(err, errno, "an answer of a monitor");
		if ((r = fiber_wait_fd(fd, POLLIN, err)) < 0)
			return r;
	}
}

static bool is_event(str text) { return str_starts(text, STR("{\"event\":")); }

static void tell(struct monitor *m, str text)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v;

	if (json_decode(&a, text, &(struct json_decode_options){ 0 }, &v, &err) < 0) {
		log_error("an event of a monitor is not readable", KV("folder", m->folder), KV("error", &err));
		return;
	}
	struct monitor_exit e = monitor_wire_exit_of(v);
	if (e.container.n)
		m->fn(m->arg, &e);
}

/* One question where no reader runs. ret_out may be NULL. */
static int exchange(struct monitor *m, int fd, struct arena *a, str question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		    struct val *ret, struct err *err)
{
	int r = send_packet(fd, question, in, err);

	while (r == 0) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(MONITOR_PACKET_MAX);
		CLEANUP(monitor_fds_done) struct monitor_fds fds = { .n = 0 };
		if ((r = receive_packet(fd, &b, &fds, err)) <= 0)
			return r < 0 ? r : gone(m, err);
		r = 0;
		if (is_event(buf_str(&b))) {
			tell(m, buf_str(&b));
			continue;
		}
		if ((r = json_decode(a, arena_str(a, buf_str(&b)), &(struct json_decode_options){ 0 }, ret, err)) < 0 ||
		    (r = monitor_wire_fail(*ret, err)) < 0)
			return r;
		if (ret_out) {
			*ret_out = fds;
			fds.n = 0;
		}
		return 0;
	}
	return r;
}

/* ---- connecting ---- */

/* A descriptor. -ERR_NOT_FOUND: nobody listens. */
static int open_connection(const char *path, struct err *err)
{
	struct sockaddr_un address;
	CLEANUP(fd_closep) int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (folder < 0)
		return err_sys(err, errno, "%s", path);
	CLEANUP(fd_closep) int fd = monitor_wire_socket(err);
	if (fd < 0)
		return fd;
	if ((r = monitor_wire_address(folder, "monitor.sock", &address, err)) < 0)
		return r;
	for (int i = 0; connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0; i++) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			return err_set(err, ERR_NOT_FOUND, "%s: no monitor runs there", path);
		if (errno != EAGAIN || i == CONNECT_TRIES) /* too many wait already */
			return err_sys(err, errno, "%s/monitor.sock", path);
		if ((r = fiber_sleep_ms(CONNECT_RETRY_MS, err)) < 0)
			return r;
	}
	r = fd;
	fd = -1;
	return r;
}

/* A connection that follows; with_state: ends that nobody was told of are told now. */
static int join(struct monitor *m, bool with_state, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(fd_closep) int fd = open_connection(m->folder, err);
	struct val v;
	int r = fd < 0 ? fd : exchange(m, fd, &a, STR("{\"op\":\"follow\"}"), NULL, NULL, &v, err);

	if (r == 0 && with_state && (r = exchange(m, fd, &a, STR("{\"op\":\"state\"}"), NULL, NULL, &v, err)) == 0)
		VAL_EACH(c, val_get(v, containers))
			if (str_eq(val_str(*c, status), STR("stopped")))
				m->fn(m->arg, &(struct monitor_exit){ .container = val_str(*c, id), .exit_code = (int)val_int(*c, exitCode),
						.finished_ns = val_int(*c, finishedAt), .oom_killed = val_bool(*c, oomKilled) });
	if (r < 0)
		return r;
	m->fd = fd;
	fd = -1;
	return 0;
}

/* ---- reading ---- */

static void give(struct monitor *m, struct buf *text, struct monitor_fds *fds)
{
	struct waiter *w = LIST_FIRST(struct waiter, &m->waiters, link);

	if (!w) {
		log_error("a monitor answers what nobody asked", KV("folder", m->folder));
		monitor_fds_done(fds);
		return;
	}
	list_remove(&w->link);
	w->done = true;
	w->fds = *fds;
	w->text = *text;
	buf_init(text, MONITOR_PACKET_MAX);
	if (w->abandoned)
		waiter_free(w);
	else
		fiber_cond_signal(&w->answered);
}

static void fail_all(struct monitor *m)
{
	LIST_EACH_SAFE(struct waiter, w, &m->waiters, link) {
		list_remove(&w->link);
		w->done = w->failed = true;
		if (w->abandoned)
			waiter_free(w);
		else
			fiber_cond_signal(&w->answered);
	}
}

static int read_until_end(struct monitor *m, struct err *err)
{
	for (;;) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(MONITOR_PACKET_MAX);
		struct monitor_fds fds;
		int r = receive_packet(m->fd, &b, &fds, err);
		if (r <= 0)
			return r;
		if (is_event(buf_str(&b))) {
			monitor_fds_done(&fds);
			tell(m, buf_str(&b));
		} else {
			give(m, &b, &fds);
		}
	}
}

/* Nobody uses the connection any more. */
static int leave(struct monitor *m, struct err *err)
{
	int r = 0;

	shutdown(m->fd, SHUT_RDWR); /* wakes one who waits to send */
	fail_all(m);
	while (m->sending && (r = fiber_cond_wait(&m->turn, err)) == 0)
		;
	if (r == 0) {
		close(m->fd);
		m->fd = -1;
	}
	return r;
}

static int read_answers(void *arg)
{
	struct monitor *m = arg;
	struct err err = ERR_INIT;
	int r;

	do {
		r = read_until_end(m, &err);
		if (r == -ERR_CANCELED || (r = leave(m, &err)) < 0)
			return r;
		r = join(m, true, &err);
	} while (r == 0);
	fail_all(m);
	if (r == -ERR_CANCELED || m->ending)
		return r;
	log_error("a monitor is gone", KV("folder", m->folder), KV("error", &err));
	m->fn(m->arg, &(struct monitor_exit){ .container = STR("") });
	return r;
}

/* ---- life ---- */

int monitor_connect(const struct monitor_options *o, monitor_on_exit *fn, void *arg, struct monitor **ret, struct err *err)
{
	struct monitor *m = mem_zalloc(sizeof(*m));
	size_t n = strlen(o->folder) + 1;
	int r;

	m->folder = memcpy(mem_alloc(n), o->folder, n);
	m->fn = fn;
	m->arg = arg;
	m->fd = -1;
	list_init(&m->waiters);
	fiber_cond_init(&m->turn, "a turn to ask a monitor");
	fiber_cond_init(&m->apart_turn, "a connection to a monitor");
	if ((r = join(m, false, err)) < 0 || (r = fiber_spawn(read_answers, m, &m->reader, err, "monitor reader")) < 0) {
		monitor_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

/*
 * Our own program on a read-only mount that nothing else has: it finds itself protected from its containers, and need not execute itself
 * once more to be. -1: it will.
 */
static int open_protected(const char *program)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int fd = open_tree(AT_FDCWD, program, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd >= 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0)
		return fd;
	fd_closep(&fd);
	return -1;
}

int monitor_start(const struct monitor_options *o, monitor_on_exit *fn, void *arg, struct monitor **ret, struct err *err)
{
	CLEANUP(fd_closep) int protected = o->oci_program ? -1 : open_protected(o->program);
	const char *argv[12] = { o->program, "monitor", "--state", o->folder, "--root", o->oci_root };
	size_t n = 6;
	CLEANUP(process_output_done) struct process_output output = { 0 };

	if (o->oci_program) {
		argv[n++] = "--runtime";
		argv[n++] = o->oci_program;
	}
	if (o->cgroup) {
		argv[n++] = "--cgroup";
		argv[n++] = o->cgroup;
	}
	/* What is waited for here ends when its child listens, in a session of its own. One that was started must be known: it is not given up. */
	SHIELD_SCOPE();
	DEADLINE_SCOPE(START_MS);
	struct process_spec spec = { .argv = argv };
	if (protected >= 0) {
		spec.path = "/proc/self/fd/3";
		spec.fds[3] = protected;
		spec.n_fds = 4;
	}
	int r = process_run(&spec, STR_NONE, STDERR_MAX, &output, err);
	if (r < 0)
		return err_wrap(err, r, "starting a monitor");
	if (output.status.exit_code != 0) {
		str text = str_trim(buf_str(&output.err));
		return err_set(err, ERR_INTERNAL, "starting a monitor: exit code %d: " STR_FMT, output.status.exit_code, STR_ARG(text));
	}
	return monitor_connect(o, fn, arg, ret, err);
}

static void release(struct monitor *m)
{
	fd_closep(&m->fd);
	free(m->folder);
	free(m);
}

void monitor_free(struct monitor *m)
{
	if (!m)
		return;
	if (m->reader)
		fiber_stop(m->reader);
	m->freed = true;
	fail_all(m);
	if (!m->asking) {
		release(m);
		return;
	}
	if (m->fd >= 0)
		shutdown(m->fd, SHUT_RDWR); /* wakes one who waits to send */
	fiber_cond_broadcast(&m->turn);
	fiber_cond_broadcast(&m->apart_turn);
}

/* ---- asking ---- */

/* Sends when it is our turn; the waiter is then in the queue. */
static int ask(struct monitor *m, str question, const struct monitor_fds *in, struct waiter *w, struct err *err)
{
	int r = 0;

	while (m->sending && !m->freed && (r = fiber_cond_wait(&m->turn, err)) == 0)
		;
	if (r < 0)
		return r;
	if (m->fd < 0 || m->freed)
		return gone(m, err);
	m->sending = true;
	r = send_packet(m->fd, question, in, err);
	m->sending = false;
	fiber_cond_broadcast(&m->turn);
	if (r == 0 && m->freed)
		r = gone(m, err);
	if (r == 0)
		list_add(&m->waiters, &w->link);
	return r;
}

static int ask_and_wait(struct monitor *m, struct arena *a, struct val question, const struct monitor_fds *in,
			struct monitor_fds *ret_out, struct val *ret_answer, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MONITOR_PACKET_MAX);
	struct val answer;
	int r = json_encode(&text, question, &(struct json_encode_options){ .plain = true }, err);

	if (ret_out)
		ret_out->n = 0;
	if (r < 0)
		return r;
	struct waiter *w = mem_zalloc(sizeof(*w));
	fiber_cond_init(&w->answered, "the answer of a monitor");
	buf_init(&w->text, MONITOR_PACKET_MAX);
	r = ask(m, buf_str(&text), in, w, err);
	while (r == 0 && !w->done)
		r = fiber_cond_wait(&w->answered, err);
	if (r < 0 && list_linked(&w->link)) {
		w->abandoned = true;
		return r;
	}
	if (r == 0 && w->failed)
		r = gone(m, err);
	if (r == 0)
		r = json_decode(a, arena_str(a, buf_str(&w->text)), &(struct json_decode_options){ 0 }, &answer, err);
	if (r == 0 && (r = monitor_wire_fail(answer, err)) == 0) {
		if (ret_out) {
			*ret_out = w->fds;
			w->fds.n = 0;
		}
		if (ret_answer)
			*ret_answer = answer;
	}
	waiter_free(w);
	return r;
}

int monitor_ask(struct monitor *m, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		struct val *ret_answer, struct err *err)
{
	bool end = str_eq(val_str(question, op), STR("end"));
	m->asking++;
	m->ending |= end; /* at once: its end may be seen before its answer is looked at */
	int r = ask_and_wait(m, a, question, in, ret_out, ret_answer, err);
	if (end && r < 0)
		m->ending = false;
	if (--m->asking == 0 && m->freed)
		release(m);
	return r;
}

static int ask_apart(struct monitor *m, struct arena *a, str question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		     struct val *ret, struct err *err)
{
	int r = 0;

	while (m->apart >= APART_MAX && !m->freed && (r = fiber_cond_wait(&m->apart_turn, err)) == 0)
		;
	if (r < 0)
		return r;
	if (m->freed)
		return gone(m, err);
	m->apart++;
	CLEANUP(fd_closep) int fd = open_connection(m->folder, err);
	r = fd == -ERR_NOT_FOUND ? gone(m, err) : fd < 0 ? fd : exchange(m, fd, a, question, in, ret_out, ret, err);
	m->apart--;
	fiber_cond_signal(&m->apart_turn);
	return r;
}

int monitor_ask_apart(struct monitor *m, struct arena *a, struct val question, const struct monitor_fds *in, struct monitor_fds *ret_out,
		      struct val *ret_answer, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MONITOR_PACKET_MAX);
	struct monitor_fds out = { .n = 0 };
	struct val answer;
	int r = json_encode(&text, question, &(struct json_encode_options){ .plain = true }, err);

	if (r < 0)
		return r;
	m->asking++;
	r = ask_apart(m, a, buf_str(&text), in, &out, &answer, err);
	if (--m->asking == 0 && m->freed)
		release(m);
	if (r == 0 && ret_answer)
		*ret_answer = answer;
	if (ret_out)
		*ret_out = out;
	else
		monitor_fds_done(&out);
	return r;
}

int monitor_read_exit(const char *folder, str container, struct arena *a, struct monitor_exit *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(EXIT_FILE_MAX);
	struct val v;
	int r;

	if (!container.n || str_chr(container, '/') >= 0 || container.p[0] == '.')
		return err_set(err, ERR_NOT_FOUND, "\"" STR_FMT "\" is not the name of a container", STR_ARG(container));
	if ((r = file_read(arena_printf(a, "%s/exits/" STR_FMT, folder, STR_ARG(container)).p, &text, err)) < 0)
		return r;
	if ((r = json_decode(a, arena_str(a, buf_str(&text)), &(struct json_decode_options){ 0 }, &v, err)) < 0)
		return err_wrap(err, r, "the exit of " STR_FMT, STR_ARG(container));
	*ret = monitor_wire_exit_of(v);
	return 0;
}
