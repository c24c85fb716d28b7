/*
 * Configuration files of the group apiserver.config.k8s.io: YAML or JSON, read strictly. The versions v1, v1beta1 and v1alpha1 of
 * a kind have the same shape, so that one type reads them all.
 */
#ifndef C8S_APISERVER_CONFIG_FILE_H
#define C8S_APISERVER_CONFIG_FILE_H

#include "codec/schema.h"

/* -ERR_BAD_REQUEST for what is no such object, or has fields that are not known or occur twice; all of it in the arena. */
int config_decode(struct arena *a, str text, const struct type *type, struct val *ret, struct err *err);
/* The same with a file. It blocks. */
int config_file_read(struct arena *a, const char *path, const struct type *type, struct val *ret, struct err *err);

/* For checks: whether an element of a list has a text in this member that an earlier one has, too. */
bool config_is_repeated(struct val list, size_t i, atom member);

#endif
