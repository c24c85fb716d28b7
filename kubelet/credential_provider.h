/*
 * credential_provider: programs beside the kubelet that know credentials for images of some registries. They read a
 * CredentialProviderRequest and print a CredentialProviderResponse; which of them is asked for what says a CredentialProviderConfig.
 *
 *	credential_provider.c           asking them, keeping their answers
 *	credential_provider_answer.c    reading an answer
 *	credential_provider_config.c    reading the configuration, checks with Kubernetes' messages
 *	credential_provider_client.c    service accounts and tokens of the API server
 */
#ifndef C8S_KUBELET_CREDENTIAL_PROVIDER_H
#define C8S_KUBELET_CREDENTIAL_PROVIDER_H

#include "codec/val.h"

struct credential_providers;

/* Texts live as long as the providers. */
struct credential_provider_options {
	const char *config;           /* a file, or a folder of *.json, *.yaml and *.yml */
	const char *bin_dir;          /* where the programs are */
	bool tokens;                  /* feature gate KubeletServiceAccountTokenForCredentialProviders */
	/* (suspends) core/v1.ServiceAccount, and a token by authentication.k8s.io/v1.TokenRequest; for those with tokenAttributes. */
	int (*service_account)(void *arg, struct arena *a, str namespace, str name, struct val *ret, struct err *err);
	int (*token)(void *arg, struct arena *a, str namespace, str name, struct val request, str *ret, struct err *err);
	void *arg;
};

/* Blocks. -ERR_INVALID and others with Kubernetes' messages, also for a program that is not there. */
int credential_providers_open(const struct credential_provider_options *o, struct credential_providers **ret, struct err *err);
/* Nobody may be asking. NULL is fine. */
void credential_providers_free(struct credential_providers *p);

/*
 * (suspends) Asks all providers for credentials of a repository ("registry.example/team/app"), for a pod. found is called for every
 * one that answers, with a map of credentialprovider/v1.AuthConfig by pattern and the coordinates (uid, namespace, name) of the service
 * account that they are for (VAL_NONE: for everybody on the node), all in the arena. Those that fail are logged: the pull may do without.
 */
void credential_providers_ask(struct credential_providers *p, struct arena *a, str repository, struct val pod,
			      void (*found)(void *arg, struct val auth, struct val account), void *arg);

/* ---- credential_provider_client.c: two functions for the options above, whose arg is a struct client or NULL ---- */

int credential_provider_account(void *client, struct arena *a, str namespace, str name, struct val *ret, struct err *err);
int credential_provider_token(void *client, struct arena *a, str namespace, str name, struct val request, str *ret, struct err *err);

/* ---- credential_provider_config.c ---- */

/* List of kubeletconfig/v1.CredentialProvider of all files, checked; in the arena. */
int credential_provider_config(struct arena *a, const char *path, bool tokens, struct val *ret, struct err *err);

/* ---- what a program answers: credential_provider_answer.c, pure ---- */

enum credential_scope { CREDENTIAL_NOWHERE, CREDENTIAL_IMAGE, CREDENTIAL_REGISTRY, CREDENTIAL_GLOBAL };

struct credential_answer {
	struct val auth;              /* map of AuthConfig by pattern */
	enum credential_scope scope;  /* what else it is good for */
	str type;                     /* the same as it was said */
	int64_t life_ns;              /* how long it may be kept; 0: not at all */
};

/* config: kubeletconfig/v1.CredentialProvider. The answer is in the arena. -ERR_BAD_REQUEST */
int credential_answer_parse(struct arena *a, struct val config, str text, struct credential_answer *ret, struct err *err);
/* Whether it may be used; token: that was part of the question, "": none. */
int credential_answer_check(const struct credential_answer *answer, struct val config, str token, struct err *err);

#endif
