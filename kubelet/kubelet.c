/* All parts of a kubelet put together. What depends on others is made after them and ends before them. */
#include "kubelet/kubelet.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "client/kubeconfig.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "codec/quantity.h"
#include "kubelet/kubelet_priv.h"
#include "kubelet/local_path.h"
#include "kubelet/node_machine.h"
#include "kubelet/pod_rules.h"
#include "kubelet/pods_priv.h"

enum {
	RUNTIME_WAIT_MS = 30000, RUNTIME_TRY_MS = 50, /* for the runtime to answer at the start */
	RUNTIME_LOOK_MS = 5000,                       /* how it is */
	RUNTIME_LOOK_SOON_MS = 200,                   /* the same, while it is not well */
	CLEAN_MS = 30000,                             /* what pods have left */
	IMAGES_MS = 300000,
	EVICTION_WAIT_MS = 10000, EVICTION_TRY_MS = 50, /* for the pods to be known */
	FIRST_POD_ID = 65536,                         /* of those for user namespaces: below are the node's own users */
};

/* ---- events ---- */

static str field_path(struct arena *a, struct val pod, str container)
{
	static const struct { atom list; const char *name; } lists[] = {
		{ A_containers, "containers" }, { A_initContainers, "initContainers" }, { A_ephemeralContainers, "ephemeralContainers" } };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (val_exists(find_named(val_member(val_get(pod, spec), lists[i].list), container)))
			return arena_printf(a, "spec.%s{" STR_FMT "}", lists[i].name, STR_ARG(container));
	return STR_NONE;
}

void kubelet_event(struct kubelet *k, struct val pod, str container, bool warning, const char *reason, str message)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val about;

	if (!k->recorder)
		return;
	if (val_exists(pod)) {
		str path = container.n ? field_path(&a, pod, container) : STR_NONE;
		about = OBJECT(&a, F(kind, VAL_LIT("Pod")), F(namespace, val_get(pod, metadata, namespace)), F(name, val_get(pod, metadata, name)),
			       F(uid, val_get(pod, metadata, uid)), F(apiVersion, VAL_LIT("v1")), F(resourceVersion, val_get(pod, metadata, resourceVersion)),
			       F(fieldPath, path.n ? VAL_STR(path) : VAL_EMPTY));
	} else {
		about = OBJECT(&a, F(kind, VAL_LIT("Node")), F(name, VAL_STR(k->node.name)), F(apiVersion, VAL_LIT("v1")));
	}
	record(k->recorder, about, warning ? RECORD_WARNING : RECORD_NORMAL, reason, STR_FMT, STR_ARG(message));
}

static void hook_event(void *arg, struct val pod, bool warning, const char *reason, str message)
{
	kubelet_event(arg, pod, STR_NONE, warning, reason, message);
}

int kubelet_runtime_handler(struct kubelet *k, struct val pod, str *ret, struct err *err)
{
	str class = val_str(pod, spec, runtimeClassName);

	*ret = STR_NONE;
	if (!class.n)
		return 0;
	const struct frozen *found = k->runtime_classes ? informer_get(k->runtime_classes, class) : NULL;
	if (!found)
		return err_set(err, ERR_NOT_FOUND, "RuntimeClass \"" STR_FMT "\" not found", STR_ARG(class));
	*ret = val_str(found->val, handler);
	return 0;
}

/* A runtime that does not know of them would run the pod without. */
static int check_user_namespaces(struct kubelet *k, struct arena *a, struct val pod, struct err *err)
{
	struct val handlers = k->runtime_status ? val_get(k->runtime_status->val, runtimeHandlers) : VAL_EMPTY;
	str name, what = STR("runtime"), why = STR_NONE;
	int r = kubelet_runtime_handler(k, pod, &name, err);

	if (r < 0)
		return r;
	if (val_len(handlers))
		why = arena_printf(a, ": the handler \"" STR_FMT "\" is not known", STR_ARG(name));
	VAL_EACH(h, handlers)
		if (str_eq(val_str(*h, name), name)) {
			if (val_bool(*h, features, userNamespaces))
				return 0;
			why = STR_NONE;
		}
	if (name.n)
		what = arena_printf(a, "RuntimeClass handler \"" STR_FMT "\"", STR_ARG(name));
	return err_set(err, ERR_UNAVAILABLE, "can't set `spec.hostUsers: false`, " STR_FMT " does not support user namespaces" STR_FMT, STR_ARG(what),
		       STR_ARG(why));
}

static int hook_user_namespace(void *arg, struct arena *a, struct val pod, struct val *ret, struct err *err)
{
	struct kubelet *k = arg;
	int r = check_user_namespaces(k, a, pod, err);

	return r < 0 ? r : user_namespaces_of(k->user_namespaces, a, pod, ret, err);
}

static struct val hook_extra_groups(void *arg, struct arena *a, struct val pod)
{
	struct kubelet *k = arg;
	return volumes_groups(k->volumes, a, pod);
}

static void image_event(struct val pod, str container, bool warning, const char *reason, str message, void *arg)
{
	kubelet_event(arg, pod, container, warning, reason, message);
}

static void probe_event(struct val pod, str container, bool warning, str reason, str message, void *arg)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	kubelet_event(arg, pod, container, warning, arena_str(&a, reason).p, message);
}

/* ---- what parts tell each other ---- */

static void probe_changed(str uid, str container, enum probe_kind kind, enum probe_result result, void *arg)
{
	struct kubelet *k = arg;

	if (result == PROBE_FAILURE && kind != PROBE_READINESS)
		pods_probe_failed(k->pods, uid, container, kind == PROBE_STARTUP);
	else
		pods_poke(k->pods, uid);
}

static void runtime_changed(str uid, void *arg)
{
	struct kubelet *k = arg;
	pods_wake(k->pods, uid);
}

static void runtime_back(void *arg)
{
	struct kubelet *k = arg;
	pods_retry(k->pods);
}

static void source_update(void *arg, struct frozen *pod)
{
	struct kubelet *k = arg;
	pods_update(k->pods, pod);
}

static void source_remove(void *arg, str uid)
{
	struct kubelet *k = arg;
	pods_remove(k->pods, uid);
}

static str mirror_of(void *arg, struct arena *a, str uid)
{
	struct kubelet *k = arg;
	return k->sources ? sources_mirror_uid(k->sources, a, uid) : STR_NONE;
}

static void mirror_changed(void *arg, str uid, struct frozen *mirror)
{
	struct kubelet *k = arg;

	(void)uid;
	if (mirror)
		statuses_check(k->statuses, mirror);
}

static bool may_delete(void *arg, str uid)
{
	struct kubelet *k = arg;
	return pods_is_gone(k->pods, uid);
}

static struct val active_pods(void *arg, struct arena *a)
{
	struct kubelet *k = arg;
	return pods_list(k->pods, a, true);
}

/* Before all are known, none of them has ended. */
static struct val known_pods(void *arg, struct arena *a)
{
	struct kubelet *k = arg;
	return pods_are_complete(k->pods) ? pods_list(k->pods, a, true) : VAL_EMPTY;
}

static bool container_runs(void *arg, str uid, str container)
{
	struct kubelet *k = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct runtime_pod has;

	runtime_pods_get(k->runtime_pods, &a, uid, &has);
	VAL_EACH(c, has.containers)
		if (str_eq(val_str(*c, metadata, name), container) && container_cri_state(*c) == CRI_RUNNING)
			return true;
	return false;
}

static int evict(void *arg, struct val pod, str reason, str message, struct val condition, int64_t grace_s, struct err *err)
{
	struct kubelet *k = arg;

	return pods_evict(k->pods, val_str(pod, metadata, uid), reason, message, condition, grace_s, true, err);
}

static int evict_for_shutdown(void *arg, struct val pod, str reason, str message, struct val condition, int64_t grace_s, struct err *err)
{
	return eviction_within_grace(&(struct eviction_options){ .evict = evict, .event = hook_event, .arg = arg }, pod, reason, message, condition,
				     grace_s, err);
}

static void node_changed(void *arg)
{
	struct kubelet *k = arg;
	node_keeper_hurry(k->node_keeper);
}

static void device_changed(void *arg, str uid)
{
	struct kubelet *k = arg;
	pods_poke(k->pods, uid);
}

/* Before all are known, none of them is. */
static bool pod_deleted(void *arg, str uid)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet *k = arg;
	return pods_are_complete(k->pods) && !val_exists(pods_by_uid(k->pods, &a, uid));
}

static bool pod_ended(void *arg, str uid)
{
	struct kubelet *k = arg;
	return pods_may_clean(k->pods, uid);
}

/* ---- the runtime ---- */

static void network_problem(struct kubelet *k)
{
	k->network_problem = STR("container runtime status check may not have completed yet");
	if (!k->runtime_status)
		return;
	VAL_EACH(c, val_get(k->runtime_status->val, status, conditions)) {
		if (!str_eq(val_str(*c, type), STR("NetworkReady")))
			continue;
		k->network_problem = STR_NONE;
		if (val_bool(*c, status))
			continue;
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		text_set(&k->network_text, arena_printf(&a, "container runtime network not ready: NetworkReady=false reason:" STR_FMT " message:" STR_FMT,
							STR_ARG(val_str(*c, reason)), STR_ARG(val_str(*c, message))));
		k->network_problem = str_of(k->network_text);
	}
}

static void take_runtime_status(struct kubelet *k, struct val status)
{
	struct frozen *was = k->runtime_status;

	k->runtime_status = val_exists(status) ? val_freeze(status) : NULL;
	if (was && k->runtime_status && val_equal(was->val, k->runtime_status->val)) {
		frozen_unref(was);
		return;
	}
	frozen_unref(was);
	network_problem(k);
	VAL_EACH(h, val_get(status, runtimeHandlers))
		if (!val_str(*h, name).n)
			k->recursive_readonly = val_bool(*h, features, recursiveReadOnlyMounts);
	if (k->node_keeper)
		node_keeper_hurry(k->node_keeper);
}

/* (suspends) */
static int look_at_runtime(struct kubelet *k, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err failed = ERR_INIT;
	struct val status = VAL_EMPTY;

	if (cri_ask(k->cri, &rpc_RuntimeService_Status, &a, VAL_EMPTY_OBJECT, 0, &status, &failed) < 0)
		status = VAL_EMPTY;
	int r = fiber_check(err);
	if (r >= 0)
		take_runtime_status(k, status);
	return r;
}

/* (suspends, until canceled) */
static int watch_runtime(struct kubelet *k, struct err *err)
{
	int r;

	do {
		if ((r = look_at_runtime(k, err)) < 0)
			break;
	} while ((r = fiber_sleep_ms(k->network_problem.n ? RUNTIME_LOOK_SOON_MS : RUNTIME_LOOK_MS, err)) >= 0);
	return r;
}

static int open_runtime(struct kubelet *k, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val c = k->config, version;
	int64_t until = clock_now_ns() + RUNTIME_WAIT_MS * NS_PER_MS;
	int r;

	if (k->options->inside) {
		k->cri = cri_inside(k->options->inside);
	} else {
		str image = val_str(c, imageServiceEndpoint);
		if ((r = cri_open(arena_str(&a, val_str(c, containerRuntimeEndpoint)).p, image.n ? arena_str(&a, image).p : NULL, &k->cri, err)) < 0)
			return r;
	}
	while ((r = cri_ask(k->cri, &rpc_RuntimeService_Version, &a, VAL_EMPTY_OBJECT, 0, &version, err)) < 0 && r != -ERR_CANCELED &&
	       clock_now_ns() < until && fiber_sleep_ms(RUNTIME_TRY_MS, err) >= 0)
		;
	if (r < 0)
		return err_wrap(err, r, "the container runtime at " STR_FMT " does not answer", STR_ARG(val_str(c, containerRuntimeEndpoint)));
	k->runtime_name = arena_str(&k->arena, val_str(version, runtimeName));
	return look_at_runtime(k, err);
}

/* ---- the node ---- */

static struct val sum(struct arena *a, struct val map, struct val add)
{
	VAL_EACH_MEMBER(m, add) {
		struct quantity q = quantity_add(quantity_of(val_member(map, m->key)), quantity_of(m->val));
		char text[QUANTITY_TEXT_MAX];
		map = val_put(a, map, m->key, VAL_STR(arena_str(a, quantity_format(q, text))));
	}
	return map;
}

/* What pods do not get: kubeReserved and systemReserved; and what evictions keep free, if there is a kubelet that knows. */
static struct val reserved(struct kubelet *k, struct arena *a, bool evictions)
{
	struct val all = sum(a, sum(a, VAL_EMPTY_OBJECT, val_get(k->config, kubeReserved)), val_get(k->config, systemReserved));
	int64_t disk = 0;
	struct err err = ERR_INIT;

	if (node_storage_bytes(k->node.root.p, &disk, &err) < 0)
		disk = 0;
	return evictions ? sum(a, all, eviction_reserved(k->config, a, k->node.memory_bytes, disk)) : all;
}

static void facts(void *arg, struct arena *a, struct node_facts *f)
{
	struct kubelet *k = arg;
	struct err err = ERR_INIT;

	if (cri_ask(k->cri, &rpc_RuntimeService_Version, a, VAL_EMPTY_OBJECT, 0, &f->runtime_version, &err) < 0)
		f->runtime_version = VAL_EMPTY;
	f->runtime_status = k->runtime_status ? val_copy(a, k->runtime_status->val) : VAL_EMPTY;
	if (images_of_node(k->images, a, &f->images, &err) < 0)
		f->images = VAL_EMPTY;
	f->memory_pressure = eviction_memory_pressure(k->eviction);
	f->disk_pressure = eviction_disk_pressure(k->eviction);
	f->pids_pressure = eviction_pids_pressure(k->eviction);
	devices_of_node(k->devices, a, &f->devices, &f->healthy_devices);
	f->reserved = reserved(k, a, true);
	f->shutdown = k->shutdown;
	f->problems = k->csi_problem.n ? LIST(a, VAL_STR(k->csi_problem)) : VAL_EMPTY;
}

static void csi_problem(void *arg, str text)
{
	struct kubelet *k = arg;

	if (str_eq(text, k->csi_problem))
		return;
	k->csi_problem = arena_str(&k->arena, text);
	node_keeper_hurry(k->node_keeper);
}

static struct csi_node_options csi_options(struct kubelet *k)
{
	return (struct csi_node_options){ .client = k->client, .node_name = k->node.name, .problem = csi_problem, .arg = k };
}

static int make_csi_node(struct kubelet *k, struct err *err)
{
	struct csi_node_options o = csi_options(k);
	return csi_node_run(&o, err);
}

/* Before anything is told about the node: one that only starts again does not cease to be ready. */
static void try_csi_node(struct kubelet *k)
{
	struct csi_node_options o = csi_options(k);

	k->csi_problem = k->client && csi_node_try(&o, NULL) < 0 ? STR("CSINode is not yet initialized") : STR_NONE;
}

/* The runtime may want to know which addresses its pods get; and then its network may be ready. */
static void tell_pod_cidr(void *arg, str cidr)
{
	struct kubelet *k = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val answer, config = OBJECT(&a, F(networkConfig, OBJECT(&a, F(podCidr, VAL_STR(cidr)))));

	if (cri_ask(k->cri, &rpc_RuntimeService_UpdateRuntimeConfig, &a, OBJECT(&a, F(runtimeConfig, config)), 0, &answer, &err) < 0)
		log_warn("the runtime does not take the pods' network", KV("cidr", cidr), KV("error", &err));
	else
		(void)look_at_runtime(k, NULL);
}

static void set_shutdown(void *arg, str message)
{
	struct kubelet *k = arg;

	k->shutdown = arena_str(&k->arena, message);
	node_keeper_hurry(k->node_keeper);
}

/* ---- loops of a few lines ---- */

void kubelet_refresh_volumes(struct kubelet *k, str uid)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val pod = pods_by_uid(k->pods, &a, uid);

	if (val_exists(pod) && volumes_refresh(k->volumes, pod, &err) < 0 && err.code != ERR_CANCELED)
		kubelet_event(k, pod, STR_NONE, true, "FailedMount", err_str(&err));
}

/* (suspends, until canceled) Contents that nobody tells changes of: tokens. */
static int refresh_volumes(struct kubelet *k, struct err *err)
{
	int64_t look_ms = config_duration_ns(val_get(k->config, syncFrequency)) / NS_PER_MS;
	int r;

	while ((r = fiber_sleep_ms(MAX(look_ms, (int64_t)1), err)) >= 0) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		VAL_EACH(pod, pods_list(k->pods, &a, true))
			kubelet_refresh_volumes(k, val_str(*pod, metadata, uid));
	}
	return r;
}

static void clean_one(struct kubelet *k, str uid)
{
	struct err err = ERR_INIT;

	if (volumes_unmount(k->volumes, uid, &err) < 0)
		log_warn("what a pod has left cannot be removed", KV("pod", uid), KV("error", &err));
	user_namespaces_release(k->user_namespaces, uid);
	err_clear(&err);
	if (k->cgroups && cgroups_pod_remove(k->cgroups, uid, &err) < 0)
		log_warn("the control group of a pod cannot be removed", KV("pod", uid), KV("error", &err));
}

/* What is there of pods that nobody knows: from before a crash. */
static void clean(struct kubelet *k)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct val lists[] = { volumes_pods(k->volumes, &a), k->cgroups ? cgroups_pods(k->cgroups, &a) : VAL_EMPTY };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		VAL_EACH(uid, lists[i]) {
			struct runtime_pod has;
			runtime_pods_get(k->runtime_pods, &a, val_as_str(*uid), &has);
			if (!has.uid.n && pods_may_clean(k->pods, val_as_str(*uid)) && !val_exists(pods_by_uid(k->pods, &a, val_as_str(*uid))))
				clean_one(k, val_as_str(*uid));
		}
}

/* (suspends, until canceled) */
static int clean_up(struct kubelet *k, struct err *err)
{
	int r;

	while ((r = fiber_sleep_ms(CLEAN_MS, err)) >= 0) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err failed = ERR_INIT;
		clean(k);
		pods_start_stranded(k->pods);
		if (k->client && sources_mirror_clean(k->sources, &failed) < 0)
			log_debug("mirror pods are left over", KV("error", &failed));
		if (k->cgroups && cgroups_classes_update(k->cgroups, pods_list(k->pods, &a, true), &failed) < 0)
			log_warn("the control groups of the classes cannot be kept", KV("error", &failed));
	}
	return r;
}

/* (suspends) Those that a container has mounted. */
static int add_mounted_images(struct kubelet *k, struct arena *a, struct val container, struct val_builder *b, struct err *err)
{
	struct val answer;
	int r = cri_ask(k->cri, &rpc_RuntimeService_ContainerStatus, a, OBJECT(a, F(containerId, val_get(container, id))), 0, &answer, err);

	if (r < 0)
		return r == -ERR_NOT_FOUND ? 0 : r;
	VAL_EACH(m, val_get(answer, status, mounts))
		val_add_item(b, val_get(*m, image, image));
	return 0;
}

/* (suspends) Asked for, as what is known of some pods may be old. */
static int images_in_use(struct kubelet *k, struct arena *a, struct val *ret, struct err *err)
{
	struct val_builder b = val_builder(a);
	struct val list;
	int r = cri_ask(k->cri, &rpc_RuntimeService_ListContainers, a, VAL_EMPTY_OBJECT, 0, &list, err);

	if (r < 0)
		return r;
	VAL_EACH(c, val_get(list, containers)) {
		val_add_item(&b, val_get(*c, image, image));
		val_add_item(&b, val_get(*c, imageRef));
		val_add_item(&b, val_get(*c, imageId));
		if ((r = add_mounted_images(k, a, *c, &b, err)) < 0)
			return r;
	}
	*ret = val_end_list(&b);
	return 0;
}

/* (suspends, until canceled) */
static int collect_images(struct kubelet *k, struct err *err)
{
	int r;

	do {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err failed = ERR_INIT;
		struct val used;
		if ((images_in_use(k, &a, &used, &failed) < 0 || images_manager_collect(k->images, used, &failed) < 0) && failed.code &&
		    failed.code != ERR_CANCELED)
			log_warn("images cannot be collected", KV("error", &failed));
	} while ((r = fiber_sleep_ms(IMAGES_MS, err)) >= 0);
	return r;
}

static int64_t free_images(void *arg, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct kubelet *k = arg;
	struct val used;
	int r = images_in_use(k, &a, &used, err);

	return r < 0 ? r : images_manager_remove_unused(k->images, used, err);
}

static struct collect_options collect_options(struct kubelet *k)
{
	struct val c = k->config;

	return (struct collect_options){ .node = &k->node, .cri = k->cri,
		.log_max_bytes = quantity_value(quantity_of(val_get(c, containerLogMaxSize))), .log_max_files = (int)val_int(c, containerLogMaxFiles),
		.log_look_ms = config_duration_ns(val_get(c, containerLogMonitorInterval)) / NS_PER_MS,
		.per_pod = k->options->dead_per_container, .total = k->options->dead_total, .min_age_ns = k->options->dead_min_age_ns,
		.deleted = pod_deleted, .ended = pod_ended, .arg = k };
}

static void free_containers(void *arg)
{
	struct collect_options o = collect_options(arg);
	struct err err = ERR_INIT;

	if (collect_containers(&o, true, &err) < 0)
		log_warn("dead containers cannot be removed", KV("error", &err));
}

/* ---- once all pods are known ---- */

/* Orphans can only be told from others once the runtime has been listed, too. */
static int first_look(void *arg)
{
	struct kubelet *k = arg;
	struct err err = ERR_INIT;

	if (runtime_pods_wait(k->runtime_pods, &err) < 0)
		return 0;
	pods_complete(k->pods);
	clean(k);
	struct collect_options o = collect_options(k);
	if (collect_containers(&o, false, &err) < 0 && err.code != ERR_CANCELED)
		log_warn("dead containers cannot be removed", KV("error", &err));
	return 0;
}

static void source_complete(void *arg)
{
	struct kubelet *k = arg;
	struct err err = ERR_INIT;

	if (fiber_spawn(first_look, k, &k->first_look, &err, "first look at pods") < 0)
		log_error("pods cannot be looked at", KV("error", &err));
}

static int run_collect(struct kubelet *k, struct err *err)
{
	struct collect_options o = collect_options(k);
	return collect_run(&o, err);
}

static int run_runtime_pods(struct kubelet *k, struct err *err) { return runtime_pods_run(k->runtime_pods, err); }
static int run_sources(struct kubelet *k, struct err *err) { return sources_run(k->sources, err); }
static int run_statuses(struct kubelet *k, struct err *err) { return statuses_run(k->statuses, err); }
static int run_node_keeper(struct kubelet *k, struct err *err) { return node_keeper_run(k->node_keeper, err); }

/* Pods that ran before are taken over first: pressure is no reason to refuse those. But they are not waited for for long. */
static int run_eviction(struct kubelet *k, struct err *err)
{
	int r = 0;

	for (int waited_ms = 0; r >= 0 && !pods_are_complete(k->pods) && waited_ms < EVICTION_WAIT_MS; waited_ms += EVICTION_TRY_MS)
		r = fiber_sleep_ms(EVICTION_TRY_MS, err);
	return r < 0 ? r : eviction_run(k->eviction, err);
}

static int run_stats(struct kubelet *k, struct err *err) { return stats_run(k->stats, err); }
static int run_objects(struct kubelet *k, struct err *err) { return objects_run(k->objects, err); }
static int run_allocation(struct kubelet *k, struct err *err) { return pods_allocation_run(k->pods, err); }
static int run_devices(struct kubelet *k, struct err *err) { return devices_run(k->devices, err); }

static int run_local_path(struct kubelet *k, struct err *err)
{
	return kubelet_local_path_run(&(struct local_path_options){ .client = k->client, .node_name = k->node.name, .root = k->options->local_path_root }, err);
}

static int run_certificates(struct kubelet *k, struct err *err) { return certificates_run(k->certificates, err); }

static int run_shutdown(struct kubelet *k, struct err *err)
{
	return shutdown_run(&(struct shutdown_options){ .config = k->config, .node_name = k->node.name, .recorder = k->recorder, .root = k->options->root, .pods = active_pods,
							.evict = evict_for_shutdown, .state = set_shutdown, .arg = k }, err);
}

/* ---- all of it ---- */

static void identity_done(struct client_config **c) { kubelet_identity_free(*c); }

static int open_client(struct kubelet *k, struct err *err)
{
	const struct kubelet_options *o = k->options;
	CLEANUP(identity_done) struct client_config *config = NULL;
	struct val c = k->config;
	int r;

	if (!o->kubeconfig && !o->bootstrap_kubeconfig) {
		log_info("there is no kubeconfig: only pods from files run");
		return 0;
	}
	if ((r = kubelet_identity(o, k->node.name, &config, err)) < 0 || (r = client_open(config, &k->client, err)) < 0)
		return r;
	client_limit(k->client, (double)val_int(c, kubeAPIQPS), (unsigned)val_int(c, kubeAPIBurst));
	k->informers = informers_new(k->client);
	k->services = informers_get(k->informers, TYPE(core_v1, Service), &(struct informer_options){ 0 });
	k->runtime_classes = informers_get(k->informers, TYPE(node_v1, RuntimeClass), &(struct informer_options){ 0 });
	return recorder_new(k->client, STR("kubelet"), k->node.name, &k->recorder, err);
}

static int make_images(struct kubelet *k, struct err *err)
{
	const struct kubelet_options *o = k->options;
	struct val c = k->config;
	str policy = val_str(c, imagePullCredentialsVerificationPolicy);
	int r;

	if (o->image_credential_provider_config &&
	    (r = credential_providers_open(&(struct credential_provider_options){ .config = o->image_credential_provider_config,
			.bin_dir = o->image_credential_provider_bin_dir, .tokens = config_gate(c, STR("KubeletServiceAccountTokenForCredentialProviders")),
			.service_account = credential_provider_account, .token = credential_provider_token, .arg = k->client },
			&k->credential_providers, err)) < 0)
		return r;
	k->images = images_manager_new(&(struct images_manager_options){ .cri = k->cri, .root = o->root, .providers = k->credential_providers,
		.verification = policy.n ? arena_str(&k->arena, policy).p : NULL,
		.qps = (double)val_int(c, registryPullQPS), .burst = (unsigned)val_int(c, registryBurst),
		.parallel = val_has(c, serializeImagePulls) && !val_bool(c, serializeImagePulls), .parallel_max = (unsigned)val_int(c, maxParallelImagePulls),
		.allowed = val_get(c, preloadedImagesVerificationAllowlist), .gc_high_percent = (int)val_int(c, imageGCHighThresholdPercent),
		.gc_low_percent = (int)val_int(c, imageGCLowThresholdPercent),
		.gc_min_age_s = config_duration_ns(val_get(c, imageMinimumGCAge)) / NS_PER_S,
		.gc_max_age_s = config_duration_ns(val_get(c, imageMaximumGCAge)) / NS_PER_S, .event = image_event, .arg = k });
	return 0;
}

static int make_parts(struct kubelet *k, struct err *err)
{
	struct val c = k->config;
	str path = val_str(c, staticPodPath), url = val_str(c, staticPodURL);
	int r;

	if ((r = make_images(k, err)) < 0)
		return r;
	k->user_namespaces = user_namespaces_new(&k->node, FIRST_POD_ID, (size_t)k->node.max_pods);
	k->probes = probes_new(&(struct probes_options){ .cri = k->cri, .changed = probe_changed, .event = probe_event, .arg = k });
	kubelet_lookups_make(k);
	struct val taken = reserved(k, &k->arena, false);
	k->node.memory_for_pods = MAX(k->node.memory_bytes - quantity_value(quantity_of(val_get(taken, memory))), INT64_C(0));
	if ((!val_has(c, cgroupsPerQOS) || val_bool(c, cgroupsPerQOS)) &&
	    (r = cgroups_new(&(struct cgroups_options){ .node = &k->node, .config = c, .reserved = taken }, &k->cgroups, err)) < 0)
		return r;
	if (!k->node.cgroup_v2)
		kubelet_event(k, VAL_EMPTY, STR_NONE, true, "CgroupV1",
			      STR("cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to "
				  "cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"));
	k->devices = devices_new(&(struct devices_options){ .node = &k->node, .pods = known_pods, .runs = container_runs, .changed = node_changed,
							    .pod_changed = device_changed, .arg = k });
	k->stats = stats_new(&(struct stats_options){ .node = &k->node, .cri = k->cri, .cgroups = k->cgroups, .volumes = k->volumes,
						      .pods = active_pods, .arg = k });
	k->eviction = eviction_new(&(struct eviction_options){ .node = &k->node, .config = c, .stats = k->stats, .pods = active_pods, .evict = evict, .gone = may_delete,
							       .free_containers = free_containers, .free_images = free_images,
							       .event = hook_event, .changed = node_changed, .arg = k });
	k->node_keeper = node_keeper_new(&(struct node_keeper_options){ .options = k->options, .node = &k->node, .client = k->client,
									.recorder = k->recorder, .facts = facts, .pod_cidr = tell_pod_cidr, .arg = k });
	k->runtime_pods = runtime_pods_new(&(struct runtime_pods_options){ .cri = k->cri, .changed = runtime_changed,
								   .back = runtime_back, .arg = k });
	k->statuses = statuses_new(&(struct statuses_options){ .client = k->client, .mirror_of = mirror_of, .may_delete = may_delete, .arg = k });
	k->pods = pods_new(k);
	k->sources = sources_new(&(struct sources_options){ .node = &k->node, .client = k->client, .informers = k->informers,
		.path = path.n ? arena_str(&k->arena, path).p : NULL, .url = url.n ? arena_str(&k->arena, url).p : NULL,
		.url_header = val_get(c, staticPodURLHeader), .file_check_ms = config_duration_ns(val_get(c, fileCheckFrequency)) / NS_PER_MS,
		.url_check_ms = config_duration_ns(val_get(c, httpCheckFrequency)) / NS_PER_MS, .update = source_update, .remove = source_remove,
		.complete = source_complete, .mirror = mirror_changed, .gone = may_delete, .arg = k });
	return 0;
}

/* Nobody can be asked without an API server. */
static int check_reviews(struct kubelet *k, struct err *err)
{
	if (!k->client && val_bool(k->config, authentication, webhook, enabled))
		return err_set(err, ERR_INVALID, "no client provided, cannot use webhook authentication");
	if (!k->client && !str_eq(val_str(k->config, authorization, mode), STR("AlwaysAllow")))
		return err_set(err, ERR_INVALID, "no client provided, cannot use webhook authorization");
	return 0;
}

static int make_server(struct kubelet *k, struct err *err)
{
	struct val c = k->config, authn = val_get(c, authentication, webhook), authz = val_get(c, authorization, webhook);
	struct certificates_options o = { .options = k->options, .node_name = k->node.name, .client = k->client, .arg = k };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;

	if (val_has(c, enableServer) && !val_bool(c, enableServer))
		return 0;
	o.addresses = val_get(node_keeper_object(k->node_keeper, &a), status, addresses);
	k->auth = kubelet_auth_new(config_duration_ns(val_get(authn, cacheTTL)) / NS_PER_S, config_duration_ns(val_get(authz, cacheAuthorizedTTL)) / NS_PER_S,
				   config_duration_ns(val_get(authz, cacheUnauthorizedTTL)) / NS_PER_S);
	return certificates_new(&o, &k->certificates, err);
}

static void kubelet_done(struct kubelet *k)
{
	SHIELD_SCOPE();
	if (k->bundles)
		informer_unlisten(&k->bundles_listener);
	sources_free(k->sources);
	if (k->first_look)
		fiber_stop(k->first_look);
	pods_free(k->pods);
	statuses_free(k->statuses);
	if (k->probes)
		probes_free(k->probes);
	node_keeper_free(k->node_keeper);
	eviction_free(k->eviction);
	stats_free(k->stats);
	devices_free(k->devices);
	cgroups_free(k->cgroups);
	user_namespaces_free(k->user_namespaces);
	if (k->volumes)
		volumes_free(k->volumes);
	objects_free(k->objects);
	images_manager_free(k->images);
	credential_providers_free(k->credential_providers);
	runtime_pods_free(k->runtime_pods);
	certificates_free(k->certificates);
	kubelet_auth_free(k->auth);
	recorder_free(k->recorder);
	if (k->informers)
		informers_free(k->informers);
	client_free(k->client);
	cri_close(k->cri);
	frozen_unref(k->runtime_status);
	text_set(&k->network_text, STR_NONE);
	arena_done(&k->arena);
}

struct part {
	struct kubelet *k;
	const char *name;
	int (*run)(struct kubelet *k, struct err *err);
	bool left_out;
	struct fiber *whole;          /* ends when this part does */
};

static int run_part(void *arg)
{
	struct part *p = arg;
	struct err err = ERR_INIT;
	int r = p->run(p->k, &err);

	if (r < 0 && r != -ERR_CANCELED) {
		log_error("a part of the kubelet has ended, and it with it", KV("part", p->name), KV("error", &err));
		fiber_cancel(p->whole);
	}
	return r;
}

static int run_parts(struct kubelet *k, void (*on_ready)(void *arg), void *arg, struct err *err)
{
	struct part parts[] = {
		{ k, "runtime", watch_runtime, false, NULL }, { k, "runtime pods", run_runtime_pods, false, NULL },
		{ k, "statuses", run_statuses, !k->client, NULL }, { k, "sources", run_sources, false, NULL },
		{ k, "node", run_node_keeper, false, NULL }, { k, "CSINode", make_csi_node, !k->csi_problem.n, NULL },
		{ k, "server", kubelet_serve, !k->certificates, NULL },
		{ k, "read-only server", kubelet_serve_read_only, !val_int(k->config, readOnlyPort), NULL },
		{ k, "health", kubelet_serve_health, !val_int(k->config, healthzPort), NULL }, { k, "eviction", run_eviction, false, NULL },
		{ k, "stats", run_stats, false, NULL }, { k, "collect", run_collect, false, NULL }, { k, "devices", run_devices, false, NULL },
		{ k, "certificates", run_certificates, !k->certificates, NULL }, { k, "volumes", refresh_volumes, false, NULL },
		{ k, "objects", run_objects, false, NULL }, { k, "allocation", run_allocation, false, NULL },
		{ k, "clean", clean_up, false, NULL }, { k, "images", collect_images, false, NULL }, { k, "shutdown", run_shutdown, false, NULL },
		{ k, "local path", run_local_path, !k->client || !k->options->local_path_root, NULL },
	};
	CLEANUP(fiber_group_done) struct fiber_group g;
	int r = k->informers ? informers_start(k->informers, err) : 0;

	fiber_group_init(&g);
	for (size_t i = 0; i < ARRAY_LEN(parts) && r >= 0; i++) {
		parts[i].whole = fiber_self();
		if (!parts[i].left_out)
			r = fiber_group_spawn(&g, run_part, &parts[i], err, "kubelet %s", parts[i].name);
	}
	if (r >= 0 && (r = runtime_pods_wait(k->runtime_pods, err)) >= 0) {
		if (on_ready)
			on_ready(arg);
		r = fiber_group_wait(&g, err);
	}
	return r;
}

int kubelet_run(const struct kubelet_options *o, void (*on_ready)(void *arg), void *arg, struct err *err)
{
	CLEANUP(kubelet_done) struct kubelet k = { .options = o, .config = o->config->val };
	int r;

	arena_init(&k.arena);
	k.hooks = (struct kubelet_hooks){ .event = hook_event, .user_namespace = hook_user_namespace, .extra_groups = hook_extra_groups, .arg = &k };
	network_problem(&k);
	if ((r = kubelet_node_make(&k, err)) < 0 || (r = open_runtime(&k, err)) < 0 || (r = open_client(&k, err)) < 0 || (r = check_reviews(&k, err)) < 0 ||
	    (r = make_parts(&k, err)) < 0 || (r = make_server(&k, err)) < 0)
		return r;
	try_csi_node(&k);
	return run_parts(&k, on_ready, arg, err);
}
