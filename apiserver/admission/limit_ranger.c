/*
 * LimitRanger: containers that do not say what they need get what the namespace's LimitRanges give them; what asks for too little or
 * too much is refused.
 */
#include "apiserver/admission/limit_ranger.h"

#include "apiserver/admission/plugins.h"
#include "base/buf.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/resources.h"

#define ANNOTATION "kubernetes.io/limit-ranger"

/* ---- defaults ---- */

/* Of all items for containers: the last one that names a resource counts. A copy: the range may go before the pod. */
static struct val defaults_of(struct arena *a, struct val range, atom which)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(item, val_get(range, spec, limits))
		if (str_eq(val_str(*item, type), STR("Container")))
			VAL_EACH_MEMBER(m, val_member(*item, which))
				val_add_member(&b, m->key, m->val);
	return b.n ? val_copy(a, val_sorted(a, val_end_object(&b))) : VAL_EMPTY;
}

/* One side of a container's resources; what was missing is told: "cpu, memory request for container c". */
static struct val fill(struct arena *a, struct val given, struct val defaults, struct buf *told, const char *side)
{
	struct val_builder b = val_builder(a);
	size_t n = 0;
	VAL_EACH_MEMBER(m, given)
		val_add_member(&b, m->key, m->val);
	VAL_EACH_MEMBER(m, defaults) {
		if (val_exists(sorted_find(given, atom_str(m->key))))
			continue;
		val_add_member(&b, m->key, m->val);
		buf_addf(told, "%s" STR_FMT, n++ ? ", " : told->n ? "; " : "", STR_ARG(atom_str(m->key)));
	}
	if (n)
		buf_addf(told, " %s for ", side);
	return n ? val_sorted(a, val_end_object(&b)) : given;
}

static struct val fill_containers(struct arena *a, struct val containers, const char *sort, struct val requests,
				  struct val limits, struct buf *told)
{
	struct val_builder b = val_builder(a);
	VAL_EACH(c, containers) {
		struct val resources = val_get(*c, resources), container = *c;
		str name = val_str(*c, name);
		size_t before = told->n;
		struct val filled = fill(a, val_get(resources, requests), requests, told, "request");
		if (told->n != before) {
			container = val_with(a, container, filled, resources, requests);
			buf_addf(told, "%s " STR_FMT, sort, STR_ARG(name));
		}
		before = told->n;
		filled = fill(a, val_get(resources, limits), limits, told, "limit");
		if (told->n != before) {
			container = val_with(a, container, filled, resources, limits);
			buf_addf(told, "%s " STR_FMT, sort, STR_ARG(name));
		}
		val_add_item(&b, container);
	}
	return val_end_list(&b);
}

size_t limit_range_default_size(struct val range, struct val pod)
{
	size_t n = 0, containers = val_len(val_get(pod, spec, containers)) + val_len(val_get(pod, spec, initContainers));
	VAL_EACH(item, val_get(range, spec, limits))
		n += val_len(val_get(*item, default)) + val_len(val_get(*item, defaultRequest));
	return n * containers;
}

struct val limit_range_default(struct arena *a, struct val range, struct val pod)
{
	CLEANUP(buf_done) struct buf told = BUF_INIT(8 << 20);
	struct val requests = defaults_of(a, range, A_defaultRequest), limits = defaults_of(a, range, A_default);
	if (!val_len(requests) && !val_len(limits))
		return pod;
	struct val containers = fill_containers(a, val_get(pod, spec, containers), "container", requests, limits, &told);
	struct val init = fill_containers(a, val_get(pod, spec, initContainers), "init container", requests, limits, &told);
	if (!told.n)
		return pod;
	pod = val_with(a, pod, containers, spec, containers);
	if (val_len(init))
		pod = val_with(a, pod, init, spec, initContainers);
	str note = arena_join(a, STR("LimitRanger plugin set: "), buf_str(&told));
	struct val annotations = val_put(a, val_get(pod, metadata, annotations), atom_make(a, STR(ANNOTATION)), val_of_str(note));
	return val_with(a, pod, val_sorted(a, annotations), metadata, annotations);
}

/* ---- bounds ---- */

/* Beyond this, a quantity is compared in whole units. */
#define MILLI_MAX (INT64_MAX / 1000)
/* So many complaints are enough for one pod. */
enum { COMPLAINTS_MAX = 1000 };

struct check {
	struct arena *arena;
	struct map seen;              /* texts, each of which is told once */
	struct buf all;
	str type;                     /* Container, Pod or PersistentVolumeClaim */
	struct val requests, limits;
};

static void check_done(struct check *c)
{
	map_done(&c->seen);
	buf_done(&c->all);
}

static void complain(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void complain(struct check *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(c->arena, fmt, ap);
	va_end(ap);
	if (map_put(&c->seen, text, c))
		return;
	buf_add(&c->all, c->all.n ? STR(", ") : STR(""));
	buf_add(&c->all, text);
}

static bool is_full(const struct check *c) { return map_len(&c->seen) >= COMPLAINTS_MAX; }

static str complaints(struct check *c)
{
	if (map_len(&c->seen) > 1)
		return arena_printf(c->arena, "[" STR_FMT "]", STR_ARG(buf_str(&c->all)));
	return arena_str(c->arena, buf_str(&c->all));
}

/* What is asked for and what is allowed of one resource, at a precision at which they can be compared. */
struct amounts {
	str name, type, enforced_text, request_text, limit_text;
	bool has_request, has_limit;
	int64_t request, limit, enforced;
};

static struct amounts amounts_of(const struct check *c, const struct member *m)
{
	struct val request = sorted_find(c->requests, atom_str(m->key)), limit = sorted_find(c->limits, atom_str(m->key));
	struct quantity r = quantity_of(request), l = quantity_of(limit), e = quantity_of(m->val);
	struct amounts n = {
		.name = atom_str(m->key), .type = c->type, .enforced_text = val_as_str(m->val),
		.request_text = val_as_str(request), .limit_text = val_as_str(limit),
		.has_request = val_exists(request), .has_limit = val_exists(limit),
		.request = quantity_value(r), .limit = quantity_value(l), .enforced = quantity_value(e),
	};
	if (n.request <= MILLI_MAX && n.limit <= MILLI_MAX && n.enforced <= MILLI_MAX) {
		n.request = quantity_milli(r);
		n.limit = quantity_milli(l);
		n.enforced = quantity_milli(e);
	}
	return n;
}

#define USAGE "%s " STR_FMT " usage per " STR_FMT " is " STR_FMT
#define USAGE_ARG(bound, n) bound, STR_ARG((n).name), STR_ARG((n).type), STR_ARG((n).enforced_text)

static void check_min(struct check *c, struct val bounds)
{
	VAL_EACH_MEMBER(m, bounds) {
		if (is_full(c))
			return;
		struct amounts n = amounts_of(c, m);
		if (!n.has_request)
			complain(c, USAGE ".  No request is specified", USAGE_ARG("minimum", n));
		else if (n.request < n.enforced)
			complain(c, USAGE ", but request is " STR_FMT, USAGE_ARG("minimum", n), STR_ARG(n.request_text));
		else if (n.has_limit && n.limit < n.enforced)
			complain(c, USAGE ", but limit is " STR_FMT, USAGE_ARG("minimum", n), STR_ARG(n.limit_text));
	}
}

static void check_max(struct check *c, struct val bounds)
{
	VAL_EACH_MEMBER(m, bounds) {
		if (is_full(c))
			return;
		struct amounts n = amounts_of(c, m);
		if (!n.has_limit)
			complain(c, USAGE ".  No limit is specified", USAGE_ARG("maximum", n));
		else if (n.limit > n.enforced)
			complain(c, USAGE ", but limit is " STR_FMT, USAGE_ARG("maximum", n), STR_ARG(n.limit_text));
		else if (n.has_request && n.request > n.enforced)
			complain(c, USAGE ", but request is " STR_FMT, USAGE_ARG("maximum", n), STR_ARG(n.request_text));
	}
}

/* Claims have no limits that count: their requests are held against the maximum. */
static void check_max_request(struct check *c, struct val bounds)
{
	VAL_EACH_MEMBER(m, bounds) {
		if (is_full(c))
			return;
		struct amounts n = amounts_of(c, m);
		if (!n.has_request)
			complain(c, USAGE ".  No request is specified", USAGE_ARG("maximum", n));
		else if (n.request > n.enforced)
			complain(c, USAGE ", but request is " STR_FMT, USAGE_ARG("maximum", n), STR_ARG(n.request_text));
	}
}

#define RATIO STR_FMT " max limit to request ratio per " STR_FMT " is " STR_FMT
#define RATIO_ARG(n) STR_ARG((n).name), STR_ARG((n).type), STR_ARG((n).enforced_text)

static void check_ratio(struct check *c, struct val bounds)
{
	VAL_EACH_MEMBER(m, bounds) {
		if (is_full(c))
			return;
		struct amounts n = amounts_of(c, m);
		struct quantity e = quantity_of(m->val);
		bool milli = quantity_value(e) <= MILLI_MAX;
		if (!n.has_request || !n.request) {
			complain(c, RATIO ", but no request is specified or request is 0", RATIO_ARG(n));
			continue;
		}
		if (!n.has_limit || !n.limit) {
			complain(c, RATIO ", but no limit is specified or limit is 0", RATIO_ARG(n));
			continue;
		}
		double ratio = (double)n.limit / (double)n.request;
		double most = (double)(milli ? quantity_milli(e) : quantity_value(e));
		if (ratio * (milli ? 1000 : 1) > most)
			complain(c, RATIO ", but provided ratio is %f", RATIO_ARG(n), ratio);
	}
}

static void check_item(struct check *c, struct val item)
{
	check_min(c, val_get(item, min));
	check_max(c, val_get(item, max));
	check_ratio(c, val_get(item, maxLimitRequestRatio));
}

static void check_containers(struct check *c, struct val item, struct val containers)
{
	VAL_EACH(container, containers) {
		if (is_full(c))
			return;
		c->requests = val_get(*container, resources, requests);
		c->limits = val_get(*container, resources, limits);
		check_item(c, item);
	}
}

/* All containers together; cpu and memory as the pod says itself if it does. */
static struct val together(struct arena *a, struct val spec, atom which)
{
	struct val all = pod_container_resources(a, spec, which), whole = val_member(val_get(spec, resources), which);
	const str names[] = { STR_INIT("cpu"), STR_INIT("memory") };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct val amount = val_find(whole, names[i]);
		if (val_exists(amount))
			all = val_put(a, all, atom_make(a, names[i]), amount);
	}
	return val_sorted(a, all);
}

str limit_range_check_pod(struct arena *a, struct val range, struct val pod)
{
	CLEANUP(check_done) struct check c = { .arena = a, .all = BUF_INIT(8 << 20) };
	struct val spec = val_get(pod, spec);
	VAL_EACH(item, val_get(range, spec, limits)) {
		c.type = val_str(*item, type);
		if (str_eq(c.type, STR("Container"))) {
			check_containers(&c, *item, val_get(spec, containers));
			check_containers(&c, *item, val_get(spec, initContainers));
		} else if (str_eq(c.type, STR("Pod"))) {
			c.requests = together(a, spec, A_requests);
			c.limits = together(a, spec, A_limits);
			check_item(&c, *item);
		}
	}
	return complaints(&c);
}

str limit_range_check_claim(struct arena *a, struct val range, struct val claim)
{
	CLEANUP(check_done) struct check c = { .arena = a, .all = BUF_INIT(8 << 20) };
	c.requests = val_get(claim, spec, resources, requests);
	VAL_EACH(item, val_get(range, spec, limits)) {
		c.type = val_str(*item, type);
		if (!str_eq(c.type, STR("PersistentVolumeClaim")))
			continue;
		check_min(&c, val_get(*item, min));
		check_max_request(&c, val_get(*item, max));
	}
	return complaints(&c);
}

/* ---- the plugin ---- */

/* Entries that defaults can add to all containers of a pod: far more than anybody needs, and no danger. */
enum { DEFAULTS_MAX = 1 << 18 };

enum subject { NOTHING, POD, CLAIM };

static enum subject subject_of(const struct request *q)
{
	bool resize = str_eq(q->subresource, STR("resize")) && val_exists(q->old);
	if (q->group.n || !val_exists(q->object) || val_has(q->old, metadata, deletionTimestamp))
		return NOTHING;
	/* containers of a pod change only by resize */
	if (str_eq(q->resource, STR("pods")))
		return resize || (!q->subresource.n && !val_exists(q->old)) ? POD : NOTHING;
	return str_eq(q->resource, STR("persistentvolumeclaims")) && !q->subresource.n ? CLAIM : NOTHING;
}

/* The next LimitRange of the request's namespace; NULL: no more. Begins when *prefix is empty. */
static struct object *next_range(struct request *q, struct omap_iter *it, str *prefix)
{
	str key;
	if (!prefix->n) {
		const struct kind *kind = kinds_find(&q->server->kinds, STR(""), STR("limitranges"));
		if (!kind || !omap_len(kind->objects))
			return NULL;
		*prefix = arena_join(q->arena, q->namespace, STR("/"));
		omap_seek(it, kind->objects, *prefix);
	}
	struct object *o = omap_next(it, &key);
	return o && str_starts(key, *prefix) ? o : NULL;
}

static int mutate(struct request *q, struct err *err)
{
	struct omap_iter it;
	struct object *range;
	str prefix = STR_NONE;
	(void)err;
	if (subject_of(q) != POD)
		return 0;
	while ((range = next_range(q, &it, &prefix))) {
		if (limit_range_default_size(range->val, q->object) > DEFAULTS_MAX)
			return request_fail(q, ERR_TOO_LARGE, VAL_EMPTY,
					    "the defaults of limit range \"" STR_FMT "\" are too many for so many containers",
					    STR_ARG(val_str(range->val, metadata, name)));
		q->object = limit_range_default(q->arena, range->val, q->object);
	}
	return 0;
}

static int validate(struct request *q, struct err *err)
{
	enum subject subject = subject_of(q);
	struct omap_iter it;
	struct object *range;
	str prefix = STR_NONE;
	(void)err;
	while (subject && (range = next_range(q, &it, &prefix))) {
		str why = subject == POD ? limit_range_check_pod(q->arena, range->val, q->object) :
					   limit_range_check_claim(q->arena, range->val, q->object);
		if (why.n)
			return admission_forbid(q, STR_FMT, STR_ARG(why));
	}
	return 0;
}

const struct admission_plugin admission_limit_ranger = { .name = "LimitRanger", .mutate = mutate, .validate = validate };
