/*
 * Usage of volumes that are on another machine. One that does not answer holds the thread that asks it, for as long as that lasts: so there
 * is a thread for all such volumes together, nobody waits for it longer than a moment, and while it hangs they are not measured. The
 * other volumes and the pool of threads do not notice.
 */
#include <stdlib.h>

#include "base/fiber_io.h"
#include "base/mem.h"
#include "kubelet/volume_priv.h"

enum { PATIENCE_MS = 2000 };

struct volume_remote {
	unsigned refs;                   /* of its owner, and of the question under way */
	struct worker *thread;           /* NULL: not needed yet */
	bool busy, hangs;                /* hangs: for too long */
	struct fiber_cond answered;
};

/* Belongs to the one who asks and to the fiber that waits for the thread. */
struct question {
	unsigned refs;
	struct volume_remote *remote;
	volume_measure *measure;
	struct volume volume;
	int64_t bytes, inodes;
	bool done;
	int result;
	struct err err;
	char path[];
};

struct volume_remote *volume_remote_new(void)
{
	struct volume_remote *m = mem_zalloc(sizeof(*m));

	m->refs = 1;
	fiber_cond_init(&m->answered, "a volume on another machine");
	return m;
}

void volume_remote_free(struct volume_remote *m)
{
	if (--m->refs)
		return;
	worker_stop(m->thread);
	free(m);
}

static void question_unref(struct question *q)
{
	if (--q->refs == 0)
		free(q);
}

static int measure_in_thread(void *arg, struct err *err)
{
	struct question *q = arg;

	return q->measure(&q->volume, &q->bytes, &q->inodes, err);
}

static int measure_main(void *arg)
{
	struct question *q = arg;
	struct volume_remote *m = q->remote;

	q->result = worker_run(m->thread, measure_in_thread, q, &q->err);
	q->done = true;
	m->busy = m->hangs = false;
	fiber_cond_broadcast(&m->answered);
	volume_remote_free(m);
	question_unref(q);
	return 0;
}

static int begin(struct volume_remote *m, volume_measure *measure, const struct volume *v, struct question **ret, struct err *err)
{
	int r = m->thread ? 0 : worker_start("volumes", &m->thread, err);
	size_t n = strlen(v->path) + 1;

	if (r < 0)
		return r;
	struct question *q = mem_zalloc(sizeof(*q) + n);
	memcpy(q->path, v->path, n);
	q->refs = 2;
	q->remote = m;
	q->measure = measure;
	q->volume = (struct volume){ .kind = v->kind, .path = q->path };
	if ((r = fiber_spawn(measure_main, q, NULL, err, "volume usage")) < 0) {
		free(q);
		return r;
	}
	m->busy = true;
	m->refs++;
	*ret = q;
	return 0;
}

int volume_remote_usage(struct volume_remote *m, volume_measure *measure, const struct volume *v, int64_t *ret_bytes, int64_t *ret_inodes,
			struct err *err)
{
	struct question *q = NULL;
	int r = 0;

	{
		DEADLINE_SCOPE(m->hangs ? 0 : PATIENCE_MS);
		while (m->busy && fiber_cond_wait(&m->answered, NULL) >= 0)
			;
		if (!m->busy)
			r = begin(m, measure, v, &q, err);
		while (q && !q->done && fiber_cond_wait(&m->answered, NULL) >= 0)
			;
	}
	if (r == 0 && (r = fiber_check(err)) == 0 && (!q || !q->done)) {
		m->hangs = true;
		r = err_set(err, ERR_UNAVAILABLE, "a machine that has volumes does not answer");
	}
	if (r == 0 && (r = q->result) < 0)
		(void)err_set(err, q->err.code, "%s", q->err.msg);
	if (r == 0) {
		*ret_bytes = q->bytes;
		*ret_inodes = q->inodes;
	}
	if (q)
		question_unref(q);
	return r;
}
