/* legacy_token_plan: tokens in Secrets that Kubernetes once made for every service account, and that nobody uses any more. Pure. */
#ifndef C8S_CONTROLLERS_LEGACY_TOKEN_PLAN_H
#define C8S_CONTROLLERS_LEGACY_TOKEN_PLAN_H

#include "codec/val.h"

#define LEGACY_TOKEN_INVALID_SINCE "kubernetes.io/legacy-token-invalid-since"

enum legacy_token_what {
	LEGACY_TOKEN_STAYS,
	LEGACY_TOKEN_ASKS,            /* unused for too long: unless a pod mounts it, it is marked as invalid */
	LEGACY_TOKEN_GOES,            /* and has been invalid for as long: unless a pod mounts it, it is deleted */
};

/* account: the one that the Secret is for; VAL_NONE: there is none. unused_ns: how long is too long. */
enum legacy_token_what legacy_token_judge(struct val secret, struct val account, int64_t unused_ns, int64_t now_ns);
/* Whether the pod refers to a Secret of that name. */
bool legacy_token_is_used(struct val pod, str secret);
/* Whether uses have been noted for long enough to say that something is unused; since: a date ("2006-01-02"). */
bool legacy_token_is_tracked(str since, int64_t unused_ns, int64_t now_ns);
/* "2006-01-02", in the arena. */
str legacy_token_date(struct arena *a, int64_t ns);

#endif
