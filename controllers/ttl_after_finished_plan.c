#include "controllers/ttl_after_finished_plan.h"

#include "codec/atoms.h"
#include "controllers/moment.h"

int ttl_left(struct val job, int64_t now_ns, int64_t *ret_ns, struct err *err)
{
	struct val ttl = val_get(job, spec, ttlSecondsAfterFinished);

	if (!val_exists(ttl) || val_has(job, metadata, deletionTimestamp))
		return 0;
	VAL_EACH(c, val_get(job, status, conditions)) {
		str type = val_str(*c, type);
		if (!str_eq(val_str(*c, status), STR("True")) || (!str_eq(type, STR("Complete")) && !str_eq(type, STR("Failed"))))
			continue;
		int64_t end = moment_of(val_get(*c, lastTransitionTime));
		if (!end)
			return err_set(err, ERR_INVALID, "unable to find the time when the Job " STR_FMT "/" STR_FMT " finished",
				       STR_ARG(val_str(job, metadata, namespace)), STR_ARG(val_str(job, metadata, name)));
		*ret_ns = end + val_as_int(ttl) * NS_PER_S - now_ns;
		return 1;
	}
	return 0;
}
