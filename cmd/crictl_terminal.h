/* crictl_terminal: our own terminal, as it is while a process in a container uses it. */
#ifndef C8S_CMD_CRICTL_TERMINAL_H
#define C8S_CMD_CRICTL_TERMINAL_H

#include <termios.h>

#include "base/err.h"

struct crictl_terminal {
	bool raw;
	struct termios before;
	int signals; /* a signalfd: SIGWINCH, and those that would end us; -1: none */
};

/* Makes standard input raw and catches signals. -ERR_BAD_REQUEST: it is no terminal. */
int crictl_terminal_open(struct crictl_terminal *t, struct err *err);
/* As it was. Also for one that was never opened ({ .signals = -1 }). */
void crictl_terminal_close(struct crictl_terminal *t);
/* False when it has none. */
bool crictl_terminal_size(unsigned *ret_columns, unsigned *ret_rows);
/* (suspends) The next signal. SIGWINCH: the size has changed. */
int crictl_terminal_signal(struct crictl_terminal *t, int *ret_signal, struct err *err);

/* ---- leaving ---- */

/* Ctrl-P Ctrl-Q, also when they come in two pieces. */
struct crictl_detach {
	bool half;
};

/*
 * What of the piece is meant for the process, in out, which has room for one byte more than the piece. True when the sequence was
 * found: all before it is in *ret, and the rest is to be dropped.
 */
bool crictl_detach_scan(struct crictl_detach *d, str piece, char *out, str *ret);

#endif
