/*
 * cri_client: CRI v1 as calls that suspend, to a runtime behind a socket (containerd, c8s runtime) or to ours in the same process. Requests
 * and answers are trees of the messages in api/cri.api.
 *
 *	cri_client.c         over gRPC            cri_client_inside.c    in this process
 */
#ifndef C8S_KUBELET_CRI_CLIENT_H
#define C8S_KUBELET_CRI_CLIENT_H

#include "codec/schema.h"
#include "codec/val.h"

struct cri;
struct runtime;

/*
 * "unix:///run/containerd/containerd.sock" (or just the path); image_endpoint NULL: the same. Connects at the first call, and again when
 * it broke. -ERR_BAD_REQUEST for what is no endpoint.
 */
int cri_open(const char *endpoint, const char *image_endpoint, struct cri **ret, struct err *err);
/* Ours, in this process. */
struct cri *cri_inside(struct runtime *r) NONNULL_RESULT;
/* (suspends) No call may be under way. NULL is fine. */
void cri_close(struct cri *c);

/* (suspends) One call: cri_ask(c, &rpc_RuntimeService_Version, a, request, 0, &reply, err). timeout_ms 0: 2 minutes, as
 * runtimeRequestTimeout; below 0: none. Errors carry the runtime's message; codes of gRPC become ours (NotFound -> -ERR_NOT_FOUND ...). */
int cri_ask(struct cri *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms, struct val *ret,
	    struct err *err);
/* An error of cri_ask as kubelets show it: rpc error: code = NotFound desc = ... In the arena. */
str cri_error_text(struct arena *a, const struct err *err);
/* Whether that text says that the runtime has no such call. */
bool cri_text_is_unknown_call(str text);

/*
 * (suspends, until canceled or broken) Events of containers; each is given to on_event, which must not suspend; it lives as long as that
 * call. -ERR_UNAVAILABLE when the runtime has none of that (containerd 1.6): the kubelet then lists every second. -ERR_GONE when it
 * ended or cannot be reached at the moment: events may have been missed, follow again.
 */
int cri_follow_events(struct cri *c, void (*on_event)(struct val event, void *arg), void *arg, struct err *err);

#endif
