#include "machinery/ip.h"

#include "base/test.h"

#define BAD_IP "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
#define BAD_CIDR "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

static str only_text(const struct name_errors *e) { return e->n ? e->text[0] : STR_NONE; }

TEST(ip_checks)
{
	/* What each kind of field says: old ones, old ones strictly, and new ones. */
	static const struct {
		const char *value, *legacy, *strict, *canonical;
	} t[] = {
		{ "10.9.8.7", "", "", "" },
		{ "0.0.0.0", "", "", "" },
		{ "2001:db8::1", "", "", "" },
		{ "::", "", "", "" },
		{ "1:2:3:4:5:6:7:8", "", "", "" },
		{ "1:2:3:4:5:6:7::", "", "", "must be in canonical form (\"1:2:3:4:5:6:7:0\")" },
		{ "1::0:0:2", "", "", "must be in canonical form (\"1::2\")" },
		{ "1:0:0:2:0:0:0:3", "", "", "must be in canonical form (\"1:0:0:2::3\")" },
		{ "2001:DB8::1", "", "", "must be in canonical form (\"2001:db8::1\")" },
		{ "::1.2.3.4", "", "", "must be in canonical form (\"::102:304\")" },
		{ "010.9.8.7", "", "must not have leading 0s", "must not have leading 0s" },
		{ "00001::", "", "must not have leading 0s", "must not have leading 0s" },
		{ "::ffff:1.2.3.4", "", "must not be an IPv4-mapped IPv6 address", "must not be an IPv4-mapped IPv6 address" },
		{ "", BAD_IP, BAD_IP, BAD_IP },
		{ "10.9.8", BAD_IP, BAD_IP, BAD_IP },
		{ "10.9.8.256", BAD_IP, BAD_IP, BAD_IP },
		{ "10.9.8.7.6", BAD_IP, BAD_IP, BAD_IP },
		{ "10.9.8.7 ", BAD_IP, BAD_IP, BAD_IP },
		{ "1::2::3", BAD_IP, BAD_IP, BAD_IP },
		{ "::1:2:3:4:5:6:7:8", BAD_IP, BAD_IP, BAD_IP },
		{ "1:2:3:4:5:6:7:8:9", BAD_IP, BAD_IP, BAD_IP },
		{ "12345::", BAD_IP, BAD_IP, BAD_IP },
		{ "fe80::1%eth0", BAD_IP, BAD_IP, BAD_IP },
	};
	struct arena a = ARENA_INIT;
	struct name_errors e;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		ip_check_legacy(str_of(t[i].value), false, &e);
		CHECK_STR_ROW(i, only_text(&e), t[i].legacy);
		ip_check_legacy(str_of(t[i].value), true, &e);
		CHECK_STR_ROW(i, only_text(&e), t[i].strict);
		ip_check(&a, str_of(t[i].value), &e);
		CHECK_STR_ROW(i, only_text(&e), t[i].canonical);
	}
	arena_done(&a);
}

TEST(cidr_checks)
{
	static const struct {
		const char *value, *legacy, *strict, *canonical;
	} t[] = {
		{ "10.9.8.0/24", "", "", "" },
		{ "0.0.0.0/0", "", "", "" },
		{ "2001:db8::/64", "", "", "" },
		{ "2001:DB8::/64", "", "", "must be in canonical form (\"2001:db8::/64\")" },
		{ "10.9.8.7/24", "", "must not have bits set beyond the prefix length",
		  "must not have bits set beyond the prefix length" },
		{ "10.9.8.0/024", "", "must not have leading 0s in IP or prefix length",
		  "must not have leading 0s in IP or prefix length" },
		{ "::ffff:1.2.3.0/120", "", "must not have an IPv4-mapped IPv6 address",
		  "must not have an IPv4-mapped IPv6 address" },
		{ "10.9.8.0/33", BAD_CIDR, BAD_CIDR, BAD_CIDR },
		{ "10.9.8.0", BAD_CIDR, BAD_CIDR, BAD_CIDR },
		{ "10.9.8.0/", BAD_CIDR, BAD_CIDR, BAD_CIDR },
		{ "::/129", BAD_CIDR, BAD_CIDR, BAD_CIDR },
	};
	struct arena a = ARENA_INIT;
	struct name_errors e;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cidr_check_legacy(str_of(t[i].value), false, &e);
		CHECK_STR_ROW(i, only_text(&e), t[i].legacy);
		cidr_check_legacy(str_of(t[i].value), true, &e);
		CHECK_STR_ROW(i, only_text(&e), t[i].strict);
		cidr_check(&a, str_of(t[i].value), &e);
		CHECK_STR_ROW(i, only_text(&e), t[i].canonical);
	}
	CHECK_INT(ip_check_interface_address(&a, STR("10.9.8.7/24"), &e), 0);
	ip_check_interface_address(&a, STR("::ffff:10.9.8.7/120"), &e);
	CHECK_STR(only_text(&e), "must be in canonical form (\"10.9.8.7/24\")");
	arena_done(&a);
}

TEST(cidr_contains)
{
	static const struct {
		const char *block, *ip;
		bool want;
	} t[] = {
		{ "10.96.0.0/12", "10.111.255.255", true },
		{ "10.96.0.0/12", "10.112.0.0", false },
		{ "10.1.2.3/32", "10.1.2.3", true },
		{ "0.0.0.0/0", "8.8.8.8", true },
		{ "::/0", "8.8.8.8", false },
		{ "fd00::/8", "fdff::1", true },
		{ "fd00::/8", "fe00::1", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct cidr c;
		struct ip ip;
		CHECK_ROW(i, cidr_parse(str_of(t[i].block), &c, NULL) && ip_parse(str_of(t[i].ip), &ip, NULL));
		CHECK_ROW(i, cidr_contains(&c, &ip) == t[i].want);
	}
}

TEST(ip_warnings)
{
	static const struct {
		size_t (*warn)(struct arena *, str, str, str[2]);
		const char *value, *want;
	} t[] = {
		{ ip_warnings, "10.9.8.7", NULL },
		{ ip_warnings, "010.9.8.7", "spec.ip: non-standard IP address \"010.9.8.7\" is invalid: use \"10.9.8.7\"" },
		{ ip_warnings, "FE80::1",
		  "spec.ip: IPv6 address \"FE80::1\" should be in RFC 5952 canonical format (\"fe80::1\")" },
		{ cidr_warnings, "10.9.8.0/24", NULL },
		{ cidr_warnings, "10.9.8.7/24",
		  "spec.ip: CIDR value \"10.9.8.7/24\" is ambiguous in this context (should be \"10.9.8.0/24\" or \"10.9.8.7/32\"?)" },
		{ cidr_warnings, "10.9.8.0/024", "spec.ip: non-standard CIDR value \"10.9.8.0/024\" is invalid: use \"10.9.8.0/24\"" },
		{ cidr_warnings, "FE80::/64",
		  "spec.ip: IPv6 CIDR value \"FE80::/64\" should be in RFC 5952 canonical format (\"fe80::/64\")" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str w[2];
		size_t n = t[i].warn(&a, STR("spec.ip"), str_of(t[i].value), w);
		CHECK_ROW(i, n == (t[i].want ? 1 : 0));
		if (n)
			CHECK_STR_ROW(i, w[0], t[i].want);
	}
	arena_done(&a);
}
