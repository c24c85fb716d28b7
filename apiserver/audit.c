/* STAGE_AUDIT: every request has a name of its own, given by the client or made here, that logs and answers carry. */
#include "apiserver/pipeline.h"
#include "base/encoding.h"

enum { AUDIT_ID_MAX = 64 };

int stage_audit(struct request *q, struct err *err)
{
	(void)err;
	q->audit_id = str_head(http_request_header(q->http, STR("audit-id")), AUDIT_ID_MAX);
	if (!q->audit_id.n) {
		char *id = arena_alloc(q->arena, UUID_TEXT + 1, 1);
		uuid_v4(id);
		q->audit_id = str_span(id, UUID_TEXT);
	}
	answer_header(q, STR("audit-id"), q->audit_id);
	return STAGE_NEXT;
}
