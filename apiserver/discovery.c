/*
 * Discovery in its original form: the versions of the core group at /api, the groups at /apis, one group at /apis/GROUP,
 * and the resources of a version below them. Everything comes from the table of endpoints: what is listed is served.
 */
#include "apiserver/documents_priv.h"
#include "apiserver/negotiate.h"
#include "codec/atoms.h"
#include "codec/types.h"

bool resource_is_foreign(const struct resource *r)
{
	return !str_eq(r->response_group, r->group) || !str_eq(r->response_version, r->version);
}

struct val discovery_names(struct arena *a, const str *names)
{
	struct val_builder list = val_builder(a);
	if (!names || !names->p)
		return VAL_EMPTY;
	for (; names->p; names++)
		val_add_item(&list, val_of_str(*names));
	return val_end_list(&list);
}

struct val discovery_verbs(struct arena *a, const struct resource *r)
{
	static const struct {
		enum verb verb;
		str name;
	} verbs[] = {
		{ VERB_CREATE, STR_INIT("create") }, { VERB_DELETE, STR_INIT("delete") },
		{ VERB_DELETE_COLLECTION, STR_INIT("deletecollection") }, { VERB_GET, STR_INIT("get") },
		{ VERB_LIST, STR_INIT("list") }, { VERB_PATCH, STR_INIT("patch") }, { VERB_UPDATE, STR_INIT("update") },
		{ VERB_WATCH, STR_INIT("watch") },
	};
	struct val_builder list = val_builder(a);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (r->verbs & verbs[i].verb)
			val_add_item(&list, val_of_str(verbs[i].name));
	return val_end_list(&list);
}

/* ---- trees ---- */

static struct val text(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

static struct val api_resource(struct arena *a, const struct endpoint *e)
{
	const struct resource *r = e->resource;
	bool foreign = resource_is_foreign(r);
	return OBJECT(a, F(name, val_of_str(r->name)), F(singularName, text(r->singular)),
		      F(namespaced, val_of_bool(r->flags & RESOURCE_NAMESPACED)),
		      F(group, foreign ? text(r->response_group) : VAL_EMPTY),
		      F(version, foreign ? text(r->response_version) : VAL_EMPTY), F(kind, val_of_str(r->kind)),
		      F(verbs, discovery_verbs(a, r)),
		      F(shortNames, discovery_names(a, r->short_names)), F(categories, discovery_names(a, r->categories)),
		      F(storageVersionHash, text(r->storage_hash)));
}

static str group_version(struct arena *a, str group, str version)
{
	return group.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)) : version;
}

/* The core group's answers have no apiVersion, as they had none when clients were first written. */
static struct val resource_list(struct request *q, str group, str version)
{
	struct arena *a = q->arena;
	const struct kinds *k = &q->server->kinds;
	struct val_builder list = val_builder(a);

	for (size_t i = 0; i < k->n_endpoints; i++)
		if (str_eq(k->endpoints[i].resource->group, group) && str_eq(k->endpoints[i].resource->version, version))
			val_add_item(&list, api_resource(a, &k->endpoints[i]));
	return OBJECT(a, F(kind, VAL_LIT("APIResourceList")), F(apiVersion, group.n ? VAL_LIT("v1") : VAL_EMPTY),
		      F(groupVersion, val_of_str(group_version(a, group, version))), F(resources, val_end_list(&list)));
}

static struct val core_versions(struct request *q)
{
	const struct apiserver *s = q->server;
	struct arena *a = q->arena;
	str address = str_of(s->options.advertise_address);
	bool v6 = str_chr(address, ':') >= 0;
	str server = arena_printf(a, "%s" STR_FMT "%s:%u", v6 ? "[" : "", STR_ARG(address), v6 ? "]" : "", (unsigned)s->port);
	struct val network = OBJECT(a, F(clientCIDR, VAL_LIT("0.0.0.0/0")), F(serverAddress, val_of_str(server)));
	return OBJECT(a, F(kind, VAL_LIT("APIVersions")), F(versions, LIST(a, VAL_LIT("v1"))),
		      F(serverAddressByClientCIDRs, LIST(a, network)));
}

/* The group that begins at versions[*i], which is set to the one after it. */
static struct val api_group(struct arena *a, const struct api_version *const *versions, size_t n, size_t *i, bool kind)
{
	struct val_builder list = val_builder(a);
	str group = versions[*i]->group;

	for (; *i < n && str_eq(versions[*i]->group, group); ++*i)
		val_add_item(&list, OBJECT(a, F(groupVersion, val_of_str(group_version(a, group, versions[*i]->version))),
					   F(version, val_of_str(versions[*i]->version))));
	struct val all = val_end_list(&list);
	return OBJECT(a, F(kind, kind ? VAL_LIT("APIGroup") : VAL_EMPTY), F(apiVersion, kind ? VAL_LIT("v1") : VAL_EMPTY),
		      F(name, val_of_str(group)), F(versions, all), F(preferredVersion, val_at(all, 0)));
}

static struct val group_list(struct request *q)
{
	const struct api_version **versions;
	struct val_builder list = val_builder(q->arena);
	size_t n = served_versions(q, &versions);

	for (size_t i = 0; i < n;)
		if (versions[i]->group.n)
			val_add_item(&list, api_group(q->arena, versions, n, &i, false));
		else
			i++;
	return OBJECT(q->arena, F(kind, VAL_LIT("APIGroupList")), F(apiVersion, VAL_LIT("v1")), F(groups, val_end_list(&list)));
}

/* VAL_NONE when there is no such group. */
static struct val one_group(struct request *q, str group)
{
	const struct api_version **versions;
	size_t n = served_versions(q, &versions);

	for (size_t i = 0; i < n; i++)
		if (group.n && str_eq(versions[i]->group, group))
			return api_group(q->arena, versions, n, &i, true);
	return VAL_EMPTY;
}

/* ---- answers ---- */

str discovery_content_type(const struct request *q)
{
	switch (q->accept.media) {
	case MEDIA_PROTO:
		return STR("application/vnd.kubernetes.protobuf");
	case MEDIA_YAML:
		return STR("application/yaml");
	default:
		return STR("application/json");
	}
}

int discovery_document(struct request *q, str name, struct val v, const struct type *type, struct document **ret,
		       struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DOCUMENT_MAX);
	int r;

	if (q->accept.media == MEDIA_PROTO) {
		r = proto_encode_object(&b, v, type, err);
	} else if (q->accept.media == MEDIA_YAML) {
		r = yaml_encode(&b, v, type, err);
	} else {
		r = json_encode(&b, v, &(struct json_encode_options){ .type = type, .indent = q->accept.pretty ? 2 : 0 }, err);
		if (!q->accept.pretty)
			buf_addc(&b, '\n');
	}
	if (r < 0)
		return r;
	*ret = documents_keep(q->server, name, buf_str(&b));
	return 0;
}

/* What is answered at a path; VAL_NONE: nothing is there. */
static struct val tree_of(struct request *q, bool core, str group, str version, const struct type **ret_type)
{
	if (version.n) {
		*ret_type = TYPE(meta_v1, APIResourceList);
		return serves_version(q, group, version) ? resource_list(q, group, version) : VAL_EMPTY;
	}
	if (core) {
		*ret_type = TYPE(meta_v1, APIVersions);
		return core_versions(q);
	}
	*ret_type = group.n ? TYPE(meta_v1, APIGroup) : TYPE(meta_v1, APIGroupList);
	return group.n ? one_group(q, group) : group_list(q);
}

static int answer_legacy(struct request *q, bool core, str group, str version, struct err *err)
{
	int r = negotiate_accept(q, err);
	if (r < 0)
		return r;
	str name = arena_printf(q->arena, "%s/" STR_FMT "/" STR_FMT " %d%d", core ? "/api" : "/apis", STR_ARG(group),
				STR_ARG(version), q->accept.media, q->accept.pretty);
	struct document *doc = documents_find(q->server, name);
	if (!doc) {
		const struct type *type;
		struct val v = tree_of(q, core, group, version, &type);
		if (!val_exists(v))
			return core || val_exists(one_group(q, group)) ? fail_no_such_resource(q) :
									 err_set(err, ERR_NOT_FOUND, "no such group");
		r = discovery_document(q, name, v, type, &doc, err);
		if (r < 0)
			return r;
	}
	return answer_document(q, doc, discovery_content_type(q), err);
}

int discovery_handle(struct request *q, bool core, str rest, struct err *err)
{
	str group = STR_NONE, version, more;
	const struct type *type;

	if (core)
		version = rest;
	else
		str_cut(rest, '/', &group, &version);
	/* A slash at the end changes nothing; anything behind it is a resource, and none of ours. */
	if (str_cut(version, '/', &version, &more) && more.n)
		return fail_no_such_resource(q);
	/* These are found by their paths alone in Kubernetes, the others by their methods too. */
	int r = core || version.n ? require_get(q) : 0;
	if (r < 0)
		return r;
	if (!version.n && !group.n && discovery_wants_aggregated(q, &type))
		return discovery_aggregated(q, core, type, err);
	return answer_legacy(q, core, group, version, err);
}
