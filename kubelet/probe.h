/*
 * probe: startup, liveness and readiness of containers. A fiber per probe asks as often as it should and counts; what it found out is
 * read from here, and changes are told.
 *
 *	probe.c          when to ask, and what the answers mean
 *	probe_check.c    asking: exec, tcpSocket, grpc        probe_http.c    httpGet
 *
 * A container's clock is that of its start: readiness is asked at once, and again within a second or two until it is ready (or all that
 * after initialDelaySeconds only), liveness and startup a period later, so that a container has failureThreshold periods before it is
 * ended. Readiness is asked at once when the startup probe has succeeded.
 */
#ifndef C8S_KUBELET_PROBE_H
#define C8S_KUBELET_PROBE_H

#include "base/buf.h"
#include "kubelet/cri_client.h"
#include "kubelet/kubelet.h"

struct probes;

enum probe_kind { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS };
enum probe_result { PROBE_UNKNOWN, PROBE_SUCCESS, PROBE_FAILURE };

struct probes_options {
	struct cri *cri;              /* for exec */
	/* A result that counts has changed. Must not suspend. */
	void (*changed)(str pod_uid, str container, enum probe_kind kind, enum probe_result result, void *arg);
	/* For the Unhealthy and ProbeWarning events: "Readiness probe failed: ...". Must not suspend. */
	void (*event)(struct val pod, str container, bool warning, str reason, str message, void *arg);
	void *arg;
};

struct probes *probes_new(const struct probes_options *o) NONNULL_RESULT;
void probes_free(struct probes *p); /* (suspends) */

/*
 * A container runs (again): its probes begin anew, those of an earlier container of that name end. To be called for containers
 * without probes, too. The pod is frozen_ref'd, the rest copied. started_ns: as clock_wall_ns counts. A container that ran already before
 * this kubelet did keeps what the pod's status says of it until its probes say otherwise.
 */
int probes_begin(struct probes *p, struct frozen *pod, struct val container, str container_id, int64_t started_ns, str pod_ip,
		 struct err *err);
/* One container, or ("") all of the pod: nothing more is told about it. */
void probes_end(struct probes *p, str pod_uid, str container);
/* The pod is being ended: startup and liveness are not asked for any more, readiness still is. */
void probes_terminating(struct probes *p, str pod_uid);
enum probe_result probes_result(const struct probes *p, str pod_uid, str container, enum probe_kind kind);
/* As statuses have it: started (startup succeeded, or there is none and it runs), ready. */
bool probes_started(const struct probes *p, str pod_uid, str container);
bool probes_ready(const struct probes *p, str pod_uid, str container);

/* prober_probe_total of all that are probed. */
void probes_metrics(const struct probes *p, struct buf *text);

/* Seconds that a container gets to stop when this probe (startup or liveness) failed: the probe's own, or the pod's. */
int64_t probe_grace_s(struct val pod, struct val container, enum probe_kind kind);

/*
 * (suspends) One try of a probe. output is bounded (10 KiB) and in the arena. PROBE_UNKNOWN with err set: it could not be told. err stays
 * clear otherwise.
 */
enum probe_result probe_once(struct cri *cri, struct arena *a, struct val pod, struct val container, struct val handler, str container_id,
			     str pod_ip, int64_t timeout_ms, str *ret_output, struct err *err);
/*
 * (suspends) The same for a lifecycle hook (exec, httpGet, sleep): any answer to httpGet will do, https falls back to http, commands
 * are taken as they are. timeout_ms 0: none.
 */
enum probe_result probe_hook(struct cri *cri, struct arena *a, struct val pod, struct val container, struct val handler, str container_id,
			     str pod_ip, int64_t timeout_ms, str *ret_output, struct err *err);

#endif
