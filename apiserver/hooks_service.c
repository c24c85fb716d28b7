/*
 * Services: before one is written, its families are settled and its addresses and node ports taken; afterwards they are its own,
 * or given back. What is taken first may be lost by a crash, and is found by service_repair; what were given back first could
 * belong to two. The rules are those of Kubernetes' Service storage, step by step.
 */
#include "apiserver/hooks_service.h"

#include "apiserver/apiserver.h"
#include "apiserver/hooks.h"
#include "apiserver/inprocess.h"
#include "apiserver/service_ip.h"
#include "apiserver/write.h"
#include "base/fiber.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "machinery/validate.h"

enum { CLEANUP_MS = 10000 };

bool service_is(struct val service, str type) { return str_eq(val_str(service, spec, type), type); }

static bool has_addresses(struct val service)
{
	str first = val_as_str(val_at(val_get(service, spec, clusterIPs), 0));
	return !service_is(service, STR("ExternalName")) && !str_eq(first, STR("None"));
}

static int invalid(struct allocation *al, const struct field_errors *e)
{
	return fail_invalid(al->q, STR_NONE, STR("Service"), val_str(al->service, metadata, name), e);
}

/* ---- addresses ---- */

/* Takes the address at i of clusterIPs, where "" stands for any of the family. */
static int take_address(struct allocation *al, size_t i)
{
	struct request *q = al->q;
	struct err err = ERR_INIT;
	struct val ips = val_get(al->service, spec, clusterIPs);
	str family = val_as_str(val_at(val_get(al->service, spec, ipFamilies), i)), text = val_as_str(val_at(ips, i));
	str name = val_str(al->service, metadata, name);
	struct ip_owner owner = { q->server, val_str(al->service, metadata, namespace), name, q->dry_run };
	struct ip ip;
	char room[IP_TEXT_MAX];
	int r;
	if (!text.n) {
		r = service_ip_take_any(&owner, family, &ip, &err);
		if (r == 1)
			return fail_internal(q, "failed to allocate a serviceIP for Service \"" STR_FMT "\": range is full",
					     STR_ARG(name));
	} else if (!ip_parse(text, &ip, NULL)) {
		return fail_internal(q, "failed to parse service IP \"" STR_FMT "\"", STR_ARG(text));
	} else {
		r = service_ip_take(&owner, &ip, &err);
	}
	if (r == -ERR_INVALID) {
		struct field_errors e;
		field_errors_init(&e, q->arena);
		field_invalid(&e, FIELD(FIELD(NULL, "spec"), "clusterIPs"), ips, "failed to allocate IP%s" STR_FMT ": " STR_FMT,
			      text.n ? " " : "", STR_ARG(text), STR_ARG(err_str(&err)));
		return invalid(al, &e);
	}
	if (r < 0)
		return fail_err(q, &err);
	if (!q->dry_run)
		al->ips[al->n_ips++] = ip;
	if (!text.n)
		ips = val_list_set(q->arena, ips, i, val_of_str(arena_str(q->arena, ip_format(&ip, room))));
	al->service = val_with(q->arena, al->service, ips, spec, clusterIPs);
	if (i == 0)
		al->service = val_with(q->arena, al->service, val_at(ips, 0), spec, clusterIP);
	return 0;
}

/* Addresses for all families from the one at `from` on. */
static int take_addresses(struct allocation *al, size_t from)
{
	struct val ips = val_get(al->service, spec, clusterIPs);
	size_t n = val_len(val_get(al->service, spec, ipFamilies));
	if (!has_addresses(al->service))
		return 0;
	for (size_t i = val_len(ips); i < n; i++)
		ips = val_list_append(al->q->arena, ips, VAL_LIT(""));
	al->service = val_with(al->q->arena, al->service, ips, spec, clusterIPs);
	for (size_t i = from; i < n; i++) {
		int r = take_address(al, i);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What the old Service has at `from` and behind is given back once the new one is stored. */
static void leave_addresses(struct allocation *al, size_t from)
{
	struct val ips = val_get(al->old, spec, clusterIPs);
	for (size_t i = from; i < val_len(ips) && al->n_left_ips < ARRAY_LEN(al->left_ips); i++)
		al->n_left_ips += ip_parse(val_as_str(val_at(ips, i)), &al->left_ips[al->n_left_ips], NULL);
}

static int change_addresses(struct allocation *al)
{
	struct val now = al->service, old = al->old;
	bool external = service_is(now, STR("ExternalName")), was_external = service_is(old, STR("ExternalName"));
	size_t n = val_len(val_get(now, spec, ipFamilies)), had = val_len(val_get(old, spec, ipFamilies));
	if (families_are_kept(now, old))
		return 0;
	if (was_external && !external)
		return take_addresses(al, 0);
	if (!has_addresses(old))
		return 0;
	if (external && !was_external)
		leave_addresses(al, 0);
	else if (had == 1 && n == 2)
		return take_addresses(al, 1);
	else if (had == 2 && n == 1)
		leave_addresses(al, 1);
	return 0;
}

/* ---- around a write ---- */

static void give_back(struct request *q, const struct ip *ips, size_t n_ips, const int *ports, size_t n_ports)
{
	struct err err = ERR_INIT;
	int r = 0;
	for (size_t i = 0; i < n_ips && r == 0; i++)
		r = service_ip_give_back(q->server, &ips[i], &err);
	if (r == 0 && n_ports)
		r = service_ports_free(q->server, ports, n_ports, &err);
	if (r < 0)
		log_warn("addresses or ports of a Service are not given back yet; repair will do it", KV("error", &err));
}

/* What was taken is kept until it is known whether the Service has it: if so, others must not get it. */
static bool is_unknown(const struct request *q)
{
	return fiber_check(NULL) < 0 || val_int(q->failure, code) == 504;
}

static void release_all(struct request *q, struct val service)
{
	struct allocation al = { .q = q, .old = service };
	if (has_addresses(service))
		leave_addresses(&al, 0);
	service_ports_leave(&al, service);
	str namespace = val_str(service, metadata, namespace), name = val_str(service, metadata, name);
	struct err err = ERR_INIT;
	/* a new Service of that name must not begin with the old one's endpoints */
	int r = inprocess_delete(INPROCESS(q->server, "", "endpoints"), namespace, name, &err);
	if (r < 0 && r != -ERR_NOT_FOUND)
		log_warn("the endpoints of a Service could not be removed", KV("namespace", namespace), KV("service", name),
			 KV("error", &err));
	give_back(q, al.left_ips, al.n_left_ips, al.left_ports, al.n_left_ports);
}

static void finish(struct request *q, bool stored, struct val old, struct val object)
{
	const struct allocation *al = q->taken;
	q->taken = NULL;
	if (q->dry_run || (!stored && (!al || is_unknown(q))))
		return;
	SHIELD_SCOPE();
	DEADLINE_SCOPE(CLEANUP_MS);
	if (!val_exists(object))
		release_all(q, old);
	else if (al && stored)
		give_back(q, al->left_ips, al->n_left_ips, al->left_ports, al->n_left_ports);
	else if (al)
		give_back(q, al->ips, al->n_ips, al->ports, al->n_ports);
}

/* clusterIP alone is what old clients know. */
static struct val with_plural(struct arena *a, struct val service)
{
	str ip = val_str(service, spec, clusterIP);
	if (ip.n && !val_len(val_get(service, spec, clusterIPs)))
		service = val_with(a, service, LIST(a, val_of_str(ip)), spec, clusterIPs);
	return service;
}

static int allocate(struct allocation *al)
{
	int r = families_settle(al);
	if (r == 0)
		r = val_exists(al->old) ? change_addresses(al) : take_addresses(al, 0);
	return r < 0 ? r : service_ports_settle(al);
}

static int begin(struct request *q, struct val old, struct val *object)
{
	struct err err = ERR_INIT;
	if (!val_exists(*object) || !q->server->allocators)
		return 0;
	struct allocation *al = ARENA_NEW(q->arena, struct allocation);
	*al = (struct allocation){ .q = q, .old = old, .service = *object };
	int r = 0;
	if (val_exists(old)) /* what the client left out and has stays as it is */
		r = prepare_update(q->arena, q->type, q->server->options.gates, STR_NONE, *object, old, &al->service, &err);
	else
		al->service = with_plural(q->arena, *object);
	if (r == 0 && service_is(al->service, STR("ExternalName")))
		al->service = val_without(q->arena, al->service, spec, internalTrafficPolicy);
	if (r == 0)
		r = val_canonical(q->arena, al->service, q->type, NULL, &al->service, &err);
	if (r < 0)
		return fail_err(q, &err);
	q->taken = al;
	r = allocate(al);
	if (r == 0)
		r = val_canonical(q->arena, al->service, q->type, NULL, object, &err);
	if (r < 0)
		finish(q, false, old, *object);
	return r;
}

const struct kind_hooks service_hooks = { .begin = begin, .finish = finish };
