#include "base/buf.h"
#include "base/test.h"
#include "cni/result.h"
#include "codec/json.h"

TEST(result_versions)
{
	static const struct {
		const char *a, *b;
		int order;
	} rows[] = {
		{ "0.4.0", "1.0.0", -1 }, { "1.1.0", "1.0.0", 1 }, { "", "0.1.0", 0 }, { "0.10.0", "0.9.0", 1 },
		{ "1", "1.0.0", 0 },
		{ "x", "0.1.0", -1 }, { "1.0.0.0", "0.1.0", -1 }, { "1..0", "0.1.0", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_ROW(i, cni_version_cmp(str_of(rows[i].a), str_of(rows[i].b)) == rows[i].order);
	CHECK(cni_version_known(STR("0.3.1")) && cni_version_known(STR("")) && !cni_version_known(STR("1.2.0")));
}

TEST(result_conversion)
{
	static const struct {
		const char *from, *to, *in, *out;  /* out NULL: refused */
	} rows[] = {
		{ "", "1.0.0", "{'cniVersion':'0.4.0','ips':[{'version':'4','address':'10.0.0.2/24','gateway':'10.0.0.1','interface':2}],'dns':{}}",
		  "{'cniVersion':'1.0.0','ips':[{'address':'10.0.0.2/24','gateway':'10.0.0.1','interface':2}]}" },
		{ "1.0.0", "0.3.1", "{'ips':[{'address':'10.0.0.2/24'},{'address':'fd00::2/64'}],'interfaces':[{'name':'eth0'}]}",
		  "{'ips':[{'address':'10.0.0.2/24','version':'4'},{'address':'fd00::2/64','version':'6'}],'interfaces':[{'name':'eth0'}],'cniVersion':'0.3.1'}" },
		{ "1.0.0", "0.2.0", "{'ips':[{'address':'10.0.0.2/24','gateway':'10.0.0.1'},{'address':'10.0.0.3/24'}],'routes':[{'dst':'0.0.0.0/0'},{'dst':'::/0'}]}",
		  "{'cniVersion':'0.2.0','ip4':{'ip':'10.0.0.2/24','gateway':'10.0.0.1','routes':[{'dst':'0.0.0.0/0'}]}}" },
		{ "", "1.1.0", "{'ip4':{'ip':'10.0.0.2/24','gateway':'10.0.0.1','routes':[{'dst':'0.0.0.0/0','gw':'10.0.0.1'}]}}",
		  "{'cniVersion':'1.1.0','ips':[{'address':'10.0.0.2/24','gateway':'10.0.0.1'}],'routes':[{'dst':'0.0.0.0/0','gw':'10.0.0.1'}]}" },
		{ "1.0.0", "1.1.0", "{'ips':[]}", "{'ips':[],'cniVersion':'1.1.0'}" },
		{ "1.0.0", "0.1.0", "{'interfaces':[]}", NULL },
		{ "2.0.0", "1.0.0", "{}", NULL },
		{ "1.0.0", "2.0.0", "{}", NULL },
		{ "1.0.0", "1.0.0", "[]", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf in = BUF_INIT(4096), out = BUF_INIT(4096);
		struct val v, converted;
		for (const char *p = rows[i].in; *p; p++)
			buf_addc(&in, *p == '\'' ? '"' : *p);
		CHECK_ROW(i, json_decode(&a, buf_str(&in), &(struct json_decode_options){ 0 }, &v, NULL) == 0);
		int r = result_convert(&a, v, str_of(rows[i].from), str_of(rows[i].to), &converted, NULL);
		CHECK_ROW(i, (r == 0) == (rows[i].out != NULL));
		if (r < 0)
			continue;
		CHECK_ROW(i, json_encode(&out, converted, &(struct json_encode_options){ .plain = true }, NULL) == 0);
		for (char *p = out.p; *p; p++)
			*p = *p == '"' ? '\'' : *p;
		CHECK_STR_ROW(i, buf_str(&out), rows[i].out);
	}
}

TEST(result_names)
{
	static const struct {
		const char *name;
		bool id, link;
	} rows[] = {
		{ "a", true, true }, { "a-b_c.d", true, true }, { "", false, false }, { "-a", false, true },
		{ ".", false, false }, { "..", false, false },
		{ "a/b", false, false }, { "a b", false, false }, { "a:b", false, false },
		{ "0123456789abcdef", true, false }, { "0123456789abcde", true, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_ROW(i, (cni_check_id(str_of(rows[i].name), NULL) == 0) == rows[i].id);
		CHECK_ROW(i, (cni_check_network(str_of(rows[i].name), NULL) == 0) == rows[i].id);
		CHECK_ROW(i, (cni_check_ifname(str_of(rows[i].name), NULL) == 0) == rows[i].link);
	}
}
