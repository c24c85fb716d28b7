/* What makes pods: deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs. */
#include "base/clock.h"
#include "codec/types.h"
#include "kubectl/describe.h"
#include "machinery/selector.h"

/* (suspends) How many of its pods are in which phase; false: they could not be asked for, and that is noted. */
static int count_pods(struct ktl *k, struct val owner, unsigned counts[4])
{
	static const char *const phases[] = { "Running", "Pending", "Succeeded", "Failed" };
	struct val pods;
	if (ktl_list(k, ktl_kind_of_type(k, TYPE(core_v1, Pod)), val_str(owner, metadata, namespace), ktl_selector(k, val_get(owner, spec, selector)),
		     STR_NONE, &pods) < 0)
		return -1;
	for (size_t i = 0; i < 4; i++)
		counts[i] = 0;
	VAL_EACH(pod, pods)
		for (size_t i = 0; i < 4 && ktl_is_controlled_by(*pod, val_str(owner, metadata, uid)); i++)
			counts[i] += str_eq(val_str(*pod, status, phase), str_of(phases[i]));
	return 0;
}

static int say_pods_status(struct ktl_page *p, struct val owner)
{
	unsigned n[4];
	if (count_pods(p->k, owner, n) < 0)
		return -1;
	ktl_say(p, 0, "Pods Status:\t%u Running / %u Waiting / %u Succeeded / %u Failed\n", n[0], n[1], n[2], n[3]);
	return 0;
}

static void say_labels(struct ktl_page *p, struct val object)
{
	ktl_say_labels(p, "Labels", val_get(object, metadata, labels));
	ktl_say_annotations(p, "Annotations", val_get(object, metadata, annotations));
}

static void say_conditions(struct ktl_page *p, struct val conditions)
{
	if (!val_len(conditions))
		return;
	ktl_say(p, 0, "Conditions:\n  Type\tStatus\tReason\n");
	ktl_say(p, 1, "----\t------\t------\n");
	VAL_EACH(c, conditions)
		ktl_say(p, 1, STR_FMT " \t" STR_FMT "\t" STR_FMT "\n", STR_ARG(val_str(*c, type)), STR_ARG(val_str(*c, status)), STR_ARG(val_str(*c, reason)));
}

static void say_date(struct ktl_page *p, const char *title, str time)
{
	ktl_say(p, 0, "%s:\t" STR_FMT "\n", title, STR_ARG(ktl_date(p->k, time)));
}

/* ---- deployments ---- */

static void say_set(struct ktl_page *p, struct val rs)
{
	ktl_say(p, 0, STR_FMT " (%lld/%lld replicas created)", STR_ARG(val_str(rs, metadata, name)), (long long)val_int(rs, status, replicas),
		(long long)val_int(rs, spec, replicas));
}

static void say_sets(struct ktl_page *p, struct val deployment)
{
	struct val list, newest;
	bool first = true;
	if (ktl_replica_sets_of(p->k, deployment, &list) < 0) {
		ktl_forgive(p->k);
		return;
	}
	if (!val_len(list))
		return;
	newest = ktl_newest_replica_set(p->k, deployment, list);
	ktl_say(p, 0, "OldReplicaSets:\t");
	VAL_EACH(rs, list) {
		if (val_same(*rs, newest))
			continue;
		ktl_say(p, 0, first ? "" : ", ");
		say_set(p, *rs);
		first = false;
	}
	ktl_say(p, 0, first ? "<none>\nNewReplicaSet:\t" : "\nNewReplicaSet:\t");
	if (val_exists(newest))
		say_set(p, newest);
	ktl_say(p, 0, val_exists(newest) ? "\n" : "<none>\n");
}

int ktl_describe_deployment(struct ktl_page *p, struct val d)
{
	struct val spec = val_get(d, spec), status = val_get(d, status), rolling = val_get(spec, strategy, rollingUpdate);
	ktl_say_name(p, d);
	say_date(p, "CreationTimestamp", val_str(d, metadata, creationTimestamp));
	say_labels(p, d);
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(ktl_selector(p->k, val_get(spec, selector))));
	ktl_say(p, 0, "Replicas:\t%lld desired | %lld updated | %lld total | %lld available | %lld unavailable\n", (long long)val_int(spec, replicas),
		(long long)val_int(status, updatedReplicas), (long long)val_int(status, replicas), (long long)val_int(status, availableReplicas),
		(long long)val_int(status, unavailableReplicas));
	ktl_say(p, 0, "StrategyType:\t" STR_FMT "\n", STR_ARG(val_str(spec, strategy, type)));
	ktl_say(p, 0, "MinReadySeconds:\t%lld\n", (long long)val_int(spec, minReadySeconds));
	if (val_exists(rolling))
		ktl_say(p, 0, "RollingUpdateStrategy:\t" STR_FMT " max unavailable, " STR_FMT " max surge\n",
			STR_ARG(ktl_plain(p->k, val_get(rolling, maxUnavailable))), STR_ARG(ktl_plain(p->k, val_get(rolling, maxSurge))));
	ktl_say_template(p, val_get(spec, template));
	say_conditions(p, val_get(status, conditions));
	say_sets(p, d);
	ktl_say_events(p, d, STR("Deployment"));
	return 0;
}

/* ---- sets ---- */

int ktl_describe_replica_set(struct ktl_page *p, struct val rs)
{
	ktl_say_name(p, rs);
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(selector_display(&p->k->arena, val_get(rs, spec, selector))));
	say_labels(p, rs);
	ktl_say_owner(p, rs);
	ktl_say(p, 0, "Replicas:\t%lld current / %lld desired\n", (long long)val_int(rs, status, replicas), (long long)val_int(rs, spec, replicas));
	if (say_pods_status(p, rs) < 0)
		return -1;
	ktl_say_template(p, val_get(rs, spec, template));
	say_conditions(p, val_get(rs, status, conditions));
	ktl_say_events(p, rs, STR("ReplicaSet"));
	return 0;
}

static void say_claims(struct ktl_page *p, struct val claims)
{
	ktl_say(p, 0, val_len(claims) ? "Volume Claims:\n" : "Volume Claims:\t<none>\n");
	VAL_EACH(c, claims) {
		str size = val_as_str(val_find(val_get(*c, spec, resources, requests), STR("storage")));
		ktl_say(p, 1, "Name:\t" STR_FMT "\n", STR_ARG(val_str(*c, metadata, name)));
		ktl_say(p, 1, "StorageClass:\t" STR_FMT "\n", STR_ARG(val_str(*c, spec, storageClassName)));
		ktl_say_labels(p, "  Labels", val_get(*c, metadata, labels));
		ktl_say_labels(p, "  Annotations", val_get(*c, metadata, annotations));
		ktl_say(p, 1, "Capacity:\t" STR_FMT "\n", STR_ARG(size.n ? size : STR("<default>")));
		ktl_say(p, 1, "Access Modes:\t[" STR_FMT "]\n", STR_ARG(ktl_join(p->k, val_get(*c, spec, accessModes), " ")));
	}
}

int ktl_describe_stateful_set(struct ktl_page *p, struct val s)
{
	struct val spec = val_get(s, spec), rolling = val_get(spec, updateStrategy, rollingUpdate);
	ktl_say_name(p, s);
	say_date(p, "CreationTimestamp", val_str(s, metadata, creationTimestamp));
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(ktl_selector(p->k, val_get(spec, selector))));
	say_labels(p, s);
	ktl_say(p, 0, "Replicas:\t%lld desired | %lld total\n", (long long)val_int(spec, replicas), (long long)val_int(s, status, replicas));
	ktl_say(p, 0, "Update Strategy:\t" STR_FMT "\n", STR_ARG(val_str(spec, updateStrategy, type)));
	if (val_has(rolling, partition))
		ktl_say(p, 1, "Partition:\t%lld\n", (long long)val_int(rolling, partition));
	if (val_has(rolling, partition) && val_has(rolling, maxUnavailable))
		ktl_say(p, 1, "MaxUnavailable:\t" STR_FMT "\n", STR_ARG(ktl_plain(p->k, val_get(rolling, maxUnavailable))));
	if (say_pods_status(p, s) < 0)
		return -1;
	ktl_say_template(p, val_get(spec, template));
	say_claims(p, val_get(spec, volumeClaimTemplates));
	ktl_say_events(p, s, STR("StatefulSet"));
	return 0;
}

int ktl_describe_daemon_set(struct ktl_page *p, struct val d)
{
	struct val status = val_get(d, status);
	ktl_say_name(p, d);
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(ktl_selector(p->k, val_get(d, spec, selector))));
	ktl_say(p, 0, "Node-Selector:\t" STR_FMT "\n", STR_ARG(labels_display(&p->k->arena, val_get(d, spec, template, spec, nodeSelector))));
	say_labels(p, d);
	ktl_say(p, 0, "Desired Number of Nodes Scheduled: %lld\n", (long long)val_int(status, desiredNumberScheduled));
	ktl_say(p, 0, "Current Number of Nodes Scheduled: %lld\n", (long long)val_int(status, currentNumberScheduled));
	ktl_say(p, 0, "Number of Nodes Scheduled with Up-to-date Pods: %lld\n", (long long)val_int(status, updatedNumberScheduled));
	ktl_say(p, 0, "Number of Nodes Scheduled with Available Pods: %lld\n", (long long)val_int(status, numberAvailable));
	ktl_say(p, 0, "Number of Nodes Misscheduled: %lld\n", (long long)val_int(status, numberMisscheduled));
	if (say_pods_status(p, d) < 0)
		return -1;
	ktl_say_template(p, val_get(d, spec, template));
	ktl_say_events(p, d, STR("DaemonSet"));
	return 0;
}

/* ---- jobs ---- */

static void say_number(struct ktl_page *p, const char *title, struct val v, const char *unit, bool or_unset)
{
	if (val_exists(v))
		ktl_say(p, 0, "%s:\t" STR_FMT "%s\n", title, STR_ARG(ktl_plain(p->k, v)), unit);
	else if (or_unset)
		ktl_say(p, 0, "%s:\t<unset>\n", title);
}

static void say_duration(struct ktl_page *p, str started, str ended)
{
	char text[DURATION_TEXT_MAX];
	struct timestamp a, b;
	if (started.n && ended.n && time_parse(started, &a, NULL) == 0 && time_parse(ended, &b, NULL) == 0)
		ktl_say(p, 0, "Duration:\t" STR_FMT "\n", STR_ARG(duration_human(time_between(a, b), text)));
}

static void say_job_times(struct ktl_page *p, struct val status)
{
	str started = val_str(status, startTime), ended = val_str(status, completionTime);
	if (started.n)
		say_date(p, "Start Time", started);
	if (ended.n)
		say_date(p, "Completed At", ended);
	say_duration(p, started, ended);
}

static void say_job_pods(struct ktl_page *p, struct val status)
{
	ktl_say(p, 0, "Pods Statuses:\t%lld Active", (long long)val_int(status, active));
	if (val_has(status, ready))
		ktl_say(p, 0, " (%lld Ready)", (long long)val_int(status, ready));
	ktl_say(p, 0, " / %lld Succeeded / %lld Failed\n", (long long)val_int(status, succeeded), (long long)val_int(status, failed));
}

/* Not more than about fifty bytes of them. */
static str some_indexes(struct ktl *k, str indexes)
{
	enum { LONG = 50 };
	size_t end = LONG;
	while (end < indexes.n && indexes.p[end] != ',')
		end++;
	if (!indexes.n)
		return STR("<none>");
	return end >= indexes.n ? indexes : arena_join(&k->arena, str_head(indexes, end + 1), STR("..."));
}

int ktl_describe_job(struct ktl_page *p, struct val job)
{
	struct val spec = val_get(job, spec), status = val_get(job, status);
	ktl_say_name(p, job);
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(ktl_selector(p->k, val_get(spec, selector))));
	say_labels(p, job);
	ktl_say_owner(p, job);
	say_number(p, "Parallelism", val_get(spec, parallelism), "", false);
	say_number(p, "Completions", val_get(spec, completions), "", true);
	say_number(p, "Completion Mode", val_get(spec, completionMode), "", false);
	say_number(p, "Suspend", val_get(spec, suspend), "", false);
	say_number(p, "Backoff Limit", val_get(spec, backoffLimit), "", false);
	say_number(p, "TTL Seconds After Finished", val_get(spec, ttlSecondsAfterFinished), "", false);
	say_job_times(p, status);
	say_number(p, "Active Deadline Seconds", val_get(spec, activeDeadlineSeconds), "s", false);
	say_job_pods(p, status);
	if (str_eq(val_str(spec, completionMode), STR("Indexed")))
		ktl_say(p, 0, "Completed Indexes:\t" STR_FMT "\n", STR_ARG(some_indexes(p->k, val_str(status, completedIndexes))));
	ktl_say_template(p, val_get(spec, template));
	ktl_say_events(p, job, STR("Job"));
	return 0;
}

int ktl_describe_cron_job(struct ktl_page *p, struct val c)
{
	struct val spec = val_get(c, spec), job = val_get(spec, jobTemplate, spec), active = val_get(c, status, active);
	bool first = true;
	ktl_say_name(p, c);
	say_labels(p, c);
	ktl_say(p, 0, "Schedule:\t" STR_FMT "\n", STR_ARG(val_str(spec, schedule)));
	ktl_say(p, 0, "Concurrency Policy:\t" STR_FMT "\n", STR_ARG(val_str(spec, concurrencyPolicy)));
	ktl_say(p, 0, "Suspend:\t%s\n", !val_has(spec, suspend) ? "<unset>" : val_bool(spec, suspend) ? "True" : "False");
	say_number(p, "Time Zone", val_get(spec, timeZone), "", true);
	say_number(p, "Successful Job History Limit", val_get(spec, successfulJobsHistoryLimit), "", true);
	say_number(p, "Failed Job History Limit", val_get(spec, failedJobsHistoryLimit), "", true);
	say_number(p, "Starting Deadline Seconds", val_get(spec, startingDeadlineSeconds), "s", true);
	ktl_say(p, 0, "Selector:\t" STR_FMT "\n", STR_ARG(val_has(job, selector) ? ktl_selector(p->k, val_get(job, selector)) : STR("<unset>")));
	say_number(p, "Parallelism", val_get(job, parallelism), "", true);
	say_number(p, "Completions", val_get(job, completions), "", true);
	say_number(p, "Active Deadline Seconds", val_get(job, activeDeadlineSeconds), "s", false);
	ktl_say_template(p, val_get(job, template));
	if (val_has(c, status, lastScheduleTime))
		say_date(p, "Last Schedule Time", val_str(c, status, lastScheduleTime));
	else
		ktl_say(p, 0, "Last Schedule Time:\t<unset>\n");
	ktl_say(p, 0, "Active Jobs:\t%s", val_len(active) ? "" : "<none>");
	VAL_EACH(a, active) {
		ktl_say(p, 0, "%s" STR_FMT, first ? "" : ", ", STR_ARG(val_str(*a, name)));
		first = false;
	}
	ktl_say(p, 0, "\n");
	ktl_say_events(p, c, STR("CronJob"));
	return 0;
}
