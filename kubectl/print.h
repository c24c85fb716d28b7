/*
 * print: objects as -o says: tables, JSON, YAML, names, JSONPath and Go templates, custom columns. Everything goes to standard output.
 */
#ifndef C8S_KUBECTL_PRINT_H
#define C8S_KUBECTL_PRINT_H

#include "kubectl/kinds.h"
#include "kubectl/tabs.h"

struct ktl_print_flags {
	const char *output, *template;
	bool allow_missing, show_managed;
};

extern const struct ktl_flag ktl_print_flags[];

enum ktl_format {
	KTL_HUMAN,                   /* a table, or what was done */
	KTL_WIDE,
	KTL_JSON,
	KTL_YAML,
	KTL_NAME,
	KTL_JSONPATH,
	KTL_JSONPATH_AS_JSON,
	KTL_TEMPLATE,
	KTL_COLUMNS,
};

struct ktl_printer {
	enum ktl_format format;
	bool show_managed, allow_missing, no_headers;
	const char *done;            /* of KTL_HUMAN: "created"; NULL: nothing */
	const char *dry_run;         /* behind that: " (dry run)", " (server dry run)", or "" */
	size_t n;                    /* printed so far */
	const struct jsonpath *path;
	const struct template *template;
	str text;                    /* of the template */
	struct column {
		str header;
		const struct jsonpath *path;
	} *columns;
	size_t n_columns;
	struct ktl_tabs tabs;        /* of custom columns */
};

/* tables: the command knows wide and custom columns, too. */
int ktl_printer_init(struct ktl *k, const struct ktl_print_flags *flags, bool tables, struct ktl_printer *ret);
/* An object, or a list. With KTL_HUMAN: "deployment.apps/web created"; kind may be NULL where the object says what it is. */
int ktl_print(struct ktl *k, struct ktl_printer *p, const struct ktl_kind *kind, struct val object);
/* The same with other words than p->done. */
int ktl_print_done(struct ktl *k, struct ktl_printer *p, const struct ktl_kind *kind, struct val object, const char *done);
/* What was held back for the sake of columns. */
void ktl_print_end(struct ktl_printer *p);
/* Of a command that has tables; also for one that was never made ({ 0 }). */
void ktl_printer_done(struct ktl_printer *p);
/* A free tree as kubectl shows it. */
int ktl_print_yaml(struct ktl *k, struct val v);
int ktl_print_json(struct ktl *k, struct val v, unsigned indent);

/* ---- table.c: what the server made for reading ---- */

struct ktl_table_options {
	bool no_headers, wide, with_namespace, with_kind, show_labels;
	const struct ktl_kind *kind;
	struct ktl_texts label_columns;
};

struct ktl_table_printer {
	struct ktl_table_options options;
	struct val columns;          /* that were printed last */
	bool printed_headers;
};

/* A Table, or an object that the server did not make one of; event: "ADDED", or empty. Into tabs. */
void ktl_table_print(struct ktl *k, struct ktl_table_printer *p, struct val object, str event, struct ktl_tabs *tabs);
/* Text for a terminal: nothing in it moves the cursor. */
void ktl_add_escaped(struct buf *b, str text);

/* ---- sort.c ---- */

enum { KTL_UNSORTABLE = -2 };

/*
 * The items of a list, or the rows of a Table, sorted by a field: --sort-by. -1 when the field is wrong or nobody has it; KTL_UNSORTABLE when its
 * values cannot be compared.
 */
int ktl_sort(struct ktl *k, const char *field, struct val list, bool rows, struct val *ret);

#endif
