/*
 * Pods and templates of pods. Warnings are for people, so what would take long to compare (the ports of all containers, the
 * paths of all keys) is compared up to a number that no person writes.
 */
#include "apiserver/warnings_priv.h"

#include "base/map.h"
#include "machinery/validate_pod.h"

enum { PORTS_MAX = 512 };

/* The places of containers in a spec. */
static const struct {
	atom list;
	str name;
} container_lists[] = {
	{ A_initContainers, STR_INIT("initContainers") },
	{ A_containers, STR_INIT("containers") },
	{ A_ephemeralContainers, STR_INIT("ephemeralContainers") },
};

#define NULL_SELECTOR "a null labelSelector results in matching no pod"
#define NO_SECCOMP "non-functional in v1.27+; use the \"seccompProfile\" field instead"
#define NO_APP_ARMOR "deprecated since v1.30; use the \"appArmorProfile\" field instead"
#define SECCOMP_POD STR("seccomp.security.alpha.kubernetes.io/pod")
#define SECCOMP_CONTAINER STR("container.seccomp.security.alpha.kubernetes.io/")
#define APP_ARMOR_CONTAINER STR("container.apparmor.security.beta.kubernetes.io/")

/* ---- scheduling ---- */

static void warn_node_choice(struct request *q, const struct field_path *at, struct val spec)
{
	VAL_EACH_MEMBER(m, val_get(spec, nodeSelector)) {
		str why = warn_node_label(atom_str(m->key));
		if (why.n)
			warn_at(q, FIELD_KEY(FIELD(at, "nodeSelector"), atom_str(m->key)), STR_FMT, STR_ARG(why));
	}
	const struct field_path *affinity = FIELD(FIELD(at, "affinity"), "nodeAffinity");
	const struct field_path *terms = FIELD(FIELD(affinity, "requiredDuringSchedulingIgnoredDuringExecution"),
					       "nodeSelectorTerms");
	size_t i = 0;
	VAL_EACH(t, val_get(spec, affinity, nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution, nodeSelectorTerms))
		warn_node_term(q, FIELD_INDEX(terms, i++), *t, false);
	const struct field_path *preferred = FIELD(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
	i = 0;
	VAL_EACH(t, val_get(spec, affinity, nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution)) {
		warn_node_term(q, FIELD(FIELD_INDEX(preferred, i), "preference"), val_get(*t, preference), true);
		i++;
	}
}

static void warn_spread(struct request *q, const struct field_path *at, struct val spec)
{
	size_t i = 0;
	VAL_EACH(c, val_get(spec, topologySpreadConstraints)) {
		const struct field_path *here = FIELD_INDEX(FIELD(at, "topologySpreadConstraints"), i++);
		str key = val_str(*c, topologyKey), why = warn_node_label(key);
		if (why.n)
			warn_at(q, FIELD(here, "topologyKey"), STR_FMT " is " STR_FMT, STR_ARG(key), STR_ARG(why));
		if (!val_has(*c, labelSelector))
			warn_at(q, FIELD(here, "labelSelector"), NULL_SELECTOR);
	}
}

/* podAffinity or podAntiAffinity. */
static void warn_affinity(struct request *q, const struct field_path *at, struct val affinity)
{
	const struct field_path *required = FIELD(at, "requiredDuringSchedulingIgnoredDuringExecution");
	const struct field_path *preferred = FIELD(at, "preferredDuringSchedulingIgnoredDuringExecution");
	size_t i = 0;
	VAL_EACH(t, val_get(affinity, requiredDuringSchedulingIgnoredDuringExecution)) {
		if (!val_has(*t, labelSelector))
			warn_at(q, FIELD(FIELD_INDEX(required, i), "labelSelector"), NULL_SELECTOR);
		i++;
	}
	i = 0;
	VAL_EACH(t, val_get(affinity, preferredDuringSchedulingIgnoredDuringExecution)) {
		if (!val_has(*t, podAffinityTerm, labelSelector))
			warn_at(q, FIELD(FIELD(FIELD_INDEX(preferred, i), "podAffinityTerm"), "labelSelector"), NULL_SELECTOR);
		i++;
	}
}

/* ---- annotations ---- */

static void warn_annotations(struct request *q, const struct field_path *at, struct val meta)
{
	static const struct {
		str key, why;
	} old[] = {
		{ STR_INIT("scheduler.alpha.kubernetes.io/critical-pod"),
		  STR_INIT("non-functional in v1.16+; use the \"priorityClassName\" field instead") },
		{ STR_INIT("security.alpha.kubernetes.io/sysctls"),
		  STR_INIT("non-functional in v1.11+; use the \"sysctls\" field instead") },
		{ STR_INIT("security.alpha.kubernetes.io/unsafe-sysctls"),
		  STR_INIT("non-functional in v1.11+; use the \"sysctls\" field instead") },
	};
	for (size_t i = 0; i < ARRAY_LEN(old); i++)
		if (warn_has_annotation(meta, old[i].key))
			warn_at(q, FIELD_KEY(at, old[i].key), STR_FMT, STR_ARG(old[i].why));
}

/* The container as the request had it: fields that annotations were copied to are not there yet. */
static struct val container_as_sent(const struct request *q, atom list, str name)
{
	VAL_EACH(c, val_member(val_get(q->sent, spec), list))
		if (str_eq(val_str(*c, name), name))
			return *c;
	return VAL_EMPTY;
}

static void warn_app_armor(struct request *q, const struct field_path *annotations, bool template, struct val pod, atom list,
			   struct val container)
{
	str name = val_str(container, name), key = arena_join(q->arena, APP_ARMOR_CONTAINER, name);
	struct val text = val_find(val_get(pod, metadata, annotations), key);
	if (!val_exists(text) || (!template && str_eq(val_str(pod, spec, os, name), STR("windows"))))
		return;
	struct val asked = template || !val_exists(q->sent) ? container : container_as_sent(q, list, name);
	struct val profile = app_armor_profile(q->arena, val_as_str(text));
	struct val of_pod = val_get(pod, spec, securityContext, appArmorProfile);
	if (val_has(asked, securityContext, appArmorProfile) || (val_exists(profile) && val_equal(profile, of_pod)))
		return;
	warn_at(q, FIELD_KEY(annotations, key), NO_APP_ARMOR);
}

/* ---- containers ---- */

/* A variable may be given twice only to add to what it was before. */
static void warn_env(struct request *q, const struct field_path *at, struct val env)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;
	VAL_EACH(e, env) {
		str name = val_str(*e, name), value = val_str(*e, value);
		if (map_get(&seen, name)) {
			str reference = arena_printf(q->arena, "$(" STR_FMT ")", STR_ARG(name));
			if (val_has(*e, valueFrom) || str_eq(value, reference) || str_find(value, reference) < 0)
				warn_at(q, FIELD_INDEX(FIELD(at, "env"), i),
					"hides previous definition of " STR_FMT ", which may be dropped when using apply",
					STR_ARG(warn_quoted(q, name)));
		} else {
			map_put(&seen, name, (void *)e);
		}
		i++;
	}
}

static void warn_container(struct request *q, const struct field_path *at, struct val container)
{
	struct val limits = val_get(container, resources, limits), requests = val_get(container, resources, requests);
	const struct field_path *resources = FIELD(at, "resources");
	warn_fraction(q, FIELD(resources, "limits"), limits, STR("memory"));
	warn_fraction(q, FIELD(resources, "requests"), requests, STR("memory"));
	warn_fraction(q, FIELD(resources, "limits"), limits, STR("ephemeral-storage"));
	warn_fraction(q, FIELD(resources, "requests"), requests, STR("ephemeral-storage"));
	warn_env(q, at, val_get(container, env));
}

static void warn_containers(struct request *q, const struct field_path *at, const struct field_path *annotations, bool template,
			    struct val pod)
{
	for (size_t l = 0; l < ARRAY_LEN(container_lists); l++) {
		atom list = container_lists[l].list;
		size_t i = 0;
		VAL_EACH(c, val_member(val_get(pod, spec), list)) {
			str key = arena_join(q->arena, SECCOMP_CONTAINER, val_str(*c, name));
			if (!val_has(*c, securityContext, seccompProfile) && warn_has_annotation(val_get(pod, metadata), key))
				warn_at(q, FIELD_KEY(annotations, key), NO_SECCOMP);
			warn_app_armor(q, annotations, template, pod, list, *c);
			warn_container(q, FIELD_INDEX(FIELD_STR(at, container_lists[l].name), i++), *c);
		}
	}
}

/* ---- ports, of all containers together ---- */

struct port {
	struct val port;
	str path;
};

static void warn_port_pair(struct request *q, const struct port *p, const struct port *other)
{
	struct val a = p->port, b = other->port;
	if (val_int(a, containerPort) != val_int(b, containerPort) || !str_eq(val_str(a, protocol), val_str(b, protocol)))
		return;
	str ip_a = val_str(a, hostIP), ip_b = val_str(b, hostIP);
	int64_t host_a = val_int(a, hostPort), host_b = val_int(b, hostPort);
	const char *how = NULL;
	if (str_eq(ip_a, ip_b) && host_a == host_b)
		how = "duplicate";
	else if (!host_a || !host_b)
		how = "overlapping";
	else if (host_a == host_b && (ip_a.n == 0) != (ip_b.n == 0))
		how = "dangerously ambiguous";
	if (how)
		warnf(q, STR_FMT ": %s port definition with " STR_FMT, STR_ARG(p->path), how, STR_ARG(other->path));
}

static size_t gather_ports(struct request *q, const struct field_path *at, struct val spec, struct port ports[PORTS_MAX])
{
	size_t n = 0;
	for (size_t l = 0; l < ARRAY_LEN(container_lists); l++) {
		size_t i = 0;
		VAL_EACH(c, val_member(spec, container_lists[l].list)) {
			const struct field_path *container = FIELD_INDEX(FIELD_STR(at, container_lists[l].name), i++);
			size_t k = 0;
			VAL_EACH(p, val_get(*c, ports)) {
				if (n == PORTS_MAX)
					return n;
				ports[n++] = (struct port){
					*p, field_path_text(q->arena, FIELD_INDEX(FIELD(container, "ports"), k++)) };
			}
		}
	}
	return n;
}

static bool has_ports(struct val spec)
{
	for (size_t l = 0; l < ARRAY_LEN(container_lists); l++)
		VAL_EACH(c, val_member(spec, container_lists[l].list))
			if (val_len(val_get(*c, ports)))
				return true;
	return false;
}

static void warn_ports(struct request *q, const struct field_path *at, struct val spec)
{
	if (!has_ports(spec))
		return; /* room for many is only taken when there are some */
	struct port *ports = ARENA_ARRAY(q->arena, struct port, PORTS_MAX);
	size_t n = gather_ports(q, at, spec, ports);
	for (size_t i = 0; i < n; i++) {
		struct val p = ports[i].port;
		str ip = val_str(p, hostIP);
		if (ip.n && !val_int(p, hostPort))
			warnf(q,
			      STR_FMT ": hostIP set without hostPort: {Name:" STR_FMT " HostPort:0 ContainerPort:%lld Protocol:"
			      STR_FMT " HostIP:" STR_FMT "}",
			      STR_ARG(ports[i].path), STR_ARG(val_str(p, name)), (long long)val_int(p, containerPort),
			      STR_ARG(val_str(p, protocol)), STR_ARG(ip));
		for (size_t k = 0; k < i; k++)
			warn_port_pair(q, &ports[i], &ports[k]);
	}
	CLEANUP(map_done) struct map names = MAP_INIT;
	for (size_t i = 0; i < n; i++) {
		str name = val_str(ports[i].port, name);
		const struct port *other = name.n ? map_get(&names, name) : NULL;
		if (other)
			warnf(q, STR_FMT ": duplicate port name " STR_FMT " with " STR_FMT
			      ", services and probes that select ports by name will use " STR_FMT,
			      STR_ARG(ports[i].path), STR_ARG(warn_quoted(q, name)), STR_ARG(other->path),
			      STR_ARG(other->path));
		else if (name.n)
			map_put(&names, name, &ports[i]);
	}
}

/* ---- the rest of the spec ---- */

static void warn_volumes(struct request *q, const struct field_path *at, struct val volumes)
{
	static const struct {
		atom field;
		str name, why;
	} old[] = {
		{ A_photonPersistentDisk, STR_INIT("photonPersistentDisk"),
		  STR_INIT("deprecated in v1.11, non-functional in v1.16+") },
		{ A_gitRepo, STR_INIT("gitRepo"), STR_INIT("deprecated in v1.11, and disabled by default in v1.33+") },
		{ A_scaleIO, STR_INIT("scaleIO"), STR_INIT("deprecated in v1.16, non-functional in v1.22+") },
		{ A_flocker, STR_INIT("flocker"), STR_INIT("deprecated in v1.22, non-functional in v1.25+") },
		{ A_storageos, STR_INIT("storageOS"), STR_INIT("deprecated in v1.22, non-functional in v1.25+") },
		{ A_quobyte, STR_INIT("quobyte"), STR_INIT("deprecated in v1.22, non-functional in v1.25+") },
		{ A_glusterfs, STR_INIT("glusterfs"), STR_INIT("deprecated in v1.25, non-functional in v1.26+") },
		{ A_cephfs, STR_INIT("cephfs"), STR_INIT("deprecated in v1.28, non-functional in v1.31+") },
		{ A_rbd, STR_INIT("rbd"), STR_INIT("deprecated in v1.28, non-functional in v1.31+") },
	};
	size_t i = 0;
	VAL_EACH(v, volumes) {
		const struct field_path *here = FIELD_INDEX(at, i++);
		for (size_t k = 0; k < ARRAY_LEN(old); k++)
			if (val_exists(val_member(*v, old[k].field)))
				warn_at(q, FIELD_STR(here, old[k].name), STR_FMT, STR_ARG(old[k].why));
		warn_claim_spec(q, FIELD(FIELD(FIELD(here, "ephemeral"), "volumeClaimTemplate"), "spec"),
				val_get(*v, ephemeral, volumeClaimTemplate, spec));
	}
}

/* Items that have the same text in a field. */
static void warn_doubles(struct request *q, const struct field_path *at, struct val list, atom field)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	str name = atom_str(field);
	size_t i = 0;
	VAL_EACH(item, list) {
		str text = val_as_str(val_member(*item, field));
		if (map_get(&seen, text))
			warn_at(q, FIELD_STR(FIELD_INDEX(at, i), name), "duplicate " STR_FMT " " STR_FMT, STR_ARG(name),
				STR_ARG(warn_quoted(q, text)));
		else
			map_put(&seen, text, (void *)item);
		i++;
	}
}

static void warn_pull_secrets(struct request *q, const struct field_path *at, struct val secrets)
{
	size_t i = 0;
	warn_doubles(q, at, secrets, A_name);
	VAL_EACH(s, secrets) {
		if (!val_str(*s, name).n)
			warn_at(q, FIELD(FIELD_INDEX(at, i), "name"), "invalid empty name \"\"");
		i++;
	}
}

static void warn_addresses(struct request *q, const struct field_path *at, struct val spec)
{
	size_t i = 0;
	VAL_EACH(s, val_get(spec, dnsConfig, nameservers))
		warn_ip(q, FIELD_INDEX(FIELD(FIELD(at, "dnsConfig"), "nameservers"), i++), val_as_str(*s));
	i = 0;
	VAL_EACH(h, val_get(spec, hostAliases)) {
		warn_ip(q, FIELD(FIELD_INDEX(FIELD(at, "hostAliases"), i), "ip"), val_str(*h, ip));
		i++;
	}
}

void warn_pod(struct request *q, const struct field_path *at, struct val pod)
{
	struct val spec = val_get(pod, spec), meta = val_get(pod, metadata);
	const struct field_path *here = FIELD(at, "spec"), *annotations = FIELD(FIELD(at, "metadata"), "annotations");

	warn_node_choice(q, here, spec);
	warn_spread(q, here, spec);
	warn_annotations(q, annotations, meta);
	warn_volumes(q, FIELD(here, "volumes"), val_get(spec, volumes));
	warn_volume_paths(q, val_get(spec, volumes));
	warn_doubles(q, FIELD(here, "hostAliases"), val_get(spec, hostAliases), A_ip);
	warn_pull_secrets(q, FIELD(here, "imagePullSecrets"), val_get(spec, imagePullSecrets));
	warn_fraction(q, FIELD(here, "overhead"), val_get(spec, overhead), STR("memory"));
	warn_fraction(q, FIELD(here, "overhead"), val_get(spec, overhead), STR("ephemeral-storage"));
	if (!val_has(spec, securityContext, seccompProfile) && warn_has_annotation(meta, SECCOMP_POD))
		warn_at(q, FIELD_KEY(annotations, SECCOMP_POD), NO_SECCOMP);
	warn_containers(q, here, annotations, at != NULL, pod);
	warn_ports(q, here, spec);
	if (val_int(spec, terminationGracePeriodSeconds) < 0)
		warn_at(q, FIELD(here, "terminationGracePeriodSeconds"),
			"must be >= 0; negative values are invalid and will be treated as 1");
	warn_affinity(q, FIELD(FIELD(here, "affinity"), "podAffinity"), val_get(spec, affinity, podAffinity));
	warn_affinity(q, FIELD(FIELD(here, "affinity"), "podAntiAffinity"), val_get(spec, affinity, podAntiAffinity));
	warn_addresses(q, here, spec);
}
