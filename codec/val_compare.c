#include "base/buf.h"
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

/* Compares and, for lists and objects with children that are not the very same array, goes on with them. */
static bool enter(struct walk *w, struct val a, struct val b)
{
	if (!equal_shallow(a, b))
		return false;
	if (a.type >= VAL_LIST && a.n && a.items != b.items)
		walk_push(w, a)->other = b;
	return true;
}

bool val_equal(struct val a, struct val b)
{
	CLEANUP(walk_done) struct walk w;
	struct walk_frame *f;

	walk_init(&w);
	if (!enter(&w, a, b))
		return false;
	while ((f = walk_top(&w))) {
		if (f->i == f->v.n) {
			walk_pop(&w);
			continue;
		}
		uint32_t i = f->i++;
		if (!enter(&w, walk_child(f->v, i), counterpart(f->v, f->other, i)))
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

/* ---- differences ---- */

enum { DIFF_PATH_MAX = 64 * 1024 };

struct diff {
	struct arena *arena;
	struct buf path;
	bool (*visit)(const struct val_change *, void *);
	void *arg;
};

static bool differ(struct diff *d, struct val before, struct val after, unsigned depth);

static bool report(struct diff *d, struct val before, struct val after)
{
	struct val_change c = { .path = arena_str(d->arena, buf_str(&d->path)), .before = before, .after = after };
	return d->visit(&c, d->arg);
}

/* Goes on with one member, whose name stands at the end of the path meanwhile. */
static bool differ_member(struct diff *d, atom key, struct val before, struct val after, unsigned depth)
{
	size_t n = d->path.n;
	str name = atom_str(key);
	/* Names that are not plain are written as map keys: metadata.labels[a.b/c]. */
	if (str_chr(name, '.') >= 0 || str_chr(name, '/') >= 0)
		buf_addf(&d->path, "[" STR_FMT "]", STR_ARG(name));
	else
		buf_addf(&d->path, "%s" STR_FMT, n ? "." : "", STR_ARG(name));
	bool more = differ(d, before, after, depth + 1);
	d->path.n = n;
	return more;
}

static bool differ_objects(struct diff *d, struct val before, struct val after, unsigned depth)
{
	VAL_EACH_MEMBER(m, after)
		if (!differ_member(d, m->key, val_member(before, m->key), m->val, depth))
			return false;
	VAL_EACH_MEMBER(m, before)
		if (!val_exists(val_member(after, m->key)) && !differ_member(d, m->key, m->val, VAL_EMPTY, depth))
			return false;
	return true;
}

static bool differ_lists(struct diff *d, struct val before, struct val after, unsigned depth)
{
	for (uint32_t i = 0; i < MAX(before.n, after.n); i++) {
		size_t n = d->path.n;
		buf_addf(&d->path, "[%u]", i);
		bool more = differ(d, val_at(before, i), val_at(after, i), depth + 1);
		d->path.n = n;
		if (!more)
			return false;
	}
	return true;
}

/* Below VAL_RECURSION_MAX a whole subtree counts as one place. */
static bool differ(struct diff *d, struct val before, struct val after, unsigned depth)
{
	if (depth < VAL_RECURSION_MAX && before.type == VAL_OBJECT && after.type == VAL_OBJECT)
		return differ_objects(d, before, after, depth);
	if (depth < VAL_RECURSION_MAX && before.type == VAL_LIST && after.type == VAL_LIST)
		return differ_lists(d, before, after, depth);
	return val_equal(before, after) || report(d, before, after);
}

void val_diff(struct arena *a, struct val before, struct val after, bool (*visit)(const struct val_change *, void *), void *arg)
{
	struct diff d = { .arena = a, .path = BUF_INIT(DIFF_PATH_MAX), .visit = visit, .arg = arg };
	(void)differ(&d, before, after, 0);
	buf_done(&d.path);
}
