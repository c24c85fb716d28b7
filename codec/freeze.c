/*
 * Freezing and deep copies. A frozen tree is one block:
 *
 *	struct frozen | arrays of vals and members, texts of unknown keys (8-aligned) | texts of strings
 *
 * The size is measured first, then the tree is copied; both walks keep their own stack.
 */
#include <stdatomic.h>

#include "codec/val.h"
#include "codec/walk.h"

/* Where copies go: either two regions of one block that was measured beforehand, or an arena. */
struct target {
	struct arena *arena;
	char *arrays, *texts;
};

static void *take_array(struct target *t, size_t size)
{
	if (t->arena)
		return arena_alloc(t->arena, size, 8);
	void *p = t->arrays;
	t->arrays += (size + 7) & ~(size_t)7;
	return p;
}

static const char *take_text(struct target *t, str s)
{
	if (t->arena)
		return arena_str(t->arena, s).p;
	char *p = t->texts;
	if (s.n)
		memcpy(p, s.p, s.n);
	t->texts += s.n;
	return p;
}

static size_t array_size(struct val v) { return v.n * (v.type == VAL_LIST ? sizeof(struct val) : sizeof(struct member)); }
static size_t key_size(atom key) { return key < ATOM_LIMIT ? 0 : (sizeof(struct atom_text) + atom_str(key).n + 7) & ~(size_t)7; }

static atom copy_key(struct target *t, atom key)
{
	if (key < ATOM_LIMIT)
		return key;
	str s = atom_str(key);
	struct atom_text *text = take_array(t, sizeof(*text) + s.n);
	text->n = (uint32_t)s.n;
	memcpy(text->s, s.p, s.n);
	return (atom)text;
}

/* Copies v without the children of lists and objects: those follow when the walk gets there. */
static struct val copy_one(struct target *t, struct walk *w, struct val v)
{
	if (v.type == VAL_STRING || v.type == VAL_RAW) {
		v.s = take_text(t, val_as_str(v));
	} else if (v.type >= VAL_LIST) {
		void *array = v.n ? take_array(t, array_size(v)) : NULL;
		if (v.n)
			walk_push(w, v)->copy = array;
		v.items = array;
	}
	return v;
}

static struct val copy_tree(struct target *t, struct val v)
{
	CLEANUP(walk_done) struct walk w;
	struct walk_frame *f;

	walk_init(&w);
	struct val root = copy_one(t, &w, v);
	while ((f = walk_top(&w))) {
		if (f->i == f->v.n) {
			walk_pop(&w);
			continue;
		}
		/* copy_one may move the frames: take what is needed first. */
		uint32_t i = f->i++;
		if (f->v.type == VAL_LIST) {
			struct val *into = (struct val *)f->copy + i;
			*into = copy_one(t, &w, f->v.items[i]);
		} else {
			const struct member *from = &f->v.members[i];
			struct member *into = (struct member *)f->copy + i;
			into->key = copy_key(t, from->key);
			into->val = copy_one(t, &w, from->val);
		}
	}
	return root;
}

static void measure(struct val v, size_t *ret_arrays, size_t *ret_texts)
{
	CLEANUP(walk_done) struct walk w;
	struct walk_frame *f;
	size_t arrays = 0, texts = 0;

	walk_init(&w);
	for (struct val next = v;;) {
		if (next.type == VAL_STRING || next.type == VAL_RAW)
			texts += next.n;
		else if (next.type >= VAL_LIST && next.n)
			walk_push(&w, next), arrays += array_size(next);
		while ((f = walk_top(&w)) && f->i == f->v.n)
			walk_pop(&w);
		if (!f)
			break;
		if (f->v.type == VAL_OBJECT)
			arrays += key_size(f->v.members[f->i].key);
		next = walk_child(f->v, f->i++);
	}
	*ret_arrays = arrays;
	*ret_texts = texts;
}

struct frozen *val_freeze(struct val v)
{
	size_t arrays, texts;

	measure(v, &arrays, &texts);
	size_t size = sizeof(struct frozen) + arrays + texts;
	struct frozen *f = mem_alloc(size);
	struct target t = { .arrays = (char *)(f + 1), .texts = (char *)(f + 1) + arrays };
	atomic_init(&f->refs, 1);
	f->size = size;
	f->val = copy_tree(&t, v);
	return f;
}

struct frozen *frozen_ref(struct frozen *f)
{
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
	return f;
}

void frozen_unref(struct frozen *f)
{
	if (f && atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
		free(f);
}

void frozen_unrefp(struct frozen **f) { frozen_unref(*f); }

struct val val_copy(struct arena *a, struct val v) { return copy_tree(&(struct target){ .arena = a }, v); }
