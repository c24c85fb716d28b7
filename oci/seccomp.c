/* linux.seccomp of config.json: reading it, loading its program, and sending the listener to its agent. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/seccomp.h"
#include "oci/seccomp_priv.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { CALLS_MAX = 65536, STATE_MAX = 16 << 20 };

struct seccomp {
	struct arena arena;
	struct sock_fprog program;
	unsigned flags;
	bool notifies;
};

struct name {
	const char *name;
	uint32_t value;
};

static const struct name actions[] = {
	{ "SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD }, { "SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS },
	{ "SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD }, { "SCMP_ACT_TRAP", SECCOMP_RET_TRAP },
	{ "SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO }, { "SCMP_ACT_TRACE", SECCOMP_RET_TRACE },
	{ "SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW }, { "SCMP_ACT_LOG", SECCOMP_RET_LOG },
	{ "SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF },
};

static const struct name operators[] = {
	{ "SCMP_CMP_NE", SECCOMP_NE }, { "SCMP_CMP_LT", SECCOMP_LT }, { "SCMP_CMP_LE", SECCOMP_LE }, { "SCMP_CMP_EQ", SECCOMP_EQ },
	{ "SCMP_CMP_GE", SECCOMP_GE }, { "SCMP_CMP_GT", SECCOMP_GT }, { "SCMP_CMP_MASKED_EQ", SECCOMP_MASKED_EQ },
};

static const struct name archs[] = {
	{ "SCMP_ARCH_X86", SCMP_ARCH_X86 }, { "SCMP_ARCH_X86_64", SCMP_ARCH_X86_64 }, { "SCMP_ARCH_X32", SCMP_ARCH_X32 },
	{ "SCMP_ARCH_ARM", SCMP_ARCH_ARM }, { "SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64 }, { "SCMP_ARCH_MIPS", SCMP_ARCH_MIPS },
	{ "SCMP_ARCH_MIPS64", SCMP_ARCH_MIPS64 }, { "SCMP_ARCH_MIPS64N32", SCMP_ARCH_MIPS64N32 },
	{ "SCMP_ARCH_MIPSEL", SCMP_ARCH_MIPSEL }, { "SCMP_ARCH_MIPSEL64", SCMP_ARCH_MIPSEL64 },
	{ "SCMP_ARCH_MIPSEL64N32", SCMP_ARCH_MIPSEL64N32 }, { "SCMP_ARCH_PPC", SCMP_ARCH_PPC }, { "SCMP_ARCH_PPC64", SCMP_ARCH_PPC64 },
	{ "SCMP_ARCH_PPC64LE", SCMP_ARCH_PPC64LE }, { "SCMP_ARCH_S390", SCMP_ARCH_S390 }, { "SCMP_ARCH_S390X", SCMP_ARCH_S390X },
	{ "SCMP_ARCH_PARISC", SCMP_ARCH_PARISC }, { "SCMP_ARCH_PARISC64", SCMP_ARCH_PARISC64 },
	{ "SCMP_ARCH_RISCV64", SCMP_ARCH_RISCV64 },
};

/* TSYNC is taken and needs nothing: there is one thread. */
static const struct name flags[] = {
	{ "SECCOMP_FILTER_FLAG_TSYNC", 0 }, { "SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG },
	{ "SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW },
	{ "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV },
};

static const struct name *find(const struct name *names, size_t n, str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(str_of(names[i].name), name))
			return &names[i];
	return NULL;
}

#define FIND(names, name) find(names, ARRAY_LEN(names), name)

static struct val list_of(struct arena *a, const struct name *names, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(str_of(names[i].name)));
	return val_end_list(&b);
}

struct val seccomp_actions(struct arena *a) { return list_of(a, actions, ARRAY_LEN(actions)); }
struct val seccomp_operators(struct arena *a) { return list_of(a, operators, ARRAY_LEN(operators)); }
struct val seccomp_archs(struct arena *a) { return list_of(a, archs, ARRAY_LEN(archs)); }
struct val seccomp_flags(struct arena *a) { return list_of(a, flags, ARRAY_LEN(flags)); }

/* ---- reading ---- */

/* With its errno: EPERM if none is said. Only two actions have one. */
static int action_of(str name, struct val errno_ret, uint32_t *ret, struct err *err)
{
	const struct name *found = FIND(actions, name);
	if (!found)
		return err_set(err, ERR_INVALID, "string " STR_FMT " is not a valid action for seccomp", STR_ARG(name));
	bool has_errno = found->value == SECCOMP_RET_ERRNO || found->value == SECCOMP_RET_TRACE;
	*ret = found->value | (has_errno ? EPERM : 0);
	if (val_is_nil(errno_ret))
		return 0;
	if (!has_errno)
		return err_set(err, ERR_INVALID, "linux.seccomp: an errno does not go with action " STR_FMT, STR_ARG(name));
	if (errno_ret.type != VAL_INT || errno_ret.i < 0 || errno_ret.i > (found->value == SECCOMP_RET_ERRNO ? 4095 : 65535))
		return err_set(err, ERR_INVALID, "linux.seccomp: errnoRet is no errno");
	*ret = found->value | (uint32_t)errno_ret.i;
	return 0;
}

/* uint64: numbers above int64 come as doubles, of which only the largest is surely what was written. */
static int value_of(struct val v, const char *name, uint64_t *ret, struct err *err)
{
	*ret = 0;
	if (v.type == VAL_DOUBLE && v.d == 0x1p64)
		*ret = UINT64_MAX;
	else if (v.type == VAL_INT && v.i >= 0)
		*ret = (uint64_t)v.i;
	else if (!val_is_nil(v))
		return err_set(err, ERR_INVALID, "linux.seccomp: %s of an argument is no number from 0 to 9223372036854775807", name);
	return 0;
}

static int condition_of(struct val arg, struct seccomp_condition *ret, struct err *err)
{
	str name = val_str(arg, op);
	const struct name *op = FIND(operators, name);
	if (!op)
		return err_set(err, ERR_INVALID, "string " STR_FMT " is not a valid operator for seccomp", STR_ARG(name));
	uint64_t index;
	*ret = (struct seccomp_condition){ .op = (enum seccomp_op)op->value };
	int r = value_of(val_get(arg, index), "index", &index, err);
	if (r >= 0 && index >= SECCOMP_ARGS)
		return err_set(err, ERR_INVALID, "linux.seccomp: a system call has %d arguments, there is no index %llu", SECCOMP_ARGS,
			       (unsigned long long)index);
	ret->index = (unsigned)index;
	if (r >= 0)
		r = value_of(val_get(arg, value), "value", &ret->value, err);
	return r < 0 ? r : value_of(val_get(arg, valueTwo), "valueTwo", &ret->value_two, err);
}

struct calls {
	struct arena *arena;
	struct seccomp_call *all;
	size_t n, cap;
};

static void calls_add(struct calls *c, struct seccomp_call call)
{
	if (c->n == c->cap) {
		struct seccomp_call *more = ARENA_ARRAY(c->arena, struct seccomp_call, c->cap = MAX(2 * c->cap, (size_t)512));
		if (c->n)
			memcpy(more, c->all, c->n * sizeof(*more));
		c->all = more;
	}
	c->all[c->n++] = call;
}

/* One row of "syscalls". */
static int row_of(struct calls *calls, struct val row, uint32_t default_action, struct err *err)
{
	uint32_t action;
	int r = action_of(val_str(row, action), val_get(row, errnoRet), &action, err);
	if (r < 0)
		return r;
	struct val args = val_get(row, args), names = val_get(row, names);
	if (!val_len(names) || calls->n + (size_t)val_len(names) * (val_len(args) + 1) > CALLS_MAX)
		return err_set(err, ERR_INVALID, "linux.seccomp.syscalls: a row has no names, or all have too many");
	struct seccomp_condition *conditions = ARENA_ARRAY(calls->arena, struct seccomp_condition, val_len(args) + 1);
	size_t n = 0;
	unsigned seen = 0;
	bool twice = false;
	VAL_EACH(arg, args) {
		if ((r = condition_of(*arg, &conditions[n], err)) < 0)
			return r;
		twice = twice || seen & 1U << conditions[n].index;
		seen |= 1U << conditions[n++].index;
	}
	VAL_EACH(name, names) {
		str s = val_as_str(*name);
		if (!s.n)
			return err_set(err, ERR_INVALID, "empty string is not a valid syscall");
		if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF && str_eq(s, STR("write")))
			return err_set(err, ERR_INVALID, "SCMP_ACT_NOTIFY cannot be used for the write syscall");
		/* The default action again says nothing, also where it would stand before another row of the same name: as in runc. */
		struct seccomp_call call = { arena_str(calls->arena, s).p, action, action == default_action, n, conditions };
		if (!twice)
			calls_add(calls, call);
		/* Several conditions on one argument are alternatives: as in runc. */
		for (call.n = 1; twice && call.conditions < conditions + n; call.conditions++)
			calls_add(calls, call);
	}
	return 0;
}

static int archs_of(struct val list, struct seccomp_profile *p, struct err *err)
{
	p->arch[p->archs++] = seccomp_arch_native();
	VAL_EACH(v, list) {
		const struct name *arch = FIND(archs, val_as_str(*v));
		if (!arch)
			return err_set(err, ERR_INVALID, "string " STR_FMT " is not a valid arch for seccomp", STR_ARG(val_as_str(*v)));
		bool known = false;
		for (size_t i = 0; i < p->archs; i++)
			known = known || p->arch[i] == arch->value;
		if (!known)
			p->arch[p->archs++] = arch->value;
	}
	return 0;
}

/* No list at all is SPEC_ALLOW: runc's default since speculation is no longer the filter's business. */
static int flags_of(struct val list, unsigned *ret, struct err *err)
{
	*ret = val_is_nil(list) ? SECCOMP_FILTER_FLAG_SPEC_ALLOW : 0;
	VAL_EACH(v, list) {
		const struct name *flag = FIND(flags, val_as_str(*v));
		if (!flag)
			return err_set(err, ERR_INVALID, "seccomp flag " STR_FMT " is not known", STR_ARG(val_as_str(*v)));
		*ret |= flag->value;
	}
	return 0;
}

static bool is_permissive(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_TRACE;
}

static int compile(struct arena *scratch, struct val config, struct seccomp *s, struct err *err)
{
	struct seccomp_profile p = { 0 };
	struct calls calls = { .arena = scratch };
	int r = action_of(val_str(config, defaultAction), val_get(config, defaultErrnoRet), &p.default_action, err);
	if (r < 0 || (r = archs_of(val_get(config, architectures), &p, err)) < 0 || (r = flags_of(val_get(config, flags), &s->flags, err)) < 0)
		return r;
	if ((p.default_action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
		return err_set(err, ERR_INVALID, "SCMP_ACT_NOTIFY cannot be used as default action");
	VAL_EACH(row, val_get(config, syscalls))
		if ((r = row_of(&calls, *row, p.default_action, err)) < 0)
			return r;
	p.calls = calls.all;
	p.n = calls.n;
	p.enosys = !is_permissive(p.default_action);
	for (size_t i = 0; i < p.n; i++)
		s->notifies = s->notifies || (p.calls[i].action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF;
	if (s->notifies)
		s->flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	else
		s->flags &= ~(unsigned)SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	struct sock_fprog program;
	if ((r = seccomp_program(scratch, &p, &program, err)) < 0)
		return r;
	s->program = (struct sock_fprog){ program.len, ARENA_ARRAY(&s->arena, struct sock_filter, program.len) };
	memcpy(s->program.filter, program.filter, program.len * sizeof(*program.filter));
	return 0;
}

int seccomp_make(struct val config, struct seccomp **ret, struct err *err)
{
	*ret = NULL;
	if (!val_str(config, defaultAction).n && !val_len(val_get(config, syscalls)))
		return 0;
	CLEANUP(seccomp_freep) struct seccomp *s = mem_zalloc(sizeof(*s));
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	int r = compile(&scratch, config, s, err);
	if (r >= 0)
		*ret = TAKE(s);
	return r;
}

void seccomp_free(struct seccomp *s)
{
	if (!s)
		return;
	arena_done(&s->arena);
	free(s);
}

void seccomp_freep(struct seccomp **s)
{
	seccomp_free(*s);
}

/* ---- using ---- */

bool seccomp_notifies(const struct seccomp *s)
{
	return s && s->notifies;
}

int seccomp_install(const struct seccomp *s, int *ret_listener, struct err *err)
{
	*ret_listener = -1;
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, s->flags, &s->program);
	if (r < 0)
		return err_sys(err, errno, "load the seccomp filter");
	if (s->notifies)
		*ret_listener = (int)r;
	return 0;
}

/* By a descriptor of the socket's file: the name itself may be longer than an address can be. */
static int connect_to(const char *path, struct err *err)
{
	CLEANUP(fd_closep) int file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0)
		return err_sys(err, errno, "seccomp listener %s", path);
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, errno, "socket");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[PATH_FD_TEXT];
	const char *name = path_of_fd(file, text);
	memcpy(address.sun_path, name, strlen(name) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return err_sys(err, errno, "connect to the seccomp listener %s", path);
	int ret = fd;
	fd = -1;
	return ret;
}

/* The text, with the descriptor beside its first byte. */
static int send_with(int to, str text, int fd, struct err *err)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)text.p, text.n };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	while (part.iov_len) {
		ssize_t n = sendmsg(to, &message, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "send the seccomp listener");
		part.iov_base = (char *)part.iov_base + n;
		part.iov_len -= (size_t)n;
		message.msg_control = NULL;
		message.msg_controllen = 0;
	}
	return 0;
}

int seccomp_send(struct val config, int listener, struct val state, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	str path = val_str(config, listenerPath);
	if (!path.n)
		return err_set(err, ERR_INVALID, "linux.seccomp: listenerPath is not set, and an action is SCMP_ACT_NOTIFY");
	struct val metadata = val_get(config, listenerMetadata);
	struct val message = OBJECT(&arena, F(ociVersion, val_get(state, ociVersion)), F(fds, LIST(&arena, VAL_LIT("seccompFd"))),
				    F(pid, val_get(state, pid)), F(metadata, val_is_nil(metadata) ? VAL_EMPTY : metadata), F(state, state));
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX);
	int r = json_encode(&text, message, &(struct json_encode_options){ .plain = true }, err);
	if (r < 0)
		return r;
	CLEANUP(fd_closep) int fd = connect_to(arena_str(&arena, path).p, err);
	return fd < 0 ? fd : send_with(fd, buf_str(&text), listener, err);
}
