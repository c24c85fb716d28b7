/*
 * Errors. A function that can fail returns >= 0 on success and -ERR_x on failure, and describes the failure in a
 * caller-owned struct err (last parameter, may be NULL). The message lives inside the struct, so failing never allocates.
 * Context is added on the way up with err_wrap; only main and the top of a fiber print an error and decide.
 */
#ifndef C8S_BASE_ERR_H
#define C8S_BASE_ERR_H

#include "base/str.h"

/* One row per code: HTTP status, the reason of a Kubernetes Status, and a text for when no message was given. */
#define ERR_CODES(X)                                                                                    \
	X(BAD_REQUEST, 400, "BadRequest", "the request is malformed")                                   \
	X(UNAUTHORIZED, 401, "Unauthorized", "Unauthorized")                                            \
	X(FORBIDDEN, 403, "Forbidden", "forbidden")                                                     \
	X(NOT_FOUND, 404, "NotFound", "not found")                                                      \
	X(METHOD_NOT_ALLOWED, 405, "MethodNotAllowed", "the method is not allowed")                     \
	X(NOT_ACCEPTABLE, 406, "NotAcceptable", "no acceptable media type")                             \
	X(ALREADY_EXISTS, 409, "AlreadyExists", "already exists")                                       \
	X(CONFLICT, 409, "Conflict", "the object has been modified")                                    \
	X(GONE, 410, "Gone", "gone")                                                                    \
	X(EXPIRED, 410, "Expired", "the resource version is too old")                                   \
	X(TOO_LARGE, 413, "RequestEntityTooLarge", "the input is too large")                            \
	X(UNSUPPORTED_MEDIA, 415, "UnsupportedMediaType", "unsupported media type")                     \
	X(INVALID, 422, "Invalid", "invalid")                                                           \
	X(TOO_MANY_REQUESTS, 429, "TooManyRequests", "too many requests, try again later")              \
	X(CANCELED, 499, "Canceled", "canceled")                                                        \
	X(INTERNAL, 500, "InternalError", "internal error")                                             \
	X(SERVER_TIMEOUT, 500, "ServerTimeout", "the server could not finish in time, try again later") \
	X(SYSTEM, 500, "InternalError", "system call failed")                                           \
	X(UNAVAILABLE, 503, "ServiceUnavailable", "unavailable")                                        \
	X(TIMEOUT, 504, "Timeout", "timed out")

enum err_code {
	ERR_NONE,
#define ERR_ENUM(name, status, reason, text) ERR_##name,
	ERR_CODES(ERR_ENUM)
#undef ERR_ENUM
	ERR_MAX,
};

struct err {
	enum err_code code;
	int sys;           /* errno, when a system call failed; else 0 */
	uint16_t n;        /* length of msg */
	char msg[1014];    /* always terminated; too long a message ends in "..." */
};

#define ERR_INIT { .code = ERR_NONE }

/* Fills err and returns -code: return err_set(err, ERR_CONFLICT, "pods '%s': revision is stale", name); */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same for a failed system call: "what: strerror(sys)", with a code that fits sys. */
int err_sys(struct err *err, int sys, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Puts "context: " before the message and returns r, the result that is being passed on. */
int err_wrap(struct err *err, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
void err_clear(struct err *err);

static inline str err_str(const struct err *err) { return str_span(err->msg, err->n); }

int err_http_status(enum err_code code);
const char *err_reason(enum err_code code);
/* What Kubernetes' clients say of a server that answers with this HTTP status and nothing else; NULL: they show the answer. */
const char *err_status_text(int status);

#endif
