#include "controllers/endpoint_slice_mirroring_plan.h"

#include "codec/atoms.h"
#include "controllers/endpoints_plan.h"
#include "controllers/labels.h"
#include "controllers/owner.h"
#include "controllers/slice_pack.h"
#include "machinery/ip.h"
#include "machinery/names.h"

bool mirror_wanted(struct val endpoints)
{
	return !str_eq(label_of(endpoints, STR("endpointslice.kubernetes.io/skip-mirror")), STR("true")) &&
	       !annotation_has(endpoints, STR("control-plane.alpha.kubernetes.io/leader"));
}

/* ---- a slice ---- */

static struct val mirror_labels(struct arena *a, struct val endpoints)
{
	struct val labels = labels_put(a, val_get(endpoints, metadata, labels), STR(SLICE_MANAGED_BY), VAL_LIT(MIRROR_MANAGER));
	return labels_put(a, labels, STR(SLICE_SERVICE_NAME), val_get(endpoints, metadata, name));
}

static struct val mirror_annotations(struct arena *a, struct val endpoints)
{
	struct val_builder map = val_builder(a);

	VAL_EACH_MEMBER(m, val_get(endpoints, metadata, annotations))
		if (!str_eq(atom_str(m->key), STR(TRIGGER_TIME_ANNOTATION)) &&
		    !str_eq(atom_str(m->key), STR("kubectl.kubernetes.io/last-applied-configuration")))
			val_add_member(&map, m->key, m->val);
	return map.n ? val_end_object(&map) : VAL_EMPTY;
}

static struct val fresh_slice(struct arena *a, struct val endpoints, const char *address_type)
{
	str name = val_str(endpoints, metadata, name), prefix = arena_join(a, name, STR("-"));

	if (name_rule_subdomain(prefix, true, NULL))
		prefix = name;
	return OBJECT(a, F(metadata, OBJECT(a, F(generateName, VAL_STR(prefix)), F(namespace, val_get(endpoints, metadata, namespace)))),
		      F(addressType, val_of_str(str_of(address_type))));
}

static struct val dress(struct arena *a, struct val slice, const void *arg)
{
	struct val endpoints = *(const struct val *)arg;

	slice = val_with(a, slice, mirror_labels(a, endpoints), metadata, labels);
	slice = val_with(a, slice, mirror_annotations(a, endpoints), metadata, annotations);
	return val_with(a, slice, LIST(a, owner_ref(a, endpoints, "v1", "Endpoints")), metadata, ownerReferences);
}

/* ---- addresses ---- */

static struct val mirror_ports(struct arena *a, struct val ports)
{
	struct val_builder list = val_builder(a);

	VAL_EACH(p, ports)
		val_add_item(&list, OBJECT(a, F(name, VAL_STR(val_str(*p, name))), F(protocol, val_get(*p, protocol)), F(port, val_get(*p, port)),
					   F(appProtocol, val_get(*p, appProtocol))));
	return val_end_list(&list);
}

static struct val mirror_endpoint(struct arena *a, struct val address, const struct ip *ip, bool ready)
{
	char text[IP_TEXT_MAX];
	str hostname = val_str(address, hostname);

	return OBJECT(a, F(addresses, LIST(a, VAL_STR(arena_str(a, ip_format(ip, text))))),
		      F(conditions, OBJECT(a, F(ready, val_of_bool(ready)))), F(hostname, hostname.n ? VAL_STR(hostname) : VAL_EMPTY),
		      F(targetRef, val_get(address, targetRef)), F(nodeName, val_get(address, nodeName)));
}

struct mirroring {
	struct slice_pack v4, v6;
	size_t max, n_added;         /* of this subset */
	struct mirror_plan *plan;
};

static void add_addresses(struct mirroring *m, struct val ports, struct val addresses, bool ready)
{
	struct ip ip;

	VAL_EACH(x, addresses) {
		if (m->n_added >= m->max)
			return;
		if (!ip_parse(val_str(*x, ip), &ip, NULL)) {
			m->plan->n_invalid++;
			continue;
		}
		struct slice_pack *pack = ip_is_v4(&ip) ? &m->v4 : &m->v6;
		slice_pack_want(pack, ports, mirror_endpoint(pack->arena, *x, &ip, ready));
		m->n_added++;
	}
}

static void add_subset(struct mirroring *m, struct arena *a, struct val subset)
{
	struct val ports = mirror_ports(a, val_get(subset, ports));

	m->n_added = 0;
	add_addresses(m, ports, val_get(subset, addresses), true);
	add_addresses(m, ports, val_get(subset, notReadyAddresses), false);
	m->plan->n_skipped += val_len(val_get(subset, addresses)) + val_len(val_get(subset, notReadyAddresses)) - m->n_added;
}

/* ---- the plan ---- */

static struct val both(struct arena *a, struct val x, struct val y)
{
	struct val_builder list = val_builder(a);

	VAL_EACH(s, x)
		val_add_item(&list, *s);
	VAL_EACH(s, y)
		val_add_item(&list, *s);
	return val_end_list(&list);
}

void mirror_plan(struct arena *a, struct val endpoints, struct val slices, size_t max, struct mirror_plan *ret)
{
	struct mirroring m = {
		.v4 = { .arena = a, .fresh = fresh_slice(a, endpoints, "IPv4"), .max = max, .dress = dress, .arg = &endpoints },
		.v6 = { .arena = a, .fresh = fresh_slice(a, endpoints, "IPv6"), .max = max, .dress = dress, .arg = &endpoints },
		.max = max, .plan = ret,
	};

	*ret = (struct mirror_plan){ 0 };
	VAL_EACH(s, slices)
		slice_pack_found(str_eq(val_str(*s, addressType), STR("IPv6")) ? &m.v6 : &m.v4, *s);
	VAL_EACH(s, endpoint_subsets(a, val_get(endpoints, subsets)))
		add_subset(&m, a, *s);
	slice_pack_finish(&m.v4);
	slice_pack_finish(&m.v6);
	ret->create = val_has(endpoints, metadata, deletionTimestamp) ? VAL_EMPTY : both(a, m.v4.create, m.v6.create);
	ret->update = both(a, m.v4.update, m.v6.update);
	ret->gone = both(a, m.v4.gone, m.v6.gone);
}
