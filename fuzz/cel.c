/* CEL expressions: parsed, checked and, when they are right, evaluated on variables that have something of everything. */
#include <assert.h>

#include "codec/json.h"
#include "machinery/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char document[] = "{\"a\":[1,2.5,\"x\",null,true,[[]]],\"b\":{\"c\":{}},\"t\":\"2024-01-01T00:00:00Z\",\"q\":\"1Gi\",\"v\":\"1.2.3\"}";

/* Low, so that inputs are quick. */
enum { COST_MAX = 20000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cel_type list = { .kind = CEL_LIST, .elem = &cel_type_dyn };
	static const struct cel_var vars[] = { { STR_INIT("d"), &cel_type_dyn }, { STR_INIT("l"), &list }, { STR_INIT("s"), &cel_type_string } };
	static const struct cel_env env = { .vars = vars, .n_vars = ARRAY_LEN(vars), .options = CEL_BINDINGS };
	struct arena a = ARENA_INIT;
	struct cel_program *p = NULL;
	struct val root;
	str why = STR("");

	assert(json_decode(&a, str_of(document), &(struct json_decode_options){ 0 }, &root, NULL) == 0);
	if (cel_compile(&env, str_span((const char *)data, size), &a, &p, &why) < 0) {
		assert(why.n > 0);
	} else {
		struct cel_val values[] = { cel_of_val(&a, &cel_type_dyn, root), cel_of_val(&a, &list, val_find(root, STR("a"))),
					    cel_of_str(STR("text")) };
		struct cel_run run = { .arena = &a, .limit = COST_MAX };
		struct cel_val v = cel_run(p, values, &run);
		assert(!run.exceeded || v.kind == CEL_ERROR);
		(void)cel_to_val(&a, v);
	}
	cel_program_free(p);
	arena_done(&a);
	return 0;
}
