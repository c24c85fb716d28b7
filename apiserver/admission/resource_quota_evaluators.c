/* What objects use of quotas: services and their ports, claims of storage and of devices, and how many there are of all else. */
#include "apiserver/admission/resource_quota.h"
#include "apiserver/cache.h"
#include "base/buf.h"
#include "codec/atoms.h"
#include "machinery/resources.h"
#include "machinery/selector.h"

static struct quota_amount count(str name, int64_t n)
{
	return (struct quota_amount){ name, quantity_of_int(n, QUANTITY_DECIMAL_SI) };
}

static struct quota_amounts list_of(struct arena *a, const struct quota_amount *list, size_t n)
{
	struct quota_amounts x = { ARENA_ARRAY(a, struct quota_amount, n), n };
	memcpy(x.list, list, n * sizeof *list);
	quota_amounts_sort(x);
	return x;
}

static bool is_written(const struct request *q)
{
	enum admission_operation op = admission_operation(q);
	return !q->subresource.n && (op == ADMISSION_CREATE || op == ADMISSION_UPDATE);
}

/* ---- scope selectors ---- */

str quota_selector_text(struct arena *a, struct val selector)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4 << 20);
	const char *between = "";
	buf_addf(&b, "{" STR_FMT " " STR_FMT " [", STR_ARG(val_str(selector, scopeName)), STR_ARG(val_str(selector, operator)));
	VAL_EACH(v, val_get(selector, values)) {
		buf_addf(&b, "%s" STR_FMT, between, STR_ARG(val_as_str(*v)));
		between = " ";
	}
	buf_add(&b, STR("]}"));
	return arena_str(a, buf_str(&b));
}

static bool selector_op_of(str name, enum selector_op *ret)
{
	static const struct {
		str name;
		enum selector_op op;
	} ops[] = {
		{ STR_INIT("In"), SELECTOR_IN }, { STR_INIT("NotIn"), SELECTOR_NOT_IN }, { STR_INIT("Exists"), SELECTOR_EXISTS },
		{ STR_INIT("DoesNotExist"), SELECTOR_NOT_EXISTS },
	};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (str_eq(ops[i].name, name)) {
			*ret = ops[i].op;
			return true;
		}
	return false;
}

static bool selector_compile(struct arena *a, struct val selector, struct requirement *ret, str *ret_why)
{
	struct field_errors errors;
	enum selector_op op;
	struct val values = val_get(selector, values);
	str *list = ARENA_ARRAY(a, str, val_len(values)), why;
	field_errors_init(&errors, a);
	for (size_t i = 0; i < val_len(values); i++)
		list[i] = val_as_str(val_at(values, i));
	if (!selector_op_of(val_str(selector, operator), &op))
		why = arena_printf(a, "\"" STR_FMT "\" is not a valid scope selector operator", STR_ARG(val_str(selector, operator)));
	else if (!selector_requirement(&errors, NULL, val_str(selector, scopeName), op, list, val_len(values), ret))
		why = field_errors_plain(&errors);
	else
		return true;
	*ret_why = arena_join(a, STR("failed to parse and convert selector: "), why);
	return false;
}

int quota_selector_matches(struct arena *a, struct val selector, const str *values, size_t n, str *ret_why)
{
	struct requirement r;
	if (str_eq(val_str(selector, operator), STR("Exists")))
		return n > 0;
	if (!selector_compile(a, selector, &r, ret_why))
		return -1;
	if (!n)
		return requirement_matches(&r, VAL_EMPTY);
	for (size_t i = 0; i < n; i++)
		if (requirement_matches(&r, val_put(a, VAL_EMPTY, r.key, val_of_str(values[i]))))
			return 1;
	return 0;
}

/* ---- services ---- */

static bool services_cover(const struct request *q, str name)
{
	(void)q;
	return str_eq(name, STR("count/services")) || str_eq(name, STR("services")) || str_eq(name, STR("services.nodeports")) ||
	       str_eq(name, STR("services.loadbalancers"));
}

static struct quota_amounts services_usage(const struct request *q, struct val service)
{
	str type = val_str(service, spec, type);
	struct val ports = val_get(service, spec, ports), wish = val_get(service, spec, allocateLoadBalancerNodePorts);
	bool balanced = str_eq(type, STR("LoadBalancer"));
	int64_t n = balanced || str_eq(type, STR("NodePort")) ? val_len(ports) : 0;
	if (balanced && val_exists(wish) && !val_as_bool(wish)) { /* only the ports that it names itself */
		n = 0;
		VAL_EACH(p, ports)
			n += val_int(*p, nodePort) != 0;
	}
	const struct quota_amount all[] = {
		count(STR("count/services"), 1), count(STR("services"), 1), count(STR("services.loadbalancers"), balanced),
		count(STR("services.nodeports"), n),
	};
	return list_of(q->arena, all, ARRAY_LEN(all));
}

/* ---- claims of storage ---- */

#define CLASS_SUFFIX ".storageclass.storage.k8s.io/"

static bool storage_handles(const struct request *q)
{
	/* a status says how much was allocated, and by which class */
	return is_written(q) || (str_eq(q->subresource, STR("status")) && admission_operation(q) == ADMISSION_UPDATE);
}

static bool storage_covers(const struct request *q, str name)
{
	(void)q;
	return str_eq(name, STR("count/persistentvolumeclaims")) || str_eq(name, STR("persistentvolumeclaims")) ||
	       str_eq(name, STR("requests.storage")) || str_ends(name, STR(CLASS_SUFFIX "persistentvolumeclaims")) ||
	       str_ends(name, STR(CLASS_SUFFIX "requests.storage"));
}

static str storage_class(struct val claim)
{
	struct val old = val_find(val_get(claim, metadata, annotations), STR("volume.beta.kubernetes.io/storage-class"));
	return val_exists(old) ? val_as_str(old) : val_str(claim, spec, storageClassName);
}

static struct quota_amounts storage_usage(const struct request *q, struct val claim)
{
	struct quota_amount all[5];
	size_t n = 0;
	str class = storage_class(claim);
	struct val asked = val_find(val_get(claim, spec, resources, requests), STR("storage")),
		   allocated = val_find(val_get(claim, status, allocatedResources), STR("storage"));
	all[n++] = count(STR("persistentvolumeclaims"), 1);
	all[n++] = count(STR("count/persistentvolumeclaims"), 1);
	if (class.n)
		all[n++] = count(arena_join(q->arena, class, STR(CLASS_SUFFIX "persistentvolumeclaims")), 1);
	if (val_exists(asked)) {
		struct quantity size = quantity_round_up(quantity_of(asked), 0);
		if (val_exists(allocated) && quantity_cmp(quantity_of(allocated), size) > 0)
			size = quantity_round_up(quantity_of(allocated), 0);
		all[n++] = (struct quota_amount){ STR("requests.storage"), size };
		if (class.n)
			all[n++] = (struct quota_amount){ arena_join(q->arena, class, STR(CLASS_SUFFIX "requests.storage")), size };
	}
	return list_of(q->arena, all, n);
}

static int storage_in_scope(struct arena *a, struct val selector, struct val claim, str *ret_why)
{
	const str given[] = {
		val_str(claim, spec, volumeAttributesClassName), val_str(claim, status, currentVolumeAttributesClassName),
		val_str(claim, status, modifyVolumeStatus, targetVolumeAttributesClassName),
	};
	str names[ARRAY_LEN(given)];
	size_t n = 0;
	if (!str_eq(val_str(selector, scopeName), STR("VolumeAttributesClass")))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(given); i++)
		if (given[i].n)
			names[n++] = given[i];
	return quota_selector_matches(a, selector, names, n, ret_why);
}

/* ---- claims of devices ---- */

#define DEVICES_SUFFIX ".deviceclass.resource.k8s.io/devices"
#define IMPLICIT_PREFIX "requests.deviceclass.resource.kubernetes.io/"

/* The most that one request can be given; what "All" may turn out to be. */
enum { DEVICES_MAX = 32 };

static const struct kind *device_classes(const struct request *q)
{
	return kinds_find(&q->server->kinds, STR("resource.k8s.io"), STR("deviceclasses"));
}

/* The name under which pods can ask for devices of this class; "": there is none. */
static str extended_name(const struct request *q, str class)
{
	struct object *o = cache_get(device_classes(q), class);
	return o ? val_str(o->val, spec, extendedResourceName) : STR_NONE;
}

/* Does a class of devices stand behind this name? There are as many classes as sorts of devices: few. */
static bool is_device_name(const struct request *q, str name)
{
	const struct kind *kind = device_classes(q);
	struct omap_iter it;
	struct object *o;
	if (!kind)
		return false;
	if (str_starts(name, STR("deviceclass.resource.kubernetes.io/")))
		return cache_get(kind, str_skip(name, sizeof("deviceclass.resource.kubernetes.io/") - 1));
	omap_seek(&it, kind->objects, STR(""));
	while ((o = omap_next(&it, NULL)))
		if (str_eq(val_str(o->val, spec, extendedResourceName), name))
			return true;
	return false;
}

static bool devices_cover(const struct request *q, str name)
{
	if (str_eq(name, STR("count/resourceclaims.resource.k8s.io")) || str_ends(name, STR(DEVICES_SUFFIX)))
		return true;
	if (str_starts(name, STR(IMPLICIT_PREFIX)) && extended_name(q, str_skip(name, sizeof(IMPLICIT_PREFIX) - 1)).n)
		return true;
	return str_starts(name, STR("requests.")) && (!resource_is_native(name) || str_starts(name, STR(IMPLICIT_PREFIX))) &&
	       is_device_name(q, str_skip(name, sizeof("requests.") - 1));
}

static struct quota_amounts devices_of(struct arena *a, struct val request)
{
	str mode = val_str(request, allocationMode);
	int64_t n = str_eq(mode, STR("ExactCount")) ? val_int(request, count) : str_eq(mode, STR("All")) ? DEVICES_MAX : 0;
	struct quota_amount one = count(arena_join(a, val_str(request, deviceClassName), STR(DEVICES_SUFFIX)), n);
	return list_of(a, &one, 1);
}

/* What a request can be given at most of each class. */
static struct quota_amounts devices_at_most(struct arena *a, struct val request)
{
	struct quota_amounts most = { 0 };
	if (val_has(request, exactly))
		return devices_of(a, val_get(request, exactly));
	VAL_EACH(sub, val_get(request, firstAvailable))
		most = quota_merge(a, most, quota_nonzero(a, devices_of(a, *sub)), QUOTA_MAX);
	return most;
}

static struct val controller_of(struct val object)
{
	VAL_EACH(r, val_get(object, metadata, ownerReferences))
		if (val_bool(*r, controller))
			return *r;
	return VAL_EMPTY;
}

static bool is_for_pod(struct val claim, struct val owner)
{
	return str_eq(val_as_str(val_find(val_get(claim, metadata, annotations), STR("resource.kubernetes.io/extended-resource-claim"))),
		      STR("true")) &&
	       str_eq(val_str(owner, kind), STR("Pod")) && str_eq(val_str(owner, apiVersion), STR("v1"));
}

/* Of several claims that were made for the devices of a pod, the first one stands for what the pod asks for. */
static bool is_first_claim(const struct request *q, struct val claim, str pod_uid)
{
	const struct kind *kind = kinds_find(&q->server->kinds, STR("resource.k8s.io"), STR("resourceclaims"));
	str prefix = arena_join(q->arena, q->namespace, STR("/")), key, made = val_str(claim, metadata, creationTimestamp);
	struct omap_iter it;
	struct object *o;
	omap_seek(&it, kind->objects, prefix);
	while ((o = omap_next(&it, &key)) && str_starts(key, prefix)) {
		struct val owner = controller_of(o->val);
		if (!is_for_pod(o->val, owner) || !str_eq(val_str(owner, uid), pod_uid))
			continue;
		int order = str_cmp(val_str(o->val, metadata, creationTimestamp), made);
		if (order < 0 || (order == 0 && str_cmp(val_str(o->val, metadata, name), val_str(claim, metadata, name)) < 0))
			return false;
	}
	return true;
}

/* What was already charged for the pod that this claim was made for. */
static struct quota_amounts charged_for_pod(const struct request *q, struct val claim)
{
	struct val owner = controller_of(claim);
	if (!is_for_pod(claim, owner))
		return (struct quota_amounts){ 0 };
	str key = arena_printf(q->arena, STR_FMT "/" STR_FMT, STR_ARG(q->namespace), STR_ARG(val_str(owner, name)));
	struct object *pod = cache_get(kinds_find(&q->server->kinds, STR(""), STR("pods")), key);
	if (!pod || !str_eq(val_str(pod->val, metadata, uid), val_str(owner, uid)))
		return (struct quota_amounts){ 0 };
	struct val status = val_get(pod->val, status, extendedResourceClaimStatus);
	bool stands = val_exists(status) ? str_eq(val_str(status, resourceClaimName), val_str(claim, metadata, name)) :
					   is_first_claim(q, claim, val_str(owner, uid));
	/* it may go from the cache while this request waits, and names are borrowed */
	return stands ? quota_pods.usage(q, val_copy(q->arena, pod->val)) : (struct quota_amounts){ 0 };
}

/* Devices count as the resources by which pods ask for them too, less what was charged for the pod. */
static struct quota_amounts extended_usage(const struct request *q, struct quota_amounts devices, struct quota_amounts of_pod)
{
	struct quota_amounts x = { ARENA_ARRAY(q->arena, struct quota_amount, 2 * devices.n), 0 }, sum = { 0 };
	for (size_t i = 0; i < devices.n; i++) {
		str class = str_head(devices.list[i].name, devices.list[i].name.n - (sizeof(DEVICES_SUFFIX) - 1));
		if (!class.n)
			continue;
		str name = extended_name(q, class);
		x.list[x.n++] = (struct quota_amount){ arena_join(q->arena, STR(IMPLICIT_PREFIX), class), devices.list[i].q };
		if (name.n)
			x.list[x.n++] = (struct quota_amount){ arena_join(q->arena, STR("requests."), name), devices.list[i].q };
	}
	for (size_t i = 0; i < x.n; i++) /* two classes may have one name */
		sum = quota_merge(q->arena, sum, (struct quota_amounts){ x.list + i, 1 }, QUOTA_REPLACE);
	struct quota_amounts charged = quota_merge(q->arena, of_pod, sum, QUOTA_MASK);
	return quota_nonzero(q->arena, quota_merge(q->arena, sum, charged, QUOTA_LESS));
}

static struct quota_amounts devices_usage(const struct request *q, struct val claim)
{
	struct arena *a = q->arena;
	struct quota_amount object = count(STR("count/resourceclaims.resource.k8s.io"), 1);
	struct quota_amounts devices = { 0 };
	VAL_EACH(r, val_get(claim, spec, devices, requests))
		devices = quota_merge(a, devices, devices_at_most(a, *r), QUOTA_ADD);
	struct quota_amounts extended = extended_usage(q, devices, charged_for_pod(q, claim));
	return quota_merge(a, quota_merge(a, devices, extended, QUOTA_ADD), list_of(a, &object, 1), QUOTA_ADD);
}

/* ---- everything else: how many there are ---- */

static bool is_made(const struct request *q) { return !q->subresource.n && admission_operation(q) == ADMISSION_CREATE; }

static str legacy_name(const struct request *q)
{
	static const str names[] = {
		STR_INIT("configmaps"), STR_INIT("resourcequotas"), STR_INIT("replicationcontrollers"), STR_INIT("secrets"),
	};
	for (size_t i = 0; i < ARRAY_LEN(names) && !q->group.n; i++)
		if (str_eq(q->resource, names[i]))
			return names[i];
	return STR_NONE;
}

static str count_name(const struct request *q)
{
	return arena_printf(q->arena, "count/" STR_FMT "%s" STR_FMT, STR_ARG(q->resource), q->group.n ? "." : "", STR_ARG(q->group));
}

static bool objects_cover(const struct request *q, str name)
{
	str legacy = legacy_name(q);
	return str_eq(name, count_name(q)) || (legacy.n && str_eq(name, legacy));
}

static struct quota_amounts objects_usage(const struct request *q, struct val object)
{
	(void)object;
	const struct quota_amount all[] = { count(count_name(q), 1), count(legacy_name(q), 1) };
	return list_of(q->arena, all, legacy_name(q).n ? 2 : 1);
}

static const struct quota_evaluator quota_objects = { .handles = is_made, .covers = objects_cover, .usage = objects_usage };

/* ---- which is for what ---- */

static const struct quota_evaluator evaluators[] = {
	{ .resource = STR_INIT("services"), .handles = is_written, .covers = services_cover, .usage = services_usage },
	{ .resource = STR_INIT("persistentvolumeclaims"), .handles = storage_handles, .covers = storage_covers,
	  .in_scope = storage_in_scope, .usage = storage_usage },
	{ .group = STR_INIT("resource.k8s.io"), .resource = STR_INIT("resourceclaims"), .handles = is_written,
	  .covers = devices_cover, .usage = devices_usage },
};

/* What is not stored, and events: they go by themselves. */
static bool is_ignored(const struct request *q)
{
	static const struct {
		str group, resource;
	} ignored[] = {
		{ STR_INIT(""), STR_INIT("bindings") }, { STR_INIT(""), STR_INIT("componentstatuses") },
		{ STR_INIT(""), STR_INIT("events") }, { STR_INIT("events.k8s.io"), STR_INIT("events") },
		{ STR_INIT("authorization.k8s.io"), STR_INIT("localsubjectaccessreviews") },
	};
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		if (str_eq(q->resource, ignored[i].resource) && str_eq(q->group, ignored[i].group))
			return true;
	return false;
}

const struct quota_evaluator *quota_evaluator_of(const struct request *q)
{
	if (str_eq(q->resource, quota_pods.resource) && !q->group.n)
		return &quota_pods;
	for (size_t i = 0; i < ARRAY_LEN(evaluators); i++)
		if (str_eq(q->resource, evaluators[i].resource) && str_eq(q->group, evaluators[i].group))
			return &evaluators[i];
	return is_ignored(q) ? NULL : &quota_objects;
}
