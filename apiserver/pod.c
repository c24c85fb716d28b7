/* What several subresources of pods ask and change. */
#include "apiserver/pod.h"

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/meta.h"
#include "codec/atoms.h"

struct val conditions_put(struct request *q, struct val list, struct val condition)
{
	struct val dated = val_put(q->arena, condition, A_lastTransitionTime, meta_now(q));
	for (uint32_t i = 0; i < val_len(list); i++) {
		struct val had = list.items[i];
		if (!str_eq(val_str(had, type), val_str(condition, type)))
			continue;
		if (str_eq(val_str(had, status), val_str(condition, status)))
			dated = val_put(q->arena, dated, A_lastTransitionTime, val_get(had, lastTransitionTime));
		return val_list_set(q->arena, list, i, dated);
	}
	return val_list_append(q->arena, list, dated);
}

struct val pod_with_condition(struct request *q, struct val pod, struct val condition)
{
	return val_with(q->arena, pod, conditions_put(q, val_get(pod, status, conditions), condition), status, conditions);
}

int pod_get(struct request *q, str name, struct object **ret, struct err *err)
{
	struct kind *pods = kinds_find(&q->server->kinds, STR_NONE, STR("pods"));
	int r = cache_wait_current(q->server->cache, err);
	if (r < 0)
		return r;
	*ret = cache_get(pods, meta_key(q->arena, pods, q->namespace, name));
	return *ret ? 0 : fail_not_found(q, STR_NONE, STR("pods"), name);
}

int pod_container(struct request *q, struct val pod, str *name)
{
	const struct val lists[] = { val_get(pod, spec, initContainers), val_get(pod, spec, containers),
				     val_get(pod, spec, ephemeralContainers) };
	str pod_name = val_str(pod, metadata, name);
	if (!name->n && val_len(lists[1]) == 1) {
		*name = arena_str(q->arena, val_str(lists[1].items[0], name));
		return 0;
	}
	CLEANUP(buf_done) struct buf names = BUF_INIT(1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i]) {
			if (name->n && str_eq(val_str(*c, name), *name))
				return 0;
			buf_add(&names, names.n ? STR(" ") : STR(""));
			buf_add(&names, val_str(*c, name));
		}
	if (name->n)
		return fail_bad_request(q, "container " STR_FMT " is not valid for pod " STR_FMT, STR_ARG(*name),
					STR_ARG(pod_name));
	return fail_bad_request(q, "a container name must be specified for pod " STR_FMT ", choose one of: [" STR_FMT "]",
				STR_ARG(pod_name), STR_ARG(buf_str(&names)));
}
