/*
 * The answer to a watch, taken apart: bytes in, events out. In protobuf every event has its length before it; in JSON they
 * stand one after another. No I/O; work is linear in the input, memory is bounded by the largest event.
 */
#ifndef C8S_CLIENT_WATCH_FRAME_H
#define C8S_CLIENT_WATCH_FRAME_H

#include "base/buf.h"
#include "codec/schema.h"

enum { WATCH_FRAME_MAX = 16 << 20 };  /* client-go's limit, too */

struct watch_frames {
	bool proto;
	struct buf in;                /* in.p[at..] is not used yet */
	size_t at;
	size_t scanned;               /* JSON: of what is not used, so much was looked at */
	unsigned depth;               /* and there it was inside of so many brackets, */
	bool in_string, escaped;      /* and of a string */
};

void watch_frames_init(struct watch_frames *f, bool proto);
void watch_frames_done(struct watch_frames *f);
/*
 * Room for n (at most 64 KiB) more bytes, after watch_frames_next said that it wants some, and how many were put there. The last
 * frame is gone then.
 */
char *watch_frames_room(struct watch_frames *f, size_t n) NONNULL_RESULT;
void watch_frames_commit(struct watch_frames *f, size_t n);
/* 1 with the next event's bytes; 0: more are needed. -ERR_UNAVAILABLE for what can be no event, -ERR_TOO_LARGE beyond the limit. */
int watch_frames_next(struct watch_frames *f, str *ret_frame, struct err *err);
/* The answer has ended: -ERR_UNAVAILABLE when that was in the middle of an event. */
int watch_frames_end(const struct watch_frames *f, struct err *err);

/*
 * One event: its type and its object, of this type (a Status for "ERROR"). In the arena, or borrowed from the frame.
 * -ERR_UNAVAILABLE for what is none.
 */
int watch_event_decode(struct arena *a, str frame, bool proto, const struct type *type, str *ret_type, struct val *ret_object,
		       struct err *err);

#endif
