/* crictl: processes in containers, and events. */
#include <stdio.h>

#include "cmd/crictl.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

int crictl_exit_code;

static int exec_sync(struct crictl *c, struct val cmd, struct err *err)
{
	struct arena *a = &c->arena;
	int64_t timeout = MAX(c->action_timeout_s, INT64_C(0));
	struct val v;
	int r = crictl_call(c, &rpc_RuntimeService_ExecSync,
			    OBJECT(a, F(containerId, VAL_STR(str_of(c->arguments[0]))), F(cmd, cmd), F(timeout, val_of_int(timeout))), &v,
			    err);

	if (r < 0)
		return err_wrap(err, r, "execing command in container synchronously");
	str out = val_str(v, stdout), errors = val_str(v, stderr);
	(void)fwrite(out.n ? out.p : "", 1, out.n, stdout);
	(void)fwrite(errors.n ? errors.p : "", 1, errors.n, stderr);
	crictl_exit_code = (int)val_int(v, exitCode);
	return 0;
}

int crictl_exec(struct crictl *c, struct err *err)
{
	struct val_builder cmd = val_builder(&c->arena);

	for (size_t i = 1; i < c->n; i++)
		val_add_item(&cmd, VAL_STR(str_of(c->arguments[i])));
	return exec_sync(c, val_end_list(&cmd), err);
}

/* (suspends) Until it is stopped: one line of JSON each. */
int crictl_events(struct crictl *c, struct err *err)
{
	const struct rpc *rpc = &rpc_RuntimeService_GetContainerEvents;
	struct json_encode_options o = { .type = rpc->response, .plain = true };
	struct grpc_stream *s;
	struct grpc_message *m;
	int r = grpc_stream_open(c->channel, rpc->path, &s, err);

	if (r < 0 || (r = grpc_stream_send(s, STR(""), err)) < 0)
		return r;
	grpc_stream_half_close(s);
	while ((r = grpc_stream_recv(s, &m, err)) > 0) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
		struct val v;
		if (proto_decode(&a, grpc_message_str(m), rpc->response, &v, err) == 0 && json_encode(&b, v, &o, err) == 0) {
			printf("%s\n", b.p);
			(void)fflush(stdout);
		}
		grpc_message_free(m);
	}
	grpc_stream_free(s);
	return r;
}
