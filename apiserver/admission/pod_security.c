/*
 * PodSecurity: pods meet the standard that their namespace enforces. What makes pods (a Deployment) is only warned about, and so
 * are pods that exist already when a namespace becomes stricter.
 *
 * This is asked for every new pod: a namespace without labels costs a look at its labels and nothing more.
 */
#include "apiserver/admission/pod_security.h"

#include <stdlib.h>

#include "apiserver/admission/plugins.h"
#include "apiserver/cache.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/atoms.h"

struct pod_security {
	struct arena arena;
	struct pod_security_config config;
	struct pod_security_counts *counts;
};

/* How much of a namespace is looked at when it becomes stricter. */
enum { PODS_MAX = 3000 };
#define TIME_MAX_NS NS_PER_S

static const struct pod_security_config *config_of(const struct request *q)
{
	const struct pod_security *p = admission_state(q->server, &admission_pod_security);
	return &p->config;
}

static struct pod_security_counts *counts_of(const struct request *q)
{
	const struct pod_security *p = admission_state(q->server, &admission_pod_security);
	return p->counts;
}

static void count(const struct request *q, enum pod_mode mode, struct pod_standard s, bool denied)
{
	pod_security_count(counts_of(q), q, mode, s, denied);
}

static void annotate(struct request *q, str key, str value)
{
	if (q->audit)
		audit_annotate(q, arena_join(q->arena, STR(POD_SECURITY_PREFIX), key), value);
}

static void exempt(struct request *q, str why)
{
	annotate(q, STR("exempt"), why);
	pod_security_count_exempt(counts_of(q), q);
}

static bool contains(struct val list, str text)
{
	VAL_EACH(item, list)
		if (text.n && str_eq(val_as_str(*item), text))
			return true;
	return false;
}

/* ---- one pod ---- */

struct evaluation {
	struct pod_policy policy;
	struct field_errors errors;   /* about the labels that the policy comes from */
	struct val metadata, spec;
};

/* 'would violate PodSecurity "restricted:latest": ...', or 'violates ...' */
static str violation(struct request *q, const struct evaluation *v, const char *verb, struct pod_standard s, pod_checks failed)
{
	str why = pod_standard_why(q->arena, s, failed, v->metadata, v->spec, true);
	return arena_printf(q->arena, "%s PodSecurity \"" STR_FMT "\": " STR_FMT, verb,
			    STR_ARG(pod_standard_text(q->arena, s)), STR_ARG(why));
}

static int evaluate(struct request *q, const struct evaluation *v, bool enforce)
{
	const struct pod_policy *p = &v->policy;
	pod_checks failed = 0, audit, warn;
	int r = 0;
	if (contains(config_of(q)->runtime_classes, val_str(v->spec, runtimeClassName))) {
		exempt(q, STR("runtimeClass"));
		return 0;
	}
	if (v->errors.n) {
		annotate(q, STR("error"), arena_join(q->arena, STR("Failed to parse policy: "), field_errors_plain(&v->errors)));
		pod_security_count_error(counts_of(q), q, false);
	}
	if (enforce) {
		if (q->audit)
			annotate(q, STR("enforce-policy"), pod_standard_text(q->arena, p->enforce));
		failed = pod_standard_failed(p->enforce, v->metadata, v->spec);
		count(q, POD_ENFORCE, p->enforce, failed);
		if (failed)
			r = admission_forbid(q, STR_FMT, STR_ARG(violation(q, v, "violates", p->enforce, failed)));
	}
	audit = enforce && pod_standard_eq(p->audit, p->enforce) ? failed :
								   pod_standard_failed(p->audit, v->metadata, v->spec);
	if (audit)
		count(q, POD_AUDIT, p->audit, true);
	if (audit && q->audit)
		annotate(q, STR("audit-violations"), violation(q, v, "would violate", p->audit, audit));
	if (r < 0)
		return r;
	warn = pod_standard_eq(p->warn, p->audit) ? audit : pod_standard_failed(p->warn, v->metadata, v->spec);
	if (warn)
		count(q, POD_WARN, p->warn, true);
	if (warn)
		request_warn(q, violation(q, v, "would violate", p->warn, warn));
	return 0;
}

/* (suspends) The policy of the request's namespace. 0: there is nothing more to ask, 1: go on, or the error. */
static int find_policy(struct request *q, struct evaluation *v, struct err *err)
{
	const struct pod_security_config *config = config_of(q);
	bool exempt_namespace = contains(config->namespaces, q->namespace);
	if (exempt_namespace || contains(config->usernames, q->user.name)) {
		exempt(q, exempt_namespace ? STR("namespace") : STR("user"));
		return 0;
	}
	struct object *namespace;
	int r = admission_find(q, STR(""), STR("namespaces"), q->namespace, &namespace, err);
	if (r < 0)
		return r;
	field_errors_init(&v->errors, q->arena);
	if (!namespace) {
		pod_security_count_error(counts_of(q), q, true);
		return fail_internal(q, "failed to lookup namespace \"" STR_FMT "\"", STR_ARG(q->namespace));
	}
	v->policy = pod_policy_of(val_get(namespace->val, metadata, labels), &config->defaults, &v->errors, NULL);
	return 1;
}

/* ---- pods ---- */

static bool images_differ(struct val is, struct val was)
{
	if (val_len(is) != val_len(was))
		return true;
	for (size_t i = 0; i < val_len(is); i++)
		if (!str_eq(val_str(is.items[i], image), val_str(was.items[i], image)))
			return true;
	return false;
}

/* Of all that can change in a pod, only images and added containers matter. */
static bool is_significant(struct val old, struct val new)
{
	if (images_differ(val_get(new, spec, containers), val_get(old, spec, containers)) ||
	    images_differ(val_get(new, spec, initContainers), val_get(old, spec, initContainers)))
		return true;
	CLEANUP(map_done) struct map before = MAP_INIT;
	VAL_EACH(c, val_get(old, spec, ephemeralContainers))
		map_put(&before, val_str(*c, name), (void *)c);
	VAL_EACH(c, val_get(new, spec, ephemeralContainers)) {
		const struct val *was = map_get(&before, val_str(*c, name));
		if (!was || !str_eq(val_str(*c, image), val_str(*was, image)))
			return true;
	}
	return false;
}

static int validate_pod(struct request *q, struct err *err)
{
	struct evaluation v = { 0 };
	if (q->subresource.n && !str_eq(q->subresource, STR("ephemeralcontainers")) && !str_eq(q->subresource, STR("resize")))
		return 0;
	int r = find_policy(q, &v, err);
	if (r <= 0)
		return r;
	if (!v.errors.n && pod_policy_is_privileged(&v.policy)) {
		annotate(q, STR("enforce-policy"), STR("privileged:latest"));
		count(q, POD_ENFORCE, v.policy.enforce, false);
		return 0;
	}
	if (val_exists(q->old) && !is_significant(q->old, q->object))
		return 0;
	v.metadata = val_get(q->object, metadata);
	v.spec = val_get(q->object, spec);
	return evaluate(q, &v, true);
}

/* ---- what makes pods ---- */

static struct val template_of(const struct request *q)
{
	static const struct {
		str group, resource;
	} in_spec[] = {
		{ STR_INIT("apps"), STR_INIT("replicasets") }, { STR_INIT("apps"), STR_INIT("deployments") },
		{ STR_INIT("apps"), STR_INIT("statefulsets") }, { STR_INIT("apps"), STR_INIT("daemonsets") },
		{ STR_INIT("batch"), STR_INIT("jobs") }, { STR_INIT(""), STR_INIT("replicationcontrollers") },
	};
	if (admits(q, STR(""), STR("podtemplates")))
		return val_get(q->object, template);
	if (admits(q, STR("batch"), STR("cronjobs")))
		return val_get(q->object, spec, jobTemplate, spec, template);
	for (size_t i = 0; i < ARRAY_LEN(in_spec); i++)
		if (admits(q, in_spec[i].group, in_spec[i].resource))
			return val_get(q->object, spec, template);
	return VAL_EMPTY;
}

static int validate_template(struct request *q, struct val template, struct err *err)
{
	struct evaluation v = { .metadata = val_get(template, metadata), .spec = val_get(template, spec) };
	int r = find_policy(q, &v, err);
	if (r <= 0)
		return r;
	if (!v.errors.n && v.policy.warn.level == POD_PRIVILEGED && v.policy.audit.level == POD_PRIVILEGED)
		return 0;
	return evaluate(q, &v, false);
}

/* ---- namespaces ---- */

/* Pods that fail for the same reasons. */
struct failing {
	pod_checks failed;
	str reasons, first;           /* first: the smallest name */
	size_t n;
};

/* The pods of a namespace: those of each controller after the first of them come last, so that every sort is looked at. */
static struct val *list_pods(struct request *q, str namespace, size_t *ret_n)
{
	CLEANUP(map_done) struct map controllers = MAP_INIT;
	struct val_builder first = val_builder(q->arena), rest = val_builder(q->arena);
	const struct kind *kind = kinds_find(&q->server->kinds, STR(""), STR("pods"));
	str prefix = arena_join(q->arena, namespace, STR("/")), key;
	struct omap_iter it;
	struct object *o;
	omap_seek(&it, kind->objects, prefix);
	while ((o = omap_next(&it, &key)) && str_starts(key, prefix)) {
		if (contains(config_of(q)->runtime_classes, val_str(o->val, spec, runtimeClassName)))
			continue;
		bool again = false;
		VAL_EACH(owner, val_get(o->val, metadata, ownerReferences))
			if (val_bool(*owner, controller)) {
				again = map_put(&controllers, val_str(*owner, uid), o);
				break;
			}
		val_add_item(again ? &rest : &first, o->val);
	}
	struct val head = val_end_list(&first), tail = val_end_list(&rest);
	*ret_n = head.n + tail.n;
	struct val *pods = ARENA_ARRAY(q->arena, struct val, *ret_n);
	for (size_t i = 0; i < *ret_n; i++)
		pods[i] = i < head.n ? head.items[i] : tail.items[i - head.n];
	return pods;
}

static void count_failing(struct request *q, struct val pod, struct pod_standard s, struct failing *groups, size_t *n)
{
	struct val metadata = val_get(pod, metadata), spec = val_get(pod, spec);
	pod_checks failed = pod_standard_failed(s, metadata, spec);
	str name = val_str(metadata, name), reasons = STR_NONE;
	if (!failed)
		return;
	bool by_text = !pod_checks_same_reasons(failed);
	if (by_text)
		reasons = pod_standard_why(q->arena, s, failed, metadata, spec, false);
	for (size_t i = 0; i < *n; i++) {
		struct failing *g = &groups[i];
		if (g->failed != failed || (by_text && !str_eq(g->reasons, reasons)))
			continue;
		g->n++;
		if (str_cmp(name, g->first) < 0)
			g->first = name;
		return;
	}
	if (!by_text)
		reasons = pod_standard_why(q->arena, s, failed, metadata, spec, false);
	groups[(*n)++] = (struct failing){ failed, reasons, name, 1 };
}

static int compare(const void *a, const void *b) { return str_cmp(*(const str *)a, *(const str *)b); }

static void warn_of_failing(struct request *q, const struct failing *groups, size_t n)
{
	str *texts = ARENA_ARRAY(q->arena, str, n);
	for (size_t i = 0; i < n; i++) {
		const struct failing *g = &groups[i];
		str others = g->n > 1 ? arena_printf(q->arena, " (and %zu other pod%s)", g->n - 1, g->n > 2 ? "s" : "") : STR("");
		texts[i] = arena_printf(q->arena, STR_FMT STR_FMT ": " STR_FMT, STR_ARG(g->first), STR_ARG(others),
					STR_ARG(g->reasons));
	}
	qsort(texts, n, sizeof *texts, compare);
	for (size_t i = 0; i < n; i++)
		request_warn(q, texts[i]);
}

static void warn_of_pods(struct request *q, str namespace, struct pod_standard s)
{
	int64_t now = clock_now_ns(), due = fiber_deadline_ns();
	int64_t end = now + MIN(TIME_MAX_NS, due == INT64_MAX ? TIME_MAX_NS : (due - now) / 2);
	size_t total, checked = 0, n = 0;
	struct val *pods = list_pods(q, namespace, &total);
	struct failing *groups = ARENA_ARRAY(q->arena, struct failing, MIN(total, (size_t)PODS_MAX));
	while (checked < MIN(total, (size_t)PODS_MAX)) {
		count_failing(q, pods[checked++], s, groups, &n);
		if (clock_now_ns() > end)
			break;
	}
	if (checked < total)
		request_warn(q, arena_printf(q->arena,
					     "new PodSecurity enforce level only checked against the first %zu of %zu existing pods",
					     checked, total));
	if (!n)
		return;
	request_warn(q, arena_printf(q->arena,
				     "existing pods in namespace \"" STR_FMT "\" violate the new PodSecurity enforce level \"" STR_FMT
				     "\"",
				     STR_ARG(namespace), STR_ARG(pod_standard_text(q->arena, s))));
	warn_of_failing(q, groups, n);
}

static bool equivalent(struct pod_standard a, struct pod_standard b)
{
	return (a.level == POD_PRIVILEGED && b.level == POD_PRIVILEGED) || pod_standard_eq(a, b);
}

/* Labels on a namespace that is exempt do nothing. */
static void warn_of_exemption(struct request *q, str namespace, const struct pod_policy *p, struct pod_labels given)
{
	const struct pod_policy *d = &config_of(q)->defaults;
	const struct {
		const char *name;
		struct pod_standard s;
		bool given;
	} modes[] = { { "enforce", p->enforce, given.enforce }, { "audit", p->audit, given.audit }, { "warn", p->warn, given.warn } };
	str text = STR("");
	if (pod_policy_is_privileged(p) || (equivalent(p->enforce, d->enforce) && equivalent(p->audit, d->audit) &&
					    equivalent(p->warn, d->warn)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (modes[i].s.level != POD_PRIVILEGED && modes[i].given)
			text = arena_printf(q->arena, STR_FMT "%s%s=" STR_FMT, STR_ARG(text), text.n ? ", " : "", modes[i].name,
					    STR_ARG(pod_standard_text(q->arena, modes[i].s)));
	request_warn(q, arena_printf(q->arena,
				     "namespace \"" STR_FMT "\" is exempt from Pod Security, and the policy (" STR_FMT
				     ") will be ignored",
				     STR_ARG(namespace), STR_ARG(text)));
}

static bool same_errors(const struct field_errors *a, const struct field_errors *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; same && i < a->n; i++)
		same = str_eq(a->list[i].field, b->list[i].field) && str_eq(a->list[i].body, b->list[i].body);
	return same;
}

static int validate_namespace(struct request *q)
{
	const struct pod_security_config *config = config_of(q);
	str name = val_str(q->object, metadata, name);
	struct val labels = val_get(q->object, metadata, labels), labels_before = val_get(q->old, metadata, labels);
	bool update = val_exists(q->old), is_exempt = contains(config->namespaces, name);
	struct field_errors errors, errors_before;
	struct pod_labels given;
	if (update && val_equal(labels, labels_before))
		return 0;
	field_errors_init(&errors, q->arena);
	field_errors_init(&errors_before, q->arena);
	struct pod_policy p = pod_policy_of(labels, &config->defaults, &errors, &given);
	struct pod_policy before = pod_policy_of(labels_before, &config->defaults, &errors_before, NULL);
	if (errors.n && !(update && same_errors(&errors, &errors_before)))
		return fail_invalid(q, STR(""), STR("Namespace"), name, &errors);
	bool stricter = !pod_standard_eq(p.enforce, before.enforce) && p.enforce.level != POD_PRIVILEGED &&
		!(p.enforce.minor == before.enforce.minor && p.enforce.level <= before.enforce.level);
	if (update && !stricter)
		return 0;
	if (is_exempt)
		warn_of_exemption(q, name, &p, given);
	else if (update)
		warn_of_pods(q, name, p.enforce);
	return 0;
}

/* ---- the plugin ---- */

static int validate(struct request *q, struct err *err)
{
	if (!val_exists(q->object) || q->verb == REQUEST_CONNECT)
		return 0;
	if (!q->group.n && str_eq(q->resource, STR("pods")))
		return validate_pod(q, err);
	if (admits(q, STR(""), STR("namespaces")))
		return validate_namespace(q);
	struct val template = template_of(q);
	return val_exists(template) ? validate_template(q, template, err) : 0;
}

static void pod_security_free(void *state)
{
	struct pod_security *p = state;
	pod_security_counts_free(p->counts);
	arena_done(&p->arena);
	free(p);
}

static int pod_security_open(struct apiserver *s, struct val config, void **ret_state, struct err *err)
{
	struct pod_security *p = mem_zalloc(sizeof *p);
	(void)s;
	p->counts = pod_security_counts_new();
	int r = pod_security_config_read(&p->arena, val_copy(&p->arena, config), &p->config, err);
	if (r < 0) {
		pod_security_free(p);
		return err_wrap(err, r, "PodSecurity invalid");
	}
	*ret_state = p;
	return 0;
}

void admission_pod_security_metrics(const struct apiserver *s, struct buf *b)
{
	const struct pod_security *p = admission_state(s, &admission_pod_security);
	if (p)
		pod_security_counts_write(p->counts, b);
}

const struct admission_plugin admission_pod_security = {
	.name = "PodSecurity", .validate = validate, .open = pod_security_open, .close = pod_security_free,
};
