/* A server with a few handlers, on the loop of the test. */
#ifndef C8S_NET_HTTP_SERVER_TEST_H
#define C8S_NET_HTTP_SERVER_TEST_H

#include "base/buf.h"
#include "base/fiber.h"
#include "net/http.h"

/*
 * GET /hello, /none (no answer), /slow (waits to be canceled), /busy (30 ms, then "done"), /big (8 MiB), /gzip (the
 * same, compressed), /ticks (what ticks_push gives), /peer (the client's certificate), /upgrade (echoes; with ?canceled it
 * is canceled before); POST /echo (up to 1 MiB).
 */
struct test_server {
	struct http_server *server;
	struct fiber *run;
	uint16_t port;
	/* What happened. */
	int begun, canceled, stopped, ended;
	struct http_source *ticks;   /* of the request at work, or NULL */
	struct buf queue;            /* bytes for it */
	bool queue_end;
};

enum { BIG = 8 << 20, ECHO_MAX = 1 << 20 };

/* o: handle and arg are set here; port 0. */
void test_server_start(struct test_server *t, struct http_server_options o, int64_t grace_ms);
/* (suspends) Ends it and looks that nothing is left. */
void test_server_stop(struct test_server *t);
void ticks_push(struct test_server *t, const char *text);
void ticks_end(struct test_server *t);

/* (suspends) Waits until *n has reached want; fails the test after some seconds. */
void wait_for(const int *n, int want);

/* (suspends) A connection in the clear. */
struct stream *test_dial(struct test_server *t) NONNULL_RESULT;
void test_send(struct stream *s, str bytes);
/* (suspends) Everything until the other side closes; up to 64 MiB; the caller's. With an error instead of an end too. */
struct buf test_read_all(struct stream *s);
/* (suspends) At least until end stands there. */
struct buf test_read_until(struct stream *s, const char *end);
void test_skip_until(struct stream *s, const char *end);
/* (suspends) Runs a program (argv ends with NULL) to its end: its standard output; the caller's. */
struct buf test_run(int want_exit, const char *const *argv);

#endif
