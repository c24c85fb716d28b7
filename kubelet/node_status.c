/* The order in which things are decided, and every text, is that of the setters of Kubernetes' nodestatus. */
#include "kubelet/node_status.h"

#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/quantity.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/node_machine.h"
#include "machinery/resources.h"

enum { MESSAGE_MAX = 64 << 10 };

/* ---- the object ---- */

static struct val put_text(struct arena *a, struct val map, str key, str value)
{
	return val_put(a, map, atom_make(a, key), val_of_str(value));
}

static struct val labels_make(const struct kubelet_node *n, const struct node_facts *f, struct arena *a)
{
	struct val map = VAL_EMPTY_OBJECT;

	map = put_text(a, map, STR("beta.kubernetes.io/arch"), node_architecture());
	map = put_text(a, map, STR("beta.kubernetes.io/os"), STR("linux"));
	map = put_text(a, map, STR("kubernetes.io/arch"), node_architecture());
	map = put_text(a, map, STR("kubernetes.io/hostname"), n->name);
	map = put_text(a, map, STR("kubernetes.io/os"), STR("linux"));
	VAL_EACH_MEMBER(m, f->labels)
		map = val_put(a, map, m->key, m->val);
	return val_sorted(a, map);
}

static struct val text_or_none(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

struct val node_object_make(const struct kubelet_node *n, const struct node_facts *f, struct arena *a)
{
	struct val annotations =
		put_text(a, VAL_EMPTY_OBJECT, STR("volumes.kubernetes.io/controller-managed-attach-detach"), STR("true"));
	struct val metadata = OBJECT(a, F(name, val_of_str(n->name)), F(labels, labels_make(n, f, a)), F(annotations, annotations));
	struct val cidr = text_or_none(f->pod_cidr);
	struct val spec = OBJECT(a, F(podCIDR, cidr), F(podCIDRs, val_exists(cidr) ? LIST(a, cidr) : VAL_EMPTY),
				 F(providerID, text_or_none(f->provider_id)),
				 F(unschedulable, f->unschedulable ? val_of_bool(true) : VAL_EMPTY),
				 F(taints, val_len(f->taints) ? f->taints : VAL_EMPTY));

	return OBJECT(a, F(kind, VAL_LIT("Node")), F(apiVersion, VAL_LIT("v1")), F(metadata, metadata), F(spec, spec));
}

/* ---- resources ---- */

static struct val quantity_val(struct arena *a, struct quantity q)
{
	char text[QUANTITY_TEXT_MAX];
	return val_of_str(arena_str(a, quantity_format(q, text)));
}

static struct val bytes_val(struct arena *a, int64_t bytes)
{
	return quantity_val(a, quantity_of_int(bytes, QUANTITY_BINARY_SI));
}

/* hugepages-2Mi */
static str huge_name(struct arena *a, int64_t page_bytes)
{
	return arena_join(a, STR("hugepages-"), val_as_str(bytes_val(a, page_bytes)));
}

static int capacity_of(const struct kubelet_node *n, const struct node_facts *f, const struct node_machine *m, struct arena *a,
		       struct val *ret, struct err *err)
{
	int64_t cpus_milli = n->cpus_milli ? n->cpus_milli : m->cpus * 1000;
	int64_t memory = n->memory_bytes ? n->memory_bytes : m->memory_bytes, storage;
	struct val map = VAL_EMPTY_OBJECT;
	int r = node_storage_bytes(arena_str(a, n->root).p, &storage, err);

	if (r < 0)
		return r;
	map = val_put(a, map, A_cpu, quantity_val(a, quantity_of_milli(cpus_milli, QUANTITY_DECIMAL_SI)));
	map = val_put(a, map, A_memory, bytes_val(a, memory));
	map = val_put(a, map, A_pods, quantity_val(a, quantity_of_int(n->max_pods, QUANTITY_DECIMAL_SI)));
	map = val_put(a, map, atom_make(a, STR("ephemeral-storage")), bytes_val(a, storage));
	for (size_t i = 0; i < m->n_huge; i++)
		map = val_put(a, map, atom_make(a, huge_name(a, m->huge[i].page_bytes)),
			      bytes_val(a, m->huge[i].page_bytes * m->huge[i].pages));
	VAL_EACH_MEMBER(d, f->devices)
		map = val_put(a, map, d->key, d->val);
	*ret = val_sorted(a, map);
	return 0;
}

/* There is never less than nothing. */
static struct quantity minus(struct quantity q, struct quantity less)
{
	q = quantity_sub(q, less);
	if (q.nanos < 0)
		q.nanos = 0;
	return q;
}

/* What is not reserved; memory that is in huge pages is of no use for anything else. */
static struct val allocatable_of(const struct node_facts *f, struct arena *a, struct val capacity)
{
	struct quantity huge = quantity_of_int(0, QUANTITY_BINARY_SI);
	struct val map = capacity;

	VAL_EACH_MEMBER(m, capacity) {
		struct val reserved = val_member(f->reserved, m->key);
		if (val_exists(reserved))
			map = val_put(a, map, m->key, quantity_val(a, minus(quantity_of(m->val), quantity_of(reserved))));
		if (resource_is_huge_page(atom_str(m->key)))
			huge = quantity_add(huge, quantity_of(m->val));
	}
	VAL_EACH_MEMBER(d, f->healthy_devices)
		map = val_put(a, map, d->key, d->val);
	if (huge.nanos)
		map = val_put(a, map, A_memory, quantity_val(a, minus(quantity_of(val_get(map, memory)), huge)));
	return map;
}

int node_capacity(const struct kubelet_node *n, const struct node_facts *f, struct arena *a, struct val *ret_capacity, struct val *ret_allocatable,
		  struct err *err)
{
	struct node_machine machine;
	int r = node_machine_read(a, "", &machine, err);

	if (r == 0)
		r = capacity_of(n, f, &machine, a, ret_capacity, err);
	if (r == 0)
		*ret_allocatable = allocatable_of(f, a, *ret_capacity);
	return r;
}

/* Resources that somebody else has put there stay. */
static struct val with_foreign(struct arena *a, struct val capacity, struct val old)
{
	VAL_EACH_MEMBER(m, old)
		if (resource_is_extended(atom_str(m->key)) && !val_exists(val_member(capacity, m->key)))
			capacity = val_put(a, capacity, m->key, m->val);
	return val_sorted(a, capacity);
}

/* ---- conditions ---- */

struct condition {
	const char *type;
	bool status;
	const char *reason;
	str message;
};

static struct val now_val(const struct node_facts *f, struct arena *a)
{
	char text[TIME_TEXT_MAX];
	return val_of_str(arena_str(a, time_format((struct timestamp){ .seconds = f->now_ns / 1000000000 }, text)));
}

/* Each condition keeps its place in the list; new ones are put at its end. */
static struct val condition_set(const struct node_facts *f, struct arena *a, struct val conditions, const struct condition *c)
{
	struct val now = now_val(f, a), since = now, status = c->status ? VAL_LIT("True") : VAL_LIT("False");
	size_t at = val_len(conditions);

	for (size_t i = 0; i < val_len(conditions); i++) {
		struct val old = val_at(conditions, i);
		if (!str_eq(val_str(old, type), str_of(c->type)))
			continue;
		at = i;
		if (str_eq(val_str(old, status), val_as_str(status)) && val_has(old, lastTransitionTime))
			since = val_get(old, lastTransitionTime);
	}
	struct val made = OBJECT(a, F(type, val_of_str(str_of(c->type))), F(status, status), F(lastHeartbeatTime, now),
				 F(lastTransitionTime, since), F(reason, val_of_str(str_of(c->reason))),
				 F(message, val_of_str(c->message)));
	return at < val_len(conditions) ? val_list_set(a, conditions, at, made) : val_list_append(a, conditions, made);
}

/* Several errors are put together as Go's Aggregate shows them. */
struct problems {
	struct arena *arena;
	struct val list;
};

static void problem_add(struct problems *p, str text)
{
	VAL_EACH(had, p->list)
		if (str_eq(val_as_str(*had), text))
			return;
	p->list = val_list_append(p->arena, p->list, val_of_str(text));
}

static str problems_text(const struct problems *p)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);

	if (val_len(p->list) == 1)
		return val_as_str(val_at(p->list, 0));
	VAL_EACH(one, p->list) {
		buf_add(&b, b.n ? STR(", ") : STR("["));
		buf_add(&b, val_as_str(*one));
	}
	buf_addc(&b, ']');
	return arena_str(p->arena, buf_str(&b));
}

static void runtime_problem(struct problems *p, struct val conditions, str type, const char *what)
{
	VAL_EACH(c, conditions) {
		if (!str_eq(val_str(*c, type), type))
			continue;
		str reason = val_str(*c, reason), message = val_str(*c, message);
		if (!val_bool(*c, status))
			problem_add(p, arena_printf(p->arena, "%s: " STR_FMT "=false reason:" STR_FMT " message:" STR_FMT, what,
						    STR_ARG(type), STR_ARG(reason), STR_ARG(message)));
		return;
	}
	problem_add(p, arena_printf(p->arena, "%s: <nil>", what));
}

static str ready_problems(const struct node_facts *f, struct arena *a)
{
	struct problems p = { .arena = a, .list = VAL_EMPTY_LIST };
	struct val conditions = val_get(f->runtime_status, status, conditions);

	if (val_exists(f->runtime_status)) {
		runtime_problem(&p, conditions, STR("RuntimeReady"), "container runtime not ready");
		runtime_problem(&p, conditions, STR("NetworkReady"), "container runtime network not ready");
	} else {
		problem_add(&p, STR("container runtime status check may not have completed yet"));
	}
	VAL_EACH(one, f->problems)
		problem_add(&p, val_as_str(*one));
	if (f->shutdown.n)
		problem_add(&p, f->shutdown);
	return val_len(p.list) ? problems_text(&p) : STR_NONE;
}

static struct val conditions_make(const struct node_facts *f, struct arena *a, struct val old)
{
	const struct {
		const char *type;
		bool pressure;
		const char *bad, *bad_text, *good, *good_text;
	} kinds[] = {
		{ "MemoryPressure", f->memory_pressure, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available",
		  "KubeletHasSufficientMemory", "kubelet has sufficient memory available" },
		{ "DiskPressure", f->disk_pressure, "KubeletHasDiskPressure", "kubelet has disk pressure", "KubeletHasNoDiskPressure",
		  "kubelet has no disk pressure" },
		{ "PIDPressure", f->pids_pressure, "KubeletHasInsufficientPID", "kubelet has insufficient PID available",
		  "KubeletHasSufficientPID", "kubelet has sufficient PID available" },
	};
	struct val list = val_len(old) ? old : VAL_EMPTY_LIST;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		bool bad = kinds[i].pressure;
		struct condition c = { kinds[i].type, bad, bad ? kinds[i].bad : kinds[i].good,
				       str_of(bad ? kinds[i].bad_text : kinds[i].good_text) };
		list = condition_set(f, a, list, &c);
	}
	str why = ready_problems(f, a);
	struct condition ready = { "Ready", !why.n, why.n ? "KubeletNotReady" : "KubeletReady",
				   why.n ? why : STR("kubelet is posting ready status") };
	return condition_set(f, a, list, &ready);
}

/* ---- the rest ---- */

static struct val addresses_make(const struct kubelet_node *n, struct arena *a)
{
	const struct {
		const char *type;
		str address;
	} all[] = { { "InternalIP", n->address }, { "InternalIP", n->address6 }, { "Hostname", n->name } };
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].address.n)
			val_add_item(&b, OBJECT(a, F(type, val_of_str(str_of(all[i].type))), F(address, val_of_str(all[i].address))));
	return val_end_list(&b);
}

static struct val info_make(const struct node_facts *f, const struct node_machine *m, struct arena *a)
{
	str name = val_str(f->runtime_version, runtimeName), version = val_str(f->runtime_version, runtimeVersion);
	struct val swap = m->swap_bytes ? OBJECT(a, F(capacity, val_of_int(m->swap_bytes))) : VAL_EMPTY;
	str runtime = arena_printf(a, STR_FMT "://" STR_FMT, STR_ARG(name), STR_ARG(version.n ? version : STR("Unknown")));

	return OBJECT(a, F(machineID, val_of_str(m->machine_id)), F(systemUUID, val_of_str(m->system_uuid)),
		      F(bootID, val_of_str(m->boot_id)), F(kernelVersion, val_of_str(m->kernel_version)),
		      F(osImage, val_of_str(m->os_image)), F(containerRuntimeVersion, val_of_str(runtime)),
		      F(kubeletVersion, val_of_str(f->kubelet_version)), F(operatingSystem, VAL_LIT("linux")),
		      F(architecture, val_of_str(node_architecture())), F(swap, swap));
}

static struct val handlers_make(const struct node_facts *f, struct arena *a)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(h, val_get(f->runtime_status, runtimeHandlers)) {
		struct val features = OBJECT(a, F(recursiveReadOnlyMounts, val_of_bool(val_bool(*h, features, recursiveReadOnlyMounts))),
					     F(userNamespaces, val_of_bool(val_bool(*h, features, userNamespaces))));
		val_add_item(&b, OBJECT(a, F(name, val_of_str(val_str(*h, name))), F(features, features)));
	}
	return val_end_list(&b);
}

static struct val features_make(const struct node_facts *f, struct arena *a)
{
	struct val features = val_get(f->runtime_status, features);

	if (!val_exists(features))
		return VAL_EMPTY;
	return OBJECT(a, F(supplementalGroupsPolicy, val_of_bool(val_bool(features, supplementalGroupsPolicy))));
}

static struct val declared(struct arena *a)
{
	return LIST(a, VAL_LIT("ExtendWebSocketsToKubelet"), VAL_LIT("InPlacePodLevelResourcesVerticalScaling"),
		    VAL_LIT("InPlacePodVerticalScalingInitContainers"), VAL_LIT("RestartAllContainersOnContainerExits"));
}

int node_status_make(const struct kubelet_node *n, const struct node_facts *f, struct arena *a, struct val old, struct val *ret, struct err *err)
{
	struct node_machine machine;
	struct val capacity;
	int r = node_machine_read(a, "", &machine, err);

	if (r == 0)
		r = capacity_of(n, f, &machine, a, &capacity, err);
	if (r < 0)
		return r;
	capacity = with_foreign(a, capacity, val_get(old, capacity));
	struct val endpoint = OBJECT(a, F(Port, val_of_int(f->port)));
	struct val status = OBJECT(a, F(capacity, capacity), F(allocatable, allocatable_of(f, a, capacity)),
				   F(conditions, conditions_make(f, a, val_get(old, conditions))),
				   F(addresses, addresses_make(n, a)),
				   F(daemonEndpoints, OBJECT(a, F(kubeletEndpoint, endpoint))),
				   F(nodeInfo, info_make(f, &machine, a)), F(images, f->images),
				   F(volumesInUse, val_get(old, volumesInUse)), F(volumesAttached, val_get(old, volumesAttached)),
				   F(runtimeHandlers, handlers_make(f, a)), F(features, features_make(f, a)),
				   F(declaredFeatures, declared(a)));
	return val_canonical(a, status, TYPE(core_v1, NodeStatus), NULL, ret, err);
}
