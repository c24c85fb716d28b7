/*
 * Values that this process wrote lately and whose objects it still knows. When such a write comes back in a watch, the same
 * value is given out again and nobody has to decode it. It may come back before the write's own answer, so a value is
 * remembered when it is sent; the bytes are compared, so it does not matter what became of the write.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "store/etcd_priv.h"

enum { OWN_MAX = 4096, OWN_BYTES = 16 << 20 };

struct own {
	struct list link;
	struct store_value *value;
	size_t n;
	char key[];
};

static void own_drop(struct etcd_own *o, struct own *one)
{
	map_remove(&o->by_key, str_span(one->key, one->n));
	list_remove(&one->link);
	o->bytes -= one->value->n;
	store_value_unref(one->value);
	free(one);
}

void etcd_own_init(struct etcd_own *o)
{
	*o = (struct etcd_own){ .by_key = MAP_INIT };
	list_init(&o->order);
}

void etcd_own_done(struct etcd_own *o)
{
	for (struct own *one; (one = LIST_FIRST(struct own, &o->order, link));)
		own_drop(o, one);
	map_done(&o->by_key);
}

void etcd_own_add(struct etcd_own *o, str key, struct store_value *value)
{
	struct own *one = map_get(&o->by_key, key);

	if (one)
		own_drop(o, one);
	if (!value->object || value->n > OWN_BYTES)
		return;
	while (map_len(&o->by_key) == OWN_MAX || o->bytes + value->n > OWN_BYTES)
		own_drop(o, LIST_FIRST(struct own, &o->order, link));
	one = mem_alloc(sizeof *one + key.n);
	*one = (struct own){ .value = store_value_ref(value), .n = key.n };
	memcpy(one->key, key.p, key.n);
	map_put(&o->by_key, str_span(one->key, one->n), one);
	list_add(&o->order, &one->link);
	o->bytes += value->n;
}

struct store_value *etcd_own_find(const struct etcd_own *o, str key, str bytes)
{
	struct own *one = map_get(&o->by_key, key);

	return one && str_eq(store_value_str(one->value), bytes) ? store_value_ref(one->value) : NULL;
}
