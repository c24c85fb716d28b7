/*
 * What the files that check pods share. A check of one pod spec is a struct pod_check: the spec, where errors go, and
 * what is tolerated because the object had it before. Rules grow stricter with time; an update must not fail for what
 * was once allowed.
 */
#ifndef C8S_MACHINERY_VALIDATE_POD_H
#define C8S_MACHINERY_VALIDATE_POD_H

#include "machinery/validate_priv.h"

struct pod_check {
	struct field_errors *e;
	bool is_pod;             /* a Pod, not a template */
	struct val spec;
	struct val meta;         /* of a Pod; VAL_NONE for templates */
	struct map volumes;      /* name -> const struct val *: the volumes without errors */
	struct map claims;       /* names in resourceClaims */
	str claim_names;         /* the same as errors list them, once one did */

	/* Tolerated, since the old object has it. */
	bool bad_deletion_cost;
	bool bad_selector_values;          /* in selectors of pod affinity */
	bool bad_node_affinity_values;
	bool bad_spread_selector;
	bool bad_spread_keys;              /* matchLabelKeys of spread constraints obey the older rule */
	bool indivisible_huge_pages;
	bool foreign_token_path;
	bool host_sysctls;
	bool user_namespace_devices;
	bool user_namespace_host_network;
	bool numeric_tolerations;          /* operators Lt and Gt */
	bool restart_on_resize_of_init;
	bool any_selinux_policy;
};

/* For the spec of a Pod or template; old_* are VAL_NONE unless it is an update. To be ended by pod_check_done. */
void pod_check_init(struct pod_check *c, struct field_errors *e, struct val spec, struct val old_spec, struct val old_meta);
void pod_check_done(struct pod_check *c);
/* The annotation that tells which pod to delete first is no number. */
bool deletion_cost_is_bad(struct val annotations);

/* validate_pod.c: everything about a spec, and about annotations of pods and templates that mean something. */
void check_pod_spec(struct pod_check *c, const struct field_path *at);
void check_pod_annotations(struct pod_check *c, const struct field_path *at, struct val annotations);
/* metadata and spec of a Pod, as for a new one. */
void check_pod_whole(struct pod_check *c);

/* Calls fn for every container: init, regular and ephemeral ones. */
typedef void pod_container_fn(struct pod_check *c, const struct field_path *at, struct val container, void *arg);
void each_container(struct pod_check *c, const struct field_path *at, pod_container_fn *fn, void *arg);

/* prepare_pod.c: the appArmorProfile that an annotation of old stands for; VAL_NONE if for none that is valid. */
struct val app_armor_profile(struct arena *a, str text);

/* validate_pod_containers.c */
void check_containers(struct pod_check *c, const struct field_path *at);
/* White space at an end. */
bool str_is_padded(str s);
void check_image_padding(struct field_errors *e, const struct field_path *at, struct val containers);

/* validate_pod_env.c */
void check_env(struct pod_check *c, const struct field_path *at, struct val vars);
void check_env_from(struct pod_check *c, const struct field_path *at, struct val sources);
/* ObjectFieldSelector with one of these paths, and ResourceFieldSelector; volumes must name the container. */
void check_field_ref(struct field_errors *e, const struct field_path *at, struct val ref, const str *paths);
void check_resource_ref(struct field_errors *e, const struct field_path *at, struct val ref, bool in_volume);

/* validate_pod_probes.c: probes and hooks of a container that may have them. */
void check_probes(struct pod_check *c, const struct field_path *at, struct val container);

/* validate_pod_volumes.c: fills c->volumes. */
void check_volumes(struct pod_check *c, const struct field_path *at, struct val volumes);

/* validate_pod_security.c, validate_pod_os.c */
void check_security_context(struct pod_check *c, const struct field_path *at, struct val context);
void check_pod_security_context(struct pod_check *c, const struct field_path *at);
void check_seccomp_annotations(struct pod_check *c, const struct field_path *at, struct val annotations);
void check_app_armor_annotations(struct pod_check *c, const struct field_path *at, struct val annotations);
/* Profiles in annotations and in fields must agree; at is that of the spec. */
void check_profiles_agree(struct pod_check *c, const struct field_path *at, struct val annotations);
bool sysctl_is_of_host(str name, struct val spec, const char **ret_flag);
void check_windows_options(struct field_errors *e, const struct field_path *at, struct val options);
void check_host_process(struct pod_check *c, const struct field_path *at);
void check_pod_os(struct pod_check *c, const struct field_path *at);
bool pod_uses_host_users(struct val spec);

/* validate_scheduling.c, validate_affinity.c */
void check_scheduling(struct pod_check *c, const struct field_path *at);
void check_affinity(struct pod_check *c, const struct field_path *at, struct val affinity);
void check_spread_constraints(struct pod_check *c, const struct field_path *at, struct val constraints);
/* matchLabelKeys (and mismatchLabelKeys) of an affinity term or spread constraint. */
void check_match_label_keys(struct field_errors *e, const struct field_path *at, struct val term);
void check_pod_tolerations(struct pod_check *c, const struct field_path *at, struct val tolerations);

/* validate_resources.c: of a container (claims of the pod in c), and of the pod itself. */
void check_container_resources(struct pod_check *c, const struct field_path *at, struct val resources);
void check_pod_resources(struct pod_check *c, const struct field_path *at);
bool huge_page_divides(str resource, struct val quantity);

/* validate_pod_update.c, validate_pod_status.c */
void check_pod_update(struct field_errors *e, struct val pod, struct val old);
void check_pod_subresource(struct field_errors *e, str subresource, struct val pod, struct val old);
void check_pod_status(struct field_errors *e, struct val pod, struct val old);
void check_pod_annotations_update(struct pod_check *c, const struct field_path *at, struct val annotations, struct val old);

/* defaults_pod.c, prepare_pod.c */
struct val default_pod(struct arena *a, struct val pod);
struct val prepare_pod(struct arena *a, struct val pod);
struct val prepare_pod_update(struct arena *a, str subresource, struct val pod, struct val old);

#endif
