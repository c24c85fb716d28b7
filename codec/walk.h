/*
 * A stack of frames for walking trees without recursion: trees from outside can be deeper than a fiber's stack.
 * The first frames live inside the struct, so that ordinary trees cost no allocation.
 */
#ifndef C8S_CODEC_WALK_H
#define C8S_CODEC_WALK_H

#include <stdlib.h>

#include "base/mem.h"
#include "codec/val.h"

struct walk_frame {
	struct val v;      /* the list or object that is being walked */
	union {
		struct val other;  /* what it is compared with */
		void *copy;        /* the array that it is copied into */
		uint64_t sum;      /* what was gathered so far */
	};
	uint32_t i;        /* the next child */
};

struct walk {
	struct walk_frame *frames;
	uint32_t n, cap;
	struct walk_frame inline_frames[16];
};

static inline void walk_init(struct walk *w)
{
	w->frames = w->inline_frames;
	w->n = 0;
	w->cap = ARRAY_LEN(w->inline_frames);
}

static inline void walk_done(struct walk *w)
{
	if (w->frames != w->inline_frames)
		free(w->frames);
}

/* The new top; pointers to older frames are no longer valid. */
static inline struct walk_frame *walk_push(struct walk *w, struct val v)
{
	if (w->n == w->cap) {
		struct walk_frame *more = mem_array(w->cap * 2, sizeof(*more));
		memcpy(more, w->frames, w->n * sizeof(*more));
		walk_done(w);
		w->frames = more;
		w->cap *= 2;
	}
	struct walk_frame *f = &w->frames[w->n++];
	f->v = v;
	f->i = 0;
	return f;
}

static inline struct walk_frame *walk_top(struct walk *w) { return w->n ? &w->frames[w->n - 1] : NULL; }
static inline void walk_pop(struct walk *w) { w->n--; }

/* Child i of a list or object. */
static inline struct val walk_child(struct val v, uint32_t i)
{
	return v.type == VAL_LIST ? v.items[i] : v.members[i].val;
}

#endif
