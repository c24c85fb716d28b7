/*
 * runtime/: a CRI v1 service: pods and containers on this machine, and their images. `c8s runtime` serves it on a unix socket.
 *
 *	runtime.c        starting, stopping, what is found from before
 *	cri.h            the calls: cri_runtime_*.c, cri_image.c; cri_server.c serves them by net/grpc_server.h
 *	sandbox.h        one pod: its namespaces, network, files; container.h: one container; config_json.c: what OCI is told
 *	userns.h         user namespaces of pods
 *	store.h          what survives a restart: one JSON file each, written atomically
 *	image.h          references, registries, the content store, archives
 *	snapshot.h       root file systems from layers: overlayfs, or copies
 *	monitor.h        the process per pod (c8s-pod monitor): what it is told, and how exits come back
 *	stream.h         exec, attach and port-forward over HTTP
 *	logs.h           CRI log files; logs_rotate.h: those of before        stats.c     figures        events.c    what happened, for those who follow
 */
#ifndef C8S_RUNTIME_RUNTIME_H
#define C8S_RUNTIME_RUNTIME_H

#include "base/err.h"

struct runtime;

struct runtime_handler {
	const char *name;             /* of a RuntimeClass; "" is the default one */
	const char *program;          /* an OCI runtime; NULL: our own, inside the monitor */
};

/* Texts live as long as the runtime. */
struct runtime_options {
	const char *version;          /* as Version tells it */
	const char *root;             /* --root: images, snapshots, containers; /var/lib/c8s/runtime */
	const char *state;            /* --state: sockets and what need not survive a reboot; /run/c8s/runtime */
	const char *listen;           /* --listen: unix:///run/c8s/runtime/cri.sock */
	const char *pod_program;      /* c8s-pod, beside c8s */
	const char *cni_conf_dir, *const *cni_bin_dirs;
	const char *const *cdi_dirs;  /* where CDI files are, those of later ones win; NULL: none */
	const char *cgroup_parent;    /* for sandboxes that name none */
	const char *sandbox_image;    /* NULL: our own pause, without an image */
	const char *registry_config;  /* a folder with hosts.toml per registry, as containerd has it */
	const struct runtime_handler *handlers;
	size_t n_handlers;
	const char *stream_address;   /* where exec, attach and port-forward are served: 127.0.0.1 */
	int stream_port;              /* 0: any */
	int64_t log_max_size;         /* of a container's log, after which another file is begun; 0: that is left to the kubelet */
	int64_t log_max_files;        /* of a container, with the one that is written */
};

/* (suspends, until canceled) Takes up what an earlier one left, serves. on_ready (may be NULL) is called when the socket is there. */
int runtime_run(const struct runtime_options *o, void (*on_ready)(struct runtime *r, void *arg), void *arg, struct err *err);

#endif
