/* STAGE_ADMIT: whether admission takes the object as it is going to be stored. */
#include "apiserver/admission/admission.h"
#include "apiserver/pipeline.h"

int stage_admit(struct request *q, struct err *err)
{
	if (!val_exists(q->object))
		return STAGE_NEXT;
	int r = admission_validate(q, err);
	return r < 0 ? r : STAGE_NEXT;
}
