#include "controllers/protection.h"

#include "codec/atoms.h"

bool finalizers_have(struct val object, str finalizer)
{
	VAL_EACH(f, val_get(object, metadata, finalizers))
		if (str_eq(val_as_str(*f), finalizer))
			return true;
	return false;
}

struct val finalizer_put(struct arena *a, struct val object, str finalizer)
{
	struct val list = val_get(object, metadata, finalizers);

	if (finalizers_have(object, finalizer))
		return VAL_EMPTY;
	return val_with(a, object, val_list_append(a, val_exists(list) ? list : VAL_EMPTY_LIST, VAL_STR(finalizer)), metadata, finalizers);
}

struct val finalizer_remove(struct arena *a, struct val object, str finalizer)
{
	struct val_builder kept = val_builder(a);

	if (!finalizers_have(object, finalizer))
		return VAL_EMPTY;
	VAL_EACH(f, val_get(object, metadata, finalizers))
		if (!str_eq(val_as_str(*f), finalizer))
			val_add_item(&kept, *f);
	return val_with(a, object, kept.n ? val_end_list(&kept) : VAL_EMPTY, metadata, finalizers);
}

enum protection_step protection_plan(struct val object, str finalizer, bool used)
{
	bool has = finalizers_have(object, finalizer), leaves = val_has(object, metadata, deletionTimestamp);

	if (leaves)
		return has && !used ? PROTECTION_REMOVE : PROTECTION_REST;
	return has ? PROTECTION_REST : PROTECTION_ADD;
}
