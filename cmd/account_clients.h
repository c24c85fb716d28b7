/*
 * account_clients: clients with the identities of service accounts, for programs that may act as those of kube-system
 * (--use-service-account-credentials). Accounts are made where they are missing; tokens are asked for (TokenRequest), stay in memory and are
 * renewed before they end.
 */
#ifndef C8S_CMD_ACCOUNT_CLIENTS_H
#define C8S_CMD_ACCOUNT_CLIENTS_H

#include "client/client.h"
#include "client/kubeconfig.h"

struct account_clients;

/*
 * own: whose rights make accounts and tokens; must outlive it. config: the way to the server, of which only the credentials are left out;
 * its texts must live as long. qps, burst: of each client.
 */
struct account_clients *account_clients_new(struct client *own, const struct client_config *config, double qps, unsigned burst) NONNULL_RESULT;
void account_clients_free(struct account_clients *c); /* NULL is fine */
/* (suspends) The client of kube-system/<account>, which belongs to the set. */
int account_clients_get(struct account_clients *c, const char *account, struct client **ret, struct err *err);
/* (suspends, until canceled) Renews tokens. */
int account_clients_run(struct account_clients *c, struct err *err);

#endif
