#include "codec/val.h"
#include "codec/walk.h"

/* Equality of everything but the children of lists and objects. */
static bool equal_shallow(struct val a, struct val b)
{
	if (a.type != b.type) {
		if (a.type == VAL_INT && b.type == VAL_DOUBLE)
			return (double)a.i == b.d;
		return a.type == VAL_DOUBLE && b.type == VAL_INT && a.d == (double)b.i;
	}
	switch ((enum val_type)a.type) {
	case VAL_NONE:
	case VAL_NULL: return true;
	case VAL_BOOL: return a.b == b.b;
	case VAL_INT: return a.i == b.i;
	case VAL_DOUBLE: return a.d == b.d;
	case VAL_STRING:
	case VAL_RAW: return str_eq(val_as_str(a), val_as_str(b));
	case VAL_LIST:
	case VAL_OBJECT: return a.n == b.n;
	}
	return false;
}

/* The member of b that answers member i of a: at the same place when both have the same order, which is the usual case. */
static struct val counterpart(struct val a, struct val b, uint32_t i)
{
	if (a.type == VAL_LIST)
		return b.items[i];
	if (atom_eq(a.members[i].key, b.members[i].key))
		return b.members[i].val;
	return val_member(b, a.members[i].key);
}

/* Up to here a member that stands elsewhere is searched for; larger objects of another order are sorted first. */
enum { SEARCHED_MAX = 16 };

static bool same_order(struct val a, struct val b)
{
	uint32_t i = 0;
	while (i < a.n && atom_eq(a.members[i].key, b.members[i].key))
		i++;
	return i == a.n;
}

struct comparison {
	struct walk walk;
	struct arena sorted; /* objects whose members were in another order */
};

static void comparison_done(struct comparison *c)
{
	walk_done(&c->walk);
	arena_done(&c->sorted);
}

/* Compares and, for lists and objects with children that are not the very same array, goes on with them. */
static bool enter(struct comparison *c, struct val a, struct val b)
{
	if (!equal_shallow(a, b))
		return false;
	if (val_len(a) == 0 || a.items == b.items)
		return true;
	if (a.type == VAL_OBJECT && a.n > SEARCHED_MAX && !same_order(a, b)) {
		a = val_sorted(&c->sorted, a);
		b = val_sorted(&c->sorted, b);
		if (a.n != b.n || !same_order(a, b))
			return false;
	}
	walk_push(&c->walk, a)->other = b;
	return true;
}

bool val_equal(struct val a, struct val b)
{
	CLEANUP(comparison_done) struct comparison c;
	struct walk_frame *f;

	walk_init(&c.walk);
	arena_init(&c.sorted);
	if (!enter(&c, a, b))
		return false;
	while ((f = walk_top(&c.walk))) {
		if (f->i == f->v.n) {
			walk_pop(&c.walk);
			continue;
		}
		uint32_t i = f->i++;
		if (!enter(&c, walk_child(f->v, i), counterpart(f->v, f->other, i)))
			return false;
	}
	return true;
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

static uint64_t hash_number(double d)
{
	uint64_t bits;
	d = d == 0 ? 0 : d; /* -0.0 equals 0 */
	memcpy(&bits, &d, sizeof(bits));
	return mix(bits ^ VAL_INT);
}

static uint64_t hash_shallow(struct val v)
{
	switch ((enum val_type)v.type) {
	case VAL_BOOL: return mix(v.b + 3u);
	case VAL_INT: return hash_number((double)v.i);
	case VAL_DOUBLE: return hash_number(v.d);
	case VAL_STRING:
	case VAL_RAW: return mix(str_hash(val_as_str(v)) ^ v.type);
	default: return mix(v.type);
	}
}

/* Adds a child's hash to its parent: by position in lists, by key and without order in objects. */
static void absorb(struct walk_frame *f, uint64_t child)
{
	uint32_t i = f->i - 1;
	if (f->v.type == VAL_LIST)
		f->sum = mix(f->sum ^ child) + i;
	else
		f->sum += mix(child ^ str_hash(atom_str(f->v.members[i].key)));
}

uint64_t val_hash(struct val v)
{
	CLEANUP(walk_done) struct walk w;
	struct walk_frame *f;

	walk_init(&w);
	if (v.type < VAL_LIST)
		return hash_shallow(v);
	walk_push(&w, v)->sum = hash_shallow(v);
	for (;;) {
		f = walk_top(&w);
		if (f->i == f->v.n) {
			uint64_t sum = mix(f->sum);
			walk_pop(&w);
			if (!(f = walk_top(&w)))
				return sum;
			absorb(f, sum);
			continue;
		}
		struct val child = walk_child(f->v, f->i++);
		if (child.type >= VAL_LIST)
			walk_push(&w, child)->sum = hash_shallow(child);
		else
			absorb(f, hash_shallow(child));
	}
}
