#include "codec/val.h"

#include <pthread.h>

#include "base/test.h"
#include "codec/atoms.h"

static struct val sample_pod(struct arena *a)
{
	return OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")),
		      F(metadata, OBJECT(a, F(name, VAL_LIT("web")),
					 F(labels, val_object(a, &(struct member){ atom_make(a, STR("example.com/tier")), VAL_LIT("front") }, 1)))),
		      F(spec, OBJECT(a, F(nodeName, VAL_LIT("node-1")), F(priority, val_of_int(7)), F(hostNetwork, val_of_bool(true)),
				     F(containers, LIST(a, OBJECT(a, F(name, VAL_LIT("a"))), OBJECT(a, F(name, VAL_LIT("b"))))))));
}

TEST(val_reads_by_path)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = sample_pod(&a);

	CHECK_STR(val_str(pod, spec, nodeName), "node-1");
	CHECK_INT(val_int(pod, spec, priority), 7);
	CHECK(val_bool(pod, spec, hostNetwork));
	CHECK_STR(val_as_str(val_find(val_get(pod, metadata, labels), STR("example.com/tier"))), "front");
	CHECK_STR(val_str(val_at(val_get(pod, spec, containers), 1), name), "b");
}

TEST(val_missing_reads_as_empty)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = sample_pod(&a);

	CHECK_STR(val_str(pod, status, phase), "");
	CHECK_INT(val_int(pod, spec, nodeName, name), 0);
	CHECK(!val_has(pod, spec, volumes));
	CHECK_INT(val_len(val_get(pod, spec, volumes)), 0);
	CHECK(!val_exists(val_at(val_get(pod, spec, containers), 2)));
	VAL_EACH(item, val_get(pod, spec, nodeName))
		CHECK(item == NULL);
	VAL_EACH_MEMBER(m, val_get(pod, spec, containers))
		CHECK(m == NULL);
}

TEST(val_each_and_break)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = sample_pod(&a);
	int seen = 0;

	VAL_EACH(c, val_get(pod, spec, containers)) {
		seen++;
		if (str_eq(val_str(*c, name), STR("a")))
			continue;
		CHECK_STR(val_str(*c, name), "b");
		break;
	}
	CHECK_INT(seen, 2);
}

TEST(val_edits_leave_the_original)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val pod = sample_pod(&a);
	struct val moved = val_with(&a, pod, VAL_LIT("node-2"), spec, nodeName);

	CHECK_STR(val_str(moved, spec, nodeName), "node-2");
	CHECK_STR(val_str(pod, spec, nodeName), "node-1");
	CHECK_INT(val_int(moved, spec, priority), 7);

	struct val phased = val_with(&a, pod, VAL_LIT("Running"), status, phase);
	CHECK_STR(val_str(phased, status, phase), "Running");
	CHECK(!val_has(pod, status));

	struct val unbound = val_without(&a, moved, spec, nodeName);
	CHECK(!val_has(unbound, spec, nodeName));
	CHECK_INT(val_len(val_get(unbound, spec)), val_len(val_get(moved, spec)) - 1);
	CHECK(!val_has(val_without(&a, pod, status, phase), status));
}

TEST(val_list_edits)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val l = LIST(&a, val_of_int(1), val_of_int(2));

	l = val_list_append(&a, l, val_of_int(3));
	l = val_list_insert(&a, l, 0, val_of_int(0));
	CHECK(val_equal(l, LIST(&a, val_of_int(0), val_of_int(1), val_of_int(2), val_of_int(3))));
	CHECK(val_equal(val_list_remove(&a, l, 1), LIST(&a, val_of_int(0), val_of_int(2), val_of_int(3))));
	CHECK(val_equal(val_list_remove(&a, l, 9), l));
	CHECK_INT(val_as_int(val_at(val_list_set(&a, l, 3, val_of_int(9)), 3)), 9);
	CHECK_INT(val_as_int(val_at(l, 3)), 3);
}

TEST(val_builders_grow)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder items = val_builder(&a), members = val_builder(&a);

	for (int i = 0; i < 1000; i++) {
		val_add_item(&items, val_of_int(i));
		val_add_member(&members, atom_make(&a, arena_printf(&a, "key-%d", i)), val_of_int(i));
	}
	val_add_member(&members, A_name, VAL_EMPTY);
	struct val l = val_end_list(&items), o = val_end_object(&members);
	CHECK_INT(val_len(l), 1000);
	CHECK_INT(val_len(o), 1000);
	CHECK_INT(val_as_int(val_at(l, 999)), 999);
	CHECK_INT(val_as_int(val_find(o, STR("key-513"))), 513);
}

TEST(val_equality_and_hash)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val x = OBJECT(&a, F(name, VAL_LIT("a")), F(replicas, val_of_int(3)), F(items, LIST(&a, VAL_NULL_VALUE, VAL_EMPTY_OBJECT)));
	struct val same = OBJECT(&a, F(items, LIST(&a, VAL_NULL_VALUE, VAL_EMPTY_OBJECT)), F(replicas, val_of_double(3)), F(name, VAL_LIT("a")));
	struct val others[] = {
		val_with(&a, x, VAL_LIT("b"), name),
		val_without(&a, x, name),
		val_with(&a, x, LIST(&a, VAL_EMPTY_OBJECT, VAL_NULL_VALUE), items),
		val_with(&a, x, VAL_LIT("3"), replicas),
		val_with(&a, x, VAL_EMPTY_LIST, items),
	};

	CHECK(val_equal(x, same));
	CHECK(val_hash(x) == val_hash(same));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CHECK_ROW(i, !val_equal(x, others[i]));
		CHECK_ROW(i, val_hash(x) != val_hash(others[i]));
	}
}

static struct val deep(struct arena *a, int depth)
{
	struct val v = val_of_int(1);
	for (int i = 0; i < depth; i++)
		v = i % 2 ? LIST(a, v) : OBJECT(a, F(spec, v));
	return v;
}

TEST(val_deep_trees_need_no_stack)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT, b = ARENA_INIT;
	struct val x = deep(&a, VAL_MAX_DEPTH);

	CHECK(val_equal(x, deep(&a, VAL_MAX_DEPTH)));
	CHECK(val_hash(x) == val_hash(val_copy(&b, x)));
	struct frozen *f = val_freeze(x);
	CHECK(val_equal(f->val, x));
	frozen_unref(f);
}

TEST(val_frozen_owns_everything)
{
	struct arena a = ARENA_INIT;
	struct frozen *f = val_freeze(sample_pod(&a));
	arena_done(&a);

	CHECK_STR(val_str(f->val, spec, nodeName), "node-1");
	CHECK_STR(val_as_str(val_find(val_get(f->val, metadata, labels), STR("example.com/tier"))), "front");
	frozen_unref(f);
}

static void *share(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		CLEANUP(frozen_unrefp) struct frozen *mine = frozen_ref(arg);
		if (!str_eq(val_str(mine->val, spec, nodeName), STR("node-1")))
			return arg;
	}
	return NULL;
}

TEST(val_frozen_is_shared_between_threads)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(sample_pod(&a));
	pthread_t threads[4];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_INT(pthread_create(&threads[i], NULL, share, f), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		void *bad = f;
		CHECK_INT(pthread_join(threads[i], &bad), 0);
		CHECK(bad == NULL);
	}
	CHECK_INT(f->refs, 1);
}

TEST(val_equal_is_quick_for_large_objects_of_another_order)
{
	enum { N = 200000 };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder up = val_builder(&a), down = val_builder(&a);

	for (int i = 0; i < N; i++) {
		val_add_member(&up, atom_make(&a, arena_printf(&a, "key-%d", i)), val_of_int(i));
		val_add_member(&down, atom_make(&a, arena_printf(&a, "key-%d", N - 1 - i)), val_of_int(N - 1 - i));
	}
	struct val x = val_end_object(&up), y = val_end_object(&down);
	CHECK(val_equal(x, y));
	CHECK(val_hash(x) == val_hash(y));
	CHECK(!val_equal(x, val_put(&a, y, atom_make(&a, STR("key-7")), val_of_int(8))));
	y = val_put(&a, y, atom_make(&a, STR("key-7")), VAL_EMPTY);
	CHECK(!val_equal(x, val_put(&a, y, atom_make(&a, STR("other")), val_of_int(7))));
}

TEST(val_sorted_keeps_the_last_of_equal_keys)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v = OBJECT(&a, F(spec, val_of_int(1)), F(kind, val_of_int(2)), F(spec, val_of_int(3)), F(apiVersion, val_of_int(4)));
	struct val sorted = val_sorted(&a, v);

	CHECK_INT(sorted.n, 3);
	CHECK(sorted.members[0].key == A_apiVersion && sorted.members[1].key == A_kind && sorted.members[2].key == A_spec);
	CHECK_INT(val_int(sorted, spec), 3);
	CHECK(val_sorted(&a, sorted).members == sorted.members);
	CHECK_INT(val_sorted(&a, VAL_EMPTY_OBJECT).n, 0);
}

TEST(val_int_of_doubles)
{
	CHECK(val_as_int(val_of_double(-2.5)) == -2);
	CHECK(val_as_int(val_of_double(-0x1p63)) == INT64_MIN);
	CHECK(val_as_int(val_of_double(0x1p63)) == 0 && val_as_int(val_of_double(-1e300)) == 0);
}

struct changes {
	struct arena *arena;
	str text;
};

static bool note(const struct val_change *c, void *arg)
{
	struct changes *all = arg;
	const char *sign = !val_exists(c->before) ? "+" : !val_exists(c->after) ? "-" : "~";
	all->text = arena_printf(all->arena, STR_FMT "%s" STR_FMT "\n", STR_ARG(all->text), sign, STR_ARG(c->path));
	return true;
}

TEST(val_diff_names_the_places)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val before = sample_pod(&a);
	struct val after = val_with(&a, before, VAL_LIT("node-2"), spec, nodeName);
	struct changes got = { .arena = &a };

	after = val_without(&a, after, spec, priority);
	after = val_with(&a, after, VAL_LIT("Running"), status, phase);
	after = val_with(&a, after, LIST(&a, OBJECT(&a, F(name, VAL_LIT("x")))), spec, containers);
	after = val_with(&a, after, VAL_EMPTY_OBJECT, metadata, labels);
	val_diff(&a, before, after, note, &got);
	CHECK_STR(got.text, "-metadata.labels[example.com/tier]\n~spec.containers[0].name\n-spec.containers[1]\n"
			    "~spec.nodeName\n-spec.priority\n+status\n");
}

TEST(val_edits_without_effect_change_nothing)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val inner = OBJECT(&a, F(name, VAL_LIT("x")), F(generation, val_of_int(1)));
	struct val v = OBJECT(&a, F(kind, VAL_LIT("Pod")), F(metadata, inner));

	CHECK(val_same(val_put(&a, v, A_metadata, inner), v));
	CHECK(val_same(val_with(&a, v, val_get(v, metadata, name), metadata, name), v));
	CHECK(val_same(val_with(&a, v, val_of_int(1), metadata, generation), v));
	CHECK(val_same(val_without(&a, v, metadata, uid), v));
	CHECK(!val_same(val_with(&a, v, val_of_int(2), metadata, generation), v));
	CHECK(!val_same(val_put(&a, v, A_kind, VAL_EMPTY), v));
}
