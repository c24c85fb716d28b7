/* Services: at the end EndpointSlices and Endpoints list those pods that there are, and no others. */
#include "codec/atoms.h"
#include "simulation/rules.h"

#define SERVICE_NAME STR("kubernetes.io/service-name")

static bool is_selected(struct val service, struct val pod)
{
	struct val labels = val_get(pod, metadata, labels);

	if (!str_eq(val_str(service, metadata, namespace), val_str(pod, metadata, namespace)))
		return false;
	VAL_EACH_MEMBER(m, val_get(service, spec, selector))
		if (!val_equal(val_find(labels, atom_str(m->key)), m->val))
			return false;
	return true;
}

static bool is_listed(struct val service, struct val pod) { return is_selected(service, pod) && val_str(pod, status, podIP).n && !pod_is_over(pod); }

/* Whether this is the pod's address, with whether it is ready. */
static bool is_of(struct val pod, str uid, str address, bool ready)
{
	return str_eq(val_str(pod, metadata, uid), uid) && str_eq(val_str(pod, status, podIP), address) && condition_is(pod, "Ready", "True") == ready;
}

/* ---- EndpointSlices ---- */

static bool is_slice_of(struct val slice, struct val service)
{
	return str_eq(val_str(slice, metadata, namespace), val_str(service, metadata, namespace)) &&
	       str_eq(val_as_str(val_find(val_get(slice, metadata, labels), SERVICE_NAME)), val_str(service, metadata, name));
}

/* How many times it is there as it should be; *ret_all: endpoints in all. */
static int64_t slices_have(const struct rules *r, struct val service, struct val pod, int64_t *ret_all)
{
	int64_t n = 0;
	str key;

	*ret_all = 0;
	RULES_EACH(r, "endpointslices/", key, slice) {
		if (!is_slice_of(slice, service))
			continue;
		VAL_EACH(e, val_get(slice, endpoints)) {
			++*ret_all;
			n += is_of(pod, val_str(*e, targetRef, uid), val_as_str(val_at(val_get(*e, addresses), 0)), val_bool(*e, conditions, ready));
		}
	}
	return n;
}

/* ---- Endpoints ---- */

static int64_t addresses_have(struct val list, struct val pod, bool ready)
{
	int64_t n = 0;

	VAL_EACH(address, list)
		n += is_of(pod, val_str(*address, targetRef, uid), val_str(*address, ip), ready);
	return n;
}

static int64_t endpoints_have(const struct rules *r, struct val service, struct val pod, int64_t *ret_all)
{
	struct val endpoints = rules_find(r, "services/endpoints/" STR_FMT "/" STR_FMT, STR_ARG(val_str(service, metadata, namespace)),
					  STR_ARG(val_str(service, metadata, name)));
	int64_t n = 0;

	*ret_all = 0;
	VAL_EACH(s, val_get(endpoints, subsets)) {
		*ret_all += val_len(val_get(*s, addresses)) + val_len(val_get(*s, notReadyAddresses));
		n += addresses_have(val_get(*s, addresses), pod, true) + addresses_have(val_get(*s, notReadyAddresses), pod, false);
	}
	return n;
}

/* ---- all of it ---- */

static bool service_is_followed(const struct rules *r, str key, struct val service, struct buf *why)
{
	int64_t pods = 0, in_slices, in_endpoints;
	str at;

	RULES_EACH(r, "pods/", at, pod) {
		if (!is_listed(service, pod))
			continue;
		pods++;
		if (slices_have(r, service, pod, &in_slices) != 1)
			return rules_complain(why, at, "it is not once in the EndpointSlices of its Service");
		if (endpoints_have(r, service, pod, &in_endpoints) != 1)
			return rules_complain(why, at, "it is not once in the Endpoints of its Service");
	}
	(void)slices_have(r, service, VAL_EMPTY, &in_slices);
	(void)endpoints_have(r, service, VAL_EMPTY, &in_endpoints);
	if (in_slices != pods)
		return rules_complain(why, key, "its EndpointSlices list more than there is");
	return in_endpoints == pods || rules_complain(why, key, "its Endpoints list more than there is");
}

bool rules_services_settled(const struct rules *r, struct buf *why)
{
	str key;

	RULES_EACH(r, "services/specs/", key, service)
		if (val_has(service, spec, selector) && !service_is_followed(r, key, service, why))
			return false;
	RULES_EACH(r, "services/endpoints/", key, endpoints)
		if (!val_exists(rules_find(r, "services/specs/" STR_FMT "/" STR_FMT, STR_ARG(val_str(endpoints, metadata, namespace)),
					   STR_ARG(val_str(endpoints, metadata, name)))))
			return rules_complain(why, key, "its Service is gone");
	return true;
}
