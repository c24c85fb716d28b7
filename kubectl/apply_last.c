/* kubectl apply view-last-applied, set-last-applied, edit-last-applied: what is kept of the last apply. */
#include <stdio.h>

#include "kubectl/apply.h"
#include "kubectl/edit.h"
#include "machinery/patch.h"

/* ---- view ---- */

struct view {
	struct ktl_file_flags files;
	const char *selector, *output;
	bool all;
};

static const struct ktl_flag view_flags[] = {
	{ "all", 0, KTL_BOOL, offsetof(struct view, all), NULL, "All objects of the type", NULL },
	{ "output", 'o', KTL_STRING, offsetof(struct view, output), "yaml", "yaml or json", NULL },
	{ "selector", 'l', KTL_STRING, offsetof(struct view, selector), NULL, "Only objects with these labels", NULL },
	{ 0 },
};

static int run_view(struct ktl *k, void *options)
{
	const struct view *o = options;
	struct ktl_builder b = { .files = &o->files, .args = k->args, .selector = o->selector, .all = o->all, .latest = true };
	struct ktl_infos infos;
	if (!ktl_is(o->output, "yaml") && !ktl_is(o->output, "json"))
		return ktl_fail_usage(k, "Unexpected -o output mode: %s, the flag 'output' must be one of yaml|json", o->output);
	if (ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++) {
		struct val v;
		str text = last_applied_get(infos.v[i].object);
		/* As kubectl: only where it is from a file is it a failure. */
		if (!text.n && infos.v[i].source.n)
			return ktl_fail(k, "error when no last-applied-configuration annotation found on resource: " STR_FMT "\n " STR_FMT ": <nil>",
					STR_ARG(infos.v[i].name), STR_ARG(ktl_quote(k, infos.v[i].source)));
		if (!text.n)
			continue;
		struct err err = ERR_INIT;
		if (ktl_parse_json(k, text, &v, &err) < 0)
			return ktl_fail_err(k, &err);
		if ((ktl_is(o->output, "json") ? ktl_print_json(k, v, 2) : ktl_print_yaml(k, v)) < 0)
			return -1;
	}
	return 0;
}

const struct ktl_command ktl_apply_view_last = {
	.name = "view-last-applied", .summary = "View the latest last-applied-configuration annotations of a resource/object",
	.usage = "apply view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME) [options]",
	.flags = (const struct ktl_flag_set[]){ { view_flags, 0 }, { ktl_file_flags, offsetof(struct view, files) }, { 0 } },
	.size = sizeof(struct view), .run = run_view,
};

/* ---- changing it ---- */

/* (suspends) Sends a configuration as the annotation of its object. */
static int put_last(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, struct val configuration, struct val *ret)
{
	struct val patch = last_applied_set(&k->arena, VAL_EMPTY_OBJECT, arena_join(&k->arena, ktl_json(k, configuration), STR("\n")));
	return ktl_patch_object(k, w, info, KTL_PATCH_MERGE, ktl_json(k, patch), STR_NONE, false, ret);
}

struct set {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_file_flags files;
	bool create;
};

static const struct ktl_flag set_flags[] = {
	{ "create-annotation", 0, KTL_BOOL, offsetof(struct set, create), NULL, "Also where there was none", NULL },
	{ 0 },
};

/* (suspends) 1: it is to be changed. info becomes the live object. */
static int look(struct ktl *k, const struct set *o, struct ktl_info *info)
{
	struct val wanted = info->object, now = VAL_EMPTY;
	if (ktl_fetch(k, info) < 0)
		return -1;
	str text = last_applied_get(info->object);
	if (!text.n && !o->create)
		return ktl_fail(k, "no last-applied-configuration annotation found on resource: " STR_FMT ", to create the annotation, run the command with --create-annotation",
				STR_ARG(info->name));
	if (!text.n || ktl_parse_json(k, text, &now, NULL) < 0 || !val_equal(now, wanted))
		return 1;
	printf("set-last-applied " STR_FMT ": no changes required.\n", STR_ARG(info->name));
	return 0;
}

/* As kubectl, all are looked at before one is changed. */
static int run_set(struct ktl *k, void *options)
{
	const struct set *o = options;
	struct ktl_builder b = { .files = &o->files };
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_write_init(k, &o->write, NULL, "", &p, &w) < 0 ||
	    ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	p.done = "configured";
	struct val *wanted = ARENA_ARRAY(&k->arena, struct val, infos.n + 1);
	int *changed = ARENA_ARRAY(&k->arena, int, infos.n + 1);
	for (size_t i = 0; i < infos.n; i++) {
		wanted[i] = infos.v[i].object;
		if ((changed[i] = look(k, o, &infos.v[i])) < 0)
			return -1;
	}
	for (size_t i = 0; i < infos.n; i++) {
		struct val result = infos.v[i].object;
		if (!changed[i])
			continue;
		if ((w.dry != KTL_DRY_CLIENT && put_last(k, &w, &infos.v[i], wanted[i], &result) < 0) || ktl_print(k, &p, infos.v[i].kind, result) < 0)
			return -1;
	}
	return 0;
}

const struct ktl_command ktl_apply_set_last = {
	.name = "set-last-applied", .summary = "Set the last-applied-configuration annotation on a live object to match the contents of a file",
	.usage = "apply set-last-applied -f FILENAME [options]",
	.flags = (const struct ktl_flag_set[]){
		{ set_flags, 0 }, { ktl_file_flags, offsetof(struct set, files) }, { ktl_print_flags, offsetof(struct set, print) },
		{ ktl_write_flags, offsetof(struct set, write) }, { 0 },
	},
	.size = sizeof(struct set), .run = run_set,
};

struct edit {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_create_flags create;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
};

static int edit_one(struct ktl *k, const struct edit *o, const struct ktl_write *w, const struct ktl_info *info, struct val shown)
{
	struct ktl_printer p = { .format = ktl_is(o->print.output, "name") ? KTL_NAME : KTL_HUMAN, .dry_run = "" };
	struct ktl_edited e;
	struct val result;
	int r = ktl_edit_tree(k, ktl_is(o->print.output, "json"), shown, &e);
	if (r <= 0)
		return r;
	r = ktl_edit_end(&e, put_last(k, w, info, e.object, &result));
	return r < 0 ? -1 : ktl_print_done(k, &p, info->kind, e.object, "edited");
}

static int run_edit(struct ktl *k, void *options)
{
	const struct edit *o = options;
	struct ktl_builder b = { .files = &o->files, .args = k->args, .latest = true, .types_alone = true };
	struct ktl_infos infos;
	struct ktl_write w;
	size_t found = 0;
	if (ktl_write_init(k, &o->write, &o->create, "kubectl-client-side-apply", NULL, &w) < 0 ||
	    ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++) {
		struct val shown;
		str text = last_applied_get(infos.v[i].object);
		if (!text.n || ktl_parse_json(k, text, &shown, NULL) < 0)
			continue;
		found++;
		if (edit_one(k, o, &w, &infos.v[i], shown) < 0)
			return -1;
	}
	return found ? 0 : ktl_fail(k, "no last-applied-configuration annotation found on resources, to create the annotation, use command `kubectl apply set-last-applied --create-annotation`");
}

const struct ktl_command ktl_apply_edit_last = {
	.name = "edit-last-applied", .summary = "Edit latest last-applied-configuration annotations of a resource/object",
	.usage = "apply edit-last-applied (RESOURCE/NAME | -f FILENAME) [options]",
	.flags = (const struct ktl_flag_set[]){
		{ ktl_file_flags, offsetof(struct edit, files) }, { ktl_print_flags, offsetof(struct edit, print) },
		{ ktl_write_flags, offsetof(struct edit, write) }, { ktl_create_flags, offsetof(struct edit, create) },
		{ ktl_record_flags, offsetof(struct edit, record) }, { 0 },
	},
	.size = sizeof(struct edit), .run = run_edit,
};
