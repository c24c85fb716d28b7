/*
 * Assembling a typed tree from a stream of events (key, open, close, scalar), private to this folder. The JSON
 * decoder drives it from text, val_canonical from a free tree: what fits a field, what is dropped and what Kubernetes
 * says about misfits is decided here once.
 *
 * Frames and finished members wait on two growing stacks; a list or object is copied into the arena when it closes. A
 * member that occurs twice is decoded into the first one, as Go does: structs and maps merge, lists element by
 * element.
 */
#ifndef C8S_CODEC_ASSEMBLE_H
#define C8S_CODEC_ASSEMBLE_H

#include "codec/json.h"

/* Elements of a JSON list that stands for bytes; beside enum field_kind. */
enum { KIND_UINT8 = KIND_MESSAGE + 1 };

enum token { TOKEN_NULL, TOKEN_BOOL, TOKEN_NUMBER, TOKEN_STRING, TOKEN_LIST, TOKEN_OBJECT };

/* A JSON value that is neither list nor object. */
struct scalar {
	uint8_t token;       /* enum token */
	bool b;
	bool integer;        /* a number that fits int64; i holds it */
	int64_t i;
	str text;            /* of a string; the literal of a number */
	str raw;             /* of a string: as it stands between the quotes */
};

/* What the next value is for. */
struct target {
	uint8_t kind;        /* enum field_kind; KIND_JSON inside free trees */
	uint8_t shape;       /* enum shape */
	uint16_t flags;      /* enum field_flags */
	bool element;        /* of a list or map: always kept, null becomes the zero value */
	const struct type *type;   /* KIND_MESSAGE */
	const struct field *field; /* for names; NULL for the root and inside free trees */
};

/*
 * Why a value does not fit: a type error that gets a path, or a ready text. Fatal errors win over earlier others, as
 * in Go.
 */
struct misfit {
	bool fatal;
	str value;           /* "string", "number 1.5"; n == 0: text is set instead */
	str go_type;
	str text;            /* in the arena */
};

struct slot {
	struct val val;
	atom key;
	uint32_t order;      /* index of the field, or place in the input */
};

enum frame_kind { FRAME_STRUCT, FRAME_MAP, FRAME_LIST, FRAME_BYTES, FRAME_FREE_OBJECT, FRAME_FREE_LIST };

enum { SEEN_WORDS = 4, NO_SLOT = UINT32_MAX };

/* An open list or object. */
struct frame {
	uint8_t kind;        /* enum frame_kind */
	bool unsorted;       /* members came in another order than they shall stand in */
	bool merging;        /* began with the content of an earlier value of the same field */
	bool holes;          /* a member was taken away again */
	bool form;           /* stands for a type with a JSON form of its own */
	uint32_t base;       /* its first slot */
	uint32_t order;      /* struct: index of the current field */
	uint32_t existing;   /* slot of an earlier value for the current key, or NO_SLOT */
	atom key;            /* the current key; 0 when only text is known */
	str key_text;        /* map and free object: its text */
	const struct type *type;     /* struct */
	struct target target;        /* what the list or object itself is for */
	struct val old;              /* list: the earlier value whose elements are decoded into */
	str outer_saved;             /* form: saved error of what is around it */
	uint64_t seen[SEEN_WORDS];   /* struct: fields that occurred */
};

struct assembly {
	struct arena *arena;
	struct strict_errors *strict;
	bool sort_free;      /* members of free objects are sorted and unique */
	bool free_root;      /* no type at all: duplicate keys are reported */
	bool failed;         /* a fatal error: stop */
	bool recheck_kind;   /* the root has another member that Go would take for kind or apiVersion */
	unsigned forms;      /* JSON forms (enum form) around the current value: no strictness inside them, as in Go */
	struct target target;
	struct frame *top;   /* NULL outside of the root */
	struct frame *frames;
	struct slot *slots;  /* members and items of all open frames */
	uint32_t n_frames, cap_frames, n_slots, cap_slots;
	void *first;         /* one allocation for the first frames and slots */
	struct val result;
	str saved;           /* the first error that is not fatal, of the innermost form */
	str fatal;
	uint32_t clock;      /* counts keys */
	uint64_t merged;     /* members that were copied because their object occurred again */
	uint32_t n_noted;    /* strict errors, those that were known already included */
	size_t strict_base;  /* strict errors from here on are ours */
	uint32_t strict_when[STRICT_ERRORS_MAX]; /* their clock: those of a map are found only at its end */
};

/* type NULL: a free tree. */
void assembly_init(struct assembly *as, struct arena *a, const struct type *type, struct strict_errors *strict);
void assembly_done(struct assembly *as);

/*
 * The next member's key; key is its atom if the caller has it, else 0. False: the schema does not know it, and the
 * caller passes over its value without any event.
 */
bool assembly_key(struct assembly *as, str text, atom key);
/* Begins a list or object. False: it does not fit (or the assembly failed), and the caller passes over it. */
bool assembly_open(struct assembly *as, bool object);
void assembly_close(struct assembly *as);
void assembly_scalar(struct assembly *as, const struct scalar *s);
/* The value of a KIND_FIELDS target: compact JSON text. */
void assembly_raw(struct assembly *as, str text);
/* True for kind and apiVersion and what Go takes for them when it ignores case. */
bool assembly_is_kind_key(str text);

/* A finished value for the current target. */
void assembly_deliver(struct assembly *as, struct val v);
/* A value that does not fit the current target. */
void assembly_misfit(struct assembly *as, const struct misfit *m);

/* After the last event: the tree and the strict errors, or -ERR_BAD_REQUEST with Go's message. */
int assembly_finish(struct assembly *as, struct val *ret, struct err *err);

/* ---- json_decode.c ---- */

/*
 * json_decode, which also tells in *ret_recheck that the kind has to be searched for (see recheck_kind; also after
 * syntax errors).
 */
int json_decode_kind(struct arena *a, str text, const struct json_decode_options *opt, struct val *ret,
		     bool *ret_recheck, struct err *err);

/* ---- json_strict.c: paths and messages ---- */

/* Notes a field of the innermost frame that is unknown or occurs again, in the order of the clock. */
void strict_note(struct assembly *as, const char *what, str field, uint32_t clock);
/* Go's text of a type error at the current target. */
str misfit_message(struct assembly *as, const struct misfit *m);

/* ---- scalar.c: one value, one kind ---- */

/* The value of s for a target that is no list, map, message or free tree. False: m says why not. */
bool scalar_fit(struct arena *a, const struct target *t, const struct scalar *s, struct val *ret, struct misfit *m);
/* The same for a list or object where a scalar belongs. */
void scalar_misfit(struct arena *a, const struct target *t, enum token token, struct misfit *m);
/* The zero value, as an element that is null in the input becomes. */
struct val scalar_zero(const struct target *t);
/* Whether a value must be kept in a typed tree; false for zeros that Go could not tell from an absent field. */
bool target_keeps(const struct target *t, struct val v);
/* The Go type of a target's value: string, []v1.Container, map[string]string. */
str target_go_type(struct arena *a, const struct target *t);

#endif
