#include "client/informer_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "codec/atoms.h"

/* The objects that have one value. */
struct bucket {
	struct omap *objects;
	uint32_t n;
	char value[];
};

static void ref(void *value) { (void)frozen_ref(value); }
static void unref(void *value) { frozen_unref(value); }

const struct omap_type informer_objects = { .ref = ref, .unref = unref };

struct informer_index *informer_index_new(const char *name, informer_values *values)
{
	struct informer_index *x = mem_zalloc(sizeof *x);

	x->name = name;
	x->values = values;
	map_init(&x->buckets);
	return x;
}

static void bucket_free(struct bucket *b)
{
	omap_free(b->objects);
	free(b);
}

void informer_index_free(struct informer_index *x)
{
	struct bucket *b;
	struct map_iter it = map_iter(&x->buckets);

	while ((b = map_next(&it, NULL)))
		bucket_free(b);
	map_done(&x->buckets);
	free(x);
}

static struct bucket *bucket_of(struct informer_index *x, str value)
{
	struct bucket *b = map_get(&x->buckets, value);

	if (b)
		return b;
	b = mem_alloc(sizeof *b + value.n);
	b->objects = omap_new(&informer_objects);
	b->n = (uint32_t)value.n;
	memcpy(b->value, value.p, value.n);
	(void)map_put(&x->buckets, str_span(b->value, b->n), b);
	return b;
}

struct change {
	struct informer_index *index;
	str key;
	struct frozen *object;
};

static void put(str value, void *arg)
{
	struct change *c = arg;
	(void)omap_put(bucket_of(c->index, value)->objects, c->key, c->object);
}

static void take_out(str value, void *arg)
{
	struct change *c = arg;
	struct bucket *b = map_get(&c->index->buckets, value);

	if (!b || !omap_remove(b->objects, c->key) || omap_len(b->objects))
		return;
	(void)map_remove(&c->index->buckets, value);
	bucket_free(b);
}

void informer_index_change(struct informer_index *x, str key, struct frozen *old, struct frozen *object)
{
	struct change c = { .index = x, .key = key, .object = object };

	if (old)
		x->values(old->val, take_out, &c);
	if (object)
		x->values(object->val, put, &c);
}

struct omap *informer_index_find(const struct informer_index *x, str value)
{
	struct bucket *b = map_get(&x->buckets, value);
	return b ? omap_snapshot(b->objects) : NULL;
}

/* ---- ready-made ---- */

void informer_by_namespace(struct val object, void (*add)(str value, void *arg), void *arg)
{
	add(val_str(object, metadata, namespace), arg);
}

void informer_by_owner(struct val object, void (*add)(str value, void *arg), void *arg)
{
	VAL_EACH(owner, val_get(object, metadata, ownerReferences))
		if (val_bool(*owner, controller))
			add(val_str(*owner, uid), arg);
}

void informer_by_node(struct val object, void (*add)(str value, void *arg), void *arg)
{
	str node = val_str(object, spec, nodeName);

	if (node.n)
		add(node, arg);
}
