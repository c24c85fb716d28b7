/*
 * Schedulers and controller managers: processes that elect a leader by a lease. Whoever loses it ends, as the programs do, and is started again
 * a moment later. Each has links of its own, so that one can be cut off while the other goes on.
 */
#include <stdio.h>
#include <string.h>

#include "client/client_priv.h"
#include "client/election.h"
#include "codec/atoms.h"
#include "controllers/controllers.h"
#include "scheduler/scheduler.h"
#include "simulation/simulation.h"

/* A lease is renewed half as often as usual: that is most of what is written. */
enum { RESTART_MS = 1000, IDENTITY_MAX = 64, RETRY_MS = 4000 };

static struct sim_replica *replica_of(struct part *p) { return CONTAINER_OF(p, struct sim_replica, part); }

/* ---- links ---- */

/* The same for the same name; NULL: there are too many. */
static struct client *account(struct sim_replica *r, const char *name, const char *const *groups, const char *agent)
{
	for (size_t i = 0; i < r->n_accounts; i++)
		if (strcmp(r->accounts[i].name, name) == 0)
			return r->accounts[i].client;
	if (r->n_accounts == SIM_ACCOUNTS_MAX)
		return NULL;
	size_t i = r->n_accounts++;
	(void)snprintf(r->accounts[i].name, sizeof r->accounts[i].name, "%s", name);
	struct client *c = r->accounts[i].client = link_new(&r->part.sim->hub, r->accounts[i].name, groups, agent);
	link_cut(c, r->cut);
	link_die(c, r->dead);
	return c;
}

void replica_cut(struct sim_replica *r, bool cut)
{
	r->cut = cut;
	for (size_t i = 0; i < r->n_accounts; i++)
		link_cut(r->accounts[i].client, cut);
}

static void replica_die(struct sim_replica *r, bool dead)
{
	r->dead = dead;
	for (size_t i = 0; i < r->n_accounts; i++)
		link_die(r->accounts[i].client, dead);
}

void replica_kill(struct sim_replica *r)
{
	replica_die(r, true);
	part_stop(&r->part);
	replica_die(r, false);
}

/* ---- electing ---- */

struct sim_replica *replica_leader(struct sim_replica replicas[SIM_REPLICAS])
{
	for (int i = 0; i < SIM_REPLICAS; i++)
		if (replicas[i].leads)
			return &replicas[i];
	return NULL;
}

/* One that leads. */
struct lead {
	struct sim_replica *replica;
	int (*run)(struct lead *l, struct err *err);
	struct scheduler *scheduler;
	struct informers *informers; /* of the scheduler; to be started; NULL: they run */
};

static int lead_run(void *arg)
{
	struct lead *l = arg;
	struct sim_replica *r = l->replica;
	struct simulation *s = r->part.sim;
	struct sim_replica *all = r >= s->schedulers && r < s->schedulers + SIM_REPLICAS ? s->schedulers : s->managers;
	const struct sim_replica *other = replica_leader(all);
	struct err err = ERR_INIT;

	if (other)
		rules_fail(&s->rules, "two lead at once", STR_NONE, "%s and %s", other->part.name, r->part.name);
	r->leads = true;
	history_say(&s->history, "== %s leads", r->part.name);
	int result = l->run(l, &err);
	r->leads = false;
	if (result != -ERR_CANCELED)
		rules_fail(&s->rules, "a component ended", STR_NONE, "%s: %s", r->part.name, err.msg);
	return result;
}

/* Until the lease is lost, or it is stopped: the lease is given back then, if it can be. */
static int elect(struct sim_replica *r, struct lead *l, struct err *err)
{
	char identity[IDENTITY_MAX];

	(void)snprintf(identity, sizeof identity, "%s-%d", r->part.name, ++r->starts);
	const struct election e = { .client = r->accounts[0].client, .namespace = STR("kube-system"), .name = str_of(r->lease), .identity = str_of(identity),
				    .retry_ms = RETRY_MS, .release = true };
	return election_run(&e, lead_run, l, err);
}

/* ---- controllers ---- */

static const char *const everybody[] = { "system:authenticated", NULL };

static struct client *client_for(void *arg, const char *name)
{
	static const char *const groups[] = { "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated", NULL };
	static const char agent[] = "kube-controller-manager/v1.36 (simulation)";
	char user[sizeof ((struct sim_replica *)0)->accounts[0].name];

	if (!name)
		return account(arg, "system:kube-controller-manager", everybody, agent);
	(void)snprintf(user, sizeof user, "system:serviceaccount:kube-system:%s", name);
	return account(arg, user, groups, agent);
}

static int lead_controllers(struct lead *l, struct err *err)
{
	static const char *const enabled[] = { "cronjob", "daemonset", "deployment", "disruption", "endpoint", "endpointslice", "garbagecollector", "job",
					       "local-path-provisioner", "namespace", "nodelifecycle", "persistentvolume-binder", "podgc", "pv-protection",
					       "pvc-protection", "replicaset", "replicationcontroller", "resourcequota", "serviceaccount", "statefulset",
					       "taint-eviction-controller", "ttl-after-finished", NULL };
	return controllers_run(&(struct controllers_options){ .client_for = client_for, .arg = l->replica, .enabled = enabled,
							      .provisioner_root = "/var/lib/c8s/volumes" }, NULL, NULL, err);
}

static int run_manager(struct part *p, struct err *err)
{
	struct sim_replica *r = replica_of(p);
	struct lead l = { .replica = r, .run = lead_controllers };
	int result;

	(void)client_for(r, NULL);
	while ((result = elect(r, &l, err)) == -ERR_UNAVAILABLE && fiber_sleep_ms(RESTART_MS, err) == 0)
		;
	return result == -ERR_UNAVAILABLE ? -ERR_CANCELED : result;
}

/* ---- the scheduler ---- */

static int lead_scheduler(struct lead *l, struct err *err)
{
	int r = l->informers ? informers_start(l->informers, err) : 0;

	if (r == 0 && l->informers)
		r = informers_wait(l->informers, err);
	return r == 0 ? scheduler_run(l->scheduler, err) : r;
}

/* One process: it knows what there is before it leads, or not before it leads (delayCacheUntilActive). */
static int scheduler_process(struct sim_replica *r, struct client *client, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *config = NULL;
	struct lead l = { .replica = r, .run = lead_scheduler };
	bool knows = !r->part.sim->cache_late;
	int result = scheduler_config_load(NULL, VAL_EMPTY, &config, err);

	if (result < 0)
		return result;
	struct informers *informers = informers_new(client);
	const struct scheduler_options o = { .client = client, .informers = informers, .config = config, .seed = r->part.sim->seed + 1 + (uint64_t)r->number };
	l.informers = knows ? NULL : informers;
	result = scheduler_new(&o, &l.scheduler, err);
	if (result == 0 && knows)
		result = informers_start(informers, err);
	if (result == 0 && knows)
		result = informers_wait(informers, err);
	if (result == 0)
		result = elect(r, &l, err);
	scheduler_free(l.scheduler);
	informers_free(informers);
	return result;
}

/* A binding that may be done or not: the scheduler has to take it for not done. */
static void binding_fails(void *arg, const struct client_request *q)
{
	struct simulation *s = arg;

	if (str_eq(q->subresource, STR("binding")))
		rules_unsure(&s->rules, val_str(q->body, target, name));
}

static int run_scheduler(struct part *p, struct err *err)
{
	struct sim_replica *r = replica_of(p);
	struct client *client = account(r, "system:kube-scheduler", everybody, "kube-scheduler/v1.36 (simulation)");
	int result;

	link_listen(client, (struct link_listener){ .fails = binding_fails, .arg = p->sim });
	while ((result = scheduler_process(r, client, err)) == -ERR_UNAVAILABLE && fiber_sleep_ms(RESTART_MS, err) == 0)
		;
	return result == -ERR_UNAVAILABLE ? -ERR_CANCELED : result;
}

/* ---- all of them ---- */

static void init(struct simulation *s, struct sim_replica *r, int number, const char *name, const char *lease, int (*run)(struct part *p, struct err *err))
{
	*r = (struct sim_replica){ .part = { .sim = s, .run = run }, .lease = lease, .number = number };
	(void)snprintf(r->part.name, sizeof r->part.name, "%s-%d", name, number);
}

void replicas_init(struct simulation *s)
{
	for (int i = 0; i < SIM_REPLICAS; i++) {
		init(s, &s->schedulers[i], i, "scheduler", "kube-scheduler", run_scheduler);
		init(s, &s->managers[i], i, "controllers", "kube-controller-manager", run_manager);
	}
}

int replicas_start(struct simulation *s, struct err *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < SIM_REPLICAS; i++)
		if ((r = part_start(&s->managers[i].part, err)) == 0)
			r = part_start(&s->schedulers[i].part, err);
	return r;
}

void replicas_stop(struct simulation *s)
{
	for (int i = 0; i < SIM_REPLICAS; i++) {
		replica_kill(&s->managers[i]);
		replica_kill(&s->schedulers[i]);
	}
}

static void free_links(struct sim_replica *r)
{
	for (size_t i = 0; i < r->n_accounts; i++)
		client_free(r->accounts[i].client);
}

void replicas_free(struct simulation *s)
{
	for (int i = 0; i < SIM_REPLICAS; i++) {
		free_links(&s->managers[i]);
		free_links(&s->schedulers[i]);
	}
}
