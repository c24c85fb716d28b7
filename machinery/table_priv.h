/*
 * How tables are written. A kind is an array of columns, and a column says where its cell comes from:
 *
 *	static const struct column lease[] = {
 *		NAME,
 *		COLUMN("Holder", "string", 0, "Who holds the lease", TEXT(spec, holderIdentity)),
 *		AGE,
 *	};
 *
 * Most cells are the value at a path, in one of the forms below; the others have a function. Each file lists its kinds in
 * a struct table_set, which table.c knows.
 */
#ifndef C8S_MACHINERY_TABLE_PRIV_H
#define C8S_MACHINERY_TABLE_PRIV_H

#include "codec/atoms.h"
#include "machinery/table.h"

struct jsonpath;

/* A row in the making. */
struct row {
	struct arena *arena;
	struct val object;
	int64_t now_ns;
	const void *facts; /* what table->prepare made */
};

enum cell_form {
	CELL_TEXT,     /* text, or a number as text */
	CELL_NUMBER,   /* 0 when absent */
	CELL_BOOL,
	CELL_COUNT,    /* of items or members */
	CELL_JOINED,   /* a list of texts, "," between them */
	CELL_SINCE,    /* age of a time */
	CELL_LABELS,   /* a map as a=b,c=d */
	CELL_SELECTOR, /* a LabelSelector */
	CELL_NAMES,    /* of a list of containers */
	CELL_IMAGES,
	CELL_CALL,
	CELL_JSONPATH, /* custom resources */
};

struct column {
	str name, type, format, description;
	int priority;
	enum cell_form form;
	struct {
		const atom *atoms;
		size_t n;
	} path;
	str otherwise;                          /* the cell when there is nothing at the path; NULL: as its form says */
	struct val (*call)(const struct row *);
	const struct jsonpath *jsonpath;
	bool unlisted;                          /* rows have the cell, but it is not among the column definitions */
};

struct table {
	str group, kind;
	const struct column *columns;
	size_t n;
	const void *(*prepare)(const struct row *);        /* work that several cells share; may be NULL */
	struct val (*conditions)(const struct row *);      /* may be NULL */
	table_rank_fn *rank;                               /* may be NULL */
};

#define COLUMN_WITH_FORMAT(name_, type_, format_, priority_, description_, ...)                                              \
	{ .name = STR_INIT(name_), .type = STR_INIT(type_), .format = STR_INIT(format_), .description = STR_INIT(description_), \
	  .priority = priority_, __VA_ARGS__ }
#define COLUMN(name_, type_, priority_, description_, ...) \
	COLUMN_WITH_FORMAT(name_, type_, "", priority_, description_, __VA_ARGS__)

#define AT(...) .path = { ATOM_PATH(__VA_ARGS__) }
#define TEXT(...) .form = CELL_TEXT, AT(__VA_ARGS__)
#define NUMBER(...) .form = CELL_NUMBER, AT(__VA_ARGS__)
#define BOOL(...) .form = CELL_BOOL, AT(__VA_ARGS__)
#define COUNT(...) .form = CELL_COUNT, AT(__VA_ARGS__)
#define JOINED(...) .form = CELL_JOINED, AT(__VA_ARGS__)
#define SINCE(...) .form = CELL_SINCE, AT(__VA_ARGS__)
#define LABELS(...) .form = CELL_LABELS, AT(__VA_ARGS__)
#define SELECTOR(...) .form = CELL_SELECTOR, AT(__VA_ARGS__)
#define NAMES(...) .form = CELL_NAMES, AT(__VA_ARGS__)
#define IMAGES(...) .form = CELL_IMAGES, AT(__VA_ARGS__)
#define CALL(function) .form = CELL_CALL, .call = function
/* Behind one of these: what stands there instead of nothing. */
#define OR(missing) .otherwise = STR_INIT(missing)
#define UNLISTED .unlisted = true

#define NAME_TEXT                                                                                               \
	"Name must be unique within a namespace. Is required when creating resources, although some resources " \
	"may allow a client to request the generation of an appropriate name automatically. Name is primarily " \
	"intended for creation idempotence and configuration definition. Cannot be updated. More info: "        \
	"https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
#define AGE_TEXT                                                                                                \
	"CreationTimestamp is a timestamp representing the server time when this object was created. It is "    \
	"not guaranteed to be set in happens-before order across separate operations. Clients may not set "     \
	"this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. "  \
	"Null for lists. More info: "                                                                           \
	"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
#define NAME COLUMN_WITH_FORMAT("Name", "string", "name", 0, NAME_TEXT, TEXT(metadata, name))
#define AGE COLUMN("Age", "string", 0, AGE_TEXT, SINCE(metadata, creationTimestamp))
#define REPLICA_COUNTS                                                                                          \
	COLUMN("Desired", "integer", 0,                                                                         \
	       "Replicas is the number of desired replicas. This is a pointer to distinguish between explicit " \
	       "zero and unspecified. Defaults to 1. More info: "                                               \
	       "https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller", \
	       NUMBER(spec, replicas)),                                                                         \
	COLUMN("Current", "integer", 0,                                                                         \
	       "Replicas is the most recently observed number of replicas. More info: "                         \
	       "https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller", \
	       NUMBER(status, replicas)),                                                                       \
	COLUMN("Ready", "integer", 0,                                                                           \
	       "The number of ready replicas for this replication controller.",                                 \
	       NUMBER(status, readyReplicas))
/* The containers of a pod template. */
#define CONTAINERS(...) COLUMN("Containers", "string", 1, "Names of each container in the template.", NAMES(__VA_ARGS__))
#define CONTAINER_IMAGES(...) COLUMN("Images", "string", 1, "Images referenced by each container in the template.", IMAGES(__VA_ARGS__))

#define TABLE(group_, kind_, columns_) \
	{ .group = STR_INIT(group_), .kind = STR_INIT(kind_), .columns = columns_, .n = ARRAY_LEN(columns_) }

struct table_set {
	const struct table *all;
	size_t n;
};

#define TABLE_SET(name) const struct table_set name = { name##_all, ARRAY_LEN(name##_all) }

extern const struct table_set tables_core, tables_network, tables_policy, tables_resource, tables_storage, tables_workload;

/* ---- for cells ---- */

/* text in lower case. */
str cell_lower(struct arena *a, str text);
/* Addresses or host names of a load balancer's status, sorted, each once, with "," between them. */
str cell_load_balancer(struct arena *a, struct val ingress);
/* The texts sorted, each once, with "," between them. Puts all into order. */
str cell_sorted_set(struct arena *a, str *all, size_t n);
/* A cell from a format. */
struct val cell_printf(const struct row *row, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Time since v, "<unknown>" when there is no time. */
str cell_since(const struct row *row, struct val time);
/* A duration as kubectl shows it, in the arena. */
str cell_duration(struct arena *a, int64_t ns);
/* "name.group", or just the name when there is no group. */
str cell_qualified(struct arena *a, str name, str group);
/* v, or other when there is no text in it. */
str cell_text_or(struct val v, str other);
/* The texts of a list (field 0), or of one field of each of its items, with sep between them. */
str cell_join(struct arena *a, struct val list, atom field, const char *sep);
/* The first condition of this type, VAL_NONE if there is none; and whether it is there with status True. */
struct val cell_condition(struct val conditions, str type);
bool cell_condition_is_true(struct val conditions, str type);
bool cell_is_deleted(const struct row *row);
/* The annotation of that name, "" if there is none. */
str cell_annotation(const struct row *row, str name);

/* A list of which only the first ones are shown: "a,b,c + 2 more...". */
struct cell_few {
	struct arena *arena;
	str shown;
	size_t n, max, count; /* shown, at most shown, seen */
};

void cell_few_add(struct cell_few *f, str item);
/* From now on only count matters. */
bool cell_few_is_full(const struct cell_few *f);
/* The text; otherwise when nothing was added. */
str cell_few_text(const struct cell_few *f, str otherwise);

#endif
