/* Answers that are errors: the code and the message of a Status, or what client-go says of a server that did not send one. */
#include "base/buf.h"
#include "client/client_priv.h"
#include "codec/atoms.h"

enum { TEXT_SHOWN = 2048 };

static enum err_code code_of_reason(str reason)
{
	for (unsigned code = ERR_NONE + 1; reason.n && code < ERR_MAX; code++)
		if (code != ERR_CANCELED && str_eq(reason, str_of(err_reason(code))))
			return code;
	return ERR_NONE;
}

static enum err_code code_of_status(const struct client_request *q, int status)
{
	if (status == 409)
		return str_eq(q->method, STR("POST")) ? ERR_ALREADY_EXISTS : ERR_CONFLICT;
	/* That somebody was canceled is for our own fiber to say: those who hear it give their work up. */
	for (unsigned code = ERR_NONE + 1; code < ERR_MAX; code++)
		if (code != ERR_CANCELED && err_http_status(code) == status)
			return code;
	return status < 500 ? ERR_BAD_REQUEST : ERR_INTERNAL;
}

/* A list or watch that cannot go on where it was begins anew, however the server calls it. */
static enum err_code gone_is_expired(const struct client_request *q, enum err_code code)
{
	bool many = strcmp(q->verb, "list") == 0 || strcmp(q->verb, "watch") == 0 || strcmp(q->verb, "deletecollection") == 0;
	return code == ERR_GONE && many ? ERR_EXPIRED : code;
}

static bool is_status(struct val object)
{
	return str_eq(val_str(object, kind), STR("Status")) && str_eq(val_str(object, apiVersion), STR("v1"));
}

/* " (get pods web)" */
static void add_subject(struct buf *b, const struct client_request *q)
{
	if (!q->resource)
		return;
	buf_addc(b, ' ');
	buf_addc(b, '(');
	for (size_t i = 0; i < q->method.n; i++)
		buf_addc(b, (char)(q->method.p[i] | 0x20));
	buf_addf(b, " " STR_FMT, STR_ARG(q->resource->name));
	if (q->resource->group.n)
		buf_addf(b, "." STR_FMT, STR_ARG(q->resource->group));
	if (q->name.n)
		buf_addf(b, " " STR_FMT, STR_ARG(q->name));
	buf_addc(b, ')');
}

static int fail_without_status(const struct client_request *q, int status, str text, struct err *err)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(16 * TEXT_SHOWN);
	const char *known = err_status_text(status);
	text = str_trim(str_head(text, TEXT_SHOWN));
	if (!text.n)
		text = STR("unknown");
	if (known)
		buf_add(&b, str_of(known));
	else if (status == 406 && str_eq(text, STR("unknown")))
		buf_add(&b, STR("the server was unable to respond with a content type that the client supports"));
	else if (status == 403 || status == 406 || status == 415)
		buf_add(&b, text);
	else if (status < 500)
		buf_addf(&b, "the server responded with the status code %d but did not return more information", status);
	if (!b.n) {
		buf_add(&b, STR("an error on the server ("));
		buf_add_quoted(&b, text);
		buf_add(&b, STR(") has prevented the request from succeeding"));
	}
	add_subject(&b, q);
	return err_set(err, gone_is_expired(q, code_of_status(q, status)), STR_FMT, STR_ARG(buf_str(&b)));
}

int client_status_fail(const struct client_request *q, int http_status, struct val object, str text, struct err *err)
{
	if (!is_status(object))
		return fail_without_status(q, http_status, text, err);
	int64_t said = val_int(object, code);
	enum err_code code = code_of_reason(val_str(object, reason));
	str message = val_str(object, message);
	if (code == ERR_NONE)
		code = code_of_status(q, said >= 400 && said < 600 ? (int)said : http_status);
	if (!message.n)
		return fail_without_status(q, said >= 400 && said < 600 ? (int)said : http_status, text, err);
	return err_set(err, gone_is_expired(q, code), STR_FMT, STR_ARG(message));
}
