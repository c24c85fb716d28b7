/* What credential providers print. What is accepted says for what it is good, and does not give the token away. */
#include "codec/atoms.h"
#include "fuzz/fuzz.h"
#include "kubelet/credential_provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	struct val config = OBJECT(&a, F(apiVersion, VAL_LIT("credentialprovider.kubelet.k8s.io/v1")), F(defaultCacheDuration, VAL_LIT("1m0s")));
	struct credential_answer answer;
	struct err err = ERR_INIT;

	if (credential_answer_parse(&a, config, str_span((const char *)data, n), &answer, &err) == 0 &&
	    credential_answer_check(&answer, config, STR("token"), &err) == 0) {
		check(answer.scope != CREDENTIAL_NOWHERE, "it is good for something");
		VAL_EACH_MEMBER(m, answer.auth)
			check(!str_eq(val_str(m->val, password), STR("token")), "the token is no password");
	}
	arena_done(&a);
	return 0;
}
