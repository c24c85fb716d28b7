/*
 * Writing: the parts that stages share. A write is decoded (decode.c, patch.c), mutated, validated, admitted and
 * committed (commit.c); when somebody else was faster, it begins again with the object as it is now.
 */
#ifndef C8S_APISERVER_WRITE_H
#define C8S_APISERVER_WRITE_H

#include "apiserver/request.h"

/* Options from the query, checked; kind is "CreateOptions", "UpdateOptions" or "PatchOptions". */
int write_options(struct request *q, str kind, bool is_apply);

/* (suspends) Reads the whole body into q->body, within the server's limit (413). */
int write_read_body(struct request *q, struct err *err);

/*
 * Decodes JSON text as an object that is expected to be of this type; strict: collect what is unknown or double. On failure *ret_why
 * is Go's reason and *ret_kind what the text said it is (kind empty: that could not be told), and the result is < 0.
 */
int write_decode_text(struct request *q, str json, const struct type *expected, struct strict_errors *strict, struct val *ret,
		      struct object_kind *ret_kind, str *ret_why);
/* The decoded body as a typed tree of this type, with defaults; 400 as Kubernetes words it. */
int write_decode_body(struct request *q, const struct type *expected, struct val *ret, struct err *err);
/* Warnings for what a strict decoder found, or (fieldValidation=Strict) the text to fail with; false: nothing to fail. */
bool write_strict_failed(struct request *q, const struct strict_errors *strict, str *ret_why);

/*
 * (suspends) Makes q->current (and q->old) what is stored under the path's name; fresh: asks the store, not the cache. Neither is an
 * error when there is nothing.
 */
int write_load(struct request *q, bool fresh, struct err *err);
/* What clients of this endpoint send: its type, or that of its view (subresource.h). */
const struct type *write_type(const struct request *q);
/* The stored object in the endpoint's version, or what its view shows of it. */
int write_live(struct request *q, struct val *ret, struct err *err);
/* The object with the managedFields that it gets by this request; live: VAL_NONE for a new one. */
struct val write_managed(struct request *q, const struct type *type, struct val live, struct val object);
/* Sets q->object (hub version) from an object in the endpoint's version, after its managedFields were brought up to date. */
int write_take(struct request *q, struct val live, struct val object, bool managed, struct err *err);
/* A patch of any of the four kinds: sets q->object, or fails. */
int write_patch(struct request *q, struct err *err);
/* What validation cannot see: access to devices that the namespace has to allow. */
void admin_access_check(struct request *q, struct field_errors *e);
/* 404 for the object that the path names. */
int write_not_found(struct request *q);

/* (suspends) The write is over: what the kind's begin hook took for it is kept, or given back. Nothing if it took nothing. */
void write_finish(struct request *q, bool stored);
/* (suspends) Stores q->object, or finds that there is nothing to do. Answers, or STAGE_AGAIN. */
int write_commit(struct request *q, struct err *err);
/* (suspends) DELETE of one object and of a collection. */
int write_delete(struct request *q, struct err *err);
int write_delete_collection(struct request *q, struct err *err);
/* DeleteOptions from body or query, checked, into q->delete_options. */
int write_delete_options(struct request *q, struct err *err);

/* An error that Kubernetes passes on as it is: 500 without a reason. */
int fail_plain(struct request *q, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
