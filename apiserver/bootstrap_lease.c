/*
 * Who is there: every server keeps a Lease in kube-system whose name is made from the name of its machine. Leases that
 * nobody renewed for their whole duration are removed.
 */
#include <inttypes.h>
#include <unistd.h>

#include "apiserver/bootstrap_priv.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "codec/time.h"

#define IDENTITY "apiserver.kubernetes.io/identity"

enum { LEASE_S = 3600, HASHED = 16 };

static str machine(char out[256])
{
	if (gethostname(out, 255) < 0)
		out[0] = '\0';
	out[255] = '\0';
	return str_of(out);
}

/* apiserver- and the first half of the sum of the machine's name, in base 32 */
static str lease_name(struct arena *a)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	char host[256], out[(HASHED * 8 + 4) / 5];
	uint8_t sum[SHA256_BYTES];
	sha256(machine(host), sum);
	unsigned bits = 0, held = 0;
	size_t n = 0;
	for (size_t i = 0; i < HASHED; i++) {
		held = held << 8 | sum[i];
		for (bits += 8; bits >= 5; bits -= 5)
			out[n++] = digits[held >> (bits - 5) & 31];
	}
	if (bits)
		out[n++] = digits[held << (5 - bits) & 31];
	return arena_join(a, STR("apiserver-"), str_span(out, n));
}

/* Made once per start: a server that comes back under its old name is another holder. */
static str holder(struct apiserver *s, struct arena *a, str name)
{
	return arena_printf(a, STR_FMT "_%016" PRIx64, STR_ARG(name), (uint64_t)s->started_wall_ns);
}

static struct val renew(struct arena *a, struct val live, void *arg)
{
	struct apiserver *s = arg;
	str me = holder(s, a, val_str(live, metadata, name));
	struct val spec = val_get(live, spec), now = bootstrap_now(a, true);
	if (!str_eq(val_str(spec, holderIdentity), me))
		spec = val_put(a, spec, A_holderIdentity, val_of_str(me));
	return val_put(a, live, A_spec, val_put(a, spec, A_renewTime, now));
}

int identity_make_lease(struct apiserver *s, size_t i, struct err *err)
{
	(void)i;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct inprocess *w = INPROCESS(s, "coordination.k8s.io", "leases");
	str name = lease_name(&a), key = arena_join(&a, STR("kube-system/"), name);
	char host[256];
	if (val_exists(bootstrap_find(s, &a, w->group, w->resource, key))) {
		int r = inprocess_update(w, STR("kube-system"), name, renew, s, err);
		if (r != -ERR_NOT_FOUND)
			return r;
	}
	struct val labels = val_put(&a, VAL_EMPTY, atom_make(&a, STR(IDENTITY)), VAL_LIT("kube-apiserver"));
	labels = val_put(&a, labels, atom_make(&a, STR("kubernetes.io/hostname")), val_of_str(machine(host)));
	struct val spec = OBJECT(&a, F(holderIdentity, val_of_str(holder(s, &a, name))),
				 F(leaseDurationSeconds, val_of_int(LEASE_S)), F(renewTime, bootstrap_now(&a, true)));
	return bootstrap_ensure(w, OBJECT(&a, F(metadata,
						OBJECT(&a, F(name, val_of_str(name)), F(namespace, VAL_LIT("kube-system")),
								  F(labels, labels))),
					  F(spec, spec)), err);
}

static bool is_over(struct val lease)
{
	struct timestamp renewed;
	if (!str_eq(val_as_str(val_find(val_get(lease, metadata, labels), STR(IDENTITY))), STR("kube-apiserver")))
		return false;
	if (!val_has(lease, spec, renewTime) || !val_has(lease, spec, leaseDurationSeconds) ||
	    microtime_parse(val_str(lease, spec, renewTime), &renewed, NULL) < 0)
		return true;
	return renewed.seconds + val_int(lease, spec, leaseDurationSeconds) < clock_wall_ns() / 1000000000;
}

int identity_collect(struct apiserver *s, struct err *err)
{
	const struct inprocess *w = INPROCESS(s, "coordination.k8s.io", "leases");
	const struct kind *kind = kinds_find(&s->kinds, w->group, w->resource);
	static const str prefix = STR_INIT("kube-system/");
	if (!kind)
		return 0;
	CLEANUP(omap_freep) struct omap *all = omap_snapshot(kind->objects);
	struct omap_iter it;
	struct object *o;
	str key;
	omap_seek(&it, all, prefix);
	while ((o = omap_next(&it, &key)) && str_starts(key, prefix)) {
		if (!is_over(o->val))
			continue;
		int r = inprocess_delete(w, STR("kube-system"), str_skip(key, prefix.n), err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
	}
	return 0;
}
