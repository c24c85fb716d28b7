#include "machinery/field_selector.h"

#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/testing.h"

TEST(field_selector_parse)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "", "" },
		{ "a=b", "a=b" },
		{ "a==b", "a=b" },
		{ "c=d,a!=b", "a!=b,c=d" },
		{ "a=b,,c=d,", "a=b,c=d" },
		{ "a=\\,\\=\\\\", "a=\\,\\=\\\\" },
		{ "=", "" },
		{ "a!==b", "! invalid field selector: unescaped character in value: 61" },
		{ "a=b=c", "! invalid field selector: unescaped character in value: 61" },
		{ "a=\\x", "! invalid field selector: invalid escape sequence: \\x" },
		{ "a=\\", "! invalid field selector: invalid escape sequence: \\" },
		{ "a=\\\xc3\xa9", "! invalid field selector: invalid escape sequence: \\\xc3\xa9" },
		{ "a=b,c", "! invalid selector: 'a=b,c'; can't understand 'c'" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct field_selector s;
		struct err err = ERR_INIT;
		int r = field_selector_parse(&a, str_of(t[i].text), &s, &err);
		CHECK_STR_ROW(i, r < 0 ? testing_error(&a, &err) : field_selector_text(&a, &s), t[i].want);
	}
	arena_done(&a);
}

static struct val example_pod(struct arena *a)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("web")), F(namespace, VAL_LIT("prod")))),
		      F(spec, OBJECT(a, F(nodeName, VAL_LIT("n1")))),
		      F(status, OBJECT(a, F(phase, VAL_LIT("Running")),
				       F(podIPs, LIST(a, OBJECT(a, F(ip, VAL_LIT("10.0.0.7"))), OBJECT(a, F(ip, VAL_LIT("fd00::7"))))))));
}

static struct val example_event(struct arena *a)
{
	return OBJECT(a, F(metadata, OBJECT(a, F(name, VAL_LIT("e")))), F(involvedObject, OBJECT(a, F(kind, VAL_LIT("Pod")))),
		      F(reason, VAL_LIT("Started")), F(reportingComponent, VAL_LIT("kubelet")));
}

TEST(field_selector_matches)
{
	struct arena a = ARENA_INIT;
	const struct {
		const char *text;
		const struct type *kind;
		struct val object;
		bool want;
	} t[] = {
		{ "", TYPE(core_v1, Pod), example_pod(&a), true },
		{ "metadata.name=web,metadata.namespace=prod", TYPE(core_v1, Pod), example_pod(&a), true },
		{ "spec.nodeName!=n1", TYPE(core_v1, Pod), example_pod(&a), false },
		{ "spec.host=n1", TYPE(core_v1, Pod), example_pod(&a), true },
		{ "status.podIP=10.0.0.7", TYPE(core_v1, Pod), example_pod(&a), true },
		{ "status.podIPs=", TYPE(core_v1, Pod), example_pod(&a), true },
		{ "spec.hostNetwork=false,spec.restartPolicy=", TYPE(core_v1, Pod), example_pod(&a), true },
		{ "spec.unschedulable=true", TYPE(core_v1, Node), OBJECT(&a, F(spec, OBJECT(&a, F(unschedulable, val_of_bool(true))))), true },
		{ "spec.unschedulable=false", TYPE(core_v1, Node), VAL_EMPTY_OBJECT, true },
		{ "status.replicas=0", TYPE(core_v1, ReplicationController), VAL_EMPTY_OBJECT, true },
		{ "status.successful=3", TYPE(batch_v1, Job), OBJECT(&a, F(status, OBJECT(&a, F(succeeded, val_of_int(3))))), true },
		{ "involvedObject.kind=Pod,source=kubelet", TYPE(core_v1, Event), example_event(&a), true },
		{ "regarding.kind=Pod,reportingController=kubelet", TYPE(events_v1, Event), example_event(&a), true },
		{ "regarding.kind=Node", TYPE(events_v1, Event), example_event(&a), false },
		{ "metadata.namespace=", TYPE(apps_v1, Deployment), VAL_EMPTY_OBJECT, true },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct field_selector s;
		CHECK_ROW(i, field_selector_parse(&a, str_of(t[i].text), &s, NULL) == 0);
		CHECK_ROW(i, field_selector_bind(&a, &s, t[i].kind, NULL) == 0);
		CHECK_ROW(i, field_selector_matches(&s, t[i].object) == t[i].want);
	}
	arena_done(&a);
}

TEST(field_selector_unknown_field)
{
	static const struct {
		const struct type *kind;
		const char *want;
	} t[] = {
		{ TYPE(core_v1, Pod), "field label not supported: spec.color" },
		{ TYPE(batch_v1, Job), "field label \"spec.color\" not supported for Job" },
		{ TYPE(resource_v1, ResourceSlice), "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.color" },
		{ TYPE(apps_v1, Deployment),
		  "\"spec.color\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"" },
	};
	struct arena a = ARENA_INIT;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct field_selector s;
		struct err err = ERR_INIT;
		CHECK_ROW(i, field_selector_parse(&a, STR("spec.color=red"), &s, NULL) == 0);
		CHECK_ROW(i, field_selector_bind(&a, &s, t[i].kind, &err) == -ERR_BAD_REQUEST);
		CHECK_STR_ROW(i, err_str(&err), t[i].want);
	}
	arena_done(&a);
}

TEST(field_selector_custom)
{
	static const str fields[] = { STR_INIT(".spec.color"), STR_INIT(".spec.count") };
	struct arena a = ARENA_INIT;
	struct field_selector s;
	struct err err = ERR_INIT;
	struct val spec = VAL_EMPTY;
	spec = val_put(&a, spec, atom_make(&a, STR("color")), VAL_LIT("red"));
	spec = val_put(&a, spec, atom_make(&a, STR("count")), val_of_int(3));
	struct val object = OBJECT(&a, F(spec, spec));

	CHECK_INT(field_selector_parse(&a, STR("spec.color=red,spec.count=3"), &s, NULL), 0);
	CHECK_INT(field_selector_bind_custom(&a, &s, false, fields, 2, NULL), 0);
	CHECK(field_selector_matches(&s, object));
	CHECK_INT(field_selector_parse(&a, STR("metadata.namespace=x"), &s, NULL), 0);
	CHECK_INT(field_selector_bind_custom(&a, &s, true, fields, 2, NULL), 0);
	CHECK_INT(field_selector_bind_custom(&a, &s, false, fields, 2, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "field label not supported: metadata.namespace");
	arena_done(&a);
}

TEST(field_selector_requires)
{
	struct arena a = ARENA_INIT;
	struct field_selector s;
	str value;
	CHECK_INT(field_selector_parse(&a, STR("spec.host=n1,metadata.name!=x"), &s, NULL), 0);
	CHECK_INT(field_selector_bind(&a, &s, TYPE(core_v1, Pod), NULL), 0);
	CHECK(field_selector_requires(&s, STR("spec.nodeName"), &value));
	CHECK_STR(value, "n1");
	CHECK(!field_selector_requires(&s, STR("metadata.name"), &value));
	arena_done(&a);
}
