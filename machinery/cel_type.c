/* Types of CEL: the builtin ones, their texts, those that come from the schema, and the signatures of functions. */
#include "base/buf.h"
#include "machinery/cel_priv.h"

const struct cel_type cel_type_dyn = { .kind = CEL_DYN }, cel_type_null = { .kind = CEL_NULL },
		      cel_type_bool = { .kind = CEL_BOOL }, cel_type_int = { .kind = CEL_INT }, cel_type_uint = { .kind = CEL_UINT },
		      cel_type_double = { .kind = CEL_DOUBLE }, cel_type_string = { .kind = CEL_STRING },
		      cel_type_bytes = { .kind = CEL_BYTES }, cel_type_duration = { .kind = CEL_DURATION },
		      cel_type_timestamp = { .kind = CEL_TIMESTAMP }, cel_type_type = { .kind = CEL_TYPE },
		      cel_type_quantity = { .kind = CEL_QUANTITY }, cel_type_semver = { .kind = CEL_SEMVER },
		      cel_type_ip = { .kind = CEL_IP }, cel_type_cidr = { .kind = CEL_CIDR }, cel_type_url = { .kind = CEL_URL },
		      cel_type_format = { .kind = CEL_FORMAT }, cel_type_error = { .kind = CEL_ERROR };

static const struct {
	str text;    /* in errors of the checker */
	str name;    /* what type() gives, when that is another */
} texts[] = {
	[CEL_ERROR] = { STR_INIT("!error!"), { NULL, 0 } },
	[CEL_NULL] = { STR_INIT("null"), STR_INIT("null_type") },
	[CEL_BOOL] = { STR_INIT("bool"), { NULL, 0 } },
	[CEL_INT] = { STR_INIT("int"), { NULL, 0 } },
	[CEL_UINT] = { STR_INIT("uint"), { NULL, 0 } },
	[CEL_DOUBLE] = { STR_INIT("double"), { NULL, 0 } },
	[CEL_STRING] = { STR_INIT("string"), { NULL, 0 } },
	[CEL_BYTES] = { STR_INIT("bytes"), { NULL, 0 } },
	[CEL_DURATION] = { STR_INIT("duration"), STR_INIT("google.protobuf.Duration") },
	[CEL_TIMESTAMP] = { STR_INIT("timestamp"), STR_INIT("google.protobuf.Timestamp") },
	[CEL_LIST] = { STR_INIT("list"), { NULL, 0 } },
	[CEL_MAP] = { STR_INIT("map"), { NULL, 0 } },
	[CEL_TYPE] = { STR_INIT("type"), { NULL, 0 } },
	[CEL_OPTIONAL] = { STR_INIT("optional_type"), { NULL, 0 } },
	[CEL_QUANTITY] = { STR_INIT("kubernetes.Quantity"), { NULL, 0 } },
	[CEL_SEMVER] = { STR_INIT("kubernetes.Semver"), { NULL, 0 } },
	[CEL_IP] = { STR_INIT("net.IP"), { NULL, 0 } },
	[CEL_CIDR] = { STR_INIT("net.CIDR"), { NULL, 0 } },
	[CEL_URL] = { STR_INIT("kubernetes.URL"), { NULL, 0 } },
	[CEL_FORMAT] = { STR_INIT("kubernetes.NamedFormat"), { NULL, 0 } },
	[CEL_DYN] = { STR_INIT("dyn"), { NULL, 0 } },
	[CEL_ANY] = { STR_INIT("any"), STR_INIT("google.protobuf.Any") },
	[CEL_PARAM] = { STR_INIT("_var"), { NULL, 0 } },
};

/* ---- making ---- */

static const struct cel_type *type_with(struct arena *a, enum cel_kind kind, const struct cel_type *key, const struct cel_type *elem)
{
	struct cel_type *t = ARENA_NEW(a, struct cel_type);

	t->kind = (uint8_t)kind;
	t->key = key;
	t->elem = elem;
	t->weight = 1 + (key ? MAX(key->weight, 1u) : 0) + (elem ? MAX(elem->weight, 1u) : 0);
	return t;
}

const struct cel_type *cel_type_list(struct arena *a, const struct cel_type *elem) { return type_with(a, CEL_LIST, NULL, elem); }
const struct cel_type *cel_type_optional(struct arena *a, const struct cel_type *elem) { return type_with(a, CEL_OPTIONAL, NULL, elem); }
const struct cel_type *cel_type_of_type(struct arena *a, const struct cel_type *elem) { return type_with(a, CEL_TYPE, NULL, elem); }

const struct cel_type *cel_type_map(struct arena *a, const struct cel_type *key, const struct cel_type *elem)
{
	return type_with(a, CEL_MAP, key, elem);
}

/* ---- asking ---- */

bool cel_type_is_dyn(const struct cel_type *t) { return t->kind == CEL_DYN || t->kind == CEL_ANY; }

static bool same_part(const struct cel_type *a, const struct cel_type *b)
{
	return cel_type_same(a ? a : &cel_type_dyn, b ? b : &cel_type_dyn);
}

bool cel_type_same(const struct cel_type *a, const struct cel_type *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case CEL_PARAM:
		return a->n_fields == b->n_fields;
	case CEL_OBJECT:
		return str_eq(a->name, b->name);
	case CEL_MAP:
		return same_part(a->key, b->key) && same_part(a->elem, b->elem);
	case CEL_LIST:
	case CEL_OPTIONAL:
	case CEL_TYPE:
		return same_part(a->elem, b->elem);
	default:
		return true;
	}
}

str cel_type_runtime_name(const struct cel_type *t)
{
	if (t->kind == CEL_OBJECT)
		return t->name;
	return texts[t->kind].name.n ? texts[t->kind].name : texts[t->kind].text;
}

static void add_text(struct buf *b, const struct cel_type *t, bool output)
{
	if (t->kind == CEL_OBJECT) {
		buf_add(b, t->name);
		return;
	}
	bool of_time = t->kind == CEL_DURATION || t->kind == CEL_TIMESTAMP || t->kind == CEL_ANY || t->kind == CEL_NULL;
	buf_add(b, output && of_time ? cel_type_runtime_name(t) : texts[t->kind].text);
	if (t->kind == CEL_PARAM)
		buf_addf(b, "%zu", t->n_fields);
	if (t->kind != CEL_LIST && t->kind != CEL_MAP && t->kind != CEL_OPTIONAL && (t->kind != CEL_TYPE || !t->elem))
		return;
	buf_addc(b, '(');
	if (t->kind == CEL_MAP) {
		add_text(b, t->key ? t->key : &cel_type_dyn, output);
		buf_add(b, STR(", "));
	}
	add_text(b, t->elem ? t->elem : &cel_type_dyn, output);
	buf_addc(b, ')');
}

enum { TEXT_MAX = 64 * 1024 };

static str type_text(struct arena *a, const struct cel_type *t, bool output)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	add_text(&b, t, output);
	return arena_str(a, buf_str(&b));
}

str cel_type_text(struct arena *a, const struct cel_type *t) { return type_text(a, t, false); }
str cel_type_output_text(struct arena *a, const struct cel_type *t) { return type_text(a, t, true); }

const struct cel_type *cel_type_named(const struct cel_env *env, str name)
{
	static const struct cel_type list = { .kind = CEL_LIST }, map = { .kind = CEL_MAP };
	static const struct {
		str name;
		const struct cel_type *type;
	} known[] = {
		{ STR_INIT("bool"), &cel_type_bool }, { STR_INIT("bytes"), &cel_type_bytes }, { STR_INIT("double"), &cel_type_double },
		{ STR_INIT("dyn"), &cel_type_dyn }, { STR_INIT("int"), &cel_type_int }, { STR_INIT("list"), &list },
		{ STR_INIT("map"), &map }, { STR_INIT("null_type"), &cel_type_null }, { STR_INIT("string"), &cel_type_string },
		{ STR_INIT("type"), &cel_type_type }, { STR_INIT("uint"), &cel_type_uint },
		{ STR_INIT("google.protobuf.Duration"), &cel_type_duration },
		{ STR_INIT("google.protobuf.Timestamp"), &cel_type_timestamp },
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(known[i].name, name))
			return known[i].type;
	for (size_t i = 0; i < env->n_types; i++)
		if (env->types[i]->kind == CEL_OBJECT && str_eq(env->types[i]->name, name))
			return env->types[i];
	return NULL;
}

/* ---- the schema's types ---- */

const struct cel_type *cel_type_of_schema(struct arena *a, const struct type *schema)
{
	struct cel_type *t = ARENA_NEW(a, struct cel_type);

	t->kind = CEL_OBJECT;
	t->name = schema->name;
	t->schema = schema;
	return t;
}

static const struct cel_type *schema_element(struct arena *a, const struct field *f)
{
	switch ((enum field_kind)f->kind) {
	case KIND_STRING:
	case KIND_ENUM:
		return &cel_type_string;
	case KIND_BOOL:
		return &cel_type_bool;
	case KIND_INT32:
	case KIND_INT64:
	case KIND_UINT32:
	case KIND_UINT64:
		return &cel_type_int;
	case KIND_DOUBLE:
	case KIND_FLOAT:
		return &cel_type_double;
	case KIND_BYTES:
	case KIND_RAW_BYTES:
		return &cel_type_bytes;
	case KIND_TIME:
	case KIND_MICROTIME:
		return &cel_type_timestamp;
	case KIND_STRINGS:
		return cel_type_list(a, &cel_type_string);
	case KIND_MESSAGE:
		return cel_type_of_schema(a, f->type);
	case KIND_DURATION:
	case KIND_QUANTITY:
	case KIND_INT_OR_STRING:
	case KIND_JSON:
	case KIND_FIELDS:
		break;
	}
	return &cel_type_dyn;
}

const struct cel_type *cel_type_field(struct arena *a, const struct cel_type *object, str name)
{
	for (size_t i = 0; i < object->n_fields; i++)
		if (str_eq(object->fields[i].name, name))
			return object->fields[i].type;
	const struct field *f = object->schema ? type_field(object->schema, atom_find(name)) : NULL;
	if (!f)
		return NULL;
	const struct cel_type *elem = schema_element(a, f);
	if (f->shape == SHAPE_LIST)
		return cel_type_list(a, elem);
	return f->shape == SHAPE_MAP ? cel_type_map(a, &cel_type_string, elem) : elem;
}

/* ---- signatures ---- */

static const struct cel_type *letter_type(char c)
{
	switch (c) {
	case 'b':
		return &cel_type_bool;
	case 'i':
		return &cel_type_int;
	case 'u':
		return &cel_type_uint;
	case 'd':
		return &cel_type_double;
	case 's':
		return &cel_type_string;
	case 'y':
		return &cel_type_bytes;
	case 'n':
		return &cel_type_null;
	case 't':
		return &cel_type_timestamp;
	case 'r':
		return &cel_type_duration;
	case 'z':
		return &cel_type_type;
	case 'q':
		return &cel_type_quantity;
	case 'v':
		return &cel_type_semver;
	case 'a':
		return &cel_type_ip;
	case 'c':
		return &cel_type_cidr;
	case 'l':
		return &cel_type_url;
	case 'f':
		return &cel_type_format;
	default:
		return &cel_type_dyn;
	}
}

const struct cel_type *cel_signature_type(struct arena *a, const char **p, const struct cel_type *const params[2])
{
	char c = *(*p)++;
	const struct cel_type *elem;

	switch (c) {
	case 'A':
	case 'B':
		return params[c - 'A'];
	case 'L':
		return cel_type_list(a, cel_signature_type(a, p, params));
	case 'O':
		return cel_type_optional(a, cel_signature_type(a, p, params));
	case 'Z':
		return cel_type_of_type(a, cel_signature_type(a, p, params));
	case 'M':
		elem = cel_signature_type(a, p, params);
		return cel_type_map(a, elem, cel_signature_type(a, p, params));
	default:
		return letter_type(c);
	}
}

/* Moves behind one type without making it. */
static const char *signature_skip(const char *p)
{
	unsigned open = 1;

	while (open) {
		char c = *p++;
		open += c == 'M';
		open -= c != 'M' && c != 'L' && c != 'O' && c != 'Z';
	}
	return p;
}

bool cel_signature_fits(const char *p, const struct cel_val *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t kind = args[i].kind;
		char c = *p;
		bool fits;

		if (c == ':')
			return false;
		if (c == 'A' || c == 'B' || c == '*')
			fits = true;
		else if (c == 'L')
			fits = kind == CEL_LIST;
		else if (c == 'M')
			fits = kind == CEL_MAP || kind == CEL_OBJECT;
		else if (c == 'O')
			fits = kind == CEL_OPTIONAL;
		else if (c == 'Z')
			fits = kind == CEL_TYPE;
		else
			fits = kind == letter_type(c)->kind;
		if (!fits)
			return false;
		p = signature_skip(p);
	}
	return *p == ':';
}
