/* The kinds of storage.k8s.io; volumes and claims are in validate_volume.c. */
#include "codec/atoms.h"
#include "codec/json.h"
#include "codec/quantity.h"
#include "machinery/validate_groups.h"

enum {
	PARAMETERS_MAX = 512,
	PARAMETERS_SIZE_MAX = 256 << 10,
	ATTACHMENT_METADATA_MAX = 256 << 10,
	VOLUME_ERROR_MAX = 1024,
	NODE_ID_MAX = 256,
	UPDATE_PERIOD_MIN = 10,
	TERM_TEXT_MAX = 8 << 20,
};

/* ---- StorageClass and VolumeAttributesClass ---- */

static void check_provisioner(struct field_errors *e, const struct field_path *at, str provisioner)
{
	if (check_given(e, at, provisioner))
		check_label_key(e, at, ascii_lower(e->arena, provisioner));
}

static size_t map_size(struct val map)
{
	size_t size = 0;
	VAL_EACH_MEMBER(m, map)
		size += atom_str(m->key).n + val_as_str(m->val).n;
	return size;
}

static void check_parameters(struct field_errors *e, const struct field_path *at, struct val parameters, bool required)
{
	if (val_len(parameters) > PARAMETERS_MAX) {
		field_too_long(e, at, PARAMETERS_MAX);
		return;
	}
	VAL_EACH_MEMBER(m, parameters)
		if (atom_str(m->key).n == 0)
			field_invalid(e, at, VAL_LIT(""), "field can not be empty.");
	if (map_size(parameters) > PARAMETERS_SIZE_MAX)
		field_too_long(e, at, PARAMETERS_SIZE_MAX);
	if (required && val_len(parameters) == 0)
		field_required(e, at, "must contain at least one key/value pair");
}

static void check_topology_term(struct field_errors *e, const struct field_path *at, struct val term)
{
	CLEANUP(map_done) struct map keys = MAP_INIT;
	size_t i = 0;

	VAL_EACH(requirement, val_get(term, matchLabelExpressions)) {
		CLEANUP(map_done) struct map seen = MAP_INIT;
		const struct field_path *item = FIELD_INDEX(at, i++);
		struct val values = val_get(*requirement, values);
		size_t j = 0;
		if (val_len(values) == 0)
			field_missing(e, FIELD(item, "values"));
		VAL_EACH(value, values) {
			if (!set_add(&seen, val_as_str(*value)))
				field_duplicate(e, FIELD_INDEX(FIELD(item, "values"), j), *value);
			j++;
		}
		check_label_key(e, FIELD(item, "key"), val_str(*requirement, key));
		if (!set_add(&keys, val_str(*requirement, key)))
			field_duplicate(e, FIELD(item, "key"), shown_str(val_get(*requirement, key)));
	}
}

/* The same for terms that select the same: of a key's requirements the last counts, and no order. */
static str term_text(struct arena *a, struct val term)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TERM_TEXT_MAX);
	struct val_builder keys = val_builder(a);
	struct err ignored;

	VAL_EACH(requirement, val_get(term, matchLabelExpressions)) {
		struct val_builder values = val_builder(a);
		VAL_EACH(value, val_get(*requirement, values))
			val_add_member(&values, atom_make(a, val_as_str(*value)), val_of_bool(true));
		val_add_member(&keys, atom_make(a, val_str(*requirement, key)), val_sorted(a, val_end_object(&values)));
	}
	(void)json_encode(&text, val_sorted(a, val_end_object(&keys)), &(struct json_encode_options){ .plain = true },
			  &ignored);
	return arena_str(a, buf_str(&text));
}

static void check_topologies(struct field_errors *e, struct val terms)
{
	CLEANUP(map_done) struct map counts = MAP_INIT;
	size_t i = 0;

	VAL_EACH(term, terms) {
		const struct field_path *at = FIELD(FIELD_INDEX(FIELD(NULL, "allowedTopologies"), i++),
						    "matchLabelExpressions");
		str text = term_text(e->arena, *term);
		size_t *seen = map_get(&counts, text);
		if (!seen) {
			seen = ARENA_NEW(e->arena, size_t);
			/* Kubernetes compares with as many empty terms as there are terms. */
			*seen = val_len(val_get(*term, matchLabelExpressions)) ? 0 : val_len(terms);
			map_put(&counts, text, seen);
		}
		check_topology_term(e, at, *term);
		for (size_t copies = *seen; copies && e->n < FIELD_ERRORS_MAX; copies--)
			field_duplicate(e, at, VAL_LIT(""));
		++*seen;
	}
}

static void check_storage_class(struct field_errors *e, struct val class)
{
	static const str policies[] = { STR_INIT("Delete"), STR_INIT("Retain"), { NULL, 0 } };
	static const str modes[] = { STR_INIT("Immediate"), STR_INIT("WaitForFirstConsumer"), { NULL, 0 } };
	str policy = val_str(class, reclaimPolicy);

	check_meta(e, class, false, name_rule_subdomain);
	check_provisioner(e, FIELD(NULL, "provisioner"), val_str(class, provisioner));
	check_parameters(e, FIELD(NULL, "parameters"), val_get(class, parameters), false);
	if (policy.n)
		check_one_of(e, FIELD(NULL, "reclaimPolicy"), policy, policies);
	if (!val_has(class, volumeBindingMode))
		field_missing(e, FIELD(NULL, "volumeBindingMode"));
	else
		check_one_of(e, FIELD(NULL, "volumeBindingMode"), val_str(class, volumeBindingMode), modes);
	check_topologies(e, val_get(class, allowedTopologies));
}

static void check_storage_class_update(struct field_errors *e, struct val class, struct val old)
{
	check_storage_class(e, class);
	check_meta_update(e, class, old);
	check_immutable(e, FIELD(NULL, "parameters"), NULL, val_get(class, parameters), val_get(old, parameters));
	check_immutable_str(e, FIELD(NULL, "provisioner"), val_str(class, provisioner), val_str(old, provisioner));
	check_immutable(e, FIELD(NULL, "reclaimPolicy"), NULL, val_get(class, reclaimPolicy), val_get(old, reclaimPolicy));
	check_immutable(e, FIELD(NULL, "volumeBindingMode"), NULL, val_get(class, volumeBindingMode),
			val_get(old, volumeBindingMode));
}

static void check_attributes_class(struct field_errors *e, struct val class)
{
	check_meta(e, class, false, name_rule_subdomain);
	check_provisioner(e, FIELD(NULL, "driverName"), val_str(class, driverName));
	check_parameters(e, FIELD(NULL, "parameters"), val_get(class, parameters), true);
}

static void check_attributes_class_update(struct field_errors *e, struct val class, struct val old)
{
	check_meta_update(e, class, old);
	if (!str_eq(val_str(class, driverName), val_str(old, driverName)))
		field_forbidden(e, FIELD(NULL, "driverName"), "updates to driverName are forbidden.");
	if (!val_semantic_equal(NULL, val_get(class, parameters), val_get(old, parameters)))
		field_forbidden(e, FIELD(NULL, "parameters"), "updates to parameters are forbidden.");
	check_attributes_class(e, class);
}

/* ---- VolumeAttachment ---- */

static void check_volume_error(struct field_errors *e, const struct field_path *at, struct val error)
{
	struct val code = val_get(error, errorCode);

	if (val_str(error, message).n > VOLUME_ERROR_MAX)
		field_too_long(e, FIELD(at, "message"), ATTACHMENT_METADATA_MAX);
	if (val_as_int(code) < 0)
		field_invalid(e, FIELD(at, "errorCode"), code, "must be between 0 and 2147483647, inclusive");
}

static void check_attachment_source(struct field_errors *e, const struct field_path *at, struct val source)
{
	static const char text[] = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
	bool named = val_has(source, persistentVolumeName), is_inline = val_has(source, inlineVolumeSpec);

	if (!named && !is_inline)
		field_required(e, at, text);
	else if (named && is_inline)
		field_forbidden(e, at, text);
	else if (named && val_str(source, persistentVolumeName).n == 0)
		field_required(e, FIELD(at, "persistentVolumeName"), "must specify non empty persistentVolumeName");
	else if (is_inline)
		check_inline_volume(e, FIELD(at, "inlineVolumeSpec"), val_get(source, inlineVolumeSpec));
}

static void check_attachment(struct field_errors *e, struct val attachment)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_status = FIELD(NULL, "status");
	struct val spec = val_get(attachment, spec), status = val_get(attachment, status);

	check_meta(e, attachment, false, name_rule_subdomain);
	check_csi_driver_name(e, FIELD(at, "attacher"), val_str(spec, attacher));
	check_attachment_source(e, FIELD(at, "source"), val_get(spec, source));
	check_name(e, FIELD(at, "nodeName"), val_str(spec, nodeName), name_check_dns1123_subdomain);
	if (map_size(val_get(status, attachmentMetadata)) > ATTACHMENT_METADATA_MAX)
		field_too_long(e, FIELD(at_status, "attachmentMetadata"), ATTACHMENT_METADATA_MAX);
	check_volume_error(e, FIELD(at_status, "attachError"), val_get(status, attachError));
	check_volume_error(e, FIELD(at_status, "detachError"), val_get(status, detachError));
	if (val_has(spec, source, persistentVolumeName))
		check_name(e, FIELD(NULL, "spec.source.persistentVolumeName"), val_str(spec, source, persistentVolumeName),
			   name_check_dns1123_subdomain);
}

static void check_attachment_update(struct field_errors *e, struct val attachment, struct val old)
{
	check_attachment(e, attachment);
	check_immutable(e, FIELD(NULL, "spec"), TYPE(storage_v1, VolumeAttachmentSpec), val_get(attachment, spec),
			val_get(old, spec));
}

static void check_attachment_status(struct field_errors *e, str subresource, struct val attachment, struct val old)
{
	(void)subresource;
	check_attachment_update(e, attachment, old);
}

/* ---- CSINode ---- */

static void check_node_driver(struct field_errors *e, const struct field_path *at, struct val driver, struct map *names)
{
	CLEANUP(map_done) struct map keys = MAP_INIT;
	str name = val_str(driver, name), id = val_str(driver, nodeID);

	check_csi_driver_name(e, FIELD(at, "name"), name);
	check_given(e, FIELD(at, "nodeID"), id);
	if (id.n > NODE_ID_MAX)
		field_invalid(e, FIELD(at, "nodeID"), VAL_STR(id), "must be %d characters or less", NODE_ID_MAX);
	check_non_negative(e, FIELD(FIELD(at, "allocatable"), "count"), val_get(driver, allocatable, count));
	if (!set_add(names, name))
		field_duplicate(e, FIELD(at, "name"), VAL_STR(name));
	VAL_EACH(key, val_get(driver, topologyKeys)) {
		check_given(e, at, val_as_str(*key));
		if (!set_add(&keys, val_as_str(*key)))
			field_duplicate(e, at, *key);
		check_label_key(e, at, val_as_str(*key));
	}
}

static void check_csi_node(struct field_errors *e, struct val node)
{
	CLEANUP(map_done) struct map names = MAP_INIT;
	size_t i = 0;

	check_meta(e, node, false, name_rule_subdomain);
	VAL_EACH(driver, val_get(node, spec, drivers))
		check_node_driver(e, FIELD_INDEX(FIELD(FIELD(NULL, "spec"), "drivers"), i++), *driver, &names);
}

static void check_csi_node_update(struct field_errors *e, struct val node, struct val old)
{
	CLEANUP(map_done) struct map drivers = MAP_INIT;

	check_csi_node(e, node);
	VAL_EACH(driver, val_get(node, spec, drivers))
		map_put(&drivers, val_str(*driver, name), (void *)driver);
	VAL_EACH(before, val_get(old, spec, drivers)) {
		const struct val *now = map_get(&drivers, val_str(*before, name));
		if (now)
			check_immutable(e, FIELD(FIELD(NULL, "spec"), "drivers"), TYPE(storage_v1, CSINodeDriver),
					val_without(e->arena, *now, allocatable),
					val_without(e->arena, *before, allocatable));
	}
}

/* ---- CSIDriver ---- */

static void check_token_requests(struct field_errors *e, const struct field_path *at, struct val requests)
{
	CLEANUP(map_done) struct map audiences = MAP_INIT;
	size_t i = 0;

	VAL_EACH(request, requests) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str audience = val_str(*request, audience);
		struct val seconds = val_get(*request, expirationSeconds);
		if (!set_add(&audiences, audience)) {
			field_duplicate(e, FIELD(item, "audience"), VAL_STR(audience));
			continue;
		}
		if (val_exists(seconds) && val_as_int(seconds) < 600)
			field_invalid(e, FIELD(item, "expirationSeconds"), seconds,
				      "may not specify a duration less than 10 minutes");
		if (val_as_int(seconds) > INT64_C(1) << 32)
			field_invalid(e, FIELD(item, "expirationSeconds"), seconds,
				      "may not specify a duration larger than 2^32 seconds");
	}
}

static void check_driver_spec(struct field_errors *e, struct val spec)
{
	static const str policies[] = { STR_INIT("File"), STR_INIT("None"), STR_INIT("ReadWriteOnceWithFSType"),
					{ NULL, 0 } };
	static const str modes[] = { STR_INIT("Persistent"), STR_INIT("Ephemeral"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec");
	struct val period = val_get(spec, nodeAllocatableUpdatePeriodSeconds);
	struct val secrets = val_get(spec, serviceAccountTokenInSecrets);

	if (!val_has(spec, attachRequired))
		field_missing(e, FIELD(at, "attachedRequired"));
	if (!val_has(spec, podInfoOnMount))
		field_missing(e, FIELD(at, "podInfoOnMount"));
	if (!val_has(spec, storageCapacity))
		field_missing(e, FIELD(at, "storageCapacity"));
	if (val_has(spec, fsGroupPolicy))
		check_one_of(e, FIELD(at, "fsGroupPolicy"), val_str(spec, fsGroupPolicy), policies);
	check_token_requests(e, FIELD(at, "tokenRequests"), val_get(spec, tokenRequests));
	VAL_EACH(mode, val_get(spec, volumeLifecycleModes))
		check_one_of(e, FIELD(at, "volumeLifecycleModes"), val_as_str(*mode), modes);
	if (!val_has(spec, seLinuxMount))
		field_missing(e, FIELD(at, "seLinuxMount"));
	if (val_exists(period) && val_as_int(period) < UPDATE_PERIOD_MIN)
		field_invalid(e, FIELD(at, "nodeAllocatableUpdatePeriodSeconds"), period,
			      "must be greater than or equal to %d seconds", UPDATE_PERIOD_MIN);
	if (val_exists(secrets) && val_len(val_get(spec, tokenRequests)) == 0)
		field_invalid(e, FIELD(at, "serviceAccountTokenInSecrets"), secrets,
			      "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

static void check_csi_driver(struct field_errors *e, struct val driver)
{
	check_meta(e, driver, false, name_rule_subdomain);
	check_driver_spec(e, val_get(driver, spec));
}

static void check_csi_driver_update(struct field_errors *e, struct val driver, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec");
	struct val now = val_get(driver, spec), before = val_get(old, spec);

	check_meta_update(e, driver, old);
	check_driver_spec(e, now);
	check_immutable(e, FIELD(at, "attachedRequired"), NULL, val_get(now, attachRequired),
			val_get(before, attachRequired));
	check_immutable(e, FIELD(at, "volumeLifecycleModes"), NULL, val_get(now, volumeLifecycleModes),
			val_get(before, volumeLifecycleModes));
}

/* ---- CSIStorageCapacity ---- */

static void check_capacity_all(struct field_errors *e, struct val capacity, bool allow_bad_values)
{
	struct val size = val_get(capacity, capacity);

	check_meta(e, capacity, true, name_rule_subdomain);
	check_label_selector(e, FIELD(NULL, "nodeTopology"), val_get(capacity, nodeTopology), allow_bad_values);
	check_name(e, FIELD(NULL, "storageClassName"), val_str(capacity, storageClassName), name_check_dns1123_subdomain);
	if (quantity_of(size).nanos < 0)
		field_invalid(e, FIELD(NULL, "capacity"), size, "must be greater than or equal to 0");
}

static void check_storage_capacity(struct field_errors *e, struct val capacity) { check_capacity_all(e, capacity, false); }

static void check_storage_capacity_update(struct field_errors *e, struct val capacity, struct val old)
{
	struct field_errors of_old;

	field_errors_init(&of_old, e->arena);
	check_label_selector(&of_old, NULL, val_get(old, nodeTopology), false);
	check_capacity_all(e, capacity, of_old.n > 0);
	check_meta_update(e, capacity, old);
	check_immutable(e, FIELD(NULL, "nodeTopology"), TYPE(meta_v1, LabelSelector), val_get(capacity, nodeTopology),
			val_get(old, nodeTopology));
	check_immutable_str(e, FIELD(NULL, "storageClassName"), val_str(capacity, storageClassName),
			    val_str(old, storageClassName));
}

const struct kind_rules rules_storage[] = {
	{ TYPE(core_v1, PersistentVolume), name_rule_subdomain, KIND_OWN_META, .defaults = default_persistent_volume,
	  .check = check_persistent_volume, .check_update = check_persistent_volume_update,
	  .check_subresource = check_persistent_volume_status, .prepare = prepare_volume,
	  .prepare_update = prepare_volume_update },
	{ TYPE(core_v1, PersistentVolumeClaim), name_rule_subdomain, KIND_OWN_META, .defaults = default_claim,
	  .check = check_claim, .check_update = check_claim_update, .check_subresource = check_claim_status,
	  .prepare = prepare_claim, .prepare_update = prepare_claim_update },
	{ TYPE(storage_v1, StorageClass), name_rule_subdomain, KIND_OWN_META, .defaults = default_storage_class,
	  .check = check_storage_class, .check_update = check_storage_class_update },
	{ TYPE(storage_v1, VolumeAttachment), name_rule_subdomain, KIND_OWN_META, .defaults = default_attachment,
	  .check = check_attachment, .check_update = check_attachment_update, .check_subresource = check_attachment_status,
	  .prepare_update = prepare_status_only },
	{ TYPE(storage_v1, CSIDriver), name_rule_subdomain, KIND_OWN_META, .defaults = default_csi_driver,
	  .check = check_csi_driver, .check_update = check_csi_driver_update,
	  .prepare_update = prepare_csi_driver_update },
	{ TYPE(storage_v1, CSINode), name_rule_subdomain, KIND_OWN_META, .check = check_csi_node,
	  .check_update = check_csi_node_update },
	{ TYPE(storage_v1, CSIStorageCapacity), name_rule_subdomain, KIND_OWN_META, .check = check_storage_capacity,
	  .check_update = check_storage_capacity_update },
	{ TYPE(storage_v1, VolumeAttributesClass), name_rule_subdomain, KIND_OWN_META, .check = check_attributes_class,
	  .check_update = check_attributes_class_update },
	{ 0 },
};
