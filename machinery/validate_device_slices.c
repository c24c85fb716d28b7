/* ResourceSlices: the devices that a driver publishes. */
#include "base/buf.h"
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/semver.h"
#include "machinery/validate_devices.h"

enum {
	DEVICES_MAX = 128,
	ADVANCED_DEVICES_MAX = 64,
	ATTRIBUTES_MAX = 32,
	ATTRIBUTE_VALUES_MAX = 48,
	ATTRIBUTE_LENGTH_MAX = 64,
	TAINTS_MAX = 16,
	COUNTER_SETS_MAX = 8,
	COUNTERS_MAX = 32,
	CONSUMED_SETS_MAX = 2,
	VALID_VALUES_MAX = 10,
};

/* In version v1beta1 what is said about a device stands in a member "basic". */
static struct val body_of(struct val device) { return val_has(device, basic) ? val_get(device, basic) : device; }

/* Long keys lose their middle when they become part of a path. */
static str shortened(struct arena *a, str key, size_t max)
{
	if (key.n <= max)
		return key;
	size_t rest = max - 3;
	return arena_printf(a, STR_FMT "..." STR_FMT, STR_ARG(str_head(key, (rest + 1) / 2)),
			    STR_ARG(str_skip(key, key.n - rest / 2)));
}

/* ---- attributes ---- */

static void check_attribute_text(struct field_errors *e, const struct field_path *at, struct val text, bool version)
{
	struct semver parsed;
	if (version && !semver_parse(val_as_str(text), &parsed))
		field_invalid(e, at, text, "must be a string compatible with semver.org spec 2.0.0");
	if (val_as_str(text).n > ATTRIBUTE_LENGTH_MAX)
		field_too_long(e, at, ATTRIBUTE_LENGTH_MAX);
}

static void check_attribute(struct field_errors *e, const struct field_path *at, struct val attribute)
{
	static const uint16_t lists[] = { A_bools, A_ints, A_strings, A_versions };
	size_t found = val_has(attribute, bool) + val_has(attribute, int) + val_has(attribute, string) +
		       val_has(attribute, version);

	if (val_has(attribute, string))
		check_attribute_text(e, FIELD(at, "string"), val_get(attribute, string), false);
	if (val_has(attribute, version))
		check_attribute_text(e, FIELD(at, "version"), val_get(attribute, version), true);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct field_path *at_list = FIELD_STR(at, atom_str(lists[i]));
		struct val list = val_member(attribute, lists[i]);
		size_t j = 0;
		found += val_exists(list);
		if (val_exists(list) && val_len(list) == 0)
			field_invalid(e, at_list, list, "must not be empty if specified");
		if (lists[i] == A_strings || lists[i] == A_versions)
			VAL_EACH(text, list)
				check_attribute_text(e, FIELD_INDEX(at_list, j++), *text, lists[i] == A_versions);
	}
	if (found == 0)
		field_invalid(e, at, VAL_LIT(""), "exactly one value must be specified");
	else if (found > 1)
		field_invalid(e, at, internal_form(e->arena, TYPE(resource_v1, DeviceAttribute), attribute),
			      "exactly one value must be specified");
}

static size_t count_values(struct val attributes)
{
	size_t n = 0;
	VAL_EACH_MEMBER(m, attributes) {
		size_t listed = val_len(val_get(m->val, bools)) + val_len(val_get(m->val, ints)) +
				val_len(val_get(m->val, strings)) + val_len(val_get(m->val, versions));
		n += listed ? listed : 1;
	}
	return n;
}

/* ---- capacity ---- */

static struct val shown_quantity(struct arena *a, struct quantity q)
{
	char text[QUANTITY_TEXT_MAX];
	return VAL_STR(arena_str(a, quantity_format(q, text)));
}

static int cmp(struct val a, struct val b) { return quantity_cmp(quantity_of(a), quantity_of(b)); }

static void check_valid_values(struct field_errors *e, const struct field_path *at, struct val policy, struct val capacity)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	struct val values = val_get(policy, validValues), preset = val_get(policy, default);
	bool found = false;
	size_t i = 0;

	for (size_t j = 0; j + 1 < val_len(values); j++)
		if (cmp(val_at(values, j), val_at(values, j + 1)) > 0)
			field_invalid(e, FIELD_INDEX(at, j + 1), val_at(values, j + 1),
				      "values must be sorted in ascending order");
	if (check_size(e, at, values, VALID_VALUES_MAX)) {
		VAL_EACH(value, values) {
			if (cmp(*value, capacity) > 0)
				field_invalid(e, FIELD_INDEX(at, i), *value,
					      "option is larger than capacity value: " STR_FMT,
					      STR_ARG(val_as_str(capacity)));
			found |= cmp(*value, preset) == 0;
			i++;
		}
		i = 0;
		VAL_EACH(value, values) {
			str key = arena_printf(e->arena, "%lld", (long long)quantity_value(quantity_of(*value)));
			if (!set_add(&seen, key))
				field_duplicate(e, FIELD_INDEX(at, i), VAL_STR(key));
			i++;
		}
	}
	if (!found)
		field_invalid(e, at, preset, "default value is not valid according to the requestPolicy");
}

static void check_step(struct field_errors *e, const struct field_path *at, struct val value, struct val min,
		       struct val step)
{
	int64_t width = quantity_value(quantity_of(step)), distance;

	if (__builtin_sub_overflow(quantity_value(quantity_of(value)), quantity_value(quantity_of(min)), &distance))
		return;
	/* A step of zero is one that never gets anywhere; of -1 the division would overflow. */
	if (width == 0 || (width != -1 && distance % width != 0))
		field_invalid(e, at, value, "value is not a multiple of a given step (" STR_FMT ") from (" STR_FMT ")",
			      STR_ARG(val_as_str(step)), STR_ARG(val_as_str(min)));
}

static void check_valid_range(struct field_errors *e, const struct field_path *at, struct val policy, struct val capacity)
{
	struct val range = val_get(policy, validRange), preset = val_get(policy, default);
	struct val min = val_get(range, min), max = val_get(range, max), step = val_get(range, step);
	str all = val_as_str(capacity), low = val_as_str(min), high = val_as_str(max);

	if (!val_exists(min)) {
		field_required(e, FIELD(at, "min"), "required when validRange is defined");
		return;
	}
	if (cmp(min, capacity) > 0)
		field_invalid(e, FIELD(at, "min"), min, "min is larger than capacity value: " STR_FMT, STR_ARG(all));
	if (cmp(preset, min) < 0)
		field_invalid(e, FIELD(at, "min"), preset, "default is less than min: " STR_FMT, STR_ARG(low));
	if (val_exists(max)) {
		if (cmp(min, max) > 0)
			field_invalid(e, FIELD(at, "max"), min, "min is larger than max: " STR_FMT, STR_ARG(high));
		if (cmp(max, capacity) > 0)
			field_invalid(e, FIELD(at, "max"), max, "max is larger than capacity value: " STR_FMT, STR_ARG(all));
		if (cmp(preset, max) > 0)
			field_invalid(e, FIELD(at, "max"), preset, "default is more than max: " STR_FMT, STR_ARG(high));
	}
	if (!val_exists(step))
		return;
	struct quantity first = quantity_add(quantity_of(min), quantity_of(step));
	if (quantity_cmp(first, quantity_of(capacity)) > 0)
		field_invalid(e, FIELD(at, "step"), step, "one step " STR_FMT " is larger than capacity value: " STR_FMT,
			      STR_ARG(val_as_str(shown_quantity(e->arena, first))), STR_ARG(all));
	check_step(e, FIELD(at, "step"), preset, min, step);
	if (val_exists(max))
		check_step(e, FIELD(at, "step"), max, min, step);
}

static void check_capacity(struct field_errors *e, const struct field_path *at, struct val capacity, bool shared)
{
	const struct field_path *at_policy = FIELD(at, "requestPolicy");
	struct val policy = val_get(capacity, requestPolicy), value = val_get(capacity, value);
	bool values = val_len(val_get(policy, validValues)) > 0, range = val_has(policy, validRange);

	if (!val_exists(policy))
		return;
	if (!shared)
		field_forbidden(e, at_policy, "allowMultipleAllocations must be true");
	else if (values && range)
		field_forbidden(e, at_policy,
				"exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same"
				" time");
	else if ((values || range) && !val_has(policy, default))
		field_required(e, FIELD(at_policy, "default"), "required when %s is defined",
			       values ? "validValues" : "validRange");
	else if (values)
		check_valid_values(e, FIELD(at_policy, "validValues"), policy, value);
	else if (range)
		check_valid_range(e, FIELD(at_policy, "validRange"), policy, value);
}

/* ---- counters ---- */

static void check_counters(struct field_errors *e, const struct field_path *at, struct val counters)
{
	if (val_len(counters) == 0)
		field_missing(e, at);
	else if (check_size(e, at, counters, COUNTERS_MAX))
		VAL_EACH_MEMBER(m, counters)
			check_name(e, at, atom_str(m->key), name_check_dns1123_label);
}

/* Sets of counters, named by the member key. */
static void check_counter_sets(struct field_errors *e, const struct field_path *at, struct val sets, atom key, uint32_t max)
{
	size_t i = 0;

	if (!check_size(e, at, sets, max))
		return;
	VAL_EACH(set, sets) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		check_given_name(e, FIELD_STR(item, atom_str(key)), val_as_str(val_member(*set, key)),
				 name_check_dns1123_label);
		check_counters(e, FIELD(item, "counters"), val_get(*set, counters));
	}
	check_unique(e, at, sets, key);
}

/* ---- devices ---- */

/* Ways to say on which nodes a device is; returns their names as "{`a`, `b`}" and their number. */
static str node_choices(struct field_errors *e, const struct field_path *at, struct val v, const char *empty_name,
			size_t *ret_n)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(256);
	struct val node = val_get(v, nodeName), selector = val_get(v, nodeSelector), all = val_get(v, allNodes);
	struct val per_device = val_get(v, perDeviceNodeSelection);
	bool chosen[4] = { val_as_str(node).n > 0, val_exists(selector), val_as_bool(all), val_as_bool(per_device) };
	static const char *const words[4] = { "nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection" };

	if (chosen[0])
		check_name(e, FIELD(at, "nodeName"), val_as_str(node), name_check_dns1123_subdomain);
	else if (val_exists(node))
		field_invalid(e, FIELD(at, "nodeName"), node, "%s", empty_name);
	if (chosen[1])
		check_node_selector(e, FIELD(at, "nodeSelector"), selector, false);
	*ret_n = 0;
	for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
		if (!chosen[i])
			continue;
		buf_addf(&names, "%s`%s`", *ret_n ? ", " : "{", words[i]);
		++*ret_n;
	}
	buf_addc(&names, '}');
	return arena_str(e->arena, buf_str(&names));
}

static void check_only_true(struct field_errors *e, const struct field_path *at, struct val v)
{
	if (val_exists(v) && !val_as_bool(v))
		field_invalid(e, at, v, "must be either unset or set to true");
}

static void check_device_nodes(struct field_errors *e, const struct field_path *at, struct val device, bool per_device)
{
	static const char text[] = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to"
				   " true in the ResourceSlice spec";
	size_t n;

	if (!per_device) {
		if (val_has(device, nodeName) || val_has(device, nodeSelector) || val_has(device, allNodes))
			field_invalid(e, at, VAL_EMPTY,
				      "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is"
				      " set to true in the ResourceSlice spec");
		return;
	}
	str chosen = node_choices(e, at, device, "must not be empty", &n);
	check_only_true(e, FIELD(at, "allNodes"), val_get(device, allNodes));
	if (n == 0)
		field_required(e, at, text);
	else if (n > 1)
		field_invalid(e, at, VAL_STR(chosen), text);
}

static void check_resource_mappings(struct field_errors *e, const struct field_path *at, struct val mappings,
				    struct val capacity)
{
	VAL_EACH_MEMBER(m, mappings) {
		const struct field_path *key = FIELD_KEY(at, atom_str(m->key));
		struct val factor = val_get(m->val, allocationMultiplier), from = val_get(m->val, capacityKey);
		if (!resource_is_native(atom_str(m->key)))
			field_invalid(e, key, VAL_STR(atom_str(m->key)), "must be a node allocatable resource name");
		if (!val_exists(factor) && !val_exists(from))
			field_invalid(e, key, VAL_LIT(""),
				      "at least one of allocationMultiplier or capacityKey must be set");
		if (val_exists(factor) && quantity_of(factor).nanos <= 0)
			field_invalid(e, FIELD(key, "allocationMultiplier"), factor, "must be positive");
		if (val_exists(from) && val_as_str(from).n == 0)
			field_invalid(e, FIELD(key, "capacityKey"), from, "capacityKey must not be an empty string");
		else if (val_exists(from) && !val_exists(val_find(capacity, val_as_str(from))))
			field_not_found(e, FIELD(key, "capacityKey"), from);
	}
}

static void check_device_maps(struct field_errors *e, const struct field_path *at, struct val device)
{
	const struct field_path *at_attributes = FIELD(at, "attributes"), *at_capacity = FIELD(at, "capacity");
	struct val attributes = val_get(device, attributes), capacity = val_get(device, capacity);
	enum { KEY_MAX = DEVICE_DOMAIN_MAX + 1 + DEVICE_ID_MAX };
	int64_t n = (int64_t)val_len(attributes) + val_len(capacity), values = (int64_t)count_values(attributes);

	if (n > ATTRIBUTES_MAX)
		field_invalid(e, at, val_of_int(n), "the total number of attributes and capacities must not exceed %d",
			      ATTRIBUTES_MAX);
	if (values > ATTRIBUTE_VALUES_MAX)
		field_invalid(e, at, val_of_int(values), "the total number of attribute values must not exceed %d",
			      ATTRIBUTE_VALUES_MAX);
	VAL_EACH_MEMBER(m, attributes) {
		check_device_key(e, at_attributes, atom_str(m->key));
		check_attribute(e, FIELD_KEY(at_attributes, shortened(e->arena, atom_str(m->key), KEY_MAX)), m->val);
	}
	VAL_EACH_MEMBER(m, capacity) {
		check_device_key(e, at_capacity, atom_str(m->key));
		check_capacity(e, FIELD_KEY(at_capacity, shortened(e->arena, atom_str(m->key), KEY_MAX)), m->val,
			       val_bool(device, allowMultipleAllocations));
	}
}

/* old: the same device before an update, else VAL_NONE. */
static void check_device(struct field_errors *e, const struct field_path *at, struct val named, struct val old,
			 bool per_device)
{
	struct val device = body_of(named), taints = val_get(device, taints);
	size_t i = 0;

	check_name(e, FIELD(at, "name"), val_str(named, name), name_check_dns1123_label);
	check_device_maps(e, at, device);
	if (!val_exists(old) || !val_semantic_equal(TYPE(resource_v1, DeviceTaint), taints, val_get(body_of(old), taints)))
		if (check_size(e, FIELD(at, "taints"), taints, TAINTS_MAX))
			VAL_EACH(taint, taints)
				check_device_taint(e, FIELD_INDEX(FIELD(at, "taints"), i++), *taint, VAL_EMPTY);
	check_counter_sets(e, FIELD(at, "consumesCounters"), val_get(device, consumesCounters), A_counterSet,
			   CONSUMED_SETS_MAX);
	check_device_nodes(e, at, device, per_device);
	check_binding_conditions(e, at, device);
	check_resource_mappings(e, FIELD(at, "nodeAllocatableResourceMappings"),
				val_get(device, nodeAllocatableResourceMappings), val_get(device, capacity));
}

static bool is_advanced(struct val devices)
{
	VAL_EACH(named, devices) {
		struct val device = body_of(*named);
		if (val_len(val_get(device, taints)) || val_len(val_get(device, consumesCounters)))
			return true;
		VAL_EACH_MEMBER(m, val_get(device, attributes))
			if (val_has(m->val, bools) || val_has(m->val, ints) || val_has(m->val, strings) ||
			    val_has(m->val, versions))
				return true;
	}
	return false;
}

static struct val device_named(struct val devices, str name)
{
	VAL_EACH(device, devices)
		if (str_eq(val_str(*device, name), name))
			return *device;
	return VAL_EMPTY;
}

/* ---- slices ---- */

static void check_slice_nodes(struct field_errors *e, const struct field_path *at, struct val spec)
{
	static const char text[] = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
	struct val terms = val_get(spec, nodeSelector, nodeSelectorTerms), shown = VAL_EMPTY_LIST;
	size_t n;
	str chosen = node_choices(e, at, spec, "must be either unset or set to a non-empty string", &n);

	if (val_len(terms))
		shown = internal_form(e->arena, TYPE(core_v1, NodeSelectorTerm), terms);
	if (val_has(spec, nodeSelector) && val_len(terms) != 1)
		field_invalid(e, FIELD(FIELD(at, "nodeSelector"), "nodeSelectorTerms"), shown,
			      "must have exactly one node selector term");
	check_only_true(e, FIELD(at, "allNodes"), val_get(spec, allNodes));
	check_only_true(e, FIELD(at, "perDeviceNodeSelection"), val_get(spec, perDeviceNodeSelection));
	if (n == 0)
		field_required(e, at, "%s", text);
	else if (n > 1)
		field_invalid(e, at, VAL_STR(chosen), "%s, but multiple fields are set", text);
}

static void check_slice_spec(struct field_errors *e, struct val spec, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_pool = FIELD(at, "pool"), *at_devices = FIELD(at, "devices");
	struct val pool = val_get(spec, pool), devices = val_get(spec, devices);
	size_t i = 0;

	check_csi_driver_name(e, FIELD(at, "driver"), val_str(spec, driver));
	check_pool_name(e, FIELD(at_pool, "name"), val_str(pool, name));
	if (val_int(pool, resourceSliceCount) <= 0)
		field_invalid(e, FIELD(at_pool, "resourceSliceCount"), shown_int(val_get(pool, resourceSliceCount)),
			      "must be greater than zero");
	if (val_int(pool, generation) < 0)
		field_invalid(e, FIELD(at_pool, "generation"), val_get(pool, generation),
			      "must be greater than or equal to zero");
	if (val_exists(old)) {
		check_immutable_str(e, FIELD(at_pool, "name"), val_str(pool, name), val_str(old, pool, name));
		check_immutable_str(e, FIELD(at, "driver"), val_str(spec, driver), val_str(old, driver));
		check_immutable(e, FIELD(at, "nodeName"), NULL, val_get(spec, nodeName), val_get(old, nodeName));
	}
	check_slice_nodes(e, at, spec);
	if (val_has(spec, sharedCounters) && val_exists(devices))
		field_invalid(e, at, VAL_LIT(""), "only one of `sharedCounters` or `devices` is allowed");
	if (check_size(e, at_devices, devices, is_advanced(devices) ? ADVANCED_DEVICES_MAX : DEVICES_MAX)) {
		VAL_EACH(device, devices)
			check_device(e, FIELD_INDEX(at_devices, i++), *device,
				     device_named(val_get(old, devices), val_str(*device, name)),
				     val_bool(spec, perDeviceNodeSelection));
		check_unique(e, at_devices, devices, A_name);
	}
	check_counter_sets(e, FIELD(at, "sharedCounters"), val_get(spec, sharedCounters), A_name, COUNTER_SETS_MAX);
}

void check_resource_slice(struct field_errors *e, struct val slice)
{
	check_meta(e, slice, false, name_rule_subdomain);
	check_slice_spec(e, val_get(slice, spec), VAL_EMPTY);
}

void check_resource_slice_update(struct field_errors *e, struct val slice, struct val old)
{
	check_meta_update(e, slice, old);
	check_slice_spec(e, val_get(slice, spec), val_get(old, spec));
}
