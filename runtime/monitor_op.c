/*
 * Connections. Questions of one are answered one after the other; while a job works on one, nothing more is read from that connection.
 * A connection that does not read its answers and events is closed; its owner comes back and asks for the state.
 */
#include "runtime/monitor_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { ID_MAX = 128, ACCEPT_RETRY_MS = 200 };

struct conn {
	struct list link;
	struct source source;
	struct list packets;          /* that are still to be sent */
	size_t n_packets;
	bool follows, busy;
};

struct packet {
	struct list link;
	struct monitor_fds fds;
	size_t n;
	char bytes[];
};

static void packet_free(struct packet *p)
{
	list_remove(&p->link);
	monitor_fds_done(&p->fds);
	free(p);
}

static void conn_free(struct conn *c)
{
	struct pod *pod = c->source.pod;

	LIST_EACH_SAFE(struct packet, p, &c->packets, link)
		packet_free(p);
	LIST_EACH(struct job, j, &pod->jobs, link)
		if (j->conn == c)
			j->conn = NULL;
	list_remove(&c->link);
	pod->n_conns--;
	source_close(&c->source);
	free(c);
}

static void conn_watch(struct conn *c)
{
	bool sending = !list_empty(&c->packets);

	source_watch(&c->source, sending ? EPOLLOUT : c->busy ? 0 : EPOLLIN);
}

/* False: it is gone. */
static bool conn_flush(struct conn *c)
{
	for (struct packet *p; (p = LIST_FIRST(struct packet, &c->packets, link));) {
		if (monitor_wire_send(c->source.fd, str_span(p->bytes, p->n), &p->fds) < 0) {
			if (errno == EAGAIN)
				break;
			conn_free(c);
			return false;
		}
		packet_free(p);
		c->n_packets--;
	}
	conn_watch(c);
	return true;
}

/* Takes the descriptors. False: the connection is gone. */
static bool conn_send(struct conn *c, struct val v, struct monitor_fds *fds)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MONITOR_PACKET_MAX);

	if (json_encode(&text, v, &(struct json_encode_options){ .plain = true }, NULL) < 0 || c->n_packets >= PACKETS_MAX) {
		log_warn("closing a connection that cannot be told", KV("waiting", c->n_packets));
		if (fds)
			monitor_fds_done(fds);
		conn_free(c);
		return false;
	}
	struct packet *p = mem_alloc(sizeof(*p) + text.n);
	*p = (struct packet){ .n = text.n };
	memcpy(p->bytes, text.p, text.n);
	if (fds) {
		p->fds = *fds;
		fds->n = 0;
	}
	list_add(&c->packets, &p->link);
	c->n_packets++;
	return conn_flush(c);
}

void conn_tell(struct pod *pod, struct val event)
{
	LIST_EACH_SAFE(struct conn, c, &pod->conns, link)
		if (c->follows)
			conn_send(c, event, NULL);
}

/* ---- containers ---- */

static char *copy_of(str s)
{
	char *p = mem_alloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

struct container *container_find(struct pod *pod, str id)
{
	LIST_EACH(struct container, c, &pod->containers, link)
		if (str_eq(str_of(c->id), id))
			return c;
	return NULL;
}

struct exec *exec_find(struct container *c, str id)
{
	LIST_EACH(struct exec, e, &c->execs, link)
		if (str_eq(str_of(e->id), id))
			return e;
	return NULL;
}

void exec_free(struct exec *e)
{
	list_remove(&e->link);
	e->container->n_execs--;
	if (e->master >= 0)
		close(e->master);
	free(e->id);
	free(e);
}

void container_free(struct container *c)
{
	LIST_EACH_SAFE(struct exec, e, &c->execs, link)
		exec_free(e);
	stdio_close(c);
	log_close(&c->log);
	list_remove(&c->link);
	free(c->id);
	free(c->bundle);
	free(c->cgroup);
	free(c);
}

const char *status_name(enum status s)
{
	static const char *const names[] = {
		[STATUS_CREATING] = "creating", [STATUS_CREATED] = "created", [STATUS_RUNNING] = "running",
		[STATUS_PAUSED] = "paused", [STATUS_STOPPED] = "stopped",
	};

	return names[s];
}

/* A name that may become that of a file. */
static bool id_is_good(str id)
{
	if (!id.n || id.n > ID_MAX || id.p[0] == '.')
		return false;
	for (size_t i = 0; i < id.n; i++) {
		char ch = id.p[i];
		bool word = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
		if (!word && ch != '-' && ch != '_' && ch != '.')
			return false;
	}
	return true;
}

/* ---- questions ---- */

struct question {
	struct pod *pod;
	struct conn *conn;
	struct container *container;  /* of "id"; NULL for those that need none */
	struct val v;
	struct arena *arena;
	struct monitor_fds *fds, *out;
	struct val answer;
	bool start_failed;            /* exit_started follows the answer */
};

/* A question's function answers 0 (with q->answer), or ANSWER_LATER when a job does, or an error. */
enum { ANSWER_LATER = 1 };

static int begin(struct question *q, struct job model, struct err *err)
{
	/* A job of delete, or of a create that fails, frees the container: none may know of it besides. */
	if (q->container->deleting || (model.op != JOB_CREATE && q->container->status == STATUS_CREATING))
		return err_set(err, ERR_CONFLICT, "container %s is being %s", q->container->id, q->container->deleting ? "deleted" : "created");
	model.pod = q->pod;
	model.container = q->container;
	model.conn = q->conn;
	if (model.op != JOB_CREATE && model.op != JOB_EXEC)
		model.stdio[0] = model.stdio[1] = model.stdio[2] = -1;
	int r = job_begin(&model, err);
	return r < 0 ? r : ANSWER_LATER;
}

static int op_create(struct question *q, struct err *err)
{
	str id = val_str(q->v, id), bundle = val_str(q->v, bundle);
	int stdio[3], r;

	if (!id_is_good(id) || !bundle.n || bundle.p[0] != '/')
		return err_set(err, ERR_INVALID, "create: id or bundle is missing or not good");
	if (container_find(q->pod, id))
		return err_set(err, ERR_ALREADY_EXISTS, "container " STR_FMT " exists already", STR_ARG(id));
	if (q->pod->ending)
		return err_set(err, ERR_CONFLICT, "the monitor is about to end");
	struct container *c = mem_zalloc(sizeof(*c));
	c->pod = q->pod;
	c->id = copy_of(id);
	c->bundle = copy_of(bundle);
	c->terminal = val_bool(q->v, terminal);
	c->stdin_once = val_bool(q->v, stdinOnce);
	list_init(&c->clients);
	list_init(&c->execs);
	list_add(&q->pod->containers, &c->link);
	q->container = c;
	unlinkat(q->pod->folder_fd, arena_printf(q->arena, "exits/%s", c->id).p, 0);
	r = stdio_open(c, val_bool(q->v, stdin), stdio, err);
	int64_t max_size = val_int(q->v, containerLogMaxSize), max_files = val_int(q->v, containerLogMaxFiles);
	int opened = log_open(&c->log, val_str(q->v, log), (uint64_t)MAX(max_size, 0), (size_t)MAX(max_files, 1), r < 0 ? NULL : err);
	if (r == 0)
		r = opened;
	if (r == 0)
		r = begin(q, (struct job){ .op = JOB_CREATE, .terminal = c->terminal, .stdio = { stdio[0], stdio[1], stdio[2] } }, err);
	for (int i = 0; i < 3; i++)
		if (stdio[i] >= 0)
			close(stdio[i]);
	if (r < 0)
		container_free(c);
	return r;
}

static int must_run(const struct container *c, struct err *err)
{
	if (c->status == STATUS_CREATING || c->status == STATUS_STOPPED)
		return err_set(err, ERR_CONFLICT, "container %s is not running: it is %s", c->id, status_name(c->status));
	return 0;
}

static int op_start(struct question *q, struct err *err)
{
	if (q->container->status != STATUS_CREATED || q->container->starting)
		return err_set(err, ERR_CONFLICT, "container %s cannot be started: it is %s", q->container->id, status_name(q->container->status));
	q->container->starting = true;
	int r = begin(q, (struct job){ .op = JOB_START }, err);
	q->start_failed = r < 0;
	return r;
}

static int op_kill(struct question *q, struct err *err)
{
	int64_t signal = val_int(q->v, signal);
	str exec = val_str(q->v, exec);
	bool all = val_bool(q->v, all);
	int r;

	if (signal < 1 || signal >= NSIG)
		return err_set(err, ERR_INVALID, "%lld is no signal", (long long)signal);
	if (exec.n) {
		struct exec *e = exec_find(q->container, exec);
		if (!e)
			return err_set(err, ERR_NOT_FOUND, "exec " STR_FMT " does not run", STR_ARG(exec));
		if (!e->pid) {
			e->signal = (int)signal;
			return 0;
		}
		/* A child that was not waited for: its number is its own. */
		return kill(e->pid, (int)signal) < 0 ? err_sys(err, errno, "kill") : 0;
	}
	if (!all && (r = must_run(q->container, err)) < 0)
		return r;
	return begin(q, (struct job){ .op = JOB_KILL, .signal = (int)signal, .all = all }, err);
}

static int op_delete(struct question *q, struct err *err)
{
	enum status s = q->container->status;

	if (s == STATUS_RUNNING || s == STATUS_PAUSED || q->container->jobs)
		return err_set(err, ERR_CONFLICT, "container %s cannot be deleted: it is %s", q->container->id,
			       q->container->jobs ? "being worked on" : status_name(s));
	int r = begin(q, (struct job){ .op = JOB_DELETE, .force = true }, err);
	q->container->deleting |= r >= 0;
	return r;
}

static int op_exec(struct question *q, struct err *err)
{
	str id = val_str(q->v, exec);
	bool terminal = val_bool(q->v, terminal);
	struct job job = { .op = JOB_EXEC, .terminal = terminal, .value = val_get(q->v, process), .stdio = { -1, -1, -1 } };
	int r = must_run(q->container, err);

	if (r < 0)
		return r;
	if (!id_is_good(id) || !val_is(job.value, VAL_OBJECT) || (!terminal && q->fds->n != 3))
		return err_set(err, ERR_INVALID, "exec: a name, a process, and three descriptors or a terminal are needed");
	if (exec_find(q->container, id))
		return err_set(err, ERR_ALREADY_EXISTS, "exec " STR_FMT " exists already", STR_ARG(id));
	if (q->container->n_execs >= EXECS_MAX)
		return err_set(err, ERR_TOO_MANY_REQUESTS, "container %s: too many run in it", q->container->id);
	if (!terminal)
		memcpy(job.stdio, q->fds->fd, sizeof(job.stdio));
	struct exec *e = mem_zalloc(sizeof(*e));
	e->container = q->container;
	e->id = copy_of(id);
	e->master = -1;
	list_add(&q->container->execs, &e->link);
	q->container->n_execs++;
	job.exec = e;
	if ((r = begin(q, job, err)) < 0)
		exec_free(e);
	return r;
}

static int op_attach(struct question *q, struct err *err)
{
	int fd, r = attach_new(q->container, &fd, err);

	if (r == 0)
		q->out->fd[q->out->n++] = fd;
	return r;
}

static int op_resize(struct question *q, struct err *err)
{
	str exec = val_str(q->v, exec);
	struct exec *e = exec.n ? exec_find(q->container, exec) : NULL;
	int64_t width = val_int(q->v, width), height = val_int(q->v, height);
	int fd = e ? e->master : exec.n ? -1 : q->container->terminal ? q->container->out.source.fd : -1;

	if (exec.n && !e)
		return err_set(err, ERR_NOT_FOUND, "exec " STR_FMT " does not run", STR_ARG(exec));
	if (fd < 0)
		return err_set(err, ERR_CONFLICT, "container %s: there is no terminal", q->container->id);
	if (width < 0 || width > UINT16_MAX || height < 0 || height > UINT16_MAX)
		return err_set(err, ERR_INVALID, "resize: that is no size of a terminal");
	struct winsize size = { .ws_col = (unsigned short)width, .ws_row = (unsigned short)height };
	return ioctl(fd, TIOCSWINSZ, &size) < 0 ? err_sys(err, errno, "resize") : 0;
}

static int op_reopen(struct question *q, struct err *err) { return log_reopen(&q->container->log, err); }

static int op_update(struct question *q, struct err *err)
{
	int r = must_run(q->container, err);

	return r < 0 ? r : begin(q, (struct job){ .op = JOB_UPDATE, .value = val_get(q->v, resources) }, err);
}

static int op_pause(struct question *q, struct err *err)
{
	int r = must_run(q->container, err);

	return r < 0 ? r : begin(q, (struct job){ .op = JOB_PAUSE }, err);
}

static int op_resume(struct question *q, struct err *err)
{
	int r = must_run(q->container, err);

	return r < 0 ? r : begin(q, (struct job){ .op = JOB_RESUME }, err);
}

static int op_state(struct question *q, struct err *err)
{
	struct val_builder list = val_builder(q->arena);

	(void)err;
	LIST_EACH(struct container, c, &q->pod->containers, link)
		val_add_item(&list, OBJECT(q->arena, F(id, VAL_STR(str_of(c->id))), F(pid, val_of_int(c->pid)),
					   F(status, VAL_STR(str_of(status_name(c->status)))), F(exitCode, val_of_int(c->exit_code)),
					   F(finishedAt, val_of_int(c->finished_ns)), F(oomKilled, val_of_bool(c->oom_killed))));
	q->answer = OBJECT(q->arena, F(containers, val_end_list(&list)));
	return 0;
}

static int op_follow(struct question *q, struct err *err)
{
	(void)err;
	q->conn->follows = true;
	return 0;
}

static int op_end(struct question *q, struct err *err)
{
	(void)err;
	q->pod->ending = true;
	return 0;
}

static const struct {
	str name;
	bool needs_container;
	int (*run)(struct question *q, struct err *err);
} ops[] = {
	{ STR_INIT("create"), false, op_create },
	{ STR_INIT("start"), true, op_start },
	{ STR_INIT("kill"), true, op_kill },
	{ STR_INIT("delete"), true, op_delete },
	{ STR_INIT("exec"), true, op_exec },
	{ STR_INIT("attach"), true, op_attach },
	{ STR_INIT("resize"), true, op_resize },
	{ STR_INIT("reopen"), true, op_reopen },
	{ STR_INIT("update"), true, op_update },
	{ STR_INIT("pause"), true, op_pause },
	{ STR_INIT("resume"), true, op_resume },
	{ STR_INIT("state"), false, op_state },
	{ STR_INIT("follow"), false, op_follow },
	{ STR_INIT("end"), false, op_end },
};

static int answer(struct question *q, str text, struct err *err)
{
	int r = json_decode(q->arena, text, &(struct json_decode_options){ 0 }, &q->v, err);

	if (r < 0)
		return r;
	str op = val_str(q->v, op), id = val_str(q->v, id);
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!str_eq(op, ops[i].name))
			continue;
		q->container = ops[i].needs_container ? container_find(q->pod, id) : NULL;
		if (ops[i].needs_container && !q->container)
			return err_set(err, ERR_NOT_FOUND, "container " STR_FMT " does not exist", STR_ARG(id));
		return ops[i].run(q, err);
	}
	return err_set(err, ERR_INVALID, "there is no op \"" STR_FMT "\"", STR_ARG(op));
}

static void conn_ready(struct source *s, uint32_t events)
{
	struct conn *c = CONTAINER_OF(s, struct conn, source);
	CLEANUP(buf_done) struct buf text = BUF_INIT(MONITOR_PACKET_MAX);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct monitor_fds fds = { .n = 0 }, out = { .n = 0 };
	struct err err = ERR_INIT;
	struct pod *pod = s->pod;

	if (events & EPOLLOUT) {
		conn_flush(c);
		return;
	}
	ssize_t n = monitor_wire_receive(s->fd, &text, &fds);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		conn_free(c);
		return;
	}
	struct question q = { .pod = pod, .conn = c, .arena = &a, .fds = &fds, .out = &out, .answer = VAL_EMPTY_OBJECT };
	int r = answer(&q, buf_str(&text), &err);
	monitor_fds_done(&fds);
	if (r == ANSWER_LATER) {
		c->busy = true;
		conn_watch(c);
		return;
	}
	/* That may be the end of the connection. */
	conn_send(c, r < 0 ? monitor_wire_error(&a, &err) : q.answer, &out);
	if (q.start_failed)
		exit_started(q.container);
	pod_check_end(pod);
}

static void accept_again(struct timer *t)
{
	source_watch(&CONTAINER_OF(t, struct pod, accept_again)->listener, EPOLLIN);
}

void conn_accept(struct source *listener, uint32_t events)
{
	struct pod *pod = listener->pod;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t n = sizeof(peer);

	(void)events;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		/* It stays ready: the loop would do nothing else. */
		source_watch(listener, 0);
		timer_set(pod, &pod->accept_again, ACCEPT_RETRY_MS, accept_again);
	}
	if (fd < 0)
		return;
	if (pod->n_conns >= CONNS_MAX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || (peer.uid != 0 && peer.uid != geteuid())) {
		close(fd);
		return;
	}
	struct conn *c = mem_zalloc(sizeof(*c));
	source_init(&c->source, pod, fd, conn_ready);
	list_init(&c->packets);
	list_add(&pod->conns, &c->link);
	pod->n_conns++;
	conn_watch(c);
}

/* ---- answers of jobs ---- */

/* What a job that went well changes; the container is gone afterwards when it was deleted. */
static void settle(struct job *j, struct job_result *result, struct monitor_fds *out)
{
	struct container *c = j->container;

	switch (j->op) {
	case JOB_CREATE:
		c->status = STATUS_CREATED;
		c->pid = result->pid;
		c->cgroup = exit_cgroup(c->pid);
		if (result->master >= 0)
			stdio_terminal(c, result->master);
		break;
	case JOB_START:
		c->status = STATUS_RUNNING;
		break;
	case JOB_EXEC:
		j->exec->pid = result->pid;
		/* One that has ended already was waited for: its number may be another's. */
		if (j->exec->signal && waitid(P_PID, (id_t)result->pid, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0)
			(void)kill(result->pid, j->exec->signal);
		if (result->master >= 0) {
			j->exec->master = result->master;
			int theirs = fcntl(result->master, F_DUPFD_CLOEXEC, 3);
			if (theirs >= 0)
				out->fd[out->n++] = theirs;
		}
		break;
	case JOB_PAUSE:
	case JOB_RESUME:
		if (c->status != STATUS_STOPPED)
			c->status = j->op == JOB_PAUSE ? STATUS_PAUSED : STATUS_RUNNING;
		break;
	case JOB_KILL:
	case JOB_DELETE:
	case JOB_UPDATE:
		break;
	}
}

/* What follows from it. */
static void follow_up(struct job *j, const struct job_result *result)
{
	struct container *c = j->container;
	struct err err = ERR_INIT;
	bool well = result->r >= 0;

	if (j->op == JOB_DELETE)
		c->deleting = false;
	if (j->op == JOB_START)
		exit_started(c);
	if (well && (j->op == JOB_CREATE || j->op == JOB_EXEC))
		exit_claim(j->pod, result->pid);
	else if (j->op == JOB_EXEC)
		exec_free(j->exec);
	else if (j->op == JOB_DELETE && (well || j->last || result->r == -ERR_NOT_FOUND))
		container_free(c);
	else if (j->op == JOB_CREATE) {
		/* One that had to be killed may have left something. */
		c->status = STATUS_STOPPED;
		struct job clean = { .pod = j->pod, .op = JOB_DELETE, 
				     .container = c, .force = true, .last = true, .stdio = { -1, -1, -1 } };
		c->deleting = true;
		if (!j->late || job_begin(&clean, &err) < 0)
			container_free(c);
	}
}

void job_done(struct job *j, struct job_result *result)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct monitor_fds out = { .n = 0 };
	struct val v = VAL_EMPTY_OBJECT;

	if (result->r >= 0) {
		settle(j, result, &out);
		if (result->pid)
			v = OBJECT(&a, F(pid, val_of_int(result->pid)));
	} else {
		v = monitor_wire_error(&a, &result->err);
	}
	/* Who is told of an exit has been told of the start before; who is told that a container is gone finds nothing of it. */
	if (j->op == JOB_DELETE)
		follow_up(j, result);
	if (j->conn) {
		j->conn->busy = false;
		conn_send(j->conn, v, &out);
	}
	monitor_fds_done(&out);
	if (j->op != JOB_DELETE)
		follow_up(j, result);
}
