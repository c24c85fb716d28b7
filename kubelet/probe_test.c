#include "kubelet/probe.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/types.h"
#include "kubelet/cri_testing.h"
#include "kubelet/probe_priv.h"
#include "net/grpc_server.h"
#include "net/http.h"
#include "net/test_certs.h"

static struct val parse(struct arena *a, const char *json)
{
	struct json_decode_options o = { 0 };
	struct err err = ERR_INIT;
	struct val v;

	if (json_decode(a, str_of(json), &o, &v, &err) < 0)
		fail_msg("%s: %s", json, err.msg);
	return v;
}

/* ---- workers, on a virtual clock: commands say what is to be answered ---- */

enum { SLOW = 1000 };

struct world {
	struct arena arena;
	struct cri_fake cri;
	struct probes *probes;
	struct frozen *pod;
	struct buf log;                /* what was told: time, what */
	int64_t begin_ns;
	/* by the word of the command: exit code, or below 0 an error; SLOW: it takes a minute */
	int startup, liveness, readiness;
	unsigned asked[3];
};

static void note(struct world *w, const char *what, str text)
{
	int64_t ms = (clock_now_ns() - w->begin_ns) / NS_PER_MS;

	buf_addf(&w->log, "%lld.%03lld %s " STR_FMT "\n", (long long)(ms / 1000), (long long)(ms % 1000), what, STR_ARG(text));
}

static int answer_exec(struct cri_fake *f, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct world *w = f->arg;
	str word = val_as_str(val_at(val_get(request, cmd), 0));
	enum probe_kind kind = str_eq(word, STR("startup")) ? PROBE_STARTUP : str_eq(word, STR("liveness")) ? PROBE_LIVENESS : PROBE_READINESS;
	int code = kind == PROBE_STARTUP ? w->startup : kind == PROBE_LIVENESS ? w->liveness : w->readiness;

	CHECK(rpc == &rpc_RuntimeService_ExecSync);
	w->asked[kind]++;
	if (code == SLOW && fiber_sleep_ms(60000, err) < 0)
		return -ERR_CANCELED;
	if (code < 0)
		return err_set(err, (enum err_code)-code, "it broke");
	*ret = OBJECT(a, F(stdout, VAL_LIT("out ")), F(stderr, VAL_LIT("err")), F(exitCode, val_of_int(code)));
	return 0;
}

static void on_changed(str uid, str container, enum probe_kind kind, enum probe_result result, void *arg)
{
	static const char *const kinds[] = { "startup", "liveness", "readiness" }, *const results[] = { "unknown", "success", "failure" };

	CHECK_STR(uid, "u1");
	CHECK_STR(container, "c");
	note(arg, kinds[kind], str_of(results[result]));
}

static void on_event(struct val pod, str container, bool warning, str reason, str message, void *arg)
{
	CHECK_STR(val_str(pod, metadata, name), "p");
	CHECK_STR(container, "c");
	CHECK(warning);
	note(arg, str_eq(reason, STR("Unhealthy")) ? "Unhealthy" : "ProbeWarning", message);
}

static void world_begin(struct world *w, const char *pod, const char *container, int64_t ago_ns)
{
	*w = (struct world){ .cri = CRI_FAKE(answer_exec, w), .log = BUF_INIT(1 << 20) };
	w->begin_ns = clock_now_ns();
	struct probes_options o = { .cri = &w->cri.cri, .changed = on_changed, .event = on_event, .arg = w };
	w->probes = probes_new(&o);
	w->pod = val_freeze(parse(&w->arena, pod));
	CHECK_INT(probes_begin(w->probes, w->pod, parse(&w->arena, container), STR("id1"), clock_wall_ns() - ago_ns, STR("127.0.0.1"), NULL), 0);
}

static void world_end(struct world *w)
{
	probes_free(w->probes);
	CHECK_INT(w->pod->refs, 1);
	frozen_unref(w->pod);
	buf_done(&w->log);
	arena_done(&w->arena);
}

/* Half a second after so many seconds: what was told meanwhile. */
static void check_log(struct world *w, int64_t seconds, const char *want)
{
	CHECK_INT(fiber_sleep_ns(w->begin_ns + seconds * NS_PER_S + NS_PER_S / 2 - clock_now_ns(), NULL), 0);
	CHECK_STR(buf_str(&w->log), want);
	buf_reset(&w->log);
}

#define POD "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u1\"}}"
#define EXEC(word) "\"exec\":{\"command\":[\"" word "\"]}"

CLOCK_TEST(probes_of_readiness_are_asked_at_once_and_count)
{
	struct world w;

	world_begin(&w, POD, "{\"name\":\"c\",\"readinessProbe\":{" EXEC("readiness") ",\"periodSeconds\":2,\"successThreshold\":2,\"failureThreshold\":3}}", 0);
	CHECK(probes_started(w.probes, STR("u1"), STR("c")));
	CHECK(!probes_ready(w.probes, STR("u1"), STR("c")));
	CHECK_INT(probes_result(w.probes, STR("u1"), STR("c"), PROBE_READINESS), PROBE_FAILURE);
	check_log(&w, 1, "0.500 readiness success\n");
	CHECK_INT(w.asked[PROBE_READINESS], 2);
	CHECK(probes_ready(w.probes, STR("u1"), STR("c")));
	w.readiness = 1;
	check_log(&w, 5, "2.500 Unhealthy Readiness probe failed: out err\n4.500 Unhealthy Readiness probe failed: out err\n");
	CHECK(probes_ready(w.probes, STR("u1"), STR("c")));
	check_log(&w, 7, "6.500 Unhealthy Readiness probe failed: out err\n6.500 readiness failure\n");
	CHECK(!probes_ready(w.probes, STR("u1"), STR("c")));
	/* What could not be asked does not count; it is tried three times. */
	w.readiness = -ERR_NOT_FOUND;
	w.asked[PROBE_READINESS] = 0;
	check_log(&w, 9, "8.500 Unhealthy Readiness probe errored and resulted in unknown state: rpc error: code = NotFound desc = it broke\n");
	CHECK_INT(w.asked[PROBE_READINESS], 3);
	world_end(&w);
}

CLOCK_TEST(probes_of_readiness_are_asked_more_often_at_first)
{
	struct world w;

	world_begin(&w, POD, "{\"name\":\"c\",\"readinessProbe\":{" EXEC("readiness") "}}", 0);
	w.readiness = 1;
	check_log(&w, 20, "0.000 Unhealthy Readiness probe failed: out err\n0.500 Unhealthy Readiness probe failed: out err\n"
			  "1.500 Unhealthy Readiness probe failed: out err\n11.500 Unhealthy Readiness probe failed: out err\n");
	world_end(&w);
	world_begin(&w, POD, "{\"name\":\"c\",\"readinessProbe\":{" EXEC("readiness") ",\"initialDelaySeconds\":3}}", 0);
	w.readiness = 1;
	check_log(&w, 20, "3.000 Unhealthy Readiness probe failed: out err\n13.000 Unhealthy Readiness probe failed: out err\n");
	world_end(&w);
}

CLOCK_TEST(probes_of_startup_hold_the_others_back)
{
	struct world w;

	world_begin(&w, POD,
		    "{\"name\":\"c\",\"startupProbe\":{" EXEC("startup") ",\"periodSeconds\":3,\"failureThreshold\":5},"
		    "\"readinessProbe\":{" EXEC("readiness") ",\"periodSeconds\":10},"
		    "\"livenessProbe\":{" EXEC("liveness") ",\"periodSeconds\":2,\"initialDelaySeconds\":1,\"failureThreshold\":2}}", 0);
	w.startup = 1;
	CHECK(!probes_started(w.probes, STR("u1"), STR("c")));
	CHECK_INT(probes_result(w.probes, STR("u1"), STR("c"), PROBE_STARTUP), PROBE_UNKNOWN);
	check_log(&w, 5, "3.000 Unhealthy Startup probe failed: out err\n");
	CHECK_INT(w.asked[PROBE_READINESS] + w.asked[PROBE_LIVENESS], 0);
	w.startup = 0;
	w.liveness = 1;
	check_log(&w, 6, "6.000 startup success\n6.000 readiness success\n");
	CHECK(probes_started(w.probes, STR("u1"), STR("c")) && probes_ready(w.probes, STR("u1"), STR("c")));
	check_log(&w, 20,
		  "7.000 Unhealthy Liveness probe failed: out err\n9.000 Unhealthy Liveness probe failed: out err\n9.000 liveness failure\n");
	CHECK_INT(w.asked[PROBE_STARTUP], 2);
	CHECK_INT(w.asked[PROBE_LIVENESS], 2); /* none after it counted */
	/* The next container begins anew. */
	CHECK_INT(probes_begin(w.probes, w.pod, parse(&w.arena, "{\"name\":\"c\",\"livenessProbe\":{" EXEC("liveness") ",\"periodSeconds\":1,\"failureThreshold\":1}}"),
			       STR("id2"), clock_wall_ns(), STR("127.0.0.1"), NULL), 0);
	CHECK_INT(probes_result(w.probes, STR("u1"), STR("c"), PROBE_LIVENESS), PROBE_SUCCESS);
	check_log(&w, 22, "21.500 Unhealthy Liveness probe failed: out err\n21.500 liveness failure\n");
	world_end(&w);
}

CLOCK_TEST(probes_of_startup_end_a_container_that_does_not_start)
{
	struct world w;

	world_begin(&w, POD, "{\"name\":\"c\",\"startupProbe\":{" EXEC("startup") ",\"periodSeconds\":1,\"failureThreshold\":2,\"initialDelaySeconds\":3}}", 0);
	w.startup = 2;
	check_log(&w, 10, "3.000 Unhealthy Startup probe failed: out err\n4.000 Unhealthy Startup probe failed: out err\n4.000 startup failure\n");
	CHECK(!probes_started(w.probes, STR("u1"), STR("c")));
	world_end(&w);
}

CLOCK_TEST(probes_of_a_pod_that_ends_are_readiness_only)
{
	struct world w;

	world_begin(&w, POD,
		    "{\"name\":\"c\",\"readinessProbe\":{" EXEC("readiness") ",\"periodSeconds\":1,\"failureThreshold\":1},"
		    "\"livenessProbe\":{" EXEC("liveness") ",\"periodSeconds\":1,\"failureThreshold\":1}}", 0);
	check_log(&w, 0, "0.000 readiness success\n");
	probes_terminating(w.probes, STR("u1"));
	w.liveness = w.readiness = 1;
	check_log(&w, 1, "1.000 Unhealthy Readiness probe failed: out err\n1.000 readiness failure\n");
	w.readiness = SLOW; /* at work when it ends */
	check_log(&w, 2, "");
	probes_end(w.probes, STR("u1"), STR("other"));
	CHECK(probes_started(w.probes, STR("u1"), STR("c")));
	probes_end(w.probes, STR("u1"), STR_NONE);
	CHECK(!probes_started(w.probes, STR("u1"), STR("c")));
	CHECK_INT(probes_result(w.probes, STR("u1"), STR("c"), PROBE_READINESS), PROBE_UNKNOWN);
	check_log(&w, 90, "");
	CHECK_INT(w.asked[PROBE_READINESS], 3);
	world_end(&w);
}

CLOCK_TEST(probes_of_a_container_that_ran_before_keep_what_was_known)
{
	static const char pod[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u1\"},\"status\":{"
				  "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
				  "\"containerStatuses\":[{\"name\":\"c\",\"started\":true,\"ready\":true,\"containerID\":\"containerd://id1\"}]}}";
	static const char container[] = "{\"name\":\"c\",\"startupProbe\":{" EXEC("startup") "},\"readinessProbe\":{" EXEC("readiness") ",\"periodSeconds\":5}}";
	struct world w;

	world_begin(&w, pod, container, 60 * NS_PER_S);
	CHECK(probes_started(w.probes, STR("u1"), STR("c")) && probes_ready(w.probes, STR("u1"), STR("c")));
	check_log(&w, 6, "");
	CHECK_INT(w.asked[PROBE_STARTUP], 0);
	CHECK(w.asked[PROBE_READINESS] >= 1);
	world_end(&w);
	world_begin(&w, POD, container, 60 * NS_PER_S);
	CHECK(!probes_started(w.probes, STR("u1"), STR("c")) && !probes_ready(w.probes, STR("u1"), STR("c")));
	world_end(&w);
}

CLOCK_TEST(probes_have_a_grace_period_of_their_own)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = parse(&a, "{\"spec\":{\"terminationGracePeriodSeconds\":30}}");
	struct val container = parse(&a, "{\"livenessProbe\":{\"terminationGracePeriodSeconds\":5},\"startupProbe\":{}}");

	CHECK_INT(probe_grace_s(pod, container, PROBE_LIVENESS), 5);
	CHECK_INT(probe_grace_s(pod, container, PROBE_STARTUP), 30);
	pod = val_with(&a, pod, val_of_int(7), metadata, deletionGracePeriodSeconds);
	CHECK_INT(probe_grace_s(pod, container, PROBE_LIVENESS), 7);
}

/* ---- single tries ---- */

static int answer_one(struct cri_fake *f, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)rpc;
	*(struct val *)f->arg = val_copy(a, request);
	str word = val_as_str(val_at(val_get(request, cmd), 0));
	if (str_eq(word, STR("sleep")))
		return err_set(err, ERR_TIMEOUT, "command \"sleep 10\" timed out");
	if (str_eq(word, STR("much"))) {
		char *p = ARENA_ARRAY(a, char, PROBE_OUTPUT_MAX + 1000);
		memset(p, 'x', PROBE_OUTPUT_MAX + 1000);
		*ret = OBJECT(a, F(stdout, VAL_STR(str_span(p, PROBE_OUTPUT_MAX + 1000))), F(stderr, VAL_LIT("e")));
		return 0;
	}
	*ret = OBJECT(a, F(stdout, VAL_LIT("o")), F(stderr, VAL_LIT("e")), F(exitCode, val_of_int(str_eq(word, STR("false")))));
	return 0;
}

struct tried {
	enum probe_result result;
	str output;
	struct err err;
};

static struct tried try(struct arena *a, struct cri *cri, const char *container, const char *handler, int64_t timeout_ms, bool hook)
{
	struct tried t = { .err = ERR_INIT };
	struct val pod = parse(a, POD), c = parse(a, container), h = parse(a, handler);

	t.result = (hook ? probe_hook : probe_once)(cri, a, pod, c, h, STR("id1"), STR("127.0.0.1"), timeout_ms, &t.output, &t.err);
	return t;
}

FIBER_TEST(probe_exec_has_the_texts_of_kubernetes)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val seen = VAL_EMPTY;
	struct cri_fake f = CRI_FAKE(answer_one, &seen);
	struct tried t = try(&a, &f.cri, "{\"name\":\"c\",\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}",
			     "{\"exec\":{\"command\":[\"true\",\"$(A)\",\"$(B)\"]}}", 3000, false);

	CHECK_INT(t.result, PROBE_SUCCESS);
	CHECK_STR(t.output, "oe");
	CHECK_STR(val_as_str(val_at(val_get(seen, cmd), 1)), "1");
	CHECK_STR(val_as_str(val_at(val_get(seen, cmd), 2)), "$(B)");
	CHECK_STR(val_str(seen, containerId), "id1");
	CHECK_INT(val_int(seen, timeout), 3);
	t = try(&a, &f.cri, "{}", "{\"exec\":{\"command\":[\"sleep\",\"10\"]}}", 1000, false);
	CHECK_INT(t.result, PROBE_FAILURE);
	CHECK_STR(t.output, "command timed out: \"sleep 10\" timed out after 1s");
	t = try(&a, &f.cri, "{}", "{\"exec\":{\"command\":[\"much\"]}}", 1000, false);
	CHECK_INT(t.output.n, PROBE_OUTPUT_MAX);
	t = try(&a, &f.cri, "{\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}", "{\"exec\":{\"command\":[\"false\",\"$(A)\"]}}", 0, true);
	CHECK_INT(t.result, PROBE_FAILURE);
	CHECK_STR(t.output, "command 'false $(A)' exited with 1: e, message: \"oe\"");
	CHECK_INT(val_int(seen, timeout), 0);
	t = try(&a, &f.cri, "{\"name\":\"c\"}", "{}", 1000, false);
	CHECK_INT(t.result, PROBE_UNKNOWN);
	CHECK_STR(err_str(&t.err), "missing probe handler for p_n(u1):c");
}

FIBER_TEST(probe_ports_are_numbers_or_names)
{
	static const struct {
		const char *port, *error;
		uint16_t want;
	} rows[] = {
		{ "80", NULL, 80 },
		{ "\"web\"", NULL, 8080 },
		{ "\"81\"", NULL, 81 },
		{ "\"nosuch\"", "strconv.Atoi: parsing \"nosuch\": invalid syntax", 0 },
		{ "0", "invalid port number: 0", 0 },
		{ "65536", "invalid port number: 65536", 0 },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val container = parse(&a, "{\"ports\":[{\"name\":\"web\",\"containerPort\":8080}]}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		uint16_t port = 0;
		int r = probe_port(parse(&a, rows[i].port), container, &port, &err);
		CHECK_ROW(i, (r < 0) == (rows[i].error != NULL) && port == rows[i].want);
		CHECK_STR_ROW(i, err_str(&err), rows[i].error ? rows[i].error : "");
	}
}

/* ---- httpGet ---- */

struct site {
	struct http_server *server;
	struct fiber *fiber;
	uint16_t port;
	struct buf seen;               /* the last request */
	str elsewhere;                 /* where /elsewhere is */
};

/* An answer that begins, and does not end. */
static ssize_t stall_fill(struct http_source *s, char *p, size_t n)
{
	bool *begun = (bool *)(s + 1);

	if (*begun || n < 4)
		return HTTP_LATER;
	*begun = true;
	memcpy(p, "half", 4);
	return 4;
}

static void stall_stop(struct http_source *s) { free(s); }

static int site_handle(struct http_exchange *x, void *arg)
{
	struct site *s = arg;
	struct http_header location = { STR("location"), STR_NONE };
	int status = 200;

	buf_reset(&s->seen);
	buf_addf(&s->seen, STR_FMT "?" STR_FMT " " STR_FMT "|" STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(x->path), STR_ARG(x->query), STR_ARG(x->authority),
		 STR_ARG(http_request_header(x, STR("user-agent"))), STR_ARG(http_request_header(x, STR("accept"))),
		 STR_ARG(http_request_header(x, STR("x-probe"))));
	if (str_eq(x->path, STR("/stall"))) {
		struct http_source *source = mem_zalloc(sizeof(*source) + sizeof(bool));
		*source = (struct http_source){ .fill = stall_fill, .stop = stall_stop };
		http_answer_source(x, 200, NULL, 0, source, 100);
		return 0;
	}
	if (str_eq(x->path, STR("/slow")))
		return fiber_sleep_ms(5000, NULL);
	if (str_eq(x->path, STR("/fail")))
		status = 500;
	else if (str_eq(x->path, STR("/here")))
		status = 302, location.value = STR("/ok");
	else if (str_eq(x->path, STR("/there")))
		status = 302, location.value = STR("http://example.test/");
	else if (str_eq(x->path, STR("/round")))
		status = 302, location.value = STR("round");
	else if (str_eq(x->path, STR("/elsewhere")))
		status = 302, location.value = s->elsewhere;
	http_answer(x, status, &location, location.value.n ? 1 : 0, STR("body"));
	return 0;
}

static int site_run(void *arg) { return http_server_run(((struct site *)arg)->server, 0, NULL); }

static void site_begin(struct site *s, struct tls_context *tls)
{
	struct http_server_options o = { .tls = tls, .handle = site_handle, .arg = s };

	*s = (struct site){ .seen = BUF_INIT(10000) };
	CHECK_INT(http_server_new(&o, &s->server, NULL), 0);
	CHECK_INT(http_server_listen(s->server, "127.0.0.1", 0, &s->port, NULL), 0);
	s->fiber = start(site_run, s);
}

static void site_end(struct site *s)
{
	(void)fiber_stop(s->fiber);
	http_server_free(s->server);
	buf_done(&s->seen);
}

/* "%u" in texts is the port. */
static const char *with_port(struct arena *a, const char *text, unsigned port)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(10000);
	str rest = str_of(text);
	ptrdiff_t at;

	while ((at = str_find(rest, STR("%u"))) >= 0) {
		buf_add(&b, str_head(rest, (size_t)at));
		buf_addf(&b, "%u", port);
		rest = str_skip(rest, (size_t)at + 2);
	}
	buf_add(&b, rest);
	return arena_str(a, buf_str(&b)).p;
}

FIBER_TEST(probe_http_answers_are_judged_as_in_kubernetes)
{
	static const struct {
		const char *path, *more;
		enum probe_result result;
		const char *output, *seen;
		bool hook;
	} rows[] = {
		{ "/ok?a=b", "", PROBE_SUCCESS, "body", "/ok?a=b 127.0.0.1:%u|kube-probe/1.36|*/*|", false },
		{ "ok", "", PROBE_SUCCESS, "body", "/ok? 127.0.0.1:%u|kube-probe/1.36|*/*|", false },
		{ "/a b%2f", "", PROBE_SUCCESS, "body", "/a%20b%2f? 127.0.0.1:%u|kube-probe/1.36|*/*|", false },
		{ "/%zz", "", PROBE_SUCCESS, "body", "/%25zz? 127.0.0.1:%u|kube-probe/1.36|*/*|", false },
		{ "/ok", ",\"httpHeaders\":[{\"name\":\"Host\",\"value\":\"x.test\"},{\"name\":\"X-Probe\",\"value\":\"v\"},{\"name\":\"User-Agent\",\"value\":\"me\"},"
		  "{\"name\":\"Accept\",\"value\":\"\"}]", PROBE_SUCCESS, "body", "/ok? x.test|me||v", false },
		{ "/fail", "", PROBE_FAILURE, "HTTP probe failed with statuscode: 500", NULL, false },
		{ "/here", "", PROBE_SUCCESS, "body", "/ok? 127.0.0.1:%u|kube-probe/1.36|*/*|", false },
		{ "/there", "", PROBE_SUCCESS, "Probe terminated redirects, Response body: body", NULL, false },
		{ "/round", "", PROBE_FAILURE, "Get \"http://127.0.0.1:%u/round\": stopped after 10 redirects", NULL, false },
		{ "/slow", "", PROBE_FAILURE,
		  "Get \"http://127.0.0.1:%u/slow\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)", NULL, false },
		{ "/", ",\"scheme\":\"HTTPS\"", PROBE_FAILURE, "Get \"https://127.0.0.1:%u/\": http: server gave HTTP response to HTTPS client", NULL, false },
		{ "/fail", ",\"scheme\":\"HTTPS\"", PROBE_SUCCESS, "body", "/fail? 127.0.0.1:%u|kube-lifecycle/1.36|*/*|", true },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct site s;

	site_begin(&s, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		str handler = arena_printf(&a, "{\"httpGet\":{\"path\":\"%s\",\"port\":%u%s}}", rows[i].path, s.port, rows[i].more);
		struct tried t = try(&a, NULL, "{}", handler.p, rows[i].hook ? 0 : 300, rows[i].hook);
		CHECK_STR_ROW(i, err_str(&t.err), "");
		CHECK_STR_ROW(i, t.output, with_port(&a, rows[i].output, s.port));
		CHECK_ROW(i, t.result == rows[i].result);
		if (rows[i].seen)
			CHECK_STR_ROW(i, buf_str(&s.seen), with_port(&a, rows[i].seen, s.port));
	}
	site_end(&s);
}

FIBER_TEST(probe_http_redirect_to_another_host_is_a_warning)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct site s;
	enum check_result result;

	site_begin(&s, NULL);
	str handler = arena_printf(&a, "{\"httpGet\":{\"path\":\"/there\",\"port\":%u}}", s.port);
	struct probe_check c = { .arena = &a, .pod_ip = STR("127.0.0.1"), .handler = parse(&a, handler.p), .timeout_ms = 1000 };
	CHECK_INT(probe_check(&c, &result, NULL), 0);
	CHECK_INT(result, CHECK_WARNING);
	site_end(&s);
}

FIBER_TEST(probe_http_redirects_to_https_are_followed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct test_cert cert = test_cert_new("self-signed", "DNS:other", NULL);
	struct tls_context *tls = NULL;
	struct site plain, secure;

	CHECK_INT(tls_server_new(&(struct tls_options){ .cert_pem = cert.cert, .key_pem = cert.key }, &tls, NULL), 0);
	site_begin(&plain, NULL);
	site_begin(&secure, tls);
	plain.elsewhere = arena_printf(&a, "https://127.0.0.1:%u/ok", secure.port);
	struct tried t = try(&a, NULL, "{}", arena_printf(&a, "{\"httpGet\":{\"path\":\"/elsewhere\",\"port\":%u}}", plain.port).p, 2000, false);
	CHECK_STR(err_str(&t.err), "");
	CHECK_STR(t.output, "body");
	CHECK_INT(t.result, PROBE_SUCCESS);
	CHECK_STR(buf_str(&secure.seen), with_port(&a, "/ok? 127.0.0.1:%u|kube-probe/1.36|*/*|", secure.port));
	site_end(&plain);
	site_end(&secure);
	tls_context_free(tls);
	test_cert_done(&cert);
}

FIBER_TEST(probe_http_answer_that_does_not_end_is_an_error)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct site s;
	enum check_result result;

	site_begin(&s, NULL);
	str handler = arena_printf(&a, "{\"httpGet\":{\"path\":\"/stall\",\"port\":%u}}", s.port);
	struct probe_check c = { .arena = &a, .pod_ip = STR("127.0.0.1"), .handler = parse(&a, handler.p), .timeout_ms = 200 };
	CHECK_INT(probe_check(&c, &result, &err), -ERR_TIMEOUT);
	CHECK_INT(result, CHECK_FAILURE);
	CHECK_STR(err_str(&err), "context deadline exceeded (Client.Timeout or context cancellation while reading body)");
	site_end(&s);
}

/* ---- tcpSocket, and nobody there ---- */

static uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	(void)close(fd);
	return ntohs(a.sin_port);
}

FIBER_TEST(probe_tcp_connects)
{
	static const struct {
		const char *handler, *output;
	} closed[] = {
		{ "{\"tcpSocket\":{\"port\":%u}}", "dial tcp 127.0.0.1:%u: connect: connection refused" },
		{ "{\"httpGet\":{\"port\":%u,\"path\":\"/\"}}", "Get \"http://127.0.0.1:%u/\": dial tcp 127.0.0.1:%u: connect: connection refused" },
		{ "{\"httpGet\":{\"port\":%u,\"path\":\"/\",\"scheme\":\"HTTPS\"}}",
		  "Get \"https://127.0.0.1:%u/\": dial tcp 127.0.0.1:%u: connect: connection refused" },
	};
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	unsigned port = free_port();
	struct site s;

	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		struct tried t = try(&a, NULL, "{}", with_port(&a, closed[i].handler, port), 1000, false);
		CHECK_ROW(i, t.result == PROBE_FAILURE);
		CHECK_STR_ROW(i, t.output, with_port(&a, closed[i].output, port));
	}
	site_begin(&s, NULL);
	struct tried t = try(&a, NULL, "{}", with_port(&a, "{\"tcpSocket\":{\"port\":%u}}", s.port), 1000, false);
	CHECK_INT(t.result, PROBE_SUCCESS);
	site_end(&s);
	t = try(&a, NULL, "{}", "{\"tcpSocket\":{\"port\":1,\"host\":\"unix:/run/x\"}}", 1000, false);
	CHECK_INT(t.result, PROBE_UNKNOWN);
}

/* ---- grpc ---- */

static int health(struct grpc_server_call *call, str request, void *arg, struct err *err)
{
	(void)arg;
	if (!request.n)
		return grpc_reply(call, STR("\x08\x01"), err);
	str service = str_skip(request, 2);
	if (str_eq(service, STR("down")))
		return grpc_reply(call, STR("\x08\x02"), err);
	if (str_eq(service, STR("slow")))
		return fiber_sleep_ms(5000, err);
	return err_set(err, ERR_NOT_FOUND, "unknown service");
}

static int grpc_run(void *arg) { return grpc_server_run(arg, 0, NULL); }

static void check_grpc_with(const struct grpc_method *methods, size_t n, unsigned port, const char *service, enum probe_result result, const char *output)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct grpc_server_options o = { .methods = methods, .n_methods = n };
	struct grpc_server *server = grpc_server_new(&o);

	CHECK_INT(grpc_server_listen(server, arena_printf(&a, "127.0.0.1:%u", port).p, NULL), 0);
	struct fiber *f = start(grpc_run, server);
	str handler = arena_printf(&a, "{\"grpc\":{\"port\":%u,\"service\":\"%s\"}}", port, service);
	struct tried t = try(&a, NULL, "{}", handler.p, 500, false);
	CHECK_STR(t.output, output);
	CHECK_INT(t.result, result);
	(void)fiber_stop(f);
	grpc_server_free(server);
}

FIBER_TEST(probe_grpc_asks_for_health)
{
	static const struct grpc_method methods[] = { { STR_INIT("/grpc.health.v1.Health/Check"), health, false, NULL } };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	unsigned port = free_port();

	check_grpc_with(methods, 1, port, "", PROBE_SUCCESS, "service healthy");
	check_grpc_with(methods, 1, port, "down", PROBE_FAILURE, "service unhealthy (responded with \"NOT_SERVING\")");
	check_grpc_with(methods, 1, port, "slow", PROBE_FAILURE, "timeout: health rpc did not complete within 500ms");
	check_grpc_with(methods, 1, port, "other", PROBE_FAILURE, "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service");
	check_grpc_with(&(struct grpc_method){ STR("/x.Y/Z"), health, false, NULL }, 1, port, "", PROBE_FAILURE,
			"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown method "
			"Check for service grpc.health.v1.Health");
	port = free_port();
	struct tried t = try(&a, NULL, "{}", with_port(&a, "{\"grpc\":{\"port\":%u}}", port), 300, false);
	CHECK_INT(t.result, PROBE_FAILURE);
	CHECK_STR(t.output, with_port(&a, "timeout: failed to connect service \"127.0.0.1:%u\" within 300ms: context deadline exceeded", port));
}
