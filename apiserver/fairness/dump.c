/* What is going on, for whoever looks: tables under /debug/api_priority_and_fairness/, as Kubernetes has them. */
#include "apiserver/apiserver.h"
#include "apiserver/fairness/fairness_priv.h"
#include "base/clock.h"
#include "codec/time.h"

enum { COLUMNS_MAX = 18, CELL_MIN = 8, ROWS_MAX_BYTES = 64 << 20 };

/* ---- tables: cells end with commas and are as wide as the widest of their column ---- */

struct table_text {
	struct arena *a;
	str (*rows)[COLUMNS_MAX];
	size_t n, cap, columns;
};

static str *row_add(struct table_text *t)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		str(*rows)[COLUMNS_MAX] = arena_array_of(t->a, cap, sizeof *rows, _Alignof(str));
		if (t->n)
			memcpy(rows, t->rows, t->n * sizeof *rows);
		t->rows = rows;
		t->cap = cap;
	}
	str *row = t->rows[t->n++];
	memset(row, 0, sizeof t->rows[0]);
	return row;
}

static void headers_add(struct table_text *t, const char *const *names, size_t n)
{
	str *row = t->n ? t->rows[0] : row_add(t);
	for (size_t i = 0; i < n; i++)
		row[t->columns++] = str_of(names[i]);
}

static str count(struct table_text *t, long long n) { return arena_printf(t->a, "%lld", n); }
static str seat_seconds(struct table_text *t, double s) { return arena_printf(t->a, "%.8fss", s); }

static int table_answer(struct request *q, const struct table_text *t, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ROWS_MAX_BYTES);
	size_t widths[COLUMNS_MAX];
	for (size_t k = 0; k < COLUMNS_MAX; k++)
		widths[k] = CELL_MIN;
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < t->columns; k++)
			widths[k] = MAX(widths[k], t->rows[i][k].n + 2);
	for (size_t i = 0; i < t->n; i++) {
		for (size_t k = 0; k < t->columns; k++) {
			str cell = t->rows[i][k];
			if (k + 1 < t->columns)
				buf_addf(&b, STR_FMT ",%*s", STR_ARG(cell), (int)(widths[k] - cell.n - 1), "");
			else
				buf_add(&b, cell);
		}
		buf_addc(&b, '\n');
	}
	int r = buf_check(&b, "the table", err);
	if (r < 0)
		return r;
	answer_bytes(q, 200, STR("text/plain; charset=utf-8"), arena_str(q->arena, buf_str(&b)));
	return 0;
}

static void dump_levels(const struct flow_control *f, struct table_text *t)
{
	static const char *const names[] = {
		"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
		"DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests",
	};
	headers_add(t, names, ARRAY_LEN(names));
	for (size_t i = 0; i < f->levels.n; i++) {
		const struct priority_level *p = f->levels.v[i];
		const struct queue_set *s = &p->queues;
		size_t active = 0;
		for (size_t k = 0; k < s->n_queues; k++)
			active += queue_set_figures(s, k).waiting > 0;
		str *row = row_add(t);
		row[0] = p->name;
		row[1] = count(t, (long long)active);
		row[2] = queue_set_is_idle(s) ? STR("true") : STR("false");
		row[3] = p->wanted ? STR("false") : STR("true");
		row[4] = count(t, s->n_waiting);
		row[5] = count(t, s->n_executing);
		row[6] = count(t, (long long)s->dispatched);
		row[7] = count(t, (long long)s->rejected);
		row[8] = count(t, 0);
		row[9] = count(t, (long long)s->canceled);
	}
}

static void dump_queues(const struct flow_control *f, struct table_text *t)
{
	static const char *const names[] = {
		"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
		"InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum",
	};
	headers_add(t, names, ARRAY_LEN(names));
	for (size_t i = 0; i < f->levels.n; i++) {
		const struct queue_set *s = &f->levels.v[i]->queues;
		for (size_t k = 0; k < s->n_queues; k++) {
			struct queue_figures queue = queue_set_figures(s, k);
			if (k >= s->config.queues && !queue.waiters)
				continue; /* it is dealt no more and gone */
			str *row = row_add(t);
			row[0] = f->levels.v[i]->name;
			row[1] = count(t, (long long)k);
			row[2] = count(t, queue.waiting);
			row[3] = count(t, queue.executing);
			row[4] = count(t, queue.seats);
			row[5] = seat_seconds(t, queue.next_r);
			row[6] = count(t, queue.initial_waiting);
			row[7] = count(t, queue.seats_waiting);
			row[8] = seat_seconds(t, queue.work_waiting);
		}
	}
}

/* As RFC 3339 with as many digits as there are. */
static str time_text(struct table_text *t, int64_t ns)
{
	if (!ns)
		return STR("0001-01-01T00:00:00Z"); /* never */
	char out[TIME_TEXT_MAX];
	int64_t wall = clock_wall_ns() - (clock_now_ns() - ns);
	str text = time_format((struct timestamp){ .seconds = wall / NS_PER_S }, out);
	str all = arena_printf(t->a, STR_FMT ".%09lld", (int)text.n - 1, text.p, (long long)(wall % NS_PER_S));
	while (all.p[all.n - 1] == '0')
		all.n--;
	all.n -= all.p[all.n - 1] == '.';
	return arena_join(t->a, all, STR("Z"));
}

static str lower(struct arena *a, str s)
{
	str copy = arena_str(a, s);
	for (size_t i = 0; i < copy.n; i++)
		((char *)copy.p)[i] = (char)(copy.p[i] | 0x20);
	return copy;
}

static void seat_row(struct table_text *t, str level, const struct flow_seat *seat, long long queue, long long place, bool details)
{
	char latency[DURATION_TEXT_MAX];
	const struct request *q = seat->request;
	str *row = row_add(t);
	row[0] = level;
	row[1] = seat->series->schema;
	row[2] = count(t, queue);
	row[3] = count(t, place);
	row[4] = seat->distinguisher;
	row[5] = time_text(t, seat->arrived_ns);
	row[6] = count(t, seat->work.initial);
	row[7] = count(t, seat->work.final);
	row[8] = arena_str(t->a, duration_format(seat->work.after_ns, latency));
	row[9] = time_text(t, seat->started_ns);
	if (!details)
		return;
	row[10] = q->user.name;
	row[11] = q->is_resource ? q->verb_text : lower(t->a, q->method);
	row[12] = q->path;
	row[13] = q->namespace;
	row[14] = q->name;
	row[15] = arena_printf(t->a, STR_FMT "%s" STR_FMT, STR_ARG(q->group), q->group.n ? "/" : "", STR_ARG(q->version));
	row[16] = q->resource;
	row[17] = q->subresource;
}

static void dump_requests(const struct flow_control *f, struct table_text *t, bool details)
{
	static const char *const names[] = {
		"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
		"InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
	};
	static const char *const more[] = {
		"UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource",
	};
	headers_add(t, names, ARRAY_LEN(names));
	if (details)
		headers_add(t, more, ARRAY_LEN(more));
	for (size_t i = 0; i < f->levels.n; i++) {
		const struct priority_level *p = f->levels.v[i];
		for (size_t k = 0; k < p->queues.n_queues; k++) {
			struct queue_figures queue = queue_set_figures(&p->queues, k);
			long long place = 0;
			if (!queue.waiters)
				continue;
			LIST_EACH(const struct flow_seat, seat, queue.waiters, link)
				seat_row(t, p->name, seat, (long long)k, place++, details);
			LIST_EACH(const struct flow_seat, seat, queue.executors, link)
				seat_row(t, p->name, seat, (long long)k, -1, details);
		}
		LIST_EACH(const struct flow_seat, seat, &p->queues.executing, link)
			seat_row(t, p->name, seat, -1, -1, details);
	}
}

int fairness_dump(struct request *q, str name, struct err *err)
{
	struct table_text t = { .a = q->arena };
	const struct flow_control *f = q->server->flow;
	if (!f || !f->shares)
		return err_set(err, ERR_NOT_FOUND, "no such path");
	if (str_eq(name, STR("dump_priority_levels")))
		dump_levels(f, &t);
	else if (str_eq(name, STR("dump_queues")))
		dump_queues(f, &t);
	else if (str_eq(name, STR("dump_requests")))
		dump_requests(f, &t, request_query(q, STR("includeRequestDetails")).n > 0);
	else
		return err_set(err, ERR_NOT_FOUND, "no such path");
	return table_answer(q, &t, err);
}
