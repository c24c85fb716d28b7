#include "kubectl/write.h"

#include "machinery/patch.h"
#include "net/url.h"

const struct ktl_flag ktl_write_flags[] = {
	{ "dry-run", 0, KTL_STRING, offsetof(struct ktl_write_flags, dry_run), "none", "none, client (only print what would be sent) or server (the server does all but keep it)", "unchanged" },
	{ "field-manager", 0, KTL_STRING, offsetof(struct ktl_write_flags, manager), NULL, "The name under which fields are set", NULL },
	{ 0 },
};

const struct ktl_flag ktl_create_flags[] = {
	{ "validate", 0, KTL_STRING, offsetof(struct ktl_create_flags, validate), "strict", "What to do about fields that are not known: strict, warn or ignore", "strict" },
	{ "save-config", 0, KTL_BOOL, offsetof(struct ktl_create_flags, save_config), NULL, "Keep the configuration in an annotation, for a later kubectl apply", NULL },
	{ 0 },
};

const struct ktl_flag ktl_record_flags[] = {
	{ "record", 0, KTL_BOOL, offsetof(struct ktl_record_flags, record), NULL, NULL, NULL },
	{ 0 },
};

/* ---- flags ---- */

static int dry_run_of(struct ktl *k, const char *text, enum ktl_dry *ret)
{
	static const struct { const char *name; enum ktl_dry dry; } names[] = {
		{ "none", KTL_DRY_NONE }, { "client", KTL_DRY_CLIENT }, { "server", KTL_DRY_SERVER }, { "unchanged", KTL_DRY_CLIENT },
	};
	bool b;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (ktl_is(text, names[i].name)) {
			*ret = names[i].dry;
			return 0;
		}
	if (!ktl_parse_bool(str_of(text), &b))
		return ktl_fail(k, "Invalid dry-run value (%s). Must be \"none\", \"server\", or \"client\".", text);
	*ret = b ? KTL_DRY_CLIENT : KTL_DRY_NONE;
	return 0;
}

static int validation_of(struct ktl *k, const char *text, str *ret)
{
	static const struct { const char *name; str value; } names[] = {
		{ "strict", STR_INIT("Strict") }, { "warn", STR_INIT("Warn") }, { "ignore", STR_INIT("Ignore") },
	};
	bool b;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (ktl_is(text, names[i].name)) {
			*ret = names[i].value;
			return 0;
		}
	if (!ktl_parse_bool(str_of(text), &b))
		return ktl_fail(k, "invalid - validate option \"%s\"; must be one of: strict (or true), warn, ignore (or false)", text);
	*ret = b ? STR("Strict") : STR("Ignore");
	return 0;
}

int ktl_write_init(struct ktl *k, const struct ktl_write_flags *f, const struct ktl_create_flags *c, const char *manager,
		   struct ktl_printer *p, struct ktl_write *ret)
{
	static const char *const words[] = { "", " (dry run)", " (server dry run)" };
	*ret = (struct ktl_write){ .manager = str_of(f->manager[0] ? f->manager : manager), .save_config = c && c->save_config };
	if (dry_run_of(k, f->dry_run, &ret->dry) < 0 || (c && validation_of(k, c->validate, &ret->validation) < 0))
		return -1;
	if (p)
		p->dry_run = words[ret->dry];
	return 0;
}

/* ---- sending ---- */

static str write_query(struct ktl *k, const struct ktl_write *w, bool apply, bool force)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	if (w->dry == KTL_DRY_SERVER)
		url_query_add(&b, STR("dryRun"), STR("All"));
	if (w->manager.n)
		url_query_add(&b, STR("fieldManager"), w->manager);
	if (w->validation.n)
		url_query_add(&b, STR("fieldValidation"), w->validation);
	if (apply)
		url_query_add(&b, STR("force"), force ? STR("true") : STR("false"));
	return arena_str(&k->arena, buf_str(&b));
}

static int from_source(struct ktl *k, const char *doing, const struct ktl_info *info)
{
	if (info->source.n)
		return ktl_fail_before(k, "error when %s " STR_FMT ": ", doing, STR_ARG(ktl_quote(k, info->source)));
	return -1;
}

int ktl_create_object(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, struct val *ret)
{
	struct client_raw q = {
		.method = STR("POST"), .path = ktl_kind_path(k, info->kind, info->namespace, STR_NONE, STR_NONE),
		.query = write_query(k, w, false, false), .content_type = STR("application/json"), .accept = STR("application/json"),
	};
	struct val object = info->object;
	if (w->save_config && last_applied_update(&k->arena, object, &object, NULL) < 0)
		return ktl_fail(k, "the configuration cannot be kept in an annotation");
	*ret = object;
	if (w->dry == KTL_DRY_CLIENT)
		return 0;
	q.body = ktl_json(k, object);
	return ktl_call(k, &q, ret) < 0 ? from_source(k, "creating", info) : 0;
}

int ktl_replace_object(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, str subresource, struct val *ret)
{
	struct client_raw q = {
		.method = STR("PUT"), .path = ktl_kind_path(k, info->kind, info->namespace, info->name, subresource),
		.query = write_query(k, w, false, false), .content_type = STR("application/json"), .accept = STR("application/json"),
		.body = ktl_json(k, info->object),
	};
	*ret = info->object;
	if (w->dry == KTL_DRY_CLIENT)
		return 0;
	return ktl_call(k, &q, ret) < 0 ? from_source(k, "replacing", info) : 0;
}

int ktl_patch_object(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, enum ktl_patch_type type, str body,
		     str subresource, bool force, struct val *ret)
{
	static const str types[] = {
		[KTL_PATCH_STRATEGIC] = STR_INIT("application/strategic-merge-patch+json"), [KTL_PATCH_MERGE] = STR_INIT("application/merge-patch+json"),
		[KTL_PATCH_JSON] = STR_INIT("application/json-patch+json"), [KTL_PATCH_APPLY] = STR_INIT("application/apply-patch+yaml"),
	};
	struct client_raw q = {
		.method = STR("PATCH"), .path = ktl_kind_path(k, info->kind, info->namespace, info->name, subresource),
		.query = write_query(k, w, type == KTL_PATCH_APPLY, force), .content_type = types[type], .accept = STR("application/json"),
		.body = body,
	};
	return ktl_call(k, &q, ret);
}

int ktl_patch_difference(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, struct val live, struct val changed,
			 bool *ret_changed, struct val *ret)
{
	const struct type *type = info->kind->type;
	struct err err = ERR_INIT;
	struct val patch;
	int r = type ? strategic_patch_create(&k->arena, live, changed, type, 0, &patch, &err) :
		       merge_patch_create(&k->arena, live, changed, &patch, &err);
	*ret = live;
	if (r < 0)
		return ktl_fail_err(k, &err);
	*ret_changed = val_len(patch) > 0;
	if (!*ret_changed)
		return 0;
	return ktl_patch_object(k, w, info, type ? KTL_PATCH_STRATEGIC : KTL_PATCH_MERGE, ktl_json(k, patch), STR_NONE, false, ret);
}

int ktl_fail_plainly(struct ktl *k, const char *before)
{
	struct ktl_failure *f = ktl_last_failure(k);
	if (!f)
		return -1;
	f->kind = KTL_PLAIN;
	return ktl_fail_before(k, "%s", before);
}

/* ---- objects made here ---- */

int ktl_typed(struct ktl *k, const struct type *type, struct val object, struct val *ret)
{
	struct err err = ERR_INIT;
	object = val_put(&k->arena, object, A_apiVersion, VAL_STR(type_api_version(&k->arena, type)));
	object = val_put(&k->arena, object, A_kind, VAL_STR(type->name));
	if (val_canonical(&k->arena, object, type, NULL, &object, &err) < 0 || patch_document(&k->arena, object, type, ret, &err) < 0)
		return ktl_fail_err(k, &err);
	return 0;
}

int ktl_parse_labels(struct ktl *k, const char *text, struct val *ret)
{
	str part, key, value, rest = str_of(text);
	*ret = VAL_EMPTY_OBJECT;
	while (rest.n) {
		(void)str_cut(rest, ',', &part, &rest);
		if (!str_cut(part, '=', &key, &value))
			return ktl_fail(k, "unexpected label spec: " STR_FMT, STR_ARG(part));
		if (!key.n)
			return ktl_fail(k, "unexpected empty label key");
		*ret = val_put(&k->arena, *ret, atom_make(&k->arena, key), VAL_STR(value));
	}
	return 0;
}
