/* Certificates of a kubelet: its files, its requests, and both with a whole API server, where the test is the signer. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "client/fake_test.h"
#include "client/folder_testing.h"
#include "client/inside_testing.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "kubelet/certificates_priv.h"
#include "net/stream.h"

enum { WAIT_MS = 10000, STEP_MS = 5 };

#define CSR TYPE(certificates_v1, CertificateSigningRequest)

static const char fixed_key[] = "-----BEGIN EC PRIVATE KEY-----\n"
				"MHcCAQEEIKOAJW/TTZWdy/+gQ0fcOpF70CdxF9SF8QHnHPyuaQO0oAoGCCqGSM49\n"
				"AwEHoUQDQgAE9bJvrflskqTAu9/NQQCsGlsMZm4ng4VpwSFmc1djcRl8+NM0/lxU\n"
				"qqNa2r0PuWkxGpaoAPLYdKw+MLfasj152w==\n"
				"-----END EC PRIVATE KEY-----\n";

static str text_of(struct arena *a, struct val v) { return testing_swap(a, testing_text(a, v), '"', '\''); }

static str file_text(struct folder *f, const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;
	if (file_read(path, &b, &err) < 0)
		fail_msg("%s", err.msg);
	return arena_str(&f->arena, buf_str(&b));
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	CHECK_INT(stat(path, &st), 0);
	return st.st_mode & 0777;
}

/* ---- requests ---- */

TEST(certificates_request_is_named_by_its_content)
{
	struct folder f;
	folder_init(&f);
	EVP_PKEY *key = NULL;
	struct cert_order o = { .node_name = STR("n1") };
	CHECK_INT(key_read(put_file(&f, "key", fixed_key, 0600), &key, NULL), 0);
	/* As Kubernetes computes it from the same key. */
	CHECK_STR(cert_order_name(&o, key, &f.arena), "node-csr-usmFLlvxS-B-7YKDZePf2JTLfbkmcYgoS1KOPLJzoBA");
	o.node_name = STR("n2");
	CHECK(!str_eq(cert_order_name(&o, key, &f.arena), STR("node-csr-usmFLlvxS-B-7YKDZePf2JTLfbkmcYgoS1KOPLJzoBA")));
	EVP_PKEY_free(key);
	folder_done(&f);
}

/* "O=system:nodes,CN=system:node:n1 DNS:a IP:..." */
static str show_request(struct arena *a, str pem)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n), *out = BIO_new(BIO_s_mem());
	X509_REQ *q = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
	CHECK(q && X509_REQ_verify(q, X509_REQ_get0_pubkey(q)) == 1);
	char *p;
	CHECK(X509_NAME_print_ex(out, X509_REQ_get_subject_name(q), 0, XN_FLAG_SEP_COMMA_PLUS) >= 0);
	long size = BIO_get_mem_data(out, &p);
	buf_add(&b, str_span(p, (size_t)size));
	STACK_OF(X509_EXTENSION) *extensions = X509_REQ_get_extensions(q);
	GENERAL_NAMES *names = X509V3_get_d2i(extensions, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		BIO *one = BIO_new(BIO_s_mem());
		GENERAL_NAME_print(one, sk_GENERAL_NAME_value(names, i));
		long n = BIO_get_mem_data(one, &p);
		buf_addc(&b, ' ');
		buf_add(&b, str_span(p, (size_t)n));
		BIO_free(one);
	}
	GENERAL_NAMES_free(names);
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
	X509_REQ_free(q);
	BIO_free(bio);
	BIO_free(out);
	return arena_str(a, buf_str(&b));
}

TEST(certificates_request_says_who_and_what)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20), other = BUF_INIT(1 << 20);
	EVP_PKEY *key = NULL;
	struct cert_order o = { .node_name = STR("n1") };
	CHECK_INT(key_make(&key, NULL), 0);
	CHECK_INT(cert_order_pem(&o, key, &b, NULL), 0);
	CHECK_STR(show_request(&a, buf_str(&b)), "O=system:nodes,CN=system:node:n1");
	o.serving = true;
	/* A name is one name, whatever is in it. */
	o.names = testing_tree(&a, "['n1','x,IP:1.2.3.4']");
	o.addresses = testing_tree(&a, "['10.0.0.1','fd00::1']");
	CHECK_INT(cert_order_pem(&o, key, &other, NULL), 0);
	CHECK_STR(show_request(&a, buf_str(&other)), "O=system:nodes,CN=system:node:n1 DNS:n1 DNS:x,IP:1.2.3.4 "
						     "IP Address:10.0.0.1 IP Address:FD00:0:0:0:0:0:0:1");
	o.addresses = testing_tree(&a, "['nonsense']");
	CHECK_INT(cert_order_pem(&o, key, &other, NULL), -ERR_INTERNAL);
	EVP_PKEY_free(key);
}

TEST(certificates_names_of_a_node)
{
	static const struct {
		const char *addresses, *names, *ips;
	} rows[] = {
		{ "[{'type':'InternalIP','address':'10.0.0.2'},{'type':'ExternalIP','address':'1.2.3.4'},{'type':'Hostname','address':'n1'},"
		  "{'type':'InternalDNS','address':'n1.local'},{'type':'ExternalDNS','address':'n1.local'}]",
		  "['n1','n1.local']", "['1.2.3.4','10.0.0.2']" },
		{ "[{'type':'Hostname','address':'10.0.0.9'},{'type':'InternalIP','address':'10.0.0.9'},{'type':'InternalIP','address':'x'}]",
		  "[]", "['10.0.0.9']" },
		{ "[]", "[]", "[]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val names, ips;
		serving_names(&a, testing_tree(&a, rows[i].addresses), &names, &ips);
		CHECK_STR_ROW(i, text_of(&a, names), rows[i].names);
		CHECK_STR_ROW(i, text_of(&a, ips), rows[i].ips);
	}
}

/* ---- files ---- */

TEST(certificates_self_signed)
{
	static const char *const name[] = { "n1", NULL };
	struct folder f;
	folder_init(&f);
	const char *cert_file = in_folder(&f, "pki/kubelet.crt"), *key_file = in_folder(&f, "pki/kubelet.key");
	log_set_level(LOG_LEVEL_OFF);
	CHECK_INT(self_signed_ensure(cert_file, key_file, STR("n1"), NULL), 1);
	str first = file_text(&f, cert_file);
	CHECK_INT(mode_of(key_file), 0600);
	CHECK_INT(mode_of(cert_file), 0644);
	X509 *cert = NULL;
	CHECK_INT(cert_read(cert_file, &cert, NULL), 0);
	CHECK(cert_has_names(cert, name, NULL));
	CHECK(str_starts(cert_subject(&f.arena, cert, NID_commonName), STR("n1@")));
	int64_t end_s = cert_ends(cert);
	X509_free(cert);
	/* It stays, until its last day; a key that does not fit is none. */
	CHECK_INT(self_signed_ensure(cert_file, key_file, STR("n1"), NULL), 0);
	CHECK(str_eq(file_text(&f, cert_file), first));
	clock_virtual_set(0, (end_s - 3600) * NS_PER_S);
	CHECK_INT(self_signed_ensure(cert_file, key_file, STR("n1"), NULL), 1);
	clock_virtual_off();
	(void)put_file(&f, "pki/kubelet.key", fixed_key, 0600);
	CHECK_INT(self_signed_ensure(cert_file, key_file, STR("10.0.0.1"), NULL), 1);
	CHECK_INT(cert_read(cert_file, &cert, NULL), 0);
	CHECK(cert_has_names(cert, NULL, (const char *const[]){ "10.0.0.1", NULL }));
	X509_free(cert);
	folder_done(&f);
}

/* A certificate of ca (NULL: its own) for this node. */
static void make_pair(const struct key_pair *ca, const char *cn, const char *org, int days, EVP_PKEY *key, X509 **ret, struct buf *pem)
{
	static const char *const names[] = { "n1", NULL }, *const addresses[] = { "10.0.0.1", NULL };
	const struct cert_request q = { .common_name = cn, .organization = org, .for_clients = true, .for_servers = true, .days = days,
					.names = names, .addresses = addresses };
	CHECK_INT(cert_make(&q, key, ca, ret, NULL), 0);
	CHECK_INT(cert_pem(*ret, pem, NULL), 0);
}

TEST(certificates_store)
{
	struct folder f;
	struct err err = ERR_INIT;
	folder_init(&f);
	CLEANUP(buf_done) struct buf pem = BUF_INIT(1 << 20);
	const struct cert_store s = { in_folder(&f, "pki"), "kubelet-client" };
	const char *current = cert_store_path(&s, &f.arena), *updated = in_folder(&f, "pki/kubelet-client-updated.pem");
	EVP_PKEY *key = NULL, *other = NULL, *got = NULL;
	X509 *cert = NULL, *read = NULL;
	CHECK_INT(key_make(&key, NULL), 0);
	CHECK_INT(key_make(&other, NULL), 0);
	make_pair(NULL, "x", "y", 1, key, &cert, &pem);
	CHECK_INT(cert_store_read(&s, &read, NULL, NULL), -ERR_NOT_FOUND);
	CHECK_INT(cert_store_recover(&s, NULL), 0);

	clock_virtual_set(0, INT64_C(1700000000) * NS_PER_S);
	CHECK_INT(cert_store_update(&s, buf_str(&pem), key, NULL), 0);
	clock_virtual_off();
	char target[512];
	ssize_t n = readlink(current, target, sizeof(target));
	CHECK(n > 0 && str_find(str_span(target, (size_t)n), STR("/pki/kubelet-client-2023-11-1")) > 0);
	CHECK_INT(mode_of(current), 0600);
	CHECK_INT(cert_store_read(&s, &read, &got, NULL), 0);
	CHECK(X509_cmp(read, cert) == 0 && EVP_PKEY_eq(got, key) == 1);
	X509_free(read);
	EVP_PKEY_free(got);

	/* What does not fit together changes nothing; nor does what is no certificate. */
	CHECK_INT(cert_store_update(&s, buf_str(&pem), other, &err), -ERR_INVALID);
	CHECK_INT(cert_store_update(&s, STR("x"), key, &err), -ERR_INVALID);
	CHECK_INT(cert_store_update(&s, buf_str(&pem), key, NULL), 0);
	/* An update that was cut off before the last step is finished. */
	CHECK_INT(rename(current, updated), 0);
	CHECK_INT(cert_store_recover(&s, NULL), 0);
	CHECK_INT(cert_store_read(&s, NULL, NULL, NULL), 0);
	/* A file where the link should be is not overwritten. */
	CHECK_INT(unlink(current), 0);
	(void)put_file(&f, "pki/kubelet-client-current.pem", "mine", 0600);
	CHECK_INT(cert_store_update(&s, buf_str(&pem), key, &err), -ERR_INVALID);
	CHECK_STR(file_text(&f, current), "mine");
	X509_free(cert);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	folder_done(&f);
}

/* ---- with a server ---- */

/* The test is the controller that approves and signs. */
struct signer {
	struct world *w;
	struct key_pair ca;
	int days;
	bool denies;
	int signed_requests;
	char last_name[128];
	char last_signer[128];
};

static void sign(struct signer *g, struct val csr)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(1 << 20), cert = BUF_INIT(1 << 20), text = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct world *w = g->w;
	const struct client_write_options approval = { .subresource = STR("approval") }, status = { .subresource = STR("status") };
	CLEANUP(frozen_unrefp) struct frozen *approved = NULL;
	X509 *x = NULL;
	str name = val_str(csr, metadata, name);

	(void)snprintf(g->last_name, sizeof(g->last_name), STR_FMT, STR_ARG(name));
	(void)snprintf(g->last_signer, sizeof(g->last_signer), STR_FMT, STR_ARG(val_str(csr, spec, signerName)));
	g->signed_requests++;
	struct val condition = testing_tree(&a, g->denies ? "[{'type':'Denied','status':'True','reason':'No','message':'because'}]" :
							    "[{'type':'Approved','status':'True','reason':'Yes'}]");
	CHECK_OK(w, client_update(w->c, CSR, val_with(&a, csr, condition, status, conditions), &approval, &approved, &w->err));
	if (g->denies)
		return;
	CHECK_INT(base64_decode_buf(&pem, val_str(csr, spec, request), NULL), 0);
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509_REQ *q = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
	make_pair(&g->ca, "system:node:n1", "system:nodes", g->days, X509_REQ_get0_pubkey(q), &x, &cert);
	X509_free(x);
	X509_REQ_free(q);
	BIO_free(bio);
	base64_encode_buf(&text, buf_str(&cert));
	struct val issued = val_with(&a, approved->val, val_of_str(buf_str(&text)), status, certificate);
	CHECK_OK(w, client_update(w->c, CSR, issued, &status, NULL, &w->err));
}

static int signer_run(void *arg)
{
	struct signer *g = arg;

	while (fiber_sleep_ms(STEP_MS, NULL) == 0) {
		CLEANUP(frozen_unrefp) struct frozen *list = NULL;
		SHIELD_SCOPE();
		if (client_list(g->w->c, CSR, &(struct client_list_options){ 0 }, &list, NULL) < 0)
			continue;
		VAL_EACH(csr, val_get(list->val, items))
			if (!val_len(val_get(*csr, status, conditions)))
				sign(g, *csr);
	}
	return 0;
}

struct office {
	struct world w;
	struct folder f;
	struct signer signer;
	struct fiber *fiber;
	struct kubelet_options options;
};

/* config: of the kubelet. A kubeconfig "start.conf" of the administrator is there. */
static void office_init(struct office *o, const char *config)
{
	*o = (struct office){ .signer = { .days = 365 } };
	world_init(&o->w);
	folder_init(&o->f);
	log_set_level(LOG_LEVEL_OFF);
	o->signer.w = &o->w;
	CHECK_INT(cert_read(pki_path(&o->f.arena, o->w.folder.path, "ca.crt"), &o->signer.ca.cert, NULL), 0);
	CHECK_INT(key_read(pki_path(&o->f.arena, o->w.folder.path, "ca.key"), &o->signer.ca.key, NULL), 0);
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	str server = arena_printf(&o->f.arena, "https://127.0.0.1:%u", o->w.server->port);
	kubeconfig_build(&b, server.p, file_text(&o->f, pki_path(&o->f.arena, o->w.folder.path, "ca.crt")), "admin",
			 file_text(&o->f, pki_path(&o->f.arena, o->w.folder.path, "admin.crt")),
			 file_text(&o->f, pki_path(&o->f.arena, o->w.folder.path, "admin.key")));
	(void)put_file(&o->f, "start.conf", b.p, 0600);
	struct val v = testing_typed(&o->f.arena, TYPE(kubeletconfig_v1beta1, KubeletConfiguration), config);
	o->options = (struct kubelet_options){ .config = val_freeze(v), .cert_dir = in_folder(&o->f, "pki"), .root = o->f.path,
					       .kubeconfig = in_folder(&o->f, "kubelet.conf") };
	o->fiber = start(signer_run, &o->signer);
}

static void office_done(struct office *o)
{
	CHECK_INT(fiber_stop(o->fiber), 0);
	key_pair_done(&o->signer.ca);
	frozen_unref(o->options.config);
	folder_done(&o->f);
	world_done(&o->w);
}

/* Whom the server takes the owner of this configuration for. */
static str who_is(struct office *o, const struct client_config *config)
{
	CLEANUP(client_freep) struct client *c = NULL;
	CLEANUP(frozen_unrefp) struct frozen *review = NULL;
	const struct type *type = TYPE(authentication_v1, SelfSubjectReview);
	CHECK_OK(&o->w, client_open(config, &c, &o->w.err));
	CHECK_OK(&o->w, client_create(c, type, tree(&o->w, "{'apiVersion':'authentication.k8s.io/v1','kind':'SelfSubjectReview'}"), NULL, &review,
				      &o->w.err));
	return arena_str(&o->f.arena, val_str(review->val, status, userInfo, username));
}

static void put_ended_pair(struct folder *f)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(1 << 20);
	const struct cert_store s = { in_folder(f, "pki"), "kubelet-client" };
	EVP_PKEY *key = NULL;
	X509 *cert = NULL;
	CHECK_INT(key_make(&key, NULL), 0);
	make_pair(NULL, "system:node:n1", "system:nodes", -1, key, &cert, &pem);
	CHECK_INT(cert_store_update(&s, buf_str(&pem), key, NULL), 0);
	X509_free(cert);
	EVP_PKEY_free(key);
}

FIBER_TEST(certificates_bootstrap)
{
	static struct office o;
	struct client_config *config = NULL;
	office_init(&o, "{}");
	/* There is a kubeconfig already: it is used. */
	o.options.kubeconfig = in_folder(&o.f, "start.conf");
	CHECK_OK(&o.w, kubelet_identity(&o.options, STR("n1"), &config, &o.w.err));
	CHECK_STR(who_is(&o, config), "kubernetes-admin");
	kubelet_identity_free(TAKE(config));
	CHECK_INT(o.signer.signed_requests, 0);

	o.options.kubeconfig = in_folder(&o.f, "kubelet.conf");
	o.options.bootstrap_kubeconfig = in_folder(&o.f, "start.conf");
	CHECK_OK(&o.w, kubelet_identity(&o.options, STR("n1"), &config, &o.w.err));
	CHECK_STR(who_is(&o, config), "system:node:n1");
	CHECK(str_starts(str_of(o.signer.last_name), STR("node-csr-")));
	CHECK_STR(str_of(o.signer.last_signer), "kubernetes.io/kube-apiserver-client-kubelet");
	CHECK(access(in_folder(&o.f, "pki/kubelet-client.key.tmp"), F_OK) < 0);
	kubelet_identity_free(TAKE(config));
	CHECK(str_find(file_text(&o.f, in_folder(&o.f, "kubelet.conf")), STR("client-certificate: pki/kubelet-client-current.pem\n")) > 0);

	/* The next start needs none of that; one whose certificate has ended does. */
	CHECK_OK(&o.w, kubelet_identity(&o.options, STR("n1"), &config, &o.w.err));
	kubelet_identity_free(TAKE(config));
	CHECK_INT(o.signer.signed_requests, 1);
	put_ended_pair(&o.f);
	CHECK_OK(&o.w, kubelet_identity(&o.options, STR("n1"), &config, &o.w.err));
	CHECK_STR(who_is(&o, config), "system:node:n1");
	kubelet_identity_free(TAKE(config));
	CHECK_INT(o.signer.signed_requests, 2);
	office_done(&o);
}

FIBER_TEST(certificates_bootstrap_denied)
{
	static struct office o;
	struct client_config *config = NULL;
	office_init(&o, "{}");
	o.signer.denies = true;
	o.options.bootstrap_kubeconfig = in_folder(&o.f, "start.conf");
	for (int i = 0; i < 2; i++) {
		/* The second time the same request is found again: there is no other key. */
		CHECK_FAILS(&o.w, kubelet_identity(&o.options, STR("n1"), &config, &o.w.err), ERR_FORBIDDEN,
			    "cannot watch on the certificate signing request: certificate signing request is denied, reason: No, "
			    "message: because");
		CHECK_INT(o.signer.signed_requests, 1);
		CHECK(access(in_folder(&o.f, "pki/kubelet-client.key.tmp"), F_OK) == 0);
	}
	CHECK(access(o.options.kubeconfig, F_OK) < 0);
	office_done(&o);
}

static int run_certificates(void *arg) { return certificates_run(arg, NULL); }
static void on_renewed(void *arg) { ++*(int *)arg; }

static void wait_for(const int *n, int at_least)
{
	for (int i = 0; i < WAIT_MS / STEP_MS && *n < at_least; i++)
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	CHECK(*n >= at_least);
}

FIBER_TEST(certificates_rotation)
{
	static struct office o;
	struct client_config *config = NULL;
	struct certificates *c = NULL;
	int renewed = 0;
	office_init(&o, "{'rotateCertificates':true}");
	/* One that the kubeconfig brought is there for the start: it is put where the kubelet's own is, and replaced at once. */
	o.options.kubeconfig = in_folder(&o.f, "start.conf");
	CHECK_OK(&o.w, kubelet_identity(&o.options, STR("n1"), &config, &o.w.err));
	CLEANUP(client_freep) struct client *client = NULL;
	CHECK_OK(&o.w, client_open(config, &client, &o.w.err));
	CHECK_STR(who_is(&o, config), "kubernetes-admin");
	const struct certificates_options options = { .options = &o.options, .node_name = STR("n1"), .client = client,
						      .client_renewed = on_renewed, .arg = &renewed };
	CHECK_OK(&o.w, certificates_new(&options, &c, &o.w.err));
	struct fiber *fiber = start(run_certificates, c);
	wait_for(&renewed, 1);
	CHECK_STR(who_is(&o, config), "system:node:n1");
	CHECK(str_starts(str_of(o.signer.last_name), STR("csr-")));
	/* It stays now. */
	CHECK_INT(fiber_sleep_ms(200, NULL), 0);
	CHECK_INT(renewed, 1);
	CHECK_INT(fiber_stop(fiber), -ERR_CANCELED);
	certificates_free(c);
	kubelet_identity_free(config);
	office_done(&o);
}

/* What a server with this context shows a client: the issuer of its certificate. */
static int serve_one(void *arg)
{
	struct tls_context *tls = ((void **)arg)[0];
	int fd = *(int *)((void **)arg)[1];
	struct stream *s = NULL;
	int r = stream_accept_tls(fd, tls, &s, NULL);
	char p;
	if (r == 0)
		(void)stream_read(s, &p, 1, NULL);
	stream_free(s);
	return r;
}

static str shown_by(struct certificates *c, struct arena *a)
{
	struct tls_context *tls = NULL;
	struct stream *s = NULL;
	int fds[2];
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	struct fiber *f = start(serve_one, (void *[]){ certificates_tls(c), &fds[0] });
	CHECK_INT(tls_client_new(&(struct tls_options){ .insecure_skip_verify = true }, &tls, NULL), 0);
	CHECK_INT(stream_connect_tls(fds[1], tls, "n1", &s, NULL), 0);
	str name = cert_subject(a, stream_peer_certificate(s), NID_commonName);
	stream_free(s);
	(void)join(f);
	tls_context_free(tls);
	return name;
}

FIBER_TEST(certificates_for_serving)
{
	static struct office o;
	struct certificates *c = NULL;
	office_init(&o, "{'serverTLSBootstrap':true}");
	const struct certificates_options options = {
		.options = &o.options, .node_name = STR("n1"), .client = o.w.c,
		.addresses = testing_tree(&o.f.arena, "[{'type':'InternalIP','address':'10.0.0.1'},{'type':'Hostname','address':'n1'}]"),
	};
	CHECK_OK(&o.w, certificates_new(&options, &c, &o.w.err));
	CHECK(str_starts(shown_by(c, &o.f.arena), STR("n1@")));
	struct fiber *fiber = start(run_certificates, c);
	for (int i = 0; i < WAIT_MS / STEP_MS && str_starts(shown_by(c, &o.f.arena), STR("n1@")); i++)
		CHECK_INT(fiber_sleep_ms(STEP_MS, NULL), 0);
	CHECK_STR(shown_by(c, &o.f.arena), "system:node:n1");
	CHECK_STR(str_of(o.signer.last_signer), "kubernetes.io/kubelet-serving");
	CHECK(access(in_folder(&o.f, "pki/kubelet-server-current.pem"), F_OK) == 0);
	CHECK_INT(fiber_stop(fiber), -ERR_CANCELED);
	certificates_free(c);
	office_done(&o);
}

FIBER_TEST(certificates_alone)
{
	struct folder f;
	struct err err = ERR_INIT;
	struct certificates *c = NULL;
	folder_init(&f);
	struct val v = testing_typed(&f.arena, TYPE(kubeletconfig_v1beta1, KubeletConfiguration), "{'serverTLSBootstrap':true}");
	struct kubelet_options options = { .config = val_freeze(v), .cert_dir = in_folder(&f, "pki") };
	log_set_level(LOG_LEVEL_OFF);
	if (certificates_new(&(struct certificates_options){ .options = &options, .node_name = STR("n1") }, &c, &err) < 0)
		fail_msg("%s", err.msg);
	CHECK(str_starts(shown_by(c, &f.arena), STR("n1@")));
	certificates_free(c);
	CHECK(access(in_folder(&f, "pki/kubelet.crt"), F_OK) == 0);
	frozen_unref(options.config);
	folder_done(&f);
}

/* ---- times ---- */

/* How many requests were made since the last look. */
static int requests(struct fake *f)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	int n = 0;
	for (str rest = fake_log(f, &a), line; rest.n; n += str_starts(line, STR("create /apis/certificates.k8s.io/v1/certificatesigningrequests")))
		(void)str_cut(rest, '\n', &line, &rest);
	return n;
}

FIBER_TEST(certificates_are_renewed_in_time)
{
	enum { LIFE_MS = 24 * 3600 * 1000 };
	static struct fake f;
	struct folder d;
	struct err err = ERR_INIT;
	folder_init(&d);
	fake_clock(INT64_C(1700000000) * NS_PER_S);
	log_set_level(LOG_LEVEL_OFF);
	fake_init(&f);
	CLEANUP(buf_done) struct buf pem = BUF_INIT(1 << 20);
	const struct cert_store s = { in_folder(&d, "pki"), "kubelet-client" };
	EVP_PKEY *key = NULL;
	X509 *cert = NULL;
	CHECK_INT(key_make(&key, NULL), 0);
	make_pair(NULL, "system:node:n1", "system:nodes", 1, key, &cert, &pem);
	CHECK_INT(cert_store_update(&s, buf_str(&pem), key, NULL), 0);
	struct val v = testing_typed(&d.arena, TYPE(kubeletconfig_v1beta1, KubeletConfiguration), "{'rotateCertificates':true}");
	struct kubelet_options options = { .config = val_freeze(v), .cert_dir = s.dir };
	const struct certificates_options o = { .options = &options, .node_name = STR("n1"), .client = &f.client };
	struct certificates *c = NULL;
	CHECK_INT(certificates_new(&o, &c, &err), 0);
	struct fiber *fiber = start(run_certificates, c);

	f.fail = ERR_UNAVAILABLE;
	CHECK_INT(fiber_sleep_ms(LIFE_MS / 100 * 69, NULL), 0);
	CHECK_INT(requests(&f), 0);
	CHECK_INT(fiber_sleep_ms(LIFE_MS / 100 * 22, NULL), 0);
	CHECK(requests(&f) > 0);
	/* After its end: a server that is away may come back, one that does not want us any more will not change its mind. */
	CHECK_INT(fiber_sleep_ms(LIFE_MS / 10, NULL), 0);
	CHECK(requests(&f) > 0);
	f.fail = ERR_UNAUTHORIZED;
	CHECK_INT(fiber_sleep_ms(60 * 1000, NULL), 0);
	CHECK_INT(join(fiber), -ERR_UNAUTHORIZED);
	certificates_free(c);
	frozen_unref(options.config);
	X509_free(cert);
	EVP_PKEY_free(key);
	fake_done(&f);
	folder_done(&d);
	clock_virtual_off();
}
