/* Kubernetes' quantities, versions and named formats in CEL. */
#include "base/encoding.h"
#include "codec/quantity.h"
#include "codec/time.h"
#include "machinery/cel_format_kind.h"
#include "machinery/cel_priv.h"
#include "machinery/cel_url.h"
#include "machinery/semver.h"

/* ---- quantities ---- */

static struct cel_val string_to_quantity(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct err err = ERR_INIT;
	struct quantity q;

	(void)n;
	if (quantity_parse(cel_text(v[0]), &q, &err) < 0)
		return cel_fail(ev, STR_FMT, STR_ARG(err_str(&err)));
	return cel_of_quantity(ev->arena, &q);
}

static struct cel_val is_quantity(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct quantity q;

	(void)ev;
	(void)n;
	return cel_of_bool(quantity_parse(cel_text(v[0]), &q, NULL) >= 0);
}

enum { NANOS = 1000000000 };

static bool is_whole(const struct quantity *q)
{
	quantity_nanos units = q->nanos / NANOS;

	return q->nanos % NANOS == 0 && units >= INT64_MIN && units <= INT64_MAX;
}

static struct cel_val quantity_is_integer(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_bool(is_whole(v[0].quantity));
}

static struct cel_val quantity_as_integer(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return is_whole(v[0].quantity) ? cel_of_int((int64_t)(v[0].quantity->nanos / NANOS)) : cel_fail(ev, "cannot convert value to integer");
}

static struct cel_val quantity_as_float(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_double((double)v[0].quantity->nanos / (double)NANOS);
}

static struct cel_val quantity_sign(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)ev;
	(void)n;
	return cel_of_int(v[0].quantity->nanos > 0 ? 1 : v[0].quantity->nanos < 0 ? -1 : 0);
}

static struct cel_val quantity_sum(struct cel_eval *ev, const struct cel_val *v, bool minus)
{
	struct quantity b = v[1].kind == CEL_INT ? quantity_of_int(v[1].i, QUANTITY_DECIMAL_EXPONENT) : *v[1].quantity;
	struct quantity sum = minus ? quantity_sub(*v[0].quantity, b) : quantity_add(*v[0].quantity, b);

	return cel_of_quantity(ev->arena, &sum);
}

static struct cel_val quantity_plus(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return quantity_sum(ev, v, false);
}

static struct cel_val quantity_minus(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return quantity_sum(ev, v, true);
}

/* ---- versions ---- */

/* What semver.Parse has against one of the three numbers; NULL when it is good. */
static const char *number_complaint(struct cel_eval *ev, str part, const char *which, const char *Which)
{
	for (size_t i = 0; i < part.n; i++)
		if (part.p[i] < '0' || part.p[i] > '9')
			return arena_printf(ev->arena, "Invalid character(s) found in %s number \"" STR_FMT "\"", which, STR_ARG(part)).p;
	if (part.n > 1 && part.p[0] == '0')
		return arena_printf(ev->arena, "%s number must not contain leading zeroes \"" STR_FMT "\"", Which, STR_ARG(part)).p;
	uint64_t value = 0;
	bool fits = true;
	for (size_t i = 0; i < part.n && fits; i++)
		fits = !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, (uint64_t)(part.p[i] - '0'), &value);
	if (!part.n || !fits)
		return arena_printf(ev->arena, "strconv.ParseUint: parsing \"" STR_FMT "\": %s", STR_ARG(part),
				    part.n ? "value out of range" : "invalid syntax").p;
	return NULL;
}

/* The same for what stands behind - or +. */
static const char *identifiers_complaint(struct cel_eval *ev, str list, const char *What, const char *what, bool numbers)
{
	do {
		str id;
		str_cut(list, '.', &id, &list);
		bool digits = id.n > 0;
		for (size_t i = 0; i < id.n; i++) {
			char c = id.p[i];
			bool digit = c >= '0' && c <= '9';
			digits &= digit;
			if (!digit && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '-')
				return arena_printf(ev->arena, "Invalid character(s) found in %s \"" STR_FMT "\"", what, STR_ARG(id)).p;
		}
		if (!id.n)
			return arena_printf(ev->arena, "%s is empty", What).p;
		if (numbers && digits && id.n > 1 && id.p[0] == '0')
			return arena_printf(ev->arena, "Numeric PreRelease version must not contain leading zeroes \"" STR_FMT "\"",
					    STR_ARG(id)).p;
	} while (list.n);
	return NULL;
}

static const char *version_complaint(struct cel_eval *ev, str s)
{
	str major, minor, patch, rest;
	const char *why;

	if (!s.n)
		return "Version string empty";
	if (!str_cut(s, '.', &major, &rest) || !str_cut(rest, '.', &minor, &patch))
		return "No Major.Minor.Patch elements found";
	size_t end = 0;
	while (end < patch.n && patch.p[end] != '-' && patch.p[end] != '+')
		end++;
	str number = str_head(patch, end);
	if ((why = number_complaint(ev, major, "major", "Major")) || (why = number_complaint(ev, minor, "minor", "Minor")) ||
	    (why = number_complaint(ev, number, "patch", "Patch")))
		return why;
	str pre = end < patch.n && patch.p[end] == '-' ? str_skip(patch, end + 1) : STR(""), build = STR("");
	if (pre.n)
		str_cut(pre, '+', &pre, &build);
	else
		build = str_skip(patch, end + 1);
	if (patch.p[end] == '-' && (why = identifiers_complaint(ev, pre, "Prerelease", "prerelease", true)))
		return why;
	why = identifiers_complaint(ev, build, "Build meta data", "build meta data", false);
	return why ? why : "Invalid version";
}

/* One part of a version without leading zeros; the last may go on with more than digits. */
static str without_zeros(str part)
{
	while (part.n > 1 && part.p[0] == '0' && part.p[1] >= '0' && part.p[1] <= '9')
		part = str_skip(part, 1);
	return part;
}

/* v1.02 -> 1.2.0. False with the error. */
static bool normalized(struct cel_eval *ev, str s, str *ret, struct cel_val *ret_error)
{
	str parts[3] = { STR(""), STR("0"), STR("0") }, rest = str_skip(s, str_starts(s, STR("v")));
	size_t n = 0;

	while (n < 2 && str_chr(rest, '.') >= 0)
		str_cut(rest, '.', &parts[n++], &rest);
	parts[n++] = rest;
	if (n < 3 && (str_chr(parts[n - 1], '+') >= 0 || str_chr(parts[n - 1], '-') >= 0)) {
		*ret_error = cel_fail(ev, "short version cannot contain PreRelease/Build meta data");
		return false;
	}
	*ret = arena_printf(ev->arena, STR_FMT "." STR_FMT "." STR_FMT, STR_ARG(without_zeros(parts[0])), STR_ARG(without_zeros(parts[1])),
			    STR_ARG(without_zeros(parts[2])));
	return true;
}

static bool parse_version(struct cel_eval *ev, const struct cel_val *v, size_t n, struct semver *ret, struct cel_val *ret_error)
{
	str s = cel_text(v[0]);

	if (n == 2 && v[1].b && !normalized(ev, s, &s, ret_error))
		return false;
	if (semver_parse(s, ret))
		return true;
	*ret_error = cel_fail(ev, "%s", version_complaint(ev, s));
	return false;
}

static struct cel_val string_to_semver(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct semver version;

	return parse_version(ev, v, n, &version, &error) ? cel_of_semver(ev->arena, &version) : error;
}

static struct cel_val is_semver(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct cel_val error;
	struct semver version;

	return cel_of_bool(parse_version(ev, v, n, &version, &error));
}

#define SEMVER_PART(name, part)                                                                        \
	static struct cel_val name(struct cel_eval *ev, const struct cel_val *v, size_t n)             \
	{                                                                                              \
		(void)ev;                                                                              \
		(void)n;                                                                               \
		return cel_of_int((int64_t)v[0].semver->part);                                         \
	}

SEMVER_PART(semver_major, major)
SEMVER_PART(semver_minor, minor)
SEMVER_PART(semver_patch, patch)

/* ---- the order of both ---- */

static int order(const struct cel_val *v)
{
	int c = v[0].kind == CEL_QUANTITY ? quantity_cmp(*v[0].quantity, *v[1].quantity) : semver_cmp(v[0].semver, v[1].semver);

	return c < 0 ? -1 : c > 0;
}

static struct cel_val is_greater(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return v[0].kind == v[1].kind ? cel_of_bool(order(v) > 0) : cel_no_overload(ev);
}

static struct cel_val is_less(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return v[0].kind == v[1].kind ? cel_of_bool(order(v) < 0) : cel_no_overload(ev);
}

static struct cel_val compare_to(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	return v[0].kind == v[1].kind ? cel_of_int(order(v)) : cel_no_overload(ev);
}

/* ---- formats ---- */

static size_t complain(struct name_errors *ret, const char *text)
{
	ret->n = 1;
	ret->text[0] = str_of(text);
	return 1;
}

static size_t check_label(str s, struct name_errors *ret) { return name_rule_label(s, false, ret); }
static size_t check_label_prefix(str s, struct name_errors *ret) { return name_rule_label(s, true, ret); }
static size_t check_subdomain(str s, struct name_errors *ret) { return name_rule_subdomain(s, false, ret); }
static size_t check_subdomain_prefix(str s, struct name_errors *ret) { return name_rule_subdomain(s, true, ret); }
static size_t check_1035(str s, struct name_errors *ret) { return name_rule_dns1035_label(s, false, ret); }
static size_t check_1035_prefix(str s, struct name_errors *ret) { return name_rule_dns1035_label(s, true, ret); }

static bool is_hex(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

/* 8-4-4-4-12 digits, with or without the hyphens. */
static size_t check_uuid(str s, struct name_errors *ret)
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };
	size_t at = 0;

	for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
		for (size_t i = 0; i < groups[g]; i++, at++)
			if (at >= s.n || !is_hex(s.p[at]))
				return complain(ret, "does not match the UUID format");
		at += g < 4 && at < s.n && s.p[at] == '-';
	}
	return at == s.n ? 0 : complain(ret, "does not match the UUID format");
}

static size_t check_byte(str s, struct name_errors *ret)
{
	bool good = s.n && s.n % 4 == 0;

	for (size_t i = 0; i < s.n && good; i++) {
		bool pad = s.p[i] == '=' && i + 2 >= s.n && (i + 1 == s.n || s.p[i + 1] == '=');
		good = pad || (s.p[i] >= '0' && s.p[i] <= '9') || ((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') || s.p[i] == '+' ||
		       s.p[i] == '/';
	}
	return good ? 0 : complain(ret, "invalid base64");
}

static size_t check_date(str s, struct name_errors *ret)
{
	char whole[32];
	struct timestamp t;

	snprintf(whole, sizeof(whole), STR_FMT "T00:00:00Z", STR_ARG(str_head(s, 10)));
	return s.n == 10 && time_parse(str_of(whole), &t, NULL) >= 0 ? 0 : complain(ret, "invalid date");
}

static size_t check_datetime(str s, struct name_errors *ret)
{
	struct timestamp t;

	return time_parse(s, &t, NULL) >= 0 ? 0 : complain(ret, "invalid datetime");
}

/* Its text is about the value, so that the caller (format_validate) makes it. */
static size_t check_uri(str s, struct name_errors *ret)
{
	(void)s;
	(void)ret;
	return 0;
}

static const struct cel_format formats[] = {
	{ STR_INIT("dns1123Label"), 30, check_label },
	{ STR_INIT("dns1123Subdomain"), 60, check_subdomain },
	{ STR_INIT("dns1035Label"), 30, check_1035 },
	{ STR_INIT("qualifiedName"), 60, name_check_label_key },
	{ STR_INIT("dns1123LabelPrefix"), 30, check_label_prefix },
	{ STR_INIT("dns1123SubdomainPrefix"), 60, check_subdomain_prefix },
	{ STR_INIT("dns1035LabelPrefix"), 30, check_1035_prefix },
	{ STR_INIT("labelValue"), 40, name_check_label_value },
	{ STR_INIT("uri"), 1103, check_uri },
	{ STR_INIT("uuid"), 70, check_uuid },
	{ STR_INIT("byte"), 84, check_byte },
	{ STR_INIT("date"), 71, check_date },
	{ STR_INIT("datetime"), 71, check_datetime },
};

static const struct cel_format *format_named(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (str_eq(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* format.dns1123Label() and its like: the function's name says which. */
static struct cel_val format_constant(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)v;
	(void)n;
	return (struct cel_val){ .kind = CEL_FORMAT, .format = format_named(str_skip(ev->name, sizeof("format.") - 1)) };
}

static struct cel_val format_by_name(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	const struct cel_format *f = format_named(cel_text(v[0]));

	(void)n;
	return f ? cel_optional_of(ev->arena, (struct cel_val){ .kind = CEL_FORMAT, .format = f }) : cel_optional_none();
}

static struct cel_val format_validate(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	struct name_errors e = { .n = 0 };
	struct cel_val texts[NAME_ERRORS_MAX];
	struct err err = ERR_INIT;
	struct cel_url u;

	(void)n;
	v[0].format->check(cel_text(v[1]), &e);
	if (v[0].format->check == check_uri && cel_url_parse(ev->arena, cel_text(v[1]), &u, &err) < 0) {
		e.n = 1;
		e.text[0] = arena_str(ev->arena, err_str(&err));
	}
	for (size_t i = 0; i < e.n; i++)
		texts[i] = cel_of_str(e.text[i]);
	return e.n ? cel_optional_of(ev->arena, cel_of_list(ev->arena, texts, e.n)) : cel_optional_none();
}

#define NAMED(name) { "format." name, "format." name, ":f", false, format_constant, 0 }

static const struct cel_overload overloads[] = {
	{ "add", "quantity_add", "qq:q", true, quantity_plus, 0 },
	{ "add", "quantity_add_int", "qi:q", true, quantity_plus, 0 },
	{ "asApproximateFloat", "quantity_get_float", "q:d", true, quantity_as_float, 0 },
	{ "asInteger", "quantity_get_int", "q:i", true, quantity_as_integer, 0 },
	{ "compareTo", "quantity_compare_to", "qq:i", true, compare_to, 0 },
	{ "compareTo", "semver_compare_to", "vv:i", true, compare_to, 0 },
	{ "isGreaterThan", "quantity_is_greater_than", "qq:b", true, is_greater, 0 },
	{ "isGreaterThan", "semver_is_greater_than", "vv:b", true, is_greater, 0 },
	{ "isInteger", "quantity_is_integer", "q:b", true, quantity_is_integer, 0 },
	{ "isLessThan", "quantity_is_less_than", "qq:b", true, is_less, 0 },
	{ "isLessThan", "semver_is_less_than", "vv:b", true, is_less, 0 },
	{ "isQuantity", "is_quantity_string", "s:b", false, is_quantity, 0 },
	{ "quantity", "string_to_quantity", "s:q", false, string_to_quantity, 0 },
	{ "sign", "quantity_sign", "q:i", false, quantity_sign, 0 },
	{ "sub", "quantity_sub", "qq:q", true, quantity_minus, 0 },
	{ "sub", "quantity_sub_int", "qi:q", true, quantity_minus, 0 },
	{ "isSemver", "is_semver_string", "s:b", false, is_semver, 0 },
	{ "isSemver", "is_semver_string_bool", "sb:b", false, is_semver, 0 },
	{ "major", "semver_major", "v:i", true, semver_major, 0 },
	{ "minor", "semver_minor", "v:i", true, semver_minor, 0 },
	{ "patch", "semver_patch", "v:i", true, semver_patch, 0 },
	{ "semver", "string_to_semver", "s:v", false, string_to_semver, 0 },
	{ "semver", "string_bool_to_semver", "sb:v", false, string_to_semver, 0 },
	{ "format.named", "format-named", "s:Of", false, format_by_name, 0 },
	{ "validate", "format-validate", "fs:OLs", true, format_validate, 0 },
	NAMED("dns1123Label"), NAMED("dns1123Subdomain"), NAMED("dns1035Label"), NAMED("qualifiedName"), NAMED("dns1123LabelPrefix"),
	NAMED("dns1123SubdomainPrefix"), NAMED("dns1035LabelPrefix"), NAMED("labelValue"), NAMED("uri"), NAMED("uuid"), NAMED("byte"),
	NAMED("date"), NAMED("datetime"),
};

const struct cel_library cel_lib_kube = { overloads, ARRAY_LEN(overloads), false };
