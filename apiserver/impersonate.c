/* STAGE_IMPERSONATE: a privileged user may act as somebody else (kubectl --as). */
#include "apiserver/pipeline.h"
#include "apiserver/user.h"

#define ACCOUNT "system:serviceaccount:"

static size_t count_groups(const struct request *q)
{
	size_t n = 0;
	for (size_t i = 0; i < q->http->n_headers; i++)
		n += str_eq(q->http->headers[i].name, STR("impersonate-group"));
	return n;
}

/*
 * The groups that are asked for; a service account has those of its namespace when none are. Who is somebody is in one more,
 * unless it was said that they are a stranger, and the other way round.
 */
static void set_groups(struct request *q, struct user *u, size_t n_asked)
{
	enum { OWN = 3 }; /* that nobody asked for */
	str *groups = ARENA_ARRAY(q->arena, str, n_asked + OWN), namespace, name;
	size_t n = 0;
	for (size_t i = 0; i < q->http->n_headers; i++)
		if (str_eq(q->http->headers[i].name, STR("impersonate-group")))
			groups[n++] = q->http->headers[i].value;
	if (!n && str_starts(u->name, STR(ACCOUNT)) && str_cut(str_skip(u->name, sizeof ACCOUNT - 1), ':', &namespace, &name)) {
		groups[n++] = STR("system:serviceaccounts");
		groups[n++] = arena_join(q->arena, STR("system:serviceaccounts:"), namespace);
	}
	u->groups = groups;
	u->n_groups = n;
	bool stranger = user_in_group(u, STR("system:unauthenticated"));
	if (str_eq(u->name, STR("system:anonymous"))) {
		if (!stranger)
			groups[u->n_groups++] = STR("system:unauthenticated");
	} else if (!stranger && !user_in_group(u, STR("system:authenticated"))) {
		groups[u->n_groups++] = STR("system:authenticated");
	}
}

int stage_impersonate(struct request *q, struct err *err)
{
	(void)err;
	str name = http_request_header(q->http, STR("impersonate-user"));
	str uid = http_request_header(q->http, STR("impersonate-uid"));
	size_t n_groups = count_groups(q);
	if (!name.n && !uid.n && !n_groups)
		return STAGE_NEXT;
	if (!name.n)
		return fail_bad_request(q, "requested [{Group    " STR_FMT "    }] without impersonating a user", STR_ARG(uid));
	if (!user_is_master(&q->user))
		return fail_forbidden(q, STR(""), STR("users"), name,
				      "User \"" STR_FMT "\" cannot impersonate resource \"users\" in API group \"\" at the "
				      "cluster scope",
				      STR_ARG(q->user.name));
	q->user = (struct user){ .name = name, .uid = uid };
	set_groups(q, &q->user, n_groups);
	return STAGE_NEXT;
}
