/* Why a certificate was not accepted, in Go's words, which users of kubectl know. */
#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/tls_priv.h"

static void add_name(struct buf *b, const GENERAL_NAME *g)
{
	char ip[INET6_ADDRSTRLEN];
	const unsigned char *p = ASN1_STRING_get0_data(g->d.ia5);
	int n = ASN1_STRING_length(g->d.ia5);

	if (b->n)
		buf_add(b, STR(", "));
	if (g->type == GEN_DNS)
		buf_add(b, str_span((const char *)p, (size_t)n));
	else if (inet_ntop(n == 4 ? AF_INET : AF_INET6, p, ip, sizeof(ip)))
		buf_add(b, str_of(ip));
}

/* The names (addresses, when the host is one) that the certificate is good for. */
static void add_names(struct buf *b, X509 *x, int type)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
		int n = g->type == GEN_IPADD || g->type == GEN_DNS ? ASN1_STRING_length(g->d.ia5) : 0;
		if (g->type == type && n > 0 && (type == GEN_DNS || n == 4 || n == 16))
			add_name(b, g);
	}
	GENERAL_NAMES_free(names);
}

static int wrong_name(X509 *x, const char *host, bool is_ip, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(4096);

	if (x && X509_get_ext_by_NID(x, NID_subject_alt_name, -1) < 0 && X509_check_host(x, host, 0, 0, NULL) == 1)
		return err_set(err, ERR_FORBIDDEN, "certificate relies on legacy Common Name field, use SANs instead");
	if (x)
		add_names(&b, x, is_ip ? GEN_IPADD : GEN_DNS);
	if (b.n)
		return err_set(err, ERR_FORBIDDEN, "certificate is valid for %s, not %s", b.p, host);
	if (is_ip)
		return err_set(err, ERR_FORBIDDEN, "cannot validate certificate for %s because it doesn't contain any IP SANs",
			       host);
	return err_set(err, ERR_FORBIDDEN, "certificate is not valid for any names, but wanted to match %s", host);
}

static int wrong_time(X509 *x, bool early, struct err *err)
{
	char now[32] = "", limit[32] = "";
	time_t t = (time_t)(clock_wall_ns() / NS_PER_S);
	struct tm tm;

	if (gmtime_r(&t, &tm))
		(void)strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (x && ASN1_TIME_to_tm(early ? X509_get0_notBefore(x) : X509_get0_notAfter(x), &tm) == 1)
		(void)strftime(limit, sizeof(limit), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return err_set(err, ERR_FORBIDDEN, "certificate has expired or is not yet valid: current time %s is %s %s", now,
		       early ? "before" : "after", limit);
}

int tls_verify_error(long code, X509 *x, const char *host, struct err *err)
{
	static const char what[] = "tls: failed to verify certificate: x509";

	switch (code) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return err_set(err, ERR_FORBIDDEN, "%s: certificate signed by unknown authority", what);
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return err_wrap(err, wrong_time(x, code == X509_V_ERR_CERT_NOT_YET_VALID, err), "%s", what);
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return err_wrap(err, wrong_name(x, host, code == X509_V_ERR_IP_ADDRESS_MISMATCH, err), "%s", what);
	default:
		return err_set(err, ERR_FORBIDDEN, "%s: %s", what, X509_verify_cert_error_string(code));
	}
}
