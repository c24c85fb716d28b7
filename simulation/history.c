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
	h->lines = mem_zalloc(HISTORY_LINES * sizeof *h->lines);
}

void history_done(struct history *h)
{
	for (size_t i = 0; i < HISTORY_LINES; i++)
		frozen_unref(h->lines[i].object);
	free(TAKE(h->lines));
}

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

static void line_show(const struct history_line *l, struct buf *out)
{
	char more[HISTORY_LINE_MAX / 2] = "";
	int64_t ms = l->now_ns / NS_PER_MS;

	if (l->object)
		describe(l->object->val, more, sizeof more);
	buf_addf(out, "%6lld.%03lld ", (long long)(ms / 1000), (long long)(ms % 1000));
	if (l->revision)
		buf_addf(out, "%lld %s ", (long long)l->revision, l->put ? "put" : "del");
	buf_addf(out, "%s%s", l->text, more);
}

static void line_add(struct history *h, const struct history_line *line, str text)
{
	CLEANUP(buf_done) struct buf shown = BUF_INIT(2 * HISTORY_LINE_MAX);
	struct history_line *l = &h->lines[h->n++ % HISTORY_LINES];

	frozen_unref(l->object);
	l->now_ns = clock_now_ns();
	l->revision = line->revision;
	l->object = line->object ? frozen_ref(line->object) : NULL;
	l->put = line->put;
	text = str_head(text, sizeof l->text - 1);
	memcpy(l->text, text.p, text.n);
	l->text[text.n] = '\0';
	if (!h->verbose)
		return;
	line_show(l, &shown);
	printf(STR_FMT "\n", STR_ARG(buf_str(&shown)));
}

void history_say(struct history *h, const char *format, ...)
{
	char text[HISTORY_LINE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	add(h, text, strlen(text));
	line_add(h, &(struct history_line){ .revision = 0 }, str_of(text));
}

void history_write(struct history *h, str key, const struct store_value *value, int64_t revision)
{
	int64_t now_ns = clock_now_ns();
	const struct object *o = value ? value->object : NULL;

	h->writes++;
	add(h, &now_ns, sizeof now_ns);
	add(h, key.p, key.n);
	if (value)
		add(h, value->bytes, value->n);
	if (!str_starts(key, STR("/registry/leases/"))) /* too many to be of interest */
		line_add(h, &(struct history_line){ .revision = revision, .object = o ? o->frozen : NULL, .put = value }, str_skip(key, sizeof "/registry/" - 1));
}

void history_show(const struct history *h, size_t n, str word, struct buf *out)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(2 * HISTORY_LINE_MAX);
	size_t have = MIN(h->n, (size_t)HISTORY_LINES);

	for (size_t i = h->n - MIN(have, n); i < h->n; i++) {
		buf_reset(&line);
		line_show(&h->lines[i % HISTORY_LINES], &line);
		if (!word.n || str_find(buf_str(&line), word) >= 0)
			buf_addf(out, "  " STR_FMT "\n", STR_ARG(buf_str(&line)));
	}
}
