/*
 * counters: how many pods are where, kept while pods and nodes come and go, so that spreading and affinity ask numbers instead of walking
 * through pods. Who counts what is told by the pods that are scheduled: what has been asked for is counted from then on, and what nobody asks
 * for any more is forgotten when memory is short.
 *
 *	topo    a label of nodes (zone, host name): which of its values (domains, numbered from 1) every node has
 *	scope   the nodes that count for a constraint (with all its labels, node affinity and taints as it wants) and their domains
 *	pick    which pods: namespaces and selectors, equal ones once
 *	tally   the pods of a pick (or the carriers of a term) by domain
 *	carrier all pods that have one term of pod affinity or anti-affinity: by them existing pods say something about a new one
 *
 * The table of nodes calls the hooks: a pod that is tried on a node (nodes_place) or taken off it is counted at once, so the plugins' state
 * follows the table without being told. Everything that is returned is good until the next pod's cycle, or the next change of nodes,
 * namespaces or services; one thread.
 */
#ifndef C8S_SCHEDULER_COUNTERS_H
#define C8S_SCHEDULER_COUNTERS_H

#include "base/list.h"
#include "machinery/selector.h"
#include "scheduler/nodes.h"

struct counters;
struct carrier;
struct pick;
struct scope;

/* A hash table from numbers to numbers; what is 0 is not there. */
struct tab {
	struct tab_slot { uint64_t key; int64_t value; } *slots;
	uint32_t used, mask;          /* used: keys that have a slot, with values of 0 among them */
};

int64_t tab_get(const struct tab *t, uint64_t key);

/* What is there already is counted. Becomes t->counters. */
struct counters *counters_new(struct nodes *t) NONNULL_RESULT;
/* All pods of the table have been freed. NULL is fine. */
void counters_free(struct counters *c);

/* ---- hooks of the table ---- */

void counters_place(struct counters *c, struct placed *p);   /* it has been put on p->node */
void counters_unplace(struct counters *c, struct placed *p); /* it is about to leave p->node */
void counters_node(struct counters *c, uint32_t node);       /* the node is new, has changed, or is gone (alive[node] is false) */
void counters_pod_free(struct counters *c, struct placed *p); /* not placed any more: frees p->affinity */

/* ---- hooks of informers: an object is new (old is NONE), has changed, or is gone (new is NONE) ---- */

enum counters_owner { OWNER_REPLICATION_CONTROLLER, OWNER_REPLICA_SET, OWNER_STATEFUL_SET };

void counters_namespace(struct counters *c, struct val old, struct val new);
void counters_service(struct counters *c, struct val old, struct val new);
void counters_owner(struct counters *c, enum counters_owner kind, struct val old, struct val new);

/* ---- for plugins ---- */

/* A new pod is asked about: what was returned for the pods before it may be forgotten. */
void counters_begin(struct counters *c);

struct topo {
	uint32_t *of;                 /* by node: its domain; 0: it has no such label */
	uint32_t n;                   /* domains are 1..n; some may be unused */
	/* ---- the counters' own ---- */
	struct list link;
	word key;
	bool own;                     /* of is its own array; else nobody has the label, and it is all zero */
	unsigned refs;
	uint64_t stamp;
	uint32_t cap, free;           /* room in the arrays; first unused number */
	word *value;                  /* by domain */
	uint32_t *n_nodes;            /* by domain; of an unused one: the next unused number */
	uint32_t *seen, look;         /* of topo_distinct */
	struct tab by_value;
	uint32_t was, is;             /* while a node changes */
};

struct topo *counters_topo(struct counters *c, str key) NONNULL_RESULT;
/* How many different values these nodes have; nodes without the label count as one together. */
size_t topo_distinct(struct topo *t, const uint32_t *nodes, size_t n);

struct scope_spec {
	struct topo *const *keys;     /* labels that a node must have */
	size_t n_keys;
	bool affinity, taints;        /* the pod's node selector and affinity must match; its tolerations must suffice */
};
struct scope *counters_scope(struct counters *c, struct topo *topo, const struct scope_spec *spec, struct val pod) NONNULL_RESULT;
size_t scope_domains(const struct scope *s);
bool scope_has(const struct scope *s, uint32_t node);

struct pick_part {
	const str *namespaces;
	size_t n_namespaces;
	const struct selector *namespace_selector; /* of labels of namespaces; NULL: none. Added to the namespaces */
	struct selector labels;
};
struct pick_spec {
	const struct pick_part *parts; /* all must match */
	size_t n;
	bool living;                  /* without those that are being deleted */
};
struct pick *counters_pick(struct counters *c, const struct pick_spec *spec) NONNULL_RESULT;
/* The pods of a pick that are on this node. */
int64_t counters_on_node(struct counters *c, struct pick *pick, uint32_t node);

struct tally {
	struct topo *topo;
	int64_t total;
	/* ---- the counters' own ---- */
	struct list link;
	int64_t *count;               /* by domain, below cap: when many domains have one */
	uint32_t cap;
	struct tab few;               /* by domain: else */
	struct scope *scope;          /* NULL: all nodes */
	uint32_t n_used;              /* domains whose count is not 0 */
	uint32_t *with, n_with;       /* domains by count, from 1 on: of tallies with a scope */
	uint32_t low;                 /* no domain has a lower one but 0 */
};

/* Of the pods that are on nodes of the scope (NULL: on any node). */
struct tally *counters_tally(struct counters *c, struct pick *pick, struct topo *topo, struct scope *scope) NONNULL_RESULT;
static inline int64_t tally_at(const struct tally *t, uint32_t domain)
{
	return t->count ? domain < t->cap ? t->count[domain] : 0 : t->few.used ? tab_get(&t->few, domain) : 0;
}
/* Of the domain that a node is in. */
static inline int64_t tally_on(const struct tally *t, uint32_t node) { return tally_at(t, t->topo->of[node]); }
/* The least of the counts of all domains of its scope; 0 when there is none. */
int64_t tally_min(struct tally *t);

/* ---- pod affinity: the terms of a pod, parsed once, and those that carry them ---- */

enum term_kind { TERM_AFFINITY, TERM_ANTI, TERM_PREFERRED, TERM_PREFERRED_ANTI };

struct term {
	enum term_kind kind;
	int32_t weight;               /* of preferred ones */
	struct pick *pick;            /* pods it speaks of */
	struct carrier *carrier;      /* pods that have it */
};

struct pod_terms {
	uint32_t n, n_affinity, n_anti, n_preferred;
	struct pick *all;             /* pods that all terms of TERM_AFFINITY speak of; NULL: there are none */
	char *error;                  /* a selector that is not valid; there are no terms then. NULL: none */
	uint32_t *at;                 /* by label: place in the list of pods with that label, while placed */
	struct term terms[];
};

const struct pod_terms *counters_terms(struct counters *c, struct placed *p) NONNULL_RESULT;
struct topo *term_topo(const struct term *t);

enum { CARRY_ANTI, CARRY_AFFINITY, CARRY_WEIGHT, CARRY_MAX }; /* pods with such a term, twice the same, and the sum of preferred weights */

/* The terms of pods in the cluster that speak of this pod: an array in the arena. */
struct carrier **counters_carriers(struct counters *c, struct arena *a, const struct placed *p, size_t *ret_n);
struct tally *carrier_tally(struct carrier *r, unsigned which);

/*
 * What a pod is spread by when it says nothing: the selectors of the services that it belongs to and of its controller together. False when
 * there are none.
 */
bool counters_default_selector(struct counters *c, struct arena *a, struct val pod, const struct placed *p, struct selector *ret);

#endif
