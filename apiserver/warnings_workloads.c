/* Pods and what makes them. */
#include "apiserver/warnings_priv.h"

#define IN_PODS "Pod names and hostnames"

static bool is_new_generation(const struct request *q)
{
	return val_int(q->object, metadata, generation) != val_int(q->old, metadata, generation);
}

/* ---- Pod, PodTemplate ---- */

static void pod_created(struct request *q)
{
	warn_name(q, "the Pod's hostname");
	warn_pod(q, NULL, q->object);
}

static void warn_status_ips(struct request *q, const char *field, struct val list)
{
	const struct field_path *at = FIELD_STR(FIELD(NULL, "status"), str_of(field));
	size_t i = 0;
	VAL_EACH(ip, list) {
		warn_ip(q, FIELD(FIELD_INDEX(at, i), "ip"), val_str(*ip, ip));
		i++;
	}
}

static void pod_status(struct request *q)
{
	warn_status_ips(q, "podIPs", val_get(q->object, status, podIPs));
	warn_status_ips(q, "hostIPs", val_get(q->object, status, hostIPs));
}

static void template_created(struct request *q) { warn_pod(q, FIELD(NULL, "template"), val_get(q->object, template)); }

static void template_updated(struct request *q)
{
	if (is_new_generation(q))
		template_created(q);
}

/* ---- those with spec.template ---- */

static void warn_template(struct request *q, struct val owner)
{
	warn_pod(q, FIELD(FIELD(NULL, "spec"), "template"), val_get(owner, spec, template));
}

static void set_created(struct request *q)
{
	warn_name(q, IN_PODS);
	warn_template(q, q->object);
}

static void set_updated(struct request *q)
{
	if (is_new_generation(q))
		warn_template(q, q->object);
}

/* Kubernetes looks at the template that is being replaced. */
static void controller_updated(struct request *q)
{
	if (is_new_generation(q))
		warn_template(q, q->old);
}

static void daemon_set_created(struct request *q) { warn_template(q, q->object); }

static void daemon_set_updated(struct request *q)
{
	str generation = STR("deprecated.daemonset.template.generation");
	str before = val_as_str(val_find(val_get(q->old, metadata, annotations), generation));
	if (!str_eq(before, val_as_str(val_find(val_get(q->object, metadata, annotations), generation))))
		warn_template(q, q->object);
}

/* ---- StatefulSet ---- */

static void warn_history(struct request *q)
{
	if (val_int(q->object, spec, revisionHistoryLimit) < 0)
		warnf(q,
		      "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
}

/* Updates name the place of a claim's spec in a way of their own, as Kubernetes does. */
static void warn_claims(struct request *q)
{
	size_t i = 0;
	VAL_EACH(c, val_get(q->object, spec, volumeClaimTemplates)) {
		const struct field_path *at = FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "volumeClaimTemplates"), i++);
		warn_claim_spec(q, val_exists(q->old) ? FIELD(at, "Spec") : at, val_get(*c, spec));
	}
}

static void stateful_set_created(struct request *q)
{
	warn_template(q, q->object);
	warn_claims(q);
	warn_history(q);
}

static void stateful_set_updated(struct request *q)
{
	set_updated(q);
	warn_claims(q);
	warn_history(q);
}

/* ---- Job, CronJob ---- */

static void warn_job_spec(struct request *q, const struct field_path *at, struct val spec)
{
	if (str_eq(val_str(spec, completionMode), STR("Indexed")) && val_int(spec, completions) > 100000 &&
	    val_int(spec, parallelism) > 10000)
		warn_at(q, at,
			"In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
			       "Kubernetes might not be able to track completedIndexes when a big number of indexes fail");
	warn_pod(q, FIELD(at, "template"), val_get(spec, template));
}

static void warn_job(struct request *q) { warn_job_spec(q, FIELD(NULL, "spec"), val_get(q->object, spec)); }

static void job_created(struct request *q)
{
	warn_name(q, IN_PODS);
	warn_job(q);
}

static void job_updated(struct request *q)
{
	if (is_new_generation(q))
		warn_job(q);
}

static void warn_job_template(struct request *q)
{
	warn_job_spec(q, FIELD(FIELD(FIELD(NULL, "spec"), "jobTemplate"), "spec"), val_get(q->object, spec, jobTemplate, spec));
}

static void cron_job_created(struct request *q)
{
	warn_name(q, IN_PODS);
	warn_job_template(q);
}

static void cron_job_updated(struct request *q)
{
	if (is_new_generation(q))
		warn_job_template(q);
	if (str_find(val_str(q->object, spec, schedule), STR("TZ")) >= 0)
		warnf(q, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
			 "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
}

static const struct warned_kind all[] = {
	{ STR_INIT(""), STR_INIT("Pod"), pod_created, NULL, pod_status },
	{ STR_INIT(""), STR_INIT("PodTemplate"), template_created, template_updated, NULL },
	{ STR_INIT(""), STR_INIT("ReplicationController"), set_created, controller_updated, NULL },
	{ STR_INIT("apps"), STR_INIT("DaemonSet"), daemon_set_created, daemon_set_updated, NULL },
	{ STR_INIT("apps"), STR_INIT("Deployment"), set_created, set_updated, NULL },
	{ STR_INIT("apps"), STR_INIT("ReplicaSet"), set_created, set_updated, NULL },
	{ STR_INIT("apps"), STR_INIT("StatefulSet"), stateful_set_created, stateful_set_updated, NULL },
	{ STR_INIT("batch"), STR_INIT("CronJob"), cron_job_created, cron_job_updated, NULL },
	{ STR_INIT("batch"), STR_INIT("Job"), job_created, job_updated, NULL },
};

const struct warned_set warnings_workloads = { all, ARRAY_LEN(all) };
