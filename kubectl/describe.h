/*
 * describe: what is worth knowing of an object, in columns. Every kind has a function that says its parts; kinds that have none are
 * shown field by field.
 */
#ifndef C8S_KUBECTL_DESCRIBE_H
#define C8S_KUBECTL_DESCRIBE_H

#include "kubectl/builder.h"
#include "kubectl/tabs.h"

struct ktl_page {
	struct ktl *k;
	struct ktl_tabs tabs;
	bool events;                 /* are wanted */
};

/* A function for one kind; the object is whole. May suspend. */
typedef int ktl_describe_fn(struct ktl_page *p, struct val object);

ktl_describe_fn ktl_describe_pod, ktl_describe_deployment, ktl_describe_replica_set, ktl_describe_stateful_set, ktl_describe_daemon_set,
	ktl_describe_job, ktl_describe_cron_job, ktl_describe_node, ktl_describe_service, ktl_describe_config_map, ktl_describe_secret,
	ktl_describe_namespace, ktl_describe_service_account, ktl_describe_role, ktl_describe_binding, ktl_describe_claim, ktl_describe_volume,
	ktl_describe_storage_class, ktl_describe_ingress, ktl_describe_network_policy, ktl_describe_endpoint_slice, ktl_describe_quota,
	ktl_describe_disruption_budget, ktl_describe_priority_class, ktl_describe_autoscaler, ktl_describe_limit_range;

/* Adds text, with two spaces per level before it. A tab ends a cell. */
void ktl_say(struct ktl_page *p, unsigned level, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "Title:\tkey=value" and one line for each further one; "<none>". */
void ktl_say_labels(struct ktl_page *p, const char *title, struct val map);
void ktl_say_annotations(struct ktl_page *p, const char *title, struct val map);
void ktl_say_tolerations(struct ktl_page *p, const char *title, struct val list);
/* Name, namespace. */
void ktl_say_name(struct ktl_page *p, struct val object);
/* "Controlled By:\tReplicaSet/web-1", where it is. */
void ktl_say_owner(struct ktl_page *p, struct val object);
/* A table of conditions, where there are some; seen: the member that says when it was looked at last, and its heading. */
void ktl_say_conditions(struct ktl_page *p, struct val conditions, const char *heading, atom seen);
/* (suspends) Events about the object, when they are wanted; kind may be empty for any. */
void ktl_say_events(struct ktl_page *p, struct val object, str kind);
void ktl_say_event_list(struct ktl_page *p, struct val events);
/* (suspends) */
struct val ktl_find_events(struct ktl *k, struct val object, str kind, str uid);

/* Mon, 02 Jan 2006 15:04:05 -0700, in local time. */
str ktl_date(struct ktl *k, str time);
/* How long ago; "<unknown>". */
str ktl_age(struct ktl *k, str time);
/* The items of a list with commas between. */
str ktl_join(struct ktl *k, struct val list, const char *between);
/* The text, or "<none>". */
static inline str ktl_or_none(str s) { return s.n ? s : STR("<none>"); }
/* A number or text as it is written. */
str ktl_plain(struct ktl *k, struct val v);
str ktl_selector(struct ktl *k, struct val label_selector);

/* ---- describe_pod.c, describe_volumes.c ---- */

void ktl_say_template(struct ktl_page *p, struct val template);
void ktl_say_volumes(struct ktl_page *p, struct val volumes, const char *space);
/* What of its members says where it comes from. */
void ktl_say_volume_source(struct ktl_page *p, struct val volume);
/* The text of a template, not set in columns: for rollout history. */
str ktl_template_text(struct ktl *k, struct val template);

/* ---- describe_access.c ---- */

/* A line for each resource or path, with its verbs, in kubectl's order. */
void ktl_say_rules(struct ktl_page *p, unsigned level, struct val rules);

/* ---- describe_service.c ---- */

/* (suspends) The endpoint slices of a service. */
int ktl_find_slices(struct ktl *k, str namespace, str service, struct val *ret);
/* Up to three addresses of the slices' port of this name that are ready. */
str ktl_endpoints(struct ktl *k, struct val slices, str port_name);

/* ---- deployments.c: for describe and rollout ---- */

/* (suspends) The replica sets that a deployment controls, oldest first. */
int ktl_replica_sets_of(struct ktl *k, struct val deployment, struct val *ret);
/* Whether two templates are the same but for the hash that replica sets add. */
bool ktl_same_template(struct ktl *k, struct val x, struct val y);
/* The one that has the deployment's template; VAL_NONE: there is none. */
struct val ktl_newest_replica_set(struct ktl *k, struct val deployment, struct val list);
bool ktl_is_controlled_by(struct val object, str uid);

#endif
