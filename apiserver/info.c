/*
 * STAGE_INFO: what is asked for. The path is decoded once and cut at its slashes; from then on nobody looks at the text
 * again. Whether what it names exists is looked at later, by route(): strangers are not told what does.
 */
#include "apiserver/apiserver.h"
#include "apiserver/audit/audit.h"
#include "apiserver/pipeline.h"
#include "apiserver/route.h"
#include "net/url.h"

/* More than the longest path of a resource has; what a proxy is asked for may be longer. */
enum { PARTS_MAX = 12 };

struct parts {
	str v[PARTS_MAX];
	size_t n;
};

/*
 * The segments of a path; slashes in a row count as one at both ends only, as Kubernetes splits it. What is behind the last
 * part is left out: such a path is too deep for a resource, and proxies take it from the path as it was sent.
 */
static void split(str path, struct parts *ret)
{
	ret->n = 0;
	while (path.n && path.p[0] == '/')
		path = str_skip(path, 1);
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	while (path.n && ret->n < PARTS_MAX)
		str_cut(path, '/', &ret->v[ret->n++], &path);
}

static void parse_query(struct request *q, str text)
{
	struct url_query query;
	(void)url_query_parse(q->arena, text, &query, NULL); /* pairs that cannot be decoded do not count, as in Go */
	q->query = ARENA_ARRAY(q->arena, struct query_parameter, query.n);
	q->n_query = query.n;
	for (size_t i = 0; i < query.n; i++)
		q->query[i] = (struct query_parameter){ query.params[i].key, query.params[i].value };
}

static enum request_verb verb_of_method(str method)
{
	static const struct {
		str method;
		enum request_verb verb;
	} table[] = {
		{ STR_INIT("GET"), REQUEST_GET },     { STR_INIT("HEAD"), REQUEST_GET },
		{ STR_INIT("POST"), REQUEST_CREATE }, { STR_INIT("PUT"), REQUEST_UPDATE },
		{ STR_INIT("PATCH"), REQUEST_PATCH }, { STR_INIT("DELETE"), REQUEST_DELETE },
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(method, table[i].method))
			return table[i].verb;
	return REQUEST_OTHER;
}

static str verb_text(enum request_verb verb)
{
	static const str texts[] = {
		[REQUEST_GET] = STR_INIT("get"),       [REQUEST_LIST] = STR_INIT("list"),
		[REQUEST_WATCH] = STR_INIT("watch"),   [REQUEST_CREATE] = STR_INIT("create"),
		[REQUEST_UPDATE] = STR_INIT("update"), [REQUEST_PATCH] = STR_INIT("patch"),
		[REQUEST_DELETE] = STR_INIT("delete"), [REQUEST_DELETE_COLLECTION] = STR_INIT("deletecollection"),
	};
	return verb < ARRAY_LEN(texts) ? texts[verb] : STR_NONE;
}

static bool is_namespace_subresource(str s)
{
	return str_eq(s, STR("status")) || str_eq(s, STR("finalize"));
}

static bool is_connect(str resource, str subresource)
{
	static const str pods[] = { STR_INIT("exec"), STR_INIT("attach"), STR_INIT("portforward"), STR_INIT("proxy") };
	if (str_eq(resource, STR("pods")))
		for (size_t i = 0; i < ARRAY_LEN(pods); i++)
			if (str_eq(subresource, pods[i]))
				return true;
	return str_eq(subresource, STR("proxy")) && (str_eq(resource, STR("services")) || str_eq(resource, STR("nodes")));
}

/* What follows "/proxy" in the path as it was sent: not decoded, so that the other side sees what the client wrote. */
static str rest_of_path(str sent, size_t segments)
{
	while (segments-- > 0) {
		ptrdiff_t at = str_chr(str_skip(sent, 1), '/');
		if (at < 0)
			return STR_NONE;
		sent = str_skip(sent, (size_t)at + 1);
	}
	return sent;
}

/* From the parts behind /api or /apis/GROUP: version, and then [watch/][namespaces/NS/]resource[/name[/subresource]]. */
static int parse_resource(struct request *q, const struct parts *all, size_t at, struct err *err)
{
	q->is_resource = true;
	q->version = all->v[at++];
	q->verb = verb_of_method(q->method);
	bool watch = str_eq(all->v[at], STR("watch"));
	if (watch) {
		if (++at == all->n)
			return err_set(err, ERR_BAD_REQUEST, "unable to determine kind and namespace from url, " STR_FMT,
				       STR_ARG(q->path));
		q->verb = REQUEST_WATCH;
	}
	if (str_eq(all->v[at], STR("namespaces")) && at + 1 < all->n) {
		q->namespace = all->v[at + 1];
		if (at + 2 < all->n && !is_namespace_subresource(all->v[at + 2]))
			at += 2;
	}
	size_t n = all->n - at;
	q->resource = all->v[at];
	q->name = n >= 2 ? all->v[at + 1] : STR_NONE;
	q->subresource = n >= 3 ? all->v[at + 2] : STR_NONE;
	bool connect = !watch && is_connect(q->resource, q->subresource); /* what was asked for as a watch is no way to a pod */
	if (connect)
		q->rest = rest_of_path(q->http->path, at + 3);
	else if (n > 3)
		q->resource = STR_NONE; /* no resource is that deep */
	if (!q->name.n && q->verb == REQUEST_GET)
		q->verb = request_query_bool(q, STR("watch")) ? REQUEST_WATCH : REQUEST_LIST;
	if (!q->name.n && q->verb == REQUEST_DELETE)
		q->verb = REQUEST_DELETE_COLLECTION;
	q->verb_text = verb_text(q->verb);
	if (connect && q->verb != REQUEST_OTHER)
		q->verb = REQUEST_CONNECT;
	return 0;
}

int stage_info(struct request *q, struct err *err)
{
	parse_query(q, q->http->query);
	int r = url_path_unescape(q->arena, q->http->path, &q->path, err);
	if (r < 0) {
		q->path = q->http->path;
		return fail_bad_request(q, "the path cannot be decoded: " STR_FMT, STR_ARG(err_str(err)));
	}
	/* no name has a zero byte, and what formats keys and addresses would end there */
	if (str_chr(q->path, '\0') >= 0)
		return fail_no_such_resource(q);
	struct parts parts;
	split(q->path, &parts);
	q->verb_text = q->method;
	bool core = parts.n >= 3 && str_eq(parts.v[0], STR("api"));
	bool group = parts.n >= 4 && str_eq(parts.v[0], STR("apis"));
	if (!core && !group)
		return STAGE_NEXT;
	if (group)
		q->group = parts.v[1];
	r = parse_resource(q, &parts, core ? 1 : 2, err);
	return r < 0 ? r : STAGE_NEXT;
}

/* The bit of enum verb that an endpoint must have for this request. */
static unsigned verb_bit(const struct request *q)
{
	switch (q->verb) {
	case REQUEST_GET: return VERB_GET;
	case REQUEST_LIST: return VERB_LIST;
	case REQUEST_WATCH: return VERB_WATCH;
	case REQUEST_CREATE: return VERB_CREATE;
	case REQUEST_UPDATE: return VERB_UPDATE;
	case REQUEST_PATCH: return VERB_PATCH;
	case REQUEST_DELETE: return VERB_DELETE;
	case REQUEST_DELETE_COLLECTION: return VERB_DELETE_COLLECTION;
	default: return 0;
	}
}

/*
 * Whether the path has the shape that its resource has: names and namespaces where they belong. Lists over all
 * namespaces are the one thing that a namespaced resource has at the cluster's path. A namespace is in itself, and in no
 * other: who may do something in one was asked about that one.
 */
static bool shape_fits(const struct request *q, const struct endpoint *e)
{
	bool namespaced = e->main->resource->flags & RESOURCE_NAMESPACED;
	bool is_namespaces = str_eq(q->resource, STR("namespaces")) && !q->group.n;
	if (!namespaced && !str_eq(q->namespace, is_namespaces ? q->name : STR_NONE))
		return false;
	if (q->verb == REQUEST_WATCH && q->subresource.n)
		return false;
	if (namespaced && !q->namespace.n)
		return !q->name.n && !q->subresource.n &&
		       (e->main->resource->verbs & VERB_LIST) != 0;
	return true;
}

/* Versions that are going away tell so with every answer. */
static void warn_deprecated(struct request *q)
{
	bool endpoints = str_eq(q->resource, STR("endpoints"));
	if (q->group.n || (!endpoints && !str_eq(q->resource, STR("componentstatuses"))))
		return;
	request_warn(q, endpoints ? STR("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice") :
				    STR("v1 ComponentStatus is deprecated in v1.19+"));
	audit_annotate(q, STR("k8s.io/deprecated"), STR("true"));
}

int route(struct request *q)
{
	const struct endpoint *e = kinds_endpoint(&q->server->kinds, q->group, q->version, q->resource, q->subresource);
	if (!e || !shape_fits(q, e))
		return fail_no_such_resource(q);
	q->endpoint = e;
	bool reads = q->verb == REQUEST_GET || q->verb == REQUEST_LIST || q->verb == REQUEST_WATCH;
	if (q->verb == REQUEST_CONNECT) {
		/* proxies take every method; exec and its kind are opened by GET or POST */
		bool proxy = str_eq(q->subresource, STR("proxy"));
		bool opens = str_eq(q->method, STR("GET")) || str_eq(q->method, STR("POST"));
		return proxy || opens ? 0 : fail_method_not_allowed(q);
	}
	bool collection_verb = q->verb == REQUEST_LIST || q->verb == REQUEST_DELETE_COLLECTION ||
			       q->verb == REQUEST_WATCH || (q->verb == REQUEST_CREATE && !q->subresource.n);
	bool at_collection = !q->name.n;
	if (q->verb == REQUEST_WATCH && q->name.n)
		at_collection = true; /* /watch/.../NAME */
	/* across all namespaces there are only lists and watches */
	bool across = e->kind && e->kind->namespaced && !q->namespace.n;
	if ((reads && !str_eq(q->method, STR("GET"))) || !(e->resource->verbs & verb_bit(q)) ||
	    collection_verb != at_collection ||
	    (across && q->verb != REQUEST_LIST && q->verb != REQUEST_WATCH))
		return fail_method_not_allowed(q);
	warn_deprecated(q);
	return 0;
}
