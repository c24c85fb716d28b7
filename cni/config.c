/* Configurations of networks: which file is taken, what must be in it. */
#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>

#include "base/encoding.h"
#include "base/file.h"
#include "cni/cni_priv.h"
#include "cni/inet.h"
#include "cni/link.h"
#include "cni/result.h"
#include "cni/rules.h"
#include "codec/atoms.h"
#include "codec/json.h"

/* Of the names of networks, and of their bridges, that we make. */
#define OWN_PREFIX "c8s-"

/* ---- parsing ---- */

static int invalid(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "error parsing configuration list: %s", what);
}

/* true, "true" or "TRUE": it was a string once. */
static int read_bool(struct val list, const char *name, bool *ret, struct err *err)
{
	struct val v = val_find(list, str_of(name));
	str s = val_as_str(v);

	*ret = val_as_bool(v);
	if (!val_exists(v) || val_is(v, VAL_BOOL))
		return 0;
	*ret = s.n == 4 && strncasecmp(s.p, "true", 4) == 0;
	if (*ret || (s.n == 5 && strncasecmp(s.p, "false", 5) == 0))
		return 0;
	return err_set(err, ERR_INVALID, "error parsing configuration list: invalid value for %s", name);
}

static int read_plugins(struct val list, struct cni_config *ret, struct err *err)
{
	struct val plugins = val_get(list, plugins);
	size_t i = 0;

	if (!val_exists(plugins))
		return invalid(err, "no 'plugins' key");
	if (!val_is(plugins, VAL_LIST))
		return invalid(err, "invalid 'plugins' type");
	if (!plugins.n)
		return invalid(err, "no plugins in list");
	VAL_EACH(v, plugins) {
		if (!val_str(*v, type).n)
			return err_set(err, ERR_INVALID, "failed to parse plugin config %zu: error parsing configuration: missing 'type'", i);
		i++;
	}
	ret->plugins = plugins;
	return 0;
}

static int read_list(struct val list, struct cni_config *ret, struct err *err)
{
	struct val name = val_get(list, name), version = val_get(list, cniVersion), versions = val_get(list, cniVersions);
	int r;

	if (!val_is(list, VAL_OBJECT))
		return invalid(err, "it is not an object");
	if (!val_exists(name))
		return invalid(err, "no name");
	if (!val_is(name, VAL_STRING))
		return invalid(err, "invalid name type");
	if (val_exists(version) && !val_is(version, VAL_STRING))
		return invalid(err, "invalid cniVersion type");
	if (val_exists(versions) && !val_is(versions, VAL_LIST))
		return invalid(err, "invalid type for cniVersions");
	ret->name = val_as_str(name);
	ret->version = val_as_str(version);
	ret->versions = versions;
	if ((r = cni_check_network(ret->name, err)) < 0 || (r = read_bool(list, "disableCheck", &ret->disable_check, err)) < 0 ||
	    (r = read_bool(list, "disableGC", &ret->disable_gc, err)) < 0)
		return r;
	return read_plugins(list, ret, err);
}

/* A plugin by itself is a list of one. */
static int list_of_one(struct arena *a, struct val plugin, struct val *ret, struct err *err)
{
	if (!val_is(plugin, VAL_OBJECT) || !val_str(plugin, type).n)
		return err_set(err, ERR_INVALID, "error parsing configuration: missing 'type'");
	*ret = OBJECT(a, F(name, val_of_str(val_str(plugin, name))), F(cniVersion, val_of_str(val_str(plugin, cniVersion))),
		      F(plugins, LIST(a, plugin)));
	return 0;
}

int cni_config_parse(struct arena *a, str text, bool single, struct cni_config *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf list_text = BUF_INIT(CNI_FILE_MAX);
	struct val v;
	int r;

	*ret = (struct cni_config){ .text = arena_str(a, text) };
	if (json_decode(a, ret->text, &(struct json_decode_options){ 0 }, &v, err) < 0)
		return err_wrap(err, -ERR_INVALID, single ? "error parsing configuration" : "error parsing configuration list");
	if (single) {
		if ((r = list_of_one(a, v, &v, err)) < 0 ||
		    (r = json_encode(&list_text, v, &(struct json_encode_options){ .plain = true }, err)) < 0)
			return r;
		ret->text = arena_str(a, buf_str(&list_text));
	}
	return read_list(v, ret, err);
}

/* ---- finding ---- */

static int is_config(const struct dirent *e)
{
	str name = str_of(e->d_name);
	return str_ends(name, STR(".conf")) || str_ends(name, STR(".conflist")) || str_ends(name, STR(".json"));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return str_cmp(str_of((*a)->d_name), str_of((*b)->d_name));
}

/* The path of the first one, in the arena; empty if there is none. */
static int first_file(const char *dir, struct arena *a, str *ret, struct err *err)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_config, by_name);

	*ret = STR_NONE;
	if (n < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "%s", dir);
	if (n > 0)
		*ret = arena_printf(a, "%s/%s", dir, names[0]->d_name);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return 0;
}

int cni_config_load(const char *dir, struct arena *a, struct cni_config *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CNI_FILE_MAX);
	str path;
	int r = first_file(dir, a, &path, err);

	if (r < 0)
		return r;
	if (!path.n)
		return err_set(err, ERR_NOT_FOUND, "no network config found in %s: cni plugin not initialized", dir);
	bool list = str_ends(path, STR(".conflist"));
	if ((r = file_read(path.p, &text, err)) == 0)
		r = cni_config_parse(a, buf_str(&text), !list, ret, err);
	return r < 0 ? err_wrap(err, r, "failed to load CNI config %sfile " STR_FMT, list ? "list " : "", STR_ARG(path)) : 0;
}

/* ---- our own ---- */

static bool has_ranges(const struct cni_config *net, const char *const *cidrs)
{
	struct val ranges = val_get(val_at(net->plugins, 0), ipam, ranges);
	size_t n = 0;

	for (; cidrs[n]; n++)
		if (!str_eq(val_str(val_at(val_at(ranges, n), 0), subnet), str_of(cidrs[n])))
			return false;
	return n == val_len(ranges);
}

/* Several clusters may live on one machine: names follow from what only one of them can have. */
static str own_name(struct arena *a, const char *const *cidrs)
{
	char hex[SHA256_HEX + 1];

	sha256_hex(str_of(cidrs[0]), hex);
	return arena_printf(a, OWN_PREFIX "%.8s", hex);
}

static str own_store(const struct cni *c, struct arena *a) { return arena_printf(a, "%s/networks", c->cache_dir); }

bool cni_config_is_own(const struct cni *c, struct arena *a, const struct cni_config *net)
{
	struct val ipam = val_get(val_at(net->plugins, 0), ipam);
	str subnet = val_str(val_at(val_at(val_get(ipam, ranges), 0), 0), subnet);
	const char *const cidrs[] = { arena_str(a, subnet).p, NULL };

	return subnet.n && str_eq(net->name, own_name(a, cidrs)) && str_eq(val_str(ipam, dataDir), own_store(c, a));
}

static struct val own_config(const struct cni *c, struct arena *a, const char *const *cidrs)
{
	struct val_builder ranges = val_builder(a);
	struct val name = val_of_str(own_name(a, cidrs)), yes = val_of_bool(true);

	for (size_t i = 0; cidrs[i]; i++)
		val_add_item(&ranges, LIST(a, OBJECT(a, F(subnet, val_of_str(str_of(cidrs[i]))))));
	struct val ipam = OBJECT(a, F(type, VAL_LIT("host-local")),
				 F(dataDir, val_of_str(own_store(c, a))),
				 F(ranges, val_end_list(&ranges)));
	struct val bridge = OBJECT(a, F(type, VAL_LIT("bridge")), F(bridge, name), F(isDefaultGateway, yes), F(ipMasq, yes),
				   F(hairpinMode, yes),
				   F(ipam, ipam));
	struct val portmap = OBJECT(a, F(type, VAL_LIT("portmap")), F(capabilities, OBJECT(a, F(portMappings, yes))));
	return OBJECT(a, F(cniVersion, VAL_LIT("1.0.0")), F(cniVersions, LIST(a, VAL_LIT("1.0.0"), VAL_LIT(CNI_VERSION))),
		      F(name, name),
		      F(plugins, LIST(a, bridge, portmap)));
}

int cni_write_default(struct cni *c, const char *const *cidrs, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf text = BUF_INIT(CNI_FILE_MAX);
	struct cni_config net;
	struct inet_net cidr;
	str first;
	int r;

	for (size_t i = 0; cidrs[i]; i++)
		if (!inet_net_parse(str_of(cidrs[i]), &cidr))
			return err_set(err, ERR_INVALID, "%s is not a range of addresses", cidrs[i]);
	if (!cidrs[0])
		return err_set(err, ERR_INVALID, "no range of addresses for pods was given");
	if ((r = file_make_dirs(c->conf_dir, 0755, err)) < 0 || (r = first_file(c->conf_dir, &a, &first, err)) < 0)
		return r;
	str own = arena_printf(&a, "%s/10-c8s.conflist", c->conf_dir);
	/* One of others stays; so does ours as long as its ranges are right, whatever else was changed in it. */
	if (first.n && (!str_eq(first, own) || (cni_config_load(c->conf_dir, &a, &net, NULL) == 0 && has_ranges(&net, cidrs))))
		return 0;
	if ((r = json_encode(&text, own_config(c, &a, cidrs), &(struct json_encode_options){ .indent = 2, .plain = true },
			     err)) < 0)
		return r;
	buf_addc(&text, '\n');
	return file_write(own.p, buf_str(&text), 0644, err);
}

/* A bridge that has one of our names. */
static int remove_bridge(struct netlink *n, const char *name, struct err *err)
{
	struct link bridge;
	int r = link_get(n, name, &bridge, err);

	if (r == 0)
		r = str_eq(str_of(bridge.kind), STR("bridge")) ? link_del(n, bridge.index, err) : 0;
	if (r == -ERR_NOT_FOUND)
		err_clear(err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static int is_own_name(const struct dirent *entry) { return str_starts(str_of(entry->d_name), STR(OWN_PREFIX)); }

/* Those of all networks that we have given addresses of: a node whose ranges have changed had another one before, and a configuration may be lost. */
static int remove_bridges(struct cni *c, struct arena *a, struct netlink *n, struct err *err)
{
	struct dirent **entries;
	int found = scandir(own_store(c, a).p, &entries, is_own_name, NULL), result = 0;

	for (int i = 0; i < found; i++) {
		int r = remove_bridge(n, entries[i]->d_name, result < 0 ? NULL : err);
		result = result < 0 ? result : r;
		free(entries[i]);
	}
	if (found >= 0)
		free(entries);
	return result;
}

/* All that can be removed is; the first error is the result. */
int cni_remove_default(struct cni *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(netlink_close) struct netlink n = NETLINK_INIT;
	struct cni_config net;
	/* One that is damaged is as good as none: bridges are known by the addresses that were given out, too. */
	bool own = cni_config_load(c->conf_dir, &a, &net, NULL) == 0 && cni_config_is_own(c, &a, &net);
	int r, result = netlink_open(&n, NETLINK_ROUTE, err);

	if (result == 0 && own)
		result = remove_bridge(&n, arena_str(&a, net.name).p, err);
	if (n.fd >= 0 && (r = remove_bridges(c, &a, &n, result < 0 ? NULL : err)) < 0 && result == 0)
		result = r;
	if ((r = rules_remove_empty(result < 0 ? NULL : err)) < 0 && result == 0)
		result = r;
	return result;
}
