/*
 * The document while a JSON Patch works on it: a tree that can be changed in place. Lists and objects stay the immutable
 * values they are until a pointer leads through them; then that one is opened: its items move into an index that ten
 * thousand operations can work on without copying it each time.
 */
#ifndef C8S_MACHINERY_JSON_PATCH_TREE_H
#define C8S_MACHINERY_JSON_PATCH_TREE_H

#include "base/map.h"
#include "machinery/patch_priv.h"

/* An opened list or object. */
struct patch_node;

struct patch_tree {
	struct arena *arena;
	struct val root; /* like every place in the tree: a value, or a node in disguise; only patch_tree_* may look */
	struct patch_node *nodes; /* all, for patch_tree_done */
};

void patch_tree_init(struct patch_tree *t, struct arena *a, struct val doc);
void patch_tree_done(struct patch_tree *t);
/* The finished document; -ERR_INVALID when operations nested it too deeply. */
int patch_tree_value(struct patch_tree *t, struct val *place, struct val *ret, struct err *err);

/* The list or object at a place, opened; NULL when it is neither. */
struct patch_node *patch_tree_open(struct patch_tree *t, struct val *place);
bool patch_node_is_list(const struct patch_node *n);

/* Objects. A place stays valid until the node's next change. */
struct val *patch_node_member(struct patch_node *n, str key);
void patch_node_put(struct patch_tree *t, struct patch_node *n, str key, struct val v);
bool patch_node_remove(struct patch_node *n, str key);

/* Lists: i is below (for inserting, at most) the length. */
uint32_t patch_node_len(const struct patch_node *n);
struct val *patch_node_item(struct patch_node *n, uint32_t i);
void patch_node_insert(struct patch_tree *t, struct patch_node *n, uint32_t i, struct val v);
void patch_node_drop(struct patch_node *n, uint32_t i);

/* Whether the value at the place equals v as JSON Patch means it: objects have no order, 1 and 1.0 differ. */
int patch_tree_equal(struct patch_tree *t, struct val *place, struct val v, bool *ret, struct err *err);

#endif
