/*
 * Network namespaces. One is made by a thread that moves into a new one and is then mounted: the mount keeps it when the thread
 * has gone, and no other thread of ours has ever been in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "runtime/sandbox.h"

struct making {
	const char *path;
	int sys;
};

static void *make(void *arg)
{
	struct making *m = arg;

	if (unshare(CLONE_NEWNET) < 0 || mount("/proc/thread-self/ns/net", m->path, NULL, MS_BIND, NULL) < 0)
		m->sys = errno;
	return NULL;
}

static int make_blocking(void *arg, struct err *err)
{
	struct making *m = arg;
	pthread_t thread;
	int fd = open(m->path, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);

	if (fd < 0)
		return err_sys(err, errno, "make %s", m->path);
	(void)close(fd);
	int sys = pthread_create(&thread, NULL, make, m);
	if (sys)
		return err_sys(err, sys, "start a thread");
	(void)pthread_join(thread, NULL);
	return m->sys ? err_sys(err, m->sys, "make a network namespace at %s", m->path) : 0;
}

int netns_make(const char *path, struct err *err)
{
	struct making m = { .path = path };

	return fiber_blocking(make_blocking, &m, err);
}

int netns_remove(const char *path, struct err *err)
{
	/* EINVAL: it is no mount; then the file alone is left. */
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return err_sys(err, errno, "unmount %s", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_sys(err, errno, "remove %s", path);
	return 0;
}
