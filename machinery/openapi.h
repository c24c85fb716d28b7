/*
 * OpenAPI documents of the built-in API, made from the schema: version 3 per group version, version 2 for all.
 * The results are free trees for json_encode. They are large (several MiB for version 2): make them once and keep the bytes.
 */
#ifndef C8S_MACHINERY_OPENAPI_H
#define C8S_MACHINERY_OPENAPI_H

#include "codec/schema.h"

/* Which resources are in the documents; NULL: those that are served by default. */
typedef bool (*openapi_served)(const struct resource *r, void *arg);

/* The document of one group version ("", "v1"; "apps", "v1"); VAL_NONE when nothing of it is served. */
struct val openapi_v3(struct arena *a, str group, str version, openapi_served served, void *arg);
/*
 * The document of one path outside of group versions: "api", "apis", "apis/GROUP", "version",
 * ".well-known/openid-configuration", "openid/v1/jwks"; VAL_NONE for another.
 */
struct val openapi_v3_root(struct arena *a, str name);
struct val openapi_v2(struct arena *a, openapi_served served, void *arg);

/* Name of a type's schema: io.k8s.api.core.v1.Pod. */
str openapi_name(struct arena *a, const struct type *type);

#endif
