/*
 * CustomResourceDefinitions in a store: Kubernetes writes them as v1beta1, which it has not served for years, because
 * that form is shorter: schema, subresources and columns stand once in the spec when all versions have the same.
 */
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "machinery/convert.h"
#include "machinery/validate_priv.h"

/* v1beta1 writes one name with other letters. */
static struct val column_convert(struct arena *a, struct val column)
{
	struct val_builder b = val_builder(a);
	VAL_EACH_MEMBER(m, column)
		val_add_member(&b, str_eq(atom_str(m->key), STR("JSONPath")) ? A_jsonPath : m->key, m->val);
	return val_end_object(&b);
}

static struct val version_convert(struct arena *a, struct val version, struct val spec)
{
	static const struct {
		str common;     /* in the spec, for all versions; it wins */
		uint16_t own;
	} names[] = {
		{ STR_INIT("additionalPrinterColumns"), A_additionalPrinterColumns },
		{ STR_INIT("selectableFields"), A_selectableFields },
		{ STR_INIT("subresources"), A_subresources },
		{ STR_INIT("validation"), A_schema },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct val common = val_find(spec, names[i].common);
		if (!val_is_nil(common))
			version = val_put(a, version, names[i].own, common);
	}
	struct val columns = val_get(version, additionalPrinterColumns);
	if (!val_len(columns))
		return version;
	return val_with(a, version, edit_items(a, columns, column_convert), additionalPrinterColumns);
}

static struct val versions_convert(struct arena *a, struct val spec)
{
	struct val_builder b = val_builder(a);
	struct val name = val_get(spec, version);

	VAL_EACH(version, val_get(spec, versions))
		val_add_item(&b, version_convert(a, *version, spec));
	if (!b.n && val_exists(name)) {
		struct val only = OBJECT(a, F(name, name), F(served, val_of_bool(true)), F(storage, val_of_bool(true)));
		val_add_item(&b, version_convert(a, only, spec));
	}
	return val_end_list(&b);
}

static struct val conversion_convert(struct arena *a, struct val conversion)
{
	struct val client = val_find(conversion, STR("webhookClientConfig"));
	struct val reviews = val_get(conversion, conversionReviewVersions);

	if (val_is_nil(client) && val_is_nil(reviews))
		return conversion;
	return val_with(a, conversion, OBJECT(a, F(clientConfig, client), F(conversionReviewVersions, reviews)), webhook);
}

static struct val spec_convert(struct arena *a, struct val spec)
{
	spec = val_with(a, spec, versions_convert(a, spec), versions);
	spec = edit_member(a, spec, A_conversion, conversion_convert);
	return val_has(spec, preserveUnknownFields) ? spec : val_with(a, spec, val_of_bool(true), preserveUnknownFields);
}

int convert_stored(struct arena *a, struct val object, struct val *ret, const struct type **ret_type, struct err *err)
{
	*ret_type = NULL;
	if (!str_eq(val_str(object, apiVersion), STR("apiextensions.k8s.io/v1beta1")) ||
	    !str_eq(val_str(object, kind), STR("CustomResourceDefinition")))
		return 0;
	*ret_type = TYPE(apiextensions_v1, CustomResourceDefinition);
	object = edit_member(a, object, A_spec, spec_convert);
	object = val_with(a, object, VAL_LIT("apiextensions.k8s.io/v1"), apiVersion);
	return val_canonical(a, object, *ret_type, NULL, ret, err);
}
