/* delete: deleting objects and waiting until they are gone, for kubectl delete, run --rm and replace --force. */
#ifndef C8S_KUBECTL_DELETE_H
#define C8S_KUBECTL_DELETE_H

#include "kubectl/write.h"

struct ktl_delete {
	int64_t grace_s;             /* -1: the object's own */
	const char *cascade;         /* "Background", ...; NULL: the kind's default */
	enum ktl_dry dry;
	bool quiet, names;           /* print nothing, or only names */
};

/* (suspends) *ret_uid (may be NULL): of what was deleted, empty when not known. */
int ktl_delete_object(struct ktl *k, const struct ktl_delete *d, const struct ktl_info *info, str *ret_uid);
/*
 * (suspends) Until no object of that name has this UID (empty: any) any more. -1 after timeout_ns, with a failure noted; a server that
 * does not let us look is no failure.
 */
int ktl_wait_gone(struct ktl *k, const struct ktl_info *info, str uid, int64_t timeout_ns);
/* What --cascade says, as the server calls it. */
int ktl_cascade_of(struct ktl *k, const char *text, const char **ret);

#endif
