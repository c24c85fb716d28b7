/* Messages, deadlines and statuses as gRPC writes them; no I/O here. */
#include "net/grpc_frame.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/mem.h"

void grpc_prefix(char out[GRPC_PREFIX], size_t length)
{
	out[0] = 0;
	for (unsigned i = 0; i < 4; i++)
		out[1 + i] = (char)(length >> (24 - 8 * i));
}

/* ---- messages out of a body ---- */

static int prefix_done(struct grpc_deframer *d, struct err *err)
{
	enum { ROOM_FIRST = 64 * 1024 };

	if (d->prefix[0] != 0)
		return err_set(err, ERR_INTERNAL, "grpc: received a compressed message, which was not asked for");
	d->length = 0;
	for (unsigned i = 1; i < GRPC_PREFIX; i++)
		d->length = d->length << 8 | d->prefix[i];
	if (d->length > d->max)
		return err_set(err, ERR_TOO_LARGE, "grpc: received a message of %zu bytes; at most %zu are taken", d->length,
			       d->max);
	d->room = MIN(d->length, (size_t)ROOM_FIRST);
	d->partial = mem_alloc(sizeof *d->partial + d->room);
	d->partial->n = 0;
	return 0;
}

static size_t take_prefix(struct grpc_deframer *d, str bytes)
{
	size_t n = MIN(bytes.n, (size_t)(GRPC_PREFIX - d->n_prefix));

	memcpy(d->prefix + d->n_prefix, bytes.p, n);
	d->n_prefix += (unsigned)n;
	return n;
}

static size_t take_message(struct grpc_deframer *d, str bytes)
{
	struct grpc_message *m = d->partial;
	size_t n = MIN(bytes.n, d->length - m->n);

	if (m->n + n > d->room) {
		size_t want = MAX(2 * d->room, m->n + n);
		d->room = MIN(d->length, want);
		m = d->partial = mem_resize(m, sizeof *m + d->room);
	}
	if (n)
		memcpy(m->bytes + m->n, bytes.p, n);
	m->n += n;
	return n;
}

int grpc_deframe(struct grpc_deframer *d, str *bytes, struct grpc_message **ret_message, struct err *err)
{
	int r;

	if (d->n_prefix < GRPC_PREFIX) {
		if (bytes->n == 0)
			return 0;
		*bytes = str_skip(*bytes, take_prefix(d, *bytes));
		if (d->n_prefix < GRPC_PREFIX)
			return 0;
		if ((r = prefix_done(d, err)) < 0)
			return r;
	}
	*bytes = str_skip(*bytes, take_message(d, *bytes));
	if (d->partial->n < d->length)
		return 0;
	*ret_message = TAKE(d->partial);
	d->n_prefix = 0;
	return 1;
}

void grpc_deframer_done(struct grpc_deframer *d) { mem_freep(&d->partial); }

/* ---- headers ---- */

str grpc_timeout_text(int64_t ns, char out[GRPC_TIMEOUT_TEXT])
{
	/* At most eight digits: milliseconds reach for a day, hours for longer than any deadline. */
	static const struct {
		int64_t ns;
		char unit;
	} units[] = { { NS_PER_US, 'u' }, { NS_PER_MS, 'm' }, { NS_PER_S, 'S' }, { 3600 * NS_PER_S, 'H' } };
	size_t i = 0;
	int64_t n;

	ns = MAX(ns, INT64_C(1));
	while ((n = (ns - 1) / units[i].ns + 1) > 99999999 && i + 1 < ARRAY_LEN(units))
		i++;
	int len = snprintf(out, GRPC_TIMEOUT_TEXT, "%" PRId64 "%c", n, units[i].unit);
	return str_span(out, (size_t)len);
}

int64_t grpc_timeout_parse(str text)
{
	static const struct {
		char unit;
		int64_t ns;
	} units[] = { { 'n', 1 }, { 'u', NS_PER_US }, { 'm', NS_PER_MS }, { 'S', NS_PER_S }, { 'M', 60 * NS_PER_S },
		      { 'H', 3600 * NS_PER_S } };
	enum { DIGITS_MAX = 8 };
	int64_t n;

	if (text.n < 2 || text.n > DIGITS_MAX + 1 || !str_to_i64(str_head(text, text.n - 1), &n) || n < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (units[i].unit == text.p[text.n - 1])
			return n > INT64_MAX / units[i].ns ? INT64_MAX : n * units[i].ns;
	return -1;
}

void grpc_message_encode(struct buf *b, str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		if (c >= ' ' && c <= '~' && c != '%')
			buf_addc(b, (char)c);
		else
			buf_addf(b, "%%%02X", c);
	}
}

void grpc_message_decode(struct buf *b, str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char byte;
		size_t n;
		if (text.p[i] == '%' && text.n - i > 2 && hex_decode(&byte, str_span(text.p + i + 1, 2), &n, NULL) == 0) {
			buf_addc(b, byte);
			i += 2;
		} else {
			buf_addc(b, text.p[i]);
		}
	}
}

static const struct {
	const char *name;
	enum err_code err;
} statuses[] = {
	[GRPC_OK] = { "OK", ERR_NONE },
	/* Not ERR_CANCELED, which would say that the calling fiber was. */
	[GRPC_CANCELLED] = { "Canceled", ERR_UNAVAILABLE },
	[GRPC_UNKNOWN] = { "Unknown", ERR_INTERNAL },
	[GRPC_INVALID_ARGUMENT] = { "InvalidArgument", ERR_BAD_REQUEST },
	[GRPC_DEADLINE_EXCEEDED] = { "DeadlineExceeded", ERR_TIMEOUT },
	[GRPC_NOT_FOUND] = { "NotFound", ERR_NOT_FOUND },
	[GRPC_ALREADY_EXISTS] = { "AlreadyExists", ERR_ALREADY_EXISTS },
	[GRPC_PERMISSION_DENIED] = { "PermissionDenied", ERR_FORBIDDEN },
	[GRPC_RESOURCE_EXHAUSTED] = { "ResourceExhausted", ERR_TOO_MANY_REQUESTS },
	[GRPC_FAILED_PRECONDITION] = { "FailedPrecondition", ERR_CONFLICT },
	[GRPC_ABORTED] = { "Aborted", ERR_CONFLICT },
	[GRPC_OUT_OF_RANGE] = { "OutOfRange", ERR_BAD_REQUEST },
	[GRPC_UNIMPLEMENTED] = { "Unimplemented", ERR_METHOD_NOT_ALLOWED },
	[GRPC_INTERNAL] = { "Internal", ERR_INTERNAL },
	[GRPC_UNAVAILABLE] = { "Unavailable", ERR_UNAVAILABLE },
	[GRPC_DATA_LOSS] = { "DataLoss", ERR_INTERNAL },
	[GRPC_UNAUTHENTICATED] = { "Unauthenticated", ERR_UNAUTHORIZED },
};

int grpc_status_parse(str text)
{
	int64_t n;

	return str_to_i64(text, &n) && n >= 0 && n <= INT32_MAX ? (int)n : -1;
}

static bool status_known(int status) { return status >= 0 && (size_t)status < ARRAY_LEN(statuses); }

enum err_code grpc_status_err(int status) { return status_known(status) ? statuses[status].err : ERR_INTERNAL; }

const char *grpc_status_name(int status) { return status_known(status) ? statuses[status].name : "Unknown"; }

int grpc_status_of_err(enum err_code code)
{
	switch (code) {
	case ERR_NONE:
		return GRPC_OK;
	case ERR_BAD_REQUEST:
	case ERR_INVALID:
		return GRPC_INVALID_ARGUMENT;
	case ERR_UNAUTHORIZED:
		return GRPC_UNAUTHENTICATED;
	case ERR_FORBIDDEN:
		return GRPC_PERMISSION_DENIED;
	case ERR_NOT_FOUND:
		return GRPC_NOT_FOUND;
	case ERR_METHOD_NOT_ALLOWED:
		return GRPC_UNIMPLEMENTED;
	case ERR_ALREADY_EXISTS:
		return GRPC_ALREADY_EXISTS;
	case ERR_CONFLICT:
		return GRPC_FAILED_PRECONDITION;
	case ERR_TOO_LARGE:
	case ERR_TOO_MANY_REQUESTS:
		return GRPC_RESOURCE_EXHAUSTED;
	case ERR_CANCELED:
		return GRPC_CANCELLED;
	case ERR_TIMEOUT:
	case ERR_SERVER_TIMEOUT:
		return GRPC_DEADLINE_EXCEEDED;
	case ERR_UNAVAILABLE:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

int grpc_status_of_http(int http_status)
{
	switch (http_status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}
