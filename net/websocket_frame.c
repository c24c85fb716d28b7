/* Frames and handshake headers of WebSockets: no I/O here. */
#include <openssl/evp.h>

#include "base/encoding.h"
#include "base/random.h"
#include "net/http1.h"
#include "net/websocket.h"

/* ---- frames ---- */

static uint64_t be(const unsigned char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static int frame_check(const struct ws_frame *f, unsigned reserved, struct err *err)
{
	bool control = f->opcode >= WS_CLOSE;
	if (reserved)
		return err_set(err, ERR_BAD_REQUEST, "websocket: reserved bits are set");
	if (f->opcode > WS_PONG || (f->opcode > WS_BINARY && f->opcode < WS_CLOSE))
		return err_set(err, ERR_BAD_REQUEST, "websocket: unknown opcode %d", f->opcode);
	if (control && (!f->fin || f->length > WS_CONTROL_MAX))
		return err_set(err, ERR_BAD_REQUEST, "websocket: a control frame that is fragmented or too long");
	return 0;
}

int ws_frame_parse(str in, struct ws_frame *ret_frame, size_t *ret_used, struct err *err)
{
	const unsigned char *p = (const unsigned char *)in.p;
	if (in.n < 2)
		return 0;
	struct ws_frame f = { .fin = p[0] & 0x80, .masked = p[1] & 0x80, .opcode = p[0] & 15, .length = p[1] & 127 };
	size_t n_length = f.length == 127 ? 8 : f.length == 126 ? 2 : 0;
	int r = frame_check(&f, p[0] & 0x70, err);
	if (r < 0)
		return r;
	size_t n = 2 + n_length + (f.masked ? 4 : 0);
	if (in.n < n)
		return 0;
	if (n_length)
		f.length = be(p + 2, n_length);
	if (f.length >> 63 || (n_length == 2 && f.length < 126) || (n_length == 8 && f.length <= UINT16_MAX))
		return err_set(err, ERR_BAD_REQUEST, "websocket: a length that is not in its shortest form");
	if (f.masked)
		memcpy(f.mask, p + 2 + n_length, 4);
	*ret_frame = f;
	*ret_used = n;
	return 1;
}

size_t ws_frame_write(char out[WS_FRAME_HEAD_MAX], const struct ws_frame *f)
{
	unsigned char *p = (unsigned char *)out;
	size_t n_length = f->length > UINT16_MAX ? 8 : f->length > 125 ? 2 : 0;
	p[0] = (unsigned char)((f->fin ? 0x80 : 0) | f->opcode);
	p[1] = (unsigned char)((f->masked ? 0x80 : 0) | (n_length == 8 ? 127 : n_length == 2 ? 126 : f->length));
	for (size_t i = 0; i < n_length; i++)
		p[2 + i] = (unsigned char)(f->length >> (8 * (n_length - 1 - i)));
	if (f->masked)
		memcpy(p + 2 + n_length, f->mask, 4);
	return 2 + n_length + (f->masked ? 4 : 0);
}

void ws_mask(char *p, size_t n, const uint8_t mask[4], uint64_t offset)
{
	uint8_t turned[8];
	uint64_t word, at;
	size_t i = 0;
	for (size_t k = 0; k < sizeof(turned); k++)
		turned[k] = mask[(offset + k) & 3];
	memcpy(&word, turned, sizeof(word));
	for (; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&at, p + i, sizeof(at));
		at ^= word;
		memcpy(p + i, &at, sizeof(at));
	}
	for (; i < n; i++)
		p[i] = (char)((uint8_t)p[i] ^ turned[i & 7]);
}

/* The first byte of a character says how many follow and, to keep out overlong forms and surrogates, the next one's range. */
static bool utf8_first(struct ws_utf8 *u, uint8_t c)
{
	u->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	u->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	u->left = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	return c < 0x80 || (c >= 0xc2 && c <= 0xf4);
}

bool ws_utf8_next(struct ws_utf8 *u, str piece)
{
	for (size_t i = 0; i < piece.n; i++) {
		uint8_t c = (uint8_t)piece.p[i];
		if (!u->left) {
			if (!utf8_first(u, c))
				return false;
			continue;
		}
		if (c < u->low || c > u->high)
			return false;
		u->low = 0x80;
		u->high = 0xbf;
		u->left--;
	}
	return true;
}

/* ---- handshake ---- */

void ws_accept_key(str key, char ret_key[WS_ACCEPT_KEY + 1])
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(SIZE_MAX);
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	buf_add(&b, key);
	buf_add(&b, STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
	/* A library without SHA-1 leaves an answer that no client accepts. */
	if (EVP_Digest(b.p, b.n, sum, &n, EVP_sha1(), NULL) != 1 || n != 20)
		memset(sum, 0, n = 20);
	base64_encode(ret_key, str_span((char *)sum, n));
	ret_key[WS_ACCEPT_KEY] = '\0';
}

bool ws_is_upgrade(const struct http_header *headers, size_t n)
{
	return http1_has_token(headers, n, STR("connection"), STR("upgrade")) &&
	       http1_has_token(headers, n, STR("upgrade"), STR("websocket"));
}

static bool is_among(str s, const char *const *list)
{
	for (; list && *list; list++)
		if (str_eq(s, str_of(*list)))
			return true;
	return false;
}

str ws_choose_protocol(const struct http_header *headers, size_t n, const char *const *supported)
{
	for (size_t i = 0; i < n; i++) {
		str item, rest = headers[i].value;
		if (!str_eq(headers[i].name, STR("sec-websocket-protocol")))
			continue;
		while (rest.n) {
			(void)str_cut(rest, ',', &item, &rest);
			if (is_among(str_trim(item), supported))
				return str_trim(item);
		}
	}
	return STR_NONE;
}

static void add_header(struct ws_headers *h, str name, str value)
{
	h->headers[h->n++] = (struct http_header){ name, value };
}

int ws_accept_headers(struct arena *a, const struct http_header *headers, size_t n, str protocol, struct ws_headers *ret,
		      struct err *err)
{
	char accept[WS_ACCEPT_KEY + 1], raw[18];
	size_t n_raw;
	str key = http_header_find(headers, n, STR("sec-websocket-key"));
	if (!ws_is_upgrade(headers, n))
		return err_set(err, ERR_BAD_REQUEST, "websocket: the client is not using the websocket protocol");
	if (!str_eq(http_header_find(headers, n, STR("sec-websocket-version")), STR("13")))
		return err_set(err, ERR_BAD_REQUEST, "websocket: unsupported version: 13 not found in "
			       "'Sec-Websocket-Version' header");
	if (key.n != 24 || base64_decode(raw, key, &n_raw, NULL) < 0 || n_raw != 16)
		return err_set(err, ERR_BAD_REQUEST, "websocket: not a websocket handshake: 'Sec-WebSocket-Key' "
			       "header must be Base64 encoded value of 16-byte in length");
	ws_accept_key(key, accept);
	*ret = (struct ws_headers){ 0 };
	add_header(ret, STR("upgrade"), STR("websocket"));
	add_header(ret, STR("connection"), STR("Upgrade"));
	add_header(ret, STR("sec-websocket-accept"), arena_str(a, str_of(accept)));
	if (protocol.n)
		add_header(ret, STR("sec-websocket-protocol"), arena_str(a, protocol));
	return 0;
}

void ws_request_headers(struct arena *a, const char *const *protocols, struct ws_headers *ret)
{
	char nonce[16];
	str list = STR_NONE;
	*ret = (struct ws_headers){ 0 };
	random_bytes(nonce, sizeof(nonce));
	base64_encode(ret->key, str_span(nonce, sizeof(nonce)));
	add_header(ret, STR("upgrade"), STR("websocket"));
	add_header(ret, STR("connection"), STR("Upgrade"));
	add_header(ret, STR("sec-websocket-version"), STR("13"));
	add_header(ret, STR("sec-websocket-key"), arena_str(a, str_span(ret->key, sizeof(ret->key))));
	for (; protocols && *protocols; protocols++)
		list = arena_printf(a, STR_FMT "%s%s", STR_ARG(list), list.n ? ", " : "", *protocols);
	if (list.n)
		add_header(ret, STR("sec-websocket-protocol"), list);
}

int ws_check_response(const struct ws_headers *request, const char *const *protocols, int status,
		      const struct http_header *headers, size_t n, str *ret_protocol, struct err *err)
{
	char want[WS_ACCEPT_KEY + 1];
	str protocol = http_header_find(headers, n, STR("sec-websocket-protocol"));
	if (status != 101)
		return err_set(err, ERR_BAD_REQUEST, "websocket: bad handshake (status %d)", status);
	ws_accept_key(str_span(request->key, sizeof(request->key)), want);
	if (!ws_is_upgrade(headers, n) || !str_eq(http_header_find(headers, n, STR("sec-websocket-accept")), str_of(want)))
		return err_set(err, ERR_BAD_REQUEST, "websocket: bad handshake");
	if (protocol.n && !is_among(protocol, protocols))
		return err_set(err, ERR_BAD_REQUEST, "websocket: the server chose a protocol that was not offered");
	if (http_header_find(headers, n, STR("sec-websocket-extensions")).n)
		return err_set(err, ERR_BAD_REQUEST, "websocket: the server chose an extension that was not offered");
	*ret_protocol = protocol;
	return 0;
}
