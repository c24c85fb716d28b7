/* The table of pods, whose status is a story of its own. */
#ifndef C8S_MACHINERY_TABLE_POD_H
#define C8S_MACHINERY_TABLE_POD_H

#include "machinery/table_priv.h"

enum { POD_COLUMNS = 9 };

extern const struct column pod_columns[POD_COLUMNS];
const void *pod_prepare(const struct row *row);
struct val pod_conditions(const struct row *row);

#endif
