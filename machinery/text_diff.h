/*
 * Differences of texts as Kubernetes shows them in messages: a unified diff without file names, as Python's difflib
 * makes it.
 */
#ifndef C8S_MACHINERY_TEXT_DIFF_H
#define C8S_MACHINERY_TEXT_DIFF_H

#include "base/arena.h"

/*
 * The unified diff of two texts by lines, with three lines around each change; in the arena. Empty when they are equal,
 * and when finding the differences would take too long: the search is quadratic in the worst case, so it has a budget.
 */
str text_diff(struct arena *a, str before, str after);

#endif
