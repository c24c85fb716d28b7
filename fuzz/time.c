/* Times, micro times and durations: every text is tried as each. What parses has a text that leads back to it. */
#include "codec/time.h"
#include "fuzz/fuzz.h"

static void check_time(struct timestamp t)
{
	struct timestamp back;
	char out[TIME_TEXT_MAX];

	check(t.nanos >= 0 && t.nanos < 1000000000, "nanoseconds are a part of a second");
	check(time_unformat(time_format(t, out), &back), "the text of a time is understood");
	check(back.seconds == t.seconds && back.nanos == 0, "a time survives its text");
	check(time_unformat(microtime_format(t, out), &back), "the text of a micro time is understood");
	check(back.seconds == t.seconds && back.nanos == t.nanos / 1000 * 1000, "a micro time survives its text");
}

static void check_duration(int64_t ns)
{
	int64_t back;
	char out[DURATION_TEXT_MAX];

	check(duration_parse(duration_format(ns, out), &back, NULL) == 0 && back == ns, "a duration survives its text");
	check(duration_human(ns, out).n > 0, "every duration has an age");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	str text = str_span((const char *)data, n);
	struct timestamp t;
	struct err err = ERR_INIT;
	int64_t ns;

	if (time_parse(text, &t, &err) == 0)
		check_time(t);
	if (microtime_parse(text, &t, &err) == 0)
		check_time(t);
	if (time_unformat(text, &t))
		check_time(t);
	if (duration_parse(text, &ns, &err) == 0)
		check_duration(ns);
	if (n >= sizeof(ns)) {
		memcpy(&ns, data, sizeof(ns));
		check_time((struct timestamp){ .seconds = ns });
		check_duration(ns);
	}
	return 0;
}
