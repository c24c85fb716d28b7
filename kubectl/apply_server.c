/*
 * kubectl apply --server-side. An object that was applied by the client before has its fields under the name of an updater; so, behind the
 * first apply, the entries of that updater are merged into the one of the applier, and it is applied once more. None of this happens for
 * objects that have no such entries: one request, then.
 */
#include <stdio.h>

#include "kubectl/apply.h"
#include "machinery/field_set.h"
#include "machinery/patch.h"

#define CONFLICT_HELP \
	"\nPlease review the fields above--they currently have other managers. Here\n" \
	"are the ways you can resolve this warning:\n" \
	"* If you intend to manage all of these fields, please re-run the apply\n" \
	"  command with the `--force-conflicts` flag.\n" \
	"* If you do not intend to manage all of the fields, please edit your\n" \
	"  manifest to remove references to the fields that should keep their\n" \
	"  current managers.\n" \
	"* You may co-own fields by updating your manifest to match the existing\n" \
	"  value; in this case, you'll become the manager if the other manager(s)\n" \
	"  stop managing the field (remove it from their configuration).\n" \
	"See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts"

enum { TRIES = 5 };

static int send(struct ktl_apply_job *j, const struct ktl_info *info, const struct ktl_write *w, struct val *ret)
{
	return ktl_patch_object(j->k, w, info, KTL_PATCH_APPLY, ktl_json(j->k, info->object), str_of(j->o->subresource), j->o->force_conflicts, ret);
}

/* ---- from the client's way to the server's ---- */

static bool is_entry(struct val entry, str manager, const char *operation)
{
	return str_eq(val_str(entry, manager), manager) && str_eq(val_str(entry, operation), str_of(operation)) && !val_str(entry, subresource).n;
}

static bool fields_of(struct ktl *k, struct val entry, struct field_set *ret)
{
	return field_set_parse(&k->arena, ktl_json(k, val_get(entry, fieldsV1)), ret, NULL) == 0;
}

/* Whether who did this operation owns the annotation. */
static bool owns_last_applied(struct ktl *k, struct val entry, const char *operation)
{
	const struct path_element path[] = {
		path_field(A_metadata), path_field(A_annotations), path_field(atom_make(&k->arena, STR(KTL_LAST_APPLIED))),
	};
	struct field_set fields;
	return str_eq(val_str(entry, operation), str_of(operation)) && fields_of(k, entry, &fields) && field_set_has(fields, path, ARRAY_LEN(path));
}

/* Entry i of a list with the fields of another one added. */
static struct val merged(struct ktl *k, struct val list, uint32_t i, struct val other)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	struct field_set x, y;
	struct val fields;
	if (!fields_of(k, val_at(list, i), &x) || !fields_of(k, other, &y))
		return list;
	field_set_encode(&b, field_set_union(&k->arena, x, y));
	if (ktl_parse_json(k, arena_str(&k->arena, buf_str(&b)), &fields, NULL) < 0)
		return list;
	return val_list_set(&k->arena, list, i, val_put(&k->arena, val_at(list, i), A_fieldsV1, fields));
}

/* The entries with those of an updater made those of the applier. */
static struct val upgrade(struct ktl *k, struct val list, str updater, str applier)
{
	struct val_builder rest = val_builder(&k->arena);
	uint32_t at = 0, n = val_len(list);
	while (at < n && !is_entry(val_at(list, at), applier, "Apply"))
		at++;
	if (at == n) {
		for (at = 0; at < n && !is_entry(val_at(list, at), updater, "Update"); at++)
			;
		if (at == n)
			return list;
		struct val entry = val_put(&k->arena, val_at(list, at), A_operation, VAL_LIT("Apply"));
		list = val_list_set(&k->arena, list, at, val_put(&k->arena, entry, A_manager, VAL_STR(applier)));
	}
	for (uint32_t i = 0; i < n; i++)
		if (is_entry(val_at(list, i), updater, "Update") &&
		    str_eq(val_str(val_at(list, i), apiVersion), val_str(val_at(list, at), apiVersion))) {
			list = merged(k, list, at, val_at(list, i));
			break;
		}
	VAL_EACH(e, list)
		if (!is_entry(*e, updater, "Update"))
			val_add_item(&rest, *e);
	return val_end_list(&rest);
}

/* (suspends) Keeps the annotation, which otherwise nobody would own any more. */
static int keep_last_applied(struct ktl_apply_job *j, const struct ktl_info *info, struct val *object)
{
	struct arena *a = &j->k->arena;
	struct ktl_write w = j->w;
	struct ktl_info only = *info;
	str text = last_applied_get(*object);
	if (!str_eq(j->w.manager, STR("kubectl")) || !text.n)
		return 0;
	VAL_EACH(e, val_get(*object, metadata, managedFields))
		if (owns_last_applied(j->k, *e, "Apply"))
			return 0;
	w.manager = STR("kubectl-last-applied");
	only.object = OBJECT(a, F(apiVersion, val_get(*object, apiVersion)), F(kind, val_get(*object, kind)),
			     F(metadata, OBJECT(a, F(name, val_get(*object, metadata, name)), F(namespace, val_get(*object, metadata, namespace)))));
	only.object = last_applied_set(a, only.object, text);
	return ktl_patch_object(j->k, &w, &only, KTL_PATCH_APPLY, ktl_json(j->k, only.object), STR_NONE, false, object);
}

/* (suspends) 1: entries were changed, and the object is to be applied again. */
static int migrate(struct ktl_apply_job *j, const struct ktl_info *info, struct val *object)
{
	struct ktl *k = j->k;
	struct arena *a = &k->arena;
	struct ktl_info live = *info;
	struct val updaters = VAL_EMPTY_LIST;
	VAL_EACH(e, val_get(*object, metadata, managedFields))
		if (owns_last_applied(k, *e, "Update"))
			updaters = val_list_append(a, updaters, val_get(*e, manager));
	if (!val_len(updaters))
		return 0;
	for (int i = 0;; i++) {
		struct val now = val_get(*object, metadata, managedFields), then = now;
		VAL_EACH(u, updaters)
			then = upgrade(k, then, val_as_str(*u), j->w.manager);
		if (val_equal(now, then))
			return 0;
		/* The revision makes it a conflict when the entries have changed since. */
		struct val patch = LIST(a, OBJECT(a, F(op, VAL_LIT("replace")), F(path, VAL_LIT("/metadata/managedFields")), F(value, then)),
					OBJECT(a, F(op, VAL_LIT("replace")), F(path, VAL_LIT("/metadata/resourceVersion")),
					       F(value, val_get(*object, metadata, resourceVersion))));
		if (ktl_patch_object(k, &j->w, info, KTL_PATCH_JSON, ktl_json(k, patch), STR_NONE, false, object) == 0)
			return 1;
		if (i + 1 >= TRIES || !ktl_failed_because(k, "Conflict"))
			return -1;
		ktl_forgive(k);
		if (ktl_fetch(k, &live) < 0)
			return -1;
		*object = live.object;
	}
}

/* What goes wrong here is told and forgiven: the object has been applied. */
static void excuse(struct ktl *k, const char *what)
{
	fprintf(stderr, "Warning: %s This is non-fatal and will be retried next time you apply. Error: " STR_FMT "\n", what,
		STR_ARG(ktl_last_failure(k)->text));
	ktl_forgive(k);
}

int ktl_apply_server_side(struct ktl_apply_job *j, const struct ktl_info *info)
{
	struct ktl *k = j->k;
	struct val result, again;
	int r;
	if (send(j, info, &j->w, &result) < 0) {
		if (!ktl_failed_because(k, "Conflict"))
			return -1;
		(void)ktl_fail_plainly(k, "");
		ktl_last_failure(k)->text = arena_join(&k->arena, ktl_last_failure(k)->text, STR(CONFLICT_HELP));
		return -1;
	}
	if (keep_last_applied(j, info, &result) < 0)
		excuse(k, "failed to migrate " KTL_LAST_APPLIED " for Server-Side Apply.");
	else if ((r = migrate(j, info, &result)) < 0)
		excuse(k, "server rejected managed fields migration to Server-Side Apply.");
	else if (r > 0 && send(j, info, &j->w, &again) == 0)
		result = again;
	else if (r > 0)
		excuse(k, "failed to re-apply configuration after performing Server-Side Apply migration.");
	return ktl_apply_report(j, info, result, "serverside-applied");
}
