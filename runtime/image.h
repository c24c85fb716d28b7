/*
 * image: images by their names, from registries and archives into a content-addressed store.
 *
 * On disk, under the store's folder:
 *	blobs/sha256/<hex>       manifests, configurations, layers as they came
 *	ingest/<hex>...          downloads that are not complete, kept for resuming
 *	images.json              which names there are, of what; replaced atomically, and the only thing that makes an image visible
 *	leases/<random>          what somebody is fetching and counts on, though no image reaches it yet
 *	trash/<hex>              blobs on their way out
 *	lock                     locked (flock) by whoever changes images.json, looks at leases, or collects; for moments only
 * A blob is complete and verified before it gets its name. Garbage is what no image and no lease reaches.
 *
 * Several processes share a store: a running runtime, and `c8s image` beside it. Readers take no lock: images.json is replaced as a
 * whole, and read again when it is another file than before. A download holds the lock (flock) of its file below ingest/, so that
 * a blob that two want is fetched once; a lease is locked by its owner, so one that can be locked is of somebody who died.
 * Whatever a killed process leaves is resumed or removed by the next one; nothing of it is visible.
 */
#ifndef C8S_RUNTIME_IMAGE_H
#define C8S_RUNTIME_IMAGE_H

#include "base/arena.h"
#include "base/err.h"
#include "codec/val.h"

struct images;

/* ---- names ---- */

/* "nginx" is docker.io/library/nginx:latest. All in the arena. */
struct image_ref {
	str domain, path, tag;        /* "docker.io", "library/nginx", "latest"; tag may be empty when there is a digest */
	str digest;                   /* "sha256:..."; empty: none */
	str text;                     /* canonical */
};

/* -ERR_INVALID with the words that users know: couldn't parse image name "...": invalid reference format */
int image_ref_parse(struct arena *a, str text, struct image_ref *ret, struct err *err);

/* ---- the store ---- */

struct images_options {
	const char *root;             /* <runtime root>/images */
	const char *registry_config;  /* folder of hosts.toml; NULL: none */
	const char *const *credential_files; /* docker's config.json; NULL-ended; NULL: none */
	bool plain_http;              /* registries that hosts.toml says nothing of are spoken to without TLS */
};

/* Opens it and removes what a crash left. */
int images_open(const struct images_options *o, struct images **ret, struct err *err);
void images_free(struct images *m); /* NULL is fine */

struct image {
	str id;                       /* digest of its configuration: "sha256:..." */
	str manifest_digest;
	const str *tags, *digests;    /* "docker.io/library/nginx:latest", "docker.io/library/nginx@sha256:..." */
	size_t n_tags, n_digests;
	uint64_t size;                /* of all its blobs */
	struct val config;            /* the OCI image configuration, free tree */
	const str *diff_ids, *layers; /* of the unpacked layers, and the blobs; the same number, lowest first */
	size_t n_layers;
	bool pinned;
};

/* By id, id prefix, name or digest. All in the arena. -ERR_NOT_FOUND. */
int image_find(struct images *m, str name, struct arena *a, struct image *ret, struct err *err);
int image_list(struct images *m, struct arena *a, struct image **ret, size_t *ret_n, struct err *err);
/*
 * Removes the image: all its names; the content goes with the next collection. One of several tags is only that tag's removal.
 * -ERR_NOT_FOUND.
 */
int image_remove(struct images *m, str name, struct err *err);
int image_pin(struct images *m, str name, bool pinned, struct err *err);
/* (suspends) Removes blobs that no image reaches. */
int images_collect(struct images *m, uint64_t *ret_freed, struct err *err);
/* The path of a blob; in the arena. */
const char *image_blob_path(struct images *m, struct arena *a, str digest);

/* ---- moving them ---- */

struct image_auth {
	str user, password, identity_token, registry_token;
};

/* What is going on, for progress bars; called on the loop's thread. */
struct image_progress {
	void (*layer)(void *arg, str digest, uint64_t done, uint64_t total, const char *state);
	void *arg;
};

/* (suspends) Fetches what is not there yet; parallel, resumed, verified. The id in the arena. */
int image_pull(struct images *m, const struct image_ref *ref, const struct image_auth *auth, const struct image_progress *p,
	       struct arena *a, str *ret_id, struct err *err);
int image_push(struct images *m, str name, const struct image_ref *to, const struct image_auth *auth,
	       const struct image_progress *p, struct err *err);
/* (suspends) Docker and OCI archives (tar, also compressed) and OCI layout folders. */
int image_load(struct images *m, const char *file, struct arena *a, str **ret_names, size_t *ret_n, struct err *err);
int image_save(struct images *m, const str *names, size_t n, const char *file, bool oci, struct err *err);
/* (suspends) A root file system (tar) becomes an image of one layer. config: VAL_NONE or an OCI image configuration to start from. */
int image_import(struct images *m, const char *tar_file, const struct image_ref *ref, struct val config, struct arena *a,
		 str *ret_id, struct err *err);

#endif
