#include "scheduler/nominations.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"

void nominations_init(struct nominations *t, struct nodes *nodes)
{
	*t = (struct nominations){ .nodes = nodes };
	map_init(&t->by_uid);
}

static void sum_up(struct nominations *t, uint32_t index)
{
	struct nominated_sum *sum = &t->sums[index];

	nodes_touch(t->nodes, index);
	*sum = (struct nominated_sum){ .least = INT32_MAX };
	for (const struct nominated *n = t->heads[index]; n; n = n->next) {
		sum->least = MIN(sum->least, n->placed->priority);
		for (unsigned r = 0; r < RES_FIXED; r++)
			sum->v[r] = res_add(sum->v[r], n->placed->request.v[r]);
	}
}

static void link_to(struct nominations *t, struct nominated *n, uint32_t index)
{
	struct nominated **at;

	n->index = index;
	n->next = NULL;
	if (index == UINT32_MAX) {
		t->n_lost++;
		return;
	}
	if (index >= t->cap) {
		uint32_t cap = MAX(t->nodes->cap, index + 1);
		t->heads = mem_resize(t->heads, cap * sizeof(*t->heads));
		t->sums = mem_resize(t->sums, cap * sizeof(*t->sums));
		memset(t->heads + t->cap, 0, (cap - t->cap) * sizeof(*t->heads));
		t->cap = cap;
	}
	for (at = &t->heads[index]; *at; at = &(*at)->next)
		;
	*at = n;
	sum_up(t, index);
}

static void unlink_from(struct nominations *t, struct nominated *n)
{
	struct nominated **at;

	if (n->index == UINT32_MAX) {
		t->n_lost--;
		return;
	}
	for (at = &t->heads[n->index]; *at != n; at = &(*at)->next)
		;
	*at = n->next;
	sum_up(t, n->index);
}

void nominations_remove(struct nominations *t, str uid)
{
	struct nominated *n = map_remove(&t->by_uid, uid);

	if (!n)
		return;
	unlink_from(t, n);
	placed_free(n->placed);
	free(n);
}

void nominations_done(struct nominations *t)
{
	struct map_iter it = map_iter(&t->by_uid);
	struct nominated *n;

	while ((n = map_next(&it, NULL))) {
		placed_free(n->placed);
		free(n);
	}
	map_done(&t->by_uid);
	free(t->heads);
	free(t->sums);
}

void nominations_set(struct nominations *t, struct frozen *pod, str node)
{
	str uid = val_str(pod->val, metadata, uid);

	nominations_remove(t, uid);
	if (!node.n)
		return;
	struct nominated *n = mem_zalloc(sizeof(*n) + node.n + 1);
	memcpy(n + 1, node.p, node.n);
	n->node = str_span((char *)(n + 1), node.n);
	n->placed = placed_new(t->nodes, pod);
	n->uid = val_str(n->placed->pod->val, metadata, uid);
	map_put(&t->by_uid, n->uid, n);
	link_to(t, n, nodes_find(t->nodes, node));
}

void nominations_update(struct nominations *t, struct frozen *old, struct frozen *pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str before = val_str(old->val, status, nominatedNodeName), now = val_str(pod->val, status, nominatedNodeName);

	/* A change of something else that was under way when the node was nominated in memory does not take it back. */
	if (!before.n && !now.n)
		now = arena_str(&a, nominations_of(t, val_str(old->val, metadata, uid)));
	nominations_remove(t, val_str(old->val, metadata, uid));
	nominations_set(t, pod, now);
}

void nominations_node_added(struct nominations *t, str name, uint32_t index)
{
	struct map_iter it = map_iter(&t->by_uid);
	struct nominated *n;

	while (t->n_lost && (n = map_next(&it, NULL)))
		if (n->index == UINT32_MAX && str_eq(n->node, name)) {
			t->n_lost--;
			link_to(t, n, index);
		}
}

void nominations_node_removed(struct nominations *t, uint32_t index)
{
	struct nominated *n;

	while ((n = nominations_at(t, index))) {
		unlink_from(t, n);
		link_to(t, n, UINT32_MAX);
	}
}

str nominations_of(const struct nominations *t, str uid)
{
	const struct nominated *n = map_get(&t->by_uid, uid);

	return n ? n->node : STR_NONE;
}

uint32_t nominations_node_of(const struct nominations *t, str uid)
{
	const struct nominated *n = map_get(&t->by_uid, uid);

	return n ? n->index : UINT32_MAX;
}
