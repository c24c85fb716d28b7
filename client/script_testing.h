/*
 * A server that plays a script: whatever it is asked, the next answer is the next of the list, byte by byte as it stands there.
 * What it was asked is kept.
 */
#ifndef C8S_CLIENT_SCRIPT_TESTING_H
#define C8S_CLIENT_SCRIPT_TESTING_H

#include <arpa/inet.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/fiber_test.h"
#include "base/mem.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "codec/codec.h"
#include "net/stream.h"

enum { SCRIPT_MAX = 24 };

struct script {
	int fd;
	uint16_t port;
	struct arena arena;
	struct fiber_group connections;
	struct fiber *fiber;
	str answers[SCRIPT_MAX];
	bool closes[SCRIPT_MAX];        /* the connection ends after it */
	bool stays[SCRIPT_MAX];         /* nothing more is read or written after it, but the connection stays */
	size_t n_answers, at;
	size_t piece;                   /* written so many bytes at a time, with others let run in between; 0: at once */
	str seen[SCRIPT_MAX];           /* requests, head and body */
	size_t n_seen;
	int n_connections;
};

struct script_connection {
	struct script *s;
	int fd;
};

/* Is there a whole request? */
static inline size_t script_complete(str in)
{
	ptrdiff_t end = str_find(in, STR("\r\n\r\n"));
	if (end < 0)
		return 0;
	ptrdiff_t at = str_find(str_head(in, (size_t)end), STR("Content-Length: "));
	int64_t n = 0;
	str line, rest;
	if (at >= 0) {
		(void)str_cut(str_skip(in, (size_t)at + 16), '\r', &line, &rest);
		CHECK(str_to_i64(line, &n));
	}
	size_t all = (size_t)end + 4 + (size_t)n;
	return in.n >= all ? all : 0;
}

static inline int script_write(struct script *s, struct stream *stream, str data)
{
	for (size_t step = s->piece ? s->piece : data.n; data.n; data = str_skip(data, step)) {
		str part = str_head(data, step);
		if (stream_write(stream, part.p, part.n, NULL) < 0)
			return -1;
		if (s->piece && fiber_yield(NULL) < 0)
			return -1;
	}
	return 0;
}

static inline int script_serve(void *arg)
{
	struct script_connection c = *(struct script_connection *)arg;
	struct script *s = c.s;
	free(arg);
	CLEANUP(stream_freep) struct stream *stream = stream_of_fd(c.fd);
	CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 20);
	char p[1000];
	ssize_t n;
	while ((n = stream_read(stream, p, sizeof(p), NULL)) > 0) {
		buf_add(&in, str_span(p, (size_t)n));
		if (!script_complete(buf_str(&in)))
			continue;
		CHECK(s->n_seen < SCRIPT_MAX);
		s->seen[s->n_seen++] = arena_str(&s->arena, buf_str(&in));
		buf_reset(&in);
		if (s->at == s->n_answers)
			return 0;
		size_t at = s->at++;
		if (script_write(s, stream, s->answers[at]) < 0 || s->closes[at])
			return 0;
		while (s->stays[at])
			if (fiber_sleep_ms(1000, NULL) < 0)
				return 0;
	}
	return 0;
}

static inline int script_accept(void *arg)
{
	struct script *s = arg;
	int fd;
	while ((fd = fiber_accept(s->fd, NULL, NULL)) >= 0) {
		struct script_connection *c = mem_alloc(sizeof(*c));
		*c = (struct script_connection){ s, fd };
		s->n_connections++;
		CHECK_INT(fiber_group_spawn(&s->connections, script_serve, c, NULL, "connection"), 0);
	}
	return 0;
}

static inline void script_init(struct script *s)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	*s = (struct script){ .arena = ARENA_INIT };
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(bind(s->fd, (struct sockaddr *)&a, n) == 0 && listen(s->fd, 10) == 0);
	CHECK_INT(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	fiber_group_init(&s->connections);
	s->fiber = start(script_accept, s);
}

static inline void script_done(struct script *s)
{
	(void)fiber_stop(s->fiber);
	fiber_group_done(&s->connections);
	close(s->fd);
	arena_done(&s->arena);
}

/* Forgets what was. */
static inline void script_reset(struct script *s)
{
	s->n_answers = s->at = s->n_seen = 0;
	memset(s->closes, 0, sizeof(s->closes));
	memset(s->stays, 0, sizeof(s->stays));
}

static inline void script_add_raw(struct script *s, str answer)
{
	CHECK(s->n_answers < SCRIPT_MAX);
	s->answers[s->n_answers++] = arena_str(&s->arena, answer);
}

/* headers: more of them, each with its \r\n. */
static inline void script_add(struct script *s, int status, const char *headers, const char *type, str body)
{
	str head = arena_printf(&s->arena, "HTTP/1.1 %d X\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status, headers, type, body.n);
	script_add_raw(s, arena_join(&s->arena, head, body));
}

static inline void script_add_json(struct script *s, int status, const char *headers, const char *json)
{
	script_add(s, status, headers, "application/json", str_of(json));
}

static inline struct client *script_client(struct script *s, struct client_config config)
{
	struct client *c = NULL;
	struct err err = ERR_INIT;
	config.server = arena_printf(&s->arena, "http://127.0.0.1:%u", s->port);
	if (client_open(&config, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

/* The value of a header of a request that was seen; STR_NONE: it has none. */
static inline str script_header(const struct script *s, size_t i, const char *name)
{
	char pattern[64];
	str value, rest;
	(void)snprintf(pattern, sizeof(pattern), "\r\n%s: ", name);
	ptrdiff_t at = str_find(s->seen[i], str_of(pattern));
	if (at < 0)
		return STR_NONE;
	(void)str_cut(str_skip(s->seen[i], (size_t)at + strlen(pattern)), '\r', &value, &rest);
	return value;
}

static inline str script_line(const struct script *s, size_t i)
{
	str line, rest;
	(void)str_cut(s->seen[i], '\r', &line, &rest);
	return line;
}

/* The body as JSON, whatever it was sent as. */
static inline str script_body(struct script *s, size_t i)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	str body = str_skip(s->seen[i], (size_t)str_find(s->seen[i], STR("\r\n\r\n")) + 4);
	const struct type *type;
	struct val v;
	if (!proto_is_envelope(body))
		return body;
	CHECK_INT(proto_decode_object(&s->arena, body, &v, &type, NULL), 0);
	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL), 0);
	return arena_str(&s->arena, buf_str(&b));
}

/* "http status: message" with the server's port as PORT. */
static inline str script_error(struct script *s, const struct err *err)
{
	str text = err_str(err), port = arena_printf(&s->arena, ":%u", s->port);
	ptrdiff_t at = str_find(text, port);
	if (at < 0)
		return arena_printf(&s->arena, "%d: %s", err_http_status(err->code), err->msg);
	return arena_printf(&s->arena, "%d: " STR_FMT ":PORT" STR_FMT, err_http_status(err->code), STR_ARG(str_head(text, (size_t)at)),
			    STR_ARG(str_skip(text, (size_t)at + port.n)));
}

#endif
