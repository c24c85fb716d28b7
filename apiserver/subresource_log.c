/* pods/log: what a container has said, from the kubelet that keeps it. */
#include <stdio.h>

#include "apiserver/apiserver.h"
#include "apiserver/kubelet_client.h"
#include "apiserver/pod.h"
#include "apiserver/relay.h"
#include "apiserver/subresource.h"
#include "apiserver/write.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "net/url.h"

enum { ERROR_MAX = 50000 };

struct log_options {
	str container;
	bool follow, previous, timestamps, insecure;
	struct val since_seconds, tail_lines, limit_bytes; /* VAL_NONE: not given */
	str since_time, stream;
};

static int read_int(struct request *q, str name, struct val *ret)
{
	str text = request_query(q, name);
	int64_t n;
	*ret = VAL_EMPTY;
	if (!text.n)
		return 0;
	if (!str_to_i64(text, &n))
		return fail_bad_request(q, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax", STR_ARG(text));
	*ret = val_of_int(n);
	return 0;
}

static int read_time(struct request *q, str *ret)
{
	str text = request_query(q, STR("sinceTime"));
	struct err err = ERR_INIT;
	struct timestamp t;
	char room[TIME_TEXT_MAX];
	if (!text.n)
		return 0;
	if (time_parse(text, &t, &err) < 0)
		return fail_bad_request(q, STR_FMT, STR_ARG(err_str(&err)));
	*ret = arena_str(q->arena, time_format(t, room));
	return 0;
}

static int check_options(struct request *q, const struct log_options *o)
{
	struct field_errors e;
	field_errors_init(&e, q->arena);
	if (val_exists(o->tail_lines) && val_as_int(o->tail_lines) < 0)
		field_invalid(&e, FIELD(NULL, "tailLines"), o->tail_lines, "must be greater than or equal to 0");
	if (val_exists(o->limit_bytes) && val_as_int(o->limit_bytes) < 1)
		field_invalid(&e, FIELD(NULL, "limitBytes"), o->limit_bytes, "must be greater than 0");
	if (val_exists(o->since_seconds) && o->since_time.n)
		field_forbidden(&e, FIELD_KEY(NULL, STR("")), "at most one of `sinceTime` or `sinceSeconds` may be specified");
	else if (val_exists(o->since_seconds) && val_as_int(o->since_seconds) < 1)
		field_invalid(&e, FIELD(NULL, "sinceSeconds"), o->since_seconds, "must be greater than 0");
	if (o->stream.p)
		field_forbidden(&e, FIELD(NULL, "stream"), "may not be specified");
	return e.n ? fail_invalid(q, STR_NONE, STR("PodLogOptions"), q->name, &e) : 0;
}

static int read_options(struct request *q, struct log_options *o)
{
	*o = (struct log_options){
		.container = request_query(q, STR("container")),
		.follow = request_query_bool(q, STR("follow")),
		.previous = request_query_bool(q, STR("previous")),
		.timestamps = request_query_bool(q, STR("timestamps")),
		.insecure = request_query_bool(q, STR("insecureSkipTLSVerifyBackend")),
		.stream = request_query(q, STR("stream")),
	};
	int r = read_int(q, STR("sinceSeconds"), &o->since_seconds);
	if (r == 0)
		r = read_int(q, STR("tailLines"), &o->tail_lines);
	if (r == 0)
		r = read_int(q, STR("limitBytes"), &o->limit_bytes);
	if (r == 0)
		r = read_time(q, &o->since_time);
	return r < 0 ? r : check_options(q, o);
}

static void add_int(struct buf *b, str name, struct val n)
{
	char text[24];
	if (val_exists(n))
		url_query_add(b, name, str_span(text, (size_t)snprintf(text, sizeof text, "%lld", (long long)val_as_int(n))));
}

static str log_url(struct request *q, const struct log_options *o, const struct kubelet_place *place)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(1 << 16);
	if (o->follow)
		url_query_add(&b, STR("follow"), STR("true"));
	add_int(&b, STR("limitBytes"), o->limit_bytes);
	if (o->previous)
		url_query_add(&b, STR("previous"), STR("true"));
	add_int(&b, STR("sinceSeconds"), o->since_seconds);
	if (o->since_time.n)
		url_query_add(&b, STR("sinceTime"), o->since_time);
	add_int(&b, STR("tailLines"), o->tail_lines);
	if (o->timestamps)
		url_query_add(&b, STR("timestamps"), STR("true"));
	str query = buf_str(&b);
	return arena_printf(q->arena, "https://" STR_FMT "/containerLogs/" STR_FMT "/" STR_FMT "/" STR_FMT "%s" STR_FMT,
			    STR_ARG(place->authority), STR_ARG(q->namespace), STR_ARG(q->name), STR_ARG(o->container),
			    query.n ? "?" : "", STR_ARG(query));
}

/* What clients are told about a kubelet's answer that is neither a log nor one of those that explain themselves. */
static int unexpected(struct request *q, int status, str said)
{
	static const struct {
		int status;
		enum err_code code;
		const char *message;  /* NULL: what the kubelet said */
	} table[] = {
		{ 401, ERR_UNAUTHORIZED, "the server has asked for the client to provide credentials" },
		{ 403, ERR_FORBIDDEN, NULL },
		{ 404, ERR_NOT_FOUND, "the server could not find the requested resource" },
		{ 405, ERR_METHOD_NOT_ALLOWED, "the server does not allow this method on the requested resource" },
		{ 409, ERR_CONFLICT, "the server reported a conflict" },
		{ 415, ERR_UNSUPPORTED_MEDIA, NULL },
		{ 422, ERR_INVALID, "the server rejected our request due to an error in our request" },
		{ 429, ERR_TOO_MANY_REQUESTS, "the server has received too many requests and has asked us to try again later" },
		{ 503, ERR_UNAVAILABLE, "the server is currently unable to handle the request" },
		{ 504, ERR_TIMEOUT,
		  "the server was unable to return a response in the time allotted, but may still be processing the request" },
	};
	struct val details = OBJECT(q->arena, F(name, val_of_str(q->name)), F(kind, VAL_LIT("pods/log")));
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		str message = table[i].message ? str_of(table[i].message) : said;
		if (table[i].status == status)
			return request_fail(q, table[i].code, details, STR_FMT " ( pods/log " STR_FMT ")", STR_ARG(message),
					    STR_ARG(q->name));
	}
	if (status < 500)
		return request_fail_as(q, ERR_INTERNAL, status, STR_NONE, details,
				       "the server responded with the status code %d but did not return more information ( pods/log " STR_FMT ")",
				       status, STR_ARG(q->name));
	CLEANUP(buf_done) struct buf quoted = BUF_INIT(8 * ERROR_MAX);
	buf_add_quoted(&quoted, said);
	return request_fail_as(q, ERR_INTERNAL, status, STR("InternalError"), details,
			       "an error on the server (" STR_FMT ") has prevented the request from succeeding ( pods/log " STR_FMT ")",
			       STR_ARG(buf_str(&quoted)), STR_ARG(q->name));
}

/* What a kubelet refuses with is the answer's message. */
static int refused(struct request *q, struct http_call *call, int status)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(ERROR_MAX);
	char room[1024];
	ssize_t n;
	while (b.n < ERROR_MAX && (n = http_call_read(call, room, MIN(sizeof room, ERROR_MAX - b.n), NULL)) > 0)
		buf_add(&b, str_span(room, (size_t)n));
	str text = arena_str(q->arena, buf_str(&b));
	if (status == 500)
		return fail_internal(q, STR_FMT, STR_ARG(text));
	if (status == 400)
		return fail_bad_request(q, STR_FMT, STR_ARG(text));
	return unexpected(q, status, text);
}

static int fetch(struct request *q, struct http_client *client, str url, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	const struct http1_head *head;
	struct err why = ERR_INIT;
	int r = http_call_open(client, &(struct http_request){ .method = STR("GET"), .url = url }, &call, &why);
	if (r == 0)
		r = http_call_head(call, &head, &why);
	if (r == -ERR_CANCELED)
		return err_set(err, ERR_CANCELED, "the client is gone");
	if (r < 0)
		return fail_plain(q, STR_FMT, STR_ARG(err_str(&why)));
	if (head->status >= 300 && head->status < 400)
		return fail_plain(q, "Get \"" STR_FMT "\": redirects forbidden", STR_ARG(url));
	if (head->status < 200 || head->status > 206)
		return refused(q, call, head->status);
	static const struct http_header headers[] = { { STR_INIT("content-type"), STR_INIT("text/plain") },
						      { STR_INIT("cache-control"), STR_INIT("no-cache, private") } };
	answer_sent(q, 200);
	relay_body(q->http, 200, headers, ARRAY_LEN(headers), call, -1);
	return 0;
}

int log_handle(struct request *q, struct err *err)
{
	struct log_options o;
	struct object *pod;
	int r = read_options(q, &o);
	if (r < 0 || (r = pod_get(q, q->name, &pod, err)) < 0 || (r = pod_container(q, pod->val, &o.container)) < 0)
		return r;
	str node = val_str(pod->val, spec, nodeName);
	if (!node.n) { /* nobody runs it: there is nothing to show */
		answer_bytes(q, 204, STR_NONE, STR_NONE);
		return 0;
	}
	struct kubelet_place place;
	struct http_client *client;
	if ((r = kubelet_find(q, node, &place)) < 0 ||
	    (r = kubelet_http(q->server, o.insecure ? KUBELET_UNVERIFIED : KUBELET_VERIFIED, &client, err)) < 0)
		return r;
	return fetch(q, client, log_url(q, &o, &place), err);
}
