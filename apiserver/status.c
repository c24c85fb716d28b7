/* How requests fail: the Status objects of Kubernetes, with its texts. */
#include <stdarg.h>

#include "apiserver/request.h"
#include "codec/atoms.h"

struct val status_of(struct arena *a, int http_status, str reason, struct val details, str message)
{
	return OBJECT(a, F(kind, VAL_LIT("Status")), F(apiVersion, VAL_LIT("v1")), F(metadata, VAL_EMPTY_OBJECT),
		      F(status, VAL_LIT("Failure")), F(message, message.n ? val_of_str(message) : VAL_EMPTY),
		      F(reason, reason.n ? val_of_str(reason) : VAL_EMPTY), F(details, details),
		      F(code, val_of_int(http_status)));
}

static int fail(struct request *q, enum err_code code, int status, str reason, struct val details, str message)
{
	q->failure = status_of(q->arena, status, reason, details, message);
	return -(int)code;
}

/* The message of a variable argument list, in the arena. */
#define MESSAGE(q, fmt, text)                                  \
	va_list ap;                                            \
	va_start(ap, fmt);                                     \
	str text = arena_vprintf((q)->arena, fmt, ap);         \
	va_end(ap)

int request_fail(struct request *q, enum err_code code, struct val details, const char *fmt, ...)
{
	MESSAGE(q, fmt, text);
	return fail(q, code, err_http_status(code), str_of(err_reason(code)), details, text);
}

int request_fail_as(struct request *q, enum err_code code, int status, str reason, struct val details, const char *fmt, ...)
{
	MESSAGE(q, fmt, text);
	return fail(q, code, status, reason, details, text);
}

int fail_bad_request(struct request *q, const char *fmt, ...)
{
	MESSAGE(q, fmt, text);
	return fail(q, ERR_BAD_REQUEST, 400, STR("BadRequest"), VAL_EMPTY, text);
}

int fail_internal(struct request *q, const char *fmt, ...)
{
	MESSAGE(q, fmt, text);
	struct val cause = OBJECT(q->arena, F(message, val_of_str(text)));
	struct val details = OBJECT(q->arena, F(causes, LIST(q->arena, cause)));
	return fail(q, ERR_INTERNAL, 500, STR("InternalError"), details,
		    arena_join(q->arena, STR("Internal error occurred: "), text));
}

static str qualified(struct request *q, str group, str resource)
{
	return group.n ? arena_printf(q->arena, STR_FMT "." STR_FMT, STR_ARG(resource), STR_ARG(group)) : resource;
}

/* The name may be an object's that does not live as long as the failure: it is copied. */
static struct val details_of(struct request *q, str group, str kind, str name)
{
	return OBJECT(q->arena, F(name, name.n ? val_of_str(arena_str(q->arena, name)) : VAL_EMPTY),
		      F(group, group.n ? val_of_str(group) : VAL_EMPTY), F(kind, kind.n ? val_of_str(kind) : VAL_EMPTY));
}

/* <resource> "<name>" <text> */
static int fail_object(struct request *q, enum err_code code, str group, str resource, str name, const char *text)
{
	str what = qualified(q, group, resource);
	return fail(q, code, err_http_status(code), str_of(err_reason(code)), details_of(q, group, resource, name),
		    arena_printf(q->arena, STR_FMT " \"" STR_FMT "\" %s", STR_ARG(what), STR_ARG(name), text));
}

int fail_not_found(struct request *q, str group, str resource, str name)
{
	return fail_object(q, ERR_NOT_FOUND, group, resource, name, "not found");
}

int fail_already_exists(struct request *q, str group, str resource, str name)
{
	return fail_object(q, ERR_ALREADY_EXISTS, group, resource, name, "already exists");
}

int fail_conflict(struct request *q, str group, str resource, str name, const char *fmt, ...)
{
	MESSAGE(q, fmt, why);
	str what = qualified(q, group, resource);
	return fail(q, ERR_CONFLICT, 409, STR("Conflict"), details_of(q, group, resource, name),
		    arena_printf(q->arena, "Operation cannot be fulfilled on " STR_FMT " \"" STR_FMT "\": " STR_FMT,
				 STR_ARG(what), STR_ARG(name), STR_ARG(why)));
}

int fail_forbidden(struct request *q, str group, str resource, str name, const char *fmt, ...)
{
	MESSAGE(q, fmt, why);
	str what = qualified(q, group, resource);
	str message = name.n ? arena_printf(q->arena, STR_FMT " \"" STR_FMT "\" is forbidden: " STR_FMT, STR_ARG(what),
					    STR_ARG(name), STR_ARG(why)) :
			       arena_printf(q->arena, STR_FMT " is forbidden: " STR_FMT, STR_ARG(what), STR_ARG(why));
	return fail(q, ERR_FORBIDDEN, 403, STR("Forbidden"), details_of(q, group, resource, name), message);
}

int fail_invalid(struct request *q, str group, str kind, str name, const struct field_errors *errors)
{
	struct val_builder causes = val_builder(q->arena);
	for (size_t i = 0; i < errors->n; i++) {
		const struct field_error *e = &errors->list[i];
		val_add_item(&causes, OBJECT(q->arena, F(reason, val_of_str(str_of(field_error_reason(e->type)))),
					     F(message, val_of_str(e->body)), F(field, val_of_str(e->field))));
	}
	struct val details = val_put(q->arena, details_of(q, group, kind, name), A_causes, val_end_list(&causes));
	size_t n;
	str all = field_errors_join(errors, &n), what = qualified(q, group, kind);
	return fail(q, ERR_INVALID, 422, STR("Invalid"), details,
		    arena_printf(q->arena, n > 1 ? STR_FMT " \"" STR_FMT "\" is invalid: [" STR_FMT "]" :
						   STR_FMT " \"" STR_FMT "\" is invalid: " STR_FMT,
				 STR_ARG(what), STR_ARG(name), STR_ARG(all)));
}

int fail_method_not_allowed(struct request *q)
{
	return request_fail(q, ERR_METHOD_NOT_ALLOWED, VAL_EMPTY_OBJECT,
			    "the server does not allow this method on the requested resource");
}

int fail_no_such_resource(struct request *q)
{
	return request_fail(q, ERR_NOT_FOUND, VAL_EMPTY_OBJECT, "the server could not find the requested resource");
}

int fail_err(struct request *q, const struct err *err)
{
	enum err_code code = err->code ? err->code : ERR_INTERNAL;
	str text = arena_str(q->arena, err_str(err));
	switch (code) {
	case ERR_INTERNAL:
	case ERR_SYSTEM:
		return fail_internal(q, STR_FMT, STR_ARG(text));
	case ERR_TIMEOUT:
		return fail(q, code, 504, STR("Timeout"), VAL_EMPTY_OBJECT,
			    STR("Timeout: request did not complete within the allotted timeout"));
	default:
		return fail(q, code, err_http_status(code), str_of(err_reason(code)), VAL_EMPTY, text);
	}
}
