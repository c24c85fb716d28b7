#include "client/recorder.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber_test.h"
#include "base/log.h"
#include "client/fake_test.h"
#include "codec/atoms.h"

static struct val pod(struct arena *a)
{
	return OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Pod")),
		      F(metadata, OBJECT(a, F(name, VAL_LIT("web")), F(namespace, VAL_LIT("shop")), F(uid, VAL_LIT("u1")))));
}

FIBER_TEST(recorder_makes_events_and_counts_them)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fake f;
	struct recorder *r;

	fake_clock(255);
	fake_init(&f);
	CHECK_INT(recorder_new(&f.client, STR("kubelet"), STR("n1"), &r, NULL), 0);
	record(r, pod(&a), RECORD_NORMAL, "Started", "Container %s started", "c");
	fiber_settle();
	struct frozen *e = fake_get(&f, "events/shop/web.ff");
	CHECK(e);
	CHECK_STR(val_str(e->val, message), "Container c started");
	CHECK_STR(val_str(e->val, type), "Normal");
	CHECK_STR(val_str(e->val, source, component), "kubelet");
	CHECK_STR(val_str(e->val, source, host), "n1");
	CHECK_STR(val_str(e->val, involvedObject, uid), "u1");
	CHECK_STR(val_str(e->val, firstTimestamp), "1970-01-01T00:00:00Z");
	clock_virtual_advance(5 * NS_PER_S);
	record(r, pod(&a), RECORD_NORMAL, "Started", "Container %s started", "c");
	fiber_settle();
	e = fake_get(&f, "events/shop/web.ff");
	CHECK_INT(val_int(e->val, count), 2);
	CHECK_STR(val_str(e->val, firstTimestamp), "1970-01-01T00:00:00Z");
	CHECK_STR(val_str(e->val, lastTimestamp), "1970-01-01T00:00:05Z");
	recorder_free(r);
	fake_done(&f);
	clock_virtual_off();
}

FIBER_TEST(recorder_waits_for_a_server_that_is_away)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fake f;
	struct recorder *r;

	fake_clock(255);
	fake_init(&f);
	f.fail = ERR_UNAVAILABLE;
	CHECK_INT(recorder_new(&f.client, STR("kubelet"), STR("n1"), &r, NULL), 0);
	record(r, pod(&a), RECORD_WARNING, "Failed", "no");
	CHECK_INT(fiber_sleep_ms(25000, NULL), 0);
	CHECK(!fake_get(&f, "events/shop/web.ff"));
	f.fail = ERR_NONE;
	CHECK_INT(fiber_sleep_ms(10000, NULL), 0);
	CHECK(fake_get(&f, "events/shop/web.ff"));

	f.fail = ERR_FORBIDDEN; /* refused: not tried again */
	record(r, pod(&a), RECORD_WARNING, "Other", "no");
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	(void)fake_log(&f, &a);
	CHECK_INT(fiber_sleep_ms(60000, NULL), 0);
	CHECK_STR(fake_log(&f, &a), "");
	recorder_free(r);
	fake_done(&f);
	clock_virtual_off();
}

/* How often the log complained, and of how many in all. */
static void read_log(int fd, size_t *ret_lines, long *ret_dropped)
{
	static char text[64 * 1024];

	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	CHECK(n >= 0);
	text[n] = '\0';
	*ret_lines = 0;
	*ret_dropped = 0;
	for (const char *at = text; (at = strstr(at, "dropped=")); at++) {
		*ret_lines += 1;
		*ret_dropped += strtol(at + strlen("dropped="), NULL, 10);
	}
}

FIBER_TEST(recorder_says_rarely_that_it_drops)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fake f;
	struct recorder *r;
	size_t lines;
	long dropped;
	int fd = memfd_create("log", MFD_CLOEXEC);

	log_set_fd(fd);
	fake_clock(255);
	fake_init(&f);
	f.fail = ERR_UNAVAILABLE;
	CHECK_INT(recorder_new(&f.client, STR("kubelet"), STR("n1"), &r, NULL), 0);
	for (int i = 0; i < 1000 + 300; i++)
		record(r, pod(&a), RECORD_WARNING, "Failed", "no");
	read_log(fd, &lines, &dropped);
	CHECK_INT(lines, 1);
	clock_virtual_advance(10 * NS_PER_S);
	for (int i = 0; i < 300; i++)
		record(r, pod(&a), RECORD_WARNING, "Failed", "no");
	read_log(fd, &lines, &dropped);
	CHECK_INT(lines, 2);
	CHECK_INT(dropped, 301); /* the one that began it, and all until the second line */
	recorder_free(r);
	fake_done(&f);
	clock_virtual_off();
	log_set_fd(STDERR_FILENO);
	close(fd);
}
