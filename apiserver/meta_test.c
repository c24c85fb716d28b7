#include "apiserver/meta.h"

#include "apiserver/request_testing.h"
#include "base/test.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

static struct val parse(struct call *c, const char *text)
{
	struct val v;
	struct json_decode_options opt = { .type = TYPE(core_v1, ConfigMap) };
	CHECK_INT(json_decode(&c->arena, str_of(text), &opt, &v, NULL), 0);
	return v;
}

static str text_of(struct call *c, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	CHECK_INT(json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL), 0);
	return arena_str(&c->arena, buf_str(&b));
}

TEST(meta_members_keep_their_order)
{
	struct call c;

	call_init(&c);
	struct val v = parse(&c, "{\"metadata\":{\"name\":\"x\",\"labels\":{\"y\":\"b\"}},\"data\":{\"y\":\"v\"}}");
	v = meta_put(&c.arena, v, A_uid, VAL_LIT("u"));
	v = meta_put(&c.arena, v, A_namespace, VAL_LIT("n"));
	CHECK_STR(text_of(&c, val_get(v, metadata)), "{\"name\":\"x\",\"namespace\":\"n\",\"uid\":\"u\","
		"\"labels\":{\"y\":\"b\"}}");
	v = meta_put(&c.arena, v, A_uid, VAL_EMPTY);
	CHECK(!val_has(v, metadata, uid));
	CHECK_STR(val_str(v, data, y), "v");
	v = meta_put(&c.arena, parse(&c, "{\"data\":{\"y\":\"v\"}}"), A_name, VAL_LIT("new"));
	CHECK_STR(val_str(v, metadata, name), "new");
	CHECK_STR(val_str(v, data, y), "v");
	call_done(&c);
}

TEST(what_the_server_sets_clients_do_not)
{
	struct call c;

	call_init(&c);
	call_new(&c, STR("POST"), STR("/"));
	struct val v = parse(&c, "{\"metadata\":{\"generateName\":\"gen-\",\"uid\":\"mine\","
				 "\"creationTimestamp\":\"2001-01-01T00:00:00Z\","
				 "\"deletionTimestamp\":\"2001-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":5,"
				 "\"labels\":{\"y\":\"b\"}}}");
	v = meta_wipe(&c.arena, v);
	CHECK(!val_has(v, metadata, uid) && !val_has(v, metadata, creationTimestamp) &&
	      !val_has(v, metadata, deletionTimestamp));
	CHECK(!val_has(v, metadata, deletionGracePeriodSeconds));
	CHECK_STR(val_str(v, metadata, labels, y), "b");
	struct val one = meta_fill(&c.q, v), two = meta_fill(&c.q, v);
	CHECK_STR(val_str(one, metadata, creationTimestamp), "2023-11-14T22:13:20Z");
	CHECK_INT(val_str(one, metadata, uid).n, 36);
	CHECK(!str_eq(val_str(one, metadata, uid), val_str(two, metadata, uid)));
	CHECK(str_starts(val_str(one, metadata, name), STR("gen-")) && val_str(one, metadata, name).n == 9);
	CHECK(!str_eq(val_str(one, metadata, name), val_str(two, metadata, name)));
	v = meta_fill(&c.q, parse(&c, "{\"metadata\":{\"name\":\"own\",\"generateName\":\"gen-\"}}"));
	CHECK_STR(val_str(v, metadata, name), "own");
	call_done(&c);
}

TEST(namespaces_come_from_the_path)
{
	static const struct {
		const char *target, *object;
		const char *namespace; /* NULL: refused */
	} t[] = {
		{ "/api/v1/namespaces/n/configmaps", "{\"metadata\":{\"name\":\"x\"}}", "n" },
		{ "/api/v1/namespaces/n/configmaps", "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"}}", "n" },
		{ "/api/v1/namespaces/n/configmaps", "{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\"}}", NULL },
		{ "/api/v1/namespaces/n/configmaps", "{}", "n" },
		{ "/api/v1/nodes", "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"}}", "" },
		{ "/api/v1/namespaces", "{\"metadata\":{\"name\":\"x\"}}", "" },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CHECK_ROW(i, call_route(&c, "POST", t[i].target) == 0);
		struct val v = parse(&c, t[i].object);
		int r = meta_set_namespace(&c.q, &v);
		CHECK_ROW(i, r == (t[i].namespace ? 0 : -ERR_BAD_REQUEST));
		if (t[i].namespace)
			CHECK_STR_ROW(i, val_str(v, metadata, namespace), t[i].namespace);
		else
			CHECK_STR_ROW(i, val_str(c.q.failure, message),
				      "the namespace of the provided object does not match the namespace sent on the "
				      "request");
	}
	call_done(&c);
}

TEST(names_agree_with_the_path)
{
	struct call c;

	call_init(&c);
	CHECK_INT(call_route(&c, "PUT", "/api/v1/namespaces/n/configmaps/a"), 0);
	CHECK_INT(meta_check_name(&c.q, parse(&c, "{\"metadata\":{\"name\":\"a\"}}")), 0);
	CHECK_INT(meta_check_name(&c.q, parse(&c, "{\"metadata\":{\"name\":\"b\"}}")), -ERR_BAD_REQUEST);
	CHECK_STR(val_str(c.q.failure, message), "the name of the object (b) does not match the name on the URL (a)");
	CHECK_INT(meta_check_name(&c.q, parse(&c, "{}")), -ERR_BAD_REQUEST);
	CHECK_STR(val_str(c.q.failure, message), "the name of the object (a based on URL) was undeterminable: name "
		"must be provided");
	call_done(&c);
}

TEST(owners_are_counted_once)
{
#define OWNER(uid) "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"" uid "\"}"
	struct call c;

	call_init(&c);
	call_new(&c, STR("POST"), STR("/"));
	struct val v = parse(&c, "{\"metadata\":{\"name\":\"x\",\"ownerReferences\":[" OWNER("1") "," OWNER("2") ","
				 OWNER("1") "," OWNER("2") "]}}");
	v = meta_dedup_owners(&c.q, v, false);
	CHECK_INT(val_len(val_get(v, metadata, ownerReferences)), 2);
	CHECK_INT(c.q.n_warnings, 1);
	CHECK_STR(c.q.warnings[0], ".metadata.ownerReferences contains duplicate entries; API server dedups owner "
				   "references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "
				   "UID(s) observed: 1, 2");
	v = meta_dedup_owners(&c.q, v, true);
	CHECK_INT(c.q.n_warnings, 1);
	CHECK_INT(val_len(val_get(v, metadata, ownerReferences)), 2);
	call_done(&c);
}

TEST(keys_are_made_of_names_only)
{
	static const struct {
		const char *target, *key, *message;
	} t[] = {
		{ "/api/v1/namespaces/n/configmaps/a", "n/a", NULL },
		{ "/api/v1/nodes/a", "a", NULL },
		{ "/api/v1/namespaces/n", "n", NULL },
		{ "/api/v1/namespaces/n/configmaps/..", NULL, "Name parameter invalid: \"..\": may not be '..'" },
		{ "/api/v1/namespaces/n/configmaps/.", NULL, "Name parameter invalid: \".\": may not be '.'" },
		{ "/api/v1/namespaces/n/configmaps/a%25b", NULL, "Name parameter invalid: \"a%b\": may not contain "
		  "'%'" },
	};
	struct call c;

	call_init(&c);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		str key = STR_NONE;
		CHECK_ROW(i, call_route(&c, "GET", t[i].target) == 0);
		CHECK_ROW(i, meta_key_of(&c.q, &key) == (t[i].key ? 0 : -ERR_BAD_REQUEST));
		if (t[i].key)
			CHECK_STR_ROW(i, key, t[i].key);
		else
			CHECK_STR_ROW(i, val_str(c.q.failure, message), t[i].message);
	}
	call_done(&c);
}
