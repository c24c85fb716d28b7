#include "codec/atoms.h"
#include "machinery/testing.h"
#include "machinery/validate_crd.h"

TEST(schema_path_find)
{
	static const char schema[] = "{'properties':{'spec':{'properties':{'a':{'type':'string'},'b.c':{'type':'integer'}}},"
				     "'labels':{'additionalProperties':{'type':'boolean'}},'any':{'additionalProperties':true}}}";
	static const struct {
		const char *path;
		bool arrays;
		const char *want; /* its text and type */
	} t[] = {
		{ ".spec.a", false, "spec.a string" },
		{ ".spec['b.c']", true, "spec.b.c integer" },
		{ ".labels.x", false, "labels[x] boolean" },
		{ ".labels['it\\'s']", true, "labels[it's] boolean" },
		{ ".any.x", false, "any[x] " },
		{ "", false, " " },
		{ "spec", false, "! expected [ or . but got: spec" },
		{ ".", false, "! unexpected end of JSON path" },
		{ ".spec.x", false, "! does not refer to a valid field" },
		{ ".spec.a.b", false, "! does not refer to a valid field" },
		{ ".spec['a']", false, "! array notation is not allowed" },
		{ ".spec[a]", true, "! expected single quoted string but got a" },
		{ ".spec['a'", true, "! unexpected end of JSON path" },
		{ ".spec['a'.", true, "! expected ] but got ." },
		{ ".spec['\\q']", true, "! invalid string literal: invalid escape char" },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct schema_path found;
		str wrong = schema_path_find(&a, str_of(t[i].path), t[i].arrays, testing_tree(&a, schema), &found);
		CHECK_STR_ROW(i, wrong.n ? arena_join(&a, STR("! "), wrong)
				       : arena_printf(&a, STR_FMT " " STR_FMT, STR_ARG(found.text), STR_ARG(val_str(found.schema, type))),
			      t[i].want);
		arena_reset(&a);
	}
	arena_done(&a);
}

TEST(pattern_error)
{
	static const struct {
		const char *pattern, *want;
	} t[] = {
		{ "^[a-z]([-a-z0-9]*[a-z0-9])?$", "" },
		{ "(?i)a|b{2,3}?[^]\\d][[:alpha:]x]\\Q(\\E\\p{Greek}\\x{41}(?P<n>c)", "" },
		{ "a{1001}", "invalid repeat count: `{1001}`" },
		{ "a{2,1}", "invalid repeat count: `{2,1}`" },
		{ "a{99999999999999999999}", "invalid repeat count: `{99999999999999999999}`" },
		{ "a{2,}a{,2}a{01}a{x}a{", "" },
		{ "[a", "missing closing ]: `[a`" },
		{ "[[:alpha", "missing closing ]: `[[:alpha`" },
		{ "[z-a]", "invalid character class range: `z-a`" },
		{ "(a", "missing closing ): `(a`" },
		{ "a)", "unexpected ): `a)`" },
		{ "*", "missing argument to repetition operator: `*`" },
		{ "a|*", "missing argument to repetition operator: `*`" },
		{ "a**", "invalid nested repetition operator: `**`" },
		{ "\\", "trailing backslash at end of expression: ``" },
		{ "\\y", "invalid escape sequence: `\\y`" },
		{ "\\1", "invalid escape sequence: `\\1`" },
		{ "(?=a)", "invalid or unsupported Perl syntax: `(?=`" },
		{ "(?<!a)", "invalid or unsupported Perl syntax: `(?<`" },
		{ "(?P<a", "invalid named capture: `(?P<a`" },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_STR_ROW(i, pattern_error(&a, str_of(t[i].pattern)), t[i].want);
	arena_done(&a);
}
