/* crictl_remote: the way to a runtime's streaming server. CRI answers with a URL; behind it is SPDY/3.1, or a WebSocket. */
#ifndef C8S_CMD_CRICTL_REMOTE_H
#define C8S_CMD_CRICTL_REMOTE_H

#include "client/rexec.h"
#include "cmd/crictl.h"
#include "net/http_client.h"
#include "net/spdy.h"
#include "net/websocket.h"

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

/* (suspends) A session for exec or attach. */
int crictl_remote_open(struct crictl_dialer *d, const struct rexec_wants *wants, struct rexec **ret, struct err *err);

#endif
