/*
 * The folder of host-local, which others write too: files of any name and content. What is given out is in the range, is not the
 * gateway's and had no owner; and all that is given back is gone. The input is a row of files: length of the name, name, length of
 * the content, content.
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "cni/host_local.h"
#include "fuzz/fuzz.h"

enum { FILES_MAX = 32 };

static str take(str *rest)
{
	size_t n = rest->n ? (uint8_t)rest->p[0] : 0;
	str part = str_head(str_skip(*rest, 1), n);

	*rest = str_skip(*rest, 1 + part.n);
	return part;
}

static void put(int dir, str name, str content)
{
	char copy[256];

	if (!name.n || name.n >= sizeof(copy) || memchr(name.p, '/', name.n) || memchr(name.p, '\0', name.n))
		return;
	memcpy(copy, name.p, name.n);
	copy[name.n] = '\0';
	int fd = openat(dir, copy, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, content.p, content.n) < 0)
		abort();
	if (fd >= 0)
		close(fd);
}

struct seen {
	struct inet ip;     /* looked for */
	bool owned;
	size_t n;
};

static bool look(struct inet ip, str id, str ifname, void *arg)
{
	struct seen *s = arg;

	check(!memchr(id.p ? id.p : "", '\n', id.n) || ifname.n, "a name is one line");
	s->owned |= inet_eq(ip, s->ip) && id.n;
	s->n++;
	return false;
}

static bool all(struct inet ip, str id, str ifname, void *arg)
{
	(void)ip, (void)id, (void)ifname, (void)arg;
	return true;
}

static void use(const char *folder)
{
	struct host_store s = HOST_STORE_INIT;
	struct host_range range = { .subnet = { { AF_INET, { 10, 1, 0, 0 } }, 29 }, .start = { AF_INET, { 10, 1, 0, 1 } },
				    .end = { AF_INET, { 10, 1, 0, 6 } }, .gateway = { AF_INET, { 10, 1, 0, 1 } } };
	struct host_range_set set = { &range, 1 };
	struct inet ip;

	if (host_store_open(&s, folder, NULL) < 0) {
		host_store_close(&s);
		return;
	}
	for (int i = 0; i < 8; i++) {
		struct seen before[6], after = { 0 };
		for (size_t k = 0; k < ARRAY_LEN(before); k++) {
			before[k] = (struct seen){ .ip = { AF_INET, { 10, 1, 0, (uint8_t)(k + 1) } } };
			check(host_store_each(&s, look, &before[k], NULL) == 0, "the folder can be read");
		}
		if (host_store_next(&s, &set, 0, "id", "eth0", &ip, NULL) < 0)
			break;
		check(host_range_for(&set, ip) && !inet_eq(ip, range.gateway), "an address of the range");
		check(!before[ip.b[3] - 1].owned, "which nobody had");
		after.ip = ip;
		check(host_store_each(&s, look, &after, NULL) == 0 && after.owned, "and we have now");
	}
	struct seen left = { 0 };
	check(host_store_each(&s, all, NULL, NULL) == 0 && host_store_each(&s, look, &left, NULL) == 0, "all are given back");
	check(left.n == 0, "and gone");
	host_store_close(&s);
}

static void discard(const char *folder)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	(void)rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char folder[] = "/dev/shm/fuzz-store-XXXXXX";
	str rest = str_span((const char *)data, n);

	if (!mkdtemp(folder))
		return 0;
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < FILES_MAX && rest.n; i++) {
		str name = take(&rest);
		put(dir, name, take(&rest));
	}
	use(folder);
	close(dir);
	discard(folder);
	return 0;
}
