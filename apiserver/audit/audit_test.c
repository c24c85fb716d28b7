/* Which stages are told of a request that ends in this way or that. */
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/audit/audit.h"
#include "apiserver/request_testing.h"
#include "base/fiber_test.h"
#include "base/file.h"
#include "codec/atoms.h"
#include "codec/codec.h"

static const char policy[] = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n";

struct audited {
	char folder[32], policy[64], log[64];
	struct call call;
};

static void audited_init(struct audited *w, const char *target)
{
	const struct audit_backend_options batch = { .mode = "batch", .buffer_size = 100, .max_batch_size = 1, .truncate_event_bytes = 1000,
						     .truncate_batch_bytes = 1000, .version = "audit.k8s.io/v1" };
	snprintf(w->folder, sizeof w->folder, "/tmp/c8s-audit-XXXXXX");
	CHECK(mkdtemp(w->folder));
	snprintf(w->policy, sizeof w->policy, "%s/policy", w->folder);
	snprintf(w->log, sizeof w->log, "%s/log", w->folder);
	CHECK_INT(file_write(w->policy, str_of(policy), 0600, NULL), 0);
	call_init(&w->call);
	w->call.server.options.audit = (struct audit_options){ .policy_file = w->policy, .log_path = w->log, .log_format = "json", .log = batch };
	CHECK_INT(audit_new(&w->call.server, &w->call.server.audit, NULL), 0);
	call_new(&w->call, STR("GET"), str_of(target));
	CHECK(stage_info(&w->call.q, &w->call.err) >= 0);
	CHECK(stage_deadline(&w->call.q, &w->call.err) >= 0);
	CHECK_INT(stage_audit(&w->call.q, &w->call.err), STAGE_NEXT);
}

/* Ends it, and tells the stages with their codes: "RequestReceived ResponseComplete:200". */
static void audited_done(struct audited *w, struct buf *ret, struct buf *ret_message)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 20);
	audit_free(w->call.server.audit);
	CHECK_INT(file_read(w->log, &text, NULL), 0);
	str rest = buf_str(&text), line;
	while (rest.n) {
		CLEANUP(arena_done) struct arena a = ARENA_INIT;
		struct val event;
		str_cut(rest, '\n', &line, &rest);
		CHECK_INT(json_decode(&a, line, &(struct json_decode_options){ 0 }, &event, NULL), 0);
		int64_t code = val_int(event, responseStatus, code);
		buf_addf(ret, "%s" STR_FMT, ret->n ? " " : "", STR_ARG(val_str(event, stage)));
		if (code)
			buf_addf(ret, ":%d", (int)code);
		buf_reset(ret_message);
		buf_add(ret_message, val_str(event, responseStatus, message));
	}
	unlink(w->log);
	unlink(w->policy);
	rmdir(w->folder);
	call_done(&w->call);
}

static void answer(struct request *q) { answer_bytes(q, 200, STR("text/plain"), STR("x")); }
static void refuse(struct request *q) { (void)request_fail(q, ERR_FORBIDDEN, VAL_EMPTY, "not you"); }

static void fall(struct request *q)
{
	struct err err = ERR_INIT;
	(void)err_set(&err, ERR_INTERNAL, "stage store cannot finish");
	audit_panicked(q, &err);
	(void)fail_err(q, &err);
}

static void begin_and_fall(struct request *q)
{
	answer_sent(q, 200);
	fall(q);
}

static void keep_and_fall(struct request *q)
{
	struct audit_event *kept = audit_keep(q);
	answer_sent(q, 200);
	fall(q);
	audit_end(kept);
}

FIBER_TEST(audit_stages_by_how_it_ends)
{
	static const struct {
		const char *target;
		void (*end)(struct request *q);
		const char *stages, *message;
	} t[] = {
		{ "/api/v1/pods", answer, "RequestReceived ResponseComplete:200", "" },
		{ "/api/v1/pods", refuse, "RequestReceived ResponseComplete:403", "not you" },
		{ "/api/v1/pods", fall, "RequestReceived Panic:500", "APIServer panic'd: stage store cannot finish" },
		{ "/api/v1/namespaces/n/pods/p/log", answer, "RequestReceived ResponseStarted:200 ResponseComplete:200", "" },
		{ "/api/v1/namespaces/n/pods/p/log", refuse, "RequestReceived ResponseStarted:403 ResponseComplete:403", "not you" },
		{ "/api/v1/namespaces/n/pods/p/log", fall, "RequestReceived Panic:500", "APIServer panic'd: stage store cannot finish" },
		{ "/api/v1/namespaces/n/pods/p/log", begin_and_fall, "RequestReceived ResponseStarted:200 Panic:500",
		  "APIServer panic'd: stage store cannot finish" },
		{ "/api/v1/pods?watch=1", keep_and_fall, "RequestReceived ResponseStarted:200 Panic:500",
		  "APIServer panic'd: stage store cannot finish" },
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(buf_done) struct buf stages = BUF_INIT(1000), message = BUF_INIT(1000);
		struct audited *w = calloc(1, sizeof *w);
		audited_init(w, t[i].target);
		CHECK_INT(stage_received(&w->call.q, &w->call.err), STAGE_NEXT);
		t[i].end(&w->call.q);
		audit_response_complete(&w->call.q);
		audited_done(w, &stages, &message);
		CHECK_STR_ROW(i, buf_str(&stages), t[i].stages);
		CHECK_STR_ROW(i, buf_str(&message), t[i].message);
		free(w);
	}
}
