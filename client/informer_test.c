#include "client/informer.h"

#include "base/clock.h"
#include "base/fiber_test.h"
#include "client/fake_test.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define ADDED(n, r) { .kind = FAKE_EVENT, .type = CLIENT_ADDED, .name = (n), .revision = (r) }
#define MODIFIED(n, r) { .kind = FAKE_EVENT, .type = CLIENT_MODIFIED, .name = (n), .revision = (r) }
#define DELETED(n, r) { .kind = FAKE_EVENT, .type = CLIENT_DELETED, .name = (n), .revision = (r) }
#define LISTED(r) { .kind = FAKE_EVENT, .type = CLIENT_BOOKMARK, .revision = (r), .initial_end = true }
#define BOOKMARK(r) { .kind = FAKE_EVENT, .type = CLIENT_BOOKMARK, .revision = (r) }
#define END { .kind = FAKE_END }
#define FAIL(code) { .kind = FAKE_FAIL, .error = (code) }
#define REFUSE(code) { .kind = FAKE_REFUSE, .error = (code) }
#define TELL(f, ...)                                                                                            \
	do {                                                                                                    \
		static const struct fake_step steps_[] = { __VA_ARGS__ };                                       \
		fake_tell(f, steps_, ARRAY_LEN(steps_));                                                        \
	} while (0)

struct scene {
	struct fake fake;
	struct informers *all;
	struct informer *pods;
	struct informer_listener listener;
	struct buf told;
	struct arena arena;
};

static void told(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct scene *s = CONTAINER_OF(l, struct scene, listener);
	struct val v = object ? object->val : old->val;
	buf_addf(&s->told, "%c" STR_FMT " ", !old ? '+' : !object ? '-' : '~', STR_ARG(val_str(v, metadata, name)));
}

static void synced(struct informer_listener *l) { buf_add(&CONTAINER_OF(l, struct scene, listener)->told, STR("synced ")); }

static void scene_begin_keeping(struct scene *s, struct val (*keep)(struct arena *a, struct val object))
{
	fake_clock(0);
	*s = (struct scene){ .told = BUF_INIT(1 << 16), .listener = { .changed = told, .synced = synced } };
	fake_init(&s->fake);
	s->all = informers_new(&s->fake.client);
	s->pods = informers_get(s->all, TYPE(core_v1, Pod), &(struct informer_options){ .fields = STR("spec.nodeName=n1"), .keep = keep });
	informer_listen(s->pods, &s->listener);
	CHECK_INT(informers_start(s->all, NULL), 0);
}

static void scene_begin(struct scene *s) { scene_begin_keeping(s, NULL); }

static void scene_end(struct scene *s)
{
	informers_free(s->all);
	fake_done(&s->fake);
	buf_done(&s->told);
	arena_done(&s->arena);
	clock_virtual_off();
}

/* What was told since the last look. */
static str news(struct scene *s)
{
	str text = arena_str(&s->arena, buf_str(&s->told));
	buf_reset(&s->told);
	return text;
}

FIBER_TEST(informer_streams_a_list_and_follows)
{
	struct scene s;
	scene_begin(&s);
	TELL(&s.fake, ADDED("b", "3"), ADDED("a", "2"));
	fiber_settle();
	CHECK_STR(news(&s), "");
	CHECK(!informer_synced(s.pods));
	TELL(&s.fake, LISTED("5"));
	CHECK_INT(informers_wait(s.all, NULL), 0);
	CHECK_STR(news(&s), "+a +b synced ");
	CHECK_STR(informer_revision(s.pods), "5");
	str log = fake_log(&s.fake, &s.arena);
	CHECK(str_find(log, STR("fieldSelector=spec.nodeName%3Dn1")) >= 0);
	CHECK(str_find(log, STR("sendInitialEvents=true")) >= 0);

	TELL(&s.fake, MODIFIED("a", "6"), DELETED("b", "7"), ADDED("c", "8"), BOOKMARK("20"));
	fiber_settle();
	CHECK_STR(news(&s), "~a -b +c ");
	CHECK_STR(informer_revision(s.pods), "20");
	CHECK_INT(informer_count(s.pods), 2);
	CHECK(informer_get(s.pods, STR("default/a")) && !informer_get(s.pods, STR("default/b")));
	scene_end(&s);
}

FIBER_TEST(informer_goes_on_where_a_broken_watch_ended)
{
	struct scene s;
	scene_begin(&s);
	TELL(&s.fake, ADDED("a", "2"), LISTED("5"), MODIFIED("a", "6"), FAIL(ERR_UNAVAILABLE), REFUSE(ERR_UNAVAILABLE),
	     REFUSE(ERR_TOO_MANY_REQUESTS), MODIFIED("a", "9"));
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	CHECK_STR(news(&s), "+a synced ~a ~a ");
	str log = fake_log(&s.fake, &s.arena);
	CHECK(str_find(log, STR("resourceVersion=6")) >= 0);
	scene_end(&s);
}

FIBER_TEST(informer_tells_what_it_missed_when_it_lists_again)
{
	struct scene s;
	scene_begin(&s);
	TELL(&s.fake, ADDED("a", "2"), ADDED("b", "3"), ADDED("c", "4"), LISTED("5"), FAIL(ERR_EXPIRED));
	fiber_settle();
	CHECK_STR(news(&s), "+a +b +c synced ");
	/* a is as it was, b has changed, c is gone, d is new: the same as if it had all been seen. */
	TELL(&s.fake, ADDED("a", "2"), ADDED("b", "8"), ADDED("d", "9"), LISTED("10"));
	fiber_settle();
	CHECK_STR(news(&s), "-c ~b +d ");
	CHECK_INT(informer_count(s.pods), 3);
	scene_end(&s);
}

FIBER_TEST(informer_keeps_its_copy_while_a_list_breaks)
{
	struct scene s;
	scene_begin(&s);
	TELL(&s.fake, ADDED("a", "2"), LISTED("5"), FAIL(ERR_GONE), ADDED("b", "6"), END, ADDED("a", "2"), ADDED("b", "6"),
	     LISTED("7"));
	fiber_settle();
	CHECK_STR(news(&s), "+a synced ");
	CHECK_INT(informer_count(s.pods), 1);
	CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
	CHECK_STR(news(&s), "+b ");
	scene_end(&s);
}

/* A server that says 410 after every list is not asked for all of it without a pause. */
FIBER_TEST(informer_pauses_when_it_is_too_old_again_and_again)
{
	struct scene s;
	scene_begin(&s);
	TELL(&s.fake, ADDED("a", "2"), LISTED("5"), FAIL(ERR_EXPIRED), ADDED("a", "2"), LISTED("5"), FAIL(ERR_EXPIRED), ADDED("b", "6"),
	     LISTED("7"));
	fiber_settle();
	CHECK_STR(news(&s), "+a synced ");
	CHECK_INT(fiber_sleep_ms(5000, NULL), 0);
	CHECK_STR(news(&s), "-a +b ");
	scene_end(&s);
}

/* Nobody goes on waiting for a server that has answered somebody else. */
FIBER_TEST(informer_tries_again_when_the_server_is_back)
{
	enum { REFUSALS = 9 };
	struct fake_step steps[REFUSALS];
	struct scene s;
	scene_begin(&s);
	for (size_t i = 0; i < REFUSALS; i++)
		steps[i] = (struct fake_step)REFUSE(ERR_UNAVAILABLE);
	fake_tell(&s.fake, steps, REFUSALS);
	while (s.fake.at < REFUSALS)
		CHECK_INT(fiber_sleep_ms(100, NULL), 0);
	TELL(&s.fake, ADDED("a", "2"), LISTED("5"));
	CHECK_INT(fiber_sleep_ms(2000, NULL), 0);
	CHECK_STR(news(&s), "");
	CHECK_INT(client_create(&s.fake.client, TYPE(core_v1, Pod), OBJECT(&s.arena, F(metadata, OBJECT(&s.arena, F(name, VAL_LIT("b")),
				F(namespace, VAL_LIT("default"))))), NULL, NULL, NULL), 0);
	CHECK_INT(fiber_sleep_ms(500, NULL), 0);
	CHECK_STR(news(&s), "+a synced ");
	scene_end(&s);
}

/* A server that refuses streamed lists, and whose own do not say how new they are, is asked again after a pause each. */
FIBER_TEST(informer_pauses_when_lists_have_no_revision)
{
	enum { REFUSALS = 200 };
	static struct fake_step steps[REFUSALS];
	struct scene s;
	scene_begin(&s);
	struct val list = OBJECT(&s.arena, F(kind, VAL_LIT("PodList")), F(apiVersion, VAL_LIT("v1")));
	CLEANUP(frozen_unrefp) struct frozen *answer = val_freeze(list);
	(void)omap_put(s.fake.objects, STR("pods//"), answer);
	for (size_t i = 0; i < REFUSALS; i++)
		steps[i] = (struct fake_step)REFUSE(ERR_INVALID);
	fake_tell(&s.fake, steps, REFUSALS);
	fiber_settle();
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	CHECK(s.fake.at < 10);
	CHECK(!informer_synced(s.pods));
	scene_end(&s);
}

static struct val keep_name(struct arena *a, struct val object)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_get(object, metadata, name)), F(namespace, val_get(object, metadata, namespace)))));
}

/* What is kept does not say how new it is: after a list, everything may be another. */
FIBER_TEST(informer_misses_no_change_of_what_it_keeps_in_part)
{
	struct scene s;
	scene_begin_keeping(&s, keep_name);
	TELL(&s.fake, ADDED("a", "2"), LISTED("5"), FAIL(ERR_EXPIRED), ADDED("a", "8"), LISTED("10"));
	fiber_settle();
	CHECK_STR(news(&s), "+a synced ~a ");
	scene_end(&s);
}

FIBER_TEST(informer_is_shared_and_late_listeners_hear_all)
{
	struct scene s;
	struct informer_options same = { .fields = STR("spec.nodeName=n1") };
	scene_begin(&s);
	CHECK(informers_get(s.all, TYPE(core_v1, Pod), &same) == s.pods);
	CHECK(informers_get(s.all, TYPE(core_v1, Node), NULL) != s.pods);
	TELL(&s.fake, ADDED("a", "2"), LISTED("5"));
	fiber_settle();
	informer_unlisten(&s.listener);
	CHECK_STR(news(&s), "+a synced ");
	informer_listen(s.pods, &s.listener);
	CHECK_STR(news(&s), "+a synced ");
	scene_end(&s);
}

/* By the first letter of the name. */
static void by_letter(struct val object, void (*add)(str value, void *arg), void *arg)
{
	add(str_span(val_str(object, metadata, name).p, 1), arg);
}

static str letters(struct scene *s, const char *value)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(256);
	INFORMER_EACH(pod, informer_each_indexed(s->pods, "letter", str_of(value)))
		buf_addf(&b, STR_FMT " ", STR_ARG(val_str(pod->val, metadata, name)));
	return arena_str(&s->arena, buf_str(&b));
}

FIBER_TEST(informer_indexes_follow_changes)
{
	struct scene s;
	scene_begin(&s);
	TELL(&s.fake, ADDED("a1", "2"), ADDED("a2", "3"), ADDED("b1", "4"), LISTED("5"));
	fiber_settle();
	informer_index(s.pods, "letter", by_letter);
	CHECK_STR(letters(&s, "a"), "a1 a2 ");
	TELL(&s.fake, DELETED("a1", "6"), ADDED("b2", "7"), MODIFIED("b1", "8"));
	fiber_settle();
	CHECK_STR(letters(&s, "a"), "a2 ");
	CHECK_STR(letters(&s, "b"), "b1 b2 ");
	CHECK_STR(letters(&s, "c"), "");
	size_t n = 0;
	INFORMER_EACH(pod, informer_each(s.pods))
		n += val_exists(pod->val);
	CHECK_INT(n, 3);
	scene_end(&s);
}
