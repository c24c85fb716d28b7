/* container: create, start, state, kill, delete, pause, update: the runtime's side of the story that init.c tells. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "oci/attend.h"
#include "oci/oci_priv.h"
#include "oci/state.h"
#include "oci/sync.h"

enum { GONE_TIMEOUT_MS = 10000 };

/* ---- create ---- */

struct creation {
	const struct oci_create_options *o;
	struct arena arena;
	struct spec spec;
	struct process process;
	struct state state;
	struct cgroup *cgroup;
	struct rootfs rootfs;
	struct seccomp *seccomp;
	int start;                   /* the listening socket */
	pid_t pid;
};

static int read_all(struct creation *c, struct err *err)
{
	int r;

	if ((r = spec_read(c->o->bundle, &c->arena, &c->spec, err)) < 0 ||
	    (r = spec_process(val_get(c->spec.config, process), &c->arena, &c->process, err)) < 0 ||
	    (r = process_check(&c->process, err)) < 0 || (r = namespaces_check_sysctls(&c->spec, err)) < 0)
		return r;
	if (c->process.terminal && c->o->console_socket < 0)
		return err_set(err, ERR_INVALID, "cannot allocate tty if runc will detach without setting console socket");
	if (!c->process.terminal && c->o->console_socket >= 0)
		return err_set(err, ERR_INVALID, "cannot use console socket if runc will not detach or allocate tty");
	if (val_str(c->spec.linux_part, mountLabel).n && !process_has_selinux())
		return err_set(err, ERR_INVALID, "config.json: linux.mountLabel: selinux is disabled or not supported");
	r = seccomp_make(val_get(c->spec.linux_part, seccomp), &c->seccomp, err);
	return r < 0 ? err_wrap(err, r, "config.json: linux.seccomp") : 0;
}

static str now_text(struct arena *a)
{
	char text[TIME_TEXT_MAX];
	int64_t ns = clock_wall_ns();
	struct timestamp t = { ns / NS_PER_S, (int32_t)(ns % NS_PER_S) };

	return arena_str(a, microtime_format(t, text));
}

static int keep_config(const struct creation *c, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(16 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = file_read(arena_printf(&a, "%s/config.json", c->spec.bundle).p, &text, err);

	if (r < 0)
		return r;
	/* Nobody looks for it before there is a state. */
	CLEANUP(fd_closep) int fd = openat(c->state.dir, "config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(err, errno, "%s/config.json", c->state.folder) :
			file_write_fd(fd, buf_str(&text), -1, c->state.folder, err);
}

static int fill_state(struct creation *c, struct err *err)
{
	struct state *s = &c->state;
	str path = val_str(c->spec.linux_part, cgroupsPath);
	int r;

	s->version = val_str(c->spec.config, ociVersion);
	s->bundle = str_of(c->spec.bundle);
	s->rootfs = str_of(c->spec.rootfs);
	s->created = now_text(&c->arena);
	s->annotations = val_get(c->spec.config, annotations);
	s->own_pids = spec_is_new(&c->spec, NS_PID);
	s->cgroup = path.n ? arena_str(&c->arena, path) : arena_printf(&c->arena, "/%s", c->o->id);
	if (str_find(s->cgroup, STR(":")) >= 0)
		return err_set(err, ERR_INVALID, "config.json: linux.cgroupsPath: systemd's form is not supported");
	return (r = keep_config(c, err)) < 0 ? r : state_save(s, err);
}

/* Only one that nobody is in: at the end, all that are in it are killed. */
static int make_cgroup(struct creation *c, struct err *err)
{
	struct val resources = val_get(c->spec.linux_part, resources);
	pid_t *pids;
	size_t n;
	int r;

	if ((r = cgroup_make(c->state.cgroup.p, &c->cgroup, err)) < 0 || (r = cgroup_pids(c->cgroup, &c->arena, &pids, &n, err)) < 0)
		return r;
	if (n) {
		cgroup_free(TAKE(c->cgroup));
		return err_set(err, ERR_CONFLICT, "container's cgroup is not empty: %zu process(es) found", n);
	}
	if ((r = cgroup_devices(c->cgroup, val_get(resources, devices), err)) < 0)
		return r;
	return cgroup_limit(c->cgroup, resources, err);
}

/* An address for a name in a folder, however long its path is. */
static struct sockaddr_un start_address(const struct state *s)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char folder[PATH_FD_TEXT];

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/start.sock", path_of_fd(s->dir, folder));
	return at;
}

static int listen_for_start(struct creation *c, struct err *err)
{
	struct sockaddr_un at = start_address(&c->state);

	c->start = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (c->start < 0 || bind(c->start, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(c->start, 1) < 0)
		return err_sys(err, errno, "the start socket");
	return 0;
}

/* ---- what the new process asks for ---- */

static int place(void *arg, pid_t pid, struct err *err)
{
	struct creation *c = arg;
	int r;

	if (spec_is_new(&c->spec, NS_USER) &&
	    (r = namespaces_write_maps(pid, val_get(c->spec.linux_part, uidMappings), val_get(c->spec.linux_part, gidMappings), err)) < 0)
		return r;
	if ((r = cgroup_add(c->cgroup, pid, err)) < 0 || (r = process_set_oom_score(pid, c->process.config, err)) < 0)
		return r;
	c->state.pid = pid;
	c->state.start_time = state_start_time(pid);
	return state_save(&c->state, err);
}

static int run_hooks(const struct state *s, struct val hooks, atom kind, enum oci_status status, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);

	if (!val_len(val_member(hooks, kind)))
		return 0;
	state_text(&text, s, status, status == OCI_STOPPED ? 0 : s->pid);
	return hooks_run(hooks, kind, buf_str(&text), err);
}

static int runtime_hooks(void *arg, struct err *err)
{
	struct creation *c = arg;
	struct val hooks = val_get(c->spec.config, hooks);
	int r = run_hooks(&c->state, hooks, A_prestart, OCI_CREATING, err);

	return r < 0 ? r : run_hooks(&c->state, hooks, A_createRuntime, OCI_CREATING, err);
}

static int create_process(struct creation *c, struct err *err)
{
	int sync[2], r;
	struct init init = {
		.spec = &c->spec,
		.process = &c->process,
		.rootfs = &c->rootfs,
		.seccomp = c->seccomp,
		.state = &c->state,
		.cgroup = c->cgroup,
		.arena = &c->arena,
		.hooks = val_get(c->spec.config, hooks),
		.personality = val_get(c->spec.linux_part, personality),
		.id = c->o->id,
		.start = c->start,
		.preserve_fds = c->o->preserve_fds,
		.no_new_keyring = c->o->no_new_keyring,
		.label = -1,
	};
	struct attend attend = {
		.console_socket = c->o->console_socket,
		.seccomp = val_get(c->spec.linux_part, seccomp),
		.state = &c->state,
		.place = place,
		.hooks = runtime_hooks,
		.arg = c,
	};

	memcpy(init.stdio, c->o->stdio, sizeof(init.stdio));
	if ((r = cgroup_join_prepare(c->cgroup, err)) < 0 || (r = namespaces_open(&c->spec, init.join, err)) < 0)
		return r;
	r = sync_pair(sync, err);
	if (r == 0) {
		init.sync = sync[1];
		r = init_clone(&init, sync[0], &c->pid, err);
		if (r == 0)
			r = attend_process(&attend, sync[0], c->pid, err);
		fd_closep(&init.sync);
		fd_closep(&sync[0]);
	}
	namespaces_close(init.join);
	return r;
}

static int create(struct creation *c, struct err *err)
{
	int r;

	if ((r = fill_state(c, err)) < 0 || (r = make_cgroup(c, err)) < 0 ||
	    (r = rootfs_open(&c->rootfs, &c->spec, c->cgroup, &c->arena, err)) < 0 || (r = listen_for_start(c, err)) < 0)
		return r;
	c->rootfs.no_pivot = c->o->no_pivot;
	if ((r = create_process(c, err)) < 0)
		return err_wrap(err, r, "unable to start container process");
	c->state.creating = false;
	if ((r = state_save(&c->state, err)) < 0)
		return r;
	return c->o->pid_file ? process_write_pid(c->o->pid_file, c->pid, err) : 0;
}

/* What was made is taken back; that it failed is told already. */
static void undo(struct creation *c)
{
	struct err err = ERR_INIT;

	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
		if (run_hooks(&c->state, val_get(c->spec.config, hooks), A_poststop, OCI_STOPPED, &err) < 0)
			log_warn("poststop hooks failed; ignoring", KV("error", &err));
	}
	if (c->cgroup && (cgroup_kill(c->cgroup, SIGKILL, &err) < 0 || cgroup_remove(c->cgroup, &err) < 0))
		log_warn("a cgroup is left behind", KV("error", &err));
	if (state_remove(c->o->root, &c->state, &err) < 0)
		log_warn("a state is left behind", KV("error", &err));
}

int oci_create(const struct oci_create_options *o, pid_t *ret_pid, struct err *err)
{
	struct creation c = { .o = o, .rootfs = { .tree = -1 }, .start = -1, .state = { .dir = -1 } };
	int r = state_check_id(o->id, err);

	if (r == 0)
		r = read_all(&c, err);
	if (r == 0)
		r = state_make(o->root, o->id, &c.arena, &c.state, err);
	if (r == 0 && (r = create(&c, err)) < 0)
		undo(&c);
	if (r == 0)
		*ret_pid = c.pid;
	rootfs_close(&c.rootfs);
	fd_closep(&c.start);
	state_close(&c.state);
	cgroup_free(c.cgroup);
	seccomp_free(c.seccomp);
	arena_done(&c.arena);
	return r;
}

/* ---- start ---- */

static int connect_start(const struct state *s, struct err *err)
{
	struct sockaddr_un at = start_address(s);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	int sys = errno;
	fd_closep(&fd);
	return sys == ECONNREFUSED ? err_set(err, ERR_CONFLICT, "cannot start a container that has stopped") :
				     err_sys(err, sys, "the start socket");
}

static int kept_config(const struct state *s, struct arena *a, struct val *ret, struct err *err)
{
	struct spec spec;
	int r = spec_read_file(arena_printf(a, "%s/config.json", s->folder).p, arena_str(a, s->bundle).p, a, &spec, err);

	if (r == 0)
		*ret = spec.config;
	return r;
}

static int start(struct state *s, struct arena *a, struct err *err)
{
	enum oci_status status = state_status(s);
	struct val config;
	int r;

	if (status == OCI_STOPPED)
		return err_set(err, ERR_CONFLICT, "cannot start a container that has stopped");
	if (status != OCI_CREATED)
		return err_set(err, ERR_CONFLICT, "cannot start an already running container");
	if ((r = kept_config(s, a, &config, err)) < 0)
		return r;
	CLEANUP(fd_closep) int fd = connect_start(s, err);
	if (fd < 0)
		return fd;
	struct attend attend = { .console_socket = -1, .seccomp = val_get(config, linux, seccomp), .state = s };
	r = attend_exec(&attend, fd, s->pid, err);
	(void)unlinkat(s->dir, "start.sock", 0);
	if (r < 0)
		return err_wrap(err, r, "unable to start container process");
	if ((r = run_hooks(s, val_get(config, hooks), A_poststart, OCI_RUNNING, err)) < 0) {
		/* It is not our child: its number may be another's by now. */
		CLEANUP(fd_closep) int process = state_pidfd(s, NULL);
		if (process >= 0)
			(void)pidfd_send_signal(process, SIGKILL, NULL, 0);
	}
	return r;
}

int oci_start(const char *root, const char *id, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct state s;
	int r = state_open(root, id, true, &a, &s, err);

	if (r == 0) {
		r = start(&s, &a, err);
		state_close(&s);
	}
	arena_done(&a);
	return r;
}

/* ---- the others ---- */

int oci_state(const char *root, const char *id, struct arena *a, struct oci_state *ret, struct err *err)
{
	struct state s;
	int r = state_open(root, id, false, a, &s, err);

	if (r < 0)
		return r;
	enum oci_status status = state_status(&s);
	*ret = (struct oci_state){ status, status == OCI_STOPPED ? 0 : s.pid, s.bundle, s.created, s.annotations };
	state_close(&s);
	return 0;
}

static int kill_all(const struct state *s, int signal, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *c = NULL;
	int r = cgroup_open(s->cgroup.p, &c, err);

	return r < 0 ? r : cgroup_kill(c, signal, err);
}

static int thaw(const struct state *s, struct err *err)
{
	CLEANUP(cgroup_freep) struct cgroup *c = NULL;
	int r = cgroup_open(s->cgroup.p, &c, err);

	if (r == 0 && (r = cgroup_freeze(c, false, err)) == 0)
		(void)unlinkat(s->dir, "paused", 0);
	return r;
}

static int send_signal(const struct state *s, int signal, bool all, struct err *err)
{
	int r;

	/* Without a PID namespace, the others do not end with the first. */
	if (all || (signal == SIGKILL && !s->own_pids)) {
		r = kill_all(s, signal, err);
		if (all || r < 0)
			return all ? r : err_wrap(err, r, "killing all");
	}
	CLEANUP(fd_closep) int fd = state_pidfd(s, err);
	if (fd < 0)
		return signal == SIGKILL && !s->own_pids ? 0 : fd;
	if (pidfd_send_signal(fd, signal, NULL, 0) < 0)
		return errno == ESRCH ? err_set(err, ERR_CONFLICT, "os: process already finished") : err_sys(err, errno, "sending a signal");
	return signal == SIGKILL && state_status(s) == OCI_PAUSED ? thaw(s, err) : 0;
}

int oci_kill(const char *root, const char *id, int signal, bool all, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct state s;
	int r = state_open(root, id, false, &a, &s, err);

	if (r == 0) {
		if (!all && state_status(&s) == OCI_STOPPED)
			r = err_set(err, ERR_CONFLICT, "container not running");
		else
			r = send_signal(&s, signal, all, err);
		state_close(&s);
	}
	arena_done(&a);
	return r;
}

static int end_process(const struct state *s, struct err *err)
{
	CLEANUP(fd_closep) int fd = state_pidfd(s, err);
	struct pollfd p = { fd, POLLIN, 0 };

	if (fd < 0)
		return 0;
	if (pidfd_send_signal(fd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(err, errno, "killing the container");
	if (faccessat(s->dir, "paused", F_OK, 0) == 0)
		(void)thaw(s, NULL);
	return poll(&p, 1, GONE_TIMEOUT_MS) > 0 ? 0 : err_set(err, ERR_TIMEOUT, "container still running");
}

static int delete(const char *root, struct state *s, bool force, struct arena *a, struct err *err)
{
	enum oci_status status = state_status(s);
	CLEANUP(cgroup_freep) struct cgroup *c = NULL;
	struct val config = VAL_EMPTY;
	int r;

	if (!force && status != OCI_STOPPED && status != OCI_CREATED)
		return err_set(err, ERR_CONFLICT, "cannot delete container " STR_FMT " that is not stopped: %s", STR_ARG(s->id),
			       state_status_name(status));
	if ((r = end_process(s, err)) < 0)
		return r;
	r = cgroup_open(s->cgroup.p, &c, err);
	if (r == 0 && ((r = cgroup_kill(c, SIGKILL, err)) < 0 || (r = cgroup_remove(c, err)) < 0))
		return r;
	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	if (kept_config(s, a, &config, NULL) == 0 &&
	    run_hooks(s, val_get(config, hooks), A_poststop, OCI_STOPPED, err) < 0)
		log_warn("poststop hooks failed; ignoring", KV("error", err));
	return state_remove(root, s, err);
}

int oci_delete(const char *root, const char *id, bool force, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct state s;
	int r = state_open(root, id, true, &a, &s, err);

	if (r == 0) {
		r = delete(root, &s, force, &a, err);
		state_close(&s);
	} else if (r == -ERR_NOT_FOUND && force && state_check_id(id, NULL) == 0) {
		/* What a create left that was killed has no state, but the id is taken. */
		CLEANUP(fd_closep) int tree = path_open_tree(root, NULL);
		r = tree < 0 ? 0 : path_remove(tree, id, err);
		r = r == -ERR_NOT_FOUND ? 0 : r;
	}
	arena_done(&a);
	return r;
}

static int pause_locked(const struct state *s, bool pause, struct err *err)
{
	enum oci_status status = state_status(s);
	CLEANUP(cgroup_freep) struct cgroup *c = NULL;
	int r;

	if (pause && status != OCI_RUNNING && status != OCI_CREATED)
		return err_set(err, ERR_CONFLICT, status == OCI_PAUSED ? "container paused" : "container not running");
	if (!pause && status != OCI_PAUSED)
		return err_set(err, ERR_CONFLICT, "container not paused");
	if (!pause)
		return thaw(s, err);
	if ((r = cgroup_open(s->cgroup.p, &c, err)) < 0 || (r = cgroup_freeze(c, true, err)) < 0)
		return r;
	CLEANUP(fd_closep) int mark = openat(s->dir, "paused", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return mark < 0 ? err_sys(err, errno, "paused") : 0;
}

int oci_pause(const char *root, const char *id, bool pause, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct state s;
	int r = state_open(root, id, true, &a, &s, err);

	if (r == 0) {
		r = pause_locked(&s, pause, err);
		state_close(&s);
	}
	arena_done(&a);
	return r;
}

int oci_update(const char *root, const char *id, struct val resources, struct err *err)
{
	struct arena a = ARENA_INIT;
	struct state s;
	int r = state_open(root, id, true, &a, &s, err);

	if (r == 0) {
		CLEANUP(cgroup_freep) struct cgroup *c = NULL;
		if ((r = cgroup_open(s.cgroup.p, &c, err)) == 0)
			r = cgroup_limit(c, resources, err);
		state_close(&s);
	}
	arena_done(&a);
	return r;
}
