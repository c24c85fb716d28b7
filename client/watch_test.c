#include "client/client.h"

#include "client/script_testing.h"
#include "client/watch_frame.h"
#include "codec/atoms.h"
#include "codec/types.h"

#define ADDED(name) "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," \
	"\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"1\"}}}"
#define BOOKMARK "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"12\"}}}"
#define END "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," \
	"\"metadata\":{\"resourceVersion\":\"13\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}"
#define GONE "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"," \
	"\"message\":\"too old resource version: 1 (5)\",\"reason\":\"Expired\",\"code\":410}}"

/* ---- frames ---- */

static void put(struct watch_frames *f, str bytes)
{
	memcpy(watch_frames_room(f, bytes.n), bytes.p, bytes.n);
	watch_frames_commit(f, bytes.n);
}

/* All frames of a text that comes in pieces, each followed by '|'; then the error, if there is one. */
static void take_frames(bool proto, str text, size_t piece, struct buf *out)
{
	struct watch_frames f;
	struct err err = ERR_INIT;
	str frame;
	int r = 0;
	watch_frames_init(&f, proto);
	for (; text.n && r >= 0; text = str_skip(text, piece)) {
		put(&f, str_head(text, piece));
		while ((r = watch_frames_next(&f, &frame, &err)) == 1)
			buf_addf(out, STR_FMT "|", STR_ARG(frame));
	}
	if (r >= 0)
		r = watch_frames_end(&f, &err);
	if (r < 0)
		buf_addf(out, "%d %s", err_http_status(err.code), err.msg);
	watch_frames_done(&f);
}

TEST(watch_frames_of_any_size)
{
	static const struct {
		bool proto;
		str in;
		const char *want;
	} t[] = {
		{ false, STR_INIT(""), "" },
		{ false, STR_INIT("{}\n{\"a\":1}\r\n \t{\"b\":[{}]}"), "{}|{\"a\":1}|{\"b\":[{}]}|" },
		{ false, STR_INIT("{\"a\":\"}{\\\"]\\\\\"}{}"), "{\"a\":\"}{\\\"]\\\\\"}|{}|" },
		{ false, STR_INIT("{}{\"a\":"), "{}|503 unable to decode an event from the watch stream: unexpected EOF" },
		{ false, STR_INIT("{}]"), "{}|503 unable to decode an event from the watch stream: it is no JSON object" },
		{ false, STR_INIT("null"), "503 unable to decode an event from the watch stream: it is no JSON object" },
		{ false, STR_INIT("{]{"), "{]|503 unable to decode an event from the watch stream: unexpected EOF" },
		{ true, STR_INIT("\0\0\0\1a\0\0\0\0\0\0\0\2bc"), "a||bc|" },
		{ true, STR_INIT("\0\0\0\2a"), "503 unable to decode an event from the watch stream: unexpected EOF" },
		{ true, STR_INIT("\0\0"), "503 unable to decode an event from the watch stream: unexpected EOF" },
		{ true, STR_INIT("\1\0\0\1xxxx"), "413 the object of a watch event is larger than 16777216 bytes" },
		{ true, STR_INIT("\xff\xff\xff\xffxxxx"), "413 the object of a watch event is larger than 16777216 bytes" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (size_t piece = 1; piece < 20; piece += 3) {
			CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 16);
			take_frames(t[i].proto, t[i].in, piece, &out);
			CHECK_STR_ROW(i, buf_str(&out), t[i].want);
		}
}

TEST(watch_frames_are_bounded)
{
	enum { PIECE = 64 * 1024 };
	struct watch_frames f;
	struct err err = ERR_INIT;
	str frame;
	size_t total = 0;
	int r = 0;
	char *piece = mem_alloc(PIECE);
	memset(piece, '{', PIECE);
	watch_frames_init(&f, false);
	for (; r == 0; total += PIECE) {
		put(&f, str_span(piece, PIECE));
		r = watch_frames_next(&f, &frame, &err);
	}
	CHECK_INT(r, -ERR_TOO_LARGE);
	CHECK(total >= WATCH_FRAME_MAX && total < WATCH_FRAME_MAX + 4 * PIECE);
	watch_frames_done(&f);
	/* The largest one that is allowed; and its memory goes when it was used. */
	watch_frames_init(&f, true);
	put(&f, STR("\1\0\0\0"));
	for (total = 0, r = 0; total < WATCH_FRAME_MAX; total += PIECE) {
		CHECK_INT(watch_frames_next(&f, &frame, &err), 0);
		put(&f, str_span(piece, PIECE));
	}
	CHECK_INT(watch_frames_next(&f, &frame, &err), 1);
	CHECK(frame.n == WATCH_FRAME_MAX);
	CHECK_INT(watch_frames_next(&f, &frame, &err), 0);
	(void)watch_frames_room(&f, 1);
	CHECK(f.in.cap < PIECE);
	watch_frames_done(&f);
	free(piece);
}

/* ---- watching ---- */

static str add_events(struct script *s, struct client *c, const struct client_watch_options *o)
{
	CLEANUP(client_watch_freep) struct client_watch *w = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 16);
	struct client_event e;
	struct err err = ERR_INIT;
	int r = client_watch(c, TYPE(core_v1, Pod), o, &w, &err);
	while (r >= 0 && (r = client_watch_next(w, &e, &err)) == 1)
		buf_addf(&out, "%d " STR_FMT "@" STR_FMT "%s, ", e.type, STR_ARG(val_str(e.object->val, metadata, name)),
			 STR_ARG(val_str(e.object->val, metadata, resourceVersion)), e.initial_end ? " end" : "");
	buf_add(&out, r < 0 ? script_error(s, &err) : STR("ended"));
	return arena_str(&s->arena, buf_str(&out));
}

static str chunked(struct arena *a, const char *text, bool ends)
{
	return arena_printf(a,
			  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
			  "chunked\r\n\r\n%zx\r\n%s\r\n%s", strlen(text), text,
			    ends ? "0\r\n\r\n" : "");
}

#define URL "Get \"http://127.0.0.1:PORT/api/v1/pods?watch=true\": "
#define UNABLE "503: unable to decode an event from the watch stream: "

FIBER_TEST(client_watches)
{
	static const struct {
		const char *events;
		bool ends;
		const char *want;
	} t[] = {
		{ ADDED("a") "\n" ADDED("b") "\n" BOOKMARK "\n" END "\n", true, "0 a@1, 0 b@1, 3 @12, 3 @13 end, ended" },
		{ ADDED("a") GONE ADDED("b"), true, "0 a@1, 410: too old resource version: 1 (5)" },
		/* cut between events, in one, in a chunk */
		{ ADDED("a") "\n", false, "0 a@1, 503: " URL "unexpected EOF" },
		{ ADDED("a") "{\"type\":", true, "0 a@1, " UNABLE "unexpected EOF" },
		{ ADDED("a") "{\"type\":", false, "0 a@1, 503: " URL "unexpected EOF" },
		/* what is no event */
		{ "{\"type\":\"ODD\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}}", true,
		  "503: invalid watch event: unknown type \"ODD\"" },
		{ "{\"type\":\"ADDED\"}", true, UNABLE "its object is \"\" where Pod was expected" },
		{ "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\"}}", true,
		  UNABLE "its object is \"Node\" where Pod was expected" },
		{ "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"spec\":7}}", true,
		  UNABLE "json: cannot unmarshal number into Go struct field Pod.spec of type v1.PodSpec" },
		{ "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"}}", true,
		  "500: an error on the server (\"unknown\") has prevented the request from succeeding" },
		{ "{\"kind\":\"Status\"}", true, UNABLE "its object is \"\" where Pod was expected" },
		{ "<html>", true, UNABLE "it is no JSON object" },
		{ "", true, "ended" },
	};
	struct script s;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		for (s.piece = 0; s.piece < 3; s.piece += 2) {
			if (!*t[i].events && s.piece)
				continue;
			script_reset(&s);
			script_add_raw(&s, *t[i].events ? chunked(&s.arena, t[i].events, t[i].ends) :
							  STR("HTTP/1.1 200 OK\r\nContent-Type: "
							  "application/json\r\nContent-Length: 0\r\n\r\n"));
			s.closes[0] = !t[i].ends;
			CHECK_STR_ROW(i, add_events(&s, c, NULL), t[i].want);
		}
	script_done(&s);
}

FIBER_TEST(client_watch_asks)
{
	struct script s;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	const char gone[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"m\","
			  "\"reason\":\"Gone\",\"code\":410}";
	script_add_json(&s, 429, "Retry-After: 0\r\n", "{}");
	script_add_json(&s, 200, "", "");
	CHECK_STR(add_events(&s, c, &(struct client_watch_options){ .bookmarks = true, .timeout_s = 60,
			  .list = { .namespace = STR("ns"), .labels = STR("a=b"), .revision = STR("7") } }), "ended");
	CHECK_STR(script_line(&s, 1),
			  "GET /api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=7&timeoutSeconds=60 HTTP/1.1");
	script_reset(&s);
	script_add_json(&s, 200, "", ADDED("a"));
	CHECK_STR(add_events(&s, c, &(struct client_watch_options){ .initial = true }), "0 a@1, ended");
	CHECK_STR(script_line(&s, 0),
			  "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan HTTP/1.1");
	/* Too old, by whatever name. */
	script_reset(&s);
	script_add_json(&s, 410, "", gone);
	struct client_watch *w = NULL;
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), -ERR_EXPIRED);
	script_reset(&s);
	script_add_json(&s, 200, "",
			  "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
			  "\"status\":\"Failure\",\"reason\":\"Gone\",\"code\":410,\"message\":\"m\"}}");
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), 0);
	CHECK_INT(client_watch_next(w, &(struct client_event){ 0 }, NULL), -ERR_EXPIRED);
	client_watch_free(w);
	script_reset(&s);
	script_add_json(&s, 204, "", "");
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), -ERR_BAD_REQUEST);
	script_done(&s);
}

/* Four bytes of length, and the message. */
static void add_proto(struct buf *b, const char *type, struct val object, const struct type *of)
{
	CLEANUP(buf_done) struct buf raw = BUF_INIT(1 << 16), m = BUF_INIT(1 << 16);
	CHECK_INT(proto_encode_object(&raw, object, of, NULL), 0);
	CHECK(raw.n + 3 < 16384 && raw.n > 127);
	buf_addf(&m, "\x0a%c%s\x12%c%c\x0a%c%c", (char)strlen(type), type, (char)((raw.n + 3) & 127) | (char)128,
			  (char)((raw.n + 3) >> 7),
		 (char)(raw.n & 127) | (char)128, (char)(raw.n >> 7));
	buf_add(&m, buf_str(&raw));
	const char length[] = { 0, 0, (char)(m.n >> 8), (char)m.n };
	buf_add(b, str_span(length, 4));
	buf_add(b, buf_str(&m));
}

FIBER_TEST(client_watches_in_protobuf)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	struct script s;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	char *image = arena_alloc(&a, 500, 1);
	memset(image, 'i', 500);
	struct val pod = OBJECT(&a, F(metadata, OBJECT(&a, F(name, VAL_LIT("p")), F(resourceVersion, VAL_LIT("9")))),
				F(spec, OBJECT(&a, F(containers, LIST(&a, OBJECT(&a, F(name, VAL_LIT("c")), F(image,
						  val_of_str(str_span(image, 500)))))))));
	struct val status = OBJECT(&a, F(status, VAL_LIT("Failure")), F(reason, VAL_LIT("Expired")), F(message,
			  val_of_str(str_span(image, 200))));
	add_proto(&b, "MODIFIED", pod, TYPE(core_v1, Pod));
	add_proto(&b, "DELETED", pod, TYPE(core_v1, Pod));
	for (s.piece = 0; s.piece < 8; s.piece += 7) {
		script_reset(&s);
		script_add(&s, 200, "", "application/vnd.kubernetes.protobuf;stream=watch", buf_str(&b));
		CHECK_STR(add_events(&s, c, NULL), "1 p@9, 2 p@9, ended");
	}
	add_proto(&b, "ERROR", status, TYPE(meta_v1, Status));
	s.piece = 0;
	script_reset(&s);
	script_add(&s, 200, "", "application/vnd.kubernetes.protobuf;stream=watch", buf_str(&b));
	CHECK(str_starts(add_events(&s, c, NULL), STR("1 p@9, 2 p@9, 410: iiii")));
	/* Of another kind, and broken ones. */
	buf_reset(&b);
	add_proto(&b, "ADDED", val_with(&a, OBJECT(&a, F(metadata, val_get(pod, metadata))),
			  val_of_str(str_span(image, 300)), spec, podCIDR), TYPE(core_v1, Node));
	script_reset(&s);
	script_add(&s, 200, "", "application/vnd.kubernetes.protobuf;stream=watch", buf_str(&b));
	CHECK_STR(add_events(&s, c, NULL), UNABLE "its object is \"Node\" where Pod was expected");
	script_reset(&s);
	script_add(&s, 200, "", "application/vnd.kubernetes.protobuf;stream=watch", STR("\0\0\0\3\x0a\x7f" "A"));
	CHECK_STR(add_events(&s, c, NULL), UNABLE "unexpected EOF");
	script_reset(&s);
	script_add(&s, 200, "", "application/vnd.kubernetes.protobuf;stream=watch", str_head(buf_str(&b), 100));
	CHECK_STR(add_events(&s, c, NULL), UNABLE "unexpected EOF");
	script_done(&s);
}

static int read_one(void *arg)
{
	return client_watch_next(arg, &(struct client_event){ 0 }, NULL);
}

FIBER_TEST(client_watch_waits)
{
	struct script s;
	struct client_watch *w = NULL;
	struct client_event e;
	script_init(&s);
	CLEANUP(client_freep) struct client *c = script_client(&s, (struct client_config){ 0 });
	script_add_raw(&s, chunked(&s.arena, ADDED("a"), false));
	s.stays[0] = true;
	CHECK_INT(client_watch(c, TYPE(core_v1, Pod), NULL, &w, NULL), 0);
	CHECK_INT(client_watch_next(w, &e, NULL), 1);
	{
		DEADLINE_SCOPE(50);
		CHECK_INT(client_watch_next(w, &e, NULL), -ERR_TIMEOUT);
	}
	struct fiber *f = start(read_one, w);
	CHECK_INT(fiber_sleep_ms(10, NULL), 0);
	CHECK_INT(fiber_stop(f), -ERR_CANCELED);
	client_watch_free(w);
	/* Other calls have connections of their own. */
	script_add_json(&s, 200, "", "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}");
	CHECK_INT(client_list(c, TYPE(core_v1, Pod), NULL, NULL, NULL), 0);
	script_done(&s);
}
