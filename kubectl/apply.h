/* apply: what the files of kubectl apply share. */
#ifndef C8S_KUBECTL_APPLY_H
#define C8S_KUBECTL_APPLY_H

#include "kubectl/write.h"

#define KTL_LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

struct ktl_apply {
	struct ktl_print_flags print;
	struct ktl_write_flags write;
	struct ktl_create_flags create;
	struct ktl_file_flags files;
	struct ktl_record_flags record;
	struct ktl_texts prune_allowlist;
	const char *selector, *subresource, *cascade;
	bool force, force_conflicts, overwrite, server_side, prune, all, openapi_patch, wait;
	int64_t grace_s, timeout_ns;
};

/* What is done with every object. */
struct ktl_apply_job {
	struct ktl *k;
	const struct ktl_apply *o;
	struct ktl_write w;
	struct ktl_printer p;
	struct val_builder results;  /* of what is printed at the end */
	bool at_end;
	struct val_builder visited;  /* UIDs of what was applied: it is not pruned */
	const struct ktl_kind **prune;
	size_t n_prune;
};

/* Tells of an object that was applied. */
int ktl_apply_report(struct ktl_apply_job *j, const struct ktl_info *info, struct val object, const char *done);

/* ---- apply_server.c ---- */

/*
 * (suspends) The server does it. What the client's way has set before becomes the server's way's: fields that the files do not mention
 * any more are then removed, as they would have been.
 */
int ktl_apply_server_side(struct ktl_apply_job *j, const struct ktl_info *info);

/* ---- apply_prune.c ---- */

/* (may suspend) Which kinds are pruned. */
int ktl_apply_prune_kinds(struct ktl_apply_job *j);
/* (suspends) Deletes what was applied once and is not any more. infos: what was applied now; namespace: where to look, too. */
int ktl_apply_prune(struct ktl_apply_job *j, const struct ktl_infos *infos, str namespace);

/* ---- apply_last.c ---- */

extern const struct ktl_command ktl_apply_view_last, ktl_apply_set_last, ktl_apply_edit_last;

#endif
