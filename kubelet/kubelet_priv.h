/* The parts of a running kubelet, for those that need several of them. */
#ifndef C8S_KUBELET_KUBELET_PRIV_H
#define C8S_KUBELET_KUBELET_PRIV_H

#include "base/fiber.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/recorder.h"
#include "kubelet/cgroups.h"
#include "kubelet/collect.h"
#include "kubelet/config.h"
#include "kubelet/credential_provider.h"
#include "kubelet/devices.h"
#include "kubelet/eviction.h"
#include "kubelet/images.h"
#include "kubelet/objects.h"
#include "kubelet/pods.h"
#include "kubelet/probe.h"
#include "kubelet/register.h"
#include "kubelet/runtime_pods.h"
#include "kubelet/server.h"
#include "kubelet/source.h"
#include "kubelet/stats.h"
#include "kubelet/status.h"
#include "kubelet/user_namespaces.h"
#include "kubelet/volume.h"

struct kubelet {
	const struct kubelet_options *options;
	struct val config;            /* KubeletConfiguration */
	struct kubelet_node node;
	struct kubelet_hooks hooks;
	struct client *client;        /* NULL: standalone */
	struct informers *informers;
	struct informer *services, *runtime_classes;
	struct informer *bundles;     /* ClusterTrustBundles; NULL: no pod has asked for any, or there are none to be had */
	struct informer_listener bundles_listener;
	struct fiber_cond bundles_synced;
	bool bundles_sought;
	struct recorder *recorder;    /* NULL: standalone */
	struct cri *cri;
	struct credential_providers *credential_providers; /* NULL: none are configured */
	struct images_manager *images;
	struct probes *probes;
	struct objects *objects;
	struct volumes *volumes;
	struct cgroups *cgroups;      /* NULL: cgroupsPerQOS is off */
	struct user_namespaces *user_namespaces;
	struct devices *devices;
	struct stats *stats;
	struct eviction *eviction;
	struct node_keeper *node_keeper;
	struct runtime_pods *runtime_pods;
	struct sources *sources;
	struct statuses *statuses;
	struct pods *pods;
	struct fiber *first_look;     /* at pods, once all of them are known; NULL: not yet */
	struct certificates *certificates; /* NULL: no server */
	struct kubelet_auth *auth;
	struct cri_lookups lookups;
	struct arena arena;           /* of texts that live as long as the kubelet */
	str shutdown;                 /* "" or why the node goes down */
	str csi_problem;              /* "" or why there is no CSINode yet */
	str runtime_name;             /* in containerID */
	int64_t backoff_max_ns;       /* longest wait before a container that crashes is started again */
	bool recursive_readonly;      /* the runtime can mount so */
	struct frozen *runtime_status; /* runtime.v1.StatusResponse, as of the last question; NULL: it does not answer */
	str network_problem;          /* why pods of their own network have to wait; "": they need not. network_text or a constant. */
	char *network_text;
};

/* kubelet_node.c: fills k->node. */
int kubelet_node_make(struct kubelet *k, struct err *err);
/* kubelet_lookups.c: makes k->objects, k->lookups and k->volumes. */
void kubelet_lookups_make(struct kubelet *k);
/* (suspends) What volumes of this pod show of other objects and of the pod itself is made anew. Failures are events. */
void kubelet_refresh_volumes(struct kubelet *k, str uid);
/* kubelet_serve.c: (suspends, until canceled) the HTTP API, the part of it without authentication, and the port for health checks. */
int kubelet_serve(struct kubelet *k, struct err *err);
int kubelet_serve_read_only(struct kubelet *k, struct err *err);
int kubelet_serve_health(struct kubelet *k, struct err *err);

/* An event about a pod (or one of its containers: fieldPath spec.containers{name}), or (VAL_NONE) about the node. Never suspends. */
void kubelet_event(struct kubelet *k, struct val pod, str container, bool warning, const char *reason, str message);
/* By the RuntimeClass of a pod, which must be there; "" without one. Valid until the caller suspends. */
int kubelet_runtime_handler(struct kubelet *k, struct val pod, str *ret, struct err *err);

#endif
