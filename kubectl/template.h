/*
 * template: Go's text/template, for kubectl's -o go-template.
 *
 *	{{range .items}}{{.metadata.name}}{{"\t"}}{{index .metadata.labels "app" | printf "%-8s"}}{{"\n"}}{{else}}none{{end}}
 *
 * The whole language: actions, pipelines, if, range, with, else, break, continue, define, template, block, variables, comments, trim
 * markers; the built-in functions, and kubectl's exists and base64decode. Values are what Go decodes JSON to: every number of the data is
 * a float64, so {{1000000}} prints 1000000 and {{.n}} of {"n": 1000000} prints 1e+06. Not there: complex numbers, hexadecimal floats, call, the
 * flags of %#g and %+q.
 * Texts of errors are Go's; they are all -ERR_BAD_REQUEST.
 *
 * Templates and data may be hostile: nesting and calls are bounded by TEMPLATE_DEPTH_MAX, time and memory by work.
 *
 * Files: template_lex.c (tokens), template_parse.c (nodes), template_exec.c (running them), template_funcs.c (functions),
 * template_format.c (Go's fmt).
 */
#ifndef C8S_KUBECTL_TEMPLATE_H
#define C8S_KUBECTL_TEMPLATE_H

#include "base/buf.h"
#include "codec/val.h"

enum { TEMPLATE_DEPTH_MAX = 150 };

struct template;

struct template_options {
	bool missing_is_error;       /* a key that a map does not have */
	size_t work;                 /* steps and bytes made on the way, at most */
};

/* name: of the template, as errors have it. The text must outlive the template; both may be used by several threads. */
int template_parse(struct arena *a, str name, str text, const struct template **ret, struct err *err);
/* Appends what it prints, also after a failure: what came before it. Members of objects are taken in the order of their keys. */
int template_run(const struct template *t, struct arena *a, struct val data, const struct template_options *o, struct buf *out,
		 struct err *err);
/* A value as Go's %v prints it after decoding JSON: map[a:1 b:[x y]]. */
void template_add_plain(struct buf *b, struct val data);

#endif
