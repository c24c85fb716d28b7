/*
 * A new pair is written whole and synced before the link leads to it, and the link is replaced by a rename: whoever follows it, at any
 * moment, finds a certificate with its own key. Earlier pairs stay.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "kubelet/certificates_priv.h"

enum { STAMP_MAX = 32 };

static const char *path_of(const struct cert_store *s, struct arena *a, const char *which)
{
	return arena_printf(a, "%s/%s-%s.pem", s->dir, s->name, which).p;
}

const char *cert_store_path(const struct cert_store *s, struct arena *a) { return path_of(s, a, "current"); }

/* 1: a link; 0: nothing is there. */
static int look_at_link(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "look at %s", path);
	if (!S_ISLNK(st.st_mode))
		return err_set(err, ERR_INVALID, "expected \"%s\" to be a symlink but it is a file", path);
	return 1;
}

int cert_store_recover(const struct cert_store *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const char *current = cert_store_path(s, &a), *updated = path_of(s, &a, "updated");

	if (access(current, F_OK) == 0)
		return 0;
	int r = look_at_link(updated, err);
	if (r <= 0)
		return r;
	return rename(updated, current) < 0 ? err_sys(err, errno, "unable to rename \"%s\" to \"%s\"", updated, current) : 0;
}

static int lead_to(const struct cert_store *s, const char *file, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(mem_freep) char *target = realpath(file, NULL);
	const char *current = cert_store_path(s, &a), *updated = path_of(s, &a, "updated");
	int r = look_at_link(current, err);

	if (r >= 0)
		r = look_at_link(updated, err);
	if (r < 0)
		return r;
	if (!target)
		return err_sys(err, errno, "file \"%s\" can not be used as the currently selected cert/key", file);
	if ((r > 0 && unlink(updated) < 0) || symlink(target, updated) < 0)
		return err_sys(err, errno, "unable to create a symlink from \"%s\" to \"%s\"", updated, target);
	return rename(updated, current) < 0 ? err_sys(err, errno, "unable to rename \"%s\" to \"%s\"", updated, current) : 0;
}

/* The chain, in the form in which it is kept; the first must belong to the key. */
static int add_certs(str pem, struct evp_pkey_st *key, struct buf *b, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n);
	X509 *x;
	int r = 0, n = 0;

	for (; r == 0 && bio && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); n++) {
		if (n == 0 && X509_check_private_key(x, key) != 1)
			r = err_set(err, ERR_INVALID, "invalid certificate data: private key does not match public key");
		else
			r = cert_pem(x, b, err);
		X509_free(x);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (r == 0 && n == 0)
		r = err_set(err, ERR_INVALID, "invalid certificate data: data does not contain any valid RSA or ECDSA certificates");
	return r;
}

int cert_store_update(const struct cert_store *s, str cert, struct evp_pkey_st *key, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(CERTIFICATES_PEM_MAX);
	char stamp[STAMP_MAX];
	struct tm tm;
	time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
	int r = add_certs(cert, key, &b, err);

	if (r == 0)
		r = key_pem(key, &b, err);
	if (r == 0)
		r = file_make_dirs(s->dir, 0755, err);
	if (r < 0)
		return r;
	(void)strftime(stamp, sizeof(stamp), "%Y-%m-%d-%H-%M-%S", localtime_r(&now, &tm));
	const char *file = path_of(s, &a, stamp);
	r = file_write(file, buf_str(&b), 0600, err);
	OPENSSL_cleanse(b.p, b.n);
	return r < 0 ? r : lead_to(s, file, err);
}

int cert_store_read(const struct cert_store *s, struct x509_st **ret_cert, struct evp_pkey_st **ret_key, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(key_pair_done) struct key_pair p = { 0 };
	const char *path = cert_store_path(s, &a);
	int r = cert_read(path, &p.cert, err);

	if (r == 0)
		r = key_read(path, &p.key, err);
	if (r == 0 && X509_check_private_key(p.cert, p.key) != 1)
		r = err_set(err, ERR_INVALID, "could not convert data from \"%s\" into cert/key pair: private key does not match public key", path);
	ERR_clear_error();
	if (r < 0)
		return r;
	if (ret_cert)
		*ret_cert = TAKE(p.cert);
	if (ret_key)
		*ret_key = TAKE(p.key);
	return 0;
}

int64_t certs_end(str pem)
{
	BIO *bio = BIO_new_mem_buf(pem.n ? pem.p : "", (int)pem.n);
	int64_t end = -1;
	X509 *x;

	while (bio && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		end = end < 0 ? cert_ends(x) : MIN(end, cert_ends(x));
		X509_free(x);
	}
	BIO_free(bio);
	ERR_clear_error();
	return end;
}

str cert_subject(struct arena *a, struct x509_st *cert, int nid)
{
	X509_NAME *name = X509_get_subject_name(cert);
	int at = X509_NAME_get_index_by_NID(name, nid, -1);
	const ASN1_STRING *text = at >= 0 ? X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)) : NULL;

	return text ? arena_str(a, str_span((const char *)ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text))) : STR_NONE;
}
