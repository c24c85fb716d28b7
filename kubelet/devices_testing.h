/* For tests: a kubelet's folder with devices_run at work in it, and a device plugin that does what the test says. */
#ifndef C8S_KUBELET_DEVICES_TESTING_H
#define C8S_KUBELET_DEVICES_TESTING_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_test.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"
#include "net/grpc_server.h"

/* Waits until the condition holds, at most 10 s. */
#define UNTIL(cond)                                                      \
	do {                                                             \
		int64_t until_end = clock_now_ns() + 10 * NS_PER_S;      \
		while (!(cond) && clock_now_ns() < until_end)            \
			(void)fiber_sleep_ms(1, NULL);                   \
		CHECK(cond);                                             \
	} while (0)

static __attribute__((unused)) struct val tree(struct arena *a, const struct type *type, const char *json)
{
	struct err err = ERR_INIT;
	str text = arena_str(a, str_of(json));
	struct val v;

	for (char *c = (char *)(uintptr_t)text.p; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (json_decode(a, text, &(struct json_decode_options){ .type = type, .sort_keys = !type }, &v, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	return v;
}

/* As JSON with ' for ". */
static __attribute__((unused)) str text_of(struct arena *a, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);

	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ .plain = true }, NULL), 0);
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] == '"')
			b.p[i] = '\'';
	return arena_str(a, buf_str(&b));
}

/* ---- the kubelet ---- */

struct kubelet_test {
	char root[64];
	struct kubelet_node node;
	struct devices *devices;
	struct fiber *fiber;
	struct arena arena;
	struct val pods;
	bool runs;
	unsigned changed;
	char changed_pods[200];
};

static struct val test_pods(void *arg, struct arena *a)
{
	(void)a;
	return ((struct kubelet_test *)arg)->pods;
}

static bool test_runs(void *arg, str pod, str container)
{
	(void)pod;
	(void)container;
	return ((struct kubelet_test *)arg)->runs;
}

static void test_changed(void *arg) { ((struct kubelet_test *)arg)->changed++; }

static void test_pod_changed(void *arg, str pod)
{
	struct kubelet_test *k = arg;
	size_t n = strlen(k->changed_pods);

	(void)snprintf(k->changed_pods + n, sizeof(k->changed_pods) - n, STR_FMT ";", STR_ARG(pod));
}

static int test_run(void *arg)
{
	struct kubelet_test *k = arg;
	struct err err = ERR_INIT;
	int r = devices_run(k->devices, &err);

	if (r != -ERR_CANCELED)
		print_error("devices_run: %s\n", err.msg);
	return r;
}

static __attribute__((unused)) const char *test_path(struct kubelet_test *k, const char *name)
{
	return arena_printf(&k->arena, "%s/%s", k->root, name).p;
}

/* Begins, also after kubelet_test_stop: it then is the next kubelet on the same node. */
static __attribute__((unused)) void kubelet_test_start(struct kubelet_test *k)
{
	k->devices = devices_new(&(struct devices_options){ .node = &k->node, .pods = test_pods, .runs = test_runs,
							    .changed = test_changed, .pod_changed = test_pod_changed, .arg = k });
	k->fiber = start(test_run, k);
	UNTIL(access(test_path(k, "pod-resources/kubelet.sock"), F_OK) == 0);
}

static __attribute__((unused)) void kubelet_test_stop(struct kubelet_test *k)
{
	CHECK_INT(fiber_stop(k->fiber), -ERR_CANCELED);
	devices_free(k->devices);
	(void)unlink(test_path(k, "pod-resources/kubelet.sock"));
}

static __attribute__((unused)) void kubelet_test_init(struct kubelet_test *k)
{
	*k = (struct kubelet_test){ .root = "/tmp/c8s-devices-XXXXXX", .pods = VAL_EMPTY_LIST };
	log_set_level(LOG_LEVEL_OFF);
	arena_init(&k->arena);
	CHECK(mkdtemp(k->root) != NULL);
	k->node.root = str_of(k->root);
	kubelet_test_start(k);
}

static __attribute__((unused)) void kubelet_test_done(struct kubelet_test *k)
{
	kubelet_test_stop(k);
	int tmp = path_open_tree("/tmp", NULL);
	CHECK_INT(path_remove(tmp, k->root + strlen("/tmp/"), NULL), 0);
	(void)close(tmp);
	arena_done(&k->arena);
	log_set_level(LOG_LEVEL_INFO);
}

/* (suspends) One call on a socket; the error's text, or the answer's. */
static __attribute__((unused)) str test_ask(struct arena *a, const char *socket, const struct rpc *rpc, const char *json)
{
	CLEANUP(grpc_channel_freep) struct grpc_channel *c = NULL;
	struct err err = ERR_INIT;
	struct val answer;

	CHECK_INT(plugin_open(str_of(socket), &c, &err), 0);
	if (plugin_ask(c, rpc, a, tree(a, rpc->request, json), 10000, &answer, &err) < 0)
		return arena_str(a, err_str(&err));
	return text_of(a, answer);
}

/* ---- a plugin ---- */

struct plugin_test {
	char path[120];
	struct grpc_server *server;
	struct fiber *fiber;
	const char *options;          /* DevicePluginOptions */
	const char *list;             /* ListAndWatchResponse; another pointer: it is sent again */
	const char *response;         /* AllocateResponse */
	const char *preferred;        /* PreferredAllocationResponse */
	const char *fails;            /* the name of a call that fails */
	const char *info;             /* PluginInfo, of those in plugins_registry */
	unsigned sends;               /* how often a list is sent again, with nothing having changed */
	const char *other;            /* sent in turn with it */
	bool ends;                    /* the stream of devices */
	bool holds;                   /* GetPreferredAllocation is not answered while it is so */
	bool answered;                /* it was, since */
	char calls[800];              /* "Allocate{...};" */
};

static int plugin_test_reply(struct grpc_server_call *call, const struct rpc *rpc, const char *json, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
	struct arena *a = grpc_call_arena(call);
	int r = proto_encode(&b, tree(a, rpc->response, json ? json : "{}"), rpc->response, err);

	return r < 0 ? r : grpc_reply(call, buf_str(&b), err);
}

static int plugin_test_follow(struct plugin_test *p, struct grpc_server_call *call, struct err *err)
{
	for (const char *sent = NULL; !p->ends;) {
		int r = 0;
		if (sent != p->list || p->sends) {
			p->sends -= sent == p->list;
			sent = p->list;
			r = plugin_test_reply(call, &rpc_DevicePlugin_ListAndWatch, p->other && p->sends % 2 ? p->other : sent, err);
		} else {
			r = fiber_sleep_ms(1, err);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int plugin_test_handle(struct grpc_server_call *call, str bytes, void *arg, struct err *err)
{
	struct plugin_test *p = arg;
	const struct rpc *rpc = grpc_call_method(call)->user;
	struct arena *a = grpc_call_arena(call);
	str name = str_skip(rpc->path, (size_t)str_rchr(rpc->path, '/') + 1);
	struct val request;
	size_t n = strlen(p->calls);

	CHECK_INT(proto_decode(a, bytes, rpc->request, &request, NULL), 0);
	(void)snprintf(p->calls + n, sizeof(p->calls) - n, STR_FMT STR_FMT ";", STR_ARG(name), STR_ARG(text_of(a, request)));
	if (p->fails && str_eq(name, str_of(p->fails)))
		return err_set(err, ERR_INTERNAL, "the plugin does not want to");
	if (rpc == &rpc_DevicePlugin_ListAndWatch)
		return plugin_test_follow(p, call, err);
	while (rpc == &rpc_DevicePlugin_GetPreferredAllocation && p->holds)
		if (fiber_sleep_ms(1, err) < 0)
			return -ERR_CANCELED;
	p->answered = rpc == &rpc_DevicePlugin_GetPreferredAllocation;
	return plugin_test_reply(call, rpc, rpc == &rpc_DevicePlugin_Allocate ? p->response
					    : rpc == &rpc_DevicePlugin_GetDevicePluginOptions ? p->options
					    : rpc == &rpc_DevicePlugin_GetPreferredAllocation ? p->preferred
					    : rpc == &rpc_Registration_GetInfo ? p->info : "{}", err);
}

static int plugin_test_main(void *arg) { return grpc_server_run(((struct plugin_test *)arg)->server, 0, NULL); }

/* Listens at a path below the kubelet's root. */
static __attribute__((unused)) void plugin_test_start(struct plugin_test *p, struct kubelet_test *k, const char *name)
{
	static const struct rpc *const rpcs[] = {
		&rpc_DevicePlugin_GetDevicePluginOptions, &rpc_DevicePlugin_ListAndWatch, &rpc_DevicePlugin_Allocate,
		&rpc_DevicePlugin_GetPreferredAllocation, &rpc_DevicePlugin_PreStartContainer, &rpc_Registration_GetInfo,
		&rpc_Registration_NotifyRegistrationStatus,
	};
	static struct grpc_method methods[ARRAY_LEN(rpcs)];
	char url[140];
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(rpcs); i++)
		methods[i] = (struct grpc_method){ rpcs[i]->path, plugin_test_handle, rpcs[i]->stream_response, rpcs[i] };
	if (!p->response)
		p->response = "{'containerResponses':[{'envs':{'DEV':'1'}}]}";
	p->ends = false;
	p->calls[0] = '\0';
	(void)snprintf(p->path, sizeof(p->path), "%s/%s", k->root, name);
	(void)snprintf(url, sizeof(url), "unix:%s", p->path);
	p->server = grpc_server_new(&(struct grpc_server_options){ .methods = methods, .n_methods = ARRAY_LEN(methods), .arg = p });
	if (grpc_server_listen(p->server, url, &err) < 0)
		fail_msg("%s", err.msg);
	p->fiber = start(plugin_test_main, p);
}

static __attribute__((unused)) void plugin_test_stop(struct plugin_test *p)
{
	(void)fiber_stop(p->fiber);
	grpc_server_free(p->server);
	(void)unlink(p->path);
}

/* Starts it and registers on the kubelet's socket; waits until the node has what it offers. */
static __attribute__((unused)) void plugin_test_register(struct plugin_test *p, struct kubelet_test *k, const char *resource)
{
	struct arena *a = &k->arena;
	struct val capacity = VAL_EMPTY, allocatable;

	plugin_test_start(p, k, arena_printf(a, "device-plugins/%.20s.sock", strchr(resource, '/') + 1).p);
	CHECK_STR(test_ask(a, test_path(k, "device-plugins/kubelet.sock"), &rpc_Registration_Register,
			   arena_printf(a, "{'version':'v1beta1','endpoint':'%s','resourceName':'%s'}", strrchr(p->path, '/') + 1,
					resource).p), "{}");
	const struct offer *o = offer_find(k->devices, str_of(resource));
	UNTIL(o && o->listed && !o->lost);
	devices_of_node(k->devices, a, &capacity, &allocatable);
	CHECK(val_exists(val_find(capacity, str_of(resource))));
}

#endif
