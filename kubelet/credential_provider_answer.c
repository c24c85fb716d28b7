/* What a credential provider has printed. It may hold credentials: nothing of it gets into a message. */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "kubelet/credential_provider.h"

static enum credential_scope scope_of(str type)
{
	static const char *const names[] = {
		[CREDENTIAL_NOWHERE] = "", [CREDENTIAL_IMAGE] = "Image", [CREDENTIAL_REGISTRY] = "Registry", [CREDENTIAL_GLOBAL] = "Global",
	};

	for (unsigned i = CREDENTIAL_IMAGE; i < ARRAY_LEN(names); i++)
		if (str_eq(type, str_of(names[i])))
			return (enum credential_scope)i;
	return CREDENTIAL_NOWHERE;
}

int credential_answer_parse(struct arena *a, struct val config, str text, struct credential_answer *ret, struct err *err)
{
	str expected = val_str(config, apiVersion);
	struct strict_errors *strict = ARENA_NEW(a, struct strict_errors);
	struct val v;

	strict->arena = a;
	if (json_decode(a, text, &(struct json_decode_options){ .sort_keys = true }, &v, NULL) < 0)
		return err_set(err, ERR_BAD_REQUEST, "error reading GVK from response: couldn't get version/kind; json parse error");
	if (!str_eq(val_str(v, apiVersion), expected))
		return err_set(err, ERR_BAD_REQUEST, "apiVersion from credential plugin response did not match expected apiVersion:" STR_FMT
			       ", actual apiVersion:" STR_FMT, STR_ARG(expected), STR_ARG(val_str(v, apiVersion)));
	if (!str_eq(val_str(v, kind), STR("CredentialProviderResponse")) ||
	    val_canonical(a, v, TYPE(credentialprovider_v1, CredentialProviderResponse), strict, &v, NULL) < 0 || strict->n)
		return err_set(err, ERR_BAD_REQUEST, "error decoding credential provider plugin response from stdout");
	struct val life = val_has(v, cacheDuration) ? val_get(v, cacheDuration) : val_get(config, defaultCacheDuration);
	*ret = (struct credential_answer){ .auth = val_get(v, auth), .scope = scope_of(val_str(v, cacheKeyType)), .type = val_str(v, cacheKeyType) };
	if (duration_parse(val_as_str(life), &ret->life_ns, NULL) < 0)
		ret->life_ns = 0;
	return 0;
}

int credential_answer_check(const struct credential_answer *answer, struct val config, str token, struct err *err)
{
	bool echo = !token.n || str_eq(val_str(config, tokenAttributes, cacheType), STR("Token"));

	VAL_EACH_MEMBER(m, answer->auth)
		if (!echo && str_eq(val_str(m->val, password), token))
			return err_set(err, ERR_BAD_REQUEST, "credential provider plugin returned the service account token as the password which is not "
				       "allowed when service account cache type is not set to 'Token'");
	if (answer->scope == CREDENTIAL_NOWHERE)
		return err_set(err, ERR_BAD_REQUEST, "credential provider plugin did not return a valid cacheKeyType: " STR_FMT, STR_ARG(answer->type));
	return 0;
}
