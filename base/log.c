#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/calendar.h"
#include "base/clock.h"

enum {
	VALUE_MAX = 1024,  /* bytes of one value as written, so that one long value does not push out the other fields */
	TAIL_MAX = 32,     /* kept free for what ends a line */
	CONTEXT_MAX = 16,  /* innermost contexts that are shown */
};

atomic_int log_level_now = LOG_LEVEL_INFO;
static atomic_int format_now = LOG_FORMAT_TEXT;
static atomic_int fd_now = STDERR_FILENO;

static const struct {
	const char *name, *shown;
} levels[] = {
	[LOG_LEVEL_DEBUG] = { "debug", "DEBUG" },
	[LOG_LEVEL_INFO] = { "info", "INFO " },
	[LOG_LEVEL_WARN] = { "warn", "WARN " },
	[LOG_LEVEL_ERROR] = { "error", "ERROR" },
	[LOG_LEVEL_OFF] = { "off", "OFF  " },
};

void log_set_level(enum log_level level) { atomic_store(&log_level_now, (int)level); }
void log_set_format(enum log_format format) { atomic_store(&format_now, (int)format); }
void log_set_fd(int fd) { atomic_store(&fd_now, fd); }

bool log_level_parse(str name, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (str_eq(name, str_of(levels[i].name))) {
			*ret_level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

/* Fibers do not switch while a line is made, so one line per thread is enough and their small stacks are spared. */
static _Thread_local struct line {
	size_t n;
	bool full; /* something did not fit: nothing more is added */
	char text[LOG_LINE_MAX];
} thread_line;

static _Thread_local struct log_context *thread_context;

struct log_context **log_context_slot(void) { return &thread_context; }

struct log_context *log_context_push(struct log_context *c, struct log_kv kv)
{
	*c = (struct log_context){ thread_context, kv };
	thread_context = c;
	return c;
}

void log_context_pop(struct log_context **c) { thread_context = (*c)->outer; }

/* All of s or nothing. */
static void put(struct line *l, str s)
{
	if (l->full || s.n > sizeof(l->text) - TAIL_MAX - l->n) {
		l->full = true;
		return;
	}
	memcpy(l->text + l->n, s.p, s.n);
	l->n += s.n;
}

/* How the one character at the start of s (n bytes; 0: not UTF-8) is written; tmp holds it if it is changed. */
static str escape(str s, size_t n, uint32_t rune, bool json, bool quoted, char tmp[16])
{
	int len;
	if (n == 0)
		len = json ? snprintf(tmp, 16, "\\ufffd") : snprintf(tmp, 16, "\\x%02x", (unsigned char)s.p[0]);
	else if (quoted && (rune == '"' || rune == '\\'))
		len = snprintf(tmp, 16, "\\%c", (char)rune);
	else if (rune == '\n' || rune == '\r' || rune == '\t')
		len = snprintf(tmp, 16, "\\%c", rune == '\n' ? 'n' : rune == '\r' ? 'r' : 't');
	else if (rune < 0x20 || (rune >= 0x7f && rune <= 0x9f))
		len = json || rune > 0x7f ? snprintf(tmp, 16, "\\u%04x", rune) : snprintf(tmp, 16, "\\x%02x", rune);
	else
		return str_head(s, n);
	return str_span(tmp, (size_t)len);
}

/* The text with escapes, cut with "..." after VALUE_MAX bytes or at the end of the line. */
static void put_escaped(struct line *l, str s, bool json, bool quoted)
{
	size_t end = MIN(l->n + VALUE_MAX, sizeof(l->text) - TAIL_MAX - 1); /* the 1 is for a closing quote */
	char tmp[16];

	while (s.n) {
		uint32_t rune = 0;
		size_t n = str_rune(s, &rune);
		str shown = escape(s, n, rune, json, quoted, tmp);
		s = str_skip(s, n ? n : 1);
		if (l->n + shown.n + (s.n ? 3 : 0) > end) {
			put(l, STR("..."));
			return;
		}
		put(l, shown);
	}
}

static void put_quoted(struct line *l, str s, bool json)
{
	put(l, STR("\""));
	put_escaped(l, s, json, true);
	put(l, STR("\""));
}

/* Is s unmistakable in text without quotes? */
static bool is_plain(str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 0x7f || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\')
			return false;
	return s.n > 0;
}

static void put_value(struct line *l, const struct log_kv *kv, bool json)
{
	char tmp[40];
	int n = 0;

	switch (kv->type) {
	case LOG_KV_STR:
		if (json || !is_plain(kv->s))
			put_quoted(l, kv->s, json);
		else
			put_escaped(l, kv->s, false, false);
		return;
	case LOG_KV_INT:
		n = snprintf(tmp, sizeof(tmp), "%lld", (long long)kv->i);
		break;
	case LOG_KV_UINT:
		n = snprintf(tmp, sizeof(tmp), "%llu", (unsigned long long)kv->u);
		break;
	case LOG_KV_DOUBLE: /* JSON has no word for what is not a number */
		n = snprintf(tmp, sizeof(tmp), json && !isfinite(kv->d) ? "\"%g\"" : "%.10g", kv->d);
		break;
	case LOG_KV_BOOL:
		put(l, kv->b ? STR("true") : STR("false"));
		return;
	}
	put(l, str_span(tmp, (size_t)n));
}

static void put_field(struct line *l, const struct log_kv *kv, bool json)
{
	size_t before = l->n;
	if (json) {
		put(l, STR(","));
		put_quoted(l, str_of(kv->key), true);
		put(l, STR(":"));
	} else {
		put(l, STR(" "));
		put(l, str_of(kv->key));
		put(l, STR("="));
	}
	put_value(l, kv, json);
	if (l->full)
		l->n = before;
}

static void put_head(struct line *l, enum log_level level, const char *msg, bool json)
{
	int64_t ms = clock_wall_ns() / NS_PER_MS;
	struct civil t = civil_of_seconds(ms / 1000);
	char stamp[64];
	size_t n = (size_t)snprintf(stamp, sizeof stamp, "%04lld-%02u-%02uT%02u:%02u:%02u.%03dZ", (long long)t.year, t.month, t.day,
				    t.hour, t.minute, t.second, (int)(ms % 1000));

	if (json) {
		put(l, STR("{\"ts\":\""));
		put(l, str_span(stamp, n));
		put(l, STR("\",\"level\":\""));
		put(l, str_of(levels[level].name));
		put(l, STR("\",\"msg\":"));
		put_quoted(l, str_of(msg), true);
	} else {
		put(l, str_span(stamp, n));
		put(l, STR(" "));
		put(l, str_of(levels[level].shown));
		put(l, STR(" "));
		put_escaped(l, str_of(msg), false, false);
	}
}

static void put_context(struct line *l, bool json)
{
	const struct log_context *shown[CONTEXT_MAX];
	size_t n = 0;
	for (const struct log_context *c = thread_context; c && n < CONTEXT_MAX; c = c->outer)
		shown[n++] = c;
	while (n)
		put_field(l, &shown[--n]->kv, json);
}

static void put_end(struct line *l, bool json)
{
	str end = json ? (l->full ? STR(",\"truncated\":true}\n") : STR("}\n")) : (l->full ? STR(" ...\n") : STR("\n"));
	memcpy(l->text + l->n, end.p, end.n); /* TAIL_MAX bytes are free */
	l->n += end.n;
}

void log_write(enum log_level level, const char *msg, const struct log_kv *kv)
{
	int saved = errno;
	bool json = atomic_load_explicit(&format_now, memory_order_relaxed) == LOG_FORMAT_JSON;
	int fd = atomic_load_explicit(&fd_now, memory_order_relaxed);
	struct line *l = &thread_line;

	l->n = 0;
	l->full = false;
	put_head(l, level, msg, json);
	put_context(l, json);
	for (; kv->key; kv++)
		put_field(l, kv, json);
	put_end(l, json);
	while (write(fd, l->text, l->n) < 0 && errno == EINTR)
		;
	errno = saved;
}
