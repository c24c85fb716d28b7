#include "kubelet/pod_rules.h"

#include "codec/atoms.h"

#define RESTARTS_ANNOTATION STR("io.kubernetes.container.restartCount")
#define SOURCE_ANNOTATION STR("kubernetes.io/config.source")

/* ---- containers ---- */

enum cri_state container_cri_state(struct val status)
{
	str state = val_str(status, state);

	if (!val_exists(status))
		return CRI_NONE;
	if (str_eq(state, STR("CONTAINER_RUNNING")))
		return CRI_RUNNING;
	if (str_eq(state, STR("CONTAINER_EXITED")))
		return CRI_EXITED;
	/* The first of an enum is what stands for nothing on the wire. */
	return !state.n || str_eq(state, STR("CONTAINER_CREATED")) ? CRI_CREATED : CRI_UNKNOWN;
}

int64_t container_cri_restarts(struct val status)
{
	int64_t n;

	if (str_to_i64(val_as_str(val_find(val_get(status, annotations), RESTARTS_ANNOTATION)), &n) && n >= 0 && n < INT32_MAX)
		return n;
	return val_int(status, metadata, attempt);
}

int64_t resources_cpu_milli(struct val resources) { return quantity_milli(quantity_of(val_find(resources, STR("cpu")))); }
int64_t resources_memory(struct val resources) { return quantity_value(quantity_of(val_find(resources, STR("memory")))); }

struct val find_named(struct val list, str name)
{
	VAL_EACH(item, list)
		if (str_eq(val_str(*item, name), name))
			return *item;
	return VAL_EMPTY;
}

struct val pod_find_container(struct val pod, str name)
{
	static const atom lists[] = { A_containers, A_initContainers, A_ephemeralContainers };
	struct val found = VAL_EMPTY;

	for (size_t i = 0; i < ARRAY_LEN(lists) && !val_exists(found); i++)
		found = find_named(val_member(val_get(pod, spec), lists[i]), name);
	return found;
}

/* The first rule that knows what to do about this exit code; VAL_NONE: none does. */
static struct val find_rule(struct val container, int64_t exit_code)
{
	VAL_EACH(rule, val_get(container, restartPolicyRules)) {
		str op = val_str(*rule, exitCodes, operator);
		bool among = false;

		VAL_EACH(code, val_get(*rule, exitCodes, values))
			among |= val_as_int(*code) == exit_code;
		if (among ? str_eq(op, STR("In")) : str_eq(op, STR("NotIn")))
			return *rule;
	}
	return VAL_EMPTY;
}

static bool restarts_all(struct val rule) { return str_eq(val_str(rule, action), STR("RestartAllContainers")); }

bool container_restarts_all(struct val container, int64_t exit_code) { return restarts_all(find_rule(container, exit_code)); }

bool container_restarts_after(struct val pod, struct val container, int64_t exit_code)
{
	str policy = val_str(container, restartPolicy);

	if (policy.n) {
		struct val rule = find_rule(container, exit_code);
		if (restarts_all(rule) || str_eq(val_str(rule, action), STR("Restart")))
			return true;
	} else {
		policy = val_str(pod, spec, restartPolicy);
	}
	if (str_eq(policy, STR("OnFailure")))
		return exit_code != 0;
	return !str_eq(policy, STR("Never"));
}

bool container_starts_next(const struct pod_view *v, struct val container)
{
	struct val status = pod_view_container(v, val_str(container, name));

	if (val_has(v->pod, metadata, deletionTimestamp))
		return false;
	switch (container_cri_state(status)) {
	case CRI_RUNNING:
		return false;
	case CRI_EXITED:
		return container_restarts_after(v->pod, container, val_int(status, exitCode));
	default:
		return true;
	}
}

/* ---- restart of all ---- */

/* Calls ask for init containers and containers until one says yes. */
static bool any_container(struct val pod, bool (*ask)(struct val container, const void *arg), const void *arg)
{
	const struct val lists[] = { val_get(pod, spec, initContainers), val_get(pod, spec, containers) };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(c, lists[i])
			if (ask(*c, arg))
				return true;
	return false;
}

static bool has_rule_for_all(struct val container, const void *arg __attribute__((unused)))
{
	VAL_EACH(rule, val_get(container, restartPolicyRules))
		if (restarts_all(*rule))
			return true;
	return false;
}

bool pod_may_restart_all(struct val pod) { return any_container(pod, has_rule_for_all, NULL); }

/* It ended so that all restart, by what the runtime has or by what was told. */
static bool ended_for_all(struct val container, const void *arg)
{
	const struct pod_view *v = arg;
	str name = val_str(container, name);
	struct val now = pod_view_container(v, name), told = pod_view_status(v), was;

	if (container_cri_state(now) != CRI_EXITED)
		return false;
	if (container_restarts_all(container, val_int(now, exitCode)))
		return true;
	was = find_named(val_get(told, initContainerStatuses), name);
	if (!val_exists(was))
		was = find_named(val_get(told, containerStatuses), name);
	return val_has(was, state, terminated) && container_restarts_all(container, val_int(was, state, terminated, exitCode));
}

bool pod_restarts_all(const struct pod_view *v)
{
	VAL_EACH(c, val_get(pod_view_status(v), conditions))
		if (str_eq(val_str(*c, type), STR("AllContainersRestarting")) && str_eq(val_str(*c, status), STR("True")))
			return true;
	return any_container(v->pod, ended_for_all, v);
}

static bool is_there(struct val container, const void *arg)
{
	return val_exists(pod_view_container(arg, val_str(container, name)));
}

bool pod_has_leftovers(const struct pod_view *v) { return any_container(v->pod, is_there, v); }

/* ---- sandbox ---- */

bool sandbox_is_ready(struct val sandbox) { return !str_eq(val_str(sandbox, state), STR("SANDBOX_NOTREADY")); }

bool pod_uses_host_network(struct val pod) { return val_bool(pod, spec, hostNetwork); }

bool pod_is_static(struct val pod)
{
	str source = val_as_str(val_find(val_get(pod, metadata, annotations), SOURCE_ANNOTATION));
	return source.n && !str_eq(source, STR("api"));
}

bool pod_needs_sandbox(const struct pod_view *v, unsigned *ret_attempt, str *ret_id)
{
	struct val newest = val_at(v->sandboxes, 0), network = val_get(newest, network);
	unsigned attempt = (unsigned)val_int(newest, metadata, attempt), ready = 0;
	bool host = pod_uses_host_network(v->pod), other_network;

	*ret_attempt = 0;
	*ret_id = val_str(newest, id);
	if (!val_exists(newest))
		return true;
	VAL_EACH(s, v->sandboxes)
		ready += sandbox_is_ready(*s);
	*ret_attempt = attempt + 1;
	if (ready > 1 || !sandbox_is_ready(newest))
		return true;
	other_network = str_eq(val_str(newest, linux, namespaces, options, network), STR("NODE")) != host;
	if (other_network) {
		*ret_id = STR_NONE;
		return true;
	}
	if (!host && val_exists(network) && !val_str(network, ip).n)
		return true;
	*ret_attempt = attempt;
	return false;
}

/* since_ns: it must not be older. Whether one of unknown state was ever made is not known. */
static bool has_made(const struct pod_view *v, int64_t since_ns)
{
	VAL_EACH(c, val_get(v->pod, spec, containers)) {
		struct val status = pod_view_container(v, val_str(*c, name));
		enum cri_state state = container_cri_state(status);
		bool made = state != CRI_NONE && (state != CRI_UNKNOWN || since_ns > INT64_MIN);
		if (made && val_int(status, createdAt) >= since_ns)
			return true;
	}
	return false;
}

bool pod_has_made_container(const struct pod_view *v) { return has_made(v, INT64_MIN); }

bool pod_has_made_container_now(const struct pod_view *v)
{
	struct val newest = val_at(v->sandboxes, 0);
	return val_exists(newest) && sandbox_is_ready(newest) && has_made(v, val_int(newest, createdAt));
}
