/*
 * The lease is renewed every quarter of its duration, from what the last renewal answered: nobody else writes it, so there is no need to
 * ask first. Only when that fails it is looked for, or made.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/register_priv.h"

enum { TRIES = 5, FIRST_WAIT_MS = 200, LAST_WAIT_MS = 7000 };

struct lease {
	struct node_keeper *keeper;
	int64_t duration_s;
	struct frozen *latest;        /* NULL: not known */
};

static void know(struct lease *l, struct frozen *lease)
{
	frozen_unref(l->latest);
	l->latest = lease;
}

/* (suspends) Renews the one that is known, or makes one. */
static int write_lease(struct lease *l, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct node_keeper *n = l->keeper;
	struct frozen *written = NULL;
	/* A copy: the node may be seen anew while the lease is written. */
	str uid = n->seen ? arena_str(&a, val_str(n->seen->val, metadata, uid)) : STR_NONE;

	if (!l->latest && !uid.n)
		return err_set(err, ERR_NOT_FOUND, "there is no node yet that a lease could belong to");
	struct val lease = node_lease_make(n->o.node, &a, l->latest ? l->latest->val : VAL_EMPTY, uid, l->duration_s, clock_wall_ns());
	int r;
	{
		DEADLINE_SCOPE(node_keeper_timeout_ms(n));
		r = l->latest ? client_update(n->o.client, TYPE(coordination_v1, Lease), lease, NULL, &written, err) :
				client_create(n->o.client, TYPE(coordination_v1, Lease), lease, NULL, &written, err);
	}
	if (r == 0)
		know(l, written);
	return r;
}

/* (suspends) 1: it is there; 0: it is not. */
static int look(struct lease *l, struct err *err)
{
	const struct node_keeper *n = l->keeper;
	struct frozen *lease = NULL;
	int r;
	{
		DEADLINE_SCOPE(node_keeper_timeout_ms(n));
		r = client_get(n->o.client, TYPE(coordination_v1, Lease), STR("kube-node-lease"), n->o.node->name, &lease, err);
	}
	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	know(l, lease);
	return lease != NULL;
}

/* (suspends) Some tries, each from what is there when somebody else was in between. */
static int renew(struct lease *l, struct err *err)
{
	int r = write_lease(l, err);

	for (int i = 1; r < 0 && i < TRIES && fiber_check(NULL) == 0; i++) {
		if (r == -ERR_NOT_FOUND || (r == -ERR_CONFLICT && (r = look(l, err)) <= 0))
			return r < 0 ? r : -ERR_NOT_FOUND;
		r = write_lease(l, err);
	}
	return r;
}

/* (suspends) */
static int look_and_write(struct lease *l, struct err *err)
{
	int r = look(l, err);
	return r < 0 ? r : r > 0 ? renew(l, err) : write_lease(l, err);
}

/* (suspends) Until it is renewed. -ERR_CANCELED alone is passed on. */
static int keep_alive(struct lease *l, struct err *err)
{
	struct err why = ERR_INIT;
	int r = l->latest ? renew(l, &why) : look_and_write(l, &why);

	for (int64_t wait_ms = FIRST_WAIT_MS; r < 0; wait_ms = MIN(2 * wait_ms, (int64_t)LAST_WAIT_MS)) {
		if (fiber_check(err) < 0)
			return -ERR_CANCELED;
		log_warn("the lease of the node cannot be renewed, will retry", KV("error", &why));
		if ((r = fiber_sleep_ms(wait_ms, err)) < 0)
			return r;
		r = look_and_write(l, &why);
	}
	return 0;
}

int node_lease_run(struct node_keeper *n, struct err *err)
{
	struct lease l = { .keeper = n, .duration_s = val_int(n->config, nodeLeaseDurationSeconds) };
	int64_t period_ms = l.duration_s * 1000 / 4;
	int r;

	while ((r = keep_alive(&l, err)) == 0) {
		r = fiber_sleep_ms(period_ms + (int64_t)random_below((uint64_t)period_ms / 25 + 1), err);
		if (r < 0)
			break;
	}
	frozen_unref(l.latest);
	return r;
}
