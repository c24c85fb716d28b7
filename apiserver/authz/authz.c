/*
 * STAGE_AUTHORIZE: may they. Everybody who could say who they are may do everything; strangers see that the server is
 * there and well.
 */
#include "apiserver/authz/authz_priv.h"
#include "apiserver/pipeline.h"

int authz_new(struct apiserver *s, struct authz **ret, struct err *err)
{
	(void)s, (void)ret, (void)err;
	return 0;
}

void authz_free(struct authz *z) { (void)z; }

int authz_run(struct apiserver *s, struct err *err)
{
	(void)s, (void)err;
	return 0;
}

struct authz_attributes authz_of_request(const struct request *q)
{
	return (struct authz_attributes){
		.user = &q->user, .verb = q->verb_text, .is_resource = q->is_resource, .group = q->group, .version = q->version,
		.resource = q->resource, .subresource = q->subresource, .namespace = q->namespace, .name = q->name,
		.path = q->path,
	};
}

int authz_decide(struct apiserver *s, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err)
{
	(void)s, (void)a, (void)what, (void)err;
	*ret_reason = STR_NONE;
	return AUTHZ_ALLOW;
}

bool authz_allows(struct request *q, const struct authz_attributes *what)
{
	str reason;
	return authz_decide(q->server, q->arena, what, &reason, NULL) == AUTHZ_ALLOW;
}

int rbac_bootstrap(struct apiserver *s, struct err *err)
{
	(void)s, (void)err;
	return 0;
}

/* As the role system:public-info-viewer has it. */
static bool is_public(const struct request *q)
{
	static const str paths[] = { STR_INIT("/healthz"), STR_INIT("/livez"), STR_INIT("/readyz"), STR_INIT("/version"),
				      STR_INIT("/version/") };
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (str_eq(q->path, paths[i]))
			return str_eq(q->method, STR("GET"));
	return false;
}

int stage_authorize(struct request *q, struct err *err)
{
	(void)err;
	if (!str_eq(q->user.name, STR("system:anonymous")) || is_public(q))
		return STAGE_NEXT;
	str verb = q->verb_text;
	char *lower = arena_alloc(q->arena, verb.n, 1);
	for (size_t i = 0; i < verb.n; i++)
		lower[i] = (char)(verb.p[i] | 0x20);
	if (!q->is_resource)
		return request_fail(q, ERR_FORBIDDEN, VAL_EMPTY_OBJECT,
				    "forbidden: User \"" STR_FMT "\" cannot " STR_FMT " path \"" STR_FMT "\"",
				    STR_ARG(q->user.name), (int)verb.n, lower, STR_ARG(q->path));
	str where = q->namespace.n ? arena_printf(q->arena, "in the namespace \"" STR_FMT "\"", STR_ARG(q->namespace)) :
				     STR("at the cluster scope");
	str slash = q->subresource.n ? STR("/") : STR("");
	return fail_forbidden(q, q->group, q->resource, q->name,
			      "User \"" STR_FMT "\" cannot " STR_FMT " resource \"" STR_FMT STR_FMT STR_FMT
			      "\" in API group \"" STR_FMT "\" " STR_FMT,
			      STR_ARG(q->user.name), STR_ARG(verb), STR_ARG(q->resource), STR_ARG(slash),
			      STR_ARG(q->subresource), STR_ARG(q->group), STR_ARG(where));
}
