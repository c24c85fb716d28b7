/* kubectl wait */
#include "base/clock.h"
#include "base/fiber.h"
#include "codec/go.h"
#include "kubectl/commands.h"
#include "kubectl/delete.h"
#include "kubectl/watch.h"
#include "machinery/jsonpath.h"

struct wait {
	struct ktl_print_flags print;
	struct ktl_file_flags files;
	struct ktl_texts conditions;
	const char *selector, *field_selector;
	bool all, all_namespaces, local;
	int64_t timeout_ns;
};

#define OPTION(member) offsetof(struct wait, member)

static const struct ktl_flag wait_flags[] = {
	{ "all", 0, KTL_BOOL, OPTION(all), NULL, "All objects of the type", NULL },
	{ "all-namespaces", 'A', KTL_BOOL, OPTION(all_namespaces), NULL, "In all namespaces", NULL },
	{ "field-selector", 0, KTL_STRING, OPTION(field_selector), NULL, "Only objects with these fields", NULL },
	{ "for", 0, KTL_ARRAY, OPTION(conditions), NULL, "What to wait for: create, delete, condition=NAME[=VALUE], jsonpath={PATH}[=VALUE]", NULL },
	{ "local", 0, KTL_BOOL, OPTION(local), NULL, NULL, NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels", NULL },
	{ "timeout", 0, KTL_DURATION, OPTION(timeout_ns), "30s", "How long; 0: look once; negative: a week", NULL },
	{ 0 },
};

/* ---- conditions ---- */

struct condition {
	enum { FOR_CREATE, FOR_DELETE, FOR_CONDITION, FOR_PATH } what;
	str name, value;
	const struct jsonpath *path;
};

/* At single equal signs; those that stand together belong to an expression. */
static size_t split_path(str text, str out[3])
{
	size_t n = 0, begin = 0;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] != '=')
			continue;
		if (i + 1 < text.n && text.p[i + 1] == '=') {
			i++;
			continue;
		}
		if (n == 2)
			return 3;
		out[n++] = str_span(text.p + begin, i - begin);
		begin = i + 1;
	}
	out[n++] = str_skip(text, begin);
	return n;
}

static int parse_path(struct ktl *k, str text, struct condition *ret)
{
	struct err err = ERR_INIT;
	str part[3], template;
	size_t n = split_path(text, part);
	if (n > 2)
		return ktl_fail(k, "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'");
	if (jsonpath_relaxed(&k->arena, part[0], &template, &err) < 0)
		return ktl_fail_err(k, &err);
	if (n == 2) {
		while (part[1].n && strchr("'\"", part[1].p[0]))
			part[1] = str_skip(part[1], 1);
		while (part[1].n && strchr("'\"", part[1].p[part[1].n - 1]))
			part[1].n--;
		if (!part[1].n)
			return ktl_fail(k, "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3");
		ret->value = str_trim(part[1]);
	}
	if (!template.n)
		return ktl_fail(k, "jsonpath expression cannot be empty");
	ret->what = FOR_PATH;
	return jsonpath_parse(&k->arena, template, &ret->path, &err) < 0 ? ktl_fail_err(k, &err) : 0;
}

static int parse(struct ktl *k, const char *text, struct condition *ret)
{
	str s = str_of(text), low = ktl_lower(k, s);
	*ret = (struct condition){ .what = FOR_CONDITION };
	if (str_eq(low, STR("create")) || str_eq(low, STR("delete"))) {
		ret->what = str_eq(low, STR("create")) ? FOR_CREATE : FOR_DELETE;
		return 0;
	}
	if (str_starts(s, STR("jsonpath=")))
		return parse_path(k, str_skip(s, 9), ret);
	if (!str_starts(s, STR("condition=")))
		return ktl_fail(k, "unrecognized condition: " STR_FMT, STR_ARG(ktl_quote(k, s)));
	if (!str_cut(str_skip(s, 10), '=', &ret->name, &ret->value))
		ret->value = STR("true");
	return 0;
}

static bool condition_is(struct val object, const struct condition *c)
{
	VAL_EACH(x, val_get(object, status, conditions)) {
		if (!go_equal_fold(val_str(*x, type), c->name) || !val_has(*x, status))
			continue;
		struct val generation = val_get(object, metadata, generation), seen = val_get(*x, observedGeneration);
		if (!val_exists(seen))
			seen = val_get(object, status, observedGeneration);
		if (val_exists(generation) && val_exists(seen) && val_as_int(seen) < val_as_int(generation))
			return false;
		return go_equal_fold(val_str(*x, status), c->value);
	}
	return false;
}

/* 1: it is so; 0: not yet; -1: it cannot be told. */
static int is_met(struct ktl *k, struct val object, const struct condition *c)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct jsonpath_options o = { .allow_missing_keys = true };
	struct err err = ERR_INIT;
	struct val found;
	if (c->what == FOR_CONDITION)
		return condition_is(object, c);
	if (c->what != FOR_PATH)
		return 1;
	if (jsonpath_find(c->path, &k->arena, object, &o, &found, &err) < 0)
		return ktl_fail_err(k, &err);
	struct val list = val_at(found, 0), value = val_at(list, 0);
	if (!val_len(list))
		return 0;
	if (val_len(found) > 1)
		return ktl_fail(k, "given jsonpath expression matches more than one list");
	if (val_len(list) > 1)
		return ktl_fail(k, "given jsonpath expression matches more than one value");
	if (!c->value.n)
		return 1;
	if (value.type >= VAL_LIST)
		return ktl_fail(k, "jsonpath leads to a nested object or list which is not supported");
	jsonpath_add_plain(&b, value);
	return str_eq(str_trim(buf_str(&b)), c->value);
}

/* ---- waiting ---- */

static int not_met(struct ktl *k, const struct ktl_info *info)
{
	return ktl_fail(k, "condition not met for " STR_FMT "/" STR_FMT, STR_ARG(info->kind->resource), STR_ARG(info->name));
}

static int until_met(struct ktl *k, struct val object, void *condition) { return val_exists(object) ? is_met(k, object, condition) : 0; }

static int wait_one(struct ktl *k, const struct wait *o, struct ktl_info *info, const struct condition *c, int64_t due)
{
	if (c->what == FOR_CREATE)
		return 0;
	if (c->what == FOR_DELETE) {
		if (o->timeout_ns == 0) {
			struct ktl_info now = *info;
			if (ktl_fetch(k, &now) == 0)
				return not_met(k, info);
			if (!ktl_failed_because(k, "NotFound"))
				return -1;
			ktl_forgive(k);
			return 0;
		}
		return ktl_wait_gone(k, info, STR_NONE, due - clock_now_ns());
	}
	int r = ktl_watch_until(k, info, due, until_met, (void *)(uintptr_t)c);
	if (r == 0)
		return o->timeout_ns == 0 ? not_met(k, info) : ktl_fail_timed_out(k, info);
	return r < 0 ? -1 : 0;
}

/* Until there is something of that name. */
static int wait_created(struct ktl *k, const struct ktl_builder *b, int64_t due)
{
	for (;;) {
		struct ktl_infos infos;
		int r = ktl_build(k, b, &infos);
		if (r == 0 && infos.n)
			return 0;
		if (r < 0 && !ktl_failed_because(k, "NotFound"))
			return -1;
		if (r < 0)
			ktl_forgive(k);
		if (clock_now_ns() > due)
			return ktl_fail(k, "timed out waiting for the condition");
		if (fiber_sleep_ms(500, NULL) < 0)
			return -1;
	}
}

/* ---- the command ---- */

static int wait_all(struct ktl *k, const struct wait *o, struct ktl_printer *p, const struct ktl_infos *infos, const struct condition *list, int64_t due)
{
	for (size_t i = 0; i < infos->n; i++)
		for (size_t j = 0; j < o->conditions.n; j++) {
			/* The time is for all of them together. */
			int r = o->timeout_ns && i && clock_now_ns() > due ? ktl_fail_timed_out(k, &infos->v[i]) : wait_one(k, o, &infos->v[i], &list[j], due);
			if (r < 0)
				break;
			(void)ktl_print(k, p, infos->v[i].kind, infos->v[i].object);
			ktl_flush();
		}
	return k->n_failures ? -1 : 0;
}

static int run(struct ktl *k, void *options)
{
	const struct wait *o = options;
	struct condition *list = ARENA_ARRAY(&k->arena, struct condition, o->conditions.n + 1);
	bool create = false, delete = false;
	struct ktl_printer p;
	struct ktl_infos infos;
	struct ktl_builder b = {
		.files = &o->files, .args = k->args, .selector = o->selector, .field_selector = o->field_selector, .all = o->all,
		.all_namespaces = o->all_namespaces, .latest = true,
	};
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0)
		return -1;
	p.done = "condition met";
	if (!o->conditions.n)
		return ktl_fail(k, "unrecognized condition: []");
	for (size_t i = 0; i < o->conditions.n; i++) {
		if (parse(k, o->conditions.v[i], &list[i]) < 0)
			return -1;
		create |= list[i].what == FOR_CREATE;
		delete |= list[i].what == FOR_DELETE;
	}
	int64_t due = clock_now_ns() + (o->timeout_ns < 0 ? 168 * 3600 * NS_PER_S : o->timeout_ns);
	if (create && wait_created(k, &b, due) < 0)
		return -1;
	b.keep_going = true; /* what is missing does not keep us from waiting for the others */
	if (ktl_build(k, &b, &infos) < 0)
		return -1;
	if (delete)
		ktl_forgive_not_found(k);
	if (!infos.n && !k->n_failures)
		return delete ? 0 : ktl_fail(k, "no matching resources found");
	return wait_all(k, o, &p, &infos, list, due);
}

const struct ktl_command ktl_wait = {
	.name = "wait",
	.group = "Advanced Commands",
	.summary = "Wait for a specific condition on one or many resources",
	.examples = "  kubectl wait --for=condition=Ready pod/web --timeout=60s\n  kubectl wait --for=delete pod -l app=web\n"
		    "  kubectl wait --for=jsonpath='{.status.phase}'=Running pod/web\n",
	.usage = "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]] [options]",
	.flags = (const struct ktl_flag_set[]){ { wait_flags, 0 }, { ktl_print_flags, OPTION(print) }, { ktl_file_flags, OPTION(files) }, { 0 } },
	.size = sizeof(struct wait),
	.run = run,
};
