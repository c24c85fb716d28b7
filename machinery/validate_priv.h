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
 * Answers list the errors in the order in which Kubernetes finds them, repeated ones included, so validate.c and the
 * functions share the work as the server's generic part and a kind's strategy do there:
 *
 *	create:       metadata with the kind's name rule; check; only if all that is fine, metadata with the rule for all names
 *	update:       metadata with the rule for all names; its change; its change once more (strategies repeat it); check_update
 *	              without check_update, the kind has no rules of its own for updates: metadata with the kind's name rule; check
 *	subresource:  metadata with the rule for all names; its change; with check_subresource: its change once more; check_subresource
 *
 * Nothing here keeps state: any thread, no suspension.
 */
#ifndef C8S_MACHINERY_VALIDATE_PRIV_H
#define C8S_MACHINERY_VALIDATE_PRIV_H

#include "base/map.h"
#include "codec/types.h"
#include "machinery/names.h"
#include "machinery/resources.h"
#include "machinery/validate.h"

enum kind_rules_flags {
	/* The functions check metadata themselves, where and as far as they like; validate.c does the generic part only. */
	KIND_OWN_META = 1 << 0,
	/*
	 * The declarative rules of the schema (facts->rules) are in force. For all other kinds Kubernetes only compares
	 * them with the code.
	 */
	KIND_DECLARATIVE = 1 << 1,
	/* metadata.generation counts the changes of everything but metadata and status. */
	KIND_GENERATION = 1 << 2,
	/* A new object can bring its status along; else it is taken away from kinds that have a status subresource. */
	KIND_STATUS_ON_CREATE = 1 << 3,
	/* A question that is answered and not kept, such as a SubjectAccessReview: nothing is asked of its metadata. */
	KIND_NOT_STORED = 1 << 4,
};

struct kind_rules {
	const struct type *type;
	name_rule *name;        /* for metadata.name; NULL: the rule for all names, name_rule_path_segment */
	unsigned flags;
	/* The object with defaults that the schema cannot express; NULL: none. Those of the schema are set after it. */
	struct val (*defaults)(struct arena *a, struct val object);
	/* All rules for a new object beyond its metadata. */
	void (*check)(struct field_errors *e, struct val object);
	/* All rules for an update beyond metadata: those of check that hold for updates, and those for the change. */
	void (*check_update)(struct field_errors *e, struct val object, struct val old);
	/* All rules for a write to a subresource such as "status"; NULL: none. */
	void (*check_subresource)(struct field_errors *e, str subresource, struct val object, struct val old);
	/*
	 * What the server fills in for a new object and for an update, see prepare_create and prepare_update; NULL:
	 * nothing.
	 */
	struct val (*prepare)(struct arena *a, struct val object);
	struct val (*prepare_update)(struct arena *a, str subresource, struct val object, struct val old);
};

/* Each ends with a row of zeros. */
extern const struct kind_rules rules_core[], rules_pod[], rules_workloads[], rules_networking[], rules_storage[],
	rules_access[], rules_extensions[];

/*
 * The object without fields of features that are off, unless old (VAL_NONE for a new object) uses them:
 * disabled_fields.c.
 */
struct val drop_disabled_fields(struct arena *a, const struct type *type, struct val gates, struct val object, struct val old);
/*
 * The declarative rules of the schema for a kind with KIND_DECLARATIVE: validate_declarative.c. old is VAL_NONE for a
 * new object.
 */
void check_declared(struct field_errors *e, const struct type *type, struct val object, struct val old);

/* ---- metadata: validate_meta.c ---- */

void check_object_meta(struct field_errors *e, const struct field_path *at, struct val meta, bool namespaced,
		       name_rule *rule);
void check_object_meta_update(struct field_errors *e, const struct field_path *at, struct val meta, struct val old);
/* What the server checks for all kinds, without the rules for finalizers that built-in kinds add. */
void check_generic_meta(struct field_errors *e, const struct field_path *at, struct val meta, bool namespaced,
			name_rule *rule);
void check_generic_meta_update(struct field_errors *e, const struct field_path *at, struct val meta, struct val old);
void check_labels(struct field_errors *e, const struct field_path *at, struct val labels);
void check_annotations(struct field_errors *e, const struct field_path *at, struct val annotations);
void check_owner_references(struct field_errors *e, const struct field_path *at, struct val references);
void check_managed_fields(struct field_errors *e, const struct field_path *at, struct val entries);
/* One word of a list of finalizers, as metadata and namespaces have them. */
void check_finalizer_name(struct field_errors *e, const struct field_path *at, str name);

/* One condition of a label or node selector; orders: Gt and Lt are allowed. */
void check_requirement(struct field_errors *e, const struct field_path *at, struct val r, bool orders, bool allow_bad_values);
/* LabelSelector objects; nothing is wrong with an absent one. With allow_bad_values, values need not be label values. */
void check_label_selector(struct field_errors *e, const struct field_path *at, struct val selector, bool allow_bad_values);
/* metav1.Condition lists; those of older kinds have their own rules. */
void check_conditions(struct field_errors *e, const struct field_path *at, struct val conditions);

/* ---- words for common rules: validate_meta.c ---- */

/* "Required value", with nothing more to say. */
static inline void field_missing(struct field_errors *e, const struct field_path *at) { field_required(e, at, "%s", ""); }
/* Every complaint of a check from names.h as "Invalid value: "value": complaint". */
void check_name(struct field_errors *e, const struct field_path *at, str value, name_check *check);
/* A label key: "[prefix/]name". */
void check_label_key(struct field_errors *e, const struct field_path *at, str key);
/* The field must be what it was: "field is immutable". type as for val_semantic_equal. */
void check_immutable(struct field_errors *e, const struct field_path *at, const struct type *type, struct val now,
		     struct val before);
void check_non_negative(struct field_errors *e, const struct field_path *at, struct val number);
/* value is one of allowed (ended by { NULL, 0 }), or "Unsupported value". */
void check_one_of(struct field_errors *e, const struct field_path *at, str value, const str *allowed);
/* The same for a field that must be given: "Required value" when it is empty. */
void check_required_one_of(struct field_errors *e, const struct field_path *at, str value, const str *allowed);
bool str_in(str value, const str *list);
/* With A to Z as small letters; in the arena. */
str ascii_lower(struct arena *a, str s);
/* A set of texts, freed by CLEANUP(map_done) struct map set = MAP_INIT; false when the text was there before. */
static inline bool set_add(struct map *set, str text) { return !map_put(set, text, set); }
static inline bool set_has(const struct map *set, str text) { return map_get(set, text) != NULL; }
/*
 * Equality as Kubernetes means it for objects: empty lists and maps equal absent ones, quantities compare by value.
 * type is that of the object, or of the objects in the list or map; NULL: of scalars.
 */
bool val_semantic_equal(const struct type *type, struct val a, struct val b);
/* The same for the values of a field, whose schema tells what an absent one is equal to. */
bool field_semantic_equal(const struct field *f, struct val a, struct val b);
/*
 * Kubernetes shows objects in errors as Go's JSON of its internal types: {"Type":"Foo","RollingUpdate":null}. This
 * makes a free tree that encodes to that text from an object of the type (or a list of them), to be given as the value
 * of an error: internal_form.c.
 */
struct val internal_form(struct arena *a, const struct type *type, struct val v);
/* The same as clients see it, with the fields that are written even when they are empty: what declarative rules show. */
struct val published_form(struct arena *a, const struct type *type, struct val v);

/* An integer from 1 to 65535, or a port name. */
void check_port_or_name(struct field_errors *e, const struct field_path *at, struct val port);
/* Integers of at least 0, or percentages. */
void check_int_or_percent(struct field_errors *e, const struct field_path *at, struct val value);
/* A percentage must not be above 100%. */
void check_at_most_100_percent(struct field_errors *e, const struct field_path *at, struct val value);
/* Paths: without "..", relative and without "..", and such that do not begin with ".." either. */
void check_no_backsteps(struct field_errors *e, const struct field_path *at, str path);
void check_descending_path(struct field_errors *e, const struct field_path *at, str path);
void check_local_path(struct field_errors *e, const struct field_path *at, str path);

/* ---- words for defaults: validate.c ---- */

/* Sets a member that is absent. */
struct val default_member(struct arena *a, struct val object, atom key, struct val v);
/* Puts the result of fn in the place of a member that exists, and in that of every item of a list. */
struct val edit_member(struct arena *a, struct val object, atom key, struct val (*fn)(struct arena *a, struct val member));
struct val edit_items(struct arena *a, struct val list, struct val (*fn)(struct arena *a, struct val item));

/* ---- pods: validate_pod.c, defaults_pod.c ---- */

/*
 * PodTemplateSpec, for all kinds that have one. old: the template before an update, VAL_NONE for a new object; what it
 * already had stays allowed.
 */
void check_pod_template(struct field_errors *e, const struct field_path *at, struct val template, struct val old);
/* Only the annotations of a template that mean something for pods. */
void check_template_annotations(struct field_errors *e, const struct field_path *at, struct val template, struct val old);
struct val default_pod_template(struct arena *a, struct val template);
struct val default_pod_spec(struct arena *a, struct val spec);
/* PersistentVolumeClaimSpec, also in templates. */
struct val default_claim_spec(struct arena *a, struct val spec);

/* Values rounded up to milli, as in every ResourceList. */
struct val default_resource_list(struct arena *a, struct val list);

/* ---- pieces of pods that other kinds have too ---- */

/* Tolerations (also of RuntimeClass): validate_scheduling.c. */
void check_tolerations(struct field_errors *e, const struct field_path *at, struct val tolerations);
/* NodeSelector (also of PersistentVolume, ResourceSlice): with allow_bad_values, values need not be label values. */
void check_node_selector(struct field_errors *e, const struct field_path *at, struct val selector, bool allow_bad_values);
void check_node_selector_term(struct field_errors *e, const struct field_path *at, struct val term, bool allow_bad_values);
void check_taint_effect(struct field_errors *e, const struct field_path *at, str effect, bool allow_empty);

/* Resources: validate_resources.c. A quantity that is negative, or that must be whole and is not. */
void check_resource_quantity(struct field_errors *e, const struct field_path *at, str resource, struct val quantity);
/* The name of a resource in general (LimitRange, ResourceQuota), and one that containers may ask for. */
void check_resource_name(struct field_errors *e, const struct field_path *at, str resource);
void check_container_resource_name(struct field_errors *e, const struct field_path *at, str resource);

/*
 * Claims: validate_claim.c. PersistentVolumeClaimSpec, as claims, ephemeral volumes and StatefulSets have it; old is
 * the spec before an update, else VAL_NONE: what it already had stays allowed.
 */
void check_claim_spec(struct field_errors *e, const struct field_path *at, struct val spec, struct val old);
/* Known modes only, and ReadWriteOncePod alone. */
void check_access_modes(struct field_errors *e, const struct field_path *at, struct val modes);
void check_volume_mode(struct field_errors *e, const struct field_path *at, struct val mode);

/*
 * Volume sources that pods and PersistentVolumes share: validate_volume_sources.c. Where the two forms differ only in a
 * namespace beside the name of a secret, one function serves both.
 */
typedef void source_check(struct field_errors *e, const struct field_path *at, struct val source);
source_check check_host_path_source, check_gce_disk_source, check_aws_disk_source, check_nfs_source, check_flocker_source,
	check_quobyte_source, check_fc_source, check_vsphere_source, check_photon_source, check_azure_disk_source,
	check_portworx_source, check_rbd_source, check_cephfs_source, check_scaleio_source, check_flex_source,
	check_glusterfs_source, check_azure_file_source, check_cinder_source, check_storageos_source;
/* volume: the name of the PersistentVolume; NULL in pods. */
void check_iscsi_source(struct field_errors *e, const struct field_path *at, struct val source, const str *volume);
void check_csi_driver_name(struct field_errors *e, const struct field_path *at, str driver);

#endif
