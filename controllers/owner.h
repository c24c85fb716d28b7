/* owner: owner references of objects. Pure functions over trees. */
#ifndef C8S_CONTROLLERS_OWNER_H
#define C8S_CONTROLLERS_OWNER_H

#include "codec/val.h"

/* { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true } */
struct val owner_ref(struct arena *a, struct val owner, const char *api_version, const char *kind);
/* The reference with controller: true; VAL_NONE: none. */
struct val owner_controller(struct val object);
bool owner_is(struct val object, struct val owner); /* controlled by this uid */
/* Patch (strategic) that adds or removes a reference, with the object's uid as precondition. */
struct val owner_adopt_patch(struct arena *a, struct val object, struct val ref);
struct val owner_release_patch(struct arena *a, struct val object, str owner_uid);

#endif
