/*
 * One authority for all control planes of a cluster. Machines that share an etcd have to sign with the same keys, and to believe the same
 * signatures: each machine but the first is given the first one's (--pki), and makes its own certificates with them. Who comes first writes down in
 * etcd which authority it is; a machine that has another one is refused before it has written anything else, also when several come at once.
 */
#include <openssl/crypto.h>

#include "apiserver/pki.h"
#include "base/fiber.h"
#include "base/file.h"
#include "cmd/up.h"
#include "store/store.h"

/* Beside the objects, where Kubernetes' own servers see it not. */
#define CLAIM "/registry/c8s/authority"

enum { FILE_MAX = 1 << 20, CLAIM_MS = 60 * 1000, AGAIN_MS = 500 };

/* The same names that kubeadm gives them in /etc/kubernetes/pki. */
static const char *const shared[] = { "ca.key", "front-proxy-ca.key", "sa.key", "front-proxy-ca.crt", "ca.crt" };

/* ---- files ---- */

static void wipe(struct buf *b)
{
	if (b->p)
		OPENSSL_cleanse(b->p, b->n);
	buf_done(b);
}

/* With write: puts the file in its place. Without: sees whether it could. */
static int take_file(const struct up_cluster *c, const char *name, bool write, struct err *err)
{
	CLEANUP(wipe) struct buf given = BUF_INIT(FILE_MAX), have = BUF_INIT(FILE_MAX);
	const char *from = arena_printf(c->arena, "%s/%s", c->settings.pki, name).p, *to = pki_path(c->arena, c->control_dir, name);
	bool key = str_ends(str_of(name), STR(".key"));
	int r = file_read(from, &given, err);

	if (r < 0)
		return err_wrap(err, r, "--pki needs a copy of the folder control-plane/pki of the cluster's first machine");
	r = file_read(to, &have, err);
	if (r == 0 && str_eq(buf_str(&given), buf_str(&have)))
		return 0;
	if (r == 0)
		return err_set(err, ERR_CONFLICT, "%s is there already and is not that of --pki: this machine had a cluster of its own; 'c8s reset --data-dir %s' removes it",
			       to, c->settings.data_dir);
	if (r != -ERR_NOT_FOUND)
		return r;
	err_clear(err);
	return write ? file_write(to, buf_str(&given), key ? 0600 : 0644, err) : 0;
}

int up_check_pki(const struct up_cluster *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && c->settings.pki && i < ARRAY_LEN(shared); i++)
		r = take_file(c, shared[i], false, err);
	return r;
}

int up_take_pki(const struct up_cluster *c, struct err *err)
{
	int r = up_check_pki(c, err);

	if (!c->settings.pki)
		return 0;
	if (r == 0)
		r = file_make_dirs(pki_path(c->arena, c->control_dir, ""), 0755, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(shared); i++)
		r = take_file(c, shared[i], true, err);
	return r;
}

/* ---- etcd ---- */

/* (suspends) The authority that the etcd belongs to: ours, if it was nobody's. */
static int claim(struct store *s, struct arena *a, str own, str *ret, struct err *err)
{
	struct store_value *value = store_value_new(own);
	struct store_kv current = { .value = NULL };
	int64_t revision;
	int r;

	/* It may be choosing its leader. */
	while ((r = store_put(s, STR(CLAIM), value, STORE_ABSENT, 0, &revision, &current, err)) < 0)
		if (fiber_sleep_ms(AGAIN_MS, NULL) < 0)
			break;
	store_value_unref(value);
	if (r < 0)
		return r;
	*ret = r == 1 ? own : arena_str(a, store_value_str(current.value));
	store_value_unref(current.value);
	return 0;
}

int up_claim_store(const struct up_cluster *c, struct err *err)
{
	const struct up_settings *s = &c->settings;
	const struct store_options o = { .endpoints = s->etcd_servers, .ca_file = s->etcd_ca, .cert_file = s->etcd_cert, .key_file = s->etcd_key };
	CLEANUP(buf_done) struct buf ca = BUF_INIT(FILE_MAX);
	struct store *store = NULL;
	str own, owner = STR_NONE;
	DEADLINE_SCOPE(CLAIM_MS);
	int r;

	if (s->server || !s->etcd_servers[0])
		return 0;
	if ((r = file_read(pki_path(c->arena, c->control_dir, "ca.crt"), &ca, err)) < 0 || (r = up_authority_hash(c->arena, buf_str(&ca), &own, err)) < 0)
		return r;
	if ((r = store_open(&o, &store, err)) == 0)
		r = claim(store, c->arena, own, &owner, err);
	store_free(store);
	if (r < 0)
		return err_wrap(err, r, "the etcd of --etcd-servers");
	if (str_eq(own, owner))
		return 0;
	return err_set(err, ERR_CONFLICT, "this etcd has a cluster whose authority is " STR_FMT ", and that of this machine is " STR_FMT ": to be one of its control "
		       "planes, 'c8s reset --data-dir %s', copy control-plane/pki from the data directory of another one, and say --pki; for a new cluster "
		       "empty the etcd first", STR_ARG(owner), STR_ARG(own), s->data_dir);
}
