#include "kubectl/ktl_testing.h"
#include "kubectl/print.h"

TEST(print_tables)
{
	static const char table[] =
		"{kind: Table, columnDefinitions: [{name: Name, type: string, format: name}, {name: Ready, type: string}, {name: Node, type: string, priority: 1}],"
		" rows: [{cells: [web, 1/1, n1], object: {metadata: {namespace: a, labels: {x: z}}}}, {cells: [\"two\\nlines\", 3, null], object: {metadata: {namespace: b}}}]}";
	static const char *const labels[] = { "k8s.io/x", "x" };
	const struct { struct ktl_table_options options; const char *event, *want; } cases[] = {
		{ { 0 }, "", "NAME     READY\nweb      1/1\ntwo...   3\n" },
		{ { .wide = true }, "", "NAME     READY   NODE\nweb      1/1     n1\ntwo...   3       \n" },
		{ { .no_headers = true, .with_namespace = true }, "", "a     web      1/1\nb     two...   3\n" },
		{ { .show_labels = true }, "", "NAME     READY   LABELS\nweb      1/1     x=z\ntwo...   3       <none>\n" },
		{ { .label_columns = { (const char **)(uintptr_t)labels, 2 } }, "", "NAME     READY   X     X\nweb      1/1           z\ntwo...   3             \n" },
		{ { 0 }, "ADDED   ", "EVENT      NAME     READY\nADDED      web      1/1\nADDED      two...   3\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(ktl_test_done) struct ktl k = { 0 };
		CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 16);
		struct ktl_table_printer p = { .options = cases[i].options };
		struct ktl_tabs tabs;
		ktl_tabs_for_table(&tabs);
		ktl_table_print(&k, &p, ktl_test_tree(&k, table), str_of(cases[i].event), &tabs);
		ktl_tabs_flush(&tabs, &out);
		ktl_tabs_done(&tabs);
		CHECK_STR(str_of(out.p), cases[i].want);
	}
}

TEST(print_formats)
{
	static const struct { const char *output; bool tables; int result; enum ktl_format format; const char *message; } cases[] = {
		{ "", false, 0, KTL_HUMAN, NULL },
		{ "yaml", false, 0, KTL_YAML, NULL },
		{ "wide", true, 0, KTL_WIDE, NULL },
		{ "jsonpath={.a}", false, 0, KTL_JSONPATH, NULL },
		{ "custom-columns=A:.a,B:b", true, 0, KTL_COLUMNS, NULL },
		{ "custom-columns=A", true, -1, 0, "unexpected custom-columns spec: A, expected <header>:<json-path-expr>" },
		{ "jsonpath", false, -1, 0, "template format specified but no template given" },
		{ "wide", false, -1, 0, "unable to match a printer suitable for the output format \"wide\", allowed formats are: go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,yaml" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(ktl_test_done) struct ktl k = { 0 };
		struct ktl_print_flags flags = { .output = cases[i].output, .template = "" };
		struct ktl_printer p;
		CHECK_INT(ktl_printer_init(&k, &flags, cases[i].tables, &p), cases[i].result);
		if (cases[i].result < 0)
			CHECK_STR_ROW(i, k.failures->text, cases[i].message);
		else
			CHECK_INT(p.format, cases[i].format);
		ktl_printer_done(&p);
	}
}

TEST(print_sorted)
{
	static const struct { const char *list, *field, *want; } cases[] = {
		{ "[{m: b, v: 2}, {m: a, v: 10}, {m: c}]", ".v", "[{\"m\":\"c\"},{\"m\":\"b\",\"v\":2},{\"m\":\"a\",\"v\":10}]" },
		{ "[{m: b, v: 1Gi}, {m: a, v: 200Mi}]", "{.v}", "[{\"m\":\"a\",\"v\":\"200Mi\"},{\"m\":\"b\",\"v\":\"1Gi\"}]" },
		{ "[{m: b}, {m: a}]", "m", "[{\"m\":\"a\"},{\"m\":\"b\"}]" },
		{ "[{m: a}, {m: b, v: x}, {m: c}, {m: d, v: null}, {m: e, v: a}]", ".v",
		  "[{\"m\":\"c\"},{\"m\":\"a\"},{\"m\":\"d\",\"v\":null},{\"m\":\"e\",\"v\":\"a\"},{\"m\":\"b\",\"v\":\"x\"}]" },
		{ "[]", ".nope", "[]" },
	};
	static const struct { const char *list; int result; const char *text; } wrong[] = {
		{ "[{m: b}]", -1, "couldn't find any field with path \"{.v}\" in the list of objects" },
		{ "[{m: b}, {m: a}]", -1, "couldn't find any field with path \"{.v}\" in the list of objects" },
		{ "[{v: 1}, {v: 1.5}]", KTL_UNSORTABLE, "Field {.v} in *unstructured.Unstructured is an unsortable type: interface, err: unsortable interface: interface" },
		{ "[{v: 1}, {v: null}, {}, {v: true}]", KTL_UNSORTABLE,
		  "Field {.v} in *unstructured.Unstructured is an unsortable type: interface, err: unsortable type: bool" },
		{ "[{v: [1]}, {v: {}}]", KTL_UNSORTABLE,
		  "Field {.v} in *unstructured.Unstructured is an unsortable type: interface, err: unsortable type: map[string]interface {}" },
	};
	CLEANUP(ktl_test_done) struct ktl k = { 0 };
	struct val v;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_INT(ktl_sort(&k, cases[i].field, ktl_test_tree(&k, cases[i].list), false, &v), 0);
		CHECK_STR_ROW(i, ktl_json(&k, v), cases[i].want);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CHECK_ROW(i, ktl_sort(&k, ".v", ktl_test_tree(&k, wrong[i].list), false, &v) == wrong[i].result);
		CHECK_STR_ROW(i, k.failures->text, wrong[i].text);
		ktl_forgive(&k);
	}
}
