/*
 * plugins: programs that offer something to the kubelet by a socket in a folder of its own (plugins_registry). A socket that appears
 * there is asked who it is, its kind decides, and it is told the outcome; when it goes, so does what it offered.
 *
 *	plugins.c      finding them, GetInfo, NotifyRegistrationStatus
 *	plugins_csi.c  CSI drivers: their names
 */
#ifndef C8S_KUBELET_PLUGINS_H
#define C8S_KUBELET_PLUGINS_H

#include "codec/schema.h"
#include "codec/val.h"
#include "net/grpc.h"

/* Who takes plugins of one type. The errors are what the plugin is told. arg is that of plugins_watch. */
struct plugin_kind {
	str type;                     /* as GetInfo names it: "DevicePlugin" */
	int (*validate)(void *arg, str name, str endpoint, struct val versions, struct err *err);
	/* (suspends) */
	int (*add)(void *arg, str name, str endpoint, struct val versions, struct err *err);
	void (*remove)(void *arg, str name, str endpoint);
};

/*
 * (suspends, until canceled) Makes the folder and follows it and the folders below: those whose names begin with a '.' do not count, and
 * more sockets, folders or levels than a node ever has are left out with a line in the log. A socket that cannot be registered is tried
 * again after 0.5 s, doubling up to 2 minutes, for as long as it is there.
 */
int plugins_watch(const char *folder, const struct plugin_kind *kinds, size_t n, void *arg, struct err *err);

/* ---- calls to plugins ---- */

/* A channel to the socket at an absolute path. Connects at the first call. */
int plugin_open(str path, struct grpc_channel **ret, struct err *err);
/*
 * (suspends) One call within timeout_ms. The answer is in the arena. The error of a call is as users see it: "rpc error: code = Unknown
 * desc = ..." (but for -ERR_CANCELED, which is the caller's own end).
 */
int plugin_ask(struct grpc_channel *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms, struct val *ret,
	       struct err *err);
/* (suspends) The same for the first call of a channel: waits up to 10 s for somebody to listen on the socket. */
int plugin_ask_first(struct grpc_channel *c, const struct rpc *rpc, struct arena *a, struct val request, int64_t timeout_ms,
		     struct val *ret, struct err *err);

/* ---- CSI drivers ---- */

struct csi_drivers {
	struct list all;
};

void csi_drivers_init(struct csi_drivers *c);
void csi_drivers_done(struct csi_drivers *c);
/* As the functions of struct plugin_kind. */
int csi_drivers_validate(struct csi_drivers *c, str name, str endpoint, struct val versions, struct err *err);
int csi_drivers_add(struct csi_drivers *c, str name, str endpoint, struct val versions, struct err *err);
void csi_drivers_remove(struct csi_drivers *c, str name, str endpoint);
/* List of { name, endpoint }, sorted by name, in the arena. */
struct val csi_drivers_list(const struct csi_drivers *c, struct arena *a);

#endif
