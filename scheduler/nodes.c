/*
 * An index is taken when a node comes, and given back when it and its last pod are gone. What a node says (labels, taints, images,
 * amounts) is read anew with each change of it; new words are made before old ones are dropped, so that numbers stay.
 */
#include "scheduler/nodes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "machinery/resources.h"
#include "scheduler/counters.h"
#include "scheduler/nodes_priv.h"
#include "scheduler/requests.h"
#include "scheduler/tolerations.h"

#define NODE_ARRAYS(X)                                                                                                      \
	X(object) X(name) X(zone) X(alive) X(unschedulable) X(allocatable) X(requested) X(nonzero_cpu) X(nonzero_memory)    \
	X(labels) X(n_labels) X(taints) X(n_taints) X(pods) X(n_pods) X(ports) X(n_ports) X(generation) X(order) X(place)   \
	X(node_images) X(n_node_images) X(pods_cap) X(ports_cap) X(next) X(prev)

static void grow(struct nodes *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 64;

#define GROW(array)                                                              \
	t->array = mem_resize(t->array, cap * sizeof(t->array[0]));              \
	memset(t->array + t->cap, 0, (cap - t->cap) * sizeof(t->array[0]));
	NODE_ARRAYS(GROW)
#undef GROW
	t->cap = cap;
}

void nodes_init(struct nodes *t)
{
	static const str fixed[RES_FIXED] = {
		[RES_CPU] = STR_INIT("cpu"), [RES_MEMORY] = STR_INIT("memory"), [RES_STORAGE] = STR_INIT("ephemeral-storage"),
		[RES_PODS] = STR_INIT("pods"),
	};

	*t = (struct nodes){ .free = NO_NODE };
	words_init(t);
	map_init(&t->by_name);
	map_init(&t->by_zone);
	map_init(&t->images);
	grow(t);
	t->changed = mem_array(NODES_CHANGES, sizeof(*t->changed));
	for (unsigned r = 0; r < RES_FIXED; r++)
		t->resource_names[r] = word_make(t, fixed[r]);
	t->n_resources = RES_FIXED;
}

/* ---- resources ---- */

bool resource_is_scalar(str name)
{
	return resource_is_extended(name) || resource_is_huge_page(name) || str_find(name, STR("kubernetes.io/")) >= 0 ||
	       str_starts(name, STR("attachable-volumes-"));
}

unsigned nodes_resource_find(const struct nodes *t, str name)
{
	word w = word_find(t, name);

	for (unsigned r = 0; w && r < t->n_resources; r++)
		if (t->resource_names[r] == w)
			return r;
	return RES_MAX;
}

static void sums_change(struct nodes *t, const struct placed *p, int64_t (*change)(int64_t, int64_t))
{
	struct res *sum = &t->requested[p->node];

	for (unsigned r = 0; r < t->n_resources; r++)
		sum->v[r] = change(sum->v[r], p->request.v[r]);
	t->nonzero_cpu[p->node] = change(t->nonzero_cpu[p->node], p->nonzero_cpu);
	t->nonzero_memory[p->node] = change(t->nonzero_memory[p->node], p->nonzero_memory);
}

/* A name has become known: pods that ask for it may already be on nodes. */
static void recount_unknown(struct nodes *t)
{
	for (uint32_t i = 0; i < t->n && t->n_unknown; i++)
		for (uint32_t k = 0; k < t->n_pods[i]; k++) {
			struct placed *p = t->pods[i][k];
			if (!p->unknown)
				continue;
			sums_change(t, p, res_sub);
			placed_request(p);
			sums_change(t, p, res_add);
			t->n_unknown -= !p->unknown;
		}
}

unsigned nodes_resource(struct nodes *t, str name)
{
	unsigned r = nodes_resource_find(t, name);

	if (r < RES_MAX || t->n_resources == RES_MAX || !resource_is_scalar(name))
		return r;
	r = t->n_resources++;
	t->resource_names[r] = word_make(t, name);
	recount_unknown(t);
	return r;
}

/* ---- what nodes and pods say ---- */

static int label_cmp(const void *a, const void *b)
{
	word x = ((const struct label *)a)->key, y = ((const struct label *)b)->key;
	return (x > y) - (x < y);
}

/* Into room for as many as the map has. */
static void labels_fill(struct nodes *t, struct val map, struct label *ret)
{
	uint32_t n = 0;

	VAL_EACH_MEMBER(m, map)
		ret[n++] = (struct label){ word_make(t, atom_str(m->key)), word_make(t, val_as_str(m->val)) };
	if (n)
		qsort(ret, n, sizeof(*ret), label_cmp);
}

static void labels_drop(struct nodes *t, const struct label *labels, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		word_drop(t, labels[i].key);
		word_drop(t, labels[i].value);
	}
}

static void labels_set(struct nodes *t, uint32_t i, struct val map)
{
	struct label *before = t->labels[i];
	uint32_t n_before = t->n_labels[i];

	t->n_labels[i] = val_len(map);
	t->labels[i] = t->n_labels[i] ? mem_array(t->n_labels[i], sizeof(struct label)) : NULL;
	labels_fill(t, map, t->labels[i]);
	labels_drop(t, before, n_before);
	free(before);
}

static void taints_set(struct nodes *t, uint32_t i, struct val list)
{
	struct taint *before = t->taints[i];
	uint32_t n_before = t->n_taints[i], n = 0;

	t->taints[i] = val_len(list) ? mem_array(val_len(list), sizeof(struct taint)) : NULL;
	VAL_EACH(taint, list) {
		unsigned effect = taint_effect(val_str(*taint, effect));
		if (effect < TAINT_EFFECTS)
			t->taints[i][n++] = (struct taint){ word_make(t, val_str(*taint, key)), word_make(t, val_str(*taint, value)),
							    (uint8_t)effect };
	}
	t->n_taints[i] = n;
	for (uint32_t k = 0; k < n_before; k++) {
		word_drop(t, before[k].key);
		word_drop(t, before[k].value);
	}
	free(before);
}

/* ---- nodes ---- */

/* Of a node that is alive, or has pods that stayed behind, or is new. */
static uint32_t index_make(struct nodes *t, str name)
{
	uintptr_t found = (uintptr_t)map_get(&t->by_name, name);
	uint32_t i = t->free;

	if (found)
		return (uint32_t)(found - 1);
	if (i != NO_NODE) {
		t->free = t->next[i];
	} else {
		if (t->n == t->cap)
			grow(t);
		i = t->n++;
	}
	t->name[i] = word_make(t, name);
	map_put(&t->by_name, word_str(t, t->name[i]), (void *)((uintptr_t)i + 1));
	return i;
}

uint32_t nodes_find(const struct nodes *t, str name)
{
	uintptr_t found = (uintptr_t)map_get(&t->by_name, name);
	return found && t->alive[found - 1] ? (uint32_t)(found - 1) : NO_NODE;
}

/* When neither the node nor pods of it are left. */
static void index_free(struct nodes *t, uint32_t i)
{
	map_remove(&t->by_name, word_str(t, t->name[i]));
	word_drop(t, t->name[i]);
	t->name[i] = 0;
	free(t->pods[i]);
	free(t->ports[i]);
	t->pods[i] = NULL;
	t->ports[i] = NULL;
	t->pods_cap[i] = t->ports_cap[i] = 0;
	t->next[i] = t->free;
	t->free = i;
}

static void zone_set(struct nodes *t, uint32_t i, word zone)
{
	if (t->alive[i] && t->zone[i] == zone) {
		word_drop(t, zone);
		return;
	}
	if (t->alive[i]) {
		zone_leave(t, i);
		word_drop(t, t->zone[i]);
	}
	t->zone[i] = zone;
	zone_enter(t, i);
}

uint32_t nodes_put(struct nodes *t, struct frozen *node)
{
	struct val v = node->val, images = val_get(v, status, images);
	uint32_t i = index_make(t, val_str(v, metadata, name));
	struct frozen *before = t->object[i];

	t->object[i] = frozen_ref(node);
	labels_set(t, i, val_get(v, metadata, labels));
	taints_set(t, i, val_get(v, spec, taints));
	if (!before || !val_equal(val_get(before->val, status, images), images))
		node_images_set(t, i, images);
	t->unschedulable[i] = val_bool(v, spec, unschedulable);
	VAL_EACH_MEMBER(m, val_get(v, status, allocatable))
		nodes_resource(t, atom_str(m->key));
	resources_read(t, val_get(v, status, allocatable), &t->allocatable[i]);
	zone_set(t, i, zone_make(t, val_get(v, metadata, labels)));
	t->n_alive += !t->alive[i];
	t->alive[i] = true;
	nodes_touch(t, i);
	frozen_unref(before);
	if (t->counters)
		counters_node(t->counters, i);
	return i;
}

/* All that the object said. */
static void node_clear(struct nodes *t, uint32_t i)
{
	labels_set(t, i, VAL_EMPTY);
	taints_set(t, i, VAL_EMPTY);
	node_images_clear(t, i);
	zone_leave(t, i);
	word_drop(t, t->zone[i]);
	t->zone[i] = 0;
	t->unschedulable[i] = false;
	t->allocatable[i] = (struct res){ 0 };
	frozen_unref(t->object[i]);
	t->object[i] = NULL;
	t->alive[i] = false;
	t->n_alive--;
	nodes_touch(t, i);
}

void nodes_remove(struct nodes *t, str name)
{
	uint32_t i = nodes_find(t, name);

	if (i == NO_NODE)
		return;
	node_clear(t, i);
	if (t->counters)
		counters_node(t->counters, i);
	if (!t->n_pods[i])
		index_free(t, i);
}

word nodes_label(const struct nodes *t, uint32_t node, word key) { return labels_find(t->labels[node], t->n_labels[node], key); }

void nodes_done(struct nodes *t)
{
	counters_free(t->counters);
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->alive[i])
			node_clear(t, i);
		free(t->pods[i]);
		free(t->ports[i]);
	}
#define FREE(array) free(t->array);
	NODE_ARRAYS(FREE)
#undef FREE
	free(t->changed);
	map_done(&t->by_name);
	map_done(&t->by_zone);
	map_done(&t->images);
	free(t->zones);
	words_done(t);
}

/* ---- pods ---- */

static uint8_t protocol_of(str name)
{
	return str_eq(name, STR("UDP")) ? 1 : str_eq(name, STR("SCTP")) ? 2 : 0;
}

uint32_t pod_host_ports(struct val spec, struct host_port *ret)
{
	const struct val lists[] = { val_get(spec, initContainers), val_get(spec, containers) };
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i]) {
			if (i == 0 && !container_is_sidecar(*c))
				continue;
			VAL_EACH(p, val_get(*c, ports)) {
				int64_t port = val_int(*p, hostPort);
				str ip = val_str(*p, hostIP);
				if (port <= 0 || port > UINT16_MAX)
					continue;
				if (ret)
					ret[n] = (struct host_port){ ip.n ? ip : EVERY_IP, (uint16_t)port, protocol_of(val_str(*p, protocol)) };
				n++;
			}
		}
	return n;
}

static void ports_fill(struct nodes *t, struct val spec, struct port *ret, uint32_t n)
{
	CLEANUP(mem_freep) struct host_port *all = NULL;

	if (!n)
		return;
	all = mem_array(n, sizeof(*all));
	pod_host_ports(spec, all);
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (struct port){ word_make(t, all[i].ip), all[i].port, all[i].protocol };
}

static int64_t start_time(struct val pod)
{
	struct timestamp at;
	struct err ignored;
	int64_t ns;

	if (time_parse(val_str(pod, status, startTime), &at, &ignored) < 0 || __builtin_mul_overflow(at.seconds, 1000000000, &ns) ||
	    __builtin_add_overflow(ns, at.nanos, &ns))
		return INT64_MAX;
	return ns;
}

struct placed *placed_new(struct nodes *t, struct frozen *pod)
{
	struct val v = pod->val, labels = val_get(v, metadata, labels);
	uint32_t n_labels = val_len(labels), n_ports = pod_host_ports(val_get(v, spec), NULL);
	struct placed *p = mem_alloc(sizeof(*p) + n_labels * sizeof(struct label) + n_ports * sizeof(struct port));
	struct label *own_labels = (struct label *)(p + 1);
	struct port *own_ports = (struct port *)(own_labels + n_labels);

	*p = (struct placed){
		.table = t, .pod = frozen_ref(pod), .node = NO_NODE,
		.namespace = word_make(t, val_str(v, metadata, namespace)),
		.name = word_make(t, val_str(v, metadata, name)), .uid = word_make(t, val_str(v, metadata, uid)),
		.labels = own_labels, .n_labels = n_labels, .ports = own_ports, .n_ports = n_ports,
		.priority = (int32_t)val_int(v, spec, priority), .start_ns = start_time(v),
		.deleting = val_has(v, metadata, deletionTimestamp),
	};
	labels_fill(t, labels, own_labels);
	ports_fill(t, val_get(v, spec), own_ports, n_ports);
	placed_request(p);
	if (t->counters)
		(void)counters_terms(t->counters, p);
	return p;
}

void placed_free(struct placed *p)
{
	if (!p)
		return;
	assert(p->node == NO_NODE);
	if (p->table->counters)
		counters_pod_free(p->table->counters, p);
	labels_drop(p->table, p->labels, p->n_labels);
	for (uint32_t i = 0; i < p->n_ports; i++)
		word_drop(p->table, p->ports[i].ip);
	word_drop(p->table, p->namespace);
	word_drop(p->table, p->name);
	word_drop(p->table, p->uid);
	frozen_unref(p->pod);
	free(p);
}

static void ports_add(struct nodes *t, uint32_t node, const struct placed *p)
{
	uint32_t n = t->n_ports[node] + p->n_ports;

	if (n > t->ports_cap[node]) {
		t->ports_cap[node] = MAX(n, t->ports_cap[node] * 2);
		t->ports[node] = mem_resize(t->ports[node], t->ports_cap[node] * sizeof(struct port));
	}
	if (p->n_ports)
		memcpy(t->ports[node] + t->n_ports[node], p->ports, p->n_ports * sizeof(struct port));
	t->n_ports[node] = n;
}

static void ports_take(struct nodes *t, uint32_t node, const struct placed *p)
{
	struct port *in_use = t->ports[node];

	for (uint32_t k = 0; k < p->n_ports; k++) {
		const struct port *want = &p->ports[k];
		uint32_t i = 0;
		while (in_use[i].ip != want->ip || in_use[i].port != want->port || in_use[i].protocol != want->protocol)
			i++;
		in_use[i] = in_use[--t->n_ports[node]];
	}
}

void nodes_place(struct nodes *t, struct placed *p, uint32_t node)
{
	assert(p->node == NO_NODE);
	if (p->unknown)
		placed_request(p); /* it may be known by now */
	if (t->n_pods[node] == t->pods_cap[node]) {
		t->pods_cap[node] = t->pods_cap[node] ? t->pods_cap[node] * 2 : 8;
		t->pods[node] = mem_resize(t->pods[node], t->pods_cap[node] * sizeof(struct placed *));
	}
	p->node = node;
	p->at = t->n_pods[node]++;
	t->pods[node][p->at] = p;
	sums_change(t, p, res_add);
	ports_add(t, node, p);
	t->n_unknown += p->unknown;
	nodes_touch(t, node);
	if (t->counters)
		counters_place(t->counters, p);
}

void nodes_unplace(struct nodes *t, struct placed *p)
{
	uint32_t node = p->node;

	if (t->counters)
		counters_unplace(t->counters, p);
	struct placed *last = t->pods[node][--t->n_pods[node]];
	t->pods[node][p->at] = last;
	last->at = p->at;
	sums_change(t, p, res_sub);
	ports_take(t, node, p);
	t->n_unknown -= p->unknown;
	nodes_touch(t, node);
	p->node = NO_NODE;
	if (!t->n_pods[node] && !t->alive[node])
		index_free(t, node);
}
