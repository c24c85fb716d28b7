/*
 * Further processes in a container. They are the monitor's children; their end comes as an event, which finds who waits by the
 * process' id. The event may come before the answer: the id is known before the question is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/config_json.h"

enum { CONFIG_MAX = 16 << 20, OUTPUT_MAX = 16 << 20, PIECE = 32 << 10, KILL_MS = 10000, DRAIN_MS = 10000 };

struct exec {
	char id[RUNTIME_ID + 1];
	struct container *container;     /* a reference */
	bool ended;
	int exit_code;
	struct fiber_cond changed;
};

/* ---- life ---- */

void exec_ended(struct runtime *r, str exec_id, int exit_code)
{
	struct exec *e = map_get(&r->execs, exec_id);

	if (!e)
		return;
	e->ended = true;
	e->exit_code = exit_code;
	fiber_cond_broadcast(&e->changed);
}

void exec_container_ended(struct container *c)
{
	struct map_iter it = map_iter(&c->runtime->execs);
	struct exec *e;

	while ((e = map_next(&it, NULL)))
		if (e->container == c)
			fiber_cond_broadcast(&e->changed);
}

static int process_of(struct container *c, struct arena *a, const struct exec_options *o, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONFIG_MAX);
	struct json_decode_options free_tree = { 0 };
	struct val config;
	int r = file_read(runtime_text(a, "%s/config.json", container_folder(c, a)), &b, err);

	if (r < 0 || (r = json_decode(a, arena_str(a, buf_str(&b)), &free_tree, &config, err)) < 0)
		return err_wrap(err, r, "failed to get container spec");
	*ret = config_json_exec(a, config, o->args, o->terminal);
	return 0;
}

static int ask(struct exec *e, const struct exec_options *o, int *ret_terminal, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct container *c = e->container;
	struct monitor_fds in = { { o->stdio[0], o->stdio[1], o->stdio[2] }, 3 }, out = { .n = 0 };
	struct val process;
	int r = process_of(c, &a, o, &process, err);

	if (r < 0)
		return r;
	struct val q = OBJECT(&a, F(op, VAL_LIT("exec")), F(id, VAL_STR(str_of(c->id))), F(exec, VAL_STR(str_of(e->id))),
			      F(process, process), F(terminal, val_of_bool(o->terminal)));
	r = sandbox_ask_apart(c->sandbox, &a, q, o->terminal ? NULL : &in, &out, err);
	if (r < 0)
		return err_wrap(err, r, "failed to start exec \"%s\"", e->id);
	if (ret_terminal)
		*ret_terminal = out.n ? out.fd[0] : -1;
	else if (out.n)
		(void)close(out.fd[0]);
	return 0;
}

int exec_start(struct container *c, const struct exec_options *o, struct exec **ret, int *ret_terminal, struct err *err)
{
	if (container_state(c) != CONTAINER_RUNNING)
		return err_set(err, ERR_INTERNAL, "container is in %s state", container_state_name(container_state(c)));
	if (!val_len(o->args))
		return err_set(err, ERR_INTERNAL, "no command specified");
	struct exec *e = mem_zalloc(sizeof *e);
	runtime_id_make(e->id);
	e->container = container_ref(c);
	fiber_cond_init(&e->changed, "the end of a process");
	(void)map_put(&c->runtime->execs, str_of(e->id), e);
	int r = ask(e, o, ret_terminal, err);
	if (r < 0) {
		/* who gave up waiting does not know whether it runs: nobody else would end it */
		if (r == -ERR_CANCELED || r == -ERR_TIMEOUT) {
			SHIELD_SCOPE();
			DEADLINE_SCOPE(KILL_MS);
			(void)exec_kill(e, NULL);
		}
		e->ended = true;
		exec_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

int exec_wait(struct exec *e, int *ret_code, struct err *err)
{
	int r = 0;

	while (r == 0 && !e->ended) {
		/* With the container, or its monitor, all processes in it have gone. */
		if (e->container->finished_ns && e->container->cleared)
			return err_set(err, ERR_INTERNAL, "container is in %s state",
				       container_state_name(container_state(e->container)));
		r = fiber_cond_wait(&e->changed, err);
	}
	if (r == 0)
		*ret_code = e->exit_code;
	return r;
}

int exec_kill(struct exec *e, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct container *c = e->container;

	if (e->ended)
		return 0;
	struct val q = OBJECT(&a, F(op, VAL_LIT("kill")), F(id, VAL_STR(str_of(c->id))), F(exec, VAL_STR(str_of(e->id))),
			      F(signal, val_of_int(SIGKILL)));
	int r = sandbox_ask(c->sandbox, &a, q, NULL, NULL, NULL, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

int exec_resize(struct exec *e, unsigned width, unsigned height, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct container *c = e->container;

	return sandbox_ask(c->sandbox, &a, OBJECT(&a, F(op, VAL_LIT("resize")), F(id, VAL_STR(str_of(c->id))),
						  F(exec, VAL_STR(str_of(e->id))), F(width, val_of_int(width)),
						  F(height, val_of_int(height))),
			   NULL, NULL, NULL, err);
}

void exec_free(struct exec *e)
{
	int code;

	if (!e)
		return;
	if (!e->ended) {
		SHIELD_SCOPE();
		DEADLINE_SCOPE(KILL_MS);
		(void)exec_kill(e, NULL);
		(void)exec_wait(e, &code, NULL);
	}
	(void)map_remove(&e->container->runtime->execs, str_of(e->id));
	container_unref(e->container);
	free(e);
}

void exec_freep(struct exec **e) { exec_free(*e); }

/* ---- to its end, with its output ---- */

void exec_output_done(struct exec_output *o)
{
	buf_done(&o->out);
	buf_done(&o->err);
}

struct reader {
	int fd;
	struct buf *into;
};

/* What is too much is read and dropped, so that the process does not wait for us. */
static int read_all(void *arg)
{
	struct reader *rd = arg;
	CLEANUP(mem_freep) char *piece = mem_alloc(PIECE);
	ssize_t n;

	while ((n = fiber_read(rd->fd, piece, PIECE, NULL)) > 0)
		buf_add(rd->into, str_span(piece, MIN((size_t)n, OUTPUT_MAX - rd->into->n)));
	return 0;
}

struct pipes {
	int out[2], err[2], null;
};

static void pipes_done(struct pipes *p)
{
	fd_closep(&p->out[0]);
	fd_closep(&p->out[1]);
	fd_closep(&p->err[0]);
	fd_closep(&p->err[1]);
	fd_closep(&p->null);
}

static int pipes_make(struct pipes *p, struct err *err)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, -1 };
	p->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (p->null < 0 || pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0 ||
	    fcntl(p->out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(p->err[0], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "make pipes");
	return 0;
}

/* The end of the process, and then of what it wrote: others may hold its output for longer. */
static int wait_all(struct exec *e, struct fiber_group *readers, int64_t timeout_s, int *ret_code, struct err *err)
{
	int r;

	{
		DEADLINE_SCOPE(timeout_s > 0 ? MIN(timeout_s, INT64_MAX / 2000) * 1000 : INT64_MAX);
		r = exec_wait(e, ret_code, err);
	}
	if (r == -ERR_TIMEOUT && fiber_check(NULL) == 0)
		return err_set(err, ERR_TIMEOUT, "timeout %llds exceeded: context deadline exceeded", (long long)timeout_s);
	if (r < 0)
		return r;
	{
		DEADLINE_SCOPE(DRAIN_MS);
		r = fiber_group_wait(readers, err);
	}
	if (r == -ERR_TIMEOUT && fiber_check(NULL) == 0)
		log_info("the output of a process that ended is held by another one", KV("container", e->container->id));
	return fiber_check(err);
}

int exec_sync(struct container *c, struct val args, int64_t timeout_s, struct exec_output *ret, struct err *err)
{
	CLEANUP(pipes_done) struct pipes p;
	CLEANUP(exec_freep) struct exec *e = NULL;
	struct reader out = { .into = &ret->out }, errs = { .into = &ret->err };
	int r = pipes_make(&p, err);

	buf_init(&ret->out, OUTPUT_MAX);
	buf_init(&ret->err, OUTPUT_MAX);
	if (r < 0)
		return r;
	struct exec_options o = { .args = args, .stdio = { p.null, p.out[1], p.err[1] } };
	if ((r = exec_start(c, &o, &e, NULL, err)) < 0)
		return r;
	fd_closep(&p.out[1]);
	fd_closep(&p.err[1]);
	out.fd = p.out[0];
	errs.fd = p.err[0];
	CLEANUP(fiber_group_done) struct fiber_group readers;
	fiber_group_init(&readers);
	if ((r = fiber_group_spawn(&readers, read_all, &out, err, "exec output")) < 0 ||
	    (r = fiber_group_spawn(&readers, read_all, &errs, err, "exec errors")) < 0)
		return r;
	return wait_all(e, &readers, timeout_s, &ret->exit_code, err);
}
