/*
 * crictl.yaml: what is true of all calls on a machine, so that nobody has to say it each time. What the command line says comes first,
 * then the environment, then this file. `crictl config` shows and changes it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cmd/crictl.h"
#include "codec/codec.h"

#define ENDPOINT_DEFAULT "unix:///run/c8s/runtime/cri.sock"
#define FILE_DEFAULT "/etc/crictl.yaml"

enum { FILE_MAX = 1 << 20, TIMEOUT_DEFAULT_MS = 120 * 1000 };

enum { RUNTIME_ENDPOINT, IMAGE_ENDPOINT, TIMEOUT, DEBUG, PULL_ON_CREATE, NO_PULL_ON_RUN, SETTINGS };

static const struct {
	const char *name;
	enum { TEXT, NUMBER, BOOL } kind;
} settings[SETTINGS] = {
	[RUNTIME_ENDPOINT] = { "runtime-endpoint", TEXT },
	[IMAGE_ENDPOINT] = { "image-endpoint", TEXT },
	[TIMEOUT] = { "timeout", NUMBER },
	[DEBUG] = { "debug", BOOL },
	[PULL_ON_CREATE] = { "pull-image-on-create", BOOL },
	[NO_PULL_ON_RUN] = { "disable-pull-on-run", BOOL },
};

struct values {
	str of[SETTINGS]; /* as they are written; empty: not said */
};

static const char *file_name(const struct crictl *c)
{
	const char *given = getenv("CRI_CONFIG_FILE");

	return c->config ? c->config : given && *given ? given : FILE_DEFAULT;
}

static int setting_find(str name)
{
	for (int i = 0; i < SETTINGS; i++)
		if (str_eq(name, str_of(settings[i].name)))
			return i;
	return -1;
}

static bool is_valid(int i, str value)
{
	int64_t n;

	if (settings[i].kind == NUMBER)
		return str_to_i64(value, &n);
	return settings[i].kind == TEXT || str_eq(value, STR("true")) || str_eq(value, STR("false"));
}

/* (-ERR_NOT_FOUND: there is no such file) */
static int values_read(struct crictl *c, const char *file, struct values *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX), json = BUF_INIT(FILE_MAX);
	struct json_decode_options free_tree = { 0 };
	struct arena *a = &c->arena;
	struct val v;
	int r = file_read(file, &text, err);

	*ret = (struct values){ 0 };
	if (r < 0)
		return r;
	if ((r = yaml_to_json(buf_str(&text), &json, NULL, err)) < 0 ||
	    (r = json_decode(a, arena_str(a, buf_str(&json)), &free_tree, &v, err)) < 0)
		return err_wrap(err, r, "load config file %s", file);
	VAL_EACH_MEMBER(m, v) {
		int i = setting_find(atom_str(m->key));
		struct val one = m->val;
		if (i < 0)
			continue; /* of another version */
		ret->of[i] = val_is(one, VAL_INT)    ? arena_printf(a, "%lld", (long long)val_as_int(one))
			     : val_is(one, VAL_BOOL) ? val_as_bool(one) ? STR("true") : STR("false")
						     : val_as_str(one);
		if (ret->of[i].n && !is_valid(i, ret->of[i]))
			return err_set(err, ERR_BAD_REQUEST, "load config file %s: %s cannot be '" STR_FMT "'", file, settings[i].name,
				       STR_ARG(ret->of[i]));
	}
	return 0;
}

static int values_write(const char *file, const struct values *v, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);

	for (int i = 0; i < SETTINGS; i++) {
		str value = v->of[i];
		buf_addf(&b, "%s: ", settings[i].name);
		if (settings[i].kind == TEXT)
			json_quote(&b, value, true); /* which is YAML as well */
		else
			buf_add(&b, value.n ? value : settings[i].kind == NUMBER ? STR("0") : STR("false"));
		buf_addc(&b, '\n');
	}
	return file_write(file, buf_str(&b), 0600, err);
}

static const char *first_of(struct crictl *c, const char *given, const char *variable, str setting)
{
	const char *from_env = getenv(variable);

	if (given)
		return given;
	if (from_env && *from_env)
		return from_env;
	return setting.n ? arena_str(&c->arena, setting).p : NULL;
}

int crictl_settings_load(struct crictl *c, struct err *err)
{
	struct values v;
	int64_t seconds;
	int r = values_read(c, file_name(c), &v, err);

	if (r == -ERR_NOT_FOUND && !c->config)
		r = 0; /* it need not be there */
	if (r < 0)
		return r;
	c->endpoint = first_of(c, c->endpoint, "CONTAINER_RUNTIME_ENDPOINT", v.of[RUNTIME_ENDPOINT]);
	c->image_endpoint = first_of(c, c->image_endpoint, "IMAGE_SERVICE_ENDPOINT", v.of[IMAGE_ENDPOINT]);
	if (!c->endpoint)
		c->endpoint = ENDPOINT_DEFAULT;
	if (c->timeout_ms <= 0 && str_to_i64(v.of[TIMEOUT], &seconds) && seconds > 0 && seconds < INT32_MAX)
		c->timeout_ms = seconds * 1000;
	if (c->timeout_ms <= 0)
		c->timeout_ms = TIMEOUT_DEFAULT_MS;
	c->debug |= str_eq(v.of[DEBUG], STR("true"));
	c->pull_on_create = str_eq(v.of[PULL_ON_CREATE], STR("true"));
	c->no_pull_on_run = str_eq(v.of[NO_PULL_ON_RUN], STR("true"));
	return 0;
}

/* ---- crictl config ---- */

static int change(struct values *v, str name, str value, struct err *err)
{
	int i = setting_find(name);

	if (i < 0)
		return err_set(err, ERR_BAD_REQUEST, "no configuration option named " STR_FMT, STR_ARG(name));
	if (!is_valid(i, value))
		return err_set(err, ERR_BAD_REQUEST, "%s cannot be '" STR_FMT "'", settings[i].name, STR_ARG(value));
	v->of[i] = value;
	return 0;
}

/* name=value,name=value */
static int change_several(struct values *v, str pairs, struct err *err)
{
	int r = 0;

	while (r == 0 && pairs.n) {
		str pair, name, value;
		(void)str_cut(pairs, ',', &pair, &pairs);
		if (!str_cut(pair, '=', &name, &value))
			return err_set(err, ERR_BAD_REQUEST, "incorrectly specified option: " STR_FMT, STR_ARG(pair));
		r = change(v, name, value, err);
	}
	return r;
}

static str shown(const struct values *v, int i)
{
	return v->of[i].n || settings[i].kind == TEXT ? v->of[i] : settings[i].kind == NUMBER ? STR("0") : STR("false");
}

static void show_all(struct crictl *c, const struct values *v)
{
	static const char *const heading[] = { "KEY", "VALUE" };
	struct table t;

	table_init(&t, &c->arena, ARRAY_LEN(heading), heading);
	for (int i = 0; i < SETTINGS; i++)
		table_add(&t, (const char *const[]){ settings[i].name, crictl_text(&c->arena, shown(v, i)) });
	table_print(&t);
}

int crictl_config(struct crictl *c, struct err *err)
{
	const char *file = file_name(c);
	struct values v;
	int r = values_read(c, file, &v, err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	if (c->get) {
		int i = setting_find(str_of(c->get));
		if (i < 0)
			return err_set(err, ERR_BAD_REQUEST, "no configuration option named %s", c->get);
		printf(STR_FMT "\n", STR_ARG(shown(&v, i)));
		return 0;
	}
	if (c->list) {
		show_all(c, &v);
		return 0;
	}
	if (!c->set.n && c->n != 2)
		return err_set(err, ERR_BAD_REQUEST, "say --list, --get NAME, --set NAME=VALUE or NAME VALUE");
	r = c->set.n ? 0 : change(&v, str_of(c->arguments[0]), str_of(c->arguments[1]), err);
	for (size_t i = 0; i < c->set.n && r == 0; i++)
		r = change_several(&v, str_of(c->set.item[i]), err);
	return r < 0 ? r : values_write(file, &v, err);
}
