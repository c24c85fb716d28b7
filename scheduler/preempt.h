/*
 * preempt: who has to go so that a pod with a higher priority fits (DefaultPreemption).
 *
 *	preempt.c         the decision: victims on a node, the choice between nodes; changes the table while it tries, and puts everything back
 *	preempt_look.c    which nodes are tried
 *	preempt_plugin.c  the plugin: whether the pod may, what is told; and the deed, on a fiber
 *
 * On a node all pods of lower priority are taken away; if the pod fits then, they come back one by one, the most important first, those whose
 * disruption budget would be violated before the others, unless that makes the pod not fit again.
 */
#ifndef C8S_SCHEDULER_PREEMPT_H
#define C8S_SCHEDULER_PREEMPT_H

#include "machinery/selector.h"
#include "scheduler/cycle.h"
#include "scheduler/fit_error.h"

struct preempt_budget {               /* a PodDisruptionBudget */
	word namespace;
	struct selector selector;
	int64_t allowed;
	struct val disrupted;         /* names of pods that the server has let go already */
	int64_t left;                 /* while one node is looked at */
};

struct preempt_search {
	struct cycle *c;
	struct profile *profile;
	struct preempt_budget *budgets; /* sorted by namespace */
	size_t n_budgets;
	uint64_t namespaces;          /* that have budgets: see preempt_victims */
	struct preempt_pod {
		struct placed *pod;
		bool violates, stays;
	} *room;                      /* for the pods of one node; grows */
	size_t cap;
	struct pod_class *class;      /* classes.h: what is known already of pods like this one; NULL: nothing */
	struct res gone;              /* what the pods that are away ask for: where sums decide they need not really be taken off */
};

struct preempt_victims {              /* a node that would do */
	uint32_t node;
	struct placed **pods;         /* the most important first; in the arena of the cycle */
	size_t n;
	unsigned violations;          /* of budgets */
	uint64_t namespaces;          /* of all who could go, as bits; two may share one. Budgets of others have no say here */
	/* What the choice goes by, of the victims. */
	int32_t highest;              /* priority */
	int64_t sum;                  /* of priorities, each moved up so that many low ones are never less than a few */
	int64_t start_ns;             /* when the first of the most important ones began */
};

/* Budgets of a list of objects, in the arena; those without a selector, or with one that is not valid, concern nobody. */
void preempt_budgets(struct preempt_search *s, const struct val *objects, size_t n);
/* The bit of a namespace. */
static inline uint64_t preempt_namespace(word namespace) { return UINT64_C(1) << namespace % 64; }
/*
 * FIT with the victims (there is at least one); else why not, in c->reason: UNRESOLVABLE when nobody is there who could go. The table and the
 * states of plugins are as before afterwards. Victims' pods are in the cycle's arena.
 */
enum verdict preempt_dry_run(struct preempt_search *s, uint32_t node, struct preempt_victims *ret);
/* Fills what the choice goes by, from the pods. */
void preempt_weigh(struct preempt_victims *v);
/*
 * By: fewest violations, lowest highest priority, lowest sum of priorities, fewest victims, latest start of the earliest among the most
 * important.
 */
bool preempt_is_better(const struct preempt_victims *a, const struct preempt_victims *b);
/* The best of n >= 1; of equal ones the first. */
size_t preempt_choose(const struct preempt_victims *all, size_t n);
/* How many nodes with victims are enough, of so many that may have some. */
uint32_t preempt_enough(uint32_t n_nodes, int64_t percentage, int64_t absolute);

/* ---- nodes ---- */

struct preempt_found {
	const struct preempt_victims *best; /* in the arena or of the class; NULL: none */
	size_t n, n_good;             /* nodes with victims; n_good: without violations of budgets */
	struct preempt_victims *all;  /* only if there are extenders, who want to see them */
	size_t cap;
	struct preempt_victims *spare; /* for the next one that has to be made */
	struct fit_error why;         /* nodes without */
	str error;                    /* of the first that could not be tried */
};

/* Nodes that the pod does not fit on, but might if others went: their places in nodes_order (bits.h); how many there are. */
const uint64_t *preempt_stuck(struct cycle *c, uint32_t *ret_n);
/* Tries the n such nodes, until enough have been found, one without violations among them. */
void preempt_look(struct preempt_search *s, const uint64_t *stuck, uint32_t n, uint32_t enough, struct preempt_found *ret);
/* What was not found there, and on other nodes than the n. */
str preempt_why_none(const struct preempt_search *s, struct preempt_found *f, uint32_t n);

/* The pod is going, and the scheduler is the reason. */
bool pod_goes_by_preemption(struct val pod);
/* The strategic merge patch of a victim's status; VAL_NONE when it says so already. */
struct val preempt_patch(struct arena *a, struct val victim, str scheduler_name, int64_t wall_ns);

#endif
