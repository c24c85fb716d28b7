/*
 * copies: the objects of one kind as the scheduler sees them: what the server told, or, where the scheduler has decided something that the
 * server does not show yet, what it assumes. An assumption holds until the server tells a newer version of the object, or is taken back.
 * Objects can be found by key and by one group (volumes by class, attachments by node). Everything belongs to one loop.
 */
#ifndef C8S_SCHEDULER_COPIES_H
#define C8S_SCHEDULER_COPIES_H

#include "base/fiber.h"
#include "base/map.h"
#include "client/informer.h"

struct copy {
	struct list link;             /* in its group, in the order of keys' first arrival */
	struct copy_group *group;
	struct frozen *told, *assumed; /* assumed: NULL mostly */
	str key;                      /* "namespace/name" or "name", inside the block */
};

struct copy_group {
	struct list members;          /* struct copy */
	str name;
};

/* Which group an object belongs to; borrowed from it. */
typedef str copies_group(struct val object);

struct copies {
	struct map all, groups;
	copies_group *group;          /* NULL: all are in the group "" */
	uint64_t version;             /* grows with each change */
	struct fiber_cond *changed;   /* woken by each change; NULL: nobody */
	const bool *hold;             /* while it is true, objects that were borrowed stay where they are, also when they are replaced; NULL: never */
	struct frozen **buried;       /* those */
	size_t n_buried, cap_buried;
	struct informer_listener listener;
};

void copies_init(struct copies *c, copies_group *group, struct fiber_cond *changed);
void copies_done(struct copies *c);
/* From now on what the informer has; listeners that come later find the copy up to date when they are told. */
void copies_follow(struct copies *c, struct informer *i);

/* Told by the server. A reference is taken. */
void copies_put(struct copies *c, struct frozen *object);
void copies_remove(struct copies *c, str key);

/* As assumed, or else as told; NULL: none. Borrowed until something changes, or as long as *hold. */
struct frozen *copies_get(const struct copies *c, str key);
struct frozen *copies_told(const struct copies *c, str key);
/* The value of copies_get; VAL_NONE: none. */
struct val copies_val(const struct copies *c, str key);
struct val copy_val(const struct copy *c);
/* The members of a group, for COPIES_EACH; never NULL. */
const struct list *copies_members(const struct copies *c, str group) NONNULL_RESULT;
#define COPIES_EACH(copy_, copies_, group_) \
	for (const struct list *copy_##_head = copies_members(copies_, group_); copy_##_head; copy_##_head = NULL) \
		LIST_EACH(struct copy, copy_, copy_##_head, link)

/*
 * The object is assumed to be so. Its version must not be older than what was told: -ERR_CONFLICT; -ERR_NOT_FOUND when there is none.
 * A reference is taken.
 */
int copies_assume(struct copies *c, struct frozen *object, struct err *err);
/* The assumption of this version is taken back, if it still is in force. */
void copies_restore(struct copies *c, str key, str version);

/* "namespace/name" or, without a namespace, "name"; in out, or STR_NONE for what no server admits. */
enum { COPY_KEY_MAX = 2 * 253 + 2 };
str copy_key(char out[COPY_KEY_MAX], str namespace, str name);

/* Newer (> 0), older (< 0) or the same, by metadata.resourceVersion. */
int object_version_compare(struct val x, struct val y);

#endif
