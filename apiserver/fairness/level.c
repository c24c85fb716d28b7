/*
 * Priority levels as their objects describe them. A level keeps its queues when its object changes; when its object goes, requests
 * come no more, those that wait are served, and then the level is dropped.
 */
#include "apiserver/fairness/level.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"

/* How much of an old demand is still believed after a period: half of it after five minutes. */
#define SMOOTHING 0.977
/* One request takes no more than this part of its level's seats. */
#define WIDEST 0.15

/* ---- Retry-After ---- */

static void retry_after_keep(struct retry_after *r, int64_t second, int64_t n)
{
	int64_t oldest = second - MIN(2 * r->seconds, (int64_t)RETRY_AFTER_MAX);
	size_t kept = 0;
	for (size_t i = 0; i < r->n; i++)
		if (r->history[i].second >= oldest)
			r->history[kept++] = r->history[i];
	r->n = kept;
	r->history[r->n].second = second;
	r->history[r->n++].n = n;
}

int64_t retry_after_note(struct retry_after *r, int64_t second)
{
	r->seconds = MAX(r->seconds, (int64_t)1);
	if (second == r->current && r->n_current) {
		r->n_current++;
		return r->seconds;
	}
	if (r->n_current)
		retry_after_keep(r, r->current, r->n_current);
	r->current = second;
	r->n_current = 1;
	int64_t rejected = 0;
	for (size_t i = 0; i < r->n; i++)
		if (second - r->history[i].second <= r->seconds)
			rejected += r->history[i].n;
	if (second - r->changed >= r->seconds && rejected >= 3 * r->seconds) {
		r->seconds = MIN(2 * r->seconds, (int64_t)RETRY_AFTER_MAX);
		r->changed = second;
	} else if (rejected < r->seconds && r->seconds > 1) {
		r->seconds--;
	}
	return r->seconds;
}

/* ---- from objects ---- */

static void text_set(str *s, str value)
{
	if (s->p && str_eq(*s, value))
		return;
	free((char *)s->p);
	char *p = mem_alloc(value.n + 1);
	if (value.n)
		memcpy(p, value.p, value.n);
	*s = str_span(p, value.n);
}

/* Where the level of that name is, or would be. */
static size_t place_of(const struct levels *l, str name)
{
	size_t low = 0, high = l->n;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (str_cmp(l->v[mid]->name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct priority_level *level_get(struct levels *l, str name)
{
	size_t at = place_of(l, name);
	if (at < l->n && str_eq(l->v[at]->name, name))
		return l->v[at];
	struct priority_level *p = mem_zalloc(sizeof *p);
	text_set(&p->name, name);
	text_set(&p->uid, STR(""));
	queue_set_init(&p->queues);
	l->v = mem_resize(l->v, (l->n + 1) * sizeof *l->v);
	memmove(&l->v[at + 1], &l->v[at], (l->n - at) * sizeof *l->v);
	l->v[at] = p;
	l->n++;
	return p;
}

static void level_free(struct priority_level *p)
{
	queue_set_done(&p->queues);
	free((char *)p->name.p);
	free((char *)p->uid.p);
	free(p);
}

static unsigned number(struct val v)
{
	int64_t n = val_as_int(v);
	return n < 0 ? 0 : (unsigned)MIN(n, (int64_t)INT32_MAX);
}

/* As validation leaves them; what it would not let pass (an old object) is no level. */
static bool level_read(struct val spec, bool exempt, struct priority_level *p, struct queue_set_config *config)
{
	struct val part = exempt ? val_get(spec, exempt) : val_get(spec, limited);
	if (!val_exists(part) || str_eq(val_str(spec, type), STR("Exempt")) != exempt)
		return false;
	struct val queuing = val_get(part, limitResponse, queuing), borrowing = val_get(part, borrowingLimitPercent);
	if (!exempt && str_eq(val_str(part, limitResponse, type), STR("Queue")) != val_exists(queuing))
		return false;
	*config = (struct queue_set_config){
		.exempt = exempt, .queues = number(val_get(queuing, queues)), .hand_size = number(val_get(queuing, handSize)),
		.queue_length = number(val_get(queuing, queueLengthLimit)),
	};
	if (config->queues &&
	    (!config->hand_size || config->hand_size > config->queues || config->hand_size > HAND_MAX))
		return false;
	p->shares = number(val_get(part, nominalConcurrencyShares));
	p->lendable_percent = number(val_get(part, lendablePercent));
	p->borrowing_percent = val_exists(borrowing) ? (int64_t)number(borrowing) : -1;
	return true;
}

static bool is_exempt(str name) { return str_eq(name, STR("exempt")); }

static void level_take(struct levels *l, struct val object)
{
	str name = val_str(object, metadata, name);
	struct priority_level read = { 0 };
	struct queue_set_config config;
	if (!level_read(val_get(object, spec), is_exempt(name), &read, &config))
		return;
	struct priority_level *p = level_get(l, name);
	text_set(&p->uid, val_str(object, metadata, uid));
	p->wanted = true;
	p->exempt = config.exempt;
	p->shares = read.shares;
	p->lendable_percent = read.lendable_percent;
	p->borrowing_percent = read.borrowing_percent;
	queue_set_configure(&p->queues, &config);
}

/* One that must be there and has no object (now) is as Kubernetes has it. */
static void level_imagine(struct levels *l, str name)
{
	struct priority_level *p = level_get(l, name);
	if (p->wanted)
		return;
	text_set(&p->uid, STR(""));
	p->wanted = true;
	p->exempt = is_exempt(name);
	p->shares = p->exempt ? 0 : 5;
	p->lendable_percent = 0;
	p->borrowing_percent = -1;
	queue_set_configure(&p->queues, &(struct queue_set_config){ .exempt = p->exempt });
}

/* ---- seats ---- */

static unsigned percent_of(unsigned n, int64_t percent) { return (unsigned)lround((double)n * (double)percent / 100); }

static unsigned widest(unsigned nominal, unsigned hand_size)
{
	unsigned seats = MIN((unsigned)ceil(nominal * WIDEST), nominal / hand_size);
	return MAX(seats, 1U);
}

/* By shares. Rounded up, so that together they may have a few more than the server's total. */
static void divide(struct levels *l)
{
	double shares = 0;
	for (size_t i = 0; i < l->n; i++)
		shares += l->v[i]->shares;
	l->nominal_sum = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct priority_level *p = l->v[i];
		const struct queue_set_config *c = &p->queues.config;
		p->nominal = shares > 0 ? (unsigned)ceil(l->total * p->shares / shares) : 0;
		p->least = p->nominal - percent_of(p->nominal, MIN(p->lendable_percent, 100U));
		if (!p->begun)
			p->current = (p->nominal + p->least) / 2;
		p->begun = true;
		p->most = p->nominal + (p->borrowing_percent < 0 || p->exempt ? l->total : percent_of(p->nominal, p->borrowing_percent));
		p->max_seats = 0;
		if (c->queues)
			p->max_seats = widest(p->nominal, c->hand_size);
		l->nominal_sum += p->nominal;
	}
}

static void demand_look(struct priority_level *p)
{
	struct seat_demand_result d = seat_demand_take(&p->queues.demand);
	p->highest = round(d.highest);
	if (d.elapsed <= 0)
		return;
	p->average = d.average;
	p->deviation = d.deviation;
	double envelope = d.average + d.deviation;
	p->smoothed = MAX(envelope, SMOOTHING * p->smoothed + (1 - SMOOTHING) * envelope);
}

/* What a level surely gets: what it used at most, within its own; and never less than it may not lend. */
static double floor_of(const struct priority_level *p)
{
	double used = p->exempt ? p->highest : MIN(p->highest, (double)p->nominal);
	return MAX((double)p->least, used);
}

/* Fills *ret for the levels with limits; returns how many there are. */
static size_t problem_of(struct levels *l, struct allocation *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct priority_level *p = l->v[i];
		double low = floor_of(p);
		p->target = MAX(low, p->smoothed);
		if (!p->exempt)
			ret[n++] = (struct allocation){ .target = p->target, .low = low, .high = MAX(p->most, low), .share = p->current };
	}
	return n;
}

/* Less than what all surely get is there for the levels with limits when those without take much: what can be lent goes first. */
static void squeeze(const struct levels *l, struct allocation *a, size_t n, double left)
{
	double least = 0, floors = 0;
	for (size_t i = 0; i < l->n; i++)
		least += l->v[i]->exempt ? 0 : l->v[i]->least;
	for (size_t i = 0; i < n; i++)
		floors += a[i].low;
	double part = left <= least ? 0 : (left - least) / (floors - least);
	for (size_t i = 0, k = 0; i < l->n; i++) {
		const struct priority_level *p = l->v[i];
		if (!p->exempt) {
			a[k].share = p->least + round((a[k].low - p->least) * part);
			k++;
		}
	}
}

static void share_out(struct levels *l)
{
	struct allocation *a = mem_array(l->n, sizeof *a);
	double left = l->nominal_sum, floors = 0;
	for (size_t i = 0; i < l->n; i++) {
		demand_look(l->v[i]);
		left -= l->v[i]->exempt ? floor_of(l->v[i]) : 0;
	}
	size_t n = problem_of(l, a);
	for (size_t i = 0; i < n; i++)
		floors += a[i].low;
	l->fair_fraction = 0;
	if (left <= floors)
		squeeze(l, a, n, left);
	else
		(void)allocate(l->nominal_sum, a, n, &l->fair_fraction); /* cannot be: all stays */
	for (size_t i = 0, k = 0; i < l->n; i++) {
		struct priority_level *p = l->v[i];
		p->current = (unsigned)lround(p->exempt ? floor_of(p) : a[k++].share);
		queue_set_limit(&p->queues, p->current);
	}
	free(a);
}

static bool drop_drained(struct levels *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct priority_level *p = l->v[i];
		if (!p->wanted && queue_set_is_idle(&p->queues) && !p->queues.n_lingering)
			level_free(p);
		else
			l->v[kept++] = p;
	}
	bool dropped = kept < l->n;
	l->n = kept;
	return dropped;
}

/* ---- all of them ---- */

void levels_init(struct levels *l, unsigned total) { *l = (struct levels){ .total = total }; }

void levels_done(struct levels *l)
{
	for (size_t i = 0; i < l->n; i++)
		level_free(l->v[i]);
	free(l->v);
	*l = (struct levels){ 0 };
}

void levels_update(struct levels *l, const struct val *objects, size_t n)
{
	for (size_t i = 0; i < l->n; i++)
		l->v[i]->wanted = false;
	for (size_t i = 0; i < n; i++)
		level_take(l, objects[i]);
	level_imagine(l, STR("exempt"));
	level_imagine(l, STR("catch-all"));
	(void)drop_drained(l);
	divide(l);
	share_out(l);
}

struct priority_level *levels_find(const struct levels *l, str name)
{
	size_t at = place_of(l, name);
	return at < l->n && str_eq(l->v[at]->name, name) && l->v[at]->wanted ? l->v[at] : NULL;
}

void levels_adjust(struct levels *l)
{
	if (drop_drained(l))
		divide(l);
	share_out(l);
}
