#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
	int status;
	const char *reason, *text;
} rows[ERR_MAX] = {
	[ERR_NONE] = { 200, "", "no error" },
#define ERR_ROW(name, status, reason, text) [ERR_##name] = { status, reason, text },
	ERR_CODES(ERR_ROW)
#undef ERR_ROW
};

int err_http_status(enum err_code code) { return rows[code].status; }
const char *err_reason(enum err_code code) { return rows[code].reason; }

const char *err_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {
		{ 400, "the server rejected our request for an unknown reason" },
		{ 401, "the server has asked for the client to provide credentials" },
		{ 404, "the server could not find the requested resource" },
		{ 405, "the server does not allow this method on the requested resource" },
		{ 409, "the server reported a conflict" },
		{ 422, "the server rejected our request due to an error in our request" },
		{ 429, "the server has received too many requests and has asked us to try again later" },
		{ 503, "the server is currently unable to handle the request" },
		{ 504, "the server was unable to return a response in the time allotted, but may still be processing the request" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].status == status)
			return known[i].text;
	return NULL;
}

void err_clear(struct err *err)
{
	if (err)
		*err = (struct err)ERR_INIT;
}

/* Appends at *n; a message that does not fit ends in "..." on a whole UTF-8 character. */
static size_t put(char *msg, size_t cap, size_t n, const char *fmt, va_list ap)
{
	int len = vsnprintf(msg + n, cap - n, fmt, ap);
	if (len < 0) {
		msg[n] = '\0';
		return n;
	}
	if (n + (size_t)len < cap)
		return n + (size_t)len;
	n = cap - 4;
	while (n && ((unsigned char)msg[n] & 0xc0) == 0x80)
		n--;
	memcpy(msg + n, "...", 4);
	return n + 3;
}

static void err_vput(struct err *err, const char *fmt, va_list ap)
{
	err->n = (uint16_t)put(err->msg, sizeof(err->msg), err->n, fmt, ap);
}

PRINTF_LIKE(2, 3) static void err_put(struct err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	err_vput(err, fmt, ap);
	va_end(ap);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		err->code = code;
		err->sys = 0;
		err->n = 0;
		va_start(ap, fmt);
		err_vput(err, fmt, ap);
		va_end(ap);
		if (err->n == 0)
			err_put(err, "%s", rows[code].text);
	}
	return -(int)code;
}

static enum err_code code_of_errno(int sys)
{
	switch (sys) {
	case ENOENT: return ERR_NOT_FOUND;
	case EEXIST: return ERR_ALREADY_EXISTS;
	case EACCES:
	case EPERM: return ERR_FORBIDDEN;
	case ETIMEDOUT: return ERR_TIMEOUT;
	case ECANCELED: return ERR_CANCELED;
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE: return ERR_UNAVAILABLE;
	default: return ERR_SYSTEM;
	}
}

int err_sys(struct err *err, int sys, const char *fmt, ...)
{
	enum err_code code = code_of_errno(sys);
	if (err) {
		va_list ap;
		err->code = code;
		err->sys = sys;
		err->n = 0;
		va_start(ap, fmt);
		err_vput(err, fmt, ap);
		va_end(ap);
		err_put(err, "%s%s", err->n ? ": " : "", strerrordesc_np(sys) ? strerrordesc_np(sys) : "unknown error");
	}
	return -(int)code;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
	if (err) {
		struct err inner = *err;
		va_list ap;
		err->n = 0;
		va_start(ap, fmt);
		err_vput(err, fmt, ap);
		va_end(ap);
		err_put(err, ": %s", inner.msg);
	}
	return r;
}
