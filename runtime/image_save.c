/*
 * Saving and importing. An archive for Docker is also an OCI layout, as Docker itself writes it since version 25: one set of blobs,
 * with manifest.json for the one kind of readers and index.json for the other.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/time.h"
#include "runtime/image_priv.h"
#include "runtime/tar.h"

/* ---- where to ---- */

struct save {
	const char *root, *file;
	bool oci;
	const struct image *images;
	const str *names;           /* as they were asked for */
	size_t n;
	int tar;                    /* descriptor; -1: into the folder `file` */
	int64_t left;               /* of the file that is being written into the archive */
	struct arena arena;
	struct map written;         /* blobs */
};

/* The head of a file in the archive, or a file in the folder (its descriptor). */
static int begin_file(struct save *s, const char *name, int64_t size, struct err *err)
{
	if (s->tar < 0) {
		const char *path = arena_printf(&s->arena, "%s/%s", s->file, name).p;
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
		return fd < 0 ? err_sys(err, errno, "%s", path) : fd;
	}
	struct tar_header h;
	int r = tar_header(&h, name, size, err);
	s->left = size;
	return r < 0 ? r : file_write_fd(s->tar, str_span((const char *)&h, sizeof h), -1, s->file, err);
}

static int write_part(struct save *s, int fd, str part, struct err *err)
{
	if (s->tar < 0)
		return file_write_fd(fd, part, -1, s->file, err);
	if ((int64_t)part.n > s->left)
		return err_set(err, ERR_INTERNAL, "%s: a file has grown while it was saved", s->file);
	s->left -= (int64_t)part.n;
	return file_write_fd(s->tar, part, -1, s->file, err);
}

/* The file is complete; what follows it in an archive begins at the next block. */
static int end_file(struct save *s, int64_t size, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	if (s->tar < 0)
		return 0;
	if (s->left)
		return err_set(err, ERR_INTERNAL, "%s: a file has shrunk while it was saved", s->file);
	return file_write_fd(s->tar, str_span(zeros, tar_padding(size)), -1, s->file, err);
}

static int put_text(struct save *s, const char *name, str text, struct err *err)
{
	if (s->tar < 0)
		return file_write(arena_printf(&s->arena, "%s/%s", s->file, name).p, text, 0644, err);
	int r = begin_file(s, name, (int64_t)text.n, err);
	if (r >= 0)
		r = write_part(s, -1, text, err);
	return r < 0 ? r : end_file(s, (int64_t)text.n, err);
}

static int put_blob(struct save *s, str digest, struct err *err)
{
	const char *path = image_blob_path_in(s->root, &s->arena, digest);
	const char *name = arena_printf(&s->arena, "blobs/sha256/" STR_FMT, STR_ARG(str_skip(digest, 7))).p;
	CLEANUP(mem_freep) char *block = mem_alloc(IMAGE_BLOCK);
	CLEANUP(fd_closep) int out = -1;
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;
	if (map_put(&s->written, digest, (void *)digest.p))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "%s", path);
	int r = begin_file(s, name, st.st_size, err);
	if (r < 0)
		return r;
	out = s->tar < 0 ? r : -1;
	while ((n = read(fd, block, IMAGE_BLOCK)) > 0)
		if ((r = write_part(s, out, str_span(block, (size_t)n), err)) < 0)
			return r;
	return n < 0 ? err_sys(err, errno, "%s", path) : end_file(s, st.st_size, err);
}

/* ---- what ---- */

/* The names that an image is saved with: the one that was asked for, or all when it was asked for by its id. */
static const str *names_of(struct save *s, size_t i, size_t *ret_n)
{
	struct image_ref *ref = ARENA_NEW(&s->arena, struct image_ref);
	*ret_n = 1;
	if (image_ref_parse(&s->arena, s->names[i], ref, NULL) == 0)
		for (size_t k = 0; k < s->images[i].n_tags; k++)
			if (str_eq(s->images[i].tags[k], ref->text))
				return &s->images[i].tags[k];
	*ret_n = s->images[i].n_tags;
	return s->images[i].tags;
}

static int64_t blob_size(struct save *s, str digest)
{
	struct stat st;
	return stat(image_blob_path_in(s->root, &s->arena, digest), &st) == 0 ? st.st_size : 0;
}

static str blob_name(struct save *s, str digest) { return arena_join(&s->arena, STR("blobs/sha256/"), str_skip(digest, 7)); }

static void add_index_entry(struct save *s, struct val_builder *list, str manifest, str media_type, str name)
{
	struct arena *a = &s->arena;
	struct val notes = VAL_EMPTY;
	if (name.n) {
		struct val_builder b = val_builder(a);
		ptrdiff_t colon = str_rchr(name, ':');
		val_add_member(&b, atom_make(a, STR("io.containerd.image.name")), VAL_STR(name));
		/* Docker's kind has the tag here, and the whole name beside it; readers of plain layouts look only here. */
		val_add_member(&b, atom_make(a, STR("org.opencontainers.image.ref.name")),
			       VAL_STR(s->oci ? name : str_skip(name, (size_t)(colon + 1))));
		notes = val_end_object(&b);
	}
	val_add_item(list, OBJECT(a, F(mediaType, VAL_STR(media_type)), F(digest, VAL_STR(manifest)),
				  F(size, val_of_int(blob_size(s, manifest))), F(annotations, notes)));
}

static struct val docker_entry(struct save *s, const struct image *image, const str *names, size_t n)
{
	struct val_builder tags = val_builder(&s->arena), layers = val_builder(&s->arena);
	for (size_t i = 0; i < n; i++)
		val_add_item(&tags, VAL_STR(names[i]));
	for (size_t i = 0; i < image->n_layers; i++)
		val_add_item(&layers, VAL_STR(blob_name(s, image->layers[i])));
	return OBJECT(&s->arena, F(Config, VAL_STR(blob_name(s, image->id))), F(RepoTags, val_end_list(&tags)),
		      F(Layers, val_end_list(&layers)));
}

static int put_json(struct save *s, const char *name, struct val v, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_MANIFEST_MAX);
	int r = json_encode(&b, v, &(struct json_encode_options){ .plain = true }, err);
	return r < 0 ? r : put_text(s, name, buf_str(&b), err);
}

/* {"name": {"tag": "id"}}: what the oldest readers look for. */
static struct val add_repository(struct save *s, struct val top, str name, str id)
{
	struct arena *a = &s->arena;
	ptrdiff_t colon = str_rchr(name, ':');
	if (colon < 0)
		return top;
	const atom path[] = { atom_make(a, str_head(name, (size_t)colon)), atom_make(a, str_skip(name, (size_t)colon + 1)) };
	return val_put_path(a, top, path, ARRAY_LEN(path), VAL_STR(str_skip(id, 7)));
}

static int save_blobs(struct save *s, const struct image *image, str *ret_media_type, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_MANIFEST_MAX);
	struct image_manifest m;
	int r = image_blob_read(s->root, image->manifest_digest, &b, err);
	if (r < 0 || (r = image_manifest_parse(&s->arena, arena_str(&s->arena, buf_str(&b)), STR_NONE, &m, err)) < 0 ||
	    (r = put_blob(s, image->manifest_digest, err)) < 0 || (r = put_blob(s, image->id, err)) < 0)
		return r;
	for (size_t i = 0; r == 0 && i < image->n_layers; i++)
		r = put_blob(s, image->layers[i], err);
	*ret_media_type = m.media_type;
	return r;
}

static int save_all(struct save *s, struct err *err)
{
	struct arena *a = &s->arena;
	struct val_builder index = val_builder(a), docker = val_builder(a);
	struct val repositories = VAL_EMPTY_OBJECT;
	int r = put_json(s, "oci-layout", OBJECT(a, F(imageLayoutVersion, VAL_LIT("1.0.0"))), err);
	for (size_t i = 0; r == 0 && i < s->n; i++) {
		size_t n;
		str media_type;
		const str *names = names_of(s, i, &n);
		if ((r = save_blobs(s, &s->images[i], &media_type, err)) < 0)
			return r;
		for (size_t k = 0; k < n; k++) {
			add_index_entry(s, &index, s->images[i].manifest_digest, media_type, names[k]);
			repositories = add_repository(s, repositories, names[k], s->images[i].id);
		}
		if (!n)
			add_index_entry(s, &index, s->images[i].manifest_digest, media_type, STR_NONE);
		val_add_item(&docker, docker_entry(s, &s->images[i], names, n));
	}
	if (r == 0)
		r = put_json(s, "index.json", OBJECT(a, F(schemaVersion, val_of_int(2)), F(mediaType, VAL_LIT(MEDIA_OCI_INDEX)),
						     F(manifests, val_end_list(&index))), err);
	if (r == 0 && !s->oci)
		r = put_json(s, "manifest.json", val_end_list(&docker), err);
	if (r == 0 && !s->oci)
		r = put_json(s, "repositories", repositories, err);
	return r;
}

static int save_tar(struct save *s, int fd, struct err *err)
{
	static const char end[2 * TAR_BLOCK];
	s->tar = fd;
	int r = save_all(s, err);
	return r < 0 ? r : file_write_fd(fd, str_span(end, sizeof end), -1, s->file, err);
}

/* A regular file appears when it is complete; into a pipe or device it goes as it comes. */
static int save_file(struct save *s, struct err *err)
{
	struct stat st;
	if (strcmp(s->file, "-") == 0)
		return save_tar(s, 1, err);
	if (stat(s->file, &st) == 0 && !S_ISREG(st.st_mode)) {
		CLEANUP(fd_closep) int fd = open(s->file, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return fd < 0 ? err_sys(err, errno, "%s", s->file) : save_tar(s, fd, err);
	}
	char *tmp = (char *)arena_printf(&s->arena, "%s.XXXXXX", s->file).p;
	CLEANUP(fd_closep) int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "%s", s->file);
	int r = save_tar(s, fd, err);
	if (r == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0 || rename(tmp, s->file) < 0))
		r = err_sys(err, errno, "%s", s->file);
	if (r < 0)
		unlink(tmp);
	return r;
}

static int save_blocking(void *arg, struct err *err)
{
	struct save *s = arg;
	struct stat st;
	if (strcmp(s->file, "-") == 0 || stat(s->file, &st) < 0 || !S_ISDIR(st.st_mode))
		return save_file(s, err);
	if (!s->oci)
		return err_set(err, ERR_INVALID, "%s: is a directory; only an OCI layout is saved into one", s->file);
	int r = file_make_dirs(arena_printf(&s->arena, "%s/blobs/sha256", s->file).p, 0755, err);
	return r < 0 ? r : save_all(s, err);
}

int image_save(struct images *m, const str *names, size_t n, const char *file, bool oci, struct err *err)
{
	struct save s = { .root = m->root, .file = file, .oci = oci, .names = names, .n = n, .tar = -1 };
	struct image_lease lease = { .fd = -1 };
	map_init(&s.written);
	int r = image_lease_open(m->root, &lease, err);
	struct image *images = ARENA_ARRAY(&s.arena, struct image, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = image_find(m, names[i], &s.arena, &images[i], err);
		if (r == 0)
			r = image_lease_add(m->root, &lease, images[i].layers, images[i].n_layers, err);
		if (r == 0)
			r = image_lease_add(m->root, &lease, (const str[]){ images[i].id, images[i].manifest_digest }, 2, err);
	}
	s.images = images;
	if (r == 0)
		r = fiber_blocking(save_blocking, &s, err);
	image_lease_done(&lease);
	map_done(&s.written);
	arena_done(&s.arena);
	return r;
}

/* ---- importing ---- */

struct import {
	const char *root, *file;
	struct val config;
	struct arena *arena;
	struct image_lease lease;
	str id, manifest;
};

/* That it is a tar, to its end. */
static int check_tar(const char *path, const char *name, struct err *err)
{
	CLEANUP(image_archive_readerp) struct archive *r = image_archive_reader(false);
	struct archive_entry *e;
	int got;
	if (archive_read_open_filename(r, path, IMAGE_BLOCK) != ARCHIVE_OK)
		return image_archive_error(r, name, err);
	while ((got = archive_read_next_header(r, &e)) == ARCHIVE_OK || got == ARCHIVE_WARN)
		;
	return got == ARCHIVE_EOF ? 0 : image_archive_error(r, name, err);
}

/* The digest of what is inside the compression. */
static int plain_digest(const char *path, const char *name, char ret[DIGEST_TEXT + 1], struct err *err)
{
	CLEANUP(image_archive_readerp) struct archive *r = image_archive_reader(true);
	CLEANUP(mem_freep) char *block = mem_alloc(IMAGE_BLOCK);
	CLEANUP(sha256_done) struct sha256 h = { 0 };
	struct archive_entry *e;
	uint8_t sum[SHA256_BYTES];
	ssize_t n;
	sha256_init(&h);
	if (archive_read_open_filename(r, path, IMAGE_BLOCK) != ARCHIVE_OK || archive_read_next_header(r, &e) != ARCHIVE_OK)
		return image_archive_error(r, name, err);
	while ((n = archive_read_data(r, block, IMAGE_BLOCK)) > 0)
		sha256_add(&h, str_span(block, (size_t)n));
	if (n < 0)
		return image_archive_error(r, name, err);
	sha256_sum(&h, sum);
	memcpy(ret, "sha256:", 7);
	ret[7 + hex_encode(ret + 7, str_span((const char *)sum, sizeof(sum)))] = '\0';
	return 0;
}

static struct val complete_config(struct import *im, str diff_id)
{
	struct arena *a = im->arena;
	char now[TIME_TEXT_MAX];
	str created = arena_str(a, time_format((struct timestamp){ clock_wall_ns() / NS_PER_S, 0 }, now));
	struct val v = val_is(im->config, VAL_OBJECT) ? im->config : VAL_EMPTY_OBJECT;
	if (!val_has(v, created))
		v = val_with(a, v, VAL_STR(created), created);
	if (!val_has(v, architecture))
		v = val_with(a, v, VAL_STR(image_architecture()), architecture);
	if (!val_has(v, os))
		v = val_with(a, v, VAL_LIT("linux"), os);
	if (!val_has(v, config))
		v = val_with(a, v, VAL_EMPTY_OBJECT, config);
	v = val_with(a, v, OBJECT(a, F(type, VAL_LIT("layers")), F(diff_ids, LIST(a, VAL_STR(diff_id)))), rootfs);
	return val_with(a, v, LIST(a, OBJECT(a, F(created, VAL_STR(created)), F(created_by, VAL_LIT("c8s image import")))), history);
}

static int import_blocking(void *arg, struct err *err)
{
	struct import *im = arg;
	CLEANUP(buf_done) struct buf config = BUF_INIT(IMAGE_CONFIG_MAX);
	CLEANUP(buf_done) struct buf manifest = BUF_INIT(IMAGE_MANIFEST_MAX);
	char layer[DIGEST_TEXT + 1], plain[DIGEST_TEXT + 1], id[DIGEST_TEXT + 1], digest[DIGEST_TEXT + 1];
	struct descriptor l = { 0 };
	int r = image_lease_open(im->root, &im->lease, err);
	if (r < 0 || (r = image_ingest_file(im->root, &im->lease, im->file, STR_NONE, layer, &l.size, err)) < 0)
		return r;
	l.digest = str_of(layer);
	const char *path = image_blob_path_in(im->root, im->arena, l.digest);
	if ((r = check_tar(path, im->file, err)) < 0 || (r = plain_digest(path, im->file, plain, err)) < 0 ||
	    (r = image_layer_media_type(im->root, l.digest, &l.media_type, err)) < 0)
		return r;
	struct val v = complete_config(im, str_of(plain));
	if ((r = json_encode(&config, v, &(struct json_encode_options){ .plain = true }, err)) < 0 ||
	    (r = image_blob_write(im->root, &im->lease, buf_str(&config), id, err)) < 0)
		return r;
	struct descriptor c = { STR(MEDIA_OCI_CONFIG), str_of(id), (int64_t)config.n };
	if ((r = image_manifest_make(&manifest, &c, &l, 1, err)) < 0 ||
	    (r = image_blob_write(im->root, &im->lease, buf_str(&manifest), digest, err)) < 0)
		return r;
	im->id = arena_str(im->arena, str_of(id));
	im->manifest = arena_str(im->arena, str_of(digest));
	return 0;
}

int image_import(struct images *m, const char *tar_file, const struct image_ref *ref, struct val config, struct arena *a,
		 str *ret_id, struct err *err)
{
	struct import im = { .root = m->root, .file = tar_file, .config = config, .arena = a, .lease = { .fd = -1 } };
	if (ref->digest.n)
		return err_set(err, ERR_INVALID, "an imported image is named by a tag, not by a digest");
	int r = fiber_blocking(import_blocking, &im, err);
	if (r == 0)
		r = image_commit(m, im.id, im.manifest, &(struct image_names){ .tags = &ref->text, .n_tags = 1 }, err);
	image_lease_done(&im.lease);
	if (r == 0)
		*ret_id = im.id;
	return r;
}
