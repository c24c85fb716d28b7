/*
 * Attachments: the chains of plugins, forward for ADD and CHECK, backward for DEL. What ADD was told is kept (cache.c) from before
 * its first plugin runs until the last one of DEL has: DEL and GC then work with the configuration that was in force, and know of what only half
 * happened.
 */
#include "cni/cni.h"

#include "base/fiber.h"
#include "base/mem.h"
#include "cni/cni_priv.h"
#include "cni/result.h"
#include "codec/atoms.h"

enum { UNDO_TIMEOUT_MS = 60000 };

static const str ifname = STR_INIT("eth0");
/* The first network of every pod. */
static const str loopback_text = STR_INIT("{\"cniVersion\":\"0.4.0\",\"name\":\"c8s-loopback\",\"plugins\":[{\"type\":\"loopback\"}]}");

char *cni_copy(str s)
{
	char *copy = mem_alloc(s.n + 1);
	if (s.n)
		memcpy(copy, s.p, s.n);
	copy[s.n] = '\0';
	return copy;
}

struct cni *cni_new(const struct cni_options *o)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(64 << 10);
	struct cni *c = mem_zalloc(sizeof(*c));
	size_t n = 0;

	c->conf_dir = cni_copy(str_of(o->conf_dir));
	c->cache_dir = cni_copy(str_of(o->cache_dir));
	c->own_plugins = o->own_plugins ? cni_copy(str_of(o->own_plugins)) : NULL;
	while (o->bin_dirs && o->bin_dirs[n])
		n++;
	c->bin_dirs = mem_zalloc((n + 1) * sizeof(*c->bin_dirs));
	for (size_t i = 0; i < n; i++) {
		c->bin_dirs[i] = cni_copy(str_of(o->bin_dirs[i]));
		buf_addf(&path, "%s%s", i ? ":" : "", o->bin_dirs[i]);
	}
	/* Plugins insist on a path. */
	if (!path.n)
		buf_add(&path, STR("/opt/cni/bin"));
	c->path = buf_take(&path);
	return c;
}

void cni_free(struct cni *c)
{
	if (!c)
		return;
	for (char **dir = c->bin_dirs; *dir; dir++)
		mem_freep(dir);
	mem_freep(&c->bin_dirs);
	mem_freep(&c->conf_dir);
	mem_freep(&c->cache_dir);
	mem_freep(&c->own_plugins);
	mem_freep(&c->path);
	mem_freep(&c->agreed_for);
	mem_freep(&c->agreed);
	mem_freep(&c);
}

int cni_network(struct cni *c, struct arena *a, str *ret_name, struct err *err)
{
	struct cni_config net;
	int r = cni_config_load(c->conf_dir, a, &net, err);
	if (r == 0)
		*ret_name = net.name;
	return r;
}

bool cni_network_is_foreign(struct cni *c)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct cni_config net;

	return cni_config_load(c->conf_dir, &a, &net, NULL) == 0 && !cni_config_is_own(c, &a, &net);
}

/* ---- chains ---- */

static int wrap_plugin(struct err *err, int r, struct val plugin, const char *what)
{
	str type = val_str(plugin, type), name = val_str(plugin, name);
	return err_wrap(err, r, "plugin type=\"" STR_FMT "\"%s" STR_FMT "%s failed (%s)", STR_ARG(type),
			name.n ? " name=\"" : "", STR_ARG(name),
			name.n ? "\"" : "", what);
}

static struct val prev_result(struct arena *a, struct val result)
{
	return val_exists(result) ? OBJECT(a, F(prevResult, result)) : VAL_EMPTY;
}

/* What is cached, as the configuration's version has it; VAL_NONE when there is nothing usable. */
static struct val cached_result(struct arena *a, const struct cni_config *net, struct val result)
{
	struct val converted;

	if (val_exists(result) && result_convert(a, result, net->version, net->version, &converted, NULL) == 0)
		return converted;
	return VAL_EMPTY;
}

static int chain_add(struct cni *c, struct arena *a, const struct cni_config *net, const struct cni_call *call,
		     struct val *ret, struct err *err)
{
	struct val result = VAL_EMPTY;
	int r = 0;

	VAL_EACH(p, net->plugins)
		if ((r = cni_execute_plugin(c, a, "ADD", net, *p, call, prev_result(a, result), &result, err)) < 0)
			return wrap_plugin(err, r, *p, "add");
	*ret = result;
	return 0;
}

static int chain_del(struct cni *c, struct arena *a, const struct cni_config *net, const struct cni_call *call,
		     struct val result, struct err *err)
{
	int r = 0;

	/* It was not told of the result before that version. */
	result = cni_version_cmp(net->version, STR("0.4.0")) >= 0 ? cached_result(a, net, result) : VAL_EMPTY;
	for (size_t i = val_len(net->plugins); i-- > 0;) {
		struct val p = val_at(net->plugins, i);
		if ((r = cni_execute_plugin(c, a, "DEL", net, p, call, prev_result(a, result), NULL, err)) < 0)
			return wrap_plugin(err, r, p, "delete");
	}
	cni_cache_remove(c, net->name, call);
	return 0;
}

static int chain_check(struct cni *c, struct arena *a, const struct cni_config *net, const struct cni_call *call,
		       struct val result, struct err *err)
{
	int r = 0;

	if (cni_version_cmp(net->version, STR("0.4.0")) < 0)
		return err_set(err, ERR_INVALID, "configuration version \"" STR_FMT "\" does not support the CHECK command",
			       STR_ARG(net->version));
	if (net->disable_check)
		return 0;
	result = cached_result(a, net, result);
	VAL_EACH(p, net->plugins)
		if ((r = cni_execute_plugin(c, a, "CHECK", net, *p, call, prev_result(a, result), NULL, err)) < 0)
			return wrap_plugin(err, r, *p, "check");
	return 0;
}

/* ---- configurations ---- */

static int load(struct cni *c, struct arena *a, struct cni_config *ret, struct err *err)
{
	int r = cni_config_load(c->conf_dir, a, ret, err);
	return r < 0 ? r : cni_execute_agree(c, a, ret, err);
}

/* The one that an attachment was made with. */
static int load_cached(struct cni *c, struct arena *a, const struct cni_cached *cached, struct cni_config *ret, struct err *err)
{
	int r = cni_config_parse(a, cached->config, false, ret, err);
	/* Its result says which version it came down to. */
	str version = val_str(cached->result, cniVersion);
	if (r == 0 && version.n && cni_version_known(version))
		ret->version = version;
	else if (r == 0)
		r = cni_execute_agree(c, a, ret, err);
	return r < 0 ? err_wrap(err, r, "the configuration of network \"" STR_FMT "\"", STR_ARG(cached->network)) : 0;
}

static struct val put_capability(struct arena *a, struct val all, atom key, struct val v)
{
	return val_exists(v) ? val_put(a, all, key, v) : all;
}

static int call_of(struct arena *a, const struct cni_pod *p, str link, struct cni_call *ret, struct err *err)
{
	struct val all = VAL_EMPTY_OBJECT;

	VAL_EACH_MEMBER(m, p->capabilities)
		all = val_put(a, all, m->key, m->val);
	all = put_capability(a, all, A_portMappings, p->port_mappings);
	all = put_capability(a, all, A_bandwidth, p->bandwidth);
	all = put_capability(a, all, A_dns, p->dns);
	all = put_capability(a, all, A_cgroupPath, p->cgroup_path.n ? val_of_str(p->cgroup_path) : VAL_EMPTY);
	str args = STR_NONE;
	if (p->name.n)
		args = arena_printf(a, "IgnoreUnknown=1;K8S_POD_NAMESPACE=" STR_FMT ";K8S_POD_NAME=" STR_FMT ";K8S_POD_INFRA_CONTAINER_ID=" STR_FMT
				    ";K8S_POD_UID=" STR_FMT, STR_ARG(p->namespace), STR_ARG(p->name), STR_ARG(p->id),
				    STR_ARG(p->uid));
	*ret = (struct cni_call){ .id = p->id, .netns = str_of(p->netns), .ifname = link, .args = args, .capabilities = all };
	return cni_check_id(p->id, err);
}

static void loopback(struct arena *a, struct cni_config *ret)
{
	(void)cni_config_parse(a, loopback_text, false, ret, NULL);
}

/* ---- ADD ---- */

/* One network; when it fails, nothing of it is left, unless that fails too: then it is still cached for DEL and GC. */
static int attach(struct cni *c, struct arena *a, const struct cni_config *net, const struct cni_call *call,
		  struct val *ret, struct err *err)
{
	int r = cni_cache_put(c, net, call, VAL_EMPTY, err);

	if (r < 0)
		return r;
	if ((r = chain_add(c, a, net, call, ret, err)) == 0)
		r = cni_cache_put(c, net, call, *ret, err);
	if (r < 0) {
		SHIELD_SCOPE();
		DEADLINE_SCOPE(UNDO_TIMEOUT_MS);
		(void)chain_del(c, a, net, call, VAL_EMPTY, NULL);
	}
	return r;
}

int cni_add(struct cni *c, const struct cni_pod *p, struct arena *a, struct val *ret, struct err *err)
{
	struct cni_config net, lo;
	struct cni_call call, lo_call;
	struct val result, ignored;
	int r;

	loopback(a, &lo);
	if ((r = call_of(a, p, ifname, &call, err)) < 0 || (r = call_of(a, p, STR("lo"), &lo_call, err)) < 0 ||
	    (r = load(c, a, &net, err)) < 0 ||
	    (r = attach(c, a, &lo, &lo_call, &ignored, err)) < 0)
		return r;
	if ((r = attach(c, a, &net, &call, &result, err)) == 0)
		return result_convert(a, result, net.version, STR(CNI_VERSION), ret, err);
	SHIELD_SCOPE();
	DEADLINE_SCOPE(UNDO_TIMEOUT_MS);
	(void)chain_del(c, a, &lo, &lo_call, VAL_EMPTY, NULL);
	return r;
}

/* ---- DEL ---- */

static int detach_cached(struct cni *c, struct arena *a, struct cni_cached *cached, const char *netns, struct err *err)
{
	struct cni_config net;
	int r = load_cached(c, a, cached, &net, err);

	if (r < 0)
		return r;
	cached->call.netns = str_of(netns);
	return chain_del(c, a, &net, &cached->call, cached->result, err);
}

int cni_del(struct cni *c, const struct cni_pod *p, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct err first = ERR_INIT;
	struct cni_config net;
	struct cni_cached *cached;
	struct cni_call call;
	bool known = false;
	size_t n;
	int r, result = 0;

	if ((r = call_of(&arena, p, ifname, &call, err)) < 0 || (r = cni_cache_list(c, &arena, p->id, &cached, &n, err)) < 0)
		return r;
	bool configured = load(c, &arena, &net, NULL) == 0;
	while (n-- > 0) {
		struct err e = ERR_INIT;
		known |= configured && str_eq(cached[n].network, net.name) && str_eq(cached[n].call.ifname, ifname);
		if ((r = detach_cached(c, &arena, &cached[n], p->netns, &e)) < 0 && result == 0) {
			result = r;
			first = e;
		}
	}
	/* Somebody else, or we before the cache was lost, may have attached it. */
	if (configured && !known && (r = chain_del(c, &arena, &net, &call, VAL_EMPTY, &first)) < 0 && result == 0)
		result = r;
	if (result < 0 && err)
		*err = first;
	return result;
}

/* ---- CHECK ---- */

int cni_check(struct cni *c, const struct cni_pod *p, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct cni_cached *cached;
	struct cni_config net;
	bool found = false;
	size_t n;
	int r;

	if ((r = cni_check_id(p->id, err)) < 0 || (r = cni_cache_list(c, &arena, p->id, &cached, &n, err)) < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		found |= !str_eq(cached[i].call.ifname, STR("lo"));
		if ((r = load_cached(c, &arena, &cached[i], &net, err)) < 0 ||
		    (r = chain_check(c, &arena, &net, &cached[i].call, cached[i].result, err)) < 0)
			return r;
	}
	return found ? 0 : err_set(err, ERR_NOT_FOUND, "container " STR_FMT " is not attached to a network", STR_ARG(p->id));
}

/* ---- GC and STATUS ---- */

/* Where to look for the links of a stale attachment. The number of a process that is gone may be that of another one now. */
static const char *stale_netns(struct arena *a, const struct cni_cached *cached)
{
	return str_starts(cached->call.netns, STR("/proc/")) ? "" : arena_str(a, cached->call.netns).p;
}

static bool is_valid(const str *ids, size_t n, str id)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(ids[i], id))
			return true;
	return false;
}

/*
 * Plugins that can look for leftovers by themselves; all are asked, the first error is the result. They release whatever is not named, so
 * they are asked only about a network that is ours alone.
 */
static int chain_gc(struct cni *c, struct arena *a, const struct cni_config *net, const str *ids, size_t n, struct err *err)
{
	struct val_builder list = val_builder(a);
	struct cni_call nothing = { 0 };
	struct err e = ERR_INIT;
	int r, result = 0;

	if (net->disable_gc || cni_version_cmp(net->version, STR("1.1.0")) < 0 || !cni_config_is_own(c, a, net))
		return 0;
	for (size_t i = 0; i < n; i++)
		val_add_item(&list, OBJECT(a, F(containerID, val_of_str(ids[i])), F(ifname, val_of_str(ifname))));
	struct val valid = val_end_list(&list);
	struct val more = OBJECT(a, F(cni_dev_valid_attachments, valid), F(cni_dev_attachments, valid));
	VAL_EACH(p, net->plugins)
		if ((r = cni_execute_plugin(c, a, "GC", net, *p, &nothing, more, NULL, &e)) < 0 && result == 0) {
			if (err)
				*err = e;
			result = wrap_plugin(err, r, *p, "gc");
		}
	return result;
}

int cni_gc(struct cni *c, const str *valid_ids, size_t n, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct cni_cached *cached;
	struct cni_config net = { 0 };
	struct err first = ERR_INIT, e = ERR_INIT;
	size_t n_cached;
	int r, result = 0;

	cni_cache_sweep(c);
	if ((r = cni_cache_list(c, &arena, STR_NONE, &cached, &n_cached, err)) < 0)
		return r;
	/* Without a network there is less to look for. */
	if ((r = load(c, &arena, &net, &first)) < 0 && r != -ERR_NOT_FOUND)
		result = r;
	bool configured = r == 0;
	for (size_t i = n_cached; i-- > 0;) {
		if (is_valid(valid_ids, n, cached[i].call.id) || !cached[i].ours)
			continue; /* others may keep theirs in the same folder */
		if ((r = detach_cached(c, &arena, &cached[i], stale_netns(&arena, &cached[i]), &e)) < 0 && result == 0) {
			result = err_wrap(&e, r, "failed to delete stale attachment " STR_FMT, STR_ARG(cached[i].call.id));
			first = e;
		}
	}
	if (configured && (r = chain_gc(c, &arena, &net, valid_ids, n, &e)) < 0 && result == 0) {
		result = r;
		first = e;
	}
	if (result < 0 && err)
		*err = first;
	return result;
}

int cni_status(struct cni *c, struct err *err)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	struct cni_call nothing = { 0 };
	struct cni_config net;
	const char *path;
	bool own;
	int r = load(c, &arena, &net, err);

	if (r < 0)
		return r;
	/* What we have written ourselves is good: this is asked every few seconds, and a process for each plugin is not nothing. */
	bool asks = cni_version_cmp(net.version, STR("1.1.0")) >= 0 && !cni_config_is_own(c, &arena, &net);
	VAL_EACH(p, net.plugins) {
		r = asks ? cni_execute_plugin(c, &arena, "STATUS", &net, *p, &nothing, VAL_EMPTY, NULL, err) :
			   cni_execute_find(c, &arena, val_str(*p, type), &path, &own, err);
		if (r < 0)
			return wrap_plugin(err, r, *p, "status");
	}
	return 0;
}
