/* Who we are to a registry: challenges that it sends, and the credentials in Docker's configuration files. */
#ifndef C8S_RUNTIME_IMAGE_AUTH_H
#define C8S_RUNTIME_IMAGE_AUTH_H

#include "net/http.h"
#include "runtime/image.h"

enum auth_scheme { AUTH_NONE, AUTH_BASIC, AUTH_BEARER };

/* WWW-Authenticate. Texts in the arena. */
struct auth_challenge {
	enum auth_scheme scheme;
	str realm, service, scope, error;
};

/* Of all challenges (a header may have several, and there may be several headers) the best one: Bearer before Basic. */
void auth_challenge_parse(struct arena *a, const struct http_header *headers, size_t n, struct auth_challenge *ret);

/*
 * From the "auths" of the files (NULL-ended), the first that has one for this registry; the longest path that fits the repository.
 * *ret is all zero when there is none. -ERR_INVALID: a file is damaged, or a credential helper, which is not called from here, would
 * be needed. Files that are not there are skipped. Blocks.
 */
int auth_find(struct arena *a, char *const *files, str domain, str path, struct image_auth *ret, struct err *err);

#endif
