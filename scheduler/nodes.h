/*
 * nodes: the table of nodes. A node has an index as long as it lives; what filters and scores read of it stands in arrays by index, so that a
 * look at many nodes runs through memory. Labels, taints and names are numbers of a table of texts (intern): two texts are equal when their
 * numbers are. Pods on a node (assumed ones among them) are counted into its sums when they come and go.
 *
 * A word lives as long as somebody holds it: the nodes and pods of the table do. One that was only looked up is good until the table changes,
 * so what is compiled for one pod (pre_filter to reserve, which do not suspend) needs no references. Sums wrap around instead of overflowing: a
 * pod that leaves takes away exactly what it brought.
 */
#ifndef C8S_SCHEDULER_NODES_H
#define C8S_SCHEDULER_NODES_H

#include "base/map.h"
#include "codec/val.h"

typedef uint32_t word;          /* number of a text; 0: none. The empty text has a number too */

enum { RES_CPU, RES_MEMORY, RES_STORAGE, RES_PODS, RES_FIXED }; /* milli, bytes, bytes, number; extended ones follow from RES_FIXED on */
enum { RES_MAX = 32 };
enum { NODES_CHANGES = 8192 };

struct res {                    /* amounts by resource; those beyond n are 0 */
	int64_t v[RES_MAX];
};

struct label { word key, value; };

struct taint { word key, value; uint8_t effect; }; /* 0 NoSchedule, 1 PreferNoSchedule, 2 NoExecute */

enum { TAINT_NO_SCHEDULE, TAINT_PREFER_NO_SCHEDULE, TAINT_NO_EXECUTE, TAINT_EFFECTS };

struct port { word ip; uint16_t port; uint8_t protocol; }; /* ip "0.0.0.0": all; 0 TCP, 1 UDP, 2 SCTP */

/* A pod that is on a node, or assumed to be. What plugins ask of many pods, made once. */
struct placed {
	struct nodes *table;
	struct frozen *pod;
	uint32_t node;                /* UINT32_MAX: on none */
	uint32_t at;                  /* in the node's list */
	word namespace, name, uid;
	const struct label *labels;   /* sorted by the number of the key */
	uint32_t n_labels;
	int32_t priority;
	int64_t start_ns;             /* INT64_MAX: has not started */
	bool deleting, assumed;
	bool unknown;                 /* asks for a resource that no node has ever had; that is not in the request */
	struct res request;           /* RES_PODS: 1 */
	int64_t nonzero_cpu, nonzero_memory; /* with 100m and 200Mi for containers that ask for nothing */
	const struct port *ports;     /* on the host, those of sidecars first */
	uint32_t n_ports;
	void *affinity;               /* plugins' own, parsed once: InterPodAffinity terms; NULL: none */
};

struct nodes {
	uint32_t n, cap;              /* indexes in use are below n; some may be free (alive[i] false) */
	uint32_t n_alive;
	struct frozen **object;
	word *name, *zone;            /* zone: region and zone, as nodes are interleaved by; 0: in none */
	bool *alive, *unschedulable;
	struct res *allocatable, *requested;
	int64_t *nonzero_cpu, *nonzero_memory;
	struct label **labels;        /* sorted by the number of the key */
	uint32_t *n_labels;
	struct taint **taints;
	uint32_t *n_taints;
	struct placed ***pods;        /* by node */
	uint32_t *n_pods;
	struct port **ports;          /* in use; twice if two pods have it */
	uint32_t *n_ports;
	uint64_t *generation;         /* grows with each change of the node, its pods, or of pods that are nominated to it */
	uint32_t *order;              /* of nodes_order */
	uint32_t *place;              /* in it, of those that are alive; good after nodes_order */
	uint64_t n_orders;            /* how often it has changed */
	uint64_t n_changes;           /* the last generation that a node got */
	uint32_t *changed;            /* whose it was, for the last NODES_CHANGES of them: at generation % NODES_CHANGES */
	struct map by_name;           /* text -> index + 1 */
	struct map words;             /* text -> struct word_text */
	uint32_t n_resources;         /* RES_FIXED and the extended ones that are known */
	word resource_names[RES_MAX];
	/* Images by name: size, and on how many nodes; per node a sorted list of words. */
	struct map images;            /* text -> struct image */
	word **node_images;
	uint32_t *n_node_images;
	struct counters *counters;    /* counters.h: told of every change; NULL: nobody counts */
	/* ---- of the table alone ---- */
	uint32_t *pods_cap, *ports_cap, *next, *prev; /* neighbours in the zone, or the next free index; UINT32_MAX: none */
	uint32_t free;                /* first index that nobody has */
	struct map by_zone;           /* text -> struct zone */
	struct zone **zones;          /* in the order they came */
	size_t n_zones, cap_zones;
	bool order_stale;
	size_t n_unknown;             /* placed pods with unknown resources */
	bool no_pod_level;            /* what is said for a pod as a whole does not count: the feature is off */
	bool no_pod_level_resize;     /* and: it cannot be changed, what is in force is what was asked for */
	struct word_text **texts;     /* by word */
	word *free_texts;             /* numbers to be used again */
	uint32_t n_texts, cap_texts, n_free_texts;
};

struct image {
	word name;
	uint32_t n_nodes;
	int64_t size;                 /* as the first node said */
	uint32_t last;                /* node that was counted last */
};

void nodes_init(struct nodes *t);
/* Pods must have been taken off and freed before. */
void nodes_done(struct nodes *t);

/* ---- words: words.c ---- */

word word_make(struct nodes *t, str text);  /* adds it, or one more reference to it */
word word_find(const struct nodes *t, str text); /* 0: no object has it */
str word_str(const struct nodes *t, word w); /* good as long as the word is held; "" for 0 */
void word_drop(struct nodes *t, word w);    /* gives back what word_make gave; 0 is fine */

/* ---- nodes ---- */

/* A Node is new or has changed; index. Takes a reference of its own. */
uint32_t nodes_put(struct nodes *t, struct frozen *node);
/* Pods stay until they are taken off, and are there again if the node comes back before. */
void nodes_remove(struct nodes *t, str name);
/* Of a node that is alive; UINT32_MAX: not there. */
uint32_t nodes_find(const struct nodes *t, str name);
/* Indexes of the n_alive ones, zones interleaved, as nodes are examined. Good until a node comes or goes. */
const uint32_t *nodes_order(struct nodes *t) NONNULL_RESULT;
/* Something that answers about the node depend on has changed. */
static inline void nodes_touch(struct nodes *t, uint32_t node)
{
	t->generation[node] = ++t->n_changes;
	t->changed[t->n_changes % NODES_CHANGES] = node;
}
/* The value of a label of a node; 0: it has none. */
word nodes_label(const struct nodes *t, uint32_t node, word key);
/* The same for any labels. */
static inline word labels_find(const struct label *labels, uint32_t n, word key)
{
	for (uint32_t i = 0; i < n && labels[i].key <= key; i++)
		if (labels[i].key == key)
			return labels[i].value;
	return 0;
}

/* ---- pods ---- */

/* A pod as the table keeps it, not placed yet. Takes a reference of its own. */
struct placed *placed_new(struct nodes *t, struct frozen *pod) NONNULL_RESULT;
void placed_free(struct placed *p);         /* not when it is placed; NULL is fine. Its affinity is its plugin's to free */
/* Cheap enough to be done and undone for trying: what if this pod were not here? */
void nodes_place(struct nodes *t, struct placed *p, uint32_t node);
void nodes_unplace(struct nodes *t, struct placed *p);

struct host_port { str ip; uint16_t port; uint8_t protocol; };
#define EVERY_IP STR("0.0.0.0")
/* The ports of a pod on its host, EVERY_IP for those without an address, borrowed from the spec; how many. ret NULL: only that. */
uint32_t pod_host_ports(struct val spec, struct host_port *ret);

/* ---- resources ---- */

/* Index of a resource in struct res; makes one for an extended resource. RES_MAX when there are too many: who wants to know of these looks at
 * objects, which is slow. Only names that nodes have are made, so that pods cannot use them up. */
unsigned nodes_resource(struct nodes *t, str name);
/* There may be resources that nodes have and the table does not. */
static inline bool nodes_are_full(const struct nodes *t) { return t->n_resources == RES_MAX; }
/* RES_MAX: no node has ever had it. */
unsigned nodes_resource_find(const struct nodes *t, str name);
/* Extended, huge pages, attachable volumes or with Kubernetes' prefix: what the scheduler counts beside the fixed ones. */
bool resource_is_scalar(str name);
/* Sums that may wrap. */
static inline int64_t res_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t res_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

#endif
