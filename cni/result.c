#include "cni/result.h"

#include <net/if.h>

#include "codec/atoms.h"

const char *const cni_versions[] = { "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", CNI_VERSION, NULL };

static str or_oldest(str version) { return version.n ? version : STR("0.1.0"); }

bool cni_version_known(str version)
{
	for (size_t i = 0; cni_versions[i]; i++)
		if (str_eq(or_oldest(version), str_of(cni_versions[i])))
			return true;
	return false;
}

static int64_t number_of(str version)
{
	int64_t parts[3] = { 0 };
	str part;

	version = or_oldest(version);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		bool more = str_cut(version, '.', &part, &version);
		if (!str_to_i64(part, &parts[i]) || parts[i] < 0 || parts[i] > 9999 || (more && i == 2))
			return -1;
		if (!more)
			break;
	}
	return (parts[0] * 10000 + parts[1]) * 10000 + parts[2];
}

int cni_version_cmp(str a, str b)
{
	int64_t x = number_of(a), y = number_of(b);
	return (x > y) - (x < y);
}

/* ---- results ---- */

static bool has_ip4_ip6(str version) { return cni_version_cmp(version, STR("0.3.0")) < 0; }
static bool has_ip_versions(str version) { return cni_version_cmp(version, STR("1.0.0")) < 0; }

static bool is_v6(struct val address)
{
	return str_chr(val_as_str(address), ':') >= 0;
}

static struct val from_ip4_ip6(struct arena *a, struct val old)
{
	struct val_builder ips = val_builder(a), routes = val_builder(a);
	const struct val both[] = { val_get(old, ip4), val_get(old, ip6) };

	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		if (!val_has(both[i], ip))
			continue;
		val_add_item(&ips, OBJECT(a, F(address, val_get(both[i], ip)), F(gateway, val_get(both[i], gateway))));
		VAL_EACH(r, val_get(both[i], routes))
			val_add_item(&routes, *r);
	}
	return OBJECT(a, F(cniVersion, VAL_LIT(CNI_VERSION)), F(ips, val_end_list(&ips)), F(routes, val_end_list(&routes)),
		      F(dns, val_get(old, dns)));
}

static int to_ip4_ip6(struct arena *a, struct val result, str to, struct val *ret, struct err *err)
{
	struct val found[2] = { VAL_EMPTY, VAL_EMPTY };

	VAL_EACH(ip, val_get(result, ips)) {
		struct val address = val_get(*ip, address);
		bool six = is_v6(address);
		if (val_exists(found[six]))
			continue;
		struct val_builder routes = val_builder(a);
		VAL_EACH(r, val_get(result, routes))
			if (is_v6(val_get(*r, dst)) == six)
				val_add_item(&routes, *r);
		found[six] = OBJECT(a, F(ip, address), F(gateway, val_get(*ip, gateway)),
				    F(routes, routes.n ? val_end_list(&routes) : VAL_EMPTY));
	}
	if (!val_exists(found[0]) && !val_exists(found[1]))
		return err_set(err, ERR_INVALID, "cannot convert: no valid IP addresses");
	*ret = OBJECT(a, F(cniVersion, val_of_str(arena_str(a, to))), F(ip4, found[0]), F(ip6, found[1]), F(dns, val_get(result, dns)));
	return 0;
}

/* With or without "version" in every address. */
static struct val with_ip_versions(struct arena *a, struct val result, bool with)
{
	struct val_builder ips = val_builder(a);

	if (!val_len(val_get(result, ips)))
		return result;
	VAL_EACH(ip, val_get(result, ips)) {
		struct val number = is_v6(val_get(*ip, address)) ? VAL_LIT("6") : VAL_LIT("4");
		val_add_item(&ips, val_with(a, *ip, with ? number : VAL_EMPTY, version));
	}
	return val_with(a, result, val_end_list(&ips), ips);
}

int result_convert(struct arena *a, struct val result, str from, str to, struct val *ret, struct err *err)
{
	str said = val_str(result, cniVersion);

	from = said.n ? said : or_oldest(from);
	to = or_oldest(to);
	if (!val_is(result, VAL_OBJECT))
		return err_set(err, ERR_INVALID, "the result is not an object");
	if (!cni_version_known(from) || !cni_version_known(to))
		return err_set(err, ERR_INVALID, "unsupported CNI result version \"" STR_FMT "\"",
			       STR_ARG(cni_version_known(to) ? from : to));
	if (has_ip4_ip6(from) && !has_ip4_ip6(to))
		result = from_ip4_ip6(a, result);
	else if (has_ip4_ip6(to) && !has_ip4_ip6(from))
		return to_ip4_ip6(a, result, to, ret, err);
	if (!has_ip4_ip6(to))
		result = with_ip_versions(a, result, has_ip_versions(to));
	if (val_is_zero(val_get(result, dns)))
		result = val_without(a, result, dns);
	*ret = val_with(a, result, val_of_str(arena_str(a, to)), cniVersion);
	return 0;
}

/* ---- names ---- */

static bool is_name(str s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	for (size_t i = 0; i < s.n; i++)
		if (!s.p[i] || (!strchr(plain, s.p[i]) && (i == 0 || !strchr("_.-", s.p[i]))))
			return false;
	return s.n > 0;
}

int cni_check_id(str id, struct err *err)
{
	if (!id.n)
		return err_set(err, ERR_INVALID, "missing containerID");
	if (!is_name(id))
		return err_set(err, ERR_INVALID, "invalid characters in containerID; " STR_FMT, STR_ARG(id));
	return 0;
}

int cni_check_network(str name, struct err *err)
{
	if (!name.n)
		return err_set(err, ERR_INVALID, "missing network name");
	if (!is_name(name))
		return err_set(err, ERR_INVALID, "invalid characters found in network name; " STR_FMT, STR_ARG(name));
	return 0;
}

int cni_check_ifname(str ifname, struct err *err)
{
	if (!ifname.n)
		return err_set(err, ERR_INVALID, "interface name is empty");
	if (ifname.n >= IFNAMSIZ)
		return err_set(err, ERR_INVALID, "interface name is too long; interface name should be less than %d characters", IFNAMSIZ);
	if (str_eq(ifname, STR(".")) || str_eq(ifname, STR("..")))
		return err_set(err, ERR_INVALID, "interface name is . or ..");
	for (size_t i = 0; i < ifname.n; i++)
		if (strchr("/: \t\n\v\f\r", ifname.p[i]))
			return err_set(err, ERR_INVALID, "interface name contains / or : or whitespace characters");
	return 0;
}
