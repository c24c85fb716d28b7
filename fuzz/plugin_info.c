/*
 * How plugins introduce themselves: an answer of GetInfo, as a device plugin and as a CSI driver. A driver that is let in is listed under
 * its name, once, and gone when it leaves.
 */
#include "codec/proto.h"
#include "codec/types.h"
#include "fuzz/fuzz.h"
#include "kubelet/devices_priv.h"

static size_t count(const struct csi_drivers *c, struct arena *a, str name)
{
	struct val list = csi_drivers_list(c, a);
	size_t n = 0;
	str before = STR_NONE;

	VAL_EACH(driver, list) {
		check(driver == list.items || str_cmp(before, val_str(*driver, name)) < 0, "drivers are listed by name");
		before = val_str(*driver, name);
		n += str_eq(before, name);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	struct csi_drivers drivers;
	struct err err = ERR_INIT;
	struct val info;

	csi_drivers_init(&drivers);
	check(csi_drivers_add(&drivers, STR("middle.example.org"), STR("/x"), LIST(&a, VAL_LIT("1.0.0")), &err) == 0, "a driver is added");
	if (proto_decode(&a, str_span((const char *)data, n), rpc_Registration_GetInfo.response, &info, NULL) == 0) {
		str name = val_str(info, name), endpoint = val_str(info, endpoint);
		struct val versions = val_get(info, supportedVersions);
		if (device_plugin_validate(NULL, name, versions, &err) == 0)
			check(str_chr(name, '/') > 0, "what devices are called has a domain");
		if (csi_drivers_validate(&drivers, name, endpoint, versions, &err) == 0 &&
		    csi_drivers_add(&drivers, name, endpoint, versions, &err) == 0) {
			check(count(&drivers, &a, name) == 1, "a driver is listed");
			csi_drivers_remove(&drivers, name, endpoint);
			check(count(&drivers, &a, name) == 0, "a driver that has left is not");
		}
	}
	csi_drivers_done(&drivers);
	arena_done(&a);
	return 0;
}
