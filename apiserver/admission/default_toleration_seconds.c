/* DefaultTolerationSeconds: pods stay for a while (five minutes) on a node that stopped answering, unless they say otherwise. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

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
	const struct admission_options *o = &q->server->options.admission;
	const struct {
		str key;
		int64_t seconds;
	} wanted[] = {
		{ STR("node.kubernetes.io/not-ready"), o->not_ready_toleration_s },
		{ STR("node.kubernetes.io/unreachable"), o->unreachable_toleration_s },
	};
	(void)err;
	if (!admits(q, STR(""), STR("pods")) || !val_exists(q->object))
		return 0;
	struct val tolerations = val_get(q->object, spec, tolerations), given = tolerations;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		if (tolerates(given, wanted[i].key))
			continue;
		struct val t = OBJECT(q->arena, F(key, val_of_str(wanted[i].key)), F(operator, VAL_LIT("Exists")),
				      F(effect, VAL_LIT("NoExecute")), F(tolerationSeconds, val_of_int(wanted[i].seconds)));
		tolerations = val_list_append(q->arena, tolerations, t);
	}
	if (tolerations.n != given.n)
		q->object = val_with(q->arena, q->object, tolerations, spec, tolerations);
	return 0;
}

const struct admission_plugin admission_default_toleration_seconds = { .name = "DefaultTolerationSeconds", .mutate = mutate };
