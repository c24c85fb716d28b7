/*
 * Roles and their bindings, by whom they are for: a user's or group's bindings are found without looking at anybody
 * else's. The index follows the cache: whoever asks first takes in what has changed, so that an answer is never older
 * than the cache.
 *
 * Nothing here suspends. What is borrowed stays until the index is asked for something else.
 */
#ifndef C8S_APISERVER_AUTHZ_RBAC_H
#define C8S_APISERVER_AUTHZ_RBAC_H

#include "apiserver/authz/authz.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

struct rbac;

enum rbac_kind { RBAC_ROLE, RBAC_CLUSTER_ROLE, RBAC_ROLE_BINDING, RBAC_CLUSTER_ROLE_BINDING, RBAC_KINDS };

/* s: whose cache to follow; NULL: nobody's, all comes by rbac_put. */
struct rbac *rbac_new(struct apiserver *s) NONNULL_RESULT;
void rbac_free(struct rbac *r); /* NULL is fine */

/* One object as it is now (NULL: it is gone); key is "namespace/name" or "name". The index takes its own reference. */
void rbac_put(struct rbac *r, enum rbac_kind kind, str key, struct val object, struct frozen *frozen);

/* AUTHZ_ALLOW or AUTHZ_NO_OPINION, with a reason in the arena. */
enum authz_decision rbac_decide(struct rbac *r, struct arena *a, const struct authz_attributes *what, str *ret_reason);

/* A role that somebody has by a binding. */
struct rbac_held {
	str kind, name;               /* of the role */
	bool found;
	struct val rules;             /* borrowed */
	str binding;                  /* key of the binding */
};

/* All roles of a user in a namespace ("": only those for the whole cluster), in the order of their bindings. In the arena. */
struct rbac_held *rbac_held(struct rbac *r, struct arena *a, const struct user *u, str namespace, size_t *ret_n);
/*
 * The errors of roles that were not found, as Kubernetes joins them: "" when all were. plural: as its storage words
 * it, else as its caches do.
 */
str rbac_held_errors(struct arena *a, const struct rbac_held *held, size_t n, bool plural);

/* Whether some binding is of that ClusterRole. */
bool rbac_is_bound(struct rbac *r, str cluster_role);

#endif
