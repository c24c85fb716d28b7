/* For tests: a runtime whose pods use what a text says. */
#ifndef C8S_KUBELET_STATS_TESTING_H
#define C8S_KUBELET_STATS_TESTING_H

#include "kubelet/cri_config_testing.h"
#include "kubelet/cri_testing.h"
#include "kubelet/stats.h"

struct usage_fake {
	struct cri_fake cri;
	struct val pods;              /* list of core/v1.Pod */
	/* By pod, in the order of pods: list of { memory, rootfs, processes }; each has one container "c", with id c-<uid>. VAL_NULL: no figures. */
	struct val usage;
	const char *image_path;       /* where images are */
	bool old;                     /* it knows no ListPodSandboxStats */
	bool fails;
	unsigned asked;               /* how often for figures of pods */
};

static struct val usage_value(struct arena *a, int64_t n) { return OBJECT(a, F(value, val_of_int(n))); }

static struct val usage_container(struct arena *a, const struct usage_fake *f, struct val pod, struct val u)
{
	str id = arena_printf(a, "c-" STR_FMT, STR_ARG(val_str(pod, metadata, uid)));
	int64_t now = clock_wall_ns();

	return OBJECT(a, F(attributes, OBJECT(a, F(id, VAL_STR(id)), F(metadata, OBJECT(a, F(name, VAL_LIT("c")))))),
		      F(cpu, OBJECT(a, F(timestamp, val_of_int(now)), F(usageCoreNanoSeconds, usage_value(a, clock_now_ns() / 4)))),
		      F(memory, OBJECT(a, F(timestamp, val_of_int(now)), F(workingSetBytes, usage_value(a, val_as_int(val_find(u, STR("memory"))))))),
		      F(writableLayer,
			OBJECT(a, F(timestamp, val_of_int(now)), F(fsId, OBJECT(a, F(mountpoint, VAL_STR(str_of(f->image_path))))),
			       F(usedBytes, usage_value(a, val_as_int(val_find(u, STR("rootfs"))))), F(inodesUsed, usage_value(a, 3)))));
}

static struct val usage_pod(struct arena *a, const struct usage_fake *f, struct val pod, struct val u)
{
	int64_t now = clock_wall_ns();
	struct val id = VAL_STR(arena_printf(a, "s-" STR_FMT, STR_ARG(val_str(pod, metadata, uid))));
	struct val network = OBJECT(a, F(timestamp, val_of_int(now)),
				    F(defaultInterface, OBJECT(a, F(name, VAL_LIT("eth0")), F(rxBytes, usage_value(a, 11)), F(txBytes, usage_value(a, 12)))));

	return OBJECT(a, F(attributes, OBJECT(a, F(id, id))),
		      F(linux, OBJECT(a, F(memory, OBJECT(a, F(timestamp, val_of_int(now)),
							  F(workingSetBytes, usage_value(a, val_as_int(val_find(u, STR("memory"))))))),
				      F(cpu, OBJECT(a, F(timestamp, val_of_int(now)), F(usageCoreNanoSeconds, usage_value(a, clock_now_ns() / 2)))),
				      F(network, network),
				      F(process, OBJECT(a, F(processCount, usage_value(a, val_as_int(val_find(u, STR("processes"))))))),
				      F(containers, LIST(a, usage_container(a, f, pod, u))))));
}

/* kind: what of each pod is asked for. */
static struct val usage_list(struct arena *a, const struct usage_fake *f, str uid, const char *kind)
{
	struct val_builder b = val_builder(a);

	for (uint32_t i = 0; i < val_len(f->pods); i++) {
		struct val pod = val_at(f->pods, i), u = val_at(f->usage, i), meta = val_get(pod, metadata), made = val_of_int(clock_wall_ns());
		struct val sandbox = VAL_STR(arena_printf(a, "s-" STR_FMT, STR_ARG(val_str(meta, uid))));
		if (!val_exists(u) || val_is(u, VAL_NULL) || (uid.n && !str_eq(uid, val_str(meta, uid))))
			continue;
		if (str_eq(str_of(kind), STR("sandbox")))
			val_add_item(&b, OBJECT(a, F(id, sandbox), F(metadata, meta), F(state, VAL_LIT("SANDBOX_READY")), F(createdAt, made)));
		else if (str_eq(str_of(kind), STR("container")))
			val_add_item(&b, OBJECT(a, F(id, val_get(usage_container(a, f, pod, u), attributes, id)), F(podSandboxId, sandbox),
						F(metadata, OBJECT(a, F(name, VAL_LIT("c")))), F(state, VAL_LIT("CONTAINER_RUNNING")),
						F(image, OBJECT(a, F(image, VAL_LIT("busy\"box")))), F(createdAt, made)));
		else if (str_eq(str_of(kind), STR("usage")))
			val_add_item(&b, usage_container(a, f, pod, u));
		else
			val_add_item(&b, usage_pod(a, f, pod, u));
	}
	return val_end_list(&b);
}

static int usage_answer(struct cri_fake *c, const struct rpc *rpc, struct arena *a, struct val request, struct val *ret, struct err *err)
{
	struct usage_fake *f = c->arg;
	str uid = val_as_str(val_find(val_get(request, filter, labelSelector), STR("io.kubernetes.pod.uid")));
	struct val fs = OBJECT(a, F(timestamp, val_of_int(clock_wall_ns())),
			       F(fsId, OBJECT(a, F(mountpoint, VAL_STR(str_of(f->image_path))))), F(usedBytes, usage_value(a, 1000)),
			       F(inodesUsed, usage_value(a, 10)));

	if (f->fails)
		return err_set(err, ERR_UNAVAILABLE, "away");
	f->asked += rpc == &rpc_RuntimeService_ListPodSandboxStats;
	if (rpc == &rpc_RuntimeService_ListPodSandbox)
		*ret = OBJECT(a, F(items, usage_list(a, f, uid, "sandbox")));
	else if (rpc == &rpc_RuntimeService_ListContainers)
		*ret = OBJECT(a, F(containers, usage_list(a, f, uid, "container")));
	else if (rpc == &rpc_RuntimeService_ListContainerStats)
		*ret = OBJECT(a, F(stats, usage_list(a, f, uid, "usage")));
	else if (rpc == &rpc_RuntimeService_ListPodSandboxStats && !f->old)
		*ret = OBJECT(a, F(stats, usage_list(a, f, uid, "pod")));
	else if (rpc == &rpc_ImageService_ImageFsInfo)
		*ret = OBJECT(a, F(imageFilesystems, LIST(a, fs)), F(containerFilesystems, LIST(a, fs)));
	else
		return err_set(err, ERR_UNAVAILABLE, "unknown method");
	return 0;
}

static struct val usage_pods(void *arg, struct arena *a)
{
	(void)a;
	return ((struct usage_fake *)arg)->pods;
}

#endif
