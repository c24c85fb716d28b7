/*
 * Header blocks of SPDY/3: a count, then names and values with their lengths (all numbers 32 bits, big endian), through
 * zlib with a dictionary that the protocol defines, flushed after every block. Unpacking is bounded, so that a small
 * frame cannot become much memory.
 */
#include <zlib.h>

#include "base/mem.h"
#include "net/http1.h"
#include "net/spdy_frame.h"

enum { WINDOW_BITS = 12, MEMORY_LEVEL = 5 }; /* our headers are few and short: 32 KiB instead of 256 */

/* The dictionary of the protocol: words with their lengths, then text. */
#define W(length, word) "\0\0\0" length word
static const char dictionary[] =
	W("\007", "options") W("\004", "head") W("\004", "post") W("\003", "put") W("\006", "delete")
	W("\005", "trace") W("\006", "accept") W("\016", "accept-charset") W("\017", "accept-encoding")
	W("\017", "accept-language") W("\015", "accept-ranges") W("\003", "age") W("\005", "allow")
	W("\015", "authorization") W("\015", "cache-control") W("\012", "connection") W("\014", "content-base")
	W("\020", "content-encoding") W("\020", "content-language") W("\016", "content-length")
	W("\020", "content-location") W("\013", "content-md5") W("\015", "content-range")
	W("\014", "content-type") W("\004", "date") W("\004", "etag") W("\006", "expect") W("\007", "expires")
	W("\004", "from") W("\004", "host") W("\010", "if-match") W("\021", "if-modified-since")
	W("\015", "if-none-match") W("\010", "if-range") W("\023", "if-unmodified-since")
	W("\015", "last-modified") W("\010", "location") W("\014", "max-forwards") W("\006", "pragma")
	W("\022", "proxy-authenticate") W("\023", "proxy-authorization") W("\005", "range")
	W("\007", "referer") W("\013", "retry-after") W("\006", "server") W("\002", "te") W("\007", "trailer")
	W("\021", "transfer-encoding") W("\007", "upgrade") W("\012", "user-agent") W("\004", "vary")
	W("\003", "via") W("\007", "warning") W("\020", "www-authenticate") W("\006", "method")
	W("\003", "get") W("\006", "status") W("\006", "200 OK") W("\007", "version") W("\010", "HTTP/1.1")
	W("\003", "url") W("\006", "public") W("\012", "set-cookie") W("\012", "keep-alive")
	W("\006", "origin")
	"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 No"
	"n-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403"
	" Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Fe"
	"b Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunke"
	"d,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/"
	"javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
#undef W

struct spdy_packer {
	z_stream z;
};

struct spdy_unpacker {
	z_stream z;
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "zlib: %s failed\n", what);
	abort();
}

struct spdy_packer *spdy_packer_new(void)
{
	struct spdy_packer *p = mem_zalloc(sizeof(*p));
	int r = deflateInit2(&p->z, Z_BEST_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
	must(r == Z_OK, "deflateInit2");
	must(deflateSetDictionary(&p->z, (const Bytef *)dictionary, sizeof(dictionary) - 1) == Z_OK, "deflateSetDictionary");
	return p;
}

struct spdy_unpacker *spdy_unpacker_new(void)
{
	struct spdy_unpacker *u = mem_zalloc(sizeof(*u));
	must(inflateInit(&u->z) == Z_OK, "inflateInit");
	return u;
}

void spdy_packer_free(struct spdy_packer *p)
{
	if (!p)
		return;
	deflateEnd(&p->z);
	free(p);
}

void spdy_unpacker_free(struct spdy_unpacker *u)
{
	if (!u)
		return;
	inflateEnd(&u->z);
	free(u);
}

/* ---- packing ---- */

static void add_u32(struct buf *b, size_t v)
{
	char p[4] = { (char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v };
	buf_add(b, str_span(p, 4));
}

static bool is_first(const struct http_header *headers, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (http1_eq_nocase(headers[k].name, headers[i].name))
			return false;
	return true;
}

/* The name and all values of headers[first], separated by '\0'. */
static void add_header(struct buf *b, const struct http_header *headers, size_t n, size_t first)
{
	str name = headers[first].name;
	size_t length = 0;
	add_u32(b, name.n);
	for (size_t i = 0; i < name.n; i++)
		buf_addc(b, name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] | 32) : name.p[i]);
	for (size_t i = first; i < n; i++)
		if (http1_eq_nocase(headers[i].name, name))
			length += headers[i].value.n + (i > first);
	add_u32(b, length);
	for (size_t i = first; i < n; i++) {
		if (!http1_eq_nocase(headers[i].name, name))
			continue;
		if (i > first)
			buf_addc(b, '\0');
		buf_add(b, headers[i].value);
	}
}

int spdy_pack(struct spdy_packer *p, const struct http_header *headers, size_t n, struct buf *out, struct err *err)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(SPDY_BLOCK_MAX);
	size_t count = 0;
	if (n > SPDY_HEADERS_MAX)
		return err_set(err, ERR_BAD_REQUEST, "spdy: too many headers");
	for (size_t i = 0; i < n; i++)
		count += is_first(headers, i);
	add_u32(&plain, count);
	for (size_t i = 0; i < n; i++)
		if (is_first(headers, i))
			add_header(&plain, headers, n, i);
	int r = buf_check(&plain, "the header block", err);
	if (r < 0)
		return r;
	size_t bound = deflateBound(&p->z, plain.n) + 64;
	char *at = buf_reserve(out, bound);
	if (!at)
		return buf_check(out, "the frame", err);
	p->z.next_in = (Bytef *)plain.p;
	p->z.avail_in = (uInt)plain.n;
	p->z.next_out = (Bytef *)at;
	p->z.avail_out = (uInt)bound;
	must(deflate(&p->z, Z_SYNC_FLUSH) == Z_OK && p->z.avail_in == 0 && p->z.avail_out > 0, "deflate");
	buf_commit(out, bound - p->z.avail_out);
	return 0;
}

/* ---- unpacking ---- */

static int bad_block(struct err *err, const char *what)
{
	return err_set(err, ERR_BAD_REQUEST, "spdy: %s", what);
}

static int inflate_block(struct spdy_unpacker *u, str block, struct buf *out, struct err *err)
{
	u->z.next_in = (Bytef *)block.p;
	u->z.avail_in = (uInt)block.n;
	for (;;) {
		size_t room = MIN((size_t)4096, out->max - out->n);
		char *at = room ? buf_reserve(out, room) : NULL;
		if (!at)
			return bad_block(err, "the header block is too large");
		u->z.next_out = (Bytef *)at;
		u->z.avail_out = (uInt)room;
		int z = inflate(&u->z, Z_SYNC_FLUSH);
		if (z == Z_NEED_DICT)
			z = inflateSetDictionary(&u->z, (const Bytef *)dictionary, sizeof(dictionary) - 1);
		if (z != Z_OK && z != Z_BUF_ERROR)
			return bad_block(err, "the header block is not compressed as it must be");
		buf_commit(out, room - u->z.avail_out);
		/* Output that fills the room exactly may go on. */
		if (u->z.avail_in == 0 && u->z.avail_out > 0)
			return 0;
		if (z == Z_BUF_ERROR && u->z.avail_out == room)
			return bad_block(err, "the header block is not compressed as it must be");
	}
}

/* A number, and with it the bytes it announces. */
static bool take_u32(str *s, uint32_t *ret)
{
	const unsigned char *p = (const unsigned char *)s->p;
	if (s->n < 4)
		return false;
	*ret = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	*s = str_skip(*s, 4);
	return true;
}

static bool take_text(str *s, str *ret)
{
	uint32_t n;
	if (!take_u32(s, &n) || n > s->n)
		return false;
	*ret = str_head(*s, n);
	*s = str_skip(*s, n);
	return true;
}

static int add_values(struct http_header *headers, size_t *n, str name, str values, struct err *err)
{
	if (!name.n)
		return bad_block(err, "a header without a name");
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] >= 'A' && name.p[i] <= 'Z')
			return bad_block(err, "header was not lowercased");
	for (size_t i = 0; i < *n; i++)
		if (str_eq(headers[i].name, name))
			return bad_block(err, "multiple headers with same name");
	bool more;
	do {
		str value;
		if (*n == SPDY_HEADERS_MAX)
			return bad_block(err, "too many headers");
		more = str_cut(values, '\0', &value, &values);
		headers[(*n)++] = (struct http_header){ name, value };
	} while (more);
	return 0;
}

int spdy_unpack(struct spdy_unpacker *u, str block, struct arena *a, struct http_header **ret_headers, size_t *ret_n,
		struct err *err)
{
	CLEANUP(buf_done) struct buf plain = BUF_INIT(SPDY_BLOCK_MAX);
	uint32_t count;
	size_t n = 0;
	int r = inflate_block(u, block, &plain, err);
	if (r < 0)
		return r;
	str rest = arena_str(a, buf_str(&plain)), name, values;
	if (!take_u32(&rest, &count) || count > SPDY_HEADERS_MAX)
		return bad_block(err, "a malformed header block");
	/* Values may be more than names: as many as there are bytes for. */
	struct http_header *headers = ARENA_ARRAY(a, struct http_header, MIN(rest.n + 1, (size_t)SPDY_HEADERS_MAX));
	for (uint32_t i = 0; i < count; i++) {
		if (!take_text(&rest, &name) || !take_text(&rest, &values))
			return bad_block(err, "a malformed header block");
		if ((r = add_values(headers, &n, name, values, err)) < 0)
			return r;
	}
	if (rest.n)
		return bad_block(err, "a malformed header block");
	*ret_headers = headers;
	*ret_n = n;
	return 0;
}
