#include "client/event_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "client/rate.h"
#include "client/recent.h"
#include "codec/atoms.h"
#include "machinery/names.h"

enum { REMEMBERED = 4096, SPAM_BURST = 25, SIMILAR_MAX = 10 };
static const double SPAM_QPS = 1.0 / 300;
static const int64_t SIMILAR_NS = 600 * NS_PER_S;

/* What one source tells about one object. */
struct talk {
	struct recent_entry entry;
	struct rate rate;
};

/* Events that differ only in their messages. */
struct similar {
	struct recent_entry entry;
	int64_t last_ns;             /* 0: never */
	struct map messages;         /* the texts, as hashes would collide for those who choose them */
	char *texts[SIMILAR_MAX];
	unsigned n;
};

/* An event that was told. */
struct told {
	struct recent_entry entry;
	int64_t count;
	char *name, *first;          /* firstTimestamp */
};

struct event_merge {
	struct recent talks, similar, told;
};

static void similar_clear(struct similar *s)
{
	map_done(&s->messages);
	for (unsigned i = 0; i < s->n; i++)
		free(s->texts[i]);
	s->n = 0;
}

static void similar_done(void *entry) { similar_clear(entry); }

static void told_done(void *entry)
{
	struct told *t = entry;
	free(t->name);
	free(t->first);
}

struct event_merge *event_merge_new(void)
{
	struct event_merge *m = mem_zalloc(sizeof *m);

	recent_init(&m->talks, sizeof(struct talk), REMEMBERED, NULL);
	recent_init(&m->similar, sizeof(struct similar), REMEMBERED, similar_done);
	recent_init(&m->told, sizeof(struct told), REMEMBERED, told_done);
	return m;
}

void event_merge_free(struct event_merge *m)
{
	if (!m)
		return;
	recent_done(&m->talks);
	recent_done(&m->similar);
	recent_done(&m->told);
	free(m);
}

str event_name(struct arena *a, str about, int64_t wall_ns)
{
	struct name_errors errors;
	str name = arena_printf(a, STR_FMT ".%llx", STR_ARG(about), (unsigned long long)wall_ns);

	if (name_check_dns1123_subdomain(name, &errors) == 0)
		return name;
	char uuid[UUID_TEXT + 1];
	uuid_v4(uuid);
	return arena_str(a, str_of(uuid));
}

/* ---- keys: the parts, each with its length before it, so that no two lists of parts look the same ---- */

static void part(struct buf *b, str s)
{
	buf_addf(b, "%zu:", s.n);
	buf_add(b, s);
}

static void key_begin(struct buf *b, struct val event)
{
	struct val about = val_get(event, involvedObject);
	const str parts[] = {
		val_str(event, source, component), val_str(event, source, host), val_str(about, kind), val_str(about, namespace),
		val_str(about, name), val_str(about, uid), val_str(about, apiVersion), val_str(event, type),
	};
	buf_reset(b);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		part(b, parts[i]);
}

/* ---- the rules ---- */

/* Whether this is one too many of its sort. */
static bool is_similar(struct similar *s, str message)
{
	int64_t now_ns = clock_now_ns();

	if (!s->last_ns || now_ns - s->last_ns > SIMILAR_NS) {
		similar_clear(s);
		map_init(&s->messages);
	}
	s->last_ns = now_ns;
	if (!map_get(&s->messages, message) && s->n < SIMILAR_MAX) {
		char *text = strndup(message.p ? message.p : "", message.n);
		s->texts[s->n++] = text;
		(void)map_put(&s->messages, str_span(text, message.n), text);
	}
	if (s->n < SIMILAR_MAX)
		return false;
	/* One goes, so that the next message is new again. */
	char *last = s->texts[--s->n];
	(void)map_remove(&s->messages, str_of(last));
	free(last);
	return true;
}

static struct val combined(struct arena *a, struct val event)
{
	str message = arena_printf(a, "(combined from similar events): " STR_FMT, STR_ARG(val_str(event, message)));
	str name = event_name(a, val_str(event, involvedObject, name), clock_wall_ns());

	event = val_with(a, event, val_of_str(message), message);
	event = val_with(a, event, val_of_str(name), metadata, name);
	event = val_without(a, event, reportingComponent);
	return val_without(a, event, reportingInstance);
}

/* Counts it; true when it was told before. */
static bool count(struct told *t, struct arena *a, struct val *event)
{
	bool before = t->count > 0;

	t->count++;
	if (!before) {
		str name = val_str(*event, metadata, name), first = val_str(*event, firstTimestamp);
		t->name = strndup(name.p, name.n);
		t->first = strndup(first.p, first.n);
		return false;
	}
	*event = val_with(a, *event, val_of_str(arena_str(a, str_of(t->name))), metadata, name);
	*event = val_with(a, *event, val_of_str(arena_str(a, str_of(t->first))), firstTimestamp);
	*event = val_with(a, *event, val_of_int(t->count), count);
	return true;
}

static bool may_talk(struct talk *t)
{
	if (t->rate.qps <= 0)
		t->rate = (struct rate){ .qps = SPAM_QPS, .burst = SPAM_BURST };
	return rate_try(&t->rate);
}

enum event_fate event_merge_take(struct event_merge *m, struct arena *a, struct val event, struct val *ret_event,
				 struct val *ret_patch)
{
	CLEANUP(buf_done) struct buf key = BUF_INIT(64 << 10);
	CLEANUP(buf_done) struct buf whole = BUF_INIT(64 << 10);

	key_begin(&whole, event);
	part(&whole, val_str(event, involvedObject, fieldPath));
	part(&whole, val_str(event, reason));
	part(&whole, val_str(event, message));
	key_begin(&key, event);
	part(&key, val_str(event, reason));
	part(&key, val_str(event, reportingComponent));
	part(&key, val_str(event, reportingInstance));
	bool similar = is_similar(recent_get(&m->similar, buf_str(&key)), val_str(event, message));
	if (similar)
		event = combined(a, event);
	bool before = count(recent_get(&m->told, buf_str(similar ? &key : &whole)), a, &event);
	key_begin(&key, event);
	if (!may_talk(recent_get(&m->talks, buf_str(&key))))
		return EVENT_DROP;
	*ret_event = event;
	*ret_patch = before ? OBJECT(a, F(count, val_get(event, count)), F(lastTimestamp, val_get(event, lastTimestamp)),
				     F(message, val_get(event, message))) : VAL_EMPTY;
	return before ? EVENT_COUNT : EVENT_CREATE;
}
