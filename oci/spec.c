#include "oci/spec.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { CONFIG_MAX = 16 << 20, ITEMS_MAX = 65536 };

const struct namespace_type namespace_types[NS_KINDS] = {
	[NS_MOUNT] = { "mount", "mnt", CLONE_NEWNS },
	[NS_PID] = { "pid", "pid", CLONE_NEWPID },
	[NS_NETWORK] = { "network", "net", CLONE_NEWNET },
	[NS_IPC] = { "ipc", "ipc", CLONE_NEWIPC },
	[NS_UTS] = { "uts", "uts", CLONE_NEWUTS },
	[NS_CGROUP] = { "cgroup", "cgroup", CLONE_NEWCGROUP },
	[NS_TIME] = { "time", "time", CLONE_NEWTIME },
	[NS_USER] = { "user", "user", CLONE_NEWUSER },
};

static int wrong(struct err *err, const char *where, const char *what)
{
	return err_set(err, ERR_INVALID, "config.json: %s: %s", where, what);
}

int spec_text(struct arena *a, struct val v, const char *what, const char **ret, struct err *err)
{
	str s = val_as_str(v);

	if (!val_is_nil(v) && !val_is(v, VAL_STRING))
		return wrong(err, what, "it must be a string");
	if (str_chr(s, '\0') >= 0)
		return wrong(err, what, "it has a zero byte");
	*ret = arena_str(a, s).p;
	return 0;
}

static int texts(struct arena *a, struct val list, const char *what, const char ***ret, struct err *err)
{
	uint32_t n = val_len(list);
	int r;

	if (!val_is_nil(list) && !val_is(list, VAL_LIST))
		return wrong(err, what, "it must be a list");
	const char **all = ARENA_ARRAY(a, const char *, n + 1);
	for (uint32_t i = 0; i < n; i++)
		if ((r = spec_text(a, val_at(list, i), what, &all[i], err)) < 0)
			return r;
	all[n] = NULL;
	*ret = all;
	return 0;
}

/* ---- the whole ---- */

static int check_version(struct val config, struct err *err)
{
	str version = val_str(config, ociVersion);
	int64_t minor;
	str head, tail, rest;

	if (!version.n)
		return wrong(err, "ociVersion", "it is missing");
	str_cut(version, '.', &head, &tail);
	str_cut(tail, '.', &tail, &rest);
	str_cut(tail, '-', &tail, &rest);
	if (!str_eq(head, STR("1")) || !str_to_i64(tail, &minor))
		return err_set(err, ERR_INVALID, "config.json: ociVersion: \"" STR_FMT "\" is not 1.x", STR_ARG(version));
	return 0;
}

static int read_root(struct arena *a, struct spec *s, struct err *err)
{
	const char *path;
	int r = spec_text(a, val_get(s->config, root, path), "root.path", &path, err);

	if (r < 0)
		return r;
	if (!*path)
		return wrong(err, "root.path", "it is missing");
	const char *joined = *path == '/' ? path : arena_printf(a, "%s/%s", s->bundle, path).p;
	char *real = realpath(joined, NULL);
	if (!real)
		return err_sys(err, errno, "config.json: root.path: %s", joined);
	s->rootfs = arena_str(a, str_of(real)).p;
	free(real);
	struct stat st;
	if (stat(s->rootfs, &st) < 0 || !S_ISDIR(st.st_mode))
		return wrong(err, "root.path", "it is no directory");
	return 0;
}

static int read_namespaces(struct arena *a, struct spec *s, struct err *err)
{
	VAL_EACH(n, val_get(s->linux_part, namespaces)) {
		str type = val_str(*n, type);
		int k = 0, r;
		while (k < NS_KINDS && !str_eq(type, str_of(namespace_types[k].name)))
			k++;
		if (k == NS_KINDS)
			return err_set(err, ERR_INVALID, "config.json: linux.namespaces: \"" STR_FMT "\" is not known", STR_ARG(type));
		if (s->ns[k].wanted)
			return err_set(err, ERR_INVALID, "config.json: linux.namespaces: %s is there twice", namespace_types[k].name);
		const char *path;
		if ((r = spec_text(a, val_get(*n, path), "linux.namespaces", &path, err)) < 0)
			return r;
		if (*path && *path != '/')
			return wrong(err, "linux.namespaces", "a path must be absolute");
		s->ns[k].wanted = true;
		s->ns[k].path = *path ? path : NULL;
	}
	if (!spec_is_new(s, NS_MOUNT))
		return wrong(err, "linux.namespaces", "a new mount namespace is needed");
	return 0;
}

static int check_namespaces(const struct spec *s, struct err *err)
{
	bool maps = val_len(val_get(s->linux_part, uidMappings)) || val_len(val_get(s->linux_part, gidMappings));

	if (maps && !s->ns[NS_USER].wanted)
		return wrong(err, "linux.uidMappings", "there is no user namespace that it could be of");
	if (spec_is_new(s, NS_USER) && !(val_len(val_get(s->linux_part, uidMappings)) && val_len(val_get(s->linux_part, gidMappings))))
		return wrong(err, "linux.uidMappings", "a new user namespace needs it and gidMappings");
	if ((val_str(s->config, hostname).n || val_str(s->config, domainname).n) && !s->ns[NS_UTS].wanted)
		return wrong(err, "hostname", "unable to set hostname without a private UTS namespace");
	if (val_len(val_get(s->linux_part, timeOffsets)) && !spec_is_new(s, NS_TIME))
		return wrong(err, "linux.timeOffsets", "there is no new time namespace that they could be of");
	return 0;
}

static int check_mounts(struct val mounts, struct err *err)
{
	if (!val_is_nil(mounts) && !val_is(mounts, VAL_LIST))
		return wrong(err, "mounts", "it must be a list");
	VAL_EACH(m, mounts)
		if (!val_str(*m, destination).n)
			return wrong(err, "mounts", "a destination is missing");
	return 0;
}

static int check_hooks(struct val hooks, struct err *err)
{
	VAL_EACH_MEMBER(kind, hooks)
		VAL_EACH(h, kind->val) {
			str path = val_str(*h, path);
			if (!str_starts(path, STR("/")) || str_chr(path, '\0') >= 0)
				return wrong(err, "hooks", "a path must be absolute");
			if (val_has(*h, timeout) && val_int(*h, timeout) <= 0)
				return wrong(err, "hooks", "a timeout must be greater than zero");
		}
	return 0;
}

/* What is known not to be done is refused, not left out in silence. */
static int check_refused(const struct spec *s, struct err *err)
{
	if (!val_is_zero(val_get(s->linux_part, intelRdt)))
		return wrong(err, "linux.intelRdt", "it is not supported");
	if (!val_is_zero(val_get(s->linux_part, netDevices)))
		return wrong(err, "linux.netDevices", "it is not supported");
	return 0;
}

int spec_decode(str text, const char *bundle, struct arena *a, struct spec *ret, struct err *err)
{
	struct spec s = { .bundle = arena_str(a, str_of(bundle)).p };
	int r;

	if ((r = json_decode(a, arena_str(a, text), &(struct json_decode_options){ 0 }, &s.config, err)) < 0)
		return err_wrap(err, r, "config.json");
	if (!val_is(s.config, VAL_OBJECT))
		return wrong(err, "it", "no object");
	s.linux_part = val_get(s.config, linux);
	if ((r = check_version(s.config, err)) < 0 || (r = read_namespaces(a, &s, err)) < 0)
		return r;
	if ((r = check_namespaces(&s, err)) < 0 || (r = check_mounts(val_get(s.config, mounts), err)) < 0)
		return r;
	if ((r = check_hooks(val_get(s.config, hooks), err)) < 0 || (r = check_refused(&s, err)) < 0)
		return r;
	*ret = s;
	return 0;
}

int spec_read_file(const char *file, const char *bundle, struct arena *a, struct spec *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	int r = file_read(file, &text, err);

	return r < 0 ? r : spec_decode(buf_str(&text), bundle, a, ret, err);
}

int spec_read(const char *bundle, struct arena *a, struct spec *ret, struct err *err)
{
	char *real = realpath(bundle, NULL);

	if (!real)
		return err_sys(err, errno, "bundle %s", bundle);
	const char *absolute = arena_str(a, str_of(real)).p;
	free(real);
	int r = spec_read_file(arena_printf(a, "%s/config.json", absolute).p, absolute, a, ret, err);
	return r < 0 ? r : read_root(a, ret, err);
}

/* ---- the process ---- */

#define CAP(name) [CAP_##name] = "CAP_" #name

static const char *const cap_names[] = {
	CAP(CHOWN), CAP(DAC_OVERRIDE), CAP(DAC_READ_SEARCH), CAP(FOWNER), CAP(FSETID), CAP(KILL), CAP(SETGID), CAP(SETUID), CAP(SETPCAP),
	CAP(LINUX_IMMUTABLE), CAP(NET_BIND_SERVICE), CAP(NET_BROADCAST), CAP(NET_ADMIN), CAP(NET_RAW), CAP(IPC_LOCK), CAP(IPC_OWNER),
	CAP(SYS_MODULE), CAP(SYS_RAWIO), CAP(SYS_CHROOT), CAP(SYS_PTRACE), CAP(SYS_PACCT), CAP(SYS_ADMIN), CAP(SYS_BOOT), CAP(SYS_NICE),
	CAP(SYS_RESOURCE), CAP(SYS_TIME), CAP(SYS_TTY_CONFIG), CAP(MKNOD), CAP(LEASE), CAP(AUDIT_WRITE), CAP(AUDIT_CONTROL), CAP(SETFCAP),
	CAP(MAC_OVERRIDE), CAP(MAC_ADMIN), CAP(SYSLOG), CAP(WAKE_ALARM), CAP(BLOCK_SUSPEND), CAP(AUDIT_READ), CAP(PERFMON), CAP(BPF),
	CAP(CHECKPOINT_RESTORE),
};

const char *spec_cap_name(unsigned cap)
{
	return cap < ARRAY_LEN(cap_names) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0 ? cap_names[cap] : NULL;
}

int spec_caps(struct val list, uint64_t *ret, struct err *err)
{
	uint64_t bits = 0;

	if (!val_is_nil(list) && !val_is(list, VAL_LIST))
		return wrong(err, "process.capabilities", "its members must be lists");
	VAL_EACH(c, list) {
		str s = val_as_str(*c);
		if (!str_starts(s, STR("CAP_")))
			return err_set(err, ERR_INVALID, "config.json: process.capabilities: \"" STR_FMT "\" is no capability", STR_ARG(s));
		/* One that this kernel does not have cannot be given: left out, as others do. */
		for (unsigned cap = 0; cap < ARRAY_LEN(cap_names); cap++)
			if (str_eq(s, str_of(cap_names[cap])) && spec_cap_name(cap))
				bits |= UINT64_C(1) << cap;
	}
	*ret = bits;
	return 0;
}

static int read_caps(struct val caps, struct process *p, struct err *err)
{
	static const atom names[CAP_SETS] = { A_bounding, A_effective, A_inheritable, A_permitted, A_ambient };
	int r;

	for (int i = 0; i < CAP_SETS; i++)
		if ((r = spec_caps(val_member(caps, names[i]), &p->caps[i], err)) < 0)
			return r;
	return 0;
}

static const struct {
	const char *name;
	int resource;
} limit_names[] = {
	{ "RLIMIT_AS", RLIMIT_AS }, { "RLIMIT_CORE", RLIMIT_CORE }, { "RLIMIT_CPU", RLIMIT_CPU }, { "RLIMIT_DATA", RLIMIT_DATA },
	{ "RLIMIT_FSIZE", RLIMIT_FSIZE }, { "RLIMIT_LOCKS", RLIMIT_LOCKS }, { "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK },
	{ "RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE }, { "RLIMIT_NICE", RLIMIT_NICE }, { "RLIMIT_NOFILE", RLIMIT_NOFILE },
	{ "RLIMIT_NPROC", RLIMIT_NPROC }, { "RLIMIT_RSS", RLIMIT_RSS }, { "RLIMIT_RTPRIO", RLIMIT_RTPRIO },
	{ "RLIMIT_RTTIME", RLIMIT_RTTIME }, { "RLIMIT_SIGPENDING", RLIMIT_SIGPENDING }, { "RLIMIT_STACK", RLIMIT_STACK },
};

static rlim_t limit_value(struct val v)
{
	/* "No limit" is 2^64 - 1, which a JSON reader may give as a double. */
	if (val_is(v, VAL_DOUBLE))
		return v.d >= 0x1p64 ? RLIM_INFINITY : v.d < 0 ? 0 : (rlim_t)v.d;
	return (rlim_t)val_as_int(v);
}

static int read_limits(struct val list, struct arena *a, struct process *p, struct err *err)
{
	p->limits = ARENA_ARRAY(a, struct process_limit, val_len(list) + 1);
	VAL_EACH(l, list) {
		str type = val_str(*l, type);
		size_t i = 0;
		while (i < ARRAY_LEN(limit_names) && !str_eq(type, str_of(limit_names[i].name)))
			i++;
		if (i == ARRAY_LEN(limit_names))
			return err_set(err, ERR_INVALID, "config.json: process.rlimits: \"" STR_FMT "\" is no limit", STR_ARG(type));
		struct process_limit limit = { limit_names[i].resource,
					       { limit_value(val_get(*l, soft)), limit_value(val_get(*l, hard)) } };
		for (size_t k = 0; k < p->limits_n; k++)
			if (p->limits[k].resource == limit.resource)
				return err_set(err, ERR_INVALID, "config.json: process.rlimits: %s is there twice", limit_names[i].name);
		if (limit.limit.rlim_cur > limit.limit.rlim_max)
			return err_set(err, ERR_INVALID, "config.json: process.rlimits: %s: soft is above hard", limit_names[i].name);
		p->limits[p->limits_n++] = limit;
	}
	return 0;
}

static bool is_id(int64_t id) { return id >= 0 && id < UINT32_MAX; }

static int read_user(struct val user, struct arena *a, struct process *p, struct err *err)
{
	struct val gids = val_get(user, additionalGids);

	if (!is_id(val_int(user, uid)) || !is_id(val_int(user, gid)))
		return wrong(err, "process.user", "uid and gid must be from 0 to 4294967294");
	p->uid = (uid_t)val_int(user, uid);
	p->gid = (gid_t)val_int(user, gid);
	p->umask = val_has(user, umask) ? (int)(val_int(user, umask) & 0777) : -1;
	if (val_len(gids) > ITEMS_MAX)
		return wrong(err, "process.user.additionalGids", "too many");
	p->gids = ARENA_ARRAY(a, gid_t, val_len(gids) + 1);
	VAL_EACH(g, gids) {
		if (!is_id(val_as_int(*g)))
			return wrong(err, "process.user.additionalGids", "they must be from 0 to 4294967294");
		p->gids[p->gids_n++] = (gid_t)val_as_int(*g);
	}
	return 0;
}

static const char *unless_empty(const char *s) { return *s ? s : NULL; }

int spec_process(struct val process, struct arena *a, struct process *ret, struct err *err)
{
	struct process p = { .config = process };
	int r;

	if (!val_is(process, VAL_OBJECT))
		return wrong(err, "process", "it is missing");
	if ((r = texts(a, val_get(process, args), "process.args", &p.args, err)) < 0 ||
	    (r = texts(a, val_get(process, env), "process.env", &p.env, err)) < 0 ||
	    (r = spec_text(a, val_get(process, cwd), "process.cwd", &p.cwd, err)) < 0 ||
	    (r = spec_text(a, val_get(process, apparmorProfile), "process.apparmorProfile", &p.apparmor, err)) < 0 ||
	    (r = spec_text(a, val_get(process, selinuxLabel), "process.selinuxLabel", &p.selinux, err)) < 0)
		return r;
	if (!p.args[0])
		return wrong(err, "process.args", "process args cannot be empty");
	if (*p.cwd != '/')
		return wrong(err, "process.cwd", *p.cwd ? "Cwd must be an absolute path" : "Cwd property must not be empty");
	p.apparmor = unless_empty(p.apparmor);
	p.selinux = unless_empty(p.selinux);
	if ((r = read_user(val_get(process, user), a, &p, err)) < 0 || (r = read_caps(val_get(process, capabilities), &p, err)) < 0 ||
	    (r = read_limits(val_get(process, rlimits), a, &p, err)) < 0)
		return r;
	p.terminal = val_bool(process, terminal);
	p.no_new_privs = val_bool(process, noNewPrivileges);
	p.width = (unsigned)val_int(process, consoleSize, width) & UINT16_MAX;
	p.height = (unsigned)val_int(process, consoleSize, height) & UINT16_MAX;
	*ret = p;
	return 0;
}
