/* STAGE_AUDIT: every request has a name of its own, given by the client or made here, that logs and answers carry. */
#include "apiserver/audit/audit.h"

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

int audit_new(struct apiserver *s, struct audit **ret, struct err *err)
{
	(void)s, (void)ret, (void)err;
	return 0;
}

void audit_free(struct audit *a) { (void)a; }

int audit_run(struct apiserver *s, struct err *err)
{
	(void)s, (void)err;
	return 0;
}

void audit_annotate(struct request *q, str key, str value) { (void)q, (void)key, (void)value; }

void audit_request_object(struct request *q, struct val object, const struct type *type)
{
	(void)q, (void)object, (void)type;
}

void audit_response_started(struct request *q, int status) { (void)q, (void)status; }
void audit_response_complete(struct request *q, int status) { (void)q, (void)status; }
