#include "cmd/node_routes.h"

#include "base/fiber_test.h"
#include "client/folder_testing.h"
#include "codec/json.h"
#include "net/http.h"
#include "net/test_certs.h"

enum { NODES_MAX = 8 };

/* A list of nodes, with ' for ". */
static size_t nodes_of(struct arena *a, const char *text, struct val *ret)
{
	struct val list;
	char *json = (char *)arena_str(a, str_of(text)).p;
	size_t n = 0;

	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	if (json_decode(a, str_of(json), &(struct json_decode_options){ 0 }, &list, NULL) < 0)
		return 0;
	VAL_EACH(node, list)
		ret[n++] = *node;
	return n;
}

#define NODE(name, cidrs, addresses) NODE_OF("2026-01-01T00:00:00Z", name, cidrs, addresses)
#define NODE_OF(time, name, cidrs, addresses)                              \
	"{'metadata':{'name':'" name "','creationTimestamp':'" time "'},"  \
	"'spec':{'podCIDRs':[" cidrs "]},'status':{'addresses':[" addresses "]}}"
#define ADDRESS(type, text) "{'type':'" type "','address':'" text "'}"
#define INTERNAL(text) ADDRESS("InternalIP", text)

TEST(node_routes_plan)
{
	static const struct { const char *nodes, *own, *routes; } t[] = {
		{ "[" NODE("me", "'10.1.0.0/24'", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "own 10.1.0.0/24=192.0.2.1 " },
		{ "[" NODE("a", "'10.1.1.0/24'", INTERNAL("192.0.2.2")) "," NODE("me", "'10.1.0.0/24'", INTERNAL("192.0.2.1")) "]", "192.0.2.1",
		  "10.1.1.0/24=192.0.2.2 own 10.1.0.0/24=192.0.2.1 " },
		/* The oldest first, so that one that comes later takes nothing from it. */
		{ "[" NODE_OF("2026-01-01T00:00:02Z", "a", "'10.1.1.0/24'", INTERNAL("192.0.2.9")) "," NODE_OF("2026-01-01T00:00:01Z", "b", "'10.1.1.0/24'", INTERNAL("192.0.2.2")) ","
		  NODE("me", "", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "10.1.1.0/24=192.0.2.2 10.1.1.0/24=192.0.2.9 " },
		/* Both families go by the address that the node prefers; a host name is none. */
		{ "[" NODE("a", "'10.1.1.0/24','fd00:1::/64'", ADDRESS("Hostname", "a") "," INTERNAL("192.0.2.2") "," INTERNAL("2001:db8::2")) ","
		  NODE("me", "", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "10.1.1.0/24=192.0.2.2 fd00:1::/64=192.0.2.2 " },
		/* One that has no range, or has not told its address: not yet. */
		{ "[" NODE("a", "", INTERNAL("192.0.2.2")) "," NODE("b", "'10.1.2.0/24'", "") "," NODE("me", "", INTERNAL("192.0.2.1")) "]", "192.0.2.1", "" },
		/* Without ourselves there is nothing to say. */
		{ "[" NODE("a", "'10.1.1.0/24'", INTERNAL("192.0.2.2")) "]", NULL, "10.1.1.0/24=192.0.2.2 " },
		{ "[" NODE("me", "'10.1.0.0/24'", "") "]", NULL, "" },
		{ "[]", NULL, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf text = BUF_INIT(1024);
		struct val nodes[NODES_MAX];
		struct cni_route *routes;
		const char *own;
		size_t n;

		node_routes_plan(&a, nodes, nodes_of(&a, t[i].nodes, nodes), STR("me"), &own, &routes, &n);
		for (size_t k = 0; k < n; k++)
			buf_addf(&text, "%s" STR_FMT "=" STR_FMT " ", routes[k].own ? "own " : "", STR_ARG(routes[k].pod_cidr), STR_ARG(routes[k].node_address));
		CHECK_STR_ROW(i, buf_str(&text), t[i].routes);
		CHECK_STR_ROW(i, str_of(own ? own : ""), t[i].own ? t[i].own : "");
	}
}

/* ---- a server that lets one client in ---- */

struct door {
	struct folder folder;
	struct test_cert ca, cert;
	struct tls_context *tls;
	struct http_server *server;
	struct fiber *fiber;
	uint16_t port;
	const char *opens_for;       /* the name of the client whom it answers */
	int watches;                 /* that it has let in */
};

static bool is_let_in(const struct door *d, X509 *certificate)
{
	char name[64] = "";

	if (certificate)
		(void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
	return strcmp(name, d->opens_for) == 0;
}

/* There are no nodes. Watches end soon: what a client does then is what this is about. */
static int answer(struct http_exchange *x, void *arg)
{
	struct door *d = arg;
	const struct http_header json = { STR_INIT("content-type"), STR_INIT("application/json") };
	bool watch = str_find(x->query, STR("watch=true")) >= 0;

	if (!is_let_in(d, x->peer->certificate)) {
		http_answer(x, 401, NULL, 0, STR_NONE);
		return 0;
	}
	d->watches += watch;
	if (watch)
		(void)fiber_sleep_ms(50, NULL);
	http_answer(x, 200, &json, 1,
		    watch ? STR("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"2\","
				"\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n") :
			    STR("{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"));
	return 0;
}

static int run_server(void *arg) { return http_server_run(arg, 0, NULL); }

static void door_init(struct door *d)
{
	*d = (struct door){ .ca = test_cert_new("ca", NULL, NULL) };
	folder_init(&d->folder);
	d->cert = test_cert_new("server", "IP:127.0.0.1", &d->ca);
	CHECK_INT(tls_server_new(&(struct tls_options){ .cert_pem = d->cert.cert, .key_pem = d->cert.key, .ca_pem = d->ca.cert,
							.client_auth = TLS_CLIENT_AUTH_REQUEST }, &d->tls, NULL), 0);
	CHECK_INT(http_server_new(&(struct http_server_options){ .tls = d->tls, .handle = answer, .arg = d }, &d->server, NULL), 0);
	CHECK_INT(http_server_listen(d->server, "127.0.0.1", 0, &d->port, NULL), 0);
	d->fiber = start(run_server, d->server);
}

static void door_done(struct door *d)
{
	(void)fiber_stop(d->fiber);
	http_server_free(d->server);
	tls_context_free(d->tls);
	test_cert_done(&d->cert);
	test_cert_done(&d->ca);
	folder_done(&d->folder);
}

/* Lets in this one alone from now on; whether it comes. */
static bool lets_in(struct door *d, const char *name)
{
	d->opens_for = name;
	d->watches = 0;
	for (int ms = 0; ms < 10000 && !d->watches; ms += 10)
		CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	return d->watches > 0;
}

static const char *put_pair(struct door *d, const char *name)
{
	struct test_cert pair = test_cert_new(name, "DNS:c", &d->ca);
	const char *path = put_file(&d->folder, "current.pem", arena_printf(&d->folder.arena, "%s%s", pair.cert, pair.key).p, 0600);

	test_cert_done(&pair);
	return path;
}

/* A kubeconfig with the certificate that the node had first, and which nobody believes any more. */
static const char *put_kubeconfig(struct door *d)
{
	struct test_cert first = test_cert_new("first", "DNS:c", &d->ca);
	struct arena *a = &d->folder.arena;
	const char *text = arena_printf(a, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{ name: c, context: { cluster: c, user: c } }]\n"
					"clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:%u', certificate-authority: %s } }]\n"
					"users: [{ name: c, user: { client-certificate: %s, client-key: %s } }]\n", d->port, put_file(&d->folder, "ca", d->ca.cert, 0600),
					put_file(&d->folder, "crt", first.cert, 0600), put_file(&d->folder, "key", first.key, 0600)).p;

	test_cert_done(&first);
	return put_file(&d->folder, "kubeconfig", text, 0600);
}

static int run_routes(void *arg) { return node_routes_run(arg, NULL); }

FIBER_TEST(node_routes_go_on_with_a_renewed_certificate)
{
	struct door d;

	door_init(&d);
	struct node_routes_options o = { .kubeconfig = put_kubeconfig(&d), .certificate = put_pair(&d, "renewed"), .node_name = STR("me"),
					 .cni_conf_dir = d.folder.path, .cni_cache_dir = d.folder.path };
	d.opens_for = "nobody";
	struct fiber *f = start(run_routes, &o);
	CHECK(lets_in(&d, "renewed"));
	(void)put_pair(&d, "renewed again");
	CHECK(lets_in(&d, "renewed again"));
	(void)fiber_stop(f);
	door_done(&d);
}
