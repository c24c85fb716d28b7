/* kubectl rollout history and undo: revisions are replica sets of a deployment, and ControllerRevisions of the others. */
#include <stdio.h>
#include <stdlib.h>

#include "codec/types.h"
#include "kubectl/describe.h"
#include "kubectl/rollout.h"
#include "machinery/patch.h"

#define CAUSE "kubernetes.io/change-cause"
#define REVISION "deployment.kubernetes.io/revision"

struct history {
	struct ktl_rollout common;
	int64_t revision;
};

static const struct ktl_flag history_flags[] = {
	{ "revision", 0, KTL_INT, offsetof(struct history, revision), NULL, "What this revision is", NULL },
	{ 0 },
};
static const struct ktl_flag undo_flags[] = {
	{ "to-revision", 0, KTL_INT, offsetof(struct history, revision), NULL, "The revision to go back to; 0: the one before", NULL },
	{ 0 },
};

/* ---- revisions ---- */

struct revision {
	int64_t number;
	struct val object;           /* the replica set, or the ControllerRevision */
};

static int by_number(const void *x, const void *y)
{
	const struct revision *a = x, *b = y;
	return (a->number > b->number) - (a->number < b->number);
}

static int controller_revisions(struct ktl *k, const struct ktl_info *info, struct val *ret)
{
	struct val_builder own = val_builder(&k->arena);
	struct val all;
	if (ktl_list(k, ktl_kind_of_type(k, TYPE(apps_v1, ControllerRevision)), info->namespace, ktl_selector(k, val_get(info->object, spec, selector)),
		     STR_NONE, &all) < 0)
		return -1;
	VAL_EACH(r, all)
		if (ktl_is_controlled_by(*r, val_str(info->object, metadata, uid)))
			val_add_item(&own, *r);
	*ret = val_end_list(&own);
	return 0;
}

static int revisions_of(struct ktl *k, const struct ktl_info *info, struct revision **ret, size_t *ret_n)
{
	bool deployment = ktl_workload_of(info) == KTL_DEPLOYMENT;
	struct val list;
	if (ktl_workload_of(info) == KTL_OTHER)
		return ktl_fail(k, "no history viewer has been implemented for " STR_FMT, STR_ARG(ktl_quote(k, info->kind->group.n ? arena_printf(&k->arena, STR_FMT "." STR_FMT, STR_ARG(info->kind->kind), STR_ARG(info->kind->group)) :
									    info->kind->kind)));
	if ((deployment ? ktl_replica_sets_of(k, info->object, &list) : controller_revisions(k, info, &list)) < 0)
		return -1;
	*ret = ARENA_ARRAY(&k->arena, struct revision, val_len(list) + 1);
	*ret_n = 0;
	VAL_EACH(o, list) {
		struct revision r = { .object = *o, .number = val_int(*o, revision) };
		if (deployment && !str_to_i64(val_as_str(val_find(val_get(*o, metadata, annotations), STR(REVISION))), &r.number))
			continue;
		(*ret)[(*ret_n)++] = r;
	}
	qsort(*ret, *ret_n, sizeof(**ret), by_number);
	return 0;
}

/* The template that a revision stands for; with_cause: and why it came, as an annotation. */
static int template_of(struct ktl *k, const struct ktl_info *info, const struct revision *r, bool with_cause, struct val *ret)
{
	struct err err = ERR_INIT;
	struct val whole;
	if (ktl_workload_of(info) == KTL_DEPLOYMENT) {
		str cause = val_as_str(val_find(val_get(r->object, metadata, annotations), STR(CAUSE)));
		*ret = val_get(r->object, spec, template);
		if (with_cause && cause.n)
			*ret = val_put_path(&k->arena, *ret, (const atom[]){ A_metadata, A_annotations, atom_make(&k->arena, STR(CAUSE)) }, 3, VAL_STR(cause));
		return 0;
	}
	if (strategic_patch_apply(&k->arena, info->object, val_get(r->object, data), info->kind->type, &whole, &err) < 0)
		return ktl_fail(k, "unable to parse history " STR_FMT, STR_ARG(val_str(r->object, metadata, name)));
	*ret = val_get(whole, spec, template);
	return 0;
}

/* ---- history ---- */

static str overview(struct ktl *k, const struct revision *list, size_t n)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(KTL_TEXT_MAX);
	struct ktl_tabs tabs;
	if (!n)
		return STR("No rollout history found.");
	ktl_tabs_for_description(&tabs);
	buf_add(&tabs.text, STR("REVISION\tCHANGE-CAUSE\n"));
	for (size_t i = 0; i < n; i++) {
		str cause = val_as_str(val_find(val_get(list[i].object, metadata, annotations), STR(CAUSE)));
		buf_addf(&tabs.text, "%lld\t" STR_FMT "\n", (long long)list[i].number, STR_ARG(ktl_or_none(cause)));
	}
	ktl_tabs_flush(&tabs, &out);
	ktl_tabs_done(&tabs);
	return arena_str(&k->arena, buf_str(&out));
}

static int show_history(struct ktl *k, const struct history *o, struct ktl_printer *p, const struct ktl_info *info)
{
	struct revision *list;
	struct val template;
	size_t n, at = 0;
	if (revisions_of(k, info, &list, &n) < 0)
		return -1;
	if (o->revision == 0)
		return ktl_print_done(k, p, info->kind, info->object, ktl_cstr(k, arena_join(&k->arena, STR("\n"), overview(k, list, n))));
	while (at < n && list[at].number != o->revision)
		at++;
	if (at == n)
		return ktl_fail(k, "unable to find the specified revision");
	if (template_of(k, info, &list[at], true, &template) < 0)
		return -1;
	const char *text = arena_printf(&k->arena, "with revision #%lld\n" STR_FMT, (long long)o->revision, STR_ARG(ktl_template_text(k, template))).p;
	return ktl_print_done(k, p, info->kind, info->object, text);
}

static int run_history(struct ktl *k, void *options)
{
	const struct history *o = options;
	struct ktl_infos infos;
	struct ktl_printer p;
	if (o->revision < 0)
		return ktl_fail(k, "revision must be a positive integer: %lld", (long long)o->revision);
	if (ktl_printer_init(k, &o->common.print, false, &p) < 0 || ktl_rollout_infos(k, &o->common, true, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++)
		(void)show_history(k, o, &p, &infos.v[i]);
	return k->n_failures ? -1 : 0;
}

const struct ktl_command ktl_rollout_history = {
	.name = "history", .summary = "View rollout history", .usage = "rollout history (TYPE NAME | TYPE/NAME) [flags] [options]",
	.flags = (const struct ktl_flag_set[]){ { history_flags, 0 }, KTL_ROLLOUT_ROWS, { 0 } }, .size = sizeof(struct history), .run = run_history,
};

/* ---- undo ---- */

/* The revision to go back to: its place in the list; -1: noted. */
static ptrdiff_t target_of(struct ktl *k, const struct revision *list, size_t n, int64_t wanted, const struct ktl_info *info)
{
	if (wanted == 0 && n >= 2)
		return (ptrdiff_t)n - 2;
	if (wanted == 0 && ktl_workload_of(info) != KTL_DEPLOYMENT)
		return ktl_fail(k, "no last revision to roll back to");
	if (wanted == 0)
		return ktl_fail(k, "no rollout history found for " STR_FMT " " STR_FMT, STR_ARG(ktl_lower(k, info->kind->kind)), STR_ARG(ktl_quote(k, info->name)));
	for (size_t i = 0; i < n; i++)
		if (list[i].number == wanted)
			return (ptrdiff_t)i;
	return ktl_fail(k, "unable to find specified revision %lld in history", (long long)wanted);
}

/* The replica set's annotations, but for those that belong to it or to the deployment alone. */
static struct val annotations_back(struct ktl *k, struct val deployment, struct val rs)
{
	static const char *const own[] = { "kubectl.kubernetes.io/last-applied-configuration", REVISION, "deployment.kubernetes.io/revision-history",
					   "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
					   "deprecated.deployment.rollback.to" };
	struct val notes = VAL_EMPTY_OBJECT, has = val_get(deployment, metadata, annotations);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		notes = val_put(&k->arena, notes, atom_make(&k->arena, str_of(own[i])), val_find(has, str_of(own[i])));
	VAL_EACH_MEMBER(m, val_get(rs, metadata, annotations)) {
		bool skip = false;
		for (size_t i = 0; i < ARRAY_LEN(own); i++)
			skip |= str_eq(atom_str(m->key), str_of(own[i]));
		if (!skip)
			notes = val_put(&k->arena, notes, m->key, m->val);
	}
	return notes;
}

static int undo_deployment(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, const struct revision *to, const char **ret_done)
{
	struct arena *a = &k->arena;
	struct val template = val_get(to->object, spec, template), result;
	if (val_bool(info->object, spec, paused))
		return ktl_fail(k, "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again");
	if (ktl_same_template(k, template, val_get(info->object, spec, template))) {
		*ret_done = arena_printf(a, "skipped rollback (current template already matches revision %lld)", (long long)to->number).p;
		return 0;
	}
	template = val_put_path(a, template, (const atom[]){ A_metadata, A_labels, atom_make(a, STR("pod-template-hash")) }, 3, VAL_EMPTY);
	struct val patch = LIST(a, OBJECT(a, F(op, VAL_LIT("replace")), F(path, VAL_LIT("/spec/template")), F(value, template)),
				OBJECT(a, F(op, VAL_LIT("replace")), F(path, VAL_LIT("/metadata/annotations")), F(value, annotations_back(k, info->object, to->object))));
	if (ktl_patch_object(k, w, info, KTL_PATCH_JSON, ktl_json(k, patch), STR_NONE, false, &result) < 0)
		return ktl_fail_before(k, "failed restoring revision %lld: ", (long long)to->number);
	return 0;
}

static int undo_other(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, const struct revision *to, const char **ret_done)
{
	struct val template, result;
	if (template_of(k, info, to, false, &template) < 0)
		return -1;
	if (val_equal(template, val_get(info->object, spec, template))) {
		*ret_done = arena_printf(&k->arena, "skipped rollback (current template already matches revision %lld)", (long long)to->number).p;
		return 0;
	}
	if (ktl_patch_object(k, w, info, KTL_PATCH_STRATEGIC, ktl_json(k, val_get(to->object, data)), STR_NONE, false, &result) < 0)
		return ktl_fail_before(k, "failed restoring revision %lld: ", (long long)to->number);
	return 0;
}

static int undo(struct ktl *k, const struct history *o, const struct ktl_write *w, struct ktl_printer *p, const struct ktl_info *info)
{
	const char *done = "rolled back";
	struct revision *list;
	struct val template;
	ptrdiff_t at;
	size_t n;
	if (last_applied_get(info->object).n)
		fprintf(stderr, "Warning: resource " STR_FMT "/" STR_FMT " was previously managed with 'kubectl apply'. Rolling back will not update the kubectl.kubernetes.io/last-applied-configuration annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.\n",
			STR_ARG(info->kind->resource), STR_ARG(info->name));
	if (revisions_of(k, info, &list, &n) < 0 || (at = target_of(k, list, n, o->revision, info)) < 0)
		return -1;
	if (w->dry == KTL_DRY_CLIENT) {
		if (template_of(k, info, &list[at], false, &template) < 0)
			return -1;
		return ktl_print_done(k, p, info->kind, info->object, ktl_cstr(k, ktl_template_text(k, template)));
	}
	bool deployment = ktl_workload_of(info) == KTL_DEPLOYMENT;
	if ((deployment ? undo_deployment : undo_other)(k, w, info, &list[at], &done) < 0)
		return -1;
	return ktl_print_done(k, p, info->kind, info->object, done);
}

static int run_undo(struct ktl *k, void *options)
{
	const struct history *o = options;
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	if (ktl_printer_init(k, &o->common.print, false, &p) < 0 || ktl_write_init(k, &o->common.write, NULL, "", &p, &w) < 0 ||
	    ktl_rollout_infos(k, &o->common, true, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++)
		(void)undo(k, o, &w, &p, &infos.v[i]);
	return k->n_failures ? -1 : 0;
}

const struct ktl_command ktl_rollout_undo = {
	.name = "undo", .summary = "Undo a previous rollout", .usage = "rollout undo (TYPE NAME | TYPE/NAME) [flags] [options]",
	.flags = (const struct ktl_flag_set[]){ { undo_flags, 0 }, KTL_ROLLOUT_ROWS, { ktl_write_flags, offsetof(struct ktl_rollout, write) }, { 0 } }, .size = sizeof(struct history), .run = run_undo,
};
