#include "base/omap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/test.h"

/* A counted value; `alive` shows leaks and values that were freed while in use. */
struct value {
	atomic_int refs;
	int id;
};

static atomic_int alive;

static void value_ref(void *v) { atomic_fetch_add(&((struct value *)v)->refs, 1); }

static void value_unref(void *v)
{
	if (atomic_fetch_sub(&((struct value *)v)->refs, 1) == 1) {
		atomic_fetch_sub(&alive, 1);
		free(v);
	}
}

static const struct omap_type type = { value_ref, value_unref };

static struct value *value_new(int id)
{
	struct value *v = mem_alloc(sizeof(*v));
	atomic_init(&v->refs, 1);
	v->id = id;
	atomic_fetch_add(&alive, 1);
	return v;
}

static bool put(struct omap *m, str key, int id)
{
	struct value *v = value_new(id);
	bool fresh = omap_put(m, key, v);
	value_unref(v);
	return fresh;
}

static int get(const struct omap *m, str key)
{
	const struct value *v = omap_get(m, key);
	return v ? v->id : -1;
}

TEST(omap_basic)
{
	struct omap *m = omap_new(&type);
	CHECK(omap_len(m) == 0 && !omap_get(m, STR("a")) && !omap_remove(m, STR("a")));
	CHECK(put(m, STR("a"), 1));
	CHECK(put(m, STR("b"), 2));
	CHECK(put(m, STR(""), 3));
	CHECK(!put(m, STR("a"), 4));
	CHECK_INT(omap_len(m), 3);
	CHECK_INT(get(m, STR("a")), 4);
	CHECK_INT(get(m, STR_NONE), 3);
	CHECK(omap_remove(m, STR("a")) && !omap_remove(m, STR("a")));
	CHECK_INT(get(m, STR("a")), -1);
	CHECK_INT(omap_len(m), 2);
	omap_free(m);
	omap_free(NULL);
	CHECK_INT(atomic_load(&alive), 0);
}

TEST(omap_keys_are_copied)
{
	CLEANUP(omap_freep) struct omap *m = omap_new(&type);
	char key[] = "pods/x";
	put(m, str_of(key), 1);
	key[0] = '\0';
	CHECK_INT(get(m, STR("pods/x")), 1);
}

TEST(omap_ranges)
{
	static const char *const keys[] = { "a/1", "a/2", "b", "b/", "b/1", "b/1\x01", "b/2", "b0", "c", "\xff" };
	static const struct {
		const char *from, *prefix, *want;
	} t[] = {
		{ "", "", "a/1 a/2 b b/ b/1 b/1\x01 b/2 b0 c \xff " },
		{ "b/", "b/", "b/ b/1 b/1\x01 b/2 " },
		{ "b/1", "b/", "b/1 b/1\x01 b/2 " },
		{ "b/11", "b/", "b/2 " },
		{ "b/3", "b/", "" },
		{ "z", "", "\xff " },
		{ "\xff\xff", "", "" },
	};
	CLEANUP(omap_freep) struct omap *m = omap_new(&type);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		put(m, str_of(keys[(i * 7) % ARRAY_LEN(keys)]), (int)i);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct omap_iter it;
		char got[128];
		size_t n = 0;
		str key;
		omap_seek(&it, m, str_of(t[i].from));
		while (omap_next(&it, &key) && str_starts(key, str_of(t[i].prefix)))
			n += (size_t)snprintf(got + n, sizeof(got) - n, STR_FMT " ", STR_ARG(key));
		CHECK_STR_ROW(i, str_span(got, n), t[i].want);
	}
}

/* The model: ids by key number, -1 when absent; key numbers in decimal with leading zeroes sort as numbers. */
enum { KEYS = 2000, SNAPSHOTS = 30 };

struct model {
	struct omap *map;
	int len;
	short ids[KEYS];
};

static str key_of(int k, char tmp[24])
{
	int n = snprintf(tmp, 24, "/registry/pods/%06d", k);
	return str_span(tmp, (size_t)n);
}

static void check_model(const struct model *m)
{
	char tmp[24];
	struct omap_iter it;
	const struct value *v;
	str key;

	CHECK(omap_len(m->map) == (size_t)m->len);
	/* A walk from a random place visits exactly what the model has from there on. */
	int k = random_below(2) ? 0 : (int)random_below(KEYS);
	omap_seek(&it, m->map, k ? key_of(k, tmp) : STR_NONE);
	for (; k < KEYS; k++) {
		if (m->ids[k] < 0)
			continue;
		v = omap_next(&it, &key);
		CHECK(v && v->id == m->ids[k] && str_eq(key, key_of(k, tmp)));
	}
	CHECK(!omap_next(&it, &key));
	CHECK(!omap_next(&it, &key));
	for (int i = 0; i < 50; i++) {
		k = (int)random_below(KEYS);
		CHECK(get(m->map, key_of(k, tmp)) == m->ids[k]);
	}
}

static void change_model(struct model *m, int percent_put)
{
	char tmp[24];
	int k = (int)random_below(KEYS);
	if ((int)random_below(100) < percent_put) {
		int id = (int)random_below(30000);
		CHECK(put(m->map, key_of(k, tmp), id) == (m->ids[k] < 0));
		m->len += m->ids[k] < 0;
		m->ids[k] = (short)id;
	} else {
		CHECK(omap_remove(m->map, key_of(k, tmp)) == (m->ids[k] >= 0));
		m->len -= m->ids[k] >= 0;
		m->ids[k] = -1;
	}
}

static void drop_model(struct model *m)
{
	omap_free(m->map);
	m->map = NULL;
}

/* Many live maps that came from each other by snapshots, all of them changed at random and checked against models. */
TEST(omap_random_operations_with_snapshots)
{
	struct model *all = mem_zalloc(SNAPSHOTS * sizeof(*all));

	random_seed(2026);
	memset(all[0].ids, -1, sizeof(all[0].ids));
	all[0].map = omap_new(&type);
	for (int step = 0; step < 1000; step++) {
		/* Grow, then shrink to nothing, then grow again. */
		int percent = step < 400 ? 80 : step < 750 ? 10 : 60;
		int from = (int)random_below(SNAPSHOTS), to = (int)random_below(SNAPSHOTS);
		if (!all[from].map || step % 3)
			from = 0;
		for (int i = 0; i < 30; i++)
			change_model(&all[from], percent);
		if (to == 0 || to == from)
			continue;
		if (all[to].map) {
			check_model(&all[to]);
			drop_model(&all[to]);
		}
		all[to] = all[from];
		all[to].map = omap_snapshot(all[from].map);
		check_model(&all[from]);
	}
	for (int i = 0; i < SNAPSHOTS; i++) {
		if (all[i].map) {
			check_model(&all[i]);
			drop_model(&all[i]);
		}
	}
	random_unseed();
	free(all);
	CHECK_INT(atomic_load(&alive), 0);
}

TEST(omap_fill_and_empty_in_order)
{
	static const int strides[] = { 1, KEYS - 1, 7 }; /* upward, downward, scattered */
	char tmp[24];
	for (size_t s = 0; s < ARRAY_LEN(strides); s++) {
		struct omap *m = omap_new(&type);
		for (int i = 0, k = 0; i < KEYS; i++, k = (k + strides[s]) % KEYS)
			CHECK_ROW(s, put(m, key_of(k, tmp), k));
		CHECK_ROW(s, omap_len(m) == KEYS);
		for (int i = 0, k = 0; i < KEYS; i++, k = (k + strides[s]) % KEYS)
			CHECK_ROW(s, omap_remove(m, key_of(k, tmp)));
		CHECK_ROW(s, omap_len(m) == 0 && atomic_load(&alive) == 0);
		omap_free(m);
	}
}

/* Readers in threads: every snapshot holds keys 0 .. len-1, all with the id of the round in which it was taken. */
enum { ROUND_KEYS = 300, ROUNDS = 60, READERS = 3 };

static struct omap *_Atomic mailbox[READERS];
static atomic_bool finished;
static atomic_int bad, looked;

static void read_snapshot(struct omap *s)
{
	struct omap_iter it;
	char tmp[24];
	int n = 0, id = -1;
	str key;

	omap_seek(&it, s, STR_NONE);
	for (const struct value *v; (v = omap_next(&it, &key)); n++) {
		if (!str_eq(key, key_of(n, tmp)) || (n > 0 && v->id != id))
			atomic_fetch_add(&bad, 1);
		id = v->id;
	}
	if (n != ROUND_KEYS || get(s, key_of(n / 2, tmp)) != id)
		atomic_fetch_add(&bad, 1);
	/* A snapshot's holder may change it, and pass it on. */
	struct omap *mine = omap_snapshot(s);
	omap_remove(mine, key_of(n / 3, tmp));
	omap_free(s);
	if (get(mine, key_of(n / 3, tmp)) != -1)
		atomic_fetch_add(&bad, 1);
	omap_free(mine);
	atomic_fetch_add(&looked, 1);
}

static void *reader(void *arg)
{
	struct omap *_Atomic *box = arg;
	for (;;) {
		bool last = atomic_load(&finished);
		struct omap *s = atomic_exchange(box, NULL);
		if (s)
			read_snapshot(s);
		else if (last)
			return NULL;
		else
			sched_yield();
	}
}

TEST(omap_snapshots_in_threads)
{
	struct omap *m = omap_new(&type);
	pthread_t threads[READERS];
	char tmp[24];

	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&threads[i], NULL, reader, (void *)&mailbox[i]) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct value *v = value_new(round);
		for (int k = 0; k < ROUND_KEYS; k++)
			omap_put(m, key_of(k, tmp), v);
		value_unref(v);
		for (int i = 0; i < READERS; i++)
			omap_free(atomic_exchange(&mailbox[i], omap_snapshot(m)));
	}
	atomic_store(&finished, true);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	omap_free(m);
	CHECK_INT(atomic_load(&bad), 0);
	CHECK(atomic_load(&looked) >= READERS); /* each at least its last one */
	CHECK_INT(atomic_load(&alive), 0);
}
