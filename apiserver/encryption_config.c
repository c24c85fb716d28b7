/* The file of --encryption-provider-config: read strictly, checked with Kubernetes' texts, made into transformers. */
#include <openssl/crypto.h>

#include "apiserver/transformer_priv.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/field_error.h"

enum { FILE_MAX = 4 << 20 };

struct group_resource {
	str group, resource;
};

/* What the configuration says about one resource or wildcard. */
struct rule {
	struct rule *next;
	struct group_resource resource;
	struct transformer transformer;
};

struct made_provider {
	struct made_provider *next;
	struct provider provider;
};

struct encryption {
	struct arena arena;
	struct rule *rules;
	struct made_provider *made;
};

/* ---- names of resources ---- */

static const struct group_resource everything = { STR_INIT("*"), STR_INIT("*") };

/* "deployments.apps"; all behind the first dot is the group. */
static struct group_resource parse_resource(str text)
{
	struct group_resource g;
	str_cut(text, '.', &g.resource, &g.group);
	return g;
}

static bool same_resource(struct group_resource a, struct group_resource b)
{
	return str_eq(a.group, b.group) && str_eq(a.resource, b.resource);
}

/* As the user would write it. */
static str resource_text(struct arena *a, struct group_resource g)
{
	if (!g.group.n)
		return str_eq(g.resource, STR("*")) ? STR("*.") : g.resource;
	return arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(g.resource), STR_ARG(g.group));
}

/* ---- checks ---- */

static void check_overlap(struct field_errors *e, const struct field_path *at, struct val names)
{
	bool overlap = false, duplicate = false;

	for (size_t i = 0; i < val_len(names); i++) {
		struct group_resource one = parse_resource(val_as_str(val_at(names, i)));
		for (size_t j = 0; j < val_len(names); j++) {
			struct group_resource other = parse_resource(val_as_str(val_at(names, j)));
			if (i == j)
				continue;
			if (same_resource(one, other) && !duplicate) {
				duplicate = true;
				continue;
			}
			overlap |= same_resource(one, everything) ||
				   (str_eq(one.group, other.group) &&
				    (str_eq(one.resource, STR("*")) || str_eq(other.resource, STR("*"))));
		}
	}
	if (duplicate)
		field_invalid(e, at, names, "the same resource cannot be specified multiple times");
	if (overlap)
		field_invalid(e, at, names,
			      "using overlapping resources such as 'secrets' and '*.' in the same resource list is "
					    "not allowed as they will be masked");
}

static bool has_capital(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= 'A' && s.p[i] <= 'Z')
			return true;
	return false;
}

/* What is wrong with the name of a resource; NULL: nothing. */
static const char *name_error(str name)
{
	struct group_resource g = parse_resource(name);

	if (has_capital(name))
		return "resource name should not contain capital letters";
	if (str_eq(name, STR("*")))
		return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
	if (str_eq(name, STR("apiserveripinfo")) || str_eq(name, STR("serviceipallocations")) ||
	    str_eq(name, STR("servicenodeportallocations")))
		return "resources which do not have REST API/s cannot be encrypted";
	if (str_eq(g.group, STR("events.k8s.io")))
		return "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the "
		       "config file";
	if (str_eq(g.group, STR("extensions")))
		return "'extensions' group has been removed and cannot be used for encryption";
	if (str_eq(g.group, STR("*")) && !str_eq(g.resource, STR("*")))
		return "encrypting the same resource across groups is not supported";
	return NULL;
}

static bool key_size_fits(const struct provider_type *type, size_t n)
{
	for (const size_t *size = type->key_sizes; *size; size++)
		if (*size == n)
			return true;
	return false;
}

static void check_key(struct field_errors *e, const struct field_path *at, const struct provider_type *type, struct val key)
{
	CLEANUP(buf_done) struct buf secret = BUF_INIT(FILE_MAX);

	if (!val_str(key, name).n)
		field_required(e, FIELD(at, "name"), "name is a mandatory field for a key");
	if (!val_str(key, secret).n)
		field_required(e, FIELD(at, "secret"), "secret is a mandatory field for a key");
	else if (base64_decode_buf(&secret, val_str(key, secret), NULL) < 0)
		field_invalid(e, FIELD(at, "secret"), VAL_LIT("REDACTED"), "secrets must be base64 encoded");
	else if (!key_size_fits(type, secret.n))
		field_invalid(e, FIELD(at, "secret"), VAL_LIT("REDACTED"),
			      "secret is not of the expected length, got %zu, expected one of %s", secret.n,
			      type->key_sizes_text);
	if (secret.p)
		OPENSSL_cleanse(secret.p, secret.n);
}

/* The provider that an element names, with its configuration; NULL: identity, KMS, or none. */
static const struct provider_type *provider_of(struct val element, struct val *ret_config)
{
	static const struct provider_type *const types[] = { &provider_aesgcm, &provider_aescbc, &provider_secretbox };

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		*ret_config = val_find(element, types[i]->name);
		if (val_exists(*ret_config))
			return types[i];
	}
	return NULL;
}

static void check_provider(struct field_errors *e, const struct field_path *at, struct val element)
{
	static const str none = STR_INIT("{\"AESGCM\":null,\"AESCBC\":null,\"Secretbox\":null,\"Identity\":null,\"KMS\":null}");
	struct val config;

	if (val_len(element) == 0)
		field_invalid(e, at, (struct val){ .type = VAL_RAW, .n = (uint32_t)none.n, .s = none.p },
			      "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity");
	/* Kubernetes shows the element, keys and all; secrets do not belong into messages. */
	if (val_len(element) > 1)
		field_invalid(e, at, FIELD_VALUE_OMITTED,
			      "more than one provider specified in a single element, should split into different list elements");
	if (val_has(element, kms)) {
		field_forbidden(e, FIELD(at, "kms"),
				"KMS providers are not supported by c8s yet; use aescbc, aesgcm, secretbox or identity");
		return;
	}
	const struct provider_type *type = provider_of(element, &config);
	if (!type)
		return;
	const struct field_path *keys_at = FIELD(FIELD_STR(at, type->name), "keys");
	struct val keys = val_get(config, keys);
	if (val_len(keys) == 0)
		field_required(e, keys_at, "at least one keys is required");
	for (size_t i = 0; i < val_len(keys); i++)
		check_key(e, FIELD_INDEX(keys_at, i), type, val_at(keys, i));
}

static void check_rules(struct field_errors *e, const struct field_path *at, struct val entry)
{
	const struct field_path *names_at = FIELD(at, "resources"), *providers_at = FIELD(at, "providers");
	struct val names = val_get(entry, resources), providers = val_get(entry, providers);

	if (val_len(names) == 0) {
		str text = field_path_text(e->arena, names_at);
		field_required(e, names_at, "at least one " STR_FMT " is required", STR_ARG(text));
	}
	check_overlap(e, names_at, names);
	for (size_t i = 0; i < val_len(names); i++) {
		const char *wrong = name_error(val_as_str(val_at(names, i)));
		if (wrong)
			field_invalid(e, FIELD_INDEX(names_at, i), val_at(names, i), "%s", wrong);
	}
	if (val_len(providers) == 0) {
		str text = field_path_text(e->arena, providers_at);
		field_required(e, providers_at, "at least one " STR_FMT " is required", STR_ARG(text));
	}
	for (size_t i = 0; i < val_len(providers); i++)
		check_provider(e, FIELD_INDEX(providers_at, i), val_at(providers, i));
}

static int check(struct arena *a, struct val config, struct err *err)
{
	const struct field_path *at = FIELD(NULL, "resources");
	struct val list = val_get(config, resources);
	struct field_errors e;

	field_errors_init(&e, a);
	if (val_len(list) == 0)
		field_required(&e, at, "at least one resources is required");
	for (size_t i = 0; i < val_len(list); i++)
		check_rules(&e, FIELD_INDEX(at, i), val_at(list, i));
	if (e.n == 0)
		return 0;
	return err_set(err, ERR_INVALID, STR_FMT, STR_ARG(field_errors_plain(&e)));
}

/* ---- making ---- */

static int make_keys(struct encryption *enc, struct provider *p, struct val keys, struct err *err)
{
	p->keys = ARENA_ARRAY(&enc->arena, struct provider_key, val_len(keys));
	for (size_t i = 0; i < val_len(keys); i++) {
		struct provider_key *k = &p->keys[i];
		CLEANUP(buf_done) struct buf secret = BUF_INIT(FILE_MAX);
		int r = base64_decode_buf(&secret, val_str(val_at(keys, i), secret), err);
		if (r < 0)
			return r;
		*k = (struct provider_key){ .n = secret.n };
		k->name = arena_printf(&enc->arena, STR_FMT ":", STR_ARG(val_str(val_at(keys, i), name)));
		memcpy(k->bytes, secret.p, secret.n);
		OPENSSL_cleanse(secret.p, secret.n);
		p->n_keys++;
		if (p->type->key_init && (r = p->type->key_init(k, err)) < 0)
			return r;
	}
	return 0;
}

static int make_provider(struct encryption *enc, struct val element, const struct provider **ret, struct err *err)
{
	struct made_provider *m = ARENA_NEW(&enc->arena, struct made_provider);
	struct val config;

	m->next = enc->made;
	enc->made = m;
	*ret = &m->provider;
	m->provider.type = provider_of(element, &config);
	return m->provider.type ? make_keys(enc, &m->provider, val_get(config, keys), err) : 0;
}

static struct rule *find_rule(const struct encryption *enc, struct group_resource g)
{
	for (struct rule *r = enc->rules; r; r = r->next)
		if (same_resource(r->resource, g))
			return r;
	return NULL;
}

static int masked_by(struct encryption *enc, struct group_resource g, struct group_resource earlier, struct err *err)
{
	if (!find_rule(enc, earlier))
		return 0;
	str name = resource_text(&enc->arena, g), by = resource_text(&enc->arena, earlier);
	return err_set(err, ERR_INVALID,
		       "error while building transformers: resource \"" STR_FMT "\" is masked by earlier rule \""
		       STR_FMT "\"", STR_ARG(name), STR_ARG(by));
}

/* Providers of a later entry for the same resource come behind those of the earlier one. */
static int make_rule(struct encryption *enc, struct group_resource g, const struct provider **providers, size_t n,
		     struct err *err)
{
	int r;

	if ((r = masked_by(enc, g, (struct group_resource){ g.group, STR("*") }, err)) < 0 ||
	    (r = masked_by(enc, g, everything, err)) < 0)
		return r;
	struct rule *rule = find_rule(enc, g);
	if (!rule) {
		rule = ARENA_NEW(&enc->arena, struct rule);
		rule->resource = (struct group_resource){ arena_str(&enc->arena, g.group), arena_str(&enc->arena, g.resource) };
		rule->next = enc->rules;
		enc->rules = rule;
	}
	struct transformer *t = &rule->transformer;
	const struct provider **all = ARENA_ARRAY(&enc->arena, const struct provider *, t->n + n);
	if (t->n)
		memcpy(all, t->providers, t->n * sizeof(all[0]));
	memcpy(all + t->n, providers, n * sizeof(all[0]));
	*t = (struct transformer){ all, t->n + n };
	return 0;
}

static int make_entry(struct encryption *enc, struct val entry, struct err *err)
{
	struct val elements = val_get(entry, providers);
	const struct provider **providers = ARENA_ARRAY(&enc->arena, const struct provider *, val_len(elements));
	int r;

	for (size_t i = 0; i < val_len(elements); i++)
		if ((r = make_provider(enc, val_at(elements, i), &providers[i], err)) < 0)
			return r;
	VAL_EACH(name, val_get(entry, resources))
		if ((r = make_rule(enc, parse_resource(val_as_str(*name)), providers, val_len(elements), err)) < 0)
			return r;
	return 0;
}

/* ---- reading ---- */

static int decode(struct arena *a, str text, struct buf *json, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf duplicates = BUF_INIT(4096);
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	const struct type *type;
	int r;

	strict->arena = a;
	if ((r = yaml_to_json(text, json, &duplicates, err)) < 0)
		return r;
	if (duplicates.n)
		return err_set(err, ERR_BAD_REQUEST, "strict decoding error: " STR_FMT, STR_ARG(buf_str(&duplicates)));
	if ((r = json_decode_object(a, buf_str(json), strict, ret, &type, err)) < 0)
		return r;
	str version = val_str(*ret, apiVersion), kind = val_str(*ret, kind);
	if (type != TYPE(apiserver_v1, EncryptionConfiguration))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(kind), STR_ARG(version));
	return strict_errors_fail(strict, err);
}

static int load(struct encryption *enc, const char *path, struct buf *text, struct buf *json, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val config;
	int r;

	if ((r = file_read(path, text, err)) < 0)
		return err_wrap(err, r, "error while parsing file: error while loading file: "
				"error reading encryption provider configuration file \"%s\"", path);
	if (text->n == 0)
		return err_set(err, ERR_BAD_REQUEST, "error while parsing file: error while loading file: "
			       "encryption provider configuration file \"%s\" is empty", path);
	if ((r = decode(&a, buf_str(text), json, &config, err)) < 0)
		return err_wrap(err, r,
				"error while parsing file: error decoding encryption provider configuration file \"%s\"", path);
	if ((r = check(&a, config, err)) < 0)
		return err_wrap(err, r, "error while parsing file");
	VAL_EACH(entry, val_get(config, resources))
		if ((r = make_entry(enc, *entry, err)) < 0)
			return r;
	return 0;
}

/* The secrets stood in it. */
static void buf_wipe(struct buf *b)
{
	if (b->p)
		OPENSSL_cleanse(b->p, b->cap);
	buf_done(b);
}

int encryption_open(const char *path, struct encryption **ret, struct err *err)
{
	CLEANUP(buf_wipe) struct buf text = BUF_INIT(FILE_MAX), json = BUF_INIT(FILE_MAX);
	struct encryption *enc = mem_zalloc(sizeof(*enc));

	arena_init(&enc->arena);
	int r = load(enc, path, &text, &json, err);
	if (r < 0)
		encryption_free(enc);
	else
		*ret = enc;
	return r;
}

void encryption_free(struct encryption *enc)
{
	if (!enc)
		return;
	for (struct made_provider *m = enc->made; m; m = m->next)
		for (size_t i = 0; i < m->provider.n_keys; i++) {
			struct provider_key *k = &m->provider.keys[i];
			if (m->provider.type->key_done)
				m->provider.type->key_done(k);
			OPENSSL_cleanse(k->bytes, sizeof(k->bytes));
		}
	arena_done(&enc->arena);
	free(enc);
}

const struct transformer *encryption_for(const struct encryption *enc, str group, str resource)
{
	const struct group_resource tries[] = { { group, resource }, { group, STR("*") }, everything };

	for (size_t i = 0; enc && i < ARRAY_LEN(tries); i++) {
		const struct rule *rule = find_rule(enc, tries[i]);
		if (rule)
			return &rule->transformer;
	}
	return NULL;
}
