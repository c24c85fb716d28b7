/*
 * cri: the calls of CRI v1. A call takes the request's tree and answers with one, as api/cri.api has them; cri_server.c does the rest.
 *
 *	cri_status.c       Version, Status, RuntimeConfig ...    cri_image.c     images
 *	cri_sandbox.c      sandboxes                             cri_container.c containers
 *	stats.c, metrics.c figures                               events.c        GetContainerEvents
 */
#ifndef C8S_RUNTIME_CRI_H
#define C8S_RUNTIME_CRI_H

#include "codec/schema.h"
#include "net/grpc_server.h"
#include "runtime/runtime_priv.h"

/* (suspends) All in the arena of the call. */
typedef int cri_call(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err);
/* (suspends) One that answers with many messages: cri_send each. */
struct cri_stream {
	struct grpc_server_call *call;
	const struct rpc *rpc;
	struct arena *arena;
	/* Takes the messages instead of a call, for callers in the same process. */
	int (*sink)(void *arg, struct val message, struct err *err);
	void *sink_arg;
};
typedef int cri_stream_call(struct runtime *r, struct cri_stream *s, struct val request, struct err *err);
int cri_send(struct cri_stream *s, struct val message, struct err *err);
/* A list in messages of some of its items each, as member `key`. */
int cri_send_list(struct cri_stream *s, atom key, struct val list, struct err *err);

struct cri_method {
	const struct rpc *rpc;
	cri_call *call;
	cri_stream_call *stream;
};

/* The method of a call; NULL: none of ours. */
const struct cri_method *cri_method_find(const struct rpc *rpc);
/* The server of all methods, not listening yet. */
struct grpc_server *cri_server_new(struct runtime *r) NONNULL_RESULT;

cri_call cri_version, cri_status, cri_runtime_config, cri_update_runtime_config;
cri_call cri_run_pod_sandbox, cri_stop_pod_sandbox, cri_remove_pod_sandbox, cri_pod_sandbox_status, cri_list_pod_sandbox,
	cri_update_pod_sandbox_resources;
cri_call cri_create_container, cri_start_container, cri_stop_container, cri_remove_container, cri_list_containers,
	cri_container_status, cri_update_container_resources, cri_reopen_container_log, cri_exec_sync, cri_exec, cri_attach,
	cri_port_forward, cri_checkpoint_container;
cri_call cri_container_stats, cri_list_container_stats, cri_pod_sandbox_stats, cri_list_pod_sandbox_stats,
	cri_list_metric_descriptors, cri_list_pod_sandbox_metrics;
cri_call cri_list_images, cri_image_status, cri_pull_image, cri_remove_image, cri_image_fs_info;
cri_stream_call cri_stream_pod_sandboxes, cri_stream_containers, cri_stream_container_stats, cri_stream_pod_sandbox_stats,
	cri_stream_pod_sandbox_metrics, cri_stream_images, cri_get_container_events;

/* Whether all pairs of the selector are in labels. */
bool cri_labels_match(struct val labels, struct val selector);
/* The JSON of a tree of a type (NULL: free) as a string, for verbose answers. */
struct val cri_json(struct arena *a, struct val v, const struct type *type);

#endif
