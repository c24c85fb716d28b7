/* file: whole small files (keys, certificates, configurations), read with a bound and replaced atomically. All of it blocks. */
#ifndef C8S_BASE_FILE_H
#define C8S_BASE_FILE_H

#include <sys/types.h>

#include "base/buf.h"

/* Appends the content of a file to b; -ERR_NOT_FOUND when there is none, -ERR_TOO_LARGE beyond the buffer's maximum. */
int file_read(const char *path, struct buf *b, struct err *err);
/*
 * Writes a file so that at every moment, also after a crash, the path names either the old content or all of the new:
 * a temporary file beside it is written, synced and renamed. The file has exactly this mode. What is there and is no file, such as
 * /dev/null or a pipe, is written to and stays what it is.
 */
int file_write(const char *path, str content, mode_t mode, struct err *err);
/* The same, not synced: whoever looks finds it whole, but after a loss of power it may be the old one, empty or missing. */
int file_replace(const char *path, str content, mode_t mode, struct err *err);
/*
 * All of data to a blocking descriptor: where it stands (at < 0), or at an offset. name is for the error. On error an unknown part was
 * written.
 */
int file_write_fd(int fd, str data, int64_t at, const char *name, struct err *err);
/* Makes the directory and those above it that are missing; the last one gets exactly this mode when it is made. */
int file_make_dirs(const char *path, mode_t mode, struct err *err);

/* Closes a descriptor and forgets it; -1 is none. In the form that CLEANUP takes. */
void fd_closep(int *fd);

#endif
