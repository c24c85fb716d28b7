/*
 * Start, loop and children. The listening socket is there before the process that was started ends; what goes on is its child, in a
 * session of its own. All signals are blocked: none ends the monitor but SIGKILL, and SIGCHLD is read from a descriptor. When the
 * monitor is killed nevertheless, its containers go on without anybody who reads their output or notes their end; their output then
 * fails with EPIPE. The one who asks finds a socket that refuses, and has to kill and delete what the OCI states name.
 *
 * One event is taken at a time, so that none is left over for something that the one before it has freed.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "oci/cgroup.h"
#include "oci/self.h"

void source_init(struct source *s, struct pod *pod, int fd, void (*ready)(struct source *s, uint32_t events))
{
	*s = (struct source){ .pod = pod, .fd = fd, .ready = ready };
}

void source_watch(struct source *s, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };

	if (s->fd < 0 || s->events == events)
		return;
	int op = !events ? EPOLL_CTL_DEL : s->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (epoll_ctl(s->pod->epoll, op, s->fd, &e) < 0)
		log_error("epoll_ctl", KV("errno", errno)); /* EPERM for a plain file, EEXIST for a mistake of ours */
	s->events = events;
}

void source_close(struct source *s)
{
	source_watch(s, 0);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void timer_set(struct pod *pod, struct timer *t, int64_t ms, void (*fire)(struct timer *t))
{
	timer_stop(t);
	t->due_ns = clock_now_ns() + ms * NS_PER_MS;
	t->fire = fire;
	list_add(&pod->timers, &t->link);
}

void timer_stop(struct timer *t) { list_remove(&t->link); }

/* Fires what is due; milliseconds until the next one, -1 for none. */
static int run_timers(struct pod *pod)
{
	for (;;) {
		struct timer *next = NULL;
		LIST_EACH(struct timer, t, &pod->timers, link)
			if (!next || t->due_ns < next->due_ns)
				next = t;
		if (!next)
			return -1;
		int64_t left = next->due_ns - clock_now_ns();
		if (left > 0)
			return (int)MIN((left + NS_PER_MS - 1) / NS_PER_MS, (int64_t)INT_MAX);
		timer_stop(next);
		next->fire(next);
	}
}

static void reap(struct source *s, uint32_t events)
{
	struct signalfd_siginfo info;
	pid_t pid;
	int status;

	(void)events;
	while (read(s->fd, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
		if (!job_reap(s->pod, pid, status))
			exit_reaped(s->pod, pid, status);
	pod_check_end(s->pod);
}

void pod_check_end(struct pod *pod)
{
	if (!pod->ending || !list_empty(&pod->containers) || !list_empty(&pod->jobs))
		return;
	unlinkat(pod->folder_fd, "monitor.sock", 0);
	_exit(0);
}

static int forget_segment(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		uintptr_t from = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		uintptr_t to = (info->dlpi_addr + p->p_vaddr + p->p_memsz + page - 1) & ~(page - 1);
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

/*
 * A monitor sleeps nearly all of its life, and there is one per pod: it holds on to no memory meanwhile, not even to its program, which
 * comes back page by page from the file, or from where others of its kind have it.
 */
static void shrink(void)
{
	malloc_trim(0);
	dl_iterate_phdr(forget_segment, NULL);
}

static __attribute__((noreturn)) void loop(struct pod *pod)
{
	bool small = false;

	for (;;) {
		struct epoll_event e;
		int ms = run_timers(pod);
		int n = epoll_wait(pod->epoll, &e, 1, small || (ms >= 0 && ms < SHRINK_AFTER_MS) ? ms : SHRINK_AFTER_MS);
		if (n > 0) {
			struct source *s = e.data.ptr;
			small = false;
			s->ready(s, e.events);
		} else if (!small && (ms < 0 || ms > SHRINK_AFTER_MS)) {
			small = true;
			shrink();
		}
	}
}

/* ---- start ---- */

/* Bound under another name and renamed: who finds the socket finds it listening; one that a killed monitor left is replaced. */
static int listen_at(struct pod *pod, struct err *err)
{
	struct sockaddr_un address;
	int fd = monitor_wire_socket(err), r;

	if (fd < 0)
		return fd;
	r = monitor_wire_address(pod->folder_fd, "monitor.sock", &address, err);
	if (r == 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		r = err_set(err, ERR_ALREADY_EXISTS, "%s: a monitor runs there", pod->folder);
	close(fd);
	if (r < 0 || (fd = monitor_wire_socket(err)) < 0)
		return r < 0 ? r : fd;
	r = monitor_wire_address(pod->folder_fd, "monitor.new", &address, err);
	unlinkat(pod->folder_fd, "monitor.new", 0);
	if (r == 0 && (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || fchmodat(pod->folder_fd, "monitor.new", 0600, 0) < 0 ||
		       listen(fd, CONNS_MAX) < 0 || renameat(pod->folder_fd, "monitor.new", pod->folder_fd, "monitor.sock") < 0))
		r = err_sys(err, errno, "%s/monitor.sock", pod->folder);
	if (r < 0) {
		close(fd);
		return r;
	}
	source_init(&pod->listener, pod, fd, conn_accept);
	return 0;
}

/* Standard descriptors of its own: what the starter waits for must not stay open. */
static int let_go(struct pod *pod, struct err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int own = openat(pod->folder_fd, "monitor.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (null < 0 || own < 0)
		return err_sys(err, errno, "%s/monitor.log", pod->folder);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(own, STDERR_FILENO) < 0)
		return err_sys(err, errno, "standard descriptors");
	close(null);
	close(own);
	if (setsid() < 0 || chdir("/") < 0)
		return err_sys(err, errno, "a session of its own");
	umask(0022);
	return 0;
}

static int prepare(struct pod *pod, const char *cgroup, struct err *err)
{
	int r;

	if (cgroup) {
		CLEANUP(cgroup_freep) struct cgroup *own = NULL;
		if ((r = cgroup_make(cgroup, &own, err)) < 0 || (r = cgroup_add(own, getpid(), err)) < 0)
			return r;
	}
	pod->folder_fd = open(pod->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (pod->folder_fd < 0)
		return err_sys(err, errno, "%s", pod->folder);
	if (mkdirat(pod->folder_fd, "exits", 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s/exits", pod->folder);
	if ((r = file_make_dirs(pod->oci_root, 0700, err)) < 0)
		return r;
	return listen_at(pod, err);
}

/* In the child that stays. */
static int begin(struct pod *pod, struct err *err)
{
	sigset_t all, child;
	int r = let_go(pod, err);

	if (r < 0)
		return r;
	sigfillset(&all);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_SETMASK, &all, NULL);
	pod->epoll = epoll_create1(EPOLL_CLOEXEC);
	int fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (pod->epoll < 0 || fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_sys(err, errno, "the loop");
	source_init(&pod->children, pod, fd, reap);
	source_watch(&pod->children, EPOLLIN);
	source_watch(&pod->listener, EPOLLIN);
	return 0;
}

static int usage(void)
{
	dprintf(STDERR_FILENO, "usage: c8s-pod monitor --state DIR --root DIR [--runtime PROGRAM] [--cgroup PATH]\n");
	return 2;
}

int monitor_main(int argc, char **argv)
{
	static struct pod pod;
	const char *cgroup = NULL;
	struct err err = ERR_INIT;

	for (int i = 1; i + 1 < argc; i += 2) {
		const char **to = strcmp(argv[i], "--state") == 0 ? &pod.folder
				: strcmp(argv[i], "--root") == 0 ? &pod.oci_root
				: strcmp(argv[i], "--runtime") == 0 ? &pod.program
				: strcmp(argv[i], "--cgroup") == 0 ? &cgroup : NULL;
		if (!to)
			return usage();
		*to = argv[i + 1];
	}
	if (argc % 2 == 0 || !pod.folder || !pod.oci_root || pod.folder[0] != '/' || pod.oci_root[0] != '/')
		return usage();
	/* Another runtime protects itself. */
	if (!pod.program && self_protect(argv, &err) < 0)
		return dprintf(STDERR_FILENO, "c8s-pod monitor: %s\n", err.msg), 1;
	close_range(STDERR_FILENO + 1, ~0u, 0); /* what it was executed by */
	/* Freed memory goes back to the kernel: most of its life, a monitor has next to none. */
	mallopt(M_TRIM_THRESHOLD, BLOCK_SIZE);
	mallopt(M_TOP_PAD, 0);
	mallopt(M_MMAP_THRESHOLD, 2 * BLOCK_SIZE);
	list_init(&pod.conns);
	list_init(&pod.containers);
	list_init(&pod.jobs);
	list_init(&pod.timers);
	if (prepare(&pod, cgroup, &err) < 0)
		return dprintf(STDERR_FILENO, "c8s-pod monitor: %s\n", err.msg), 1;
	pid_t pid = fork();
	if (pid < 0)
		return dprintf(STDERR_FILENO, "c8s-pod monitor: fork: %s\n", strerror(errno)), 1;
	if (pid > 0)
		return 0;
	if (begin(&pod, &err) < 0) {
		log_error("the monitor cannot start", KV("error", &err));
		_exit(1);
	}
	loop(&pod);
}
