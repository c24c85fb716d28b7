/* What all objects have alike: names, times, owners. */
#include "apiserver/meta.h"

#include "base/clock.h"
#include "base/encoding.h"
#include "base/map.h"
#include "codec/atoms.h"
#include "codec/types.h"
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
	static const atom names[] = { A_creationTimestamp, A_uid, A_deletionTimestamp, A_deletionGracePeriodSeconds,
				      A_selfLink };
	struct val meta = val_get(object, metadata);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (val_exists(val_member(meta, names[i])))
			meta = val_put(a, meta, names[i], VAL_EMPTY);
	return val_exists(meta) ? val_with(a, object, meta, metadata) : object;
}

/* Where a member of metadata stands among the others. */
static uint32_t place_of(atom key)
{
	const struct type *type = TYPE(meta_v1, ObjectMeta);
	const struct field *f = type_field(type, key);
	return f ? (uint32_t)(f - type->fields) : type->n_fields;
}

/* The member in its place: metadata is typed, its members have an order, which val_put does not know. */
static struct val put_meta(struct arena *a, struct val meta, atom key, struct val v)
{
	if (!val_exists(v) || val_exists(val_member(meta, key)))
		return val_put(a, meta, key, v);
	uint32_t n = val_len(meta), at = 0, place = place_of(key);
	struct member *members = ARENA_ARRAY(a, struct member, n + 1);
	while (at < n && place_of(meta.members[at].key) < place)
		at++;
	if (at)
		memcpy(members, meta.members, at * sizeof(*members));
	members[at] = (struct member){ key, v };
	if (n > at)
		memcpy(members + at + 1, meta.members + at, (n - at) * sizeof(*members));
	return (struct val){ .type = VAL_OBJECT, .n = n + 1, .members = members };
}

struct val meta_put(struct arena *a, struct val object, atom key, struct val v)
{
	struct val meta = put_meta(a, val_get(object, metadata), key, v);
	if (val_has(object, metadata))
		return val_put(a, object, A_metadata, meta);
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
		return fail_bad_request(q,
					"the namespace of the provided object does not match the namespace sent on the request");
	*object = meta_put(q->arena, *object, A_namespace, want.n ? val_of_str(want) : VAL_EMPTY);
	return 0;
}

int meta_check_name(struct request *q, struct val object)
{
	str name = val_str(object, metadata, name);
	if (!name.n)
		return fail_bad_request(q,
					"the name of the object (" STR_FMT " based on URL) was undeterminable: name must be provided",
					STR_ARG(q->name));
	if (!str_eq(name, q->name))
		return fail_bad_request(q,
					"the name of the object (" STR_FMT ") does not match the name on the URL (" STR_FMT ")",
					STR_ARG(name), STR_ARG(q->name));
	return 0;
}

#define DUPLICATES ".metadata.ownerReferences contains duplicate entries"
#define DEDUPED                                                                                                      \
	"; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your " \
	"requests; duplicate UID(s) observed: "

struct val meta_dedup_owners(struct request *q, struct val object, bool after_mutation)
{
	struct val owners = val_get(object, metadata, ownerReferences);
	if (val_len(owners) < 2)
		return object;
	struct val_builder kept = val_builder(q->arena);
	CLEANUP(buf_done) struct buf uids = BUF_INIT(1 << 20);
	/* by their hashes: there may be as many as a body has room for */
	CLEANUP(map_done) struct map seen;
	map_init(&seen);
	uint64_t *hashes = ARENA_ARRAY(q->arena, uint64_t, owners.n);
	for (uint32_t i = 0; i < owners.n; i++) {
		hashes[i] = val_hash(owners.items[i]);
		str key = str_span((const char *)&hashes[i], sizeof hashes[i]);
		const struct val *same = map_get(&seen, key);
		if (!same || !val_equal(*same, owners.items[i])) {
			map_put(&seen, key, (void *)(uintptr_t)&owners.items[i]);
			val_add_item(&kept, owners.items[i]);
			continue;
		}
		if (uids.n)
			buf_add(&uids, STR(", "));
		buf_add(&uids, val_str(owners.items[i], uid));
	}
	if (kept.n == owners.n)
		return object;
	str text = after_mutation ? STR(DUPLICATES " after mutating admission happens" DEDUPED) : STR(DUPLICATES DEDUPED);
	request_warn(q, arena_join(q->arena, text, buf_str(&uids)));
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
