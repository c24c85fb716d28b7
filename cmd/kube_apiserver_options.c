/* From flags to what the server runs with: checks with Kubernetes' texts, units, defaults that depend on others. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/flags_gates.h"
#include "cmd/kube_apiserver.h"
#include "cmd/machine_address.h"
#include "machinery/gates.h"
#include "machinery/ip.h"

static const char default_service_range[] = "10.0.0.0/24";
static const char *const default_issuers[] = { "https://kubernetes.default.svc.cluster.local", NULL };
/* Kubernetes' own default lets everybody do everything; its installers all say this. */
static const char *const default_modes[] = { "Node", "RBAC", NULL };

enum { MAX_BODY = 3 << 20, SERVICE_IPS_MIN = 8 };

/* ---- numbers ---- */

static int check_numbers(const struct kube_apiserver_flags *f, struct err *err)
{
	const struct {
		const char *name;
		int64_t value;
	} positive[] = {
		{ "max-requests-inflight", f->max_requests_inflight },
		{ "max-mutating-requests-inflight", f->max_mutating_requests_inflight },
		{ "request-timeout", f->request_timeout_ns },
		{ "min-request-timeout", f->min_request_timeout_s },
		{ "shutdown-delay-duration", f->shutdown_delay_ns },
		{ "event-ttl", f->event_ttl_ns },
		{ "etcd-compaction-interval", f->compaction_interval_ns },
	};

	for (size_t i = 0; i < ARRAY_LEN(positive); i++)
		if (positive[i].value < 0 || positive[i].value > INT64_MAX / 4)
			return err_set(err, ERR_BAD_REQUEST, "--%s can not be negative value", positive[i].name);
	if (f->max_requests_inflight > UINT_MAX || f->max_mutating_requests_inflight > UINT_MAX)
		return err_set(err, ERR_BAD_REQUEST, "--max-requests-inflight and --max-mutating-requests-inflight are at most %u", UINT_MAX);
	if (f->secure_port < 0 || f->secure_port > 65535)
		return err_set(err, ERR_BAD_REQUEST, "--secure-port %" PRId64 " must be between 1 and 65535, inclusive. It cannot be turned "
			       "off with 0", f->secure_port);
	return 0;
}

/* "30000-32767", "30000+2767" or one port; "0-0" is none, as in Kubernetes. */
static int parse_port_range(const char *text, struct apiserver_options *o, struct err *err)
{
	str first, last;
	int64_t from, to;
	bool sum = !str_cut(str_trim(str_of(text)), '-', &first, &last) && str_cut(str_trim(str_of(text)), '+', &first, &last);

	if (!str_to_i64(str_trim(first), &from))
		return err_set(err, ERR_BAD_REQUEST, "unable to parse port range: %s: --service-node-port-range is as 30000-32767", text);
	to = from;
	if (last.n && !str_to_i64(str_trim(last), &to))
		return err_set(err, ERR_BAD_REQUEST, "unable to parse port range: %s: --service-node-port-range is as 30000-32767", text);
	if (sum)
		to = from + MIN(to, (int64_t)65536);
	if (from < 0 || from > 65535 || to < 0 || to > 65535)
		return err_set(err, ERR_BAD_REQUEST, "the port range cannot be greater than 65535: %s", text);
	if (to < from)
		return err_set(err, ERR_BAD_REQUEST, "end port cannot be less than start port: %s", text);
	o->service_node_port_first = (int)from;
	o->service_node_port_last = (int)to;
	return 0;
}

/* ---- addresses ---- */

static bool is_unspecified(const char *address)
{
	return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
}

/* The address told to the cluster is of the family that services have. */
static const char *choose_advertised(struct kube_apiserver *k, bool v4)
{
	const char *given = k->flags.advertise_address, *bind = k->flags.bind_address;
	char out[IP_TEXT_MAX];
	struct ip ip;

	if (given && !is_unspecified(given))
		return given;
	if (ip_parse(str_of(bind), &ip, NULL) && ip_is_v4(&ip) == v4 && ip_is_reachable(&ip))
		return bind;
	if (!machine_address(v4 ? AF_INET : AF_INET6, out))
		snprintf(out, sizeof(out), "%s", v4 ? "127.0.0.1" : "::1");
	return arena_str(k->arena, str_of(out)).p;
}

/* ---- the service range ---- */

static int parse_range(struct cidr *ret, str text, int at, struct err *err)
{
	if (cidr_parse(text, ret, NULL))
		return 0;
	return err_set(err, ERR_BAD_REQUEST, at ? "service-cluster-ip-range[%d] is not an ip net" : "service-cluster-ip-range[%d] is not a valid cidr", at);
}

static int complete_service_range(struct kube_apiserver *k, struct err *err)
{
	const char *text = k->flags.service_cluster_ip_range;
	str first, second, rest;
	struct cidr primary, secondary;
	char out[IP_TEXT_MAX];
	int r;

	k->options.service_cluster_ip_range = text && text[0] ? text : default_service_range;
	str_cut(str_of(k->options.service_cluster_ip_range), ',', &first, &second);
	bool two = str_cut(second, ',', &second, &rest) || second.n;
	if ((r = parse_range(&primary, first, 0, err)) < 0 || (two && (r = parse_range(&secondary, second, 1, err)) < 0))
		return r;
	if (rest.n)
		return err_set(err, ERR_BAD_REQUEST, "--service-cluster-ip-range must not contain more than two entries");
	bool v4 = ip_is_v4(&primary.ip);
	if (two && v4 == ip_is_v4(&secondary.ip))
		return err_set(err, ERR_BAD_REQUEST, "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family");
	if ((v4 ? 32 : 128) - primary.bits < 3)
		return err_set(err, ERR_BAD_REQUEST, "error determining service IP ranges for primary service cidr: the service cluster IP range "
			       "must be at least %d IP addresses", SERVICE_IPS_MIN);
	struct ip ip = cidr_network(&primary);
	ip.b[15]++; /* the network's last three bits are 0 */
	k->service_ip = arena_str(k->arena, ip_format(&ip, out)).p;

	struct ip advertised;
	k->options.advertise_address = choose_advertised(k, v4);
	if (ip_parse(str_of(k->options.advertise_address), &advertised, NULL) && ip_is_v4(&advertised) != v4)
		return err_set(err, ERR_BAD_REQUEST, "service IP family \"" STR_FMT "\" must match public address family \"%s\"", STR_ARG(first),
			       k->options.advertise_address);
	return 0;
}

/* ---- files that belong together ---- */

static int check_pair(const char *a, const char *a_name, const char *b, const char *b_name, struct err *err)
{
	if (!a == !b)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "--%s and --%s belong together: one of them is missing", a_name, b_name);
}

static int check_pairs(const struct kube_apiserver_flags *f, struct err *err)
{
	int r;

	if ((r = check_pair(f->tls_cert_file, "tls-cert-file", f->tls_private_key_file, "tls-private-key-file", err)) < 0 ||
	    (r = check_pair(f->kubelet_client_certificate, "kubelet-client-certificate", f->kubelet_client_key, "kubelet-client-key", err)) < 0 ||
	    (r = check_pair(f->etcd_certfile, "etcd-certfile", f->etcd_keyfile, "etcd-keyfile", err)) < 0)
		return r;
	if (f->authn.requestheader_client_ca_file && !f->authn.requestheader_username_headers[0])
		return err_set(err, ERR_BAD_REQUEST, "--requestheader-client-ca-file needs --requestheader-username-headers");
	if (!f->authn.requestheader_client_ca_file && f->authn.requestheader_username_headers[0] && f->client_ca_file)
		return err_set(err, ERR_BAD_REQUEST, "--requestheader-username-headers needs --requestheader-client-ca-file");
	for (size_t i = 0; f->etcd_servers[i]; i++)
		if (!str_starts(str_of(f->etcd_servers[i]), STR("http://")) && !str_starts(str_of(f->etcd_servers[i]), STR("https://")))
			return err_set(err, ERR_BAD_REQUEST, "--etcd-servers: '%s' is not a URL as https://host:2379", f->etcd_servers[i]);
	return 0;
}

/* ---- what is served ---- */

/* Gates with an effect here. Those of a group are needed for its resource, whatever --runtime-config says. */
static const struct {
	str gate, group, resource;
} gates[] = {
	{ STR_INIT("ClusterTrustBundle"), STR_INIT("certificates.k8s.io"), STR_INIT("clustertrustbundles") },
	{ STR_INIT("ClusterTrustBundleProjection"), STR_INIT(""), STR_INIT("") },
};

static bool is_served(const struct resource *r, void *arg)
{
	const struct kube_apiserver *k = arg;

	if (!runtime_config_served(r, k->runtime_config))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(gates); i++)
		if (gates[i].group.n && str_eq(r->group, gates[i].group) && str_eq(r->name, gates[i].resource))
			return gate_is_on(k->options.gates, gates[i].gate);
	return true;
}

static bool has_effect(str gate)
{
	for (size_t i = 0; i < ARRAY_LEN(gates); i++)
		if (str_eq(gates[i].gate, gate))
			return true;
	return false;
}

static int complete_gates(struct kube_apiserver *k, struct err *err)
{
	CLEANUP(buf_done) struct buf idle = BUF_INIT(4096);
	int r = flags_gates(k->arena, k->flags.feature_gates, &k->options.gates, err);

	if (r < 0)
		return r;
	VAL_EACH_MEMBER(m, k->options.gates)
		if (!has_effect(atom_str(m->key)) && m->val.b != gate_is_on(VAL_EMPTY, atom_str(m->key)))
			buf_addf(&idle, "%s" STR_FMT, idle.n ? ", " : "", STR_ARG(atom_str(m->key)));
	if (idle.n)
		log_warn("feature gates are accepted, but have no effect yet", KV("gates", buf_str(&idle)));
	return 0;
}

static int complete_runtime_config(struct kube_apiserver *k, struct err *err)
{
	static const str served[] = { STR_INIT("flowcontrol.apiserver.k8s.io/v1"), STR_INIT("api/ga"), STR_INIT("api/all") };
	int r = runtime_config_parse(k->flags.runtime_config, &k->runtime_config, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(served); i++) {
		int given = runtime_config_get(k->runtime_config, served[i]);
		if (given == 0)
			return err_set(err, ERR_BAD_REQUEST, "--runtime-config=" STR_FMT "=false conflicts with --enable-priority-and-fairness=true",
				       STR_ARG(served[i]));
		if (given > 0)
			break;
	}
	k->options.served = is_served;
	k->options.served_arg = k;
	return 0;
}

static const char *join(struct arena *a, const char *const *list)
{
	str s = STR_NONE;

	for (size_t i = 0; list[i]; i++)
		s = i ? arena_printf(a, STR_FMT ",%s", STR_ARG(s), list[i]) : arena_str(a, str_of(list[i]));
	return s.p;
}

static void copy(struct kube_apiserver *k)
{
	const struct kube_apiserver_flags *f = &k->flags;
	struct apiserver_options *o = &k->options;

	*o = (struct apiserver_options){
		.bind_address = f->bind_address,
		.secure_port = (uint16_t)f->secure_port,
		.cert_file = f->tls_cert_file,
		.key_file = f->tls_private_key_file,
		.client_ca_file = f->client_ca_file,
		.tls_min_version = f->tls_min_version,
		.tls_cipher_suites = join(k->arena, f->tls_cipher_suites),
		.sni_cert_keys = f->tls_sni_cert_keys,
		.encryption_config = f->encryption_provider_config,
		.kubelet_client_cert = f->kubelet_client_certificate,
		.kubelet_client_key = f->kubelet_client_key,
		.kubelet_ca = f->kubelet_certificate_authority,
		.kubelet_preferred_address_types = join(k->arena, f->kubelet_preferred_address_types),
		.authn = f->authn,
		.authz = f->authz,
		.admission = f->admission,
		.audit = f->audit,
		.priority_and_fairness = f->priority_and_fairness,
		.event_ttl_s = f->event_ttl_ns / NS_PER_S,
		.compaction_interval_ms = f->compaction_interval_ns / NS_PER_MS,
		.max_requests_inflight = (unsigned)f->max_requests_inflight,
		.max_mutating_requests_inflight = (unsigned)f->max_mutating_requests_inflight,
		.request_timeout_ms = f->request_timeout_ns / NS_PER_MS,
		.min_request_timeout_s = f->min_request_timeout_s,
		.shutdown_delay_ms = f->shutdown_delay_ns / NS_PER_MS,
		.max_body_bytes = MAX_BODY,
		.profiling = f->profiling,
		.allow_privileged = f->allow_privileged,
	};
	if (!o->authn.service_account_issuers[0])
		o->authn.service_account_issuers = default_issuers;
	if (!o->authn.api_audiences[0])
		o->authn.api_audiences = o->authn.service_account_issuers;
	if (!o->authz.modes[0] && !o->authz.config_file)
		o->authz.modes = default_modes;
	if (f->etcd_servers[0])
		o->store = (struct store_options){
			.endpoints = f->etcd_servers, .ca_file = f->etcd_cafile, .cert_file = f->etcd_certfile, .key_file = f->etcd_keyfile,
		};
}

int kube_apiserver_complete(struct kube_apiserver *k, struct err *err)
{
	int r;

	if ((r = check_numbers(&k->flags, err)) < 0 || (r = check_pairs(&k->flags, err)) < 0)
		return r;
	copy(k);
	if ((r = parse_port_range(k->flags.service_node_port_range, &k->options, err)) < 0 || (r = complete_service_range(k, err)) < 0 ||
	    (r = complete_gates(k, err)) < 0)
		return r;
	return complete_runtime_config(k, err);
}
