#include "kubelet/devices_testing.h"

static str drivers(struct kubelet_test *k) { return text_of(&k->arena, devices_csi_drivers(k->devices, &k->arena)); }

static const char *notified(const struct plugin_test *p) { return strstr(p->calls, "NotifyRegistrationStatus"); }

FIBER_TEST(plugins_are_told_the_outcome)
{
	static const struct {
		const char *info, *outcome;
	} t[] = {
		{ "{'type':'CSIPlugin','name':'a.csi','endpoint':'/csi.sock','supportedVersions':['1.0.0']}", "{'pluginRegistered':true}" },
		{ "{'type':'CSIPlugin','name':'b.csi','supportedVersions':['0.3','2.0']}",
		  "{'error':'RegisterPlugin error -- plugin validation failed with err: validation failed for CSI Driver b.csi at endpoint "
		  "%s: kubernetes.io/csi: ValidatePlugin for CSI driver \\'b.csi\\' failed. None of the versions specified "
		  "[\\'0.3\\' \\'2.0\\'] are supported. err=could not find a highest supported version from versions ([\\'0.3\\' \\'2.0\\']) "
		  "reported by this driver'}" },
		{ "{'type':'DRAPlugin','name':'dra.example.com','supportedVersions':['v1.DRAPlugin']}",
		  "{'error':'RegisterPlugin error -- no handler registered for plugin type: DRAPlugin at socket %s'}" },
		{ "{'type':'DevicePlugin','name':'v.com/x','supportedVersions':['v1']}",
		  "{'error':'RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is not among plugin "
		  "supported versions [v1]'}" },
		{ "{'type':'DevicePlugin','name':'x','supportedVersions':['v1beta1']}",
		  "{'error':'RegisterPlugin error -- plugin validation failed with err: invalid name of device plugin socket: the "
		  "ResourceName \\'x\\' is invalid'}" },
	};
	struct kubelet_test k;

	kubelet_test_init(&k);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct plugin_test p = { .info = t[i].info };
		plugin_test_start(&p, &k, "plugins_registry/x-reg.sock");
		UNTIL(notified(&p));
		const char *place = strstr(t[i].outcome, "%s");
		str want = !place ? str_of(t[i].outcome) : arena_printf(&k.arena, "%.*s%s%s", (int)(place - t[i].outcome), t[i].outcome,
									p.path, place + 2);
		CHECK_STR_ROW(i, str_of(notified(&p)), arena_printf(&k.arena, "NotifyRegistrationStatus" STR_FMT ";", STR_ARG(want)).p);
		if (i == 0)
			CHECK_STR(drivers(&k), "[{'name':'a.csi','endpoint':'/csi.sock'}]");
		plugin_test_stop(&p);
		UNTIL(str_eq(drivers(&k), STR("[]"))); /* it has gone, and with it what it offered */
	}
	kubelet_test_done(&k);
}

/* By the folder instead of by Register; the socket's removal ends it. */
FIBER_TEST(plugins_of_devices)
{
	struct kubelet_test k;
	struct plugin_test p = { .info = "{'type':'DevicePlugin','name':'v.com/x','supportedVersions':['v1alpha','v1beta1']}",
				 .list = "{'devices':[{'ID':'a','health':'Healthy'}]}" };
	struct val capacity, allocatable;

	kubelet_test_init(&k);
	CHECK_INT(file_make_dirs(test_path(&k, "plugins_registry/deep/er"), 0755, NULL), 0);
	plugin_test_start(&p, &k, "plugins_registry/deep/er/x.sock");
	const struct offer *o;
	UNTIL((o = offer_find(k.devices, STR("v.com/x"))) && o->listed);
	UNTIL(notified(&p));
	CHECK_INT(unlink(p.path), 0);
	UNTIL(o->lost);
	devices_of_node(k.devices, &k.arena, &capacity, &allocatable);
	CHECK_STR(text_of(&k.arena, capacity), "{'v.com/x':'1'}");
	CHECK_STR(text_of(&k.arena, allocatable), "{'v.com/x':'0'}");
	plugin_test_stop(&p);
	kubelet_test_done(&k);
}

FIBER_TEST(plugins_are_found_and_tried_again)
{
	struct kubelet_test k;
	struct plugin_test old = { .info = "{'type':'CSIPlugin','name':'old.csi','supportedVersions':['v1.2.0']}" },
			   hidden = { .info = "{'type':'CSIPlugin','name':'hidden.csi','supportedVersions':['1.0.0']}" },
			   slow = { .info = "{'type':'CSIPlugin','name':'slow.csi','supportedVersions':['1.0.0']}", .fails = "GetInfo" };

	kubelet_test_init(&k);
	kubelet_test_stop(&k);
	plugin_test_start(&old, &k, "plugins_registry/old.sock"); /* there before the kubelet */
	plugin_test_start(&hidden, &k, "plugins_registry/.hidden.sock");
	kubelet_test_start(&k);
	UNTIL(notified(&old));
	plugin_test_start(&slow, &k, "plugins_registry/slow.sock");
	UNTIL(strstr(slow.calls, "GetInfo"));
	slow.fails = NULL;
	UNTIL(notified(&slow));
	CHECK_STR(str_of(hidden.calls), "");
	CHECK_STR(drivers(&k), arena_printf(&k.arena, "[{'name':'old.csi','endpoint':'%s'},{'name':'slow.csi','endpoint':'%s'}]", old.path,
					    slow.path).p);

	/* Another one under the same name is another plugin. */
	old.info = "{'type':'CSIPlugin','name':'new.csi','supportedVersions':['1.0.0']}";
	plugin_test_stop(&old);
	plugin_test_start(&old, &k, "plugins_registry/old.sock");
	UNTIL(notified(&old));
	CHECK_STR(drivers(&k), arena_printf(&k.arena, "[{'name':'new.csi','endpoint':'%s'},{'name':'slow.csi','endpoint':'%s'}]", old.path,
					    slow.path).p);
	plugin_test_stop(&old);
	plugin_test_stop(&hidden);
	plugin_test_stop(&slow);
	kubelet_test_done(&k);
}

TEST(plugins_csi_versions)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct csi_drivers c;
	struct err err = ERR_INIT;

	csi_drivers_init(&c);
	CHECK_INT(csi_drivers_add(&c, STR("d"), STR("/a"), tree(&a, NULL, "['1.0.0','1.2.0','2.0.0']"), &err), 0);
	CHECK(csi_drivers_validate(&c, STR("d"), STR("/b"), tree(&a, NULL, "['1.1.0']"), &err) < 0);
	CHECK_STR(err_str(&err), "validation failed for CSI Driver d at endpoint /b: kubernetes.io/csi: ValidatePlugin for CSI driver \"d\" "
		  "failed. Another driver with the same name is already registered with a higher supported version: \"1.2.0\"");
	CHECK(csi_drivers_validate(&c, STR("e"), STR("/b"), VAL_EMPTY_LIST, &err) < 0);
	CHECK_INT(csi_drivers_add(&c, STR("d"), STR("/b"), tree(&a, NULL, "['1.10.0']"), &err), 0);
	csi_drivers_remove(&c, STR("d"), STR("/a")); /* that was the older one */
	CHECK_STR(text_of(&a, csi_drivers_list(&c, &a)), "[{'name':'d','endpoint':'/b'}]");
	csi_drivers_done(&c);
}
