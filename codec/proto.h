/*
 * Protobuf, directed by the schema: Kubernetes' gogo flavour (every non-pointer scalar is written, maps are sorted) and, for
 * types with TYPE_PROTO3, the plain messages of etcd and CRI. Byte-identical to Kubernetes in both directions. No recursion.
 */
#ifndef C8S_CODEC_PROTO_H
#define C8S_CODEC_PROTO_H

#include "base/buf.h"
#include "codec/schema.h"

/*
 * Decodes one message into a typed tree. Strings are borrowed from the bytes, which must live as long as the tree. Unknown fields
 * are skipped, what occurs twice is merged as Kubernetes does. -ERR_BAD_REQUEST with its messages for malformed input. Memory and
 * time are linear in the input; messages may be nested up to VAL_MAX_DEPTH. -ERR_TOO_LARGE beyond 2 GiB, protobuf's own limit, so that
 * even the base64 of all of it has a length that a val can hold.
 */
int proto_decode(struct arena *a, str bytes, const struct type *type, struct val *ret, struct err *err);
/*
 * Appends the message; members that the schema does not know are left out. -ERR_INTERNAL when a value does not fit its field,
 * -ERR_TOO_LARGE when the buffer's maximum is reached.
 */
int proto_encode(struct buf *b, struct val v, const struct type *type, struct err *err);

/* True for bytes that start with Kubernetes' magic "k8s\0". */
bool proto_is_envelope(str bytes);
/*
 * An object in the envelope of storage and of application/vnd.kubernetes.protobuf: "k8s\0" runtime.Unknown. The tree has
 * apiVersion and kind. -ERR_BAD_REQUEST for a kind that the schema does not have.
 */
int proto_decode_object(struct arena *a, str bytes, struct val *ret, const struct type **ret_type, struct err *err);
/* The same for a caller who knows the type (options, watch events): what the envelope says about it does not matter. */
int proto_decode_object_as(struct arena *a, str bytes, const struct type *type, struct val *ret, struct err *err);
/* apiVersion and kind of the envelope are those of the tree or else of the type; a type that is no kind has none. */
int proto_encode_object(struct buf *b, struct val v, const struct type *type, struct err *err);

#endif
