/*
 * Label selectors. A selector is compiled once, into an arena, and then matched any number of times without allocation:
 *
 *	struct selector sel;
 *	if ((r = selector_parse(&arena, STR("app in (web,db),!canary"), &sel, err)) < 0)
 *		return r;
 *	if (selector_matches(&sel, val_get(pod, metadata, labels)))
 *		...
 *
 * A compiled selector owns its texts (in the arena) and is immutable: any number of threads may match with it. Errors are
 * -ERR_BAD_REQUEST with Kubernetes' texts. Field selectors are in field_selector.h, those of nodes in node_selector.h.
 */
#ifndef C8S_MACHINERY_SELECTOR_H
#define C8S_MACHINERY_SELECTOR_H

#include "codec/val.h"
#include "machinery/field_error.h"

enum selector_op {
	SELECTOR_IN,
	SELECTOR_NOT_IN,
	SELECTOR_EQUALS,
	SELECTOR_DOUBLE_EQUALS, /* the same; only the text differs */
	SELECTOR_NOT_EQUALS,
	SELECTOR_GREATER,
	SELECTOR_LESS,
	SELECTOR_EXISTS,
	SELECTOR_NOT_EXISTS,
};

struct requirement {
	atom key;
	uint8_t op;          /* enum selector_op */
	uint32_t n_values;
	const str *values;
	int64_t number;      /* of SELECTOR_GREATER and SELECTOR_LESS */
};

struct selector {
	size_t n;
	const struct requirement *all; /* all must hold; sorted by key */
	bool nothing;                  /* matches no labels at all */
};

#define SELECTOR_EVERYTHING ((struct selector){ 0 })
#define SELECTOR_NOTHING ((struct selector){ .nothing = true })

/*
 * The text of ?labelSelector= and kubectl -l: x=a, x==a, x!=a, x in (a,b), x notin (a,b), x, !x, x>1, x<1 with commas
 * between them. The empty text matches everything.
 */
int selector_parse(struct arena *a, str text, struct selector *ret, struct err *err);
/* A LabelSelector object. An absent or null one matches nothing, an empty one everything. */
int selector_of_object(struct arena *a, struct val label_selector, struct selector *ret, struct err *err);
/* All labels of a map, unchecked, as the selectors of Services and ReplicationControllers are. No labels match everything. */
struct selector selector_of_labels(struct arena *a, struct val map);
/*
 * One requirement, checked as the API does; what is wrong is added to errors with paths below at (NULL: none), and the result
 * is then false. Messages show values that are NULL as null, and an empty array as [].
 */
bool selector_requirement(struct field_errors *errors, const struct field_path *at, str key, enum selector_op op, const str *values,
			  size_t n, struct requirement *ret);
/* Just its key; false when an error was added. */
bool selector_check_key(struct field_errors *errors, const struct field_path *at, str key);
/* The selector of these requirements, put into order in place. */
struct selector selector_of_requirements(struct arena *a, struct requirement *all, size_t n);

bool requirement_matches(const struct requirement *r, struct val labels);
bool selector_matches(const struct selector *s, struct val labels);

static inline bool selector_is_everything(const struct selector *s) { return s->n == 0 && !s->nothing; }
/* True when labels can only match if key has one certain value, which is then in *ret_value: for indexes. */
bool selector_requires(const struct selector *s, str key, str *ret_value);

/* Canonical text: sorted by key, sets sorted. "" for everything and for nothing. */
str selector_text(struct arena *a, const struct selector *s);
/* A LabelSelector object as kubectl shows it: its text, "<none>" when that is empty, "<error>" when it is not valid. */
str selector_display(struct arena *a, struct val label_selector);
/* A map of labels as "a=b,c=d", sorted; "<none>" when there are none. */
str labels_display(struct arena *a, struct val map);

#endif
