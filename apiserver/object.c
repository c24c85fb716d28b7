/*
 * An object is two blocks: struct object with its key, and the frozen tree.
 *
 * The tree is frozen before its revision is known (it is written with the value), and nobody may see a resourceVersion
 * until then. So it is frozen with a resourceVersion of the greatest length; that member is then moved behind the end of
 * metadata's array and hidden there, and object_set_revision moves it back to its place. Nothing is copied, and the cache
 * pays for no second array of members. Only object_at_revision, which shares the tree with an object that others
 * see, has arrays of its own for the root and for metadata, behind its key.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "apiserver/kinds.h"
#include "apiserver/object.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/go.h"

enum { REVISION_TEXT_MAX = 20, ENCODED_MAX = INT32_MAX };

/* ---- the place of the resourceVersion ---- */

/* Those that stand before it in ObjectMeta. */
static bool is_before_revision(atom key)
{
	return key == A_name || key == A_generateName || key == A_namespace || key == A_selfLink || key == A_uid;
}

static uint32_t revision_place(struct val metadata)
{
	uint32_t i = 0;
	while (i < metadata.n && is_before_revision(metadata.members[i].key))
		i++;
	return i;
}

static struct val with_room(struct arena *a, struct val v)
{
	struct val old = val_get(v, metadata);
	struct val_builder metadata = val_builder(a);
	uint32_t place = revision_place(old), i = 0;

	for (; i < place; i++)
		val_add_member(&metadata, old.members[i].key, old.members[i].val);
	val_add_member(&metadata, A_resourceVersion, VAL_LIT("00000000000000000000"));
	for (; i < val_len(old); i++)
		if (old.members[i].key != A_resourceVersion)
			val_add_member(&metadata, old.members[i].key, old.members[i].val);
	return val_put(a, v, A_metadata, val_end_object(&metadata));
}

/* The value of metadata in arrays that are still ours alone. */
static struct val *metadata_of(struct val root)
{
	for (uint32_t i = 0; i < root.n; i++)
		if (root.members[i].key == A_metadata)
			return (struct val *)(uintptr_t)&root.members[i].val;
	return NULL;
}

static struct member *members_of(struct val *object) { return (struct member *)(uintptr_t)object->members; }

static void revision_hide(struct val root)
{
	struct val *metadata = metadata_of(root);
	struct member *m = members_of(metadata);
	uint32_t place = revision_place(*metadata);
	struct member hidden = m[place];

	memmove(&m[place], &m[place + 1], (metadata->n - place - 1) * sizeof *m);
	m[--metadata->n] = hidden;
}

static void revision_show(struct val root, int64_t revision)
{
	struct val *metadata = metadata_of(root);
	struct member *m = members_of(metadata);
	uint32_t place = revision_place(*metadata);
	struct member shown = m[metadata->n];
	char digits[GO_INT_MAX];
	str text = go_format_int(revision, digits);

	memcpy((char *)(uintptr_t)shown.val.s, text.p, text.n);
	shown.val.n = (uint32_t)text.n;
	memmove(&m[place + 1], &m[place], (metadata->n - place) * sizeof *m);
	m[place] = shown;
	metadata->n++;
}

/* ---- life ---- */

static size_t aligned(size_t n) { return (n + 7) & ~(size_t)7; }

/* With `more` aligned bytes behind the key, at *ret_more. */
static struct object *object_alloc(struct kind *kind, str key, size_t more, char **ret_more)
{
	struct object *o = mem_alloc(sizeof *o + aligned(key.n) + more);
	char *text = (char *)(o + 1);

	memcpy(text, key.p, key.n);
	*o = (struct object){ .refs = 1, .kind = kind, .key = str_span(text, key.n) };
	*ret_more = text + aligned(key.n);
	return o;
}

struct object *object_new(struct kind *kind, str key, struct val val)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	char *none;
	struct object *o = object_alloc(kind, key, 0, &none);

	o->frozen = val_freeze(with_room(&a, val));
	revision_hide(o->frozen->val);
	o->val = o->frozen->val;
	return o;
}

void object_set_revision(struct object *o, int64_t revision)
{
	assert(o->revision == 0 && revision > 0);
	revision_show(o->val, revision);
	o->revision = revision;
	free(TAKE(o->json));
	free(TAKE(o->proto));
}

struct object *object_at_revision(const struct object *o, int64_t revision)
{
	assert(o->revision > 0);
	const struct val *old = metadata_of(o->val);
	size_t root_size = o->val.n * sizeof(struct member), metadata_size = old->n * sizeof(struct member);
	char *more, digits[GO_INT_MAX];
	struct object *at = object_alloc(o->kind, o->key, root_size + metadata_size + REVISION_TEXT_MAX, &more);
	str text = go_format_int(revision, digits);

	memcpy(more, o->val.members, root_size);
	memcpy(more + root_size, old->members, metadata_size);
	memcpy(more + root_size + metadata_size, text.p, text.n);
	at->val = o->val;
	at->val.members = (struct member *)(void *)more;
	struct val *metadata = metadata_of(at->val);
	metadata->members = (struct member *)(void *)(more + root_size);
	text.p = more + root_size + metadata_size;
	members_of(metadata)[revision_place(*metadata)].val = VAL_STR(text);
	at->frozen = frozen_ref(o->frozen);
	at->revision = revision;
	return at;
}

struct object *object_ref(struct object *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	return o;
}

void object_unref(struct object *o)
{
	if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(o->json);
	free(o->proto);
	frozen_unref(o->frozen);
	free(o);
}

void object_unrefp(struct object **o) { object_unref(*o); }

/* ---- encoded forms ---- */

static struct bytes *bytes_of(const struct buf *b)
{
	struct bytes *bytes = mem_alloc(sizeof *bytes + b->n);
	*bytes = (struct bytes){ .n = b->n };
	memcpy(bytes->p, b->p, b->n);
	return bytes;
}

/* An object that its own type does not fit is a bug here; its readers get an empty one, the log its name. */
static void log_unencodable(const struct object *o, const char *form, const struct err *err)
{
	log_error("stored object cannot be encoded", KV("prefix", o->kind->prefix), KV("key", o->key), KV("form", form),
		  KV("err", err));
}

/* The length of {"kind":"Pod","apiVersion":"v1", if text begins so. */
static uint32_t json_skip(str text)
{
	ptrdiff_t metadata = str_find(text, STR("\"metadata\":"));
	bool led = str_starts(text, STR("{\"kind\":\"")) && metadata > 0;
	return led ? (uint32_t)metadata : 1;
}

const struct bytes *object_json(struct object *o)
{
	if (o->json)
		return o->json;
	CLEANUP(buf_done) struct buf b = BUF_INIT(ENCODED_MAX);
	struct err err = ERR_INIT;

	(void)buf_reserve(&b, o->frozen->size); /* as good as always enough */
	if (json_encode(&b, o->val, &(struct json_encode_options){ .type = o->kind->hub }, &err) < 0) {
		log_unencodable(o, "json", &err);
		buf_reset(&b);
		buf_add(&b, STR("{}"));
	}
	o->json = bytes_of(&b);
	o->json->skip = json_skip(buf_str(&b));
	return o->json;
}

/* Lengths of an envelope before and after its message, which is field 2 of what follows the magic: see proto.h. */
static void envelope_measure(struct bytes *b, const struct type *type, struct arena *a)
{
	size_t head = type_api_version(a, type).n + type->name.n + 4; /* field 1: two short strings */
	size_t at = 4 + 2 + head + 1;                                 /* magic, field 1, tag of field 2 */

	while (at < b->n && (unsigned char)b->p[at] >= 0x80)
		at++;
	b->skip = (uint32_t)(at + 1);
	b->tail = 4; /* empty contentEncoding and contentType */
	assert(b->skip + b->tail <= b->n);
	assert(b->p[4] == 0x0a && (unsigned char)b->p[5] == head && b->p[4 + 2 + head] == 0x12);
}

const struct bytes *object_proto(struct object *o)
{
	if (o->proto)
		return o->proto;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(ENCODED_MAX);
	struct err err = ERR_INIT;

	(void)buf_reserve(&b, o->frozen->size);
	if (proto_encode_object(&b, o->val, o->kind->hub, &err) < 0) {
		log_unencodable(o, "protobuf", &err);
		buf_reset(&b);
		(void)proto_encode_object(&b, VAL_EMPTY_OBJECT, o->kind->hub, NULL);
	}
	o->proto = bytes_of(&b);
	envelope_measure(o->proto, o->kind->hub, &a);
	return o->proto;
}
