/*
 * A proxy that we trust (a client certificate of --requestheader-client-ca-file, with a name of --requestheader-allowed-names)
 * says in headers who asks. TLS knows nothing of that authority: it must not be able to certify users.
 */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/x509.h"
#include "apiserver/config_file.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/url.h"

struct names {
	const str *v;                 /* of headers: in lower case */
	size_t n;
};

struct request_header {
	struct arena arena;
	struct config_file file;      /* with the authorities */
	X509_STORE *store;
	unsigned generation;
	struct names users, uids, groups, extras, allowed;
};

/* ---- whom we trust ---- */

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
static int load(struct request_header *h, struct err *err)
{
	X509_STORE *store = NULL;
	int r = config_file_look(&h->file, err);
	if (r <= 0)
		return r;
	if ((r = make_store(buf_str(&h->file.text), &store, err)) < 0)
		return err_wrap(err, r, "%s", h->file.path);
	X509_STORE_free(h->store);
	h->store = store;
	h->generation++;
	return 1;
}

int request_header_run(struct request_header *h, struct err *err)
{
	int r;
	while ((r = fiber_sleep_ms(CONFIG_LOOK_AGAIN_MS, err)) == 0) {
		struct err failure = ERR_INIT;
		int changed = load(h, &failure);
		if (changed > 0)
			log_info("new authorities for proxies", KV("file", h->file.path));
		else if (changed < 0)
			log_warn("the authorities for proxies cannot be read again; the old ones stay", KV("error", &failure));
	}
	return r;
}

unsigned request_header_generation(const struct request_header *h) { return h->generation; }

static bool is_among(const struct names *names, str s)
{
	for (size_t i = 0; i < names->n; i++)
		if (str_eq(names->v[i], s))
			return true;
	return false;
}

int request_header_check(const struct request_header *h, struct x509_st *cert, struct err *err)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	int code = X509_V_ERR_UNSPECIFIED;
	if (ctx && X509_STORE_CTX_init(ctx, h->store, cert, NULL) == 1)
		code = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	ERR_clear_error();
	if (code != X509_V_OK)
		return err_set(err, ERR_UNAUTHORIZED, "x509: %s", X509_verify_cert_error_string(code));
	if (!authn_x509_is_for_clients(cert))
		return err_set(err, ERR_UNAUTHORIZED, "x509: certificate specifies an incompatible key usage");
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str name = authn_x509_common_name(X509_get_subject_name(cert), &a);
	if (h->allowed.n && !is_among(&h->allowed, name))
		return err_set(err, ERR_UNAUTHORIZED, "x509: subject with cn=" STR_FMT " is not in the allowed list", STR_ARG(name));
	return 0;
}

/* ---- what they say ---- */

static str first_value(const struct request *q, const struct names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		str value = http_request_header(q->http, names->v[i]);
		if (value.n)
			return value;
	}
	return STR_NONE;
}

/* All values of all headers, in the order of names. */
static void take_groups(const struct request *q, const struct names *names, struct user *ret)
{
	str *groups = ARENA_ARRAY(q->arena, str, q->http->n_headers + 1);
	ret->groups = groups;
	for (size_t i = 0; i < names->n; i++)
		for (size_t k = 0; k < q->http->n_headers; k++)
			if (q->http->headers[k].value.n && str_eq(q->http->headers[k].name, names->v[i]) &&
			    ret->n_groups < q->http->n_headers)
				groups[ret->n_groups++] = q->http->headers[k].value;
}

static struct val take_extra(const struct request *q, const struct names *prefixes)
{
	struct val extra = VAL_EMPTY;
	for (size_t i = 0; i < prefixes->n; i++) {
		for (size_t k = 0; k < q->http->n_headers; k++) {
			const struct http_header *h = &q->http->headers[k];
			if (!str_starts(h->name, prefixes->v[i]))
				continue;
			str sent = str_skip(h->name, prefixes->v[i].n), key;
			if (url_path_unescape(q->arena, sent, &key, NULL) < 0)
				key = sent;
			atom name = atom_make(q->arena, key);
			extra = val_put(q->arena, extra, name,
					val_list_append(q->arena, val_member(extra, name), val_of_str(h->value)));
		}
	}
	return val_len(extra) ? val_sorted(q->arena, extra) : VAL_EMPTY;
}

bool request_header_user(const struct request_header *h, const struct request *q, struct user *ret)
{
	struct user user = { .name = first_value(q, &h->users) };
	if (!user.name.n)
		return false;
	user.uid = first_value(q, &h->uids);
	take_groups(q, &h->groups, &user);
	user.extra = take_extra(q, &h->extras);
	*ret = user;
	return true;
}

static bool has_prefix(const struct names *prefixes, str name)
{
	for (size_t i = 0; i < prefixes->n; i++)
		if (str_starts(name, prefixes->v[i]))
			return true;
	return false;
}

bool request_header_is(const struct request_header *h, str name)
{
	if (str_eq(name, STR("x-remote-user")) || str_eq(name, STR("x-remote-uid")) || str_eq(name, STR("x-remote-group")) ||
	    str_starts(name, STR("x-remote-extra-")))
		return true;
	return h && (is_among(&h->users, name) || is_among(&h->uids, name) || is_among(&h->groups, name) ||
		     has_prefix(&h->extras, name));
}

/* ---- making it ---- */

static str in_lower_case(struct arena *a, str s)
{
	char *p = arena_alloc(a, s.n + 1, 1);
	for (size_t i = 0; i < s.n; i++)
		p[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] | 0x20) : s.p[i];
	return str_span(p, s.n);
}

static int take_names(struct request_header *h, const char *const *list, const char *flag, struct names *ret, struct err *err)
{
	size_t n = 0;
	const str *given = authn_list(&h->arena, list, &n);
	str *names = ARENA_ARRAY(&h->arena, str, n + 1);
	for (size_t i = 0; i < n; i++) {
		names[i] = in_lower_case(&h->arena, str_trim(given[i]));
		if (!names[i].n)
			return err_set(err, ERR_INVALID, "--requestheader-%s: empty header \"" STR_FMT "\"", flag, STR_ARG(given[i]));
	}
	*ret = (struct names){ names, n };
	return 0;
}

int request_header_new(struct apiserver *s, struct request_header **ret, struct err *err)
{
	const struct authn_options *o = &s->options.authn;
	*ret = NULL;
	if (!o->requestheader_client_ca_file)
		return 0;
	struct request_header *h = *ret = mem_zalloc(sizeof *h);
	arena_init(&h->arena);
	config_file_init(&h->file, o->requestheader_client_ca_file);
	h->allowed.v = authn_list(&h->arena, o->requestheader_allowed_names, &h->allowed.n);
	int r = take_names(h, o->requestheader_username_headers, "username-headers", &h->users, err);
	if (r == 0)
		r = take_names(h, o->requestheader_uid_headers, "uid-headers", &h->uids, err);
	if (r == 0)
		r = take_names(h, o->requestheader_group_headers, "group-headers", &h->groups, err);
	if (r == 0)
		r = take_names(h, o->requestheader_extra_headers_prefix, "extra-headers-prefix", &h->extras, err);
	if (r == 0 && (r = load(h, err)) < 0)
		err_wrap(err, r, "--requestheader-client-ca-file");
	return r < 0 ? r : 0;
}

void request_header_free(struct request_header *h)
{
	if (!h)
		return;
	X509_STORE_free(h->store);
	config_file_done(&h->file);
	arena_done(&h->arena);
	free(h);
}
