/*
 * local_path_plan: volumes that are folders of a node. The class "local-path" waits for the first consumer, so that the scheduler chooses
 * the node; the volume is a hostPath below the provisioner's root with an affinity to that node, and its kubelet makes the folder when a pod
 * first wants it.
 *
 * Controllers reach no files of nodes. What is to be removed is written to an annotation of the Node, as a list of folder names with commas;
 * the kubelet of c8s removes them below its own root (nowhere else), and takes their names out of the list. Pure.
 */
#ifndef C8S_CONTROLLERS_LOCAL_PATH_PLAN_H
#define C8S_CONTROLLERS_LOCAL_PATH_PLAN_H

#include "codec/val.h"

#define LOCAL_PATH_PROVISIONER "c8s.io/local-path"
#define LOCAL_PATH_CLASS "local-path"
#define LOCAL_PATH_FINALIZER "local-path.c8s.io/folder"    /* of a volume: it stays until its folder is removed */
#define LOCAL_PATH_REMOVE "local-path.c8s.io/remove"       /* of a Node: folders that its kubelet shall remove */
#define LOCAL_PATH_REQUESTED "local-path.c8s.io/requested" /* of a volume: when its folder was written there */

/* The StorageClass; is_default: no other one is. */
struct val local_path_class(struct arena *a, bool is_default);
/* Whether this claim is ours to provide for, now: the node is chosen. */
bool local_path_wants(struct val claim);
/* The volume; VAL_NONE: that cannot be, and *ret_why says why. */
struct val local_path_volume(struct arena *a, struct val claim, struct val class, struct val node, const char *root, str *ret_why);

enum local_path_step {
	LOCAL_PATH_REST,
	LOCAL_PATH_REMOVE_FOLDER,    /* its claim is gone: the folder, then the volume */
	LOCAL_PATH_LET_GO,           /* somebody deletes it, and the folder shall stay: just our finalizer */
};

/* Of any volume: what is to be done about it. */
enum local_path_step local_path_step(struct val volume);
/* The node that it is on; its folder's name. Empty: it is none of ours. */
str local_path_node(struct val volume);
str local_path_folder(struct val volume);

/* Lists in the annotation. */
bool folder_list_has(str list, str folder);
str folder_list_add(struct arena *a, str list, str folder);
str folder_list_remove(struct arena *a, str list, str folder);

#endif
