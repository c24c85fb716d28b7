/* Version 2, for kubectl up to 1.26, helm and other clients of that age. */
#include "apiserver/openapi_proto.h"

/* ---- schemas ---- */

static void schema(struct gnostic *g, struct val v);

static void properties(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, schema); }

static void items(struct gnostic *g, struct val v) { gnostic_one_or_more(g, v, schema); }

static void additional_properties(struct gnostic *g, struct val v) { gnostic_or_flag(g, v, schema); }

static void schema(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("$ref", 1, TEXT), GNOSTIC_ROW("format", 2, TEXT),
		GNOSTIC_ROW("title", 3, TEXT), GNOSTIC_ROW("description", 4, TEXT),
		GNOSTIC_ROW("default", 5, ANY), GNOSTIC_ROW("multipleOf", 6, REAL),
		GNOSTIC_ROW("maximum", 7, REAL), GNOSTIC_ROW("exclusiveMaximum", 8, FLAG),
		GNOSTIC_ROW("minimum", 9, REAL), GNOSTIC_ROW("exclusiveMinimum", 10, FLAG),
		GNOSTIC_ROW("maxLength", 11, NUMBER), GNOSTIC_ROW("minLength", 12, NUMBER),
		GNOSTIC_ROW("pattern", 13, TEXT), GNOSTIC_ROW("maxItems", 14, NUMBER),
		GNOSTIC_ROW("minItems", 15, NUMBER), GNOSTIC_ROW("uniqueItems", 16, FLAG),
		GNOSTIC_ROW("maxProperties", 17, NUMBER), GNOSTIC_ROW("minProperties", 18, NUMBER),
		GNOSTIC_ROW("required", 19, TEXTS), GNOSTIC_ROW("enum", 20, ANYS),
		GNOSTIC_ROW_OF("additionalProperties", 21, MESSAGE, additional_properties),
		GNOSTIC_ROW_OF("type", 22, MESSAGE, gnostic_text_list), GNOSTIC_ROW_OF("items", 23, MESSAGE, items),
		GNOSTIC_ROW_OF("allOf", 24, MESSAGES, schema), GNOSTIC_ROW_OF("properties", 25, MESSAGE, properties),
		GNOSTIC_ROW("discriminator", 26, TEXT), GNOSTIC_ROW("readOnly", 27, FLAG),
		GNOSTIC_ROW("example", 30, ANY),
	};
	GNOSTIC_ROWS(g, v, rows, 31);
}

/* ---- operations ---- */

static void body_parameter(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("description", 1, TEXT), GNOSTIC_ROW("name", 2, TEXT),
		GNOSTIC_ROW("in", 3, TEXT), GNOSTIC_ROW("required", 4, FLAG),
		GNOSTIC_ROW_OF("schema", 5, MESSAGE, schema),
	};
	GNOSTIC_ROWS(g, v, rows, 6);
}

/* Query parameters have allow_empty_value = 5, which shifts what follows. */
static void query_parameter(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("required", 1, FLAG), GNOSTIC_ROW("in", 2, TEXT),
		GNOSTIC_ROW("description", 3, TEXT), GNOSTIC_ROW("name", 4, TEXT),
		GNOSTIC_ROW("type", 6, TEXT), GNOSTIC_ROW("format", 7, TEXT),
		GNOSTIC_ROW("default", 10, ANY), GNOSTIC_ROW("pattern", 17, TEXT),
		GNOSTIC_ROW("uniqueItems", 20, FLAG), GNOSTIC_ROW("enum", 21, ANYS),
	};
	GNOSTIC_ROWS(g, v, rows, 23);
}

/* Of the path and of headers. */
static void plain_parameter(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("required", 1, FLAG), GNOSTIC_ROW("in", 2, TEXT),
		GNOSTIC_ROW("description", 3, TEXT), GNOSTIC_ROW("name", 4, TEXT),
		GNOSTIC_ROW("type", 5, TEXT), GNOSTIC_ROW("format", 6, TEXT),
		GNOSTIC_ROW("default", 9, ANY), GNOSTIC_ROW("pattern", 16, TEXT),
		GNOSTIC_ROW("uniqueItems", 19, FLAG), GNOSTIC_ROW("enum", 20, ANYS),
	};
	GNOSTIC_ROWS(g, v, rows, 22);
}

static void non_body_parameter(struct gnostic *g, struct val v)
{
	str in = val_as_str(val_find(v, STR("in")));
	if (str_eq(in, STR("query")))
		gnostic_message(g, 3, v, query_parameter);
	else
		gnostic_message(g, str_eq(in, STR("header")) ? 1 : 4, v, plain_parameter);
}

static void parameter(struct gnostic *g, struct val v)
{
	if (str_eq(val_as_str(val_find(v, STR("in"))), STR("body")))
		gnostic_message(g, 1, v, body_parameter);
	else
		gnostic_message(g, 2, v, non_body_parameter);
}

static void parameter_item(struct gnostic *g, struct val v) { gnostic_or_reference(g, v, parameter); }

static void schema_item(struct gnostic *g, struct val v) { gnostic_message(g, 1, v, schema); }

static void response(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("description", 1, TEXT), GNOSTIC_ROW_OF("schema", 2, MESSAGE, schema_item),
	};
	GNOSTIC_ROWS(g, v, rows, 5);
}

static void response_value(struct gnostic *g, struct val v) { gnostic_message(g, 1, v, response); }

static void responses(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, response_value); }

static void operation(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("tags", 1, TEXTS), GNOSTIC_ROW("summary", 2, TEXT),
		GNOSTIC_ROW("description", 3, TEXT), GNOSTIC_ROW("operationId", 5, TEXT),
		GNOSTIC_ROW("produces", 6, TEXTS), GNOSTIC_ROW("consumes", 7, TEXTS),
		GNOSTIC_ROW_OF("parameters", 8, MESSAGES, parameter_item), GNOSTIC_ROW_OF("responses", 9, MESSAGE, responses),
		GNOSTIC_ROW("schemes", 10, TEXTS), GNOSTIC_ROW("deprecated", 11, FLAG),
	};
	GNOSTIC_ROWS(g, v, rows, 13);
}

static void path_item(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("$ref", 1, TEXT), GNOSTIC_ROW_OF("get", 2, MESSAGE, operation),
		GNOSTIC_ROW_OF("put", 3, MESSAGE, operation), GNOSTIC_ROW_OF("post", 4, MESSAGE, operation),
		GNOSTIC_ROW_OF("delete", 5, MESSAGE, operation), GNOSTIC_ROW_OF("options", 6, MESSAGE, operation),
		GNOSTIC_ROW_OF("head", 7, MESSAGE, operation), GNOSTIC_ROW_OF("patch", 8, MESSAGE, operation),
		GNOSTIC_ROW_OF("parameters", 9, MESSAGES, parameter_item),
	};
	GNOSTIC_ROWS(g, v, rows, 10);
}

static void paths(struct gnostic *g, struct val v) { gnostic_entries(g, 2, v, path_item); }

/* ---- the document ---- */

static void info(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("title", 1, TEXT), GNOSTIC_ROW("version", 2, TEXT),
		GNOSTIC_ROW("description", 3, TEXT),
	};
	GNOSTIC_ROWS(g, v, rows, 7);
}

static void api_key(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("type", 1, TEXT), GNOSTIC_ROW("name", 2, TEXT), GNOSTIC_ROW("in", 3, TEXT),
		GNOSTIC_ROW("description", 4, TEXT),
	};
	GNOSTIC_ROWS(g, v, rows, 5);
}

static void security_definition(struct gnostic *g, struct val v) { gnostic_message(g, 2, v, api_key); }

static void security_definitions(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, security_definition); }

static void security(struct gnostic *g, struct val v) { gnostic_entries(g, 1, v, gnostic_text_list); }

static void document(struct gnostic *g, struct val v)
{
	static const struct gnostic_row rows[] = {
		GNOSTIC_ROW("swagger", 1, TEXT), GNOSTIC_ROW_OF("info", 2, MESSAGE, info),
		GNOSTIC_ROW("host", 3, TEXT), GNOSTIC_ROW("basePath", 4, TEXT),
		GNOSTIC_ROW("schemes", 5, TEXTS), GNOSTIC_ROW("consumes", 6, TEXTS),
		GNOSTIC_ROW("produces", 7, TEXTS), GNOSTIC_ROW_OF("paths", 8, MESSAGE, paths),
		GNOSTIC_ROW_OF("definitions", 9, MESSAGE, properties), GNOSTIC_ROW_OF("security", 12, MESSAGES, security),
		GNOSTIC_ROW_OF("securityDefinitions", 13, MESSAGE, security_definitions),
	};
	GNOSTIC_ROWS(g, v, rows, 16);
}

int openapi_proto_v2(struct val doc, struct buf *b, struct err *err) { return gnostic_document(doc, document, b, err); }
