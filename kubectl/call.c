/* Requests. What the server warns of is shown as it comes; what it refuses is noted as a failure. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fiber.h"
#include "kubectl/ktl.h"

int ktl_flush(void)
{
	static int why;
	if (fflush(stdout) != 0 && !why)
		why = errno;
	return why;
}

void ktl_warn(struct ktl *k, str text)
{
	VAL_EACH(old, k->warned)
		if (str_eq(val_as_str(*old), text))
			return;
	k->warned = val_list_append(&k->arena, k->warned, VAL_STR(text));
	ktl_flush();
	bool colour = isatty(STDERR_FILENO) && !(getenv("TERM") && ktl_is(getenv("TERM"), "dumb"));
	fprintf(stderr, colour ? "\033[33;1mWarning:\033[0m " STR_FMT "\n" : "Warning: " STR_FMT "\n", STR_ARG(text));
}

str ktl_json(struct ktl *k, struct val v)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	(void)json_encode(&b, v, &(struct json_encode_options){ 0 }, NULL);
	return arena_str(&k->arena, buf_str(&b));
}

int ktl_parse_json(struct ktl *k, str text, struct val *ret, struct err *err)
{
	return json_decode(&k->arena, text, &(struct json_decode_options){ .sort_keys = true }, ret, err);
}

str ktl_quote(struct ktl *k, str text)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(KTL_TEXT_MAX);
	buf_add_quoted(&b, text);
	return arena_str(&k->arena, buf_str(&b));
}

str ktl_lower(struct ktl *k, str text)
{
	char *p = ARENA_ARRAY(&k->arena, char, text.n + 1);
	for (size_t i = 0; i < text.n; i++)
		p[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 0x20) : text.p[i];
	p[text.n] = '\0';
	return str_span(p, text.n);
}

/* ---- answers ---- */

static bool is_failure(struct val v)
{
	return str_eq(val_str(v, kind), STR("Status")) && str_eq(val_str(v, apiVersion), STR("v1")) && !str_eq(val_str(v, status), STR("Success"));
}

/* What client-go makes of an answer that is no Status. */
static int fail_without_status(struct ktl *k, const struct client_answer *answer)
{
	static const struct { int status; const char *reason; } reasons[] = {
		{ 400, "BadRequest" }, { 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "NotFound" }, { 405, "MethodNotAllowed" },
		{ 409, "Conflict" }, { 422, "Invalid" }, { 429, "TooManyRequests" }, { 503, "ServiceUnavailable" }, { 504, "Timeout" },
	};
	const char *reason = answer->status >= 500 ? "InternalError" : "", *known = err_status_text(answer->status);
	str text = str_trim(str_head(answer->body, 2048));
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == answer->status)
			reason = reasons[i].reason;
	if (known)
		text = str_of(known);
	else if (answer->status >= 500)
		text = arena_printf(&k->arena, "an error on the server (" STR_FMT ") has prevented the request from succeeding",
				    STR_ARG(ktl_quote(k, text.n ? text : STR("unknown"))));
	else if (!text.n)
		text = arena_printf(&k->arena, "the server responded with the status code %d but did not return more information", answer->status);
	return ktl_fail_status(k, OBJECT(&k->arena, F(kind, VAL_LIT("Status")), F(status, VAL_LIT("Failure")), F(message, VAL_STR(text)),
					 F(reason, VAL_STR(str_of(reason))), F(code, val_of_int(answer->status))));
}

int ktl_fail_answer(struct ktl *k, const struct client_answer *answer)
{
	struct val v;
	if (answer->body.n && answer->body.p[0] == '{' && ktl_parse_json(k, answer->body, &v, NULL) == 0 && is_failure(v))
		return ktl_fail_status(k, v);
	return fail_without_status(k, answer);
}

static void show_warnings(struct ktl *k, const struct client_answer *answer)
{
	for (size_t i = 0; i < answer->n_warnings; i++)
		ktl_warn(k, answer->warnings[i]);
}

static int call(struct ktl *k, const struct client_raw *q, struct client_answer *ret)
{
	struct err err = ERR_INIT;
	struct client *c;
	if (ktl_client(k, &c) < 0)
		return -1;
	DEADLINE_SCOPE(k->timeout_ms ? k->timeout_ms : INT64_MAX / 2000000);
	if (client_raw(c, &k->arena, q, KTL_ANSWER_MAX, ret, &err) < 0)
		return ktl_fail_connection(k, &err);
	show_warnings(k, ret);
	return ret->status >= 200 && ret->status <= 299 ? 0 : ktl_fail_answer(k, ret);
}

int ktl_call_text(struct ktl *k, const struct client_raw *q, str *ret)
{
	struct client_answer answer;
	if (call(k, q, &answer) < 0)
		return -1;
	*ret = answer.body;
	return 0;
}

int ktl_call(struct ktl *k, const struct client_raw *q, struct val *ret)
{
	struct err err = ERR_INIT;
	str text;
	if (ktl_call_text(k, q, &text) < 0)
		return -1;
	if (ktl_parse_json(k, text, ret, &err) < 0)
		return ktl_fail(k, "the server's answer cannot be decoded: %s", err.msg);
	return is_failure(*ret) ? ktl_fail_status(k, *ret) : 0;
}

int ktl_get(struct ktl *k, str path, str query, struct val *ret)
{
	return ktl_call(k, &(struct client_raw){ .method = STR("GET"), .path = path, .query = query, .accept = STR("application/json") }, ret);
}

int ktl_open_stream(struct ktl *k, const struct client_raw *q, struct client_stream **ret)
{
	struct client_answer answer;
	struct err err = ERR_INIT;
	struct client *c;
	if (ktl_client(k, &c) < 0)
		return -1;
	if (client_stream(c, &k->arena, q, ret, &answer, &err) < 0)
		return ktl_fail_connection(k, &err);
	show_warnings(k, &answer);
	return *ret ? 0 : ktl_fail_answer(k, &answer);
}
