/* kubectl create service and ingress. */
#include "codec/types.h"
#include "kubectl/commands.h"
#include "kubectl/create.h"

static struct val int_or_text(str text)
{
	int64_t n;
	return str_to_i64(text, &n) ? val_of_int(n) : VAL_STR(text);
}

/* ---- services ---- */

struct service {
	struct ktl_create common;
	struct ktl_texts tcp;
	const char *cluster_ip, *external_name;
	int64_t node_port;
};

#define TCP { "tcp", 0, KTL_LIST, offsetof(struct service, tcp), NULL, "Ports, as port or port:targetPort", NULL }

static const struct ktl_flag clusterip_flags[] = {
	{ "clusterip", 0, KTL_STRING, offsetof(struct service, cluster_ip), NULL, "Address of the service, or None", NULL }, TCP, { 0 },
};
static const struct ktl_flag nodeport_flags[] = {
	{ "node-port", 0, KTL_INT, offsetof(struct service, node_port), NULL, "Port at every node", NULL }, TCP, { 0 },
};
static const struct ktl_flag loadbalancer_flags[] = { TCP, { 0 } };
static const struct ktl_flag externalname_flags[] = {
	{ "external-name", 0, KTL_STRING, offsetof(struct service, external_name), NULL, "The name that the service stands for", NULL }, TCP, { 0 },
};

static int make_ports(struct ktl *k, const struct service *s, struct val *ret)
{
	struct val_builder list = val_builder(&k->arena);
	for (size_t i = 0; i < s->tcp.n; i++) {
		str text = str_of(s->tcp.v[i]), port, target;
		int64_t number;
		if (!str_cut(text, ':', &port, &target))
			target = port;
		if (!str_to_i64(port, &number) || number < 1 || number > 65535)
			return ktl_fail(k, "strconv.Atoi: parsing " STR_FMT ": invalid syntax", STR_ARG(ktl_quote(k, port)));
		char *name = (char *)(uintptr_t)ktl_cstr(k, text);
		for (char *c = name; *c; c++)
			*c = *c == ':' ? '-' : *c;
		val_add_item(&list, OBJECT(&k->arena, F(name, VAL_STR(str_of(name))), F(protocol, VAL_LIT("TCP")), F(port, val_of_int(number)),
					   F(targetPort, int_or_text(target)),
					   F(nodePort, s->node_port ? val_of_int(s->node_port) : VAL_EMPTY)));
	}
	*ret = val_end_list(&list);
	return 0;
}

static int create_service(struct ktl *k, const struct service *s, const char *type)
{
	struct arena *a = &k->arena;
	bool none = s->cluster_ip && ktl_is(s->cluster_ip, "None"), external = ktl_is(type, "ExternalName");
	struct val ports;
	str name;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (!s->tcp.n && !none && !external)
		return ktl_fail(k, "at least one tcp port specifier must be provided");
	if (make_ports(k, s, &ports) < 0)
		return -1;
	struct val labels = OBJECT(a, F(app, VAL_STR(name)));
	struct val spec = OBJECT(a, F(ports, val_len(ports) ? ports : VAL_EMPTY), F(selector, labels), F(type, VAL_STR(str_of(type))),
				 F(clusterIP, s->cluster_ip && s->cluster_ip[0] ? VAL_STR(str_of(s->cluster_ip)) : VAL_EMPTY),
				 F(externalName, external ? VAL_STR(str_of(s->external_name)) : VAL_EMPTY));
	const char *failed = arena_printf(a, "failed to create %s service: ", type).p;
	return ktl_create_made(k, &s->common, TYPE(core_v1, Service), OBJECT(a, F(metadata, ktl_meta(k, name, labels)), F(spec, spec)), failed);
}

static int create_clusterip(struct ktl *k, void *options) { return create_service(k, options, "ClusterIP"); }
static int create_nodeport(struct ktl *k, void *options) { return create_service(k, options, "NodePort"); }
static int create_loadbalancer(struct ktl *k, void *options) { return create_service(k, options, "LoadBalancer"); }
static int create_externalname(struct ktl *k, void *options) { return create_service(k, options, "ExternalName"); }

static const struct ktl_command service_clusterip = {
	.name = "clusterip", .summary = "Create a ClusterIP service", .usage = "create service clusterip NAME [--tcp=<port>:<targetPort>] [options]",
	.flags = KTL_CREATE_SETS(clusterip_flags), .size = sizeof(struct service), .run = create_clusterip,
};
static const struct ktl_command service_nodeport = {
	.name = "nodeport", .summary = "Create a NodePort service", .usage = "create service nodeport NAME [--tcp=port:targetPort] [options]",
	.flags = KTL_CREATE_SETS(nodeport_flags), .size = sizeof(struct service), .run = create_nodeport,
};
static const struct ktl_command service_loadbalancer = {
	.name = "loadbalancer", .summary = "Create a LoadBalancer service",
	.usage = "create service loadbalancer NAME [--tcp=port:targetPort] [options]", .flags = KTL_CREATE_SETS(loadbalancer_flags),
	.size = sizeof(struct service), .run = create_loadbalancer,
};
static const struct ktl_command service_externalname = {
	.name = "externalname", .summary = "Create an ExternalName service",
	.usage = "create service externalname NAME --external-name external.name [options]", .flags = KTL_CREATE_SETS(externalname_flags),
	.size = sizeof(struct service), .required = "external-name", .run = create_externalname,
};

const struct ktl_command ktl_create_service = {
	.name = "service", .aliases = "svc", .summary = "Create a service using a specified subcommand", .usage = "create service [flags] [options]",
	.below = (const struct ktl_command *const[]){ &service_clusterip, &service_externalname, &service_loadbalancer, &service_nodeport, NULL },
	.run = ktl_run_group,
};

/* ---- ingresses ---- */

struct ingress {
	struct ktl_create common;
	struct ktl_texts rules, annotations;
	const char *class, *backend;
};

static const struct ktl_flag ingress_flags[] = {
	{ "annotation", 0, KTL_ARRAY, offsetof(struct ingress, annotations), NULL, "An annotation, as key=value", NULL },
	{ "class", 0, KTL_STRING, offsetof(struct ingress, class), NULL, "Ingress class", NULL },
	{ "default-backend", 0, KTL_STRING, offsetof(struct ingress, backend), NULL, "Where all else goes, as service:port", NULL },
	{ "rule", 0, KTL_ARRAY, offsetof(struct ingress, rules), NULL, "host/path=service:port[,tls[=secret]]; a path that ends with * is a prefix", NULL },
	{ 0 },
};

static bool make_backend(struct ktl *k, str text, struct val *ret)
{
	struct arena *a = &k->arena;
	str service, port;
	int64_t number;
	if (!str_cut(text, ':', &service, &port) || !service.n || !port.n || str_chr(port, ':') >= 0)
		return false;
	struct val p = str_to_i64(port, &number) ? OBJECT(a, F(number, val_of_int(number))) : OBJECT(a, F(name, VAL_STR(port)));
	*ret = OBJECT(a, F(service, OBJECT(a, F(name, VAL_STR(service)), F(port, p))));
	return true;
}

/* The list with something added to the item whose host this is, which is made when there is none. */
static struct val add_to_host(struct ktl *k, struct val list, str host, struct val path)
{
	struct arena *a = &k->arena;
	for (size_t i = 0; i < val_len(list); i++) {
		struct val rule = val_at(list, i);
		if (!str_eq(val_str(rule, host), host))
			continue;
		struct val paths = val_list_append(a, val_get(rule, http, paths), path);
		return val_list_set(a, list, i, val_with(a, rule, paths, http, paths));
	}
	struct val http = OBJECT(a, F(paths, LIST(a, path)));
	return val_list_append(a, list, OBJECT(a, F(host, host.n ? VAL_STR(host) : VAL_EMPTY), F(http, http)));
}

static bool add_rule(struct ktl *k, str text, struct val *rules, struct val *tls)
{
	struct arena *a = &k->arena;
	str where, target, host, path, service, option, word, secret;
	struct val backend;
	if (!str_cut(text, '=', &where, &target) || str_chr(where, '/') < 0)
		return false;
	(void)str_cut(target, ',', &service, &option);
	(void)str_cut(where, '/', &host, &path);
	if (!make_backend(k, service, &backend))
		return false;
	bool prefix = str_ends(path, STR("*"));
	path = arena_join(a, STR("/"), prefix ? str_head(path, path.n - 1) : path);
	*rules = add_to_host(k, *rules, host, OBJECT(a, F(path, VAL_STR(path)), F(pathType, prefix ? VAL_LIT("Prefix") : VAL_LIT("Exact")),
						     F(backend, backend)));
	if (!option.n)
		return true;
	(void)str_cut(option, '=', &word, &secret);
	if (!str_eq(word, STR("tls")))
		return false;
	*tls = val_list_append(a, *tls, OBJECT(a, F(hosts, host.n ? LIST(a, VAL_STR(host)) : VAL_EMPTY), F(secretName, secret.n ? VAL_STR(secret) : VAL_EMPTY)));
	return true;
}

static int create_ingress(struct ktl *k, void *options)
{
	const struct ingress *i = options;
	struct arena *a = &k->arena;
	struct val rules = VAL_EMPTY, tls = VAL_EMPTY, backend = VAL_EMPTY, notes = VAL_EMPTY;
	str name, key, value;
	if (ktl_create_name(k, &name) < 0)
		return -1;
	if (!i->rules.n && !i->backend[0])
		return ktl_fail(k, "not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)");
	for (size_t n = 0; n < i->rules.n; n++)
		if (!add_rule(k, str_of(i->rules.v[n]), &rules, &tls))
			return ktl_fail(k, "rule %s is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]", i->rules.v[n]);
	for (size_t n = 0; n < i->annotations.n; n++) {
		if (!str_cut(str_of(i->annotations.v[n]), '=', &key, &value))
			return ktl_fail(k, "annotation %s is invalid and should be in format key=[value]", i->annotations.v[n]);
		notes = val_put(a, notes, atom_make(a, key), VAL_STR(value));
	}
	if (i->backend[0] && !make_backend(k, str_of(i->backend), &backend))
		return ktl_fail(k, "default-backend should be in format servicename:serviceport");
	struct val spec = OBJECT(a, F(ingressClassName, i->class[0] ? VAL_STR(str_of(i->class)) : VAL_EMPTY), F(defaultBackend, backend), F(tls, tls),
				 F(rules, rules));
	struct val meta = OBJECT(a, F(name, VAL_STR(name)), F(annotations, notes));
	return ktl_create_made(k, &i->common, TYPE(networking_v1, Ingress), OBJECT(a, F(metadata, meta), F(spec, spec)), "failed to create ingress: ");
}

const struct ktl_command ktl_create_ingress = {
	.name = "ingress", .aliases = "ing", .summary = "Create an ingress with the specified name",
	.usage = "create ingress NAME --rule=host/path=service:port[,tls[=secret]] [options]", .flags = KTL_CREATE_SETS(ingress_flags),
	.examples = "  kubectl create ingress front --rule='www.example.com/*=web:80,tls=cert'\n", .size = sizeof(struct ingress), .run = create_ingress,
};
