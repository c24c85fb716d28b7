/*
 * Volumes whose files come from objects: configMap on the disk, all others in memory. What is missing is an error unless it is
 * optional; a projected volume tells all its errors at once.
 */
#include "base/encoding.h"
#include "codec/atoms.h"
#include "kubelet/volume_priv.h"

enum { ERRORS_MAX = 8, PRIVATE_MODE = 0600 };

void volume_files_add(struct volume_files *f, str path, str data, mode_t mode, int64_t uid)
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 16;
		struct volume_file *more = ARENA_ARRAY(f->arena, struct volume_file, cap);
		if (f->n)
			memcpy(more, f->files, f->n * sizeof *more);
		f->files = more;
		f->cap = cap;
	}
	f->files[f->n++] = (struct volume_file){ path, data, mode, uid };
}

/* ---- configMap and secret ---- */

/* An object with data: where its values are, and how a missing key is told. */
struct object_kind {
	const char *noun, *missing_key;
	atom plain, encoded;             /* 0: none */
	int (*get)(const struct cri_lookups *l, struct arena *a, str namespace, str name, struct val *ret, struct err *err);
};

static int get_config_map(const struct cri_lookups *l, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	return l->config_map(l->arg, a, namespace, name, ret, err);
}

static int get_secret(const struct cri_lookups *l, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	return l->secret(l->arg, a, namespace, name, ret, err);
}

static const struct object_kind config_map_kind = { "configmap", "configmap references non-existent config key", A_data, A_binaryData,
						    get_config_map };
static const struct object_kind secret_kind = { "secret", "references non-existent secret key", 0, A_data, get_secret };

static int decode(struct arena *a, struct val text, str *ret, struct err *err)
{
	str in = val_as_str(text);
	char *out = arena_alloc(a, base64_decoded_max(in.n) + 1, 1);
	size_t n = 0;
	int r = base64_decode(out, in, &n, err);

	*ret = str_span(out, n);
	return r;
}

static int add_all(struct volume_setup *s, const struct object_kind *k, struct val object, mode_t mode, struct err *err)
{
	str data;

	if (k->plain)
		VAL_EACH_MEMBER(m, val_member(object, k->plain))
			volume_files_add(&s->content, atom_str(m->key), val_as_str(m->val), mode, -1);
	VAL_EACH_MEMBER(m, val_member(object, k->encoded)) {
		int r = decode(s->arena, m->val, &data, err);
		if (r < 0)
			return r;
		volume_files_add(&s->content, atom_str(m->key), data, mode, -1);
	}
	return 0;
}

static int add_item(struct volume_setup *s, const struct object_kind *k, struct val object, struct val item, mode_t mode, bool optional,
		    struct err *err)
{
	str key = val_str(item, key), data;
	struct val plain = k->plain ? val_find(val_member(object, k->plain), key) : VAL_EMPTY;
	struct val encoded = val_find(val_member(object, k->encoded), key);
	int r = 0;

	if (val_exists(plain))
		data = val_as_str(plain);
	else if (val_exists(encoded))
		r = decode(s->arena, encoded, &data, err);
	else
		return optional ? 0 : err_set(err, ERR_NOT_FOUND, "%s: " STR_FMT, k->missing_key, STR_ARG(key));
	if (r == 0)
		volume_files_add(&s->content, val_str(item, path), data, val_has(item, mode) ? (mode_t)val_int(item, mode) : mode, -1);
	return r;
}

static int add_object(struct volume_setup *s, const struct object_kind *k, str name, struct val source, mode_t mode, struct err *err)
{
	bool optional = val_bool(source, optional);
	struct val object = VAL_EMPTY, items = val_get(source, items);
	int r = k->get(&volumes_options(s->all)->lookups, s->arena, val_str(s->pod, metadata, namespace), name, &object, err);

	if (r == -ERR_NOT_FOUND && optional)
		object = VAL_EMPTY;
	else if (r == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "%s \"" STR_FMT "\" not found", k->noun, STR_ARG(name));
	else if (r < 0)
		return r;
	if (!val_len(items))
		return add_all(s, k, object, mode, err);
	VAL_EACH(item, items)
		if ((r = add_item(s, k, object, *item, mode, optional, err)) < 0)
			return r;
	return 0;
}

static int default_mode(struct val source, mode_t *ret, struct err *err)
{
	if (!val_has(source, defaultMode))
		return err_set(err, ERR_INVALID, "no defaultMode used, not even the default value for it");
	*ret = (mode_t)val_int(source, defaultMode);
	return 0;
}

static int prepare_config_map(struct volume_setup *s, struct err *err)
{
	mode_t mode;
	int r = default_mode(s->source, &mode, err);

	return r < 0 ? r : add_object(s, &config_map_kind, val_str(s->source, name), s->source, mode, err);
}

static int prepare_secret(struct volume_setup *s, struct err *err)
{
	mode_t mode;
	int r = default_mode(s->source, &mode, err);

	return r < 0 ? r : add_object(s, &secret_kind, val_str(s->source, secretName), s->source, mode, err);
}

/* ---- downwardAPI ---- */

static int add_downward(struct volume_setup *s, struct val items, mode_t mode, struct err *err)
{
	const struct kubelet_node *n = volumes_options(s->all)->node;

	VAL_EACH(item, items) {
		struct val resource = val_get(*item, resourceFieldRef);
		str text = STR_NONE;
		int r = 0;
		if (val_has(*item, fieldRef))
			r = pod_field_value(n, s->arena, s->pod, VAL_EMPTY, val_get(*item, fieldRef), &text, err);
		else if (val_exists(resource))
			r = container_resource_value(n, s->arena, s->pod, VAL_EMPTY, resource, &text, err);
		if (r < 0)
			return r;
		volume_files_add(&s->content, val_str(*item, path), text,
				 val_has(*item, mode) ? (mode_t)val_int(*item, mode) : mode, -1);
	}
	return 0;
}

static int prepare_downward(struct volume_setup *s, struct err *err)
{
	mode_t mode;
	int r = default_mode(s->source, &mode, err);

	return r < 0 ? r : add_downward(s, val_get(s->source, items), mode, err);
}

/* ---- projected ---- */

/* Files that only the pod's user should read, when we know who that is. */
static void add_private(struct volume_setup *s, str path, str data, mode_t mode)
{
	bool owned = s->fs_user >= 0 || s->fs_group >= 0;
	volume_files_add(&s->content, path, data, owned ? PRIVATE_MODE : mode, s->fs_user);
}

static int add_token(struct volume_setup *s, struct val source, mode_t mode, struct err *err)
{
	str token;
	int r = volume_token(s->all, s->arena, s->pod, source, &token, err);

	if (r == 0)
		add_private(s, val_str(source, path), token, mode);
	return r;
}

static int add_trust_bundle(struct volume_setup *s, struct val source, mode_t mode, struct err *err)
{
	const struct volumes_options *o = volumes_options(s->all);
	str pem = STR_NONE;

	if (!val_has(source, name) && !val_has(source, signerName))
		return err_set(err, ERR_INVALID, "ClusterTrustBundle projection requires either name or signerName to be set");
	if (!o->trust_bundle)
		return err_set(err, ERR_INVALID, "ClusterTrustBundle projection is not supported in static kubelet mode");
	int r = o->trust_bundle(o->arg, s->arena, source, &pem, err);
	if (r == -ERR_NOT_FOUND && val_bool(source, optional))
		r = 0;
	if (r == 0)
		add_private(s, val_str(source, path), pem, mode);
	return r;
}

static int add_source(struct volume_setup *s, struct val source, mode_t mode, struct err *err)
{
	if (val_has(source, secret))
		return add_object(s, &secret_kind, val_str(source, secret, name), val_get(source, secret), mode, err);
	if (val_has(source, configMap))
		return add_object(s, &config_map_kind, val_str(source, configMap, name), val_get(source, configMap), mode, err);
	if (val_has(source, downwardAPI))
		return add_downward(s, val_get(source, downwardAPI, items), mode, err);
	if (val_has(source, serviceAccountToken))
		return add_token(s, val_get(source, serviceAccountToken), mode, err);
	if (val_has(source, clusterTrustBundle))
		return add_trust_bundle(s, val_get(source, clusterTrustBundle), mode, err);
	return 0;
}

/* All of them, each text once: one as it is, several as [a, b]. */
static int tell_all(struct arena *a, const str *texts, size_t n, int r, struct err *err)
{
	str all = texts[0];

	for (size_t i = 1; i < n; i++)
		all = arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(all), STR_ARG(texts[i]));
	return err_set(err, (enum err_code)-r, n > 1 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(all));
}

static int prepare_projected(struct volume_setup *s, struct err *err)
{
	struct err one = ERR_INIT;
	str texts[ERRORS_MAX];
	size_t n = 0;
	mode_t mode;
	int failed = default_mode(s->source, &mode, err);

	if (failed < 0)
		return failed;
	VAL_EACH(source, val_get(s->source, sources)) {
		int r = add_source(s, *source, mode, &one);
		if (r == -ERR_CANCELED || r == -ERR_TIMEOUT)
			return err_set(err, (enum err_code)-r, "%s", one.msg);
		if (r == 0 || n == ERRORS_MAX)
			continue;
		str text = err_str(&one);
		size_t same = 0;
		while (same < n && !str_eq(texts[same], text))
			same++;
		if (same == n)
			texts[n++] = arena_str(s->arena, text);
		failed = r;
	}
	return n ? tell_all(s->arena, texts, n, failed, err) : 0;
}

/* ---- on the node ---- */

static int own_content(void *arg, struct err *err) { return volume_own(arg, err); }

static int write_content(struct volume_setup *s, int r, struct err *err)
{
	if (r == 0)
		r = volume_make_nested(s, err);
	return r < 0 ? r : volume_atomic_write(s->volume->path, &s->content, own_content, s, err);
}

static int set_up_on_disk(struct volume_setup *s, struct err *err) { return write_content(s, volume_make_disk(s, err), err); }

static int set_up_in_memory(struct volume_setup *s, struct err *err)
{
	return write_content(s, volume_make_memory(s, VAL_EMPTY, err), err);
}

const struct volume_kind volume_kind_config_map = { .folder = "kubernetes.io~configmap", .managed = true, .readonly = true,
						    .content = true, .prepare = prepare_config_map, .set_up = set_up_on_disk };
const struct volume_kind volume_kind_secret = { .folder = "kubernetes.io~secret", .managed = true, .readonly = true, .content = true,
						.prepare = prepare_secret, .set_up = set_up_in_memory };
const struct volume_kind volume_kind_downward = { .folder = "kubernetes.io~downward-api", .managed = true, .readonly = true,
						  .content = true, .prepare = prepare_downward, .set_up = set_up_in_memory };
const struct volume_kind volume_kind_projected = { .folder = "kubernetes.io~projected", .managed = true, .readonly = true,
						   .content = true, .prepare = prepare_projected, .set_up = set_up_in_memory };
