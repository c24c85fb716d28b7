/*
 * Random objects for tests of the scheduler, as JSON with ' instead of ": few names, labels and amounts, so that they often have to do with each
 * other. All chance is from base/random.h.
 */
#ifndef C8S_SCHEDULER_REFERENCE_OBJECTS_H
#define C8S_SCHEDULER_REFERENCE_OBJECTS_H

#include "base/buf.h"

enum { OBJECTS_SPACES = 3, OBJECTS_APPS = 3 };

/* True so many times of a hundred. */
bool random_chance(unsigned percent);

/* From now on most pods are in one namespace, and have the same labels. */
void random_crowd(bool crowded);

struct random_pod {
	size_t number;          /* its name and uid */
	str node;               /* empty: it looks for one */
	bool plain;             /* nothing that concerns other pods but resources and ports */
};

/* Each writes one whole object. */
void random_pod(struct buf *b, const struct random_pod *o);
void random_node(struct buf *b, size_t number, bool plain);
/* numbers: below OBJECTS_SPACES. */
void random_namespace(struct buf *b, size_t number);
void random_service(struct buf *b, size_t number);
void random_budget(struct buf *b, size_t number);
/* below OBJECTS_APPS: each of another kind. */
void random_owner(struct buf *b, size_t number);

#endif
