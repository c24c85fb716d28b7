#include "store/index.h"

#include "base/test.h"

static void push(struct index *x, const char *key, int64_t revision, int64_t version)
{
	(void)index_push(x, str_of(key), (struct index_version){ .revision = revision, .version = version, .created = 1 });
}

static int64_t at(struct index *x, const char *key, int64_t revision)
{
	const struct index_key *k = index_find(x, str_of(key));
	const struct index_version *v = k ? index_at(k, revision) : NULL;
	return v ? v->revision : 0;
}

TEST(index_versions)
{
	struct index x;
	index_init(&x);
	push(&x, "a", 2, 1);
	push(&x, "b", 3, 1);
	push(&x, "a", 5, 2);
	push(&x, "a", 7, 0);
	CHECK_INT(x.live, 1);
	CHECK_INT(at(&x, "a", 1), 0);
	CHECK_INT(at(&x, "a", 4), 2);
	CHECK_INT(at(&x, "a", 5), 5);
	CHECK_INT(at(&x, "a", 100), 7);
	CHECK_INT(at(&x, "c", 100), 0);
	index_done(&x);
}

TEST(index_takes_back)
{
	struct index x;
	index_init(&x);
	push(&x, "a", 2, 1);
	push(&x, "a", 3, 0);
	push(&x, "b", 4, 1);
	struct index_key *b = index_key_ref(index_find(&x, STR("b")));
	index_pop(&x, STR("b"));
	CHECK(!index_find(&x, STR("b")));
	index_pop(&x, STR("a"));
	CHECK_INT(at(&x, "a", 9), 2);
	CHECK_INT(x.live, 1);
	/* Held by somebody: the same key may come back meanwhile. */
	push(&x, "b", 4, 1);
	CHECK(index_find(&x, STR("b")) != b);
	index_key_unref(b);
	index_done(&x);
}

TEST(index_forgets)
{
	struct index x;
	index_init(&x);
	push(&x, "a", 2, 1);
	push(&x, "a", 4, 2);
	push(&x, "a", 6, 3);
	push(&x, "b", 7, 1);
	push(&x, "b", 8, 0);
	index_forget(&x, STR("a"), 5);
	CHECK_INT(at(&x, "a", 3), 0);
	CHECK_INT(at(&x, "a", 5), 4);
	/* A deletion goes only once nobody can watch from it. */
	index_forget(&x, STR("b"), 8);
	CHECK_INT(at(&x, "b", 8), 8);
	index_forget(&x, STR("b"), 9);
	CHECK(!index_find(&x, STR("b")));
	index_forget(&x, STR("nobody"), 9);
	index_done(&x);
}
