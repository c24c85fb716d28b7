#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "oci/cgroup_test.h"
#include "oci/seccomp.h"

/* Runs a function under a profile in a child. Its wait status; -1: the profile is wrong. */
static int run_under(struct val profile, int (*run)(void *), void *arg)
{
	struct seccomp *s;
	struct err err = ERR_INIT;
	if (seccomp_make(profile, &s, &err) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		int listener;
		signal(SIGSYS, SIG_DFL);        /* cmocka catches it */
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (s && seccomp_install(s, &listener, &err) < 0)
			syscall(SYS_exit_group, 99);
		syscall(SYS_exit_group, run(arg));
	}
	seccomp_free(s);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

struct call {
	long nr, args[3];
};

/* errno of a call, 0 if it went well: as exit code. */
static int make_call(void *arg)
{
	const struct call *c = arg;
	return syscall(c->nr, c->args[0], c->args[1], c->args[2]) < 0 ? errno : 0;
}

static int errno_under(const char *profile, struct call c)
{
	struct arena a = ARENA_INIT;
	int status = run_under(test_json(&a, profile), make_call, &c);
	arena_done(&a);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define ALLOW_BUT(rest) "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[" rest "]}"
#define ROW(names, action, more) "{\"names\":[" names "],\"action\":\"SCMP_ACT_" action "\"" more "}"

TEST(seccomp_actions)
{
	static const struct call getppid_call = { .nr = SYS_getppid };
	CHECK_INT(errno_under(ALLOW_BUT(""), getppid_call), 0);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "ERRNO", "")), getppid_call), EPERM);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "ERRNO", ",\"errnoRet\":71")), getppid_call), 71);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"nope\",\"getppid\"", "KILL", "")), getppid_call), -SIGSYS);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "KILL_PROCESS", "")), getppid_call), -SIGSYS);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "KILL_THREAD", "")), getppid_call), -SIGSYS);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "TRAP", "")), getppid_call), -SIGSYS);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "LOG", "")), getppid_call), 0);
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getppid\"", "TRACE", "")), getppid_call), ENOSYS);   /* nobody traces */
	CHECK_INT(errno_under(ALLOW_BUT(ROW("\"getpgid\"", "ERRNO", "")), getppid_call), 0);
	/* What the list does not know but could: the default. What is newer than all in it: not there. */
	static const char only[] = "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":11,\"syscalls\":["
		ROW("\"exit_group\",\"mlock2\"", "ALLOW", "") "]}";
	CHECK_INT(errno_under(only, getppid_call), 11);
	CHECK_INT(errno_under(only, (struct call){ .nr = 400 }), ENOSYS);
	CHECK_INT(errno_under(only, (struct call){ .nr = SYS_mlock2 }), 0);
}

TEST(seccomp_operators)
{
	enum { OK = 0, NO = EPERM };
	static const struct {
		const char *op, *value, *two;
		long arg;
		int want;
	} t[] = {
		{ "EQ", "5", "0", 5, NO }, { "EQ", "5", "0", 4, OK }, { "EQ", "5", "0", 0x100000005, OK },
		{ "EQ", "4294967301", "0", 0x100000005, NO }, { "EQ", "18446744073709551615", "0", -1, NO },
		{ "NE", "5", "0", 5, OK }, { "NE", "5", "0", 6, NO }, { "NE", "5", "0", 0x100000005, NO },
		{ "LT", "5", "0", 4, NO }, { "LT", "5", "0", 5, OK }, { "LT", "4294967296", "0", 4294967295, NO },
		{ "LT", "4294967297", "0", 0x100000001, OK }, { "LT", "5", "0", -1, OK },
		{ "LE", "5", "0", 5, NO }, { "LE", "5", "0", 6, OK }, { "LE", "4294967297", "0", 0x100000001, NO },
		{ "GE", "5", "0", 5, NO }, { "GE", "5", "0", 4, OK }, { "GE", "5", "0", 0x100000000, NO }, { "GE", "5", "0", -1, NO },
		{ "GT", "5", "0", 6, NO }, { "GT", "5", "0", 5, OK }, { "GT", "4294967301", "0", 0x200000000, NO },
		{ "GT", "4294967301", "0", 0x100000005, OK },
		{ "MASKED_EQ", "15", "5", 0x25, NO }, { "MASKED_EQ", "15", "5", 0x24, OK }, { "MASKED_EQ", "15", "255", 0x1f, NO },
		{ "MASKED_EQ", "64424509440", "4294967296", 0x100000007, NO }, { "MASKED_EQ", "64424509440", "4294967296", 7, OK },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char text[512];
		snprintf(text, sizeof(text), ALLOW_BUT("{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":1,"
			 "\"value\":%s,\"valueTwo\":%s,\"op\":\"SCMP_CMP_%s\"}]}"), t[i].value, t[i].two, t[i].op);
		CHECK_ROW(i, errno_under(text, (struct call){ .nr = SYS_getppid, .args = { 0, t[i].arg } }) == t[i].want);
	}
}

#define ARG(index, op, value) "{\"index\":" index ",\"value\":" value ",\"op\":\"SCMP_CMP_" op "\"}"

TEST(seccomp_rules_together)
{
	/* All conditions of a row must hold, unless two are about one argument: then one is enough. */
	static const char both[] = ALLOW_BUT(ROW("\"getppid\"", "ERRNO", ",\"args\":[" ARG("0", "EQ", "1") "," ARG("2", "EQ", "2") "]"));
	CHECK_INT(errno_under(both, (struct call){ SYS_getppid, { 1, 0, 2 } }), EPERM);
	CHECK_INT(errno_under(both, (struct call){ SYS_getppid, { 1, 0, 1 } }), 0);
	CHECK_INT(errno_under(both, (struct call){ SYS_getppid, { 0, 0, 2 } }), 0);
	static const char either[] = ALLOW_BUT(ROW("\"getppid\"", "ERRNO", ",\"args\":[" ARG("0", "EQ", "1") "," ARG("0", "EQ", "2") "]"));
	CHECK_INT(errno_under(either, (struct call){ SYS_getppid, { 1 } }), EPERM);
	CHECK_INT(errno_under(either, (struct call){ SYS_getppid, { 2 } }), EPERM);
	CHECK_INT(errno_under(either, (struct call){ SYS_getppid, { 3 } }), 0);
	/* The first row whose conditions hold; a row without conditions counts before all. */
	static const char rows[] = ALLOW_BUT(ROW("\"getppid\"", "ERRNO", ",\"errnoRet\":7,\"args\":[" ARG("0", "GT", "1") "]") ","
					     ROW("\"getppid\"", "ERRNO", ",\"errnoRet\":8,\"args\":[" ARG("0", "GT", "0") "]"));
	CHECK_INT(errno_under(rows, (struct call){ SYS_getppid, { 2 } }), 7);
	CHECK_INT(errno_under(rows, (struct call){ SYS_getppid, { 1 } }), 8);
	CHECK_INT(errno_under(rows, (struct call){ SYS_getppid, { 0 } }), 0);
	static const char plain[] = ALLOW_BUT(ROW("\"getppid\"", "ERRNO", ",\"errnoRet\":7,\"args\":[" ARG("0", "GT", "1") "]") ","
					      ROW("\"getppid\"", "ERRNO", ",\"errnoRet\":9"));
	CHECK_INT(errno_under(plain, (struct call){ SYS_getppid, { 2 } }), 9);
	/* A row with the default action takes nothing back. */
	static const char same[] = ALLOW_BUT(ROW("\"getppid\"", "ALLOW", "") "," ROW("\"getppid\"", "ERRNO", ""));
	CHECK_INT(errno_under(same, (struct call){ SYS_getppid, { 2 } }), EPERM);
}

TEST(seccomp_wrong_profiles)
{
	static const struct { const char *text, *message; } t[] = {
		{ "{\"defaultAction\":\"ALLOW\"}", "string ALLOW is not a valid action for seccomp" },
		{ "{\"defaultAction\":\"SCMP_ACT_NOTIFY\"}", "SCMP_ACT_NOTIFY cannot be used as default action" },
		{ ALLOW_BUT(ROW("\"write\"", "NOTIFY", "")), "SCMP_ACT_NOTIFY cannot be used for the write syscall" },
		{ ALLOW_BUT(ROW("\"\"", "KILL", "")), "empty string is not a valid syscall" },
		{ ALLOW_BUT(ROW("\"read\"", "ALLOW", ",\"errnoRet\":1")), "linux.seccomp: an errno does not go with action SCMP_ACT_ALLOW" },
		{ ALLOW_BUT(ROW("\"read\"", "ERRNO", ",\"errnoRet\":5000")), "linux.seccomp: errnoRet is no errno" },
		{ ALLOW_BUT(ROW("\"read\"", "KILL", ",\"args\":[" ARG("6", "EQ", "1") "]")),
		  "linux.seccomp: a system call has 6 arguments, there is no index 6" },
		{ ALLOW_BUT(ROW("\"read\"", "KILL", ",\"args\":[" ARG("0", "XX", "1") "]")),
		  "string SCMP_CMP_XX is not a valid operator for seccomp" },
		{ ALLOW_BUT(ROW("\"read\"", "KILL", ",\"args\":[" ARG("0", "EQ", "-1") "]")),
		  "linux.seccomp: value of an argument is no number from 0 to 9223372036854775807" },
		{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"architectures\":[\"X86\"]}", "string X86 is not a valid arch for seccomp" },
		{ "{\"defaultAction\":\"SCMP_ACT_KILL\",\"flags\":[\"X\"]}", "seccomp flag X is not known" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct seccomp *s;
		CHECK_ROW(i, seccomp_make(test_json(&a, t[i].text), &s, &err) == -ERR_INVALID && !s);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
		arena_done(&a);
	}
	struct arena a = ARENA_INIT;
	struct seccomp *none;
	CHECK_INT(seccomp_make(test_json(&a, "{}"), &none, NULL), 0);
	CHECK(!none);
	arena_done(&a);
}

/* ---- the default profile ---- */

static int default_errno(const char *capabilities, struct call c)
{
	struct arena a = ARENA_INIT;
	int status = run_under(seccomp_default(&a, test_json(&a, capabilities)), make_call, &c);
	arena_done(&a);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(seccomp_default_profile)
{
	enum { ANY = 1000 };
	static const struct {
		const char *capabilities;
		struct call call;
		int want;       /* ANY: the kernel's own opinion, so neither EPERM nor ENOSYS */
	} t[] = {
		{ "[]", { SYS_getpid, { 0 } }, 0 },
		{ "[]", { SYS_unshare, { 0 } }, EPERM },
		{ "[\"CAP_SYS_ADMIN\"]", { SYS_unshare, { 0 } }, 0 },
		{ "[]", { SYS_bpf, { -1 } }, EPERM },
		{ "[]", { SYS_clone3, { 0 } }, ENOSYS },
		{ "[\"CAP_SYS_ADMIN\"]", { SYS_clone3, { 0 } }, ANY },
		{ "[]", { SYS_clone, { CLONE_NEWUSER } }, EPERM },
		{ "[]", { SYS_clone, { CLONE_THREAD } }, EINVAL },      /* allowed; the kernel wants more flags */
		{ "[]", { SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 } }, EPERM },
		{ "[]", { SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 } }, EPERM },
		{ "[]", { SYS_socket, { AF_UNIX, SOCK_STREAM, 0 } }, 0 },
		{ "[]", { SYS_socket, { 255, SOCK_STREAM, 0 } }, EAFNOSUPPORT },
		{ "[]", { SYS_personality, { 0xffffffff } }, 0 },
		{ "[]", { SYS_personality, { 0x40000 } }, EPERM },
		{ "[]", { SYS_chroot, { 0 } }, EPERM },
		{ "[\"CAP_SYS_CHROOT\"]", { SYS_chroot, { 0 } }, EFAULT },
		{ "[]", { SYS_keyctl, { -1 } }, EPERM },
		{ "[]", { 5000, { 0 } }, ENOSYS },
#ifdef __x86_64__
		{ "[]", { 0x40000000 + 5000, { 0 } }, ENOSYS },
#endif
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		int got = default_errno(t[i].capabilities, t[i].call);
		CHECK_ROW(i, t[i].want == ANY ? got != EPERM && got != ENOSYS : got == t[i].want);
	}
}

#ifdef __x86_64__
/* The other doors: 32-bit calls by int 0x80, and x32. */
static int call_32(void *arg)
{
	const struct call *c = arg;
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(c->nr), "b"(c->args[0]), "c"(c->args[1]), "d"(c->args[2]) : "memory", "r8", "r9", "r10", "r11");
	return r < 0 ? (int)-r : 0;
}

TEST(seccomp_32_bit)
{
	enum { GETPPID_32 = 64, SOCKET_32 = 359, SOCKETCALL_32 = 102, UNSHARE_32 = 310 };
	struct arena a = ARENA_INIT;
	struct call c = { GETPPID_32, { 0 } };
	int status = run_under(test_json(&a, ALLOW_BUT("")), call_32, &c);
	if (WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS)
		skip();                         /* a kernel without them */
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);       /* x86 is not in the list: it has no business here */
	struct val profile = seccomp_default(&a, VAL_EMPTY_LIST);
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), 0);
	c.nr = UNSHARE_32;
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), EPERM);
	c = (struct call){ SOCKET_32, { AF_ALG, SOCK_SEQPACKET } };
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), EPERM);
	c = (struct call){ SOCKET_32, { AF_UNIX, SOCK_STREAM } };
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), 0);
	/* By socketcall the kind of call is an argument. */
	static const char no_sockets[] = "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86\"],\"syscalls\":["
		ROW("\"socket\"", "ERRNO", ",\"errnoRet\":77") "]}";
	profile = test_json(&a, no_sockets);
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), 77);
	c = (struct call){ SOCKETCALL_32, { 1, 0 } };
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), 77);
	c = (struct call){ SOCKETCALL_32, { 2, 0 } };
	CHECK_INT(WEXITSTATUS(run_under(profile, call_32, &c)), EFAULT);
	arena_done(&a);
}
#endif

/* ---- the listener ---- */

static int ask(void *unused)
{
	(void)unused;
	return (int)syscall(SYS_getppid) == 4242 ? 0 : 1;
}

/* Answers one question of the process behind the listener. */
static void answer(int listener)
{
	struct seccomp_notif question = { 0 };
	CHECK_INT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question), 0);
	CHECK_INT(question.data.nr, SYS_getppid);
	struct seccomp_notif_resp reply = { .id = question.id, .val = 4242 };
	CHECK_INT(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply), 0);
}

static int receive(int server, struct buf *text)
{
	int fd = accept(server, NULL, NULL), got = -1;
	CHECK(fd >= 0);
	for (;;) {
		char room[1024], control[CMSG_SPACE(sizeof(int))];
		struct iovec part = { room, sizeof(room) };
		struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
		CHECK(n >= 0);
		if (n == 0)
			break;
		buf_add(text, str_span(room, (size_t)n));
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
			memcpy(&got, CMSG_DATA(c), sizeof(got));
	}
	close(fd);
	return got;
}

TEST(seccomp_listener)
{
	struct arena a = ARENA_INIT;
	char dir[] = "/tmp/c8s-seccomp-XXXXXX";
	CHECK(mkdtemp(dir));
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", dir);
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(listen(server, 1), 0);

	struct val profile = test_json(&a, ALLOW_BUT(ROW("\"getppid\"", "NOTIFY", "")));
	struct seccomp *s;
	struct err err = ERR_INIT;
	CHECK_INT(seccomp_make(profile, &s, &err), 0);
	CHECK(seccomp_notifies(s));
	int pipes[2];
	CHECK_INT(pipe(pipes), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int listener;
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (seccomp_install(s, &listener, NULL) < 0 || write(pipes[1], &listener, sizeof(listener)) < 0)
			_exit(99);
		_exit(ask(NULL));
	}
	int theirs;
	CHECK_INT(read(pipes[0], &theirs, sizeof(theirs)), sizeof(theirs));
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), listener = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	CHECK(listener >= 0);
	profile = val_with(&a, profile, VAL_STR(str_of(address.sun_path)), listenerPath);
	profile = val_with(&a, profile, VAL_LIT("data"), listenerMetadata);
	CHECK_INT(seccomp_send(profile, listener, test_json(&a, "{\"ociVersion\":\"1.2.0\",\"id\":\"x\",\"pid\":7}"), &err), 0);
	CLEANUP(buf_done) struct buf text = BUF_INIT(65536);
	int got = receive(server, &text);
	CHECK_STR(buf_str(&text), "{\"ociVersion\":\"1.2.0\",\"fds\":[\"seccompFd\"],\"pid\":7,\"metadata\":\"data\","
		  "\"state\":{\"ociVersion\":\"1.2.0\",\"id\":\"x\",\"pid\":7}}");
	answer(got);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(got), close(listener), close(pidfd), close(pipes[0]), close(pipes[1]), close(server);
	unlink(address.sun_path);
	CHECK(seccomp_send(profile, 0, VAL_EMPTY, &err) == -ERR_NOT_FOUND);
	rmdir(dir);
	seccomp_free(s);
	arena_done(&a);
}
