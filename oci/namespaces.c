#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "oci/oci_priv.h"

pid_t process_clone_into(uint64_t flags, int cgroup)
{
	/* With CLONE_PARENT the signal is that of the one who clones. */
	struct clone_args args = { .flags = flags, .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD };

	if (cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

pid_t process_clone(uint64_t flags)
{
	return process_clone_into(flags, -1);
}

/* ---- joining ---- */

void namespaces_close(int fd[NS_KINDS])
{
	for (int k = 0; k < NS_KINDS; k++)
		fd_closep(&fd[k]);
}

int namespaces_open(const struct spec *s, int ret_fd[NS_KINDS], struct err *err)
{
	int fd[NS_KINDS];

	for (int k = 0; k < NS_KINDS; k++)
		fd[k] = -1;
	for (int k = 0; k < NS_KINDS; k++) {
		if (!s->ns[k].path)
			continue;
		fd[k] = open(s->ns[k].path, O_RDONLY | O_CLOEXEC);
		int sys = errno, type = fd[k] < 0 ? -1 : ioctl(fd[k], _IO(0xb7, 0x3)); /* NS_GET_NSTYPE */
		if (type == (int)namespace_types[k].flag)
			continue;
		bool opened = fd[k] >= 0;
		namespaces_close(fd);
		if (opened)
			return err_set(err, ERR_INVALID, "namespace path: %s is no %s namespace", s->ns[k].path, namespace_types[k].name);
		return err_sys(err, sys, "namespace path: lstat %s", s->ns[k].path);
	}
	memcpy(ret_fd, fd, sizeof(fd));
	return 0;
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;
	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int open_ns(int process, const char *file)
{
	char name[32];
	snprintf(name, sizeof(name), "ns/%s", file);
	return openat(process, name, O_RDONLY | O_CLOEXEC);
}

int namespaces_open_of(pid_t pid, int ret_fd[NS_KINDS], struct err *err)
{
	char name[32];
	snprintf(name, sizeof(name), "%d", (int)pid);
	CLEANUP(fd_closep) int theirs = path_open_proc(name, O_PATH | O_DIRECTORY, err);
	if (theirs < 0)
		return theirs;
	CLEANUP(fd_closep) int ours = path_open_proc("self", O_PATH | O_DIRECTORY, err);
	if (ours < 0)
		return ours;
	for (int k = 0; k < NS_KINDS; k++)
		ret_fd[k] = -1;
	for (int k = 0; k < NS_KINDS; k++) {
		CLEANUP(fd_closep) int own = open_ns(ours, namespace_types[k].file);
		ret_fd[k] = open_ns(theirs, namespace_types[k].file);
		if (ret_fd[k] < 0 && own >= 0) {
			int sys = errno;
			namespaces_close(ret_fd);
			return err_sys(err, sys, "the %s namespace of process %d", namespace_types[k].name, (int)pid);
		}
		if (own >= 0 && same_file(own, ret_fd[k]))
			fd_closep(&ret_fd[k]);
	}
	return 0;
}

int namespaces_join(const int fd[NS_KINDS], struct err *err)
{
	for (int k = 0; k < NS_KINDS; k++)
		if (fd[k] >= 0 && setns(fd[k], (int)namespace_types[k].flag) < 0)
			return err_sys(err, errno, "setns: %s", namespace_types[k].name);
	return 0;
}

/* ---- new ones ---- */

unsigned namespaces_new(const struct spec *s)
{
	unsigned flags = 0;

	for (int k = 0; k < NS_KINDS; k++)
		if (spec_is_new(s, (enum namespace_kind)k) && k != NS_CGROUP && k != NS_TIME)
			flags |= namespace_types[k].flag;
	return flags;
}

static int write_file(const char *path, str text, struct err *err)
{
	CLEANUP(fd_closep) int fd = path_open_proc(path, O_WRONLY, err);

	if (fd < 0)
		return fd;
	if (write(fd, text.p, text.n) < 0)
		return err_sys(err, errno, "/proc/%s", path);
	return 0;
}

int namespaces_make_time(const struct spec *s, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);

	if (unshare(CLONE_NEWTIME) < 0)
		return err_sys(err, errno, "unshare");
	VAL_EACH_MEMBER(o, val_get(s->linux_part, timeOffsets))
		buf_addf(&text, STR_FMT " %lld %lld\n", STR_ARG(atom_str(o->key)), (long long)val_int(o->val, secs),
			 (long long)val_int(o->val, nanosecs));
	return text.n ? write_file("self/timens_offsets", buf_str(&text), err) : 0;
}

static int write_map(pid_t pid, const char *file, struct val maps, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64 << 10);
	char path[48];

	VAL_EACH(m, maps) {
		int64_t inside = val_int(*m, containerID), outside = val_int(*m, hostID), size = val_int(*m, size);
		if (inside < 0 || outside < 0 || size <= 0 || inside + size > UINT32_MAX || outside + size > UINT32_MAX)
			return err_set(err, ERR_INVALID, "%s: a range is not within 0 to 4294967294", file);
		buf_addf(&text, "%lld %lld %lld\n", (long long)inside, (long long)outside, (long long)size);
	}
	if (!text.n || text.overflow)
		return err_set(err, ERR_INVALID, "%s: %s", file, text.n ? "too many ranges" : "there is none");
	snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	return write_file(path, buf_str(&text), err);
}

int namespaces_write_maps(pid_t pid, struct val uid_maps, struct val gid_maps, struct err *err)
{
	int r = write_map(pid, "uid_map", uid_maps, err);
	return r < 0 ? r : write_map(pid, "gid_map", gid_maps, err);
}

int namespaces_mapped(struct val uid_maps, struct val gid_maps, struct err *err)
{
	char name[32];
	pid_t pid = process_clone(CLONE_NEWUSER);

	if (pid < 0)
		return err_sys(err, errno, "a user namespace");
	if (pid == 0)
		for (;;)
			(void)pause();
	int fd = namespaces_write_maps(pid, uid_maps, gid_maps, err);
	if (fd >= 0) {
		snprintf(name, sizeof(name), "%d", (int)pid);
		CLEANUP(fd_closep) int process = path_open_proc(name, O_PATH | O_DIRECTORY, err);
		fd = process < 0 ? process : open_ns(process, "user");
		if (process >= 0 && fd < 0)
			fd = err_sys(err, errno, "a user namespace");
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}

/* ---- what is set in them ---- */

int namespaces_set_names(const struct spec *s, struct err *err)
{
	str host = val_str(s->config, hostname), domain = val_str(s->config, domainname);

	if (host.n && sethostname(host.p, host.n) < 0)
		return err_sys(err, errno, "sethostname");
	if (domain.n && setdomainname(domain.p, domain.n) < 0)
		return err_sys(err, errno, "setdomainname");
	return 0;
}

int namespaces_loopback_up(struct err *err)
{
	CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return err_sys(err, errno, "bringing lo up");
	return 0;
}

static bool in_list(str key, const char *const list[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(key, str_of(list[i])))
			return true;
	return false;
}

/* net.ipv4.conf.eth0.x, or net/ipv4/conf/eth0.100/x for names that have dots themselves. */
static void sysctl_path(str key, struct buf *path)
{
	bool dots = true;

	for (size_t i = 0; i < key.n && dots; i++) {
		if (key.p[i] == '.')
			break;
		dots = key.p[i] != '/';
	}
	buf_add(path, STR("sys/"));
	for (size_t i = 0; i < key.n; i++)
		buf_addc(path, dots && key.p[i] == '.' ? '/' : dots && key.p[i] == '/' ? '.' : key.p[i]);
}

/* One with ".." in it, "net/../kernel/core_pattern" or "net.//.kernel.core_pattern", leads to what is the host's. */
static bool leads_away(str key)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(1024);
	str part, rest;

	sysctl_path(key, &path);
	for (rest = buf_str(&path); rest.n;) {
		str_cut(rest, '/', &part, &rest);
		if (str_eq(part, STR("..")))
			return true;
	}
	return path.overflow || str_chr(key, '\0') >= 0;
}

/* Only what belongs to a namespace of the container may be set; the rest would be the host's. */
int namespaces_check_sysctls(const struct spec *s, struct err *err)
{
	static const char *const ipc[] = {
		"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni",
		"kernel.shm_rmid_forced",
	};
	VAL_EACH_MEMBER(m, val_get(s->linux_part, sysctl)) {
		str key = atom_str(m->key);
		if (!val_is(m->val, VAL_STRING))
			return err_set(err, ERR_INVALID, "config.json: linux.sysctl: " STR_FMT ": it must be a string", STR_ARG(key));
		if (leads_away(key))
			return err_set(err, ERR_INVALID, "sysctl \"" STR_FMT "\" is no name of a sysctl", STR_ARG(key));
		if (in_list(key, ipc, ARRAY_LEN(ipc)) || str_starts(key, STR("fs.mqueue."))) {
			if (s->ns[NS_IPC].wanted)
				continue;
			return err_set(err, ERR_INVALID, "sysctl \"" STR_FMT "\" is not allowed in the hosts ipc namespace", STR_ARG(key));
		}
		if (str_starts(key, STR("net.")) || str_starts(key, STR("net/"))) {
			if (s->ns[NS_NETWORK].wanted)
				continue;
			return err_set(err, ERR_INVALID, "sysctl \"" STR_FMT "\" not allowed in host network namespace", STR_ARG(key));
		}
		if (s->ns[NS_UTS].wanted && str_eq(key, STR("kernel.domainname")))
			continue;
		if (s->ns[NS_USER].wanted && str_starts(key, STR("user.")))
			continue;
		return err_set(err, ERR_INVALID, "sysctl \"" STR_FMT "\" is not in a separate kernel namespace", STR_ARG(key));
	}
	return 0;
}

int namespaces_set_sysctls(const struct spec *s, struct err *err)
{
	VAL_EACH_MEMBER(m, val_get(s->linux_part, sysctl)) {
		CLEANUP(buf_done) struct buf path = BUF_INIT(1024);
		sysctl_path(atom_str(m->key), &path);
		int r = buf_check(&path, "the name of a sysctl", err);
		if (r < 0 || (r = write_file(path.p, val_as_str(m->val), err)) < 0)
			return r;
	}
	return 0;
}
