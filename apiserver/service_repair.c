/*
 * Repair. A Service and what it takes are written one after the other, so a crash in between leaves one without the other.
 * Taken first and given back last, it is always the address that is left: wasted, never given out twice.
 */
#include "apiserver/cache.h"
#include "apiserver/inprocess.h"
#include "apiserver/service_ip_priv.h"
#include "base/clock.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "codec/time.h"

/* A port that nobody has is freed when it was found so for the third time; an address when it is older than any request. */
enum { ROUNDS_BEFORE_FREED = 3, ADDRESS_GRACE_S = 60 };

static bool holds(struct val service, str address)
{
	struct ip want, ip;
	if (!ip_parse(address, &want, NULL) || str_eq(val_str(service, spec, type), STR("ExternalName")))
		return false;
	VAL_EACH(text, val_get(service, spec, clusterIPs))
		if (ip_parse(val_as_str(*text), &ip, NULL) && ip_equal(&ip, &want))
			return true;
	return false;
}

/* The Service that an IPAddress says it is for; VAL_NONE: it does not exist. */
static struct val parent_of(const struct kind *services, struct arena *a, struct val address)
{
	struct val ref = val_get(address, spec, parentRef);
	if (val_str(ref, group).n || !str_eq(val_str(ref, resource), STR("services")))
		return VAL_EMPTY;
	const struct object *o = cache_get(services, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(val_str(ref, namespace)),
								  STR_ARG(val_str(ref, name))));
	return o ? o->val : VAL_EMPTY;
}

/* Makes the address of a Service its own. */
static int claim(struct apiserver *s, const struct kind *services, const struct kind *addresses, struct val service,
		 const struct ip *ip, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct ip_owner owner = { s, val_str(service, metadata, namespace), val_str(service, metadata, name), false };
	char text[IP_TEXT_MAX];
	const struct object *o = cache_get(addresses, ip_format(ip, text));
	struct val ref = o ? val_get(o->val, spec, parentRef) : VAL_EMPTY;
	if (o && str_eq(val_str(ref, namespace), owner.namespace) && str_eq(val_str(ref, name), owner.name) &&
	    str_eq(val_str(ref, resource), STR("services")))
		return 0;
	if (o && holds(parent_of(services, &a, o->val), str_of(text))) {
		log_warn("two Services have the same address; recreate one of them", KV("address", str_of(text)),
			 KV("namespace", owner.namespace), KV("service", owner.name));
		return 0;
	}
	str key = arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(owner.namespace), STR_ARG(owner.name));
	const struct object *now = cache_get(services, key);
	if (!now || !holds(now->val, str_of(text)))
		return 0; /* it went while others were looked at */
	int r = o ? service_ip_give_back(s, ip, err) : 0;
	if (r == 0)
		r = service_ip_take(&owner, ip, err);
	if (r == -ERR_INVALID) { /* outside of all ranges: somebody has to recreate it */
		log_warn("the address of a Service cannot be its own", KV("address", str_of(text)),
			 KV("namespace", owner.namespace), KV("service", owner.name), KV("error", err));
		return 0;
	}
	return r;
}

static int claim_all(struct apiserver *s, const struct kind *services, const struct kind *addresses, struct err *err)
{
	CLEANUP(omap_freep) struct omap *all = omap_snapshot(services->objects);
	struct omap_iter it;
	const struct object *o;
	omap_seek(&it, all, STR_NONE);
	while ((o = omap_next(&it, NULL))) {
		struct ip ip;
		if (str_eq(val_str(o->val, spec, type), STR("ExternalName")))
			continue;
		VAL_EACH(text, val_get(o->val, spec, clusterIPs)) {
			int r = ip_parse(val_as_str(*text), &ip, NULL) ? claim(s, services, addresses, o->val, &ip, err) : 0;
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static bool is_young(struct val address)
{
	struct timestamp made;
	return time_parse(val_str(address, metadata, creationTimestamp), &made, NULL) == 0 &&
	       made.seconds + ADDRESS_GRACE_S > clock_wall_ns() / 1000000000;
}

static int free_leaked(struct apiserver *s, const struct kind *services, const struct kind *addresses, struct err *err)
{
	CLEANUP(omap_freep) struct omap *all = omap_snapshot(addresses->objects);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct omap_iter it;
	const struct object *o;
	omap_seek(&it, all, STR_NONE);
	while ((o = omap_next(&it, NULL))) {
		str manager = val_as_str(val_find(val_get(o->val, metadata, labels),
						  STR("ipaddress.kubernetes.io/managed-by")));
		struct ip ip;
		arena_reset(&a);
		if (!str_eq(manager, STR("ipallocator.k8s.io")) || is_young(o->val) || !ip_parse(o->key, &ip, NULL) ||
		    holds(parent_of(services, &a, o->val), o->key))
			continue;
		log_warn("an address that no Service has is freed", KV("address", o->key));
		int r = service_ip_give_back(s, &ip, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What one repair finds out about ports. */
struct port_repair {
	struct apiserver *server;
	uint8_t *used, *leaked;       /* a bit per port: some Service has it; it is taken, and none has */
};

static int rebuild_ports(struct port_map *m, void *arg)
{
	struct port_repair *p = arg;
	const struct ip_allocators *al = p->server->allocators;
	const struct kind *services = kinds_find(&p->server->kinds, STR_NONE, STR("services"));
	struct port_map used = { .first = m->first, .last = m->last, .taken = p->used }, leaked = used;
	struct omap_iter it;
	const struct object *o;
	leaked.taken = p->leaked;
	omap_seek(&it, services->objects, STR_NONE);
	while ((o = omap_next(&it, NULL)))
		service_ports_mark(&used, o->val, true);
	for (int port = m->first; port <= m->last; port++) {
		bool is_used = port_map_has(&used, port), is_taken = port_map_has(m, port);
		port_map_put(&leaked, port, is_taken && !is_used);
		if (is_used && !is_taken) {
			log_warn("a node port that a Service has was not taken; it is now", KV("port", port));
			port_map_put(m, port, true);
		} else if (is_taken && !is_used && al->leaks[port - m->first] >= ROUNDS_BEFORE_FREED) {
			log_warn("a node port that no Service has is freed", KV("port", port));
			port_map_put(m, port, false);
		}
	}
	return 0;
}

static int repair_ports(struct apiserver *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct ip_allocators *al = s->allocators;
	size_t n = port_count(al) / 8 + 1;
	struct port_repair p = { s, arena_zero_of(&a, n, 1), arena_zero_of(&a, n, 1) };
	int r = service_ports_change(s, false, rebuild_ports, &p, err);
	for (size_t i = 0; i < port_count(al) && r == 0; i++) {
		bool leaked = p.leaked[i / 8] >> i % 8 & 1;
		al->leaks[i] = leaked && al->leaks[i] < ROUNDS_BEFORE_FREED ? (uint8_t)(al->leaks[i] + 1) : 0;
	}
	return r;
}

int service_repair(struct apiserver *s, struct err *err)
{
	const struct kind *services = kinds_find(&s->kinds, STR_NONE, STR("services"));
	const struct kind *addresses = kinds_find(&s->kinds, STR("networking.k8s.io"), STR("ipaddresses"));
	if (!services || !addresses)
		return 0;
	int r = cache_wait_current(s->cache, err);
	if (r == 0)
		r = claim_all(s, services, addresses, err);
	if (r == 0)
		r = free_leaked(s, services, addresses, err);
	return r < 0 ? r : repair_ports(s, err);
}
