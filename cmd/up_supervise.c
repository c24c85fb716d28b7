/*
 * The children. Each has a fiber that starts it, reads its standard output (one line, when it is ready) and waits for its end. A child whose
 * supervisor is gone stops by itself (serve.h), so that the next supervisor finds nobody in its way; containers run on through all of that.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "cmd/serve.h"
#include "cmd/up.h"
#include "net/http.h"

enum { BACK_OFF_FIRST_MS = 100, BACK_OFF_MAX_MS = 10 * 1000, STEADY_MS = 60 * 1000, STOP_MS = 20 * 1000, LINE_MAX_BYTES = 512,
       ARGUMENTS_MAX = 96, TAIL_BYTES = 600, LISTEN_FD = 3 };

struct child {
	struct supervisor *supervisor;
	const char *name, *log, *pid_file;
	const char *argv[ARGUMENTS_MAX];
	size_t argc;
	struct process *process;      /* NULL: it does not run */
	struct fiber *fiber;
	bool listens;                 /* it is given the API server's socket */
	bool ready, failed, ended;    /* failed: it has ended before it was ready; ended: for good */
};

struct supervisor {
	const struct up_cluster *cluster;
	struct child children[UP_N_PARTS];
	struct fiber_cond changed;
	const char **env;
	bool stopping;
};

/* ---- what they are told ---- */

static void add(struct child *x, const char *flag)
{
	if (x->argc + 1 < ARGUMENTS_MAX)
		x->argv[x->argc++] = flag;
}

static void add_text(struct child *x, const char *flag, const char *text)
{
	struct arena *a = x->supervisor->cluster->arena;

	if (text)
		add(x, arena_printf(a, "--%s=%s", flag, text).p);
}

static void add_number(struct child *x, const char *flag, int64_t number)
{
	add(x, arena_printf(x->supervisor->cluster->arena, "--%s=%" PRId64, flag, number).p);
}

static void add_list(struct child *x, const char *flag, const char *const *items)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	for (size_t i = 0; items[i]; i++)
		buf_addf(&b, "%s%s", i ? "," : "", items[i]);
	if (b.n)
		add_text(x, flag, arena_str(x->supervisor->cluster->arena, buf_str(&b)).p);
}

/* Last, so that they win. */
static void pass_on(struct child *x, const char *const *args)
{
	for (; *args; args++)
		add(x, arena_printf(x->supervisor->cluster->arena, "%s%s", str_starts(str_of(*args), STR("--")) ? "" : "--", *args).p);
}

static void tell_control_plane(struct child *x)
{
	const struct up_cluster *c = x->supervisor->cluster;
	const struct up_settings *s = &c->settings;

	x->listens = true;
	add(x, c->program);
	add(x, "control-plane");
	add_number(x, "listen-fd", LISTEN_FD);
	if (c->uid)
		add_number(x, "run-as", c->uid);
	add_text(x, "data-dir", c->control_dir);
	add_text(x, "bind-address", s->bind_address);
	add_text(x, "advertise-address", s->advertise_address);
	add_number(x, "secure-port", s->secure_port);
	add_text(x, "service-cluster-ip-range", s->service_cidr);
	add_text(x, "cluster-cidr", s->pod_cidr);
	add(x, "--allocate-node-cidrs");
	add(x, "--allow-privileged");
	add(x, "--enable-bootstrap-token-auth");
	add(x, "--controllers=*,bootstrapsigner,tokencleaner"); /* which Kubernetes has off unless asked */
	add(x, "--enable-admission-plugins=NodeRestriction");
	add(x, "--kubelet-preferred-address-types=InternalIP,Hostname");
	if (!s->etcd_servers[0])
		add(x, "--leader-elect=false"); /* a store of one process has no second leader; leases would be written every second for nobody */
	add_list(x, "etcd-servers", up_nearest_first(c->arena, s->etcd_servers));
	add_text(x, "etcd-cafile", s->etcd_ca);
	add_text(x, "etcd-certfile", s->etcd_cert);
	add_text(x, "etcd-keyfile", s->etcd_key);
	add_number(x, "v", s->verbosity);
	pass_on(x, s->control_plane_args);
}

static const char *below(const struct up_cluster *c, const char *folder, const char *name) { return arena_printf(c->arena, "%s/%s", folder, name).p; }

static void tell_node(struct child *x)
{
	const struct up_cluster *c = x->supervisor->cluster;
	const struct up_settings *s = &c->settings;

	add(x, c->program);
	add(x, "kubelet");
	add_text(x, "kubeconfig", c->node_conf);
	add_text(x, "config", c->kubelet_config);
	add_text(x, "hostname-override", s->node_name);
	add_text(x, "node-ip", c->node_ip);
	add_number(x, "port", s->kubelet_port);
	add(x, "--healthz-port=0");
	add_text(x, "root-dir", below(c, c->node_dir, "kubelet"));
	add_text(x, "cert-dir", below(c, c->node_dir, "pki"));
	add_text(x, "client-ca-file", c->node_ca);
	if (s->server)
		add_text(x, "bootstrap-kubeconfig", c->bootstrap_conf);
	add_text(x, "cgroup-root", c->cgroup);
	add(x, "--enforce-node-allocatable=");
	add(x, "--fail-swap-on=false");
	add(x, "--fail-cgroupv1=false");
	add(x, "--rotate-certificates");
	add_text(x, "container-runtime-endpoint", s->container_runtime_endpoint);
	add_text(x, "runtime-root", below(c, c->node_dir, "runtime"));
	add_text(x, "runtime-state", below(c, c->run_dir, "runtime"));
	add_text(x, "runtime-cni-conf-dir", below(c, c->node_dir, "net.d"));
	add(x, "--pod-routes");
	add_text(x, "runtime-registry-config", s->registry_config);
	add_text(x, "api-servers-file", up_has_several(c) ? c->servers_file : NULL);
	add_number(x, "v", s->verbosity);
	pass_on(x, s->kubelet_args);
}

/* ---- one life of a child ---- */

/* Where it writes; an old log that has become long makes place. */
static int open_log(const char *path, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct stat st;

	if (stat(path, &st) == 0 && st.st_size > UP_LOG_MAX)
		(void)rename(path, arena_printf(&a, "%s.1", path).p);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	return fd < 0 ? err_sys(err, errno, "opening %s", path) : fd;
}

/*
 * The API server's socket listens before there is an API server: who calls it from then on, above all the node, waits until it answers
 * instead of being refused and calling again later. It is gone with the process. This also lets a user without privileges serve at 443.
 */
static int open_socket(const struct child *x, struct err *err)
{
	const struct up_settings *s = &x->supervisor->cluster->settings;

	return x->listens ? http_listen_tcp(s->bind_address, (uint16_t)s->secure_port, err) : -1;
}

static int spawn(struct child *x, int out, struct err *err)
{
	CLEANUP(fd_closep) int log = open_log(x->log, err), listening = log < 0 ? -1 : open_socket(x, err);

	if (log < 0 || (x->listens && listening < 0))
		return log < 0 ? log : listening;
	return process_spawn(&(struct process_spec){ .argv = x->argv, .env = x->supervisor->env, .fds = { -1, out, log, [LISTEN_FD] = listening },
						     .n_fds = x->listens ? LISTEN_FD + 1 : LISTEN_FD }, &x->process, err);
}

static int start(struct child *x, int *ret_out, struct err *err)
{
	int pipe_fds[2], r;

	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(err, errno, "pipe");
	r = spawn(x, pipe_fds[1], err);
	(void)close(pipe_fds[1]);
	if (r < 0) {
		(void)close(pipe_fds[0]);
		return r;
	}
	*ret_out = pipe_fds[0];
	(void)file_replace(x->pid_file, arena_printf(x->supervisor->cluster->arena, "%d\n", process_pid(x->process)), 0644, NULL); /* for status */
	return 0;
}

/* (suspends) Until it closes its output, which is when it ends. */
static int listen_to(struct child *x, int fd, struct err *err)
{
	char text[LINE_MAX_BYTES];
	ssize_t n;

	while ((n = fiber_read(fd, text, sizeof(text), err)) > 0)
		if (str_find((str){ text, (size_t)n }, STR("ready")) >= 0) {
			x->ready = true;
			fiber_cond_broadcast(&x->supervisor->changed);
		}
	return (int)n;
}

static int live(struct child *x, struct process_status *ret, struct err *err)
{
	int out = -1, r = start(x, &out, err);

	if (r < 0)
		return r;
	r = listen_to(x, out, err);
	(void)close(out);
	return r < 0 ? r : process_wait(x->process, ret, err);
}

static int run_child(void *arg)
{
	struct child *x = arg;
	int64_t wait_ms = BACK_OFF_FIRST_MS;

	for (;;) {
		struct process_status status = { 0 };
		struct err err = ERR_INIT;
		int64_t began = clock_now_ns();
		int r = live(x, &status, &err);

		if (r == -ERR_CANCELED || x->supervisor->stopping) {
			x->ended = true;
			fiber_cond_broadcast(&x->supervisor->changed);
			return 0;
		}
		process_free(TAKE(x->process));
		x->failed |= !x->ready;
		x->ready = false;
		fiber_cond_broadcast(&x->supervisor->changed);
		if (clock_now_ns() - began > (int64_t)STEADY_MS * NS_PER_MS)
			wait_ms = BACK_OFF_FIRST_MS;
		if (r < 0)
			log_error("a part could not be started", KV("part", x->name), KV("error", &err));
		else
			log_warn("a part has ended and is started again", KV("part", x->name), KV("exitCode", (int64_t)status.exit_code), KV("afterMs", wait_ms));
		if (fiber_sleep_ms((unsigned)wait_ms, &err) < 0)
			return 0;
		wait_ms = MIN(wait_ms * 2, BACK_OFF_MAX_MS);
	}
}

/* ---- all of them ---- */

static void prepare_child(struct supervisor *s, enum up_part part, const char *name, void (*tell)(struct child *))
{
	struct child *x = &s->children[part];

	*x = (struct child){ .supervisor = s, .name = name };
	x->log = arena_printf(s->cluster->arena, "%s/%s.log", s->cluster->log_dir, name).p;
	x->pid_file = arena_printf(s->cluster->arena, "%s/%s.pid", s->cluster->run_dir, name).p;
	tell(x);
	x->argv[x->argc] = NULL;
}

/* Ours, and who their supervisor is. */
static const char **child_environment(struct arena *a)
{
	size_t n = 0;

	while (environ[n])
		n++;
	const char **env = ARENA_ARRAY(a, const char *, n + 2);
	memcpy(env, environ, n * sizeof(*env));
	env[n] = arena_printf(a, SERVE_SUPERVISOR "=%d", getpid()).p;
	env[n + 1] = NULL;
	return env;
}

int supervisor_start(const struct up_cluster *c, struct supervisor **ret, struct err *err)
{
	struct supervisor *s = mem_zalloc(sizeof(*s));
	int r = 0;

	s->cluster = c;
	s->env = child_environment(c->arena);
	fiber_cond_init(&s->changed, "a part of the cluster");
	prepare_child(s, UP_CONTROL_PLANE, "control-plane", tell_control_plane);
	prepare_child(s, UP_NODE, "node", tell_node);
	for (size_t i = c->settings.server ? UP_NODE : 0; r == 0 && i < UP_N_PARTS; i++)
		r = fiber_spawn(run_child, &s->children[i], &s->children[i].fiber, err, "%s", s->children[i].name);
	if (r < 0)
		supervisor_stop(s);
	else
		*ret = s;
	return r;
}

/* What a child said last, for those who wait for it. */
static str last_words(struct arena *a, const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(2 * UP_LOG_MAX);

	if (file_read(path, &text, NULL) < 0 || !text.n)
		return STR("it said nothing");
	str all = buf_str(&text);
	return arena_str(a, all.n > TAIL_BYTES ? (str){ all.p + all.n - TAIL_BYTES, TAIL_BYTES } : all);
}

int supervisor_wait_ready(struct supervisor *s, enum up_part part, struct err *err)
{
	struct child *x = &s->children[part];

	while (!x->ready) {
		int r = fiber_cond_wait(&s->changed, err);
		if (r < 0)
			return r;
		if (x->failed && !x->ready) {
			CLEANUP(arena_done) struct arena a = ARENA_INIT;
			str words = last_words(&a, x->log);
			return err_set(err, ERR_UNAVAILABLE, "the %s did not start; %s ends with:\n" STR_FMT, x->name, x->log, STR_ARG(words));
		}
	}
	return 0;
}

/* (suspends) A polite request first; what does not follow is killed. */
static void stop_child(struct child *x)
{
	SHIELD_SCOPE();
	DEADLINE_SCOPE(STOP_MS);

	/* Once: the second one ends a process at once (serve.h). */
	if (x->process && process_kill(x->process, SIGTERM, NULL) == 0)
		while (!x->ended && fiber_cond_wait(&x->supervisor->changed, NULL) == 0)
			;
	fiber_stopp(&x->fiber); /* on a machine that has joined, one part has none */
	process_free(TAKE(x->process));
}

void supervisor_stop(struct supervisor *s)
{
	if (!s)
		return;
	s->stopping = true;
	stop_child(&s->children[UP_NODE]);
	stop_child(&s->children[UP_CONTROL_PLANE]);
	free(s);
}

void supervisor_stopp(struct supervisor **s) { supervisor_stop(*s); }

/* ---- one supervisor per cluster ---- */

int up_lock(const struct up_cluster *c, struct err *err)
{
	/* For us alone: who can open it can lock it, too, and then `c8s down` would take the number in it for a supervisor's. */
	int fd = open(c->lock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(err, errno, "opening %s", c->lock_file);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = up_check_stopped(c, err);
		(void)close(fd);
		return r < 0 ? r : err_set(err, ERR_CONFLICT, "the cluster in %s has just been stopped; try again", c->settings.data_dir);
	}
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", getpid()) < 0)
		return err_sys(err, errno, "writing %s", c->lock_file);
	return 0; /* the lock goes with the process */
}

int up_check_stopped(const struct up_cluster *c, struct err *err)
{
	const char *dir = c->settings.data_dir;
	pid_t pid = 0;

	if (!up_running(c, &pid))
		return 0;
	return err_set(err, ERR_CONFLICT, "the cluster in %s runs already (pid %d); 'c8s status --data-dir %s' shows it, 'c8s down --data-dir %s' stops it", dir, pid, dir, dir);
}

bool up_running(const struct up_cluster *c, pid_t *ret)
{
	char text[32] = "";
	int fd = open(c->lock_file, O_RDONLY | O_CLOEXEC);
	bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;

	if (held && read(fd, text, sizeof(text) - 1) > 0)
		*ret = (pid_t)strtol(text, NULL, 10);
	if (fd >= 0)
		(void)close(fd);
	return held;
}
