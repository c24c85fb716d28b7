/*
 * Usage of volumes that are on another machine. One that does not answer holds the thread that asks it, for as long as that lasts: so one
 * thread at a time asks for all such volumes together, nobody waits for it longer than a moment, and while it hangs they are not measured. The
 * other volumes, the pool of threads and the end of the kubelet do not notice: no fiber waits for that thread, which may go on to the last.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kubelet/volume_priv.h"

enum { PATIENCE_MS = 2000, LOOK_MS = 20 };

/* Belongs to the one who asks, to the thread, and to the remote while it is under way. */
struct question {
	_Atomic unsigned refs;
	atomic_bool done;                /* what follows but for path is the thread's until then */
	volume_measure *measure;
	struct volume volume;
	struct volume_size size;
	int result;
	struct err err;
	char path[];
};

struct volume_remote {
	struct question *open;           /* the one that was asked last; NULL: it is answered */
	bool hangs;                      /* for too long */
};

struct volume_remote *volume_remote_new(void) { return mem_zalloc(sizeof(struct volume_remote)); }

static void question_unref(struct question *q)
{
	if (atomic_fetch_sub(&q->refs, 1) == 1)
		free(q);
}

void volume_remote_free(struct volume_remote *m)
{
	if (m->open)
		question_unref(m->open);
	free(m);
}

static void *measure_main(void *arg)
{
	struct question *q = arg;

	q->result = q->measure(&q->volume, &q->size, &q->err);
	atomic_store(&q->done, true);
	question_unref(q);
	return NULL;
}

static bool is_free(struct volume_remote *m)
{
	if (m->open && atomic_load(&m->open->done)) {
		question_unref(TAKE(m->open));
		m->hangs = false;
	}
	return !m->open;
}

static int begin(struct volume_remote *m, volume_measure *measure, const struct volume *v, struct question **ret, struct err *err)
{
	size_t n = strlen(v->path) + 1;
	struct question *q = mem_zalloc(sizeof(*q) + n);
	pthread_t thread;

	memcpy(q->path, v->path, n);
	atomic_store(&q->refs, 3);
	q->measure = measure;
	q->volume = (struct volume){ .kind = v->kind, .path = q->path };
	int e = pthread_create(&thread, NULL, measure_main, q);
	if (e) {
		free(q);
		return err_sys(err, e, "start the thread of volumes");
	}
	(void)pthread_detach(thread);
	*ret = m->open = q;
	return 0;
}

int volume_remote_usage(struct volume_remote *m, volume_measure *measure, const struct volume *v, struct volume_size *ret, struct err *err)
{
	struct question *q = NULL;
	int r = fiber_check(err);

	if (r < 0)
		return r;
	{
		DEADLINE_SCOPE(!is_free(m) && m->hangs ? 0 : PATIENCE_MS);
		while (!is_free(m) && fiber_sleep_ms(LOOK_MS, NULL) >= 0)
			;
		if (is_free(m))
			r = begin(m, measure, v, &q, err);
		for (int64_t ms = 1; q && !atomic_load(&q->done) && fiber_sleep_ms(ms, NULL) >= 0; ms = MIN(2 * ms, (int64_t)LOOK_MS))
			;
	}
	if (r == 0 && (r = fiber_check(err)) == 0 && (!q || !atomic_load(&q->done))) {
		m->hangs = true;
		r = err_set(err, ERR_UNAVAILABLE, "a machine that has volumes does not answer");
	}
	if (r == 0 && (r = q->result) < 0)
		(void)err_set(err, q->err.code, "%s", q->err.msg);
	if (r == 0)
		*ret = q->size;
	if (q)
		question_unref(q);
	return r;
}
