/* edit: a tree in the user's editor, for kubectl edit, apply edit-last-applied and create --edit. */
#ifndef C8S_KUBECTL_EDIT_H
#define C8S_KUBECTL_EDIT_H

#include "kubectl/ktl.h"

struct ktl_edited {
	struct val object;
	const char *path;            /* the file */
};

/* (suspends) 1: it was changed, and ktl_edit_end is to follow; 0: it was not, which is told. As YAML, or JSON. */
int ktl_edit_tree(struct ktl *k, bool json, struct val shown, struct ktl_edited *ret);
/* result: of what was done with it. A failure keeps the file and tells where it is; else it is removed. Returns result. */
int ktl_edit_end(const struct ktl_edited *e, int result);

#endif
