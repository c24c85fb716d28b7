/*
 * extenders: servers outside that take part in decisions, over HTTP: they filter nodes, score them, bind pods, and look at whom preemption
 * would send away. They are asked one after another (prioritize: too), each with its own timeout; an ignorable one that fails is passed over.
 */
#ifndef C8S_SCHEDULER_EXTENDERS_H
#define C8S_SCHEDULER_EXTENDERS_H

#include "scheduler/fit_error.h"
#include "scheduler/plugin.h"

struct preempt_victims;

enum extender_does { EXTENDER_FILTERS = 1, EXTENDER_PRIORITIZES = 2, EXTENDER_BINDS = 4, EXTENDER_PREEMPTS = 8 };

/* Fills s->extenders from the configuration's list. */
int extenders_new(struct scheduler *s, struct val list, struct err *err);
/* (suspends) */
void extenders_free(struct scheduler *s);
bool extenders_have(const struct scheduler *s, enum extender_does what);

/*
 * (suspends) What is left of the nodes: *n of them at the front. Verdicts and reasons of the others are noted. An extender that fails and is not
 * ignorable is an error.
 */
int extenders_filter(struct scheduler *s, struct cycle *c, uint32_t *nodes, size_t *n, uint8_t *verdicts, struct fit_error *why, struct err *err);
/* (suspends) Adds their scores, times their weights; one that fails adds nothing. */
void extenders_prioritize(struct scheduler *s, struct cycle *c, const uint32_t *nodes, size_t n, int64_t *totals);
/* The total with one of their scores (0 to 10, or whatever they say) in it; what would overflow is the most or the least there is. */
int64_t extender_score_add(int64_t total, int64_t score, int64_t weight);
/* (suspends) 1: one has bound the pod; 0: none is there for it; or an error. */
int extenders_bind(struct scheduler *s, struct val pod, str node, struct err *err);

/* (suspends) What is left of the candidates: *n at the front, with the victims that the extenders want (in c->arena). */
int extenders_preempt(struct scheduler *s, struct cycle *c, struct preempt_victims *candidates, size_t *n, struct err *err);

#endif
