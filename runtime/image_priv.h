/*
 * What the files of images share: the index (which images there are), blobs and their leases, manifests.
 *
 * The index is read and written in whole, under the store's lock (image.h). Everything here but image_commit works on the folder
 * alone and blocks, so it may also run in the thread pool; nothing suspends while it holds the lock.
 */
#ifndef C8S_RUNTIME_IMAGE_PRIV_H
#define C8S_RUNTIME_IMAGE_PRIV_H

#include "base/buf.h"
#include "base/encoding.h"
#include "base/map.h"
#include "runtime/image.h"

enum {
	IMAGE_MANIFEST_MAX = 4 << 20,    /* bytes of a manifest or an index, as containerd */
	IMAGE_CONFIG_MAX = 8 << 20,
	IMAGE_LAYERS_MAX = 512,
	IMAGE_INDEX_DEPTH = 3,           /* indexes that name indexes */
	IMAGE_BLOCK = 256 << 10,         /* bytes that are hashed and written at a time */
	DIGEST_TEXT = 7 + SHA256_HEX,    /* "sha256:<hex>" */
};

/* ---- the index: images.json ---- */

struct image_record {
	str id, manifest;
	str *tags, *digests;             /* canonical names */
	size_t n_tags, n_digests;
	bool pinned;
};

struct image_index {
	struct arena arena;
	struct image_record *records;
	size_t n;
	/* Which file it was read from. */
	uint64_t inode, mtime_ns, size;
};

struct images {
	char *root;
	char *registry_config;           /* NULL: none */
	char **credential_files;         /* NULL-ended */
	bool plain_http;
	struct image_index index;        /* what was last read; only for the loop's thread */
};

/* An index that is all zero is an empty one. */
void image_index_done(struct image_index *x);
/* Reads the file of the store; no file: no images. -ERR_INVALID: it is damaged. */
int image_index_load(const char *root, struct image_index *ret, struct err *err);
/* Replaces the file. The lock must be held. */
int image_index_save(const char *root, const struct image_index *x, struct err *err);
/* Whether the file is still the one that was read. */
bool image_index_is_fresh(const char *root, const struct image_index *x);

/* The store's lock; blocks until it is there. A descriptor to close. */
int images_lock(const char *root, struct err *err);

/* What a new image is called; names of other images that are the same move to it. */
struct image_names {
	const str *tags, *digests;
	size_t n_tags, n_digests;
};

/* Makes an image visible, after all its blobs are there. Syncs the folder of the blobs first. */
int image_commit(struct images *m, str id, str manifest, const struct image_names *names, struct err *err);

/* ---- leases: what is being fetched and is not reached by an image yet ---- */

struct image_lease {
	int fd;                          /* locked as long as it is valid */
	char *path;
};

int image_lease_open(const char *root, struct image_lease *ret, struct err *err);
void image_lease_done(struct image_lease *l);
/* From here on a collection keeps these. */
int image_lease_add(const char *root, struct image_lease *l, const str *digests, size_t n, struct err *err);

/* ---- blobs ---- */

/* "sha256:" and 64 lower-case digits. */
bool digest_is_valid(str digest);
const char *image_blob_path_in(const char *root, struct arena *a, str digest);
/* Whether it is there with this size (negative: any); takes it into the lease first. A blob of a wrong size is removed. */
bool image_blob_have(const char *root, struct image_lease *l, str digest, int64_t size);
/* All of a small blob; appended. */
int image_blob_read(const char *root, str digest, struct buf *b, struct err *err);

/* A blob that is being written. Its digest may be known (then it can be resumed) or come out at the end. */
struct image_ingest {
	const char *root;
	int fd;
	char *path;                      /* NULL: none */
	uint64_t size;                   /* bytes so far */
	struct sha256 hash;
};

/*
 * Begins or resumes: with a digest, what an earlier one left is read and hashed. 1: it is begun; 0: somebody else (also of another
 * process) is at work on the same digest: look for the blob again later.
 */
int image_ingest_open(const char *root, str digest, struct image_ingest *ret, struct err *err);
int image_ingest_add(struct image_ingest *g, str data, struct err *err);
/* From the beginning again. */
int image_ingest_restart(struct image_ingest *g, struct err *err);
/*
 * The end: syncs, compares with what was expected (STR_NONE: nothing), and gives it its name. The digest, in ret_digest (with '\0').
 * A wrong one is removed: "unexpected commit digest sha256:..., expected sha256:...: failed precondition".
 */
int image_ingest_commit(struct image_ingest *g, struct image_lease *l, str expected, char ret_digest[DIGEST_TEXT + 1], struct err *err);
/* Leaves what is there for resuming when keep, else removes it. */
void image_ingest_done(struct image_ingest *g, bool keep);

/* A whole small blob at once. */
int image_blob_write(const char *root, struct image_lease *l, str data, char ret_digest[DIGEST_TEXT + 1], struct err *err);

/* Removes what a crash left and what is too old to be resumed. The lock must be held. */
void image_clean(const char *root);
/* Removes what no image and no lease reaches; takes the lock. */
int image_collect_now(const char *root, uint64_t *ret_freed, struct err *err);

/* ---- manifests ---- */

#define MEDIA_DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define MEDIA_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define MEDIA_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define MEDIA_OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define MEDIA_OCI_LAYER "application/vnd.oci.image.layer.v1.tar"

struct descriptor {
	str media_type, digest;
	int64_t size;
};

struct image_manifest {
	bool index;                      /* it names manifests, one of which was chosen: `child` */
	str media_type;
	struct descriptor child;
	struct descriptor config, *layers;
	size_t n_layers;
};

/*
 * Reads a manifest or an index; of an index, the one for this machine is chosen. -ERR_INVALID, -ERR_NOT_FOUND: "no match for platform in
 * manifest: not found". media_type: what the sender said of it; the text's own word comes first.
 */
int image_manifest_parse(struct arena *a, str text, str media_type, struct image_manifest *ret, struct err *err);
/* The digests of the unpacked layers; -ERR_INVALID unless there are as many as layers. */
int image_diff_ids(struct arena *a, struct val config, size_t n_layers, const str **ret, struct err *err);
/* A manifest for these. */
int image_manifest_make(struct buf *b, const struct descriptor *config, const struct descriptor *layers, size_t n, struct err *err);
/* Whether an entry of an index is for this machine, or does not say. */
bool image_platform_fits(struct val entry);
/* What Go calls this machine: "amd64". */
str image_architecture(void);


/* ---- archives ---- */

struct archive;

/* A reader of tar, plain or compressed by gzip, bzip2, xz or zstd; raw: of what is inside the compression, whatever it is. */
struct archive *image_archive_reader(bool raw);
void image_archive_readerp(struct archive **r);
int image_archive_error(struct archive *r, const char *what, struct err *err);
/* By its first bytes: MEDIA_OCI_LAYER, "+gzip" or "+zstd". */
int image_layer_media_type(const char *root, str digest, str *ret, struct err *err);
/* A file becomes a blob as it is; "-" is standard input. */
int image_ingest_file(const char *root, struct image_lease *l, const char *path, str expected, char ret_digest[DIGEST_TEXT + 1],
		      int64_t *ret_size, struct err *err);

#endif
