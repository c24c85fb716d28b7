/* What the kubelet serves with where nobody gives it a certificate: one by an authority that is forgotten at once, as Kubernetes does. */
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "apiserver/pki_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "codec/atoms.h"
#include "kubelet/certificates_priv.h"

enum { SELF_SIGNED_DAYS = 365, DAY_S = 24 * 3600 };

static bool is_address(struct arena *a, str text)
{
	struct in6_addr ip;
	const char *p = arena_str(a, text).p;

	return inet_pton(AF_INET, p, &ip) == 1 || inet_pton(AF_INET6, p, &ip) == 1;
}

/* Into a list that is sorted and has everything once. */
static struct val add_sorted(struct arena *a, struct val list, str text)
{
	size_t at = 0;

	for (; at < val_len(list); at++) {
		int order = str_cmp(val_as_str(val_at(list, at)), text);
		if (order == 0)
			return list;
		if (order > 0)
			break;
	}
	return val_list_insert(a, list, at, val_of_str(text));
}

void serving_names(struct arena *a, struct val addresses, struct val *ret_names, struct val *ret_addresses)
{
	*ret_names = *ret_addresses = VAL_EMPTY_LIST;
	VAL_EACH(address, addresses) {
		str type = val_str(*address, type), text = val_str(*address, address);
		bool ip = text.n && is_address(a, text), named = str_eq(type, STR("Hostname")) || str_ends(type, STR("DNS"));
		if (ip && (str_ends(type, STR("IP")) || str_eq(type, STR("Hostname"))))
			*ret_addresses = add_sorted(a, *ret_addresses, text);
		else if (text.n && named)
			*ret_names = add_sorted(a, *ret_names, text);
	}
}

int self_signed_make(str host, struct buf *ret_cert, struct evp_pkey_st **ret_key, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(key_pair_done) struct key_pair ca = { 0 }, own = { 0 };
	int64_t now_s = clock_wall_ns() / NS_PER_S;
	const char *const hosts[] = { arena_str(&a, host).p, NULL };
	bool ip = is_address(&a, host);
	const struct cert_request authority = {
		.common_name = arena_printf(&a, STR_FMT "-ca@%lld", STR_ARG(host), (long long)now_s).p, .is_ca = true, .days = SELF_SIGNED_DAYS,
	};
	const struct cert_request request = {
		.common_name = arena_printf(&a, STR_FMT "@%lld", STR_ARG(host), (long long)now_s).p, .for_servers = true,
		.days = SELF_SIGNED_DAYS, .names = ip ? NULL : hosts, .addresses = ip ? hosts : NULL,
	};
	int r = key_make(&ca.key, err);

	if (r == 0)
		r = cert_make(&authority, ca.key, NULL, &ca.cert, err);
	if (r == 0)
		r = key_make(&own.key, err);
	if (r == 0)
		r = cert_make(&request, own.key, &ca, &own.cert, err);
	if (r == 0)
		r = cert_pem(own.cert, ret_cert, err);
	if (r == 0)
		r = cert_pem(ca.cert, ret_cert, err);
	if (r < 0)
		return err_wrap(err, r, "unable to generate self signed cert");
	*ret_key = TAKE(own.key);
	return 0;
}

static bool is_good(const char *cert_file, const char *key_file)
{
	CLEANUP(key_pair_done) struct key_pair p = { 0 };

	return cert_read(cert_file, &p.cert, NULL) == 0 && key_read(key_file, &p.key, NULL) == 0 &&
	       X509_check_private_key(p.cert, p.key) == 1 && cert_ends(p.cert) > clock_wall_ns() / NS_PER_S + DAY_S;
}

static str folder_of(struct arena *a, const char *file)
{
	ptrdiff_t slash = str_rchr(str_of(file), '/');
	return slash > 0 ? arena_str(a, str_head(str_of(file), (size_t)slash)) : STR(".");
}

/* The key first: a certificate without its key is found bad and made again. */
static int write_pair(const char *cert_file, const char *key_file, str cert, struct evp_pkey_st *key, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(CERTIFICATES_PEM_MAX);
	int r = file_make_dirs(folder_of(&a, cert_file).p, 0755, err);

	if (r == 0)
		r = key_pem(key, &pem, err);
	if (r == 0)
		r = file_write(key_file, buf_str(&pem), 0600, err);
	if (r == 0)
		r = file_write(cert_file, cert, 0644, err);
	if (pem.p)
		OPENSSL_cleanse(pem.p, pem.n);
	return r;
}

int self_signed_ensure(const char *cert_file, const char *key_file, str host, struct err *err)
{
	CLEANUP(buf_done) struct buf cert = BUF_INIT(CERTIFICATES_PEM_MAX);
	struct evp_pkey_st *key = NULL;

	if (is_good(cert_file, key_file))
		return 0;
	int r = self_signed_make(host, &cert, &key, err);
	if (r == 0)
		r = write_pair(cert_file, key_file, buf_str(&cert), key, err);
	EVP_PKEY_free(key);
	if (r < 0)
		return r;
	log_info("using self-signed cert", KV("certFile", cert_file), KV("keyFile", key_file));
	return 1;
}
