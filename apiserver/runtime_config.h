/* --runtime-config: which API versions and resources are served. */
#ifndef C8S_APISERVER_RUNTIME_CONFIG_H
#define C8S_APISERVER_RUNTIME_CONFIG_H

#include "codec/schema.h"

struct runtime_config;

/*
 * Reads the flag's values (NULL-ended; each "key=value,..."): api/all, api/ga, api/beta, api/alpha, group/version or
 * group/version/resource, v1 for the core group. -ERR_BAD_REQUEST with Kubernetes' texts. The texts are copied.
 */
int runtime_config_parse(const char *const *values, struct runtime_config **ret, struct err *err);
void runtime_config_free(struct runtime_config *c); /* takes NULL */

/* Whether the flag lets it be served; arg is the struct runtime_config. */
bool runtime_config_served(const struct resource *r, void *arg);
/* The value given for a key: 1 true, 0 false, -1 not given. */
int runtime_config_get(const struct runtime_config *c, str key);

#endif
