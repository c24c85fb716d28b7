/*
 * Loading. Every file in an archive becomes a blob as it is read, whatever its name; names are only looked up afterwards, in
 * memory, so a hostile one reaches nothing. What no image came to need is garbage. All in the thread pool.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber_io.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/image_priv.h"

enum {
	ENTRIES_MAX = 20000,
	PATH_BYTES_MAX = 4096,
	LINKS_MAX = 8,
	IMAGES_MAX = 1000,
	NAMES_MAX = 16,             /* of one image */
};

#define TOTAL_MAX (UINT64_C(64) << 30) /* bytes out of one archive: more is a bomb */

/* ---- reading archives ---- */

struct archive *image_archive_reader(bool raw)
{
	struct archive *r = archive_read_new();
	/* Not all: some would run programs. */
	archive_read_support_filter_gzip(r);
	archive_read_support_filter_bzip2(r);
	archive_read_support_filter_xz(r);
	archive_read_support_filter_zstd(r);
	if (raw)
		archive_read_support_format_raw(r);
	else
		archive_read_support_format_tar(r);
	return r;
}

void image_archive_readerp(struct archive **r) { archive_read_free(*r); }

int image_archive_error(struct archive *r, const char *what, struct err *err)
{
	const char *why = archive_error_string(r);
	return err_set(err, ERR_INVALID, "%s: %s", what, why ? why : "unrecognized archive format");
}

int image_layer_media_type(const char *root, str digest, str *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *path = image_blob_path_in(root, &a, digest);
	unsigned char magic[4] = { 0 };
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, magic, sizeof(magic)) < 0)
		return err_sys(err, errno, "%s", path);
	if (magic[0] == 0x1f && magic[1] == 0x8b)
		*ret = STR(MEDIA_OCI_LAYER "+gzip");
	else if (memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0)
		*ret = STR(MEDIA_OCI_LAYER "+zstd");
	else
		*ret = STR(MEDIA_OCI_LAYER);
	return 0;
}

/* ---- files to blobs ---- */

struct file {
	str path;
	str digest;                 /* empty: a link */
	str link;                   /* the path that it stands for */
	int64_t size;
};

struct load {
	struct images *images;
	const char *root, *source;
	bool folder;                /* the source is an OCI layout's; else an archive */
	struct arena arena;
	struct map files;           /* by path */
	struct image_lease lease;
	uint64_t total;
	size_t entries;
	/* What was found, to be named on the loop's thread. */
	struct loaded {
		str id, manifest;
		str tags[NAMES_MAX];
		size_t n_tags;
	} *images_found;
	size_t n_found;
};

static int open_input(const char *path)
{
	return strcmp(path, "-") == 0 ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

int image_ingest_file(const char *root, struct image_lease *l, const char *path, str expected, char ret_digest[DIGEST_TEXT + 1],
		      int64_t *ret_size, struct err *err)
{
	CLEANUP(mem_freep) char *block = mem_alloc(IMAGE_BLOCK);
	CLEANUP(fd_closep) int fd = open_input(path);
	struct image_ingest g = { .fd = -1 };
	struct stat st;
	int r = 0;
	ssize_t n = 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "%s: is a directory", path);
	if ((r = image_ingest_open(root, STR_NONE, &g, err)) < 0)
		return r;
	for (r = 0; r == 0 && n > 0;) {
		n = read(fd, block, IMAGE_BLOCK);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			r = err_sys(err, errno, "%s", path);
		else if (n > 0)
			r = image_ingest_add(&g, str_span(block, (size_t)n), err);
	}
	*ret_size = (int64_t)g.size;
	if (r == 0)
		r = image_ingest_commit(&g, l, expected, ret_digest, err);
	image_ingest_done(&g, false);
	return r;
}

/* Without "./" and "/" before it, and without "." and ".." inside. */
static str normal_path(struct arena *a, str base, str path)
{
	str all = path.n && path.p[0] == '/' ? path : arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(base), STR_ARG(path)), part;
	char *out = ARENA_ARRAY(a, char, all.n + 1);
	size_t n = 0;
	while (all.n) {
		str_cut(all, '/', &part, &all);
		if (!part.n || str_eq(part, STR(".")))
			continue;
		if (str_eq(part, STR(".."))) {
			while (n && out[--n] != '/')
				;
			continue;
		}
		if (n)
			out[n++] = '/';
		memcpy(out + n, part.p, part.n);
		n += part.n;
	}
	return str_span(out, n);
}

static int copy_entry(struct load *l, struct archive *r, struct file *f, struct err *err)
{
	struct image_ingest g = { .fd = -1 };
	char digest[DIGEST_TEXT + 1];
	const void *p;
	int64_t offset;
	size_t n;
	int got, result = image_ingest_open(l->root, STR_NONE, &g, err);
	if (result < 0)
		return result;
	result = 0;
	while (result == 0 && (got = archive_read_data_block(r, &p, &n, &offset)) != ARCHIVE_EOF) {
		if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
			result = image_archive_error(r, l->source, err);
		else if ((uint64_t)offset != g.size)
			result = err_set(err, ERR_INVALID, "%s: sparse files are not supported", l->source);
		else if ((l->total += n) > TOTAL_MAX)
			result = err_set(err, ERR_TOO_LARGE, "%s: more than %llu bytes of content", l->source, (unsigned long long)TOTAL_MAX);
		else
			result = image_ingest_add(&g, str_span(p, n), err);
	}
	f->size = (int64_t)g.size;
	if (result == 0)
		result = image_ingest_commit(&g, &l->lease, STR_NONE, digest, err);
	image_ingest_done(&g, false);
	if (result == 0)
		f->digest = arena_str(&l->arena, str_of(digest));
	return result;
}

static int take_entry(struct load *l, struct archive *r, struct archive_entry *e, struct err *err)
{
	str path = str_of(archive_entry_pathname(e)), hard = str_of(archive_entry_hardlink(e)), soft = str_of(archive_entry_symlink(e)), dir;
	if (++l->entries > ENTRIES_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s: more than %d files", l->source, ENTRIES_MAX);
	if (!path.n || path.n > PATH_BYTES_MAX || hard.n > PATH_BYTES_MAX || soft.n > PATH_BYTES_MAX)
		return err_set(err, ERR_INVALID, "%s: a file has no name, or too long a one", l->source);
	struct file *f = ARENA_NEW(&l->arena, struct file);
	f->path = normal_path(&l->arena, STR(""), path);
	ptrdiff_t slash = str_rchr(f->path, '/');
	dir = str_head(f->path, slash < 0 ? 0 : (size_t)slash);
	int result = 0;
	if (hard.n)
		f->link = normal_path(&l->arena, STR(""), hard);
	else if (archive_entry_filetype(e) == AE_IFLNK)
		f->link = normal_path(&l->arena, dir, soft);
	else if (archive_entry_filetype(e) == AE_IFREG)
		result = copy_entry(l, r, f, err);
	else
		return 0;
	if (result == 0)
		map_put(&l->files, f->path, f);
	return result;
}

static int read_archive(struct load *l, struct err *err)
{
	CLEANUP(image_archive_readerp) struct archive *r = image_archive_reader(false);
	struct archive_entry *e;
	int got;
	CLEANUP(fd_closep) int fd = open_input(l->source);
	if (fd < 0)
		return err_sys(err, errno, "%s", l->source);
	if (archive_read_open_fd(r, fd, IMAGE_BLOCK) != ARCHIVE_OK)
		return image_archive_error(r, l->source, err);
	while ((got = archive_read_next_header(r, &e)) != ARCHIVE_EOF) {
		if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
			return image_archive_error(r, l->source, err);
		int result = take_entry(l, r, e, err);
		if (result < 0)
			return result;
	}
	return 0;
}

static const struct file *find_file(const struct load *l, str path)
{
	for (int i = 0; i < LINKS_MAX; i++) {
		const struct file *f = map_get(&l->files, path);
		if (!f || f->digest.n)
			return f;
		path = f->link;
	}
	return NULL;
}

/* ---- what is in them ---- */

/* A file of an OCI layout by its digest: in the store by now, or in the folder. */
static int need(struct load *l, const struct descriptor *d, struct err *err)
{
	char digest[DIGEST_TEXT + 1];
	int64_t size;
	if (image_blob_have(l->root, &l->lease, d->digest, d->size))
		return 0;
	if (!l->folder)
		return err_set(err, ERR_INVALID, "%s: content " STR_FMT " is missing", l->source, STR_ARG(d->digest));
	return image_ingest_file(l->root, &l->lease, arena_printf(&l->arena, "%s/blobs/sha256/" STR_FMT, l->source,
				 STR_ARG(str_skip(d->digest, 7))).p, d->digest, digest, &size, err);
}

static int read_text(struct load *l, str digest, size_t max, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(max);
	int r = image_blob_read(l->root, digest, &b, err);
	if (r == 0)
		*ret = arena_str(&l->arena, buf_str(&b));
	return r;
}

static int read_json(struct load *l, str digest, size_t max, struct val *ret, struct err *err)
{
	str text;
	int r = read_text(l, digest, max, &text, err);
	return r < 0 ? r : json_decode(&l->arena, text, &(struct json_decode_options){ 0 }, ret, err);
}

static int new_image(struct load *l, struct loaded **ret, struct err *err)
{
	if (!l->images_found)
		l->images_found = arena_zero_of(&l->arena, IMAGES_MAX * sizeof(*l->images_found), _Alignof(struct loaded));
	if (l->n_found == IMAGES_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s: more than %d images", l->source, IMAGES_MAX);
	*ret = &l->images_found[l->n_found++];
	return 0;
}

static int add_tag(struct load *l, struct loaded *image, str name, struct err *err)
{
	struct image_ref ref;
	int r = image_ref_parse(&l->arena, name, &ref, err);
	if (r < 0 || ref.digest.n)
		return r;
	if (image->n_tags == NAMES_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s: an image has more than %d names", l->source, NAMES_MAX);
	image->tags[image->n_tags++] = ref.text;
	return 0;
}

static int check_config(struct load *l, str digest, size_t n_layers, struct err *err)
{
	struct val config;
	const str *ids;
	int r = read_json(l, digest, IMAGE_CONFIG_MAX, &config, err);
	return r < 0 ? r : image_diff_ids(&l->arena, config, n_layers, &ids, err);
}

/* One of manifest.json: there is no manifest for it yet. */
static int load_docker_image(struct load *l, struct val v, struct err *err)
{
	const struct file *config = find_file(l, normal_path(&l->arena, STR(""), val_str(v, Config)));
	CLEANUP(buf_done) struct buf b = BUF_INIT(IMAGE_MANIFEST_MAX);
	struct val layers = val_get(v, Layers);
	char digest[DIGEST_TEXT + 1];
	struct loaded *image;
	size_t n = 0;

	if (!config)
		return err_set(err, ERR_INVALID, "%s: the configuration of an image is missing", l->source);
	if (val_len(layers) > IMAGE_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "%s: an image has more than %d layers", l->source, IMAGE_LAYERS_MAX);
	struct descriptor *list = ARENA_ARRAY(&l->arena, struct descriptor, val_len(layers));
	int r = check_config(l, config->digest, val_len(layers), err);
	VAL_EACH(layer, layers) {
		const struct file *f = find_file(l, normal_path(&l->arena, STR(""), val_as_str(*layer)));
		if (r < 0)
			return r;
		if (!f)
			return err_set(err, ERR_INVALID, "%s: a layer is missing", l->source);
		list[n] = (struct descriptor){ .digest = f->digest, .size = f->size };
		r = image_layer_media_type(l->root, f->digest, &list[n++].media_type, err);
	}
	struct descriptor c = { STR(MEDIA_OCI_CONFIG), config->digest, config->size };
	if (r < 0 || (r = image_manifest_make(&b, &c, list, n, err)) < 0 ||
	    (r = image_blob_write(l->root, &l->lease, buf_str(&b), digest, err)) < 0 || (r = new_image(l, &image, err)) < 0)
		return r;
	image->id = config->digest;
	image->manifest = arena_str(&l->arena, str_of(digest));
	VAL_EACH(tag, val_get(v, RepoTags))
		if (r == 0)
			r = add_tag(l, image, val_as_str(*tag), err);
	return r;
}

/* "name:tag" or a whole name; a tag alone names nothing. */
static str oci_name(struct val entry)
{
	struct val notes = val_get(entry, annotations);
	str name = val_as_str(val_find(notes, STR("io.containerd.image.name")));
	str ref = val_as_str(val_find(notes, STR("org.opencontainers.image.ref.name")));
	if (name.n)
		return name;
	return str_chr(ref, ':') >= 0 || str_chr(ref, '/') >= 0 ? ref : STR_NONE;
}

static int load_oci_image(struct load *l, struct val entry, struct err *err)
{
	struct descriptor d = { val_str(entry, mediaType), val_str(entry, digest), val_int(entry, size) };
	struct image_manifest m;
	struct loaded *image;
	str text;
	int r;

	for (int depth = 0;; depth++) {
		if (!digest_is_valid(d.digest) || d.size < 0)
			return err_set(err, ERR_INVALID, "%s: the index names something without a sha256 digest", l->source);
		if ((r = need(l, &d, err)) < 0 || (r = read_text(l, d.digest, IMAGE_MANIFEST_MAX, &text, err)) < 0 ||
		    (r = image_manifest_parse(&l->arena, text, d.media_type, &m, err)) < 0)
			return r;
		if (!m.index)
			break;
		if (depth == IMAGE_INDEX_DEPTH)
			return err_set(err, ERR_INVALID, "the index names indexes more than %d deep", IMAGE_INDEX_DEPTH);
		d = m.child;
	}
	r = need(l, &m.config, err);
	for (size_t i = 0; r == 0 && i < m.n_layers; i++)
		r = need(l, &m.layers[i], err);
	if (r < 0 || (r = check_config(l, m.config.digest, m.n_layers, err)) < 0 || (r = new_image(l, &image, err)) < 0)
		return r;
	image->id = m.config.digest;
	image->manifest = d.digest;
	return oci_name(entry).n ? add_tag(l, image, oci_name(entry), err) : 0;
}

static int load_index(struct load *l, str digest, struct err *err)
{
	struct val top;
	int r = read_json(l, digest, IMAGE_MANIFEST_MAX, &top, err);
	VAL_EACH(entry, val_get(top, manifests))
		if (r == 0 && image_platform_fits(*entry))
			r = load_oci_image(l, *entry, err);
	return r < 0 || l->n_found ? r : err_set(err, ERR_NOT_FOUND, "%s: no match for platform in manifest: not found", l->source);
}

static int load_folder(struct load *l, struct err *err)
{
	char digest[DIGEST_TEXT + 1];
	int64_t size;
	int r = image_ingest_file(l->root, &l->lease, arena_printf(&l->arena, "%s/index.json", l->source).p, STR_NONE, digest, &size, err);
	if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_INVALID, "%s: unrecognized image format: there is no index.json", l->source);
	return r < 0 ? r : load_index(l, arena_str(&l->arena, str_of(digest)), err);
}

static int load_archive(struct load *l, struct err *err)
{
	struct val list;
	int r = read_archive(l, err);
	if (r < 0)
		return r;
	const struct file *index = find_file(l, STR("index.json")), *docker = find_file(l, STR("manifest.json"));
	if (index && find_file(l, STR("oci-layout")))
		return load_index(l, index->digest, err);
	if (!docker)
		return err_set(err, ERR_INVALID, "%s: unrecognized image format", l->source);
	if ((r = read_json(l, docker->digest, IMAGE_MANIFEST_MAX, &list, err)) < 0)
		return r;
	VAL_EACH(v, list)
		if (r == 0)
			r = load_docker_image(l, *v, err);
	return r < 0 || l->n_found ? r : err_set(err, ERR_INVALID, "%s: there is no image in it", l->source);
}

static int load_blocking(void *arg, struct err *err)
{
	struct load *l = arg;
	struct stat st;
	int r = image_lease_open(l->root, &l->lease, err);
	if (r < 0)
		return r;
	if (stat(l->source, &st) == 0 && S_ISDIR(st.st_mode)) {
		l->folder = true;
		return load_folder(l, err);
	}
	return load_archive(l, err);
}

static int name_images(struct load *l, struct arena *a, str **ret_names, size_t *ret_n, struct err *err)
{
	str *names = ARENA_ARRAY(a, str, l->n_found * NAMES_MAX);
	size_t n = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < l->n_found; i++) {
		const struct loaded *x = &l->images_found[i];
		r = image_commit(l->images, x->id, x->manifest, &(struct image_names){ .tags = x->tags, .n_tags = x->n_tags }, err);
		for (size_t k = 0; k < x->n_tags; k++)
			names[n++] = arena_str(a, x->tags[k]);
		if (!x->n_tags)
			names[n++] = arena_str(a, x->id);
	}
	*ret_names = names;
	*ret_n = n;
	return r;
}

int image_load(struct images *m, const char *file, struct arena *a, str **ret_names, size_t *ret_n, struct err *err)
{
	struct load l = { .images = m, .root = m->root, .source = file, .lease = { .fd = -1 } };
	map_init(&l.files);
	int r = fiber_blocking(load_blocking, &l, err);
	if (r == 0)
		r = name_images(&l, a, ret_names, ret_n, err);
	image_lease_done(&l.lease);
	map_done(&l.files);
	arena_done(&l.arena);
	return r;
}
