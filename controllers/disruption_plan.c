#include "controllers/disruption_plan.h"

#include "base/buf.h"
#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/moment.h"
#include "controllers/pod_control.h"

/* ---- how many ---- */

bool disruption_needs_scale(struct val pdb)
{
	return val_has(pdb, spec, maxUnavailable) || val_is(val_get(pdb, spec, minAvailable), VAL_STRING);
}

int disruption_expect(struct val pdb, int64_t n_pods, int64_t scale, int64_t *ret_expected, int64_t *ret_healthy, struct err *err)
{
	struct val max = val_get(pdb, spec, maxUnavailable), min = val_get(pdb, spec, minAvailable), limit = val_exists(max) ? max : min;

	*ret_expected = *ret_healthy = 0;
	if (!val_exists(limit))
		return 0;
	*ret_expected = disruption_needs_scale(pdb) ? scale : n_pods;
	int64_t n = scaled_value(limit, *ret_expected, true);
	if (n < 0)
		return err_set(err, ERR_INVALID, "invalid value for IntOrString: invalid type: string is not a percentage");
	*ret_healthy = val_exists(max) ? MAX(*ret_expected - n, INT64_C(0)) : n;
	return 0;
}

/* ---- status ---- */

/* Pods whose eviction was granted and that are still there; the others of the map are gone, or were kept by somebody. */
static struct val still_expected(struct arena *a, const struct disruption_view *v, int64_t *again_ns, struct val *kept)
{
	struct val_builder b = val_builder(a), late = val_builder(a);
	struct val disrupted = val_get(v->pdb, status, disruptedPods);

	*again_ns = 0;
	VAL_EACH(pod, v->pods) {
		struct val at = val_find(disrupted, val_str(*pod, metadata, name));
		if (!val_exists(at) || val_has(*pod, metadata, deletionTimestamp))
			continue;
		int64_t left = moment_of(at) + DISRUPTION_TIMEOUT_S * NS_PER_S - v->now_ns;
		if (left < 0) {
			val_add_item(&late, *pod);
			continue;
		}
		val_add_member(&b, atom_make(a, val_str(*pod, metadata, name)), at);
		left = MAX(left, INT64_C(1));
		*again_ns = *again_ns ? MIN(*again_ns, left) : left;
	}
	*kept = val_end_list(&late);
	return val_sorted(a, val_end_object(&b));
}

static int64_t count_healthy(const struct disruption_view *v, struct val disrupted)
{
	int64_t n = 0;
	VAL_EACH(pod, v->pods)
		n += !val_has(*pod, metadata, deletionTimestamp) && !val_exists(val_find(disrupted, val_str(*pod, metadata, name))) && pod_is_ready(*pod);
	return n;
}

static struct val with_condition(struct arena *a, struct val pdb, bool allowed, const char *reason, str message, struct val generation, int64_t now_ns)
{
	struct val list = val_get(pdb, status, conditions), status = allowed ? VAL_LIT("True") : VAL_LIT("False");
	size_t i = 0;

	while (i < val_len(list) && !str_eq(val_str(val_at(list, i), type), STR("DisruptionAllowed")))
		i++;
	struct val old = val_at(list, i);
	bool same = val_exists(old) && val_equal(val_get(old, status), status);
	struct val c = OBJECT(a, F(type, VAL_LIT("DisruptionAllowed")), F(status, status), F(observedGeneration, generation),
			      F(lastTransitionTime, same ? val_get(old, lastTransitionTime) : moment_time(a, now_ns)),
			      F(reason, VAL_STR(str_of(reason))), F(message, VAL_STR(message)));
	return val_exists(old) ? val_list_set(a, list, i, c) : val_list_append(a, list, c);
}

struct val disruption_status(struct arena *a, const struct disruption_view *v, int64_t *ret_again_ns, struct val *ret_kept)
{
	struct val disrupted = still_expected(a, v, ret_again_ns, ret_kept), generation = val_get(v->pdb, metadata, generation);
	int64_t healthy = count_healthy(v, disrupted), allowed = v->expected > 0 ? MAX(healthy - v->healthy, INT64_C(0)) : 0;
	struct val conditions = with_condition(a, v->pdb, allowed > 0, allowed > 0 ? "SufficientPods" : "InsufficientPods", STR(""), generation, v->now_ns);

	return OBJECT(a, F(observedGeneration, generation), F(disruptedPods, val_len(disrupted) ? disrupted : VAL_EMPTY),
		      F(disruptionsAllowed, val_of_int(allowed)), F(currentHealthy, val_of_int(healthy)), F(desiredHealthy, val_of_int(v->healthy)),
		      F(expectedPods, val_of_int(v->expected)), F(conditions, conditions));
}

struct val disruption_failed_status(struct arena *a, struct val pdb, str why, int64_t now_ns)
{
	struct val status = val_get(pdb, status);
	struct val conditions = with_condition(a, pdb, false, "SyncFailed", why, val_get(status, observedGeneration), now_ns);

	status = val_with(a, status, val_of_int(0), disruptionsAllowed);
	return val_with(a, status, conditions, conditions);
}

/* Member by member, since empty texts may be left out. */
static bool conditions_differ(struct val x, struct val y)
{
	if (val_len(x) != val_len(y))
		return true;
	for (size_t i = 0; i < val_len(x); i++) {
		struct val p = val_at(x, i), q = val_at(y, i);
		if (!str_eq(val_str(p, type), val_str(q, type)) || !str_eq(val_str(p, status), val_str(q, status)) ||
		    !str_eq(val_str(p, reason), val_str(q, reason)) || !str_eq(val_str(p, message), val_str(q, message)) ||
		    val_int(p, observedGeneration) != val_int(q, observedGeneration))
			return true;
	}
	return false;
}

bool disruption_status_differs(struct val pdb, struct val status)
{
	static const atom numbers[] = { A_currentHealthy, A_desiredHealthy, A_expectedPods, A_disruptionsAllowed, A_observedGeneration };
	struct val old = val_get(pdb, status), x = val_get(old, disruptedPods), y = val_get(status, disruptedPods);

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (val_as_int(val_member(old, numbers[i])) != val_as_int(val_member(status, numbers[i])))
			return true;
	return ((val_len(x) || val_len(y)) && !val_equal(x, y)) ||
	       conditions_differ(val_get(old, conditions), val_get(status, conditions));
}

/* ---- conditions of pods ---- */

int disruption_is_stale(struct val pod, int64_t now_ns, int64_t *ret_wait_ns)
{
	struct val c = pod_condition(pod, "DisruptionTarget");
	str phase = val_str(pod, status, phase);

	/* What the kubelet does with its own pods ends without a deletion. */
	if (val_has(pod, metadata, deletionTimestamp) || !str_eq(val_str(c, status), STR("True")) ||
	    str_eq(val_str(c, reason), STR("TerminationByKubelet")) || str_eq(phase, STR("Failed")) || str_eq(phase, STR("Succeeded")))
		return 0;
	*ret_wait_ns = MAX(moment_of(val_get(c, lastTransitionTime)) + DISRUPTION_TIMEOUT_S * NS_PER_S - now_ns, INT64_C(0));
	return 1;
}

struct val disruption_take_back(struct arena *a, struct val pod, int64_t now_ns)
{
	struct val list = val_get(pod, status, conditions);

	for (size_t i = 0; i < val_len(list); i++) {
		struct val old = val_at(list, i);
		if (!str_eq(val_str(old, type), STR("DisruptionTarget")))
			continue;
		bool numbered = val_int(pod, status, observedGeneration) || val_int(old, observedGeneration);
		struct val c = OBJECT(a, F(type, VAL_LIT("DisruptionTarget")),
				      F(observedGeneration, numbered ? val_get(pod, metadata, generation) : VAL_EMPTY), F(status, VAL_LIT("False")),
				      F(lastTransitionTime, moment_time(a, now_ns)));
		return val_with(a, pod, val_list_set(a, list, i, c), status, conditions);
	}
	return pod;
}

/* ---- texts ---- */

str disruption_selector_text(struct arena *a, struct val selector)
{
	enum { TEXT_MAX = 64 << 10 };
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	if (!val_exists(selector))
		return STR("nil");
	buf_addf(&b, "&LabelSelector{MatchLabels:map[string]string{");
	VAL_EACH_MEMBER(m, val_sorted(a, val_get(selector, matchLabels)))
		buf_addf(&b, STR_FMT ": " STR_FMT ",", STR_ARG(atom_str(m->key)), STR_ARG(val_as_str(m->val)));
	buf_addf(&b, "},MatchExpressions:[]LabelSelectorRequirement{");
	VAL_EACH(e, val_get(selector, matchExpressions)) {
		struct val values = val_get(*e, values);
		buf_addf(&b, "LabelSelectorRequirement{Key:" STR_FMT ",Operator:" STR_FMT ",Values:[", STR_ARG(val_str(*e, key)), STR_ARG(val_str(*e, operator)));
		for (size_t i = 0; i < val_len(values); i++)
			buf_addf(&b, "%s" STR_FMT, i ? " " : "", STR_ARG(val_as_str(val_at(values, i))));
		buf_addf(&b, "],},");
	}
	buf_addf(&b, "},}");
	return arena_str(a, buf_str(&b));
}
