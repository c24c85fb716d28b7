#include "apiserver/admission/webhook_auth.h"

#include <stdlib.h>

#include "base/encoding.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "net/url.h"

enum { FILE_MAX = 4 << 20, JSON_MAX = 64 << 20 };

struct webhook_auth {
	struct frozen *config;        /* a kubeconfig */
	char *folder;                 /* of the file */
};

/* ---- reading ---- */

static int check_config(struct val config, str *ret_path, struct err *err)
{
	*ret_path = STR_NONE;
	if (!val_exists(config))
		return 0;
	if (!str_eq(val_str(config, kind), STR("WebhookAdmissionConfiguration")) ||
	    !str_eq(val_str(config, apiVersion), STR("apiserver.config.k8s.io/v1")))
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
			       "\" in scheme \"pkg/admission/plugin/webhook/config/kubeconfig.go:34\"",
			       STR_ARG(val_str(config, kind)), STR_ARG(val_str(config, apiVersion)));
	VAL_EACH_MEMBER(m, config)
		if (m->key != A_kind && m->key != A_apiVersion && m->key != A_kubeConfigFile &&
		    m->key != A_staticManifestsDir)
			return err_set(err, ERR_BAD_REQUEST, "strict decoding error: unknown field \"" STR_FMT "\"",
				       STR_ARG(atom_str(m->key)));
	str manifests = val_str(config, staticManifestsDir);
	if (manifests.n)
		return err_set(err, ERR_BAD_REQUEST, "static webhook manifests dir \"" STR_FMT
			       "\" configured but ManifestBasedAdmissionControlConfig feature gate is not enabled", STR_ARG(manifests));
	*ret_path = val_str(config, kubeConfigFile);
	if (ret_path->n && ret_path->p[0] != '/')
		return err_set(err, ERR_BAD_REQUEST, "kubeConfigFile: Invalid value: \"" STR_FMT "\": must be an absolute file path",
			       STR_ARG(*ret_path));
	return 0;
}

static int read_kubeconfig(struct arena *a, const char *path, struct val *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	CLEANUP(buf_done) struct buf json = BUF_INIT(JSON_MAX);
	const struct type *type = NULL;
	struct object_kind kind;
	int r = file_read(path, &text, err);
	if (r < 0)
		return r;
	r = yaml_to_json(buf_str(&text), &json, NULL, err);
	if (r == 0)
		r = json_decode_expected(a, arena_str(a, buf_str(&json)), TYPE(clientcmd_v1, Config), NULL, ret, &type, &kind, err);
	if (r == 0 && type != TYPE(clientcmd_v1, Config))
		r = err_set(err, ERR_BAD_REQUEST, "it is no kubeconfig");
	return r < 0 ? err_wrap(err, r, "error loading config file \"%s\"", path) : 0;
}

int webhook_auth_open(struct val config, struct webhook_auth **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val v;
	str path;
	*ret = NULL;
	int r = check_config(config, &path, err);
	if (r < 0 || !path.n || (r = read_kubeconfig(&a, arena_str(&a, path).p, &v, err)) < 0)
		return r;
	struct webhook_auth *w = mem_zalloc(sizeof *w);
	struct buf folder = BUF_INIT(SIZE_MAX / 2);
	buf_add(&folder, str_head(path, (size_t)str_rchr(path, '/')));
	w->folder = buf_take(&folder);
	w->config = val_freeze(v);
	*ret = w;
	return 0;
}

void webhook_auth_free(struct webhook_auth *w)
{
	if (!w)
		return;
	frozen_unref(w->config);
	free(w->folder);
	free(w);
}

/* ---- whom ---- */

static struct val user_of(const struct webhook_auth *w, str name)
{
	VAL_EACH(u, val_get(w->config->val, users))
		if (str_eq(val_str(*u, name), name))
			return val_get(*u, user);
	return VAL_EMPTY;
}

/* The name itself, or "*.svc:443" for one that ends so. */
static struct val user_or_star(const struct webhook_auth *w, struct arena *a, str target)
{
	struct val user = user_of(w, target);
	for (str rest = target, head; !val_exists(user) && str_cut(rest, '.', &head, &rest);)
		user = user_of(w, arena_join(a, STR("*."), rest));
	return user;
}

struct val webhook_auth_find(const struct webhook_auth *w, struct arena *a, str target)
{
	struct val user = user_or_star(w, a, target), config = w->config->val;
	if (!val_exists(user) && str_ends(target, STR(":443")))
		user = user_or_star(w, a, str_head(target, target.n - strlen(":443")));
	if (!val_exists(user))
		user = user_of(w, STR("*"));
	str current = val_str(config, current_context);
	VAL_EACH(c, val_get(config, contexts))
		if (!val_exists(user) && current.n && str_eq(val_str(*c, name), current))
			user = user_of(w, val_str(*c, context, user));
	return user;
}

static int target_of(struct arena *a, const struct webhook_options *o, str *ret, struct err *err)
{
	if (!o->url.n) {
		*ret = arena_printf(a, STR_FMT "." STR_FMT ".svc:%d", STR_ARG(o->service_name), STR_ARG(o->service_namespace),
				    o->service_port ? o->service_port : 443);
		return 0;
	}
	struct url url;
	int r = url_parse(a, o->url, &url, err);
	if (r == 0)
		*ret = arena_printf(a, STR_FMT ":%u", STR_ARG(url.host), url.port ? url.port : 443u);
	return r;
}

/* Data in the file itself goes before a file that it names, which is relative to it. */
static int bytes_of(const struct webhook_auth *w, struct arena *a, str data, str path, str *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	int r = 0;
	if (data.n)
		r = base64_decode_buf(&b, data, err);
	else if (path.n)
		r = file_read(path.p[0] == '/' ? arena_str(a, path).p : arena_printf(a, "%s/" STR_FMT, w->folder, STR_ARG(path)).p,
			      &b, err);
	*ret = arena_str(a, buf_str(&b));
	return r;
}

int webhook_auth_add(const struct webhook_auth *w, struct arena *a, struct webhook_options *o, struct err *err)
{
	str target;
	int r = w ? target_of(a, o, &target, err) : 0;
	if (!w || r < 0)
		return r;
	struct val user = webhook_auth_find(w, a, target);
	if (val_has(user, auth_provider))
		return err_set(err, ERR_BAD_REQUEST, "auth provider not supported");
	if (val_has(user, exec))
		return err_set(err, ERR_BAD_REQUEST, "exec plugins are not supported for webhooks");
	o->user = val_str(user, username);
	o->password = val_str(user, password);
	o->token = val_str(user, token);
	if (!o->token.n && (r = bytes_of(w, a, STR_NONE, val_str(user, tokenFile), &o->token, err)) < 0)
		return r;
	o->token = str_trim(o->token);
	r = bytes_of(w, a, val_str(user, client_certificate_data), val_str(user, client_certificate), &o->client_cert, err);
	if (r < 0)
		return r;
	return bytes_of(w, a, val_str(user, client_key_data), val_str(user, client_key), &o->client_key, err);
}
