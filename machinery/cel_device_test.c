#include "base/test.h"
#include "codec/json.h"
#include "machinery/cel_device.h"

static const char device_json[] =
	"{\"name\":\"d\",\"allowMultipleAllocations\":true,\"attributes\":{\"name\":{\"string\":\"gpu-0\"},\"count\":{\"int\":4},"
	"\"ok\":{\"bool\":true},\"version\":{\"version\":\"1.2.3\"},\"other.example.com/name\":{\"string\":\"x\"}},"
	"\"capacity\":{\"memory\":{\"value\":\"16Gi\"}}}";

struct row {
	const char *expression;
	int match;          /* -1: an error */
	const char *error;
};

/* The answers are those of Kubernetes 1.36. */
static const struct row rows[] = {
	{ "device.driver == \"dra.example.com\"", 1, NULL },
	{ "device.attributes[\"dra.example.com\"].name == \"gpu-0\"", 1, NULL },
	{ "device.attributes[\"dra.example.com\"].count > 3", 1, NULL },
	{ "device.attributes[\"dra.example.com\"].ok", 1, NULL },
	{ "device.attributes[\"nope\"].nope", -1, "no such key: nope" },
	{ "\"name\" in device.attributes[\"nope\"]", 0, NULL },
	{ "\"other.example.com\" in device.attributes", 1, NULL },
	{ "\"nope\" in device.attributes", 0, NULL },
	{ "has(device.attributes[\"dra.example.com\"].nope) && device.attributes[\"dra.example.com\"].nope", 0, NULL },
	{ "device.attributes[\"dra.example.com\"].version.isGreaterThan(semver(\"1.0.0\"))", 1, NULL },
	{ "device.capacity[\"dra.example.com\"].memory.isGreaterThan(quantity(\"10Gi\"))", 1, NULL },
	{ "device.capacity[\"dra.example.com\"].memory.compareTo(quantity(\"16Gi\")) == 0", 1, NULL },
	{ "device.capacity[\"dra.example.com\"].nope.compareTo(quantity(\"16Gi\")) == 0", -1, "no such key: nope" },
	{ "device.allowMultipleAllocations", 1, NULL },
	{ "cel.bind(dra, device.attributes[\"dra.example.com\"], dra.ok && dra.count == 4)", 1, NULL },
	{ "device.attributes.exists(d, device.attributes[d].exists(n, n == \"count\"))", 1, NULL },
	{ "device.attributes[\"dra.example.com\"].name", -1,
	  "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'" },
	{ "device.attributes[\"dra.example.com\"].count", -1,
	  "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool" },
	{ "device.attributes[\"dra.example.com\"].count + \"a\" == \"5\"", -1, "no such overload" },
};

TEST(cel_device_matches)
{
	struct arena a = ARENA_INIT;
	struct err err = ERR_INIT;
	struct val device;
	unsigned features = CEL_DEVICE_CONSUMABLE_CAPACITY;

	CHECK(json_decode(&a, str_of(device_json), &(struct json_decode_options){ 0 }, &device, &err) >= 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(cel_program_freep) struct cel_program *p = NULL;
		bool match = false;
		str why = STR("");
		CHECK_ROW(i, cel_device_compile(str_of(rows[i].expression), features, &a, &p, &why) >= 0);
		int r = cel_device_matches(p, features, STR("dra.example.com"), device, &a, &match, &err);
		CHECK_ROW(i, (rows[i].match < 0) == (r < 0));
		if (r < 0)
			CHECK_STR_ROW(i, err_str(&err), rows[i].error);
		else
			CHECK_ROW(i, match == rows[i].match);
	}
	arena_done(&a);
}

TEST(cel_device_compile)
{
	static const struct {
		const char *expression;
		unsigned features;
		const char *why; /* NULL: it compiles */
	} t[] = {
		{ "1", 1, "must evaluate to bool or the unknown type, not int" },
		{ "device.driver", 1, "must evaluate to bool or the unknown type, not string" },
		{ "device.attributes[\"x\"]", 1, "must evaluate to bool or the unknown type, not map(string, google.protobuf.Any)" },
		{ "device.foo", 1, "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^" },
		{ "device.allowMultipleAllocations", 0,
		  "compilation failed: ERROR: <input>:1:7: undefined field 'allowMultipleAllocations'\n | device.allowMultipleAllocations\n"
		  " | ......^" },
		{ "int(\"x\") == 1", 1, "program instantiation failed: type conversion error from 'string' to 'int'" },
		{ "device.attributes[\"x\"].y.includes(1)", 3, NULL },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str why = STR("");
		int r = cel_device_compile(str_of(t[i].expression), t[i].features, &a, NULL, &why);
		CHECK_ROW(i, (r < 0) == (t[i].why != NULL));
		CHECK_STR_ROW(i, why, t[i].why ? t[i].why : "");
	}
	arena_done(&a);
}

/* What devices can hold is bounded, so that the estimate is too: servers refuse what is over CEL_DEVICE_COST_MAX. */
TEST(cel_device_cost)
{
	static const struct {
		const char *expression;
		uint64_t max;
	} t[] = {
		{ "device.attributes[\"dra.example.com\"].name.matches(\"gpu-[0-9]+\")", 25 },
		{ "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a == b || b != c)))", 694467 },
	};
	struct arena a = ARENA_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(cel_program_freep) struct cel_program *p = NULL;
		str why = STR("");
		CHECK_ROW(i, cel_device_compile(str_of(t[i].expression), 1, &a, &p, &why) >= 0);
		CHECK_INT(cel_program_max_cost(p), t[i].max);
	}
	arena_done(&a);
}
