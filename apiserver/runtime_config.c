/*
 * From weak to strong: what Kubernetes serves by default, api/all, api/ga, api/beta, api/alpha, a version, a resource of a
 * version. Of two values for one key the last counts.
 */
#include "apiserver/runtime_config.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

struct setting {
	struct setting *next;
	str key, value;
	bool on;
};

struct runtime_config {
	struct arena arena;
	struct setting *settings;
};

/* ---- versions ---- */

static bool skip_digits(str *s)
{
	size_t n = 0;

	while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
		n++;
	*s = str_skip(*s, n);
	return n > 0;
}

/* Whether the version is v1 (stage ""), v1beta1 or v1alpha1. */
static bool version_is(str version, str stage)
{
	if (!str_starts(version, STR("v")))
		return false;
	version = str_skip(version, 1);
	if (!skip_digits(&version) || !str_starts(version, stage))
		return false;
	version = str_skip(version, stage.n);
	return (stage.n == 0 || skip_digits(&version)) && version.n == 0;
}

static const struct {
	str key, stage;
	bool any;
} sets[] = {
	{ STR_INIT("api/all"), STR_INIT(""), true },
	{ STR_INIT("api/ga"), STR_INIT(""), false },
	{ STR_INIT("api/beta"), STR_INIT("beta"), false },
	{ STR_INIT("api/alpha"), STR_INIT("alpha"), false },
};

static bool names_set(str key)
{
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (str_eq(key, sets[i].key))
			return true;
	return false;
}

static bool has_group(str group)
{
	for (size_t i = 0; i < schema_n_api_versions; i++)
		if (str_eq(schema_api_versions[i].group, group))
			return true;
	return false;
}

static bool has_version(str group, str version)
{
	for (size_t i = 0; i < schema_n_api_versions; i++)
		if (str_eq(schema_api_versions[i].group, group) && str_eq(schema_api_versions[i].version, version))
			return true;
	return false;
}

/* ---- parsing ---- */

static struct setting *find(const struct runtime_config *c, str key)
{
	for (struct setting *s = c->settings; s; s = s->next)
		if (str_eq(s->key, key))
			return s;
	return NULL;
}

/* The core group may be written in several ways; its one name is "/v1". */
static str canonical_key(str key)
{
	if (str_eq(key, STR("v1")) || str_starts(key, STR("v1/")) || str_eq(key, STR("api/v1")) ||
	    str_starts(key, STR("api/v1/")))
		return STR("/v1");
	return key;
}

static void set(struct runtime_config *c, str pair)
{
	str key, value;

	str_cut(pair, '=', &key, &value);
	key = canonical_key(str_trim(key));
	if (str_eq(key, STR("api/legacy")))
		return;
	struct setting *s = find(c, key);
	if (!s) {
		s = ARENA_NEW(&c->arena, struct setting);
		s->key = arena_str(&c->arena, key);
		s->next = c->settings;
		c->settings = s;
	}
	s->value = arena_str(&c->arena, str_trim(value));
}

/* Go's ParseBool; empty is true. */
static int parse_value(struct setting *s, struct err *err)
{
	static const str yes[] = { STR_INIT(""), STR_INIT("1"), STR_INIT("t"), STR_INIT("T"), STR_INIT("true"),
				   STR_INIT("TRUE"), STR_INIT("True") };
	static const str no[] = { STR_INIT("0"), STR_INIT("f"), STR_INIT("F"), STR_INIT("false"), STR_INIT("FALSE"),
				  STR_INIT("False") };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (str_eq(s->value, yes[i])) {
			s->on = true;
			return 0;
		}
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (str_eq(s->value, no[i]))
			return 0;
	return err_set(err, ERR_BAD_REQUEST,
		       "invalid value of " STR_FMT ": " STR_FMT ", err: strconv.ParseBool: parsing \"" STR_FMT
		       "\": invalid syntax", STR_ARG(s->key), STR_ARG(s->value), STR_ARG(s->value));
}

static int check_set(struct setting *s, struct err *err)
{
	s->on = str_eq(s->value, STR("true"));
	if (!s->on && !str_eq(s->value, STR("false")))
		return err_set(err, ERR_BAD_REQUEST, "invalid value " STR_FMT "=" STR_FMT, STR_ARG(s->key), STR_ARG(s->value));
	return 0;
}

static int check(struct setting *s, struct err *err)
{
	str group, version, resource, rest;

	if (names_set(s->key))
		return check_set(s, err);
	bool two = str_cut(s->key, '/', &group, &rest);
	str_cut(rest, '/', &version, &resource);
	if (!two || str_chr(resource, '/') >= 0)
		return err_set(err, ERR_BAD_REQUEST, "runtime-config invalid key " STR_FMT, STR_ARG(s->key));
	str shown = group.n ? str_head(s->key, group.n + 1 + version.n) : version;
	if (!has_group(group))
		return err_set(err, ERR_BAD_REQUEST, "unknown api groups " STR_FMT, STR_ARG(shown));
	if (!has_version(group, version))
		return err_set(err, ERR_BAD_REQUEST, "group version " STR_FMT " that has not been registered", STR_ARG(shown));
	for (size_t i = 0; i < resource.n; i++)
		if (resource.p[i] >= 'A' && resource.p[i] <= 'Z')
			return err_set(err, ERR_BAD_REQUEST,
				       "invalid key " STR_FMT ": group/version/resource and resource is always lowercase "
				       "plural, not \"" STR_FMT "\"", STR_ARG(s->key), STR_ARG(resource));
	return parse_value(s, err);
}

static int parse(struct runtime_config *c, const char *const *values, struct err *err)
{
	int r;

	for (size_t i = 0; values && values[i]; i++) {
		str rest = str_of(values[i]), pair;
		while (rest.n) {
			str_cut(rest, ',', &pair, &rest);
			if (pair.n)
				set(c, pair);
		}
	}
	const struct setting *first = c->settings;
	if (first && !first->next && str_eq(first->key, STR("api/all")) && str_eq(first->value, STR("false")))
		return err_set(err, ERR_BAD_REQUEST, "invalid runtime-config with only api/all=false");
	for (struct setting *s = c->settings; s; s = s->next)
		if ((r = check(s, err)) < 0)
			return r;
	return 0;
}

int runtime_config_parse(const char *const *values, struct runtime_config **ret, struct err *err)
{
	struct runtime_config *c = mem_zalloc(sizeof(*c));

	arena_init(&c->arena);
	int r = parse(c, values, err);
	if (r < 0)
		runtime_config_free(c);
	else
		*ret = c;
	return r;
}

void runtime_config_free(struct runtime_config *c)
{
	if (!c)
		return;
	arena_done(&c->arena);
	free(c);
}

/* ---- asking ---- */

int runtime_config_get(const struct runtime_config *c, str key)
{
	const struct setting *s = find(c, key);
	return s ? s->on : -1;
}

bool runtime_config_served(const struct resource *r, void *arg)
{
	const struct runtime_config *c = arg;
	bool on = r->flags & RESOURCE_DEFAULT;
	str name, subresource;

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		int given = runtime_config_get(c, sets[i].key);
		if (given >= 0 && (sets[i].any || version_is(r->version, sets[i].stage)))
			on = given;
	}
	str_cut(r->name, '/', &name, &subresource);
	for (const struct setting *s = c->settings; s; s = s->next) {
		str group, version, resource, rest;
		if (names_set(s->key))
			continue;
		str_cut(s->key, '/', &group, &rest);
		str_cut(rest, '/', &version, &resource);
		if (!str_eq(group, r->group) || !str_eq(version, r->version))
			continue;
		if (resource.n && str_eq(resource, name))
			return s->on;
		if (!resource.n)
			on = s->on;
	}
	return on;
}
