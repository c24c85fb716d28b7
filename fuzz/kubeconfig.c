/* Kubeconfig files: what can be read can be resolved, or an error says why not. */
#include "client/kubeconfig.h"

#include "client/kubeconfig_priv.h"
#include "codec/atoms.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct client_config config;
	struct val document;
	if (kubeconfig_decode(&a, str_span((const char *)data, n), STR("/f/config"), &document, &err) < 0) {
		check(err.n > 0, "an error has a message");
	} else {
		str path = val_str(val_at(val_get(document, clusters), 0), cluster, certificate_authority);
		check(!path.n || path.p[0] == '/', "paths are absolute");
		const struct kubeconfig_overrides o = { .namespace = STR("ns") };
		if (kubeconfig_resolve(&a, document, &o, &config, &err) < 0)
			check(err.n > 0, "an error has a message");
		else
			check(config.server.n > 0 && str_eq(config.namespace, STR("ns")), "there is a server");
	}
	arena_done(&a);
	return 0;
}
