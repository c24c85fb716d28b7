#include "machinery/selector.h"

#include "machinery/testing.h"

TEST(selector_parse)
{
	/* want: the canonical text, or the error after "! ". */
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "", "" },
		{ " a ", "a" },
		{ "! a", "!a" },
		{ "a=", "a=" },
		{ "a==x", "a==x" },
		{ "b!=y,a=x", "a=x,b!=y" },
		{ "b=1,a=2,b=0,a=1", "a=2,a=1,b=1,b=0" },
		{ "a in (y,x,y)", "a in (x,y)" },
		{ "a notin ()", "a notin ()" },
		{ "a in (x,,y)", "a in (,x,y)" },
		{ "a in (,)", "a in ()" },
		{ "in in (in,notin)", "in in (in,notin)" },
		{ "k8s.io/x>1,a<3", "a<3,k8s.io/x>1" },
		{ "a\t=\n1", "a=1" },
		{ "a=notin,b=in", "a=notin,b=in" },
		{ "a b", "! unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt" },
		{ "a!b", "! unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt" },
		{ "!a=b", "! found '=', expected: ',' or 'end of string'" },
		{ "a,", "! found '', expected: identifier after ','" },
		{ "a,,b", "! found ',', expected: identifier after ','" },
		{ ",a", "! found ',', expected: !, identifier, or 'end of string'" },
		{ "!", "! unable to parse requirement: found '', expected: identifier" },
		{ "!,", "! unable to parse requirement: found ',', expected: identifier" },
		{ "a=(b)", "! unable to parse requirement: found '(', expected: identifier" },
		{ "a===x", "! unable to parse requirement: found '=', expected: identifier" },
		{ "a=1=2", "! found '=', expected: ',' or 'end of string'" },
		{ "a in x", "! unable to parse requirement: found 'x' expected: '('" },
		{ "a in (", "! unable to parse requirement: found '', expected: ',', ')' or identifier" },
		{ "a in (x", "! unable to parse requirement: found '', expected: ',' or ')'" },
		{ "a in (,x", "! unable to parse requirement: found '', expected: ',' or ')'" },
		{ "a in (,=", "! unable to parse requirement: found '=', expected: ',', or identifier" },
		{ "a>x", "! unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an "
			 "integer" },
		{ "/a=b", "! unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty" },
		{ "a=%", "! unable to parse requirement: values[0][a]: Invalid value: \"%\": a valid label must be an empty string or "
			 "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
			 "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
			 "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct selector s;
		struct err err = ERR_INIT;
		int r = selector_parse(&a, str_of(t[i].text), &s, &err);
		str got = r < 0 ? testing_error(&a, &err) : selector_text(&a, &s);
		CHECK_STR_ROW(i, got, t[i].want);
		CHECK_ROW(i, r == 0 || r == -ERR_BAD_REQUEST);
	}
	arena_done(&a);
}

TEST(selector_matches)
{
	static const struct {
		const char *text, *labels;
		bool want;
	} t[] = {
		{ "", "{}", true },
		{ "a", "{'a':''}", true },
		{ "a", "{}", false },
		{ "!a", "{}", true },
		{ "!a", "{'a':'x'}", false },
		{ "a=x", "{'a':'x'}", true },
		{ "a=x", "{'a':'y'}", false },
		{ "a=", "{}", false },
		{ "a!=x", "{}", true },
		{ "a!=x", "{'a':'x'}", false },
		{ "a in (x,y)", "{'a':'y'}", true },
		{ "a in (x,y)", "{}", false },
		{ "a notin (x,y)", "{'a':'y'}", false },
		{ "a notin (x,y)", "{}", true },
		{ "a>4", "{'a':'5'}", true },
		{ "a>5", "{'a':'5'}", false },
		{ "a<5", "{'a':'-6'}", true },
		{ "a<5", "{'a':'x'}", false },
		{ "a<5", "{}", false },
		{ "a>1,a<9", "{'a':'5'}", true },
		{ "a=x,never-a-field-name=y", "{'a':'x','never-a-field-name':'y'}", true },
		{ "name=x", "{'name':'x'}", true },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct selector s;
		CHECK_ROW(i, selector_parse(&a, str_of(t[i].text), &s, NULL) == 0);
		CHECK_ROW(i, selector_matches(&s, testing_tree(&a, t[i].labels)) == t[i].want);
	}
	CHECK(!selector_matches(&SELECTOR_NOTHING, VAL_EMPTY_OBJECT));
	CHECK(selector_matches(&SELECTOR_EVERYTHING, VAL_EMPTY));
	arena_done(&a);
}

TEST(selector_of_object)
{
	static const struct {
		const char *json, *want, *display;
	} t[] = {
		{ "{}", "", "<none>" },
		{ "{'matchLabels':{'b':'y','a':'x'}}", "a=x,b=y", "a=x,b=y" },
		{ "{'matchLabels':{'c':'z'},'matchExpressions':[{'key':'a','operator':'NotIn','values':['y','x']},"
		  "{'key':'d','operator':'Exists'},{'key':'b','operator':'DoesNotExist'}]}",
		  "a notin (x,y),!b,c=z,d", "a notin (x,y),!b,c=z,d" },
		{ "{'matchExpressions':[{'key':'a','operator':'Gt','values':['1']}]}", "! \"Gt\" is not a valid label selector operator",
		  "<error>" },
		{ "{'matchExpressions':[{'key':'a','operator':'In','values':[]}]}",
		  "! values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty", "<error>" },
		{ "{'matchExpressions':[{'key':'/a','operator':'Exists','values':['x']}]}",
		  "! [key: Invalid value: \"/a\": prefix part must be non-empty, values: Invalid value: [\"x\"]: values set must be empty "
		  "for exists and does not exist]",
		  "<error>" },
	};
	struct arena a = ARENA_INIT;
	struct selector s;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct val v = testing_tree(&a, t[i].json);
		int r = selector_of_object(&a, v, &s, &err);
		CHECK_STR_ROW(i, r < 0 ? testing_error(&a, &err) : selector_text(&a, &s), t[i].want);
		CHECK_STR_ROW(i, selector_display(&a, v), t[i].display);
	}
	CHECK_INT(selector_of_object(&a, VAL_EMPTY, &s, NULL), 0);
	CHECK(s.nothing && !selector_matches(&s, VAL_EMPTY_OBJECT));
	CHECK_INT(selector_of_object(&a, testing_tree(&a, "{}"), &s, NULL), 0);
	CHECK(selector_is_everything(&s));
	arena_done(&a);
}

TEST(selector_requires)
{
	static const struct {
		const char *text;
		const char *want;
	} t[] = {
		{ "a=x", "x" }, { "a in (x),b=y", "x" }, { "a==", "" }, { "a in (x,y)", NULL }, { "a!=x", NULL }, { "b=x", NULL }, { "a", NULL },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct selector s;
		str value = STR_NONE;
		CHECK_ROW(i, selector_parse(&a, str_of(t[i].text), &s, NULL) == 0);
		CHECK_ROW(i, selector_requires(&s, STR("a"), &value) == (t[i].want != NULL));
		if (t[i].want)
			CHECK_STR_ROW(i, value, t[i].want);
	}
	arena_done(&a);
}

TEST(selector_of_labels)
{
	struct arena a = ARENA_INIT;
	struct val labels = testing_tree(&a, "{'b':'2','a':'1'}");
	struct selector s = selector_of_labels(&a, labels);
	CHECK_STR(selector_text(&a, &s), "a=1,b=2");
	CHECK(selector_matches(&s, labels) && !selector_matches(&s, testing_tree(&a, "{'a':'1'}")));
	CHECK_STR(labels_display(&a, labels), "a=1,b=2");
	CHECK_STR(labels_display(&a, VAL_EMPTY), "<none>");
	arena_done(&a);
}
