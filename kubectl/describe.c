/* kubectl describe */
#include "kubectl/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "codec/types.h"
#include "kubectl/commands.h"
#include "kubectl/print.h"
#include "machinery/jsonpath.h"
#include "machinery/selector.h"

/* ---- saying ---- */

void ktl_say(struct ktl_page *p, unsigned level, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(&p->k->arena, fmt, ap);
	va_end(ap);
	for (unsigned i = 0; i < level; i++)
		buf_add(&p->tabs.text, STR("  "));
	ktl_add_escaped(&p->tabs.text, text);
}

void ktl_say_labels(struct ktl_page *p, const char *title, struct val map)
{
	bool first = true;
	ktl_say(p, 0, "%s:\t", title);
	if (!val_len(map))
		ktl_say(p, 0, "<none>\n");
	VAL_EACH_MEMBER(m, map) {
		ktl_say(p, 0, "%s" STR_FMT "=" STR_FMT "\n", first ? "" : "\t", STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
		first = false;
	}
}

static void say_annotation(struct ktl_page *p, str key, str value)
{
	enum { LONG = 140 };
	if (str_ends(value, STR("\n")))
		value.n--;
	if (key.n + value.n + 2 <= LONG && str_chr(value, '\n') < 0) {
		ktl_say(p, 0, STR_FMT ": " STR_FMT "\n", STR_ARG(key), STR_ARG(value));
		return;
	}
	ktl_say(p, 0, STR_FMT ":\n", STR_ARG(key));
	bool more = true;
	while (more) {
		str line;
		more = str_cut(value, '\n', &line, &value);
		bool cut = line.n > LONG - 2;
		ktl_say(p, 0, "\t  " STR_FMT "%s\n", STR_ARG(str_head(line, LONG - 2)), cut ? "..." : "");
	}
}

void ktl_say_annotations(struct ktl_page *p, const char *title, struct val map)
{
	bool first = true;
	ktl_say(p, 0, "%s:\t", title);
	VAL_EACH_MEMBER(m, map) {
		if (str_eq(atom_str(m->key), STR("kubectl.kubernetes.io/last-applied-configuration")))
			continue;
		if (!first)
			ktl_say(p, 0, "\t");
		say_annotation(p, atom_str(m->key), val_as_str(m->val));
		first = false;
	}
	if (first)
		ktl_say(p, 0, "<none>\n");
}

static int by_key(const void *x, const void *y) { return str_cmp(val_str(*(const struct val *)x, key), val_str(*(const struct val *)y, key)); }

void ktl_say_tolerations(struct ktl_page *p, const char *title, struct val list)
{
	bool first = true;
	ktl_say(p, 0, val_len(list) ? "%s:\t" : "%s:\t<none>\n", title);
	VAL_EACH(t, ktl_sorted_list(p->k, list, by_key)) {
		str key = val_str(*t, key), value = val_str(*t, value), effect = val_str(*t, effect);
		ktl_say(p, 0, "%s" STR_FMT "%s" STR_FMT "%s" STR_FMT, first ? "" : "\t", STR_ARG(key), value.n ? "=" : "", STR_ARG(value),
			effect.n ? ":" : "", STR_ARG(effect));
		if (str_eq(val_str(*t, operator), STR("Exists")) && !value.n)
			ktl_say(p, 0, key.n || effect.n ? " op=Exists" : "op=Exists");
		if (val_has(*t, tolerationSeconds))
			ktl_say(p, 0, " for %llds", (long long)val_int(*t, tolerationSeconds));
		ktl_say(p, 0, "\n");
		first = false;
	}
}

void ktl_say_conditions(struct ktl_page *p, struct val conditions, const char *heading, atom seen)
{
	if (!val_len(conditions))
		return;
	ktl_say(p, 0, "Conditions:\n  Type\tStatus\t%s\tLastTransitionTime\tReason\tMessage\n", heading);
	ktl_say(p, 1, "----\t------\t-----------------\t------------------\t------\t-------\n");
	VAL_EACH(c, conditions)
		ktl_say(p, 1, STR_FMT " \t" STR_FMT " \t" STR_FMT " \t" STR_FMT " \t" STR_FMT " \t" STR_FMT "\n", STR_ARG(val_str(*c, type)),
			STR_ARG(val_str(*c, status)), STR_ARG(ktl_date(p->k, val_as_str(val_member(*c, seen)))),
			STR_ARG(ktl_date(p->k, val_str(*c, lastTransitionTime))), STR_ARG(val_str(*c, reason)), STR_ARG(val_str(*c, message)));
}

void ktl_say_name(struct ktl_page *p, struct val object)
{
	ktl_say(p, 0, "Name:\t" STR_FMT "\n", STR_ARG(val_str(object, metadata, name)));
	ktl_say(p, 0, "Namespace:\t" STR_FMT "\n", STR_ARG(val_str(object, metadata, namespace)));
}

void ktl_say_owner(struct ktl_page *p, struct val object)
{
	VAL_EACH(o, val_get(object, metadata, ownerReferences))
		if (val_bool(*o, controller))
			ktl_say(p, 0, "Controlled By:\t" STR_FMT "/" STR_FMT "\n", STR_ARG(val_str(*o, kind)), STR_ARG(val_str(*o, name)));
}

/* ---- texts ---- */

str ktl_date(struct ktl *k, str text)
{
	struct timestamp t = { TIME_ZERO_SECONDS, 0 };
	char out[64];
	struct tm tm;
	if (time_parse(text, &t, NULL) < 0)
		return STR("Mon, 01 Jan 0001 00:00:00 +0000");
	time_t seconds = (time_t)t.seconds;
	(void)localtime_r(&seconds, &tm);
	size_t n = strftime(out, sizeof(out), "%a, %d %b %Y %H:%M:%S %z", &tm);
	return arena_str(&k->arena, str_span(out, n));
}

str ktl_age(struct ktl *k, str text)
{
	char out[DURATION_TEXT_MAX];
	struct timestamp t;
	if (!text.n || time_parse(text, &t, NULL) < 0)
		return STR("<unknown>");
	int64_t now = clock_wall_ns();
	return arena_str(&k->arena, duration_human(time_between(t, (struct timestamp){ now / NS_PER_S, (int32_t)(now % NS_PER_S) }), out));
}

str ktl_plain(struct ktl *k, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	if (!val_exists(v))
		return STR_NONE;
	jsonpath_add_plain(&b, v);
	return arena_str(&k->arena, buf_str(&b));
}

str ktl_join(struct ktl *k, struct val list, const char *between)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	bool first = true;
	VAL_EACH(item, list) {
		buf_addf(&b, "%s" STR_FMT, first ? "" : between, STR_ARG(ktl_plain(k, *item)));
		first = false;
	}
	return arena_str(&k->arena, buf_str(&b));
}

str ktl_selector(struct ktl *k, struct val label_selector)
{
	struct selector s;
	return selector_of_object(&k->arena, label_selector, &s, NULL) < 0 ? STR_NONE : selector_text(&k->arena, &s);
}

/* ---- events ---- */

struct val ktl_find_events(struct ktl *k, struct val object, str kind, str uid)
{
	const struct ktl_kind *events = ktl_kind_of_type(k, TYPE(core_v1, Event));
	str namespace = val_str(object, metadata, namespace);
	struct val list;
	str fields = arena_printf(&k->arena, "%s" STR_FMT "%sinvolvedObject.name=" STR_FMT ",involvedObject.namespace=" STR_FMT ",involvedObject.uid=" STR_FMT,
				  kind.n ? "involvedObject.kind=" : "", STR_ARG(kind), kind.n ? "," : "", STR_ARG(val_str(object, metadata, name)),
				  STR_ARG(namespace), STR_ARG(uid));
	if (ktl_list(k, events, namespace, STR_NONE, fields, &list) < 0) {
		ktl_forgive(k);
		return VAL_EMPTY_LIST;
	}
	return list;
}

struct timed {
	struct val event;
	size_t place;
};

static int by_time(const void *x, const void *y)
{
	const struct timed *a = x, *b = y;
	int r = str_cmp(val_str(a->event, lastTimestamp), val_str(b->event, lastTimestamp));
	return r ? r : (a->place > b->place) - (a->place < b->place);
}

static str interval_of(struct ktl *k, struct val e)
{
	str micro = val_str(e, eventTime), since = ktl_age(k, micro.n ? micro : val_str(e, firstTimestamp));
	if (val_has(e, series))
		return arena_printf(&k->arena, STR_FMT " (x%lld over " STR_FMT ")", STR_ARG(ktl_age(k, val_str(e, series, lastObservedTime))),
				    (long long)val_int(e, series, count), STR_ARG(since));
	if (val_int(e, count) > 1)
		return arena_printf(&k->arena, STR_FMT " (x%lld over " STR_FMT ")", STR_ARG(ktl_age(k, val_str(e, lastTimestamp))),
				    (long long)val_int(e, count), STR_ARG(since));
	return since;
}

void ktl_say_event_list(struct ktl_page *p, struct val list)
{
	struct ktl *k = p->k;
	struct timed *events = ARENA_ARRAY(&k->arena, struct timed, val_len(list) + 1);
	size_t n = 0;
	VAL_EACH(e, list) {
		events[n] = (struct timed){ *e, n };
		n++;
	}
	if (!n) {
		ktl_say(p, 0, "Events:\t<none>\n");
		return;
	}
	qsort(events, n, sizeof(*events), by_time);
	ktl_say(p, 0, "Events:\n  Type\tReason\tAge\tFrom\tMessage\n");
	ktl_say(p, 1, "----\t------\t----\t----\t-------\n");
	for (size_t i = 0; i < n; i++) {
		struct val e = events[i].event;
		str source = val_str(e, source, component), field = val_str(e, involvedObject, fieldPath);
		source = source.n ? source : val_str(e, reportingComponent);
		ktl_say(p, 1, STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "%s" STR_FMT "\n", STR_ARG(val_str(e, type)), STR_ARG(val_str(e, reason)),
			STR_ARG(interval_of(k, e)), STR_ARG(source), STR_ARG(field), field.n ? ": " : "", STR_ARG(str_trim(val_str(e, message))));
	}
}

void ktl_say_events(struct ktl_page *p, struct val object, str kind)
{
	if (p->events)
		ktl_say_event_list(p, ktl_find_events(p->k, object, kind, val_str(object, metadata, uid)));
}

/* ---- any kind ---- */

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/*
 * Where the part that begins at i ends: one capital and small letters; or capitals, up to the one that begins the next part, which
 * belongs to several of them all the same ("URLs"); or a dash.
 */
static size_t part_end(str s, size_t i)
{
	size_t end = i + 1, capitals;
	if (s.p[i] == '-')
		return end;
	if (!is_upper(s.p[i]) || end >= s.n || !is_upper(s.p[end])) {
		while (end < s.n && is_lower(s.p[end]))
			end++;
		return end;
	}
	while (end < s.n && is_upper(s.p[end]))
		end++;
	capitals = end - i;
	if (end >= s.n || !is_lower(s.p[end]))
		return end;
	if (capitals == 2) /* one capital, and a part that begins with the other */
		return i + 1;
	while (end < s.n && is_lower(s.p[end]))
		end++;
	return end;
}

/* "resourceVersion" is "Resource Version", "uid" is "UID". */
static str label_of(struct ktl *k, str field)
{
	static const char *const acronyms[] = { "API", "URL", "UID", "GUID" };
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	for (size_t i = 0; i < field.n; i++)
		if (!is_upper(field.p[i]) && !is_lower(field.p[i]) && field.p[i] != '-')
			return field;
	for (size_t i = 0, end; i < field.n; i = end) {
		end = part_end(field, i);
		str part = str_span(field.p + i, end - i);
		const char *known = NULL;
		for (size_t j = 0; j < ARRAY_LEN(acronyms); j++)
			if (str_eq(ktl_lower(k, part), ktl_lower(k, str_of(acronyms[j]))))
				known = acronyms[j];
		buf_add(&b, b.n ? STR(" ") : STR_NONE);
		if (known) {
			buf_add(&b, str_of(known));
			continue;
		}
		buf_addc(&b, is_lower(part.p[0]) ? (char)(part.p[0] & ~0x20) : part.p[0]);
		buf_add(&b, str_skip(part, 1));
	}
	return arena_str(&k->arena, buf_str(&b));
}

static bool is_skipped(unsigned level, str parent, str field)
{
	static const char *const skipped[] = { "managedFields", "name", "namespace", "labels", "annotations" };
	for (size_t i = 0; level == 1 && str_eq(parent, STR("metadata")) && i < ARRAY_LEN(skipped); i++)
		if (str_eq(field, str_of(skipped[i])))
			return true;
	return false;
}

static void say_fields(struct ktl_page *p, unsigned level, unsigned depth, str parent, struct val object)
{
	if (depth > VAL_RECURSION_MAX)
		return;
	VAL_EACH_MEMBER(m, object) {
		str field = atom_str(m->key), label = label_of(p->k, field);
		if (is_skipped(depth, parent, field))
			continue;
		if (val_is(m->val, VAL_OBJECT)) {
			ktl_say(p, level, STR_FMT ":\n", STR_ARG(label));
			say_fields(p, level + 1, depth + 1, field, m->val);
		} else if (val_is(m->val, VAL_LIST)) {
			ktl_say(p, level, STR_FMT ":\n", STR_ARG(label));
			VAL_EACH(item, m->val) {
				if (val_is(*item, VAL_OBJECT))
					say_fields(p, level + 1, depth + 2, field, *item);
				else
					ktl_say(p, level + 1, STR_FMT "\n", STR_ARG(ktl_plain(p->k, *item)));
			}
		} else {
			ktl_say(p, level, STR_FMT ":\t" STR_FMT "\n", STR_ARG(label), STR_ARG(ktl_plain(p->k, m->val)));
		}
	}
}

static int describe_any(struct ktl_page *p, struct val object)
{
	ktl_say_name(p, object);
	ktl_say_labels(p, "Labels", val_get(object, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(object, metadata, annotations));
	say_fields(p, 0, 0, STR_NONE, object);
	ktl_say_events(p, object, val_str(object, kind));
	return 0;
}

/* ---- the command ---- */

struct describe {
	struct ktl_file_flags files;
	const char *selector;
	bool all_namespaces, show_events;
	int64_t chunk;
};

#define OPTION(member) offsetof(struct describe, member)

static const struct ktl_flag describe_flags[] = {
	{ "all-namespaces", 'A', KTL_BOOL, OPTION(all_namespaces), NULL, "In all namespaces", NULL },
	{ "chunk-size", 0, KTL_INT, OPTION(chunk), "500", "Ask for so many objects at a time; 0: for all", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels", NULL },
	{ "show-events", 0, KTL_BOOL, OPTION(show_events), "true", "Events about the object, too", NULL },
	{ 0 },
};

static ktl_describe_fn *describer_of(const struct type *type)
{
	static const struct { const struct type *type; ktl_describe_fn *describe; } known[] = {
		{ TYPE(core_v1, Pod), ktl_describe_pod },
		{ TYPE(core_v1, Node), ktl_describe_node },
		{ TYPE(core_v1, Service), ktl_describe_service },
		{ TYPE(core_v1, ConfigMap), ktl_describe_config_map },
		{ TYPE(core_v1, Secret), ktl_describe_secret },
		{ TYPE(core_v1, Namespace), ktl_describe_namespace },
		{ TYPE(core_v1, ServiceAccount), ktl_describe_service_account },
		{ TYPE(core_v1, LimitRange), ktl_describe_limit_range },
		{ TYPE(core_v1, PersistentVolume), ktl_describe_volume },
		{ TYPE(core_v1, PersistentVolumeClaim), ktl_describe_claim },
		{ TYPE(core_v1, ResourceQuota), ktl_describe_quota },
		{ TYPE(apps_v1, Deployment), ktl_describe_deployment },
		{ TYPE(apps_v1, ReplicaSet), ktl_describe_replica_set },
		{ TYPE(apps_v1, StatefulSet), ktl_describe_stateful_set },
		{ TYPE(apps_v1, DaemonSet), ktl_describe_daemon_set },
		{ TYPE(batch_v1, Job), ktl_describe_job },
		{ TYPE(batch_v1, CronJob), ktl_describe_cron_job },
		{ TYPE(autoscaling_v2, HorizontalPodAutoscaler), ktl_describe_autoscaler },
		{ TYPE(discovery_v1, EndpointSlice), ktl_describe_endpoint_slice },
		{ TYPE(networking_v1, Ingress), ktl_describe_ingress },
		{ TYPE(networking_v1, NetworkPolicy), ktl_describe_network_policy },
		{ TYPE(policy_v1, PodDisruptionBudget), ktl_describe_disruption_budget },
		{ TYPE(rbac_v1, ClusterRole), ktl_describe_role },
		{ TYPE(rbac_v1, ClusterRoleBinding), ktl_describe_binding },
		{ TYPE(rbac_v1, Role), ktl_describe_role },
		{ TYPE(rbac_v1, RoleBinding), ktl_describe_binding },
		{ TYPE(scheduling_v1, PriorityClass), ktl_describe_priority_class },
		{ TYPE(storage_v1, StorageClass), ktl_describe_storage_class },
	};
	for (size_t i = 0; type && i < ARRAY_LEN(known); i++)
		if (known[i].type == type)
			return known[i].describe;
	return describe_any;
}

static int show(struct ktl *k, const struct ktl_info *info, bool events, const char *before, const char *after)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(KTL_TEXT_MAX);
	struct ktl_page p = { .k = k, .events = events };
	ktl_tabs_for_description(&p.tabs);
	int r = describer_of(info->kind->type)(&p, info->object);
	if (r == 0) {
		ktl_tabs_flush(&p.tabs, &out);
		printf("%s" STR_FMT "%s", before, STR_ARG(buf_str(&out)), after);
	}
	ktl_tabs_done(&p.tabs);
	return r;
}

/* No object has that name: those whose names begin so. */
static int show_matching(struct ktl *k, const struct describe *o, const struct ktl_builder *b)
{
	struct ktl_builder all = *b;
	struct ktl_infos infos;
	struct ktl_failure *original = k->failures;
	bool found = false;
	all.args = (struct ktl_texts){ b->args.v, 1 };
	all.keep_going = false;
	k->failures = NULL;
	k->end = NULL;
	k->n_failures = 0;
	if (ktl_build(k, &all, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++)
		if (str_starts(infos.v[i].name, str_of(b->args.v[1]))) {
			found = true;
			if (show(k, &infos.v[i], o->show_events && ktl_given(k, "show-events"), "", "\n") < 0)
				return -1;
		}
	return found ? 0 : ktl_fail_status(k, original->status);
}

static int run(struct ktl *k, void *options)
{
	const struct describe *o = options;
	struct ktl_builder b = {
		.files = &o->files, .args = k->args, .selector = o->selector, .all_namespaces = o->all_namespaces, .types_alone = true, .keep_going = true,
		.latest = true, .chunk = o->chunk,
	};
	struct ktl_infos infos;
	bool first = true;
	if (!k->args.n && ktl_no_files(&o->files))
		return ktl_fail(k, "You must specify the type of resource to describe. Use \"kubectl api-resources\" for a complete list of supported resources.\n");
	if (ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	bool events = o->show_events && (ktl_given(k, "show-events") || (!k->n_failures && infos.n == 1));
	if (k->n_failures == 1 && k->args.n == 2 && ktl_failed_because(k, "NotFound"))
		return show_matching(k, o, &b);
	for (size_t i = 0; i < infos.n; i++) {
		(void)show(k, &infos.v[i], events, first ? "" : "\n\n", "");
		first = false;
	}
	if (infos.n || k->n_failures)
		return 0;
	if (o->all_namespaces)
		fprintf(stderr, "No resources found\n");
	else
		fprintf(stderr, "No resources found in " STR_FMT " namespace.\n", STR_ARG(b.namespace));
	return 0;
}

const struct ktl_command ktl_describe = {
	.name = "describe",
	.group = "Troubleshooting and Debugging Commands",
	.summary = "Show details of a specific resource or group of resources",
	.manual = "Shows an object with what belongs to it, such as events. A name that no object has means all whose names begin with it.",
	.examples = "  kubectl describe node n1\n  kubectl describe pods -l app=web\n  kubectl describe deployment/web\n",
	.usage = "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) [options]",
	.flags = (const struct ktl_flag_set[]){ { describe_flags, 0 }, { ktl_file_flags, OPTION(files) }, { 0 } },
	.size = sizeof(struct describe),
	.run = run,
};
