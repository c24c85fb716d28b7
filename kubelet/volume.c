/*
 * Which volumes pods have. A pod's entry remembers what was set up, so that containers can be given their mounts; it is filled by
 * volumes_mount, also after a restart, since setting up finds what is there already. Volumes that no container uses are left alone.
 */
#include "kubelet/volume.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"
#include "machinery/node_selector.h"
#include "machinery/resources.h"

enum { MESSAGE_MAX = 1024 };

/* One call at a time per pod. */
struct pod_volumes {
	struct volumes *all;
	char *uid;
	struct arena arena;              /* of the volumes */
	struct volume *volumes, **end;
	struct map by_name;
	str claiming;                    /* the PersistentVolume that is being set up; "" if there is none */
	bool busy, gone;
	unsigned users;
	struct fiber_cond turn;
};

struct volumes {
	struct volumes_options options;
	char *root;                      /* without links: mountinfo shows it so */
	struct map pods, tokens;
	struct volume_remote *remote;
};

/* ---- life ---- */

struct volumes *volumes_new(const struct volumes_options *o)
{
	struct volumes *v = mem_zalloc(sizeof *v);
	struct arena a = ARENA_INIT;
	const char *root = arena_str(&a, o->node->root).p;

	v->options = *o;
	(void)file_make_dirs(root, 0755, NULL);
	v->root = realpath(root, NULL);
	if (!v->root) {
		v->root = mem_alloc(o->node->root.n + 1);
		memcpy(v->root, root, o->node->root.n + 1);
	}
	map_init(&v->pods);
	map_init(&v->tokens);
	v->remote = volume_remote_new();
	arena_done(&a);
	return v;
}

static void pod_free(struct pod_volumes *p)
{
	map_done(&p->by_name);
	arena_done(&p->arena);
	free(p->uid);
	free(p);
}

void volumes_free(struct volumes *v)
{
	struct map_iter it = map_iter(&v->pods);
	struct pod_volumes *p;

	while ((p = map_next(&it, NULL)))
		pod_free(p);
	volume_tokens_forget(v, STR_NONE);
	map_done(&v->pods);
	map_done(&v->tokens);
	volume_remote_free(v->remote);
	free(v->root);
	free(v);
}

const struct volumes_options *volumes_options(const struct volumes *v) { return &v->options; }
struct map *volumes_tokens(struct volumes *v) { return &v->tokens; }

const char *volumes_pod_folder(const struct volumes *v, struct arena *a, str uid)
{
	return arena_printf(a, "%s/pods/" STR_FMT, v->root, STR_ARG(uid)).p;
}

/* ---- small things ---- */

void volumes_event(const struct volumes *v, struct val pod, const char *reason, str message)
{
	const struct kubelet_hooks *h = v->options.node->hooks;

	if (h && h->event)
		h->event(h->arg, pod, true, reason, message);
}

bool volume_name_ok(str name)
{
	return name.n > 0 && name.n <= 255 && !str_eq(name, STR(".")) && !str_eq(name, STR("..")) && str_chr(name, '/') < 0 &&
	       !memchr(name.p, '\0', name.n);
}

int volume_fail(struct err *err, int sys, const char *call, const char *path)
{
	const char *text = strerrordesc_np(sys) ? strerrordesc_np(sys) : "unknown error";
	int r = -err_sys(NULL, sys, "%s", call);

	err_set(err, (enum err_code)r, "%s %s: %c%s", call, path, tolower((unsigned char)text[0]), text + 1);
	if (err)
		err->sys = sys;
	return -r;
}

void volume_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int volume_make_folder(const struct volume_setup *s, mode_t mode, struct err *err)
{
	const char *volumes = arena_printf(s->arena, "%s/volumes", s->pod_folder).p;
	const char *plugin = arena_printf(s->arena, "%s/%s", volumes, s->volume->kind->folder).p, *path = s->volume->path;
	struct stat st;
	int r = file_make_dirs(s->pod_folder, 0750, err);

	if (r == 0)
		r = file_make_dirs(volumes, 0750, err);
	if (r == 0)
		r = file_make_dirs(plugin, 0755, err);
	if (r < 0)
		return r;
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return volume_fail(err, errno, "mkdir", path);
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return volume_fail(err, ENOTDIR, "mkdir", path);
	if ((st.st_mode & 0777) != mode && chmod(path, mode) < 0)
		return volume_fail(err, errno, "chmod", path);
	return 0;
}

/* ---- pods ---- */

static struct pod_volumes *pod_new(struct volumes *v, str uid)
{
	struct pod_volumes *p = mem_zalloc(sizeof *p);

	p->all = v;
	p->uid = mem_alloc(uid.n + 1);
	memcpy(p->uid, uid.p, uid.n);
	p->uid[uid.n] = '\0';
	arena_init(&p->arena);
	map_init(&p->by_name);
	p->end = &p->volumes;
	fiber_cond_init(&p->turn, "the volumes of a pod");
	map_put(&v->pods, str_of(p->uid), p);
	return p;
}

/* An entry that says nothing is not kept. */
static void pod_unuse(struct pod_volumes *p)
{
	if (--p->users > 0 || (p->volumes && !p->gone))
		return;
	if (!p->gone)
		(void)map_remove(&p->all->pods, str_of(p->uid));
	pod_free(p);
}

/* (suspends) The pod's entry, for the caller alone until pod_give. */
static int pod_take(struct volumes *v, str uid, struct pod_volumes **ret, struct err *err)
{
	if (!volume_name_ok(uid))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is no uid of a pod", STR_ARG(uid));
	for (;;) {
		struct pod_volumes *p = map_get(&v->pods, uid);
		if (!p)
			p = pod_new(v, uid);
		p->users++;
		if (!p->busy) {
			p->busy = true;
			*ret = p;
			return 0;
		}
		int r = fiber_cond_wait(&p->turn, err);
		pod_unuse(p);
		if (r < 0)
			return r;
	}
}

static void pod_give(struct pod_volumes **p)
{
	if (!*p)
		return;
	(*p)->busy = false;
	fiber_cond_broadcast(&(*p)->turn); /* not one: when the entry is gone, each has to look for the new one */
	pod_unuse(*p);
}

bool volumes_used_elsewhere(const struct volumes *v, str uid, str persistent)
{
	struct map_iter it = map_iter(&v->pods);
	struct pod_volumes *p;
	str key;

	while ((p = map_next(&it, &key)))
		if (!str_eq(key, uid))
			for (const struct volume *x = p->volumes; x; x = x->next)
				if (x->persistent && str_eq(x->inner, persistent))
					return true;
	return false;
}

/* Whether another pod is setting it up right now. */
static bool claimed_elsewhere(const struct volumes *v, str uid, str persistent)
{
	struct map_iter it = map_iter(&v->pods);
	struct pod_volumes *p;
	str key;

	while ((p = map_next(&it, &key)))
		if (!str_eq(key, uid) && p->claiming.n && str_eq(p->claiming, persistent))
			return true;
	return false;
}

/* ---- from specs to volumes ---- */

static const struct {
	atom source;
	const struct volume_kind *kind;
	bool in_pod, persistent;
} kinds[] = {
	{ A_emptyDir, &volume_kind_empty_dir, true, false },
	{ A_configMap, &volume_kind_config_map, true, false },
	{ A_secret, &volume_kind_secret, true, false },
	{ A_projected, &volume_kind_projected, true, false },
	{ A_downwardAPI, &volume_kind_downward, true, false },
	{ A_hostPath, &volume_kind_host_path, true, true },
	{ A_image, &volume_kind_image, true, false },
	{ A_nfs, &volume_kind_nfs, true, true },
	{ A_local, &volume_kind_local, false, true },
	{ A_csi, &volume_kind_csi, true, true },
};

static const atom container_lists[] = { A_initContainers, A_containers, A_ephemeralContainers };

static void add_names(struct map *m, struct val list)
{
	VAL_EACH(item, list)
		map_put(m, val_str(*item, name), m);
}

/* The user that all containers run as, if there is one: files for the pod alone are his. */
static int64_t pod_user(struct val pod)
{
	int64_t user = -1;

	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), container_lists[i])) {
			struct val own = val_get(*c, securityContext, runAsUser);
			if (!val_exists(own))
				own = val_get(pod, spec, securityContext, runAsUser);
			if (!val_exists(own) || (user >= 0 && user != val_as_int(own)))
				return -1;
			user = val_as_int(own);
		}
	return user;
}

/* What pods can have of the node's memory; 0: not known. */
static int64_t node_memory(const struct kubelet_node *n)
{
	struct val known = val_get(n->allocatable, memory);
	return val_exists(known) ? quantity_value(quantity_of(known)) : n->memory_bytes;
}

/* What one call of volumes_mount or volumes_refresh is about. */
struct sync {
	struct volumes *all;
	struct arena *arena;
	struct pod_volumes *pod;
	struct val object, node;
	struct map mounted, devices;     /* names of the volumes that containers use so */
	int64_t fs_user;
	bool only_content;
	int failed;                      /* of a volume that cannot be set up: err is the first */
	str *unresolved, unresolved_why; /* names of those that cannot even be resolved */
	size_t n_unresolved;
	int unresolved_result;
	struct err *err;
};

/* (suspends) Kind, source and names of a volume. */
static int resolve(struct sync *y, struct val volume, struct volume_setup *s, struct err *err)
{
	bool mounted = map_get(&y->mounted, s->volume->name), device = map_get(&y->devices, s->volume->name);
	struct val from = volume;
	bool claimed = val_has(volume, persistentVolumeClaim) || val_has(volume, ephemeral);

	s->volume->inner = s->volume->name;
	if (claimed) {
		int r = volume_claim_resolve(y->all, y->arena, y->object, volume, mounted, device, &s->persistent,
					     &s->volume->readonly, err);
		if (r < 0)
			return r;
		from = val_get(s->persistent, spec);
		s->volume->inner = val_str(s->persistent, metadata, name);
		s->volume->persistent = true;
		(void)str_to_i64(val_as_str(val_find(val_get(s->persistent, metadata, annotations), STR("pv.beta.kubernetes.io/gid"))),
				 &s->volume->group);
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds) && !s->volume->kind; i++) {
		s->source = val_member(from, kinds[i].source);
		if (val_exists(s->source) && (claimed ? kinds[i].persistent : kinds[i].in_pod))
			s->volume->kind = kinds[i].kind;
	}
	if (device && s->volume->kind)
		s->volume->kind = s->volume->kind == &volume_kind_local ? &volume_kind_local_block : NULL;
	if (!s->volume->kind || !volume_name_ok(s->volume->inner))
		return err_set(err, ERR_INVALID, "failed to get Plugin from volumeSpec for volume \"" STR_FMT "\" err=no volume plugin matched",
			       STR_ARG(s->volume->inner));
	return 0;
}

/* Whether this node and this pod may have the PersistentVolume. */
static int check_persistent(struct sync *y, struct volume_setup *s, struct err *err)
{
	struct val spec = val_get(s->persistent, spec), modes = val_get(spec, accessModes), required = val_get(spec, nodeAffinity, required);
	struct node_selector selector;

	bool device = s->volume->kind->device;

	s->failed = device ? "MapVolume.NodeAffinity check failed" : "MountVolume.NodeAffinity check failed";
	if (val_exists(y->node) && val_exists(required)) {
		node_selector_compile(y->arena, required, NULL, &selector);
		int r = node_selector_matches(&selector, y->node, err);
		if (r <= 0)
			return r < 0 ? r : err_set(err, ERR_FORBIDDEN, "no matching NodeSelectorTerms");
	}
	s->failed = "MountVolume.MountOptionSupport check failed";
	if (val_len(val_get(spec, mountOptions)) && !s->volume->kind->mount_options && !device)
		return err_set(err, ERR_INVALID, "mount options are not supported for this volume type");
	s->failed = device ? "MapVolume.SetUpDevice failed" : "MountVolume.SetUp failed";
	s->first = !volumes_used_elsewhere(y->all, str_of(y->pod->uid), s->volume->inner);
	if ((!s->first || claimed_elsewhere(y->all, str_of(y->pod->uid), s->volume->inner)) && val_len(modes) == 1 &&
	    str_eq(val_as_str(val_at(modes, 0)), STR("ReadWriteOncePod")))
		return err_set(err, ERR_CONFLICT, "volume uses the ReadWriteOncePod access mode and is already in use by another pod");
	y->pod->claiming = s->volume->inner; /* nothing has suspended since the look */
	return 0;
}

static int set_up_in_thread(void *arg, struct err *err)
{
	struct volume_setup *s = arg;
	return s->volume->kind->set_up(s, err);
}

/* (suspends) */
static int set_up(struct sync *y, struct volume_setup *s, struct err *err)
{
	const struct volume_kind *k = s->volume->kind;
	int r = val_exists(s->persistent) ? check_persistent(y, s, err) : 0;

	if (k->folder)
		s->volume->path = arena_printf(y->arena, "%s/%s/%s/" STR_FMT, s->pod_folder, k->device ? "volumeDevices" : "volumes",
					       k->folder, STR_ARG(s->volume->inner)).p;
	else if (val_has(s->source, path))
		s->volume->path = arena_str(y->arena, val_str(s->source, path)).p;
	if (r == 0 && k->prepare)
		r = k->prepare(s, err);
	if (r == 0 && k->set_up)
		r = fiber_blocking(set_up_in_thread, s, err);
	return r;
}

static struct volume_setup setup_init(struct sync *y, struct volume *volume)
{
	struct val security = val_get(y->object, spec, securityContext);

	return (struct volume_setup){
		.all = y->all, .arena = y->arena, .pod = y->object, .volume = volume, .failed = "MountVolume.SetUp failed", .first = true,
		.pod_folder = volumes_pod_folder(y->all, y->arena, str_of(y->pod->uid)),
		.node_memory = node_memory(y->all->options.node),
		.fs_group = val_has(security, fsGroup) ? val_int(security, fsGroup) : -1, .fs_user = y->fs_user,
		.content = { .arena = y->arena },
	};
}

/* The volume as it is kept with the pod. */
static void keep(struct pod_volumes *p, const struct volume *from)
{
	struct volume *v = ARENA_NEW(&p->arena, struct volume);

	*v = *from;
	v->next = NULL;
	v->name = arena_str(&p->arena, from->name);
	v->inner = arena_str(&p->arena, from->inner);
	v->path = from->path ? arena_str(&p->arena, str_of(from->path)).p : NULL;
	v->image = val_copy(&p->arena, from->image);
	*p->end = v;
	p->end = &v->next;
	map_put(&p->by_name, v->name, v);
}

/* The text with one more part; as long as it still fits into a message. */
static str append(struct arena *a, str text, const char *separator, str part)
{
	if (text.n > MESSAGE_MAX)
		return text;
	return text.n ? arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(text), separator, STR_ARG(part)) : part.n ? arena_str(a, part) : part;
}

/* The first failure is the result of the call, for which the caller tells an event; the others have theirs at once. */
static void tell_failed(struct sync *y, int r, str message)
{
	if (y->failed)
		volumes_event(y->all, y->object, "FailedMount", message);
	else
		y->failed = err_set(y->err, (enum err_code)-r, STR_FMT, STR_ARG(message));
}

/* (suspends) */
static void sync_volume(struct sync *y, struct val volume)
{
	struct volume v = { .name = val_str(volume, name), .group = -1 };
	struct volume_setup s = setup_init(y, &v);
	struct err err = ERR_INIT;
	bool claimed = val_has(volume, persistentVolumeClaim) || val_has(volume, ephemeral);
	int r = y->only_content && claimed ? 0 : resolve(y, volume, &s, &err);

	if (r < 0) {
		y->unresolved_why = append(y->arena, y->unresolved_why, "; ", err_str(&err));
		y->unresolved[y->n_unresolved++] = v.name;
		y->unresolved_result = r;
		return;
	}
	if (y->only_content && (claimed || !v.kind->content || !map_get(&y->pod->by_name, v.name)))
		return;
	s.on_root_mismatch = val_exists(s.persistent) &&
			     str_eq(val_str(y->object, spec, securityContext, fsGroupChangePolicy), STR("OnRootMismatch"));
	r = set_up(y, &s, &err);
	if (r == 0 && !map_get(&y->pod->by_name, v.name))
		keep(y->pod, &v);
	y->pod->claiming = STR_NONE; /* its text is of this call's arena */
	if (r < 0)
		tell_failed(y, r, arena_printf(y->arena, "%s for volume \"" STR_FMT "\" : %s", s.failed, STR_ARG(v.inner), err.msg));
}

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

static void tell_unresolved(struct sync *y)
{
	str names = STR_NONE;

	qsort(y->unresolved, y->n_unresolved, sizeof *y->unresolved, by_text);
	for (size_t i = 0; i < y->n_unresolved; i++)
		names = append(y->arena, names, " ", y->unresolved[i]);
	tell_failed(y, y->unresolved_result,
		    arena_printf(y->arena, "Unable to attach or mount volumes: unmounted volumes=[" STR_FMT "], unattached volumes=[], failed to "
				 "process volumes=[" STR_FMT "]: " STR_FMT, STR_ARG(names), STR_ARG(names), STR_ARG(y->unresolved_why)));
}

/* (suspends) */
static int sync_pod(struct sync *y)
{
	struct val volumes = val_get(y->object, spec, volumes);

	y->unresolved = ARENA_ARRAY(y->arena, str, val_len(volumes) + 1);
	VAL_EACH(volume, volumes) {
		str name = val_str(*volume, name);
		if (map_get(&y->mounted, name) || map_get(&y->devices, name))
			sync_volume(y, *volume);
		int r = fiber_check(y->err);
		if (r < 0)
			return r;
	}
	if (y->n_unresolved)
		tell_unresolved(y);
	return y->failed;
}

/* (suspends) */
static int sync_all(struct volumes *v, struct val pod, bool only_content, struct err *err)
{
	CLEANUP(pod_give) struct pod_volumes *p = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = pod_take(v, val_str(pod, metadata, uid), &p, err);

	if (r < 0)
		return r;
	struct sync y = { .all = v, .arena = &a, .pod = p, .object = pod, .fs_user = pod_user(pod),
			  .only_content = only_content, .err = err };
	if (v->options.node_object)
		y.node = v->options.node_object(v->options.arg, &a);
	map_init(&y.mounted);
	map_init(&y.devices);
	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++)
		VAL_EACH(c, val_member(val_get(pod, spec), container_lists[i])) {
			add_names(&y.mounted, val_get(*c, volumeMounts));
			add_names(&y.devices, val_get(*c, volumeDevices));
		}
	r = sync_pod(&y);
	map_done(&y.mounted);
	map_done(&y.devices);
	return r;
}

int volumes_mount(struct volumes *v, struct val pod, struct err *err) { return sync_all(v, pod, false, err); }

/* Of a pod that has been unmounted meanwhile nothing is made anew. */
int volumes_refresh(struct volumes *v, struct val pod, struct err *err)
{
	return map_get(&v->pods, val_str(pod, metadata, uid)) ? sync_all(v, pod, true, err) : 0;
}

/* ---- mounts of containers ---- */

struct sub_path_call {
	struct arena *arena;
	const char *pod_folder, *path;
	const struct volume *volume;
	str container, sub_path;
	size_t index;
};

static int sub_path_in_thread(void *arg, struct err *err)
{
	struct sub_path_call *c = arg;
	return volume_sub_path(c->arena, c->pod_folder, c->volume, c->container, c->index, c->sub_path, &c->path, err);
}

static int propagation(struct val mount, str *ret, struct err *err)
{
	str mode = val_str(mount, mountPropagation);

	if (!mode.n || str_eq(mode, STR("None")))
		*ret = STR("PROPAGATION_PRIVATE");
	else if (str_eq(mode, STR("HostToContainer")))
		*ret = STR("PROPAGATION_HOST_TO_CONTAINER");
	else if (str_eq(mode, STR("Bidirectional")))
		*ret = STR("PROPAGATION_BIDIRECTIONAL");
	else
		return err_set(err, ERR_INVALID, "invalid MountPropagation mode: \"" STR_FMT "\"", STR_ARG(mode));
	return 0;
}

static int recursive_readonly(const struct volumes *v, struct val pod, struct val mount, bool *ret, struct err *err)
{
	str mode = val_str(mount, recursiveReadOnly), name = val_str(mount, name), spread = val_str(mount, mountPropagation);
	bool can = v->options.recursive_readonly && v->options.recursive_readonly(v->options.arg, pod);

	*ret = false;
	if (!mode.n || str_eq(mode, STR("Disabled")))
		return 0;
	if (!val_bool(mount, readOnly))
		return err_set(err, ERR_INVALID, "failed to resolve recursive read-only mode: volume \"" STR_FMT "\" requested recursive "
			       "read-only mode, but it is not read-only", STR_ARG(name));
	if (spread.n && !str_eq(spread, STR("None")))
		return err_set(err, ERR_INVALID, "failed to resolve recursive read-only mode: volume \"" STR_FMT "\" requested recursive "
			       "read-only mode, but it is not compatible with propagation \"" STR_FMT "\"", STR_ARG(name), STR_ARG(spread));
	if (!str_eq(mode, STR("IfPossible")) && !str_eq(mode, STR("Enabled")))
		return err_set(err, ERR_INVALID, "failed to resolve recursive read-only mode: unknown recursive read-only mode \"" STR_FMT "\"",
			       STR_ARG(mode));
	if (!can && str_eq(mode, STR("Enabled")))
		return err_set(err, ERR_INVALID, "failed to resolve recursive read-only mode: volume \"" STR_FMT "\" requested recursive "
			       "read-only mode, but it is not supported by the runtime", STR_ARG(name));
	*ret = can;
	return 0;
}

static bool selinux_is_on(void) { return access("/sys/fs/selinux/enforce", F_OK) == 0; }

/* (suspends) */
static int mount_of(struct volumes *v, struct val pod, struct val mount, struct val env, struct sub_path_call *c, struct cri_mount *ret,
		    struct err *err)
{
	const struct volume *x = c->volume;
	str path = val_str(mount, mountPath);
	int r = volume_sub_path_text(c->arena, mount, env, &c->sub_path, err);

	if (r < 0)
		return r;
	*ret = (struct cri_mount){
		.container_path = str_starts(path, STR("/")) ? path : arena_join(c->arena, STR("/"), path),
		.readonly = x->readonly || x->kind->readonly || val_bool(mount, readOnly),
		.selinux_relabel = x->kind->managed && !x->readonly && selinux_is_on(),
		.image = val_copy(c->arena, x->image),
	};
	if (val_exists(x->image)) {
		ret->image_sub_path = c->sub_path;
	} else {
		c->path = arena_str(c->arena, str_of(x->path)).p;
		if (c->sub_path.n && (r = fiber_blocking(sub_path_in_thread, c, err)) < 0)
			return r;
		ret->host_path = str_of(c->path);
	}
	if ((r = propagation(mount, &ret->propagation, err)) < 0)
		return r;
	return recursive_readonly(v, pod, mount, &ret->recursive_readonly, err);
}

int volumes_of_container(struct volumes *v, struct arena *a, struct val pod, struct val container, struct val env, struct cri_mount **ret,
			 size_t *ret_n, struct err *err)
{
	CLEANUP(pod_give) struct pod_volumes *p = NULL;
	struct val mounts = val_get(container, volumeMounts);
	struct cri_mount *all = ARENA_ARRAY(a, struct cri_mount, val_len(mounts) + 1);
	str name = val_str(container, name);
	size_t n = 0;
	int r = pod_take(v, val_str(pod, metadata, uid), &p, err);

	if (r == 0 && !volume_name_ok(name))
		r = err_set(err, ERR_INVALID, "\"" STR_FMT "\" is no name of a container", STR_ARG(name));
	if (r < 0)
		return r;
	VAL_EACH(m, mounts) {
		struct sub_path_call call = { .arena = a, .pod_folder = volumes_pod_folder(v, a, str_of(p->uid)),
					      .volume = map_get(&p->by_name, val_str(*m, name)), .container = name, .index = n };
		if (!call.volume)
			return err_set(err, ERR_NOT_FOUND, "cannot find volume \"" STR_FMT "\" to mount into container \"" STR_FMT "\"",
				       STR_ARG(val_str(*m, name)), STR_ARG(name));
		if ((r = mount_of(v, pod, *m, env, &call, &all[n++], err)) < 0)
			return r;
	}
	*ret = all;
	*ret_n = n;
	return 0;
}

int volumes_devices_of_container(struct volumes *v, struct arena *a, struct cri_container_input *in, struct err *err)
{
	const struct pod_volumes *p = map_get(&v->pods, val_str(in->pod, metadata, uid));
	struct val list = val_exists(in->devices) ? in->devices : VAL_EMPTY_LIST;

	VAL_EACH(device, val_get(in->container, volumeDevices)) {
		str path = val_str(*device, devicePath), name = val_str(*device, name);
		const struct volume *x = p ? map_get(&p->by_name, name) : NULL;
		if (!str_starts(path, STR("/")))
			return err_set(err, ERR_INVALID, "error DevicePath `" STR_FMT "` must be an absolute path", STR_ARG(path));
		if (!x || !x->kind->device)
			return err_set(err, ERR_NOT_FOUND, "cannot find volume \"" STR_FMT "\" to pass into container \"" STR_FMT "\"",
				       STR_ARG(name), STR_ARG(val_str(in->container, name)));
		list = val_list_append(a, list, OBJECT(a, F(containerPath, VAL_STR(path)),
						       F(hostPath, VAL_STR(arena_str(a, str_of(x->path)))),
						       F(permissions, x->readonly ? VAL_LIT("r") : VAL_LIT("mrw"))));
	}
	if (val_len(list))
		in->devices = list;
	return 0;
}

struct val volumes_groups(struct volumes *v, struct arena *a, struct val pod)
{
	const struct pod_volumes *p = map_get(&v->pods, val_str(pod, metadata, uid));
	struct val_builder b = val_builder(a);

	for (const struct volume *x = p ? p->volumes : NULL; x; x = x->next) {
		bool has = x->group < 0;
		VAL_EACH(group, val_get(pod, spec, securityContext, supplementalGroups))
			has = has || val_as_int(*group) == x->group;
		if (!has)
			val_add_item(&b, val_of_int(x->group));
	}
	return val_end_list(&b);
}

/* ---- the end ---- */

struct removal {
	const char *root, *uid;
};

static int remove_in_thread(void *arg, struct err *err)
{
	struct removal *m = arg;
	return volume_remove_pod(m->root, m->uid, err);
}

int volumes_unmount(struct volumes *v, str pod_uid, struct err *err)
{
	CLEANUP(pod_give) struct pod_volumes *p = NULL;
	int r = pod_take(v, pod_uid, &p, err);

	if (r < 0)
		return r;
	r = fiber_blocking(remove_in_thread, &(struct removal){ v->root, p->uid }, err);
	if (r < 0)
		return r;
	volume_tokens_forget(v, str_of(p->uid));
	(void)map_remove(&v->pods, str_of(p->uid));
	p->gone = true;
	return 0;
}

struct val volumes_pods(struct volumes *v, struct arena *a)
{
	struct val_builder b = val_builder(a);
	DIR *dir = opendir(arena_printf(a, "%s/pods", v->root).p);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			val_add_item(&b, VAL_STR(arena_str(a, str_of(d->d_name))));
	if (dir)
		closedir(dir);
	return val_end_list(&b);
}

/* ---- usage ---- */

struct usage_call {
	struct volume volume;
	struct volume_size size;
};

static int usage_in_thread(void *arg, struct err *err)
{
	struct usage_call *c = arg;
	return volume_usage(&c->volume, &c->size, err);
}

/* (suspends) */
static int usage_of(struct volumes *v, struct usage_call *c, struct err *err)
{
	if (c->volume.kind->remote)
		return volume_remote_usage(v->remote, volume_usage, &c->volume, &c->size, err);
	return fiber_blocking(usage_in_thread, c, err);
}

/* Others go on meanwhile: a pod with very many files can still be removed. */
int volumes_usage(struct volumes *v, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	const struct pod_volumes *p = map_get(&v->pods, val_str(pod, metadata, uid));
	struct val_builder b = val_builder(a);
	struct usage_call *calls;
	size_t n = 0, at = 0;

	for (const struct volume *x = p ? p->volumes : NULL; x; x = x->next)
		n += x->kind->folder && !x->kind->device;
	calls = ARENA_ARRAY(a, struct usage_call, n + 1);
	for (const struct volume *x = p ? p->volumes : NULL; x; x = x->next)
		if (x->kind->folder && !x->kind->device)
			calls[at++] = (struct usage_call){ .volume = { .kind = x->kind, .name = arena_str(a, x->name),
								       .path = arena_str(a, str_of(x->path)).p } };
	for (size_t i = 0; i < n; i++) {
		int r = usage_of(v, &calls[i], err);
		if (r == -ERR_NOT_FOUND || (r == -ERR_UNAVAILABLE && calls[i].volume.kind->remote))
			continue;
		if (r < 0)
			return r;
		const struct volume_size *size = &calls[i].size;
		val_add_item(&b, OBJECT(a, F(name, VAL_STR(calls[i].volume.name)), F(usedBytes, val_of_int(size->bytes)),
					F(inodesUsed, val_of_int(size->inodes)), F(capacityBytes, val_of_int(size->capacity)),
					F(availableBytes, val_of_int(size->available)), F(inodes, val_of_int(size->all_inodes)),
					F(inodesFree, val_of_int(size->free_inodes))));
	}
	*ret = val_end_list(&b);
	return 0;
}
