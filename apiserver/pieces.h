/* What a source has ready to be sent: texts that it borrows, one after the other. */
#ifndef C8S_APISERVER_PIECES_H
#define C8S_APISERVER_PIECES_H

#include "base/str.h"

enum { PIECES_MAX = 3 };

struct pieces {
	str left[PIECES_MAX];         /* from `at` on */
	unsigned at, n;
};

static inline void pieces_clear(struct pieces *p) { p->at = p->n = 0; }
static inline void pieces_add(struct pieces *p, str s) { p->left[p->n++] = s; }
static inline bool pieces_empty(const struct pieces *p) { return p->at == p->n; }

/* Copies as much as there is and fits; returns how much that was. */
static inline size_t pieces_take(struct pieces *p, char *out, size_t room)
{
	size_t done = 0;
	while (p->at < p->n) {
		str *s = &p->left[p->at];
		size_t n = s->n < room - done ? s->n : room - done;
		if (n)
			memcpy(out + done, s->p, n);
		done += n;
		if (n < s->n) {
			*s = str_skip(*s, n);
			break;
		}
		p->at++;
	}
	return done;
}

#endif
