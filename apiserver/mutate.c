/* STAGE_MUTATE: what admission makes of the object. What it leaves open gets its defaults once more. */
#include "apiserver/admission/admission.h"
#include "apiserver/meta.h"
#include "apiserver/pipeline.h"
#include "codec/atoms.h"
#include "machinery/managed_fields.h"
#include "machinery/validate.h"

/* Who changes objects from outside may not know managedFields: what makes no sense is taken back. */
static struct val keep_managers(struct request *q, struct val before, struct val after)
{
	struct val was = val_get(before, metadata, managedFields), is = val_get(after, metadata, managedFields);
	struct managed managed;
	struct err why = ERR_INIT;
	if (val_same(was, is) || managed_decode(q->arena, is, &managed, &why) == 0)
		return after;
	request_warn(q, arena_printf(q->arena,
				     ".metadata.managedFields was in an invalid state after admission; this could be caused by an "
				     "outdated mutating admission controller; please fix your requests: " STR_FMT,
				     STR_ARG(err_str(&why))));
	return meta_put(q->arena, after, A_managedFields, was);
}

int stage_mutate(struct request *q, struct err *err)
{
	if (!val_exists(q->object))
		return STAGE_NEXT;
	struct val before = q->object;
	int r = admission_mutate(q, err);
	if (r < 0)
		return r;
	if (!val_same(q->object, before)) {
		/* plugins put things in without regard to the order of the schema */
		r = val_canonical_edit(q->arena, q->object, before, q->type, &q->object, err);
		if (r == 0)
			r = default_object(q->arena, q->type, q->object, &q->object, err);
		if (r < 0 || (r = meta_set_namespace(q, &q->object)) < 0)
			return r;
		q->object = meta_dedup_owners(q, keep_managers(q, before, q->object), true);
	}
	return STAGE_NEXT;
}
