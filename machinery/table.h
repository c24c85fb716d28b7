/*
 * Tables: what kubectl get prints, computed by the server (meta.k8s.io/v1 Table). A table knows the columns of one kind; rows
 * are made from objects one by one:
 *
 *	const struct table *t = table_of(TYPE(core_v1, Pod));
 *	struct val columns = table_columns(&arena, t), cells, conditions;
 *	VAL_EACH(pod, items)
 *		table_row(&arena, t, *pod, clock_wall_ns(), &cells, &conditions);
 *
 * As Kubernetes' server does, rows always have all cells, those of kubectl get -o wide (priority above 0) too. Cells that say how
 * old something is depend on the time that is given. An object of any version of its kind will do. Pure functions, any thread.
 */
#ifndef C8S_MACHINERY_TABLE_H
#define C8S_MACHINERY_TABLE_H

#include "codec/schema.h"

struct table;

/* The table of a built-in kind. Kinds without columns of their own have "Name" and "Created At". */
const struct table *table_of(const struct type *kind);
/*
 * The table of a custom resource from the additionalPrinterColumns of its version (absent: the age). Lives in the arena, as do
 * all its texts. -ERR_INVALID 'unrecognized column definition ".spec["' for a path that cannot be parsed.
 */
int table_of_custom(struct arena *a, struct val printer_columns, const struct table **ret, struct err *err);

/* The list of columnDefinitions. */
struct val table_columns(struct arena *a, const struct table *t);
/* The list of cells and, for rows that have some, the list of conditions (else VAL_NONE). */
void table_row(struct arena *a, const struct table *t, struct val object, int64_t now_wall_ns, struct val *ret_cells,
	       struct val *ret_conditions);

/* The number by which the rows of a list are sorted, equal ones by name; NULL: all by name. */
typedef int64_t table_rank_fn(struct val object);
table_rank_fn *table_rank(const struct table *t);

#endif
