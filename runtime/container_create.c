/*
 * Making a container: folder, root file system, user, bundle, record. Nothing runs yet. Whatever fails, container_clear removes all that
 * there may be; after a crash the next start does the same with a folder that has no record.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/config_json.h"
#include "runtime/events.h"
#include "runtime/signals.h"
#include "runtime/store.h"
#include "runtime/userns.h"

enum { CLEAR_MS = 60000, CONFIG_MAX = 16 << 20 };

static str name_of(struct arena *a, struct val metadata, struct val pod)
{
	return arena_printf(a, STR_FMT "_" STR_FMT "_" STR_FMT "_" STR_FMT "_%u", STR_ARG(val_str(metadata, name)),
			    STR_ARG(val_str(pod, name)), STR_ARG(val_str(pod, namespace)), STR_ARG(val_str(pod, uid)),
			    (unsigned)val_int(metadata, attempt));
}

/* ---- images that are mounted as volumes ---- */

str container_image_key(struct arena *a, const char *id, size_t i) { return arena_printf(a, "%s-image-%zu", id, i); }

/* A path inside the image; what is a link there stays inside. The image is mounted for this alone, nobody changes it. */
static int sub_path(const char *root, str path, struct arena *a, const char **ret, struct err *err)
{
	char link[PATH_FD_TEXT], target[2048];
	int tree = path_open_tree(root, err);

	if (tree < 0)
		return tree;
	int fd = path_open(tree, arena_str(a, path).p, O_PATH, err);
	(void)close(tree);
	if (fd < 0)
		return fd;
	ssize_t n = readlink(path_of_fd(fd, link), target, sizeof target);
	(void)close(fd);
	if (n <= 0 || (size_t)n >= sizeof target)
		return err_set(err, ERR_INTERNAL, "the path " STR_FMT " in an image cannot be resolved", STR_ARG(path));
	*ret = arena_str(a, str_span(target, (size_t)n)).p;
	return 0;
}

/* (suspends) Where the root of that image is mounted, with the ids of the pod. */
static int mount_root(struct container *c, str key, const struct image *image, str label, struct arena *a, const char **ret, struct err *err)
{
	struct runtime *r = c->runtime;
	const char *userns = sandbox_userns(c->sandbox, a);
	int code = snapshot_unpack(r->snapshots, r->images, image, err);

	if (code < 0 || (code = snapshot_mount(r->snapshots, key, image, label, a, ret, err)) < 0 || !userns)
		return code;
	return userns_map_root(*ret, userns, sandbox_namespaces(c->sandbox), label, err);
}

static int mount_image(struct container *c, size_t i, struct val m, str label, struct arena *a, const char **ret, struct err *err)
{
	struct runtime *r = c->runtime;
	str name = val_str(m, image, image), path = val_str(m, imageSubPath);
	struct image image;
	int code = image_find(r->images, name, a, &image, err);

	if (code < 0)
		return err_wrap(err, code, "failed to resolve image \"" STR_FMT "\"", STR_ARG(name));
	if ((code = mount_root(c, container_image_key(a, c->id, i), &image, label, a, ret, err)) < 0)
		return code;
	return path.n ? sub_path(*ret, path, a, ret, err) : 0;
}

static int mount_images(struct container *c, str label, struct arena *a, const char *const **ret, struct err *err)
{
	struct val mounts = val_get(container_config(c), mounts);
	const char **paths = ARENA_ARRAY(a, const char *, val_len(mounts) + 1);
	int r = 0;

	for (size_t i = 0; i < val_len(mounts) && r == 0; i++) {
		struct val m = val_at(mounts, i);
		paths[i] = NULL;
		if (val_str(m, image, image).n)
			r = mount_image(c, i, m, label, a, &paths[i], err);
	}
	*ret = paths;
	return r < 0 ? err_wrap(err, r, "failed to mount image volume") : 0;
}

/* ---- the bundle ---- */

struct bundle_work {
	struct config_input *in;
	struct arena *arena;
	struct val config_json;
};

/* In the thread pool: it looks at many files of the node and of the image. */
static int make_config(void *arg, struct err *err)
{
	struct bundle_work *w = arg;
	struct config_input *in = w->in;
	int tree = path_open_tree(in->root, err);

	if (tree < 0)
		return tree;
	struct val security = val_get(in->config, linux, securityContext);
	int r = config_user_find(tree, security, val_str(in->image, User), w->arena, &in->user, err);
	(void)close(tree);
	return r < 0 ? r : config_json_container(in, w->arena, &w->config_json, err);
}

static int write_config(const struct container *c, struct arena *a, struct val config_json, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	struct json_encode_options plain = { .plain = true };
	int r = json_encode(&b, config_json, &plain, err);

	return r < 0 ? r : store_write_file(runtime_text(a, "%s/config.json", container_folder(c, a)), buf_str(&b), 0600, err);
}

static struct val user_record(struct arena *a, const struct config_user *u)
{
	struct val_builder groups = val_builder(a);

	for (size_t i = 0; i < u->n_groups; i++)
		val_add_item(&groups, val_of_int(u->groups[i]));
	return OBJECT(a, F(uid, val_of_int(u->uid)), F(gid, val_of_int(u->gid)), F(supplementalGroups, val_end_list(&groups)));
}

static int target_pid(struct sandbox *s, struct val options, pid_t *ret, struct err *err)
{
	CLEANUP(container_unrefp) struct container *target = NULL;
	str id = val_str(options, targetId);

	*ret = 0;
	if (!runtime_is(val_get(options, pid), "TARGET"))
		return 0;
	if (container_find(s->runtime, id, &target, err) < 0)
		return err_wrap(err, -ERR_NOT_FOUND, "invalid target container: container \"" STR_FMT "\" does not exist", STR_ARG(id));
	if (target->sandbox != s)
		return err_set(err, ERR_INTERNAL, "invalid target container: container \"%s\" (sandbox %s) does not belong to sandbox %s",
			       target->id, target->sandbox->id, s->id);
	if (container_state(target) != CONTAINER_RUNNING)
		return err_set(err, ERR_INTERNAL, "invalid target container: container \"%s\" is not running - in state %s",
			       target->id, container_state_name(container_state(target)));
	*ret = target->pid;
	return 0;
}

static int make(struct container *c, const struct image *image, struct arena *a, struct err *err)
{
	struct val record = container_record(c), config = container_config(c);
	struct config_input in = { .sandbox = c->sandbox, .config = config, .image = val_get(image->config, config),
				   .image_name = val_str(record, imageName), .id = c->id, .folder = container_folder(c, a),
				   .cgroup = arena_str(a, val_str(record, cgroup)).p };
	struct bundle_work work = { &in, a, VAL_EMPTY };
	struct val security = val_get(config, linux, securityContext);
	int r;

	if ((r = config_selinux(a, val_get(security, selinuxOptions), val_get(sandbox_security(c->sandbox), selinuxOptions), &in.labels,
				err)) < 0)
		return err_wrap(err, r, "failed to generate container \"%s\" spec", c->id);
	if ((r = config_apparmor_load(c->runtime, security, err)) < 0 || (r = config_apparmor(security, &in.apparmor, err)) < 0)
		return err_wrap(err, r, "failed to get container spec opts");
	if ((r = target_pid(c->sandbox, val_get(security, namespaceOptions), &in.target_pid, err)) < 0 ||
	    (r = mount_root(c, str_of(c->id), image, in.labels.files, a, &in.root, err)) < 0 ||
	    (r = mount_images(c, in.labels.files, a, &in.image_mounts, err)) < 0)
		return err_wrap(err, r, "failed to create containerd container");
	if ((r = fiber_blocking(make_config, &work, err)) < 0)
		return err_wrap(err, r, "failed to generate container \"%s\" spec", c->id);
	if ((r = write_config(c, a, work.config_json, err)) < 0)
		return r;
	struct frozen *old = c->record;
	c->record = val_freeze(val_with(a, record, user_record(a, &in.user), user));
	frozen_unref(old);
	c->made = true;
	return container_save(c, err);
}

/* ---- all of it ---- */

static str log_path(struct arena *a, struct val config, struct val sandbox_config)
{
	str folder = val_str(sandbox_config, logDirectory), path = val_str(config, logPath);

	return folder.n && path.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(path)) : STR_NONE;
}

/* With its own PID namespace, the end of the first process is the end of all. */
static bool shares_pids(struct val config)
{
	return !runtime_is(val_get(config, linux, securityContext, namespaceOptions, pid), "CONTAINER");
}

static struct val record_of(struct sandbox *s, const char *id, str name, struct val config, struct val sandbox_config,
			    const struct image *image, struct arena *a)
{
	const char *cgroup = runtime_text(a, "%s/%s", sandbox_cgroup(s, a), id);

	return OBJECT(a, F(id, VAL_STR(str_of(id))), F(name, VAL_STR(name)), F(podSandboxId, VAL_STR(str_of(s->id))),
		      F(state, VAL_LIT("creating")), F(createdAt, val_of_int(clock_wall_ns())), F(config, config),
		      F(imageId, VAL_STR(image->id)), F(imageRef, image->n_digests ? VAL_STR(image->digests[0]) : VAL_EMPTY),
		      F(imageName, image->n_tags ? VAL_STR(image->tags[0]) : val_get(config, image, image)),
		      F(logPath, VAL_STR(log_path(a, config, sandbox_config))),
		      F(stopSignal, val_get(image->config, config, StopSignal)), F(resources, val_get(config, linux, resources)),
		      F(cgroup, VAL_STR(str_of(cgroup))), F(killAll, val_of_bool(shares_pids(config))));
}

static void undo(struct container *c, str name)
{
	struct err err = ERR_INIT;
	SHIELD_SCOPE();
	DEADLINE_SCOPE(CLEAR_MS);

	c->removing = true;
	if (container_clear(c, &err) < 0)
		log_error("a container that failed cannot be removed; the next start will try again", KV("container", c->id),
			  KV("err", &err));
	runtime_name_release(c->runtime, name);
}

static int check(struct sandbox *s, struct val config, struct val sandbox_config, struct err *err)
{
	if (s->state != SANDBOX_READY)
		return err_set(err, ERR_INTERNAL, "sandbox container \"%s\" is not running", s->id);
	if (val_is_nil(val_get(config, metadata)))
		return err_set(err, ERR_INTERNAL, "container config must include metadata");
	if (val_is_nil(val_get(sandbox_config, metadata)))
		return err_set(err, ERR_INTERNAL, "pod sandbox config must include metadata");
	str signal = val_str(config, stopSignal);
	if (signal.n && !str_eq(signal, STR("RUNTIME_DEFAULT")) && signal_parse(signal) < 0)
		return err_set(err, ERR_INTERNAL, "unknown stop signal " STR_FMT, STR_ARG(signal));
	return 0;
}

int container_create(struct sandbox *s, struct val config, struct val sandbox_config, char ret_id[RUNTIME_ID + 1], struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime *rt = s->runtime;
	str wanted = val_str(config, image, image);
	struct image image;
	int r = check(s, config, sandbox_config, err);

	if (r < 0)
		return r;
	runtime_id_make(ret_id);
	str name = name_of(&a, val_get(config, metadata), val_get(sandbox_config, metadata));
	if ((r = image_find(rt->images, wanted, &a, &image, err)) < 0)
		return err_wrap(err, r, "failed to resolve image \"" STR_FMT "\"", STR_ARG(wanted));
	if (!runtime_name_reserve(rt, name, ret_id, err))
		return err_wrap(err, -ERR_INTERNAL, "failed to reserve container name \"" STR_FMT "\"", STR_ARG(name));
	CLEANUP(container_unrefp) struct container *c =
		container_new(s, record_of(s, ret_id, name, config, sandbox_config, &image, &a));
	if ((r = file_make_dirs(container_folder(c, &a), 0700, err)) < 0 || (r = make(c, &image, &a, err)) < 0) {
		undo(c, name);
		return r;
	}
	if (s->state != SANDBOX_READY) { /* it ended meanwhile */
		undo(c, name);
		return err_set(err, ERR_INTERNAL, "sandbox container \"%s\" is not running", s->id);
	}
	container_add(c);
	events_tell_container(c, EVENT_CREATED);
	return 0;
}

int container_clear(struct container *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime *rt = c->runtime;
	struct val mounts = val_get(container_config(c), mounts);
	int r = container_save(c, err);

	for (size_t i = 0; i < val_len(mounts) && r == 0; i++)
		if (val_str(val_at(mounts, i), image, image).n)
			r = snapshot_remove(rt->snapshots, container_image_key(&a, c->id, i), err);
	if (r == 0)
		r = snapshot_remove(rt->snapshots, str_of(c->id), err);
	if (r == 0) /* one whose monitor was killed could not delete it there */
		r = store_remove(runtime_text(&a, "%s/oci", rt->o.state), c->id, err);
	if (r == 0)
		r = store_remove(runtime_text(&a, "%s/containers", rt->o.root), c->id, err);
	return r;
}
