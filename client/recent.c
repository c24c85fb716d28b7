#include "client/recent.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void recent_init(struct recent *c, size_t size, size_t max, void (*done)(void *entry))
{
	*c = (struct recent){ .size = size, .max = max, .done = done };
	map_init(&c->by_key);
	list_init(&c->order);
}

static void drop(struct recent *c, struct recent_entry *e)
{
	(void)map_remove(&c->by_key, e->key);
	list_remove(&e->link);
	if (c->done)
		c->done(e);
	free(e);
}

void recent_done(struct recent *c)
{
	LIST_EACH_SAFE(struct recent_entry, e, &c->order, link)
		drop(c, e);
	map_done(&c->by_key);
}

void *recent_get(struct recent *c, str key)
{
	struct recent_entry *e = map_get(&c->by_key, key);

	if (e) {
		list_remove(&e->link);
	} else {
		if (map_len(&c->by_key) == c->max)
			drop(c, LIST_FIRST(struct recent_entry, &c->order, link));
		e = mem_zalloc(c->size + key.n);
		e->key = str_span(memcpy((char *)e + c->size, key.p, key.n), key.n);
		(void)map_put(&c->by_key, e->key, e);
	}
	list_add(&c->order, &e->link);
	return e;
}
