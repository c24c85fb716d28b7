/* Tars that no sensible program would write, for tests. */
#ifndef C8S_RUNTIME_LAYER_TESTING_H
#define C8S_RUNTIME_LAYER_TESTING_H

#include "base/arena.h"
#include "base/buf.h"

struct tar_entry {
	const char *name;
	char type;                      /* '0' file, '1' hard link, '2' symbolic link, '3' '4' devices, '5' folder, '6' fifo */
	const char *link, *data;
	unsigned mode, uid, gid;
	long mtime;
	unsigned major, minor;
	const char *pax_key, *pax_value; /* one attribute of an extended header */
};

/* Names longer than 99 bytes go into an extended header. mode 0: 0644. */
void tar_add(struct buf *tar, const struct tar_entry *e);
/* All of them (up to one without a name), with an end. */
void tar_make(struct buf *tar, const struct tar_entry *entries);
/* Compressed by libarchive: "gzip" or "zstd". */
void tar_compress(struct buf *out, str tar, const char *filter);

/* A new folder below $TMPDIR; test_folder_remove takes it away with all that is in it. */
char *test_folder_make(void);
void test_folder_remove(char **folder);
/* A file in it. */
const char *test_file(struct arena *a, const char *folder, const char *name, str content);

#endif
