/* What the files of workload kinds share: ReplicationController to StatefulSet, Job and CronJob, PodDisruptionBudget. */
#ifndef C8S_MACHINERY_VALIDATE_WORKLOADS_H
#define C8S_MACHINERY_VALIDATE_WORKLOADS_H

#include "machinery/validate_priv.h"

/* defaults_workloads.c */
struct val default_replication_controller(struct arena *a, struct val rc);
struct val default_replica_set(struct arena *a, struct val rs);
struct val default_deployment(struct arena *a, struct val deployment);
struct val default_daemon_set(struct arena *a, struct val ds);
struct val default_stateful_set(struct arena *a, struct val sts);
struct val default_job(struct arena *a, struct val job);
struct val default_cron_job(struct arena *a, struct val cron_job);
struct val default_pod_template_kind(struct arena *a, struct val template);

struct val prepare_job(struct arena *a, struct val job);
struct val prepare_daemon_set(struct arena *a, struct val ds);
struct val prepare_daemon_set_update(struct arena *a, str subresource, struct val ds, struct val old);
struct val prepare_deployment_update(struct arena *a, str subresource, struct val deployment, struct val old);

/* validate_stateful_set.c */
void check_stateful_set(struct field_errors *e, struct val sts);
void check_stateful_set_update(struct field_errors *e, struct val sts, struct val old);
void check_stateful_set_status(struct field_errors *e, str subresource, struct val sts, struct val old);

/* validate_job.c, validate_job_status.c */
void check_job(struct field_errors *e, struct val job);
void check_job_update(struct field_errors *e, struct val job, struct val old);
void check_job_status(struct field_errors *e, str subresource, struct val job, struct val old);
void check_cron_job(struct field_errors *e, struct val cron_job);
void check_cron_job_update(struct field_errors *e, struct val cron_job, struct val old);
/* "1,3-5,7": how many indexes that are; -1 with the text of what is wrong in *ret_why (in the arena). */
int64_t count_indexes(struct arena *a, str text, int64_t completions, str *ret_why);
bool job_condition(struct val job, str type, str status);

/*
 * validate_workloads.c: the selector of a workload must match its template. False when it cannot be used at all, which
 * is reported with the words of bad_selector (NULL: not here).
 */
bool check_selects(struct field_errors *e, const struct field_path *at, struct val spec, const char *bad_selector);
/* A selector that must be given and not be empty. */
void check_workload_selector(struct field_errors *e, const struct field_path *at, struct val selector, const char *kind);
/* Pods of a workload start again, and run as long as they like. */
void check_runs_forever(struct field_errors *e, const struct field_path *at, struct val template, const char *kind);
/* The number of an integer or percentage. */
int64_t int_or_percent(struct val v);

#endif
