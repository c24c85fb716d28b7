/*
 * pods/binding, and the old bindings that name their pod in the body: a scheduler has chosen the node of a pod. It happens
 * once; whoever comes second is told where the pod is.
 */
#include "apiserver/admission/admission.h"
#include "apiserver/apiserver.h"
#include "apiserver/cache.h"
#include "apiserver/change.h"
#include "apiserver/meta.h"
#include "apiserver/pod.h"
#include "apiserver/subresource.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "codec/types.h"

static int check_binding(struct request *q, struct val binding)
{
	static const str kinds[] = { STR_INIT("Node"), STR_INIT("<empty>"), { NULL, 0 } };
	struct field_errors e;
	field_errors_init(&e, q->arena);
	const struct field_path *at = FIELD(NULL, "target");
	str kind = val_str(binding, target, kind);
	if (kind.n && !str_eq(kind, STR("Node")))
		field_not_supported(&e, FIELD(at, "kind"), val_of_str(kind), kinds);
	if (!val_str(binding, target, name).n)
		field_required(&e, FIELD(at, "name"), "%s", "");
	if (!e.n)
		return 0;
	str text = field_errors_plain(&e);
	return fail_plain(q, STR_FMT, STR_ARG(text));
}

static struct val merged(struct request *q, struct val map, struct val more)
{
	struct val_builder b = val_builder(q->arena);
	if (!val_len(more))
		return map;
	VAL_EACH_MEMBER(m, map)
		val_add_member(&b, m->key, m->val);
	VAL_EACH_MEMBER(m, more)
		val_add_member(&b, m->key, m->val);
	return val_sorted(q->arena, val_end_object(&b));
}

static int precondition(struct request *q, const char *what, str wanted, str has)
{
	str name = q->name, key = arena_printf(q->arena, "/registry/pods/" STR_FMT "/" STR_FMT, STR_ARG(q->namespace),
					       STR_ARG(name));
	return fail_conflict(q, STR_NONE, STR("pods"), name,
			     "StorageError: invalid object, Code: 4, Key: " STR_FMT ", ResourceVersion: 0, AdditionalErrorMsg: "
			     "Precondition failed: %s in precondition: " STR_FMT ", %s in object meta: " STR_FMT, STR_ARG(key),
			     what, STR_ARG(wanted), what, STR_ARG(has));
}

static int refused(struct request *q, const char *why, str name)
{
	return fail_conflict(q, STR_NONE, STR("pods/binding"), name, "pod " STR_FMT " %s", STR_ARG(name), why);
}

static int bind_pod(struct request *q, struct val *pod, void *arg)
{
	struct val binding = *(const struct val *)arg, object = *pod;
	str name = val_str(object, metadata, name), node = val_str(object, spec, nodeName);
	str uid = val_str(binding, metadata, uid), version = val_str(binding, metadata, resourceVersion);
	if (uid.n && !str_eq(uid, val_str(object, metadata, uid)))
		return precondition(q, "UID", uid, val_str(object, metadata, uid));
	if (version.n && !str_eq(version, val_str(object, metadata, resourceVersion)))
		return precondition(q, "ResourceVersion", version, val_str(object, metadata, resourceVersion));
	if (val_has(object, metadata, deletionTimestamp))
		return refused(q, "is being deleted, cannot be assigned to a host", name);
	if (node.n)
		return fail_conflict(q, STR_NONE, STR("pods/binding"), name,
				     "pod " STR_FMT " is already assigned to node \"" STR_FMT "\"",
				     STR_ARG(name), STR_ARG(node));
	if (val_len(val_get(object, spec, schedulingGates)))
		return refused(q, "has non-empty .spec.schedulingGates", name);
	object = val_with(q->arena, object, val_get(binding, target, name), spec, nodeName);
	object = val_without(q->arena, object, status, nominatedNodeName);
	object = val_with(q->arena, object, merged(q, val_get(object, metadata, annotations),
						   val_get(binding, metadata, annotations)),
			  metadata, annotations);
	object = val_with(q->arena, object, merged(q, val_get(object, metadata, labels),
						   val_get(binding, metadata, labels)), metadata,
			  labels);
	*pod = pod_with_condition(q, object, OBJECT(q->arena, F(type, VAL_LIT("PodScheduled")), F(status, VAL_LIT("True"))));
	return 0;
}

int binding_handle(struct request *q, struct err *err)
{
	struct val binding;
	int r = write_read_body(q, err);
	if (r < 0 || (r = write_options(q, STR("CreateOptions"), false)) < 0 ||
	    (r = write_decode_body(q, TYPE(core_v1, Binding), &binding, err)) < 0 || (r = meta_set_namespace(q, &binding)) < 0)
		return r;
	str name = val_str(binding, metadata, name);
	if (q->subresource.n && !str_eq(name, q->name))
		return fail_bad_request(q, "name in URL does not match name in Binding object");
	q->name = name;
	struct kind *pods = kinds_find(&q->server->kinds, STR_NONE, STR("pods"));
	if ((r = check_binding(q, binding)) < 0 || (r = admission_pass(q, TYPE(core_v1, Binding), &binding, err)) < 0)
		return r;
	if ((r = change_object(q, pods, meta_key(q->arena, pods, q->namespace, name), bind_pod, &binding, NULL, err)) < 0)
		return r;
	answer_created(q);
	return 0;
}
