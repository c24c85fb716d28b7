/*
 * Writing tar: the heads of regular files, in the ustar format. Archives are read by libarchive; its writer is not used because it
 * would bring compressors, XML and encryption into a program that needs none of them.
 */
#ifndef C8S_RUNTIME_TAR_H
#define C8S_RUNTIME_TAR_H

#include "base/err.h"

enum { TAR_BLOCK = 512 };

struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6], version[2], user[32],
		group[32], major[8], minor[8], prefix[155], rest[12];
};

/* A file that all may read, of the year 1970. -ERR_INVALID for a name or a size that does not fit. */
int tar_header(struct tar_header *h, const char *name, int64_t size, struct err *err);
/* Zeros between the end of a file and the next header. */
static inline size_t tar_padding(int64_t size) { return (size_t)(-size & (TAR_BLOCK - 1)); }

#endif
