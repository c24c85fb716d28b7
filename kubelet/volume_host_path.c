/* Volumes without a folder of the pod: a path of the node, an image that the runtime mounts, and drivers that are not there. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"

/* ---- hostPath ---- */

struct path_type {
	str name;
	mode_t type;                     /* S_IFDIR, ... */
	const char *text;                /* "x is not a directory" */
	bool create;
};

static const struct path_type path_types[] = {
	{ STR_INIT("DirectoryOrCreate"), S_IFDIR, "directory", true },
	{ STR_INIT("Directory"), S_IFDIR, "directory", false },
	{ STR_INIT("FileOrCreate"), S_IFREG, "file", true },
	{ STR_INIT("File"), S_IFREG, "file", false },
	{ STR_INIT("Socket"), S_IFSOCK, "socket file", false },
	{ STR_INIT("CharDevice"), S_IFCHR, "character device", false },
	{ STR_INIT("BlockDevice"), S_IFBLK, "block device", false },
};

static bool has_backstep(str path)
{
	str part;

	for (bool more = true; more;) {
		more = str_cut(path, '/', &part, &path);
		if (str_eq(part, STR("..")))
			return true;
	}
	return false;
}

static int create(const char *path, mode_t type, struct err *err)
{
	if (type == S_IFDIR)
		return file_make_dirs(path, 0755, err);
	int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	if (fd < 0)
		return volume_fail(err, errno, "open", path);
	close(fd);
	return 0;
}

static int check_type(const char *path, str type, struct err *err)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(path_types); i++) {
		const struct path_type *t = &path_types[i];
		if (!str_eq(t->name, type))
			continue;
		bool there = stat(path, &st) == 0;
		if (!there && errno == ENOENT && t->create)
			return create(path, t->type, err);
		if (there && (st.st_mode & S_IFMT) == t->type)
			return 0;
		return err_set(err, ERR_INVALID, "hostPath type check failed: %s is not a %s", path, t->text);
	}
	return err_set(err, ERR_INVALID, STR_FMT " is an invalid volume type", STR_ARG(type));
}

static int set_up_host_path(struct volume_setup *s, struct err *err)
{
	str path = val_str(s->source, path), type = val_str(s->source, type);

	if (has_backstep(path))
		return err_set(err, ERR_INVALID, "invalid HostPath `" STR_FMT "`: must not contain '..'", STR_ARG(path));
	return type.n ? check_type(s->volume->path, type, err) : 0;
}

const struct volume_kind volume_kind_host_path = { .set_up = set_up_host_path };

/* ---- image ---- */

static int prepare_image(struct volume_setup *s, struct err *err)
{
	str reference = val_str(s->source, reference);

	(void)err;
	s->volume->image = OBJECT(s->arena, F(image, VAL_STR(reference)), F(annotations, val_get(s->pod, metadata, annotations)),
				  F(userSpecifiedImage, VAL_STR(reference)));
	return 0;
}

const struct volume_kind volume_kind_image = { .readonly = true, .prepare = prepare_image };

/* ---- csi ---- */

/* No driver can register here. */
static int prepare_csi(struct volume_setup *s, struct err *err)
{
	const char *what = "mounter.SetUpAt failed to get CSI client";

	if (val_exists(s->persistent)) {
		s->failed = "MountVolume.MountDevice failed";
		what = "attacher.MountDevice failed to create newCsiDriverClient";
	}
	return err_set(err, ERR_NOT_FOUND, "kubernetes.io/csi: %s: driver name " STR_FMT " not found in the list of registered CSI drivers", what,
		       STR_ARG(val_str(s->source, driver)));
}

const struct volume_kind volume_kind_csi = { .mount_options = true, .prepare = prepare_csi };
