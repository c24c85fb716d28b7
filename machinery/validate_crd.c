/*
 * CustomResourceDefinitions. Kubernetes checks them in an internal form, in which what all versions have alike (schema,
 * subresources, columns, selectable fields) stands once above them; its errors name those places: spec.validation,
 * spec.subresources, ... struct crd is that view.
 */
#include "codec/atoms.h"
#include "machinery/validate_crd.h"

enum { SELECTABLE_MAX = 8, WARNING_MAX = 256 };

struct crd {
	struct val spec, versions;
	struct val validation, subresources, columns,
	selectable; /* of all versions; VAL_NONE when they differ or there is none */
	struct val shown;                                        /* versions without what stands above */
};

/* The member that all versions have alike. */
static struct val common(struct val versions, atom name, const struct type *type)
{
	struct val first = val_member(val_at(versions, 0), name);
	VAL_EACH(version, versions)
		if (!val_semantic_equal(type, val_member(*version, name), first))
			return VAL_EMPTY;
	return first;
}

static bool differs(struct val versions, atom name, struct val shared)
{
	VAL_EACH(version, versions)
		if (val_exists(val_member(*version, name)) && !val_exists(shared))
			return true;
	return false;
}

static struct crd crd_view(struct arena *a, struct val spec)
{
	struct val versions = val_get(spec, versions);
	struct crd c = {
		.spec = spec,
		.versions = versions,
		.validation = common(versions, A_schema, TYPE(apiextensions_v1, CustomResourceValidation)),
		.subresources = common(versions, A_subresources, TYPE(apiextensions_v1, CustomResourceSubresources)),
		.columns = common(versions, A_additionalPrinterColumns,
				  TYPE(apiextensions_v1, CustomResourceColumnDefinition)),
		.selectable = common(versions, A_selectableFields, TYPE(apiextensions_v1, SelectableField)),
	};
	static const uint16_t moved[] = { A_schema, A_subresources, A_additionalPrinterColumns, A_selectableFields };
	const struct val shared[] = { c.validation, c.subresources, c.columns, c.selectable };
	bool stays[ARRAY_LEN(moved)];
	struct val_builder b = val_builder(a);

	for (size_t i = 0; i < ARRAY_LEN(moved); i++)
		stays[i] = differs(versions, moved[i], shared[i]);
	VAL_EACH(version, versions) {
		struct val v = *version;
		for (size_t i = 0; i < ARRAY_LEN(moved); i++)
			if (!stays[i])
				v = val_put(a, v, moved[i], VAL_EMPTY);
		val_add_item(&b, v);
	}
	c.shown = val_end_list(&b);
	return c;
}

/* What an update tolerates, and what it must keep. */
struct crd_before {
	bool no_schema, unknown_reviews, established;
	struct val spec; /* VAL_NONE for a new definition */
	struct schema_options schema;
};

/* ---- names ---- */

static void check_crd_names(struct field_errors *e, const struct field_path *at, struct val names)
{
	static const uint16_t labels[] = { A_plural, A_singular }, kinds[] = { A_kind, A_listKind },
	lists[] = { A_shortNames, A_categories };
	struct name_errors found;
	str kind = val_str(names, kind), list_kind = val_str(names, listKind);

	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		str name = val_as_str(val_member(names, labels[i]));
		if (name.n)
			check_name_joined(e, FIELD_STR(at, atom_str(labels[i])), name, name_check_dns1035_label, ",");
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		str name = val_as_str(val_member(names, kinds[i]));
		if (name.n && name_check_dns1035_label(ascii_lower(e->arena, name), &found))
			field_invalid(e, FIELD_STR(at, atom_str(kinds[i])), VAL_STR(name),
				      "may have mixed case, but should otherwise match: " STR_FMT,
				      STR_ARG(name_errors_join(e->arena, &found, ",")));
	}
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		size_t j = 0;
		if (lists[i] == A_categories && kind.n && str_eq(kind, list_kind))
			field_invalid(e, FIELD(at, "listKind"), VAL_STR(list_kind), "kind and listKind may not be the same");
		VAL_EACH(name, val_member(names, lists[i]))
			check_name_joined(e, FIELD_INDEX(FIELD_STR(at, atom_str(lists[i])), j++), val_as_str(*name),
					  name_check_dns1035_label, ",");
	}
}

/* ---- parts of versions ---- */

/* What is wrong with the warning of a deprecated version. */
static void check_deprecation(struct field_errors *e, const struct field_path *at, struct val version)
{
	struct val warning = val_get(version, deprecationWarning);
	str text = val_as_str(warning);

	if (!val_exists(warning))
		return;
	if (!val_bool(version, deprecated)) {
		field_invalid(e, at, warning, "can only be set for deprecated versions");
		return;
	}
	if (text.n > WARNING_MAX)
		field_invalid(e, at, warning, "must be <= %d characters long", WARNING_MAX);
	if (text.n == 0)
		field_invalid(e, at, warning, "must not be an empty string");
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f) {
			field_invalid(e, at, warning,
				      "must only contain printable UTF-8 characters; non-printable character found at index %zu", i);
			break;
		}
	if (!str_is_utf8(text))
		field_invalid(e, at, warning, "must only contain printable UTF-8 characters");
}

/* A path in the dot notation that begins with one of two roots. */
static void check_simple_path(struct field_errors *e, const struct field_path *at, str path, const char *root,
			      const char *other)
{
	if (path.p[0] != '.')
		field_invalid(e, at, VAL_STR(path), "must be a simple json path starting with .");
	else if (root && !str_starts(path, str_of(root)) && (!other || !str_starts(path, str_of(other))))
		field_invalid(e, at, VAL_STR(path), "should be a json path under %s%.*s%s%.*s", other ? "either " : "",
			      (int)strlen(root) - 1, root, other ? " or " : "", other ? (int)strlen(other) - 1 : 0,
			      other ? other : "");
}

static void check_scale(struct field_errors *e, const struct field_path *at, struct val scale)
{
	str spec = val_str(scale, specReplicasPath), status = val_str(scale, statusReplicasPath);
	str selector = val_str(scale, labelSelectorPath);

	if (!val_exists(scale))
		return;
	if (check_given(e, FIELD(at, "scale.specReplicasPath"), spec))
		check_simple_path(e, FIELD(at, "scale.specReplicasPath"), spec, ".spec.", NULL);
	if (check_given(e, FIELD(at, "scale.statusReplicasPath"), status))
		check_simple_path(e, FIELD(at, "scale.statusReplicasPath"), status, ".status.", NULL);
	if (selector.n)
		check_simple_path(e, FIELD(at, "scale.labelSelectorPath"), selector, ".spec.", ".status.");
}

static void check_columns(struct field_errors *e, const struct field_path *at, struct val columns)
{
	static const str types[] = { STR_INIT("boolean"), STR_INIT("date"), STR_INIT("integer"), STR_INIT("number"),
				     STR_INIT("string"), { NULL, 0 } };
	static const str formats[] = { STR_INIT("byte"), STR_INIT("date"), STR_INIT("date-time"), STR_INIT("double"),
				       STR_INIT("float"), STR_INIT("int32"), STR_INIT("int64"), STR_INIT("password"),
				       { NULL, 0 } };
	size_t i = 0;

	VAL_EACH(column, columns) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		str type = val_str(*column, type), format = val_str(*column, format), path = val_str(*column, jsonPath);
		check_given(e, FIELD(item, "name"), val_str(*column, name));
		if (type.n == 0)
			field_required(e, FIELD(item, "type"), "must be one of boolean,date,integer,number,string");
		else if (!str_in(type, types))
			field_invalid(e, FIELD(item, "type"), VAL_STR(type),
				      "must be one of boolean,date,integer,number,string");
		if (format.n && !str_in(format, formats))
			field_invalid(e, FIELD(item, "format"), VAL_STR(format),
				      "must be one of byte,date,date-time,double,float,int32,int64,password");
		if (check_given(e, FIELD(item, "JSONPath"), path))
			check_simple_path(e, FIELD(item, "JSONPath"), path, NULL, NULL);
	}
}

static void check_selectable(struct field_errors *e, const struct field_path *at, struct val fields, struct val schema,
			     bool allow_many)
{
	static const str types[] = { STR_INIT("string"), STR_INIT("boolean"), STR_INIT("integer"), { NULL, 0 } };
	CLEANUP(map_done) struct map seen = MAP_INIT;
	size_t i = 0;

	VAL_EACH(field, fields) {
		const struct field_path *item = FIELD(FIELD_INDEX(at, i++), "jsonPath");
		str path = val_str(*field, jsonPath);
		struct schema_path found;
		if (!check_given(e, item, path))
			continue;
		str wrong = schema_path_find(e->arena, path, false, schema, &found);
		if (wrong.n) {
			field_invalid(e, item, VAL_STR(path), "is an invalid path: " STR_FMT, STR_ARG(wrong));
			continue;
		}
		if (str_eq(found.root, STR("metadata")))
			field_invalid(e, item, VAL_STR(path), "must not point to fields in metadata");
		if (!str_in(val_str(found.schema, type), types))
			field_invalid(e, item, VAL_STR(path),
				      "must point to a field of type string, boolean or integer. Enum string fields and"
				      " strings with formats are allowed.");
		if (!set_add(&seen, found.text))
			field_duplicate(e, item, VAL_STR(path));
	}
	if (map_len(&seen) > SELECTABLE_MAX && !allow_many)
		field_too_many(e, at, (int64_t)map_len(&seen), SELECTABLE_MAX);
}

/* ---- versions ---- */

static bool has_status(struct val subresources) { return val_has(subresources, status); }

/* The same fields, too many of them, were there before. */
static bool keeps_selectable(struct val now, struct val before)
{
	return val_len(before) > SELECTABLE_MAX && val_semantic_equal(TYPE(apiextensions_v1, SelectableField), now, before);
}

/* at: of the version; full is the version, shown what of it stands in the view; old is NULL for a new one. */
static void check_version(struct field_errors *e, const struct field_path *at, struct val full, struct val shown,
			  const struct val *old, const struct schema_options *opt)
{
	struct val fields = val_get(shown, selectableFields);

	check_name_joined(e, FIELD(at, "name"), val_str(full, name), name_check_dns1035_label, ",");
	check_deprecation(e, FIELD(at, "deprecationWarning"), full);
	check_crd_schema(e, FIELD(at, "schema"), val_get(shown, schema), has_status(val_get(full, subresources)), opt);
	check_scale(e, FIELD(at, "subresources"), val_get(shown, subresources, scale));
	check_columns(e, FIELD(at, "additionalPrinterColumns"), val_get(shown, additionalPrinterColumns));
	if (val_len(fields) == 0)
		return;
	if (!val_has(shown, schema, openAPIV3Schema))
		field_invalid(e, FIELD(at, "selectableFields"), VAL_LIT(""),
			      "may only be set when `version.schema.openAPIV3Schema` is not included");
	else
		check_selectable(e, FIELD(at, "selectableFields"), fields, val_get(shown, schema, openAPIV3Schema),
				 old && keeps_selectable(fields, val_get(*old, selectableFields)));
}

static void check_versions(struct field_errors *e, const struct field_path *at, const struct crd *crd,
			   const struct crd_before *before, const struct schema_options *opt)
{
	CLEANUP(map_done) struct map names = MAP_INIT, old = MAP_INIT;
	struct val shown = internal_form(e->arena, TYPE(apiextensions_v1, CustomResourceDefinitionVersion), crd->shown);
	size_t stored = 0;
	bool unique = true;

	VAL_EACH(version, val_get(before->spec, versions))
		map_put(&old, val_str(*version, name), (void *)version);
	for (size_t i = 0; i < val_len(crd->versions); i++) {
		struct val version = val_at(crd->versions, i);
		stored += val_bool(version, storage);
		unique &= set_add(&names, val_str(version, name));
		check_version(e, FIELD_INDEX(at, i), version, val_at(crd->shown, i),
			      map_get(&old, val_str(version, name)), opt);
	}
	if (!unique)
		field_invalid(e, at, shown, "must contain unique version names");
	if (stored != 1)
		field_invalid(e, at, shown, "must have exactly one version marked as storage version");
}

static void check_schemas_given(struct field_errors *e, const struct field_path *at, const struct crd *crd, bool only_served)
{
	size_t i = 0;
	VAL_EACH(version, crd->versions) {
		const struct field_path *item = FIELD(FIELD(FIELD_INDEX(at, i++), "schema"), "openAPIV3Schema");
		if (val_has(*version, schema, openAPIV3Schema))
			continue;
		if (!only_served)
			field_missing(e, item);
		else if (val_bool(*version, served))
			field_required(e, item, "because otherwise all fields are pruned");
	}
}

static bool any_version_has(struct val versions, schema_test *test)
{
	VAL_EACH(version, versions)
		if (schema_has(val_get(*version, schema, openAPIV3Schema), test))
			return true;
	return false;
}

/* ---- conversion ---- */

static bool is_known_review(str version) { return str_eq(version, STR("v1")) || str_eq(version, STR("v1beta1")); }

static void check_conversion_reviews(struct field_errors *e, const struct field_path *at, struct val versions,
				     bool allow_unknown)
{
	CLEANUP(map_done) struct map seen = MAP_INIT;
	bool known = false;
	size_t i = 0;

	if (val_len(versions) == 0) {
		field_missing(e, at);
		return;
	}
	VAL_EACH(version, versions) {
		const struct field_path *item = FIELD_INDEX(at, i++);
		if (!set_add(&seen, val_as_str(*version))) {
			field_invalid(e, item, *version, "duplicate version");
			continue;
		}
		check_name(e, item, val_as_str(*version), name_check_dns1035_label);
		known |= is_known_review(val_as_str(*version));
	}
	if (!known && !allow_unknown)
		field_invalid(e, at, versions, "must include at least one of v1, v1beta1");
}

static void check_conversion(struct field_errors *e, const struct field_path *at, struct val conversion,
			     const struct crd_before *before)
{
	static const str strategies[] = { STR_INIT("None"), STR_INIT("Webhook"), { NULL, 0 } };
	static const char text[] = "should not be set when strategy is not set to Webhook";
	const struct field_path *at_client = FIELD(at, "webhookClientConfig");
	const struct field_path *at_reviews = FIELD(at, "conversionReviewVersions");
	struct val client = val_get(conversion, webhook, clientConfig);
	struct val reviews = val_get(conversion, webhook, conversionReviewVersions);

	if (!val_exists(conversion))
		return;
	check_required_one_of(e, FIELD(at, "strategy"), val_str(conversion, strategy), strategies);
	if (str_eq(val_str(conversion, strategy), STR("Webhook"))) {
		if (!val_exists(client))
			field_required(e, at_client, "required when strategy is set to Webhook");
		else
			check_webhook_client(e, at_client, client);
		struct val old_bundle = val_get(before->spec, conversion, webhook, clientConfig, caBundle);
		if (before->established && !ca_bundle_error(e->arena, old_bundle).n) {
			str wrong = ca_bundle_error(e->arena, val_get(client, caBundle));
			if (wrong.n)
				field_invalid(e, FIELD(at_client, "caBundle"), val_get(client, caBundle), STR_FMT,
					      STR_ARG(wrong));
		}
		check_conversion_reviews(e, at_reviews, reviews, before->unknown_reviews);
		return;
	}
	if (val_exists(client))
		field_forbidden(e, at_client, text);
	if (val_len(reviews))
		field_forbidden(e, at_reviews, text);
}

/* ---- the definition ---- */

static void check_group(struct field_errors *e, const struct field_path *at, str group)
{
	size_t before = e->n;
	if (!check_given(e, at, group))
		return;
	check_name_joined(e, at, group, name_check_dns1123_subdomain, ",");
	if (e->n == before && str_chr(group, '.') < 0)
		field_invalid(e, at, VAL_STR(group), "should be a domain with at least one dot");
}

static void check_required_names(struct field_errors *e, const struct field_path *at, struct val names)
{
	static const uint16_t required[] = { A_plural, A_singular, A_kind, A_listKind };
	for (size_t i = 0; i < ARRAY_LEN(required); i++)
		check_given(e, FIELD_STR(at, atom_str(required[i])), val_as_str(val_member(names, required[i])));
}

static void check_shared(struct field_errors *e, const struct field_path *at, const struct crd *crd,
			 const struct crd_before *before, const struct schema_options *opt)
{
	struct crd old = crd_view(e->arena, before->spec);
	bool status = false;

	VAL_EACH(version, crd->versions)
		status |= has_status(val_get(*version, subresources));
	check_crd_schema(e, FIELD(at, "validation"), crd->validation, status, opt);
	check_scale(e, FIELD(at, "subresources"), val_get(crd->subresources, scale));
	check_columns(e, FIELD(at, "additionalPrinterColumns"), crd->columns);
	if (val_len(crd->selectable) == 0)
		return;
	if (!val_exists(crd->validation))
		field_invalid(e, FIELD(at, "selectableFields"), VAL_LIT(""),
			      "may only be set when validations.schema is included");
	else
		check_selectable(e, FIELD(at, "selectableFields"), crd->selectable,
				 val_get(crd->validation, openAPIV3Schema),
				 keeps_selectable(crd->selectable, old.selectable));
}

static void check_crd_spec(struct field_errors *e, struct val spec, const struct crd_before *before)
{
	static const str scopes[] = { STR_INIT("Cluster"), STR_INIT("Namespaced"), { NULL, 0 } };
	const struct field_path *at = FIELD(NULL, "spec");
	struct crd crd = crd_view(e->arena, spec);
	struct schema_options opt = before->schema;
	bool preserves = val_bool(spec, preserveUnknownFields), defaults = any_version_has(crd.versions, schema_has_default);
	struct val strategy = val_get(spec, conversion, strategy);

	check_group(e, FIELD(at, "group"), val_str(spec, group));
	check_required_one_of(e, FIELD(at, "scope"), val_str(spec, scope), scopes);
	opt.structural |= !preserves || defaults || any_version_has(crd.versions, schema_has_extension);
	if (!before->no_schema || !preserves)
		check_schemas_given(e, FIELD(at, "versions"), &crd, before->no_schema);
	if (defaults && preserves)
		field_invalid(e, FIELD(at, "preserveUnknownFields"), val_of_bool(true),
			      "must be false in order to use defaults in the schema");
	check_versions(e, FIELD(at, "versions"), &crd, before, &opt);
	if (val_len(crd.versions))
		check_name_joined(e, FIELD(at, "version"), val_str(val_at(crd.versions, 0), name),
				  name_check_dns1035_label, ",");
	check_required_names(e, FIELD(at, "names"), val_get(spec, names));
	check_crd_names(e, FIELD(at, "names"), val_get(spec, names));
	check_shared(e, at, &crd, before, &opt);
	if (val_exists(strategy) && !str_eq(val_as_str(strategy), STR("None")) && preserves)
		field_invalid(e, FIELD(FIELD(at, "conversion"), "strategy"), strategy,
			      "must be None if spec.preserveUnknownFields is true");
	check_conversion(e, FIELD(at, "conversion"), val_get(spec, conversion), before);
}

static void check_stored_versions(struct field_errors *e, struct val crd)
{
	const struct field_path *at = FIELD(FIELD(NULL, "status"), "storedVersions");
	struct val stored = val_get(crd, status, storedVersions), versions = val_get(crd, spec, versions);
	CLEANUP(map_done) struct map was_stored = MAP_INIT, named = MAP_INIT;
	size_t i = 0;

	if (val_len(stored) == 0) {
		field_invalid(e, at, stored, "must have at least one stored version");
		return;
	}
	set_add_all(&was_stored, stored);
	VAL_EACH(version, versions) {
		set_add(&named, val_str(*version, name));
		if (val_bool(*version, storage) && !set_has(&was_stored, val_str(*version, name)))
			field_invalid(e, at, stored, "must have the storage version " STR_FMT,
				      STR_ARG(val_str(*version, name)));
	}
	VAL_EACH(name, stored) {
		str n = val_as_str(*name);
		if (!set_has(&named, n))
			field_invalid(e, FIELD_INDEX(at, i), *name,
				      "missing from spec.versions; " STR_FMT " was previously a storage version, and must remain in spec.versions"
				      " until a storage migration ensures no data remains persisted in " STR_FMT " and removes " STR_FMT
				      " from status.storedVersions", STR_ARG(n), STR_ARG(n), STR_ARG(n));
		i++;
	}
}

enum approval { APPROVAL_MISSING, APPROVAL_BYPASSED, APPROVAL_GIVEN, APPROVAL_INVALID };

static const str approval_key = STR_INIT("api-approved.kubernetes.io");

static enum approval approval_of(struct val crd)
{
	str text = val_as_str(val_find(val_get(crd, metadata, annotations), approval_key)), scheme, rest;

	if (text.n == 0)
		return APPROVAL_MISSING;
	if (str_starts(text, STR("unapproved")))
		return APPROVAL_BYPASSED;
	bool is_url = str_cut(text, ':', &scheme, &rest) && scheme.n && str_starts(rest, STR("//")) && rest.n > 2 &&
		      rest.p[2] != '/';
	return is_url ? APPROVAL_GIVEN : APPROVAL_INVALID;
}

/* Groups of the project itself need a link to where they were approved. */
static void check_approval(struct field_errors *e, struct val crd, struct val old)
{
	const struct field_path *at = FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), approval_key);
	str group = val_str(crd, spec, group);
	enum approval approval = approval_of(crd);

	if (!str_eq(group, STR("k8s.io")) && !str_ends(group, STR(".k8s.io")) && !str_eq(group, STR("kubernetes.io")) &&
	    !str_ends(group, STR(".kubernetes.io")))
		return;
	if (val_exists(old) && approval_of(old) == approval)
		return;
	if (approval == APPROVAL_MISSING)
		field_required(e, at, "protected groups must have approval annotation \"api-approved.kubernetes.io\", see"
			       " https://github.com/kubernetes/enhancements/pull/1111");
	else if (approval == APPROVAL_INVALID)
		field_invalid(e, at, val_find(val_get(crd, metadata, annotations), approval_key),
			      "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting"
			      " with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111");
}

/* What is checked beyond metadata and spec, for new definitions and changes. */
static void check_crd_rest(struct field_errors *e, struct val crd, struct val old)
{
	check_crd_names(e, FIELD(FIELD(NULL, "status"), "acceptedNames"), val_get(crd, status, acceptedNames));
	check_stored_versions(e, crd);
	check_approval(e, crd, old);
	if (val_bool(crd, spec, preserveUnknownFields) && !val_bool(old, spec, preserveUnknownFields))
		field_invalid(e, FIELD(FIELD(NULL, "spec"), "preserveUnknownFields"), val_of_bool(true),
			      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead");
}

static void check_crd_name(struct field_errors *e, const struct field_path *at, struct val crd, str name, bool prefix)
{
	struct name_errors found;
	str wanted = arena_printf(e->arena, STR_FMT "." STR_FMT, STR_ARG(val_str(crd, spec, names, plural)),
				  STR_ARG(val_str(crd, spec, group)));

	if (name.n == 0)
		return;
	if (name_rule_subdomain(name, prefix, &found))
		for (size_t i = 0; i < found.n; i++)
			field_invalid(e, at, VAL_STR(name), STR_FMT, STR_ARG(found.text[i]));
	if (!str_eq(name, wanted))
		field_invalid(e, at, VAL_STR(name), "must be spec.names.plural+\".\"+spec.group");
}

static size_t accept_name(str name, bool prefix, struct name_errors *ret)
{
	(void)name, (void)prefix, (void)ret;
	return 0;
}

void check_crd(struct field_errors *e, struct val crd)
{
	const struct field_path *at = FIELD(NULL, "metadata");
	struct val meta = val_get(crd, metadata);

	check_crd_name(e, FIELD(at, "generateName"), crd, val_str(meta, generateName), true);
	check_crd_name(e, FIELD(at, "name"), crd, val_str(meta, name), false);
	check_generic_meta(e, at, meta, false, accept_name);
	check_crd_spec(e, val_get(crd, spec), &(struct crd_before){ .schema.structural = true });
	check_crd_rest(e, crd, VAL_EMPTY);
}

static bool is_established(struct val crd)
{
	VAL_EACH(c, val_get(crd, status, conditions))
		if (str_eq(val_str(*c, type), STR("Established")))
			return str_eq(val_str(*c, status), STR("True"));
	return false;
}

static bool schema_has_bad_keys(struct val schema)
{
	CLEANUP(arena_done) struct arena scratch = ARENA_INIT;
	struct field_errors errors;
	field_errors_init(&errors, &scratch);
	check_list_keys(&errors, NULL, schema);
	return errors.n > 0;
}

static struct crd_before crd_before(struct arena *a, struct val old)
{
	struct val versions = val_get(old, spec, versions);
	struct val reviews = val_get(old, spec, conversion, webhook, conversionReviewVersions);
	struct crd_before b = {
		.spec = val_get(old, spec),
		.established = is_established(old),
		.unknown_reviews = val_len(reviews) > 0,
		.schema = { .structural = true,
			    .any_type = any_version_has(versions, schema_has_bad_type),
			    .divisible_sets = any_version_has(versions, schema_has_divisible_set),
			    .loose_keys = any_version_has(versions, schema_has_bad_keys) },
	};
	VAL_EACH(version, versions) {
		b.no_schema |= !val_has(*version, schema, openAPIV3Schema);
		b.schema.structural &= schema_is_structural(a, val_get(*version, schema, openAPIV3Schema));
	}
	VAL_EACH(review, reviews)
		b.unknown_reviews &= !is_known_review(val_as_str(*review));
	return b;
}

void check_crd_update(struct field_errors *e, struct val crd, struct val old)
{
	const struct field_path *at = FIELD(NULL, "spec"), *at_names = FIELD(at, "names");
	struct crd_before before = crd_before(e->arena, old);
	struct val now = val_get(crd, spec), was = before.spec;

	check_generic_meta_update(e, FIELD(NULL, "metadata"), val_get(crd, metadata), val_get(old, metadata));
	check_crd_spec(e, now, &before);
	if (before.established) {
		check_immutable_str(e, FIELD(at, "scope"), val_str(now, scope), val_str(was, scope));
		check_immutable_str(e, FIELD(at_names, "kind"), val_str(now, names, kind), val_str(was, names, kind));
	}
	check_immutable_str(e, FIELD(at, "group"), val_str(now, group), val_str(was, group));
	check_immutable_str(e, FIELD(at_names, "plural"), val_str(now, names, plural), val_str(was, names, plural));
	check_crd_rest(e, crd, old);
}

void check_crd_status(struct field_errors *e, str subresource, struct val crd, struct val old)
{
	(void)subresource;
	check_generic_meta_update(e, FIELD(NULL, "metadata"), val_get(crd, metadata), val_get(old, metadata));
	check_crd_names(e, FIELD(FIELD(NULL, "status"), "acceptedNames"), val_get(crd, status, acceptedNames));
}
