/* What the files of images.h share. */
#ifndef C8S_KUBELET_IMAGES_PRIV_H
#define C8S_KUBELET_IMAGES_PRIV_H

#include "base/fiber.h"
#include "base/map.h"
#include "client/rate.h"
#include "kubelet/images.h"

struct images_manager {
	struct images_manager_options o;
	struct rate rate;
	struct map backoffs;                   /* by pod and image */
	unsigned pulling;
	struct fiber_cond turn;                /* somebody has ended pulling */
	struct map records;                    /* images_records.c: by image ref */
	struct map pulling_names;              /* images_records.c: by name */
	struct map images;                     /* images_collect.c: by id */
	bool looked;                           /* the same: once at least */
};

/* ---- images_keyring.c ---- */

/* A user and password for a registry, or a part of it. In the arena. */
struct image_credential {
	str pattern;                           /* "registry.example/team", "*.example" */
	str user, password;
	struct val secret;                     /* the core/v1.Secret that it is from; VAL_NONE: of the node */
	struct val account;                    /* or the service account (uid, namespace, name) that a provider gave it to */
	str hash;                              /* as records have it */
};

struct image_credentials {
	struct image_credential *items;        /* the most special first */
	size_t n;
};

/*
 * (suspends) Those that fit the repository ("docker.io/library/nginx"): of secrets, the node's file, the providers. -ERR_BAD_REQUEST with
 * Go's message for a secret that cannot be read.
 */
int image_credentials_find(const struct images_manager *m, struct arena *a, struct val pod, struct val secrets, str repository,
			   struct image_credentials *ret, struct err *err);
/* Whether a pattern as in Docker's files is for this repository. */
bool image_pattern_matches(str pattern, str repository);

/* ---- images_records.c ---- */

/* (suspends) Must credentials be shown (by a pull) before a pod gets this image, which is on the node? */
int image_records_verify(struct images_manager *m, struct arena *a, str image, str ref, struct val pod, struct val secrets,
			 str repository, bool *ret_pull, struct err *err);
/* A pull begins; and it ended, with these credentials (NULL: without any), or (ref empty) failed. */
void image_records_intend(struct images_manager *m, str image);
void image_records_pulled(struct images_manager *m, str image, str ref, const struct image_credential *used);
/* Forgets what is not among these (list of runtime.v1.Image), unless it was updated since they were asked for (seconds since 1970). */
void image_records_prune(struct images_manager *m, struct val images, int64_t began_s);
void image_records_load(struct images_manager *m);
void image_records_done(struct images_manager *m);

/* ---- images_collect.c ---- */

void images_collect_done(struct images_manager *m);

#endif
