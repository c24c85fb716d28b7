#include "kubectl/builder.h"

#include "machinery/selector.h"
#include "net/url.h"

enum { LISTS_DEEP = 32 };

static void add_info(struct ktl *k, struct ktl_infos *list, struct ktl_info info)
{
	if (list->n == list->cap) {
		struct ktl_info *more = ARENA_ARRAY(&k->arena, struct ktl_info, list->cap ? 2 * list->cap : 16);
		if (list->n)
			memcpy(more, list->v, list->n * sizeof(*more));
		list->v = more;
		list->cap = list->cap ? 2 * list->cap : 16;
	}
	list->v[list->n++] = info;
}

static bool is_list(struct val v) { return val_is(val_get(v, items), VAL_LIST) && str_ends(val_str(v, kind), STR("List")); }

static struct val with_kind(struct ktl *k, struct val item, str api_version, str kind)
{
	if (val_str(item, kind).n)
		return item;
	item = val_put(&k->arena, item, A_kind, VAL_STR(kind));
	return val_sorted(&k->arena, val_put(&k->arena, item, A_apiVersion, VAL_STR(api_version)));
}

/* ---- asking ---- */

/* As client-go: what a proxy on the way could take for another path is no name. */
static int check_segment(struct ktl *k, const char *what, str s)
{
	const char *why = str_eq(s, STR(".")) ? "may not be '.'" : str_eq(s, STR("..")) ? "may not be '..'" :
			  str_chr(s, '/') >= 0 ? "may not contain '/'" : str_chr(s, '%') >= 0 ? "may not contain '%'" : NULL;
	return why ? ktl_fail(k, "invalid %s " STR_FMT ": [%s]", what, STR_ARG(ktl_quote(k, s)), why) : 0;
}

static int fetch(struct ktl *k, struct ktl_info *info, str accept, str query, str subresource)
{
	struct client_raw q = {
		.method = STR("GET"), .path = ktl_kind_path(k, info->kind, info->namespace, info->name, subresource), .query = query,
		.accept = accept.n ? accept : STR("application/json"),
	};
	return ktl_call(k, &q, &info->object);
}

int ktl_fetch(struct ktl *k, struct ktl_info *info) { return fetch(k, info, STR_NONE, STR_NONE, STR_NONE); }

/* A list in pieces, each given to add. */
struct listing {
	const struct ktl_kind *kind;
	str namespace, selector, fields, accept, query;
	int64_t chunk;
};

static str list_query(struct ktl *k, const struct listing *l, str next)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	char digits[24];
	buf_add(&b, l->query);
	if (l->selector.n)
		url_query_add(&b, STR("labelSelector"), l->selector);
	if (l->fields.n)
		url_query_add(&b, STR("fieldSelector"), l->fields);
	if (l->chunk)
		url_query_add(&b, STR("limit"), str_span(digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)l->chunk)));
	if (next.n)
		url_query_add(&b, STR("continue"), next);
	return arena_str(&k->arena, buf_str(&b));
}

/* What the server does not know of a selection, said with the selection. */
static int fail_list(struct ktl *k, const struct listing *l)
{
	str kind = ktl_kind_group_version(k, l->kind);
	if (!ktl_failed_because(k, "BadRequest") && !ktl_failed_because(k, "NotFound"))
		return -1;
	if (!l->selector.n && !l->fields.n)
		return ktl_fail_before(k, "Unable to list \"" STR_FMT ", Resource=" STR_FMT "\": ", STR_ARG(kind), STR_ARG(l->kind->resource));
	return ktl_fail_before(k, "Unable to find \"" STR_FMT ", Resource=" STR_FMT "\" that match label selector " STR_FMT ", field selector " STR_FMT ": ",
			       STR_ARG(kind), STR_ARG(l->kind->resource), STR_ARG(ktl_quote(k, l->selector)), STR_ARG(ktl_quote(k, l->fields)));
}

static int list_piece(struct ktl *k, const struct listing *l, str next, struct val *ret)
{
	struct client_raw q = {
		.method = STR("GET"), .path = ktl_kind_path(k, l->kind, l->namespace, STR_NONE, STR_NONE), .query = list_query(k, l, next),
		.accept = l->accept.n ? l->accept : STR("application/json"),
	};
	return ktl_call(k, &q, ret) < 0 ? fail_list(k, l) : 0;
}

static void add_items(struct ktl *k, struct val list, struct val_builder *ret)
{
	str api_version = val_str(list, apiVersion), kind = val_str(list, kind);
	kind = str_ends(kind, STR("List")) ? str_head(kind, kind.n - 4) : kind;
	VAL_EACH(item, val_get(list, items))
		val_add_item(ret, with_kind(k, *item, api_version, kind));
}

int ktl_list(struct ktl *k, const struct ktl_kind *kind, str namespace, str selector, str fields, struct val *ret)
{
	struct listing l = { .kind = kind, .namespace = namespace, .selector = selector, .fields = fields, .chunk = 500 };
	struct val_builder b = val_builder(&k->arena);
	struct val piece;
	str next = STR_NONE;
	do {
		if (list_piece(k, &l, next, &piece) < 0)
			return -1;
		add_items(k, piece, &b);
	} while ((next = val_str(piece, metadata, continue)).n);
	*ret = val_end_list(&b);
	return 0;
}

/* ---- by type and selector ---- */

static int add_listed(struct ktl *k, const struct ktl_builder *b, const struct ktl_kind *kind, struct ktl_infos *ret)
{
	struct listing l = {
		.kind = kind, .namespace = kind->namespaced && !b->all_namespaces ? b->namespace : STR_NONE, .accept = b->accept,
		.selector = str_of(b->selector ? b->selector : ""), .fields = str_of(b->field_selector ? b->field_selector : ""),
		.query = b->query, .chunk = b->chunk,
	};
	struct val piece;
	str next = STR_NONE;
	do {
		if (list_piece(k, &l, next, &piece) < 0)
			return -1;
		if (b->whole_lists || !is_list(piece)) {
			add_info(k, ret, (struct ktl_info){ .kind = kind, .namespace = l.namespace, .object = piece });
			continue;
		}
		struct val_builder items = val_builder(&k->arena);
		add_items(k, piece, &items);
		VAL_EACH(item, val_end_list(&items))
			add_info(k, ret, (struct ktl_info){ .kind = kind, .namespace = val_str(*item, metadata, namespace),
								 .name = val_str(*item, metadata, name), .object = *item });
	} while ((next = val_str(piece, metadata, continue)).n);
	return 0;
}

/* ---- arguments ---- */

static bool seen(const struct ktl_texts *list, str text)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(str_of(list->v[i]), text))
			return true;
	return false;
}

/* "pods,services" apart, each once. */
static struct ktl_texts split_types(struct ktl *k, const char *arg)
{
	str part, rest = str_of(arg);
	struct ktl_texts out = { ARENA_ARRAY(&k->arena, const char *, rest.n + 2), 0 };
	bool more;
	do {
		more = str_cut(rest, ',', &part, &rest);
		if (!seen(&out, part))
			out.v[out.n++] = ktl_cstr(k, part);
	} while (more);
	return out;
}

/* "all" is those that the server says are. */
static int expand_categories(struct ktl *k, struct ktl_texts types, struct ktl_texts *ret)
{
	size_t cap = types.n + 1;
	*ret = (struct ktl_texts){ ARENA_ARRAY(&k->arena, const char *, cap), 0 };
	for (size_t i = 0; i < types.n; i++) {
		struct val names;
		if (ktl_category(k, str_of(types.v[i]), &names) < 0)
			return -1;
		const char **more = ARENA_ARRAY(&k->arena, const char *, cap += val_len(names) + 1);
		memcpy(more, ret->v, ret->n * sizeof(*more));
		ret->v = more;
		if (!val_exists(names))
			ret->v[ret->n++] = types.v[i];
		VAL_EACH(n, names)
			if (!seen(ret, val_as_str(*n)))
				ret->v[ret->n++] = ktl_cstr(k, val_as_str(*n));
	}
	return 0;
}

/* "a,b x y" is "a/x a/y b/x b/y". */
static struct ktl_texts normalize(struct ktl *k, struct ktl_texts args)
{
	if (args.n < 2)
		return args;
	struct ktl_texts types = split_types(k, args.v[0]);
	if (types.n < 2)
		return args;
	struct ktl_texts out = { ARENA_ARRAY(&k->arena, const char *, types.n * args.n), 0 };
	for (size_t i = 0; i < types.n; i++)
		for (size_t j = 1; j < args.n; j++)
			out.v[out.n++] = arena_printf(&k->arena, "%s/%s", types.v[i], args.v[j]).p;
	return out;
}

static int no_namespace(struct ktl *k, const struct ktl_builder *b)
{
	return ktl_fail(k, "%s", b->all_namespaces ? "a resource cannot be retrieved by name across all namespaces" :
						     "namespace may not be empty when retrieving a resource by name");
}

static int add_named(struct ktl *k, const struct ktl_builder *b, const struct ktl_kind *kind, const char *name, struct ktl_infos *ret)
{
	struct ktl_info info = { .kind = kind, .namespace = kind->namespaced ? b->namespace : STR_NONE, .name = str_of(name) };
	if (kind->namespaced && (!b->namespace.n || b->all_namespaces))
		return no_namespace(k, b);
	if (!info.name.n)
		return ktl_fail(k, "resource name may not be empty");
	if (check_segment(k, "resource name", info.name) < 0)
		return -1;
	if (!b->names_only && fetch(k, &info, b->accept, b->query, b->subresource) < 0)
		return -1;
	add_info(k, ret, info);
	return 0;
}

static int by_slashes(struct ktl *k, const struct ktl_builder *b, struct ktl_texts args, struct ktl_infos *ret)
{
	const struct ktl_kind **kinds = ARENA_ARRAY(&k->arena, const struct ktl_kind *, args.n + 1);
	const char **names = ARENA_ARRAY(&k->arena, const char *, args.n + 1);
	for (size_t i = 0; i < args.n; i++) {
		str type, name;
		(void)str_cut(str_of(args.v[i]), '/', &type, &name);
		if (str_chr(name, '/') >= 0)
			return ktl_fail(k, "arguments in resource/name form may not have more than one slash");
		if (!type.n || !name.n || str_chr(type, ',') >= 0)
			return ktl_fail(k, "arguments in resource/name form must have a single resource and name");
		if (ktl_kind_find(k, type, &kinds[i]) < 0)
			return -1;
		if (b->one_type && i && kinds[i] != kinds[0])
			return ktl_fail(k, "you may only specify a single resource type");
		if (kinds[i]->namespaced && (!b->namespace.n || b->all_namespaces))
			return no_namespace(k, b);
		names[i] = name.p;
	}
	ret->single = args.n == 1;
	for (size_t i = 0; i < args.n; i++)
		if (add_named(k, b, kinds[i], names[i], ret) < 0 && !b->keep_going)
			return -1;
	return 0;
}

static int by_selector(struct ktl *k, const struct ktl_builder *b, struct ktl_texts types, struct ktl_infos *ret)
{
	const struct ktl_kind **kinds = ARENA_ARRAY(&k->arena, const struct ktl_kind *, types.n + 1);
	size_t n = 0;
	if (b->subresource.n)
		return ktl_fail(k, "subresource cannot be used when bulk resources are specified");
	for (size_t i = 0; i < types.n; i++) {
		bool known = false;
		if (ktl_kind_find(k, str_of(types.v[i]), &kinds[n]) < 0)
			return -1;
		for (size_t j = 0; j < n; j++)
			known |= kinds[j] == kinds[n];
		n += !known;
	}
	if (b->one_type && types.n > 1)
		return ktl_fail(k, "you may only specify a single resource type");
	for (size_t i = 0; i < n; i++)
		if (add_listed(k, b, kinds[i], ret) < 0 && !b->keep_going)
			return -1;
	return 0;
}

static int by_names(struct ktl *k, const struct ktl_builder *b, struct ktl_texts args, struct ktl_texts types, struct ktl_infos *ret)
{
	const struct ktl_kind *kind;
	if (types.n > 1)
		return ktl_fail(k, "you must specify only one resource");
	if (ktl_kind_find(k, str_of(types.v[0]), &kind) < 0)
		return -1;
	if (kind->namespaced && (!b->namespace.n || b->all_namespaces))
		return no_namespace(k, b);
	ret->single = args.n == 2;
	for (size_t i = 1; i < args.n; i++)
		if (add_named(k, b, kind, args.v[i], ret) < 0 && !b->keep_going)
			return -1;
	return 0;
}

static int by_arguments(struct ktl *k, const struct ktl_builder *b, struct ktl_infos *ret)
{
	struct ktl_texts args = normalize(k, b->args), types;
	bool selects = b->all || (b->selector && *b->selector) || (b->field_selector && *b->field_selector);
	size_t slashes = 0;
	for (size_t i = 0; i < args.n; i++)
		slashes += strchr(args.v[i], '/') != NULL;
	if (slashes && slashes != args.n)
		return ktl_fail(k, "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'");
	if (slashes && selects)
		return ktl_fail(k, "selectors and the all flag cannot be used when passing resource/name arguments");
	if (slashes)
		return by_slashes(k, b, args, ret);
	if (!args.n)
		return ktl_fail(k, selects ? "at least one resource must be specified to use a selector" :
			"You must provide one or more resources by argument or filename.\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'");
	if (expand_categories(k, split_types(k, args.v[0]), &types) < 0)
		return -1;
	if (args.n > 1 && selects)
		return ktl_fail(k, "name cannot be provided when a selector is specified");
	if (args.n > 1)
		return by_names(k, b, args, types, ret);
	if (selects || b->types_alone)
		return by_selector(k, b, types, ret);
	for (size_t i = 0; i < types.n; i++) {
		const struct ktl_kind *kind;
		if (ktl_kind_find(k, str_of(types.v[i]), &kind) < 0)
			return -1;
	}
	return ktl_fail(k, "resource(s) were provided, but no name was specified");
}

/* ---- files ---- */

static int check_document(struct ktl *k, const struct ktl_document *d, struct val v)
{
	bool version = val_str(v, apiVersion).n, kind = val_str(v, kind).n;
	if (version && kind)
		return 0;
	return ktl_fail(k, "error validating " STR_FMT ": error validating data: %s; if you choose to ignore these errors, turn validation off with --validate=false",
			STR_ARG(ktl_quote(k, d->source)), version ? "kind not set" : kind ? "apiVersion not set" : "[apiVersion not set, kind not set]");
}

static int place(struct ktl *k, const struct ktl_builder *b, struct ktl_info *info)
{
	str own = val_str(info->object, metadata, namespace);
	if (!info->kind || !info->kind->namespaced) {
		info->namespace = STR_NONE;
		if (info->kind && own.n)
			info->object = val_without(&k->arena, info->object, metadata, namespace);
		return 0;
	}
	if (own.n && b->enforce_namespace && !str_eq(own, b->namespace))
		return ktl_fail(k, "the namespace from the provided object " STR_FMT " does not match the namespace " STR_FMT ". You must pass '--namespace=" STR_FMT "' to perform this operation.",
				STR_ARG(ktl_quote(k, own)), STR_ARG(ktl_quote(k, b->namespace)), STR_ARG(own));
	info->namespace = own.n ? own : b->namespace;
	if (!own.n && b->namespace.n) {
		struct val meta = val_put(&k->arena, val_get(info->object, metadata), A_namespace, VAL_STR(b->namespace));
		info->object = val_sorted(&k->arena, val_put(&k->arena, info->object, A_metadata, val_sorted(&k->arena, meta)));
	}
	return 0;
}

static int add_object(struct ktl *k, const struct ktl_builder *b, str source, struct val v, int depth, struct ktl_infos *ret)
{
	struct ktl_info info = { .object = v, .source = source, .name = val_str(v, metadata, name) };
	str api_version = val_str(v, apiVersion), kind = val_str(v, kind), namespace = val_str(v, metadata, namespace);
	if (is_list(v) && depth < LISTS_DEEP) {
		struct val_builder items = val_builder(&k->arena);
		bool typed = !str_eq(kind, STR("List"));
		VAL_EACH(item, val_get(v, items))
			val_add_item(&items, typed ? with_kind(k, *item, api_version, str_head(kind, kind.n - 4)) : *item);
		VAL_EACH(item, val_end_list(&items))
			if (add_object(k, b, source, *item, depth + 1, ret) < 0 && !b->keep_going)
				return -1;
		return 0;
	}
	if (!kind.n)
		return ktl_fail(k, "unable to decode " STR_FMT ": Object 'Kind' is missing in '" STR_FMT "'", STR_ARG(ktl_quote(k, source)),
				STR_ARG(ktl_json(k, v)));
	if (!b->local && ktl_kind_of(k, api_version, kind, &info.kind) < 0)
		return -1;
	if (!b->local && !info.kind)
		return ktl_fail(k, "resource mapping not found for name: " STR_FMT " namespace: " STR_FMT " from " STR_FMT ": no matches for kind " STR_FMT " in version " STR_FMT "\nensure CRDs are installed first",
				STR_ARG(ktl_quote(k, info.name)), STR_ARG(ktl_quote(k, namespace)), STR_ARG(ktl_quote(k, source)),
				STR_ARG(ktl_quote(k, kind)), STR_ARG(ktl_quote(k, api_version)));
	if (place(k, b, &info) < 0 ||
	    (!b->local && (check_segment(k, "resource name", info.name) < 0 || check_segment(k, "namespace", info.namespace) < 0)))
		return -1;
	if (b->latest && info.name.n && fetch(k, &info, b->accept, b->query, b->subresource) < 0)
		return -1;
	add_info(k, ret, info);
	return 0;
}

static int by_files(struct ktl *k, const struct ktl_builder *b, struct ktl_infos *ret)
{
	struct ktl_documents docs;
	struct selector sel;
	struct err err = ERR_INIT;
	struct ktl_infos all = { 0 };
	bool selects = b->selector && *b->selector;
	if (b->args.n)
		return ktl_fail(k, b->args.n > 1 ? "name cannot be provided when a path is specified" :
						   "when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well");
	if (selects && selector_parse(&k->arena, str_of(b->selector), &sel, &err) < 0)
		return ktl_fail(k, "the provided selector \"%s\" is not valid: %s", b->selector, err.msg);
	if (ktl_read_files(k, b->files, b->keep_going, &docs) < 0)
		return -1;
	for (size_t i = 0; i < docs.n; i++) {
		struct val v;
		int r = ktl_parse_json(k, docs.v[i].json, &v, &err) < 0 ? ktl_fail_err(k, &err) : 0;
		if (r == 0 && b->check)
			r = check_document(k, &docs.v[i], v);
		if (r == 0)
			r = add_object(k, b, docs.v[i].source, v, 0, &all);
		if (r < 0 && !b->keep_going)
			return -1;
	}
	ret->single = !docs.many && all.n == 1;
	for (size_t i = 0; i < all.n; i++)
		if (!selects || selector_matches(&sel, val_get(all.v[i].object, metadata, labels)))
			add_info(k, ret, all.v[i]);
	return 0;
}

int ktl_build(struct ktl *k, const struct ktl_builder *b, struct ktl_infos *ret)
{
	*ret = (struct ktl_infos){ 0 };
	if (b->all && ((b->selector && *b->selector) || (b->field_selector && *b->field_selector)))
		return ktl_fail(k, "setting 'all' parameter but found a non empty selector. ");
	if (!b->local && check_segment(k, "namespace", b->namespace) < 0)
		return -1;
	return b->files && !ktl_no_files(b->files) ? by_files(k, b, ret) : by_arguments(k, b, ret);
}
