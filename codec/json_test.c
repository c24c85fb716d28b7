/*
 * The expected texts are what Kubernetes' own strict decoder and encoder make of the same inputs.
 */
#include "base/test.h"
#include "codec/atoms.h"
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

/* An object after decoding and encoding again, or what is wrong with it: an error, or the strict errors. */
static void check_object(size_t row, const char *in, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct strict_errors strict = { .arena = &a };
	struct err err = ERR_INIT;
	const struct type *type = NULL;
	struct val v;

	int r = json_decode_object(&a, quoted(&a, in), &strict, &v, &type, &err);
	if (r == 0)
		r = strict_errors_fail(&strict, &err);
	if (r == 0) {
		struct json_encode_options opt = { .type = type };
		r = json_encode(&out, v, &opt, &err);
	}
	CHECK_STR_ROW(row, r < 0 ? err_str(&err) : buf_str(&out), quoted(&a, want).p);
}

TEST(json_syntax_errors)
{
	static const struct row t[] = {
		{ "", "unexpected end of JSON input" },
		{ "{", "unexpected end of JSON input" },
		{ "[", "unexpected end of JSON input" },
		{ "nul", "invalid character ' ' in literal null (expecting 'l')" },
		{ "tru", "invalid character ' ' in literal true (expecting 'e')" },
		{ "fals", "invalid character ' ' in literal false (expecting 'e')" },
		{ "-", "invalid character ' ' in numeric literal" },
		{ "1.", "invalid character ' ' after decimal point in numeric literal" },
		{ "1e", "invalid character ' ' in exponent of numeric literal" },
		{ "1e+", "invalid character ' ' in exponent of numeric literal" },
		{ "01", "invalid character '1' after top-level value" },
		{ "`abc", "unexpected end of JSON input" },
		{ "`ab\\", "invalid character ' ' in string escape code" },
		{ "`\\u12", "invalid character ' ' in \\u hexadecimal character escape" },
		{ "`\\x`", "invalid character 'x' in string escape code" },
		{ "{`a`", "unexpected end of JSON input" },
		{ "{`a`:", "unexpected end of JSON input" },
		{ "{`a`:1", "unexpected end of JSON input" },
		{ "{`a`:1,", "unexpected end of JSON input" },
		{ "{`a`:1,}", "invalid character '}' looking for beginning of object key string" },
		{ "{`a` 1}", "invalid character '1' after object key" },
		{ "{a:1}", "invalid character 'a' looking for beginning of object key string" },
		{ "[1,]", "invalid character ']' looking for beginning of value" },
		{ "[1 2]", "invalid character '2' after array element" },
		{ "{`a`:1 `b`:2}", "invalid character '`' after object key:value pair" },
		{ "{} x", "invalid character 'x' after top-level value" },
		{ "{}}", "invalid character '}' after top-level value" },
		{ "\001", "invalid character '\\x01' looking for beginning of value" },
		{ "`a\001b`", "invalid character '\\x01' in string literal" },
		{ "nulL", "invalid character 'L' in literal null (expecting 'l')" },
		{ "tRue", "invalid character 'R' in literal true (expecting 'r')" },
		{ "faLse", "invalid character 'L' in literal false (expecting 'l')" },
		{ "{`a`:.5}", "invalid character '.' looking for beginning of value" },
		{ "{`a`:+1}", "invalid character '+' looking for beginning of value" },
		{ "{`a`:-}", "invalid character '}' in numeric literal" },
		{ "{`a`:1.x}", "invalid character 'x' after decimal point in numeric literal" },
		{ "{`a`:1ex}", "invalid character 'x' in exponent of numeric literal" },
		{ "'a'", "invalid character '\\'' looking for beginning of value" },
		{ "{`a`:`\\u00g0`}", "invalid character 'g' in \\u hexadecimal character escape" },
		{ "  ", "unexpected end of JSON input" },
		{ "\n\n{", "unexpected end of JSON input" },
		{ "{`a`:tru}", "invalid character '}' in literal true (expecting 'e')" },
		{ "/", "invalid character '/' looking for beginning of value" },
		{ "{\240}", "invalid character '\\u00a0' looking for beginning of object key string" },
		{ "\377", "invalid character '\303\277' looking for beginning of value" },
		{ "\351", "invalid character '\303\251' looking for beginning of value" },
		{ "{`kind`:`Pod`,`apiVersion`:`v1`,`metadata`:{`managedFields`:[{`fieldsV1`:{`a`:}}]}}",
		  "invalid character '}' looking for beginning of value" },
		{ "{`kind`:`Pod`,`apiVersion`:`v1`,`spec`:{`containers`:[{`image`:1}]},}}",
		  "invalid character '}' looking for beginning of object key string" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct arena a = ARENA_INIT;
		struct json_decode_options opt = { .type = i % 2 ? TYPE(core_v1, Pod) : NULL };
		struct err err = ERR_INIT;
		struct val v;
		str in = quoted(&a, t[i].in);
		CHECK_ROW(i, json_decode(&a, in, &opt, &v, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), quoted(&a, t[i].want).p);
		CHECK_ROW(i, json_error_offset(in) >= 0);
		arena_done(&a);
	}
}

TEST(json_error_offset)
{
	CHECK_INT(json_error_offset(STR("{\"a\":1}")), -1);
	CHECK_INT(json_error_offset(STR(" [1, 2] \n")), -1);
	CHECK_INT(json_error_offset(STR("{\"a\":x}")), 5);
	CHECK_INT(json_error_offset(STR("{\"a\":1")), 6);
	CHECK_INT(json_error_offset(STR("[1]]")), 3);
	CHECK_INT(json_error_offset(STR("")), 0);
	CHECK_INT(json_error_offset(STR("\"a\nb\"")), 2);
}

/* How an object says what it is. */
TEST(json_decode_object_kind)
{
	static const struct row t[] = {
		{ "true",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go value of "
		  "type struct { APIVersion string `json:\\`apiVersion,omitempty\\``; Kind string `json:\\`kind,"
		  "omitempty\\`` }" },
		{ "1",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go value of "
		  "type struct { APIVersion string `json:\\`apiVersion,omitempty\\``; Kind string `json:\\`kind,"
		  "omitempty\\`` }" },
		{ "{`kind`:1}",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct "
		  "field .kind of type string" },
		{ "{`kind`:`Pod`,`kind`:2}",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct "
		  "field .kind of type string" },
		{ "{`apiVersion`:true,`kind`:{}}",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go struct "
		  "field .apiVersion of type string" },
		{ "[]",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
		  "type struct { APIVersion string `json:\\`apiVersion,omitempty\\``; Kind string `json:\\`kind,"
		  "omitempty\\`` }" },
		{ "`x`",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of "
		  "type struct { APIVersion string `json:\\`apiVersion,omitempty\\``; Kind string `json:\\`kind,"
		  "omitempty\\`` }" },
		{ "5",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go value of "
		  "type struct { APIVersion string `json:\\`apiVersion,omitempty\\``; Kind string `json:\\`kind,"
		  "omitempty\\`` }" },
		{ "null", "Object 'Kind' is missing in 'null'" },
		{ "true",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go value of "
		  "type struct { APIVersion string `json:\\`apiVersion,omitempty\\``; Kind string `json:\\`kind,"
		  "omitempty\\`` }" },
		{ "{`kind`:null}", "Object 'Kind' is missing in '{`kind`:null}'" },
		{ "{`kind`:`Pod`}", "Object 'apiVersion' is missing in '{`kind`:`Pod`}'" },
		{ "{`apiVersion`:`v1`}", "Object 'Kind' is missing in '{`apiVersion`:`v1`}'" },
		{ "{`apiVersion`:`a/b/c`,`kind`:`x`}", "unexpected GroupVersion string: a/b/c" },
		{ "{`apiVersion`:`/`,`kind`:`x`}",
		  "Object 'apiVersion' is missing in '{`apiVersion`:`/`,`kind`:`x`}'" },
		{ "{`apiVersion`:`a/`,`kind`:`x`}",
		  "Object 'apiVersion' is missing in '{`apiVersion`:`a/`,`kind`:`x`}'" },
		{ "{`apiVersion`:`/v1`,`kind`:`Pod`}",
		  "{`kind`:`Pod`,`apiVersion`:`v1`,`metadata`:{},`spec`:{`containers`:null},`status`:{}}" },
		{ "{`KIND`:`Pod`,`apiVersion`:`v1`}", "strict decoding error: unknown field `KIND`" },
		{ "{`\342\204\252ind`:`Pod`,`apiVersion`:`v1`}",
		  "strict decoding error: unknown field `\342\204\252ind`" },
		{ "{`kind`:`Foo`,`apiVersion`:`x/v1`,`spec`:{`b`:1,`a`:[1,{`c`:1,`c`:2}]},`spec2`:1e400}",
		  "json: cannot unmarshal number 1e400 into Go value of type float64" },
		{ "{`kind`:`Foo`,`apiVersion`:`x/v1`,`b`:1,`a`:[1.0,1e3,12345678901234567890,-0,1.5,true,null,"
		  "`<x>`],`c`:{`z`:1,`y`:2,`z`:3},`b`:2}",
		  "strict decoding error: duplicate field `c.z`, duplicate field `b`" },
		{ "{`kin\\u0064`:`Pod`,`apiVersion`:`v1`}",
		  "{`kind`:`Pod`,`apiVersion`:`v1`,`metadata`:{},`spec`:{`containers`:null},`status`:{}}" },
		{ "{`kind`:`Pod`,`apiVersion`:`v1`,`kind`:5}",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct "
		  "field .kind of type string" },
		{ "{`kind`:`Pod`,`apiVersion`:`v1`,`apiVersion`:[]}",
		  "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct "
		  "field .apiVersion of type string" },
		{ "{`kind`:`Deployment`,`apiVersion`:`apps/v1`}",
		  "{`kind`:`Deployment`,`apiVersion`:`apps/v1`,`metadata`:{},`spec`:{`selector`:null,"
		  "`template`:{`metadata`:{},`spec`:{`containers`:null}},`strategy`:{}},`status`:{}}" },
		{ "{`kind`:`PodList`,`apiVersion`:`v1`}",
		  "{`kind`:`PodList`,`apiVersion`:`v1`,`metadata`:{},`items`:null}" },
		{ "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`}",
		  "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`metadata`:{},`data`:null,`revision`:0}" },
		{ "{`kind`:`Role`,`apiVersion`:`rbac.authorization.k8s.io/v1`}",
		  "{`kind`:`Role`,`apiVersion`:`rbac.authorization.k8s.io/v1`,`metadata`:{},`rules`:null}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		check_object(i, t[i].in, t[i].want);
}

/* Members of a Pod, and what becomes of the Pod without kind and apiVersion. */
TEST(json_decode_pod)
{
	static const struct row t[] = {
		{ "`Kind`:`Secret`", "strict decoding error: unknown field `Kind`" },
		{ "`kind`:`Secret`", "strict decoding error: duplicate field `kind`" },
		{ "`spec`:1", "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec" },
		{ "`spec`:`x`", "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec" },
		{ "`spec`:[]", "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec" },
		{ "`spec`:true", "json: cannot unmarshal bool into Go struct field Pod.spec of type v1.PodSpec" },
		{ "`spec`:{`containers`:{}}",
		  "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
		  "[]v1.Container" },
		{ "`spec`:{`containers`:`x`}",
		  "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
		  "[]v1.Container" },
		{ "`spec`:{`containers`:[1]}",
		  "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type "
		  "v1.Container" },
		{ "`spec`:{`containers`:[`x`,{`ports`:[{`containerPort`:`x`}]}]}",
		  "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type "
		  "v1.Container" },
		{ "`spec`:{`containers`:[{`ports`:[{`containerPort`:1.5}]}]}",
		  "json: cannot unmarshal number 1.5 into Go struct field "
		  "ContainerPort.spec.containers.ports.containerPort of type int32" },
		{ "`spec`:{`containers`:[{`ports`:[{`containerPort`:1e3}]}]}",
		  "json: cannot unmarshal number 1e3 into Go struct field "
		  "ContainerPort.spec.containers.ports.containerPort of type int32" },
		{ "`spec`:{`containers`:[{`ports`:[{`containerPort`:2147483648}]}]}",
		  "json: cannot unmarshal number 2147483648 into Go struct field "
		  "ContainerPort.spec.containers.ports.containerPort of type int32" },
		{ "`spec`:{`containers`:[{`ports`:[{`containerPort`:-2147483649}]}]}",
		  "json: cannot unmarshal number -2147483649 into Go struct field "
		  "ContainerPort.spec.containers.ports.containerPort of type int32" },
		{ "`spec`:{`containers`:[{`ports`:[{`containerPort`:-2147483648}]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`ports`:[{`containerPort`:-2147483648}],"
		  "`resources`:{}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`ports`:[{`containerPort`:null}]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`ports`:[{`containerPort`:0}],`resources`:{"
		  "}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`ports`:[{`protocol`:1}]}]}",
		  "json: cannot unmarshal number into Go struct field "
		  "ContainerPort.spec.containers.ports.protocol of type v1.Protocol" },
		{ "`spec`:{`containers`:[{`image`:1}]}",
		  "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type "
		  "string" },
		{ "`spec`:{`containers`:[{`image`:[]}]}",
		  "json: cannot unmarshal array into Go struct field Container.spec.containers.image of type "
		  "string" },
		{ "`spec`:{`containers`:[{`image`:{}}]}",
		  "json: cannot unmarshal object into Go struct field Container.spec.containers.image of type "
		  "string" },
		{ "`spec`:{`containers`:[{`args`:`x`}]}",
		  "json: cannot unmarshal string into Go struct field Container.spec.containers.args of type "
		  "[]string" },
		{ "`spec`:{`containers`:[{`args`:[1]}]}",
		  "json: cannot unmarshal number into Go struct field Container.spec.containers.args of type "
		  "string" },
		{ "`spec`:{`containers`:[{`args`:[null,`a`]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`args`:[``,`a`],`resources`:{}}]},`status`:{}" },
		{ "`spec`:{`containers`:[null,{}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{}},{`name`:``,`resources`:{}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`env`:[null]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`env`:[{`name`:``}],`resources`:{}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:1}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{`limits`:{`cpu`:`1`}}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:1.5}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{`limits`:{`cpu`:`1500m`}}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:1e3}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{`limits`:{`cpu`:`1e3`}}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:`x`}}}]}",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:``}}}]}",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:null}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{`limits`:{`cpu`:`0`}}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:true}}}]}",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:{}}}}]}",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:[1]}}}]}",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:`  1 `}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{`limits`:{`cpu`:`1`}}}]},"
		  "`status`:{}" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:`\\u0031`}}}]}",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:1}}]}",
		  "json: cannot unmarshal number into Go struct field "
		  "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:[]}}]}",
		  "json: cannot unmarshal array into Go struct field "
		  "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList" },
		{ "`spec`:{`containers`:[{`resources`:{`limits`:{`cpu`:`1000m`,`memory`:`1024Ki`},`requests`:{"
		  "}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{`limits`:{`cpu`:`1`,"
		  "`memory`:`1Mi`}}}]},`status`:{}" },
		{ "`metadata`:{`labels`:{`a`:1}}",
		  "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string" },
		{ "`metadata`:{`labels`:[]}",
		  "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type "
		  "map[string]string" },
		{ "`metadata`:{`labels`:{`a`:null}}",
		  "`metadata`:{`labels`:{`a`:``}},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`labels`:{`b`:`1`,`a`:`2`,`b`:`3`}}",
		  "strict decoding error: duplicate field `metadata.labels.b`" },
		{ "`metadata`:{`creationTimestamp`:1}",
		  "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of "
		  "type string" },
		{ "`metadata`:{`creationTimestamp`:true}",
		  "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.creationTimestamp of "
		  "type string" },
		{ "`metadata`:{`creationTimestamp`:{}}",
		  "json: cannot unmarshal object into Go struct field ObjectMeta.metadata.creationTimestamp of "
		  "type string" },
		{ "`metadata`:{`creationTimestamp`:[]}",
		  "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.creationTimestamp of "
		  "type string" },
		{ "`metadata`:{`creationTimestamp`:``}",
		  "parsing time `` as `2006-01-02T15:04:05Z07:00`: cannot parse `` as `2006`" },
		{ "`metadata`:{`creationTimestamp`:`x`}",
		  "parsing time `x` as `2006-01-02T15:04:05Z07:00`: cannot parse `x` as `2006`" },
		{ "`metadata`:{`creationTimestamp`:null}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`creationTimestamp`:`2020-01-01T00:00:00+02:00`}",
		  "`metadata`:{`creationTimestamp`:`2019-12-31T22:00:00Z`},`spec`:{`containers`:null},"
		  "`status`:{}" },
		{ "`metadata`:{`creationTimestamp`:`2020-01-01T00:00:00.999Z`}",
		  "`metadata`:{`creationTimestamp`:`2020-01-01T00:00:00Z`},`spec`:{`containers`:null},"
		  "`status`:{}" },
		{ "`metadata`:{`creationTimestamp`:`0001-01-01T00:00:00Z`}",
		  "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`creationTimestamp`:`2020-02-30T00:00:00Z`}",
		  "parsing time `2020-02-30T00:00:00Z`: day out of range" },
		{ "`metadata`:{`deletionTimestamp`:null}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`deletionTimestamp`:`2020-02-29T23:59:59Z`}",
		  "`metadata`:{`deletionTimestamp`:`2020-02-29T23:59:59Z`},`spec`:{`containers`:null},"
		  "`status`:{}" },
		{ "`metadata`:{`generation`:`1`}",
		  "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type "
		  "int64" },
		{ "`metadata`:{`generation`:9223372036854775808}",
		  "json: cannot unmarshal number 9223372036854775808 into Go struct field "
		  "ObjectMeta.metadata.generation of type int64" },
		{ "`metadata`:{`generation`:-9223372036854775808}",
		  "`metadata`:{`generation`:-9223372036854775808},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`finalizers`:[]}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`finalizers`:null}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:null", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`spec`:null", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`spec`:{`containers`:[]}", "`metadata`:{},`spec`:{`containers`:[]},`status`:{}" },
		{ "`spec`:{`containers`:null}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`spec`:{`volumes`:[{`hostPath`:1}]}",
		  "json: cannot unmarshal number into Go struct field "
		  "Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource" },
		{ "`spec`:{`volumes`:[{`hostPath`:{`path`:1}}]}",
		  "json: cannot unmarshal number into Go struct field "
		  "HostPathVolumeSource.spec.volumes.VolumeSource.hostPath.path of type string" },
		{ "`spec`:{`volumes`:[{`name`:`x`,`emptyDir`:{}}]}",
		  "`metadata`:{},`spec`:{`volumes`:[{`name`:`x`,`emptyDir`:{}}],`containers`:null},`status`:{}" },
		{ "`spec`:{`volumes`:[{`name`:`x`,`emptyDir`:null}]}",
		  "`metadata`:{},`spec`:{`volumes`:[{`name`:`x`}],`containers`:null},`status`:{}" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:`a`}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{},`livenessProbe`:{`httpGet`:{"
		  "`port`:`a`}}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:1}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{},`livenessProbe`:{`httpGet`:{"
		  "`port`:1}}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:1.5}}}]}",
		  "json: cannot unmarshal number 1.5 into Go struct field "
		  "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:true}}}]}",
		  "json: cannot unmarshal bool into Go struct field "
		  "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:{}}}}]}",
		  "json: cannot unmarshal object into Go struct field "
		  "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:null}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{},`livenessProbe`:{`httpGet`:{"
		  "`port`:0}}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:99999999999}}}]}",
		  "json: cannot unmarshal number 99999999999 into Go struct field "
		  "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:{`port`:``}}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{},`livenessProbe`:{`httpGet`:{"
		  "`port`:``}}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`httpGet`:`x`}}]}",
		  "json: cannot unmarshal string into Go struct field "
		  "Probe.spec.containers.livenessProbe.ProbeHandler.httpGet of type v1.HTTPGetAction" },
		{ "`spec`:{`containers`:[{`livenessProbe`:{`exec`:{`command`:{}}}}]}",
		  "json: cannot unmarshal object into Go struct field "
		  "ExecAction.spec.containers.livenessProbe.ProbeHandler.exec.command of type []string" },
		{ "`spec`:{`containers`:[{`securityContext`:{`runAsUser`:0,`privileged`:false}}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{},`securityContext`:{"
		  "`privileged`:false,`runAsUser`:0}}]},`status`:{}" },
		{ "`spec`:{`hostNetwork`:`x`}",
		  "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool" },
		{ "`spec`:{`hostNetwork`:1}",
		  "json: cannot unmarshal number into Go struct field PodSpec.spec.hostNetwork of type bool" },
		{ "`spec`:{`hostNetwork`:false}", "`metadata`:{},`spec`:{`containers`:null},`status`:{}" },
		{ "`spec`:{`priority`:0,`terminationGracePeriodSeconds`:0}",
		  "`metadata`:{},`spec`:{`containers`:null,`terminationGracePeriodSeconds`:0,`priority`:0},"
		  "`status`:{}" },
		{ "`spec`:{`tolerations`:[{`tolerationSeconds`:1.0}]}",
		  "json: cannot unmarshal number 1.0 into Go struct field "
		  "Toleration.spec.tolerations.tolerationSeconds of type int64" },
		{ "`spec`:{`restartPolicy`:5}",
		  "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type "
		  "v1.RestartPolicy" },
		{ "`spec`:{`dnsPolicy`:[`x`]}",
		  "json: cannot unmarshal array into Go struct field PodSpec.spec.dnsPolicy of type "
		  "v1.DNSPolicy" },
		{ "`status`:{`phase`:{}}",
		  "json: cannot unmarshal object into Go struct field PodStatus.status.phase of type "
		  "v1.PodPhase" },
		{ "`status`:{`conditions`:[{`type`:1}]}",
		  "json: cannot unmarshal number into Go struct field PodCondition.status.conditions.type of "
		  "type v1.PodConditionType" },
		{ "`status`:{`podIPs`:[1]}",
		  "json: cannot unmarshal number into Go struct field PodStatus.status.podIPs of type v1.PodIP" },
		{ "`foo`:1", "strict decoding error: unknown field `foo`" },
		{ "`spec`:{`foo`:1,`containers`:[{`bar`:{`x`:1}},{`name`:`a`,`name`:`b`,`Name`:`c`}]}",
		  "strict decoding error: unknown field `spec.foo`, unknown field `spec.containers[0].bar`, "
		  "duplicate field `spec.containers[1].name`, unknown field `spec.containers[1].Name`" },
		{ "`metadata`:{`labels`:{`a`:`1`,`a`:`2`},`foo`:1},`bar`:2,`bar`:3",
		  "strict decoding error: duplicate field `metadata.labels.a`, unknown field `metadata.foo`, "
		  "unknown field `bar`" },
		{ "`Spec`:{}", "strict decoding error: unknown field `Spec`" },
		{ "`metadata`:{`annotations`:{`x y\\n\\u0007\303\251\\u2028`:`1`,`x "
		  "y\\n\\u0007\303\251\\u2028`:`2`}}",
		  "strict decoding error: duplicate field `metadata.annotations.x y\\n\\a\303\251\\u2028`" },
		{ "`spec`:{`foo`:1.5e999}", "strict decoding error: unknown field `spec.foo`" },
		{ "`spec`:{`hostname`:`a`},`spec`:{`nodeName`:`b`}",
		  "strict decoding error: duplicate field `spec`" },
		{ "`spec`:{`hostname`:`a`},`spec`:{`hostname`:``}",
		  "strict decoding error: duplicate field `spec`" },
		{ "`spec`:{`hostname`:`a`},`spec`:null", "strict decoding error: duplicate field `spec`" },
		{ "`spec`:{`containers`:[{`name`:`a`,`image`:`x`},{`name`:`b`}]},`spec`:{`containers`:[{"
		  "`name`:`c`}]}",
		  "strict decoding error: duplicate field `spec`" },
		{ "`metadata`:{`labels`:{`a`:`1`}},`metadata`:{`labels`:{`b`:`2`}}",
		  "strict decoding error: duplicate field `metadata`" },
		{ "`metadata`:{`labels`:{`a`:`1`}},`metadata`:{`labels`:null}",
		  "strict decoding error: duplicate field `metadata`" },
		{ "`metadata`:{`labels`:{`a`:`1`},`labels`:{`b`:`1`}}",
		  "strict decoding error: duplicate field `metadata.labels`" },
		{ "`metadata`:{`generation`:5},`metadata`:{`generation`:null}",
		  "strict decoding error: duplicate field `metadata`" },
		{ "`metadata`:{`generation`:5},`metadata`:{`generation`:0}",
		  "strict decoding error: duplicate field `metadata`" },
		{ "`spec`:{`securityContext`:{`runAsUser`:5}},`spec`:{`securityContext`:{`runAsGroup`:6}}",
		  "strict decoding error: duplicate field `spec`" },
		{ "`spec`:{`containers`:[{`args`:[`a`,`b`]}]},`spec`:{`containers`:[{`args`:[null]}]}",
		  "strict decoding error: duplicate field `spec`" },
		{ "`metadata`:{`managedFields`:[{`fieldsV1`:{`a` : {  } , `b<`:1}}]}",
		  "`metadata`:{`managedFields`:[{`fieldsV1`:{`a`:{},`b\\u003c`:1}}]},`spec`:{"
		  "`containers`:null},`status`:{}" },
		{ "`metadata`:{`managedFields`:[{`fieldsV1`:null}]}",
		  "`metadata`:{`managedFields`:[{}]},`spec`:{`containers`:null},`status`:{}" },
		{ "`metadata`:{`managedFields`:[{`fieldsV1`:5,`time`:`2020-01-01T00:00:00Z`}]}",
		  "`metadata`:{`managedFields`:[{`time`:`2020-01-01T00:00:00Z`,`fieldsV1`:5}]},`spec`:{"
		  "`containers`:null},`status`:{}" },
		{ "`metadata`:{`managedFields`:[{`fieldsV1`:`x>`}]}",
		  "`metadata`:{`managedFields`:[{`fieldsV1`:`x\\u003e`}]},`spec`:{`containers`:null},`status`:{"
		  "}" },
		{ "`spec`:{`containers`:[{`image`:1}]},`metadata`:{`creationTimestamp`:1}",
		  "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of "
		  "type string" },
		{ "`spec`:{`containers`:[{`image`:1}]},`metadata`:{`creationTimestamp`:`x`}",
		  "parsing time `x` as `2006-01-02T15:04:05Z07:00`: cannot parse `x` as `2006`" },
		{ "`spec`:{`containers`:[{`image`:1,`args`:[2]}]}",
		  "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type "
		  "string" },
		{ "`spec`:{`containers`:[{`terminationMessagePath`:`\\ud83d\\ude00 \\ud83d x \\udc00 \\u0000 "
		  "\\/`}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`resources`:{},"
		  "`terminationMessagePath`:`\360\237\230\200 \357\277\275 x \357\277\275 \\u0000 /`}]},"
		  "`status`:{}" },
		{ "`metadata`:{`name`:`<>&\\u2028\\b\\f\\n\\r\\t\\u0001\177`}",
		  "`metadata`:{`name`:`\\u003c\\u003e\\u0026\\u2028\\b\\f\\n\\r\\t\\u0001\177`},`spec`:{"
		  "`containers`:null},`status`:{}" },
		{ "`spec`:{`overhead`:{`cpu`:`1`}}",
		  "`metadata`:{},`spec`:{`containers`:null,`overhead`:{`cpu`:`1`}},`status`:{}" },
		{ "`spec`:{`overhead`:{`cpu`:`0`}}",
		  "`metadata`:{},`spec`:{`containers`:null,`overhead`:{`cpu`:`0`}},`status`:{}" },
		{ "`spec`:{`ephemeralContainers`:[{`image`:3}]}",
		  "json: cannot unmarshal number into Go struct field "
		  "EphemeralContainer.spec.ephemeralContainers.EphemeralContainerCommon.image of type string" },
		{ "`spec`:{`containers`:[{`env`:[{`valueFrom`:{`configMapKeyRef`:{`name`:3}}}]}]}",
		  "json: cannot unmarshal number into Go struct field "
		  "ConfigMapKeySelector.spec.containers.env.valueFrom.configMapKeyRef.LocalObjectReference.name "
		  "of type string" },
		{ "`spec`:{`containers`:[{`env`:[{`valueFrom`:{`resourceFieldRef`:{`resource`:`limits.cpu`,"
		  "`divisor`:`1m`}}}]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`env`:[{`name`:``,`valueFrom`:{"
		  "`resourceFieldRef`:{`resource`:`limits.cpu`,`divisor`:`1m`}}}],`resources`:{}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`env`:[{`valueFrom`:{`resourceFieldRef`:{`resource`:`limits.cpu`,"
		  "`divisor`:`0`}}}]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`env`:[{`name`:``,`valueFrom`:{"
		  "`resourceFieldRef`:{`resource`:`limits.cpu`,`divisor`:`0`}}}],`resources`:{}}]},`status`:{}" },
		{ "`spec`:{`containers`:[{`env`:[{`valueFrom`:{`resourceFieldRef`:{"
		  "`resource`:`limits.cpu`}}}]}]}",
		  "`metadata`:{},`spec`:{`containers`:[{`name`:``,`env`:[{`name`:``,`valueFrom`:{"
		  "`resourceFieldRef`:{`resource`:`limits.cpu`,`divisor`:`0`}}}],`resources`:{}}]},`status`:{}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		str in = arena_printf(&a, "{`kind`:`Pod`,`apiVersion`:`v1`,%s}", t[i].in);
		str want = arena_printf(&a, t[i].want[0] == '`' ? "{`kind`:`Pod`,`apiVersion`:`v1`,%s}" : "%s", t[i].want);
		check_object(i, in.p, want.p);
	}
}

/* JSONSchemaProps and the types that are a schema or something else. */
TEST(json_decode_schema)
{
	static const struct row t[] = {
		{ "{`items`:true}", "{`items`:null}" },
		{ "{`items`:{}}", "{`items`:{}}" },
		{ "{`items`:[]}", "{`items`:null}" },
		{ "{`items`:[{`type`:`string`}]}", "{`items`:[{`type`:`string`}]}" },
		{ "{`items`:{`type`:5}}",
		  "json: cannot unmarshal number into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type of type string" },
		{ "{`items`:{`foo`:5,`type`:`a`,`type`:`b`}}", "{`items`:{`type`:`b`}}" },
		{ "{`items`:null}", "{}" },
		{ "{`additionalProperties`:true}", "{`additionalProperties`:true}" },
		{ "{`additionalProperties`:false}", "{`additionalProperties`:false}" },
		{ "{`additionalProperties`:{}}", "{`additionalProperties`:{}}" },
		{ "{`additionalProperties`:5}", "boolean or JSON schema expected" },
		{ "{`additionalProperties`:[]}", "boolean or JSON schema expected" },
		{ "{`additionalProperties`:null}", "{}" },
		{ "{`additionalProperties`:{`foo`:1}}", "{`additionalProperties`:{}}" },
		{ "{`dependencies`:{`a`:[`x`],`b`:{`type`:`object`},`c`:null,`d`:[],`e`:5}}",
		  "{`dependencies`:{`a`:[`x`],`b`:{`type`:`object`},`c`:null,`d`:null,`e`:null}}" },
		{ "{`dependencies`:{`a`:[1]}}",
		  "json: cannot unmarshal number into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.dependencies of type string" },
		{ "{`default`:null}", "{}" },
		{ "{`default`:{`b`:1,`a`:{`z`:[1,2.5,`x`]}}}", "{`default`:{`b`:1,`a`:{`z`:[1,2.5,`x`]}}}" },
		{ "{`enum`:[null,1,`a`,{}]}", "{`enum`:[null,1,`a`,{}]}" },
		{ "{`properties`:{`z`:{`type`:`string`},`a`:{`items`:{`externalDocs`:{`url`:5}}}}}",
		  "json: cannot unmarshal number into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.items.externalDocs.url of "
		  "type string" },
		{ "{`items`:{`type`:5,`items`:{`format`:6}}}",
		  "json: cannot unmarshal number into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.items.format of type string" },
		{ "{`type`:5,`items`:{`format`:6}}",
		  "json: cannot unmarshal number into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.format of type string" },
		{ "{`maximum`:1.5,`minimum`:0,`maxLength`:0}", "{`maximum`:1.5,`minimum`:0,`maxLength`:0}" },
		{ "{`maximum`:`x`}",
		  "json: cannot unmarshal string into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.maximum of type float64" },
		{ "{`maximum`:1e400}",
		  "json: cannot unmarshal number 1e400 into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.maximum of type float64" },
		{ "{`multipleOf`:5}", "{`multipleOf`:5}" },
		{ "{`properties`:{`a`:5}}",
		  "json: cannot unmarshal number into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties of type v1.JSONSchemaProps" },
		{ "{`x-kubernetes-preserve-unknown-fields`:false}",
		  "{`x-kubernetes-preserve-unknown-fields`:false}" },
		{ "{`example`:`<&>`,`$schema`:`x`,`$ref`:`y`}",
		  "{`$schema`:`x`,`$ref`:`y`,`example`:`\\u003c\\u0026\\u003e`}" },
		{ "{`maxLength`:1.0}",
		  "json: cannot unmarshal number 1.0 into Go struct field "
		  "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.maxLength of type int64" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct strict_errors strict = { .arena = &a };
		struct err err = ERR_INIT;
		const struct type *type = NULL;
		struct val v;
		str in = arena_printf(&a, "{`kind`:`CustomResourceDefinition`,`apiVersion`:`apiextensions.k8s.io/v1`,`spec`:"
				      "{`versions`:[{`schema`:{`openAPIV3Schema`:%s}}]}}", t[i].in);
		int r = json_decode_object(&a, quoted(&a, in.p), &strict, &v, &type, &err);
		if (r == 0)
			r = strict_errors_fail(&strict, &err);
		if (r == 0) {
			struct json_encode_options opt = { .type = TYPE(apiextensions_v1, JSONSchemaProps) };
			v = val_get(val_at(val_get(v, spec, versions), 0), schema, openAPIV3Schema);
			r = json_encode(&out, v, &opt, &err);
		}
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : buf_str(&out), quoted(&a, t[i].want).p);
	}
}

TEST(json_decode_other_kinds)
{
	static const struct row t[] = {
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:`!`}}", "illegal base64 data at input byte 0" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:`YQ==`}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:`YQ==`}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:`YR==`}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:`YQ==`}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:`YQ=\\n=`}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:`YQ==`}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:`YQ`}}", "illegal base64 data at input byte 0" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:null}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:null}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:``}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:``}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[1,2,255]}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:`AQL/`}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[1,256]}}",
		  "json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[]}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:``}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[`x`]}}",
		  "json: cannot unmarshal string into Go struct field Secret.data of type uint8" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:5}}",
		  "json: cannot unmarshal number into Go struct field Secret.data of type []uint8" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:{}}}",
		  "json: cannot unmarshal object into Go struct field Secret.data of type []uint8" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:[]}",
		  "json: cannot unmarshal array into Go struct field Secret.data of type map[string][]uint8" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:null}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`immutable`:false}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`immutable`:false}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:`!`},`type`:5}",
		  "illegal base64 data at input byte 0" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[null]}}",
		  "{`kind`:`Secret`,`apiVersion`:`v1`,`metadata`:{},`data`:{`a`:`AA==`}}" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[1.5]}}",
		  "json: cannot unmarshal number 1.5 into Go struct field Secret.data of type uint8" },
		{ "{`kind`:`Secret`,`apiVersion`:`v1`,`data`:{`a`:[-0]}}",
		  "json: cannot unmarshal number -0 into Go struct field Secret.data of type uint8" },
		{ "{`kind`:`Service`,`apiVersion`:`v1`,`spec`:{`ports`:[{`port`:80}]}}",
		  "{`kind`:`Service`,`apiVersion`:`v1`,`metadata`:{},`spec`:{`ports`:[{`port`:80,"
		  "`targetPort`:0}]},`status`:{`loadBalancer`:{}}}" },
		{ "{`kind`:`Service`,`apiVersion`:`v1`,`spec`:{`ports`:[{`port`:80,`targetPort`:`x`},{"
		  "`targetPort`:null},{`targetPort`:0},{`targetPort`:``}]}}",
		  "{`kind`:`Service`,`apiVersion`:`v1`,`metadata`:{},`spec`:{`ports`:[{`port`:80,"
		  "`targetPort`:`x`},{`port`:0,`targetPort`:0},{`port`:0,`targetPort`:0},{`port`:0,"
		  "`targetPort`:``}]},`status`:{`loadBalancer`:{}}}" },
		{ "{`kind`:`Event`,`apiVersion`:`v1`,`eventTime`:`2020-01-01T00:00:00.123456Z`}",
		  "{`kind`:`Event`,`apiVersion`:`v1`,`metadata`:{},`involvedObject`:{},`source`:{},"
		  "`firstTimestamp`:null,`lastTimestamp`:null,`eventTime`:`2020-01-01T00:00:00.123456Z`,"
		  "`reportingComponent`:``,`reportingInstance`:``}" },
		{ "{`kind`:`Event`,`apiVersion`:`v1`,`eventTime`:`2020-01-01T00:00:00Z`}",
		  "parsing time `2020-01-01T00:00:00Z` as `2006-01-02T15:04:05.000000Z07:00`: cannot parse `Z` "
		  "as `.000000`" },
		{ "{`kind`:`Event`,`apiVersion`:`v1`,`eventTime`:null}",
		  "{`kind`:`Event`,`apiVersion`:`v1`,`metadata`:{},`involvedObject`:{},`source`:{},"
		  "`firstTimestamp`:null,`lastTimestamp`:null,`eventTime`:null,`reportingComponent`:``,"
		  "`reportingInstance`:``}" },
		{ "{`kind`:`Event`,`apiVersion`:`v1`,`eventTime`:5}",
		  "json: cannot unmarshal number into Go struct field Event.eventTime of type string" },
		{ "{`kind`:`Event`,`apiVersion`:`v1`,`firstTimestamp`:`0001-01-01T00:00:00Z`}",
		  "{`kind`:`Event`,`apiVersion`:`v1`,`metadata`:{},`involvedObject`:{},`source`:{},"
		  "`firstTimestamp`:null,`lastTimestamp`:null,`eventTime`:null,`reportingComponent`:``,"
		  "`reportingInstance`:``}" },
		{ "{`kind`:`Lease`,`apiVersion`:`coordination.k8s.io/v1`,`spec`:{"
		  "`renewTime`:`2020-01-01T00:00:00.1Z`}}",
		  "parsing time `2020-01-01T00:00:00.1Z` as `2006-01-02T15:04:05.000000Z07:00`: cannot parse "
		  "`.1Z` as `.000000`" },
		{ "{`kind`:`Lease`,`apiVersion`:`coordination.k8s.io/v1`,`spec`:{"
		  "`renewTime`:`2020-01-01T00:00:00.123456Z`}}",
		  "{`kind`:`Lease`,`apiVersion`:`coordination.k8s.io/v1`,`metadata`:{},`spec`:{"
		  "`renewTime`:`2020-01-01T00:00:00.123456Z`}}" },
		{ "{`kind`:`Deployment`,`apiVersion`:`apps/v1`,`spec`:{`strategy`:{`rollingUpdate`:{"
		  "`maxSurge`:`25%`,`maxUnavailable`:0}},`replicas`:0}}",
		  "{`kind`:`Deployment`,`apiVersion`:`apps/v1`,`metadata`:{},`spec`:{`replicas`:0,"
		  "`selector`:null,`template`:{`metadata`:{},`spec`:{`containers`:null}},`strategy`:{"
		  "`rollingUpdate`:{`maxUnavailable`:0,`maxSurge`:`25%`}}},`status`:{}}" },
		{ "{`kind`:`Deployment`,`apiVersion`:`apps/v1`,`spec`:{`replicas`:`3`}}",
		  "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type "
		  "int32" },
		{ "{`kind`:`List`,`apiVersion`:`v1`,`items`:[{`b`:1,`a`:2},null,5]}",
		  "{`kind`:`List`,`apiVersion`:`v1`,`metadata`:{},`items`:[{`b`:1,`a`:2},null,5]}" },
		{ "{`kind`:`PodList`,`apiVersion`:`v1`,`items`:[{`spec`:{`containers`:[{`image`:1}]}}]}",
		  "json: cannot unmarshal number into Go struct field Container.items.spec.containers.image of "
		  "type string" },
		{ "{`kind`:`PodList`,`apiVersion`:`v1`,`items`:[{`bar`:1,`spec`:{`foo`:1}}]}",
		  "strict decoding error: unknown field `items[0].bar`, unknown field `items[0].spec.foo`" },
		{ "{`kind`:`PodList`,`apiVersion`:`v1`,`items`:null}",
		  "{`kind`:`PodList`,`apiVersion`:`v1`,`metadata`:{},`items`:null}" },
		{ "{`kind`:`PodList`,`apiVersion`:`v1`,`items`:[]}",
		  "{`kind`:`PodList`,`apiVersion`:`v1`,`metadata`:{},`items`:[]}" },
		{ "{`kind`:`Status`,`apiVersion`:`v1`,`code`:5,`details`:{`causes`:[]}}",
		  "{`kind`:`Status`,`apiVersion`:`v1`,`metadata`:{},`details`:{},`code`:5}" },
		{ "{`kind`:`TokenReview`,`apiVersion`:`authentication.k8s.io/v1`,`status`:{`user`:{`extra`:{"
		  "`b`:[`x`],`a`:null,`c`:[],`d`:5}}}}",
		  "json: cannot unmarshal number into Go struct field UserInfo.status.user.extra of type "
		  "v1.ExtraValue" },
		{ "{`kind`:`TokenReview`,`apiVersion`:`authentication.k8s.io/v1`,`status`:{`user`:{`extra`:{"
		  "`b`:[`x`],`a`:null,`c`:[]}}}}",
		  "{`kind`:`TokenReview`,`apiVersion`:`authentication.k8s.io/v1`,`metadata`:{},`spec`:{},"
		  "`status`:{`user`:{`extra`:{`a`:null,`b`:[`x`],`c`:[]}}}}" },
		{ "{`kind`:`TokenReview`,`apiVersion`:`authentication.k8s.io/v1`,`status`:{`user`:{`extra`:{"
		  "`b`:[5]}}}}",
		  "json: cannot unmarshal number into Go struct field UserInfo.status.user.extra of type string" },
		{ "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`data`:{`b`:1,`a`:[1,`<`]}}",
		  "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`metadata`:{},`data`:{`b`:1,`a`:[1,"
		  "`\\u003c`]},`revision`:0}" },
		{ "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`data`:null}",
		  "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`metadata`:{},`data`:null,`revision`:0}" },
		{ "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`data`:5}",
		  "{`kind`:`ControllerRevision`,`apiVersion`:`apps/v1`,`metadata`:{},`data`:5,`revision`:0}" },
		{ "{`kind`:`HorizontalPodAutoscaler`,`apiVersion`:`autoscaling/v2`,`spec`:{`metrics`:[{"
		  "`type`:`Resource`,`resource`:{`name`:`cpu`,`target`:{`type`:`Utilization`,"
		  "`averageUtilization`:50,`averageValue`:`1k`,`value`:null}}}]}}",
		  "{`kind`:`HorizontalPodAutoscaler`,`apiVersion`:`autoscaling/v2`,`metadata`:{},`spec`:{"
		  "`scaleTargetRef`:{`kind`:``,`name`:``},`maxReplicas`:0,`metrics`:[{`type`:`Resource`,"
		  "`resource`:{`name`:`cpu`,`target`:{`type`:`Utilization`,`averageValue`:`1k`,"
		  "`averageUtilization`:50}}}]},`status`:{`desiredReplicas`:0,`currentMetrics`:null}}" },
		{ "{`kind`:`CronJob`,`apiVersion`:`batch/v1`,`spec`:{`schedule`:`* * * * *`}}",
		  "{`kind`:`CronJob`,`apiVersion`:`batch/v1`,`metadata`:{},`spec`:{`schedule`:`* * * * *`,"
		  "`jobTemplate`:{`metadata`:{},`spec`:{`template`:{`metadata`:{},`spec`:{"
		  "`containers`:null}}}}},`status`:{}}" },
		{ "{`kind`:`Job`,`apiVersion`:`batch/v1`,`spec`:{`template`:{`spec`:{`containers`:[]}}}}",
		  "{`kind`:`Job`,`apiVersion`:`batch/v1`,`metadata`:{},`spec`:{`template`:{`metadata`:{},"
		  "`spec`:{`containers`:[]}}},`status`:{}}" },
		{ "{`kind`:`Role`,`apiVersion`:`rbac.authorization.k8s.io/v1`,`rules`:[]}",
		  "{`kind`:`Role`,`apiVersion`:`rbac.authorization.k8s.io/v1`,`metadata`:{},`rules`:[]}" },
		{ "{`kind`:`Role`,`apiVersion`:`rbac.authorization.k8s.io/v1`,`rules`:[{`verbs`:[]},{"
		  "`verbs`:null},{}]}",
		  "{`kind`:`Role`,`apiVersion`:`rbac.authorization.k8s.io/v1`,`metadata`:{},`rules`:[{"
		  "`verbs`:[]},{`verbs`:null},{`verbs`:null}]}" },
		{ "{`kind`:`NetworkPolicy`,`apiVersion`:`networking.k8s.io/v1`,`spec`:{`podSelector`:{},"
		  "`ingress`:[{}]}}",
		  "{`kind`:`NetworkPolicy`,`apiVersion`:`networking.k8s.io/v1`,`metadata`:{},`spec`:{"
		  "`podSelector`:{},`ingress`:[{}]}}" },
		{ "{`kind`:`ConfigMap`,`apiVersion`:`v1`,`data`:{`a`:`x`,`1`:`y`,`ab`:`z`,`B`:`q`},"
		  "`binaryData`:{`x`:`AA==`}}",
		  "{`kind`:`ConfigMap`,`apiVersion`:`v1`,`metadata`:{},`data`:{`1`:`y`,`B`:`q`,`a`:`x`,"
		  "`ab`:`z`},`binaryData`:{`x`:`AA==`}}" },
		{ "{`kind`:`StorageClass`,`apiVersion`:`storage.k8s.io/v1`,`provisioner`:``,`parameters`:{}}",
		  "{`kind`:`StorageClass`,`apiVersion`:`storage.k8s.io/v1`,`metadata`:{},`provisioner`:``}" },
		{ "{`kind`:`PodDisruptionBudget`,`apiVersion`:`policy/v1`,`spec`:{`minAvailable`:`50%`},"
		  "`status`:{}}",
		  "{`kind`:`PodDisruptionBudget`,`apiVersion`:`policy/v1`,`metadata`:{},`spec`:{"
		  "`minAvailable`:`50%`},`status`:{`disruptionsAllowed`:0,`currentHealthy`:0,`desiredHealthy`:0,"
		  "`expectedPods`:0}}" },
		{ "{`kind`:`AdmissionReview`,`apiVersion`:`admission.k8s.io/v1`,`request`:{`uid`:`x`,`object`:{"
		  "`b`:1,`a`:2},`oldObject`:null,`options`:5}}",
		  "{`kind`:`AdmissionReview`,`apiVersion`:`admission.k8s.io/v1`,`request`:{`uid`:`x`,`kind`:{"
		  "`group`:``,`version`:``,`kind`:``},`resource`:{`group`:``,`version`:``,`resource`:``},"
		  "`operation`:``,`userInfo`:{},`object`:{`b`:1,`a`:2},`oldObject`:null,`options`:5}}" },
		{ "{`kind`:`Namespace`,`apiVersion`:`v1`,`spec`:{`finalizers`:[`kubernetes`]}}",
		  "{`kind`:`Namespace`,`apiVersion`:`v1`,`metadata`:{},`spec`:{`finalizers`:[`kubernetes`]},"
		  "`status`:{}}" },
		{ "{`kind`:`Node`,`apiVersion`:`v1`,`status`:{`capacity`:{`cpu`:`4`,`memory`:`16Gi`},"
		  "`images`:[{`names`:null,`sizeBytes`:5},{`names`:[]}]}}",
		  "{`kind`:`Node`,`apiVersion`:`v1`,`metadata`:{},`spec`:{},`status`:{`capacity`:{`cpu`:`4`,"
		  "`memory`:`16Gi`},`daemonEndpoints`:{`kubeletEndpoint`:{`Port`:0}},`nodeInfo`:{`machineID`:``,"
		  "`systemUUID`:``,`bootID`:``,`kernelVersion`:``,`osImage`:``,`containerRuntimeVersion`:``,"
		  "`kubeletVersion`:``,`kubeProxyVersion`:``,`operatingSystem`:``,`architecture`:``},`images`:[{"
		  "`names`:null,`sizeBytes`:5},{`names`:[]}]}}" },
		{ "{`kind`:`PersistentVolumeClaim`,`apiVersion`:`v1`,`spec`:{`accessModes`:[1]}}",
		  "json: cannot unmarshal number into Go struct field "
		  "PersistentVolumeClaimSpec.spec.accessModes of type v1.PersistentVolumeAccessMode" },
		{ "{`kind`:`PersistentVolumeClaim`,`apiVersion`:`v1`,`spec`:{`accessModes`:`ReadWriteOnce`}}",
		  "json: cannot unmarshal string into Go struct field "
		  "PersistentVolumeClaimSpec.spec.accessModes of type []v1.PersistentVolumeAccessMode" },
		{ "{`kind`:`PersistentVolumeClaim`,`apiVersion`:`v1`,`spec`:{`accessModes`:[`ReadWriteOnce`],"
		  "`resources`:{`requests`:{`storage`:`1Gi`}}}}",
		  "{`kind`:`PersistentVolumeClaim`,`apiVersion`:`v1`,`metadata`:{},`spec`:{"
		  "`accessModes`:[`ReadWriteOnce`],`resources`:{`requests`:{`storage`:`1Gi`}}},`status`:{}}" },
		{ "{`kind`:`ResourceQuota`,`apiVersion`:`v1`,`spec`:{`hard`:{`pods`:10,`cpu`:`1000m`}}}",
		  "{`kind`:`ResourceQuota`,`apiVersion`:`v1`,`metadata`:{},`spec`:{`hard`:{`cpu`:`1`,"
		  "`pods`:`10`}},`status`:{}}" },
		{ "{`kind`:`ResourceQuota`,`apiVersion`:`v1`,`spec`:{`hard`:[]}}",
		  "json: cannot unmarshal array into Go struct field ResourceQuotaSpec.spec.hard of type "
		  "v1.ResourceList" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		check_object(i, t[i].in, t[i].want);
}

/* Numbers and strings where no type says what they should be. */
TEST(json_decode_free)
{
	static const struct row t[] = {
		{ "0", "0" }, { "-0", "0" }, { "-0.0", "-0" }, { "1.0", "1" }, { "1e3", "1000" }, { "1E+2", "100" }, { "0.1", "0.1" },
		{ "9223372036854775807", "9223372036854775807" }, { "-9223372036854775808", "-9223372036854775808" },
		{ "9223372036854775808", "9223372036854776000" }, { "12345678901234567890123", "1.2345678901234568e+22" },
		{ "0.30000000000000004", "0.30000000000000004" }, { "123456789.123456789", "123456789.12345679" }, { "1e-400", "0" },
		{ "1e-7", "1e-7" }, { "1e400", "json: cannot unmarshal number 1e400 into Go value of type float64" },
		{ "true", "true" }, { "false", "false" }, { "null", "null" }, { "[]", "[]" }, { "{}", "{}" }, { " [ 1 , { } ] ", "[1,{}]" },
		{ "`\\u0041\\n\\/\\\\`", "`A\\n/\\\\`" }, { "`\\ud83d\\ude00`", "`\360\237\230\200`" },
		{ "`\\ud83d`", "`\357\277\275`" }, { "`\\udc00\\ud800x`", "`\357\277\275\357\277\275x`" },
		{ "`a\377b`", "`a\357\277\275b`" }, { "`\355\240\200`", "`\357\277\275\357\277\275\357\277\275`" },
		{ "`\\u0000`", "`\\u0000`" }, { "{`b`:1,`a`:2,`b`:3}", "{`a`:2,`b`:3}" }, { "{`a\\u0062`:1,`ab`:2}", "{`ab`:2}" },
		{ "{`kind`:1,`zz`:2,`Kind`:3}", "{`Kind`:3,`kind`:1,`zz`:2}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct json_decode_options opt = { .sort_keys = true };
		struct json_encode_options encode = { .type = NULL };
		struct err err = ERR_INIT;
		struct val v;
		int r = json_decode(&a, quoted(&a, t[i].in), &opt, &v, &err);
		if (r == 0)
			r = json_encode(&out, v, &encode, &err);
		CHECK_STR_ROW(i, r < 0 ? err_str(&err) : buf_str(&out), quoted(&a, t[i].want).p);
	}
}

TEST(json_decode_free_keeps_order)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct strict_errors strict = { .arena = &a };
	struct json_decode_options opt = { .strict = &strict };
	struct json_encode_options encode = { .type = NULL };
	struct val v;

	CHECK(json_decode(&a, STR("{\"b\":{\"x\":1,\"x\":2},\"a\":[0,{\"y\":1,\"y\":1}],\"b\":null}"), &opt, &v, NULL) == 0);
	CHECK(json_encode(&out, v, &encode, NULL) == 0);
	CHECK_STR(buf_str(&out), "{\"b\":{\"x\":1,\"x\":2},\"a\":[0,{\"y\":1,\"y\":1}],\"b\":null}");
	CHECK_INT(strict.n, 3);
	CHECK_STR(strict.text[0], "duplicate field \"b.x\"");
	CHECK_STR(strict.text[1], "duplicate field \"a[1].y\"");
	CHECK_STR(strict.text[2], "duplicate field \"b\"");
}

/* What a reader of the tree sees: no nulls, no zeros, the order of the schema, sorted maps, borrowed strings. */
TEST(json_decode_tree)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	str text = quoted(&a, "{`spec`:{`priority`:0,`hostname`:``,`containers`:[{`image`:`i`,`name`:`n`,`args`:[]}]},"
			      "`metadata`:{`labels`:{`b`:`1`,`a`:`2`},`annotations`:{}},`apiVersion`:`v1`,`kind`:`Pod`}");
	const struct type *type;
	struct val v;

	CHECK(json_decode_object(&a, text, NULL, &v, &type, NULL) == 0);
	CHECK(type == TYPE(core_v1, Pod));
	CHECK_INT(v.n, 4);
	CHECK(v.members[0].key == A_kind && v.members[1].key == A_apiVersion && v.members[2].key == A_metadata);
	CHECK(!val_has(v, metadata, annotations) && !val_has(v, spec, hostname));
	CHECK(val_has(v, spec, priority)); /* a pointer: zero is not absent */
	struct val labels = val_get(v, metadata, labels), container = val_at(val_get(v, spec, containers), 0);
	CHECK_STR(atom_str(labels.members[0].key), "a");
	CHECK_INT(container.n, 2);
	CHECK(container.members[0].key == A_name);
	str image = val_str(container, image);
	CHECK(image.p > text.p && image.p < text.p + text.n);
}

static str nested(struct arena *a, unsigned depth, char open, char close)
{
	char *text = arena_alloc(a, 2 * depth + 1, 1);
	memset(text, open, depth);
	memset(text + depth, close, depth);
	return str_span(text, 2 * depth);
}

TEST(json_decode_depth)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct json_decode_options opt = { .type = NULL };
	struct json_encode_options encode = { .type = NULL };
	struct err err = ERR_INIT;
	struct val v;

	CHECK(json_decode(&a, nested(&a, VAL_MAX_DEPTH, '[', ']'), &opt, &v, &err) == 0);
	CHECK(json_encode(&out, v, &encode, &err) == 0);
	CHECK_INT(out.n, 2 * VAL_MAX_DEPTH);
	CHECK(json_decode(&a, nested(&a, VAL_MAX_DEPTH + 1, '[', ']'), &opt, &v, &err) < 0);
	CHECK_STR(err_str(&err), "invalid character '[' exceeded max depth");
	/* Also where the value is passed over or kept as text. */
	opt.type = TYPE(core_v1, Pod);
	str unknown = arena_printf(&a, "{\"x\":" STR_FMT "}", STR_ARG(nested(&a, VAL_MAX_DEPTH, '[', ']')));
	CHECK(json_decode(&a, unknown, &opt, &v, &err) < 0);
	CHECK_STR(err_str(&err), "invalid character '[' exceeded max depth");
}

TEST(json_strict_limit)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct strict_errors strict = { .arena = &a };
	struct json_decode_options opt = { .type = TYPE(core_v1, Pod), .strict = &strict };
	struct err err = ERR_INIT;
	struct val v;

	buf_addc(&in, '{');
	for (int i = 0; i < 300; i++)
		buf_addf(&in, "\"x%d\":1,\"x%d\":2,", i, i);
	buf_add(&in, STR("\"kind\":\"Pod\"}"));
	CHECK(json_decode(&a, buf_str(&in), &opt, &v, &err) == 0);
	CHECK_INT(strict.n, STRICT_ERRORS_MAX);
	CHECK_STR(strict.text[99], "unknown field \"x99\"");
	CHECK(strict_errors_fail(&strict, &err) == -ERR_BAD_REQUEST);
	CHECK(str_starts(err_str(&err), STR("strict decoding error: unknown field \"x0\", unknown field \"x1\", ")));
}

TEST(json_decode_many_keys)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT(64 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct strict_errors strict = { .arena = &a };
	struct json_decode_options opt = { .type = TYPE(core_v1, ConfigMap), .strict = &strict };
	struct val v;

	/* Backwards, so that sorting has to work; a quadratic decoder would take minutes. */
	buf_add(&in, STR("{\"data\":{"));
	for (int i = 200000; i > 0; i--)
		buf_addf(&in, "\"key-%07d\":\"\",", i);
	buf_add(&in, STR("\"key-0000001\":\"last\"}}"));
	CHECK(json_decode(&a, buf_str(&in), &opt, &v, NULL) == 0);
	CHECK_INT(val_get(v, data).n, 200000);
	CHECK_STR(val_as_str(val_get(v, data).members[0].val), "last");
	CHECK_INT(strict.n, 1);
	CHECK_STR(strict.text[0], "duplicate field \"data.key-0000001\"");
}

/* A large map that is repeated many times must not be copied as often. */
TEST(json_decode_repeated)
{
	CLEANUP(buf_done) struct buf in = BUF_INIT(64 << 20);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct json_decode_options opt = { .type = TYPE(core_v1, ConfigMap) };
	struct err err = ERR_INIT;
	struct val v;

	buf_add(&in, STR("{\"data\":{"));
	for (int i = 0; i < 50000; i++)
		buf_addf(&in, "%s\"k%d\":\"\"", i ? "," : "", i);
	buf_add(&in, STR("}"));
	for (int i = 0; i < 50000; i++)
		buf_add(&in, STR(",\"data\":{}"));
	buf_add(&in, STR("}"));
	CHECK(json_decode(&a, buf_str(&in), &opt, &v, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "too many duplicate fields");
}

TEST(json_decode_nothing)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct json_decode_options opt = { .type = NULL };
	struct err err = ERR_INIT;
	const struct type *type;
	struct val v;

	CHECK(json_decode(&a, STR_NONE, &opt, &v, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "unexpected end of JSON input");
	CHECK(json_decode_object(&a, STR_NONE, NULL, &v, &type, &err) == -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "couldn't get version/kind; json parse error: unexpected end of JSON input");
}

/* The decoder notes the fields that it has seen in a fixed number of bits. */
TEST(json_types_are_not_too_wide)
{
	for (size_t i = 0; i < schema_n_types; i++)
		CHECK(schema_types[i]->n_fields <= 256);
}
