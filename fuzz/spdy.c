/*
 * SPDY frames: what a peer sends, frame after frame through one unpacker; and the bytes as the plain text of a header
 * block that is packed and must come back.
 */
#include "fuzz/fuzz.h"
#include "net/spdy_frame.h"

static void try_frames(str in)
{
	struct spdy_unpacker *u = spdy_unpacker_new();
	struct spdy_frame f;
	while (in.n >= SPDY_FRAME_HEAD && spdy_frame_parse(in.p, &f, NULL) == 0) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct spdy_control c;
		in = str_skip(in, SPDY_FRAME_HEAD);
		if (f.length > in.n)
			break;
		if (f.control && spdy_control_parse(&f, str_head(in, f.length), u, &a, &c, NULL) < 0)
			break;
		for (size_t i = 0; f.control && i < c.n_headers; i++)
			check(c.headers[i].name.n > 0, "a header has a name");
		in = str_skip(in, f.length);
	}
	spdy_unpacker_free(u);
}

/* Lines "name=value" become headers. */
static void try_headers(str in)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct http_header h[20], *got;
	size_t n = 0, n_got = 0;
	while (in.n && n < ARRAY_LEN(h)) {
		str line;
		(void)str_cut(in, '\n', &line, &in);
		(void)str_cut(line, '=', &h[n].name, &h[n].value);
		/* A header needs a name, and '\0' would separate values. */
		if (h[n].name.n && str_chr(line, '\0') < 0)
			n++;
	}
	struct spdy_packer *p = spdy_packer_new();
	struct spdy_unpacker *u = spdy_unpacker_new();
	for (int round = 0; round < 2; round++) {
		buf_reset(&b);
		if (spdy_pack(p, h, n, &b, NULL) < 0)
			break; /* too large */
		check(spdy_unpack(u, buf_str(&b), &a, &got, &n_got, NULL) == 0, "and unpacked");
		check(n_got == n, "none is lost");
	}
	spdy_packer_free(p);
	spdy_unpacker_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	str in = str_span((const char *)data, n);
	try_frames(in);
	try_headers(in);
	return 0;
}
