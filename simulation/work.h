/*
 * work: what users do, a list of deeds, each drawn by its weight at a time of its own. Names come from small sets, so that deeds meet the same
 * objects again and again; whether one succeeds does not matter, only what the cluster makes of it.
 *
 *	work.c           the list, and what all use
 *	work_make.c      objects that are made
 *	work_change.c    objects that are changed and deleted
 */
#ifndef C8S_SIMULATION_WORK_H
#define C8S_SIMULATION_WORK_H

#include "simulation/simulation.h"

enum { WORK_NAMES = 2 };

/* One of them: where, and with which memory. */
struct deed {
	struct simulation *sim;
	struct arena *arena;
	char namespace[8];
};

/* What can be done; all of it suspends. The weights are compared with each other, over both lists. */
struct deed_kind {
	void (*run)(struct deed *d);
	const char *name;
	int weight;
};

extern const struct deed_kind work_makes[], work_changes[]; /* without a run at the end */

/* JSON with ' for " */
struct val work_tree(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
/* One throw per statement: the order of arguments is the compiler's. */
int64_t work_below(struct deed *d, int64_t n);
/* One of the names of this kind: "dep0". */
str work_name(struct deed *d, const char *kind);
/* One object of the namespace (of the cluster, for resources without) that there is now, as the rules know it; VAL_EMPTY: none. */
struct val work_any(struct deed *d, const char *resource);
void work_create(struct deed *d, const struct type *type, struct val object);
void work_patch(struct deed *d, const struct type *type, str name, struct val patch);

/* What is there before anything else, and what a namespace is made of. */
void work_make_classes(struct deed *d);
void work_make_namespace(struct deed *d);

#endif
