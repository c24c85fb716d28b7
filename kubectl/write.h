/* write: creating and changing objects, for real or as a dry run, and what all such commands have in common. */
#ifndef C8S_KUBECTL_WRITE_H
#define C8S_KUBECTL_WRITE_H

#include "kubectl/builder.h"
#include "kubectl/print.h"

enum ktl_dry { KTL_DRY_NONE, KTL_DRY_CLIENT, KTL_DRY_SERVER };

struct ktl_write_flags {
	const char *dry_run, *manager;
};

struct ktl_create_flags {
	const char *validate;
	bool save_config;
};

extern const struct ktl_flag ktl_write_flags[], ktl_create_flags[], ktl_record_flags[];

/* --record, which does nothing any more. */
struct ktl_record_flags {
	bool record;
};

struct ktl_write {
	enum ktl_dry dry;
	str manager;                 /* who sets fields */
	str validation;              /* "Strict", ...; empty: the server's default */
	bool save_config;
};

/* manager: when the flag does not say. c may be NULL. The printer learns of a dry run. */
int ktl_write_init(struct ktl *k, const struct ktl_write_flags *f, const struct ktl_create_flags *c, const char *manager,
		   struct ktl_printer *p, struct ktl_write *ret);

/* (suspends) With a dry run of the client *ret is the object itself. Failures name the source: error when creating "f.yaml". */
int ktl_create_object(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, struct val *ret);
int ktl_replace_object(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, str subresource, struct val *ret);

enum ktl_patch_type { KTL_PATCH_STRATEGIC, KTL_PATCH_MERGE, KTL_PATCH_JSON, KTL_PATCH_APPLY };

/* (suspends) force: of KTL_PATCH_APPLY. */
int ktl_patch_object(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, enum ktl_patch_type type, str body,
		     str subresource, bool force, struct val *ret);
/* (suspends) Strategic where the kind has a schema, else a merge patch, from live to changed; nothing is sent when they are equal. */
int ktl_patch_difference(struct ktl *k, const struct ktl_write *w, const struct ktl_info *info, struct val live, struct val changed,
			 bool *ret_changed, struct val *ret);
/* The text of a plain failure: what was noted last, with this before it. */
int ktl_fail_plainly(struct ktl *k, const char *before);

/* ---- objects made here ---- */

/* A built-in object with all members that Kubernetes' own types always write, in their order. */
int ktl_typed(struct ktl *k, const struct type *type, struct val object, struct val *ret);
/* Labels as "a=b,c=d". */
int ktl_parse_labels(struct ktl *k, const char *text, struct val *ret);

#endif
