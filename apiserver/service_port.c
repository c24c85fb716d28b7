/*
 * Ports on nodes. The RangeAllocation has a bit per port, as the bytes of one big number: the port at offset 0 is its lowest
 * bit, the highest bytes come first and zero ones at the front are left out.
 */
#include "apiserver/service_ip_priv.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/proto.h"
#include "codec/types.h"

#define KEY "/registry/ranges/servicenodeports"

enum { BAND_MIN = 16, BAND_MAX = 128, BAND_STEP = 32, ATTEMPTS_MAX = 100, VALUE_MAX = 1 << 20 };

/* ---- the map ---- */

static size_t map_bytes(const struct port_map *m) { return (size_t)(m->last - m->first) / 8 + 1; }
bool port_map_in_range(const struct port_map *m, int port) { return port >= m->first && port <= m->last; }

bool port_map_has(const struct port_map *m, int port)
{
	return port_map_in_range(m, port) && m->taken[(port - m->first) / 8] >> (port - m->first) % 8 & 1;
}

void port_map_put(struct port_map *m, int port, bool taken)
{
	if (!port_map_in_range(m, port) || port_map_has(m, port) == taken)
		return;
	m->taken[(port - m->first) / 8] ^= (uint8_t)(1 << (port - m->first) % 8);
	m->changed = true;
}

static int next_between(const struct port_map *m, int from, int n)
{
	int start = n ? (int)random_below((uint64_t)n) : 0;
	for (int i = 0; i < n; i++)
		if (!port_map_has(m, from + (start + i) % n))
			return from + (start + i) % n;
	return 0;
}

int port_map_next(const struct port_map *m)
{
	int n = m->last - m->first + 1;
	int band = MAX(n / BAND_STEP, (int)BAND_MIN);
	band = n <= BAND_MIN ? 0 : MIN(band, (int)BAND_MAX);
	int port = next_between(m, m->first + band, n - band);
	return port ? port : next_between(m, m->first, band);
}

void service_ports_mark(struct port_map *m, struct val service, bool taken)
{
	VAL_EACH(p, val_get(service, spec, ports))
		port_map_put(m, (int)val_int(*p, nodePort), taken);
	port_map_put(m, (int)val_int(service, spec, healthCheckNodePort), taken);
}

/* ---- its stored form ---- */

static str range_text(struct arena *a, const struct port_map *m) { return arena_printf(a, "%d-%d", m->first, m->last); }

static void from_services(struct apiserver *s, struct port_map *m)
{
	const struct kind *services = kinds_find(&s->kinds, STR_NONE, STR("services"));
	struct omap_iter it;
	const struct object *o;
	omap_seek(&it, services->objects, STR_NONE);
	while ((o = omap_next(&it, NULL)))
		service_ports_mark(m, o->val, true);
	m->changed = true;
}

/* What is stored, and the object that it is in; a range that is not there, or another one, begins with what Services have. */
static int load(struct apiserver *s, struct arena *a, struct port_map *m, struct val *ret_object, int64_t *ret_revision,
		struct err *err)
{
	struct store_kv kv;
	memset(m->taken, 0, map_bytes(m));
	m->changed = false;
	*ret_revision = STORE_ABSENT;
	*ret_object = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("RangeAllocation")), F(metadata, VAL_EMPTY_OBJECT));
	int r = store_get(s->store, STR(KEY), &kv, NULL, err);
	if (r > 0) {
		*ret_revision = kv.mod_revision;
		r = proto_decode_object_as(a, arena_str(a, store_value_str(kv.value)), &type_core_v1_RangeAllocation,
					   ret_object, err);
		store_value_unref(kv.value);
	}
	if (r < 0)
		return err_wrap(err, r, KEY);
	if (!str_eq(val_str(*ret_object, range), range_text(a, m))) {
		from_services(s, m);
		return 0;
	}
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(VALUE_MAX);
	if ((r = base64_decode_buf(&bytes, val_str(*ret_object, data), err)) < 0)
		return err_wrap(err, r, KEY);
	for (size_t i = 0; i < bytes.n && i < map_bytes(m); i++)
		m->taken[i] = (uint8_t)bytes.p[bytes.n - 1 - i];
	return 0;
}

static int encode(struct arena *a, const struct port_map *m, struct val object, struct store_value **ret, struct err *err)
{
	size_t n = map_bytes(m);
	while (n && !m->taken[n - 1])
		n--;
	char *bytes = arena_alloc(a, n + 1, 1), *text = arena_alloc(a, base64_encoded_len(n) + 1, 1);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)m->taken[n - 1 - i];
	object = val_put(a, object, A_range, val_of_str(range_text(a, m)));
	object = val_put(a, object, A_data, val_of_str(str_span(text, base64_encode(text, str_span(bytes, n)))));
	CLEANUP(buf_done) struct buf b = BUF_INIT(VALUE_MAX);
	int r = proto_encode_object(&b, object, &type_core_v1_RangeAllocation, err);
	if (r == 0)
		*ret = store_value_new(buf_str(&b));
	return r;
}

/* 0: it is stored; 1: somebody else was faster. */
static int save(struct apiserver *s, struct arena *a, const struct port_map *m, struct val object, int64_t expect,
		struct err *err)
{
	struct store_value *value = NULL;
	int64_t revision;
	int r = encode(a, m, object, &value, err);
	if (r < 0)
		return r;
	r = store_put(s->store, STR(KEY), value, expect, 0, &revision, NULL, err);
	store_value_unref(value);
	return r < 0 ? r : r == 0;
}

static int change(struct apiserver *s, bool dry_run, int (*plan)(struct port_map *m, void *arg), void *arg, struct err *err)
{
	struct ip_allocators *al = s->allocators;
	for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct port_map m = { .first = al->first_port, .last = al->last_port };
		m.taken = arena_alloc(&a, map_bytes(&m), 1);
		struct val object;
		int64_t revision;
		int r = load(s, &a, &m, &object, &revision, err);
		if (r < 0 || (r = plan(&m, arg)) < 0 || !m.changed || dry_run)
			return r;
		if ((r = save(s, &a, &m, object, revision, err)) <= 0)
			return r;
	}
	return err_set(err, ERR_CONFLICT, "node ports change too fast");
}

int service_ports_change(struct apiserver *s, bool dry_run, int (*plan)(struct port_map *m, void *arg), void *arg,
			 struct err *err)
{
	struct ip_allocators *al = s->allocators;
	while (al->ports_busy) {
		int r = fiber_cond_wait(&al->ports_free, err);
		if (r < 0)
			return r;
	}
	al->ports_busy = true;
	int r = change(s, dry_run, plan, arg, err);
	al->ports_busy = false;
	fiber_cond_signal(&al->ports_free);
	return r;
}
