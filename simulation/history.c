#include "simulation/history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/object.h"
#include "base/clock.h"
#include "base/mem.h"
#include "codec/atoms.h"

void history_init(struct history *h, bool verbose)
{
	*h = (struct history){ .sum = UINT64_C(0xcbf29ce484222325), .verbose = verbose };
	h->lines = mem_array(HISTORY_LINES, sizeof *h->lines);
}

void history_done(struct history *h) { free(TAKE(h->lines)); }

/* Eight bytes at a time: a run writes megabytes. */
static void add(struct history *h, const void *bytes, size_t n)
{
	const char *p = bytes;
	uint64_t word;

	for (; n; p += sizeof word) {
		size_t some = MIN(n, sizeof word);
		word = 0;
		memcpy(&word, p, some);
		h->sum = (h->sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h->sum ^= h->sum >> 32;
		n -= some;
	}
}

static void line_add(struct history *h, const char *text)
{
	char *line = h->lines[h->n++ % HISTORY_LINES];
	int64_t ms = clock_now_ns() / NS_PER_MS;

	(void)snprintf(line, HISTORY_LINE_MAX, "%6lld.%03lld %s", (long long)(ms / 1000), (long long)(ms % 1000), text);
	if (h->verbose)
		printf("%s\n", line);
}

void history_say(struct history *h, const char *format, ...)
{
	char text[HISTORY_LINE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	add(h, text, strlen(text));
	line_add(h, text);
}

/* What matters of an object, in a few words. */
static void describe(struct val v, char *out, size_t max)
{
	struct val spec = val_get(v, spec), status = val_get(v, status);
	CLEANUP(buf_done) struct buf b = BUF_INIT(max);

	if (val_has(v, metadata, deletionTimestamp))
		buf_add(&b, STR(" ending"));
	if (val_has(spec, nodeName))
		buf_addf(&b, " on " STR_FMT, STR_ARG(val_str(spec, nodeName)));
	if (val_has(status, phase))
		buf_addf(&b, " " STR_FMT, STR_ARG(val_str(status, phase)));
	VAL_EACH(taint, val_get(spec, taints))
		buf_addf(&b, " " STR_FMT ":" STR_FMT, STR_ARG(val_str(*taint, key)), STR_ARG(val_str(*taint, effect)));
	if (val_has(spec, replicas))
		buf_addf(&b, " spec %lld status %lld ready %lld", (long long)val_int(spec, replicas), (long long)val_int(status, replicas),
			 (long long)val_int(status, readyReplicas));
	if (val_has(status, active) || val_has(status, succeeded) || val_has(status, failed))
		buf_addf(&b, " active %lld succeeded %lld failed %lld", (long long)val_int(status, active), (long long)val_int(status, succeeded),
			 (long long)val_int(status, failed));
	if (val_has(status, disruptionsAllowed))
		buf_addf(&b, " allowed %lld healthy %lld", (long long)val_int(status, disruptionsAllowed), (long long)val_int(status, currentHealthy));
	if (val_has(status, hard))
		buf_addf(&b, " used " STR_FMT " pods, " STR_FMT, STR_ARG(val_str(status, used, pods)),
			 STR_ARG(val_as_str(val_find(val_get(status, used), STR("requests.cpu")))));
	if (val_has(v, reason))
		buf_addf(&b, " " STR_FMT ": " STR_FMT, STR_ARG(val_str(v, reason)), STR_ARG(val_str(v, message)));
	(void)snprintf(out, max, STR_FMT, STR_ARG(buf_str(&b)));
}

void history_write(struct history *h, str key, const struct store_value *value, int64_t revision)
{
	char text[HISTORY_LINE_MAX], more[HISTORY_LINE_MAX / 2] = "";
	int64_t now_ns = clock_now_ns();
	const struct object *o = value ? value->object : NULL;

	h->writes++;
	add(h, &now_ns, sizeof now_ns);
	add(h, key.p, key.n);
	if (value)
		add(h, value->bytes, value->n);
	if (str_starts(key, STR("/registry/leases/")))
		return; /* too many to be of interest */
	if (o)
		describe(o->val, more, sizeof more);
	key = str_skip(key, sizeof "/registry/" - 1);
	(void)snprintf(text, sizeof text, "%lld %s %.*s%s", (long long)revision, value ? "put" : "del", (int)MIN(key.n, (size_t)120), key.p, more);
	line_add(h, text);
}

void history_show(const struct history *h, size_t n, str word, struct buf *out)
{
	size_t have = MIN(h->n, (size_t)HISTORY_LINES);

	for (size_t i = h->n - MIN(have, n); i < h->n; i++) {
		str line = str_of(h->lines[i % HISTORY_LINES]);
		if (!word.n || str_find(line, word) >= 0)
			buf_addf(out, "  " STR_FMT "\n", STR_ARG(line));
	}
}
