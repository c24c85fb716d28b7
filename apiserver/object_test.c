#include "apiserver/kinds.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

static const char pod_text[] =
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\","
	"\"resourceVersion\":\"3\",\"generation\":1,\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}";

static struct object *pod_new(struct kind *kind, const char *text)
{
	struct arena a = ARENA_INIT;
	struct val v;

	*kind = (struct kind){ .prefix = STR("/registry/pods/"), .hub = TYPE(core_v1, Pod) };
	CHECK(json_decode(&a, str_of(text), &(struct json_decode_options){ .type = kind->hub }, &v, NULL) == 0);
	struct object *o = object_new(kind, STR("shop/web"), v);
	arena_done(&a);
	return o;
}

static str json_str(struct object *o) { return str_span(object_json(o)->p, object_json(o)->n); }

TEST(object_shows_its_revision_once_it_has_one)
{
	struct kind kind;
	struct object *o = pod_new(&kind, pod_text);

	CHECK(!val_has(o->val, metadata, resourceVersion));
	CHECK(str_find(json_str(o), STR("resourceVersion")) < 0);
	CHECK_STR(val_str(o->val, metadata, uid), "u-1");
	CHECK_INT(val_int(o->val, metadata, generation), 1);

	object_set_revision(o, 9223372036854775807);
	CHECK_INT(o->revision, 9223372036854775807);
	CHECK_STR(val_str(o->val, metadata, resourceVersion), "9223372036854775807");
	CHECK_INT(val_int(o->val, metadata, generation), 1);
	CHECK_STR(json_str(o), "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","
			       "\"uid\":\"u-1\",\"resourceVersion\":\"9223372036854775807\",\"generation\":1,"
			       "\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{}}]},\"status\":{}}");
	object_unref(o);
}

TEST(object_at_another_revision_leaves_the_first_alone)
{
	struct kind kind;
	struct object *o = pod_new(&kind, pod_text);

	object_set_revision(o, 7);
	struct object *deleted = object_at_revision(o, 12345), *again = object_at_revision(deleted, 12346);
	CHECK_STR(val_str(o->val, metadata, resourceVersion), "7");
	object_unref(o);
	CHECK_STR(val_str(deleted->val, metadata, resourceVersion), "12345");
	object_unref(deleted);
	CHECK_INT(again->revision, 12346);
	CHECK_STR(again->key, "shop/web");
	CHECK(str_find(json_str(again), STR("\"resourceVersion\":\"12346\"")) > 0);
	object_unref(again);
}

TEST(object_without_metadata_gets_some)
{
	struct kind kind;
	struct object *o = pod_new(&kind, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}");

	object_set_revision(o, 5);
	CHECK_STR(val_str(o->val, metadata, resourceVersion), "5");
	object_unref(o);
}

TEST(object_forms_without_their_wrapping_are_what_lists_hold)
{
	struct arena a = ARENA_INIT;
	struct kind kind;
	struct object *o = pod_new(&kind, pod_text);
	struct val v;

	object_set_revision(o, 5);
	const struct bytes *json = object_json(o), *proto = object_proto(o);
	CHECK(object_json(o) == json && object_proto(o) == proto);
	CHECK(str_starts(str_span(json->p + json->skip, json->n - json->skip), STR("\"metadata\":{\"name\":\"web\"")));
	CHECK(proto_is_envelope(str_span(proto->p, proto->n)));
	str message = str_span(proto->p + proto->skip, proto->n - proto->skip - proto->tail);
	CHECK(proto_decode(&a, message, kind.hub, &v, NULL) == 0);
	CHECK(val_equal(val_get(v, metadata), val_get(o->val, metadata)));
	CHECK(val_equal(val_get(v, spec), val_get(o->val, spec)));
	object_unref(o);
	arena_done(&a);
}
