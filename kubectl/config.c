/* kubectl config: what is in the kubeconfig, and which context is used. */
#include <stdio.h>

#include "kubectl/commands.h"
#include "kubectl/print.h"

static struct val named(struct val list, str name)
{
	VAL_EACH(item, list)
		if (str_eq(val_str(*item, name), name))
			return *item;
	return VAL_EMPTY;
}

static int by_name(const void *x, const void *y) { return str_cmp(val_str(*(const struct val *)x, name), val_str(*(const struct val *)y, name)); }

static str current(const struct ktl *k, struct val document)
{
	return k->globals.context[0] ? str_of(k->globals.context) : val_str(document, current_context);
}

/* ---- view ---- */

struct view {
	struct ktl_print_flags print;
	bool flatten, merge, minify, raw;
};

static const struct ktl_flag view_flags[] = {
	{ "flatten", 0, KTL_BOOL, offsetof(struct view, flatten), NULL, NULL, NULL },
	{ "merge", 0, KTL_BOOL, offsetof(struct view, merge), "true", NULL, NULL },
	{ "minify", 0, KTL_BOOL, offsetof(struct view, minify), NULL, "Only what the current context uses", NULL },
	{ "raw", 0, KTL_BOOL, offsetof(struct view, raw), NULL, "With certificates and secrets", NULL },
	{ 0 },
};

static struct val hidden(struct ktl *k, struct val v, atom what, const atom *keys, const char *const *words, size_t n)
{
	struct val_builder b = val_builder(&k->arena);
	VAL_EACH(item, v) {
		struct val inner = val_member(*item, what);
		for (size_t i = 0; i < n; i++)
			if (val_exists(val_member(inner, keys[i])))
				inner = val_put(&k->arena, inner, keys[i], VAL_STR(str_of(words[i])));
		val_add_item(&b, val_put(&k->arena, *item, what, inner));
	}
	return val_end_list(&b);
}

static struct val without_secrets(struct ktl *k, struct val d)
{
	static const atom cluster[] = { A_certificate_authority_data };
	static const atom user[] = { A_client_certificate_data, A_client_key_data, A_token, A_password };
	static const char *const omitted[] = { "DATA+OMITTED", "DATA+OMITTED", "REDACTED", "REDACTED" };
	d = val_put(&k->arena, d, A_clusters, hidden(k, val_get(d, clusters), A_cluster, cluster, omitted, ARRAY_LEN(cluster)));
	return val_put(&k->arena, d, A_users, hidden(k, val_get(d, users), A_user, user, omitted, ARRAY_LEN(user)));
}

static struct val one_or_none(struct ktl *k, struct val list, str name)
{
	struct val item = named(list, name);
	return val_exists(item) ? LIST(&k->arena, item) : VAL_NULL_VALUE;
}

static int minify(struct ktl *k, struct val *d)
{
	str name = current(k, *d);
	struct val context = named(val_get(*d, contexts), name);
	if (!name.n)
		return ktl_fail(k, "current-context must exist in order to minify");
	if (!val_exists(context))
		return ktl_fail(k, "cannot locate context " STR_FMT, STR_ARG(name));
	*d = val_with(&k->arena, *d, one_or_none(k, val_get(*d, clusters), val_str(context, context, cluster)), clusters);
	*d = val_with(&k->arena, *d, one_or_none(k, val_get(*d, users), val_str(context, context, user)), users);
	*d = val_with(&k->arena, *d, LIST(&k->arena, context), contexts);
	*d = val_with(&k->arena, *d, VAL_STR(name), current_context);
	return 0;
}

/* Lists that are missing are null, as Go writes them. */
static struct val or_null(struct val v) { return val_len(v) ? v : VAL_NULL_VALUE; }

static int run_view(struct ktl *k, void *options)
{
	struct view *o = options;
	struct ktl_printer p;
	struct val d;
	if (!o->print.output[0])
		o->print.output = "yaml";
	if (ktl_printer_init(k, &o->print, false, &p) < 0 || ktl_document(k, &d) < 0 || (o->minify && minify(k, &d) < 0))
		return -1;
	if (!o->raw && !o->flatten)
		d = without_secrets(k, d);
	str now = val_str(d, current_context);
	struct val shown = OBJECT(&k->arena, F(kind, VAL_LIT("Config")), F(apiVersion, VAL_LIT("v1")), F(preferences, val_get(d, preferences)),
				  F(clusters, or_null(ktl_sorted_list(k, val_get(d, clusters), by_name))), F(users, or_null(ktl_sorted_list(k, val_get(d, users), by_name))),
				  F(contexts, or_null(ktl_sorted_list(k, val_get(d, contexts), by_name))), F(current_context, VAL_STR(now)));
	if (val_has(shown, preferences) && !val_len(val_get(shown, preferences)))
		shown = val_without(&k->arena, shown, preferences);
	return ktl_print(k, &p, NULL, shown);
}

static const struct ktl_command config_view = {
	.name = "view", .summary = "Display merged kubeconfig settings or a specified kubeconfig file", .usage = "config view [flags] [options]",
	.flags = (const struct ktl_flag_set[]){ { view_flags, 0 }, { ktl_print_flags, offsetof(struct view, print) }, { 0 } },
	.size = sizeof(struct view), .run = run_view,
};

/* ---- lists ---- */

struct contexts {
	const char *output;
	bool no_headers;
};

static const struct ktl_flag contexts_flags[] = {
	{ "no-headers", 0, KTL_BOOL, offsetof(struct contexts, no_headers), NULL, "No headers above columns", NULL },
	{ "output", 'o', KTL_STRING, offsetof(struct contexts, output), NULL, "name", NULL },
	{ 0 },
};

static bool asked_for(const struct ktl *k, str name)
{
	for (size_t i = 0; i < k->args.n; i++)
		if (str_eq(name, str_of(k->args.v[i])))
			return true;
	return k->args.n == 0;
}

static int run_get_contexts(struct ktl *k, void *options)
{
	const struct contexts *o = options;
	CLEANUP(buf_done) struct buf out = BUF_INIT(KTL_TEXT_MAX);
	CLEANUP(ktl_tabs_done) struct ktl_tabs tabs;
	bool names = ktl_is(o->output, "name");
	struct val d;
	ktl_tabs_for_table(&tabs);
	if (o->output[0] && !names)
		return ktl_fail(k, "output must be one of '' or 'name': %s", o->output);
	if (ktl_document(k, &d) < 0)
		return -1;
	struct val list = ktl_sorted_list(k, val_get(d, contexts), by_name);
	for (size_t i = 0; i < k->args.n; i++)
		if (!val_exists(named(list, str_of(k->args.v[i]))))
			(void)ktl_fail(k, "context %s not found", k->args.v[i]);
	if (!names && !o->no_headers)
		buf_add(&tabs.text, STR("CURRENT\tNAME\tCLUSTER\tAUTHINFO\tNAMESPACE\n"));
	VAL_EACH(c, list) {
		str name = val_str(*c, name);
		if (!asked_for(k, name))
			continue;
		if (names)
			buf_addf(&tabs.text, STR_FMT "\n", STR_ARG(name));
		else
			buf_addf(&tabs.text, "%s\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\t" STR_FMT "\n", str_eq(name, val_str(d, current_context)) ? "*" : "",
				 STR_ARG(name), STR_ARG(val_str(*c, context, cluster)), STR_ARG(val_str(*c, context, user)),
				 STR_ARG(val_str(*c, context, namespace)));
	}
	ktl_tabs_flush(&tabs, &out);
	printf(STR_FMT, STR_ARG(buf_str(&out)));
	return 0;
}

static const struct ktl_command config_get_contexts = {
	.name = "get-contexts", .summary = "Describe one or many contexts", .usage = "config get-contexts [(-o|--output=)name)] [options]",
	.flags = (const struct ktl_flag_set[]){ { contexts_flags, 0 }, { 0 } }, .size = sizeof(struct contexts), .run = run_get_contexts,
};

static int print_names(struct ktl *k, atom what)
{
	struct val d;
	if (ktl_document(k, &d) < 0)
		return -1;
	printf("NAME\n");
	VAL_EACH(item, ktl_sorted_list(k, val_member(d, what), by_name))
		printf(STR_FMT "\n", STR_ARG(val_str(*item, name)));
	return 0;
}

static int run_get_clusters(struct ktl *k, void *options)
{
	(void)options;
	return print_names(k, A_clusters);
}

static int run_get_users(struct ktl *k, void *options)
{
	(void)options;
	return print_names(k, A_users);
}

static const struct ktl_command config_get_clusters = {
	.name = "get-clusters", .summary = "Display clusters defined in the kubeconfig", .usage = "config get-clusters [options]", .run = run_get_clusters,
};
static const struct ktl_command config_get_users = {
	.name = "get-users", .summary = "Display users defined in the kubeconfig", .usage = "config get-users [options]", .run = run_get_users,
};

static int run_current(struct ktl *k, void *options)
{
	struct val d;
	(void)options;
	if (ktl_document(k, &d) < 0)
		return -1;
	str name = val_str(d, current_context);
	if (!name.n)
		return ktl_fail(k, "current-context is not set");
	printf(STR_FMT "\n", STR_ARG(name));
	return 0;
}

static const struct ktl_command config_current = {
	.name = "current-context", .summary = "Display the current-context", .usage = "config current-context [options]", .run = run_current,
};

/* ---- changes ---- */

static const char *given_path(const struct ktl *k) { return k->globals.kubeconfig[0] ? k->globals.kubeconfig : NULL; }

/* The one file that changes go to: others that were merged stay as they are. */
static int load_one(struct ktl *k, const char *path, struct val *ret)
{
	struct err err = ERR_INIT;
	int r = kubeconfig_load(&k->arena, path, ret, &err);
	if (r == -ERR_NOT_FOUND) {
		*ret = VAL_EMPTY_OBJECT;
		return 0;
	}
	return r < 0 ? ktl_fail_err(k, &err) : 0;
}

static int save(struct ktl *k, const char *path, struct val d)
{
	struct err err = ERR_INIT;
	return kubeconfig_save(path, d, &err) < 0 ? ktl_fail_err(k, &err) : 0;
}

static int run_use_context(struct ktl *k, void *options)
{
	struct val all, d;
	const char *path;
	(void)options;
	if (k->args.n != 1)
		return ktl_fail_usage(k, "Unexpected args: %zu", k->args.n);
	if (ktl_document(k, &all) < 0)
		return -1;
	if (!val_exists(named(val_get(all, contexts), str_of(k->args.v[0]))))
		return ktl_fail(k, "no context exists with the name: \"%s\"", k->args.v[0]);
	path = kubeconfig_main_path(&k->arena, given_path(k));
	if (load_one(k, path, &d) < 0 || save(k, path, val_with(&k->arena, d, VAL_STR(str_of(k->args.v[0])), current_context)) < 0)
		return -1;
	printf("Switched to context \"%s\".\n", k->args.v[0]);
	return 0;
}

static const struct ktl_command config_use_context = {
	.name = "use-context", .aliases = "use", .summary = "Set the current-context in a kubeconfig file", .usage = "config use-context CONTEXT_NAME [options]",
	.run = run_use_context,
};

struct set_context {
	bool current;
};

static const struct ktl_flag set_context_flags[] = {
	{ "current", 0, KTL_BOOL, offsetof(struct set_context, current), NULL, "Change the current context", NULL },
	{ 0 },
};

static struct val with_text(struct ktl *k, struct val v, atom key, const char *flag, const char *value)
{
	return ktl_given(k, flag) ? val_put(&k->arena, v, key, value[0] ? VAL_STR(str_of(value)) : VAL_EMPTY) : v;
}

static int run_set_context(struct ktl *k, void *options)
{
	const struct set_context *o = options;
	struct val all = VAL_EMPTY, d, context = VAL_EMPTY_OBJECT, list;
	const char *path;
	if ((k->args.n == 1) == o->current || k->args.n > 1)
		return ktl_fail_usage(k, o->current ? "cannot specify both a context name and --current" : "Unexpected args: %zu", k->args.n);
	if (o->current && ktl_document(k, &all) < 0)
		return -1;
	str name = o->current ? val_str(all, current_context) : str_of(k->args.v[0]);
	if (!name.n)
		return ktl_fail(k, "no current context is set");
	path = kubeconfig_context_path(&k->arena, given_path(k), name);
	if (load_one(k, path, &d) < 0)
		return -1;
	list = val_get(d, contexts);
	size_t at = 0;
	while (at < val_len(list) && !str_eq(val_str(val_at(list, at), name), name))
		at++;
	bool known = at < val_len(list);
	if (known)
		context = val_get(val_at(list, at), context);
	context = with_text(k, context, A_cluster, "cluster", k->globals.cluster);
	context = with_text(k, context, A_user, "user", k->globals.user);
	context = with_text(k, context, A_namespace, "namespace", k->globals.namespace);
	struct val item = OBJECT(&k->arena, F(name, VAL_STR(name)), F(context, context));
	list = known ? val_list_set(&k->arena, list, at, item) : val_list_append(&k->arena, list, item);
	if (save(k, path, val_with(&k->arena, d, list, contexts)) < 0)
		return -1;
	printf("Context \"" STR_FMT "\" %s.\n", STR_ARG(name), known ? "modified" : "created");
	return 0;
}

static const struct ktl_command config_set_context = {
	.name = "set-context", .summary = "Set a context entry in kubeconfig",
	.usage = "config set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace] [options]",
	.flags = (const struct ktl_flag_set[]){ { set_context_flags, 0 }, { 0 } }, .size = sizeof(struct set_context), .run = run_set_context,
};

const struct ktl_command ktl_config_command = {
	.name = "config", .group = "Other Commands", .summary = "Modify kubeconfig files",
	.manual = "Shows and changes the kubeconfig: the file of --kubeconfig, or those that KUBECONFIG names, merged, or ~/.kube/config.",
	.usage = "config SUBCOMMAND [options]",
	.below = (const struct ktl_command *const[]){ &config_current, &config_get_clusters, &config_get_contexts, &config_get_users,
						       &config_set_context, &config_use_context, &config_view, NULL },
	.run = ktl_run_group,
};
