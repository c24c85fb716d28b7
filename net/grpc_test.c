/* The client against a small server made of nghttp2, which does what the path of a call asks for, wrongs included. */
#include "net/grpc.h"

#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fiber_test.h"
#include "net/grpc_frame.h"

/* ---- the server ---- */

struct server {
	char path[108];
	char url[120];
	int fd;
	bool unwelcoming;         /* says goodbye at once */
	unsigned connections, calls;
	size_t received;          /* bytes of bodies */
	struct fiber_group group;
	struct fiber *fiber;
};

struct peer {
	struct server *server;
	int fd;
	nghttp2_session *session;
	bool close;               /* without a word, now */
};

/* One call as the server sees it. */
struct served {
	struct peer *peer;
	char path[64], timeout[16], authorization[32];
	struct buf in;            /* framed, as it came; echoed */
	size_t sent;
	bool got_all, trailers, answered;
};

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
		       nghttp2_data_source *source, void *arg)
{
	struct served *c = source->ptr;
	size_t part = MIN(n, c->in.n - c->sent);

	(void)arg;
	if (part)
		memcpy(p, c->in.p + c->sent, part);
	c->sent += part;
	if (c->sent < c->in.n)
		return (ssize_t)part;
	if (!c->got_all)
		return part ? (ssize_t)part : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (!c->trailers) {
		nghttp2_nv trailer = header("grpc-status", "0");
		nghttp2_submit_trailer(session, id, &trailer, 1);
		c->trailers = true;
	}
	return (ssize_t)part;
}

static void answer_echo(struct served *c, int32_t id)
{
	nghttp2_nv headers[] = { header(":status", "200"), header("content-type", "application/grpc") };
	nghttp2_data_provider body = { .source.ptr = c, .read_callback = on_read };

	nghttp2_submit_response(c->peer->session, id, headers, 2, &body);
}

static void answer_trailers_only(struct served *c, int32_t id, const char *status, const char *message)
{
	nghttp2_nv headers[] = { header(":status", "200"), header("content-type", "application/grpc"),
				 header("grpc-status", status), header("grpc-message", message) };

	nghttp2_submit_response(c->peer->session, id, headers, 4, NULL);
}

static void put_frame(struct served *c, const char *bytes, size_t n)
{
	char prefix[GRPC_PREFIX];

	buf_reset(&c->in);
	grpc_prefix(prefix, n);
	buf_add(&c->in, str_span(prefix, GRPC_PREFIX));
	buf_add(&c->in, str_span(bytes, n));
}

static void answer_plain(struct served *c, int32_t id, const char *status)
{
	nghttp2_nv h = header(":status", status);

	nghttp2_submit_response(c->peer->session, id, &h, 1, NULL);
}

/* The request is complete (or, for streams, has begun). */
static void serve(struct served *c, int32_t id)
{
	str path = str_of(c->path);

	if (c->answered)
		return;
	c->answered = true;
	c->peer->server->calls++;
	if (str_eq(path, STR("/t/Status"))) {
		answer_trailers_only(c, id, "5", "no such%20thing%21");
	} else if (str_eq(path, STR("/t/Http"))) {
		answer_plain(c, id, "503");
	} else if (str_eq(path, STR("/t/Refuse"))) {
		if (c->peer->server->calls == 1)
			nghttp2_submit_rst_stream(c->peer->session, 0, id, NGHTTP2_REFUSED_STREAM);
		else
			answer_echo(c, id);
	} else if (str_eq(path, STR("/t/Goaway"))) {
		if (c->peer->server->calls == 1)
			nghttp2_submit_goaway(c->peer->session, 0, MAX(id - 2, 0), NGHTTP2_NO_ERROR, NULL, 0);
		else
			answer_echo(c, id);
	} else if (str_eq(path, STR("/t/Drop"))) {
		c->peer->close = c->peer->server->calls == 1;
		if (!c->peer->close)
			answer_echo(c, id);
	} else if (str_eq(path, STR("/t/Compressed"))) {
		put_frame(c, "x", 1);
		c->in.p[0] = 1;
		answer_echo(c, id);
	} else if (str_eq(path, STR("/t/Large"))) {
		put_frame(c, "", 0);
		memcpy(c->in.p, "\0\x7f\0\0\0", GRPC_PREFIX);
		answer_echo(c, id);
	} else if (str_eq(path, STR("/t/Told"))) {
		char text[80];
		int n = snprintf(text, sizeof text, "%s %s", c->authorization, c->timeout[0] ? "timeout" : "none");
		put_frame(c, text, (size_t)n);
		answer_echo(c, id);
	} else if (!str_eq(path, STR("/t/Silence"))) {
		answer_echo(c, id);
	}
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct served *c = mem_zalloc(sizeof *c);

	c->peer = arg;
	buf_init(&c->in, 64 << 20);
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, c);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t n_name,
		     const uint8_t *value, size_t n_value, uint8_t flags, void *arg)
{
	struct served *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	str key = str_span((const char *)name, n_name), text = str_span((const char *)value, n_value);

	(void)flags;
	(void)arg;
	if (str_eq(key, STR(":path")))
		(void)snprintf(c->path, sizeof c->path, STR_FMT, STR_ARG(text));
	else if (str_eq(key, STR("grpc-timeout")))
		(void)snprintf(c->timeout, sizeof c->timeout, STR_FMT, STR_ARG(text));
	else if (str_eq(key, STR("authorization")))
		(void)snprintf(c->authorization, sizeof c->authorization, STR_FMT, STR_ARG(text));
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	struct served *c = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)arg;
	c->peer->server->received += n;
	buf_add(&c->in, str_span((const char *)p, n));
	if (str_eq(str_of(c->path), STR("/t/Stream"))) {
		serve(c, id);
		nghttp2_session_resume_data(session, id);
	}
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct served *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)arg;
	if (!c || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || frame->hd.type > NGHTTP2_HEADERS)
		return 0;
	c->got_all = true;
	serve(c, frame->hd.stream_id);
	nghttp2_session_resume_data(session, frame->hd.stream_id);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	struct served *c = nghttp2_session_get_stream_user_data(session, id);

	(void)code;
	(void)arg;
	if (c)
		buf_done(&c->in);
	free(c);
	return 0;
}

static nghttp2_session *session_new(struct peer *p)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;

	CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	CHECK_INT(nghttp2_session_server_new(&session, callbacks, p), 0);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
	return session;
}

static int send_all(struct peer *p)
{
	const uint8_t *bytes;
	ssize_t n;

	while (!p->close && (n = nghttp2_session_mem_send(p->session, &bytes)) > 0) {
		if (fiber_write(p->fd, bytes, (size_t)n, NULL) < 0)
			return -1;
	}
	return 0;
}

static int peer_main(void *arg)
{
	struct peer *p = arg;
	CLEANUP(mem_freep) uint8_t *room = mem_alloc(65536);
	ssize_t n = 0;

	p->session = session_new(p);
	if (p->server->unwelcoming)
		nghttp2_submit_goaway(p->session, 0, 0, NGHTTP2_NO_ERROR, NULL, 0);
	while (send_all(p) == 0 && !p->close && (n = fiber_read(p->fd, room, 65536, NULL)) > 0) {
		if (nghttp2_session_mem_recv(p->session, room, (size_t)n) < 0)
			break;
	}
	/* Calls that are still open are freed by their streams' closing. */
	for (int32_t id = 1; id < 4096; id += 2) {
		struct served *c = nghttp2_session_get_stream_user_data(p->session, id);
		if (c)
			buf_done(&c->in);
		free(c);
	}
	nghttp2_session_del(p->session);
	close(p->fd);
	free(p);
	return 0;
}

static int server_main(void *arg)
{
	struct server *s = arg;
	int fd;

	while ((fd = fiber_accept(s->fd, NULL, NULL)) >= 0) {
		struct peer *p = mem_zalloc(sizeof *p);
		p->server = s;
		p->fd = fd;
		s->connections++;
		CHECK_INT(fiber_group_spawn(&s->group, peer_main, p, NULL, "peer"), 0);
	}
	return 0;
}

static void server_start(struct server *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	*s = (struct server){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) };
	(void)snprintf(s->path, sizeof s->path, "/tmp/c8s-grpc-%d-%" PRIx64, (int)getpid(), random_u64());
	(void)snprintf(s->url, sizeof s->url, "unix:%s", s->path);
	memcpy(a.sun_path, s->path, sizeof a.sun_path);
	CHECK(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(s->fd, 16) == 0);
	fiber_group_init(&s->group);
	s->fiber = start(server_main, s);
}

static void server_stop(struct server *s)
{
	fiber_stop(s->fiber);
	fiber_group_done(&s->group);
	close(s->fd);
	unlink(s->path);
}

/* ---- the client ---- */

static struct grpc_channel *open_channel(const char *first, const char *second)
{
	static const struct http_header metadata[] = { { STR_INIT("authorization"), STR_INIT("Bearer t") } };
	const char *endpoints[] = { first, second, NULL };
	struct grpc_options o = { .endpoints = endpoints, .metadata = metadata, .n_metadata = 1,
				  .connect_timeout_ms = 200 };
	struct grpc_channel *c;
	struct err err = ERR_INIT;

	if (grpc_channel_new(&o, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static __attribute__((noinline)) void check_call(struct grpc_channel *c, str path, unsigned flags, str request, int want,
						 const char *text)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	struct err err = ERR_INIT;
	int r = grpc_call(c, path, flags, request, &m, NULL, &err);

	if (r != want)
		fail_msg(STR_FMT ": %d (%s) instead of %d", STR_ARG(path), r, err.msg, want);
	CHECK_STR(r < 0 ? err_str(&err) : grpc_message_str(m), text);
}

FIBER_TEST(grpc_calls)
{
	struct server s;

	server_start(&s);
	struct grpc_channel *c = open_channel(s.url, NULL);
	check_call(c, STR("/t/Echo"), 0, STR("hello"), 0, "hello");
	check_call(c, STR("/t/Echo"), 0, STR_NONE, 0, "");
	check_call(c, STR("/t/Status"), 0, STR("x"), -ERR_NOT_FOUND, "no such thing!");
	check_call(c, STR("/t/Http"), 0, STR("x"), -ERR_UNAVAILABLE, "grpc: status Unavailable (HTTP status 503)");
	check_call(c, STR("/t/Compressed"), 0, STR("x"), -ERR_INTERNAL,
		   "grpc: received a compressed message, which was not asked for");
	check_call(c, STR("/t/Large"), 0, STR("x"), -ERR_TOO_LARGE,
		   "grpc: received a message of 2130706432 bytes; at most 4194304 are taken");
	check_call(c, STR("/t/Told"), 0, STR("x"), 0, "Bearer t none");
	{
		DEADLINE_SCOPE(5000);
		check_call(c, STR("/t/Told"), 0, STR("x"), 0, "Bearer t timeout");
	}
	CHECK_INT(s.connections, 1);
	grpc_channel_free(c);
	server_stop(&s);
}

FIBER_TEST(grpc_deadline_and_cancel)
{
	struct server s;
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;

	server_start(&s);
	struct grpc_channel *c = open_channel(s.url, NULL);
	{
		DEADLINE_SCOPE(20);
		CHECK_INT(grpc_call(c, STR("/t/Silence"), GRPC_IDEMPOTENT, STR("x"), &m, NULL, NULL), -ERR_TIMEOUT);
	}
	check_call(c, STR("/t/Echo"), 0, STR("still"), 0, "still");
	CHECK_INT(s.connections, 1);
	grpc_channel_free(c);
	server_stop(&s);
}

/* What certainly was not handled is made again; what may have been is not, unless it is idempotent. */
FIBER_TEST(grpc_made_again)
{
	static const struct {
		const char *path;
		unsigned flags;
		int r;
		unsigned calls;
	} t[] = {
		{ "/t/Refuse", 0, 0, 2 },
		{ "/t/Goaway", 0, 0, 2 },
		{ "/t/Drop", GRPC_IDEMPOTENT, 0, 2 },
		{ "/t/Drop", 0, -ERR_TIMEOUT, 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
		struct server s;
		int status;
		server_start(&s);
		struct grpc_channel *c = open_channel(s.url, NULL);
		int r = grpc_call(c, str_of(t[i].path), t[i].flags, STR("x"), &m, &status, NULL);
		CHECK_ROW(i, r == t[i].r);
		CHECK_ROW(i, status == (t[i].r ? -1 : GRPC_OK));
		CHECK_ROW(i, s.calls == t[i].calls);
		grpc_channel_free(c);
		server_stop(&s);
	}
}

FIBER_TEST(grpc_failover)
{
	struct server dead, s;

	server_start(&dead);
	server_stop(&dead);
	server_start(&s);
	struct grpc_channel *c = open_channel(dead.url, s.url);
	check_call(c, STR("/t/Echo"), 0, STR("a"), 0, "a");
	CHECK_STR(grpc_channel_endpoint(c), s.url);
	grpc_channel_free(c);

	/* One that accepts but never speaks. */
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int mute = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path, dead.path, sizeof a.sun_path);
	CHECK(bind(mute, (struct sockaddr *)&a, sizeof a) == 0 && listen(mute, 4) == 0);
	c = open_channel(dead.url, s.url);
	check_call(c, STR("/t/Echo"), 0, STR("b"), 0, "b");
	uint64_t generation = grpc_channel_generation(c);
	grpc_channel_move(c, generation);
	check_call(c, STR("/t/Echo"), 0, STR("c"), 0, "c");
	CHECK(grpc_channel_generation(c) > generation);
	grpc_channel_free(c);
	close(mute);
	unlink(dead.path);

	c = open_channel(dead.url, NULL);
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	CHECK_INT(grpc_call(c, STR("/t/Echo"), 0, STR("x"), &m, NULL, NULL), -ERR_UNAVAILABLE);
	grpc_channel_free(c);
	server_stop(&s);
}

/* Who connects and is sent away at once gives up, instead of trying for ever. */
FIBER_TEST(grpc_unwelcoming_server)
{
	CLEANUP(grpc_message_freep) struct grpc_message *m = NULL;
	struct server s;
	DEADLINE_SCOPE(10000);

	server_start(&s);
	s.unwelcoming = true;
	struct grpc_channel *c = open_channel(s.url, NULL);
	CHECK_INT(grpc_call(c, STR("/t/Echo"), 0, STR("x"), &m, NULL, NULL), -ERR_UNAVAILABLE);
	s.unwelcoming = false;
	check_call(c, STR("/t/Echo"), 0, STR("x"), 0, "x");
	grpc_channel_free(c);
	server_stop(&s);
}

/* ---- many at a time ---- */

enum { CALLERS = 200, CALLS_EACH = 10 };

struct caller {
	struct grpc_channel *channel;
	unsigned number;
};

static int caller_main(void *arg)
{
	struct caller *me = arg;

	for (unsigned i = 0; i < CALLS_EACH; i++) {
		char text[2000];
		memset(text, 'a' + (int)(me->number % 26), sizeof text);
		text[sizeof text - 1] = '\0';
		check_call(me->channel, STR("/t/Echo"), 0, str_of(text), 0, text);
	}
	return 0;
}

FIBER_TEST(grpc_many_callers)
{
	struct fiber *fibers[CALLERS];
	CLEANUP(mem_freep) struct caller *callers = mem_array(CALLERS, sizeof *callers);
	struct server s;

	server_start(&s);
	struct grpc_channel *c = open_channel(s.url, NULL);
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ c, i };
		fibers[i] = start(caller_main, &callers[i]);
	}
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK_INT(join(fibers[i]), 0);
	CHECK_INT(s.connections, 1);
	CHECK_INT(s.calls, CALLERS * CALLS_EACH);
	grpc_channel_free(c);
	server_stop(&s);
}

/* ---- streams ---- */

FIBER_TEST(grpc_streams)
{
	struct server s;
	struct grpc_stream *stream;
	struct grpc_message *m;

	server_start(&s);
	struct grpc_channel *c = open_channel(s.url, NULL);
	CHECK_INT(grpc_stream_open(c, STR("/t/Stream"), &stream, NULL), 0);
	for (int i = 0; i < 3; i++) {
		char text[] = { (char)('0' + i), '\0' };
		CHECK_INT(grpc_stream_send(stream, str_of(text), NULL), 0);
		CHECK_INT(grpc_stream_recv(stream, &m, NULL), 1);
		CHECK_STR(grpc_message_str(m), text);
		grpc_message_free(m);
	}
	grpc_stream_half_close(stream);
	CHECK_INT(grpc_stream_send(stream, STR("late"), NULL), -ERR_GONE);
	CHECK_INT(grpc_stream_recv(stream, &m, NULL), 0);
	grpc_stream_free(stream);

	/* One that is given up, with the connection going on. */
	CHECK_INT(grpc_stream_open(c, STR("/t/Stream"), &stream, NULL), 0);
	CHECK(grpc_stream_try_send(stream, STR("x")));
	grpc_stream_free(stream);
	check_call(c, STR("/t/Echo"), 0, STR("after"), 0, "after");

	/* The server goes away. */
	CHECK_INT(grpc_stream_open(c, STR("/t/Stream"), &stream, NULL), 0);
	server_stop(&s);
	CHECK_INT(grpc_stream_recv(stream, &m, NULL), -ERR_UNAVAILABLE);
	CHECK_INT(grpc_stream_send(stream, STR("x"), NULL), -ERR_GONE);
	grpc_stream_free(stream);
	grpc_channel_free(c);
}

enum { FLOOD = 64, FLOOD_BYTES = 256 * 1024 };

static int flood_main(void *arg)
{
	CLEANUP(mem_freep) char *bytes = mem_zalloc(FLOOD_BYTES);

	for (int i = 0; i < FLOOD; i++)
		CHECK_INT(grpc_stream_send(arg, str_span(bytes, FLOOD_BYTES), NULL), 0);
	grpc_stream_half_close(arg);
	return 0;
}

/* More than all windows hold, with a reader that begins late; other calls are not held up. */
FIBER_TEST(grpc_slow_reader)
{
	struct server s;
	struct grpc_stream *stream;
	struct grpc_message *m;
	int n = 0;
	DEADLINE_SCOPE(20000);

	server_start(&s);
	struct grpc_channel *c = open_channel(s.url, NULL);
	CHECK_INT(grpc_stream_open(c, STR("/t/Stream"), &stream, NULL), 0);
	struct fiber *f = start(flood_main, stream);
	while (s.received < FLOOD * (size_t)(GRPC_PREFIX + FLOOD_BYTES))
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	check_call(c, STR("/t/Echo"), 0, STR("past it"), 0, "past it");
	while (grpc_stream_recv(stream, &m, NULL) == 1) {
		n += m->n == FLOOD_BYTES;
		grpc_message_free(m);
	}
	CHECK_INT(n, FLOOD);
	CHECK_INT(join(f), 0);
	grpc_stream_free(stream);
	grpc_channel_free(c);
	server_stop(&s);
}

/* The third message has to wait until the second one is on its way. */
static int sender_main(void *arg)
{
	CLEANUP(mem_freep) char *bytes = mem_zalloc(2 << 20);

	CHECK_INT(grpc_stream_send(arg, STR("first"), NULL), 0);
	CHECK_INT(grpc_stream_send(arg, str_span(bytes, 2 << 20), NULL), 0);
	return grpc_stream_send(arg, STR("third"), NULL);
}

FIBER_TEST(grpc_receiver_is_woken_while_a_sender_waits)
{
	struct server s;
	struct grpc_stream *stream;
	struct grpc_message *m;

	server_start(&s);
	struct grpc_channel *c = open_channel(s.url, NULL);
	CHECK_INT(grpc_stream_open(c, STR("/t/Stream"), &stream, NULL), 0);
	struct fiber *f = start(sender_main, stream);
	CHECK_INT(fiber_yield(NULL), 0);
	CHECK_INT(grpc_stream_recv(stream, &m, NULL), 1);
	CHECK_STR(grpc_message_str(m), "first");
	CHECK(s.received < 1 << 20);
	grpc_message_free(m);
	CHECK_INT(join(f), 0);
	grpc_stream_free(stream);
	grpc_channel_free(c);
	server_stop(&s);
}

TEST(grpc_endpoints_refused)
{
	static const char *const t[] = { "127.0.0.1:2379", "ftp://x:1", "unix:", "https://x:1", "http://", "" };
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const char *endpoints[] = { t[i], NULL };
		struct grpc_options o = { .endpoints = endpoints };
		struct grpc_channel *c;
		int r = grpc_channel_new(&o, &c, NULL);
		CHECK_ROW(i, r == -ERR_BAD_REQUEST);
	}
}
