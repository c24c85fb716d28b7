#include "runtime/image_hosts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "codec/time.h"
#include "codec/val.h"
#include "net/url.h"
#include "runtime/image_toml.h"

/* Without the port; of an IPv6 address, without the brackets. */
static str host_of(str authority)
{
	if (authority.n && authority.p[0] == '[') {
		ptrdiff_t end = str_chr(authority, ']');
		return end < 0 ? authority : str_span(authority.p + 1, (size_t)end - 1);
	}
	str host, port;
	str_cut(authority, ':', &host, &port);
	return host;
}

static str port_of(str authority)
{
	ptrdiff_t colon = str_rchr(authority, ':');
	return colon < 0 || authority.p[authority.n - 1] == ']' ? STR_NONE : str_skip(authority, (size_t)colon + 1);
}

bool registry_is_local(str authority)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct in6_addr v6;
	struct in_addr v4;
	str host = host_of(authority);
	if (str_eq(host, STR("localhost")))
		return true;
	if (host.n >= sizeof(text))
		return false;
	memcpy(text, host.p, host.n);
	if (inet_pton(AF_INET, text, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* What a host without a URL of its own is: the registry by its name. */
static void set_default(struct registry_host *h, str domain, bool plain_http)
{
	str port = port_of(domain);
	h->authority = str_eq(domain, STR("docker.io")) ? STR("registry-1.docker.io") : domain;
	h->path = STR("/v2");
	h->scheme = plain_http ? STR("http") : STR("https");
	h->pull = h->resolve = h->push = true;
	if (plain_http || !registry_is_local(domain))
		return;
	if (str_eq(port, STR("80"))) {
		h->scheme = STR("http");
		return;
	}
	/* As containerd: on this machine a certificate proves nothing, and many speak no TLS. */
	h->skip_verify = true;
	h->try_http = port.n && !str_eq(port, STR("443"));
}

/* ---- hosts.toml ---- */

static const char *absolute(struct arena *a, const char *folder, str path)
{
	return path.n && path.p[0] == '/' ? arena_str(a, path).p : arena_printf(a, "%s/" STR_FMT, folder, STR_ARG(path)).p;
}

static int set_url(struct arena *a, str text, bool override_path, struct registry_host *h, struct err *err)
{
	struct url u;
	if (!str_starts(text, STR("http")))
		text = arena_join(a, STR("https://"), text);
	int r = url_parse(a, text, &u, err);
	if (r < 0)
		return err_wrap(err, r, "unable to parse server " STR_FMT, STR_ARG(text));
	if (!u.host.n || (!str_eq(u.scheme, STR("http")) && !str_eq(u.scheme, STR("https"))))
		return err_set(err, ERR_INVALID, "unable to parse server " STR_FMT ": http:// or https:// and a host are needed", STR_ARG(text));
	str path = u.path;
	while (path.n && path.p[path.n - 1] == '/')
		path.n--;
	if (!override_path && !str_ends(path, STR("/v2")))
		path = arena_join(a, path, STR("/v2"));
	h->scheme = u.scheme;
	h->authority = u.authority;
	h->path = path;
	return 0;
}

static int set_capabilities(struct val list, struct registry_host *h, struct err *err)
{
	h->pull = h->resolve = h->push = !val_len(list);
	VAL_EACH(v, list) {
		str c = val_as_str(*v);
		if (str_eq(c, STR("pull")))
			h->pull = true;
		else if (str_eq(c, STR("resolve")))
			h->resolve = true;
		else if (str_eq(c, STR("push")))
			h->push = true;
		else if (!str_eq(c, STR("referrers")))
			return err_set(err, ERR_INVALID, "unknown capability " STR_FMT, STR_ARG(c));
	}
	return 0;
}

static int set_ca(struct arena *a, const char *folder, struct val v, struct registry_host *h, struct err *err)
{
	if (val_is(v, VAL_STRING))
		h->ca_files[h->n_ca++] = absolute(a, folder, val_as_str(v));
	else if (val_exists(v) && !val_is(v, VAL_LIST))
		return err_set(err, ERR_INVALID, "invalid type for \"ca\"");
	VAL_EACH(item, v) {
		if (!val_is(*item, VAL_STRING) || h->n_ca == REGISTRY_CA_MAX)
			return err_set(err, ERR_INVALID, "\"ca\" is not a list of at most %d files", REGISTRY_CA_MAX);
		h->ca_files[h->n_ca++] = absolute(a, folder, val_as_str(*item));
	}
	return 0;
}

static int set_client(struct arena *a, const char *folder, struct val v, struct registry_host *h, struct err *err)
{
	if (val_is(v, VAL_LIST)) {
		if (val_len(v) > 1)
			return err_set(err, ERR_INVALID, "more than one \"client\" certificate is not supported");
		v = val_at(v, 0);
	}
	if (!val_exists(v))
		return 0;
	str cert = val_is(v, VAL_STRING) ? val_as_str(v) : val_as_str(val_at(v, 0));
	str key = val_is(v, VAL_STRING) ? cert : val_as_str(val_at(v, 1));
	if (!cert.n || !key.n || val_len(v) > 2)
		return err_set(err, ERR_INVALID, "invalid pair for \"client\"");
	h->cert_file = absolute(a, folder, cert);
	h->key_file = absolute(a, folder, key);
	return 0;
}

static int set_headers(struct arena *a, struct val v, struct registry_host *h, struct err *err)
{
	h->headers = ARENA_ARRAY(a, struct http_header, val_len(v));
	VAL_EACH_MEMBER(m, v) {
		str value = val_as_str(val_is(m->val, VAL_LIST) ? val_at(m->val, 0) : m->val);
		if (!value.n)
			return err_set(err, ERR_INVALID, "invalid type for header \"" STR_FMT "\"", STR_ARG(atom_str(m->key)));
		h->headers[h->n_headers++] = (struct http_header){ arena_str(a, atom_str(m->key)), value };
	}
	return 0;
}

static int read_host(struct arena *a, const char *folder, str url, struct val v, struct registry_host *h, struct err *err)
{
	str timeout = val_as_str(val_find(v, STR("dial_timeout")));
	int64_t ns = 0;
	int r = url.n ? set_url(a, url, val_as_bool(val_find(v, STR("override_path"))), h, err) : 0;
	if (r < 0 || (r = set_capabilities(val_find(v, STR("capabilities")), h, err)) < 0 ||
	    (r = set_ca(a, folder, val_find(v, STR("ca")), h, err)) < 0 ||
	    (r = set_client(a, folder, val_find(v, STR("client")), h, err)) < 0 ||
	    (r = set_headers(a, val_find(v, STR("header")), h, err)) < 0 ||
	    (r = timeout.n ? duration_parse(timeout, &ns, err) : 0) < 0)
		return r;
	struct val skip = val_find(v, STR("skip_verify"));
	if (val_exists(skip))
		h->skip_verify = val_as_bool(skip);
	h->dial_timeout_ms = ns / NS_PER_MS;
	return 0;
}

int registry_hosts_parse(struct arena *a, const char *folder, bool plain_http, str domain, str text, struct registry_host *hosts,
			 size_t *ret_n, struct err *err)
{
	struct val top;
	int r = toml_decode(a, arena_str(a, text), &top, err);
	if (r < 0)
		return r;
	struct val list = val_find(top, STR("host"));
	str server = val_as_str(val_find(top, STR("server")));
	*ret_n = 0;
	if (val_len(list) >= REGISTRY_HOSTS_MAX)
		return err_set(err, ERR_INVALID, "more than %d hosts", REGISTRY_HOSTS_MAX);
	VAL_EACH_MEMBER(m, list) {
		struct registry_host *h = &hosts[(*ret_n)++];
		*h = (struct registry_host){ .mirror = true };
		if ((r = read_host(a, folder, arena_str(a, atom_str(m->key)), m->val, h, err)) < 0)
			return r;
		h->mirror = !str_eq(h->authority, domain);
	}
	struct registry_host *last = &hosts[(*ret_n)++];
	*last = (struct registry_host){ 0 };
	if (!server.n)
		set_default(last, domain, plain_http);
	return read_host(a, folder, server, top, last, err);
}

/* ---- certificates beside, as Docker has them ---- */

static int read_certificates(struct arena *a, const char *folder, struct registry_host *h, struct err *err)
{
	struct dirent *e;
	DIR *d = opendir(folder);
	int r = 0;
	while (d && r == 0 && (e = readdir(d))) {
		str name = str_of(e->d_name);
		if (str_ends(name, STR(".crt")) && h->n_ca < REGISTRY_CA_MAX) {
			h->ca_files[h->n_ca++] = absolute(a, folder, name);
		} else if (str_ends(name, STR(".cert")) && !h->cert_file) {
			h->cert_file = absolute(a, folder, name);
			str base = str_head(str_of(h->cert_file), strlen(h->cert_file) - 5);
			h->key_file = arena_join(a, base, STR(".key")).p;
		} else if (str_ends(name, STR(".cert"))) {
			r = err_set(err, ERR_INVALID, "%s: more than one client certificate is not supported", folder);
		}
	}
	if (d)
		closedir(d);
	return r;
}

/* ---- finding ---- */

static const char *find_folder(struct arena *a, const char *folder, str domain)
{
	ptrdiff_t colon = str_rchr(domain, ':');
	const char *candidates[3];
	size_t n = 0;
	struct stat st;
	if (colon > 0)
		candidates[n++] = arena_printf(a, "%s/" STR_FMT "_" STR_FMT "_", folder, STR_ARG(str_head(domain, (size_t)colon)),
					       STR_ARG(str_skip(domain, (size_t)colon + 1))).p;
	candidates[n++] = arena_printf(a, "%s/" STR_FMT, folder, STR_ARG(domain)).p;
	candidates[n++] = arena_printf(a, "%s/_default", folder).p;
	for (size_t i = 0; i < n; i++)
		if (stat(candidates[i], &st) == 0)
			return candidates[i];
	return NULL;
}

int registry_hosts_find(struct arena *a, const char *folder, bool plain_http, str domain, struct registry_host **ret, size_t *ret_n,
			struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(TOML_MAX + 1);
	struct registry_host *hosts = ARENA_ARRAY(a, struct registry_host, REGISTRY_HOSTS_MAX + 1);
	const char *found = folder ? find_folder(a, folder, domain) : NULL;
	int r;

	*ret = hosts;
	if (found) {
		const char *file = arena_printf(a, "%s/hosts.toml", found).p;
		r = file_read(file, &b, err);
		if (r == 0 && b.n) {
			r = registry_hosts_parse(a, found, plain_http, domain, buf_str(&b), hosts, ret_n, err);
			return r < 0 ? err_wrap(err, r, "%s", file) : 0;
		}
		if (r < 0 && r != -ERR_NOT_FOUND)
			return r;
	}
	hosts[0] = (struct registry_host){ 0 };
	set_default(&hosts[0], domain, plain_http);
	*ret_n = 1;
	return found ? read_certificates(a, found, &hosts[0], err) : 0;
}
