/* References as Docker and containerd read them: the grammar of distribution/reference, and its ways of completing a name. */
#include "runtime/image.h"

enum { NAME_MAX_BYTES = 255, TAG_MAX_BYTES = 128, DIGEST_HEX_MIN = 32, SHA256_DIGITS = 64 };

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_alnum(char c) { return is_lower(c) || is_upper(c) || is_digit(c); }
static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static bool has_upper(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (is_upper(s.p[i]))
			return true;
	return false;
}

static bool all(str s, bool (*is)(char))
{
	for (size_t i = 0; i < s.n; i++)
		if (!is(s.p[i]))
			return false;
	return s.n > 0;
}

static bool is_identifier(str s) { return s.n == SHA256_DIGITS && all(s, is_hex) && !has_upper(s); }

/* Words of lower-case letters and digits, with ".", "_", "__" or any number of "-" between them. */
static bool is_path_component(str s)
{
	size_t i = 0;
	for (;;) {
		size_t word = i;
		while (i < s.n && (is_lower(s.p[i]) || is_digit(s.p[i])))
			i++;
		if (i == word)
			return false;
		if (i == s.n)
			return true;
		char c = s.p[i];
		if (c == '-') {
			while (i < s.n && s.p[i] == '-')
				i++;
		} else if (c == '_') {
			i += i + 1 < s.n && s.p[i + 1] == '_' ? 2 : 1;
		} else if (c == '.') {
			i++;
		} else {
			return false;
		}
	}
}

static bool is_path(str s)
{
	str part;
	bool more;
	do {
		more = str_cut(s, '/', &part, &s);
		if (!is_path_component(part))
			return false;
	} while (more);
	return true;
}

static bool is_domain_char(char c) { return is_alnum(c) || c == '-'; }
static bool is_ipv6_char(char c) { return is_hex(c) || c == ':'; }

/* host[:port], where host is a name, an IPv4 address or an IPv6 address in brackets. */
static bool is_domain(str s)
{
	str host = s, port = STR_NONE, label;
	bool more;
	if (s.n && s.p[0] == '[') {
		ptrdiff_t end = str_chr(s, ']');
		if (end < 0 || !all(str_span(s.p + 1, (size_t)end - 1), is_ipv6_char))
			return false;
		str rest = str_skip(s, (size_t)end + 1);
		return !rest.n || (rest.p[0] == ':' && all(str_skip(rest, 1), is_digit));
	}
	if (str_cut(s, ':', &host, &port) && !all(port, is_digit))
		return false;
	do {
		more = str_cut(host, '.', &label, &host);
		if (!all(label, is_domain_char) || label.p[0] == '-' || label.p[label.n - 1] == '-')
			return false;
	} while (more);
	return true;
}

static bool is_tag_char(char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; }

static bool is_tag(str s) { return s.n <= TAG_MAX_BYTES && all(s, is_tag_char) && s.p[0] != '.' && s.p[0] != '-'; }

/* "sha256:" and digits; other algorithms are possible names, though nobody can fetch by them here. */
static bool is_digest(str s)
{
	str algorithm, digits;
	bool start = true;
	if (!str_cut(s, ':', &algorithm, &digits) || digits.n < DIGEST_HEX_MIN || !all(digits, is_hex))
		return false;
	for (size_t i = 0; i < algorithm.n; i++) {
		char c = algorithm.p[i];
		if (start ? !(is_lower(c) || is_upper(c)) : !(is_alnum(c) || c == '-' || c == '_' || c == '+' || c == '.'))
			return false;
		start = !is_alnum(c);
	}
	return algorithm.n && !start;
}

/* What go-digest asks of those that it knows. */
static bool digest_is_sound(str s)
{
	str algorithm, digits;
	str_cut(s, ':', &algorithm, &digits);
	if (has_upper(digits))
		return false;
	if (str_eq(algorithm, STR("sha256")))
		return digits.n == SHA256_DIGITS;
	return (str_eq(algorithm, STR("sha384")) && digits.n == 96) || (str_eq(algorithm, STR("sha512")) && digits.n == 128);
}

/* Which part is the registry, by Docker's rules: a first part with a dot, a colon or a capital, or "localhost". */
static void split_domain(struct arena *a, str text, str *ret_domain, str *ret_rest)
{
	static const str hub = STR_INIT("docker.io");
	str first, rest;
	*ret_domain = hub;
	*ret_rest = text;
	if (str_cut(text, '/', &first, &rest)) {
		if (str_eq(first, STR("index.docker.io")))
			*ret_rest = rest;
		else if (str_eq(first, STR("localhost")) || str_chr(first, '.') >= 0 || str_chr(first, ':') >= 0 || has_upper(first))
			*ret_domain = first, *ret_rest = rest;
	}
	if (str_eq(*ret_domain, hub) && str_chr(*ret_rest, '/') < 0)
		*ret_rest = arena_join(a, STR("library/"), *ret_rest);
}

static int bad(struct err *err, str text, const char *why)
{
	return err_set(err, ERR_INVALID, "couldn't parse image name \"" STR_FMT "\": %s", STR_ARG(str_head(text, 300)), why);
}

int image_ref_parse(struct arena *a, str text, struct image_ref *ret, struct err *err)
{
	struct image_ref ref = { 0 };
	str rest, name, remote, ignored;

	text = arena_str(a, text);
	if (is_identifier(text))
		return bad(err, text, arena_printf(a, "invalid repository name (" STR_FMT "), cannot specify 64-byte hexadecimal strings",
						   STR_ARG(text)).p);
	split_domain(a, text, &ref.domain, &rest);
	str_cut(rest, ':', &remote, &ignored);
	if (has_upper(remote))
		return bad(err, text, arena_printf(a, "invalid reference format: repository name (" STR_FMT ") must be lowercase",
						   STR_ARG(str_head(remote, NAME_MAX_BYTES))).p);
	bool digested = str_cut(rest, '@', &name, &ref.digest);
	bool tagged = str_cut(name, ':', &ref.path, &ref.tag);
	if (!is_domain(ref.domain) || !is_path(ref.path) || (tagged && !is_tag(ref.tag)) || (digested && !is_digest(ref.digest)))
		return bad(err, text, "invalid reference format");
	if (ref.path.n > NAME_MAX_BYTES)
		return bad(err, text, "repository name must not be more than 255 characters");
	if (digested && !digest_is_sound(ref.digest))
		return bad(err, text, "invalid checksum digest format");
	if (!digested && !tagged)
		ref.tag = STR("latest");
	ref.text = digested ? arena_printf(a, STR_FMT "/" STR_FMT "@" STR_FMT, STR_ARG(ref.domain), STR_ARG(ref.path), STR_ARG(ref.digest))
			    : arena_printf(a, STR_FMT "/" STR_FMT ":" STR_FMT, STR_ARG(ref.domain), STR_ARG(ref.path), STR_ARG(ref.tag));
	*ret = ref;
	return 0;
}
