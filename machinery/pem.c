/*
 * A block ends at the first END line and begins at the last BEGIN line before it, so that a search looks at every byte a
 * fixed number of times, whatever the text is made of.
 */
#include "machinery/pem.h"

#include "base/encoding.h"

static const str begin = STR_INIT("-----BEGIN "), end = STR_INIT("-----END "), dashes = STR_INIT("-----");

/* One line without white space at its end; *rest is what follows it. */
static str take_line(str *rest)
{
	str line;
	str_cut(*rest, '\n', &line, rest);
	while (line.n && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t' || line.p[line.n - 1] == '\r'))
		line.n--;
	return line;
}

/* Where the next line begins that starts with prefix, or -1. */
static ptrdiff_t find_line(str s, str prefix)
{
	for (size_t at = 0;;) {
		ptrdiff_t found = str_find(str_skip(s, at), prefix);
		if (found < 0)
			return -1;
		at += (size_t)found;
		if (at == 0 || s.p[at - 1] == '\n')
			return (ptrdiff_t)at;
		at++;
	}
}

/* Where the last BEGIN stands, if that is at the start of a line; else -1. */
static ptrdiff_t find_last_begin(str s)
{
	for (size_t at = s.n; at-- > 0;)
		if (s.p[at] == '-' && str_starts(str_skip(s, at), begin))
			return at == 0 || s.p[at - 1] == '\n' ? (ptrdiff_t)at : -1;
	return -1;
}

static bool take_type(str *rest, str *ret)
{
	str line = take_line(rest);
	if (!str_ends(line, dashes))
		return false;
	*ret = str_head(line, line.n - dashes.n);
	return true;
}

static bool take_headers(str *rest)
{
	bool found = false;
	for (str after = *rest; after.n; *rest = after) {
		str line = take_line(&after);
		if (str_chr(line, ':') < 0)
			break;
		found = true;
	}
	return found;
}

static bool decode(struct arena *a, str text, str *ret)
{
	char *packed = ARENA_ARRAY(a, char, text.n + 1), *bytes = ARENA_ARRAY(a, char, base64_decoded_max(text.n) + 1);
	size_t n = 0, decoded;

	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != ' ' && text.p[i] != '\t' && text.p[i] != '\r' && text.p[i] != '\n')
			packed[n++] = text.p[i];
	if (base64_decode(bytes, str_span(packed, n), &decoded, NULL) < 0)
		return false;
	*ret = str_span(bytes, decoded);
	return true;
}

/* before: what stands before an END line; *rest: what follows the word. */
static bool parse_block(struct arena *a, str before, str *rest, struct pem_block *ret)
{
	ptrdiff_t at = find_last_begin(before);
	str end_type;

	if (at < 0)
		return false;
	before = str_skip(before, (size_t)at + begin.n);
	if (!take_type(&before, &ret->type) || !take_type(rest, &end_type) || !str_eq(ret->type, end_type))
		return false;
	ret->has_headers = take_headers(&before);
	return decode(a, before, &ret->bytes);
}

bool pem_next(struct arena *a, str *rest, struct pem_block *ret)
{
	for (ptrdiff_t at; (at = find_line(*rest, end)) >= 0;) {
		str before = str_head(*rest, (size_t)at);
		*rest = str_skip(*rest, (size_t)at + end.n);
		if (parse_block(a, before, rest, ret))
			return true;
	}
	return false;
}
