/* The file of --admission-control-config-file: an AdmissionConfiguration, which says how plugins are configured. */
#ifndef C8S_APISERVER_ADMISSION_CONFIG_H
#define C8S_APISERVER_ADMISSION_CONFIG_H

#include "codec/val.h"

struct admission_config {
	str folder;                   /* of the file: paths in it are relative to it */
	struct val plugins;           /* AdmissionPluginConfiguration */
	struct val legacy;            /* or: a file as two plugins had it before there was an AdmissionConfiguration */
};

/* All of it lives in the arena. A path of NULL is an empty configuration. */
int admission_config_read(struct arena *a, const char *path, struct admission_config *ret, struct err *err);
/* The part of one plugin, as a free tree: what stands in the file, or in the file that it names. VAL_NONE: nothing. */
int admission_config_of(struct arena *a, const struct admission_config *c, str plugin, struct val *ret, struct err *err);

#endif
