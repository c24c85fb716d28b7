/* Webhooks that a kubeconfig file describes: the cluster of its current context is the webhook, the user is this server. */
#include <errno.h>
#include <unistd.h>

#include "apiserver/webhook_priv.h"
#include "base/encoding.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/types.h"

enum { FILE_MAX = 4 << 20, JSON_MAX = 64 << 20 };

/* What is wrong: all of it. */
struct faults {
	struct arena *arena;
	struct buf text;
	size_t n;
};

static void fault(struct faults *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void fault(struct faults *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(f->arena, fmt, ap);
	va_end(ap);
	if (f->n++)
		buf_add(&f->text, STR(", "));
	buf_add(&f->text, text);
}

static void faults_done(struct faults *f) { buf_done(&f->text); }

static int faults_fail(const struct faults *f, struct err *err)
{
	if (!f->n)
		return 0;
	return err_set(err, ERR_INVALID, f->n > 1 ? "invalid configuration: [" STR_FMT "]" : "invalid configuration: " STR_FMT,
		       STR_ARG(buf_str(&f->text)));
}

/* ---- files beside it ---- */

/* Paths that are relative begin at the folder of the file. NULL for none. */
static const char *path_of(struct arena *a, const char *file, str path)
{
	ptrdiff_t slash = str_rchr(str_of(file), '/');
	if (!path.n)
		return NULL;
	if (path.p[0] == '/' || slash < 0)
		return arena_str(a, path).p;
	return arena_printf(a, "%.*s/" STR_FMT, (int)slash, file, STR_ARG(path)).p;
}

static void check_readable(struct faults *f, const char *what, const char *path, str owner)
{
	if (path && access(path, R_OK) < 0)
		fault(f, "unable to read %s %s for " STR_FMT " due to open %s: %s", what, path, STR_ARG(owner), path,
		      errno == ENOENT ? "no such file or directory" : "permission denied");
}

/* ---- its parts ---- */

struct parts {
	const char *file;
	str cluster_name, user_name;
	struct val cluster, user;
	struct webhook_files files;
};

static struct val named(struct val list, str name, atom what)
{
	VAL_EACH(item, list)
		if (name.n && str_eq(val_str(*item, name), name))
			return val_member(*item, what);
	return VAL_EMPTY;
}

static void check_user(struct faults *f, const struct parts *p)
{
	struct val u = p->user;
	bool cert = val_has(u, client_certificate) || val_has(u, client_certificate_data);
	if (val_has(u, client_certificate) && val_has(u, client_certificate_data))
		fault(f, "client-cert-data and client-cert are both specified for " STR_FMT ". client-cert-data will override.",
		      STR_ARG(p->user_name));
	if (cert && val_has(u, client_key) && val_has(u, client_key_data))
		fault(f, "client-key-data and client-key are both specified for " STR_FMT "; client-key-data will override",
		      STR_ARG(p->user_name));
	if (cert && !val_has(u, client_key) && !val_has(u, client_key_data))
		fault(f, "client-key-data or client-key must be specified for " STR_FMT
		      " to use the clientCert authentication method.", STR_ARG(p->user_name));
	check_readable(f, "client-cert", p->files.client_cert, p->user_name);
	check_readable(f, "client-key", cert ? p->files.client_key : NULL, p->user_name);
	if (val_has(u, token) && (val_has(u, username) || val_has(u, password)))
		fault(f, "more than one authentication method found for " STR_FMT
		      "; found [token basicAuth], only one is allowed", STR_ARG(p->user_name));
	if (val_has(u, exec))
		fault(f, "exec plugins are not supported for webhooks by c8s (user " STR_FMT ")", STR_ARG(p->user_name));
	if (val_has(u, auth_provider))
		fault(f, "auth provider not supported");
	if (val_has(u, as) || val_has(u, as_uid) || val_has(u, as_groups) || val_has(u, as_user_extra))
		fault(f, "acting as another user is not supported for webhooks by c8s (user " STR_FMT ")", STR_ARG(p->user_name));
}

static void check_cluster(struct faults *f, const struct parts *p)
{
	struct val c = p->cluster;
	if (!val_str(c, server).n)
		fault(f, "no server found for cluster \"" STR_FMT "\"", STR_ARG(p->cluster_name));
	if (val_has(c, proxy_url))
		fault(f, "proxy-url is not supported for webhooks by c8s (cluster " STR_FMT ")", STR_ARG(p->cluster_name));
	if (val_has(c, certificate_authority) && val_has(c, certificate_authority_data))
		fault(f, "certificate-authority-data and certificate-authority are both specified for " STR_FMT
		      ". certificate-authority-data will override.", STR_ARG(p->cluster_name));
	if (val_bool(c, insecure_skip_tls_verify) && (val_has(c, certificate_authority) || val_has(c, certificate_authority_data)))
		fault(f, "specifying a root certificates file with the insecure flag is not allowed");
	check_readable(f, "certificate-authority", p->files.ca, p->cluster_name);
}

static void find_parts(struct arena *a, struct faults *f, struct val config, struct parts *p)
{
	str name = val_str(config, current_context);
	struct val context = named(val_get(config, contexts), name, A_context);
	if (name.n && !val_exists(context))
		fault(f, "context was not found for specified context: " STR_FMT, STR_ARG(name));
	p->cluster_name = val_str(context, cluster);
	p->user_name = val_str(context, user);
	p->cluster = named(val_get(config, clusters), p->cluster_name, A_cluster);
	p->user = named(val_get(config, users), p->user_name, A_user);
	p->files = (struct webhook_files){
		.ca = path_of(a, p->file, val_str(p->cluster, certificate_authority)),
		.client_cert = path_of(a, p->file, val_str(p->user, client_certificate)),
		.client_key = path_of(a, p->file, val_str(p->user, client_key)),
	};
	if (!val_len(p->cluster) && !f->n)
		fault(f, "no configuration has been provided, try setting KUBERNETES_MASTER environment variable");
}

/* ---- reading ---- */

static int decode_bytes(struct arena *a, str text, str *ret, struct err *err)
{
	char *out = arena_alloc(a, base64_decoded_max(text.n) + 1, 1);
	size_t n;
	int r = base64_decode(out, text, &n, err);
	*ret = r < 0 ? STR_NONE : str_span(out, n);
	return r;
}

int kubeconfig_user(struct arena *a, const char *file, struct val user, struct webhook_options *o, struct webhook_files *files,
		    struct err *err)
{
	int r;
	o->user = val_str(user, username);
	o->password = val_str(user, password);
	o->token = val_str(user, token);
	if ((r = decode_bytes(a, val_str(user, client_certificate_data), &o->client_cert, err)) < 0 ||
	    (r = decode_bytes(a, val_str(user, client_key_data), &o->client_key, err)) < 0)
		return r;
	files->token = path_of(a, file, val_str(user, tokenFile));
	files->client_cert = o->client_cert.n ? NULL : path_of(a, file, val_str(user, client_certificate));
	files->client_key = o->client_key.n ? NULL : path_of(a, file, val_str(user, client_key));
	return 0;
}

static int open_parts(struct apiserver *s, struct arena *a, const struct parts *p, struct webhook **ret, struct err *err)
{
	struct val c = p->cluster;
	struct webhook_options o = {
		.url = val_str(c, server), .insecure = val_bool(c, insecure_skip_tls_verify),
		.server_name = val_str(c, tls_server_name),
	};
	struct webhook_files files = { .ca = p->files.ca };
	int r;
	if ((r = decode_bytes(a, val_str(c, certificate_authority_data), &o.ca_bundle, err)) < 0 ||
	    (r = kubeconfig_user(a, p->file, p->user, &o, &files, err)) < 0)
		return r;
	/* A server's address without a scheme is one that speaks TLS. */
	if (str_find(o.url, STR("://")) < 0)
		o.url = arena_printf(a, "https://" STR_FMT, STR_ARG(o.url));
	/* Credentials do not go out in the clear. */
	if (!str_starts(o.url, STR("https://")))
		return webhook_new(s, &(const struct webhook_options){ .url = o.url }, ret, err);
	return webhook_make(s, &o, &files, ret, err);
}

int kubeconfig_read(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX), json = BUF_INIT(JSON_MAX);
	const struct type *type = NULL;
	struct object_kind kind;
	int r = file_read(path, &text, err);
	if (r < 0)
		return r;
	if ((r = yaml_to_json(buf_str(&text), &json, NULL, err)) < 0 ||
	    (r = json_decode_expected(a, arena_str(a, buf_str(&json)), TYPE(clientcmd_v1, Config), NULL, ret, &type, &kind, err)) < 0)
		return err_wrap(err, r, "error loading config file \"%s\"", path);
	if (type != TYPE(clientcmd_v1, Config))
		return err_set(err, ERR_INVALID, "error loading config file \"%s\": no kind \"" STR_FMT
			       "\" is registered for version \"" STR_FMT "\"", path, STR_ARG(kind.kind), STR_ARG(kind.api_version));
	return 0;
}

int webhook_open(struct apiserver *s, const char *kubeconfig_file, struct webhook **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(faults_done) struct faults f = { .arena = &a, .text = BUF_INIT(FILE_MAX) };
	struct parts p = { .file = kubeconfig_file };
	struct val config;
	int r = kubeconfig_read(&a, kubeconfig_file, &config, err);
	if (r < 0)
		return r;
	find_parts(&a, &f, config, &p);
	if (!f.n) {
		check_user(&f, &p);
		check_cluster(&f, &p);
	}
	if ((r = faults_fail(&f, err)) < 0)
		return r;
	return open_parts(s, &a, &p, ret, err);
}
