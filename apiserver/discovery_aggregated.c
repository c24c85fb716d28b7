/*
 * Discovery of everything at once: all groups, versions and resources in one document, for clients that ask for it at
 * /api and /apis by the form of their Accept header. The ETag is that of the tree as JSON, whatever form it is sent in.
 */
#include "apiserver/documents_priv.h"
#include "apiserver/negotiate.h"
#include "codec/atoms.h"
#include "codec/types.h"

/* ---- the tree ---- */

static struct val response_kind(struct arena *a, const struct resource *r)
{
	bool foreign = resource_is_foreign(r);
	return OBJECT(a, F(group, val_of_str(foreign ? r->response_group : STR(""))),
		      F(version, val_of_str(foreign ? r->response_version : STR(""))), F(kind, val_of_str(r->kind)));
}

/* The endpoints of a resource's subresources come directly after its own: those from *i on, which is set behind them. */
static struct val subresources(struct arena *a, const struct kinds *k, const struct endpoint *main, size_t *i)
{
	struct val_builder list = val_builder(a);

	for (; *i < k->n_endpoints && k->endpoints[*i].main == main; ++*i) {
		const struct endpoint *e = &k->endpoints[*i];
		val_add_item(&list, OBJECT(a, F(subresource, val_of_str(e->subresource)),
					   F(responseKind, response_kind(a, e->resource)), F(verbs, discovery_verbs(a, e->resource))));
	}
	return list.n ? val_end_list(&list) : VAL_EMPTY;
}

static struct val version_tree(struct arena *a, const struct kinds *k, const struct api_version *v)
{
	struct val_builder list = val_builder(a);

	for (size_t i = 0; i < k->n_endpoints;) {
		const struct endpoint *e = &k->endpoints[i++];
		const struct resource *r = e->resource;
		if (!str_eq(r->group, v->group) || !str_eq(r->version, v->version) || e->main != e)
			continue;
		val_add_item(&list, OBJECT(a, F(resource, val_of_str(r->name)), F(responseKind, response_kind(a, r)),
					   F(scope, r->flags & RESOURCE_NAMESPACED ? VAL_LIT("Namespaced") : VAL_LIT("Cluster")),
					   F(singularResource, val_of_str(r->singular)), F(verbs, discovery_verbs(a, r)),
					   F(shortNames, discovery_names(a, r->short_names)),
					   F(categories, discovery_names(a, r->categories)),
					   F(subresources, subresources(a, k, e, &i))));
	}
	return OBJECT(a, F(version, val_of_str(v->version)), F(resources, val_end_list(&list)), F(freshness, VAL_LIT("Current")));
}

static struct val group_items(struct request *q, bool core)
{
	struct arena *a = q->arena;
	const struct api_version **versions;
	size_t n = served_versions(q, &versions);
	struct val_builder items = val_builder(a);

	for (size_t i = 0; i < n;) {
		str group = versions[i]->group;
		struct val_builder list = val_builder(a);
		for (; i < n && str_eq(versions[i]->group, group); i++)
			val_add_item(&list, version_tree(a, &q->server->kinds, versions[i]));
		if (!group.n == core)
			val_add_item(&items, OBJECT(a, F(metadata, OBJECT(a, F(name, group.n ? val_of_str(group) : VAL_EMPTY))),
						    F(versions, val_end_list(&list))));
	}
	return val_end_list(&items);
}

/* ---- Accept ---- */

static const struct type *type_asked_for(const struct accept_clause *c)
{
	if (!str_eq(accept_param(c, STR("as")), STR("APIGroupDiscoveryList")) ||
	    !str_eq(accept_param(c, STR("g")), STR("apidiscovery.k8s.io")))
		return NULL;
	str version = accept_param(c, STR("v"));
	if (str_eq(version, STR("v2")))
		return TYPE(apidiscovery_v2, APIGroupDiscoveryList);
	return str_eq(version, STR("v2beta1")) ? TYPE(apidiscovery_v2beta1, APIGroupDiscoveryList) : NULL;
}

static bool media_of(const struct accept_clause *c, enum media *ret)
{
	bool any = str_eq(c->subtype, STR("*"));
	if (!str_eq(c->type, STR("application")) && !(any && str_eq(c->type, STR("*"))))
		return false;
	if (any || str_eq(c->subtype, STR("json")))
		*ret = MEDIA_JSON;
	else if (str_eq(c->subtype, STR("yaml")))
		*ret = MEDIA_YAML;
	else if (str_eq(c->subtype, STR("vnd.kubernetes.protobuf")))
		*ret = MEDIA_PROTO;
	else
		return false;
	return true;
}

/*
 * The first clause that can be met decides. One without as=, g= and v= can be: then the client prefers the original form,
 * which negotiate_accept will find again.
 */
bool discovery_wants_aggregated(struct request *q, const struct type **ret_type)
{
	struct accept_clause *clauses;
	struct accept accept = { .media = MEDIA_JSON };
	size_t n = accept_parse(q->arena, http_request_header(q->http, STR("accept")), &clauses);

	for (size_t i = 0; i < n; i++) {
		const struct accept_clause *c = &clauses[i];
		if (!media_of(c, &accept.media))
			continue;
		if (!accept_param(c, STR("as")).p && !accept_param(c, STR("g")).p && !accept_param(c, STR("v")).p)
			return false;
		*ret_type = type_asked_for(c);
		if (!*ret_type)
			continue;
		accept.pretty = accept.media == MEDIA_JSON && str_eq(accept_param(c, STR("pretty")), STR("1"));
		q->accept = accept;
		return true;
	}
	return false;
}

/* ---- the answer ---- */

static int make(struct request *q, bool core, str name, const struct type *type, struct document **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(DOCUMENT_MAX);
	struct val items = group_items(q, core);
	struct val list = OBJECT(q->arena, F(metadata, VAL_EMPTY_OBJECT), F(items, items));
	struct json_encode_options options = { .type = TYPE(apidiscovery_v2, APIGroupDiscoveryList) };
	int r = json_encode(&plain, list, &options, err);
	if (r < 0)
		return r;
	struct val v = OBJECT(q->arena, F(kind, VAL_LIT("APIGroupDiscoveryList")),
			      F(apiVersion, val_of_str(type_api_version(q->arena, type))), F(metadata, VAL_EMPTY_OBJECT),
			      F(items, items));
	r = discovery_document(q, name, v, type, ret, err);
	if (r >= 0)
		etag_of(buf_str(&plain), (*ret)->etag);
	return r;
}

int discovery_aggregated(struct request *q, bool core, const struct type *type, struct err *err)
{
	str name = arena_printf(q->arena, "%s " STR_FMT " %d%d", core ? "/api" : "/apis", STR_ARG(type->package->version), q->accept.media,
				q->accept.pretty);
	struct document *doc = documents_find(q->server, name);
	int r = doc ? 0 : make(q, core, name, type, &doc, err);
	if (r < 0)
		return r;
	answer_header(q, STR("vary"), STR("Accept"));
	answer_header(q, STR("cache-control"), STR("public"));
	/* As Kubernetes: the form is part of the type, so that clients know what they got. */
	str content_type = arena_printf(q->arena, STR_FMT ";g=apidiscovery.k8s.io;v=" STR_FMT ";as=APIGroupDiscoveryList",
					STR_ARG(discovery_content_type(q)), STR_ARG(type->package->version));
	return answer_document(q, doc, content_type, err);
}
