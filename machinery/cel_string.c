/* Functions of texts: CEL's own, its extension for strings, and Kubernetes' for patterns. Positions count characters. */
#include <inttypes.h>

#include "base/buf.h"
#include "machinery/cel_format.h"
#include "machinery/cel_priv.h"

enum { TEXT_MAX = 2 * 1024 * 1024 };

static struct cel_val out_of_range(struct cel_eval *ev, int64_t i) { return cel_fail(ev, "index out of range: %" PRId64, i); }

/* The byte where character i begins; the end for one behind the last. */
static size_t byte_of(str s, size_t i)
{
	size_t at = 0;

	while (i && at < s.n) {
		at++;
		while (at < s.n && (s.p[at] & 0xc0) == 0x80)
			at++;
		i--;
	}
	return at;
}

static struct cel_val finish(struct cel_eval *ev, const struct buf *b)
{
	if (b->overflow)
		return cel_fail(ev, "string is too long");
	return cel_work(ev, b->n / 64) ? cel_of_str(arena_str(ev->arena, buf_str(b))) : cel_of_null();
}

/* ---- tests ---- */

static bool both_strings(const struct cel_val *v) { return v[0].kind == CEL_STRING && v[1].kind == CEL_STRING; }

static struct cel_val contains(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (!both_strings(v))
		return cel_no_overload(ev);
	cel_work(ev, v[0].n / 16);
	return cel_of_bool(!v[1].n || memmem(v[0].s, v[0].n, v[1].s, v[1].n) != NULL);
}

static struct cel_val starts_with(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return both_strings(v) ? cel_of_bool(str_starts(cel_text(v[0]), cel_text(v[1]))) : cel_no_overload(ev);
}

static struct cel_val ends_with(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return both_strings(v) ? cel_of_bool(str_ends(cel_text(v[0]), cel_text(v[1]))) : cel_no_overload(ev);
}

/* ---- patterns ---- */

enum { CLASS_WORK = 200 };

/* What it takes to compile one: a class by name is made of a table of all characters, however short the name is. */
static size_t pattern_work(str text)
{
	size_t n = text.n;

	for (size_t i = 0; i + 1 < text.n; i++)
		if (text.p[i] == '\\' && (text.p[i + 1] == 'p' || text.p[i + 1] == 'P'))
			n += CLASS_WORK;
	return n;
}

/* The pattern of the running call; NULL with the error in *ret. */
static const struct cel_re *pattern(struct cel_eval *ev, struct cel_val text, const char *prefix, struct cel_val *ret)
{
	struct err err = ERR_INIT;

	if (!cel_work(ev, ev->re ? 1 : pattern_work(cel_text(text)))) {
		*ret = cel_fail(ev, "%spattern is too large", prefix);
		return NULL;
	}
	const struct cel_re *re = ev->re ? ev->re : cel_re_compile(ev->arena, cel_text(text), &err);
	if (!re)
		*ret = cel_fail(ev, "%s" STR_FMT, prefix, STR_ARG(err_str(&err)));
	return re;
}

static bool find_from(struct cel_eval *ev, const struct cel_re *re, str text, size_t from, size_t *begin, size_t *end)
{
	size_t steps = 0;
	bool found = cel_re_match(re, ev->arena, text, from, begin, end, &steps);

	return cel_work(ev, steps / 8) && found;
}

static struct cel_val matches(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;

	(void)n;
	if (!both_strings(v))
		return v[0].kind == CEL_STRING ? cel_no_overload(ev) : cel_no_overload_named(ev);
	const struct cel_re *re = pattern(ev, v[1], "", &error);
	return re ? cel_of_bool(find_from(ev, re, cel_text(v[0]), 0, NULL, NULL)) : error;
}

static struct cel_val find(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	size_t begin, end;

	(void)n;
	const struct cel_re *re = pattern(ev, v[1], "Illegal regex: ", &error);
	if (!re)
		return error;
	if (!find_from(ev, re, cel_text(v[0]), 0, &begin, &end))
		return cel_of_str(STR(""));
	return cel_of_str(str_span(v[0].s + begin, end - begin));
}

/* As Go's FindAllString: after an empty match the next character is skipped, and no empty match follows another directly. */
static struct cel_val find_all(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error, list = cel_list_take(ev->arena, NULL, 0);
	str text = cel_text(v[0]);
	size_t at = 0, begin, end, last = SIZE_MAX;
	int64_t left = n == 3 ? v[2].i : -1;

	const struct cel_re *re = pattern(ev, v[1], "Illegal regex: ", &error);
	if (!re)
		return error;
	while (left && at <= text.n && find_from(ev, re, text, at, &begin, &end)) {
		bool skip = begin == end && begin == last;
		at = end > begin ? end : end + MAX(str_rune(str_skip(text, end), NULL), (size_t)1);
		last = end;
		if (skip)
			continue;
		struct cel_val one = cel_of_str(str_span(text.p + begin, end - begin));
		list = cel_list_join(ev, list, cel_of_list(ev->arena, &one, 1));
		left -= left > 0;
	}
	return list;
}

/* ---- parts ---- */

static struct cel_val char_at(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str s = cel_text(v[0]);

	(void)n;
	if (v[1].i < 0 || v[1].i > (int64_t)cel_runes(s))
		return out_of_range(ev, v[1].i);
	str rest = str_skip(s, byte_of(s, (size_t)v[1].i));
	return cel_of_str(str_head(rest, byte_of(rest, 1)));
}

static struct cel_val substring(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str s = cel_text(v[0]);
	int64_t len = (int64_t)cel_runes(s), end = n == 3 ? v[2].i : len;

	if (n == 3 && v[1].i > end)
		return cel_fail(ev, "invalid substring range. start: %" PRId64 ", end: %" PRId64, v[1].i, end);
	if (v[1].i < 0 || v[1].i > len)
		return out_of_range(ev, v[1].i);
	if (end > len)
		return out_of_range(ev, end);
	size_t from = byte_of(s, (size_t)v[1].i), to = byte_of(s, (size_t)end);
	return cel_of_str(str_span(s.p + from, to - from));
}

struct cel_val cel_string_index(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str s = cel_text(v[0]), part = cel_text(v[1]);
	int64_t from = n == 3 ? v[2].i : 0;

	if (!part.n)
		return cel_of_int(from);
	if (from < 0)
		return out_of_range(ev, from);
	size_t at = byte_of(s, (size_t)from);
	cel_work(ev, s.n / 16);
	const char *found = at < s.n ? memmem(s.p + at, s.n - at, part.p, part.n) : NULL;
	return cel_of_int(found ? (int64_t)cel_runes(str_span(s.p, (size_t)(found - s.p))) : -1);
}

struct cel_val cel_string_last_index(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str s = cel_text(v[0]), part = cel_text(v[1]);
	int64_t len = (int64_t)cel_runes(s), from = n == 3 ? v[2].i : len - 1;

	if (!part.n)
		return cel_of_int(n == 3 ? from : len);
	if (n == 3 && from < 0)
		return out_of_range(ev, from);
	if (from >= len || part.n > s.n)
		return cel_of_int(-1);
	for (size_t at = byte_of(s, (size_t)from) + 1; at-- > 0 && cel_work(ev, 1 + part.n / 64);)
		if (str_starts(str_skip(s, at), part))
			return cel_of_int((int64_t)cel_runes(str_head(s, at)));
	return cel_of_int(-1);
}

/* ---- changes ---- */

static struct cel_val change_case(struct cel_eval *ev, struct cel_val v, char from, char to)
{
	str copy = arena_str(ev->arena, cel_text(v));
	char *p = (char *)(uintptr_t)copy.p;

	cel_work(ev, copy.n / 64);
	for (size_t i = 0; i < copy.n; i++)
		if (p[i] >= from && p[i] < from + 26)
			p[i] = (char)(p[i] - from + to);
	return cel_of_str(copy);
}

static struct cel_val lower_ascii(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return change_case(ev, v[0], 'A', 'a');
}

static struct cel_val upper_ascii(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return change_case(ev, v[0], 'a', 'A');
}

static bool is_space(uint32_t r)
{
	return r == ' ' || (r >= '\t' && r <= '\r') || r == 0x85 || r == 0xa0 || r == 0x1680 || (r >= 0x2000 && r <= 0x200a) || r == 0x2028 ||
	       r == 0x2029 || r == 0x202f || r == 0x205f || r == 0x3000;
}

static struct cel_val trim(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str s = cel_text(v[0]);
	uint32_t r;

	(void)ev;
	(void)n;
	for (size_t len; (len = str_rune(s, &r)) && is_space(r);)
		s = str_skip(s, len);
	while (s.n) {
		size_t last = s.n - 1;
		while (last && (s.p[last] & 0xc0) == 0x80)
			last--;
		if (!str_rune(str_skip(s, last), &r) || !is_space(r))
			break;
		s = str_head(s, last);
	}
	return cel_of_str(s);
}

static struct cel_val replace(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	str s = cel_text(v[0]), old = cel_text(v[1]), with = cel_text(v[2]);
	int64_t left = n == 4 ? v[3].i : -1;
	size_t at = 0;

	while (left && cel_work(ev, 1 + with.n / 64)) {
		str rest = str_skip(s, at);
		const char *found = old.n ? memmem(rest.p, rest.n, old.p, old.n) : rest.p;
		if (!found)
			break;
		buf_add(&b, str_head(rest, (size_t)(found - rest.p)));
		buf_add(&b, with);
		at = (size_t)(found - s.p) + old.n;
		left -= left > 0;
		if (old.n)
			continue;
		/* An empty text is found before every character and at the end. */
		if (at >= s.n)
			break;
		size_t len = byte_of(str_skip(s, at), 1);
		buf_add(&b, str_head(str_skip(s, at), len));
		at += len;
	}
	buf_add(&b, str_skip(s, at));
	return finish(ev, &b);
}

static struct cel_val split(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	str rest = cel_text(v[0]), sep = cel_text(v[1]);
	struct cel_val list = cel_list_take(ev->arena, NULL, 0), one;
	int64_t left = n == 3 ? v[2].i : -1;

	if (!left || (!sep.n && !rest.n))
		return list;
	while (left != 1 && cel_work(ev, 1)) {
		const char *found = sep.n ? memmem(rest.p, rest.n, sep.p, sep.n) : rest.p + byte_of(rest, 1);
		if (!found || (!sep.n && found == rest.p + rest.n))
			break;
		size_t len = (size_t)(found - rest.p);
		one = cel_of_str(str_head(rest, len));
		list = cel_list_join(ev, list, cel_of_list(ev->arena, &one, 1));
		if (list.kind != CEL_LIST)
			return list;
		rest = str_skip(rest, len + sep.n);
		left -= left > 0;
	}
	one = cel_of_str(rest);
	return cel_list_join(ev, list, cel_of_list(ev->arena, &one, 1));
}

static struct cel_val join(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < cel_len(v[0]) && cel_work(ev, 1); i++) {
		struct cel_val item = cel_at(ev->arena, v[0], i);
		if (item.kind != CEL_STRING)
			return cel_fail(ev, "join: invalid input: " STR_FMT, STR_ARG(cel_show(ev->arena, item)));
		if (i && n == 2)
			buf_add(&b, cel_text(v[1]));
		buf_add(&b, cel_text(item));
	}
	return finish(ev, &b);
}

static struct cel_val quote(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";

	(void)n;
	buf_addc(&b, '"');
	for (size_t i = 0; i < v[0].n; i++) {
		const char *special = v[0].s[i] ? strchr(from, v[0].s[i]) : NULL;
		if (special)
			buf_addc(&b, '\\');
		buf_addc(&b, special ? to[special - from] : v[0].s[i]);
	}
	buf_addc(&b, '"');
	return finish(ev, &b);
}

static const struct cel_overload match_overloads[] = {
	{ "contains", "contains_string", "ss:b", true, contains, 0 },
	{ "startsWith", "starts_with_string", "ss:b", true, starts_with, 0 },
	{ "endsWith", "ends_with_string", "ss:b", true, ends_with, 0 },
	{ "matches", "matches", "ss:b", false, matches, 0 },
	{ "matches", "matches_string", "ss:b", true, matches, 0 },
};

const struct cel_library cel_lib_match = { match_overloads, ARRAY_LEN(match_overloads), true };

static const struct cel_overload overloads[] = {
	{ "charAt", "string_char_at_int", "si:s", true, char_at, 0 },
	{ "find", "string_find_string", "ss:s", true, find, 0 },
	{ "findAll", "string_find_all_string", "ss:Ls", true, find_all, 0 },
	{ "findAll", "string_find_all_string_int", "ssi:Ls", true, find_all, 0 },
	{ "format", "string_format", "sL*:s", true, cel_string_format, 0 },
	{ "join", "list_join", "Ls:s", true, join, 0 },
	{ "join", "list_join_string", "Lss:s", true, join, 0 },
	{ "lowerAscii", "string_lower_ascii", "s:s", true, lower_ascii, 0 },
	{ "upperAscii", "string_upper_ascii", "s:s", true, upper_ascii, 0 },
	{ "replace", "string_replace_string_string", "sss:s", true, replace, 0 },
	{ "replace", "string_replace_string_string_int", "sssi:s", true, replace, 0 },
	{ "split", "string_split_string", "ss:Ls", true, split, 0 },
	{ "split", "string_split_string_int", "ssi:Ls", true, split, 0 },
	{ "strings.quote", "strings_quote", "s:s", false, quote, 0 },
	{ "substring", "string_substring_int", "si:s", true, substring, 0 },
	{ "substring", "string_substring_int_int", "sii:s", true, substring, 0 },
	{ "trim", "string_trim", "s:s", true, trim, 0 },
};

const struct cel_library cel_lib_string = { overloads, ARRAY_LEN(overloads), false };
