/* daemon_set_pod: what pods of a DaemonSet look like, and which nodes they are for. Pure. */
#ifndef C8S_CONTROLLERS_DAEMON_SET_POD_H
#define C8S_CONTROLLERS_DAEMON_SET_POD_H

#include "machinery/node_selector.h"

#define DAEMON_HASH "controller-revision-hash"
#define DAEMON_GENERATION "pod-template-generation"

/* The template as pods of this revision have it: tolerations that daemons need, labels of the revision. */
struct val daemon_template(struct arena *a, struct val set, str hash);
/* The pod spec for one node: required node affinity becomes that node's name. */
struct val daemon_spec_for(struct arena *a, struct val spec, str node);
/* The node that a pod is on or meant for; "": none. */
str daemon_target(struct val pod);
/* Of the newest revision, by its hash or by the generation of the template (which only very old pods have alone). */
bool daemon_is_updated(struct val set, struct val pod, str hash);

/* Which nodes a DaemonSet wants; compiled once. */
struct daemon_place {
	str node_name;               /* of the template */
	struct node_affinity affinity;
	struct val tolerations;
};

void daemon_place_compile(struct arena *a, struct val set, struct daemon_place *ret);
/* *ret_run: a pod belongs there; *ret_stay: one that is there may stay. */
void daemon_place_check(const struct daemon_place *p, struct val node, bool *ret_run, bool *ret_stay);

#endif
