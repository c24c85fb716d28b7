/* The methods of CRI: a request's bytes become a tree by the schema, and the answer's tree becomes bytes. */
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "runtime/cri.h"

enum { MESSAGE_MAX = 64 << 20, LIST_PIECE = 100 };

#define UNARY(service, name, fn) { &rpc_##service##_##name, fn, NULL }
#define STREAM(service, name, fn) { &rpc_##service##_##name, NULL, fn }

static const struct cri_method methods[] = {
	UNARY(RuntimeService, Version, cri_version),
	UNARY(RuntimeService, RunPodSandbox, cri_run_pod_sandbox),
	UNARY(RuntimeService, StopPodSandbox, cri_stop_pod_sandbox),
	UNARY(RuntimeService, RemovePodSandbox, cri_remove_pod_sandbox),
	UNARY(RuntimeService, PodSandboxStatus, cri_pod_sandbox_status),
	UNARY(RuntimeService, ListPodSandbox, cri_list_pod_sandbox),
	STREAM(RuntimeService, StreamPodSandboxes, cri_stream_pod_sandboxes),
	UNARY(RuntimeService, CreateContainer, cri_create_container),
	UNARY(RuntimeService, StartContainer, cri_start_container),
	UNARY(RuntimeService, StopContainer, cri_stop_container),
	UNARY(RuntimeService, RemoveContainer, cri_remove_container),
	UNARY(RuntimeService, ListContainers, cri_list_containers),
	STREAM(RuntimeService, StreamContainers, cri_stream_containers),
	UNARY(RuntimeService, ContainerStatus, cri_container_status),
	UNARY(RuntimeService, UpdateContainerResources, cri_update_container_resources),
	UNARY(RuntimeService, ReopenContainerLog, cri_reopen_container_log),
	UNARY(RuntimeService, ExecSync, cri_exec_sync),
	UNARY(RuntimeService, Exec, cri_exec),
	UNARY(RuntimeService, Attach, cri_attach),
	UNARY(RuntimeService, PortForward, cri_port_forward),
	UNARY(RuntimeService, ContainerStats, cri_container_stats),
	UNARY(RuntimeService, ListContainerStats, cri_list_container_stats),
	STREAM(RuntimeService, StreamContainerStats, cri_stream_container_stats),
	UNARY(RuntimeService, PodSandboxStats, cri_pod_sandbox_stats),
	UNARY(RuntimeService, ListPodSandboxStats, cri_list_pod_sandbox_stats),
	STREAM(RuntimeService, StreamPodSandboxStats, cri_stream_pod_sandbox_stats),
	UNARY(RuntimeService, UpdateRuntimeConfig, cri_update_runtime_config),
	UNARY(RuntimeService, Status, cri_status),
	UNARY(RuntimeService, CheckpointContainer, cri_checkpoint_container),
	STREAM(RuntimeService, GetContainerEvents, cri_get_container_events),
	UNARY(RuntimeService, ListMetricDescriptors, cri_list_metric_descriptors),
	UNARY(RuntimeService, ListPodSandboxMetrics, cri_list_pod_sandbox_metrics),
	STREAM(RuntimeService, StreamPodSandboxMetrics, cri_stream_pod_sandbox_metrics),
	UNARY(RuntimeService, RuntimeConfig, cri_runtime_config),
	UNARY(RuntimeService, UpdatePodSandboxResources, cri_update_pod_sandbox_resources),
	UNARY(ImageService, ListImages, cri_list_images),
	STREAM(ImageService, StreamImages, cri_stream_images),
	UNARY(ImageService, ImageStatus, cri_image_status),
	UNARY(ImageService, PullImage, cri_pull_image),
	UNARY(ImageService, RemoveImage, cri_remove_image),
	UNARY(ImageService, ImageFsInfo, cri_image_fs_info),
};

static int reply(struct grpc_server_call *call, const struct rpc *rpc, struct val answer, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	int r = proto_encode(&b, answer, rpc->response, err);

	return r < 0 ? r : grpc_reply(call, buf_str(&b), err);
}

static int handle(struct grpc_server_call *call, str bytes, void *arg, struct err *err)
{
	struct runtime *r = arg;
	const struct cri_method *m = grpc_call_method(call)->user;
	struct arena *a = grpc_call_arena(call);
	struct val request, answer = VAL_EMPTY_OBJECT;
	int code = proto_decode(a, bytes, m->rpc->request, &request, err);

	if (code < 0)
		return code;
	if (m->stream) {
		struct cri_stream s = { .call = call, .rpc = m->rpc, .arena = a };
		return m->stream(r, &s, request, err);
	}
	code = m->call(r, a, request, &answer, err);
	return code < 0 ? code : reply(call, m->rpc, answer, err);
}

const struct cri_method *cri_method_find(const struct rpc *rpc)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].rpc == rpc)
			return &methods[i];
	return NULL;
}

struct grpc_server *cri_server_new(struct runtime *r)
{
	static struct grpc_method table[ARRAY_LEN(methods)];
	struct grpc_server_options o = { .methods = table, .n_methods = ARRAY_LEN(table), .arg = r };

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		table[i] = (struct grpc_method){ methods[i].rpc->path, handle, methods[i].stream != NULL, &methods[i] };
	return grpc_server_new(&o);
}

int cri_send(struct cri_stream *s, struct val message, struct err *err)
{
	return s->sink ? s->sink(s->sink_arg, message, err) : reply(s->call, s->rpc, message, err);
}

int cri_send_list(struct cri_stream *s, atom key, struct val list, struct err *err)
{
	int r = 0;

	for (size_t at = 0; at < val_len(list) && r == 0; at += LIST_PIECE) {
		struct val piece = val_list(s->arena, list.items + at, MIN((size_t)LIST_PIECE, val_len(list) - at));
		struct member m = { key, piece };
		r = cri_send(s, val_object(s->arena, &m, 1), err);
	}
	return r;
}

bool cri_labels_match(struct val labels, struct val selector)
{
	VAL_EACH_MEMBER(m, selector)
		if (!str_eq(val_as_str(val_find(labels, atom_str(m->key))), val_as_str(m->val)))
			return false;
	return true;
}

struct val cri_json(struct arena *a, struct val v, const struct type *type)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
	struct json_encode_options o = { .type = type, .plain = true };

	if (json_encode(&b, v, &o, NULL) < 0)
		return VAL_LIT("{}");
	return VAL_STR(arena_str(a, buf_str(&b)));
}
