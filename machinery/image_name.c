#include "machinery/image_name.h"

enum { NAME_MAX_BYTES = 255, TAG_MAX = 128, IDENTIFIER_LEN = 64 };

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_alnum(char c) { return is_lower(c) || is_upper(c) || is_digit(c); }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

static bool all(str s, bool (*is)(char))
{
	for (size_t i = 0; i < s.n; i++)
		if (!is(s.p[i]))
			return false;
	return s.n > 0;
}

/* Letters and digits with dashes between them. */
static bool is_host_label(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_alnum(s.p[i]) && (s.p[i] != '-' || i == 0 || i == s.n - 1))
			return false;
	return s.n > 0;
}

static bool is_v6_char(char c) { return is_hex(c) || (c >= 'A' && c <= 'F') || c == ':'; }

static bool is_domain(str s)
{
	str host, port;
	if (str_starts(s, STR("["))) {
		ptrdiff_t end = str_chr(s, ']');
		if (end < 0 || !all(str_span(s.p + 1, (size_t)end - 1), is_v6_char))
			return false;
		port = str_skip(s, (size_t)end + 1);
		return port.n == 0 || (port.p[0] == ':' && all(str_skip(port, 1), is_digit));
	}
	if (str_cut(s, ':', &host, &port) && !all(port, is_digit))
		return false;
	for (str label; host.n;) {
		bool more = str_cut(host, '.', &label, &host);
		if (!is_host_label(label) || (more && host.n == 0))
			return false;
	}
	return s.n > 0 && s.p[0] != ':';
}

/* Lower case letters and digits with ".", "_", "__" or any number of "-" between them. */
static bool is_path_component(str s)
{
	for (size_t i = 0, run; i < s.n; i += run) {
		run = 1;
		if (is_lower(s.p[i]) || is_digit(s.p[i]))
			continue;
		while (i + run < s.n && s.p[i + run] == s.p[i])
			run++;
		bool known = s.p[i] == '-' || (s.p[i] == '.' && run == 1) || (s.p[i] == '_' && run <= 2);
		if (!known || i == 0 || i + run == s.n || !(is_lower(s.p[i + run]) || is_digit(s.p[i + run])))
			return false;
	}
	return s.n > 0;
}

static bool is_path(str s)
{
	for (bool more = true; more;) {
		str part;
		more = str_cut(s, '/', &part, &s);
		if (!is_path_component(part))
			return false;
	}
	return true;
}

static bool is_tag(str s)
{
	if (s.n == 0 || s.n > TAG_MAX || s.p[0] == '.' || s.p[0] == '-')
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!is_alnum(s.p[i]) && s.p[i] != '_' && s.p[i] != '.' && s.p[i] != '-')
			return false;
	return true;
}

static bool is_digest(str s)
{
	static const struct {
		str algorithm;
		size_t digits;
	} known[] = { { STR_INIT("sha256"), 64 }, { STR_INIT("sha384"), 96 }, { STR_INIT("sha512"), 128 } };
	str algorithm, hex;

	str_cut(s, ':', &algorithm, &hex);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(algorithm, known[i].algorithm))
			return hex.n == known[i].digits && all(hex, is_hex);
	return false;
}

/* What stands before the first slash is a domain if it could not be part of a path on the default one. */
static void split_domain(str text, struct image_name *ret)
{
	str head, tail;
	bool upper = false;

	*ret = (struct image_name){ .domain = STR("docker.io"), .path = text };
	if (!str_cut(text, '/', &head, &tail))
		return;
	for (size_t i = 0; i < head.n; i++)
		upper |= is_upper(head.p[i]);
	if (str_eq(head, STR("localhost")) || str_chr(head, '.') >= 0 || str_chr(head, ':') >= 0 || upper) {
		ret->domain = str_eq(head, STR("index.docker.io")) ? STR("docker.io") : head;
		ret->path = tail;
	}
}

bool image_name_parse(str text, struct image_name *ret)
{
	str rest, tail;

	if (text.n == IDENTIFIER_LEN && all(text, is_hex)) /* would be taken for an image's id */
		return false;
	split_domain(text, ret);
	rest = ret->path;
	if (str_cut(rest, '@', &rest, &tail)) {
		ret->digest = tail;
		if (!is_digest(tail))
			return false;
	}
	ret->path = rest;
	if (str_cut(rest, ':', &ret->path, &tail)) {
		ret->tag = tail;
		if (!is_tag(tail))
			return false;
	}
	return is_domain(ret->domain) && is_path(ret->path) && ret->domain.n + 1 + ret->path.n <= NAME_MAX_BYTES;
}

bool image_name_is_latest(str text)
{
	struct image_name name;
	return image_name_parse(text, &name) &&
		(str_eq(name.tag, STR("latest")) || (name.tag.n == 0 && name.digest.n == 0));
}
