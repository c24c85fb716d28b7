/* Between objects and the bytes of the store: version, codec, encryption. */
#include "apiserver/cache_priv.h"
#include "apiserver/transformer.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "machinery/convert.h"
#include "machinery/validate.h"

/* Requests are far smaller; this only has to be beyond what a store takes. */
enum { VALUE_MAX = 64 << 20 };

str cache_store_key(struct arena *a, const struct kind *kind, str key) { return arena_join(a, kind->prefix, key); }

static void attached_unref(void *object) { object_unref(object); }

struct object *cache_attached(const struct store_value *v)
{
	return v->object_unref == attached_unref ? v->object : NULL;
}

int cache_encode(struct object *o, struct store_value **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf plain = BUF_INIT(VALUE_MAX), sealed = BUF_INIT(VALUE_MAX);
	const struct kind *kind = o->kind;
	/* The store knows the revision of a key by itself. */
	struct val v = o->revision ? val_without(&a, o->val, metadata, resourceVersion) : o->val;
	int r;

	if (kind->protobuf) {
		r = proto_encode_object(&plain, v, kind->hub, err);
	} else {
		r = json_encode(&plain, v, &(struct json_encode_options){ .type = kind->hub }, err);
		buf_addc(&plain, '\n');
	}
	if (r >= 0 && kind->transformer)
		r = transformer_encrypt(kind->transformer, cache_store_key(&a, kind, o->key), buf_str(&plain), &sealed,
					err);
	if (r < 0)
		return r;
	*ret = store_value_new(buf_str(kind->transformer ? &sealed : &plain));
	(*ret)->object = object_ref(o);
	(*ret)->object_unref = attached_unref;
	return 0;
}

static int decode_plain(struct arena *a, const struct kind *kind, str plain, struct val *ret, struct err *err)
{
	const struct type *type;
	struct val v;
	int r = proto_is_envelope(plain) ? proto_decode_object(a, plain, &v, &type, err) :
					   json_decode_object(a, plain, NULL, &v, &type, err);
	if (r >= 0 && !type)
		r = convert_stored(a, v, &v, &type, err);
	if (r < 0)
		return r;
	if (!type)
		return err_set(err, ERR_INTERNAL, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(val_str(v, kind)), STR_ARG(val_str(v, apiVersion)));
	if ((r = convert_object(a, v, type, kind->hub, &v, err)) < 0)
		return r;
	return default_object(a, kind->hub, v, ret, err);
}

int cache_decode(struct kind *kind, str key, const struct store_kv *kv, struct object **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf opened = BUF_INIT(VALUE_MAX);
	str plain = store_value_str(kv->value);
	struct val v;
	int r;

	if (kind->transformer) {
		r = transformer_decrypt(kind->transformer, cache_store_key(&a, kind, key), plain, &opened, NULL, err);
		if (r < 0)
			return r;
		plain = buf_str(&opened);
	}
	if ((r = decode_plain(&a, kind, plain, &v, err)) < 0)
		return r;
	*ret = object_new(kind, key, v);
	object_set_revision(*ret, kv->mod_revision);
	return 0;
}
