/* DefaultTolerationSeconds: pods stay for five minutes on a node that stopped answering, unless they say otherwise. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

enum { SECONDS = 300 };

static bool tolerates(struct val tolerations, str key)
{
	VAL_EACH(t, tolerations) {
		str k = val_str(*t, key), effect = val_str(*t, effect);
		if ((!k.n || str_eq(k, key)) && (!effect.n || str_eq(effect, STR("NoExecute"))))
			return true;
	}
	return false;
}

static int mutate(struct request *q, struct err *err)
{
	static const str keys[] = { STR_INIT("node.kubernetes.io/not-ready"), STR_INIT("node.kubernetes.io/unreachable") };
	(void)err;
	if (!admits(q, STR(""), STR("pods")) || !val_exists(q->object))
		return 0;
	struct val tolerations = val_get(q->object, spec, tolerations), given = tolerations;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (tolerates(given, keys[i]))
			continue;
		struct val t = OBJECT(q->arena, F(key, val_of_str(keys[i])), F(operator, VAL_LIT("Exists")),
				      F(effect, VAL_LIT("NoExecute")), F(tolerationSeconds, val_of_int(SECONDS)));
		tolerations = val_list_append(q->arena, tolerations, t);
	}
	if (tolerations.n != given.n)
		q->object = val_with(q->arena, q->object, tolerations, spec, tolerations);
	return 0;
}

const struct admission_plugin admission_default_toleration_seconds = { .name = "DefaultTolerationSeconds", .mutate = mutate };
