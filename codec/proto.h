/*
 * Protobuf, directed by the schema: Kubernetes' gogo flavour (every non-pointer scalar is written, maps are sorted) and, for types
 * with TYPE_PROTO3, the plain messages of etcd and CRI. Byte-identical to Kubernetes in both directions.
 */
#ifndef C8S_CODEC_PROTO_H
#define C8S_CODEC_PROTO_H

#include "base/buf.h"
#include "codec/schema.h"

/* Decodes one message. Strings are borrowed from the bytes. Unknown fields are skipped; malformed input is -ERR_BAD_REQUEST. */
int proto_decode(struct arena *a, str bytes, const struct type *type, struct val *ret, struct err *err);
/* Appends the message. */
int proto_encode(struct buf *b, struct val v, const struct type *type, struct err *err);

/* True for bytes that start with Kubernetes' magic "k8s\0". */
bool proto_is_envelope(str bytes);
/*
 * An object in the envelope of storage and of application/vnd.kubernetes.protobuf: "k8s\0" runtime.Unknown. The tree
 * has apiVersion and kind. -ERR_BAD_REQUEST for a kind that the schema does not have.
 */
int proto_decode_object(struct arena *a, str bytes, struct val *ret, const struct type **ret_type, struct err *err);
int proto_encode_object(struct buf *b, struct val v, const struct type *type, struct err *err);

#endif
