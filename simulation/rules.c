#include "simulation/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/object.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "codec/time.h"

enum { TEXT_MAX = 256 << 10, SHOWN = 80, FAIL_MAX = 512, NAME_MAX_BYTES = 300, WRITES_MAX = 20000 };

struct fact {
	int64_t n;
	size_t len;
	char name[];
};

static void keep(void *f) { (void)frozen_ref(f); }
static void let_go(void *f) { frozen_unref(f); }
static const struct omap_type frozen_objects = { keep, let_go };

void rules_init(struct rules *r, struct history *h)
{
	*r = (struct rules){ .history = h, .objects = omap_new(&frozen_objects), .facts = MAP_INIT };
	buf_init(&r->text, TEXT_MAX);
}

void rules_done(struct rules *r)
{
	struct map_iter it = map_iter(&r->facts);

	for (struct fact *f; (f = map_next(&it, NULL));)
		free(f);
	map_done(&r->facts);
	omap_free(TAKE(r->objects));
	buf_done(&r->text);
}

void rules_fail(struct rules *r, const char *rule, str about, const char *format, ...)
{
	char text[FAIL_MAX];
	va_list args;

	if (r->failed)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	r->failed = true;
	buf_addf(&r->text, "%s: " STR_FMT "%s%s\n", rule, STR_ARG(about), about.n ? ": " : "", text);
	history_say(r->history, "FAILED %s", rule);
	history_show(r->history, SHOWN, STR_NONE, &r->text);
}

bool rules_complain(struct buf *why, str key, const char *what)
{
	buf_addf(why, STR_FMT ": %s", STR_ARG(key), what);
	return false;
}

/* ---- state ---- */

struct val rules_next(struct omap_iter *it, str prefix, str *ret_key)
{
	str key;
	const struct frozen *f = omap_next(it, &key);

	if (!f || !str_starts(key, prefix))
		return VAL_EMPTY;
	*ret_key = key;
	return f->val;
}

static struct val object_at(const struct rules *r, str key)
{
	const struct frozen *f = omap_get(r->objects, key);
	return f ? f->val : VAL_EMPTY;
}

struct val rules_find(const struct rules *r, const char *format, ...)
{
	char name[NAME_MAX_BYTES] = "/registry/";
	size_t n = strlen(name);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(name + n, sizeof name - n, format, args);
	va_end(args);
	return object_at(r, str_of(name));
}

/* Of leases, those by which leaders are elected. */
static bool is_watched(str key)
{
	if (str_starts(key, STR("/registry/leases/")))
		return str_starts(key, STR("/registry/leases/kube-system/kube-"));
	return !str_starts(key, STR("/registry/events/"));
}

void rules_change(struct rules *r, str key, struct frozen *now)
{
	rules_check_write(r, key, object_at(r, key), now ? now->val : VAL_EMPTY);
	if (now)
		(void)omap_put(r->objects, key, now);
	else
		(void)omap_remove(r->objects, key);
}

void rules_written(struct rules *r, str key, struct store_value *value)
{
	struct object *o = value ? value->object : NULL;

	if (r->history->writes > WRITES_MAX)
		rules_fail(r, "something runs in circles", key, "%zu writes", r->history->writes);
	if (is_watched(key) && (!value || o))
		rules_change(r, key, o ? o->frozen : NULL);
}

/* ---- facts ---- */

static str fact_name(char out[NAME_MAX_BYTES], const char *what, str uid)
{
	(void)snprintf(out, NAME_MAX_BYTES, "%s " STR_FMT, what, STR_ARG(uid));
	return str_of(out);
}

int64_t *rules_fact(struct rules *r, const char *what, str uid)
{
	char text[NAME_MAX_BYTES];
	str name = fact_name(text, what, uid);
	struct fact *f = map_get(&r->facts, name);

	if (f)
		return &f->n;
	f = mem_zalloc(sizeof *f + name.n);
	f->len = name.n;
	memcpy(f->name, name.p, name.n);
	(void)map_put(&r->facts, str_span(f->name, f->len), f);
	return &f->n;
}

int64_t rules_fact_of(const struct rules *r, const char *what, str uid)
{
	char text[NAME_MAX_BYTES];
	const struct fact *f = map_get(&r->facts, fact_name(text, what, uid));

	return f ? f->n : 0;
}

void rules_stopped(struct rules *r, str uid) { *rules_fact(r, "stopped", uid) = 1; }
void rules_unsure(struct rules *r, str node) { *rules_fact(r, "unsure", node) = clock_now_ns(); }

/* ---- what several ask ---- */

bool pod_is_over(struct val pod)
{
	str phase = val_str(pod, status, phase);
	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

bool pod_is_charged(struct val pod)
{
	struct timestamp t;

	if (pod_is_over(pod))
		return false;
	if (!val_has(pod, metadata, deletionTimestamp) || time_parse(val_str(pod, metadata, deletionTimestamp), &t, NULL) < 0)
		return true;
	return (t.seconds + val_int(pod, metadata, deletionGracePeriodSeconds)) * NS_PER_S >= clock_wall_ns();
}

static int64_t milli(struct val v)
{
	struct quantity q;
	return quantity_parse(val_as_str(v), &q, NULL) == 0 ? quantity_milli(q) : 0;
}

int64_t pod_cpu_milli(struct val pod)
{
	int64_t sum = 0;

	VAL_EACH(c, val_get(pod, spec, containers))
		sum += milli(val_get(*c, resources, requests, cpu));
	return sum;
}

bool condition_is(struct val object, const char *type, const char *status)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), str_of(type)))
			return str_eq(val_str(*c, status), str_of(status));
	return false;
}

struct use node_use(const struct rules *r, str node, int64_t priority)
{
	struct use sum = { 0 };
	str key;

	RULES_EACH(r, "pods/", key, pod) {
		if (!str_eq(val_str(pod, spec, nodeName), node) || pod_is_over(pod) || val_int(pod, spec, priority) < priority)
			continue;
		sum.cpu_milli += pod_cpu_milli(pod);
		sum.pods++;
	}
	return sum;
}

struct use node_room(struct val node)
{
	return (struct use){ milli(val_get(node, status, allocatable, cpu)), milli(val_get(node, status, allocatable, pods)) / 1000 };
}
