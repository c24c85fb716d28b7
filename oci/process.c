/* process: what a process may do and is: the last steps before it becomes the program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "oci/oci_priv.h"

/* ---- labels of security modules ---- */

static bool has_apparmor(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	return file_read("/sys/module/apparmor/parameters/enabled", &text, NULL) >= 0 && str_starts(buf_str(&text), STR("Y"));
}

/* As it is outside, by process_check: what an exec finds at /sys is the container's, and could say no. */
static bool apparmor_is_on;

bool process_has_selinux(void)
{
	struct statfs fs;
	return statfs("/sys/fs/selinux", &fs) == 0 && fs.f_type == SELINUX_MAGIC;
}

int process_check(const struct process *p, struct err *err)
{
	apparmor_is_on = p->apparmor && has_apparmor();
	if (p->apparmor && !str_eq(str_of(p->apparmor), STR("unconfined")) && !apparmor_is_on)
		return err_set(err, ERR_INVALID, "apparmor profile %s is specified in config, but the kernel has no AppArmor", p->apparmor);
	if (p->selinux && !process_has_selinux())
		return err_set(err, ERR_INVALID, "selinux label is specified in config, but selinux is disabled or not supported");
	return 0;
}

int process_open_label(const struct process *p, int *ret_fd, struct err *err)
{
	*ret_fd = -1;
	if (p->selinux) {
		*ret_fd = path_open_proc("self/attr/exec", O_WRONLY, err);
	} else if (p->apparmor && apparmor_is_on) {
		*ret_fd = path_open_proc("self/attr/apparmor/exec", O_WRONLY, err);
		if (*ret_fd == -ERR_NOT_FOUND)
			*ret_fd = path_open_proc("self/attr/exec", O_WRONLY, err);
	}
	return *ret_fd < -1 ? *ret_fd : 0;
}

int process_set_label(const struct process *p, int fd, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);

	if (fd < 0)
		return 0;
	if (p->selinux)
		buf_add(&text, str_of(p->selinux));
	else
		buf_addf(&text, "exec %s", p->apparmor);
	int r = buf_check(&text, "the label", err);
	if (r < 0)
		return r;
	return write(fd, text.p, text.n) < 0 ? err_sys(err, errno, "label %s", p->selinux ? p->selinux : p->apparmor) : 0;
}

/* ---- limits and scheduling ---- */

int process_set_limits(const struct process *p, struct err *err)
{
	for (size_t i = 0; i < p->limits_n; i++) {
		const struct process_limit *l = &p->limits[i];
		if (setrlimit((__rlimit_resource_t)l->resource, &l->limit) < 0)
			return err_sys(err, errno, "setrlimit %d to %llu, %llu", l->resource, (unsigned long long)l->limit.rlim_cur,
				       (unsigned long long)l->limit.rlim_max);
	}
	return 0;
}

/* As the kernel has it; libc does not show it. */
struct schedule {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static const struct word {
	const char *name;
	unsigned value;
} policies[] = {
	{ "SCHED_OTHER", 0 }, { "SCHED_FIFO", 1 }, { "SCHED_RR", 2 }, { "SCHED_BATCH", 3 }, { "SCHED_ISO", 4 }, { "SCHED_IDLE", 5 },
	{ "SCHED_DEADLINE", 6 }, { NULL, 0 },
}, schedule_flags[] = {
	{ "SCHED_FLAG_RESET_ON_FORK", 0x01 }, { "SCHED_FLAG_RECLAIM", 0x02 }, { "SCHED_FLAG_DL_OVERRUN", 0x04 },
	{ "SCHED_FLAG_KEEP_POLICY", 0x08 }, { "SCHED_FLAG_KEEP_PARAMS", 0x10 }, { "SCHED_FLAG_UTIL_CLAMP_MIN", 0x20 },
	{ "SCHED_FLAG_UTIL_CLAMP_MAX", 0x40 }, { NULL, 0 },
}, io_classes[] = {
	{ "IOPRIO_CLASS_RT", 1 }, { "IOPRIO_CLASS_BE", 2 }, { "IOPRIO_CLASS_IDLE", 3 }, { NULL, 0 },
};

static int find_word(const struct word *words, str name, unsigned *ret, struct err *err)
{
	for (; words->name; words++) {
		if (str_eq(name, str_of(words->name))) {
			*ret = words->value;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not known", STR_ARG(name));
}

static int set_scheduler(struct val v, struct err *err)
{
	struct schedule s = {
		.size = sizeof(s),
		.nice = (int32_t)val_int(v, nice),
		.priority = (uint32_t)val_int(v, priority),
		.runtime = (uint64_t)val_int(v, runtime),
		.deadline = (uint64_t)val_int(v, deadline),
		.period = (uint64_t)val_int(v, period),
	};
	unsigned flag;
	int r = find_word(policies, val_str(v, policy), &s.policy, err);

	if (r < 0)
		return err_wrap(err, r, "process.scheduler.policy");
	VAL_EACH(f, val_get(v, flags)) {
		if ((r = find_word(schedule_flags, val_as_str(*f), &flag, err)) < 0)
			return err_wrap(err, r, "process.scheduler.flags");
		s.flags |= flag;
	}
	return syscall(SYS_sched_setattr, 0, &s, 0) < 0 ? err_sys(err, errno, "sched_setattr") : 0;
}

static int set_io_priority(struct val v, struct err *err)
{
	unsigned class;
	int r = find_word(io_classes, val_str(v, class), &class, err);

	if (r < 0)
		return err_wrap(err, r, "process.ioPriority.class");
	if (val_int(v, priority) < 0 || val_int(v, priority) > 7)
		return err_set(err, ERR_INVALID, "process.ioPriority.priority is not from 0 to 7");
	if (syscall(SYS_ioprio_set, 1 /* this process */, 0, IOPRIO_PRIO_VALUE(class, (unsigned)val_int(v, priority))) < 0)
		return err_sys(err, errno, "ioprio_set");
	return 0;
}

/* "0-2,5" */
static bool parse_cpus(str list, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	while (list.n) {
		str range, first, last;
		int64_t from, to;
		str_cut(list, ',', &range, &list);
		if (!str_cut(range, '-', &first, &last))
			last = first;
		if (!str_to_i64(first, &from) || !str_to_i64(last, &to) || from < 0 || to >= CPU_SETSIZE || from > to)
			return false;
		for (; from <= to; from++)
			CPU_SET((size_t)from, ret);
	}
	return CPU_COUNT(ret) > 0;
}

int process_set_schedule(const struct process *p, struct err *err)
{
	struct val scheduler = val_get(p->config, scheduler), io = val_get(p->config, ioPriority);
	str cpus = val_str(p->config, execCPUAffinity, final);
	cpu_set_t set;
	int r;

	if (val_is(scheduler, VAL_OBJECT) && (r = set_scheduler(scheduler, err)) < 0)
		return r;
	if (val_is(io, VAL_OBJECT) && (r = set_io_priority(io, err)) < 0)
		return r;
	if (cpus.n && !parse_cpus(cpus, &set))
		return err_set(err, ERR_INVALID, "process.execCPUAffinity.final: \"" STR_FMT "\" is no list of processors", STR_ARG(cpus));
	if (cpus.n && sched_setaffinity(0, sizeof(set), &set) < 0)
		return err_sys(err, errno, "sched_setaffinity");
	return 0;
}

int process_set_personality(struct val v, struct err *err)
{
	str domain = val_str(v, domain);
	unsigned long persona = str_eq(domain, STR("LINUX32")) ? PER_LINUX32 : PER_LINUX;

	if (!val_is(v, VAL_OBJECT))
		return 0;
	if (val_len(val_get(v, flags)) || (domain.n && persona == PER_LINUX && !str_eq(domain, STR("LINUX"))))
		return err_set(err, ERR_INVALID, "linux.personality: only the domains LINUX and LINUX32 are supported, and no flags");
	return personality(persona) < 0 ? err_sys(err, errno, "personality") : 0;
}

int process_new_keyring(const char *name, struct err *err)
{
	char text[256];

	snprintf(text, sizeof(text), "_ses.%s", name);
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, text) < 0 && errno != ENOSYS)
		return err_sys(err, errno, "joining a new session keyring");
	return 0;
}

int process_set_oom_score(pid_t pid, struct val process, struct err *err)
{
	char path[48], text[24];

	if (!val_has(process, oomScoreAdj))
		return 0;
	snprintf(path, sizeof(path), "%d/oom_score_adj", (int)pid);
	snprintf(text, sizeof(text), "%lld", (long long)val_int(process, oomScoreAdj));
	CLEANUP(fd_closep) int fd = path_open_proc(path, O_WRONLY, err);
	if (fd < 0)
		return fd;
	if (write(fd, text, strlen(text)) >= 0)
		return 0;
	/* Lower than our own needs CAP_SYS_RESOURCE: without it, it stays like ours, which is the nearest that there is. */
	if (errno == EACCES) {
		log_warn("oom_score_adj cannot be lowered without CAP_SYS_RESOURCE; ignoring", KV("wanted", val_int(process, oomScoreAdj)));
		return 0;
	}
	return err_sys(err, errno, "/proc/%s", path);
}

/* ---- identity ---- */

static uint64_t own_caps(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	(void)syscall(SYS_capget, &header, data);
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static int drop_bounding(uint64_t keep, struct err *err)
{
	for (int cap = 0; cap < 64; cap++) {
		int there = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (there < 0)
			break;
		if (there && !(keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_sys(err, errno, "dropping capability %d from the bounding set", cap);
	}
	return 0;
}

static int set_caps(const uint64_t caps[CAP_SETS], struct err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(caps[CAP_SET_EFFECTIVE] >> 32 * i),
			.permitted = (uint32_t)(caps[CAP_SET_PERMITTED] >> 32 * i),
			.inheritable = (uint32_t)(caps[CAP_SET_INHERITABLE] >> 32 * i),
		};
	if (syscall(SYS_capset, &header, data) < 0)
		return err_sys(err, errno, "capset");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(err, errno, "clearing ambient capabilities");
	/* Only what is permitted and inheritable can be ambient; the rest is left out, as others do. */
	uint64_t ambient = caps[CAP_SET_AMBIENT] & caps[CAP_SET_PERMITTED] & caps[CAP_SET_INHERITABLE];
	for (int cap = 0; cap < 64; cap++)
		if (ambient >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return err_sys(err, errno, "raising ambient capability %d", cap);
	return 0;
}

/* A program that runs as somebody else must be able to open /dev/stdout again. What is no file of ours stays as it is. */
static void give_stdio(uid_t uid)
{
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == 0 && st.st_uid != uid && !(S_ISCHR(st.st_mode) && !isatty(fd)) && fchown(fd, uid, (gid_t)-1) < 0)
			continue;
}

int process_set_identity(const struct process *p, struct err *err)
{
	uint64_t caps[CAP_SETS], own = own_caps();
	int r;

	/* What we do not have we cannot give. */
	for (int i = 0; i < CAP_SETS; i++)
		caps[i] = p->caps[i] & own;
	give_stdio(p->uid);
	if ((r = drop_bounding(caps[CAP_SET_BOUNDING], err)) < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "PR_SET_KEEPCAPS");
	if (setgroups(p->gids_n, p->gids) < 0)
		return err_sys(err, errno, "setgroups");
	if (setresgid(p->gid, p->gid, p->gid) < 0)
		return err_sys(err, errno, "setgid %u", (unsigned)p->gid);
	if (setresuid(p->uid, p->uid, p->uid) < 0)
		return err_sys(err, errno, "setuid %u", (unsigned)p->uid);
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "PR_SET_KEEPCAPS");
	if (p->umask >= 0)
		umask((mode_t)p->umask);
	return set_caps(caps, err);
}

int process_enter_cwd(const struct process *p, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PATH_MAX);

	if (chdir(p->cwd) < 0)
		return err_sys(err, errno, "chdir to cwd (\"%s\") set in config.json failed", p->cwd);
	/* The kernel says where we are only if that is below our root: a way out that somebody left open ends here. */
	long n = syscall(SYS_getcwd, buf_reserve(&text, PATH_MAX - 1), PATH_MAX - 1);
	if (n < 0 || text.p[0] != '/')
		return err_set(err, ERR_FORBIDDEN, "current working directory is outside of container mount namespace root -- possible container breakout detected");
	return 0;
}

/* ---- the environment ---- */

/* The home of a user in the container's /etc/passwd, which may be anything; "/" if it is not told there. */
static str home_of(uid_t uid, struct arena *a)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	str line, rest, field, wanted = arena_printf(a, "%u", (unsigned)uid);
	struct stat st;

	/* It may be exchanged for a pipe at any moment: not waiting for a writer. */
	CLEANUP(fd_closep) int fd = open("/etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char chunk[2048];
	ssize_t n = 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return STR("/");
	while (!text.overflow && (n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(&text, str_span(chunk, (size_t)n));
	if (n < 0 || text.overflow)
		return STR("/");
	for (rest = buf_str(&text); rest.n;) {
		bool found = false;
		str_cut(rest, '\n', &line, &rest);
		for (int i = 0; i < 6; i++) {
			str_cut(line, ':', &field, &line);
			found |= i == 2 && str_eq(field, wanted);
		}
		if (found && str_starts(field, STR("/")) && str_chr(field, '\0') < 0)
			return arena_str(a, field);
	}
	return STR("/");
}

void process_set_home(struct process *p, struct arena *a)
{
	size_t n = 0;

	for (; p->env[n]; n++)
		if (str_starts(str_of(p->env[n]), STR("HOME=")) && p->env[n][5])
			return;
	const char **env = ARENA_ARRAY(a, const char *, n + 2);
	memcpy(env, p->env, n * sizeof(*env));
	env[n] = arena_join(a, STR("HOME="), home_of(p->uid, a)).p;
	env[n + 1] = NULL;
	p->env = env;
}

/* ---- descriptors ---- */

int process_set_stdio(const int stdio[3], struct err *err)
{
	int copy[3];

	for (int i = 0; i < 3; i++) {
		copy[i] = stdio[i] >= 0 ? fcntl(stdio[i], F_DUPFD_CLOEXEC, 3) : open("/dev/null", O_RDWR | O_CLOEXEC);
		if (copy[i] < 0)
			return err_sys(err, errno, "descriptor %d", i);
		/* /dev/null may have got one of the numbers that are to be filled. */
		if (copy[i] < 3 && (copy[i] = fcntl(copy[i], F_DUPFD_CLOEXEC, 3)) < 0)
			return err_sys(err, errno, "descriptor %d", i);
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(copy[i], i) < 0)
			return err_sys(err, errno, "descriptor %d", i);
		close(copy[i]);
	}
	return 0;
}

int process_close_others(int preserve, int *const kept[], size_t n, struct err *err)
{
	int first = 3 + preserve;

	for (int fd = 3; fd < first; fd++) {
		int flags = fcntl(fd, F_GETFD);
		if (flags < 0 || fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC) < 0)
			return err_sys(err, errno, "descriptor %d is to be preserved", fd);
	}
	for (size_t i = 0; i < n; i++)
		if (*kept[i] >= 0 && (*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, first + (int)n)) < 0)
			return err_sys(err, errno, "moving a descriptor");
	for (size_t i = 0; i < n; i++) {
		int to = first + (int)i;
		if (*kept[i] < 0)
			close(to);
		else if (dup3(*kept[i], to, O_CLOEXEC) < 0)
			return err_sys(err, errno, "moving a descriptor");
		else
			*kept[i] = to;
	}
	if (close_range((unsigned)first + (unsigned)n, ~0U, 0) < 0)
		return err_sys(err, errno, "close_range");
	return 0;
}

/* ---- the program ---- */

static int check_program(const char *name, const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(err, errno, "exec: \"%s\": stat %s", name, path);
	if (S_ISDIR(st.st_mode))
		return err_sys(err, EISDIR, "exec: \"%s\"", name);
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 || !(st.st_mode & 0111))
		return err_sys(err, EACCES, "exec: \"%s\"", name);
	return 0;
}

static str path_variable(const char **env)
{
	str value = STR_NONE;

	for (; *env; env++)
		if (str_starts(str_of(*env), STR("PATH=")))
			value = str_skip(str_of(*env), 5);
	return value;
}

int process_find_program(const struct process *p, struct arena *a, const char **ret, struct err *err)
{
	const char *name = p->args[0];
	str rest = path_variable(p->env), folder;
	int denied = 0;

	if (strchr(name, '/')) {
		*ret = name;
		return check_program(name, name, err);
	}
	while (rest.n) {
		str_cut(rest, ':', &folder, &rest);
		/* A relative folder would make it depend on where we are. */
		if (!str_starts(folder, STR("/")))
			continue;
		const char *path = arena_printf(a, STR_FMT "/%s", STR_ARG(folder), name).p;
		int r = check_program(name, path, err);
		if (r == 0) {
			*ret = path;
			return 0;
		}
		denied |= r == -ERR_FORBIDDEN;
	}
	if (denied)
		return err_sys(err, EACCES, "exec: \"%s\"", name);
	return err_set(err, ERR_NOT_FOUND, "exec: \"%s\": executable file not found in $PATH", name);
}
