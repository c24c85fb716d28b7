/* c8s cni: the networks of pods by hand, as the runtime uses them: for looking after a node, and for trying a configuration. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fiber.h"
#include "base/loop.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cni/cni.h"
#include "codec/atoms.h"
#include "codec/json.h"

enum { ARGUMENTS_MAX = 4096, BIN_DIRS_MAX = 16, PORTS_MAX = 64, OUTPUT_MAX = 4 << 20, TIMEOUT_MAX_S = 3600, MS_PER_S = 1000 };

struct cni_args {
	const char *positional[ARGUMENTS_MAX];  /* the action and what it is about */
	size_t n;
	struct cni_options options;
	const char *bin_dirs[BIN_DIRS_MAX + 1];
	size_t n_bin_dirs;
	const char *id, *netns, *namespace, *name, *address, *capabilities;
	int64_t timeout_s;
	const char *ports[PORTS_MAX];
	size_t n_ports;
	struct arena arena;
	struct cni *cni;
	const struct action *action;
	struct err err;
};

struct action {
	const char *name, *needs;  /* what must be there, in words */
	bool pod, arguments;       /* is about a pod; takes arguments */
	int (*run)(struct cni_args *a, struct err *err);
};

/* ---- pods ---- */

/* [hostIP:]hostPort:containerPort[/protocol]; the address of IPv6 in brackets. */
static int port_of(struct arena *a, str text, struct val *ret, struct err *err)
{
	str whole = text, rest, protocol, ip = STR_NONE, host, container;
	int64_t host_port, port;

	if (!str_cut(text, '/', &rest, &protocol))
		protocol = STR("tcp");
	ptrdiff_t last = str_rchr(rest, ':');
	host = last < 0 ? STR_NONE : str_head(rest, (size_t)last);
	container = last < 0 ? STR_NONE : str_skip(rest, (size_t)last + 1);
	if ((last = str_rchr(host, ':')) >= 0) {
		ip = str_head(host, (size_t)last);
		host = str_skip(host, (size_t)last + 1);
	}
	if (ip.n > 2 && ip.p[0] == '[' && ip.p[ip.n - 1] == ']')
		ip = str_span(ip.p + 1, ip.n - 2);
	if (!str_to_i64(host, &host_port) || !str_to_i64(container, &port))
		return err_set(err, ERR_BAD_REQUEST, "'" STR_FMT "' is not [IP:]PORT:PORT[/PROTOCOL]", STR_ARG(whole));
	*ret = OBJECT(a, F(hostPort, val_of_int(host_port)), F(containerPort, val_of_int(port)), F(protocol, val_of_str(protocol)),
		      F(hostIP, ip.n ? val_of_str(ip) : VAL_EMPTY));
	return 0;
}

static int pod_of(struct cni_args *a, struct cni_pod *ret, struct err *err)
{
	struct val_builder ports = val_builder(&a->arena);
	int r;

	*ret = (struct cni_pod){ .id = str_of(a->id), .netns = a->netns, .namespace = str_of(a->namespace), .name = str_of(a->name) };
	for (size_t i = 0; i < a->n_ports; i++) {
		struct val port;
		if ((r = port_of(&a->arena, str_of(a->ports[i]), &port, err)) < 0)
			return r;
		val_add_item(&ports, port);
	}
	if (a->n_ports)
		ret->port_mappings = val_end_list(&ports);
	if (!a->capabilities)
		return 0;
	if ((r = json_decode(&a->arena, str_of(a->capabilities), &(struct json_decode_options){ 0 }, &ret->capabilities, err)) < 0)
		return err_wrap(err, r, "--capabilities");
	return val_is(ret->capabilities, VAL_OBJECT) ? 0 : err_set(err, ERR_BAD_REQUEST, "--capabilities is not an object in JSON");
}

static int run_add(struct cni_args *a, struct err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);
	struct cni_pod pod;
	struct val result;
	int r;

	if (!a->netns)
		return err_set(err, ERR_BAD_REQUEST, "add needs --netns");
	if ((r = pod_of(a, &pod, err)) < 0 || (r = cni_add(a->cni, &pod, &a->arena, &result, err)) < 0 ||
	    (r = json_encode(&out, result, &(struct json_encode_options){ .indent = 2, .plain = true }, err)) < 0)
		return r;
	printf("%s\n", out.p);
	return 0;
}

static int run_del(struct cni_args *a, struct err *err)
{
	struct cni_pod pod;
	int r = pod_of(a, &pod, err);
	return r < 0 ? r : cni_del(a->cni, &pod, err);
}

static int run_check(struct cni_args *a, struct err *err)
{
	struct cni_pod pod;
	int r = pod_of(a, &pod, err);
	return r < 0 ? r : cni_check(a->cni, &pod, err);
}

/* ---- the node ---- */

static int run_gc(struct cni_args *a, struct err *err)
{
	str *ids = ARENA_ARRAY(&a->arena, str, a->n);
	for (size_t i = 1; i < a->n; i++)
		ids[i - 1] = str_of(a->positional[i]);
	return cni_gc(a->cni, ids, a->n - 1, err);
}

static int run_status(struct cni_args *a, struct err *err)
{
	str name;
	int r;

	if ((r = cni_network(a->cni, &a->arena, &name, err)) < 0 || (r = cni_status(a->cni, err)) < 0)
		return r;
	printf("network " STR_FMT " is ready\n", STR_ARG(name));
	return 0;
}

static int run_init(struct cni_args *a, struct err *err)
{
	a->positional[a->n] = NULL;
	return cni_write_default(a->cni, a->positional + 1, err);
}

static int run_routes(struct cni_args *a, struct err *err)
{
	struct cni_route *routes = ARENA_ARRAY(&a->arena, struct cni_route, a->n);

	if (!a->address)
		return err_set(err, ERR_BAD_REQUEST, "routes needs --address, this node's own");
	for (size_t i = 1; i < a->n; i++) {
		struct cni_route *route = &routes[i - 1];
		*route = (struct cni_route){ 0 };
		if (!str_cut(str_of(a->positional[i]), '=', &route->pod_cidr, &route->node_address))
			return err_set(err, ERR_BAD_REQUEST, "'%s' is not RANGE=ADDRESS", a->positional[i]);
	}
	return cni_routes_sync(a->cni, a->address, routes, a->n - 1, err);
}

static const struct action actions[] = {
	{ "add", "--id", true, false, run_add },
	{ "del", "--id", true, false, run_del },
	{ "check", "--id", true, false, run_check },
	{ "gc", NULL, false, true, run_gc },
	{ "status", NULL, false, false, run_status },
	{ "init", NULL, false, true, run_init },
	{ "routes", NULL, false, true, run_routes },
};

/* ---- the command ---- */

enum { OPT_CONF_DIR, OPT_BIN_DIR, OPT_CACHE_DIR, OPT_PLUGINS, OPT_ID, OPT_NETNS, OPT_NAMESPACE, OPT_NAME, OPT_PORT, OPT_ADDRESS, OPT_CAPABILITIES, OPT_TIMEOUT };

static const struct option_spec specs[] = {
	[OPT_CONF_DIR] = { 0, "conf-dir", OPTION_VALUE }, [OPT_BIN_DIR] = { 0, "bin-dir", OPTION_VALUE },
	[OPT_CACHE_DIR] = { 0, "cache-dir", OPTION_VALUE }, [OPT_PLUGINS] = { 0, "plugins", OPTION_VALUE },
	[OPT_ID] = { 0, "id", OPTION_VALUE }, [OPT_NETNS] = { 0, "netns", OPTION_VALUE },
	[OPT_NAMESPACE] = { 0, "namespace", OPTION_VALUE },
	[OPT_NAME] = { 0, "name", OPTION_VALUE }, [OPT_PORT] = { 'p', "port", OPTION_VALUE },
	[OPT_ADDRESS] = { 0, "address", OPTION_VALUE }, [OPT_CAPABILITIES] = { 0, "capabilities", OPTION_VALUE },
	[OPT_TIMEOUT] = { 0, "timeout", OPTION_VALUE },
	{ 0, NULL, OPTION_ALONE },
};

/* The program with our plugins, beside this one. */
static const char *own_plugins(struct arena *a)
{
	char *path = ARENA_ARRAY(a, char, PATH_MAX);
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	ptrdiff_t slash = n > 0 ? str_rchr(str_span(path, (size_t)n), '/') : -1;
	return slash < 0 ? NULL : arena_printf(a, "%.*s/c8s-pod", (int)slash, path).p;
}

static int main_fiber(void *arg)
{
	struct cni_args *a = arg;
	DEADLINE_SCOPE(a->timeout_s * MS_PER_S);

	a->cni = cni_new(&a->options);
	int r = a->action->run(a, &a->err);
	cni_free(a->cni);
	return r;
}

static int take_option(struct cni_args *a, int found, const char *value)
{
	switch (found) {
	case OPT_CONF_DIR: a->options.conf_dir = value; break;
	case OPT_CACHE_DIR: a->options.cache_dir = value; break;
	case OPT_PLUGINS: a->options.own_plugins = value; break;
	case OPT_ID: a->id = value; break;
	case OPT_NETNS: a->netns = value; break;
	case OPT_NAMESPACE: a->namespace = value; break;
	case OPT_NAME: a->name = value; break;
	case OPT_ADDRESS: a->address = value; break;
	case OPT_CAPABILITIES: a->capabilities = value; break;
	case OPT_TIMEOUT:
		if (!str_to_i64(str_of(value), &a->timeout_s) || a->timeout_s < 1 || a->timeout_s > TIMEOUT_MAX_S)
			return cmd_usage(&cmd_cni, "--timeout is not a number of seconds between 1 and %d", TIMEOUT_MAX_S);
		break;
	case OPT_BIN_DIR:
		if (a->n_bin_dirs == BIN_DIRS_MAX)
			return cmd_usage(&cmd_cni, "more than %d folders of plugins", BIN_DIRS_MAX);
		a->bin_dirs[a->n_bin_dirs++] = value;
		break;
	case OPT_PORT:
		if (a->n_ports == PORTS_MAX)
			return cmd_usage(&cmd_cni, "more than %d ports", PORTS_MAX);
		a->ports[a->n_ports++] = value;
		break;
	case OPTION_ARGUMENT:
		if (a->n + 1 == ARGUMENTS_MAX)
			return cmd_usage(&cmd_cni, "too many arguments");
		a->positional[a->n++] = value;
		break;
	default: return 2;
	}
	return 0;
}

static int find_action(struct cni_args *a)
{
	if (!a->n)
		return cmd_usage(&cmd_cni, "give add, del, check, gc, status, init or routes");
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (str_eq(str_of(a->positional[0]), str_of(actions[i].name)))
			a->action = &actions[i];
	if (!a->action)
		return cmd_usage(&cmd_cni, "there is no '%s'; give add, del, check, gc, status, init or routes", a->positional[0]);
	if (a->action->pod && !a->id)
		return cmd_usage(&cmd_cni, "%s needs %s", a->action->name, a->action->needs);
	if (!a->action->arguments && a->n > 1)
		return cmd_usage(&cmd_cni, "unexpected argument '%s'", a->positional[1]);
	return 0;
}

static int run_parsed(struct cni_args *a)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	int r = loop_new("cni", &loop, &a->err);

	if (r == 0)
		r = loop_run(loop, main_fiber, a, &a->err);
	return r < 0 ? cmd_fail(&cmd_cni, &a->err) : 0;
}

static int run(int argc, char **argv)
{
	struct cni_args *a = mem_zalloc(sizeof(*a));
	struct options o = { &cmd_cni, argc, argv, 0, NULL };
	int found, code = 0;

	a->options = (struct cni_options){ .conf_dir = "/etc/cni/net.d", .cache_dir = "/var/lib/cni", .bin_dirs = a->bin_dirs,
					   .own_plugins = own_plugins(&a->arena) };
	a->timeout_s = TIMEOUT_MAX_S;
	while (code == 0 && (found = options_next(&o, specs)) != OPTION_END)
		code = take_option(a, found, o.value);
	if (!a->n_bin_dirs)
		a->bin_dirs[a->n_bin_dirs++] = "/opt/cni/bin";
	if (code == 0 && (code = find_action(a)) == 0)
		code = run_parsed(a);
	arena_done(&a->arena);
	mem_freep(&a);
	return code;
}

const struct command cmd_cni = {
	.name = "cni",
	.summary = "networks of pods: attach, detach and check them",
	.manual =
		"Usage: c8s cni add --id ID --netns PATH [-p [IP:]PORT:PORT[/PROTOCOL]]...\n"
		"       c8s cni check --id ID\n"
		"       c8s cni del --id ID [--netns PATH]\n"
		"       c8s cni gc [ID]...\n"
		"       c8s cni status\n"
		"       c8s cni init RANGE...\n"
		"       c8s cni routes --address IP [RANGE=ADDRESS]...\n"
		"\n"
		"Calls the plugins of the first network configuration, as the runtime does for pods.\n"
		"\n"
		"  add      attaches a network namespace: lo, and eth0 by the network; prints the result\n"
		"  check    whether all of it is still there\n"
		"  del      detaches it again, also when only half of it is there, or nothing\n"
		"  gc       detaches all but these\n"
		"  status   whether the network is ready\n"
		"  init     writes a configuration for these ranges of addresses, if there is none\n"
		"  routes   sets the ways to the pods of other nodes: these ranges, at these nodes\n"
		"\n"
		"      --conf-dir D      where configurations are (default /etc/cni/net.d)\n"
		"      --bin-dir D       where plugins are; may be repeated (default /opt/cni/bin)\n"
		"      --cache-dir D     what is kept about attachments (default /var/lib/cni)\n"
		"      --plugins FILE    the program that stands in for plugins that are not there (default: c8s-pod beside c8s)\n"
		"      --id ID           of the container\n"
		"      --netns PATH      its network namespace\n"
		"      --namespace NS    of the pod, for plugins that ask\n"
		"      --name NAME       of the pod, for plugins that ask\n"
		"  -p, --port P          a port of the node that leads to one of the pod: 8080:80/tcp; may be repeated\n"
		"      --capabilities J  what else plugins are told that say they can handle it: an object in JSON with mac, ips,\n"
		"                        ipRanges, bandwidth, dns, aliases, ...\n"
		"      --timeout S       seconds after which it is given up (default: two minutes for each plugin)\n"
		"      --address IP      this node's own address\n"
		"\n"
		"Exit code: 0 success, 1 failure, 2 wrong usage.\n"
		"\n"
		"Examples:\n"
		"  c8s cni init 10.244.0.0/24 fd00:244::/64\n"
		"  ip netns add blue && c8s cni add --id blue --netns /run/netns/blue -p 8080:80\n"
		"  c8s cni routes --address 192.168.1.10 10.244.1.0/24=192.168.1.11\n",
	.run = run,
};
