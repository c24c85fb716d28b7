/*
 * Picks and what is counted for them. A pod that comes or goes finds the picks that match it by its labels: a pick that asks for one value of a
 * label stands under that label (and its namespace, when it has just one), so a pod looks at few of them. The other way round, a new pick finds
 * its pods through the shortest list of pods that have one of its labels. Both are exact: candidates are matched in full.
 *
 * Amounts by node are the truth; tallies are sums of them by domain, kept in step by crowd_add and, when nodes change, by counters_node.
 */
#include "scheduler/counters_priv.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

/* What was asked for by the last few pods is kept in any case. */
enum { AGE_MIN = 4, KEY_MAX = 256 << 20 };

/* ---- tab ---- */

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Keys are stored as key + 1; 0 is a free slot. */
static struct tab_slot *tab_find(const struct tab *t, uint64_t key)
{
	uint32_t i = (uint32_t)mix(key) & t->mask;
	while (t->slots[i].key && t->slots[i].key != key + 1)
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

int64_t tab_get(const struct tab *t, uint64_t key)
{
	return t->slots ? tab_find(t, key)->value : 0;
}

/* Makes room; values that have become 0 leave. */
static void tab_rebuild(struct tab *t)
{
	struct tab old = *t;
	uint32_t n = 0;

	TAB_EACH(e, &old)
		n++;
	t->mask = 7;
	while (t->mask < n * 2 + 1)
		t->mask = t->mask * 2 + 1;
	t->slots = mem_zalloc((t->mask + (size_t)1) * sizeof(*t->slots));
	t->used = n;
	TAB_EACH(e, &old)
		*tab_find(t, e->key - 1) = *e;
	free(old.slots);
}

int64_t *tab_put(struct tab *t, uint64_t key)
{
	struct tab_slot *s = t->slots ? tab_find(t, key) : NULL;

	if (!s || (!s->key && (t->used + 1) * 4 > t->mask * 3)) {
		tab_rebuild(t);
		s = tab_find(t, key);
	}
	if (!s->key) {
		s->key = key + 1;
		t->used++;
	}
	return &s->value;
}

void tab_done(struct tab *t)
{
	free(t->slots);
	*t = (struct tab){ 0 };
}

/* ---- memory ---- */

void *room_grow(struct counters *c, void *p, size_t old, size_t n, size_t item)
{
	char *grown = mem_resize(p, n * item);
	memset(grown + old * item, 0, (n - old) * item);
	c->size += (n - old) * item;
	return grown;
}

void room_free(struct counters *c, void *p, size_t n, size_t item)
{
	free(p);
	c->size -= n * item;
}

word word_hold(struct nodes *t, word w) { return w ? word_make(t, word_str(t, w)) : 0; }

/* ---- tallies ---- */

/* From the table of few to an array, once an eighth of all domains have a count. */
static void tally_densify(struct counters *c, struct tally *t)
{
	t->cap = t->topo->n + 1;
	t->count = room_grow(c, NULL, 0, t->cap, sizeof(*t->count));
	TAB_EACH(e, &t->few)
		t->count[e->key - 1] = e->value;
	tab_done(&t->few);
}

static int64_t *tally_slot(struct counters *c, struct tally *t, uint32_t domain)
{
	if (!t->count && (uint64_t)t->n_used * 8 >= t->topo->n)
		tally_densify(c, t);
	if (!t->count)
		return tab_put(&t->few, domain);
	if (domain >= t->cap) {
		uint32_t cap = MAX(domain + 1, t->topo->cap);
		t->count = room_grow(c, t->count, t->cap, cap, sizeof(*t->count));
		t->cap = cap;
	}
	return &t->count[domain];
}

/* The number of domains with this count changes. */
static void tally_note(struct counters *c, struct tally *t, int64_t count, int by)
{
	if (!t->scope || count <= 0)
		return;
	if (count >= t->n_with) {
		uint32_t n = (uint32_t)MAX(count + 1, (int64_t)t->n_with * 2);
		t->with = room_grow(c, t->with, t->n_with, n, sizeof(*t->with));
		t->n_with = n;
	}
	t->with[count] += (uint32_t)by;
	if (by > 0 && count < t->low)
		t->low = (uint32_t)count;
}

void tally_add(struct counters *c, struct tally *t, uint32_t domain, int64_t amount)
{
	int64_t *slot = tally_slot(c, t, domain), old = *slot;

	*slot = old + amount;
	t->total += amount;
	t->n_used += (*slot != 0) - (old != 0);
	tally_note(c, t, old, -1);
	tally_note(c, t, old + amount, 1);
}

int64_t tally_min(struct tally *t)
{
	if (t->n_used < t->scope->n_domains)
		return 0;
	while (t->low < t->n_with && !t->with[t->low])
		t->low++;
	return t->low < t->n_with ? t->low : 0;
}

static void tally_free(struct counters *c, struct tally *t)
{
	list_remove(&t->link);
	t->topo->refs--;
	if (t->scope)
		t->scope->refs--;
	tab_done(&t->few);
	room_free(c, t->count, t->cap, sizeof(*t->count));
	room_free(c, t->with, t->n_with, sizeof(*t->with));
	room_free(c, t, 1, sizeof(*t));
}

/* ---- crowds ---- */

void crowd_init(struct crowd *d)
{
	*d = (struct crowd){ 0 };
	list_init(&d->tallies);
}

void crowd_done(struct counters *c, struct crowd *d)
{
	LIST_EACH_SAFE(struct tally, t, &d->tallies, link)
		tally_free(c, t);
	c->size -= d->on.slots ? (d->on.mask + (size_t)1) * sizeof(*d->on.slots) : 0;
	tab_done(&d->on);
}

static void crowd_count(struct counters *c, struct crowd *d, uint32_t node, int64_t amount)
{
	const struct tab_slot *before = d->on.slots;
	uint32_t mask = before ? d->on.mask : 0;

	*tab_put(&d->on, node) += amount;
	if (d->on.slots != before)
		c->size += ((size_t)d->on.mask - mask + !before) * sizeof(*d->on.slots);
}

void crowd_add(struct counters *c, struct crowd *d, uint32_t node, int64_t amount)
{
	crowd_count(c, d, node, amount);
	LIST_EACH(struct tally, t, &d->tallies, link) {
		uint32_t domain = tally_domain(t, node);
		if (domain)
			tally_add(c, t, domain, amount);
	}
}

struct tally *crowd_tally(struct counters *c, struct crowd *d, struct topo *topo, struct scope *scope)
{
	LIST_EACH(struct tally, t, &d->tallies, link)
		if (t->topo == topo && t->scope == scope)
			return t;
	struct tally *made = room_grow(c, NULL, 0, 1, sizeof(*made));
	*made = (struct tally){ .topo = topo, .scope = scope, .low = UINT32_MAX };
	topo->refs++;
	if (scope)
		scope->refs++;
	list_add(&d->tallies, &made->link);
	TAB_EACH(e, &d->on) {
		uint32_t domain = tally_domain(made, (uint32_t)(e->key - 1));
		if (domain)
			tally_add(c, made, domain, e->value);
	}
	return made;
}

/* ---- matching ---- */

bool wants_match(const struct wants *w, const struct label *labels, uint32_t n)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct want *x = &w->all[i];
		word value = labels_find(labels, n, x->key);
		bool found = false;
		for (uint32_t k = 0; k < x->n && value; k++)
			found |= x->values[k] == value;
		switch (x->op) {
		case SELECTOR_IN: break;
		case SELECTOR_NOT_IN: found = !found; break;
		case SELECTOR_EXISTS: found = value != 0; break;
		default: found = value == 0; break;
		}
		if (!found)
			return false;
	}
	return !w->nothing;
}

static bool part_has_namespace(const struct counters *c, const struct part *t, word namespace)
{
	for (size_t i = 0; i < t->n_namespaces; i++)
		if (t->namespaces[i] == namespace)
			return true;
	if (!t->by_labels)
		return false;
	const struct space *s = space_of(c, namespace);
	return wants_match(&t->of_namespace, s ? s->labels : NULL, s ? s->n : 0);
}

static bool pick_matches(const struct counters *c, const struct pick *k, word namespace, const struct label *labels, uint32_t n)
{
	for (size_t i = 0; i < k->n; i++)
		if (!part_has_namespace(c, &k->parts[i], namespace) || !wants_match(&k->parts[i].of_pod, labels, n))
			return false;
	return true;
}

static uint64_t anchor_hash(struct anchor a) { return mix(((uint64_t)a.key << 32 | a.value) ^ mix(a.namespace)) >> 1; }

static bool anchor_eq(struct anchor a, struct anchor b)
{
	return a.namespace == b.namespace && a.key == b.key && a.value == b.value;
}

struct match match_begin(struct counters *c, const struct placed *p)
{
	return (struct match){ .c = c, .namespace = p->namespace, .labels = p->labels, .n = p->n_labels };
}

struct pick *match_next(struct match *m)
{
	for (;;) {
		while (m->next) {
			struct pick *k = m->next;
			m->next = k->next;
			if (anchor_eq(k->anchor, m->anchor) && pick_matches(m->c, k, m->namespace, m->labels, m->n))
				return k;
		}
		if (m->step > m->n * 2 + 1)
			return NULL;
		uint32_t i = m->step / 2;
		m->anchor = (struct anchor){ m->step % 2 ? m->namespace : 0, i < m->n ? m->labels[i].key : 0, i < m->n ? m->labels[i].value : 0 };
		m->step++;
		m->next = tab_pointer(&m->c->anchors, anchor_hash(m->anchor));
	}
}

/* ---- picks ---- */

/* About what it takes: words and texts are as long as the key. */
static size_t pick_size(const struct pick *k) { return sizeof(*k) + 4 * k->key.n; }

static void wants_compile(struct nodes *t, const struct selector *s, struct wants *ret)
{
	*ret = (struct wants){ .all = mem_array(s->n + 1, sizeof(*ret->all)), .n = s->n, .nothing = s->nothing };
	for (size_t i = 0; i < s->n; i++) {
		const struct requirement *r = &s->all[i];
		struct want *w = &ret->all[i];
		uint8_t op = r->op == SELECTOR_EQUALS || r->op == SELECTOR_DOUBLE_EQUALS ? SELECTOR_IN :
			     r->op == SELECTOR_NOT_EQUALS                              ? SELECTOR_NOT_IN :
											 r->op;
		*w = (struct want){ word_make(t, atom_str(r->key)), op, r->n_values, mem_array(r->n_values + (size_t)1, sizeof(word)) };
		for (uint32_t k = 0; k < r->n_values; k++)
			w->values[k] = word_make(t, r->values[k]);
	}
}

static void wants_done(struct nodes *t, struct wants *w)
{
	for (size_t i = 0; i < w->n; i++) {
		word_drop(t, w->all[i].key);
		for (uint32_t k = 0; k < w->all[i].n; k++)
			word_drop(t, w->all[i].values[k]);
		free(w->all[i].values);
	}
	free(w->all);
}

static void part_compile(struct nodes *t, const struct pick_part *p, struct part *ret)
{
	*ret = (struct part){ .namespaces = mem_array(p->n_namespaces + 1, sizeof(word)),
			      .n_namespaces = p->n_namespaces,
			      .by_labels = p->namespace_selector && !p->namespace_selector->nothing };
	for (size_t i = 0; i < p->n_namespaces; i++)
		ret->namespaces[i] = word_make(t, p->namespaces[i]);
	wants_compile(t, p->namespace_selector ? p->namespace_selector : &SELECTOR_NOTHING, &ret->of_namespace);
	wants_compile(t, &p->labels, &ret->of_pod);
}

/* The label and the namespace that every matching pod has, as far as there are any. */
static struct anchor anchor_of(const struct part *parts, size_t n)
{
	struct anchor best = { 0, 0, 0 };

	for (size_t i = 0; i < n; i++) {
		struct anchor a = { parts[i].n_namespaces == 1 && !parts[i].by_labels ? parts[i].namespaces[0] : 0, 0, 0 };
		for (size_t k = 0; k < parts[i].of_pod.n; k++) {
			const struct want *w = &parts[i].of_pod.all[k];
			if (w->op == SELECTOR_IN && w->n == 1) {
				a.key = w->key;
				a.value = w->values[0];
			}
		}
		if ((a.key != 0) * 2 + (a.namespace != 0) > (best.key != 0) * 2 + (best.namespace != 0))
			best = a;
	}
	return best;
}

/* Equal texts mean equal picks; names of namespaces have no such separators, nor have selectors. */
static str spec_key(struct arena *a, const struct pick_spec *s)
{
	CLEANUP(buf_done) struct buf key = BUF_INIT(KEY_MAX);

	buf_add(&key, s->living ? STR("living") : STR("all"));
	for (size_t i = 0; i < s->n; i++) {
		const struct pick_part *p = &s->parts[i];
		const struct selector *by = p->namespace_selector;
		for (size_t k = 0; k < p->n_namespaces; k++) {
			buf_addc(&key, '|');
			buf_add(&key, p->namespaces[k]);
		}
		buf_addc(&key, ';');
		buf_add(&key, !by || by->nothing ? STR("-") : selector_text(a, by));
		buf_addc(&key, ';');
		buf_add(&key, p->labels.nothing ? STR("-") : selector_text(a, &p->labels));
		buf_addc(&key, '\n');
	}
	return arena_str(a, buf_str(&key));
}

static struct pick *pick_make(struct counters *c, const struct pick_spec *s, str key)
{
	struct pick *k = mem_zalloc(sizeof(*k));
	char *text = mem_alloc(key.n + 1);

	memcpy(text, key.p, key.n);
	k->key = str_span(text, key.n);
	k->living = s->living;
	k->parts = mem_array(s->n + 1, sizeof(*k->parts));
	k->n = s->n;
	for (size_t i = 0; i < s->n; i++) {
		part_compile(c->nodes, &s->parts[i], &k->parts[i]);
		k->by_labels |= k->parts[i].by_labels;
	}
	crowd_init(&k->crowd);
	list_init(&k->carriers);
	k->anchor = anchor_of(k->parts, k->n);
	k->next = tab_pointer(&c->anchors, anchor_hash(k->anchor));
	tab_point(&c->anchors, anchor_hash(k->anchor), k);
	list_add(&c->picks, &k->link);
	map_put(&c->pick_keys, k->key, k);
	c->size += pick_size(k);
	return k;
}

struct pick *counters_pick(struct counters *c, const struct pick_spec *s)
{
	arena_reset(&c->scratch);
	str key = spec_key(&c->scratch, s);
	struct pick *k = map_get(&c->pick_keys, key);

	if (!k)
		k = pick_make(c, s, key);
	k->stamp = c->now;
	return k;
}

static void pick_free(struct counters *c, struct pick *k)
{
	uint64_t hash = anchor_hash(k->anchor);
	struct pick *head = tab_pointer(&c->anchors, hash);

	if (head == k)
		tab_point(&c->anchors, hash, k->next);
	else
		for (; head; head = head->next)
			if (head->next == k)
				head->next = k->next;
	c->size -= pick_size(k);
	list_remove(&k->link);
	map_remove(&c->pick_keys, k->key);
	for (size_t i = 0; i < k->n; i++) {
		for (size_t n = 0; n < k->parts[i].n_namespaces; n++)
			word_drop(c->nodes, k->parts[i].namespaces[n]);
		free(k->parts[i].namespaces);
		wants_done(c->nodes, &k->parts[i].of_namespace);
		wants_done(c->nodes, &k->parts[i].of_pod);
	}
	free(k->parts);
	free((char *)k->key.p);
	free(k);
}

void pick_forget(struct counters *c, struct pick *k)
{
	crowd_done(c, &k->crowd);
	crowd_init(&k->crowd);
	c->n_counted -= k->counted;
	k->counted = false;
}

void pick_release(struct counters *c, struct pick *k)
{
	if (!k->refs && !k->counted)
		pick_free(c, k);
}

/* ---- counting pods ---- */

static bool pick_counts(const struct counters *c, const struct pick *k, const struct placed *p)
{
	return !(k->living && p->deleting) && pick_matches(c, k, p->namespace, p->labels, p->n_labels);
}

static uint64_t bucket_key(struct label l) { return (uint64_t)l.key << 32 | l.value; }

/* The shortest list that has all pods of a pick; false: there is none. */
static bool pick_bucket(const struct counters *c, const struct pick *k, const struct bucket **ret)
{
	bool any = false;

	for (size_t i = 0; i < k->n; i++)
		for (size_t w = 0; w < k->parts[i].of_pod.n; w++) {
			const struct want *x = &k->parts[i].of_pod.all[w];
			if (x->op != SELECTOR_IN || x->n != 1)
				continue;
			const struct bucket *b = tab_pointer(&c->buckets, bucket_key((struct label){ x->key, x->values[0] }));
			if (!any || !b || (*ret && b->n < (*ret)->n))
				*ret = b;
			any = true;
		}
	return any;
}

static void pick_count(struct counters *c, struct pick *k)
{
	const struct nodes *t = c->nodes;
	const struct bucket *b = NULL;

	k->counted = true;
	c->n_counted++;
	for (size_t i = 0; i < k->n; i++)
		if (k->parts[i].of_pod.nothing)
			return;
	if (pick_bucket(c, k, &b)) {
		for (uint32_t i = 0; b && i < b->n; i++)
			if (pick_counts(c, k, b->pods[i]))
				crowd_count(c, &k->crowd, b->pods[i]->node, 1);
		return;
	}
	for (uint32_t node = 0; node < t->n; node++)
		for (uint32_t i = 0; i < t->n_pods[node]; i++)
			if (pick_counts(c, k, t->pods[node][i]))
				crowd_count(c, &k->crowd, node, 1);
}

int64_t counters_on_node(struct counters *c, struct pick *k, uint32_t node)
{
	if (!k->counted)
		pick_count(c, k);
	return tab_get(&k->crowd.on, node);
}

struct tally *counters_tally(struct counters *c, struct pick *k, struct topo *topo, struct scope *scope)
{
	k->stamp = c->now;
	if (!k->counted)
		pick_count(c, k);
	return crowd_tally(c, &k->crowd, topo, scope);
}

/* ---- pods come and go ---- */

static void bucket_add(struct counters *c, struct placed *p, uint32_t label, uint32_t *ret_at)
{
	uint64_t key = bucket_key(p->labels[label]);
	struct bucket *b = tab_pointer(&c->buckets, key);

	if (!b) {
		b = mem_zalloc(sizeof(*b));
		tab_point(&c->buckets, key, b);
	}
	if (b->n == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 4;
		b->pods = mem_resize(b->pods, b->cap * sizeof(*b->pods));
	}
	*ret_at = b->n;
	b->pods[b->n++] = p;
}

/* The last of the list takes its place. */
static void bucket_remove(struct counters *c, const struct placed *p, uint32_t label, uint32_t at)
{
	uint64_t key = bucket_key(p->labels[label]);
	struct bucket *b = tab_pointer(&c->buckets, key);
	struct placed *last = b->pods[--b->n];

	b->pods[at] = last;
	for (uint32_t i = 0; i < last->n_labels; i++)
		if (bucket_key(last->labels[i]) == key)
			((struct pod_terms *)last->affinity)->at[i] = at;
	if (b->n)
		return;
	tab_point(&c->buckets, key, NULL); /* the words may mean something else from now on */
	free(b->pods);
	free(b);
}

static int64_t term_amount(const struct term *t, unsigned *ret_which)
{
	*ret_which = t->kind == TERM_ANTI ? CARRY_ANTI : t->kind == TERM_AFFINITY ? CARRY_AFFINITY : CARRY_WEIGHT;
	return t->kind == TERM_PREFERRED ? t->weight : t->kind == TERM_PREFERRED_ANTI ? -(int64_t)t->weight : 1;
}

static void pod_count(struct counters *c, struct placed *p, int sign)
{
	const struct pod_terms *terms = counters_terms(c, p);
	struct match m = match_begin(c, p);

	for (struct pick *k; (k = match_next(&m));)
		if (k->counted && !(k->living && p->deleting))
			crowd_add(c, &k->crowd, p->node, sign);
	for (uint32_t i = 0; i < terms->n; i++) {
		unsigned which;
		int64_t amount = term_amount(&terms->terms[i], &which);
		crowd_add(c, &terms->terms[i].carrier->crowd[which], p->node, sign * amount);
	}
}

void counters_place(struct counters *c, struct placed *p)
{
	const struct pod_terms *terms = counters_terms(c, p);

	places_reach(c, p->node);
	for (uint32_t i = 0; i < p->n_labels; i++)
		bucket_add(c, p, i, &terms->at[i]);
	pod_count(c, p, 1);
}

void counters_unplace(struct counters *c, struct placed *p)
{
	const struct pod_terms *terms = counters_terms(c, p);

	pod_count(c, p, -1);
	for (uint32_t i = 0; i < p->n_labels; i++)
		bucket_remove(c, p, i, terms->at[i]);
}

/* ---- the whole ---- */

static void picks_trim(struct counters *c, uint64_t since)
{
	LIST_EACH_SAFE(struct pick, k, &c->picks, link) {
		if (k->stamp < since) {
			pick_forget(c, k);
			pick_release(c, k);
			continue;
		}
		LIST_EACH_SAFE(struct tally, t, &k->crowd.tallies, link)
			if (t->scope && t->scope->stamp < since)
				tally_free(c, t);
	}
}

void counters_begin(struct counters *c)
{
	c->now++;
	if (c->size <= c->trim_at && c->n_counted <= COUNTED_MAX)
		return;
	for (uint64_t age = 1u << 20; (c->size > c->room || c->n_counted > COUNTED_MAX / 2) && age >= AGE_MIN; age /= 4) {
		uint64_t since = c->now > age ? c->now - age : 0;
		picks_trim(c, since);
		places_trim(c, since);
	}
	c->trim_at = MAX(c->room, c->size + c->room / 4); /* what is in use cannot be forgotten */
}

struct counters *counters_new(struct nodes *t)
{
	struct counters *c = mem_zalloc(sizeof(*c));

	c->nodes = t;
	list_init(&c->picks);
	map_init(&c->pick_keys);
	map_init(&c->services);
	map_init(&c->owners);
	arena_init(&c->scratch);
	arena_init(&c->parse);
	places_init(c);
	c->room = c->trim_at = ROOM_MAX;
	t->counters = c;
	for (uint32_t node = 0; node < t->n; node++) {
		counters_node(c, node);
		for (uint32_t i = 0; i < t->n_pods[node]; i++)
			counters_place(c, t->pods[node][i]);
	}
	return c;
}

void counters_free(struct counters *c)
{
	if (!c)
		return;
	objects_done(c);
	picks_trim(c, UINT64_MAX);
	places_done(c);
	map_done(&c->pick_keys);
	tab_done(&c->anchors);
	tab_done(&c->buckets);
	arena_done(&c->scratch);
	arena_done(&c->parse);
	c->nodes->counters = NULL;
	free(c);
}
