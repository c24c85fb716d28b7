/* What all controllers share: being told about changes, holding on to objects, writing when something differs, conditions. */
#include "controllers/controller.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "client/recent.h"
#include "codec/atoms.h"
#include "codec/time.h"
#include "controllers/controller_priv.h"
#include "controllers/owner.h"

/* ---- being told ---- */

struct controller_watching {
	struct controller_watching *next;
	struct informer_listener listener;
	struct controller *controller;
	controller_keys *keys;
};

struct informer *controller_informer(struct controller *c, const struct type *type) { return informers_get(c->informers, type, NULL); }

static void on_change(struct informer_listener *l, struct frozen *old, struct frozen *object)
{
	struct controller_watching *w = CONTAINER_OF(l, struct controller_watching, listener);
	w->keys(w->controller, old, object);
}

void controller_watch(struct controller *c, struct informer *i, controller_keys *keys)
{
	struct controller_watching *w = mem_zalloc(sizeof *w);

	*w = (struct controller_watching){ .next = c->watching, .listener.changed = on_change, .controller = c, .keys = keys };
	c->watching = w;
	informer_listen(i, &w->listener);
}

void controller_unwatch(struct controller *c)
{
	struct controller_watching *next;

	for (struct controller_watching *w = c->watching; w; w = next) {
		next = w->next;
		informer_unlisten(&w->listener);
		free(w);
	}
	c->watching = NULL;
	if (c->written)
		recent_done(c->written);
	free(TAKE(c->written));
}

void controller_key_self(struct controller *c, struct frozen *old, struct frozen *object)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	controller_add(c, object_key(&a, object ? object->val : old->val));
}

void controller_key_owner(struct controller *c, struct frozen *object, const char *kind)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val ref = object ? owner_controller(object->val) : VAL_EMPTY;

	if (!val_exists(ref) || !str_eq(val_str(ref, kind), str_of(kind)))
		return;
	str namespace = val_str(object->val, metadata, namespace), name = val_str(ref, name);
	controller_add(c, namespace.n ? arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)) : name);
}

void controller_add(struct controller *c, str key) { work_queue_add(c->queue, key); }
void controller_add_after(struct controller *c, str key, int64_t ms) { work_queue_add_after(c->queue, key, ms); }

void controller_split(str key, str *ret_namespace, str *ret_name)
{
	if (str_cut(key, '/', ret_namespace, ret_name))
		return;
	*ret_name = *ret_namespace;
	*ret_namespace = STR_NONE;
}

/* ---- one sync ---- */

struct controller_sync {
	struct controller_sync *next;
	struct arena arena;
	struct frozen **held;
	size_t n, cap;
};

struct val controller_hold(struct controller *c, struct arena *a, struct frozen *object)
{
	struct controller_sync *s = c->syncing;

	while (s && &s->arena != a)
		s = s->next;
	if (!s)
		return val_copy(a, object->val);
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 16;
		s->held = mem_resize(s->held, s->cap * sizeof(*s->held));
	}
	s->held[s->n++] = frozen_ref(object);
	return object->val;
}

static void sync_end(struct controller *c, struct controller_sync *s)
{
	struct controller_sync **at = &c->syncing;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	for (size_t i = 0; i < s->n; i++)
		frozen_unref(s->held[i]);
	free(s->held);
	arena_done(&s->arena);
}

int controller_sync_key(str key, void *arg, struct err *err)
{
	struct controller *c = arg;
	struct controller_sync s = { .next = c->syncing, .arena = ARENA_INIT };

	c->syncing = &s;
	int r = c->sync(c, &s.arena, key, err);
	sync_end(c, &s);
	return r;
}

/* ---- writing ---- */

enum { WRITTEN_MAX = 256 };

struct written {
	struct recent_entry entry;   /* by uid */
	struct frozen *object;
};

static void written_done(void *entry) { frozen_unref(((struct written *)entry)->object); }

/* Takes the reference over. */
static void remember(struct controller *c, struct frozen *object)
{
	if (!c->written) {
		c->written = mem_zalloc(sizeof *c->written);
		recent_init(c->written, sizeof(struct written), WRITTEN_MAX, written_done);
	}
	struct written *w = recent_get(c->written, val_str(object->val, metadata, uid));
	frozen_unref(w->object);
	w->object = object;
}

static int64_t revision_of(struct val object)
{
	int64_t revision;
	return str_to_i64(val_str(object, metadata, resourceVersion), &revision) ? revision : INT64_MAX;
}

/* NULL: nothing, or nothing newer. */
static struct frozen *written_after(const struct controller *c, struct val shown)
{
	const struct written *w = c->written ? map_get(&c->written->by_key, val_str(shown, metadata, uid)) : NULL;
	return w && revision_of(w->object->val) > revision_of(shown) ? w->object : NULL;
}

struct frozen *controller_latest(struct controller *c, struct frozen *shown)
{
	struct frozen *newer = written_after(c, shown->val);
	return newer ? newer : shown;
}

int controller_write(struct controller *c, const struct type *type, struct val object, const char *subresource, struct err *err)
{
	const struct client_write_options o = { .subresource = str_of(subresource) };
	struct frozen *result = NULL;
	int r = client_update(c->client, type, object, &o, &result, err);

	if (result)
		remember(c, result);
	return r;
}

int controller_update(struct controller *c, const struct type *type, struct val object, const char *subresource, client_change *fn, void *arg,
		      struct frozen **ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	CLEANUP(frozen_unrefp) struct frozen *newer = written_after(c, object), *result = NULL;
	const struct client_write_options o = { .subresource = str_of(subresource) };

	if (newer)
		object = frozen_ref(newer)->val;
	if (ret)
		*ret = NULL;
	struct val changed = fn(&a, object, arg);
	if (!val_exists(changed))
		return 0;
	int r = client_update(c->client, type, changed, &o, &result, err);
	if (r == -ERR_CONFLICT) {
		err_clear(err);
		r = client_change_object(c->client, type, val_str(object, metadata, namespace), val_str(object, metadata, name), fn, arg, &o, &result, err);
	}
	if (ret && result)
		*ret = frozen_ref(result);
	if (result)
		remember(c, TAKE(result));
	return r;
}

bool error_is_namespace_ending(const struct err *err)
{
	return err && err->code == ERR_FORBIDDEN && str_find(err_str(err), STR("because it is being terminated")) >= 0;
}

int64_t scaled_value(struct val int_or_percent, int64_t total, bool up)
{
	str text = val_as_str(int_or_percent);
	int64_t percent;

	if (val_is(int_or_percent, VAL_INT))
		return val_as_int(int_or_percent);
	if (!str_ends(text, STR("%")) || !str_to_i64(str_head(text, text.n - 1), &percent) || percent < 0 || percent > INT32_MAX ||
	    total < 0 || total > INT32_MAX)
		return -1;
	return (percent * total + (up ? 99 : 0)) / 100;
}

/* ---- conditions ---- */

struct val time_now(struct arena *a)
{
	char text[TIME_TEXT_MAX];
	return VAL_STR(arena_str(a, time_format((struct timestamp){ .seconds = clock_wall_ns() / NS_PER_S }, text)));
}

static size_t position(struct val conditions, str type)
{
	size_t i = 0;

	while (i < val_len(conditions) && !str_eq(val_str(val_at(conditions, i), type), type))
		i++;
	return i;
}

struct val condition_set(struct arena *a, struct val conditions, struct val condition, bool with_update)
{
	size_t at = position(conditions, val_str(condition, type));
	struct val old = val_at(conditions, at), now = time_now(a);
	bool same_status = val_exists(old) && str_eq(val_str(old, status), val_str(condition, status));

	if (same_status && str_eq(val_str(old, reason), val_str(condition, reason)) && str_eq(val_str(old, message), val_str(condition, message)))
		return conditions;
	if (same_status)
		condition = val_with(a, condition, val_get(old, lastTransitionTime), lastTransitionTime);
	else if (!val_has(condition, lastTransitionTime))
		condition = val_with(a, condition, now, lastTransitionTime);
	if (with_update)
		condition = val_with(a, condition, now, lastUpdateTime);
	if (val_exists(old))
		return val_list_set(a, conditions, at, condition);
	return val_list_append(a, val_exists(conditions) ? conditions : VAL_EMPTY_LIST, condition);
}

struct val condition_remove(struct arena *a, struct val conditions, const char *type)
{
	size_t at = position(conditions, str_of(type));
	return at < val_len(conditions) ? val_list_remove(a, conditions, at) : conditions;
}
