#include "base/str.h"

int str_cmp(str a, str b)
{
	size_t n = MIN(a.n, b.n);
	int c = n ? memcmp(a.p, b.p, n) : 0;
	if (c)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

ptrdiff_t str_chr(str s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
	return at ? at - s.p : -1;
}

ptrdiff_t str_rchr(str s, char c)
{
	const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;
	return at ? at - s.p : -1;
}

ptrdiff_t str_find(str s, str needle)
{
	if (needle.n == 0)
		return 0;
	const char *at = s.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
	return at ? at - s.p : -1;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

str str_trim(str s)
{
	while (s.n && is_space(s.p[0]))
		s.p++, s.n--;
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool str_cut(str s, char sep, str *ret_head, str *ret_tail)
{
	ptrdiff_t at = str_chr(s, sep);
	if (at < 0) {
		*ret_head = s;
		*ret_tail = str_skip(s, s.n);
		return false;
	}
	*ret_head = str_head(s, (size_t)at);
	*ret_tail = str_skip(s, (size_t)at + 1);
	return true;
}

bool str_to_i64(str s, int64_t *ret)
{
	bool neg = s.n && s.p[0] == '-';
	int64_t v = 0;

	if (neg)
		s = str_skip(s, 1);
	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		int digit = s.p[i] - '0';
		if (digit < 0 || digit > 9)
			return false;
		/* Accumulate negatively: the range reaches one further there. */
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v))
			return false;
	}
	if (!neg && v == INT64_MIN)
		return false;
	*ret = neg ? v : -v;
	return true;
}

static inline uint64_t read64(const char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiply-and-fold over 8-byte words; the last words overlap so that there is no byte loop. */
uint64_t str_hash(str s)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd6e8feb86659fd93u;
	uint64_t h = s.n * k1;

	if (s.n >= 8) {
		for (size_t i = 0; i + 8 < s.n; i += 8)
			h = fold(h ^ read64(s.p + i), k0);
		return fold(h ^ read64(s.p + s.n - 8), k1) ^ h;
	}
	uint64_t w = 0;
	for (size_t i = 0; i < s.n; i++)
		w = w << 8 | (unsigned char)s.p[i];
	return fold(h ^ w, k0) ^ h;
}

size_t str_rune(str s, uint32_t *ret_rune)
{
	if (s.n == 0)
		return 0;
	const unsigned char *p = (const unsigned char *)s.p;
	uint32_t c = p[0], min;
	size_t n;

	if (c < 0x80)
		n = 1, min = 0;
	else if (c >= 0xc2 && c <= 0xdf)
		n = 2, min = 0x80, c &= 0x1f;
	else if (c >= 0xe0 && c <= 0xef)
		n = 3, min = 0x800, c &= 0x0f;
	else if (c >= 0xf0 && c <= 0xf4)
		n = 4, min = 0x10000, c &= 0x07;
	else
		return 0;
	if (n > s.n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	if (ret_rune)
		*ret_rune = c;
	return n;
}

bool str_is_utf8(str s)
{
	while (s.n) {
		size_t n = s.n >= 8 && !(read64(s.p) & 0x8080808080808080u) ? 8 : str_rune(s, NULL);
		if (n == 0)
			return false;
		s.p += n;
		s.n -= n;
	}
	return true;
}
