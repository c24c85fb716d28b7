/* Between the files of authz/. */
#ifndef C8S_APISERVER_AUTHZ_AUTHZ_PRIV_H
#define C8S_APISERVER_AUTHZ_AUTHZ_PRIV_H

#include "apiserver/apiserver.h"
#include "apiserver/authz/authz.h"

struct rbac;

/* What somebody may do in a namespace, as SelfSubjectRulesReview shows it. */
struct authz_rules {
	struct val_builder resources, paths; /* lists of ResourceRule and NonResourceRule */
	bool incomplete;
	str error;                    /* why it is; several with ", " between them */
};

/* One who decides. */
struct authz_way {
	const char *type, *name;      /* as configurations and metrics name it */
	void *self;
	int (*decide)(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err);
	/* Adds what it knows. */
	int (*rules)(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules, struct err *err);
	void (*free)(void *self);
	uint64_t allowed, denied;     /* how often it did */
};

/* One webhook, of the flags or of a configuration. Texts live as long as the server. */
struct authz_webhook_options {
	const char *name, *kubeconfig_file, *version;
	int64_t authorized_ttl_ns, unauthorized_ttl_ns, timeout_ns;
	bool deny_on_failure;         /* else: no opinion */
};

/* Roles and bindings (rbac.h): there also when others decide, since nobody may give away more than they have. */
struct rbac *authz_rbac(struct apiserver *s);
/* (suspends) All that somebody may do in a namespace, as far as those who decide can tell. */
int authz_list_rules(struct apiserver *s, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules,
		     struct err *err);
/* (suspends) Rules of ClusterRoles that are made of others are put right; those that nobody uses may wait (rbac_aggregate.c). */
int rbac_aggregate(struct apiserver *s, struct err *err);
/* (suspends, until canceled) The same whenever something changes, whoever has changed it. */
int rbac_aggregate_run(struct apiserver *s, struct err *err);

int authz_rbac_way(struct apiserver *s, struct authz_way *ret, struct err *err);
int authz_node_way(struct apiserver *s, struct authz_way *ret, struct err *err);
int authz_webhook_way(struct apiserver *s, const struct authz_webhook_options *o, struct authz_way *ret, struct err *err);
/* AlwaysAllow, or AlwaysDeny. */
struct authz_way authz_always_way(bool allow);

enum { AUTHZ_WAYS_MAX = 64 };

/* Those who decide, in their order; shared by the requests that ask them. */
struct authz_chain {
	unsigned refs;
	struct arena arena;           /* of a configuration's texts */
	struct authz_way ways[AUTHZ_WAYS_MAX];
	size_t n;
};

/*
 * The text of --authorization-config: adds its authorizers to the chain. *types: the types other than Webhook that there must be
 * (a set of bits; of a configuration that it replaces), and then those that there are.
 */
int authz_config_read(struct apiserver *s, str text, struct authz_chain *c, unsigned *types, struct err *err);

#endif
