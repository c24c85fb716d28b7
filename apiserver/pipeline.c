/*
 * The stages in their order, around every request. Whatever a stage does, the request ends with one answer: an error
 * becomes a Status, and a stage that breaks its word (no answer, an unknown result) costs its own request a 500 and the log a line,
 * nobody else anything.
 */
#include "apiserver/pipeline.h"

#include "apiserver/apiserver.h"
#include "apiserver/audit/audit.h"
#include "apiserver/fairness/fairness.h"
#include "apiserver/local.h"
#include "apiserver/metrics.h"
#include "apiserver/write.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"

static int (*const stages[STAGE_MAX])(struct request *q, struct err *err) = {
#define STAGE_ROW(name, fn) [STAGE_##name] = fn,
	STAGES(STAGE_ROW)
#undef STAGE_ROW
};

const char *const stage_names[STAGE_MAX] = {
#define STAGE_NAME(name, fn) [STAGE_##name] = &#fn[sizeof("stage_") - 1],
	STAGES(STAGE_NAME)
#undef STAGE_NAME
};

/* Conflicts that a request which named no version is tried again after; then the client is told. */
enum { ATTEMPTS_MAX = 100 };

static void failed(struct request *q, int r, struct err *err)
{
	if (val_exists(q->failure))
		return;
	if (err->code == ERR_NONE)
		(void)err_set(err, (enum err_code)-r, "no reason was given");
	if (err->code == ERR_INTERNAL)
		log_error("request failed", KV("method", q->method), KV("path", q->path), KV("error", err));
	(void)fail_err(q, err);
}

/* Runs the stages from `first` up to the answer, without sending it. */
static void run(struct request *q, enum stage first)
{
	struct err err = ERR_INIT;
	for (enum stage s = first; s < STAGE_RESPOND;) {
		int r = stages[s](q, &err);
		if (r == STAGE_NEXT) {
			s++;
		} else if (r == STAGE_ANSWER) {
			break;
		} else if (r == STAGE_AGAIN && q->attempt < ATTEMPTS_MAX) {
			write_finish(q, false);
			q->attempt++;
			s = STAGE_DECODE;
		} else {
			bool broken = r > STAGE_AGAIN;
			if (r >= 0)
				r = err_set(&err, ERR_INTERNAL, "stage %s cannot finish", stage_names[s]);
			if (broken)
				audit_panicked(q, &err);
			failed(q, r, &err);
			break;
		}
	}
	write_finish(q, false); /* what was taken for it (an address) was not needed in the end */
	if (q->answer.kind == ANSWER_NONE && !val_exists(q->failure)) {
		(void)err_set(&err, ERR_INTERNAL, "no stage has an answer");
		audit_panicked(q, &err);
		failed(q, -ERR_INTERNAL, &err);
	}
}

static void run_timed(struct request *q)
{
	DEADLINE_SCOPE(q->timeout_ms);
	run(q, STAGE_DEADLINE + 1);
}

/* Warning: 299 - "text" */
static void add_warnings(struct request *q)
{
	for (unsigned i = 0; i < q->n_warnings; i++) {
		str text = q->warnings[i];
		char *out = arena_alloc(q->arena, 2 * text.n + 8, 1);
		size_t n = 0;
		memcpy(out, "299 - \"", 7);
		n = 7;
		for (size_t k = 0; k < text.n; k++) {
			unsigned char c = (unsigned char)text.p[k];
			if (c < 0x20 || c == 0x7f)
				continue; /* a header cannot hold it */
			if (c == '"' || c == '\\')
				out[n++] = '\\';
			out[n++] = (char)c;
		}
		out[n++] = '"';
		answer_header(q, STR("warning"), str_span(out, n));
	}
}

static int handle(struct http_exchange *x, struct apiserver *s, const struct local_request *local)
{
	struct request q = {
		.server = s,
		.http = x,
		.local = local,
		.arena = x->arena,
		.begun_ns = clock_now_ns(),
		.begun_wall_ns = clock_wall_ns(),
		.method = x->method,
	};
	struct err err = ERR_INIT;
	int r = stage_info(&q, &err);
	if (r >= 0 && local)
		r = local_check(&q);
	if (r >= 0)
		r = stage_deadline(&q, &err);
	if (r < 0)
		failed(&q, r, &err);
	else if (q.timeout_ms)
		run_timed(&q);
	else
		run(&q, STAGE_DEADLINE + 1);
	audit_response_complete(&q);
	r = fiber_check(NULL) == -ERR_CANCELED ? -ERR_CANCELED : 0;
	if (q.answer.kind != ANSWER_SENT && r == 0) {
		add_warnings(&q);
		r = stage_respond(&q, &err);
		if (r < 0)
			log_error("an answer could not be encoded", KV("path", q.path), KV("error", &err));
	}
	metrics_request(&q, val_exists(q.failure) ? (int)val_int(q.failure, code) : q.answer.status,
			clock_now_ns() - q.begun_ns);
	fairness_leave(&q);
	answer_done(&q);
	object_unref(q.current);
	return r < 0 ? r : 0;
}

int pipeline_handle(struct http_exchange *x, void *arg) { return handle(x, arg, NULL); }

int pipeline_local(struct http_exchange *x, struct apiserver *s, const struct local_request *local) { return handle(x, s, local); }
