#include "controllers/resource_claim_plan.h"

#include "codec/atoms.h"
#include "machinery/resource_claim.h"

enum { BASE_MAX = 57 }; /* leaves room for what the server adds to make a name of 63 */

/* "pod-entry-"; where that is too long, both are cut in proportion, so that something is left of each. */
static str base_name(struct arena *a, str pod, str entry)
{
	str whole = arena_printf(a, STR_FMT "-" STR_FMT "-", STR_ARG(pod), STR_ARG(entry));

	if (whole.n <= BASE_MAX)
		return whole;
	pod = str_head(pod, pod.n * BASE_MAX / whole.n);
	entry = str_head(entry, entry.n * BASE_MAX / whole.n);
	return arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(pod), STR_ARG(entry));
}

struct val claim_from_template(struct arena *a, struct val template, struct val pod, struct val entry)
{
	struct val meta = val_get(pod, metadata), from = val_get(template, spec, metadata);
	struct val annotations = val_put(a, val_get(from, annotations), atom_make(a, STR(POD_CLAIM_ANNOTATION)), val_get(entry, name));
	struct val owner = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")), F(name, val_get(meta, name)), F(uid, val_get(meta, uid)),
				  F(controller, val_of_bool(true)));
	str base = base_name(a, val_str(meta, name), val_str(entry, name));

	return OBJECT(a, F(metadata, OBJECT(a, F(generateName, VAL_STR(base)), F(namespace, val_get(meta, namespace)), F(labels, val_get(from, labels)),
				    F(annotations, val_sorted(a, annotations)), F(ownerReferences, LIST(a, owner)))),
		      F(spec, val_get(template, spec, spec)));
}

static bool has_ended(struct val pod)
{
	str phase = val_str(pod, status, phase);

	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

bool pod_is_done(struct val pod)
{
	return has_ended(pod) || (val_has(pod, metadata, deletionTimestamp) && !val_str(pod, spec, nodeName).n);
}

struct claim_plan claim_plan_users(struct arena *a, struct val claim, const bool *keep)
{
	struct val users = val_get(claim, status, reservedFor);
	struct val_builder left = val_builder(a);
	struct claim_plan p = { .status = VAL_EMPTY };
	bool locked = claim_has_finalizer(claim), allocated = val_has(claim, status, allocation);
	size_t n = 0, i = 0;

	VAL_EACH(u, users)
		if (keep[i++]) {
			val_add_item(&left, *u);
			n++;
		}
	struct val list = val_end_list(&left);
	p.unused = n == 0;
	if (n < val_len(users)) {
		/* The last user is gone: others may get the devices now. */
		p.status = val_with(a, claim, n ? list : VAL_EMPTY, status, reservedFor);
		if (p.unused && locked)
			p.status = val_without(a, p.status, status, allocation);
		p.unlock = locked && !val_has(p.status, status, allocation);
	} else if (locked && p.unused && val_has(claim, metadata, deletionTimestamp)) {
		p.status = allocated ? val_without(a, claim, status, allocation) : VAL_EMPTY;
		p.unlock = true;
	}
	return p;
}

static struct val pod_owner(struct val claim)
{
	VAL_EACH(o, val_get(claim, metadata, ownerReferences))
		if (val_bool(*o, controller) && str_eq(val_str(*o, apiVersion), STR("v1")) && str_eq(val_str(*o, kind), STR("Pod")))
			return *o;
	return VAL_EMPTY;
}

str claim_pod_name(struct val claim) { return val_str(pod_owner(claim), name); }

bool claim_is_left_over(struct val claim, struct val pod)
{
	struct val owner = pod_owner(claim);

	return val_exists(owner) && val_exists(pod) && (!str_eq(val_str(owner, uid), val_str(pod, metadata, uid)) || pod_is_done(pod));
}
