/*
 * Versions of built-in kinds: an object of one as an object of another of the same kind. Most differ in their apiVersion
 * only; HorizontalPodAutoscaler, Event and some others have rules of their own.
 */
#ifndef C8S_MACHINERY_CONVERT_H
#define C8S_MACHINERY_CONVERT_H

#include "codec/schema.h"

/* Both trees are typed. The result shares with the argument; it is the argument itself when the types are the same. */
int convert_object(struct arena *a, struct val object, const struct type *from, const struct type *to, struct val *ret,
		   struct err *err);

/*
 * What is found in a store can be of a version that is no longer an API: CustomResourceDefinitions as v1beta1. Such an
 * object (a free tree) as a typed one of the version that took its place; *ret_type is NULL when it is none of these.
 */
int convert_stored(struct arena *a, struct val object, struct val *ret, const struct type **ret_type, struct err *err);

#endif
