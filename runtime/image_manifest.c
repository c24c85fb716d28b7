/* Manifests and indexes, of Docker (schema 2) and OCI: what they name, and which part is for this machine. */
#include <sys/utsname.h>

#include "codec/atoms.h"
#include "codec/json.h"
#include "runtime/image_priv.h"

static struct {
	const char *machine;
	str arch, variant;
} const machines[] = {
	{ "x86_64", STR_INIT("amd64"), STR_INIT("") }, { "aarch64", STR_INIT("arm64"), STR_INIT("v8") },
	{ "armv7l", STR_INIT("arm"), STR_INIT("v7") }, { "armv6l", STR_INIT("arm"), STR_INIT("v6") },
	{ "ppc64le", STR_INIT("ppc64le"), STR_INIT("") }, { "s390x", STR_INIT("s390x"), STR_INIT("") },
	{ "riscv64", STR_INIT("riscv64"), STR_INIT("") }, { "loongarch64", STR_INIT("loong64"), STR_INIT("") },
	{ "i686", STR_INIT("386"), STR_INIT("") },
};

static size_t this_machine(void)
{
	struct utsname u;
	if (uname(&u) == 0)
		for (size_t i = 0; i < ARRAY_LEN(machines); i++)
			if (strcmp(u.machine, machines[i].machine) == 0)
				return i;
	return 0;
}

str image_architecture(void) { return machines[this_machine()].arch; }

static int read_descriptor(struct val v, struct descriptor *ret, struct err *err)
{
	*ret = (struct descriptor){ val_str(v, mediaType), val_str(v, digest), val_int(v, size) };
	if (!digest_is_valid(ret->digest))
		return err_set(err, ERR_INVALID, "invalid digest \"" STR_FMT "\": only sha256 is supported", STR_ARG(str_head(ret->digest, 100)));
	if (ret->size < 0)
		return err_set(err, ERR_INVALID, "content " STR_FMT " has a negative size", STR_ARG(ret->digest));
	return 0;
}

/*
 * How well an entry of an index fits, lower is better; -1: not at all. An entry that does not say is the last resort, and so is
 * one for a later generation of the processor than the plain one.
 */
static int fit(struct val entry)
{
	size_t self = this_machine();
	struct val platform = val_get(entry, platform);
	str arch = val_str(platform, architecture), variant = val_str(platform, variant);
	if (!val_is(platform, VAL_OBJECT))
		return 100;
	if (!str_eq(val_str(platform, os), STR("linux")) || !str_eq(arch, machines[self].arch))
		return -1;
	if (str_eq(variant, machines[self].variant) || !variant.n)
		return variant.n ? 0 : 1;
	if (str_eq(arch, STR("arm"))) /* v6 runs on v7, not the other way round */
		return str_cmp(variant, machines[self].variant) < 0 ? 10 - (variant.p[variant.n - 1] - '0') : -1;
	return str_eq(variant, STR("v1")) ? 2 : 50;
}

bool image_platform_fits(struct val entry) { return fit(entry) >= 0; }

static int choose(struct val list, struct image_manifest *ret, struct err *err)
{
	const struct val *best = NULL;
	int best_fit = 0;
	VAL_EACH(entry, list) {
		int f = fit(*entry);
		if (f >= 0 && (!best || f < best_fit))
			best = entry, best_fit = f;
	}
	if (!best)
		return err_set(err, ERR_NOT_FOUND, "no match for platform in manifest: not found");
	return read_descriptor(*best, &ret->child, err);
}

static int read_manifest(struct arena *a, struct val v, struct image_manifest *ret, struct err *err)
{
	struct val layers = val_get(v, layers);
	if (val_len(layers) > IMAGE_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "the manifest has %u layers, more than %d", (unsigned)val_len(layers), IMAGE_LAYERS_MAX);
	int r = read_descriptor(val_get(v, config), &ret->config, err);
	if (r == 0 && ret->config.size > IMAGE_CONFIG_MAX)
		return err_set(err, ERR_INVALID, "the configuration of the image has more than %d bytes", IMAGE_CONFIG_MAX);
	ret->layers = ARENA_ARRAY(a, struct descriptor, val_len(layers));
	VAL_EACH(layer, layers)
		if (r == 0)
			r = read_descriptor(*layer, &ret->layers[ret->n_layers++], err);
	return r;
}

int image_manifest_parse(struct arena *a, str text, str media_type, struct image_manifest *ret, struct err *err)
{
	struct image_manifest m = { 0 };
	struct val v;
	int r = json_decode(a, text, &(struct json_decode_options){ 0 }, &v, err);
	if (r < 0)
		return err_wrap(err, -ERR_INVALID, "the manifest is not JSON");
	if (!val_is(v, VAL_OBJECT))
		return err_set(err, ERR_INVALID, "the manifest is not an object");
	m.media_type = val_has(v, mediaType) ? val_str(v, mediaType) : media_type;
	if (val_int(v, schemaVersion) == 1 || str_starts(m.media_type, STR("application/vnd.docker.distribution.manifest.v1+")))
		return err_set(err, ERR_INVALID, "media type \"application/vnd.docker.distribution.manifest.v1+prettyjws\" is no longer"
			       " supported, please rebuild the image as \"" MEDIA_DOCKER_MANIFEST "\" or \"" MEDIA_OCI_MANIFEST "\"");
	m.index = val_has(v, manifests);
	/* A text that could be read as either is somebody's trick. */
	if (m.index == (val_has(v, config) || val_has(v, layers)))
		return err_set(err, ERR_INVALID, "the manifest is neither of an image nor an index (media type \"" STR_FMT "\")",
			       STR_ARG(str_head(m.media_type, 100)));
	bool said_index = str_eq(m.media_type, STR(MEDIA_DOCKER_LIST)) || str_eq(m.media_type, STR(MEDIA_OCI_INDEX));
	bool said_manifest = str_eq(m.media_type, STR(MEDIA_DOCKER_MANIFEST)) || str_eq(m.media_type, STR(MEDIA_OCI_MANIFEST));
	if ((said_index && !m.index) || (said_manifest && m.index))
		return err_set(err, ERR_INVALID, "the manifest is not what its media type says: " STR_FMT, STR_ARG(m.media_type));
	if (!said_index && !said_manifest)
		m.media_type = m.index ? STR(MEDIA_OCI_INDEX) : STR(MEDIA_OCI_MANIFEST);
	r = m.index ? choose(val_get(v, manifests), &m, err) : read_manifest(a, v, &m, err);
	if (r == 0)
		*ret = m;
	return r;
}

int image_diff_ids(struct arena *a, struct val config, size_t n_layers, const str **ret, struct err *err)
{
	struct val list = val_get(config, rootfs, diff_ids);
	if (val_len(list) != n_layers)
		return err_set(err, ERR_INVALID, "mismatched image rootfs and manifest layers");
	str *ids = ARENA_ARRAY(a, str, n_layers);
	for (size_t i = 0; i < n_layers; i++) {
		ids[i] = val_as_str(val_at(list, i));
		if (!digest_is_valid(ids[i]))
			return err_set(err, ERR_INVALID, "the image has a wrong diff id");
	}
	*ret = ids;
	return 0;
}

static struct val descriptor_val(struct arena *a, const struct descriptor *d)
{
	return OBJECT(a, F(mediaType, VAL_STR(d->media_type)), F(digest, VAL_STR(d->digest)), F(size, val_of_int(d->size)));
}

int image_manifest_make(struct buf *b, const struct descriptor *config, const struct descriptor *layers, size_t n, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder list = val_builder(&a);
	for (size_t i = 0; i < n; i++)
		val_add_item(&list, descriptor_val(&a, &layers[i]));
	struct val v = OBJECT(&a, F(schemaVersion, val_of_int(2)), F(mediaType, VAL_LIT(MEDIA_OCI_MANIFEST)),
			      F(config, descriptor_val(&a, config)), F(layers, val_end_list(&list)));
	return json_encode(b, v, &(struct json_encode_options){ .plain = true }, err);
}
