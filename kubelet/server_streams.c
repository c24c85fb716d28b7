/*
 * exec, attach and portForward: the runtime is asked for a URL, and the connection is passed on to it. Clients that speak WebSocket, where
 * runtimes only speak SPDY, are translated for as the API server does it for older kubelets: by the same code, which works on a request
 * of the API server, so one is put around the exchange.
 */
#include "apiserver/stream_proxy.h"
#include "base/clock.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/server_priv.h"
#include "net/websocket.h"

enum { PORTS_MAX = 1024, NO_TIMEOUT = -1 };

/* ---- the runtime's side of a pod ---- */

static struct val put_label(struct arena *a, struct val map, str key, str value)
{
	return val_put(a, map, atom_make(a, key), val_of_str(value));
}

static struct val labels_of(struct arena *a, struct val pod)
{
	struct val map = put_label(a, VAL_EMPTY_OBJECT, STR("io.kubernetes.pod.name"), val_str(pod, metadata, name));
	return put_label(a, map, STR("io.kubernetes.pod.namespace"), val_str(pod, metadata, namespace));
}

/* The newest of a list; VAL_NONE: it is empty. */
static struct val newest(struct val list)
{
	struct val best = VAL_EMPTY;

	VAL_EACH(one, list)
		if (!val_exists(best) || val_int(*one, createdAt) > val_int(best, createdAt))
			best = *one;
	return best;
}

/* (suspends) The id of a container that runs; empty: none does. */
static int running_container(struct kubelet_call *c, struct val pod, str name, str *ret, struct err *err)
{
	struct arena *a = c->arena;
	struct val labels = put_label(a, labels_of(a, pod), STR("io.kubernetes.container.name"), name), answer;
	struct val filter = OBJECT(a, F(state, OBJECT(a, F(state, VAL_LIT("CONTAINER_RUNNING")))), F(labelSelector, labels));
	int r = cri_ask(c->o->cri, &rpc_RuntimeService_ListContainers, a, OBJECT(a, F(filter, filter)), 0, &answer, err);

	if (r == 0)
		*ret = val_str(newest(val_get(answer, containers)), id);
	return r;
}

/* (suspends) */
static int ready_sandbox(struct kubelet_call *c, struct val pod, str *ret, struct err *err)
{
	struct arena *a = c->arena;
	struct val filter = OBJECT(a, F(state, OBJECT(a, F(state, VAL_LIT("SANDBOX_READY")))), F(labelSelector, labels_of(a, pod))), answer;
	int r = cri_ask(c->o->cri, &rpc_RuntimeService_ListPodSandbox, a, OBJECT(a, F(filter, filter)), 0, &answer, err);

	if (r == 0)
		*ret = val_str(newest(val_get(answer, items)), id);
	return r;
}

static str full_name(struct kubelet_call *c, struct val pod)
{
	str name = val_str(pod, metadata, name), namespace = val_str(pod, metadata, namespace);
	return arena_printf(c->arena, STR_FMT "_" STR_FMT, STR_ARG(name), STR_ARG(namespace));
}

/* The pod of the path; it was answered when there is none. */
static bool find_pod(struct kubelet_call *c, struct val *ret)
{
	*ret = call_pod(c);
	if (!val_exists(*ret))
		call_error(c, 404, "pod does not exist");
	return val_exists(*ret);
}

/* ---- passing on ---- */

static int failed(struct kubelet_call *c, struct request *q, int r, const struct err *err)
{
	if (r == 0 || r == -ERR_CANCELED || q->answer.kind == ANSWER_SENT)
		return 0;
	if (val_exists(q->failure))
		call_http_error(c, 500, val_str(q->failure, message));
	else if (r == -ERR_BAD_REQUEST)
		call_http_error(c, 400, err_str(err));
	return r;
}

enum passing { PASS_CONTAINER, PASS_PORTS };

/* (suspends, until it ends) */
static int pass_on(struct kubelet_call *c, struct val answer, enum passing kind, const struct translate_streams *want)
{
	CLEANUP(http_client_freep) struct http_client *client = http_client_new(&(struct http_client_options){ 0 });
	struct request *q = ARENA_NEW(c->arena, struct request);
	struct proxy_target target = { .client = client, .url = val_str(answer, url) };
	struct err err = ERR_INIT;

	q->http = c->x;
	q->arena = c->arena;
	q->method = c->x->method;
	q->path = c->path;
	if (kind == PASS_CONTAINER && translate_is_wanted(q))
		return failed(c, q, translate_handle(q, &target, want, &err), &err);
	if (kind == PASS_PORTS && proxy_is_tunnel(q))
		return failed(c, q, proxy_tunnel(q, &target, &err), &err);
	if (!proxy_is_upgrade(q)) {
		call_http_error(c, 500, STR("Upgrade request required"));
		return 0;
	}
	return failed(c, q, proxy_upgrade(q, &target, &err), &err);
}

static bool is_on(const struct kubelet_call *c, str name) { return str_eq(call_query(c, name), STR("1")); }

/* False: it was answered. */
static bool read_streams(struct kubelet_call *c, struct translate_streams *ret)
{
	*ret = (struct translate_streams){ .in = is_on(c, STR("input")), .out = is_on(c, STR("output")), .err = is_on(c, STR("error")),
					   .tty = is_on(c, STR("tty")) };
	if (ret->tty)
		ret->err = false;
	if (ret->in || ret->out || ret->err)
		return true;
	call_error(c, 400, "you must specify at least 1 of stdin, stdout, stderr");
	return false;
}

static str container_name(const struct kubelet_call *c) { return c->parts[c->n_parts - 1]; }

static struct val commands(const struct kubelet_call *c)
{
	struct val_builder b = val_builder(c->arena);

	for (size_t i = 0; i < c->query.n; i++)
		if (str_eq(c->query.params[i].key, STR("command")))
			val_add_item(&b, val_of_str(c->query.params[i].value));
	return val_end_list(&b);
}

static int runtime_failed(struct kubelet_call *c, int r, const struct err *err)
{
	if (r != -ERR_CANCELED)
		call_runtime_error(c, err);
	return 0;
}

int call_exec(struct kubelet_call *c)
{
	struct translate_streams s;
	struct err err = ERR_INIT;
	struct val pod, answer;
	str id = STR_NONE, name = call_quoted(c, container_name(c));

	if (!read_streams(c, &s) || !find_pod(c, &pod))
		return 0;
	int r = running_container(c, pod, container_name(c), &id, &err);
	if (r < 0)
		return runtime_failed(c, r, &err);
	if (!id.n) {
		call_error(c, 500, "container not found (" STR_FMT ")", STR_ARG(name));
		return 0;
	}
	struct val ask = OBJECT(c->arena, F(containerId, val_of_str(id)), F(cmd, commands(c)), F(tty, val_of_bool(s.tty)),
				F(stdin, val_of_bool(s.in)), F(stdout, val_of_bool(s.out)), F(stderr, val_of_bool(s.err)));
	if ((r = cri_ask(c->o->cri, &rpc_RuntimeService_Exec, c->arena, ask, 0, &answer, &err)) < 0)
		return runtime_failed(c, r, &err);
	return pass_on(c, answer, PASS_CONTAINER, &s);
}

/* A terminal cannot be given to a process that runs already: what the container has counts. */
int call_attach(struct kubelet_call *c)
{
	struct translate_streams s;
	struct err err = ERR_INIT;
	struct val pod, answer;
	str id = STR_NONE, name = container_name(c);

	if (!read_streams(c, &s) || !find_pod(c, &pod))
		return 0;
	int r = running_container(c, pod, name, &id, &err);
	if (r < 0)
		return runtime_failed(c, r, &err);
	str of = full_name(c, pod);
	struct val spec = container_spec_of(pod, name);
	if (!id.n || !val_exists(spec)) {
		call_error(c, 500, "container " STR_FMT " not found in pod " STR_FMT, STR_ARG(name), STR_ARG(of));
		return 0;
	}
	if (c->n_parts == 5 && !str_eq(c->parts[3], val_str(pod, metadata, uid))) {
		call_error(c, 500, "pod " STR_FMT " not found", STR_ARG(of));
		return 0;
	}
	struct val ask = OBJECT(c->arena, F(containerId, val_of_str(id)), F(stdin, val_of_bool(s.in)),
				F(tty, val_of_bool(val_bool(spec, tty))), F(stdout, val_of_bool(s.out)),
				F(stderr, val_of_bool(s.err)));
	if ((r = cri_ask(c->o->cri, &rpc_RuntimeService_Attach, c->arena, ask, 0, &answer, &err)) < 0)
		return runtime_failed(c, r, &err);
	return pass_on(c, answer, PASS_CONTAINER, &s);
}

/* ---- ports ---- */

/* One parameter: "80" or "80,443". False: it was answered. */
static bool add_ports(struct kubelet_call *c, str text, struct val_builder *b)
{
	str rest = text, one, quoted = call_quoted(c, text);
	int64_t port;
	bool more;

	if (!text.n) {
		call_error(c, 400, "query parameter \"port\" cannot be empty");
		return false;
	}
	do {
		more = str_cut(rest, ',', &one, &rest);
		bool number = str_to_i64(one, &port) && port >= 0;
		if (!number || port > UINT16_MAX || b->n == PORTS_MAX) {
			str name = call_quoted(c, one);
			call_error(c, 400, "unable to parse " STR_FMT " as a port: strconv.ParseUint: parsing " STR_FMT ": %s", STR_ARG(quoted),
				   STR_ARG(name), number ? "value out of range" : "invalid syntax");
			return false;
		}
		if (port < 1) {
			call_error(c, 400, "port " STR_FMT " must be > 0", STR_ARG(quoted));
			return false;
		}
		val_add_item(b, val_of_int(port));
	} while (more);
	return true;
}

/* Of WebSocket clients that name their ports in the query; others say them stream by stream. */
static bool read_ports(struct kubelet_call *c, struct val *ret)
{
	const struct http_exchange *x = c->x;
	struct request *q = ARENA_NEW(c->arena, struct request);
	struct val_builder b = val_builder(c->arena);
	bool any = false;

	q->http = c->x;
	*ret = VAL_EMPTY_LIST;
	if (!ws_is_upgrade(x->headers, x->n_headers) || proxy_is_tunnel(q))
		return true;
	for (size_t i = 0; i < c->query.n; i++) {
		if (!str_eq(c->query.params[i].key, STR("port")))
			continue;
		any = true;
		if (!add_ports(c, c->query.params[i].value, &b))
			return false;
	}
	if (!any)
		call_error(c, 400, "query parameter \"port\" is required");
	*ret = val_end_list(&b);
	return any;
}

int call_port_forward(struct kubelet_call *c)
{
	struct err err = ERR_INIT;
	struct val pod, ports, answer;
	str id = STR_NONE;

	if (!read_ports(c, &ports) || !find_pod(c, &pod))
		return 0;
	if (c->n_parts == 4 && !str_eq(c->parts[3], val_str(pod, metadata, uid))) {
		call_error(c, 404, "pod not found");
		return 0;
	}
	int r = ready_sandbox(c, pod, &id, &err);
	if (r < 0)
		return runtime_failed(c, r, &err);
	if (!id.n) {
		str name = call_quoted(c, full_name(c, pod));
		call_error(c, 500, "pod not found (" STR_FMT ")", STR_ARG(name));
		return 0;
	}
	struct val ask = OBJECT(c->arena, F(podSandboxId, val_of_str(id)), F(port, ports));
	if ((r = cri_ask(c->o->cri, &rpc_RuntimeService_PortForward, c->arena, ask, 0, &answer, &err)) < 0)
		return runtime_failed(c, r, &err);
	return pass_on(c, answer, PASS_PORTS, NULL);
}

/* ---- without streams ---- */

static struct val split_command(struct arena *a, str text)
{
	struct val_builder b = val_builder(a);
	str one;
	bool more = true;

	while (more) {
		more = str_cut(text, ' ', &one, &text);
		val_add_item(&b, val_of_str(one));
	}
	return val_end_list(&b);
}

/* 500 for whatever the runtime says. */
static int run_failed(struct kubelet_call *c, int r, const struct err *err)
{
	str text = cri_error_text(c->arena, err);

	if (r != -ERR_CANCELED)
		call_error(c, 500, STR_FMT, STR_ARG(text));
	return 0;
}

int call_run(struct kubelet_call *c)
{
	str command = call_query(c, STR("cmd")), id = STR_NONE, name = call_quoted(c, container_name(c));
	struct err err = ERR_INIT;
	struct val pod, answer;

	if (!find_pod(c, &pod))
		return 0;
	int r = running_container(c, pod, container_name(c), &id, &err);
	if (r < 0)
		return run_failed(c, r, &err);
	if (!id.n) {
		call_error(c, 500, "container not found (" STR_FMT ")", STR_ARG(name));
		return 0;
	}
	struct val ask = OBJECT(c->arena, F(containerId, val_of_str(id)), F(cmd, split_command(c->arena, command)));
	if ((r = cri_ask(c->o->cri, &rpc_RuntimeService_ExecSync, c->arena, ask, NO_TIMEOUT, &answer, &err)) < 0)
		return run_failed(c, r, &err);
	str out = val_str(answer, stdout), errors = val_str(answer, stderr);
	if (val_int(answer, exitCode) != 0)
		call_error(c, 500, "command '" STR_FMT "' exited with %lld: " STR_FMT, STR_ARG(command),
			   (long long)val_int(answer, exitCode), STR_ARG(errors));
	else
		call_answer(c, 200, STR("application/json"), arena_join(c->arena, out, errors));
	return 0;
}

/* <root>/checkpoints/checkpoint-<pod>_<namespace>-<container>-<time>.tar */
static str checkpoint_path(struct kubelet_call *c, struct val pod, struct err *err)
{
	str root = c->o->node->root, name = full_name(c, pod), container = container_name(c);
	str folder = arena_printf(c->arena, STR_FMT "/checkpoints", STR_ARG(root));
	char text[TIME_TEXT_MAX];
	str now = time_format((struct timestamp){ .seconds = clock_wall_ns() / NS_PER_S }, text);

	if (file_make_dirs(folder.p, 0700, err) < 0)
		return STR_NONE;
	return arena_printf(c->arena, STR_FMT "/checkpoint-" STR_FMT "-" STR_FMT "-" STR_FMT ".tar", STR_ARG(folder), STR_ARG(name),
			    STR_ARG(container), STR_ARG(now));
}

/* The last of several counts. False: it is no number. */
static bool read_timeout(const struct kubelet_call *c, int64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < c->query.n; i++)
		if (str_eq(c->query.params[i].key, STR("timeout")) && !str_to_i64(c->query.params[i].value, ret))
			return false;
	return true;
}

/* (suspends) *ret_why: what went wrong. */
static int checkpoint(struct kubelet_call *c, struct val pod, int64_t timeout_s, str *ret_path, str *ret_why)
{
	str id = STR_NONE, name = container_name(c);
	struct err err = ERR_INIT;
	struct val answer;
	int r = running_container(c, pod, name, &id, &err);

	if (r == 0 && !id.n) {
		*ret_why = arena_printf(c->arena, "container " STR_FMT " not found", STR_ARG(name));
		return -ERR_NOT_FOUND;
	}
	if (r == 0 && !(*ret_path = checkpoint_path(c, pod, &err)).n) {
		*ret_why = arena_str(c->arena, err_str(&err));
		return -ERR_SYSTEM;
	}
	if (r == 0) {
		struct val ask = OBJECT(c->arena, F(containerId, val_of_str(id)), F(location, val_of_str(*ret_path)),
					F(timeout, val_of_int(timeout_s)));
		r = cri_ask(c->o->cri, &rpc_RuntimeService_CheckpointContainer, c->arena, ask, MIN(timeout_s, (int64_t)INT32_MAX) * 1000,
			    &answer, &err);
	}
	*ret_why = cri_error_text(c->arena, &err);
	return r;
}

int call_checkpoint(struct kubelet_call *c)
{
	str namespace = c->parts[1], of = c->parts[2], name = container_name(c), path = STR_NONE, why = STR_NONE;
	struct val pod;
	int64_t timeout_s;

	if (!find_pod(c, &pod))
		return 0;
	if (!val_exists(container_spec_of(pod, name)))
		call_error(c, 404, "container " STR_FMT " does not exist", STR_ARG(name));
	else if (!read_timeout(c, &timeout_s))
		call_error(c, 404, "cannot parse value of timeout parameter");
	else if (checkpoint(c, pod, timeout_s, &path, &why) < 0)
		call_error(c, 500, "checkpointing of " STR_FMT "/" STR_FMT "/" STR_FMT " failed (" STR_FMT ")", STR_ARG(namespace),
			   STR_ARG(of), STR_ARG(name), STR_ARG(why));
	else
		call_json(c, OBJECT(c->arena, F(items, LIST(c->arena, val_of_str(path)))), NULL, 0);
	return 0;
}

/* ---- what runs ---- */

static struct val containers_of(struct arena *a, struct val containers, str sandbox)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(one, containers)
		if (str_eq(val_str(*one, podSandboxId), sandbox))
			val_add_item(&b, OBJECT(a, F(name, val_of_str(val_str(*one, metadata, name))),
						F(image, val_of_str(val_str(*one, image, image)))));
	return val_end_list(&b);
}

int call_running_pods(struct kubelet_call *c)
{
	struct arena *a = c->arena;
	struct val ready = OBJECT(a, F(filter, OBJECT(a, F(state, OBJECT(a, F(state, VAL_LIT("SANDBOX_READY"))))))), sandboxes;
	struct val running = OBJECT(a, F(filter, OBJECT(a, F(state, OBJECT(a, F(state, VAL_LIT("CONTAINER_RUNNING"))))))), containers;
	struct val_builder b = val_builder(a);
	struct err err = ERR_INIT;
	int r = cri_ask(c->o->cri, &rpc_RuntimeService_ListPodSandbox, a, ready, 0, &sandboxes, &err);

	if (r == 0)
		r = cri_ask(c->o->cri, &rpc_RuntimeService_ListContainers, a, running, 0, &containers, &err);
	if (r < 0)
		return run_failed(c, r, &err);
	VAL_EACH(s, val_get(sandboxes, items)) {
		struct val metadata = OBJECT(a, F(name, val_get(*s, metadata, name)), F(namespace, val_get(*s, metadata, namespace)),
					     F(uid, val_get(*s, metadata, uid)));
		struct val spec = OBJECT(a, F(containers, containers_of(a, val_get(containers, containers), val_str(*s, id))));
		val_add_item(&b, OBJECT(a, F(metadata, metadata), F(spec, spec)));
	}
	call_json(c, OBJECT(a, F(kind, VAL_LIT("PodList")), F(apiVersion, VAL_LIT("v1")), F(items, val_end_list(&b))),
		  TYPE(core_v1, PodList), 0);
	return 0;
}
