#include "machinery/jsonpath.h"

#include "machinery/testing.h"

static const char pods[] =
	"{'kind':'List','items':["
	"{'metadata':{'name':'p1','labels':{'app':'web','a.b/c':'v1'}},"
	"'spec':{'containers':[{'name':'c1','image':'i1'},{'name':'c2','image':'i2'}]},"
	"'status':{'phase':'Running','ok':true,'load':1.5,'n':3}},"
	"{'metadata':{'name':'p2'},'spec':{'containers':[{'name':'c3','image':'<&>'}],'x':null},"
	"'status':{'phase':'Pending','ok':false,'load':2.0,'n':10}}],"
	"'empty':[],'nul':null,'str':'hi','one':{'k':'v'},'nums':[1,2,3,4,5],'f':[1.0,2.5,1e-7,123456789.5],"
	"'mix':['a',null,{'z':1}]}";

static str run(struct arena *a, const char *template, bool strict, bool as_json)
{
	const struct jsonpath *path;
	struct err err = ERR_INIT;
	struct val root = testing_tree(a, pods);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	struct jsonpath_options opt = { .allow_missing_keys = !strict, .as_json = as_json };

	buf_add(&out, STR(">"));
	if (jsonpath_parse(a, str_of(template), &path, &err) < 0 || jsonpath_print(path, a, root, &opt, &out, &err) < 0) {
		CHECK_INT(err.code, ERR_BAD_REQUEST);
		CHECK_STR(buf_str(&out), ">");
		return testing_error(a, &err);
	}
	return str_skip(arena_str(a, buf_str(&out)), 1);
}

static void check_all(const char *const (*rows)[2], size_t n, bool strict)
{
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < n; i++)
		CHECK_STR_ROW(i, run(&a, rows[i][0], strict, false), rows[i][1]);
	arena_done(&a);
}

TEST(jsonpath_paths)
{
	static const char *const t[][2] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "{.kind}", "List" },
		{ "{kind}", "! unrecognized identifier kind" },
		{ "a{.kind}b{.str}c", "aListbhic" },
		{ "{$.kind} {@.str}", "List hi" },
		{ "{.items[*].metadata.name}", "p1 p2" },
		{ "{.items[0].metadata.name}", "p1" },
		{ "{.items[-1].metadata.name}", "p2" },
		{ "{.items[2].metadata.name}", "! array index out of bounds: index 2, length 2" },
		{ "{.items[-3].metadata.name}", "! array index out of bounds: index -1, length 2" },
		{ "{.nums[1:3]}", "2 3" },
		{ "{.nums[::2]}", "1 3 5" },
		{ "{.nums[:-1]}", "1 2 3 4" },
		{ "{.nums[3:1]}", "! starting index 3 is greater than ending index 1" },
		{ "{.nums[1:1]}", "" },
		{ "{.nums[0:9]}", "! array index out of bounds: index 8, length 5" },
		{ "{.nums[::0]}", "! step must be > 0" },
		{ "{.nums[]}", "1" },
		{ "{.nums[0,2, 4]}", "1 3 5" },
		{ "{['kind','str']}", "List hi" },
		{ "{.items[0].metadata.labels.a\\.b/c}", "v1" },
		{ "{.items[0].metadata.labels['a\\.b/c']}", "v1" },
		{ "{.one.*}", "v" },
		{ "{.nums.*}", "1 2 3 4 5" },
		{ "{..image}", "i1 i2 <&>" },
		{ "{.items..name}", "p1 c1 c2 p2 c3" },
		{ "{.one}", "{\"k\":\"v\"}" },
		{ "{.f}", "[1,2.5,1e-7,123456789.5]" },
		{ "{.f[*]}", "1 2.5 1e-07 1.234567895e+08" },
		{ "{.mix[*]}", "a null {\"z\":1}" },
		{ "{.items[1].spec}", "{\"containers\":[{\"image\":\"\\u003c\\u0026\\u003e\",\"name\":\"c3\"}],\"x\":null}" },
		{ "{.nul}", "null" },
		{ "{.nul.x}{.nul[0]}{.nul.*}{.missing}", "" },
		{ "{.str.*}", "104 105" },
		{ "{.str[0]}", "! string is not array or slice" },
		{ "{.one[0]}", "! map[string]interface {} is not array or slice" },
		{ "{.str.x}", "" },
		{ "{1}{-2}{1.5}{true}{\"a\\tb\"}{'it\\'s'}", "1-21.5truea\tbit's" },
	};
	check_all(t, ARRAY_LEN(t), false);
}

TEST(jsonpath_filters)
{
	static const char *const t[][2] = {
		{ "{.items[?(@.status.phase==\"Running\")].metadata.name}", "p1" },
		{ "{.items[?(@.status.phase!='Running')].metadata.name}", "p2" },
		{ "{.items[?(@.status.n>3)].metadata.name}", "p2" },
		{ "{.items[?(@.status.n >= 3)].metadata.name}", "p1 p2" },
		{ "{.items[?(@.status.load<2.0)].metadata.name}", "p1" },
		{ "{.items[?(@.status.ok==true)].metadata.name}", "p1" },
		{ "{.items[?(@.metadata.labels.app)].metadata.name}", "p1" },
		{ "{.items[?(@.spec.containers[0])].metadata.name}", "p1 p2" },
		{ "{.items[?(@.spec.containers[?(@.name==\"c3\")])].metadata.name}", "! unterminated filter" },
		{ "{.nums[?(@<=2)]}", "1 2" },
		{ "{.nums[?(@==1.5)]}", "! incompatible types for comparison" },
		{ "{.items[?(@.status.ok<true)]}", "! invalid type for comparison" },
		{ "{.items[?(@.spec.containers[*].name==\"c1\")]}", "! can only compare one element at a time" },
		{ "{.nums[?(@=1)]}", "! unrecognized filter operator =" },
		{ "{.one[?(@.k)]}", "! map[k:v] is not array or slice and cannot be filtered" },
		{ "{.nul[?(@.k)]}", "! <nil> is not array or slice and cannot be filtered" },
	};
	check_all(t, ARRAY_LEN(t), false);
}

TEST(jsonpath_ranges)
{
	static const char *const t[][2] = {
		{ "{range .items[*]}{.metadata.name}:{range .spec.containers[*]}{.image},{end};{end}.", "p1:i1,i2,;p2:<&>,;." },
		{ "{range .empty[*]}{.x}{range .y[*]}{.z}{end}{end}after", "after" },
		{ "{range .nums[0:2]}{@}-{end}{range .f[0:1]}{@}{end}", "1-2-1" },
		{ "{range .mix[*]}{@}|{end}", "a|<no value>|{\"z\":1}|" },
		{ "{end}", "! not in range, nothing to end" },
	};
	check_all(t, ARRAY_LEN(t), false);
}

TEST(jsonpath_mistakes)
{
	static const char *const t[][2] = {
		{ "{.missing}", "! missing is not found" },
		{ "{.items[0].missing.x}", "! missing is not found" },
		{ "{.}", "!  is not found" },
		{ "{.kind", "! unclosed action" },
		{ "{.kind\n}", "! unclosed action" },
		{ "{.nums[0", "! unterminated array" },
		{ "{.nums[a]}", "! invalid array index a" },
		{ "{.nums[-]}", "! array index - is not a number" },
		{ "{.nums[1:-x]}", "! invalid array index 1:-x" },
		{ "{.nums[99999999999999999999]}", "! array index 99999999999999999999 is not a number" },
		{ "{.nums[?(@>2}", "! unterminated filter" },
		{ "{.nums[?(@>2)}", "! unclosed array expect ]" },
		{ "{....name}", "! invalid multiple recursive descent" },
		{ "{\"abc}", "! unterminated quoted string" },
		{ "{\"\\q\"}", "! unquote string \"\\q\" error invalid syntax" },
		{ "{1.2.3}", "! cannot parse number 1.2.3" },
		{ "{#}", "! unrecognized character in action: U+0023 '#'" },
		{ "{\t}", "! unrecognized character in action: U+0009" },
	};
	check_all(t, ARRAY_LEN(t), true);
}

TEST(jsonpath_as_json)
{
	struct arena a = ARENA_INIT;
	CHECK_STR(run(&a, "{.nums[0:2]}{.one}", false, true), "[\n    1,\n    2\n]\n[\n    {\n        \"k\": \"v\"\n    }\n]\n");
	CHECK_STR(run(&a, "{.missing}", false, true), "[]\n");
	arena_done(&a);
}

TEST(jsonpath_bounds)
{
	struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf deep = BUF_INIT(1 << 16);

	struct err err = ERR_INIT;
	const struct jsonpath *path;
	struct val found, numbers = LIST(&a, val_of_int(1), val_of_int(2), val_of_int(3));
	CHECK_INT(jsonpath_parse(&a, STR("{[0:2]}"), &path, NULL), 0);
	CHECK_INT(jsonpath_find(path, &a, numbers, &(struct jsonpath_options){ .max_values = 3 }, &found, NULL), 0);
	CHECK_INT(val_len(val_at(found, 0)), 2);
	CHECK_INT(jsonpath_parse(&a, STR("{[*]}"), &path, NULL), 0);
	CHECK_INT(jsonpath_find(path, &a, numbers, &(struct jsonpath_options){ .max_values = 3 }, &found, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "the expression yields too many values");

	buf_add(&deep, STR("{.a"));
	for (int i = 0; i < 50; i++)
		buf_add(&deep, STR("[?(@.a"));
	for (int i = 0; i < 50; i++)
		buf_add(&deep, STR(")]"));
	buf_add(&deep, STR("}"));
	CHECK(str_starts(run(&a, deep.p, false, false), STR("! ")));
	buf_reset(&deep);
	for (int i = 0; i < 100; i++)
		buf_add(&deep, STR("{range @}"));
	CHECK_STR(run(&a, deep.p, false, false), "! ranges are nested more than 64 levels deep");
	arena_done(&a);
}

TEST(jsonpath_relaxed)
{
	static const char *const t[][2] = {
		{ "", "" },
		{ "a.b", "{.a.b}" },
		{ ".a.b", "{.a.b}" },
		{ "{a.b}", "{.a.b}" },
		{ "{.a.b}", "{.a.b}" },
		{ ".", "{..}" },
		{ "{", NULL },
		{ "{}", NULL },
		{ "{a}{b}", NULL },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		str got = STR_NONE;
		int r = jsonpath_relaxed(&a, str_of(t[i][0]), &got, &err);
		CHECK_ROW(i, (r < 0) == !t[i][1]);
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : got,
			      r < 0 ? "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or "
				      "'{.name1.name2}'" :
				      t[i][1]);
	}
	arena_done(&a);
}
