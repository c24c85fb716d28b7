/* NamespaceAutoProvision: whoever makes something in a namespace that does not exist makes the namespace, too. */
#include "apiserver/admission/plugins.h"
#include "apiserver/cache.h"
#include "apiserver/inprocess.h"
#include "codec/atoms.h"

static int mutate(struct request *q, struct err *err)
{
	(void)err;
	const struct kind *namespaces = kinds_find(&q->server->kinds, STR_NONE, STR("namespaces"));
	if (admission_operation(q) != ADMISSION_CREATE || q->dry_run || !q->namespace.n ||
	    admits(q, STR_NONE, STR("namespaces")) || cache_get(namespaces, q->namespace))
		return 0;
	struct val namespace = OBJECT(q->arena, F(metadata, OBJECT(q->arena, F(name, val_of_str(q->namespace)))));
	struct err why = ERR_INIT;
	int r = inprocess_create(INPROCESS(q->server, "", "namespaces"), namespace, &why);
	return r < 0 && r != -ERR_ALREADY_EXISTS ? admission_forbid(q, STR_FMT, STR_ARG(err_str(&why))) : 0;
}

const struct admission_plugin admission_namespace_auto_provision = {
	.name = "NamespaceAutoProvision", .optional = true, .mutate = mutate,
};
