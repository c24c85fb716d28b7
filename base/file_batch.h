/*
 * file_batch: several whole small files that are written together. What a disk takes its time for is to make a file durable, one after the
 * other; all at the same time take hardly longer than one.
 *
 *	CLEANUP(file_batch_done) struct file_batch batch = FILE_BATCH_INIT;
 *	file_batch_add(&batch, "pki/ca.key", key, 0600);
 *	file_batch_add(&batch, "pki/ca.crt", cert, 0644);
 *	r = file_batch_write(&batch, err);
 *
 * Each of them is, at every moment and also after a crash, the old one or the whole new one, as by file_write.
 */
#ifndef C8S_BASE_FILE_BATCH_H
#define C8S_BASE_FILE_BATCH_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

struct file_batch_item;

struct file_batch {
	struct arena arena;
	struct file_batch_item *first, **end; /* end: where the next one goes; NULL: first */
	size_t n;
};

#define FILE_BATCH_INIT { .arena = ARENA_INIT }

/* Both are copied. Nothing is written yet. The path names no device or pipe. */
void file_batch_add(struct file_batch *b, const char *path, str content, mode_t mode);
/* As file_read, from the files that are going to be: one that was added is found as it was added. */
int file_batch_read(const struct file_batch *b, const char *path, struct buf *ret, struct err *err);
/* Writes all, and waits until they are durable. The batch is empty afterwards, also on error; then some may be written and some not. Blocks. */
int file_batch_write(struct file_batch *b, struct err *err);
/* Forgets what was not written; contents, which may be keys, are wiped. */
void file_batch_done(struct file_batch *b);

#endif
