#include "base/test.h"
#include "codec/types.h"
#include "machinery/cel.h"

static const struct cel_env plain = { .options = CEL_BINDINGS };

/* "prefix" n times, middle, "suffix" n times. */
static str nested(struct arena *a, const char *prefix, const char *middle, const char *suffix, size_t n)
{
	size_t p = strlen(prefix), m = strlen(middle), s = strlen(suffix);
	char *out = arena_alloc(a, (p + s) * n + m + 1, 1), *at = out;

	for (size_t i = 0; i < n; i++, at += p)
		memcpy(at, prefix, p);
	memcpy(at, middle, m);
	at += m;
	for (size_t i = 0; i < n; i++, at += s)
		memcpy(at, suffix, s);
	return str_span(out, (size_t)(at - out));
}

/* Expressions that would eat stack, memory or time end with an error instead. */
TEST(cel_hostile)
{
	static const char deep[] = "ERROR: <input>:-1:0: Internal error: expression recursion limit exceeded: 250";
	static const char costly[] = "operation cancelled: actual cost limit exceeded";
	static const struct {
		const char *prefix, *middle, *suffix;
		size_t n;
		const char *want; /* NULL: it is fine */
	} t[] = {
		{ "(", "1", ")", 240, NULL },
		{ "(", "1", ")", 5000, deep },
		{ "[", "", "]", 5000, deep },
		{ "1+", "1", "", 240, NULL },
		{ "1+", "1", "", 5000, deep },
		{ "", "{}", ".a", 5000, deep },
		{ "true?1:", "1", "", 5000, deep },
		{ "true && ", "true", "", 5000, NULL },
		{ "!", "true", "", 5000, NULL },
		{ "[1,2,3,4,5,6,7,8,9,10].all(a, ", "true", ")", 20, costly },
		{ "cel.bind(l, [1,2] + [3], l", "", ")", 1, NULL },
		{ "cel.bind(l, lists.range(1000), l.map(a, l.map(b, a + b)).size() > ", "1", ")", 1, costly },
		{ "", "lists.range(9223372036854775807).size()", "", 1, costly },
		{ "", "cel.bind(a, [[1]], cel.bind(b, a + a, b == b + b))", "", 1, NULL },
		{ "", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a*)*(a|aa)*b')", "", 1, NULL },
		/* Cheap by Kubernetes' measure: each reads files; each makes a thousand classes out of a table. */
		{ "", "lists.range(50000).exists(x, timestamp('2024-01-01T00:00:00Z').getHours('Zone/' + string(x)) == 99)", "", 1, costly },
		{ "", "cel.bind(p, lists.range(1000).map(x, '\\\\p{Zl}').join(''), lists.range(200).exists(x, 'a'.matches(p)))", "", 1, costly },
		{ "", "cel.bind(p, lists.range(1000).map(x, '\\\\p{Zl}').join(''), lists.range(20).exists(x, 'a'.matches(p)))", "", 1, NULL },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(cel_program_freep) struct cel_program *p = NULL;
		struct cel_run run = { .arena = &a, .limit = CEL_COST_PER_CALL };
		str why = STR("");
		arena_reset(&a);
		if (cel_compile(&plain, nested(&a, t[i].prefix, t[i].middle, t[i].suffix, t[i].n), &a, &p, &why) >= 0) {
			struct cel_val v = cel_run(p, NULL, &run);
			CHECK_ROW(i, (v.kind == CEL_ERROR) == run.exceeded);
			why = cel_text(v.kind == CEL_ERROR ? v : cel_of_null());
		}
		CHECK_STR_ROW(i, why, t[i].want ? t[i].want : "");
	}
	arena_done(&a);
}

/* Lists and maps that grow from one another do not see each other's items. */
TEST(cel_shared_growth)
{
	static const struct {
		const char *expression;
	} t[] = {
		{ "cel.bind(a, [1].map(i, i), [a + [2], a + [3], a] == [[1, 2], [1, 3], [1]])" },
		{ "cel.bind(a, [1,2,3,4,5,6,7,8,9].map(i, i), (a + [1]) + (a + [2]) == a + [1] + a + [2])" },
		{ "cel.bind(m, [1,2,3].transformMap(i, v, v), m == {0: 1, 1: 2, 2: 3})" },
		{ "lists.range(50).transformMap(i, v, v * v).all(k, v, v == k * k)" },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(cel_program_freep) struct cel_program *p = NULL;
		struct cel_run run = { .arena = &a, .limit = CEL_COST_PER_CALL };
		str why = STR("");
		CHECK_ROW(i, cel_compile(&plain, str_of(t[i].expression), &a, &p, &why) >= 0);
		struct cel_val v = cel_run(p, NULL, &run);
		CHECK_ROW(i, v.kind == CEL_BOOL && v.b);
	}
	arena_done(&a);
}

/* Variables with the types of the schema: fields are checked, times are times. */
TEST(cel_schema_types)
{
	static const struct {
		const char *expression;
		const char *why;   /* NULL: it is true */
	} t[] = {
		{ "object.spec.replicas == 3", NULL },
		{ "object.metadata.labels['app'] == 'web'", NULL },
		{ "object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')", NULL },
		{ "object.spec.template.spec.containers.all(c, c.image.startsWith('web:'))", NULL },
		{ "!has(object.spec.paused)", NULL },
		{ "object.spec.replica == 3",
		  "ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica == 3\n | ...........^" },
		{ "object.spec.replicas == '3'",
		  "ERROR: <input>:1:22: found no matching overload for '_==_' applied to '(int, string)'\n | object.spec.replicas == '3'\n"
		  " | .....................^" },
	};
	struct arena a = ARENA_INIT;
	struct cel_var var = { STR_INIT("object"), cel_type_of_schema(&a, TYPE(apps_v1, Deployment)) };
	struct cel_env env = { .vars = &var, .n_vars = 1 };
	struct member container[] = { { atom_make(&a, STR("image")), VAL_LIT("web:1") } };
	struct val containers = val_object(&a, container, 1);
	struct val tree = VAL_EMPTY_OBJECT;
	const struct {
		const char *path[4];
		struct val v;
	} parts[] = {
		{ { "spec", "replicas" }, val_of_int(3) },
		{ { "metadata", "labels", "app" }, VAL_LIT("web") },
		{ { "metadata", "creationTimestamp" }, VAL_LIT("2024-01-01T00:00:00Z") },
		{ { "spec", "template", "spec", "containers" }, val_list(&a, &containers, 1) },
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		atom path[4];
		size_t n = 0;
		while (n < 4 && parts[i].path[n]) {
			path[n] = atom_make(&a, str_of(parts[i].path[n]));
			n++;
		}
		tree = val_put_path(&a, tree, path, n, parts[i].v);
	}
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(cel_program_freep) struct cel_program *p = NULL;
		struct cel_run run = { .arena = &a, .limit = CEL_COST_PER_CALL };
		str why = STR("");
		if (cel_compile(&env, str_of(t[i].expression), &a, &p, &why) >= 0) {
			struct cel_val object = cel_of_val(&a, var.type, tree), v = cel_run(p, &object, &run);
			CHECK_STR_ROW(i, cel_text(v.kind == CEL_ERROR ? v : cel_of_null()), "");
			CHECK_ROW(i, v.kind == CEL_BOOL && v.b);
			CHECK_ROW(i, cel_program_uses(p, 0));
		}
		CHECK_STR_ROW(i, why, t[i].why ? t[i].why : "");
	}
	arena_done(&a);
}
