/* Requests and answers as they are: whole, as streams, and as WebSockets. */
#include "client/https_priv.h"

#include "base/mem.h"
#include "net/websocket.h"

/* ---- warnings ---- */

/* The text in quotes that s begins with, out of them; what follows is in *ret_rest. False: there is none. */
static bool unquote(struct arena *a, str s, str *ret, str *ret_rest)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(s.n);
	if (!s.n || s.p[0] != '"')
		return false;
	for (size_t i = 1; i < s.n; i++) {
		if (s.p[i] == '"') {
			*ret = arena_str(a, buf_str(&b));
			*ret_rest = str_skip(s, i + 1);
			return true;
		}
		if (s.p[i] == '\\' && i + 1 < s.n)
			i++;
		buf_addc(&b, s.p[i]);
	}
	return false;
}

/* 299 agent "text" ["date"], and more of them behind commas. What is not of this form ends it. */
static void add_warnings(struct arena *a, str header, str *list, size_t *n, size_t max)
{
	str code, agent, text, rest = str_trim(header), date;
	while (*n < max && str_cut(rest, ' ', &code, &rest) && str_cut(str_trim(rest), ' ', &agent, &rest) &&
	       unquote(a, str_trim(rest), &text, &rest)) {
		if (str_eq(code, STR("299")))
			list[(*n)++] = text;
		rest = str_trim(rest);
		if (unquote(a, rest, &date, &rest))
			rest = str_trim(rest);
		if (!rest.n || rest.p[0] != ',')
			return;
		rest = str_trim(str_skip(rest, 1));
	}
}

static void find_warnings(struct arena *a, const struct http1_head *head, struct client_answer *ret)
{
	enum { WARNINGS_MAX = 100 };
	str *list = NULL;
	for (size_t i = 0; i < head->n_headers; i++) {
		if (!str_eq(head->headers[i].name, STR("warning")))
			continue;
		if (!list)
			list = ARENA_ARRAY(a, str, WARNINGS_MAX);
		add_warnings(a, head->headers[i].value, list, &ret->n_warnings, WARNINGS_MAX);
	}
	ret->warnings = list;
}

static void fill_head(struct arena *a, const struct exchange *x, struct client_answer *ret)
{
	*ret = (struct client_answer){
		.status = x->head->status,
		.content_type = arena_str(a, http_header_find(x->head->headers, x->head->n_headers, STR("content-type"))),
	};
	find_warnings(a, x->head, ret);
}

/* (suspends) The rest of it, too. */
static int fill_answer(struct arena *a, struct exchange *x, size_t max, struct client_answer *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(0);
	fill_head(a, x, ret);
	int r = https_body_read(x, max, &body, err);
	if (r == 0)
		ret->body = arena_str(a, buf_str(&body));
	return r;
}

/* ---- whole ---- */

int https_answer(struct client *c, const struct client_request *q, struct arena *a, size_t max, struct client_answer *ret_answer,
		 struct client_reply *ret, struct err *err)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	CLEANUP(https_end) struct exchange x = { 0 };
	int r = https_begin(h, q, &x, ret, err);
	return r < 0 ? r : fill_answer(a, &x, max, ret_answer, err);
}

/* ---- streams ---- */

struct client_stream {
	struct exchange x;
};

int client_stream(struct client *c, struct arena *a, const struct client_raw *raw, struct client_stream **ret,
		  struct client_answer *ret_answer, struct err *err)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	CLEANUP(https_end) struct exchange x = { 0 };
	struct client_request q = client_request_of_raw(raw);
	struct client_reply reply = { 0 };
	q.verb = "watch"; /* small pieces, that are not to wait for being packed */
	*ret = NULL;
	int r = https_begin(h, &q, &x, &reply, err);
	if (r < 0)
		return r;
	if (x.head->status < 200 || x.head->status > 299)
		return fill_answer(a, &x, HTTPS_FAILURE_MAX, ret_answer, err);
	fill_head(a, &x, ret_answer);
	*ret = mem_zalloc(sizeof(**ret));
	(*ret)->x = x;
	x = (struct exchange){ 0 };
	return 0;
}

ssize_t client_stream_read(struct client_stream *s, void *p, size_t n, struct err *err)
{
	ssize_t got = http_call_read(s->x.call, p, n, err);
	return got < 0 ? https_unavailable((int)got, err) : got;
}

void client_stream_free(struct client_stream *s)
{
	if (!s)
		return;
	https_end(&s->x);
	free(s);
}

void client_stream_freep(struct client_stream **s) { client_stream_free(*s); }

/* ---- WebSockets ---- */

int client_dial_ws(struct client *c, struct arena *a, str path, str query, const char *const *protocols, struct ws **ret,
		   const char **ret_protocol, struct client_answer *ret_answer, struct err *err)
{
	struct https *h = CONTAINER_OF(c, struct https, client);
	CLEANUP(https_end) struct exchange x = { 0 };
	struct client_reply reply = { 0 };
	struct ws_headers headers;
	struct stream *stream;
	str chosen;
	ws_request_headers(a, protocols, &headers);
	struct client_request q = {
		.verb = "watch", .method = STR("GET"), .path = path, .query = query, .headers = headers.headers, .n_headers = headers.n,
	};
	*ret = NULL;
	int r = https_begin(h, &q, &x, &reply, err);
	if (r < 0)
		return r;
	if (x.head->status != 101)
		return fill_answer(a, &x, HTTPS_FAILURE_MAX, ret_answer, err);
	if ((r = ws_check_response(&headers, protocols, x.head->status, x.head->headers, x.head->n_headers, &chosen, err)) < 0)
		return r;
	*ret_protocol = NULL;
	for (size_t i = 0; protocols[i]; i++)
		if (str_eq(chosen, str_of(protocols[i])))
			*ret_protocol = protocols[i];
	if ((r = http_call_upgrade(x.call, &stream, err)) < 0)
		return r;
	*ret = ws_new(stream, &(struct ws_options){ .client = true });
	return 0;
}
