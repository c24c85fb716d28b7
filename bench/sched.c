/*
 * How many pods per second the scheduler finds a node for, by the shape of the work and the number of nodes: queue, informers, filters, scores,
 * preemption and binding, with an API server that answers at once. The shapes are those of Kubernetes' own benchmark (scheduler_perf), and the
 * last column is the ratio to the least that its maintainers accept at 5,000 nodes. How long one shape takes beside another, and how that grows
 * with the nodes, is what counts here; bench/sched.py measures with a whole API server.
 *
 *	bench-sched [NODES ...]            (5000 100000)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "bench/sched_server.h"
#include "client/informer.h"
#include "codec/json.h"
#include "codec/types.h"
#include "scheduler/scheduler.h"

#define AFFINITY(kind, key)                                                                                             \
	"\"affinity\":{\"" kind "\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"labelSelector\":{\"matchLabels\":" \
	"{\"color\":\"blue\"}},\"topologyKey\":\"" key "\"}]}},"
#define IN_ZONES                                                                                                        \
	"\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"         \
	"\"matchExpressions\":[{\"key\":\"topology.kubernetes.io/zone\",\"operator\":\"In\",\"values\":[\"zone-0\",\"zone-1\"]}]}]}}},"
#define SPREAD                                                                                                          \
	"\"topologySpreadConstraints\":[{\"maxSkew\":5,\"topologyKey\":\"topology.kubernetes.io/zone\","                       \
	"\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{\"matchLabels\":{\"color\":\"blue\"}}}],"

static const struct workload {
	const char *name;
	unsigned floor;               /* pods per second, of Kubernetes at 5,000 nodes */
	unsigned zones;
	unsigned placed, per_node;    /* pods that are there before: so many, or so many on each node */
	const char *placed_cpu;
	unsigned waiting;             /* pods that fit nowhere */
	unsigned pods;                /* that are measured */
	const char *cpu, *spec;       /* of each */
	int priority;
} shapes[] = {
	{ "basic", 270, 1, 1000, 0, "100m", 0, 10000, "100m", "", 0 },
	{ "node affinity", 220, 3, 1000, 0, "100m", 0, 10000, "100m", IN_ZONES, 0 },
	{ "topology spreading", 85, 3, 5000, 0, "100m", 0, 5000, "100m", SPREAD, 0 },
	{ "pod affinity", 35, 1, 5000, 0, "100m", 0, 5000, "100m", AFFINITY("podAffinity", "topology.kubernetes.io/zone"), 0 },
	{ "pod anti-affinity", 60, 1, 1000, 0, "100m", 0, 2000, "100m", AFFINITY("podAntiAffinity", "kubernetes.io/hostname"), 0 },
	{ "preemption", 160, 1, 0, 4, "900m", 0, 5000, "3000m", "", 10 },
	{ "unschedulable backlog", 140, 1, 0, 0, "100m", 1000, 10000, "100m", "", 0 },
};

enum { FLOOR_NODES = 5000, CONTENT_MAX = 1 << 16 };

struct run {
	const struct workload *shape;
	uint32_t n_nodes;
	struct sched_server server;
	struct informers *informers;
	struct scheduler *scheduler;
	double seconds, cpu_seconds;
	struct err err;
};

static struct frozen *object_of(const struct type *type, struct buf *json)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val v;

	if (json_decode(&a, buf_str(json), &(struct json_decode_options){ .type = type }, &v, &err) < 0) {
		fprintf(stderr, "bench-sched: %s\n", err.msg);
		exit(1);
	}
	struct frozen *object = val_freeze(v);
	buf_reset(json);
	return object;
}

static void add_nodes(struct run *r)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONTENT_MAX);

	for (uint32_t i = 0; i < r->n_nodes; i++) {
		buf_addf(&b, "{\"metadata\":{\"name\":\"n-%u\",\"uid\":\"n-%u\",\"labels\":{\"kubernetes.io/hostname\":\"n-%u\","
			 "\"topology.kubernetes.io/zone\":\"zone-%u\"}},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"32Gi\",\"pods\":\"110\"},"
			 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", i, i, i, i % r->shape->zones);
		sched_server_node(&r->server, object_of(TYPE(core_v1, Node), &b));
	}
}

struct pods { size_t first, n; const char *cpu, *spec; int priority; };

/* on: the nodes that they are on already, one after another; 0: they need one. */
static void add_pods(struct run *r, const struct pods *p, uint32_t on)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(CONTENT_MAX);

	for (size_t i = 0; i < p->n; i++) {
		size_t number = p->first + i;
		buf_addf(&b, "{\"metadata\":{\"name\":\"p-%zu\",\"uid\":\"p-%zu\",\"namespace\":\"default\",\"labels\":{\"color\":\"blue\"}},\"spec\":{%s",
			 number, number, p->spec);
		if (on)
			buf_addf(&b, "\"nodeName\":\"n-%zu\",", i % on);
		buf_addf(&b, "\"schedulerName\":\"default-scheduler\",\"priority\":%d,\"containers\":[{\"name\":\"pause\",\"image\":\"pause\","
			 "\"resources\":{\"requests\":{\"cpu\":\"%s\",\"memory\":\"500Mi\"}}}]},\"status\":{\"phase\":\"Pending\"}}", p->priority, p->cpu);
		sched_server_pod(&r->server, number, object_of(TYPE(core_v1, Pod), &b));
	}
}

static int run_scheduler(void *arg)
{
	struct run *r = arg;

	return scheduler_run(r->scheduler, &r->err);
}

/* Of this process: on a machine that does other things as well it says more than the clock. */
static double cpu_seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NS_PER_S;
}

/* (suspends) */
static int measure(struct run *r)
{
	const struct workload *s = r->shape;
	size_t there = s->per_node ? (size_t)s->per_node * r->n_nodes : s->placed, waiting = s->waiting;
	CLEANUP(frozen_unrefp) struct frozen *config = NULL;
	CLEANUP(fiber_stopp) struct fiber *running = NULL;
	int code;

	sched_server_init(&r->server, there + waiting + s->pods);
	r->informers = informers_new(&r->server.client);
	if ((code = scheduler_config_load(NULL, VAL_EMPTY, &config, &r->err)) < 0)
		return code;
	const struct scheduler_options o = { .client = &r->server.client, .informers = r->informers, .config = config, .seed = 1 };
	if ((code = scheduler_new(&o, &r->scheduler, &r->err)) < 0)
		return code;
	add_nodes(r);
	add_pods(r, &(struct pods){ 0, there, s->placed_cpu, s->per_node ? "" : s->spec, 0 }, r->n_nodes);
	add_pods(r, &(struct pods){ there, waiting, "9", "", 0 }, 0);
	if ((code = informers_start(r->informers, &r->err)) < 0 || (code = informers_wait(r->informers, &r->err)) < 0 ||
	    (code = fiber_spawn(run_scheduler, r, &running, &r->err, "scheduler")) < 0)
		return code;
	while (r->server.n_refused < waiting && code == 0)
		code = fiber_sleep_ms(1, &r->err);
	add_pods(r, &(struct pods){ there + waiting, s->pods, s->cpu, s->spec, s->priority }, 0);
	r->server.wanted = s->pods;
	int64_t from_ns = clock_now_ns();
	double cpu_from = cpu_seconds();
	while (r->server.n_bound < s->pods && code == 0)
		code = fiber_cond_wait(&r->server.enough, &r->err);
	r->seconds = (double)(clock_now_ns() - from_ns) / NS_PER_S;
	r->cpu_seconds = cpu_seconds() - cpu_from;
	return code;
}

static int run_shape(void *arg)
{
	struct run *r = arg;
	int code = measure(r);

	scheduler_free(r->scheduler);
	informers_free(r->informers);
	sched_server_done(&r->server);
	return code;
}

static bool show(const struct workload *s, uint32_t n_nodes)
{
	struct run r = { .shape = s, .n_nodes = n_nodes };
	struct rusage usage;

	CLEANUP(loop_freep) struct loop *loop = NULL;

	if (loop_new("bench", &loop, &r.err) < 0 || loop_run(loop, run_shape, &r, &r.err) < 0) {
		fprintf(stderr, "bench-sched: %s: %s\n", s->name, r.err.msg);
		return false;
	}
	double rate = s->pods / r.seconds;
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("%-22s %7u nodes %9.0f pods/s %8.1f us of CPU per pod", s->name, n_nodes, rate, 1e6 * r.cpu_seconds / s->pods);
	if (n_nodes == FLOOR_NODES)
		printf("   %5.0f times the floor of %u", rate / s->floor, s->floor);
	printf("   %ld MB at most\n", usage.ru_maxrss / 1024);
	(void)fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = { "5000", "100000" };
	const char *const *sizes = argc > 1 ? (const char *const *)argv + 1 : usual;
	size_t n = argc > 1 ? (size_t)argc - 1 : ARRAY_LEN(usual);
	const char *only = getenv("SHAPE");
	bool good = true;

	log_set_level(LOG_LEVEL_ERROR);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
			if (!only || strcmp(only, shapes[k].name) == 0)
				good = show(&shapes[k], (uint32_t)strtoul(sizes[i], NULL, 10)) && good;
	return good ? 0 : 1;
}
