/* kubectl label and annotate */
#include <stdio.h>

#include "kubectl/commands.h"
#include "kubectl/write.h"
#include "machinery/patch.h"

struct label {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
	const char *selector, *field_selector, *revision;
	bool all, all_namespaces, overwrite, list, local;
};

#define OPTION(member) offsetof(struct label, member)

static const struct ktl_flag label_flags[] = {
	{ "all", 0, KTL_BOOL, OPTION(all), NULL, "All objects of the type", NULL },
	{ "all-namespaces", 'A', KTL_BOOL, OPTION(all_namespaces), NULL, "In all namespaces", NULL },
	{ "field-selector", 0, KTL_STRING, OPTION(field_selector), NULL, "Only objects with these fields", NULL },
	{ "list", 0, KTL_BOOL, OPTION(list), NULL, "Show what there is", NULL },
	{ "local", 0, KTL_BOOL, OPTION(local), NULL, "Only what is in files, without asking the server", NULL },
	{ "overwrite", 0, KTL_BOOL, OPTION(overwrite), NULL, "Change what has a value already", NULL },
	{ "resource-version", 0, KTL_STRING, OPTION(revision), NULL, "Only if it is this version", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels", NULL },
	{ 0 },
};

/* What differs between the two. */
struct subject {
	const char *word;            /* "label" */
	atom map;                    /* metadata.labels */
	const char *manager;
	bool annotate;
};

/* ---- pairs ---- */

static bool is_pair(const char *arg) { return strchr(arg, '=') || (arg[0] && arg[strlen(arg) - 1] == '-'); }

static int split_args(struct ktl *k, const struct subject *s, struct ktl_texts *ret_resources, struct ktl_texts *ret_pairs)
{
	size_t n = 0;
	while (n < k->args.n && !is_pair(k->args.v[n]))
		n++;
	for (size_t i = n; i < k->args.n; i++)
		if (!is_pair(k->args.v[i]))
			return ktl_fail(k, "all resources must be specified before %s changes: %s", s->word, k->args.v[i]);
	*ret_resources = (struct ktl_texts){ k->args.v, n };
	*ret_pairs = (struct ktl_texts){ k->args.v + n, k->args.n - n };
	return 0;
}

/* "a=b" puts, "a-" takes away. */
static bool parse_pair(const char *arg, str *ret_key, str *ret_value)
{
	if (str_cut(str_of(arg), '=', ret_key, ret_value))
		return true;
	*ret_key = str_head(str_of(arg), strlen(arg) - 1);
	return false;
}

static int check_pairs(struct ktl *k, const struct subject *s, const struct ktl_texts *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		str key, value;
		bool puts = parse_pair(pairs->v[i], &key, &value);
		if (!key.n)
			return ktl_fail(k, "invalid %s value: \"%s\"", s->word, pairs->v[i]);
		for (size_t j = 0; j < i; j++) {
			str other, rest;
			if (parse_pair(pairs->v[j], &other, &rest) != puts && str_eq(other, key))
				return ktl_fail(k, "can not both modify and remove %s in the same command", s->annotate ? "an annotation" : "a label");
		}
	}
	return 0;
}

/* ---- one object ---- */

static int change(struct ktl *k, const struct label *o, const struct subject *s, const struct ktl_texts *pairs, struct val old, struct val *ret)
{
	CLEANUP(buf_done) struct buf taken = BUF_INIT(1 << 20);
	struct val map = val_member(val_get(old, metadata), s->map);
	for (size_t i = 0; i < pairs->n; i++) {
		str key, value;
		if (!parse_pair(pairs->v[i], &key, &value)) {
			if (!s->annotate && !val_exists(val_find(map, key)))
				printf("label " STR_FMT " not found.\n", STR_ARG(ktl_quote(k, key)));
			map = val_put(&k->arena, map, atom_make(&k->arena, key), VAL_EMPTY);
			continue;
		}
		str had = val_as_str(val_find(map, key));
		bool free_for_all = s->annotate && str_eq(key, STR("kubernetes.io/change-cause"));
		if (!o->overwrite && !free_for_all && val_exists(val_find(map, key)) && !str_eq(had, value))
			buf_addf(&taken, "%s'" STR_FMT "' already has a value (" STR_FMT ")%s", taken.n && s->annotate ? "; " : "", STR_ARG(key), STR_ARG(had),
				 s->annotate ? "" : ", and --overwrite is false");
		map = val_put(&k->arena, map, atom_make(&k->arena, key), VAL_STR(value));
	}
	if (taken.n)
		return s->annotate ? ktl_fail(k, "--overwrite is false but found the following declared annotation(s): %s", taken.p) : ktl_fail(k, "%s", taken.p);
	*ret = val_put_path(&k->arena, old, (const atom[]){ A_metadata, s->map }, 2, map);
	if (o->revision[0])
		*ret = val_with(&k->arena, *ret, VAL_STR(str_of(o->revision)), metadata, resourceVersion);
	return 0;
}

static int update(struct ktl *k, const struct label *o, const struct subject *s, const struct ktl_write *w, struct ktl_printer *p,
		  const struct ktl_texts *pairs, const struct ktl_info *info)
{
	struct val changed, patch, result;
	struct err err = ERR_INIT;
	if (change(k, o, s, pairs, info->object, &changed) < 0)
		return -1;
	const char *done = "annotated";
	if (!s->annotate) {
		bool same = val_equal(info->object, changed);
		bool fewer = ktl_json(k, changed).n < ktl_json(k, info->object).n;
		done = same ? "not labeled" : !o->overwrite && fewer ? "unlabeled" : "labeled";
	}
	result = changed;
	if (w->dry != KTL_DRY_CLIENT && !o->local) {
		if (merge_patch_create(&k->arena, info->object, changed, &patch, &err) < 0)
			return ktl_fail_err(k, &err);
		if (ktl_patch_object(k, w, info, KTL_PATCH_MERGE, ktl_json(k, patch), STR_NONE, false, &result) < 0)
			return -1;
	}
	if (!o->list)
		return ktl_print_done(k, p, info->kind, result, done);
	return 0;
}

static void show_list(const struct subject *s, const struct ktl_info *info, bool several)
{
	struct val map = val_member(val_get(info->object, metadata), s->map);
	if (several)
		printf("Listing %ss for " STR_FMT "." STR_FMT "/" STR_FMT ":\n", s->word, STR_ARG(info->kind->kind), STR_ARG(info->kind->group), STR_ARG(info->name));
	VAL_EACH_MEMBER(m, map)
		printf(several ? " " STR_FMT "=" STR_FMT "\n" : STR_FMT "=" STR_FMT "\n", STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
}

/* ---- the commands ---- */

static int run(struct ktl *k, const struct label *o, const struct subject *s)
{
	struct ktl_texts resources = { 0 }, pairs = { 0 };
	struct ktl_builder b = {
		.files = &o->files, .selector = o->selector, .field_selector = o->field_selector, .all = o->all, .all_namespaces = o->all_namespaces,
		.keep_going = true, .latest = !o->local, .local = o->local,
	};
	struct ktl_infos infos;
	struct ktl_printer p;
	struct ktl_write w;
	if (split_args(k, s, &resources, &pairs) < 0 || ktl_printer_init(k, &o->print, false, &p) < 0 ||
	    ktl_write_init(k, &o->write, NULL, s->manager, &p, &w) < 0)
		return -1;
	if (!resources.n && ktl_no_files(&o->files))
		return ktl_fail(k, "one or more resources must be specified as <resource> <name> or <resource>/<name>");
	if (!pairs.n && !o->list)
		return ktl_fail(k, "at least one %s update is required", s->word);
	b.args = resources;
	if (check_pairs(k, s, &pairs) < 0 || ktl_namespace(k, &b.namespace, &b.enforce_namespace) < 0 || ktl_build(k, &b, &infos) < 0)
		return -1;
	for (size_t i = 0; i < infos.n; i++) {
		if (pairs.n)
			(void)update(k, o, s, &w, &p, &pairs, &infos.v[i]);
		if (o->list)
			show_list(s, &infos.v[i], infos.n > 1);
	}
	return k->n_failures ? -1 : 0;
}

static int run_label(struct ktl *k, void *options)
{
	return run(k, options, &(struct subject){ .word = "label", .map = A_labels, .manager = "kubectl-label" });
}

static int run_annotate(struct ktl *k, void *options)
{
	return run(k, options, &(struct subject){ .word = "annotation", .map = A_annotations, .manager = "kubectl-annotate", .annotate = true });
}

#define SETS \
	(const struct ktl_flag_set[]){ { label_flags, 0 }, { ktl_file_flags, OPTION(files) }, { ktl_print_flags, OPTION(print) }, \
				       { ktl_write_flags, OPTION(write) }, { ktl_record_flags, OPTION(record) }, { 0 } }

const struct ktl_command ktl_label = {
	.name = "label", .group = "Settings Commands", .summary = "Update the labels on a resource",
	.examples = "  kubectl label pod web tier=front\n  kubectl label --overwrite pods --all stage=test\n  kubectl label pod web tier-\n",
	.usage = "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]",
	.flags = SETS, .size = sizeof(struct label), .run = run_label,
};

const struct ktl_command ktl_annotate = {
	.name = "annotate", .group = "Settings Commands", .summary = "Update the annotations on a resource",
	.examples = "  kubectl annotate pod web description='the front'\n  kubectl annotate pod web description-\n",
	.usage = "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]",
	.flags = SETS, .size = sizeof(struct label), .run = run_annotate,
};
