/* Reading the options of lists and watches, with Kubernetes' checks and texts. */
#include "apiserver/list_options.h"

#include "codec/atoms.h"

static bool query_has(const struct request *q, str name)
{
	for (size_t i = 0; i < q->n_query; i++)
		if (str_eq(q->query[i].name, name))
			return true;
	return false;
}

/* Go's ParseInt, which takes a sign and leading zeros too. */
static int query_int(struct request *q, str name, int64_t *ret)
{
	*ret = 0;
	if (!query_has(q, name))
		return 0;
	str text = request_query(q, name), digits = text;
	if (digits.n > 1 && digits.p[0] == '+')
		digits = str_skip(digits, 1);
	if (str_to_i64(digits, ret))
		return 0;
	bool number = digits.n > 0;
	for (size_t i = digits.n && digits.p[0] == '-'; i < digits.n; i++)
		number = number && digits.p[i] >= '0' && digits.p[i] <= '9';
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	buf_add_quoted(&b, text);
	return fail_bad_request(q, "strconv.ParseInt: parsing " STR_FMT ": %s", STR_ARG(buf_str(&b)),
				number && !str_eq(digits, STR("-")) ? "value out of range" : "invalid syntax");
}

static const str match_exact = STR_INIT("Exact"), match_not_older = STR_INIT("NotOlderThan");

static void check_list(struct field_errors *e, const struct list_options *o, str match)
{
	const struct field_path *at = FIELD(NULL, "resourceVersionMatch");
	if (match.n) {
		if (!o->revision.n)
			field_forbidden(e, at, "resourceVersionMatch is forbidden unless resourceVersion is provided");
		if (o->next.n)
			field_forbidden(e, at, "resourceVersionMatch is forbidden when continue is provided");
		if (!str_eq(match, match_exact) && !str_eq(match, match_not_older))
			field_not_supported(e, at, val_of_str(match),
					    (const str[]){ match_exact, match_not_older, STR(""), STR_NONE });
		if (str_eq(match, match_exact) && str_eq(o->revision, STR("0")))
			field_forbidden(e, at, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
	}
	if (o->initial != INITIAL_UNSET)
		field_forbidden(e, FIELD(NULL, "sendInitialEvents"), "sendInitialEvents is forbidden for list");
}

static void check_watch(struct field_errors *e, const struct list_options *o, str match)
{
	const struct field_path *at = FIELD(NULL, "resourceVersionMatch");
	if (o->initial != INITIAL_UNSET && !str_eq(match, match_not_older))
		field_forbidden(e, at, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	if (!match.n)
		return;
	if (o->initial == INITIAL_UNSET)
		field_forbidden(e, at, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
	if (!str_eq(match, match_not_older))
		field_not_supported(e, at, val_of_str(match), (const str[]){ match_not_older, STR_NONE });
	if (o->next.n)
		field_forbidden(e, at, "resourceVersionMatch is forbidden when continue is provided");
}

static int read_selectors(struct request *q, struct list_options *o, struct err *err)
{
	str labels = request_query(q, STR("labelSelector")), fields = request_query(q, STR("fieldSelector"));
	int r = 0;
	if (labels.n)
		r = selector_parse(q->arena, labels, &o->labels, err);
	if (r >= 0 && fields.n)
		r = field_selector_parse(q->arena, fields, &o->fields, err);
	return r < 0 ? fail_bad_request(q, STR_FMT, STR_ARG(err_str(err))) : 0;
}

/* The name of the path, or that of the field selector; both must agree. */
static int read_name(struct request *q, struct list_options *o, struct err *err)
{
	int r = field_selector_bind(q->arena, &o->fields, q->endpoint->type, err);
	if (r < 0)
		return fail_bad_request(q, STR_FMT, STR_ARG(err_str(err)));
	bool named = field_selector_requires(&o->fields, STR("metadata.name"), &o->name);
	if (!q->name.n)
		return 0;
	if (o->fields.n && (!named || !str_eq(o->name, q->name)))
		return fail_bad_request(q, "fieldSelector metadata.name doesn't match requested name");
	o->name = q->name;
	return 0;
}

int list_options_read(struct request *q, struct list_options *o, struct err *err)
{
	bool watch = q->verb == REQUEST_WATCH;
	*o = (struct list_options){
		.revision = request_query(q, STR("resourceVersion")), .next = request_query(q, STR("continue")),
	};
	str match = request_query(q, STR("resourceVersionMatch"));
	if (query_has(q, STR("sendInitialEvents")))
		o->initial = request_query_bool(q, STR("sendInitialEvents")) ? INITIAL_YES : INITIAL_NO;
	o->bookmarks = request_query_bool(q, STR("allowWatchBookmarks"));
	int r = query_int(q, STR("timeoutSeconds"), &o->timeout_s);
	if (r >= 0)
		r = query_int(q, STR("limit"), &o->limit);
	if (r >= 0)
		r = read_selectors(q, o, err);
	if (r < 0)
		return r;
	o->limit = MAX(o->limit, (int64_t)0);
	/* A watch that does not say where it begins gets the state first, as it always did. */
	if (watch && o->initial == INITIAL_UNSET && !match.n && (!o->revision.n || str_eq(o->revision, STR("0")))) {
		o->initial = INITIAL_YES;
		match = match_not_older;
	}
	struct field_errors errors;
	field_errors_init(&errors, q->arena);
	if (watch)
		check_watch(&errors, o, match);
	else
		check_list(&errors, o, match);
	if (errors.n)
		return fail_invalid(q, STR("meta.k8s.io"), STR("ListOptions"), STR(""), &errors);
	o->match = !match.n ? MATCH_UNSET : str_eq(match, match_exact) ? MATCH_EXACT : MATCH_NOT_OLDER_THAN;
	r = read_name(q, o, err);
	o->selects = o->fields.n || !selector_is_everything(&o->labels);
	if (q->endpoint->kind && q->endpoint->kind->namespaced)
		o->namespace = q->namespace;
	return r;
}

bool list_options_match(const struct list_options *o, const struct object *object)
{
	if (o->namespace.n && !(object->key.n > o->namespace.n && object->key.p[o->namespace.n] == '/' &&
				str_starts(object->key, o->namespace)))
		return false;
	if (o->name.n) {
		str key = object->key;
		if (!str_ends(key, o->name) || (key.n > o->name.n && key.p[key.n - o->name.n - 1] != '/'))
			return false;
	}
	if (!o->selects)
		return true;
	return (selector_is_everything(&o->labels) || selector_matches(&o->labels, val_get(object->val, metadata, labels))) &&
	       (!o->fields.n || field_selector_matches(&o->fields, object->val));
}
