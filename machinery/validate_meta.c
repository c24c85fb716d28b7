/*
 * Object metadata and the words that rules of all kinds are made of. The order of checks is Kubernetes', since messages
 * list errors in the order in which they were found; where it walks a Go map, the order here is that of the tree:
 * sorted by key.
 */
#include "base/buf.h"
#include "codec/atoms.h"
#include "machinery/validate_priv.h"

enum {
	ANNOTATIONS_MAX = 256 << 10,
	MANAGER_MAX = 128,
	SUBRESOURCE_MAX = 256,
	REASON_MAX = 1024,
	CONDITION_MESSAGE_MAX = 32 << 10,
};

/* ---- words for common rules ---- */

bool str_in(str value, const str *list)
{
	for (; list->p; list++)
		if (str_eq(*list, value))
			return true;
	return false;
}

str ascii_lower(struct arena *a, str s)
{
	char *out = ARENA_ARRAY(a, char, s.n + 1);
	for (size_t i = 0; i < s.n; i++)
		out[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] | 0x20) : s.p[i];
	return str_span(out, s.n);
}

void check_name(struct field_errors *e, const struct field_path *at, str value, name_check *check)
{
	struct name_errors found;
	if (check(value, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(value), STR_FMT, STR_ARG(found.text[i]));
}

void check_label_key(struct field_errors *e, const struct field_path *at, str key)
{
	check_name(e, at, key, name_check_label_key);
}

void check_one_of(struct field_errors *e, const struct field_path *at, str value, const str *allowed)
{
	if (!str_in(value, allowed))
		field_not_supported(e, at, VAL_STR(value), allowed);
}

void check_required_one_of(struct field_errors *e, const struct field_path *at, str value, const str *allowed)
{
	if (value.n == 0)
		field_missing(e, at);
	else
		check_one_of(e, at, value, allowed);
}

void check_immutable(struct field_errors *e, const struct field_path *at, const struct type *type, struct val now,
		     struct val before)
{
	if (!val_semantic_equal(type, now, before))
		field_invalid(e, at, type ? internal_form(e->arena, type, now) : now, "field is immutable");
}

void check_non_negative(struct field_errors *e, const struct field_path *at, struct val number)
{
	if (val_as_int(number) < 0)
		field_invalid(e, at, number, "must be greater than or equal to 0");
}

void check_port_or_name(struct field_errors *e, const struct field_path *at, struct val port)
{
	struct name_errors found;
	size_t n = val_is(port, VAL_STRING) ? name_check_port_name(val_as_str(port), &found)
					    : name_check_port_number(val_as_int(port), &found);
	struct val shown = val_is_nil(port) ? val_of_int(0) : port;
	for (size_t i = 0; i < n; i++)
		field_invalid(e, at, shown, STR_FMT, STR_ARG(found.text[i]));
}

void check_int_or_percent(struct field_errors *e, const struct field_path *at, struct val value)
{
	if (val_is(value, VAL_STRING))
		check_name(e, at, val_as_str(value), name_check_percent);
	else
		check_non_negative(e, at, value);
}

void check_at_most_100_percent(struct field_errors *e, const struct field_path *at, struct val value)
{
	str text = val_as_str(value);
	int64_t percent;

	if (!val_is(value, VAL_STRING) || name_check_percent(text, NULL))
		return;
	if (!str_to_i64(str_head(text, text.n - 1), &percent) || percent > 100)
		field_invalid(e, at, value, "must not be greater than 100%%");
}

void check_no_backsteps(struct field_errors *e, const struct field_path *at, str path)
{
	for (str rest = path, part; rest.n;) {
		str_cut(rest, '/', &part, &rest);
		if (str_eq(part, STR(".."))) {
			field_invalid(e, at, VAL_STR(path), "must not contain '..'");
			return;
		}
	}
}

void check_descending_path(struct field_errors *e, const struct field_path *at, str path)
{
	if (str_starts(path, STR("/")))
		field_invalid(e, at, VAL_STR(path), "must be a relative path");
	check_no_backsteps(e, at, path);
}

void check_local_path(struct field_errors *e, const struct field_path *at, str path)
{
	check_descending_path(e, at, path);
	if (str_starts(path, STR("..")) && !str_starts(path, STR("../")))
		field_invalid(e, at, VAL_STR(path), "must not start with '..'");
}

/* ---- labels and annotations ---- */

void check_labels(struct field_errors *e, const struct field_path *at, struct val labels)
{
	VAL_EACH_MEMBER(m, labels) {
		check_label_key(e, at, atom_str(m->key));
		check_name(e, at, val_as_str(m->val), name_check_label_value);
	}
}

void check_annotations(struct field_errors *e, const struct field_path *at, struct val annotations)
{
	size_t size = 0;
	VAL_EACH_MEMBER(m, annotations) {
		str key = atom_str(m->key);
		struct name_errors found;
		if (name_check_label_key(key, &found) && name_check_label_key(ascii_lower(e->arena, key), &found))
			for (size_t i = 0; i < found.n; i++)
				field_invalid(e, at, VAL_STR(key), STR_FMT, STR_ARG(found.text[i]));
		size += key.n + val_as_str(m->val).n;
	}
	if (size > ANNOTATIONS_MAX)
		field_too_long(e, at, ANNOTATIONS_MAX);
}

/* ---- owners, finalizers, managers ---- */

/* "v1" and "group/v1"; what has more slashes has no version. */
static str version_of(str api_version)
{
	str group, version;
	if (!str_cut(api_version, '/', &group, &version))
		return api_version;
	return str_chr(version, '/') < 0 ? version : STR_NONE;
}

static void check_owner_reference(struct field_errors *e, const struct field_path *at, struct val ref)
{
	str api_version = val_str(ref, apiVersion), kind = val_str(ref, kind);

	if (version_of(api_version).n == 0)
		field_invalid(e, FIELD(at, "apiVersion"), VAL_STR(api_version), "version must not be empty");
	if (kind.n == 0)
		field_invalid(e, FIELD(at, "kind"), VAL_LIT(""), "must not be empty");
	if (val_str(ref, name).n == 0)
		field_invalid(e, FIELD(at, "name"), VAL_LIT(""), "must not be empty");
	if (val_str(ref, uid).n == 0)
		field_invalid(e, FIELD(at, "uid"), VAL_LIT(""), "must not be empty");
	if (str_eq(api_version, STR("v1")) && str_eq(kind, STR("Event")))
		field_invalid(e, at, internal_form(e->arena, TYPE(meta_v1, OwnerReference), ref),
			      "/v1, Kind=Event is disallowed from being an owner");
}

void check_owner_references(struct field_errors *e, const struct field_path *at, struct val references)
{
	const struct val *controller = NULL;
	VAL_EACH(ref, references) {
		check_owner_reference(e, at, *ref);
		if (!val_bool(*ref, controller))
			continue;
		if (controller)
			field_invalid(e, at, internal_form(e->arena, TYPE(meta_v1, OwnerReference), references),
				      "Only one reference can have Controller set to true. Found \"true\" in"
				      " references for " STR_FMT "/" STR_FMT " and " STR_FMT "/" STR_FMT, STR_ARG(val_str(*controller, kind)),
				      STR_ARG(val_str(*controller, name)), STR_ARG(val_str(*ref, kind)),
				      STR_ARG(val_str(*ref, name)));
		else
			controller = ref;
	}
}

static void check_finalizers(struct field_errors *e, const struct field_path *at, struct val finalizers)
{
	bool orphan = false, foreground = false;
	VAL_EACH(f, finalizers) {
		check_label_key(e, at, val_as_str(*f));
		orphan |= str_eq(val_as_str(*f), STR("orphan"));
		foreground |= str_eq(val_as_str(*f), STR("foregroundDeletion"));
	}
	if (orphan && foreground)
		field_invalid(e, at, finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
}

/* Names without a domain are Kubernetes' own. */
static void check_standard_finalizer(struct field_errors *e, const struct field_path *at, str name)
{
	static const str standard[] = { STR_INIT("kubernetes"), STR_INIT("orphan"), STR_INIT("foregroundDeletion"),
					{ NULL, 0 } };
	if (str_chr(name, '/') < 0 && !str_in(name, standard))
		field_invalid(e, at, VAL_STR(name), "name is neither a standard finalizer name nor is it fully qualified");
}

void check_finalizer_name(struct field_errors *e, const struct field_path *at, str name)
{
	check_label_key(e, at, name);
	check_standard_finalizer(e, at, name);
}

/* Go's quoting tells which characters it can print. */
static bool prints(str rune)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64);
	buf_add_quoted(&b, rune);
	return b.n == rune.n + 2 || rune.p[0] == '"' || rune.p[0] == '\\';
}

static void check_manager(struct field_errors *e, const struct field_path *at, str manager)
{
	if (manager.n > MANAGER_MAX)
		field_too_long(e, at, MANAGER_MAX);
	for (size_t i = 0, n; i < manager.n; i += n) {
		uint32_t c = 0xfffd;
		n = MAX(str_rune(str_skip(manager, i), &c), (size_t)1);
		if ((c < 0x20 || c > 0x7e) && !prints(str_span(manager.p + i, n)))
			field_invalid(e, at, VAL_STR(manager), "invalid character U+%04X (at position %zu)", c, i);
	}
}

void check_managed_fields(struct field_errors *e, const struct field_path *at, struct val entries)
{
	size_t i = 0;
	VAL_EACH(entry, entries) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str operation = val_str(*entry, operation), type = val_str(*entry, fieldsType);
		if (!str_eq(operation, STR("Apply")) && !str_eq(operation, STR("Update")))
			field_invalid(e, FIELD(item, "operation"), VAL_STR(operation), "must be `Apply` or `Update`");
		if (type.n && !str_eq(type, STR("FieldsV1")))
			field_invalid(e, FIELD(item, "fieldsType"), VAL_STR(type), "must be `FieldsV1`");
		check_manager(e, FIELD(item, "manager"), val_str(*entry, manager));
		if (val_str(*entry, subresource).n > SUBRESOURCE_MAX)
			field_too_long(e, FIELD(item, "subresource"), SUBRESOURCE_MAX);
	}
}

/* ---- metadata ---- */

static void check_rule(struct field_errors *e, const struct field_path *at, str name, name_rule *rule, bool prefix)
{
	struct name_errors found;
	if (rule(name, prefix, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(name), STR_FMT, STR_ARG(found.text[i]));
}

void check_generic_meta(struct field_errors *e, const struct field_path *at, struct val meta, bool namespaced,
			name_rule *rule)
{
	str name = val_str(meta, name), base = val_str(meta, generateName), namespace = val_str(meta, namespace);

	if (base.n)
		check_rule(e, FIELD(at, "generateName"), base, rule, true);
	if (name.n == 0)
		field_required(e, FIELD(at, "name"), "name or generateName is required");
	else
		check_rule(e, FIELD(at, "name"), name, rule, false);
	if (namespaced && namespace.n == 0)
		field_missing(e, FIELD(at, "namespace"));
	else if (namespaced)
		check_name(e, FIELD(at, "namespace"), namespace, name_check_dns1123_label);
	else if (namespace.n)
		field_forbidden(e, FIELD(at, "namespace"), "not allowed on this type");
	check_non_negative(e, FIELD(at, "generation"), val_get(meta, generation));
	check_labels(e, FIELD(at, "labels"), val_get(meta, labels));
	check_annotations(e, FIELD(at, "annotations"), val_get(meta, annotations));
	check_owner_references(e, FIELD(at, "ownerReferences"), val_get(meta, ownerReferences));
	check_finalizers(e, FIELD(at, "finalizers"), val_get(meta, finalizers));
	check_managed_fields(e, FIELD(at, "managedFields"), val_get(meta, managedFields));
}

static void check_standard_finalizers(struct field_errors *e, const struct field_path *at, struct val meta)
{
	size_t i = 0;
	VAL_EACH(f, val_get(meta, finalizers))
		check_standard_finalizer(e, FIELD_INDEX(FIELD(at, "finalizers"), i++), val_as_str(*f));
}

void check_object_meta(struct field_errors *e, const struct field_path *at, struct val meta, bool namespaced,
		       name_rule *rule)
{
	check_generic_meta(e, at, meta, namespaced, rule);
	check_standard_finalizers(e, at, meta);
}

static void check_no_new_finalizers(struct field_errors *e, const struct field_path *at, struct val now, struct val before)
{
	CLEANUP(map_done) struct map old = MAP_INIT;
	CLEANUP(buf_done) struct buf extra = BUF_INIT(1 << 20);

	VAL_EACH(f, before)
		set_add(&old, val_as_str(*f));
	VAL_EACH(f, now) {
		if (!set_add(&old, val_as_str(*f)))
			continue;
		buf_add(&extra, extra.n ? STR(", ") : STR(""));
		buf_add_quoted(&extra, val_as_str(*f));
	}
	if (extra.n)
		field_forbidden(e, at, "no new finalizers can be added if the object is being deleted, found new"
				       " finalizers []string{" STR_FMT "}",
				STR_ARG(buf_str(&extra)));
}

/* Strings of Go cannot be nil. */
static struct val text_of(struct val v) { return val_is_nil(v) ? VAL_LIT("") : v; }

void check_generic_meta_update(struct field_errors *e, const struct field_path *at, struct val meta, struct val old)
{
	if (val_has(old, deletionTimestamp))
		check_no_new_finalizers(e, FIELD(at, "finalizers"), val_get(meta, finalizers), val_get(old, finalizers));
	if (val_str(meta, resourceVersion).n == 0)
		field_invalid(e, FIELD(at, "resourceVersion"), VAL_LIT(""), "must be specified for an update");
	if (val_int(meta, generation) < val_int(old, generation))
		field_invalid(e, FIELD(at, "generation"), val_of_int(val_int(meta, generation)), "must not be decremented");
	check_immutable(e, FIELD(at, "name"), NULL, text_of(val_get(meta, name)), text_of(val_get(old, name)));
	check_immutable(e, FIELD(at, "namespace"), NULL, text_of(val_get(meta, namespace)),
			text_of(val_get(old, namespace)));
	check_immutable(e, FIELD(at, "uid"), NULL, text_of(val_get(meta, uid)), text_of(val_get(old, uid)));
	check_immutable(e, FIELD(at, "creationTimestamp"), NULL, val_get(meta, creationTimestamp),
			val_get(old, creationTimestamp));
	check_immutable(e, FIELD(at, "deletionTimestamp"), NULL, val_get(meta, deletionTimestamp),
			val_get(old, deletionTimestamp));
	check_immutable(e, FIELD(at, "deletionGracePeriodSeconds"), NULL, val_get(meta, deletionGracePeriodSeconds),
			val_get(old, deletionGracePeriodSeconds));
	check_labels(e, FIELD(at, "labels"), val_get(meta, labels));
	check_annotations(e, FIELD(at, "annotations"), val_get(meta, annotations));
	check_owner_references(e, FIELD(at, "ownerReferences"), val_get(meta, ownerReferences));
	check_managed_fields(e, FIELD(at, "managedFields"), val_get(meta, managedFields));
}

void check_object_meta_update(struct field_errors *e, const struct field_path *at, struct val meta, struct val old)
{
	check_generic_meta_update(e, at, meta, old);
	check_standard_finalizers(e, at, meta);
}

/* ---- selectors ---- */

void check_requirement(struct field_errors *e, const struct field_path *at, struct val r, bool orders, bool allow_bad_values)
{
	static const str sets[] = { STR_INIT("In"), STR_INIT("NotIn"), { NULL, 0 } };
	static const str marks[] = { STR_INIT("Exists"), STR_INIT("DoesNotExist"), { NULL, 0 } };
	static const str comparisons[] = { STR_INIT("Gt"), STR_INIT("Lt"), { NULL, 0 } };
	str operator = val_str(r, operator);
	struct val values = val_get(r, values);
	size_t i = 0;

	if (str_in(operator, sets)) {
		if (val_len(values) == 0)
			field_required(e, FIELD(at, "values"), "must be specified when `operator` is 'In' or 'NotIn'");
	} else if (str_in(operator, marks)) {
		if (val_len(values))
			field_forbidden(e, FIELD(at, "values"),
					"may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
	} else if (orders && str_in(operator, comparisons)) {
		if (val_len(values) != 1)
			field_required(e, FIELD(at, "values"),
				       "must be specified single value when `operator` is 'Lt' or 'Gt'");
	} else {
		field_invalid(e, FIELD(at, "operator"), VAL_STR(operator), "not a valid selector operator");
	}
	check_label_key(e, FIELD(at, "key"), val_str(r, key));
	if (!allow_bad_values)
		VAL_EACH(v, values)
			check_name(e, FIELD_INDEX(FIELD(at, "values"), i++), val_as_str(*v), name_check_label_value);
}

void check_label_selector(struct field_errors *e, const struct field_path *at, struct val selector, bool allow_bad_values)
{
	size_t i = 0;
	check_labels(e, FIELD(at, "matchLabels"), val_get(selector, matchLabels));
	VAL_EACH(r, val_get(selector, matchExpressions))
		check_requirement(e, FIELD_INDEX(FIELD(at, "matchExpressions"), i++), *r, false, allow_bad_values);
}

/* ---- conditions ---- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

static bool is_condition_reason(str reason)
{
	if (!is_letter(reason.p[0]) || !is_word(reason.p[reason.n - 1]))
		return false;
	for (size_t i = 1; i < reason.n; i++)
		if (!is_word(reason.p[i]) && reason.p[i] != ',' && reason.p[i] != ':')
			return false;
	return true;
}

static void check_condition(struct field_errors *e, const struct field_path *at, struct val condition)
{
	static const str statuses[] = { STR_INIT("False"), STR_INIT("True"), STR_INIT("Unknown"), { NULL, 0 } };
	str reason = val_str(condition, reason);

	check_label_key(e, FIELD(at, "type"), val_str(condition, type));
	check_one_of(e, FIELD(at, "status"), val_str(condition, status), statuses);
	if (val_int(condition, observedGeneration) < 0)
		field_invalid(e, FIELD(at, "observedGeneration"), val_get(condition, observedGeneration),
			      "must be greater than or equal to zero");
	if (!val_has(condition, lastTransitionTime))
		field_missing(e, FIELD(at, "lastTransitionTime"));
	if (reason.n == 0)
		field_missing(e, FIELD(at, "reason"));
	else if (!is_condition_reason(reason))
		field_invalid(e, FIELD(at, "reason"), VAL_STR(reason),
			      "a condition reason must start with alphabetic character, optionally followed by a"
			      " string of alphanumeric characters or '_,:', and must end with an alphanumeric character"
			      " or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or"
			      " 'ReasonA:ReasonB', regex used for validation is"
			      " '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
	if (reason.n > REASON_MAX)
		field_too_long(e, FIELD(at, "reason"), REASON_MAX);
	if (val_str(condition, message).n > CONDITION_MESSAGE_MAX)
		field_too_long(e, FIELD(at, "message"), CONDITION_MESSAGE_MAX);
}

void check_conditions(struct field_errors *e, const struct field_path *at, struct val conditions)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;
	VAL_EACH(condition, conditions) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (!set_add(&seen, val_str(*condition, type)))
			field_duplicate(e, FIELD(item, "type"), VAL_STR(val_str(*condition, type)));
		check_condition(e, item, *condition);
	}
}
