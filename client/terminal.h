/* terminal: our own terminal, as it is while a process in a container uses it. For the clients of people. */
#ifndef C8S_CLIENT_TERMINAL_H
#define C8S_CLIENT_TERMINAL_H

#include <signal.h>
#include <termios.h>

#include "base/err.h"

struct terminal {
	bool raw, blocked;
	struct termios before;
	sigset_t mask; /* of signals, before they were blocked */
	int signals; /* a signalfd: SIGWINCH, and those that would end us; -1: none */
};

/* Makes standard input raw and catches signals. -ERR_BAD_REQUEST: it is no terminal. */
int terminal_open(struct terminal *t, struct err *err);
/* As it was. Also for one that was never opened ({ .signals = -1 }). */
void terminal_close(struct terminal *t);
/* False when it has none. */
bool terminal_size(unsigned *ret_columns, unsigned *ret_rows);
/* (suspends) The next signal. SIGWINCH: the size has changed. */
int terminal_signal(struct terminal *t, int *ret_signal, struct err *err);

/* ---- leaving ---- */

/* Ctrl-P Ctrl-Q, also when they come in two pieces. */
struct detach {
	bool half;
};

/*
 * What of the piece is meant for the process, in out, which has room for one byte more than the piece. True when the sequence was
 * found: all before it is in *ret, and the rest is to be dropped.
 */
bool detach_scan(struct detach *d, str piece, char *out, str *ret);

#endif
