/*
 * What a node needs of its machine. A finding is one line: what was looked at, what it is, and what to do about it. What can be tried is tried,
 * by one child process in namespaces that go with it: a kernel that has a feature as a module loads it, and a list of features would not know.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/netfilter.h>
#include <linux/netlink.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/up.h"
#include "cni/link.h"
#include "cni/nft.h"

enum { FILE_MAX = 1 << 20, MEMORY_LOW_KB = 256 * 1024, KERNEL_MAJOR = 5, KERNEL_MINOR = 10 };

void up_tell(struct up_findings *f, enum up_severity severity, const char *what, str says, const char *advice)
{
	if (f->n < UP_FINDINGS_MAX)
		f->items[f->n++] = (struct up_finding){ severity, what, says, severity == UP_FINE ? STR_NONE : str_of(advice) };
}

/* ---- who we are, and where ---- */

/* Whether the users of this namespace are those of the machine: root of another one may be nobody there. */
static bool has_all_users(void)
{
	CLEANUP(buf_done) struct buf map = BUF_INIT(FILE_MAX);
	unsigned inside = 1, outside = 1, n = 0;

	return file_read("/proc/self/uid_map", &map, NULL) < 0 || !map.n || sscanf(map.p, "%u %u %u", &inside, &outside, &n) != 3 ||
	       (inside == 0 && outside == 0 && n == UINT32_MAX);
}

static void look_at_user(struct arena *a, struct up_findings *f)
{
	uid_t uid = geteuid();

	if (uid)
		up_tell(f, UP_PROBLEM, "user", arena_printf(a, "user %u, not root", uid),
			"a node makes namespaces, mounts and network links: run it as root, for example with sudo; 'c8s control-plane' alone needs no privileges");
	else if (!has_all_users())
		up_tell(f, UP_PROBLEM, "user", STR("root of a user namespace only"),
			"a node needs the machine's own root: start it outside of the user namespace ('unshare -U', rootless containers)");
	else
		up_tell(f, UP_FINE, "user", STR("root"), NULL);
}

static void look_at_kernel(struct arena *a, struct up_findings *f)
{
	struct utsname name;
	int major = 0, minor = 0;

	(void)uname(&name);
	(void)sscanf(name.release, "%d.%d", &major, &minor);
	bool old = major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR);
	up_tell(f, old ? UP_PROBLEM : UP_FINE, "kernel", arena_str(a, str_of(name.release)), "Linux 5.10 or newer is needed");
}

/* ---- what is tried ---- */

static bool makes_namespaces(void) { return unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP) == 0; }

static bool makes_link(const char *kind, const char *name, const char *peer)
{
	struct netlink n = NETLINK_INIT;

	return netlink_open(&n, NETLINK_ROUTE, NULL) == 0 && link_add(&n, &(struct link_spec){ .name = name, .kind = kind, .peer_name = peer }, NULL) == 0;
}

static bool makes_bridge(void) { return makes_link("bridge", "c8s0", NULL); }

static bool makes_veth(void) { return makes_link("veth", "c8s1", "c8s2"); }

static bool makes_rules(void)
{
	struct netlink n = NETLINK_INIT;
	struct nft_batch b;

	nft_batch_begin(&b, "c8s_doctor");
	nft_table(&b);
	nft_nat_chain(&b, "postrouting", NF_INET_POST_ROUTING, 0);
	return netlink_open(&n, NETLINK_NETFILTER, NULL) == 0 && nft_batch_commit(&b, &n, NULL) == 0;
}

static bool opens_overlay(void) { return syscall(SYS_fsopen, "overlay", 1 /* FSOPEN_CLOEXEC */) >= 0; }

static bool makes_users(void) { return unshare(CLONE_NEWUSER) == 0; }

/* In the order of trying: the first makes the namespaces that the others are tried in. */
static const struct feature {
	const char *what;
	bool (*try)(void);
	enum up_severity without;
	const char *advice;
} features[] = {
	{ "namespaces", makes_namespaces, UP_PROBLEM,
	  "pods are made of namespaces: raise the limits in /proc/sys/user/max_*_namespaces, and in a container give it CAP_SYS_ADMIN; the kernel needs "
	  "CONFIG_NAMESPACES with UTS_NS, IPC_NS, PID_NS, NET_NS, and CONFIG_CGROUPS" },
	{ "bridge", makes_bridge, UP_PROBLEM, "pods are connected by a bridge: modprobe bridge (CONFIG_BRIDGE)" },
	{ "veth", makes_veth, UP_PROBLEM, "pods are connected by pairs of links: modprobe veth (CONFIG_VETH)" },
	{ "nftables", makes_rules, UP_PROBLEM,
	  "host ports and masquerading are nftables rules: modprobe nft_chain_nat (CONFIG_NF_TABLES, CONFIG_NFT_NAT)" },
	{ "overlayfs", opens_overlay, UP_WARNING, "without it every container has a copy of its image: modprobe overlay (CONFIG_OVERLAY_FS)" },
	{ "user namespaces", makes_users, UP_WARNING,
	  "pods with hostUsers: false cannot run: raise /proc/sys/user/max_user_namespaces, and look for a security module that restricts them "
	  "(kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)" },
};

/* In shared memory, by the child. */
struct trials {
	bool works[ARRAY_LEN(features)];
};

static void look_at_features(struct up_findings *f)
{
	struct trials *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = t == MAP_FAILED ? -1 : fork();

	if (pid == 0) {
		for (size_t i = 0; i < ARRAY_LEN(features) && (i == 0 || t->works[0]); i++)
			t->works[i] = features[i].try();
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; t != MAP_FAILED && i < ARRAY_LEN(features) && (i == 0 || t->works[0]); i++)
		up_tell(f, t->works[i] ? UP_FINE : features[i].without, features[i].what, t->works[i] ? STR("can be made") : STR("cannot be made"),
			features[i].advice);
	if (t != MAP_FAILED)
		(void)munmap(t, sizeof(*t));
}

/* ---- control groups ---- */

static const char *const controllers[] = { "cpu", "memory", "pids" };

enum { N_CONTROLLERS = ARRAY_LEN(controllers) };

static bool has_word(str text, str word, const char *separators)
{
	while (text.n) {
		size_t n = 0;
		while (n < text.n && !strchr(separators, text.p[n]))
			n++;
		if (str_eq(str_span(text.p, n), word))
			return true;
		text = str_skip(text, MIN(n + 1, text.n));
	}
	return false;
}

/* Marks what this file of v2 names. */
static void find_unified(const char *path, bool *found)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);

	(void)file_read(path, &text, NULL);
	for (size_t i = 0; i < N_CONTROLLERS; i++)
		found[i] |= has_word(buf_str(&text), str_of(controllers[i]), " \n");
}

/* Marks what is mounted of v1, and not hidden by something else that is mounted there. */
static void find_mounted(bool *found, bool *read_only)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *m;
	struct statfs fs;

	while (mounts && (m = getmntent(mounts)))
		for (size_t i = 0; strcmp(m->mnt_type, "cgroup") == 0 && i < N_CONTROLLERS; i++)
			if (has_word(str_of(m->mnt_opts), str_of(controllers[i]), ",") && statfs(m->mnt_dir, &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC) {
				found[i] = true;
				*read_only |= access(m->mnt_dir, W_OK) < 0 && errno == EROFS;
			}
	if (mounts)
		(void)endmntent(mounts);
}

/* In the root of a container's cgroup namespace, processes are in the way of handing controllers on. */
static bool is_blocked(void)
{
	CLEANUP(buf_done) struct buf processes = BUF_INIT(FILE_MAX);
	bool handed_on[N_CONTROLLERS] = { false };

	if (access("/sys/fs/cgroup/cgroup.type", F_OK) < 0) /* only the machine's own root has none */
		return false;
	find_unified("/sys/fs/cgroup/cgroup.subtree_control", handed_on);
	(void)file_read("/sys/fs/cgroup/cgroup.procs", &processes, NULL);
	return processes.n && !(handed_on[0] && handed_on[1] && handed_on[2]);
}

static void tell_missing(struct arena *a, bool v2, const bool *found, struct up_findings *f)
{
	CLEANUP(buf_done) struct buf missing = BUF_INIT(FILE_MAX);

	for (size_t i = 0; i < N_CONTROLLERS; i++)
		if (!found[i])
			buf_addf(&missing, " %s", controllers[i]);
	if (v2)
		up_tell(f, UP_PROBLEM, "cgroups", arena_printf(a, "version 2, without" STR_FMT, STR_ARG(buf_str(&missing))),
			"these controllers are off, or taken by hierarchies of version 1: boot without cgroup_disable= and cgroup_no_v1=, with cgroup_enable=memory on "
			"small boards; in a container, have them delegated");
	else
		up_tell(f, UP_PROBLEM, "cgroups", arena_printf(a, "not mounted:" STR_FMT, STR_ARG(buf_str(&missing))),
			"mount -t cgroup2 none /sys/fs/cgroup, or boot with an init that does");
}

static void look_at_groups(struct arena *a, struct up_findings *f)
{
	bool found[N_CONTROLLERS] = { false }, read_only = false;
	struct statfs fs;
	bool v2 = statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
	bool hybrid = !v2 && statfs("/sys/fs/cgroup/unified", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;

	if (v2) {
		find_unified("/sys/fs/cgroup/cgroup.controllers", found);
		read_only = access("/sys/fs/cgroup", W_OK) < 0 && errno == EROFS;
	} else {
		find_mounted(found, &read_only);
	}
	if (!found[0] || !found[1] || !found[2])
		tell_missing(a, v2, found, f);
	else if (read_only)
		up_tell(f, UP_PROBLEM, "cgroups", STR("mounted read-only"), "in a container, give it writable control groups (docker run --privileged); else: mount -o remount,rw");
	else if (v2 && is_blocked())
		up_tell(f, UP_PROBLEM, "cgroups", STR("version 2, not delegated: processes are in the root of this cgroup namespace"),
			"move them first: mkdir /sys/fs/cgroup/init; for p in $(cat /sys/fs/cgroup/cgroup.procs); do echo $p > /sys/fs/cgroup/init/cgroup.procs; done");
	else
		up_tell(f, UP_FINE, "cgroups", v2 ? STR("version 2") : hybrid ? STR("version 1, with an empty version 2 beside it") : STR("version 1"), NULL);
}

/* ---- the rest ---- */

static void look_at_memory(struct arena *a, struct up_findings *f)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	str word = STR("\nMemAvailable:");

	if (file_read("/proc/meminfo", &text, NULL) < 0 || str_find(buf_str(&text), word) < 0)
		return;
	int64_t kb = strtoll(text.p + str_find(buf_str(&text), word) + word.n, NULL, 10);
	up_tell(f, kb < MEMORY_LOW_KB ? UP_WARNING : UP_FINE, "memory", arena_printf(a, "%" PRId64 " MiB available", kb / 1024),
		"that is little: pods may be killed");
}

static void look_at_program(const struct up_cluster *c, struct arena *a, struct up_findings *f)
{
	const char *slash = strrchr(c->program, '/');
	str pod = arena_printf(a, "%.*s/c8s-pod", (int)(slash - c->program), c->program);
	bool there = access(pod.p, X_OK) == 0;

	up_tell(f, there ? UP_FINE : UP_PROBLEM, "c8s-pod", there ? pod : arena_printf(a, STR_FMT " is not there", STR_ARG(pod)),
		"it starts containers and belongs beside c8s: install both ('make install'), or copy it there");
}

void up_look(struct arena *a, const struct up_cluster *c, struct up_findings *ret)
{
	ret->n = 0;
	look_at_user(a, ret);
	look_at_kernel(a, ret);
	if (geteuid() == 0)
		look_at_features(ret);
	look_at_groups(a, ret);
	look_at_memory(a, ret);
	if (!c->settings.container_runtime_endpoint)
		look_at_program(c, a, ret);
	up_look_at_place(a, c, ret);
}

int up_check(const struct up_findings *f, struct err *err)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->items[i].severity == UP_PROBLEM)
			return err_set(err, ERR_INVALID, "%s: " STR_FMT "\n" STR_FMT "\n'c8s doctor' looks at everything that is needed.", f->items[i].what,
				       STR_ARG(f->items[i].says), STR_ARG(f->items[i].advice));
	return 0;
}
