/* Version 3, for clients of client-go's openapi3. Wherever a schema, a parameter or a response may stand, a reference may. */
#include "apiserver/openapi_proto.h"

/* ---- schemas ---- */

static void schema(struct gnostic *g, struct val v);

static void schema_or_reference(struct gnostic *g, struct val v) { gnostic_or_reference(g, v, schema); }

static void schemas(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, schema_or_reference); }

static void items(struct gnostic *g, struct val v) { gnostic_one_or_more(g, v, schema_or_reference); }

static void additional_properties(struct gnostic *g, struct val v) { gnostic_or_flag(g, v, schema_or_reference); }

/* DefaultType: {number = 1}, {boolean = 2} or {string = 3}. There is no room for objects and lists: they are there, but empty. */
static void default_type(struct gnostic *g, struct val v)
{
	if (val_is(v, VAL_INT) || val_is(v, VAL_DOUBLE))
		gnostic_real(g, 1, val_as_double(v));
	else if (val_is(v, VAL_BOOL))
		gnostic_flag(g, 2, val_as_bool(v));
	else if (val_is(v, VAL_STRING))
		gnostic_text(g, 3, val_as_str(v));
}

static void schema(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("nullable", 1, FLAG), GNOSTIC_ROW("readOnly", 3, FLAG), GNOSTIC_ROW("writeOnly", 4, FLAG),
		GNOSTIC_ROW("example", 7, ANY), GNOSTIC_ROW("deprecated", 8, FLAG), GNOSTIC_ROW("title", 9, TEXT),
		GNOSTIC_ROW("multipleOf", 10, REAL), GNOSTIC_ROW("maximum", 11, REAL),
		GNOSTIC_ROW("exclusiveMaximum", 12, FLAG), GNOSTIC_ROW("minimum", 13, REAL),
		GNOSTIC_ROW("exclusiveMinimum", 14, FLAG), GNOSTIC_ROW("maxLength", 15, NUMBER),
		GNOSTIC_ROW("minLength", 16, NUMBER), GNOSTIC_ROW("pattern", 17, TEXT), GNOSTIC_ROW("maxItems", 18, NUMBER),
		GNOSTIC_ROW("minItems", 19, NUMBER), GNOSTIC_ROW("uniqueItems", 20, FLAG),
		GNOSTIC_ROW("maxProperties", 21, NUMBER), GNOSTIC_ROW("minProperties", 22, NUMBER),
		GNOSTIC_ROW("required", 23, TEXTS), GNOSTIC_ROW("enum", 24, ANYS), GNOSTIC_ROW("type", 25, TEXT),
		GNOSTIC_ROW_OF("allOf", 26, MESSAGES, schema_or_reference),
		GNOSTIC_ROW_OF("oneOf", 27, MESSAGES, schema_or_reference),
		GNOSTIC_ROW_OF("anyOf", 28, MESSAGES, schema_or_reference), GNOSTIC_ROW_OF("not", 29, MESSAGE, schema),
		GNOSTIC_ROW_OF("items", 30, MESSAGE, items), GNOSTIC_ROW_OF("properties", 31, MESSAGE, schemas),
		GNOSTIC_ROW_OF("additionalProperties", 32, MESSAGE, additional_properties),
		GNOSTIC_ROW_OF("default", 33, MESSAGE, default_type), GNOSTIC_ROW("description", 34, TEXT),
		GNOSTIC_ROW("format", 35, TEXT),
	};
	GNOSTIC_ROWS(g, v, rows, 36);
}

/* ---- operations ---- */

static void media_type(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = { GNOSTIC_ROW_OF("schema", 1, MESSAGE, schema_or_reference) };
	GNOSTIC_ROWS(g, v, rows, 5);
}

static void media_types(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, media_type); }

static void parameter(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("name", 1, TEXT), GNOSTIC_ROW("in", 2, TEXT), GNOSTIC_ROW("description", 3, TEXT),
		GNOSTIC_ROW("required", 4, FLAG), GNOSTIC_ROW("deprecated", 5, FLAG),
		GNOSTIC_ROW_OF("schema", 10, MESSAGE, schema_or_reference),
	};
	GNOSTIC_ROWS(g, v, rows, 14);
}

static void parameter_or_reference(struct gnostic *g, struct val v) { gnostic_or_reference(g, v, parameter); }

static void request_body(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("description", 1, TEXT), GNOSTIC_ROW_OF("content", 2, MESSAGE, media_types),
		GNOSTIC_ROW("required", 3, FLAG),
	};
	GNOSTIC_ROWS(g, v, rows, 4);
}

static void request_body_or_reference(struct gnostic *g, struct val v) { gnostic_or_reference(g, v, request_body); }

static void response(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("description", 1, TEXT), GNOSTIC_ROW_OF("content", 3, MESSAGE, media_types),
	};
	GNOSTIC_ROWS(g, v, rows, 5);
}

static void response_or_reference(struct gnostic *g, struct val v) { gnostic_or_reference(g, v, response); }

static void responses(struct gnostic *g, struct val v) { gnostic_entries(g, 2, v, response_or_reference); }

static void operation(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("tags", 1, TEXTS), GNOSTIC_ROW("summary", 2, TEXT), GNOSTIC_ROW("description", 3, TEXT),
		GNOSTIC_ROW("operationId", 5, TEXT), GNOSTIC_ROW_OF("parameters", 6, MESSAGES, parameter_or_reference),
		GNOSTIC_ROW_OF("requestBody", 7, MESSAGE, request_body_or_reference),
		GNOSTIC_ROW_OF("responses", 8, MESSAGE, responses), GNOSTIC_ROW("deprecated", 10, FLAG),
	};
	GNOSTIC_ROWS(g, v, rows, 13);
}

static void path_item(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("$ref", 1, TEXT), GNOSTIC_ROW_OF("get", 4, MESSAGE, operation),
		GNOSTIC_ROW_OF("put", 5, MESSAGE, operation), GNOSTIC_ROW_OF("post", 6, MESSAGE, operation),
		GNOSTIC_ROW_OF("delete", 7, MESSAGE, operation), GNOSTIC_ROW_OF("options", 8, MESSAGE, operation),
		GNOSTIC_ROW_OF("head", 9, MESSAGE, operation), GNOSTIC_ROW_OF("patch", 10, MESSAGE, operation),
		GNOSTIC_ROW_OF("parameters", 13, MESSAGES, parameter_or_reference),
	};
	GNOSTIC_ROWS(g, v, rows, 14);
}

static void paths(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, path_item); }

/* ---- the document ---- */

static void info(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("title", 1, TEXT), GNOSTIC_ROW("description", 2, TEXT), GNOSTIC_ROW("version", 6, TEXT),
	};
	GNOSTIC_ROWS(g, v, rows, 7);
}

static void security_scheme(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("type", 1, TEXT), GNOSTIC_ROW("description", 2, TEXT), GNOSTIC_ROW("name", 3, TEXT),
		GNOSTIC_ROW("in", 4, TEXT),
	};
	GNOSTIC_ROWS(g, v, rows, 9);
}

static void security_scheme_or_reference(struct gnostic *g, struct val v) { gnostic_or_reference(g, v, security_scheme); }

static void security_schemes(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, security_scheme_or_reference); }

static void components(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW_OF("schemas", 1, MESSAGE, schemas), GNOSTIC_ROW_OF("securitySchemes", 7, MESSAGE, security_schemes),
	};
	GNOSTIC_ROWS(g, v, rows, 10);
}

static void document(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("openapi", 1, TEXT), GNOSTIC_ROW_OF("info", 2, MESSAGE, info), GNOSTIC_ROW_OF("paths", 4, MESSAGE, paths),
		GNOSTIC_ROW_OF("components", 5, MESSAGE, components),
	};
	GNOSTIC_ROWS(g, v, rows, 9);
}

int openapi_proto_v3(struct val doc, struct buf *b, struct err *err) { return gnostic_document(doc, document, b, err); }
