/*
 * init: from clone3 to execve, in the order of the story. The process is a copy of the runtime and knows all that it knows; what
 * only the runtime can do from outside (id maps, cgroup, hooks, passing the terminal on) it asks for over the sync socket. Each
 * step has a name, and a step that fails is told with it.
 *
 * Between the moment that it enters namespaces with strangers in them and execve, the process is not dumpable: nobody there may
 * trace it or look at its descriptors. All descriptors are close-on-exec; those not needed any more are closed when it is inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "codec/atoms.h"
#include "oci/oci_priv.h"
#include "oci/state.h"
#include "oci/sync.h"

/* ---- at home ---- */

/* The runtime may have blocked or ignored signals, and has a umask: the program starts with none of that. */
static int reset_inherited(struct init *i, struct err *err)
{
	struct sigaction standard = { .sa_handler = SIG_DFL };
	sigset_t none;

	(void)i;
	umask(022);
	for (int s = 1; s < NSIG; s++)
		(void)sigaction(s, &standard, NULL);
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? err_sys(err, errno, "sigprocmask") : 0;
}

/* The runtime writes the id maps and puts us into the cgroup. It answers with our pid as it is outside. */
static int ask_for_place(struct init *i, struct err *err)
{
	struct sync_message m;
	int passed, r;

	if ((r = sync_tell(i->sync, SYNC_PLACE, 0, err)) < 0 || (r = sync_next(i->sync, &m, &passed, err)) < 0)
		return r;
	i->pid = m.number;
	return m.kind == SYNC_GO ? 0 : err_set(err, ERR_INTERNAL, "an unexpected answer");
}

/* In a user namespace we are nobody until we say that we are its root. */
static int become_root(struct init *i, struct err *err)
{
	if (i->new_user || i->join[NS_USER] >= 0) {
		if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
			return err_sys(err, errno, "becoming root of the user namespace");
	}
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(err, errno, "PR_SET_DUMPABLE") : 0;
}

static int new_session(struct init *i, struct err *err)
{
	(void)i;
	return setsid() < 0 ? err_sys(err, errno, "setsid") : 0;
}

static int new_keyring(struct init *i, struct err *err)
{
	return i->no_new_keyring ? 0 : process_new_keyring(i->id, err);
}

static int loopback(struct init *i, struct err *err)
{
	return spec_is_new(i->spec, NS_NETWORK) ? namespaces_loopback_up(err) : 0;
}

static int names(struct init *i, struct err *err)
{
	return namespaces_set_names(i->spec, err);
}

static int sysctls(struct init *i, struct err *err)
{
	return namespaces_set_sysctls(i->spec, err);
}

static int open_label(struct init *i, struct err *err)
{
	return process_open_label(i->process, &i->label, err);
}

/* ---- the root ---- */

static int make_root(struct init *i, struct err *err)
{
	return rootfs_mount(i->rootfs, err);
}

static int run_hooks(struct init *i, atom kind, enum oci_status status, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);

	if (!val_len(val_member(i->hooks, kind)))
		return 0;
	state_text(&text, i->state, status, i->pid);
	return hooks_run(i->hooks, kind, buf_str(&text), err);
}

/* Those of the runtime run outside, those of the container here: in its namespaces, but before its root is ours. */
static int create_hooks(struct init *i, struct err *err)
{
	int r = sync_ask(i->sync, SYNC_HOOKS, err);
	return r < 0 ? r : run_hooks(i, A_createContainer, OCI_CREATING, err);
}

static int stdio(struct init *i, struct err *err)
{
	int r, master;

	if (!i->process->terminal)
		return process_set_stdio(i->stdio, err);
	CLEANUP(fd_closep) int own = i->spec ? -1 : path_open_tree("/", err);
	if (!i->spec && own < 0)
		return own;
	if ((r = terminal_make(i->spec ? i->rootfs->tree : own, i->process, i->spec != NULL, &master, err)) < 0)
		return r;
	r = sync_tell_fd(i->sync, SYNC_TERMINAL, master, err);
	close(master);
	return r;
}

/* A working directory that is missing is made, as runc does. One that we may not look at is left to its user. */
static int make_cwd(struct init *i, struct err *err)
{
	int r = rootfs_make_folder(i->rootfs, i->process->cwd, err);
	return r < 0 && err->sys == EACCES ? 0 : r;
}

static int protect_root(struct init *i, struct err *err)
{
	return rootfs_protect(i->rootfs, err);
}

/* Only now, when we are in our cgroup and have mounted it: it is the top of the new namespace. */
static int cgroup_namespace(struct init *i, struct err *err)
{
	if (spec_is_new(i->spec, NS_CGROUP) && unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(err, errno, "unshare");
	return 0;
}

static int enter_root(struct init *i, struct err *err)
{
	return rootfs_enter(i->rootfs, err);
}

static int close_others(struct init *i, struct err *err)
{
	int *const kept[] = { &i->sync, &i->start, &i->label };
	return process_close_others(i->preserve_fds, kept, ARRAY_LEN(kept), err);
}

/* ---- what it may do ---- */

static int limits(struct init *i, struct err *err)
{
	return process_set_limits(i->process, err);
}

static int schedule(struct init *i, struct err *err)
{
	return process_set_schedule(i->process, err);
}

static int set_personality(struct init *i, struct err *err)
{
	return process_set_personality(i->personality, err);
}

static int no_new_privs(struct init *i, struct err *err)
{
	if (i->process->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "PR_SET_NO_NEW_PRIVS");
	return 0;
}

static int label(struct init *i, struct err *err)
{
	int r = process_set_label(i->process, i->label, err);
	fd_closep(&i->label);
	return r;
}

/* The listener of a filter that asks an agent is fetched by whoever is at the other end. */
static int load_filter(struct init *i, int other, struct err *err)
{
	struct sync_message m;
	int listener, passed, r;

	if (!i->seccomp)
		return 0;
	if ((r = seccomp_install(i->seccomp, &listener, err)) < 0 || listener < 0)
		return r;
	if ((r = sync_tell(other, SYNC_LISTENER, listener, err)) < 0 || (r = sync_next(other, &m, &passed, err)) < 0)
		return r;
	close(listener);
	return 0;
}

/* Without no_new_privs a filter needs a right that is given up with the next step; with it, it is the last step. */
static int early_filter(struct init *i, struct err *err)
{
	return i->process->no_new_privs ? 0 : load_filter(i, i->sync, err);
}

/* A folder that only root, or only the user may enter: one of both tries works. */
static int cwd_as_root(struct init *i, struct err *err)
{
	i->in_cwd = process_enter_cwd(i->process, err) == 0;
	return 0;
}

static int home(struct init *i, struct err *err)
{
	(void)err;
	process_set_home(i->process, i->arena);
	return 0;
}

static int identity(struct init *i, struct err *err)
{
	return process_set_identity(i->process, err);
}

static int cwd_as_user(struct init *i, struct err *err)
{
	return i->in_cwd ? 0 : process_enter_cwd(i->process, err);
}

static int find_program(struct init *i, struct err *err)
{
	return process_find_program(i->process, i->arena, &i->program, err);
}

static int ready(struct init *i, struct err *err)
{
	return sync_tell(i->sync, SYNC_READY, 0, err);
}

/* ---- the story ---- */

enum { CREATE = 1, EXEC = 2, BOTH = 3 };

static const struct step {
	const char *name;
	int (*run)(struct init *i, struct err *err);
	int when;
} steps[] = {
	{ "signals", reset_inherited, BOTH },
	{ "place", ask_for_place, BOTH },
	{ "user namespace", become_root, BOTH },
	{ "session", new_session, BOTH },
	{ "keyring", new_keyring, BOTH },
	{ "loopback", loopback, CREATE },
	{ "hostname", names, CREATE },
	{ "sysctl", sysctls, CREATE },
	{ "security label", open_label, BOTH },
	{ "rootfs", make_root, CREATE },
	{ "hooks", create_hooks, CREATE },
	{ "stdio", stdio, BOTH },
	{ "cwd", make_cwd, CREATE },
	{ "masked paths", protect_root, CREATE },
	{ "cgroup namespace", cgroup_namespace, CREATE },
	{ "pivot_root", enter_root, CREATE },
	{ "descriptors", close_others, BOTH },
	{ "rlimits", limits, BOTH },
	{ "scheduler", schedule, BOTH },
	{ "personality", set_personality, BOTH },
	{ "no_new_privs", no_new_privs, BOTH },
	{ "security label", label, BOTH },
	{ "seccomp", early_filter, BOTH },
	{ "cwd", cwd_as_root, BOTH },
	{ "environment", home, BOTH },
	{ "capabilities and user", identity, BOTH },
	{ "cwd", cwd_as_user, BOTH },
	{ "program", find_program, BOTH },
	{ "ready", ready, BOTH },
};

/* Waits for `start`: its connection is where a failure of the last steps is told. */
static int wait_for_start(struct init *i, struct err *err)
{
	fd_closep(&i->sync);
	do
		i->sync = accept4(i->start, NULL, NULL, SOCK_CLOEXEC);
	while (i->sync < 0 && errno == EINTR);
	if (i->sync < 0)
		return err_sys(err, errno, "waiting for start");
	fd_closep(&i->start);
	return 0;
}

static int become_program(struct init *i, const char **ret_step, struct err *err)
{
	int r;

	*ret_step = "start";
	if (i->start >= 0 && (r = wait_for_start(i, err)) < 0)
		return r;
	*ret_step = "hooks";
	if (i->spec && (r = run_hooks(i, A_startContainer, OCI_CREATED, err)) < 0)
		return r;
	*ret_step = "seccomp";
	if (i->process->no_new_privs && (r = load_filter(i, i->sync, err)) < 0)
		return r;
	*ret_step = "exec";
	execve(i->program, (char **)(uintptr_t)i->process->args, (char **)(uintptr_t)i->process->env);
	return err_sys(err, errno, "exec %s", i->program);
}

__attribute__((noreturn)) static void run_steps(struct init *i)
{
	struct err err = ERR_INIT;
	int when = i->spec ? CREATE : EXEC;
	const char *last;

	for (size_t n = 0; n < ARRAY_LEN(steps); n++) {
		if (steps[n].when & when && steps[n].run(i, &err) < 0) {
			sync_fail(i->sync, steps[n].name, &err);
			_exit(1);
		}
	}
	if (become_program(i, &last, &err) < 0)
		sync_fail(i->sync, last, &err);
	_exit(127);
}

/* ---- clone3 ---- */

static bool joins(const struct init *i)
{
	for (int k = 0; k < NS_KINDS; k++)
		if (i->join[k] >= 0)
			return true;
	return i->spec && spec_is_new(i->spec, NS_TIME);
}

/* For exec: nothing of outside goes with us but what is needed, since there are strangers where we go. */
static int leave_things(struct init *i, struct err *err)
{
	int *kept[NS_KINDS + 1];
	int r = process_set_stdio(i->stdio, err);

	if (r < 0)
		return r;
	for (int fd = 0; fd < 3; fd++)
		i->stdio[fd] = fd;
	for (int k = 0; k < NS_KINDS; k++)
		kept[k] = &i->join[k];
	kept[NS_KINDS] = &i->sync;
	return process_close_others(i->preserve_fds, kept, ARRAY_LEN(kept), err);
}

static int prepare_stage(struct init *i, struct err *err)
{
	int r;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "PR_SET_DUMPABLE");
	if (!i->spec && (r = leave_things(i, err)) < 0)
		return r;
	if (i->spec && spec_is_new(i->spec, NS_TIME) && (r = namespaces_make_time(i->spec, err)) < 0)
		return r;
	return namespaces_join(i->join, err);
}

/* Until the other end is closed: the parent learns our pid before it hears from us. */
static void wait_for_end(int told[2])
{
	char c;
	close(told[1]);
	while (read(told[0], &c, 1) < 0 && errno == EINTR)
		;
	close(told[0]);
}

/* Joins what is to be joined, and clones the process that stays, as a child of our parent. */
__attribute__((noreturn)) static void run_stage(struct init *i, uint64_t flags)
{
	struct err err = ERR_INIT;
	int told[2], r = prepare_stage(i, &err);

	if (r == 0 && pipe2(told, O_CLOEXEC) < 0)
		r = err_sys(&err, errno, "pipe2");
	pid_t pid = r < 0 ? -1 : process_clone(CLONE_PARENT | flags);
	if (pid == 0) {
		wait_for_end(told);
		run_steps(i);
	}
	if (r == 0 && pid < 0)
		r = err_sys(&err, errno, "clone3");
	if (r == 0)
		r = sync_tell(i->sync, SYNC_CHILD, pid, &err);
	if (r < 0)
		sync_fail(i->sync, "namespaces", &err);
	_exit(r < 0);
}

/* By ourselves, since the kernel takes long for moving others. */
static void enter_cgroup(struct init *i)
{
	struct err err = ERR_INIT;

	if (!i->cgroup || cgroup_join(i->cgroup, &err) >= 0)
		return;
	sync_fail(i->sync, "cgroup", &err);
	_exit(1);
}

int init_clone(struct init *i, int parent_sync, pid_t *ret_pid, struct err *err)
{
	uint64_t flags = i->spec ? namespaces_new(i->spec) : 0;
	bool staged = joins(i);
	struct sync_message m;
	int passed, status;

	i->new_user = flags & CLONE_NEWUSER;
	pid_t pid = process_clone_into(staged ? 0 : flags, i->cgroup ? cgroup_fd(i->cgroup) : -1);
	/* The container has made cgroups with controllers below its own: it is put beside its first process when it asks for its place. */
	if (pid < 0 && errno == EBUSY && i->cgroup)
		pid = process_clone_into(staged ? 0 : flags, -1);
	if (pid < 0)
		return err_sys(err, errno, "clone3");
	if (pid == 0) {
		close(parent_sync);
		enter_cgroup(i);
		if (staged)
			run_stage(i, flags);
		run_steps(i);
	}
	fd_closep(&i->sync);
	if (!staged) {
		*ret_pid = pid;
		return 0;
	}
	int r = sync_next(parent_sync, &m, &passed, err);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (m.kind != SYNC_CHILD)
		return err_set(err, ERR_INTERNAL, "message %d instead of a pid", (int)m.kind);
	*ret_pid = m.number;
	return 0;
}
