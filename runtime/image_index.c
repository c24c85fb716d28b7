/*
 * images.json:
 *
 *	{ "images": [ { "id": "sha256:...", "manifest": "sha256:...", "tags": [...], "digests": [...], "pinned": true } ] }
 *
 * It is replaced by a rename, so whoever reads it needs no lock, and notices a change by its inode.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/image_priv.h"

enum { INDEX_MAX = 64 << 20 };

static const char *index_path(struct arena *a, const char *root) { return arena_printf(a, "%s/images.json", root).p; }

void image_index_done(struct image_index *x)
{
	arena_done(&x->arena);
	*x = (struct image_index){ 0 };
}

static void stamp(struct image_index *x, const struct stat *st)
{
	x->inode = (uint64_t)st->st_ino;
	x->mtime_ns = (uint64_t)st->st_mtim.tv_sec * (uint64_t)NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;
	x->size = (uint64_t)st->st_size;
}

bool image_index_is_fresh(const char *root, const struct image_index *x)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct image_index now = { 0 };
	struct stat st;
	if (stat(index_path(&a, root), &st) == 0)
		stamp(&now, &st);
	return now.inode == x->inode && now.mtime_ns == x->mtime_ns && now.size == x->size;
}

static str *read_names(struct arena *a, struct val list, size_t *ret_n)
{
	str *names = ARENA_ARRAY(a, str, val_len(list));
	size_t n = 0;
	VAL_EACH(v, list)
		names[n++] = val_as_str(*v);
	*ret_n = n;
	return names;
}

static int read_records(struct image_index *x, struct val list, struct err *err)
{
	x->records = ARENA_ARRAY(&x->arena, struct image_record, val_len(list));
	VAL_EACH(v, list) {
		struct image_record *rec = &x->records[x->n++];
		*rec = (struct image_record){ .id = val_str(*v, id), .manifest = val_str(*v, manifest), .pinned = val_bool(*v, pinned) };
		rec->tags = read_names(&x->arena, val_get(*v, tags), &rec->n_tags);
		rec->digests = read_names(&x->arena, val_get(*v, digests), &rec->n_digests);
		if (!digest_is_valid(rec->id) || !digest_is_valid(rec->manifest))
			return err_set(err, ERR_INVALID, "an image has no digest");
	}
	return 0;
}

static int read_fd(int fd, struct buf *b, struct err *err)
{
	ssize_t n;
	char *at;
	do {
		if (!(at = buf_reserve(b, 65536)))
			return buf_check(b, "images.json", err);
		n = read(fd, at, 65536);
		if (n > 0)
			buf_commit(b, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_sys(err, errno, "read") : 0;
}

static int read_index(const char *path, struct image_index *x, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(INDEX_MAX);
	struct stat st;
	struct val v;
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "open");
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat");
	stamp(x, &st);
	int r = read_fd(fd, &b, err);
	if (r < 0)
		return r;
	r = json_decode(&x->arena, arena_str(&x->arena, buf_str(&b)), &(struct json_decode_options){ 0 }, &v, err);
	if (r < 0)
		return err_wrap(err, r, "it is damaged");
	return read_records(x, val_get(v, images), err);
}

int image_index_load(const char *root, struct image_index *ret, struct err *err)
{
	struct image_index x = { 0 };
	const char *path = index_path(&x.arena, root);
	int r = read_index(path, &x, err);
	if (r < 0) {
		r = err_wrap(err, r, "%s", path);
		image_index_done(&x);
		return r;
	}
	*ret = x;
	return 0;
}

static struct val names_val(struct arena *a, const str *names, size_t n)
{
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&b, VAL_STR(names[i]));
	return val_end_list(&b);
}

int image_index_save(const char *root, const struct image_index *x, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(INDEX_MAX);
	struct val_builder list = val_builder(&a);

	for (size_t i = 0; i < x->n; i++) {
		const struct image_record *rec = &x->records[i];
		val_add_item(&list, OBJECT(&a, F(id, VAL_STR(rec->id)), F(manifest, VAL_STR(rec->manifest)),
					   F(tags, names_val(&a, rec->tags, rec->n_tags)),
					   F(digests, names_val(&a, rec->digests, rec->n_digests)),
					   F(pinned, rec->pinned ? val_of_bool(true) : VAL_EMPTY)));
	}
	struct val top = OBJECT(&a, F(images, val_end_list(&list)));
	int r = json_encode(&b, top, &(struct json_encode_options){ .indent = 2, .plain = true }, err);
	if (r < 0)
		return r;
	buf_addc(&b, '\n');
	return file_write(index_path(&a, root), buf_str(&b), 0600, err);
}

int images_lock(const char *root, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = arena_printf(&a, "%s/lock", root).p;
	CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "%s", path);
	int locked = fd;
	fd = -1;
	return locked;
}
