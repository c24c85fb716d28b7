/*
 * All sources write into one table of the pods that were told, by uid: what is told again, removed, or new is decided here.
 */
#include "kubelet/source.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/log.h"
#include "base/mem.h"
#include "client/work_queue.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "kubelet/source_priv.h"

enum { MIRROR_RETRY_MAX_MS = 5000, MIRROR_RETRIES_PER_S = 100, CHECK_MS = 20 * 1000 };

static const str kind_names[SOURCES] = { STR_INIT("api"), STR_INIT("file"), STR_INIT("http") };

/* ---- texts ---- */

str pod_annotation(struct val pod, str key) { return val_as_str(val_find(val_get(pod, metadata, annotations), key)); }

struct val pod_annotate(struct arena *a, struct val pod, str key, str value)
{
	struct val annotations = val_put(a, val_get(pod, metadata, annotations), atom_make(a, key), VAL_STR(value));
	return val_with(a, pod, val_sorted(a, annotations), metadata, annotations);
}

str source_lower(struct arena *a, str s)
{
	char *p = ARENA_ARRAY(a, char, s.n);

	for (size_t i = 0; i < s.n; i++)
		p[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 'a' - 'A') : s.p[i];
	return str_span(p, s.n);
}

/* The time of day as Go's RFC3339Nano has it: without zeros at the end of the fraction. */
static str now_text(struct arena *a)
{
	int64_t now_ns = clock_wall_ns(), rest = now_ns % NS_PER_S;
	char text[TIME_TEXT_MAX];
	str seconds = time_format((struct timestamp){ now_ns / NS_PER_S, 0 }, text), fraction;

	if (!rest)
		return arena_str(a, seconds);
	fraction = arena_printf(a, ".%09lld", (long long)rest);
	while (fraction.p[fraction.n - 1] == '0')
		fraction.n--;
	return arena_printf(a, STR_FMT STR_FMT "Z", STR_ARG(str_head(seconds, seconds.n - 1)), STR_ARG(fraction));
}

/* ---- the table ---- */

static str uid_of(const struct source_pod *p) { return val_str(p->pod->val, metadata, uid); }

void sources_tell(struct sources *s, enum source_kind kind, struct val pod)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct source_pod *p = map_get(&s->pods, val_str(pod, metadata, uid));
	CLEANUP(frozen_unrefp) struct frozen *before = p ? p->pod : NULL;

	pod = pod_annotate(&a, pod, CONFIG_SOURCE, kind_names[kind]);
	pod = pod_annotate(&a, pod, CONFIG_SEEN, before ? pod_annotation(before->val, CONFIG_SEEN) : now_text(&a));
	if (before && val_equal(before->val, pod)) {
		before = NULL;
		return;
	}
	if (!p)
		p = mem_zalloc(sizeof *p);
	p->kind = kind;
	p->pod = val_freeze(pod);
	(void)map_put(&s->pods, uid_of(p), p);
	if (kind != SOURCE_API)
		mirror_queue(s, p->pod->val);
	s->o.update(s->o.arg, p->pod);
}

static void pod_free(struct source_pod *p)
{
	frozen_unref(p->pod);
	free(p);
}

void sources_untell(struct sources *s, str uid)
{
	struct source_pod *p = map_remove(&s->pods, uid);

	if (!p)
		return;
	if (p->kind != SOURCE_API)
		mirror_queue(s, p->pod->val);
	s->o.remove(s->o.arg, uid_of(p));
	pod_free(p);
}

static bool has_uid(struct val pods, str uid)
{
	VAL_EACH(pod, pods)
		if (str_eq(val_str(*pod, metadata, uid), uid))
			return true;
	return false;
}

static bool is_double(struct val pods, size_t i)
{
	struct val pod = pods.items[i];

	for (size_t j = 0; j < i; j++)
		if (str_eq(val_str(pods.items[j], metadata, uid), val_str(pod, metadata, uid)) ||
		    (str_eq(val_str(pods.items[j], metadata, name), val_str(pod, metadata, name)) &&
		     str_eq(val_str(pods.items[j], metadata, namespace), val_str(pod, metadata, namespace))))
			return true;
	return false;
}

/* The next of the source that is not among these; NULL: none. */
static struct source_pod *find_removed(struct sources *s, enum source_kind kind, struct val pods)
{
	struct map_iter it = map_iter(&s->pods);
	struct source_pod *p;

	while ((p = map_next(&it, NULL)))
		if (p->kind == kind && !has_uid(pods, uid_of(p)))
			return p;
	return NULL;
}

void sources_replace(struct sources *s, enum source_kind kind, struct val pods)
{
	struct source_pod *p;

	while ((p = find_removed(s, kind, pods)))
		sources_untell(s, uid_of(p));
	for (size_t i = 0; i < val_len(pods); i++) {
		struct val pod = pods.items[i];
		if (is_double(pods, i))
			log_warn("there is another pod of that name, this one is not run", KV("namespace", val_str(pod, metadata, namespace)),
				 KV("name", val_str(pod, metadata, name)), KV("source", kind_names[kind]));
		else
			sources_tell(s, kind, pod);
	}
	sources_seen(s, kind);
}

struct frozen *sources_static(const struct sources *s, str namespace, str name)
{
	struct map_iter it = map_iter(&s->pods);
	const struct source_pod *p;

	while ((p = map_next(&it, NULL)))
		if (p->kind != SOURCE_API && str_eq(val_str(p->pod->val, metadata, name), name) &&
		    str_eq(val_str(p->pod->val, metadata, namespace), namespace))
			return p->pod;
	return NULL;
}

void sources_seen(struct sources *s, enum source_kind kind)
{
	s->seen[kind] = true;
	for (size_t i = 0; i < SOURCES; i++)
		if (s->wanted[i] && !s->seen[i])
			return;
	if (s->complete)
		return;
	s->complete = true;
	mirror_queue_all(s);
	if (s->o.complete)
		s->o.complete(s->o.arg);
}

/* ---- life ---- */

struct sources *sources_new(const struct sources_options *o)
{
	struct sources *s = mem_zalloc(sizeof *s);

	s->o = *o;
	if (s->o.file_check_ms <= 0)
		s->o.file_check_ms = CHECK_MS;
	if (s->o.url_check_ms <= 0)
		s->o.url_check_ms = CHECK_MS;
	map_init(&s->pods);
	map_init(&s->mirrors);
	map_init(&s->mirrors_of);
	s->wanted[SOURCE_API] = o->client && o->informers;
	s->wanted[SOURCE_FILE] = o->path && *o->path;
	s->wanted[SOURCE_URL] = o->url && *o->url;
	if (s->wanted[SOURCE_API])
		s->queue = work_queue_new(&(struct work_queue_options){ .name = "mirror pods", .max_ms = MIRROR_RETRY_MAX_MS,
									 .qps = MIRROR_RETRIES_PER_S });
	return s;
}

void sources_free(struct sources *s)
{
	struct source_pod *p;

	if (!s)
		return;
	source_api_end(s);
	struct map_iter it = map_iter(&s->pods);
	while ((p = map_next(&it, NULL)))
		pod_free(p);
	map_done(&s->pods);
	mirrors_done(s);
	work_queue_free(s->queue);
	free(s);
}

/* Nothing to be told ever. */
static int idle(struct sources *s, struct err *err)
{
	int r;

	sources_seen(s, SOURCE_API);
	while ((r = fiber_sleep_ms(s->o.file_check_ms, err)) == 0)
		;
	return r;
}

int sources_run(struct sources *s, struct err *err)
{
	CLEANUP(fiber_group_done) struct fiber_group fibers;
	int r = 0;

	fiber_group_init(&fibers);
	if (s->wanted[SOURCE_FILE])
		r = fiber_group_spawn(&fibers, source_file_run, s, err, "static pods");
	if (r == 0 && s->wanted[SOURCE_URL])
		r = fiber_group_spawn(&fibers, source_url_run, s, err, "static pods by URL");
	if (r == 0 && s->wanted[SOURCE_API]) {
		source_api_begin(s);
		r = fiber_group_spawn(&fibers, mirrors_run, s, err, "mirror pods");
	}
	if (r < 0)
		return r;
	return fibers.n ? fiber_group_wait(&fibers, err) : idle(s, err);
}
