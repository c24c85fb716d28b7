#include <arpa/inet.h>

#include "net/http_proxy_priv.h"

enum {
	VERSION = 5, AUTH_VERSION = 1, CONNECT = 1, NO_AUTH = 0, USER_PASSWORD = 2,
	ADDRESS_V4 = 1, ADDRESS_NAME = 3, ADDRESS_V6 = 4, FIELD_MAX = 255,
};

/* (suspends) */
static int read_exactly(struct stream *s, unsigned char *p, size_t n, struct err *err)
{
	while (n) {
		ssize_t got = stream_read(s, p, n, err);
		if (got <= 0)
			return got < 0 ? (int)got : err_set(err, ERR_UNAVAILABLE, "socks connect: unexpected EOF");
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

/* (suspends) */
static int authenticate(struct stream *s, const struct http_proxy *p, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(3 + 2 * FIELD_MAX);
	unsigned char answer[2];
	int r;
	if (!p->user.n || p->user.n > FIELD_MAX || p->password.n > FIELD_MAX)
		return err_set(err, ERR_UNAVAILABLE, "socks connect: invalid username/password");
	buf_addc(&b, AUTH_VERSION);
	buf_addc(&b, (char)p->user.n);
	buf_add(&b, p->user);
	buf_addc(&b, (char)p->password.n);
	buf_add(&b, p->password);
	if ((r = stream_write(s, b.p, b.n, err)) < 0 || (r = read_exactly(s, answer, sizeof(answer), err)) < 0)
		return r;
	if (answer[0] != AUTH_VERSION || answer[1] != 0)
		return err_set(err, ERR_UNAVAILABLE, "socks connect: username/password authentication failed");
	return 0;
}

/* (suspends) */
static int greet(struct stream *s, const struct http_proxy *p, struct err *err)
{
	const unsigned char with[] = { VERSION, 2, NO_AUTH, USER_PASSWORD }, without[] = { VERSION, 1, NO_AUTH };
	unsigned char answer[2];
	int r = p->user.n ? stream_write(s, with, sizeof(with), err) : stream_write(s, without, sizeof(without), err);
	if (r < 0 || (r = read_exactly(s, answer, sizeof(answer), err)) < 0)
		return r;
	if (answer[0] != VERSION)
		return err_set(err, ERR_UNAVAILABLE, "socks connect: unexpected protocol version %d", answer[0]);
	if (answer[1] == USER_PASSWORD && p->user.n)
		return authenticate(s, p, err);
	return answer[1] == NO_AUTH ? 0 : err_set(err, ERR_UNAVAILABLE, "socks connect: no acceptable authentication methods");
}

static int add_address(struct buf *b, const char *host, struct err *err)
{
	unsigned char ip[16];
	size_t n = strlen(host);
	if (inet_pton(AF_INET, host, ip) == 1) {
		buf_addc(b, ADDRESS_V4);
		buf_add(b, str_span((const char *)ip, 4));
	} else if (inet_pton(AF_INET6, host, ip) == 1) {
		buf_addc(b, ADDRESS_V6);
		buf_add(b, str_span((const char *)ip, 16));
	} else if (n <= FIELD_MAX) {
		buf_addc(b, ADDRESS_NAME);
		buf_addc(b, (char)n);
		buf_add(b, str_span(host, n));
	} else {
		return err_set(err, ERR_BAD_REQUEST, "socks connect: FQDN too long");
	}
	return 0;
}

static const char *reason(unsigned code)
{
	static const char *const texts[] = {
		"succeeded", "general SOCKS server failure", "connection not allowed by ruleset", "network unreachable",
		"host unreachable", "connection refused", "TTL expired", "command not supported", "address type not supported",
	};
	return code < ARRAY_LEN(texts) ? texts[code] : "unknown code";
}

/* (suspends) The address that the proxy uses itself follows; it does not matter. */
static int read_answer(struct stream *s, struct err *err)
{
	unsigned char head[4], rest[FIELD_MAX + 2], n;
	int r = read_exactly(s, head, sizeof(head), err);
	if (r < 0)
		return r;
	if (head[0] != VERSION)
		return err_set(err, ERR_UNAVAILABLE, "socks connect: unexpected protocol version %d", head[0]);
	if (head[1])
		return err_set(err, ERR_UNAVAILABLE, "socks connect: unknown error %s", reason(head[1]));
	switch (head[3]) {
	case ADDRESS_V4: return read_exactly(s, rest, 4 + 2, err);
	case ADDRESS_V6: return read_exactly(s, rest, 16 + 2, err);
	case ADDRESS_NAME:
		r = read_exactly(s, &n, 1, err);
		return r < 0 ? r : read_exactly(s, rest, (size_t)n + 2, err);
	default: return err_set(err, ERR_UNAVAILABLE, "socks connect: unknown address type %d", head[3]);
	}
}

int socks5_ask(struct stream *s, const struct http_proxy *p, const char *host, uint16_t port, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(FIELD_MAX + 16);
	int r = greet(s, p, err);
	if (r < 0)
		return r;
	buf_add(&b, str_span((const char[]){ VERSION, CONNECT, 0 }, 3));
	if ((r = add_address(&b, host, err)) < 0)
		return r;
	buf_addc(&b, (char)(port >> 8));
	buf_addc(&b, (char)port);
	if ((r = stream_write(s, b.p, b.n, err)) < 0)
		return r;
	return read_answer(s, err);
}
