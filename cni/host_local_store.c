/* The folder of host-local. Everything happens under its lock, which the reference plugin takes too. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "cni/host_local.h"

static const char fresh[] = ".new";

enum { OWNER_MAX = 1024 };

int host_store_open(struct host_store *s, const char *folder, struct err *err)
{
	int r = file_make_dirs(folder, 0755, err);

	if (r < 0)
		return r;
	s->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_sys(err, errno, "%s", folder);
	s->lock = openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0)
		return err_sys(err, errno, "%s/lock", folder);
	while ((r = flock(s->lock, LOCK_EX)) < 0 && errno == EINTR)
		;
	if (r < 0)
		return err_sys(err, errno, "%s/lock", folder);
	/* What somebody left who was killed while he had the lock. */
	(void)unlinkat(s->dir, fresh, 0);
	return 0;
}

void host_store_close(struct host_store *s)
{
	if (s->lock >= 0)
		close(s->lock);
	if (s->dir >= 0)
		close(s->dir);
	*s = (struct host_store)HOST_STORE_INIT;
}

/* ---- small files ---- */

/* The bytes that it has; -errno. */
static ssize_t read_small(struct host_store *s, const char *name, char *text, size_t max)
{
	int fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, text, max);
	int sys = errno;

	if (fd >= 0)
		close(fd);
	return n < 0 ? -sys : n;
}

/* Under another name first, so that nobody ever sees half of it. */
static int write_fresh(struct host_store *s, str content)
{
	(void)unlinkat(s->dir, fresh, 0);
	int fd = openat(s->dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, content.p, content.n);
	int sys = n < 0 ? errno : ENOSPC;
	if (close(fd) < 0 || n != (ssize_t)content.n) {
		(void)unlinkat(s->dir, fresh, 0);
		return -sys;
	}
	return 0;
}

static int last_name(char name[32], size_t set)
{
	return snprintf(name, 32, "last_reserved_ip.%zu", set);
}

bool host_store_last(struct host_store *s, size_t set, struct inet *ret)
{
	char name[32], text[INET_TEXT];

	(void)last_name(name, set);
	ssize_t n = read_small(s, name, text, sizeof(text));
	return n > 0 && inet_parse(str_trim(str_span(text, (size_t)n)), ret);
}

/* ---- reserving ---- */

/* An empty file is what a crash of the reference plugin leaves: it fills them while it has the lock, which we have now. */
static bool is_leftover(struct host_store *s, const char *name)
{
	char byte;
	return read_small(s, name, &byte, 1) == 0;
}

int host_store_reserve(struct host_store *s, struct inet ip, const char *id, const char *ifname, size_t set, struct err *err)
{
	char name[INET_TEXT], last[32], owner[OWNER_MAX];
	int n = snprintf(owner, sizeof(owner), "%s\r\n%s", id, ifname), r;

	if (n < 0 || (size_t)n >= sizeof(owner))
		return err_set(err, ERR_INVALID, "the name of the container is too long");
	(void)inet_text(ip, name);
	if (faccessat(s->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!is_leftover(s, name))
			return 0;
		(void)unlinkat(s->dir, name, 0);
	}
	if ((r = write_fresh(s, str_span(owner, (size_t)n))) < 0)
		return err_sys(err, -r, "cannot reserve %s", name);
	if (linkat(s->dir, fresh, s->dir, name, 0) < 0) {
		int sys = errno;
		(void)unlinkat(s->dir, fresh, 0);
		return sys == EEXIST ? 0 : err_sys(err, sys, "cannot reserve %s", name);
	}
	(void)unlinkat(s->dir, fresh, 0);
	/* Only a hint where to go on: without it the search begins at the range's start. */
	(void)last_name(last, set);
	if (write_fresh(s, str_of(name)) == 0)
		(void)renameat(s->dir, fresh, s->dir, last);
	return 1;
}

/* ---- searching ---- */

static struct inet start_after(struct host_store *s, const struct host_range_set *set, size_t index, size_t *ret_range)
{
	struct inet last;

	*ret_range = 0;
	if (!host_store_last(s, index, &last))
		return set->ranges[0].start;
	for (size_t i = 0; i < set->n; i++) {
		const struct host_range *r = &set->ranges[i];
		if (host_range_for(&(struct host_range_set){ &set->ranges[i], 1 }, last) == NULL)
			continue;
		*ret_range = inet_eq(last, r->end) ? (i + 1) % set->n : i;
		return inet_eq(last, r->end) ? set->ranges[*ret_range].start : inet_next(last);
	}
	return set->ranges[0].start;
}

int host_store_next(struct host_store *s, const struct host_range_set *set, size_t index, const char *id,
		    const char *ifname, struct inet *ret,
		    struct err *err)
{
	size_t range;
	struct inet start = start_after(s, set, index, &range), at = start;

	do {
		const struct host_range *r = &set->ranges[range];
		if (!inet_eq(at, r->gateway)) {
			int taken = host_store_reserve(s, at, id, ifname, index, err);
			if (taken) {
				*ret = at;
				return taken < 0 ? taken : 0;
			}
		}
		bool last = inet_eq(at, r->end);
		range = last ? (range + 1) % set->n : range;
		at = last ? set->ranges[range].start : inet_next(at);
	} while (!inet_eq(at, start));
	return -ERR_NOT_FOUND;
}

/* ---- walking ---- */

int host_store_each(struct host_store *s, host_store_visit *visit, void *arg, struct err *err)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		int sys = errno;
		if (fd >= 0)
			close(fd);
		return err_sys(err, sys, "cannot read the folder of addresses");
	}
	while ((e = readdir(d))) {
		char text[OWNER_MAX], name[INET_TEXT];
		struct inet ip;
		str id, ifname;
		ssize_t n;
		/* An address that is written in another way than we (and the reference plugin) do is not one that was given out. */
		if (!inet_parse(str_of(e->d_name), &ip) || !str_eq(str_of(inet_text(ip, name)), str_of(e->d_name)) ||
		    (n = read_small(s, e->d_name, text, sizeof(text))) < 0)
			continue;
		/* Files of its first versions have no name of an interface. */
		(void)str_cut(str_trim(str_span(text, (size_t)n)), '\n', &id, &ifname);
		if (visit(ip, str_trim(id), str_trim(ifname), arg))
			(void)unlinkat(s->dir, e->d_name, 0);
	}
	closedir(d);
	return 0;
}
