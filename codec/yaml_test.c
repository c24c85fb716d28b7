/*
 * The expected texts are what the YAML libraries of Kubernetes make of the same inputs.
 */
#include "base/test.h"
#include "codec/codec.h"
#include "codec/types.h"

/* In these tables ` stands for ". */
struct row {
	const char *in, *want;
};

static str quoted(struct arena *a, const char *text)
{
	str s = arena_str(a, str_of(text));
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '`')
			((char *)s.p)[i] = '"';
	return s;
}

TEST(yaml_to_json)
{
	static const struct row t[] = {
		{ "a: yes\n", "{`a`:true}" },
		{ "a: no\n", "{`a`:false}" },
		{ "a: on\n", "{`a`:true}" },
		{ "a: off\n", "{`a`:false}" },
		{ "a: y\n", "{`a`:true}" },
		{ "a: n\n", "{`a`:false}" },
		{ "a: Y\n", "{`a`:true}" },
		{ "a: N\n", "{`a`:false}" },
		{ "a: true\n", "{`a`:true}" },
		{ "a: True\n", "{`a`:true}" },
		{ "a: TRUE\n", "{`a`:true}" },
		{ "a: tRue\n", "{`a`:`tRue`}" },
		{ "a: null\n", "{`a`:null}" },
		{ "a: Null\n", "{`a`:null}" },
		{ "a: ~\n", "{`a`:null}" },
		{ "a: \n", "{`a`:null}" },
		{ "a: 0x1F\n", "{`a`:31}" },
		{ "a: 0o17\n", "{`a`:15}" },
		{ "a: 0b101\n", "{`a`:5}" },
		{ "a: 0777\n", "{`a`:511}" },
		{ "a: 08\n", "{`a`:8}" },
		{ "a: 09\n", "{`a`:9}" },
		{ "a: 1_000\n", "{`a`:1000}" },
		{ "a: 1_0.5\n", "{`a`:10.5}" },
		{ "a: 1e3\n", "{`a`:1000}" },
		{ "a: 1.\n", "{`a`:1}" },
		{ "a: 0.5\n", "{`a`:0.5}" },
		{ "a: .5\n", "{`a`:0.5}" },
		{ "a: +5\n", "{`a`:5}" },
		{ "a: -5\n", "{`a`:-5}" },
		{ "a: +.inf\n", "json: unsupported value: +Inf" },
		{ "a: .inf\n", "json: unsupported value: +Inf" },
		{ "a: -.Inf\n", "json: unsupported value: -Inf" },
		{ "a: .nan\n", "json: unsupported value: NaN" },
		{ "a: NaN\n", "{`a`:`NaN`}" },
		{ "a: Inf\n", "{`a`:`Inf`}" },
		{ "a: 2001-01-01\n", "{`a`:`2001-01-01`}" },
		{ "a: 2001-1-1\n", "{`a`:`2001-1-1`}" },
		{ "a: 2001-13-01\n", "{`a`:`2001-13-01`}" },
		{ "a: 2001-02-30\n", "{`a`:`2001-02-30`}" },
		{ "a: 2001-01-01T00:00:00Z\n", "{`a`:`2001-01-01T00:00:00Z`}" },
		{ "a: 2001-01-01t0:0:0.5+02:00\n", "{`a`:`2001-01-01t0:0:0.5+02:00`}" },
		{ "a: 2001-01-01 10:00:00\n", "{`a`:`2001-01-01 10:00:00`}" },
		{ "a: 2001-01-01 10:00:00 -5\n", "{`a`:`2001-01-01 10:00:00 -5`}" },
		{ "a: 12:30\n", "{`a`:`12:30`}" },
		{ "a: 12:30:45\n", "{`a`:`12:30:45`}" },
		{ "a: 1:60\n", "{`a`:`1:60`}" },
		{ "a: 0xg\n", "{`a`:`0xg`}" },
		{ "a: 0b2\n", "{`a`:`0b2`}" },
		{ "a: 0b-1\n", "{`a`:-1}" },
		{ "a: -0b1\n", "{`a`:-1}" },
		{ "a: --1\n", "{`a`:`--1`}" },
		{ "a: 1__0\n", "{`a`:10}" },
		{ "a: _1\n", "{`a`:`_1`}" },
		{ "a: 1_\n", "{`a`:1}" },
		{ "a: 9223372036854775807\n", "{`a`:9223372036854775807}" },
		{ "a: 9223372036854775808\n", "{`a`:9223372036854775808}" },
		{ "a: 18446744073709551615\n", "{`a`:18446744073709551615}" },
		{ "a: 18446744073709551616\n", "{`a`:18446744073709552000}" },
		{ "a: -9223372036854775809\n", "{`a`:-9223372036854776000}" },
		{ "a: 1e400\n", "{`a`:`1e400`}" },
		{ "a: -1e400\n", "{`a`:`-1e400`}" },
		{ "a: 1e-400\n", "{`a`:0}" },
		{ "a: 0.1\n", "{`a`:0.1}" },
		{ "a: 1e21\n", "{`a`:1e+21}" },
		{ "a: 123456789012345678901234567890\n", "{`a`:1.2345678901234568e+29}" },
		{ "a: 1.5e3\n", "{`a`:1500}" },
		{ "a: <<\n", "{`a`:`\\u003c\\u003c`}" },
		{ "a: =\n", "{`a`:`=`}" },
		{ "a: a: b\n", "yaml: mapping values are not allowed in this context" },
		{ "a: 'q'\n", "{`a`:`q`}" },
		{ "a: `q`\n", "{`a`:`q`}" },
		{ "a: `a\\nb\\x41\\u00e9\\U0001F600\\N\\_\\L`\n",
		  "{`a`:`a\\nbA\303\251\360\237\230\200\302\205\302\240\\u2028`}" },
		{ "a: !!str 5\n", "{`a`:`5`}" },
		{ "a: !!int `5`\n", "{`a`:5}" },
		{ "a: !!float 5\n", "{`a`:5}" },
		{ "a: !!float 1.5\n", "{`a`:1.5}" },
		{ "a: !!bool yes\n", "{`a`:true}" },
		{ "a: !!null ''\n", "{`a`:null}" },
		{ "a: !!binary aGVsbG8=\n", "{`a`:`hello`}" },
		{ "a: !!binary '!!'\n", "yaml: !!binary value contains invalid base64 data" },
		{ "a: !foo bar\n", "{`a`:`bar`}" },
		{ "a: !!timestamp 2001-01-01\n", "{`a`:`2001-01-01`}" },
		{ "a: ! 5\n", "{`a`:`5`}" },
		{ "a: !!int 5\n", "{`a`:5}" },
		{ "a: !<tag:yaml.org,2002:int> 7\n", "{`a`:7}" },
		{ "a: !!str\n", "{`a`:``}" },
		{ "a: +\n", "{`a`:`+`}" },
		{ "a: -\n", "yaml: block sequence entries are not allowed in this context" },
		{ "a: - \n", "yaml: block sequence entries are not allowed in this context" },
		{ "a: .\n", "{`a`:`.`}" },
		{ "a: ..\n", "{`a`:`..`}" },
		{ "a: ...x\n", "{`a`:`...x`}" },
		{ "a: 0x\n", "{`a`:`0x`}" },
		{ "a: 0o\n", "{`a`:`0o`}" },
		{ "a: 0b\n", "{`a`:`0b`}" },
		{ "a: 0_\n", "{`a`:0}" },
		{ "a: +0x1f\n", "{`a`:31}" },
		{ "a: -0o17\n", "{`a`:-15}" },
		{ "a: 0O17\n", "{`a`:15}" },
		{ "a: 0B1\n", "{`a`:1}" },
		{ "a: 0X1f\n", "{`a`:31}" },
		{ "a: 1e\n", "{`a`:`1e`}" },
		{ "a: e1\n", "{`a`:`e1`}" },
		{ "a: 1e+5\n", "{`a`:100000}" },
		{ "a: .e5\n", "{`a`:`.e5`}" },
		{ "a: .1e5\n", "{`a`:10000}" },
		{ "a: ._5\n", "{`a`:`._5`}" },
		{ "a: .1_0\n", "{`a`:0.1}" },
		{ "a: 0.1_0\n", "{`a`:0.1}" },
		{ "a: 00\n", "{`a`:0}" },
		{ "a: -0\n", "{`a`:0}" },
		{ "a: -0.0\n", "{`a`:-0}" },
		{ "a: 0.0\n", "{`a`:0}" },
		{ "a: 1.0\n", "{`a`:1}" },
		{ "a: 100.0\n", "{`a`:100}" },
		{ "a: 1e2\n", "{`a`:100}" },
		{ "a: 190:20:30\n", "{`a`:`190:20:30`}" },
		{ "a: 190:20:30.15\n", "{`a`:`190:20:30.15`}" },
		{ "a: - 5\n", "yaml: block sequence entries are not allowed in this context" },
		{ "a: ? a\n", "yaml: mapping keys are not allowed in this context" },
		{ "a: @x\n", "yaml: found character that cannot start any token" },
		{ "a: %x\n", "yaml: found character that cannot start any token" },
		{ "a: &x y\n", "{`a`:true}" },
		{ "a: *x\n", "yaml: unknown anchor 'x' referenced" },
		{ "a: |\n", "{`a`:``}" },
		{ "a: > \n", "{`a`:``}" },
		{ "yes: v\n", "{`true`:`v`}" },
		{ "true: v\n", "{`true`:`v`}" },
		{ "~: v\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: `v`" },
		{ "0x1F: v\n", "{`31`:`v`}" },
		{ "0777: v\n", "{`511`:`v`}" },
		{ "1e3: v\n", "{`1000`:`v`}" },
		{ ".inf: v\n", "{`.inf`:`v`}" },
		{ "2001-01-01: v\n", "{`2001-01-01`:`v`}" },
		{ "18446744073709551615: v\n",
		  "unsupported map key of type: uint64, key: 0xffffffffffffffff, value: `v`" },
		{ "0.1: v\n", "{`0.1`:`v`}" },
		{ "!!str 5: v\n", "{`5`:`v`}" },
		{ "!!int `5`: v\n", "{`5`:`v`}" },
		{ "", "null" },
		{ "\n", "null" },
		{ "# c\n", "null" },
		{ "---\n", "null" },
		{ "a: 1\nb: 2\n", "{`a`:1,`b`:2}" },
		{ "b: 1\na: 2\n", "{`a`:2,`b`:1}" },
		{ "a: 1\na: 2\n", "{`a`:2}" },
		{ "a:\n  b: 1\n  b: 2\nc: 3\nc: 4\n", "{`a`:{`b`:2},`c`:4}" },
		{ "a: &x {p: 1, q: 2}\nb: *x\n", "{`a`:{`p`:1,`q`:2},`b`:{`p`:1,`q`:2}}" },
		{ "a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n", "{`a`:{`p`:1,`q`:2},`b`:{`p`:1,`q`:3}}" },
		{ "a: &x {p: 1}\nb: &y {p: 2, r: 3}\nc:\n  <<: [*x, *y]\n  z: 1\n",
		  "{`a`:{`p`:1},`b`:{`p`:2,`r`:3},`c`:{`p`:1,`r`:3,`z`:1}}" },
		{ "c:\n  q: 0\n  <<: {q: 1, r: 2}\n", "{`c`:{`q`:1,`r`:2}}" },
		{ "b:\n  <<: 5\n", "yaml: map merge requires map or sequence of maps as the value" },
		{ "b:\n  <<: [5]\n", "yaml: map merge requires map or sequence of maps as the value" },
		{ "b:\n  <<: [[]]\n", "yaml: map merge requires map or sequence of maps as the value" },
		{ "a: &x 5\nb:\n  <<: *x\n", "yaml: map merge requires map or sequence of maps as the value" },
		{ "a: &a [*a]\n", "yaml: anchor 'a' value contains itself" },
		{ "a: *b\n", "yaml: unknown anchor 'b' referenced" },
		{ "a: &a {b: *a}\n", "yaml: anchor 'a' value contains itself" },
		{ "{{ .Values.x }}: 1\n",
		  "yaml: invalid map key: map[interface {}]interface {}{`.Values.x`:interface {}(nil)}" },
		{ "a: {{ .Values.x }}\n",
		  "yaml: invalid map key: map[interface {}]interface {}{`.Values.x`:interface {}(nil)}" },
		{ "{[1,2]: 3}\n", "yaml: invalid map key: []interface {}{1, 2}" },
		{ "? [a]\n: b\n", "yaml: invalid map key: []interface {}{`a`}" },
		{ "? {a: b}\n: c\n", "yaml: invalid map key: map[interface {}]interface {}{`a`:`b`}" },
		{ "~: x\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: `x`" },
		{ "null: x\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: `x`" },
		{ "18446744073709551615: x\n",
		  "unsupported map key of type: uint64, key: 0xffffffffffffffff, value: `x`" },
		{ "1: a\n'1': b\n", "{`1`:`b`}" },
		{ "1.5: x\ntrue: y\n1: z\n.inf: q\n1e10: w\n0.1: v\n",
		  "{`.inf`:`q`,`0.1`:`v`,`1`:`z`,`1.5`:`x`,`1e+10`:`w`,`true`:true}" },
		{ "a: b: c\n", "yaml: mapping values are not allowed in this context" },
		{ "a:\n  - b\n - c\n", "yaml: line 2: did not find expected key" },
		{ "a: [1, 2\n", "yaml: line 1: did not find expected ',' or ']'" },
		{ "a: {b: 1\n", "yaml: line 1: did not find expected ',' or '}'" },
		{ "a: 'x\n", "yaml: line 2: found unexpected end of stream" },
		{ "a: `x\n", "yaml: line 2: found unexpected end of stream" },
		{ "a\nb: c\n", "yaml: line 2: mapping values are not allowed in this context" },
		{ "a: 1\n b: 2\n", "yaml: line 2: mapping values are not allowed in this context" },
		{ "\ta: 1\n", "yaml: found character that cannot start any token" },
		{ "a:\n\t- b\n", "yaml: line 2: found character that cannot start any token" },
		{ "a: |\n  x\n  y\n", "{`a`:`x\\ny\\n`}" },
		{ "a: >\n  x\n  y\n\n  z\n", "{`a`:`x y\\nz\\n`}" },
		{ "a: |-\n  x\n", "{`a`:`x`}" },
		{ "a: |+\n  x\n\n", "{`a`:`x\\n\\n`}" },
		{ "a: |2\n   x\n", "{`a`:` x\\n`}" },
		{ "- 1\n- - 2\n  - 3\n-\n  a: b\n", "[1,[2,3],{`a`:`b`}]" },
		{ "a: 1\n---\nb: 2\n", "{`a`:1}" },
		{ "a: 1\n...\nb: 2\n", "{`a`:1}" },
		{ "--- a\n--- b\n", "`a`" },
		{ "%YAML 1.1\n---\na: 1\n", "{`a`:1}" },
		{ "%YAML 1.2\n---\na: 1\n", "yaml: found incompatible YAML document" },
		{ "%YAML 2.0\n---\na: 1\n", "yaml: found incompatible YAML document" },
		{ "%TAG ! tag:x,2000:\n---\na: !y 5\n", "{`a`:`5`}" },
		{ "%FOO x\n---\na: 1\n", "yaml: found unknown directive name" },
		{ "a: !!set {x, y}\n", "{`a`:{`true`:null,`x`:null}}" },
		{ "a: !!omap [x: 1]\n", "{`a`:[{`x`:1}]}" },
		{ "&a a: *a\n", "{`a`:`a`}" },
		{ "*a : b\n", "yaml: unknown anchor 'a' referenced" },
		{ "&a [1]\n", "[1]" },
		{ "a: &b\nc: *b\n", "{`a`:null,`c`:null}" },
		{ "key: [a, b, {c: d}]\n", "{`key`:[`a`,`b`,{`c`:`d`}]}" },
		{ "a: `\\x`\n", "yaml: did not find expected hexdecimal number" },
		{ "a: `\\ud83d\\ude00`\n", "yaml: found invalid Unicode character escape code" },
		{ "a: `\\ud83d`\n", "yaml: found invalid Unicode character escape code" },
		{ "a: `b\\\n  c`\n", "{`a`:`bc`}" },
		{ "a: 'it''s'\n", "{`a`:`it's`}" },
		{ "a: b #c\n", "{`a`:`b`}" },
		{ "a: b#c\n", "{`a`:`b#c`}" },
		{ "a:b\n", "`a:b`" },
		{ "a: -1\n", "{`a`:-1}" },
		{ "- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator" },
		{ "a: @b\n", "yaml: found character that cannot start any token" },
		{ "a: %b\n", "yaml: found character that cannot start any token" },
		{ "a: b\n  c\n  d\n", "{`a`:`b c d`}" },
		{ "a: b\n\n  c\n", "{`a`:`b\\nc`}" },
		{ "? a\n? b\n", "{`a`:null,`b`:null}" },
		{ "a: !!binary |\n  aGVs\n  bG8=\n", "{`a`:`hello`}" },
		{ "x: [a,b\n", "yaml: line 1: did not find expected ',' or ']'" },
		{ "}\n", "yaml: did not find expected node content" },
		{ "]\n", "yaml: did not find expected node content" },
		{ "{a}\n", "{`a`:null}" },
		{ "{a, b: 1}\n", "{`a`:null,`b`:1}" },
		{ "[a: 1, b]\n", "[{`a`:1},`b`]" },
		{ "a: {b: c, }\n", "{`a`:{`b`:`c`}}" },
		{ "a: [b, , c]\n", "yaml: did not find expected node content" },
		{ "? |\n  x\n: y\n", "{`x\\n`:true}" },
		{ "a: \001\n", "yaml: control characters are not allowed" },
		{ "a: \177\n", "yaml: control characters are not allowed" },
		{ "a: \302\205b\n", "yaml: line 3: could not find expected ':'" },
		{ "\357\273\277a: 1\n", "{`a`:1}" },
		{ "a: \342\200\250b\n", "yaml: line 3: could not find expected ':'" },
		{ "a: \360\237\230\200\n", "{`a`:`\360\237\230\200`}" },
		{ "a: \303\251\n", "{`a`:`\303\251`}" },
		{ "a: 'x\n  y'\n", "{`a`:`x y`}" },
		{ "`a b`: 1\n", "{`a b`:1}" },
		{ "'a': 1\n`a`: 2\n", "{`a`:2}" },
		{ "a: 1\n'a': 2\na: 3\n", "{`a`:3}" },
		{ "!!str a: 1\n", "{`a`:1}" },
		{ "a: &x b\nc: &x d\ne: *x\n", "{`a`:`b`,`c`:`d`,`e`:`d`}" },
		{ "a: 1\nb:\n  - c: 1\n    c: 2\n  - <<: &m {k: 1}\n    k: 2\n", "{`a`:1,`b`:[{`c`:2},{`k`:2}]}" },
		{ "- &x a\n- *x\n- *x \n", "[`a`,`a`,`a`]" },
		{ "a: >-\n  folded\n  text\n  \n   more\nb: 1\n", "{`a`:`folded text\\n\\n more`,`b`:1}" },
		{ "a:\n  b:\n    c: 1\n   d: 2\n", "yaml: line 3: did not find expected key" },
		{ "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n  - name: a\n    "
		  "image: b\n   ports: []\n",
		  "yaml: line 8: did not find expected key" },
		{ "a: 'b\nc: d\n", "yaml: line 3: found unexpected end of stream" },
		{ "a: `b\nc: d\n", "yaml: line 3: found unexpected end of stream" },
		{ "a: b\n- c\n", "yaml: line 1: did not find expected key" },
		{ "a: [\n", "yaml: line 1: did not find expected node content" },
		{ "a: {\n", "yaml: line 1: did not find expected node content" },
		{ "key: value: other\n", "yaml: mapping values are not allowed in this context" },
		{ "foo\nbar\nbaz: 1\n", "yaml: line 3: mapping values are not allowed in this context" },
		{ "a: 1\r\nb: 2\r\n", "{`a`:1,`b`:2}" },
		{ "a: 1\rb: 2\r", "{`a`:1,`b`:2}" },
		{ "a:   \n  b\n", "{`a`:`b`}" },
		{ "? a\n", "{`a`:null}" },
		{ "- \n- \n", "[null,null]" },
		{ "-\n-\n", "[null,null]" },
		{ "a:\n-\n- b\n", "{`a`:[null,`b`]}" },
		{ "[]\n", "[]" },
		{ "{}\n", "{}" },
		{ "''\n", "``" },
		{ "5\n", "5" },
		{ "`x`\n", "`x`" },
		{ "a: *\n", "yaml: did not find expected alphabetic or numeric character" },
		{ "a: &\n", "yaml: did not find expected alphabetic or numeric character" },
		{ "a: &x\n", "{`a`:null}" },
		{ "a: !\n", "{`a`:``}" },
		{ "a: !<\n", "yaml: did not find expected tag URI" },
		{ "a: !<x\n", "yaml: did not find the expected '>'" },
		{ "a: !x!y z\n", "yaml: found undefined tag handle" },
		{ "%\n", "yaml: could not find expected directive name" },
		{ "%YAML\n", "yaml: did not find expected version number" },
		{ "--- |\n x\n", "`x\\n`" },
		{ "--- >\n x\n", "`x\\n`" },
		{ "---\n---\na: 1\n", "null" },
		{ "...\n", "yaml: did not find expected node content" },
		{ "a: 1\n...\n...\n", "{`a`:1}" },
		{ "a: {b: [c, d: e]}\n", "{`a`:{`b`:[`c`,{`d`:`e`}]}}" },
		{ "? - a\n  - b\n: c\n", "yaml: invalid map key: []interface {}{`a`, `b`}" },
		{ "a: `\\\n`\n", "{`a`:``}" },
		{ "a: \377\n", "yaml: invalid leading UTF-8 octet" },
		{ "a: \355\240\200\n", "yaml: invalid Unicode character" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
		struct err err = ERR_INIT;
		int r = yaml_to_json(quoted(&a, t[i].in), &b, NULL, &err);
		CHECK_ROW(i, r == 0 || r == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : buf_str(&b), quoted(&a, t[i].want).p);
	}
}

TEST(yaml_duplicates)
{
	static const struct row t[] = {
		{ "a: 1\nb: 2\n", "" },
		{ "1: a\n`1`: b\n", "" },
		{ "a: 1\na: 2\n", "yaml: unmarshal errors:\n  line 2: key `a` already set in map" },
		{ "a:\n  b: 1\n  b: 2\nc: 3\nc: 4\n",
		  "yaml: unmarshal errors:\n  line 3: key `b` already set in map\n  line 5: key `c` already "
		  "set in map" },
		{ "a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n",
		  "yaml: unmarshal errors:\n  line 4: key `q` already set in map" },
		{ "a: &x {p: 1}\nb: &y {p: 2, r: 3}\nc:\n  <<: [*x, *y]\n  z: 1\n",
		  "yaml: unmarshal errors:\n  line 1: key `p` already set in map" },
		{ "c:\n  q: 0\n  <<: {q: 1, r: 2}\n",
		  "yaml: unmarshal errors:\n  line 3: key `q` already set in map" },
		{ "'a': 1\n`a`: 2\n", "yaml: unmarshal errors:\n  line 2: key `a` already set in map" },
		{ "a: 1\n'a': 2\na: 3\n",
		  "yaml: unmarshal errors:\n  line 2: key `a` already set in map\n  line 3: key `a` already "
		  "set in map" },
		{ "a: 1\nb:\n  - c: 1\n    c: 2\n  - <<: &m {k: 1}\n    k: 2\n",
		  "yaml: unmarshal errors:\n  line 4: key `c` already set in map\n  line 6: key `k` already "
		  "set in map" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20), duplicates = BUF_INIT(1 << 20);
		CHECK_ROW(i, yaml_to_json(quoted(&a, t[i].in), &b, &duplicates, NULL) == 0);
		CHECK_STR_ROW(i, buf_str(&duplicates), quoted(&a, t[i].want).p);
	}
}

/* JSON in, YAML out; and back again. */
TEST(yaml_encode)
{
	static const struct row t[] = {
		{ "{`k`: ``}", "k: ``\n" },
		{ "{`k`: `a`}", "k: a\n" },
		{ "{`k`: `a b`}", "k: a b\n" },
		{ "{`k`: ` a`}", "k: ' a'\n" },
		{ "{`k`: `a `}", "k: 'a '\n" },
		{ "{`k`: `a\\n`}", "k: |\n  a\n" },
		{ "{`k`: `a\\nb`}", "k: |-\n  a\n  b\n" },
		{ "{`k`: `\\na`}", "k: |2-\n\n  a\n" },
		{ "{`k`: `a\\n\\n`}", "k: |+\n  a\n\n" },
		{ "{`k`: ` a\\nb`}", "k: |2-\n   a\n  b\n" },
		{ "{`k`: `a\\n b`}", "k: |-\n  a\n   b\n" },
		{ "{`k`: `a \\nb`}", "k: `a \\nb`\n" },
		{ "{`k`: `a\\n  `}", "k: `a\\n  `\n" },
		{ "{`k`: `\\n`}", "k: |2+\n\n" },
		{ "{`k`: `\\n\\n`}", "k: |2+\n\n\n" },
		{ "{`k`: `a:`}", "k: 'a:'\n" },
		{ "{`k`: `a: b`}", "k: 'a: b'\n" },
		{ "{`k`: `a:b`}", "k: a:b\n" },
		{ "{`k`: `:a`}", "k: :a\n" },
		{ "{`k`: `: a`}", "k: ': a'\n" },
		{ "{`k`: `#a`}", "k: '#a'\n" },
		{ "{`k`: `a #b`}", "k: 'a #b'\n" },
		{ "{`k`: `a#b`}", "k: a#b\n" },
		{ "{`k`: `- a`}", "k: '- a'\n" },
		{ "{`k`: `-a`}", "k: -a\n" },
		{ "{`k`: `-`}", "k: '-'\n" },
		{ "{`k`: `--`}", "k: --\n" },
		{ "{`k`: `---`}", "k: '---'\n" },
		{ "{`k`: `--- a`}", "k: '--- a'\n" },
		{ "{`k`: `...`}", "k: '...'\n" },
		{ "{`k`: `...a`}", "k: '...a'\n" },
		{ "{`k`: `? a`}", "k: '? a'\n" },
		{ "{`k`: `?a`}", "k: ?a\n" },
		{ "{`k`: `?`}", "k: '?'\n" },
		{ "{`k`: `!a`}", "k: '!a'\n" },
		{ "{`k`: `&a`}", "k: '&a'\n" },
		{ "{`k`: `*a`}", "k: '*a'\n" },
		{ "{`k`: `|`}", "k: '|'\n" },
		{ "{`k`: `|a`}", "k: '|a'\n" },
		{ "{`k`: `>`}", "k: '>'\n" },
		{ "{`k`: `%a`}", "k: '%a'\n" },
		{ "{`k`: `@a`}", "k: '@a'\n" },
		{ "{`k`: `'a'`}", "k: '''a'''\n" },
		{ "{`k`: `\\`a\\``}", "k: '`a`'\n" },
		{ "{`k`: `'`}", "k: ''''\n" },
		{ "{`k`: `\\``}", "k: '`'\n" },
		{ "{`k`: `it's`}", "k: it's\n" },
		{ "{`k`: `say \\`hi\\``}", "k: say `hi`\n" },
		{ "{`k`: `[a]`}", "k: '[a]'\n" },
		{ "{`k`: `{a}`}", "k: '{a}'\n" },
		{ "{`k`: `a,b`}", "k: a,b\n" },
		{ "{`k`: `,a`}", "k: ',a'\n" },
		{ "{`k`: `a]`}", "k: a]\n" },
		{ "{`k`: `yes`}", "k: `yes`\n" },
		{ "{`k`: `no`}", "k: `no`\n" },
		{ "{`k`: `y`}", "k: `y`\n" },
		{ "{`k`: `n`}", "k: `n`\n" },
		{ "{`k`: `Y`}", "k: `Y`\n" },
		{ "{`k`: `N`}", "k: `N`\n" },
		{ "{`k`: `on`}", "k: `on`\n" },
		{ "{`k`: `off`}", "k: `off`\n" },
		{ "{`k`: `true`}", "k: `true`\n" },
		{ "{`k`: `True`}", "k: `True`\n" },
		{ "{`k`: `TRUE`}", "k: `TRUE`\n" },
		{ "{`k`: `null`}", "k: `null`\n" },
		{ "{`k`: `~`}", "k: `~`\n" },
		{ "{`k`: `Null`}", "k: `Null`\n" },
		{ "{`k`: `1`}", "k: `1`\n" },
		{ "{`k`: `1.5`}", "k: `1.5`\n" },
		{ "{`k`: `0x1`}", "k: `0x1`\n" },
		{ "{`k`: `0o7`}", "k: `0o7`\n" },
		{ "{`k`: `0b1`}", "k: `0b1`\n" },
		{ "{`k`: `007`}", "k: `007`\n" },
		{ "{`k`: `08`}", "k: `08`\n" },
		{ "{`k`: `1e3`}", "k: `1e3`\n" },
		{ "{`k`: `1_000`}", "k: `1_000`\n" },
		{ "{`k`: `.5`}", "k: `.5`\n" },
		{ "{`k`: `5.`}", "k: `5.`\n" },
		{ "{`k`: `.inf`}", "k: `.inf`\n" },
		{ "{`k`: `.nan`}", "k: `.nan`\n" },
		{ "{`k`: `-.inf`}", "k: `-.inf`\n" },
		{ "{`k`: `+1`}", "k: `+1`\n" },
		{ "{`k`: `-1`}", "k: `-1`\n" },
		{ "{`k`: `2001-01-01`}", "k: `2001-01-01`\n" },
		{ "{`k`: `2001-01-01T00:00:00Z`}", "k: `2001-01-01T00:00:00Z`\n" },
		{ "{`k`: `2001-01-01 00:00:00`}", "k: `2001-01-01 00:00:00`\n" },
		{ "{`k`: `12:30`}", "k: `12:30`\n" },
		{ "{`k`: `1:2:3`}", "k: `1:2:3`\n" },
		{ "{`k`: `190:20:30.15`}", "k: `190:20:30.15`\n" },
		{ "{`k`: `12:60`}", "k: 12:60\n" },
		{ "{`k`: `=`}", "k: =\n" },
		{ "{`k`: `\\u003c\\u003c`}", "k: <<\n" },
		{ "{`k`: `\\t`}", "k: `\\t`\n" },
		{ "{`k`: `a\\tb`}", "k: `a\\tb`\n" },
		{ "{`k`: `\\ta`}", "k: `\\ta`\n" },
		{ "{`k`: `a\\t`}", "k: `a\\t`\n" },
		{ "{`k`: `a\\r`}", "k: `a\\r`\n" },
		{ "{`k`: `a\\r\\nb`}", "k: `a\\r\\nb`\n" },
		{ "{`k`: `\\r`}", "k: `\\r`\n" },
		{ "{`k`: `\302\240`}", "k: \302\240\n" },
		{ "{`k`: `\303\251`}", "k: \303\251\n" },
		{ "{`k`: `\346\227\245\346\234\254`}", "k: \346\227\245\346\234\254\n" },
		{ "{`k`: `\360\237\230\200`}", "k: `\\U0001F600`\n" },
		{ "{`k`: `a\360\237\230\200b`}", "k: `a\\U0001F600b`\n" },
		{ "{`k`: `\357\273\277`}", "k: `\\uFEFF`\n" },
		{ "{`k`: `a\357\273\277`}", "k: `a\\uFEFF`\n" },
		{ "{`k`: `\357\277\275`}", "k: \357\277\275\n" },
		{ "{`k`: `\\u0001`}", "k: `\\x01`\n" },
		{ "{`k`: `\\u0007`}", "k: `\\a`\n" },
		{ "{`k`: `\\u001b`}", "k: `\\e`\n" },
		{ "{`k`: `\177`}", "yaml: control characters are not allowed" },
		{ "{`k`: `\302\200`}", "yaml: control characters are not allowed" },
		{ "{`k`: `\302\237`}", "yaml: control characters are not allowed" },
		{ "{`k`: `\356\200\200`}", "k: \356\200\200\n" },
		{ "{`k`: `\\\\`}", "k: \\\n" },
		{ "{`k`: `a\\\\b`}", "k: a\\b\n" },
		{ "{`k`: `a\\`b\\nc`}", "k: |-\n  a`b\n  c\n" },
		{ "{`k`: `x: y\\nz`}", "k: |-\n  x: y\n  z\n" },
		{ "{`k`: `#x\\ny`}", "k: |-\n  #x\n  y\n" },
		{ "{`k`: `- x\\n- y`}", "k: |-\n  - x\n  - y\n" },
		{ "{`k`: `\\tx\\n`}", "k: `\\tx\\n`\n" },
		{ "{`k`: `x\\n\\ty`}", "k: `x\\n\\ty`\n" },
		{ "{`k`: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`}",
		  "k: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" },
		{ "{`k`: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`}",
		  "k: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" },
		{ "{`k`: `word word word word word word word word word word word word word word word word word "
		  "word word word word word word word word word word word word word`}",
		  "k: word word word word word word word word word word word word word word word word\n  word "
		  "word word word word word word word word word word word word word\n" },
		{ "{`k`: `word word word word word word word word word word word word word word word word word "
		  "word word word word word word word word word word word word word `}",
		  "k: 'word word word word word word word word word word word word word word word word\n  word "
		  "word word word word word word word word word word word word word '\n" },
		{ "{`k`: `a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a "
		  "a a a b`}",
		  "k: a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\n  a a a "
		  "a a b\n" },
		{ "{`k`: `a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b "
		  "a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b `}",
		  "k: 'a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b\n  a  b "
		  "a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b a  b '\n" },
		{ "{`k`: `long long long long long long long long long long long long long long long long long "
		  "long long long \\nsecond`}",
		  "k: `long long long long long long long long long long long long long long long long\n  long "
		  "long long long \\nsecond`\n" },
		{ "{`k`: `'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' "
		  "'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' 'quoted' "
		  "'quoted' `}",
		  "k: '''quoted'' ''quoted'' ''quoted'' ''quoted'' ''quoted'' ''quoted'' ''quoted'' "
		  "''quoted''\n  ''quoted'' ''quoted'' ''quoted'' ''quoted'' ''quoted'' ''quoted'' ''quoted'' "
		  "''quoted''\n  ''quoted'' ''quoted'' ''quoted'' ''quoted'' '\n" },
		{ "{`k`: `key: word word word word word word word word word word word word word word word word "
		  "word word word word word word word word word word word word word word `}",
		  "k: 'key: word word word word word word word word word word word word word word word\n  word "
		  "word word word word word word word word word word word word word word '\n" },
		{ "{`k`: `\\`dq\\`: w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w "
		  "w w w w w w w w w w w w w w w w w w w w w w w `}",
		  "k: '`dq`: w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w w\n  w w w "
		  "w w w w w w w w w w w w w w w w w w w w w '\n" },
		{ "{`k`: `yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes "
		  "yes yes yes yes yes yes yes yes yes `}",
		  "k: 'yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes yes\n  yes "
		  "yes yes yes yes yes yes yes yes yes '\n" },
		{ "{`k`: `: : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : "
		  ": : : : : : : : `}",
		  "k: ': : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : : :\n  : : : "
		  ": : : : : : : : '\n" },
		{ "{`k`: `x: a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  "
		  "a  a  a  a  a  a  a  a  a  a  a  a  a  `}",
		  "k: 'x: a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  a  "
		  "a  a  a  a  a  a  a  a  a  a  a  a  '\n" },
		{ "{`k`: `\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 `}",
		  "k: '\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251\n  "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 \303\251 "
		  "\303\251 '\n" },
		{ "{`k`: `\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 "
		  "\360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 \360\237\230\200 `}",
		  "k: `\\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 "
		  "\\U0001F600\n  \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 "
		  "\\U0001F600 \\U0001F600\n  \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 "
		  "\\U0001F600 \\U0001F600 \\U0001F600\n  \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 "
		  "\\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600\n  \\U0001F600 \\U0001F600 \\U0001F600 "
		  "\\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 \\U0001F600 `\n" },
		{ "{`k`: `0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		  "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 `}",
		  "k: '0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  0 0 0 "
		  "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 '\n" },
		{ "{`k`: `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb`}",
		  "k: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaaaaaaaaaa\n  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
		  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n" },
		{ "{`k`: `http://example.com/a?b=c`}", "k: http://example.com/a?b=c\n" },
		{ "{`k`: `/var/run`}", "k: /var/run\n" },
		{ "{`k`: `sha256:abc`}", "k: sha256:abc\n" },
		{ "{`k`: `10.0.0.0/8`}", "k: 10.0.0.0/8\n" },
		{ "{`k`: `a: |`}", "k: 'a: |'\n" },
		{ "{`k`: `10Gi`}", "k: 10Gi\n" },
		{ "{`k`: `500m`}", "k: 500m\n" },
		{ "{`k`: `1e-5`}", "k: `1e-5`\n" },
		{ "{`k`: `1E5`}", "k: `1E5`\n" },
		{ "{`k`: `+.5`}", "k: `+.5`\n" },
		{ "{`k`: `0.0`}", "k: `0.0`\n" },
		{ "{`k`: `-0`}", "k: `-0`\n" },
		{ "{`k`: `1__0`}", "k: `1__0`\n" },
		{ "{`k`: `0x`}", "k: 0x\n" },
		{ "{`k`: `0b`}", "k: 0b\n" },
		{ "{`k`: `0x1G`}", "k: 0x1G\n" },
		{ "{`k`: `18446744073709551615`}", "k: `18446744073709551615`\n" },
		{ "{`k`: `18446744073709551616`}", "k: `18446744073709551616`\n" },
		{ "{`k`: `9223372036854775808`}", "k: `9223372036854775808`\n" },
		{ "{`k`: `{{ x }}`}", "k: '{{ x }}'\n" },
		{ "{`k`: `${X}`}", "k: ${X}\n" },
		{ "{`k`: `$(X)`}", "k: $(X)\n" },
		{ "{`k`: `a;b`}", "k: a;b\n" },
		{ "{`k`: `a=b`}", "k: a=b\n" },
		{ "{`k`: `\\u003ca>`}", "k: <a>\n" },
		{ "{`k`: `a&b`}", "k: a&b\n" },
		{ "{`k`: `(a)`}", "k: (a)\n" },
		{ "{`k`: `*`}", "k: '*'\n" },
		{ "{`k`: `&`}", "k: '&'\n" },
		{ "{`k`: `!`}", "k: '!'\n" },
		{ "{`k`: `%`}", "k: '%'\n" },
		{ "{`k`: `!!str a`}", "k: '!!str a'\n" },
		{ "{`k`: `null\\n`}", "k: |\n  null\n" },
		{ "{`k`: `true\\n`}", "k: |\n  true\n" },
		{ "{`k`: ` \\n`}", "k: ` \\n`\n" },
		{ "{`k`: `x \\ny`}", "k: `x \\ny`\n" },
		{ "{`k`: `x\\n\\n\\ny\\n`}", "k: |\n  x\n\n\n  y\n" },
		{ "{`k`: `x\\n\\n\\n`}", "k: |+\n  x\n\n\n" },
		{ "{`k`: ` x\\n`}", "k: |2\n   x\n" },
		{ "{`k`: `\\n x`}", "k: |2-\n\n   x\n" },
		{ "{`k`: `0\\n`}", "k: |\n  0\n" },
		{ "{`k`: `\\r\\n`}", "k: `\\r\\n`\n" },
		{ "{`k`: `a\\r\\nb\\r\\n`}", "k: `a\\r\\nb\\r\\n`\n" },
		{ "{`k`: `#`}", "k: '#'\n" },
		{ "{`k`: `# a`}", "k: '# a'\n" },
		{ "{`k`: `a # b`}", "k: 'a # b'\n" },
		{ "{`k`: `\342\200\213`}", "k: \342\200\213\n" },
		{ "{`k`: `\302\255`}", "k: \302\255\n" },
		{ "{`k`: `\305\277`}", "k: \305\277\n" },
		{ "{`k`: `2001-1-1`}", "k: `2001-1-1`\n" },
		{ "{`k`: `2001-01-01t1:2:3z`}", "k: 2001-01-01t1:2:3z\n" },
		{ "{`k`: `0777`}", "k: `0777`\n" },
		{ "{`k`: `1:20`}", "k: `1:20`\n" },
		{ "{`k`: `-1:20`}", "k: `-1:20`\n" },
		{ "{`k`: `+1:20:30`}", "k: `+1:20:30`\n" },
		{ "{`k`: `1_0:20`}", "k: `1_0:20`\n" },
		{ "{`k`: `x\355\237\277`}", "k: x\355\237\277\n" },
		{ "{`k`: `\357\277\277`}", "yaml: control characters are not allowed" },
		{ "{`k`: `\357\277\276`}", "yaml: control characters are not allowed" },
		{ "{`k`: `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx               "
		  "     yyyyyyyyyyyyyyyyyyyy`}",
		  "k: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx                   "
		  " yyyyyyyyyyyyyyyyyyyy\n" },
		{ "{`k`: `x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x \\ty "
		  "\\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty "
		  "\\ty `}",
		  "k: `x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x\n  x \\ty "
		  "\\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty \\ty "
		  "\\ty `\n" },
		{ "{}", "{}\n" },
		{ "[]", "[]\n" },
		{ "null", "null\n" },
		{ "true", "true\n" },
		{ "0", "0\n" },
		{ "-1", "-1\n" },
		{ "1.5", "1.5\n" },
		{ "1e+21", "1e+21\n" },
		{ "1e-07", "1e-07\n" },
		{ "123456.0", "123456\n" },
		{ "1234567.5", "1.2345675e+06\n" },
		{ "{`a`: {}}", "a: {}\n" },
		{ "{`a`: []}", "a: []\n" },
		{ "[[]]", "- []\n" },
		{ "[{}]", "- {}\n" },
		{ "[[[1]]]", "- - - 1\n" },
		{ "{`a`: [[1, 2], [3]]}", "a:\n- - 1\n  - 2\n- - 3\n" },
		{ "{`a`: [{`b`: 1, `c`: 2}, {`d`: [1]}]}", "a:\n- b: 1\n  c: 2\n- d:\n  - 1\n" },
		{ "{`b`: 1, `a`: 2, `A`: 3, `1`: 4, `10`: 5, `2`: 6, `_`: 7, `a1`: 8, `a10`: 9, `a2`: 10, "
		  "`a-b`: 11, `a.b`: 12, `a_b`: 13, `ab`: 14, `a b`: 15, ``: 16}",
		  "``: 16\n_: 7\n`1`: 4\n`2`: 6\n`10`: 5\nA: 3\na: 2\na b: 15\na-b: 11\na.b: 12\na_b: 13\na1: "
		  "8\na2: 10\na10: 9\nab: 14\nb: 1\n" },
		{ "[null, null]", "- null\n- null\n" },
		{ "{`a`: null}", "a: null\n" },
		{ "[`a\\nb`, {`c`: `d\\n`}]", "- |-\n  a\n  b\n- c: |\n    d\n" },
		{ "{`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`: {`a`: 1}, "
		  "`yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
		  "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy`: [1], `z\\nz`: `v`}",
		  "? xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n: a: 1\n? "
		  "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
		  "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n: - 1\n? |-\n  z\n  z\n: v\n" },
		{ "[[{`a`: `b`}, `c`]]", "- - a: b\n  - c\n" },
		{ "`top`", "top\n" },
		{ "`top\\nlevel\\n`", "|\n  top\n  level\n" },
		{ "{`yes`: 1, `1`: 2, `a: b`: 3, `- x`: 4, ``: 5, `null`: 6}",
		  "``: 5\n'- x': 4\n`1`: 2\n'a: b': 3\n`null`: 6\n`yes`: 1\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20), json = BUF_INIT(1 << 20);
		struct json_decode_options opt = { .sort_keys = true };
		struct err err = ERR_INIT;
		struct val v, again;
		CHECK_ROW(i, json_decode(&a, quoted(&a, t[i].in), &opt, &v, NULL) == 0);
		int r = yaml_encode(&b, v, NULL, &err);
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : buf_str(&b), quoted(&a, t[i].want).p);
		if (r < 0)
			continue;
		CHECK_ROW(i, yaml_to_json(buf_str(&b), &json, NULL, NULL) == 0);
		CHECK_ROW(i, json_decode(&a, buf_str(&json), &opt, &again, NULL) == 0);
		CHECK_ROW(i, val_equal(v, again));
	}
}

TEST(yaml_encode_typed)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	str text = quoted(&a, "{`kind`:`Pod`,`apiVersion`:`v1`,`metadata`:{`name`:`p`,`labels`:{`b`:`1`,`a`:`true`}},"
			      "`spec`:{`containers`:[{`name`:`c`,`image`:`i:1`,"
			      "`command`:[`sh`,`-c`,`echo a\\necho b\\n`]}]}}");
	const struct type *type;
	struct val v;

	CHECK(json_decode_object(&a, text, NULL, &v, &type, NULL) == 0);
	CHECK(yaml_encode(&b, v, type, NULL) == 0);
	CHECK_STR(buf_str(&b), "apiVersion: v1\nkind: Pod\n"
			       "metadata:\n  labels:\n    a: \"true\"\n    b: \"1\"\n  name: p\n"
			       "spec:\n  containers:\n  - command:\n    - sh\n    - -c\n    - |\n      echo a\n      echo b\n"
			       "    image: i:1\n    name: c\n    resources: {}\nstatus: {}\n");
}

TEST(yaml_stream)
{
	static const struct { const char *in, *want; } t[] = {
		{ "", "end" },
		{ "\n# nothing\n", "end" },
		{ "a: 1\n", "1 {\"a\":1}; end" },
		{ "a: 1", "1 {\"a\":1}; end" },
		{ "---\na: 1\n---\nb: 2\n", "1 {\"a\":1}; 4 {\"b\":2}; end" },
		{ "a: 1\n--- # two\n\n---\nb: 2\n---\n", "1 {\"a\":1}; 5 {\"b\":2}; end" },
		{ "a: 1\r\n---\r\nb: 2\r\n", "1 {\"a\":1}; 3 {\"b\":2}; end" },
		{ "a: 1\n---\nb: [\n", "1 {\"a\":1}; 3 yaml: line 1: did not find expected node content" },
		{ "a: 1\n--- b\n", "1 invalid Yaml document separator: b" },
		{ "a: |\n  ---\n  x\n---\nb: 1\n", "1 {\"a\":\"---\\nx\\n\"}; 5 {\"b\":1}; end" },
		{ "null\n---\n~\n---\n[]\n", "5 []; end" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
		CLEANUP(yaml_closep) struct yaml_stream *s = yaml_open(str_of(t[i].in));
		struct err err = ERR_INIT;
		int r;
		while ((r = yaml_next(s, &b, &err)) > 0) {
			buf_addf(&got, "%u " STR_FMT "; ", yaml_line(s), STR_ARG(buf_str(&b)));
			buf_reset(&b);
		}
		if (r < 0)
			buf_addf(&got, "%u %s", yaml_line(s), err.msg);
		else
			buf_add(&got, STR("end"));
		CHECK_STR_ROW(i, buf_str(&got), t[i].want);
	}
}

/* Small texts that would become large ones, or keep the parser busy. */
TEST(yaml_limits)
{
	CLEANUP(buf_done) struct buf bomb = BUF_INIT(1 << 20), deep = BUF_INIT(1 << 20), tags = BUF_INIT(1 << 20);
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct err err = ERR_INIT;

	buf_add(&bomb, STR("a: &a [x,x,x,x,x,x,x,x,x,x]\n"));
	for (char c = 'b'; c < 'k'; c++) {
		buf_addf(&bomb, "%c: &%c [", c, c);
		for (int i = 0; i < 10; i++)
			buf_addf(&bomb, "*%c,", c - 1);
		buf_add(&bomb, STR("]\n"));
	}
	CHECK(yaml_to_json(buf_str(&bomb), &b, NULL, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "yaml: document contains excessive aliasing");

	for (int i = 0; i < 200; i++)
		buf_addc(&deep, '[');
	CHECK(yaml_to_json(buf_str(&deep), &b, NULL, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "yaml: line 1: exceeded max depth of 100");
	buf_reset(&deep);
	for (int i = 0; i < 2000; i++)
		buf_add(&deep, STR("- "));
	CHECK(yaml_to_json(buf_str(&deep), &b, NULL, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "yaml: line 1: exceeded max depth of 1000");

	for (int i = 0; i < 200; i++)
		buf_addf(&tags, "%%TAG !t%d! tag:x\n", i);
	CHECK(yaml_to_json(buf_str(&tags), &b, NULL, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "yaml: more than 100 directives");
}

TEST(yaml_limit_of_output)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 20), b = BUF_INIT(100000);
	struct err err = ERR_INIT;

	/* A long text with many aliases: few nodes, much output. */
	buf_add(&in, STR("a: &a "));
	for (int i = 0; i < 10000; i++)
		buf_addc(&in, 'x');
	buf_add(&in, STR("\nb: ["));
	for (int i = 0; i < 90; i++)
		buf_add(&in, STR("*a, "));
	buf_add(&in, STR("]\n"));
	CHECK(yaml_to_json(buf_str(&in), &b, NULL, &err) == -ERR_TOO_LARGE);
	CHECK_INT(b.n, 0);
}
