/* STAGE_MUTATE: what admission makes of the object. What it leaves open gets its defaults once more. */
#include "apiserver/admission/admission.h"
#include "apiserver/meta.h"
#include "apiserver/pipeline.h"
#include "machinery/validate.h"

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
		if (r < 0)
			return r;
		q->object = meta_dedup_owners(q, q->object, true);
	}
	return STAGE_NEXT;
}
