#include "scheduler/config.h"

#include <errno.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "scheduler/scheduler.h"

enum { CONFIG_MAX = 4 << 20, JSON_MAX = 16 << 20 };

#define CONFIG_TYPE TYPE(kubeschedulerconfig_v1, KubeSchedulerConfiguration)
#define API_VERSION "kubescheduler.config.k8s.io/v1"

int64_t sched_duration_ns(struct val text)
{
	int64_t ns = 0;

	return val_is(text, VAL_STRING) && duration_parse(val_as_str(text), &ns, NULL) == 0 ? ns : 0;
}

/* ---- the file ---- */

/* "open /x: no such file or directory", as Go says it. */
static int read_text(struct arena *a, const char *path, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	struct err cause = ERR_INIT;

	if (file_read(path, &text, &cause) < 0) {
		if (cause.sys == ENOENT)
			return err_set(err, ERR_NOT_FOUND, "open %s: no such file or directory", path);
		if (cause.sys == EACCES)
			return err_set(err, ERR_SYSTEM, "open %s: permission denied", path);
		*err = cause;
		return -(int)cause.code;
	}
	*ret = arena_str(a, buf_str(&text));
	return 0;
}

static int check_kind(struct val v, str text, struct err *err)
{
	str kind = val_str(v, kind), version = val_str(v, apiVersion);

	if (!kind.n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'Kind' is missing in '" STR_FMT "'", STR_ARG(str_head(text, 300)));
	if (!version.n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'apiVersion' is missing in '" STR_FMT "'", STR_ARG(str_head(text, 300)));
	if (!str_eq(version, STR(API_VERSION)))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\" in scheme "
			       "\"pkg/scheduler/apis/config/scheme/scheme.go:30\"", STR_ARG(kind), STR_ARG(version));
	if (!schema_kind(version, kind))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\" in scheme "
			       "\"pkg/scheduler/apis/config/scheme/scheme.go:30\"", STR_ARG(kind), STR_ARG(version));
	if (schema_kind(version, kind) != CONFIG_TYPE)
		return err_set(err, ERR_BAD_REQUEST, "couldn't decode as KubeSchedulerConfiguration, got " API_VERSION ", Kind=" STR_FMT ": ", STR_ARG(kind));
	return 0;
}

/* A typed tree from YAML or JSON; what is not known or occurs twice is an error. */
static int decode(struct arena *a, str text, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX), duplicates = BUF_INIT(4096);
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	struct val v;
	int r = yaml_to_json(text, &json, &duplicates, err);

	strict->arena = a;
	if (r < 0 || (r = json_decode(a, arena_str(a, buf_str(&json)), &(struct json_decode_options){ .sort_keys = true }, &v, err)) < 0 ||
	    (r = check_kind(v, text, err)) < 0)
		return r;
	if (duplicates.n)
		strict->text[strict->n++] = arena_str(a, buf_str(&duplicates));
	if ((r = val_canonical(a, v, CONFIG_TYPE, strict, ret, err)) < 0)
		return r;
	return strict_errors_fail(strict, err);
}

/* ---- flags ---- */

/* Members of `over` replace; objects are gone into, as deep as the schema is. */
static struct val lay_over(struct arena *a, struct val config, struct val over, const struct type *type)
{
	VAL_EACH_MEMBER(m, over) {
		const struct field *f = type_field(type, m->key);
		bool inside = f && f->kind == KIND_MESSAGE && f->shape == SHAPE_ONE;
		config = val_put(a, config, m->key, inside ? lay_over(a, val_member(config, m->key), m->val, f->type) : m->val);
	}
	return config;
}

/* ---- extenders ---- */

/* Resources that an extender counts instead of the scheduler; VAL_EMPTY: none. */
static struct val ignored_resources(struct arena *a, struct val extenders)
{
	struct val_builder b = val_builder(a);

	VAL_EACH(e, extenders)
		VAL_EACH(m, val_get(*e, managedResources))
			if (val_bool(*m, ignoredByScheduler))
				val_add_item(&b, val_get(*m, name));
	struct val list = val_end_list(&b);
	return val_len(list) ? list : VAL_EMPTY;
}

/* NodeResourcesFit of all profiles leaves them out. */
static struct val ignore_resources(struct arena *a, struct val config)
{
	struct val ignored = ignored_resources(a, val_get(config, extenders)), profiles = val_get(config, profiles);

	for (size_t i = 0; val_exists(ignored) && i < val_len(profiles); i++) {
		struct val p = val_at(profiles, i), list = val_get(p, pluginConfig);
		for (size_t k = 0; k < val_len(list); k++)
			if (str_eq(val_str(val_at(list, k), name), STR("NodeResourcesFit")))
				list = val_list_set(a, list, k, val_with(a, val_at(list, k), ignored, args, ignoredResources));
		profiles = val_list_set(a, profiles, i, val_put(a, p, A_pluginConfig, list));
	}
	return val_put(a, config, A_profiles, profiles);
}

/* ---- all of it ---- */

int scheduler_config_load(const char *path, struct val flags, struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v = VAL_EMPTY_OBJECT;
	str text;
	int r;

	if (path && path[0] && ((r = read_text(&a, path, &text, err)) < 0 || (r = decode(&a, text, &v, err)) < 0))
		return r;
	v = val_with(&a, v, VAL_LIT(API_VERSION), apiVersion);
	v = val_with(&a, v, VAL_LIT("KubeSchedulerConfiguration"), kind);
	if ((r = sched_config_defaults(&a, v, &v, err)) < 0)
		return r;
	v = lay_over(&a, v, flags, CONFIG_TYPE);
	if ((r = val_canonical(&a, v, CONFIG_TYPE, NULL, &v, err)) < 0 || (r = sched_config_check(v, err)) < 0)
		return r;
	*ret = val_freeze(ignore_resources(&a, v));
	return 0;
}
