/* Between the files of authz/. */
#ifndef C8S_APISERVER_AUTHZ_AUTHZ_PRIV_H
#define C8S_APISERVER_AUTHZ_AUTHZ_PRIV_H

#include "apiserver/apiserver.h"
#include "apiserver/authz/authz.h"

/* What somebody may do in a namespace, as SelfSubjectRulesReview shows it. */
struct authz_rules {
	struct val_builder resources, paths; /* lists of ResourceRule and NonResourceRule */
	bool incomplete;
	str error;                    /* why it is; several with ", " between them */
};

/* One who decides. */
struct authz_way {
	const char *name;             /* as configurations and metrics name it */
	void *self;
	int (*decide)(void *self, struct arena *a, const struct authz_attributes *what, str *ret_reason, struct err *err);
	/* Adds what it knows. */
	int (*rules)(void *self, struct arena *a, const struct user *u, str namespace, struct authz_rules *rules, struct err *err);
	int (*run)(void *self, struct err *err); /* (suspends, until canceled) looks after itself; NULL: nothing to do */
	void (*free)(void *self);
};

/* One webhook, of the flags or of a configuration. Texts live as long as the server. */
struct authz_webhook_options {
	const char *name, *kubeconfig_file, *version;
	int64_t authorized_ttl_ns, unauthorized_ttl_ns, timeout_ns;
	bool deny_on_failure;         /* else: no opinion */
};

int authz_rbac_way(struct apiserver *s, struct authz_way *ret, struct err *err);
int authz_node_way(struct apiserver *s, struct authz_way *ret, struct err *err);
int authz_webhook_way(struct apiserver *s, const struct authz_webhook_options *o, struct authz_way *ret, struct err *err);
/* Reads --authorization-config: its authorizers in their order. */
int authz_config_read(struct apiserver *s, struct arena *a, struct authz_way *ways, size_t max, size_t *ret_n, struct err *err);

#endif
