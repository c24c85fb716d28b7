/*
 * node_graph: which nodes need which objects. A pod needs what its spec names; a claim leads on to the volumes that are
 * bound to it, and they to the secrets that a kubelet mounts them with. The paths are not walked when somebody asks: for
 * every object the graph counts, per node, the ways that lead to it, so that a question is one lookup however many pods
 * there are. One thread.
 */
#ifndef C8S_APISERVER_AUTHZ_NODE_GRAPH_H
#define C8S_APISERVER_AUTHZ_NODE_GRAPH_H

#include "codec/val.h"

struct node_graph;

/* What nodes reach through their pods. */
enum node_reach { REACH_SECRET, REACH_CONFIG_MAP, REACH_SERVICE_ACCOUNT, REACH_RESOURCE_CLAIM, REACH_VOLUME_CLAIM };

struct node_graph *node_graph_new(void) NONNULL_RESULT;
void node_graph_free(struct node_graph *g); /* NULL is fine */

/*
 * A pod (a persistent volume) has changed from before to after; VAL_NONE: there was none, there is none any more. What
 * is given as before is what was last given as after.
 */
void node_graph_pod(struct node_graph *g, struct val before, struct val after);
void node_graph_volume(struct node_graph *g, struct val before, struct val after);

/* Does a pod on the node need the object? */
bool node_graph_reaches(const struct node_graph *g, enum node_reach what, str namespace, str name, str node);
/* Everything that it counts; for tests and for judging how much memory it takes. */
size_t node_graph_len(const struct node_graph *g);

/* Calls visit for each object of the pod's namespace that the pod names; one may come several times. */
typedef void node_reference_fn(enum node_reach what, str name, void *arg);
void pod_references(struct arena *a, struct val pod, node_reference_fn *visit, void *arg);

/* The claim that an ephemeral volume stands for; in the arena. */
str pod_ephemeral_claim(struct arena *a, struct val pod, struct val volume);
bool pod_is_mirror(struct val pod);

#endif
