/* kubectl explain: what the server's OpenAPI document says about a type or one of its fields. */
#include <stdio.h>

#include "kubectl/commands.h"
#include "kubectl/kinds.h"

struct explain {
	const char *api_version, *output;
	bool recursive;
};

static const struct ktl_flag explain_flags[] = {
	{ "api-version", 0, KTL_STRING, offsetof(struct explain, api_version), NULL, "In this group and version", NULL },
	{ "output", 'o', KTL_STRING, offsetof(struct explain, output), "plaintext", NULL, NULL },
	{ "recursive", 'R', KTL_BOOL, offsetof(struct explain, recursive), NULL, "Fields of fields, too", NULL },
	{ 0 },
};

enum { DEPTH_MAX = 40 };

struct page {
	struct ktl *k;
	struct val document;
	struct buf out;
	bool recursive;
	struct val seen[DEPTH_MAX]; /* references on the way, for cycles */
};

/* ---- the document ---- */

static struct val ref_of(struct val schema) { return val_find(schema, STR("$ref")); }

static struct val resolve(const struct page *p, struct val schema)
{
	str ref = val_as_str(ref_of(schema));
	struct val v = val_find(val_get(p->document, components, schemas), str_skip(ref, strlen("#/components/schemas/")));
	return ref.n && val_exists(v) ? v : schema;
}

/* A schema, not just true. */
static bool is_schema(struct val v) { return val_is(v, VAL_OBJECT); }

/* ---- text ---- */

/*
 * Words are kept together where a line has room for them, and space at the beginning of lines that are broken is dropped; other line
 * ends and spaces stay as they are.
 */
static void wrap(struct buf *out, str text, size_t limit)
{
	CLEANUP(buf_done) struct buf word = BUF_INIT(1 << 20), space = BUF_INIT(1 << 20);
	size_t at = 0;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		bool blank = c == ' ' || c == '\t';
		if (c == '\n' || (blank && (space.n == 0 || word.n > 0))) {
			bool dropped = c == '\n' && word.n == 0 && at + space.n > limit;
			at += space.n + word.n;
			if (!dropped)
				buf_add(out, buf_str(&space));
			buf_add(out, buf_str(&word));
			buf_reset(&space);
			buf_reset(&word);
		}
		if (c == '\n') {
			buf_addc(out, c);
			at = 0;
		} else if (blank) {
			buf_addc(&space, c);
		} else {
			buf_addc(&word, c);
			if (at + word.n + space.n > limit && word.n < limit) {
				buf_addc(out, '\n');
				at = 0;
				buf_reset(&space);
			}
		}
	}
	if (word.n || at + space.n <= limit)
		buf_add(out, buf_str(&space));
	buf_add(out, buf_str(&word));
}

static void add_wrapped(struct buf *out, str text, size_t limit, unsigned indent)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 24);
	wrap(&b, text, limit);
	buf_addf(out, "%*s", (int)indent, "");
	for (size_t i = 0; i < b.n; i++) {
		buf_addc(out, b.p[i]);
		if (b.p[i] == '\n')
			buf_addf(out, "%*s", (int)indent, "");
	}
	buf_addc(out, '\n');
}

/* ---- parts ---- */

static void add_type(struct page *p, struct val schema, int depth)
{
	struct val items = val_get(schema, items), more = val_get(schema, additionalProperties), all = val_get(schema, allOf);
	str ref = val_as_str(ref_of(schema)), type = val_str(schema, type);
	if (depth > DEPTH_MAX)
		return;
	if (is_schema(items)) {
		buf_add(&p->out, STR("[]"));
		add_type(p, items, depth + 1);
	} else if (is_schema(more)) {
		buf_add(&p->out, STR("map[string]"));
		add_type(p, more, depth + 1);
	} else if (val_len(all) == 1 && !val_len(val_get(schema, properties))) {
		add_type(p, val_at(all, 0), depth + 1);
	} else if (ref.n) {
		str of = val_str(resolve(p, schema), type);
		ptrdiff_t dot = str_rchr(ref, '.');
		bool object = !of.n || str_eq(of, STR("object"));
		buf_add(&p->out, object ? str_skip(ref, (size_t)(dot + 1)) : of);
	} else {
		buf_add(&p->out, !type.n || str_eq(type, STR("object")) ? STR("Object") : type);
	}
}

static void add_enum(struct page *p, struct val schema, bool longer, unsigned indent)
{
	enum { SHOWN = 4 };
	struct val values = val_find(schema, STR("enum"));
	if (!val_len(values))
		return;
	if (longer)
		buf_add(&p->out, STR("ENUM:"));
	else
		buf_addf(&p->out, "\n%*senum: ", (int)indent, "");
	for (size_t i = 0; i < val_len(values); i++) {
		str text = val_as_str(val_at(values, i));
		if (!longer && i >= SHOWN) {
			buf_add(&p->out, STR(", ...."));
			break;
		}
		buf_add(&p->out, longer ? STR("\n    ") : i ? STR(", ") : STR_NONE);
		buf_add(&p->out, text.n ? text : STR("\"\""));
	}
}

static void add_description(const struct page *p, struct buf *out, struct val schema, int depth)
{
	schema = resolve(p, schema);
	str text = val_str(schema, description);
	if (depth > DEPTH_MAX)
		return;
	if (text.n)
		buf_addf(out, STR_FMT "\n", STR_ARG(text));
	VAL_EACH(s, val_get(schema, allOf))
		add_description(p, out, *s, depth + 1);
	if (is_schema(val_get(schema, items)))
		add_description(p, out, val_get(schema, items), depth + 1);
	if (is_schema(val_get(schema, additionalProperties)))
		add_description(p, out, val_get(schema, additionalProperties), depth + 1);
}

static bool is_required(struct val schema, str name)
{
	VAL_EACH(r, val_get(schema, required))
		if (str_eq(val_as_str(*r), name))
			return true;
	return false;
}

static void add_field(struct page *p, struct val owner, str name, struct val schema, unsigned level)
{
	unsigned indent = level * 2;
	buf_addf(&p->out, "%*s" STR_FMT "\t<", (int)indent, "", STR_ARG(name));
	add_type(p, schema, 0);
	buf_addf(&p->out, ">%s", is_required(owner, name) ? " -required-" : "");
	add_enum(p, schema, false, indent);
	buf_addc(&p->out, '\n');
	if (p->recursive)
		return;
	str text = val_str(schema, description);
	add_wrapped(&p->out, text.n ? text : STR("<no description>"), 78 - indent, indent + 2);
	buf_addc(&p->out, '\n');
}

/* depth: of p->seen, which has the references that led here. */
static void add_fields(struct page *p, struct val schema, unsigned level, unsigned depth)
{
	struct val ref = ref_of(schema);
	for (unsigned i = 0; i < depth; i++)
		if (val_exists(ref) && str_eq(val_as_str(p->seen[i]), val_as_str(ref)))
			return;
	if (depth >= DEPTH_MAX)
		return;
	p->seen[depth] = ref;
	schema = resolve(p, schema);
	VAL_EACH_MEMBER(m, val_get(schema, properties)) {
		add_field(p, schema, atom_str(m->key), m->val, level);
		if (p->recursive)
			add_fields(p, m->val, level + 1, depth + 1);
	}
	VAL_EACH(s, val_get(schema, allOf))
		add_fields(p, *s, level, depth + 1);
	if (is_schema(val_get(schema, items)))
		add_fields(p, val_get(schema, items), level, depth + 1);
	if (is_schema(val_get(schema, additionalProperties)))
		add_fields(p, val_get(schema, additionalProperties), level, depth + 1);
}

static void add_whole(struct page *p, struct val schema)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 24);
	schema = resolve(p, schema);
	add_description(p, &text, schema, 0);
	buf_add(&p->out, STR("DESCRIPTION:\n"));
	add_wrapped(&p->out, text.n ? buf_str(&text) : STR("<empty>"), 76, 4);
	size_t before = p->out.n;
	buf_add(&p->out, STR("FIELDS:\n"));
	size_t heading = p->out.n;
	add_fields(p, schema, 1, 0);
	if (p->out.n == heading) { /* it has none */
		p->out.n = before;
		p->out.p[before] = '\0';
	}
}

/* Goes along the path; false: there is no such field. */
static bool follow(struct page *p, struct val schema, str path, int depth)
{
	str name, rest;
	if (depth > DEPTH_MAX)
		return false;
	if (!path.n) {
		add_whole(p, schema);
		return true;
	}
	schema = resolve(p, schema);
	(void)str_cut(path, '.', &name, &rest);
	struct val field = val_find(val_get(schema, properties), name);
	if (val_exists(field)) {
		if (!rest.n) {
			buf_addf(&p->out, "FIELD: " STR_FMT " <", STR_ARG(name));
			add_type(p, field, 0);
			buf_add(&p->out, STR(">\n"));
			add_enum(p, field, true, 0);
			buf_add(&p->out, STR("\n\n"));
		}
		return follow(p, field, rest, depth + 1);
	}
	if (is_schema(val_get(schema, items)))
		return follow(p, val_get(schema, items), path, depth + 1);
	if (is_schema(val_get(schema, additionalProperties)))
		return follow(p, val_get(schema, additionalProperties), path, depth + 1);
	VAL_EACH(s, val_get(schema, allOf))
		if (follow(p, *s, path, depth + 1))
			return true;
	return false;
}

/* ---- the command ---- */

static struct val find_schema(const struct page *p, const struct ktl_kind *kind)
{
	VAL_EACH_MEMBER(m, val_get(p->document, components, schemas))
		VAL_EACH(gvk, val_find(m->val, STR("x-kubernetes-group-version-kind")))
			if (str_eq(val_str(*gvk, kind), kind->kind) && str_eq(val_str(*gvk, group), kind->group) &&
			    str_eq(val_str(*gvk, version), kind->version))
				return m->val;
	return VAL_EMPTY;
}

/* "deployments.apps.spec": the group may stand behind the type. */
static int find_kind(struct ktl *k, str arg, const struct ktl_kind **ret, str *ret_path)
{
	str name, rest;
	(void)str_cut(arg, '.', &name, &rest);
	if (!ktl_kind_known(k, name, ret))
		return k->n_failures ? -1 : ktl_fail_bare(k, "the server doesn't have a resource type " STR_FMT, STR_ARG(ktl_quote(k, name)));
	str full = ktl_kind_resource(k, *ret);
	*ret_path = rest;
	if ((*ret)->group.n && str_starts(arg, full) && (arg.n == full.n || arg.p[full.n] == '.'))
		*ret_path = str_skip(arg, full.n + 1);
	return 0;
}

static int run(struct ktl *k, void *options)
{
	const struct explain *o = options;
	struct page p = { .k = k, .out = BUF_INIT(KTL_TEXT_MAX), .recursive = o->recursive };
	const struct ktl_kind *kind;
	str path, where;
	if (!k->args.n)
		return ktl_fail(k, "You must specify the type of resource to explain. Use \"kubectl api-resources\" for a complete list of supported resources.\n");
	if (k->args.n > 1)
		return ktl_fail(k, "We accept only this format: explain RESOURCE\n");
	if (find_kind(k, str_of(k->args.v[0]), &kind, &path) < 0)
		return -1;
	struct ktl_kind asked = *kind;
	if (o->api_version[0] && !str_cut(str_of(o->api_version), '/', &asked.group, &asked.version)) {
		asked.version = asked.group;
		asked.group = STR_NONE;
	}
	where = asked.group.n ? arena_printf(&k->arena, "apis/" STR_FMT "/" STR_FMT, STR_ARG(asked.group), STR_ARG(asked.version)) :
				arena_printf(&k->arena, "api/" STR_FMT, STR_ARG(asked.version));
	if (ktl_get(k, arena_join(&k->arena, STR("/openapi/v3/"), where), STR_NONE, &p.document) < 0) {
		if (!ktl_failed_because(k, "NotFound"))
			return -1;
		ktl_forgive(k);
		return ktl_fail(k, "couldn't find resource for \"" STR_FMT "/" STR_FMT ", Resource=" STR_FMT "\"", STR_ARG(asked.group), STR_ARG(asked.version),
				STR_ARG(asked.resource));
	}
	struct val schema = find_schema(&p, &asked);
	if (!val_exists(schema))
		return ktl_fail(k, "GVR (" STR_FMT "/" STR_FMT ", Resource=" STR_FMT ") not found in OpenAPI schema", STR_ARG(asked.group), STR_ARG(asked.version),
				STR_ARG(asked.resource));
	if (asked.group.n)
		buf_addf(&p.out, "GROUP:      " STR_FMT "\n", STR_ARG(asked.group));
	buf_addf(&p.out, "KIND:       " STR_FMT "\nVERSION:    " STR_FMT "\n\n", STR_ARG(asked.kind), STR_ARG(asked.version));
	bool found = follow(&p, schema, str_ends(path, STR(".")) ? str_head(path, path.n - 1) : path, 0);
	printf(found ? "%s\n" : "%s", p.out.p);
	buf_done(&p.out);
	ptrdiff_t dot = str_rchr(path, '.');
	return found ? 0 : ktl_fail(k, "field " STR_FMT " does not exist", STR_ARG(ktl_quote(k, str_skip(path, (size_t)(dot + 1)))));
}

const struct ktl_command ktl_explain = {
	.name = "explain",
	.group = "Basic Commands (Intermediate)",
	.summary = "Get documentation for a resource",
	.examples = "  kubectl explain pod\n  kubectl explain deployment.spec.strategy --recursive\n",
	.usage = "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [options]",
	.flags = (const struct ktl_flag_set[]){ { explain_flags, 0 }, { 0 } },
	.size = sizeof(struct explain),
	.run = run,
};
