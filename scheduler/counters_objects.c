/*
 * What the counters know of objects: the affinity terms of pods, labels of namespaces, and the selectors of services and controllers, by which
 * pods are spread that say nothing themselves. Services are picks like any other, so that a pod finds its own among thousands.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/atoms.h"
#include "scheduler/counters_priv.h"

/* More terms than that are a mistake, or an attack on the scheduler's memory. */
enum { TERMS_MAX = 1000 };

/* ---- carriers ---- */

static struct carrier *carrier_ref(struct counters *c, struct pick *k, struct topo *topo)
{
	LIST_EACH(struct carrier, r, &k->carriers, link)
		if (r->tally[0]->topo == topo) {
			r->refs++;
			return r;
		}
	struct carrier *r = mem_zalloc(sizeof(*r));
	r->pick = k;
	r->refs = 1;
	k->refs++;
	for (unsigned i = 0; i < CARRY_MAX; i++) {
		crowd_init(&r->crowd[i]);
		r->tally[i] = crowd_tally(c, &r->crowd[i], topo, NULL);
	}
	list_add(&k->carriers, &r->link);
	return r;
}

static void carrier_unref(struct counters *c, struct carrier *r)
{
	if (--r->refs)
		return;
	list_remove(&r->link);
	for (unsigned i = 0; i < CARRY_MAX; i++)
		crowd_done(c, &r->crowd[i]);
	r->pick->refs--;
	pick_release(c, r->pick);
	free(r);
}

struct tally *carrier_tally(struct carrier *r, unsigned which) { return r->tally[which]; }

struct carrier **counters_carriers(struct counters *c, struct arena *a, const struct placed *p, size_t *ret_n)
{
	struct match m = match_begin(c, p);
	struct carrier **all = NULL;
	size_t n = 0, cap = 0;

	for (struct pick *k; (k = match_next(&m));)
		LIST_EACH(struct carrier, r, &k->carriers, link) {
			if (n == cap) {
				struct carrier **more = ARENA_ARRAY(a, struct carrier *, cap ? cap * 2 : 8);
				if (n)
					memcpy(more, all, n * sizeof(*all));
				all = more;
				cap = cap ? cap * 2 : 8;
			}
			all[n++] = r;
		}
	*ret_n = n;
	return all;
}

/* ---- terms ---- */

static int part_parse(struct arena *a, struct val pod, struct val term, struct pick_part *ret, struct err *err)
{
	struct val names = val_get(term, namespaces), by = val_get(term, namespaceSelector);
	str *namespaces = ARENA_ARRAY(a, str, val_len(names) + 1);
	struct selector *of_namespace = ARENA_NEW(a, struct selector);
	size_t n = 0;
	int r = selector_of_object(a, val_get(term, labelSelector), &ret->labels, err);

	if (r < 0 || (r = selector_of_object(a, by, of_namespace, err)) < 0)
		return r;
	VAL_EACH(name, names)
		namespaces[n++] = val_as_str(*name);
	if (!n && val_is_nil(by))
		namespaces[n++] = val_str(pod, metadata, namespace);
	ret->namespaces = namespaces;
	ret->n_namespaces = n;
	ret->namespace_selector = of_namespace;
	return 0;
}

/* The four lists of a pod's spec. */
static struct val terms_of(struct val pod, enum term_kind kind)
{
	struct val affinity = val_get(pod, spec, affinity);

	switch (kind) {
	case TERM_AFFINITY: return val_get(affinity, podAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	case TERM_ANTI: return val_get(affinity, podAntiAffinity, requiredDuringSchedulingIgnoredDuringExecution);
	case TERM_PREFERRED: return val_get(affinity, podAffinity, preferredDuringSchedulingIgnoredDuringExecution);
	case TERM_PREFERRED_ANTI: return val_get(affinity, podAntiAffinity, preferredDuringSchedulingIgnoredDuringExecution);
	}
	return VAL_EMPTY;
}

static struct pod_terms *terms_new(const struct placed *p, size_t n)
{
	struct pod_terms *t = mem_zalloc(sizeof(*t) + n * sizeof(struct term));
	t->at = mem_array(p->n_labels + (size_t)1, sizeof(*t->at));
	return t;
}

static int term_parse(struct counters *c, struct val pod, struct val item, enum term_kind kind, struct pick_part *part, struct term *ret,
		      struct err *err)
{
	bool preferred = kind == TERM_PREFERRED || kind == TERM_PREFERRED_ANTI;
	struct val term = preferred ? val_get(item, podAffinityTerm) : item;
	int r = part_parse(&c->parse, pod, term, part, err);

	if (r < 0)
		return r;
	struct topo *topo = counters_topo(c, val_str(term, topologyKey));
	struct pick *k = counters_pick(c, &(struct pick_spec){ .parts = part, .n = 1 });
	*ret = (struct term){ kind, preferred ? (int32_t)val_int(item, weight) : 0, k, carrier_ref(c, k, topo) };
	return 0;
}

static void terms_clear(struct counters *c, struct pod_terms *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		carrier_unref(c, t->terms[i].carrier);
	if (t->all) {
		t->all->refs--;
		pick_release(c, t->all);
	}
	t->n = t->n_affinity = t->n_anti = t->n_preferred = 0;
	t->all = NULL;
}

static int terms_parse(struct counters *c, struct val pod, struct pod_terms *t, struct err *err)
{
	struct pick_part *parts = ARENA_ARRAY(&c->parse, struct pick_part, val_len(terms_of(pod, TERM_AFFINITY)) + 1);
	struct pick_part other;

	for (enum term_kind kind = TERM_AFFINITY; kind <= TERM_PREFERRED_ANTI; kind++)
		VAL_EACH(item, terms_of(pod, kind)) {
			struct pick_part *part = kind == TERM_AFFINITY ? &parts[t->n_affinity] : &other;
			int r = term_parse(c, pod, *item, kind, part, &t->terms[t->n], err);
			if (r < 0)
				return r;
			t->n++;
			t->n_affinity += kind == TERM_AFFINITY;
			t->n_anti += kind == TERM_ANTI;
			t->n_preferred += kind == TERM_PREFERRED || kind == TERM_PREFERRED_ANTI;
		}
	if (t->n_affinity) {
		t->all = counters_pick(c, &(struct pick_spec){ .parts = parts, .n = t->n_affinity });
		t->all->refs++;
	}
	return 0;
}

const struct pod_terms *counters_terms(struct counters *c, struct placed *p)
{
	struct val pod = p->pod->val;
	struct err err = ERR_INIT;
	size_t n = 0;

	if (p->affinity)
		return p->affinity;
	for (enum term_kind kind = TERM_AFFINITY; kind <= TERM_PREFERRED_ANTI; kind++)
		n += val_len(terms_of(pod, kind));
	struct pod_terms *t = terms_new(p, n > TERMS_MAX ? 0 : n);
	p->affinity = t;
	if (!n)
		return t;
	arena_reset(&c->parse);
	int r = n > TERMS_MAX ? err_set(&err, ERR_INVALID, "more than %d terms of pod affinity", TERMS_MAX) : terms_parse(c, pod, t, &err);
	if (r < 0) {
		terms_clear(c, t);
		t->error = mem_alloc(err.n + (size_t)1);
		memcpy(t->error, err.msg, err.n + (size_t)1);
	}
	return t;
}

void counters_pod_free(struct counters *c, struct placed *p)
{
	struct pod_terms *t = p->affinity;

	if (!t)
		return;
	terms_clear(c, t);
	free(t->error);
	free(t->at);
	free(t);
	p->affinity = NULL;
}

struct topo *term_topo(const struct term *t) { return t->carrier->tally[0]->topo; }

/* ---- namespaces ---- */

const struct space *space_of(const struct counters *c, word namespace) { return tab_pointer(&c->spaces, namespace); }

static void space_free(struct counters *c, struct space *s)
{
	if (!s)
		return;
	tab_point(&c->spaces, s->name, NULL);
	for (uint32_t i = 0; i < s->n; i++) {
		word_drop(c->nodes, s->labels[i].key);
		word_drop(c->nodes, s->labels[i].value);
	}
	word_drop(c->nodes, s->name);
	free(s->labels);
	free(s);
}

static int label_order(const void *x, const void *y)
{
	const struct label *a = x, *b = y;
	return a->key < b->key ? -1 : a->key > b->key;
}

void counters_namespace(struct counters *c, struct val old, struct val new)
{
	str text = val_str(val_exists(new) ? new : old, metadata, name);
	struct val labels = val_get(new, metadata, labels);

	if (val_exists(old) && val_exists(new) && val_equal(val_get(old, metadata, labels), labels))
		return;
	word name = word_make(c->nodes, text);
	space_free(c, tab_pointer(&c->spaces, name));
	if (val_exists(new)) {
		struct space *s = mem_zalloc(sizeof(*s));
		s->name = word_hold(c->nodes, name);
		s->labels = mem_array(val_len(labels) + (size_t)1, sizeof(*s->labels));
		VAL_EACH_MEMBER(m, labels)
			s->labels[s->n++] = (struct label){ word_make(c->nodes, atom_str(m->key)), word_make(c->nodes, val_as_str(m->val)) };
		qsort(s->labels, s->n, sizeof(*s->labels), label_order);
		tab_point(&c->spaces, name, s);
	}
	word_drop(c->nodes, name);
	/* Who was counted by labels of namespaces is counted again when somebody asks. */
	LIST_EACH_SAFE(struct pick, k, &c->picks, link)
		if (k->by_labels && k->counted) {
			pick_forget(c, k);
			pick_release(c, k);
		}
}

/* ---- services and controllers ---- */

struct service {
	struct pick *pick;
	str key;                      /* behind this struct */
};

struct owner {
	struct frozen *selector;
	str key;                      /* behind this struct */
};

static str key_text(struct arena *a, int kind, str namespace, str name)
{
	return arena_printf(a, "%d/" STR_FMT "/" STR_FMT, kind, STR_ARG(namespace), STR_ARG(name));
}

static str key_of(struct arena *a, int kind, struct val object)
{
	return key_text(a, kind, val_str(object, metadata, namespace), val_str(object, metadata, name));
}

/* A block with the key behind it. */
static void *keyed_new(size_t size, str key, str *ret_key)
{
	char *block = mem_zalloc(size + key.n + 1);
	memcpy(block + size, key.p, key.n);
	*ret_key = str_span(block + size, key.n);
	return block;
}

static void service_free(struct counters *c, struct service *s)
{
	if (!s)
		return;
	s->pick->n_services--;
	s->pick->refs--;
	pick_release(c, s->pick);
	free(s);
}

void counters_service(struct counters *c, struct val old, struct val new)
{
	arena_reset(&c->parse);
	str key, text = key_of(&c->parse, 0, val_exists(new) ? new : old);
	struct val selector = val_get(new, spec, selector);

	service_free(c, map_remove(&c->services, text));
	if (!val_len(selector))
		return;
	str namespace = val_str(new, metadata, namespace);
	struct pick_part part = { .namespaces = &namespace, .n_namespaces = 1, .labels = selector_of_labels(&c->parse, selector) };
	struct service *s = keyed_new(sizeof(*s), text, &key);
	s->key = key;
	s->pick = counters_pick(c, &(struct pick_spec){ .parts = &part, .n = 1 });
	s->pick->n_services++;
	s->pick->refs++;
	map_put(&c->services, s->key, s);
}

static void owner_free(struct owner *o)
{
	if (!o)
		return;
	frozen_unref(o->selector);
	free(o);
}

void counters_owner(struct counters *c, enum counters_owner kind, struct val old, struct val new)
{
	arena_reset(&c->parse);
	str key, text = key_of(&c->parse, (int)kind, val_exists(new) ? new : old);
	struct val selector = val_get(new, spec, selector);

	if (val_exists(old) && val_equal(val_get(old, spec, selector), selector))
		return;
	owner_free(map_remove(&c->owners, text));
	if (!val_len(selector))
		return;
	struct owner *o = keyed_new(sizeof(*o), text, &key);
	o->key = key;
	o->selector = val_freeze(selector);
	map_put(&c->owners, o->key, o);
}

/* ---- the selector of a pod that says nothing ---- */

struct requirements {
	struct arena *arena;
	struct requirement *all;
	size_t n, cap;
};

/* alone: instead of what was required of this label so far. */
static void require(struct requirements *q, const struct requirement *r, bool alone)
{
	for (size_t i = 0; i < q->n && alone; i++)
		if (atom_eq(q->all[i].key, r->key)) {
			q->all[i] = *r;
			return;
		}
	if (q->n == q->cap) {
		struct requirement *more = ARENA_ARRAY(q->arena, struct requirement, q->cap * 2 + 8);
		if (q->n)
			memcpy(more, q->all, q->n * sizeof(*more));
		q->all = more;
		q->cap = q->cap * 2 + 8;
	}
	q->all[q->n++] = *r;
}

static void require_service(struct counters *c, struct requirements *q, const struct pick *k)
{
	const struct wants *w = &k->parts[0].of_pod;

	for (size_t i = 0; i < w->n; i++) {
		str *value = ARENA_NEW(q->arena, str);
		*value = arena_str(q->arena, word_str(c->nodes, w->all[i].values[0]));
		require(q, &(struct requirement){ .key = atom_make(q->arena, word_str(c->nodes, w->all[i].key)), .op = SELECTOR_EQUALS,
						  .n_values = 1, .values = value }, true);
	}
}

static void require_owner(struct counters *c, struct requirements *q, struct val pod)
{
	static const struct { str version, kind; enum counters_owner owner; } kinds[] = {
		{ STR_INIT("v1"), STR_INIT("ReplicationController"), OWNER_REPLICATION_CONTROLLER },
		{ STR_INIT("apps/v1"), STR_INIT("ReplicaSet"), OWNER_REPLICA_SET },
		{ STR_INIT("apps/v1"), STR_INIT("StatefulSet"), OWNER_STATEFUL_SET },
	};
	struct val ref = VAL_EMPTY;
	struct selector s = SELECTOR_NOTHING;

	VAL_EACH(r, val_get(pod, metadata, ownerReferences))
		if (!val_exists(ref) && val_bool(*r, controller))
			ref = *r;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!str_eq(val_str(ref, apiVersion), kinds[i].version) || !str_eq(val_str(ref, kind), kinds[i].kind))
			continue;
		const struct owner *o = map_get(&c->owners, key_text(q->arena, (int)kinds[i].owner, val_str(pod, metadata, namespace),
								     val_str(ref, name)));
		if (!o)
			return;
		bool labels = kinds[i].owner == OWNER_REPLICATION_CONTROLLER;
		if (labels)
			s = selector_of_labels(q->arena, o->selector->val);
		else if (selector_of_object(q->arena, o->selector->val, &s, NULL) < 0)
			return;
		for (size_t k = 0; k < s.n; k++)
			require(q, &s.all[k], labels);
	}
}

bool counters_default_selector(struct counters *c, struct arena *a, struct val pod, const struct placed *p, struct selector *ret)
{
	struct requirements q = { .arena = a };
	struct match m = match_begin(c, p);

	for (struct pick *k; (k = match_next(&m));)
		if (k->n_services)
			require_service(c, &q, k);
	require_owner(c, &q, pod);
	if (q.n)
		*ret = selector_of_requirements(a, q.all, q.n);
	return q.n > 0;
}

void objects_done(struct counters *c)
{
	struct map_iter it = map_iter(&c->services);
	for (struct service *s; (s = map_next(&it, NULL));)
		service_free(c, s);
	map_done(&c->services);
	it = map_iter(&c->owners);
	for (struct owner *o; (o = map_next(&it, NULL));)
		owner_free(o);
	map_done(&c->owners);
	TAB_EACH(e, &c->spaces)
		space_free(c, (struct space *)(intptr_t)e->value);
	tab_done(&c->spaces);
}
