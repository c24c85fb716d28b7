/*
 * Blobs. One is written below ingest/, under a lock of its own file, synced, and renamed to its digest. ingest/<hex> can be resumed;
 * ingest/new-... cannot, because nobody knows yet what it will be.
 *
 * Whoever fetches has a lease: a file below leases/ with the digests it counts on, locked by its owner. A collection keeps those of
 * leases that are still locked; the lock ends with the owner, however that ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "runtime/image_priv.h"

enum { RESUME_SECONDS = 24 * 3600, LEASE_MAX = 16 << 20 };

bool digest_is_valid(str digest)
{
	if (digest.n != DIGEST_TEXT || !str_starts(digest, STR("sha256:")))
		return false;
	for (size_t i = 7; i < digest.n; i++)
		if (!((digest.p[i] >= '0' && digest.p[i] <= '9') || (digest.p[i] >= 'a' && digest.p[i] <= 'f')))
			return false;
	return true;
}

const char *image_blob_path_in(const char *root, struct arena *a, str digest)
{
	return arena_printf(a, "%s/blobs/sha256/" STR_FMT, root, STR_ARG(str_skip(digest, 7))).p;
}

const char *image_blob_path(struct images *m, struct arena *a, str digest) { return image_blob_path_in(m->root, a, digest); }

static char *copy_text(str s)
{
	char *p = mem_alloc(s.n + 1);
	memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

/* ---- leases ---- */

int image_lease_open(const char *root, struct image_lease *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	/* Under the store's lock nobody sees it before it is locked. */
	CLEANUP(fd_closep) int lock = images_lock(root, err);
	if (lock < 0)
		return lock;
	str path = arena_printf(&a, "%s/leases/%016llx", root, (unsigned long long)random_u64());
	int fd = open(path.p, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, STR_FMT, STR_ARG(path));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int sys = errno;
		close(fd);
		return err_sys(err, sys, STR_FMT, STR_ARG(path));
	}
	*ret = (struct image_lease){ fd, copy_text(path) };
	return 0;
}

void image_lease_done(struct image_lease *l)
{
	if (!l->path)
		return;
	unlink(l->path);
	close(l->fd);
	free(l->path);
	*l = (struct image_lease){ -1, NULL };
}

int image_lease_add(const char *root, struct image_lease *l, const str *digests, size_t n, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(LEASE_MAX);
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, STR_FMT "\n", STR_ARG(digests[i]));
	CLEANUP(fd_closep) int lock = images_lock(root, err);
	if (lock < 0)
		return lock;
	return file_write_fd(l->fd, buf_str(&b), -1, l->path, err);
}

/* ---- reading ---- */

bool image_blob_have(const char *root, struct image_lease *l, str digest, int64_t size)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = image_blob_path_in(root, &a, digest);
	struct stat st;
	if (l && image_lease_add(root, l, &digest, 1, NULL) < 0)
		return false;
	if (stat(path, &st) < 0)
		return false;
	/* Another size is the manifest's mistake, or its trick: what is there may belong to other images, and was verified. */
	return size < 0 || st.st_size == size;
}

int image_blob_read(const char *root, str digest, struct buf *b, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int r = file_read(image_blob_path_in(root, &a, digest), b, err);
	return r < 0 ? err_wrap(err, r, "content " STR_FMT, STR_ARG(digest)) : 0;
}

/* ---- writing ---- */

/* What is in the file already goes through the hash. */
static int hash_file(struct image_ingest *g, struct err *err)
{
	CLEANUP(mem_freep) char *block = mem_alloc(IMAGE_BLOCK);
	for (;;) {
		ssize_t n = pread(g->fd, block, IMAGE_BLOCK, (off_t)g->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "%s", g->path);
		if (n == 0)
			return lseek(g->fd, (off_t)g->size, SEEK_SET) < 0 ? err_sys(err, errno, "%s", g->path) : 0;
		sha256_add(&g->hash, str_span(block, (size_t)n));
		g->size += (uint64_t)n;
	}
}

/* 1: ours; 0: another's. The file may have got its final name, or been removed, between opening and locking. */
static int lock_file(const char *path, int *ret_fd, struct err *err)
{
	for (;;) {
		struct stat ours, there;
		CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return err_sys(err, errno, "%s", path);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? 0 : err_sys(err, errno, "%s", path);
		if (fstat(fd, &ours) < 0)
			return err_sys(err, errno, "%s", path);
		if (stat(path, &there) < 0 || there.st_ino != ours.st_ino)
			continue;
		*ret_fd = fd;
		fd = -1;
		return 1;
	}
}

int image_ingest_open(const char *root, str digest, struct image_ingest *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct image_ingest g = { .root = root, .fd = -1 };
	str path;
	int r;
	do { /* a new one that is locked was met by somebody who cleans up */
		path = digest.n ? arena_printf(&a, "%s/ingest/" STR_FMT, root, STR_ARG(str_skip(digest, 7)))
				: arena_printf(&a, "%s/ingest/new-%016llx", root, (unsigned long long)random_u64());
		r = lock_file(path.p, &g.fd, err);
	} while (r == 0 && !digest.n);
	if (r <= 0)
		return r;
	g.path = copy_text(path);
	sha256_init(&g.hash);
	if ((r = hash_file(&g, err)) < 0) {
		image_ingest_done(&g, false);
		return r;
	}
	*ret = g;
	return 1;
}

int image_ingest_add(struct image_ingest *g, str data, struct err *err)
{
	sha256_add(&g->hash, data);
	g->size += data.n;
	return file_write_fd(g->fd, data, -1, g->path, err);
}

int image_ingest_restart(struct image_ingest *g, struct err *err)
{
	sha256_done(&g->hash);
	sha256_init(&g->hash);
	g->size = 0;
	if (ftruncate(g->fd, 0) < 0 || lseek(g->fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "%s", g->path);
	return 0;
}

int image_ingest_commit(struct image_ingest *g, struct image_lease *l, str expected, char ret_digest[DIGEST_TEXT + 1], struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	uint8_t sum[SHA256_BYTES];
	sha256_sum(&g->hash, sum);
	memcpy(ret_digest, "sha256:", 7);
	size_t n = 7 + hex_encode(ret_digest + 7, str_span((const char *)sum, sizeof(sum)));
	ret_digest[n] = '\0';
	str digest = str_span(ret_digest, n);
	if (expected.n && !str_eq(digest, expected)) {
		image_ingest_done(g, false);
		return err_set(err, ERR_INVALID, "unexpected commit digest %s, expected " STR_FMT ": failed precondition", ret_digest,
			       STR_ARG(expected));
	}
	int r = image_lease_add(g->root, l, &digest, 1, err);
	if (r < 0)
		return r;
	if (fsync(g->fd) < 0 || rename(g->path, image_blob_path_in(g->root, &a, digest)) < 0)
		return err_sys(err, errno, "%s", g->path);
	image_ingest_done(g, true);
	return 0;
}

void image_ingest_done(struct image_ingest *g, bool keep)
{
	if (!g->path)
		return;
	if (!keep)
		unlink(g->path);
	close(g->fd);
	free(g->path);
	sha256_done(&g->hash);
	*g = (struct image_ingest){ .fd = -1 };
}

int image_blob_write(const char *root, struct image_lease *l, str data, char ret_digest[DIGEST_TEXT + 1], struct err *err)
{
	struct image_ingest g = { .fd = -1 };
	int r = image_ingest_open(root, STR_NONE, &g, err);
	if (r < 0)
		return r;
	if ((r = image_ingest_add(&g, data, err)) == 0)
		r = image_ingest_commit(&g, l, STR_NONE, ret_digest, err);
	image_ingest_done(&g, false);
	return r;
}

/* ---- cleaning ---- */

/* Calls fn for the names in a folder of the store. */
static void each_in(const char *root, const char *folder, void (*fn)(const char *path, const char *name, void *arg), void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str dir = arena_printf(&a, "%s%s", root, folder);
	DIR *d = opendir(dir.p);
	struct dirent *e;
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			fn(arena_printf(&a, STR_FMT "/%s", STR_ARG(dir), e->d_name).p, e->d_name, arg);
	if (d)
		closedir(d);
}

/* A file that nobody has locked. */
static int open_idle(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void clean_lease(const char *path, const char *name, void *arg)
{
	(void)name, (void)arg;
	CLEANUP(fd_closep) int fd = open_idle(path);
	if (fd >= 0)
		unlink(path);
}

static void clean_ingest(const char *path, const char *name, void *arg)
{
	struct stat st;
	(void)arg;
	CLEANUP(fd_closep) int fd = open_idle(path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	bool old = clock_wall_ns() / NS_PER_S - st.st_mtim.tv_sec > RESUME_SECONDS;
	if (old || strlen(name) != SHA256_HEX)
		unlink(path);
}

static void clean_trash(const char *path, const char *name, void *arg)
{
	(void)name, (void)arg;
	unlink(path);
}

static void clean_top(const char *path, const char *name, void *arg)
{
	(void)arg;
	if (str_starts(str_of(name), STR("images.json.")))
		unlink(path);
}

void image_clean(const char *root)
{
	each_in(root, "/leases", clean_lease, NULL);
	each_in(root, "/ingest", clean_ingest, NULL);
	each_in(root, "/trash", clean_trash, NULL);
	each_in(root, "", clean_top, NULL);
}

/* ---- collecting ---- */

struct collection {
	const char *root;
	struct arena arena;
	struct map keep;
	uint64_t freed;
};

static void keep(struct collection *c, str digest)
{
	if (digest_is_valid(digest)) {
		str name = arena_str(&c->arena, str_skip(digest, 7));
		map_put(&c->keep, name, (void *)name.p);
	}
}

static void keep_lease(const char *path, const char *name, void *arg)
{
	struct collection *c = arg;
	CLEANUP(buf_done) struct buf b = BUF_INIT(LEASE_MAX);
	(void)name;
	CLEANUP(fd_closep) int idle = open_idle(path);
	if (idle >= 0) {
		unlink(path);
		return;
	}
	if (file_read(path, &b, NULL) < 0)
		return;
	for (str rest = buf_str(&b), line; rest.n;) {
		str_cut(rest, '\n', &line, &rest);
		keep(c, line);
	}
}

static int keep_image(struct collection *c, const struct image_record *rec, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_MANIFEST_MAX);
	struct image_manifest manifest;
	keep(c, rec->id);
	keep(c, rec->manifest);
	int r = image_blob_read(c->root, rec->manifest, &b, err);
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r < 0 || (r = image_manifest_parse(&c->arena, arena_str(&c->arena, buf_str(&b)), STR_NONE, &manifest, err)) < 0)
		return err_wrap(err, r, "image " STR_FMT, STR_ARG(rec->id));
	for (size_t i = 0; i < manifest.n_layers; i++)
		keep(c, manifest.layers[i].digest);
	return 0;
}

static void trash(const char *path, const char *name, void *arg)
{
	struct collection *c = arg;
	struct stat st;
	if (map_get(&c->keep, str_of(name)) || stat(path, &st) < 0)
		return;
	if (rename(path, arena_printf(&c->arena, "%s/trash/%s", c->root, name).p) == 0)
		c->freed += (uint64_t)st.st_size;
}

/* Only names move under the lock: giving back the space of large files takes time. */
static int move_garbage(struct collection *c, struct err *err)
{
	struct image_index x = { 0 };
	CLEANUP(fd_closep) int lock = images_lock(c->root, err);
	if (lock < 0)
		return lock;
	int r = image_index_load(c->root, &x, err);
	for (size_t i = 0; r == 0 && i < x.n; i++)
		r = keep_image(c, &x.records[i], err);
	if (r == 0) {
		each_in(c->root, "/leases", keep_lease, c);
		each_in(c->root, "/blobs/sha256", trash, c);
		each_in(c->root, "/ingest", clean_ingest, NULL);
	}
	image_index_done(&x);
	return r;
}

int image_collect_now(const char *root, uint64_t *ret_freed, struct err *err)
{
	struct collection c = { .root = root };
	int r = move_garbage(&c, err);
	each_in(root, "/trash", clean_trash, NULL);
	*ret_freed = c.freed;
	map_done(&c.keep);
	arena_done(&c.arena);
	return r;
}
