/* Between the files of NodeRestriction. Each function takes the name of the node that writes; 0, or the refusal. */
#ifndef C8S_APISERVER_ADMISSION_NODE_RESTRICTION_H
#define C8S_APISERVER_ADMISSION_NODE_RESTRICTION_H

#include "apiserver/admission/plugins.h"

/* node_restriction_pod.c: pods and their status. */
int node_restrict_pod(struct request *q, str node, struct err *err);
int node_restrict_pod_status(struct request *q, str node);
/*
 * What of the API a pod needs, and one that a node runs by itself therefore must not name: "secrets", "configmaps (via projected
 * volumes)"; NULL: nothing. -ERR_INVALID for a volume of a kind that is not known. Kubelets ask this, too.
 */
int pod_api_reference(struct arena *a, struct val pod, const char **ret, struct err *err);
/* node_restriction_token.c: tokens of service accounts. */
int node_restrict_token(struct request *q, str node, struct err *err);

/* CREATE, UPDATE, DELETE or CONNECT: the words of messages. */
const char *node_operation_text(const struct request *q);
/* Of empty or absent lists and maps it does not matter which they are. */
bool node_same(struct val a, struct val b);

#endif
