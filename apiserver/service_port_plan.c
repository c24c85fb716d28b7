/* Which node ports a Service takes. Planned on the map of ports, as often as it takes until the map is stored. */
#include <inttypes.h>

#include "apiserver/apiserver.h"
#include "apiserver/hooks_service.h"
#include "apiserver/write.h"
#include "codec/atoms.h"

/*
 * What a dry run says when any port would do: one that no range has. And how many rules a Service with node ports may have:
 * more than anybody's, few enough to be compared with each other before validation has looked at them.
 */
enum { DRY_RUN_PORT = 32768, RULES_MAX = 4096 };

struct plan {
	struct allocation *al;
	struct port_map *map;
	struct val before;            /* the Service as it came */
	struct val *rules;            /* its ports, on their way to what they are going to be */
	size_t n;
};

static bool has_node_ports(struct val service)
{
	return service_is(service, STR("NodePort")) || service_is(service, STR("LoadBalancer"));
}

static bool has_health_check(struct val service)
{
	return service_is(service, STR("LoadBalancer")) && str_eq(val_str(service, spec, externalTrafficPolicy), STR("Local"));
}

static bool wants_ports(struct val service)
{
	struct val said = val_get(service, spec, allocateLoadBalancerNodePorts);
	return service_is(service, STR("NodePort")) ||
	       (service_is(service, STR("LoadBalancer")) && (!val_exists(said) || val_as_bool(said)));
}

static bool contains(const int *ports, size_t n, int64_t port)
{
	for (size_t i = 0; i < n; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* All node ports of the list, in the arena. */
static size_t collect(struct arena *a, struct val ports, int **ret)
{
	size_t n = 0;
	*ret = ARENA_ARRAY(a, int, val_len(ports) + 1);
	VAL_EACH(p, ports)
		if (val_int(*p, nodePort))
			(*ret)[n++] = (int)val_int(*p, nodePort);
	return n;
}

/* ---- taking ---- */

/* This one; *ret_why says why not. */
static bool take(struct plan *p, int64_t port, str *ret_why)
{
	struct allocation *al = p->al;
	bool dry = al->q->dry_run, inside = port >= p->map->first && port <= p->map->last;
	*ret_why = STR("provided port is already allocated");
	if (!dry && !inside) {
		*ret_why = arena_printf(al->q->arena, "provided port is not in the valid range. The range of valid ports is %d-%d",
					p->map->first, p->map->last);
		return false;
	}
	if ((inside && port_map_has(p->map, (int)port)) || (dry && contains(al->ports, al->n_ports, port)))
		return false;
	port_map_put(p->map, (int)port, true);
	al->ports[al->n_ports++] = (int)port;
	return true;
}

/* Any; 0: there is none. */
static int take_any(struct plan *p)
{
	struct allocation *al = p->al;
	int port = DRY_RUN_PORT;
	if (!al->q->dry_run) {
		port = port_map_next(p->map);
		if (port)
			port_map_put(p->map, port, true);
		else
			return 0;
	} else {
		for (size_t i = 0; i < al->n_ports; i++)
			port = i == 0 ? al->ports[i] : MAX(port, al->ports[i]);
		port++;
	}
	al->ports[al->n_ports++] = port;
	return port;
}

static int refused(struct plan *p, size_t i, int64_t port, str why)
{
	struct request *q = p->al->q;
	struct field_errors e;
	field_errors_init(&e, q->arena);
	field_invalid(&e, FIELD(FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "ports"), i), "nodePort"), val_of_int(port), STR_FMT,
		      STR_ARG(why));
	return fail_invalid(q, STR_NONE, STR("Service"), val_str(p->al->service, metadata, name), &e);
}

static int exhausted(struct plan *p) { return fail_internal(p->al->q, "failed to allocate a nodePort: range is full"); }

static int64_t number_of(const struct plan *p, size_t i) { return val_int(p->rules[i], port); }
static int64_t node_port(const struct plan *p, size_t i) { return val_int(p->rules[i], nodePort); }

static void put_port(struct plan *p, size_t i, int64_t port)
{
	p->rules[i] = val_put(p->al->q->arena, p->rules[i], A_nodePort, val_of_int(port));
}

/* The first node port that rules with the port number of rule i name, among the first n of them; 0: none. */
static int64_t first_port(const struct plan *p, size_t i, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (number_of(p, k) == number_of(p, i) && node_port(p, k))
			return node_port(p, k);
	return 0;
}

/* A new Service: rules with the same port number (of different protocols) share a node port. */
static int take_new(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		int64_t own = node_port(p, i), port = first_port(p, i, i);
		str why;
		if (!own && !wants_ports(p->al->service))
			continue;
		if (port && own && own != port) {
			if (!take(p, own, &why))
				return refused(p, i, own, why);
			continue;
		}
		if (!port) {
			port = first_port(p, i, p->n);
			if (port && !take(p, port, &why))
				return refused(p, i, port, why);
			if (!port && !(port = take_any(p)))
				return exhausted(p);
		}
		put_port(p, i, port);
	}
	return 0;
}

static bool is_repeated(const struct plan *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (node_port(p, k) == node_port(p, i) &&
		    str_eq(val_str(p->rules[k], protocol), val_str(p->rules[i], protocol)))
			return true;
	return false;
}

/* A changed one: what it had it keeps, what is new is taken, what is gone is left. */
static int take_changed(struct plan *p)
{
	struct allocation *al = p->al;
	struct arena *a = al->q->arena;
	int *had, *has;
	size_t n_had = collect(a, val_get(al->old, spec, ports), &had), n_has;
	for (size_t i = 0; i < p->n; i++) {
		int64_t port = node_port(p, i);
		str why;
		if (!port && !wants_ports(al->service))
			continue;
		if (!port) {
			if (!(port = take_any(p)))
				return exhausted(p);
			put_port(p, i, port);
		} else if (!contains(had, n_had, port) && !contains(al->ports, al->n_ports, port) && !take(p, port, &why)) {
			return refused(p, i, port, why);
		}
		if (is_repeated(p, i)) {
			str protocol = val_str(p->rules[i], protocol);
			return fail_plain(al->q, "duplicate nodePort: {" STR_FMT " %" PRId64 "}", STR_ARG(protocol), port);
		}
	}
	n_has = collect(a, val_list(a, p->rules, p->n), &has);
	for (size_t i = 0; i < n_had; i++)
		if (!contains(has, n_has, had[i]))
			al->left_ports[al->n_left_ports++] = had[i];
	return 0;
}

static int take_health_check(struct plan *p)
{
	struct allocation *al = p->al;
	int64_t port = val_int(al->service, spec, healthCheckNodePort);
	str why;
	if (port && !take(p, port, &why))
		return fail_internal(al->q, "failed to allocate requested HealthCheck NodePort %" PRId64 ": " STR_FMT, port,
				     STR_ARG(why));
	if (!port && !(port = take_any(p)))
		return fail_internal(al->q, "failed to allocate a HealthCheck NodePort 0: range is full");
	al->service = val_with(al->q->arena, al->service, val_of_int(port), spec, healthCheckNodePort);
	return 0;
}

static int plan_ports(struct port_map *m, void *arg)
{
	struct plan *p = arg;
	struct allocation *al = p->al;
	struct val ports = val_get(p->before, spec, ports);
	struct arena *a = al->q->arena;
	bool is_new = !val_exists(al->old);
	int r = 0;
	p->map = m;
	al->service = p->before;
	al->n_ports = al->n_left_ports = 0;
	for (size_t i = 0; i < p->n; i++)
		p->rules[i] = val_at(ports, i);
	if (!is_new && has_node_ports(al->old) && !has_node_ports(al->service))
		al->n_left_ports = collect(a, val_get(al->old, spec, ports), &al->left_ports);
	if (has_node_ports(al->service)) {
		r = is_new ? take_new(p) : take_changed(p);
		al->service = val_with(a, al->service, p->n ? val_list(a, p->rules, p->n) : VAL_EMPTY, spec, ports);
	}
	if (r == 0 && has_health_check(al->service) && (is_new || !has_health_check(al->old)))
		r = take_health_check(p);
	else if (r == 0 && !is_new && has_health_check(al->old) && !has_health_check(al->service))
		al->left_ports[al->n_left_ports++] = (int)val_int(al->old, spec, healthCheckNodePort);
	return r;
}

int service_ports_settle(struct allocation *al)
{
	struct arena *a = al->q->arena;
	struct err err = ERR_INIT;
	struct plan p = { .al = al, .before = al->service, .n = val_len(val_get(al->service, spec, ports)) };
	if (!has_node_ports(al->service) && !(val_exists(al->old) && has_node_ports(al->old)))
		return 0;
	if (p.n > RULES_MAX) {
		struct field_errors e;
		field_errors_init(&e, a);
		field_too_many(&e, FIELD(FIELD(NULL, "spec"), "ports"), (int64_t)p.n, RULES_MAX);
		return fail_invalid(al->q, STR_NONE, STR("Service"), val_str(al->service, metadata, name), &e);
	}
	p.rules = ARENA_ARRAY(a, struct val, p.n);
	al->ports = ARENA_ARRAY(a, int, p.n + 1);
	al->left_ports = ARENA_ARRAY(a, int, val_len(val_get(al->old, spec, ports)) + 1);
	int r = service_ports_change(al->q->server, al->q->dry_run, plan_ports, &p, &err);
	if (r < 0) { /* nothing was stored, so nothing is to be given back */
		al->n_ports = al->n_left_ports = 0;
		return val_exists(al->q->failure) ? r : fail_err(al->q, &err);
	}
	return 0;
}

/* ---- giving back ---- */

void service_ports_leave(struct allocation *al, struct val service)
{
	al->n_left_ports = collect(al->q->arena, val_get(service, spec, ports), &al->left_ports);
	if (has_health_check(service) && val_int(service, spec, healthCheckNodePort))
		al->left_ports[al->n_left_ports++] = (int)val_int(service, spec, healthCheckNodePort);
}

struct freed {
	const int *ports;
	size_t n;
};

static int plan_free(struct port_map *m, void *arg)
{
	const struct freed *f = arg;
	for (size_t i = 0; i < f->n; i++)
		port_map_put(m, f->ports[i], false);
	return 0;
}

int service_ports_free(struct apiserver *s, const int *ports, size_t n, struct err *err)
{
	struct freed f = { ports, n };
	return service_ports_change(s, false, plan_free, &f, err);
}
