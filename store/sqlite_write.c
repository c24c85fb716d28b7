/*
 * Writes. Deciding is done at once on the loop: the condition is compared with the newest version of the key, decided or
 * on disk, and a revision is given out. Then the op waits for its group. A condition that fails only because of a write
 * that is not on disk yet has no answer before that is: the writer waits for it and looks again.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite_priv.h"

/* ---- deciding ---- */

static bool holds(const struct store_write *w, const struct index_version *v)
{
	bool exists = v && v->version;

	if (w->expect == STORE_ANY)
		return exists || w->value;
	if (w->expect == STORE_ABSENT)
		return !exists && w->value;
	return exists && v->revision == w->expect;
}

static int64_t expires_ns(int64_t ttl_s)
{
	enum { MAX_S = 1 << 30 }; /* 34 years, far from any overflow */
	return ttl_s > 0 ? clock_wall_ns() + MIN(ttl_s, (int64_t)MAX_S) * NS_PER_S : 0;
}

static struct sqlite_op *op_new(const struct store_write *w)
{
	struct sqlite_op *op = mem_zalloc(sizeof *op + w->key.n);

	op->refs = 1;
	memcpy(op->key, w->key.p, w->key.n);
	op->row.key = str_span(op->key, w->key.n);
	op->row.value = w->value ? store_value_ref(w->value) : NULL;
	fiber_cond_init(&op->decided, "a write to reach the disk");
	return op;
}

void sqlite_op_unref(struct sqlite_op *op)
{
	if (--op->refs > 0)
		return;
	store_value_unref(op->row.value);
	free(op);
}

/* Gives the write a revision and a place in the queue. Borrowed: the queue holds it. */
static struct sqlite_op *decide(struct sqlite_store *s, const struct store_write *w)
{
	const struct index_key *before = index_find(&s->index, w->key);
	struct index_version prev = before ? before->newest : (struct index_version){ 0 };
	struct index_version v = { .revision = ++s->decided };
	struct sqlite_op *op = op_new(w);

	if (w->value) {
		v.created = prev.version ? prev.created : v.revision;
		v.version = prev.version + 1;
		v.expires_ns = expires_ns(w->ttl_s);
	}
	op->row.revision = v.revision;
	op->row.prev = prev.revision;
	op->row.created = v.created;
	op->row.version = v.version;
	op->row.expires_ns = v.expires_ns;
	list_add(&s->queue, &op->link);
	fiber_cond_signal(&s->work);
	sqlite_expiry_follow(s, op->row.key, index_push(&s->index, op->row.key, v));
	return op;
}

/* Gives the store's reference back. */
static void op_finish(struct sqlite_op *op, int result, const struct err *err)
{
	list_remove(&op->link);
	op->result = result;
	op->done = true;
	if (op->err && err)
		*op->err = *err;
	fiber_cond_signal(&op->decided);
	sqlite_op_unref(op);
}

/* (suspends) A fiber that gives up leaves the op behind: it may still take effect. */
static int op_wait(struct sqlite_op *op, int64_t *ret_revision, struct err *err)
{
	struct err why = ERR_INIT;
	int r = 0;

	op->refs++;
	op->err = err;
	while (!op->done && r == 0)
		r = fiber_cond_wait(&op->decided, &why);
	op->err = NULL;
	if (op->done)
		r = op->result;
	else
		(void)err_set(err, why.code, "%s while the write was on its way to the disk", why.msg);
	*ret_revision = op->row.revision;
	sqlite_op_unref(op);
	return r;
}

static int refuse(const struct sqlite_store *s, struct err *err)
{
	if (s->damaged)
		return err_set(err, ERR_UNAVAILABLE, "%s is damaged and open for reading only; stop the server and bring back"
			       " a snapshot with 'c8s store restore'", s->path);
	return err_set(err, ERR_UNAVAILABLE, "%s is open for reading only", s->path);
}

int sqlite_write(struct store *store, const struct store_write *w, int64_t *ret_revision, struct store_kv *ret_current,
		 struct err *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = fiber_check(err);

	while (r >= 0) {
		if (s->read_only)
			return refuse(s, err);
		const struct index_key *k = index_find(&s->index, w->key);
		if (holds(w, k ? &k->newest : NULL))
			return op_wait(decide(s, w), ret_revision, err);
		if (!holds(w, k ? index_at(k, s->committed) : NULL)) {
			r = sqlite_get_at(s, w->key, s->committed, ret_current, err);
			return MIN(r, 0);
		}
		r = fiber_cond_wait(&s->advanced, err);
	}
	return r;
}

void sqlite_drop(struct sqlite_store *s, str key)
{
	struct store_write w = { .key = key, .expect = STORE_ANY };

	if (!s->read_only && !s->closing)
		(void)decide(s, &w);
}

/* ---- groups ---- */

struct group_job {
	struct db *db;
	struct row *const *rows;
	size_t n;
};

static int group_run(void *arg, struct err *err)
{
	const struct group_job *job = arg;
	return db_commit(job->db, job->rows, job->n, err);
}

static size_t take_group(struct sqlite_store *s)
{
	size_t n = 0, bytes = 0;

	while (!list_empty(&s->queue) && n < SQLITE_GROUP_MAX && bytes < SQLITE_GROUP_BYTES) {
		struct sqlite_op *op = LIST_FIRST(struct sqlite_op, &s->queue, link);
		list_remove(&op->link);
		list_add(&s->group, &op->link);
		s->rows[n++] = &op->row;
		bytes += op->row.key.n + (op->row.value ? op->row.value->n : 0);
	}
	return n;
}

static void publish(struct sqlite_store *s)
{
	int64_t first = s->committed + 1;

	LIST_EACH_SAFE(struct sqlite_op, op, &s->group, link) {
		s->committed = op->row.revision;
		s->writes++;
		sqlite_recent_add(s, op);
		op_finish(op, 1, NULL);
	}
	s->commits++;
	sqlite_watches_tell(s, first);
}

/* Newest first, so that every op finds its version on top. */
static void take_back(struct sqlite_store *s, struct list *ops, int result, const struct err *err)
{
	while (!list_empty(ops)) {
		struct sqlite_op *op = CONTAINER_OF(ops->prev, struct sqlite_op, link);
		struct index_key *k = index_key_ref(index_find(&s->index, op->row.key));
		index_pop(&s->index, op->row.key);
		sqlite_expiry_follow(s, op->row.key, k);
		index_key_unref(k);
		op_finish(op, result, err);
	}
}

static void group_failed(struct sqlite_store *s, int result, const struct err *err)
{
	if (!s->failing)
		log_error("writing to the store failed", KV("file", s->path), KV("err", err));
	s->failing = true;
	if (db_is_damaged(s->writer) && !s->read_only) {
		log_error("the store is damaged and refuses writes from now on", KV("file", s->path));
		s->read_only = s->damaged = true;
	}
	take_back(s, &s->queue, result, err);
	take_back(s, &s->group, result, err);
	s->decided = s->committed;
}

void sqlite_write_group(struct sqlite_store *s)
{
	struct err err = ERR_INIT;
	struct group_job job = { .db = s->writer, .rows = s->rows, .n = take_group(s) };
	int r = worker_run(s->thread, group_run, &job, &err);

	if (r < 0) {
		group_failed(s, r, &err);
	} else {
		if (s->failing)
			log_info("writing to the store works again", KV("file", s->path));
		s->failing = false;
		publish(s);
	}
	fiber_cond_broadcast(&s->advanced);
}
