/* What can be wrong with the part of a kubeconfig that is used: clientcmd's checks, in their order and words. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "client/kubeconfig_priv.h"
#include "codec/atoms.h"
#include "net/http_proxy.h"

void faults_add(struct faults *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	str text = arena_vprintf(f->arena, fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < f->list.n; i++)
		if (str_eq(val_as_str(((const struct val *)f->list.room)[i]), text))
			return;
	val_add_item(&f->list, val_of_str(text));
}

int faults_fail(struct faults *f, const char *prefix, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KUBECONFIG_MAX);
	struct val list = val_end_list(&f->list);
	if (!val_len(list))
		return 0;
	VAL_EACH(text, list)
		buf_addf(&b, "%s" STR_FMT, b.n ? ", " : "", STR_ARG(val_as_str(*text)));
	return err_set(err, ERR_INVALID, val_len(list) > 1 ? "%s[" STR_FMT "]" : "%s" STR_FMT, prefix, STR_ARG(buf_str(&b)));
}

str go_errno(struct arena *a, int sys)
{
	char *text = (char *)(uintptr_t)arena_str(a, str_of(strerror(sys))).p;
	if (text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z'))
		text[0] = (char)(text[0] | 0x20);
	return str_of(text);
}

static void check_readable(struct faults *f, const char *what, str path, str owner)
{
	if (!path.n)
		return;
	const char *name = arena_str(f->arena, path).p;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		faults_add(f, "unable to read %s %s for " STR_FMT " due to open %s: " STR_FMT, what, name, STR_ARG(owner), name,
			   STR_ARG(go_errno(f->arena, errno)));
	else
		(void)close(fd);
}

static void check_certificate(struct faults *f, struct val u, str name)
{
	bool data = val_str(u, client_certificate_data).n, file = val_str(u, client_certificate).n;
	bool key_data = val_str(u, client_key_data).n, key_file = val_str(u, client_key).n;
	if (!data && !file)
		return;
	if (data && file)
		faults_add(f, "client-cert-data and client-cert are both specified for " STR_FMT ". client-cert-data will override.",
			   STR_ARG(name));
	if (key_data && key_file)
		faults_add(f, "client-key-data and client-key are both specified for " STR_FMT "; client-key-data will override",
			   STR_ARG(name));
	if (!key_data && !key_file)
		faults_add(f, "client-key-data or client-key must be specified for " STR_FMT
			   " to use the clientCert authentication method.", STR_ARG(name));
	check_readable(f, "client-cert", val_str(u, client_certificate), name);
	check_readable(f, "client-key", val_str(u, client_key), name);
}

static void check_exec(struct faults *f, struct val u, str name)
{
	struct val exec = val_get(u, exec);
	str mode = val_str(exec, interactiveMode);
	if (!val_exists(exec))
		return;
	if (val_has(u, auth_provider))
		faults_add(f, "authProvider cannot be provided in combination with an exec plugin for " STR_FMT, STR_ARG(name));
	if (!val_str(exec, command).n)
		faults_add(f, "command must be specified for " STR_FMT " to use exec authentication plugin", STR_ARG(name));
	if (!val_str(exec, apiVersion).n)
		faults_add(f, "apiVersion must be specified for " STR_FMT " to use exec authentication plugin", STR_ARG(name));
	VAL_EACH(e, val_get(exec, env))
		if (!val_str(*e, name).n)
			faults_add(f, "env variable name must be specified for " STR_FMT " to use exec authentication plugin", STR_ARG(name));
	if (!mode.n)
		faults_add(f, "interactiveMode must be specified for " STR_FMT " to use exec authentication plugin", STR_ARG(name));
	else if (!str_eq(mode, STR("Never")) && !str_eq(mode, STR("IfAvailable")) && !str_eq(mode, STR("Always")))
		faults_add(f, "invalid interactiveMode for " STR_FMT ": \"" STR_FMT "\"", STR_ARG(name), STR_ARG(mode));
}

static void check_user(struct faults *f, struct val u, str name)
{
	bool basic = val_str(u, username).n || val_str(u, password).n;
	check_certificate(f, u, name);
	check_exec(f, u, name);
	if (val_str(u, token).n && basic)
		faults_add(f, "more than one authentication method found for " STR_FMT "; found [token basicAuth], only one is allowed",
			   STR_ARG(name));
	if (!val_str(u, as).n && (val_str(u, as_uid).n || val_len(val_get(u, as_groups)) || val_len(val_get(u, as_user_extra))))
		faults_add(f, "requesting uid, groups or user-extra for " STR_FMT " without impersonating a user", STR_ARG(name));
}

static void check_proxy(struct faults *f, str url, str cluster)
{
	struct http_proxy proxy;
	struct err why = ERR_INIT;
	if (url.n && http_proxy_parse(f->arena, url, &proxy, &why) < 0)
		faults_add(f, "invalid 'proxy-url' \"" STR_FMT "\" for cluster \"" STR_FMT "\": %s", STR_ARG(url), STR_ARG(cluster), why.msg);
}

static void check_cluster(struct faults *f, const struct kubeconfig_choice *c)
{
	struct val cluster = c->cluster;
	if (!val_str(cluster, server).n && !c->cluster_name.n)
		faults_add(f, "default cluster has no server defined");
	else if (!val_str(cluster, server).n)
		faults_add(f, "no server found for cluster \"" STR_FMT "\"", STR_ARG(c->cluster_name));
	check_proxy(f, val_str(cluster, proxy_url), c->cluster_name);
	if (val_str(cluster, certificate_authority).n && val_str(cluster, certificate_authority_data).n)
		faults_add(f, "certificate-authority-data and certificate-authority are both specified for " STR_FMT
			   ". certificate-authority-data will override.", STR_ARG(c->cluster_name));
	check_readable(f, "certificate-authority", val_str(cluster, certificate_authority), c->cluster_name);
}

int kubeconfig_check(struct arena *a, const struct kubeconfig_choice *c, bool *ret_empty, struct err *err)
{
	struct faults f = faults_of(a);
	if (c->context_name.n && !c->has_context)
		faults_add(&f, "context was not found for specified context: " STR_FMT, STR_ARG(c->context_name));
	check_user(&f, c->user, c->user_name);
	*ret_empty = !c->touched && f.list.n == 0;
	if (*ret_empty)
		faults_add(&f, "no configuration has been provided, try setting KUBERNETES_MASTER environment variable");
	else if (!c->touched)
		faults_add(&f, "cluster has no server defined");
	else
		check_cluster(&f, c);
	return faults_fail(&f, "invalid configuration: ", err);
}
