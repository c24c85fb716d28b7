/*
 * Nobody gives away more than they have: a role may hold only rules that its writer has, and a binding may be only of
 * a role whose rules its writer has, unless they are allowed to escalate the role, or to bind it. The privileged group
 * may always.
 */
#include "apiserver/authz/authz_priv.h"
#include "apiserver/authz/rbac.h"
#include "apiserver/authz/rbac_rules.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "apiserver/user.h"
#include "apiserver/write.h"
#include "codec/atoms.h"

/* The object's name before the server has made one up. */
static str name_of(const struct request *q)
{
	return q->verb == REQUEST_CREATE ? val_str(q->sent, metadata, name) : val_str(q->object, metadata, name);
}

static int forbid(struct request *q, str why)
{
	return fail_forbidden(q, q->group, q->resource, name_of(q), STR_FMT, STR_ARG(why));
}

/* Only what the garbage collector writes has changed: it need not have what the role gives. */
static bool only_collected(struct request *q)
{
	static const atom own[] = { A_ownerReferences, A_finalizers, A_managedFields };
	struct val object = q->object;
	if (!val_exists(q->old))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		object = meta_put(q->arena, object, own[i], val_member(val_get(q->old, metadata), own[i]));
	return val_equal(object, q->old);
}

/* ---- what the writer has ---- */

static struct val strings(struct arena *a, const str *list, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, val_of_str(list[i]));
	return val_end_list(&b);
}

static str missing_text(struct request *q, struct val missing, str errors)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64 << 20);
	buf_add(&b, STR("user "));
	buf_add_quoted(&b, q->user.name);
	buf_add(&b, STR(" (groups="));
	rbac_add_quoted_list(&b, strings(q->arena, q->user.groups, q->user.n_groups));
	buf_add(&b, STR(") is attempting to grant RBAC permissions not currently held:\n"));
	buf_add(&b, rbac_rules_text(q->arena, missing));
	if (errors.n)
		buf_addf(&b, "; resolution errors: [" STR_FMT "]", STR_ARG(errors));
	return arena_str(q->arena, buf_str(&b));
}

/* 1: the writer has all of these rules; 0: not, and *ret_why says what is missing. */
static int has_rules(struct request *q, struct val rules, str *ret_why)
{
	size_t n;
	struct rbac_held *held = rbac_held(authz_rbac(q->server), q->arena, &q->user, q->namespace, &n);
	struct val *owned = ARENA_ARRAY(q->arena, struct val, n);
	struct val_builder missing = val_builder(q->arena);
	struct err err = ERR_INIT;
	for (size_t i = 0; i < n; i++)
		owned[i] = held[i].rules;
	int r = rbac_rules_missing(q->arena, owned, n, rules, &missing, &err);
	if (r < 0)
		return request_fail(q, ERR_TOO_LARGE, VAL_EMPTY, STR_FMT, STR_ARG(err_str(&err)));
	if (missing.n)
		*ret_why = missing_text(q, val_end_list(&missing), rbac_held_errors(q->arena, held, n, true));
	return missing.n == 0;
}

/* ---- roles ---- */

static bool may_escalate(struct request *q)
{
	return authz_allows(q, &(struct authz_attributes){
				       .user = &q->user, .verb = STR("escalate"), .is_resource = true, .group = q->group,
				       .version = STR("*"), .resource = q->resource, .name = q->name, .namespace = q->namespace,
			       });
}

static bool aggregates(struct val role) { return val_len(val_get(role, aggregationRule, clusterRoleSelectors)) > 0; }

/* What an aggregated role gathers can be anything. */
static int check_aggregation(struct request *q)
{
	struct val all = LIST(q->arena, VAL_LIT("*"));
	struct val everything = LIST(q->arena, OBJECT(q->arena, F(verbs, all), F(apiGroups, all), F(resources, all)),
				     OBJECT(q->arena, F(verbs, all), F(nonResourceURLs, all)));
	str why;
	int r = has_rules(q, everything, &why);
	return r != 0 ? r : forbid(q, STR("must have cluster-admin privileges to use the aggregationRule"));
}

static int check_role(struct request *q)
{
	str why;
	if (may_escalate(q) || only_collected(q))
		return 0;
	int r = has_rules(q, val_get(q->object, rules), &why);
	if (r <= 0)
		return r < 0 ? r : forbid(q, why);
	if (aggregates(q->object) || aggregates(q->old))
		r = check_aggregation(q);
	return r < 0 ? r : 0;
}

/* ---- bindings ---- */

static bool may_bind(struct request *q, str kind, struct val ref)
{
	return authz_allows(q, &(struct authz_attributes){
				       .user = &q->user, .verb = STR("bind"), .is_resource = true,
				       .group = val_str(ref, apiGroup), .version = STR("*"), .resource = kind,
				       .name = val_str(ref, name), .namespace = q->namespace,
			       });
}

static int check_binding(struct request *q)
{
	struct val ref = val_get(q->object, roleRef);
	bool cluster = str_eq(val_str(ref, kind), STR("ClusterRole")), local = str_eq(val_str(ref, kind), STR("Role"));
	str resource = cluster ? STR("clusterroles") : STR("roles"), name = val_str(ref, name), why;
	if (only_collected(q) || ((cluster || local) && may_bind(q, resource, ref)))
		return 0;
	if (!cluster && !local) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		buf_add_quoted(&b, val_str(ref, kind));
		return fail_plain(q, "unsupported role reference kind: " STR_FMT, STR_ARG(buf_str(&b)));
	}
	if (local && !q->namespace.n)
		return fail_bad_request(q, "Namespace parameter required.");
	const struct kind *kind = kinds_find(&q->server->kinds, STR(RBAC_GROUP), resource);
	struct object *role = kind ? cache_get(kind, meta_key(q->arena, kind, q->namespace, name)) : NULL;
	if (!role)
		return fail_not_found(q, STR(RBAC_GROUP), resource, name);
	int r = has_rules(q, val_get(role->val, rules), &why);
	return r < 0 ? r : r == 0 ? forbid(q, why) : 0;
}

int rbac_escalation_check(struct request *q, struct err *err)
{
	(void)err;
	if (user_is_master(&q->user))
		return 0;
	return str_ends(q->resource, STR("bindings")) ? check_binding(q) : check_role(q);
}
