/* One try of a probe or hook. */
#ifndef C8S_KUBELET_PROBE_PRIV_H
#define C8S_KUBELET_PROBE_PRIV_H

#include "kubelet/probe.h"

enum { PROBE_OUTPUT_MAX = 10 << 10 };

enum check_result { CHECK_UNKNOWN, CHECK_SUCCESS, CHECK_WARNING, CHECK_FAILURE };

struct probe_check {
	struct cri *cri;
	struct arena *arena;
	struct val pod, container, handler;
	str container_id, pod_ip;
	int64_t timeout_ms;           /* 0: none */
	bool hook;                    /* of a container's life, not a probe */
	str output;                   /* filled; in the arena */
};

/*
 * (suspends) 0 and what it found. < 0 when it could not find out, and err says why; *ret is then what that counts as in messages.
 * -ERR_CANCELED only when the fiber was canceled.
 */
int probe_check(struct probe_check *c, enum check_result *ret, struct err *err);
int probe_check_http(struct probe_check *c, enum check_result *ret, struct err *err);

/* The number of a port that may be a name of the container's. -ERR_INVALID with Go's words. */
int probe_port(struct val port, struct val container, uint16_t *ret, struct err *err);
/* The host of an httpGet or tcpSocket: the pod's address unless it names one. -ERR_INVALID */
int probe_host(struct probe_check *c, struct val action, str *ret, struct err *err);
/* "10.0.0.1:80", "[::1]:80" */
str probe_address(struct arena *a, str host, uint16_t port);

#endif
