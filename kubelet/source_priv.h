/* What the files behind source.h have in common. */
#ifndef C8S_KUBELET_SOURCE_PRIV_H
#define C8S_KUBELET_SOURCE_PRIV_H

#include "base/map.h"
#include "kubelet/source.h"

struct work_queue;

#define CONFIG_SOURCE STR("kubernetes.io/config.source")
#define CONFIG_SEEN STR("kubernetes.io/config.seen")
#define CONFIG_HASH STR("kubernetes.io/config.hash")
#define CONFIG_MIRROR STR("kubernetes.io/config.mirror")

/* A manifest, of a file or an answer, is no larger. */
enum { MANIFEST_MAX = 10 << 20 };

enum source_kind { SOURCE_API, SOURCE_FILE, SOURCE_URL, SOURCES };

/* One that was told. */
struct source_pod {
	enum source_kind kind;
	struct frozen *pod;           /* as it was told */
};

struct mirror {
	struct frozen *pod;
};

struct sources {
	struct sources_options o;
	struct map pods;              /* struct source_pod by uid */
	bool wanted[SOURCES], seen[SOURCES];
	bool complete;
	/* The API's. */
	struct informer *informer;    /* NULL: standalone */
	struct informer_listener listener;
	struct map mirrors;           /* struct mirror by their uid */
	struct map mirrors_of;        /* the same by the uid of the static pod that they show */
	struct work_queue *queue;     /* "namespace/name" of static pods and their mirrors; NULL: standalone */
};

/* ---- source.c ---- */

/* An annotation; "" if there is none. */
str pod_annotation(struct val pod, str key);
str source_lower(struct arena *a, str s);
struct val pod_annotate(struct arena *a, struct val pod, str key, str value);
/* The pod is new or has changed; nothing happens if it is the one that was told. */
void sources_tell(struct sources *s, enum source_kind kind, struct val pod);
void sources_untell(struct sources *s, str uid);
/* These are all that the source has. Of two with one name or uid the first counts. */
void sources_replace(struct sources *s, enum source_kind kind, struct val pods);
/* The source has told of its pods. */
void sources_seen(struct sources *s, enum source_kind kind);
/* The static pod of that name; NULL: none. */
struct frozen *sources_static(const struct sources *s, str namespace, str name);

/* ---- source_static.c: from a manifest to a pod ---- */

/*
 * List of pods of a manifest (YAML or JSON): with name, uid and whatever else static pods have, defaults, and checked. place: path or
 * URL. lists: it may be a PodList, too. In the arena, which text must outlive.
 */
int static_pods_decode(struct arena *a, const struct kubelet_node *node, enum source_kind kind, str place, str text, bool lists,
		       struct val *ret, struct err *err);

/* ---- source_api.c ---- */

void source_api_begin(struct sources *s);
void source_api_end(struct sources *s);

/* ---- source_file.c, source_url.c: fibers; arg is struct sources ---- */

int source_file_run(void *arg);
int source_url_run(void *arg);

/* ---- source_mirror.c ---- */

/* The mirror pod as the API server has it has changed; pod NULL: gone. */
void mirror_changed(struct sources *s, struct frozen *old, struct frozen *pod);
void mirrors_done(struct sources *s);
bool pod_is_mirror_of_static(struct val pod);
/* (suspends, until canceled) */
int mirrors_run(void *arg);
/* Look at the mirror of this static pod (or of none) again. */
void mirror_queue(struct sources *s, struct val pod);
void mirror_queue_all(struct sources *s);

#endif
