/*
 * tabs: text with tabs, set in columns as Go's text/tabwriter does it. A cell ends with a tab, the last one of a line with the line, and
 * has no column then. A column is a run of lines that have such a cell; it is as wide as its widest cell, plus padding.
 */
#ifndef C8S_KUBECTL_TABS_H
#define C8S_KUBECTL_TABS_H

#include "base/buf.h"

struct ktl_tabs {
	struct buf text;          /* what was written since the last flush */
	size_t min_width, padding;
	bool remember;            /* columns stay as wide as they were, across flushes */
	size_t *widths, n_widths; /* that are remembered */
};

/* For tables (kubectl get), and for descriptions. */
void ktl_tabs_for_table(struct ktl_tabs *t);
void ktl_tabs_for_description(struct ktl_tabs *t);
void ktl_tabs_done(struct ktl_tabs *t);
/* Columns begin anew. */
void ktl_tabs_forget(struct ktl_tabs *t);
/* Appends what was written, in columns. */
void ktl_tabs_flush(struct ktl_tabs *t, struct buf *out);

#endif
