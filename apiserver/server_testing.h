/* For tests and benchmarks: a folder with the keys and certificates of an API server, and its options, as the flags are when nobody says anything. */
#ifndef C8S_APISERVER_SERVER_TESTING_H
#define C8S_APISERVER_SERVER_TESTING_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/pki.h"

enum { SERVER_FOLDER_BYTES = 256 };

struct server_folder {
	char path[SERVER_FOLDER_BYTES];
	struct arena arena;           /* of texts in the options */
};

/* Blocks. */
static inline int server_folder_make(struct server_folder *f, struct err *err)
{
	static const char *const names[] = { "localhost", NULL }, *const addresses[] = { "127.0.0.1", NULL };
	const char *base = getenv("TMPDIR");

	*f = (struct server_folder){ .arena = ARENA_INIT };
	(void)snprintf(f->path, sizeof f->path, "%s/c8s-server-XXXXXX", base && strlen(base) < SERVER_FOLDER_BYTES / 2 ? base : "/tmp");
	if (!mkdtemp(f->path))
		return err_set(err, ERR_SYSTEM, "no temporary folder");
	return pki_ensure(&(struct pki_options){ .dir = f->path, .needs = PKI_SERVING | PKI_CLIENTS | PKI_SERVICE_ACCOUNTS, .names = names,
						 .addresses = addresses }, err);
}

static inline int server_folder_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static inline void server_folder_done(struct server_folder *f)
{
	(void)nftw(f->path, server_folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	arena_done(&f->arena);
}

static inline const char *server_folder_path(struct server_folder *f, const char *name)
{
	return arena_printf(&f->arena, "%s/%s", f->path, name).p;
}

/* A file with this text; its path. NULL: it cannot be written. */
static inline const char *server_folder_put(struct server_folder *f, const char *name, const char *text)
{
	const char *path = server_folder_path(f, name);
	FILE *file = fopen(path, "we");

	return file && fputs(text, file) >= 0 && fclose(file) == 0 ? path : NULL;
}

static inline struct apiserver_options server_options(struct server_folder *f)
{
	static const char *const modes[] = { "RBAC", NULL }, *const issuers[] = { "https://kubernetes.default.svc", NULL };

	return (struct apiserver_options){
		.store.path = server_folder_path(f, "state.db"),
		.bind_address = "127.0.0.1",
		.advertise_address = "127.0.0.1",
		.cert_file = pki_path(&f->arena, f->path, "apiserver.crt"),
		.key_file = pki_path(&f->arena, f->path, "apiserver.key"),
		.client_ca_file = pki_path(&f->arena, f->path, "ca.crt"),
		.service_cluster_ip_range = "10.96.0.0/16",
		.service_node_port_first = 30000,
		.service_node_port_last = 32767,
		.event_ttl_s = 3600,
		.max_requests_inflight = 400,
		.max_mutating_requests_inflight = 200,
		.request_timeout_ms = 60000,
		.min_request_timeout_s = 1800,
		.max_body_bytes = 3 << 20,
		.priority_and_fairness = true,
		.authn = {
			.service_account_issuers = issuers,
			.service_account_signing_key_file = pki_path(&f->arena, f->path, "sa.key"),
			.api_audiences = issuers,
			.service_account_lookup = true,
		},
		.authz.modes = modes,
	};
}

#endif
