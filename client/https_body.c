#include <zlib.h>

#include "base/fiber_io.h"
#include "client/https_priv.h"
#include "codec/codec.h"

enum { PIECE = 32 * 1024, REQUEST_MAX = 64 << 20, LARGE = 256 * 1024, GZIP = 16 /* added to the window bits: gzip's header */ };

/* ---- sending ---- */

int https_body_encode(struct arena *a, const struct client_request *q, bool json_only, struct buf *out, str *ret_content_type,
		      struct err *err)
{
	struct val body = q->body;
	int r = 0;
	*ret_content_type = STR_NONE;
	if (!val_exists(body) && !q->text.n)
		return 0;
	buf_init(out, REQUEST_MAX);
	if (q->text.n) {
		*ret_content_type = q->content_type;
		buf_add(out, q->text);
		return buf_check(out, "the request", err);
	}
	/* It may have been put together in any order. */
	if (q->body_type && (r = val_canonical(a, body, q->body_type, NULL, &body, err)) < 0)
		return r;
	if (q->body_type && !q->content_type.n && !json_only) {
		*ret_content_type = STR("application/vnd.kubernetes.protobuf");
		return proto_encode_object(out, body, q->body_type, err);
	}
	*ret_content_type = q->content_type.n ? q->content_type : STR("application/json");
	return json_encode(out, body, &(struct json_encode_options){ .type = q->body_type }, err);
}

/* ---- receiving ---- */

static int too_large(size_t max, struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "the answer is larger than %zu bytes", max);
}

struct unpacking {
	str in;
	struct buf *out;
	size_t max;
};

/* On a thread: a few bytes can become very many. */
static int unpack(void *arg, struct err *err)
{
	struct unpacking *u = arg;
	z_stream z = { .next_in = (Bytef *)(uintptr_t)u->in.p, .avail_in = (uInt)u->in.n };
	int r = 0, state = Z_OK;
	if (inflateInit2(&z, MAX_WBITS + GZIP) != Z_OK)
		return err_set(err, ERR_INTERNAL, "gzip cannot be read");
	while (r == 0 && state != Z_STREAM_END) {
		char *room = buf_reserve(u->out, PIECE);
		if (!room) {
			r = too_large(u->max, err);
			break;
		}
		z.next_out = (Bytef *)room;
		z.avail_out = PIECE;
		state = inflate(&z, Z_NO_FLUSH);
		buf_commit(u->out, PIECE - z.avail_out);
		if ((state != Z_OK && state != Z_STREAM_END) || (state == Z_OK && z.avail_out && !z.avail_in))
			r = err_set(err, ERR_UNAVAILABLE, "gzip: invalid data");
	}
	(void)inflateEnd(&z);
	if (r == 0 && u->out->n > u->max)
		r = too_large(u->max, err);
	return r;
}

/* (suspends) As it comes. */
static int read_plain(struct exchange *x, size_t max, struct buf *out, struct err *err)
{
	for (;;) {
		char *room = buf_reserve(out, PIECE);
		if (!room)
			return too_large(max, err);
		ssize_t n = http_call_read(x->call, room, PIECE, err);
		if (n < 0)
			return err_wrap(err, https_unavailable((int)n, err),
					"unexpected error when reading response body. Please retry. Original error");
		if (n == 0)
			return out->n > max ? too_large(max, err) : 0;
		buf_commit(out, (size_t)n);
	}
}

int https_body_read(struct exchange *x, size_t max, struct buf *out, struct err *err)
{
	CLEANUP(buf_done) struct buf packed = BUF_INIT(max + PIECE);
	str encoding = http_header_find(x->head->headers, x->head->n_headers, STR("content-encoding"));
	buf_init(out, max + PIECE);
	if (!http1_eq_nocase(encoding, STR("gzip")))
		return read_plain(x, max, out, err);
	int r = read_plain(x, max, &packed, err);
	struct unpacking u = { .in = buf_str(&packed), .out = out, .max = max };
	return r < 0 ? r : fiber_blocking(unpack, &u, err);
}

bool https_is_proto(str content_type)
{
	str media, rest;
	(void)str_cut(content_type, ';', &media, &rest);
	return http1_eq_nocase(str_trim(media), STR("application/vnd.kubernetes.protobuf"));
}

struct decoding {
	str content_type, body;
	struct frozen *object;
};

static int decode(void *arg, struct err *err)
{
	struct decoding *d = arg;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct type *type;
	struct val v;
	int r = https_is_proto(d->content_type) ? proto_decode_object(&a, d->body, &v, &type, err) :
						  json_decode_object(&a, d->body, NULL, &v, &type, err);
	if (r < 0) {
		if (err)
			err->code = ERR_UNAVAILABLE;
		return err_wrap(err, -ERR_UNAVAILABLE, "the server's answer cannot be decoded");
	}
	d->object = val_freeze(v);
	return 0;
}

int https_body_decode(str content_type, str body, struct frozen **ret, struct err *err)
{
	struct decoding d = { .content_type = content_type, .body = body };
	int r = body.n < LARGE ? decode(&d, err) : fiber_blocking(decode, &d, err);
	*ret = d.object;
	return r;
}
