/*
 * Random clusters that change at random: the scheduler says of every pod what the reference says: which nodes it fits on and who refuses it
 * where, what each plugin's score is, where it goes, what is told and who is preempted.
 *
 * REFERENCE_CLUSTERS: how many; REFERENCE_SEED: only that one.
 */
#include "scheduler/reference.h"

#include <stdlib.h>

#include "base/fiber_hooks.h"
#include "base/fiber_test.h"
#include "base/log.h"
#include "base/random.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"
#include "scheduler/config.h"
#include "scheduler/counters_priv.h"
#include "scheduler/reference_objects.h"
#include "scheduler/reference_server.h"
#include "scheduler/scheduler_priv.h"

enum { CLUSTERS = FIBER_ASAN || FIBER_TSAN ? 150 : 2000 };

enum { NODES = 160, PODS = 96, BIG = 250 /* every so many clusters there is a big one */ };

/* Objects of one kind, by their numbers; NULL: it is not there now. */
struct shelf {
	const struct type *type;
	struct frozen **all;
	size_t n;
};

struct town {
	uint64_t seed;
	unsigned step;
	bool big, plain, forgets;     /* forgets: nothing is known of classes of pods */
	struct server *server;
	struct scheduler *scheduler;
	struct frozen *config;
	struct reference_tree tree;
	struct shelf nodes, pods, namespaces, services, budgets, replica_sets, stateful_sets, controllers;
	struct frozen *objects[NODES + PODS + 6 * OBJECTS_SPACES];
	size_t n_nodes;               /* that there may be */
	size_t next_pod, next_start;
	struct arena arena;           /* of one step */
};

/* ---- what there is ---- */

static struct val decoded(struct town *t, const struct type *type, const struct buf *b)
{
	return testing_typed(&t->arena, type, arena_str(&t->arena, buf_str(b)).p);
}

static void shelf_put(struct town *t, struct shelf *s, size_t i, struct val object)
{
	struct frozen *old = s->all[i];

	CHECK(i < s->n);
	s->all[i] = server_put(t->server, s->type, object, !old);
	frozen_unref(old);
}

static void shelf_remove(struct town *t, struct shelf *s, size_t i)
{
	server_remove(t->server, s->type, TAKE(s->all[i]));
}

/* One of those that are there; SIZE_MAX: none. */
static size_t shelf_any(const struct shelf *s, bool (*wanted)(struct val))
{
	size_t n = 0, found = SIZE_MAX;

	for (size_t i = 0; i < s->n; i++)
		if (s->all[i] && (!wanted || wanted(s->all[i]->val)) && random_below(++n) == 0)
			found = i;
	return found;
}

static struct reference_list shelf_list(struct town *t, const struct shelf *s, bool (*wanted)(struct val))
{
	struct val *all = ARENA_ARRAY(&t->arena, struct val, s->n + 1);
	struct reference_list list = { .all = all };

	for (size_t i = 0; i < s->n; i++)
		if (s->all[i] && (!wanted || wanted(s->all[i]->val)))
			all[list.n++] = s->all[i]->val;
	return list;
}

static bool has_node(struct val pod) { return val_str(pod, spec, nodeName).n > 0; }
static bool has_none(struct val pod) { return !has_node(pod); }

typedef void maker(struct buf *b, size_t number);

static void make(struct town *t, struct shelf *s, size_t i, maker *write)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	write(&b, i);
	shelf_put(t, s, i, decoded(t, s->type, &b));
}

static void change_node(struct town *t, size_t i)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	random_node(&b, i, t->plain);
	shelf_put(t, &t->nodes, i, decoded(t, t->nodes.type, &b));
	reference_tree_put(&t->tree, i, t->nodes.all[i]->val);
}

static void remove_node(struct town *t, size_t i)
{
	reference_tree_remove(&t->tree, i);
	shelf_remove(t, &t->nodes, i);
}

/* A place for one more pod: the first that is free, or that of a pod which has to go for it. */
static size_t pod_place(struct town *t)
{
	for (size_t i = 0; i < t->pods.n; i++)
		if (!t->pods.all[i])
			return i;
	size_t i = random_below(t->pods.n);
	shelf_remove(t, &t->pods, i);
	return i;
}

static size_t make_pod(struct town *t, str node)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	size_t i = pod_place(t);

	random_pod(&b, &(struct random_pod){ .number = t->next_pod++, .node = node, .plain = t->plain });
	shelf_put(t, &t->pods, i, decoded(t, t->pods.type, &b));
	return i;
}

/* One more like this one, without a node. */
static size_t copy_pod(struct town *t, size_t of)
{
	struct val pod = val_copy(&t->arena, t->pods.all[of]->val);
	size_t i = pod_place(t);
	str name = arena_printf(&t->arena, "p%zu", t->next_pod), uid = arena_printf(&t->arena, "u%zu", t->next_pod);

	t->next_pod++;
	pod = val_without(&t->arena, val_without(&t->arena, val_without(&t->arena, pod, status), spec, nodeName), metadata, deletionTimestamp);
	pod = val_with(&t->arena, val_with(&t->arena, pod, VAL_STR(name), metadata, name), VAL_STR(uid), metadata, uid);
	shelf_put(t, &t->pods, i, pod);
	return i;
}

static void edit_pod(struct town *t, size_t i, struct val value, const atom *path, size_t n)
{
	shelf_put(t, &t->pods, i, val_put_path(&t->arena, t->pods.all[i]->val, path, n, value));
}

static struct val start_time(struct town *t)
{
	size_t n = t->next_pod++;

	return VAL_STR(arena_printf(&t->arena, "2026-01-01T%02zu:%02zu:00Z", n / 60 % 24, n * 7 % 60));
}

static void bind(struct town *t, size_t i, str node)
{
	struct val pod = val_without(&t->arena, t->pods.all[i]->val, status, nominatedNodeName);

	pod = val_with(&t->arena, pod, VAL_STR(arena_str(&t->arena, node)), spec, nodeName);
	shelf_put(t, &t->pods, i, val_with(&t->arena, pod, start_time(t), status, startTime));
}

/* ---- the beginning ---- */

static void shelve(struct shelf *s, const struct type *type, struct frozen ***room, size_t n)
{
	*s = (struct shelf){ .type = type, .all = *room, .n = n };
	*room += n;
}

static void town_fill(struct town *t)
{
	struct frozen **room = t->objects;

	shelve(&t->nodes, TYPE(core_v1, Node), &room, NODES);
	shelve(&t->pods, TYPE(core_v1, Pod), &room, PODS);
	shelve(&t->namespaces, TYPE(core_v1, Namespace), &room, OBJECTS_SPACES);
	shelve(&t->services, TYPE(core_v1, Service), &room, OBJECTS_SPACES);
	shelve(&t->budgets, TYPE(policy_v1, PodDisruptionBudget), &room, OBJECTS_SPACES);
	shelve(&t->replica_sets, TYPE(apps_v1, ReplicaSet), &room, OBJECTS_APPS);
	shelve(&t->stateful_sets, TYPE(apps_v1, StatefulSet), &room, OBJECTS_APPS);
	shelve(&t->controllers, TYPE(core_v1, ReplicationController), &room, OBJECTS_APPS);
	t->n_nodes = t->big ? 100 + random_below(NODES - 100) : 2 + random_below(4);
	for (size_t i = 0; i < OBJECTS_SPACES; i++) {
		make(t, &t->namespaces, i, random_namespace);
		if (random_chance(50))
			make(t, &t->services, i, random_service);
		if (random_chance(30))
			make(t, &t->budgets, i, random_budget);
	}
	if (random_chance(50)) {
		make(t, &t->replica_sets, 0, random_owner);
		make(t, &t->stateful_sets, 1, random_owner);
		make(t, &t->controllers, 2, random_owner);
	}
	for (size_t i = 0; i < t->n_nodes; i++)
		change_node(t, i);
	for (size_t i = 0, n = random_below(8); i < n; i++)
		(void)make_pod(t, val_str(t->nodes.all[random_below(t->n_nodes)]->val, metadata, name));
}

static void shelf_clear(struct town *t, struct shelf *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i])
			shelf_remove(t, s, i);
}

static void town_clear(struct town *t)
{
	shelf_clear(t, &t->pods);
	shelf_clear(t, &t->nodes);
	shelf_clear(t, &t->namespaces);
	shelf_clear(t, &t->services);
	shelf_clear(t, &t->budgets);
	shelf_clear(t, &t->replica_sets);
	shelf_clear(t, &t->stateful_sets);
	shelf_clear(t, &t->controllers);
}

/* ---- both ---- */

static uint64_t shadow_dice(void *arg, uint64_t n) { return scheduler_dice(arg, n); }

static int by_index(const void *x, const void *y) { return *(const uint64_t *)x < *(const uint64_t *)y ? -1 : 1; }

/*
 * The cluster as the reference sees it. Nodes stand in the order of the table's indexes: nodes that a pod names are asked in that order, in
 * Kubernetes in none.
 */
static struct reference reference_of(struct town *t, struct scheduler *shadow)
{
	struct val *nodes = ARENA_ARRAY(&t->arena, struct val, NODES), *owners = ARENA_ARRAY(&t->arena, struct val, 3 * OBJECTS_APPS);
	uint64_t *indexes = ARENA_ARRAY(&t->arena, uint64_t, NODES);
	size_t *order = ARENA_ARRAY(&t->arena, size_t, NODES), n = 0;
	const struct shelf *kinds[] = { &t->replica_sets, &t->stateful_sets, &t->controllers };
	struct reference r = { .arena = &t->arena, .nodes.all = nodes, .owners.all = owners, .order = order, .next_start = t->next_start,
			       .dice = shadow_dice, .arg = shadow };

	for (size_t i = 0; i < NODES; i++)
		if (t->nodes.all[i])
			indexes[n++] = (uint64_t)nodes_find(&t->scheduler->nodes, val_str(t->nodes.all[i]->val, metadata, name)) << 32 | i;
	qsort(indexes, n, sizeof(*indexes), by_index);
	for (size_t i = 0; i < n; i++)
		nodes[r.nodes.n++] = t->nodes.all[(uint32_t)indexes[i]]->val;
	const size_t *list = reference_tree_list(&t->tree);
	CHECK(t->tree.n == n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if ((uint32_t)indexes[k] == list[i])
				order[i] = k;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < kinds[k]->n; i++)
			if (kinds[k]->all[i])
				owners[r.owners.n++] = kinds[k]->all[i]->val;
	r.pods = shelf_list(t, &t->pods, has_node);
	r.waiting = shelf_list(t, &t->pods, has_none);
	r.namespaces = shelf_list(t, &t->namespaces, NULL);
	r.services = shelf_list(t, &t->services, NULL);
	r.budgets = shelf_list(t, &t->budgets, NULL);
	r.config = val_get(val_at(val_get(t->config->val, profiles), 0), pluginConfig);
	r.percentage = val_int(t->config->val, percentageOfNodesToScore);
	return r;
}

/* One pod, for both. */
struct question {
	struct town *t;
	struct reference r;
	struct frozen *pod;
	struct cycle cycle;
	struct profile *profile;
	uint32_t *fits;
	size_t *fits_too, n;
	bool told[PLUGINS_MAX];
};

static void question_begin(struct question *q)
{
	struct scheduler *s = q->t->scheduler;

	q->profile = &s->profiles[0];
	q->cycle = (struct cycle){ .scheduler = s, .nodes = &s->nodes, .arena = &q->t->arena, .pod = q->pod->val, .storage = s->storage,
				   .devices = s->devices };
	q->cycle.placed = placed_new(&s->nodes, q->pod);
	counters_begin(s->nodes.counters);
}

static void question_end(struct question *q) { placed_free(q->cycle.placed); }

static str text_of(struct question *q, struct val v) { return testing_text(&q->t->arena, v); }

static void say(struct question *q, const char *what, struct val v)
{
	str text = text_of(q, v);

	(void)fprintf(stderr, "%s " STR_FMT "\n", what, STR_ARG(text));
}

/* All that is known, for whoever has to find out. */
static void dump(struct question *q)
{
	const struct reference_list *lists[] = { &q->r.nodes, &q->r.pods, &q->r.waiting, &q->r.namespaces, &q->r.services, &q->r.owners, &q->r.budgets };

	(void)fprintf(stderr, "seed %llu, step %u, next start %zu\n", (unsigned long long)q->t->seed, q->t->step, q->t->next_start);
	say(q, "pod", q->pod->val);
	for (size_t k = 0; getenv("REFERENCE_SEED") && k < ARRAY_LEN(lists); k++)
		for (size_t i = 0; i < lists[k]->n; i++)
			say(q, "-", lists[k]->all[i]);
}

static void same(struct question *q, const char *what, str got, str want)
{
	if (str_eq(got, want))
		return;
	dump(q);
	fail_msg("seed %llu: %s: \"" STR_FMT "\", the reference says \"" STR_FMT "\"", (unsigned long long)q->t->seed, what, STR_ARG(got),
		 STR_ARG(want));
}

/* ---- filters ---- */

static int text_order(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* "NodeResourcesFit, unresolvable: Insufficient cpu; Too many pods": reasons in order. */
static str verdict_text(struct arena *a, const char *plugin, bool unresolvable, str reason)
{
	str lines[16], text = STR("fits"), one;
	size_t n = 0;

	if (!plugin)
		return text;
	for (bool more = true; more && n < ARRAY_LEN(lines); lines[n++] = one)
		more = str_cut(reason, '\n', &one, &reason);
	qsort(lines, n, sizeof(*lines), text_order);
	text = arena_printf(a, "%s%s:", plugin, unresolvable ? ", unresolvable" : "");
	for (size_t i = 0; i < n; i++)
		text = arena_printf(a, STR_FMT " " STR_FMT ";", STR_ARG(text), STR_ARG(lines[i]));
	return text;
}

/* Fills which nodes it fits on; false: PreFilter refuses already. */
static bool compare_filters(struct question *q)
{
	struct cycle *c = &q->cycle;
	int plugin = -1;
	uint64_t asked, narrowed;

	q->n = 0;
	q->fits = ARENA_ARRAY(&q->t->arena, uint32_t, q->r.nodes.n + 1);
	q->fits_too = ARENA_ARRAY(&q->t->arena, size_t, q->r.nodes.n + 1);
	cycle_init(c, q->profile);
	enum verdict v = cycle_pre_filter(c, q->profile, &plugin, &asked, &narrowed);
	CHECK(v == FIT || v == UNRESOLVABLE);
	for (size_t i = 0; v == FIT && i < q->r.nodes.n; i++) {
		uint32_t node = nodes_find(c->nodes, val_str(q->r.nodes.all[i], metadata, name));
		enum verdict got = cycle_filter(c, q->profile, node, &plugin);
		struct reference_verdict want = reference_filter(&q->r, q->pod->val, i);
		CHECK(got != FAILED);
		same(q, arena_printf(&q->t->arena, "filter of node " STR_FMT, STR_ARG(val_str(q->r.nodes.all[i], metadata, name))).p,
		     verdict_text(&q->t->arena, got == FIT ? NULL : q->profile->plugins[plugin]->name, got == UNRESOLVABLE, c->reason),
		     verdict_text(&q->t->arena, want.plugin, want.unresolvable, want.reason));
		if (got == FIT) {
			q->fits[q->n] = node;
			q->fits_too[q->n++] = i;
		}
	}
	return v == FIT;
}

/* ---- scores ---- */

static str scores_text(struct arena *a, const int64_t *scores, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);

	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "%lld ", (long long)scores[i]);
	return arena_str(a, buf_str(&b));
}

static void compare_score(void *arg, const struct plugin *plugin, int64_t weight, const int64_t *scores, size_t n)
{
	struct question *q = arg;
	int64_t *want = ARENA_ARRAY(&q->t->arena, int64_t, n + 1);

	(void)reference_score(&q->r, plugin->name, q->pod->val, q->fits_too, n, want);
	for (const struct reference_weight *w = reference_weights; w->plugin; w++)
		if (str_eq(str_of(w->plugin), str_of(plugin->name))) {
			q->told[w - reference_weights] = true;
			CHECK_INT(weight, w->weight);
		}
	for (size_t i = 0; i < n; i++)
		want[i] *= weight;
	same(q, plugin->name, scores_text(&q->t->arena, scores, n), scores_text(&q->t->arena, want, n));
}

static void compare_scores(struct question *q)
{
	int64_t *totals = ARENA_ARRAY(&q->t->arena, int64_t, q->n + 1), *want = ARENA_ARRAY(&q->t->arena, int64_t, q->n + 1);

	scheduler_make_room(q->t->scheduler);
	memset(q->told, 0, sizeof(q->told));
	cycle_score(&q->cycle, q->profile, q->fits, q->n, totals, compare_score, q);
	/* Who says nothing gives nothing. */
	for (const struct reference_weight *w = reference_weights; w->plugin; w++) {
		if (q->told[w - reference_weights])
			continue;
		(void)reference_score(&q->r, w->plugin, q->pod->val, q->fits_too, q->n, want);
		for (size_t i = 0; i < q->n; i++)
			if (want[i] != want[0])
				same(q, w->plugin, STR("nothing"), scores_text(&q->t->arena, want, q->n));
	}
}

/* ---- all of it ---- */

/* Words in the order of the alphabet: pods that wait for a node have none. */
static str sorted_words(struct arena *a, str text)
{
	str words[PODS], all = STR(""), one;
	size_t n = 0;

	while (text.n && n < ARRAY_LEN(words)) {
		(void)str_cut(text, ' ', &one, &text);
		words[n++] = one;
	}
	qsort(words, n, sizeof(*words), text_order);
	for (size_t i = 0; i < n; i++)
		all = arena_printf(a, STR_FMT STR_FMT " ", STR_ARG(all), STR_ARG(words[i]));
	return all;
}

/* "to n1", or "message; room is made on n2: victims; who does not wait any more", and where the next look begins. */
static str got_text(struct question *q, const struct cycle_result *result)
{
	struct arena *a = &q->t->arena;
	struct scheduler *s = q->t->scheduler;
	str text = result->message;

	if (result->outcome == CYCLE_FOUND)
		text = arena_join(a, STR("to "), word_str(&s->nodes, s->nodes.name[result->node]));
	else if (result->nomination == NOMINATION_SET)
		text = arena_printf(a, STR_FMT "; nominated to \"" STR_FMT "\"", STR_ARG(text), STR_ARG(result->nominated));
	return arena_printf(a, STR_FMT "; victims " STR_FMT "; cleared " STR_FMT "; next %zu", STR_ARG(text), STR_ARG(buf_str(&q->t->server->victims)),
			    STR_ARG(sorted_words(a, buf_str(&q->t->server->cleared))), (size_t)s->next_start);
}

/* The same of the reference. Pods that are going already are not told to go. */
static str want_text(struct question *q, const struct reference_outcome *o)
{
	struct arena *a = &q->t->arena;
	str text = o->message, victims = STR(""), cleared = STR(""), node = q->r.nodes.n ? val_str(q->r.nodes.all[o->node], metadata, name) : STR("");

	VAL_EACH(v, o->victims)
		if (!val_has(*v, metadata, deletionTimestamp))
			victims = arena_printf(a, STR_FMT STR_FMT " ", STR_ARG(victims), STR_ARG(val_str(*v, metadata, name)));
	for (size_t i = 0; victims.n && i < q->r.waiting.n; i++)
		if (str_eq(val_str(q->r.waiting.all[i], status, nominatedNodeName), node) &&
		    reference_priority(q->r.waiting.all[i]) < reference_priority(q->pod->val))
			cleared = arena_printf(a, STR_FMT STR_FMT " ", STR_ARG(cleared), STR_ARG(val_str(q->r.waiting.all[i], metadata, name)));
	if (o->found)
		text = arena_join(a, STR("to "), node);
	else if (o->nominates)
		text = arena_printf(a, STR_FMT "; nominated to \"" STR_FMT "\"", STR_ARG(text), STR_ARG(o->preempts ? node : STR("")));
	return arena_printf(a, STR_FMT "; victims " STR_FMT "; cleared " STR_FMT "; next %zu", STR_ARG(text), STR_ARG(victims),
			    STR_ARG(sorted_words(a, cleared)), q->r.next_start);
}

static struct reference_outcome compare_outcome(struct question *q)
{
	static struct scheduler shadow; /* only its dice */
	struct scheduler *s = q->t->scheduler;
	struct cycle_result result;

	memcpy(shadow.dice, s->dice, sizeof(shadow.dice));
	q->r.arg = &shadow;
	buf_reset(&q->t->server->victims);
	buf_reset(&q->t->server->cleared);
	cycle_run(&q->cycle, q->profile, &result);
	result.message = arena_str(&q->t->arena, result.message);
	fiber_settle();
	struct reference_outcome o = reference_schedule(&q->r, q->pod->val);
	same(q, "outcome", got_text(q, &result), want_text(q, &o));
	q->t->next_start = q->r.next_start;
	return o;
}

/* ---- what happens then ---- */

static size_t pod_named(struct town *t, str name)
{
	for (size_t i = 0; i < t->pods.n; i++)
		if (t->pods.all[i] && str_eq(val_str(t->pods.all[i]->val, metadata, name), name))
			return i;
	return SIZE_MAX;
}

/* Those who are preempted go at once, or are still going for a while. */
static void let_go(struct town *t, struct val victims)
{
	VAL_EACH(v, victims) {
		size_t i = pod_named(t, val_str(*v, metadata, name));
		if (random_chance(40)) {
			shelf_remove(t, &t->pods, i);
			continue;
		}
		struct val gone = OBJECT(&t->arena, F(type, VAL_LIT("DisruptionTarget")), F(status, VAL_LIT("True")),
					 F(reason, VAL_LIT("PreemptionByScheduler")));
		struct val pod = val_with(&t->arena, t->pods.all[i]->val, LIST(&t->arena, gone), status, conditions);
		shelf_put(t, &t->pods, i, val_with(&t->arena, pod, VAL_LIT("2026-01-02T00:00:00Z"), metadata, deletionTimestamp));
	}
}

static void unnominate(struct town *t, size_t i)
{
	if (i != SIZE_MAX && val_has(t->pods.all[i]->val, status, nominatedNodeName))
		edit_pod(t, i, VAL_EMPTY, ATOM_PATH(status, nominatedNodeName));
}

static void follow(struct question *q, size_t pod, const struct reference_outcome *o)
{
	struct town *t = q->t;
	str node = q->r.nodes.n ? val_str(q->r.nodes.all[o->node], metadata, name) : STR_NONE;
	str cleared = arena_str(&t->arena, buf_str(&t->server->cleared)), one; /* each has a ' ' behind it */

	if (o->found) {
		bind(t, pod, node);
		return;
	}
	if (o->preempts) {
		struct val victims = val_copy(&t->arena, o->victims);
		edit_pod(t, pod, VAL_STR(arena_str(&t->arena, node)), ATOM_PATH(status, nominatedNodeName));
		let_go(t, victims);
	} else if (o->nominates) {
		unnominate(t, pod);
	}
	while (cleared.n) {
		(void)str_cut(cleared, ' ', &one, &cleared);
		unnominate(t, pod_named(t, one));
	}
	if (!o->preempts && random_chance(60))
		shelf_remove(t, &t->pods, pod);
}

/* ---- other things that happen ---- */

static void relabel(struct town *t, size_t i)
{
	const struct member labels[] = { { atom_make(&t->arena, STR("app")), VAL_LIT("db") } };

	edit_pod(t, i, val_object(&t->arena, labels, 1), ATOM_PATH(metadata, labels));
}

/* The same name on another node. */
static void move_pod(struct town *t, size_t i, size_t node)
{
	struct val pod = val_copy(&t->arena, t->pods.all[i]->val);
	str name = val_str(t->nodes.all[node]->val, metadata, name), uid = arena_printf(&t->arena, "u%zu", t->next_pod++);

	pod = val_with(&t->arena, pod, VAL_STR(uid), metadata, uid);
	shelf_put(t, &t->pods, i, val_with(&t->arena, pod, VAL_STR(arena_str(&t->arena, name)), spec, nodeName));
}

/* Somebody has found a node for a pod that waits, or made it. */
static void nominate_any(struct town *t)
{
	size_t node = shelf_any(&t->nodes, NULL), pod = random_chance(60) ? shelf_any(&t->pods, has_none) : make_pod(t, STR_NONE);

	if (pod != SIZE_MAX && node != SIZE_MAX)
		edit_pod(t, pod, val_get(t->nodes.all[node]->val, metadata, name), ATOM_PATH(status, nominatedNodeName));
}

static void change_pods(struct town *t)
{
	size_t pod = shelf_any(&t->pods, has_node), node = shelf_any(&t->nodes, NULL), waits = shelf_any(&t->pods, has_none);

	switch (random_below(6)) {
	case 0:
		if (pod != SIZE_MAX)
			shelf_remove(t, &t->pods, pod);
		break;
	case 1:
		if (pod != SIZE_MAX)
			relabel(t, pod);
		break;
	case 2:
		if (pod != SIZE_MAX && node != SIZE_MAX)
			move_pod(t, pod, node);
		break;
	case 3:
		if (pod != SIZE_MAX)
			edit_pod(t, pod, VAL_LIT("Succeeded"), ATOM_PATH(status, phase));
		if (pod != SIZE_MAX)
			shelf_remove(t, &t->pods, pod);
		break;
	case 4:
		if (waits != SIZE_MAX)
			shelf_remove(t, &t->pods, waits);
		break;
	default:
		if (node != SIZE_MAX)
			(void)make_pod(t, val_str(t->nodes.all[node]->val, metadata, name));
		break;
	}
}

static void change_others(struct town *t)
{
	size_t i = random_below(OBJECTS_SPACES);

	switch (random_below(4)) {
	case 0: make(t, &t->namespaces, i, random_namespace); break;
	case 1: make(t, &t->services, i, random_service); break;
	case 2: make(t, &t->budgets, i, random_budget); break;
	default:
		if (t->budgets.all[i])
			shelf_remove(t, &t->budgets, i);
		break;
	}
}

static void change(struct town *t)
{
	size_t node = random_below(t->n_nodes);

	/* One that is gone comes back soon, mostly. */
	for (size_t i = 0; i < t->n_nodes && random_chance(80); i++)
		if (!t->nodes.all[i])
			node = i;
	if (random_chance(25)) {
		if (!t->nodes.all[node] || random_chance(65))
			change_node(t, node);
		else
			remove_node(t, node);
	}
	if (random_chance(40))
		change_pods(t);
	if (random_chance(15))
		nominate_any(t);
	if (random_chance(10))
		change_others(t);
}

/* ---- one cluster ---- */

/* Some are as others were, so that what is known of them is used; some have tried before. */
static size_t next_pod(struct town *t)
{
	size_t waits = random_chance(30) ? shelf_any(&t->pods, has_none) : SIZE_MAX, like = random_chance(50) ? shelf_any(&t->pods, NULL) : SIZE_MAX;

	return waits != SIZE_MAX ? waits : like != SIZE_MAX ? copy_pod(t, like) : make_pod(t, STR_NONE);
}

static void step(struct town *t)
{
	size_t pod = next_pod(t);
	struct question q = { .t = t, .r = reference_of(t, NULL), .pod = frozen_ref(t->pods.all[pod]) };
	struct reference_outcome o;

	if (t->forgets)
		classes_done(&t->scheduler->classes);
	question_begin(&q);
	if (!t->big && q.r.nodes.n && compare_filters(&q) && q.n)
		compare_scores(&q);
	question_end(&q);
	question_begin(&q);
	o = compare_outcome(&q);
	question_end(&q);
	follow(&q, pod, &o);
	frozen_unref(q.pod);
}

static void run_town(struct server *server, struct informers *informers, struct frozen *const *configs, size_t n_configs, uint64_t seed)
{
	static struct town t; /* frames are small */
	struct err err = ERR_INIT;

	random_seed(seed);
	t = (struct town){ .seed = seed, .server = server, .big = seed % BIG == BIG - 1, .forgets = seed % 3 == 0, .config = configs[seed % n_configs] };
	t.plain = t.big || random_chance(20);
	random_crowd(random_chance(30));
	CHECK_INT(scheduler_new(&(struct scheduler_options){ .client = &server->client, .informers = informers, .config = t.config, .seed = seed + 1 },
				&t.scheduler, &err), 0);
	t.scheduler->nodes.counters->room = 0;
	town_fill(&t);
	for (unsigned steps = (unsigned)(t.big ? 4 : 3 + random_below(5)); t.step < steps; t.step++) {
		step(&t);
		for (uint64_t i = random_below(3); i > 0; i--)
			change(&t);
		if (random_chance(10))
			t.scheduler->nodes.counters->trim_at = 0; /* all is forgotten that the last pods have not asked for */
		arena_reset(&t.arena);
	}
	town_clear(&t);
	scheduler_free(t.scheduler);
	arena_done(&t.arena);
	random_unseed();
}

/* ---- configurations ---- */

#define ARGS(plugin, more) "{'name':'" plugin "','args':{" more "}}"

static const char *const variants[] = {
	"",
	"",
	ARGS("NodeResourcesFit", "'scoringStrategy':{'type':'MostAllocated','resources':[{'name':'cpu','weight':3},{'name':'memory'},"
	     "{'name':'example.com/gpu','weight':5}]}"),
	ARGS("NodeResourcesFit", "'ignoredResources':['example.com/fpga'],'ignoredResourceGroups':['other.org'],'scoringStrategy':{'type':"
	     "'RequestedToCapacityRatio','resources':[{'name':'cpu','weight':2},{'name':'memory'},{'name':'ephemeral-storage'}],"
	     "'requestedToCapacityRatio':{'shape':[{'utilization':10,'score':0},{'utilization':60,'score':7},{'utilization':100,'score':10}]}}"),
	ARGS("PodTopologySpread", "'defaultingType':'List','defaultConstraints':[{'maxSkew':1,'topologyKey':'topology.kubernetes.io/zone',"
	     "'whenUnsatisfiable':'DoNotSchedule'},{'maxSkew':2,'topologyKey':'rack','whenUnsatisfiable':'ScheduleAnyway'}]"),
	ARGS("NodeAffinity", "'addedAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
	     "'disk','operator':'Exists'}]}]},'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':40,'preference':{'matchExpressions':"
	     "[{'key':'rack','operator':'In','values':['r1']}]}}]}"),
	ARGS("InterPodAffinity", "'hardPodAffinityWeight':70"),
	ARGS("InterPodAffinity", "'hardPodAffinityWeight':0,'ignorePreferredTermsOfExistingPods':true") "," ARGS("NodeResourcesBalancedAllocation",
	     "'resources':[{'name':'cpu'},{'name':'memory'},{'name':'ephemeral-storage'},{'name':'example.com/gpu'}]") ","
	ARGS("DefaultPreemption", "'minCandidateNodesPercentage':0,'minCandidateNodesAbsolute':1"),
	ARGS("PodTopologySpread", "'defaultingType':'List'"),
};

static struct frozen *config_of(const char *plugin_config, unsigned percentage)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val config;
	struct err err = ERR_INIT;
	str text = arena_printf(&a, "{'percentageOfNodesToScore':%u,'profiles':[{'pluginConfig':[%s]}]}", percentage, plugin_config);

	config = testing_typed(&a, TYPE(kubeschedulerconfig_v1, KubeSchedulerConfiguration), text.p);
	if (sched_config_defaults(&a, config, &config, &err) < 0 || sched_config_check(config, &err) < 0)
		fail_msg("%s: %s", plugin_config, err.msg);
	return val_freeze(config);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

FIBER_TEST(scheduler_does_what_the_reference_does)
{
	static struct server server;
	struct frozen *configs[ARRAY_LEN(variants)];
	uint64_t seed = number_from("REFERENCE_SEED", 0), n = getenv("REFERENCE_SEED") ? seed + 1 : number_from("REFERENCE_CLUSTERS", CLUSTERS);
	struct err err = ERR_INIT;

	log_set_level(LOG_LEVEL_ERROR);
	for (size_t i = 0; i < ARRAY_LEN(variants); i++)
		configs[i] = config_of(variants[i], i % 2 ? 40 : 0);
	server_init(&server);
	struct informers *informers = informers_new(&server.client);
	/* The first one makes all informers; those after it find them. */
	struct scheduler *first;
	CHECK_INT(scheduler_new(&(struct scheduler_options){ .client = &server.client, .informers = informers, .config = configs[0], .seed = 1 },
				&first, &err), 0);
	scheduler_free(first);
	CHECK_INT(informers_start(informers, &err), 0);
	CHECK_INT(informers_wait(informers, &err), 0);
	for (; seed < n; seed++)
		run_town(&server, informers, configs, ARRAY_LEN(variants), seed);
	informers_free(informers);
	server_done(&server);
	log_set_level(LOG_LEVEL_INFO);
	for (size_t i = 0; i < ARRAY_LEN(variants); i++)
		frozen_unref(configs[i]);
}
