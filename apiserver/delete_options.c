/* DeleteOptions: from the body when there is one, else from the query. */
#include "apiserver/negotiate.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "codec/types.h"

static int from_body(struct request *q, struct val *ret, struct err *err)
{
	const struct type *want = TYPE(meta_v1, DeleteOptions), *type = NULL;
	enum media media;
	int r = negotiate_body(q, &media, err);
	if (r < 0)
		return r;
	struct err why = ERR_INIT;
	if (media == MEDIA_PROTO) {
		r = proto_decode_object_as(q->arena, q->body, want, ret, &why);
		return r < 0 ? fail_bad_request(q, STR_FMT, STR_ARG(err_str(&why))) : 0;
	}
	str json = q->body;
	CLEANUP(buf_done) struct buf converted = BUF_INIT(64 << 20);
	if (media == MEDIA_YAML) {
		if (yaml_to_json(q->body, &converted, NULL, &why) < 0)
			return fail_bad_request(q, STR_FMT, STR_ARG(err_str(&why)));
		json = arena_str(q->arena, buf_str(&converted));
	}
	struct object_kind kind;
	r = json_decode_expected(q->arena, json, want, NULL, ret, &type, &kind, &why);
	/* every group version has DeleteOptions of its own, all the same */
	if (r == 0 && type != want && str_eq(kind.kind, STR("DeleteOptions"))) {
		struct json_decode_options opt = { .type = want };
		r = json_decode(q->arena, json, &opt, ret, &why);
	} else if (r == 0 && type != want) {
		return fail_bad_request(q, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
					"\" in scheme \"pkg/apis/meta/internalversion/scheme/register.go:27\"",
					STR_ARG(kind.kind), STR_ARG(kind.api_version));
	}
	return r < 0 ? fail_bad_request(q, STR_FMT, STR_ARG(err_str(&why))) : 0;
}

static int from_query(struct request *q, struct val *ret)
{
	struct val_builder b = val_builder(q->arena);
	str grace = request_query(q, STR("gracePeriodSeconds")), policy = request_query(q, STR("propagationPolicy"));
	int64_t seconds;
	if (grace.n) {
		if (!str_to_i64(grace, &seconds))
			return fail_bad_request(q, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(grace));
		val_add_member(&b, A_gracePeriodSeconds, val_of_int(seconds));
	}
	if (request_query(q, STR("orphanDependents")).p)
		val_add_member(&b, A_orphanDependents, val_of_bool(request_query_bool(q, STR("orphanDependents"))));
	if (policy.p)
		val_add_member(&b, A_propagationPolicy, val_of_str(policy));
	struct val_builder dry = val_builder(q->arena);
	for (size_t i = 0; i < q->n_query; i++)
		if (str_eq(q->query[i].name, STR("dryRun")))
			val_add_item(&dry, val_of_str(q->query[i].value));
	if (dry.n)
		val_add_member(&b, A_dryRun, val_end_list(&dry));
	*ret = val_end_object(&b);
	return 0;
}

static int check(struct request *q, struct val options)
{
	static const str policies[] = { STR_INIT("Foreground"), STR_INIT("Background"), STR_INIT("Orphan"), STR_INIT("nil"),
					{ NULL, 0 } };
	static const str dry_runs[] = { STR_INIT("All"), { NULL, 0 } };
	struct field_errors e;
	field_errors_init(&e, q->arena);
	struct val policy = val_get(options, propagationPolicy), dry = val_get(options, dryRun);
	if (val_exists(policy) && val_has(options, orphanDependents))
		field_invalid(&e, FIELD(NULL, "propagationPolicy"), policy,
			      "orphanDependents and deletionPropagation cannot be both set");
	str p = val_as_str(policy);
	if (val_exists(policy) && !str_eq(p, policies[0]) && !str_eq(p, policies[1]) && !str_eq(p, policies[2]))
		field_not_supported(&e, FIELD(NULL, "propagationPolicy"), policy, policies);
	bool good = true;
	VAL_EACH(d, dry)
		good = good && str_eq(val_as_str(*d), STR("All"));
	if (!good)
		field_not_supported(&e, FIELD(NULL, "dryRun"), dry, dry_runs);
	q->dry_run = val_len(dry) > 0;
	return e.n ? fail_invalid(q, STR("meta.k8s.io"), STR("DeleteOptions"), STR_NONE, &e) : 0;
}

int write_delete_options(struct request *q, struct err *err)
{
	int r = write_read_body(q, err);
	if (r == 0)
		r = q->body.n ? from_body(q, &q->delete_options, err) : from_query(q, &q->delete_options);
	return r < 0 ? r : check(q, q->delete_options);
}
