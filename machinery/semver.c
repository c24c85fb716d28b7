#include "machinery/semver.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; }

static bool is_number(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_digit(s.p[i]))
			return false;
	return s.n > 0;
}

static bool parse_number(str s, uint64_t *ret)
{
	uint64_t n = 0;
	if (!is_number(s) || (s.n > 1 && s.p[0] == '0'))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (__builtin_mul_overflow(n, (uint64_t)10, &n) || __builtin_add_overflow(n, (uint64_t)(s.p[i] - '0'), &n))
			return false;
	*ret = n;
	return true;
}

/* Words with dots between them; of pre-releases, numbers have no leading zeros. */
static bool are_words(str s, bool strict_numbers)
{
	str word;
	for (bool more = true; more;) {
		more = str_cut(s, '.', &word, &s);
		if (word.n == 0 || (strict_numbers && is_number(word) && word.n > 1 && word.p[0] == '0'))
			return false;
		for (size_t i = 0; i < word.n; i++)
			if (!is_word(word.p[i]))
				return false;
	}
	return true;
}

bool semver_parse(str text, struct semver *ret)
{
	str numbers = text, major, minor, patch;
	bool has_build, has_pre;

	*ret = (struct semver){ 0 };
	has_build = str_cut(numbers, '+', &numbers, &ret->build);
	has_pre = str_cut(numbers, '-', &numbers, &ret->pre);
	if ((has_build && !are_words(ret->build, false)) || (has_pre && !are_words(ret->pre, true)))
		return false;
	return str_cut(numbers, '.', &major, &minor) && str_cut(minor, '.', &minor, &patch) &&
	       parse_number(major, &ret->major) && parse_number(minor, &ret->minor) && parse_number(patch, &ret->patch);
}

/* Numbers are less than words and compare by value; without leading zeros the longer one is larger. */
static int cmp_words(str a, str b)
{
	bool a_number = is_number(a), b_number = is_number(b);
	if (a_number != b_number)
		return a_number ? -1 : 1;
	if (a_number && a.n != b.n)
		return a.n < b.n ? -1 : 1;
	return str_cmp(a, b);
}

static int cmp_pre(str a, str b)
{
	if (a.n == 0 || b.n == 0)
		return (a.n == 0) - (b.n == 0);
	for (;;) {
		str x, y;
		bool more_a = str_cut(a, '.', &x, &a), more_b = str_cut(b, '.', &y, &b);
		int r = cmp_words(x, y);
		if (r || !more_a || !more_b)
			return r ? r : more_a - more_b;
	}
}

int semver_cmp(const struct semver *a, const struct semver *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	if (a->patch != b->patch)
		return a->patch < b->patch ? -1 : 1;
	return cmp_pre(a->pre, b->pre);
}
