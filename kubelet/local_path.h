/*
 * local_path: folders of volumes that controllers/local_path.c has made on this node, and that nobody needs any more. Their names are in an
 * annotation of the Node; they are removed here, below the root only, and taken out of the list. Nothing outside of the root is ever reached:
 * a name is one part of a path that begins with "pvc-", and links are not followed.
 */
#ifndef C8S_KUBELET_LOCAL_PATH_H
#define C8S_KUBELET_LOCAL_PATH_H

#include "client/client.h"

#define LOCAL_PATH_REMOVE "local-path.c8s.io/remove"

struct local_path_options {
	struct client *client;
	str node_name;
	const char *root;            /* of the folders: the same as the provisioner's */
};

/* (suspends, until canceled) */
int kubelet_local_path_run(const struct local_path_options *o, struct err *err);
/* Whether it can be the name of such a folder. */
bool kubelet_local_path_valid(str name);

#endif
