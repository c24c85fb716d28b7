#include <ftw.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/test.h"

enum { EVERYTHING = PKI_SERVING | PKI_CLIENTS | PKI_FRONT_PROXY | PKI_SERVICE_ACCOUNTS | PKI_CONFS };

static const int64_t begin_s = 1800000000, day_s = 24 * 3600;

static const char *const names[] = { "kubernetes", "kubernetes.default.svc.cluster.local", NULL };
static const char *const addresses[] = { "127.0.0.1", "::1", "10.0.0.1", NULL };
static const char *const more_names[] = { "kubernetes", "kubernetes.default.svc.cluster.local", "other", NULL };

struct place {
	char dir[40];
	struct arena arena;
	struct pki_options options;
};

static void place_init(struct place *p)
{
	*p = (struct place){ .dir = "/tmp/c8s-pki-test-XXXXXX" };
	CHECK(mkdtemp(p->dir));
	p->options = (struct pki_options){ .dir = p->dir, .needs = EVERYTHING, .names = names, .addresses = addresses, .server = "https://10.9.8.7:6443" };
	clock_virtual_set(0, begin_s * NS_PER_S);
	log_set_level(LOG_LEVEL_OFF);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void place_done(struct place *p)
{
	clock_virtual_off();
	log_set_level(LOG_LEVEL_INFO);
	nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	arena_done(&p->arena);
}

static int ensure(struct place *p)
{
	struct err err = ERR_INIT;
	int r = pki_ensure(&p->options, &err);
	if (r < 0)
		print_error("%s\n", err.msg);
	return r;
}

static void remove_file(struct place *p, const char *name)
{
	CHECK_INT(unlink(pki_path(&p->arena, p->dir, name)), 0);
}

static str content(struct place *p, const char *path)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	CHECK_INT(file_read(path, &b, &err), 0);
	return arena_str(&p->arena, buf_str(&b));
}

static X509 *cert_of(struct place *p, const char *name)
{
	X509 *cert = NULL;
	struct err err = ERR_INIT;

	CHECK_INT(cert_read(pki_path(&p->arena, p->dir, name), &cert, &err), 0);
	return cert;
}

static bool verifies(struct place *p, const char *leaf, const char *ca)
{
	X509 *l = cert_of(p, leaf), *c = cert_of(p, ca);
	bool ok = X509_verify(l, X509_get0_pubkey(c)) == 1 && X509_NAME_cmp(X509_get_issuer_name(l), X509_get_subject_name(c)) == 0;

	X509_free(l);
	X509_free(c);
	return ok;
}

static unsigned mode_of(struct place *p, const char *path)
{
	struct stat st;
	(void)p;
	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST(pki_makes_everything)
{
	struct place p;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct err err = ERR_INIT;

	place_init(&p);
	CHECK_INT(ensure(&p), 8 * 2 + 2 + 3);
	CHECK_INT(ensure(&p), 0);
	CHECK(verifies(&p, "apiserver.crt", "ca.crt"));
	CHECK(verifies(&p, "apiserver-kubelet-client.crt", "ca.crt"));
	CHECK(verifies(&p, "admin.crt", "ca.crt"));
	CHECK(verifies(&p, "scheduler.crt", "ca.crt"));
	CHECK(verifies(&p, "front-proxy-client.crt", "front-proxy-ca.crt"));
	CHECK(!verifies(&p, "front-proxy-client.crt", "ca.crt"));
	X509 *cert = cert_of(&p, "apiserver.crt");
	CHECK(cert_has_names(cert, names, addresses));
	CHECK(!cert_has_names(cert, more_names, addresses));
	CHECK_INT(cert_ends(cert), begin_s + 365 * day_s);
	X509_free(cert);
	CHECK_INT(mode_of(&p, pki_path(&p.arena, p.dir, "ca.key")), 0600);
	CHECK_INT(mode_of(&p, pki_path(&p.arena, p.dir, "sa.key")), 0600);
	CHECK_INT(mode_of(&p, pki_path(&p.arena, p.dir, "ca.crt")), 0644);
	CHECK_INT(mode_of(&p, pki_admin_conf(&p.arena, p.dir)), 0600);
	CHECK(str_find(content(&p, pki_admin_conf(&p.arena, p.dir)), STR("server: https://10.9.8.7:6443\n")) > 0);
	CHECK(str_starts(content(&p, pki_path(&p.arena, p.dir, "sa.key")), STR("-----BEGIN EC PRIVATE KEY-----")));

	CHECK_INT(pki_show(p.dir, &b, &err), 0);
	CHECK(str_find(buf_str(&b), STR("valid until 2028-01-15 (365 days left), renewed from 2027-09-15 on\n")) > 0);
	place_done(&p);
}

TEST(pki_renews)
{
	struct place p;

	place_init(&p);
	CHECK(ensure(&p) > 0);
	str key = content(&p, pki_path(&p.arena, p.dir, "apiserver.key"));
	str conf = content(&p, pki_admin_conf(&p.arena, p.dir));
	clock_virtual_advance(240 * day_s * NS_PER_S);
	CHECK_INT(ensure(&p), 0);
	clock_virtual_advance(10 * day_s * NS_PER_S);
	CHECK_INT(ensure(&p), 6 + 3); /* the leaves, and the kubeconfigs with three of them */
	CHECK(str_eq(key, content(&p, pki_path(&p.arena, p.dir, "apiserver.key"))));
	CHECK(!str_eq(conf, content(&p, pki_admin_conf(&p.arena, p.dir))));
	CHECK_INT(ensure(&p), 0);
	X509 *cert = cert_of(&p, "apiserver.crt");
	CHECK_INT(cert_ends(cert), begin_s + (250 + 365) * day_s);
	X509_free(cert);

	/* After ten years everything still fits together, with the authority's old key. */
	clock_virtual_advance(3400 * day_s * NS_PER_S);
	CHECK(ensure(&p) > 0);
	CHECK(verifies(&p, "apiserver.crt", "ca.crt"));
	cert = cert_of(&p, "ca.crt");
	CHECK(cert_ends(cert) > begin_s + 7000 * day_s);
	X509_free(cert);
	place_done(&p);
}

TEST(pki_mends)
{
	struct place p;

	place_init(&p);
	CHECK(ensure(&p) > 0);

	remove_file(&p, "apiserver.crt");
	CHECK_INT(ensure(&p), 1);
	remove_file(&p, "apiserver.key");
	CHECK_INT(ensure(&p), 2);
	p.options.names = more_names;
	CHECK_INT(ensure(&p), 1);
	p.options.server = "https://10.9.8.7:7443";
	CHECK_INT(ensure(&p), 3);
	remove_file(&p, "sa.pub");
	CHECK_INT(ensure(&p), 1);

	/* A new authority: all that the old one signed is made again. */
	remove_file(&p, "ca.crt");
	remove_file(&p, "ca.key");
	CHECK_INT(ensure(&p), 2 + 5 + 3);
	CHECK(verifies(&p, "apiserver.crt", "ca.crt"));

	/* An authority whose key is kept elsewhere is fine until something has to be signed. */
	remove_file(&p, "ca.key");
	CHECK_INT(ensure(&p), 0);
	remove_file(&p, "admin.crt");
	struct err err = ERR_INIT;
	CHECK_INT(pki_ensure(&p.options, &err), -ERR_NOT_FOUND);
	CHECK(str_find(err_str(&err), STR("/pki/ca.key is missing, and admin.crt has to be signed with it")) > 0);
	place_done(&p);
}

TEST(pki_leaves_alone)
{
	struct place p;
	struct err err = ERR_INIT;

	/* A certificate from somewhere else is used as it is, whatever its names. */
	place_init(&p);
	CHECK(ensure(&p) > 0);
	str foreign = content(&p, pki_path(&p.arena, p.dir, "front-proxy-client.crt"));
	CHECK_INT(file_write(pki_path(&p.arena, p.dir, "apiserver.crt"), foreign, 0644, &err), 0);
	CHECK_INT(ensure(&p), 0);

	/* What is no certificate is not thrown away. */
	CHECK_INT(file_write(pki_path(&p.arena, p.dir, "apiserver.crt"), STR("notes"), 0644, &err), 0);
	CHECK_INT(pki_ensure(&p.options, &err), -ERR_INVALID);
	CHECK(str_find(err_str(&err), STR("does not hold a certificate in PEM")) > 0);
	CHECK_STR(content(&p, pki_path(&p.arena, p.dir, "apiserver.crt")), "notes");

	/* Edits of admin.conf stay as long as its certificate and server are right. */
	remove_file(&p, "apiserver.crt");
	CHECK_INT(ensure(&p), 1);
	str edited = arena_join(&p.arena, content(&p, pki_admin_conf(&p.arena, p.dir)), STR("# mine\n"));
	CHECK_INT(file_write(pki_admin_conf(&p.arena, p.dir), edited, 0600, &err), 0);
	CHECK_INT(ensure(&p), 0);
	place_done(&p);
}

TEST(pki_client_confs)
{
	struct place p;
	struct err err = ERR_INIT;

	place_init(&p);
	CHECK(ensure(&p) > 0);
	const char *path = arena_printf(&p.arena, "%s/kubelet.conf", p.dir).p;
	CHECK_INT(pki_client_conf(&p.options, "system:node:n1", "system:nodes", path, &err), 0);
	str first = content(&p, path);
	CHECK(str_find(first, STR("name: system:node:n1@kubernetes")) > 0);
	CHECK(str_find(first, str_of(p.options.server)) > 0);
	CHECK_INT(mode_of(&p, path), 0600);

	/* It stays, whatever its user has made of it, until server or authority are others. */
	CHECK_INT(pki_client_conf(&p.options, "system:node:n1", "system:nodes", path, &err), 0);
	CHECK(str_eq(content(&p, path), first));
	p.options.server = "https://10.9.8.7:7443";
	CHECK_INT(pki_client_conf(&p.options, "system:node:n1", "system:nodes", path, &err), 0);
	CHECK(!str_eq(content(&p, path), first));

	remove_file(&p, "ca.key");
	CHECK_INT(unlink(path), 0);
	CHECK_INT(pki_client_conf(&p.options, "system:node:n1", "system:nodes", path, &err), -ERR_NOT_FOUND);
	CHECK(str_find(err_str(&err), STR("ca.key is missing")) > 0);
	place_done(&p);
}
