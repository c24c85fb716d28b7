#include "cni/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

int netns_open(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "failed to open netns \"%s\"", path);
	/* A name whose namespace was unmounted is a plain file. */
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
		close(fd);
		return err_set(err, ERR_NOT_FOUND, "failed to open netns \"%s\": it is not a network namespace", path);
	}
	return fd;
}

int netns_open_own(struct err *err)
{
	return netns_open("/proc/thread-self/ns/net", err);
}

bool netns_same(int a, int b)
{
	struct stat x, y;
	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int netns_enter(int netns, struct err *err)
{
	return setns(netns, CLONE_NEWNET) < 0 ? err_sys(err, errno, "cannot enter a network namespace") : 0;
}

int netns_visit(struct netns_visit *v, int netns, struct err *err)
{
	int home = netns_open_own(err);
	if (home < 0)
		return home;
	int r = netns_enter(netns, err);
	if (r < 0) {
		close(home);
		return r;
	}
	v->home = home;
	return 0;
}

void netns_leave(struct netns_visit *v)
{
	if (v->home < 0)
		return;
	if (setns(v->home, CLONE_NEWNET) < 0) {
		perror("cannot leave a network namespace");
		abort();
	}
	close(v->home);
	v->home = -1;
}

int netns_netlink(int netns, struct netlink *n, struct err *err)
{
	CLEANUP(netns_leave) struct netns_visit visit = NETNS_VISIT_INIT;
	int r = netns_visit(&visit, netns, err);
	return r < 0 ? r : netlink_open(n, NETLINK_ROUTE, err);
}

int sysctl_set(const char *name, const char *value, struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(256), now = BUF_INIT(4096);

	buf_addf(&path, "/proc/sys/%s", name);
	int r = buf_check(&path, "the name of a setting", err);
	if (r < 0)
		return r;
	if (file_read(path.p, &now, NULL) == 0 && str_eq(str_trim(buf_str(&now)), str_of(value)))
		return 0;
	int fd = open(path.p, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, value, strlen(value));
	int sys = errno;
	if (fd >= 0)
		close(fd);
	return n < 0 ? err_sys(err, sys, "cannot set %s to %s", name, value) : 0;
}
