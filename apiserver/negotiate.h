/*
 * negotiate: which form a client wants to read (Accept) and which one it sends (Content-Type), by Kubernetes' rules:
 * JSON, YAML and protobuf; objects as they are, as tables or as their metadata alone; pretty for people.
 */
#ifndef C8S_APISERVER_NEGOTIATE_H
#define C8S_APISERVER_NEGOTIATE_H

#include "apiserver/request.h"

enum { ACCEPT_PARAMS_MAX = 16, ACCEPT_CLAUSES_MAX = 100 };

/* One media range of an Accept header. Slices of the header. */
struct accept_clause {
	str type, subtype;            /* each may be "*" */
	double q;
	size_t n_params;
	struct {
		str name, value;
	} params[ACCEPT_PARAMS_MAX];  /* without q */
};

/*
 * The clauses of a header in the order of preference: by q, then precise ones before those with stars, else as written.
 * Malformed clauses, and what is beyond the maxima, do not count.
 */
size_t accept_parse(struct arena *a, str header, struct accept_clause **ret);
/* The value of a parameter; n == 0 and p == NULL when there is none. */
str accept_param(const struct accept_clause *c, str name);

/*
 * Sets q->accept, for resources and for other paths (which have no tables). Needs the verb and the query; called once
 * it is known that the resource exists. Fails with 406.
 */
int negotiate_accept(struct request *q, struct err *err);
/* The form in which a failure is told: never a table. False: only plain JSON is left. */
bool negotiate_status(const struct request *q, struct accept *ret);

/* The media type of the request's body (not of patches); JSON when there is no Content-Type. Fails with 415. */
int negotiate_body(struct request *q, enum media *ret, struct err *err);
/* Content-Type without parameters, in lower case; "" when it is malformed or absent. */
str negotiate_content_type(const struct request *q);
/* The type of patches that is not taken: 415. */
int negotiate_fail_patch(struct request *q);

/* Whether the answer may be compressed: Accept-Encoding names gzip. */
bool negotiate_gzip(const struct request *q);

#endif
