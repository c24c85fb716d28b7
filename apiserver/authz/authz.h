/*
 * authz/: may they. Those who decide are asked one after the other; the first that has an opinion decides, and when nobody
 * has one, the answer is no.
 *
 *	rbac.h             roles and bindings: an index that is kept up to date from the cache
 *	rbac_rules.h       what a rule covers; whether some rules cover others (nobody may give more than they have)
 *	rbac_bootstrap.c   the roles and bindings that every cluster has, put right at start; rbac_defaults.h: which those are
 *	rbac_aggregate.c   roles made of others
 *	rbac_escalation.c  writes of roles and bindings by those who may not give so much
 *	node.c             a kubelet sees only what its pods need: node_graph.h
 *	webhook.c          another server decides
 *	authz.c            the stage, and the chain; authz_config.c: AuthorizationConfiguration
 *	review.c           the same question, asked by a client: SubjectAccessReview and its kin; rules_review.c: all that I may
 */
#ifndef C8S_APISERVER_AUTHZ_AUTHZ_H
#define C8S_APISERVER_AUTHZ_AUTHZ_H

#include "apiserver/request.h"

struct authz;

struct authz_options {
	const char *const *modes;     /* "Node", "RBAC", ...; never empty unless there is a config_file */
	const char *webhook_config_file, *webhook_version; /* version: "v1" or "v1beta1" */
	int64_t webhook_authorized_ttl_ns, webhook_unauthorized_ttl_ns;
	const char *config_file;      /* --authorization-config */
	const char *policy_file;      /* of ABAC */
};

/* What somebody wants to do. */
struct authz_attributes {
	const struct user *user;
	str verb;                     /* "get", "deletecollection", ...; of a path: the HTTP method in small letters */
	bool is_resource;
	str group, version, resource, subresource, namespace, name;
	str path;                     /* of what is no resource */
	/* Selectors of lists, watches and collection deletes, as the query has them; n == 0: none. */
	str field_selector, label_selector;
};

enum authz_decision { AUTHZ_NO_OPINION, AUTHZ_ALLOW, AUTHZ_DENY };

int authz_new(struct apiserver *s, struct authz **ret, struct err *err);
void authz_free(struct authz *z); /* NULL is fine */
/* (suspends, until canceled) Aggregated roles are kept up to date, and the configuration file is read again when it changes. */
int authz_run(struct apiserver *s, struct err *err);

/*
 * (suspends) What the chain says: a decision, with a reason (may be empty) in the arena; < 0: it could not be found out.
 * Who denies because they could not find out says both: AUTHZ_DENY, and err is set.
 */
int authz_decide(struct apiserver *s, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err);
/* What a request is about. */
struct authz_attributes authz_of_request(const struct request *q);
/* The same question about something else, for the user of the request: true only for AUTHZ_ALLOW. */
bool authz_allows(struct request *q, const struct authz_attributes *what);
/* 403 with Kubernetes' text: pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "y" */
int authz_forbid(struct request *q, const struct authz_attributes *what, str reason);

/* What was decided, and by whom, in the text form of metrics.h. */
void authz_metrics(const struct authz *z, struct buf *b);

/* Creates of the reviews (subresource.h). */
int access_review_handle(struct request *q, struct err *err);       /* subject, self and local, by the endpoint */
int rules_review_handle(struct request *q, struct err *err);

/* Writes of Roles, ClusterRoles and their bindings: 403 when they give more than the writer has (escalate, bind). */
int rbac_escalation_check(struct request *q, struct err *err);
/* (suspends) Makes and puts right the roles and bindings that every cluster has. */
int rbac_bootstrap(struct apiserver *s, struct err *err);

#endif
