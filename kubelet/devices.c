/*
 * Device plugins: a plugin says on our socket what it offers and where it listens. We connect there and follow its devices until the
 * stream ends; its devices then are unhealthy at once, and five minutes later the node has none of them. One fiber follows a plugin.
 *
 * Plugins are trusted with the node, but not with us: messages have at most gRPC's 4 MiB, lists of devices are looked at 20 times a
 * second at most (the plugin has to wait), and calls have times.
 */
#include "kubelet/devices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"
#include "machinery/resources.h"
#include "net/grpc_server.h"

enum {
	ENDPOINT_MAX = 1024, REGISTER_MAX = 64 << 10,
	OPTIONS_MS = 10 * 1000, OPEN_MS = 10 * 1000, LISTS_A_SECOND = 20, GRACE_MS = 100,
	STOPPED_MS = 5 * 60 * 1000, /* as Kubernetes: endpointStopGracePeriod */
};

/* ---- offers ---- */

/* Its plugin has ended, or was taken away. */
static void offer_stop(struct devices *d, struct offer *r)
{
	struct device_plugin *p = TAKE(r->plugin);

	p->offer = NULL;
	r->stopped_ns = clock_now_ns();
	if (!r->listed && !r->gone) {
		offer_free(d, r);
		return;
	}
	if (d->ending)
		return;
	r->lost = true;
	log_info("device plugin has ended: its devices are unhealthy", KV("resource", r->name));
	fiber_cond_signal(&d->stopped);
	d->o.changed(d->o.arg);
}

/* (suspends, until canceled) Takes resources from the node whose plugins have been away for too long. */
static int stopped_main(void *arg)
{
	struct devices *d = arg;
	int r;

	for (;;) {
		int64_t now = clock_now_ns(), next = INT64_MAX;
		bool changed = false;
		LIST_EACH(struct offer, x, &d->offers, link) {
			int64_t due = x->stopped_ns + STOPPED_MS * NS_PER_MS;
			if (x->plugin || !x->listed)
				continue;
			if (due >= now) {
				next = MIN(next, due);
				continue;
			}
			x->listed = false;
			x->gone = changed = true;
			log_info("device plugin has not come back: the node has none of its devices", KV("resource", x->name));
		}
		if (changed) {
			struct err err = ERR_INIT;
			d->o.changed(d->o.arg);
			if (devices_save(d, &err) < 0)
				log_error("cannot write the checkpoint of devices", KV("error", &err));
			continue;
		}
		DEADLINE_SCOPE(next == INT64_MAX ? INT64_C(1) << 40 : (next - now) / NS_PER_MS + 1);
		r = fiber_cond_wait(&d->stopped, NULL);
		if (r == -ERR_CANCELED)
			return r;
	}
}

/* ---- one plugin ---- */

struct device_plugin *device_plugin_ref(struct offer *r)
{
	if (r->plugin)
		r->plugin->refs++;
	return r->plugin;
}

void device_plugin_unref(struct device_plugin *p)
{
	if (!p || --p->refs)
		return;
	grpc_channel_free(p->channel);
	free(p->socket);
	free(p);
}

void device_plugin_unrefp(struct device_plugin **p) { device_plugin_unref(*p); }

/* (suspends) */
static int follow_open(struct device_plugin *p, struct grpc_stream **ret, struct err *err)
{
	DEADLINE_SCOPE(OPEN_MS);
	int r = grpc_stream_open(p->channel, rpc_DevicePlugin_ListAndWatch.path, ret, err);

	if (r == 0 && (r = grpc_stream_send(*ret, STR(""), err)) < 0) {
		grpc_stream_free(*ret);
		*ret = NULL;
	}
	if (r == 0)
		grpc_stream_half_close(*ret);
	return r;
}

/* (suspends) One list of devices. 0: it was the last. */
static int follow_next(struct device_plugin *p, struct grpc_stream *s, struct err *err)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	int r = grpc_stream_recv(s, &m, err);

	if (r <= 0 || (r = offer_tell(p->devices, p->offer, grpc_message_str(m), err)) < 0)
		return r;
	if (!p->offer)
		return 0;
	if (r > 0 && devices_save(p->devices, err) < 0)
		log_error("cannot write the checkpoint of devices", KV("error", err));
	return 1;
}

/* (suspends) Lists of devices until the last, not faster than we can bear. */
static int follow(struct device_plugin *p, struct grpc_stream *s, struct err *err)
{
	int64_t second_ns = clock_now_ns();
	int r;

	for (unsigned n = 0; (r = follow_next(p, s, err)) > 0; n++) {
		int64_t now = clock_now_ns();
		if (now - second_ns >= NS_PER_S) {
			second_ns = now;
			n = 0;
		} else if (n == LISTS_A_SECOND) {
			if ((r = fiber_sleep_ns(second_ns + NS_PER_S - now, err)) < 0)
				return r;
		}
	}
	return r;
}

/* (suspends) Follows a plugin until it ends or another takes its place; owns a reference. */
static int plugin_main(void *arg)
{
	struct device_plugin *p = arg;
	struct grpc_stream *s = NULL;
	struct err err = ERR_INIT;
	int r = 0;

	if (p->offer) {
		p->fiber = fiber_self();
		r = follow_open(p, &s, &err);
		if (r == 0)
			r = follow(p, s, &err);
		grpc_stream_free(s);
		p->fiber = NULL;
	}
	if (p->offer) {
		if (!p->devices->ending)
			log_warn("ListAndWatch ended for device plugin", KV("resource", p->offer->name),
				 KV("error", r < 0 ? err.msg : "EOF"));
		offer_stop(p->devices, p->offer);
	}
	device_plugin_unref(p);
	return 0;
}

/* Another plugin takes its place, or it is not wanted any more. */
static void plugin_leave(struct device_plugin *p)
{
	p->offer = NULL;
	if (p->fiber)
		fiber_cancel(p->fiber);
}

/* (suspends) A plugin that answers. */
static int plugin_new(struct devices *d, str socket, struct device_plugin **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(grpc_channel_freep) struct grpc_channel *channel = NULL;
	struct val options;
	int r = plugin_open(socket, &channel, err);

	if (r < 0)
		return err_wrap(err, r, "failed to dial device plugin");
	r = plugin_ask_first(channel, &rpc_DevicePlugin_GetDevicePluginOptions, &a, VAL_EMPTY_OBJECT, OPTIONS_MS, &options, err);
	if (r < 0)
		return err_wrap(err, r, "failed to get device plugin options");
	struct device_plugin *p = mem_zalloc(sizeof(*p));
	*p = (struct device_plugin){
		.refs = 1, .devices = d, .channel = TAKE(channel), .pre_start = val_bool(options, preStartRequired),
		.preferred = val_bool(options, getPreferredAllocationAvailable), .socket = mem_zalloc(socket.n + 1),
	};
	memcpy(p->socket, socket.p, socket.n);
	*ret = p;
	return 0;
}

int device_plugin_connect(struct devices *d, str name, str socket, struct err *err)
{
	CLEANUP(device_plugin_unrefp) struct device_plugin *p = NULL;
	int r = plugin_new(d, socket, &p, err);

	if (r < 0)
		return r;
	struct offer *x = offer_find(d, name);
	if (!x && !(x = offer_add(d, name)))
		return err_set(err, ERR_TOO_MANY_REQUESTS, "there are too many resources of device plugins");
	p->refs++;
	p->offer = x;
	if ((r = fiber_group_spawn(&d->plugins, plugin_main, p, err, "device plugin")) < 0) {
		p->refs--;
		if (!x->listed && !x->gone && !x->plugin)
			offer_free(d, x);
		return r;
	}
	if (x->plugin)
		plugin_leave(x->plugin);
	x->plugin = p;
	x->pre_start = p->pre_start;
	log_info("device plugin connected", KV("resource", name), KV("socket", socket));
	return 0;
}

void device_plugin_disconnect(struct devices *d, str name, str socket)
{
	struct offer *r = offer_find(d, name);

	if (!r || !r->plugin || !str_eq(str_of(r->plugin->socket), socket))
		return;
	struct fiber *f = r->plugin->fiber;
	offer_stop(d, r);
	if (f)
		fiber_cancel(f);
}

/* (suspends) Errors without a code are "Unknown" in Go. */
static int handle_register(struct grpc_server_call *call, str bytes, void *arg, struct err *err)
{
	struct devices *d = arg;
	struct arena *a = grpc_call_arena(call);
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(256);
	struct val request;
	int r = proto_decode(a, bytes, rpc_Registration_Register.request, &request, err);

	if (r < 0)
		return r;
	str name = val_str(request, resourceName), endpoint = val_str(request, endpoint);
	log_info("registration request from device plugin", KV("resource", name));
	if (!str_eq(val_str(request, version), STR("v1beta1"))) {
		buf_add_quoted(&quoted, val_str(request, version));
		return err_set(err, ERR_INTERNAL, "requested API version " STR_FMT
			       " is not supported by kubelet. Supported version is [\"v1beta1\"]", STR_ARG(buf_str(&quoted)));
	}
	if (!resource_is_extended(name)) {
		buf_add_quoted(&quoted, name);
		return err_set(err, ERR_INTERNAL, "the ResourceName " STR_FMT " is invalid", STR_ARG(buf_str(&quoted)));
	}
	if (endpoint.n > ENDPOINT_MAX)
		return err_set(err, ERR_BAD_REQUEST, "the endpoint is too long");
	r = device_plugin_connect(d, name, path_clean(a, arena_printf(a, "%s/" STR_FMT, d->folder, STR_ARG(endpoint))), err);
	if (r < 0) {
		log_error("cannot connect to a device plugin", KV("resource", name), KV("error", err));
		return r == -ERR_CANCELED || !err ? r : err_set(err, ERR_INTERNAL, STR_FMT, STR_ARG(arena_str(a, err_str(err))));
	}
	return grpc_reply(call, STR(""), err);
}

/* ---- the whole ---- */

static char *below(const struct devices_options *o, const char *name)
{
	size_t n = o->node->root.n + strlen(name) + 1;
	char *text = mem_alloc(n);

	(void)snprintf(text, n, STR_FMT "%s", STR_ARG(o->node->root), name);
	return text;
}

struct devices *devices_new(const struct devices_options *o)
{
	struct devices *d = mem_zalloc(sizeof(*d));

	d->o = *o;
	devices_state_init(d);
	fiber_group_init(&d->plugins);
	fiber_cond_init(&d->stopped, "a device plugin that ends");
	fiber_cond_init(&d->saved, "the checkpoint of devices");
	d->folder = below(o, "/device-plugins");
	d->socket = below(o, "/device-plugins/kubelet.sock");
	d->checkpoint = below(o, "/device-plugins/kubelet_internal_checkpoint");
	d->registry = below(o, "/plugins_registry");
	d->pod_resources = below(o, "/pod-resources/kubelet.sock");
	devices_load(d);
	return d;
}

void devices_free(struct devices *d)
{
	if (!d)
		return;
	devices_state_done(d);
	free(d->folder);
	free(d->socket);
	free(d->checkpoint);
	free(d->registry);
	free(d->pod_resources);
	free(d);
}

/* Sockets of plugins that registered with the last kubelet: they see them go, and register anew. */
static int folder_clean(const char *folder, struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	struct stat st;
	int r = 0;

	if (!dir)
		return err_sys(err, errno, "cannot read %s", folder);
	while ((e = readdir(dir)))
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
		    unlinkat(dirfd(dir), e->d_name, 0) < 0 && errno != ENOENT)
			r = err_sys(err, errno, "cannot remove %s/%s", folder, e->d_name);
	(void)closedir(dir);
	return r;
}

static int listen_at(struct grpc_server *s, const char *path, struct err *err)
{
	char url[1100];

	if ((size_t)snprintf(url, sizeof(url), "unix:%s", path) >= sizeof(url))
		return err_set(err, ERR_INVALID, "the path %s is too long for a socket", path);
	return grpc_server_listen(s, url, err);
}

/* What devices_run runs side by side: the first that ends ends all. */
struct part {
	struct devices *devices;
	struct grpc_server *server;   /* NULL: plugins_watch */
	int r;
	struct err err;
	bool ended;
	struct fiber_cond *end;
};

static int validate_csi(void *arg, str name, str endpoint, struct val versions, struct err *err)
{
	struct devices *d = arg;

	return csi_drivers_validate(&d->csi, name, endpoint, versions, err);
}

static int add_csi(void *arg, str name, str endpoint, struct val versions, struct err *err)
{
	struct devices *d = arg;
	int r = csi_drivers_add(&d->csi, name, endpoint, versions, err);

	if (r == 0)
		d->o.changed(d->o.arg);
	return r;
}

static void remove_csi(void *arg, str name, str endpoint)
{
	struct devices *d = arg;

	csi_drivers_remove(&d->csi, name, endpoint);
	d->o.changed(d->o.arg);
}

static int validate_device(void *arg, str name, str endpoint, struct val versions, struct err *err)
{
	(void)endpoint;
	return device_plugin_validate(arg, name, versions, err);
}

static int add_device(void *arg, str name, str endpoint, struct val versions, struct err *err)
{
	(void)versions;
	return device_plugin_connect(arg, name, endpoint, err);
}

static void remove_device(void *arg, str name, str endpoint) { device_plugin_disconnect(arg, name, endpoint); }

/* Plugins of other types, DRAPlugin among them, are told that nobody here takes them. */
static const struct plugin_kind kinds[] = {
	{ STR_INIT("DevicePlugin"), validate_device, add_device, remove_device },
	{ STR_INIT("CSIPlugin"), validate_csi, add_csi, remove_csi },
};

static int part_main(void *arg)
{
	struct part *p = arg;

	if (p->server)
		p->r = grpc_server_run(p->server, GRACE_MS, &p->err);
	else
		p->r = plugins_watch(p->devices->registry, kinds, ARRAY_LEN(kinds), p->devices, &p->err);
	p->ended = true;
	fiber_cond_signal(p->end);
	return 0;
}

/* (suspends) */
static int run_parts(struct devices *d, struct part *parts, size_t n, struct err *err)
{
	struct fiber_cond end; /* before the group, whose fibers signal it to their last moment */
	CLEANUP(fiber_group_done) struct fiber_group group;
	int r;

	fiber_group_init(&group);
	fiber_cond_init(&end, "the end of the sockets for plugins");
	r = fiber_group_spawn(&group, stopped_main, d, err, "stopped plugins");
	for (size_t i = 0; i < n && r == 0; i++) {
		parts[i].devices = d;
		parts[i].end = &end;
		r = fiber_group_spawn(&group, part_main, &parts[i], err, "plugins");
	}
	while (r == 0 && (r = fiber_cond_wait(&end, err)) == 0)
		for (size_t i = 0; i < n && r == 0; i++)
			if (parts[i].ended)
				r = err_set(err, parts[i].err.code, "%s", parts[i].err.msg);
	d->ending = true;
	return r;
}

static int servers_listen(struct devices *d, struct part *parts, struct err *err)
{
	int r = file_make_dirs(d->folder, 0750, err);
	char *slash = strrchr(d->pod_resources, '/');

	*slash = '\0';
	if (r == 0)
		r = file_make_dirs(d->pod_resources, 0750, err);
	*slash = '/';
	if (r < 0 || (r = folder_clean(d->folder, err)) < 0 || (r = listen_at(parts[0].server, d->socket, err)) < 0)
		return r;
	return listen_at(parts[1].server, d->pod_resources, err);
}

int devices_run(struct devices *d, struct err *err)
{
	const struct grpc_method methods[] = { { rpc_Registration_Register.path, handle_register, false, NULL } };
	struct grpc_server_options o = { .methods = methods, .n_methods = 1, .arg = d, .max_message = REGISTER_MAX };
	struct part *parts = mem_array(3, sizeof(*parts));

	memset(parts, 0, 3 * sizeof(*parts));
	parts[0].server = grpc_server_new(&o);
	parts[1].server = pod_resources_server(d);
	int r = servers_listen(d, parts, err);
	if (r == 0)
		r = run_parts(d, parts, 3, err);
	fiber_group_done(&d->plugins);
	grpc_server_free(parts[0].server);
	grpc_server_free(parts[1].server);
	free(parts);
	return r;
}

static struct val count_text(struct arena *a, size_t n)
{
	char text[QUANTITY_TEXT_MAX];

	return VAL_STR(arena_str(a, quantity_format(quantity_of_int((int64_t)n, QUANTITY_DECIMAL_SI), text)));
}

void devices_of_node(struct devices *d, struct arena *a, struct val *ret_capacity, struct val *ret_allocatable)
{
	struct val_builder capacity = val_builder(a), allocatable = val_builder(a);

	LIST_EACH(struct offer, r, &d->offers, link) {
		if (!r->listed && !r->gone)
			continue;
		atom key = atom_make(a, r->name);
		size_t n = r->gone ? 0 : map_len(&r->ids), healthy = r->gone || r->lost ? 0 : r->n_healthy;
		val_add_member(&capacity, key, count_text(a, n));
		val_add_member(&allocatable, key, count_text(a, healthy));
	}
	*ret_capacity = val_end_object(&capacity);
	*ret_allocatable = val_end_object(&allocatable);
}

struct val devices_csi_drivers(struct devices *d, struct arena *a) { return csi_drivers_list(&d->csi, a); }
