/*
 * Owners, modes, extended attributes, times. The order matters: a change of owner clears setuid bits and capabilities, so the mode and
 * the attributes come after it; the time comes last.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "runtime/layer.h"

/*
 * Capabilities of programs, access lists and what users note. Not: overlayfs' own (they would lead it elsewhere), labels and
 * measurements that belong to the machine on which they were made.
 */
bool layer_xattr_is_kept(str name)
{
	if (str_starts(name, STR("user.")))
		return !str_starts(name, STR("user.overlay."));
	return str_eq(name, STR("security.capability")) || str_eq(name, STR("system.posix_acl_access")) ||
	       str_eq(name, STR("system.posix_acl_default"));
}

/* A file system without such attributes is no reason to do without the image. */
static int xattr_result(int r, const char *name, struct err *err)
{
	return r == 0 || errno == ENOTSUP ? 0 : err_sys(err, errno, "extended attribute %s", name);
}

static int set_xattrs(int fd, struct archive_entry *e, struct err *err)
{
	const char *name;
	const void *value;
	size_t n;
	int r = 0;
	archive_entry_xattr_reset(e);
	while (r == 0 && archive_entry_xattr_next(e, &name, &value, &n) == ARCHIVE_OK)
		if (name && layer_xattr_is_kept(str_of(name)))
			r = xattr_result(fsetxattr(fd, name, value, n, 0), name, err);
	return r;
}

/* Tar has room for larger numbers than there are users; -1 means "do not change" to the kernel. */
static int entry_owner(struct archive_entry *e, uid_t *ret_uid, gid_t *ret_gid, struct err *err)
{
	int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);
	if (uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
		return err_set(err, ERR_INVALID, "owner %lld:%lld does not exist", (long long)uid, (long long)gid);
	*ret_uid = (uid_t)uid;
	*ret_gid = (gid_t)gid;
	return 0;
}

bool layer_time(struct archive_entry *e, struct timespec ret[2])
{
	long ns = archive_entry_mtime_nsec(e);
	if (!archive_entry_mtime_is_set(e) || ns < 0 || ns > 999999999)
		return false;
	ret[0] = ret[1] = (struct timespec){ archive_entry_mtime(e), ns };
	return true;
}

int layer_set_meta(int fd, struct archive_entry *e, bool with_time, struct err *err)
{
	struct timespec times[2];
	uid_t uid;
	gid_t gid;
	int r = entry_owner(e, &uid, &gid, err);
	if (r < 0)
		return r;
	if (fchown(fd, uid, gid) < 0)
		return err_sys(err, errno, "chown %u:%u", uid, gid);
	if (fchmod(fd, archive_entry_mode(e) & 07777) < 0)
		return err_sys(err, errno, "chmod");
	if ((r = set_xattrs(fd, e, err)) < 0)
		return r;
	return with_time && layer_time(e, times) && futimens(fd, times) < 0 ? err_sys(err, errno, "utimens") : 0;
}

int layer_set_node_meta(int parent, const char *name, struct archive_entry *e, struct err *err)
{
	struct timespec times[2];
	uid_t uid;
	gid_t gid;
	int r = entry_owner(e, &uid, &gid, err);
	if (r < 0)
		return r;
	if (fchownat(parent, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "chown %u:%u", uid, gid);
	if (archive_entry_filetype(e) != AE_IFLNK && fchmodat(parent, name, archive_entry_mode(e) & 07777, 0) < 0)
		return err_sys(err, errno, "chmod");
	return layer_time(e, times) && utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? err_sys(err, errno, "utimens") : 0;
}

/* ---- from one file to another ---- */

static int copy_xattr(int from, int to, const char *name, char *value, struct err *err)
{
	ssize_t n = fgetxattr(from, name, value, XATTR_SIZE_MAX);
	if (n < 0)
		return errno == ENODATA ? 0 : err_sys(err, errno, "extended attribute %s", name);
	return xattr_result(fsetxattr(to, name, value, (size_t)n, 0), name, err);
}

static int copy_xattrs(int from, int to, struct err *err)
{
	CLEANUP(mem_freep) char *list = mem_alloc(XATTR_LIST_MAX);
	ssize_t n = flistxattr(from, list, XATTR_LIST_MAX);
	if (n < 0)
		return errno == ENOTSUP ? 0 : err_sys(err, errno, "extended attributes");
	CLEANUP(mem_freep) char *value = n ? mem_alloc(XATTR_SIZE_MAX) : NULL;
	int r = 0;
	for (char *name = list; r == 0 && name < list + n; name += strlen(name) + 1)
		if (layer_xattr_is_kept(str_of(name)))
			r = copy_xattr(from, to, name, value, err);
	return r;
}

int layer_copy_meta(int from, int to, struct err *err)
{
	struct stat st;
	if (fstat(from, &st) < 0 || fchown(to, st.st_uid, st.st_gid) < 0 || fchmod(to, st.st_mode & 07777) < 0)
		return err_sys(err, errno, "copying an owner and a mode");
	int r = copy_xattrs(from, to, err);
	if (r == 0 && futimens(to, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
		return err_sys(err, errno, "copying a time");
	return r;
}
