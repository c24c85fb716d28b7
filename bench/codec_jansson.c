#include <jansson.h>
#include <stdlib.h>

#include "bench/codec_peer.h"

static void *decode(str text) { return json_loadb(text.p, text.n, 0, NULL); }
static void release(void *tree) { json_decref(tree); }

static size_t encode(void *tree)
{
	char *text = json_dumps(tree, JSON_COMPACT);
	size_t n = strlen(text);
	free(text);
	return n;
}

const struct codec_peer codec_peer_jansson = { "jansson", decode, release, encode };
