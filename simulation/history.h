/* history: what was written in a run, as a sum over everything and the newest lines. */
#ifndef C8S_SIMULATION_HISTORY_H
#define C8S_SIMULATION_HISTORY_H

#include "base/buf.h"
#include "codec/val.h"
#include "store/store.h"

enum { HISTORY_LINES = 200, HISTORY_LINE_MAX = 240 };

/* What a line is made of: most are never shown. */
struct history_line {
	int64_t now_ns;
	int64_t revision;            /* of a write; 0: text is all there is */
	struct frozen *object;       /* that was written; NULL: it is gone, or nobody knows it */
	bool put;
	char text[HISTORY_LINE_MAX]; /* or the key */
};

struct history {
	uint64_t sum;
	size_t writes;
	bool verbose;
	size_t n;                    /* lines ever */
	struct history_line *lines;  /* a ring */
};

void history_init(struct history *h, bool verbose);
void history_done(struct history *h);
void history_write(struct history *h, str key, const struct store_value *value, int64_t revision);
/* A line of its own: what was done to the cluster. */
void history_say(struct history *h, const char *format, ...) PRINTF_LIKE(2, 3);
/* The newest n lines; with a word, only those with it. */
void history_show(const struct history *h, size_t n, str word, struct buf *out);

#endif
