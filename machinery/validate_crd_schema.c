/*
 * The schemas in CustomResourceDefinitions: what OpenAPI v3 allows there, and what makes a schema structural. Structural
 * means that types, properties and items are said outside of allOf, anyOf, oneOf and not, so that unknown fields can be
 * pruned without evaluating logic.
 *
 * Expressions of x-kubernetes-validations are not looked at here, and neither are the values of defaults.
 *
 * Schemas are trees from outside. All walks here count their depth and stop at SCHEMA_DEPTH_MAX; check_schema refuses
 * what is deeper, and the other walks are made only over what it has accepted.
 */
#include <stdlib.h>

#include "codec/atoms.h"
#include "machinery/validate_crd.h"

enum { SCHEMA_DEPTH_MAX = VAL_RECURSION_MAX / 2 };

static bool is_kind(struct val schema, const char *type) { return str_eq(val_str(schema, type), str_of(type)); }

/* The one schema of all items; VAL_NONE for a list of schemas. */
static struct val items_of(struct val schema)
{
	struct val items = val_get(schema, items);
	return val_is(items, VAL_OBJECT) ? items : VAL_EMPTY;
}

/* The schema of additional properties; VAL_NONE if there is only true or false. */
static struct val extra_of(struct val schema)
{
	struct val extra = val_get(schema, additionalProperties);
	return val_is(extra, VAL_OBJECT) ? extra : VAL_EMPTY;
}

/* ---- searching ---- */

static bool any_has(struct val schemas, schema_test *test, unsigned depth);

static bool has_below(struct val schema, schema_test *test, unsigned depth)
{
	static const uint16_t single[] = { A_items, A_not, A_additionalProperties, A_additionalItems };
	static const uint16_t many[] = { A_items, A_allOf, A_anyOf, A_oneOf, A_properties, A_patternProperties,
					 A_definitions, A_dependencies };

	if (!val_is(schema, VAL_OBJECT) || depth == SCHEMA_DEPTH_MAX)
		return false;
	if (test(schema))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(single); i++)
		if (has_below(val_member(schema, single[i]), test, depth + 1))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		if ((many[i] != A_items || val_is(val_get(schema, items), VAL_LIST)) &&
		    any_has(val_member(schema, many[i]), test, depth + 1))
			return true;
	return false;
}

static bool any_has(struct val schemas, schema_test *test, unsigned depth)
{
	VAL_EACH(schema, schemas)
		if (has_below(*schema, test, depth))
			return true;
	VAL_EACH_MEMBER(m, schemas)
		if (has_below(m->val, test, depth))
			return true;
	return false;
}

bool schema_has(struct val schema, schema_test *test) { return has_below(schema, test, 0); }

static const str openapi_types[] = { STR_INIT("array"), STR_INIT("boolean"), STR_INIT("integer"), STR_INIT("number"),
				     STR_INIT("object"), STR_INIT("string"), { NULL, 0 } };

bool schema_has_default(struct val schema) { return val_has(schema, default); }

bool schema_has_extension(struct val schema)
{
	return val_bool(schema, x_kubernetes_embedded_resource) || val_has(schema, x_kubernetes_preserve_unknown_fields) ||
	       val_bool(schema, x_kubernetes_int_or_string) || val_len(val_get(schema, x_kubernetes_list_map_keys)) ||
	       val_has(schema, x_kubernetes_list_type) || val_len(val_get(schema, x_kubernetes_validations));
}

bool schema_has_bad_type(struct val schema)
{
	return val_str(schema, type).n && !str_in(val_str(schema, type), openapi_types);
}

/* Items of a set must be compared as a whole. */
bool schema_has_divisible_set(struct val schema)
{
	struct val items = items_of(schema);
	if (!str_eq(val_str(schema, x_kubernetes_list_type), STR("set")))
		return false;
	if (is_kind(items, "array"))
		return val_has(items, x_kubernetes_list_type) &&
		       !str_eq(val_str(items, x_kubernetes_list_type), STR("atomic"));
	return is_kind(items, "object") && !str_eq(val_str(items, x_kubernetes_map_type), STR("atomic"));
}

/* ---- structure ---- */

static str unsupported_below(struct val schema, unsigned depth);

static str unsupported_in(struct val schemas, unsigned depth)
{
	str wrong = STR_NONE;
	VAL_EACH(schema, schemas)
		if (!wrong.n)
			wrong = unsupported_below(*schema, depth);
	VAL_EACH_MEMBER(m, schemas)
		if (!wrong.n)
			wrong = unsupported_below(m->val, depth);
	return wrong;
}

/* The first thing that a structural schema cannot express, or nothing. */
static str unsupported_below(struct val schema, unsigned depth)
{
	static const struct {
		uint16_t name;
		str text;
	} fields[] = {
		{ A_id, STR_INIT("OpenAPIV3Schema 'id' is not supported") },
		{ A__schema, STR_INIT("OpenAPIV3Schema 'schema' is not supported") },
		{ A__ref, STR_INIT("OpenAPIV3Schema '$ref' is not supported") },
		{ A_patternProperties, STR_INIT("OpenAPIV3Schema 'patternProperties' is not supported") },
		{ A_dependencies, STR_INIT("OpenAPIV3Schema 'dependencies' is not supported") },
		{ A_additionalItems, STR_INIT("OpenAPIV3Schema 'additionalItems' is not supported") },
		{ A_definitions, STR_INIT("OpenAPIV3Schema 'definitions' is not supported") },
	};
	static const uint16_t parts[] = { A_allOf, A_anyOf, A_oneOf, A_properties };
	struct val preserve = val_get(schema, x_kubernetes_preserve_unknown_fields);
	str wrong = STR_NONE;

	if (!val_is(schema, VAL_OBJECT) || depth == SCHEMA_DEPTH_MAX)
		return STR_NONE;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (!val_is_zero(val_member(schema, fields[i].name)) ||
		    (fields[i].name == A_additionalItems && val_has(schema, additionalItems)))
			return fields[i].text;
	if (val_exists(preserve) && !val_as_bool(preserve))
		return STR("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined");
	if (val_is(val_get(schema, items), VAL_LIST) && val_len(val_get(schema, items)))
		return STR("OpenAPIV3Schema 'items' must be a schema, but is an array");
	wrong = unsupported_below(val_get(schema, not), depth + 1);
	wrong = wrong.n ? wrong : unsupported_below(items_of(schema), depth + 1);
	wrong = wrong.n ? wrong : unsupported_below(extra_of(schema), depth + 1);
	for (size_t i = 0; i < ARRAY_LEN(parts) && !wrong.n; i++)
		wrong = unsupported_in(val_member(schema, parts[i]), depth + 1);
	return wrong;
}

enum level { LEVEL_ROOT, LEVEL_ITEM, LEVEL_FIELD };

/* anyOf: [{type: integer}, {type: string}] is how an int-or-string may be said. */
static bool is_int_or_string(struct val any_of)
{
	struct val first = val_at(any_of, 0), second = val_at(any_of, 1);
	return val_len(any_of) == 2 && val_len(first) == 1 && val_len(second) == 1 && is_kind(first, "integer") &&
	       is_kind(second, "string");
}

static void check_nested(struct field_errors *e, const struct field_path *at, struct val schema, bool skip_any_of,
			 unsigned depth);

/* Logic: what stands in allOf, anyOf, oneOf and not may only restrict values. */
static void check_logic(struct field_errors *e, const struct field_path *at, struct val schema, bool skip_any_of,
			bool skip_in_all_of, unsigned depth)
{
	str pattern = val_str(schema, pattern);
	size_t i = 0;

	if (!skip_any_of)
		VAL_EACH(part, val_get(schema, anyOf))
			check_nested(e, FIELD_INDEX(FIELD(at, "anyOf"), i++), *part, false, depth + 1);
	i = 0;
	VAL_EACH(part, val_get(schema, allOf)) {
		check_nested(e, FIELD_INDEX(FIELD(at, "allOf"), i), *part, skip_in_all_of && i == 0, depth + 1);
		i++;
	}
	i = 0;
	VAL_EACH(part, val_get(schema, oneOf))
		check_nested(e, FIELD_INDEX(FIELD(at, "oneOf"), i++), *part, false, depth + 1);
	check_nested(e, FIELD(at, "not"), val_get(schema, not), false, depth + 1);
	str wrong = pattern_error(e->arena, pattern);
	if (wrong.n)
		field_invalid(e, FIELD(at, "pattern"), VAL_STR(pattern),
			      "must be a valid regular expression, but isn't: error parsing regexp: " STR_FMT,
			      STR_ARG(wrong));
}

/* Members that must not be used inside of logic. */
static void check_forbidden(struct field_errors *e, const struct field_path *at, struct val schema)
{
	static const struct {
		uint16_t name;
		const char *must; /* be empty, be false, be undefined */
	} fields[] = {
		{ A_type, "empty" }, { A_default, "undefined" }, { A_title, "empty" }, { A_description, "empty" },
		{ A_nullable, "false" },
		{ A_x_kubernetes_preserve_unknown_fields, "false" }, { A_x_kubernetes_embedded_resource, "false" },
		{ A_x_kubernetes_int_or_string, "false" }, { A_x_kubernetes_list_map_keys, "empty" },
		{ A_x_kubernetes_list_type, "undefined" }, { A_x_kubernetes_map_type, "undefined" },
		{ A_x_kubernetes_validations, "empty" },
	};
	struct val extra = val_get(schema, additionalProperties);

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		struct val v = val_member(schema, fields[i].name);
		if (!val_is_zero(v) || (val_exists(v) && str_eq(str_of(fields[i].must), STR("undefined"))))
			field_forbidden(e, FIELD_STR(at, atom_str(fields[i].name)), "must be %s to be structural",
					fields[i].must);
	}
	if (val_is(extra, VAL_OBJECT) || val_as_bool(extra))
		field_forbidden(e, FIELD(at, "additionalProperties"), "must be undefined to be structural");
	if (val_has(schema, properties, metadata))
		field_forbidden(e, FIELD_KEY(FIELD(at, "properties"), STR("metadata")),
				"must not be specified in a nested context");
}

static void check_nested(struct field_errors *e, const struct field_path *at, struct val schema, bool skip_any_of,
			 unsigned depth)
{
	if (!val_is(schema, VAL_OBJECT) || depth == SCHEMA_DEPTH_MAX)
		return;
	check_logic(e, at, schema, skip_any_of, false, depth);
	check_nested(e, FIELD(at, "items"), items_of(schema), false, depth + 1);
	VAL_EACH_MEMBER(m, val_get(schema, properties))
		check_nested(e, FIELD_KEY(FIELD(at, "properties"), atom_str(m->key)), m->val, false, depth + 1);
	check_forbidden(e, at, schema);
}

/* Metadata is known; a schema may only restrict the two names. */
static void check_metadata(struct field_errors *e, const struct field_path *at, struct val schema, bool of_resource,
			   enum level level)
{
	struct val properties = val_get(schema, properties);
	uint32_t names = (uint32_t)val_has(properties, name) + (uint32_t)val_has(properties, generateName);
	bool others = val_len(properties) != names;

	if (of_resource && !is_kind(schema, "object"))
		field_invalid(e, FIELD(at, "type"), shown_str(val_get(schema, type)), "must be object");
	VAL_EACH_MEMBER(m, schema)
		others |= m->key != A_properties && m->key != A_type && m->key != A_default && !val_is_zero(m->val);
	if (level == LEVEL_ROOT && others)
		field_forbidden(e, at,
				"must not specify anything other than name and generateName, but metadata is implicitly specified");
}

static void check_meta_properties(struct field_errors *e, const struct field_path *at, struct val schema, enum level level)
{
	static const str strings[] = { STR_INIT("kind"), STR_INIT("apiVersion") };
	bool of_resource = level == LEVEL_ROOT || val_bool(schema, x_kubernetes_embedded_resource);
	struct val properties = val_get(schema, properties);

	for (size_t i = 0; i < ARRAY_LEN(strings) && of_resource; i++) {
		struct val property = val_find(properties, strings[i]);
		if (val_exists(property) && !is_kind(property, "string"))
			field_invalid(e, FIELD(FIELD_KEY(FIELD(at, "properties"), strings[i]), "type"),
				      shown_str(val_get(property, type)), "must be string");
	}
	if (val_has(properties, metadata))
		check_metadata(e, FIELD_KEY(FIELD(at, "properties"), STR("metadata")), val_get(properties, metadata),
			       of_resource, level);
}

static void check_type(struct field_errors *e, const struct field_path *at, struct val schema, enum level level)
{
	static const char *const where[] = { "at the root", "for specified array items", "for specified object fields" };
	str type = val_str(schema, type);
	bool embedded = val_bool(schema, x_kubernetes_embedded_resource);

	if (embedded && type.n == 0)
		field_required(e, FIELD(at, "type"), "must be object if x-kubernetes-embedded-resource is true");
	else if (embedded && !is_kind(schema, "object"))
		field_invalid(e, FIELD(at, "type"), VAL_STR(type),
			      "must be object if x-kubernetes-embedded-resource is true");
	else if (type.n == 0 && !val_bool(schema, x_kubernetes_int_or_string) &&
		 !val_bool(schema, x_kubernetes_preserve_unknown_fields))
		field_required(e, FIELD(at, "type"), "must not be empty %s", where[level]);
	if (level == LEVEL_ROOT && type.n && !is_kind(schema, "object"))
		field_invalid(e, FIELD(at, "type"), VAL_STR(type), "must be object at the root");
}

static void check_extensions(struct field_errors *e, const struct field_path *at, struct val schema)
{
	static const char text[] = "must be false if x-kubernetes-int-or-string is true";
	bool embedded = val_bool(schema, x_kubernetes_embedded_resource);
	bool preserves = val_bool(schema, x_kubernetes_preserve_unknown_fields);

	if (val_bool(schema, x_kubernetes_int_or_string) && preserves)
		field_invalid(e, FIELD(at, "x-kubernetes-preserve-unknown-fields"), val_of_bool(true), text);
	if (val_bool(schema, x_kubernetes_int_or_string) && embedded)
		field_invalid(e, FIELD(at, "x-kubernetes-embedded-resource"), val_of_bool(true), text);
	if (embedded && val_has(schema, additionalProperties))
		field_forbidden(e, FIELD(at, "additionalProperties"),
				"must not be used if x-kubernetes-embedded-resource is set");
	if (embedded && !preserves && val_len(val_get(schema, properties)) == 0)
		field_required(e, FIELD(at, "properties"),
			       "must not be empty if x-kubernetes-embedded-resource is true without"
			       " x-kubernetes-preserve-unknown-fields");
}

static void check_invariants(struct field_errors *e, const struct field_path *at, struct val schema, enum level level,
			     unsigned depth)
{
	if (!val_is(schema, VAL_OBJECT) || depth == SCHEMA_DEPTH_MAX)
		return;
	if (is_kind(schema, "array") && !val_has(schema, items))
		field_required(e, FIELD(at, "items"), "must be specified");
	check_invariants(e, FIELD(at, "items"), items_of(schema), LEVEL_ITEM, depth + 1);
	VAL_EACH_MEMBER(m, val_get(schema, properties))
		check_invariants(e, FIELD_KEY(FIELD(at, "properties"), atom_str(m->key)), m->val, LEVEL_FIELD, depth + 1);
	if (level == LEVEL_ROOT && val_has(schema, additionalProperties))
		field_forbidden(e, FIELD(at, "additionalProperties"), "must not be used at the root");
	check_invariants(e, FIELD(at, "additionalProperties"), extra_of(schema), LEVEL_FIELD, depth + 1);
	check_extensions(e, at, schema);
	check_logic(e, at, schema, is_int_or_string(val_get(schema, anyOf)),
		    is_int_or_string(val_get(val_at(val_get(schema, allOf), 0), anyOf)), depth);
	check_type(e, at, schema, level);
	check_meta_properties(e, at, schema, level);
}

static void check_complete(struct field_errors *e, const struct field_path *at, struct val schema,
			   const struct field_path *at_logic, struct val logic, unsigned depth);

/* Everything that logic speaks of must be in the schema around it. */
static void check_logic_complete(struct field_errors *e, const struct field_path *at, struct val schema,
				 const struct field_path *at_logic, struct val logic, unsigned depth)
{
	static const uint16_t lists[] = { A_allOf, A_anyOf, A_oneOf };

	check_complete(e, at, schema, FIELD(at_logic, "not"), val_get(logic, not), depth + 1);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		size_t j = 0;
		VAL_EACH(part, val_member(logic, lists[i]))
			check_complete(e, at, schema, FIELD_INDEX(FIELD_STR(at_logic, atom_str(lists[i])), j++), *part,
				       depth + 1);
	}
}

static void check_complete(struct field_errors *e, const struct field_path *at, struct val schema,
			   const struct field_path *at_logic, struct val logic, unsigned depth)
{
	if (!val_is(logic, VAL_OBJECT) || depth == SCHEMA_DEPTH_MAX)
		return;
	if (!val_exists(schema)) {
		field_required(e, at, "because it is defined in " STR_FMT, STR_ARG(field_path_text(e->arena, at_logic)));
		return;
	}
	check_logic_complete(e, at, schema, at_logic, logic, depth);
	check_complete(e, FIELD(at, "items"), items_of(schema), FIELD(at_logic, "items"), items_of(logic), depth + 1);
	VAL_EACH_MEMBER(m, val_get(logic, properties)) {
		str name = atom_str(m->key);
		check_complete(e, FIELD_KEY(FIELD(at, "properties"), name), val_find(val_get(schema, properties), name),
			       FIELD_KEY(FIELD(at_logic, "properties"), name), m->val, depth + 1);
	}
}

static int by_text(const void *a, const void *b)
{
	const struct field_error *x = a, *y = b;
	int r = str_cmp(x->field, y->field);
	return r ? r : str_cmp(x->body, y->body);
}

/* Adds what keeps the schema from being structural, sorted. */
static void check_structural(struct field_errors *e, const struct field_path *at, struct val schema)
{
	size_t before = e->n;
	check_invariants(e, at, schema, LEVEL_ROOT, 0);
	check_logic_complete(e, at, schema, at, schema, 0);
	if (e->n > before)
		qsort(e->list + before, e->n - before, sizeof(*e->list), by_text);
}

bool schema_is_structural(struct arena *a, struct val schema)
{
	struct field_errors errors;
	field_errors_init(&errors, a);
	if (val_exists(schema))
		check_structural(&errors, NULL, schema);
	return errors.n == 0 && unsupported_below(schema, 0).n == 0;
}

/* ---- OpenAPI ---- */

/* How a part of a schema is looked at. */
struct place {
	str no_defaults; /* why not; empty: they are allowed */
	bool in_meta;    /* within metadata, apiVersion or kind of a resource */
	bool is_supported; /* nothing in the whole schema is unsupported, so that paths can be followed */
};

static void check_supported(struct field_errors *e, const struct field_path *at, struct val schema, struct place place,
			    const struct schema_options *opt)
{
	static const struct {
		uint16_t name;
		bool even_empty;
	} unsupported[] = { { A_id, false }, { A_additionalItems, true }, { A_patternProperties, false },
			    { A_definitions, false }, { A_dependencies, true }, { A__ref, true } };

	if (val_str(schema, type).n && !opt->any_type)
		check_one_of(e, FIELD(at, "type"), val_str(schema, type), openapi_types);
	if (val_has(schema, default) && place.no_defaults.n)
		field_forbidden(e, FIELD(at, "default"), "must not be set " STR_FMT, STR_ARG(place.no_defaults));
	for (size_t i = 0; i < ARRAY_LEN(unsupported); i++) {
		struct val v = val_member(schema, unsupported[i].name);
		str name = atom_str(unsupported[i].name);
		if (!val_is_zero(v) || (unsupported[i].even_empty && val_exists(v)))
			field_forbidden(e, FIELD_STR(at, name), STR_FMT " is not supported", STR_ARG(name));
	}
	if (is_kind(schema, "null"))
		field_forbidden(e, FIELD(at, "type"), "type cannot be set to null, use nullable as an alternative");
	if (val_is(val_get(schema, items), VAL_LIST) && val_len(val_get(schema, items)))
		field_forbidden(e, FIELD(at, "items"), "items must be a schema object and not an array");
	if (place.in_meta && val_bool(schema, x_kubernetes_embedded_resource))
		field_forbidden(e, FIELD(at, "x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
}

static void check_list_map(struct field_errors *e, const struct field_path *at, struct val schema)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	const struct field_path *at_keys = FIELD(at, "x-kubernetes-list-map-keys"), *at_items = FIELD(at, "items");
	struct val keys = val_get(schema, x_kubernetes_list_map_keys), items = val_get(schema, items);

	if (val_len(keys) == 0)
		field_required(e, at_keys, "must not be empty if x-kubernetes-list-type is map");
	if (!val_exists(items))
		field_required(e, at_items, "must have a schema if x-kubernetes-list-type is map");
	else if (!val_is(items, VAL_OBJECT))
		field_invalid(e, at_items, items, "must only have a single schema if x-kubernetes-list-type is map");
	else if (!is_kind(items, "object"))
		field_invalid(e, FIELD(at_items, "type"), shown_str(val_get(items, type)),
			      "must be object if parent array's x-kubernetes-list-type is map");
	if (!is_kind(items, "object"))
		return;
	VAL_EACH(key, keys) {
		struct val property = val_find(val_get(items, properties), val_as_str(*key));
		if (!val_exists(property))
			field_invalid(e, at_keys, keys, "entries must all be names of item properties");
		else if (is_kind(property, "array") || is_kind(property, "object"))
			field_invalid(e, FIELD(FIELD_KEY(FIELD(at_items, "properties"), val_as_str(*key)), "type"),
				      VAL_LIT("object"),
				      "must be a scalar type if parent array's x-kubernetes-list-type is map");
		if (!set_add(&seen, val_as_str(*key)))
			field_invalid(e, at_keys, keys, "must not contain duplicate entries");
	}
}

void check_list_keys(struct field_errors *e, const struct field_path *at, struct val schema)
{
	str type = val_str(schema, x_kubernetes_list_type);
	const struct field_path *at_items = FIELD(at, "items");
	CLEANUP(map_done) struct map required = MAP_INIT;
	struct val items = items_of(schema);

	if (!val_exists(items) || (!str_eq(type, STR("set")) && !str_eq(type, STR("map"))))
		return;
	if (val_bool(items, nullable))
		field_forbidden(e, FIELD(at_items, "nullable"),
				"cannot be nullable when x-kubernetes-list-type is " STR_FMT, STR_ARG(type));
	if (!str_eq(type, STR("map")))
		return;
	set_add_all(&required, val_get(items, required));
	VAL_EACH(key, val_get(schema, x_kubernetes_list_map_keys)) {
		const struct field_path *at_key = FIELD_KEY(FIELD(at_items, "properties"), val_as_str(*key));
		struct val property = val_find(val_get(items, properties), val_as_str(*key));
		if (!val_exists(property))
			continue;
		if (!set_has(&required, val_as_str(*key)) && !val_has(property, default))
			field_required(e, FIELD(at_key, "default"),
				       "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
		if (val_bool(property, nullable))
			field_forbidden(e, FIELD(at_key, "nullable"),
					"this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
	}
}

/* The type that a Kubernetes extension asks for. */
static void check_type_of(struct field_errors *e, const struct field_path *at, struct val schema, const char *type,
			  const char *extension)
{
	str given = val_str(schema, type);
	if (given.n == 0)
		field_required(e, FIELD(at, "type"), "must be %s if %s is specified", type, extension);
	else if (!is_kind(schema, type))
		field_invalid(e, FIELD(at, "type"), VAL_STR(given), "must be %s if %s is specified", type, extension);
}

static void check_list_type(struct field_errors *e, const struct field_path *at, struct val schema,
			    const struct schema_options *opt)
{
	static const str types[] = { STR_INIT("atomic"), STR_INIT("set"), STR_INIT("map"), { NULL, 0 } };
	struct val type = val_get(schema, x_kubernetes_list_type), items = items_of(schema);
	const struct field_path *at_type = FIELD(at, "x-kubernetes-list-type");
	str extension = is_kind(items, "array") ? STR("x-kubernetes-list-type") : STR("x-kubernetes-map-type");

	if (val_exists(type) && !is_kind(schema, "array"))
		check_type_of(e, at, schema, "array", "x-kubernetes-list-type");
	else if (!opt->divisible_sets && schema_has_divisible_set(schema))
		field_invalid(e, FIELD_STR(FIELD(at, "items"), extension), val_get(items, x_kubernetes_list_type),
			      "must be atomic as item of a list with x-kubernetes-list-type=set");
	if (val_exists(type))
		check_one_of(e, at_type, val_as_str(type), types);
	if (val_len(val_get(schema, x_kubernetes_list_map_keys))) {
		if (!val_exists(type))
			field_required(e, at_type, "must be map if x-kubernetes-list-map-keys is non-empty");
		else if (!str_eq(val_as_str(type), STR("map")))
			field_invalid(e, at_type, type, "must be map if x-kubernetes-list-map-keys is non-empty");
	}
	if (str_eq(val_as_str(type), STR("map")))
		check_list_map(e, at, schema);
	if (!opt->loose_keys)
		check_list_keys(e, at, schema);
}

static bool has_newline(str s) { return str_chr(s, '\n') >= 0 || str_chr(s, '\r') >= 0; }

static void check_validation_rule(struct field_errors *e, const struct field_path *at, struct val schema,
				  struct val rule, bool find_path)
{
	static const str reasons[] = { STR_INIT("FieldValueDuplicate"), STR_INIT("FieldValueForbidden"),
				       STR_INIT("FieldValueInvalid"), STR_INIT("FieldValueRequired"), { NULL, 0 } };
	str text = str_trim(val_str(rule, rule)), message = val_str(rule, message), trimmed = str_trim(message);
	str expression = val_str(rule, messageExpression), path = val_str(rule, fieldPath);

	if (text.n == 0)
		field_required(e, FIELD(at, "rule"), "rule is not specified");
	else if (message.n && trimmed.n == 0)
		field_invalid(e, FIELD(at, "message"), VAL_STR(message), "must be non-empty if specified");
	else if (has_newline(trimmed))
		field_invalid(e, FIELD(at, "message"), VAL_STR(message), "must not contain line breaks");
	else if (has_newline(text) && trimmed.n == 0)
		field_required(e, FIELD(at, "message"), "message must be specified if rule contains line breaks");
	if (expression.n && str_trim(expression).n == 0)
		field_required(e, FIELD(at, "messageExpression"), "messageExpression must be non-empty if specified");
	if (val_has(rule, reason))
		check_one_of(e, FIELD(at, "reason"), val_str(rule, reason), reasons);
	if (path.n && str_trim(path).n == 0)
		field_invalid(e, FIELD(at, "fieldPath"), VAL_STR(path), "must be non-empty if specified");
	if (has_newline(path))
		field_invalid(e, FIELD(at, "fieldPath"), VAL_STR(path), "must not contain line breaks");
	struct schema_path found;
	if (path.n && find_path && schema_path_find(e->arena, path, true, schema, &found).n)
		field_invalid(e, FIELD(at, "fieldPath"), VAL_STR(path), "must be a valid path");
}

static void check_part(struct field_errors *e, const struct field_path *at, struct val schema, struct place place,
		       unsigned depth, const struct schema_options *opt);

static void check_properties(struct field_errors *e, const struct field_path *at, struct val schema, struct place place,
			     unsigned depth, const struct schema_options *opt)
{
	static const str meta[] = { STR_INIT("metadata"), STR_INIT("kind"), STR_INIT("apiVersion"), { NULL, 0 } };
	bool root = depth == 0, resource = root || val_bool(schema, x_kubernetes_embedded_resource);

	VAL_EACH_MEMBER(m, val_get(schema, properties)) {
		str name = atom_str(m->key);
		struct place below = place;
		if (resource && str_in(name, meta)) {
			below.in_meta = true;
			if (root)
				below.no_defaults = arena_printf(e->arena, "in top-level " STR_FMT, STR_ARG(name));
		}
		check_part(e, FIELD_KEY(FIELD(at, "properties"), name), m->val, below, depth + 1, opt);
	}
}

static void check_parts(struct field_errors *e, const struct field_path *at, struct val schema, struct place place,
			unsigned depth, const struct schema_options *opt)
{
	static const uint16_t lists[] = { A_allOf, A_oneOf, A_anyOf };
	struct val items = val_get(schema, items);
	size_t i = 0;

	check_part(e, FIELD(at, "not"), val_get(schema, not), place, depth + 1, opt);
	for (size_t j = 0; j < ARRAY_LEN(lists); j++) {
		i = 0;
		VAL_EACH(part, val_member(schema, lists[j]))
			check_part(e, FIELD_INDEX(FIELD_STR(at, atom_str(lists[j])), i++), *part, place, depth + 1, opt);
	}
	VAL_EACH_MEMBER(m, val_get(schema, definitions))
		check_part(e, FIELD_KEY(FIELD(at, "definitions"), atom_str(m->key)), m->val, place, depth + 1, opt);
	check_part(e, FIELD(at, "items"), items, place, depth + 1, opt);
	i = 0;
	VAL_EACH(item, items)
		check_part(e, FIELD_INDEX(FIELD(at, "items"), i++), *item, place, depth + 1, opt);
	VAL_EACH_MEMBER(m, val_get(schema, dependencies))
		check_part(e, FIELD_KEY(FIELD(at, "dependencies"), atom_str(m->key)), m->val, place, depth + 1, opt);
}

static void check_part(struct field_errors *e, const struct field_path *at, struct val schema, struct place place,
		       unsigned depth, const struct schema_options *opt)
{
	static const str map_types[] = { STR_INIT("atomic"), STR_INIT("granular"), { NULL, 0 } };
	struct val extra = val_get(schema, additionalProperties);
	struct val preserve = val_get(schema, x_kubernetes_preserve_unknown_fields);
	struct place below = place;
	size_t i = 0;

	if (!val_is(schema, VAL_OBJECT))
		return;
	if (depth == SCHEMA_DEPTH_MAX) {
		field_invalid(e, at, FIELD_VALUE_OMITTED, "schema is nested too deeply");
		return;
	}
	check_supported(e, at, schema, place, opt);
	if (val_bool(schema, uniqueItems))
		field_forbidden(e, FIELD(at, "uniqueItems"),
				"uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
	if (val_exists(extra) && val_len(val_get(schema, properties)) && !(val_is(extra, VAL_BOOL) && extra.b))
		field_forbidden(e, FIELD(at, "additionalProperties"),
				"additionalProperties and properties are mutual exclusive");
	if (place.in_meta)
		below.no_defaults = STR("inside additionalProperties applying to object metadata");
	check_part(e, FIELD(at, "additionalProperties"), extra, below, depth + 1, opt);
	check_properties(e, at, schema, place, depth, opt);
	check_parts(e, at, schema, place, depth, opt);
	if (val_exists(preserve) && !val_as_bool(preserve))
		field_invalid(e, FIELD(at, "x-kubernetes-preserve-unknown-fields"), preserve, "must be true or undefined");
	if (val_has(schema, x_kubernetes_map_type)) {
		check_type_of(e, at, schema, "object", "x-kubernetes-map-type");
		check_one_of(e, FIELD(at, "x-kubernetes-map-type"), val_str(schema, x_kubernetes_map_type), map_types);
	}
	check_list_type(e, at, schema, opt);
	VAL_EACH(rule, val_get(schema, x_kubernetes_validations))
		check_validation_rule(e, FIELD_INDEX(FIELD(at, "x-kubernetes-validations"), i++), schema, *rule,
				      place.is_supported);
}

/* ---- the whole ---- */

/* A status that is written separately must be separable from the rest of the schema. */
static void check_root_for_status(struct field_errors *e, const struct field_path *at, struct val schema)
{
	static const uint16_t allowed[] = {
		A_description, A_type, A_format, A_title, A_maximum, A_exclusiveMaximum, A_minimum, A_exclusiveMinimum,
		A_maxLength, A_minLength, A_pattern, A_maxItems, A_minItems, A_uniqueItems, A_multipleOf, A_required, A_items,
		A_properties, A_externalDocs, A_example, A_x_kubernetes_preserve_unknown_fields, A_x_kubernetes_validations,
	};

	VAL_EACH_MEMBER(m, schema) {
		bool found = false;
		if (m->key == A_type && !is_kind(schema, "object")) {
			field_invalid(e, FIELD(at, "openAPIV3Schema.type"), m->val,
				      "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled");
			return;
		}
		for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
			found |= m->key == allowed[i];
		if (found || val_is_zero(m->val))
			continue;
		field_invalid(e, FIELD(at, "openAPIV3Schema"), schema,
			      "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern"
			      " MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields"
			      " XValidations] fields are allowed at the root of the schema if the status subresource is enabled");
		return;
	}
}

void check_crd_schema(struct field_errors *e, const struct field_path *at, struct val validation, bool has_status,
		      const struct schema_options *opt)
{
	const struct field_path *at_schema = FIELD(at, "openAPIV3Schema");
	struct val schema = val_get(validation, openAPIV3Schema);
	size_t before = e->n;

	if (!val_exists(schema))
		return;
	if (has_status)
		check_root_for_status(e, at, schema);
	if (val_bool(schema, nullable))
		field_forbidden(e, FIELD(at, "openAPIV3Schema.nullable"), "nullable cannot be true at the root");
	str unsupported = unsupported_below(schema, 0);
	if (opt->structural && !unsupported.n)
		check_structural(e, at_schema, schema);
	check_part(e, at_schema, schema, (struct place){ .is_supported = !unsupported.n }, 0, opt);
	if (e->n == before && opt->structural && unsupported.n)
		field_invalid(e, at_schema, VAL_LIT(""), STR_FMT, STR_ARG(unsupported));
}
