/*
 * Both certificates are renewed in the same way, each by a fiber: at some moment between 70 and 90 % of its life, or at once when it is not
 * the one that this node needs, a new key and a request are made. Whoever uses the file finds the new pair: connections of the client
 * look at it once a second, the server's context here.
 *
 * Until the first serving certificate is issued, one that is signed by itself stands in its place.
 */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "kubelet/certificates_priv.h"
#include "net/tls.h"

enum {
	RELOAD_MS = 5000, CHECK_MS = 3600 * 1000, WAIT_MS = 15 * 60 * 1000, NAP_MS = 60 * 1000,
	FIRST_RETRY_MS = 2000, LAST_RETRY_MS = 32 * 1000,
	AGAIN_S = 32,                 /* a signer may leave out what was asked for: it is not asked at once again */
};

struct certificates {
	struct certificates_options o;
	struct val config;
	struct cert_store clients, serving;
	const char *cert_file, *key_file;
	bool self_signed, by_request;
	struct tls_context *tls;
	struct err failure;           /* why the whole cannot go on; code ERR_NONE: it can */
	struct fiber_cond failed;
	struct arena arena;
};

/* ---- the serving certificate ---- */

static const char *text_of(struct certificates *c, str s) { return s.n ? arena_str(&c->arena, s).p : NULL; }

/* A pair to begin with: of the files that are named, or our own. */
static int first_pair(struct certificates *c, const char *cert_file, const char *key_file, struct err *err)
{
	CLEANUP(buf_done) struct buf cert = BUF_INIT(CERTIFICATES_PEM_MAX);
	struct evp_pkey_st *key = NULL;
	int r = cert_store_recover(&c->serving, err);

	if (r < 0 || cert_store_read(&c->serving, NULL, NULL, NULL) == 0)
		return r;
	if (cert_file && key_file)
		r = (r = file_read(cert_file, &cert, err)) < 0 ? r : key_read(key_file, &key, err);
	else
		r = self_signed_make(c->o.node_name, &cert, &key, err);
	if (r == 0)
		r = cert_store_update(&c->serving, buf_str(&cert), key, err);
	EVP_PKEY_free(key);
	return r;
}

static int choose_files(struct certificates *c, struct err *err)
{
	const char *cert = text_of(c, val_str(c->config, tlsCertFile)), *key = text_of(c, val_str(c->config, tlsPrivateKeyFile));

	if (val_bool(c->config, serverTLSBootstrap) && c->o.client) {
		c->by_request = true;
		c->cert_file = c->key_file = cert_store_path(&c->serving, &c->arena);
		return first_pair(c, cert, key, err);
	}
	c->cert_file = cert;
	c->key_file = key;
	if (cert || key)
		return 0;
	c->self_signed = true;
	c->cert_file = arena_printf(&c->arena, "%s/kubelet.crt", c->serving.dir).p;
	c->key_file = arena_printf(&c->arena, "%s/kubelet.key", c->serving.dir).p;
	int r = self_signed_ensure(c->cert_file, c->key_file, c->o.node_name, err);
	return r < 0 ? r : 0;
}

static int make_context(struct certificates *c, struct err *err)
{
	static const char *const protocols[] = { "h2", "http/1.1", NULL };
	CLEANUP(buf_done) struct buf suites = BUF_INIT(4096);
	const char *ca = text_of(c, val_str(c->config, authentication, x509, clientCAFile));

	VAL_EACH(suite, val_get(c->config, tlsCipherSuites)) {
		if (suites.n)
			buf_addc(&suites, ',');
		buf_add(&suites, val_as_str(*suite));
	}
	const struct tls_options o = {
		.cert_file = c->cert_file, .key_file = c->key_file, .ca_file = ca, .client_auth = ca ? TLS_CLIENT_AUTH_REQUEST : TLS_CLIENT_AUTH_NONE,
		.min_version = text_of(c, val_str(c->config, tlsMinVersion)), .cipher_suites = suites.n ? suites.p : NULL, .alpn = protocols,
	};
	return tls_server_new(&o, &c->tls, err);
}

/* ---- renewal ---- */

struct renewal {
	struct certificates *c;
	const struct cert_store *store;
	struct cert_order order;
	struct arena arena;           /* of the order */
};

static void key_freep(EVP_PKEY **key) { EVP_PKEY_free(*key); }
static void cert_freep(X509 **cert) { X509_free(*cert); }

static const char *const *texts_of(struct arena *a, struct val list)
{
	const char **texts = ARENA_ARRAY(a, const char *, val_len(list) + 1);
	size_t n = 0;

	VAL_EACH(text, list)
		texts[n++] = arena_str(a, val_as_str(*text)).p;
	texts[n] = NULL;
	return texts;
}

/* Is it the one that the kubeconfig was given with, for the start only? */
static bool is_given(const struct renewal *w, struct x509_st *cert)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(cert_freep) X509 *given = NULL;
	struct client_config config;
	str path = str_of(cert_store_path(w->store, &a));

	if (kubeconfig_open(&a, w->c->o.options->kubeconfig, &config, NULL) < 0 || str_eq(config.client_cert_file, path))
		return false;
	if (config.client_cert_file.n)
		return cert_read(arena_str(&a, config.client_cert_file).p, &given, NULL) == 0 && X509_cmp(given, cert) == 0;
	BIO *bio = BIO_new_mem_buf(config.client_cert.n ? config.client_cert.p : "", (int)config.client_cert.n);
	given = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	BIO_free(bio);
	ERR_clear_error();
	return given && X509_cmp(given, cert) == 0;
}

static bool fits(const struct renewal *w, struct x509_st *cert)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str name = arena_printf(&a, "system:node:" STR_FMT, STR_ARG(w->order.node_name));

	return str_eq(cert_subject(&a, cert, NID_commonName), name) &&
	       str_eq(cert_subject(&a, cert, NID_organizationName), STR("system:nodes")) &&
	       cert_has_names(cert, texts_of(&a, w->order.names), texts_of(&a, w->order.addresses)) &&
	       (w->order.serving || !is_given(w, cert));
}

/* When to renew, in seconds since 1970; ret_end: when the current one ends. */
static int64_t due_s(const struct renewal *w, int64_t *ret_end)
{
	CLEANUP(cert_freep) X509 *cert = NULL;

	*ret_end = 0;
	if (cert_store_read(w->store, &cert, NULL, NULL) < 0)
		return 0;
	*ret_end = cert_ends(cert);
	if (!fits(w, cert))
		return 0;
	int64_t life = MAX(*ret_end - cert_begins(cert), (int64_t)1);
	return cert_begins(cert) + life * 7 / 10 + (int64_t)random_below((uint64_t)life / 5 + 1);
}

struct update {
	const struct cert_store *store;
	str pem;
	EVP_PKEY *key;
};

static int update_store(void *arg, struct err *err)
{
	struct update *u = arg;
	return cert_store_update(u->store, u->pem, u->key, err);
}

/* (suspends) */
static int renew(struct renewal *w, struct err *err)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);
	CLEANUP(key_freep) EVP_PKEY *key = NULL;
	struct certificates *c = w->c;

	log_info("rotating certificates", KV("store", w->store->name));
	int r = key_make(&key, err);
	if (r == 0)
		r = cert_order_get(&w->order, c->o.client, key, false, WAIT_MS, &pem, err);
	if (r == 0)
		r = fiber_blocking(update_store, &(struct update){ w->store, buf_str(&pem), key }, err);
	if (r < 0)
		return r;
	if (w->order.serving)
		r = tls_reload(c->tls, err);
	else if (c->o.client_renewed)
		c->o.client_renewed(c->o.arg);
	return r < 0 ? r : 0;
}

/* The server is there and does not want us any more. */
static bool is_lost(const struct renewal *w, int r, int64_t end_s)
{
	return !w->order.serving && end_s && end_s < clock_wall_ns() / NS_PER_S &&
	       (r == -ERR_UNAUTHORIZED || r == -ERR_FORBIDDEN || r == -ERR_NOT_FOUND);
}

/* (suspends) Until it was renewed. */
static int renew_surely(struct renewal *w, int64_t end_s, struct err *err)
{
	for (int64_t wait_ms = FIRST_RETRY_MS;; wait_ms = MIN(2 * wait_ms, (int64_t)LAST_RETRY_MS)) {
		struct err why = ERR_INIT;
		int r = renew(w, &why);
		if (r == 0)
			return 0;
		if (fiber_check(err) < 0)
			return -ERR_CANCELED;
		if (is_lost(w, r, end_s))
			return err_set(err, ERR_UNAUTHORIZED, "the currently active client certificate has expired and the server is responsive");
		log_error("the certificate cannot be renewed, will retry", KV("store", w->store->name), KV("error", &why));
		if ((r = fiber_sleep_ms(wait_ms + (int64_t)random_below((uint64_t)wait_ms / 10), err)) < 0)
			return r;
	}
}

/* (suspends) By the clock on the wall, which may be set meanwhile. */
static int sleep_until(int64_t due, struct err *err)
{
	int r = 0;

	for (int64_t left_s; r == 0 && (left_s = due - clock_wall_ns() / NS_PER_S) > 0;)
		r = fiber_sleep_ms(left_s < NAP_MS / 1000 ? left_s * 1000 : NAP_MS, err);
	return r;
}

static int renewal_run(void *arg)
{
	struct renewal *w = arg;
	struct err err = ERR_INIT;
	int64_t end_s;
	int r;

	for (int64_t not_before = 0;; not_before = clock_wall_ns() / NS_PER_S + AGAIN_S) {
		r = sleep_until(MAX(due_s(w, &end_s), not_before), &err);
		if (r < 0 || (r = renew_surely(w, end_s, &err)) < 0)
			break;
	}
	if (r != -ERR_CANCELED) {
		w->c->failure = err;
		fiber_cond_broadcast(&w->c->failed);
	}
	return r;
}

/* ---- the loop ---- */

/* Files that cannot be read are told about once. */
static void reload(struct certificates *c, bool *failing)
{
	struct err why = ERR_INIT;
	int r = tls_reload(c->tls, &why);

	if (r < 0 && !*failing)
		log_error("certificates of the server cannot be read again", KV("error", &why));
	if (r > 0)
		log_info("certificates of the server have changed");
	*failing = r < 0;
}

/* (suspends) Until it is time to look again: 0; or something ends it. */
static int pause_reloading(struct certificates *c, struct err *err)
{
	{
		DEADLINE_SCOPE(RELOAD_MS);
		while (!c->failure.code && fiber_cond_wait(&c->failed, NULL) == 0)
			;
	}
	if (c->failure.code && err)
		*err = c->failure;
	return c->failure.code ? -(int)c->failure.code : fiber_check(err);
}

static int files_run(struct certificates *c, struct err *err)
{
	int64_t checked_ns = clock_now_ns();
	bool failing = false;
	int r;

	while ((r = pause_reloading(c, err)) == 0) {
		struct err why = ERR_INIT;
		if (c->self_signed && clock_now_ns() - checked_ns >= CHECK_MS * NS_PER_MS) {
			checked_ns = clock_now_ns();
			if (self_signed_ensure(c->cert_file, c->key_file, c->o.node_name, &why) < 0)
				log_error("the self-signed certificate cannot be renewed", KV("error", &why));
		}
		reload(c, &failing);
	}
	return r;
}

int certificates_run(struct certificates *c, struct err *err)
{
	struct renewal clients = { .c = c, .store = &c->clients, .order = { .node_name = c->o.node_name } };
	struct renewal serving = { .c = c, .store = &c->serving, .order = { .node_name = c->o.node_name, .serving = true } };
	bool rotates = val_bool(c->config, rotateCertificates) && c->o.client && cert_store_read(&c->clients, NULL, NULL, NULL) == 0;
	struct fiber_group group;
	int r = 0;

	fiber_group_init(&group);
	serving_names(&serving.arena, c->o.addresses, &serving.order.names, &serving.order.addresses);
	if (rotates)
		r = fiber_group_spawn(&group, renewal_run, &clients, err, "client certificate");
	if (r == 0 && c->by_request && val_len(serving.order.addresses))
		r = fiber_group_spawn(&group, renewal_run, &serving, err, "serving certificate");
	if (r == 0)
		r = files_run(c, err);
	fiber_group_done(&group);
	arena_done(&serving.arena);
	return r;
}

/* ---- life ---- */

int certificates_new(const struct certificates_options *o, struct certificates **ret, struct err *err)
{
	struct certificates *c = mem_zalloc(sizeof(*c));
	const struct kubelet_options *k = o->options;

	c->o = *o;
	fiber_cond_init(&c->failed, "a change of certificates");
	c->config = k->config->val;
	const char *dir = k->cert_dir ? arena_str(&c->arena, str_of(k->cert_dir)).p :
					arena_printf(&c->arena, "%s/pki", k->root ? k->root : "/var/lib/kubelet").p;
	c->o.node_name = arena_str(&c->arena, o->node_name);
	c->o.addresses = val_copy(&c->arena, o->addresses);
	c->clients = (struct cert_store){ dir, "kubelet-client" };
	c->serving = (struct cert_store){ dir, "kubelet-server" };
	int r = choose_files(c, err);
	if (r == 0)
		r = make_context(c, err);
	if (r < 0) {
		certificates_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct tls_context *certificates_tls(struct certificates *c) { return c->tls; }

void certificates_free(struct certificates *c)
{
	if (!c)
		return;
	tls_context_free(c->tls);
	arena_done(&c->arena);
	free(c);
}
