/*
 * Log files of before: when a log is rotated, 0.log becomes 0.log.20060102-150405. So do kubelets name them (which may also pack them:
 * those end with .gz and are not meant here); the order of the names is that of their age. For the monitor, which rotates when it is told a
 * size, and for logs.h, which goes on from one to the next.
 */
#ifndef C8S_RUNTIME_LOGS_ROTATE_H
#define C8S_RUNTIME_LOGS_ROTATE_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* What is added to the path, ".20060102-150405"; UTC. */
enum { LOGS_SUFFIX_MAX = 32 };
void logs_suffix(int64_t seconds, char out[LOGS_SUFFIX_MAX]);
/* The path with it; to be freed. */
char *logs_rotated(const char *path, const char *suffix);
/*
 * Of the files that were rotated from the path, and whose suffix comes after `after` ("": all): how many there are, and the suffix of the
 * oldest one ("" when there is none; ret_suffix may be `after`). -ERR_x when the folder cannot be read.
 */
int logs_rotated_after(const char *path, const char *after, char ret_suffix[LOGS_SUFFIX_MAX], size_t *ret_n, struct err *err);

#endif
