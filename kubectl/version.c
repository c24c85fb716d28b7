/* kubectl version, api-resources, api-versions */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "codec/types.h"
#include "kubectl/builder.h"
#include "kubectl/commands.h"
#include "kubectl/print.h"
#include "machinery/semver.h"

/* ---- version ---- */

struct version {
	const char *output;
	bool client;
};

static const struct ktl_flag version_flags[] = {
	{ "client", 0, KTL_BOOL, offsetof(struct version, client), NULL, "Only our own", NULL },
	{ "output", 'o', KTL_STRING, offsetof(struct version, output), NULL, "json or yaml", NULL },
	{ 0 },
};

static struct val client_version(struct ktl *k)
{
	struct utsname machine;
	const char *arch = uname(&machine) == 0 && strcmp(machine.machine, "aarch64") == 0 ? "arm64" : "amd64";
	return OBJECT(&k->arena, F(major, VAL_LIT("1")), F(minor, VAL_LIT("36")), F(gitVersion, VAL_LIT(KTL_VERSION)), F(compiler, VAL_LIT("gcc")),
		      F(platform, VAL_STR(arena_printf(&k->arena, "linux/%s", arch))));
}

/* (suspends) What is known of it, in the order of Kubernetes' type. */
static int server_version(struct ktl *k, struct val *ret)
{
	const struct type *info = TYPE(version, Info);
	struct val_builder b = val_builder(&k->arena);
	struct val said;
	if (ktl_get(k, STR("/version"), STR_NONE, &said) < 0)
		return -1;
	for (uint32_t i = 0; i < info->n_fields; i++) {
		const struct field *f = &info->fields[i];
		str value = val_as_str(val_member(said, f->name));
		if (value.n || (f->flags & FIELD_REQUIRED))
			val_add_member(&b, f->name, VAL_STR(value));
	}
	*ret = val_end_object(&b);
	return 0;
}

/* As Go shows a struct. */
static str shown_version(struct ktl *k, struct val version)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	const struct type *info = TYPE(version, Info);
	for (uint32_t i = 0; i < info->n_fields; i++) {
		str name = atom_str(info->fields[i].name);
		buf_addf(&b, "%s%c" STR_FMT ":" STR_FMT, i ? ", " : "version.Info{", name.p[0] & ~0x20, STR_ARG(str_skip(name, 1)),
			 STR_ARG(ktl_quote(k, val_as_str(val_member(version, info->fields[i].name)))));
	}
	buf_addc(&b, '}');
	return arena_str(&k->arena, buf_str(&b));
}

int ktl_match_version(struct ktl *k)
{
	struct val server;
	if (server_version(k, &server) < 0)
		return ktl_fail_before(k, "couldn't read version from server: ");
	/* Ours is of no commit of Kubernetes' that could be compared as well. */
	if (str_eq(val_str(server, gitVersion), STR(KTL_VERSION)))
		return 0;
	return ktl_fail(k, "server version (&" STR_FMT ") differs from client version (" STR_FMT ")", STR_ARG(shown_version(k, server)),
			STR_ARG(shown_version(k, client_version(k))));
}

/* Clients and servers that are more than one minor version apart may not understand each other. */
static int check_skew(struct ktl *k, struct val server)
{
	struct semver ours, theirs;
	str text = val_str(server, gitVersion);
	(void)semver_parse(str_skip(STR(KTL_VERSION), 1), &ours);
	if (!semver_parse(str_skip(text, str_starts(text, STR("v"))), &theirs))
		return ktl_fail(k, "server version error: could not parse " STR_FMT " as version", STR_ARG(ktl_quote(k, text)));
	uint64_t apart = MAX(ours.minor, theirs.minor) - MIN(ours.minor, theirs.minor);
	if (ours.major == theirs.major && apart <= 1)
		return 0;
	str warning = arena_printf(&k->arena, "version difference between client (%" PRIu64 ".%" PRIu64 ") and server (%" PRIu64 ".%" PRIu64 ") exceeds the supported "
				   "minor version skew of +/-1", ours.major, ours.minor, theirs.major, theirs.minor);
	if (k->globals.warnings_as_errors)
		return ktl_fail(k, STR_FMT, STR_ARG(warning));
	ktl_warn(k, warning);
	return 0;
}

static int print_versions(struct ktl *k, const char *output, struct val server)
{
	if (!output[0]) {
		printf("Client Version: " KTL_VERSION "\nKustomize Version: v5.8.1\n");
		if (val_exists(server))
			printf("Server Version: " STR_FMT "\n", STR_ARG(val_str(server, gitVersion)));
		return 0;
	}
	struct val both = OBJECT(&k->arena, F(clientVersion, client_version(k)), F(kustomizeVersion, VAL_LIT("v5.8.1")), F(serverVersion, server));
	if (!ktl_is(output, "yaml"))
		return ktl_print_json(k, both, 2);
	if (ktl_print_yaml(k, both) < 0)
		return -1;
	printf("\n");
	return 0;
}

static int run_version(struct ktl *k, void *options)
{
	const struct version *o = options;
	struct val server = VAL_EMPTY;
	struct client *client;
	if (!o->client && ktl_client(k, &client) < 0)
		return -1;
	if (k->args.n)
		return ktl_fail(k, "extra arguments: [%s]", k->args.v[0]);
	if (o->output[0] && !ktl_is(o->output, "yaml") && !ktl_is(o->output, "json"))
		return ktl_fail(k, "--output must be 'yaml' or 'json'");
	int r = o->client ? 0 : server_version(k, &server);
	if (print_versions(k, o->output, server) < 0)
		return -1;
	return val_exists(server) ? check_skew(k, server) : r;
}

const struct ktl_command ktl_version = {
	.name = "version", .group = "Other Commands", .summary = "Print the client and server version information", .usage = "version [flags] [options]",
	.flags = (const struct ktl_flag_set[]){ { version_flags, 0 }, { 0 } }, .size = sizeof(struct version), .run = run_version,
};

/* ---- api-resources ---- */

struct resources {
	const char *group, *output, *sort_by;
	struct ktl_texts verbs, categories;
	bool namespaced, no_headers, cached;
};

#define OPTION(member) offsetof(struct resources, member)

static const struct ktl_flag resources_flags[] = {
	{ "api-group", 0, KTL_STRING, OPTION(group), NULL, "Only of this API group", NULL },
	{ "cached", 0, KTL_BOOL, OPTION(cached), NULL, NULL, NULL },
	{ "categories", 0, KTL_LIST, OPTION(categories), NULL, "Only of these categories", NULL },
	{ "namespaced", 0, KTL_BOOL, OPTION(namespaced), "true", "Only those that are in namespaces, or, with =false, are not", NULL },
	{ "no-headers", 0, KTL_BOOL, OPTION(no_headers), NULL, "No headers above columns", NULL },
	{ "output", 'o', KTL_STRING, OPTION(output), NULL, "wide or name", NULL },
	{ "sort-by", 0, KTL_STRING, OPTION(sort_by), NULL, "name or kind", NULL },
	{ "verbs", 0, KTL_LIST, OPTION(verbs), NULL, "Only those that know these verbs", NULL },
	{ 0 },
};

static const char *const verb_names[] = { "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch" };

static bool has_all_verbs(const struct ktl_kind *kind, const struct ktl_texts *verbs)
{
	for (size_t i = 0; i < verbs->n; i++) {
		bool has = false;
		for (size_t j = 0; j < ARRAY_LEN(verb_names); j++)
			has |= ktl_is(verb_names[j], verbs->v[i]) && (kind->verbs >> j & 1);
		if (!has)
			return false;
	}
	return true;
}

static bool has_all_categories(const struct ktl_kind *kind, const struct ktl_texts *names)
{
	for (size_t i = 0; i < names->n; i++) {
		bool has = false;
		VAL_EACH(c, kind->categories)
			has |= str_eq(val_as_str(*c), str_of(names->v[i]));
		if (!has)
			return false;
	}
	return true;
}

static bool is_wanted(struct ktl *k, const struct resources *o, const struct ktl_kind *kind)
{
	return kind && kind->verbs && (!ktl_given(k, "namespaced") || kind->namespaced == o->namespaced) &&
	       (!ktl_given(k, "api-group") || str_eq(kind->group, str_of(o->group))) && has_all_verbs(kind, &o->verbs) &&
	       has_all_categories(kind, &o->categories);
}

static int by_group(const void *x, const void *y)
{
	const struct ktl_kind *const *a = x, *const *b = y;
	int r = str_cmp((*a)->group, (*b)->group);
	return r ? r : str_cmp((*a)->resource, (*b)->resource);
}

static int by_name(const void *x, const void *y)
{
	const struct ktl_kind *const *a = x, *const *b = y;
	int r = str_cmp((*a)->resource, (*b)->resource);
	return r ? r : str_cmp((*a)->group, (*b)->group);
}

static int by_kind(const void *x, const void *y)
{
	const struct ktl_kind *const *a = x, *const *b = y;
	int r = str_cmp((*a)->kind, (*b)->kind);
	return r ? r : str_cmp((*a)->group, (*b)->group);
}

static void add_words(struct buf *b, struct val list)
{
	bool first = true;
	VAL_EACH(w, list) {
		buf_addf(b, "%s" STR_FMT, first ? "" : ",", STR_ARG(val_as_str(*w)));
		first = false;
	}
}

static void add_resource(struct ktl *k, struct buf *b, const struct ktl_kind *kind, bool wide)
{
	bool first = true;
	buf_addf(b, STR_FMT "\t", STR_ARG(kind->resource));
	add_words(b, kind->short_names);
	buf_addf(b, "\t" STR_FMT "\t%s\t" STR_FMT, STR_ARG(ktl_kind_api_version(k, kind)), kind->namespaced ? "true" : "false", STR_ARG(kind->kind));
	if (wide) {
		buf_addc(b, '\t');
		for (size_t i = 0; i < ARRAY_LEN(verb_names); i++)
			if (kind->verbs >> i & 1) {
				buf_addf(b, "%s%s", first ? "" : ",", verb_names[i]);
				first = false;
			}
		buf_addc(b, '\t');
		add_words(b, kind->categories);
	}
	buf_addc(b, '\n');
}

static int run_api_resources(struct ktl *k, void *options)
{
	const struct resources *o = options;
	CLEANUP(buf_done) struct buf out = BUF_INIT(KTL_TEXT_MAX);
	CLEANUP(ktl_tabs_done) struct ktl_tabs tabs;
	const struct ktl_kind **kinds;
	bool wide = ktl_is(o->output, "wide");
	size_t n, found = 0;
	ktl_tabs_for_table(&tabs);
	if (k->args.n)
		return ktl_fail_usage(k, "unexpected arguments: [%s]", k->args.v[0]);
	if (o->output[0] && !wide && !ktl_is(o->output, "name"))
		return ktl_fail(k, "unable to match a printer suitable for the output format \"%s\", allowed formats are: json,kyaml,name,wide,yaml", o->output);
	if (o->sort_by[0] && !ktl_is(o->sort_by, "name") && !ktl_is(o->sort_by, "kind"))
		return ktl_fail(k, "--sort-by accepts only name or kind");
	if (ktl_kinds_all(k, &kinds, &n) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (is_wanted(k, o, kinds[i]))
			kinds[found++] = kinds[i];
	qsort(kinds, found, sizeof(struct ktl_kind *), !o->sort_by[0] ? by_group : ktl_is(o->sort_by, "kind") ? by_kind : by_name);
	if (!o->no_headers && !ktl_is(o->output, "name"))
		buf_addf(&tabs.text, "NAME\tSHORTNAMES\tAPIVERSION\tNAMESPACED\tKIND%s\n", wide ? "\tVERBS\tCATEGORIES" : "");
	for (size_t i = 0; i < found; i++) {
		if (ktl_is(o->output, "name"))
			buf_addf(&tabs.text, STR_FMT "\n", STR_ARG(ktl_kind_resource(k, kinds[i])));
		else
			add_resource(k, &tabs.text, kinds[i], wide);
	}
	ktl_tabs_flush(&tabs, &out);
	printf(STR_FMT, STR_ARG(buf_str(&out)));
	return 0;
}

const struct ktl_command ktl_api_resources = {
	.name = "api-resources", .group = "Other Commands", .summary = "Print the supported API resources on the server",
	.usage = "api-resources [flags] [options]", .flags = (const struct ktl_flag_set[]){ { resources_flags, 0 }, { 0 } },
	.size = sizeof(struct resources), .run = run_api_resources,
};

/* ---- api-versions ---- */

static int by_text(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

static int run_api_versions(struct ktl *k, void *options)
{
	const struct ktl_kind **kinds;
	size_t n, found = 0;
	(void)options;
	if (ktl_kinds_all(k, &kinds, &n) < 0)
		return -1;
	const char **names = ARENA_ARRAY(&k->arena, const char *, 1024);
	VAL_EACH(g, k->discovery)
		VAL_EACH(v, val_get(*g, versions)) {
			str group = val_str(*g, metadata, name), version = val_str(*v, version);
			if (found < 1024)
				names[found++] = group.n ? arena_printf(&k->arena, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)).p : ktl_cstr(k, version);
		}
	qsort(names, found, sizeof(*names), by_text);
	for (size_t i = 0; i < found; i++)
		printf("%s\n", names[i]);
	return 0;
}

const struct ktl_command ktl_api_versions = {
	.name = "api-versions", .group = "Other Commands",
	.summary = "Print the supported API versions on the server, in the form of \"group/version\"", .usage = "api-versions [options]",
	.run = run_api_versions,
};
