#include "machinery/field_set.h"

#include "codec/atoms.h"
#include "codec/schema.h"
#include "machinery/testing.h"

static struct field_set parse(struct arena *a, size_t row, const char *quoted)
{
	struct field_set s;
	struct err err = ERR_INIT;
	if (field_set_parse(a, testing_json(a, quoted), &s, &err) < 0)
		fail_msg("row %zu: %s: %s", row, quoted, err.msg);
	return s;
}

static str text(struct arena *a, struct field_set s)
{
	return testing_swap(a, val_as_str(field_set_val(a, s)), '"', '\'');
}

static void add_path(const struct path_element *path, size_t n, void *arg)
{
	for (size_t i = 0; i < n; i++)
		path_element_print(arg, &path[i]);
	buf_addc(arg, '\n');
}

static str paths(struct arena *a, struct field_set s)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	field_set_each(s, add_path, &b);
	return testing_swap(a, buf_str(&b), '"', '\'');
}

TEST(field_set_operations)
{
	static const struct {
		const char *x, *y, *encoded, *both, *common, *difference, *recursive, *leaves, *paths;
	} t[] = {
		{ "{}", "{}", "{}", "{}", "{}", "{}", "{}", "{}", "" },
		{ "null", "{'f:a':{}}", "{}", "{'f:a':{}}", "{}", "{}", "{}", "{}", "" },
		{ "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{}", "{}", "{'f:a':{}}",
		  ".a\n" },
		{ "{'f:a':{}}", "{'f:b':{}}", "{'f:a':{}}", "{'f:a':{},'f:b':{}}", "{}", "{'f:a':{}}", "{'f:a':{}}",
		  "{'f:a':{}}", ".a\n" },
		{ "{'f:a':{'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}", "{}",
		  "{'f:a':{'f:b':{}}}", "{}", "{'f:a':{'f:b':{}}}", ".a.b\n" },
		{ "{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'.':{},'f:b':{}}}", "{}", "{'f:a':{}}",
		  "{'f:a':{}}", "{'f:a':{}}", ".a\n" },
		{ "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}",
		  "{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{}", "{'f:a':{'f:b':{}}}", ".a\n.a.b\n" },
		{ "{'f:a':{'.':{},'f:b':{},'f:c':{}}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{},'f:c':{}}}",
		  "{'f:a':{'.':{},'f:b':{},'f:c':{}}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:c':{}}}",
		  "{'f:a':{'.':{},'f:c':{}}}", "{'f:a':{'f:b':{},'f:c':{}}}", ".a\n.a.b\n.a.c\n" },
		{ "{'f:a':{'f:b':{'f:c':{},'f:d':{}}},'f:e':{}}", "{'f:a':{'f:b':{}}}",
		  "{'f:a':{'f:b':{'f:c':{},'f:d':{}}},'f:e':{}}",
		  "{'f:a':{'f:b':{'.':{},'f:c':{},'f:d':{}}},'f:e':{}}", "{}",
		  "{'f:a':{'f:b':{'f:c':{},'f:d':{}}},'f:e':{}}", "{'f:e':{}}",
		  "{'f:a':{'f:b':{'f:c':{},'f:d':{}}},'f:e':{}}", ".e\n.a.b.c\n.a.b.d\n" },
		{ "{'f:a':{'f:b':{'f:c':{}}}}", "{'f:a':{'f:b':{'f:c':{}}}}", "{'f:a':{'f:b':{'f:c':{}}}}",
		  "{'f:a':{'f:b':{'f:c':{}}}}", "{'f:a':{'f:b':{'f:c':{}}}}", "{}", "{}",
		  "{'f:a':{'f:b':{'f:c':{}}}}", ".a.b.c\n" },
		{ "{'f:b':{},'f:a':{}}", "{'f:c':{},'f:a':{}}", "{'f:a':{},'f:b':{}}", "{'f:a':{},'f:b':{},'f:c':{}}",
		  "{'f:a':{}}", "{'f:b':{}}", "{'f:b':{}}", "{'f:a':{},'f:b':{}}", ".a\n.b\n" },
		{ "{'f:b':{'f:z':{}},'f:a':{},'f:b':{'f:y':{}}}", "{'f:b':{}}", "{'f:a':{},'f:b':{'f:y':{}}}",
		  "{'f:a':{},'f:b':{'.':{},'f:y':{}}}", "{}", "{'f:a':{},'f:b':{'f:y':{}}}", "{'f:a':{}}",
		  "{'f:a':{},'f:b':{'f:y':{}}}", ".a\n.b.y\n" },
		{ "{'f:a':{},'f:a':{'f:b':{}}}", "{}", "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}", "{}",
		  "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'f:b':{}}}", ".a\n.a.b\n" },
		{ "{'v:1':{},'v:\\'1\\'':{},'v:true':{},'v:null':{},'v:[1]':{},'v:{\\'a\\':1}':{}}", "{'v:1.0':{}}",
		  "{'v:1':{},'v:\\'1\\'':{},'v:true':{},'v:[1]':{},'v:{\\'a\\':1}':{},'v:null':{}}",
		  "{'v:1':{},'v:\\'1\\'':{},'v:true':{},'v:[1]':{},'v:{\\'a\\':1}':{},'v:null':{}}", "{'v:1':{}}",
		  "{'v:\\'1\\'':{},'v:true':{},'v:[1]':{},'v:{\\'a\\':1}':{},'v:null':{}}",
		  "{'v:\\'1\\'':{},'v:true':{},'v:[1]':{},'v:{\\'a\\':1}':{},'v:null':{}}",
		  "{'v:1':{},'v:\\'1\\'':{},'v:true':{},'v:[1]':{},'v:{\\'a\\':1}':{},'v:null':{}}",
		  "[=1]\n[='1']\n[=true]\n[=[1]]\n[=a=1]\n[=null]\n" },
		{ "{'v:10':{},'v:9':{},'v:-1':{},'v:1.5':{}}", "{'v:9':{}}",
		  "{'v:-1':{},'v:1.5':{},'v:9':{},'v:10':{}}", "{'v:-1':{},'v:1.5':{},'v:9':{},'v:10':{}}",
		  "{'v:9':{}}", "{'v:-1':{},'v:1.5':{},'v:10':{}}", "{'v:-1':{},'v:1.5':{},'v:10':{}}",
		  "{'v:-1':{},'v:1.5':{},'v:9':{},'v:10':{}}", "[=-1]\n[=1.5]\n[=9]\n[=10]\n" },
		{ "{'v:1000000':{},'v:1e21':{},'v:1e-7':{},'v:123456789012345678':{}}", "{}",
		  "{'v:1e-07':{},'v:1000000':{},'v:123456789012345680':{},'v:1e+21':{}}",
		  "{'v:1e-07':{},'v:1000000':{},'v:123456789012345680':{},'v:1e+21':{}}", "{}",
		  "{'v:1e-07':{},'v:1000000':{},'v:123456789012345680':{},'v:1e+21':{}}",
		  "{'v:1e-07':{},'v:1000000':{},'v:123456789012345680':{},'v:1e+21':{}}",
		  "{'v:1e-07':{},'v:1000000':{},'v:123456789012345680':{},'v:1e+21':{}}",
		  "[=1e-07]\n[=1e+06]\n[=1.2345678901234568e+17]\n[=1e+21]\n" },
		{ "{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{}}}", "{'k:{\\'name\\':\\'a\\'}':{}}",
		  "{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{}}}",
		  "{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:image':{}}}", "{'k:{\\'name\\':\\'a\\'}':{}}",
		  "{'k:{\\'name\\':\\'a\\'}':{'f:image':{}}}", "{}", "{'k:{\\'name\\':\\'a\\'}':{'f:image':{}}}",
		  "[name='a']\n[name='a'].image\n" },
		{ "{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{}}",
		  "{'k:{\\'protocol\\':\\'TCP\\',\\'port\\':80.0}':{}}",
		  "{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{}}",
		  "{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{}}",
		  "{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{}}", "{}", "{}",
		  "{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{}}", "[port=80,protocol='TCP']\n" },
		{ "{'k:{\\'b\\':1,\\'a\\':2}':{},'k:{\\'a\\':1}':{},'k:{}':{},'k:{\\'a\\':\\'1\\'}':{}}",
		  "{'k:{\\'a\\':1}':{}}",
		  "{'k:{}':{},'k:{\\'a\\':1}':{},'k:{\\'a\\':2,\\'b\\':1}':{},'k:{\\'a\\':\\'1\\'}':{}}",
		  "{'k:{}':{},'k:{\\'a\\':1}':{},'k:{\\'a\\':2,\\'b\\':1}':{},'k:{\\'a\\':\\'1\\'}':{}}",
		  "{'k:{\\'a\\':1}':{}}", "{'k:{}':{},'k:{\\'a\\':2,\\'b\\':1}':{},'k:{\\'a\\':\\'1\\'}':{}}",
		  "{'k:{}':{},'k:{\\'a\\':2,\\'b\\':1}':{},'k:{\\'a\\':\\'1\\'}':{}}",
		  "{'k:{}':{},'k:{\\'a\\':1}':{},'k:{\\'a\\':2,\\'b\\':1}':{},'k:{\\'a\\':\\'1\\'}':{}}",
		  "[]\n[a=1]\n[a=2,b=1]\n[a='1']\n" },
		{ "{'i:2':{},'i:10':{},'i:-1':{},'f:z':{},'v:1':{},'k:{\\'a\\':1}':{}}", "{'i:2':{'f:a':{}}}",
		  "{'f:z':{},'k:{\\'a\\':1}':{},'v:1':{},'i:-1':{},'i:2':{},'i:10':{}}",
		  "{'f:z':{},'k:{\\'a\\':1}':{},'v:1':{},'i:-1':{},'i:2':{'.':{},'f:a':{}},'i:10':{}}", "{}",
		  "{'f:z':{},'k:{\\'a\\':1}':{},'v:1':{},'i:-1':{},'i:2':{},'i:10':{}}",
		  "{'f:z':{},'k:{\\'a\\':1}':{},'v:1':{},'i:-1':{},'i:2':{},'i:10':{}}",
		  "{'f:z':{},'k:{\\'a\\':1}':{},'v:1':{},'i:-1':{},'i:2':{},'i:10':{}}",
		  ".z\n[a=1]\n[=1]\n[-1]\n[2]\n[10]\n" },
		{ "{'x:unknown':{'f:a':{}},'f:a':{'y:z':{}}}", "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}",
		  "{}", "{}", "{'f:a':{}}", ".a\n" },
		{ "{'f:a':{'.':[1,{'b':'}'}],'f:b':null}}", "{'f:a':{'.':true}}", "{'f:a':{'.':{},'f:b':{}}}",
		  "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{}", "{'f:a':{'f:b':{}}}",
		  ".a\n.a.b\n" },
		{ "{ 'f:a' : { 'f:b' :\t{ } } ,\n'f:c':{}}", "{'f:c':{}}", "{'f:a':{'f:b':{}},'f:c':{}}",
		  "{'f:a':{'f:b':{}},'f:c':{}}", "{'f:c':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'f:b':{}}}",
		  "{'f:a':{'f:b':{}},'f:c':{}}", ".c\n.a.b\n" },
		{ "{'f:kubernetes.io/name':{},'f:':{},'f:.':{},'f:f:a':{}}", "{'f:':{}}",
		  "{'f:':{},'f:.':{},'f:f:a':{},'f:kubernetes.io/name':{}}",
		  "{'f:':{},'f:.':{},'f:f:a':{},'f:kubernetes.io/name':{}}", "{'f:':{}}",
		  "{'f:.':{},'f:f:a':{},'f:kubernetes.io/name':{}}",
		  "{'f:.':{},'f:f:a':{},'f:kubernetes.io/name':{}}",
		  "{'f:':{},'f:.':{},'f:f:a':{},'f:kubernetes.io/name':{}}", ".\n..\n.f:a\n.kubernetes.io/name\n" },
		{ "{'f:<&>':{},'v:\\'<&>\\'':{},'k:{\\'<\\':\\'>\\'}':{}}", "{}",
		  "{'f:<&>':{},'k:{\\'<\\':\\'\\\\u003e\\'}':{},'v:\\'\\\\u003c\\\\u0026\\\\u003e\\'':{}}",
		  "{'f:<&>':{},'k:{\\'<\\':\\'\\\\u003e\\'}':{},'v:\\'\\\\u003c\\\\u0026\\\\u003e\\'':{}}", "{}",
		  "{'f:<&>':{},'k:{\\'<\\':\\'\\\\u003e\\'}':{},'v:\\'\\\\u003c\\\\u0026\\\\u003e\\'':{}}",
		  "{'f:<&>':{},'k:{\\'<\\':\\'\\\\u003e\\'}':{},'v:\\'\\\\u003c\\\\u0026\\\\u003e\\'':{}}",
		  "{'f:<&>':{},'k:{\\'<\\':\\'\\\\u003e\\'}':{},'v:\\'\\\\u003c\\\\u0026\\\\u003e\\'':{}}",
		  ".<&>\n[<='>']\n[='<&>']\n" },
		{ "{'f:q\\'q':{},'f:b\\\\s':{},'f:t\\tn':{},'f:\\u0001':{},'f:\\u00e9':{},'f:\\ud83d\\ude00':{}}",
		  "{'f:é':{}}", "{'f:\\u0001':{},'f:b\\\\s':{},'f:q\\'q':{},'f:t\\tn':{},'f:é':{},'f:😀':{}}",
		  "{'f:\\u0001':{},'f:b\\\\s':{},'f:q\\'q':{},'f:t\\tn':{},'f:é':{},'f:😀':{}}", "{'f:é':{}}",
		  "{'f:\\u0001':{},'f:b\\\\s':{},'f:q\\'q':{},'f:t\\tn':{},'f:😀':{}}",
		  "{'f:\\u0001':{},'f:b\\\\s':{},'f:q\\'q':{},'f:t\\tn':{},'f:😀':{}}",
		  "{'f:\\u0001':{},'f:b\\\\s':{},'f:q\\'q':{},'f:t\\tn':{},'f:é':{},'f:😀':{}}",
		  ".\001\n.b\\s\n.q'q\n.t\tn\n.é\n.😀\n" },
		{ "{'f:metadata':{'f:labels':{'.':{},'f:app':{}},'f:finalizers':{'v:\\'a\\'':{}}},'f:spec':{"
		  "'f:replicas':{},'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:image':{},'f:name':{}}}}}}}",
		  "{'f:metadata':{'f:labels':{}},'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'a\\'}':{'f:image':{}}}}}}}",
		  "{'f:metadata':{'f:finalizers':{'v:\\'a\\'':{}},'f:labels':{'.':{},'f:app':{}}},'f:spec':{"
		  "'f:replicas':{},'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:image':{},'f:name':{}}}}}}}",
		  "{'f:metadata':{'f:finalizers':{'v:\\'a\\'':{}},'f:labels':{'.':{},'f:app':{}}},'f:spec':{"
		  "'f:replicas':{},'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},"
		  "'f:image':{},'f:name':{}}}}}}}",
		  "{'f:metadata':{'f:labels':{}},'f:spec':{'f:template':{'f:spec':{'f:containers':{'k:{"
		  "\\'name\\':\\'a\\'}':{'f:image':{}}}}}}}",
		  "{'f:metadata':{'f:finalizers':{'v:\\'a\\'':{}},'f:labels':{'f:app':{}}},'f:spec':{'f:replicas':{},"
		  "'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}}}}}}",
		  "{'f:metadata':{'f:finalizers':{'v:\\'a\\'':{}}},'f:spec':{'f:replicas':{},'f:template':{'f:spec':{"
		  "'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}}}}}}",
		  "{'f:metadata':{'f:finalizers':{'v:\\'a\\'':{}},'f:labels':{'f:app':{}}},'f:spec':{'f:replicas':{},"
		  "'f:template':{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'f:image':{},'f:name':{}}}}}}}",
		  ".metadata.labels\n.metadata.finalizers[='a']\n.metadata.labels.app\n.spec.replicas\n.spec.template"
		  ".spec.containers[name='a']\n.spec.template.spec.containers[name='a'].image\n.spec.template.spec.co"
		  "ntainers[name='a'].name\n" },
		{ "{'f:status':{'f:phase':{},'f:conditions':{'k:{\\'type\\':\\'Ready\\'}':{'f:status':{}}}},"
		  "'f:spec':{'f:x':{}}}", "{'f:status':{}}",
		  "{'f:spec':{'f:x':{}},'f:status':{'f:conditions':{'k:{\\'type\\':\\'Ready\\'}':{'f:status':{}}},"
		  "'f:phase':{}}}",
		  "{'f:spec':{'f:x':{}},'f:status':{'.':{},'f:conditions':{'k:{\\'type\\':\\'Ready\\'}':{'f:status':{"
		  "}}},'f:phase':{}}}", "{}",
		  "{'f:spec':{'f:x':{}},'f:status':{'f:conditions':{'k:{\\'type\\':\\'Ready\\'}':{'f:status':{}}},"
		  "'f:phase':{}}}", "{'f:spec':{'f:x':{}}}",
		  "{'f:spec':{'f:x':{}},'f:status':{'f:conditions':{'k:{\\'type\\':\\'Ready\\'}':{'f:status':{}}},"
		  "'f:phase':{}}}", ".spec.x\n.status.phase\n.status.conditions[type='Ready'].status\n" },
		{ "{'f:a':{'f:a':{'f:a':{'f:a':{}}}}}", "{'f:a':{'f:a':{'.':{}}}}",
		  "{'f:a':{'f:a':{'f:a':{'f:a':{}}}}}", "{'f:a':{'f:a':{'.':{},'f:a':{'f:a':{}}}}}", "{}",
		  "{'f:a':{'f:a':{'f:a':{'f:a':{}}}}}", "{}", "{'f:a':{'f:a':{'f:a':{'f:a':{}}}}}", ".a.a.a.a\n" },
		{ "{'f:a':{},'f:c':{},'f:e':{},'f:g':{}}", "{'f:b':{},'f:c':{},'f:d':{},'f:g':{},'f:h':{}}",
		  "{'f:a':{},'f:c':{},'f:e':{},'f:g':{}}",
		  "{'f:a':{},'f:b':{},'f:c':{},'f:d':{},'f:e':{},'f:g':{},'f:h':{}}", "{'f:c':{},'f:g':{}}",
		  "{'f:a':{},'f:e':{}}", "{'f:a':{},'f:e':{}}", "{'f:a':{},'f:c':{},'f:e':{},'f:g':{}}",
		  ".a\n.c\n.e\n.g\n" },
		{ "{'f:l':{'v:\\'a\\'':{},'v:\\'b\\'':{},'v:\\'c\\'':{}}}", "{'f:l':{'v:\\'b\\'':{}}}",
		  "{'f:l':{'v:\\'a\\'':{},'v:\\'b\\'':{},'v:\\'c\\'':{}}}",
		  "{'f:l':{'v:\\'a\\'':{},'v:\\'b\\'':{},'v:\\'c\\'':{}}}", "{'f:l':{'v:\\'b\\'':{}}}",
		  "{'f:l':{'v:\\'a\\'':{},'v:\\'c\\'':{}}}", "{'f:l':{'v:\\'a\\'':{},'v:\\'c\\'':{}}}",
		  "{'f:l':{'v:\\'a\\'':{},'v:\\'b\\'':{},'v:\\'c\\'':{}}}", ".l[='a']\n.l[='b']\n.l[='c']\n" },
		{ "{'f:a':{'.':{},'f:b':{'.':{},'f:c':{}}}}", "{'f:a':{'f:b':{}}}",
		  "{'f:a':{'.':{},'f:b':{'.':{},'f:c':{}}}}", "{'f:a':{'.':{},'f:b':{'.':{},'f:c':{}}}}",
		  "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{'f:c':{}}}}", "{'f:a':{}}",
		  "{'f:a':{'f:b':{'f:c':{}}}}", ".a\n.a.b\n.a.b.c\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct field_set x = parse(&a, i, t[i].x), y = parse(&a, i, t[i].y), again;
		CHECK_STR_ROW(i, text(&a, x), t[i].encoded);
		CHECK_STR_ROW(i, text(&a, field_set_union(&a, x, y)), t[i].both);
		CHECK_STR_ROW(i, text(&a, field_set_union_all(&a, (struct field_set[]){ y, x, y }, 3)), t[i].both);
		CHECK_STR_ROW(i, text(&a, field_set_intersection(&a, x, y)), t[i].common);
		CHECK_STR_ROW(i, text(&a, field_set_difference(&a, x, y)), t[i].difference);
		CHECK_STR_ROW(i, text(&a, field_set_recursive_difference(&a, x, y)), t[i].recursive);
		CHECK_STR_ROW(i, text(&a, field_set_leaves(&a, x)), t[i].leaves);
		CHECK_STR_ROW(i, paths(&a, x), t[i].paths);
		again = parse(&a, i, t[i].encoded);
		CHECK_ROW(i, field_set_equal(x, again));
		CHECK_ROW(i, field_set_equal(x, field_set_union(&a, x, x)));
		CHECK_ROW(i, field_set_empty(field_set_difference(&a, x, again)));
		bool none = field_set_empty(field_set_difference(&a, x, y));
		CHECK_ROW(i, field_set_equal(x, y) == (none && field_set_size(x) == field_set_size(y)));
	}
}

TEST(field_set_parse_errors)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "{", "! fieldsV1: expected a string" },
		{ "[]", "! fieldsV1: expected '{'" },
		{ "{'f:a':1}", "! fieldsV1: expected '{'" },
		{ "{'f:a':{}", "! fieldsV1: expected '}'" },
		{ "{'f:a':{}}x", "! fieldsV1: something follows the object" },
		{ "{'f:a'}", "! fieldsV1: expected ':'" },
		{ "{'f:a':{},}", "! fieldsV1: expected a string" },
		{ "{'f:a", "! fieldsV1: unterminated string" },
		{ "{'f:a\\", "! fieldsV1: unterminated string" },
		{ "{'f:\n':{}}", "! fieldsV1: control character in a string" },
		{ "{'fa':{}}", "! fieldsV1: not a path element: 'fa'" },
		{ "{'f':{}}", "! fieldsV1: not a path element: 'f'" },
		{ "{'i:x':{}}", "! fieldsV1: not an index: 'x'" },
		{ "{'i:':{}}", "! fieldsV1: not an index: ''" },
		{ "{'k:1':{}}", "! fieldsV1: not a key: '1'" },
		{ "{'v:':{}}", "! unexpected end of JSON input" },
		{ "{'v:1 2':{}}", "! invalid character '2' after top-level value" },
		{ "{'.':}", "! fieldsV1: expected a value" },
		{ "nul", "! fieldsV1: expected '{'" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct err err = ERR_INIT;
		struct field_set s;
		CHECK_ROW(i, field_set_parse(&a, testing_json(&a, t[i].in), &s, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, testing_swap(&a, testing_error(&a, &err), '"', '\''), t[i].want);
	}
}

/* The text of a set comes from clients: neither its depth nor that of a value inside of it may exhaust the stack. */
TEST(field_set_parse_depth)
{
	static const struct {
		unsigned depth;
		const char *open, *close;
		bool ok;
	} t[] = {
		{ 199, "{\"f:a\":", "}", true },      { 200, "{\"f:a\":", "}", false },
		{ 100000, "{\"f:a\":", "}", false },  { 150, "[", "]", true },
		{ 250, "[", "]", false },             { 100000, "[", "]", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 21);
		bool value = t[i].open[0] == '[';
		struct field_set s;
		buf_add(&b, value ? STR("{\"v:") : STR(""));
		for (unsigned d = 0; d < t[i].depth; d++)
			buf_add(&b, str_of(t[i].open));
		buf_add(&b, value ? STR("") : STR("{}"));
		for (unsigned d = 0; d < t[i].depth; d++)
			buf_add(&b, str_of(t[i].close));
		buf_add(&b, value ? STR("\":{}}") : STR(""));
		CHECK_ROW(i, (field_set_parse(&a, buf_str(&b), &s, NULL) == 0) == t[i].ok);
	}
}

TEST(field_set_matching)
{
	static const struct {
		const char *in, *patterns[3], *want;
	} t[] = {
		{ "{'f:a':{},'f:b':{}}", { "a" }, "{'f:a':{}}" },
		{ "{'f:a':{'f:x':{},'f:y':{}},'f:b':{}}", { "a.x" }, "{'f:a':{'f:x':{}}}" },
		{ "{'f:a':{'.':{},'f:x':{'f:y':{}}}}", { "a.x.y.z" },
		  "{'f:a':{'.':{},'f:x':{'f:y':{}}}}" },
		{ "{'f:a':{'f:x':{'f:y':{}}}}", { "a.y" }, "{}" },
		{ "{'f:s':{'f:c':{'k:{\\'n\\':1}':{'.':{},'f:r':{'f:l':{}},'f:i':{}}}}}", { "s.c.*.r" },
		  "{'f:s':{'f:c':{'k:{\\'n\\':1}':{'.':{},'f:r':{'f:l':{}}}}}}" },
		{ "{'f:s':{'f:c':{'v:1':{}},'f:d':{}}}", { "s.c.*", "s.d" }, "{'f:s':{'f:c':{'v:1':{}},'f:d':{}}}" },
		{ "{'f:s':{'f:c':{}}}", { "t" }, "{}" },
		{ "{'f:s':{'f:c':{}},'f:t':{}}", { "*.c" }, "{'f:s':{'f:c':{}},'f:t':{}}" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, text(&a, field_set_matching(&a, parse(&a, i, t[i].in), t[i].patterns)), t[i].want);
	}
}

TEST(field_set_of_paths)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct field_set s = field_set_of(&a, (const char *const[]){ "status", "metadata.labels", "metadata", NULL });
	struct path_element labels[] = { path_field(A_metadata), path_field(A_labels) };
	struct path_element none[] = { path_field(A_spec) };
	struct path_element other[] = { path_field(A_spec), path_field(atom_make(&a, STR("x/y"))) };

	CHECK_STR(text(&a, s), "{'f:metadata':{'.':{},'f:labels':{}},'f:status':{}}");
	CHECK(field_set_has(s, labels, 2));
	CHECK(field_set_has(s, labels, 1));
	CHECK(!field_set_has(s, labels + 1, 1));
	CHECK(!field_set_has(s, labels, 0));
	CHECK(!field_set_has(s, none, 1));
	CHECK_INT(field_set_size(s), 3);
	s = field_set_with(&a, s, other, 2);
	CHECK_STR(text(&a, s), "{'f:metadata':{'.':{},'f:labels':{}},'f:spec':{'f:x/y':{}},'f:status':{}}");
	CHECK_STR(text(&a, field_set_of(&a, NULL)), "{}");
}

/* path_name_cmp compares known names by number, which must be the order of their texts. */
TEST(field_set_atoms_are_sorted)
{
	for (size_t i = 0; i < schema_n_types; i++)
		for (uint16_t j = 1; j < schema_types[i]->n_fields; j++) {
			const struct field *f = &schema_types[i]->fields[j];
			int order = str_cmp(atom_str(f[-1].name), atom_str(f->name));
			CHECK_ROW(i, (f[-1].name < f->name) == (order < 0));
		}
}

/* What does not change is shared, so that large sets are not copied for small changes. */
TEST(field_set_operations_share)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct field_set x = parse(&a, 0, "{'f:a':{'f:b':{},'f:c':{}},'f:d':{'f:e':{}}}");
	struct field_set y = parse(&a, 1, "{'f:d':{'f:e':{}}}"), z = parse(&a, 2, "{'f:z':{}}");

	CHECK(field_set_union(&a, x, y).nodes == x.nodes);
	CHECK(field_set_difference(&a, x, z).nodes == x.nodes);
	CHECK(field_set_intersection(&a, x, x).nodes == x.nodes);
	CHECK(field_set_difference(&a, x, y).nodes[0].children == x.nodes[0].children);
}
