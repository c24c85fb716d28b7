#include "kubectl/print.h"

#include <stdio.h>

#include "kubectl/builder.h"
#include "kubectl/template.h"
#include "machinery/jsonpath.h"

const struct ktl_flag ktl_print_flags[] = {
	{ "output", 'o', KTL_STRING, offsetof(struct ktl_print_flags, output), NULL, "Form of the output: json, yaml, name, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE, jsonpath-file=FILE, go-template=TEMPLATE, go-template-file=FILE; for tables also wide, custom-columns=HEADER:PATH,... and custom-columns-file=FILE", NULL },
	{ "template", 0, KTL_STRING, offsetof(struct ktl_print_flags, template), NULL, "Template, or the file of one, for the form of the output; alone it is a Go template", NULL },
	{ "allow-missing-template-keys", 0, KTL_BOOL, offsetof(struct ktl_print_flags, allow_missing), "true", "A field that an object does not have is no error in a template", NULL },
	{ "show-managed-fields", 0, KTL_BOOL, offsetof(struct ktl_print_flags, show_managed), NULL, "Show metadata.managedFields in JSON and YAML", NULL },
	{ 0 },
};

#define FORMATS "go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile"
#define TABLE_FORMATS "custom-columns,custom-columns-file," FORMATS ",wide,yaml"

/* ---- which ---- */

static int no_printer(struct ktl *k, const char *output, bool tables)
{
	return ktl_fail(k, "unable to match a printer suitable for the output format \"%s\", allowed formats are: %s", output,
			tables ? TABLE_FORMATS : FORMATS ",yaml");
}

static int read_template(struct ktl *k, str path, str *ret)
{
	struct err err = ERR_INIT;
	if (ktl_read_file(k, ktl_cstr(k, path), ret, &err) < 0)
		return ktl_fail(k, "error reading --template " STR_FMT ", %s", STR_ARG(path), err.msg);
	return 0;
}

static const struct { const char *name; enum ktl_format format; bool file; } templates[] = {
	{ "jsonpath", KTL_JSONPATH, false }, { "jsonpath-as-json", KTL_JSONPATH_AS_JSON, false }, { "jsonpath-file", KTL_JSONPATH, true },
	{ "go-template", KTL_TEMPLATE, false }, { "go-template-file", KTL_TEMPLATE, true }, { "template", KTL_TEMPLATE, false },
	{ "templatefile", KTL_TEMPLATE, true },
};

static int use_template(struct ktl *k, struct ktl_printer *p, bool file)
{
	bool go = p->format == KTL_TEMPLATE;
	struct err err = ERR_INIT;
	if (!p->text.n)
		return ktl_fail(k, "template format specified but no template given");
	if (file && read_template(k, p->text, &p->text) < 0)
		return -1;
	int r = go ? template_parse(&k->arena, STR("output"), p->text, &p->template, &err) : jsonpath_parse(&k->arena, p->text, &p->path, &err);
	if (r < 0)
		return ktl_fail(k, "error parsing %s " STR_FMT ", %s", go ? "template" : "jsonpath", STR_ARG(p->text), err.msg);
	return 0;
}

static int add_column(struct ktl *k, struct ktl_printer *p, str header, str spec)
{
	struct err err = ERR_INIT;
	str template;
	if (jsonpath_relaxed(&k->arena, spec, &template, &err) < 0 ||
	    jsonpath_parse(&k->arena, template, &p->columns[p->n_columns].path, &err) < 0)
		return ktl_fail_err(k, &err);
	p->columns[p->n_columns++].header = header;
	return 0;
}

static int columns_of_text(struct ktl *k, struct ktl_printer *p, str text)
{
	p->columns = ARENA_ARRAY(&k->arena, struct column, text.n + 1);
	if (!text.n)
		return ktl_fail(k, "custom-columns format specified but no custom columns given");
	while (text.n) {
		str part, header, spec;
		(void)str_cut(text, ',', &part, &text);
		if (!str_cut(part, ':', &header, &spec))
			return ktl_fail(k, "unexpected custom-columns spec: " STR_FMT ", expected <header>:<json-path-expr>", STR_ARG(part));
		if (add_column(k, p, header, spec) < 0)
			return -1;
	}
	return 0;
}

/* The next word of a line. */
static bool next_word(str *line, str *ret)
{
	*line = str_trim(*line);
	for (ret->n = 0, ret->p = line->p; ret->n < line->n && line->p[ret->n] != ' ' && line->p[ret->n] != '\t'; ret->n++)
		;
	*line = str_skip(*line, ret->n);
	return ret->n > 0;
}

static int columns_of_file(struct ktl *k, struct ktl_printer *p, str path)
{
	str text, headers, specs, header, spec;
	if (read_template(k, path, &text) < 0)
		return -1;
	if (!text.n)
		return ktl_fail(k, "invalid template, missing header line. Expected format is one line of space separated headers, one line of space separated column specs.");
	if (!str_cut(text, '\n', &headers, &text) || !text.n)
		return ktl_fail(k, "invalid template, missing spec line. Expected format is one line of space separated headers, one line of space separated column specs.");
	(void)str_cut(text, '\n', &specs, &text);
	p->columns = ARENA_ARRAY(&k->arena, struct column, headers.n + 1);
	while (next_word(&headers, &header)) {
		if (!next_word(&specs, &spec))
			return ktl_fail(k, "number of headers and field specifications don't match");
		if (add_column(k, p, header, spec) < 0)
			return -1;
	}
	return 0;
}

static int use_columns(struct ktl *k, struct ktl_printer *p, const char *format, str template)
{
	p->format = KTL_COLUMNS;
	ktl_tabs_for_table(&p->tabs);
	return ktl_is(format, "custom-columns") ? columns_of_text(k, p, template) : columns_of_file(k, p, template);
}

int ktl_printer_init(struct ktl *k, const struct ktl_print_flags *flags, bool tables, struct ktl_printer *ret)
{
	static const struct { const char *name; enum ktl_format format; } plain[] = {
		{ "", KTL_HUMAN }, { "json", KTL_JSON }, { "yaml", KTL_YAML }, { "name", KTL_NAME }, { "wide", KTL_WIDE },
	};
	str format, template;
	*ret = (struct ktl_printer){ .show_managed = flags->show_managed, .allow_missing = flags->allow_missing, .dry_run = "" };
	const char *output = flags->output[0] || !flags->template[0] ? flags->output : "go-template";
	(void)str_cut(str_of(output), '=', &format, &template);
	const char *name = ktl_cstr(k, format);
	if (!template.n)
		template = str_of(flags->template);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (ktl_is(output, plain[i].name) && (tables || plain[i].format != KTL_WIDE)) {
			ret->format = plain[i].format;
			return 0;
		}
	for (size_t i = 0; i < ARRAY_LEN(templates); i++)
		if (ktl_is(name, templates[i].name)) {
			ret->format = templates[i].format;
			ret->text = template;
			return use_template(k, ret, templates[i].file);
		}
	if (tables && (ktl_is(name, "custom-columns") || ktl_is(name, "custom-columns-file")))
		return use_columns(k, ret, name, template);
	if (ktl_is(name, "kyaml"))
		return ktl_fail(k, "the output format \"%s\" is not known to this kubectl; use yaml", name);
	return no_printer(k, flags->output, tables);
}

/* ---- printing ---- */

static struct val without_managed(struct ktl *k, struct val v)
{
	if (val_has(v, metadata, managedFields))
		v = val_without(&k->arena, v, metadata, managedFields);
	struct val items = val_get(v, items);
	if (!val_is(items, VAL_LIST) || !val_len(items))
		return v;
	struct val_builder b = val_builder(&k->arena);
	VAL_EACH(item, items)
		val_add_item(&b, val_has(*item, metadata, managedFields) ? val_without(&k->arena, *item, metadata, managedFields) : *item);
	return val_with(&k->arena, v, val_end_list(&b), items);
}

static void put(const struct buf *b)
{
	if (b->n)
		(void)fwrite(b->p, 1, b->n, stdout);
}

int ktl_print_yaml(struct ktl *k, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	struct err err = ERR_INIT;
	if (yaml_encode(&b, v, NULL, &err) < 0)
		return ktl_fail_err(k, &err);
	put(&b);
	return 0;
}

int ktl_print_json(struct ktl *k, struct val v, unsigned indent)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	struct err err = ERR_INIT;
	if (json_encode(&b, v, &(struct json_encode_options){ .indent = indent }, &err) < 0)
		return ktl_fail_err(k, &err);
	buf_addc(&b, '\n');
	put(&b);
	return 0;
}

/* As kubectl: what was printed before the failure stays, and all that may help stands behind it. */
static int print_go_template(struct ktl *k, struct ktl_printer *p, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	struct template_options o = { .missing_is_error = !p->allow_missing, .work = KTL_TEXT_MAX };
	struct err err = ERR_INIT;
	int r = template_run(p->template, &k->arena, v, &o, &b, &err);
	if (r < 0) {
		buf_addf(&b, "Error executing template: %s. Printing more information for debugging the template:\n\ttemplate was:\n\t\t" STR_FMT "\n",
			 err.msg, STR_ARG(p->text));
		buf_add(&b, STR("\traw data was:\n\t\t"));
		buf_add(&b, ktl_json(k, v));
		buf_add(&b, STR("\n\tobject given to template engine was:\n\t\t"));
		template_add_plain(&b, v);
		buf_add(&b, STR("\n\n"));
	}
	put(&b);
	return r < 0 ? ktl_fail(k, "error executing template " STR_FMT ": %s", STR_ARG(ktl_quote(k, p->text)), err.msg) : 0;
}

static int print_template(struct ktl *k, struct ktl_printer *p, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	struct jsonpath_options o = { .allow_missing_keys = p->allow_missing, .as_json = p->format == KTL_JSONPATH_AS_JSON };
	struct err err = ERR_INIT;
	if (jsonpath_print(p->path, &k->arena, v, &o, &b, &err) < 0)
		return ktl_fail(k, "error executing jsonpath: %s", err.msg);
	put(&b);
	return 0;
}

static int print_columns(struct ktl *k, struct ktl_printer *p, struct val v)
{
	struct buf *out = &p->tabs.text;
	for (size_t i = 0; i < p->n_columns && !p->n && !p->no_headers; i++)
		buf_addf(out, STR_FMT "%s", STR_ARG(p->columns[i].header), i + 1 < p->n_columns ? "\t" : "\n");
	p->n++;
	for (size_t i = 0; i < p->n_columns; i++) {
		struct jsonpath_options o = { .allow_missing_keys = true };
		struct err err = ERR_INIT;
		struct val found;
		bool any = false;
		if (jsonpath_find(p->columns[i].path, &k->arena, v, &o, &found, &err) < 0)
			return ktl_fail_err(k, &err);
		if (!val_len(found) || !val_len(val_at(found, 0)))
			buf_add(out, STR("<none>"));
		VAL_EACH(list, found)
			VAL_EACH(value, *list) {
				CLEANUP(buf_done) struct buf cell = BUF_INIT(KTL_TEXT_MAX);
				jsonpath_add_plain(&cell, *value);
				if (any)
					buf_addc(out, ',');
				ktl_add_escaped(out, buf_str(&cell));
				any = true;
			}
		buf_addc(out, i + 1 < p->n_columns ? '\t' : '\n');
	}
	return 0;
}

void ktl_print_end(struct ktl_printer *p)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	if (p->format != KTL_COLUMNS)
		return;
	ktl_tabs_flush(&p->tabs, &b);
	put(&b);
}

void ktl_printer_done(struct ktl_printer *p)
{
	if (p->format == KTL_COLUMNS)
		ktl_tabs_done(&p->tabs);
}

static str label_of(struct ktl *k, const struct ktl_kind *kind, struct val v)
{
	str api_version = val_str(v, apiVersion), group, rest, name = ktl_lower(k, val_str(v, kind));
	if (kind && !name.n)
		return ktl_kind_label(k, kind);
	if (!str_cut(api_version, '/', &group, &rest))
		return name;
	return arena_printf(&k->arena, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(group));
}

static void print_name(struct ktl *k, const struct ktl_kind *kind, struct val v, const char *done, const char *dry_run)
{
	str name = val_str(v, metadata, name);
	printf(STR_FMT "/" STR_FMT "%s%s%s\n", STR_ARG(label_of(k, kind, v)), STR_ARG(name.n ? name : STR("<unknown>")), done ? " " : "",
	       done ? done : "", done ? dry_run : "");
}

int ktl_print_done(struct ktl *k, struct ktl_printer *p, const struct ktl_kind *kind, struct val v, const char *done)
{
	bool list = val_is(val_get(v, items), VAL_LIST) && str_ends(val_str(v, kind), STR("List"));
	if (!p->show_managed && (p->format == KTL_JSON || p->format == KTL_YAML))
		v = without_managed(k, v);
	switch (p->format) {
	case KTL_JSON:
		return ktl_print_json(k, v, 4);
	case KTL_YAML:
		if (p->n++)
			printf("---\n");
		return ktl_print_yaml(k, v);
	case KTL_JSONPATH:
	case KTL_JSONPATH_AS_JSON:
		return print_template(k, p, v);
	case KTL_TEMPLATE:
		return print_go_template(k, p, v);
	case KTL_COLUMNS:
		if (!list)
			return print_columns(k, p, v);
		VAL_EACH(item, val_get(v, items))
			if (print_columns(k, p, *item) < 0)
				return -1;
		return 0;
	default:
		break;
	}
	if (p->format == KTL_NAME)
		done = NULL;
	if (!list) {
		print_name(k, kind, v, done, p->dry_run);
		return 0;
	}
	VAL_EACH(item, val_get(v, items))
		print_name(k, kind, *item, done, p->dry_run);
	return 0;
}

int ktl_print(struct ktl *k, struct ktl_printer *p, const struct ktl_kind *kind, struct val v)
{
	return ktl_print_done(k, p, kind, v, p->done);
}
