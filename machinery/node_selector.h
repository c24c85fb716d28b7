/*
 * Which nodes a pod, a volume or a resource slice may use: NodeSelector objects (terms joined by OR, requirements within a term
 * by AND), and what a pod spec asks for with nodeSelector and required node affinity.
 *
 * Compiled once into an arena; matching allocates nothing unless it fails, and may be done by any thread. A term that is not valid
 * does not match; as in Kubernetes its error only comes out when no other term matches.
 */
#ifndef C8S_MACHINERY_NODE_SELECTOR_H
#define C8S_MACHINERY_NODE_SELECTOR_H

#include "machinery/selector.h"

/* A requirement on metadata.name, the only field that nodes can be selected by. */
struct node_field {
	str field, value;
	bool negated;
};

/* A NodeSelectorTerm. */
struct node_term {
	struct selector labels;
	size_t n_fields;
	const struct node_field *fields;
	bool empty;       /* matches no node */
	size_t n_errors;
	str errors;       /* what is wrong with it */
};

struct node_selector {
	size_t n;
	const struct node_term *terms;
};

/* at is the path of the object, for errors; may be NULL. */
void node_term_compile(struct arena *a, struct val term, const struct field_path *at, struct node_term *ret);
/* False for an empty term and for one that is not valid. */
bool node_term_matches(const struct node_term *t, struct val node);

void node_selector_compile(struct arena *a, struct val node_selector, const struct field_path *at, struct node_selector *ret);
/* 0, or -ERR_INVALID with the errors of all terms. */
int node_selector_check(const struct node_selector *s, struct err *err);
/* 1: matches; 0: does not; -ERR_INVALID: does not, and some term is not valid. */
int node_selector_matches(const struct node_selector *s, struct val node, struct err *err);

/* spec.nodeSelector and spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution of a pod. */
struct node_affinity {
	struct selector labels;
	bool has_terms;
	struct node_selector terms;
};

void node_affinity_compile(struct arena *a, struct val pod_spec, struct node_affinity *ret);
/* As node_selector_matches. */
int node_affinity_matches(const struct node_affinity *f, struct val node, struct err *err);

#endif
