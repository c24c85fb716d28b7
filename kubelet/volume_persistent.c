/*
 * From a claim to its PersistentVolume, and the kinds of volumes that only have those: local (a folder or a disk of the node, mounted
 * where the pod's volumes are) and nfs (by the mount program, which knows the helper and its options).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/path.h"
#include "base/process.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"

enum { OPTIONS_MAX = 64 << 10 };

/* ---- claims ---- */

static bool list_has(struct val list, str text)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), text))
			return true;
	return false;
}

static int get_claim(const struct volumes_options *o, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	int r = o->claim(o->arg, a, namespace, name, ret, err);

	if (r < 0)
		return err_wrap(err, r, "failed to fetch PVC from API server");
	if (val_has(*ret, metadata, deletionTimestamp) && !list_has(val_get(*ret, metadata, finalizers), STR("kubernetes.io/pvc-protection")))
		return err_set(err, ERR_GONE, "PVC is being deleted");
	if (!str_eq(val_str(*ret, status, phase), STR("Bound")))
		return err_set(err, ERR_NOT_FOUND, "PVC is not bound");
	if (!val_str(*ret, spec, volumeName).n)
		return err_set(err, ERR_NOT_FOUND, "PVC has empty pvc.Spec.VolumeName");
	return 0;
}

static int get_persistent(const struct volumes_options *o, struct arena *a, struct val claim, struct val *ret, struct err *err)
{
	str name = val_str(claim, spec, volumeName), uid = val_str(claim, metadata, uid);
	int r = o->persistent(o->arg, a, name, ret, err);

	if (r < 0)
		return err_wrap(err, r, "failed to fetch PV " STR_FMT " from API server", STR_ARG(name));
	if (!val_has(*ret, spec, claimRef))
		return err_set(err, ERR_NOT_FOUND, "found PV object " STR_FMT " but it has a nil pv.Spec.ClaimRef indicating it is not yet bound "
			       "to the claim", STR_ARG(name));
	if (!str_eq(val_str(*ret, spec, claimRef, uid), uid))
		return err_set(err, ERR_CONFLICT, "found PV object " STR_FMT " but its pv.Spec.ClaimRef.UID " STR_FMT " does not point to "
			       "claim.UID " STR_FMT, STR_ARG(name), STR_ARG(val_str(*ret, spec, claimRef, uid)), STR_ARG(uid));
	return 0;
}

/* The claim of an ephemeral volume must have been made for this very pod. */
static int check_owner(struct val pod, struct val claim, struct err *err)
{
	VAL_EACH(owner, val_get(claim, metadata, ownerReferences))
		if (val_bool(*owner, controller) && str_eq(val_str(*owner, uid), val_str(pod, metadata, uid)))
			return 0;
	return err_set(err, ERR_CONFLICT, "PVC " STR_FMT "/" STR_FMT " was not created for pod " STR_FMT "/" STR_FMT " (pod is not owner)",
		       STR_ARG(val_str(claim, metadata, namespace)), STR_ARG(val_str(claim, metadata, name)),
		       STR_ARG(val_str(pod, metadata, namespace)), STR_ARG(val_str(pod, metadata, name)));
}

int volume_claim_resolve(struct volumes *v, struct arena *a, struct val pod, struct val volume, bool mounted, bool device,
			 struct val *ret_persistent, bool *ret_readonly, struct err *err)
{
	const struct volumes_options *o = volumes_options(v);
	bool ephemeral = !val_has(volume, persistentVolumeClaim);
	str namespace = val_str(pod, metadata, namespace), name = val_str(volume, persistentVolumeClaim, claimName);
	struct val claim = VAL_EMPTY;

	if (ephemeral)
		name = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, name)), STR_ARG(val_str(volume, name)));
	int r = get_claim(o, a, namespace, name, &claim, err);
	if (r == 0 && ephemeral && (r = check_owner(pod, claim, err)) < 0)
		return r;
	if (r == 0)
		r = get_persistent(o, a, claim, ret_persistent, err);
	if (r < 0)
		return err_wrap(err, r, "error processing PVC " STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
	str mode = val_str(*ret_persistent, spec, volumeMode);
	bool block = str_eq(mode, STR("Block"));
	if ((mounted && block) || (device && !block))
		return err_set(err, ERR_INVALID, "volume " STR_FMT " has volumeMode " STR_FMT ", but is specified in %s",
			       STR_ARG(val_str(volume, name)), STR_ARG(mode.n ? mode : STR("Filesystem")),
			       mounted && block ? "volumeMounts" : "volumeDevices");
	*ret_readonly = val_bool(volume, persistentVolumeClaim, readOnly);
	return 0;
}

/* ---- the mount program ---- */

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* mountOptions of the PersistentVolume and ro, sorted, each once, with commas; NULL: none. */
static const char *mount_options(struct volume_setup *s, bool readonly)
{
	struct val list = val_get(s->persistent, spec, mountOptions);
	CLEANUP(buf_done) struct buf text = BUF_INIT(OPTIONS_MAX);
	str *all = ARENA_ARRAY(s->arena, str, val_len(list) + 1);
	size_t n = 0;

	VAL_EACH(option, list)
		if (val_as_str(*option).n)
			all[n++] = val_as_str(*option);
	if (readonly)
		all[n++] = STR("ro");
	if (n)
		qsort(all, n, sizeof *all, by_text);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || !str_eq(all[i], all[i - 1])) {
			if (i > 0)
				buf_addc(&text, ',');
			buf_add(&text, all[i]);
		}
	return n ? arena_str(s->arena, buf_str(&text)).p : NULL;
}

/* (suspends) */
static int run_mount(struct volume_setup *s, const char *type, const char *source, struct err *err)
{
	const char *argv[9] = { "mount", "-t", type }, *options = mount_options(s, s->volume->readonly);
	size_t n = 3;
	struct process_output out = { 0 };

	if (options) {
		argv[n++] = "-o";
		argv[n++] = options;
	}
	argv[n++] = "--";
	argv[n++] = source;
	argv[n++] = s->volume->path;
	argv[n] = NULL;
	int r = process_run(&(struct process_spec){ .argv = argv, .group = true }, STR_NONE, 64 << 10, &out, err);
	if (r == 0 && out.status.exit_code != 0)
		r = err_set(err, ERR_SYSTEM, "mount failed: %s\nMounting command: mount\nMounting arguments: -t %s%s%s %s %s\nOutput: " STR_FMT
			    STR_FMT, volume_exit_text(s->arena, out.status), type, options ? " -o " : "", options ? options : "", source,
			    s->volume->path, STR_ARG(buf_str(&out.out)), STR_ARG(buf_str(&out.err)));
	process_output_done(&out);
	return r;
}

struct place {
	struct volume_setup *setup;
	bool mounted;
};

static int make_place(void *arg, struct err *err)
{
	struct place *p = arg;

	p->mounted = volume_is_mounted(p->setup->volume->path);
	return p->mounted ? 0 : volume_make_folder(p->setup, 0750, err);
}

static int take_place_away(void *arg, struct err *err)
{
	struct place *p = arg;
	int r = volume_is_mounted(p->setup->volume->path) ? volume_unmount(p->setup->volume->path, err) : 0;

	if (r == 0)
		(void)rmdir(p->setup->volume->path);
	return r;
}

/* (suspends) Mounted by the program, unless it is already. */
static int mount_by_program(struct volume_setup *s, const char *type, const char *source, struct err *err)
{
	struct place place = { s, false };
	int r = fiber_blocking(make_place, &place, err);

	if (r < 0 || place.mounted)
		return r;
	r = run_mount(s, type, source, err);
	if (r < 0) {
		SHIELD_SCOPE();
		(void)fiber_blocking(take_place_away, &place, NULL);
	}
	s->fresh = r == 0;
	return r;
}

/* ---- nfs ---- */

static int prepare_nfs(struct volume_setup *s, struct err *err)
{
	str server = val_str(s->source, server);
	bool v6 = str_chr(server, ':') >= 0;

	if (!val_exists(s->persistent))
		s->volume->readonly = val_bool(s->source, readOnly);
	return mount_by_program(s, "nfs", arena_printf(s->arena, "%s" STR_FMT "%s:" STR_FMT, v6 ? "[" : "", STR_ARG(server), v6 ? "]" : "",
						       STR_ARG(val_str(s->source, path))).p, err);
}

const struct volume_kind volume_kind_nfs = { .folder = "kubernetes.io~nfs", .shared = true, .remote = true, .mount_options = true,
					     .prepare = prepare_nfs };

/* ---- local ---- */

struct look {
	const char *path, *target;
	mode_t mode;
	gid_t group;
	bool mounted;
};

static int look_at(void *arg, struct err *err)
{
	struct look *l = arg;
	struct stat st;

	if (stat(l->path, &st) < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "path \"%s\" does not exist", l->path) :
					 volume_fail(err, errno, "stat", l->path);
	l->mode = st.st_mode;
	l->group = st.st_gid;
	l->mounted = volume_is_mounted(l->target);
	return 0;
}

/* Others have it already, and it is not given to this pod's group. */
static void warn_about_group(struct volume_setup *s, const struct look *l)
{
	if (s->first || l->mounted || s->fs_group < 0 || s->fs_group == (int64_t)l->group)
		return;
	volumes_event(s->all, s->pod, "AlreadyMountedVolume",
		      arena_printf(s->arena, "The requested fsGroup is %" PRId64 ", but the volume " STR_FMT " has GID %" PRId64
				   ". The volume may not be shareable.", s->fs_group, STR_ARG(s->volume->inner), (int64_t)l->group));
}

static int prepare_local(struct volume_setup *s, struct err *err)
{
	str path = val_str(s->source, path), part, rest = path;
	struct look look = { .path = arena_str(s->arena, path).p, .target = s->volume->path };

	s->failed = "MountVolume.NewMounter initialization failed";
	if (!path.n)
		return err_set(err, ERR_INVALID, "local volume source is nil or local path is not set");
	int r = fiber_blocking(look_at, &look, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(look.mode) && !S_ISBLK(look.mode))
		return err_set(err, ERR_INVALID, "only directory and block device are supported");
	s->failed = "MountVolume.SetUp failed";
	for (bool more = true; more;) {
		more = str_cut(rest, '/', &part, &rest);
		if (str_eq(part, STR("..")))
			return err_set(err, ERR_INVALID, "invalid path: " STR_FMT " must not contain '..'", STR_ARG(path));
	}
	warn_about_group(s, &look);
	if (S_ISDIR(look.mode))
		return 0;
	s->failed = "MountVolume.MountDevice failed";
	const char *type = val_str(s->source, fsType).n ? arena_str(s->arena, val_str(s->source, fsType)).p : "ext4";
	if (!look.mounted && (r = volume_format(s, type, look.path, err)) < 0)
		return r;
	r = mount_by_program(s, type, look.path, err);
	if (r == 0)
		s->failed = "MountVolume.SetUp failed";
	return r;
}

static int bind_folder(const char *source, const char *target, bool readonly, struct err *err)
{
	CLEANUP(volume_close) int fd = path_open_tree(source, err);

	return fd < 0 ? fd : volume_bind(fd, target, readonly, err);
}

static int set_up_local(struct volume_setup *s, struct err *err)
{
	const char *path = s->volume->path;

	if (!volume_is_mounted(path)) {
		int r = volume_make_folder(s, 0750, err);
		if (r == 0)
			r = bind_folder(arena_str(s->arena, val_str(s->source, path)).p, path, s->volume->readonly, err);
		if (r < 0) {
			(void)rmdir(path);
			return r;
		}
		s->fresh = true;
	}
	/* Others that use it have given it to their group already. */
	return s->fresh && s->first && !s->volume->readonly ? volume_own(s, err) : 0;
}

const struct volume_kind volume_kind_local = { .folder = "kubernetes.io~local-volume", .managed = true, .shared = true,
					       .mount_options = true, .prepare = prepare_local, .set_up = set_up_local };
