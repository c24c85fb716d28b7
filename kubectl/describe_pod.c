/* Pods, and what pods and templates of pods have in common: containers. */

#include "codec/types.h"
#include "kubectl/describe.h"
#include "machinery/resources.h"
#include "machinery/selector.h"

/* ---- containers ---- */

static str ports_of(struct ktl *k, struct val ports, atom which)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	VAL_EACH(port, ports) {
		str name = val_str(*port, name), protocol = val_str(*port, protocol);
		buf_addf(&b, "%s%lld/" STR_FMT, b.n ? ", " : "", (long long)val_as_int(val_member(*port, which)), STR_ARG(protocol.n ? protocol : STR("TCP")));
		if (name.n)
			buf_addf(&b, " (" STR_FMT ")", STR_ARG(name));
	}
	return arena_str(&k->arena, buf_str(&b));
}

static void say_ports(struct ktl_page *p, const char *title, str text)
{
	if (str_chr(text, ',') >= 0)
		ktl_say(p, 2, "%ss:\t" STR_FMT "\n", title, STR_ARG(text));
	else
		ktl_say(p, 2, "%s:\t" STR_FMT "\n", title, STR_ARG(ktl_or_none(text)));
}

static void say_profile(struct ktl_page *p, unsigned level, unsigned below, struct val profile)
{
	if (!val_exists(profile))
		return;
	ktl_say(p, level, "SeccompProfile:\t" STR_FMT "\n", STR_ARG(val_str(profile, type)));
	if (str_eq(val_str(profile, type), STR("Localhost")))
		ktl_say(p, below, "LocalhostProfile:\t" STR_FMT "\n", STR_ARG(val_str(profile, localhostProfile)));
}

static void say_lines(struct ktl_page *p, const char *title, struct val list)
{
	if (val_len(list))
		ktl_say(p, 2, "%s:\n", title);
	VAL_EACH(item, list) {
		str line, rest = val_as_str(*item);
		bool more;
		do {
			more = str_cut(rest, '\n', &line, &rest);
			ktl_say(p, 3, STR_FMT "\n", STR_ARG(line));
		} while (more);
	}
}

static void say_state(struct ktl_page *p, const char *title, struct val state)
{
	struct val running = val_get(state, running), ended = val_get(state, terminated), waiting = val_get(state, waiting);
	if (val_exists(running)) {
		ktl_say(p, 2, "%s:\tRunning\n", title);
		ktl_say(p, 3, "Started:\t" STR_FMT "\n", STR_ARG(ktl_date(p->k, val_str(running, startedAt))));
		return;
	}
	if (!val_exists(ended)) {
		ktl_say(p, 2, "%s:\tWaiting\n", title);
		if (val_str(waiting, reason).n)
			ktl_say(p, 3, "Reason:\t" STR_FMT "\n", STR_ARG(val_str(waiting, reason)));
		return;
	}
	ktl_say(p, 2, "%s:\tTerminated\n", title);
	if (val_str(ended, reason).n)
		ktl_say(p, 3, "Reason:\t" STR_FMT "\n", STR_ARG(val_str(ended, reason)));
	if (val_str(ended, message).n)
		ktl_say(p, 3, "Message:\t" STR_FMT "\n", STR_ARG(val_str(ended, message)));
	ktl_say(p, 3, "Exit Code:\t%lld\n", (long long)val_int(ended, exitCode));
	if (val_int(ended, signal) > 0)
		ktl_say(p, 3, "Signal:\t%lld\n", (long long)val_int(ended, signal));
	ktl_say(p, 3, "Started:\t" STR_FMT "\n", STR_ARG(ktl_date(p->k, val_str(ended, startedAt))));
	ktl_say(p, 3, "Finished:\t" STR_FMT "\n", STR_ARG(ktl_date(p->k, val_str(ended, finishedAt))));
}

static void say_amounts(struct ktl_page *p, unsigned level, const char *title, struct val map)
{
	if (val_len(map))
		ktl_say(p, level, "%s:\n", title);
	VAL_EACH_MEMBER(m, map)
		ktl_say(p, level + 1, STR_FMT ":\t" STR_FMT "\n", STR_ARG(atom_str(m->key)), STR_ARG(ktl_plain(p->k, m->val)));
}

static void say_resources(struct ktl_page *p, unsigned level, struct val resources)
{
	say_amounts(p, level, "Limits", val_get(resources, limits));
	say_amounts(p, level, "Requests", val_get(resources, requests));
}

static str probe_of(struct ktl *k, struct val probe)
{
	struct arena *a = &k->arena;
	struct val http = val_get(probe, httpGet), tcp = val_get(probe, tcpSocket), grpc = val_get(probe, grpc);
	str attributes = arena_printf(a, "delay=%llds timeout=%llds period=%llds #success=%lld #failure=%lld", (long long)val_int(probe, initialDelaySeconds),
				      (long long)val_int(probe, timeoutSeconds), (long long)val_int(probe, periodSeconds),
				      (long long)val_int(probe, successThreshold), (long long)val_int(probe, failureThreshold));
	if (val_has(probe, exec))
		return arena_printf(a, "exec [" STR_FMT "] " STR_FMT, STR_ARG(ktl_join(k, val_get(probe, exec, command), " ")), STR_ARG(attributes));
	if (val_exists(http)) {
		str path = val_str(http, path), scheme = ktl_lower(k, val_str(http, scheme));
		return arena_printf(a, "http-get " STR_FMT "://" STR_FMT ":" STR_FMT "%s" STR_FMT " " STR_FMT, STR_ARG(scheme.n ? scheme : STR("http")),
				    STR_ARG(val_str(http, host)), STR_ARG(ktl_plain(k, val_get(http, port))), path.n && path.p[0] != '/' ? "/" : "",
				    STR_ARG(path), STR_ARG(attributes));
	}
	if (val_exists(tcp))
		return arena_printf(a, "tcp-socket " STR_FMT ":" STR_FMT " " STR_FMT, STR_ARG(val_str(tcp, host)), STR_ARG(ktl_plain(k, val_get(tcp, port))),
				    STR_ARG(attributes));
	if (val_exists(grpc))
		return arena_printf(a, "grpc <pod>:%lld " STR_FMT " " STR_FMT, (long long)val_int(grpc, port), STR_ARG(val_str(grpc, service)), STR_ARG(attributes));
	return arena_join(a, STR("unknown "), attributes);
}

static void say_probes(struct ktl_page *p, struct val c)
{
	static const struct { const char *title; atom field; } probes[] = {
		{ "Liveness", A_livenessProbe }, { "Readiness", A_readinessProbe }, { "Startup", A_startupProbe },
	};
	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		struct val probe = val_member(c, probes[i].field);
		if (val_exists(probe))
			ktl_say(p, 2, "%s:\t" STR_FMT "\n", probes[i].title, STR_ARG(probe_of(p->k, probe)));
	}
}

/* ---- environment ---- */

static void say_env_from(struct ktl_page *p, struct val list)
{
	if (val_len(list))
		ktl_say(p, 2, "Environment Variables from:\n");
	VAL_EACH(e, list) {
		bool map = val_has(*e, configMapRef);
		struct val ref = map ? val_get(*e, configMapRef) : val_get(*e, secretRef);
		str prefix = val_str(*e, prefix);
		ktl_say(p, 3, STR_FMT "\t%s", STR_ARG(val_str(ref, name)), map ? "ConfigMap" : "Secret");
		if (prefix.n)
			ktl_say(p, 0, " with prefix '" STR_FMT "'", STR_ARG(prefix));
		ktl_say(p, 0, "\tOptional: %s\n", val_bool(ref, optional) ? "true" : "false");
	}
}

/* What a field of the pod says; empty in templates. */
static str field_of_pod(struct val pod, str path)
{
	str part, rest = path, key;
	struct val v = pod;
	if (!val_exists(pod))
		return STR_NONE;
	if (str_starts(path, STR("metadata.labels['")) || str_starts(path, STR("metadata.annotations['"))) {
		bool labels = str_starts(path, STR("metadata.labels['"));
		key = str_skip(path, labels ? 17 : 22);
		key = str_head(key, key.n >= 2 ? key.n - 2 : 0);
		return val_as_str(val_find(labels ? val_get(pod, metadata, labels) : val_get(pod, metadata, annotations), key));
	}
	while (rest.n) {
		(void)str_cut(rest, '.', &part, &rest);
		v = val_find(v, part);
	}
	return val_is(v, VAL_STRING) ? val_as_str(v) : STR_NONE;
}

static str resource_of(struct ktl *k, struct val container, str name)
{
	str which, resource;
	(void)str_cut(name, '.', &which, &resource);
	struct val amount = val_find(str_eq(which, STR("limits")) ? val_get(container, resources, limits) : val_get(container, resources, requests), resource);
	if (!val_exists(amount))
		return str_eq(which, STR("limits")) ? STR("node allocatable") : STR("0");
	struct quantity q = quantity_of(amount);
	return arena_printf(&k->arena, "%lld", (long long)quantity_value(q));
}

static void say_variable(struct ktl_page *p, struct val container, struct val e, struct val pod)
{
	struct val from = val_get(e, valueFrom), field = val_get(from, fieldRef), secret = val_get(from, secretKeyRef), map = val_get(from, configMapKeyRef);
	str name = val_str(e, name), line, rest = val_str(e, value);
	bool more = true, first = true;
	if (val_exists(field)) {
		str version = val_str(field, apiVersion);
		ktl_say(p, 3, STR_FMT ":\t" STR_FMT " (" STR_FMT ":" STR_FMT ")\n", STR_ARG(name), STR_ARG(field_of_pod(pod, val_str(field, fieldPath))),
			STR_ARG(version), STR_ARG(val_str(field, fieldPath)));
	} else if (val_has(from, resourceFieldRef)) {
		str resource = val_str(from, resourceFieldRef, resource);
		ktl_say(p, 3, STR_FMT ":\t" STR_FMT " (" STR_FMT ")\n", STR_ARG(name), STR_ARG(resource_of(p->k, container, resource)), STR_ARG(resource));
	} else if (val_exists(secret)) {
		ktl_say(p, 3, STR_FMT ":\t<set to the key '" STR_FMT "' in secret '" STR_FMT "'>\tOptional: %s\n", STR_ARG(name), STR_ARG(val_str(secret, key)),
			STR_ARG(val_str(secret, name)), val_bool(secret, optional) ? "true" : "false");
	} else if (val_exists(map)) {
		ktl_say(p, 3, STR_FMT ":\t<set to the key '" STR_FMT "' of config map '" STR_FMT "'>\tOptional: %s\n", STR_ARG(name), STR_ARG(val_str(map, key)),
			STR_ARG(val_str(map, name)), val_bool(map, optional) ? "true" : "false");
	} else {
		while (more) {
			more = str_cut(rest, '\n', &line, &rest);
			if (first)
				ktl_say(p, 3, STR_FMT ":\t" STR_FMT "\n", STR_ARG(name), STR_ARG(line));
			else
				ktl_say(p, 3, "\t" STR_FMT "\n", STR_ARG(line));
			first = false;
		}
	}
}

/* ---- mounts ---- */

static int by_mount_path(const void *x, const void *y)
{
	return str_cmp(val_str(*(const struct val *)x, mountPath), val_str(*(const struct val *)y, mountPath));
}

static void say_mounts(struct ktl_page *p, struct val c)
{
	struct val mounts = val_get(c, volumeMounts), devices = val_get(c, volumeDevices);
	ktl_say(p, 2, val_len(mounts) ? "Mounts:\n" : "Mounts:\t<none>\n");
	VAL_EACH(m, ktl_sorted_list(p->k, mounts, by_mount_path)) {
		str below = val_str(*m, subPath);
		ktl_say(p, 3, STR_FMT " from " STR_FMT " (%s", STR_ARG(val_str(*m, mountPath)), STR_ARG(val_str(*m, name)),
			val_bool(*m, readOnly) ? "ro" : "rw");
		if (below.n)
			ktl_say(p, 0, ",path=" STR_FMT, STR_ARG(ktl_quote(p->k, below)));
		ktl_say(p, 0, ")\n");
	}
	if (val_len(devices)) /* kubectl says so, too: it counts the mounts */
		ktl_say(p, 2, val_len(mounts) ? "Devices:\n" : "Devices:\t<none>\n");
	VAL_EACH(d, devices)
		ktl_say(p, 3, STR_FMT " from " STR_FMT "\n", STR_ARG(val_str(*d, devicePath)), STR_ARG(val_str(*d, name)));
}

static void say_container(struct ktl_page *p, struct val c, struct val status, struct val pod, const char *space)
{
	bool known = val_exists(status);
	ktl_say(p, 1, "%s" STR_FMT ":\n", space[0] ? " " : "", STR_ARG(val_str(c, name)));
	if (known)
		ktl_say(p, 2, "Container ID:\t" STR_FMT "\n", STR_ARG(val_str(status, containerID)));
	ktl_say(p, 2, "Image:\t" STR_FMT "\n", STR_ARG(val_str(c, image)));
	if (known)
		ktl_say(p, 2, "Image ID:\t" STR_FMT "\n", STR_ARG(val_str(status, imageID)));
	say_ports(p, "Port", ports_of(p->k, val_get(c, ports), A_containerPort));
	say_ports(p, "Host Port", ports_of(p->k, val_get(c, ports), A_hostPort));
	say_profile(p, 2, 3, val_get(c, securityContext, seccompProfile));
	say_lines(p, "Command", val_get(c, command));
	say_lines(p, "Args", val_get(c, args));
	if (known) {
		say_state(p, "State", val_get(status, state));
		if (val_has(status, lastState, terminated))
			say_state(p, "Last State", val_get(status, lastState));
		ktl_say(p, 2, "Ready:\t%s\n", val_bool(status, ready) ? "True" : "False");
		ktl_say(p, 2, "Restart Count:\t%lld\n", (long long)val_int(status, restartCount));
	}
	say_resources(p, 2, val_get(c, resources));
	say_probes(p, c);
	say_env_from(p, val_get(c, envFrom));
	ktl_say(p, 2, val_len(val_get(c, env)) ? "Environment:\n" : "Environment:\t<none>\n");
	VAL_EACH(e, val_get(c, env))
		say_variable(p, c, *e, pod);
	say_mounts(p, c);
}

static void say_containers(struct ktl_page *p, const char *title, struct val containers, struct val statuses, struct val pod, const char *space)
{
	ktl_say(p, 0, "%s%s:%s\n", space, title, val_len(containers) ? "" : " <none>");
	VAL_EACH(c, containers) {
		struct val status = VAL_EMPTY;
		VAL_EACH(s, statuses)
			if (str_eq(val_str(*s, name), val_str(*c, name)))
				status = *s;
		say_container(p, *c, status, pod, space);
	}
}

/* ---- templates ---- */

static void say_spread(struct ktl_page *p, struct val list, const char *space)
{
	bool first = true;
	VAL_EACH(t, list) {
		ktl_say(p, 0, first ? "%sTopology Spread Constraints:\t" : "%s\t", space);
		ktl_say(p, 0, STR_FMT ":" STR_FMT " when max skew %lld is exceeded", STR_ARG(val_str(*t, topologyKey)), STR_ARG(val_str(*t, whenUnsatisfiable)),
			(long long)val_int(*t, maxSkew));
		if (val_has(*t, labelSelector))
			ktl_say(p, 0, " for selector " STR_FMT, STR_ARG(selector_display(&p->k->arena, val_get(*t, labelSelector))));
		ktl_say(p, 0, "\n");
		first = false;
	}
}

void ktl_say_template(struct ktl_page *p, struct val template)
{
	struct val spec = val_get(template, spec), notes = val_get(template, metadata, annotations);
	ktl_say(p, 0, "Pod Template:\n");
	ktl_say_labels(p, "  Labels", val_get(template, metadata, labels));
	if (val_len(notes))
		ktl_say_annotations(p, "  Annotations", notes);
	if (val_str(spec, serviceAccountName).n)
		ktl_say(p, 1, "Service Account:\t" STR_FMT "\n", STR_ARG(val_str(spec, serviceAccountName)));
	if (val_len(val_get(spec, initContainers)))
		say_containers(p, "Init Containers", val_get(spec, initContainers), VAL_EMPTY, VAL_EMPTY, "  ");
	say_containers(p, "Containers", val_get(spec, containers), VAL_EMPTY, VAL_EMPTY, "  ");
	ktl_say_volumes(p, val_get(spec, volumes), "  ");
	say_spread(p, val_get(spec, topologySpreadConstraints), "  ");
	if (val_str(spec, priorityClassName).n)
		ktl_say(p, 1, "Priority Class Name:\t" STR_FMT "\n", STR_ARG(val_str(spec, priorityClassName)));
	ktl_say_labels(p, "  Node-Selectors", val_get(spec, nodeSelector));
	ktl_say_tolerations(p, "  Tolerations", val_get(spec, tolerations));
}

str ktl_template_text(struct ktl *k, struct val template)
{
	struct ktl_page p = { .k = k };
	ktl_tabs_for_description(&p.tabs);
	ktl_say_template(&p, template);
	str text = arena_str(&k->arena, buf_str(&p.tabs.text));
	ktl_tabs_done(&p.tabs);
	return text;
}

/* ---- pods ---- */

static void say_status(struct ktl_page *p, struct val pod)
{
	struct val status = val_get(pod, status);
	str phase = val_str(status, phase), deleted = val_str(pod, metadata, deletionTimestamp);
	if (deleted.n && !str_eq(phase, STR("Failed")) && !str_eq(phase, STR("Succeeded"))) {
		ktl_say(p, 0, "Status:\tTerminating (lasts " STR_FMT ")\n", STR_ARG(ktl_age(p->k, deleted)));
		ktl_say(p, 0, "Termination Grace Period:\t%llds\n", (long long)val_int(pod, metadata, deletionGracePeriodSeconds));
	} else {
		ktl_say(p, 0, "Status:\t" STR_FMT "\n", STR_ARG(phase));
	}
	if (val_str(status, reason).n)
		ktl_say(p, 0, "Reason:\t" STR_FMT "\n", STR_ARG(val_str(status, reason)));
	if (val_str(status, message).n)
		ktl_say(p, 0, "Message:\t" STR_FMT "\n", STR_ARG(val_str(status, message)));
	say_profile(p, 0, 0, val_get(pod, spec, securityContext, seccompProfile));
	ktl_say(p, 0, "IP:\t" STR_FMT "\n", STR_ARG(val_str(status, podIP)));
	ktl_say(p, 0, val_len(val_get(status, podIPs)) ? "IPs:\n" : "IPs:\t<none>\n");
	VAL_EACH(ip, val_get(status, podIPs))
		ktl_say(p, 1, "IP:\t" STR_FMT "\n", STR_ARG(val_str(*ip, ip)));
	ktl_say_owner(p, pod);
	if (val_str(status, nominatedNodeName).n)
		ktl_say(p, 0, "NominatedNodeName:\t" STR_FMT "\n", STR_ARG(val_str(status, nominatedNodeName)));
	if (val_has(pod, spec, resources)) {
		ktl_say(p, 0, "Resources:\n");
		say_resources(p, 1, val_get(pod, spec, resources));
	}
}

static void say_head(struct ktl_page *p, struct val pod)
{
	struct val spec = val_get(pod, spec);
	ktl_say_name(p, pod);
	if (val_has(spec, priority))
		ktl_say(p, 0, "Priority:\t%lld\n", (long long)val_int(spec, priority));
	if (val_str(spec, priorityClassName).n)
		ktl_say(p, 0, "Priority Class Name:\t" STR_FMT "\n", STR_ARG(val_str(spec, priorityClassName)));
	if (val_str(spec, runtimeClassName).n)
		ktl_say(p, 0, "Runtime Class Name:\t" STR_FMT "\n", STR_ARG(val_str(spec, runtimeClassName)));
	if (val_str(spec, serviceAccountName).n)
		ktl_say(p, 0, "Service Account:\t" STR_FMT "\n", STR_ARG(val_str(spec, serviceAccountName)));
	if (val_str(spec, nodeName).n)
		ktl_say(p, 0, "Node:\t" STR_FMT "/" STR_FMT "\n", STR_ARG(val_str(spec, nodeName)), STR_ARG(val_str(pod, status, hostIP)));
	else
		ktl_say(p, 0, "Node:\t<none>\n");
	if (val_str(pod, status, startTime).n)
		ktl_say(p, 0, "Start Time:\t" STR_FMT "\n", STR_ARG(ktl_date(p->k, val_str(pod, status, startTime))));
	ktl_say_labels(p, "Labels", val_get(pod, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(pod, metadata, annotations));
}

static str condition_of(struct val pod, str type)
{
	VAL_EACH(c, val_get(pod, status, conditions))
		if (str_eq(val_str(*c, type), type))
			return val_str(*c, status);
	return STR("<none>");
}

static void say_conditions(struct ktl_page *p, struct val pod)
{
	struct val gates = val_get(pod, spec, readinessGates), conditions = val_get(pod, status, conditions);
	if (val_len(gates))
		ktl_say(p, 0, "Readiness Gates:\n  Type\tStatus\n");
	VAL_EACH(g, gates)
		ktl_say(p, 1, STR_FMT " \t" STR_FMT " \n", STR_ARG(val_str(*g, conditionType)), STR_ARG(condition_of(pod, val_str(*g, conditionType))));
	if (val_len(conditions))
		ktl_say(p, 0, "Conditions:\n  Type\tStatus\n");
	VAL_EACH(c, conditions)
		ktl_say(p, 1, STR_FMT " \t" STR_FMT " \n", STR_ARG(val_str(*c, type)), STR_ARG(val_str(*c, status)));
}

int ktl_describe_pod(struct ktl_page *p, struct val pod)
{
	struct val spec = val_get(pod, spec), status = val_get(pod, status);
	str qos = val_str(status, qosClass), mirror = val_as_str(val_find(val_get(pod, metadata, annotations), STR("kubernetes.io/config.mirror")));
	say_head(p, pod);
	say_status(p, pod);
	if (val_len(val_get(spec, initContainers)))
		say_containers(p, "Init Containers", val_get(spec, initContainers), val_get(status, initContainerStatuses), pod, "");
	say_containers(p, "Containers", val_get(spec, containers), val_get(status, containerStatuses), pod, "");
	if (val_len(val_get(spec, ephemeralContainers)))
		say_containers(p, "Ephemeral Containers", val_get(spec, ephemeralContainers), val_get(status, ephemeralContainerStatuses), pod, "");
	say_conditions(p, pod);
	ktl_say_volumes(p, val_get(spec, volumes), "");
	ktl_say(p, 0, "QoS Class:\t" STR_FMT "\n", STR_ARG(qos.n ? qos : pod_qos_class(spec)));
	ktl_say_labels(p, "Node-Selectors", val_get(spec, nodeSelector));
	ktl_say_tolerations(p, "Tolerations", val_get(spec, tolerations));
	say_spread(p, val_get(spec, topologySpreadConstraints), "");
	if (p->events)
		ktl_say_event_list(p, ktl_find_events(p->k, pod, STR_NONE, mirror.n ? mirror : val_str(pod, metadata, uid)));
	return 0;
}
