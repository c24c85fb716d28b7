#include "base/test.h"

#include "codec/atoms.h"
#include "codec/types.h"

TEST(schema_every_field_is_found_by_its_atom)
{
	for (size_t i = 0; i < schema_n_types; i++) {
		const struct type *t = schema_types[i];
		for (unsigned f = 0; f < t->n_fields; f++)
			CHECK_ROW(i, type_field(t, t->fields[f].name) == &t->fields[f]);
		CHECK_ROW(i, type_field(t, A__ref) == NULL || str_eq(t->name, STR("JSONSchemaProps")));
	}
}
