/* The server against our client. */
#include "net/grpc_server.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "net/grpc_frame.h"

enum { MESSAGE_MAX = 1 << 20, STREAM_MESSAGES = 64, STREAM_BYTES = 256 * 1024 };

struct served {
	char path[108], url[120];
	struct grpc_server *server;
	struct fiber *fiber;
	unsigned canceled, streamed;
	int64_t left_ms;          /* of the deadline, as a handler saw it */
};

static int echo(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	(void)arg;
	return grpc_reply(call, request, err);
}

static int refuse(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	(void)call, (void)arg, (void)request;
	return err_set(err, ERR_NOT_FOUND, "no \"pod\" 100%% \xc3\xa9\n");
}

static int slow(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	struct served *s = arg;

	(void)call, (void)request;
	s->left_ms = (fiber_deadline_ns() - clock_now_ns()) / NS_PER_MS;
	int r = fiber_sleep_ms(60000, err);
	s->canceled += r == -ERR_CANCELED;
	return r;
}

static int flood(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	struct served *s = arg;
	CLEANUP(mem_freep) char *bytes = mem_zalloc(STREAM_BYTES);
	int r = 0;

	(void)request;
	for (unsigned i = 0; i < STREAM_MESSAGES && r == 0; i++, s->streamed += r == 0)
		r = grpc_reply(call, str_span(bytes, STREAM_BYTES), err);
	s->canceled += r == -ERR_CANCELED;
	return r;
}

static int broken_stream(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	(void)arg;
	int r = grpc_reply(call, request, err);
	return r < 0 ? r : err_set(err, ERR_CONFLICT, "in the middle");
}

static const struct grpc_method methods[] = {
	{ .path = STR_INIT("/t/Echo"), .handle = echo },
	{ .path = STR_INIT("/t/Refuse"), .handle = refuse },
	{ .path = STR_INIT("/t/Slow"), .handle = slow },
	{ .path = STR_INIT("/t/Flood"), .handle = flood, .stream = true },
	{ .path = STR_INIT("/t/Broken"), .handle = broken_stream, .stream = true },
	{ .path = STR_INIT("/t/Wait"), .handle = slow, .stream = true },
};

static int server_main(void *arg)
{
	struct served *s = arg;

	return grpc_server_run(s->server, 1000, NULL);
}

static void server_start(struct served *s)
{
	struct grpc_server_options o = { .methods = methods, .n_methods = ARRAY_LEN(methods), .arg = s, .max_message = MESSAGE_MAX };
	struct err err = ERR_INIT;

	*s = (struct served){ .server = grpc_server_new(&o) };
	(void)snprintf(s->path, sizeof s->path, "/tmp/c8s-grpc-server-%d-%" PRIx64, (int)getpid(), random_u64());
	(void)snprintf(s->url, sizeof s->url, "unix:%s", s->path);
	if (grpc_server_listen(s->server, s->url, &err) < 0)
		fail_msg("%s", err.msg);
	s->fiber = start(server_main, s);
}

static void server_stop(struct served *s)
{
	(void)fiber_stop(s->fiber);
	grpc_server_free(s->server);
	(void)unlink(s->path);
}

static struct grpc_channel *open_channel(const struct served *s)
{
	const char *endpoints[] = { s->url, NULL };
	struct grpc_options o = { .endpoints = endpoints };
	struct grpc_channel *c;

	CHECK_INT(grpc_channel_new(&o, &c, NULL), 0);
	return c;
}

FIBER_TEST(grpc_server_answers)
{
	static const struct {
		const char *path, *text;
		int r, status;
	} t[] = {
		{ "/t/Echo", "hello", 0, GRPC_OK },
		{ "/t/Refuse", "no \"pod\" 100% \xc3\xa9\n", -ERR_NOT_FOUND, GRPC_NOT_FOUND },
		{ "/t/Nothing", "unknown method Nothing for service t", -ERR_METHOD_NOT_ALLOWED, GRPC_UNIMPLEMENTED },
		{ "/nothing", "malformed method name: \"/nothing\"", -ERR_METHOD_NOT_ALLOWED, GRPC_UNIMPLEMENTED },
	};
	struct served s;
	struct stat st;

	server_start(&s);
	CHECK_INT(stat(s.path, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0660);
	struct grpc_channel *c = open_channel(&s);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
		struct err err = ERR_INIT;
		int status, r = grpc_call(c, str_of(t[i].path), 0, STR("hello"), &m, &status, &err);
		CHECK_ROW(i, r == t[i].r && status == t[i].status);
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : grpc_message_str(m), t[i].text);
	}
	grpc_channel_free(c);
	server_stop(&s);
}

static __attribute__((noinline)) void check_size(struct grpc_channel *c, size_t n, int want)
{
	CLEANUP(mem_freep) char *bytes = mem_zalloc(n + 1);
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;

	CHECK_INT(grpc_call(c, STR("/t/Echo"), 0, str_span(bytes, n), &m, NULL, NULL), want);
	if (want == 0)
		CHECK_INT(m->n, n);
}

FIBER_TEST(grpc_server_limits_messages)
{
	struct served s;

	server_start(&s);
	struct grpc_channel *c = open_channel(&s);
	check_size(c, 0, 0);
	check_size(c, MESSAGE_MAX, 0);
	check_size(c, MESSAGE_MAX + 1, -ERR_TOO_MANY_REQUESTS);
	check_size(c, 3, 0);
	grpc_channel_free(c);
	server_stop(&s);
}

/* The server's handler knows how long the client waits, and is canceled when it does not any more. */
FIBER_TEST(grpc_server_deadline_and_cancel)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	struct served s;

	server_start(&s);
	struct grpc_channel *c = open_channel(&s);
	{
		DEADLINE_SCOPE(100);
		CHECK_INT(grpc_call(c, STR("/t/Slow"), 0, STR(""), &m, NULL, NULL), -ERR_TIMEOUT);
	}
	CHECK(s.left_ms > 0 && s.left_ms <= 101);
	struct grpc_stream *stream;
	CHECK_INT(grpc_stream_open(c, STR("/t/Wait"), &stream, NULL), 0);
	CHECK_INT(grpc_stream_send(stream, STR(""), NULL), 0);
	grpc_stream_half_close(stream);
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	s.canceled = 0;
	grpc_stream_free(stream);
	DEADLINE_SCOPE(5000);
	while (!s.canceled)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	grpc_channel_free(c);
	server_stop(&s);
}

FIBER_TEST(grpc_server_streams)
{
	struct served s;
	struct grpc_stream *stream;
	struct grpc_message *m;
	struct err err = ERR_INIT;
	unsigned n = 0;
	DEADLINE_SCOPE(20000);

	server_start(&s);
	struct grpc_channel *c = open_channel(&s);
	CHECK_INT(grpc_stream_open(c, STR("/t/Flood"), &stream, NULL), 0);
	CHECK_INT(grpc_stream_send(stream, STR("go"), NULL), 0);
	grpc_stream_half_close(stream);
	/* Who does not read holds the handler up, not our memory. */
	CHECK_INT(fiber_sleep_ms(100, NULL), 0);
	CHECK(s.streamed < STREAM_MESSAGES);
	for (; grpc_stream_recv(stream, &m, NULL) == 1; n++)
		grpc_message_free(m);
	CHECK_INT(n, STREAM_MESSAGES);
	grpc_stream_free(stream);

	CHECK_INT(grpc_stream_open(c, STR("/t/Broken"), &stream, NULL), 0);
	CHECK_INT(grpc_stream_send(stream, STR("one"), NULL), 0);
	grpc_stream_half_close(stream);
	CHECK_INT(grpc_stream_recv(stream, &m, NULL), 1);
	CHECK_STR(grpc_message_str(m), "one");
	grpc_message_free(m);
	CHECK_INT(grpc_stream_recv(stream, &m, &err), -ERR_CONFLICT);
	CHECK_STR(err_str(&err), "in the middle");
	grpc_stream_free(stream);
	grpc_channel_free(c);
	server_stop(&s);
}

TEST(grpc_timeouts_are_read)
{
	static const struct {
		const char *text;
		int64_t ns;
	} t[] = { { "5n", 5 }, { "10u", 10000 }, { "7m", 7000000 }, { "2S", 2 * NS_PER_S }, { "1M", 60 * NS_PER_S },
		  { "99999999H", INT64_MAX }, { "1H", 3600 * NS_PER_S }, { "", -1 }, { "S", -1 }, { "5", -1 }, { "-5S", -1 },
		  { "999999999S", -1 }, { "5x", -1 } };
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, grpc_timeout_parse(str_of(t[i].text)) == t[i].ns);
}
