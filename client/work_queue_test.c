#include "client/work_queue.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fiber_test.h"
#include "client/fake_test.h"

struct scene {
	struct work_queue *queue;
	struct buf log;
	int result;
	int64_t takes_ms;
	unsigned at_work, most_at_work;
};

static int work(str key, void *arg, struct err *err)
{
	struct scene *s = arg;
	buf_addf(&s->log, STR_FMT "@%lld ", STR_ARG(key), (long long)(clock_now_ns() / NS_PER_MS));
	s->at_work++;
	s->most_at_work = MAX(s->most_at_work, s->at_work);
	int r = s->takes_ms ? fiber_sleep_ms(s->takes_ms, err) : 0;
	s->at_work--;
	return r < 0 ? r : s->result < 0 ? err_set(err, (enum err_code)-s->result, "as told") : 0;
}

static int work_with_two(void *arg)
{
	struct scene *s = arg;
	return work_queue_run(s->queue, 2, work, s, NULL);
}

static void scene_begin(struct scene *s, const struct work_queue_options *o)
{
	fake_clock(0);
	*s = (struct scene){ .queue = work_queue_new(o), .log = BUF_INIT(1 << 16) };
}

static void scene_end(struct scene *s, struct fiber *f)
{
	if (f)
		(void)fiber_stop(f);
	work_queue_free(s->queue);
	buf_done(&s->log);
	clock_virtual_off();
}

FIBER_TEST(work_queue_gives_a_key_once_and_in_order)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test" });
	work_queue_add(s.queue, STR("a"));
	work_queue_add(s.queue, STR("b"));
	work_queue_add(s.queue, STR("a"));
	CHECK_INT(work_queue_length(s.queue), 2);
	struct fiber *f = start(work_with_two, &s);
	fiber_settle();
	CHECK_STR(buf_str(&s.log), "a@0 b@0 ");
	scene_end(&s, f);
}

FIBER_TEST(work_queue_never_gives_a_key_to_two_workers)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test" });
	s.takes_ms = 100;
	struct fiber *f = start(work_with_two, &s);
	work_queue_add(s.queue, STR("a"));
	fiber_settle();
	work_queue_add(s.queue, STR("a")); /* while it is worked on: once more afterwards */
	work_queue_add(s.queue, STR("a"));
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_STR(buf_str(&s.log), "a@0 a@100 ");
	CHECK_INT(s.most_at_work, 1);
	scene_end(&s, f);
}

FIBER_TEST(work_queue_has_workers_while_there_is_work)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test" });
	s.takes_ms = 100;
	struct fiber *f = start(work_with_two, &s);
	fiber_settle();
	unsigned at_rest = loop_fibers(loop_self());
	for (char key[] = "a"; key[0] < 'e'; key[0]++)
		work_queue_add(s.queue, str_of(key));
	fiber_settle();
	CHECK_INT(s.at_work, 2);
	CHECK_INT(loop_fibers(loop_self()), at_rest + 2);
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_STR(buf_str(&s.log), "a@0 b@0 c@100 d@100 ");
	CHECK_INT(loop_fibers(loop_self()), at_rest);
	scene_end(&s, f);
}

FIBER_TEST(work_queue_backs_off_per_key_and_forgets)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test", .base_ms = 10, .max_ms = 40 });
	s.result = -ERR_CONFLICT;
	struct fiber *f = start(work_with_two, &s);
	work_queue_add(s.queue, STR("a"));
	CHECK_INT(fiber_sleep_ms(120, NULL), 0);
	CHECK_STR(buf_str(&s.log), "a@0 a@10 a@30 a@70 a@110 ");
	CHECK_INT(work_queue_failures(s.queue, STR("a")), 5);
	s.result = 0;
	CHECK_INT(fiber_sleep_ms(40, NULL), 0);
	CHECK_INT(work_queue_failures(s.queue, STR("a")), 0);
	scene_end(&s, f);
}

/* That something was canceled on the way to the result does not mean that the worker is. */
FIBER_TEST(work_queue_tries_again_what_others_canceled)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test", .base_ms = 10, .max_ms = 40 });
	s.result = -ERR_CANCELED;
	struct fiber *f = start(work_with_two, &s);
	work_queue_add(s.queue, STR("a"));
	CHECK_INT(fiber_sleep_ms(20, NULL), 0);
	CHECK_STR(buf_str(&s.log), "a@0 a@10 ");
	scene_end(&s, f);
}

FIBER_TEST(work_queue_limits_all_that_fail_together)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test", .base_ms = 1, .max_ms = 1, .qps = 10, .burst = 2 });
	s.result = -ERR_CONFLICT;
	struct fiber *f = start(work_with_two, &s);
	work_queue_add(s.queue, STR("a"));
	CHECK_INT(fiber_sleep_ms(250, NULL), 0);
	CHECK_STR(buf_str(&s.log), "a@0 a@1 a@2 a@100 a@200 ");
	scene_end(&s, f);
}

FIBER_TEST(work_queue_adds_later_and_earlier_counts)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test" });
	struct fiber *f = start(work_with_two, &s);
	work_queue_add_after(s.queue, STR("a"), 500);
	work_queue_add_after(s.queue, STR("a"), 50);
	work_queue_add_after(s.queue, STR("a"), 700);
	work_queue_add_after(s.queue, STR("b"), 0);
	CHECK_INT(fiber_sleep_ms(1000, NULL), 0);
	CHECK_STR(buf_str(&s.log), "b@0 a@50 ");
	work_queue_add_after(s.queue, STR("never"), 500); /* freed while it waits */
	scene_end(&s, f);
}

FIBER_TEST(work_queue_waits_however_long)
{
	struct scene s;
	scene_begin(&s, &(struct work_queue_options){ .name = "test" });
	work_queue_add_after(s.queue, STR("never"), INT64_MAX);
	work_queue_add_after(s.queue, STR("nearly"), INT64_MAX / NS_PER_MS);
	work_queue_add_after(s.queue, STR("soon"), 1000);
	struct fiber *f = start(work_with_two, &s);
	CHECK_INT(fiber_sleep_ms(3600 * 1000, NULL), 0);
	CHECK_STR(buf_str(&s.log), "soon@1000 ");
	scene_end(&s, f);
}
