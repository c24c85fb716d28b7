#include "machinery/managed_fields.h"

#include "codec/atoms.h"
#include "machinery/testing.h"

#define ENTRY(manager, operation, version, time, rest) \
	"{'manager':'" manager "','operation':'" operation "','apiVersion':'" version "','time':'" time \
	"','fieldsType':'FieldsV1'," rest "}"

/* A list as this file writes it: fields are kept as they come. */
static str list_text(struct arena *a, struct val list)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	VAL_EACH(e, list) {
		buf_addf(&b, "%s" STR_FMT " " STR_FMT " " STR_FMT, b.n ? " | " : "", STR_ARG(val_str(*e, manager)),
			 STR_ARG(val_str(*e, operation)), STR_ARG(val_str(*e, apiVersion)));
		if (val_has(*e, subresource))
			buf_addf(&b, "/" STR_FMT, STR_ARG(val_str(*e, subresource)));
		if (val_has(*e, time))
			buf_addf(&b, " " STR_FMT, STR_ARG(str_head(val_str(*e, time), 10)));
		if (val_get(*e, fieldsV1).type == VAL_RAW)
			buf_addf(&b, " " STR_FMT, STR_ARG(val_str(*e, fieldsV1)));
		else
			buf_addf(&b, " " STR_FMT, STR_ARG(testing_text(a, val_get(*e, fieldsV1))));
	}
	return testing_swap(a, buf_str(&b), '"', '\'');
}

TEST(managed_decode_and_encode)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "[]", "" },
		{ "null", "" },
		/* sorted by operation, time, manager, version, subresource */
		{ "[" ENTRY("b", "Update", "v1", "2026-01-02T00:00:00Z", "'fieldsV1':{'f:a':{}}") ","
		  ENTRY("z", "Apply", "v1", "2026-01-05T00:00:00Z", "'fieldsV1':{'f:a':{}}") ","
		  ENTRY("a", "Update", "v1", "2026-01-02T00:00:00Z", "'fieldsV1':{'f:a':{}},'subresource':'status'") ","
		  ENTRY("a", "Update", "v1", "2026-01-02T00:00:00Z", "'fieldsV1':{'f:b':{},'f:a':{}}") ","
		  ENTRY("c", "Update", "v2", "2026-01-01T00:00:00Z", "'fieldsV1':{'f:a':{'.':{}}}") "]",
		  "z Apply v1 2026-01-05 {'f:a':{}} | c Update v2 2026-01-01 {'f:a':{}} | "
		  "a Update v1 2026-01-02 {'f:a':{},'f:b':{}} | a Update v1/status 2026-01-02 {'f:a':{}} | "
		  "b Update v1 2026-01-02 {'f:a':{}}" },
		/* an applier is one whatever its version; of two entries of one manager the last counts */
		{ "[" ENTRY("a", "Apply", "v1", "2026-01-01T00:00:00Z", "'fieldsV1':{'f:a':{}}") ","
		  ENTRY("a", "Apply", "v2", "2026-01-02T00:00:00Z", "'fieldsV1':{'f:b':{}}") "]",
		  "a Apply v2 2026-01-02 {'f:b':{}}" },
		{ "[" ENTRY("a", "Update", "v1", "2026-01-01T00:00:00Z", "'fieldsV1':{'f:a':{}}") ","
		  ENTRY("a", "Update", "v2", "2026-01-02T00:00:00Z", "'fieldsV1':{'f:b':{}}") "]",
		  "a Update v1 2026-01-01 {'f:a':{}} | a Update v2 2026-01-02 {'f:b':{}}" },
		{ "[{'operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1'}]", " Update v1 {}" },
		{ "[{}]", "! operation must be `Apply` or `Update`" },
		{ "[{'operation':'Patch'}]", "! operation must be `Apply` or `Update`" },
		{ "[{'operation':'Apply'}]", "! apiVersion must not be empty" },
		{ "[{'operation':'Apply','apiVersion':'v1'}]", "! missing fieldsType in managed fields entry 0" },
		{ "[" ENTRY("a", "Apply", "v1", "", "'fieldsV1':{}") ","
		  "{'operation':'Apply','apiVersion':'v1','fieldsType':'X'}]",
		  "! invalid fieldsType 'X' in managed fields entry 1" },
		{ "[" ENTRY("a", "Apply", "v1", "", "'fieldsV1':{'x':{}}") "]",
		  "! error decoding versioned set of managed fields entry 0: fieldsV1: not a path element: 'x'" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct managed m;
		str got = managed_decode(&a, testing_unsorted(&a, t[i].in), &m, &err) < 0 ?
				  testing_swap(&a, testing_error(&a, &err), '"', '\'') :
				  list_text(&a, managed_encode(&a, &m, false));
		CHECK_STR_ROW(i, got, t[i].want);
	}
}

/* In custom resources members are sorted by name. */
TEST(managed_encode_by_name)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct managed m;
	struct val list = testing_unsorted(&a, "[" ENTRY("a", "Apply", "v1", "2026-01-01T00:00:00.9Z",
							"'subresource':'s','fieldsV1':{'f:a':{}}") "]");
	CHECK_INT(managed_decode(&a, list, &m, NULL), 0);
	CHECK_STR(testing_text(&a, managed_encode(&a, &m, false)),
		  "[{'manager':'a','operation':'Apply','apiVersion':'v1','time':'2026-01-01T00:00:00Z',"
		  "'fieldsType':'FieldsV1','fieldsV1':{'f:a':{}},'subresource':'s'}]");
	CHECK_STR(testing_text(&a, managed_encode(&a, &m, true)),
		  "[{'apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':{'f:a':{}},'manager':'a','operation':'Apply',"
		  "'subresource':'s','time':'2026-01-01T00:00:00Z'}]");
}

TEST(managed_is_reset)
{
	static const struct {
		const char *in;
		bool want;
	} t[] = {
		{ "[]", true }, { "[{}]", true }, { "[null]", true }, { "null", false }, { "[{'manager':'a'}]", false },
		{ "[{'manager':''}]", true }, { "[{},{}]", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_ROW(i, managed_is_reset(testing_tree(&a, t[i].in)) == t[i].want);
	}
}

TEST(managed_too_many)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val entry = testing_tree(&a, ENTRY("a", "Apply", "v1", "", "'fieldsV1':{}"));
	struct val_builder b = val_builder(&a);
	struct err err = ERR_INIT;
	struct managed m;

	for (int i = 0; i <= MANAGED_ENTRIES_MAX; i++)
		val_add_item(&b, entry);
	CHECK_INT(managed_decode(&a, val_end_list(&b), &m, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "more than 1000 managed fields entries");
}

/* Managers as letters, each with a field of its own: "b2 1" is manager b, version v2, first of January. */
static struct managed letters(struct arena *a, const char *spec)
{
	struct managed m = { NULL, 0 };
	for (str rest = str_of(spec), word; rest.n;) {
		str_cut(rest, ' ', &word, &rest);
		char field[2] = { word.p[0], '\0' };
		struct manager e = { .timed = true, .time = { 1767225600 + (word.p[2] - '0') * 86400, 0 } };
		e.name = word.p[0] == 'A' ? STR("ancient-changes") : str_head(word, 1);
		e.api_version = arena_printf(a, "v%c", word.p[1]);
		e.applied = word.n > 3;
		e.set = field_set_of(a, (const char *const[]){ field, NULL });
		e.id = manager_id(a, e.name, e.applied, e.api_version, STR_NONE);
		managed_put(a, &m, e);
	}
	return m;
}

TEST(managed_cap)
{
	static const struct {
		const char *in;
		uint32_t max;
		const char *want;
	} t[] = {
		{ "a11 b12 c13", 3,
		  "a Update v1 2026-01-02 {'f:a':{}} | b Update v1 2026-01-03 {'f:b':{}} | "
		  "c Update v1 2026-01-04 {'f:c':{}}" },
		{ "a11 b12 c13", 2,
		  "ancient-changes Update v1 2026-01-03 {'f:a':{},'f:b':{}} | c Update v1 2026-01-04 {'f:c':{}}" },
		{ "c11 b12 a13", 1, "ancient-changes Update v1 2026-01-04 {'f:a':{},'f:b':{},'f:c':{}}" },
		/* ties go by name; appliers do not count */
		{ "b11 a11 c11 d12x", 2,
		  "d Apply v1 2026-01-03 {'f:d':{}} | ancient-changes Update v1 2026-01-02 {'f:a':{},'f:b':{}} | "
		  "c Update v1 2026-01-02 {'f:c':{}}" },
		/* versions have buckets of their own; the first of each only opens its bucket */
		{ "a11 b22 c13 d24", 3,
		  "b Update v2 2026-01-03 {'f:b':{}} | ancient-changes Update v1 2026-01-04 {'f:a':{},'f:c':{}} | "
		  "d Update v2 2026-01-05 {'f:d':{}}" },
		{ "a11 b22 c13 d24", 2,
		  "ancient-changes Update v1 2026-01-04 {'f:a':{},'f:c':{}} | "
		  "ancient-changes Update v2 2026-01-05 {'f:b':{},'f:d':{}}" },
		{ "a11 b22 c33", 1,
		  "a Update v1 2026-01-02 {'f:a':{}} | b Update v2 2026-01-03 {'f:b':{}} | "
		  "c Update v3 2026-01-04 {'f:c':{}}" },
		/* a bucket from before takes more */
		{ "A11 b12 c13", 2,
		  "ancient-changes Update v1 2026-01-03 {'f:A':{},'f:b':{}} | c Update v1 2026-01-04 {'f:c':{}}" },
		{ "b11 c12 d13 A15", 3,
		  "b Update v1 2026-01-02 {'f:b':{}} | ancient-changes Update v1 2026-01-03 {'f:A':{},'f:c':{}} | "
		  "d Update v1 2026-01-04 {'f:d':{}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct managed m = letters(&a, t[i].in);
		managed_cap(&a, &m, t[i].max);
		CHECK_STR_ROW(i, list_text(&a, managed_encode(&a, &m, false)), t[i].want);
	}
}

TEST(managed_keep_times)
{
#define OBJECT_(labels, time1, time2, fields) \
	"{'metadata':{'labels':{" labels "},'managedFields':[" \
	ENTRY("a", "Apply", "v1", time1, "'fieldsV1':{'f:a':{}}") "," \
	ENTRY("b", "Update", "v1", time2, "'fieldsV1':{" fields "}") "]}}"
#define OLD "2026-01-01T00:00:00Z"
#define NEW "2026-01-02T00:00:00Z"
	static const struct {
		const char *before, *after, *want;
	} t[] = {
		/* nothing but times */
		{ OBJECT_("", OLD, OLD, "'f:b':{}"), OBJECT_("", OLD, NEW, "'f:b':{}"),
		  OBJECT_("", OLD, OLD, "'f:b':{}") },
		{ OBJECT_("", OLD, OLD, "'f:b':{}"), OBJECT_("", NEW, NEW, "'f:b':{}"),
		  OBJECT_("", OLD, OLD, "'f:b':{}") },
		/* more than that */
		{ OBJECT_("", OLD, OLD, "'f:b':{}"), OBJECT_("'x':'y'", OLD, NEW, "'f:b':{}"),
		  OBJECT_("'x':'y'", OLD, NEW, "'f:b':{}") },
		{ OBJECT_("", OLD, OLD, "'f:b':{}"), OBJECT_("", OLD, NEW, "'f:c':{}"),
		  OBJECT_("", OLD, NEW, "'f:c':{}") },
		{ "{}", OBJECT_("", OLD, NEW, "'f:b':{}"), OBJECT_("", OLD, NEW, "'f:b':{}") },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val kept = managed_keep_times(&a, testing_tree(&a, t[i].before), testing_tree(&a, t[i].after));
		CHECK_ROW(i, val_equal(kept, testing_tree(&a, t[i].want)));
	}
#undef OBJECT_
#undef OLD
#undef NEW
}

/* Who owns what before and after kubectl changes from client-side to server-side apply. */
TEST(managed_upgrade_csa)
{
#define CSA(version, rest) ENTRY("csa", "Update", version, "2026-01-01T00:00:00Z", rest)
#define SSA(version, rest) ENTRY("ssa", "Apply", version, "2026-01-02T00:00:00Z", rest)
	static const struct {
		const char *in, *want;
		int r;
	} t[] = {
		{ "[]", "", 0 },
		{ "[" SSA("v1", "'fieldsV1':{'f:a':{}}") "]", "", 0 },
		{ "[" CSA("v1", "'fieldsV1':{'f:a':{}},'subresource':'status'") "]", "", 0 },
		{ "[" CSA("v1", "'fieldsV1':{'f:a':{}}") "]", "ssa Apply v1 2026-01-01 {'f:a':{}}", 1 },
		{ "[" SSA("v1", "'fieldsV1':{'f:b':{}}") "," CSA("v1", "'fieldsV1':{'f:a':{}}") "]",
		  "ssa Apply v1 2026-01-02 {'f:a':{},'f:b':{}}", 1 },
		{ "[" SSA("v1", "'fieldsV1':{'f:b':{}}") "," CSA("v2", "'fieldsV1':{'f:a':{}}") "]",
		  "ssa Apply v1 2026-01-02 {'f:b':{}}", 1 },
		{ "[" CSA("v1", "'fieldsV1':{'f:a':{}}") "," CSA("v2", "'fieldsV1':{'f:b':{}}") ","
		  ENTRY("x", "Update", "v1", "2026-01-03T00:00:00Z", "'fieldsV1':{'f:c':{}}") "]",
		  "ssa Apply v1 2026-01-01 {'f:a':{}} | x Update v1 2026-01-03 {'f:c':{}}", 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val list = testing_unsorted(&a, t[i].in), out = VAL_EMPTY;
		int r = managed_upgrade_csa(&a, list, STR("csa"), STR("ssa"), STR_NONE, &out, &err);
		CHECK_ROW(i, r == t[i].r);
		CHECK_STR_ROW(i, list_text(&a, out), t[i].want);
	}
#undef CSA
#undef SSA
}

TEST(managed_scale)
{
#define DAY "2026-01-01T00:00:00Z"
#define REPLICAS "'fieldsV1':{'f:spec':{'f:replicas':{}}}"
#define MORE "'fieldsV1':{'f:spec':{'f:replicas':{},'f:x':{}}}"
#define SCALE "autoscaling/v1"
	static const struct scale_path paths[] = { { STR_INIT("apps/v1"), "spec.replicas" },
						   { STR_INIT("apps/v2"), NULL } };
	static const struct {
		const char *list, *to_scale, *scale, *from_scale;
	} t[] = {
		{ "[]", "", "[]", "" },
		{ "[" ENTRY("a", "Apply", "apps/v1", DAY, MORE) "]",
		  "a Apply autoscaling/v1 2026-01-01 {'f:spec':{'f:replicas':{}}}",
		  "[" ENTRY("a", "Apply", SCALE, DAY, REPLICAS) "]",
		  "a Apply apps/v1 2026-01-01 {'f:spec':{'f:replicas':{},'f:x':{}}}" },
		/* somebody else scales */
		{ "[" ENTRY("a", "Apply", "apps/v1", DAY, MORE) "]",
		  "a Apply autoscaling/v1 2026-01-01 {'f:spec':{'f:replicas':{}}}",
		  "[" ENTRY("hpa", "Update", SCALE, DAY, REPLICAS ",'subresource':'scale'") "]",
		  "a Apply apps/v1 2026-01-01 {'f:spec':{'f:x':{}}} | "
		  "hpa Update apps/v1/scale {'f:spec':{'f:replicas':{}}}" },
		{ "[" ENTRY("a", "Apply", "apps/v1", DAY, REPLICAS) "]",
		  "a Apply autoscaling/v1 2026-01-01 {'f:spec':{'f:replicas':{}}}", "[]", "" },
		/* versions without replicas are kept, unknown ones are not */
		{ "[" ENTRY("a", "Update", "apps/v2", DAY, MORE) "," ENTRY("b", "Update", "apps/v9", DAY, MORE) "]",
		  "", "[]",
		  "a Update apps/v2 2026-01-01 {'f:spec':{'f:replicas':{},'f:x':{}}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val list = testing_unsorted(&a, t[i].list), scale = testing_unsorted(&a, t[i].scale), out;
		size_t n = ARRAY_LEN(paths);
		CHECK_ROW(i, managed_to_scale(&a, list, paths, n, &out, NULL) == 0);
		CHECK_STR_ROW(i, list_text(&a, out), t[i].to_scale);
		CHECK_ROW(i, managed_from_scale(&a, list, scale, STR("apps/v1"), paths, n, &out, NULL) == 0);
		CHECK_STR_ROW(i, list_text(&a, out), t[i].from_scale);
	}
#undef DAY
#undef REPLICAS
#undef MORE
#undef SCALE
}
