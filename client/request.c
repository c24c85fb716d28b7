/* The paths of resources: /apis/apps/v1/namespaces/default/deployments/web/scale */
#include "client/client_priv.h"
#include "net/url.h"

enum { PATH_MAX_BYTES = 64 * 1024 };

/* As client-go: what would be another path, or could be read as one. */
static int check_name(const char *what, str name, struct err *err)
{
	const char *why = NULL;
	if (str_eq(name, STR(".")))
		why = "may not be '.'";
	else if (str_eq(name, STR("..")))
		why = "may not be '..'";
	else if (str_chr(name, '/') >= 0)
		why = "may not contain '/'";
	else if (str_chr(name, '%') >= 0)
		why = "may not contain '%'";
	if (!why)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "invalid %s \"" STR_FMT "\": [%s]", what, STR_ARG(str_head(name, 300)), why);
}

static void add_segment(struct buf *b, str segment)
{
	buf_addc(b, '/');
	url_path_escape(b, segment);
}

int client_request_init(struct arena *a, const struct type *type, str namespace, str name, str subresource,
			struct client_request *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATH_MAX_BYTES);
	const struct resource *r = schema_resource(type, STR(""));
	int e;
	if (!r)
		return err_set(err, ERR_BAD_REQUEST, "there is no resource of kind " STR_FMT " in " STR_FMT, STR_ARG(type->name),
			       STR_ARG(type_api_version(a, type)));
	if (!(r->flags & RESOURCE_NAMESPACED))
		namespace = STR_NONE;
	else if (!namespace.n && name.n)
		return err_set(err, ERR_BAD_REQUEST, "an empty namespace may not be set when a resource name is provided");
	if ((e = check_name("namespace", namespace, err)) < 0 || (e = check_name("resource name", name, err)) < 0)
		return e;
	buf_add(&path, r->group.n ? STR("/apis") : STR("/api"));
	if (r->group.n)
		add_segment(&path, r->group);
	add_segment(&path, r->version);
	if (namespace.n) {
		buf_add(&path, STR("/namespaces"));
		add_segment(&path, namespace);
	}
	add_segment(&path, r->name);
	if (name.n)
		add_segment(&path, name);
	if (subresource.n)
		add_segment(&path, subresource);
	if ((e = buf_check(&path, "the path of the request", err)) < 0)
		return e;
	*ret = (struct client_request){
		.type = type, .resource = r, .namespace = namespace, .name = name, .subresource = subresource,
		.path = arena_str(a, buf_str(&path)),
	};
	return 0;
}

const struct type *client_subresource_type(const struct resource *r, str subresource)
{
	for (const struct resource *s = schema_resources; s < schema_resources + schema_n_resources; s++) {
		str name, below;
		if (str_cut(s->name, '/', &name, &below) && str_eq(below, subresource) && str_eq(name, r->name) &&
		    str_eq(s->group, r->group) && str_eq(s->version, r->version))
			return s->type;
	}
	return NULL;
}

struct client_request client_request_of_raw(const struct client_raw *raw)
{
	return (struct client_request){
		.verb = "get", .method = raw->method, .path = raw->path, .query = raw->query, .accept = raw->accept,
		.content_type = raw->content_type, .text = raw->body,
	};
}
