/* kubectl patch and replace */
#include "base/clock.h"
#include "kubectl/commands.h"
#include "kubectl/delete.h"
#include "machinery/patch.h"

/* ---- patch ---- */

struct patch {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
	const char *patch, *patch_file, *type, *subresource;
	bool local;
};

#define OPTION(member) offsetof(struct patch, member)

static const struct ktl_flag patch_flags[] = {
	{ "local", 0, KTL_BOOL, OPTION(local), NULL, "Only what is in files, without asking the server", NULL },
	{ "patch", 'p', KTL_STRING, OPTION(patch), NULL, "The patch, as JSON or YAML", NULL },
	{ "patch-file", 0, KTL_STRING, OPTION(patch_file), NULL, "File with the patch", NULL },
	{ "subresource", 0, KTL_STRING, OPTION(subresource), NULL, "A subresource of the object: status, scale", NULL },
	{ "type", 0, KTL_STRING, OPTION(type), "strategic", "Kind of patch: json, merge or strategic", NULL },
	{ 0 },
};

static int read_patch(struct ktl *k, const struct patch *o, enum ktl_patch_type *ret_type, str *ret)
{
	static const struct { const char *name; enum ktl_patch_type type; } types[] = {
		{ "json", KTL_PATCH_JSON }, { "merge", KTL_PATCH_MERGE }, { "strategic", KTL_PATCH_STRATEGIC },
	};
	CLEANUP(buf_done) struct buf json = BUF_INIT(64 << 20);
	struct err err = ERR_INIT;
	bool known = false;
	str type = ktl_lower(k, str_of(o->type)), text = str_of(o->patch);
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(type, str_of(types[i].name))) {
			*ret_type = types[i].type;
			known = true;
		}
	if ((o->patch[0] != 0) == (o->patch_file[0] != 0))
		return ktl_fail(k, o->patch[0] ? "cannot specify --patch and --patch-file together" : "must specify --patch or --patch-file containing the contents of the patch");
	if (!known)
		return ktl_fail(k, "--type must be one of [json merge strategic], not \"%s\"", o->type);
	if (o->patch_file[0] && ktl_read_file(k, o->patch_file, &text, &err) < 0)
		return ktl_fail(k, "unable to read patch file: %s", err.msg);
	/* What begins as JSON is left to the server to judge. */
	if (str_starts(str_trim(text), STR("{"))) {
		*ret = text;
		return 0;
	}
	if (yaml_to_json(text, &json, NULL, &err) < 0)
		return ktl_fail(k, "unable to parse " STR_FMT ": %s", STR_ARG(ktl_quote(k, text)), err.msg);
	*ret = arena_str(&k->arena, buf_str(&json));
	return 0;
}

static int patch_locally(struct ktl *k, const struct ktl_info *info, enum ktl_patch_type type, str text, struct val *ret)
{
	struct err err = ERR_INIT;
	struct val patch;
	int r = ktl_parse_json(k, text, &patch, &err);
	if (r == 0 && type == KTL_PATCH_JSON)
		r = json_patch_apply(&k->arena, info->object, patch, 0, ret, &err);
	else if (r == 0 && type == KTL_PATCH_STRATEGIC)
		r = strategic_patch_apply(&k->arena, info->object, patch, info->kind ? info->kind->type : NULL, ret, &err);
	else if (r == 0)
		r = merge_patch_apply(&k->arena, info->object, patch, ret, &err);
	return r < 0 ? ktl_fail_err(k, &err) : 0;
}

static int run_patch(struct ktl *k, void *options)
{
	const struct patch *o = options;
	struct ktl_builder b = { .files = &o->files, .args = k->args, .keep_going = true, .local = o->local, .subresource = str_of(o->subresource), .latest = !o->local };
	enum ktl_patch_type type = KTL_PATCH_STRATEGIC;
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	str text;
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_write_init(k, &o->write, NULL, "kubectl-patch", &p, &w) < 0 ||
	    read_patch(k, o, &type, &text) < 0 || ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++) {
		struct ktl_info *info = &infos.v[i];
		struct val result;
		bool here = o->local || w.dry == KTL_DRY_CLIENT;
		if ((here ? patch_locally(k, info, type, text, &result) : ktl_patch_object(k, &w, info, type, text, str_of(o->subresource), false, &result)) < 0)
			continue;
		bool same = val_equal(info->object, result);
		struct ktl_printer own = p;
		if (same) /* as kubectl: then it is not said that it was a dry run */
			own.dry_run = "";
		(void)ktl_print_done(k, &own, info->kind, result, same ? "patched (no change)" : "patched");
		p.n = own.n;
	}
	return infos.n || k->n_failures ? 0 : ktl_fail(k, "no objects passed to patch");
}

const struct ktl_command ktl_patch = {
	.name = "patch",
	.group = "Advanced Commands",
	.summary = "Update fields of a resource",
	.examples = "  kubectl patch node n1 -p '{\"spec\":{\"unschedulable\":true}}'\n  kubectl patch deployment web --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}]'\n",
	.usage = "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE] [options]",
	.flags = (const struct ktl_flag_set[]){
		{ patch_flags, 0 }, { ktl_file_flags, OPTION(files) }, { ktl_print_flags, OPTION(print) }, { ktl_write_flags, OPTION(write) },
		{ ktl_record_flags, OPTION(record) }, { 0 },
	},
	.size = sizeof(struct patch),
	.run = run_patch,
};

/* ---- replace ---- */

struct replace {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_create_flags create;
	struct ktl_file_flags files;
	const char *subresource, *cascade, *raw;
	bool force, wait;
	int64_t grace_s, timeout_ns;
};

static const struct ktl_flag replace_flags[] = {
	{ "cascade", 0, KTL_STRING, offsetof(struct replace, cascade), "background", NULL, "background" },
	{ "force", 0, KTL_BOOL, offsetof(struct replace, force), NULL, "Delete it and create it anew", NULL },
	{ "grace-period", 0, KTL_INT, offsetof(struct replace, grace_s), "-1", "With --force: seconds to end in", NULL },
	{ "raw", 0, KTL_STRING, offsetof(struct replace, raw), NULL, "A path of the server to send the file to", NULL },
	{ "subresource", 0, KTL_STRING, offsetof(struct replace, subresource), NULL, "A subresource of the object", NULL },
	{ "timeout", 0, KTL_DURATION, offsetof(struct replace, timeout_ns), "0s", "With --force: how long to wait until the old one is gone", NULL },
	{ "wait", 0, KTL_BOOL, offsetof(struct replace, wait), NULL, NULL, NULL },
	{ 0 },
};

static int replace_one(struct ktl *k, const struct replace *o, const struct ktl_write *w, struct ktl_printer *p, struct ktl_info *info)
{
	/* As kubectl: 0 is 1, so that it is known to have ended before the new one is there. */
	struct ktl_delete d = { .grace_s = o->grace_s == 0 ? 1 : o->grace_s };
	struct val result;
	str uid;
	if (o->force && ktl_cascade_of(k, o->cascade, &d.cascade) < 0)
		return -1;
	if (w->save_config && last_applied_update(&k->arena, info->object, &info->object, NULL) < 0)
		return ktl_fail(k, "the configuration cannot be kept in an annotation");
	if (!o->force) {
		if (ktl_replace_object(k, w, info, str_of(o->subresource), &result) < 0)
			return -1;
		return ktl_print_done(k, p, info->kind, result, "replaced");
	}
	if (ktl_delete_object(k, &d, info, &uid) < 0) {
		if (!ktl_failed_because(k, "NotFound"))
			return -1;
		ktl_forgive(k);
	} else if (ktl_wait_gone(k, info, uid, o->timeout_ns ? o->timeout_ns : 300 * NS_PER_S) < 0) {
		return -1;
	}
	info->object = val_without(&k->arena, info->object, metadata, resourceVersion);
	if (ktl_create_object(k, w, info, &result) < 0)
		return -1;
	return ktl_print_done(k, p, info->kind, result, "replaced");
}

static int check_replace(struct ktl *k, const struct replace *o, const struct ktl_write *w)
{
	if (o->grace_s >= 0 && !o->force)
		return ktl_fail(k, "--grace-period must have --force specified");
	if (o->timeout_ns && !o->force)
		return ktl_fail(k, "--timeout must have --force specified");
	if (o->force && w->dry != KTL_DRY_NONE)
		return ktl_fail(k, "--dry-run can not be used when --force is set");
	return 0;
}

static int run_replace(struct ktl *k, void *options)
{
	const struct replace *o = options;
	struct ktl_builder b = { .files = &o->files, .keep_going = true };
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	if (ktl_no_files(&o->files))
		return ktl_fail_usage(k, "must specify --filename to replace");
	if (o->raw[0] && o->files.filenames.n != 1)
		return ktl_fail(k, "--raw can only use a single local file or stdin");
	if (o->raw[0])
		return ktl_raw(k, STR("PUT"), o->raw, o->files.filenames.v[0]);
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_write_init(k, &o->write, &o->create, "kubectl-replace", &p, &w) < 0 ||
	    check_replace(k, o, &w) < 0 || ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0)
		return -1;
	b.check = !str_eq(w.validation, STR("Ignore"));
	if (ktl_build(k, &b, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++)
		(void)replace_one(k, o, &w, &p, &infos.v[i]);
	return infos.n || k->n_failures ? 0 : ktl_fail(k, "no objects passed to replace");
}

const struct ktl_command ktl_replace = {
	.name = "replace",
	.group = "Advanced Commands",
	.summary = "Replace a resource by file name or stdin",
	.examples = "  kubectl replace -f web.yaml\n  kubectl replace --force -f web.yaml\n",
	.usage = "replace -f FILENAME [options]",
	.flags = (const struct ktl_flag_set[]){
		{ replace_flags, 0 }, { ktl_file_flags, offsetof(struct replace, files) }, { ktl_print_flags, offsetof(struct replace, print) },
		{ ktl_write_flags, offsetof(struct replace, write) }, { ktl_create_flags, offsetof(struct replace, create) }, { 0 },
	},
	.size = sizeof(struct replace),
	.run = run_replace,
};
