/* The plugins, in the order in which Kubernetes runs them. */
#include "apiserver/admission/admission.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/admission/config.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/webhook_hooks.h"
#include "apiserver/admission/webhook_metrics.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/metrics_priv.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"

static const struct admission_plugin *const plugins[] = {
	&admission_always_admit,
	&admission_namespace_auto_provision,
	&admission_namespace_lifecycle,
	&admission_namespace_exists,
	&admission_limit_pod_hard_anti_affinity_topology,
	&admission_limit_ranger,
	&admission_service_account,
	&admission_node_restriction,
	&admission_taint_nodes,
	&admission_always_pull_images,
	&admission_image_policy_webhook,
	&admission_pod_security,
	&admission_pod_node_selector,
	&admission_priority,
	&admission_default_toleration_seconds,
	&admission_pod_toleration_restriction,
	&admission_event_rate_limit,
	&admission_extended_resource_toleration,
	&admission_default_storage_class,
	&admission_storage_protection,
	&admission_pod_group_protection,
	&admission_owner_references,
	&admission_pvc_resize,
	&admission_runtime_class,
	&admission_certificate_approval,
	&admission_certificate_signing,
	&admission_cluster_trust_bundle_attest,
	&admission_certificate_subject_restriction,
	&admission_default_ingress_class,
	&admission_deny_service_external_ips,
	&admission_pod_topology_labels,
	&admission_pod_group_workload_exists,
	&admission_node_features,
	&admission_job_validation,
	&admission_pod_resize,
	&admission_mutating_webhook,
	&admission_validating_webhook,
	&admission_resource_quota,
	&admission_always_deny,
};

enum { PLUGINS = ARRAY_LEN(plugins) };

#define SECONDS(X) X(0.005) X(0.025) X(0.1) X(0.5) X(1) X(2.5)
#define TEXT(limit) #limit,
#define LIMIT(limit) (int64_t)((limit) * 1e9),
static const char *const limit_texts[] = { SECONDS(TEXT) };
static const int64_t limits_ns[] = { SECONDS(LIMIT) };
#undef TEXT
#undef LIMIT

enum { OPERATIONS = ADMISSION_CONNECT + 1 };

struct durations {
	uint64_t buckets[ARRAY_LEN(limits_ns) + 1];
	int64_t sum_ns;
};

struct admission {
	bool on[PLUGINS];
	void *state[PLUGINS];
	struct durations durations[PLUGINS][2][OPERATIONS][2]; /* by whether it validates, and whether it refused */
};

/* ---- which are on ---- */

/* Plugins that are configured by CEL expressions, which nothing here evaluates: there is nothing to switch. */
static const char *const unused_names[] = { "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy" };

static bool names(const char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

static bool is_known(const char *name)
{
	for (size_t i = 0; i < PLUGINS; i++)
		if (strcmp(plugins[i]->name, name) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(unused_names); i++)
		if (strcmp(unused_names[i], name) == 0)
			return true;
	return false;
}

static void check_names(const char *flag, const char *const *list, struct buf *wrong, size_t *n)
{
	for (; list && *list; list++)
		if (!is_known(*list))
			buf_addf(wrong, "%s%s plugin \"%s\" is unknown", (*n)++ ? ", " : "", flag, *list);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* [A B] in enable-admission-plugins and disable-admission-plugins overlapped */
static void check_overlap(const struct admission_options *o, struct arena *arena, struct buf *wrong, size_t *n)
{
	size_t max = 0, both = 0;
	while (o->enable && o->enable[max])
		max++;
	const char **list = ARENA_ARRAY(arena, const char *, max + 1);
	for (size_t i = 0; i < max; i++) {
		list[both] = NULL;
		if (names(o->disable, o->enable[i]) && !names(list, o->enable[i]))
			list[both++] = o->enable[i];
	}
	if (!both)
		return;
	qsort(list, both, sizeof *list, compare_names);
	buf_addf(wrong, "%s", (*n)++ ? ", [" : "[");
	for (size_t i = 0; i < both; i++)
		buf_addf(wrong, "%s%s", i ? " " : "", list[i]);
	buf_add(wrong, STR("] in enable-admission-plugins and disable-admission-plugins overlapped"));
}

static int check_options(const struct admission_options *o, struct arena *arena, struct err *err)
{
	CLEANUP(buf_done) struct buf wrong = BUF_INIT(1 << 20);
	size_t n = 0;
	check_names("enable-admission-plugins", o->enable, &wrong, &n);
	check_names("disable-admission-plugins", o->disable, &wrong, &n);
	check_overlap(o, arena, &wrong, &n);
	if (!n)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "%s" STR_FMT "%s", n > 1 ? "[" : "", STR_ARG(buf_str(&wrong)), n > 1 ? "]" : "");
}

static size_t index_of(const struct admission_plugin *p)
{
	size_t i = 0;
	while (plugins[i] != p)
		i++;
	return i;
}

static int open_plugin(struct apiserver *s, struct admission *a, size_t i, struct arena *arena,
		       const struct admission_config *config, struct err *err)
{
	const struct admission_plugin *p = plugins[i];
	struct val own;
	if (!p->open)
		return 0;
	int r = admission_config_of(arena, config, str_of(p->name), &own, err);
	if (r == 0)
		r = p->open(s, own, &a->state[i], err);
	return r < 0 ? err_wrap(err, r, "failed to apply admission: couldn't init admission plugin \"%s\"", p->name) : 0;
}

int admission_new(struct apiserver *s, struct admission **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	const struct admission_options *o = &s->options.admission;
	struct admission_config config;
	int r = check_options(o, &arena, err);
	if (r < 0)
		return r;
	r = admission_config_read(&arena, o->config_file, &config, err);
	if (r < 0)
		return err_wrap(err, r, "failed to apply admission: failed to read plugin config");
	struct admission *a = mem_zalloc(sizeof *a);
	for (size_t i = 0; i < PLUGINS && r >= 0; i++) {
		const struct admission_plugin *p = plugins[i];
		a->on[i] = (!p->optional || names(o->enable, p->name)) && !names(o->disable, p->name);
		if (a->on[i])
			r = open_plugin(s, a, i, &arena, &config, err);
	}
	if (r < 0) {
		admission_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void admission_free(struct admission *a)
{
	for (size_t i = 0; a && i < PLUGINS; i++)
		if (a->state[i] && plugins[i]->close)
			plugins[i]->close(a->state[i]);
	free(a);
}

void *admission_state(const struct apiserver *s, const struct admission_plugin *p) { return s->admission->state[index_of(p)]; }
bool admission_is_on(const struct apiserver *s, const struct admission_plugin *p) { return s->admission->on[index_of(p)]; }

#define DURATION "apiserver_admission_controller_admission_duration_seconds"

static void write_durations(struct buf *b, const char *name, bool validating, int op, bool rejected, const struct durations *d)
{
	static const char *const operations[OPERATIONS] = { "CREATE", "UPDATE", "DELETE", "CONNECT" };
	char labels[256];
	if (!d->sum_ns)
		return;
	(void)snprintf(labels, sizeof labels, "name=\"%s\",operation=\"%s\",rejected=\"%s\",type=\"%s\"", name, operations[op],
		       rejected ? "true" : "false", validating ? "validate" : "admit");
	metrics_histogram(b, DURATION, str_of(labels), limit_texts, d->buckets, ARRAY_LEN(limits_ns), (double)d->sum_ns / 1e9);
}

void admission_metrics(const struct apiserver *s, struct buf *b)
{
	const struct admission_plugin *asking[] = { &admission_mutating_webhook, &admission_validating_webhook };
	const struct hook_metrics *all[ARRAY_LEN(asking)];
	for (size_t i = 0; i < ARRAY_LEN(asking); i++) {
		const struct hook_source *source = admission_state(s, asking[i]);
		all[i] = source ? source->metrics : NULL;
	}
	hook_metrics_write(all, ARRAY_LEN(all), b);
	admission_pod_security_metrics(s, b);
	struct metrics_family f = metrics_family(b, DURATION, "histogram", "How long admission plugins took.");
	for (size_t i = 0; i < PLUGINS; i++)
		for (int validating = 0; validating < 2; validating++)
			for (int op = 0; op < OPERATIONS; op++)
				for (int rejected = 0; rejected < 2; rejected++)
					write_durations(b, plugins[i]->name, validating, op, rejected,
							&s->admission->durations[i][validating][op][rejected]);
	metrics_family_end(&f);
}

/* ---- running them ---- */

/* All that are on. The clock is looked at once per plugin. */
static int run_plugins(struct request *q, bool validating, struct err *err)
{
	struct admission *a = q->server->admission;
	enum admission_operation op = admission_operation(q);
	int64_t begun_ns = clock_now_ns();
	int r = 0;
	for (size_t i = 0; i < PLUGINS && r == 0; i++) {
		int (*run)(struct request *q, struct err *err) = validating ? plugins[i]->validate : plugins[i]->mutate;
		if (!a->on[i] || !run)
			continue;
		r = run(q, err);
		int64_t now_ns = clock_now_ns();
		struct durations *d = &a->durations[i][validating][op][r < 0];
		d->buckets[metrics_bucket(limits_ns, ARRAY_LEN(limits_ns), now_ns - begun_ns)]++;
		d->sum_ns += now_ns - begun_ns;
		begun_ns = now_ns;
	}
	return r;
}

int admission_mutate(struct request *q, struct err *err)
{
	struct admission_rounds rounds = { .round = 0 };
	q->rounds = &rounds;
	int r = run_plugins(q, false, err);
	if (r == 0 && rounds.again) {
		rounds.round = 1;
		r = run_plugins(q, false, err);
	}
	q->rounds = NULL;
	return r;
}

int admission_validate(struct request *q, struct err *err) { return run_plugins(q, true, err); }

int admission_remove(struct request *q, struct err *err)
{
	struct val object = q->object;
	/* what the server itself removes (inprocess.h), or on behalf of something else that was admitted (an Eviction) */
	if (!q->http || (q->verb != REQUEST_DELETE && q->verb != REQUEST_DELETE_COLLECTION))
		return 0;
	q->object = VAL_EMPTY;
	int r = admission_mutate(q, err);
	if (r == 0)
		r = admission_validate(q, err);
	q->object = object;
	return r;
}

int admission_pass(struct request *q, const struct type *type, struct val *object, struct err *err)
{
	const struct type *was_type = q->type;
	struct val was = q->object;
	q->object = *object;
	q->type = type;
	int r = admission_mutate(q, err);
	if (r == 0)
		r = admission_validate(q, err);
	*object = q->object;
	q->object = was;
	q->type = was_type;
	return r;
}

/* ---- what plugins share ---- */

int admission_forbid(struct request *q, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str why = arena_vprintf(q->arena, fmt, ap), name = val_str(q->object, metadata, name);
	va_end(ap);
	if (!name.n)
		name = val_str(q->object, metadata, generateName);
	if (!name.n)
		name = q->name.n ? q->name : STR("Unknown");
	return fail_forbidden(q, q->group, q->resource, name, STR_FMT, STR_ARG(why));
}

str admission_quoted(struct request *q, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	buf_add_quoted(&b, text);
	return arena_str(q->arena, buf_str(&b));
}

int admission_find(struct request *q, str group, str resource, str key, struct object **ret, struct err *err)
{
	const struct kind *kind = kinds_find(&q->server->kinds, group, resource);
	*ret = cache_get(kind, key);
	if (*ret)
		return 0;
	int r = cache_wait_current(q->server->cache, err);
	*ret = r < 0 ? NULL : cache_get(kind, key);
	return r;
}

struct object *admission_default_of(struct request *q, str group, str resource, str annotation)
{
	struct kind *kind = kinds_find(&q->server->kinds, group, resource);
	struct object *best = NULL, *o;
	struct omap_iter it;
	if (!kind)
		return NULL;
	omap_seek(&it, kind->objects, STR(""));
	while ((o = omap_next(&it, NULL))) {
		if (!str_eq(val_as_str(val_find(val_get(o->val, metadata, annotations), annotation)), STR("true")))
			continue;
		str made = val_str(o->val, metadata, creationTimestamp);
		if (!best || str_cmp(made, val_str(best->val, metadata, creationTimestamp)) > 0)
			best = o;
	}
	return best;
}
