#include "machinery/testing.h"

#include "codec/codec.h"
#include "codec/types.h"

/* A typed tree shown as JSON, and the same through the encoder. */
TEST(patch_document)
{
	static const char *const t[] = {
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{'containers':[{'name':'a'},{'name':'b','image':'x'}]}}",
		"{'apiVersion':'v1','kind':'Pod'}",
		"{'apiVersion':'apps/v1','kind':'Deployment','spec':{'replicas':0}}",
		"{'apiVersion':'v1','kind':'ConfigMap','data':{'b':'1','a':''}}",
		"{'apiVersion':'v1','kind':'Service','spec':{'ports':[{'port':80,'targetPort':'x'}]}}",
		"{'apiVersion':'batch/v1','kind':'CronJob','spec':{'jobTemplate':{'spec':{'template':{'spec':{'volumes':[{'name':'v'}]}}}}}}",
		"{'apiVersion':'v1','kind':'PodList','items':[{'metadata':{'name':'p'}}]}",
		"{'apiVersion':'v1','kind':'Event','count':0}",
		"{'apiVersion':'networking.k8s.io/v1','kind':'Ingress','spec':{'rules':[{'http':{'paths':[{'path':'/'}]}}]}}",
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CLEANUP(buf_done) struct buf want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
		struct val free_tree = testing_unsorted(&a, t[i]), typed, shown;
		const struct type *type = schema_kind(val_as_str(val_find(free_tree, STR("apiVersion"))),
						      val_as_str(val_find(free_tree, STR("kind"))));
		struct err err = ERR_INIT;
		CHECK_ROW(i, type != NULL);
		CHECK_ROW(i, val_canonical(&a, free_tree, type, NULL, &typed, &err) == 0);
		CHECK_ROW(i, patch_document(&a, typed, type, &shown, &err) == 0);
		CHECK_ROW(i, json_encode(&want, typed, &(struct json_encode_options){ .type = type }, &err) == 0);
		CHECK_ROW(i, json_encode(&got, shown, &(struct json_encode_options){ 0 }, &err) == 0);
		CHECK_STR_ROW(i, buf_str(&got), want.p);
	}
}

/* A member that is always written can be patched although the typed tree leaves it out. */
TEST(patch_document_is_patched)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val typed, doc, v;
	struct err err = ERR_INIT;

	CHECK_INT(val_canonical(&a, testing_unsorted(&a, "{'spec':{'containers':[{'name':'a'}]}}"),
				TYPE(core_v1, Pod), NULL, &typed, &err),
		  0);
	CHECK_INT(patch_document(&a, typed, TYPE(core_v1, Pod), &doc, &err), 0);
	struct val patch =
		testing_tree(&a, "[{'op':'add','path':'/spec/containers/0/resources/limits','value':{'cpu':'1'}}]");
	CHECK_INT(json_patch_apply(&a, doc, patch, 0, &v, &err), 0);
	patch = testing_tree(&a, "{'spec':{'containers':[{'name':'a','resources':{'$patch':'replace',"
				 "'limits':{'cpu':'1'}}}]}}");
	CHECK_INT(strategic_patch_apply(&a, doc, patch, TYPE(core_v1, Pod), &v, &err), 0);
	CHECK_INT(val_canonical(&a, v, TYPE(core_v1, Pod), NULL, &v, &err), 0);
	CHECK_STR(testing_text(&a, v), "{'spec':{'containers':[{'name':'a','resources':{'limits':{'cpu':'1'}}}]}}");
	CHECK_INT(patch_document(&a, typed, NULL, &v, &err), 0);
	CHECK(val_equal(v, typed));
}

TEST(patch_go_text)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{ "null", "<nil>" },
		{ "{}", "map[]" },
		{ "{'b':[1,'x',true,null],'a':{'c':2.5}}", "map[a:map[c:2.5] b:[1 x true <nil>]]" },
		{ "[1e21,1000000.5,0.00001]", "[1e+21 1.0000005e+06 1e-05]" },
		{ "{'spec':{'replicas':'3'}}", "map[spec:map[replicas:3]]" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		CHECK_STR_ROW(i, patch_go_text(&a, testing_unsorted(&a, t[i].in)), t[i].want);
	}
}
