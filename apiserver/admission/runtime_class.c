/* RuntimeClass: a pod gets the overhead and the constraints of the class of runtime that it asks for. */
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/tolerations.h"
#include "base/buf.h"
#include "codec/atoms.h"

/* (suspends) A copy of the class of q->object in *ret, VAL_NONE if it names none. */
static int find_class(struct request *q, struct val *ret, struct err *err)
{
	struct val name = val_get(q->object, spec, runtimeClassName);
	*ret = VAL_EMPTY;
	if (!val_exists(name))
		return 0;
	struct object *o;
	int r = admission_find(q, STR("node.k8s.io"), STR("runtimeclasses"), val_as_str(name), &o, err);
	if (r < 0)
		return r;
	if (!o) {
		CLEANUP(buf_done) struct buf quoted = BUF_INIT(1 << 20);
		buf_add_quoted(&quoted, val_as_str(name));
		return admission_forbid(q, "pod rejected: RuntimeClass " STR_FMT " not found", STR_ARG(buf_str(&quoted)));
	}
	*ret = val_copy(q->arena, o->val);
	return 0;
}

static bool is_new_pod(const struct request *q)
{
	return admits(q, STR(""), STR("pods")) && val_exists(q->object) && !q->current;
}

static int set_overhead(struct request *q, struct val class)
{
	struct val overhead = val_get(class, overhead, podFixed), given = val_get(q->object, spec, overhead);
	if (!val_has(class, overhead))
		return 0;
	if (val_len(given) && !val_equal(given, overhead))
		return admission_forbid(q, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
	q->object = val_with(q->arena, q->object, overhead, spec, overhead);
	return 0;
}

static int set_node_selector(struct request *q, struct val class)
{
	struct val selector = val_get(q->object, spec, nodeSelector), given = selector;
	VAL_EACH_MEMBER(m, val_get(class, scheduling, nodeSelector)) {
		str key = atom_str(m->key), wanted = val_as_str(m->val);
		struct val had = val_find(given, key);
		if (val_exists(had) && !str_eq(val_as_str(had), wanted))
			return admission_forbid(q, "conflict: runtimeClass.scheduling.nodeSelector[" STR_FMT "] = " STR_FMT
						   "; pod.spec.nodeSelector[" STR_FMT "] = " STR_FMT,
						STR_ARG(key), STR_ARG(wanted), STR_ARG(key), STR_ARG(val_as_str(had)));
		selector = val_put(q->arena, selector, m->key, m->val);
	}
	if (val_len(selector))
		q->object = val_with(q->arena, q->object, val_sorted(q->arena, selector), spec, nodeSelector);
	return 0;
}

static void merge_tolerations(struct request *q, struct val class)
{
	struct val given = val_get(q->object, spec, tolerations);
	struct val merged = tolerations_merge(q->arena, given, val_get(class, scheduling, tolerations));
	if (val_len(merged))
		q->object = val_with(q->arena, q->object, merged, spec, tolerations);
}

/* ---- the plugin ---- */

static int mutate(struct request *q, struct err *err)
{
	struct val class;
	int r;
	if (!is_new_pod(q))
		return 0;
	if ((r = find_class(q, &class, err)) < 0 || (r = set_overhead(q, class)) < 0 || !val_has(class, scheduling))
		return r;
	if ((r = set_node_selector(q, class)) < 0)
		return r;
	merge_tolerations(q, class);
	return 0;
}

static int validate(struct request *q, struct err *err)
{
	struct val class, given = val_get(q->object, spec, overhead);
	if (!is_new_pod(q))
		return 0;
	int r = find_class(q, &class, err);
	if (r < 0)
		return r;
	if (!val_has(class, overhead))
		return val_exists(given) ?
			       admission_forbid(q,
						"pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead") :
			       0;
	if (!val_equal(given, val_get(class, overhead, podFixed)))
		return admission_forbid(q, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
	return 0;
}

const struct admission_plugin admission_runtime_class = { .name = "RuntimeClass", .mutate = mutate, .validate = validate };
