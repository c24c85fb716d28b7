/*
 * Volumes that an image declares: each is a folder of the container's, with what the image has at that place, and goes with the
 * container.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "runtime/config_json.h"
#include "runtime/snapshot_priv.h"

enum { VOLUMES_MAX = 256 };

/* What the image has there, if it is a folder. */
static int fill(int root, const char *inside, const char *folder, struct err *err)
{
	int from = path_open(root, inside, O_RDONLY | O_DIRECTORY, err);

	if (from == -ERR_NOT_FOUND)
		return 0;
	if (from < 0)
		return from;
	int to = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = to < 0 ? err_sys(err, errno, "open %s", folder) : snapshot_copy(from, to, err);
	if (r < 0)
		r = err_wrap(err, r, "copy %s of the image into a volume", inside);
	(void)close(from);
	if (to >= 0)
		(void)close(to);
	return r;
}

static bool is_mounted(struct val mounts, str path)
{
	VAL_EACH(m, mounts) {
		str at = val_str(*m, containerPath);
		while (at.n > 1 && at.p[at.n - 1] == '/')
			at.n--;
		if (str_eq(at, path))
			return true;
	}
	return false;
}

int config_volumes(const struct config_input *in, struct arena *a, struct val *ret_mounts, struct err *err)
{
	struct val volumes = val_get(in->image, Volumes), mounts = val_get(in->config, mounts);
	struct val_builder b = val_builder(a);
	size_t n = 0;

	*ret_mounts = VAL_EMPTY_LIST;
	if (!val_len(volumes))
		return 0;
	if (val_len(volumes) > VOLUMES_MAX)
		return err_set(err, ERR_TOO_LARGE, "the image has more than %d volumes", VOLUMES_MAX);
	int root = path_open_tree(in->root, err), r = root < 0 ? root : 0;
	struct stat top = { 0 };
	/* What the image does not have belongs to root: in a user namespace to the root of that, as the top of its file system does. */
	if (r == 0 && sandbox_userns(in->sandbox, a) && fstat(root, &top) < 0)
		r = err_sys(err, errno, "stat %s", in->root);
	VAL_EACH_MEMBER(v, volumes) {
		str path = atom_str(v->key);
		while (path.n > 1 && path.p[path.n - 1] == '/')
			path.n--;
		if (r < 0 || !path.n || str_eq(path, STR("/")) || is_mounted(mounts, path))
			continue;
		const char *inside = runtime_text(a, "%s" STR_FMT, path.p[0] == '/' ? "" : "/", STR_ARG(path));
		const char *folder = runtime_text(a, "%s/volumes/%zu", in->folder, n++);
		if ((r = file_make_dirs(folder, 0755, err)) == 0 && lchown(folder, top.st_uid, top.st_gid) < 0)
			r = err_sys(err, errno, "the owner of %s", folder);
		if (r == 0)
			r = fill(root, inside, folder, err);
		val_add_item(&b, OBJECT(a, F(containerPath, VAL_STR(str_of(inside))), F(hostPath, VAL_STR(str_of(folder))),
					F(selinuxRelabel, val_of_bool(true))));
	}
	if (root >= 0)
		(void)close(root);
	*ret_mounts = val_end_list(&b);
	return r;
}
