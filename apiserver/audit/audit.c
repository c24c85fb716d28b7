/*
 * STAGE_AUDIT: every request has a name of its own, given by the client or made here, that logs and answers carry. STAGE_RECEIVED,
 * once it is known who asks: what the policy says, and the first event. The others are told from where they happen.
 */
#include "apiserver/audit/audit.h"

#include <stdlib.h>
#include <strings.h>

#include "apiserver/apiserver.h"
#include "apiserver/audit/audit_priv.h"
#include "apiserver/encode.h"
#include "apiserver/metrics_priv.h"
#include "apiserver/pipeline.h"
#include "apiserver/write.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "codec/types.h"

enum { AUDIT_ID_MAX = 64, POLICY_MAX = 4 << 20, EVENT_MAX = 1 << 30, SLOW_MS = 500 };

/* ---- events ---- */

/* Of each backend's liking. Too large ones lose their objects, or are lost. */
static int tell(struct audit_backend *b, const struct audit_event *e, enum audit_stage stage, bool wait, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(EVENT_MAX);
	struct err why = ERR_INIT;
	size_t most = b->options->truncate ? (size_t)b->options->truncate_event_bytes : SIZE_MAX;
	int r = audit_event_json(e, stage, false, &text, &why);
	if (r >= 0 && text.n > most && e->verdict.level >= AUDIT_REQUEST) {
		buf_reset(&text);
		r = audit_event_json(e, stage, true, &text, &why);
	}
	if (r >= 0 && text.n > most)
		r = err_set(&why, ERR_TOO_LARGE, "event is too large even after truncating");
	if (r < 0) {
		audit_backend_lost(b, 1, &why);
		return b->mode == AUDIT_STRICT && why.code != ERR_TOO_LARGE ? err_set(err, ERR_INTERNAL, "failed to store audit event") : 0;
	}
	if (b->legacy) {
		buf_reset(&text);
		audit_event_legacy(e, stage, &text);
	}
	if (b->log)
		buf_addc(&text, '\n');
	return audit_backend_put(b, buf_str(&text), wait, err);
}

static int emit(struct audit_event *e, enum audit_stage stage, bool wait, struct err *err)
{
	struct audit *audit = e->audit;
	int result = 0;
	if (e->verdict.omit & (1U << stage))
		return 0;
	audit->events++;
	for (size_t i = 0; i < audit->n_backends; i++) {
		int r = tell(audit->backends[i], e, stage, wait, err);
		result = r < 0 ? r : result;
	}
	return result;
}

/* Asks the policy, once; false: nothing is told. */
static bool judge(struct audit_event *e)
{
	if (!e->judged) {
		e->judged = true;
		e->verdict = audit_policy_judge(e->audit->policy, e->q);
		e->audit->levels[e->verdict.level]++;
	}
	return e->verdict.level != AUDIT_NONE;
}

/* ---- the stages ---- */

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
	if (q->server->audit) {
		q->audit = ARENA_NEW(q->arena, struct audit_event);
		q->audit->audit = q->server->audit;
		q->audit->q = q;
		q->audit->peer = arena_str(q->arena, q->http->peer ? q->http->peer->address : STR_NONE);
	}
	return STAGE_NEXT;
}

int stage_received(struct request *q, struct err *err)
{
	if (!q->audit)
		return STAGE_NEXT;
	if (!judge(q->audit)) {
		q->audit = NULL;
		return STAGE_NEXT;
	}
	if (emit(q->audit, AUDIT_STAGE_REQUEST_RECEIVED, true, err) == 0)
		return STAGE_NEXT;
	q->audit->audit->rejected++;
	q->audit = NULL;
	answer_header(q, STR("x-content-type-options"), STR("nosniff"));
	answer_bytes(q, 500, STR("text/plain; charset=utf-8"),
		     arena_printf(q->arena, "Internal Server Error: \"" STR_FMT "%s" STR_FMT "\": failed to store audit event\n",
				  STR_ARG(q->http->path), q->http->query.n ? "?" : "", STR_ARG(q->http->query)));
	return STAGE_ANSWER;
}

/* ---- what becomes known ---- */

void audit_annotate(struct request *q, str key, str value)
{
	struct audit_event *e = q->audit;
	if (!e)
		return;
	for (size_t i = 0; i < e->n_annotations; i++)
		if (str_eq(e->annotations[i].key, key))
			return;
	size_t n = e->n_annotations;
	if ((n & (n - 1)) == 0) { /* 0, 1, 2, 4, 8, ...: the room is used up */
		struct audit_annotation *room = ARENA_ARRAY(q->arena, struct audit_annotation, n ? 2 * n : 1);
		if (n)
			memcpy(room, e->annotations, n * sizeof *room);
		e->annotations = room;
	}
	e->annotations[e->n_annotations++] = (struct audit_annotation){ arena_str(q->arena, key), arena_str(q->arena, value) };
}

void audit_annotate_request(struct request *q, str key, str value)
{
	if (q->audit && q->audit->verdict.level >= AUDIT_REQUEST)
		audit_annotate(q, key, value);
}

void audit_impersonated(struct request *q, str constraint)
{
	if (q->audit)
		q->audit->constraint = constraint;
}

static str kept_json(struct audit_event *e, str json)
{
	struct arena *a = e->q->arena;
	return e->verdict.omit_managed_fields ? audit_without_managed_fields(a, arena_str(a, json)) : arena_str(a, json);
}

bool audit_wants_request(const struct request *q) { return q->audit && q->audit->verdict.level >= AUDIT_REQUEST; }

bool audit_wants_response(const struct request *q) { return q->audit && q->audit->verdict.level == AUDIT_REQUEST_RESPONSE; }

void audit_response_object(struct request *q, str json)
{
	if (audit_wants_response(q))
		q->audit->response = kept_json(q->audit, str_trim(json));
}

static struct val delete_options(struct request *q)
{
	struct val v = q->delete_options;
	if (!val_exists(v) || val_str(v, kind).n)
		return v;
	return val_put(q->arena, val_put(q->arena, v, A_kind, VAL_LIT("DeleteOptions")), A_apiVersion, VAL_LIT("meta.k8s.io/v1"));
}

/* The object that was sent: as it was understood, or (patches and what has no type here) as it was sent. */
static void take_request(struct request *q)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(EVENT_MAX);
	if (q->audit->verdict.level < AUDIT_REQUEST || !q->body.n)
		return;
	struct val v = val_exists(q->sent) ? q->sent : delete_options(q);
	const struct type *type = val_exists(q->sent) ? write_type(q) : TYPE(meta_v1, DeleteOptions);
	bool typed = val_exists(v) && q->verb != REQUEST_PATCH;
	int r = typed ? json_encode(&b, v, &(struct json_encode_options){ .type = type }, NULL) : -1;
	if (r < 0) {
		buf_reset(&b);
		struct buf duplicates = BUF_INIT(1 << 10);
		r = json_error_offset(q->body) < 0 ? 0 : yaml_to_json(q->body, &b, &duplicates, NULL);
		buf_done(&duplicates);
		if (r == 0 && !b.n)
			buf_add(&b, q->body);
	}
	if (r >= 0 && b.n)
		q->audit->request = kept_json(q->audit, buf_str(&b));
}

/* One object, or a Status; lists tell theirs when they are made. */
static void take_response(struct request *q)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(EVENT_MAX);
	struct accept asked = q->accept;
	bool object = q->answer.kind == ANSWER_OBJECT;
	if (!audit_wants_response(q) || (!object && !val_exists(q->failure)))
		return;
	q->accept.media = MEDIA_JSON;
	q->accept.pretty = false;
	int r;
	if (val_exists(q->failure))
		r = json_encode(&b, q->failure, &(struct json_encode_options){ .type = TYPE(meta_v1, Status) }, NULL);
	else if (q->answer.object)
		r = encode_object(q, q->answer.object, true, &b, NULL);
	else
		r = encode_val(q, q->answer.val, q->answer.type, true, &b, NULL);
	q->accept = asked;
	if (r >= 0)
		audit_response_object(q, buf_str(&b));
}

static bool is_status(const struct request *q)
{
	return q->answer.kind == ANSWER_OBJECT && !q->answer.object && q->answer.type == TYPE(meta_v1, Status);
}

void audit_response_started(struct request *q, int status)
{
	struct audit_event *e = q->audit;
	if (!e || e->started || q->timeout_ms || !e->judged)
		return;
	e->started = true;
	e->status = status;
	(void)emit(e, AUDIT_STAGE_RESPONSE_STARTED, true, NULL);
}

static void note_slowness(struct audit_event *e)
{
	char text[DURATION_TEXT_MAX];
	int64_t took = clock_now_ns() - e->q->begun_ns;
	if (took > SLOW_MS * NS_PER_MS)
		audit_annotate((struct request *)e->q, STR("apiserver.latency.k8s.io/total"), duration_format(took, text));
}

/* What was tried, when nobody could be found out. */
static str attempts(struct request *q)
{
	str auth = str_trim(http_request_header(q->http, STR("authorization"))), scheme, rest;
	bool two = str_cut(auth, ' ', &scheme, &rest);
	bool bearer = two && scheme.n == 6 && strncasecmp(scheme.p, "bearer", 6) == 0;
	bool basic = two && scheme.n == 5 && strncasecmp(scheme.p, "basic", 5) == 0;
	bool token = str_trim(request_query(q, STR("access_token"))).n, x509 = q->http->peer && q->http->peer->certificate;
	CLEANUP(buf_done) struct buf b = BUF_INIT(256);
	static const char *const names[] = { "basic", "bearer", "access_token", "x509" };
	const bool tried[] = { basic, bearer, token, x509 };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (tried[i])
			buf_addf(&b, "%s%s", b.n ? ", " : "Authentication failed, attempted: ", names[i]);
	return b.n ? arena_str(q->arena, buf_str(&b)) : STR("Authentication failed, no credentials provided");
}

static void tell_unauthenticated(struct request *q)
{
	struct audit_event *e = q->audit;
	if (val_int(q->failure, code) != 401 || !judge(e))
		return;
	e->status = 401;
	e->message = attempts(q);
	(void)emit(e, AUDIT_STAGE_RESPONSE_STARTED, true, NULL);
}

void audit_response_complete(struct request *q)
{
	struct audit_event *e = q->audit;
	if (!e)
		return;
	if (!e->judged) {
		tell_unauthenticated(q);
		return;
	}
	bool stream = !q->timeout_ms && !val_exists(q->failure) && q->answer.kind != ANSWER_NONE;
	e->failure = val_exists(q->failure) ? q->failure : is_status(q) ? q->answer.val : VAL_EMPTY;
	int status = val_exists(q->failure) ? (int)val_int(q->failure, code) : q->answer.status;
	if (e->kept && stream) {
		audit_response_started(q, status);
		return;
	}
	take_request(q);
	take_response(q);
	audit_response_started(q, status);
	e->status = status;
	note_slowness(e);
	(void)emit(e, AUDIT_STAGE_RESPONSE_COMPLETE, true, NULL);
}

void audit_panicked(struct request *q, const struct err *why)
{
	struct audit_event *e = TAKE(q->audit);
	if (!e || !e->judged)
		return;
	e->status = 500;
	e->failure = OBJECT(q->arena, F(status, VAL_LIT("Failure")), F(reason, VAL_LIT("InternalError")),
			    F(message, VAL_STR(arena_printf(q->arena, "APIServer panic'd: " STR_FMT, STR_ARG(err_str(why))))));
	e->started = false; /* if it was to be ended elsewhere, this was its end */
	(void)emit(e, AUDIT_STAGE_PANIC, true, NULL);
}

struct audit_event *audit_keep(struct request *q)
{
	struct audit_event *e = q->audit;
	if (!e)
		return NULL;
	e->kept = true;
	struct request *copy = ARENA_NEW(q->arena, struct request);
	*copy = *q;
	e->q = copy;
	return e;
}

void audit_end(struct audit_event *e)
{
	if (!e || !e->started)
		return;
	note_slowness(e);
	(void)emit(e, AUDIT_STAGE_RESPONSE_COMPLETE, false, NULL);
}

/* ---- the server's ---- */

static int check_backend(const struct audit_backend_options *o, const char *plugin, struct err *err)
{
	static const char *const modes[] = { "batch", "blocking", "blocking-strict" };
	size_t i = 0;
	while (i < ARRAY_LEN(modes) && !str_eq(str_of(o->mode), str_of(modes[i])))
		i++;
	if (i == ARRAY_LEN(modes))
		return err_set(err, ERR_BAD_REQUEST, "invalid audit %s mode %s, allowed modes are \"batch,blocking,blocking-strict\"", plugin, o->mode);
	if (i == 0 && o->buffer_size <= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid audit batch %s buffer size %lld, must be a positive number", plugin,
			       (long long)o->buffer_size);
	if (i == 0 && o->max_batch_size <= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid audit batch %s max batch size %lld, must be a positive number", plugin,
			       (long long)o->max_batch_size);
	if (i == 0 && o->throttle && o->throttle_qps <= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid audit batch %s throttle QPS %g, must be a positive number", plugin, o->throttle_qps);
	if (i == 0 && o->throttle && o->throttle_burst <= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid audit batch %s throttle burst %lld, must be a positive number", plugin,
			       (long long)o->throttle_burst);
	if (o->truncate_event_bytes <= 0)
		return err_set(err, ERR_BAD_REQUEST, "invalid audit truncate %s max event size %lld, must be a positive number", plugin,
			       (long long)o->truncate_event_bytes);
	if (o->truncate_batch_bytes < o->truncate_event_bytes)
		return err_set(err, ERR_BAD_REQUEST, "invalid audit truncate %s max batch size %lld, must be greater than max event size (%lld)",
			       plugin, (long long)o->truncate_batch_bytes, (long long)o->truncate_event_bytes);
	if (!str_eq(str_of(o->version), STR("audit.k8s.io/v1")))
		return err_set(err, ERR_BAD_REQUEST, "invalid group version, allowed versions are [{\"audit.k8s.io\" \"v1\"}]");
	return 0;
}

static int check_log(const struct audit_options *o, struct err *err)
{
	const struct {
		const char *flag;
		int64_t value;
	} numbers[] = { { "maxage", o->log_max_age_days }, { "maxbackup", o->log_max_backups }, { "maxsize", o->log_max_size_mb } };
	if (!str_eq(str_of(o->log_format), STR("json")) && !str_eq(str_of(o->log_format), STR("legacy")))
		return err_set(err, ERR_BAD_REQUEST, "invalid audit log format %s, allowed formats are \"legacy,json\"", o->log_format);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i].value < 0)
			return err_set(err, ERR_BAD_REQUEST, "--audit-log-%s %lld can't be a negative number", numbers[i].flag,
				       (long long)numbers[i].value);
	return 0;
}

static int load_policy(const char *path, struct audit_policy **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(POLICY_MAX);
	str warning;
	int r = file_read(path, &text, err);
	if (r < 0)
		return err_wrap(err, r, "loading audit policy file: failed to read file path \"%s\"", path);
	r = audit_policy_parse(buf_str(&text), ret, &warning, err);
	if (r < 0) {
		struct err why = *err;
		return err_set(err, ERR_BAD_REQUEST, "loading audit policy file: " STR_FMT ": from file %s", STR_ARG(err_str(&why)), path);
	}
	if (warning.n)
		log_warn("Audit policy contains errors, falling back to lenient decoding", KV("error", warning));
	return 0;
}

static int add_log(struct audit *a, const struct audit_options *o, struct err *err)
{
	struct audit_log *log;
	const struct audit_log_options options = {
		.path = o->log_path, .max_bytes = MIN(o->log_max_size_mb, INT64_C(1) << 40) << 20, .max_age_days = o->log_max_age_days,
		.max_backups = o->log_max_backups, .compress = o->log_compress,
	};
	int r = audit_log_open(&options, &log, err);
	if (r < 0)
		return r;
	a->backends[a->n_backends++] = audit_backend_to_log(log, &o->log, str_eq(str_of(o->log_format), STR("legacy")));
	return 0;
}

static int add_webhook(struct apiserver *s, struct audit *a, const struct audit_options *o, struct err *err)
{
	struct webhook *w;
	int r = webhook_open(s, o->webhook_config_file, &w, err);
	if (r < 0)
		return err_wrap(err, r, "initializing audit webhook");
	a->backends[a->n_backends++] = audit_backend_to_webhook(w, &o->webhook, o->webhook_initial_backoff_ns);
	return 0;
}

int audit_new(struct apiserver *s, struct audit **ret, struct err *err)
{
	const struct audit_options *o = &s->options.audit;
	bool log = o->log_path && *o->log_path, webhook = o->webhook_config_file && *o->webhook_config_file;
	int r = 0;
	if (log && ((r = check_backend(&o->log, "log", err)) < 0 || (r = check_log(o, err)) < 0))
		return r;
	if (webhook && (r = check_backend(&o->webhook, "webhook", err)) < 0)
		return r;
	if (!o->policy_file || !*o->policy_file) {
		if (log || webhook)
			log_info("No audit policy file provided, no events will be recorded");
		return 0;
	}
	struct audit *a = mem_zalloc(sizeof *a);
	r = load_policy(o->policy_file, &a->policy, err);
	if (r >= 0 && log)
		r = add_log(a, o, err);
	if (r >= 0 && webhook)
		r = add_webhook(s, a, o, err);
	if (r < 0 || !a->n_backends) {
		audit_free(a);
		return r < 0 ? r : 0;
	}
	*ret = a;
	return 0;
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_backends; i++)
		audit_backend_free(a->backends[i]);
	audit_policy_free(a->policy);
	free(a);
}

static int run_backend(void *arg) { return audit_backend_run(arg, NULL); }

int audit_run(struct apiserver *s, struct err *err)
{
	struct audit *a = s->audit;
	if (!a)
		return 0;
	CLEANUP(fiber_group_done) struct fiber_group group;
	fiber_group_init(&group);
	int r = 0;
	for (size_t i = 0; i < a->n_backends && r == 0; i++)
		r = fiber_group_spawn(&group, run_backend, a->backends[i], err, "audit %s", a->backends[i]->plugin);
	return r < 0 ? r : fiber_group_wait(&group, err);
}

void audit_metrics(const struct audit *a, struct buf *b)
{
	if (!a)
		return;
	(void)metrics_family(b, "apiserver_audit_event_total", "counter", "Audit events that were made and sent.");
	buf_addf(b, "apiserver_audit_event_total %llu\n", (unsigned long long)a->events);
	(void)metrics_family(b, "apiserver_audit_level_total", "counter", "Requests by the audit level that the policy has for them.");
	for (size_t i = 0; i < AUDIT_LEVEL_MAX; i++)
		if (a->levels[i])
			buf_addf(b, "apiserver_audit_level_total{level=\"" STR_FMT "\"} %llu\n", STR_ARG(audit_level_names[i]),
				 (unsigned long long)a->levels[i]);
	struct metrics_family f = metrics_family(b, "apiserver_audit_error_total", "counter", "Audit events that were lost, by plugin.");
	for (size_t i = 0; i < a->n_backends; i++)
		if (a->backends[i]->errors)
			buf_addf(b, "apiserver_audit_error_total{plugin=\"%s\"} %llu\n", a->backends[i]->plugin,
				 (unsigned long long)a->backends[i]->errors);
	metrics_family_end(&f);
	(void)metrics_family(b, "apiserver_audit_requests_rejected_total", "counter", "Requests rejected because their event could not be stored.");
	buf_addf(b, "apiserver_audit_requests_rejected_total %llu\n", (unsigned long long)a->rejected);
}
