/* metadata: what all objects have alike, and what the server makes of it. Pure but for warnings. */
#ifndef C8S_APISERVER_META_H
#define C8S_APISERVER_META_H

#include "apiserver/request.h"

/* A new object without what only the server may set: uid, times of creation and deletion. */
struct val meta_wipe(struct arena *a, struct val object);
/* With a uid and the time of creation, and a name made from generateName if it has none. */
struct val meta_fill(struct request *q, struct val object);
/* The namespace of the request in the object, or 400 when it has another one. */
int meta_set_namespace(struct request *q, struct val *object);
/* 400 when the object has another name than the path. */
int meta_check_name(struct request *q, struct val object);
/* metadata with one member set (VAL_NONE: removed), in its place among the others. */
struct val meta_put(struct arena *a, struct val object, atom key, struct val v);
/* Equal owner references once, with a warning; after_mutation: this is the second look. */
struct val meta_dedup_owners(struct request *q, struct val object, bool after_mutation);
/* Now, as a metav1.Time. */
struct val meta_now(struct request *q);
struct timestamp meta_timestamp(const struct request *q);

/* "namespace/name" or "name": its key behind the kind's prefix, in the arena. */
str meta_key(struct arena *a, const struct kind *kind, str namespace, str name);
/* The key that the path of the request names; 400 for names that no object can have. */
int meta_key_of(struct request *q, str *ret_key);

#endif
