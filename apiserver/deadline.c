/* STAGE_DEADLINE: how long a request may take. What follows a stream (watch, exec, logs) may take as long as it likes. */
#include "apiserver/apiserver.h"
#include "apiserver/pipeline.h"
#include "base/clock.h"

/* No write may take longer than this, whatever the client asks for. */
enum { WRITE_TIMEOUT_MS = 34000 };

static bool is_long_running(const struct request *q)
{
	return q->verb == REQUEST_WATCH || q->verb == REQUEST_CONNECT || str_eq(q->subresource, STR("log"));
}

int stage_deadline(struct request *q, struct err *err)
{
	if (is_long_running(q))
		return STAGE_NEXT;
	q->timeout_ms = q->server->options.request_timeout_ms;
	str asked = request_query(q, STR("timeout"));
	if (asked.n) {
		int64_t ns;
		if (duration_parse(asked, &ns, err) < 0)
			return fail_bad_request(q, "invalid timeout specified in the request URL - " STR_FMT,
						STR_ARG(err_str(err)));
		if (ns > 0 && ns / NS_PER_MS < q->timeout_ms)
			q->timeout_ms = MAX(ns / NS_PER_MS, 1);
	}
	bool writes = q->is_resource && q->verb >= REQUEST_CREATE && q->verb != REQUEST_DELETE_COLLECTION;
	if (writes)
		q->timeout_ms = MIN(q->timeout_ms, WRITE_TIMEOUT_MS);
	return STAGE_NEXT;
}
