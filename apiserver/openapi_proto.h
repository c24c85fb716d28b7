/*
 * openapi_proto: OpenAPI documents as messages of gnostic, for clients that read no JSON. In both versions maps are lists
 * of named entries, choices are messages with one member, and free values are texts of YAML, which JSON is.
 *
 * One function per message writes its content; tables hold the members that need nothing special. What cannot be written is
 * remembered and told once, by gnostic_document. Nothing here suspends: it may run on any thread.
 */
#ifndef C8S_APISERVER_OPENAPI_PROTO_H
#define C8S_APISERVER_OPENAPI_PROTO_H

#include "base/buf.h"
#include "codec/val.h"

/* A document in the making. */
struct gnostic {
	struct buf *b;
	unsigned depth;
	bool too_deep;
	struct err *err;
	int failed;
};

/* Writes the content of a message from the tree that says the same. */
typedef void gnostic_fn(struct gnostic *g, struct val v);

enum gnostic_how {
	GNOSTIC_TEXT, GNOSTIC_TEXTS, GNOSTIC_FLAG, GNOSTIC_NUMBER, GNOSTIC_REAL, GNOSTIC_ANY, GNOSTIC_ANYS, GNOSTIC_MESSAGE,
	GNOSTIC_MESSAGES,
};

/* A member of a message: its name in JSON, its number, how it is written. */
struct gnostic_row {
	str key;
	unsigned number;
	enum gnostic_how how;
	gnostic_fn *content; /* of GNOSTIC_MESSAGE and GNOSTIC_MESSAGES */
};

#define GNOSTIC_ROW(key, number, how) { STR_INIT(key), number, GNOSTIC_##how, NULL }
#define GNOSTIC_ROW_OF(key, number, how, content) { STR_INIT(key), number, GNOSTIC_##how, content }

/* One member, whatever its value. */
void gnostic_text(struct gnostic *g, unsigned number, str s);
void gnostic_flag(struct gnostic *g, unsigned number, bool flag);
void gnostic_real(struct gnostic *g, unsigned number, double real);
void gnostic_message(struct gnostic *g, unsigned number, struct val v, gnostic_fn *content);
/* An object's members as a list of entries {name = 1, value = 2}. */
void gnostic_entries(struct gnostic *g, unsigned number, struct val object, gnostic_fn *content);
/* The members that the table knows, in its order, and as `extension` those that begin with "x-". */
void gnostic_rows(struct gnostic *g, struct val v, const struct gnostic_row *rows, size_t n, unsigned extension);
#define GNOSTIC_ROWS(g, v, rows, extension) gnostic_rows((g), (v), (rows), ARRAY_LEN(rows), (extension))

/* Messages that both versions have. */
gnostic_fn gnostic_text_list; /* StringArray, TypeItem: {value = 1}, from one text or a list of them */
void gnostic_one_or_more(struct gnostic *g, struct val v, gnostic_fn *content);  /* ItemsItem: {schema = 1}, as many as there are */
void gnostic_or_flag(struct gnostic *g, struct val v, gnostic_fn *content);      /* {schema = 1} or {boolean = 2} */
void gnostic_or_reference(struct gnostic *g, struct val v, gnostic_fn *content); /* itself = 1, or {reference = 2} with $ref */

/* A whole document by the function of its outermost message. Fails when it is too deep or too large. */
int gnostic_document(struct val doc, gnostic_fn *content, struct buf *b, struct err *err);

/* gnostic's openapi.v2.Document and openapi.v3.Document. */
int openapi_proto_v2(struct val doc, struct buf *b, struct err *err);
int openapi_proto_v3(struct val doc, struct buf *b, struct err *err);

#endif
