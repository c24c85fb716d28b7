#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/credential_provider.h"
#include "machinery/field_error.h"
#include "machinery/names.h"

enum { CONFIG_MAX = 4 << 20, JSON_MAX = 16 << 20 };

#define GROUP "kubelet.config.k8s.io/"

static const str api_versions[] = {
	STR_INIT("credentialprovider.kubelet.k8s.io/v1"), STR_INIT("credentialprovider.kubelet.k8s.io/v1alpha1"),
	STR_INIT("credentialprovider.kubelet.k8s.io/v1beta1"), { NULL, 0 },
};

/* ---- reading ---- */

static const char *reason_of(int sys)
{
	return sys == ENOENT ? "no such file or directory" : sys == EACCES ? "permission denied" : strerror(sys);
}

static int decode(struct arena *a, str text, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX), duplicates = BUF_INIT(4096);
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	struct val v;
	int r = yaml_to_json(text, &json, &duplicates, err);

	strict->arena = a;
	if (r < 0 || (r = json_decode(a, arena_str(a, buf_str(&json)), &(struct json_decode_options){ .sort_keys = true }, &v, err)) < 0)
		return r;
	str kind = val_str(v, kind), version = val_str(v, apiVersion);
	if (!kind.n || !version.n)
		return err_set(err, ERR_BAD_REQUEST, "Object '%s' is missing in '" STR_FMT "'", kind.n ? "apiVersion" : "Kind",
			       STR_ARG(str_head(text, 200)));
	const struct type *type = schema_kind(version, kind);
	if (!type || !str_starts(version, STR(GROUP)))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"", STR_ARG(kind),
			       STR_ARG(version));
	if (!str_eq(kind, STR("CredentialProviderConfig")))
		return err_set(err, ERR_BAD_REQUEST, "failed to decode \"" STR_FMT "\" (wrong Kind)", STR_ARG(kind));
	if (duplicates.n)
		strict->text[strict->n++] = arena_str(a, buf_str(&duplicates));
	if ((r = val_canonical(a, v, type, strict, ret, err)) < 0)
		return r;
	return strict_errors_fail(strict, err);
}

/* Adds the providers of one file. */
static int add_file(struct arena *a, const char *path, struct val *all, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_MAX);
	struct err cause = ERR_INIT;
	struct val v;
	int r = file_read(path, &text, &cause);

	if (r < 0 && cause.sys)
		return err_set(err, cause.code, "unable to read file \"%s\": open %s: %s", path, path, reason_of(cause.sys));
	if (r < 0 || (r = decode(a, arena_str(a, buf_str(&text)), &v, &cause)) < 0)
		return err_set(err, cause.code, "error decoding config \"%s\": %s", path, cause.msg);
	VAL_EACH(provider, val_get(v, providers)) {
		VAL_EACH(other, *all)
			if (str_eq(val_str(*other, name), val_str(*provider, name)))
				return err_set(err, ERR_INVALID, "duplicate provider name \"" STR_FMT "\" found in configuration file(s)",
					       STR_ARG(val_str(*provider, name)));
		*all = val_list_append(a, *all, *provider);
	}
	return 0;
}

static int is_config(const struct dirent *e)
{
	str name = str_of(e->d_name);

	return e->d_type != DT_DIR && (str_ends(name, STR(".json")) || str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")));
}

static int by_name(const struct dirent **x, const struct dirent **y) { return strcmp((*x)->d_name, (*y)->d_name); }

static int add_folder(struct arena *a, const char *path, struct val *all, struct err *err)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_config, by_name), r = 0;

	if (n < 0)
		return err_set(err, ERR_SYSTEM, "unable to read directory \"%s\": open %s: %s", path, path, reason_of(errno));
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = add_file(a, arena_printf(a, "%s/%s", path, entries[i]->d_name).p, all, err);
		free(entries[i]);
	}
	free(entries);
	return n ? r : err_set(err, ERR_INVALID, "no configuration files found in directory \"%s\"", path);
}

/* ---- checks ---- */

static void check_name(struct field_errors *e, const struct field_path *at, str name)
{
	if (str_chr(name, '/') >= 0)
		field_invalid(e, at, VAL_STR(name), "provider name cannot contain '/'");
	if (str_chr(name, ' ') >= 0)
		field_invalid(e, at, VAL_STR(name), "provider name cannot contain spaces");
	if (str_eq(name, STR(".")) || str_eq(name, STR("..")))
		field_invalid(e, at, VAL_STR(name), "provider name cannot be '" STR_FMT "'", STR_ARG(name));
}

static bool list_has(struct val list, size_t n, str word)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(val_as_str(val_at(list, i)), word))
			return true;
	return false;
}

static void check_keys(struct field_errors *e, const struct field_path *at, struct val keys)
{
	for (size_t i = 0; i < val_len(keys); i++) {
		struct name_errors wrong;
		str key = val_as_str(val_at(keys, i)), lower = arena_str(e->arena, key);
		for (char *p = (char *)(uintptr_t)lower.p; *p; p++)
			*p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 'a' - 'A' : *p);
		size_t n = name_check_label_key(lower, &wrong);
		for (size_t k = 0; k < n; k++)
			field_invalid(e, at, VAL_STR(key), STR_FMT, STR_ARG(wrong.text[k]));
		if (list_has(keys, i, key))
			field_duplicate(e, at, VAL_STR(key));
	}
}

/* Keys that are both required and optional, as Go prints such a list. */
static void check_both(struct field_errors *e, const struct field_path *at, struct val required, struct val optional)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(65536);

	VAL_EACH(key, required)
		if (list_has(optional, val_len(optional), val_as_str(*key))) {
			buf_add(&b, b.n ? STR(", ") : STR("[]string{"));
			buf_add_quoted(&b, val_as_str(*key));
		}
	if (b.n)
		field_error_add(e, FIELD_ERROR_INVALID, at, FIELD_VALUE_OMITTED, STR_FMT "}: annotation keys cannot be both required and optional",
				STR_ARG(buf_str(&b)));
}

static void check_token(struct field_errors *e, const struct field_path *at, struct val provider, bool tokens)
{
	static const str types[] = { STR_INIT("ServiceAccount"), STR_INIT("Token"), { NULL, 0 } };
	struct val t = val_get(provider, tokenAttributes), require = val_get(t, requireServiceAccount);
	struct val required = val_get(t, requiredServiceAccountAnnotationKeys), optional = val_get(t, optionalServiceAccountAnnotationKeys);
	str type = val_str(t, cacheType);

	if (!tokens)
		field_forbidden(e, at, "tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is "
				"disabled");
	if (!val_str(t, serviceAccountTokenAudience).n)
		field_required(e, FIELD(at, "serviceAccountTokenAudience"), "%s", "");
	if (!val_exists(require))
		field_required(e, FIELD(at, "requireServiceAccount"), "%s", "");
	if (!str_eq(val_str(provider, apiVersion), api_versions[0]))
		field_forbidden(e, at, "tokenAttributes is only supported for " STR_FMT " API version", STR_ARG(api_versions[0]));
	if (val_is(require, VAL_BOOL) && !require.b && val_len(required))
		field_forbidden(e, FIELD(at, "requiredServiceAccountAnnotationKeys"), "requireServiceAccount cannot be false when "
				"requiredServiceAccountAnnotationKeys is set");
	check_keys(e, FIELD(at, "requiredServiceAccountAnnotationKeys"), required);
	check_keys(e, FIELD(at, "optionalServiceAccountAnnotationKeys"), optional);
	check_both(e, at, required, optional);
	if (!type.n)
		field_required(e, FIELD(at, "cacheType"), "cacheType is required to be set when tokenAttributes is specified. Supported values "
			       "are: ServiceAccount, Token");
	else if (!str_eq(type, types[0]) && !str_eq(type, types[1]))
		field_not_supported(e, FIELD(at, "cacheType"), VAL_STR(type), types);
}

static void check_provider(struct field_errors *e, const struct field_path *at, struct val p, bool tokens)
{
	struct val life = val_get(p, defaultCacheDuration), images = val_get(p, matchImages);
	str version = val_str(p, apiVersion);
	bool known = false;
	int64_t ns = 0;

	check_name(e, FIELD(at, "name"), val_str(p, name));
	for (size_t i = 0; api_versions[i].n; i++)
		known |= str_eq(version, api_versions[i]);
	if (!version.n)
		field_required(e, FIELD(at, "apiVersion"), "%s", "");
	else if (!known)
		field_not_supported(e, FIELD(at, "apiVersion"), VAL_STR(version), api_versions);
	if (!val_len(images))
		field_required(e, FIELD(at, "matchImages"), "at least 1 item in matchImages is required");
	VAL_EACH(image, images)
		if (str_chr(val_as_str(*image), ' ') >= 0)
			field_invalid(e, FIELD(at, "matchImages"), *image, "match image is invalid: parse \"https://" STR_FMT "\": invalid character "
				      "\" \" in host name", STR_ARG(val_as_str(*image)));
	if (!val_exists(life))
		field_required(e, FIELD(at, "defaultCacheDuration"), "%s", "");
	else if (duration_parse(val_as_str(life), &ns, NULL) < 0 || ns < 0)
		field_invalid(e, FIELD(at, "defaultCacheDuration"), life, "must be greater than or equal to 0");
	if (val_has(p, tokenAttributes))
		check_token(e, FIELD(at, "tokenAttributes"), p, tokens);
}

int credential_provider_config(struct arena *a, const char *path, bool tokens, struct val *ret, struct err *err)
{
	struct val all = VAL_EMPTY_LIST;
	struct field_errors e;
	struct stat st;
	int r;

	if (!path || !path[0])
		return err_set(err, ERR_INVALID, "credential provider config path is empty");
	if (stat(path, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, "unable to access path \"%s\": stat %s: %s", path, path, reason_of(errno));
	if ((r = S_ISDIR(st.st_mode) ? add_folder(a, path, &all, err) : add_file(a, path, &all, err)) < 0)
		return r;
	field_errors_init(&e, a);
	if (!val_len(all))
		field_required(&e, FIELD(NULL, "providers"), "at least 1 item in plugins is required");
	VAL_EACH(provider, all)
		check_provider(&e, FIELD(NULL, "providers"), *provider, tokens);
	if (e.n)
		return err_set(err, ERR_INVALID, "failed to validate credential provider config: " STR_FMT, STR_ARG(field_errors_plain(&e)));
	*ret = all;
	return 0;
}
