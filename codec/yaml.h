/*
 * YAML as Kubernetes reads it (YAML 1.1 scalars, converted to JSON before decoding) and as kubectl prints it.
 */
#ifndef C8S_CODEC_YAML_H
#define C8S_CODEC_YAML_H

#include "codec/json.h"

/*
 * Appends the first document of text as compact JSON with sorted keys, ready for json_decode; "null" if there is
 * none. Aliases are expanded up to a limit. -ERR_BAD_REQUEST with the messages of Kubernetes' parser: "yaml: line 3:
 * did not find expected key". A key that occurs twice in a mapping has its last value. When duplicates is given, what
 * a strict parser says about such keys is appended to it: "yaml: unmarshal errors:\n  line 3: key \"a\" already set
 * in map".
 */
int yaml_to_json(str text, struct buf *json, struct buf *duplicates, struct err *err);

/*
 * A stream of documents, separated by lines that begin with "---". Documents without content are skipped. Lines in
 * errors count from the beginning of the document, as kubectl's do.
 */
struct yaml_stream;

/* Borrows the text. */
struct yaml_stream *yaml_open(str text);
/* 1: the next document was appended as by yaml_to_json; 0: the end; < 0: error. */
int yaml_next(struct yaml_stream *s, struct buf *json, struct err *err);
/* Line (from 1) where the document that yaml_next gave last (or failed on) begins. */
unsigned yaml_line(const struct yaml_stream *s);
void yaml_close(struct yaml_stream *s);
void yaml_closep(struct yaml_stream **s);

/* Appends v as block YAML with sorted keys, as kubectl -o yaml does; ends with a newline. type NULL: v is free. */
int yaml_encode(struct buf *b, struct val v, const struct type *type, struct err *err);

#endif
