/*
 * What the files of defaults and validation share. A group's file implements rules and lists them in a table:
 *
 *	const struct kind_rules rules_policy[] = {
 *		{ TYPE(policy_v1, PodDisruptionBudget), default_pdb, validate_pdb, update_pdb },
 *		{ 0 },
 *	};
 *
 * and validate.c gathers the tables. Rules of one kind serve all its versions: types are found by group and kind name.
 */
#ifndef C8S_MACHINERY_VALIDATE_PRIV_H
#define C8S_MACHINERY_VALIDATE_PRIV_H

#include "codec/types.h"
#include "machinery/validate.h"

struct kind_rules {
	const struct type *type;
	/* The object with defaults that the schema cannot express; NULL: none. */
	struct val (*defaults)(struct arena *a, struct val object);
	/* Rules for the object as it is, beyond metadata and the declarative ones, which validate.c checks. */
	void (*check)(struct field_errors *e, struct val object);
	/* Rules for the change; check has run on the new object before when it applies to updates too. */
	void (*check_update)(struct field_errors *e, struct val object, struct val old);
	/* Rules for a write to a subresource such as "status"; NULL: none. */
	void (*check_subresource)(struct field_errors *e, str subresource, struct val object, struct val old);
};

extern const struct kind_rules rules_core[], rules_workloads[], rules_networking[], rules_storage[], rules_access[], rules_extensions[];

/* ---- shared pieces, implemented in validate_meta.c, validate_pod.c and defaults_pod.c ---- */

/* name: the rule for metadata.name, see names.h. */
void check_object_meta(struct field_errors *e, const struct field_path *at, struct val meta, bool namespaced,
		       size_t (*name_rule)(struct arena *a, str name, bool prefix, str *messages, size_t max));
void check_object_meta_update(struct field_errors *e, const struct field_path *at, struct val meta, struct val old);
void check_labels(struct field_errors *e, const struct field_path *at, struct val labels);
void check_annotations(struct field_errors *e, const struct field_path *at, struct val annotations);
/* LabelSelector objects. */
void check_label_selector(struct field_errors *e, const struct field_path *at, struct val selector);
void check_conditions(struct field_errors *e, const struct field_path *at, struct val conditions);
/* The field must be what it was: "field is immutable". */
void check_immutable(struct field_errors *e, const struct field_path *at, struct val now, struct val before);
void check_non_negative(struct field_errors *e, const struct field_path *at, struct val number);

/* PodTemplateSpec, for all kinds that have one. */
void check_pod_template(struct field_errors *e, const struct field_path *at, struct val template);
void check_pod_spec(struct field_errors *e, const struct field_path *at, struct val spec);
struct val default_pod_spec(struct arena *a, struct val spec);
/* ResourceList values rounded up to milli, as in every ResourceList. */
struct val default_resource_list(struct arena *a, struct val list);

#endif
