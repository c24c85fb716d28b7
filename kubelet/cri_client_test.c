#include "kubelet/cri_client.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fiber_test.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"
#include "net/grpc_server.h"
#include "runtime/cri.h"

/* ---- a runtime behind a socket ---- */

static int reply_with(struct grpc_server_call *call, struct val v, const struct type *type, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	int r = proto_encode(&b, v, type, err);

	return r < 0 ? r : grpc_reply(call, buf_str(&b), err);
}

static int serve_version(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	struct arena *a = grpc_call_arena(call);
	struct val v;

	(void)arg;
	if (proto_decode(a, request, TYPE(cri_v1, VersionRequest), &v, err) < 0)
		return -ERR_BAD_REQUEST;
	return reply_with(call, OBJECT(a, F(version, val_get(v, version)), F(runtimeName, VAL_LIT("fake"))), TYPE(cri_v1, VersionResponse), err);
}

static int serve_missing(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	(void)call, (void)request, (void)arg;
	return err_set(err, ERR_NOT_FOUND, "no such container");
}

static int serve_slow(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	(void)call, (void)request, (void)arg;
	return fiber_sleep_ms(60000, err);
}

static int serve_events(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	struct arena *a = grpc_call_arena(call);
	int r = 0;

	(void)request, (void)arg;
	for (unsigned i = 0; i < 2 && r == 0; i++)
		r = reply_with(call, OBJECT(a, F(containerId, i ? VAL_LIT("b") : VAL_LIT("a")), F(containerEventType, VAL_LIT("CONTAINER_STARTED_EVENT"))),
			       TYPE(cri_v1, ContainerEventResponse), err);
	return r;
}

static const struct grpc_method methods[] = {
	{ STR_INIT("/runtime.v1.RuntimeService/Version"), serve_version, false, NULL },
	{ STR_INIT("/runtime.v1.RuntimeService/ContainerStatus"), serve_missing, false, NULL },
	{ STR_INIT("/runtime.v1.RuntimeService/Status"), serve_slow, false, NULL },
	{ STR_INIT("/runtime.v1.RuntimeService/GetContainerEvents"), serve_events, true, NULL },
};

struct served {
	char folder[64], address[100];
	struct grpc_server *server;
	struct fiber *fiber;
};

static int serve(void *arg)
{
	struct served *s = arg;

	return grpc_server_run(s->server, 0, NULL);
}

/* With the first n of the methods. */
static void serve_begin(struct served *s, size_t n)
{
	struct grpc_server_options o = { .methods = methods, .n_methods = n };

	if (!s->folder[0]) {
		(void)snprintf(s->folder, sizeof(s->folder), "/tmp/c8s-cri-XXXXXX");
		CHECK(mkdtemp(s->folder));
		(void)snprintf(s->address, sizeof(s->address), "unix://%s/s", s->folder);
	}
	s->server = grpc_server_new(&o);
	CHECK_INT(grpc_server_listen(s->server, s->address, NULL), 0);
	s->fiber = start(serve, s);
}

static void serve_end(struct served *s)
{
	(void)fiber_stop(s->fiber);
	grpc_server_free(s->server);
}

static void serve_done(struct served *s)
{
	char path[100];

	serve_end(s);
	(void)snprintf(path, sizeof(path), "%s/s", s->folder);
	(void)unlink(path);
	CHECK_INT(rmdir(s->folder), 0);
}

static void check_version(struct cri *c)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v;

	if (cri_ask(c, &rpc_RuntimeService_Version, &a, OBJECT(&a, F(version, VAL_LIT("v1"))), 0, &v, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK_STR(val_str(v, runtimeName), "fake");
	CHECK_STR(val_str(v, version), "v1");
}

FIBER_TEST(cri_calls_go_to_the_runtime_and_survive_its_restart)
{
	struct served s = { 0 };
	struct cri *c;

	serve_begin(&s, ARRAY_LEN(methods));
	CHECK_INT(cri_open(s.address, NULL, &c, NULL), 0);
	check_version(c);
	serve_end(&s);
	serve_begin(&s, ARRAY_LEN(methods));
	check_version(c);
	cri_close(c);
	CHECK_INT(cri_open(s.address + strlen("unix://"), s.address, &c, NULL), 0);
	check_version(c);
	cri_close(c);
	serve_done(&s);
}

FIBER_TEST(cri_errors_have_the_runtimes_words_and_codes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct served s = { 0 };
	struct err err = ERR_INIT;
	struct val v;
	struct cri *c;

	serve_begin(&s, ARRAY_LEN(methods));
	CHECK_INT(cri_open(s.address, NULL, &c, NULL), 0);
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_ContainerStatus, &a, VAL_EMPTY_OBJECT, 0, &v, &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err), "no such container");
	CHECK_STR(cri_error_text(&a, &err), "rpc error: code = NotFound desc = no such container");
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_Status, &a, VAL_EMPTY_OBJECT, 50, &v, &err), -ERR_TIMEOUT);
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_StopContainer, &a, VAL_EMPTY_OBJECT, 0, &v, &err), -ERR_METHOD_NOT_ALLOWED);
	cri_close(c);
	CHECK_INT(cri_open("unix:///tmp/c8s-there-is-no-such-socket", NULL, &c, NULL), 0);
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_Version, &a, VAL_EMPTY_OBJECT, 500, &v, &err), -ERR_UNAVAILABLE);
	cri_close(c);
	CHECK_INT(cri_open("tcp://127.0.0.1:1", NULL, &c, &err), -ERR_BAD_REQUEST);
	serve_done(&s);
}

static void note_event(struct val event, void *arg)
{
	struct buf *b = arg;

	buf_add(b, val_str(event, containerId));
	buf_add(b, val_str(event, containerEventType));
}

TEST(cri_calls_that_a_runtime_does_not_have)
{
	static const struct {
		const char *text;
		bool want;
	} t[] = {
		{ "rpc error: code = Unimplemented desc = unknown method UpdatePodSandboxResources", true },
		{ "rpc error: code = Unknown desc = not implemented", true }, /* containerd 2.2 */
		{ "rpc error: code = Unknown desc = there is no room", false },
		{ "", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, cri_text_is_unknown_call(str_of(t[i].text)) == t[i].want);
}

FIBER_TEST(cri_events_are_told_until_they_end)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	struct served s = { 0 };
	struct cri *c;

	serve_begin(&s, ARRAY_LEN(methods));
	CHECK_INT(cri_open(s.address, NULL, &c, NULL), 0);
	CHECK_INT(cri_follow_events(c, note_event, &b, NULL), -ERR_GONE);
	CHECK_STR(buf_str(&b), "aCONTAINER_STARTED_EVENTbCONTAINER_STARTED_EVENT");
	cri_close(c);
	serve_end(&s);
	serve_begin(&s, 1);
	CHECK_INT(cri_open(s.address, NULL, &c, NULL), 0);
	CHECK_INT(cri_follow_events(c, note_event, &b, NULL), -ERR_UNAVAILABLE);
	cri_close(c);
	serve_done(&s);
}

/* ---- in this process ---- */

FIBER_TEST(cri_inside_calls_the_methods_themselves)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime r = { .o = { .version = "1.2.3" } };
	struct cri *c = cri_inside(&r);
	struct err err = ERR_INIT;
	struct val v;

	list_init(&r.followers);
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_Version, &a, VAL_EMPTY_OBJECT, 0, &v, &err), 0);
	CHECK_STR(val_str(v, runtimeVersion), "1.2.3");
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_GetContainerEvents, &a, VAL_EMPTY_OBJECT, 0, &v, &err), -ERR_METHOD_NOT_ALLOWED);
	CHECK_INT(cri_ask(c, &rpc_RuntimeService_StopContainer, &a, OBJECT(&a, F(containerId, VAL_LIT("x")), F(timeout, VAL_LIT("soon"))), 0, &v, &err),
		  -ERR_INTERNAL);
	cri_close(c);
}

struct following {
	struct cri *cri;
	struct buf seen;
};

static int follow(void *arg)
{
	struct following *f = arg;

	return cri_follow_events(f->cri, note_event, &f->seen, NULL);
}

static int note_message(void *arg, struct val message, struct err *err)
{
	(void)err;
	buf_addf(arg, "%u ", (unsigned)val_len(val_get(message, images)));
	return 0;
}

FIBER_TEST(cri_inside_follows_until_it_is_canceled)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime r = { .o = { .version = "1.2.3" } };
	struct following f = { .cri = cri_inside(&r), .seen = BUF_INIT(1000) };
	struct cri_stream s = { .rpc = &rpc_ImageService_StreamImages, .arena = &a, .sink = note_message, .sink_arg = &f.seen };

	list_init(&r.followers);
	struct fiber *fiber = start(follow, &f);
	fiber_settle();
	CHECK(!list_empty(&r.followers));
	CHECK_INT(fiber_stop(fiber), -ERR_CANCELED);
	CHECK(list_empty(&r.followers));
	/* Messages of streams reach a sink as they are. */
	CHECK_INT(cri_send_list(&s, A_images, LIST(&a, VAL_EMPTY_OBJECT, VAL_EMPTY_OBJECT), NULL), 0);
	CHECK_STR(buf_str(&f.seen), "2 ");
	cri_close(f.cri);
	buf_done(&f.seen);
}
