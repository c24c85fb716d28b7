/* exec: one more process in a container: it joins all namespaces of the first one and then goes the same steps. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "codec/atoms.h"
#include "oci/attend.h"
#include "oci/oci_priv.h"
#include "oci/state.h"
#include "oci/sync.h"

struct execution {
	struct process process;
	struct spec spec;
	struct state state;
	struct cgroup *cgroup;
	struct seccomp *seccomp;
	pid_t pid;
};

static int place(void *arg, pid_t pid, struct err *err)
{
	struct execution *e = arg;
	int r = cgroup_add(e->cgroup, pid, err);

	return r < 0 ? r : process_set_oom_score(pid, e->process.config, err);
}

static int check(const struct oci_exec_options *o, struct execution *e, struct arena *a, struct err *err)
{
	enum oci_status status = state_status(&e->state);
	int r;

	if (status == OCI_STOPPED)
		return err_set(err, ERR_CONFLICT, "cannot exec in a stopped container");
	/* Its first process may not have left the host's root yet: we would come out there. */
	if (status == OCI_CREATING)
		return err_set(err, ERR_CONFLICT, "cannot exec in a container that is being created");
	if (status == OCI_PAUSED && !o->ignore_paused)
		return err_set(err, ERR_CONFLICT, "cannot exec in a paused container (use --ignore-paused to override)");
	if ((r = spec_read_file(arena_printf(a, "%s/config.json", e->state.folder).p, e->state.bundle.p, a, &e->spec, err)) < 0 ||
	    (r = spec_process(o->process, a, &e->process, err)) < 0 || (r = process_check(&e->process, err)) < 0)
		return r;
	if (e->process.terminal != (o->console_socket >= 0))
		return err_set(err, ERR_INVALID, e->process.terminal ?
			       "cannot allocate tty if runc will detach without setting console socket" :
			       "cannot use console socket if runc will not detach or allocate tty");
	if ((r = seccomp_make(val_get(e->spec.linux_part, seccomp), &e->seccomp, err)) < 0)
		return err_wrap(err, r, "config.json: linux.seccomp");
	return cgroup_open(e->state.cgroup.p, &e->cgroup, err);
}

static int run(const struct oci_exec_options *o, struct execution *e, struct arena *a, struct err *err)
{
	struct init init = {
		.process = &e->process,
		.seccomp = e->seccomp,
		.state = &e->state,
		.cgroup = e->cgroup,
		.arena = a,
		.personality = val_get(e->spec.linux_part, personality),
		.id = o->id,
		.start = -1,
		.preserve_fds = o->preserve_fds,
		.label = -1,
	};
	struct attend attend = {
		.console_socket = o->console_socket,
		.seccomp = val_get(e->spec.linux_part, seccomp),
		.state = &e->state,
		.place = place,
		.arg = e,
	};
	int sync[2], r;

	memcpy(init.stdio, o->stdio, sizeof(init.stdio));
	/* The descriptor holds the process while its namespaces are opened by its pid. */
	CLEANUP(fd_closep) int process = state_pidfd(&e->state, err);
	if (process < 0)
		return process;
	if ((r = cgroup_join_prepare(e->cgroup, err)) < 0 || (r = namespaces_open_of(e->state.pid, init.join, err)) < 0)
		return r;
	if ((r = sync_pair(sync, err)) == 0) {
		init.sync = sync[1];
		r = init_clone(&init, sync[0], &e->pid, err);
		if (r == 0 && (r = attend_process(&attend, sync[0], e->pid, err)) == 0)
			r = attend_exec(&attend, sync[0], e->pid, err);
		fd_closep(&init.sync);
		fd_closep(&sync[0]);
	}
	namespaces_close(init.join);
	return r;
}

int oci_exec(const struct oci_exec_options *o, pid_t *ret_pid, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct execution e = { .state = { .dir = -1 } };
	int r = state_open(o->root, o->id, false, &a, &e.state, err);

	if (r == 0)
		r = check(o, &e, &a, err);
	if (r == 0 && (r = run(o, &e, &a, err)) < 0)
		err_wrap(err, r, "unable to start container process");
	if (r == 0 && o->pid_file)
		r = process_write_pid(o->pid_file, e.pid, err);
	if (r == 0)
		*ret_pid = e.pid;
	if (r < 0 && e.pid > 0) {
		kill(e.pid, SIGKILL);
		while (waitpid(e.pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	state_close(&e.state);
	cgroup_free(e.cgroup);
	seccomp_free(e.seccomp);
	arena_done(&a);
	return r;
}
