/* get: what get.c and get_watch.c share. */
#ifndef C8S_KUBECTL_GET_H
#define C8S_KUBECTL_GET_H

#include "kubectl/builder.h"
#include "kubectl/print.h"

struct ktl_get {
	struct ktl_print_flags print;
	struct ktl_file_flags files;
	const char *field_selector, *raw, *selector, *sort_by, *subresource;
	struct ktl_texts label_columns;
	bool all_namespaces, ignore_not_found, no_headers, output_events, server_print, show_kind, show_labels, watch, watch_only;
	int64_t chunk;
};

struct ktl_table_options ktl_get_table_options(const struct ktl_get *g, const struct ktl_printer *p);
/* (suspends) Until the server ends it, or nobody reads any more. */
int ktl_get_watch(struct ktl *k, const struct ktl_get *g, struct ktl_printer *p, const struct ktl_builder *b);

#endif
