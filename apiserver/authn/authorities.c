#include "apiserver/authn/authorities.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "apiserver/config_file.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"

struct authorities {
	struct config_file file;
	const char *of;
	X509_STORE *store;
	unsigned generation;
};

static int make_store(str pem, X509_STORE **ret, struct err *err)
{
	X509_STORE *store = X509_STORE_new();
	BIO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
	X509 *cert;
	int n = 0;
	while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		n += X509_STORE_add_cert(store, cert) == 1;
		X509_free(cert);
	}
	BIO_free(bio);
	ERR_clear_error();
	if (!n) {
		X509_STORE_free(store);
		return err_set(err, ERR_INVALID, "data does not contain any valid certificates");
	}
	(void)X509_STORE_set_purpose(store, X509_PURPOSE_ANY);
	*ret = store;
	return 0;
}

/* 1 when there are new ones. On failure the old ones stay. */
static int load(struct authorities *t, struct err *err)
{
	X509_STORE *store = NULL;
	int r = config_file_look(&t->file, err);
	if (r <= 0)
		return r;
	if ((r = make_store(buf_str(&t->file.text), &store, err)) < 0)
		return err_wrap(err, r, "%s", t->file.path);
	X509_STORE_free(t->store);
	t->store = store;
	t->generation++;
	return 1;
}

int authorities_open(const char *file, const char *of, struct authorities **ret, struct err *err)
{
	struct authorities *t = mem_zalloc(sizeof *t);
	config_file_init(&t->file, file);
	t->of = of;
	int r = load(t, err);
	if (r < 0) {
		authorities_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void authorities_free(struct authorities *t)
{
	if (!t)
		return;
	X509_STORE_free(t->store);
	config_file_done(&t->file);
	free(t);
}

int authorities_run(struct authorities *t, struct err *err)
{
	int r;
	while ((r = fiber_sleep_ms(CONFIG_LOOK_AGAIN_MS, err)) == 0) {
		struct err failure = ERR_INIT;
		int changed = load(t, &failure);
		if (changed > 0)
			log_info("new authorities", KV("of", t->of), KV("file", t->file.path));
		else if (changed < 0)
			log_warn("authorities cannot be read again; the old ones stay", KV("of", t->of), KV("error", &failure));
	}
	return r;
}

unsigned authorities_generation(const struct authorities *t) { return t->generation; }

int authorities_check(const struct authorities *t, struct x509_st *cert, struct stack_st_X509 *chain)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	int code = X509_V_ERR_UNSPECIFIED;
	if (ctx && X509_STORE_CTX_init(ctx, t->store, cert, chain) == 1)
		code = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	ERR_clear_error();
	return code;
}
