/* Calls about containers. */
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "runtime/cri.h"
#include "runtime/stream.h"

enum { CONFIG_MAX = 16 << 20, EXEC_ANSWER_MAX = 16 << 20 };

static int find(struct runtime *r, str id, struct container **ret, struct err *err)
{
	int code = container_find(r, id, ret, err);

	return code < 0 ? err_wrap(err, code, "an error occurred when try to find container \"" STR_FMT "\"", STR_ARG(id)) : 0;
}

int cri_create_container(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(sandbox_unrefp) struct sandbox *s = NULL;
	char id[RUNTIME_ID + 1] = "";
	str pod = val_str(request, podSandboxId);
	int code = sandbox_find(r, pod, &s, err);

	if (code < 0)
		return err_wrap(err, code, "failed to find sandbox id \"" STR_FMT "\"", STR_ARG(pod));
	code = container_create(s, val_get(request, config), val_get(request, sandboxConfig), id, err);
	if (code == 0)
		*ret = OBJECT(a, F(containerId, VAL_STR(arena_str(a, str_of(id)))));
	return code;
}

int cri_start_container(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	int code = find(r, val_str(request, containerId), &c, err);

	(void)a, (void)ret;
	return code < 0 ? code : container_start(c, err);
}

int cri_stop_container(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;

	(void)a, (void)ret;
	/* One that is not there is stopped. */
	if (container_find(r, val_str(request, containerId), &c, NULL) < 0)
		return 0;
	return container_stop(c, val_int(request, timeout), err);
}

int cri_remove_container(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;

	(void)a, (void)ret;
	return container_find(r, val_str(request, containerId), &c, NULL) < 0 ? 0 : container_remove(c, err);
}

static struct val list(struct runtime *r, struct arena *a, struct val filter)
{
	struct val wanted = val_get(filter, state);
	str id = val_str(filter, id), pod = val_str(filter, podSandboxId), state = val_str(wanted, state);
	struct val_builder b = val_builder(a);

	state = state.n ? state : str_of(container_state_name(CONTAINER_CREATED));
	LIST_EACH(struct container, c, &r->containers, link) {
		if ((id.n && !str_starts(str_of(c->id), id)) || (pod.n && !str_starts(str_of(c->sandbox->id), pod)) ||
		    (!val_is_nil(wanted) && !str_eq(state, str_of(container_state_name(container_state(c))))) ||
		    !cri_labels_match(val_get(container_config(c), labels), val_get(filter, labelSelector)))
			continue;
		val_add_item(&b, container_summary(c, a));
	}
	/* Containers may go while the answer is on its way. */
	return val_copy(a, val_end_list(&b));
}

int cri_list_containers(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)err;
	*ret = OBJECT(a, F(containers, list(r, a, val_get(request, filter))));
	return 0;
}

int cri_stream_containers(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	return cri_send_list(s, A_containers, list(r, s->arena, val_get(request, filter)), err);
}

static struct val info_of(struct container *c, struct arena *a)
{
	CLEANUP(buf_done) struct buf spec = BUF_INIT(CONFIG_MAX);
	struct val config = cri_json(a, container_config(c), TYPE(cri_v1, ContainerConfig));
	struct val_builder b = val_builder(a);
	struct val rest = OBJECT(a, F(sandboxID, VAL_STR(str_of(c->sandbox->id))), F(pid, val_of_int(c->pid)),
				 F(removing, val_of_bool(c->removing)), F(snapshotKey, VAL_STR(str_of(c->id))),
				 F(snapshotter, VAL_LIT("overlayfs")), F(runtimeType, VAL_LIT("c8s")));
	str json = val_as_str(cri_json(a, rest, NULL));

	if (file_read(runtime_text(a, "%s/config.json", container_folder(c, a)), &spec, NULL) < 0)
		buf_add(&spec, STR("null"));
	/* Both have their own form of JSON: put into the other. */
	str whole = arena_printf(a, STR_FMT ",\"config\":" STR_FMT ",\"runtimeSpec\":%s}", STR_ARG(str_head(json, json.n - 1)),
				 STR_ARG(val_as_str(config)), spec.p);
	val_add_member(&b, atom_make(a, STR("info")), VAL_STR(whole));
	return val_end_object(&b);
}

int cri_container_status(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	int code = find(r, val_str(request, containerId), &c, err);

	if (code < 0)
		return code;
	*ret = val_copy(a, OBJECT(a, F(status, container_status(c, a)),
				  F(info, val_bool(request, verbose) ? info_of(c, a) : VAL_EMPTY)));
	return 0;
}

int cri_update_container_resources(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	str id = val_str(request, containerId);
	int code = container_find(r, id, &c, err);

	(void)a, (void)ret;
	if (code < 0)
		return err_wrap(err, code, "failed to find container");
	return container_update(c, val_get(request, linux), err);
}

int cri_reopen_container_log(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	int code = find(r, val_str(request, containerId), &c, err);

	(void)a, (void)ret;
	return code < 0 ? code : container_reopen_log(c, err);
}

/* As containerd has it: what does not fit into an answer is an error, so that nobody takes half of the output for all. */
static int check_output(const struct exec_output *o, struct err *err)
{
	if (o->out.n + o->err.n >= EXEC_ANSWER_MAX) /* there is a little around it */
		return err_set(err, ERR_TOO_LARGE, "grpc: trying to send message larger than max (%zu vs. %d)", o->out.n + o->err.n,
			       EXEC_ANSWER_MAX);
	return 0;
}

int cri_exec_sync(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	CLEANUP(exec_output_done) struct exec_output o = { 0 };
	str id = val_str(request, containerId);
	int code = container_find(r, id, &c, err);

	if (code < 0)
		return err_wrap(err, code, "failed to exec in container: failed to find container \"" STR_FMT "\" in store", STR_ARG(id));
	if ((code = exec_sync(c, val_get(request, cmd), val_int(request, timeout), &o, err)) < 0)
		return err_wrap(err, code, "failed to exec in container");
	if ((code = check_output(&o, err)) < 0)
		return code;
	*ret = OBJECT(a, F(stdout, VAL_STR(arena_str(a, buf_str(&o.out)))), F(stderr, VAL_STR(arena_str(a, buf_str(&o.err)))),
		      F(exitCode, val_of_int(o.exit_code)));
	return 0;
}

/* ---- streams ---- */

static int url(struct runtime *r, struct arena *a, struct val request, enum stream_kind kind, struct val *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *c = NULL;
	struct stream_request q = { .kind = kind, .args = val_get(request, cmd), .terminal = val_bool(request, tty),
				    .in = val_bool(request, stdin), .out = val_bool(request, stdout),
				    .err = val_bool(request, stderr) };
	str text;
	int code = container_find(r, val_str(request, containerId), &c, err);

	if (code < 0)
		return err_wrap(err, code, "failed to find container \"" STR_FMT "\" in store", STR_ARG(val_str(request, containerId)));
	if (container_state(c) != CONTAINER_RUNNING)
		return err_set(err, ERR_INTERNAL, "container is in %s state", container_state_name(container_state(c)));
	q.id = str_of(c->id);
	if ((code = stream_url(r->streams, &q, a, &text, err)) == 0)
		*ret = OBJECT(a, F(url, VAL_STR(text)));
	return code;
}

int cri_exec(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	return url(r, a, request, STREAM_EXEC, ret, err);
}

int cri_attach(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	return url(r, a, request, STREAM_ATTACH, ret, err);
}

int cri_checkpoint_container(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)r, (void)a, (void)request, (void)ret;
	return err_set(err, ERR_METHOD_NOT_ALLOWED, "CheckpointContainer is not supported");
}
