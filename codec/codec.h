/*
 * codec/: values and their outer forms. val.h is the tree that everything works on, schema.h the tables of all API types, the others
 * turn trees into JSON, YAML and protobuf and back, and handle the scalar types that Kubernetes has of its own.
 */
#ifndef C8S_CODEC_CODEC_H
#define C8S_CODEC_CODEC_H

#include "codec/json.h"
#include "codec/proto.h"
#include "codec/quantity.h"
#include "codec/schema.h"
#include "codec/time.h"
#include "codec/val.h"
#include "codec/yaml.h"

/*
 * The typed condition of a tree (see val.h): members in the schema's order, unknown members, nulls and indistinguishable zeros dropped,
 * maps sorted, quantities, times and durations canonical. For trees that were put together or patched as free ones.
 * -ERR_BAD_REQUEST with Go's wording when a value does not fit its field; unknown fields go to strict when it is given.
 */
int val_canonical(struct arena *a, struct val v, const struct type *type, struct strict_errors *strict, struct val *ret, struct err *err);
/* The same for a tree that came from a typed one by edits: what is still the same as in base is taken as it is. */
int val_canonical_edit(struct arena *a, struct val v, struct val base, const struct type *type, struct val *ret, struct err *err);

#endif
