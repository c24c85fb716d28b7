/* Devices of a container that starts: plugins prepare them. */
#include "codec/quantity.h"
#include "codec/types.h"
#include "kubelet/devices_priv.h"
#include "machinery/resources.h"

enum { PRE_START_MS = 30 * 1000 }; /* as Kubernetes */

/* (suspends) */
static int pre_start(struct devices *d, struct arena *a, str uid, str container, struct offer *r, struct err *err)
{
	CLEANUP(device_plugin_unrefp) struct device_plugin *p = device_plugin_ref(r);
	const struct allocation *x = allocation_find(d, uid, container, r->name);
	struct val answer;
	str name = r->name;

	if (!r->pre_start)
		return 0;
	if (!x)
		return err_set(err, ERR_NOT_FOUND, "no devices found allocated in local cache for pod " STR_FMT ", container " STR_FMT
			       ", resource " STR_FMT, STR_ARG(uid), STR_ARG(container), STR_ARG(name));
	if (!p)
		return err_set(err, ERR_UNAVAILABLE, "device plugin PreStartContainer rpc failed with err: endpoint " STR_FMT " has been stopped",
			       STR_ARG(name));
	int code = plugin_ask(p->channel, &rpc_DevicePlugin_PreStartContainer, a, OBJECT(a, F(devicesIds, allocation_id_list(a, x))), PRE_START_MS,
			      &answer, err);
	return code < 0 ? err_wrap(err, code, "device plugin PreStartContainer rpc failed with err") : 0;
}

static bool is_active(struct devices *d, struct arena *a, str uid)
{
	VAL_EACH(pod, d->o.pods(d->o.arg, a))
		if (str_eq(val_str(*pod, metadata, uid), uid))
			return true;
	return false;
}

/* (suspends) Plugins prepare the devices; a pod that has none although it should, is given some now. */
static int prepare(struct devices *d, struct arena *a, const struct cri_container_input *in, struct err *err)
{
	str uid = val_str(in->pod, metadata, uid), container = val_str(in->container, name);
	bool missing = false;

	VAL_EACH_MEMBER(limit, val_get(in->container, resources, limits)) {
		str name = atom_str(limit->key);
		struct offer *r = offer_find(d, name);
		bool registered = r && r->listed;
		if ((!registered && !allocation_any(d, name)) || !quantity_value(quantity_of(limit->val)))
			continue;
		if (!registered)
			return err_set(err, ERR_NOT_FOUND, "endpoint not found in cache for a registered resource: " STR_FMT, STR_ARG(name));
		int code = pre_start(d, a, uid, container, r, err);
		if (code < 0)
			return code;
		missing = missing || (!allocation_find(d, uid, container, name) && is_active(d, a, uid));
	}
	return missing ? devices_allocate(d, in->pod, err) : 0;
}

int devices_of_container(struct devices *d, struct arena *a, struct cri_container_input *in, struct cri_mount **ret_mounts, size_t *ret_n,
			 struct err *err)
{
	int r = prepare(d, a, in, err);

	*ret_mounts = NULL;
	*ret_n = 0;
	if (r >= 0)
		devices_tell(d, a, in, ret_mounts, ret_n);
	return r < 0 ? r : 0;
}
