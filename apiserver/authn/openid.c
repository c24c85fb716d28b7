/*
 * How others check the tokens of this cluster (OpenID Connect Discovery 1.0): who issues them, and by which keys. Kubernetes
 * serves them only for an issuer that the standard allows.
 */
#include "apiserver/authn/authn_priv.h"
#include "apiserver/authn/jwt_verify.h"
#include "apiserver/documents_priv.h"
#include "codec/atoms.h"
#include "net/url.h"

static bool is_https(struct arena *a, str text, bool plain)
{
	struct url u;
	return url_parse(a, text, &u, NULL) == 0 && str_eq(u.scheme, STR("https")) && (!plain || (!u.query.n && !u.fragment.n));
}

/* GET, of an issuer that can be told, by a client that takes this type. */
static int check(struct request *q, str type, struct err *err)
{
	const struct authn_options *o = &q->server->options.authn;
	int r = require_get(q);
	if (r < 0)
		return r;
	if (!q->server->authn->keys || !is_https(q->arena, str_of(o->service_account_issuers[0]), true) ||
	    (o->service_account_jwks_uri && !is_https(q->arena, str_of(o->service_account_jwks_uri), false)))
		return err_set(err, ERR_NOT_FOUND, "no such path");
	str accept = http_request_header(q->http, STR("accept")), one, parameters;
	if (!accept.n)
		return 0;
	for (bool more = true; more;) {
		more = str_cut(accept, ',', &one, &accept);
		str_cut(one, ';', &one, &parameters);
		one = str_trim(one);
		if (str_eq(one, STR("*/*")) || str_eq(one, type))
			return 0;
	}
	return request_fail(q, ERR_NOT_ACCEPTABLE, VAL_EMPTY_OBJECT, "406: Not Acceptable\n\nAvailable representations: " STR_FMT,
			    STR_ARG(type));
}

static int answer(struct request *q, str type, struct val v, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(DOCUMENT_MAX);
	int r = json_encode(&b, v, &(struct json_encode_options){ 0 }, err);
	answer_header(q, STR("cache-control"), STR("public, max-age=3600"));
	answer_bytes(q, 200, type, arena_str(q->arena, buf_str(&b)));
	return r;
}

/* Each once, in byte order. */
static struct val algorithms(const struct jwt_keys *keys, struct arena *a)
{
	struct val list = VAL_EMPTY_LIST;
	const char *name;
	for (size_t i = 0; (name = jwt_keys_algorithm(keys, i)); i++) {
		size_t at = 0;
		while (at < val_len(list) && str_cmp(val_as_str(val_at(list, at)), str_of(name)) < 0)
			at++;
		if (!str_eq(val_as_str(val_at(list, at)), str_of(name)))
			list = val_list_insert(a, list, at, val_of_str(str_of(name)));
	}
	return list;
}

static str keys_address(struct request *q)
{
	const struct apiserver *s = q->server;
	if (s->options.authn.service_account_jwks_uri)
		return str_of(s->options.authn.service_account_jwks_uri);
	str address = str_of(s->options.advertise_address);
	bool v6 = str_chr(address, ':') >= 0;
	return arena_printf(q->arena, "https://%s" STR_FMT "%s:%u/openid/v1/jwks", v6 ? "[" : "", STR_ARG(address), v6 ? "]" : "",
			    (unsigned)s->port);
}

int openid_configuration_answer(struct request *q, struct err *err)
{
	struct arena *a = q->arena;
	int r = check(q, STR("application/json"), err);
	if (r < 0)
		return r;
	return answer(q, STR("application/json"),
		      OBJECT(a, F(issuer, val_of_str(str_of(q->server->options.authn.service_account_issuers[0]))),
			     F(jwks_uri, val_of_str(keys_address(q))), F(response_types_supported, LIST(a, VAL_LIT("id_token"))),
			     F(subject_types_supported, LIST(a, VAL_LIT("public"))),
			     F(id_token_signing_alg_values_supported, algorithms(q->server->authn->keys, a))), err);
}

int openid_keys_answer(struct request *q, struct err *err)
{
	static const str type = STR_INIT("application/jwk-set+json");
	int r = check(q, type, err);
	return r < 0 ? r : answer(q, type, jwt_keys_jwks(q->server->authn->keys, q->arena), err);
}
