/*
 * The index has a node per role (also for one that bindings name and nobody has made yet), per binding, and per
 * subject. A subject has the list of its grants for the whole cluster, and one per namespace; a grant is one subject
 * of one binding. A decision looks up the user and their groups, and goes through the compiled rules of what those
 * were granted.
 *
 * The sentence that says which binding allowed it is made when it is first needed and kept with the grant.
 */
#include "apiserver/authz/rbac.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/authz/rbac_rules.h"
#include "apiserver/cache.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { SUBJECTS_MAX = 32 };           /* of one user, that are kept on the stack */

struct role {
	str key;
	bool cluster, found;
	size_t bindings;              /* that name it */
	struct frozen *frozen;
	struct val rules;
	struct rbac_rule *compiled;
	size_t n_compiled;
	char text[];
};

/* What a decision goes through; mostly there is one. */
struct granted {
	const struct role *role;      /* NULL: it names something else than a role */
	struct grant *grant;
};

struct grants {
	struct granted one, *list;    /* list is &one while that is enough */
	size_t n, cap;
};

/* Whoever has the name: a user or a group. */
struct subject {
	str name;
	struct grants cluster;
	size_t n_locals;              /* namespaces with grants of their own: struct local */
	size_t n_grants;              /* in all of it; without any, the subject goes */
	bool is_group;
	char text[];
};

/* A subject in a namespace. */
struct place {
	const struct subject *subject;
	const struct rbac_word *namespace;
};

struct local {
	struct place place;           /* its key */
	struct grants grants;
};

struct grant {
	struct binding *binding;
	struct subject *subject;
	struct local *local;          /* NULL: for the whole cluster */
	size_t at;                    /* in the list of grants */
	str kind, name;               /* of the subject, as the binding has it */
	char *reason;                 /* NULL: not needed yet */
};

struct binding {
	str key, namespace, name;     /* slices of text */
	struct role *role;            /* NULL: it names something else than a role */
	str role_kind, role_name;     /* borrowed from frozen, as are the subjects' */
	struct frozen *frozen;
	uint64_t seen;                /* number of the question that has seen it */
	size_t n_grants;
	struct grant *grants;
	char text[];
};

struct follower {
	struct cache_watcher watcher;
	struct kind *kind;            /* NULL: not served */
	bool following;
};

struct rbac {
	struct apiserver *server;
	struct rbac_words words;
	struct map roles, cluster_roles, bindings, cluster_bindings;
	struct map users, groups;
	struct map locals;            /* by struct place */
	size_t n_unresolved;          /* bindings whose role is missing */
	uint64_t question;
	struct follower followers[RBAC_KINDS];
};

/* ---- roles ---- */

static struct map *roles_of(struct rbac *r, bool cluster) { return cluster ? &r->cluster_roles : &r->roles; }

static struct role *role_get(struct rbac *r, bool cluster, str key)
{
	struct role *role = map_get(roles_of(r, cluster), key);
	if (role)
		return role;
	role = mem_zalloc(sizeof *role + key.n + 1);
	memcpy(role->text, key.p, key.n);
	role->key = str_span(role->text, key.n);
	role->cluster = cluster;
	map_put(roles_of(r, cluster), role->key, role);
	return role;
}

static void role_clear(struct rbac *r, struct role *role)
{
	rbac_rules_free(&r->words, TAKE(role->compiled), role->n_compiled);
	frozen_unref(TAKE(role->frozen));
	role->n_compiled = 0;
	role->rules = VAL_EMPTY;
	if (role->found)
		r->n_unresolved += role->bindings;
	role->found = false;
}

static void role_drop_unused(struct rbac *r, struct role *role)
{
	if (role->found || role->bindings)
		return;
	map_remove(roles_of(r, role->cluster), role->key);
	free(role);
}

static void role_put(struct rbac *r, bool cluster, str key, struct val object, struct frozen *frozen)
{
	struct role *role = map_get(roles_of(r, cluster), key);
	if (!role && !frozen)
		return;
	if (!role)
		role = role_get(r, cluster, key);
	role_clear(r, role);
	if (frozen) {
		role->found = true;
		r->n_unresolved -= role->bindings;
		role->frozen = frozen_ref(frozen);
		role->rules = val_get(object, rules);
		role->compiled = rbac_rules_compile(&r->words, role->rules, &role->n_compiled);
	}
	role_drop_unused(r, role);
}

/* ---- grants ---- */

static void grants_add(struct grants *g, struct grant *grant)
{
	if (!g->cap) {
		g->list = &g->one;
		g->cap = 1;
	} else if (g->n == g->cap) {
		g->list = mem_resize(g->list == &g->one ? NULL : g->list, 4 * g->cap * sizeof *g->list);
		if (g->cap == 1)
			g->list[0] = g->one;
		g->cap *= 4;
	}
	grant->at = g->n;
	g->list[g->n++] = (struct granted){ grant->binding->role, grant };
}

static void grants_remove(struct grants *g, struct grant *grant)
{
	struct granted last = g->list[--g->n];
	last.grant->at = grant->at;
	g->list[grant->at] = last;
}

static void grants_done(struct grants *g)
{
	if (g->cap > 1)
		free(g->list);
}

static struct subject *subject_get(struct rbac *r, bool is_group, str name)
{
	struct map *all = is_group ? &r->groups : &r->users;
	struct subject *s = map_get(all, name);
	if (s)
		return s;
	s = mem_zalloc(sizeof *s + name.n + 1);
	memcpy(s->text, name.n ? name.p : "", name.n);
	s->name = str_span(s->text, name.n);
	s->is_group = is_group;
	map_put(all, s->name, s);
	return s;
}

static str place_key(const struct place *p) { return str_span((const char *)p, sizeof *p); }

static struct local *local_get(struct rbac *r, struct subject *s, str namespace)
{
	const struct rbac_word *word = rbac_word_take(&r->words, namespace);
	struct place place = { s, word };
	struct local *l = map_get(&r->locals, place_key(&place));
	if (l) {
		rbac_word_drop(&r->words, word);
		return l;
	}
	l = mem_zalloc(sizeof *l);
	l->place = place;
	map_put(&r->locals, place_key(&l->place), l);
	s->n_locals++;
	return l;
}

static void local_free(struct rbac *r, struct subject *s, struct local *l)
{
	map_remove(&r->locals, place_key(&l->place));
	rbac_word_drop(&r->words, l->place.namespace);
	grants_done(&l->grants);
	free(l);
	s->n_locals--;
}

static void grant_add(struct rbac *r, struct binding *b, struct val subject, bool is_group, str who)
{
	struct grant *g = &b->grants[b->n_grants++];
	struct subject *s = subject_get(r, is_group, who);
	*g = (struct grant){ .binding = b, .subject = s, .kind = val_str(subject, kind), .name = val_str(subject, name) };
	g->local = b->namespace.n ? local_get(r, s, b->namespace) : NULL;
	grants_add(g->local ? &g->local->grants : &s->cluster, g);
	s->n_grants++;
}

static void grant_remove(struct rbac *r, struct grant *g)
{
	struct subject *s = g->subject;
	grants_remove(g->local ? &g->local->grants : &s->cluster, g);
	if (g->local && !g->local->grants.n)
		local_free(r, s, g->local);
	free(g->reason);
	if (--s->n_grants)
		return;
	map_remove(s->is_group ? &r->groups : &r->users, s->name);
	grants_done(&s->cluster);
	free(s);
}

/* ---- bindings ---- */

static struct map *bindings_of(struct rbac *r, bool cluster) { return cluster ? &r->cluster_bindings : &r->bindings; }

static void binding_free(struct rbac *r, struct binding *b)
{
	for (size_t i = 0; i < b->n_grants; i++)
		grant_remove(r, &b->grants[i]);
	if (b->role) {
		b->role->bindings--;
		r->n_unresolved -= !b->role->found;
		role_drop_unused(r, b->role);
	} else {
		r->n_unresolved--;
	}
	frozen_unref(b->frozen);
	free(b->grants);
	free(b);
}

static struct binding *binding_new(str key)
{
	struct binding *b = mem_zalloc(sizeof *b + key.n + 1);
	memcpy(b->text, key.p, key.n);
	b->key = str_span(b->text, key.n);
	if (!str_cut(b->key, '/', &b->namespace, &b->name)) {
		b->name = b->key;
		b->namespace = STR_NONE;
	}
	return b;
}

static void binding_resolve(struct rbac *r, struct binding *b)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	if (str_eq(b->role_kind, STR("ClusterRole")))
		b->role = role_get(r, true, b->role_name);
	else if (str_eq(b->role_kind, STR("Role")))
		b->role = role_get(r, false, arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(b->namespace), STR_ARG(b->role_name)));
	if (b->role)
		b->role->bindings++;
	r->n_unresolved += !b->role || !b->role->found;
}

/* A service account is the user of that name; without a namespace it is one beside the binding. */
static void binding_grant(struct rbac *r, struct binding *b, struct val subject)
{
	str kind = val_str(subject, kind), name = val_str(subject, name);
	if (str_eq(kind, STR("Group"))) {
		grant_add(r, b, subject, true, name);
	} else if (str_eq(kind, STR("User"))) {
		grant_add(r, b, subject, false, name);
	} else if (str_eq(kind, STR("ServiceAccount"))) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str namespace = val_str(subject, namespace).n ? val_str(subject, namespace) : b->namespace;
		if (namespace.n)
			grant_add(r, b, subject, false, arena_printf(&a, "system:serviceaccount:" STR_FMT ":" STR_FMT,
								     STR_ARG(namespace), STR_ARG(name)));
	}
}

static void binding_put(struct rbac *r, bool cluster, str key, struct val object, struct frozen *frozen)
{
	struct binding *old = map_remove(bindings_of(r, cluster), key);
	if (old)
		binding_free(r, old);
	if (!frozen)
		return;
	struct binding *b = binding_new(key);
	struct val subjects = val_get(object, subjects);
	b->frozen = frozen_ref(frozen);
	b->role_kind = val_str(object, roleRef, kind);
	b->role_name = val_str(object, roleRef, name);
	b->grants = mem_array(val_len(subjects), sizeof *b->grants);
	map_put(bindings_of(r, cluster), b->key, b);
	binding_resolve(r, b);
	VAL_EACH(s, subjects)
		binding_grant(r, b, *s);
}

void rbac_put(struct rbac *r, enum rbac_kind kind, str key, struct val object, struct frozen *frozen)
{
	bool cluster = kind == RBAC_CLUSTER_ROLE || kind == RBAC_CLUSTER_ROLE_BINDING;
	if (kind == RBAC_ROLE || kind == RBAC_CLUSTER_ROLE)
		role_put(r, cluster, key, object, frozen);
	else
		binding_put(r, cluster, key, object, frozen);
}

/* ---- following the cache ---- */

static void forget_bindings(struct rbac *r, bool cluster)
{
	struct map_iter it = map_iter(bindings_of(r, cluster));
	for (struct binding *b; (b = map_next(&it, NULL));) {
		map_remove(bindings_of(r, cluster), b->key);
		binding_free(r, b);
	}
}

static void forget_roles(struct rbac *r, bool cluster)
{
	struct map_iter it = map_iter(roles_of(r, cluster));
	for (struct role *role; (role = map_next(&it, NULL));) {
		role_clear(r, role);
		role_drop_unused(r, role);
	}
}

static void forget(struct rbac *r, enum rbac_kind kind)
{
	if (kind == RBAC_ROLE || kind == RBAC_CLUSTER_ROLE)
		forget_roles(r, kind == RBAC_CLUSTER_ROLE);
	else
		forget_bindings(r, kind == RBAC_CLUSTER_ROLE_BINDING);
}

static void take_all(struct rbac *r, enum rbac_kind kind, const struct kind *of)
{
	struct omap_iter it;
	str key;
	forget(r, kind);
	omap_seek(&it, of->objects, STR_NONE);
	for (struct object *o; (o = omap_next(&it, &key));)
		rbac_put(r, kind, key, o->val, o->frozen);
}

static void follow(struct rbac *r, enum rbac_kind kind)
{
	struct follower *f = &r->followers[kind];
	const struct cache_event *e;
	while (f->following && (e = cache_watch_next(&f->watcher))) {
		bool gone = e->type == CACHE_DELETED;
		rbac_put(r, kind, e->object->key, e->object->val, gone ? NULL : e->object->frozen);
	}
	if (f->following && !f->watcher.ended)
		return;
	cache_watch_end(&f->watcher);
	f->following = cache_watch_begin(f->kind, cache_revision(r->server->cache), &f->watcher, NULL) >= 0;
	take_all(r, kind, f->kind);
}

static void catch_up(struct rbac *r)
{
	for (int i = 0; i < RBAC_KINDS; i++)
		if (r->followers[i].kind)
			follow(r, (enum rbac_kind)i);
}

static void wake(struct cache_watcher *w) { (void)w; /* it looks by itself before it answers */ }

struct rbac *rbac_new(struct apiserver *s)
{
	static const str resources[RBAC_KINDS] = {
		[RBAC_ROLE] = STR_INIT("roles"), [RBAC_CLUSTER_ROLE] = STR_INIT("clusterroles"),
		[RBAC_ROLE_BINDING] = STR_INIT("rolebindings"), [RBAC_CLUSTER_ROLE_BINDING] = STR_INIT("clusterrolebindings"),
	};
	struct rbac *r = mem_zalloc(sizeof *r);
	r->server = s;
	for (size_t i = 0; s && i < RBAC_KINDS; i++) {
		r->followers[i].kind = kinds_find(&s->kinds, STR(RBAC_GROUP), resources[i]);
		r->followers[i].watcher.wake = wake;
	}
	return r;
}

void rbac_free(struct rbac *r)
{
	if (!r)
		return;
	for (int i = 0; i < RBAC_KINDS; i++)
		cache_watch_end(&r->followers[i].watcher);
	forget(r, RBAC_ROLE_BINDING);
	forget(r, RBAC_CLUSTER_ROLE_BINDING);
	forget(r, RBAC_ROLE);
	forget(r, RBAC_CLUSTER_ROLE);
	struct map *const maps[] = { &r->roles, &r->cluster_roles, &r->bindings, &r->cluster_bindings, &r->users, &r->groups,
				     &r->locals };
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		map_done(maps[i]);
	rbac_words_done(&r->words);
	free(r);
}

/* ---- asking ---- */

/* Those whose grants a user has: their own and their groups'. */
struct subjects {
	struct subject *few[SUBJECTS_MAX], **all;
	size_t n;
};

static void find_subjects(const struct rbac *r, struct arena *a, const struct user *u, struct subjects *ret)
{
	ret->all = u->n_groups < SUBJECTS_MAX ? ret->few : ARENA_ARRAY(a, struct subject *, u->n_groups + 1);
	ret->n = 0;
	struct subject *s = map_get(&r->users, u->name);
	if (s)
		ret->all[ret->n++] = s;
	for (size_t i = 0; i < u->n_groups; i++)
		if ((s = map_get(&r->groups, u->groups[i])))
			ret->all[ret->n++] = s;
}

/* namespace: NULL for what is for the whole cluster. */
static const struct grants *grants_in(const struct rbac *r, const struct subject *s, const struct rbac_word *namespace)
{
	if (!namespace)
		return &s->cluster;
	const struct local *l = s->n_locals ? map_get(&r->locals, place_key(&(struct place){ s, namespace })) : NULL;
	return l ? &l->grants : NULL;
}

/* The first of the binding's subjects that the user is, which is the one that is told. */
static struct grant *first_grant(const struct binding *b, const struct subjects *who)
{
	for (size_t i = 0; i < b->n_grants; i++)
		for (size_t k = 0; k < who->n; k++)
			if (b->grants[i].subject == who->all[k])
				return &b->grants[i];
	return NULL;
}

/* Name, or name and namespace in one, between quotes. */
static void add_name(struct buf *b, str name, str namespace)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	buf_add(&text, name);
	if (namespace.n) {
		buf_addc(&text, '/');
		buf_add(&text, namespace);
	}
	buf_add_quoted(b, buf_str(&text));
}

/* ServiceAccount "name/namespace", User "name" */
static void add_subject(struct buf *b, const struct grant *g)
{
	str namespace, name, account = STR_NONE;
	if (str_eq(g->kind, STR("ServiceAccount")) &&
	    str_cut(str_skip(g->subject->name, sizeof "system:serviceaccount:" - 1), ':', &namespace, &name))
		account = namespace;
	buf_add(b, g->kind);
	buf_addc(b, ' ');
	add_name(b, g->name, account);
}

static char *describe(const struct grant *g)
{
	const struct binding *b = g->binding;
	struct buf text = BUF_INIT(1 << 20);
	buf_addf(&text, "RBAC: allowed by %s ", b->namespace.n ? "RoleBinding" : "ClusterRoleBinding");
	add_name(&text, b->name, b->namespace);
	buf_addf(&text, " of " STR_FMT " ", STR_ARG(b->role_kind));
	buf_add_quoted(&text, b->role_name);
	buf_add(&text, STR(" to "));
	add_subject(&text, g);
	return buf_take(&text);
}

static const struct binding *find_allowing(const struct rbac *r, const struct subjects *who, const struct rbac_word *namespace,
					   const struct rbac_question *q)
{
	for (size_t i = 0; i < who->n; i++) {
		const struct grants *g = grants_in(r, who->all[i], namespace);
		for (size_t k = 0; g && k < g->n; k++) {
			const struct role *role = g->list[k].role;
			for (size_t n = 0; role && n < role->n_compiled; n++)
				if (rbac_rule_allows(&role->compiled[n], q))
					return g->list[k].grant->binding;
		}
	}
	return NULL;
}

static str denied_reason(struct rbac *r, struct arena *a, const struct authz_attributes *what)
{
	size_t n;
	if (!r->n_unresolved)
		return STR_NONE;
	struct rbac_held *held = rbac_held(r, a, what->user, what->namespace, &n);
	str errors = rbac_held_errors(a, held, n, false);
	return errors.n ? arena_join(a, STR("RBAC: "), errors) : STR_NONE;
}

enum authz_decision rbac_decide(struct rbac *r, struct arena *a, const struct authz_attributes *what, str *ret_reason)
{
	struct subjects who;
	catch_up(r);
	struct rbac_question q = rbac_question(&r->words, a, what);
	find_subjects(r, a, what->user, &who);
	const struct rbac_word *namespace = what->namespace.n ? rbac_word_find(&r->words, what->namespace) : NULL;
	const struct binding *b = find_allowing(r, &who, NULL, &q);
	if (!b && namespace)
		b = find_allowing(r, &who, namespace, &q);
	if (!b) {
		*ret_reason = denied_reason(r, a, what);
		return AUTHZ_NO_OPINION;
	}
	struct grant *g = first_grant(b, &who);
	if (!g->reason)
		g->reason = describe(g);
	*ret_reason = arena_str(a, str_of(g->reason));
	return AUTHZ_ALLOW;
}

/* ---- all that somebody has ---- */

static int held_cmp(const void *x, const void *y)
{
	return str_cmp(((const struct rbac_held *)x)->binding, ((const struct rbac_held *)y)->binding);
}

static size_t count_grants(const struct rbac *r, const struct subjects *who, const struct rbac_word *namespace)
{
	size_t n = 0;
	for (size_t i = 0; i < who->n; i++) {
		const struct grants *g = grants_in(r, who->all[i], namespace);
		n += g ? g->n : 0;
	}
	return n;
}

/* A binding that names its user twice counts once. */
static size_t add_held(struct rbac *r, const struct subjects *who, const struct rbac_word *namespace, struct rbac_held *out)
{
	size_t n = 0;
	for (size_t i = 0; i < who->n; i++) {
		const struct grants *g = grants_in(r, who->all[i], namespace);
		for (size_t k = 0; g && k < g->n; k++) {
			struct binding *b = g->list[k].grant->binding;
			if (b->seen == r->question)
				continue;
			b->seen = r->question;
			out[n++] = (struct rbac_held){
				.kind = b->role_kind, .name = b->role_name, .found = b->role && b->role->found,
				.rules = b->role ? b->role->rules : VAL_EMPTY, .binding = b->key,
			};
		}
	}
	if (n)
		qsort(out, n, sizeof *out, held_cmp);
	return n;
}

struct rbac_held *rbac_held(struct rbac *r, struct arena *a, const struct user *u, str namespace, size_t *ret_n)
{
	struct subjects who;
	catch_up(r);
	r->question++;
	find_subjects(r, a, u, &who);
	const struct rbac_word *in = namespace.n ? rbac_word_find(&r->words, namespace) : NULL;
	struct rbac_held *all = ARENA_ARRAY(a, struct rbac_held,
					    count_grants(r, &who, NULL) + (in ? count_grants(r, &who, in) : 0));
	size_t n = add_held(r, &who, NULL, all);
	*ret_n = n + (in ? add_held(r, &who, in, all + n) : 0);
	return all;
}

static str held_error(struct arena *a, const struct rbac_held *h, bool plural)
{
	bool cluster = str_eq(h->kind, STR("ClusterRole"));
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	if (!cluster && !str_eq(h->kind, STR("Role"))) {
		buf_add(&b, STR("unsupported role reference kind: "));
		buf_add_quoted(&b, h->kind);
	} else {
		buf_addf(&b, "%srole%s." RBAC_GROUP " \"" STR_FMT "\" not found", cluster ? "cluster" : "", plural ? "s" : "",
			 STR_ARG(h->name));
	}
	return arena_str(a, buf_str(&b));
}

str rbac_held_errors(struct arena *a, const struct rbac_held *held, size_t n, bool plural)
{
	struct map told = MAP_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < n; i++) {
		str text = held[i].found ? STR_NONE : held_error(a, &held[i], plural);
		if (!text.n || map_get(&told, text))
			continue;
		if (b.n)
			buf_add(&b, STR(", "));
		buf_add(&b, text);
		map_put(&told, text, &told);
	}
	size_t several = map_len(&told);
	map_done(&told);
	return several > 1 ? arena_printf(a, "[" STR_FMT "]", STR_ARG(buf_str(&b))) : arena_str(a, buf_str(&b));
}

bool rbac_is_bound(struct rbac *r, str cluster_role)
{
	catch_up(r);
	const struct role *role = map_get(&r->cluster_roles, cluster_role);
	return role && role->bindings;
}
