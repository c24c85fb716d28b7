/* Configuration files, read strictly. */
#include "apiserver/config_file.h"

#include "base/file.h"
#include "codec/atoms.h"
#include "codec/codec.h"

enum { JSON_MAX = 16 << 20 };

static bool is_version(str version)
{
	static const str known[] = { STR_INIT("apiserver.config.k8s.io/v1"), STR_INIT("apiserver.config.k8s.io/v1beta1"),
				     STR_INIT("apiserver.config.k8s.io/v1alpha1") };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(known[i], version))
			return true;
	return false;
}

static int check_kind(struct arena *a, str json, const struct type *type, struct err *err)
{
	struct val v;
	int r = json_decode(a, json, &(const struct json_decode_options){ .sort_keys = true }, &v, err);
	if (r < 0)
		return r;
	str kind = val_str(v, kind), version = val_str(v, apiVersion);
	if (!kind.n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'Kind' is missing in '" STR_FMT "'", STR_ARG(str_head(json, 200)));
	if (!version.n)
		return err_set(err, ERR_BAD_REQUEST, "Object 'apiVersion' is missing in '" STR_FMT "'",
			       STR_ARG(str_head(json, 200)));
	if (!str_eq(kind, type->name) || !is_version(version))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(kind), STR_ARG(version));
	return 0;
}

int config_decode(struct arena *a, str text, const struct type *type, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX), duplicates = BUF_INIT(4096);
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	int r;
	strict->arena = a;
	if ((r = yaml_to_json(text, &json, &duplicates, err)) < 0)
		return r;
	str lasting = arena_str(a, buf_str(&json));
	if ((r = check_kind(a, lasting, type, err)) < 0)
		return r;
	if (duplicates.n)
		return err_set(err, ERR_BAD_REQUEST, "strict decoding error: " STR_FMT, STR_ARG(buf_str(&duplicates)));
	const struct json_decode_options opt = { .type = type, .strict = strict };
	if ((r = json_decode(a, lasting, &opt, ret, err)) < 0)
		return r;
	return strict_errors_fail(strict, err);
}

bool config_is_repeated(struct val list, size_t i, atom member)
{
	str text = val_as_str(val_member(val_at(list, i), member));
	for (size_t j = 0; j < i; j++)
		if (str_eq(val_as_str(val_member(val_at(list, j), member)), text))
			return true;
	return false;
}

/* ---- files ---- */

void config_file_init(struct config_file *f, const char *path)
{
	*f = (struct config_file){ .path = path };
	buf_init(&f->text, CONFIG_FILE_MAX);
}

void config_file_done(struct config_file *f) { buf_done(&f->text); }

int config_file_look(struct config_file *f, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX);
	int r = file_read(f->path, &text, err);
	if (r < 0 || (f->seen && str_eq(buf_str(&text), buf_str(&f->text))))
		return r;
	struct buf before = f->text;
	f->text = text;
	f->seen = true;
	text = before;
	return 1;
}
