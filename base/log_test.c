#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"

/* Lines go to a file in memory; the time is that of the format's example. */
static int sink;
static char text[64 * 1024];

static void begin(enum log_format format)
{
	sink = memfd_create("log", MFD_CLOEXEC);
	CHECK(sink >= 0);
	log_set_fd(sink);
	log_set_format(format);
	clock_virtual_set(0, 1767323045678 * NS_PER_MS);
}

static str end(void)
{
	ssize_t n = pread(sink, text, sizeof(text), 0);
	close(sink);
	log_set_fd(STDERR_FILENO);
	log_set_format(LOG_FORMAT_TEXT);
	log_set_level(LOG_LEVEL_INFO);
	clock_virtual_off();
	CHECK(n >= 0);
	return str_span(text, (size_t)n);
}

static const struct err boom = { .code = ERR_INTERNAL, .n = 4, .msg = "boom" };

static void all_types(void)
{
	const char *none = NULL;
	log_info("pod synced", KV("pod", "default/x"), KV("ms", 3));
	log_warn("types", KV("str", STR("a b")), KV("yes", (bool)true), KV("big", UINT64_MAX), KV("small", INT64_MIN),
		 KV("u8", (uint8_t)7), KV("d", 0.25), KV("inf", HUGE_VAL), KV("err", &boom), KV("none", none));
	log_error("no fields");
}

TEST(log_text)
{
	begin(LOG_FORMAT_TEXT);
	all_types();
	CHECK_STR(end(), "2026-01-02T03:04:05.678Z INFO  pod synced pod=default/x ms=3\n"
			 "2026-01-02T03:04:05.678Z WARN  types str=\"a b\" yes=true big=18446744073709551615"
			 " small=-9223372036854775808 u8=7 d=0.25 inf=inf err=boom none=\"\"\n"
			 "2026-01-02T03:04:05.678Z ERROR no fields\n");
}

TEST(log_json)
{
	begin(LOG_FORMAT_JSON);
	all_types();
	CHECK_STR(end(), "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\",\"msg\":\"pod synced\",\"pod\":\"default/x\","
			 "\"ms\":3}\n"
			 "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"msg\":\"types\",\"str\":\"a b\",\"yes\":true,"
			 "\"big\":18446744073709551615,\"small\":-9223372036854775808,\"u8\":7,\"d\":0.25,\"inf\":\"inf\","
			 "\"err\":\"boom\",\"none\":\"\"}\n"
			 "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"error\",\"msg\":\"no fields\"}\n");
}

/* Nothing that a peer sends can forge a line, a field or a terminal's escape sequence. */
TEST(log_escapes)
{
	static const struct {
		const char *value, *text, *json;
	} t[] = {
		{ "plain-1.2/3", "v=plain-1.2/3", "\"v\":\"plain-1.2/3\"" },
		{ "a=b", "v=\"a=b\"", "\"v\":\"a=b\"" },
		{ "say \"x\\y\"", "v=\"say \\\"x\\\\y\\\"\"", "\"v\":\"say \\\"x\\\\y\\\"\"" },
		{ "a\nb\tc\r", "v=\"a\\nb\\tc\\r\"", "\"v\":\"a\\nb\\tc\\r\"" },
		{ "\x1b[31m\x7f", "v=\"\\x1b[31m\\x7f\"", "\"v\":\"\\u001b[31m\\u007f\"" },
		{ "\xc3\xa9", "v=\"\xc3\xa9\"", "\"v\":\"\xc3\xa9\"" },
		{ "\xc2\x9b" "31m", "v=\"\\u009b31m\"", "\"v\":\"\\u009b31m\"" },
		{ "\xff\xe2\x82", "v=\"\\xff\\xe2\\x82\"", "\"v\":\"\\ufffd\\ufffd\\ufffd\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (int json = 0; json < 2; json++) {
			char want[128];
			snprintf(want, sizeof(want), json ? "\"msg\":\"m\",%s}\n" : " INFO  m %s\n", json ? t[i].json : t[i].text);
			begin(json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
			log_info("m", KV("v", t[i].value));
			str line = end();
			CHECK_STR_ROW(i, str_skip(line, line.n - MIN(line.n, strlen(want))), want);
		}
	}
	begin(LOG_FORMAT_TEXT);
	log_info("two\nlines");
	CHECK_STR(end(), "2026-01-02T03:04:05.678Z INFO  two\\nlines\n");
}

TEST(log_lines_are_bounded)
{
	static char huge[20000];
	memset(huge, '\n', sizeof(huge) - 1); /* each becomes two bytes */
	for (int json = 0; json < 2; json++) {
		begin(json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
		log_info("long value", KV("v", huge), KV("after", 1));
		str line = end();
		CHECK_ROW(json, line.n < 1200);
		CHECK_ROW(json, str_find(line, STR("\\n...\"")) > 0);
		CHECK_ROW(json, str_ends(line, json ? STR(",\"after\":1}\n") : STR(" after=1\n")));

		begin(json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
		log_info("many", KV("a", huge), KV("b", huge), KV("c", huge), KV("d", huge), KV("e", huge), KV("f", 1));
		line = end();
		CHECK_ROW(json, line.n > LOG_LINE_MAX - 200 && line.n <= LOG_LINE_MAX);
		CHECK_ROW(json, str_ends(line, json ? STR("\",\"truncated\":true}\n") : STR("\" ...\n")));
		CHECK_INT(str_chr(line, '\n'), line.n - 1);
	}
}

/* Every length around the place where a line is full gives a whole line with balanced quotes. */
TEST(log_line_ends)
{
	static char fill[1000];
	memset(fill, 'x', sizeof(fill));
	for (size_t n = 0; n < 200; n++) {
		begin(LOG_FORMAT_JSON);
		log_info("m", KV("a", str_span(fill, 990)), KV("b", str_span(fill, 990)), KV("c", str_span(fill, 990)),
			 KV("d", str_span(fill, 700 + n)), KV("e", "\"quoted\""), KV("f", 12345), KV("g", STR("h")));
		str line = end();
		int quotes = 0;
		for (size_t i = 0; i < line.n; i++)
			quotes += line.p[i] == '"' && line.p[i - 1] != '\\';
		CHECK_ROW(n, line.n <= LOG_LINE_MAX && quotes % 2 == 0 && str_ends(line, STR("}\n")));
	}
}

static int evaluated;

static int count_evaluation(void) { return ++evaluated; }

TEST(log_levels)
{
	static const char *const names[] = { "debug", "info", "warn", "error", "off" };
	for (int level = LOG_LEVEL_DEBUG; level <= LOG_LEVEL_OFF; level++) {
		enum log_level parsed = LOG_LEVEL_OFF;
		CHECK_ROW(level, log_level_parse(str_of(names[level]), &parsed) && (int)parsed == level);
		begin(LOG_FORMAT_TEXT);
		log_set_level(parsed);
		evaluated = 0;
		log_debug("d", KV("n", count_evaluation()));
		log_info("i", KV("n", count_evaluation()));
		log_warn("w", KV("n", count_evaluation()));
		log_error("e", KV("n", count_evaluation()));
		str all = end();
		int lines = 0;
		for (size_t i = 0; i < all.n; i++)
			lines += all.p[i] == '\n';
		CHECK_INT(lines, LOG_LEVEL_OFF - level);
		CHECK_INT(evaluated, LOG_LEVEL_OFF - level);
	}
	enum log_level untouched = LOG_LEVEL_WARN;
	CHECK(!log_level_parse(STR("INFO!"), &untouched) && untouched == LOG_LEVEL_WARN);
}

static void work_on_container(const char *name)
{
	LOG_CONTEXT("container", name);
	log_info("started", KV("n", 1));
}

TEST(log_context)
{
	begin(LOG_FORMAT_TEXT);
	{
		LOG_CONTEXT("pod", "ns/x");
		LOG_CONTEXT("try", 2);
		work_on_container("app");
		log_info("done");
	}
	log_info("outside");
	CHECK_STR(end(), "2026-01-02T03:04:05.678Z INFO  started pod=ns/x try=2 container=app n=1\n"
			 "2026-01-02T03:04:05.678Z INFO  done pod=ns/x try=2\n"
			 "2026-01-02T03:04:05.678Z INFO  outside\n");
}

TEST(log_context_is_exchanged)
{
	begin(LOG_FORMAT_TEXT);
	{
		/* As a switch from one fiber to another and back does it. */
		LOG_CONTEXT("fiber", 1);
		struct log_context *saved = *log_context_slot();
		*log_context_slot() = NULL;
		{
			LOG_CONTEXT("fiber", 2);
			log_info("second");
		}
		*log_context_slot() = saved;
		log_info("first");
	}
	CHECK(*log_context_slot() == NULL);
	CHECK_STR(end(), "2026-01-02T03:04:05.678Z INFO  second fiber=2\n"
			 "2026-01-02T03:04:05.678Z INFO  first fiber=1\n");
}

TEST(log_keeps_errno_and_ignores_write_errors)
{
	begin(LOG_FORMAT_TEXT);
	log_set_fd(-1);
	errno = ENOENT;
	log_info("nobody reads this");
	CHECK_INT(errno, ENOENT);
	CHECK_STR(end(), "");
}

enum { THREADS = 4, LINES = 200 };

static void *chatter(void *arg)
{
	LOG_CONTEXT("thread", *(int *)arg);
	for (int i = 0; i < LINES; i++)
		log_info("hello", KV("i", i));
	return NULL;
}

TEST(log_from_threads)
{
	pthread_t threads[THREADS];
	int ids[THREADS], lines[THREADS] = { 0 };

	begin(LOG_FORMAT_TEXT);
	CHECK(fcntl(sink, F_SETFL, O_APPEND) == 0); /* the file's position is shared */
	for (int i = 0; i < THREADS; i++) {
		ids[i] = i;
		CHECK(pthread_create(&threads[i], NULL, chatter, &ids[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (str line, rest = end(); rest.n;) {
		int thread, i;
		char whole[80];
		str_cut(rest, '\n', &line, &rest);
		snprintf(whole, sizeof(whole), STR_FMT, STR_ARG(line));
		CHECK(sscanf(whole, "2026-01-02T03:04:05.678Z INFO hello thread=%d i=%d", &thread, &i) == 2);
		CHECK(thread >= 0 && thread < THREADS && i == lines[thread]++);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(lines[i], LINES);
}
