/* STAGE_IMPERSONATE: a privileged user may act as somebody else (kubectl --as). */
#include "apiserver/pipeline.h"
#include "apiserver/user.h"

int stage_impersonate(struct request *q, struct err *err)
{
	(void)err;
	str name = http_request_header(q->http, STR("impersonate-user"));
	str uid = http_request_header(q->http, STR("impersonate-uid"));
	size_t n_groups = 0;
	for (size_t i = 0; i < q->http->n_headers; i++)
		n_groups += str_eq(q->http->headers[i].name, STR("impersonate-group"));
	if (!name.n && !uid.n && !n_groups)
		return STAGE_NEXT;
	if (!name.n)
		return fail_bad_request(q, "requested [{Group    " STR_FMT "    }] without impersonating a user", STR_ARG(uid));
	if (!user_is_master(&q->user))
		return fail_forbidden(q, STR(""), STR("users"), name,
				      "User \"" STR_FMT "\" cannot impersonate resource \"users\" in API group \"\" at the "
				      "cluster scope",
				      STR_ARG(q->user.name));
	bool anonymous = str_eq(name, STR("system:anonymous"));
	str *groups = ARENA_ARRAY(q->arena, str, n_groups + 1);
	size_t n = 0;
	for (size_t i = 0; i < q->http->n_headers; i++)
		if (str_eq(q->http->headers[i].name, STR("impersonate-group")))
			groups[n++] = q->http->headers[i].value;
	groups[n++] = anonymous ? STR("system:unauthenticated") : STR("system:authenticated");
	q->user = (struct user){ .name = name, .uid = uid, .groups = groups, .n_groups = n };
	return STAGE_NEXT;
}
