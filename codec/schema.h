/*
 * The schema at run time: tables that the build generates from api/ *.api. One schema, many uses: codecs, defaulting, validation,
 * strategic merge, server-side apply, OpenAPI, discovery, explain, and the names that C code may use all read these.
 *
 * In C, a type is named TYPE(core_v1, Pod): group (without its domain), version, name; files that use it include "codec/types.h".
 */
#ifndef C8S_CODEC_SCHEMA_H
#define C8S_CODEC_SCHEMA_H

#include "codec/val.h"

enum field_kind {
	KIND_STRING,
	KIND_BOOL,
	KIND_INT32,
	KIND_INT64,
	KIND_UINT32,
	KIND_UINT64,        /* kept as the int64 of the same bits */
	KIND_DOUBLE,
	KIND_FLOAT,
	KIND_BYTES,         /* base64 text in the tree and in JSON */
	KIND_RAW_BYTES,     /* raw in the tree: etcd and CRI messages; base64 in JSON */
	KIND_ENUM,          /* etcd and CRI: the name in the tree, the number on the wire; a number without a name stays a number */
	KIND_TIME,          /* 2006-01-02T15:04:05Z */
	KIND_MICROTIME,     /* 2006-01-02T15:04:05.000000Z */
	KIND_DURATION,      /* 1m30s */
	KIND_QUANTITY,      /* canonical text */
	KIND_INT_OR_STRING,
	KIND_JSON,          /* any JSON (RawExtension, apiextensions JSON): a free tree; JSON text in a message {bytes raw = 1} */
	KIND_FIELDS,        /* FieldsV1: VAL_RAW; same wire form */
	KIND_STRINGS,       /* a named Go list type: list of strings in JSON, message {repeated string items = 1} */
	KIND_MESSAGE,
};

enum shape {
	SHAPE_ONE,
	SHAPE_LIST,
	SHAPE_MAP,          /* with string keys */
};

enum field_flags {
	FIELD_REQUIRED = 1 << 0,  /* OpenAPI: must be given */
	FIELD_ALWAYS = 1 << 1,    /* written in JSON even when empty: the zero value, or null for a pointer, list, map or bytes */
	FIELD_POINTER = 1 << 2,   /* absent and zero differ; etcd and CRI: so it is with every message and member of a oneof */
	FIELD_NO_WIRE = 1 << 3,   /* not in protobuf */
	FIELD_ONEOF = 1 << 4,     /* etcd and CRI: member of a oneof, of which one is there at most */
	FIELD_MERGE = 1 << 5,     /* strategic merge: lists merge (by facts->merge_key when given, else as a set of primitives) */
	FIELD_RETAIN_KEYS = 1 << 6,
	FIELD_SET = 1 << 7,       /* server-side apply: list kinds; none of them: atomic list */
	FIELD_MAP_LIST = 1 << 8,  /*   ... with facts->map_keys */
	FIELD_ATOMIC = 1 << 9,    /* atomic list, map or struct, said explicitly */
	FIELD_EMBEDDED = 1 << 10, /* JSON: stands in the object around it (flattened), see struct wire */
	FIELD_REPLACE = 1 << 11,  /* strategic merge: replaced as a whole, though it is an object */
	FIELD_GRANULAR = 1 << 12, /* server-side apply: by member, though its type is TYPE_ATOMIC */
	FIELD_DEFAULT = 1 << 13,  /* an absent one gets facts->default_json, which is more than the zero that it has anyway */
};

struct type;

/* What only some fields have and only some uses ask for; many share it. */
struct field_facts {
	str default_json;       /* OpenAPI default, JSON text; n == 0: none */
	str merge_key;
	const atom *map_keys;   /* listMapKeys, ended by 0; or NULL */
	const str *values;      /* enum: closed set, ended by { NULL, 0 }; or NULL */
	const str *known;       /* constants of an open string type, likewise */
	str gate;               /* feature gate */
	str rules;              /* declarative validation tags, as in the .api file: "minimum=0 maxItems=32" */
	str go_type;            /* as error texts name it: "v1.PodPhase", "[]v1.FinalizerName", "v1.ResourceList"; n == 0: the builtin one */
	const struct enum_value *enum_values; /* KIND_ENUM */
};

struct field {
	uint16_t name;          /* atom: also the name in JSON */
	uint16_t number;        /* protobuf field number */
	uint8_t kind;           /* enum field_kind, of the elements for lists and maps */
	uint8_t shape;          /* enum shape */
	uint16_t flags;         /* enum field_flags */
	const struct type *type;           /* KIND_MESSAGE */
	const struct field_facts *facts;   /* never NULL */
	const char *description;           /* never NULL */
};

struct enum_value {
	str name;               /* n == 0 ends the table */
	int32_t number;
};

/* One protobuf field of a message, in the order of numbers. An embedded struct is a nested message on the wire but
 * flattened in JSON: its wire entry has type set, and reads and writes the members of the object around it. */
struct wire {
	uint16_t number;
	uint16_t field;               /* index into type->fields, when embedded is NULL */
	const struct type *embedded;
};

/* JSON forms of a type; all but the first belong to apiextensions. */
enum form {
	FORM_OBJECT,
	FORM_SCHEMA_OR_BOOL,    /* {allows = 1, schema = 2} */
	FORM_SCHEMA_OR_ARRAY,   /* {schema = 1, JSONSchemas = 2} */
	FORM_SCHEMA_OR_STRINGS, /* {schema = 1, property = 2} */
};

enum type_flags {
	TYPE_KIND = 1 << 0,     /* a kind of its own: has apiVersion and kind, travels in the protobuf envelope */
	TYPE_LIST = 1 << 1,     /* a list kind: metadata is ListMeta, has items */
	TYPE_PROTO3 = 1 << 2,   /* etcd and CRI: zero scalars are not written, repeated numbers are packed */
	TYPE_ATOMIC = 1 << 3,   /* server-side apply: replaced as a whole */
	TYPE_DEFAULTS = 1 << 4, /* it or what is in it has a FIELD_DEFAULT */
};

/* Where types are: thousands of them are in few packages. */
struct type_package {
	str name;               /* core/v1: as the schema files and Kubernetes' protobuf packages name it */
	str group, version;     /* "" and "v1" for core; "apps", "v1"; full group names such as "networking.k8s.io" */
};

struct type {
	str name;               /* Pod */
	const struct type_package *package;
	uint8_t form;           /* enum form */
	uint8_t flags;          /* enum type_flags */
	uint16_t n_fields, n_wire;
	uint16_t slot_mask;     /* size of slots minus 1 */
	uint32_t slot_mult;
	const struct field *fields; /* in JSON order, embedded ones flattened */
	const struct wire *wire;    /* in the order of numbers */
	const uint16_t *slots;      /* perfect hash: atom -> index + 1, see type_field */
	str zero_json;          /* the JSON of the zero value */
	str zero_wire;          /* its protobuf bytes */
	const char *description;
};

/* The field of that name, or NULL. */
static inline const struct field *type_field(const struct type *t, atom name)
{
	if (name >= ATOM_LIMIT || !t->slots)
		return NULL;
	unsigned slot = t->slots[((uint32_t)name * t->slot_mult >> 16) & t->slot_mask];
	return slot && t->fields[slot - 1].name == name ? &t->fields[slot - 1] : NULL;
}

/* Kinds by apiVersion ("v1", "apps/v1") and kind; NULL if there is none. */
const struct type *schema_kind(str api_version, str kind);
/* Any type by "core/v1.PodSpec"; NULL if there is none. */
const struct type *schema_type(str full_name);
/* The apiVersion of a kind: "v1" or "group/version". */
str type_api_version(struct arena *a, const struct type *t);

/* All types, sorted by package and name; all resources in the order of discovery. */
extern const struct type *const schema_types[];
extern const size_t schema_n_types;

/* A group and version that has resources, in the order of discovery. */
struct api_version {
	str group, version;
	uint16_t group_priority, version_priority; /* as in APIService.spec */
};

extern const struct api_version schema_api_versions[];
extern const size_t schema_n_api_versions;

enum resource_flags {
	RESOURCE_NAMESPACED = 1 << 0,
	RESOURCE_PROTOBUF = 1 << 1, /* stored as protobuf, else JSON */
	RESOURCE_DEFAULT = 1 << 2,  /* served without --runtime-config */
};

enum verb {
	VERB_CREATE = 1 << 0, VERB_DELETE = 1 << 1, VERB_DELETE_COLLECTION = 1 << 2, VERB_GET = 1 << 3,
	VERB_LIST = 1 << 4, VERB_PATCH = 1 << 5, VERB_UPDATE = 1 << 6, VERB_WATCH = 1 << 7,
};

/* A resource or subresource of the API. */
struct resource {
	str group, version, name;       /* name: "pods" or "pods/status" */
	str singular;
	str kind;
	const struct type *type;        /* what it answers with; NULL for streams and options */
	uint16_t flags, verbs;
	const str *short_names, *categories; /* ended by { NULL, 0 } */
	str response_group, response_version, response_kind;
	str key_prefix;                 /* under /registry/: "pods", "services/specs", ... ; n == 0: not stored */
	str storage_version;            /* group/version of the stored form */
	str storage_hash;               /* storageVersionHash */
};

extern const struct resource schema_resources[];
extern const size_t schema_n_resources;

/* The resource that answers with objects of this type: the one itself (subresource ""), or its "status", "scale", ...; or NULL. */
const struct resource *schema_resource(const struct type *type, str subresource);
/* Whether objects of this kind live in namespaces; kinds that only occur as subresources, such as Scale, are as their resources are. */
bool type_is_namespaced(const struct type *type);

/* One gRPC method of etcd or CRI. */
struct rpc {
	str path;                       /* /runtime.v1.RuntimeService/Version */
	const struct type *request, *response;
	bool stream_request, stream_response;
};

#define TYPE(package_, name_) (&type_##package_##_##name_)

#endif
