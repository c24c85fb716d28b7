/*
 * RuntimeDefault: all that a usual program needs, and what its capabilities are good for; the rest of the kernel is out of its
 * reach. The same effect as the profile of containerd 2.
 */
#include <errno.h>
#include <linux/sched.h>
#include <sys/socket.h>

#include "codec/atoms.h"
#include "oci/seccomp.h"

/* Names with a blank between them. */
static const char always[] =
	"_llseek _newselect accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown "
	"chown32 clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 "
	"clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3 "
	"epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd "
	"eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fanotify_mark "
	"fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock "
	"fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex "
	"futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu "
	"getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer "
	"getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32 "
	"getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr getxattrat "
	"inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents "
	"io_pgetevents_time64 io_setup io_submit ioctl ioprio_get ioprio_set ipc kill landlock_add_rule "
	"landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listmount listxattr "
	"listxattrat llistxattr lremovexattr lseek lsetxattr lsm_get_self_attr lsm_list_modules lsm_set_self_attr lstat "
	"lstat64 madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock "
	"mlock2 mlockall mmap mmap2 mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 "
	"mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall "
	"munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 "
	"pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64 "
	"process_mrelease process_vm_readv process_vm_writev pselect6 pselect6_time64 ptrace pwrite64 pwritev pwritev2 "
	"read readahead readlink readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages "
	"removexattr removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending "
	"rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 "
	"rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam "
	"sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr "
	"sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop semtimedop_time64 "
	"send sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid "
	"setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority setregid "
	"setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setsockopt setuid "
	"setuid32 setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 sigprocmask "
	"sigreturn socketcall socketpair splice stat stat64 statfs statfs64 statmount statx symlink symlinkat sync "
	"sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime "
	"timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime "
	"timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink unlinkat uretprobe utime "
	"utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev";

/* Those that are numbered on some architectures only. */
static const char on_this_machine[] =
#if defined(__x86_64__)
	"arch_prctl modify_ldt";
#elif defined(__aarch64__)
	"arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2";
#elif defined(__riscv)
	"riscv_flush_icache riscv_hwprobe";
#elif defined(__powerpc64__)
	"swapcontext sync_file_range2";
#else
	"";
#endif

static const char *const archs[] = {
#if defined(__x86_64__)
	"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32",
#elif defined(__aarch64__)
	"SCMP_ARCH_ARM", "SCMP_ARCH_AARCH64",
#elif defined(__riscv)
	"SCMP_ARCH_RISCV64",
#endif
};

static const struct {
	const char *capability, *names;
} privileged[] = {
	{ "CAP_BPF", "bpf" },
	{ "CAP_DAC_READ_SEARCH", "open_by_handle_at" },
	{ "CAP_PERFMON", "perf_event_open" },
	{ "CAP_SYSLOG", "syslog" },
	{ "CAP_SYS_ADMIN", "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr move_mount "
			   "open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2 unshare" },
	{ "CAP_SYS_BOOT", "reboot" },
	{ "CAP_SYS_CHROOT", "chroot" },
	{ "CAP_SYS_MODULE", "delete_module finit_module init_module" },
	{ "CAP_SYS_NICE", "get_mempolicy mbind set_mempolicy set_mempolicy_home_node" },
	{ "CAP_SYS_PACCT", "acct" },
	{ "CAP_SYS_PTRACE", "kcmp pidfd_getfd process_madvise" },
	{ "CAP_SYS_RAWIO", "ioperm iopl" },
	{ "CAP_SYS_TIME", "clock_settime clock_settime64 settimeofday stime" },
	{ "CAP_SYS_TTY_CONFIG", "vhangup" },
};

static struct val names_of(struct arena *a, const char *names)
{
	struct val_builder b = val_builder(a);
	for (str name, rest = str_of(names); rest.n; ) {
		str_cut(rest, ' ', &name, &rest);
		val_add_item(&b, VAL_STR(name));
	}
	return val_end_list(&b);
}

static void allow(struct val_builder *rows, const char *names)
{
	if (names[0])
		val_add_item(rows, OBJECT(rows->arena, F(names, names_of(rows->arena, names)), F(action, VAL_LIT("SCMP_ACT_ALLOW"))));
}

/* op: the part after SCMP_CMP_. */
static void allow_if(struct val_builder *rows, const char *name, const char *op, int64_t value)
{
	struct arena *a = rows->arena;
	struct val arg = OBJECT(a, F(index, val_of_int(0)), F(value, val_of_int(value)), F(valueTwo, val_of_int(0)),
				F(op, VAL_STR(str_of(op))));
	val_add_item(rows, OBJECT(a, F(names, names_of(a, name)), F(action, VAL_LIT("SCMP_ACT_ALLOW")), F(args, LIST(a, arg))));
}

static bool has(struct val capabilities, const char *name)
{
	VAL_EACH(c, capabilities)
		if (str_eq(val_as_str(*c), str_of(name)))
			return true;
	return false;
}

/* Without CAP_SYS_ADMIN: processes and threads, but no namespaces. clone3 hides its flags in memory, so it must look missing. */
static void allow_clone(struct val_builder *rows)
{
	enum { NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP };
	allow_if(rows, "clone", "SCMP_CMP_MASKED_EQ", NAMESPACES);
	val_add_item(rows, OBJECT(rows->arena, F(names, names_of(rows->arena, "clone3")), F(action, VAL_LIT("SCMP_ACT_ERRNO")),
				  F(errnoRet, val_of_int(ENOSYS))));
}

struct val seccomp_default(struct arena *a, struct val capabilities)
{
	static const int64_t personalities[] = { 0x0, 0x8, 0x20000, 0x20008, 0xffffffff };
	struct val_builder rows = val_builder(a), arch_names = val_builder(a);
	for (size_t i = 0; i < ARRAY_LEN(archs); i++)
		val_add_item(&arch_names, VAL_STR(str_of(archs[i])));
	allow(&rows, always);
	allow(&rows, on_this_machine);
	/* All families but AF_ALG and AF_VSOCK, said so that no two conditions are about one number. */
	allow_if(&rows, "socket", "SCMP_CMP_LT", AF_ALG);
	allow_if(&rows, "socket", "SCMP_CMP_EQ", AF_ALG + 1);
	allow_if(&rows, "socket", "SCMP_CMP_GT", AF_VSOCK);
	for (size_t i = 0; i < ARRAY_LEN(personalities); i++)
		allow_if(&rows, "personality", "SCMP_CMP_EQ", personalities[i]);
	for (size_t i = 0; i < ARRAY_LEN(privileged); i++)
		if (has(capabilities, privileged[i].capability))
			allow(&rows, privileged[i].names);
	if (!has(capabilities, "CAP_SYS_ADMIN"))
		allow_clone(&rows);
	return OBJECT(a, F(defaultAction, VAL_LIT("SCMP_ACT_ERRNO")), F(architectures, val_end_list(&arch_names)),
		      F(syscalls, val_end_list(&rows)));
}
