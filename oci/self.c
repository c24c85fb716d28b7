#include "oci/self.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "oci/oci_priv.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char self_path[] = "/proc/self/exe";

static bool is_protected(int self)
{
	struct statvfs fs;

	if (fcntl(self, F_GET_SEALS) == SEALS)
		return true;
	return fstatvfs(self, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

/* A read-only mount that nothing else has: gone when the last process that runs from it is. */
static int open_readonly(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int fd = open_tree(AT_FDCWD, self_path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd >= 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return fd;
	fd_closep(&fd);
	return -1;
}

static int copy_sealed(int self, struct err *err)
{
	struct stat st;
	CLEANUP(fd_closep) int copy = memfd_create("c8s-pod", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (copy < 0 || fstat(self, &st) < 0)
		return err_sys(err, errno, "memfd_create");
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(copy, self, NULL, (size_t)left);
		if (n <= 0)
			return err_sys(err, n < 0 ? errno : EIO, "copying the program");
		left -= n;
	}
	if (fchmod(copy, 0755) < 0 || fcntl(copy, F_ADD_SEALS, SEALS) < 0)
		return err_sys(err, errno, "sealing the copy of the program");
	int fd = copy;
	copy = -1;
	return fd;
}

int self_protect(char **argv, struct err *err)
{
	CLEANUP(fd_closep) int self = open(self_path, O_RDONLY | O_CLOEXEC);

	if (self < 0)
		return err_sys(err, errno, "%s", self_path);
	if (is_protected(self)) {
		(void)prctl(PR_SET_NAME, "c8s-pod", 0, 0, 0);
		return 0;
	}
	CLEANUP(fd_closep) int fd = open_readonly();
	if (fd < 0 && (fd = copy_sealed(self, err)) < 0)
		return fd;
	(void)syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	return err_sys(err, errno, "executing the protected program");
}
