/* From flags to what the kubelet runs with: checks with Kubernetes' texts, the configuration, defaults that depend on others. */

#include "base/path.h"
#include "cmd/kubelet.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/ip.h"
#include "machinery/names.h"
#include "machinery/resources.h"

/* ---- fields that are more than their type says ---- */

static int read_ip(str text, struct val before, struct val *ret, struct err *err)
{
	struct ip ip;

	*ret = text.n ? VAL_STR(text) : before;
	if (text.n && !ip_parse(text, &ip, NULL))
		return err_set(err, ERR_BAD_REQUEST, "\"" STR_FMT "\" is not a valid IP address", STR_ARG(text));
	return 1;
}

static int read_taint(struct arena *a, str text, struct val *ret, struct err *err)
{
	static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute" };
	struct name_errors wrong;
	str head, effect, key, value;
	bool known = false;

	if (!str_cut(text, ':', &head, &effect) || str_chr(effect, ':') >= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid taint spec: " STR_FMT, STR_ARG(text));
	for (size_t i = 0; i < ARRAY_LEN(effects); i++)
		known |= str_eq(effect, str_of(effects[i]));
	if (!known)
		return err_set(err, ERR_BAD_REQUEST, "invalid taint effect: " STR_FMT ", unsupported taint effect", STR_ARG(effect));
	if (str_cut(head, '=', &key, &value) && str_chr(value, '=') >= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid taint spec: " STR_FMT, STR_ARG(text));
	if (name_check_label_value(value, &wrong) || name_check_label_key(key, &wrong))
		return err_set(err, ERR_BAD_REQUEST, "invalid taint spec: " STR_FMT ", " STR_FMT, STR_ARG(text),
			       STR_ARG(name_errors_join(a, &wrong, "; ")));
	*ret = OBJECT(a, F(key, VAL_STR(key)), F(value, value.n ? VAL_STR(value) : VAL_EMPTY), F(effect, VAL_STR(effect)));
	return 0;
}

/* "key=value:effect,...": a later flag replaces an earlier one. Those that end in "-" take something away, of which there is nothing. */
static int read_taints(struct arena *a, str text, struct val *ret, struct err *err)
{
	struct val list = VAL_EMPTY_LIST, taint;
	str item;

	while (text.n) {
		(void)str_cut(text, ',', &item, &text);
		bool removes = str_ends(item, STR("-"));
		int r = read_taint(a, removes ? str_head(item, item.n - 1) : item, &taint, err);
		if (r < 0)
			return r;
		VAL_EACH(t, list)
			if (str_eq(val_str(*t, key), val_str(taint, key)) && str_eq(val_str(*t, effect), val_str(taint, effect)))
				return err_set(err, ERR_BAD_REQUEST, "duplicated taints with the same key and effect: {" STR_FMT " " STR_FMT " "
					       STR_FMT " <nil>}", STR_ARG(val_str(taint, key)), STR_ARG(val_str(taint, value)),
					       STR_ARG(val_str(taint, effect)));
		if (!removes)
			list = val_list_append(a, list, taint);
	}
	*ret = list;
	return 1;
}

/* "memory=1Gi,hugepages-1Gi=2Gi" */
static int read_memory(struct arena *a, str text, struct val *ret, struct err *err)
{
	struct val limits = VAL_EMPTY_OBJECT;
	struct quantity q;
	str item, name, amount;

	for (bool more = true; more;) {
		more = str_cut(text, ',', &item, &text);
		if (!str_cut(item, '=', &name, &amount) || str_chr(amount, '=') >= 0)
			return err_set(err, ERR_BAD_REQUEST, "the reserved limit has incorrect value, expected type=quantity, got " STR_FMT, STR_ARG(item));
		if (!str_eq(name, STR("memory")) && !resource_is_huge_page(name))
			return err_set(err, ERR_BAD_REQUEST, "memory type conversion error, unknown type: \"" STR_FMT "\"", STR_ARG(name));
		if (quantity_parse(amount, &q, NULL) < 0)
			return err_set(err, ERR_BAD_REQUEST, "failed to parse the quantity: " STR_FMT, STR_ARG(amount));
		limits = val_put(a, limits, atom_make(a, name), VAL_STR(amount));
	}
	*ret = limits;
	return 0;
}

/* "0:memory=1Gi;1:memory=2Gi" */
static int read_reservations(struct arena *a, struct val before, str text, struct val *ret, struct err *err)
{
	struct val list = val_exists(before) ? before : VAL_EMPTY_LIST, limits;
	str item, node, amounts;
	int64_t number;
	int r;

	while (text.n) {
		(void)str_cut(text, ';', &item, &text);
		if (!str_cut(item, ':', &node, &amounts) || str_chr(amounts, ':') >= 0)
			return err_set(err, ERR_BAD_REQUEST, "the reserved memory has incorrect format, expected numaNodeID:type=quantity"
				       "[,type=quantity...], got " STR_FMT, STR_ARG(item));
		if (!str_to_i64(node, &number) || number != (int32_t)number)
			return err_set(err, ERR_BAD_REQUEST, "failed to convert the NUMA node ID, expected integer, got " STR_FMT, STR_ARG(node));
		if ((r = read_memory(a, amounts, &limits, err)) < 0)
			return r;
		list = val_list_append(a, list, OBJECT(a, F(numaNode, val_of_int(number)), F(limits, limits)));
	}
	*ret = list;
	return 1;
}

/* "file=2,dir*=5" */
static int read_modules(struct arena *a, struct val before, str text, struct val *ret, struct err *err)
{
	struct val list = val_exists(before) ? before : VAL_EMPTY_LIST;
	str item, pattern, level;
	int64_t n;

	while (text.n) {
		(void)str_cut(text, ',', &item, &text);
		if (!item.n)
			continue;
		if (!str_cut(item, '=', &pattern, &level) || !pattern.n || !level.n || str_chr(level, '=') >= 0)
			return err_set(err, ERR_BAD_REQUEST, "\"" STR_FMT "\" does not have the pattern=N format", STR_ARG(item));
		if (!str_to_i64(level, &n) || n < 0 || n > INT32_MAX)
			return err_set(err, ERR_BAD_REQUEST, "parsing verbosity in \"" STR_FMT "\": strconv.ParseUint: parsing \"" STR_FMT
				       "\": invalid syntax", STR_ARG(item), STR_ARG(level));
		list = val_list_append(a, list, OBJECT(a, F(filePattern, VAL_STR(pattern)), F(verbosity, val_of_int(n))));
	}
	*ret = list;
	return 1;
}

static int read_special(struct arena *a, const char *path, struct val before, str text, struct val *ret, struct err *err)
{
	int64_t ns;

	if (strcmp(path, "address") == 0 || strcmp(path, "healthzBindAddress") == 0)
		return read_ip(text, before, ret, err);
	if (strcmp(path, "registerWithTaints") == 0)
		return read_taints(a, text, ret, err);
	if (strcmp(path, "reservedMemory") == 0)
		return read_reservations(a, before, text, ret, err);
	if (strcmp(path, "logging.vmodule") == 0)
		return read_modules(a, before, text, ret, err);
	if (strcmp(path, "logging.flushFrequency") == 0) {
		int r = duration_parse(text, &ns, err);
		*ret = VAL_STR(text);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* ---- labels of the node ---- */

#define ALLOWED_PREFIXES "kubelet.kubernetes.io, node.kubernetes.io"
#define ALLOWED_LABELS \
	"beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, failure-domain.beta.kubernetes.io/region, " \
	"failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, kubernetes.io/hostname, kubernetes.io/os, " \
	"node.kubernetes.io/instance-type, topology.kubernetes.io/region, topology.kubernetes.io/zone"

static bool is_in(str space, str domain)
{
	return str_eq(space, domain) || (str_ends(space, domain) && space.p[space.n - domain.n - 1] == '.');
}

/* A label of Kubernetes that nodes do not give to themselves. */
static bool is_foreign(str key)
{
	str space, name, item, rest = STR(ALLOWED_LABELS);

	if (!str_cut(key, '/', &space, &name) || (!is_in(space, STR("kubernetes.io")) && !is_in(space, STR("k8s.io"))))
		return false;
	if (is_in(space, STR("kubelet.kubernetes.io")) || is_in(space, STR("node.kubernetes.io")))
		return false;
	for (bool more = true; more;) {
		more = str_cut(rest, ',', &item, &rest);
		if (str_eq(str_trim(item), key))
			return false;
	}
	return true;
}

static int check_labels(struct val labels, struct arena *a)
{
	CLEANUP(buf_done) struct buf foreign = BUF_INIT(65536), invalid = BUF_INIT(65536);

	VAL_EACH_MEMBER(m, labels) {
		struct name_errors wrong;
		str key = atom_str(m->key), value = val_as_str(m->val);
		if (is_foreign(key))
			buf_addf(&foreign, "%s" STR_FMT, foreign.n ? " " : "", STR_ARG(key));
		if (name_check_label_key(key, &wrong))
			buf_addf(&invalid, "%s'" STR_FMT "' - " STR_FMT, invalid.n ? "; " : "", STR_ARG(key), STR_ARG(name_errors_join(a, &wrong, ", ")));
		if (name_check_label_value(value, &wrong))
			buf_addf(&invalid, "%s'" STR_FMT "' - " STR_FMT, invalid.n ? "; " : "", STR_ARG(value), STR_ARG(name_errors_join(a, &wrong, ", ")));
	}
	if (foreign.n)
		return cmd_usage(&cmd_kubelet, "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with "
				 "--node-labels: [" STR_FMT "]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix ("
				 ALLOWED_PREFIXES ") or be in the specifically allowed set (" ALLOWED_LABELS ")", STR_ARG(buf_str(&foreign)));
	if (invalid.n)
		return cmd_usage(&cmd_kubelet, "failed to validate kubelet flags: invalid node labels: " STR_FMT, STR_ARG(buf_str(&invalid)));
	return 0;
}

static struct val read_labels(struct arena *a, const char *const *items)
{
	struct val labels = VAL_EMPTY_OBJECT;
	str key, value;

	for (; *items; items++) {
		(void)str_cut(str_of(*items), '=', &key, &value);
		if ((*items)[0])
			labels = val_put(a, labels, atom_make(a, str_trim(key)), VAL_STR(str_trim(value)));
	}
	return val_sorted(a, labels);
}

/* ---- all of it ---- */

static const char *unless_empty(const char *text) { return text && text[0] ? text : NULL; }

/*
 * Without an API server nobody can be asked about tokens and what callers may do; when no file says otherwise, those with a certificate of
 * --client-ca-file may do everything, and others nothing.
 */
static struct val set_standalone(struct arena *a, struct val config)
{
	if (!val_has(config, authentication, webhook, enabled))
		config = val_with(a, config, val_of_bool(false), authentication, webhook, enabled);
	if (!val_has(config, authorization, mode))
		config = val_with(a, config, VAL_LIT("AlwaysAllow"), authorization, mode);
	return config;
}

static int load_config(const struct kubelet_flags *f, struct arena *a, struct kubelet_options *ret)
{
	struct err err = ERR_INIT;
	struct val config;

	if (flags_config(a, &f->settings, kubelet_fields, TYPE(kubeletconfig_v1beta1, KubeletConfiguration), read_special, &config, &err) < 0)
		return cmd_usage(&cmd_kubelet, "%s", err.msg);
	if (f->seccomp_default)
		config = val_with(a, config, val_of_bool(true), seccompDefault);
	if (!ret->kubeconfig && !unless_empty(f->config) && !unless_empty(f->config_dir))
		config = set_standalone(a, config);
	if (kubelet_config_load(unless_empty(f->config), unless_empty(f->config_dir), config, &ret->config, &err) < 0)
		return cmd_fail(&cmd_kubelet, &err);
	return 0;
}

int kubelet_complete(const struct kubelet_flags *f, struct arena *a, struct kubelet_options *ret)
{
	int r;

	*ret = (struct kubelet_options){
		.kubeconfig = unless_empty(f->kubeconfig), .bootstrap_kubeconfig = unless_empty(f->bootstrap_kubeconfig),
		.api_servers_file = unless_empty(f->api_servers_file),
		.cert_dir = path_absolute(a, f->cert_dir).p, .root = path_absolute(a, f->root_dir).p,
		.hostname_override = unless_empty(f->hostname_override), .node_ip = unless_empty(f->node_ip),
		.node_labels = read_labels(a, f->node_labels),
		.image_credential_provider_config = unless_empty(f->image_credential_provider_config),
		.image_credential_provider_bin_dir = unless_empty(f->image_credential_provider_bin_dir),
		.local_path_root = unless_empty(f->local_path_root) ? path_absolute(a, f->local_path_root).p : NULL,
		.dead_per_container = (int)MIN(f->dead_per_container, (int64_t)INT_MAX),
		.dead_total = (int)MIN(f->dead_total, (int64_t)INT_MAX), .dead_min_age_ns = f->dead_min_age_ns,
	};
	if (f->dead_per_container < INT_MIN || f->dead_total < INT_MIN)
		return cmd_usage(&cmd_kubelet, "--maximum-dead-containers and --maximum-dead-containers-per-container are numbers of 32 bits");
	if (f->exit_on_lock_contention && !unless_empty(f->lock_file))
		return cmd_usage(&cmd_kubelet, "cannot exit on lock file contention: no lock file specified");
	if ((r = check_labels(ret->node_labels, a)) != 0)
		return r;
	return load_config(f, a, ret);
}
