/* NamespaceLifecycle: nothing is made in a namespace that does not exist or is being emptied; three namespaces stay. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static bool is_immortal(str name)
{
	return str_eq(name, STR("default")) || str_eq(name, STR("kube-system")) || str_eq(name, STR("kube-public"));
}

/* Whoever may not look at a namespace must not learn from the answer whether it exists. */
static bool is_access_review(const struct request *q)
{
	return str_eq(q->resource, STR("localsubjectaccessreviews")) && str_eq(q->group, STR("authorization.k8s.io"));
}

static int lifecycle(struct request *q, struct err *err)
{
	enum admission_operation op = admission_operation(q);
	if (str_eq(q->resource, STR("namespaces")) && !q->group.n) {
		str name = val_str(q->old, metadata, name);
		return op == ADMISSION_DELETE && is_immortal(name) ?
			       fail_forbidden(q, q->group, q->resource, name, "this namespace may not be deleted") : 0;
	}
	if (op == ADMISSION_DELETE || op == ADMISSION_CONNECT || !q->namespace.n || is_access_review(q))
		return 0;
	struct object *namespace;
	int r = admission_find(q, STR(""), STR("namespaces"), q->namespace, &namespace, err);
	if (r < 0)
		return r;
	if (!namespace)
		return fail_not_found(q, STR(""), STR("namespaces"), q->namespace);
	if (op != ADMISSION_CREATE || !str_eq(val_str(namespace->val, status, phase), STR("Terminating")))
		return 0;
	r = admission_forbid(q, "unable to create new content in namespace " STR_FMT " because it is being terminated",
			     STR_ARG(q->namespace));
	str message = arena_printf(q->arena, "namespace " STR_FMT " is being terminated", STR_ARG(q->namespace));
	struct val cause = OBJECT(q->arena, F(reason, VAL_LIT("NamespaceTerminating")), F(message, val_of_str(message)),
				  F(field, VAL_LIT("metadata.namespace")));
	q->failure = val_with(q->arena, q->failure, LIST(q->arena, cause), details, causes);
	return r;
}

const struct admission_plugin admission_namespace_lifecycle = { .name = "NamespaceLifecycle", .mutate = lifecycle };
