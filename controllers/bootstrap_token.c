#include "controllers/bootstrap_token.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/clock.h"
#include "codec/json.h"
#include "codec/time.h"
#include "controllers/secret_data.h"

enum { ID_BYTES = 6, HEADER_MAX = 4096 };

#define NAME_PREFIX "bootstrap-token-"
#define SIGNATURE_PREFIX "jws-kubeconfig-"

bool bootstrap_token_is(struct val secret)
{
	return str_eq(val_str(secret, type), STR(BOOTSTRAP_TOKEN_TYPE)) &&
	       str_eq(val_str(secret, metadata, namespace), STR(BOOTSTRAP_TOKEN_NAMESPACE));
}

int64_t bootstrap_token_left_ns(struct arena *a, struct val secret, int64_t now_ns)
{
	str text = secret_data(a, secret, STR("expiration"));
	struct timestamp end;
	if (!text.n)
		return INT64_MAX;
	if (time_parse(text, &end, NULL) < 0 || end.seconds < now_ns / NS_PER_S)
		return 0;
	if (end.seconds - now_ns / NS_PER_S > INT64_MAX / NS_PER_S / 4)
		return INT64_MAX / 4;
	return MAX((end.seconds - now_ns / NS_PER_S) * NS_PER_S + end.nanos - now_ns % NS_PER_S, (int64_t)0);
}

/* "bootstrap-token-" and six letters or digits. */
static bool is_named(str name, str id)
{
	for (size_t i = 0; i < id.n; i++)
		if (!((id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= '0' && id.p[i] <= '9')))
			return false;
	return id.n == ID_BYTES && str_starts(name, STR(NAME_PREFIX)) && str_eq(str_skip(name, sizeof(NAME_PREFIX) - 1), id);
}

bool bootstrap_token_signs(struct arena *a, struct val secret, int64_t now_ns, str *ret_id, str *ret_secret)
{
	*ret_id = secret_data(a, secret, STR("token-id"));
	*ret_secret = secret_data(a, secret, STR("token-secret"));
	return bootstrap_token_is(secret) && is_named(val_str(secret, metadata, name), *ret_id) && ret_secret->n &&
	       bootstrap_token_left_ns(a, secret, now_ns) > 0 &&
	       str_eq(secret_data(a, secret, STR("usage-bootstrap-signing")), STR("true"));
}

str bootstrap_token_sign(struct arena *a, str content, str id, str secret)
{
	CLEANUP(buf_done) struct buf header = BUF_INIT(HEADER_MAX), all = BUF_INIT(base64url_encoded_len(content.n) + HEADER_MAX),
				      out = BUF_INIT(HEADER_MAX);
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	buf_add(&header, STR("{\"alg\":\"HS256\",\"kid\":"));
	json_quote(&header, id, true);
	buf_addc(&header, '}');
	base64url_encode_buf(&out, buf_str(&header));
	buf_add(&all, buf_str(&out));
	buf_addc(&all, '.');
	base64url_encode_buf(&all, content);
	(void)HMAC(EVP_sha256(), secret.p, (int)secret.n, (const unsigned char *)all.p, all.n, sum, &n);
	buf_add(&out, STR(".."));
	base64url_encode_buf(&out, str_span((const char *)sum, n));
	return arena_str(a, buf_str(&out));
}

struct val bootstrap_signed_data(struct arena *a, struct val data, struct val secrets, int64_t now_ns)
{
	struct val content = val_find(data, STR("kubeconfig")), signed_data = VAL_EMPTY_OBJECT;
	str id, secret;
	if (!val_exists(content))
		return VAL_EMPTY;
	VAL_EACH_MEMBER(m, data)
		if (!str_starts(atom_str(m->key), STR(SIGNATURE_PREFIX)))
			signed_data = val_put(a, signed_data, m->key, m->val);
	VAL_EACH(s, secrets) {
		if (!bootstrap_token_signs(a, *s, now_ns, &id, &secret))
			continue;
		atom key = atom_make(a, arena_join(a, STR(SIGNATURE_PREFIX), id));
		signed_data = val_put(a, signed_data, key, VAL_STR(bootstrap_token_sign(a, val_as_str(content), id, secret)));
	}
	return val_equal(signed_data, data) ? VAL_EMPTY : signed_data;
}
