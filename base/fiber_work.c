/* Work that would block the loop: on the threads of libuv's pool, or on a thread of its own. */
#include "base/fiber_priv.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/mem.h"

/*
 * Signals are for the threads of loops. Other threads inherit the mask of the one that makes them, the pool's at the first request: made
 * without signals, they cannot take one that a loop has blocked to read it from a descriptor, which would end the process.
 */
static sigset_t without_signals(void)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	return before;
}

static void with_signals(const sigset_t *before) { (void)pthread_sigmask(SIG_SETMASK, before, NULL); }

/* A request to the pool that a fiber waits for; on its stack. */
struct pending {
	struct fiber *fiber;
	bool done;
	int status; /* libuv's: 0, or why it was not done */
};

static void pending_done(struct pending *p, int status)
{
	p->done = true;
	p->status = status;
	fiber_wake(p->fiber);
}

/*
 * Returns when the pool is done with req, however it ends: the request and what it points to live on the fiber's stack.
 * 0, or why it was withdrawn. Nothing is written to err before that, because the thread may be writing to the same one.
 */
static int pending_wait(struct pending *p, uv_req_t *req, struct err *err)
{
	struct loop *loop = fiber_loop;

	loop->outside++;
	int r = fiber_wait(NULL, "the thread pool", -1, NULL);
	if (r < 0 && !p->done) {
		(void)uv_cancel(req);
		while (!p->done)
			fiber_wait_firm(NULL, "the thread pool, to withdraw");
	}
	loop->outside--;
	if (r < 0 && (p->status == UV_ECANCELED || p->status == UV_EAI_CANCELED))
		return err_set(err, (enum err_code)-r, "%s while waiting for a free thread",
			       r == -ERR_TIMEOUT ? "timed out" : "canceled");
	return 0;
}

struct work {
	uv_work_t req;
	struct pending pending;
	int (*fn)(void *arg, struct err *err);
	void *arg;
	struct err *err;
	int result;
};

static void work_run(uv_work_t *req)
{
	struct work *w = CONTAINER_OF(req, struct work, req);
	w->result = w->fn(w->arg, w->err);
}

static void work_done(uv_work_t *req, int status)
{
	pending_done(&CONTAINER_OF(req, struct work, req)->pending, status);
}

int fiber_blocking(int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
	struct work w = { .pending.fiber = fiber_self(), .fn = fn, .arg = arg, .err = err };
	int r = fiber_check(err);

	if (r < 0)
		return r;
	sigset_t before = without_signals();
	r = uv_queue_work(&fiber_loop->uv, &w.req, work_run, work_done);
	with_signals(&before);
	if (r < 0)
		return err_sys(err, -r, "hand work to the thread pool");
	r = pending_wait(&w.pending, (uv_req_t *)&w.req, err);
	return r < 0 ? r : w.result;
}

/*
 * A thread with one job at a time. The job is handed over by a semaphore alone: the pool's mutex and condition wake a
 * thread twice for one job, and every job finds another thread with cold caches.
 */
struct worker {
	pthread_t thread;
	sem_t work;
	struct worker_job *job; /* NULL ends the thread */
	_Atomic int64_t took_ns; /* by the last job */
};

/*
 * A thread that slept needs tens of microseconds to be awake again, on a virtual machine more. So when nothing else is ready and jobs are
 * quick, the fiber looks for the end of its job for a moment before its loop sleeps.
 */
enum { WATCH_NS = 400 * 1000 };

struct worker_job {
	struct pending pending;
	struct loop *loop;
	int (*fn)(void *arg, struct err *err);
	void *arg;
	struct err *err;
	int result;
	atomic_bool settled;     /* the job has ended, or its fiber sleeps; whoever comes second knows of the other */
};

static void job_done(void *arg)
{
	struct worker_job *job = arg;
	pending_done(&job->pending, 0);
}

/* Of the machine, also where a test has put a virtual clock in place. */
static int64_t machine_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* True: the job has ended. False: its thread knows that the fiber sleeps. */
static bool job_watch(struct worker_job *job, int64_t ns)
{
	int64_t end_ns = machine_ns() + ns;

	while (ns && machine_ns() < end_ns)
		if (atomic_load(&job->settled))
			return true;
	return atomic_exchange(&job->settled, true);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		while (sem_wait(&w->work) < 0)
			;
		struct worker_job *job = w->job;
		if (!job)
			return NULL;
		int64_t begun_ns = machine_ns();
		job->result = job->fn(job->arg, job->err);
		atomic_store(&w->took_ns, machine_ns() - begun_ns);
		struct loop *loop = job->loop;
		if (atomic_exchange(&job->settled, true)) /* else the fiber sees it, and the job may be gone already */
			loop_post(loop, job_done, job);
	}
}

int worker_start(const char *name, struct worker **ret, struct err *err)
{
	struct worker *w = mem_zalloc(sizeof *w);

	(void)sem_init(&w->work, 0, 0);
	sigset_t before = without_signals();
	int e = pthread_create(&w->thread, NULL, worker_main, w);
	with_signals(&before);
	if (e) {
		(void)sem_destroy(&w->work);
		free(w);
		return err_sys(err, e, "start the thread of %s", name);
	}
	(void)pthread_setname_np(w->thread, name);
	*ret = w;
	return 0;
}

int worker_run(struct worker *w, int (*fn)(void *arg, struct err *err), void *arg, struct err *err)
{
	struct worker_job job = {
		.pending.fiber = fiber_self(), .loop = fiber_loop, .fn = fn, .arg = arg, .err = err
	};
	int r = fiber_check(err);

	if (r < 0)
		return r;
	assert(!w->job && "one job at a time");
	w->job = &job;
	bool quick = list_empty(&job.loop->ready) && atomic_load(&w->took_ns) < WATCH_NS;
	(void)sem_post(&w->work);
	if (!job_watch(&job, quick ? WATCH_NS : 0)) {
		job.loop->outside++;
		while (!job.pending.done)
			fiber_wait_firm(NULL, "a thread of its own");
		job.loop->outside--;
	}
	w->job = NULL;
	return job.result;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	assert(!w->job);
	(void)sem_post(&w->work);
	(void)pthread_join(w->thread, NULL);
	(void)sem_destroy(&w->work);
	free(w);
}

static int do_fsync(void *arg, struct err *err)
{
	const int *fd = arg;

	while (fsync(*fd) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "fsync");
	return 0;
}

int fiber_fsync(int fd, struct err *err) { return fiber_blocking(do_fsync, &fd, err); }

struct lookup {
	uv_getaddrinfo_t req;
	struct pending pending;
	struct addrinfo *list;
};

static void lookup_done(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct lookup *l = CONTAINER_OF(req, struct lookup, req);
	l->list = list;
	pending_done(&l->pending, status);
}

static int lookup_error(int status, const char *name, struct err *err)
{
	switch (status) {
	case UV_EAI_NONAME:
	case UV_EAI_NODATA:
		return err_set(err, ERR_UNAVAILABLE, "look up %s: no such host", name);
	case UV_EAI_AGAIN:
		return err_set(err, ERR_UNAVAILABLE, "look up %s: the name servers do not answer", name);
	default:
		return err_set(err, ERR_SYSTEM, "look up %s: %s", name, uv_strerror(status));
	}
}

int fiber_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list,
		      struct err *err)
{
	struct lookup l = { .pending.fiber = fiber_self() };
	int r = fiber_check(err);

	if (r < 0)
		return r;
	/* libuv copies the names and the hints. */
	sigset_t before = without_signals();
	r = uv_getaddrinfo(&fiber_loop->uv, &l.req, lookup_done, node, service, hints);
	with_signals(&before);
	if (r < 0)
		return err_sys(err, -r, "look up %s", node ? node : service);
	r = pending_wait(&l.pending, (uv_req_t *)&l.req, err);
	if (r < 0)
		return r;
	if (l.pending.status == 0) {
		*ret_list = l.list;
		return 0;
	}
	return lookup_error(l.pending.status, node ? node : service, err);
}
