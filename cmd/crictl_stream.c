/* crictl: processes in containers, and events. */
#include <stdio.h>
#include <unistd.h>

#include "base/fiber.h"
#include "cmd/crictl_remote.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

enum { EVENT_MAX = 64 << 20 };

/* ---- sessions ---- */

static int open_remote(void *arg, const struct rexec_wants *wants, struct rexec **ret, struct err *err)
{
	return crictl_remote_open(arg, wants, ret, err);
}

/* (suspends) The exit code of the process; 0 when it was left. */
static int run_session(struct crictl *c, struct crictl_dialer *d, int *ret_code, struct err *err)
{
	struct rexec_talk t = { .in = c->interactive, .tty = c->tty, .detach_keys = true, .open = open_remote, .arg = d };

	return rexec_talk(&t, ret_code, err);
}

static int check_terminal(const struct crictl *c, struct err *err)
{
	if (c->tty && !c->interactive)
		return err_set(err, ERR_BAD_REQUEST, "tty=true must be specified with interactive=true");
	if (c->tty && !isatty(STDIN_FILENO))
		return err_set(err, ERR_BAD_REQUEST, "input is not a terminal");
	return 0;
}

/* (suspends) Asks for a URL and uses it. */
static int stream(struct crictl *c, const struct rpc *rpc, struct val request, int *ret_code, struct err *err)
{
	struct crictl_dialer d;
	struct val v;
	int r = crictl_call(c, rpc, request, &v, err);

	if (r < 0)
		return r;
	if ((r = crictl_dialer_init(&d, c, val_str(v, url), err)) == 0)
		r = run_session(c, &d, ret_code, err);
	crictl_dialer_done(&d);
	return r;
}

int crictl_attach(struct crictl *c, struct err *err)
{
	struct val request = OBJECT(&c->arena, F(containerId, VAL_STR(str_of(c->arguments[0]))), F(stdin, val_of_bool(c->interactive)),
				    F(tty, val_of_bool(c->tty)), F(stdout, val_of_bool(true)), F(stderr, val_of_bool(!c->tty)));
	int r = check_terminal(c, err);

	if (r == 0)
		r = stream(c, &rpc_RuntimeService_Attach, request, &c->exit_code, err);
	return r < 0 ? err_wrap(err, r, "attaching running container failed") : 0;
}

/* ---- exec ---- */

static int exec_sync(struct crictl *c, struct val id, struct val cmd, int *ret_code, struct err *err)
{
	int64_t timeout = crictl_wait_s(c);
	struct val v, request = OBJECT(&c->arena, F(containerId, id), F(cmd, cmd), F(timeout, val_of_int(timeout)));
	int64_t limit = timeout ? c->timeout_ms + timeout * 1000 : 0;
	int r = crictl_call_within(c, &rpc_RuntimeService_ExecSync, request, limit, &v, err);

	if (r < 0)
		return err_wrap(err, r, "execing command in container synchronously");
	str out = val_str(v, stdout), errors = val_str(v, stderr);
	(void)fwrite(out.n ? out.p : "", 1, out.n, stdout);
	(void)fflush(stdout);
	(void)fwrite(errors.n ? errors.p : "", 1, errors.n, stderr);
	*ret_code = (int)(val_int(v, exitCode) & 255);
	return 0;
}

static int exec_one(struct crictl *c, struct val id, struct val cmd, int *ret_code, struct err *err)
{
	if (c->sync || c->wait_s > 0)
		return exec_sync(c, id, cmd, ret_code, err);
	struct val request = OBJECT(&c->arena, F(containerId, id), F(cmd, cmd), F(tty, val_of_bool(c->tty)),
				    F(stdin, val_of_bool(c->interactive)), F(stdout, val_of_bool(true)), F(stderr, val_of_bool(!c->tty)));
	int r = stream(c, &rpc_RuntimeService_Exec, request, ret_code, err);
	return r < 0 ? err_wrap(err, r, "execing command in container") : 0;
}

struct exec {
	struct crictl *c;
	struct val id, cmd;
	int result, code;
	struct err err;
};

static int run_exec(void *arg)
{
	struct exec *e = arg;

	e->result = exec_one(e->c, e->id, e->cmd, &e->code, &e->err);
	return 0;
}

/* (suspends) In one container after another, or in all at a time. The first failure is ours. */
static int exec_all(struct crictl *c, struct val list, struct val cmd, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	size_t n = val_len(list);
	struct exec *all = ARENA_ARRAY(&c->arena, struct exec, n);
	int r = 0;

	fiber_group_init(&group);
	for (size_t i = 0; r == 0 && i < n; i++) {
		all[i] = (struct exec){ .c = c, .id = val_get(val_at(list, i), id), .cmd = cmd };
		if (c->parallel && !c->tty) {
			r = fiber_group_spawn(&group, run_exec, &all[i], err, "exec %zu", i);
			continue;
		}
		if (!c->quiet) {
			printf("%s:\n", crictl_text(&c->arena, val_as_str(all[i].id)));
			(void)fflush(stdout);
		}
		(void)run_exec(&all[i]);
	}
	if (r < 0 || (r = fiber_group_wait(&group, err)) < 0)
		return r;
	for (size_t i = n; i-- > 0;) {
		c->exit_code = all[i].code ? all[i].code : c->exit_code;
		if (all[i].result < 0) {
			r = all[i].result;
			*err = all[i].err;
		}
	}
	return r;
}

int crictl_exec(struct crictl *c, struct err *err)
{
	struct val_builder b = val_builder(&c->arena);
	bool several = crictl_filters_given(c);
	struct val list, cmd;
	int r = check_terminal(c, err);

	if (r < 0)
		return r;
	if (!several && c->n < 2)
		return err_set(err, ERR_BAD_REQUEST, "exec needs CONTAINER COMMAND...");
	for (size_t i = several ? 0 : 1; i < c->n; i++)
		val_add_item(&b, VAL_STR(str_of(c->arguments[i])));
	cmd = val_end_list(&b);
	if (!several) {
		r = exec_one(c, VAL_STR(str_of(c->arguments[0])), cmd, &c->exit_code, err);
	} else if ((r = crictl_list_containers(c, &list, err)) == 0) {
		if (!val_len(list))
			return err_set(err, ERR_NOT_FOUND, "No containers found per filter flags");
		r = exec_all(c, list, cmd, err);
	}
	if (!c->ignore_errors)
		return r;
	c->exit_code = 0;
	return 0;
}

/* ---- events ---- */

static int show_event(const struct crictl *c, str message, struct err *err)
{
	const struct type *type = rpc_RuntimeService_GetContainerEvents.response;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(EVENT_MAX);
	struct json_encode_options o = { .type = type, .plain = true };
	struct val v;
	int r = proto_decode(&a, message, type, &v, err);

	if (r < 0)
		return err_wrap(err, r, "an event of the runtime");
	if (strcmp(c->output, "yaml") == 0) {
		printf("---\n");
		crictl_show(c, v, type);
	} else if ((r = json_encode(&b, v, &o, err)) == 0) {
		printf("%s\n", b.p);
	}
	(void)fflush(stdout);
	return r;
}

/* (suspends) Until it is stopped: one line of JSON each. */
int crictl_events(struct crictl *c, struct err *err)
{
	struct grpc_stream *s;
	int r = crictl_check_output(c, false, err);

	if (r < 0 || (r = grpc_stream_open(c->channel, rpc_RuntimeService_GetContainerEvents.path, &s, err)) < 0)
		return r;
	r = grpc_stream_send(s, STR(""), err);
	grpc_stream_half_close(s);
	while (r >= 0) {
		CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
		if ((r = grpc_stream_recv(s, &m, err)) <= 0)
			break;
		r = show_event(c, grpc_message_str(m), err);
	}
	grpc_stream_free(s);
	return r < 0 ? err_wrap(err, r, "getting container events") : 0;
}
