#include "controllers/owner.h"

#include "codec/atoms.h"

struct val owner_ref(struct arena *a, struct val owner, const char *api_version, const char *kind)
{
	return OBJECT(a, F(apiVersion, VAL_STR(str_of(api_version))), F(kind, VAL_STR(str_of(kind))),
		      F(name, val_get(owner, metadata, name)), F(uid, val_get(owner, metadata, uid)), F(controller, val_of_bool(true)),
		      F(blockOwnerDeletion, val_of_bool(true)));
}

struct val owner_controller(struct val object)
{
	VAL_EACH(ref, val_get(object, metadata, ownerReferences))
		if (val_bool(*ref, controller))
			return *ref;
	return VAL_EMPTY;
}

bool owner_is(struct val object, struct val owner)
{
	struct val ref = owner_controller(object);
	return val_exists(ref) && str_eq(val_str(ref, uid), val_str(owner, metadata, uid));
}

static struct val patch(struct arena *a, struct val object, struct val ref)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(ownerReferences, LIST(a, ref)), F(uid, val_get(object, metadata, uid)))));
}

struct val owner_adopt_patch(struct arena *a, struct val object, struct val ref) { return patch(a, object, ref); }

struct val owner_release_patch(struct arena *a, struct val object, str owner_uid)
{
	const struct member members[] = { { atom_make(a, STR("$patch")), VAL_LIT("delete") }, F(uid, VAL_STR(owner_uid)) };
	return patch(a, object, val_object(a, members, ARRAY_LEN(members)));
}
