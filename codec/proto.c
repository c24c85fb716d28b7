/* The envelope around objects: "k8s\0", then runtime.Unknown {typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2, ...}. */
#include "codec/proto.h"

#include "codec/proto_wire.h"

static const str magic = STR_INIT("k8s\0");

bool proto_is_envelope(str bytes) { return str_starts(bytes, magic); }

/* The strings 1 and 2 of a message; others are passed over. names are Go's, for errors. */
static int read_two(str bytes, str message, const char *const names[2], str ret[2], struct err *err)
{
	struct reader r = reader_of(bytes);
	int e = 0;
	while (e >= 0 && r.at < r.end) {
		struct tag t;
		if ((e = reader_tag(&r, message, &t, err)) < 0)
			return e;
		if (t.number > 2)
			e = reader_skip(&r, &t, err);
		else if (t.wire_type != WIRE_BYTES)
			return wire_type_error(&t, str_of(names[t.number - 1]), err);
		else
			e = reader_bytes(&r, &ret[t.number - 1], err);
	}
	return e;
}

struct envelope {
	str api_version, kind, raw;
};

static int envelope_open(str bytes, struct envelope *ret, struct err *err)
{
	static const char *const unknown_names[] = { "TypeMeta", "Raw" }, *const meta_names[] = { "APIVersion", "Kind" };
	str unknown[2] = { STR_NONE, STR_NONE }, meta[2] = { STR_NONE, STR_NONE };
	int e;

	if (bytes.n == 0)
		return err_set(err, ERR_BAD_REQUEST, "empty data");
	if (!proto_is_envelope(bytes))
		return err_set(err, ERR_BAD_REQUEST,
			       "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
	if (bytes.n == magic.n)
		return err_set(err, ERR_BAD_REQUEST, "empty body");
	if ((e = read_two(str_skip(bytes, magic.n), STR("Unknown"), unknown_names, unknown, err)) < 0 ||
	    (e = read_two(unknown[0], STR("TypeMeta"), meta_names, meta, err)) < 0)
		return e;
	*ret = (struct envelope){ .api_version = meta[0], .kind = meta[1], .raw = unknown[1] };
	return 0;
}

static int envelope_decode(struct arena *a, const struct envelope *env, const struct type *type, unsigned nesting,
			   struct val *ret, struct err *err)
{
	struct proto_root root = { .api_version = env->api_version, .kind = env->kind, .nesting = nesting };
	return proto_decode_root(a, env->raw, type, &root, ret, err);
}

int proto_decode_nested(struct arena *a, str bytes, unsigned nesting, struct val *ret, const struct type **ret_type,
			struct err *err)
{
	struct envelope env;
	int e = envelope_open(bytes, &env, err);
	if (e < 0)
		return e;
	if (env.kind.n == 0 || env.api_version.n == 0)
		return err_set(err, ERR_BAD_REQUEST,
			       "Object '%s' is missing in 'runtime.TypeMeta{APIVersion:\"" STR_FMT "\", Kind:\"" STR_FMT "\"}'",
			       env.kind.n ? "apiVersion" : "Kind", STR_ARG(env.api_version), STR_ARG(env.kind));
	const struct type *type = schema_kind(env.api_version, env.kind);
	if (!type)
		return err_set(err, ERR_BAD_REQUEST, "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT "\"",
			       STR_ARG(env.kind), STR_ARG(env.api_version));
	e = envelope_decode(a, &env, type, nesting, ret, err);
	if (e >= 0)
		*ret_type = type;
	return e;
}

int proto_decode_object(struct arena *a, str bytes, struct val *ret, const struct type **ret_type, struct err *err)
{
	return proto_decode_nested(a, bytes, 0, ret, ret_type, err);
}

int proto_decode_object_as(struct arena *a, str bytes, const struct type *type, struct val *ret, struct err *err)
{
	struct envelope env;
	int e = envelope_open(bytes, &env, err);
	return e < 0 ? e : envelope_decode(a, &env, type, 0, ret, err);
}
