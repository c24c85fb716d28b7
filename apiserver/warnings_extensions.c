/* What extends the API, and classes of devices and runtimes. */
#include "apiserver/warnings_priv.h"

#include "base/map.h"

/* ---- CustomResourceDefinition: formats that no value is checked against ---- */

static bool is_known_format(str type, str format)
{
	static const str of_strings[] = {
		STR_INIT("bsonobjectid"), STR_INIT("byte"), STR_INIT("cidr"), STR_INIT("creditcard"), STR_INIT("date"),
		STR_INIT("datetime"), STR_INIT("duration"), STR_INIT("email"), STR_INIT("hexcolor"), STR_INIT("hostname"),
		STR_INIT("ipv4"), STR_INIT("ipv6"), STR_INIT("isbn"), STR_INIT("isbn10"), STR_INIT("isbn13"),
		STR_INIT("k8slongname"), STR_INIT("k8sshortname"), STR_INIT("mac"), STR_INIT("password"), STR_INIT("rgbcolor"),
		STR_INIT("ssn"), STR_INIT("uri"), STR_INIT("uuid"), STR_INIT("uuid3"), STR_INIT("uuid4"), STR_INIT("uuid5"),
	};
	enum { FORMAT_MAX = 64 };
	char plain[FORMAT_MAX];
	size_t n = 0;

	if (str_eq(type, STR("integer")))
		return str_eq(format, STR("int32")) || str_eq(format, STR("int64"));
	if (str_eq(type, STR("number")))
		return str_eq(format, STR("float")) || str_eq(format, STR("double"));
	if ((type.n && !str_eq(type, STR("string"))) || format.n > FORMAT_MAX)
		return false;
	for (size_t i = 0; i < format.n; i++)
		if (format.p[i] != '-')
			plain[n++] = format.p[i];
	for (size_t i = 0; i < ARRAY_LEN(of_strings); i++)
		if (str_eq(of_strings[i], str_span(plain, n)))
			return true;
	return false;
}

/* Calls visit for every format in the schema that is not known. Validation has bounded its depth. */
static void each_unknown_format(struct val schema, unsigned depth, void (*visit)(void *, str), void *arg)
{
	static const uint16_t single[] = { A_items, A_not, A_additionalProperties, A_additionalItems };
	static const uint16_t lists[] = { A_items, A_allOf, A_anyOf, A_oneOf };
	static const uint16_t maps[] = { A_properties, A_patternProperties, A_definitions, A_dependencies };
	str format = val_str(schema, format);

	if (!val_is(schema, VAL_OBJECT) || depth == VAL_RECURSION_MAX)
		return;
	if (format.n && !is_known_format(val_str(schema, type), format))
		visit(arg, format);
	for (size_t i = 0; i < ARRAY_LEN(single); i++)
		each_unknown_format(val_member(schema, single[i]), depth + 1, visit, arg);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(s, val_member(schema, lists[i]))
			each_unknown_format(*s, depth + 1, visit, arg);
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		VAL_EACH_MEMBER(m, val_member(schema, maps[i]))
			each_unknown_format(m->val, depth + 1, visit, arg);
}

static void each_unknown_format_of(struct val definition, void (*visit)(void *, str), void *arg)
{
	VAL_EACH(v, val_get(definition, spec, versions))
		each_unknown_format(val_get(*v, schema, openAPIV3Schema), 0, visit, arg);
}

struct formats {
	struct request *q;
	struct map before;
};

static void keep_format(void *arg, str format) { map_put(&((struct formats *)arg)->before, format, arg); }

static void warn_format(void *arg, str format)
{
	struct formats *f = arg;
	if (!map_get(&f->before, format))
		warnf(f->q, "unrecognized format " STR_FMT, STR_ARG(warn_quoted(f->q, format)));
}

static void warn_definition(struct request *q)
{
	struct formats f = { q, MAP_INIT };
	each_unknown_format_of(q->old, keep_format, &f);
	each_unknown_format_of(q->object, warn_format, &f);
	map_done(&f.before);
}

/* ---- others ---- */

/* Names that are kept for what is read from files. */
static void warn_reserved_name(struct request *q)
{
	if (str_ends(val_str(q->object, metadata, name), STR(".static.k8s.io")))
		warnf(q,
		      "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and "
			 "cannot be managed via the API");
}

static void warn_runtime_class(struct request *q)
{
	VAL_EACH_MEMBER(m, val_get(q->object, scheduling, nodeSelector)) {
		str why = warn_node_label(atom_str(m->key));
		if (why.n)
			warn_at(q, FIELD(FIELD(NULL, "scheduling"), "nodeSelector"), STR_FMT, STR_ARG(why));
	}
}

static void warn_resource_slice(struct request *q)
{
	str driver = val_str(q->object, spec, driver);
	for (size_t i = 0; i < driver.n; i++)
		if (driver.p[i] >= 'A' && driver.p[i] <= 'Z') {
			warnf(q, "spec.driver: driver names should be lowercase; " STR_FMT " contains uppercase characters",
			      STR_ARG(warn_quoted(q, driver)));
			return;
		}
}

#define ADMISSION STR_INIT("admissionregistration.k8s.io")

static const struct warned_kind all[] = {
	{ ADMISSION, STR_INIT("MutatingAdmissionPolicy"), warn_reserved_name, warn_reserved_name, NULL },
	{ ADMISSION, STR_INIT("MutatingAdmissionPolicyBinding"), warn_reserved_name, warn_reserved_name, NULL },
	{ ADMISSION, STR_INIT("MutatingWebhookConfiguration"), warn_reserved_name, warn_reserved_name, NULL },
	{ ADMISSION, STR_INIT("ValidatingAdmissionPolicy"), warn_reserved_name, warn_reserved_name, NULL },
	{ ADMISSION, STR_INIT("ValidatingAdmissionPolicyBinding"), warn_reserved_name, warn_reserved_name, NULL },
	{ ADMISSION, STR_INIT("ValidatingWebhookConfiguration"), warn_reserved_name, warn_reserved_name, NULL },
	{ STR_INIT("apiextensions.k8s.io"), STR_INIT("CustomResourceDefinition"), warn_definition, warn_definition, NULL },
	{ STR_INIT("node.k8s.io"), STR_INIT("RuntimeClass"), warn_runtime_class, warn_runtime_class, NULL },
	{ STR_INIT("resource.k8s.io"), STR_INIT("ResourceSlice"), warn_resource_slice, warn_resource_slice, NULL },
};

const struct warned_set warnings_extensions = { all, ARRAY_LEN(all) };
