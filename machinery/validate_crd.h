/* What the files that check CustomResourceDefinitions share. */
#ifndef C8S_MACHINERY_VALIDATE_CRD_H
#define C8S_MACHINERY_VALIDATE_CRD_H

#include "machinery/validate_groups.h"

/* ---- schemas: validate_crd_schema.c ---- */

/* structural: the schema must be it. The others: what an update tolerates because the definition had it before. */
struct schema_options {
	bool structural, any_type, divisible_sets, loose_keys;
};

/* CustomResourceValidation, the object around openAPIV3Schema. has_status: of a version whose status is a subresource. */
void check_crd_schema(struct field_errors *e, const struct field_path *at, struct val validation, bool has_status,
		      const struct schema_options *opt);

/* Whether a schema, or one within it, passes the test; the tests that are asked. */
typedef bool schema_test(struct val schema);
bool schema_has(struct val schema, schema_test *test);
schema_test schema_has_default, schema_has_extension, schema_has_bad_type, schema_has_divisible_set;
bool schema_is_structural(struct arena *a, struct val schema);
/* Keys of lists of type map, items of sets: not nullable, and given or with a default. */
void check_list_keys(struct field_errors *e, const struct field_path *at, struct val schema);

/* ---- paths and patterns in schemas: validate_crd_path.c ---- */

/* Where a path such as .spec.ports['http'] leads. */
struct schema_path {
	str text;           /* in the form of error messages, so that equal paths have equal texts */
	str root;           /* its first step */
	struct val schema;  /* of the value there */
};

/* What is wrong with the path, or nothing. arrays: ['name'] is allowed. */
str schema_path_find(struct arena *a, str path, bool arrays, struct val schema, struct schema_path *ret);
/* What Go's regexp says about a pattern that it cannot compile ("missing closing ]: `[`"), or nothing. */
str pattern_error(struct arena *a, str pattern);

#endif
