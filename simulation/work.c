#include "simulation/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "codec/atoms.h"
#include "codec/codec.h"
#include "codec/types.h"

enum { DEEDS_LEAST = 15, DEEDS_MOST = 40, GAP_MS = 8000, LONG_GAP_MS = 50000, TRIES = 5 };

struct val work_tree(struct arena *a, const char *format, ...)
{
	char text[2048];
	va_list args;
	struct val v = VAL_EMPTY;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	if (n >= (int)sizeof text || json_decode(a, arena_str(a, str_of(text)), &(struct json_decode_options){ .sort_keys = true }, &v, NULL) < 0)
		abort(); /* ours */
	return v;
}

int64_t work_below(struct deed *d, int64_t n) { return dice_below(&d->sim->dice, n); }

str work_name(struct deed *d, const char *kind) { return arena_printf(d->arena, "%s%lld", kind, (long long)work_below(d, WORK_NAMES)); }

void work_create(struct deed *d, const struct type *type, struct val object) { (void)client_create(d->sim->operator, type, object, NULL, NULL, NULL); }

void work_patch(struct deed *d, const struct type *type, str name, struct val v)
{
	(void)client_patch(d->sim->operator, type, str_of(d->namespace), name, CLIENT_PATCH_MERGE, v, NULL, NULL, NULL);
}

struct val work_any(struct deed *d, const char *resource)
{
	str prefix = arena_printf(d->arena, "/registry/%s/%s/", resource, d->namespace), key;
	struct val found = VAL_EMPTY, v;
	struct omap_iter it;
	int64_t n = 0;

	omap_seek(&it, d->sim->rules.objects, prefix);
	while (val_exists(v = rules_next(&it, prefix, &key)))
		if (work_below(d, ++n) == 0)
			found = v;
	return val_exists(found) ? val_copy(d->arena, found) : VAL_EMPTY;
}

/* ---- all of it ---- */

static const struct deed_kind *const lists[] = { work_makes, work_changes };

static const struct deed_kind *draw(struct simulation *s)
{
	int64_t total = 0, at = 0;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct deed_kind *k = lists[i]; k->run; k++)
			total += k->weight;
	int64_t drawn = dice_below(&s->dice, total);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const struct deed_kind *k = lists[i]; k->run; k++)
			if ((at += k->weight) > drawn)
				return k;
	return lists[0];
}

static void do_one(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct deed d = { .sim = s, .arena = &a, .namespace = { (char)('a' + dice_below(&s->dice, 2)) } };
	const struct deed_kind *kind = draw(s);

	history_say(&s->history, "== %s in %s", kind->name, d.namespace);
	kind->run(&d);
}

void work_begin(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct deed d = { .sim = s, .arena = &a };

	for (d.namespace[0] = 'a'; d.namespace[0] <= 'b'; d.namespace[0]++)
		work_make_namespace(&d);
	work_make_classes(&d);
}

/* Mostly short ones; now and then long enough for CronJobs, leases and evictions to come. */
static int64_t draw_gap_ms(struct dice *dice)
{
	int64_t kind = dice_below(dice, 12);

	return kind == 0 ? LONG_GAP_MS : kind < 5 ? 100 : GAP_MS;
}

void work_run(struct simulation *s)
{
	int64_t n = dice_between(&s->dice, DEEDS_LEAST, DEEDS_MOST);

	for (int64_t i = 0; i < n && !s->rules.failed; i++) {
		do_one(s);
		int64_t gap_ms = draw_gap_ms(&s->dice);
		if (fiber_sleep_ms(dice_below(&s->dice, gap_ms), NULL) < 0)
			return;
	}
}

void work_end(struct simulation *s)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct omap *now = omap_snapshot(s->rules.objects);
	str prefix = STR("/registry/cronjobs/"), key;
	struct val v, suspend = OBJECT(&a, F(spec, OBJECT(&a, F(suspend, val_of_bool(true)))));
	struct omap_iter it;

	omap_seek(&it, now, prefix);
	while (val_exists(v = rules_next(&it, prefix, &key)))
		for (int i = 0; i < TRIES; i++)
			if (client_patch(s->operator, TYPE(batch_v1, CronJob), val_str(v, metadata, namespace), val_str(v, metadata, name),
					 CLIENT_PATCH_MERGE, suspend, NULL, NULL, NULL) != -ERR_UNAVAILABLE)
				break;
	omap_free(now);
}
