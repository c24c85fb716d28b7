/* What the files of devices share. */
#ifndef C8S_KUBELET_DEVICES_PRIV_H
#define C8S_KUBELET_DEVICES_PRIV_H

#include "base/buf.h"
#include "base/fiber.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "kubelet/devices.h"
#include "kubelet/plugins.h"

/* A device plugin that is connected. Counted: the last who uses it ends the connection, which suspends. */
struct device_plugin {
	unsigned refs;
	struct devices *devices;
	struct offer *offer;          /* NULL: another plugin has taken its place */
	struct grpc_channel *channel;
	struct fiber *fiber;          /* follows its devices; NULL: does not run (yet, any more) */
	bool pre_start, preferred;    /* the optional calls that it wants */
	char *socket;
};

/*
 * What plugins offer under one name. Known from when a plugin connects, or from the file that the last kubelet left.
 *
 *	listed   a plugin has told its devices, or did so to the last kubelet
 *	gone     it had been listed, but its plugin has been away for too long: the node has 0 of it
 */
struct offer {
	struct list link;             /* sorted by name */
	str name;
	struct device_plugin *plugin; /* NULL: it has ended, or has not come back yet */
	int64_t stopped_ns;           /* since when */
	bool listed, gone;
	bool pre_start;               /* what the last plugin wanted */
	bool lost;                    /* the plugin that told of the devices has ended: none counts as healthy */
	struct frozen *told;          /* list of deviceplugin Device, as last told; NULL: none yet */
	struct map ids;               /* by id: const struct val * in told; of several with one id the last */
	size_t n_healthy;             /* of ids, as told */
};

/* Devices of a container. */
struct allocation {
	struct list link;             /* sorted by pod, container, resource */
	uint64_t serial;              /* later ones have higher ones */
	struct frozen *self;          /* what follows points there */
	str pod, container, resource;
	struct val devices;           /* object: lists of ids by NUMA node ("-1": none), as the file has them */
	struct val response;          /* deviceplugin ContainerAllocateResponse; VAL_NONE: the plugin has not answered yet */
};

/* A pod that is being given devices: not to be taken for one that has ended. On the stack of the fiber. */
struct allocating {
	struct list link;
	str pod;
};

struct devices {
	struct devices_options o;
	struct list offers;           /* struct offer */
	size_t n_offers;
	struct list allocations;      /* struct allocation */
	uint64_t serial;              /* of the last allocation */
	struct list allocating;       /* struct allocating */
	struct csi_drivers csi;
	char *folder, *socket, *checkpoint; /* device-plugins, and two files in it */
	char *registry, *pod_resources;     /* plugins_registry, and the socket pod-resources/kubelet.sock */
	struct fiber_group plugins;   /* of those that are connected, while devices_run runs */
	bool ending;                  /* the kubelet is: that plugins are left means nothing to the node */
	struct fiber_cond stopped;    /* a plugin has ended: its time begins */
	bool saving;
	struct fiber_cond saved;
	struct {
		double tokens;
		int64_t at_ns;
	} rate;                       /* of pod-resources */
};

/* ---- what there is (devices_state.c) ---- */

void devices_state_init(struct devices *d);
void devices_state_done(struct devices *d);

struct offer *offer_find(const struct devices *d, str name);
/* Adds one; NULL when there are too many. */
struct offer *offer_add(struct devices *d, str name);
void offer_free(struct devices *d, struct offer *r);
/*
 * What its plugin tells now, an answer of ListAndWatch: 1, or 0 when it is what it has told before; r is NULL for a plugin that does not
 * count any more. -ERR_BAD_REQUEST or -ERR_TOO_LARGE for what is no list of devices.
 */
int offer_tell(struct devices *d, struct offer *r, str message, struct err *err);
static inline bool offer_is_healthy(const struct offer *r, struct val device)
{
	return !r->lost && str_eq(val_str(device, health), STR("Healthy"));
}
/* Is it a device that counts: of several with the same id, the last. */
static inline bool offer_has(const struct offer *r, const struct val *device, str id) { return map_get(&r->ids, id) == device; }

/* ---- plugins (devices.c) ---- */

/* A reference, or NULL when its plugin has ended; (suspends) the last one ends the connection. */
struct device_plugin *device_plugin_ref(struct offer *r);
void device_plugin_unref(struct device_plugin *p);
void device_plugin_unrefp(struct device_plugin **p);

/* Those of struct plugin_kind for device plugins; the first is in devices_state.c. */
int device_plugin_validate(struct devices *d, str name, struct val versions, struct err *err);
int device_plugin_connect(struct devices *d, str name, str socket, struct err *err);
void device_plugin_disconnect(struct devices *d, str name, str socket);

/* ---- allocations (devices_state.c) ---- */

/* Copies all that it is given. */
struct allocation *allocation_add(struct devices *d, str pod, str container, str resource, struct val devices, struct val response);
void allocation_remove(struct allocation *x);
struct allocation *allocation_find(const struct devices *d, str pod, str container, str resource);
/* Adds its ids to a set: the allocation by id. */
void allocation_ids(struct allocation *x, struct map *set);
/* All ids, each once; in the arena. */
struct val allocation_id_list(struct arena *a, const struct allocation *x);
/* True when some device of the resource is somebody's. */
bool allocation_any(const struct devices *d, str resource);
/* Adds the ids of all devices of the resource that are somebody's: struct allocation by id, borrowed from there. */
void allocation_owners(const struct devices *d, str resource, struct map *ret);
/* Devices of pods that have ended come free. */
void allocations_collect(struct devices *d);

/* ---- what containers see of them (devices_told.c) ---- */

/* As devices_of_container, once plugins have prepared the devices. */
void devices_tell(struct devices *d, struct arena *a, struct cri_container_input *in, struct cri_mount **ret_mounts, size_t *ret_n);

/* ---- the file (devices_checkpoint.c) ---- */

/* Blocks. What cannot be read is left out, with a line in the log. */
void devices_load(struct devices *d);
/* (suspends) Writes what is known now: atomically. */
int devices_save(struct devices *d, struct err *err);

/* ---- pod-resources (pod_resources.c) ---- */

struct grpc_server *pod_resources_server(struct devices *d);
/* The answer to a call of one of the methods, of which there are POD_RESOURCES_METHODS: bytes for bytes. */
enum { POD_RESOURCES_METHODS = 4 };
int pod_resources_answer(struct devices *d, struct arena *a, size_t method, str request, struct buf *ret, struct err *err);

#endif
