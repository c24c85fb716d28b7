/*
 * resource.k8s.io/v1beta1 has a request's fields beside its name, and a device's in `basic`; later versions have the
 * former in `exactly` and the latter beside the name.
 */
#include "codec/atoms.h"
#include "machinery/convert_priv.h"
#include "machinery/validate_priv.h"

/* What belongs to the outer object in both forms. */
static bool stays_outside(atom key) { return key == A_name || key == A_firstAvailable; }

/* Moves all members but those that stay into one; when there are none, it is made only if `always`. */
static struct val members_into(struct arena *a, struct val object, atom inner, bool always)
{
	struct val_builder outside = val_builder(a), inside = val_builder(a);
	VAL_EACH_MEMBER(m, object)
		val_add_member(stays_outside(m->key) ? &outside : &inside, m->key, m->val);
	struct val moved = val_end_object(&inside);
	if (moved.n || always)
		val_add_member(&outside, inner, moved);
	return val_end_object(&outside);
}

/* Moves the members of one beside it. */
static struct val members_out_of(struct arena *a, struct val object, atom inner)
{
	struct val_builder b = val_builder(a);
	VAL_EACH_MEMBER(m, object)
		if (m->key != inner)
			val_add_member(&b, m->key, m->val);
	VAL_EACH_MEMBER(m, val_member(object, inner))
		val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

static struct val request_from_v1beta1(struct arena *a, struct val r) { return members_into(a, r, A_exactly, false); }
static struct val request_to_v1beta1(struct arena *a, struct val r) { return members_out_of(a, r, A_exactly); }
static struct val device_from_v1beta1(struct arena *a, struct val d) { return members_out_of(a, d, A_basic); }
static struct val device_to_v1beta1(struct arena *a, struct val d) { return members_into(a, d, A_basic, true); }

typedef struct val item_edit(struct arena *a, struct val item);

static struct val spec_requests(struct arena *a, struct val spec, item_edit *edit)
{
	struct val requests = val_get(spec, devices, requests);
	return val_exists(requests) ? val_with(a, spec, edit_items(a, requests, edit), devices, requests) : spec;
}

static struct val claim_spec(struct arena *a, struct val claim, item_edit *edit)
{
	return val_with(a, claim, spec_requests(a, val_get(claim, spec), edit), spec);
}

static struct val template_spec(struct arena *a, struct val template, item_edit *edit)
{
	return val_with(a, template, spec_requests(a, val_get(template, spec, spec), edit), spec, spec);
}

struct val convert_claim_from_v1beta1(struct arena *a, struct val v) { return claim_spec(a, v, request_from_v1beta1); }
struct val convert_claim_to_v1beta1(struct arena *a, struct val v) { return claim_spec(a, v, request_to_v1beta1); }

struct val convert_claim_template_from_v1beta1(struct arena *a, struct val template)
{
	return template_spec(a, template, request_from_v1beta1);
}

struct val convert_claim_template_to_v1beta1(struct arena *a, struct val template)
{
	return template_spec(a, template, request_to_v1beta1);
}

static struct val slice_devices(struct arena *a, struct val slice, item_edit *edit)
{
	struct val devices = val_get(slice, spec, devices);
	return val_exists(devices) ? val_with(a, slice, edit_items(a, devices, edit), spec, devices) : slice;
}

struct val convert_slice_from_v1beta1(struct arena *a, struct val v) { return slice_devices(a, v, device_from_v1beta1); }
struct val convert_slice_to_v1beta1(struct arena *a, struct val v) { return slice_devices(a, v, device_to_v1beta1); }
