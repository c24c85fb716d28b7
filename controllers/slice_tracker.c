#include "controllers/slice_tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "codec/atoms.h"

enum { WAIT_MS = 5000 };

struct missing {
	struct list link;
	int64_t generation, due_ns;
	size_t n;
	char key[];
};

struct tracked {
	struct list missing;
	bool waited_for;             /* a look at the service was put off */
	size_t n;
	char key[];
};

static void tracked_free(struct tracked *s)
{
	LIST_EACH_SAFE(struct missing, m, &s->missing, link)
		free(m);
	free(s);
}

void slice_tracker_done(struct slice_tracker *t)
{
	struct map_iter it = map_iter(&t->services);
	struct tracked *s;

	while ((s = map_next(&it, NULL)))
		tracked_free(s);
	map_done(&t->services);
}

void slice_tracker_forget(struct slice_tracker *t, str service_key)
{
	struct tracked *s = map_remove(&t->services, service_key);

	if (s)
		tracked_free(s);
}

static struct tracked *tracked_of(struct slice_tracker *t, str service_key)
{
	struct tracked *s = map_get(&t->services, service_key);

	if (s)
		return s;
	s = mem_zalloc(sizeof *s + service_key.n);
	list_init(&s->missing);
	s->n = service_key.n;
	memcpy(s->key, service_key.p, service_key.n);
	(void)map_put(&t->services, str_span(s->key, s->n), s);
	return s;
}

static bool shows(int64_t seen, int64_t expected) { return expected ? seen >= expected : seen == 0; }

static struct missing *missing_of(struct tracked *s, str slice_key)
{
	LIST_EACH(struct missing, m, &s->missing, link)
		if (str_eq(str_span(m->key, m->n), slice_key))
			return m;
	return NULL;
}

void slice_tracker_wrote(struct slice_tracker *t, const struct informer *slices, str service_key, str slice_key, int64_t generation)
{
	const struct frozen *now = informer_get(slices, slice_key);
	struct missing *m;

	if (shows(now ? val_int(now->val, metadata, generation) : 0, generation))
		return;
	struct tracked *s = tracked_of(t, service_key);
	if (!(m = missing_of(s, slice_key))) {
		m = mem_zalloc(sizeof *m + slice_key.n);
		m->n = slice_key.n;
		memcpy(m->key, slice_key.p, slice_key.n);
		list_add(&s->missing, &m->link);
	}
	m->generation = generation;
	m->due_ns = clock_now_ns() + WAIT_MS * NS_PER_MS;
}

static void missing_drop(struct missing *m)
{
	list_remove(&m->link);
	free(m);
}

bool slice_tracker_saw(struct slice_tracker *t, str service_key, str slice_key, int64_t generation)
{
	struct tracked *s = map_get(&t->services, service_key);
	struct missing *m = s ? missing_of(s, slice_key) : NULL;

	if (!m)
		return true; /* somebody else's doing, or seen before the call returned */
	if (!shows(generation, m->generation))
		return generation == 0; /* on its way to what we wrote, or gone since */
	missing_drop(m);
	if (!list_empty(&s->missing))
		return false;
	bool waited_for = s->waited_for;
	slice_tracker_forget(t, service_key);
	return waited_for;
}

bool slice_tracker_settled(struct slice_tracker *t, str service_key, int64_t *ret_wait_ms)
{
	struct tracked *s = map_get(&t->services, service_key);
	int64_t now_ns = clock_now_ns();

	if (!s)
		return true;
	LIST_EACH_SAFE(struct missing, m, &s->missing, link)
		if (m->due_ns <= now_ns)
			missing_drop(m);
	if (!list_empty(&s->missing)) {
		s->waited_for = true;
		*ret_wait_ms = WAIT_MS;
		return false;
	}
	slice_tracker_forget(t, service_key);
	return true;
}
