#include "client/expectations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

/* A key of its own memory in a map. */
struct name {
	uint32_t n;
	char s[];
};

struct expected {
	unsigned creations;
	struct map gone;        /* struct name */
	int64_t since_ns;
	struct name *key;
};

struct expectations {
	struct map by_key;      /* struct expected */
};

static struct name *name_new(str s)
{
	struct name *name = mem_alloc(sizeof *name + s.n);
	name->n = (uint32_t)s.n;
	memcpy(name->s, s.p, s.n);
	return name;
}

static str name_str(const struct name *name) { return str_span(name->s, name->n); }

static void expected_free(struct expected *x)
{
	struct name *name;
	struct map_iter it = map_iter(&x->gone);
	while ((name = map_next(&it, NULL)))
		free(name);
	map_done(&x->gone);
	free(x->key);
	free(x);
}

struct expectations *expectations_new(void)
{
	struct expectations *e = mem_zalloc(sizeof *e);
	map_init(&e->by_key);
	return e;
}

void expectations_free(struct expectations *e)
{
	struct expected *x;

	if (!e)
		return;
	struct map_iter it = map_iter(&e->by_key);
	while ((x = map_next(&it, NULL)))
		expected_free(x);
	map_done(&e->by_key);
	free(e);
}

static struct expected *expected_of(struct expectations *e, str key)
{
	struct expected *x = map_get(&e->by_key, key);

	if (!x) {
		x = mem_zalloc(sizeof *x);
		map_init(&x->gone);
		x->key = name_new(key);
		(void)map_put(&e->by_key, name_str(x->key), x);
	}
	x->since_ns = clock_now_ns();
	return x;
}

void expect_creations(struct expectations *e, str key, unsigned n)
{
	if (n)
		expected_of(e, key)->creations += n;
}

void expect_deletions(struct expectations *e, str key, const str *gone, size_t n)
{
	struct expected *x = n ? expected_of(e, key) : NULL;

	for (size_t i = 0; i < n; i++) {
		struct name *name = map_get(&x->gone, gone[i]) ? NULL : name_new(gone[i]);
		if (name)
			(void)map_put(&x->gone, name_str(name), name);
	}
}

void expectations_created(struct expectations *e, str key)
{
	struct expected *x = map_get(&e->by_key, key);

	if (x && x->creations)
		x->creations--;
}

void expectations_deleted(struct expectations *e, str key, str gone)
{
	struct expected *x = map_get(&e->by_key, key);

	if (x)
		free(map_remove(&x->gone, gone));
}

bool expectations_met(struct expectations *e, str key)
{
	struct expected *x = map_get(&e->by_key, key);

	if (x && (x->creations || map_len(&x->gone)) && clock_now_ns() - x->since_ns < EXPECTATIONS_LAPSE_MS * NS_PER_MS)
		return false;
	expectations_forget(e, key);
	return true;
}

void expectations_forget(struct expectations *e, str key)
{
	struct expected *x = map_remove(&e->by_key, key);

	if (x)
		expected_free(x);
}
