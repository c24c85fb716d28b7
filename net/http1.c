/*
 * Heads of HTTP/1 messages. A head is first only searched for its end, line by line, remembering how far it was looked at;
 * once it is complete it is copied into the arena and taken apart there in one pass.
 */
#include "net/http1.h"

#include "net/url.h"

/* ---- classes of bytes ---- */

enum { CLASS_TOKEN = 1, CLASS_HOST = 2 };

/* RFC 9110 tchar, and what Go lets pass in a Host header (RFC 3986 reg-name, IP literals and ports). */
static const unsigned char byte_class[256] = {
	['0' ... '9'] = 3, ['a' ... 'z'] = 3, ['A' ... 'Z'] = 3,
	['!'] = 3, ['#'] = 1, ['$'] = 3, ['%'] = 3, ['&'] = 3, ['\''] = 3, ['('] = 2, [')'] = 2, ['*'] = 3, ['+'] = 3,
	[','] = 2, ['-'] = 3, ['.'] = 3, [':'] = 2, [';'] = 2, ['='] = 2, ['['] = 2, [']'] = 2, ['^'] = 1, ['_'] = 3,
	['`'] = 1, ['|'] = 1, ['~'] = 3,
};

static bool all_of(str s, unsigned char class)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(byte_class[(unsigned char)s.p[i]] & class))
			return false;
	return true;
}

bool http1_is_token(str s) { return s.n > 0 && all_of(s, CLASS_TOKEN); }

bool http1_is_value(str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

bool http1_eq_nocase(str a, str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

/* Without spaces and tabs at both ends: str_trim would also take bytes that are errors here. */
static str trim(str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_skip(s, 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

bool http1_has_token(const struct http_header *headers, size_t n, str name, str token)
{
	for (size_t i = 0; i < n; i++) {
		str item, rest = headers[i].value;
		if (!str_eq(headers[i].name, name))
			continue;
		while (rest.n) {
			(void)str_cut(rest, ',', &item, &rest);
			if (http1_eq_nocase(trim(item), token))
				return true;
		}
	}
	return false;
}

/* ---- finding the end ---- */

void http1_request_init(struct http1_parser *p, size_t max)
{
	*p = (struct http1_parser){ .max = max };
}

void http1_response_init(struct http1_parser *p, size_t max, bool head_only)
{
	*p = (struct http1_parser){ .response = true, .head_only = head_only, .max = max };
}

static int refuse(struct http1_parser *p, int status, struct err *err, const char *what)
{
	p->status = status;
	return err_set(err, status == 431 ? ERR_TOO_LARGE : ERR_BAD_REQUEST, "%s", what);
}

static str without_cr(str line)
{
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

/* The length of the head with its empty line, or 0 when that has not come. A bare LF ends a line too, as RFC 9112 allows. */
static size_t find_end(struct http1_parser *p, str in)
{
	while (p->scanned < in.n) {
		const char *nl = memchr(in.p + p->scanned, '\n', in.n - p->scanned);
		if (!nl) {
			p->scanned = in.n;
			return 0;
		}
		size_t at = (size_t)(nl - in.p);
		bool empty = without_cr(str_span(in.p + p->line, at - p->line)).n == 0;
		p->line = p->scanned = at + 1;
		if (empty)
			return at + 1;
	}
	return 0;
}

/* ---- the first line ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* "HTTP/1.1": 11. Go takes one digit on each side. */
static int parse_version(struct http1_parser *p, str s, unsigned *ret_version, struct err *err)
{
	if (s.n != 8 || !str_starts(s, STR("HTTP/")) || !is_digit(s.p[5]) || s.p[6] != '.' || !is_digit(s.p[7]))
		return refuse(p, 400, err, "malformed HTTP version");
	if (s.p[5] != '1')
		return refuse(p, 505, err, "unsupported protocol version");
	*ret_version = s.p[7] == '0' ? 10 : 11;
	return 0;
}

/* The forms of RFC 9112, section 3.2. */
static int split_target(struct http1_parser *p, struct http1_head *h, struct err *err)
{
	str t = h->target;
	for (size_t i = 0; i < t.n; i++)
		if ((unsigned char)t.p[i] < ' ' || t.p[i] == 0x7f)
			return refuse(p, 400, err, "invalid control character in URL");
	if (str_eq(h->method, STR("CONNECT")) && t.n && t.p[0] != '/') {
		if (!all_of(t, CLASS_HOST))
			return refuse(p, 400, err, "malformed request target");
		h->authority = t;
		return 0;
	}
	if (str_eq(t, STR("*"))) {
		h->path = t;
		return 0;
	}
	if (!t.n)
		return refuse(p, 400, err, "empty request target");
	if (t.p[0] != '/') {
		str scheme = str_head(t, str_starts(t, STR("https://")) ? 8 : 7);
		if (!str_eq(scheme, STR("https://")) && !str_eq(scheme, STR("http://")))
			return refuse(p, 400, err, "invalid URI for request");
		t = str_skip(t, scheme.n);
		size_t n = 0;
		while (n < t.n && t.p[n] != '/' && t.p[n] != '?')
			n++;
		h->authority = str_head(t, n);
		if (!n || !all_of(h->authority, CLASS_HOST))
			return refuse(p, 400, err, "invalid host in request target");
		t = str_skip(t, n);
	}
	(void)str_cut(t, '?', &h->path, &h->query);
	if (!h->path.n)
		h->path = STR("/");
	if (!url_escapes_valid(h->path))
		return refuse(p, 400, err, "invalid URL escape in request target");
	return 0;
}

static int parse_request_line(struct http1_parser *p, str line, struct http1_head *h, struct err *err)
{
	str rest, version;
	if (!str_cut(line, ' ', &h->method, &rest) || !str_cut(rest, ' ', &h->target, &version))
		return refuse(p, 400, err, "malformed HTTP request");
	if (!http1_is_token(h->method))
		return refuse(p, 400, err, "invalid method");
	int r = parse_version(p, version, &h->version, err);
	return r < 0 ? r : split_target(p, h, err);
}

static int parse_status_line(struct http1_parser *p, str line, struct http1_head *h, struct err *err)
{
	str version, rest, code;
	(void)str_cut(line, ' ', &version, &rest);
	int r = parse_version(p, version, &h->version, err);
	if (r < 0)
		return r;
	(void)str_cut(rest, ' ', &code, &h->reason);
	if (code.n != 3 || code.p[0] < '1' || code.p[0] > '9' || !is_digit(code.p[1]) || !is_digit(code.p[2]))
		return refuse(p, 400, err, "malformed HTTP status code");
	if (!http1_is_value(h->reason))
		return refuse(p, 400, err, "malformed HTTP status line");
	h->status = (code.p[0] - '0') * 100 + (code.p[1] - '0') * 10 + (code.p[2] - '0');
	return 0;
}

/* ---- headers ---- */

/* line lies in memory of ours; the name becomes lower case in place. */
static int parse_header(struct http1_parser *p, str line, struct http_header *ret, struct err *err)
{
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return refuse(p, 400, err, "folded header line");
	if (!str_cut(line, ':', &ret->name, &ret->value) || !http1_is_token(ret->name))
		return refuse(p, 400, err, "invalid header name");
	ret->value = trim(ret->value);
	if (!http1_is_value(ret->value))
		return refuse(p, 400, err, "invalid header value");
	for (char *c = (char *)ret->name.p; c < ret->name.p + ret->name.n; c++)
		*c = lower(*c);
	return 0;
}

static int parse_headers(struct http1_parser *p, struct arena *a, str in, struct http1_head *h, struct err *err)
{
	size_t n = 0, cap = 0;
	str line, rest = in;

	while (str_cut(rest, '\n', &line, &rest))
		cap++;
	if (cap > HTTP1_HEADERS_MAX)
		return refuse(p, 431, err, "too many headers");
	struct http_header *headers = ARENA_ARRAY(a, struct http_header, cap);
	for (rest = in; rest.n; n++) {
		(void)str_cut(rest, '\n', &line, &rest);
		line = without_cr(line);
		if (!line.n)
			break; /* the empty line at the end */
		int r = parse_header(p, line, &headers[n], err);
		if (r < 0)
			return r;
	}
	h->headers = headers;
	h->n_headers = n;
	return 0;
}

/* ---- what the headers mean ---- */

/* All values of a header that may stand there once, or several times with the same value: how many, the first in *ret. */
static size_t header_values(const struct http1_head *h, str name, str *ret, bool *ret_differ)
{
	size_t n = 0;
	*ret_differ = false;
	for (size_t i = 0; i < h->n_headers; i++) {
		if (!str_eq(h->headers[i].name, name))
			continue;
		if (n++ == 0)
			*ret = h->headers[i].value;
		else if (!str_eq(*ret, h->headers[i].value))
			*ret_differ = true;
	}
	return n;
}

static int check_host(struct http1_parser *p, struct http1_head *h, struct err *err)
{
	str host = STR_NONE;
	bool differ;
	size_t n = header_values(h, STR("host"), &host, &differ);
	if (n > 1)
		return refuse(p, 400, err, "too many Host headers");
	if (n == 0 && h->version >= 11 && !str_eq(h->method, STR("CONNECT")))
		return refuse(p, 400, err, "missing required Host header");
	if (!all_of(host, CLASS_HOST))
		return refuse(p, 400, err, "malformed Host header");
	if (!h->authority.n)
		h->authority = host;
	return 0;
}

/* RFC 9112, section 6.3; where two parties could read it differently it is refused instead. */
static int find_framing(struct http1_parser *p, struct http1_head *h, struct err *err)
{
	str coding = STR_NONE, length = STR_NONE;
	bool coding_differs, length_differs;
	size_t n_coding = header_values(h, STR("transfer-encoding"), &coding, &coding_differs);
	size_t n_length = header_values(h, STR("content-length"), &length, &length_differs);

	h->content_length = -1;
	if (n_coding && n_length)
		return refuse(p, 400, err, "both Transfer-Encoding and Content-Length");
	if (length_differs)
		return refuse(p, 400, err, "Content-Length headers that differ");
	if (n_length && (length.n == 0 || length.p[0] == '-' || !str_to_i64(length, &h->content_length)))
		return refuse(p, 400, err, "bad Content-Length");
	if (n_coding && h->version < 11)
		return refuse(p, 400, err, "Transfer-Encoding in HTTP/1.0");
	if (n_coding && (n_coding > 1 || !http1_eq_nocase(coding, STR("chunked"))))
		return refuse(p, 501, err, "unsupported transfer encoding");

	if (p->response && (p->head_only || h->status < 200 || h->status == 204 || h->status == 304)) {
		h->framing = HTTP1_BODY_NONE;
	} else if (n_coding) {
		h->framing = HTTP1_BODY_CHUNKED;
	} else if (n_length) {
		h->framing = h->content_length ? HTTP1_BODY_LENGTH : HTTP1_BODY_NONE;
	} else if (p->response) {
		h->framing = HTTP1_BODY_CLOSE;
	} else {
		h->framing = HTTP1_BODY_NONE;
		h->content_length = 0;
	}
	return 0;
}

static int find_meaning(struct http1_parser *p, struct http1_head *h, struct err *err)
{
	int r = p->response ? 0 : check_host(p, h, err);
	if (r < 0 || (r = find_framing(p, h, err)) < 0)
		return r;
	str connection = STR("connection");
	bool close = http1_has_token(h->headers, h->n_headers, connection, STR("close"));
	bool keep = h->version >= 11 || http1_has_token(h->headers, h->n_headers, connection, STR("keep-alive"));
	h->keep_alive = keep && !close && h->framing != HTTP1_BODY_CLOSE;
	if (http1_has_token(h->headers, h->n_headers, connection, STR("upgrade")))
		h->upgrade = http_header_find(h->headers, h->n_headers, STR("upgrade"));
	str expect = http_header_find(h->headers, h->n_headers, STR("expect"));
	if (p->response || !expect.n)
		return 0;
	if (!http1_eq_nocase(expect, STR("100-continue")))
		return refuse(p, 417, err, "unknown expectation");
	h->expect_continue = h->version >= 11 && h->framing != HTTP1_BODY_NONE;
	return 0;
}

int http1_parse(struct http1_parser *p, str in, struct arena *a, struct http1_head *ret_head, size_t *ret_used,
		struct err *err)
{
	struct http1_head h = { 0 };
	str line, rest;

	if (in.n && !(byte_class[(unsigned char)in.p[0]] & CLASS_TOKEN))
		return refuse(p, 400, err, p->response ? "malformed HTTP response" : "malformed HTTP request");
	size_t n = find_end(p, str_head(in, p->max));
	if (!n && in.n >= p->max)
		return refuse(p, 431, err, "the head is too large");
	if (!n)
		return 0;
	str text = arena_str(a, str_head(in, n));
	(void)str_cut(text, '\n', &line, &rest);
	line = without_cr(line);
	int r = p->response ? parse_status_line(p, line, &h, err) : parse_request_line(p, line, &h, err);
	if (r < 0 || (r = parse_headers(p, a, rest, &h, err)) < 0 || (r = find_meaning(p, &h, err)) < 0)
		return r;
	*ret_head = h;
	*ret_used = n;
	return 1;
}

/* ---- writing ---- */

const char *http1_reason(int status)
{
	static const struct { int status; const char *reason; } t[] = {
		{ 100, "Continue" }, { 101, "Switching Protocols" }, { 200, "OK" }, { 201, "Created" }, { 202, "Accepted" },
		{ 203, "Non-Authoritative Information" }, { 204, "No Content" }, { 205, "Reset Content" },
		{ 206, "Partial Content" }, { 300, "Multiple Choices" }, { 301, "Moved Permanently" }, { 302, "Found" },
		{ 303, "See Other" }, { 304, "Not Modified" }, { 307, "Temporary Redirect" }, { 308, "Permanent Redirect" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "Not Found" }, { 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" }, { 408, "Request Timeout" }, { 409, "Conflict" }, { 410, "Gone" },
		{ 411, "Length Required" }, { 412, "Precondition Failed" }, { 413, "Request Entity Too Large" },
		{ 414, "Request URI Too Long" }, { 415, "Unsupported Media Type" },
		{ 416, "Requested Range Not Satisfiable" }, { 417, "Expectation Failed" },
		{ 421, "Misdirected Request" }, { 422, "Unprocessable Entity" }, { 425, "Too Early" },
		{ 426, "Upgrade Required" }, { 428, "Precondition Required" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" }, { 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 502, "Bad Gateway" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" }, { 507, "Insufficient Storage" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		if (t[i].status == status)
			return t[i].reason;
	return "";
}

void http1_add_status(struct buf *b, int status)
{
	buf_addf(b, "HTTP/1.1 %03d %s\r\n", status, http1_reason(status));
}

void http1_add_request(struct buf *b, str method, str target)
{
	buf_add(b, method);
	buf_addc(b, ' ');
	buf_add(b, target);
	buf_add(b, STR(" HTTP/1.1\r\n"));
}

void http1_add_header(struct buf *b, str name, str value)
{
	char *out = buf_reserve(b, name.n + value.n + 4);
	if (!out)
		return;
	for (size_t i = 0; i < name.n; i++) {
		bool first = i == 0 || name.p[i - 1] == '-';
		char c = lower(name.p[i]);
		*out++ = first && c >= 'a' && c <= 'z' ? (char)(c - ('a' - 'A')) : c;
	}
	*out++ = ':';
	*out++ = ' ';
	for (size_t i = 0; i < value.n; i++)
		*out++ = http1_is_value(str_span(&value.p[i], 1)) ? value.p[i] : ' ';
	*out++ = '\r';
	*out++ = '\n';
	buf_commit(b, name.n + value.n + 4);
}

void http1_add_headers(struct buf *b, const struct http_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		http1_add_header(b, headers[i].name, headers[i].value);
}

void http1_add_end(struct buf *b) { buf_add(b, STR("\r\n")); }
