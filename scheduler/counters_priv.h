/* What the files of the counters share: counters.c (picks, crowds, pods), counters_places.c (topos, scopes), counters_objects.c (terms, namespaces, services). */
#ifndef C8S_SCHEDULER_COUNTERS_PRIV_H
#define C8S_SCHEDULER_COUNTERS_PRIV_H

#include "machinery/node_selector.h"
#include "scheduler/counters.h"

/* ---- tab ---- */

/* The value, to be changed at once; 0 for a new one. */
int64_t *tab_put(struct tab *t, uint64_t key);
void tab_done(struct tab *t);
static inline void *tab_pointer(const struct tab *t, uint64_t key) { return (void *)(intptr_t)tab_get(t, key); }
static inline void tab_point(struct tab *t, uint64_t key, void *p) { *tab_put(t, key) = (int64_t)(intptr_t)p; }
/* for each entry that is not 0: TAB_EACH(e, tab) gives e->value, and e->key: the key + 1. */
#define TAB_EACH(e, tab_)                                                                                  \
	for (const struct tab_slot *e = (tab_)->slots, *e##_end = e ? e + (tab_)->mask + 1 : NULL; e != e##_end; e++) \
		if (e->value)

/* ---- places ---- */

/* Nodes that satisfy what some constraint asks of them. */
struct node_set {
	struct list link, scopes;
	uint64_t hash, stamp;
	struct topo **keys;
	size_t n_keys;
	bool affinity, taints;
	struct frozen *asks;          /* nodeSelector, affinity, tolerations of a pod's spec as far as they count; NULL: nothing */
	struct arena arena;
	struct node_affinity compiled; /* in the arena, from asks */
	uint64_t *bits;               /* by node */
	bool was, is;
};

struct scope {
	struct list link;
	struct node_set *set;
	struct topo *topo;
	unsigned refs;
	uint64_t stamp;
	uint32_t *n_nodes;            /* by domain */
	uint32_t cap, n_domains;      /* domains that have a node */
};

static inline bool set_has(const struct node_set *s, uint32_t node) { return s->bits[node / 64] >> (node % 64) & 1; }
/* The domain that a pod on this node is counted for; 0: none. */
static inline uint32_t tally_domain(const struct tally *t, uint32_t node)
{
	return !t->scope || set_has(t->scope->set, node) ? t->topo->of[node] : 0;
}

/* ---- pods ---- */

/* Pods by node, an amount each, and their tallies. */
struct crowd {
	struct tab on;
	struct list tallies;
};

struct want {                   /* a requirement of a selector, in words */
	word key;
	uint8_t op;                   /* SELECTOR_IN, _NOT_IN, _EXISTS, _NOT_EXISTS */
	uint32_t n;
	word *values;
};

struct wants {
	struct want *all;
	size_t n;
	bool nothing;
};

struct part {
	word *namespaces;
	size_t n_namespaces;
	bool by_labels;               /* of namespaces */
	struct wants of_namespace, of_pod;
};

struct anchor { word namespace, key, value; };

struct pick {
	struct list link;
	str key;                      /* canonical text */
	bool living, by_labels, counted; /* by_labels: of namespaces; counted: crowd is in use */
	struct part *parts;
	size_t n;
	struct anchor anchor;         /* a pod that matches has this label and is in this namespace, where they are not 0 */
	struct pick *next;            /* with the same hash of the anchor */
	unsigned refs, n_services;
	uint64_t stamp;
	struct crowd crowd;
	struct list carriers;
};

struct carrier {
	struct list link;
	struct pick *pick;
	unsigned refs;
	struct crowd crowd[CARRY_MAX];
	struct tally *tally[CARRY_MAX];
};

/* Placed pods that have a label. */
struct bucket {
	struct placed **pods;
	uint32_t n, cap;
};

struct space {                  /* a namespace */
	word name;
	struct label *labels;         /* sorted by the number of the key */
	uint32_t n;
};

struct counters {
	struct nodes *nodes;
	uint64_t now;                 /* pods asked about */
	size_t size, room, trim_at;   /* bytes of arrays, how many there may be, and when to forget some */
	size_t n_counted;             /* picks whose pods are counted */
	struct list topos, sets, picks;
	struct map pick_keys;         /* text -> struct pick */
	struct tab anchors, buckets, spaces, topo_keys; /* hash of the anchor -> pick; label -> bucket; word -> space; word -> topo */
	struct map services, owners;  /* "ns/name" -> struct service; "kind/ns/name" -> struct owner */
	uint32_t cap_nodes;
	uint64_t *signs;              /* by node: of its labels and taints; 0: it is not alive */
	uint32_t *zeros;              /* by node: the domains of labels that no node has, of which there may be any number */
	struct arena scratch, parse;  /* of counters_pick; of terms and services */
};

/* Bytes of arrays, and picks that are counted, before those that nobody has asked for lately are forgotten. */
enum { ROOM_MAX = 256 << 20, COUNTED_MAX = 1 << 15 };

/* An array of n zeroed items more; the bytes are noted. */
void *room_grow(struct counters *c, void *p, size_t old, size_t n, size_t item) NONNULL_RESULT;
void room_free(struct counters *c, void *p, size_t n, size_t item);
/* Another reference to a word that is held. */
word word_hold(struct nodes *t, word w);

/* ---- counters_places.c ---- */

void places_init(struct counters *c);
void places_done(struct counters *c);
/* Room for this node in the arrays by node. */
void places_reach(struct counters *c, uint32_t node);
/* What nobody uses and nobody has asked for since then. */
void places_trim(struct counters *c, uint64_t since);

/* ---- counters.c ---- */

void crowd_init(struct crowd *d);
void crowd_done(struct counters *c, struct crowd *d);
void crowd_add(struct counters *c, struct crowd *d, uint32_t node, int64_t amount);
struct tally *crowd_tally(struct counters *c, struct crowd *d, struct topo *topo, struct scope *scope) NONNULL_RESULT;
void tally_add(struct counters *c, struct tally *t, uint32_t domain, int64_t amount);
/* The next of the picks that match a pod. */
struct match {
	struct counters *c;
	word namespace;
	const struct label *labels;
	uint32_t n, step;
	struct anchor anchor;
	struct pick *next;
};
struct match match_begin(struct counters *c, const struct placed *p);
struct pick *match_next(struct match *m);
bool wants_match(const struct wants *w, const struct label *labels, uint32_t n);
/* When nobody holds or counts it. */
void pick_release(struct counters *c, struct pick *p);
void pick_forget(struct counters *c, struct pick *p); /* its crowd */

/* ---- counters_objects.c ---- */

void objects_done(struct counters *c);
/* Labels of a namespace, as words. */
const struct space *space_of(const struct counters *c, word namespace);

#endif
