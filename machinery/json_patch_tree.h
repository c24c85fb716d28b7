/*
 * The document while a JSON Patch works on it: a tree that can be changed in place. Lists and objects stay the immutable values
 * they are until a pointer leads through them; then that one is opened: its items move into an index that ten thousand
 * operations can work on without copying it each time.
 */
#ifndef C8S_MACHINERY_JSON_PATCH_TREE_H
#define C8S_MACHINERY_JSON_PATCH_TREE_H

#include "base/map.h"
#include "machinery/patch_priv.h"

/* An opened list or object. */
struct node;

struct tree {
	struct arena *arena;
	struct val root;    /* like every place in the tree: a value, or a node in disguise; only tree_* may look */
	struct node *nodes; /* all, for tree_done */
};

void tree_init(struct tree *t, struct arena *a, struct val doc);
void tree_done(struct tree *t);
/* The finished document; -ERR_INVALID when operations nested it too deeply. */
int tree_value(struct tree *t, struct val *place, struct val *ret, struct err *err);

/* The list or object at a place, opened; NULL when it is neither. */
struct node *tree_open(struct tree *t, struct val *place);
bool node_is_list(const struct node *n);

/* Objects. A place stays valid until the node's next change. */
struct val *node_member(struct node *n, str key);
void node_put(struct tree *t, struct node *n, str key, struct val v);
bool node_remove(struct node *n, str key);

/* Lists: i is below (for inserting, at most) the length. */
uint32_t node_len(const struct node *n);
struct val *node_item(struct node *n, uint32_t i);
void node_insert(struct tree *t, struct node *n, uint32_t i, struct val v);
void node_drop(struct node *n, uint32_t i);

/* Whether the value at the place equals v as JSON Patch means it: objects without order, integers and other numbers differ. */
int tree_equal(struct tree *t, struct val *place, struct val v, bool *ret, struct err *err);

#endif
