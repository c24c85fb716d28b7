#include "cni/plugin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cni/cni.h"
#include "cni/netns.h"
#include "cni/result.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { CONFIG_MAX = 4 << 20 };

static const struct plugin_ops *const plugins[] = { &plugin_bridge, &plugin_host_local, &plugin_loopback, &plugin_portmap,
						    &plugin_ptp };

const struct plugin_ops *plugin_find(str name)
{
	for (size_t i = 0; i < ARRAY_LEN(plugins); i++)
		if (str_eq(name, str_of(plugins[i]->name)))
			return plugins[i];
	return NULL;
}

int plugin_fail(struct plugin *p, enum cni_code code, struct err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str message = arena_vprintf(p->arena, fmt, ap);
	va_end(ap);
	p->code = code;
	return err_set(err, ERR_INVALID, STR_FMT, STR_ARG(message));
}

/* ---- configuration ---- */

static int wrong_type(struct plugin *p, const char *name, const char *want, struct err *err)
{
	return plugin_fail(p, CNI_DECODING_FAILURE, err, "failed to load netconf: \"%s\" must be %s", name, want);
}

int plugin_bool(struct plugin *p, const char *name, bool *ret, struct err *err)
{
	struct val v = val_find(p->config, str_of(name));

	if (val_is_nil(v))
		return 0;
	if (!val_is(v, VAL_BOOL))
		return wrong_type(p, name, "true or false", err);
	*ret = v.b;
	return 0;
}

int plugin_int(struct plugin *p, const char *name, int64_t least, int64_t most, int64_t *ret, struct err *err)
{
	struct val v = val_find(p->config, str_of(name));

	if (val_is_nil(v))
		return 0;
	if (!val_is(v, VAL_INT))
		return wrong_type(p, name, "a whole number", err);
	if (v.i < least || v.i > most)
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "\"%s\" is %lld, but must be between %lld and %lld", name,
				   (long long)v.i,
				   (long long)least, (long long)most);
	*ret = v.i;
	return 0;
}

int plugin_str(struct plugin *p, const char *name, str *ret, struct err *err)
{
	struct val v = val_find(p->config, str_of(name));

	if (val_is_nil(v))
		return 0;
	if (!val_is(v, VAL_STRING))
		return wrong_type(p, name, "a string", err);
	*ret = val_as_str(v);
	return 0;
}

int plugin_refuse(struct plugin *p, const char *name, struct err *err)
{
	if (val_is_zero(val_find(p->config, str_of(name))))
		return 0;
	return plugin_fail(p, CNI_UNSUPPORTED_FIELD, err, "\"%s\" is not supported by this plugin", name);
}

str plugin_arg(const struct plugin *p, str key)
{
	str rest = str_of(p->args), pair, name, value;

	while (rest.n) {
		(void)str_cut(rest, ';', &pair, &rest);
		if (str_cut(pair, '=', &name, &value) && str_eq(name, key))
			return value;
	}
	return STR_NONE;
}

struct rules_owner plugin_owner(const struct plugin *p)
{
	return (struct rules_owner){ p->network, p->id, p->ifname };
}

int plugin_valid(struct plugin *p, struct rules_owner **ret, size_t *ret_n, struct err *err)
{
	struct val list = val_get(p->config, cni_dev_valid_attachments);

	/* The specification had another name for it at first. */
	if (val_is_nil(list))
		list = val_get(p->config, cni_dev_attachments);
	if (!val_is(list, VAL_LIST))
		return plugin_fail(p, CNI_INVALID_CONFIG, err, "\"cni.dev/valid-attachments\" is missing: refusing to remove everything");
	*ret = ARENA_ARRAY(p->arena, struct rules_owner, list.n + 1);
	*ret_n = 0;
	VAL_EACH(v, list) {
		str id = val_str(*v, containerID), ifname = val_str(*v, ifname);
		(*ret)[(*ret_n)++] = (struct rules_owner){ p->network, arena_str(p->arena, id).p, arena_str(p->arena, ifname).p };
	}
	return 0;
}

int plugin_load(struct plugin *p, str text, struct err *err)
{
	struct val name, version, prev;

	p->text = text;
	if (json_decode(p->arena, text, &(struct json_decode_options){ 0 }, &p->config, err) < 0) {
		p->code = CNI_DECODING_FAILURE;
		return err_wrap(err, -ERR_INVALID, "error unmarshall network config");
	}
	name = val_get(p->config, name);
	version = val_get(p->config, cniVersion);
	if (!val_is(p->config, VAL_OBJECT) || (val_exists(name) && !val_is(name, VAL_STRING)) ||
	    (val_exists(version) && !val_is(version, VAL_STRING)))
		return plugin_fail(p, CNI_DECODING_FAILURE, err, "error unmarshall network config: it must be an object with a name and a cniVersion");
	p->network = arena_str(p->arena, val_as_str(name)).p;
	p->version = val_as_str(version).n ? val_as_str(version) : STR("0.1.0");
	if (cni_check_network(val_as_str(name), err) < 0) {
		p->code = CNI_INVALID_CONFIG;
		return -ERR_INVALID;
	}
	if (!cni_version_known(p->version))
		return plugin_fail(p, CNI_INCOMPATIBLE_VERSION, err, "incompatible CNI versions; config is \"" STR_FMT "\", plugin supports %s to %s",
				   STR_ARG(p->version), cni_versions[0], CNI_VERSION);
	prev = val_get(p->config, prevResult);
	if (val_is_nil(prev))
		return 0;
	if (result_convert(p->arena, prev, p->version, STR(CNI_VERSION), &p->prev, err) < 0) {
		p->code = CNI_DECODING_FAILURE;
		return err_wrap(err, -ERR_INVALID, "could not parse prevResult");
	}
	return 0;
}

/* ---- the environment ---- */

enum { ADD = 1, CHECK = 2, DEL = 4, GC = 8, STATUS = 16, VERSION = 32 };

static const struct {
	const char *name, *since;
	unsigned bit;
} commands[] = {
	{ "ADD", "0.1.0", ADD }, { "CHECK", "0.4.0", CHECK }, { "DEL", "0.1.0", DEL }, { "GC", "1.1.0", GC },
	{ "STATUS", "1.1.0", STATUS },
	{ "VERSION", "0.1.0", VERSION },
};

static const char *env(const char *name)
{
	const char *v = getenv(name);
	return v ? v : "";
}

static int check_names(struct plugin *p, struct err *err)
{
	if (cni_check_id(str_of(p->id), err) == 0 && cni_check_ifname(str_of(p->ifname), err) == 0)
		return 0;
	p->code = CNI_INVALID_ENVIRONMENT;
	return -ERR_INVALID;
}

static int load_environment(struct plugin *p, unsigned *ret_command, struct err *err)
{
	static const unsigned attached = ADD | CHECK | DEL;
	const struct {
		const char *name, **value;
		unsigned needed;
	} vars[] = {
		{ "CNI_CONTAINERID", &p->id, attached }, { "CNI_NETNS", &p->netns, ADD | CHECK },
		{ "CNI_IFNAME", &p->ifname, attached },
		{ "CNI_ARGS", &p->args, 0 }, { "CNI_PATH", &p->path, attached | GC | STATUS },
	};
	CLEANUP(buf_done) struct buf missing = BUF_INIT(256);

	*ret_command = 0;
	p->command = env("CNI_COMMAND");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(str_of(p->command), str_of(commands[i].name)))
			*ret_command = commands[i].bit;
	if (!*p->command)
		return plugin_fail(p, CNI_INVALID_ENVIRONMENT, err, "required env variables [CNI_COMMAND] missing");
	if (!*ret_command)
		return plugin_fail(p, CNI_INVALID_ENVIRONMENT, err, "unknown CNI_COMMAND: %s", p->command);
	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		*vars[i].value = env(vars[i].name);
		if (!**vars[i].value && vars[i].needed & *ret_command)
			buf_addf(&missing, "%s%s", missing.n ? "," : "", vars[i].name);
	}
	if (missing.n)
		return plugin_fail(p, CNI_INVALID_ENVIRONMENT, err, "required env variables [%s] missing", missing.p);
	return *ret_command & attached ? check_names(p, err) : 0;
}

static int read_config(struct buf *b, struct err *err)
{
	for (;;) {
		char *room = buf_reserve(b, 4096);
		if (!room)
			return buf_check(b, "the configuration", err);
		ssize_t n = read(STDIN_FILENO, room, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "error reading from stdin");
		if (n == 0)
			return 0;
		buf_commit(b, (size_t)n);
	}
}

static int check_version(struct plugin *p, unsigned command, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (commands[i].bit == command && cni_version_cmp(p->version, str_of(commands[i].since)) < 0)
			return plugin_fail(p, CNI_INCOMPATIBLE_VERSION, err, "config version does not allow %s", commands[i].name);
	return 0;
}

/* A plugin that changed the namespace it is called in would cut off the node. */
static int check_netns(struct plugin *p, struct err *err)
{
	const char *override = env("CNI_NETNS_OVERRIDE");

	if (!*p->netns || strcasecmp(override, "true") == 0 || str_eq(str_of(override), STR("1")))
		return 0;
	int theirs = netns_open(p->netns, NULL), own = netns_open_own(NULL);
	bool same = theirs >= 0 && own >= 0 && netns_same(theirs, own);
	if (theirs >= 0)
		close(theirs);
	if (own >= 0)
		close(own);
	return same ? plugin_fail(p, CNI_INVALID_NETNS, err, "plugin's netns and netns from CNI_NETNS should not be the same") : 0;
}

/* ---- answers ---- */

static void print(struct val v)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(CONFIG_MAX);

	(void)json_encode(&out, v, &(struct json_encode_options){ .indent = 4, .plain = true }, NULL);
	buf_addc(&out, '\n');
	(void)fwrite(out.p, 1, out.n, stdout);
}

static int print_error(struct plugin *p, const struct err *err)
{
	print(OBJECT(p->arena, F(cniVersion, val_of_str(p->version.n ? p->version : STR(CNI_VERSION))),
		     F(code, val_of_int(p->code ? p->code : CNI_INTERNAL)), F(msg, val_of_str(err_str(err)))));
	return 1;
}

static int print_versions(struct arena *a)
{
	struct val_builder list = val_builder(a);

	for (size_t i = 0; cni_versions[i]; i++)
		val_add_item(&list, val_of_str(str_of(cni_versions[i])));
	print(OBJECT(a, F(cniVersion, VAL_LIT(CNI_VERSION)), F(supportedVersions, val_end_list(&list))));
	return 0;
}

static int run_add(const struct plugin_ops *ops, struct plugin *p, struct err *err)
{
	struct val result, converted;
	int r = check_netns(p, err);

	if (r < 0 || (r = ops->add(p, &result, err)) < 0 ||
	    (r = result_convert(p->arena, result, STR(CNI_VERSION), p->version, &converted, err)) < 0)
		return r;
	print(converted);
	return 0;
}

static int run(const struct plugin_ops *ops, struct plugin *p, unsigned command, struct err *err)
{
	int (*const step)(struct plugin *, struct err *) = command == CHECK ? ops->check : command == GC ? ops->gc : ops->status;
	int r;

	if ((r = check_version(p, command, err)) < 0)
		return r;
	if (command == ADD)
		return run_add(ops, p, err);
	if (command == DEL)
		return (r = check_netns(p, err)) < 0 ? r : ops->del(p, err);
	return step ? step(p, err) : 0;
}

int plugin_main(const struct plugin_ops *ops)
{
	CLEANUP(arena_done) struct arena arena = ARENA_INIT;
	CLEANUP(buf_done) struct buf config = BUF_INIT(CONFIG_MAX);
	struct plugin p = { .arena = &arena };
	struct err err = ERR_INIT;
	unsigned command;

	if (load_environment(&p, &command, &err) < 0) {
		if (!*p.command)
			fprintf(stderr, "CNI plugin %s of c8s\nCNI protocol versions supported: %s to %s\n", ops->name,
				cni_versions[0], CNI_VERSION);
		return print_error(&p, &err);
	}
	if (command == VERSION)
		return print_versions(&arena);
	if (read_config(&config, &err) < 0) {
		p.code = CNI_IO_FAILURE;
		return print_error(&p, &err);
	}
	if (plugin_load(&p, buf_str(&config), &err) < 0 || run(ops, &p, command, &err) < 0)
		return print_error(&p, &err);
	return 0;
}

int cni_plugin_main(const char *name)
{
	const struct plugin_ops *ops = plugin_find(str_of(name));
	return ops ? plugin_main(ops) : -1;
}
