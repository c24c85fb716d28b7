/*
 * Who we are, as it changes: tokens in files are read again, programs (exec plugins) are asked again when what they said
 * has expired or was refused.
 */
#ifndef C8S_CLIENT_CREDENTIALS_H
#define C8S_CLIENT_CREDENTIALS_H

#include "client/kubeconfig.h"

struct credentials;

/* The configuration is borrowed. -ERR_INVALID for one that contradicts itself, in client-go's words. */
int credentials_new(const struct client_config *config, struct credentials **ret, struct err *err);
void credentials_free(struct credentials *c); /* NULL is fine */

/* Texts are borrowed until the fiber suspends. */
struct credential {
	str authorization;           /* the header's value; empty: none */
	const char *cert, *key;      /* PEM, from a program; NULL: none */
	unsigned cert_number;        /* another one when these have changed */
	unsigned number;             /* of this credential: for credentials_refused */
};

/* (suspends) What to show now. */
int credentials_get(struct credentials *c, struct credential *ret, struct err *err);
/*
 * (suspends) The server did not accept the credential of this number: looks for a newer one. True when there is one, and
 * asking the server again makes sense.
 */
bool credentials_refused(struct credentials *c, unsigned number);

/* Whatever is wrong with a credential: -ERR_UNAUTHORIZED. */
static inline int credentials_fail(struct err *err)
{
	if (err)
		err->code = ERR_UNAUTHORIZED;
	return -ERR_UNAUTHORIZED;
}

/* ---- exec_plugin.c ---- */

/* What a program said, in memory of its own. */
struct exec_credential {
	char *token, *cert, *key;    /* NULL: none */
	int64_t expires_ns;          /* clock_wall_ns(); INT64_MAX: never */
};

void exec_credential_done(struct exec_credential *e);
/*
 * (suspends) Runs the program of an ExecConfig. hint: whether to say in an error how the program can be installed. Errors are
 * -ERR_UNAUTHORIZED with client-go's words.
 */
int exec_plugin_run(struct val config, struct val cluster, bool hint, struct exec_credential *ret, struct err *err);
/* Whether the configuration can be used at all: its apiVersion. */
int exec_plugin_check(struct val config, struct err *err);

#endif
