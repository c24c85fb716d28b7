#include "machinery/resources.h"

#include <stdlib.h>

#include "base/map.h"
#include "codec/atoms.h"
#include "machinery/names.h"

/* ---- names ---- */

static bool in(str name, const str *list)
{
	for (; list->p; list++)
		if (str_eq(*list, name))
			return true;
	return false;
}

bool resource_is_native(str name) { return str_chr(name, '/') < 0 || str_find(name, STR("kubernetes.io/")) >= 0; }
bool resource_is_huge_page(str name) { return str_starts(name, STR("hugepages-")); }
bool resource_can_overcommit(str name) { return resource_is_native(name) && !resource_is_huge_page(name); }

bool resource_is_extended(str name)
{
	char quota[NAME_SUBDOMAIN_MAX + NAME_LABEL_MAX + 32];

	if (resource_is_native(name) || str_starts(name, STR("requests.")))
		return false;
	/* It must also be a good name with the prefix that quotas use. */
	if (name.n + sizeof("requests.") > sizeof(quota))
		return false;
	memcpy(quota, "requests.", sizeof("requests.") - 1);
	memcpy(quota + sizeof("requests.") - 1, name.p, name.n);
	return !name_check_label_key(str_span(quota, name.n + sizeof("requests.") - 1), NULL);
}

bool resource_is_standard(str name)
{
	static const str standard[] = {
		STR_INIT("cpu"), STR_INIT("memory"), STR_INIT("ephemeral-storage"), STR_INIT("requests.cpu"),
		STR_INIT("requests.memory"), STR_INIT("requests.ephemeral-storage"), STR_INIT("limits.cpu"),
		STR_INIT("limits.memory"), STR_INIT("limits.ephemeral-storage"), STR_INIT("pods"),
		STR_INIT("resourcequotas"), STR_INIT("services"), STR_INIT("replicationcontrollers"), STR_INIT("secrets"),
		STR_INIT("configmaps"), STR_INIT("persistentvolumeclaims"), STR_INIT("storage"),
		STR_INIT("requests.storage"), STR_INIT("services.nodeports"), STR_INIT("services.loadbalancers"),
		{ NULL, 0 },
	};
	return in(name, standard) || resource_is_huge_page(name) || str_starts(name, STR("requests.hugepages-"));
}

bool resource_is_of_containers(str name)
{
	static const str standard[] = { STR_INIT("cpu"), STR_INIT("memory"), STR_INIT("ephemeral-storage"), { NULL, 0 } };
	return in(name, standard) || resource_is_huge_page(name);
}

static bool is_compute(str name) { return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")); }

bool resource_is_pod_level(str name) { return is_compute(name) || resource_is_huge_page(name); }

bool resource_is_integer(str name)
{
	static const str counted[] = {
		STR_INIT("pods"), STR_INIT("resourcequotas"), STR_INIT("services"), STR_INIT("replicationcontrollers"),
		STR_INIT("secrets"), STR_INIT("configmaps"), STR_INIT("persistentvolumeclaims"),
		STR_INIT("services.nodeports"), STR_INIT("services.loadbalancers"), { NULL, 0 },
	};
	return in(name, counted) || resource_is_extended(name);
}

/* ---- amounts ---- */

struct quantity quantity_of(struct val text)
{
	struct quantity q;
	struct err ignored;
	return quantity_parse(val_as_str(text), &q, &ignored) < 0 ? (struct quantity){ 0 } : q;
}

struct val sorted_find(struct val map, str key)
{
	uint32_t low = 0, high = val_is(map, VAL_OBJECT) ? map.n : 0;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int order = str_cmp(atom_str(map.members[mid].key), key);
		if (order == 0)
			return map.members[mid].val;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return VAL_EMPTY;
}

/* Amounts by name. Entries are in the arena, the map only finds them. */
struct amount {
	atom name;
	struct quantity q;
	struct amount *next;
};

struct amounts {
	struct arena *arena;
	struct map by_name;
	struct amount *all;
};

static void amounts_done(struct amounts *t) { map_done(&t->by_name); }

static struct amount *amount_of(struct amounts *t, atom name, bool *ret_new)
{
	struct amount *found = map_get(&t->by_name, atom_str(name));
	*ret_new = !found;
	if (found)
		return found;
	found = ARENA_NEW(t->arena, struct amount);
	found->name = name;
	found->next = t->all;
	t->all = found;
	map_put(&t->by_name, atom_str(name), found);
	return found;
}

static void amounts_add(struct amounts *t, struct val list)
{
	VAL_EACH_MEMBER(m, list) {
		bool new;
		struct amount *amount = amount_of(t, m->key, &new);
		amount->q = new ? quantity_of(m->val) : quantity_add(amount->q, quantity_of(m->val));
	}
}

static void amounts_raise(struct amounts *t, atom name, struct quantity q)
{
	bool new;
	struct amount *amount = amount_of(t, name, &new);
	if (new || quantity_cmp(q, amount->q) > 0)
		amount->q = q;
}

bool container_is_sidecar(struct val container) { return str_eq(val_str(container, restartPolicy), STR("Always")); }

/* While an init container runs, the sidecars before it do too. */
static void raise_for_init(struct amounts *most, const struct amounts *sidecars, struct val list)
{
	VAL_EACH_MEMBER(m, list) {
		const struct amount *beside = map_get(&sidecars->by_name, atom_str(m->key));
		struct quantity q = quantity_of(m->val);
		amounts_raise(most, m->key, beside ? quantity_add(q, beside->q) : q);
	}
}

static int member_cmp(const void *a, const void *b)
{
	return str_cmp(atom_str(((const struct member *)a)->key), atom_str(((const struct member *)b)->key));
}

static struct val amounts_map(const struct amounts *t)
{
	size_t n = map_len(&t->by_name), i = 0;
	struct member *members = ARENA_ARRAY(t->arena, struct member, n);
	char text[QUANTITY_TEXT_MAX];

	for (const struct amount *amount = t->all; amount; amount = amount->next)
		members[i++] = (struct member){ amount->name,
						VAL_STR(arena_str(t->arena, quantity_format(amount->q, text))) };
	qsort(members, n, sizeof(*members), member_cmp);
	return val_object(t->arena, members, n);
}

struct val pod_container_resources(struct arena *a, struct val spec, atom which)
{
	CLEANUP(amounts_done) struct amounts sum = { .arena = a }, sidecars = { .arena = a }, most = { .arena = a };

	VAL_EACH(c, val_get(spec, containers))
		amounts_add(&sum, val_member(val_get(*c, resources), which));
	VAL_EACH(c, val_get(spec, initContainers)) {
		struct val list = val_member(val_get(*c, resources), which);
		if (container_is_sidecar(*c)) {
			amounts_add(&sum, list);
			amounts_add(&sidecars, list);
		} else {
			raise_for_init(&most, &sidecars, list);
		}
	}
	for (const struct amount *amount = sidecars.all; amount; amount = amount->next)
		amounts_raise(&most, amount->name, amount->q);
	for (const struct amount *amount = most.all; amount; amount = amount->next)
		amounts_raise(&sum, amount->name, amount->q);
	return amounts_map(&sum);
}

/* ---- QoS ---- */

/* cpu and memory, in this order. */
struct compute {
	bool given[2];
	struct quantity q[2];
};

static const str compute_names[2] = { STR_INIT("cpu"), STR_INIT("memory") };

/* Adds what is above zero; true when both resources are. */
static bool compute_add(struct compute *sum, struct val list)
{
	unsigned n = 0;
	for (int i = 0; i < 2; i++) {
		struct quantity q = quantity_of(val_find(list, compute_names[i]));
		if (q.nanos <= 0)
			continue;
		n++;
		sum->q[i] = sum->given[i] ? quantity_add(sum->q[i], q) : q;
		sum->given[i] = true;
	}
	return n == 2;
}

str pod_qos_class(struct val spec)
{
	struct compute requests = { 0 }, limits = { 0 };
	struct val of_pod = val_get(spec, resources);
	bool guaranteed = true;

	if (val_exists(of_pod)) {
		compute_add(&requests, val_get(of_pod, requests));
		if (val_len(val_get(of_pod, limits)))
			guaranteed = compute_add(&limits, val_get(of_pod, limits));
	} else {
		const struct val lists[2] = { val_get(spec, containers), val_get(spec, initContainers) };
		for (int i = 0; i < 2; i++)
			VAL_EACH(c, lists[i]) {
				compute_add(&requests, val_get(*c, resources, requests));
				guaranteed &= compute_add(&limits, val_get(*c, resources, limits));
			}
	}
	if (!requests.given[0] && !requests.given[1] && !limits.given[0] && !limits.given[1])
		return STR("BestEffort");
	for (int i = 0; i < 2; i++)
		if (requests.given[i] != limits.given[i] || (requests.given[i] && quantity_cmp(requests.q[i], limits.q[i])))
			guaranteed = false;
	return guaranteed ? STR("Guaranteed") : STR("Burstable");
}
