/*
 * rexec: the client's side of exec and attach. Behind the connection is SPDY/3.1 with a stream per channel (v4.channel.k8s.io), or a
 * WebSocket whose messages begin with the channel's number (v5.channel.k8s.io, or v4, which cannot end the input). What is said there
 * is the same with an API server, a kubelet and a runtime.
 */
#ifndef C8S_CLIENT_REXEC_H
#define C8S_CLIENT_REXEC_H

#include "base/err.h"

struct spdy;
struct ws;
struct rexec;

/* What to offer, NULL-ended. */
extern const char *const rexec_spdy_protocols[], *const rexec_ws_protocols[];

struct rexec_wants {
	bool in, err, terminal; /* the output is always wanted */
	/* (may suspend) A piece of output: fd is 1 or 2. An error ends the session with it. */
	int (*write)(void *arg, int fd, str piece, struct err *err);
	void *arg;
};

/* (suspends) Takes the session over, also when it fails. */
int rexec_of_spdy(struct spdy *session, const struct rexec_wants *wants, struct rexec **ret, struct err *err);
/* Takes it over; protocol is one of rexec_ws_protocols. */
struct rexec *rexec_of_ws(struct ws *ws, const char *protocol, const struct rexec_wants *wants) NONNULL_RESULT;
/* (suspends) Takes NULL. No other fiber may be using it. */
void rexec_free(struct rexec *r);
void rexec_freep(struct rexec **r);

/* (suspends) Input. -ERR_GONE when nobody takes it any more. */
int rexec_write(struct rexec *r, str data, struct err *err);
/* (suspends) There is no more input. */
int rexec_close_input(struct rexec *r, struct err *err);
/* (suspends) The size of the terminal. */
int rexec_resize(struct rexec *r, unsigned columns, unsigned rows, struct err *err);
/*
 * (suspends) Passes on output until the process has ended, and gives its exit code. -ERR_x when it could not be run, or the session ended
 * without saying how it ended.
 */
int rexec_run(struct rexec *r, int *ret_code, struct err *err);

/* ---- with our own input, output and terminal ---- */

struct rexec_talk {
	bool in, tty;
	bool detach_keys;       /* Ctrl-P Ctrl-Q leave a terminal */
	/* (suspends) Opens the session. */
	int (*open)(void *arg, const struct rexec_wants *wants, struct rexec **ret, struct err *err);
	void *arg;
};

/* (suspends) Until the process has ended or was left (then the code is 0), or a signal would have ended us (then it is 128 and that). */
int rexec_talk(const struct rexec_talk *t, int *ret_code, struct err *err);

#endif
