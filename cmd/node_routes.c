/*
 * One informer and one loop: whatever changes of a node that matters to us wakes the loop, which makes the whole plan anew and hands it to
 * cni_routes_sync. That compares with what the kernel has, so doing it once too often costs little, and nothing has to be remembered here.
 */
#include "cmd/node_routes.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/log.h"
#include "client/informer.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { LOOK_MS = 30 * 1000, AGAIN_MS = 1000, ALLOWED_MS = 200, SILENT_TRIES = 50 };

struct node_routes {
	const struct node_routes_options *o;
	struct cni *cni;
	struct informer *nodes;
	struct informer_listener listener;
	struct fiber_cond wake;
	bool changed;
	struct err told;              /* so that a failure that lasts is told once */
};

/* ---- what shall be ---- */

/* The address that other nodes reach it by; the first is what its kubelet prefers. */
static str address_of(struct val node)
{
	VAL_EACH(address, val_get(node, status, addresses))
		if (str_eq(val_str(*address, type), STR("InternalIP")))
			return val_str(*address, address);
	return STR_NONE;
}

/* The oldest first, as the server has made them: a node that names the range of another one has come later. */
static int by_age(const void *a, const void *b)
{
	const struct val *x = a, *y = b;
	int order = str_cmp(val_str(*x, metadata, creationTimestamp), val_str(*y, metadata, creationTimestamp));
	return order ? order : str_cmp(val_str(*x, metadata, name), val_str(*y, metadata, name));
}

void node_routes_plan(struct arena *a, struct val *nodes, size_t n, str own_name, const char **ret_own, struct cni_route **ret, size_t *ret_n)
{
	size_t most = 0;

	*ret_own = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < n; i++)
		most += val_len(val_get(nodes[i], spec, podCIDRs));
	*ret = ARENA_ARRAY(a, struct cni_route, most + 1);
	if (n)
		qsort(nodes, n, sizeof(*nodes), by_age);
	for (size_t i = 0; i < n; i++) {
		str address = address_of(nodes[i]);
		if (!address.n)
			continue; /* its kubelet has not said anything yet */
		bool own = str_eq(val_str(nodes[i], metadata, name), own_name);
		if (own)
			*ret_own = arena_str(a, address).p;
		VAL_EACH(cidr, val_get(nodes[i], spec, podCIDRs))
			(*ret)[(*ret_n)++] = (struct cni_route){ arena_str(a, val_as_str(*cidr)), arena_str(a, address), own };
	}
}

/* ---- doing it ---- */

/* One set of ways, for a thread that may wait for the kernel and the disk. */
struct job {
	struct cni *cni;
	const char *own;
	struct cni_route *routes;
	size_t n;
};

static int sync_blocking(void *arg, struct err *err)
{
	struct job *j = arg;

	if (cni_network_is_foreign(j->cni))
		j->n = 0;
	return cni_routes_sync(j->cni, j->n ? j->own : NULL, j->routes, j->n, err);
}

/* (suspends) */
static int sync_routes(struct node_routes *x, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct job job = { .cni = x->cni };
	struct val *nodes = ARENA_ARRAY(&a, struct val, informer_count(x->nodes) + 1);
	size_t n = 0;

	INFORMER_EACH(node, informer_each(x->nodes))
		nodes[n++] = node->val; /* stays as long as we do not suspend */
	node_routes_plan(&a, nodes, n, x->o->node_name, &job.own, &job.routes, &job.n);
	return job.own ? fiber_blocking(sync_blocking, &job, err) : 0;
}

static bool same(struct frozen *old, struct frozen *object)
{
	return old && object && val_equal(val_get(old->val, spec), val_get(object->val, spec)) && val_equal(val_get(old->val, status), val_get(object->val, status));
}

static void changed(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct node_routes *x = CONTAINER_OF(l, struct node_routes, listener);

	if (same(old, object))
		return;
	x->changed = true;
	fiber_cond_broadcast(&x->wake);
}

/* (suspends) Until something has changed, or so much time has passed. */
static int pause_ms(struct node_routes *x, int64_t ms, struct err *err)
{
	int r = 0;
	{
		DEADLINE_SCOPE(ms);
		while (r == 0 && !x->changed)
			r = fiber_cond_wait(&x->wake, NULL);
	}
	return fiber_check(err);
}

static int keep_routes(struct node_routes *x, struct err *err)
{
	int r;

	for (;;) {
		struct err why = ERR_INIT;
		x->changed = false;
		r = sync_routes(x, &why);
		if (r < 0 && fiber_check(err) < 0)
			return -ERR_CANCELED;
		bool refused = r == -ERR_INVALID;
		if (r < 0 && !str_eq(err_str(&why), err_str(&x->told)))
			log_warn(refused ? "a node says that it has pods which it cannot have" : "pods of other nodes cannot all be reached, trying again", KV("err", &why));
		x->told = why;
		if ((r = pause_ms(x, r < 0 && !refused ? AGAIN_MS : LOOK_MS, err)) < 0)
			return r;
	}
}

/* ---- knowing the nodes ---- */

/* Of a node only this is kept: there may be thousands. */
static struct val keep(struct arena *a, struct val node)
{
	struct val meta = val_get(node, metadata);

	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_get(meta, name)), F(resourceVersion, val_get(meta, resourceVersion)),
					     F(creationTimestamp, val_get(meta, creationTimestamp)))),
		      F(spec, OBJECT(a, F(podCIDRs, val_get(node, spec, podCIDRs)))), F(status, OBJECT(a, F(addresses, val_get(node, status, addresses)))));
}

/* (suspends) A cluster that has just been made gives its nodes this right a moment after it lets them in. */
static int wait_allowed(struct client *client, struct err *err)
{
	for (int i = 0;; i++) {
		CLEANUP(frozen_unrefp) struct frozen *list = NULL;
		struct err why = ERR_INIT;
		int r = client_list(client, TYPE(core_v1, Node), &(struct client_list_options){ .limit = 1 }, &list, &why);
		if (r == 0)
			return 0;
		if (i == SILENT_TRIES)
			log_warn("pods of other nodes cannot be reached yet, as their nodes cannot be listed", KV("err", &why));
		if ((r = fiber_sleep_ms(i < SILENT_TRIES ? ALLOWED_MS : LOOK_MS, err)) < 0)
			return r;
	}
}

static int follow(struct node_routes *x, struct client *client, struct err *err)
{
	struct informers *all = informers_new(client);
	int r;

	x->nodes = informers_get(all, TYPE(core_v1, Node), &(struct informer_options){ .keep = keep });
	x->listener.changed = changed;
	informer_listen(x->nodes, &x->listener);
	if ((r = informers_start(all, err)) == 0 && (r = informers_wait(all, err)) == 0)
		r = keep_routes(x, err);
	informer_unlisten(&x->listener);
	informers_free(all);
	return r;
}

/* The kubelet renews its certificate there; that of the kubeconfig may be the first one, and expired. */
static void use_renewed(struct client_config *c, const char *file)
{
	if (!file || !str_starts(c->server, STR("https://")) || access(file, R_OK) < 0)
		return;
	c->client_cert_file = c->client_key_file = str_of(file);
	c->client_cert = c->client_key = c->token = c->token_file = c->username = c->password = STR_NONE;
	c->exec = VAL_EMPTY;
}

int node_routes_run(const struct node_routes_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(client_freep) struct client *client = NULL;
	struct node_routes x = { .o = o, .wake = FIBER_COND_INIT(x.wake, "a change of the nodes") };
	struct client_config config;
	int r = kubeconfig_open(&a, o->kubeconfig, &config, err);

	if (r < 0)
		return r;
	use_renewed(&config, o->certificate);
	config.servers_file = o->servers_file ? str_of(o->servers_file) : STR_NONE;
	if ((r = client_open(&config, &client, err)) < 0 || (r = wait_allowed(client, err)) < 0)
		return r;
	x.cni = cni_new(&(struct cni_options){ .conf_dir = o->cni_conf_dir, .bin_dirs = (const char *const[]){ NULL }, .cache_dir = o->cni_cache_dir });
	r = follow(&x, client, err);
	cni_free(x.cni);
	return r;
}
