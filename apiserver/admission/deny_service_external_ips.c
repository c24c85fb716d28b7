/* DenyServiceExternalIPs: Services get no external addresses that they did not have. */
#include "apiserver/admission/plugins.h"
#include "codec/atoms.h"

static bool has(struct val list, str address)
{
	VAL_EACH(item, list)
		if (str_eq(val_as_str(*item), address))
			return true;
	return false;
}

static int validate(struct request *q, struct err *err)
{
	(void)err;
	if (!admits(q, STR_NONE, STR("services")) || !val_exists(q->object))
		return 0;
	struct val old = val_get(q->old, spec, externalIPs);
	VAL_EACH(address, val_get(q->object, spec, externalIPs))
		if (!has(old, val_as_str(*address)))
			return admission_forbid(q, "Use of external IPs is denied by admission control");
	return 0;
}

const struct admission_plugin admission_deny_service_external_ips = {
	.name = "DenyServiceExternalIPs", .optional = true, .validate = validate,
};
