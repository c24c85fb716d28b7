/* Version, Status and the runtime's own configuration. */
#include "base/log.h"
#include "codec/atoms.h"
#include "runtime/cri.h"

int cri_version(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)request, (void)err;
	*ret = OBJECT(a, F(version, VAL_LIT("0.1.0")), F(runtimeName, VAL_LIT("c8s")), F(runtimeVersion, VAL_STR(str_of(r->o.version))),
		      F(runtimeApiVersion, VAL_LIT("v1")));
	return 0;
}

static struct val network_condition(struct runtime *r, struct arena *a)
{
	struct err why = ERR_INIT;

	if (cni_status(r->cni, &why) == 0)
		return OBJECT(a, F(type, VAL_LIT("NetworkReady")), F(status, val_of_bool(true)));
	return OBJECT(a, F(type, VAL_LIT("NetworkReady")), F(status, val_of_bool(false)),
		      F(reason, VAL_LIT("NetworkPluginNotReady")),
		      F(message, VAL_STR(arena_printf(a, "Network plugin returns error: %s", why.msg))));
}

static struct val handlers(struct runtime *r, struct arena *a)
{
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < r->o.n_handlers; i++) {
		const struct runtime_handler *h = &r->o.handlers[i];
		struct val features = OBJECT(a, F(recursiveReadOnlyMounts, val_of_bool(true)),
					     F(userNamespaces, val_of_bool(r->userns && !h->program)));
		val_add_item(&b, OBJECT(a, F(name, VAL_STR(str_of(h->name))), F(features, features)));
	}
	return val_end_list(&b);
}

static struct val text(const char *s) { return s ? VAL_STR(str_of(s)) : VAL_EMPTY; }

static struct val info_config(struct runtime *r, struct arena *a)
{
	const struct runtime_options *o = &r->o;

	return OBJECT(a, F(root, text(o->root)), F(state, text(o->state)), F(address, text(o->listen)),
		      F(cgroupParent, text(o->cgroup_parent)), F(image, text(o->sandbox_image)));
}

int cri_status(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct val ready = OBJECT(a, F(type, VAL_LIT("RuntimeReady")), F(status, val_of_bool(true)));
	struct val network = network_condition(r, a), info = VAL_EMPTY;
	str name;

	(void)err;
	if (val_bool(request, verbose)) {
		struct val_builder b = val_builder(a);
		bool found = cni_network(r->cni, a, &name, NULL) == 0;
		val_add_member(&b, atom_make(a, STR("config")), cri_json(a, info_config(r, a), NULL));
		val_add_member(&b, atom_make(a, STR("cniconfig")),
			       cri_json(a, OBJECT(a, F(name, found ? VAL_STR(name) : VAL_EMPTY)), NULL));
		val_add_member(&b, atom_make(a, STR("lastCNILoadStatus")),
			       val_bool(network, status) ? VAL_LIT("OK") : val_get(network, message));
		info = val_end_object(&b);
	}
	*ret = OBJECT(a, F(status, OBJECT(a, F(conditions, LIST(a, ready, network)))), F(info, info),
		      F(runtimeHandlers, handlers(r, a)),
		      F(features, OBJECT(a, F(supplementalGroupsPolicy, val_of_bool(true)))));
	return 0;
}

int cri_runtime_config(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	(void)r, (void)request, (void)err;
	*ret = OBJECT(a, F(linux, OBJECT(a, F(cgroupDriver, VAL_LIT("CGROUPFS")))));
	return 0;
}

/* The pods' network, in one or two families: a configuration of our own is written unless there is one. */
int cri_update_runtime_config(struct runtime *r, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	str cidrs = val_str(request, runtimeConfig, networkConfig, podCidr), one;
	const char *list[8] = { NULL };
	size_t n = 0;

	(void)ret;
	while (cidrs.n && n < ARRAY_LEN(list) - 1) {
		(void)str_cut(cidrs, ',', &one, &cidrs);
		list[n++] = arena_str(a, str_trim(one)).p;
	}
	if (!n)
		return 0;
	log_info("the network of the pods", KV("cidr", list[0]));
	return cni_write_default(r->cni, list, err);
}
