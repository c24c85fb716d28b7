/*
 * What connections of one server or client share. All of it that files can change lies in one SSL_CTX (with those of the
 * further certificates hanging from it), made anew by tls_reload and exchanged in one step: a connection holds the one
 * it began with. Servers give out no session tickets: every connection shows its certificate, which is looked at with
 * what is trusted now, and clients of Kubernetes make no use of them.
 */
#include "net/tls_priv.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/mem.h"
#include "net/crypto_part.h"

enum { FILE_MAX = 4 << 20, ALPN_MAX = 255, READ_BUFFER = 64 * 1024 };

/* A file, or text in its place. */
struct pem {
	char *path, *text;
};

struct sni {
	struct pem cert, key;
	char **names; /* NULL-ended; empty: the names in the certificate */
};

struct tls_context {
	bool server, insecure;
	enum tls_client_auth client_auth;
	int min_version;
	struct pem cert, key, ca, other_ca;
	char *server_name, *ciphers;
	unsigned char alpn[ALPN_MAX];
	size_t n_alpn;
	struct sni *sni;
	size_t n_sni;
	SSL_CTX *ctx;
	uint8_t stamp[SHA256_BYTES], content[SHA256_BYTES]; /* of the files' times and of what they had inside */
};

/* The further certificates of one SSL_CTX; dies with it. */
struct choice {
	char *name; /* in lower case */
	SSL_CTX *ctx;
};

struct live {
	unsigned char alpn[ALPN_MAX];
	size_t n_alpn, n_choices, cap_choices;
	struct choice *choices;
};

static int live_index = -1;

int tls_err(struct err *err, enum err_code code, const char *what)
{
	crypto_part_texts();
	unsigned long e = ERR_get_error();
	const char *reason = e ? ERR_reason_error_string(e) : NULL;

	ERR_clear_error();
	return reason ? err_set(err, code, "%s: %s", what, reason) : err_set(err, code, "%s", what);
}

/* ---- Files ---- */

static int read_pem(const struct pem *pem, struct buf *b, struct err *err)
{
	if (!pem->text)
		return file_read(pem->path, b, err);
	buf_add(b, str_of(pem->text));
	return buf_check(b, "the given text", err);
}

static bool pem_given(const struct pem *pem) { return pem->path || pem->text; }
static const char *pem_name(const struct pem *pem) { return pem->path ? pem->path : "the given text"; }

static void pem_set(struct pem *pem, const char *path, const char *text)
{
	if (text && *text)
		pem->text = strdup(text);
	else if (path && *path)
		pem->path = strdup(path);
}

static void pem_done(struct pem *pem)
{
	free(TAKE(pem->path));
	free(TAKE(pem->text));
}

/* fn for every file of the context. */
static int each_pem(const struct tls_context *t, int (*fn)(const struct pem *pem, struct sha256 *h, struct err *err),
		    struct sha256 *h, struct err *err)
{
	const struct pem *own[] = { &t->cert, &t->key, &t->ca, &t->other_ca };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(own) && r == 0; i++)
		if (pem_given(own[i]))
			r = fn(own[i], h, err);
	for (size_t i = 0; i < t->n_sni && r == 0; i++) {
		r = fn(&t->sni[i].cert, h, err);
		if (r == 0)
			r = fn(&t->sni[i].key, h, err);
	}
	return r;
}

static int hash_times(const struct pem *pem, struct sha256 *h, struct err *err)
{
	struct stat st;

	if (!pem->path)
		return 0;
	if (stat(pem->path, &st) < 0)
		return err_sys(err, errno, "look at %s", pem->path);
	uint64_t v[] = { (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_size, st.st_ino, st.st_dev };
	sha256_add(h, str_span((const char *)v, sizeof(v)));
	return 0;
}

static int hash_content(const struct pem *pem, struct sha256 *h, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = read_pem(pem, &b, err);

	uint64_t n = b.n;
	sha256_add(h, str_span((const char *)&n, sizeof(n)));
	sha256_add(h, buf_str(&b));
	return r;
}

static int hash_all(const struct tls_context *t, int (*fn)(const struct pem *pem, struct sha256 *h, struct err *err),
		    uint8_t ret_sum[SHA256_BYTES], struct err *err)
{
	CLEANUP(sha256_done) struct sha256 h;

	sha256_init(&h);
	int r = each_pem(t, fn, &h, err);
	if (r == 0)
		sha256_sum(&h, ret_sum);
	return r;
}

/* ---- Certificates ---- */

static void bio_freep(BIO **b) { (void)BIO_free(*b); }
static void x509_freep(X509 **x) { X509_free(*x); }
static void ctx_freep(SSL_CTX **c) { SSL_CTX_free(*c); }

/* An encrypted key is an error, not a question on the terminal. */
static int no_password(char *p, int n, int writing, void *arg)
{
	(void)p, (void)n, (void)writing, (void)arg;
	return -1;
}

static int use_certificate(SSL_CTX *ctx, const struct pem *pem, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = read_pem(pem, &b, err);
	if (r < 0)
		return r;
	CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(b.p ? b.p : "", (int)b.n);
	CLEANUP(x509_freep) X509 *leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	if (!leaf || SSL_CTX_use_certificate(ctx, leaf) != 1)
		return err_wrap(err, tls_err(err, ERR_INVALID, "read the certificate"), "%s", pem_name(pem));
	for (X509 *x; (x = PEM_read_bio_X509(bio, NULL, no_password, NULL));)
		if (SSL_CTX_add0_chain_cert(ctx, x) != 1) {
			X509_free(x);
			return err_wrap(err, tls_err(err, ERR_INVALID, "use the chain"), "%s", pem_name(pem));
		}
	ERR_clear_error();
	return 0;
}

static int use_key(SSL_CTX *ctx, const struct pem *pem, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = read_pem(pem, &b, err);
	if (r < 0)
		return r;
	CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(b.p ? b.p : "", (int)b.n);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	OPENSSL_cleanse(b.p, b.n);
	if (!key)
		return err_wrap(err, tls_err(err, ERR_INVALID, "read the private key"), "%s", pem_name(pem));
	bool fits = SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
	EVP_PKEY_free(key);
	if (!fits)
		return err_wrap(err, tls_err(err, ERR_INVALID, "the private key does not belong to the certificate"), "%s",
				pem_name(pem));
	return 0;
}

static int use_pair(SSL_CTX *ctx, const struct pem *cert, const struct pem *key, struct err *err)
{
	int r = use_certificate(ctx, cert, err);
	return r < 0 ? r : use_key(ctx, key, err);
}

/* Whom to trust; a server also tells clients which authorities it likes, and may know some that it leaves to others. */
static int use_ca(SSL_CTX *ctx, const struct tls_context *t, const struct pem *ca, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = read_pem(ca, &b, err), n = 0;
	if (r < 0)
		return r;
	CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(b.p ? b.p : "", (int)b.n);
	for (X509 *x; (x = PEM_read_bio_X509(bio, NULL, no_password, NULL)); n++) {
		bool ok = (ca != &t->ca || X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x) == 1) &&
			  (!t->server || SSL_CTX_add_client_CA(ctx, x) == 1);
		X509_free(x);
		if (!ok)
			return err_wrap(err, tls_err(err, ERR_INVALID, "use a certificate"), "%s", pem_name(ca));
	}
	if (!n)
		return err_wrap(err, tls_err(err, ERR_INVALID, "no certificate inside"), "%s", pem_name(ca));
	ERR_clear_error();
	return 0;
}

/* ---- Cipher suites ---- */

static const struct {
	const char *go, *openssl;
	bool insecure; /* only when asked for by name */
} suites[] = {
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", false },
	{ "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", false },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", false },
	{ "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", false },
	{ "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", false },
	{ "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", false },
	{ "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305", true },
	{ "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", true },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA", false },
	{ "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA", false },
	{ "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA", false },
	{ "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA", false },
	{ "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256", true },
	{ "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256", true },
	{ "TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", true },
	{ "TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384", true },
	{ "TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256", true },
	{ "TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA", true },
	{ "TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA", true },
};

/* Those of TLS 1.3 cannot be chosen, as in Go: their names are taken and mean nothing. */
static const char suites13[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

static bool is_suite13(str name)
{
	str rest = str_of(suites13), one;

	while (rest.n) {
		(void)str_cut(rest, ':', &one, &rest);
		if (str_eq(name, one))
			return true;
	}
	return false;
}

/* None at all when only those of TLS 1.3 are named: then TLS 1.2 is out of the question. */
static int ciphers_of(const char *go_names, struct buf *b, struct err *err)
{
	str rest = str_of(go_names), name;

	for (size_t i = 0; !go_names && i < ARRAY_LEN(suites); i++)
		if (!suites[i].insecure)
			buf_addf(b, "%s%s", b->n ? ":" : "", suites[i].openssl);
	while (rest.n) {
		(void)str_cut(rest, ',', &name, &rest);
		name = str_trim(name);
		size_t i = 0;
		while (i < ARRAY_LEN(suites) && !str_eq(name, str_of(suites[i].go)))
			i++;
		if (i < ARRAY_LEN(suites))
			buf_addf(b, "%s%s", b->n ? ":" : "", suites[i].openssl);
		else if (name.n && !is_suite13(name))
			return err_set(err, ERR_INVALID, "Cipher suite " STR_FMT " not supported or doesn't exist",
				       STR_ARG(name));
	}
	return buf_check(b, "the list of cipher suites", err);
}

static int alpn_of(const char *const *names, struct tls_context *t, struct err *err)
{
	for (; names && *names; names++) {
		size_t n = strlen(*names);
		if (n == 0 || n > 64 || t->n_alpn + n + 1 > ALPN_MAX)
			return err_set(err, ERR_INVALID, "bad list of protocols for TLS");
		t->alpn[t->n_alpn++] = (unsigned char)n;
		memcpy(t->alpn + t->n_alpn, *names, n);
		t->n_alpn += n;
	}
	return 0;
}

/* ---- While shaking hands ---- */

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *n_out, const unsigned char *in, unsigned n_in,
		   void *arg)
{
	struct live *live = arg;
	unsigned char *chosen = NULL;

	(void)ssl;
	/* As RFC 7301 and Go have it: a client that wants none of our protocols must not be taken for one that does. */
	if (SSL_select_next_proto(&chosen, n_out, live->alpn, (unsigned)live->n_alpn, in, n_in) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* As Go does: the name itself, then with "*" in place of its first label. */
static const struct choice *find_choice(const struct live *live, const char *name)
{
	const char *dot = strchr(name, '.');

	for (size_t i = 0; i < live->n_choices; i++)
		if (strcasecmp(live->choices[i].name, name) == 0)
			return &live->choices[i];
	for (size_t i = 0; dot && i < live->n_choices; i++)
		if (live->choices[i].name[0] == '*' && strcasecmp(live->choices[i].name + 1, dot) == 0)
			return &live->choices[i];
	return NULL;
}

static int on_server_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct choice *c = name ? find_choice(arg, name) : NULL;

	(void)alert;
	if (c)
		(void)SSL_set_SSL_CTX(ssl, c->ctx);
	return SSL_TLSEXT_ERR_OK;
}

/* Any certificate will do: whether it is trusted is kept for those who ask (SSL_get_verify_result). */
static int verify_and_accept(X509_STORE_CTX *chain, void *arg)
{
	(void)arg;
	(void)X509_verify_cert(chain);
	ERR_clear_error();
	return 1;
}

/* A client that does not accept the server's certificate keeps it, to say what was wrong with it. */
static int verify_and_keep(X509_STORE_CTX *chain, void *arg)
{
	int ok = X509_verify_cert(chain);
	SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
	X509 **refused = SSL_get_app_data(ssl), *x = X509_STORE_CTX_get_current_cert(chain);

	(void)arg;
	if (ok != 1 && refused && !*refused && x && X509_up_ref(x) == 1)
		*refused = x;
	return ok;
}

/* ---- Building ---- */

static void live_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long l, void *p)
{
	struct live *live = ptr;

	(void)parent, (void)data, (void)index, (void)l, (void)p;
	for (size_t i = 0; live && i < live->n_choices; i++) {
		free(live->choices[i].name);
		SSL_CTX_free(live->choices[i].ctx);
	}
	if (live)
		free(live->choices);
	free(live);
}

/* The name gets ctx unless an earlier certificate has it. */
static void add_choice(struct live *live, str name, SSL_CTX *ctx)
{
	for (size_t i = 0; i < live->n_choices; i++)
		if (str_eq(str_of(live->choices[i].name), name))
			return;
	if (live->n_choices == live->cap_choices) {
		live->cap_choices = MAX(live->cap_choices * 2, (size_t)8);
		live->choices = mem_resize(live->choices, live->cap_choices * sizeof(*live->choices));
	}
	SSL_CTX_up_ref(ctx);
	live->choices[live->n_choices++] = (struct choice){ strndup(name.p, name.n), ctx };
}

static bool is_dns_name(str s)
{
	struct in6_addr ip;
	char text[256];

	if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (inet_pton(AF_INET, text, &ip) == 1 || inet_pton(AF_INET6, text, &ip) == 1)
		return false;
	for (size_t i = str_starts(s, STR("*.")) ? 2 : 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
			return str_eq(s, STR("*"));
	return true;
}

/* Common name and DNS names of the certificate; addresses are never asked for by name. */
static void add_names_inside(struct live *live, SSL_CTX *ctx)
{
	X509 *x = SSL_CTX_get0_certificate(ctx);
	char cn[256];
	int n = X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof(cn));
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);

	if (n > 0 && is_dns_name(str_span(cn, (size_t)n)))
		add_choice(live, str_span(cn, (size_t)n), ctx);
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
		if (g->type != GEN_DNS)
			continue;
		str s = { (const char *)ASN1_STRING_get0_data(g->d.dNSName), (size_t)ASN1_STRING_length(g->d.dNSName) };
		if (is_dns_name(s))
			add_choice(live, s, ctx);
	}
	GENERAL_NAMES_free(names);
}

static void ask_client(SSL_CTX *ctx, enum tls_client_auth auth)
{
	static const unsigned char id[] = "c8s";

	SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(ctx, 0);
	if (auth == TLS_CLIENT_AUTH_REQUEST) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_cert_verify_callback(ctx, verify_and_accept, NULL);
	} else if (auth == TLS_CLIENT_AUTH_REQUIRE) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
}

static int set_protocols(SSL_CTX *ctx, const struct tls_context *t, struct live *live, struct err *err)
{
	if (t->server && t->n_alpn)
		SSL_CTX_set_alpn_select_cb(ctx, on_alpn, live);
	else if (t->n_alpn && SSL_CTX_set_alpn_protos(ctx, t->alpn, (unsigned)t->n_alpn) != 0)
		return tls_err(err, ERR_INTERNAL, "set the protocols for TLS");
	SSL_CTX_set_min_proto_version(ctx, t->min_version);
	if ((*t->ciphers && SSL_CTX_set_cipher_list(ctx, t->ciphers) != 1) || SSL_CTX_set_ciphersuites(ctx, suites13) != 1)
		return tls_err(err, ERR_INVALID, "set the cipher suites");
	return 0;
}

static int set_trust(SSL_CTX *ctx, const struct tls_context *t, struct err *err)
{
	if (t->server) {
		ask_client(ctx, t->client_auth);
	} else {
		SSL_CTX_set_verify(ctx, t->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_cert_verify_callback(ctx, verify_and_keep, NULL);
	}
	int r = pem_given(&t->other_ca) ? use_ca(ctx, t, &t->other_ca, err) : 0;
	if (r < 0)
		return r;
	if (pem_given(&t->ca))
		return use_ca(ctx, t, &t->ca, err);
	if (!t->server && SSL_CTX_set_default_verify_paths(ctx) != 1)
		return tls_err(err, ERR_INTERNAL, "find the system's certificates");
	return 0;
}

/* Also for the further certificates: once chosen, OpenSSL asks their context for everything but ticket keys. */
static int make_ctx(const struct tls_context *t, const struct pem *cert, const struct pem *key, struct live *live,
		    SSL_CTX **ret, struct err *err)
{
	CLEANUP(ctx_freep) SSL_CTX *ctx = SSL_CTX_new(t->server ? TLS_server_method() : TLS_client_method());

	if (!ctx)
		return tls_err(err, ERR_INTERNAL, "make a TLS context");
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	/* As in Go the chain is what the file has. Else OpenSSL would look for it among those trusted, at every handshake. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS |
			      SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, READ_BUFFER);
	int r = set_protocols(ctx, t, live, err);
	if (r == 0 && pem_given(cert))
		r = use_pair(ctx, cert, key, err);
	if (r == 0)
		r = set_trust(ctx, t, err);
	if (r < 0)
		return r;
	*ret = TAKE(ctx);
	return 0;
}

/* Names that were given go before names found in certificates; earlier certificates before later ones. */
static int add_choices(struct live *live, const struct tls_context *t, struct err *err)
{
	for (int explicit = 1; explicit >= 0; explicit--)
		for (size_t i = 0; i < t->n_sni; i++) {
			const struct sni *sni = &t->sni[i];
			CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
			if ((sni->names[0] != NULL) != explicit)
				continue;
			int r = make_ctx(t, &sni->cert, &sni->key, live, &ctx, err);
			if (r < 0)
				return r;
			for (char **name = sni->names; *name; name++)
				add_choice(live, str_of(*name), ctx);
			if (!explicit)
				add_names_inside(live, ctx);
		}
	return 0;
}

static int build(const struct tls_context *t, SSL_CTX **ret, struct err *err)
{
	CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
	struct live *live = mem_zalloc(sizeof(*live));
	int r = make_ctx(t, &t->cert, &t->key, live, &ctx, err);

	if (r < 0) {
		free(live);
		return r;
	}
	memcpy(live->alpn, t->alpn, t->n_alpn);
	live->n_alpn = t->n_alpn;
	SSL_CTX_set_ex_data(ctx, live_index, live);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
	SSL_CTX_set_tlsext_servername_arg(ctx, live);
	r = add_choices(live, t, err);
	if (r < 0)
		return r;
	*ret = TAKE(ctx);
	return 0;
}

/* Takes the files as they are now; all stays as it was on error. */
static int rebuild(struct tls_context *t, struct err *err)
{
	uint8_t stamp[SHA256_BYTES], content[SHA256_BYTES];
	SSL_CTX *ctx = NULL;
	/* The times first: what is written while we read is found the next time. */
	int r = hash_all(t, hash_times, stamp, err);

	if (r == 0)
		r = hash_all(t, hash_content, content, err);
	if (r == 0)
		r = build(t, &ctx, err);
	if (r < 0)
		return r;
	SSL_CTX_free(t->ctx);
	t->ctx = ctx;
	memcpy(t->stamp, stamp, sizeof(stamp));
	memcpy(t->content, content, sizeof(content));
	return 0;
}

int tls_reload(struct tls_context *t, struct err *err)
{
	uint8_t stamp[SHA256_BYTES], content[SHA256_BYTES];
	int r = hash_all(t, hash_times, stamp, err);

	if (r < 0 || memcmp(stamp, t->stamp, sizeof(stamp)) == 0)
		return r;
	r = hash_all(t, hash_content, content, err);
	if (r < 0)
		return r;
	if (memcmp(content, t->content, sizeof(content)) == 0) {
		memcpy(t->stamp, stamp, sizeof(stamp));
		return 0;
	}
	r = rebuild(t, err);
	return r < 0 ? r : 1;
}

/* ---- Life ---- */

static int min_version_of(const char *name, int *ret, struct err *err)
{
	if (!name || !*name || strcmp(name, "VersionTLS12") == 0)
		*ret = TLS1_2_VERSION;
	else if (strcmp(name, "VersionTLS13") == 0)
		*ret = TLS1_3_VERSION;
	else
		return err_set(err, ERR_INVALID, "unknown tls version \"%s\"", name);
	return 0;
}

static void make_live_index(void) { live_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, live_free); }

static void context_freep(struct tls_context **t) { tls_context_free(*t); }

static int new_context(const struct tls_options *o, bool server, struct tls_context **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CLEANUP(context_freep) struct tls_context *t = mem_zalloc(sizeof(*t));
	CLEANUP(buf_done) struct buf ciphers = BUF_INIT(4096);

	(void)pthread_once(&once, make_live_index);
	t->server = server;
	t->insecure = o->insecure_skip_verify;
	t->client_auth = o->client_auth;
	pem_set(&t->cert, o->cert_file, o->cert_pem);
	pem_set(&t->key, o->key_file, o->key_pem);
	pem_set(&t->ca, o->ca_file, o->ca_pem);
	pem_set(&t->other_ca, o->other_ca_file, NULL);
	t->server_name = o->server_name && *o->server_name ? strdup(o->server_name) : NULL;
	int r = min_version_of(o->min_version, &t->min_version, err);
	if (r == 0)
		r = ciphers_of(o->cipher_suites && *o->cipher_suites ? o->cipher_suites : NULL, &ciphers, err);
	if (r == 0)
		r = alpn_of(o->alpn, t, err);
	if (r == 0 && pem_given(&t->cert) != pem_given(&t->key))
		r = err_set(err, ERR_INVALID, "a certificate and its private key must be given together");
	if (r == 0 && server && !pem_given(&t->cert))
		r = err_set(err, ERR_INVALID, "a TLS server needs a certificate");
	if (r < 0)
		return r;
	if (!ciphers.n)
		t->min_version = TLS1_3_VERSION;
	t->ciphers = buf_take(&ciphers);
	r = rebuild(t, err);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

int tls_server_new(const struct tls_options *o, struct tls_context **ret, struct err *err)
{
	return new_context(o, true, ret, err);
}

int tls_client_new(const struct tls_options *o, struct tls_context **ret, struct err *err)
{
	return new_context(o, false, ret, err);
}

static void sni_done(struct sni *sni)
{
	pem_done(&sni->cert);
	pem_done(&sni->key);
	for (char **name = sni->names; *name; name++)
		free(*name);
	free(sni->names);
}

void tls_context_free(struct tls_context *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	for (size_t i = 0; i < t->n_sni; i++)
		sni_done(&t->sni[i]);
	free(t->sni);
	pem_done(&t->cert);
	pem_done(&t->key);
	pem_done(&t->ca);
	pem_done(&t->other_ca);
	free(t->server_name);
	free(t->ciphers);
	free(t);
}

int tls_add_sni(struct tls_context *t, const char *cert_file, const char *key_file, const char *const *names,
		struct err *err)
{
	size_t n = 0;

	while (names && names[n])
		n++;
	t->sni = mem_resize(t->sni, (t->n_sni + 1) * sizeof(*t->sni));
	struct sni *sni = &t->sni[t->n_sni];
	*sni = (struct sni){ .names = mem_array(n + 1, sizeof(*sni->names)) };
	for (size_t i = 0; i < n; i++)
		sni->names[i] = strdup(names[i]);
	sni->names[n] = NULL;
	pem_set(&sni->cert, cert_file, NULL);
	pem_set(&sni->key, key_file, NULL);
	t->n_sni++;
	int r = pem_given(&sni->cert) && pem_given(&sni->key) ?
			rebuild(t, err) :
			err_set(err, ERR_INVALID, "a certificate and its private key must be given together");
	if (r < 0)
		sni_done(&t->sni[--t->n_sni]);
	return r;
}

SSL *tls_ssl_new(struct tls_context *t, struct x509_st **refused, struct err *err)
{
	SSL *ssl = SSL_new(t->ctx);

	if (ssl)
		SSL_set_app_data(ssl, refused);
	else
		(void)tls_err(err, ERR_INTERNAL, "make a TLS connection");
	return ssl;
}

const char *tls_server_name(const struct tls_context *t) { return t->server_name; }
bool tls_is_insecure(const struct tls_context *t) { return t->insecure; }
