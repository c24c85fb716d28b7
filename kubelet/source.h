/*
 * source: where pods come from: the API server (those with this node's name) and files of a folder or a URL (static pods), for which
 * mirror pods show up in the API.
 *
 *	source_api.c     the informer             source_file.c    staticPodPath: a file or a folder, watched with inotify, and every 20 s
 *	source_url.c     staticPodURL             source_mirror.c  mirror pods are made, compared, deleted
 *	source_static.c  from a manifest to a pod
 */
#ifndef C8S_KUBELET_SOURCE_H
#define C8S_KUBELET_SOURCE_H

#include "client/informer.h"
#include "kubelet/kubelet.h"

struct sources;

struct sources_options {
	const struct kubelet_node *node;
	struct client *client;        /* NULL: standalone */
	struct informers *informers;  /* NULL: standalone */
	const char *path;             /* staticPodPath; NULL: none */
	const char *url;              /* staticPodURL; NULL: none */
	struct val url_header;        /* staticPodURLHeader: map of lists */
	int64_t file_check_ms, url_check_ms;
	/* Must not suspend. Static pods come with uid, nodeName, defaults and the annotation kubernetes.io/config.hash, so that they look
	 * like any other; all have kubernetes.io/config.{seen,source}. Mirror pods are not told. */
	void (*update)(void *arg, struct frozen *pod);
	void (*remove)(void *arg, str uid);
	void (*complete)(void *arg);  /* all sources have told theirs once */
	/* May be NULL, must not suspend: the mirror pod of a static pod is new, has changed, or is gone (NULL): for statuses_check. */
	void (*mirror)(void *arg, str static_uid, struct frozen *mirror);
	/* May be NULL, must not suspend: whether nothing of a static pod is left. Before, its mirror is neither removed nor replaced. */
	bool (*gone)(void *arg, str static_uid);
	void *arg;
};

struct sources *sources_new(const struct sources_options *o) NONNULL_RESULT;
/* (suspends) NULL is fine. Nobody may run them; before the informers are freed. */
void sources_free(struct sources *s);
/* (suspends, until canceled) Tells of pods, and keeps mirror pods in order by itself: sync and clean are for those who cannot wait. */
int sources_run(struct sources *s, struct err *err);
/*
 * (suspends) The mirror pod of a static pod is as it should be: made, made anew, or removed when the static one is gone. -ERR_CONFLICT:
 * not now, something of the static pod that it shows is left, or the node is not registered.
 */
int sources_mirror_sync(struct sources *s, struct val static_pod, struct err *err);
/* Uid of the mirror pod that a static pod has in the API; "": none. In the arena. And back. */
str sources_mirror_uid(struct sources *s, struct arena *a, str static_uid);
str sources_static_uid(struct sources *s, struct arena *a, str mirror_uid);
/* (suspends) Deletes mirror pods whose static pod is gone. */
int sources_mirror_clean(struct sources *s, struct err *err);

#endif
