/*
 * What a request passes on its way to the store: nanoseconds per stage for the create of a usual Pod, by a user who may do so
 * through RBAC, with the plugins that are on by default. One process and no network; the server is a whole one, only its
 * stages are called one by one. The last line says how that compares to decoding the same Pod once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/fairness/fairness.h"
#include "apiserver/inprocess.h"
#include "apiserver/pipeline.h"
#include "apiserver/request_testing.h"
#include "apiserver/server_testing.h"
#include "apiserver/write.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "codec/json.h"

enum { WARM_UP = 500, ROUNDS = 40, TIMES = 250, GOAL_NS = 30000, WAIT_MS = 10000 };

#define TOKEN "a-token-of-the-usual-length"

static const char pod[] =
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"generateName\":\"checkout-6b9c7f7d5d-\",\"labels\":{\"app\":\"checkout\","
	"\"pod-template-hash\":\"6b9c7f7d5d\",\"tier\":\"backend\"},\"annotations\":{\"prometheus.io/port\":\"9090\","
	"\"prometheus.io/scrape\":\"true\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
	"\"name\":\"checkout-6b9c7f7d5d\",\"uid\":\"b2b5f5a1-93c0-4f0a-8d2f-6f1c3f2f9a0e\",\"controller\":true,"
	"\"blockOwnerDeletion\":true}]},\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"checkout-config\"}}],"
	"\"containers\":[{\"name\":\"server\",\"image\":\"registry.example.com/shop/checkout:2.14.1\",\"args\":[\"--port=8080\","
	"\"--metrics=9090\"],\"ports\":[{\"name\":\"http\",\"containerPort\":8080},{\"name\":\"metrics\",\"containerPort\":9090}],"
	"\"env\":[{\"name\":\"REGION\",\"value\":\"eu-1\"},{\"name\":\"POD_IP\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":"
	"\"status.podIP\"}}}],\"resources\":{\"requests\":{\"cpu\":\"250m\",\"memory\":\"256Mi\"},\"limits\":{\"memory\":\"512Mi\"}},"
	"\"volumeMounts\":[{\"name\":\"config\",\"mountPath\":\"/etc/checkout\"}],\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\","
	"\"port\":\"http\"},\"periodSeconds\":10},\"readinessProbe\":{\"httpGet\":{\"path\":\"/ready\",\"port\":\"http\"}}},"
	"{\"name\":\"proxy\",\"image\":\"registry.example.com/mesh/proxy:1.9\",\"ports\":[{\"containerPort\":15001}],"
	"\"resources\":{\"requests\":{\"cpu\":\"50m\",\"memory\":\"64Mi\"}}}],\"nodeSelector\":{\"pool\":\"general\"},"
	"\"tolerations\":[{\"key\":\"spot\",\"operator\":\"Exists\"}],\"terminationGracePeriodSeconds\":45}}";

struct bench {
	struct server_folder folder;
	struct apiserver *server;
	struct fiber *main, *worker;
	struct call call;
	double stage_ns[STAGE_MAX], decode_ns; /* the best of the rounds */
	bool failed;
	char why[1024];
};

static int (*const stages[])(struct request *q, struct err *err) = {
#define STAGE_ROW(name, fn) [STAGE_##name] = fn,
	STAGES(STAGE_ROW)
#undef STAGE_ROW
};

/* ---- one request ---- */

static void prepare(struct bench *b)
{
	static struct http_peer peer = { .address = STR_INIT("127.0.0.1:40000"), .tls = true };
	struct call *c = &b->call;
	arena_reset(&c->arena);
	call_new(c, STR("POST"), STR("/api/v1/namespaces/default/pods"));
	call_header(c, STR("authorization"), STR("Bearer " TOKEN));
	call_header(c, STR("content-type"), STR("application/json"));
	call_header(c, STR("accept"), STR("application/json"));
	call_header(c, STR("user-agent"), STR("bench/1.0"));
	call_body(c, str_of(pod));
	c->x.pub.peer = &peer;
	c->q.server = b->server;
	c->q.begun_ns = clock_now_ns();
	c->q.begun_wall_ns = clock_wall_ns();
}

static void finish(struct request *q)
{
	write_finish(q, false);
	fairness_leave(q);
	answer_done(q);
	object_unref(q->current);
}

/* The stages up to the store; each adds its time. False: one has refused. */
static bool pass(struct bench *b, double spent_ns[STAGE_MAX])
{
	struct call *c = &b->call;
	prepare(b);
	int64_t from_ns = clock_now_ns();
	for (enum stage s = 0; s < STAGE_STORE; s++) {
		int r = stages[s](&c->q, &c->err);
		int64_t to_ns = clock_now_ns();
		spent_ns[s] += (double)(to_ns - from_ns);
		from_ns = to_ns;
		if (r != STAGE_NEXT) {
			str why = val_exists(c->q.failure) ? val_as_str(val_find(c->q.failure, STR("message"))) : err_str(&c->err);
			(void)snprintf(b->why, sizeof b->why, "%s: " STR_FMT, stage_names[s], STR_ARG(why));
			finish(&c->q);
			return false;
		}
	}
	finish(&c->q);
	return true;
}

/* The roles that every cluster has are made in the background. */
static bool wait_until_allowed(struct bench *b)
{
	double ignored_ns[STAGE_MAX] = { 0 };
	for (int i = 0; i < WAIT_MS / 10; i++)
		if (pass(b, ignored_ns) || fiber_sleep_ms(10, NULL) < 0)
			return true;
	return false;
}

static double decode_once(struct bench *b)
{
	const struct type *type;
	struct val v;
	arena_reset(&b->call.arena);
	int64_t from_ns = clock_now_ns();
	(void)json_decode_object(&b->call.arena, str_of(pod), NULL, &v, &type, NULL);
	return (double)(clock_now_ns() - from_ns);
}

static void better(double *best, double ns) { *best = *best == 0 || ns < *best ? ns : *best; }

static bool measure(struct bench *b)
{
	double spent_ns[STAGE_MAX] = { 0 }, decode_ns;
	if (!wait_until_allowed(b))
		return false;
	for (int i = 0; i < WARM_UP; i++)
		if (!pass(b, spent_ns))
			return false;
	for (int round = 0; round < ROUNDS; round++) {
		memset(spent_ns, 0, sizeof spent_ns);
		decode_ns = 0;
		for (int i = 0; i < TIMES; i++) {
			decode_ns += decode_once(b);
			if (!pass(b, spent_ns))
				return false;
		}
		better(&b->decode_ns, decode_ns / TIMES);
		for (enum stage s = 0; s < STAGE_STORE; s++)
			better(&b->stage_ns[s], spent_ns[s] / TIMES);
	}
	return true;
}

static bool is_gate(enum stage s)
{
	return s == STAGE_AUDIT || s == STAGE_AUTHENTICATE || s == STAGE_IMPERSONATE || s == STAGE_FAIRNESS || s == STAGE_AUTHORIZE ||
	       s == STAGE_MUTATE || s == STAGE_ADMIT;
}

static void show(const struct bench *b)
{
	double all = 0, gates = 0;
	printf("create of a Pod of %zu bytes, best of %d rounds of %d\n", sizeof pod - 1, ROUNDS, TIMES);
	for (enum stage s = 0; s < STAGE_STORE; s++) {
		printf("  %-14s %8.0f ns%s\n", stage_names[s], b->stage_ns[s], is_gate(s) ? "  gate" : "");
		all += b->stage_ns[s];
		gates += is_gate(s) ? b->stage_ns[s] : 0;
	}
	printf("  %-14s %8.0f ns  (goal: under %d)\n", "gates", gates, GOAL_NS);
	printf("  %-14s %8.0f ns\n", "all", all);
	printf("  %-14s %8.0f ns  (the codec alone: the gates take %.1f times as long, all %.1f times)\n", "JSON decode", b->decode_ns,
	       gates / b->decode_ns, all / b->decode_ns);
}

/* ---- the server ---- */

/* What a team has: an account for its pods, and the right to make them. */
static int furnish(struct apiserver *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	static const struct json_decode_options free_tree = { .sort_keys = true };
	struct val account, binding;
	(void)json_decode(&a, STR("{\"metadata\":{\"name\":\"default\",\"namespace\":\"default\"}}"), &free_tree, &account, err);
	(void)json_decode(&a, STR("{\"metadata\":{\"name\":\"devs\",\"namespace\":\"default\"},\"roleRef\":{\"apiGroup\":"
				  "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"edit\"},\"subjects\":[{\"apiGroup\":"
				  "\"rbac.authorization.k8s.io\",\"kind\":\"Group\",\"name\":\"devs\"}]}"), &free_tree, &binding, err);
	int r = inprocess_create(INPROCESS(s, "", "serviceaccounts"), account, err);
	return r < 0 ? r : inprocess_create(INPROCESS(s, "rbac.authorization.k8s.io", "rolebindings"), binding, err);
}

static int work(void *arg)
{
	struct bench *b = arg;
	struct err err = ERR_INIT;
	if (furnish(b->server, &err) < 0)
		(void)snprintf(b->why, sizeof b->why, "%s", err.msg);
	else
		b->failed = !measure(b);
	fiber_cancel(b->main);
	return 0;
}

static void ready(struct apiserver *s, void *arg)
{
	struct bench *b = arg;
	b->server = s;
	if (fiber_spawn(work, b, &b->worker, NULL, "bench") < 0)
		fiber_cancel(b->main);
}

/* With what the benchmark needs beside the defaults. */
static int make_options(struct bench *b, struct apiserver_options *ret, struct err *err)
{
	static const char *const modes[] = { "Node", "RBAC", NULL };
	int r = server_folder_make(&b->folder, err);

	if (r < 0)
		return r;
	*ret = server_options(&b->folder);
	ret->allow_privileged = true;
	ret->authn.anonymous_auth = true;
	ret->authz.modes = modes;
	ret->authn.token_auth_file = server_folder_put(&b->folder, "tokens.csv", TOKEN ",alice,1,\"devs\"\n");
	return ret->authn.token_auth_file ? 0 : err_set(err, ERR_SYSTEM, "the file with tokens cannot be written");
}

static int run(void *arg)
{
	struct bench *b = arg;
	struct apiserver_options o;
	struct err err = ERR_INIT;
	b->main = fiber_self();
	log_set_level(LOG_LEVEL_WARN);
	int r = make_options(b, &o, &err);
	if (r >= 0)
		r = apiserver_run(&o, ready, b, &err);
	if (b->worker)
		(void)fiber_stop(b->worker);
	if (r < 0 && r != -ERR_CANCELED)
		(void)snprintf(b->why, sizeof b->why, "%s", err.msg);
	return 0;
}

int main(void)
{
	static struct bench b;
	CLEANUP(loop_freep) struct loop *loop = NULL;
	struct err err = ERR_INIT;
	b.failed = true;
	if (loop_new("bench", &loop, &err) == 0)
		(void)loop_run(loop, run, &b, &err);
	if (b.folder.path[0])
		server_folder_done(&b.folder);
	if (b.failed)
		fprintf(stderr, "bench-gates: %s\n", b.why);
	else
		show(&b);
	arena_done(&b.call.arena);
	buf_done(&b.call.x.in);
	return b.failed;
}
