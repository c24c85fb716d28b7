/* A whole API server in the process of a test, and a client of it that may do everything. */
#ifndef C8S_CLIENT_INSIDE_TESTING_H
#define C8S_CLIENT_INSIDE_TESTING_H

#include "apiserver/server_testing.h"
#include "base/fiber_test.h"
#include "base/log.h"
#include "client/client.h"
#include "codec/types.h"
#include "machinery/testing.h"

enum { READY_MS = 20000 };

struct world {
	struct server_folder folder;
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

static inline struct apiserver_options world_options(struct world *w)
{
	struct apiserver_options o = server_options(&w->folder);

	o.audit = (struct audit_options){
		.policy_file = server_folder_put(&w->folder, "policy.yaml", world_policy),
		.log_path = server_folder_path(&w->folder, "audit.log"),
		.log_format = "json",
		.log = { .mode = "blocking", .truncate_batch_bytes = 1 << 20, .truncate_event_bytes = 1 << 20, .version = "audit.k8s.io/v1" },
	};
	return o;
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
	CHECK(server_folder_make(&w->folder, &w->err) >= 0);
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

static inline void world_done(struct world *w)
{
	client_free(w->c);
	CHECK_INT(fiber_stop(w->fiber), 0);
	server_folder_done(&w->folder);
	arena_done(&w->arena);
}

#endif
