#include "base/arena.h"

#include "base/test.h"

TEST(arena_pieces_do_not_overlap)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	unsigned char *pieces[200];

	for (size_t i = 0; i < 200; i++) {
		pieces[i] = arena_alloc(&a, i * 7, 1);
		memset(pieces[i], (int)i, i * 7);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t k = 0; k < i * 7; k++)
			CHECK_ROW(i, pieces[i][k] == i);
	CHECK_INT(a.used, 199 * 200 / 2 * 7);
}

TEST(arena_alignment)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	for (size_t align = 1; align <= 256; align *= 2) {
		(void)arena_alloc(&a, 3, 1);
		CHECK((uintptr_t)arena_alloc(&a, 5000, align) % align == 0);
		CHECK((uintptr_t)arena_alloc(&a, 1, align) % align == 0);
	}
}

TEST(arena_nothing_is_not_null)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CHECK(arena_alloc(&a, 0, 1));
	CHECK(ARENA_ARRAY(&a, int, 0));
	/* Also where the chunk ends exactly. */
	(void)arena_alloc(&a, (size_t)(a.end - a.at), 1);
	CHECK(arena_alloc(&a, 0, 1));
}

TEST(arena_new_is_zeroed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	memset(arena_alloc(&a, 1000, 1), 0xff, 1000);
	arena_reset(&a);
	struct { long x[20]; } *p = arena_zero_of(&a, sizeof(*p), _Alignof(long));
	for (int i = 0; i < 20; i++)
		CHECK(p->x[i] == 0);
}

TEST(arena_strings)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str s = arena_str(&a, STR("abc"));
	CHECK_STR(s, "abc");
	CHECK(s.p[s.n] == '\0');
	s = arena_str(&a, STR_NONE);
	CHECK(s.n == 0 && s.p[0] == '\0');
	CHECK_STR(arena_printf(&a, "%s-%d", "x", 42), "x-42");
	CHECK_STR(arena_join(&a, STR("ns/"), STR("name")), "ns/name");
	CHECK_STR(arena_join(&a, STR_NONE, STR_NONE), "");
	CHECK_INT(arena_printf(&a, "%10000d", 1).n, 10000);
}

TEST(arena_reset_reuses_memory)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char *first = arena_alloc(&a, 100, 1);
	arena_reset(&a);
	CHECK_INT(a.used, 0);
	CHECK((char *)arena_alloc(&a, 100, 1) == first);
	/* A chunk of unusual size is not kept. */
	(void)arena_alloc(&a, 3 << 20, 1);
	arena_reset(&a);
	CHECK(!a.chunks);
	CHECK(arena_alloc(&a, 10, 8));
}
