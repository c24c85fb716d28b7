/*
 * WebSocket frames: a sequence of frames as a peer would send it, and a handshake made of the same bytes. A head that
 * parses must be written to the same bytes, and text is judged the same in pieces as at once.
 */
#include "fuzz/fuzz.h"
#include "net/websocket.h"

static void try_frames(str in)
{
	struct ws_frame f;
	size_t used;
	char again[WS_FRAME_HEAD_MAX], payload[256];
	while (ws_frame_parse(in, &f, &used, NULL) == 1) {
		check(used <= WS_FRAME_HEAD_MAX && used <= in.n, "a head has its size");
		check(ws_frame_write(again, &f) == used && memcmp(again, in.p, used) == 0, "a head is written as it was");
		in = str_skip(in, used);
		str data = str_head(in, (size_t)MIN(f.length, (uint64_t)sizeof(payload)));
		if (data.n)
			memcpy(payload, data.p, data.n);
		ws_mask(payload, data.n, f.mask, 0);
		for (size_t i = 0; i < data.n; i++)
			ws_mask(payload + i, 1, f.mask, i);
		check(data.n == 0 || memcmp(payload, data.p, data.n) == 0, "masking twice changes nothing");
		in = str_skip(in, (size_t)MIN(f.length, (uint64_t)in.n));
	}
}

static void try_text(str in)
{
	struct ws_utf8 u = { 0 };
	bool ok = true;
	for (size_t i = 0; ok && i < in.n; i++)
		ok = ws_utf8_next(&u, str_span(in.p + i, 1));
	check((ok && u.left == 0) == str_is_utf8(in), "text is judged alike");
}

static void try_handshake(str in)
{
	static const char *const supported[] = { "a", "b", NULL };
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct http_header h[] = {
		{ STR("connection"), STR("upgrade") }, { STR("upgrade"), STR("websocket") },
		{ STR("sec-websocket-version"), STR("13") },
		{ STR("sec-websocket-key"), in }, { STR("sec-websocket-protocol"), in },
	};
	struct ws_headers answer;
	str protocol = ws_choose_protocol(h, ARRAY_LEN(h), supported);
	check(protocol.n <= 1, "only what is supported is chosen");
	(void)ws_accept_headers(&a, h, ARRAY_LEN(h), protocol, &answer, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	str in = str_span((const char *)data, n);
	try_frames(in);
	try_text(in);
	try_handshake(in);
	return 0;
}
