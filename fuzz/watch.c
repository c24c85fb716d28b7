/*
 * The answer to a watch: what is taken for events does not depend on the pieces in which it comes, and each is an object with
 * apiVersion or kind. The first byte chooses protobuf (odd) or JSON.
 */
#include "client/watch_frame.h"

#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"
#include "fuzz/fuzz.h"

/* The events one after another, and how it ended. */
static void take(bool proto, str in, size_t piece, struct buf *out)
{
	struct watch_frames f;
	struct err err = ERR_INIT;
	int r = 0;
	watch_frames_init(&f, proto);
	for (; in.n && r >= 0; in = str_skip(in, piece)) {
		str part = str_head(in, piece), frame, type;
		memcpy(watch_frames_room(&f, part.n), part.p, part.n);
		watch_frames_commit(&f, part.n);
		while ((r = watch_frames_next(&f, &frame, &err)) == 1) {
			struct arena a = ARENA_INIT;
			struct val object;
			buf_addf(out, "%zu ", frame.n);
			if (watch_event_decode(&a, frame, proto, TYPE(core_v1, ConfigMap), &type, &object, NULL) == 0) {
				check(val_str(object, kind).n > 0, "an event has an object");
				check(json_encode(out, object, &(struct json_encode_options){ 0 }, NULL) == 0, "it can be written");
			}
			arena_done(&a);
		}
	}
	if (r >= 0)
		r = watch_frames_end(&f, &err);
	buf_addf(out, "%d", r);
	watch_frames_done(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf whole = BUF_INIT(64 << 20), pieces = BUF_INIT(64 << 20);
	if (n < 1 || n > 64 * 1024)
		return 0;
	str in = str_span((const char *)data + 1, n - 1);
	take(data[0] & 1, in, 64 * 1024, &whole);
	take(data[0] & 1, in, 1 + data[0] / 2, &pieces);
	check(str_eq(buf_str(&whole), buf_str(&pieces)), "pieces do not matter");
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
