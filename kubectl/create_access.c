/* kubectl create namespace, serviceaccount, role, clusterrole, rolebinding, clusterrolebinding, token. */
#include <stdio.h>

#include "codec/types.h"
#include "kubectl/create.h"

#define RBAC "rbac.authorization.k8s.io"

/* ---- just a name ---- */

static int create_namespace(struct ktl *k, void *options)
{
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	return ktl_create_made(k, options, TYPE(core_v1, Namespace), OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY))), NULL);
}

const struct ktl_command ktl_create_namespace = {
	.name = "namespace", .aliases = "ns", .summary = "Create a namespace with the specified name", .usage = "create namespace NAME [options]",
	.flags = KTL_CREATE_SETS(ktl_no_flags), .size = sizeof(struct ktl_create), .run = create_namespace,
};

static int create_serviceaccount(struct ktl *k, void *options)
{
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	return ktl_create_made(k, options, TYPE(core_v1, ServiceAccount), OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY))),
			       "failed to create serviceaccount: ");
}

const struct ktl_command ktl_create_serviceaccount = {
	.name = "serviceaccount", .aliases = "sa", .summary = "Create a service account with the specified name",
	.usage = "create serviceaccount NAME [options]", .flags = KTL_CREATE_SETS(ktl_no_flags), .size = sizeof(struct ktl_create),
	.run = create_serviceaccount,
};

/* ---- roles ---- */

struct role {
	struct ktl_create common;
	struct ktl_texts verbs, resources, names, urls;
	const char *aggregation;
};

#define ROLE_FLAGS \
	{ "resource", 0, KTL_LIST, offsetof(struct role, resources), NULL, "Resources, as pods, deployments.apps, pods/log", NULL }, \
	{ "resource-name", 0, KTL_ARRAY, offsetof(struct role, names), NULL, "Only objects of this name", NULL }, \
	{ "verb", 0, KTL_LIST, offsetof(struct role, verbs), NULL, "What may be done: get, list, create, ...; * for all", NULL }

static const struct ktl_flag role_flags[] = { ROLE_FLAGS, { 0 } };
static const struct ktl_flag clusterrole_flags[] = {
	{ "aggregation-rule", 0, KTL_STRING, offsetof(struct role, aggregation), NULL, "Labels of the cluster roles that this one is made of, as a=b", NULL },
	{ "non-resource-url", 0, KTL_LIST, offsetof(struct role, urls), NULL, "Paths that are no resources", NULL },
	ROLE_FLAGS, { 0 },
};

/* Each once, in order; a star stands for all. */
static struct val unique(struct ktl *k, const struct ktl_texts *texts, bool star)
{
	struct val list = VAL_EMPTY_LIST;
	for (size_t i = 0; i < texts->n; i++) {
		bool known = false;
		if (star && ktl_is(texts->v[i], "*"))
			return LIST(&k->arena, VAL_LIT("*"));
		VAL_EACH(old, list)
			known |= str_eq(val_as_str(*old), str_of(texts->v[i]));
		if (!known)
			list = val_list_append(&k->arena, list, VAL_STR(str_of(texts->v[i])));
	}
	return list;
}

/* The names of resources by API group. */
static int group_resources(struct ktl *k, const struct role *r, struct val *ret)
{
	*ret = VAL_EMPTY_OBJECT;
	for (size_t i = 0; i < r->resources.n; i++) {
		const struct ktl_kind *kind;
		str name, below, group = STR_NONE, full;
		(void)str_cut(str_of(r->resources.v[i]), '/', &name, &below);
		if (!name.n)
			return ktl_fail(k, "resource must be specified if apiGroup/subresource specified");
		full = name;
		if (!str_eq(name, STR("*"))) {
			if (!ktl_kind_known(k, name, &kind)) {
				(void)str_cut(name, '.', &name, &group);
				return group.n ? ktl_fail_bare(k, "the server doesn't have a resource type " STR_FMT " in group " STR_FMT,
							       STR_ARG(ktl_quote(k, name)), STR_ARG(ktl_quote(k, group))) :
						 ktl_fail_bare(k, "the server doesn't have a resource type " STR_FMT, STR_ARG(ktl_quote(k, name)));
			}
			full = kind->resource;
			group = kind->group;
		}
		if (below.n)
			full = arena_printf(&k->arena, STR_FMT "/" STR_FMT, STR_ARG(full), STR_ARG(below));
		atom key = atom_make(&k->arena, group.n ? group : STR("\001"));
		*ret = val_put(&k->arena, *ret, key, val_list_append(&k->arena, val_member(*ret, key), VAL_STR(full)));
	}
	*ret = val_sorted(&k->arena, *ret);
	return 0;
}

static int make_rules(struct ktl *k, const struct role *r, struct val *ret)
{
	struct val_builder rules = val_builder(&k->arena);
	struct val groups, verbs = unique(k, &r->verbs, true);
	if (group_resources(k, r, &groups) < 0)
		return -1;
	VAL_EACH_MEMBER(m, groups) {
		str group = atom_str(m->key);
		val_add_item(&rules, OBJECT(&k->arena, F(verbs, verbs),
					    F(apiGroups, LIST(&k->arena, VAL_STR(str_eq(group, STR("\001")) ? STR_NONE : group))),
					    F(resources, m->val), F(resourceNames, r->names.n ? unique(k, &r->names, false) : VAL_EMPTY)));
	}
	if (r->urls.n)
		val_add_item(&rules, OBJECT(&k->arena, F(verbs, verbs), F(nonResourceURLs, unique(k, &r->urls, false))));
	*ret = val_end_list(&rules);
	return 0;
}

static int create_role(struct ktl *k, void *options)
{
	const struct role *r = options;
	struct val rules;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (!r->verbs.n)
		return ktl_fail(k, "at least one verb must be specified");
	if (!r->resources.n)
		return ktl_fail(k, "at least one resource must be specified");
	if (make_rules(k, r, &rules) < 0)
		return -1;
	return ktl_create_made(k, &r->common, TYPE(rbac_v1, Role), OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(rules, rules)),
			       NULL);
}

const struct ktl_command ktl_create_role = {
	.name = "role", .summary = "Create a role with single rule", .usage = "create role NAME --verb=verb --resource=resource.group/subresource [options]",
	.examples = "  kubectl create role reader --verb=get,list,watch --resource=pods,pods/log\n",
	.flags = KTL_CREATE_SETS(role_flags), .size = sizeof(struct role), .run = create_role,
};

static int create_aggregated(struct ktl *k, const struct role *r, str name)
{
	struct arena *a = &k->arena;
	struct val labels;
	if (r->verbs.n || r->resources.n || r->names.n || r->urls.n)
		return ktl_fail(k, "aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames");
	if (ktl_parse_labels(k, r->aggregation, &labels) < 0)
		return -1;
	struct val rule = OBJECT(a, F(clusterRoleSelectors, LIST(a, OBJECT(a, F(matchLabels, labels)))));
	return ktl_create_made(k, &r->common, TYPE(rbac_v1, ClusterRole), OBJECT(a, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(aggregationRule, rule)),
			       NULL);
}

static int create_clusterrole(struct ktl *k, void *options)
{
	const struct role *r = options;
	struct val rules;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (r->aggregation[0])
		return create_aggregated(k, r, name);
	if (!r->verbs.n)
		return ktl_fail(k, "at least one verb must be specified");
	if (!r->resources.n && !r->urls.n)
		return ktl_fail(k, "one of resource or nonResourceURL must be specified");
	for (size_t i = 0; i < r->urls.n; i++)
		if (!ktl_is(r->urls.v[i], "*") && r->urls.v[i][0] != '/')
			return ktl_fail(k, "nonResourceURL should start with /");
	if (make_rules(k, r, &rules) < 0)
		return -1;
	return ktl_create_made(k, &r->common, TYPE(rbac_v1, ClusterRole),
			       OBJECT(&k->arena, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(rules, rules)), NULL);
}

const struct ktl_command ktl_create_clusterrole = {
	.name = "clusterrole", .summary = "Create a cluster role",
	.usage = "create clusterrole NAME --verb=verb --resource=resource.group [--resource-name=resourcename] [options]",
	.flags = KTL_CREATE_SETS(clusterrole_flags), .size = sizeof(struct role), .run = create_clusterrole,
};

/* ---- bindings ---- */

struct binding {
	struct ktl_create common;
	const char *role, *clusterrole;
	struct ktl_texts users, groups, accounts;
};

#define BINDING_FLAGS \
	{ "clusterrole", 0, KTL_STRING, offsetof(struct binding, clusterrole), NULL, "The cluster role that is given", NULL }, \
	{ "group", 0, KTL_ARRAY, offsetof(struct binding, groups), NULL, "A group that gets it", NULL }, \
	{ "serviceaccount", 0, KTL_ARRAY, offsetof(struct binding, accounts), NULL, "A service account that gets it, as namespace:name", NULL }, \
	{ "user", 0, KTL_ARRAY, offsetof(struct binding, users), NULL, "A user who gets it", NULL }

static const struct ktl_flag clusterrolebinding_flags[] = { BINDING_FLAGS, { 0 } };
static const struct ktl_flag rolebinding_flags[] = {
	BINDING_FLAGS,
	{ "role", 0, KTL_STRING, offsetof(struct binding, role), NULL, "The role that is given", NULL },
	{ 0 },
};

static int make_subjects(struct ktl *k, const struct binding *b, struct val *ret)
{
	struct arena *a = &k->arena;
	struct val_builder list = val_builder(a);
	for (size_t i = 0; i < b->users.n; i++)
		val_add_item(&list, OBJECT(a, F(kind, VAL_LIT("User")), F(apiGroup, VAL_LIT(RBAC)), F(name, VAL_STR(str_of(b->users.v[i])))));
	for (size_t i = 0; i < b->groups.n; i++)
		val_add_item(&list, OBJECT(a, F(kind, VAL_LIT("Group")), F(apiGroup, VAL_LIT(RBAC)), F(name, VAL_STR(str_of(b->groups.v[i])))));
	for (size_t i = 0; i < b->accounts.n; i++) {
		str namespace, name;
		if (!str_cut(str_of(b->accounts.v[i]), ':', &namespace, &name) || !namespace.n || !name.n || str_chr(name, ':') >= 0)
			return ktl_fail(k, "serviceaccount must be <namespace>:<name>");
		val_add_item(&list, OBJECT(a, F(kind, VAL_LIT("ServiceAccount")), F(name, VAL_STR(name)), F(namespace, VAL_STR(namespace))));
	}
	*ret = val_end_list(&list);
	return 0;
}

static int create_binding(struct ktl *k, const struct binding *b, const struct type *type, const char *failed)
{
	struct arena *a = &k->arena;
	struct val subjects;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (type == TYPE(rbac_v1, RoleBinding) && (b->role[0] != 0) == (b->clusterrole[0] != 0))
		return ktl_fail(k, "exactly one of clusterrole or role must be specified");
	if (make_subjects(k, b, &subjects) < 0)
		return -1;
	bool role = b->role && b->role[0];
	struct val ref = OBJECT(a, F(apiGroup, VAL_LIT(RBAC)), F(kind, role ? VAL_LIT("Role") : VAL_LIT("ClusterRole")),
				F(name, VAL_STR(str_of(role ? b->role : b->clusterrole))));
	return ktl_create_made(k, &b->common, type, OBJECT(a, F(metadata, ktl_meta(k, name, VAL_EMPTY)), F(subjects, subjects), F(roleRef, ref)),
			       failed);
}

static int create_rolebinding(struct ktl *k, void *options)
{
	return create_binding(k, options, TYPE(rbac_v1, RoleBinding), "failed to create rolebinding: ");
}

static int create_clusterrolebinding(struct ktl *k, void *options)
{
	return create_binding(k, options, TYPE(rbac_v1, ClusterRoleBinding), "failed to create clusterrolebinding: ");
}

const struct ktl_command ktl_create_rolebinding = {
	.name = "rolebinding", .summary = "Create a role binding for a particular role or cluster role",
	.usage = "create rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [options]",
	.flags = KTL_CREATE_SETS(rolebinding_flags), .size = sizeof(struct binding), .run = create_rolebinding,
};

const struct ktl_command ktl_create_clusterrolebinding = {
	.name = "clusterrolebinding", .summary = "Create a cluster role binding for a particular cluster role",
	.usage = "create clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [options]",
	.flags = KTL_CREATE_SETS(clusterrolebinding_flags), .size = sizeof(struct binding), .required = "clusterrole", .run = create_clusterrolebinding,
};

/* ---- tokens ---- */

struct token {
	struct ktl_print_flags print;
	struct ktl_texts audiences;
	int64_t duration_ns;
	const char *bound_kind, *bound_name, *bound_uid;
};

static const struct ktl_flag token_flags[] = {
	{ "audience", 0, KTL_ARRAY, offsetof(struct token, audiences), NULL, "Whom the token is for; may be given several times", NULL },
	{ "bound-object-kind", 0, KTL_STRING, offsetof(struct token, bound_kind), NULL, "Kind of the object that the token lives as long as: Node, Pod, Secret", NULL },
	{ "bound-object-name", 0, KTL_STRING, offsetof(struct token, bound_name), NULL, "Name of that object", NULL },
	{ "bound-object-uid", 0, KTL_STRING, offsetof(struct token, bound_uid), NULL, "UID of that object", NULL },
	{ "duration", 0, KTL_DURATION, offsetof(struct token, duration_ns), NULL, "How long it is to be valid; 0: the server's choice", NULL },
	{ 0 },
};

static int check_token(struct ktl *k, const struct token *t)
{
	if (t->duration_ns < 0)
		return ktl_fail(k, "--duration must be greater than or equal to 0");
	if (t->duration_ns % 1000000000)
		return ktl_fail(k, "--duration cannot be expressed in units less than seconds");
	for (size_t i = 0; i < t->audiences.n; i++)
		if (!t->audiences.v[i][0])
			return ktl_fail(k, "--audience must not be an empty string");
	if (!t->bound_kind[0] && t->bound_name[0])
		return ktl_fail(k, "--bound-object-name can only be set if --bound-object-kind is provided");
	if (!t->bound_kind[0] && t->bound_uid[0])
		return ktl_fail(k, "--bound-object-uid can only be set if --bound-object-kind is provided");
	if (t->bound_kind[0] && !ktl_is(t->bound_kind, "Node") && !ktl_is(t->bound_kind, "Pod") && !ktl_is(t->bound_kind, "Secret"))
		return ktl_fail(k, "supported --bound-object-kind values are Node, Pod, Secret");
	if (t->bound_kind[0] && !t->bound_name[0])
		return ktl_fail(k, "--bound-object-name is required if --bound-object-kind is provided");
	return 0;
}

static struct val token_request(struct ktl *k, const struct token *t)
{
	struct arena *a = &k->arena;
	struct val bound = VAL_EMPTY;
	if (t->bound_kind[0])
		bound = OBJECT(a, F(kind, VAL_STR(str_of(t->bound_kind))), F(apiVersion, VAL_LIT("v1")), F(name, VAL_STR(str_of(t->bound_name))),
			       F(uid, t->bound_uid[0] ? VAL_STR(str_of(t->bound_uid)) : VAL_EMPTY));
	struct val audiences = t->audiences.n ? ktl_text_list(k, t->audiences.v, t->audiences.n) : VAL_EMPTY;
	struct val seconds = t->duration_ns ? val_of_int(t->duration_ns / 1000000000) : VAL_EMPTY;
	return OBJECT(a, F(apiVersion, VAL_LIT("authentication.k8s.io/v1")), F(kind, VAL_LIT("TokenRequest")),
		      F(spec, OBJECT(a, F(audiences, audiences), F(expirationSeconds, seconds), F(boundObjectRef, bound))));
}

static int create_token(struct ktl *k, void *options)
{
	const struct token *t = options;
	struct ktl_printer p;
	struct val answer;
	str name, namespace;
	if (ktl_create_name(k, &name) < 0 || ktl_printer_init(k, &t->print, false, &p) < 0 || ktl_namespace(k, &namespace, NULL) < 0 ||
	    check_token(k, t) < 0)
		return -1;
	const struct ktl_kind *kind = ktl_kind_of_type(k, TYPE(core_v1, ServiceAccount));
	struct client_raw q = {
		.method = STR("POST"), .path = ktl_kind_path(k, kind, namespace, name, STR("token")), .content_type = STR("application/json"),
		.accept = STR("application/json"), .body = ktl_json(k, token_request(k, t)),
	};
	if (ktl_call(k, &q, &answer) < 0)
		return ktl_fail_plainly(k, "failed to create token: ");
	if (!val_str(answer, status, token).n)
		return ktl_fail(k, "failed to create token: no token in server response");
	if (p.format != KTL_HUMAN)
		return ktl_print(k, &p, NULL, answer);
	printf(STR_FMT "\n", STR_ARG(val_str(answer, status, token)));
	return 0;
}

const struct ktl_command ktl_create_token = {
	.name = "token", .summary = "Request a service account token", .usage = "create token SERVICE_ACCOUNT_NAME [options]",
	.flags = (const struct ktl_flag_set[]){ { token_flags, 0 }, { ktl_print_flags, offsetof(struct token, print) }, { 0 } },
	.size = sizeof(struct token), .run = create_token,
};
