/*
 * Streams as clients see them, over real sockets. Containers and pods are made of pipes here: the functions below stand in for
 * container*.c and sandbox*.c.
 */
#include "runtime/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "net/http_client.h"
#include "net/spdy.h"
#include "net/websocket.h"

enum { FLOOD = 3 << 20, PIECE = 16 << 10 };

static struct runtime runtime;
static struct container container;
static struct sandbox sandbox;
static unsigned last_width, last_height;
static bool was_killed;

/* ---- containers made of pipes ---- */

struct exec {
	int fds[3];
	str what;
	bool ended;
	int code;
	struct fiber_cond changed;
	struct fiber *fiber;
};

int container_find(struct runtime *r, str id, struct container **ret, struct err *err)
{
	(void)r;
	if (!str_eq(id, STR("c1")))
		return err_set(err, ERR_NOT_FOUND, "not found");
	*ret = &container;
	return 0;
}

void container_unref(struct container *c) { (void)c; }

static void echo(int from, int to)
{
	char room[1000];
	ssize_t n;
	while ((n = fiber_read(from, room, sizeof(room), NULL)) > 0 && fiber_write(to, room, (size_t)n, NULL) == 0)
		;
}

static void flood(int to)
{
	static const char room[PIECE];
	for (size_t i = 0; i < FLOOD / PIECE; i++)
		if (fiber_write(to, room, PIECE, NULL) < 0)
			return;
}

static void end(struct exec *e)
{
	for (int i = 0; i < 3; i++)
		if (e->fds[i] >= 0 && (i == 0 || e->fds[i] != e->fds[0]))
			close(e->fds[i]);
	e->ended = true;
	fiber_cond_broadcast(&e->changed);
}

static int run(void *arg)
{
	struct exec *e = arg;
	struct err err = ERR_INIT;
	if (str_eq(e->what, STR("echo"))) {
		echo(e->fds[0], e->fds[1]);
	} else if (str_eq(e->what, STR("both"))) {
		CHECK_INT(fiber_write(e->fds[1], "out", 3, &err), 0);
		CHECK_INT(fiber_write(e->fds[2], "err", 3, &err), 0);
		e->code = 3;
	} else if (str_eq(e->what, STR("flood"))) {
		flood(e->fds[1]);
	} else {
		was_killed = fiber_sleep_ms(1000000, &err) == -ERR_CANCELED;
	}
	end(e);
	return 0;
}

int exec_start(struct container *c, const struct exec_options *o, struct exec **ret, int *ret_terminal, struct err *err)
{
	int pair[2];
	(void)c;
	struct exec *e = mem_zalloc(sizeof(*e));
	VAL_EACH(arg, o->args)
		e->what = val_as_str(*arg);
	fiber_cond_init(&e->changed, "a process");
	if (str_eq(e->what, STR("missing"))) {
		free(e);
		return err_set(err, ERR_INTERNAL, "exec: \"missing\": executable file not found in $PATH");
	}
	if (o->terminal) {
		CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		*ret_terminal = pair[0];
		e->fds[0] = e->fds[1] = e->fds[2] = pair[1];
	}
	for (int i = 0; i < 3; i++) {
		if (!o->terminal)
			e->fds[i] = dup(o->stdio[i]);
		fcntl(e->fds[i], F_SETFL, O_NONBLOCK);
	}
	e->fiber = start(run, e);
	*ret = e;
	return 0;
}

int exec_wait(struct exec *e, int *ret_code, struct err *err)
{
	int r = 0;
	while (r == 0 && !e->ended)
		r = fiber_cond_wait(&e->changed, err);
	*ret_code = e->code;
	return r;
}

void exec_free(struct exec *e)
{
	if (!e)
		return;
	(void)fiber_stop(e->fiber);
	free(e);
}

int exec_resize(struct exec *e, unsigned width, unsigned height, struct err *err)
{
	(void)e, (void)err;
	last_width = width;
	last_height = height;
	return 0;
}

int container_resize(struct container *c, unsigned width, unsigned height, struct err *err)
{
	(void)c;
	return exec_resize(NULL, width, height, err);
}

/* A monitor that sends one frame to each output, then what it gets back as it came, until the input ends. */
static int monitor(void *arg)
{
	int fd = *(int *)arg;
	unsigned char head[5];
	char room[1000];
	CHECK_INT(fiber_write(fd, "\1\0\0\0\2hi\2\0\0\0\2no", 14, NULL), 0);
	while (fiber_read(fd, head, sizeof(head), NULL) == 5 && head[0] == 0) {
		CHECK(fiber_read(fd, room, head[4], NULL) == head[4]);
		head[0] = 1;
		CHECK_INT(fiber_write(fd, head, 5, NULL), 0);
		CHECK_INT(fiber_write(fd, room, head[4], NULL), 0);
	}
	CHECK_INT(head[0], 3);
	close(fd);
	return 0;
}

int container_attach(struct container *c, int *ret_socket, struct err *err)
{
	static int ends[2];
	(void)c, (void)err;
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	CHECK_INT(fiber_spawn(monitor, &ends[1], NULL, NULL, "monitor"), 0);
	*ret_socket = ends[0];
	return 0;
}

int sandbox_find(struct runtime *r, str id, struct sandbox **ret, struct err *err)
{
	(void)r, (void)id, (void)err;
	*ret = &sandbox;
	return 0;
}

void sandbox_unref(struct sandbox *s) { (void)s; }

const char *sandbox_netns(const struct sandbox *s, struct arena *a)
{
	(void)s, (void)a;
	return NULL;
}

/* ---- a server and its client ---- */

struct world {
	struct arena arena;
	struct stream_server *server;
	struct fiber *serving;
	struct http_client *client;
};

static int serve(void *arg)
{
	return stream_server_run(arg, NULL);
}

static void open_world(struct world *w)
{
	*w = (struct world){ 0 };
	memset(&runtime, 0, sizeof(runtime));
	memcpy(sandbox.id, "s1", 3);
	sandbox.state = SANDBOX_READY;
	last_width = last_height = 0;
	was_killed = false;
	CHECK_INT(stream_server_new(&runtime, &w->server, NULL), 0);
	w->serving = start(serve, w->server);
	w->client = http_client_new(&(struct http_client_options){ 0 });
}

static void close_world(struct world *w)
{
	http_client_free(w->client);
	(void)fiber_stop(w->serving);
	stream_server_free(w->server);
	arena_done(&w->arena);
}

static str url_of(struct world *w, const struct stream_request *q)
{
	str url;
	struct err err = ERR_INIT;
	if (stream_url(w->server, q, &w->arena, &url, &err) < 0)
		fail_msg("%s", err.msg);
	return url;
}

static struct stream_request command(struct world *w, const char *what)
{
	return (struct stream_request){ .kind = STREAM_EXEC, .id = STR("c1"), .args = LIST(&w->arena, VAL_STR(str_of(what))), .in = true,
					.out = true, .err = true };
}

static int status_of(struct world *w, const char *method, str url)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	CHECK_INT(http_call_open(w->client, &(struct http_request){ .method = str_of(method), .url = url }, &call, NULL), 0);
	CHECK_INT(http_call_head(call, &head, NULL), 0);
	return head->status;
}

/* ---- SPDY ---- */

static struct spdy *dial_spdy(struct world *w, const struct stream_request *q, const char *protocol)
{
	const char *protocols[] = { protocol, NULL };
	struct spdy *session = NULL;
	struct err err = ERR_INIT;
	struct http_request req = { .method = STR("POST"), .url = url_of(w, q) };
	if (spdy_dial(w->client, &req, protocols, &(struct spdy_options){ .client = true }, &session, NULL, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return session;
}

static struct spdy_stream *open_stream(struct spdy *s, const char *type, const char *port, const char *id)
{
	struct http_header headers[] = { { STR("streamtype"), str_of(type) }, { STR("port"), str_of(port) }, { STR("requestid"), str_of(id) } };
	struct spdy_stream *st = NULL;
	struct err err = ERR_INIT;
	if (spdy_open(s, headers, id ? 3 : port ? 2 : 1, &st, &err) < 0)
		fail_msg("%s: %s", type, err.msg);
	return st;
}

/* All of a stream, which is freed. */
static str drain(struct world *w, struct spdy_stream *st)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(2 * FLOOD);
	ssize_t n;
	while ((n = spdy_stream_read(st, buf_reserve(&all, PIECE), PIECE, NULL)) > 0)
		buf_commit(&all, (size_t)n);
	spdy_stream_free(st);
	return arena_str(&w->arena, buf_str(&all));
}

struct client {
	struct spdy *session;
	struct spdy_stream *error, *in, *out, *err, *resize;
};

static struct client dial_exec(struct world *w, const struct stream_request *q, const char *protocol)
{
	struct client c = { .session = dial_spdy(w, q, protocol) };
	c.error = open_stream(c.session, "error", NULL, NULL);
	if (q->in)
		c.in = open_stream(c.session, "stdin", NULL, NULL);
	if (q->out)
		c.out = open_stream(c.session, "stdout", NULL, NULL);
	if (q->err)
		c.err = open_stream(c.session, "stderr", NULL, NULL);
	if (q->terminal)
		c.resize = open_stream(c.session, "resize", NULL, NULL);
	return c;
}

static void close_client(struct client *c)
{
	spdy_stream_free(c->in);
	spdy_stream_free(c->resize);
	spdy_free(c->session);
}

FIBER_TEST(stream_spdy_echo)
{
	struct world w;
	open_world(&w);
	struct stream_request q = command(&w, "echo");
	struct client c = dial_exec(&w, &q, "v4.channel.k8s.io");
	CHECK_INT(spdy_stream_write(c.in, STR("hello "), NULL), 0);
	CHECK_INT(spdy_stream_write(c.in, STR("there"), NULL), 0);
	CHECK_INT(spdy_stream_close_write(c.in, NULL), 0);
	CHECK_STR(drain(&w, c.out), "hello there");
	CHECK_STR(drain(&w, c.err), "");
	CHECK_STR(drain(&w, c.error), "{\"metadata\":{},\"status\":\"Success\"}");
	close_client(&c);
	close_world(&w);
}

#define EXIT_3 \
	"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated with non-zero exit code: command terminated " \
	"with exit code 3\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"3\"}]}}"

/* How it went, in every version of the protocol. */
FIBER_TEST(stream_spdy_exit_code)
{
	static const struct {
		const char *protocol, *status;
	} t[] = {
		{ "v4.channel.k8s.io", EXIT_3 },
		{ "v3.channel.k8s.io", "command terminated with non-zero exit code: command terminated with exit code 3" },
		{ "v2.channel.k8s.io", "command terminated with non-zero exit code: command terminated with exit code 3" },
	};
	struct world w;
	open_world(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct stream_request q = command(&w, "both");
		q.in = false;
		struct client c = dial_exec(&w, &q, t[i].protocol);
		CHECK_STR_ROW(i, drain(&w, c.out), "out");
		CHECK_STR_ROW(i, drain(&w, c.err), "err");
		CHECK_STR_ROW(i, drain(&w, c.error), t[i].status);
		close_client(&c);
	}
	struct stream_request q = command(&w, "missing");
	struct client c = dial_exec(&w, &q, "v4.channel.k8s.io");
	str status = drain(&w, c.error);
	CHECK(str_find(status, STR("Internal error occurred: error executing command in container: exec: \\\"missing\\\"")) >= 0);
	CHECK(str_find(status, STR("\"code\":500")) >= 0);
	spdy_stream_free(c.out);
	spdy_stream_free(c.err);
	close_client(&c);
	close_world(&w);
}

/* A slow reader gets everything; what it has not read is nowhere in between. */
FIBER_TEST(stream_spdy_flood)
{
	struct world w;
	open_world(&w);
	struct stream_request q = command(&w, "flood");
	q.in = q.err = false;
	struct client c = dial_exec(&w, &q, "v4.channel.k8s.io");
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	CHECK_INT(drain(&w, c.out).n, FLOOD);
	CHECK_STR(drain(&w, c.error), "{\"metadata\":{},\"status\":\"Success\"}");
	close_client(&c);
	close_world(&w);
}

FIBER_TEST(stream_spdy_terminal)
{
	char room[16];
	struct world w;
	open_world(&w);
	struct stream_request q = command(&w, "echo");
	q.err = false;
	q.terminal = true;
	struct client c = dial_exec(&w, &q, "v4.channel.k8s.io");
	CHECK_INT(spdy_stream_write(c.resize, STR("{\"Width\":100,\"Hei"), NULL), 0);
	CHECK_INT(spdy_stream_write(c.resize, STR("ght\":30}\n{\"Width\":80,\"Height\":24}\n{\"Width\":-1,\"Height\":1}\n"), NULL), 0);
	CHECK_INT(spdy_stream_write(c.in, STR("x"), NULL), 0);
	CHECK_INT(spdy_stream_read(c.out, room, sizeof(room), NULL), 1);
	while (last_width != 80)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_INT(last_height, 24);
	/* the client goes: so does the process */
	spdy_stream_free(c.out);
	spdy_stream_free(c.error);
	close_client(&c);
	close_world(&w);
}

FIBER_TEST(stream_client_goes)
{
	struct world w;
	open_world(&w);
	struct stream_request q = command(&w, "sleep");
	struct client c = dial_exec(&w, &q, "v4.channel.k8s.io");
	spdy_stream_free(c.out);
	spdy_stream_free(c.err);
	spdy_stream_free(c.error);
	close_client(&c);
	while (!was_killed)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	close_world(&w);
}

/* ---- WebSocket ---- */

static struct ws *dial_ws(struct world *w, const struct stream_request *q, const char *protocol)
{
	const char *protocols[] = { protocol, NULL };
	struct ws *ws = NULL;
	struct err err = ERR_INIT;
	struct http_request req = { .method = STR("GET"), .url = url_of(w, q) };
	if (ws_dial(w->client, &req, protocol ? protocols : NULL, &(struct ws_options){ .client = true }, &ws, NULL, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return ws;
}

/* All messages until the end, one per line; bytes below a space are shown as digits. */
static str messages(struct world *w, struct ws *ws)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(1 << 20);
	str m;
	while (ws_read(ws, &m, NULL) > 0) {
		for (size_t i = 0; i < m.n; i++)
			buf_addc(&all, m.p[i] < ' ' ? (char)('0' + m.p[i]) : m.p[i]);
		buf_addc(&all, '\n');
	}
	CHECK_INT(ws_close_code(ws), WS_NORMAL);
	ws_free(ws);
	return arena_str(&w->arena, buf_str(&all));
}

static bool has(str text, const char *what)
{
	return str_find(text, str_of(what)) >= 0;
}

FIBER_TEST(stream_ws_protocols)
{
	static const struct {
		const char *protocol, *out, *err, *status;
	} t[] = {
		{ "v5.channel.k8s.io", "1out\n", "2err\n", "3{\"metadata\":{},\"status\":\"Failure\"" },
		{ "v4.channel.k8s.io", "1out\n", "2err\n", "3{\"metadata\":{},\"status\":\"Failure\"" },
		{ "v4.base64.channel.k8s.io", "1b3V0\n", "2ZXJy\n", "3eyJtZXRhZGF0YSI6e30" },
		{ "channel.k8s.io", "1out\n", "2err\n", "3command terminated with non-zero exit code" },
		{ "base64.channel.k8s.io", "1b3V0\n", "2ZXJy\n", "3Y29tbWFuZCB0ZXJtaW5hdGVk" },
		{ NULL, "1out\n", "2err\n", "3command terminated" },
	};
	struct world w;
	open_world(&w);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct stream_request q = command(&w, "both");
		str all = messages(&w, dial_ws(&w, &q, t[i].protocol));
		CHECK_ROW(i, str_starts(all, STR("1\n")));
		CHECK_ROW(i, has(all, t[i].out) && has(all, t[i].err) && has(all, t[i].status));
	}
	close_world(&w);
}

/* stdin, its end, and sizes. */
FIBER_TEST(stream_ws_input)
{
	struct world w;
	open_world(&w);
	struct stream_request q = command(&w, "echo");
	struct ws *ws = dial_ws(&w, &q, "v5.channel.k8s.io");
	CHECK_INT(ws_write(ws, WS_BINARY, str_span("\0abc", 4), NULL), 0);
	CHECK_INT(ws_write(ws, WS_BINARY, str_span("\7?", 2), NULL), 0);
	CHECK_INT(ws_write(ws, WS_BINARY, STR_NONE, NULL), 0);
	CHECK_INT(ws_write(ws, WS_BINARY, str_span("\377\0", 2), NULL), 0);
	str all = messages(&w, ws);
	CHECK(has(all, "1abc\n") && has(all, "3{\"metadata\":{},\"status\":\"Success\"}\n"));
	q = command(&w, "echo");
	q.err = false;
	q.terminal = true;
	ws = dial_ws(&w, &q, "v4.base64.channel.k8s.io");
	CHECK_INT(ws_write(ws, WS_TEXT, STR("4eyJXaWR0aCI6NywiSGVpZ2h0Ijo5fQ=="), NULL), 0);
	while (last_width != 7)
		CHECK_INT(fiber_sleep_ms(1, NULL), 0);
	CHECK_INT(last_height, 9);
	ws_free(ws);
	close_world(&w);
}

FIBER_TEST(stream_attach_frames)
{
	struct world w;
	open_world(&w);
	struct stream_request q = { .kind = STREAM_ATTACH, .id = STR("c1"), .in = true, .out = true, .err = true };
	struct client c = dial_exec(&w, &q, "v4.channel.k8s.io");
	CHECK_INT(spdy_stream_write(c.in, STR("in"), NULL), 0);
	CHECK_INT(spdy_stream_close_write(c.in, NULL), 0);
	CHECK_STR(drain(&w, c.out), "hiin");
	CHECK_STR(drain(&w, c.err), "no");
	CHECK_STR(drain(&w, c.error), "{\"metadata\":{},\"status\":\"Success\"}");
	close_client(&c);
	close_world(&w);
}

/* ---- tokens ---- */

FIBER_TEST(stream_tokens)
{
	struct world w;
	str url;
	open_world(&w);
	struct stream_request q = command(&w, "echo");
	str first = url_of(&w, &q);
	CHECK(str_starts(first, STR("http://127.0.0.1:")));
	/* once, whatever came of it, and only for what it was made for */
	CHECK_INT(status_of(&w, "DELETE", first), 405);
	ptrdiff_t at = str_find(first, STR("/exec/"));
	str other = arena_printf(&w.arena, STR_FMT "/attach/" STR_FMT, (int)at, first.p, STR_ARG(str_skip(first, (size_t)at + 6)));
	CHECK_INT(status_of(&w, "GET", other), 404);
	CHECK_INT(status_of(&w, "POST", first), 400);
	CHECK_INT(status_of(&w, "POST", first), 404);
	/* so many at a time */
	for (int i = 0; i < 1000; i++)
		url_of(&w, &q);
	CHECK_INT(stream_url(w.server, &q, &w.arena, &url, NULL), -ERR_TOO_MANY_REQUESTS);
	struct stream_request wrong = q;
	wrong.terminal = true;
	CHECK_INT(stream_url(w.server, &wrong, &w.arena, &url, NULL), -ERR_INVALID);
	wrong = (struct stream_request){ .kind = STREAM_EXEC, .id = STR("c1") };
	CHECK_INT(stream_url(w.server, &wrong, &w.arena, &url, NULL), -ERR_INVALID);
	close_world(&w);
}

static int token_life(void *arg)
{
	struct world w;
	str url;
	(void)arg;
	open_world(&w);
	struct stream_request q = command(&w, "echo");
	for (int i = 0; i < 1000; i++)
		url_of(&w, &q);
	CHECK_INT(fiber_sleep_ms(59000, NULL), 0);
	CHECK_INT(stream_url(w.server, &q, &w.arena, &url, NULL), -ERR_TOO_MANY_REQUESTS);
	CHECK_INT(fiber_sleep_ms(1001, NULL), 0);
	CHECK_INT(stream_url(w.server, &q, &w.arena, &url, NULL), 0);
	close_world(&w);
	return 0;
}

/* A minute, and no longer. */
TEST(stream_token_life)
{
	clock_virtual_set(1, 1);
	CHECK_INT(run_loop(token_life, NULL), 0);
	clock_virtual_off();
}

/* ---- port-forward ---- */

/* A pod's server: says hello, returns what it gets, ends. */
static int listener = -1;

static int echo_connection(void *arg)
{
	int fd = (int)(intptr_t)arg;
	CHECK_INT(fiber_write(fd, "hello:", 6, NULL), 0);
	echo(fd, fd);
	close(fd);
	return 0;
}

static int listen_loop(void *arg)
{
	int fd;
	(void)arg;
	while ((fd = fiber_accept(listener, NULL, NULL)) >= 0)
		CHECK_INT(fiber_spawn(echo_connection, (void *)(intptr_t)fd, NULL, NULL, "echo"), 0);
	return 0;
}

/* The port; with v6 only at ::1. */
static const char *open_listener(struct world *w, bool v6, bool listens)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = { .v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t n = v6 ? sizeof(address.v6) : sizeof(address.v4);
	if (v6)
		address.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	listener = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK_INT(bind(listener, &address.any, n), 0);
	CHECK_INT(getsockname(listener, &address.any, &n), 0);
	if (listens)
		CHECK_INT(listen(listener, 5), 0);
	return arena_printf(&w->arena, "%u", ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port)).p;
}

static struct stream_request forward(struct world *w, const char *port)
{
	int64_t n = 0;
	CHECK(str_to_i64(str_of(port), &n));
	return (struct stream_request){ .kind = STREAM_PORT_FORWARD, .id = STR("s1"), .ports = LIST(&w->arena, val_of_int(n)) };
}

/* Two connections over one session. */
static void forward_two(struct world *w, struct spdy *session, const char *port)
{
	static const char *const ids[] = { "0", "1" };
	struct spdy_stream *data[2], *error[2];
	for (int i = 0; i < 2; i++) {
		error[i] = open_stream(session, "error", port, ids[i]);
		CHECK_INT(spdy_stream_close_write(error[i], NULL), 0);
		data[i] = open_stream(session, "data", port, ids[i]);
	}
	for (int i = 0; i < 2; i++) {
		CHECK_INT(spdy_stream_write(data[i], str_of(ids[i]), NULL), 0);
		CHECK_INT(spdy_stream_close_write(data[i], NULL), 0);
		CHECK_STR(drain(w, data[i]), i ? "hello:1" : "hello:0");
		CHECK_STR(drain(w, error[i]), "");
	}
}

static void forward_to(bool v6)
{
	struct world w;
	open_world(&w);
	const char *port = open_listener(&w, v6, true);
	struct fiber *f = start(listen_loop, NULL);
	struct stream_request q = forward(&w, port);
	struct spdy *session = dial_spdy(&w, &q, "portforward.k8s.io");
	forward_two(&w, session, port);
	spdy_free(session);
	(void)fiber_stop(f);
	close(listener);
	close_world(&w);
}

FIBER_TEST(stream_forward_spdy) { forward_to(false); }
FIBER_TEST_IF(access("/proc/net/if_inet6", R_OK) == 0, stream_forward_spdy_v6) { forward_to(true); }

FIBER_TEST(stream_forward_refused)
{
	struct world w;
	open_world(&w);
	const char *port = open_listener(&w, false, false);
	struct stream_request q = forward(&w, port);
	struct spdy *session = dial_spdy(&w, &q, "portforward.k8s.io");
	struct spdy_stream *error = open_stream(session, "error", port, "7"), *data = open_stream(session, "data", port, "7");
	str text = drain(&w, error), want = arena_printf(&w.arena, "error forwarding port %s to pod s1, uid : failed to execute portforward", port);
	CHECK(str_starts(text, want));
	CHECK(has(text, "connect: connection refused"));
	spdy_stream_free(data);
	spdy_free(session);
	close(listener);
	close_world(&w);
}

/* SPDY inside of WebSocket messages: both ends of the pipe are pumped by hand. */
struct pump {
	struct ws *ws;
	int fd;
};

static int pump_up(void *arg)
{
	struct pump *p = arg;
	char room[1000];
	ssize_t n;
	while ((n = fiber_read(p->fd, room, sizeof(room), NULL)) > 0 && ws_write(p->ws, WS_BINARY, str_span(room, (size_t)n), NULL) == 0)
		;
	return 0;
}

static int pump_down(void *arg)
{
	struct pump *p = arg;
	str m;
	while (ws_read(p->ws, &m, NULL) > 0 && fiber_write(p->fd, m.p, m.n, NULL) == 0)
		;
	(void)shutdown(p->fd, SHUT_RDWR);
	return 0;
}

FIBER_TEST(stream_forward_tunnel)
{
	struct world w;
	int ends[2];
	struct spdy *session;
	open_world(&w);
	const char *port = open_listener(&w, false, true);
	struct fiber *f = start(listen_loop, NULL);
	struct stream_request q = forward(&w, port);
	struct pump p = { .ws = dial_ws(&w, &q, "SPDY/3.1+portforward.k8s.io") };
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	p.fd = ends[0];
	struct fiber *up = start(pump_up, &p), *down = start(pump_down, &p);
	CHECK_INT(spdy_new(stream_of_fd(ends[1]), &(struct spdy_options){ .client = true }, &session, NULL), 0);
	forward_two(&w, session, port);
	spdy_free(session);
	(void)fiber_stop(up);
	(void)fiber_stop(down);
	close(ends[0]);
	ws_free(p.ws);
	(void)fiber_stop(f);
	close(listener);
	close_world(&w);
}

FIBER_TEST(stream_forward_channels)
{
	struct world w;
	str m;
	open_world(&w);
	const char *port = open_listener(&w, false, true);
	struct fiber *f = start(listen_loop, NULL);
	struct stream_request q = forward(&w, port);
	struct ws *ws = dial_ws(&w, &q, "v4.channel.k8s.io");
	CHECK_INT(ws_write(ws, WS_BINARY, str_span("\0x", 2), NULL), 0);
	for (char channel = 0; channel < 2; channel++) {
		CHECK(ws_read(ws, &m, NULL) > 0);
		CHECK(m.n == 3 && m.p[0] == channel);
		CHECK_INT((unsigned char)m.p[1] | (unsigned char)m.p[2] << 8, val_as_int(val_at(q.ports, 0)));
	}
	CLEANUP(buf_done) struct buf all = BUF_INIT(1000);
	while (all.n < 7 && ws_read(ws, &m, NULL) > 0) {
		CHECK(m.n && m.p[0] == 0);
		buf_add(&all, str_skip(m, 1));
	}
	CHECK_STR(buf_str(&all), "hello:x");
	ws_free(ws);
	(void)fiber_stop(f);
	close(listener);
	close_world(&w);
}
