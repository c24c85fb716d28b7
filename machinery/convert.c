/*
 * Kubernetes converts through internal types; here one version becomes the other directly. Where two versions have the
 * same fields (nearly everywhere: the tests compare them), a new apiVersion is all; where they do not, a rule moves the
 * members, and the schema of the new version puts them in order.
 */
#include "machinery/convert.h"

#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/convert_priv.h"

/* ---- Event: the same under other names ---- */

static const struct {
	uint16_t core, events;
} event_names[] = {
	{ A_count, A_deprecatedCount },
	{ A_firstTimestamp, A_deprecatedFirstTimestamp },
	{ A_involvedObject, A_regarding },
	{ A_lastTimestamp, A_deprecatedLastTimestamp },
	{ A_message, A_note },
	{ A_reportingComponent, A_reportingController },
	{ A_source, A_deprecatedSource },
};

static atom event_name(atom name, bool to_core)
{
	for (size_t i = 0; i < ARRAY_LEN(event_names); i++)
		if (name == (to_core ? event_names[i].events : event_names[i].core))
			return to_core ? event_names[i].core : event_names[i].events;
	return name;
}

static struct val event_rename(struct arena *a, struct val event, bool to_core)
{
	struct val_builder b = val_builder(a);

	VAL_EACH_MEMBER(m, event)
		val_add_member(&b, event_name(m->key, to_core), m->val);
	return val_end_object(&b);
}

static struct val event_to_core(struct arena *a, struct val event) { return event_rename(a, event, true); }
static struct val event_from_core(struct arena *a, struct val event) { return event_rename(a, event, false); }

/* ---- choosing a rule ---- */

convert_rule *convert_rule_of(const struct type *from, const struct type *to)
{
	static const struct {
		const struct type *here;      /* the version that differs from all others of the kind */
		convert_rule *leave, *arrive; /* from here to any other, and back */
	} rules[] = {
		{ TYPE(autoscaling_v1, HorizontalPodAutoscaler), convert_autoscaler_v1_to_v2, convert_autoscaler_v2_to_v1 },
		{ TYPE(core_v1, Event), event_from_core, event_to_core },
		{ TYPE(resource_v1beta1, ResourceClaim), convert_claim_from_v1beta1, convert_claim_to_v1beta1 },
		{ TYPE(resource_v1beta1, ResourceClaimTemplate), convert_claim_template_from_v1beta1,
		  convert_claim_template_to_v1beta1 },
		{ TYPE(resource_v1beta1, ResourceSlice), convert_slice_from_v1beta1, convert_slice_to_v1beta1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (from == rules[i].here)
			return rules[i].leave;
		if (to == rules[i].here)
			return rules[i].arrive;
	}
	return NULL;
}

static int cannot_convert(const struct type *from, const struct type *to, str why, struct err *err)
{
	return err_set(err, ERR_INTERNAL, STR_FMT "." STR_FMT " cannot be converted to " STR_FMT "." STR_FMT "%s" STR_FMT,
		       STR_ARG(from->package->name), STR_ARG(from->name), STR_ARG(to->package->name), STR_ARG(to->name),
		       why.n ? ": " : "", STR_ARG(why));
}

/* Events are the one kind that lives in two groups. */
static bool groups_share(const struct type *from, const struct type *to)
{
	const struct type *event = TYPE(core_v1, Event), *other = from == event ? to : from;

	if (str_eq(from->package->group, to->package->group))
		return true;
	return (from == event || to == event) && str_eq(other->package->group, STR("events.k8s.io"));
}

int convert_object(struct arena *a, struct val object, const struct type *from, const struct type *to, struct val *ret,
		   struct err *err)
{
	if (from == to) {
		*ret = object;
		return 0;
	}
	if (!str_eq(from->name, to->name) || !groups_share(from, to))
		return cannot_convert(from, to, STR_NONE, err);

	convert_rule *rule = convert_rule_of(from, to);
	struct val v = val_put(a, rule ? rule(a, object) : object, A_apiVersion, VAL_STR(type_api_version(a, to)));
	/* Fields that the new version lacks are dropped on purpose by a rule; without one, nothing may be lost. */
	struct strict_errors lost = { .arena = a };
	int r = val_canonical(a, v, to, &lost, ret, err);
	if (r < 0)
		return cannot_convert(from, to, err ? arena_str(a, err_str(err)) : STR_NONE, err);
	return rule || !lost.n ? 0 : cannot_convert(from, to, lost.text[0], err);
}
