#include "client/watch_frame.h"

#include <stdlib.h>

#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

enum { LENGTH_BYTES = 4, READ_AHEAD = 64 * 1024, KEEP = 64 * 1024 };

void watch_frames_init(struct watch_frames *f, bool proto)
{
	*f = (struct watch_frames){ .proto = proto };
	buf_init(&f->in, WATCH_FRAME_MAX + LENGTH_BYTES + 2 * READ_AHEAD);
}

void watch_frames_done(struct watch_frames *f) { buf_done(&f->in); }

/* Forgets what was used. An idle watch does not keep the memory of a large event. */
static void compact(struct watch_frames *f)
{
	size_t left = f->in.n - f->at;
	if (!f->at)
		return;
	if (!left && f->in.cap > KEEP) {
		size_t max = f->in.max;
		buf_done(&f->in);
		buf_init(&f->in, max);
	} else if (f->in.n) {
		memmove(f->in.p, f->in.p + f->at, left);
		f->in.n = left;
		f->in.p[left] = '\0';
	}
	f->at = 0;
}

char *watch_frames_room(struct watch_frames *f, size_t n)
{
	compact(f);
	/* What is there is less than the largest event and one reading more, or watch_frames_next would have failed. */
	char *room = buf_reserve(&f->in, n);
	if (!room)
		abort();
	return room;
}

void watch_frames_commit(struct watch_frames *f, size_t n) { buf_commit(&f->in, n); }

static int too_large(struct err *err)
{
	return err_set(err, ERR_TOO_LARGE, "the object of a watch event is larger than %d bytes", WATCH_FRAME_MAX);
}

static int next_proto(struct watch_frames *f, str *ret_frame, struct err *err)
{
	str in = str_skip(buf_str(&f->in), f->at);
	if (in.n < LENGTH_BYTES)
		return 0;
	const unsigned char *p = (const unsigned char *)in.p;
	size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	if (n > WATCH_FRAME_MAX)
		return too_large(err);
	if (in.n < LENGTH_BYTES + n)
		return 0;
	*ret_frame = str_span(in.p + LENGTH_BYTES, n);
	f->at += LENGTH_BYTES + n;
	return 1;
}

/* One byte of JSON: whether it ends the object. */
static bool ends_object(struct watch_frames *f, char c)
{
	if (f->in_string) {
		if (f->escaped)
			f->escaped = false;
		else if (c == '\\')
			f->escaped = true;
		else if (c == '"')
			f->in_string = false;
		return false;
	}
	if (c == '"')
		f->in_string = true;
	else if (c == '{' || c == '[')
		f->depth++;
	else if (c == '}' || c == ']')
		return --f->depth == 0;
	return false;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static int next_json(struct watch_frames *f, str *ret_frame, struct err *err)
{
	while (!f->scanned && f->at < f->in.n && is_space(f->in.p[f->at]))
		f->at++;
	str in = str_skip(buf_str(&f->in), f->at);
	if (in.n && in.p[0] != '{')
		return err_set(err, ERR_UNAVAILABLE, "unable to decode an event from the watch stream: it is no JSON object");
	while (f->scanned < in.n) {
		if (!ends_object(f, in.p[f->scanned++]))
			continue;
		*ret_frame = str_head(in, f->scanned);
		f->at += f->scanned;
		f->scanned = 0;
		return 1;
	}
	return f->scanned > WATCH_FRAME_MAX ? too_large(err) : 0;
}

int watch_frames_next(struct watch_frames *f, str *ret_frame, struct err *err)
{
	return f->proto ? next_proto(f, ret_frame, err) : next_json(f, ret_frame, err);
}

int watch_frames_end(const struct watch_frames *f, struct err *err)
{
	if (f->at == f->in.n)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "unable to decode an event from the watch stream: unexpected EOF");
}

/* An object in the envelope was decoded by its type; what stands there as JSON, or in a watch that is all JSON, is a free tree. */
static bool is_typed(str frame, bool proto)
{
	enum { BEFORE_OBJECT = 64 };
	return proto && str_find(str_head(frame, BEFORE_OBJECT), STR("k8s\0")) >= 0;
}

static int decode_object(struct arena *a, struct val object, const struct type *type, bool typed, struct val *ret, struct err *err)
{
	if (!str_eq(val_str(object, kind), type->name))
		return err_set(err, ERR_UNAVAILABLE, "its object is \"" STR_FMT "\" where " STR_FMT " was expected",
			       STR_ARG(str_head(val_str(object, kind), 60)), STR_ARG(type->name));
	*ret = object;
	return typed ? 0 : val_canonical(a, object, type, NULL, ret, err);
}

int watch_event_decode(struct arena *a, str frame, bool proto, const struct type *type, str *ret_type, struct val *ret_object,
		       struct err *err)
{
	struct val event;
	int r = proto ? proto_decode(a, frame, TYPE(meta_v1, WatchEvent), &event, err) :
			json_decode(a, frame, &(struct json_decode_options){ .type = TYPE(meta_v1, WatchEvent) }, &event, err);
	if (r == 0) {
		*ret_type = val_str(event, type);
		if (str_eq(*ret_type, STR("ERROR")))
			type = TYPE(meta_v1, Status);
		r = decode_object(a, val_get(event, object), type, is_typed(frame, proto), ret_object, err);
	}
	if (r == 0)
		return 0;
	if (err)
		err->code = ERR_UNAVAILABLE;
	return err_wrap(err, -ERR_UNAVAILABLE, "unable to decode an event from the watch stream");
}
