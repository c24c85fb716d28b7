/* A whole API server in the process of a test, and a client of it that may do everything. */
#ifndef C8S_CLIENT_INSIDE_TESTING_H
#define C8S_CLIENT_INSIDE_TESTING_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/pki.h"
#include "base/fiber_test.h"
#include "base/log.h"
#include "client/client.h"
#include "codec/types.h"
#include "machinery/testing.h"

enum { PATH_BYTES = 256, READY_MS = 20000 };

struct world {
	char folder[PATH_BYTES], store[PATH_BYTES], policy[PATH_BYTES], audit[PATH_BYTES];
	struct arena arena;
	struct apiserver_options options;
	struct apiserver *server;
	struct fiber *fiber;
	struct fiber_cond ready;
	struct client *c;             /* may do everything */
	struct err err;
};

static const char world_policy[] = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n"
			     "  resources: [{group: '', resources: [configmaps, 'pods/binding']}]\n- level: Metadata\n";

/* ---- the server ---- */

static inline void world_on_ready(struct apiserver *s, void *arg)
{
	struct world *w = arg;
	w->server = s;
	fiber_cond_broadcast(&w->ready);
}

static inline int world_run_server(void *arg)
{
	struct world *w = arg;
	int r = apiserver_run(&w->options, world_on_ready, w, &w->err);
	if (r < 0)
		fiber_cond_broadcast(&w->ready);
	return r;
}

static inline void world_make_files(struct world *w)
{
	static const char *const names[] = { "localhost", NULL }, *const addresses[] = { "127.0.0.1", NULL };
	const char *base = getenv("TMPDIR");
	(void)snprintf(w->folder, sizeof w->folder, "%s/c8s-inside-XXXXXX", base && strlen(base) < PATH_BYTES / 2 ? base : "/tmp");
	CHECK(mkdtemp(w->folder));
	(void)snprintf(w->store, sizeof w->store, "%.200s/state.db", w->folder);
	(void)snprintf(w->audit, sizeof w->audit, "%.200s/audit.log", w->folder);
	(void)snprintf(w->policy, sizeof w->policy, "%.200s/policy.yaml", w->folder);
	FILE *f = fopen(w->policy, "we");
	CHECK(f && fputs(world_policy, f) >= 0 && fclose(f) == 0);
	const struct pki_options pki = { .dir = w->folder, .needs = PKI_SERVING | PKI_CLIENTS | PKI_SERVICE_ACCOUNTS, .names = names,
					 .addresses = addresses };
	CHECK(pki_ensure(&pki, &w->err) >= 0);
}

static inline struct apiserver_options world_options(struct world *w)
{
	static const char *const modes[] = { "RBAC", NULL }, *const issuers[] = { "https://kubernetes.default.svc", NULL };
	return (struct apiserver_options){
		.store.path = w->store,
		.bind_address = "127.0.0.1",
		.advertise_address = "127.0.0.1",
		.cert_file = pki_path(&w->arena, w->folder, "apiserver.crt"),
		.key_file = pki_path(&w->arena, w->folder, "apiserver.key"),
		.client_ca_file = pki_path(&w->arena, w->folder, "ca.crt"),
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
			.service_account_signing_key_file = pki_path(&w->arena, w->folder, "sa.key"),
			.api_audiences = issuers,
			.service_account_lookup = true,
		},
		.authz.modes = modes,
		.audit = {
			.policy_file = w->policy,
			.log_path = w->audit,
			.log_format = "json",
			.log = { .mode = "blocking", .truncate_batch_bytes = 1 << 20, .truncate_event_bytes = 1 << 20,
				 .version = "audit.k8s.io/v1" },
		},
	};
}

static inline struct val tree(struct world *w, const char *json)
{
	struct val v;
	const struct json_decode_options as_map = { .sort_keys = true };
	CHECK_INT(json_decode(&w->arena, testing_json(&w->arena, json), &as_map, &v, NULL), 0);
	return v;
}

#define CHECK_OK(w, call)                                                     \
	do {                                                                  \
		if ((call) < 0)                                               \
			fail_msg("%s: %s", #call, (w)->err.msg);              \
	} while (0)

#define CHECK_FAILS(w, call, code, text)                                      \
	do {                                                                  \
		err_clear(&(w)->err);                                         \
		CHECK_INT(call, -(code));                                     \
		CHECK_STR(err_str(&(w)->err), text);                          \
		err_clear(&(w)->err);                                         \
	} while (0)

static inline void world_init(struct world *w)
{
	static const str masters = STR_INIT("system:masters");
	*w = (struct world){ .ready = FIBER_COND_INIT(w->ready, "the server") };
	log_set_level(LOG_LEVEL_ERROR);
	world_make_files(w);
	w->options = world_options(w);
	CHECK_INT(fiber_spawn(world_run_server, w, &w->fiber, &w->err, "server"), 0);
	DEADLINE_SCOPE(READY_MS);
	if (!w->server && fiber_cond_wait(&w->ready, &w->err) < 0)
		fail_msg("%s", w->err.msg);
	if (!w->server)
		fail_msg("the server does not start: %s", w->err.msg);
	const struct user operator = { .name = STR("operator"), .groups = &masters, .n_groups = 1 };
	w->c = client_inside(w->server, &operator, "inside-test/1.0 (x)");
	CHECK_OK(w, client_create(w->c, TYPE(core_v1, Namespace), tree(w, "{'metadata':{'name':'n'}}"), NULL, NULL, &w->err));
}

static inline int world_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static inline void world_done(struct world *w)
{
	client_free(w->c);
	CHECK_INT(fiber_stop(w->fiber), 0);
	(void)nftw(w->folder, world_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	arena_done(&w->arena);
}

#endif
