/*
 * exec and attach: a client on one side; on the other a process' pipes or terminal, or the socket of a monitor with the container's own
 * streams. A fiber per direction copies; each waits for its reader, so nothing piles up.
 *
 * A process' end is told after its output has ended. Others may hold its output open, so after its end silence ends it too.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "runtime/stream_priv.h"

enum { FRAME_IN = 0, FRAME_OUT = 1, FRAME_ERR = 2, FRAME_END_OF_IN = 3, FRAME_HEAD = 5, SILENCE_MS = 2000 };

struct session {
	struct remote remote;
	struct container *container;         /* a reference */
	struct exec *exec;                   /* NULL: attached */
	int in, out, err;                    /* our ends; -1: none. A terminal or a monitor's socket is `in` and `out` at once */
	bool framed;
	unsigned open;                       /* outputs that have not ended */
	int64_t heard_ns;                    /* when there was output last */
	bool ended;                          /* the process has */
	int exit_code;
	int result;                          /* of waiting for it */
	struct err why;
	struct fiber_cond changed;
};

static void session_done(struct session *s)
{
	remote_done(&s->remote);
	if (s->out == s->in)
		s->out = -1;
	fd_closep(&s->in);
	fd_closep(&s->out);
	fd_closep(&s->err);
	exec_free(s->exec);
	container_unref(s->container);
}

/* ---- from the client ---- */

static void frame_head(char head[FRAME_HEAD], char channel, size_t n)
{
	head[0] = channel;
	for (int i = 1; i < FRAME_HEAD; i++)
		head[i] = (char)(n >> (8 * (FRAME_HEAD - 1 - i)));
}

/* A process that reads no more does not end the session: what comes for it is dropped. */
static void take_input(void *arg, str data)
{
	struct session *s = arg;
	char head[FRAME_HEAD];
	frame_head(head, FRAME_IN, data.n);
	if (s->in < 0 || (s->framed && fiber_write(s->in, head, sizeof(head), NULL) < 0))
		return;
	(void)fiber_write(s->in, data.p, data.n, NULL);
}

static void take_input_end(void *arg)
{
	struct session *s = arg;
	char head[FRAME_HEAD];
	if (s->in < 0)
		return;
	frame_head(head, FRAME_END_OF_IN, 0);
	if (s->framed)
		(void)fiber_write(s->in, head, sizeof(head), NULL);
	else if (s->in != s->out)
		fd_closep(&s->in);
}

static void take_resize(void *arg, unsigned width, unsigned height)
{
	struct session *s = arg;
	(void)(s->exec ? exec_resize(s->exec, width, height, NULL) : container_resize(s->container, width, height, NULL));
}

static const struct remote_taker taker = { take_input, take_input_end, take_resize };

/* ---- to the client ---- */

static int output_ended(struct session *s)
{
	s->open--;
	fiber_cond_broadcast(&s->changed);
	return 0;
}

static void copy_output(struct session *s, int fd, enum remote_channel channel)
{
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	ssize_t n;
	/* a terminal ends with EIO */
	while ((n = fiber_read(fd, room, STREAM_COPY, NULL)) > 0) {
		if (remote_write(&s->remote, channel, str_span(room, (size_t)n), NULL) < 0)
			break;
		s->heard_ns = clock_now_ns();
	}
}

static int copy_stdout(void *arg)
{
	struct session *s = arg;
	copy_output(s, s->out, REMOTE_OUT);
	return output_ended(s);
}

static int copy_stderr(void *arg)
{
	struct session *s = arg;
	copy_output(s, s->err, REMOTE_ERR);
	return output_ended(s);
}

static int read_exactly(int fd, char *p, size_t n)
{
	while (n) {
		ssize_t got = fiber_read(fd, p, n, NULL);
		if (got <= 0)
			return -1;
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

static int copy_frames(void *arg)
{
	struct session *s = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(STREAM_COPY);
	unsigned char head[FRAME_HEAD];
	bool ok = true;
	while (ok && read_exactly(s->out, (char *)head, sizeof(head)) == 0) {
		uint32_t left = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
		while (ok && left) {
			ssize_t n = fiber_read(s->out, room, MIN((size_t)left, (size_t)STREAM_COPY), NULL);
			enum remote_channel channel = head[0] == FRAME_ERR ? REMOTE_ERR : REMOTE_OUT;
			ok = n > 0 && remote_write(&s->remote, channel, str_span(room, (size_t)n), NULL) == 0;
			left -= n > 0 ? (uint32_t)n : 0;
		}
	}
	return output_ended(s);
}

/* ---- how it went ---- */

static struct val success(struct arena *a)
{
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Success")));
}

static struct val exited(struct arena *a, int code)
{
	struct val cause = OBJECT(a, F(reason, VAL_LIT("ExitCode")), F(message, VAL_STR(arena_printf(a, "%d", code))));
	str text = arena_printf(a, "command terminated with non-zero exit code: command terminated with exit code %d", code);
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Failure")), F(message, VAL_STR(text)),
		      F(reason, VAL_LIT("NonZeroExitCode")), F(details, OBJECT(a, F(causes, LIST(a, cause)))));
}

static struct val failed(struct arena *a, const char *what, const struct err *err)
{
	str why = arena_printf(a, "%s: %s", what, err->msg);
	struct val cause = OBJECT(a, F(message, VAL_STR(why)));
	return OBJECT(a, F(metadata, VAL_EMPTY_OBJECT), F(status, VAL_LIT("Failure")),
		      F(message, VAL_STR(arena_join(a, STR("Internal error occurred: "), why))), F(reason, VAL_LIT("InternalError")),
		      F(details, OBJECT(a, F(causes, LIST(a, cause)))), F(code, val_of_int(500)));
}

/* ---- exec ---- */

/* Pipes for what is wanted, nothing for the rest. theirs: what the process gets. */
static int make_pipes(struct session *s, int theirs[3], struct err *err)
{
	int pair[2];
	const struct remote *r = &s->remote;
	struct {
		bool wanted;
		int *ours, ours_is;          /* which end */
	} ends[3] = { { r->in, &s->in, 1 }, { r->out, &s->out, 0 }, { r->err, &s->err, 0 } };
	for (int i = 0; i < 3; i++) {
		if (!ends[i].wanted) {
			theirs[i] = open("/dev/null", (i ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		} else if (pipe2(pair, O_CLOEXEC) == 0) {
			*ends[i].ours = pair[ends[i].ours_is];
			theirs[i] = pair[!ends[i].ours_is];
		}
		if (theirs[i] < 0 || (ends[i].wanted && fcntl(*ends[i].ours, F_SETFL, O_NONBLOCK) < 0))
			return err_sys(err, errno, "pipes");
	}
	return 0;
}

static int start_exec(struct session *s, struct val args, struct err *err)
{
	int theirs[3] = { -1, -1, -1 }, terminal = -1;
	struct exec_options o = { .args = args, .terminal = s->remote.terminal, .stdio = { -1, -1, -1 } };
	int r = o.terminal ? 0 : make_pipes(s, theirs, err);
	if (r == 0) {
		memcpy(o.stdio, theirs, sizeof(theirs));
		r = exec_start(s->container, &o, &s->exec, &terminal, err);
	}
	for (int i = 0; i < 3; i++)
		fd_closep(&theirs[i]);
	if (r < 0 || !o.terminal)
		return r;
	s->in = s->out = terminal;
	return fcntl(terminal, F_SETFL, O_NONBLOCK) < 0 ? err_sys(err, errno, "a terminal") : 0;
}

static int wait_exec(void *arg)
{
	struct session *s = arg;
	s->result = exec_wait(s->exec, &s->exit_code, &s->why);
	s->ended = true;
	s->heard_ns = clock_now_ns();
	fiber_cond_broadcast(&s->changed);
	return 0;
}

static int add_output(struct session *s, struct fiber_group *group, int (*fn)(void *), struct err *err)
{
	s->open++;
	return fiber_group_spawn(group, fn, s, err, "stream output");
}

/* (suspends) Output that still comes after the process' end; false when there was none for a while. */
static bool wait_for_rest(struct session *s)
{
	int64_t quiet = s->heard_ns;
	DEADLINE_SCOPE(SILENCE_MS);
	int r = fiber_cond_wait(&s->changed, NULL);
	return r == 0 || (r == -ERR_TIMEOUT && s->heard_ns != quiet);
}

/* (suspends) Until all is over, or the client is gone: -ERR_GONE. */
static int run_exec(struct session *s, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = remote_start(&s->remote, &taker, s, &s->changed, err);
	if (r == 0 && s->out >= 0)
		r = add_output(s, &group, copy_stdout, err);
	if (r == 0 && s->err >= 0)
		r = add_output(s, &group, copy_stderr, err);
	if (r == 0)
		r = fiber_group_spawn(&group, wait_exec, s, err, "stream process");
	while (r == 0 && !s->remote.gone && !s->ended)
		r = fiber_cond_wait(&s->changed, err);
	while (r == 0 && !s->remote.gone && s->open && wait_for_rest(s))
		r = fiber_check(err);
	if (r == 0 && s->remote.gone)
		return -ERR_GONE;
	return r < 0 ? r : s->result;
}

static struct session session_of(const struct stream_request *q)
{
	return (struct session){ .remote = { .in = q->in, .out = q->out, .err = q->err && !q->terminal, .terminal = q->terminal },
				 .in = -1, .out = -1, .err = -1 };
}

int stream_exec(struct runtime *runtime, struct http_exchange *x, const struct stream_request *q, struct err *err)
{
	CLEANUP(session_done) struct session s = session_of(q);
	fiber_cond_init(&s.changed, "a process and its output");
	int r = remote_open(&s.remote, x, err);
	if (r <= 0)
		return r;
	r = container_find(runtime, q->id, &s.container, err);
	if (r == 0)
		r = start_exec(&s, q->args, err);
	if (r == 0 && (r = run_exec(&s, err)) < 0 && s.why.code && err)
		*err = s.why;
	if (r == -ERR_GONE || r == -ERR_CANCELED)
		return r;
	struct val status = r < 0 ? failed(x->arena, "error executing command in container", err) :
			    s.exit_code ? exited(x->arena, s.exit_code) : success(x->arena);
	remote_finish(&s.remote, status);
	return 0;
}

/* ---- attach ---- */

static int start_attach(struct session *s, struct err *err)
{
	int fd;
	int r = container_attach(s->container, &fd, err);
	if (r < 0)
		return r;
	s->in = s->out = fd;
	s->framed = true;
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? err_sys(err, errno, "a socket") : 0;
}

/* (suspends) Until the container's streams have ended, or the client is gone: -ERR_GONE. */
static int run_attach(struct session *s, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = remote_start(&s->remote, &taker, s, &s->changed, err);
	if (r == 0)
		r = add_output(s, &group, copy_frames, err);
	while (r == 0 && !s->remote.gone && s->open)
		r = fiber_cond_wait(&s->changed, err);
	return r == 0 && s->remote.gone ? -ERR_GONE : r;
}

int stream_attach(struct runtime *runtime, struct http_exchange *x, const struct stream_request *q, struct err *err)
{
	CLEANUP(session_done) struct session s = session_of(q);
	fiber_cond_init(&s.changed, "a container's output");
	int r = remote_open(&s.remote, x, err);
	if (r <= 0)
		return r;
	r = container_find(runtime, q->id, &s.container, err);
	if (r == 0)
		r = start_attach(&s, err);
	if (r == 0)
		r = run_attach(&s, err);
	if (r == -ERR_GONE || r == -ERR_CANCELED)
		return r;
	remote_finish(&s.remote, r < 0 ? failed(x->arena, "error attaching to container", err) : success(x->arena));
	return 0;
}
