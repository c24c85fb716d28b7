/* Starting, stopping and removing containers, and what follows when one has ended. */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "oci/cgroup.h"
#include "runtime/config_json.h"
#include "runtime/events.h"
#include "runtime/signals.h"
#include "runtime/store.h"

enum { EXIT_START_ERROR = 128, EXIT_UNKNOWN = 255, CLEAN_MS = 30000, CONFIG_MAX = 16 << 20 };

static void set_text(char **to, str text)
{
	free(*to);
	*to = text.n ? mem_alloc(text.n + 1) : NULL;
	if (!text.n)
		return;
	memcpy(*to, text.p, text.n);
	(*to)[text.n] = '\0';
}

static struct val question(struct container *c, struct arena *a, const char *op)
{
	return OBJECT(a, F(op, VAL_STR(str_of(op))), F(id, VAL_STR(str_of(c->id))));
}

static int ask_kill(struct container *c, struct arena *a, int signal, bool all, struct err *err)
{
	struct val q = OBJECT(a, F(op, VAL_LIT("kill")), F(id, VAL_STR(str_of(c->id))), F(signal, val_of_int(signal)),
			      F(all, val_of_bool(all)));

	return sandbox_ask(c->sandbox, a, q, NULL, NULL, NULL, err);
}

/* ---- the end ---- */

/* Nobody looks after it any more: what is left of it goes. */
static void clear_cgroup(struct container *c, struct arena *a)
{
	CLEANUP(cgroup_freep) struct cgroup *g = NULL;
	struct err err = ERR_INIT;

	if (cgroup_open(arena_str(a, val_str(container_record(c), cgroup)).p, &g, NULL) < 0)
		return;
	(void)cgroup_kill(g, SIGKILL, NULL);
	if (cgroup_remove(g, &err) < 0 && err.code != ERR_NOT_FOUND)
		log_warn("the cgroup of a container cannot be removed", KV("container", c->id), KV("err", &err));
}

static int after_end(void *arg)
{
	CLEANUP(container_unrefp) struct container *c = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	DEADLINE_SCOPE(CLEAN_MS);

	if (c->sandbox->monitor) {
		if (val_bool(container_record(c), killAll))
			(void)ask_kill(c, &a, SIGKILL, true, NULL);
		if (sandbox_ask_delete(c->sandbox, &a, c->id, &err) < 0)
			log_warn("a container that ended cannot be deleted", KV("container", c->id), KV("err", &err));
	} else {
		clear_cgroup(c, &a);
	}
	if (!c->removing && container_save(c, &err) < 0)
		log_warn("the record of a container cannot be written", KV("container", c->id), KV("err", &err));
	c->cleared = true;
	fiber_cond_broadcast(&c->changed);
	exec_container_ended(c);
	events_tell_container(c, EVENT_STOPPED);
	return 0;
}

void container_ended(struct container *c, int exit_code, int64_t finished_ns, bool oom_killed)
{
	if (c->finished_ns)
		return;
	c->exit_code = exit_code;
	c->finished_ns = finished_ns ? finished_ns : clock_wall_ns();
	c->pid = 0;
	c->unknown = false;
	if (oom_killed)
		set_text(&c->reason, STR("OOMKilled"));
	if (fiber_group_spawn(&c->runtime->work, after_end, container_ref(c), NULL, "container ended") < 0) {
		container_unref(c);
		c->cleared = true;
	}
	fiber_cond_broadcast(&c->changed);
}

void container_start_lost(struct container *c)
{
	set_text(&c->reason, STR("StartError"));
	set_text(&c->message, STR("the runtime was killed while it started the container"));
	container_ended(c, EXIT_START_ERROR, 0, false);
}

bool container_ended_before(struct container *c, const char *folder)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct monitor_exit e;

	if (monitor_read_exit(folder, str_of(c->id), &a, &e, NULL) < 0)
		return false;
	container_ended(c, e.exit_code, e.finished_ns, e.oom_killed);
	return true;
}

void container_lost(struct container *c, const char *folder)
{
	if (c->finished_ns || (folder && container_ended_before(c, folder)))
		return;
	set_text(&c->reason, STR("Unknown"));
	set_text(&c->message, STR("the monitor of its pod has ended before it"));
	container_ended(c, EXIT_UNKNOWN, 0, false);
}

/* ---- starting ---- */

static int check_start(struct container *c, struct err *err)
{
	enum container_state state = container_state(c);

	if (state != CONTAINER_CREATED)
		return err_set(err, ERR_INTERNAL, "container is in %s state", container_state_name(state));
	if (c->removing)
		return err_set(err, ERR_INTERNAL, "container is in removing state, can't be started");
	if (c->starting_ns)
		return err_set(err, ERR_INTERNAL, "container is already in starting state");
	return 0;
}

static int make_log_folder(struct arena *a, str path, struct err *err)
{
	ptrdiff_t slash = str_rchr(path, '/');

	return slash > 0 ? file_make_dirs(arena_str(a, str_head(path, (size_t)slash)).p, 0755, err) : 0;
}

/*
 * That it is started outlives a loss of power before it is: what must not run twice does not. Its record and the pod's are written
 * together, while its process is prepared.
 */
struct keeping {
	struct container *container;
	struct err err;
};

static int keep_sandbox(void *arg)
{
	struct keeping *k = arg;
	struct sandbox *s = k->container->sandbox;
	int r = s->kept ? 0 : sandbox_save(s, &k->err);

	s->kept = r == 0;
	return r;
}

static int keep_container(void *arg)
{
	struct keeping *k = arg;

	return container_save(k->container, &k->err);
}

static int wait_kept(struct fiber **keeper, const struct keeping *k, struct err *err)
{
	int kept, r = fiber_join(*keeper, &kept, err);

	if (r < 0)
		return r;
	*keeper = NULL;
	if (kept < 0 && err)
		*err = k->err;
	return kept;
}

static int start(struct container *c, struct arena *a, struct err *err)
{
	struct sandbox *s = c->sandbox;
	struct val config = container_config(c), answer;
	str log = val_str(container_record(c), logPath);
	struct keeping pod = { c, ERR_INIT }, own = { c, ERR_INIT };
	CLEANUP(fiber_stopp) struct fiber *pod_keeper = NULL;
	CLEANUP(fiber_stopp) struct fiber *own_keeper = NULL;
	int r;

	if (s->state != SANDBOX_READY)
		return err_set(err, ERR_INTERNAL, "sandbox container \"%s\" is not running", s->id);
	if ((r = make_log_folder(a, log, err)) < 0)
		return err_wrap(err, r, "failed to create container loggers");
	if ((r = fiber_spawn(keep_sandbox, &pod, &pod_keeper, err, "record of a pod")) < 0 ||
	    (r = fiber_spawn(keep_container, &own, &own_keeper, err, "record of a container")) < 0)
		return r;
	r = sandbox_ask(s, a, OBJECT(a, F(op, VAL_LIT("create")), F(id, VAL_STR(str_of(c->id))),
				     F(bundle, VAL_STR(str_of(container_folder(c, a)))), F(log, VAL_STR(log)),
				     F(terminal, val_of_bool(val_bool(config, tty))), F(stdin, val_of_bool(val_bool(config, stdin))),
				     F(stdinOnce, val_of_bool(val_bool(config, stdinOnce))),
				     F(containerLogMaxSize, val_of_int(s->runtime->o.log_max_size)),
				     F(containerLogMaxFiles, val_of_int(s->runtime->o.log_max_files))),
			NULL, NULL, &answer, err);
	if (r < 0)
		return err_wrap(err, r, "failed to create containerd task");
	c->pid = (pid_t)val_int(answer, pid);
	if ((r = wait_kept(&pod_keeper, &pod, err)) < 0 || (r = wait_kept(&own_keeper, &own, err)) < 0)
		return r;
	r = sandbox_ask(s, a, question(c, a, "start"), NULL, NULL, NULL, err);
	if (r < 0)
		return err_wrap(err, r, "failed to start containerd task \"%s\"", c->id);
	c->started_ns = c->starting_ns;
	if (c->finished_ns) /* faster than the answer */
		c->pid = 0;
	return 0;
}

/* As containerd tells of one that never ran. */
static void start_failed(struct container *c, struct arena *a, const struct err *why)
{
	SHIELD_SCOPE();
	DEADLINE_SCOPE(CLEAN_MS);

	(void)ask_kill(c, a, SIGKILL, true, NULL);
	(void)sandbox_ask_delete(c->sandbox, a, c->id, NULL);
	c->pid = 0;
	c->finished_ns = clock_wall_ns();
	c->exit_code = EXIT_START_ERROR;
	c->cleared = true;
	set_text(&c->reason, STR("StartError"));
	set_text(&c->message, err_str(why));
	c->starting_ns = 0; /* it never was */
	(void)container_save(c, NULL);
}

int container_start(struct container *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = check_start(c, err);

	if (r < 0)
		return err_wrap(err, r, "failed to set starting state for container \"%s\"", c->id);
	c->starting_ns = clock_wall_ns();
	if ((r = start(c, &a, err)) < 0)
		start_failed(c, &a, err);
	c->starting_ns = 0;
	fiber_cond_broadcast(&c->changed);
	if (r == 0)
		events_tell_container(c, EVENT_STARTED);
	return r;
}

/* ---- stopping ---- */

/* (suspends) Until it has ended and is cleared. */
static int wait_stop(struct container *c, struct err *err)
{
	int r = 0;

	while (r == 0 && !(c->finished_ns && c->cleared))
		r = fiber_cond_wait(&c->changed, err);
	return r;
}

static int stop_signal(const struct container *c)
{
	str wanted = val_str(container_config(c), stopSignal), of_image = val_str(container_record(c), stopSignal);
	int n = -1;

	if (wanted.n && !str_eq(wanted, STR("RUNTIME_DEFAULT")))
		n = signal_parse(wanted);
	else if (of_image.n)
		n = signal_parse(of_image);
	return n > 0 ? n : SIGTERM;
}

/* The signal, once however many ask; the monitor knows nothing: it is gone. */
static int send(struct container *c, struct arena *a, int signal, struct err *err)
{
	int r = ask_kill(c, a, signal, false, err);

	if (r == -ERR_UNAVAILABLE || r == -ERR_GONE) {
		clear_cgroup(c, a);
		container_lost(c, NULL);
		return 0;
	}
	return r == -ERR_NOT_FOUND || r == -ERR_CONFLICT ? 0 : r;
}

/* 0: it has ended; -ERR_TIMEOUT: it has not, within the time. */
static int ask_politely(struct container *c, struct arena *a, int64_t timeout_s, struct err *err)
{
	int r = 0;

	if (!c->signaled && (r = send(c, a, stop_signal(c), err)) < 0)
		return err_wrap(err, r, "failed to stop container \"%s\"", c->id);
	c->signaled = true;
	DEADLINE_SCOPE(MIN(timeout_s, INT64_MAX / 2000) * 1000);
	return wait_stop(c, err);
}

int container_stop(struct container *c, int64_t timeout_s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	enum container_state state = container_state(c);
	int r;

	if (state == CONTAINER_EXITED)
		return wait_stop(c, err);
	if (state != CONTAINER_RUNNING && state != CONTAINER_UNKNOWN)
		return 0;
	if (timeout_s > 0) {
		r = ask_politely(c, &a, timeout_s, err);
		if (r != -ERR_TIMEOUT)
			return r;
		if ((r = fiber_check(err)) < 0) /* the caller's own time is over */
			return r;
	}
	if ((r = send(c, &a, SIGKILL, err)) < 0)
		return err_wrap(err, r, "failed to kill container \"%s\"", c->id);
	if ((r = wait_stop(c, err)) < 0)
		return err_wrap(err, r, "an error occurs during waiting for container \"%s\" to be killed", c->id);
	return 0;
}

int container_remove(struct container *c, struct err *err)
{
	int r = container_stop(c, 0, err);

	if (r < 0)
		return err_wrap(err, r, "failed to forcibly stop container \"%s\"", c->id);
	if (c->starting_ns)
		return err_set(err, ERR_INTERNAL, "failed to set removing state for container \"%s\": container is in starting state,"
			       " can't be removed", c->id);
	if (c->removing)
		return err_set(err, ERR_INTERNAL, "failed to set removing state for container \"%s\": container is already in removing"
			       " state", c->id);
	c->removing = true;
	if ((r = container_clear(c, err)) < 0) {
		c->removing = false;
		return err_wrap(err, r, "failed to remove container \"%s\"", c->id);
	}
	runtime_name_release(c->runtime, val_str(container_record(c), name));
	container_forget(c);
	events_tell_container(c, EVENT_DELETED);
	return 0;
}

/* ---- changing ---- */

/* What the update does not mention stays. */
static struct val merge(struct arena *a, struct val old, struct val new)
{
	VAL_EACH_MEMBER(m, new)
		old = val_put(a, old, m->key, m->val);
	return old;
}

/* One that does not run yet gets them when it starts. */
static int rewrite_config(struct container *c, struct arena *a, struct val resources, struct err *err)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT(CONFIG_MAX), out = BUF_INIT(CONFIG_MAX);
	const char *path = runtime_text(a, "%s/config.json", container_folder(c, a));
	struct json_decode_options free_tree = { 0 };
	struct json_encode_options plain = { .plain = true };
	struct val config;
	int r = file_read(path, &in, err);

	if (r < 0 || (r = json_decode(a, buf_str(&in), &free_tree, &config, err)) < 0)
		return r;
	struct val now = merge(a, val_get(config, linux, resources), config_resources(a, resources));
	if ((r = json_encode(&out, val_with(a, config, now, linux, resources), &plain, err)) < 0)
		return r;
	return store_write_file(path, buf_str(&out), 0600, err);
}

int container_update(struct container *c, struct val resources, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	/* a copy: another update may replace what the container has while this one waits */
	struct val merged = val_copy(&a, merge(&a, container_resources(c), resources));
	int r;

	if (c->removing)
		return err_set(err, ERR_INTERNAL, "container \"%s\" is in removing state", c->id);
	if (container_state(c) == CONTAINER_RUNNING) {
		struct val q = OBJECT(&a, F(op, VAL_LIT("update")), F(id, VAL_STR(str_of(c->id))),
				      F(resources, config_resources(&a, merged)));
		r = sandbox_ask(c->sandbox, &a, q, NULL, NULL, NULL, err);
	} else {
		r = rewrite_config(c, &a, merged, err);
	}
	if (r < 0)
		return err_wrap(err, r, "failed to update resources");
	struct frozen *old = c->resources;
	c->resources = val_freeze(merged);
	frozen_unref(old);
	return container_save(c, err);
}

int container_reopen_log(struct container *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (container_state(c) != CONTAINER_RUNNING)
		return err_set(err, ERR_INTERNAL, "container is not running");
	return sandbox_ask(c->sandbox, &a, question(c, &a, "reopen"), NULL, NULL, NULL, err);
}

int container_resize(struct container *c, unsigned width, unsigned height, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	return sandbox_ask(c->sandbox, &a, OBJECT(&a, F(op, VAL_LIT("resize")), F(id, VAL_STR(str_of(c->id))), F(exec, VAL_LIT("")),
						  F(width, val_of_int(width)), F(height, val_of_int(height))),
			   NULL, NULL, NULL, err);
}

int container_attach(struct container *c, int *ret_socket, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct monitor_fds out = { .n = 0 };

	if (container_state(c) != CONTAINER_RUNNING)
		return err_set(err, ERR_INTERNAL, "container is in %s state", container_state_name(container_state(c)));
	int r = sandbox_ask(c->sandbox, &a, question(c, &a, "attach"), NULL, &out, NULL, err);
	if (r < 0)
		return r;
	if (out.n != 1)
		return err_set(err, ERR_INTERNAL, "the monitor gave no streams of container %s", c->id);
	*ret_socket = out.fd[0];
	return 0;
}
