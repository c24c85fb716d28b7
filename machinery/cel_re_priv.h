/* What the parts of regular expressions share: cel_re_parse.c makes a tree, cel_re.c a program of it; cel_re_unicode.c knows classes by name. */
#ifndef C8S_MACHINERY_CEL_RE_PRIV_H
#define C8S_MACHINERY_CEL_RE_PRIV_H

#include "machinery/cel_re.h"

enum re_kind {
	RE_EMPTY,
	RE_CLASS,      /* one character of a set */
	RE_CAT,        /* one part after the other */
	RE_ALT,        /* one of the parts */
	RE_REPEAT,     /* part {min,max} */
	RE_LINE_BEGIN, /* what stands between characters */
	RE_LINE_END,
	RE_TEXT_BEGIN,
	RE_TEXT_END,
	RE_WORD,
	RE_NOT_WORD,
};

struct re_range {
	uint32_t from, to;
};

/* Sorted ranges that do not touch. */
struct re_class {
	const struct re_range *ranges;
	size_t n;
};

struct re_node {
	uint8_t kind;
	bool lazy;
	int min, max;              /* max < 0: no end */
	size_t weight;             /* instructions that it takes, at most */
	struct re_class set;
	struct re_node *part;      /* the first; the others follow by next */
	struct re_node *next;
};

enum { RE_WEIGHT_MAX = 50000, RE_RANGES_MAX = 4000000 /* of all sets of an expression */, RE_RUNE_MAX = 0x10ffff, RE_CLASS_NAME_MAX = 32 };

struct re_node *re_parse(struct arena *a, str pattern, struct err *err);

typedef void re_unicode_add(void *arg, uint32_t from, uint32_t to);
/* Tells the ranges, in order, of a category or script; false: no such name. */
bool re_unicode_class(str name, re_unicode_add *add, void *arg);

#endif
