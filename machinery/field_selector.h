/*
 * Field selectors: ?fieldSelector=spec.nodeName=node-1,status.phase!=Running. Two steps, because clients parse without knowing
 * the server's fields:
 *
 *	field_selector_parse(&arena, text, &sel, err);
 *	field_selector_bind(&arena, &sel, TYPE(core_v1, Pod), err);       // which fields there are depends on the kind
 *	if (field_selector_matches(&sel, pod)) ...                        // no allocation, any thread
 *
 * A selector owns its texts in the arena. Errors are -ERR_BAD_REQUEST with Kubernetes' texts.
 */
#ifndef C8S_MACHINERY_FIELD_SELECTOR_H
#define C8S_MACHINERY_FIELD_SELECTOR_H

#include "codec/schema.h"

struct field_term {
	str field, value;
	bool negated;               /* != */
	const struct field_access *access; /* how to read the field; NULL until bound */
};

struct field_selector {
	size_t n;
	struct field_term *terms;   /* all must hold; sorted by their text */
};

/* Terms with =, == or !=, separated by commas. In values \\, \, and \= stand for the plain character. */
int field_selector_parse(struct arena *a, str text, struct field_selector *ret, struct err *err);
/* The text again, with '=' for '==' and with escapes. */
str field_selector_text(struct arena *a, const struct field_selector *s);

/*
 * Finds the fields that objects of this kind can be selected by; a field that the kind does not have is an error, with the text
 * of its kind. Other names of a field (spec.host of a Pod) are replaced by the main one.
 */
int field_selector_bind(struct arena *a, struct field_selector *s, const struct type *kind, struct err *err);
/* The same for custom resources: selectable are the JSON paths of the version's selectableFields (".spec.color"). */
int field_selector_bind_custom(struct arena *a, struct field_selector *s, bool namespaced, const str *selectable, size_t n,
			       struct err *err);

/* The selector has been bound to the object's kind. Events match in the form of either of their API groups. */
bool field_selector_matches(const struct field_selector *s, struct val object);
/* True when only objects with one value of the field can match, which is then in *ret_value: for indexes and single objects. */
bool field_selector_requires(const struct field_selector *s, str field, str *ret_value);

#endif
