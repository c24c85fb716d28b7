#include "scheduler/copies.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "codec/atoms.h"

static struct list no_members = LIST_INIT(no_members);

str copy_key(char out[COPY_KEY_MAX], str namespace, str name)
{
	size_t n = 0;
	if (namespace.n + name.n + 1 > COPY_KEY_MAX)
		return STR_NONE;
	if (namespace.n) {
		memcpy(out, namespace.p, namespace.n);
		n = namespace.n;
		out[n++] = '/';
	}
	if (name.n)
		memcpy(out + n, name.p, name.n);
	return str_span(out, n + name.n);
}

/* Without the heap: every event asks. */
static str key_of(struct val object, char out[COPY_KEY_MAX])
{
	return copy_key(out, val_str(object, metadata, namespace), val_str(object, metadata, name));
}

int object_version_compare(struct val x, struct val y)
{
	int64_t a = 0, b = 0;
	(void)str_to_i64(val_str(x, metadata, resourceVersion), &a);
	(void)str_to_i64(val_str(y, metadata, resourceVersion), &b);
	return a > b ? 1 : a < b ? -1 : 0;
}

void copies_init(struct copies *c, copies_group *group, struct fiber_cond *changed)
{
	*c = (struct copies){ .group = group, .changed = changed };
	map_init(&c->all);
	map_init(&c->groups);
}

static void group_leave(struct copies *c, struct copy *x)
{
	list_remove(&x->link);
	if (x->group && list_empty(&x->group->members)) {
		map_remove(&c->groups, x->group->name);
		free(x->group);
	}
	x->group = NULL;
}

static void sweep(struct copies *c)
{
	while (c->n_buried)
		frozen_unref(c->buried[--c->n_buried]);
}

/* A cycle may have borrowed it, and wait for an extender. */
static void release(struct copies *c, struct frozen *object)
{
	if (!c->hold || !*c->hold) {
		sweep(c);
		frozen_unref(object);
		return;
	}
	if (!object)
		return;
	if (c->n_buried == c->cap_buried) {
		c->cap_buried = c->cap_buried ? 2 * c->cap_buried : 16;
		c->buried = mem_resize(c->buried, c->cap_buried * sizeof(*c->buried));
	}
	c->buried[c->n_buried++] = object;
}

static void copy_free(struct copies *c, struct copy *x)
{
	group_leave(c, x);
	release(c, x->told);
	release(c, x->assumed);
	free(x);
}

void copies_done(struct copies *c)
{
	if (list_linked(&c->listener.link))
		informer_unlisten(&c->listener);
	struct map_iter it = map_iter(&c->all);
	for (struct copy *x; (x = map_next(&it, NULL));)
		copy_free(c, x);
	sweep(c);
	free(c->buried);
	map_done(&c->all);
	map_done(&c->groups);
}

static void copies_changed(struct copies *c)
{
	c->version++;
	if (c->changed)
		fiber_cond_broadcast(c->changed);
}

static void *block_with_name(size_t size, str name, str *ret_name)
{
	char *block = mem_zalloc(size + name.n + 1);
	if (name.n)
		memcpy(block + size, name.p, name.n);
	*ret_name = str_span(block + size, name.n);
	return block;
}

static void group_enter(struct copies *c, struct copy *x)
{
	str name = c->group ? c->group(x->told->val) : STR("");
	if (x->group && str_eq(x->group->name, name))
		return;
	group_leave(c, x);
	struct copy_group *g = map_get(&c->groups, name);
	if (!g) {
		str own;
		g = block_with_name(sizeof(*g), name, &own);
		g->name = own;
		list_init(&g->members);
		map_put(&c->groups, g->name, g);
	}
	list_add(&g->members, &x->link);
	x->group = g;
}

void copies_put(struct copies *c, struct frozen *object)
{
	char room[COPY_KEY_MAX];
	str key = key_of(object->val, room), own;
	if (!key.n)
		return;
	struct copy *x = map_get(&c->all, key);
	if (!x) {
		x = block_with_name(sizeof(*x), key, &own);
		x->key = own;
		list_init(&x->link);
		map_put(&c->all, x->key, x);
	}
	struct frozen *old = x->told;
	x->told = frozen_ref(object);
	if (x->assumed && object_version_compare(object->val, x->assumed->val) > 0) {
		release(c, x->assumed);
		x->assumed = NULL;
	}
	group_enter(c, x);
	release(c, old);
	copies_changed(c);
}

void copies_remove(struct copies *c, str key)
{
	struct copy *x = map_remove(&c->all, key);
	if (!x)
		return;
	copy_free(c, x);
	copies_changed(c);
}

static void copies_heard(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct copies *c = CONTAINER_OF(l, struct copies, listener);
	char room[COPY_KEY_MAX];
	if (object)
		copies_put(c, object);
	else
		copies_remove(c, key_of(old->val, room));
}

void copies_follow(struct copies *c, struct informer *i)
{
	c->listener.changed = copies_heard;
	informer_listen(i, &c->listener);
}

struct frozen *copies_get(const struct copies *c, str key)
{
	struct copy *x = map_get(&c->all, key);
	return !x ? NULL : x->assumed ? x->assumed : x->told;
}

struct frozen *copies_told(const struct copies *c, str key)
{
	struct copy *x = map_get(&c->all, key);
	return x ? x->told : NULL;
}

struct val copies_val(const struct copies *c, str key)
{
	struct frozen *f = copies_get(c, key);
	return f ? f->val : VAL_EMPTY;
}

struct val copy_val(const struct copy *c)
{
	return c->assumed ? c->assumed->val : c->told->val;
}

const struct list *copies_members(const struct copies *c, str group)
{
	struct copy_group *g = map_get(&c->groups, group);
	return g ? &g->members : &no_members;
}

int copies_assume(struct copies *c, struct frozen *object, struct err *err)
{
	char room[COPY_KEY_MAX];
	str key = key_of(object->val, room);
	struct copy *x = map_get(&c->all, key);
	if (!x)
		return err_set(err, ERR_NOT_FOUND, "\"" STR_FMT "\" not found", STR_ARG(key));
	str stored = val_str(x->told->val, metadata, resourceVersion), given = val_str(object->val, metadata, resourceVersion);
	if (object_version_compare(object->val, x->told->val) < 0)
		return err_set(err, ERR_CONFLICT, "\"" STR_FMT "\" is out of sync (stored: " STR_FMT ", assume: " STR_FMT ")", STR_ARG(key),
			       STR_ARG(stored), STR_ARG(given));
	frozen_ref(object);
	release(c, x->assumed);
	x->assumed = object;
	c->version++;
	return 0;
}

void copies_restore(struct copies *c, str key, str version)
{
	struct copy *x = map_get(&c->all, key);
	if (!x || !x->assumed || !str_eq(val_str(x->assumed->val, metadata, resourceVersion), version))
		return;
	release(c, x->assumed);
	x->assumed = NULL;
	c->version++;
}
