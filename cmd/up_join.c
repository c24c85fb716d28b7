/*
 * From a token to a cluster that can be trusted. cluster-info is read from a server that nobody vouches for yet; it is believed when its
 * signature was made with the token, which a stranger does not have, and, against a stranger who has the token, when the authority in it is the
 * one whose hash was given. From then on everything is TLS with that authority.
 */
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <strings.h>
#include <unistd.h>

#include "base/encoding.h"
#include "base/fiber.h"
#include "base/file.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "cmd/up.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "controllers/bootstrap_token.h"

#define HASH_PREFIX "sha256:"

enum { PEM_MAX = 1 << 16, ID_LETTERS = 6, SECRET_LETTERS = 16, SIGNED_MS = 8 * 1000, AGAIN_MS = 200 };

/* Of the next certificate in a PEM text; false: there is none. */
static bool next_hash(BIO *bio, struct arena *a, str *ret)
{
	char hex[SHA256_HEX + 1];
	unsigned char *der = NULL;
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	int n = cert ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der) : -1;

	X509_free(cert);
	if (n <= 0)
		return false;
	sha256_hex((str){ (const char *)der, (size_t)n }, hex);
	OPENSSL_free(der);
	*ret = arena_printf(a, HASH_PREFIX "%s", hex);
	return true;
}

int up_authority_hash(struct arena *a, str pem, str *ret, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	bool found = next_hash(bio, a, ret);

	BIO_free(bio);
	return found ? 0 : err_set(err, ERR_INVALID, "the authority of the cluster is no certificate");
}

/* Whether one of a bundle's certificates has this hash, in letters of any case, as kubeadm looks at it; NULL fits all. -ERR_FORBIDDEN otherwise. */
static int check_authority(struct arena *a, str pem, const char *wanted, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	str first = STR_NONE, hash;
	bool fits = false;

	while (!fits && next_hash(bio, a, &hash)) {
		fits = !wanted || strcasecmp(hash.p, wanted) == 0;
		if (!first.n)
			first = hash;
	}
	BIO_free(bio);
	if (!first.n)
		return err_set(err, ERR_INVALID, "the authority of the cluster is no certificate");
	return fits ? 0 : err_set(err, ERR_FORBIDDEN, "the authority of the cluster is " STR_FMT ", not %s: this is not the cluster", STR_ARG(first), wanted);
}

static int check_hash_form(const char *hash, struct err *err)
{
	bool good = !hash || (strlen(hash) == sizeof(HASH_PREFIX) - 1 + SHA256_HEX && strncasecmp(hash, HASH_PREFIX, sizeof(HASH_PREFIX) - 1) == 0);

	return good ? 0 : err_set(err, ERR_INVALID, "--ca-hash is " HASH_PREFIX " and %d digits, as 'c8s token create' prints it", SHA256_HEX);
}

static int check_token(str token, struct err *err)
{
	bool good = token.n == ID_LETTERS + 1 + SECRET_LETTERS && token.p[ID_LETTERS] == '.';

	return good ? 0 : err_set(err, ERR_INVALID, "a token looks like abcdef.0123456789abcdef; 'c8s token create' on the cluster's first machine makes one");
}

/* (suspends) The ConfigMap, from whoever answers there. */
static int fetch(const struct up_cluster *c, struct frozen **ret, struct err *err)
{
	struct client_config anybody = { .server = str_of(c->settings.server), .insecure = true };
	CLEANUP(client_freep) struct client *client = NULL;
	int r = client_open(&anybody, &client, err);

	if (r == 0)
		r = client_get(client, TYPE(core_v1, ConfigMap), STR("kube-public"), STR("cluster-info"), ret, err);
	return r < 0 ? err_wrap(err, r, "asking %s about its cluster", c->settings.server) : 0;
}

static int check_signature(struct arena *a, struct val data, str token, struct err *err)
{
	str id = str_span(token.p, ID_LETTERS), secret = str_skip(token, ID_LETTERS + 1);
	str content = val_as_str(val_find(data, STR("kubeconfig")));
	str given = val_as_str(val_find(data, arena_printf(a, "jws-kubeconfig-" STR_FMT, STR_ARG(id))));

	if (!given.n)
		return err_set(err, ERR_NOT_FOUND, "the cluster does not know the token " STR_FMT "; it may have expired: 'c8s token create' makes another", STR_ARG(id));
	if (!str_eq(given, bootstrap_token_sign(a, content, id, secret)))
		return err_set(err, ERR_FORBIDDEN, "what the cluster says of itself is not signed with this token: either the token is wrong, or this is not the cluster");
	return 0;
}

static int read_authority(struct arena *a, str kubeconfig, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_MAX);
	struct val document;
	int r = up_parse_yaml(a, kubeconfig, &document, err);

	if (r < 0)
		return r;
	struct val cluster = val_get(val_at(val_find(document, STR("clusters")), 0), cluster);
	if ((r = base64_decode_buf(&pem, val_as_str(val_find(cluster, STR("certificate-authority-data"))), err)) == 0)
		*ret = arena_str(a, buf_str(&pem));
	return r;
}

static int write_files(const struct up_cluster *c, str authority, str token, struct err *err)
{
	CLEANUP(buf_done) struct buf conf = BUF_INIT(PEM_MAX * 2);
	int r = file_write(c->node_ca, authority, 0644, err);

	if (r < 0)
		return r;
	buf_addf(&conf, "apiVersion: v1\nkind: Config\nclusters:\n- name: cluster\n  cluster: { server: \"%s\", certificate-authority-data: ", c->settings.server);
	base64_encode_buf(&conf, authority);
	buf_addf(&conf, " }\ncontexts:\n- name: join\n  context: { cluster: cluster, user: token }\ncurrent-context: join\nusers:\n- name: token\n  user: { token: "
		 STR_FMT " }\n", STR_ARG(token));
	return file_write(c->bootstrap_conf, buf_str(&conf), 0600, err);
}

/* (suspends) What the cluster says of itself, once that is signed with the token: a new one is not at once. */
static int find_signed(const struct up_cluster *c, str token, struct frozen **ret, struct err *err)
{
	DEADLINE_SCOPE(SIGNED_MS);
	struct err unsigned_yet = ERR_INIT;
	int r;

	for (;;) {
		CLEANUP(frozen_unrefp) struct frozen *info = NULL;
		if ((r = fetch(c, &info, err)) < 0) {
			if (unsigned_yet.code) /* time was over while it was asked once more */
				*err = unsigned_yet;
			return unsigned_yet.code ? -ERR_NOT_FOUND : r;
		}
		if ((r = check_signature(c->arena, val_get(info->val, data), token, &unsigned_yet)) == 0) {
			*ret = TAKE(info);
			return 0;
		}
		if (r != -ERR_NOT_FOUND || fiber_sleep_ms(AGAIN_MS, NULL) < 0) {
			*err = unsigned_yet;
			return r;
		}
	}
}

/* (suspends) With the authority all has to be as it will be for the kubelet, which would try for ever. */
static int check_way(const struct up_cluster *c, str authority, struct err *err)
{
	struct client_config config = { .server = str_of(c->settings.server), .ca = authority };
	CLEANUP(client_freep) struct client *client = NULL;
	str answer;
	int r = client_open(&config, &client, err);

	if (r == 0)
		r = client_get_raw(client, c->arena, STR("/version"), PEM_MAX, &answer, err);
	return r < 0 ? err_wrap(err, r, "%s is the cluster, but cannot be spoken to with its certificates (is the clock of this machine right?)", c->settings.server) : 0;
}

int up_discover(const struct up_cluster *c, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *info = NULL;
	struct arena *a = c->arena;
	str token = str_of(c->settings.token ? c->settings.token : ""), authority;
	int r;

	if (access(c->node_conf, F_OK) == 0)
		return 0; /* it has joined before */
	if ((r = check_token(token, err)) < 0 || (r = check_hash_form(c->settings.ca_hash, err)) < 0 || (r = find_signed(c, token, &info, err)) < 0 ||
	    (r = read_authority(a, val_as_str(val_find(val_get(info->val, data), STR("kubeconfig"))), &authority, err)) < 0 ||
	    (r = check_authority(a, authority, c->settings.ca_hash, err)) < 0 || (r = check_way(c, authority, err)) < 0)
		return r;
	return write_files(c, authority, token, err);
}
