/*
 * crictl_remote: the client's side of exec and attach, and of the way to a runtime's streaming server. CRI answers with a URL;
 * behind it is SPDY/3.1 with a stream per channel (v4.channel.k8s.io), or a WebSocket whose messages begin with the channel's number
 * (v5.channel.k8s.io, or v4, which cannot end the input).
 */
#ifndef C8S_CMD_CRICTL_REMOTE_H
#define C8S_CMD_CRICTL_REMOTE_H

#include "cmd/crictl.h"
#include "net/http_client.h"
#include "net/spdy.h"
#include "net/websocket.h"

/* ---- the way ---- */

/* How to reach a streaming server. */
struct crictl_dialer {
	struct http_client *http;
	struct tls_context *tls;
	bool websocket;
	const char *url;
};

/* url: as the runtime gave it. -ERR_BAD_REQUEST: it gave none, or one that is not for us; or the options are wrong. */
int crictl_dialer_init(struct crictl_dialer *d, struct crictl *c, str url, struct err *err);
/* (suspends) Nothing may be open any more. */
void crictl_dialer_done(struct crictl_dialer *d);
/* (suspends) protocols: NULL-ended; one of them is in *ret_protocol afterwards. */
int crictl_dial_spdy(struct crictl_dialer *d, const char *const *protocols, struct spdy **ret, const char **ret_protocol, struct err *err);
int crictl_dial_ws(struct crictl_dialer *d, const char *const *protocols, struct ws **ret, const char **ret_protocol, struct err *err);

/* ---- exec and attach ---- */

struct crictl_remote;

struct crictl_remote_wants {
	bool in, err, terminal; /* the output is always wanted */
	/* (may suspend) A piece of output: fd is 1 or 2. An error ends the session with it. */
	int (*write)(void *arg, int fd, str piece, struct err *err);
	void *arg;
};

/* (suspends) */
int crictl_remote_open(struct crictl_dialer *d, const struct crictl_remote_wants *wants, struct crictl_remote **ret, struct err *err);
/* (suspends) Takes NULL. No other fiber may be using it. */
void crictl_remote_free(struct crictl_remote *r);
void crictl_remote_freep(struct crictl_remote **r);

/* (suspends) Input. -ERR_GONE when nobody takes it any more. */
int crictl_remote_write(struct crictl_remote *r, str data, struct err *err);
/* (suspends) There is no more input. */
int crictl_remote_close_input(struct crictl_remote *r, struct err *err);
/* (suspends) The size of the terminal. */
int crictl_remote_resize(struct crictl_remote *r, unsigned columns, unsigned rows, struct err *err);
/*
 * (suspends) Passes on output until the process has ended, and gives its exit code. -ERR_x when it could not be run, or the session ended
 * without saying how it ended.
 */
int crictl_remote_run(struct crictl_remote *r, int *ret_code, struct err *err);

#endif
