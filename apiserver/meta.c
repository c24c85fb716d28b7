#include "apiserver/meta.h"

#include "base/clock.h"
#include "base/encoding.h"
#include "codec/atoms.h"
#include "machinery/names.h"

struct timestamp meta_timestamp(const struct request *q)
{
	return (struct timestamp){ q->begun_wall_ns / NS_PER_S, (int32_t)(q->begun_wall_ns % NS_PER_S) };
}

struct val meta_now(struct request *q)
{
	char text[TIME_TEXT_MAX];
	return val_of_str(arena_str(q->arena, time_format(meta_timestamp(q), text)));
}

struct val meta_wipe(struct arena *a, struct val object)
{
	static const atom names[] = { A_creationTimestamp, A_uid, A_deletionTimestamp, A_deletionGracePeriodSeconds, A_selfLink };
	struct val meta = val_get(object, metadata);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (val_exists(val_member(meta, names[i])))
			meta = val_put(a, meta, names[i], VAL_EMPTY);
	return val_exists(meta) ? val_with(a, object, meta, metadata) : object;
}

/* The member in its place: metadata is typed, its members have an order, which val_put does not know. */
static struct val put_meta(struct arena *a, struct val meta, atom key, struct val v)
{
	static const atom order[] = { A_name, A_generateName, A_namespace, A_selfLink, A_uid, A_resourceVersion, A_generation,
				      A_creationTimestamp, A_deletionTimestamp, A_deletionGracePeriodSeconds, A_labels,
				      A_annotations, A_ownerReferences, A_finalizers, A_managedFields };
	struct val_builder b = val_builder(a);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		val_add_member(&b, order[i], order[i] == key ? v : val_member(meta, order[i]));
	return val_end_object(&b);
}

struct val meta_put(struct arena *a, struct val object, atom key, struct val v)
{
	struct val meta = put_meta(a, val_get(object, metadata), key, v);
	if (val_has(object, metadata))
		return val_with(a, object, meta, metadata);
	/* kind, apiVersion, metadata, ... */
	struct val_builder b = val_builder(a);
	val_add_member(&b, A_kind, val_member(object, A_kind));
	val_add_member(&b, A_apiVersion, val_member(object, A_apiVersion));
	val_add_member(&b, A_metadata, meta);
	VAL_EACH_MEMBER(m, object)
		if (m->key != A_kind && m->key != A_apiVersion)
			val_add_member(&b, m->key, m->val);
	return val_end_object(&b);
}

struct val meta_fill(struct request *q, struct val object)
{
	char *uid = arena_alloc(q->arena, UUID_TEXT + 1, 1);
	uuid_v4(uid);
	str base = val_str(object, metadata, generateName);
	if (base.n && !val_str(object, metadata, name).n)
		object = meta_put(q->arena, object, A_name, val_of_str(name_generate(q->arena, base)));
	object = meta_put(q->arena, object, A_uid, val_of_str(str_span(uid, UUID_TEXT)));
	return meta_put(q->arena, object, A_creationTimestamp, meta_now(q));
}

int meta_set_namespace(struct request *q, struct val *object)
{
	bool namespaced = q->endpoint->main->resource->flags & RESOURCE_NAMESPACED;
	str want = namespaced ? q->namespace : STR_NONE, has = val_str(*object, metadata, namespace);
	if (str_eq(has, want))
		return 0;
	if (has.n && want.n)
		return fail_bad_request(q, "the namespace of the provided object does not match the namespace sent on the request");
	*object = meta_put(q->arena, *object, A_namespace, want.n ? val_of_str(want) : VAL_EMPTY);
	return 0;
}

int meta_check_name(struct request *q, struct val object)
{
	str name = val_str(object, metadata, name);
	if (!name.n)
		return fail_bad_request(q, "the name of the object (" STR_FMT " based on URL) was undeterminable: name must be provided",
					STR_ARG(q->name));
	if (!str_eq(name, q->name))
		return fail_bad_request(q, "the name of the object (" STR_FMT ") does not match the name on the URL (" STR_FMT ")",
					STR_ARG(name), STR_ARG(q->name));
	return 0;
}

struct val meta_dedup_owners(struct request *q, struct val object, bool after_mutation)
{
	struct val owners = val_get(object, metadata, ownerReferences);
	if (val_len(owners) < 2)
		return object;
	struct val_builder kept = val_builder(q->arena);
	CLEANUP(buf_done) struct buf uids = BUF_INIT(1 << 20);
	for (uint32_t i = 0; i < owners.n; i++) {
		bool again = false;
		for (uint32_t k = 0; k < i && !again; k++)
			again = val_equal(owners.items[i], owners.items[k]);
		if (!again) {
			val_add_item(&kept, owners.items[i]);
			continue;
		}
		if (uids.n)
			buf_add(&uids, STR(", "));
		buf_add(&uids, val_str(owners.items[i], uid));
	}
	if (!uids.n)
		return object;
	const char *format = after_mutation ?
		".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " :
		".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ";
	request_warn(q, arena_join(q->arena, str_of(format), buf_str(&uids)));
	return meta_put(q->arena, object, A_ownerReferences, val_end_list(&kept));
}

str meta_key(struct arena *a, const struct kind *kind, str namespace, str name)
{
	return kind->namespaced ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)) : name;
}

/* Names become parts of keys: none may lead out of its place. */
static const char *segment_error(str name)
{
	if (str_eq(name, STR(".")))
		return "may not be '.'";
	if (str_eq(name, STR("..")))
		return "may not be '..'";
	if (str_chr(name, '/') >= 0)
		return "may not contain '/'";
	if (str_chr(name, '%') >= 0)
		return "may not contain '%'";
	return NULL;
}

int meta_key_of(struct request *q, str *ret_key)
{
	const struct kind *kind = q->endpoint->kind;
	const char *wrong = segment_error(q->name);
	if (kind->namespaced && !q->namespace.n)
		return fail_bad_request(q, "Namespace parameter required.");
	if (!q->name.n)
		return fail_bad_request(q, "Name parameter required.");
	if (wrong)
		return fail_bad_request(q, "Name parameter invalid: \"" STR_FMT "\": %s", STR_ARG(q->name), wrong);
	*ret_key = meta_key(q->arena, kind, q->namespace, q->name);
	return 0;
}
