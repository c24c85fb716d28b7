/*
 * log: one line per event, with fields.
 *
 *	log_info("pod synced", KV("pod", key), KV("ms", 3));
 *	2026-01-02T03:04:05.678Z INFO  pod synced pod=default/x ms=3
 *	{"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"pod synced","pod":"default/x","ms":3}
 *
 * The message is a constant; what varies goes into fields. A line is written by one write(2) and has at most LOG_LINE_MAX
 * bytes, the newline included, so lines of several processes on one pipe do not mix; long values are cut to end in "...".
 * Control characters and bytes that are not UTF-8 are escaped. Any thread may log; a failed write is ignored and errno is
 * kept. A disabled level costs one branch, and its fields are not evaluated.
 */
#ifndef C8S_BASE_LOG_H
#define C8S_BASE_LOG_H

#include <stdatomic.h>

#include "base/err.h"

enum { LOG_LINE_MAX = 4096 };

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVEL_OFF };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* At start: info, text, stderr. May be changed at any time. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
void log_set_fd(int fd);
/* "debug", "info", "warn", "error" or "off"; false for anything else. */
bool log_level_parse(str name, enum log_level *ret_level);

/* A field. Key and value are borrowed until the line is written or the context popped. */
struct log_kv {
	const char *key; /* a plain word; NULL ends a list */
	enum { LOG_KV_STR, LOG_KV_INT, LOG_KV_UINT, LOG_KV_DOUBLE, LOG_KV_BOOL } type;
	union {
		str s;
		int64_t i;
		uint64_t u;
		double d;
		bool b;
	};
};

/*
 * KV("key", value) for a value of type str, char *, bool (but the word true is an int), any integer, double, or
 * struct err * (its message).
 */
#define KV(name, value)                             \
	(_Generic((value),                          \
		str: log_kv_str,                    \
		char *: log_kv_cstr,                \
		const char *: log_kv_cstr,          \
		bool: log_kv_bool,                  \
		signed char: log_kv_int,            \
		short: log_kv_int,                  \
		int: log_kv_int,                    \
		long: log_kv_int,                   \
		long long: log_kv_int,              \
		unsigned char: log_kv_uint,         \
		unsigned short: log_kv_uint,        \
		unsigned: log_kv_uint,              \
		unsigned long: log_kv_uint,         \
		unsigned long long: log_kv_uint,    \
		float: log_kv_double,               \
		double: log_kv_double,              \
		struct err *: log_kv_err,           \
		const struct err *: log_kv_err)(name, value))

#define LOG_KV_MAKER(suffix, c_type, kind, member) \
	static inline struct log_kv log_kv_##suffix(const char *key, c_type v) { return (struct log_kv){ key, kind, { .member = v } }; }
LOG_KV_MAKER(str, str, LOG_KV_STR, s)
LOG_KV_MAKER(bool, bool, LOG_KV_BOOL, b)
LOG_KV_MAKER(int, int64_t, LOG_KV_INT, i)
LOG_KV_MAKER(uint, uint64_t, LOG_KV_UINT, u)
LOG_KV_MAKER(double, double, LOG_KV_DOUBLE, d)
#undef LOG_KV_MAKER
static inline struct log_kv log_kv_cstr(const char *key, const char *v) { return log_kv_str(key, str_of(v)); }
static inline struct log_kv log_kv_err(const char *key, const struct err *v) { return log_kv_str(key, err_str(v)); }

#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__, LOG_KV_END)
#define log_info(...) LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__, LOG_KV_END)
#define log_warn(...) LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__, LOG_KV_END)
#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__, LOG_KV_END)

#define LOG_KV_END ((struct log_kv){ .key = NULL })
#define LOG_AT(level, msg, ...)                                                     \
	do {                                                                        \
		if (log_enabled(level))                                             \
			log_write(level, msg, (const struct log_kv[]){ __VA_ARGS__ }); \
	} while (0)

extern atomic_int log_level_now;

static inline bool log_enabled(enum log_level level)
{
	return (int)level >= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

/* Writes a line with the context's fields (outermost first) and then kv, a list that LOG_KV_END ends. */
void log_write(enum log_level level, const char *msg, const struct log_kv *kv);

/*
 * Context: fields that all lines carry until the end of a scope, the name of the pod or request at work for instance.
 *
 *	LOG_CONTEXT("pod", key);          // key stays valid to the end of the scope
 *
 * The contexts form a stack, threaded through the frames of the functions that push them, one stack per thread. A fiber
 * switch must exchange it: save *log_context_slot() of the fiber that stops, store that of the one that goes on; a new
 * fiber begins with NULL.
 */
struct log_context {
	struct log_context *outer;
	struct log_kv kv;
};

struct log_context **log_context_slot(void);
struct log_context *log_context_push(struct log_context *c, struct log_kv kv);
/* Pops *c, the innermost one, as log_context_push returned it; in the form that CLEANUP takes. */
void log_context_pop(struct log_context **c);

#define LOG_CONTEXT(name, value) LOG_CONTEXT_AT(name, value, __COUNTER__)
#define LOG_CONTEXT_AT(name, value, id) LOG_CONTEXT_VAR(name, value, id)
#define LOG_CONTEXT_VAR(name, value, id)                                                          \
	struct log_context log_context_##id;                                                      \
	CLEANUP(log_context_pop) __attribute__((unused)) struct log_context *log_context_p##id =  \
		log_context_push(&log_context_##id, KV(name, value))

#endif
