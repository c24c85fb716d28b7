#include "base/map.h"

#include "base/random.h"
#include "base/test.h"

TEST(map_put_get_remove)
{
	CLEANUP(map_done) struct map m = MAP_INIT;
	int a, b;

	CHECK(!map_get(&m, STR("x")) && !map_remove(&m, STR("x")));
	CHECK(!map_put(&m, STR("x"), &a));
	CHECK(!map_put(&m, STR(""), &b));
	CHECK_INT(map_len(&m), 2);
	CHECK(map_get(&m, STR("x")) == &a && map_get(&m, STR_NONE) == &b);
	CHECK(map_put(&m, STR("x"), &b) == &a);
	CHECK_INT(map_len(&m), 2);
	CHECK(map_remove(&m, STR("x")) == &b && !map_get(&m, STR("x")));
	CHECK_INT(map_len(&m), 1);
	map_done(&m);
	CHECK(map_len(&m) == 0 && !map_get(&m, STR("")));
}

TEST(map_replacing_borrows_the_new_key)
{
	CLEANUP(map_done) struct map m = MAP_INIT;
	char first[] = "key", second[] = "key";
	int v;

	map_put(&m, str_of(first), &v);
	map_put(&m, str_of(second), &v);
	first[0] = 'X'; /* the first entry's owner is gone */
	CHECK(map_get(&m, STR("key")) == &v);
}

enum { KEYS = 1000 };

static struct thing {
	char key[24];
	bool in, seen;
} world[KEYS];

static void fill_names(void)
{
	for (int i = 0; i < KEYS; i++) {
		snprintf(world[i].key, sizeof(world[i].key), "ns/pod-%d", i);
		world[i].in = world[i].seen = false;
	}
}

/* Removes `thirds` thirds of the entries in the course of the walk and checks that every entry is met exactly once. */
static void walk(struct map *m, int thirds)
{
	struct map_iter it = map_iter(m);
	size_t met = 0, before = map_len(m);
	str key;

	for (int i = 0; i < KEYS; i++)
		world[i].seen = false;
	for (struct thing *t; (t = map_next(&it, &key)); met++) {
		CHECK(t->in && !t->seen);
		CHECK_STR(key, t->key);
		t->seen = true;
		if ((t - world) % 3 < thirds) {
			CHECK(map_remove(m, key) == t);
			t->in = false;
		}
	}
	CHECK_INT(met, before);
}

TEST(map_random_operations)
{
	CLEANUP(map_done) struct map m = MAP_INIT;
	size_t len = 0;

	random_seed(7);
	fill_names();
	for (int step = 0; step < 20000; step++) {
		struct thing *t = &world[random_below(KEYS)];
		/* Grow in the first half, shrink in the second. */
		bool put = random_below(100) < (step < 10000 ? 70 : 30);
		void *before = put ? map_put(&m, str_of(t->key), t) : map_remove(&m, str_of(t->key));
		CHECK(before == (t->in ? t : NULL));
		len += put;
		len -= t->in;
		t->in = put;
		CHECK(map_len(&m) == len);
		if (step % 2000 == 0)
			for (int k = 0; k < KEYS; k++)
				CHECK(map_get(&m, str_of(world[k].key)) == (world[k].in ? &world[k] : NULL));
	}
	walk(&m, 0);
	walk(&m, 2);
	walk(&m, 3);
	CHECK_INT(map_len(&m), 0);
	random_unseed();
}

/* The order of a walk shows the hash: it must follow the seed, and differ from one seed to the next. */
TEST(map_order_follows_the_seed)
{
	char order[3][26];
	static const uint64_t seeds[] = { 1, 1, 2 };

	for (int run = 0; run < 3; run++) {
		CLEANUP(map_done) struct map m = MAP_INIT;
		static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
		random_seed(seeds[run]);
		for (int i = 0; i < 26; i++)
			map_put(&m, str_span(letters + i, 1), (void *)(letters + i));
		struct map_iter it = map_iter(&m);
		for (int i = 0; i < 26; i++)
			order[run][i] = *(char *)map_next(&it, NULL);
	}
	random_unseed();
	CHECK(memcmp(order[0], order[1], 26) == 0);
	CHECK(memcmp(order[0], order[2], 26) != 0);
}
