/* Work that would block the loop, on the threads of libuv's pool. */
#include "base/fiber_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fiber_io.h"

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
	r = uv_queue_work(&fiber_loop->uv, &w.req, work_run, work_done);
	if (r < 0)
		return err_sys(err, -r, "hand work to the thread pool");
	r = pending_wait(&w.pending, (uv_req_t *)&w.req, err);
	return r < 0 ? r : w.result;
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
		return err_set(err, ERR_NOT_FOUND, "look up %s: no such host", name);
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
	r = uv_getaddrinfo(&fiber_loop->uv, &l.req, lookup_done, node, service, hints);
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
