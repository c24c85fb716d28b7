#include <openssl/pem.h>
#include <openssl/x509.h>

#include "apiserver/authn/x509.h"
#include "base/clock.h"
#include "base/test.h"

/* CN=alice, O=dev, O=ops, 1.3.6.1.4.1.57683.2=uid-7, valid for 100 years, extended key usage clientAuth; made by openssl. */
static const char client_pem[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBvjCCAWSgAwIBAgIUCqTjYu9bPDf3C9rJKUL1iWNW1aMwCgYIKoZIzj0EAwIw\n"
	"QjEOMAwGA1UEAwwFYWxpY2UxDDAKBgNVBAoMA2RldjEMMAoGA1UECgwDb3BzMRQw\n"
	"EgYJKwYBBAGDwlMCDAV1aWQtNzAgFw0yNjExMTUwOTE4NDBaGA8yMTI2MTAyMjA5\n"
	"MTg0MFowQjEOMAwGA1UEAwwFYWxpY2UxDDAKBgNVBAoMA2RldjEMMAoGA1UECgwD\n"
	"b3BzMRQwEgYJKwYBBAGDwlMCDAV1aWQtNzBZMBMGByqGSM49AgEGCCqGSM49AwEH\n"
	"A0IABAK1+nFL8GhkfdAUBggxACljfU6tDbeSHfACIo+kgGp6LeSZAw+mdk+g551B\n"
	"aOtQOJGoW5aspGo8ElAehfolJtSjNjA0MBMGA1UdJQQMMAoGCCsGAQUFBwMCMB0G\n"
	"A1UdDgQWBBSQQZQyWbYj9y0RVmP21WhNP7TYxzAKBggqhkjOPQQDAgNIADBFAiEA\n"
	"jBvsGN6mVNpZ9p73YTLgwHmT5OKUfSyCX09By8E5kOICIFxwnqVWB97p0pnLrz3g\n"
	"6+injp/dMbvpZInsqn5qSjZy\n"
	"-----END CERTIFICATE-----\n";
/* CN=server, extended key usage serverAuth */
static const char server_pem[] =
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBXDCCAQKgAwIBAgIUdpwPI0HfXQVKBhX/o43JspUAT+owCgYIKoZIzj0EAwIw\n"
	"ETEPMA0GA1UEAwwGc2VydmVyMCAXDTI2MTExNTA5MTg0MFoYDzIxMjYxMDIyMDkx\n"
	"ODQwWjARMQ8wDQYDVQQDDAZzZXJ2ZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
	"AAS6vW5CKUdH867e6XoXQSlXp2mxTk4zeWBrdn02rnwguq1uSOxOkwncK+DCySdv\n"
	"jn0p54iyaoY6tskNNE2q9JJXozYwNDATBgNVHSUEDDAKBggrBgEFBQcDATAdBgNV\n"
	"HQ4EFgQUaiAELC6rkOpmgqt1gHyZpv8odKUwCgYIKoZIzj0EAwIDSAAwRQIhAL0R\n"
	"aiqIf0o2EsPI9TQdTlOJD7RlLOcvXI3vl43ebxh9AiAB6eGMt7TZ+mEUYvNGNvF4\n"
	"qUFZAZfE8N1RsOkVFynadA==\n"
	"-----END CERTIFICATE-----\n";

static X509 *read_pem(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	CHECK(cert);
	BIO_free(bio);
	return cert;
}

TEST(certificates_name_users)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	X509 *cert = read_pem(client_pem);
	struct user u;
	struct err err = ERR_INIT;

	clock_virtual_set(0, 2000000000 * NS_PER_S);
	CHECK_INT(authn_x509_user(cert, &a, &u, &err), 1);
	CHECK_STR(u.name, "alice");
	CHECK_STR(u.uid, "uid-7");
	CHECK_INT(u.n_groups, 2);
	CHECK_STR(u.groups[0], "dev");
	CHECK_STR(u.groups[1], "ops");
	struct val ids = val_find(u.extra, STR("authentication.kubernetes.io/credential-id"));
	CHECK_INT(val_len(ids), 1);
	CHECK(str_starts(val_as_str(val_at(ids, 0)), STR("X509SHA256=")));
	CHECK_INT(val_as_str(val_at(ids, 0)).n, 11 + 64);

	clock_virtual_set(0, 5000000000 * NS_PER_S);
	CHECK_INT(authn_x509_user(cert, &a, &u, &err), -ERR_UNAUTHORIZED);
	CHECK(str_ends(err_str(&err), STR("failed: x509: certificate has expired or is not yet valid")));
	X509_free(cert);

	clock_virtual_set(0, 2000000000 * NS_PER_S);
	cert = read_pem(server_pem);
	CHECK_INT(authn_x509_user(cert, &a, &u, &err), -ERR_UNAUTHORIZED);
	CHECK(str_ends(err_str(&err), STR("failed: x509: certificate specifies an incompatible key usage")));
	clock_virtual_off();
	X509_free(cert);
}
