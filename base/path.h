/*
 * path: the one place that resolves paths inside trees which we do not trust: image layers, roots of containers, volumes. A
 * tree is a descriptor of its top; everything in it is reached by descriptors, by openat2 with RESOLVE_IN_ROOT and
 * RESOLVE_NO_MAGICLINKS: "..", absolute and symbolic links stay inside, and links of /proc lead nowhere. Between resolving and
 * using there is no name that somebody could change. All descriptors are O_CLOEXEC. Blocking calls; no suspending.
 *
 * Errors: -ERR_NOT_FOUND (ENOENT, ENOTDIR), -ERR_FORBIDDEN (EPERM, EACCES, a way out was tried: EXDEV, ELOOP), -ERR_SYSTEM; err->sys
 * is errno and the message names the path.
 */
#ifndef C8S_BASE_PATH_H
#define C8S_BASE_PATH_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"

/* An absolute path without "//", "." and ".." and the '/' at its end, by its text alone; terminated. */
str path_clean(struct arena *a, str path);
/* The same for a path that may begin at the working directory. */
str path_absolute(struct arena *a, const char *path);

/* The top of a tree by its name outside of it (trusted): O_PATH | O_DIRECTORY. */
int path_open_tree(const char *path, struct err *err);

/* A descriptor of what is there. flags as open(2) has them; O_PATH | O_NOFOLLOW gets the last link itself. */
int path_open(int tree, const char *path, int flags, struct err *err);
/* The same, made if it is not there; folders on the way are not. O_EXCL and O_NOFOLLOW are added for O_CREAT. */
int path_create(int tree, const char *path, int flags, mode_t mode, struct err *err);
/* The folder, with all that are missing on the way to it; its descriptor (O_PATH | O_DIRECTORY). Links on the way are followed inside. */
int path_mkdirs(int tree, const char *path, mode_t mode, struct err *err);
/* A descriptor of the folder that the last part of path is in, and that part in *ret_name (into path); "" , "." and ".." are refused. */
int path_open_parent(int tree, const char *path, const char **ret_name, struct err *err);

/* /proc/self/fd/N, for system calls that take no descriptor. proc: a descriptor of a verified /proc, or -1 for our own. */
enum { PATH_FD_TEXT = 32 };
const char *path_of_fd(int fd, char text[PATH_FD_TEXT]);

/* Opens a file below the real procfs (checked by its magic number, not a mount over it): path_open_proc("self/attr/exec", O_WRONLY). */
int path_open_proc(const char *path, int flags, struct err *err);

/* Removes all that is in the tree below path, and path itself; what is mounted there is an error, links are not followed. */
int path_remove(int tree, const char *path, struct err *err);

#endif
