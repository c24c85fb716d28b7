/*
 * scale: a workload as anything that autoscales sees it, whatever its kind: how many there shall be, how many there are,
 * and which pods they are. Who set the number of replicas is the same question for both, so managers move between the two.
 */
#include "apiserver/subresource.h"
#include "codec/atoms.h"
#include "codec/types.h"
#include "machinery/managed_fields.h"

static const struct scale_path paths[] = {
	{ STR_INIT("v1"), "spec.replicas" },
	{ STR_INIT("apps/v1"), "spec.replicas" },
	{ STR_INIT("apps/v1beta1"), "spec.replicas" },
	{ STR_INIT("apps/v1beta2"), "spec.replicas" },
};

static int selector_of(struct request *q, struct val object, str *ret)
{
	struct val selector = val_get(object, spec, selector);
	struct selector parsed;
	struct err err = ERR_INIT;
	if (str_eq(q->resource, STR("replicationcontrollers")))
		parsed = selector_of_labels(q->arena, selector);
	else if (selector_of_object(q->arena, selector, &parsed, &err) < 0)
		return fail_bad_request(q, STR_FMT, STR_ARG(err_str(&err)));
	*ret = selector_text(q->arena, &parsed);
	return 0;
}

static int scale_show(struct request *q, struct val object, bool managed, struct val *ret, struct err *err)
{
	struct val meta = val_get(object, metadata), managers = VAL_EMPTY;
	str selector;
	int r = selector_of(q, object, &selector);
	if (r == 0 && managed)
		r = managed_to_scale(q->arena, val_member(meta, A_managedFields), paths, ARRAY_LEN(paths), &managers, err);
	if (r < 0)
		return r;
	struct val scale = OBJECT(q->arena, F(kind, VAL_LIT("Scale")), F(apiVersion, VAL_LIT("autoscaling/v1")),
		F(metadata, OBJECT(q->arena, F(name, val_member(meta, A_name)), F(namespace, val_member(meta, A_namespace)),
				   F(uid, val_member(meta, A_uid)), F(resourceVersion, val_member(meta, A_resourceVersion)),
				   F(creationTimestamp, val_member(meta, A_creationTimestamp)), F(managedFields, managers))),
		F(spec, OBJECT(q->arena, F(replicas, val_of_int(val_int(object, spec, replicas))))),
		F(status, OBJECT(q->arena, F(replicas, val_of_int(val_int(object, status, replicas))),
				 F(selector, val_of_str(selector)))));
	return val_canonical(q->arena, scale, TYPE(autoscaling_v1, Scale), NULL, ret, err);
}

static int scale_take(struct request *q, struct val stored, struct val scale, struct val *ret, struct err *err)
{
	int64_t replicas = val_int(scale, spec, replicas);
	if (replicas < 0) {
		struct field_errors e;
		field_errors_init(&e, q->arena);
		field_invalid(&e, FIELD(FIELD(NULL, "spec"), "replicas"), val_of_int(replicas),
			      "must be greater than or equal to 0");
		return fail_invalid(q, STR("autoscaling"), STR("Scale"), q->name, &e);
	}
	struct val managers;
	str version = type_api_version(q->arena, q->endpoint->type);
	int r = managed_from_scale(q->arena, val_get(stored, metadata, managedFields),
				   val_get(scale, metadata, managedFields), version,
				   paths, ARRAY_LEN(paths), &managers, err);
	if (r < 0)
		return r;
	struct val object = val_with(q->arena, stored, val_of_int(replicas), spec, replicas);
	object = val_with(q->arena, object, val_get(scale, metadata, resourceVersion), metadata, resourceVersion);
	object = val_with(q->arena, object, managers, metadata, managedFields);
	return val_canonical(q->arena, object, q->endpoint->type, NULL, ret, err);
}

const struct subresource_view scale_view = {
	.type = TYPE(autoscaling_v1, Scale),
	.show = scale_show,
	.take = scale_take,
};
