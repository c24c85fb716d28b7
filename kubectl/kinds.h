/*
 * kinds: which resource of the API is meant by "po", "deployments.apps", "Pod" or an object's apiVersion and kind. Built-in ones are known
 * without asking; for all others the server's discovery is asked, once.
 */
#ifndef C8S_KUBECTL_KINDS_H
#define C8S_KUBECTL_KINDS_H

#include "kubectl/ktl.h"

struct ktl_kind {
	str group, version;
	str resource, singular, kind;
	bool namespaced;
	unsigned verbs;              /* enum verb */
	const struct type *type;     /* NULL: not built in */
	struct val short_names, categories; /* lists */
};

/* (may suspend) What an argument names. "the server doesn't have a resource type ..." */
int ktl_kind_find(struct ktl *k, str arg, const struct ktl_kind **ret);
/* (may suspend) The same; false when there is none, and nothing is noted. */
bool ktl_kind_known(struct ktl *k, str arg, const struct ktl_kind **ret);
/* (may suspend) What an object says it is; NULL when the server does not have it. -1: it could not be asked. */
int ktl_kind_of(struct ktl *k, str api_version, str kind, const struct ktl_kind **ret);
/* Of a type that is built in. */
const struct ktl_kind *ktl_kind_of_type(struct ktl *k, const struct type *type);
/* (may suspend) The resources of a category ("all") as names; VAL_NONE: there is no such category. */
int ktl_category(struct ktl *k, str name, struct val *ret);
/* (suspends) All that the server has, in its order: an array in the arena. */
int ktl_kinds_all(struct ktl *k, const struct ktl_kind ***ret, size_t *ret_n);

/* "v1", "apps/v1" */
str ktl_kind_api_version(struct ktl *k, const struct ktl_kind *kind);
/* "/v1", "apps/v1": as Go prints a group and version. */
str ktl_kind_group_version(struct ktl *k, const struct ktl_kind *kind);
/* "pods", "deployments.apps" */
str ktl_kind_resource(struct ktl *k, const struct ktl_kind *kind);
/* "pod", "deployment.apps": before a name in what is printed. */
str ktl_kind_label(struct ktl *k, const struct ktl_kind *kind);
/* "/api/v1/namespaces/default/pods/web/log"; empty parts are left out. */
str ktl_kind_path(struct ktl *k, const struct ktl_kind *kind, str namespace, str name, str subresource);

#endif
