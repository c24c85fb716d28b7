/*
 * gates: the feature gates of Kubernetes 1.36: what they are when nobody says anything, and what may be said. What is said is a map of
 * names and bools, as in a KubeletConfiguration; VAL_EMPTY: nothing. Pure.
 */
#ifndef C8S_MACHINERY_GATES_H
#define C8S_MACHINERY_GATES_H

#include "codec/val.h"

/* Also by AllAlpha and AllBeta; one that is not known is off. */
bool gate_is_on(struct val said, str name);

/* Texts are in the arena. */
typedef void gates_complain(void *arg, str text);

/* Gates that are not known, or that cannot be changed. */
void gates_check(struct arena *a, struct val said, gates_complain *complain, void *arg);
/* Gates that are on although others that they need are off. */
void gates_check_needs(struct arena *a, struct val said, gates_complain *complain, void *arg);

#endif
