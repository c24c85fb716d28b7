/* The way to the server, made when it is needed first. */
#include <sys/utsname.h>

#include "kubectl/ktl.h"

int ktl_document(struct ktl *k, struct val *ret)
{
	struct err err = ERR_INIT;
	if (!k->has_document && kubeconfig_load(&k->arena, k->globals.kubeconfig[0] ? k->globals.kubeconfig : NULL, &k->document, &err) < 0)
		return ktl_fail_err(k, &err);
	k->has_document = true;
	*ret = k->document;
	return 0;
}

static struct val texts_as_list(struct ktl *k, const struct ktl_texts *texts)
{
	struct val_builder b = val_builder(&k->arena);
	for (size_t i = 0; i < texts->n; i++)
		val_add_item(&b, VAL_STR(str_of(texts->v[i])));
	return val_end_list(&b);
}

static struct kubeconfig_overrides overrides(struct ktl *k)
{
	const struct ktl_globals *g = &k->globals;
	return (struct kubeconfig_overrides){
		.context = str_of(g->context), .cluster = str_of(g->cluster), .user = str_of(g->user), .namespace = str_of(g->namespace),
		.server = str_of(g->server), .tls_server_name = str_of(g->tls_server_name), .ca_file = str_of(g->certificate_authority),
		.client_cert_file = str_of(g->client_certificate), .client_key_file = str_of(g->client_key), .token = str_of(g->token),
		.username = str_of(g->username), .password = str_of(g->password), .impersonate = str_of(g->as),
		.impersonate_uid = str_of(g->as_uid), .impersonate_groups = texts_as_list(k, &g->as_group), .insecure = g->insecure,
	};
}

/* "30s", or a number of seconds. */
static int set_timeout(struct ktl *k)
{
	const char *text = k->globals.request_timeout;
	int64_t n;
	if (!text[0] || ktl_is(text, "0"))
		return 0;
	if (str_to_i64(str_of(text), &n)) {
		k->timeout_ms = n * 1000;
		return 0;
	}
	if (duration_parse(str_of(text), &n, NULL) < 0)
		return ktl_fail(k, "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)");
	k->timeout_ms = n / 1000000;
	return 0;
}

static str user_agent(struct ktl *k)
{
	struct utsname machine;
	const char *arch = uname(&machine) == 0 && strcmp(machine.machine, "aarch64") == 0 ? "arm64" : "amd64";
	return arena_printf(&k->arena, "kubectl/" KTL_VERSION " (linux/%s) c8s", arch);
}

static bool has_context(struct val document, str name)
{
	VAL_EACH(c, val_get(document, contexts))
		if (str_eq(val_str(*c, name), name))
			return true;
	return false;
}

/* --as-user-extra key=value, several times for several values. */
static int set_extra(struct ktl *k)
{
	for (size_t i = 0; i < k->globals.as_user_extra.n; i++) {
		struct val map = k->config.impersonate_extra;
		str key, value;
		if (!str_cut(str_of(k->globals.as_user_extra.v[i]), '=', &key, &value))
			return ktl_fail(k, "invalid user extra: %s", k->globals.as_user_extra.v[i]);
		atom name = atom_make(&k->arena, key);
		k->config.impersonate_extra = val_put(&k->arena, map, name, val_list_append(&k->arena, val_member(map, name), VAL_STR(value)));
	}
	return 0;
}

int ktl_config(struct ktl *k, const struct client_config **ret)
{
	struct err err = ERR_INIT;
	struct val document;
	*ret = &k->config;
	if (k->has_config)
		return 0;
	if (ktl_document(k, &document) < 0 || set_timeout(k) < 0)
		return -1;
	struct kubeconfig_overrides o = overrides(k);
	if (o.context.n && !has_context(document, o.context)) {
		(void)err_set(&err, ERR_INVALID, "invalid configuration: context was not found for specified context: %s", k->globals.context);
		return ktl_fail_err(k, &err);
	}
	int r = kubeconfig_resolve(&k->arena, document, &o, &k->config, &err);
	if (r == -ERR_NOT_FOUND) /* as kubectl: there may be one on this machine */
		k->config = (struct client_config){ .server = STR("http://localhost:8080"), .namespace = o.namespace.n ? o.namespace : STR("default") };
	else if (r < 0)
		return ktl_fail_err(k, &err);
	k->config.user_agent = user_agent(k);
	k->config.disable_compression |= k->globals.disable_compression;
	k->has_config = true;
	return set_extra(k);
}

int ktl_client(struct ktl *k, struct client **ret)
{
	const struct client_config *config;
	struct err err = ERR_INIT;
	if (!k->client) {
		if (ktl_config(k, &config) < 0)
			return -1;
		if (client_open(config, &k->client, &err) < 0)
			return ktl_fail_err(k, &err);
		if (k->globals.match_server_version && ktl_match_version(k) < 0) {
			client_free(TAKE(k->client)); /* who asks next is not served either */
			return -1;
		}
	}
	*ret = k->client;
	return 0;
}

int ktl_namespace(struct ktl *k, str *ret, bool *ret_explicit)
{
	const struct client_config *config;
	if (ktl_config(k, &config) < 0)
		return -1;
	*ret = config->namespace;
	if (ret_explicit)
		*ret_explicit = k->globals.namespace[0] != '\0';
	return 0;
}

bool ktl_given(const struct ktl *k, const char *flag) { return ktl_flag_given(&k->flags, flag); }
