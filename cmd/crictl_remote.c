#include "cmd/crictl_remote.h"

#include "client/rexec.h"
#include "net/url.h"

enum { URL_MAX = 16 << 10, HEAD_MAX = 64 << 10, HEAD_TIMEOUT_MS = 60 * 1000 };

/* Where a kubelet's own streaming server is: for runtimes that give a path only. */
#define KUBELET "http://127.0.0.1:10250"

static int tls_new(struct crictl *c, struct tls_context **ret, struct err *err)
{
	bool any = c->tls_ca || c->tls_cert || c->tls_key;
	struct tls_options o = { .ca_file = c->tls_ca, .cert_file = c->tls_cert, .key_file = c->tls_key, .insecure_skip_verify = !any,
				 .server_name = any ? c->tls_name ? c->tls_name : "localhost" : NULL };

	if (any && (!c->tls_cert || !c->tls_key))
		return err_set(err, ERR_BAD_REQUEST, "--tls-cert and --tls-key are both required for TLS streaming, only --tls-ca is optional");
	return tls_client_new(&o, ret, err);
}

int crictl_dialer_init(struct crictl_dialer *d, struct crictl *c, str text, struct err *err)
{
	struct url url;

	*d = (struct crictl_dialer){ .websocket = strcmp(c->transport, "websocket") == 0 };
	if (!d->websocket && strcmp(c->transport, "spdy") != 0)
		return err_set(err, ERR_BAD_REQUEST, "unknown transport '%s': spdy and websocket are known", c->transport);
	if (!text.n || text.n > URL_MAX)
		return err_set(err, ERR_BAD_REQUEST, "the runtime gave %s URL for streaming", text.n ? "too long a" : "no");
	if (text.p[0] == '/')
		text = arena_join(&c->arena, STR(KUBELET), text);
	d->url = arena_str(&c->arena, text).p;
	int r = url_parse(&c->arena, str_of(d->url), &url, err);
	if (r < 0)
		return err_wrap(err, r, "the runtime's URL for streaming");
	if (!str_eq(url.scheme, STR("http")) && !str_eq(url.scheme, STR("https")))
		return err_set(err, ERR_BAD_REQUEST, "the runtime's URL for streaming is not for HTTP: %s", d->url);
	if (str_eq(url.scheme, STR("https")) && (r = tls_new(c, &d->tls, err)) < 0)
		return r;
	struct http_client_options o = { .tls = d->tls, .max_header_bytes = HEAD_MAX, .head_timeout_ms = HEAD_TIMEOUT_MS };
	d->http = http_client_new(&o);
	return 0;
}

void crictl_dialer_done(struct crictl_dialer *d)
{
	http_client_free(d->http);
	tls_context_free(d->tls);
}

int crictl_dial_spdy(struct crictl_dialer *d, const char *const *protocols, struct spdy **ret, const char **ret_protocol, struct err *err)
{
	struct http_request q = { .method = STR("POST"), .url = str_of(d->url) };
	int status, r = spdy_dial(d->http, &q, protocols, &(struct spdy_options){ .client = true }, ret, ret_protocol, &status, err);

	if (r < 0)
		return status ? err_wrap(err, r, "the streaming server answered with %d", status) : r;
	if (*ret_protocol)
		return 0;
	spdy_free(*ret);
	*ret = NULL;
	return err_set(err, ERR_BAD_REQUEST, "the streaming server does not speak %s", protocols[0]);
}

int crictl_dial_ws(struct crictl_dialer *d, const char *const *protocols, struct ws **ret, const char **ret_protocol, struct err *err)
{
	struct http_request q = { .method = STR("GET"), .url = str_of(d->url) };
	int status, r = ws_dial(d->http, &q, protocols, &(struct ws_options){ .client = true }, ret, ret_protocol, &status, err);

	if (r < 0)
		return status ? err_wrap(err, r, "the streaming server answered with %d", status) : r;
	if (*ret_protocol)
		return 0;
	ws_free(*ret);
	*ret = NULL;
	return err_set(err, ERR_BAD_REQUEST, "the streaming server does not speak %s", protocols[0]);
}

int crictl_remote_open(struct crictl_dialer *d, const struct rexec_wants *wants, struct rexec **ret, struct err *err)
{
	const char *protocol;
	struct spdy *spdy;
	struct ws *ws;
	int r;

	if (!d->websocket)
		return (r = crictl_dial_spdy(d, rexec_spdy_protocols, &spdy, &protocol, err)) < 0 ? r : rexec_of_spdy(spdy, wants, ret, err);
	if ((r = crictl_dial_ws(d, rexec_ws_protocols, &ws, &protocol, err)) < 0)
		return r;
	*ret = rexec_of_ws(ws, protocol, wants);
	return 0;
}
