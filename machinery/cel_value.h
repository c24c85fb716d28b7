/* Lists and maps of CEL from the inside, for its own files. */
#ifndef C8S_MACHINERY_CEL_VALUE_H
#define C8S_MACHINERY_CEL_VALUE_H

#include "machinery/cel.h"

/*
 * Lists and maps never change, yet what is built piece by piece must not be copied for every piece: the room behind the last item
 * belongs to whoever adds there first (used says how much is taken), so that all lengths of one list share one array.
 */
struct cel_room {
	uint32_t used, cap;
};

struct cel_list {
	uint32_t n;
	uint8_t depth;                             /* of joined lists */
	bool joined;
	union {
		const struct cel_val *items;       /* or NULL: a list of trees */
		struct {
			const struct cel_list *left, *right;
		};
	};
	struct cel_room *room;
	struct val tree;
	const struct cel_type *elem;
};

struct cel_map {
	uint32_t n;
	const struct cel_type *object;   /* CEL_OBJECT: its type */
	const struct cel_pair *pairs;    /* or NULL: a tree */
	uint32_t *index;                 /* hash table of 1 + position in pairs; NULL when there are few */
	uint32_t mask;
	struct cel_room *room;
	const struct cel_val *missing;
	struct val tree;
	const struct cel_type *elem;
};

struct cel_val cel_list_join(struct cel_eval *ev, struct cel_val a, struct cel_val b);
/* Takes the items over. */
struct cel_val cel_list_take(struct arena *a, const struct cel_val *items, size_t n);
/* A map without members that cel_map_add can add to; false when the key is there already. cel_map_set replaces it then. */
struct cel_val cel_map_new(struct arena *a);
bool cel_map_add(struct arena *a, struct cel_val *map, struct cel_val key, struct cel_val val);
void cel_map_set(struct arena *a, struct cel_val *map, struct cel_val key, struct cel_val val);
bool cel_map_has(struct cel_val map, struct cel_val key);
/* False when there is no such key and nothing stands for those that are missing. */
bool cel_map_find(struct arena *a, struct cel_val map, struct cel_val key, struct cel_val *ret);
bool cel_field_find(struct arena *a, struct cel_val map, atom name, str field, struct cel_val *ret);
/* Counts its steps; false also when the evaluation has had enough. */
bool cel_equals(struct cel_eval *ev, struct cel_val x, struct cel_val y);
/* -1, 0, 1; 2 when they cannot be ordered (NaN); -2 when the types do not compare. */
int cel_compare(struct cel_val x, struct cel_val y);
/* The characters of a text. */
size_t cel_runes(str s);
/* zone: minutes east of UTC. */
struct cel_val cel_timestamp(int64_t seconds, int32_t nanos, int zone);
/* The zone that the text of a timestamp, which is one, has at its end. */
int cel_zone_of(str text);
struct cel_val cel_optional_of(struct arena *a, struct cel_val v);
static inline struct cel_val cel_optional_none(void) { return (struct cel_val){ .kind = CEL_OPTIONAL }; }
/* As messages show a value: what Go's %v prints. */
str cel_show(struct arena *a, struct cel_val v);

#endif
