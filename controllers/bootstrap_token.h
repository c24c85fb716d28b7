/* bootstrap_token: Secrets of type bootstrap.kubernetes.io/token, and signatures by them. Pure. */
#ifndef C8S_CONTROLLERS_BOOTSTRAP_TOKEN_H
#define C8S_CONTROLLERS_BOOTSTRAP_TOKEN_H

#include "codec/val.h"

#define BOOTSTRAP_TOKEN_NAMESPACE "kube-system"
#define BOOTSTRAP_TOKEN_TYPE "bootstrap.kubernetes.io/token"

/* Whether the Secret is one that these controllers look at. */
bool bootstrap_token_is(struct val secret);
/* In how many nanoseconds it ends: 0: it has ended (or says so in a way that cannot be read); INT64_MAX: never. */
int64_t bootstrap_token_left_ns(struct arena *a, struct val secret, int64_t now_ns);
/* Whether it may sign, with its id and secret, in the arena. */
bool bootstrap_token_signs(struct arena *a, struct val secret, int64_t now_ns, str *ret_id, str *ret_secret);
/* A JWS (RFC 7515) of the content by HS256, without the content (appendix F): "header..signature", in the arena. */
str bootstrap_token_sign(struct arena *a, str content, str id, str secret);

/*
 * The data of kube-public/cluster-info as it should be: with one signature of its kubeconfig for each token that may sign, and no other.
 * VAL_NONE: it is so, or there is nothing to sign. secrets: those of kube-system, in the order of names.
 */
struct val bootstrap_signed_data(struct arena *a, struct val data, struct val secrets, int64_t now_ns);

#endif
