/* watch: events of one object or of many, as free trees (or Tables). */
#ifndef C8S_KUBECTL_WATCH_H
#define C8S_KUBECTL_WATCH_H

#include "kubectl/builder.h"

struct ktl_watch;

/* (suspends) query: what selects, encoded; revision: where to begin. name: of one object; empty: all. */
int ktl_watch_open(struct ktl *k, const struct ktl_kind *kind, str namespace, str name, str query, str revision, str accept,
		   struct ktl_watch **ret);
/*
 * (suspends) The next event: 1, with its type ("ADDED") and object, which live until the next one; 0: the server has ended it. An ERROR
 * event is noted as a failure. timeout_ms: 0 after so long without one, with *ret_timeout set; negative: none.
 */
int ktl_watch_next(struct ktl *k, struct ktl_watch *w, int64_t timeout_ms, bool *ret_timeout, str *ret_type, struct val *ret_object);
/* Whether an object is as it should be: 1, 0, or -1 with a failure noted. It is gone when it is VAL_NONE. */
typedef int ktl_until_fn(struct ktl *k, struct val object, void *arg);
/*
 * (suspends) Fetches an object and follows it until `is` gives 1 or -1, which is the result; info->object is as it was then. 0: it is due
 * (clock_now_ns). -1 also when it cannot be fetched or watched.
 */
int ktl_watch_until(struct ktl *k, struct ktl_info *info, int64_t due, ktl_until_fn *is, void *arg);
/* "timed out waiting for the condition on pods/web" */
int ktl_fail_timed_out(struct ktl *k, const struct ktl_info *info);
void ktl_watch_free(struct ktl_watch *w); /* (suspends) NULL is fine */
void ktl_watch_freep(struct ktl_watch **w);

#endif
