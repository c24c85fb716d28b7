/* Between the files of the warnings: one per group of kinds, and what they share (warnings.c). */
#ifndef C8S_APISERVER_WARNINGS_PRIV_H
#define C8S_APISERVER_WARNINGS_PRIV_H

#include "apiserver/warnings.h"
#include "codec/atoms.h"

/*
 * A kind that has warnings: for a new object, for an update of the object itself, and for one of its status. They look at
 * q->object and q->old. NULL: none.
 */
struct warned_kind {
	str group, kind;
	void (*on_create)(struct request *q);
	void (*on_update)(struct request *q);
	void (*on_status)(struct request *q);
};

struct warned_set {
	const struct warned_kind *all;
	size_t n;
};

extern const struct warned_set warnings_extensions, warnings_network, warnings_storage, warnings_workloads;

/* ---- for all of them ---- */

/* "path: text" */
void warn_at(struct request *q, const struct field_path *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
void warnf(struct request *q, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* An address or a block that is valid in an old field, but not how it should be written. */
void warn_ip(struct request *q, const struct field_path *at, str value);
void warn_cidr(struct request *q, const struct field_path *at, str value);
/* A resource of bytes in a map of quantities that is no whole number. */
void warn_fraction(struct request *q, const struct field_path *at, struct val amounts, str resource);
/* The name is no DNS label; used_in says what for it is used. */
void warn_name(struct request *q, const char *used_in);
/* In double quotes as Go prints it, in the request's arena. */
str warn_quoted(const struct request *q, str text);
/* Why a label of nodes should not be used any more; n == 0: it may. */
str warn_node_label(str key);
/* Expressions of a NodeSelectorTerm; values: whether its values have to be labels' values. */
void warn_node_term(struct request *q, const struct field_path *at, struct val term, bool values);
/* The metadata.annotations of that name exists in meta. */
bool warn_has_annotation(struct val meta, str name);

/* ---- parts that several kinds have ---- */

/* A pod or (at is not NULL) a template of pods: an object with metadata and spec. */
void warn_pod(struct request *q, const struct field_path *at, struct val pod);
/* Keys of volumes that would be written to the same place. */
void warn_volume_paths(struct request *q, struct val volumes);
/* A PersistentVolumeClaimSpec. */
void warn_claim_spec(struct request *q, const struct field_path *at, struct val spec);
/* The certificate and the key of a TLS secret: what Go's TLS says about them. */
void warn_key_pair(struct request *q, str certificate, str key);

#endif
