/* From HTTP to SPDY: the headers of both sides, and the client's way. */
#include "net/http_client.h"
#include "net/spdy.h"

static const str protocol_header = STR_INIT("x-stream-protocol-version");

bool spdy_is_upgrade(const struct http_header *headers, size_t n)
{
	return http1_has_token(headers, n, STR("connection"), STR("upgrade")) &&
	       http1_has_token(headers, n, STR("upgrade"), STR("SPDY/3.1"));
}

static const char *find_in(str s, const char *const *list)
{
	for (; list && *list; list++)
		if (str_eq(s, str_of(*list)))
			return *list;
	return NULL;
}

str spdy_choose_protocol(const struct http_header *headers, size_t n, const char *const *supported, bool *ret_offered)
{
	*ret_offered = false;
	for (size_t i = 0; i < n; i++) {
		str item, rest = headers[i].value;
		if (!str_eq(headers[i].name, protocol_header))
			continue;
		while (rest.n) {
			(void)str_cut(rest, ',', &item, &rest);
			item = str_trim(item);
			*ret_offered |= item.n > 0;
			if (find_in(item, supported))
				return item;
		}
	}
	return STR_NONE;
}

/* (suspends) The session needs 101 with the right headers; all else is an answer in words. */
static int check_response(struct http_call *call, const struct http1_head *head, struct err *err)
{
	str body = STR_NONE;
	if (head->status == 101 && spdy_is_upgrade(head->headers, head->n_headers))
		return 0;
	int r = head->status == 101 ? 0 : http_call_read_all(call, 64 * 1024, &body, err);
	if (r < 0)
		return err_set(err, ERR_BAD_REQUEST,
			       "unable to upgrade connection: unable to read error from server response");
	body = str_trim(body);
	return err_set(err, ERR_BAD_REQUEST, "unable to upgrade connection: " STR_FMT, STR_ARG(body));
}

static const struct http_header *request_headers(struct arena *a, const struct http_request *q, const char *const *protocols,
						 size_t *ret_n)
{
	size_t n = 0;
	while (protocols && protocols[n])
		n++;
	struct http_header *all = ARENA_ARRAY(a, struct http_header, q->n_headers + n + 2);
	for (size_t i = 0; i < q->n_headers; i++)
		all[i] = q->headers[i];
	struct http_header *at = all + q->n_headers;
	*at++ = (struct http_header){ STR("connection"), STR("Upgrade") };
	*at++ = (struct http_header){ STR("upgrade"), STR("SPDY/3.1") };
	for (size_t i = 0; i < n; i++)
		*at++ = (struct http_header){ protocol_header, str_of(protocols[i]) };
	*ret_n = (size_t)(at - all);
	return all;
}

int spdy_dial(struct http_client *c, const struct http_request *q, const char *const *protocols, const struct spdy_options *o,
	      struct spdy **ret_session, const char **ret_protocol, int *ret_status, struct err *err)
{
	CLEANUP(http_call_freep) struct http_call *call = NULL;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct http_request full = *q;
	struct spdy_options client = *o;
	const struct http1_head *head;
	struct stream *stream;

	if (ret_protocol)
		*ret_protocol = NULL;
	if (ret_status)
		*ret_status = 0;
	full.headers = request_headers(&a, q, protocols, &full.n_headers);
	int r = http_call_open(c, &full, &call, err);
	if (r < 0 || (r = http_call_head(call, &head, err)) < 0)
		return r;
	if (ret_status)
		*ret_status = head->status;
	if ((r = check_response(call, head, err)) < 0 || (r = http_call_upgrade(call, &stream, err)) < 0)
		return r;
	if (ret_protocol)
		*ret_protocol = find_in(http_header_find(head->headers, head->n_headers, protocol_header), protocols);
	client.client = true;
	return spdy_new(stream, &client, ret_session, err);
}
