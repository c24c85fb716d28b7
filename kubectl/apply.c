/*
 * kubectl apply: objects become what files say. The client's way compares three states, what was applied last (kept in an
 * annotation), what is to be, and what is, and sends the difference; with --server-side the server does all of that.
 */
#include "kubectl/apply.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "kubectl/commands.h"
#include "kubectl/delete.h"
#include "machinery/patch.h"

#define OPTION(member) offsetof(struct ktl_apply, member)

static const struct ktl_flag apply_flags[] = {
	{ "all", 0, KTL_BOOL, OPTION(all), NULL, "With --prune: all objects that were applied once", NULL },
	{ "cascade", 0, KTL_STRING, OPTION(cascade), "background", "With --prune or --force: what becomes of what an object owns: background, foreground, orphan", "background" },
	{ "force", 0, KTL_BOOL, OPTION(force), NULL, "Delete and create anew what cannot be changed", NULL },
	{ "force-conflicts", 0, KTL_BOOL, OPTION(force_conflicts), NULL, "With --server-side: take fields over from others", NULL },
	{ "grace-period", 0, KTL_INT, OPTION(grace_s), "-1", "With --force: seconds to end in", NULL },
	{ "openapi-patch", 0, KTL_BOOL, OPTION(openapi_patch), "true", NULL, NULL },
	{ "overwrite", 0, KTL_BOOL, OPTION(overwrite), "true", "What others have changed since is changed back", NULL },
	{ "prune", 0, KTL_BOOL, OPTION(prune), NULL, "Delete what was applied once and is in no file any more; with -l or --all", NULL },
	{ "prune-allowlist", 0, KTL_ARRAY, OPTION(prune_allowlist), NULL, "With --prune: only this kind, as core/v1/ConfigMap; may be given several times", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels", NULL },
	{ "server-side", 0, KTL_BOOL, OPTION(server_side), NULL, "The server does it", NULL },
	{ "subresource", 0, KTL_STRING, OPTION(subresource), NULL, "With --server-side: apply to a subresource", NULL },
	{ "timeout", 0, KTL_DURATION, OPTION(timeout_ns), "0s", "With --force: how long to wait until the old one is gone", NULL },
	{ "wait", 0, KTL_BOOL, OPTION(wait), NULL, NULL, NULL },
	{ 0 },
};

enum { TRIES = 5, TRIES_BEFORE_PAUSE = 1 };

int ktl_apply_report(struct ktl_apply_job *j, const struct ktl_info *info, struct val object, const char *done)
{
	if (val_has(object, metadata, deletionTimestamp))
		fprintf(stderr, "Warning: Detected changes to resource " STR_FMT " which is currently being deleted.\n", STR_ARG(val_str(object, metadata, name)));
	val_add_item(&j->visited, val_get(object, metadata, uid));
	if (!j->at_end)
		return ktl_print_done(j->k, &j->p, info->kind, object, done);
	val_add_item(&j->results, object);
	return 0;
}

/* ---- the client's way ---- */

/* Members that are null are not sent when an object is created. */
static struct val without_nulls(struct ktl *k, struct val v, int depth)
{
	struct val_builder b = val_builder(&k->arena);
	if (depth > VAL_RECURSION_MAX)
		return v;
	if (val_is(v, VAL_LIST)) {
		VAL_EACH(item, v)
			val_add_item(&b, without_nulls(k, *item, depth + 1));
		return val_end_list(&b);
	}
	if (!val_is(v, VAL_OBJECT))
		return v;
	VAL_EACH_MEMBER(m, v)
		if (!val_is_nil(m->val))
			val_add_member(&b, m->key, without_nulls(k, m->val, depth + 1));
	return val_end_object(&b);
}

static int create(struct ktl_apply_job *j, const struct ktl_info *info, struct val modified)
{
	struct ktl_info fresh = *info;
	struct val result;
	fresh.object = without_nulls(j->k, modified, 0);
	return ktl_create_object(j->k, &j->w, &fresh, &result) < 0 ? -1 : ktl_apply_report(j, info, result, "created");
}

static int make_patch(struct ktl_apply_job *j, const struct ktl_info *info, struct val modified, struct val live, struct val *ret)
{
	struct ktl *k = j->k;
	const struct type *type = info->kind->type;
	struct val original = VAL_EMPTY;
	struct err err = ERR_INIT;
	str last = last_applied_get(live);
	if (last.n && ktl_parse_json(k, last, &original, &err) < 0)
		return ktl_fail_err(k, &err);
	int r = type ? strategic_patch_three_way(&k->arena, original, modified, live, type, j->o->overwrite, PATCH_SAME_OBJECT, ret, &err) :
		       merge_patch_three_way(&k->arena, original, modified, live, PATCH_SAME_OBJECT, ret, &err);
	return r < 0 ? ktl_fail_err(k, &err) : 0;
}

static int replace_by_force(struct ktl_apply_job *j, const struct ktl_info *info, struct val modified)
{
	struct ktl *k = j->k;
	struct ktl_delete d = { .grace_s = j->o->grace_s, .quiet = true };
	struct ktl_info fresh = *info;
	struct val result;
	str uid;
	ktl_forgive(k);
	fresh.object = val_without(&k->arena, modified, metadata, resourceVersion);
	if (ktl_cascade_of(k, j->o->cascade, &d.cascade) < 0 || ktl_delete_object(k, &d, info, &uid) < 0 ||
	    ktl_wait_gone(k, info, uid, j->o->timeout_ns ? j->o->timeout_ns : 300 * NS_PER_S) < 0)
		return -1;
	if (ktl_create_object(k, &j->w, &fresh, &result) == 0)
		return ktl_apply_report(j, info, result, "configured");
	/* As kubectl: what was there comes back. */
	fresh.object = val_without(&k->arena, info->object, metadata, resourceVersion);
	if (ktl_create_object(k, &j->w, &fresh, &result) < 0)
		(void)ktl_fail_before(k, "an error occurred attempting to restore the original object: ");
	return -1;
}

static int local_result(struct ktl_apply_job *j, const struct ktl_info *info, struct val live, struct val patch, struct val *ret)
{
	struct ktl *k = j->k;
	struct err err = ERR_INIT;
	int r = info->kind->type ? strategic_patch_apply(&k->arena, live, patch, info->kind->type, ret, &err) :
				   merge_patch_apply(&k->arena, live, patch, ret, &err);
	return r < 0 ? ktl_fail(k, "applying patch locally: %s", err.msg) : 0;
}

/* What could not be patched: with the patch and the object, as kubectl shows it. */
static int fail_patch(struct ktl_apply_job *j, const struct ktl_info *info, str patch)
{
	struct ktl *k = j->k;
	str source = ktl_quote(k, info->source), version = ktl_kind_group_version(k, info->kind);
	(void)ktl_fail_before(k, "error when patching " STR_FMT ": ", STR_ARG(source));
	return ktl_fail_before(k, "error when applying patch:\n" STR_FMT "\nto:\nResource: \"" STR_FMT ", Resource=" STR_FMT "\", GroupVersionKind: \"" STR_FMT ", Kind=" STR_FMT "\"\nName: " STR_FMT ", Namespace: " STR_FMT "\nfor: " STR_FMT ": ",
			       STR_ARG(patch), STR_ARG(version), STR_ARG(info->kind->resource), STR_ARG(version), STR_ARG(info->kind->kind), STR_ARG(ktl_quote(k, info->name)), STR_ARG(ktl_quote(k, info->namespace)), STR_ARG(source));
}

static int configure(struct ktl_apply_job *j, struct ktl_info *live, struct val modified, str source)
{
	struct ktl *k = j->k;
	struct val patch, result;
	str text = STR_NONE;
	live->source = source;
	for (int i = 0;; i++) {
		if (make_patch(j, live, modified, live->object, &patch) < 0)
			return -1;
		text = ktl_json(k, patch);
		if (!val_len(patch))
			return ktl_apply_report(j, live, live->object, "unchanged");
		if (j->w.dry == KTL_DRY_CLIENT)
			return local_result(j, live, live->object, patch, &result) < 0 ? -1 : ktl_apply_report(j, live, result, "configured");
		if (ktl_patch_object(k, &j->w, live, live->kind->type ? KTL_PATCH_STRATEGIC : KTL_PATCH_MERGE, text, STR_NONE, false, &result) == 0)
			return ktl_apply_report(j, live, result, "configured");
		if (i >= TRIES || !ktl_failed_because(k, "Conflict"))
			break;
		ktl_forgive(k);
		if ((i > TRIES_BEFORE_PAUSE && fiber_sleep_ms(1000, NULL) < 0) || ktl_fetch(k, live) < 0)
			return -1;
	}
	if (j->o->force && (ktl_failed_because(k, "Conflict") || ktl_failed_because(k, "Invalid")))
		return replace_by_force(j, live, modified);
	return fail_patch(j, live, text);
}

static int apply_client_side(struct ktl_apply_job *j, const struct ktl_info *info)
{
	struct ktl *k = j->k;
	struct ktl_info live = *info;
	struct val modified;
	struct err err = ERR_INIT;
	if (last_applied_update(&k->arena, info->object, &modified, &err) < 0)
		return ktl_fail(k, "retrieving modified configuration from:\n%s\nfor: " STR_FMT, err.msg, STR_ARG(info->source));
	if (ktl_fetch(k, &live) < 0) {
		if (!ktl_failed_because(k, "NotFound"))
			return ktl_fail_before(k, "error when retrieving current configuration of:\nName: " STR_FMT ", Namespace: " STR_FMT "\nfrom server for: " STR_FMT ": ",
					       STR_ARG(ktl_quote(k, info->name)), STR_ARG(ktl_quote(k, info->namespace)), STR_ARG(ktl_quote(k, info->source)));
		ktl_forgive(k);
		return create(j, info, modified);
	}
	if (!last_applied_get(live.object).n)
		fprintf(stderr, "Warning: resource " STR_FMT "/" STR_FMT " is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.\n",
			STR_ARG(info->kind->resource), STR_ARG(info->name));
	return configure(j, &live, modified, info->source);
}

static int apply_one(struct ktl_apply_job *j, const struct ktl_info *info)
{
	str generated = val_str(info->object, metadata, generateName);
	if (!info->name.n && generated.n)
		return ktl_fail(j->k, "from " STR_FMT ": cannot use generate name with apply", STR_ARG(generated));
	return j->o->server_side ? ktl_apply_server_side(j, info) : apply_client_side(j, info);
}

/* ---- the command ---- */

static int check(struct ktl *k, const struct ktl_apply *o, const struct ktl_write *w)
{
	if (k->args.n)
		return ktl_fail_usage(k, "Unexpected args: [%s]", k->args.v[0]);
	if (ktl_no_files(&o->files))
		return ktl_fail(k, "must specify one of -f and -k");
	if (o->force_conflicts && !o->server_side)
		return ktl_fail(k, "--force-conflicts only works with --server-side");
	if (w->dry == KTL_DRY_CLIENT && o->server_side)
		return ktl_fail(k, "--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)");
	if (o->force && o->server_side)
		return ktl_fail(k, "--force cannot be used with --server-side");
	if (w->dry == KTL_DRY_SERVER && o->force)
		return ktl_fail(k, "--dry-run=server cannot be used with --force");
	if (o->all && o->selector[0])
		return ktl_fail(k, "cannot set --all and --selector at the same time");
	if (o->prune && o->force)
		return ktl_fail(k, "--force cannot be used with --prune");
	if (o->prune && !o->all && !o->selector[0])
		return ktl_fail(k, "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you did not mean to prune all resources, specify a label selector");
	if (o->prune && o->server_side)
		return ktl_fail(k, "--prune is in alpha and doesn't currently work on objects created by server-side apply");
	if (o->subresource[0] && !o->server_side)
		return ktl_fail(k, "--subresource can only be specified for --server-side");
	return 0;
}

static int print_at_end(struct ktl_apply_job *j)
{
	struct arena *a = &j->k->arena;
	struct val list = val_end_list(&j->results);
	if (val_len(list) == 0)
		return 0;
	if (val_len(list) == 1)
		return ktl_print(j->k, &j->p, NULL, val_at(list, 0));
	return ktl_print(j->k, &j->p, NULL, OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(items, list), F(kind, VAL_LIT("List")), F(metadata, VAL_EMPTY_OBJECT)));
}

static int run(struct ktl *k, void *options)
{
	const struct ktl_apply *o = options;
	struct ktl_apply_job j = { .k = k, .o = o, .results = val_builder(&k->arena), .visited = val_builder(&k->arena) };
	struct ktl_infos infos;
	str namespace;
	bool explicit;
	if (ktl_printer_init(k, &o->print, false, &j.p) < 0 ||
	    ktl_write_init(k, &o->write, &o->create, o->server_side ? "kubectl" : "kubectl-client-side-apply", &j.p, &j.w) < 0 ||
	    check(k, o, &j.w) < 0 || ktl_namespace(k, &namespace, &explicit) < 0 || (o->prune && ktl_apply_prune_kinds(&j) < 0))
		return -1;
	j.w.save_config = false;
	j.at_end = j.p.format != KTL_HUMAN && j.p.format != KTL_NAME;
	struct ktl_builder b = {
		.files = &o->files, .namespace = namespace, .enforce_namespace = explicit, .selector = o->selector, .keep_going = true,
		.check = !str_eq(j.w.validation, STR("Ignore")),
	};
	if (ktl_build(k, &b, &infos) < 0)
		return -1;
	if (!infos.n && !k->n_failures)
		return ktl_fail(k, "no objects passed to apply");
	for (size_t i = 0; i < infos.n; i++)
		(void)apply_one(&j, &infos.v[i]);
	if (k->n_failures || print_at_end(&j) < 0 || !o->prune)
		return k->n_failures ? -1 : 0;
	return ktl_apply_prune(&j, &infos, explicit ? namespace : STR_NONE);
}

const struct ktl_command ktl_apply = {
	.name = "apply",
	.group = "Advanced Commands",
	.summary = "Apply a configuration to a resource by file name or stdin",
	.manual = "Creates the objects that files describe, or changes them to what the files say now. What others have set, and files do not\n"
		  "mention, stays as it is.",
	.examples = "  kubectl apply -f web.yaml\n  cat web.yaml | kubectl apply -f -\n  kubectl apply --server-side -f folder/\n",
	.usage = "apply -f FILENAME [options]",
	.below = (const struct ktl_command *const[]){ &ktl_apply_edit_last, &ktl_apply_set_last, &ktl_apply_view_last, NULL },
	.flags = (const struct ktl_flag_set[]){
		{ apply_flags, 0 }, { ktl_file_flags, OPTION(files) }, { ktl_print_flags, OPTION(print) }, { ktl_write_flags, OPTION(write) },
		{ ktl_create_flags, OPTION(create) }, { ktl_record_flags, OPTION(record) }, { 0 },
	},
	.size = sizeof(struct ktl_apply),
	.run = run,
};
