/*
 * API objects: the kind first, then everything. Kubernetes reads kind and apiVersion with a decoder of their own that
 * ignores case and lets the last one win. Objects nearly always begin with the two, so these are tried first; when
 * the decoder then meets another member of such a name, or the object begins otherwise, the top level is searched as
 * Kubernetes does.
 */
#include "codec/assemble.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/json_scan.h"

/* The next token if it is a plain string followed by c; moves p behind c. */
static bool plain_string(const char **p, const char *end, char c, str *ret)
{
	const char *from = json_skip_space(*p, end);
	unsigned flags;

	if (from == end || *from != '"')
		return false;
	const char *close = json_string_end(++from, end, &flags);
	if (!close || flags)
		return false;
	const char *after = json_skip_space(close + 1, end);
	if (after == end || *after != c)
		return false;
	*ret = str_span(from, (size_t)(close - from));
	*p = after + 1;
	return true;
}

/* Both names as the first two members, in either order. */
static bool peek_kind(str text, struct object_kind *ret)
{
	const char *end = text.p + text.n, *p = json_skip_space(text.p, end);
	str key, value;

	*ret = (struct object_kind){ STR_NONE, STR_NONE };
	if (p == end || *p++ != '{')
		return false;
	for (int i = 0; i < 2; i++) {
		if (!plain_string(&p, end, ':', &key) || !plain_string(&p, end, ',', &value))
			return false;
		if (str_eq(key, STR("kind")))
			ret->kind = value;
		else if (str_eq(key, STR("apiVersion")))
			ret->api_version = value;
		else
			return false;
	}
	return ret->kind.n && ret->api_version.n;
}

#define NO_KIND "couldn't get version/kind; json parse error: "

static const char *token_name(char first)
{
	switch (first) {
	case '{': return "object";
	case '[': return "array";
	case '"': return "string";
	case 't':
	case 'f': return "bool";
	default: return "number";
	}
}

static int not_a_string(char first, const char *field, struct err *err)
{
	return err_set(err, ERR_BAD_REQUEST,
		       NO_KIND "json: cannot unmarshal %s into Go struct field .%s of type string", token_name(first), field);
}

/* One member of the top level, well-formed; p stands at its key and is moved behind its value. */
static int search_member(struct arena *a, const char **p, const char *end, struct object_kind *ret, struct err *err)
{
	unsigned flags;
	const char *from = *p + 1, *close = json_string_end(from, end, &flags);
	str key = json_string_text(a, str_span(from, (size_t)(close - from)), flags);

	from = json_skip_space(json_skip_space(close + 1, end) + 1, end);
	*p = json_value_end(from, end, 1, NULL);
	if (!assembly_is_kind_key(key) || *from == 'n')
		return 0;
	bool kind = key.n < STR("apiVersion").n;
	if (*from != '"')
		return not_a_string(*from, kind ? "kind" : "apiVersion", err);
	close = json_string_end(from + 1, end, &flags);
	str value = json_string_text(a, str_span(from + 1, (size_t)(close - from - 1)), flags);
	*(kind ? &ret->kind : &ret->api_version) = value;
	return 0;
}

static int search_kind(struct arena *a, str text, struct object_kind *ret, struct err *err)
{
	const char *end = text.p + text.n, *p = json_skip_space(text.p, end);
	int r = json_syntax_error(text, NULL, err), first = 0;

	*ret = (struct object_kind){ STR_NONE, STR_NONE };
	if (r < 0)
		return err_wrap(err, r, "couldn't get version/kind; json parse error");
	if (*p == 'n')
		return 0;
	if (*p != '{')
		return err_set(err, ERR_BAD_REQUEST, NO_KIND "json: cannot unmarshal %s into Go value of type struct "
			       "{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
			       token_name(*p));
	for (p = json_skip_space(p + 1, end); *p != '}'; p = *p == ',' ? json_skip_space(p + 1, end) : p) {
		struct err one = ERR_INIT;
		r = search_member(a, &p, end, ret, &one);
		if (r < 0 && first == 0) {
			first = r;
			if (err)
				*err = one;
		}
		p = json_skip_space(p, end);
	}
	return first;
}

static int missing_kind(str text, struct err *err)
{
	return err_set(err, ERR_BAD_REQUEST, "Object 'Kind' is missing in '" STR_FMT "'", STR_ARG(text));
}

/* As schema.ParseGroupVersion and the serializer after it. What is missing is taken from expected, if there is one. */
static int check_kind(struct arena *a, str text, const struct type *expected, struct object_kind *k, struct err *err)
{
	str group, version;
	bool grouped = str_cut(k->api_version, '/', &group, &version);

	if (grouped && str_chr(version, '/') >= 0)
		return err_set(err, ERR_BAD_REQUEST, "unexpected GroupVersion string: " STR_FMT, STR_ARG(k->api_version));
	if (expected && !k->kind.n)
		k->kind = expected->name;
	if (expected && (grouped ? !version.n : !k->api_version.n)) {
		k->api_version = type_api_version(a, expected);
		return 0;
	}
	if (!k->kind.n)
		return missing_kind(text, err);
	if (grouped ? !version.n : !k->api_version.n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'apiVersion' is missing in '" STR_FMT "'", STR_ARG(text));
	if (grouped && !group.n)
		k->api_version = version;
	return 0;
}

/* Gives the tree the kind that was found under another spelling. */
static int put_kind(struct arena *a, const struct object_kind *k, const struct type *type, struct val *v, struct err *err)
{
	if (str_eq(val_str(*v, kind), k->kind) && str_eq(val_str(*v, apiVersion), k->api_version))
		return 0;
	*v = val_put(a, val_put(a, *v, A_kind, val_of_str(k->kind)), A_apiVersion, val_of_str(k->api_version));
	return val_canonical(a, *v, type, NULL, v, err);
}

static int decode_searched(struct arena *a, str text, const struct type *expected, struct strict_errors *strict,
			   struct val *ret, const struct type **ret_type, struct object_kind *ret_kind, struct err *err)
{
	struct object_kind k;
	int r = search_kind(a, text, &k, err);

	if (r < 0 || (r = check_kind(a, text, expected, &k, err)) < 0)
		return r;
	*ret_kind = k;
	const struct type *type = schema_kind(k.api_version, k.kind);
	struct json_decode_options opt = { .type = type, .strict = strict, .sort_keys = true };
	r = json_decode(a, text, &opt, ret, err);
	if (r < 0)
		return r;
	*ret_type = type;
	if (type)
		return put_kind(a, &k, type, ret, err);
	/* Nobody else knows the kind of a free object: it has to be there in the right spelling. */
	return val_str(*ret, kind).n ? 0 : missing_kind(text, err);
}

int json_decode_object(struct arena *a, str text, struct strict_errors *strict, struct val *ret,
		       const struct type **ret_type, struct err *err)
{
	struct object_kind k;
	return json_decode_expected(a, text, NULL, strict, ret, ret_type, &k, err);
}

int json_decode_expected(struct arena *a, str text, const struct type *expected, struct strict_errors *strict,
			 struct val *ret, const struct type **ret_type, struct object_kind *ret_kind, struct err *err)
{
	size_t n_strict = strict ? strict->n : 0;

	text = text.n ? text : STR("");
	const struct type *type = peek_kind(text, ret_kind) ? schema_kind(ret_kind->api_version, ret_kind->kind) : NULL;
	bool recheck = false;

	if (type) {
		struct json_decode_options opt = { .type = type, .strict = strict };
		int r = json_decode_kind(a, text, &opt, ret, &recheck, err);
		if (r == 0 && !recheck)
			*ret_type = type;
		if (!recheck)
			return r;
		if (strict)
			strict->n = n_strict;
	}
	*ret_kind = (struct object_kind){ STR_NONE, STR_NONE };
	return decode_searched(a, text, expected, strict, ret, ret_type, ret_kind, err);
}
