/* kubectl get: one request per type, mostly; what people see is a table that the server made. */
#include "kubectl/get.h"

#include <stdio.h>

#include "kubectl/commands.h"

#define OPTION(member) offsetof(struct ktl_get, member)

static const struct ktl_flag get_flags[] = {
	{ "all-namespaces", 'A', KTL_BOOL, OPTION(all_namespaces), NULL, "In all namespaces", NULL },
	{ "chunk-size", 0, KTL_INT, OPTION(chunk), "500", "Ask for so many objects at a time; 0: for all", NULL },
	{ "field-selector", 0, KTL_STRING, OPTION(field_selector), NULL, "Only objects with these fields, as status.phase=Running", NULL },
	{ "ignore-not-found", 0, KTL_BOOL, OPTION(ignore_not_found), NULL, "What does not exist is no error", NULL },
	{ "label-columns", 'L', KTL_LIST, OPTION(label_columns), NULL, "Labels that get columns of their own", NULL },
	{ "no-headers", 0, KTL_BOOL, OPTION(no_headers), NULL, "No headers above columns", NULL },
	{ "output-watch-events", 0, KTL_BOOL, OPTION(output_events), NULL, "Show what happened, too, when watching", NULL },
	{ "raw", 0, KTL_STRING, OPTION(raw), NULL, "A path of the server to ask for", NULL },
	{ "selector", 'l', KTL_STRING, OPTION(selector), NULL, "Only objects with these labels, as app=web,tier!=db", NULL },
	{ "server-print", 0, KTL_BOOL, OPTION(server_print), "true", "The server makes the table", NULL },
	{ "show-kind", 0, KTL_BOOL, OPTION(show_kind), NULL, "Names with their types", NULL },
	{ "show-labels", 0, KTL_BOOL, OPTION(show_labels), NULL, "All labels in a last column", NULL },
	{ "sort-by", 0, KTL_STRING, OPTION(sort_by), NULL, "Sorted by this field, as .metadata.creationTimestamp", NULL },
	{ "subresource", 0, KTL_STRING, OPTION(subresource), NULL, "A subresource of the object: status, scale", NULL },
	{ "watch", 'w', KTL_BOOL, OPTION(watch), NULL, "Go on with changes", NULL },
	{ "watch-only", 0, KTL_BOOL, OPTION(watch_only), NULL, "Only changes", NULL },
	{ 0 },
};

#define TABLE_ACCEPT "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

static bool is_human(const struct ktl_printer *p) { return p->format == KTL_HUMAN || p->format == KTL_WIDE; }

static int make_builder(struct ktl *k, const struct ktl_get *g, bool human, struct ktl_builder *ret)
{
	bool explicit;
	str namespace;
	if (ktl_namespace(k, &namespace, &explicit) < 0)
		return -1;
	*ret = (struct ktl_builder){
		.files = &g->files, .args = k->args, .namespace = namespace, .enforce_namespace = explicit && !g->all_namespaces,
		.selector = g->selector, .field_selector = g->field_selector, .all_namespaces = g->all_namespaces, .types_alone = true,
		.keep_going = true, .latest = true, .chunk = g->sort_by[0] ? 0 : g->chunk, .subresource = str_of(g->subresource),
	};
	if (human && g->server_print) {
		ret->accept = STR(TABLE_ACCEPT);
		ret->query = g->sort_by[0] ? STR("includeObject=Object") : STR_NONE;
	}
	return 0;
}

struct ktl_table_options ktl_get_table_options(const struct ktl_get *g, const struct ktl_printer *p)
{
	return (struct ktl_table_options){
		.no_headers = g->no_headers, .wide = p->format == KTL_WIDE, .with_kind = g->show_kind, .show_labels = g->show_labels,
		.label_columns = g->label_columns,
	};
}

/* ---- for people ---- */

static bool several_kinds(const struct ktl_infos *infos)
{
	for (size_t i = 1; i < infos->n; i++)
		if (infos->v[i].kind != infos->v[0].kind)
			return true;
	return false;
}

/* As kubectl, what nobody has is no reason to complain, but then nothing is shown. */
static int sort_infos(struct ktl *k, const struct ktl_get *g, struct ktl_infos *infos)
{
	for (size_t i = 0; i < infos->n; i++) {
		struct val rows, *o = &infos->v[i].object;
		if (!str_eq(val_str(*o, kind), STR("Table")))
			continue;
		int r = ktl_sort(k, g->sort_by, val_get(*o, rows), true, &rows);
		if (r == KTL_UNSORTABLE)
			return r;
		if (r < 0) {
			ktl_forgive(k);
			rows = VAL_EMPTY_LIST;
		}
		*o = val_with(&k->arena, *o, rows, rows);
	}
	return 0;
}

static void put(struct ktl_tabs *tabs, bool *separate, bool *written)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	ktl_tabs_flush(tabs, &b);
	if (b.n && *separate)
		(void)fputc('\n', stdout);
	if (b.n)
		*separate = false;
	*written |= b.n > 0;
	(void)fwrite(b.n ? b.p : "", 1, b.n, stdout);
}

static void print_tables(struct ktl *k, const struct ktl_get *g, const struct ktl_printer *p, const struct ktl_infos *infos, bool *ret_written)
{
	struct ktl_table_printer printer = { 0 };
	const struct ktl_kind *last = NULL;
	struct ktl_tabs tabs;
	bool separate = false;
	ktl_tabs_for_table(&tabs);
	for (size_t i = 0; i < infos->n; i++) {
		const struct ktl_info *info = &infos->v[i];
		if (!last || last != info->kind) {
			put(&tabs, &separate, ret_written);
			ktl_tabs_forget(&tabs);
			separate = last && !g->no_headers && *ret_written;
			printer = (struct ktl_table_printer){ .options = ktl_get_table_options(g, p) };
			printer.options.with_namespace = g->all_namespaces && info->kind->namespaced;
			printer.options.with_kind |= several_kinds(infos);
			printer.options.kind = info->kind;
			last = info->kind;
		}
		ktl_table_print(k, &printer, info->object, STR_NONE, &tabs);
	}
	put(&tabs, &separate, ret_written);
	ktl_tabs_done(&tabs);
}

static int get_human(struct ktl *k, const struct ktl_get *g, const struct ktl_printer *p, const struct ktl_builder *b)
{
	struct ktl_infos infos;
	bool written = false, namespaced = !g->all_namespaces;
	if (ktl_build(k, b, &infos) < 0)
		return -1;
	if (g->sort_by[0] && sort_infos(k, g, &infos) < 0)
		return -1;
	print_tables(k, g, p, &infos, &written);
	for (size_t i = 0; i < infos.n; i++)
		namespaced &= infos.v[i].kind->namespaced;
	if (written || g->ignore_not_found || k->n_failures)
		return 0;
	if (namespaced)
		fprintf(stderr, "No resources found in " STR_FMT " namespace.\n", STR_ARG(b->namespace));
	else
		fprintf(stderr, "No resources found\n");
	return 0;
}

/* ---- for programs ---- */

static int get_generic(struct ktl *k, const struct ktl_get *g, struct ktl_printer *p, const struct ktl_builder *b)
{
	struct val_builder items = val_builder(&k->arena);
	struct arena *a = &k->arena;
	struct ktl_infos infos;
	if (ktl_build(k, b, &infos) < 0)
		return -1;
	if (infos.single && (infos.n == 1 || k->n_failures))
		return infos.n == 1 ? ktl_print(k, p, infos.v[0].kind, infos.v[0].object) : -1;
	if (!infos.n && g->ignore_not_found)
		return 0;
	for (size_t i = 0; i < infos.n; i++)
		val_add_item(&items, infos.v[i].object);
	struct val list = val_end_list(&items);
	if (g->sort_by[0] && ktl_sort(k, g->sort_by, list, false, &list) < 0)
		return -1;
	return ktl_print(k, p, NULL, OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(items, list), F(kind, VAL_LIT("List")),
					    F(metadata, OBJECT(a, F(resourceVersion, VAL_LIT(""))))));
}

/* ---- the command ---- */

static int get_raw(struct ktl *k, const struct ktl_get *g)
{
	if (k->args.n)
		return ktl_fail(k, "arguments may not be passed when --raw is specified");
	if (g->watch || g->watch_only || g->selector[0])
		return ktl_fail(k, "--raw may not be specified with other flags that filter the server request or alter the output");
	if (g->print.output[0])
		return ktl_fail(k, "--raw and --output are mutually exclusive");
	return ktl_raw(k, STR("GET"), g->raw, NULL);
}

static int check(struct ktl *k, const struct ktl_get *g)
{
	if (g->show_labels && g->print.output[0] && !ktl_is(g->print.output, "wide"))
		return ktl_fail(k, "--show-labels option cannot be used with %s printer", g->print.output);
	if (g->output_events && !g->watch && !g->watch_only)
		return ktl_fail(k, "--output-watch-events option can only be used with --watch or --watch-only");
	if (g->watch && g->sort_by[0])
		fprintf(stderr, "warning: --watch requested, --sort-by will be ignored for watch events received\n");
	else if (g->watch_only && g->sort_by[0])
		fprintf(stderr, "warning: --watch-only requested, --sort-by will be ignored\n");
	if (!g->watch && !g->watch_only && !k->args.n && ktl_no_files(&g->files)) {
		fprintf(stderr, "You must specify the type of resource to get. Use \"kubectl api-resources\" for a complete list of supported resources.\n\n");
		return ktl_fail_usage(k, "Required resource not specified.\nUse \"kubectl explain <resource>\" for a detailed description of that resource (e.g. kubectl explain pods).");
	}
	return 0;
}

static int run(struct ktl *k, void *options)
{
	const struct ktl_get *g = options;
	CLEANUP(ktl_printer_done) struct ktl_printer p = { 0 };
	struct ktl_builder b;
	if (g->raw[0])
		return get_raw(k, g);
	if (check(k, g) < 0)
		return -1;
	if (ktl_printer_init(k, &g->print, true, &p) < 0 || make_builder(k, g, is_human(&p), &b) < 0)
		return -1;
	p.no_headers = g->no_headers;
	if (g->watch || g->watch_only)
		return ktl_get_watch(k, g, &p, &b);
	int r = is_human(&p) ? get_human(k, g, &p, &b) : get_generic(k, g, &p, &b);
	ktl_print_end(&p);
	if (g->ignore_not_found)
		ktl_forgive_not_found(k);
	return r < 0 && k->n_failures ? -1 : 0;
}

const struct ktl_command ktl_get_command = {
	.name = "get",
	.group = "Basic Commands (Intermediate)",
	.summary = "Display one or many resources",
	.manual = "Shows objects, as a table of what matters most or in other forms. Types have names as pods, po, deployments.apps; kubectl\n"
		  "api-resources lists them. Without a name all objects of the namespace are shown, or those that a selector chooses.",
	.examples = "  kubectl get pods\n  kubectl get deployment/web -o yaml\n  kubectl get pods,services -A -l app=web\n"
		    "  kubectl get pod web -o jsonpath='{.status.podIP}'\n  kubectl get pods --watch\n",
	.usage = "get [(-o|--output=)FORM] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags] [options]",
	.flags = (const struct ktl_flag_set[]){
		{ get_flags, 0 }, { ktl_print_flags, OPTION(print) }, { ktl_file_flags, OPTION(files) }, { 0 },
	},
	.size = sizeof(struct ktl_get),
	.run = run,
};
