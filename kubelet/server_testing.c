#include "kubelet/server_testing.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

/* ---- the runtime ---- */

static struct fixture *of_cri(struct cri *c) { return CONTAINER_OF(c, struct fixture, cri); }

static int container_status(struct fixture *f, struct arena *a, struct val q, struct val *ret, struct err *err)
{
	str id = val_str(q, containerId);

	if (!str_eq(id, STR("id-c")) && !str_eq(id, STR("id-old")))
		return err_set(err, ERR_NOT_FOUND, "no such container");
	str path = arena_printf(a, "%s/%s.log", f->folder.path, str_eq(id, STR("id-c")) ? "1" : "0");
	*ret = OBJECT(a, F(status, OBJECT(a, F(id, val_of_str(id)), F(logPath, val_of_str(path)),
					  F(state, f->running ? VAL_LIT("CONTAINER_RUNNING") : VAL_LIT("CONTAINER_EXITED")))));
	return 0;
}

/* It looks at the labels, as runtimes do. */
static struct val list_containers(struct fixture *f, struct arena *a, struct val q)
{
	struct val labels = val_get(q, filter, labelSelector);
	bool other = val_len(labels) && !str_eq(val_as_str(val_find(labels, STR("io.kubernetes.container.name"))), STR("c"));
	struct val meta = OBJECT(a, F(name, VAL_LIT("c"))), image = OBJECT(a, F(image, VAL_LIT("busybox")));
	struct val old = OBJECT(a, F(id, VAL_LIT("id-older")), F(podSandboxId, VAL_LIT("gone")), F(createdAt, val_of_int(1)));
	struct val one = OBJECT(a, F(id, VAL_LIT("id-c")), F(podSandboxId, VAL_LIT("sb")), F(metadata, meta), F(image, image),
				F(createdAt, val_of_int(2)));

	CHECK_STR(val_str(q, filter, state, state), "CONTAINER_RUNNING");
	if (val_len(labels))
		CHECK_STR(val_as_str(val_find(labels, STR("io.kubernetes.pod.name"))), "p");
	return OBJECT(a, F(containers, other || !f->running ? VAL_EMPTY_LIST : LIST(a, old, one)));
}

static struct val list_sandboxes(struct fixture *f, struct arena *a)
{
	struct val meta = OBJECT(a, F(name, VAL_LIT("p")), F(namespace, VAL_LIT("ns")), F(uid, VAL_LIT("u1")));

	return OBJECT(a, F(items, f->running ? LIST(a, OBJECT(a, F(id, VAL_LIT("sb")), F(metadata, meta))) : VAL_EMPTY_LIST));
}

static int fake_ask(struct cri *c, const struct rpc *rpc, struct arena *a, struct val q, struct val *ret, struct err *err)
{
	struct fixture *f = of_cri(c);

	if (rpc == &rpc_RuntimeService_ContainerStatus)
		return container_status(f, a, q, ret, err);
	if (rpc == &rpc_RuntimeService_ListContainers)
		*ret = list_containers(f, a, q);
	else if (rpc == &rpc_RuntimeService_ListPodSandbox)
		*ret = list_sandboxes(f, a);
	else
		f->asked = val_copy(&f->asked_arena, q);
	if (rpc == &rpc_RuntimeService_Exec && f->exec_error)
		return err_set(err, ERR_NOT_FOUND, "%s", f->exec_error);
	if (rpc == &rpc_RuntimeService_Exec || rpc == &rpc_RuntimeService_Attach || rpc == &rpc_RuntimeService_PortForward)
		*ret = OBJECT(a, F(url, val_of_str(str_of(f->url))));
	if (rpc == &rpc_RuntimeService_ExecSync) {
		bool bad = str_eq(val_as_str(val_at(val_get(q, cmd), 0)), STR("false"));
		*ret = OBJECT(a, F(stdout, VAL_LIT("out\n")), F(stderr, VAL_LIT("oops\n")), F(exitCode, val_of_int(bad)));
	}
	if (rpc == &rpc_RuntimeService_CheckpointContainer)
		return err_set(err, ERR_METHOD_NOT_ALLOWED, "unknown method");
	return 0;
}

static const struct cri_transport fake_transport = { .ask = fake_ask };

/* ---- the API server ---- */

static struct val token_status(struct arena *a, str token)
{
	struct val user = OBJECT(a, F(username, val_of_str(token)), F(groups, LIST(a, VAL_LIT("team"))));

	return str_eq(token, STR("root")) || str_eq(token, STR("reader")) ?
		       OBJECT(a, F(authenticated, val_of_bool(true)), F(user, user)) : OBJECT(a, F(error, VAL_LIT("who?")));
}

/* root may do all; reader may look at pods and metrics. */
static bool is_right(struct val spec)
{
	str user = val_str(spec, user), what = val_str(spec, resourceAttributes, subresource);

	CHECK_STR(val_str(spec, resourceAttributes, resource), "nodes");
	CHECK_STR(val_str(spec, resourceAttributes, name), "n1");
	return str_eq(user, STR("root")) || str_eq(user, STR("certified")) ||
	       (str_eq(user, STR("reader")) && (str_eq(what, STR("pods")) || str_eq(what, STR("metrics"))));
}

static int fake_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	struct fixture *f = CONTAINER_OF(c, struct fixture, api);
	struct val spec = val_get(q->body, spec), status;

	*ret = (struct client_reply){ .status = 201, .retry_after_s = -1 };
	if (f->api_down)
		return err_set(err, ERR_UNAVAILABLE, "connection refused");
	if (q->type == TYPE(authentication_v1, TokenReview)) {
		f->token_reviews++;
		status = token_status(&a, val_str(spec, token));
	} else {
		CHECK(q->type == TYPE(authorization_v1, SubjectAccessReview));
		f->access_reviews++;
		CHECK_INT(json_encode(&b, spec, &(struct json_encode_options){ 0 }, err), 0);
		f->last_review = arena_str(&f->review_arena, buf_str(&b));
		status = OBJECT(&a, F(allowed, val_of_bool(is_right(spec))));
	}
	ret->object = val_freeze(OBJECT(&a, F(kind, val_of_str(q->type->name)), F(apiVersion, val_of_str(type_api_version(&a, q->type))),
					F(status, status)));
	return 0;
}

static const struct client_transport fake_api = { .call = fake_call };

/* ---- the kubelet ---- */

#define POD_OF(state)                                                                                                    \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"tty\":true},{"  \
	"\"name\":\"w\"},{\"name\":\"pull\"},{\"name\":\"off\"},{\"name\":\"dead\"},{\"name\":\"new\"},{\"name\":\"odd\"},"             \
	"{\"name\":\"lost\"}],\"initContainers\":[{\"name\":\"i\"}]},\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":" \
	"\"containerd://id-c\",\"state\":{\"" state "\":{\"containerID\":\"containerd://id-c\"}},\"lastState\":{\"terminated\":{"         \
	"\"containerID\":\"containerd://id-old\"}}},"                                                                                     \
	"{\"name\":\"w\",\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}},"                                                    \
	"{\"name\":\"pull\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\"}}},"                                                      \
	"{\"name\":\"off\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}},"                                                   \
	"{\"name\":\"dead\",\"state\":{\"terminated\":{\"exitCode\":1}}},"                                                                \
	"{\"name\":\"lost\",\"containerID\":\"containerd://x\",\"state\":{\"running\":{}}},"                                              \
	"{\"name\":\"odd\"}],\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{\"terminated\":{\"containerID\":\"containerd://id-old\"}}}]}}"

static struct val decode(struct arena *a, const char *text)
{
	struct val v;
	CHECK_INT(json_decode(a, str_of(text), &(struct json_decode_options){ 0 }, &v, NULL), 0);
	return v;
}

static struct val fake_pod(void *arg, struct arena *a, str namespace, str name)
{
	(void)arg;
	return str_eq(namespace, STR("ns")) && str_eq(name, STR("p")) ? decode(a, POD_OF("running")) : VAL_EMPTY;
}

static struct val fake_pods(void *arg, struct arena *a)
{
	(void)arg;
	return decode(a, "[{\"metadata\":{\"name\":\"p\"}}]");
}

static struct val fake_summary(void *arg, struct arena *a)
{
	(void)arg;
	return decode(a, "{\"node\":{\"nodeName\":\"n1\",\"cpu\":{},\"fs\":{}},\"pods\":[{\"podRef\":{\"name\":\"p\"},\"network\":{},"
			 "\"containers\":[{\"name\":\"c\",\"cpu\":{},\"rootfs\":{}}]}]}");
}

static void fake_metrics(void *arg, str which, struct buf *text)
{
	(void)arg;
	buf_addf(text, "metrics{of=\"" STR_FMT "\"} 1\n", STR_ARG(which));
}

static struct val fake_config(void *arg, struct arena *a)
{
	(void)arg;
	return decode(a, "{\"kind\":\"KubeletConfiguration\",\"maxPods\":110}");
}

static bool fake_alive(void *arg) { return !((struct fixture *)arg)->dead; }

static int serve(void *arg)
{
	struct fixture *f = arg;
	return http_server_run(f->server, 0, NULL);
}

static void write_log(struct fixture *f, const char *name, const char *text, int flags)
{
	int fd = open(arena_printf(&f->folder.arena, "%s/%s.log", f->folder.path, name).p, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

void fixture_log(struct fixture *f, const char *text) { write_log(f, "1", text, O_APPEND); }

void fixture_init(struct fixture *f, struct tls_context *server_tls)
{
	struct err err = ERR_INIT;

	*f = (struct fixture){ .cri = { &fake_transport }, .api = { .transport = &fake_api }, .running = true };
	f->node = (struct kubelet_node){ .name = STR("n1") };
	folder_init(&f->folder);
	f->node.root = str_of(f->folder.path);
	write_log(f, "0", "2023-11-14T22:13:20.5Z stdout F before\n", 0);
	write_log(f, "1", "2023-11-14T22:13:20.5Z stdout F o1\n2023-11-14T22:13:21.5Z stderr F e1\n2023-11-14T22:13:22.5Z stdout F o2\n", 0);
	f->options = (struct kubelet_server_options){ .node = &f->node, .cri = &f->cri, .client = &f->api, .pods = fake_pods,
						      .auth = kubelet_auth_new(120, 300, 30), .pod = fake_pod,
						      .summary = fake_summary, .metrics = fake_metrics, .config = fake_config,
						      .alive = fake_alive, .arg = f, .system_logs = f->folder.path };
	struct http_server_options o = { .handle = kubelet_server_handle, .arg = &f->options, .tls = server_tls };
	CHECK_INT(http_server_new(&o, &f->server, &err), 0);
	CHECK_INT(http_server_listen(f->server, "127.0.0.1", 0, &f->port, &err), 0);
	f->run = start(serve, f);
	f->client = http_client_new(&(struct http_client_options){ 0 });
}

void fixture_done(struct fixture *f)
{
	http_client_free(f->client);
	fiber_stop(f->run);
	http_server_free(f->server);
	kubelet_auth_free(f->options.auth);
	arena_done(&f->asked_arena);
	arena_done(&f->review_arena);
	folder_done(&f->folder);
}

struct reply fixture_ask(struct fixture *f, const char *method, const char *path, const char *token)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	struct reply reply = { .body = BUF_INIT(1 << 20) };
	const struct http1_head *head = NULL;
	struct err err = ERR_INIT;
	struct http_header header = { STR("authorization"), arena_printf(&a, "Bearer %s", token ? token : "") };
	str url = arena_printf(&a, "%s://%s:%u%s", f->client_tls ? "https" : "http", f->host ? f->host : "127.0.0.1", f->port, path);
	str body = STR_NONE;
	struct http_request q = { .method = str_of(method), .url = url, .headers = &header, .n_headers = token ? 1 : 0 };

	if (http_call_open(f->client, &q, &call, &err) < 0 || http_call_head(call, &head, &err) < 0 ||
	    http_call_read_all(call, 1 << 20, &body, &err) < 0)
		fail_msg("%s", err.msg);
	reply.status = head->status;
	buf_add(&reply.body, body);
	return reply;
}

void reply_done(struct reply *r) { buf_done(&r->body); }

void fixture_check(struct fixture *f, int row, const char *method, const char *path, int status, const char *body)
{
	CLEANUP(reply_done) struct reply r = fixture_ask(f, method, path, "root");

	CHECK_STR_ROW(row, buf_str(&r.body), body);
	CHECK_ROW(row, r.status == status);
}
