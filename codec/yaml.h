/*
 * YAML as Kubernetes reads it (YAML 1.1 scalars, converted to JSON before decoding) and as kubectl prints it.
 */
#ifndef C8S_CODEC_YAML_H
#define C8S_CODEC_YAML_H

#include "codec/json.h"

/*
 * A stream of documents ("---"). Empty documents are skipped. yaml_next appends the next one as compact JSON, ready for
 * json_decode. Aliases are expanded up to a limit; errors name the line.
 */
struct yaml_stream;

struct yaml_stream *yaml_open(str text);
/* 1: a document was appended; 0: the end; < 0: error. */
int yaml_next(struct yaml_stream *s, struct buf *json, struct err *err);
/* Line (from 1) where the document that yaml_next gave last begins. */
unsigned yaml_line(const struct yaml_stream *s);
void yaml_close(struct yaml_stream *s);
void yaml_closep(struct yaml_stream **s);

/* Appends v as block YAML with sorted keys, as kubectl -o yaml does; ends with a newline. */
int yaml_encode(struct buf *b, struct val v, const struct type *type, struct err *err);

#endif
