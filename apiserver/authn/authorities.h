/*
 * Whose certificates are believed: the authorities in a file, which may be another one tomorrow.
 */
#ifndef C8S_APISERVER_AUTHN_AUTHORITIES_H
#define C8S_APISERVER_AUTHN_AUTHORITIES_H

#include "base/err.h"

struct authorities;
struct x509_st;
struct stack_st_X509;

/* file lives as long as they do; of: whom they vouch for, for the log. It blocks. */
int authorities_open(const char *file, const char *of, struct authorities **ret, struct err *err);
void authorities_free(struct authorities *t); /* NULL is fine */
/* (suspends, until canceled) Looks at the file every few seconds. What cannot be read leaves the old ones in place. */
int authorities_run(struct authorities *t, struct err *err);
/* Another number each time they are other ones. */
unsigned authorities_generation(const struct authorities *t);
/*
 * OpenSSL's X509_V_OK when one of them vouches for it, maybe by others in between (chain; NULL: none), and it is valid now, or its
 * code for why not.
 */
int authorities_check(const struct authorities *t, struct x509_st *cert, struct stack_st_X509 *chain);

#endif
