/* The environment of device selectors, and a device of a ResourceSlice as its variable. */
#include "codec/atoms.h"
#include "codec/quantity.h"
#include "machinery/cel_device.h"
#include "machinery/cel_priv.h"
#include "machinery/semver.h"

enum { DOMAIN_MAX = 63, ID_MAX = 32, DRIVER_MAX = 63, VALUE_MAX = 64, MEMBERS_MAX = 32, LIST_VALUES_MAX = 48 };

/* ---- types ---- */

static const struct cel_type domain_type = { .kind = CEL_STRING, .max_size = DOMAIN_MAX }, id_type = { .kind = CEL_STRING, .max_size = ID_MAX },
			     driver_type = { .kind = CEL_STRING, .max_size = DRIVER_MAX }, multi_type = { .kind = CEL_BOOL, .max_size = 1 };
static const struct cel_type single_type = { .kind = CEL_ANY, .max_size = VALUE_MAX }, listed_type = { .kind = CEL_DYN, .max_size = VALUE_MAX };

#define BY_ID(value) { .kind = CEL_MAP, .key = &id_type, .elem = (value), .max_size = MEMBERS_MAX }
#define BY_DOMAIN(value) { .kind = CEL_MAP, .key = &domain_type, .elem = (value), .max_size = MEMBERS_MAX }

static const struct cel_type capacity_by_id = BY_ID(&cel_type_quantity), capacity_type = BY_DOMAIN(&capacity_by_id);
static const struct cel_type singles_by_id = BY_ID(&single_type), singles_type = BY_DOMAIN(&singles_by_id);
static const struct cel_type listed_by_id = BY_ID(&listed_type), listeds_type = BY_DOMAIN(&listed_by_id);

/* The last field is there with consumable capacity only. */
#define FIELDS(attributes)                                                                                                              \
	{ { STR_INIT("driver"), &driver_type }, { STR_INIT("attributes"), (attributes) }, { STR_INIT("capacity"), &capacity_type },     \
	  { STR_INIT("allowMultipleAllocations"), &multi_type } }

static const struct cel_field single_fields[] = FIELDS(&singles_type), listed_fields[] = FIELDS(&listeds_type);

#define DEVICE(list, count) { .kind = CEL_OBJECT, .name = STR_INIT("kubernetes.DRADevice"), .fields = (list), .n_fields = (count) }

/* By the bits of enum cel_device_features. */
static const struct cel_type device_types[] = { DEVICE(single_fields, 3), DEVICE(single_fields, 4), DEVICE(listed_fields, 3),
						DEVICE(listed_fields, 4) };

/* ---- includes() ---- */

/* Whether a value is the one, or a list has it. */
static struct cel_val includes(struct cel_eval *ev, const struct cel_val *v, size_t n)
{
	(void)n;
	if (v[0].kind != CEL_LIST)
		return cel_of_bool(cel_equals(ev, v[0], v[1]));
	for (size_t i = 0; i < cel_len(v[0]); i++) {
		if (i >= LIST_VALUES_MAX)
			return cel_fail(ev, "'includes' function cannot be applied to lists longer than %d values", LIST_VALUES_MAX);
		if (cel_equals(ev, cel_at(ev->arena, v[0], i), v[1]))
			return cel_of_bool(true);
	}
	return cel_of_bool(false);
}

static const struct cel_overload includes_overload[] = { { "includes", "dra_includes_dyn_dyn", "**:b", true, includes, 0 } };

/* ---- environments ---- */

static const struct cel_var device_vars[][1] = {
	{ { STR_INIT("device"), &device_types[0] } },
	{ { STR_INIT("device"), &device_types[1] } },
	{ { STR_INIT("device"), &device_types[2] } },
	{ { STR_INIT("device"), &device_types[3] } },
};

#define ENV(bits, count) { .vars = device_vars[bits], .n_vars = 1, .overloads = includes_overload, .n_overloads = (count),          \
			   .options = CEL_BINDINGS | CEL_SIZED }

static const struct cel_env environments[] = { ENV(0, 0), ENV(1, 0), ENV(2, 1), ENV(3, 1) };

int cel_device_compile(str expression, unsigned features, struct arena *a, struct cel_program **ret_program, str *ret_why)
{
	CLEANUP(cel_program_freep) struct cel_program *p = NULL;
	int r = cel_compile(&environments[features & 3], expression, a, &p, ret_why);

	if (r < 0) {
		const char *what = r == -ERR_INVALID ? "compilation failed: " : "program instantiation failed: ";
		*ret_why = arena_join(a, str_of(what), *ret_why);
		return r;
	}
	uint8_t kind = cel_program_type(p)->kind;
	if (kind != CEL_BOOL && kind != CEL_ANY && !(kind == CEL_DYN && features & CEL_DEVICE_LIST_ATTRIBUTES)) {
		str text = cel_type_output_text(a, cel_program_type(p));
		*ret_why = arena_printf(a, "must evaluate to bool or the unknown type, not " STR_FMT, STR_ARG(text));
		return -ERR_INVALID;
	}
	if (ret_program)
		*ret_program = TAKE(p);
	return 0;
}

/* ---- devices ---- */

static int bad_attribute(struct err *err, str name, const char *why)
{
	return err_set(err, ERR_INVALID, "attribute " STR_FMT ": %s", STR_ARG(name), why);
}

static int version_value(struct arena *a, str name, str text, struct cel_val *ret, struct err *err)
{
	struct semver v;

	if (!semver_parse(text, &v))
		return bad_attribute(err, name, "parse semantic version: invalid version");
	*ret = cel_of_semver(a, &v);
	return 0;
}

static int list_value(struct arena *a, str name, struct val list, bool versions, struct cel_val *ret, struct err *err)
{
	struct cel_val *items = ARENA_ARRAY(a, struct cel_val, val_len(list) + 1);
	size_t n = 0;
	int r;

	VAL_EACH(item, list) {
		items[n] = cel_of_val(a, &cel_type_dyn, *item);
		if (versions && (r = version_value(a, name, val_as_str(*item), &items[n], err)) < 0)
			return r;
		n++;
	}
	*ret = cel_of_list(a, items, n);
	return 0;
}

static int attribute_value(struct arena *a, unsigned features, str name, struct val attribute, struct cel_val *ret, struct err *err)
{
	static const struct {
		str plain, list;
	} kinds[] = { { STR_INIT("int"), STR_INIT("ints") }, { STR_INIT("bool"), STR_INIT("bools") },
		      { STR_INIT("string"), STR_INIT("strings") }, { STR_INIT("version"), STR_INIT("versions") } };
	enum { VERSION = 3 };

	for (size_t i = 0; i < ARRAY_LEN(kinds) && features & CEL_DEVICE_LIST_ATTRIBUTES; i++) {
		struct val list = val_find(attribute, kinds[i].list);
		if (val_is(list, VAL_LIST))
			return list_value(a, name, list, i == VERSION, ret, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct val v = val_find(attribute, kinds[i].plain);
		if (val_is_nil(v))
			continue;
		*ret = cel_of_val(a, &cel_type_dyn, v);
		return i == VERSION ? version_value(a, name, val_as_str(v), ret, err) : 0;
	}
	return bad_attribute(err, name, "unsupported attribute value");
}

static int capacity_value(struct arena *a, str name, struct val capacity, struct cel_val *ret, struct err *err)
{
	/* Before v1 the quantity stood there itself. */
	struct val v = val_is(capacity, VAL_OBJECT) ? val_get(capacity, value) : capacity;
	struct quantity q;
	int r = quantity_parse(val_as_str(v), &q, err);

	if (r < 0)
		return err_wrap(err, -ERR_INVALID, "capacity " STR_FMT, STR_ARG(name));
	*ret = cel_of_quantity(a, &q);
	return 0;
}

/* Members by domain: a map of maps that has an empty one for every other domain. */
struct domains {
	struct arena *arena;
	struct cel_pair *pairs;
	size_t n;
};

static void add_member(struct domains *d, str domain, str id, struct cel_val v)
{
	size_t i = 0;

	while (i < d->n && !str_eq(cel_text(d->pairs[i].key), domain))
		i++;
	if (i == d->n)
		d->pairs[d->n++] = (struct cel_pair){ cel_of_str(domain), cel_map_new(d->arena) };
	(void)cel_map_add(d->arena, &d->pairs[i].val, cel_of_str(id), v);
}

static int members_value(struct arena *a, unsigned features, str driver, struct val members, bool capacity, struct cel_val *ret, struct err *err)
{
	struct domains d = { .arena = a, .pairs = ARENA_ARRAY(a, struct cel_pair, val_len(members) + 1) };
	struct cel_val *none = ARENA_NEW(a, struct cel_val);
	int r;

	VAL_EACH_MEMBER(m, members) {
		str name = atom_str(m->key), domain = driver, id = name;
		ptrdiff_t slash = str_chr(name, '/');
		struct cel_val v;

		if (slash >= 0) {
			domain = str_head(name, (size_t)slash);
			id = str_skip(name, (size_t)slash + 1);
		}
		r = capacity ? capacity_value(a, name, m->val, &v, err) : attribute_value(a, features, name, m->val, &v, err);
		if (r < 0)
			return r;
		add_member(&d, domain, id, v);
	}
	*none = cel_map_new(a);
	*ret = cel_of_pairs(a, NULL, d.pairs, d.n, none);
	return 0;
}

/* Every type of cel-go has its own words for this. */
static int not_bool(struct cel_val got, struct err *err)
{
	str name = cel_type_name(got);
	const char *how = "type conversion error from '" STR_FMT "' to 'bool'";

	if (got.kind == CEL_STRING)
		how = "unsupported native conversion from " STR_FMT " to 'bool'";
	else if (got.kind == CEL_INT || got.kind == CEL_UINT)
		how = "unsupported type conversion from '" STR_FMT "' to bool";
	else if (got.kind == CEL_SEMVER)
		name = STR("Semver");
	err_set(err, ERR_INVALID, how, STR_ARG(name));
	return err_wrap(err, -ERR_INVALID, "CEL result of type " STR_FMT " could not be converted to bool", STR_ARG(cel_type_name(got)));
}

int cel_device_matches(const struct cel_program *p, unsigned features, str driver, struct val device, struct arena *a, bool *ret_match,
		       struct err *err)
{
	/* v1beta1 has most of it in a member of the device. */
	struct val basic = val_has(device, basic) ? val_get(device, basic) : device;
	struct cel_val attributes, capacity, variable;
	struct cel_run run = { .arena = a, .limit = CEL_DEVICE_COST_MAX };
	int r;

	if ((r = members_value(a, features, driver, val_get(basic, attributes), false, &attributes, err)) < 0 ||
	    (r = members_value(a, features, driver, val_get(basic, capacity), true, &capacity, err)) < 0)
		return r;
	struct cel_pair fields[] = {
		{ cel_of_str(STR("driver")), cel_of_str(driver) },
		{ cel_of_str(STR("attributes")), attributes },
		{ cel_of_str(STR("capacity")), capacity },
		{ cel_of_str(STR("allowMultipleAllocations")), cel_of_bool(val_bool(basic, allowMultipleAllocations)) },
	};
	variable = cel_of_pairs(a, &device_types[features & 3], fields, ARRAY_LEN(fields), NULL);
	struct cel_val got = cel_run(p, &variable, &run);
	if (got.kind == CEL_ERROR)
		return err_set(err, ERR_INVALID, STR_FMT, STR_ARG(cel_text(got)));
	if (got.kind != CEL_BOOL)
		return not_bool(got, err);
	*ret_match = got.b;
	return 0;
}
