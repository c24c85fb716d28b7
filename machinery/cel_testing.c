/* See cel_testing.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/test.h"
#include "codec/json.h"
#include "machinery/cel_priv.h"
#include "machinery/cel_testing.h"

static void add_value(struct buf *b, struct arena *a, struct cel_val v);

static int by_text(const void *x, const void *y) { return str_cmp(*(const str *)x, *(const str *)y); }

/* Members in the order of their texts: maps have none of their own. */
static void add_map(struct buf *b, struct arena *a, struct cel_val v)
{
	size_t n = cel_len(v);
	str *parts = ARENA_ARRAY(a, str, n + 1);

	for (size_t i = 0; i < n; i++) {
		CLEANUP(buf_done) struct buf one = BUF_INIT(1 << 20);
		struct cel_val key, val;
		cel_member_at(a, v, i, &key, &val);
		add_value(&one, a, key);
		buf_add(&one, STR(": "));
		add_value(&one, a, val);
		parts[i] = arena_str(a, buf_str(&one));
	}
	qsort(parts, n, sizeof(*parts), by_text);
	for (size_t i = 0; i < n; i++) {
		buf_add(b, i ? STR(", ") : STR(""));
		buf_add(b, parts[i]);
	}
}

static void add_value(struct buf *b, struct arena *a, struct cel_val v)
{
	switch (v.kind) {
	case CEL_NULL:
		buf_add(b, STR("null"));
		break;
	case CEL_UINT:
		buf_addf(b, "%" PRIu64 "u", v.u);
		break;
	case CEL_DOUBLE:
		buf_addc(b, 'd');
		buf_add(b, cel_show(a, v));
		break;
	case CEL_STRING:
		buf_add_quoted(b, cel_text(v));
		break;
	case CEL_BYTES:
		buf_addc(b, 'b');
		for (size_t i = 0; i < v.n; i++)
			buf_addf(b, "%02x", (unsigned char)v.s[i]);
		break;
	case CEL_LIST:
		buf_addc(b, '[');
		for (size_t i = 0; i < cel_len(v); i++) {
			buf_add(b, i ? STR(", ") : STR(""));
			add_value(b, a, cel_at(a, v, i));
		}
		buf_addc(b, ']');
		break;
	case CEL_MAP:
		buf_addc(b, '{');
		add_map(b, a, v);
		buf_addc(b, '}');
		break;
	case CEL_OPTIONAL:
		buf_add(b, v.optional ? STR("some(") : STR("none"));
		if (v.optional) {
			add_value(b, a, *v.optional);
			buf_addc(b, ')');
		}
		break;
	case CEL_TYPE:
		buf_add(b, STR("type:"));
		buf_add(b, cel_type_runtime_name(v.type));
		break;
	default:
		buf_add(b, cel_show(a, v));
	}
}

enum { VARS = 7 };

static const struct cel_type list_int = { .kind = CEL_LIST, .elem = &cel_type_int }, list_dyn = { .kind = CEL_LIST, .elem = &cel_type_dyn },
			     map_text = { .kind = CEL_MAP, .key = &cel_type_string, .elem = &cel_type_string };
static const struct cel_var vars[VARS] = {
	{ STR_INIT("x"), &cel_type_int }, { STR_INIT("s"), &cel_type_string }, { STR_INIT("d"), &cel_type_dyn }, { STR_INIT("l"), &list_int },
	{ STR_INIT("m"), &map_text }, { STR_INIT("ld"), &list_dyn }, { STR_INIT("b"), &cel_type_bool },
};
static const struct cel_env env = { .vars = vars, .n_vars = VARS, .options = CEL_BINDINGS };

static void make_variables(struct arena *a, struct cel_val ret[VARS])
{
	static const char *const json[VARS] = { "5", "\"hello\"", "{\"a\":1,\"b\":\"two\",\"c\":[1,\"x\",null],\"e\":{}}", "[1,2,3]",
						"{\"k\":\"v\"}", "[]", "true" };
	struct err err = ERR_INIT;
	struct val v;

	for (size_t i = 0; i < VARS; i++) {
		CHECK(json_decode(a, str_of(json[i]), &(struct json_decode_options){ 0 }, &v, &err) >= 0);
		if (vars[i].type == &list_dyn)
			v = LIST(a, val_of_int(1), val_of_double(2), VAL_LIT("x"));
		ret[i] = cel_of_val(a, vars[i].type, v);
	}
}

static void check_fact(struct arena *a, size_t row, const struct cel_fact *f)
{
	CLEANUP(cel_program_freep) struct cel_program *p = NULL;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct cel_run run = { .arena = a, .limit = CEL_COST_PER_CALL };
	struct cel_val values[VARS];
	str why = STR("");

	int r = cel_compile(&env, str_of(f->expression), a, &p, &why);
	if (r < 0) {
		CHECK_STR_ROW(row, why, f->result);
		CHECK_ROW(row, !f->type);
		return;
	}
	CHECK_STR_ROW(row, cel_type_output_text(a, cel_program_type(p)), f->type ? f->type : "(does not compile)");
	make_variables(a, values);
	struct cel_val v = cel_run(p, values, &run);
	if (v.kind == CEL_ERROR) {
		buf_addc(&b, '!');
		buf_add(&b, cel_text(v));
	} else {
		buf_add(&b, cel_type_name(v));
		buf_addc(&b, ' ');
		add_value(&b, a, v);
	}
	CHECK_STR_ROW(row, buf_str(&b), f->result);
	if (f->cost != CEL_ANY_COST)
		CHECK_INT(run.cost, f->cost);
	if (f->max != CEL_ANY_COST)
		CHECK_INT(cel_program_max_cost(p), f->max);
}

void cel_check_facts(const struct cel_fact *facts, size_t n)
{
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < n; i++) {
		arena_reset(&a);
		check_fact(&a, i, &facts[i]);
	}
	arena_done(&a);
}
