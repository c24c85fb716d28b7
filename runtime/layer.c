/*
 * A layer from its first byte to its last. The disk keeps some room whatever a layer says of itself: a bomb is stopped while it grows,
 * and what it has written goes with the temporary folder that it was put into.
 */
#include "runtime/layer.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"

enum { CHECK_BYTES = 64 << 20, CHECK_FILES = 10000, KEEP_FILES = 1000 };
#define KEEP_BYTES ((uint64_t)512 << 20)

int layer_check_disk(int top, uint64_t bytes, struct err *err)
{
	struct statvfs fs;
	if (fstatvfs(top, &fs) < 0)
		return err_sys(err, errno, "statvfs");
	/* a twentieth of a small disk, and never more than half a gigabyte */
	uint64_t keep = MIN(KEEP_BYTES, (uint64_t)fs.f_blocks * fs.f_frsize / 20);
	if ((uint64_t)fs.f_bavail * fs.f_frsize < keep + bytes)
		return err_sys(err, ENOSPC, "unpacking stops when less than %llu bytes are free", (unsigned long long)keep);
	if (fs.f_files && fs.f_favail < KEEP_FILES)
		return err_sys(err, ENOSPC, "unpacking stops when less than %d inodes are free", KEEP_FILES);
	return 0;
}

int layer_tree_check_room(struct layer_tree *t, uint64_t bytes, struct err *err)
{
	t->bytes += bytes;
	if (t->checked_files && t->bytes - t->checked_bytes < CHECK_BYTES && t->files - t->checked_files < CHECK_FILES)
		return 0;
	t->checked_bytes = t->bytes;
	t->checked_files = MAX(t->files, (uint64_t)1);
	return layer_check_disk(t->top, 0, err);
}

static int apply_whiteouts(const char *blob, struct layer_tree *t, struct err *err)
{
	CLEANUP(layer_reader_done) struct layer_reader l = { 0 };
	struct archive_entry *e;
	uint64_t n = 0;
	int r = layer_reader_open(&l, blob, err);
	while (r == 0 && (r = layer_reader_next(&l, &e, err)) > 0) {
		if (++n > LAYER_ENTRIES_MAX)
			return err_set(err, ERR_TOO_LARGE, "the layer has more than %d entries", LAYER_ENTRIES_MAX);
		r = archive_entry_pathname(e) ? layer_tree_apply_whiteout(t, e, err) : 0;
	}
	return r;
}

static int add_entries(const char *blob, struct layer_tree *t, struct layer_result *ret, struct err *err)
{
	CLEANUP(layer_reader_done) struct layer_reader l = { 0 };
	struct archive_entry *e;
	int r = layer_reader_open(&l, blob, err);
	while (r == 0 && (r = layer_reader_next(&l, &e, err)) > 0)
		r = layer_tree_add(t, &l, e, err);
	if (r == 0)
		r = layer_reader_end(&l, ret->diff_id, err);
	return r;
}

int layer_unpack_left(const char *blob, const char *into, bool overlay, struct layer_left *left, struct layer_result *ret,
		      struct err *err)
{
	CLEANUP(fd_closep) int top = path_open_tree(into, err);
	if (top < 0)
		return top;
	CLEANUP(layer_tree_done) struct layer_tree t;
	layer_tree_init(&t, top, overlay, left);
	int r = overlay ? 0 : apply_whiteouts(blob, &t, err);
	if (r == 0)
		r = add_entries(blob, &t, ret, err);
	if (r == 0)
		r = layer_tree_finish(&t, err);
	if (r == 0 && left && !t.has_top)
		buf_addc(&left->folders, '\0');
	ret->bytes = t.bytes;
	ret->files = t.files;
	return r;
}

int layer_unpack(const char *blob, const char *into, bool overlay, struct layer_result *ret, struct err *err)
{
	return layer_unpack_left(blob, into, overlay, NULL, ret, err);
}
