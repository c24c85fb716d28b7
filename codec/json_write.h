/*
 * Writing JSON into a struct buf without asking it for every byte, private to this folder. A writer takes over the end of the
 * buffer: between begin and end nobody else may touch it. Everything that is written ends in a comma, see json_encode.c.
 */
#ifndef C8S_CODEC_JSON_WRITE_H
#define C8S_CODEC_JSON_WRITE_H

#include "codec/json.h"

/* Room that json_room is asked for beyond a text: for quotes, brackets and commas. */
enum { JSON_SLACK = 16 };

struct json_writer {
	char *at, *limit;
	struct buf *buf;
	size_t start, max; /* of the buffer, as it was given */
	bool html;         /* escape < > & */
	const char *bad;   /* a number that JSON does not have */
};

void json_writer_begin(struct json_writer *w, struct buf *b, bool html);
/* Leaves the buffer with what was written; as it was before when that failed or is too much. */
void json_writer_end(struct json_writer *w, bool ok);
bool json_grow(struct json_writer *w, size_t n);

/* False when the buffer's maximum is reached. */
static inline bool json_room(struct json_writer *w, size_t n)
{
	return LIKELY((size_t)(w->limit - w->at) >= n) || json_grow(w, n);
}

/* Copies a short text for which there is room. */
static inline void json_copy(struct json_writer *w, str s)
{
	char *at = w->at;

	if (s.n >= 16) {
		size_t i = 0;
		for (; i + 16 < s.n; i += 16)
			memcpy(at + i, s.p + i, 16);
		memcpy(at + s.n - 16, s.p + s.n - 16, 16);
	} else if (s.n >= 8) {
		memcpy(at, s.p, 8);
		memcpy(at + s.n - 8, s.p + s.n - 8, 8);
	} else if (s.n >= 4) {
		memcpy(at, s.p, 4);
		memcpy(at + s.n - 4, s.p + s.n - 4, 4);
	} else {
		for (size_t i = 0; i < s.n; i++)
			at[i] = s.p[i];
	}
	w->at = at + s.n;
}

/* All of these put a comma behind and return false when the buffer's maximum is reached or the value is no JSON. */
bool json_write_string(struct json_writer *w, str s);
bool json_write_base64(struct json_writer *w, str bytes);
bool json_write_double(struct json_writer *w, double d, bool single);
/* Text that is JSON already. */
bool json_write_text(struct json_writer *w, str text);
/* Anything but a list or object. */
bool json_write_scalar(struct json_writer *w, struct val v);

/* Appends compact JSON in the layout of Go's MarshalIndent. */
void json_write_indented(struct buf *b, str compact, unsigned indent);

#endif
