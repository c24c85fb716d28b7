/*
 * What fibers cost, beside their peers in the same run: a hand-over between two, a round through 10,000, making and
 * joining one, and the memory of an idle one. Peers: contexts of the C library (swapcontext) and threads that hand over
 * through a condition variable. Each number is the best of several rounds: what the machine can do, without its other
 * work.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"

enum {
	ROUNDS = 15,
	HOT = 20000,          /* hand-overs between two */
	THREAD_HOT = 2000,    /* the same between threads */
	MANY = 10000,         /* fibers or contexts in a ring */
	LAPS = 2,             /* rounds through the ring */
	SPAWNS = 2000,
	THREAD_SPAWNS = 100,
	THREADS = 1000,       /* idle threads */
	CONTEXT_STACK = 64 * 1024,
};

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench fiber: %s failed\n", what);
		exit(1);
	}
}

/* ns per step of the best round. */
static double best(void (*round)(void), int64_t steps)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t start = clock_now_ns();
		round();
		least = MIN(least, clock_now_ns() - start);
	}
	return (double)least / (double)steps;
}

/* ---- Fibers ---- */

static int laps;

static int yield_laps(void *arg)
{
	(void)arg;
	for (int i = 0; i < laps; i++)
		(void)fiber_yield(NULL);
	return 0;
}

static void fibers_yield(int n, int each)
{
	CLEANUP(fiber_group_done) struct fiber_group g;

	laps = each;
	fiber_group_init(&g);
	for (int i = 0; i < n; i++)
		must(fiber_group_spawn(&g, yield_laps, NULL, NULL, "f%d", i) == 0, "fiber_spawn");
	must(fiber_group_wait(&g, NULL) == 0, "fiber_group_wait");
}

static void fibers_hot(void) { fibers_yield(2, HOT / 2); }

/* One that waits for the other by name, as code does that uses a channel. */
static int pass_on(void *arg)
{
	struct channel *c = arg;
	void *item;

	while (channel_recv(&c[0], &item, NULL) > 0)
		(void)channel_send(&c[1], item, NULL);
	channel_close(&c[1]);
	return 0;
}

static void fibers_channel(void)
{
	struct channel c[2];
	void *item;

	channel_init(&c[0], 1, "ball");
	channel_init(&c[1], 1, "ball");
	must(fiber_spawn(pass_on, c, NULL, NULL, "wall") == 0, "fiber_spawn");
	for (int i = 0; i < HOT / 2; i++) {
		(void)channel_send(&c[0], NULL, NULL);
		(void)channel_recv(&c[1], &item, NULL);
	}
	channel_close(&c[0]);
	(void)channel_recv(&c[1], &item, NULL);
	channel_done(&c[0]);
	channel_done(&c[1]);
}

static struct fiber_cond ring_go = FIBER_COND_INIT(ring_go, "the start");
static struct fiber_group ring;
static int64_t ring_best = INT64_MAX;

/* The first of the ring looks at the clock once in a few laps. */
static int ring_member(void *arg)
{
	if (fiber_cond_wait(&ring_go, NULL) < 0)
		return 0;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t start = clock_now_ns();
		(void)yield_laps(NULL);
		if (arg)
			ring_best = MIN(ring_best, clock_now_ns() - start);
	}
	return 0;
}

static void ring_make(void)
{
	fiber_group_init(&ring);
	for (int i = 0; i < MANY; i++)
		must(fiber_group_spawn(&ring, ring_member, i ? NULL : &ring, NULL, "ring %d", i) == 0, "fiber_spawn");
	fiber_settle();
}

static int spawn_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void fibers_spawn(void)
{
	struct fiber *f;
	for (int i = 0; i < SPAWNS; i++)
		must(fiber_spawn(spawn_nothing, NULL, &f, NULL, "short") == 0 && fiber_join(f, NULL, NULL) == 0, "fiber_join");
}

/* ---- Contexts of the C library ---- */

struct context {
	ucontext_t uc;
	char *stack;
};

static struct context *contexts;
static ucontext_t back;
static int n_contexts;

static void context_main(int at)
{
	for (;;)
		(void)swapcontext(&contexts[at].uc, at + 1 < n_contexts ? &contexts[at + 1].uc : &back);
}

static void contexts_make(int n)
{
	n_contexts = n;
	contexts = mem_array((size_t)n, sizeof(*contexts));
	for (int i = 0; i < n; i++) {
		int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
		contexts[i].stack = mmap(NULL, CONTEXT_STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
		must(contexts[i].stack != MAP_FAILED && getcontext(&contexts[i].uc) == 0, "getcontext");
		contexts[i].uc.uc_stack = (stack_t){ .ss_sp = contexts[i].stack, .ss_size = CONTEXT_STACK };
		makecontext(&contexts[i].uc, (void (*)(void))context_main, 1, i);
	}
	(void)swapcontext(&back, &contexts[0].uc);
}

static void contexts_free(void)
{
	for (int i = 0; i < n_contexts; i++)
		(void)munmap(contexts[i].stack, CONTEXT_STACK);
	free(contexts);
}

static void contexts_hot(void)
{
	for (int i = 0; i < HOT / 2; i++)
		(void)swapcontext(&back, &contexts[0].uc);
}

static void contexts_ring(void)
{
	for (int i = 0; i < LAPS; i++)
		(void)swapcontext(&back, &contexts[0].uc);
}

/* ---- Threads ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int turn_of;

static void *take_turns(void *arg)
{
	int me = *(int *)arg;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < THREAD_HOT / 2; i++) {
		while (turn_of != me)
			pthread_cond_wait(&moved, &lock);
		turn_of = !me;
		pthread_cond_signal(&moved);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void threads_hot(void)
{
	pthread_t other;
	int me = 0, them = 1;

	turn_of = 0;
	must(pthread_create(&other, NULL, take_turns, &them) == 0, "pthread_create");
	(void)take_turns(&me);
	(void)pthread_join(other, NULL);
}

static void *thread_nothing(void *arg) { return arg; }

static void threads_spawn(void)
{
	pthread_t t;
	for (int i = 0; i < THREAD_SPAWNS; i++)
		must(pthread_create(&t, NULL, thread_nothing, NULL) == 0 && pthread_join(t, NULL) == 0, "pthread_create");
}

static void *thread_idle(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (turn_of != -1)
		pthread_cond_wait(&moved, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- Memory ---- */

/*
 * Resident memory and page tables of this process, in bytes. What else the kernel keeps (a thread's 16 KiB stack there)
 * is not in it.
 */
static int64_t memory_used(void)
{
	char line[256];
	long kib, sum = 0;
	FILE *f = fopen("/proc/self/status", "re");

	must(f != NULL, "open /proc/self/status");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1 || sscanf(line, "VmPTE: %ld", &kib) == 1)
			sum += kib;
	(void)fclose(f);
	return sum * 1024;
}

static double bytes_per_thread(void)
{
	static pthread_t threads[THREADS];
	int64_t before = memory_used();

	turn_of = 0;
	for (int i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, thread_idle, NULL) == 0, "pthread_create");
	usleep(200 * 1000);
	double bytes = (double)(memory_used() - before) / THREADS;
	pthread_mutex_lock(&lock);
	turn_of = -1;
	pthread_cond_broadcast(&moved);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	return bytes;
}

/* ---- The report ---- */

static void report(const char *what, const char *unit, double ours, const char *peer, double theirs)
{
	printf("%-28s %9.1f %-6s %-12s %9.1f  ratio %.3f\n", what, ours, unit, peer, theirs, ours / theirs);
}

static int bench(void *arg)
{
	(void)arg;
	contexts_make(1);
	double hot = best(fibers_hot, HOT), peer = best(contexts_hot, HOT), threads = best(threads_hot, THREAD_HOT);
	contexts_free();
	report("hand-over, two yielding", "ns", hot, "swapcontext", peer);
	report("hand-over, two yielding", "ns", hot, "pthread", threads);
	report("hand-over, channel", "ns", best(fibers_channel, HOT), "pthread", threads);
	report("spawn and join", "ns", best(fibers_spawn, SPAWNS), "pthread", best(threads_spawn, THREAD_SPAWNS));

	double idle_thread = bytes_per_thread();
	int64_t before = memory_used();
	ring_make();
	report("idle, resident", "bytes", (double)(memory_used() - before) / MANY, "pthread", idle_thread);

	laps = LAPS;
	fiber_cond_broadcast(&ring_go);
	must(fiber_group_wait(&ring, NULL) == 0, "fiber_group_wait");
	double ring_ns = (double)ring_best / ((double)LAPS * MANY);
	contexts_make(MANY);
	report("hand-over, 10,000 in a ring", "ns", ring_ns, "swapcontext", best(contexts_ring, (int64_t)LAPS * MANY));
	contexts_free();
	return 0;
}

int main(void)
{
	struct err err = ERR_INIT;
	struct loop *loop = NULL;
	int r = loop_new("bench", &loop, &err);

	if (r == 0)
		r = loop_run(loop, bench, NULL, &err);
	if (r < 0)
		fprintf(stderr, "bench fiber: %s\n", err.msg);
	loop_free(loop);
	return r < 0;
}
