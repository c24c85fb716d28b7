/*
 * A session is four fibers: one runs it, which passes on the output; one reads our input; one waits for signals while the terminal is
 * raw; and the caller's own waits for whatever comes first: the end of the process, the keys for leaving, a signal that would have
 * ended us.
 */
#include <signal.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/mem.h"
#include "client/rexec.h"
#include "client/terminal.h"

enum { PIECE = 32 << 10, SIGNAL_EXIT = 128 };

struct session {
	struct rexec *remote;
	struct terminal terminal;
	bool tty, detach_keys;
	bool ended, left;                /* the process; we */
	bool unread;                     /* nobody reads our output any more */
	int signal;                      /* that ends us; 0: none */
	int result, code;                /* of the process, once it has ended */
	struct err *err;
	struct fiber_cond changed;
};

static int write_output(void *arg, int fd, str piece, struct err *err)
{
	struct session *s = arg;
	int r = fiber_write(fd, piece.p, piece.n, err);

	s->unread |= r < 0;
	return r;
}

static int run_remote(void *arg)
{
	struct session *s = arg;

	s->result = rexec_run(s->remote, &s->code, s->err);
	s->ended = true;
	fiber_cond_broadcast(&s->changed);
	return 0;
}

/* Our input may be anything, and others may share it: it is not made non-blocking, but looked at before it is read. */
static int run_input(void *arg)
{
	struct session *s = arg;
	CLEANUP(mem_freep) char *room = mem_alloc(2 * PIECE + 1);
	struct detach detach = { false };
	ssize_t n;

	while (fiber_wait_fd(STDIN_FILENO, POLLIN, NULL) >= 0 && (n = read(STDIN_FILENO, room, PIECE)) > 0) {
		str data = str_span(room, (size_t)n);
		s->left = s->detach_keys && detach_scan(&detach, data, room + PIECE, &data);
		if (data.n && rexec_write(s->remote, data, NULL) < 0)
			return 0;
		if (s->left) {
			fiber_cond_broadcast(&s->changed);
			return 0;
		}
	}
	(void)rexec_close_input(s->remote, NULL);
	return 0;
}

static void send_size(struct session *s)
{
	unsigned columns, rows;

	if (terminal_size(&columns, &rows))
		(void)rexec_resize(s->remote, columns, rows, NULL);
}

static int run_signals(void *arg)
{
	struct session *s = arg;
	int got;

	send_size(s);
	while (terminal_signal(&s->terminal, &got, NULL) == 0) {
		if (got == SIGWINCH) {
			send_size(s);
			continue;
		}
		s->signal = got;
		fiber_cond_broadcast(&s->changed);
	}
	return 0;
}

static int run_fibers(struct session *s, bool in, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	int r;

	fiber_group_init(&group);
	if ((r = fiber_group_spawn(&group, run_remote, s, err, "session")) < 0 ||
	    (s->tty && (r = fiber_group_spawn(&group, run_signals, s, err, "signals")) < 0) ||
	    (in && (r = fiber_group_spawn(&group, run_input, s, err, "input")) < 0))
		return r;
	while (r == 0 && !s->ended && !s->left && !s->signal)
		r = fiber_cond_wait(&s->changed, err);
	return r;
}

static void session_done(struct session *s)
{
	terminal_close(&s->terminal);
	rexec_free(s->remote);
}

int rexec_talk(const struct rexec_talk *t, int *ret_code, struct err *err)
{
	CLEANUP(session_done) struct session s = { .tty = t->tty, .detach_keys = t->tty && t->detach_keys, .terminal = { .signals = -1 }, .err = err };
	struct rexec_wants wants = { .in = t->in, .err = !t->tty, .terminal = t->tty, .write = write_output, .arg = &s };
	int r = t->open(t->arg, &wants, &s.remote, err);

	fiber_cond_init(&s.changed, "the end of a process");
	if (r == 0 && t->tty)
		r = terminal_open(&s.terminal, err);
	if (r == 0)
		r = run_fibers(&s, t->in, err);
	if (r < 0)
		return r;
	if (s.unread) /* as a program ends whose output is cut off */
		s.signal = SIGPIPE;
	*ret_code = s.signal ? SIGNAL_EXIT + s.signal : s.left ? 0 : s.code;
	if (!s.signal && !s.left)
		return s.result;
	err_clear(err); /* it was us who went: how the session took that does not matter */
	return 0;
}
