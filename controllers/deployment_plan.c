/*
 * A plan is made on a picture of the ReplicaSets in which what is decided is entered at once, as if it had been done. Everything that changes
 * about one ReplicaSet or about the deployment goes into a single write. Word for word those of Kubernetes are: rounding, order of sets when
 * they are scaled, annotations, conditions (deployment_status.c) and events.
 */
#include "controllers/deployment_plan_priv.h"

#include <stdlib.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "controllers/controller.h"
#include "controllers/moment.h"
#include "controllers/owner.h"
#include "controllers/pod_control.h"
#include "controllers/template_hash.h"
#include "machinery/names.h"

#define REVISION "deployment.kubernetes.io/revision"
#define REVISION_HISTORY "deployment.kubernetes.io/revision-history"
#define DESIRED_REPLICAS "deployment.kubernetes.io/desired-replicas"
#define MAX_REPLICAS "deployment.kubernetes.io/max-replicas"
#define ROLLBACK_TO "deprecated.deployment.rollback.to"
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#define TEMPLATE_HASH "pod-template-hash"

enum { HISTORY_MAX = 2000 }; /* bytes of the annotation */

/* ---- reading ---- */

static struct val annotation(struct val object, const char *name) { return val_find(val_get(object, metadata, annotations), str_of(name)); }

static struct val annotate(struct arena *a, struct val object, str name, struct val text)
{
	struct val all = val_put(a, val_get(object, metadata, annotations), atom_make(a, name), text);
	return val_with(a, object, val_len(all) ? val_sorted(a, all) : VAL_EMPTY, metadata, annotations);
}

static struct val number_text(struct arena *a, int64_t n) { return VAL_STR(arena_printf(a, "%lld", (long long)n)); }

/* A number of 32 bits that is not negative. */
static bool annotated_number(struct val set, const char *name, int64_t *ret)
{
	str text = val_as_str(annotation(set, name));
	return text.n && text.p[0] != '-' && str_to_i64(text, ret) && *ret <= INT32_MAX;
}

/* 0: it has none; false: it cannot be read. */
static bool revision_of(struct val object, int64_t *ret)
{
	struct val text = annotation(object, REVISION);

	*ret = 0;
	return !val_exists(text) || str_to_i64(val_as_str(text), ret);
}

static bool is_rolling(struct val d) { return str_eq(val_str(d, spec, strategy, type), STR("RollingUpdate")); }

static bool rollback_wanted(struct val d, int64_t *ret)
{
	str text = val_as_str(annotation(d, ROLLBACK_TO));
	return text.n && str_to_i64(text, ret);
}

/* Neither may both be none: rounding down may have made it so. */
static void resolve_limits(struct planning *p)
{
	struct val rolling = val_get(p->d, spec, strategy, rollingUpdate);
	int64_t surge = MAX(scaled_value(val_get(rolling, maxSurge), p->replicas, true), INT64_C(0));
	int64_t unavailable = MAX(scaled_value(val_get(rolling, maxUnavailable), p->replicas, false), INT64_C(0));

	if (!is_rolling(p->d))
		return;
	if (!surge && !unavailable)
		unavailable = 1;
	p->max_surge = surge;
	p->max_unavailable = MIN(unavailable, p->replicas);
}

static struct val labels_without_hash(struct arena *a, struct val template)
{
	struct val labels = val_put(a, val_get(template, metadata, labels), atom_make(a, STR(TEMPLATE_HASH)), VAL_EMPTY);
	return val_len(labels) ? labels : VAL_EMPTY_OBJECT;
}

bool deployment_template_equal(struct arena *a, struct val x, struct val y)
{
	struct val x_meta = val_without(a, val_get(x, metadata), labels), y_meta = val_without(a, val_get(y, metadata), labels);

	if (!val_len(x_meta))
		x_meta = VAL_EMPTY_OBJECT;
	if (!val_len(y_meta))
		y_meta = VAL_EMPTY_OBJECT;
	return val_equal(val_get(x, spec), val_get(y, spec)) && val_equal(x_meta, y_meta) &&
	       val_equal(labels_without_hash(a, x), labels_without_hash(a, y));
}

/* ---- orders ---- */

/* Times are texts of one form: their order is that of bytes. */
static int by_age(const struct planned_set *x, const struct planned_set *y)
{
	int order = str_cmp(val_str(x->set, metadata, creationTimestamp), val_str(y->set, metadata, creationTimestamp));
	return order ? order : str_cmp(val_str(x->set, metadata, name), val_str(y->set, metadata, name));
}

static int oldest_first(const void *x, const void *y) { return by_age(x, y); }

static int by_size(const struct planned_set *x, const struct planned_set *y) { return x->to == y->to ? 0 : x->to > y->to ? -1 : 1; }

static int largest_then_oldest(const void *p, const void *q)
{
	const struct planned_set *x = *(struct planned_set *const *)p, *y = *(struct planned_set *const *)q;
	return by_size(x, y) ? by_size(x, y) : by_age(x, y);
}

static int largest_then_newest(const void *p, const void *q)
{
	const struct planned_set *x = *(struct planned_set *const *)p, *y = *(struct planned_set *const *)q;
	return by_size(x, y) ? by_size(x, y) : by_age(y, x);
}

static int lowest_revision_first(const void *p, const void *q)
{
	const struct planned_set *x = *(struct planned_set *const *)p, *y = *(struct planned_set *const *)q;
	int64_t x_revision, y_revision;

	if (!revision_of(x->set, &x_revision) || !revision_of(y->set, &y_revision) || x_revision == y_revision)
		return by_age(x, y);
	return x_revision < y_revision ? -1 : 1;
}

/* ---- the picture ---- */

static void see(struct planning *p, const struct deployment_seen *seen)
{
	size_t i = 0;

	p->replicas = val_int(p->d, spec, replicas);
	resolve_limits(p);
	p->sets = ARENA_ARRAY(p->arena, struct planned_set, val_len(seen->sets) + 1);
	VAL_EACH(set, seen->sets) {
		int64_t replicas = val_int(*set, spec, replicas);
		p->sets[p->n++] = (struct planned_set){
			.set = *set, .from = replicas, .to = replicas, .actual = val_int(*set, status, replicas),
			.ready = val_int(*set, status, readyReplicas), .available = val_int(*set, status, availableReplicas),
			.busy = seen->busy && seen->busy[i],
		};
		i++;
	}
	if (p->n > 1)
		qsort(p->sets, p->n, sizeof(*p->sets), oldest_first);
	for (i = 0; i < p->n; i++)
		p->sets[i].rank = i + 1;
	for (i = 0; i < p->n && !p->fresh; i++)
		if (deployment_template_equal(p->arena, val_get(p->sets[i].set, spec, template), val_get(p->d, spec, template)))
			p->fresh = &p->sets[i];
	if (p->fresh)
		p->fresh->rank = 0;
}

#define EACH_SET(s, p) for (struct planned_set *s = (p)->sets, *s##_end = s + (p)->n; s != s##_end; s++)
#define EACH_OLD(s, p) EACH_SET(s, p) if (s != (p)->fresh)

static int64_t all_replicas(const struct planning *p)
{
	int64_t sum = 0;

	EACH_SET(s, p)
		sum += s->to;
	return sum;
}

/* ---- annotations of the new set ---- */

static bool stays_behind(str name)
{
	static const char *const names[] = { LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, str_of(names[i])))
			return true;
	return false;
}

/* Adds a revision to "1,3,4", of which the first go when it gets too long. */
static struct val add_history(struct arena *a, struct val history, str revision)
{
	str text = val_as_str(history), first;

	if (!text.n)
		return VAL_STR(revision);
	while (text.n + revision.n + 1 > HISTORY_MAX && text.n)
		(void)str_cut(text, ',', &first, &text);
	if (revision.n > HISTORY_MAX)
		return history;
	return text.n ? VAL_STR(arena_printf(a, STR_FMT "," STR_FMT, STR_ARG(text), STR_ARG(revision))) : VAL_STR(revision);
}

static struct val with_replica_annotations(struct planning *p, struct val set)
{
	set = annotate(p->arena, set, STR(DESIRED_REPLICAS), number_text(p->arena, p->replicas));
	return annotate(p->arena, set, STR(MAX_REPLICAS), number_text(p->arena, p->replicas + p->max_surge));
}

/* The deployment's annotations, and the revision if that has become higher; VAL_NONE when what it has cannot be read. */
static struct val with_annotations(struct planning *p, struct val set, int64_t revision)
{
	struct val had = annotation(set, REVISION);
	int64_t old = 0;

	VAL_EACH_MEMBER(m, val_get(p->d, metadata, annotations)) {
		str name = atom_str(m->key);
		if (!stays_behind(name) && !str_eq(val_as_str(val_find(val_get(set, metadata, annotations), name)), val_as_str(m->val)))
			set = annotate(p->arena, set, name, m->val);
	}
	if (val_as_str(had).n && !str_to_i64(val_as_str(had), &old))
		return VAL_EMPTY;
	if (old >= revision)
		return set;
	set = annotate(p->arena, set, STR(REVISION), number_text(p->arena, revision));
	if (val_exists(had))
		set = annotate(p->arena, set, STR(REVISION_HISTORY), add_history(p->arena, annotation(set, REVISION_HISTORY), val_as_str(had)));
	return set;
}

static int64_t next_revision(struct planning *p)
{
	int64_t highest = 0, revision;

	EACH_OLD(s, p)
		if (revision_of(s->set, &revision))
			highest = MAX(highest, revision);
	return highest + 1;
}

static void set_revision(struct planning *p, struct val revision)
{
	if (!str_eq(val_as_str(annotation(p->d, REVISION)), val_as_str(revision)))
		p->d = annotate(p->arena, p->d, STR(REVISION), revision);
}

/* The set of the present template is brought up to date with the deployment, if there is one. */
static void sync_fresh(struct planning *p)
{
	struct planned_set *s = p->fresh;

	if (!s)
		return;
	int64_t min_ready_s = val_int(p->d, spec, minReadySeconds);
	struct val set = with_annotations(p, s->set, next_revision(p));
	if (val_exists(set) && !val_same(set, s->set)) {
		s->set = set;
		s->write = true;
	}
	if (val_int(s->set, spec, minReadySeconds) != min_ready_s) {
		s->set = val_with(p->arena, s->set, min_ready_s ? val_of_int(min_ready_s) : VAL_EMPTY, spec, minReadySeconds);
		s->write = true;
	}
	set_revision(p, annotation(s->set, REVISION));
	if (deployment_has_deadline(p->d) && !val_exists(deployment_condition(p->d, "Progressing")))
		deployment_set_condition(p, "Progressing", "True", "FoundNewReplicaSet",
			      arena_printf(p->arena, "Found new replica set \"" STR_FMT "\"", STR_ARG(val_str(s->set, metadata, name))));
}

/* ---- sizes ---- */

static void scale(struct planned_set *s, int64_t to) { s->to = MAX(to, INT64_C(0)); }

/* How large the new set may be now. */
static int64_t fresh_size(const struct planning *p, int64_t now)
{
	int64_t room = p->replicas + p->max_surge - all_replicas(p);

	if (!is_rolling(p->d))
		return p->replicas;
	return room <= 0 ? now : now + MIN(room, p->replicas - now);
}

static str set_name(struct planning *p, str hash)
{
	str name = val_str(p->d, metadata, name);
	return arena_printf(p->arena, STR_FMT "-" STR_FMT, STR_ARG(str_head(name, NAME_SUBDOMAIN_MAX - 1 - hash.n)), STR_ARG(hash));
}

static void create_fresh(struct planning *p)
{
	struct arena *a = p->arena;
	struct val template = val_get(p->d, spec, template);
	str hash = template_hash(a, template, val_int(p->d, status, collisionCount));
	struct val label = VAL_STR(hash), labels = val_put(a, val_get(template, metadata, labels), atom_make(a, STR(TEMPLATE_HASH)), label);
	struct val selector = val_get(p->d, spec, selector), match = val_put(a, val_get(selector, matchLabels), atom_make(a, STR(TEMPLATE_HASH)), label);
	int64_t min_ready_s = val_int(p->d, spec, minReadySeconds), revision = next_revision(p), size = fresh_size(p, 0);

	labels = val_sorted(a, labels);
	struct val meta = OBJECT(a, F(name, VAL_STR(set_name(p, hash))), F(namespace, val_get(p->d, metadata, namespace)), F(labels, labels),
				 F(ownerReferences, LIST(a, owner_ref(a, p->d, "apps/v1", "Deployment"))));
	struct val spec = OBJECT(a, F(replicas, val_of_int(size)), F(minReadySeconds, min_ready_s ? val_of_int(min_ready_s) : VAL_EMPTY),
				 F(selector, val_with(a, selector, val_sorted(a, match), matchLabels)),
				 F(template, val_with(a, template, labels, metadata, labels)));
	struct val set = OBJECT(a, F(apiVersion, VAL_LIT("apps/v1")), F(kind, VAL_LIT("ReplicaSet")), F(metadata, meta), F(spec, spec));
	p->fresh = &p->sets[p->n++];
	*p->fresh = (struct planned_set){ .set = with_replica_annotations(p, with_annotations(p, set, revision)), .to = size, .create = true };
	set_revision(p, number_text(a, revision));
	if (deployment_has_deadline(p->d) && !p->resumed) /* the word that it goes on stays until there is progress */
		deployment_set_condition(p, "Progressing", "True", "NewReplicaSetCreated",
			      arena_printf(a, "Created new replica set \"" STR_FMT "\"", STR_ARG(val_str(set, metadata, name))));
}

/* ---- scaling in proportion ---- */

static size_t active_sets(const struct planning *p, struct planned_set **ret)
{
	size_t n = 0;

	EACH_SET(s, p)
		if (s->to > 0)
			ret[n++] = s;
	return n;
}

/* Rounds halves away from zero. */
static int64_t divide_rounded(int64_t x, int64_t y) { return x >= 0 ? (2 * x + y) / (2 * y) : -((-2 * x + y) / (2 * y)); }

/* The part of a set in what is added (or taken away). */
static int64_t proportion(const struct planning *p, const struct planned_set *s, int64_t to_add, int64_t added)
{
	int64_t before, part = 0;

	if (to_add == added)
		return 0;
	if (!p->replicas)
		part = -s->to;
	else if ((annotated_number(s->set, MAX_REPLICAS, &before) && before) || (before = val_int(p->d, status, replicas)))
		part = divide_rounded(s->to * (p->replicas + p->max_surge), before) - s->to;
	return to_add > 0 ? MIN(part, to_add - added) : MAX(part, to_add - added);
}

static void scale_in_proportion(struct planning *p, struct planned_set **active, size_t n)
{
	int64_t to_add = (p->replicas > 0 ? p->replicas + p->max_surge : 0) - all_replicas(p), added = 0;
	int64_t *sizes = ARENA_ARRAY(p->arena, int64_t, n);

	if (to_add)
		qsort(active, n, sizeof(struct planned_set *), to_add > 0 ? largest_then_newest : largest_then_oldest);
	for (size_t i = 0; i < n; i++) {
		int64_t part = to_add ? proportion(p, active[i], to_add, added) : 0;
		sizes[i] = active[i]->to + part;
		added += part;
	}
	/* What is left over goes to the largest. */
	if (n && to_add)
		sizes[0] += to_add - added;
	for (size_t i = 0; i < n; i++) {
		struct val set = with_replica_annotations(p, active[i]->set);
		active[i]->write |= !val_equal(val_get(set, metadata, annotations), val_get(active[i]->set, metadata, annotations));
		active[i]->set = set;
		active[i]->rank = i;
		scale(active[i], sizes[i]);
	}
}

static bool is_saturated(const struct planning *p)
{
	const struct planned_set *s = p->fresh;
	int64_t desired;

	return s && annotated_number(s->set, DESIRED_REPLICAS, &desired) && desired == p->replicas && s->to == p->replicas &&
	       s->available == p->replicas;
}

/* A change of spec.replicas, or of anything while paused: the proportions of a roll-out stay as they are. */
static void scale_all(struct planning *p)
{
	struct planned_set **active = ARENA_ARRAY(p->arena, struct planned_set *, p->n + 1);
	size_t n = active_sets(p, active);

	if (n == 1) {
		scale(active[0], p->replicas);
	} else if (n == 0) {
		if (p->n)
			scale(p->fresh ? p->fresh : &p->sets[p->n - 1], p->replicas);
	} else if (is_saturated(p)) {
		EACH_OLD(s, p)
			scale(s, 0);
	} else if (is_rolling(p->d)) {
		scale_in_proportion(p, active, n);
	}
}

static bool is_scaling(const struct planning *p)
{
	int64_t desired;

	EACH_SET(s, p)
		if (s->to > 0 && annotated_number(s->set, DESIRED_REPLICAS, &desired) && desired != p->replicas)
			return true;
	return false;
}

/* ---- old sets ---- */

/* Takes so many away, of the oldest first: those that are not available only, or any. */
static int64_t shrink_old(struct planning *p, int64_t most, bool unhealthy)
{
	int64_t taken = 0;

	EACH_OLD(s, p) {
		int64_t can = unhealthy ? s->to - s->available : s->to, n = MIN(can, most - taken);
		if (n <= 0)
			continue;
		scale(s, s->to - n);
		taken += n;
	}
	return taken;
}

/*
 * Old pods may go as far as enough others are available; those of the new set that are not count as if they were missing. The ones that are
 * not available themselves go first: nobody misses them, and they would be in the way.
 */
static bool scale_down_old(struct planning *p)
{
	int64_t least = p->replicas - p->max_unavailable, available = 0, taken;
	int64_t can = all_replicas(p) - least - (p->fresh->to - p->fresh->available);

	/* A set that was told to let all go may not have said so yet. */
	EACH_SET(s, p)
		if (s == p->fresh || s->from > 0)
			available += s->available;
	if (can <= 0)
		return false;
	taken = shrink_old(p, can, true);
	return taken + shrink_old(p, MIN(available - least, can - taken), false) > 0;
}

/* Old sets without pods, beyond those that are kept for a rollback. */
static void remove_history(struct planning *p)
{
	struct planned_set **old = ARENA_ARRAY(p->arena, struct planned_set *, p->n + 1);
	struct val limit = val_get(p->d, spec, revisionHistoryLimit);
	size_t n = 0;

	if (!val_exists(limit) || val_as_int(limit) == INT32_MAX)
		return;
	EACH_OLD(s, p)
		if (!val_has(s->set, metadata, deletionTimestamp))
			old[n++] = s;
	if (n > 1)
		qsort(old, n, sizeof(struct planned_set *), lowest_revision_first);
	for (size_t i = 0; (int64_t)(n - i) > val_as_int(limit); i++)
		old[i]->gone = !old[i]->actual && !old[i]->to && !old[i]->from &&
			       val_int(old[i]->set, metadata, generation) <= val_int(old[i]->set, status, observedGeneration);
}

/* ---- the strategies ---- */

static void roll(struct planning *p)
{
	sync_fresh(p);
	if (!p->fresh)
		create_fresh(p);
	int64_t size = p->fresh->to;
	if (size != p->replicas)
		scale(p->fresh, size > p->replicas ? p->replicas : fresh_size(p, size));
	if (p->fresh->to == size && !scale_down_old(p) && deployment_is_complete(p->d, val_get(p->d, status)))
		remove_history(p);
	deployment_tell_progress(p);
}

static bool old_pods_run(const struct planning *p)
{
	EACH_OLD(s, p)
		if (s->actual > 0 || s->busy)
			return true;
	return false;
}

static void recreate(struct planning *p)
{
	bool scaled = false;

	sync_fresh(p);
	EACH_OLD(s, p) {
		scaled |= s->to > 0;
		scale(s, 0);
	}
	if (!scaled && !old_pods_run(p)) {
		if (!p->fresh)
			create_fresh(p);
		scale(p->fresh, p->replicas);
		if (deployment_is_complete(p->d, val_get(p->d, status)))
			remove_history(p);
	}
	deployment_tell_progress(p);
}

/* ---- going back ---- */

static void say(struct planning *p, bool warning, const char *reason, str message)
{
	p->plan->warning = warning;
	p->plan->reason = reason;
	p->plan->message = message;
}

/* The second highest revision; 0: there is none. */
static int64_t last_revision(const struct planning *p)
{
	int64_t highest = 0, second = 0, revision;

	EACH_SET(s, p) {
		if (!revision_of(s->set, &revision))
			continue;
		if (revision >= highest) {
			second = highest;
			highest = revision;
		} else if (revision > second) {
			second = revision;
		}
	}
	return second;
}

/* The deployment with the set's template, and with its annotations in place of those that were copied. */
static struct val with_template_of(struct planning *p, struct val set)
{
	struct arena *a = p->arena;
	struct val template = val_get(set, spec, template), labels = labels_without_hash(a, template), kept = VAL_EMPTY_OBJECT;

	template = val_with(a, template, val_len(labels) ? labels : VAL_EMPTY, metadata, labels);
	VAL_EACH_MEMBER(m, val_get(p->d, metadata, annotations))
		if (stays_behind(atom_str(m->key)))
			kept = val_put(a, kept, m->key, m->val);
	VAL_EACH_MEMBER(m, val_get(set, metadata, annotations))
		if (!stays_behind(atom_str(m->key)))
			kept = val_put(a, kept, m->key, m->val);
	struct val d = val_with(a, p->d, template, spec, template);
	return val_with(a, d, val_len(kept) ? val_sorted(a, kept) : VAL_EMPTY, metadata, annotations);
}

static void roll_back(struct planning *p, int64_t revision)
{
	struct val d;
	int64_t found;

	sync_fresh(p);
	if (!p->fresh)
		create_fresh(p);
	d = p->d;
	if (!revision && !(revision = last_revision(p))) {
		say(p, true, "DeploymentRollbackRevisionNotFound", STR("Unable to find last revision."));
	} else {
		say(p, true, "DeploymentRollbackRevisionNotFound", STR("Unable to find the revision to rollback to."));
		EACH_SET(s, p) {
			if (!revision_of(s->set, &found) || found != revision)
				continue;
			str name = val_str(p->d, metadata, name);
			if (deployment_template_equal(p->arena, val_get(p->d, spec, template), val_get(s->set, spec, template))) {
				say(p, true, "DeploymentRollbackTemplateUnchanged",
				    arena_printf(p->arena, "The rollback revision contains the same template as current deployment \"" STR_FMT "\"", STR_ARG(name)));
			} else {
				d = with_template_of(p, s->set);
				say(p, false, "DeploymentRollback",
				    arena_printf(p->arena, "Rolled back deployment \"" STR_FMT "\" to revision %lld", STR_ARG(name), (long long)revision));
			}
			break;
		}
	}
	p->plan->changed = annotate(p->arena, d, STR(ROLLBACK_TO), VAL_EMPTY);
}

/* ---- all of it ---- */

/* A pause must not count against the progress deadline. */
static void note_pause(struct planning *p)
{
	str reason = val_str(deployment_condition(p->d, "Progressing"), reason);
	bool noted = str_eq(reason, STR("DeploymentPaused")), paused = val_bool(p->d, spec, paused);

	if (!deployment_has_deadline(p->d) || str_eq(reason, STR("ProgressDeadlineExceeded")))
		return;
	if (paused && !noted)
		deployment_set_condition(p, "Progressing", "Unknown", "DeploymentPaused", STR("Deployment is paused"));
	p->resumed = !paused && noted;
	if (p->resumed)
		deployment_set_condition(p, "Progressing", "Unknown", "DeploymentResumed", STR("Deployment is resumed"));
}

static void add_write(struct planning *p, enum deployment_verb verb, const struct planned_set *s, struct val set)
{
	p->plan->writes[p->plan->n++] = (struct deployment_write){ verb, set, s->from, s->to };
}

static int lowest_rank_first(const void *p, const void *q)
{
	const struct planned_set *x = *(struct planned_set *const *)p, *y = *(struct planned_set *const *)q;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void write_one(struct planning *p, const struct planned_set *s)
{
	struct val set = s->set;

	if (s->create) {
		add_write(p, DEPLOYMENT_CREATE, s, set);
	} else if (s->from != s->to) {
		set = val_with(p->arena, set, val_of_int(s->to), spec, replicas);
		add_write(p, DEPLOYMENT_UPDATE, s, with_replica_annotations(p, set));
	} else if (s->write) {
		add_write(p, DEPLOYMENT_UPDATE, s, set);
	}
}

/* What has changed, in the order of doing: the new set, the old ones (or as they were scaled), those that go. */
static void add_writes(struct planning *p)
{
	struct planned_set **order = ARENA_ARRAY(p->arena, struct planned_set *, p->n + 1);
	size_t n = 0;

	p->plan->writes = ARENA_ARRAY(p->arena, struct deployment_write, 2 * p->n + 1);
	EACH_SET(s, p)
		order[n++] = s;
	if (n > 1)
		qsort(order, n, sizeof(struct planned_set *), lowest_rank_first);
	for (size_t i = 0; i < n; i++)
		write_one(p, order[i]);
	EACH_SET(s, p)
		if (s->gone)
			add_write(p, DEPLOYMENT_DELETE, s, s->set);
}

static bool selects_all(struct val d)
{
	struct val selector = val_get(d, spec, selector);
	return val_exists(selector) && !val_len(val_get(selector, matchLabels)) && !val_len(val_get(selector, matchExpressions));
}

static void plan_nothing(struct planning *p)
{
	say(p, true, "SelectingAll", STR("This deployment is selecting all pods. A non-empty selector is required."));
	if (val_int(p->d, status, observedGeneration) < val_int(p->d, metadata, generation))
		p->plan->told = val_with(p->arena, p->d, val_get(p->d, metadata, generation), status, observedGeneration);
}

int deployment_plan(struct arena *a, const struct deployment_seen *seen, struct deployment_plan *ret, struct err *err)
{
	struct planning p = { .arena = a, .seen = seen, .d = seen->deployment, .now = moment_time(a, seen->now_ns), .plan = ret };
	str strategy = val_str(p.d, spec, strategy, type);
	int64_t revision = 0;

	*ret = (struct deployment_plan){ .again_ms = -1 };
	if (selects_all(p.d)) {
		plan_nothing(&p);
		return 0;
	}
	see(&p, seen);
	bool paused = val_bool(p.d, spec, paused), going_back = rollback_wanted(p.d, &revision);
	if (val_has(p.d, metadata, deletionTimestamp)) {
		sync_fresh(&p);
		deployment_tell_status(&p);
		add_writes(&p);
		return 0;
	}
	note_pause(&p);
	if (!paused && going_back) {
		roll_back(&p, revision);
	} else if (paused || is_scaling(&p)) {
		sync_fresh(&p);
		scale_all(&p);
		if (paused && !going_back)
			remove_history(&p);
		deployment_tell_status(&p);
	} else if (str_eq(strategy, STR("Recreate"))) {
		recreate(&p);
	} else if (str_eq(strategy, STR("RollingUpdate"))) {
		roll(&p);
	} else {
		return err_set(err, ERR_INVALID, "unexpected deployment strategy type: " STR_FMT, STR_ARG(strategy));
	}
	add_writes(&p);
	return 0;
}
