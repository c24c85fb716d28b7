/*
 * Defaults of pods and of everything that is inside of one. Those that come with a plain constant and need no condition
 * are in the schema (protocol: TCP, ...). The functions take a part of a typed tree and give it back with defaults;
 * members are appended, and default_object puts the whole tree into order at the end.
 */
#include "codec/atoms.h"
#include "machinery/image_name.h"
#include "machinery/validate_pod.h"

/* ---- resources ---- */

/* Kubernetes only keeps the text of a quantity that needs no finer scale. */
static bool finer_than_milli(str text)
{
	ptrdiff_t dot = str_chr(text, '.');
	size_t digits = 0;

	if (text.n && (text.p[text.n - 1] == 'n' || text.p[text.n - 1] == 'u'))
		return true;
	if (dot < 0)
		return false;
	while ((size_t)dot + 1 + digits < text.n && text.p[(size_t)dot + 1 + digits] >= '0' &&
	       text.p[(size_t)dot + 1 + digits] <= '9')
		digits++;
	return digits > 3;
}

struct val default_resource_list(struct arena *a, struct val list)
{
	char text[QUANTITY_TEXT_MAX];

	VAL_EACH_MEMBER(m, list)
		if (finer_than_milli(val_as_str(m->val)))
			list = val_put(a, list, m->key, VAL_STR(arena_str(a, quantity_format(
							quantity_round_up(quantity_of(m->val), -3), text))));
	return list;
}

static struct val default_resources(struct arena *a, struct val resources)
{
	resources = edit_member(a, resources, A_limits, default_resource_list);
	return edit_member(a, resources, A_requests, default_resource_list);
}

/* ---- containers ---- */

static struct val default_http_get(struct arena *a, struct val action)
{
	action = default_member(a, action, A_path, VAL_LIT("/"));
	return default_member(a, action, A_scheme, VAL_LIT("HTTP"));
}

static struct val default_handler(struct arena *a, struct val handler)
{
	return edit_member(a, handler, A_httpGet, default_http_get);
}

static struct val default_probe(struct arena *a, struct val probe)
{
	probe = default_handler(a, probe);
	probe = default_member(a, probe, A_timeoutSeconds, val_of_int(1));
	probe = default_member(a, probe, A_periodSeconds, val_of_int(10));
	probe = default_member(a, probe, A_successThreshold, val_of_int(1));
	return default_member(a, probe, A_failureThreshold, val_of_int(3));
}

static struct val default_lifecycle(struct arena *a, struct val lifecycle)
{
	lifecycle = edit_member(a, lifecycle, A_postStart, default_handler);
	return edit_member(a, lifecycle, A_preStop, default_handler);
}

static struct val default_field_ref(struct arena *a, struct val ref)
{
	return default_member(a, ref, A_apiVersion, VAL_LIT("v1"));
}

static struct val default_field_source(struct arena *a, struct val v)
{
	return edit_member(a, v, A_fieldRef, default_field_ref);
}

static struct val default_env(struct arena *a, struct val env)
{
	return edit_member(a, env, A_valueFrom, default_field_source);
}

static struct val default_envs(struct arena *a, struct val list) { return edit_items(a, list, default_env); }

static struct val pull_policy_of(str image)
{
	return image_name_is_latest(image) ? VAL_LIT("Always") : VAL_LIT("IfNotPresent");
}

static struct val default_container(struct arena *a, struct val c)
{
	c = edit_member(a, c, A_env, default_envs);
	c = edit_member(a, c, A_resources, default_resources);
	c = edit_member(a, c, A_livenessProbe, default_probe);
	c = edit_member(a, c, A_readinessProbe, default_probe);
	c = edit_member(a, c, A_startupProbe, default_probe);
	c = edit_member(a, c, A_lifecycle, default_lifecycle);
	c = default_member(a, c, A_terminationMessagePath, VAL_LIT("/dev/termination-log"));
	c = default_member(a, c, A_terminationMessagePolicy, VAL_LIT("File"));
	return default_member(a, c, A_imagePullPolicy, pull_policy_of(val_str(c, image)));
}

static struct val default_containers(struct arena *a, struct val list) { return edit_items(a, list, default_container); }

/* ---- volumes ---- */

enum { FILE_MODE = 0644, TOKEN_SECONDS = 3600 };

static struct val default_mode(struct arena *a, struct val source)
{
	return default_member(a, source, A_defaultMode, val_of_int(FILE_MODE));
}

static struct val default_files(struct arena *a, struct val items) { return edit_items(a, items, default_field_source); }

static struct val default_downward(struct arena *a, struct val source)
{
	return edit_member(a, source, A_items, default_files);
}

static struct val default_downward_volume(struct arena *a, struct val source)
{
	return default_mode(a, default_downward(a, source));
}

static struct val default_token(struct arena *a, struct val source)
{
	return default_member(a, source, A_expirationSeconds, val_of_int(TOKEN_SECONDS));
}

static struct val default_projection(struct arena *a, struct val projection)
{
	projection = edit_member(a, projection, A_downwardAPI, default_downward);
	return edit_member(a, projection, A_serviceAccountToken, default_token);
}

static struct val default_projections(struct arena *a, struct val list) { return edit_items(a, list, default_projection); }

static struct val default_projected(struct arena *a, struct val source)
{
	return default_mode(a, edit_member(a, source, A_sources, default_projections));
}

static struct val default_host_path(struct arena *a, struct val source)
{
	return default_member(a, source, A_type, VAL_LIT(""));
}

static struct val default_image_volume(struct arena *a, struct val source)
{
	return default_member(a, source, A_pullPolicy, pull_policy_of(val_str(source, reference)));
}

struct val default_claim_spec(struct arena *a, struct val spec)
{
	spec = edit_member(a, spec, A_resources, default_resources);
	return default_member(a, spec, A_volumeMode, VAL_LIT("Filesystem"));
}

static struct val default_claim_template(struct arena *a, struct val template)
{
	return val_put(a, template, A_spec, default_claim_spec(a, val_get(template, spec)));
}

static struct val default_ephemeral(struct arena *a, struct val source)
{
	return edit_member(a, source, A_volumeClaimTemplate, default_claim_template);
}

static struct val default_volume(struct arena *a, struct val volume)
{
	static const struct {
		uint16_t source;
		struct val (*fn)(struct arena *a, struct val source);
	} sources[] = {
		{ A_configMap, default_mode },
		{ A_downwardAPI, default_downward_volume },
		{ A_ephemeral, default_ephemeral },
		{ A_hostPath, default_host_path },
		{ A_image, default_image_volume },
		{ A_projected, default_projected },
		{ A_secret, default_mode },
	};
	if (val_len(volume) == val_has(volume, name)) /* no source */
		return val_put(a, volume, A_emptyDir, VAL_EMPTY_OBJECT);
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		volume = edit_member(a, volume, sources[i].source, sources[i].fn);
	return volume;
}

static struct val default_volumes(struct arena *a, struct val list) { return edit_items(a, list, default_volume); }

/* ---- pod specs ---- */

struct val default_pod_spec(struct arena *a, struct val spec)
{
	/* The two names mean one thing; the newer one wins. */
	struct val account = val_has(spec, serviceAccountName) ? val_get(spec, serviceAccountName) :
		val_get(spec, serviceAccount);

	if (val_exists(account)) {
		spec = val_put(a, spec, A_serviceAccountName, account);
		spec = val_put(a, spec, A_serviceAccount, account);
	}
	spec = edit_member(a, spec, A_volumes, default_volumes);
	spec = edit_member(a, spec, A_initContainers, default_containers);
	spec = edit_member(a, spec, A_containers, default_containers);
	spec = edit_member(a, spec, A_ephemeralContainers, default_containers);
	spec = edit_member(a, spec, A_overhead, default_resource_list);
	spec = edit_member(a, spec, A_resources, default_resources);
	spec = default_member(a, spec, A_dnsPolicy, VAL_LIT("ClusterFirst"));
	spec = default_member(a, spec, A_restartPolicy, VAL_LIT("Always"));
	spec = default_member(a, spec, A_securityContext, VAL_EMPTY_OBJECT);
	spec = default_member(a, spec, A_terminationGracePeriodSeconds, val_of_int(30));
	return default_member(a, spec, A_schedulerName, VAL_LIT("default-scheduler"));
}

struct val default_pod_template(struct arena *a, struct val template)
{
	return val_put(a, template, A_spec, default_pod_spec(a, val_get(template, spec)));
}

/* ---- pods: what templates do not get ---- */

static bool any_resource(str name) { return name.n > 0; }
static bool pod_level_sum(str name) { return resource_is_pod_level(name) && resource_can_overcommit(name); }

/* A map of resources with what only another one has, of those that are wanted. */
static struct val add_missing(struct arena *a, struct val list, struct val from, bool (*want)(str name))
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	struct val_builder b = val_builder(a);

	VAL_EACH_MEMBER(m, list) {
		set_add(&names, atom_str(m->key));
		val_add_member(&b, m->key, m->val);
	}
	VAL_EACH_MEMBER(m, from)
		if (want(atom_str(m->key)) && set_add(&names, atom_str(m->key)))
			val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

/* Requests that are not given are what the limits are. */
static struct val requests_from_limits(struct arena *a, struct val container)
{
	struct val limits = val_get(container, resources, limits), requests = val_get(container, resources, requests);

	if (val_len(limits) == 0)
		return container;
	return val_with(a, container, add_missing(a, requests, limits, any_resource), resources, requests);
}

static struct val containers_requests(struct arena *a, struct val list)
{
	return edit_items(a, list, requests_from_limits);
}

static struct val default_host_port(struct arena *a, struct val port)
{
	return default_member(a, port, A_hostPort, val_get(port, containerPort));
}

static struct val default_host_ports(struct arena *a, struct val ports) { return edit_items(a, ports, default_host_port); }

static struct val container_host_ports(struct arena *a, struct val c)
{
	return edit_member(a, c, A_ports, default_host_ports);
}

static struct val containers_host_ports(struct arena *a, struct val list)
{
	return edit_items(a, list, container_host_ports);
}

/* Huge pages that containers are limited to limit the pod, unless it asks for them itself. */
static struct val huge_page_limits(struct arena *a, struct val resources, struct val spec)
{
	struct val limits = val_get(resources, limits), requests = val_get(resources, requests), sums;
	struct val_builder wanted = val_builder(a);

	if (val_len(limits) == 0 && val_len(requests) == 0)
		return resources;
	sums = pod_container_resources(a, spec, A_limits);
	VAL_EACH_MEMBER(m, sums)
		if (!val_exists(sorted_find(requests, atom_str(m->key))))
			val_add_member(&wanted, m->key, m->val);
	limits = add_missing(a, limits, val_end_object(&wanted), resource_is_huge_page);
	return val_len(limits) ? val_put(a, resources, A_limits, limits) : resources;
}

/* Pod-level requests: the sum of the containers' for what can be overcommitted, else the pod's limit. */
static struct val pod_level_requests(struct arena *a, struct val resources, struct val spec)
{
	struct val limits = val_get(resources, limits), requests = val_get(resources, requests);

	if (val_len(limits) == 0)
		return resources;
	requests = add_missing(a, requests, pod_container_resources(a, spec, A_requests), pod_level_sum);
	requests = add_missing(a, requests, limits, resource_is_pod_level);
	return val_len(requests) ? val_put(a, resources, A_requests, requests) : resources;
}

/* podIP is the first of podIPs, whichever was given. */
static struct val default_pod_ips(struct arena *a, struct val status)
{
	struct val ip = val_get(status, podIP), first = val_get(val_at(val_get(status, podIPs), 0), ip);

	if (val_exists(ip) && !val_equal(ip, first))
		return val_put(a, status, A_podIPs, LIST(a, OBJECT(a, F(ip, ip))));
	return val_exists(first) ? val_put(a, status, A_podIP, first) : status;
}

static struct val default_container_status(struct arena *a, struct val status)
{
	status = edit_member(a, status, A_allocatedResources, default_resource_list);
	return edit_member(a, status, A_resources, default_resources);
}

static struct val default_container_statuses(struct arena *a, struct val list)
{
	return edit_items(a, list, default_container_status);
}

static struct val default_pod_status(struct arena *a, struct val status)
{
	status = default_pod_ips(a, status);
	status = edit_member(a, status, A_initContainerStatuses, default_container_statuses);
	status = edit_member(a, status, A_containerStatuses, default_container_statuses);
	status = edit_member(a, status, A_ephemeralContainerStatuses, default_container_statuses);
	status = edit_member(a, status, A_allocatedResources, default_resource_list);
	return edit_member(a, status, A_resources, default_resources);
}

struct val default_pod(struct arena *a, struct val pod)
{
	struct val spec = val_get(pod, spec);

	spec = edit_member(a, spec, A_containers, containers_requests);
	spec = edit_member(a, spec, A_initContainers, containers_requests);
	if (val_has(spec, resources)) {
		spec = val_put(a, spec, A_resources, huge_page_limits(a, val_get(spec, resources), spec));
		spec = val_put(a, spec, A_resources, pod_level_requests(a, val_get(spec, resources), spec));
	}
	spec = default_member(a, spec, A_enableServiceLinks, val_of_bool(true));
	if (val_bool(spec, hostNetwork)) {
		spec = edit_member(a, spec, A_containers, containers_host_ports);
		spec = edit_member(a, spec, A_initContainers, containers_host_ports);
	}
	if (val_int(spec, terminationGracePeriodSeconds) < 0)
		spec = val_put(a, spec, A_terminationGracePeriodSeconds, val_of_int(1));
	pod = val_put(a, pod, A_spec, default_pod_spec(a, spec));
	return edit_member(a, pod, A_status, default_pod_status);
}
