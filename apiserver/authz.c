/*
 * STAGE_AUTHORIZE: may they. Everybody who could say who they are may do everything; strangers see that the server is
 * there and well.
 */
#include "apiserver/pipeline.h"

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
