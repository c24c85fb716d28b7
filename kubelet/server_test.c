#include "kubelet/server.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "kubelet/server_testing.h"
#include "net/stream.h"
#include "net/test_certs.h"

struct row {
	const char *method, *path;
	int status;
	const char *body;
};

static void check_rows(struct fixture *f, const struct row *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fixture_check(f, (int)i, t[i].method, t[i].path, t[i].status, t[i].body);
}

FIBER_TEST(server_paths)
{
	static const struct row t[] = {
		{ "GET", "/pods", 200,
		  "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"p\"},"
		  "\"spec\":{\"containers\":null},\"status\":{}}]}\n" },
		{ "POST", "/pods", 405, "405: Method Not Allowed" },
		{ "GET", "/pods/x", 404, "404: Page Not Found" },
		{ "GET", "/runningpods/", 200,
		  "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\","
		  "\"uid\":\"u1\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"busybox\",\"resources\":{}}]},\"status\":{}}]}\n" },
		{ "GET", "/", 404, "404 page not found\n" },
		{ "GET", "/a/b/c/d/e/f/g/h/i", 404, "404 page not found\n" },
		{ "GET", "/exec/a/b/c/d/e/f/g/h/i", 404, "404: Page Not Found" },
		{ "GET", "/metrics", 200, "metrics{of=\"\"} 1\n" },
		{ "GET", "/metrics/resource", 200, "metrics{of=\"resource\"} 1\n" },
		{ "GET", "/metrics/cadvisor", 200, "metrics{of=\"cadvisor\"} 1\n" },
		{ "GET", "/metrics/other", 404, "404 page not found\n" },
		{ "GET", "/configz", 200, "{\"kubeletconfig\":{\"kind\":\"KubeletConfiguration\",\"maxPods\":110}}" },
		{ "GET", "/healthz", 200, "ok" },
		{ "GET", "/healthz?verbose", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n" },
		{ "GET", "/healthz/syncloop", 200, "ok" },
		{ "GET", "/healthz/nope", 404, "404 page not found\n" },
		{ "GET", "/stats/summary?only_cpu_and_memory=true", 200,
		  "{\n \"node\": {\n  \"nodeName\": \"n1\",\n  \"cpu\": {}\n },\n \"pods\": [\n  {\n   \"podRef\": {\n    \"name\": \"p\"\n   },\n"
		  "   \"containers\": [\n    {\n     \"name\": \"c\",\n     \"cpu\": {}\n    }\n   ]\n  }\n ]\n}" },
		{ "GET", "/stats/container", 404, "404: Page Not Found" },
		{ "GET", "/containerLogs/ns/p", 404, "404: Page Not Found" },
		{ "POST", "/containerLogs/ns/p/c", 405, "405: Method Not Allowed" },
	};
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	check_rows(&f, t, ARRAY_LEN(t));
	f.dead = true;
	fixture_check(&f, 100, "GET", "/healthz", 500, "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n");
	fixture_check(&f, 101, "GET", "/healthz?exclude=syncloop", 200, "ok");
	fixture_check(&f, 102, "GET", "/healthz/syncloop", 500, "internal server error: sync Loop took longer than expected\n");
}

FIBER_TEST(server_without_debugging)
{
	static const struct row t[] = {
		{ "GET", "/containerLogs/ns/p/c", 405, "Debug endpoints are disabled.\n" },
		{ "POST", "/exec/ns/p/c?command=id&output=1", 405, "Debug endpoints are disabled.\n" },
		{ "POST", "/attach/ns/p/c?output=1", 405, "Debug endpoints are disabled.\n" },
		{ "POST", "/portForward/ns/p", 405, "Debug endpoints are disabled.\n" },
		{ "POST", "/run/ns/p/c?cmd=id", 405, "Debug endpoints are disabled.\n" },
		{ "GET", "/runningpods/", 405, "Debug endpoints are disabled.\n" },
		{ "GET", "/logs/", 405, "Debug endpoints are disabled.\n" },
		{ "POST", "/checkpoint/ns/p/c", 404, "404 page not found\n" },
		{ "GET", "/configz", 404, "404 page not found\n" },
		{ "GET", "/healthz", 200, "ok" },
		{ "GET", "/metrics", 200, "metrics{of=\"\"} 1\n" },
	};
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	f.options.no_debugging = true;
	check_rows(&f, t, ARRAY_LEN(t));
}

/* ---- logs ---- */

#define LOGS "/containerLogs/ns/p/"

FIBER_TEST(server_logs)
{
	static const struct row t[] = {
		{ "GET", LOGS "c", 200, "o1\ne1\no2\n" },
		{ "GET", LOGS "c?tailLines=1", 200, "o2\n" },
		{ "GET", LOGS "c?tailLines=0", 200, "" },
		{ "GET", LOGS "c?tail=2", 200, "e1\no2\n" },
		{ "GET", LOGS "c?tail=all", 200, "o1\ne1\no2\n" },
		{ "GET", LOGS "c?limitBytes=4", 200, "o1\ne" },
		{ "GET", LOGS "c?timestamps=true&tailLines=1", 200, "2023-11-14T22:13:22.500000000Z o2\n" },
		{ "GET", LOGS "c?timestamps=False&tailLines=1", 200, "o2\n" },
		{ "GET", LOGS "c?sinceTime=2023-11-14T22:13:21Z", 200, "e1\no2\n" },
		{ "GET", LOGS "c?sinceSeconds=10", 200, "" },
		{ "GET", LOGS "c?sinceSeconds=9223372036854775807", 200, "o1\ne1\no2\n" },
		{ "GET", LOGS "c?stream=Stdout", 200, "o1\no2\n" },
		{ "GET", LOGS "c?stream=Stderr", 200, "e1\n" },
		{ "GET", LOGS "c?previous=true", 200, "before\n" },
		{ "GET", LOGS "i", 200, "before\n" },
		{ "GET", LOGS "c?tailLines=x", 400, "{\"message\": \"Unable to decode query.\"}" },
		{ "GET", LOGS "c?sinceTime=yesterday", 400, "{\"message\": \"Unable to decode query.\"}" },
		{ "GET", LOGS "c?tailLines=-1", 422, "{\"message\": \"Invalid request.\"}" },
		{ "GET", LOGS "c?limitBytes=0", 422, "{\"message\": \"Invalid request.\"}" },
		{ "GET", LOGS "c?sinceSeconds=0", 422, "{\"message\": \"Invalid request.\"}" },
		{ "GET", LOGS "c?sinceSeconds=1&sinceTime=2023-11-14T22:13:21Z", 422, "{\"message\": \"Invalid request.\"}" },
		{ "GET", LOGS "c?stream=Both", 422, "{\"message\": \"Invalid request.\"}" },
		{ "GET", LOGS "c?stream=Stdout&tailLines=1", 422, "{\"message\": \"Invalid request.\"}" },
		{ "GET", "/containerLogs/ns/nope/c", 404, "pod \"nope\" does not exist" },
		{ "GET", LOGS "zz", 404, "container \"zz\" not found in pod \"p\"" },
		{ "GET", LOGS "w", 400, "container \"w\" in pod \"p\" is waiting to start: ContainerCreating" },
		{ "GET", LOGS "pull", 400, "container \"pull\" in pod \"p\" is waiting to start: image can't be pulled" },
		{ "GET", LOGS "off", 400, "container \"off\" in pod \"p\" is waiting to start: trying and failing to pull image" },
		{ "GET", LOGS "w?previous=1", 400, "previous terminated container \"w\" in pod \"p\" not found" },
		{ "GET", LOGS "dead", 400, "container \"dead\" in pod \"p\" is terminated" },
		{ "GET", LOGS "odd", 400, "container \"odd\" in pod \"p\" is waiting to start - no logs yet" },
		{ "GET", LOGS "new", 400, "container \"new\" in pod \"p\" is not available" },
		{ "GET", LOGS "lost", 200, "unable to retrieve container logs for containerd://x" },
	};
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	check_rows(&f, t, ARRAY_LEN(t));
}

struct following {
	struct fixture *f;
	struct reply reply;
	bool done;
};

static int follow(void *arg)
{
	struct following *w = arg;

	w->reply = fixture_ask(w->f, "GET", LOGS "c?follow=true&tailLines=1", "root");
	w->done = true;
	return 0;
}

FIBER_TEST(server_logs_follow)
{
	CLEANUP(fixture_done) struct fixture f;
	struct following w = { .f = &f };

	fixture_init(&f, NULL);
	struct fiber *fiber = start(follow, &w);
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	CHECK(!w.done); /* it waits as long as the container runs */
	fixture_log(&f, "2023-11-14T22:13:23Z stdout F more\n");
	CHECK_INT(fiber_sleep_ms(50, NULL), 0);
	f.running = false;
	join(fiber);
	CHECK_STR(buf_str(&w.reply.body), "o2\nmore\n");
	reply_done(&w.reply);
}

/* ---- streams ---- */

/* A runtime's server for streams: agrees to everything, and gives back what it gets with a mark. */
static int echo(struct http_exchange *x, void *arg)
{
	struct http_header headers[] = { { STR("connection"), STR("Upgrade") }, { STR("upgrade"), STR("SPDY/3.1") } };
	struct stream *s;
	char room[64] = ">";
	ssize_t n;

	*(int *)arg += 1;
	if (!str_eq(x->path, STR("/exec/token"))) {
		http_answer(x, 404, NULL, 0, STR("no such token"));
		return 0;
	}
	int r = http_upgrade(x, headers, 2, &s, NULL);
	if (r < 0)
		return r;
	while ((n = stream_read(s, room + 1, sizeof(room) - 1, NULL)) > 0 && stream_write(s, room, (size_t)n + 1, NULL) == 0)
		;
	stream_free(s);
	return 0;
}

struct runtime_server {
	struct http_server *server;
	struct fiber *run;
	uint16_t port;
	int asked;
};

static int serve_runtime(void *arg) { return http_server_run(((struct runtime_server *)arg)->server, 0, NULL); }

static void runtime_start(struct runtime_server *r, struct fixture *f, const char *path)
{
	*r = (struct runtime_server){ 0 };
	CHECK_INT(http_server_new(&(struct http_server_options){ .handle = echo, .arg = &r->asked }, &r->server, NULL), 0);
	CHECK_INT(http_server_listen(r->server, "127.0.0.1", 0, &r->port, NULL), 0);
	r->run = start(serve_runtime, r);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%u%s", r->port, path);
}

static void runtime_stop(struct runtime_server *r)
{
	fiber_stop(r->run);
	http_server_free(r->server);
}

static struct stream *dial(struct fixture *f, const char *path)
{
	char request[512];
	struct stream *s;

	snprintf(request, sizeof(request),
		 "POST %s HTTP/1.1\r\nHost: n1\r\nAuthorization: Bearer root\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", path);
	CHECK_INT(stream_dial("127.0.0.1", f->port, NULL, &s, NULL), 0);
	CHECK_INT(stream_write(s, request, strlen(request), NULL), 0);
	return s;
}

/* (suspends) Reads until both are seen. */
static void expect(struct stream *s, const char *first, const char *second)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(8192);
	char room[256];
	ssize_t n = 1;
	DEADLINE_SCOPE(5000);

	while ((str_find(buf_str(&b), str_of(first)) < 0 || str_find(buf_str(&b), str_of(second)) < 0) &&
	       (n = stream_read(s, room, sizeof(room), NULL)) > 0)
		buf_add(&b, str_span(room, (size_t)n));
	if (n <= 0)
		fail_msg("wanted %s and %s, got %s", first, second, b.p ? b.p : "");
}

static void check_passes(struct fixture *f, const char *path)
{
	struct stream *s = dial(f, path);

	expect(s, "HTTP/1.1 101 ", "\r\n\r\n");
	CHECK_INT(stream_write(s, "hello", 5, NULL), 0);
	expect(s, ">hello", "");
	stream_free(s);
}

FIBER_TEST(server_streams)
{
	CLEANUP(fixture_done) struct fixture f;
	struct runtime_server r;

	fixture_init(&f, NULL);
	runtime_start(&r, &f, "/exec/token");
	check_passes(&f, "/exec/ns/p/c?command=ls&command=-l&output=1&error=1&tty=1");
	CHECK_STR(val_str(f.asked, containerId), "id-c");
	CHECK_STR(val_as_str(val_at(val_get(f.asked, cmd), 1)), "-l");
	CHECK(val_bool(f.asked, stdout) && val_bool(f.asked, tty) && !val_bool(f.asked, stderr) && !val_bool(f.asked, stdin));
	check_passes(&f, "/exec/ns/p/u1/c?command=ls&input=1");
	check_passes(&f, "/attach/ns/p/c?input=1&output=1");
	CHECK(val_bool(f.asked, tty)); /* what the container has, not what was asked for */
	check_passes(&f, "/portForward/ns/p");
	CHECK_STR(val_str(f.asked, podSandboxId), "sb");
	CHECK_INT(r.asked, 4);
	runtime_stop(&r);
}

static void check_websocket(struct fixture *f, const char *path, const char *protocol, const char *first, const char *second)
{
	char request[512];
	struct stream *s;

	snprintf(request, sizeof(request),
		 "GET %s HTTP/1.1\r\nHost: n1\r\nAuthorization: Bearer root\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		 path, protocol);
	CHECK_INT(stream_dial("127.0.0.1", f->port, NULL, &s, NULL), 0);
	CHECK_INT(stream_write(s, request, strlen(request), NULL), 0);
	expect(s, first, second);
	stream_free(s);
}

/* Clients of today speak WebSocket; the runtime need not. */
FIBER_TEST(server_streams_websocket)
{
	static const struct {
		const char *query, *error;
	} ports[] = {
		{ "", "query parameter \"port\" is required" },
		{ "?port=", "query parameter \"port\" cannot be empty" },
		{ "?port=80&port=http", "unable to parse \"http\" as a port: strconv.ParseUint: parsing \"http\": invalid syntax" },
		{ "?port=80,", "unable to parse \"80,\" as a port: strconv.ParseUint: parsing \"\": invalid syntax" },
		{ "?port=70000", "unable to parse \"70000\" as a port: strconv.ParseUint: parsing \"70000\": value out of range" },
		{ "?port=0", "port \"0\" must be > 0" },
	};
	CLEANUP(fixture_done) struct fixture f;
	struct runtime_server r;
	char path[64];

	fixture_init(&f, NULL);
	snprintf(f.url, sizeof(f.url), "http://127.0.0.1:1/"); /* nobody there: that is told in the channel for it */
	check_websocket(&f, "/exec/ns/p/c?command=ls&output=1", "v5.channel.k8s.io", "v5.channel.k8s.io", "Internal error occurred: ");
	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		snprintf(path, sizeof(path), "/portForward/ns/p%s", ports[i].query);
		check_websocket(&f, path, "v4.channel.k8s.io", "HTTP/1.1 400 ", ports[i].error);
	}
	runtime_start(&r, &f, "/exec/token");
	check_websocket(&f, "/portForward/ns/p", "SPDY/3.1+portforward.k8s.io", "HTTP/1.1 101 ", "\r\n\r\n");
	check_websocket(&f, "/portForward/ns/p?port=80,443", "v4.channel.k8s.io", "HTTP/1.1 101 ", "\r\n\r\n");
	CHECK_INT(val_as_int(val_at(val_get(f.asked, port), 1)), 443);
	runtime_stop(&r);
}

FIBER_TEST(server_system_logs)
{
	static const struct row t[] = {
		{ "GET", "/logs/", 200,
		  "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n<a href=\"0.log\">0.log</a>\n"
		  "<a href=\"1.log\">1.log</a>\n<a href=\"a%3Cb\">a&lt;b</a>\n<a href=\"dir/\">dir/</a>\n"
		  "<a href=\"out\">out</a>\n</pre>\n" },
		{ "GET", "/logs/0.log", 200, "2023-11-14T22:13:20.5Z stdout F before\n" },
		{ "GET", "/logs/dir/deep", 200, "x\n" },
		{ "GET", "/logs/none", 404, "404 page not found\n" },
		{ "GET", "/logs/out", 404, "404 page not found\n" }, /* a link to the outside stays inside */
		{ "GET", "/logs/../../../etc/hostname", 404, "404 page not found\n" },
		{ "GET", "/logs/%2e%2e/%2e%2e/etc/hostname", 404, "404 page not found\n" },
		{ "GET", "/logs/0.log%00x", 404, "404 page not found\n" },
		{ "GET", "/logs/dir", 301, "" },
		{ "POST", "/logs/", 405, "405: Method Not Allowed" },
	};
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	CHECK_INT(file_make_dirs(in_folder(&f.folder, "dir"), 0700, NULL), 0);
	put_file(&f.folder, "dir/deep", "x\n", 0600);
	put_file(&f.folder, "a<b", "", 0600);
	CHECK_INT(symlink("/etc/passwd", in_folder(&f.folder, "out")), 0);
	check_rows(&f, t, ARRAY_LEN(t));
	f.options.system_logs = NULL;
	fixture_check(&f, 100, "GET", "/logs/", 405, "logs endpoint is disabled.\n");
}

FIBER_TEST(server_streams_refused)
{
	static const struct row t[] = {
		{ "POST", "/exec/ns/p/c?command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr" },
		{ "POST", "/exec/ns/nope/c?command=ls&output=1", 404, "pod does not exist" },
		{ "POST", "/exec/ns/p/b?command=ls&output=1", 500, "container not found (\"b\")" },
		{ "POST", "/exec/ns/p/c?command=ls&output=1", 500, "Upgrade request required\n" },
		{ "PUT", "/exec/ns/p/c?command=ls&output=1", 405, "405: Method Not Allowed" },
		{ "POST", "/attach/ns/p/b?output=1", 500, "container b not found in pod p_ns" },
		{ "POST", "/attach/ns/p/other/c?output=1", 500, "pod p_ns not found" },
		{ "POST", "/portForward/ns/p/other", 404, "pod not found" },
		{ "POST", "/portForward/ns/p", 500, "Upgrade request required\n" },
		{ "POST", "/run/ns/p/c?cmd=ls+-l", 200, "out\noops\n" },
		{ "POST", "/run/ns/p/c?cmd=false+1", 500, "command 'false 1' exited with 1: oops\n" },
		{ "POST", "/run/ns/p/b?cmd=ls", 500, "container not found (\"b\")" },
		{ "POST", "/checkpoint/ns/p/zz", 404, "container zz does not exist" },
		{ "POST", "/checkpoint/ns/p/c?timeout=x", 404, "cannot parse value of timeout parameter" },
		{ "POST", "/checkpoint/ns/p/w", 500, "checkpointing of ns/p/w failed (container w not found)" },
		{ "POST", "/checkpoint/ns/p/c", 500,
		  "checkpointing of ns/p/c failed (rpc error: code = Unimplemented desc = unknown method)" },
	};
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	snprintf(f.url, sizeof(f.url), "http://127.0.0.1:1/");
	check_rows(&f, t, ARRAY_LEN(t));
	f.exec_error = "container is gone";
	fixture_check(&f, 100, "POST", "/exec/ns/p/c?command=ls&output=1", 404, "rpc error: code = NotFound desc = container is gone");
	f.running = false;
	fixture_check(&f, 101, "POST", "/portForward/ns/p", 500, "pod not found (\"p_ns\")");
}

FIBER_TEST(server_streams_runtime_refuses)
{
	CLEANUP(fixture_done) struct fixture f;
	struct runtime_server r;

	fixture_init(&f, NULL);
	runtime_start(&r, &f, "/exec/other");
	struct stream *s = dial(&f, "/exec/ns/p/c?command=ls&output=1");
	expect(s, "HTTP/1.1 404 ", "no such token");
	stream_free(s);
	runtime_stop(&r);
	s = dial(&f, "/exec/ns/p/c?command=ls&output=1"); /* nobody there */
	expect(s, "HTTP/1.1 500 ", "error dialing backend: dial tcp 127.0.0.1:");
	stream_free(s);
}

/* ---- who may ---- */

static void check_as(struct fixture *f, const char *token, const char *path, int status, const char *body)
{
	CLEANUP(reply_done) struct reply r = fixture_ask(f, "GET", path, token);

	CHECK_STR(buf_str(&r.body), body);
	CHECK_INT(r.status, status);
}

FIBER_TEST(server_auth)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	check_as(&f, NULL, "/healthz", 401, "Unauthorized");
	check_as(&f, "stranger", "/healthz", 401, "Unauthorized");
	check_as(&f, NULL, "/nothing", 404, "404 page not found\n"); /* not worth a name */
	CHECK_INT(f.access_reviews, 0);
	check_as(&f, "reader", "/metrics", 200, "metrics{of=\"\"} 1\n");
	CHECK_STR(f.last_review,
		  "{\"resourceAttributes\":{\"verb\":\"get\",\"version\":\"v1\",\"resource\":\"nodes\",\"subresource\":\"metrics\",\"name\":\"n1\"},"
		  "\"user\":\"reader\",\"groups\":[\"team\",\"system:authenticated\"]}");
	check_as(&f, "reader", "/runningpods/x", 404, "404: Page Not Found"); /* by pods, the first of two */
	check_as(&f, "reader", "/healthz", 403, "Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[healthz proxy])\n");
	check_as(&f, "reader", "/stats/summary", 403, "Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[stats])\n");
	check_as(&f, "reader", "/containerLogs/ns/p/c", 403,
		 "Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[proxy])\n");
	f.api_down = true;
	check_as(&f, "reader", "/metrics", 200, "metrics{of=\"\"} 1\n"); /* known from before */
	check_as(&f, "reader", "/configz", 500, "Authorization error (user=reader, verb=get, resource=nodes, subresource=configz)");
	check_as(&f, "newcomer", "/metrics", 401, "Unauthorized");
}

FIBER_TEST(server_auth_remembers)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	for (int i = 0; i < 3; i++) {
		check_as(&f, "reader", "/metrics", 200, "metrics{of=\"\"} 1\n");
		check_as(&f, "stranger", "/metrics", 401, "Unauthorized");
		check_as(&f, "reader", "/stats/summary", 403,
			 "Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[stats])\n");
	}
	CHECK_INT(f.token_reviews, 2);
	CHECK_INT(f.access_reviews, 2);
	kubelet_auth_free(f.options.auth);
	f.options.auth = NULL; /* nothing is remembered then */
	check_as(&f, "reader", "/metrics", 200, "metrics{of=\"\"} 1\n");
	check_as(&f, "reader", "/metrics", 200, "metrics{of=\"\"} 1\n");
	CHECK_INT(f.token_reviews, 4);
}

FIBER_TEST(server_auth_anonymous)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, NULL);
	f.options.anonymous = true;
	check_as(&f, NULL, "/metrics", 403, "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n");
	CHECK(str_find(f.last_review, STR("\"groups\":[\"system:unauthenticated\"]")) > 0);
	check_as(&f, "stranger", "/metrics", 401, "Unauthorized"); /* a bad token is no anonymity */
	f.options.client = NULL;
	check_as(&f, NULL, "/metrics", 403, "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n");
	f.options.allow_all = true;
	check_as(&f, NULL, "/metrics", 200, "metrics{of=\"\"} 1\n");
}

static void check_certificate(const struct test_cert *ca, const struct test_cert *shown, int status, bool with_client)
{
	CLEANUP(test_cert_done) struct test_cert own = test_cert_new("n1", "IP:127.0.0.1", ca);
	CLEANUP(fixture_done) struct fixture f;
	struct tls_context *server, *client;
	struct err err = ERR_INIT;

	CHECK_INT(tls_server_new(&(struct tls_options){ .cert_pem = own.cert, .key_pem = own.key, .ca_pem = ca->cert,
						      .client_auth = TLS_CLIENT_AUTH_REQUEST }, &server, &err), 0);
	CHECK_INT(tls_client_new(&(struct tls_options){ .cert_pem = shown->cert, .key_pem = shown->key, .ca_pem = ca->cert }, &client, &err), 0);
	fixture_init(&f, server);
	http_client_free(f.client);
	f.client_tls = client;
	f.client = http_client_new(&(struct http_client_options){ .tls = client });
	if (!with_client) {
		f.options.client = NULL;
		f.options.allow_all = true;
	}
	CLEANUP(reply_done) struct reply r = fixture_ask(&f, "GET", "/metrics", NULL);
	CHECK_INT(r.status, status);
	CHECK_INT(f.access_reviews, with_client && status != 401);
	tls_context_free(server);
	tls_context_free(client);
}

FIBER_TEST(server_auth_certificate)
{
	CLEANUP(test_cert_done) struct test_cert ca = test_cert_new("ca", NULL, NULL), other_ca = test_cert_new("other", NULL, NULL);
	CLEANUP(test_cert_done) struct test_cert good = test_cert_new("certified", "DNS:x", &ca);
	CLEANUP(test_cert_done) struct test_cert weak = test_cert_new("visitor", "DNS:x", &ca);
	CLEANUP(test_cert_done) struct test_cert forged = test_cert_new("certified", "DNS:x", &other_ca);

	check_certificate(&ca, &good, 200, true);
	check_certificate(&ca, &weak, 403, true);
	check_certificate(&ca, &forged, 401, true);
	check_certificate(&ca, &weak, 200, false);
	check_certificate(&ca, &forged, 401, false);
}
