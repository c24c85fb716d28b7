/*
 * The buffer is a list of lines. The log takes all there are at once and writes them in a thread of the pool; the webhook takes
 * them in batches, several of which may be under way.
 */
#include "apiserver/audit/backend.h"

#include <stdlib.h>

#include "apiserver/audit/audit_priv.h"
#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"

enum {
	BYTES_MAX = 256 << 20,        /* in the buffer, whatever the number of events */
	TRIES = 5, SENDERS_MAX = 32, SEND_TIMEOUT_MS = 30000, LAST_MS = 5000,
};

struct audit_line {
	struct list link;
	int *result;                  /* of who waits: 1 until it is known; NULL: nobody does */
	size_t n;
	char p[];
};

/* ---- the buffer ---- */

static void line_done(struct audit_line *line, int result)
{
	list_remove(&line->link);
	if (line->result)
		*line->result = result;
	free(line);
}

void audit_backend_lost(struct audit_backend *b, size_t n, const struct err *why)
{
	b->errors += n;
	log_error("audit events are lost", KV("plugin", b->plugin), KV("events", n), KV("error", why));
}

static int add(struct audit_backend *b, str event, int *result, struct err *err)
{
	size_t most = b->mode == AUDIT_BATCH ? (size_t)b->options->buffer_size : SIZE_MAX;
	if (b->n >= most || b->bytes + event.n > BYTES_MAX) {
		b->errors++;
		if (!b->full)
			log_error("audit buffer queue blocked", KV("plugin", b->plugin), KV("events", b->n));
		b->full = true;
		return err_set(err, ERR_TOO_MANY_REQUESTS, "audit buffer queue blocked");
	}
	struct audit_line *line = mem_alloc(sizeof *line + event.n);
	*line = (struct audit_line){ .result = result, .n = event.n };
	memcpy(line->p, event.p, event.n);
	list_add(&b->lines, &line->link);
	b->n++;
	b->bytes += event.n;
	fiber_cond_signal(&b->filled);
	return 0;
}

/* Moves up to max lines, and about max_bytes, to another list; at least one. */
static size_t take(struct audit_backend *b, struct list *to, size_t max, size_t max_bytes)
{
	size_t n = 0, bytes = 0;
	while (n < max && !list_empty(&b->lines)) {
		struct audit_line *line = LIST_FIRST(struct audit_line, &b->lines, link);
		if (n && bytes + line->n > max_bytes)
			break;
		bytes += line->n;
		list_remove(&line->link);
		list_add(to, &line->link);
		n++;
	}
	b->n -= n;
	b->bytes -= bytes;
	b->full = false;
	return n;
}

static void done(struct list *lines, int result)
{
	LIST_EACH_SAFE(struct audit_line, line, lines, link)
		line_done(line, result);
}

/* ---- the log ---- */

struct write_job {
	struct audit_log *log;
	struct list lines;
	size_t lost;
};

/* In a thread of the pool. What does not fit is lost alone. */
static int write_lines(void *arg, struct err *err)
{
	struct write_job *job = arg;
	int r = 0;
	LIST_EACH_SAFE(struct audit_line, line, &job->lines, link) {
		if (audit_log_write(job->log, str_span(line->p, line->n), err) < 0) {
			job->lost++;
			r = -(int)err->code;
		}
	}
	return r;
}

static int tidy(void *arg, struct err *err) { return audit_log_tidy(arg, err); }

static int tidy_fiber(void *arg)
{
	struct err err = ERR_INIT;
	if (fiber_blocking(tidy, arg, &err) < 0 && err.code != ERR_CANCELED)
		log_warn("old audit logs could not be tidied", KV("error", &err));
	return 0;
}

static int store_in_log(struct audit_backend *b, struct err *err)
{
	struct write_job job = { .log = b->log };
	struct err why = ERR_INIT;
	list_init(&job.lines);
	(void)take(b, &job.lines, SIZE_MAX, SIZE_MAX);
	int r = fiber_blocking(write_lines, &job, &why);
	if (job.lost || r < 0)
		audit_backend_lost(b, MAX(job.lost, (size_t)1), &why);
	done(&job.lines, r);
	fiber_cond_broadcast(&b->stored);
	return fiber_check(err);
}

static int run_log(struct audit_backend *b, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = 0;
	while (r == 0) {
		while (list_empty(&b->lines) && r == 0)
			r = fiber_cond_wait(&b->filled, err);
		if (r < 0)
			break;
		SHIELD_SCOPE(); /* what was taken is written */
		r = store_in_log(b, NULL);
		if (audit_log_is_untidy(b->log) && !group.n)
			(void)fiber_group_spawn(&group, tidy_fiber, b->log, NULL, "audit log");
	}
	return r;
}

/* ---- the webhook ---- */

static int post(struct webhook *w, const struct list *lines, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf body = BUF_INIT(SIZE_MAX / 2);
	struct webhook_reply reply;
	const size_t head = sizeof(AUDIT_EVENT_HEAD) - 1;
	buf_add(&body, STR("{\"kind\":\"EventList\",\"apiVersion\":\"audit.k8s.io/v1\",\"metadata\":{},\"items\":["));
	LIST_EACH(const struct audit_line, line, lines, link) {
		if (&line->link != lines->next)
			buf_addc(&body, ',');
		buf_addc(&body, '{');
		buf_add(&body, str_skip(str_span(line->p, line->n), head));
	}
	buf_add(&body, STR("]}\n"));
	int r = webhook_post(w, &a, STR_NONE, buf_str(&body), SEND_TIMEOUT_MS, &reply, err);
	return r < 0 ? r : webhook_reply_check(&reply, &a, err);
}

/* Whatever the failure: there is hardly one that a receiver cannot recover from. */
static int post_again(struct audit_backend *b, const struct list *lines, struct err *err)
{
	double pause_ms = (double)b->backoff_ns / 1e6;
	int r = post(b->webhook, lines, err);
	for (int i = 1; i < TRIES && r < 0 && r != -ERR_CANCELED; i++) {
		double jitter = 1 + 0.2 * (double)random_below(1000) / 1000;
		if (fiber_sleep_ms((int64_t)(pause_ms * jitter), err) < 0)
			return -(int)err->code;
		pause_ms *= 1.5;
		err_clear(err);
		r = post(b->webhook, lines, err);
	}
	return r;
}

struct batch {
	struct audit_backend *backend;
	struct list lines;
	size_t n;
};

static int send_batch(void *arg)
{
	struct batch *batch = arg;
	struct err err = ERR_INIT;
	int r = post_again(batch->backend, &batch->lines, &err);
	if (r < 0)
		audit_backend_lost(batch->backend, batch->n, &err);
	done(&batch->lines, r);
	free(batch);
	return 0;
}

/* (suspends) Until the next batch may go. */
static int throttle(struct audit_backend *b, struct err *err)
{
	const struct audit_backend_options *o = b->options;
	if (!o->throttle || o->throttle_qps <= 0)
		return 0;
	int64_t now = clock_now_ns();
	b->tokens = MIN(b->tokens + (double)(now - b->tokens_at_ns) / 1e9 * o->throttle_qps, (double)o->throttle_burst);
	b->tokens_at_ns = now;
	b->tokens -= 1;
	return b->tokens < 0 ? fiber_sleep_ms((int64_t)(-b->tokens / o->throttle_qps * 1000) + 1, err) : 0;
}

/* (suspends) Until there is a whole batch, or the first event has waited long enough. */
static int gather(struct audit_backend *b, struct err *err)
{
	int r = 0;
	while (list_empty(&b->lines) && r == 0)
		r = fiber_cond_wait(&b->filled, err);
	{
		DEADLINE_SCOPE(MAX(b->options->max_batch_wait_ns / NS_PER_MS, (int64_t)0));
		while (r == 0 && b->n < (size_t)b->options->max_batch_size)
			r = fiber_cond_wait(&b->filled, NULL);
	}
	return fiber_check(err);
}

static struct batch *batch_take(struct audit_backend *b)
{
	const struct audit_backend_options *o = b->options;
	struct batch *batch = mem_alloc(sizeof *batch);
	batch->backend = b;
	list_init(&batch->lines);
	batch->n = take(b, &batch->lines, (size_t)MAX(o->max_batch_size, (int64_t)1),
			o->truncate ? (size_t)o->truncate_batch_bytes : SIZE_MAX);
	return batch;
}

static int run_webhook(struct audit_backend *b, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group senders;
	fiber_group_init(&senders);
	int r = 0;
	while (r == 0) {
		r = gather(b, err);
		if (r == 0)
			r = throttle(b, err);
		if (r == 0 && senders.n >= SENDERS_MAX)
			r = fiber_group_wait(&senders, err);
		if (r < 0)
			break;
		struct batch *batch = batch_take(b);
		if (fiber_group_spawn(&senders, send_batch, batch, NULL, "audit batch") < 0)
			(void)send_batch(batch);
	}
	SHIELD_SCOPE(); /* those under way may arrive */
	DEADLINE_SCOPE(LAST_MS);
	(void)fiber_group_wait(&senders, NULL);
	return r;
}

/* ---- all of it ---- */

int audit_backend_run(struct audit_backend *b, struct err *err)
{
	int r = b->log ? run_log(b, err) : run_webhook(b, err);
	b->stopped = true;
	fiber_cond_broadcast(&b->stored);
	return r;
}

/* In the request's own fiber, however long it takes: the mode asks for it. */
static int send_now(struct audit_backend *b, str event, struct err *err)
{
	struct list lines;
	struct audit_line *line = mem_alloc(sizeof *line + event.n);
	*line = (struct audit_line){ .n = event.n };
	memcpy(line->p, event.p, event.n);
	list_init(&lines);
	list_add(&lines, &line->link);
	int r = post_again(b, &lines, err);
	if (r < 0)
		audit_backend_lost(b, 1, err);
	done(&lines, r);
	return r;
}

int audit_backend_put(struct audit_backend *b, str event, bool wait, struct err *err)
{
	struct err why = ERR_INIT;
	int result = 1, r;
	if (b->mode == AUDIT_BATCH || !wait) {
		(void)add(b, event, NULL, NULL);
		return 0;
	}
	SHIELD_SCOPE(); /* the event is told, also of a client that is gone */
	if (b->webhook) {
		r = send_now(b, event, &why);
	} else {
		r = add(b, event, &result, &why);
		while (r == 0 && result == 1 && !b->stopped)
			(void)fiber_cond_wait(&b->stored, NULL);
		if (r == 0 && result == 1) { /* nobody will store it before the end: it is not waited for any more */
			LIST_EACH(struct audit_line, line, &b->lines, link)
				line->result = line->result == &result ? NULL : line->result;
			result = 0;
		}
		r = r < 0 ? r : result;
	}
	if (b->mode != AUDIT_STRICT || r == 0)
		return 0;
	return err_set(err, ERR_INTERNAL, "failed to store audit event");
}

static struct audit_backend *backend_new(const char *plugin, const struct audit_backend_options *o)
{
	struct audit_backend *b = mem_zalloc(sizeof *b);
	str mode = str_of(o->mode);
	b->plugin = plugin;
	b->options = o;
	b->mode = str_eq(mode, STR("batch")) ? AUDIT_BATCH : str_eq(mode, STR("blocking")) ? AUDIT_BLOCKING : AUDIT_STRICT;
	b->tokens = (double)o->throttle_burst;
	b->tokens_at_ns = clock_now_ns();
	list_init(&b->lines);
	fiber_cond_init(&b->filled, "audit events");
	fiber_cond_init(&b->stored, "an audit event to be stored");
	return b;
}

struct audit_backend *audit_backend_to_log(struct audit_log *log, const struct audit_backend_options *o, bool legacy)
{
	struct audit_backend *b = backend_new("log", o);
	b->log = log;
	b->legacy = legacy;
	return b;
}

struct audit_backend *audit_backend_to_webhook(struct webhook *w, const struct audit_backend_options *o, int64_t backoff_ns)
{
	struct audit_backend *b = backend_new("webhook", o);
	b->webhook = w;
	b->backoff_ns = backoff_ns;
	return b;
}

/* What is left, once: the process is about to end. */
static void flush(struct audit_backend *b)
{
	SHIELD_SCOPE();
	DEADLINE_SCOPE(LAST_MS);
	while (!list_empty(&b->lines) && fiber_check(NULL) == 0) {
		if (b->log) {
			(void)store_in_log(b, NULL);
			continue;
		}
		struct batch *batch = batch_take(b);
		struct err err = ERR_INIT;
		if (post(b->webhook, &batch->lines, &err) < 0)
			audit_backend_lost(b, batch->n, &err);
		done(&batch->lines, 0);
		free(batch);
	}
	if (!list_empty(&b->lines))
		audit_backend_lost(b, b->n, NULL);
	done(&b->lines, -ERR_CANCELED);
}

void audit_backend_free(struct audit_backend *b)
{
	if (!b)
		return;
	flush(b);
	audit_log_close(b->log);
	webhook_free(b->webhook);
	free(b);
}
