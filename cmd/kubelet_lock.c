/* The lock file of --lock-file: a second kubelet that opens it makes the first one go, if that was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/log.h"
#include "cmd/kubelet.h"

int kubelet_lock_take(struct kubelet_lock *l, const char *path, bool watch, struct err *err)
{
	*l = (struct kubelet_lock){ -1, -1 };
	log_info("acquiring file lock", KV("path", path));
	l->fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (l->fd < 0)
		return err_sys(err, errno, "unable to acquire file lock on \"%s\"", path);
	if (flock(l->fd, LOCK_EX) < 0)
		return err_sys(err, errno, "unable to acquire file lock on \"%s\"", path);
	if (!watch)
		return 0;
	l->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (l->watch_fd < 0 || inotify_add_watch(l->watch_fd, path, IN_OPEN | IN_DELETE_SELF) < 0)
		return err_sys(err, errno, "unable to watch lockfile");
	return 0;
}

int kubelet_lock_wait(struct kubelet_lock *l, struct err *err)
{
	_Alignas(struct inotify_event) char events[1024];
	ssize_t n = fiber_read(l->watch_fd, events, sizeof(events), err);

	return n < 0 ? (int)n : 0;
}

void kubelet_lock_release(struct kubelet_lock *l)
{
	if (l->watch_fd >= 0)
		(void)close(l->watch_fd);
	if (l->fd >= 0)
		(void)close(l->fd);
	*l = (struct kubelet_lock){ -1, -1 };
}
