/* The parsed form of templates, between jsonpath_parse.c and jsonpath.c. */
#ifndef C8S_MACHINERY_JSONPATH_PRIV_H
#define C8S_MACHINERY_JSONPATH_PRIV_H

#include "machinery/jsonpath.h"

enum node_type {
	NODE_TEXT,
	NODE_LIST,       /* an {action}: each node works on the results of the one before */
	NODE_FIELD,
	NODE_IDENTIFIER, /* range, end, or a mistake */
	NODE_ARRAY,
	NODE_FILTER,
	NODE_LITERAL,    /* number or bool */
	NODE_WILDCARD,
	NODE_RECURSIVE,
	NODE_UNION,
};

struct nodes {
	struct node *all;
	size_t n, cap;
};

/* One of start:end:step. derived: the end of a plain index, one behind it. */
struct slice_bound {
	int64_t value;
	bool known, derived;
};

struct node {
	enum node_type type;
	str text;                    /* TEXT, FIELD, IDENTIFIER; the operator of a FILTER */
	atom key;                    /* FIELD */
	struct val literal;          /* LITERAL */
	struct nodes nodes;          /* LIST; UNION: lists */
	struct nodes left, right;    /* FILTER */
	struct slice_bound slice[3]; /* ARRAY */
};

struct jsonpath {
	struct nodes nodes;          /* texts and lists */
};

#endif
