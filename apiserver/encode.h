/*
 * encode: objects in the form that a client asked for: media type, version, and whole object, table or metadata alone.
 * Objects that are shown as they are cached are copied from their shared bytes; all others are made as compact JSON (or
 * protobuf) first, from which the pretty form and YAML follow.
 */
#ifndef C8S_APISERVER_ENCODE_H
#define C8S_APISERVER_ENCODE_H

#include "apiserver/request.h"

/* "application/json", "application/vnd.kubernetes.protobuf;stream=watch", ... */
str encode_content_type(const struct accept *accept, bool watch);

/*
 * Appends one object in the form of the request: a stored object by its shared bytes where that is possible. For watches
 * (which embed objects) `embedded` leaves out the newline that ends a JSON answer. -ERR_NOT_ACCEPTABLE when it has no
 * such form.
 */
int encode_object(struct request *q, struct object *o, bool embedded, struct buf *b, struct err *err);
int encode_val(struct request *q, struct val v, const struct type *type, bool embedded, struct buf *b, struct err *err);

/* The object in the version of the request's endpoint, decorated: a typed tree in the arena. */
int encode_version(struct request *q, struct object *o, struct arena *a, struct val *ret, const struct type **ret_type,
		   struct err *err);

/* ---- for answers that outlive their request: lists and watches ---- */

enum include { INCLUDE_METADATA, INCLUDE_OBJECT, INCLUDE_NONE };

/* What of a request decides how its objects look. */
struct view {
	const struct endpoint *endpoint; /* NULL: of no resource */
	struct accept accept;
	enum include include;         /* what rows of tables carry */
	bool shared;                  /* objects of the kind can be shown by their shared bytes */
};

/* Fails with 400 when ?includeObject= of a table is none of the known ones. */
int view_of(struct request *q, struct view *ret);

/* The tree of a cached object in the version of the view; a: for what is new of it. */
int view_version(const struct view *f, struct object *o, struct arena *a, struct val *ret, const struct type **ret_type,
		 struct err *err);

/* What of a list is before its items. */
struct list_head {
	int64_t revision;
	str next;                     /* continue token; "" at the end */
	int64_t remaining;            /* -1: not known */
};

/* JSON up to the first item or row: {"kind":"PodList",...,"items":[ ; view_list_end closes what it opened. */
int view_list_begin(const struct view *f, const struct list_head *head, bool empty, struct arena *a, struct buf *b,
		    struct err *err);
str view_list_end(const struct view *f, bool empty);
/* One item or row; not for objects that go by their shared bytes. */
int view_list_item(const struct view *f, struct object *o, struct arena *a, struct buf *b, struct err *err);
/* Protobuf: the envelope and metadata before items that will have n bytes together, tags included; what follows them. */
int view_proto_begin(const struct view *f, const struct list_head *head, size_t n, struct arena *a, struct buf *b,
		     struct err *err);
str view_proto_end(void);
/* The tag and length before an item's message of n bytes. */
void view_proto_item(const struct view *f, size_t n, struct buf *b);
/* The message of one item; not for objects that go by their shared bytes. */
int view_proto_message(const struct view *f, struct object *o, struct arena *a, struct buf *b, struct err *err);

/* One object embedded in an event: compact JSON or protobuf. headers: whether a table shows its columns. */
int view_event_object(const struct view *f, struct object *o, bool headers, struct arena *a, struct buf *b, struct err *err);
/* The same for a tree of any type; a Status is shown as it is. */
int view_event_val(const struct view *f, struct val v, const struct type *type, bool headers, struct arena *a, struct buf *b,
		   struct err *err);

/* Compact JSON as a pretty or YAML answer of its own. */
int view_reshape(const struct accept *accept, str json, struct arena *a, struct buf *b, struct err *err);

#endif
