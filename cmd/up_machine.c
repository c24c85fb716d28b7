/* What a node needs of its machine. A finding is one line: what was looked at, what it is, and what to do about it. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/up.h"
#include "cni/link.h"
#include "cni/nft.h"

enum { FILE_MAX = 1 << 20, CGROUP2_MAGIC = 0x63677270, DISK_LOW_MB = 1024, MEMORY_LOW_KB = 256 * 1024, KERNEL_MAJOR = 5, KERNEL_MINOR = 10 };

static void tell(struct up_findings *f, enum up_severity severity, const char *what, str says, const char *advice)
{
	if (f->n < UP_FINDINGS_MAX)
		f->items[f->n++] = (struct up_finding){ severity, what, says, severity == UP_FINE ? STR_NONE : str_of(advice) };
}

/* ---- the machine ---- */

static void look_at_user(struct arena *a, struct up_findings *f)
{
	uid_t uid = geteuid();

	tell(f, uid ? UP_PROBLEM : UP_FINE, "user", uid ? arena_printf(a, "user %u", uid) : STR("root"),
	     "a node makes namespaces, mounts and network links: run it as root, for example with sudo; "
	     "'c8s control-plane' alone needs no privileges");
}

static void look_at_kernel(struct arena *a, struct up_findings *f)
{
	struct utsname name;
	int major = 0, minor = 0;

	(void)uname(&name);
	(void)sscanf(name.release, "%d.%d", &major, &minor);
	bool old = major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR);
	tell(f, old ? UP_PROBLEM : UP_FINE, "kernel", arena_str(a, str_of(name.release)), "Linux 5.10 or newer is needed");
}

static bool file_has(const char *path, str line)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);

	return file_read(path, &text, NULL) == 0 && str_find(buf_str(&text), line) >= 0;
}

/* ---- what is tried, in a network namespace that goes with the process that tries it ---- */

static bool makes_link(const char *kind)
{
	struct netlink n = NETLINK_INIT;

	return netlink_open(&n, NETLINK_ROUTE, NULL) == 0 && link_add(&n, &(struct link_spec){ .name = "c8s0", .kind = kind, .peer_name = "c8s1" }, NULL) == 0;
}

static bool makes_bridge(void) { return makes_link("bridge"); }

static bool makes_veth(void) { return makes_link("veth"); }

static bool makes_rules(void)
{
	struct netlink n = NETLINK_INIT;
	struct nft_batch b;

	nft_batch_begin(&b, "c8s_doctor");
	nft_table(&b);
	nft_nat_chain(&b, "postrouting", NF_INET_POST_ROUTING, 0);
	return netlink_open(&n, NETLINK_NETFILTER, NULL) == 0 && nft_batch_commit(&b, &n, NULL) == 0;
}

static bool works(bool (*try)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) < 0 || !try());
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void look_at_features(struct up_findings *f)
{
	static const struct { const char *what; bool (*try)(void); const char *advice; } tried[] = {
		{ "bridge", makes_bridge, "pods are connected by a bridge: modprobe bridge (CONFIG_BRIDGE)" },
		{ "veth", makes_veth, "pods are connected by pairs of links: modprobe veth (CONFIG_VETH)" },
		{ "nftables", makes_rules, "host ports and masquerading are nftables rules: modprobe nft_chain_nat (CONFIG_NF_TABLES, CONFIG_NFT_NAT)" },
	};
	bool overlay = file_has("/proc/filesystems", STR("\toverlay\n"));

	for (size_t i = 0; geteuid() == 0 && i < ARRAY_LEN(tried); i++) {
		bool there = works(tried[i].try);
		tell(f, there ? UP_FINE : UP_PROBLEM, tried[i].what, there ? STR("works") : STR("cannot be made in a network namespace"), tried[i].advice);
	}
	tell(f, overlay ? UP_FINE : UP_WARNING, "overlayfs", overlay ? STR("there") : STR("not there yet"),
	     "without it every container has a copy of its image: modprobe overlay");
}

static void look_at_groups(struct arena *a, struct up_findings *f)
{
	static const char *const wanted[] = { "cpu", "memory", "pids" };
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX), missing = BUF_INIT(FILE_MAX);
	struct statfs fs;
	bool v2 = statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_MAGIC;

	(void)file_read(v2 ? "/sys/fs/cgroup/cgroup.controllers" : "/proc/self/cgroup", &text, NULL);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (str_find(buf_str(&text), str_of(wanted[i])) < 0)
			buf_addf(&missing, " %s", wanted[i]);
	if (missing.n)
		tell(f, UP_PROBLEM, "cgroups", arena_printf(a, "version %d, without" STR_FMT, v2 ? 2 : 1, STR_ARG(buf_str(&missing))),
		     v2 ? "the controllers have to be there at the root: boot without cgroup_disable=, and with cgroup_enable=memory on small boards" :
			  "mount the controllers below /sys/fs/cgroup, or boot with systemd.unified_cgroup_hierarchy=1");
	else
		tell(f, UP_FINE, "cgroups", arena_printf(a, "version %d", v2 ? 2 : 1), NULL);
}

static void look_at_memory(struct arena *a, struct up_findings *f)
{
	int64_t kb = (int64_t)sysconf(_SC_AVPHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024);

	tell(f, kb < MEMORY_LOW_KB ? UP_WARNING : UP_FINE, "memory", arena_printf(a, "%" PRId64 " MiB free", kb / 1024),
	     "little is free: pods may be killed");
}

static void look_at_disk(struct arena *a, const char *path, struct up_findings *f)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0 && statfs("/var/lib", &fs) < 0)
		return;
	int64_t mb = (int64_t)fs.f_bavail * fs.f_bsize / (1 << 20);
	tell(f, mb < DISK_LOW_MB ? UP_WARNING : UP_FINE, "disk", arena_printf(a, "%" PRId64 " MiB free in %s", mb, path),
	     "images and containers need room; below 15 % free the node reports pressure and evicts pods");
}

static void look_at_program(const struct up_cluster *c, struct arena *a, struct up_findings *f)
{
	const char *slash = strrchr(c->program, '/');
	str pod = arena_printf(a, "%.*s/c8s-pod", (int)(slash - c->program), c->program);

	tell(f, access(pod.p, X_OK) == 0 ? UP_FINE : UP_PROBLEM, "c8s-pod", pod, "it starts containers and belongs beside c8s: install both ('make install')");
}

/* ---- this cluster ---- */

static void look_at_port(struct arena *a, const char *what, int64_t port, const char *flag, struct up_findings *f)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	bool taken = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == EADDRINUSE;
	(void)close(fd);
	tell(f, taken ? UP_PROBLEM : UP_FINE, what, arena_printf(a, taken ? "%" PRId64 " is taken by another program" : "%" PRId64 " is free", port),
	     arena_printf(a, "choose another one with --%s, or stop that program ('ss -ltnp sport = :%" PRId64 "' shows it)", flag, port).p);
}

/* A folder that another program fills is not ours to use. */
static void look_at_data(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	static const char *const strange[] = { "kubelet.conf", "pki", "server", "agent", "member" };
	const char *dir = c->settings.data_dir;

	for (size_t i = 0; i < ARRAY_LEN(strange); i++)
		if (access(arena_printf(a, "%s/%s", dir, strange[i]).p, F_OK) == 0) {
			tell(f, UP_PROBLEM, "data directory", arena_printf(a, "%s holds %s, which 'c8s up' has not made", dir, strange[i]),
			     "give another one with --data-dir, or move that away");
			return;
		}
	tell(f, UP_FINE, "data directory", str_of(dir), NULL);
}

/* The control plane's user has to get there. */
static void look_at_way(struct arena *a, const struct up_cluster *c, struct up_findings *f)
{
	str path = str_of(c->settings.data_dir);
	struct stat st;

	for (size_t i = 1; i < path.n; i++) {
		if (path.p[i] != '/')
			continue;
		const char *folder = arena_str(a, str_span(path.p, i)).p;
		if (stat(folder, &st) == 0 && !(st.st_mode & S_IXOTH))
			tell(f, UP_PROBLEM, "data directory", arena_printf(a, "%s is closed to other users", folder),
			     arena_printf(a, "the control plane runs as user %u and has to pass there: chmod o+x %s, or give another folder with --data-dir", c->uid, folder).p);
	}
}

void up_look(struct arena *a, const struct up_cluster *c, struct up_findings *ret)
{
	ret->n = 0;
	look_at_user(a, ret);
	look_at_kernel(a, ret);
	look_at_features(ret);
	look_at_groups(a, ret);
	look_at_memory(a, ret);
	look_at_disk(a, c->settings.data_dir, ret);
	look_at_program(c, a, ret);
	look_at_data(a, c, ret);
	if (c->uid && !c->settings.server)
		look_at_way(a, c, ret);
	if (!c->settings.server)
		look_at_port(a, "API server's port", c->settings.secure_port, "secure-port", ret);
	look_at_port(a, "kubelet's port", c->settings.kubelet_port, "kubelet-port", ret);
}

int up_check(const struct up_findings *f, struct err *err)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->items[i].severity == UP_PROBLEM)
			return err_set(err, ERR_INVALID, "%s: " STR_FMT "; " STR_FMT, f->items[i].what, STR_ARG(f->items[i].says), STR_ARG(f->items[i].advice));
	return 0;
}
