/*
 * Bodies of HTTP/1 messages. Chunk lines and trailers go through a small state machine byte by byte; data is never
 * copied. The limits are those of Go: 4 KiB per chunk line and for all trailers, and overhead that piles up beyond
 * 16 bytes per chunk plus twice its data is refused at 16 KiB.
 */
#include "net/http1.h"

enum { LINE_MAX_BYTES = 4096, EXCESS_MAX = 16 * 1024, SIZE_DIGITS_MAX = 16 };

enum state {
	SIZE,           /* digits of a chunk's size */
	SIZE_SPACE,     /* white space after them */
	EXTENSION,
	SIZE_LF,
	DATA,           /* of a chunk, or of a body with a length */
	DATA_CR,
	DATA_LF,
	TRAILER_START,  /* of a line */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	LAST_LF,
	DONE,
};

void http1_body_init(struct http1_body *b, const struct http1_head *head)
{
	*b = (struct http1_body){ .framing = head->framing, .state = DATA };
	if (head->framing == HTTP1_BODY_LENGTH)
		b->left = (uint64_t)head->content_length;
	else if (head->framing == HTTP1_BODY_CHUNKED)
		b->state = SIZE;
	if (head->framing == HTTP1_BODY_NONE || (head->framing == HTTP1_BODY_LENGTH && !b->left))
		b->state = DONE;
}

bool http1_body_done(const struct http1_body *b) { return b->state == DONE; }

int http1_body_eof(const struct http1_body *b, struct err *err)
{
	if (b->state == DONE || b->framing == HTTP1_BODY_CLOSE)
		return 0;
	return err_set(err, ERR_BAD_REQUEST, "unexpected EOF");
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The line with a chunk's size is complete. */
static int begin_chunk(struct http1_body *b, struct err *err)
{
	uint64_t allowed = 16 + 2 * MIN(b->left, (uint64_t)1 << 60);
	b->excess += b->line + 2;
	b->excess -= MIN(b->excess, allowed);
	if (b->excess > EXCESS_MAX)
		return err_set(err, ERR_BAD_REQUEST, "chunked encoding contains too much non-data");
	b->line = 0;
	b->digits = 0;
	b->state = b->left ? DATA : TRAILER_START;
	return 0;
}

static int size_byte(struct http1_body *b, char c, struct err *err)
{
	int digit = digit_value(c);
	if (b->state == SIZE && digit >= 0) {
		if (++b->digits > SIZE_DIGITS_MAX || b->left >> 59)
			return err_set(err, ERR_BAD_REQUEST, "http chunk length too large");
		b->left = b->left * 16 + (uint64_t)digit;
		return 0;
	}
	if (!b->digits)
		return err_set(err, ERR_BAD_REQUEST, "%s",
			       c == '\r' ? "empty hex number for chunk length" : "invalid byte in chunk length");
	if (c == '\r')
		b->state = SIZE_LF;
	else if (c == ';')
		b->state = EXTENSION;
	else if (c == ' ' || c == '\t')
		b->state = SIZE_SPACE;
	else
		return err_set(err, ERR_BAD_REQUEST, "invalid byte in chunk length");
	return 0;
}

static int trailer_byte(struct http1_body *b, char c, struct err *err)
{
	str byte = str_span(&c, 1);
	if (b->state == TRAILER_VALUE && c == '\r')
		b->state = TRAILER_LF;
	else if (b->state == TRAILER_VALUE && http1_is_value(byte))
		return 0;
	else if (b->state == TRAILER_NAME && c == ':')
		b->state = TRAILER_VALUE;
	else if (b->state == TRAILER_START && c == '\r')
		b->state = LAST_LF;
	else if (b->state != TRAILER_VALUE && http1_is_token(byte))
		b->state = TRAILER_NAME;
	else
		return err_set(err, ERR_BAD_REQUEST, "malformed trailer after chunked body");
	return 0;
}

static int framing_byte(struct http1_body *b, char c, struct err *err)
{
	bool trailer = b->state >= TRAILER_START;
	if (b->state != DATA_CR && b->state != DATA_LF && ++b->line > LINE_MAX_BYTES)
		return err_set(err, ERR_BAD_REQUEST, "%s",
			       trailer ? "suspiciously long trailer after chunked body" : "header line too long");
	switch (b->state) {
	case SIZE:
	case SIZE_SPACE:
		return size_byte(b, c, err);
	case EXTENSION:
		if (c == '\r')
			b->state = SIZE_LF;
		else if (!http1_is_value(str_span(&c, 1)))
			return err_set(err, ERR_BAD_REQUEST, "invalid byte in chunk extension");
		return 0;
	case TRAILER_START:
	case TRAILER_NAME:
	case TRAILER_VALUE:
		return trailer_byte(b, c, err);
	case DATA_CR:
		b->state = DATA_LF;
		if (c != '\r')
			return err_set(err, ERR_BAD_REQUEST, "malformed chunked encoding");
		return 0;
	}
	if (c != '\n')
		return err_set(err, ERR_BAD_REQUEST, "malformed chunked encoding");
	if (b->state == SIZE_LF)
		return begin_chunk(b, err);
	b->state = b->state == DATA_LF ? SIZE : b->state == LAST_LF ? DONE : TRAILER_START;
	return 0;
}

int http1_body_next(struct http1_body *b, str in, size_t *ret_used, str *ret_data, struct err *err)
{
	size_t at = 0;
	*ret_data = STR_NONE;
	*ret_used = 0;
	while (at < in.n && b->state != DATA && b->state != DONE) {
		int r = framing_byte(b, in.p[at++], err);
		if (r < 0)
			return r;
	}
	if (at < in.n && b->state == DATA) {
		*ret_data = str_skip(in, at);
		if (b->framing != HTTP1_BODY_CLOSE) {
			*ret_data = str_head(*ret_data, MIN((uint64_t)ret_data->n, b->left));
			b->left -= ret_data->n;
		}
		at += ret_data->n;
		if (b->framing != HTTP1_BODY_CLOSE && !b->left)
			b->state = b->framing == HTTP1_BODY_CHUNKED ? DATA_CR : DONE;
	}
	*ret_used = at;
	return b->state == DONE;
}

size_t http1_chunk_head(char p[HTTP1_CHUNK_HEAD_MAX], size_t n)
{
	char digits[HTTP1_CHUNK_HEAD_MAX];
	size_t at = sizeof(digits);
	digits[--at] = '\n';
	digits[--at] = '\r';
	do {
		digits[--at] = "0123456789abcdef"[n & 15];
		n >>= 4;
	} while (n);
	memcpy(p, digits + at, sizeof(digits) - at);
	return sizeof(digits) - at;
}
