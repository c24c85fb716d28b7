#include "client/kubeconfig.h"

#include <sys/stat.h>

#include "base/fiber_test.h"
#include "client/folder_testing.h"
#include "client/kubeconfig_priv.h"
#include "codec/atoms.h"
#include "codec/json.h"

static void home_init(struct folder *f)
{
	folder_init(f);
	CHECK_INT(unsetenv("KUBECONFIG"), 0);
	CHECK_INT(setenv("HOME", f->path, 1), 0);
}

static const char *in(struct folder *f, const char *name) { return in_folder(f, name); }
static const char *put(struct folder *f, const char *name, const char *text) { return put_file(f, name, text, 0600); }

static str json(struct folder *f, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ .plain = true }, NULL), 0);
	return shown(f, buf_str(&b));
}

/* ---- loading ---- */

static str load(struct folder *f, const char *path)
{
	struct err err = ERR_INIT;
	struct val document;
	if (kubeconfig_load(&f->arena, path, &document, &err) < 0)
		return shown(f, arena_printf(&f->arena, "%d: %s", err_http_status(err.code), err.msg));
	return json(f, document);
}

TEST(kubeconfig_merges_files)
{
	struct folder f;
	home_init(&f);
	put(&f, "one",
	    "current-context: ''\nclusters:\n- name: b\n  cluster: {server: https://one}\n- name: a\n  cluster: "
	    "{certificate-authority: ca.pem}\n"
	    "users:\n- name: u\n  user: {token: first}\n");
	put(&f, "two",
	    "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: b\n  cluster: {server: https://two, "
	    "proxy-url: http://p}\n"
	    "- name: c\n  cluster: {server: https://c}\nusers:\n- name: u\n  user: {client-certificate: ../crt}\n"
	    "- name: e\n  user:\n    client-key: k/../key\n    tokenFile: /abs/token\n    exec: {command: bin/get, "
	    "apiVersion: client.authentication.k8s.io/v1beta1}\n"
	    "contexts:\n- name: x\n  context: {cluster: b, user: u}\n");
	/* The first to name something wins with all that it says; what is empty can still be set. */
	CHECK_INT(setenv("KUBECONFIG", arena_printf(&f.arena, "%s/one::%s/none:%s/two:%s/one", f.path, f.path,
			  f.path, f.path).p, 1), 0);
	CHECK_STR(load(&f, NULL),
		  "{\"kind\":\"Config\",\"apiVersion\":\"v1\",\"clusters\":[{\"name\":\"a\","
		  "\"cluster\":{\"certificate-authority\":\"DIR/ca.pem\"}},"
		  "{\"name\":\"b\",\"cluster\":{\"server\":\"https://one\"}},{\"name\":\"c\",\"cluster\":{\"server\":\"https://c\"}}],"
		  "\"users\":[{\"name\":\"e\",\"user\":{\"client-key\":\"DIR/key\",\"tokenFile\":\"/abs/token\","
		  "\"exec\":{\"command\":\"DIR/bin/get\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
		  "\"interactiveMode\":\"IfAvailable\"}}},"
		  "{\"name\":\"u\",\"user\":{\"token\":\"first\"}}],"
		  "\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"b\",\"user\":\"u\"}}],\"current-context\":\"x\"}");
	CHECK_STR(shown(&f, str_of(kubeconfig_main_path(&f.arena, NULL))), "DIR/one");
	/* A path that is given stands alone, and must be there. */
	CHECK(str_find(load(&f, in(&f, "two")), STR("https://two")) > 0);
	CHECK_STR(load(&f, in(&f, "none")), "404: stat DIR/none: no such file or directory");
	CHECK_INT(setenv("KUBECONFIG", arena_printf(&f.arena, "%s/no1:%s/no2", f.path, f.path).p, 1), 0);
	CHECK_STR(load(&f, NULL),
			  "{\"kind\":\"Config\",\"apiVersion\":\"v1\",\"clusters\":[],\"users\":[],\"contexts\":[],"
			  "\"current-context\":\"\"}");
	CHECK_STR(shown(&f, str_of(kubeconfig_main_path(&f.arena, NULL))), "DIR/no1");
	CHECK_INT(unsetenv("KUBECONFIG"), 0);
	CHECK_STR(shown(&f, str_of(kubeconfig_main_path(&f.arena, NULL))), "DIR/.kube/config");
	CHECK_STR(shown(&f, str_of(kubeconfig_main_path(&f.arena, "/x"))), "/x");
	folder_done(&f);
}

TEST(kubeconfig_tells_what_cannot_be_read)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "a: b: c", "422: error loading config file \"DIR/f\": yaml: mapping values are not allowed in this context" },
		{ "clusters: 1", "422: error loading config file \"DIR/f\": json: cannot unmarshal number into Go "
		  "struct field Config.clusters of type []v1.NamedCluster" },
		{ "kind: Pod\napiVersion: v1",
		  "422: error loading config file \"DIR/f\": no kind \"Pod\" is registered for version \"v1\"" },
		{ "users: [{name: a}, {name: a}]", "422: error loading config file \"DIR/f\": error converting *[]NamedAuthInfo into "
						   "*map[string]*api.AuthInfo: duplicate name \"a\" in list" },
	};
	struct folder f;
	home_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		put(&f, "f", t[i].text);
		CHECK_STR_ROW(i, load(&f, in(&f, "f")), t[i].want);
	}
	CHECK(str_find(load(&f, f.path), STR("read DIR: is a directory")) > 0);
	put(&f, "empty", "");
	CHECK(str_find(load(&f, in(&f, "empty")), STR("\"clusters\":[]")) > 0);
	/* Both faults are told. */
	put(&f, "g", "b: c: d");
	CHECK_INT(setenv("KUBECONFIG", arena_printf(&f.arena, "%s/f:%s/g", f.path, f.path).p, 1), 0);
	str both = load(&f, NULL);
	CHECK(str_find(both, STR(": [error loading config file \"DIR/f\": ")) > 0 && str_find(both, STR("\"DIR/g\"")) > 0);
	CHECK_INT(unsetenv("KUBECONFIG"), 0);
	folder_done(&f);
}

/* ---- resolving ---- */

static const char document[] =
	"current-context: main\n"
	"contexts:\n"
	"- name: main\n  context: {cluster: c, user: token, namespace: ns}\n"
	"- name: files\n  context: {cluster: files, user: cert}\n"
	"- name: lost\n  context: {cluster: nowhere, user: nobody}\n"
	"- name: plain\n  context: {cluster: plain, user: token}\n"
	"- name: bare\n  context: {cluster: bare, user: token}\n"
	"- name: odd\n  context: {cluster: odd, user: odd}\n"
	"- name: exec\n  context: {cluster: c, user: exec}\n"
	"- name: old\n  context: {cluster: c, user: old}\n"
	"- name: as\n  context: {cluster: c, user: as}\n"
	"clusters:\n"
	"- name: c\n  cluster:\n    server: https://h:6443/p?x=1\n    certificate-authority-data: Q0E=\n    "
			  "tls-server-name: t\n    proxy-url: socks5://p\n"
	"    extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: x}}]\n"
	"- name: files\n  cluster: {server: 'https://f', certificate-authority: ca, insecure-skip-tls-verify: false}\n"
	"- name: plain\n  cluster: {server: 'http://plain', certificate-authority-data: Q0E=}\n"
	"- name: bare\n  cluster: {}\n"
	"- name: odd\n  cluster: {server: 'https://o', certificate-authority: none, certificate-authority-data: Q0E=, "
			  "proxy-url: 'ftp://p'}\n"
	"users:\n"
	"- name: token\n  user: {token: secret}\n"
	"- name: cert\n  user: {client-certificate: crt, client-key-data: S0VZ}\n"
	"- name: odd\n  user: {token: a, username: b, client-certificate: none, client-certificate-data: QQ==, as-groups: [g]}\n"
	"- name: exec\n  user: {exec: {command: get-token, apiVersion: client.authentication.k8s.io/v1, "
			  "interactiveMode: Never, installHint: \"a\\e[1m\\nb\"}}\n"
	"- name: old\n  user: {exec: {command: '', env: [{name: '', value: x}], interactiveMode: Perhaps}, "
			  "auth-provider: {name: gcp, config: {}}}\n"
	"- name: tokenfile\n  user: {tokenFile: none}\n"
	"- name: tokenfile2\n  user: {tokenFile: crt, token: both}\n"
	"- name: provider\n  user: {auth-provider: {name: gcp, config: {}}}\n"
	"- name: as\n  user: {as: root, as-uid: '0', as-groups: [g, h], as-user-extra: {k: [v]}}\n";

static str describe(struct folder *f, const struct client_config *c)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	const struct { const char *name; str value; } texts[] = {
		{ "server", c->server }, { "name", c->tls_server_name }, { "ca", c->ca }, { "ca-file", c->ca_file },
		  { "proxy", c->proxy_url },
		{ "cert", c->client_cert }, { "cert-file", c->client_cert_file }, { "key", c->client_key },
		  { "key-file", c->client_key_file },
		{ "token", c->token }, { "token-file", c->token_file }, { "user", c->username }, { "password", c->password },
		{ "as", c->impersonate }, { "uid", c->impersonate_uid }, { "ns", c->namespace },
	};
	const struct { const char *name; struct val value; } trees[] = {
		{ "groups", c->impersonate_groups }, { "extra", c->impersonate_extra }, { "exec", c->exec }, { "cluster", c->exec_cluster },
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].value.n)
			buf_addf(&b, "%s=" STR_FMT " ", texts[i].name, STR_ARG(texts[i].value));
	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		if (val_exists(trees[i].value))
			buf_addf(&b, "%s=" STR_FMT " ", trees[i].name, STR_ARG(json(f, trees[i].value)));
	if (c->insecure)
		buf_add(&b, STR("insecure "));
	return shown(f, str_trim(buf_str(&b)));
}

static str resolve(struct folder *f, const char *path, const struct kubeconfig_overrides *o)
{
	struct err err = ERR_INIT;
	struct client_config c;
	struct val v;
	CHECK_INT(kubeconfig_load(&f->arena, path, &v, NULL), 0);
	int r = kubeconfig_resolve(&f->arena, v, o, &c, &err);
	if (r < 0)
		return shown(f, arena_printf(&f->arena, "%d %s", err_http_status(err.code), err.msg));
	return describe(f, &c);
}

TEST(kubeconfig_resolves_contexts)
{
#define SERVER "server=https://h:6443/p name=t ca=CA "
	static const struct {
		struct kubeconfig_overrides o;
		const char *want;
	} t[] = {
		{ { .context = STR_INIT("main") }, SERVER "proxy=socks5://p token=secret ns=ns" },
		{ { .context = STR_INIT("files") }, "server=https://f ca-file=DIR/ca cert-file=DIR/crt key=KEY ns=default" },
		{ { .context = STR_INIT("plain") }, "server=http://plain ns=default" },
		{ { .context = STR_INIT("as") },
		  SERVER "proxy=socks5://p as=root uid=0 ns=default groups=[\"g\",\"h\"] extra={\"k\":[\"v\"]}" },
		{ { .context = STR_INIT("exec") },
		  SERVER "proxy=socks5://p ns=default exec={\"command\":\"get-token\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
		  "\"installHint\":\"aU+001B[1m\\nb\",\"interactiveMode\":\"Never\"} "
		  "cluster={\"server\":\"https://h:6443/p\",\"tls-server-name\":\"t\","
		  "\"certificate-authority-data\":\"Q0E=\",\"proxy-url\":\"socks5://p\",\"config\":{\"audience\":\"x\"}}" },
		/* flags */
		{ { .namespace = STR_INIT("other"), .token = STR_INIT("mine") }, SERVER "proxy=socks5://p token=mine ns=other" },
		{ { .server = STR_INIT("https://else") }, "server=https://else ca=CA proxy=socks5://p token=secret ns=ns" },
		{ { .server = STR_INIT("https://else"), .tls_server_name = STR_INIT("n") },
		  "server=https://else name=n ca=CA proxy=socks5://p token=secret ns=ns" },
		{ { .insecure = true }, "server=https://h:6443/p name=t proxy=socks5://p token=secret ns=ns insecure" },
		{ { .context = STR_INIT("files"), .client_key_file = STR_INIT("/dev/null") },
		  "server=https://f ca-file=DIR/ca cert-file=DIR/crt key-file=/dev/null ns=default" },
		{ { .ca_file = STR_INIT("/dev/null") },
		  "server=https://h:6443/p name=t ca-file=/dev/null proxy=socks5://p token=secret ns=ns" },
		{ { .user = STR_INIT("as"), .impersonate = STR_INIT("me") },
		  SERVER "proxy=socks5://p as=me uid=0 ns=ns groups=[\"g\",\"h\"] extra={\"k\":[\"v\"]}" },
		{ { .cluster = STR_INIT("files") }, "server=https://f ca-file=DIR/ca token=secret ns=ns" },
		{ { .user = STR_INIT("tokenfile2") }, SERVER "proxy=socks5://p token=both token-file=DIR/crt ns=ns" },
		/* what is wrong */
		{ { .user = STR_INIT("tokenfile") }, "422 open DIR/none: no such file or directory" },
		{ { .user = STR_INIT("provider") }, "422 no Auth Provider found for name \"gcp\"" },
		{ { .context = STR_INIT("none") }, "422 context \"none\" does not exist" },
		{ { .user = STR_INIT("none") }, "422 auth info \"none\" does not exist" },
		{ { .cluster = STR_INIT("none") }, "422 cluster \"none\" does not exist" },
		{ { .context = STR_INIT("bare") }, "422 invalid configuration: no server found for cluster \"bare\"" },
		{ { .username = STR_INIT("u") },
		  "422 invalid configuration: more than one authentication method found for token; found [token "
		  "basicAuth], only one is allowed" },
		{ { .impersonate_uid = STR_INIT("1") },
		  "422 invalid configuration: requesting uid, groups or user-extra for token without impersonating a user" },
		{ { .context = STR_INIT("lost") },
		  "404 invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable" },
		{ { .context = STR_INIT("lost"), .server = STR_INIT("https://s"), .ca_file = STR_INIT("/no/ca") },
		  "422 invalid configuration: unable to read certificate-authority /no/ca for nowhere due to open "
		  "/no/ca: no such file or directory" },
		{ { .context = STR_INIT("old") },
		  "422 invalid configuration: [authProvider cannot be provided in combination with an exec plugin for "
		  "old, command must be specified "
		  "for old to use exec authentication plugin, apiVersion must be specified for old to use exec "
		  "authentication plugin, env variable "
		  "name must be specified for old to use exec authentication plugin, invalid interactiveMode for old: \"Perhaps\"]" },
	};
	struct folder f;
	home_init(&f);
	const char *path = put(&f, "config", document);
	put(&f, "ca", "");
	put(&f, "crt", "");
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, resolve(&f, path, &t[i].o), t[i].want);
	/* Longer than an error can hold: the beginning. */
	CHECK(str_starts(resolve(&f, path, &(struct kubeconfig_overrides){ .context = STR("odd") }),
			 STR("422 invalid configuration: [client-cert-data and client-cert are both specified for "
			 "odd. client-cert-data will override., "
			     "client-key-data or client-key must be specified for odd to use the clientCert "
			     "authentication method., unable to read "
			     "client-cert DIR/none for odd due to open DIR/none: no such file or directory, more than one")));
	folder_done(&f);
}

TEST(kubeconfig_of_a_pod)
{
	struct client_config c;
	struct folder f;
	struct err err = ERR_INIT;
	home_init(&f);
	CHECK_INT(unsetenv("KUBERNETES_SERVICE_HOST"), 0);
	CHECK_INT(kubeconfig_in_cluster_at(&f.arena, f.path, &c, &err), -ERR_NOT_FOUND);
	CHECK_STR(err_str(&err),
			  "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
			  "KUBERNETES_SERVICE_PORT must be defined");
	CHECK_INT(setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1), 0);
	CHECK_INT(setenv("KUBERNETES_SERVICE_PORT", "443", 1), 0);
	CHECK_INT(kubeconfig_in_cluster_at(&f.arena, f.path, &c, &err), -ERR_NOT_FOUND);
	CHECK_STR(shown(&f, err_str(&err)), "open DIR/token: no such file or directory");
	put(&f, "token", "t");
	put(&f, "ca.crt", "CA");
	put(&f, "namespace", "ns\n");
	CHECK_INT(kubeconfig_in_cluster_at(&f.arena, f.path, &c, &err), 0);
	CHECK_STR(describe(&f, &c), "server=https://[fd00::1]:443 ca-file=DIR/ca.crt token-file=DIR/token ns=ns");
	CHECK_INT(unsetenv("KUBERNETES_SERVICE_HOST"), 0);
	CHECK_INT(kubeconfig_open(&f.arena, "", &c, &err), -ERR_NOT_FOUND);
	folder_done(&f);
}

/* ---- saving ---- */

FIBER_TEST(kubeconfig_saves)
{
	struct folder f;
	struct err err = ERR_INIT;
	struct val v;
	struct stat st;
	home_init(&f);
	put(&f, "config", "current-context: c\nclusters: [{name: c, cluster: {server: 'https://s', certificate-authority: sub/ca}}]\n"
			  "users: [{name: u, user: {client-key: /etc/key, exec: {command: ./get, apiVersion: "
			  "client.authentication.k8s.io/v1}}}]\n"
			  "contexts: [{name: c, context: {cluster: c, user: u}}]\n");
	CHECK_INT(kubeconfig_load(&f.arena, in(&f, "config"), &v, &err), 0);
	/* A link stays one, and folders are made. */
	CHECK_INT(symlink("config", in(&f, "link")), 0);
	CHECK_INT(kubeconfig_save(in(&f, "link"), v, &err), 0);
	CHECK(lstat(in(&f, "link"), &st) == 0 && S_ISLNK(st.st_mode));
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	CHECK_INT(file_read(in(&f, "config"), &b, NULL), 0);
	CHECK_STR(buf_str(&b),
			  "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority: sub/ca\n    server: "
			  "https://s\n  name: c\ncontexts:\n"
			       "- context:\n    cluster: c\n    user: u\n  name: c\ncurrent-context: c\nkind: "
			       "Config\nusers:\n- name: u\n  user:\n"
			       "    client-key: /etc/key\n    exec:\n      apiVersion: "
			       "client.authentication.k8s.io/v1\n      args: null\n      command: ./get\n"
			       "      env: null\n      provideClusterInfo: false\n");
	CHECK_INT(kubeconfig_save(in(&f, "new/sub/config"), v, &err), 0);
	CHECK(stat(in(&f, "new/sub/config"), &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK(access(in(&f, "new/sub/config.lock"), F_OK) < 0);
	struct val again;
	CHECK_INT(kubeconfig_load(&f.arena, in(&f, "new/sub/config"), &again, &err), 0);
	CHECK_STR(json(&f, again), json(&f, v).p);
	/* Somebody else is at it. */
	put(&f, "config.lock", "");
	CHECK_INT(kubeconfig_save(in(&f, "config"), v, &err), -ERR_CONFLICT);
	CHECK_STR(shown(&f, err_str(&err)), "open DIR/config.lock: file exists");
	CHECK(access(in(&f, "config.lock"), F_OK) == 0);
	folder_done(&f);
}
