/*
 * object: one version of one stored object, as the whole server shares it. Immutable once it has a revision; counted;
 * cached, listed, watched and answered without being copied. Its encoded forms are made once, when first asked for, and
 * shared by every response, list and watcher.
 */
#ifndef C8S_APISERVER_OBJECT_H
#define C8S_APISERVER_OBJECT_H

#include "codec/val.h"

struct kind;

/* An encoded form; it lives as long as its object. */
struct bytes {
	uint32_t skip;            /* JSON: length of {"kind":"Pod","apiVersion":"v1",  proto: of what is before the message */
	uint32_t tail;            /* proto: of the envelope after the message; JSON: 0 */
	size_t n;
	char p[];
};

struct object {
	_Atomic uint32_t refs;    /* the store may give its one back in a thread of its own */
	struct kind *kind;
	int64_t revision;         /* 0: not stored yet */
	struct bytes *json, *proto; /* near refs: all that a list looks at */
	str key;                  /* "namespace/name" or "name": its key behind the kind's prefix */
	/* The typed tree in the kind's hub version, with apiVersion, kind and (once there is a revision) resourceVersion. */
	struct val val;
	struct frozen *frozen;    /* what val stands on, with room for the resourceVersion */
};

/* The tree is copied (frozen), without its resourceVersion if it has one: that comes with object_set_revision. */
struct object *object_new(struct kind *kind, str key, struct val val) NONNULL_RESULT;
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is fine */
void object_unrefp(struct object **o);
/* Once, before anybody else sees it. */
void object_set_revision(struct object *o, int64_t revision);
/* The same object at another revision: what a deletion shows. */
struct object *object_at_revision(const struct object *o, int64_t revision) NONNULL_RESULT;

/*
 * Its JSON in the hub version, without a newline; borrowed. A list shows the part after `skip` bytes with a "{" before
 * it: items of lists have no kind and apiVersion.
 */
const struct bytes *object_json(struct object *o);
/* Its protobuf in the envelope; a list shows the message inside, without `skip` bytes before it and `tail` behind it. */
const struct bytes *object_proto(struct object *o);

#endif
