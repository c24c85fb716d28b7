#include "base/encoding.h"

#include "base/random.h"

/*
 * base64. Decode tables hold value + 1, so that 0, which all other characters have, means "not in the alphabet".
 */
#define DECODE_COMMON                                                                                             \
	['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8, ['I'] = 9,        \
	['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, \
	['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, \
	['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, \
	['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, \
	['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, \
	['2'] = 55, ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62

struct alphabet {
	bool padded;
	char encode[65];
	uint8_t decode[256];
};

static const struct alphabet std = {
	true,
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	{ DECODE_COMMON, ['+'] = 63, ['/'] = 64 },
};

static const struct alphabet url = {
	false,
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	{ DECODE_COMMON, ['-'] = 63, ['_'] = 64 },
};

static size_t b64_encode(const struct alphabet *a, char *out, str in)
{
	const unsigned char *p = (const unsigned char *)in.p;
	size_t left = in.n;
	char *at = out;

	for (; left >= 3; left -= 3, p += 3, at += 4) {
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
		at[0] = a->encode[v >> 18];
		at[1] = a->encode[v >> 12 & 63];
		at[2] = a->encode[v >> 6 & 63];
		at[3] = a->encode[v & 63];
	}
	if (left) {
		uint32_t v = (uint32_t)p[0] << 16 | (left == 2 ? (uint32_t)p[1] << 8 : 0);
		*at++ = a->encode[v >> 18];
		*at++ = a->encode[v >> 12 & 63];
		if (left == 2)
			*at++ = a->encode[v >> 6 & 63];
		for (; a->padded && left < 3; left++)
			*at++ = '=';
	}
	return (size_t)(at - out);
}

static void b64_encode_buf(const struct alphabet *a, struct buf *b, str in)
{
	size_t n = a->padded ? base64_encoded_len(in.n) : base64url_encoded_len(in.n);
	char *at = buf_reserve(b, in.n <= SIZE_MAX / 2 ? n : SIZE_MAX); /* near SIZE_MAX, n has wrapped around */
	if (at)
		buf_commit(b, b64_encode(a, at, in));
}

/* Reading position and output of one decoding. */
struct decoder {
	const struct alphabet *a;
	str in;
	size_t at;
	char *out;
};

static int corrupt(struct err *err, size_t at)
{
	return err_set(err, ERR_BAD_REQUEST, "illegal base64 data at input byte %zu", at);
}

static void skip_line_ends(struct decoder *d)
{
	while (d->at < d->in.n && (d->in.p[d->at] == '\n' || d->in.p[d->at] == '\r'))
		d->at++;
}

static void put_quantum(struct decoder *d, const uint32_t six[4], size_t chars)
{
	uint32_t v = six[0] << 18 | six[1] << 12 | six[2] << 6 | six[3];
	for (size_t i = 1; i < chars; i++, v <<= 8)
		*d->out++ = (char)(v >> 16 & 0xff);
}

/* After the '=' that followed `chars` characters of the last quantum: a second one if there were two, then nothing. */
static int decode_padding(struct decoder *d, size_t chars, struct err *err)
{
	if (chars < 2)
		return corrupt(err, d->at - 1);
	skip_line_ends(d);
	if (chars == 2) {
		if (d->at == d->in.n)
			return corrupt(err, d->in.n);
		if (d->in.p[d->at] != '=')
			return corrupt(err, d->at - 1);
		d->at++;
		skip_line_ends(d);
	}
	return d->at < d->in.n ? corrupt(err, d->at) : 0;
}

/* The careful way, for line ends, the last quantum and errors. The offsets in errors are Go's, odd cases included. */
static int decode_quantum(struct decoder *d, struct err *err)
{
	uint32_t six[4] = { 0 };
	size_t chars = 0;

	while (chars < 4) {
		if (d->at == d->in.n) {
			if (chars == 0)
				return 0;
			if (chars == 1 || d->a->padded)
				return corrupt(err, d->at - chars);
			break;
		}
		unsigned char c = (unsigned char)d->in.p[d->at++];
		if (d->a->decode[c]) {
			six[chars++] = d->a->decode[c] - 1u;
		} else if (c == '=' && d->a->padded) {
			int r = decode_padding(d, chars, err);
			if (r < 0)
				return r;
			break;
		} else if (c != '\n' && c != '\r') {
			return corrupt(err, d->at - 1);
		}
	}
	put_quantum(d, six, chars);
	return 0;
}

/* Quanta of four characters of the alphabet, up to the first that has something else in it. */
static void decode_plain(struct decoder *d)
{
	const uint8_t *table = d->a->decode;
	const unsigned char *p = (const unsigned char *)d->in.p + d->at;
	size_t left = (d->in.n - d->at) / 4;
	char *out = d->out;

	for (; left; left--, p += 4, out += 3) {
		uint32_t w = table[p[0]] - 1u, x = table[p[1]] - 1u, y = table[p[2]] - 1u, z = table[p[3]] - 1u;
		if ((w | x | y | z) > 63)
			break;
		uint32_t v = w << 18 | x << 12 | y << 6 | z;
		out[0] = (char)(v >> 16 & 0xff);
		out[1] = (char)(v >> 8 & 0xff);
		out[2] = (char)(v & 0xff);
	}
	d->at = (size_t)((const char *)p - d->in.p);
	d->out = out;
}

static int b64_decode(const struct alphabet *a, char *out, str in, size_t *ret_n, struct err *err)
{
	struct decoder d = { .a = a, .in = in, .out = out };

	while (d.at < in.n) {
		decode_plain(&d);
		int r = decode_quantum(&d, err);
		if (r < 0)
			return r;
	}
	*ret_n = (size_t)(d.out - out);
	return 0;
}

static int b64_decode_buf(const struct alphabet *a, struct buf *b, str in, struct err *err)
{
	char *at = buf_reserve(b, base64_decoded_max(in.n));
	size_t n;

	if (!at)
		return buf_check(b, "base64 data", err);
	int r = b64_decode(a, at, in, &n, err);
	if (r < 0) {
		*at = '\0';
		return r;
	}
	buf_commit(b, n);
	return 0;
}

size_t base64_encode(char *out, str in) { return b64_encode(&std, out, in); }
size_t base64url_encode(char *out, str in) { return b64_encode(&url, out, in); }
void base64_encode_buf(struct buf *b, str in) { b64_encode_buf(&std, b, in); }
void base64url_encode_buf(struct buf *b, str in) { b64_encode_buf(&url, b, in); }

int base64_decode(char *out, str in, size_t *ret_n, struct err *err) { return b64_decode(&std, out, in, ret_n, err); }
int base64url_decode(char *out, str in, size_t *ret_n, struct err *err) { return b64_decode(&url, out, in, ret_n, err); }
int base64_decode_buf(struct buf *b, str in, struct err *err) { return b64_decode_buf(&std, b, in, err); }
int base64url_decode_buf(struct buf *b, str in, struct err *err) { return b64_decode_buf(&url, b, in, err); }

/* Hexadecimal. */
size_t hex_encode(char *out, str in)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < in.n; i++) {
		unsigned char c = (unsigned char)in.p[i];
		out[2 * i] = digits[c >> 4];
		out[2 * i + 1] = digits[c & 15];
	}
	return 2 * in.n;
}

void hex_encode_buf(struct buf *b, str in)
{
	char *at = buf_reserve(b, in.n <= SIZE_MAX / 2 ? 2 * in.n : SIZE_MAX);
	if (at)
		buf_commit(b, hex_encode(at, in));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int hex_decode(char *out, str in, size_t *ret_n, struct err *err)
{
	for (size_t i = 0; i < in.n; i++) {
		int digit = hex_digit(in.p[i]);
		if (digit < 0)
			return err_set(err, ERR_BAD_REQUEST, "illegal hexadecimal digit at input byte %zu", i);
		if (i % 2 == 0 && i + 1 == in.n)
			return err_set(err, ERR_BAD_REQUEST, "odd number of hexadecimal digits");
		out[i / 2] = (char)(i % 2 ? (out[i / 2] | digit) : digit << 4);
	}
	*ret_n = in.n / 2;
	return 0;
}

void uuid_v4(char ret_text[UUID_TEXT + 1])
{
	unsigned char raw[16];
	static const uint8_t parts[] = { 4, 2, 2, 2, 6 };
	const char *from = (const char *)raw;

	random_bytes(raw, sizeof(raw));
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40); /* version 4 */
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80); /* the variant of RFC 9562 */
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (i)
			*ret_text++ = '-';
		ret_text += hex_encode(ret_text, str_span(from, parts[i]));
		from += parts[i];
	}
	*ret_text = '\0';
}
