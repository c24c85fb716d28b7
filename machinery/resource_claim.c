#include "machinery/resource_claim.h"

#include "codec/atoms.h"

int pod_claim_name(struct val pod, struct val entry, str *ret_name, bool *ret_made)
{
	*ret_made = false;
	*ret_name = val_str(entry, resourceClaimName);
	if (ret_name->n)
		return 1;
	if (!val_has(entry, resourceClaimTemplateName))
		return -ERR_INVALID;
	*ret_made = true;
	VAL_EACH(s, val_get(pod, status, resourceClaimStatuses))
		if (str_eq(val_str(*s, name), val_str(entry, name))) {
			*ret_name = val_str(*s, resourceClaimName);
			return ret_name->n > 0;
		}
	return -ERR_NOT_FOUND;
}

bool claim_is_reserved_for(struct val claim, struct val pod)
{
	VAL_EACH(r, val_get(claim, status, reservedFor))
		if (str_eq(val_str(*r, uid), val_str(pod, metadata, uid)))
			return true;
	return false;
}

struct val claim_user(struct arena *a, struct val pod)
{
	return OBJECT(a, F(resource, VAL_LIT("pods")), F(name, val_get(pod, metadata, name)), F(uid, val_get(pod, metadata, uid)));
}

bool claim_has_finalizer(struct val claim)
{
	VAL_EACH(f, val_get(claim, metadata, finalizers))
		if (str_eq(val_as_str(*f), STR(CLAIM_FINALIZER)))
			return true;
	return false;
}

struct val claim_without_finalizer(struct arena *a, struct val claim)
{
	struct val list = val_get(claim, metadata, finalizers);

	for (size_t i = 0; i < val_len(list); i++)
		if (str_eq(val_as_str(val_at(list, i)), STR(CLAIM_FINALIZER))) {
			list = val_list_remove(a, list, i);
			return val_with(a, claim, val_len(list) ? list : VAL_EMPTY, metadata, finalizers);
		}
	return claim;
}
