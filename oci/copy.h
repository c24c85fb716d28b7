/* copy: what is in one folder into another. Both sides are walked by descriptors; links are copied as links, holes stay holes. */
#ifndef C8S_OCI_COPY_H
#define C8S_OCI_COPY_H

#include "base/err.h"

/*
 * All that is in the folder from, with modes and owners, and the mode and owner of from itself. Descriptors may be O_PATH. Sockets are
 * left out. -ERR_TOO_LARGE: folders lie too deep in each other. On error an unknown part was copied.
 */
int copy_tree(int from, int to, struct err *err);

#endif
