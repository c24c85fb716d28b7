/* From a document to one way to a server. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/log.h"
#include "client/kubeconfig_priv.h"
#include "codec/atoms.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum { FILE_MAX = 4 << 20 };

struct val kubeconfig_named(struct val list, str name, atom what)
{
	VAL_EACH(item, list)
		if (str_eq(val_str(*item, name), name)) {
			struct val v = val_member(*item, what);
			return val_exists(v) ? v : VAL_EMPTY_OBJECT;
		}
	return VAL_EMPTY;
}

static str either(str x, str y) { return x.n ? x : y; }

static struct val put_text(struct arena *a, struct val object, atom key, str text)
{
	return text.n ? val_put(a, object, key, val_of_str(text)) : object;
}

/* ---- choosing ---- */

/* Where a flag names a file, what is in the kubeconfig itself does not count. */
static struct val with_user_overrides(struct arena *a, struct val u, const struct kubeconfig_overrides *o)
{
	if (o->client_cert_file.n)
		u = val_without(a, u, client_certificate_data);
	if (o->client_key_file.n)
		u = val_without(a, u, client_key_data);
	u = put_text(a, u, A_client_certificate, o->client_cert_file);
	u = put_text(a, u, A_client_key, o->client_key_file);
	u = put_text(a, u, A_token, o->token);
	u = put_text(a, u, A_username, o->username);
	u = put_text(a, u, A_password, o->password);
	u = put_text(a, u, A_as, o->impersonate);
	u = put_text(a, u, A_as_uid, o->impersonate_uid);
	return val_len(o->impersonate_groups) ? val_put(a, u, A_as_groups, o->impersonate_groups) : u;
}

static struct val with_cluster_overrides(struct arena *a, struct val c, const struct kubeconfig_overrides *o)
{
	c = put_text(a, c, A_server, o->server);
	if (o->insecure || o->ca_file.n) {
		c = val_put(a, c, A_insecure_skip_tls_verify, o->insecure ? val_of_bool(true) : VAL_EMPTY);
		c = val_put(a, c, A_certificate_authority, o->ca_file.n ? val_of_str(o->ca_file) : VAL_EMPTY);
		c = val_without(a, c, certificate_authority_data);
	}
	if (o->tls_server_name.n || o->server.n)
		c = val_put(a, c, A_tls_server_name, o->tls_server_name.n ? val_of_str(o->tls_server_name) : VAL_EMPTY);
	return c;
}

static int choose(struct arena *a, struct val document, const struct kubeconfig_overrides *o, struct kubeconfig_choice *c,
		  struct err *err)
{
	c->context_name = either(o->context, val_str(document, current_context));
	struct val context = kubeconfig_named(val_get(document, contexts), c->context_name, A_context);
	c->has_context = val_exists(context);
	c->cluster_name = either(o->cluster, val_str(context, cluster));
	c->user_name = either(o->user, val_str(context, user));
	c->namespace = either(o->namespace, val_str(context, namespace));
	c->cluster = kubeconfig_named(val_get(document, clusters), c->cluster_name, A_cluster);
	c->user = kubeconfig_named(val_get(document, users), c->user_name, A_user);
	c->has_cluster = val_exists(c->cluster);
	if (o->user.n && !val_exists(c->user))
		return err_set(err, ERR_INVALID, "auth info \"" STR_FMT "\" does not exist", STR_ARG(o->user));
	if (o->context.n && !c->has_context)
		return err_set(err, ERR_INVALID, "context \"" STR_FMT "\" does not exist", STR_ARG(o->context));
	if (o->cluster.n && !c->has_cluster)
		return err_set(err, ERR_INVALID, "cluster \"" STR_FMT "\" does not exist", STR_ARG(o->cluster));
	c->user = with_user_overrides(a, c->user, o);
	c->cluster = with_cluster_overrides(a, c->cluster, o);
	c->touched = c->has_cluster || val_len(c->cluster);
	return 0;
}

/* ---- filling in ---- */

static int decode_bytes(struct arena *a, str text, str *ret, struct err *err)
{
	char *out = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	size_t n = 0;
	int r = base64_decode(out, text, &n, err);
	*ret = r < 0 ? STR_NONE : str_span(out, n);
	return r;
}

static int read_text(struct arena *a, str path, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct err why = ERR_INIT;
	int r = file_read(arena_str(a, path).p, &b, &why);
	if (r < 0)
		return why.sys ? err_set(err, ERR_INVALID, "open " STR_FMT ": " STR_FMT, STR_ARG(path), STR_ARG(go_errno(a, why.sys))) :
				 err_set(err, ERR_INVALID, "%s", why.msg);
	*ret = arena_str(a, buf_str(&b));
	return 0;
}

/* A hint is printed to terminals: control characters but white space are shown by their numbers. */
static str printable(struct arena *a, str s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	while (s.n) {
		uint32_t rune = 0xfffd;
		size_t n = str_rune(s, &rune);
		bool space = rune >= 0x09 && rune <= 0x0d;
		bool control = (rune < 0x20 && !space) || (rune >= 0x7f && rune < 0xa0) || !n;
		if (control)
			buf_addf(&b, "U+%04X", rune);
		else
			buf_add(&b, str_head(s, n));
		s = str_skip(s, n ? n : 1);
	}
	return arena_str(a, buf_str(&b));
}

static int fill_server(struct arena *a, struct val c, struct client_config *ret, struct err *err)
{
	ret->insecure = val_bool(c, insecure_skip_tls_verify);
	ret->tls_server_name = val_str(c, tls_server_name);
	ret->ca_file = val_str(c, certificate_authority);
	return decode_bytes(a, val_str(c, certificate_authority_data), &ret->ca, err);
}

static int fill_user(struct arena *a, struct val u, struct client_config *ret, struct err *err)
{
	str ignored;
	int r;
	ret->token = val_str(u, token);
	ret->token_file = val_str(u, tokenFile);
	if (!ret->token.n && ret->token_file.n && (r = read_text(a, ret->token_file, &ignored, err)) < 0)
		return r;
	ret->username = val_str(u, username);
	ret->password = val_str(u, password);
	ret->client_cert_file = val_str(u, client_certificate);
	ret->client_key_file = ret->client_cert_file.n || val_str(u, client_certificate_data).n ? val_str(u, client_key) : STR_NONE;
	if ((r = decode_bytes(a, val_str(u, client_certificate_data), &ret->client_cert, err)) < 0)
		return r;
	if (ret->client_cert.n || ret->client_cert_file.n)
		r = decode_bytes(a, val_str(u, client_key_data), &ret->client_key, err);
	return r;
}

/* What a program is told about the cluster. */
static int fill_exec(struct arena *a, struct val u, struct val c, struct client_config *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(2 * FILE_MAX);
	struct val exec = val_get(u, exec);
	str ca = ret->ca;
	int r;
	if (!val_exists(exec))
		return 0;
	if (ret->ca_file.n && (r = read_text(a, ret->ca_file, &ca, err)) < 0)
		return err_wrap(err, r, "failed to load CA bundle for execProvider");
	base64_encode_buf(&b, ca);
	if (val_str(exec, installHint).n)
		exec = val_put(a, exec, A_installHint, val_of_str(printable(a, val_str(exec, installHint))));
	ret->exec = exec;
	ret->exec_cluster = OBJECT(a, F(server, val_of_str(ret->server)),
		F(tls_server_name, ret->tls_server_name.n ? val_of_str(ret->tls_server_name) : VAL_EMPTY),
		F(insecure_skip_tls_verify, ret->insecure ? val_of_bool(true) : VAL_EMPTY),
		F(certificate_authority_data, ca.n ? val_of_str(arena_str(a, buf_str(&b))) : VAL_EMPTY),
		F(proxy_url, ret->proxy_url.n ? val_of_str(ret->proxy_url) : VAL_EMPTY),
		F(disable_compression, ret->disable_compression ? val_of_bool(true) : VAL_EMPTY),
		F(config, kubeconfig_named(val_get(c, extensions), STR("client.authentication.k8s.io/exec"), A_extension)));
	return 0;
}

/* Without the query and fragment that have no place there. */
static str server_of(str server)
{
	str head, tail;
	(void)str_cut(server, '#', &head, &tail);
	(void)str_cut(head, '?', &head, &tail);
	return head;
}

static int fill(struct arena *a, const struct kubeconfig_choice *c, struct client_config *ret, struct err *err)
{
	struct val u = c->user;
	int r;
	*ret = (struct client_config){
		.server = server_of(val_str(c->cluster, server)), .proxy_url = val_str(c->cluster, proxy_url),
		.disable_compression = val_bool(c->cluster, disable_compression),
		.impersonate = val_str(u, as), .impersonate_uid = val_str(u, as_uid), .impersonate_groups = val_get(u, as_groups),
		.impersonate_extra = val_get(u, as_user_extra), .namespace = either(c->namespace, STR("default")),
	};
	/* Credentials do not go out in the clear. */
	if (!str_starts(ret->server, STR("https://")))
		return 0;
	if (val_has(u, auth_provider))
		return err_set(err, ERR_INVALID, "no Auth Provider found for name \"" STR_FMT "\"",
			       STR_ARG(val_str(u, auth_provider, name)));
	if ((r = fill_server(a, c->cluster, ret, err)) < 0 || (r = fill_user(a, u, ret, err)) < 0)
		return r;
	return fill_exec(a, u, c->cluster, ret, err);
}

/* ---- in a pod ---- */

static str pod_namespace(struct arena *a, const char *folder)
{
	const char *named = getenv("POD_NAMESPACE");
	str text = STR_NONE;
	if (named && *named)
		return arena_str(a, str_of(named));
	if (read_text(a, arena_printf(a, "%s/namespace", folder), &text, NULL) == 0)
		text = str_trim(text);
	return either(text, STR("default"));
}

int kubeconfig_in_cluster_at(struct arena *a, const char *folder, struct client_config *ret, struct err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
	str ca = arena_printf(a, "%s/ca.crt", folder), token = arena_printf(a, "%s/token", folder), text;
	struct err why = ERR_INIT;
	if (!host || !*host || !port || !*port)
		return err_set(err, ERR_NOT_FOUND, "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
			       "KUBERNETES_SERVICE_PORT must be defined");
	int r = read_text(a, token, &text, err);
	if (r < 0) {
		if (err)
			err->code = ERR_NOT_FOUND;
		return -ERR_NOT_FOUND;
	}
	*ret = (struct client_config){
		.server = arena_printf(a, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port),
		.token_file = token, .namespace = pod_namespace(a, folder),
	};
	if (read_text(a, ca, &text, &why) == 0)
		ret->ca_file = ca;
	else
		log_error("the cluster's certificate authority cannot be read, ignoring", KV("error", &why));
	return 0;
}

int kubeconfig_in_cluster(struct arena *a, struct client_config *ret, struct err *err)
{
	return kubeconfig_in_cluster_at(a, SERVICE_ACCOUNT, ret, err);
}

/* Flags may say otherwise for each part. */
static int resolve_in_cluster(struct arena *a, const struct kubeconfig_overrides *o, struct client_config *ret)
{
	struct client_config c;
	int r = kubeconfig_in_cluster(a, &c, NULL);
	if (r < 0)
		return r;
	c.server = either(o->server, c.server);
	c.ca_file = either(o->ca_file, c.ca_file);
	c.namespace = either(o->namespace, c.namespace);
	if (o->token.n) {
		c.token = o->token;
		c.token_file = STR_NONE;
	}
	*ret = c;
	return 0;
}

/* ---- all of it ---- */

int kubeconfig_resolve(struct arena *a, struct val document, const struct kubeconfig_overrides *o, struct client_config *ret,
		       struct err *err)
{
	static const struct kubeconfig_overrides none;
	struct kubeconfig_choice c = { 0 };
	bool empty = false;
	o = o ? o : &none;
	int r = choose(a, document, o, &c, err);
	if (r < 0)
		return r;
	if ((r = kubeconfig_check(a, &c, &empty, err)) == 0)
		return fill(a, &c, ret, err);
	if (!empty)
		return r;
	if (resolve_in_cluster(a, o, ret) == 0) {
		err_clear(err);
		return 0;
	}
	if (err)
		err->code = ERR_NOT_FOUND;
	return -ERR_NOT_FOUND;
}

int kubeconfig_open(struct arena *a, const char *path, struct client_config *ret, struct err *err)
{
	struct val document;
	if (!path || !*path)
		return kubeconfig_in_cluster(a, ret, err);
	int r = kubeconfig_load(a, path, &document, err);
	return r < 0 ? r : kubeconfig_resolve(a, document, NULL, ret, err);
}
