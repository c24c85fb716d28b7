/*
 * HTTP/1: the first byte chooses request or response and the size of pieces, the rest is what comes over the connection.
 * However it is cut, heads and bodies must come out the same; a head that was read must survive being written again.
 */
#include "fuzz/fuzz.h"
#include "net/http1.h"
#include "net/url.h"

struct result {
	int head, body;
	size_t used;
	struct buf data;
};

static void check_head(const struct http1_head *h, bool response)
{
	for (size_t i = 0; i < h->n_headers; i++) {
		check(http1_is_token(h->headers[i].name), "a name is a token");
		check(http1_is_value(h->headers[i].value), "a value has no control bytes");
	}
	check(response ? h->status >= 100 && h->status <= 999 : http1_is_token(h->method), "the first line was checked");
	check(h->framing != HTTP1_BODY_LENGTH || h->content_length > 0, "a length is known");
}

static void write_again(struct arena *a, const struct http1_head *h)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct http1_parser p;
	struct http1_head again;
	size_t used;
	http1_add_request(&b, h->method, h->target);
	http1_add_headers(&b, h->headers, h->n_headers);
	http1_add_end(&b);
	http1_request_init(&p, 1 << 20);
	if (h->version < 11)
		return; /* written as 1.1, which wants more headers */
	check(http1_parse(&p, buf_str(&b), a, &again, &used, NULL) == 1, "a head reads again");
	check(again.n_headers == h->n_headers && str_eq(again.path, h->path) && again.framing == h->framing,
	      "and as the same");
}

static void run(str in, size_t step, bool response, struct result *r)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct http1_parser p;
	struct http1_head h;
	struct http1_body body;
	size_t used = 0;

	*r = (struct result){ .data = BUF_INIT(1 << 20) };
	if (response)
		http1_response_init(&p, 4096, false);
	else
		http1_request_init(&p, 4096);
	for (size_t n = 0; r->head == 0 && n < in.n;) {
		n = MIN(n + step, in.n);
		r->head = http1_parse(&p, str_head(in, n), &a, &h, &used, NULL);
	}
	check(r->head >= 0 || p.status >= 400, "an error has a status");
	if (r->head != 1)
		return;
	check_head(&h, response);
	if (!response)
		write_again(&a, &h);
	r->used = used;
	http1_body_init(&body, &h);
	r->body = http1_body_done(&body);
	while (r->body == 0 && r->used < in.n) {
		str data;
		r->body = http1_body_next(&body, str_head(str_skip(in, r->used), step), &used, &data, NULL);
		check(r->body != 0 || used > 0, "input is used");
		buf_add(&r->data, data);
		r->used += used;
	}
}

static void try_url(str text)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct url u;
	struct url_query q;
	str back;
	if (url_parse(&a, text, &u, NULL) == 0)
		check(u.host.n > 0 && u.scheme.n > 0, "a URL has a scheme and a host");
	(void)url_query_parse(&a, text, &q, NULL);
	url_query_escape(&b, text);
	check(url_query_unescape(&a, buf_str(&b), &back, NULL) == 0 && str_eq(back, text), "escaping can be undone");
	buf_reset(&b);
	url_path_escape(&b, text);
	check(url_path_unescape(&a, buf_str(&b), &back, NULL) == 0 && str_eq(back, text), "escaping can be undone");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n < 1)
		return 0;
	str in = str_span((const char *)data + 1, n - 1);
	bool response = data[0] & 1;
	struct result whole, pieces;
	run(in, in.n + 1, response, &whole);
	run(in, 1 + (data[0] >> 1), response, &pieces);
	check(whole.head == pieces.head && whole.body == pieces.body, "pieces make no difference");
	check(whole.body < 0 || (whole.used == pieces.used && str_eq(buf_str(&whole.data), buf_str(&pieces.data))),
	      "nor to the data");
	buf_done(&whole.data);
	buf_done(&pieces.data);
	try_url(in);
	return 0;
}
