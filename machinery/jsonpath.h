/*
 * kubectl's JSONPath templates: text with {expressions} in it.
 *
 *	{.spec.nodeName}  {.items[*].metadata.name}  {.items[?(@.status.phase=="Running")].spec}  {..image}  {.a['x','y']}  {.l[-1:]}
 *	{range .items[*]}{.metadata.name}{"\n"}{end}
 *
 * Used by kubectl get -o jsonpath, -o custom-columns, --sort-by and wait, and by printer columns and selectable fields of custom
 * resources. A template is parsed once, into an arena, and is then immutable: any thread may run it, on any tree. Error texts are
 * Kubernetes'; they are all -ERR_BAD_REQUEST.
 *
 * A map's members come in the order of the tree. To get the text that kubectl prints, decode with sort_keys.
 */
#ifndef C8S_MACHINERY_JSONPATH_H
#define C8S_MACHINERY_JSONPATH_H

#include "base/buf.h"
#include "codec/val.h"

struct jsonpath;

struct jsonpath_options {
	bool allow_missing_keys; /* a field that no object has gives nothing, instead of the error "x is not found" */
	bool as_json;            /* when printing: each expression as an indented JSON list (-o jsonpath-as-json) */
	size_t max_values;       /* values that the expressions may produce on the way; 0: JSONPATH_MAX_VALUES */
};

enum { JSONPATH_MAX_VALUES = 1 << 20 };

/* Templates are nested in each other by filters; more than this many levels are an error. */
enum { JSONPATH_MAX_DEPTH = 32 };

int jsonpath_parse(struct arena *a, str text, const struct jsonpath **ret, struct err *err);

/*
 * Runs the template. *ret is a list with one item per expression or piece of text, in order and repeated by ranges: the list
 * of the values that it found. Values point into root and the template.
 */
int jsonpath_find(const struct jsonpath *path, struct arena *a, struct val root, const struct jsonpath_options *opt, struct val *ret,
		  struct err *err);
/* Runs the template and appends its output: objects and lists as JSON, all else as plain text. On failure out is as before. */
int jsonpath_print(const struct jsonpath *path, struct arena *a, struct val root, const struct jsonpath_options *opt, struct buf *out,
		   struct err *err);

/* One value as jsonpath_print shows it. */
int jsonpath_print_value(struct buf *out, struct val v, struct err *err);

/*
 * What -o custom-columns and --sort-by accept, as a template: x.y, .x.y, {x.y} and {.x.y} all become {.x.y}. The empty text
 * stays empty.
 */
int jsonpath_relaxed(struct arena *a, str text, str *ret, struct err *err);

/* A value as Go's %v prints it: map[a:1 b:[x y]], <nil>. For cells of custom columns. */
void jsonpath_add_plain(struct buf *b, struct val v);

#endif
