/* Between the files of eviction.h: signals and thresholds, and who goes first. */
#ifndef C8S_KUBELET_EVICTION_PRIV_H
#define C8S_KUBELET_EVICTION_PRIV_H

#include "codec/quantity.h"
#include "kubelet/eviction.h"

/* In the order in which they are dealt with. */
enum signal {
	SIGNAL_MEMORY, SIGNAL_ALLOCATABLE, SIGNAL_NODE_FS, SIGNAL_NODE_FS_INODES, SIGNAL_IMAGE_FS, SIGNAL_IMAGE_FS_INODES, SIGNAL_PIDS, SIGNALS,
};

enum pressure { PRESSURE_MEMORY, PRESSURE_DISK, PRESSURE_PIDS, PRESSURES };

struct signal_facts {
	str name;                     /* memory.available */
	str resource;                 /* memory, ephemeral-storage, inodes, pids */
	enum pressure pressure;
	enum quantity_format format;
};

extern const struct signal_facts signal_facts[SIGNALS];

struct observation {
	bool found;
	struct quantity available, capacity;
};

/* An amount, or a part of the capacity. */
struct limit {
	bool given;
	float part;                   /* 0: the amount counts */
	struct quantity amount;
};

struct threshold {
	enum signal signal;
	struct limit value, reclaim;
	int64_t grace_ns;             /* 0: hard */
	int64_t since_ns;             /* when it was first met; 0: it is not */
	bool acts;                    /* and its grace is over */
};

enum { THRESHOLDS_MAX = 3 * SIGNALS };

struct thresholds {
	struct threshold all[THRESHOLDS_MAX];
	size_t n;
};

void thresholds_of_config(struct val config, struct thresholds *ret);
struct quantity limit_quantity(const struct limit *l, struct quantity capacity);
/* Whether less is there than it should be; with reclaim: than it should become. */
bool threshold_is_met(const struct threshold *t, const struct observation *o, bool reclaim);
str quantity_text(struct arena *a, struct quantity q);

/* How the file systems of images, containers and the node relate. */
struct disks {
	bool known;
	char *images;                 /* a path on that of the images; NULL: not known */
	bool dedicated;               /* images are not on the node's */
	bool split;                   /* and containers are not with them */
	int64_t asked_ns;
};

/* (suspends) */
void signals_observe(struct eviction *e, struct arena *a, struct observation ret[SIGNALS]);

/* A pod with its figures, in the order of their end. */
struct candidate {
	struct val pod, stats;        /* stats.v1alpha1.PodStats; VAL_NONE: none */
	bool exceeds;                 /* it uses more than it asked for */
	int64_t priority, over;       /* over: how much more */
	size_t place;
};

/* stats: list of PodStats. */
struct candidate *eviction_rank(struct arena *a, struct val pods, struct val stats, enum signal signal, const struct disks *d, size_t *ret_n);
/* "The node was low on resource: ..." */
str eviction_message(struct arena *a, const struct candidate *c, str resource, const struct threshold *t, const struct observation *o);
/* The message if the pod uses more local storage than it may; "" if not. */
str eviction_local_message(struct arena *a, struct val pod, struct val stats, const struct disks *d);
/* Whether it has such a limit at all. */
bool eviction_has_local_limit(struct arena *a, struct val pod);

struct eviction {
	struct eviction_options o;
	struct thresholds thresholds;
	struct disks disks;
	bool local;                   /* limits of local storage are looked at */
	int64_t transition_ns, grace_max_s;
	int64_t seen_ns[PRESSURES];   /* when it was last there; 0: never */
	bool pressure[PRESSURES];
};

#endif
