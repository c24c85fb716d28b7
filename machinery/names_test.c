#include "machinery/names.h"

#include "base/random.h"
#include "base/test.h"

#define X10 "xxxxxxxxxx"
#define X60 X10 X10 X10 X10 X10 X10
#define X250 X60 X60 X60 X60 X10

#define LABEL_WORDS                                                                                                       \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "   \
	"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "                    \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_WORDS                                                                                                   \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "  \
	"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "                       \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define KEY_WORDS                                                                                                         \
	"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "             \
	"alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "              \
	"'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

/* want: all texts with " & " between them. */
struct row {
	name_check *check;
	const char *value, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++) {
		struct name_errors e;
		size_t count = rows[i].check(str_of(rows[i].value), &e);
		CHECK_STR_ROW(i, name_errors_join(&a, &e, " & "), rows[i].want);
		CHECK_ROW(i, count == e.n && count == rows[i].check(str_of(rows[i].value), NULL));
	}
	arena_done(&a);
}

TEST(name_check_dns)
{
	static const struct row t[] = {
		{ name_check_dns1123_label, "my-name", "" },
		{ name_check_dns1123_label, "0", "" },
		{ name_check_dns1123_label, X60 "abc", "" },
		{ name_check_dns1123_label, X60 "abcd", "must be no more than 63 characters" },
		{ name_check_dns1123_label, "a.b", "must not contain dots" },
		{ name_check_dns1123_label, X60 "a.bcd", "must be no more than 63 characters & must not contain dots" },
		{ name_check_dns1123_label, "", LABEL_WORDS },
		{ name_check_dns1123_label, "-a", LABEL_WORDS },
		{ name_check_dns1123_label, "a-", LABEL_WORDS },
		{ name_check_dns1123_label, "a_b", LABEL_WORDS },
		{ name_check_dns1123_label, "\xc3\xa9", LABEL_WORDS },
		{ name_check_dns1123_label, "a\n", LABEL_WORDS },
		{ name_check_dns1123_subdomain, "a.b-c.0", "" },
		{ name_check_dns1123_subdomain, X250 "abc", "" },
		{ name_check_dns1123_subdomain, X250 "abcd", "must be no more than 253 characters" },
		{ name_check_dns1123_subdomain, "a..b", SUBDOMAIN_WORDS },
		{ name_check_dns1123_subdomain, "a.", SUBDOMAIN_WORDS },
		{ name_check_dns1123_subdomain, "a.-b", SUBDOMAIN_WORDS },
		{ name_check_dns1123_subdomain, "A", SUBDOMAIN_WORDS },
		{ name_check_dns1123_subdomain_underscore, "_tcp.a_b.c", "" },
		{ name_check_dns1123_subdomain_underscore, "a_",
		  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start "
		  "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
		  "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')" },
		{ name_check_wildcard_subdomain, "*.example.com", "" },
		{ name_check_wildcard_subdomain, "*.*.com",
		  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower "
		  "case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used "
		  "for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')" },
		{ name_check_dns1035_label, "a1-b", "" },
		{ name_check_dns1035_label, "1a",
		  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
		  "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
		  "'[a-z]([-a-z0-9]*[a-z0-9])?')" },
		{ name_check_short_name, X60 "abcd", "must be no more than 63 bytes" },
		{ name_check_long_name, X250 "abcd", "must be no more than 253 bytes" },
		{ name_check_long_name_caseless, "Example.COM", "" },
		{ name_check_long_name_caseless, "a_b",
		  "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
		  "alphanumeric character (e.g. 'Example.com', regex used for validation is "
		  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')" },
		{ name_check_fully_qualified, "a.b.c", "" },
		{ name_check_fully_qualified, "a.b", "should be a domain with at least three segments separated by dots" },
		{ name_check_fully_qualified, X250 "____", "must be no more than 253 characters," SUBDOMAIN_WORDS },
		{ name_check_fully_qualified_domain, "a.b.", "" },
		{ name_check_fully_qualified_domain, "a.", "should be a domain with at least two segments separated by dots" },
		{ name_check_fully_qualified_domain, "a." X60 "abcd", "must be no more than 63 characters" },
	};
	check_rows(t, ARRAY_LEN(t));
}

TEST(name_check_labels)
{
	static const struct row t[] = {
		{ name_check_label_key, "app", "" },
		{ name_check_label_key, "example.com/My_name.1", "" },
		{ name_check_label_key, "", "name part must be non-empty & " KEY_WORDS },
		{ name_check_label_key, "/a", "prefix part must be non-empty" },
		{ name_check_label_key, "a/", "name part must be non-empty & " KEY_WORDS },
		{ name_check_label_key, "A/b", "prefix part " SUBDOMAIN_WORDS },
		{ name_check_label_key, X250 "abcd/b", "prefix part must be no more than 253 bytes" },
		{ name_check_label_key, X60 "abcd", "name part must be no more than 63 bytes" },
		{ name_check_label_key, "-a", KEY_WORDS },
		{ name_check_label_key, "a/b/c",
		  "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
		  "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
		  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
		  "(e.g. 'example.com/MyName')" },
		{ name_check_label_value, "", "" },
		{ name_check_label_value, "v1.2_3-4", "" },
		{ name_check_label_value, X60 "abcd", "must be no more than 63 bytes" },
		{ name_check_label_value, "a b",
		  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
		  "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
		  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')" },
		{ name_check_domain_prefixed_path, "acme.io/foo/bar:8080", "" },
		{ name_check_domain_prefixed_path, "acme.io", "must be a domain-prefixed path (such as \"acme.io/foo\")" },
		{ name_check_domain_prefixed_path, "ACME/f oo",
		  SUBDOMAIN_WORDS " & Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')" },
	};
	check_rows(t, ARRAY_LEN(t));

	struct name_errors e;
	CHECK_INT(name_check_domain_prefixed_path(STR("ACME/f oo"), &e), 2);
	CHECK_STR(e.value[0], "ACME");
	CHECK_STR(e.value[1], "f oo");
}

TEST(name_check_words)
{
	static const struct row t[] = {
		{ name_check_c_identifier, "_a1", "" },
		{ name_check_c_identifier, "1a",
		  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
		  "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')" },
		{ name_check_env_var_relaxed, "1 A!", "" },
		{ name_check_env_var_relaxed, "", "environment variable name must be non-empty" },
		{ name_check_env_var_relaxed, "a=b",
		  "a valid environment variable name must consist only of printable ASCII characters other than '='" },
		{ name_check_env_var_relaxed, "\xc3\xa9",
		  "a valid environment variable name must consist only of printable ASCII characters other than '='" },
		{ name_check_config_key, ".bashrc", "" },
		{ name_check_config_key, ".", "must not be '.'" },
		{ name_check_config_key, "..a", "must not start with '..'" },
		{ name_check_config_key, "a/b",
		  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
		  "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')" },
		{ name_check_port_name, "http-1", "" },
		{ name_check_port_name, "a-name-too-long-",
		  "must be no more than 15 characters & must not begin or end with a hyphen" },
		{ name_check_port_name, "1--2", "must contain at least one letter (a-z) & must not contain consecutive hyphens" },
		{ name_check_port_name, "A",
		  "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-) & must contain at least one letter (a-z)" },
		{ name_check_percent, "100%", "" },
		{ name_check_percent, "-1%",
		  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
		  "validation is '[0-9]+%')" },
		{ name_check_http_header, "X-1", "" },
		{ name_check_http_header, "X_1",
		  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation "
		  "is '[-A-Za-z0-9]+')" },
		{ name_check_decimal_integer, "-12", "" },
		{ name_check_decimal_integer, "-0", "must be a valid decimal integer in canonical form" },
		{ name_check_decimal_integer, "", "must be non-empty" },
		{ name_check_path_segment, "system:node.x", "" },
		{ name_check_path_segment, "..", "may not be '..'" },
		{ name_check_path_segment, "a/%", "may not contain '/' & may not contain '%'" },
		{ name_check_path_segment_prefix, "..", "" },
	};
	check_rows(t, ARRAY_LEN(t));
	CHECK_INT(name_check_port_number(65535, NULL), 0);
	CHECK_INT(name_check_port_number(0, NULL), 1);
	CHECK_INT(name_check_id(-1, NULL), 1);
	CHECK_INT(name_check_id(2147483647, NULL), 0);
}

TEST(name_rules)
{
	static const struct {
		name_rule *rule;
		const char *name;
		bool prefix;
		size_t want;
	} t[] = {
		{ name_rule_subdomain, "a-", false, 1 },
		{ name_rule_subdomain, "a-", true, 0 },
		{ name_rule_subdomain, "a.b-", true, 0 },
		{ name_rule_subdomain, "-", true, 1 },
		{ name_rule_subdomain, "A-b-", true, 1 },
		{ name_rule_label, "a.bc-", true, 1 },
		{ name_rule_label, X60 "abc-", true, 0 },
		{ name_rule_label, X60 "abcd-", true, 1 },
		{ name_rule_dns1035_label, "a1-", true, 0 },
		{ name_rule_dns1035_label, "12-", true, 1 },
		{ name_rule_path_segment, ".", true, 0 },
		{ name_rule_path_segment, ".", false, 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct name_errors e;
		CHECK_ROW(i, t[i].rule(str_of(t[i].name), t[i].prefix, &e) == t[i].want);
		if (t[i].want)
			CHECK_STR_ROW(i, e.value[0], t[i].name);
	}
}

TEST(name_generate)
{
	struct arena a = ARENA_INIT;
	str s = name_generate(&a, STR(X60));
	CHECK_INT(s.n, 63);
	CHECK(str_starts(s, str_head(STR(X60), 58)));
	for (size_t i = 58; i < 63; i++)
		CHECK(strchr("bcdfghjklmnpqrstvwxz2456789", s.p[i]));

	random_seed(1);
	str first = name_generate(&a, STR("web-"));
	CHECK_INT(first.n, 9);
	CHECK(!str_eq(first, name_generate(&a, STR("web-"))));
	random_unseed();
	arena_done(&a);
}
