#include "apiserver/admission/webhook_metrics.h"

#include <stdlib.h>

#include "apiserver/admission/webhook_call.h"
#include "apiserver/metrics_priv.h"
#include "base/mem.h"

/* Webhooks come and go by their names: more than so many are not told apart any more, but left out. */
enum { SERIES_MAX = 1000, CODES_MAX = 16, CODE_MAX = 600 };

#define SECONDS(X) X(0.005) X(0.025) X(0.1) X(0.5) X(1) X(2.5) X(10) X(25)
#define TEXT(limit) #limit,
#define LIMIT(limit) (int64_t)((limit) * 1e9),
static const char *const limit_texts[] = { SECONDS(TEXT) };
static const int64_t limits_ns[] = { SECONDS(LIMIT) };
#undef TEXT
#undef LIMIT

enum error_type { NO_ERROR, CALLING_ERROR, INTERNAL_ERROR, ERROR_TYPES };

static const char *const error_texts[ERROR_TYPES] = { "no_error", "calling_webhook_error", "apiserver_internal_error" };

struct durations {
	uint64_t buckets[ARRAY_LEN(limits_ns) + 1];
	int64_t sum_ns;
	uint64_t n;
};

/* Calls that ended in the same way. */
struct ending {
	int code;
	bool rejected;
	enum error_type error;
	uint64_t n;
};

/* One webhook and operation. */
struct series {
	struct series *next;
	char *name;
	str operation;
	struct durations taken[2];    /* by whether the request was rejected */
	struct ending endings[CODES_MAX];
	size_t n_endings;
	uint64_t failed_open;
};

struct hook_metrics {
	const char *type;
	struct series *series;
	size_t n;
};

struct hook_metrics *hook_metrics_new(const char *type)
{
	struct hook_metrics *m = mem_zalloc(sizeof *m);
	m->type = type;
	return m;
}

void hook_metrics_free(struct hook_metrics *m)
{
	for (struct series *s = m ? m->series : NULL, *next; s; s = next) {
		next = s->next;
		free(s->name);
		free(s);
	}
	free(m);
}

/* ---- counting ---- */

static struct series *series_of(struct hook_metrics *m, str name, str operation)
{
	for (struct series *s = m->series; s; s = s->next)
		if (str_eq(str_of(s->name), name) && str_eq(s->operation, operation))
			return s;
	if (m->n == SERIES_MAX)
		return NULL;
	struct series *s = mem_zalloc(sizeof *s);
	struct buf text = BUF_INIT(SIZE_MAX / 2);
	buf_add(&text, name);
	*s = (struct series){ .next = m->series, .name = buf_take(&text), .operation = operation };
	m->series = s;
	m->n++;
	return s;
}

static void count_ending(struct series *s, struct ending e)
{
	for (size_t i = 0; i < s->n_endings; i++) {
		struct ending *known = &s->endings[i];
		if (known->code == e.code && known->rejected == e.rejected && known->error == e.error) {
			known->n++;
			return;
		}
	}
	e.n = 1;
	if (s->n_endings < CODES_MAX)
		s->endings[s->n_endings++] = e;
}

void hook_metrics_count(struct hook_metrics *m, const struct hook_call *c, int64_t ns)
{
	struct series *s = series_of(m, c->hook->name, hook_operation_text(c->request->target.operation));
	if (!s || c->outcome == HOOK_CANCELED)
		return;
	bool failed = c->outcome == HOOK_FAILED, open = failed && c->hook->ignore;
	struct ending e = {
		.code = MIN(c->code, (int)CODE_MAX), .rejected = c->outcome != HOOK_ALLOWED && !open,
		.error = failed ? CALLING_ERROR : c->outcome == HOOK_UNFIT || c->outcome == HOOK_BROKEN ? INTERNAL_ERROR : NO_ERROR,
	};
	if (e.error == INTERNAL_ERROR)
		e.code = 0;
	struct durations *d = &s->taken[e.rejected];
	d->buckets[metrics_bucket(limits_ns, ARRAY_LEN(limits_ns), ns)]++;
	d->sum_ns += ns;
	d->n++;
	s->failed_open += open;
	count_ending(s, e);
}

/* ---- showing ---- */

static void write_durations(const struct hook_metrics *m, struct buf *b)
{
	for (const struct series *s = m->series; s; s = s->next)
		for (int rejected = 0; rejected < 2; rejected++) {
			CLEANUP(buf_done) struct buf labels = BUF_INIT(4096);
			const struct durations *d = &s->taken[rejected];
			if (!d->n)
				continue;
			buf_addf(&labels, "name=\"%s\",operation=\"" STR_FMT "\",rejected=\"%s\",type=\"%s\"", s->name,
				 STR_ARG(s->operation), rejected ? "true" : "false", m->type);
			metrics_histogram(b, "apiserver_admission_webhook_admission_duration_seconds", buf_str(&labels), limit_texts,
					  d->buckets, ARRAY_LEN(limits_ns), (double)d->sum_ns / 1e9);
		}
}

static void write_requests(const struct hook_metrics *m, struct buf *b)
{
	for (const struct series *s = m->series; s; s = s->next)
		for (const struct ending *e = s->endings; e < s->endings + s->n_endings; e++)
			buf_addf(b, "apiserver_admission_webhook_request_total{code=\"%d\",name=\"%s\",operation=\"" STR_FMT
				    "\",rejected=\"%s\",type=\"%s\"} %llu\n", e->code, s->name, STR_ARG(s->operation),
				 e->rejected ? "true" : "false", m->type, (unsigned long long)e->n);
}

static void write_rejections(const struct hook_metrics *m, struct buf *b)
{
	for (const struct series *s = m->series; s; s = s->next)
		for (const struct ending *e = s->endings; e < s->endings + s->n_endings; e++)
			if (e->rejected)
				buf_addf(b, "apiserver_admission_webhook_rejection_count{error_type=\"%s\",name=\"%s\",operation=\"" STR_FMT
					    "\",rejection_code=\"%d\",type=\"%s\"} %llu\n", error_texts[e->error], s->name,
					 STR_ARG(s->operation), e->code, m->type, (unsigned long long)e->n);
}

/* These are not told by operation: a name's first series has all of them. */
static void write_failed_open(const struct hook_metrics *m, struct buf *b)
{
	for (const struct series *s = m->series; s; s = s->next) {
		uint64_t n = 0;
		const struct series *first = m->series;
		while (strcmp(first->name, s->name) != 0)
			first = first->next;
		for (const struct series *other = s; other && first == s; other = other->next)
			n += strcmp(other->name, s->name) == 0 ? other->failed_open : 0;
		if (n)
			buf_addf(b, "apiserver_admission_webhook_fail_open_count{name=\"%s\",type=\"%s\"} %llu\n", s->name, m->type,
				 (unsigned long long)n);
	}
}

static void family(const struct hook_metrics *const *all, size_t n, struct buf *b, const char *name, const char *type, const char *help,
		   void (*write)(const struct hook_metrics *m, struct buf *b))
{
	struct metrics_family f = metrics_family(b, name, type, help);
	for (size_t i = 0; i < n; i++)
		if (all[i])
			write(all[i], b);
	metrics_family_end(&f);
}

void hook_metrics_write(const struct hook_metrics *const *all, size_t n, struct buf *b)
{
	family(all, n, b, "apiserver_admission_webhook_admission_duration_seconds", "histogram", "How long admission webhooks took.",
	       write_durations);
	family(all, n, b, "apiserver_admission_webhook_fail_open_count", "counter", "Webhooks that failed and were ignored.",
	       write_failed_open);
	family(all, n, b, "apiserver_admission_webhook_rejection_count", "counter", "Requests that were refused because of a webhook.",
	       write_rejections);
	family(all, n, b, "apiserver_admission_webhook_request_total", "counter", "Questions to admission webhooks.", write_requests);
}
