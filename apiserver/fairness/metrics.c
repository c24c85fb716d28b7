/* What is counted by level and schema, under Kubernetes' names. */
#include "apiserver/fairness/fairness_priv.h"
#include "apiserver/metrics_priv.h"

#define PREFIX "apiserver_flowcontrol_"

static const char *const seconds[] = {
#define LIMIT_TEXT(limit) #limit,
	FLOW_SECONDS(LIMIT_TEXT)
#undef LIMIT_TEXT
};

/* Every series: write says what to show of it. */
static void each(const struct flow_control *f, struct metrics_family family, const char *name,
		 void (*write)(const struct flow_series *s, const char *name, struct buf *b))
{
	struct map_iter it = map_iter(&f->series);
	for (const struct flow_series *s; (s = map_next(&it, NULL));)
		write(s, name, family.b);
	metrics_family_end(&family);
}

#define LABELS "flow_schema=\"" STR_FMT "\",priority_level=\"" STR_FMT "\""
#define LABEL_ARGS(s) STR_ARG((s)->schema), STR_ARG((s)->level)

static void line(struct buf *b, const char *name, const struct flow_series *s, uint64_t value)
{
	buf_addf(b, "%s{" LABELS "} %llu\n", name, LABEL_ARGS(s), (unsigned long long)value);
}

static void write_rejected(const struct flow_series *s, const char *name, struct buf *b)
{
	static const char *const reasons[] = {
#define REASON(id, text) text,
		FLOW_REJECTS(REASON)
#undef REASON
	};
	for (size_t i = 0; i < FLOW_REJECT_MAX; i++)
		if (s->rejected[i])
			buf_addf(b, "%s{" LABELS ",reason=\"%s\"} %llu\n", name, LABEL_ARGS(s), reasons[i],
				 (unsigned long long)s->rejected[i]);
}

/* What is of a schema that nobody has fallen under is not shown. */
static bool used(const struct flow_series *s) { return s->dispatched || s->waited[0].sum_ns || s->waiting; }

static void write_dispatched(const struct flow_series *s, const char *name, struct buf *b)
{
	if (s->dispatched)
		line(b, name, s, s->dispatched);
}

#define GAUGE(field)                                                                                   \
	static void write_##field(const struct flow_series *s, const char *name, struct buf *b)        \
	{                                                                                              \
		if (used(s))                                                                           \
			line(b, name, s, s->field);                                                    \
	}
GAUGE(waiting)
GAUGE(seats_waiting)
GAUGE(executing)
GAUGE(seats)

static void histogram(struct buf *b, const char *name, const struct flow_series *s, const char *label, const struct flow_duration *d)
{
	char labels[1024];
	uint64_t n = 0;
	for (size_t i = 0; i <= FLOW_N_SECONDS; i++)
		n += d->buckets[i];
	if (!n)
		return;
	(void)snprintf(labels, sizeof labels, "%s" LABELS, label, LABEL_ARGS(s));
	metrics_histogram(b, name, str_of(labels), seconds, d->buckets, FLOW_N_SECONDS, (double)d->sum_ns / 1e9);
}

static void write_waited(const struct flow_series *s, const char *name, struct buf *b)
{
	histogram(b, name, s, "execute=\"false\",", &s->waited[0]);
	histogram(b, name, s, "execute=\"true\",", &s->waited[1]);
}

static void write_ran(const struct flow_series *s, const char *name, struct buf *b)
{
	histogram(b, name, s, "type=\"regular\",", &s->ran[0]);
	histogram(b, name, s, "type=\"watch\",", &s->ran[1]);
}

#define SERIES(write, name, type, help) each(f, metrics_family(b, PREFIX name, type, help), PREFIX name, write)

static void write_levels(const struct flow_control *f, struct buf *b)
{
	static const struct {
		const char *name, *help;
	} families[] = {
		{ PREFIX "nominal_limit_seats", "Seats of each priority level by its shares." },
		{ PREFIX "lower_limit_seats", "Seats that are left to each priority level whatever it lends." },
		{ PREFIX "upper_limit_seats", "Seats that each priority level can have with what it borrows." },
		{ PREFIX "current_limit_seats", "Seats of each priority level now." },
		{ PREFIX "demand_seats_high_watermark", "The most seats each priority level could have used lately." },
		{ PREFIX "demand_seats_average", "Seats each priority level could have used lately, on average." },
		{ PREFIX "demand_seats_stdev", "Standard deviation of the seats each priority level could have used lately." },
		{ PREFIX "demand_seats_smoothed", "Seats each priority level is believed to need." },
		{ PREFIX "target_seats", "Seats each priority level would get if there were enough." },
	};
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		(void)metrics_family(b, families[i].name, "gauge", families[i].help);
		for (size_t k = 0; k < f->levels.n; k++) {
			const struct priority_level *p = f->levels.v[k];
			const double values[] = { p->nominal, p->least, p->most, p->current, p->highest, p->average, p->deviation,
						  p->smoothed, p->target };
			buf_addf(b, "%s{priority_level=\"" STR_FMT "\"} %.9g\n", families[i].name, STR_ARG(p->name), values[i]);
		}
	}
	(void)metrics_family(b, PREFIX "seat_fair_frac", "gauge", "The part of what they need that all levels get.");
	buf_addf(b, PREFIX "seat_fair_frac %.9g\n", f->levels.fair_fraction);
}

void fairness_metrics(const struct flow_control *f, struct buf *b)
{
	if (!f->shares)
		return;
	SERIES(write_rejected, "rejected_requests_total", "counter", "Requests that were rejected.");
	SERIES(write_dispatched, "dispatched_requests_total", "counter", "Requests that got a seat.");
	SERIES(write_waiting, "current_inqueue_requests", "gauge", "Requests that wait in queues now.");
	SERIES(write_seats_waiting, "current_inqueue_seats", "gauge", "Seats that the requests in queues want.");
	SERIES(write_executing, "current_executing_requests", "gauge", "Requests at work now; watches until they have begun.");
	SERIES(write_seats, "current_executing_seats", "gauge", "Seats that are taken now.");
	SERIES(write_waited, "request_wait_duration_seconds", "histogram", "How long requests waited for a seat.");
	SERIES(write_ran, "request_execution_seconds", "histogram", "How long requests kept their seats.");
	write_levels(f, b);
}
