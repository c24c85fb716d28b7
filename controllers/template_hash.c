/*
 * Kubernetes hashes (FNV-1a) what a Go library prints of the template in memory: names and types of all fields in the order of their declaration,
 * whether set or not. The schema has that order, pointers and the names of types; names of fields are those of JSON with a capital letter, but
 * for a table of others. The text is hashed as it comes; it is never there as a whole. Types of templates are not recursive.
 */
#include "controllers/template_hash.h"

#include <stdlib.h>
#include <string.h>

#include "codec/quantity.h"
#include "codec/schema.h"
#include "codec/types.h"

struct dump {
	struct arena *arena;
	uint32_t hash;
};

static void add(struct dump *d, str text)
{
	for (size_t i = 0; i < text.n; i++)
		d->hash = (d->hash ^ (uint8_t)text.p[i]) * UINT32_C(16777619);
}

#define ADD(d, literal) add(d, STR(literal))

static void add_int(struct dump *d, int64_t n) { add(d, arena_printf(d->arena, "%lld", (long long)n)); }

/* ---- names ---- */

/* Names of fields that do not just begin with a capital. */
static const struct { const char *type, *json, *go; } other_names[] = {
	{ NULL, "apiGroup", "APIGroup" }, { NULL, "apiVersion", "APIVersion" }, { NULL, "awsElasticBlockStore", "AWSElasticBlockStore" },
	{ NULL, "cephfs", "CephFS" }, { NULL, "chapAuthDiscovery", "DiscoveryCHAPAuth" }, { NULL, "chapAuthSession", "SessionCHAPAuth" },
	{ NULL, "csi", "CSI" }, { NULL, "diskURI", "DataDiskURI" }, { NULL, "dnsConfig", "DNSConfig" }, { NULL, "dnsPolicy", "DNSPolicy" },
	{ NULL, "fc", "FC" }, { NULL, "fsGroup", "FSGroup" }, { NULL, "fsGroupChangePolicy", "FSGroupChangePolicy" }, { NULL, "fsType", "FSType" },
	{ NULL, "gcePersistentDisk", "GCEPersistentDisk" }, { NULL, "gmsaCredentialSpec", "GMSACredentialSpec" },
	{ NULL, "gmsaCredentialSpecName", "GMSACredentialSpecName" }, { NULL, "grpc", "GRPC" }, { NULL, "httpGet", "HTTPGet" },
	{ NULL, "httpHeaders", "HTTPHeaders" }, { NULL, "ip", "IP" }, { NULL, "iqn", "IQN" }, { NULL, "iscsi", "ISCSI" },
	{ NULL, "iscsiInterface", "ISCSIInterface" }, { NULL, "metadata", "ObjectMeta" }, { NULL, "nfs", "NFS" }, { NULL, "os", "OS" },
	{ NULL, "pdName", "PDName" }, { NULL, "rbd", "RBD" }, { NULL, "seLinuxChangePolicy", "SELinuxChangePolicy" },
	{ NULL, "seLinuxOptions", "SELinuxOptions" }, { NULL, "sslEnabled", "SSLEnabled" }, { NULL, "storageos", "StorageOS" },
	{ NULL, "tcpSocket", "TCPSocket" }, { NULL, "tty", "TTY" }, { NULL, "uid", "UID" }, { NULL, "wwids", "WWIDs" },
	{ "GlusterfsVolumeSource", "endpoints", "EndpointsName" }, { "PodSpec", "serviceAccount", "DeprecatedServiceAccount" },
	{ "RBDVolumeSource", "image", "RBDImage" }, { "RBDVolumeSource", "monitors", "CephMonitors" }, { "RBDVolumeSource", "pool", "RBDPool" },
	{ "RBDVolumeSource", "user", "RadosUser" },
};

static void add_name(struct dump *d, const struct type *type, const struct field *f)
{
	str name = atom_str(f->name);

	for (size_t i = 0; i < ARRAY_LEN(other_names); i++) {
		const char *of = other_names[i].type;
		if (str_eq(name, str_of(other_names[i].json)) && (!of || str_eq(type->name, str_of(of)))) {
			add(d, str_of(other_names[i].go));
			return;
		}
	}
	char first = name.p[0] >= 'a' && name.p[0] <= 'z' ? (char)(name.p[0] - 'a' + 'A') : name.p[0];
	add(d, str_span(&first, 1));
	add(d, str_skip(name, 1));
}

static const char *const kind_names[] = {
	[KIND_STRING] = "string", [KIND_BOOL] = "bool", [KIND_INT32] = "int32", [KIND_INT64] = "int64", [KIND_TIME] = "v1.Time",
	[KIND_QUANTITY] = "resource.Quantity", [KIND_INT_OR_STRING] = "intstr.IntOrString", [KIND_FIELDS] = "v1.FieldsV1",
};

static bool is_pointer(const struct field *f) { return f->shape == SHAPE_ONE && f->flags & FIELD_POINTER; }

static void add_type(struct dump *d, const struct field *f)
{
	add(d, is_pointer(f) ? STR("(*") : STR("("));
	if (f->facts->go_type.n) {
		add(d, f->facts->go_type);
	} else {
		add(d, f->shape == SHAPE_LIST ? STR("[]") : f->shape == SHAPE_MAP ? STR("map[string]") : STR_NONE);
		if (f->kind == KIND_MESSAGE)
			ADD(d, "v1.");
		add(d, f->kind == KIND_MESSAGE ? f->type->name : str_of(kind_names[f->kind]));
	}
	ADD(d, ")");
}

/* ---- values ---- */

/* The power of ten, or of two with a BinarySI suffix. */
static int64_t suffix_exponent(str suffix, enum quantity_format format)
{
	static const char units[] = "num kMGTPE";

	if (format == QUANTITY_DECIMAL_EXPONENT)
		return strtoll(suffix.p + 1, NULL, 10);
	const char *unit = suffix.n ? strchr(units, suffix.p[0] == 'K' ? 'k' : suffix.p[0]) : NULL;
	int64_t thousands = unit ? unit - units - 3 : 0;
	return format == QUANTITY_BINARY_SI ? 10 * thousands : 3 * thousands;
}

/* Does Kubernetes keep the text beside the number? It does if it is sure to be the canonical one. */
static bool keeps_text(str digits, int64_t value, int64_t exponent, enum quantity_format format)
{
	if (format == QUANTITY_BINARY_SI)
		return value & 7;
	return exponent % 3 == 0 && !str_ends(digits, STR("000")) && digits.p[0] != '0';
}

/* One that does not fit: a large number of nano units, in words of 64 bits from the lowest on. */
static void add_large(struct dump *d, quantity_nanos nanos)
{
	__extension__ unsigned __int128 n = nanos < 0 ? -(unsigned __int128)nanos : (unsigned __int128)nanos;

	add(d, arena_printf(d->arena, "{unscaled:(big.Int){neg:(bool)%s abs:(big.nat)[%llu", nanos < 0 ? "true" : "false", (unsigned long long)n));
	if (n >> 64)
		add(d, arena_printf(d->arena, " %llu", (unsigned long long)(n >> 64)));
	ADD(d, "]} scale:(inf.Scale)9}");
}

/* text is canonical, as all quantities of stored objects are: an integer with a suffix. */
static void add_quantity(struct dump *d, str text)
{
	static const char *const formats[] = { [QUANTITY_DECIMAL_SI] = "DecimalSI", [QUANTITY_BINARY_SI] = "BinarySI",
					       [QUANTITY_DECIMAL_EXPONENT] = "DecimalExponent" };
	struct quantity q = { .format = QUANTITY_DECIMAL_SI };
	bool negative = str_starts(text, STR("-")), zero = str_eq(text, STR("0"));
	str digits = str_skip(text, negative), suffix;
	size_t n = 0;

	(void)quantity_parse(text, &q, NULL);
	while (n < digits.n && digits.p[n] >= '0' && digits.p[n] <= '9')
		n++;
	suffix = arena_join(d->arena, str_skip(digits, n), STR_NONE);
	digits = str_head(digits, n);
	int64_t exponent = suffix_exponent(suffix, q.format), value = strtoll(arena_join(d->arena, digits, STR_NONE).p, NULL, 10), scale = 0;
	bool binary = q.format == QUANTITY_BINARY_SI, large = binary ? 14 - (int64_t)n - exponent * 3 / 10 < 0 : n > 18;
	bool text_too = zero || (!large && keeps_text(digits, value, exponent, q.format));
	if (binary)
		value = (int64_t)((uint64_t)value << exponent);
	else
		scale = exponent;
	ADD(d, "{i:(resource.int64Amount){value:(int64)");
	add_int(d, large ? 0 : negative ? -value : value);
	ADD(d, " scale:(resource.Scale)");
	add_int(d, large ? 0 : scale);
	ADD(d, "} d:(resource.infDecAmount){Dec:(*inf.Dec)");
	if (large)
		add_large(d, q.nanos);
	else
		ADD(d, "<nil>");
	ADD(d, "} s:(string)");
	add(d, text_too ? text : STR_NONE);
	ADD(d, " Format:(resource.Format)");
	add(d, str_of(formats[q.format]));
	ADD(d, "}");
}

static void add_int_or_string(struct dump *d, struct val v)
{
	bool text = v.type == VAL_STRING;

	ADD(d, "{Type:(intstr.Type)");
	add_int(d, text);
	ADD(d, " IntVal:(int32)");
	add_int(d, text ? 0 : val_as_int(v));
	ADD(d, " StrVal:(string)");
	add(d, text ? val_as_str(v) : STR_NONE);
	ADD(d, "}");
}

static void add_message(struct dump *d, const struct type *type, struct val v);

/* Without its type. */
static void add_value(struct dump *d, const struct field *f, struct val v)
{
	switch (f->kind) {
	case KIND_BOOL:
		add(d, val_as_bool(v) ? STR("true") : STR("false"));
		return;
	case KIND_INT32:
	case KIND_INT64:
		add_int(d, val_as_int(v));
		return;
	case KIND_TIME: /* a template that has one is like no other: where it is printed decides how */
		ADD(d, "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}");
		add(d, val_as_str(v));
		return;
	case KIND_QUANTITY:
		add_quantity(d, val_exists(v) ? val_as_str(v) : STR("0"));
		return;
	case KIND_INT_OR_STRING:
		add_int_or_string(d, v);
		return;
	case KIND_MESSAGE:
		add_message(d, f->type, v);
		return;
	default:
		add(d, val_as_str(v));
	}
}

static void add_field(struct dump *d, const struct field *f, struct val v)
{
	const char *between = "";

	add_type(d, f);
	if (f->shape == SHAPE_ONE ? is_pointer(f) && !val_exists(v) : val_len(v) == 0) {
		ADD(d, "<nil>");
	} else if (f->shape == SHAPE_ONE) {
		add_value(d, f, v);
	} else if (f->shape == SHAPE_LIST) {
		ADD(d, "[");
		VAL_EACH(item, v) {
			add(d, str_of(between));
			add_value(d, f, *item);
			between = " ";
		}
		ADD(d, "]");
	} else {
		ADD(d, "map[");
		VAL_EACH_MEMBER(m, val_sorted(d->arena, v)) {
			add(d, str_of(between));
			add(d, atom_str(m->key));
			ADD(d, ":");
			add_value(d, f, m->val);
			between = " ";
		}
		ADD(d, "]");
	}
}

/* The embedded type that this field is of; NULL: it is the type's own. */
static const struct type *embedded_of(const struct type *type, const struct field *f)
{
	if (!(f->flags & FIELD_EMBEDDED))
		return NULL;
	for (size_t i = 0; i < type->n_wire; i++)
		if (type->wire[i].embedded && type_field(type->wire[i].embedded, f->name))
			return type->wire[i].embedded;
	return NULL;
}

static void add_message(struct dump *d, const struct type *type, struct val v)
{
	ADD(d, "{");
	for (size_t i = 0, n; i < type->n_fields; i += n) {
		const struct field *f = &type->fields[i];
		const struct type *inner = embedded_of(type, f);
		add(d, i ? STR(" ") : STR_NONE);
		n = inner ? inner->n_fields : 1;
		if (inner) {
			add(d, inner->name);
			ADD(d, ":(v1.");
			add(d, inner->name);
			ADD(d, ")");
			add_message(d, inner, v);
		} else {
			add_name(d, type, f);
			ADD(d, ":");
			add_field(d, f, val_member(v, f->name));
		}
	}
	ADD(d, "}");
}

str template_hash(struct arena *a, struct val template, int64_t collision_count)
{
	static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789"; /* without vowels, so that no words come out */
	struct dump d = { .arena = a, .hash = UINT32_C(2166136261) };

	ADD(&d, "(v1.PodTemplateSpec)");
	add_message(&d, TYPE(core_v1, PodTemplateSpec), template);
	if (collision_count > 0) {
		char count[8] = { 0 };
		for (int i = 0; i < 4; i++)
			count[i] = (char)(collision_count >> (8 * i));
		add(&d, str_span(count, sizeof(count)));
	}
	str digits = arena_printf(a, "%u", d.hash);
	char *text = arena_alloc(a, digits.n + 1, 1);
	for (size_t i = 0; i < digits.n; i++)
		text[i] = alphabet[(uint8_t)digits.p[i] % (sizeof(alphabet) - 1)];
	text[digits.n] = '\0';
	return str_span(text, digits.n);
}
