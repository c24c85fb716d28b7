/*
 * Files and flags of a kubelet become one configuration. The steps are Kubernetes', since their order shows: a file gets its defaults
 * before drop-in files are merged over it, and flags come last, over whole lists and maps (except for feature gates).
 */
#include "kubelet/config.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/config_priv.h"
#include "machinery/patch.h"

enum { CONFIG_MAX = 4 << 20, JSON_MAX = 16 << 20, FOLDER_DEPTH_MAX = 32 };

#define CONFIG_TYPE TYPE(kubeletconfig_v1beta1, KubeletConfiguration)

int64_t config_duration_ns(struct val text)
{
	int64_t ns = 0;

	return val_is(text, VAL_STRING) && duration_parse(val_as_str(text), &ns, NULL) == 0 ? ns : 0;
}

/* ---- reading ---- */

/* As Go says it: "open /a/b: no such file or directory". */
static const char *go_error(struct arena *a, const char *call, const char *path, const struct err *err)
{
	if (!err->sys)
		return arena_str(a, err_str(err)).p;
	char *text = (char *)(uintptr_t)arena_printf(a, "%s %s: %s", call, path, strerror(err->sys)).p;
	char *reason = text + strlen(text) - strlen(strerror(err->sys));
	if (*reason >= 'A' && *reason <= 'Z')
		*reason = (char)(*reason + 'a' - 'A');
	return text;
}

static int read_whole(struct arena *a, const char *path, const char *what, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	struct err cause = ERR_INIT;

	if (file_read(path, &text, &cause) < 0)
		return err_set(err, cause.code, "failed to read %s \"%s\", error: %s", what, path, go_error(a, "open", path, &cause));
	if (!text.n)
		return err_set(err, ERR_BAD_REQUEST, "kubelet config file \"%s\" was empty", path);
	*ret = arena_str(a, buf_str(&text));
	return 0;
}

/* The file as a free tree. What a strict reader says about keys that occur twice is added to `strict`. */
static int decode_free(struct arena *a, str text, struct strict_errors *strict, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX), duplicates = BUF_INIT(4096);
	int r = yaml_to_json(text, &json, &duplicates, err);

	if (r < 0)
		return r;
	r = json_decode(a, arena_str(a, buf_str(&json)), &(const struct json_decode_options){ .sort_keys = true }, ret, err);
	if (r < 0)
		return r;
	if (!val_str(*ret, kind).n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'Kind' is missing in '" STR_FMT "'", STR_ARG(str_head(text, 200)));
	if (!val_str(*ret, apiVersion).n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'apiVersion' is missing in '" STR_FMT "'", STR_ARG(str_head(text, 200)));
	if (duplicates.n)
		strict->text[strict->n++] = arena_str(a, buf_str(&duplicates));
	return 0;
}

/* logging.flushFrequency is a number of nanoseconds or a duration; the schema has an object around it. */
static struct val wrap_flush(struct arena *a, struct val config)
{
	struct val v = val_get(config, logging, flushFrequency);
	char out[DURATION_TEXT_MAX];

	if (val_is(v, VAL_INT))
		v = VAL_STR(arena_str(a, duration_format(v.i, out)));
	if (!val_is(v, VAL_STRING))
		return config;
	return val_with(a, config, OBJECT(a, F(Duration, v)), logging, flushFrequency);
}

/* ---- flags ---- */

/* The members of `over` replace those of config; objects of the schema are gone into, which is as deep as it is. */
static struct val lay_over(struct arena *a, struct val config, struct val over, const struct type *type)
{
	VAL_EACH_MEMBER(m, over) {
		const struct field *f = type_field(type, m->key);
		struct val there = val_member(config, m->key), v = m->val;
		if (f && f->kind == KIND_MESSAGE && f->shape == SHAPE_ONE)
			v = lay_over(a, there, m->val, f->type);
		if (m->key == A_featureGates) {
			v = there;
			VAL_EACH_MEMBER(gate, m->val)
				v = val_put(a, v, gate->key, gate->val);
		}
		config = val_put(a, config, m->key, v);
	}
	return config;
}

/* ---- the file ---- */

static int check_kind(struct arena *a, struct val v, struct err *err)
{
	str kind = val_str(v, kind), version = val_str(v, apiVersion);
	const struct type *type = schema_kind(version, kind);

	if (type == CONFIG_TYPE)
		return 0;
	if (type && str_starts(version, STR("kubelet.config.k8s.io/")))
		return err_set(err, ERR_BAD_REQUEST, "failed to cast object to KubeletConfiguration, unexpected type: " STR_FMT
			       ", Kind=" STR_FMT, STR_ARG(type_api_version(a, type)), STR_ARG(kind));
	return err_set(err, ERR_BAD_REQUEST, "failed to decode: no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
		       STR_ARG(kind), STR_ARG(version));
}

/* Fields that are not known or occur twice are told about; Kubernetes goes on, too. */
static void warn_of(const struct strict_errors *strict, const char *path)
{
	struct err err = ERR_INIT;

	if (strict_errors_fail(strict, &err) < 0)
		log_warn("Using lenient decoding as strict decoding failed", KV("path", path), KV("err", &err));
}

static struct val resolve_path(struct arena *a, struct val config, str folder, const atom *at, size_t n)
{
	str path = val_as_str(val_path(config, at, n));

	if (!path.n || path.p[0] == '/')
		return config;
	return val_put_path(a, config, at, n, VAL_STR(path_clean(a, arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(path)))));
}

/* Paths in the file are relative to it. */
static struct val resolve_paths(struct arena *a, struct val config, str file)
{
	static const atom client_ca[] = { A_authentication, A_x509, A_clientCAFile };
	static const atom plain[] = { A_staticPodPath, A_tlsCertFile, A_tlsPrivateKeyFile, A_resolvConf, A_volumePluginDir, A_podLogsDir };
	str folder = str_head(file, (size_t)MAX(str_rchr(file, '/'), (ptrdiff_t)0));

	config = resolve_path(a, config, folder, client_ca, ARRAY_LEN(client_ca));
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		config = resolve_path(a, config, folder, &plain[i], 1);
	return config;
}

static int check_gates(struct arena *a, struct val config, struct err *err)
{
	struct config_errors *e = ARENA_NEW(a, struct config_errors);

	e->arena = a;
	config_check_gates(e, val_get(config, featureGates));
	return e->n ? err_set(err, ERR_INVALID, STR_FMT, STR_ARG(e->text[0])) : 0;
}

/* A typed tree with defaults, from a free one. Some of these depend on gates, those of flags included. */
static int complete(struct arena *a, struct val given, struct val flags, struct strict_errors *strict, struct val *ret, struct err *err)
{
	bool allocatable = !val_is_nil(val_get(given, enforceNodeAllocatable)), eviction = !val_is_nil(val_get(given, evictionHard));
	struct val v;
	int r = val_canonical(a, wrap_flush(a, given), CONFIG_TYPE, strict, &v, err);

	if (r < 0)
		return err_wrap(err, r, "failed to decode");
	v = lay_over(a, v, OBJECT(a, F(featureGates, val_get(flags, featureGates))), CONFIG_TYPE);
	if ((r = check_gates(a, v, err)) < 0 || (r = config_set_defaults(a, v, allocatable, &v, err)) < 0)
		return r;
	return config_set_eviction(a, v, eviction, ret, err);
}

static int load_file(struct arena *a, str path, struct val flags, struct val *ret, struct err *err)
{
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	struct err cause = ERR_INIT;
	struct val v;
	str text;
	int r = read_whole(a, path.p, "kubelet config file", &text, err);

	strict->arena = a;
	if (r < 0)
		return r;
	if ((r = decode_free(a, text, strict, &v, &cause)) < 0)
		return err_set(err, cause.code, "failed to decode: %s", cause.msg);
	if ((r = check_kind(a, v, err)) < 0 || (r = complete(a, v, flags, strict, &v, err)) < 0)
		return r;
	warn_of(strict, path.p);
	*ret = resolve_paths(a, v, path);
	return 0;
}

/* ---- drop-in files ---- */

static int load_drop_in(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	struct val v, typed;
	str text;
	int r = read_whole(a, path_absolute(a, path).p, "drop-in kubelet config file", &text, err);

	strict->arena = a;
	if (r < 0 || (r = decode_free(a, text, strict, &v, err)) < 0 || (r = strict_errors_fail(strict, err)) < 0)
		return r;
	if (schema_kind(val_str(v, apiVersion), val_str(v, kind)) != CONFIG_TYPE)
		return err_set(err, ERR_BAD_REQUEST, "unknown apiVersion/kind: " STR_FMT ", Kind=" STR_FMT, STR_ARG(val_str(v, apiVersion)),
			       STR_ARG(val_str(v, kind)));
	/* What is wrong with the types of values is an error of the whole, below; this is for the names. */
	*ret = wrap_flush(a, v);
	if (val_canonical(a, *ret, CONFIG_TYPE, strict, &typed, NULL) == 0)
		warn_of(strict, path);
	return 0;
}

static int merge_file(struct arena *a, const char *path, struct val *config, struct err *err)
{
	struct err cause = ERR_INIT;
	struct val patch;
	int r = load_drop_in(a, path, &patch, &cause);

	if (r < 0 && str_starts(err_str(&cause), STR("unknown apiVersion/kind")))
		return err_set(err, cause.code, "failed to load kubelet dropin file, path: %s, %s", path, cause.msg);
	if (r < 0)
		return err_set(err, cause.code, "failed to load kubelet dropin file, path: %s, error: %s", path, cause.msg);
	r = merge_patch_apply(a, *config, patch, config, err);
	return r < 0 ? err_wrap(err, r, "failed to merge drop-in and current config") : 0;
}

static int by_name(const struct dirent **x, const struct dirent **y) { return strcmp((*x)->d_name, (*y)->d_name); }

static int is_shown(const struct dirent *e) { return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0; }

/* Files and folders in the order of their names; links to folders are not followed. */
static int merge_folder(struct arena *a, const char *path, unsigned depth, struct val *config, struct err *err)
{
	struct dirent **entries;
	struct err cause = ERR_INIT;
	struct stat st;
	int r = 0, n;

	if (lstat(path, &st) < 0) {
		err_sys(&cause, errno, "lstat");
		return err_set(err, cause.code, "%s", go_error(a, "lstat", path, &cause));
	}
	if (!S_ISDIR(st.st_mode))
		return str_ends(str_of(path), STR(".conf")) ? merge_file(a, path, config, err) : 0;
	if (depth == FOLDER_DEPTH_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s is more than %d folders deep", path, FOLDER_DEPTH_MAX);
	if ((n = scandir(path, &entries, is_shown, by_name)) < 0) {
		err_sys(&cause, errno, "open");
		return err_set(err, cause.code, "%s", go_error(a, "open", path, &cause));
	}
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = merge_folder(a, arena_printf(a, "%s/%s", path, entries[i]->d_name).p, depth + 1, config, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int load_folder(struct arena *a, const char *folder, struct val *config, struct err *err)
{
	struct val v;
	int r = patch_document(a, *config, CONFIG_TYPE, &v, err);

	if (r < 0)
		return r;
	if ((r = merge_folder(a, folder, 0, &v, err)) < 0)
		return err_wrap(err, r, "failed to walk through kubelet dropin directory \"%s\"", folder);
	if ((r = val_canonical(a, v, CONFIG_TYPE, NULL, &v, err)) < 0)
		return err_wrap(err, r, "failed to unmarshal merged JSON into kubelet configuration");
	if ((r = check_gates(a, v, err)) < 0)
		return r;
	return config_set_defaults(a, v, false, config, err);
}

/* ---- all of it ---- */

static int load_base(struct arena *a, const char *file, struct val flags, struct val *ret, struct err *err)
{
	struct err cause = ERR_INIT;

	if (!file || !file[0])
		return complete(a, VAL_EMPTY_OBJECT, flags, NULL, ret, err);
	if (load_file(a, path_absolute(a, file), flags, ret, &cause) < 0)
		return err_set(err, cause.code, "failed to load kubelet config file, path: %s, error: failed to load Kubelet config file %s, "
			       "error %s", file, file, cause.msg);
	return 0;
}

static bool has_unified_cgroups(void)
{
	struct statfs fs;

	return statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

int kubelet_config_load(const char *file, const char *folder, struct val flags, struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v;
	int r;

	if ((r = load_base(&a, file, flags, &v, err)) < 0)
		return r;
	if (folder && folder[0] && (r = load_folder(&a, folder, &v, err)) < 0)
		return err_wrap(err, r, "failed to merge kubelet configs");
	v = val_with(&a, v, VAL_LIT("kubelet.config.k8s.io/v1beta1"), apiVersion);
	v = val_with(&a, v, VAL_LIT("KubeletConfiguration"), kind);
	v = lay_over(&a, v, wrap_flush(&a, flags), CONFIG_TYPE);
	if ((r = val_canonical(&a, v, CONFIG_TYPE, NULL, &v, err)) < 0)
		return err_wrap(err, r, "failed to precedence kubeletConfigFlag");
	if ((r = config_check(v, has_unified_cgroups(), err)) < 0)
		return err_wrap(err, r, "failed to validate kubelet configuration, error");
	*ret = val_freeze(v);
	return 0;
}
