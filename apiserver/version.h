/* Which Kubernetes this server is. */
#ifndef C8S_APISERVER_VERSION_H
#define C8S_APISERVER_VERSION_H

#include "apiserver/request.h"

struct version_info {
	const char *major, *minor, *min_minor, *git_version, *git_commit, *git_tree_state, *build_date, *go_version, *compiler,
		*platform;
};

extern const struct version_info version_info;

/* Answers /version. */
int version_handle(struct request *q, struct err *err);

#endif
