#include <json-c/json.h>

#include "bench/codec_peer.h"

static void *decode(str text)
{
	struct json_tokener *t = json_tokener_new();
	struct json_object *tree = json_tokener_parse_ex(t, text.p, (int)text.n);
	json_tokener_free(t);
	return tree;
}

static void release(void *tree) { json_object_put(tree); }

static size_t encode(void *tree)
{
	size_t n;
	(void)json_object_to_json_string_length(tree, JSON_C_TO_STRING_PLAIN, &n);
	return n;
}

const struct codec_peer codec_peer_jsonc = { "json-c", decode, release, encode };
