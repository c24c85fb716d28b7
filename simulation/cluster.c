/* The components, each on a fiber that is canceled to stop it: what it held in memory is gone then, as with a process. */
#include <stdio.h>
#include <string.h>

#include "apiserver/apiserver.h"
#include "client/client_priv.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "hollow/hollow.h"
#include "simulation/simulation.h"

enum { HEARTBEAT_MS = 20 * 1000, EVENT_TTL_S = 3600, REQUEST_MS = 60 * 1000, TOLERATION_S = 30 };

/* ---- parts ---- */

static int run_part(void *arg)
{
	struct part *p = arg;
	struct err err = ERR_INIT;
	int r = p->run(p, &err);

	if (r < 0 && r != -ERR_CANCELED)
		rules_fail(&p->sim->rules, "a component ended", STR_NONE, "%s: %s", p->name, err.msg);
	return r;
}

int part_start(struct part *p, struct err *err)
{
	return p->fiber ? 0 : fiber_spawn(run_part, p, &p->fiber, err, "%s", p->name);
}

void part_stop(struct part *p)
{
	if (p->fiber)
		(void)fiber_stop(TAKE(p->fiber));
}

/* ---- the API server ---- */

static void on_ready(struct apiserver *server, void *arg)
{
	struct simulation *s = arg;

	hub_up(&s->hub, server);
	fiber_cond_broadcast(&s->server_ready);
}

static int run_server(struct part *p, struct err *err)
{
	static const char *const modes[] = { "RBAC", NULL }, *const issuers[] = { "https://kubernetes.default.svc", NULL };
	const struct apiserver_options o = {
		.store.given = memory_store_of(p->sim->store),
		.secure_port = 6443,
		.advertise_address = "192.0.2.1",
		.service_cluster_ip_range = "10.96.0.0/16",
		.service_node_port_first = 30000,
		.service_node_port_last = 32767,
		.event_ttl_s = EVENT_TTL_S,
		.max_requests_inflight = 400,
		.max_mutating_requests_inflight = 200,
		.request_timeout_ms = REQUEST_MS,
		.min_request_timeout_s = 1800,
		.max_body_bytes = 3 << 20,
		.priority_and_fairness = true,
		.authn = { .service_account_issuers = issuers, .api_audiences = issuers },
		.authz.modes = modes,
		.admission = { .not_ready_toleration_s = TOLERATION_S, .unreachable_toleration_s = TOLERATION_S },
	};
	int r = apiserver_run(&o, on_ready, p->sim, err);

	fiber_cond_broadcast(&p->sim->server_ready);
	return r;
}

int server_start(struct simulation *s, struct err *err)
{
	int r = part_start(&s->server, err);

	while (r == 0 && !s->hub.server && !s->rules.failed)
		r = fiber_cond_wait(&s->server_ready, err);
	return r;
}

void server_stop(struct simulation *s)
{
	hub_down(&s->hub);
	part_stop(&s->server);
	memory_store_detach(s->store);
}

/* ---- nodes ---- */

static int run_node(struct part *p, struct err *err)
{
	struct sim_node *n = CONTAINER_OF(p, struct sim_node, part);
	const struct hollow_options o = { .nodes = 1, .first = n->number, .prefix = "node-", .cpu = "4", .memory = "8Gi", .pods = 12, .zones = 2,
					  .heartbeat_ms = HEARTBEAT_MS, .start_ms = 200, .stop_ms = 300, .workers = 4 };
	return hollow_run(&o, n->client, NULL, NULL, err);
}

/* A pod that its node deletes runs no more. */
static void node_asks(void *arg, const struct client_request *q)
{
	struct simulation *s = arg;

	if (strcmp(q->verb, "delete") == 0 && q->type == TYPE(core_v1, Pod))
		rules_stopped(&s->rules, val_str(q->body, preconditions, uid));
}

struct sim_node *node_add(struct simulation *s, struct err *err)
{
	static const char *const groups[] = { "system:masters", NULL };

	if (s->n_nodes == SIM_NODES_MAX)
		return NULL;
	struct sim_node *n = &s->nodes[s->n_nodes];
	*n = (struct sim_node){ .part = { .sim = s, .run = run_node }, .number = s->n_nodes };
	(void)snprintf(n->part.name, sizeof n->part.name, "node-%d", n->number);
	n->client = link_new(&s->hub, "hollow", groups, "hollow/v1 (simulation)");
	link_in_time(n->client);
	link_listen(n->client, (struct link_listener){ .asks = node_asks, .arg = s });
	if (part_start(&n->part, err) < 0)
		return NULL;
	s->n_nodes++;
	return n;
}

/* ---- all of it ---- */

void cluster_init(struct simulation *s)
{
	static const char *const masters[] = { "system:masters", NULL };

	hub_init(&s->hub, &s->dice);
	fiber_cond_init(&s->server_ready, "the API server");
	s->server = (struct part){ .sim = s, .run = run_server, .name = "API server" };
	s->operator = link_new(&s->hub, "operator", masters, "kubectl/v1.36 (simulation)");
	s->meddler = link_new(&s->hub, "meddler", masters, "meddler/v1 (simulation)");
	replicas_init(s);
}

void cluster_done(struct simulation *s)
{
	for (int i = 0; i < s->n_nodes; i++)
		part_stop(&s->nodes[i].part);
	replicas_stop(s);
	server_stop(s);
	hub_done(&s->hub);
	for (int i = 0; i < s->n_nodes; i++)
		client_free(s->nodes[i].client);
	replicas_free(s);
	client_free(s->operator);
	client_free(s->meddler);
}
