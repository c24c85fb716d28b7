/*
 * What is done between writes, one small step at a time: compaction, removing what it made superfluous, giving space
 * back, and copying the log into the file. The last is begun by a fiber and a connection of its own, beside the writes;
 * only the rest that came meanwhile is done by the writing connection, which thereby starts the log anew. So the log
 * stays small and no write waits for more than a few pages.
 */
#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "store/sqlite_priv.h"

enum {
	IDLE_MS = 15000,             /* after so long without a write, a shorter log is copied too; leases alone are written every second or two */
	REST_MS = 5000,              /* after a chore that failed */
	CLEAN_ROWS = 256,            /* looked at in one step */
	SHRINK_PAGES = 256,          /* given back in one step */
	SHRINK_FROM_BYTES = 4 << 20, /* unused space below this stays for new rows */
};

/* ---- compaction ---- */

struct compact_job {
	struct db *db;
	int64_t revision;
};

static int compact_run(void *arg, struct err *err)
{
	const struct compact_job *job = arg;
	return db_set_compact_revision(job->db, job->revision, err);
}

static void do_compact(struct sqlite_store *s)
{
	struct compact_job job = { s->writer, s->compact_wanted };
	int r = fiber_blocking(compact_run, &job, &s->compact_err);

	if (r == 0) {
		s->compact_revision = job.revision;
		err_clear(&s->compact_err);
	} else {
		s->compact_wanted = s->compact_revision;
	}
	s->compact_tries++;
	fiber_cond_broadcast(&s->compact_tried);
}

int sqlite_compact(struct store *store, int64_t revision, struct err *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = fiber_check(err);

	if (r < 0)
		return r;
	if (s->read_only)
		return err_set(err, ERR_UNAVAILABLE, "%s is open for reading only", s->path);
	if (revision > s->committed)
		return err_set(err, ERR_BAD_REQUEST, "revision %lld is in the future; the newest is %lld",
			       (long long)revision, (long long)s->committed);
	while (s->compact_revision < revision) {
		uint64_t tries = s->compact_tries;
		s->compact_wanted = MAX(s->compact_wanted, revision);
		fiber_cond_signal(&s->work);
		while (s->compact_tries == tries)
			if ((r = fiber_cond_wait(&s->compact_tried, err)) < 0)
				return r;
		if (s->compact_revision < revision && s->compact_err.code)
			return err_set(err, s->compact_err.code, "%s", s->compact_err.msg);
	}
	return 0;
}

struct clean_job {
	struct db *db;
	struct db_clean step;
	struct arena arena;
	struct db_state after;
};

static int clean_run(void *arg, struct err *err)
{
	struct clean_job *job = arg;
	int r = db_clean(job->db, &job->step, &job->arena, err);
	return r < 0 ? r : db_state(job->db, &job->after, err);
}

static int64_t clean_target(const struct sqlite_store *s) { return MIN(s->compact_revision, sqlite_pinned(s)); }

static int do_clean(struct sqlite_store *s, struct err *err)
{
	struct clean_job job = { .db = s->writer, .arena = ARENA_INIT };
	int64_t target = clean_target(s);

	/* The last row of the step before may have been a deletion that had to stay then. */
	job.step = (struct db_clean){ .first = s->cleaned_revision, .last = target, .max = CLEAN_ROWS };
	int r = fiber_blocking(clean_run, &job, err);
	if (r == 0) {
		for (size_t i = 0; i < job.step.n; i++)
			index_forget(&s->index, job.step.keys[i], target);
		s->cleaned_revision = job.step.first - 1;
		s->size_bytes = job.after.size_bytes;
		s->free_bytes = job.after.free_bytes;
	}
	arena_done(&job.arena);
	return r;
}

/* ---- space ---- */

static bool wants_shrink(const struct sqlite_store *s)
{
	return !s->cannot_shrink && s->free_bytes > SHRINK_FROM_BYTES && s->free_bytes > s->size_bytes / 4;
}

static int shrink_run(void *arg, struct err *err)
{
	struct clean_job *job = arg;
	int r = db_shrink(job->db, SHRINK_PAGES, err);
	return r < 0 ? r : db_state(job->db, &job->after, err);
}

static int do_shrink(struct sqlite_store *s, struct err *err)
{
	struct clean_job job = { .db = s->writer };
	int r = fiber_blocking(shrink_run, &job, err);
	if (r == 0) {
		/* Nothing given back: the file was made by a tool that did not ask for it to be possible. */
		s->cannot_shrink = job.after.free_bytes >= s->free_bytes;
		s->size_bytes = job.after.size_bytes;
		s->free_bytes = job.after.free_bytes;
	}
	return r;
}

/* ---- the log ---- */

struct keep_job {
	struct db *db;
	int64_t left;
};

static int keep_run(void *arg, struct err *err)
{
	struct keep_job *job = arg;
	return db_checkpoint(job->db, &job->left, err);
}

static int do_finish(struct sqlite_store *s, struct err *err)
{
	struct keep_job job = { .db = s->writer };

	s->finish_wanted = false;
	int r = fiber_blocking(keep_run, &job, err);
	/* What an outside reader (a snapshot) holds back is tried again only when there is more to gain. */
	s->keep_at_pages = (r == 0 ? job.left : db_log_pages(s->writer)) + SQLITE_LOG_PAGES;
	return r;
}

static int reserve_run(void *arg, struct err *err)
{
	const struct keep_job *job = arg;
	return db_reserve_log(job->db, SQLITE_LOG_PAGES + SQLITE_LOG_SLACK, err);
}

static int do_reserve(struct sqlite_store *s, struct err *err)
{
	struct keep_job job = { .db = s->writer };
	s->log_reserved = true;
	return fiber_blocking(reserve_run, &job, err);
}

static void want_keep(struct sqlite_store *s)
{
	s->keep_wanted = true;
	fiber_cond_signal(&s->keep);
}

int sqlite_keeping(void *store)
{
	struct sqlite_store *s = store;
	SHIELD_SCOPE();

	while (!s->closing) {
		if (!s->keep_wanted) {
			(void)fiber_cond_wait(&s->keep, NULL);
			continue;
		}
		struct err err = ERR_INIT;
		struct keep_job job = { .db = s->keeper };
		if (fiber_blocking(keep_run, &job, &err) < 0)
			log_warn("copying the store's log into its file failed, ignoring", KV("err", &err));
		s->finish_wanted = true;
		s->keep_wanted = false;
		fiber_cond_signal(&s->work);
	}
	return 0;
}

/* ---- the writing fiber ---- */

/* One step of what there is to do; false when there is nothing. */
static bool do_chore(struct sqlite_store *s)
{
	struct err err = ERR_INIT;
	int r = 0;

	if (s->compact_wanted > s->compact_revision) {
		do_compact(s);
		return true;
	}
	if (clock_now_ns() < s->rest_until_ns)
		return false;
	if (s->finish_wanted)
		r = do_finish(s, &err);
	else if (s->cleaned_revision < clean_target(s))
		r = do_clean(s, &err);
	else if (wants_shrink(s))
		r = do_shrink(s, &err);
	else if (!s->log_reserved && !s->read_only)
		r = do_reserve(s, &err);
	else
		return false;
	if (r < 0) {
		log_warn("looking after the store failed, trying again soon", KV("file", s->path), KV("err", &err));
		s->rest_until_ns = clock_now_ns() + REST_MS * NS_PER_MS;
	}
	return true;
}

static void wait_for_work(struct sqlite_store *s)
{
	bool resting = clock_now_ns() < s->rest_until_ns;

	if (!resting && (!db_log_pages(s->writer) || s->keep_wanted)) {
		(void)fiber_cond_wait(&s->work, NULL);
		return;
	}
	DEADLINE_SCOPE(IDLE_MS);
	if (fiber_cond_wait(&s->work, NULL) == -ERR_TIMEOUT && !resting)
		want_keep(s);
}

int sqlite_writing(void *store)
{
	struct sqlite_store *s = store;
	SHIELD_SCOPE();

	while (!s->closing || !list_empty(&s->queue)) {
		bool wrote = !list_empty(&s->queue);
		if (wrote)
			sqlite_write_group(s);
		if (db_log_pages(s->writer) >= s->keep_at_pages && !s->keep_wanted && !s->finish_wanted)
			want_keep(s);
		if (!s->closing && !do_chore(s) && !wrote)
			wait_for_work(s);
	}
	return 0;
}
