#include "machinery/names.h"

#include "base/random.h"

/*
 * Each format is one or two words over small alphabets, so instead of regular expressions there is a table of character
 * classes and one scanner. The texts still show Kubernetes' expressions, which are facts to its users.
 */

enum class {
	LOWER = 1 << 0,
	UPPER = 1 << 1,
	DIGIT = 1 << 2,
	DASH = 1 << 3,
	DOT = 1 << 4,
	UNDERSCORE = 1 << 5,
	PATH = 1 << 6, /* what else stands in a URL path */
	LOWER_DIGIT = LOWER | DIGIT,
	ALPHA = LOWER | UPPER,
	ALNUM = ALPHA | DIGIT,
};

static const uint8_t class_of[256] = {
	['a' ... 'z'] = LOWER, ['A' ... 'Z'] = UPPER, ['0' ... '9'] = DIGIT, ['-'] = DASH, ['.'] = DOT, ['_'] = UNDERSCORE,
	['/'] = PATH, ['~'] = PATH, ['%'] = PATH, ['!'] = PATH, ['$'] = PATH, ['&'] = PATH, ['\''] = PATH, ['('] = PATH,
	[')'] = PATH, ['*'] = PATH, ['+'] = PATH, [','] = PATH, [';'] = PATH, ['='] = PATH, [':'] = PATH,
};

static bool has_class(char c, unsigned classes) { return class_of[(unsigned char)c] & classes; }

static bool all_of(str s, unsigned classes)
{
	for (size_t i = 0; i < s.n; i++)
		if (!has_class(s.p[i], classes))
			return false;
	return true;
}

/* A word that is not empty, with its own alphabets for both ends. */
static bool is_word(str s, unsigned first, unsigned inside, unsigned last)
{
	return s.n && has_class(s.p[0], first) && has_class(s.p[s.n - 1], last) && all_of(s, inside);
}

/* The alphabets of a DNS label. */
struct label_rule {
	unsigned first, inside, last;
	bool underscore_before;
};

static const struct label_rule dns1123 = { LOWER_DIGIT, LOWER_DIGIT | DASH, LOWER_DIGIT, false };
static const struct label_rule dns1123_caseless = { ALNUM, ALNUM | DASH, ALNUM, false };
static const struct label_rule dns1123_underscore = { LOWER_DIGIT, LOWER_DIGIT | DASH | UNDERSCORE, LOWER_DIGIT, true };
static const struct label_rule dns1035 = { LOWER, LOWER_DIGIT | DASH, LOWER_DIGIT, false };

/* With open, alphanumeric characters will follow: any inside character may stand at the end. */
static bool is_label(str s, const struct label_rule *rule, bool open)
{
	if (rule->underscore_before && s.n && s.p[0] == '_')
		s = str_skip(s, 1);
	if (open)
		return s.n == 0 || is_word(s, rule->first, rule->inside, rule->inside);
	return is_word(s, rule->first, rule->inside, rule->last);
}

static bool is_subdomain(str s, const struct label_rule *rule, bool open)
{
	str label;
	while (str_cut(s, '.', &label, &s))
		if (!is_label(label, rule, false))
			return false;
	return is_label(label, rule, open);
}

static size_t begin(struct name_errors *ret)
{
	if (ret)
		ret->n = 0;
	return 0;
}

/* Counts a complaint, and keeps it when somebody wants to read it. */
static size_t complain(struct name_errors *ret, size_t n, str value, str text)
{
	if (ret) {
		ret->text[n] = text;
		ret->value[n] = value;
		ret->n = n + 1;
	}
	return n + 1;
}

/* The forms in which Kubernetes shows a regular expression. */
#define REGEX0(msg, regex) msg " (regex used for validation is '" regex "')"
#define REGEX1(msg, regex, a) msg " (e.g. '" a "', regex used for validation is '" regex "')"
#define REGEX2(msg, regex, a, b) msg " (e.g. '" a "',  or '" b "', regex used for validation is '" regex "')"
#define REGEX3(msg, regex, a, b, c) msg " (e.g. '" a "',  or '" b "',  or '" c "', regex used for validation is '" regex "')"

#define MAX_CHARACTERS(n) "must be no more than " #n " characters"
#define MAX_BYTES(n) "must be no more than " #n " bytes"

#define LABEL_REGEX "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LABEL_TEXT                                                                                           \
	REGEX2("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "  \
	       "must start and end with an alphanumeric character",                                          \
	       LABEL_REGEX, "my-name", "123-abc")

#define SUBDOMAIN_REGEX LABEL_REGEX "(\\." LABEL_REGEX ")*"
#define SUBDOMAIN_TEXT                                                                                       \
	REGEX1("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and " \
	       "must start and end with an alphanumeric character",                                          \
	       SUBDOMAIN_REGEX, "example.com")

#define LABEL_KEY_REGEX "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define LABEL_KEY_TEXT                                                                                       \
	REGEX3("must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "   \
	       "alphanumeric character",                                                                     \
	       LABEL_KEY_REGEX, "MyName", "my.name", "123-abc")

str name_errors_join(struct arena *a, const struct name_errors *e, const char *sep)
{
	str all = e->n ? e->text[0] : STR_NONE;
	for (size_t i = 1; i < e->n; i++)
		all = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(all), sep, STR_ARG(e->text[i]));
	return all;
}

/* ---- DNS ---- */

/*
 * What is looked at when a value is checked. Kubernetes checks a prefix of names that ends in '-' with its last two characters
 * replaced by one 'a'. Without a copy that is the prefix less two characters, with something alphanumeric to follow (open).
 */
struct subject {
	str value;     /* as it was given */
	str seen;
	size_t length; /* with what follows */
	bool open;
};

static struct subject whole(str value) { return (struct subject){ value, value, value.n, false }; }

static struct subject name_or_prefix(str name, bool prefix)
{
	if (prefix && name.n > 1 && name.p[name.n - 1] == '-')
		return (struct subject){ name, str_head(name, name.n - 2), name.n - 1, true };
	return whole(name);
}

/* A value that can be wrong in two ways: too long, and badly formed. */
static size_t check_form(str value, bool is_long, str too_long, bool is_formed, str badly_formed, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (is_long)
		n = complain(ret, n, value, too_long);
	if (!is_formed)
		n = complain(ret, n, value, badly_formed);
	return n;
}

static size_t check_label(struct subject s, str too_long, struct name_errors *ret)
{
	bool dots_only = is_subdomain(s.seen, &dns1123, s.open);
	return check_form(s.value, s.length > NAME_LABEL_MAX, too_long, is_label(s.seen, &dns1123, s.open),
			  dots_only ? STR("must not contain dots") : STR(LABEL_TEXT), ret);
}

static size_t check_subdomain(struct subject s, str too_long, struct name_errors *ret)
{
	return check_form(s.value, s.length > NAME_SUBDOMAIN_MAX, too_long, is_subdomain(s.seen, &dns1123, s.open),
			  STR(SUBDOMAIN_TEXT), ret);
}

static size_t check_dns1035(struct subject s, struct name_errors *ret)
{
	return check_form(s.value, s.length > NAME_LABEL_MAX, STR(MAX_CHARACTERS(63)), is_label(s.seen, &dns1035, s.open),
			  STR(REGEX2("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
				     "alphabetic character, and end with an alphanumeric character",
				     "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123")),
			  ret);
}

size_t name_check_dns1123_label(str value, struct name_errors *ret)
{
	return check_label(whole(value), STR(MAX_CHARACTERS(63)), ret);
}

size_t name_check_dns1123_subdomain(str value, struct name_errors *ret)
{
	return check_subdomain(whole(value), STR(MAX_CHARACTERS(253)), ret);
}

size_t name_check_dns1035_label(str value, struct name_errors *ret) { return check_dns1035(whole(value), ret); }
size_t name_check_short_name(str value, struct name_errors *ret) { return check_label(whole(value), STR(MAX_BYTES(63)), ret); }

size_t name_check_long_name(str value, struct name_errors *ret)
{
	return check_subdomain(whole(value), STR(MAX_BYTES(253)), ret);
}

size_t name_check_long_name_caseless(str value, struct name_errors *ret)
{
	return check_form(value, value.n > NAME_SUBDOMAIN_MAX, STR(MAX_BYTES(253)), is_subdomain(value, &dns1123_caseless, false),
			  STR(REGEX1("an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start "
				     "and end with an alphanumeric character",
				     SUBDOMAIN_REGEX, "Example.com")),
			  ret);
}

#define UNDERSCORE_REGEX "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"

size_t name_check_dns1123_subdomain_underscore(str value, struct name_errors *ret)
{
	return check_form(value, value.n > NAME_SUBDOMAIN_MAX, STR(MAX_CHARACTERS(253)),
			  is_subdomain(value, &dns1123_underscore, false),
			  STR(REGEX1("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
				     "or '.', and must start and end with an alphanumeric character",
				     UNDERSCORE_REGEX "(\\." UNDERSCORE_REGEX ")*", "example.com")),
			  ret);
}

size_t name_check_wildcard_subdomain(str value, struct name_errors *ret)
{
	return check_form(value, value.n > NAME_SUBDOMAIN_MAX, STR(MAX_CHARACTERS(253)),
			  str_starts(value, STR("*.")) && is_subdomain(str_skip(value, 2), &dns1123, false),
			  STR(REGEX1("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
				     "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
				     "character",
				     "\\*\\." SUBDOMAIN_REGEX, "*.example.com")),
			  ret);
}

/* Complaints of a subdomain as one text. */
static size_t check_joined_subdomain(str value, struct name_errors *ret)
{
	bool too_long = value.n > NAME_SUBDOMAIN_MAX, bad = !is_subdomain(value, &dns1123, false);
	if (!too_long && !bad)
		return 0;
	return complain(ret, 0, value,
			!bad	   ? STR(MAX_CHARACTERS(253)) :
			!too_long  ? STR(SUBDOMAIN_TEXT) :
				     STR(MAX_CHARACTERS(253) "," SUBDOMAIN_TEXT));
}

static size_t count_dots(str s)
{
	size_t dots = 0;
	for (size_t i = 0; i < s.n; i++)
		dots += s.p[i] == '.';
	return dots;
}

size_t name_check_fully_qualified(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if ((n = check_joined_subdomain(value, ret)))
		return n;
	if (count_dots(value) < 2)
		n = complain(ret, n, value, STR("should be a domain with at least three segments separated by dots"));
	return n;
}

size_t name_check_fully_qualified_domain(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (str_ends(value, STR(".")))
		value.n--;
	if ((n = check_joined_subdomain(value, ret)))
		return n;
	if (count_dots(value) < 1)
		return complain(ret, n, value, STR("should be a domain with at least two segments separated by dots"));
	/* The labels are well formed by now; they can only be too long. */
	for (bool more = true; more;) {
		str label;
		more = str_cut(value, '.', &label, &value);
		if (label.n > NAME_LABEL_MAX)
			return complain(ret, n, label, STR(MAX_CHARACTERS(63)));
	}
	return n;
}

/* ---- labels ---- */

static bool is_key_name(str s) { return is_word(s, ALNUM, ALNUM | DASH | UNDERSCORE | DOT, ALNUM); }

static size_t check_key_prefix(str value, str prefix, struct name_errors *ret)
{
	size_t n = 0;
	if (prefix.n == 0)
		return complain(ret, n, value, STR("prefix part must be non-empty"));
	if (prefix.n > NAME_SUBDOMAIN_MAX)
		n = complain(ret, n, value, STR("prefix part " MAX_BYTES(253)));
	if (!is_subdomain(prefix, &dns1123, false))
		n = complain(ret, n, value, STR("prefix part " SUBDOMAIN_TEXT));
	return n;
}

size_t name_check_label_key(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	str name = value, prefix, rest;

	if (str_cut(value, '/', &prefix, &rest)) {
		if (str_chr(rest, '/') >= 0)
			return complain(ret, n, value,
					STR("a valid label key " LABEL_KEY_TEXT
					    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"));
		n = check_key_prefix(value, prefix, ret);
		name = rest;
	}
	if (name.n == 0)
		n = complain(ret, n, value, STR("name part must be non-empty"));
	else if (name.n > NAME_LABEL_MAX)
		n = complain(ret, n, value, STR("name part " MAX_BYTES(63)));
	if (!is_key_name(name))
		n = complain(ret, n, value, STR("name part " LABEL_KEY_TEXT));
	return n;
}

size_t name_check_label_value(str value, struct name_errors *ret)
{
	return check_form(value, value.n > NAME_LABEL_MAX, STR(MAX_BYTES(63)), value.n == 0 || is_key_name(value),
			  STR(REGEX3("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
				     "and must start and end with an alphanumeric character",
				     "(" LABEL_KEY_REGEX ")?", "MyValue", "my_value", "12345")),
			  ret);
}

size_t name_check_domain_prefixed_path(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	str host, path;
	if (!str_cut(value, '/', &host, &path) || host.n == 0 || path.n == 0)
		return complain(ret, n, value, STR("must be a domain-prefixed path (such as \"acme.io/foo\")"));
	n = name_check_dns1123_subdomain(host, ret);
	if (!all_of(path, ALNUM | DASH | DOT | UNDERSCORE | PATH))
		n = complain(ret, n, path, STR(REGEX0("Invalid path", "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+")));
	return n;
}

/* ---- other words ---- */

size_t name_check_c_identifier(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (!is_word(value, ALPHA | UNDERSCORE, ALNUM | UNDERSCORE, ALNUM | UNDERSCORE))
		n = complain(ret, n, value,
			     STR(REGEX3("a valid C identifier must start with alphabetic character or '_', followed by a string of "
					"alphanumeric characters or '_'",
					"[A-Za-z_][A-Za-z0-9_]*", "my_name", "MY_NAME", "MyName")));
	return n;
}

/* Names that would lead out of a directory when they become file names. */
static size_t complain_about_dots(str value, size_t n, struct name_errors *ret)
{
	if (str_eq(value, STR(".")))
		return complain(ret, n, value, STR("must not be '.'"));
	if (str_eq(value, STR("..")))
		return complain(ret, n, value, STR("must not be '..'"));
	if (str_starts(value, STR("..")))
		return complain(ret, n, value, STR("must not start with '..'"));
	return n;
}

size_t name_check_env_var_relaxed(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (value.n == 0)
		return complain(ret, n, value, STR("environment variable name must be non-empty"));
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] < 0x20 || value.p[i] > 0x7e || value.p[i] == '=')
			return complain(ret, n, value,
					STR("a valid environment variable name must consist only of printable ASCII characters other "
					    "than '='"));
	return n;
}

size_t name_check_config_key(str value, struct name_errors *ret)
{
	const unsigned any = ALNUM | DASH | DOT | UNDERSCORE;
	size_t n = check_form(value, value.n > NAME_SUBDOMAIN_MAX, STR(MAX_CHARACTERS(253)), is_word(value, any, any, any),
			      STR(REGEX3("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
					 "[-._a-zA-Z0-9]+", "key.name", "KEY_NAME", "key-name")),
			      ret);
	return complain_about_dots(value, n, ret);
}

size_t name_check_port_name(str value, struct name_errors *ret)
{
	size_t n = begin(ret), letters = 0;
	for (size_t i = 0; i < value.n; i++)
		letters += has_class(value.p[i], LOWER);
	if (value.n > 15)
		n = complain(ret, n, value, STR(MAX_CHARACTERS(15)));
	if (value.n == 0 || !all_of(value, LOWER_DIGIT | DASH))
		n = complain(ret, n, value, STR("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"));
	if (letters == 0)
		n = complain(ret, n, value, STR("must contain at least one letter (a-z)"));
	if (str_find(value, STR("--")) >= 0)
		n = complain(ret, n, value, STR("must not contain consecutive hyphens"));
	if (value.n && (value.p[0] == '-' || value.p[value.n - 1] == '-'))
		n = complain(ret, n, value, STR("must not begin or end with a hyphen"));
	return n;
}

size_t name_check_percent(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (value.n < 2 || value.p[value.n - 1] != '%' || !all_of(str_head(value, value.n - 1), DIGIT))
		n = complain(ret, n, value,
			     STR(REGEX2("a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%",
					"93%")));
	return n;
}

size_t name_check_http_header(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (value.n == 0 || !all_of(value, ALNUM | DASH))
		n = complain(ret, n, value,
			     STR(REGEX1("a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+",
					"X-Header-Name")));
	return n;
}

size_t name_check_decimal_integer(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (value.n == 0)
		return complain(ret, n, value, STR("must be non-empty"));
	bool minus = value.p[0] == '-';
	str digits = str_skip(value, minus);
	bool leading_zero = digits.n && digits.p[0] == '0' && (minus || digits.n > 1);
	if (digits.n == 0 || !all_of(digits, DIGIT) || leading_zero)
		n = complain(ret, n, value, STR("must be a valid decimal integer in canonical form"));
	return n;
}

size_t name_check_path_segment_prefix(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (str_chr(value, '/') >= 0)
		n = complain(ret, n, value, STR("may not contain '/'"));
	if (str_chr(value, '%') >= 0)
		n = complain(ret, n, value, STR("may not contain '%'"));
	return n;
}

size_t name_check_path_segment(str value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (str_eq(value, STR(".")))
		return complain(ret, n, value, STR("may not be '.'"));
	if (str_eq(value, STR("..")))
		return complain(ret, n, value, STR("may not be '..'"));
	return name_check_path_segment_prefix(value, ret);
}

/* ---- numbers ---- */

size_t name_check_port_number(int64_t value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (value < 1 || value > 65535)
		n = complain(ret, n, STR_NONE, STR("must be between 1 and 65535, inclusive"));
	return n;
}

size_t name_check_id(int64_t value, struct name_errors *ret)
{
	size_t n = begin(ret);
	if (value < 0 || value > INT32_MAX)
		n = complain(ret, n, STR_NONE, STR("must be between 0 and 2147483647, inclusive"));
	return n;
}

/* ---- names of objects ---- */

size_t name_rule_subdomain(str name, bool prefix, struct name_errors *ret)
{
	return check_subdomain(name_or_prefix(name, prefix), STR(MAX_CHARACTERS(253)), ret);
}

size_t name_rule_label(str name, bool prefix, struct name_errors *ret)
{
	return check_label(name_or_prefix(name, prefix), STR(MAX_CHARACTERS(63)), ret);
}

size_t name_rule_dns1035_label(str name, bool prefix, struct name_errors *ret)
{
	return check_dns1035(name_or_prefix(name, prefix), ret);
}

size_t name_rule_path_segment(str name, bool prefix, struct name_errors *ret)
{
	return prefix ? name_check_path_segment_prefix(name, ret) : name_check_path_segment(name, ret);
}

str name_random(struct arena *a, size_t n)
{
	/* No vowels and none of 0, 1, 3: neither words nor characters that are taken for others. */
	static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
	char *p = arena_alloc(a, n + 1, 1);
	for (size_t i = 0; i < n; i++)
		p[i] = alphabet[random_below(sizeof(alphabet) - 1)];
	p[n] = '\0';
	return str_span(p, n);
}

str name_generate(struct arena *a, str base)
{
	enum { RANDOM = 5 };
	return arena_join(a, str_head(base, NAME_LABEL_MAX - RANDOM), name_random(a, RANDOM));
}
