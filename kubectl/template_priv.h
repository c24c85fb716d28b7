/* template_priv: what the files of the template engine share. */
#ifndef C8S_KUBECTL_TEMPLATE_PRIV_H
#define C8S_KUBECTL_TEMPLATE_PRIV_H

#include "kubectl/template.h"

/* ---- tokens ---- */

enum template_token_type {
	TOKEN_ERROR, TOKEN_EOF, TOKEN_BOOL, TOKEN_CHAR, TOKEN_CHAR_CONSTANT, TOKEN_ASSIGN, TOKEN_DECLARE, TOKEN_FIELD, TOKEN_IDENTIFIER,
	TOKEN_LEFT_DELIM, TOKEN_LEFT_PAREN, TOKEN_NUMBER, TOKEN_PIPE, TOKEN_RAW_STRING, TOKEN_RIGHT_DELIM, TOKEN_RIGHT_PAREN, TOKEN_SPACE,
	TOKEN_STRING, TOKEN_TEXT, TOKEN_VARIABLE,
	TOKEN_KEYWORD,               /* those behind it are keywords */
	TOKEN_BLOCK, TOKEN_BREAK, TOKEN_CONTINUE, TOKEN_DOT, TOKEN_DEFINE, TOKEN_ELSE, TOKEN_END, TOKEN_IF, TOKEN_NIL, TOKEN_RANGE,
	TOKEN_TEMPLATE, TOKEN_WITH,
};

struct template_token {
	enum template_token_type type;
	size_t pos;
	str text;                    /* of TOKEN_ERROR: what is wrong */
};

struct template_lexer {
	struct arena *arena;
	str in;
	size_t start, pos;
	unsigned parens;
	bool inside;                 /* an action */
};

struct template_token template_next_token(struct template_lexer *l);

/* ---- nodes ---- */

enum template_node_type {
	/* what stands in a template */
	NODE_TEXT, NODE_ACTION, NODE_IF, NODE_WITH, NODE_RANGE, NODE_TEMPLATE, NODE_BREAK, NODE_CONTINUE,
	NODE_ELSE, NODE_END,         /* only while parsing */
	/* what stands in an action */
	NODE_PIPE, NODE_COMMAND, NODE_FIELD, NODE_VARIABLE, NODE_CHAIN, NODE_IDENTIFIER, NODE_DOT, NODE_NIL, NODE_BOOL, NODE_NUMBER, NODE_STRING,
};

struct template_nodes {
	struct template_node *first, **end;
};

struct template_node {
	enum template_node_type type;
	size_t pos;
	str text;                    /* as written: ".a.b", "$x.a", `"s"`; of a text: itself; of a chain: its fields; of a template: its name */
	struct template_node *next;  /* beside it */
	union {
		struct val value;    /* of constants; VAL_NONE: too large for an int */
		struct {             /* of a pipe: commands; of a command: words; of a chain: what its fields are of */
			struct template_nodes parts;
			str declared[2];
			unsigned n_declared;
			bool assign;
		};
		struct {
			struct template_node *pipe; /* of a template: may be NULL */
			struct template_node *then, *otherwise; /* the first of each */
		};
		const struct template_func *func; /* of an identifier */
	};
};

struct template_tree {
	str name;
	struct template_node *root;  /* the first; NULL: it is empty */
	struct template_tree *next;
};

struct template {
	str name, text;
	struct template_tree *trees;
};

/* As an error shows it. */
void template_add_node(struct buf *b, const struct template_node *n);
unsigned template_line(str text, size_t pos);

/* ---- values ---- */

/*
 * What Go's reflection sees: VAL_NONE is no value at all; a value may be behind an interface, and then null is a nil one. An int that is
 * in the data is a float64; one that is not is an int.
 */
struct template_value {
	struct val v;
	enum { VALUE_PLAIN, VALUE_INTERFACE, VALUE_BYTE } how;
};

static inline struct template_value template_plain(struct val v) { return (struct template_value){ v, VALUE_PLAIN }; }
/* An item or member of the data. */
struct template_value template_of_data(struct val v);
/* What is behind the interface. */
struct template_value template_inside(struct template_value v);
bool template_is_true(struct template_value v);
const char *template_type_name(struct template_value v);

/* ---- functions ---- */

struct template_call {
	struct arena *arena;
	const struct template_func *func;
	const struct template_value *args;
	size_t n;
	size_t work;                 /* bytes that may be made */
	struct buf problem;          /* why it failed */
};

struct template_func {
	const char *name;
	unsigned char fixed;         /* so many arguments of type first; rest: of those that may follow, 0: none */
	char first, rest;            /* 's' a string, 'a' anything, 'v' a value, also one behind an interface */
	int (*run)(struct template_call *c, struct template_value *ret); /* -1: see problem */
	int detail;                  /* of functions that share run */
};

const struct template_func *template_find_func(str name);
enum { FUNC_AND = 1, FUNC_OR };      /* details of the two that need not look at all of their arguments: they have no run */

/* ---- Go's fmt ---- */

void template_sprint(struct buf *b, const struct template_value *args, size_t n, bool line);
void template_sprintf(struct buf *b, str format, const struct template_value *args, size_t n);
/* One value by a verb. */
void template_add_value(struct buf *b, struct template_value v, char verb);

#endif
