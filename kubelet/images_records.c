/*
 * Who could pull an image. An image that was pulled with a secret is not given to pods that do not have it, although it is on the node: they
 * have to pull, which asks the registry. What was pulled without a secret is for all. Images that somebody else brought to the node are
 * for all, too, unless the policy says otherwise.
 *
 * Records are in memory and, as Kubernetes has them, in a file each: image_manager/pulled/sha256-<of the ref>; while a pull is under way,
 * image_manager/pulling/sha256-<of the name>, so that what a crashed kubelet was pulling is not taken for somebody else's.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/time.h"
#include "codec/types.h"
#include "kubelet/images_priv.h"

enum { FILE_MAX = 1 << 20, SECRETS_MAX = 100 };

#define FILE_PREFIX "sha256-"

struct record {
	struct frozen *value;                  /* ImagePulledRecord; its imageRef is the key */
};

struct intent {
	unsigned n;
	size_t name_n;
	char name[];
};

/* ---- files ---- */

static const char *file_of(const struct images_manager *m, struct arena *a, const char *folder, str name)
{
	char hex[SHA256_HEX + 1];

	sha256_hex(name, hex);
	return arena_printf(a, "%s/image_manager/%s/" FILE_PREFIX "%s", m->o.root, folder, hex).p;
}

static void write_object(const struct images_manager *m, const char *folder, str name, struct val v, const struct type *type)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct json_encode_options o = { .type = type };
	struct err err = ERR_INIT;

	if (!m->o.root)
		return;
	if (json_encode(&b, v, &o, &err) < 0 || file_replace(file_of(m, &a, folder, name), buf_str(&b), 0600, &err) < 0)
		log_warn("a record about an image cannot be written", KV("image", name), KV("error", &err));
}

static void remove_object(const struct images_manager *m, const char *folder, str name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (m->o.root && unlink(file_of(m, &a, folder, name)) < 0 && errno != ENOENT)
		log_warn("a record about an image cannot be removed", KV("image", name), KV("errno", errno));
}

static bool object_exists(const struct images_manager *m, const char *folder, str name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	return m->o.root && access(file_of(m, &a, folder, name), F_OK) == 0;
}

/* ---- in memory ---- */

static void record_store(struct images_manager *m, struct val v)
{
	struct frozen *f = val_freeze(v);
	str ref = val_str(f->val, imageRef);
	struct record *r = map_get(&m->records, ref);

	if (r) {
		(void)map_remove(&m->records, ref);
		frozen_unref(r->value);
	} else {
		r = mem_zalloc(sizeof(*r));
	}
	r->value = f;
	(void)map_put(&m->records, ref, r);
}

static struct val record_of(const struct images_manager *m, str ref)
{
	struct record *r = map_get(&m->records, ref);

	return r ? r->value->val : VAL_EMPTY;
}

static void load_file(struct images_manager *m, const char *path)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct json_decode_options o = { .type = TYPE(kubeletconfig_v1beta1, ImagePulledRecord) };
	struct err err = ERR_INIT;
	struct val v;

	if (file_read(path, &b, &err) < 0 || json_decode(&a, buf_str(&b), &o, &v, &err) < 0)
		log_warn("a record about an image cannot be read", KV("file", path), KV("error", &err));
	else if (val_str(v, imageRef).n)
		record_store(m, v);
}

void image_records_load(struct images_manager *m)
{
	static const char *const folders[] = { "pulling", "pulled" };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct dirent *e;

	if (!m->o.root)
		return;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (file_make_dirs(arena_printf(&a, "%s/image_manager/%s", m->o.root, folders[i]).p, 0700, &err) < 0)
			log_warn("records about images cannot be kept", KV("error", &err));
	DIR *d = opendir(arena_printf(&a, "%s/image_manager/pulled", m->o.root).p);
	while (d && (e = readdir(d)))
		if (str_starts(str_of(e->d_name), STR(FILE_PREFIX)) && !str_ends(str_of(e->d_name), STR(".tmp")))
			load_file(m, arena_printf(&a, "%s/image_manager/pulled/%s", m->o.root, e->d_name).p);
	if (d)
		(void)closedir(d);
}

void image_records_done(struct images_manager *m)
{
	struct map_iter it = map_iter(&m->records);
	struct record *r;
	struct intent *i;

	while ((r = map_next(&it, NULL))) {
		frozen_unref(r->value);
		free(r);
	}
	map_done(&m->records);
	it = map_iter(&m->pulling_names);
	while ((i = map_next(&it, NULL)))
		free(i);
	map_done(&m->pulling_names);
}

/* ---- what a record says ---- */

/* The name without tag and digest. */
static str plain_name(str image)
{
	str name, digest;

	(void)str_cut(image, '@', &name, &digest);
	ptrdiff_t colon = str_rchr(name, ':'), slash = str_rchr(name, '/');
	return colon > slash ? str_head(name, (size_t)colon) : name;
}

static bool is_same_secret(struct val x, struct val y)
{
	return str_eq(val_str(x, uid), val_str(y, uid)) && str_eq(val_str(x, namespace), val_str(y, namespace)) &&
	       str_eq(val_str(x, name), val_str(y, name));
}

static bool is_before(struct val x, struct val y)
{
	int r = str_cmp(val_str(x, namespace), val_str(y, namespace));

	r = r ? r : str_cmp(val_str(x, name), val_str(y, name));
	return (r ? r : str_cmp(val_str(x, uid), val_str(y, uid))) < 0;
}

/* A reference to the secret of a credential, with its hash. */
static struct val secret_ref(struct arena *a, const struct image_credential *c)
{
	struct val meta = val_get(c->secret, metadata);

	return OBJECT(a, F(uid, val_get(meta, uid)), F(namespace, val_get(meta, namespace)), F(name, val_get(meta, name)),
		      F(credentialHash, VAL_STR(c->hash)));
}

/* The list, sorted, with this one; the same list when it is in it. */
static struct val with_secret(struct arena *a, struct val list, struct val ref)
{
	size_t at = 0;

	for (size_t i = 0; i < val_len(list); i++) {
		struct val one = list.items[i];
		if (is_same_secret(one, ref))
			return str_eq(val_str(one, credentialHash), val_str(ref, credentialHash)) ? list : val_list_set(a, list, i, ref);
		if (is_before(one, ref))
			at = i + 1;
	}
	return val_list_insert(a, val_exists(list) ? list : VAL_EMPTY_LIST, at, ref);
}

/* Adds that the image could be had so: with a secret or for a service account (list says which), or (VAL_NONE) by anybody of the node. */
static void record_add(struct images_manager *m, str image, str ref, atom list, struct val user)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val record = record_of(m, ref), mapping = val_get(record, credentialMapping);
	struct val entry = val_find(mapping, plain_name(image)), made;
	struct timestamp now = { clock_wall_ns() / NS_PER_S, 0 };
	char text[TIME_TEXT_MAX];

	if (val_bool(entry, nodePodsAccessible))
		return;
	if (val_exists(user)) {
		struct val before = val_member(entry, list);
		made = with_secret(&a, before, user);
		if (val_same(made, before))
			return;
		made = val_put(&a, entry, list, made);
	} else {
		made = OBJECT(&a, F(nodePodsAccessible, val_of_bool(true)));
	}
	mapping = val_put(&a, mapping, atom_make(&a, plain_name(image)), made);
	record = OBJECT(&a, F(kind, VAL_LIT("ImagePulledRecord")), F(apiVersion, VAL_LIT("kubelet.config.k8s.io/v1beta1")),
			F(lastUpdatedTime, VAL_STR(time_format(now, text))), F(imageRef, VAL_STR(ref)), F(credentialMapping, mapping));
	write_object(m, "pulled", ref, record, TYPE(kubeletconfig_v1beta1, ImagePulledRecord));
	record_store(m, record); /* it shares with the one that this frees */
}

void image_records_intend(struct images_manager *m, str image)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct intent *i = map_get(&m->pulling_names, image);

	if (!i) {
		i = mem_zalloc(sizeof(*i) + image.n);
		memcpy(i->name, image.p, i->name_n = image.n);
		(void)map_put(&m->pulling_names, str_span(i->name, i->name_n), i);
	}
	if (i->n++ == 0)
		write_object(m, "pulling", image,
			     OBJECT(&a, F(kind, VAL_LIT("ImagePullIntent")), F(apiVersion, VAL_LIT("kubelet.config.k8s.io/v1beta1")),
				    F(image, VAL_STR(image))),
			     TYPE(kubeletconfig_v1beta1, ImagePullIntent));
}

void image_records_pulled(struct images_manager *m, str image, str ref, const struct image_credential *used)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct intent *i = map_get(&m->pulling_names, image);

	if (ref.n && used && val_exists(used->account))
		record_add(m, image, ref, A_kubernetesServiceAccounts, used->account);
	else if (ref.n)
		record_add(m, image, ref, A_kubernetesSecrets, used && val_exists(used->secret) ? secret_ref(&a, used) : VAL_EMPTY);
	if (!i || --i->n)
		return;
	(void)map_remove(&m->pulling_names, image);
	free(i);
	remove_object(m, "pulling", image);
}

void image_records_prune(struct images_manager *m, struct val images, int64_t began_s)
{
	struct map_iter it = map_iter(&m->records);
	struct record *r;
	str ref;

	while ((r = map_next(&it, &ref))) {
		struct timestamp updated;
		/* Pulled while the list was on its way: not in it, but there. */
		bool there = time_parse(val_str(r->value->val, lastUpdatedTime), &updated, NULL) == 0 && updated.seconds >= began_s;
		VAL_EACH(image, images)
			there |= str_eq(val_str(*image, id), ref);
		if (there)
			continue;
		remove_object(m, "pulled", ref);
		(void)map_remove(&m->records, ref);
		frozen_unref(r->value);
		free(r);
	}
}

/* ---- the policy ---- */

static bool is_allowed(const struct images_manager *m, str image)
{
	str name = plain_name(image);

	VAL_EACH(one, m->o.allowed) {
		str pattern = val_as_str(*one);
		bool all_below = str_ends(pattern, STR("/*"));
		if (all_below ? str_starts(name, str_head(pattern, pattern.n - 1)) : str_eq(name, pattern))
			return true;
	}
	return false;
}

static bool needs_verification(const struct images_manager *m, str image, bool pulled_by_us)
{
	str policy = str_of(m->o.verification);

	if (str_eq(policy, STR("NeverVerify")))
		return false;
	if (str_eq(policy, STR("AlwaysVerify")))
		return true;
	if (str_eq(policy, STR("NeverVerifyAllowlistedImages")))
		return !is_allowed(m, image);
	return pulled_by_us;
}

/* Has one of the pod's secrets been good for this image? One that has changed since is believed, as is another with the same content. */
static bool secrets_known(struct images_manager *m, struct arena *a, str image, str ref, struct val known,
			  const struct image_credentials *own)
{
	for (size_t i = 0; i < own->n; i++) {
		if (!val_exists(own->items[i].secret))
			continue;
		struct val mine = secret_ref(a, &own->items[i]);
		VAL_EACH(k, known) {
			bool same_hash = val_str(*k, credentialHash).n && str_eq(val_str(*k, credentialHash), own->items[i].hash);
			bool same_secret = is_same_secret(*k, mine), room = val_len(known) < SECRETS_MAX;
			if (!same_hash && !(same_secret && room))
				continue;
			if (!(same_hash && same_secret) && room)
				record_add(m, image, ref, A_kubernetesSecrets, mine);
			return true;
		}
	}
	return false;
}

/* The first of the credentials that are a service account's says whose pod this is. */
static bool account_known(struct val known, const struct image_credentials *own)
{
	for (size_t i = 0; i < own->n; i++) {
		if (!val_exists(own->items[i].account))
			continue;
		VAL_EACH(k, known)
			if (is_same_secret(*k, own->items[i].account))
				return true;
		return false;
	}
	return false;
}

int image_records_verify(struct images_manager *m, struct arena *a, str image, str ref, struct val pod, struct val secrets,
			 str repository, bool *ret_pull, struct err *err)
{
	struct val record = record_of(m, ref), entry = val_find(val_get(record, credentialMapping), plain_name(image));
	bool ours = val_exists(record) || map_get(&m->pulling_names, image) || object_exists(m, "pulling", image) ||
		    object_exists(m, "pulled", ref);
	struct val known = val_get(entry, kubernetesSecrets), accounts = val_get(entry, kubernetesServiceAccounts);
	struct image_credentials own;
	int r;

	*ret_pull = needs_verification(m, image, ours);
	if (!*ret_pull || !val_exists(entry))
		return 0;
	if (val_bool(entry, nodePodsAccessible)) {
		*ret_pull = false;
		return 0;
	}
	if (!val_len(known) && !val_len(accounts))
		return 0;
	/* The frozen record may be replaced while it is looked at. */
	known = val_copy(a, known);
	accounts = val_copy(a, accounts);
	if ((r = image_credentials_find(m, a, pod, secrets, repository, &own, err)) < 0)
		return r;
	*ret_pull = !secrets_known(m, a, image, ref, known, &own) && !account_known(accounts, &own);
	return 0;
}
