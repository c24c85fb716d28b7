/* labels: labels and annotations by keys that are no atoms. Pure. */
#ifndef C8S_CONTROLLERS_LABELS_H
#define C8S_CONTROLLERS_LABELS_H

#include "codec/atoms.h"
#include "codec/val.h"

#define TRIGGER_TIME_ANNOTATION "endpoints.kubernetes.io/last-change-trigger-time"
#define HEADLESS_LABEL "service.kubernetes.io/headless"
#define SLICE_MANAGED_BY "endpointslice.kubernetes.io/managed-by"
#define SLICE_SERVICE_NAME "kubernetes.io/service-name"

static inline str label_of(struct val object, str key) { return val_as_str(val_find(val_get(object, metadata, labels), key)); }
static inline bool label_has(struct val object, str key) { return val_exists(val_find(val_get(object, metadata, labels), key)); }
static inline str annotation_of(struct val object, str key) { return val_as_str(val_find(val_get(object, metadata, annotations), key)); }
static inline bool annotation_has(struct val object, str key)
{
	return val_exists(val_find(val_get(object, metadata, annotations), key));
}

/* The map with that entry; VAL_NONE as the value: without it. */
static inline struct val labels_put(struct arena *a, struct val map, str key, struct val value)
{
	return val_put(a, map, atom_make(a, key), value);
}

/* The object with that annotation; VAL_NONE: without it, and without the map when that was the last one. */
static inline struct val annotation_put(struct arena *a, struct val object, str key, struct val value)
{
	struct val map = val_get(object, metadata, annotations);

	if (!val_exists(value) && !val_exists(val_find(map, key)))
		return object;
	map = labels_put(a, map, key, value);
	return val_with(a, object, val_len(map) ? map : VAL_EMPTY, metadata, annotations);
}

#endif
