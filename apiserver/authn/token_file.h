/* Static tokens, and whom they stand for. */
#ifndef C8S_APISERVER_AUTHN_TOKEN_FILE_H
#define C8S_APISERVER_AUTHN_TOKEN_FILE_H

#include "apiserver/request.h"

struct tokens;

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

#endif
