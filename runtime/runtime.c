/* The service: opening what it needs, serving, closing. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "oci/cgroup.h"
#include "runtime/cri.h"
#include "runtime/restore.h"
#include "runtime/stream.h"
#include "runtime/usage.h"
#include "runtime/userns.h"

enum { GRACE_MS = 10000 };

/* ---- small things ---- */

void runtime_id_make(char ret[RUNTIME_ID + 1])
{
	uint8_t bytes[RUNTIME_ID / 2];

	random_bytes(bytes, sizeof bytes);
	(void)hex_encode(ret, str_span((const char *)bytes, sizeof bytes));
	ret[RUNTIME_ID] = '\0';
}

const char *runtime_text(struct arena *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str s = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return s.p;
}

const struct runtime_handler *runtime_handler_find(const struct runtime *r, str name)
{
	for (size_t i = 0; i < r->o.n_handlers; i++)
		if (str_eq(name, str_of(r->o.handlers[i].name)))
			return &r->o.handlers[i];
	return NULL;
}

/* ---- names ---- */

struct name {
	char id[RUNTIME_ID + 1];
	size_t n;
	char text[];
};

bool runtime_name_reserve(struct runtime *r, str name, const char *id, struct err *err)
{
	const struct name *there = map_get(&r->names, name);

	if (there) {
		err_set(err, ERR_INTERNAL, "name \"" STR_FMT "\" is reserved for \"%s\"", STR_ARG(name), there->id);
		return false;
	}
	struct name *n = mem_zalloc(sizeof *n + name.n + 1);
	memcpy(n->id, id, RUNTIME_ID);
	memcpy(n->text, name.p, name.n);
	n->n = name.n;
	(void)map_put(&r->names, str_span(n->text, n->n), n);
	return true;
}

void runtime_name_release(struct runtime *r, str name) { free(map_remove(&r->names, name)); }

/* ---- collecting ---- */

static int collect(void *arg)
{
	struct runtime *r = arg;
	struct err err = ERR_INIT;
	uint64_t freed = 0;

	while (r->collect_wanted && r->pulls == 0) {
		r->collect_wanted = false;
		int code = snapshots_collect(r->snapshots, r->images, &err);
		if (code == 0)
			code = images_collect(r->images, &freed, &err);
		if (code < 0 && code != -ERR_CANCELED)
			log_warn("what no image needs cannot be removed", KV("err", &err));
		if (code < 0)
			break;
		log_debug("collected", KV("bytes", freed));
	}
	r->collecting = false;
	return 0;
}

void runtime_collect(struct runtime *r)
{
	r->collect_wanted = true;
	if (!r->collecting && r->pulls == 0)
		r->collecting = fiber_group_spawn(&r->work, collect, r, NULL, "collect") == 0;
}

/* ---- life ---- */

enum { LOCK_TRIES = 100, LOCK_WAIT_MS = 20 };

/* (suspends) Two of them on one folder would not know of each other. */
static int lock(struct runtime *r, struct arena *a, struct err *err)
{
	r->lock_fd = open(runtime_text(a, "%s/lock", r->o.root), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (r->lock_fd < 0)
		return err_sys(err, errno, "open %s/lock", r->o.root);
	/* One that was killed a moment ago may have left a child that has yet to become another program, and holds the lock until then. */
	for (int tries = 0; flock(r->lock_fd, LOCK_EX | LOCK_NB) < 0; tries++) {
		int code = tries < LOCK_TRIES ? fiber_sleep_ms(LOCK_WAIT_MS, err) :
						err_set(err, ERR_CONFLICT, "%s is used by another runtime", r->o.root);
		if (code < 0)
			return code;
	}
	return 0;
}

static int make_folders(struct runtime *r, struct arena *a, struct err *err)
{
	static const char *const in_root[] = { "images", "snapshots", "sandboxes", "containers" };
	static const char *const in_state[] = { "pods", "netns", "oci", "userns" };
	int code = 0;

	for (size_t i = 0; i < ARRAY_LEN(in_root) && code == 0; i++)
		code = file_make_dirs(runtime_text(a, "%s/%s", r->o.root, in_root[i]), 0700, err);
	for (size_t i = 0; i < ARRAY_LEN(in_state) && code == 0; i++)
		code = file_make_dirs(runtime_text(a, "%s/%s", r->o.state, in_state[i]), 0700, err);
	return code;
}

static int open_all(struct runtime *r, struct arena *a, struct err *err)
{
	struct images_options images = { .root = runtime_text(a, "%s/images", r->o.root), .registry_config = r->o.registry_config };
	struct cni_options cni = { .conf_dir = r->o.cni_conf_dir, .bin_dirs = r->o.cni_bin_dirs,
				   .cache_dir = runtime_text(a, "%s/cni", r->o.root), .own_plugins = r->o.pod_program };
	int code;

	if ((code = make_folders(r, a, err)) < 0 || (code = lock(r, a, err)) < 0 ||
	    (code = images_open(&images, &r->images, err)) < 0 ||
	    (code = snapshots_open(runtime_text(a, "%s/snapshots", r->o.root), &r->snapshots, err)) < 0)
		return code;
	r->userns = userns_probe(runtime_text(a, "%s/snapshots", r->o.root), &r->no_userns) == 0;
	r->cni = cni_new(&cni);
	r->usage = usage_cache_new();
	return stream_server_new(r, &r->streams, err);
}

static void close_all(struct runtime *r)
{
	SHIELD_SCOPE();
	fiber_group_done(&r->work);
	struct container *c;
	while ((c = LIST_FIRST(struct container, &r->containers, link)))
		container_forget(c);
	struct sandbox *s;
	while ((s = LIST_FIRST(struct sandbox, &r->sandboxes, link)))
		sandbox_forget(s);
	struct map_iter it = map_iter(&r->names);
	struct name *n;
	while ((n = map_next(&it, NULL)))
		free(n);
	map_done(&r->names);
	map_done(&r->sandbox_ids);
	map_done(&r->container_ids);
	map_done(&r->execs);
	stream_server_free(r->streams);
	usage_cache_free(r->usage);
	cni_free(r->cni);
	snapshots_free(r->snapshots);
	images_free(r->images);
	if (r->lock_fd >= 0)
		(void)close(r->lock_fd);
}

static int serve_streams(void *arg)
{
	struct runtime *r = arg;
	struct err err = ERR_INIT;
	int code = stream_server_run(r->streams, &err);

	if (code < 0 && code != -ERR_CANCELED)
		log_error("exec, attach and port-forward are not served any more", KV("err", &err));
	return code;
}

/* Attachments of pods that are gone hold addresses. */
static int collect_network(void *arg)
{
	struct runtime *r = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str *ids = ARENA_ARRAY(&a, str, map_len(&r->sandbox_ids) + 1);
	struct err err = ERR_INIT;
	size_t n = 0;

	LIST_EACH(struct sandbox, s, &r->sandboxes, link)
		ids[n++] = str_of(s->id);
	if (cni_gc(r->cni, ids, n, &err) < 0)
		log_debug("the network could not be cleaned up", KV("err", &err));
	return 0;
}

static int serve(struct runtime *r, void (*on_ready)(struct runtime *r, void *arg), void *arg, struct err *err)
{
	struct grpc_server *server = cri_server_new(r);
	int code = grpc_server_listen(server, r->o.listen, err);

	if (code == 0)
		code = fiber_group_spawn(&r->work, serve_streams, r, err, "streams");
	if (code == 0) {
		if (on_ready)
			on_ready(r, arg);
		code = grpc_server_run(server, GRACE_MS, err);
	}
	grpc_server_free(server);
	return code;
}

/* The cgroup that pods are in is ours, unless there are any. What others may have put there stays. */
static void remove_cgroup(struct runtime *r, struct arena *a)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct err err = ERR_INIT;
	pid_t *pids;
	size_t n;

	if (!list_empty(&r->sandboxes) || cgroup_open(r->o.cgroup_parent, &g, NULL) < 0)
		return;
	int code = cgroup_pids(g, a, &pids, &n, &err);
	if (code >= 0 && n == 0)
		code = cgroup_remove(g, &err);
	if (code < 0)
		log_warn("the cgroup of the pods cannot be removed", KV("cgroup", r->o.cgroup_parent), KV("err", &err));
}

int runtime_run(const struct runtime_options *o, void (*on_ready)(struct runtime *r, void *arg), void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime r = { .o = *o, .lock_fd = -1 };

	list_init(&r.sandboxes);
	list_init(&r.containers);
	list_init(&r.followers);
	fiber_group_init(&r.work);
	int code = open_all(&r, &a, err);
	if (code == 0)
		code = restore_all(&r, err);
	if (code == 0)
		code = collect_network(&r);
	if (code == 0)
		code = serve(&r, on_ready, arg, err);
	if (code == 0 || code == -ERR_CANCELED)
		remove_cgroup(&r, &a);
	close_all(&r);
	return code;
}
