/* Expectations are the answers of Kubernetes 1.36 to these objects. */
#include "machinery/validate_testing.h"

#define CRD_WITH(schema, members) \
	"{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'as.b.c','resourceVersion':'1'},'spec':{" \
	"'group':'b.c','scope':'Namespaced','names':{'plural':'as','kind':'A'},'versions':[{'name':'v1','served':true,'storage':true," \
	"'schema':{'openAPIV3Schema':{" schema "}}" members "}]}}"
#define SCHEMA(schema) CRD_WITH(schema, "")
#define PROPERTIES(properties) SCHEMA("'type':'object','properties':{" properties "}")
#define FIELD_A(schema) PROPERTIES("'a':{" schema "}")
#define ROOT_TEXT \
	"spec.validation.openAPIV3Schema"
#define A_TEXT \
	"spec.validation.openAPIV3Schema.properties[a]"
#define RULE_TEXT \
	"spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0]"

TEST(validate_schema_structure)
{
	static const struct create_row t[] = {
		{ FIELD_A("'type':'array','items':{'type':'object','additionalProperties':{'type':'string'}}"),
		  "" },
		{ FIELD_A("'x-kubernetes-int-or-string':true,'anyOf':[{'type':'integer'},{'type':'string'}]"),
		  "" },
		{ SCHEMA(""), ROOT_TEXT ".type: Required value: must not be empty at the root" },
		{ SCHEMA("'type':'string'"),
		  ROOT_TEXT ".type: Invalid value: 'string': must be object at the root" },
		{ SCHEMA("'type':'object','additionalProperties':{'type':'string'}"),
		  ROOT_TEXT ".additionalProperties: Forbidden: must not be used at the root" },
		{ SCHEMA("'type':'object','nullable':true"),
		  ROOT_TEXT ".nullable: Forbidden: nullable cannot be true at the root" },
		{ PROPERTIES("'a':{},'b':{'type':'array'},'c':{'type':'array','items':{}},'d':{'type':'object','additionalProperties':{}}"),
		  A_TEXT ".type: Required value: must not be empty for specified object fields\n"
		  ROOT_TEXT ".properties[b].items: Required value: must be specified\n"
		  ROOT_TEXT ".properties[c].items.type: Required value: must not be empty for specified array items\n"
		  ROOT_TEXT ".properties[d].additionalProperties.type: Required value: must not be empty for specified"
		  " object fields" },
		{ FIELD_A("'type':'string','anyOf':[{'type':'string','title':'a','description':'b','default':'c','nullable':true}]"),
		  A_TEXT ".anyOf[0].default: Forbidden: must be undefined to be structural\n"
		  A_TEXT ".anyOf[0].description: Forbidden: must be empty to be structural\n"
		  A_TEXT ".anyOf[0].nullable: Forbidden: must be false to be structural\n"
		  A_TEXT ".anyOf[0].title: Forbidden: must be empty to be structural\n"
		  A_TEXT ".anyOf[0].type: Forbidden: must be empty to be structural" },
		{ FIELD_A("'type':'object','not':{'properties':{'b':{'pattern':'['}}},'allOf':[{'additionalProperties':true}]"),
		  A_TEXT ".allOf[0].additionalProperties: Forbidden: must be undefined to be structural\n"
		  A_TEXT ".not.properties[b].pattern: Invalid value: '[': must be a valid regular expression, but"
		  " isn't: error parsing regexp: missing closing ]: `[`" },
		{ SCHEMA("'type':'object','anyOf':[{'properties':{'b':{'minimum':1}}}],'oneOf':[{'items':{'minimum':1}}]"),
		  ROOT_TEXT ".items: Required value: because it is defined in " ROOT_TEXT ".oneOf[0].items\n"
		  ROOT_TEXT ".properties[b]: Required value: because it is defined in " ROOT_TEXT
		  ".anyOf[0].properties[b]" },
		{ PROPERTIES("'metadata':{'type':'string','properties':{'labels':{'type':'object'}}},'kind':{'type':'object'},'apiVersion':{'type':'string'}"),
		  ROOT_TEXT ".properties[kind].type: Invalid value: 'object': must be string\n"
		  ROOT_TEXT ".properties[metadata]: Forbidden: must not specify anything other than name and"
		  " generateName, but metadata is implicitly specified\n"
		  ROOT_TEXT ".properties[metadata].type: Invalid value: 'string': must be object" },
		{ PROPERTIES("'metadata':{'type':'object','properties':{'name':{'type':'string','pattern':'a+'}}}"),
		  "" },
		{ FIELD_A("'x-kubernetes-embedded-resource':true"),
		  A_TEXT ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true"
		  " without x-kubernetes-preserve-unknown-fields\n"
		  A_TEXT ".type: Required value: must be object if x-kubernetes-embedded-resource is true" },
		{ FIELD_A("'type':'object','x-kubernetes-embedded-resource':true"),
		  A_TEXT ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true"
		  " without x-kubernetes-preserve-unknown-fields" },
		{ FIELD_A("'type':'object','x-kubernetes-embedded-resource':true,'x-kubernetes-int-or-string':true,'x-kubernetes-preserve-unknown-fields':true"),
		  A_TEXT ".x-kubernetes-embedded-resource: Invalid value: true: must be false if"
		  " x-kubernetes-int-or-string is true\n"
		  A_TEXT ".x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if"
		  " x-kubernetes-int-or-string is true" },
		{ FIELD_A("'type':'string','pattern':'a{2,1}'"),
		  A_TEXT ".pattern: Invalid value: 'a{2,1}': must be a valid regular expression, but isn't: error"
		  " parsing regexp: invalid repeat count: `{2,1}`" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

TEST(validate_schema_openapi)
{
	static const struct create_row t[] = {
		{ FIELD_A("'type':'x'"),
		  A_TEXT ".type: Unsupported value: 'x': supported values: 'array', 'boolean', 'integer', 'number',"
		  " 'object', 'string'" },
		{ FIELD_A("'type':'null'"),
		  A_TEXT ".type: Unsupported value: 'null': supported values: 'array', 'boolean', 'integer', 'number',"
		  " 'object', 'string'\n"
		  A_TEXT ".type: Forbidden: type cannot be set to null, use nullable as an alternative" },
		{ FIELD_A("'type':'string','id':'a'"), A_TEXT ".id: Forbidden: id is not supported" },
		{ FIELD_A("'type':'string','$ref':'a'"), A_TEXT ".$ref: Forbidden: $ref is not supported" },
		{ FIELD_A("'type':'array','items':[{'type':'string'}]"),
		  A_TEXT ".items: Forbidden: items must be a schema object and not an array" },
		{ FIELD_A("'type':'array','items':{'type':'string'},'uniqueItems':true,'additionalItems':true"),
		  A_TEXT ".additionalItems: Forbidden: additionalItems is not supported\n"
		  A_TEXT ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity"
		  " becomes quadratic" },
		{ FIELD_A("'type':'object','patternProperties':{'a':{}},'definitions':{'b':{}},'dependencies':{'c':{}}"),
		  A_TEXT ".patternProperties: Forbidden: patternProperties is not supported\n"
		  A_TEXT ".definitions: Forbidden: definitions is not supported\n"
		  A_TEXT ".dependencies: Forbidden: dependencies is not supported" },
		{ FIELD_A("'type':'object','properties':{'b':{'type':'string'}},'additionalProperties':{'type':'string'}"),
		  A_TEXT ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive" },
		{ FIELD_A("'type':'object','x-kubernetes-preserve-unknown-fields':false"),
		  A_TEXT ".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined" },
		{ FIELD_A("'type':'string','x-kubernetes-map-type':'x'"),
		  A_TEXT ".type: Invalid value: 'string': must be object if x-kubernetes-map-type is specified\n"
		  A_TEXT ".x-kubernetes-map-type: Unsupported value: 'x': supported values: 'atomic', 'granular'" },
		{ PROPERTIES("'metadata':{'type':'object','default':{}}"),
		  ROOT_TEXT ".properties[metadata].default: Forbidden: must not be set in top-level metadata" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

/* The value in the message is left out here. */
TEST(validate_schema_with_status)
{
	struct arena a = ARENA_INIT;
	str wrong = testing_create(&a, CRD_WITH("'type':'object','anyOf':[{'required':['a']}]", ",'subresources':{'status':{}}"), NULL);

	CHECK(str_ends(wrong, STR("fields are allowed at the root of the schema if the status subresource is enabled")));
	CHECK_STR(testing_create(&a, CRD_WITH("'type':'object','required':['a']", ",'subresources':{'status':{}}"), NULL), "");
	arena_done(&a);
}

#define KEYED(type, keys, item) FIELD_A("'type':'array','x-kubernetes-list-type':'" type "'" keys ",'items':{" item "}")
#define KEYS(keys) ",'x-kubernetes-list-map-keys':[" keys "]"

TEST(validate_schema_lists)
{
	static const struct create_row t[] = {
		{ KEYED("map", KEYS("'k'"), "'type':'object','required':['k'],'properties':{'k':{'type':'string'}}"),
		  "" },
		{ KEYED("set", "", "'type':'string'"), "" },
		{ FIELD_A("'type':'string','x-kubernetes-list-type':'set'"),
		  A_TEXT ".type: Invalid value: 'string': must be array if x-kubernetes-list-type is specified" },
		{ KEYED("x", "", "'type':'string'"),
		  A_TEXT ".x-kubernetes-list-type: Unsupported value: 'x': supported values: 'atomic', 'set', 'map'" },
		{ KEYED("set", KEYS("'k'"), "'type':'object'"),
		  A_TEXT ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with"
		  " x-kubernetes-list-type=set\n"
		  A_TEXT ".x-kubernetes-list-type: Invalid value: 'set': must be map if x-kubernetes-list-map-keys is"
		  " non-empty" },
		{ KEYED("set", "", "'type':'string','nullable':true"),
		  A_TEXT ".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set" },
		{ KEYED("map", "", "'type':'string'"),
		  A_TEXT ".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is"
		  " map\n"
		  A_TEXT ".items.type: Invalid value: 'string': must be object if parent array's"
		  " x-kubernetes-list-type is map" },
		{ KEYED("map", KEYS("'k','k','l','m'"), "'type':'object','properties':{'k':{'type':'string','nullable':true},'l':{'type':'object'}}"),
		  A_TEXT ".x-kubernetes-list-map-keys: Invalid value: ['k','k','l','m']: must not contain duplicate"
		  " entries\n"
		  A_TEXT ".items.properties[l].type: Invalid value: 'object': must be a scalar type if parent array's"
		  " x-kubernetes-list-type is map\n"
		  A_TEXT ".x-kubernetes-list-map-keys: Invalid value: ['k','k','l','m']: entries must all be names of"
		  " item properties\n"
		  A_TEXT ".items.properties[k].default: Required value: this property is in"
		  " x-kubernetes-list-map-keys, so it must have a default or be a required property\n"
		  A_TEXT ".items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so"
		  " it cannot be nullable\n"
		  A_TEXT ".items.properties[k].default: Required value: this property is in"
		  " x-kubernetes-list-map-keys, so it must have a default or be a required property\n"
		  A_TEXT ".items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so"
		  " it cannot be nullable\n"
		  A_TEXT ".items.properties[l].default: Required value: this property is in"
		  " x-kubernetes-list-map-keys, so it must have a default or be a required property" },
		{ FIELD_A("'type':'array','x-kubernetes-list-map-keys':['k'],'items':{'type':'object'}"),
		  A_TEXT ".x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is"
		  " non-empty" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

#define RULE(rule) FIELD_A("'type':'object','properties':{'b':{'type':'string'}},'x-kubernetes-validations':[{" rule "}]")

/* All that can be said about rules without compiling them. */
TEST(validate_schema_rules)
{
	static const struct create_row t[] = {
		{ RULE("'rule':'true','message':'a','reason':'FieldValueInvalid','fieldPath':'.b'"), "" },
		{ RULE("'rule':' '"), RULE_TEXT ".rule: Required value: rule is not specified" },
		{ RULE("'rule':'true','message':' ','messageExpression':' ','reason':'x'"),
		  RULE_TEXT ".message: Invalid value: ' ': must be non-empty if specified\n"
		  RULE_TEXT ".messageExpression: Required value: messageExpression must be non-empty if specified\n"
		  RULE_TEXT ".reason: Unsupported value: 'x': supported values: 'FieldValueDuplicate',"
		  " 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'" },
		{ RULE("'rule':'true','message':'a\\nb','fieldPath':'.c'"),
		  RULE_TEXT ".message: Invalid value: 'a\\nb': must not contain line breaks\n"
		  RULE_TEXT ".fieldPath: Invalid value: '.c': must be a valid path" },
		{ RULE("'rule':'true\\n&& true'"),
		  RULE_TEXT ".message: Required value: message must be specified if rule contains line breaks" },
		{ RULE("'rule':'true','fieldPath':' '"),
		  RULE_TEXT ".fieldPath: Invalid value: ' ': must be non-empty if specified\n"
		  RULE_TEXT ".fieldPath: Invalid value: ' ': must be a valid path" },
	};
	check_create_rows(t, ARRAY_LEN(t));
}

/* Mistakes that are there already do not keep a definition from being changed. */
TEST(validate_schema_update)
{
	static const struct update_row t[] = {
		{ PROPERTIES("'a':{'type':'x'},'b':{'type':'y'}"), FIELD_A("'type':'x'"), "", "" },
		{ KEYED("set", "", "'type':'string','nullable':true"), KEYED("set", "", "'type':'integer','nullable':true"), "",
		  "" },
		{ KEYED("set", "", "'type':'object'"), KEYED("set", "", "'type':'object','minProperties':1"), "",
		  "" },
		{ FIELD_A("'type':'x'"), FIELD_A("'type':'string'"), "",
		  A_TEXT ".type: Unsupported value: 'x': supported values: 'array', 'boolean', 'integer', 'number',"
		  " 'object', 'string'" },
	};
	check_update_rows(t, ARRAY_LEN(t));
}

/* A schema of so many levels. */
static str nested(struct arena *a, int levels)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (int i = 0; i < levels; i++)
		buf_add(&b, STR("'type':'object','properties':{'a':{"));
	buf_add(&b, STR("'type':'string'"));
	for (int i = 0; i < levels; i++)
		buf_add(&b, STR("}}"));
	return arena_printf(a, SCHEMA("%s"), arena_str(a, buf_str(&b)).p);
}

TEST(validate_schema_depth)
{
	static const struct {
		int levels;
		bool valid;
	} t[] = { { 50, true }, { 200, false } };
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str wrong = testing_create(&a, nested(&a, t[i].levels).p, NULL);
		CHECK_ROW(i, t[i].valid ? wrong.n == 0 : str_find(wrong, STR("schema is nested too deeply")) >= 0);
		arena_reset(&a);
	}
	arena_done(&a);
}
