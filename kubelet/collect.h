/* collect: what nobody needs any more is removed: dead containers and sandboxes, logs of gone pods; and logs that grow too large are rotated. */
#ifndef C8S_KUBELET_COLLECT_H
#define C8S_KUBELET_COLLECT_H

#include "kubelet/cri_client.h"
#include "kubelet/kubelet.h"

struct collect_options {
	const struct kubelet_node *node;
	struct cri *cri;
	int64_t log_max_bytes;        /* containerLogMaxSize; 0: none */
	int log_max_files;            /* containerLogMaxFiles */
	int64_t log_look_ms;          /* containerLogMonitorInterval; 0: 10 s */
	int per_pod;                  /* maximum-dead-containers-per-container: 1 */
	int total;                    /* maximum-dead-containers: -1 */
	int64_t min_age_ns;           /* minimum-container-ttl-duration */
	bool (*deleted)(void *arg, str pod_uid); /* the pod is gone from its source: nothing of it need be kept */
	bool (*ended)(void *arg, str pod_uid);   /* nothing of it will start again */
	void *arg;
};

/* (suspends) Dead containers beyond those to keep, sandboxes that are not ready and have none, log folders and links of gone pods. */
int collect_containers(const struct collect_options *o, bool all_dead, struct err *err);
/* (suspends) Logs: 0.log becomes 0.log.20261115-101112, older ones .gz, the oldest go; the runtime opens it anew. */
int collect_logs(const struct collect_options *o, struct err *err);
/* (suspends, until canceled) Containers every minute, logs as often as log_look_ms says. */
int collect_run(const struct collect_options *o, struct err *err);

#endif
