#include "base/buf.h"
#include "base/test.h"
#include "codec/json.h"
#include "runtime/image_toml.h"

TEST(toml_texts)
{
	static const struct {
		const char *in, *json;
	} t[] = {
		{ "", "{}" },
		{ "# only this\n\n", "{}" },
		{ "server = \"https://r.io\"\n", "{\"server\":\"https://r.io\"}" },
		{ "a = 'C:\\x' # c\r\nb=\"t\\t\\u00e9\\U0001F600\"", "{\"a\":\"C:\\\\x\",\"b\":\"t\\té😀\"}" },
		{ "a = \"\"\"\none\\\n   two\n\"\"\"", "{\"a\":\"onetwo\\n\"}" },
		{ "a = '''\nx'y\n'''", "{\"a\":\"x'y\\n\"}" },
		{ "a = \"\"\"say \"hi\"\"\"\"", "{\"a\":\"say \\\"hi\\\"\"}" },
		{ "n = 42\nm = -7\np = +1\nt = true\nf = false", "{\"n\":42,\"m\":-7,\"p\":1,\"t\":true,\"f\":false}" },
		{ "a = [ \"x\", # one\n \"y\",\n]\nb = []\nc = [[1,2],['k']]", "{\"a\":[\"x\",\"y\"],\"b\":[],\"c\":[[1,2],[\"k\"]]}" },
		{ "[host.\"https://m.io\"]\n capabilities = [\"pull\"]\n[host.\"https://m.io\".header]\nx='y'\n[host.'http://b']\n",
		  "{\"host\":{\"https://m.io\":{\"capabilities\":[\"pull\"],\"header\":{\"x\":\"y\"}},\"http://b\":{}}}" },
		{ "[a.b]\nx=1\n[a]\ny=2", "{\"a\":{\"b\":{\"x\":1},\"y\":2}}" },
		{ "a.b . \"c d\" = 1", "{\"a\":{\"b\":{\"c d\":1}}}" },
		{ "p = { x = 1, y.z = 'w' }\nq={}", "{\"p\":{\"x\":1,\"y\":{\"z\":\"w\"}},\"q\":{}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(4096);
		struct err err = ERR_INIT;
		struct val v;
		if (toml_decode(&a, str_of(t[i].in), &v, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		CHECK_ROW(i, json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL) == 0);
		CHECK_STR_ROW(i, buf_str(&b), t[i].json);
	}
}

TEST(toml_mistakes)
{
	static const struct {
		const char *in, *message;
	} t[] = {
		{ "a", "line 1: '=' is missing after a key" },
		{ "\n= 1", "line 2: a key is missing" },
		{ "a =", "line 1: a value is missing" },
		{ "a = 1 2", "line 1: something follows on the same line" },
		{ "a = 1.5", "line 1: a value is neither a string, an integer, a boolean, an array nor a table" },
		{ "a = 1979-05-27", "line 1: a value is neither a string, an integer, a boolean, an array nor a table" },
		{ "a = \"x", "line 1: a string does not end" },
		{ "a = \"x\ny\"", "line 1: a string does not end" },
		{ "a = \"\\q\"", "line 1: unknown escape in a string" },
		{ "a = \"\\ud800\"", "line 1: an escape is no character" },
		{ "a = \"\\u12\"", "line 1: an escape needs more hexadecimal digits" },
		{ "a = \"\x01\"", "line 1: a control character in a string" },
		{ "a = \"\xff\"", "line 1: a string is not UTF-8" },
		{ "a = 1\na = 2", "line 2: a key is given twice" },
		{ "a = 1\na.b = 2", "line 2: a key is given twice" },
		{ "[a]\n[a]", "line 2: a table is given twice" },
		{ "[[a]]", "line 1: arrays of tables are not supported" },
		{ "[a", "line 1: ']' is missing after the name of a table" },
		{ "a = [1 2]", "line 1: an array needs ',' or ']'" },
		{ "a = {x=1", "line 1: an inline table needs ',' or '}'" },
		{ "a=[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "line 1: too many levels" },
		{ "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1", "line 1: too many levels" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct val v;
		CHECK_ROW(i, toml_decode(&a, str_of(t[i].in), &v, &err) < 0);
		CHECK_STR_ROW(i, err_str(&err), t[i].message);
	}
}
