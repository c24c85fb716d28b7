#include "apiserver/admission/webhook_auth.h"

#include <stdlib.h>

#include "apiserver/webhook_priv.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "net/url.h"

struct webhook_auth {
	struct arena arena;
	const char *file;
	struct val config;            /* the kubeconfig in it */
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

int webhook_auth_open(struct val config, struct webhook_auth **ret, struct err *err)
{
	str path;
	*ret = NULL;
	int r = check_config(config, &path, err);
	if (r < 0 || !path.n)
		return r;
	struct webhook_auth *w = mem_zalloc(sizeof *w);
	w->file = arena_str(&w->arena, path).p;
	r = kubeconfig_read(&w->arena, w->file, &w->config, err);
	if (r < 0)
		webhook_auth_free(w);
	else
		*ret = w;
	return r;
}

void webhook_auth_free(struct webhook_auth *w)
{
	if (!w)
		return;
	arena_done(&w->arena);
	free(w);
}

/* ---- whom ---- */

static struct val user_of(const struct webhook_auth *w, str name)
{
	VAL_EACH(u, val_get(w->config, users))
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
	struct val user = user_or_star(w, a, target), config = w->config;
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

int webhook_auth_add(const struct webhook_auth *w, struct arena *a, struct webhook_options *o, struct webhook_files *files,
		     struct err *err)
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
	return kubeconfig_user(a, w->file, user, o, files, err);
}
