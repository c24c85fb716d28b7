/*
 * Subsets are made in the long form first, one per pod and port, and then put together. For every port (by name, protocol, number) the
 * addresses are collected; ports whose collections are equal share a subset.
 */
#include "controllers/endpoints_plan.h"

#include <stdlib.h>

#include "base/map.h"
#include "codec/atoms.h"
#include "controllers/labels.h"
#include "controllers/pod_control.h"
#include "controllers/service_pods.h"
#include "machinery/ip.h"

#define MANAGED_BY "endpoints.kubernetes.io/managed-by"
#define OVER_CAPACITY "endpoints.kubernetes.io/over-capacity"

/* ---- putting together ---- */

struct address {
	struct val val;
	bool ready;
	struct address *next;
};

/* All addresses that have a port. */
struct port {
	struct val val;              /* VAL_NONE: none at all */
	struct map by_key;           /* of addresses */
	struct address *addresses;
	size_t n;
	str text;                    /* of the sorted addresses, once they are all there */
	bool done;
	struct port *next;
};

struct ports {
	struct arena *arena;
	struct map by_key;
	struct port *first, **last;
};

static str address_key(struct arena *a, struct val address)
{
	return arena_printf(a, STR_FMT "|" STR_FMT, STR_ARG(val_str(address, ip)), STR_ARG(val_str(address, targetRef, uid)));
}

static struct port *port_of(struct ports *all, struct val val)
{
	str key = val_exists(val) ? arena_printf(all->arena, STR_FMT "|" STR_FMT "|%lld|" STR_FMT, STR_ARG(val_str(val, name)),
						 STR_ARG(val_str(val, protocol)), (long long)val_int(val, port),
						 STR_ARG(val_str(val, appProtocol)))
				  : STR("none");
	struct port *p = map_get(&all->by_key, key);

	if (p)
		return p;
	p = ARENA_NEW(all->arena, struct port);
	p->val = val;
	map_init(&p->by_key);
	*all->last = p;
	all->last = &p->next;
	(void)map_put(&all->by_key, key, p);
	return p;
}

static void add_address(struct ports *all, struct val port, struct val address, bool ready)
{
	struct port *p = port_of(all, port);
	str key = address_key(all->arena, address);
	struct address *x = map_get(&p->by_key, key);

	if (x) {
		x->ready &= ready; /* not ready counts more */
		return;
	}
	x = ARENA_NEW(all->arena, struct address);
	*x = (struct address){ .val = address, .ready = ready, .next = p->addresses };
	p->addresses = x;
	p->n++;
	(void)map_put(&p->by_key, key, x);
}

static int cmp_address(const void *a, const void *b)
{
	const struct address *x = *(const struct address *const *)a, *y = *(const struct address *const *)b;
	int r = str_cmp(val_str(x->val, ip), val_str(y->val, ip));

	return r ? r : str_cmp(val_str(x->val, targetRef, uid), val_str(y->val, targetRef, uid));
}

static const struct address **sorted_addresses(struct arena *a, const struct port *p)
{
	const struct address **list = ARENA_ARRAY(a, const struct address *, p->n + 1);
	size_t n = 0;

	for (const struct address *x = p->addresses; x; x = x->next)
		list[n++] = x;
	qsort(list, n, sizeof *list, cmp_address);
	return list;
}

static void make_text(struct arena *a, struct port *p)
{
	const struct address **list = sorted_addresses(a, p);
	size_t size = 0, at = 0;
	char *text;

	for (size_t i = 0; i < p->n; i++)
		size += address_key(a, list[i]->val).n + 2;
	text = ARENA_ARRAY(a, char, size + 1);
	for (size_t i = 0; i < p->n; i++) {
		str key = address_key(a, list[i]->val);
		memcpy(text + at, key.p, key.n);
		at += key.n;
		text[at++] = list[i]->ready ? '+' : '-';
		text[at++] = '\n';
	}
	p->text = str_span(text, at);
	map_done(&p->by_key);
}

static struct val address_list(struct arena *a, const struct port *p, bool ready)
{
	const struct address **list = sorted_addresses(a, p);
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < p->n; i++)
		if (list[i]->ready == ready)
			val_add_item(&b, list[i]->val);
	return b.n ? val_end_list(&b) : VAL_EMPTY;
}

static struct val subset_of(struct arena *a, struct port *first)
{
	struct val_builder ports = val_builder(a);

	for (struct port *p = first; p; p = p->next) {
		if (p->done || !str_eq(p->text, first->text))
			continue;
		p->done = true;
		if (val_exists(p->val))
			val_add_item(&ports, p->val);
	}
	return OBJECT(a, F(addresses, address_list(a, first, true)), F(notReadyAddresses, address_list(a, first, false)),
		      F(ports, ports.n ? val_end_list(&ports) : VAL_EMPTY));
}

static struct val put_together(struct ports *all)
{
	struct val_builder list = val_builder(all->arena);

	for (struct port *p = all->first; p; p = p->next)
		make_text(all->arena, p);
	for (struct port *p = all->first; p; p = p->next)
		if (!p->done)
			val_add_item(&list, subset_of(all->arena, p));
	map_done(&all->by_key);
	return val_end_list(&list);
}

struct val endpoint_subsets(struct arena *a, struct val subsets)
{
	struct ports all = { .arena = a, .last = &all.first };

	map_init(&all.by_key);
	VAL_EACH(s, subsets) {
		struct val ports = val_get(*s, ports), none = LIST(a, VAL_EMPTY);
		VAL_EACH(p, val_len(ports) ? ports : none) {
			VAL_EACH(x, val_get(*s, addresses))
				add_address(&all, *p, *x, true);
			VAL_EACH(x, val_get(*s, notReadyAddresses))
				add_address(&all, *p, *x, false);
		}
	}
	return put_together(&all);
}

/* ---- from pods ---- */

/* The pod's address of the service's (first) family. */
static struct val pod_address(struct arena *a, struct val service, struct val pod)
{
	str family = val_as_str(val_at(val_get(service, spec, ipFamilies), 0));
	struct ip ip;
	bool v6 = family.n ? str_eq(family, STR("IPv6")) : ip_parse(val_str(service, spec, clusterIP), &ip, NULL) && !ip_is_v4(&ip);

	VAL_EACH(p, val_get(pod, status, podIPs))
		if (ip_parse(val_str(*p, ip), &ip, NULL) && ip_is_v4(&ip) == !v6)
			return OBJECT(a, F(ip, val_get(*p, ip)),
				      F(hostname, pod_has_hostname(pod, service) ? val_get(pod, spec, hostname) : VAL_EMPTY),
				      F(nodeName, val_get(pod, spec, nodeName)),
				      F(targetRef, OBJECT(a, F(kind, VAL_LIT("Pod")), F(namespace, val_get(pod, metadata, namespace)),
							  F(name, val_get(pod, metadata, name)), F(uid, val_get(pod, metadata, uid)))));
	return VAL_EMPTY;
}

static void add_pod(struct ports *all, struct val service, struct val pod)
{
	struct val address = pod_address(all->arena, service, pod), ports = val_get(service, spec, ports);
	bool ready = val_bool(service, spec, publishNotReadyAddresses) || pod_is_ready(pod);

	if (!val_exists(address))
		return;
	if (!val_len(ports) && str_eq(val_str(service, spec, clusterIP), STR("None")))
		add_address(all, VAL_EMPTY, address, ready);
	VAL_EACH(p, ports) {
		int64_t number = pod_service_port(pod, *p);
		str name = val_str(*p, name);
		if (number)
			add_address(all, OBJECT(all->arena, F(name, name.n ? VAL_STR(name) : VAL_EMPTY), F(port, val_of_int(number)),
						F(protocol, val_get(*p, protocol)), F(appProtocol, val_get(*p, appProtocol))),
				    address, ready);
	}
}

static struct val subsets_of(struct arena *a, struct val service, struct val pods)
{
	struct ports all = { .arena = a, .last = &all.first };

	map_init(&all.by_key);
	VAL_EACH(pod, pods)
		if (pod_has_endpoint(*pod, val_bool(service, spec, publishNotReadyAddresses)))
			add_pod(&all, service, *pod);
	return put_together(&all);
}

/* ---- too many ---- */

static size_t count(struct val subsets, bool ready)
{
	size_t n = 0;

	VAL_EACH(s, subsets)
		n += val_len(ready ? val_get(*s, addresses) : val_get(*s, notReadyAddresses));
	return n;
}

static struct val head(struct arena *a, struct val list, size_t n)
{
	return n ? val_list(a, list.items, MIN((size_t)val_len(list), n)) : VAL_EMPTY;
}

/* Ready ones come first; each subset loses its share. True when something was left out. */
static bool cut_down(struct arena *a, struct val *subsets, size_t capacity)
{
	size_t ready = count(*subsets, true), waiting = count(*subsets, false);
	bool cut_ready = ready > capacity;
	size_t total = cut_ready ? ready : waiting, max = cut_ready ? capacity : capacity - ready, left = max;
	struct val_builder list = val_builder(a);

	if (ready + waiting <= capacity)
		return false;
	VAL_EACH(s, *subsets) {
		struct val from = cut_ready ? val_get(*s, addresses) : val_get(*s, notReadyAddresses), subset = *s;
		size_t n = MIN((size_t)((double)val_len(from) / (double)total * (double)max), left);

		left -= n;
		if (cut_ready)
			subset = val_without(a, val_with(a, subset, head(a, from, n), addresses), notReadyAddresses);
		else
			subset = val_with(a, subset, head(a, from, n), notReadyAddresses);
		val_add_item(&list, subset);
	}
	*subsets = val_end_list(&list);
	return true;
}

/* ---- the plan ---- */

static struct val labels_of(struct arena *a, struct val service)
{
	struct val labels = labels_put(a, val_get(service, metadata, labels), STR(MANAGED_BY), VAL_LIT("endpoint-controller"));
	return labels_put(a, labels, STR(HEADLESS_LABEL), service_is_headless(service) ? VAL_LIT("") : VAL_EMPTY);
}

struct val endpoints_plan(struct arena *a, struct val service, struct val pods, struct val current, str trigger, size_t capacity)
{
	struct val subsets = subsets_of(a, service, pods), labels = labels_of(a, service), next = current;
	bool cut = cut_down(a, &subsets, capacity);
	struct val before = val_get(current, subsets);

	if (val_exists(current) && val_equal(labels, val_get(current, metadata, labels)) && cut == annotation_has(current, STR(OVER_CAPACITY)) &&
	    (val_equal(val_exists(before) ? before : VAL_EMPTY_LIST, subsets) || val_equal(endpoint_subsets(a, before), subsets)))
		return VAL_EMPTY;
	if (!val_exists(current))
		next = OBJECT(a, F(metadata, OBJECT(a, F(name, val_get(service, metadata, name)), F(namespace, val_get(service, metadata, namespace)))));
	next = val_with(a, next, val_len(subsets) ? subsets : VAL_EMPTY, subsets);
	next = val_with(a, next, labels, metadata, labels);
	next = annotation_put(a, next, STR(TRIGGER_TIME_ANNOTATION), trigger.n ? VAL_STR(trigger) : VAL_EMPTY);
	return annotation_put(a, next, STR(OVER_CAPACITY), cut ? VAL_LIT("truncated") : VAL_EMPTY);
}
