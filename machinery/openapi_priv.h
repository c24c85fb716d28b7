/* What openapi.c (schemas, documents) and openapi_paths.c (operations) share. */
#ifndef C8S_MACHINERY_OPENAPI_PRIV_H
#define C8S_MACHINERY_OPENAPI_PRIV_H

#include "machinery/openapi.h"

enum { OPENAPI_TYPES_MAX = 4096, OPENAPI_SCALARS = 32 };

/* One document in the making. */
struct openapi {
	struct arena *arena;
	bool v3;
	str group, version;          /* of a version 3 document */
	openapi_served served;
	void *arg;
	const struct type **types;   /* whose schemas the document needs, each once; grows while they are written */
	size_t n_types;
	bool scalars[OPENAPI_SCALARS]; /* named scalar schemas that it needs, by index into the table in openapi.c */
};

/* {"$ref": ...} to the schema of a type, which becomes part of the document. */
struct val openapi_ref(struct openapi *o, const struct type *type);
/* Type and format of a field without its description, as for a query parameter. */
struct val openapi_plain(struct openapi *o, const struct field *f);
/* All paths of one resource and its subresources. */
void openapi_paths(struct openapi *o, const struct resource *r, struct val_builder *paths);
/* The path that lists a group version's resources. */
void openapi_discovery_path(struct openapi *o, str group, str version, struct val_builder *paths);
/* A path outside of group versions by its name: "api", "apis/apps", "version"; false when there is none of that name. */
bool openapi_root_path(struct openapi *o, str name, struct val_builder *paths);
/* All of them but those of groups. */
void openapi_root_paths(struct openapi *o, struct val_builder *paths);

#endif
