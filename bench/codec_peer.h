/* A JSON library to compare ours with; each is in a file of its own, as their headers do not go together. */
#ifndef C8S_BENCH_CODEC_PEER_H
#define C8S_BENCH_CODEC_PEER_H

#include "base/str.h"

struct codec_peer {
	const char *name;
	void *(*decode)(str text);     /* NULL on error; text is terminated */
	void (*release)(void *tree);
	size_t (*encode)(void *tree);  /* compact JSON into memory; returns its length */
};

extern const struct codec_peer codec_peer_jansson, codec_peer_jsonc;

#endif
