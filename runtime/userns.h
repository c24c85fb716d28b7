/*
 * userns: user namespaces of pods. One is made together with the pod's network namespace, which it owns, and both are kept by mounts; the
 * pod's first process and its containers join it. Files of images belong to the ids of the namespace by id-mapped layers: nothing is
 * copied or changed. What a container writes has the mapped ids on disk.
 *
 * Needs Linux 6.15: overlayfs over id-mapped layers that are not mounted anywhere.
 *
 *	userns.c           namespaces, and what works here     userns_root.c      roots of containers
 */
#ifndef C8S_RUNTIME_USERNS_H
#define C8S_RUNTIME_USERNS_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

/* options: a NamespaceOption of CRI. */
bool userns_wanted(struct val options);
/* Mode and mappings, as containerd checks them. */
int userns_check(struct val options, struct err *err);
/* What a list of IDMapping is in config.json. */
struct val userns_oci(struct arena *a, struct val mappings);

/* (suspends) A user namespace with these mappings, mounted at user, and a network namespace of it, mounted at net. */
int userns_make(const char *user, const char *net, struct val options, struct err *err);
/* Fine when there is none. */
int userns_remove(const char *user, struct err *err);

/* (suspends) Why there are none here: the kernel, or the file system of the folder of the snapshots (snapshot.h). */
int userns_probe(const char *snapshots, struct err *err);

/* (suspends) The root that snapshot_mount has mounted, mounted anew with the namespace's ids. options: the mappings; label: as there. */
int userns_map_root(const char *root, const char *user, struct val options, str label, struct err *err);
/* Whether a path of the node can be mounted with other ids; blocks. -ERR_INVALID: its file system cannot. */
int userns_check_source(const char *path, const char *user, struct err *err);

/* ---- parts; they block ---- */

/* A copy of the mount at path, not mounted anywhere, in which ids are those of the namespace (a descriptor): a descriptor. */
int userns_copy(const char *path, int user, struct err *err);
/*
 * The same as layers of an overlay that is being made, the first one on top. They go when the descriptors are closed: after the
 * overlay was made.
 */
enum { USERNS_LAYERS_MAX = 500 };       /* overlayfs' own maximum */
struct userns_layers {
	int fd[USERNS_LAYERS_MAX];
	size_t n;
};
int userns_add_layer(struct userns_layers *l, int config, const char *path, int user, struct err *err);
void userns_layers_done(struct userns_layers *l);

#endif
