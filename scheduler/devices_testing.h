/* What tests of devices share: two nodes, a class "gpu", and short ways to write slices and claims. */
#ifndef C8S_SCHEDULER_DEVICES_TESTING_H
#define C8S_SCHEDULER_DEVICES_TESTING_H

#include "codec/atoms.h"
#include "scheduler/device_search.h"
#include "scheduler/plugin_testing.h"

#define CANNOT "UNRESOLVABLE cannot allocate all claims"
#define CLAIM(spec) "{'metadata':{'namespace':'d','name':'c','uid':'uc'},'spec':{'devices':{" spec "}}}"
#define EXACT(name, more) "{'name':'" name "','exactly':{'deviceClassName':'gpu','allocationMode':'ExactCount'" more "}}"
#define POD "{'metadata':{'namespace':'d','name':'p','uid':'up'},'spec':{'resourceClaims':[{'name':'r','resourceClaimName':'c'}]}}"

TESTING void put(struct world *w, struct copies *to, const struct type *type, const char *quoted)
{
	CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(world_object(w, type, quoted));
	copies_put(to, f);
}

TESTING void put_slice(struct world *w, const char *quoted) { put(w, &w->devices->slices, TYPE(resource_v1, ResourceSlice), quoted); }
TESTING void put_claim(struct world *w, const char *quoted) { put(w, &w->devices->claims, TYPE(resource_v1, ResourceClaim), quoted); }

TESTING void begin(struct world *w)
{
	world_init(w, &plugin_dynamic_resources);
	w->devices = device_table_new(NULL, NULL);
	(void)world_node(w, "{'metadata':{'name':'a','labels':{'rack':'1'}}}");
	(void)world_node(w, "{'metadata':{'name':'b','labels':{'rack':'2'}}}");
	put(w, &w->devices->classes, TYPE(resource_v1, DeviceClass), "{'metadata':{'name':'gpu'},'spec':{'config':[{'opaque':{'driver':'x','parameters':{'k':1}}}]}}");
	put(w, &w->devices->classes, TYPE(resource_v1, DeviceClass), "{'metadata':{'name':'big'},'spec':{'selectors':[{'cel':{'expression':"
	    "'device.capacity[\\\"x\\\"].memory.compareTo(quantity(\\\"8Gi\\\")) >= 0'}}]}}");
}

TESTING void end(struct world *w)
{
	device_table_free(w->devices);
	world_done(w);
}

#define SLICE(name, where, pool, devices) \
	"{'metadata':{'name':'" name "'},'spec':{'driver':'x','pool':{'name':'" pool "','generation':1,'resourceSliceCount':1}," where ",'devices':[" devices "]}}"

/* "request device" for each that the claim d/c gets on the node; or why not. */
TESTING str results_on(struct world *w, const char *node)
{
	struct err err = ERR_INIT;
	struct device_search *s;
	struct val claim = copies_val(&w->devices->claims, STR("d/c")), allocation;
	uint32_t at = nodes_find(&w->table, str_of(node));
	str text = STR("");
	CHECK_INT(device_search_new(&w->arena, w->devices, &claim, 1, &s, &err), 0);
	int r = device_search_run(s, str_of(node), w->table.object[at]->val, VAL_EMPTY, &allocation, &err);
	if (r <= 0)
		return r == 0 ? STR("none") : arena_str(&w->arena, err_str(&err));
	VAL_EACH(x, val_get(allocation, devices, results))
		text = arena_printf(&w->arena, STR_FMT "%s" STR_FMT " " STR_FMT, STR_ARG(text), text.n ? ", " : "", STR_ARG(val_str(*x, request)),
				    STR_ARG(val_str(*x, device)));
	return text;
}

#endif
