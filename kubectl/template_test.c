/* What Go's text/template answers to the same templates, with kubectl's two functions, on the same data. */
#include "kubectl/template.h"

#include "base/test.h"
#include "codec/json.h"

static const char data[] =
	"{\"n\":3,\"big\":1000000,\"f\":1.5,\"s\":\"text\",\"e\":\"\",\"t\":true,\"x\":null,\"l\":[\"a\",\"b\",3],\"el\":[],\"m\":{\"b\":1,\"a\":\"z\"},\"em\":{},"
	"\"b64\":\"aGk=\",\"u\":\"\\u00e9<&>\\\"'=\",\"deep\":{\"a\":{\"b\":{\"c\":\"d\"}}},\"items\":[{\"name\":\"p1\",\"v\":1},{\"name\":\"p2\"}]}";

static int run(struct arena *a, const char *text, bool missing_is_error, struct buf *out, struct err *err)
{
	struct template_options o = { .missing_is_error = missing_is_error, .work = 1 << 24 };
	const struct template *t;
	struct val v;
	CHECK_INT(json_decode(a, str_of(data), &(struct json_decode_options){ 0 }, &v, NULL), 0);
	int r = template_parse(a, STR("output"), str_of(text), &t, err);
	return r < 0 ? r : template_run(t, a, v, &o, out, err);
}

TEST(template_as_go)
{
	static const struct { const char *text; bool missing_is_error; const char *out, *error; } cases[] = {
		{ "plain text", false, "plain text", NULL },
		{ "{{.n}} {{.big}} {{.f}} {{.s}} {{.t}} {{.x}} {{.l}} {{.m}} {{.em}} {{.el}} {{.nope}}", false, "3 1e+06 1.5 text true <no value> [a b 3] map[a:z b:1] map[] [] <no value>", NULL },
		{ "{{.}}", false, "map[b64:aGk= big:1e+06 deep:map[a:map[b:map[c:d]]] e: el:[] em:map[] f:1.5 items:[map[name:p1 v:1] map[name:p2]] l:[a b 3] m:map[a:z b:1] n:3 s:text t:true u:\303\251<&>\"'= x:<nil>]", NULL },
		{ "{{1000000}} {{1e6}} {{0x1F}} {{0b101}} {{017}} {{1_000}} {{'a'}} {{'\\n'}} {{'\303\251'}} {{-3}} {{.5}} {{true}} {{\"q\\t\\\"\\u00e9\"}} {{`raw\\n`}}", false, "1000000 1e+06 31 5 15 1000 97 10 233 -3 0.5 true q\t\"\303\251 raw\\n", NULL },
		{ "{{.deep.a.b.c}} {{.deep.a.nope.c}}", false, "d <no value>", NULL },
		{ "{{.s.a}}", false, "", "template: output:1:4: executing \"output\" at <.s.a>: can't evaluate field a in type interface {}" },
		{ "{{.x.a}}", false, "", "template: output:1:4: executing \"output\" at <.x.a>: nil pointer evaluating interface {}.a" },
		{ "{{.deep.a.b.c.d}}", false, "", "template: output:1:7: executing \"output\" at <.deep.a.b.c.d>: can't evaluate field d in type interface {}" },
		{ "{{with .s}}{{.a}}{{end}}", false, "", "template: output:1:13: executing \"output\" at <.a>: can't evaluate field a in type string" },
		{ "{{range .l}}{{.a}}{{end}}", false, "", "template: output:1:14: executing \"output\" at <.a>: can't evaluate field a in type interface {}" },
		{ "{{(.deep).a.b}} {{(index .l 0)}} {{(index .items 0).name}}", false, "map[c:d] a p1", NULL },
		{ "{{range .items}}{{.name}}={{.v}};{{end}}", false, "p1=1;p2=<no value>;", NULL },
		{ "{{range $i, $x := .items}}{{$i}}:{{$x.name}} {{end}}", false, "0:p1 1:p2 ", NULL },
		{ "{{range $k, $v := .m}}{{$k}}={{$v}},{{end}}", false, "a=z,b=1,", NULL },
		{ "{{range .el}}x{{else}}none{{end}} {{range .x}}x{{else}}nil{{end}} {{range .nope}}x{{else}}no{{end}}", false, "none nil no", NULL },
		{ "{{range 3}}{{.}}{{end}} {{range $i := 2}}{{$i}}{{end}}", false, "012 01", NULL },
		{ "{{range $i, $j := 2}}{{$i}}{{end}}", false, "", "template: output:1:18: executing \"output\" at <2>: can't use 2 to iterate over more than one variable" },
		{ "{{range .s}}x{{end}}", false, "", "template: output:1:8: executing \"output\" at <.s>: range can't iterate over text" },
		{ "{{range .n}}x{{end}}", false, "", "template: output:1:8: executing \"output\" at <.n>: range can't iterate over 3" },
		{ "{{range .t}}x{{end}}", false, "", "template: output:1:8: executing \"output\" at <.t>: range can't iterate over true" },
		{ "{{range .l}}{{if eq . \"b\"}}{{continue}}{{end}}{{.}}{{end}}", false, "a", "template: output:1:17: executing \"output\" at <eq . \"b\">: error calling eq: incompatible types for comparison: float64 and string" },
		{ "{{range .items}}{{if eq .name \"p2\"}}{{break}}{{end}}{{.name}}{{end}}", false, "p1", NULL },
		{ "{{break}}", false, "", "template: output:1: {{break}} outside {{range}}" },
		{ "{{if .t}}yes{{end}}{{if .e}}no{{else}}empty{{end}}{{if .n}}n{{end}}{{if .em}}em{{else if .m}}m{{else}}z{{end}}", false, "yesemptynm", NULL },
		{ "{{with .s}}{{.}}{{end}}{{with .e}}x{{else}}none{{end}}{{with .nope}}a{{else with .s}}b{{.}}{{end}}", false, "textnonebtext", NULL },
		{ "{{$x := .n}}{{$x}}{{$x = \"new\"}}{{$x}}{{with $y := .s}}{{$y}}{{end}}", false, "3newtext", NULL },
		{ "{{if .t}}{{$x := 1}}{{$x}}{{end}}{{$x}}", false, "", "template: output:1: undefined variable \"$x\"" },
		{ "{{$x}}", false, "", "template: output:1: undefined variable \"$x\"" },
		{ "{{$x = 1}}", false, "", "template: output:1:7: executing \"output\" at <1>: undefined variable: $x" },
		{ "{{$.n}} {{range .items}}{{$.s}}{{end}}", false, "3 texttext", NULL },
		{ "{{define \"t\"}}[{{.}}]{{end}}{{template \"t\" .s}}{{template \"t\"}}", false, "[text][<no value>]", NULL },
		{ "{{define \"t\"}}{{$}}{{end}}{{template \"t\" .n}}", false, "3", NULL },
		{ "{{template \"nope\" .}}", false, "", "template: output:1:11: executing \"output\" at <{{template \"nope\" .}}>: template \"nope\" not defined" },
		{ "{{define \"r\"}}{{if .a}}{{template \"r\" .a}}{{else}}{{.}}{{end}}{{end}}{{template \"r\" .deep}}", false, "map[b:map[c:d]]", NULL },
		{ "{{block \"b\" .s}}<{{.}}>{{end}}", false, "<text>", NULL },
		{ "{{define \"t\"}}a{{end}}{{define \"t\"}}b{{end}}", false, "", "template: output:1: template: multiple definition of template \"t\"" },
		{ "{{define \"e\"}}{{.s.q}}{{end}}{{template \"e\" .}}", false, "", "template: output:1:18: executing \"e\" at <.s.q>: can't evaluate field q in type interface {}" },
		{ "a  {{- .s -}}   b {{/* c */}}d{{- /* x */ -}}  e", false, "atextb de", NULL },
		{ "{{- 3}} {{3 -}} x", false, "3 3x", NULL },
		{ "{{-3}}", false, "-3", NULL },
		{ "{{printf \"%d %v %s %q %t\" 1 .n .s .s true}}", false, "1 3 text \"text\" true", NULL },
		{ "{{printf \"%d %s %x %5.2f|%-5s|%05d|%+d|%8.3s|\" .n .n \"hi\" .f \"a\" 7 7 \"abcdef\"}}", false, "%!d(float64=3) %!s(float64=3) 6869  1.50|a    |00007|+7|     abc|", NULL },
		{ "{{printf \"%T %T %T %T %T %T %T\" .n 1 .s .l .m true nil}}", false, "float64 int string []interface {} map[string]interface {} bool <nil>", NULL },
		{ "{{printf \"%v %d %s\" nil nil nil}}", false, "<nil> %!d(<nil>) %!s(<nil>)", NULL },
		{ "{{printf \"%[2]d %[1]d|%[3]d\" 1 2}}", false, "2 1|%!d(BADINDEX)", NULL },
		{ "{{printf \"%!\"}} {{printf \"%\"}} {{printf \"%z\" 1}} {{printf \"%d\"}} {{printf \"x\" 1 \"a\" nil}}", false, "%!!(MISSING) %!(NOVERB) %!z(int=1) %!d(MISSING) x%!(EXTRA int=1, string=a, <nil>)", NULL },
		{ "{{printf \"%*d|%-*d|%.*f\" 5 1 4 2 1 .f}}", false, "    1|2   |1.5", NULL },
		{ "{{printf \"%q %v %s %d\" .l .m .l .l}}", false, "[\"a\" \"b\" %!q(float64=3)] map[a:z b:1] [a b %!s(float64=3)] [%!d(string=a) %!d(string=b) %!d(float64=3)]", NULL },
		{ "{{printf \"%#v %#v %#v %#v %#v\" .l .m .s .n 3}}", false, "[]interface {}{\"a\", \"b\", 3} map[string]interface {}{\"a\":\"z\", \"b\":1} \"text\" 3 3", NULL },
		{ "{{printf \"%c %q %U %#U %x %X %o %O %b %#x %#o\" 65 65 65 65 255 255 8 8 5 255 8}}", false, "A 'A' U+0041 U+0041 'A' ff FF 10 0o10 101 0xff 010", NULL },
		{ "{{printf \"%e %E %g %G %f %.0f %6.1f|%-8.2f|%08.3f|%+.1f\" .f .f .big .big .f .f .f .f .f .f}}", false, "1.500000e+00 1.500000E+00 1e+06 1E+06 1.500000 2    1.5|1.50    |0001.500|+1.5", NULL },
		{ "{{printf \"%x %X % x %#x\" \"hi\" \"hi\" \"hi\" \"hi\"}}", false, "6869 6869 68 69 0x6869", NULL },
		{ "{{printf \"%t %s\" .t .t}} {{printf \"%s\" .x}} {{printf \"%5t|%-7v|\" true false}}", false, "true %!s(bool=true) %!s(<nil>)  true|false  |", NULL },
		{ "{{.n | printf \"%v-%v\" \"a\"}} {{\"fmt %v\" | printf}}", false, "a-3 fmt %!v(MISSING)", NULL },
		{ "{{printf .n}}", false, "", "template: output:1:9: executing \"output\" at <.n>: wrong type for value; expected string; got float64" },
		{ "{{printf 3}}", false, "", "template: output:1:9: executing \"output\" at <3>: expected string; found 3" },
		{ "{{printf nil}}", false, "", "template: output:1:9: executing \"output\" at <nil>: cannot assign nil to string" },
		{ "{{printf .nope}}", false, "", "template: output:1:9: executing \"output\" at <.nope>: invalid value; expected string" },
		{ "{{printf .x}}", false, "", "template: output:1:9: executing \"output\" at <.x>: wrong type for value; expected string; got interface {}" },
		{ "{{print 1 2 \"a\" \"b\" 3 .n .x}} {{println 1 \"a\"}}", false, "1 2ab3 3 <nil> 1 a\n", NULL },
		{ "{{len .l}} {{len .m}} {{len .s}} {{len \"\303\251\"}}", false, "3 2 4 2", NULL },
		{ "{{len .n}}", false, "", "template: output:1:2: executing \"output\" at <len .n>: error calling len: len of type float64" },
		{ "{{len .x}}", false, "", "template: output:1:2: executing \"output\" at <len .x>: error calling len: len of nil pointer" },
		{ "{{len .nope}}", false, "", "template: output:1:2: executing \"output\" at <len .nope>: error calling len: reflect: call of reflect.Value.Type on zero Value" },
		{ "{{len 3}}", false, "", "template: output:1:2: executing \"output\" at <len 3>: error calling len: len of type int" },
		{ "{{len}}", false, "", "template: output:1:2: executing \"output\" at <len>: wrong number of args for len: want 1 got 0" },
		{ "{{len .l .m}}", false, "", "template: output:1:2: executing \"output\" at <len>: wrong number of args for len: want 1 got 2" },
		{ "{{index .l 1}} {{index .m \"a\"}} {{index .m \"zz\"}} {{index .deep \"a\" \"b\" \"c\"}} {{index .s 1}} {{index .items 1 \"name\"}}", false, "b z <no value> d 101 p2", NULL },
		{ "{{index .l 9}}", false, "", "template: output:1:2: executing \"output\" at <index .l 9>: error calling index: index out of range: 9" },
		{ "{{index .l 3}}", false, "", "template: output:1:2: executing \"output\" at <index .l 3>: error calling index: reflect: slice index out of range" },
		{ "{{index .s 4}}", false, "", "template: output:1:2: executing \"output\" at <index .s 4>: error calling index: reflect: string index out of range" },
		{ "{{index .l -1}}", false, "", "template: output:1:2: executing \"output\" at <index .l -1>: error calling index: index out of range: -1" },
		{ "{{index .l \"a\"}}", false, "", "template: output:1:2: executing \"output\" at <index .l \"a\">: error calling index: cannot index slice/array with type string" },
		{ "{{index .l .n}}", false, "", "template: output:1:2: executing \"output\" at <index .l .n>: error calling index: cannot index slice/array with type float64" },
		{ "{{index .m 1}}", false, "", "template: output:1:2: executing \"output\" at <index .m 1>: error calling index: value has type int; should be string" },
		{ "{{index .x 1}}", false, "", "template: output:1:2: executing \"output\" at <index .x 1>: error calling index: index of untyped nil" },
		{ "{{index .nope 1}}", false, "", "template: output:1:2: executing \"output\" at <index .nope 1>: error calling index: index of untyped nil" },
		{ "{{index .m \"zz\" \"y\"}}", false, "", "template: output:1:2: executing \"output\" at <index .m \"zz\" \"y\">: error calling index: index of nil pointer" },
		{ "{{index .n 1}}", false, "", "template: output:1:2: executing \"output\" at <index .n 1>: error calling index: can't index item of type float64" },
		{ "{{index .l nil}}", false, "", "template: output:1:2: executing \"output\" at <index .l nil>: error calling index: cannot index slice/array with nil" },
		{ "{{index .m nil}}", false, "", "template: output:1:2: executing \"output\" at <index .m nil>: error calling index: value is nil; should be of type string" },
		{ "{{slice .s 1 3}} {{slice .l 1}} {{slice .s}} {{slice .l 0 1 2}}", false, "ex [b 3] text [a]", NULL },
		{ "{{slice .s 3 1}}", false, "", "template: output:1:2: executing \"output\" at <slice .s 3 1>: error calling slice: invalid slice index: 3 > 1" },
		{ "{{slice .s 0 1 2}}", false, "", "template: output:1:2: executing \"output\" at <slice .s 0 1 2>: error calling slice: cannot 3-index slice a string" },
		{ "{{slice .l 0 9}}", false, "", "template: output:1:2: executing \"output\" at <slice .l 0 9>: error calling slice: index out of range: 9" },
		{ "{{slice .n 1}}", false, "", "template: output:1:2: executing \"output\" at <slice .n 1>: error calling slice: can't slice item of type float64" },
		{ "{{slice .x}}", false, "", "template: output:1:2: executing \"output\" at <slice .x>: error calling slice: slice of untyped nil" },
		{ "{{slice .l 1 2 3 4}}", false, "", "template: output:1:2: executing \"output\" at <slice .l 1 2 3 4>: error calling slice: too many slice indexes: 4" },
		{ "{{eq .s \"text\"}} {{eq .s \"a\" \"text\"}} {{ne .s \"a\"}} {{eq .t true}} {{eq .x nil}} {{eq .nope nil}} {{eq 1 1}} {{eq .f 1.5}} {{eq .s nil}} {{eq .m nil}}", false, "true true true true true true true true false false", NULL },
		{ "{{eq .n 3}}", false, "", "template: output:1:2: executing \"output\" at <eq .n 3>: error calling eq: incompatible types for comparison: float64 and int" },
		{ "{{eq .n 3.0}} {{eq .s .e}} {{lt 1 2}} {{le 2 2}} {{gt \"b\" \"a\"}} {{ge .f .n}} {{lt .n 4.0}} {{eq (index .s 0) 116}}", false, "true false true true true false true true", NULL },
		{ "{{eq .l .l}}", false, "", "template: output:1:2: executing \"output\" at <eq .l .l>: error calling eq: non-comparable type [a b %!s(float64=3)]: []interface {}" },
		{ "{{eq .l .m}}", false, "", "template: output:1:2: executing \"output\" at <eq .l .m>: error calling eq: non-comparable types [a b %!s(float64=3)]: []interface {}, map[string]interface {}: map[a:z b:1]" },
		{ "{{eq .s}}", false, "", "template: output:1:2: executing \"output\" at <eq .s>: error calling eq: missing argument for comparison" },
		{ "{{eq}}", false, "", "template: output:1:2: executing \"output\" at <eq>: wrong number of args for eq: want at least 1 got 0" },
		{ "{{eq .s 1}}", false, "", "template: output:1:2: executing \"output\" at <eq .s 1>: error calling eq: incompatible types for comparison: string and int" },
		{ "{{lt .t true}}", false, "", "template: output:1:2: executing \"output\" at <lt .t true>: error calling lt: invalid type for comparison" },
		{ "{{lt .x 1}}", false, "", "template: output:1:2: executing \"output\" at <lt .x 1>: error calling lt: invalid type for comparison" },
		{ "{{lt .s 1}}", false, "", "template: output:1:2: executing \"output\" at <lt .s 1>: error calling lt: incompatible types for comparison: string and int" },
		{ "{{lt .l .l}}", false, "", "template: output:1:2: executing \"output\" at <lt .l .l>: error calling lt: invalid type for comparison" },
		{ "{{and .t .s}} {{and .e .s}} {{or .e .s}} {{or .e .em}} {{not .e}} {{not .t}} {{and 1 0 2}} {{or 0 0}} {{.s | and .t}} {{and .nope .s.x}}", false, "text  text map[] true false 0 0 text <no value>", NULL },
		{ "{{not}}", false, "", "template: output:1:2: executing \"output\" at <not>: wrong number of args for not: want 1 got 0" },
		{ "{{html .u}} {{js .u}} {{urlquery .u}} {{html .n .s}} {{html .nope}} {{.u | html}} {{js \"a\\x01\\\\\"}}", false, "\303\251&lt;&amp;&gt;&#34;&#39;= \303\251\\u003C\\u0026\\u003E\\\"\\'\\u003D %C3%A9%3C%26%3E%22%27%3D 3text &lt;no value&gt; \303\251&lt;&amp;&gt;&#34;&#39;= a\\u0001\\\\", NULL },
		{ "{{base64decode .b64}} {{.b64 | base64decode}}", false, "hi hi", NULL },
		{ "{{base64decode \"!!\"}}", false, "", "template: output:1:2: executing \"output\" at <base64decode \"!!\">: error calling base64decode: base64 decode failed: illegal base64 data at input byte 0" },
		{ "{{base64decode .n}}", false, "", "template: output:1:15: executing \"output\" at <.n>: wrong type for value; expected string; got float64" },
		{ "{{base64decode .x}}", false, "", "template: output:1:15: executing \"output\" at <.x>: wrong type for value; expected string; got interface {}" },
		{ "{{base64decode .nope}}", false, "", "template: output:1:15: executing \"output\" at <.nope>: invalid value; expected string" },
		{ "{{exists . \"m\" \"a\"}} {{exists .l 1}} {{exists .l 9}} {{exists .m \"zz\"}} {{exists .nope}} {{exists .x \"a\"}} {{exists .s 1}} {{exists . 1}} {{exists .l .n}}", false, "true true false false true false true false false", NULL },
		{ "{{nosuch .s}}", false, "", "template: output:1: function \"nosuch\" not defined" },
		{ "{{.s nope}}", false, "", "template: output:1: function \"nope\" not defined" },
		{ "{{.s 3}}", false, "", "template: output:1:2: executing \"output\" at <.s>: s is not a method but has arguments" },
		{ "{{.deep.a 3}}", false, "", "template: output:1:7: executing \"output\" at <.deep.a>: a is not a method but has arguments" },
		{ "{{\"a\" 3}}", false, "", "template: output:1:2: executing \"output\" at <\"a\">: can't give argument to non-function \"a\"" },
		{ "{{3 4}}", false, "", "template: output:1:2: executing \"output\" at <3>: can't give argument to non-function 3" },
		{ "{{. 3}}", false, "", "template: output:1:2: executing \"output\" at <.>: can't give argument to non-function ." },
		{ "{{(print 1) 3}}", false, "", "template: output:1:2: executing \"output\" at <(print 1) 3>: can't give argument to non-function print 1" },
		{ "{{$x := 1}}{{$x 2}}", false, "", "template: output:1:13: executing \"output\" at <$x>: can't give argument to non-function $x" },
		{ "{{1 | 2}}", false, "", "template: output:1: non executable command in pipeline stage 2" },
		{ "{{.s | .s}}", false, "", "template: output:1:7: executing \"output\" at <.s>: s is not a method but has arguments" },
		{ "{{.s | \"a\"}}", false, "", "template: output:1: non executable command in pipeline stage 2" },
		{ "{{nil}}", false, "", "template: output:1:2: executing \"output\" at <nil>: nil is not a command" },
		{ "{{nil.a}}", false, "", "template: output:1: unexpected . after term \"nil\"" },
		{ "{{\"a\".b}}", false, "", "template: output:1: unexpected . after term \"\\\"a\\\"\"" },
		{ "{{.s", false, "", "template: output:1: unclosed action" },
		{ "{{.s}", false, "", "template: output:1: bad character U+007D '}'" },
		{ "{{", false, "", "template: output:1: unclosed action" },
		{ "{{if .t}}", false, "", "template: output:1: unexpected EOF" },
		{ "{{if}}x{{end}}", false, "", "template: output:1: missing value for if" },
		{ "{{end}}", false, "", "template: output:1: unexpected {{end}}" },
		{ "{{else}}", false, "", "template: output:1: unexpected {{else}}" },
		{ "{{if .t}}{{else}}{{else}}{{end}}", false, "", "template: output:1: expected end; found {{else}}" },
		{ "{{range .l}}{{else if .t}}{{end}}", false, "", "template: output:1: unexpected <if> in input" },
		{ "{{/* never closed", false, "", "template: output:1: unclosed comment" },
		{ "{{/* a */ x}}", false, "", "template: output:1: comment ends before closing delimiter" },
		{ "{{.s | }}", false, "text", NULL },
		{ "{{| .s}}", false, "", "template: output:1: unexpected \"|\" in command" },
		{ "{{()}}", false, "", "template: output:1: missing value for parenthesized pipeline" },
		{ "{{(.s}}", false, "", "template: output:1: unclosed left paren" },
		{ "{{.s)}}", false, "", "template: output:1: unexpected right paren" },
		{ "{{\"abc}}", false, "", "template: output:1: unterminated quoted string" },
		{ "{{`abc}}", false, "", "template: output:1: unterminated raw quoted string" },
		{ "{{'ab'}}", false, "", "template: output:1: malformed character constant: 'ab'" },
		{ "{{'a}}", false, "", "template: output:1: unterminated character constant" },
		{ "{{\"\\q\"}}", false, "", "template: output:1: invalid syntax" },
		{ "{{1x}}", false, "", "template: output:1: bad number syntax: \"1x\"" },
		{ "{{99999999999999999999}}", false, "", "template: output:1: integer overflow: \"99999999999999999999\"" },
		{ "{{9223372036854775808}}", false, "", "template: output:1:2: executing \"output\" at <9223372036854775808>: 9223372036854775808 overflows int" },
		{ "{{089}}", false, "", "template: output:1: integer overflow: \"089\"" },
		{ "{{1.2.3}}", false, "", "template: output:1: unexpected \".3\" in operand" },
		{ "{{.a!}}", false, "", "template: output:1: bad character U+0021 '!'" },
		{ "{{.s,}}", false, "", "template: output:1: unexpected \",\" in operand" },
		{ "{{$x, $y := .l}}", false, "", "template: output:1: too many declarations in command" },
		{ "{{range $a, $b, $c := .l}}{{end}}", false, "", "template: output:1: too many declarations in range" },
		{ "{{range $a, 3 := .l}}{{end}}", false, "", "template: output:1: range can only initialize variables" },
		{ "{{a := 1}}", false, "", "template: output:1: function \"a\" not defined" },
		{ "{{.s : 3}}", false, "", "template: output:1: expected :=" },
		{ "{{:=}}", false, "", "template: output:1: unexpected \":=\" in command" },
		{ "{{template}}", false, "", "template: output:1: unexpected \"}}\" in template clause" },
		{ "{{template x}}", false, "", "template: output:1: unexpected \"x\" in template clause" },
		{ "{{template \"a\" }}", false, "", "template: output:1:11: executing \"output\" at <{{template \"a\"}}>: template \"a\" not defined" },
		{ "{{define}}", false, "", "template: output:1: unexpected \"}}\" in define clause" },
		{ "{{define \"x\"}}", false, "", "template: output:1: unexpected EOF" },
		{ "{{define \"x\" 3}}{{end}}", false, "", "template: output:1: unexpected \"3\" in define clause" },
		{ "{{define \"x\"}}a{{else}}{{end}}", false, "", "template: output:1: unexpected {{else}} in define clause" },
		{ "{{if .t}}{{define \"x\"}}{{end}}{{end}}", false, "", "template: output:1: unexpected <define> in command" },
		{ "{{with $x := .s}}{{end}}{{$x}}", false, "", "template: output:1: undefined variable \"$x\"" },
		{ "{{.s | printf \"%s\" | printf \"[%s]\" | len}}", false, "6", NULL },
		{ "{{ .s | printf   \"%s\" }}", false, "text", NULL },
		{ "{{if eq .s \"text\" | not}}a{{else}}b{{end}}", false, "b", NULL },
		{ "{{range $i, $e := .l}}{{if $i}},{{end}}{{$e}}{{end}}", false, "a,b,3", NULL },
		{ "{{range $i = .l}}{{end}}", false, "", "template: output:1:13: executing \"output\" at <.l>: undefined variable: $i" },
		{ "{{$i := 0}}{{range $i = .l}}{{end}}{{$i}}", false, "3", NULL },
		{ "{{$i := 0}}{{$v := 0}}{{range $i, $v = .l}}{{end}}{{$i}} {{$v}}", false, "2 3", NULL },
		{ "{{.items}}", false, "[map[name:p1 v:1] map[name:p2]]", NULL },
		{ "{{print}} {{println}} {{html}}", false, " \n ", NULL },
		{ "line1\n{{.s.a}}", false, "line1\n", "template: output:2:4: executing \"output\" at <.s.a>: can't evaluate field a in type interface {}" },
		{ "line1\nline2 {{nosuch}}", false, "", "template: output:2: function \"nosuch\" not defined" },
		{ "a\n{{if .t}}\n{{.s.q}}{{end}}", false, "a\n\n", "template: output:3:4: executing \"output\" at <.s.q>: can't evaluate field q in type interface {}" },
		{ "{{\"a\\n b\"}}{{.s}}", false, "a\n btext", NULL },
		{ "{{.s\n.a}}", false, "", "template: output:1:2: executing \"output\" at <.s>: s is not a method but has arguments" },
		{ "{{break}}\n", false, "", "template: output:1: {{break}} outside {{range}}" },
		{ "{{range .l}}{{break 3}}{{end}}", false, "", "template: output:1: unexpected \"3\" in {{break}}" },
		{ "{{$}}{{$.s}}{{$.deep.a.b}}", false, "map[b64:aGk= big:1e+06 deep:map[a:map[b:map[c:d]]] e: el:[] em:map[] f:1.5 items:[map[name:p1 v:1] map[name:p2]] l:[a b 3] m:map[a:z b:1] n:3 s:text t:true u:\303\251<&>\"'= x:<nil>]textmap[c:d]", NULL },
		{ "{{with .deep}}{{with .a}}{{.b.c}}{{$.s}}{{end}}{{end}}", false, "dtext", NULL },
		{ "{{printf \"%s\" (index .l 0)}} {{printf \"%v\" (len .l)}}", false, "a 3", NULL },
		{ "{{printf \"%6.2v|%06d|%-06d|% d|%+v\" .f -3 4 5 .m}}", false, "   1.5|-00003|4     | 5|map[a:z b:1]", NULL },
		{ "{{printf \"%.3d|%5.3d|%.0d|\" 7 7 0}}", false, "007|  007||", NULL },
		{ "{{printf \"%v %v\" (index .m \"zz\") .x}}", false, "<nil> <nil>", NULL },
		{ "{{printf \"%\303\251\" 1}} {{printf \"%[9]d\" 1}} {{printf \"%[x]d\" 1}} {{printf \"%[1\" 1}}", false, "%!\303\251(int=1) %!d(BADINDEX) %!d(BADINDEX) %!(NOVERB)", NULL },
		{ "{{printf \"%s %v\" \"a\"}}", false, "a %!v(MISSING)", NULL },
		{ "{{printf \"%99999999d\" 1}}", false, "%!(NOVERB)%!(EXTRA int=1)", NULL },
		{ "{{printf \"%*d\" \"a\" 1}}", false, "%!(BADWIDTH)1", NULL },
		{ "{{printf \"%#q %5z\" \"a`b\" 7}} {{-in}} {{printf \"%#q\" \"ab\"}}", false, "", "template: output:1: bad number syntax: \"-in\"" },
		{ "{{-0.0}} {{1e-7}} {{123456789.0}} {{1e21}} {{0.000001}} {{100000.0}}", false, "-0 1e-07 1.23456789e+08 1e+21 1e-06 100000", NULL },
		{ "{{.\303\251}} {{.a_b}}", false, "<no value> <no value>", NULL },
		{ "{{.nope}}", true, "", "template: output:1:2: executing \"output\" at <.nope>: map has no entry for key \"nope\"" },
		{ "{{.deep.zz.y}}", true, "", "template: output:1:7: executing \"output\" at <.deep.zz.y>: map has no entry for key \"zz\"" },
		{ "{{.x}}", true, "<no value>", NULL },
		{ "{{with $y := .x}}{{$y.a}}{{end}}", true, "", NULL },
		{ "{{range .items}}{{.v}}{{end}}", true, "1", "template: output:1:18: executing \"output\" at <.v>: map has no entry for key \"v\"" },
		{ "{{index .m \"zz\"}}", true, "<no value>", NULL },
		{ "{{(index .m \"zz\").a}}", true, "", "template: output:1:12: executing \"output\" at <\"zz\">: nil data; no entry for key \"a\"" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
		struct err err = ERR_INIT;
		struct arena a = ARENA_INIT;
		int r = run(&a, cases[i].text, cases[i].missing_is_error, &out, &err);
		buf_addf(&out, "\n%s", err.msg);
		struct buf want = BUF_INIT(1 << 20);
		buf_addf(&want, "%s\n%s", cases[i].out, cases[i].error ? cases[i].error : "");
		CHECK_INT(r, cases[i].error ? -ERR_BAD_REQUEST : 0);
		CHECK_STR(buf_str(&out), want.p);
		buf_done(&want);
		arena_done(&a);
	}
}

TEST(template_is_bounded)
{
	static const struct { const char *text, *error; } cases[] = {
		{ "{{define \"r\"}}{{template \"r\" .}}{{end}}{{template \"r\" .}}",
		  "template: output:1:25: executing \"r\" at <{{template \"r\" .}}>: exceeded maximum template depth (150)" },
		{ "{{range 1000000000}}{{end}}", "template: output:1:8: executing \"output\" at <1000000000>: the template does too much" },
		{ "{{range 1000000000}}{{printf \"%1000000d\" 1}}{{end}}",
		  "template: output:1:22: executing \"output\" at <printf \"%1000000d\" 1>: error calling printf: the text is too long" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 26);
		struct err err = ERR_INIT;
		struct arena a = ARENA_INIT;
		CHECK_INT(run(&a, cases[i].text, false, &out, &err), -ERR_BAD_REQUEST);
		CHECK_STR(str_of(err.msg), cases[i].error);
		arena_done(&a);
	}
	CLEANUP(buf_done) struct buf deep = BUF_INIT(1 << 20);
	struct arena a = ARENA_INIT;
	const struct template *t;
	struct err err = ERR_INIT;
	buf_add(&deep, STR("{{"));
	for (int i = 0; i < 10000; i++)
		buf_addc(&deep, '(');
	CHECK_INT(template_parse(&a, STR("output"), buf_str(&deep), &t, &err), -ERR_BAD_REQUEST);
	CHECK_STR(str_of(err.msg), "template: output:1: max expression depth exceeded");
	arena_done(&a);
}
