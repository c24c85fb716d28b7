/* Reading AdmissionConfiguration, with Kubernetes' texts for what is wrong with it. */
#include "apiserver/admission/config.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

enum { FILE_MAX = 4 << 20, JSON_MAX = 64 << 20 };

/* YAML or JSON, as JSON. */
static int read_json(struct arena *a, const char *path, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX);
	int r = file_read(path, &text, err);
	if (r == 0)
		r = yaml_to_json(buf_str(&text), &json, NULL, err);
	*ret = arena_str(a, buf_str(&json));
	return r;
}

static int read_free(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	str json;
	int r = read_json(a, path, &json, err);
	return r < 0 ? r : json_decode(a, json, &(struct json_decode_options){ .sort_keys = true }, ret, err);
}

static int not_registered(struct val v, struct err *err)
{
	return err_set(err, ERR_BAD_REQUEST,
		       "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
		       "\" in scheme \"pkg/server/options/admission.go:51\"",
		       STR_ARG(val_str(v, kind)), STR_ARG(val_str(v, apiVersion)));
}

/* Two plugins had files of their own before there was a kind for them all. */
static bool is_legacy(struct arena *a, str json, struct val *ret)
{
	return json_decode(a, json, &(struct json_decode_options){ .sort_keys = true }, ret, NULL) == 0 &&
	       (val_exists(val_find(*ret, STR("imagePolicy"))) ||
		val_exists(val_find(*ret, STR("podNodeSelectorPluginConfig"))));
}

static int decode(struct arena *a, str json, struct admission_config *ret, struct err *err)
{
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	const struct type *type = NULL;
	struct val v, legacy;
	strict->arena = a;
	int r = json_decode_object(a, json, strict, &v, &type, err);
	bool known = r == 0 && (type == TYPE(apiserver_v1, AdmissionConfiguration) ||
				type == TYPE(apiserver_v1alpha1, AdmissionConfiguration));
	if (!known && is_legacy(a, json, &legacy)) {
		ret->legacy = legacy;
		err_clear(err);
		return 0;
	}
	if (r < 0 || !known)
		return r < 0 ? r : not_registered(v, err);
	ret->plugins = val_get(v, plugins);
	return strict_errors_fail(strict, err);
}

/* Go's words for what the system says begin with a small letter. */
static int cannot_read(const char *path, int sys, struct err *err)
{
	const char *text = strerrordesc_np(sys);
	return err_set(err, ERR_BAD_REQUEST, "unable to read admission control configuration from \"%s\" [open %s: %c%s]", path,
		       path, tolower((unsigned char)text[0]), text + 1);
}

int admission_config_read(struct arena *a, const char *path, struct admission_config *ret, struct err *err)
{
	*ret = (struct admission_config){ .plugins = VAL_EMPTY };
	if (!path)
		return 0;
	str json, file = str_of(path);
	ptrdiff_t slash = str_rchr(file, '/');
	if (access(path, R_OK) < 0)
		return cannot_read(path, errno, err);
	ret->folder = arena_str(a, slash > 0 ? str_head(file, (size_t)slash) : slash == 0 ? STR("/") : STR("."));
	int r = read_json(a, path, &json, err);
	return r < 0 ? r : decode(a, json, ret, err);
}

static bool had_a_file(str plugin)
{
	return str_eq(plugin, STR("ImagePolicyWebhook")) || str_eq(plugin, STR("PodNodeSelector"));
}

int admission_config_of(struct arena *a, const struct admission_config *c, str plugin, struct val *ret, struct err *err)
{
	*ret = had_a_file(plugin) ? c->legacy : VAL_EMPTY;
	VAL_EACH(p, c->plugins) {
		str path = val_str(*p, path);
		if (!str_eq(val_str(*p, name), plugin))
			continue;
		*ret = val_get(*p, configuration);
		if (!val_is_nil(*ret) || !path.n)
			return 0;
		if (path.p[0] != '/')
			path = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(c->folder), STR_ARG(path));
		int r = read_free(a, arena_str(a, path).p, ret, err);
		return r < 0 ? err_wrap(err, r, "Couldn't open admission plugin configuration " STR_FMT, STR_ARG(path)) : 0;
	}
	return 0;
}
