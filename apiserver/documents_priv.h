/* What the files of discovery, OpenAPI, health and the like share. */
#ifndef C8S_APISERVER_DOCUMENTS_PRIV_H
#define C8S_APISERVER_DOCUMENTS_PRIV_H

#include "apiserver/apiserver.h"
#include "apiserver/documents.h"
#include "apiserver/request.h"

/* ---- kept documents ---- */

enum { ETAG_HEX = 128, DOCUMENT_MAX = 64 << 20 };

struct document {
	str name;                 /* "/openapi/v2 protobuf": path and form */
	str bytes;                /* compressed when `gzip` */
	size_t n;                 /* of the plain form */
	bool gzip;
	char etag[ETAG_HEX + 3];  /* in quotes */
};

struct document *documents_find(struct apiserver *s, str name);
/* A new one, with copies of the name and the bytes. */
struct document *documents_keep(struct apiserver *s, str name, str bytes);
/* The bytes become the gzip form of plain. Does not touch the server: may run in any thread. */
int document_compress(struct document *doc, str plain, struct err *err);

/* (suspends) Only one fiber at a time makes documents, so that memory for it is needed once. */
int documents_lock(struct apiserver *s, struct err *err);
void documents_unlock(struct apiserver *s);

/* SHA-512 of text in quotes, as ETags are. */
void etag_of(str text, char ret[ETAG_HEX + 3]);
/* Whether the client has this version already: If-None-Match, the quoted etag among others or a star. */
bool etag_matches(const struct request *q, str etag);

/* ---- answering ---- */

/* 200 (or 304) with the document, compressed if the client takes that. Headers other than etag are the caller's. */
int answer_document(struct request *q, const struct document *doc, str content_type, struct err *err);
/* A free tree as JSON with two spaces per level, as people read it. */
int answer_indented(struct request *q, struct val v, struct err *err);
void answer_text(struct request *q, int status, str text);
/* A status and nothing else. */
void answer_empty(struct request *q, int status);
/* Whether only GET is left: fails with 405 for other methods. */
int require_get(struct request *q);

/* ---- who answers what ---- */

/* The group versions that are served, in the order of discovery: n of them, in the arena. */
size_t served_versions(const struct request *q, const struct api_version ***ret);
bool serves_version(const struct request *q, str group, str version);

/* rest: of the path, behind "/api" or "/apis", without a slash at its end. */
int discovery_handle(struct request *q, bool core, str rest, struct err *err);
/* Whether the client asks for all groups at once, and in which form: sets q->accept and the type of the answer. */
bool discovery_wants_aggregated(struct request *q, const struct type **ret_type);
int discovery_aggregated(struct request *q, bool core, const struct type *type, struct err *err);
/* Whether its objects are of another group version, which discovery then tells. */
bool resource_is_foreign(const struct resource *r);
/* Verbs and names of a resource as lists of strings; VAL_NONE for no names. */
struct val discovery_verbs(struct arena *a, const struct resource *r);
struct val discovery_names(struct arena *a, const str *names);
/* A typed tree in the form of q->accept: a document of that name, kept from then on. */
int discovery_document(struct request *q, str name, struct val v, const struct type *type, struct document **ret,
		       struct err *err);
str discovery_content_type(const struct request *q);

int openapi_v2_handle(struct request *q, struct err *err);
/* name: behind "/openapi/v3", "" for the index. */
int openapi_v3_handle(struct request *q, str name, struct err *err);

/* check: behind "/healthz", "/livez" or "/readyz", "" for all checks. */
int health_handle(struct request *q, str endpoint, str check, struct err *err);
/* The names of all checks: health_check(0), ... NULL at the end. */
const char *health_check(size_t i, str endpoint);

/* name: behind "/debug/". */
int debug_handle(struct request *q, str name, struct err *err);
int root_handle(struct request *q, struct err *err);

#endif
