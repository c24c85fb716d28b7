/* Accept, Content-Type and Accept-Encoding, as Kubernetes reads them. */
#include "apiserver/negotiate.h"

#include <stdlib.h>

/* The order is that of error messages; JSON is taken when anything will do. */
static const struct media_row {
	str type, subtype;
	enum media media;
	bool streams, tables, pretty;
} medias[] = {
	{ STR_INIT("application"), STR_INIT("json"), MEDIA_JSON, true, true, true },
	{ STR_INIT("application"), STR_INIT("yaml"), MEDIA_YAML, false, true, false },
	{ STR_INIT("application"), STR_INIT("vnd.kubernetes.protobuf"), MEDIA_PROTO, true, false, false },
};

#define MEDIA_TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"
#define STREAM_TYPES "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

static const struct api_version meta_versions[] = {
	{ .group = STR_INIT("meta.k8s.io"), .version = STR_INIT("v1") },
	{ .group = STR_INIT("meta.k8s.io"), .version = STR_INIT("v1beta1") },
};

/* ---- Accept ---- */

static void clause_param(struct accept_clause *c, str text)
{
	str name, value;
	if (!str_cut(text, '=', &name, &value) || !value.n || str_chr(value, '=') >= 0)
		return;
	name = str_trim(name);
	if (str_eq(name, STR("q"))) {
		char digits[32] = "";
		memcpy(digits, value.p, MIN(value.n, sizeof(digits) - 1));
		char *end;
		c->q = strtod(digits, &end);
		if (*end || value.n >= sizeof(digits))
			c->q = 0;
	} else if (c->n_params < ACCEPT_PARAMS_MAX) {
		c->params[c->n_params].name = name;
		c->params[c->n_params++].value = str_trim(value);
	}
}

static bool clause_parse(str text, struct accept_clause *c)
{
	str range, params, param;
	*c = (struct accept_clause){ .q = 1 };
	str_cut(text, ';', &range, &params);
	if (!str_cut(range, '/', &c->type, &c->subtype) || !c->subtype.n) {
		c->type = str_trim(c->type);
		if (!str_eq(c->type, STR("*")))
			return false;
		c->subtype = STR("*");
	}
	c->type = str_trim(c->type);
	if (str_chr(c->subtype, '/') >= 0)
		return false;
	c->subtype = str_trim(c->subtype);
	while (params.n) {
		str_cut(params, ';', &param, &params);
		clause_param(c, param);
	}
	return true;
}

static bool clause_before(const struct accept_clause *x, const struct accept_clause *y)
{
	bool x_any = str_eq(x->type, STR("*")), y_any = str_eq(y->type, STR("*"));
	if (x->q != y->q)
		return x->q > y->q;
	if (x_any != y_any)
		return y_any;
	return !str_eq(x->subtype, STR("*")) && str_eq(y->subtype, STR("*"));
}

size_t accept_parse(struct arena *a, str header, struct accept_clause **ret)
{
	size_t cap = 1, n = 0;
	for (size_t i = 0; i < header.n && cap < ACCEPT_CLAUSES_MAX; i++)
		cap += header.p[i] == ',';
	struct accept_clause *all = *ret = ARENA_ARRAY(a, struct accept_clause, cap);
	while (header.n && n < cap) {
		struct accept_clause c;
		str text;
		str_cut(header, ',', &text, &header);
		if (!clause_parse(str_trim(text), &c))
			continue;
		size_t at = n++;
		for (; at && clause_before(&c, &all[at - 1]); at--)
			all[at] = all[at - 1];
		all[at] = c;
	}
	return n;
}

str accept_param(const struct accept_clause *c, str name)
{
	str value = STR_NONE;
	for (size_t i = 0; i < c->n_params; i++)
		if (str_eq(c->params[i].name, name))
			value = c->params[i].value;
	return value;
}

static bool wants_transform(const struct accept_clause *c)
{
	return accept_param(c, STR("as")).p || accept_param(c, STR("g")).p || accept_param(c, STR("v")).p;
}

/* as=, v= and g= of a clause: what an object is to be turned into. */
static bool transform_parse(const struct accept_clause *c, const struct media_row *m, struct accept *ret)
{
	str as = accept_param(c, STR("as")), version = accept_param(c, STR("v")), group = accept_param(c, STR("g"));
	for (size_t i = 0; i < ARRAY_LEN(meta_versions); i++)
		if (str_eq(group, meta_versions[i].group) && str_eq(version, meta_versions[i].version))
			ret->as_version = &meta_versions[i];
	if (!ret->as_version)
		return false;
	if (str_eq(as, STR("Table")) && m->tables)
		ret->as = AS_TABLE;
	else if (str_eq(as, STR("PartialObjectMetadata")))
		ret->as = AS_PARTIAL;
	else if (str_eq(as, STR("PartialObjectMetadataList")))
		ret->as = AS_PARTIAL_LIST;
	else
		return false;
	return true;
}

static bool clause_take(const struct accept_clause *c, const struct media_row *m, bool transforms, struct accept *ret)
{
	bool any = str_eq(c->type, STR("*")) && str_eq(c->subtype, STR("*"));
	bool matches = any || (str_eq(c->type, m->type) && (str_eq(c->subtype, m->subtype) || str_eq(c->subtype, STR("*"))));
	if (!matches)
		return false;
	*ret = (struct accept){ .media = m->media };
	str stream = accept_param(c, STR("stream")), server_version = accept_param(c, STR("sv"));
	if (stream.n && (!m->streams || !str_eq(stream, STR("watch"))))
		return false;
	if (server_version.n && !(transforms && str_eq(server_version, STR("v1"))))
		return false;
	if (wants_transform(c) && !(transforms && transform_parse(c, m, ret)))
		return false;
	ret->pretty = m->pretty && str_eq(accept_param(c, STR("pretty")), STR("1"));
	return true;
}

static bool choose(const struct request *q, bool transforms, struct accept *ret)
{
	str header = http_request_header(q->http, STR("accept"));
	*ret = (struct accept){ .media = MEDIA_JSON };
	if (!header.n || str_eq(header, STR("application/json")) || str_eq(header, STR("*/*")))
		return true; /* most requests */
	struct accept_clause *clauses;
	size_t n = accept_parse(q->arena, header, &clauses);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_LEN(medias); k++)
			if (clause_take(&clauses[i], &medias[k], transforms, ret))
				return true;
	return false;
}

/* ?pretty=, or else a program that people sit in front of. */
static bool for_people(const struct request *q)
{
	str pretty = request_query(q, STR("pretty"));
	if (pretty.n) {
		static const str yes[] = { STR_INIT("1"),    STR_INIT("t"),    STR_INIT("T"),
					   STR_INIT("true"), STR_INIT("TRUE"), STR_INIT("True") };
		for (size_t i = 0; i < ARRAY_LEN(yes); i++)
			if (str_eq(pretty, yes[i]))
				return true;
		return false;
	}
	str agent = http_request_header(q->http, STR("user-agent"));
	return str_starts(agent, STR("curl")) || str_starts(agent, STR("Wget")) || str_starts(agent, STR("Mozilla/5.0"));
}

/*
 * Kubernetes' router looks first, at bare media types only; what does not pass it is refused with another text than
 * what does not pass the endpoint.
 */
static bool router_takes(str header)
{
	str text, range, params;
	if (!header.n)
		return true;
	while (header.n) {
		str_cut(header, ',', &text, &header);
		str_cut(text, ';', &range, &params);
		range = str_trim(range);
		if (str_eq(range, STR("*/*")))
			return true;
		for (size_t i = 0; i < ARRAY_LEN(medias); i++)
			if (range.n == medias[i].type.n + 1 + medias[i].subtype.n && str_starts(range, medias[i].type) &&
			    range.p[medias[i].type.n] == '/' && str_ends(range, medias[i].subtype))
				return true;
	}
	return false;
}

int negotiate_accept(struct request *q, struct err *err)
{
	(void)err;
	bool streams = q->verb == REQUEST_LIST || q->verb == REQUEST_WATCH;
	if (q->is_resource && !router_takes(http_request_header(q->http, STR("accept"))))
		return request_fail(q, ERR_NOT_ACCEPTABLE, VAL_EMPTY_OBJECT,
				    "406: Not Acceptable\n\nAvailable representations: " MEDIA_TYPES "%s",
				    streams ? ", " STREAM_TYPES : "");
	if (!choose(q, q->is_resource, &q->accept))
		return request_fail(q, ERR_NOT_ACCEPTABLE, VAL_EMPTY,
				    "only the following media types are accepted: " MEDIA_TYPES);
	if (q->verb == REQUEST_WATCH && q->accept.media == MEDIA_YAML)
		return request_fail(q, ERR_NOT_ACCEPTABLE, VAL_EMPTY,
				    "only the following media types are accepted: " STREAM_TYPES);
	if (q->accept.media == MEDIA_JSON && q->verb != REQUEST_WATCH)
		q->accept.pretty = q->accept.pretty || for_people(q);
	return 0;
}

bool negotiate_status(const struct request *q, struct accept *ret)
{
	if (!choose(q, false, ret))
		return false;
	ret->pretty = ret->media == MEDIA_JSON && (ret->pretty || for_people(q));
	return true;
}

/* ---- Content-Type ---- */

static bool is_token(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f || str_chr(STR("()<>@,;:\\\"/[]?="), s.p[i]) >= 0)
			return false;
	return s.n > 0;
}

str negotiate_content_type(const struct request *q)
{
	str range, params, type, subtype;
	str_cut(http_request_header(q->http, STR("content-type")), ';', &range, &params);
	range = str_trim(range);
	if (!str_cut(range, '/', &type, &subtype) || !is_token(type) || !is_token(subtype))
		return STR_NONE;
	char *out = arena_alloc(q->arena, range.n, 1);
	for (size_t i = 0; i < range.n; i++)
		out[i] = range.p[i] >= 'A' && range.p[i] <= 'Z' ? (char)(range.p[i] - 'A' + 'a') : range.p[i];
	return str_span(out, range.n);
}

int negotiate_body(struct request *q, enum media *ret, struct err *err)
{
	(void)err;
	str header = http_request_header(q->http, STR("content-type")), type, subtype;
	if (!header.n || str_eq(header, STR("application/json"))) {
		*ret = MEDIA_JSON;
		return 0;
	}
	str_cut(negotiate_content_type(q), '/', &type, &subtype);
	for (size_t i = 0; i < ARRAY_LEN(medias); i++)
		if (str_eq(type, medias[i].type) && str_eq(subtype, medias[i].subtype)) {
			*ret = medias[i].media;
			return 0;
		}
	return request_fail(q, ERR_UNSUPPORTED_MEDIA, VAL_EMPTY,
			    "the body of the request was in an unknown format - accepted media types include: " MEDIA_TYPES);
}

int negotiate_fail_patch(struct request *q)
{
	return request_fail(q, ERR_UNSUPPORTED_MEDIA, VAL_EMPTY_OBJECT, "415: Unsupported Media Type");
}

/* Accept-Encoding has the form of Accept without subtypes. */
bool negotiate_gzip(const struct request *q)
{
	str rest = http_request_header(q->http, STR("accept-encoding")), part, name, parameter;
	while (rest.n) {
		str_cut(rest, ',', &part, &rest);
		str_cut(part, ';', &name, &parameter);
		if (str_eq(str_trim(name), STR("gzip")))
			return !str_eq(str_trim(parameter), STR("q=0"));
	}
	return false;
}
