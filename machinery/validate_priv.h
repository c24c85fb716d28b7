/*
 * What the files of defaults and validation share. A group's file implements rules and lists them in a table:
 *
 *	const struct kind_rules rules_policy[] = {
 *		{ TYPE(policy_v1, PodDisruptionBudget), name_rule_subdomain, .check = check_pdb, .check_update = check_pdb_update },
 *		{ 0 },
 *	};
 *
 * and validate.c gathers the tables. Rules of one kind serve all its versions: types are found by group and kind name.
 *
 * Answers list the errors in the order in which Kubernetes finds them, repeated ones included, so validate.c and the functions share
 * the work as the server's generic part and a kind's strategy do there:
 *
 *	create:       metadata with the kind's name rule; check; only if all that is fine, metadata with the rule for all names
 *	update:       metadata with the rule for all names; its change; its change once more (strategies repeat it); check_update
 *	              without check_update, the kind has no rules of its own for updates: metadata with the kind's name rule; check
 *	subresource:  metadata with the rule for all names; its change; its change once more; check_subresource
 *
 * Nothing here keeps state: any thread, no suspension.
 */
#ifndef C8S_MACHINERY_VALIDATE_PRIV_H
#define C8S_MACHINERY_VALIDATE_PRIV_H

#include "codec/types.h"
#include "machinery/names.h"
#include "machinery/validate.h"

enum kind_rules_flags {
	/* The functions check metadata themselves, where and as far as they like; validate.c does the generic part only. */
	KIND_OWN_META = 1 << 0,
	/* The declarative rules of the schema (facts->rules) are in force. For all other kinds Kubernetes only compares them with the code. */
	KIND_DECLARATIVE = 1 << 1,
};

struct kind_rules {
	const struct type *type;
	name_rule *name;        /* for metadata.name; NULL: the rule for all names, name_rule_path_segment */
	unsigned flags;
	/* The object with defaults that the schema cannot express; NULL: none. It is called after those of the schema are set. */
	struct val (*defaults)(struct arena *a, struct val object);
	/* All rules for a new object beyond its metadata. */
	void (*check)(struct field_errors *e, struct val object);
	/* All rules for an update beyond metadata: those of check that hold for updates, and those for the change. */
	void (*check_update)(struct field_errors *e, struct val object, struct val old);
	/* All rules for a write to a subresource such as "status"; NULL: none. */
	void (*check_subresource)(struct field_errors *e, str subresource, struct val object, struct val old);
};

/* Each ends with a row of zeros. */
extern const struct kind_rules rules_core[], rules_pod[], rules_workloads[], rules_networking[], rules_storage[], rules_access[],
	rules_extensions[];

/* ---- metadata: validate_meta.c ---- */

void check_object_meta(struct field_errors *e, const struct field_path *at, struct val meta, bool namespaced, name_rule *rule);
void check_object_meta_update(struct field_errors *e, const struct field_path *at, struct val meta, struct val old);
void check_labels(struct field_errors *e, const struct field_path *at, struct val labels);
void check_annotations(struct field_errors *e, const struct field_path *at, struct val annotations);
void check_owner_references(struct field_errors *e, const struct field_path *at, struct val references);
void check_managed_fields(struct field_errors *e, const struct field_path *at, struct val entries);
/* One word of a list of finalizers, as metadata and namespaces have them. */
void check_finalizer_name(struct field_errors *e, const struct field_path *at, str name);

/* LabelSelector objects; nothing is wrong with an absent one. With allow_bad_values, values need not be label values. */
void check_label_selector(struct field_errors *e, const struct field_path *at, struct val selector, bool allow_bad_values);
/* metav1.Condition lists; those of older kinds have their own rules. */
void check_conditions(struct field_errors *e, const struct field_path *at, struct val conditions);

/* ---- words for common rules: validate_meta.c ---- */

/* Every complaint of a check from names.h as "Invalid value: "value": complaint". */
void check_name(struct field_errors *e, const struct field_path *at, str value, name_check *check);
/* A label key: "[prefix/]name". */
void check_label_key(struct field_errors *e, const struct field_path *at, str key);
/* The field must be what it was: "field is immutable". type as for val_semantic_equal. */
void check_immutable(struct field_errors *e, const struct field_path *at, const struct type *type, struct val now, struct val before);
void check_non_negative(struct field_errors *e, const struct field_path *at, struct val number);
/* value is one of allowed (ended by { NULL, 0 }), or "Unsupported value". */
void check_one_of(struct field_errors *e, const struct field_path *at, str value, const str *allowed);
/* The same for a field that must be given: "Required value" when it is empty. */
void check_required_one_of(struct field_errors *e, const struct field_path *at, str value, const str *allowed);
bool str_in(str value, const str *list);
/*
 * Equality as Kubernetes means it for objects: empty lists and maps equal absent ones, quantities compare by value. type is that of the
 * object, or of the objects in the list or map; NULL: of scalars.
 */
bool val_semantic_equal(const struct type *type, struct val a, struct val b);
/*
 * Kubernetes shows objects in errors as Go's JSON of its internal types: {"Type":"Foo","RollingUpdate":null}. For an object of that type
 * (or a list of them) this is that text, to be given as the value of an error: internal_form.c, where types are listed. v itself for
 * those that are not.
 */
struct val internal_form(struct arena *a, const struct type *type, struct val v);

/* An integer from 1 to 65535, or a port name. */
void check_port_or_name(struct field_errors *e, const struct field_path *at, struct val port);
/* Integers of at least 0, or percentages. */
void check_int_or_percent(struct field_errors *e, const struct field_path *at, struct val value);
/* A percentage must not be above 100%. */
void check_at_most_100_percent(struct field_errors *e, const struct field_path *at, struct val value);
/* Relative paths without "..". */
void check_no_backsteps(struct field_errors *e, const struct field_path *at, str path, str shown);

/* ---- pods: validate_pod.c, defaults_pod.c ---- */

/* PodTemplateSpec, for all kinds that have one. old: the template before an update, VAL_NONE for a new object; what it already had stays allowed. */
void check_pod_template(struct field_errors *e, const struct field_path *at, struct val template, struct val old);
struct val default_pod_template(struct arena *a, struct val template);
struct val default_pod_spec(struct arena *a, struct val spec);

/* Values rounded up to milli, as in every ResourceList. */
struct val default_resource_list(struct arena *a, struct val list);

/* ---- pieces of pods that other kinds have too ---- */

/* Tolerations (also of RuntimeClass): validate_scheduling.c. */
void check_tolerations(struct field_errors *e, const struct field_path *at, struct val tolerations);
/* NodeSelector (also of PersistentVolume, ResourceSlice): with allow_bad_values, values need not be label values. */
void check_node_selector(struct field_errors *e, const struct field_path *at, struct val selector, bool allow_bad_values);
void check_node_selector_term(struct field_errors *e, const struct field_path *at, struct val term, bool allow_bad_values);
/* A qualified name, shown with the node's taint: "key" of taints and labels that users give. */
void check_taint_effect(struct field_errors *e, const struct field_path *at, str effect, bool allow_empty);

/* Resources: validate_resources.c. A quantity that is negative, or that must be whole and is not. */
void check_resource_quantity(struct field_errors *e, const struct field_path *at, str resource, struct val quantity);
/* The name of a resource in general (LimitRange, ResourceQuota), and one that containers may ask for. */
void check_resource_name(struct field_errors *e, const struct field_path *at, str resource);
void check_container_resource_name(struct field_errors *e, const struct field_path *at, str resource);
/* cpu, memory, pods, ...: without a prefix or with one of Kubernetes' own. */
bool resource_is_standard(str resource);
/* Counted in whole units: pods, services, ... */
bool resource_is_integer(str resource);
bool resource_is_huge_page(str resource);
bool resource_is_extended(str resource);
/* kubernetes.io/ or no prefix. */
bool resource_is_native(str resource);
/* The quantity of a tree's text; zero for what is absent or is no quantity. */
struct quantity quantity_of(struct val text);

/*
 * Claims: validate_claim.c. PersistentVolumeClaimSpec, as claims, ephemeral volumes and StatefulSets have it; old is the spec before an
 * update, else VAL_NONE. LocalObjectReference and its kin: a name that is required.
 */
void check_claim_spec(struct field_errors *e, const struct field_path *at, struct val spec, struct val old);
void check_access_modes(struct field_errors *e, const struct field_path *at, struct val modes);
void check_volume_mode(struct field_errors *e, const struct field_path *at, struct val mode);

/* Volume sources that pods and PersistentVolumes share: validate_volume_sources.c. */
void check_host_path_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_gce_disk_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_aws_disk_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_nfs_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_flocker_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_quobyte_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_fc_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_vsphere_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_photon_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_azure_disk_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_portworx_source(struct field_errors *e, const struct field_path *at, struct val source);
/* Those whose form for PersistentVolumes has a namespace beside the name of a secret. */
void check_rbd_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_cephfs_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_iscsi_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_scaleio_source(struct field_errors *e, const struct field_path *at, struct val source);
void check_csi_driver_name(struct field_errors *e, const struct field_path *at, str driver);

#endif
