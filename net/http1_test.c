#include "net/http1.h"

#include "base/test.h"

/* Parses text given in pieces of step bytes: the result of http1_parse, with the head in *ret. */
static int parse_in_steps(struct arena *a, struct http1_parser *p, str text, size_t step, struct http1_head *ret,
			  size_t *ret_used, struct err *err)
{
	int r = 0;
	for (size_t n = MIN(step, text.n); r == 0; n = MIN(n + step, text.n)) {
		r = http1_parse(p, str_head(text, n), a, ret, ret_used, err);
		if (n == text.n)
			break;
	}
	return r;
}

#define HOST "Host: h\r\n"

TEST(http1_request_errors)
{
	static const struct { const char *in; int status; const char *error; } t[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", 0, "" },
		{ "GET / HTTP/1.1\n" "Host: h\n\n", 0, "" },
		{ "GET / HTTP/1.0\r\n\r\n", 0, "" },
		{ "GET / HTTP/1.1\r\nHost:\r\n\r\n", 0, "" },
		{ "M-SEARCH * HTTP/1.1\r\n" HOST "\r\n", 0, "" },
		{ "GET / HTTP/1.1\r\n\r\n", 400, "missing required Host header" },
		{ "GET / HTTP/1.1\r\n" HOST "host: h\r\n\r\n", 400, "too many Host headers" },
		{ "GET / HTTP/1.0\r\n" HOST "host: h\r\n\r\n", 400, "too many Host headers" },
		{ "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "malformed Host header" },
		{ "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "malformed Host header" },
		{ "\r\n", 400, "malformed HTTP request" },
		{ "\x16\x03\x01", 400, "malformed HTTP request" },
		{ " GET / HTTP/1.1\r\n", 400, "malformed HTTP request" },
		{ "GET /\r\n\r\n", 400, "malformed HTTP request" },
		{ "GET  / HTTP/1.1\r\n" HOST "\r\n", 400, "malformed HTTP version" },
		{ "GET / HTTP/1.1 \r\n" HOST "\r\n", 400, "malformed HTTP version" },
		{ "GET / x HTTP/1.1\r\n" HOST "\r\n", 400, "malformed HTTP version" },
		{ "GET / HTTP/1.1\r\r\n" HOST "\r\n", 400, "malformed HTTP version" },
		{ "GET / http/1.1\r\n" HOST "\r\n", 400, "malformed HTTP version" },
		{ "GET / HTTP/11\r\n" HOST "\r\n", 400, "malformed HTTP version" },
		{ "GET / HTTP/2.0\r\n" HOST "\r\n", 505, "unsupported protocol version" },
		{ "GET / HTTP/0.9\r\n" HOST "\r\n", 505, "unsupported protocol version" },
		{ "G@T / HTTP/1.1\r\n" HOST "\r\n", 400, "invalid method" },
		{ "GET x HTTP/1.1\r\n" HOST "\r\n", 400, "invalid URI for request" },
		{ "GET /%zz HTTP/1.1\r\n" HOST "\r\n", 400, "invalid URL escape in request target" },
		{ "GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400, "invalid control character in URL" },
		{ "GET http:// HTTP/1.1\r\n" HOST "\r\n", 400, "invalid host in request target" },
		{ "GET http://a@b/ HTTP/1.1\r\n" HOST "\r\n", 400, "invalid host in request target" },
		{ "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400, "invalid header name" },
		{ "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400, "invalid header name" },
		{ "GET / HTTP/1.1\r\n" HOST "a\r\n\r\n", 400, "invalid header name" },
		{ "GET / HTTP/1.1\r\n" HOST "\xc3\xa4: b\r\n\r\n", 400, "invalid header name" },
		{ "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n", 400, "folded header line" },
		{ "GET / HTTP/1.1\r\n" HOST "\tfolded\r\n\r\n", 400, "folded header line" },
		{ "GET / HTTP/1.1\r\n" HOST "a: b\rc\r\n\r\n", 400, "invalid header value" },
		{ "GET / HTTP/1.1\r\n" HOST "a: b\r\r\n\r\n", 400, "invalid header value" },
		{ "GET / HTTP/1.1\r\n" HOST "a: \x7f\r\n\r\n", 400, "invalid header value" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400,
		  "both Transfer-Encoding and Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: 1\r\ncontent-length: 2\r\n\r\n", 400, "Content-Length headers that differ" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: 1\r\ncontent-length: 1\r\n\r\n", 0, "" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length:\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: 1, 1\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: +1\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: -1\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: -0\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: 0x1\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "content-length: 9223372036854775808\r\n\r\n", 400, "bad Content-Length" },
		{ "GET / HTTP/1.1\r\n" HOST "transfer-encoding: gzip, chunked\r\n\r\n", 501, "unsupported transfer encoding" },
		{ "GET / HTTP/1.1\r\n" HOST "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n", 501,
		  "unsupported transfer encoding" },
		{ "GET / HTTP/1.1\r\n" HOST "transfer-encoding:\r\n\r\n", 501, "unsupported transfer encoding" },
		{ "GET / HTTP/1.0\r\n" HOST "transfer-encoding: chunked\r\n\r\n", 400, "Transfer-Encoding in HTTP/1.0" },
		{ "GET / HTTP/1.1\r\n" HOST "expect: tea\r\n\r\n", 417, "unknown expectation" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (size_t step = 1; step < 100; step += 98) {
			CLEANUP(arena_done) struct arena a = ARENA_INIT;
			struct http1_parser p;
			struct http1_head h;
			struct err err = ERR_INIT;
			size_t used = 0;
			http1_request_init(&p, 1000);
			int r = parse_in_steps(&a, &p, str_of(t[i].in), step, &h, &used, &err);
			CHECK_STR_ROW(i, err_str(&err), t[i].error);
			CHECK_ROW(i, r == (t[i].status ? -ERR_BAD_REQUEST : 1) && p.status == t[i].status);
			CHECK_ROW(i, t[i].status || used == strlen(t[i].in));
		}
	}
}

TEST(http1_request_target)
{
	static const struct { const char *line, *method, *path, *query, *authority; } t[] = {
		{ "GET /", "GET", "/", "", "h" },
		{ "GET /a%2Fb?x=1?y", "GET", "/a%2Fb", "x=1?y", "h" },
		{ "GET //a", "GET", "//a", "", "h" },
		{ "GET /a?", "GET", "/a", "", "h" },
		{ "GET http://other:8080?x", "GET", "/", "x", "other:8080" },
		{ "POST https://[::1]:6443/api", "POST", "/api", "", "[::1]:6443" },
		{ "OPTIONS *", "OPTIONS", "*", "", "h" },
		{ "CONNECT a:443", "CONNECT", "", "", "a:443" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct http1_parser p;
		struct http1_head h;
		size_t used = 0;
		http1_request_init(&p, 1000);
		str text = arena_printf(&a, "%s HTTP/1.1\r\nhost: h\r\n\r\n", t[i].line);
		CHECK_ROW(i, http1_parse(&p, text, &a, &h, &used, NULL) == 1);
		CHECK_STR_ROW(i, h.method, t[i].method);
		CHECK_STR_ROW(i, h.path, t[i].path);
		CHECK_STR_ROW(i, h.query, t[i].query);
		CHECK_STR_ROW(i, h.authority, t[i].authority);
	}
}

TEST(http1_request_meaning)
{
	static const struct {
		const char *version, *headers;
		enum http1_framing framing;
		int64_t length;
		bool keep, expect;
		const char *upgrade;
	} t[] = {
		{ "1.1", "", HTTP1_BODY_NONE, 0, true, false, "" },
		{ "1.0", "", HTTP1_BODY_NONE, 0, false, false, "" },
		{ "1.0", "Connection: Keep-Alive\r\n", HTTP1_BODY_NONE, 0, true, false, "" },
		{ "1.2", "Connection: close\r\n", HTTP1_BODY_NONE, 0, false, false, "" },
		{ "1.1", "Connection: x , Close\r\n", HTTP1_BODY_NONE, 0, false, false, "" },
		{ "1.1", "Content-Length: 0\r\n", HTTP1_BODY_NONE, 0, true, false, "" },
		{ "1.1", "Content-Length: 7\r\nExpect: 100-Continue\r\n", HTTP1_BODY_LENGTH, 7, true, true, "" },
		{ "1.0", "Content-Length: 7\r\nExpect: 100-continue\r\n", HTTP1_BODY_LENGTH, 7, false, false, "" },
		{ "1.1", "Expect: 100-continue\r\n", HTTP1_BODY_NONE, 0, true, false, "" },
		{ "1.1", "Transfer-Encoding: Chunked\r\n", HTTP1_BODY_CHUNKED, -1, true, false, "" },
		{ "1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", HTTP1_BODY_NONE, 0, true, false, "websocket" },
		{ "1.1", "Upgrade: websocket\r\n", HTTP1_BODY_NONE, 0, true, false, "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct http1_parser p;
		struct http1_head h;
		size_t used = 0;
		http1_request_init(&p, 1000);
		str text = arena_printf(&a, "PUT / HTTP/%s\r\nHOST: h\r\n%s\r\nmore", t[i].version, t[i].headers);
		CHECK_ROW(i, http1_parse(&p, text, &a, &h, &used, NULL) == 1);
		CHECK_ROW(i, used == text.n - 4 && h.framing == t[i].framing && h.content_length == t[i].length);
		CHECK_ROW(i, h.keep_alive == t[i].keep && h.expect_continue == t[i].expect);
		CHECK_STR_ROW(i, h.upgrade, t[i].upgrade);
	}
}

TEST(http1_headers)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct http1_parser p;
	struct http1_head h;
	size_t used = 0;
	http1_request_init(&p, 1000);
	str text = STR("GET / HTTP/1.1\r\nHost: h\r\nX-A:  one\ttwo \t\r\nx-a: \xc3\xa4\nEmpty:\r\n\r\n");
	CHECK_INT(http1_parse(&p, text, &a, &h, &used, NULL), 1);
	CHECK_INT(h.n_headers, 4);
	CHECK_STR(h.headers[1].name, "x-a");
	CHECK_STR(h.headers[1].value, "one\ttwo");
	CHECK_STR(h.headers[2].value, "\xc3\xa4");
	CHECK_STR(http_header_find(h.headers, h.n_headers, STR("empty")), "");
	CHECK(http_header_find(h.headers, h.n_headers, STR("missing")).p == NULL);
}

TEST(http1_head_limits)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct http1_parser p;
	struct http1_head h;
	size_t used = 0;
	str text = STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n");

	http1_request_init(&p, text.n);
	CHECK_INT(http1_parse(&p, text, &a, &h, &used, NULL), 1);
	http1_request_init(&p, text.n - 1);
	CHECK_INT(http1_parse(&p, text, &a, &h, &used, NULL), -ERR_TOO_LARGE);
	CHECK_INT(p.status, 431);
	buf_add(&b, STR("GET / HTTP/1.1\r\nHost: h\r\n"));
	for (int i = 0; i < HTTP1_HEADERS_MAX; i++)
		buf_add(&b, STR("a:\n"));
	buf_add(&b, STR("\r\n"));
	http1_request_init(&p, 1 << 20);
	CHECK_INT(http1_parse(&p, buf_str(&b), &a, &h, &used, NULL), -ERR_TOO_LARGE);
	CHECK_INT(p.status, 431);
}

TEST(http1_response)
{
	static const struct { const char *in; bool head; int r, status; enum http1_framing framing; bool keep; } t[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, 1, 200, HTTP1_BODY_LENGTH, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, 1, 200, HTTP1_BODY_NONE, true },
		{ "HTTP/1.1 200\r\n\r\n", false, 1, 200, HTTP1_BODY_CLOSE, false },
		{ "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", false, 1, 200, HTTP1_BODY_CHUNKED, true },
		{ "HTTP/1.0 404 Not Found\r\n\r\n", false, 1, 404, HTTP1_BODY_CLOSE, false },
		{ "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", false, 1, 304, HTTP1_BODY_NONE, true },
		{ "HTTP/1.1 204 No Content\r\n\r\n", false, 1, 204, HTTP1_BODY_NONE, true },
		{ "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", false, 1, 101, HTTP1_BODY_NONE, true },
		{ "HTTP/1.1 20 OK\r\n\r\n", false, -ERR_BAD_REQUEST, 0, 0, false },
		{ "HTTP/1.1 2000 OK\r\n\r\n", false, -ERR_BAD_REQUEST, 0, 0, false },
		{ "HTTP/1.1 +20 OK\r\n\r\n", false, -ERR_BAD_REQUEST, 0, 0, false },
		{ "HTTP/2 200 OK\r\n\r\n", false, -ERR_BAD_REQUEST, 0, 0, false },
		{ "HTTP/1.1 200 O\x01K\r\n\r\n", false, -ERR_BAD_REQUEST, 0, 0, false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false, -ERR_BAD_REQUEST, 0, 0, false },
		{ "\n", false, -ERR_BAD_REQUEST, 0, 0, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct http1_parser p;
		struct http1_head h;
		size_t used = 0;
		http1_response_init(&p, 1000, t[i].head);
		CHECK_ROW(i, parse_in_steps(&a, &p, str_of(t[i].in), 1, &h, &used, NULL) == t[i].r);
		if (t[i].r == 1)
			CHECK_ROW(i, h.status == t[i].status && h.framing == t[i].framing && h.keep_alive == t[i].keep);
	}
}

/* ---- bodies ---- */

/* Decodes in given in pieces of step bytes: 1 with the data in out and what was used, 0 when it has no end, or an error. */
static int decode(struct http1_body *b, str in, size_t step, struct buf *out, size_t *ret_used, struct err *err)
{
	int r = http1_body_done(b);
	*ret_used = 0;
	while (r == 0 && *ret_used < in.n) {
		size_t used;
		str data;
		r = http1_body_next(b, str_head(str_skip(in, *ret_used), step), &used, &data, err);
		buf_add(out, data);
		*ret_used += used;
	}
	return r;
}

TEST(http1_chunked)
{
	static const struct { const char *in; int r; const char *out; size_t left; } t[] = {
		{ "0\r\n\r\n", 1, "", 0 },
		{ "3\r\nabc\r\n0\r\n\r\nnext", 1, "abc", 4 },
		{ "3\r\nabc\r\nA\r\n0123456789\r\n00\r\n\r\n", 1, "abc0123456789", 0 },
		{ "3;x=\"y\"\r\nabc\r\n0;z\r\n\r\n", 1, "abc", 0 },
		{ "3 \t;x\r\nabc\r\n0 \r\n\r\n", 1, "abc", 0 },
		{ "0\r\nA: b\r\nC:\r\n\r\nx", 1, "", 1 },
		{ "3\r\nab", 0, "ab", 0 },
		{ "0\r\n", 0, "", 0 },
		{ "\r\n", -ERR_BAD_REQUEST, "empty hex number for chunk length", 0 },
		{ " 3\r\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk length", 0 },
		{ "3 4\r\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk length", 0 },
		{ ";\r\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk length", 0 },
		{ "0x3\r\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk length", 0 },
		{ "-3\r\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk length", 0 },
		{ "3\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk length", 0 },
		{ "3;x\nabc\r\n", -ERR_BAD_REQUEST, "invalid byte in chunk extension", 0 },
		{ "3\rx", -ERR_BAD_REQUEST, "malformed chunked encoding", 0 },
		{ "3\r\nabcd\r\n", -ERR_BAD_REQUEST, "malformed chunked encoding", 0 },
		{ "3\r\nabc\n0\r\n\r\n", -ERR_BAD_REQUEST, "malformed chunked encoding", 0 },
		{ "8000000000000000\r\n", -ERR_BAD_REQUEST, "http chunk length too large", 0 },
		{ "00000000000000001\r\n", -ERR_BAD_REQUEST, "http chunk length too large", 0 },
		{ "0\r\nA b: c\r\n\r\n", -ERR_BAD_REQUEST, "malformed trailer after chunked body", 0 },
		{ "0\r\n: c\r\n\r\n", -ERR_BAD_REQUEST, "malformed trailer after chunked body", 0 },
		{ "0\r\nA: c\n\r\n", -ERR_BAD_REQUEST, "malformed trailer after chunked body", 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (size_t step = 1; step < 100; step += 33) {
			CLEANUP(buf_done) struct buf out = BUF_INIT(100);
			struct http1_head h = { .framing = HTTP1_BODY_CHUNKED, .content_length = -1 };
			struct http1_body b;
			struct err err = ERR_INIT;
			size_t used;
			http1_body_init(&b, &h);
			CHECK_ROW(i, decode(&b, str_of(t[i].in), step, &out, &used, &err) == t[i].r);
			CHECK_STR_ROW(i, t[i].r < 0 ? err_str(&err) : buf_str(&out), t[i].out);
			CHECK_ROW(i, t[i].r < 0 || strlen(t[i].in) - used == t[i].left);
			CHECK_ROW(i, t[i].r < 0 || http1_body_eof(&b, NULL) == (t[i].r == 1 ? 0 : -ERR_BAD_REQUEST));
		}
	}
}

TEST(http1_chunked_limits)
{
	struct http1_head h = { .framing = HTTP1_BODY_CHUNKED };
	CLEANUP(buf_done) struct buf in = BUF_INIT(1 << 22), out = BUF_INIT(1 << 20);
	struct http1_body b;
	struct err err = ERR_INIT;
	size_t used;

	/* One byte per chunk is fine, however many. */
	for (int i = 0; i < 100000; i++)
		buf_add(&in, STR("1\r\nX\r\n"));
	http1_body_init(&b, &h);
	CHECK_INT(decode(&b, buf_str(&in), 1000, &out, &used, &err), 0);
	CHECK_INT(out.n, 100000);

	/* Extensions that outweigh the data are not. */
	buf_reset(&in);
	for (int i = 0; i < 1000; i++)
		buf_add(&in, STR("1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\nX\r\n"));
	http1_body_init(&b, &h);
	CHECK_INT(decode(&b, buf_str(&in), 1000, &out, &used, &err), -ERR_BAD_REQUEST);
	CHECK_STR(err_str(&err), "chunked encoding contains too much non-data");

	/* Nor a line or trailers without end. */
	static const char *const starts[] = { "1;", "0\r\na:" };
	for (size_t k = 0; k < ARRAY_LEN(starts); k++) {
		buf_reset(&in);
		buf_add(&in, str_of(starts[k]));
		for (int i = 0; i < 5000; i++)
			buf_addc(&in, 'x');
		http1_body_init(&b, &h);
		CHECK_ROW(k, decode(&b, buf_str(&in), 1000, &out, &used, &err) == -ERR_BAD_REQUEST);
	}
}

TEST(http1_plain_bodies)
{
	static const struct { enum http1_framing framing; int64_t length; const char *out; int r, eof; size_t used; } t[] = {
		{ HTTP1_BODY_NONE, 0, "", 1, 0, 0 },
		{ HTTP1_BODY_LENGTH, 3, "abc", 1, 0, 3 },
		{ HTTP1_BODY_LENGTH, 9, "abcdef", 0, -ERR_BAD_REQUEST, 6 },
		{ HTTP1_BODY_CLOSE, -1, "abcdef", 0, 0, 6 },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(100);
		struct http1_head h = { .framing = t[i].framing, .content_length = t[i].length };
		struct http1_body b;
		size_t used;
		http1_body_init(&b, &h);
		CHECK_ROW(i, decode(&b, STR("abcdef"), 2, &out, &used, NULL) == t[i].r && used == t[i].used);
		CHECK_ROW(i, http1_body_eof(&b, NULL) == t[i].eof && http1_body_done(&b) == t[i].r);
		CHECK_STR_ROW(i, buf_str(&out), t[i].out);
	}
}

/* ---- writing ---- */

TEST(http1_write)
{
	static const struct http_header headers[] = {
		{ STR_INIT("content-type"), STR_INIT("text/plain") },
		{ STR_INIT("x-evil"), STR_INIT("a\r\nSet-Cookie: b\x01") },
	};
	CLEANUP(buf_done) struct buf b = BUF_INIT(1000);
	http1_add_status(&b, 404);
	http1_add_headers(&b, headers, ARRAY_LEN(headers));
	http1_add_end(&b);
	CHECK_STR(buf_str(&b), "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nX-Evil: a  Set-Cookie: b \r\n\r\n");
	buf_reset(&b);
	http1_add_request(&b, STR("GET"), STR("/x?y"));
	CHECK_STR(buf_str(&b), "GET /x?y HTTP/1.1\r\n");
	char head[HTTP1_CHUNK_HEAD_MAX];
	CHECK_STR(str_span(head, http1_chunk_head(head, 17)), "11\r\n");
	CHECK_STR(str_span(head, http1_chunk_head(head, SIZE_MAX)), "ffffffffffffffff\r\n");
}

TEST(http1_tokens)
{
	static const struct http_header h[] = {
		{ STR_INIT("connection"), STR_INIT("a, Upgrade ,,b") }, { STR_INIT("x"), STR_INIT("c") },
		{ STR_INIT("connection"), STR_INIT("d") },
	};
	static const struct { const char *token; bool has; } t[] = {
		{ "a", true }, { "upgrade", true }, { "B", true }, { "c", false }, { "d", true }, { "up", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		CHECK_ROW(i, http1_has_token(h, ARRAY_LEN(h), STR("connection"), str_of(t[i].token)) == t[i].has);
}
