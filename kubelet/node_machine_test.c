#include "kubelet/node_machine.h"

#include "client/folder_testing.h"

/* A machine that is a folder. */
static void put(const char *root, const char *path, const char *text)
{
	char full[512], folder[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	snprintf(folder, sizeof(folder), "%s", full);
	*strrchr(folder, '/') = '\0';
	CHECK_INT(file_make_dirs(folder, 0755, NULL), 0);
	CHECK_INT(file_replace(full, str_of(text), 0644, NULL), 0);
}

TEST(machine_is_read)
{
	CLEANUP(folder_done) struct folder folder;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_machine m;
	struct err err = ERR_INIT;

	folder_init(&folder);
	const char *root = folder.path;
	put(root, "/proc/meminfo", "MemTotal:       24682416 kB\nMemFree: 1 kB\nSwapTotal:         1024 kB\n");
	put(root, "/proc/sys/kernel/random/boot_id", "0b5b-7\n");
	put(root, "/proc/sys/kernel/osrelease", "6.18.44-fc\n");
	put(root, "/sys/devices/system/cpu/online", "0-1,4,6-7\n");
	put(root, "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
	put(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "16\n");
	put(root, "/etc/machine-id", "abc\n");
	put(root, "/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
	CHECK_INT(node_machine_read(&a, root, &m, &err), 0);
	CHECK_INT(m.cpus, 5);
	CHECK_INT(m.memory_bytes, INT64_C(24682416) * 1024);
	CHECK_INT(m.swap_bytes, 1024 * 1024);
	CHECK_INT(m.n_huge, 2);
	CHECK_INT(m.huge[0].page_bytes, 2 << 20);
	CHECK_INT(m.huge[0].pages, 16);
	CHECK_INT(m.huge[1].page_bytes, 1 << 30);
	CHECK_STR(m.machine_id, "abc");
	CHECK_STR(m.system_uuid, "abc"); /* nothing better is known */
	CHECK_STR(m.boot_id, "0b5b-7");
	CHECK_STR(m.kernel_version, "6.18.44-fc");
	CHECK_STR(m.os_image, "Debian GNU/Linux 12 (bookworm)");

	put(root, "/sys/class/dmi/id/product_uuid", "EC2-1\n");
	put(root, "/etc/os-release", "ID=x\n");
	CHECK_INT(node_machine_read(&a, root, &m, &err), 0);
	CHECK_STR(m.system_uuid, "EC2-1");
	CHECK_STR(m.os_image, "Linux");
	put(root, "/sys/devices/system/cpu/online", "x\n");
	CHECK_INT(node_machine_read(&a, root, &m, &err), -ERR_SYSTEM);
}

TEST(machine_limits_swap)
{
	static const struct {
		const char *cgroup, *file;    /* which cgroup we are in, and what there is */
		bool v2, want;
	} t[] = {
		{ "0::/\n", "/memory.stat", true, false },
		{ "0::/\n", "/init.scope/memory.swap.max", true, true },
		{ "0::/lxc/kubelet\n", "/lxc/kubelet/memory.swap.max", true, true }, /* nobody needs systemd */
		{ "1:cpu:/x\n0::/lxc/kubelet\n", "/lxc/kubelet/memory.swap.max", true, true },
		{ "0::/lxc/kubelet\n", "/lxc/kubelet/memory.max", true, false },
		{ "0::/lxc/kubelet\n", "/lxc/memory.swap.max", true, false },
		{ "4:memory:/x\n", "/memory/memory.memsw.limit_in_bytes", false, true },
		{ "4:memory:/x\n", "/memory/memory.limit_in_bytes", false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(folder_done) struct folder folder;
		folder_init(&folder);
		put(folder.path, "/proc/self/cgroup", t[i].cgroup);
		put(folder.path, arena_printf(&folder.arena, "/sys/fs/cgroup%s", t[i].file).p, "max\n");
		CHECK_ROW(i, node_has_swap_controller(&folder.arena, folder.path, t[i].v2) == t[i].want);
	}
}

TEST(machine_this_one)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct node_machine m;
	struct err err = ERR_INIT;
	int64_t bytes = 0;

	CHECK_INT(node_machine_read(&a, "", &m, &err), 0);
	CHECK_INT(m.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	CHECK_INT(m.memory_bytes, (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	CHECK(m.kernel_version.n > 0 && m.boot_id.n == 36);
	CHECK_INT(node_storage_bytes("/", &bytes, &err), 0);
	CHECK(bytes > 0);
	CHECK_INT(node_storage_bytes("/no/such", &bytes, &err), -ERR_NOT_FOUND);
}
