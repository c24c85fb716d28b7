/*
 * What the files of CEL share.
 *
 *	cel_lex.c       source -> tokens, and the texts of literals
 *	cel_parse.c     tokens -> nodes
 *	cel_macro.c     has, all, exists, map, filter, ...: calls that become other nodes
 *	cel_type.c      types, their texts, signatures of functions
 *	cel_unify.c     whether a type can be used as another
 *	cel_check.c     nodes -> nodes with types and with the functions that they call
 *	cel_literal.c   what is asked of literals
 *	cel_plan.c      constants, made once
 *	cel_estimate.c  the most that a program can cost
 *	cel_eval.c      nodes -> value
 *	cel_cost.c      what a call costs
 *	cel_value.c     lists, maps, equality
 *	cel_tree.c      trees as values, and back
 *	cel_op.c        operators;   cel_convert.c, cel_time.c, cel_string.c, cel_format.c, cel_list.c, cel_net.c, cel_kube.c  functions
 *	cel_re.c        regular expressions in RE2's syntax
 *	cel.c           errors, environments, programs
 */
#ifndef C8S_MACHINERY_CEL_PRIV_H
#define C8S_MACHINERY_CEL_PRIV_H

#include "machinery/cel.h"
#include "machinery/cel_re.h"
#include "machinery/cel_value.h"

/* ---- errors of a source ---- */

enum { CEL_ERRORS_MAX = 100 };

struct cel_issue {
	uint32_t at;    /* byte offset in the source; CEL_NOWHERE: the whole */
	str text;
};

#define CEL_NOWHERE UINT32_MAX

struct cel_issues {
	struct arena *arena;
	str source;
	struct cel_issue *list;  /* room for CEL_ERRORS_MAX */
	size_t n, total;
};

void cel_issue(struct cel_issues *e, uint32_t at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* All of them as cel-go shows them, in the arena. */
str cel_issues_text(struct cel_issues *e);

/* ---- tokens ---- */

/* In the order and with the names of cel-go's grammar: its error texts list them. */
#define CEL_TOKENS(X)                                                                                                  \
	X(EQ, "'=='") X(NE, "'!='") X(IN, "'in'") X(LT, "'<'") X(LE, "'<='") X(GE, "'>='") X(GT, "'>'") X(AND, "'&&'")    \
	X(OR, "'||'") X(LBRACKET, "'['") X(RBRACKET, "']'") X(LBRACE, "'{'") X(RBRACE, "'}'") X(LPAREN, "'('")            \
	X(RPAREN, "')'") X(DOT, "'.'") X(COMMA, "','") X(MINUS, "'-'") X(NOT, "'!'") X(QUESTION, "'?'") X(COLON, "':'")   \
	X(PLUS, "'+'") X(STAR, "'*'") X(SLASH, "'/'") X(PERCENT, "'%'") X(TRUE, "'true'") X(FALSE, "'false'")             \
	X(NUL, "'null'") X(FLOAT, "NUM_FLOAT") X(INT, "NUM_INT") X(UINT, "NUM_UINT") X(STRING, "STRING")                  \
	X(BYTES, "BYTES") X(IDENT, "IDENTIFIER") X(ESC_IDENT, "ESC_IDENTIFIER") X(EOF, "<EOF>")

enum cel_token_kind {
#define CEL_TOKEN_ENUM(name, text) CEL_T_##name,
	CEL_TOKENS(CEL_TOKEN_ENUM)
#undef CEL_TOKEN_ENUM
};

struct cel_token {
	uint8_t kind;
	uint32_t at, n;
};

/* The tokens, ended by CEL_T_EOF; characters that begin none are issues. Lives in the arena. */
const struct cel_token *cel_lex(struct cel_issues *e, struct arena *a);
/* What a STRING or BYTES token means; false, with an issue, when an escape is wrong. */
bool cel_unquote(struct cel_issues *e, struct arena *a, const struct cel_token *t, str *ret);

/* ---- nodes ---- */

enum cel_node_kind {
	CEL_N_LITERAL,
	CEL_N_IDENT,
	CEL_N_SELECT,
	CEL_N_CALL,
	CEL_N_AND,
	CEL_N_OR,
	CEL_N_COND,
	CEL_N_LIST,
	CEL_N_MAP,
	CEL_N_OBJECT,
	CEL_N_FOLD,
	CEL_N_BAD,     /* stands where an error was reported */
};

struct cel_node;

struct cel_entry {
	uint32_t at;
	bool optional;
	struct cel_node *key;   /* CEL_N_MAP */
	str field;              /* CEL_N_OBJECT */
	atom name;
	const struct cel_type *type;
	struct cel_node *val;
};

/* Calls that are not evaluated like others. */
enum cel_special {
	CEL_ORDINARY,
	CEL_INDEX,      /* a[b] */
	CEL_OPT_INDEX,  /* a[?b] */
	CEL_OR_VALUE,   /* a.orValue(b), a.or(b): b only when it is needed */
	CEL_IN_SET,     /* in a list of constants: costs nothing */
};

/* Where an identifier's value is. */
enum cel_place { CEL_VARIABLE, CEL_LOCAL, CEL_TYPE_NAME };

struct cel_node {
	uint8_t kind;           /* enum cel_node_kind */
	bool constant;          /* a literal, or a list or map of such: made once, costs nothing */
	uint16_t height;        /* of the tree below it */
	uint32_t at;
	const struct cel_type *type;
	union {
		struct cel_val literal;
		struct {
			str name;
			uint8_t place;
			uint16_t slot;
			const struct cel_type *named;
		} ident;
		struct {
			struct cel_node *operand;
			str field;
			atom name;
			bool test, optional;
		} select;
		struct {
			str name;
			struct cel_node *target; /* NULL once args has it in front */
			struct cel_node **args;  /* also the parts of && || ?: */
			uint32_t n;
			bool method;
			const struct cel_overload *const *overloads; /* all of that name and call style */
			uint16_t n_overloads;
			uint8_t special;                      /* enum cel_special */
			bool lenient;                         /* they are one function, which looks at its arguments itself */
			uint64_t fits;                        /* bit i: overload i can be meant */
			const struct cel_overload *only;      /* the one that fits, when just one does */
			const struct cel_re *re;              /* of a pattern that is a literal */
		} call;
		struct {
			struct cel_node **items;
			bool *optional;          /* or NULL */
			uint32_t n;
			const struct cel_val *made; /* when constant */
		} list;
		struct {
			struct cel_entry *entries;
			uint32_t n;
			str type_name;           /* CEL_N_OBJECT */
			const struct cel_val *made;
		} map;
		struct {
			struct cel_node *range, *init, *cond, *step, *result;
			str iter, iter2, accu;   /* iter2.n == 0: one variable */
			uint16_t slot;           /* of accu; iter and iter2 follow */
		} fold;
	};
};

/* What parsing needs. Nodes live in the arena. */
struct cel_parser {
	struct cel_issues *issues;
	struct arena *arena;
	const struct cel_token *t;   /* the next one */
	const struct cel_env *env;
	unsigned depth;
	unsigned frames;             /* as depth, but with what operators nest: what is on the stack */
	bool stop;                   /* after an error that nothing after it can be trusted for */
};

/* NULL when there was an issue. */
struct cel_node *cel_parse(const struct cel_env *env, struct cel_issues *e, struct arena *a);
struct cel_node *cel_node_new(struct cel_parser *p, enum cel_node_kind kind, uint32_t at);
struct cel_node *cel_node_call(struct cel_parser *p, uint32_t at, str name, struct cel_node *target, struct cel_node **args, size_t n);
/* What the call (target may be NULL) becomes when it is one of a macro; NULL when it is not. */
struct cel_node *cel_macro(struct cel_parser *p, uint32_t at, str name, struct cel_node *target, struct cel_node **args, size_t n);

/* ---- types ---- */

/* Also bounds how deep a type is, for everything that walks types recurses. */
enum { CEL_TYPE_WEIGHT_MAX = 512 };

const struct cel_type *cel_type_list(struct arena *a, const struct cel_type *elem);
const struct cel_type *cel_type_map(struct arena *a, const struct cel_type *key, const struct cel_type *elem);
const struct cel_type *cel_type_optional(struct arena *a, const struct cel_type *elem);
/* type(t) */
const struct cel_type *cel_type_of_type(struct arena *a, const struct cel_type *elem);
bool cel_type_is_dyn(const struct cel_type *t);
bool cel_type_same(const struct cel_type *a, const struct cel_type *b);
/* The type that expressions know by this name, or NULL. */
const struct cel_type *cel_type_named(const struct cel_env *env, str name);
/* The name that type() shows. */
str cel_type_runtime_name(const struct cel_type *t);
/* As ast.OutputType().String() has it: types of time by their long names. */
str cel_type_output_text(struct arena *a, const struct cel_type *t);
/* The field's type, or NULL. */
const struct cel_type *cel_type_field(struct arena *a, const struct cel_type *object, str name);
extern const struct cel_type cel_type_error;

/* Reads one type of a signature and moves *p behind it; params are A and B. */
const struct cel_type *cel_signature_type(struct arena *a, const char **p, const struct cel_type *const params[2]);
/* Whether arguments of these kinds fit; the cheap test at run time. */
bool cel_signature_fits(const char *signature, const struct cel_val *args, size_t n);

/* Type variables and what is known of them. */
struct cel_unify {
	struct arena *arena;
	const struct cel_type **bound;   /* by the number of the variable */
	size_t n, cap;
	struct cel_undo {
		uint32_t var;
		const struct cel_type *before;
	} *undo;                         /* to go back when one of several attempts fails */
	size_t n_undo, cap_undo;
	size_t work;
	bool tired;                      /* too much work: the types are absurdly large */
};

const struct cel_type *cel_unify_var(struct cel_unify *u);
/* What is known is written down on success only. */
bool cel_unify_lists(struct cel_unify *u, const struct cel_type *const *from, const struct cel_type *const *to, size_t n);
bool cel_unify_assignable(struct cel_unify *u, const struct cel_type *from, const struct cel_type *to);
/* With what is known put in; to_dyn: and dyn for what is not. */
const struct cel_type *cel_unify_resolve(struct cel_unify *u, const struct cel_type *t, bool to_dyn);
const struct cel_type *cel_type_more_general(const struct cel_type *a, const struct cel_type *b);

/* ---- programs ---- */

struct cel_program {
	const struct cel_env *env;
	struct arena arena;
	struct cel_node *root;
	uint16_t n_slots;
	uint64_t max_cost;
	bool *uses;      /* by variable */
};

/* Fills in types, overloads and slots. False when there was an issue. */
bool cel_check(struct cel_program *p, struct cel_issues *e);
/* What Kubernetes asks of literals in a program that is otherwise right: lists of one type, good patterns and times. */
void cel_check_literals(const struct cel_program *p, struct cel_issues *e);
/* Whether a fold only gives a name to a value (cel.bind), which is computed when it is first asked for. */
bool cel_fold_is_bind(const struct cel_node *n);
/* Makes constants and patterns once. -ERR_INVALID with the text in *ret_why (in the program) when one cannot be made. */
int cel_plan(struct cel_program *p, str *ret_why);
uint64_t cel_estimate(struct cel_program *p, struct arena *scratch);

/* ---- functions ---- */

struct cel_library {
	const struct cel_overload *overloads;
	size_t n;
	bool lenient;    /* the functions take values of any type and look themselves: the rest may trust their signatures */
};

extern const struct cel_library cel_lib_op, cel_lib_match, cel_lib_convert, cel_lib_time, cel_lib_string, cel_lib_list, cel_lib_net, cel_lib_kube,
	cel_lib_optional;

bool cel_overload_is_lenient(const struct cel_overload *o);
/* All overloads of that name, in the arena; 0 when it is not a function. */
size_t cel_overloads(const struct cel_env *env, struct arena *a, str name, const struct cel_overload *const **ret);

struct cel_eval {
	struct arena *arena;
	const struct cel_program *program;
	const struct cel_val *vars;
	struct cel_val *slots;
	struct cel_run *run;
	size_t most;               /* of what the arena may have handed out; 0: no limit */
	uint64_t cost;
	uint64_t work;
	bool exceeded;
	str name;                  /* of the running call */
	const struct cel_re *re;   /* its pattern, when it was compiled before */
	uint32_t depth;            /* of the evaluation */
};

/* "no such overload", for values that a function knows but not together; and for others the same with its name. */
struct cel_val cel_no_overload(struct cel_eval *ev);
struct cel_val cel_no_overload_named(struct cel_eval *ev);
/* What the call of a function cost, by Kubernetes' model. */
uint64_t cel_call_cost(struct cel_eval *ev, const struct cel_node *call, const struct cel_val *args, size_t n, struct cel_val result);
/* Runs a function on values, none of which is an error. */
struct cel_val cel_dispatch(struct cel_eval *ev, const struct cel_node *call, const struct cel_val *args, size_t n);
/* Bytes in Unicode characters, items, members; 1 for all others. */
uint64_t cel_actual_size(struct cel_val v);

#endif
