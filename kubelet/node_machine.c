/* The files, and the order in which they are asked, are those of the real kubelet's cAdvisor: both report the same about a machine. */
#include "kubelet/node_machine.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"

enum { FILE_MAX = 256 << 10 };

/* The content, in the arena; "" when it cannot be read. */
static str content(struct arena *a, const char *root, const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	str name = arena_printf(a, "%s%s", root, path);

	return file_read(name.p, &b, NULL) < 0 ? STR_NONE : arena_str(a, buf_str(&b));
}

/* Of the first file that has any. */
static str first_of(struct arena *a, const char *root, const char *const *paths)
{
	str text = STR_NONE;

	for (; *paths && !text.n; paths++)
		text = str_trim(content(a, root, *paths));
	while (text.n && text.p[text.n - 1] == '\0') /* the device tree's texts are terminated */
		text.n--;
	return text;
}

static bool next_line(str *text, str *ret)
{
	if (!text->n)
		return false;
	str_cut(*text, '\n', ret, text);
	return true;
}

/* "MemTotal:       24682416 kB" */
static int64_t meminfo(str text, str name)
{
	str line, key, value;
	int64_t kib;

	while (next_line(&text, &line)) {
		if (!str_cut(line, ':', &key, &value) || !str_eq(key, name))
			continue;
		str_cut(str_trim(value), ' ', &value, &key);
		return str_to_i64(value, &kib) && kib >= 0 && kib < INT64_MAX / 1024 ? kib * 1024 : 0;
	}
	return 0;
}

/* "0-3,8,10-11" */
static int64_t count_cpus(str list)
{
	int64_t n = 0, low, high;
	str one, from, to;

	for (list = str_trim(list); list.n;) {
		str_cut(list, ',', &one, &list);
		bool range = str_cut(one, '-', &from, &to);
		if (!str_to_i64(from, &low) || low < 0 || low > INT32_MAX)
			return 0;
		high = low;
		if (range && (!str_to_i64(to, &high) || high < low || high > INT32_MAX))
			return 0;
		n += high - low + 1;
	}
	return n;
}

static int huge_cmp(const void *a, const void *b)
{
	const struct huge_pages *x = a, *y = b;
	return (x->page_bytes > y->page_bytes) - (x->page_bytes < y->page_bytes);
}

/* Folders hugepages-2048kB, each with a file of how many there are. */
static void read_huge_pages(struct arena *a, const char *root, struct node_machine *m)
{
	str folder = arena_printf(a, "%s/sys/kernel/mm/hugepages", root);
	DIR *dir = opendir(folder.p);
	const struct dirent *e;

	while (dir && m->n_huge < HUGE_PAGE_SIZES_MAX && (e = readdir(dir))) {
		str name = str_of(e->d_name);
		int64_t kib, pages;
		if (!str_starts(name, STR("hugepages-")) || !str_ends(name, STR("kB")))
			continue;
		name = str_skip(name, sizeof("hugepages-") - 1);
		str path = arena_printf(a, "/sys/kernel/mm/hugepages/%s/nr_hugepages", e->d_name);
		if (!str_to_i64(str_head(name, name.n - 2), &kib) || kib <= 0 || kib > INT64_MAX / 1024 ||
		    !str_to_i64(str_trim(content(a, root, path.p)), &pages) || pages < 0 || pages > INT64_MAX / 1024 / kib)
			continue;
		m->huge[m->n_huge++] = (struct huge_pages){ kib * 1024, pages };
	}
	if (dir)
		closedir(dir);
	qsort(m->huge, m->n_huge, sizeof(m->huge[0]), huge_cmp);
}

/* PRETTY_NAME of os-release: quoted or not. */
static str os_image(struct arena *a, const char *root)
{
	static const char *const paths[] = { "/etc/os-release", "/usr/lib/os-release", NULL };
	str text = first_of(a, root, paths), line;

	while (next_line(&text, &line)) {
		if (!str_starts(line, STR("PRETTY_NAME=")))
			continue;
		str value = str_trim(str_skip(line, sizeof("PRETTY_NAME=") - 1));
		if (value.n >= 2 && (value.p[0] == '"' || value.p[0] == '\'') && value.p[value.n - 1] == value.p[0])
			value = str_span(value.p + 1, value.n - 2);
		return value;
	}
	return STR("Linux");
}

int node_machine_read(struct arena *a, const char *root, struct node_machine *ret, struct err *err)
{
	static const char *const machine_id[] = { "/etc/machine-id", "/var/lib/dbus/machine-id", NULL };
	static const char *const system_uuid[] = { "/sys/class/dmi/id/product_uuid", "/proc/device-tree/system-id",
						   "/proc/device-tree/vm,uuid", "/etc/machine-id", NULL };
	static const char *const boot_id[] = { "/proc/sys/kernel/random/boot_id", NULL };
	static const char *const kernel[] = { "/proc/sys/kernel/osrelease", NULL };
	str memory = content(a, root, "/proc/meminfo");

	*ret = (struct node_machine){
		.cpus = count_cpus(content(a, root, "/sys/devices/system/cpu/online")),
		.memory_bytes = meminfo(memory, STR("MemTotal")),
		.swap_bytes = meminfo(memory, STR("SwapTotal")),
		.machine_id = first_of(a, root, machine_id),
		.system_uuid = first_of(a, root, system_uuid),
		.boot_id = first_of(a, root, boot_id),
		.kernel_version = first_of(a, root, kernel),
		.os_image = os_image(a, root),
	};
	read_huge_pages(a, root, ret);
	if (!ret->memory_bytes)
		return err_set(err, ERR_SYSTEM, "%s/proc/meminfo does not say how much memory there is", root);
	if (!ret->cpus)
		return err_set(err, ERR_SYSTEM, "%s/sys/devices/system/cpu/online does not say how many processors there are", root);
	return 0;
}

/* The root of cgroup v2 has no such file: our own cgroup tells, or that of systemd. */
bool node_has_swap_controller(struct arena *a, const char *root, bool v2)
{
	str line, rest = v2 ? content(a, root, "/proc/self/cgroup") : STR_NONE;

	while (rest.n) {
		str_cut(rest, '\n', &line, &rest);
		if (!str_starts(line, STR("0::")))
			continue;
		str path = arena_printf(a, "%s/sys/fs/cgroup" STR_FMT "/memory.swap.max", root, STR_ARG(str_skip(line, 3)));
		if (access(path.p, F_OK) == 0)
			return true;
	}
	str path = arena_printf(a, "%s/sys/fs/cgroup/%s", root, v2 ? "init.scope/memory.swap.max" : "memory/memory.memsw.limit_in_bytes");
	return access(path.p, F_OK) == 0;
}

str node_architecture(void)
{
	static const struct {
		const char *kernel, *go;
	} names[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" }, { "armv7l", "arm" }, { "i686", "386" },
		      { "ppc64le", "ppc64le" }, { "s390x", "s390x" }, { "riscv64", "riscv64" } };
	struct utsname u;

	if (uname(&u) == 0)
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (strcmp(u.machine, names[i].kernel) == 0)
				return str_of(names[i].go);
	return STR("amd64");
}

int node_storage_bytes(const char *folder, int64_t *ret, struct err *err)
{
	struct statvfs s;

	if (statvfs(folder, &s) < 0)
		return err_sys(err, errno, "size of the file system of %s", folder);
	*ret = (int64_t)((uint64_t)s.f_blocks * s.f_frsize);
	return 0;
}
