/*
 * label_match: selectors over the words of the table, for labels of nodes and pods (sorted by the number of the key). Compiled into an arena, good
 * until the table changes; matching compares numbers and allocates nothing.
 */
#ifndef C8S_SCHEDULER_LABEL_MATCH_H
#define C8S_SCHEDULER_LABEL_MATCH_H

#include "machinery/node_selector.h"
#include "scheduler/nodes.h"

struct label_want {
	word key;                     /* 0: no object has it */
	uint8_t op;                   /* enum selector_op */
	uint32_t n_values;
	const word *values;           /* those that no object has are left out */
	int64_t number;
};

struct label_match {
	size_t n;
	const struct label_want *all; /* all must hold */
	bool nothing;
};

void label_match_compile(struct arena *a, const struct nodes *t, const struct selector *s, struct label_match *ret);
bool label_match(const struct nodes *t, const struct label_match *m, const struct label *labels, uint32_t n);

/* One term of a node selector. */
struct node_term_match {
	bool never;                   /* empty, not valid, or of fields that nodes do not have */
	struct label_match labels;
	size_t n_names;
	const struct node_name_want { word name; bool negated; } *names; /* of metadata.name */
};

/* nodeSelector and required node affinity of a pod. */
struct node_match {
	struct label_match labels;
	bool has_terms;
	size_t n;
	const struct node_term_match *terms; /* one must match */
};

void node_term_match_compile(struct arena *a, const struct nodes *t, struct val term, struct node_term_match *ret);
bool node_term_match(const struct nodes *t, const struct node_term_match *m, uint32_t node);
void node_match_compile(struct arena *a, const struct nodes *t, struct val pod_spec, struct node_match *ret);
bool node_match(const struct nodes *t, const struct node_match *m, uint32_t node);

#endif
