/*
 * A kubelet without credentials of its own shows those of the bootstrap file (a token, mostly) once, to ask for a certificate. Its key is
 * kept in kubelet-client.key.tmp meanwhile, so that one that is started again goes on waiting for the same request.
 *
 * With rotateCertificates the pair in kubelet-client-current.pem is what counts, whatever the kubeconfig says: it is put there first from
 * the kubeconfig, and is renewed from then on.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/pki_priv.h"
#include "apiserver/version.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/fiber.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "kubelet/certificates_priv.h"

enum {
	HEALTH_MS = 1000, HEALTH_EVERY_MS = 2000, HEALTH_FOR_MS = 60 * 1000, HEALTH_MAX = 4096, WAIT_MS = 3600 * 1000,
	FIRST_RETRY_MS = 2000, LAST_RETRY_MS = 32 * 1000,
};

struct identity {
	struct client_config config;
	struct arena arena;
};

static int64_t now_s(void) { return clock_wall_ns() / NS_PER_S; }

static void key_freep(EVP_PKEY **key) { EVP_PKEY_free(*key); }

/* As kubelets name themselves: what they write is known by it (metadata.managedFields). */
static str user_agent(struct arena *a)
{
	return arena_printf(a, "kubelet/%s (%s) kubernetes/%.7s", version_info.git_version, version_info.platform, version_info.git_commit);
}

static const char *folder_of(const struct kubelet_options *o, struct arena *a)
{
	return o->cert_dir ? o->cert_dir : arena_printf(a, "%s/pki", o->root ? o->root : "/var/lib/kubelet").p;
}

/* ---- what a configuration has ---- */

static int cert_of(const struct client_config *c, struct arena *a, struct buf *ret, struct err *err)
{
	if (c->client_cert_file.n)
		return file_read(arena_str(a, c->client_cert_file).p, ret, err);
	buf_add(ret, c->client_cert);
	return buf_check(ret, "the client certificate", err);
}

static int key_of(const struct client_config *c, struct arena *a, EVP_PKEY **ret, struct err *err)
{
	if (c->client_key_file.n)
		return key_read(arena_str(a, c->client_key_file).p, ret, err);
	BIO *bio = BIO_new_mem_buf(c->client_key.n ? c->client_key.p : "", (int)c->client_key.n);
	*ret = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
	BIO_free(bio);
	ERR_clear_error();
	return *ret ? 0 : err_set(err, ERR_INVALID, "the kubeconfig's client-key-data holds no private key");
}

/* Whether the kubeconfig has a certificate that has not ended; why not is said in the log. */
static bool still_valid(const char *path)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);
	struct client_config c = { 0 };
	struct err err = ERR_INIT;

	if (!path || access(path, F_OK) < 0)
		return false;
	if (kubeconfig_open(&a, path, &c, &err) < 0 || cert_of(&c, &a, &pem, &err) < 0) {
		log_warn("the kubeconfig cannot be used, a new one is made", KV("path", path), KV("error", &err));
		return false;
	}
	int64_t end = certs_end(buf_str(&pem));
	if (end < now_s())
		log_warn(end < 0 ? "the kubeconfig has no client certificate, a new one is made" :
				   "the kubeconfig's client certificate has expired, a new one is made", KV("path", path));
	return end >= now_s();
}

/* ---- asking ---- */

/* That of the last certificate, of the last try, or a new one. */
static int bootstrap_key(const struct cert_store *store, const char *file, EVP_PKEY **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);

	if (cert_store_read(store, NULL, ret, NULL) == 0 || key_read(file, ret, NULL) == 0)
		return 0;
	int r = file_make_dirs(store->dir, 0755, err);
	if (r == 0)
		r = key_make(ret, err);
	if (r == 0)
		r = key_pem(*ret, &pem, err);
	if (r == 0)
		r = file_write(file, buf_str(&pem), 0600, err);
	if (pem.p)
		OPENSSL_cleanse(pem.p, pem.n);
	return r;
}

/* (suspends) For a while: a cluster may be just starting. */
static int wait_for_server(struct client *c, struct err *err)
{
	int64_t until_ns = clock_now_ns() + HEALTH_FOR_MS * NS_PER_MS;

	for (;;) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err why = ERR_INIT;
		str answer;
		int r;
		{
			DEADLINE_SCOPE(HEALTH_MS);
			r = client_get_raw(c, &a, STR("/healthz"), HEALTH_MAX, &answer, &why);
		}
		if (r == 0)
			return 0;
		if ((r = fiber_check(err)) < 0)
			return r;
		log_info("failed to connect to apiserver", KV("error", &why));
		if (clock_now_ns() >= until_ns) {
			log_info("timed out waiting to connect to apiserver");
			return 0;
		}
		if ((r = fiber_sleep_ms(HEALTH_EVERY_MS + (int64_t)random_below(HEALTH_EVERY_MS / 5), err)) < 0)
			return r;
	}
}

static bool may_pass(int r)
{
	return r == -ERR_UNAVAILABLE || r == -ERR_TIMEOUT || r == -ERR_SERVER_TIMEOUT || r == -ERR_TOO_MANY_REQUESTS || r == -ERR_INTERNAL ||
	       r == -ERR_GONE;
}

/* (suspends) A certificate by the credentials of config becomes the store's current one. */
static int bootstrap_certificate(const struct cert_store *store, const struct client_config *config, str node_name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(client_freep) struct client *c = NULL;
	CLEANUP(key_freep) EVP_PKEY *key = NULL;
	const char *key_file = arena_printf(&a, "%s/kubelet-client.key.tmp", store->dir).p;
	const struct cert_order order = { .node_name = node_name };
	int r = client_open(config, &c, err);

	if (r == 0)
		r = bootstrap_key(store, key_file, &key, err);
	if (r == 0)
		r = wait_for_server(c, err);
	for (int64_t wait_ms = FIRST_RETRY_MS; r == 0; wait_ms = MIN(2 * wait_ms, (int64_t)LAST_RETRY_MS)) {
		CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);
		r = cert_order_get(&order, c, key, true, WAIT_MS, &pem, err);
		if (r == 0) {
			r = cert_store_update(store, buf_str(&pem), key, err);
			break;
		}
		if (fiber_check(NULL) < 0 || !may_pass(r))
			return r;
		log_warn("no client certificate yet, will retry", KV("error", err));
		r = fiber_sleep_ms(wait_ms, err);
	}
	if (r == 0 && unlink(key_file) < 0 && errno != ENOENT)
		log_warn("the key of the bootstrap cannot be removed, ignoring", KV("path", key_file));
	return r;
}

/* ---- the kubeconfig ---- */

static struct val text_or_none(str s) { return s.n ? val_of_str(s) : VAL_EMPTY; }

static int write_kubeconfig(const struct client_config *c, const char *path, const char *pem, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf ca = BUF_INIT(2 * CERTIFICATES_PEM_MAX);
	struct val file = val_of_str(str_of(pem));

	if (!c->ca_file.n)
		base64_encode_buf(&ca, c->ca);
	struct val cluster = OBJECT(&a, F(certificate_authority, text_or_none(c->ca_file)),
				    F(certificate_authority_data, text_or_none(buf_str(&ca))),
				    F(insecure_skip_tls_verify, c->insecure ? val_of_bool(true) : VAL_EMPTY),
				    F(proxy_url, text_or_none(c->proxy_url)), F(server, val_of_str(c->server)),
				    F(tls_server_name, text_or_none(c->tls_server_name)));
	struct val user = OBJECT(&a, F(client_certificate, file), F(client_key, file));
	struct val context = OBJECT(&a, F(cluster, VAL_LIT("default-cluster")), F(namespace, VAL_LIT("default")), F(user, VAL_LIT("default-auth")));
	struct val document = OBJECT(&a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Config")),
				     F(clusters, LIST(&a, OBJECT(&a, F(cluster, cluster), F(name, VAL_LIT("default-cluster"))))),
				     F(contexts, LIST(&a, OBJECT(&a, F(context, context), F(name, VAL_LIT("default-context"))))),
				     F(current_context, VAL_LIT("default-context")),
				     F(users, LIST(&a, OBJECT(&a, F(name, VAL_LIT("default-auth")), F(user, user)))));
	return kubeconfig_save(path, document, err);
}

/* (suspends) */
static int bootstrap(const struct kubelet_options *o, const struct cert_store *store, str node_name, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct client_config config;
	int r = kubeconfig_open(&a, o->bootstrap_kubeconfig, &config, err);

	if (r < 0)
		return err_wrap(err, r, "unable to load bootstrap kubeconfig");
	config.user_agent = user_agent(&a);
	config.servers_file = str_of(o->api_servers_file);
	log_info("the bootstrap kubeconfig is used to get a client certificate", KV("path", o->bootstrap_kubeconfig));
	if ((r = bootstrap_certificate(store, &config, node_name, err)) < 0)
		return r;
	return write_kubeconfig(&config, o->kubeconfig, cert_store_path(store, &a), err);
}

/* ---- the identity ---- */

static bool is_current(const struct cert_store *store)
{
	X509 *cert = NULL;
	struct err err = ERR_INIT;
	int r = cert_store_read(store, &cert, NULL, &err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		log_warn("the current client certificate cannot be used", KV("error", &err));
	bool ok = r == 0 && cert_ends(cert) > now_s();
	X509_free(cert);
	return ok;
}

/* (suspends) The store's pair instead of whatever the kubeconfig has. */
static int use_store(const struct cert_store *store, struct identity *id, str node_name, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);
	CLEANUP(key_freep) EVP_PKEY *key = NULL;
	struct client_config *c = &id->config;
	int r = 0;

	if (!is_current(store)) {
		if (c->client_cert.n || c->client_cert_file.n)
			r = (r = cert_of(c, &id->arena, &pem, err)) < 0 || (r = key_of(c, &id->arena, &key, err)) < 0 ? r :
				    cert_store_update(store, buf_str(&pem), key, err);
		else
			r = bootstrap_certificate(store, c, node_name, err);
	}
	if (r < 0)
		return r;
	c->client_cert_file = c->client_key_file = str_of(cert_store_path(store, &id->arena));
	c->client_cert = c->client_key = c->token = c->token_file = c->username = c->password = STR_NONE;
	c->exec = VAL_EMPTY;
	return 0;
}

int kubelet_identity(const struct kubelet_options *o, str node_name, struct client_config **ret, struct err *err)
{
	struct identity *id = mem_zalloc(sizeof(*id));
	const struct cert_store store = { .dir = folder_of(o, &id->arena), .name = "kubelet-client" };
	int r = cert_store_recover(&store, err);

	if (r == 0 && o->bootstrap_kubeconfig && !still_valid(o->kubeconfig))
		r = bootstrap(o, &store, node_name, err);
	if (r == 0 && (r = kubeconfig_open(&id->arena, o->kubeconfig, &id->config, err)) < 0)
		(void)err_wrap(err, r, "invalid kubeconfig");
	id->config.user_agent = user_agent(&id->arena);
	id->config.servers_file = str_of(o->api_servers_file);
	if (r == 0 && val_bool(o->config->val, rotateCertificates) && str_starts(id->config.server, STR("https://")))
		r = use_store(&store, id, node_name, err);
	if (r < 0) {
		kubelet_identity_free(&id->config);
		return r;
	}
	*ret = &id->config;
	return 0;
}

void kubelet_identity_free(struct client_config *c)
{
	struct identity *id = c ? CONTAINER_OF(c, struct identity, config) : NULL;

	if (!id)
		return;
	arena_done(&id->arena);
	free(id);
}
