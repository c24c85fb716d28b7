/* The options of lists and watches, as their query has them. */
#ifndef C8S_APISERVER_LIST_OPTIONS_H
#define C8S_APISERVER_LIST_OPTIONS_H

#include "apiserver/request.h"

enum list_match { MATCH_UNSET, MATCH_NOT_OLDER_THAN, MATCH_EXACT };
enum list_initial { INITIAL_UNSET, INITIAL_NO, INITIAL_YES };

/* Lives as long as the request's arena. */
struct list_options {
	struct selector labels;
	struct field_selector fields;
	str name;                     /* the only name that can match; "": any */
	str namespace;                /* the only namespace; "": all, or the kind has none */
	bool selects;                 /* labels or fields were given */
	str revision;                 /* resourceVersion, not looked at yet: see read_revision */
	enum list_match match;
	int64_t limit;                /* 0: none */
	str next;                     /* continue */

	/* watches only */
	int64_t timeout_s;            /* 0: the server's own */
	bool bookmarks;
	enum list_initial initial;
};

/* For lists, watches and deletions of collections. Fails with 400 or 422 and Kubernetes' messages. */
int list_options_read(struct request *q, struct list_options *ret, struct err *err);

/* Whether an object of the kind is in the namespace, has the name and matches the selectors. */
bool list_options_match(const struct list_options *o, const struct object *object);

#endif
