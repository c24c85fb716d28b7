/* AlwaysAdmit and AlwaysDeny: everything, or nothing. For tests of clients. */
#include "apiserver/admission/plugins.h"

static int deny(struct request *q, struct err *err)
{
	(void)err;
	return admission_forbid(q, "admission control is denying all modifications");
}

const struct admission_plugin admission_always_admit = { .name = "AlwaysAdmit", .optional = true };
const struct admission_plugin admission_always_deny = { .name = "AlwaysDeny", .optional = true, .mutate = deny, .validate = deny };
