/* kubectl scale */
#include <stdio.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "kubectl/commands.h"
#include "kubectl/write.h"

struct scale {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
	const char *selector, *revision;
	bool all;
	int64_t replicas, current, timeout_ns;
};

#define OPTION(member) offsetof(struct scale, member)

static const struct ktl_flag scale_flags[] = {
	{ "all", 0, KTL_BOOL, OPTION(all), NULL, "All objects of the type", NULL },
	{ "current-replicas", 0, KTL_INT, OPTION(current), "-1", "Only if it has so many now", NULL },
	{ "replicas", 0, KTL_INT, OPTION(replicas), NULL, "How many it is to have", NULL },
	{ "resource-version", 0, KTL_STRING, OPTION(revision), NULL, "Only if it is this version", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels", NULL },
	{ "timeout", 0, KTL_DURATION, OPTION(timeout_ns), "0s", "Wait so long until it has; 0: do not wait", NULL },
	{ 0 },
};

/* With conditions: the whole Scale, if it is as it should be. */
static int scale_checked(struct ktl *k, const struct scale *o, const struct ktl_write *w, struct ktl_info *info)
{
	struct val live, result;
	if (ktl_get(k, ktl_kind_path(k, info->kind, info->namespace, info->name, STR("scale")), STR_NONE, &live) < 0)
		return -1;
	int64_t has = val_int(live, spec, replicas);
	str revision = val_str(live, metadata, resourceVersion);
	if (o->current >= 0 && has != o->current)
		return ktl_fail(k, "Expected replicas to be %lld, was %lld", (long long)o->current, (long long)has);
	if (o->revision[0] && !str_eq(revision, str_of(o->revision)))
		return ktl_fail(k, "Expected resource version to be %s, was " STR_FMT, o->revision, STR_ARG(revision));
	struct ktl_info scale = *info;
	scale.object = val_with(&k->arena, live, val_of_int(o->replicas), spec, replicas);
	return ktl_replace_object(k, w, &scale, STR("scale"), &result);
}

static int scale_plainly(struct ktl *k, const struct scale *o, const struct ktl_write *w, struct ktl_info *info)
{
	struct val result;
	str body = arena_printf(&k->arena, "{\"spec\":{\"replicas\":%lld}}", (long long)o->replicas);
	return ktl_patch_object(k, w, info, KTL_PATCH_MERGE, body, STR("scale"), false, &result);
}

static int wait_scaled(struct ktl *k, const struct scale *o, const struct ktl_info *info)
{
	int64_t due = clock_now_ns() + o->timeout_ns;
	for (;;) {
		struct val live;
		if (ktl_get(k, ktl_kind_path(k, info->kind, info->namespace, info->name, STR("scale")), STR_NONE, &live) < 0)
			return -1;
		if (val_int(live, spec, replicas) == o->replicas && val_int(live, status, replicas) == o->replicas)
			return 0;
		if (clock_now_ns() > due)
			return ktl_fail(k, "timed out waiting for " STR_FMT " to be synced", STR_ARG(ktl_quote(k, info->name)));
		if (fiber_sleep_ms(100, NULL) < 0)
			return -1;
	}
}

static int run(struct ktl *k, void *options)
{
	const struct scale *o = options;
	struct ktl_builder b = { .files = &o->files, .args = k->args, .selector = o->selector, .all = o->all, .keep_going = true };
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	if (o->replicas < 0)
		return ktl_fail(k, "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0");
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_write_init(k, &o->write, NULL, "", &p, &w) < 0 ||
	    ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	p.done = "scaled";
	if (k->n_failures)
		return -1;
	if (!infos.n)
		return ktl_fail(k, "no objects passed to scale");
	if (infos.n > 1 && o->revision[0])
		return ktl_fail(k, "cannot use --resource-version with multiple resources");
	for (size_t i = 0; i < infos.n; i++) {
		struct ktl_info *info = &infos.v[i];
		bool checked = o->current >= 0 || o->revision[0];
		if (w.dry != KTL_DRY_CLIENT && (checked ? scale_checked : scale_plainly)(k, o, &w, info) < 0)
			return -1;
		if (o->timeout_ns > 0 && w.dry == KTL_DRY_NONE && wait_scaled(k, o, info) < 0)
			return -1;
		if (ktl_print(k, &p, info->kind, info->object) < 0)
			return -1;
	}
	return 0;
}

const struct ktl_command ktl_scale = {
	.name = "scale",
	.group = "Deploy Commands",
	.summary = "Set a new size for a deployment, replica set, or replication controller",
	.examples = "  kubectl scale deployment/web --replicas=3\n  kubectl scale --current-replicas=2 --replicas=3 statefulset/db\n",
	.usage = "scale [--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME) [options]",
	.flags = (const struct ktl_flag_set[]){
		{ scale_flags, 0 }, { ktl_file_flags, OPTION(files) }, { ktl_print_flags, OPTION(print) }, { ktl_write_flags, OPTION(write) },
		{ ktl_record_flags, OPTION(record) }, { 0 },
	},
	.size = sizeof(struct scale),
	.required = "replicas",
	.run = run,
};
