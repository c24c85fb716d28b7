/*
 * terminal: a pty of the container's own devpts. The slave comes from the master by ioctl, not by a name, and is looked at: what
 * an image puts at /dev/pts or /dev/console leads nowhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/path.h"
#include "oci/oci_priv.h"
#include "oci/sync.h"

static bool is_pty(int fd, bool master)
{
	struct stat st;
	struct statfs fs;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || !S_ISCHR(st.st_mode) || fs.f_type != DEVPTS_SUPER_MAGIC)
		return false;
	return master ? st.st_rdev == makedev(5, 2) : major(st.st_rdev) >= 136 && major(st.st_rdev) <= 143;
}

static int open_pair(int root, int *ret_master, int *ret_slave, struct err *err)
{
	/* Not blocking: it might be no terminal at all. */
	CLEANUP(fd_closep) int master = path_open(root, "dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, err);
	int unlock = 0;

	if (master < 0)
		return master;
	if (!is_pty(master, true))
		return err_set(err, ERR_FORBIDDEN, "/dev/pts/ptmx is no pseudoterminal");
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return err_sys(err, errno, "unlocking the terminal");
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_sys(err, errno, "TIOCGPTPEER");
	if (!is_pty(slave, false)) {
		close(slave);
		return err_set(err, ERR_FORBIDDEN, "the terminal is no pseudoterminal");
	}
	(void)fcntl(master, F_SETFL, 0);
	*ret_master = master;
	*ret_slave = slave;
	master = -1;
	return 0;
}

static int mount_console(int root, int slave, struct err *err)
{
	const char *name;
	CLEANUP(fd_closep) int dev = path_open_parent(root, "dev/console", &name, err);

	if (dev < 0)
		return dev;
	CLEANUP(fd_closep) int made = openat(dev, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (made < 0 && errno != EEXIST)
		return err_sys(err, errno, "/dev/console");
	CLEANUP(fd_closep) int target = openat(dev, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (target < 0 || fstat(target, &st) < 0)
		return err_sys(err, errno, "/dev/console");
	if (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
		return err_set(err, ERR_FORBIDDEN, "/dev/console is a link or a folder");
	CLEANUP(fd_closep) int tree = mount_clone(slave, 0, err);
	return tree < 0 ? tree : mount_put(tree, target, err);
}

static int use_slave(int slave, const struct process *p, struct err *err)
{
	struct winsize size = { .ws_row = (unsigned short)p->height, .ws_col = (unsigned short)p->width };

	if (fchown(slave, p->uid, (gid_t)-1) < 0)
		return err_sys(err, errno, "giving the terminal to its user");
	if (p->width && p->height && ioctl(slave, TIOCSWINSZ, &size) < 0)
		return err_sys(err, errno, "TIOCSWINSZ");
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		return err_sys(err, errno, "TIOCSCTTY");
	return process_set_stdio((const int[3]){ slave, slave, slave }, err);
}

int terminal_make(int root, const struct process *p, bool console, int *ret_master, struct err *err)
{
	CLEANUP(fd_closep) int master = -1, slave = -1;
	int r = open_pair(root, &master, &slave, err);

	if (r < 0 || (console && (r = mount_console(root, slave, err)) < 0) || (r = use_slave(slave, p, err)) < 0)
		return r;
	*ret_master = master;
	master = -1;
	return 0;
}

int terminal_send(int socket, int master, struct err *err)
{
	static const char name[] = "/dev/ptmx";
	int r = sync_send_fd(socket, name, sizeof(name) - 1, master, err);
	return r < 0 ? err_wrap(err, r, "console socket") : 0;
}
