/*
 * The files of DIR/pki, by a table of what belongs there. Looking at all of them costs a few reads and no writes, so the
 * same function serves the first start, every later one, and the hourly check.
 */
#include "apiserver/pki.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/fiber.h"
#include "base/fiber_io.h"
#include "base/file.h"
#include "base/file_batch.h"
#include "base/log.h"
#include "codec/time.h"

enum { LEAF_DAYS = 365, CA_DAYS = 3650, CHECK_MS = 3600 * 1000, PEM_MAX = 1 << 20, DAY_S = 24 * 3600 };

/* An authority comes before what it signs. */
static const struct member_of_pki {
	const char *name;
	int ca;                           /* row of the authority that signs it; -1: itself */
	unsigned needed_for;
	struct cert_request request;
	const char *purpose;
	bool has_conf;                    /* DIR/NAME.conf is a kubeconfig with it */
} members[] = {
	{ "ca", -1, PKI_SERVING | PKI_CLIENTS | PKI_AUTHORITY, { "kubernetes", NULL, .is_ca = true, .days = CA_DAYS },
	  .purpose = "the cluster's authority" },
	{ "apiserver", 0, PKI_SERVING, { "kube-apiserver", NULL, .for_servers = true, .days = LEAF_DAYS },
	  .purpose = "the API server's own" },
	{ "apiserver-kubelet-client", 0, PKI_CLIENTS,
	  { "kube-apiserver-kubelet-client", "system:masters", .for_clients = true, .days = LEAF_DAYS },
	  .purpose = "the API server, towards kubelets" },
	{ "admin", 0, PKI_CLIENTS, { "kubernetes-admin", "system:masters", .for_clients = true, .days = LEAF_DAYS },
	  .purpose = "the administrator, in admin.conf", .has_conf = true },
	{ "controller-manager", 0, PKI_CLIENTS, { "system:kube-controller-manager", NULL, .for_clients = true, .days = LEAF_DAYS },
	  .purpose = "the controllers, in controller-manager.conf", .has_conf = true },
	{ "scheduler", 0, PKI_CLIENTS, { "system:kube-scheduler", NULL, .for_clients = true, .days = LEAF_DAYS },
	  .purpose = "the scheduler, in scheduler.conf", .has_conf = true },
	{ "front-proxy-ca", -1, PKI_FRONT_PROXY, { "front-proxy-ca", NULL, .is_ca = true, .days = CA_DAYS },
	  .purpose = "the authority of front proxies" },
	{ "front-proxy-client", 6, PKI_FRONT_PROXY, { "front-proxy-client", NULL, .for_clients = true, .days = LEAF_DAYS },
	  .purpose = "the API server, towards servers that extend it" },
};

const char *pki_path(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/pki/%s", dir, name).p;
}

static const char *conf_path(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/%s.conf", dir, name).p;
}

const char *pki_admin_conf(struct arena *a, const char *dir)
{
	return conf_path(a, dir, "admin");
}

static const char *cert_path(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/pki/%s.crt", dir, name).p;
}

static const char *key_path(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/pki/%s.key", dir, name).p;
}

static int64_t now_s(void)
{
	return clock_wall_ns() / NS_PER_S;
}

/* ---- one pair ---- */

static int write_key(struct file_batch *f, const char *path, EVP_PKEY *key, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PEM_MAX);
	int r = key_pem(key, &b, err);

	if (r == 0)
		file_batch_add(f, path, buf_str(&b), 0600);
	if (b.p)
		OPENSSL_cleanse(b.p, b.n);
	return r;
}

static int write_cert(struct file_batch *f, const char *path, X509 *cert, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PEM_MAX);
	int r = cert_pem(cert, &b, err);

	if (r == 0)
		file_batch_add(f, path, buf_str(&b), 0644);
	return r;
}

static int read_key(const struct file_batch *f, const char *path, EVP_PKEY **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PEM_MAX);
	int r = file_batch_read(f, path, &b, err);

	if (r == 0)
		r = key_parse(buf_str(&b), path, ret, err);
	if (b.p)
		OPENSSL_cleanse(b.p, b.n);
	return r;
}

static int read_cert(const struct file_batch *f, const char *path, X509 **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(PEM_MAX);
	int r = file_batch_read(f, path, &b, err);

	return r < 0 ? r : cert_parse(buf_str(&b), path, ret, err);
}

/* Reads what there is of a pair; what is missing stays NULL. */
static int read_pair(const struct file_batch *f, struct arena *a, const char *dir, const char *name, struct key_pair *p, struct err *err)
{
	int r = read_key(f, key_path(a, dir, name), &p->key, err);
	if (r == 0 || r == -ERR_NOT_FOUND)
		r = read_cert(f, cert_path(a, dir, name), &p->cert, err);
	return r == -ERR_NOT_FOUND ? 0 : r;
}

static bool signed_by(X509 *cert, const X509 *ca)
{
	EVP_PKEY *key = X509_get0_pubkey(ca);
	return key && X509_verify(cert, key) == 1;
}

/* Why a certificate has to be made (again); NULL: it is good, or not ours. */
static const char *why_make(const struct key_pair *p, const struct key_pair *ca, const struct cert_request *q)
{
	if (!p->cert)
		return "there was none";
	if (ca && X509_NAME_cmp(X509_get_issuer_name(p->cert), X509_get_subject_name(ca->cert)) != 0)
		return NULL;
	if (ca && !signed_by(p->cert, ca->cert))
		return "the authority is a new one";
	if (!p->key && ca)
		return "its key was missing";
	if (p->key && !X509_check_private_key(p->cert, p->key))
		return "its key is a new one";
	if (now_s() >= cert_due(p->cert))
		return "two thirds of its life are over";
	if (!cert_has_names(p->cert, q->names, q->addresses))
		return "it lacked a name or address";
	return NULL;
}

/* Without the key of an authority nothing can be signed, which is fine as long as nothing has to be. */
static int check_signer(const char *dir, const struct key_pair *p, const struct key_pair *ca, const struct member_of_pki *m,
			struct err *err)
{
	if (ca && !ca->key)
		return err_set(err, ERR_NOT_FOUND, "%s/pki/%s.key is missing, and %s.crt has to be signed with it", dir,
			       members[m->ca].name, m->name);
	if (!ca && p->cert && !p->key)
		return err_set(err, ERR_NOT_FOUND, "%s/pki/%s.key is missing, and %s.crt has to be renewed with it", dir,
			       m->name, m->name);
	if (ca && ca->cert && cert_ends(ca->cert) <= now_s())
		return err_set(err, ERR_INVALID, "%s/pki/%s.crt has expired; remove it to have a new one made", dir,
			       members[m->ca].name);
	return 0;
}

static int ensure_pair(struct file_batch *f, struct arena *a, const char *dir, const struct member_of_pki *m, const struct cert_request *q,
		       struct key_pair *p, const struct key_pair *ca, struct err *err)
{
	int written = 0, r = read_pair(f, a, dir, m->name, p, err);
	if (r < 0)
		return r;
	const char *why = why_make(p, ca, q);
	if (!why)
		return 0;
	/* The authority's key is kept elsewhere: what is still good stays as it is. */
	if (p->cert && !(ca ? ca->key : p->key) && cert_ends(p->cert) > now_s())
		return 0;
	if ((r = check_signer(dir, p, ca, m, err)) < 0)
		return r;
	if (!p->key) {
		if ((r = key_make(&p->key, err)) < 0 || (r = write_key(f, key_path(a, dir, m->name), p->key, err)) < 0)
			return r;
		written++;
	}
	X509_free(TAKE(p->cert));
	if ((r = cert_make(q, p->key, ca, &p->cert, err)) < 0 || (r = write_cert(f, cert_path(a, dir, m->name), p->cert, err)) < 0)
		return r;
	log_info("certificate made", KV("file", cert_path(a, dir, m->name)), KV("because", why));
	return written + 1;
}

/* ---- the key of service accounts ---- */

static int ensure_service_account_key(struct file_batch *f, struct arena *a, const char *dir, struct err *err)
{
	CLEANUP(key_pair_done) struct key_pair p = { 0 };
	CLEANUP(buf_done) struct buf b = BUF_INIT(PEM_MAX);
	const char *public_path = pki_path(a, dir, "sa.pub");
	struct stat st;
	int written = 0, r = read_key(f, key_path(a, dir, "sa"), &p.key, err);

	if (r == -ERR_NOT_FOUND) {
		if ((r = key_make(&p.key, err)) < 0 || (r = write_key(f, key_path(a, dir, "sa"), p.key, err)) < 0)
			return r;
		written++;
	}
	if (r < 0)
		return r;
	if (!written && stat(public_path, &st) == 0)
		return 0;
	if ((r = public_key_pem(p.key, &b, err)) < 0)
		return r;
	file_batch_add(f, public_path, buf_str(&b), 0644);
	return written + 1;
}

/* ---- kubeconfigs ---- */

static int ensure_conf(struct file_batch *f, struct arena *a, const struct pki_options *o, const struct member_of_pki *m, struct err *err)
{
	CLEANUP(buf_done) struct buf ca = BUF_INIT(PEM_MAX), cert = BUF_INIT(PEM_MAX), key = BUF_INIT(PEM_MAX);
	CLEANUP(buf_done) struct buf was = BUF_INIT(PEM_MAX), now = BUF_INIT(PEM_MAX);
	const char *path = conf_path(a, o->dir, m->name);
	int r;

	if ((r = file_batch_read(f, cert_path(a, o->dir, "ca"), &ca, err)) < 0 ||
	    (r = file_batch_read(f, cert_path(a, o->dir, m->name), &cert, err)) < 0 ||
	    (r = file_batch_read(f, key_path(a, o->dir, m->name), &key, err)) < 0)
		return r;
	r = file_batch_read(f, path, &was, err);
	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	if (r == 0 && kubeconfig_fits(buf_str(&was), o->server, buf_str(&ca), buf_str(&cert)))
		return 0;
	kubeconfig_build(&now, o->server, buf_str(&ca), m->request.common_name, buf_str(&cert), buf_str(&key));
	file_batch_add(f, path, buf_str(&now), 0600);
	OPENSSL_cleanse(key.p, key.n);
	OPENSSL_cleanse(now.p, now.n);
	return 1;
}

static int ensure_confs(struct file_batch *f, struct arena *a, const struct pki_options *o, struct err *err)
{
	int written = 0;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		int r = members[i].has_conf ? ensure_conf(f, a, o, &members[i], err) : 0;
		if (r < 0)
			return r;
		written += r;
	}
	return written;
}

static int make_client(struct file_batch *f, const struct pki_options *o, const struct key_pair *ca, const char *user, const char *group, str ca_text, const char *path,
		       struct err *err)
{
	const struct cert_request q = { .common_name = user, .organization = group, .for_clients = true, .days = LEAF_DAYS };
	CLEANUP(buf_done) struct buf cert = BUF_INIT(PEM_MAX), key = BUF_INIT(PEM_MAX), conf = BUF_INIT(PEM_MAX);
	CLEANUP(key_pair_done) struct key_pair p = { 0 };
	int r;

	if ((r = key_make(&p.key, err)) < 0 || (r = cert_make(&q, p.key, ca, &p.cert, err)) < 0 || (r = cert_pem(p.cert, &cert, err)) < 0 ||
	    (r = key_pem(p.key, &key, err)) < 0)
		return r;
	kubeconfig_build(&conf, o->server, ca_text, user, buf_str(&cert), buf_str(&key));
	file_batch_add(f, path, buf_str(&conf), 0600);
	OPENSSL_cleanse(key.p, key.n);
	OPENSSL_cleanse(conf.p, conf.n);
	return 0;
}

static int add_client(struct file_batch *f, const struct pki_options *o, const char *user, const char *group, const char *path, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf was = BUF_INIT(PEM_MAX), ca_text = BUF_INIT(PEM_MAX);
	CLEANUP(key_pair_done) struct key_pair ca = { 0 };
	int r = file_batch_read(f, path, &was, err);

	if (r < 0 && r != -ERR_NOT_FOUND)
		return r;
	bool there = r == 0;
	if ((r = file_batch_read(f, cert_path(&a, o->dir, "ca"), &ca_text, err)) < 0)
		return r;
	if (there && kubeconfig_fits(buf_str(&was), o->server, buf_str(&ca_text), STR_NONE))
		return 0;
	if ((r = read_pair(f, &a, o->dir, "ca", &ca, err)) < 0)
		return r;
	if (!ca.key)
		return err_set(err, ERR_NOT_FOUND, "%s/pki/ca.key is missing, and the certificate in %s has to be signed with it", o->dir, path);
	return make_client(f, o, &ca, user, group, buf_str(&ca_text), path, err);
}

int pki_client_conf(const struct pki_options *o, const char *user, const char *group, const char *path, struct err *err)
{
	CLEANUP(file_batch_done) struct file_batch own = FILE_BATCH_INIT;
	int r = add_client(o->batch ? o->batch : &own, o, user, group, path, err);

	return r < 0 ? r : file_batch_write(&own, err);
}

/* ---- all of it ---- */

static int ensure_members(struct file_batch *f, struct arena *a, const struct pki_options *o, struct key_pair *pairs, struct err *err)
{
	int written = 0, r;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		const struct member_of_pki *m = &members[i];
		struct cert_request q = m->request;
		if (!(m->needed_for & o->needs))
			continue;
		if (q.for_servers) {
			q.names = o->names;
			q.addresses = o->addresses;
		}
		if ((r = ensure_pair(f, a, o->dir, m, &q, &pairs[i], m->ca < 0 ? NULL : &pairs[m->ca], err)) < 0)
			return r;
		written += r;
	}
	return written;
}

static int ensure_all(struct file_batch *f, const struct pki_options *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct key_pair pairs[ARRAY_LEN(members)] = { 0 };
	int written, r = file_make_dirs(pki_path(&a, o->dir, ""), 0755, err);

	if (r < 0)
		return r;
	written = ensure_members(f, &a, o, pairs, err);
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		key_pair_done(&pairs[i]);
	if (written < 0)
		return written;
	if ((o->needs & PKI_SERVICE_ACCOUNTS) && (r = ensure_service_account_key(f, &a, o->dir, err)) < 0)
		return r;
	written += r;
	if (!(o->needs & PKI_CONFS))
		return written;
	r = ensure_confs(f, &a, o, err);
	return r < 0 ? r : written + r;
}

int pki_ensure(const struct pki_options *o, struct err *err)
{
	CLEANUP(file_batch_done) struct file_batch own = FILE_BATCH_INIT;
	int written = o->needs ? ensure_all(o->batch ? o->batch : &own, o, err) : 0;
	int r = written < 0 ? written : file_batch_write(&own, err);

	return r < 0 ? r : written;
}

static int ensure_blocking(void *arg, struct err *err)
{
	const struct pki_options *o = arg;
	return pki_ensure(o, err);
}

int pki_renew_run(const struct pki_options *o, struct err *err)
{
	for (;;) {
		struct err failure = ERR_INIT;
		struct pki_options copy = *o;
		int r = fiber_sleep_ms(CHECK_MS, err);
		if (r < 0)
			return r;
		r = fiber_blocking(ensure_blocking, &copy, &failure);
		if (r < 0 && (r = fiber_check(err)) < 0)
			return r;
		if (failure.code)
			log_error("certificates could not be renewed", KV("err", &failure));
	}
}

/* ---- showing ---- */

static void show(struct buf *b, const char *name, const char *purpose, const X509 *cert)
{
	char until[TIME_TEXT_MAX], due[TIME_TEXT_MAX];
	int64_t left = cert_ends(cert) - now_s();

	time_format((struct timestamp){ cert_ends(cert), 0 }, until);
	time_format((struct timestamp){ cert_due(cert), 0 }, due);
	buf_addf(b, "%-26s %-48s ", name, purpose);
	if (left <= 0)
		buf_addf(b, "EXPIRED on %.10s\n", until);
	else if (cert_begins(cert) > now_s())
		buf_addf(b, "not valid yet, until %.10s\n", until);
	else
		buf_addf(b, "valid until %.10s (%" PRId64 " days left), renewed from %.10s on\n", until, left / DAY_S, due);
}

int pki_show_file(const char *name, const char *purpose, const char *path, struct buf *b, struct err *err)
{
	X509 *cert = NULL;
	int r = cert_read(path, &cert, err);

	if (r < 0)
		return r;
	show(b, name, purpose, cert);
	X509_free(cert);
	return 0;
}

int pki_show(const char *dir, struct buf *b, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	size_t shown = 0;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		int r = pki_show_file(members[i].name, members[i].purpose, cert_path(&a, dir, members[i].name), b, err);
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
		shown += r == 0;
	}
	if (!shown)
		return err_set(err, ERR_NOT_FOUND, "there are no certificates in %s/pki", dir);
	return buf_check(b, "the list", err);
}
