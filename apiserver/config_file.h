/*
 * Configuration files of the group apiserver.config.k8s.io: YAML or JSON, read strictly. The versions v1, v1beta1 and v1alpha1 of
 * a kind have the same shape, so that one type reads them all.
 */
#ifndef C8S_APISERVER_CONFIG_FILE_H
#define C8S_APISERVER_CONFIG_FILE_H

#include "base/buf.h"
#include "codec/schema.h"

/* -ERR_BAD_REQUEST for what is no such object, or has fields that are not known or occur twice; all of it in the arena. */
int config_decode(struct arena *a, str text, const struct type *type, struct val *ret, struct err *err);

/* For checks: whether an element of a list has a text in this member that an earlier one has, too. */
bool config_is_repeated(struct val list, size_t i, atom member);

/* ---- files that may change while the server runs ---- */

enum { CONFIG_FILE_MAX = 4 << 20, CONFIG_LOOK_AGAIN_MS = 5000 }; /* how often they are looked at */

struct config_file {
	const char *path;             /* borrowed */
	struct buf text;              /* as it was seen last */
	bool seen;
};

void config_file_init(struct config_file *f, const char *path);
void config_file_done(struct config_file *f);
/* 1: the text is another one than before; 0: it is the same; or the error: then the text stays. It blocks. */
int config_file_look(struct config_file *f, struct err *err);

#endif
