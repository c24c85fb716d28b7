/* Whom to call for a node, and with which certificate. */
#include "apiserver/kubelet_client.h"

#include <stdlib.h>

#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/write.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { DEFAULT_PORT = 10250, IDLE_PER_HOST = 4 };

struct kubelet_client {
	struct tls_context *tls[KUBELET_TRUSTS];
	struct http_client *http[KUBELET_TRUSTS];
};

int kubelet_http(struct apiserver *s, enum kubelet_trust trust, struct http_client **ret, struct err *err)
{
	static const char *const alpn[] = { "http/1.1", NULL };
	const struct apiserver_options *o = &s->options;
	if (!s->kubelets)
		s->kubelets = mem_zalloc(sizeof *s->kubelets);
	struct kubelet_client *k = s->kubelets;
	if (!k->http[trust]) {
		bool own = trust != KUBELET_OTHERS, checked = trust == KUBELET_VERIFIED && o->kubelet_ca;
		struct tls_options tls = {
			.cert_file = own ? o->kubelet_client_cert : NULL,
			.key_file = own ? o->kubelet_client_key : NULL,
			.ca_file = checked ? o->kubelet_ca : NULL,
			.insecure_skip_verify = !checked,
			.alpn = alpn,
		};
		int r = tls_client_new(&tls, &k->tls[trust], err);
		if (r < 0)
			return r;
		k->http[trust] = http_client_new(&(struct http_client_options){ .tls = k->tls[trust],
										.max_idle_per_host = IDLE_PER_HOST });
	}
	*ret = k->http[trust];
	return 0;
}

void kubelet_client_free(struct kubelet_client *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < KUBELET_TRUSTS; i++) {
		http_client_free(k->http[i]);
		tls_context_free(k->tls[i]);
	}
	free(k);
}

str kubelet_authority(struct arena *a, str host, str port)
{
	bool v6 = str_chr(host, ':') >= 0;
	if (!port.n)
		return v6 ? arena_printf(a, "[" STR_FMT "]", STR_ARG(host)) : host;
	return arena_printf(a, v6 ? "[" STR_FMT "]:" STR_FMT : STR_FMT ":" STR_FMT, STR_ARG(host), STR_ARG(port));
}

/* The node's address of the most wanted type that it has. */
static str preferred_address(struct val addresses, str types)
{
	str type;
	while (types.n) {
		str_cut(types, ',', &type, &types);
		VAL_EACH(address, addresses)
			if (str_eq(val_str(*address, type), type))
				return val_str(*address, address);
	}
	return STR_NONE;
}

/* Nodes write their own addresses: nothing in one may change the meaning of a URL that it is put into. */
static bool is_host(str host)
{
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i], lower = (char)(c | 0x20);
		if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_' && c != ':')
			return false;
	}
	return true;
}

static int no_address(struct request *q, struct val addresses)
{
	CLEANUP(buf_done) struct buf known = BUF_INIT(1 << 16);
	VAL_EACH(address, addresses) {
		str type = val_str(*address, type), text = val_str(*address, address);
		buf_addf(&known, "%s{" STR_FMT " " STR_FMT "}", known.n ? " " : "", STR_ARG(type), STR_ARG(text));
	}
	return fail_plain(q, "no preferred addresses found; known addresses: [" STR_FMT "]", STR_ARG(buf_str(&known)));
}

int kubelet_find(struct request *q, str node, struct kubelet_place *ret)
{
	static const str usual = STR_INIT("Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP");
	struct object *o = cache_get(kinds_find(&q->server->kinds, STR_NONE, STR("nodes")), node);
	if (!o)
		return fail_not_found(q, q->group, q->resource, node);
	const char *types = q->server->options.kubelet_preferred_address_types;
	struct val addresses = val_get(o->val, status, addresses);
	str host = preferred_address(addresses, types && *types ? str_of(types) : usual);
	if (!host.n)
		return no_address(q, addresses);
	if (!is_host(host))
		return fail_plain(q, "the address of node \"" STR_FMT "\" is not one", STR_ARG(node));
	int64_t port = val_int(o->val, status, daemonEndpoints, kubeletEndpoint, Port);
	*ret = (struct kubelet_place){ .host = arena_str(q->arena, host), .port = port > 0 && port < 65536 ? (uint16_t)port : DEFAULT_PORT };
	ret->authority = kubelet_authority(q->arena, ret->host, arena_printf(q->arena, "%u", ret->port));
	VAL_EACH(feature, val_get(o->val, status, declaredFeatures))
		ret->websockets = ret->websockets || str_eq(val_as_str(*feature), STR("ExtendWebSocketsToKubelet"));
	return 0;
}
