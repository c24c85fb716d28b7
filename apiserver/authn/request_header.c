/*
 * A proxy that we trust (a client certificate of --requestheader-client-ca-file, with a name of --requestheader-allowed-names)
 * says in headers who asks. TLS knows nothing of that authority: it must not be able to certify users.
 */
#include <openssl/x509.h>

#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/authorities.h"
#include "apiserver/authn/x509.h"
#include "base/mem.h"
#include "net/url.h"

struct names {
	const str *v;                 /* of headers: in lower case */
	size_t n;
};

struct request_header {
	struct arena arena;
	struct authorities *trusted;
	struct names users, uids, groups, extras, allowed;
};

/* ---- whom we trust ---- */

int request_header_run(struct request_header *h, struct err *err) { return authorities_run(h->trusted, err); }
unsigned request_header_generation(const struct request_header *h) { return authorities_generation(h->trusted); }

static bool is_among(const struct names *names, str s)
{
	for (size_t i = 0; i < names->n; i++)
		if (str_eq(names->v[i], s))
			return true;
	return false;
}

int request_header_check(const struct request_header *h, struct x509_st *cert, struct stack_st_X509 *chain, struct err *err)
{
	int code = authorities_check(h->trusted, cert, chain);
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
	h->allowed.v = authn_list(&h->arena, o->requestheader_allowed_names, &h->allowed.n);
	int r = take_names(h, o->requestheader_username_headers, "username-headers", &h->users, err);
	if (r == 0)
		r = take_names(h, o->requestheader_uid_headers, "uid-headers", &h->uids, err);
	if (r == 0)
		r = take_names(h, o->requestheader_group_headers, "group-headers", &h->groups, err);
	if (r == 0)
		r = take_names(h, o->requestheader_extra_headers_prefix, "extra-headers-prefix", &h->extras, err);
	if (r == 0 && (r = authorities_open(o->requestheader_client_ca_file, "proxies", &h->trusted, err)) < 0)
		return err_wrap(err, r, "--requestheader-client-ca-file");
	return r;
}

void request_header_free(struct request_header *h)
{
	if (!h)
		return;
	authorities_free(h->trusted);
	arena_done(&h->arena);
	free(h);
}
