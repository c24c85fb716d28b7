/* STAGE_ADMIT: whether admission takes the object as it is going to be stored. */
#include "apiserver/admission/admission.h"
#include "apiserver/authz/authz.h"
#include "apiserver/pipeline.h"

/* An update or a patch of what is not there makes it, and that takes the permission to create. */
static int may_create(struct request *q)
{
	struct authz_attributes what = authz_of_request(q);
	struct err why = ERR_INIT;
	str reason;
	what.verb = STR("create");
	int decision = authz_decide(q->server, q->arena, &what, &reason, &why);
	if (decision == AUTHZ_ALLOW)
		return 0;
	return why.code ? fail_internal(q, STR_FMT, STR_ARG(err_str(&why))) : authz_forbid(q, &what, reason);
}

int stage_admit(struct request *q, struct err *err)
{
	if (!val_exists(q->object))
		return STAGE_NEXT;
	int r = !q->current && q->verb != REQUEST_CREATE ? may_create(q) : 0;
	if (r == 0)
		r = admission_validate(q, err);
	return r < 0 ? r : STAGE_NEXT;
}
