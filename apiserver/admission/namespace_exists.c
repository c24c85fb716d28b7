/* NamespaceExists: nothing is done in a namespace that does not exist, not even a removal. */
#include "apiserver/admission/plugins.h"

static int validate(struct request *q, struct err *err)
{
	struct object *namespace;
	if (admission_operation(q) == ADMISSION_CONNECT || !q->namespace.n ||
	    (str_eq(q->resource, STR("namespaces")) && !q->group.n))
		return 0;
	int r = admission_find(q, STR_NONE, STR("namespaces"), q->namespace, &namespace, err);
	if (r < 0)
		return r;
	return namespace ? 0 : fail_not_found(q, STR_NONE, STR("namespaces"), q->namespace);
}

const struct admission_plugin admission_namespace_exists = { .name = "NamespaceExists", .optional = true, .validate = validate };
