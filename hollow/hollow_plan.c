#include "hollow/hollow_plan.h"

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "codec/time.h"
#include "machinery/resources.h"

#define SECONDS "hollow.c8s.io/seconds"
#define EXIT_CODE "hollow.c8s.io/exit-code"

#define NODE_NET UINT32_C(0xac100000) /* 172.16.0.0 */
#define POD_NET UINT32_C(0x0a800000)  /* 10.128.0.0 */

enum { POD_BITS = 7, LEASE_S = 40 };

/* ---- addresses and times ---- */

static str format_v4(uint32_t address, char out[IP_TEXT_MAX])
{
	struct ip ip = { .family = 4, .b = { [10] = 0xff, [11] = 0xff } };

	for (int i = 0; i < 4; i++)
		ip.b[12 + i] = (uint8_t)(address >> (24 - 8 * i));
	return ip_format(&ip, out);
}

str hollow_node_ip(uint32_t index, char out[IP_TEXT_MAX]) { return format_v4(NODE_NET + index + 1, out); }

str hollow_pod_ip(uint32_t index, unsigned slot, char out[IP_TEXT_MAX]) { return format_v4(POD_NET + (index << POD_BITS) + slot + 1, out); }

int hollow_slot_of(uint32_t index, str text)
{
	struct ip ip;
	uint32_t address = 0, first = POD_NET + (index << POD_BITS) + 1;

	if (!ip_parse(text, &ip, NULL) || ip.family != 4)
		return -1;
	for (int i = 0; i < 4; i++)
		address = address << 8 | ip.b[12 + i];
	return address >= first && address < first + HOLLOW_PODS_MAX ? (int)(address - first) : -1;
}

static struct val time_of(struct arena *a, int64_t ns)
{
	char text[TIME_TEXT_MAX];
	return VAL_STR(arena_str(a, time_format((struct timestamp){ .seconds = ns / NS_PER_S }, text)));
}

static struct val microtime_of(struct arena *a, int64_t ns)
{
	char text[TIME_TEXT_MAX];
	return VAL_STR(arena_str(a, microtime_format((struct timestamp){ ns / NS_PER_S, (int32_t)(ns % NS_PER_S) }, text)));
}

/* ---- nodes ---- */

static void put(struct arena *a, struct val_builder *map, const char *key, str value) { val_add_member(map, atom_make(a, str_of(key)), VAL_STR(value)); }

static struct val node_labels(struct arena *a, const struct hollow_options *o, uint32_t index, str name)
{
	struct val_builder map = val_builder(a);

	put(a, &map, "beta.kubernetes.io/arch", STR("amd64"));
	put(a, &map, "beta.kubernetes.io/os", STR("linux"));
	put(a, &map, HOLLOW_LABEL, STR("true"));
	put(a, &map, "kubernetes.io/arch", STR("amd64"));
	put(a, &map, "kubernetes.io/hostname", name);
	put(a, &map, "kubernetes.io/os", STR("linux"));
	if (o->zones > 0)
		put(a, &map, "topology.kubernetes.io/zone", arena_printf(a, "zone-%lld", (long long)(index % o->zones)));
	return val_end_object(&map);
}

static int node_taints(struct arena *a, const struct hollow_options *o, struct val *ret, struct err *err)
{
	struct val_builder list = val_builder(a);
	str head, effect, key, value;

	for (size_t i = 0; o->taints && o->taints[i]; i++) {
		if (!str_cut(str_of(o->taints[i]), ':', &head, &effect) || !effect.n)
			return err_set(err, ERR_INVALID, "a taint is key=value:effect, not %s", o->taints[i]);
		(void)str_cut(head, '=', &key, &value);
		val_add_item(&list, OBJECT(a, F(key, VAL_STR(key)), F(value, value.n ? VAL_STR(value) : VAL_EMPTY), F(effect, VAL_STR(effect))));
	}
	*ret = list.n ? val_end_list(&list) : VAL_EMPTY;
	return 0;
}

static struct val condition(struct arena *a, const char *type, bool is, const char *reason, const char *message, int64_t now_ns)
{
	return OBJECT(a, F(type, VAL_STR(str_of(type))), F(status, is ? VAL_LIT("True") : VAL_LIT("False")), F(lastHeartbeatTime, time_of(a, now_ns)),
		      F(lastTransitionTime, time_of(a, now_ns)), F(reason, VAL_STR(str_of(reason))), F(message, VAL_STR(str_of(message))));
}

static struct val conditions(struct arena *a, int64_t now_ns)
{
	return LIST(a, condition(a, "MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available", now_ns),
		    condition(a, "DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure", now_ns),
		    condition(a, "PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available", now_ns),
		    condition(a, "Ready", true, "KubeletReady", "kubelet is posting ready status", now_ns));
}

static struct val node_info(struct arena *a, str name)
{
	return OBJECT(a, F(machineID, VAL_STR(name)), F(systemUUID, VAL_STR(name)), F(bootID, VAL_STR(name)), F(kernelVersion, VAL_LIT("6.1.0")),
		      F(osImage, VAL_LIT("hollow")), F(containerRuntimeVersion, VAL_LIT("hollow://1.0")), F(kubeletVersion, VAL_LIT("v1.36.4")),
		      F(kubeProxyVersion, VAL_LIT("")), F(operatingSystem, VAL_LIT("linux")), F(architecture, VAL_LIT("amd64")));
}

int hollow_node(struct arena *a, const struct hollow_options *o, uint32_t index, str name, int64_t now_ns, struct val *ret, struct err *err)
{
	char ip[IP_TEXT_MAX];
	struct val taints, amounts;
	int r = node_taints(a, o, &taints, err);

	if (r < 0)
		return r;
	amounts = OBJECT(a, F(cpu, VAL_STR(str_of(o->cpu ? o->cpu : HOLLOW_CPU))), F(memory, VAL_STR(str_of(o->memory ? o->memory : "256Gi"))),
			 F(pods, VAL_STR(arena_printf(a, "%lld", (long long)(o->pods > 0 ? o->pods : HOLLOW_PODS)))));
	*ret = OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(name)), F(labels, node_labels(a, o, index, name)))),
		      F(spec, OBJECT(a, F(taints, taints))),
		      F(status, OBJECT(a, F(capacity, amounts), F(allocatable, amounts), F(conditions, conditions(a, now_ns)),
				       F(addresses, LIST(a, OBJECT(a, F(type, VAL_LIT("InternalIP")), F(address, VAL_STR(arena_str(a, hollow_node_ip(index, ip))))),
							 OBJECT(a, F(type, VAL_LIT("Hostname")), F(address, VAL_STR(name))))),
				       F(nodeInfo, node_info(a, name)))));
	return 0;
}

struct val hollow_node_ready(struct arena *a, int64_t now_ns) { return OBJECT(a, F(status, OBJECT(a, F(conditions, conditions(a, now_ns))))); }

struct val hollow_lease(struct arena *a, str node, str node_uid, int64_t now_ns)
{
	struct val owner = OBJECT(a, F(apiVersion, VAL_LIT("v1")), F(kind, VAL_LIT("Node")), F(name, VAL_STR(node)), F(uid, VAL_STR(node_uid)));

	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_STR(node)), F(namespace, VAL_LIT("kube-node-lease")), F(ownerReferences, LIST(a, owner)))),
		      F(spec, OBJECT(a, F(holderIdentity, VAL_STR(node)), F(leaseDurationSeconds, val_of_int(LEASE_S)),
				     F(renewTime, microtime_of(a, now_ns)))));
}

struct val hollow_renewal(struct arena *a, int64_t now_ns) { return OBJECT(a, F(spec, OBJECT(a, F(renewTime, microtime_of(a, now_ns))))); }

/* ---- pods ---- */

static int64_t annotation_number(struct val pod, str key, int64_t otherwise)
{
	int64_t n;
	return str_to_i64(val_as_str(val_find(val_get(pod, metadata, annotations), key)), &n) ? n : otherwise;
}

/* Of a node, or of a pod. */
static bool is_ready(struct val object)
{
	VAL_EACH(c, val_get(object, status, conditions))
		if (str_eq(val_str(*c, type), STR("Ready")))
			return str_eq(val_str(*c, status), STR("True"));
	return false;
}

static bool has_ended(struct val pod)
{
	return str_eq(val_str(pod, status, phase), STR("Succeeded")) || str_eq(val_str(pod, status, phase), STR("Failed"));
}

static int64_t since_ms(struct val time, int64_t now_ns)
{
	struct timestamp t;
	return time_parse(val_as_str(time), &t, NULL) == 0 ? now_ns / NS_PER_MS - t.seconds * 1000 : 0;
}

struct hollow_pod hollow_pod_plan(const struct hollow_options *o, struct val pod, int64_t seen_ns, int64_t now_ns)
{
	int64_t seconds = annotation_number(pod, STR(SECONDS), -1);

	if (val_has(pod, metadata, deletionTimestamp)) {
		int64_t grace_ms = val_int(pod, metadata, deletionGracePeriodSeconds) * 1000;
		/* deletionTimestamp is when the grace period ends. */
		int64_t asked_ms = since_ms(val_get(pod, metadata, deletionTimestamp), now_ns) + grace_ms;
		int64_t takes_ms = has_ended(pod) ? 0 : MIN(o->stop_ms, grace_ms);
		return (struct hollow_pod){ HOLLOW_STOP, MAX(takes_ms - asked_ms, (int64_t)0) };
	}
	if (has_ended(pod))
		return (struct hollow_pod){ HOLLOW_REST, 0 };
	if (!str_eq(val_str(pod, status, phase), STR("Running")))
		return (struct hollow_pod){ HOLLOW_START, MAX(o->start_ms - (now_ns - seen_ns) / NS_PER_MS, (int64_t)0) };
	if (!is_ready(pod)) /* so said the node's controller while it heard nothing */
		return (struct hollow_pod){ HOLLOW_READY, 0 };
	if (seconds < 0 || !str_eq(val_str(pod, spec, restartPolicy), STR("Never")))
		return (struct hollow_pod){ HOLLOW_REST, 0 };
	return (struct hollow_pod){ HOLLOW_FINISH, MAX(seconds * 1000 - since_ms(val_get(pod, status, startTime), now_ns), (int64_t)0) };
}

static struct val pod_condition_of(struct arena *a, struct val pod, const char *type, bool is, const char *reason, int64_t now_ns)
{
	return OBJECT(a, F(type, VAL_STR(str_of(type))), F(observedGeneration, val_get(pod, metadata, generation)),
		      F(status, is ? VAL_LIT("True") : VAL_LIT("False")), F(lastTransitionTime, time_of(a, now_ns)),
		      F(reason, reason ? VAL_STR(str_of(reason)) : VAL_EMPTY));
}

/* Statuses of containers; sidecars among init containers run like the others, the rest of them is done. */
static struct val container_statuses(struct arena *a, struct val pod, struct val containers, bool init, bool ended, int64_t exit_code, int64_t now_ns)
{
	struct val_builder list = val_builder(a);

	VAL_EACH(c, containers) {
		bool runs = !ended && (!init || container_is_sidecar(*c));
		bool good = exit_code == 0 || (init && !container_is_sidecar(*c));
		struct val running = OBJECT(a, F(running, OBJECT(a, F(startedAt, time_of(a, now_ns)))));
		struct val done = OBJECT(a, F(terminated, OBJECT(a, F(exitCode, val_of_int(good ? 0 : exit_code)),
								 F(reason, good ? VAL_LIT("Completed") : VAL_LIT("Error")),
								 F(startedAt, val_has(pod, status, startTime) ? val_get(pod, status, startTime) : time_of(a, now_ns)),
								 F(finishedAt, time_of(a, now_ns)))));
		struct val id = VAL_STR(arena_printf(a, "hollow://" STR_FMT "-" STR_FMT, STR_ARG(val_str(pod, metadata, uid)), STR_ARG(val_str(*c, name))));
		val_add_item(&list, OBJECT(a, F(name, val_get(*c, name)), F(state, runs ? running : done), F(lastState, VAL_EMPTY_OBJECT),
					   F(ready, val_of_bool(runs || (init && !ended))), F(restartCount, val_of_int(0)), F(image, val_get(*c, image)),
					   F(imageID, val_get(*c, image)), F(containerID, id), F(started, val_of_bool(runs))));
	}
	return list.n ? val_end_list(&list) : VAL_EMPTY;
}

static struct val all_statuses(struct arena *a, struct val pod, struct val status, bool ended, int64_t exit_code, int64_t now_ns)
{
	status = val_with(a, status, container_statuses(a, pod, val_get(pod, spec, containers), false, ended, exit_code, now_ns), containerStatuses);
	return val_with(a, status, container_statuses(a, pod, val_get(pod, spec, initContainers), true, ended, exit_code, now_ns), initContainerStatuses);
}

static struct val pod_patch(struct arena *a, struct val pod, struct val status)
{
	status = val_with(a, status, val_get(pod, metadata, generation), observedGeneration);
	return OBJECT(a, F(metadata, OBJECT(a, F(uid, val_get(pod, metadata, uid)))), F(status, status));
}

struct val hollow_pod_running(struct arena *a, struct val pod, str host_ip, str pod_ip, int64_t now_ns)
{
	struct val status = OBJECT(a, F(phase, VAL_LIT("Running")),
				   F(conditions, LIST(a, pod_condition_of(a, pod, "PodReadyToStartContainers", true, NULL, now_ns),
						      pod_condition_of(a, pod, "Initialized", true, NULL, now_ns),
						      pod_condition_of(a, pod, "Ready", true, NULL, now_ns),
						      pod_condition_of(a, pod, "ContainersReady", true, NULL, now_ns),
						      pod_condition_of(a, pod, "PodScheduled", true, NULL, now_ns))),
				   F(hostIP, VAL_STR(host_ip)), F(hostIPs, LIST(a, OBJECT(a, F(ip, VAL_STR(host_ip))))), F(podIP, VAL_STR(pod_ip)),
				   F(podIPs, LIST(a, OBJECT(a, F(ip, VAL_STR(pod_ip))))), F(startTime, time_of(a, now_ns)));

	return pod_patch(a, pod, all_statuses(a, pod, status, false, 0, now_ns));
}

int64_t hollow_pod_cpu(struct val pod) { return quantity_milli(quantity_of(val_get(pod, spec, resources, requests, cpu))); }

struct val hollow_pod_refused(struct arena *a, struct val pod, struct hollow_room used, struct hollow_room all)
{
	bool cpu = used.cpu_milli + hollow_pod_cpu(pod) > all.cpu_milli;
	int64_t numbers[] = { cpu ? hollow_pod_cpu(pod) : 1, cpu ? used.cpu_milli : used.pods, cpu ? all.cpu_milli : all.pods };
	str message = arena_printf(a, "Pod was rejected: Node didn't have enough resource: %s, requested: %lld, used: %lld, capacity: %lld",
				   cpu ? "cpu" : "pods", (long long)numbers[0], (long long)numbers[1], (long long)numbers[2]);

	return pod_patch(a, pod, OBJECT(a, F(phase, VAL_LIT("Failed")), F(reason, cpu ? VAL_LIT("OutOfcpu") : VAL_LIT("OutOfpods")),
					F(message, VAL_STR(message))));
}

struct val hollow_pod_ready(struct arena *a, struct val pod, int64_t now_ns)
{
	return pod_patch(a, pod, OBJECT(a, F(conditions, LIST(a, pod_condition_of(a, pod, "Ready", true, NULL, now_ns)))));
}

struct val hollow_pod_ended(struct arena *a, struct val pod, int64_t now_ns)
{
	int64_t exit_code = val_has(pod, metadata, deletionTimestamp) ? 0 : annotation_number(pod, STR(EXIT_CODE), 0);
	const char *reason = exit_code ? "PodFailed" : "PodCompleted";
	struct val status = OBJECT(a, F(phase, exit_code ? VAL_LIT("Failed") : VAL_LIT("Succeeded")),
				   F(conditions, LIST(a, pod_condition_of(a, pod, "PodReadyToStartContainers", false, NULL, now_ns),
						      pod_condition_of(a, pod, "Initialized", true, exit_code ? NULL : reason, now_ns),
						      pod_condition_of(a, pod, "Ready", false, reason, now_ns),
						      pod_condition_of(a, pod, "ContainersReady", false, reason, now_ns))));

	return pod_patch(a, pod, all_statuses(a, pod, status, true, exit_code, now_ns));
}

/* ---- what is kept ---- */

static struct val keep_containers(struct arena *a, struct val containers)
{
	struct val_builder list = val_builder(a);

	VAL_EACH(c, containers)
		val_add_item(&list, OBJECT(a, F(name, val_get(*c, name)), F(image, val_get(*c, image)), F(restartPolicy, val_get(*c, restartPolicy))));
	return list.n ? val_end_list(&list) : VAL_EMPTY;
}

static struct val keep_annotations(struct arena *a, struct val pod)
{
	struct val_builder map = val_builder(a);

	VAL_EACH_MEMBER(m, val_get(pod, metadata, annotations))
		if (str_starts(atom_str(m->key), STR("hollow.c8s.io/")))
			val_add_member(&map, m->key, m->val);
	return map.n ? val_end_object(&map) : VAL_EMPTY;
}

static struct val keep_ready(struct arena *a, struct val pod)
{
	return LIST(a, OBJECT(a, F(type, VAL_LIT("Ready")), F(status, is_ready(pod) ? VAL_LIT("True") : VAL_LIT("False"))));
}

struct val hollow_keep_pod(struct arena *a, struct val pod)
{
	struct val meta = val_get(pod, metadata), cpu = val_get(pod_container_resources(a, val_get(pod, spec), A_requests), cpu);

	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_get(meta, name)), F(namespace, val_get(meta, namespace)), F(uid, val_get(meta, uid)),
					    F(resourceVersion, val_get(meta, resourceVersion)), F(generation, val_get(meta, generation)),
					    F(deletionTimestamp, val_get(meta, deletionTimestamp)),
					    F(deletionGracePeriodSeconds, val_get(meta, deletionGracePeriodSeconds)), F(annotations, keep_annotations(a, pod)),
					    F(finalizers, val_get(meta, finalizers)))),
		      F(spec, OBJECT(a, F(nodeName, val_get(pod, spec, nodeName)), F(hostNetwork, val_get(pod, spec, hostNetwork)),
				     F(restartPolicy, val_get(pod, spec, restartPolicy)), F(containers, keep_containers(a, val_get(pod, spec, containers))),
				     F(initContainers, keep_containers(a, val_get(pod, spec, initContainers))),
				     F(resources, val_exists(cpu) ? OBJECT(a, F(requests, OBJECT(a, F(cpu, cpu)))) : VAL_EMPTY))),
		      F(status, OBJECT(a, F(phase, val_get(pod, status, phase)), F(podIP, val_get(pod, status, podIP)),
				       F(startTime, val_get(pod, status, startTime)), F(conditions, keep_ready(a, pod)))));
}

/* As in controllers/local_path_plan.h, which kubelets know by this name alone. */
#define FOLDERS STR("local-path.c8s.io/remove")

bool hollow_has_folders(struct val node) { return val_as_str(val_find(val_get(node, metadata, annotations), FOLDERS)).n > 0; }

struct val hollow_folders_gone(struct arena *a)
{
	struct val annotations = val_put(a, VAL_EMPTY_OBJECT, atom_make(a, FOLDERS), VAL_NULL_VALUE);

	return OBJECT(a, F(metadata, OBJECT(a, F(annotations, annotations))));
}

/* conditions: one of type Ready, alone. annotations: the one that asks for something. */
struct val hollow_keep_node(struct arena *a, struct val node)
{
	struct val ready = OBJECT(a, F(type, VAL_LIT("Ready")), F(status, is_ready(node) ? VAL_LIT("True") : VAL_LIT("False")));
	struct val folders = val_find(val_get(node, metadata, annotations), FOLDERS);
	struct val asks = val_exists(folders) ? val_put(a, VAL_EMPTY_OBJECT, atom_make(a, FOLDERS), folders) : VAL_EMPTY;

	return OBJECT(a, F(metadata, OBJECT(a, F(name, val_get(node, metadata, name)), F(uid, val_get(node, metadata, uid)),
					    F(resourceVersion, val_get(node, metadata, resourceVersion)), F(annotations, asks))),
		      F(status, OBJECT(a, F(conditions, LIST(a, ready)))));
}
