/* Calls about sandboxes. */
#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "runtime/container.h"
#include "runtime/cri.h"
#include "runtime/sandbox.h"
#include "runtime/stream.h"

static int find(struct runtime *r, str id, struct sandbox **ret, struct err *err)
{
	int code = sandbox_find(r, id, ret, err);

	return code < 0 ? err_wrap(err, code, "an error occurred when try to find sandbox \"" STR_FMT "\"", STR_ARG(id)) : 0;
}

int cri_run_pod_sandbox(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	char id[RUNTIME_ID + 1] = "";
	int code = sandbox_run(r, val_get(request, config), val_str(request, runtimeHandler), id, err);

	if (code == 0)
		*ret = OBJECT(a, F(podSandboxId, VAL_STR(arena_str(a, str_of(id)))));
	return code;
}

int cri_stop_pod_sandbox(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;

	(void)a, (void)ret;
	/* One that is not there is stopped. */
	return sandbox_find(r, val_str(request, podSandboxId), &s, NULL) < 0 ? 0 : sandbox_stop(s, err);
}

int cri_remove_pod_sandbox(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;

	(void)a, (void)ret;
	return sandbox_find(r, val_str(request, podSandboxId), &s, NULL) < 0 ? 0 : sandbox_remove(s, err);
}

static struct val info_of(struct sandbox *s, struct arena *a)
{
	struct val config = cri_json(a, sandbox_cri(s), TYPE(cri_v1, PodSandboxConfig));
	const char *netns = sandbox_netns(s, a);
	struct val_builder b = val_builder(a);
	struct val rest = OBJECT(a, F(pid, val_of_int(s->pid)), F(processStatus, s->pid ? VAL_LIT("running") : VAL_LIT("deleted")),
				 F(runtimeHandler, val_get(s->record->val, runtimeHandler)),
				 F(netNSPath, netns ? VAL_STR(str_of(netns)) : VAL_EMPTY),
				 F(cniResult, s->network ? s->network->val : VAL_EMPTY));
	str json = val_as_str(cri_json(a, rest, NULL));
	/* The configuration has its own form of JSON: put into the other. */
	str whole = arena_printf(a, STR_FMT ",\"config\":" STR_FMT "}", STR_ARG(str_head(json, json.n - 1)), STR_ARG(val_as_str(config)));

	val_add_member(&b, atom_make(a, STR("info")), VAL_STR(whole));
	return val_end_object(&b);
}

int cri_pod_sandbox_status(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;
	struct val_builder containers = val_builder(a);
	int code = find(r, val_str(request, podSandboxId), &s, err);

	if (code < 0)
		return code;
	/* A kubelet that follows events takes an answer with a timestamp for all there is: without these, for a pod without containers. */
	LIST_EACH(struct container, c, &s->containers, in_sandbox)
		val_add_item(&containers, container_status(c, a));
	/* The answer outlives the reference. */
	*ret = val_copy(a, OBJECT(a, F(status, sandbox_status(s, a)),
				  F(info, val_bool(request, verbose) ? info_of(s, a) : VAL_EMPTY),
				  F(containersStatuses, val_end_list(&containers)), F(timestamp, val_of_int(clock_wall_ns()))));
	return 0;
}

static struct val list(struct runtime *r, struct arena *a, struct val filter)
{
	struct val wanted = val_get(filter, state);
	str id = val_str(filter, id);
	struct val_builder b = val_builder(a);

	LIST_EACH(struct sandbox, s, &r->sandboxes, link) {
		bool ready = !runtime_is(val_get(wanted, state), "SANDBOX_NOTREADY");
		if ((id.n && !str_starts(str_of(s->id), id)) || (!val_is_nil(wanted) && ready != (s->state == SANDBOX_READY)) ||
		    !cri_labels_match(val_get(sandbox_cri(s), labels), val_get(filter, labelSelector)))
			continue;
		val_add_item(&b, sandbox_summary(s, a));
	}
	/* Sandboxes may go while the answer is on its way. */
	return val_copy(a, val_end_list(&b));
}

int cri_list_pod_sandbox(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)err;
	*ret = OBJECT(a, F(items, list(r, a, val_get(request, filter))));
	return 0;
}

int cri_stream_pod_sandboxes(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	return cri_send_list(s, A_podSandboxes, list(r, s->arena, val_get(request, filter)), err);
}

int cri_update_pod_sandbox_resources(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;
	struct val overhead = val_get(request, overhead), resources = val_get(request, resources);
	int code = sandbox_find(r, val_str(request, podSandboxId), &s, err);

	(void)a, (void)ret;
	if (code < 0)
		return err_wrap(err, code, "failed to find sandbox");
	if (s->state != SANDBOX_READY)
		return err_set(err, ERR_INTERNAL, "sandbox container \"%s\" is not running", s->id);
	if (!val_is_nil(overhead)) {
		frozen_unref(s->overhead);
		s->overhead = val_freeze(overhead);
	}
	if (!val_is_nil(resources)) {
		frozen_unref(s->resources);
		s->resources = val_freeze(resources);
	}
	return sandbox_save(s, err);
}

int cri_port_forward(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;
	str id = val_str(request, podSandboxId), url;
	int code = sandbox_find(r, id, &s, err);

	if (code < 0)
		return err_wrap(err, code, "failed to find sandbox \"" STR_FMT "\"", STR_ARG(id));
	if (s->state != SANDBOX_READY)
		return err_set(err, ERR_INTERNAL, "sandbox container is not running");
	struct stream_request q = { .kind = STREAM_PORT_FORWARD, .id = str_of(s->id), .ports = val_get(request, port) };
	if ((code = stream_url(r->streams, &q, a, &url, err)) == 0)
		*ret = OBJECT(a, F(url, VAL_STR(url)));
	return code;
}
