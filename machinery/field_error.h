/*
 * Errors of validation: where, what kind, which value, why. All of an object's errors are gathered, then become one Status
 * in Kubernetes' form. Texts are put into the arena that field_errors_init was given.
 *
 * A path is a chain of structs on the C stack, so that naming a place costs nothing until there is an error:
 *
 *	static void check_port(struct field_errors *e, const struct field_path *at, struct val port)
 *	{
 *		if (val_int(port, containerPort) == 0)
 *			field_required(e, FIELD(at, "containerPort"), "");
 *	}
 *	check_port(e, FIELD_INDEX(FIELD(at, "ports"), i), port);
 */
#ifndef C8S_MACHINERY_FIELD_ERROR_H
#define C8S_MACHINERY_FIELD_ERROR_H

#include "codec/schema.h"

/* One row per type: the reason of a Status cause, the text in messages, and whether the value is shown there. */
#define FIELD_ERROR_TYPES(X)                                           \
	X(NOT_FOUND, "FieldValueNotFound", "Not found", true)          \
	X(REQUIRED, "FieldValueRequired", "Required value", false)     \
	X(DUPLICATE, "FieldValueDuplicate", "Duplicate value", true)   \
	X(INVALID, "FieldValueInvalid", "Invalid value", true)         \
	X(NOT_SUPPORTED, "FieldValueNotSupported", "Unsupported value", true) \
	X(FORBIDDEN, "FieldValueForbidden", "Forbidden", false)        \
	X(TOO_LONG, "FieldValueTooLong", "Too long", false)            \
	X(TOO_SHORT, "FieldValueTooShort", "Too short", false)         \
	X(TOO_MANY, "FieldValueTooMany", "Too many", true)             \
	X(TOO_FEW, "FieldValueTooFew", "Too few", true)                \
	X(INTERNAL, "InternalError", "Internal error", false)          \
	X(TYPE_INVALID, "FieldValueTypeInvalid", "Invalid value", true)

enum field_error_type {
#define FIELD_ERROR_ENUM(name, reason, text, shows) FIELD_ERROR_##name,
	FIELD_ERROR_TYPES(FIELD_ERROR_ENUM)
#undef FIELD_ERROR_ENUM
};

/* One step of a path: a name, a [key] or an [index]. */
struct field_path {
	const struct field_path *parent;
	str name;
	int64_t index;
	enum { STEP_NAME, STEP_KEY, STEP_INDEX } step;
};

#define FIELD(parent_, literal) (&(const struct field_path){ (parent_), STR_INIT(literal), 0, STEP_NAME })
#define FIELD_STR(parent_, name_) (&(const struct field_path){ (parent_), (name_), 0, STEP_NAME })
#define FIELD_KEY(parent_, key_) (&(const struct field_path){ (parent_), (key_), 0, STEP_KEY })
#define FIELD_INDEX(parent_, i_) (&(const struct field_path){ (parent_), STR_NONE, (int64_t)(i_), STEP_INDEX })

/* "spec.containers[0].ports[http]"; "<nil>" for NULL, as Kubernetes prints a missing path. */
str field_path_text(struct arena *a, const struct field_path *path);

struct field_error {
	enum field_error_type type;
	str field;           /* path as text */
	str body;            /* "Invalid value: \"x\": must be ..." */
};

/* A list that ends at so many errors or bytes: an object full of mistakes gets a long answer, not an endless one. */
enum { FIELD_ERRORS_MAX = 1000, FIELD_ERRORS_SIZE_MAX = 8 << 20 };

struct field_errors {
	struct arena *arena;
	struct field_error *list;
	size_t n, cap, size; /* errors, room for them, bytes of their bodies */
	bool no_privileged;  /* the cluster's policy: pods may not be privileged (validate_pod*.c) */
	struct val gates;    /* what is said of feature gates (gates.h), for rules that they change; VAL_EMPTY: nothing */
};

void field_errors_init(struct field_errors *e, struct arena *a);

void field_required(struct field_errors *e, const struct field_path *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
void field_invalid(struct field_errors *e, const struct field_path *at, struct val value, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void field_forbidden(struct field_errors *e, const struct field_path *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
void field_duplicate(struct field_errors *e, const struct field_path *at, struct val value);
void field_not_found(struct field_errors *e, const struct field_path *at, struct val value);
/* supported: the allowed values in the order to be shown, ended by { NULL, 0 }. */
void field_not_supported(struct field_errors *e, const struct field_path *at, struct val value, const str *supported);
/* "Too long: may not be more than N bytes" */
void field_too_long(struct field_errors *e, const struct field_path *at, int64_t max_bytes);
/* "Too many: 3: must have at most 2 items" */
void field_too_many(struct field_errors *e, const struct field_path *at, int64_t n, int64_t max);
void field_internal(struct field_errors *e, const struct field_path *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Any type with any detail, for combinations that have no function of their own. */
void field_error_add(struct field_errors *e, enum field_error_type type, const struct field_path *at, struct val value,
		     const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Given as a value: the error shows none. */
#define FIELD_VALUE_OMITTED ((struct val){ .type = VAL_RAW })

/* Reason of the Status cause: FieldValueRequired, ... */
const char *field_error_reason(enum field_error_type type);
/* The texts "field: body" with ", " between them, equal ones once; *ret_n is how many that are. */
str field_errors_join(const struct field_errors *e, size_t *ret_n);
/* The same, in brackets if there are several: for all that answers with a plain error. */
str field_errors_plain(const struct field_errors *e);
/*
 * The message of the Status: Pod "web" is invalid: [a: Required value, b: Invalid value: ...]; equal errors are shown
 * once.
 */
str field_errors_message(const struct field_errors *e, const struct type *type, str name);

#endif
