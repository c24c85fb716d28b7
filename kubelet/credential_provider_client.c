/* Service accounts and their tokens, from the API server. */
#include "client/client.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "kubelet/credential_provider.h"

static int check(const struct client *c, struct err *err)
{
	return c ? 0 : err_set(err, ERR_UNAVAILABLE, "cannot use TokenManager when kubelet is in standalone mode");
}

int credential_provider_account(void *client, struct arena *a, str namespace, str name, struct val *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *object = NULL;
	int r;

	if ((r = check(client, err)) < 0 || (r = client_get(client, TYPE(core_v1, ServiceAccount), namespace, name, &object, err)) < 0)
		return r;
	*ret = val_copy(a, object->val);
	return 0;
}

int credential_provider_token(void *client, struct arena *a, str namespace, str name, struct val request, str *ret, struct err *err)
{
	CLEANUP(frozen_unrefp) struct frozen *answer = NULL;
	struct val meta = OBJECT(a, F(name, VAL_STR(name)), F(namespace, VAL_STR(namespace)), F(uid, val_get(request, metadata, uid)));
	const struct client_write_options o = { .subresource = STR("token"), .reply = TYPE(authentication_v1, TokenRequest) };
	int r;

	if ((r = check(client, err)) < 0 ||
	    (r = client_create(client, TYPE(core_v1, ServiceAccount), val_with(a, request, meta, metadata), &o, &answer, err)) < 0)
		return r;
	*ret = arena_str(a, val_str(answer->val, status, token));
	return 0;
}
