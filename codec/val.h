/*
 * struct val: the one value model. Built-in objects, custom resources, patches, messages of etcd and CRI: all are trees of it.
 *
 * A val is 16 bytes and passed by value. It is immutable: an edit (val_with, val_put, ...) makes new spines in an arena and
 * shares everything else, so a val may freely point into another arena or a frozen block as long as that lives. val_freeze
 * copies a tree into one reference counted block that owns everything and may be shared between threads.
 *
 * Reading needs no null checks: what is missing reads as VAL_NONE, "", 0, false, or an empty list or object.
 *
 *	str node = val_str(pod, spec, nodeName);
 *	VAL_EACH(c, val_get(pod, spec, containers))
 *		printf(STR_FMT "\n", STR_ARG(val_str(*c, name)));
 *	pod = val_with(arena, pod, VAL_STR(STR("node-1")), spec, nodeName);
 *
 * The names in a path are atoms generated from the schema: a misspelt one does not compile. Files that use them include
 * "codec/atoms.h". Trees come in two conditions:
 *
 * - typed: made by a decoder with a schema, or by val_canonical(). Members stand in the schema's order, hold no null and no zero
 *   value that a Go struct could not tell from an absent one; maps are sorted by key. Equal objects are then equal member by member.
 * - free: schema-less JSON (custom resources, patches), in the order and with the nulls of the input.
 *
 * Bytes are kept as JSON has them, in base64, except in the messages of etcd and CRI where they are raw. Times, durations and
 * quantities are kept as their canonical text.
 *
 * Trees can be VAL_MAX_DEPTH deep, so nothing here recurses. Code that does recurse over trees from outside stops
 * with an error at VAL_RECURSION_MAX.
 */
#ifndef C8S_CODEC_VAL_H
#define C8S_CODEC_VAL_H

#include "base/arena.h"
#include "base/err.h"

enum { VAL_MAX_DEPTH = 10000, VAL_RECURSION_MAX = 200 };

enum val_type {
	VAL_NONE,   /* absent */
	VAL_NULL,
	VAL_BOOL,
	VAL_INT,
	VAL_DOUBLE,
	VAL_STRING,
	VAL_RAW,    /* JSON text of an object, kept unparsed: metadata.managedFields[].fieldsV1 */
	VAL_LIST,
	VAL_OBJECT,
};

/*
 * The key of an object member: a number below ATOM_LIMIT for the names that the schema knows, else the address of a
 * struct atom_text. A text that is a known name is always given as its number, so known names compare as integers.
 */
typedef uintptr_t atom;

struct atom_text {
	uint32_t n;
	char s[];
};

enum { ATOM_LIMIT = 65536 };

struct member;

struct val {
	uint8_t type;   /* enum val_type */
	uint32_t n;     /* bytes, items or members */
	union {
		bool b;
		int64_t i;
		double d;
		const char *s;
		const struct val *items;
		const struct member *members;
	};
};

struct member {
	atom key;
	struct val val;
};

_Static_assert(sizeof(struct val) == 16, "a val travels in two registers");

/* ---- atoms ---- */

/* The known atom for s, or 0. */
atom atom_find(str s);
/* The atom for s; the text of one that is not known is copied into the arena. */
atom atom_make(struct arena *a, str s);
str atom_str(atom key);

static inline bool atom_eq(atom x, atom y)
{
	return x == y || (x >= ATOM_LIMIT && y >= ATOM_LIMIT && str_eq(atom_str(x), atom_str(y)));
}

/* ---- making ---- */

static inline struct val val_of_bool(bool b) { return (struct val){ .type = VAL_BOOL, .b = b }; }
static inline struct val val_of_int(int64_t i) { return (struct val){ .type = VAL_INT, .i = i }; }
static inline struct val val_of_double(double d) { return (struct val){ .type = VAL_DOUBLE, .d = d }; }
/* Borrows the text. */
static inline struct val val_of_str(str s) { return (struct val){ .type = VAL_STRING, .n = (uint32_t)s.n, .s = s.n ? s.p : "" }; }

#define VAL_EMPTY ((struct val){ .type = VAL_NONE })
#define VAL_NULL_VALUE ((struct val){ .type = VAL_NULL })
#define VAL_STR(s) val_of_str(s)
#define VAL_LIT(literal) val_of_str(STR(literal))
#define VAL_EMPTY_OBJECT ((struct val){ .type = VAL_OBJECT })
#define VAL_EMPTY_LIST ((struct val){ .type = VAL_LIST })

/* Copies the items (members) into the arena; members whose value is VAL_NONE are left out. */
struct val val_list(struct arena *a, const struct val *items, size_t n);
struct val val_object(struct arena *a, const struct member *members, size_t n);

/* OBJECT(arena, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod"))) and LIST(arena, x, y). */
#define F(name, value) { A_##name, (value) }
#define OBJECT(a, ...) \
	val_object((a), (const struct member[]){ __VA_ARGS__ }, sizeof((const struct member[]){ __VA_ARGS__ }) / sizeof(struct member))
#define LIST(a, ...) \
	val_list((a), (const struct val[]){ __VA_ARGS__ }, sizeof((const struct val[]){ __VA_ARGS__ }) / sizeof(struct val))

/* Builders for when the number is not known; the result lives in the arena. Use up to the end, once. As with memory, more elements
 * than a val can count end the process: the decoders refuse inputs that could have so many. */
struct val_builder {
	struct arena *arena;
	void *room;
	uint32_t n, cap;
};

static inline struct val_builder val_builder(struct arena *a) { return (struct val_builder){ .arena = a }; }
void val_add_item(struct val_builder *b, struct val item);
/* Adds without looking for an earlier member of that key; VAL_NONE adds nothing. */
void val_add_member(struct val_builder *b, atom key, struct val v);
struct val val_end_list(struct val_builder *b);
struct val val_end_object(struct val_builder *b);

/* ---- reading ---- */

static inline bool val_is(struct val v, enum val_type t) { return v.type == t; }
static inline bool val_exists(struct val v) { return v.type != VAL_NONE; }
/* VAL_NONE or null. */
static inline bool val_is_nil(struct val v) { return v.type <= VAL_NULL; }
/* Absent, null, false, 0, "", or a list or object without content. */
bool val_is_zero(struct val v);

static inline str val_as_str(struct val v) { return v.type == VAL_STRING || v.type == VAL_RAW ? str_span(v.s, v.n) : STR_NONE; }
static inline bool val_as_bool(struct val v) { return v.type == VAL_BOOL && v.b; }
/* The whole part of a double; 0 when that is no int64. */
static inline int64_t val_as_int(struct val v)
{
	if (v.type == VAL_DOUBLE)
		return v.d >= -0x1p63 && v.d < 0x1p63 ? (int64_t)v.d : 0;
	return v.type == VAL_INT ? v.i : 0;
}
static inline double val_as_double(struct val v) { return v.type == VAL_DOUBLE ? v.d : v.type == VAL_INT ? (double)v.i : 0; }
/*
 * Whether both are one value: the same number, or the same text, list or object at the same place. Cheap, and true only for
 * equal ones: what an edit has left alone is still the same.
 */
static inline bool val_same(struct val a, struct val b) { return a.type == b.type && a.n == b.n && a.i == b.i; }
/* Items of a list or members of an object, else 0. */
static inline uint32_t val_len(struct val v) { return v.type >= VAL_LIST ? v.n : 0; }

/* Item i of a list, VAL_NONE beyond its end. */
static inline struct val val_at(struct val list, size_t i)
{
	return list.type == VAL_LIST && i < list.n ? list.items[i] : VAL_EMPTY;
}

/* The value of one member (the last of that name), VAL_NONE if there is none. */
struct val val_member(struct val object, atom key);
/* The same for a key that is known only at run time, such as a label. */
struct val val_find(struct val object, str key);
struct val val_path(struct val v, const atom *path, size_t n);

/* for each item: VAL_EACH(c, list) gives const struct val *c; VAL_EACH_MEMBER(m, object) gives const struct member *m. */
#define VAL_EACH(item, list_)                                                                          \
	for (struct val item##_list = (list_), *item##_once = &item##_list; item##_once; item##_once = NULL) \
		for (const struct val *item = item##_list.type == VAL_LIST ? item##_list.items : NULL,         \
				      *item##_end = item ? item + item##_list.n : NULL; item != item##_end; item++)
#define VAL_EACH_MEMBER(m, object_)                                                                    \
	for (struct val m##_object = (object_), *m##_once = &m##_object; m##_once; m##_once = NULL)          \
		for (const struct member *m = m##_object.type == VAL_OBJECT ? m##_object.members : NULL,       \
					 *m##_end = m ? m + m##_object.n : NULL; m != m##_end; m++)

/* ---- paths of atoms: val_str(pod, spec, nodeName) ---- */

#define ATOM_PATH_1(a) A_##a
#define ATOM_PATH_2(a, b) A_##a, A_##b
#define ATOM_PATH_3(a, b, c) A_##a, A_##b, A_##c
#define ATOM_PATH_4(a, b, c, d) A_##a, A_##b, A_##c, A_##d
#define ATOM_PATH_5(a, b, c, d, e) A_##a, A_##b, A_##c, A_##d, A_##e
#define ATOM_PATH_6(a, b, c, d, e, f) A_##a, A_##b, A_##c, A_##d, A_##e, A_##f
#define ATOM_PATH_PICK(_1, _2, _3, _4, _5, _6, name, ...) name
#define ATOM_PATH_COUNT(...) ATOM_PATH_PICK(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define ATOM_PATH(...)                                                                                              \
	((const atom[]){ ATOM_PATH_PICK(__VA_ARGS__, ATOM_PATH_6, ATOM_PATH_5, ATOM_PATH_4, ATOM_PATH_3, ATOM_PATH_2, \
					ATOM_PATH_1, )(__VA_ARGS__) }),                                             \
		ATOM_PATH_COUNT(__VA_ARGS__)

#define val_get(v, ...) val_path((v), ATOM_PATH(__VA_ARGS__))
#define val_str(v, ...) val_as_str(val_get(v, __VA_ARGS__))
#define val_int(v, ...) val_as_int(val_get(v, __VA_ARGS__))
#define val_bool(v, ...) val_as_bool(val_get(v, __VA_ARGS__))
#define val_double(v, ...) val_as_double(val_get(v, __VA_ARGS__))
#define val_has(v, ...) val_exists(val_get(v, __VA_ARGS__))

/* ---- editing: the argument stays as it was; the result is new, or the argument when nothing was to change ---- */

/* Sets (VAL_NONE: removes) one member; a v that is no object counts as an empty one. */
struct val val_put(struct arena *a, struct val object, atom key, struct val v);
/* The same along a path; objects that are missing on the way are made, or nothing happens when removing. */
struct val val_put_path(struct arena *a, struct val object, const atom *path, size_t n, struct val v);
#define val_with(a, object, v, ...) val_put_path_((a), (object), (v), ATOM_PATH(__VA_ARGS__))
#define val_without(a, object, ...) val_put_path_((a), (object), VAL_EMPTY, ATOM_PATH(__VA_ARGS__))
static inline struct val val_put_path_(struct arena *a, struct val object, struct val v, const atom *path, size_t n)
{
	return val_put_path(a, object, path, n, v);
}

/* List with v at i: replaced, inserted before i (i may be the length), or without item i. */
struct val val_list_set(struct arena *a, struct val list, size_t i, struct val v);
struct val val_list_insert(struct arena *a, struct val list, size_t i, struct val v);
struct val val_list_remove(struct arena *a, struct val list, size_t i);
struct val val_list_append(struct arena *a, struct val list, struct val v);

/* The members in byte order of their keys, of those with the same key the last one: object itself if it is so already. */
struct val val_sorted(struct arena *a, struct val object);

/* ---- comparing ---- */

/* Deep equality as JSON means it: member order does not matter, 1 equals 1.0. */
bool val_equal(struct val a, struct val b);
/* Equal values have equal hashes. */
uint64_t val_hash(struct val v);

/* One place where two trees differ. */
struct val_change {
	str path;                /* as Kubernetes writes field paths: spec.containers[0].image */
	struct val before, after; /* VAL_NONE where it does not exist */
};
/* Calls visit for every leaf or shape difference, members in the order of keys; stops when visit returns false. */
void val_diff(struct arena *a, struct val before, struct val after, bool (*visit)(const struct val_change *, void *), void *arg);

/* ---- freezing ---- */

struct frozen {
	_Atomic uint32_t refs;
	size_t size;        /* bytes of the whole block */
	struct val val;     /* the root; points into the block */
};

/* A copy of the tree in one block, with one reference held by the caller. */
struct frozen *val_freeze(struct val v);
struct frozen *frozen_ref(struct frozen *f);
void frozen_unref(struct frozen *f);   /* NULL is fine */
void frozen_unrefp(struct frozen **f); /* for CLEANUP */
/* A deep copy into an arena: for a val that must outlive its source. */
struct val val_copy(struct arena *a, struct val v);

#endif
