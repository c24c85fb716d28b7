/*
 * Credentials, and whom they stand for: static tokens (authn_token.c) and client certificates (authn_x509.c).
 */
#ifndef C8S_APISERVER_AUTHN_TOKEN_H
#define C8S_APISERVER_AUTHN_TOKEN_H

#include "apiserver/request.h"

struct tokens;
struct x509_st;

/*
 * The file of --token-auth-file: lines of CSV, token,user,uid[,"group1,group2"]; read once, at the start.
 * Later lines replace earlier ones with the same token; lines with an empty token are skipped; both are logged.
 */
int authn_token_load(const char *path, struct tokens **ret, struct err *err);
/* Takes NULL. */
void authn_token_free(struct tokens *t);
/*
 * The user of a token; texts live as long as the tokens. Takes a time that tells nothing about the tokens: they are found
 * by their hash. NULL finds nothing.
 */
bool authn_token_find(const struct tokens *t, str token, struct user *ret);

/*
 * Who a client certificate says that it is; whether its signer is trusted was found out by TLS. The user's name is the common
 * name, the groups are the organizations, the uid is Kubernetes' attribute for it, the fingerprint becomes the credential id;
 * all in the arena. -ERR_UNAUTHORIZED when the certificate is not valid now, not meant for clients, or names nobody.
 */
int authn_x509_user(struct x509_st *cert, struct arena *a, struct user *ret, struct err *err);

#endif
