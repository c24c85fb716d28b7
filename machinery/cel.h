/*
 * CEL, the Common Expression Language, with the functions that Kubernetes 1.36 gives it: device selectors, admission policies,
 * validation rules, match conditions.
 *
 *	static const struct cel_var vars[] = { { STR_INIT("object"), &cel_type_dyn } };
 *	static const struct cel_env env = { .vars = vars, .n_vars = 1 };
 *	struct cel_program *p;
 *	str why;
 *	if (cel_compile(&env, STR("object.spec.replicas <= 5"), arena, &p, &why) < 0)
 *		... why: "ERROR: <input>:1:8: ..." with the line and a caret, as cel-go writes it ...
 *	struct cel_val object = cel_of_val(arena, &cel_type_dyn, tree);
 *	struct cel_run run = { .arena = arena, .limit = CEL_COST_PER_CALL };
 *	struct cel_val got = cel_run(p, &object, &run);
 *	if (got.kind == CEL_ERROR)
 *		... cel_text(got): "no such key: replicas" ...
 *
 * Everything here is pure. A program is immutable, owns its memory and may be used by several threads at once; evaluation takes
 * memory from its arena only. An expression from outside can do no harm: its length and depth are bounded when it is
 * compiled, and its cost (Kubernetes' own measure) and the real work when it runs.
 *
 * What an evaluation gives may point into the program, the variables and the arena.
 */
#ifndef C8S_MACHINERY_CEL_H
#define C8S_MACHINERY_CEL_H

#include "codec/schema.h"
#include "codec/val.h"

/* ---- types ---- */

enum cel_kind {
	CEL_ERROR,
	CEL_NULL,
	CEL_BOOL,
	CEL_INT,
	CEL_UINT,
	CEL_DOUBLE,
	CEL_STRING,
	CEL_BYTES,
	CEL_DURATION,
	CEL_TIMESTAMP,
	CEL_LIST,
	CEL_MAP,
	CEL_TYPE,
	CEL_OPTIONAL,
	CEL_OBJECT,    /* with declared fields */
	CEL_QUANTITY,
	CEL_SEMVER,
	CEL_IP,
	CEL_CIDR,
	CEL_URL,
	CEL_FORMAT,
	/* Of types only, never of a value. */
	CEL_DYN,       /* checked when it runs */
	CEL_ANY,       /* the same under another name; two spellings because texts show it */
	CEL_PARAM,     /* within signatures of functions */
};

struct cel_type;

struct cel_field {
	str name;
	const struct cel_type *type;
};

struct cel_type {
	uint8_t kind;                     /* enum cel_kind */
	str name;                         /* CEL_OBJECT: as type() and texts show it */
	const struct cel_type *key, *elem; /* CEL_MAP; CEL_LIST, CEL_OPTIONAL and CEL_TYPE have elem alone (NULL: dyn) */
	/* CEL_OBJECT: the fields are listed here, or those of a type of the schema. */
	const struct cel_field *fields;
	size_t n_fields;
	const struct type *schema;
	uint32_t weight;                  /* parts when written out; 0 counts as 1 */
	/* For the estimate of costs (CEL_SIZED): the most characters, items or members that a value can have. */
	uint64_t max_size;
};

extern const struct cel_type cel_type_dyn, cel_type_null, cel_type_bool, cel_type_int, cel_type_uint, cel_type_double,
	cel_type_string, cel_type_bytes, cel_type_duration, cel_type_timestamp, cel_type_type, cel_type_quantity, cel_type_semver,
	cel_type_ip, cel_type_cidr, cel_type_url, cel_type_format;

/* The type of objects of a type of the schema, as Kubernetes shows them to CEL: times are timestamps, quantities and
 * int-or-string are dyn. Lives in the arena; its fields are made when they are asked for. */
const struct cel_type *cel_type_of_schema(struct arena *a, const struct type *schema);

/* ---- values ---- */

struct cel_list;
struct cel_map;

/* 16 bytes, passed by value. Fields are public for reading; make values with the functions below. */
struct cel_val {
	uint8_t kind;   /* enum cel_kind, up to CEL_FORMAT */
	int16_t zone;   /* of a timestamp: minutes east of UTC in which it is shown */
	uint32_t n;     /* bytes of a text; nanoseconds of a timestamp */
	union {
		bool b;
		int64_t i;                     /* also CEL_DURATION in nanoseconds, CEL_TIMESTAMP in seconds since 1970 */
		uint64_t u;
		double d;
		const char *s;                 /* CEL_STRING, CEL_BYTES, CEL_ERROR */
		const struct cel_list *list;
		const struct cel_map *map;     /* CEL_MAP, CEL_OBJECT */
		const struct cel_type *type;
		const struct cel_val *optional; /* NULL: none */
		const struct quantity *quantity;
		const struct semver *semver;
		const struct ip *ip;
		const struct cidr *cidr;
		const struct cel_url *url;
		const struct cel_format *format;
	};
};

_Static_assert(sizeof(struct cel_val) == 16, "a value travels in two registers");

static inline struct cel_val cel_of_null(void) { return (struct cel_val){ .kind = CEL_NULL }; }
static inline struct cel_val cel_of_bool(bool b) { return (struct cel_val){ .kind = CEL_BOOL, .b = b }; }
static inline struct cel_val cel_of_int(int64_t i) { return (struct cel_val){ .kind = CEL_INT, .i = i }; }
static inline struct cel_val cel_of_uint(uint64_t u) { return (struct cel_val){ .kind = CEL_UINT, .u = u }; }
static inline struct cel_val cel_of_double(double d) { return (struct cel_val){ .kind = CEL_DOUBLE, .d = d }; }
static inline struct cel_val cel_of_duration(int64_t ns) { return (struct cel_val){ .kind = CEL_DURATION, .i = ns }; }
/* Borrow the text. */
static inline struct cel_val cel_of_str(str s) { return (struct cel_val){ .kind = CEL_STRING, .n = (uint32_t)s.n, .s = s.n ? s.p : "" }; }
static inline struct cel_val cel_of_bytes(str s) { return (struct cel_val){ .kind = CEL_BYTES, .n = (uint32_t)s.n, .s = s.n ? s.p : "" }; }

/* The text of a string, of bytes or of an error; of others "". */
static inline str cel_text(struct cel_val v)
{
	return v.kind == CEL_STRING || v.kind == CEL_BYTES || v.kind == CEL_ERROR ? str_span(v.s, v.n) : STR("");
}

/*
 * A tree as a value: nothing is copied, what is inside is made into values when an expression reads it. The type says what it is
 * (texts that are times, objects with declared fields); with dyn, numbers, texts, lists and maps are as JSON has them. The text
 * of a bad time is an error when it is read.
 */
struct cel_val cel_of_val(struct arena *a, const struct cel_type *t, struct val v);
/* Copies the items. */
struct cel_val cel_of_list(struct arena *a, const struct cel_val *items, size_t n);
/*
 * A map whose keys are strings, over pairs of key and value that stay where they are; what is not among them reads as *missing
 * unless that is NULL. Objects with listed fields are made the same way, with their type (NULL for a map).
 */
struct cel_pair {
	struct cel_val key, val;
};
struct cel_val cel_of_pairs(struct arena *a, const struct cel_type *object, const struct cel_pair *pairs, size_t n,
			    const struct cel_val *missing);
struct cel_val cel_of_quantity(struct arena *a, const struct quantity *q);
/* The texts inside are borrowed. */
struct cel_val cel_of_semver(struct arena *a, const struct semver *v);

/* Items of a list or members of a map or object, else 0; and item i (in a map: key and value of member i). */
size_t cel_len(struct cel_val v);
struct cel_val cel_at(struct arena *a, struct cel_val list, size_t i);
void cel_member_at(struct arena *a, struct cel_val map, size_t i, struct cel_val *ret_key, struct cel_val *ret_val);
/* The value as JSON has it: bytes in base64, times and durations as text, an error as VAL_NONE. */
struct val cel_to_val(struct arena *a, struct cel_val v);
/* As texts name it: "int", "map", "kubernetes.Quantity". */
str cel_type_name(struct cel_val v);
/* "list(int)", "map(string, dyn)". */
str cel_type_text(struct arena *a, const struct cel_type *t);

/* ---- environments ---- */

struct cel_eval;

/* args[0] is the receiver of a method. May return an error from cel_fail. */
typedef struct cel_val cel_impl(struct cel_eval *ev, const struct cel_val *args, size_t n);

struct cel_val cel_fail(struct cel_eval *ev, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Accounts for n steps of work inside of a function; false when the evaluation has had enough: return anything. */
bool cel_work(struct cel_eval *ev, size_t n);

/*
 * One overload of a function. The signature is a text: parameters, ':' and the result, one letter each:
 *	b bool  i int  u uint  d double  s string  y bytes  n null  t timestamp  r duration  * dyn  z type
 *	q quantity  v semver  a ip  c cidr  l url  f format  A B type parameters
 *	Lx list of x  Mxy map  Ox optional  Zx type of x
 */
struct cel_overload {
	const char *name;  /* "size", "ip.isCanonical"; a receiver-style one is marked by method */
	const char *id;    /* as cel-go names it: costs go by it */
	const char *signature;
	bool method;
	cel_impl *run;
	uint64_t cost;     /* 0: by Kubernetes' model, which is 1 for what it does not know */
};

struct cel_var {
	str name;
	const struct cel_type *type;
};

enum cel_options {
	CEL_BINDINGS = 1 << 0,   /* cel.bind(x, value, expression) */
	CEL_SIZED = 1 << 1,      /* max_size of the variables' types bounds what they hold; without it, cost estimates know no bounds */
};

/* All that it points to must live as long as programs made with it. */
struct cel_env {
	const struct cel_var *vars;
	size_t n_vars;
	const struct cel_overload *overloads;   /* besides the standard ones; those of one name stand together */
	size_t n_overloads;
	const struct cel_type *const *types;    /* object types that expressions may make */
	size_t n_types;
	unsigned options;
};

/* ---- programs ---- */

enum {
	CEL_SOURCE_MAX = 100000,     /* characters; cel-go's limit */
	CEL_DEPTH_MAX = 250,         /* nesting; also cel-go's */
	CEL_COST_PER_CALL = 1000000, /* Kubernetes' limit of one evaluation of a policy */
};

struct cel_program;

/*
 * -ERR_INVALID with the text (of all errors, in the arena) in *ret_why when the source has an error; -ERR_INTERNAL with a text without
 * place when it is right but a constant in it cannot be made, such as int("x"). ret_program may be NULL when only the answer matters.
 */
int cel_compile(const struct cel_env *env, str source, struct arena *a, struct cel_program **ret_program, str *ret_why);
void cel_program_free(struct cel_program *p);   /* NULL is fine */
void cel_program_freep(struct cel_program **p); /* for CLEANUP */
/* The type of the result; lives in the program. */
const struct cel_type *cel_program_type(const struct cel_program *p);
/* The most that an evaluation can cost, by the sizes that types declare; huge where these say nothing. */
uint64_t cel_program_max_cost(const struct cel_program *p);
/* Whether the expression uses that variable. */
bool cel_program_uses(const struct cel_program *p, size_t var);

struct cel_run {
	struct arena *arena;
	uint64_t limit;    /* of the cost */
	uint64_t cost;     /* out */
	bool exceeded;     /* out: the result is an error because a limit was reached, which && and || cannot absorb */
};

/* values: one per variable of the environment, in its order. CEL_ERROR, with its text, when the evaluation fails. */
struct cel_val cel_run(const struct cel_program *p, const struct cel_val *values, struct cel_run *run);

#endif
