/* kubectl rollout status */
#include <stdio.h>

#include "base/clock.h"
#include "kubectl/rollout.h"
#include "kubectl/watch.h"

struct status {
	struct ktl_rollout common;
	bool watch;
	int64_t revision, timeout_ns;
};

static const struct ktl_flag status_flags[] = {
	{ "revision", 0, KTL_INT, offsetof(struct status, revision), NULL, "Only if this revision is the one that is brought out", NULL },
	{ "timeout", 0, KTL_DURATION, offsetof(struct status, timeout_ns), "0s", "How long to wait; 0: without end", NULL },
	{ "watch", 'w', KTL_BOOL, offsetof(struct status, watch), "true", "Wait until it is done", NULL },
	{ 0 },
};

/* ---- states ---- */

static int deployment_state(struct ktl *k, struct val d, int64_t revision, str *ret)
{
	struct val spec = val_get(d, spec), status = val_get(d, status);
	str name = ktl_quote(k, val_str(d, metadata, name));
	int64_t running, wanted = val_int(spec, replicas), updated = val_int(status, updatedReplicas), all = val_int(status, replicas);
	int64_t available = val_int(status, availableReplicas);
	if (revision > 0) {
		if (!str_to_i64(val_as_str(val_find(val_get(d, metadata, annotations), STR("deployment.kubernetes.io/revision"))), &running))
			return ktl_fail(k, "cannot get the revision of deployment " STR_FMT, STR_ARG(name));
		if (running != revision)
			return ktl_fail(k, "desired revision (%lld) is different from the running revision (%lld)", (long long)revision, (long long)running);
	}
	if (val_int(d, metadata, generation) > val_int(status, observedGeneration)) {
		*ret = STR("Waiting for deployment spec update to be observed...\n");
		return 0;
	}
	VAL_EACH(c, val_get(status, conditions))
		if (str_eq(val_str(*c, type), STR("Progressing")) && str_eq(val_str(*c, reason), STR("ProgressDeadlineExceeded")))
			return ktl_fail(k, "deployment " STR_FMT " exceeded its progress deadline", STR_ARG(name));
	if (val_has(spec, replicas) && updated < wanted)
		*ret = arena_printf(&k->arena, "Waiting for deployment " STR_FMT " rollout to finish: %lld out of %lld new replicas have been updated...\n",
				    STR_ARG(name), (long long)updated, (long long)wanted);
	else if (all > updated)
		*ret = arena_printf(&k->arena, "Waiting for deployment " STR_FMT " rollout to finish: %lld old replicas are pending termination...\n",
				    STR_ARG(name), (long long)(all - updated));
	else if (available < updated)
		*ret = arena_printf(&k->arena, "Waiting for deployment " STR_FMT " rollout to finish: %lld of %lld updated replicas are available...\n",
				    STR_ARG(name), (long long)available, (long long)updated);
	else {
		*ret = arena_printf(&k->arena, "deployment " STR_FMT " successfully rolled out\n", STR_ARG(name));
		return 1;
	}
	return 0;
}

static int daemon_set_state(struct ktl *k, struct val d, str *ret)
{
	struct val status = val_get(d, status);
	str name = ktl_quote(k, val_str(d, metadata, name));
	int64_t wanted = val_int(status, desiredNumberScheduled), updated = val_int(status, updatedNumberScheduled), available = val_int(status, numberAvailable);
	if (!str_eq(val_str(d, spec, updateStrategy, type), STR("RollingUpdate")))
		return ktl_fail(k, "rollout status is only available for RollingUpdate strategy type");
	if (val_int(d, metadata, generation) > val_int(status, observedGeneration))
		*ret = STR("Waiting for daemon set spec update to be observed...\n");
	else if (updated < wanted)
		*ret = arena_printf(&k->arena, "Waiting for daemon set " STR_FMT " rollout to finish: %lld out of %lld new pods have been updated...\n",
				    STR_ARG(name), (long long)updated, (long long)wanted);
	else if (available < wanted)
		*ret = arena_printf(&k->arena, "Waiting for daemon set " STR_FMT " rollout to finish: %lld of %lld updated pods are available...\n",
				    STR_ARG(name), (long long)available, (long long)wanted);
	else {
		*ret = arena_printf(&k->arena, "daemon set " STR_FMT " successfully rolled out\n", STR_ARG(name));
		return 1;
	}
	return 0;
}

static int stateful_set_state(struct ktl *k, struct val s, str *ret)
{
	struct val spec = val_get(s, spec), status = val_get(s, status), rolling = val_get(spec, updateStrategy, rollingUpdate);
	int64_t wanted = val_int(spec, replicas), ready = val_int(status, readyReplicas), updated = val_int(status, updatedReplicas);
	int64_t seen = val_int(status, observedGeneration), partition = val_int(rolling, partition);
	str update = val_str(status, updateRevision), current = val_str(status, currentRevision);
	if (!str_eq(val_str(spec, updateStrategy, type), STR("RollingUpdate")))
		return ktl_fail(k, "rollout status is only available for RollingUpdate strategy type");
	if (seen == 0 || val_int(s, metadata, generation) > seen) {
		*ret = STR("Waiting for statefulset spec update to be observed...\n");
		return 0;
	}
	if (val_has(spec, replicas) && ready < wanted) {
		*ret = arena_printf(&k->arena, "Waiting for %lld pods to be ready...\n", (long long)(wanted - ready));
		return 0;
	}
	if (val_has(rolling, partition)) {
		if (val_has(spec, replicas) && updated < wanted - partition) {
			*ret = arena_printf(&k->arena, "Waiting for partitioned roll out to finish: %lld out of %lld new pods have been updated...\n",
					    (long long)updated, (long long)(wanted - partition));
			return 0;
		}
		*ret = arena_printf(&k->arena, "partitioned roll out complete: %lld new pods have been updated...\n", (long long)updated);
		return 1;
	}
	if (!str_eq(update, current)) {
		*ret = arena_printf(&k->arena, "waiting for statefulset rolling update to complete %lld pods at revision " STR_FMT "...\n", (long long)updated, STR_ARG(update));
		return 0;
	}
	*ret = arena_printf(&k->arena, "statefulset rolling update complete %lld pods at revision " STR_FMT "...\n", (long long)val_int(status, currentReplicas),
			    STR_ARG(current));
	return 1;
}

int ktl_rollout_state(struct ktl *k, enum ktl_workload what, struct val object, int64_t revision, str *ret)
{
	switch (what) {
	case KTL_DEPLOYMENT: return deployment_state(k, object, revision, ret);
	case KTL_DAEMON_SET: return daemon_set_state(k, object, ret);
	case KTL_STATEFUL_SET: return stateful_set_state(k, object, ret);
	case KTL_OTHER: break;
	}
	return ktl_fail(k, "no status viewer has been implemented for " STR_FMT, STR_ARG(val_str(object, kind)));
}

/* ---- following ---- */

static int tell(struct ktl *k, const struct status *o, const struct ktl_info *info, struct val object)
{
	str text;
	int r = ktl_rollout_state(k, ktl_workload_of(info), object, o->revision, &text);
	if (r >= 0) {
		printf(STR_FMT, STR_ARG(text));
		ktl_flush();
	}
	return r;
}

static int follow(struct ktl *k, const struct status *o, struct ktl_info *info, int64_t due)
{
	for (;;) {
		CLEANUP(ktl_watch_freep) struct ktl_watch *w = NULL;
		struct val object;
		bool timeout;
		str type;
		int r = tell(k, o, info, info->object), got;
		if (r != 0 || !o->watch)
			return r < 0 ? -1 : 0;
		if (ktl_watch_open(k, info->kind, info->namespace, info->name, STR_NONE, val_str(info->object, metadata, resourceVersion), STR_NONE, &w) < 0)
			return -1;
		do {
			int64_t left = due == INT64_MAX ? -1 : MAX((due - clock_now_ns()) / NS_PER_MS, (int64_t)0);
			got = ktl_watch_next(k, w, left, &timeout, &type, &object);
			if (got == 1 && str_eq(type, STR("DELETED")))
				return ktl_fail(k, "object has been deleted");
			if (got == 1 && (r = tell(k, o, info, object)) != 0)
				return r < 0 ? -1 : 0;
		} while (got == 1);
		if (timeout)
			return ktl_fail(k, "timed out waiting for the condition");
		if (got < 0)
			ktl_forgive(k);
		if (ktl_fetch(k, info) < 0)
			return -1;
	}
}

static int run(struct ktl *k, void *options)
{
	const struct status *o = options;
	struct ktl_infos infos;
	if (o->revision < 0)
		return ktl_fail(k, "revision must be a positive integer: %lld", (long long)o->revision);
	if (ktl_rollout_infos(k, &o->common, false, &infos) < 0)
		return -1;
	int64_t due = o->timeout_ns ? clock_now_ns() + o->timeout_ns : INT64_MAX;
	if (!infos.n)
		fprintf(stderr, "No resources found in " STR_FMT " namespace.\n", STR_ARG(k->config.namespace));
	for (size_t i = 0; i < infos.n; i++)
		if (follow(k, o, &infos.v[i], due) < 0)
			return -1;
	return 0;
}

const struct ktl_command ktl_rollout_status = {
	.name = "status", .summary = "Show the status of the rollout", .usage = "rollout status (TYPE NAME | TYPE/NAME) [flags] [options]",
	.flags = (const struct ktl_flag_set[]){ { status_flags, 0 }, KTL_ROLLOUT_ROWS, { 0 } }, .size = sizeof(struct status), .run = run,
};
