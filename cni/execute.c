/* Running one plugin: what it is told, what it answers. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "cni/cni_priv.h"
#include "cni/result.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { PLUGIN_TIMEOUT_MS = 120000, BUSY_TRIES = 5, BUSY_WAIT_MS = 200 };

extern char **environ;

/* ---- finding ---- */

/* The plugins that our small program is when it is called by these names. */
static bool is_own(str type)
{
	static const char *const own[] = { "bridge", "host-local", "loopback", "portmap", "ptp" };

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (str_eq(type, str_of(own[i])))
			return true;
	return false;
}

int cni_execute_find(struct cni *c, struct arena *a, str type, const char **ret_path, bool *ret_own, struct err *err)
{
	struct stat st;

	*ret_own = false;
	if (!type.n)
		return err_set(err, ERR_INVALID, "no plugin name provided");
	if (str_chr(type, '/') >= 0)
		return err_set(err, ERR_INVALID, "invalid plugin name: " STR_FMT, STR_ARG(type));
	for (char **dir = c->bin_dirs; *dir; dir++) {
		*ret_path = arena_printf(a, "%s/" STR_FMT, *dir, STR_ARG(type)).p;
		if (stat(*ret_path, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
	}
	*ret_path = c->own_plugins;
	*ret_own = true;
	if (c->own_plugins && is_own(type) && access(c->own_plugins, X_OK) == 0)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "failed to find plugin \"" STR_FMT "\" in path [%s]", STR_ARG(type), c->path);
}

/* ---- calling ---- */

/* Ours without what is about CNI, and then that. */
static const char **environment(struct cni *c, struct arena *a, const char *command, const struct cni_call *call)
{
	size_t n = 0, k = 0;

	while (environ[n])
		n++;
	const char **env = ARENA_ARRAY(a, const char *, n + 7);
	for (size_t i = 0; i < n; i++)
		if (!str_starts(str_of(environ[i]), STR("CNI_")))
			env[k++] = environ[i];
	env[k++] = arena_printf(a, "CNI_COMMAND=%s", command).p;
	env[k++] = arena_printf(a, "CNI_CONTAINERID=" STR_FMT, STR_ARG(call->id)).p;
	env[k++] = arena_printf(a, "CNI_NETNS=" STR_FMT, STR_ARG(call->netns)).p;
	env[k++] = arena_printf(a, "CNI_ARGS=" STR_FMT, STR_ARG(call->args)).p;
	env[k++] = arena_printf(a, "CNI_IFNAME=" STR_FMT, STR_ARG(call->ifname)).p;
	env[k++] = arena_printf(a, "CNI_PATH=%s", c->path).p;
	env[k] = NULL;
	return env;
}

static struct val config_for(struct arena *a, const struct cni_config *net, struct val plugin, const struct cni_call *call,
			     struct val more)
{
	struct val_builder given = val_builder(a);

	VAL_EACH_MEMBER(m, val_get(plugin, capabilities)) {
		struct val v = val_member(call->capabilities, m->key);
		if (val_as_bool(m->val) && val_exists(v))
			val_add_member(&given, m->key, v);
	}
	plugin = val_with(a, plugin, val_of_str(net->name), name);
	plugin = val_with(a, plugin, val_of_str(net->version), cniVersion);
	if (given.n)
		plugin = val_with(a, plugin, val_end_object(&given), runtimeConfig);
	VAL_EACH_MEMBER(m, more)
		plugin = val_put(a, plugin, m->key, m->val);
	return plugin;
}

int cni_execute_failure(struct arena *a, str out, str errors, struct process_status status, struct err *err)
{
	CLEANUP(buf_done) struct buf how = BUF_INIT(64), quoted = BUF_INIT(4096);
	struct val v = VAL_EMPTY;

	out = str_trim(out);
	errors = str_trim(errors);
	if (status.signal)
		buf_addf(&how, "signal: %d", status.signal);
	else
		buf_addf(&how, "exit status %d", status.exit_code);
	if (out.n && json_decode(a, arena_str(a, out), &(struct json_decode_options){ 0 }, &v, NULL) == 0 &&
	    val_is(v, VAL_OBJECT)) {
		str msg = val_str(v, msg), details = val_str(v, details);
		return err_set(err, ERR_INTERNAL, STR_FMT "%s" STR_FMT, STR_ARG(msg), details.n ? "; " : "", STR_ARG(details));
	}
	buf_add_quoted(&quoted, str_head(out.n ? out : errors, 300));
	if (out.n)
		return err_set(err, ERR_INTERNAL, "netplugin failed but error parsing its diagnostic message %s: %s",
			       quoted.p, how.p);
	if (errors.n)
		return err_set(err, ERR_INTERNAL, "netplugin failed: %s: %s", quoted.p, how.p);
	return err_set(err, ERR_INTERNAL, "netplugin failed with no error message: %s", how.p);
}

static int run(struct cni *c, struct arena *a, const char *command, str type, const struct cni_call *call, str input,
	       struct process_output *out, struct err *err)
{
	const char *path;
	bool own;
	int r = cni_execute_find(c, a, type, &path, &own, err);

	if (r < 0)
		return r;
	const char *argv[] = { own ? arena_str(a, type).p : path, NULL };
	struct process_spec spec = { .argv = argv, .path = path, .env = environment(c, a, command, call), .group = true };
	for (int i = 0;; i++) {
		struct err e = ERR_INIT;
		DEADLINE_SCOPE(PLUGIN_TIMEOUT_MS);
		r = process_run(&spec, input, CNI_FILE_MAX, out, &e);
		/* It is being installed at this moment. */
		if (r < 0 && e.sys == ETXTBSY && i < BUSY_TRIES) {
			process_output_done(out);
			if ((r = fiber_sleep_ms(BUSY_WAIT_MS, err)) < 0)
				return r;
			continue;
		}
		if (r < 0 && err)
			*err = e;
		break;
	}
	if (r == -ERR_TIMEOUT)
		return err_set(err, ERR_TIMEOUT, "netplugin did not end in time and was killed");
	if (r < 0)
		return r;
	if (out->status.exit_code)
		return cni_execute_failure(a, buf_str(&out->out), buf_str(&out->err), out->status, err);
	if (out->err.n)
		log_info("plugin says", KV("plugin", type), KV("text", str_trim(buf_str(&out->err))));
	return 0;
}

int cni_execute_result(struct arena *a, str version, str text, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(4096);
	struct val v;

	if (json_decode(a, arena_str(a, text), &(struct json_decode_options){ 0 }, &v, err) < 0) {
		buf_add_quoted(&quoted, str_head(str_trim(text), 300));
		return err_wrap(err, -ERR_INTERNAL, "failed to unmarshal raw result %s", quoted.p);
	}
	if (val_is_nil(v))
		v = VAL_EMPTY_OBJECT;
	/* One that does not say has the version of the configuration. */
	return result_convert(a, v, version, version, ret, err);
}

int cni_execute_plugin(struct cni *c, struct arena *a, const char *command, const struct cni_config *net, struct val plugin,
		       const struct cni_call *call,
		   struct val more, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf input = BUF_INIT(4 * CNI_FILE_MAX);
	CLEANUP(process_output_done) struct process_output out = { 0 };
	int r = json_encode(&input, config_for(a, net, plugin, call, more), &(struct json_encode_options){ .plain = true }, err);

	if (r < 0 || (r = run(c, a, command, val_str(plugin, type), call, buf_str(&input), &out, err)) < 0)
		return r;
	return ret ? cni_execute_result(a, net->version, buf_str(&out.out), ret, err) : 0;
}

/* ---- versions ---- */

/* The versions that a plugin speaks, as a list. */
static int versions_of(struct cni *c, struct arena *a, str type, struct val *ret, struct err *err)
{
	static const struct cni_call nothing = { .netns = STR_INIT("dummy"), .ifname = STR_INIT("dummy") };
	CLEANUP(process_output_done) struct process_output out = { 0 };
	const char *path;
	struct val v;
	bool own;
	int r = cni_execute_find(c, a, type, &path, &own, err);

	if (r < 0)
		return r;
	if (own) {
		struct val_builder known = val_builder(a);
		for (size_t i = 0; cni_versions[i]; i++)
			val_add_item(&known, val_of_str(str_of(cni_versions[i])));
		*ret = val_end_list(&known);
		return 0;
	}
	r = run(c, a, "VERSION", type, &nothing, STR("{\"cniVersion\":\"" CNI_VERSION "\"}"), &out, err);

	if (r < 0)
		return r;
	if ((r = json_decode(a, arena_str(a, buf_str(&out.out)), &(struct json_decode_options){ 0 }, &v, err)) < 0)
		return err_wrap(err, r, "decoding version info");
	*ret = val_get(v, supportedVersions);
	return 0;
}

static bool list_has(struct val list, str text)
{
	VAL_EACH(v, list)
		if (str_eq(val_as_str(*v), text))
			return true;
	return false;
}

int cni_execute_agree(struct cni *c, struct arena *a, struct cni_config *net, struct err *err)
{
	struct val wanted = net->versions, *spoken;
	size_t n = 0;
	int r;

	if (!val_len(wanted))
		return 0;
	if (c->agreed_for && str_eq(str_of(c->agreed_for), net->text)) {
		net->version = arena_str(a, str_of(c->agreed));
		return 0;
	}
	spoken = ARENA_ARRAY(a, struct val, val_len(net->plugins));
	VAL_EACH(p, net->plugins)
		if ((r = versions_of(c, a, val_str(*p, type), &spoken[n++], err)) < 0)
			return r;
	for (size_t i = 0; cni_versions[i]; i++) {
		str version = str_of(cni_versions[i]);
		bool all = list_has(wanted, version) || str_eq(version, net->version);
		for (size_t k = 0; k < n; k++)
			all = all && list_has(spoken[k], version);
		if (all)
			net->version = version;
	}
	mem_freep(&c->agreed_for);
	mem_freep(&c->agreed);
	c->agreed_for = cni_copy(net->text);
	c->agreed = cni_copy(net->version);
	return 0;
}
