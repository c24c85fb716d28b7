#include "client/fake_test.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "client/informer_index.h"
#include "codec/atoms.h"
#include "machinery/patch.h"

struct fake_watch {
	struct client_watch watch;
	struct frozen *object;
};

static struct fake *fake_of(struct client *c) { return CONTAINER_OF(c, struct fake, client); }

static void note(struct fake *f, const struct client_request *q)
{
	buf_addf(&f->log, "%s " STR_FMT, q->verb, STR_ARG(q->path));
	if (q->query.n)
		buf_addf(&f->log, "?" STR_FMT, STR_ARG(q->query));
	buf_addc(&f->log, '\n');
}

static struct val stamped(struct fake *f, struct arena *a, struct val object)
{
	str revision = arena_printf(a, "%lld", (long long)++f->revision);
	return val_with(a, object, val_of_str(revision), metadata, resourceVersion);
}

static int store(struct fake *f, str key, struct val object, struct arena *a, struct client_reply *ret)
{
	struct frozen *stored = val_freeze(stamped(f, a, object));
	(void)omap_put(f->objects, key, stored);
	ret->object = stored;
	return 0;
}

/* A name that the server has chosen is the last part of the key. */
static struct val named(struct arena *a, struct val object, str key)
{
	ptrdiff_t slash = str_rchr(key, '/');
	bool chosen = val_has(object, metadata, generateName) && !val_has(object, metadata, name);

	return chosen ? val_with(a, object, VAL_STR(str_skip(key, (size_t)slash + 1)), metadata, name) : object;
}

static int write_object(struct fake *f, const struct client_request *q, str key, struct arena *a, struct client_reply *ret,
			struct err *err)
{
	struct frozen *old = omap_get(f->objects, key);
	struct val object = q->body;

	if (str_eq(q->method, STR("POST")))
		return old ? err_set(err, ERR_ALREADY_EXISTS, "it exists") : store(f, key, named(a, object, key), a, ret);
	if (!old)
		return err_set(err, ERR_NOT_FOUND, "not found");
	if (str_eq(q->method, STR("PATCH"))) {
		int r = merge_patch_apply(a, old->val, q->body, &object, err);
		return r < 0 ? r : store(f, key, object, a, ret);
	}
	if (!str_eq(val_str(object, metadata, resourceVersion), val_str(old->val, metadata, resourceVersion)))
		return err_set(err, ERR_CONFLICT, "it was changed");
	return store(f, key, object, a, ret);
}

static int fake_call(struct client *c, const struct client_request *q, struct client_reply *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct fake *f = fake_of(c);
	int r = fiber_yield(err);

	if (f->meanwhile)
		f->meanwhile(f->arg);
	str name = arena_str(&a, q->name.n ? q->name : val_str(q->body, metadata, name)); /* copies are checked by sanitizers, printing is not */
	if (!name.n)
		name = arena_printf(&a, STR_FMT "1", STR_ARG(val_str(q->body, metadata, generateName)));
	str key = arena_printf(&a, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(q->resource->name), STR_ARG(q->namespace), STR_ARG(name));
	struct frozen *old = omap_get(f->objects, key);
	note(f, q);
	if (f->fail)
		return err_set(err, f->fail, "as told");
	if (r < 0)
		return r;
	if (!str_eq(q->method, STR("GET")))
		r = write_object(f, q, key, &a, ret, err);
	else if (!old)
		r = err_set(err, ERR_NOT_FOUND, "not found");
	else
		ret->object = frozen_ref(old);
	if (!q->wants_object)
		frozen_unref(TAKE(ret->object));
	return r;
}

/* ---- watches ---- */

static int next_step(struct fake *f, const struct fake_step **ret, struct err *err)
{
	int r = 0;

	while (r == 0 && f->at == f->n_steps)
		r = fiber_cond_wait(&f->more, err);
	if (r == 0)
		*ret = &f->steps[f->at];
	return r;
}

static int fake_watch(struct client *c, const struct client_request *q, struct client_watch **ret_watch,
		      struct client_reply *ret, struct err *err)
{
	struct fake *f = fake_of(c);
	const struct fake_step *step = NULL;

	(void)ret;
	note(f, q);
	int r = next_step(f, &step, err);
	if (r < 0)
		return r;
	if (step->kind == FAKE_REFUSE) {
		f->at++;
		return err_set(err, step->error, "as told");
	}
	struct fake_watch *w = mem_zalloc(sizeof *w);
	w->watch.client = c;
	*ret_watch = &w->watch;
	return 0;
}

static int fake_watch_next(struct client_watch *watch, struct client_event *ret, struct err *err)
{
	struct fake_watch *w = CONTAINER_OF(watch, struct fake_watch, watch);
	struct fake *f = fake_of(watch->client);
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	const struct fake_step *step = NULL;
	int r = next_step(f, &step, err);

	if (r < 0)
		return r;
	f->at++;
	if (step->kind == FAKE_FAIL)
		return err_set(err, step->error, "as told");
	if (step->kind == FAKE_END)
		return 0;
	frozen_unref(w->object);
	w->object = val_freeze(OBJECT(&a, F(metadata, OBJECT(&a, F(name, val_of_str(str_of(step->name ? step->name : ""))),
							     F(namespace, VAL_LIT("default")),
							     F(resourceVersion, val_of_str(str_of(step->revision)))))));
	*ret = (struct client_event){ .type = step->type, .object = w->object, .initial_end = step->initial_end };
	return 1;
}

static void fake_watch_free(struct client_watch *watch)
{
	struct fake_watch *w = CONTAINER_OF(watch, struct fake_watch, watch);
	frozen_unref(w->object);
	free(w);
}

static const struct client_transport fake_transport = {
	.call = fake_call, .watch = fake_watch, .watch_next = fake_watch_next, .watch_free = fake_watch_free,
};

/* ---- for tests ---- */

void fake_clock(int64_t wall_ns)
{
	clock_virtual_set(0, wall_ns);
	fiber_settle(); /* the loop looks at the clock once a turn */
}

void fake_init(struct fake *f)
{
	*f = (struct fake){ .client.transport = &fake_transport, .log = BUF_INIT(1 << 20) };
	f->objects = omap_new(&informer_objects);
	fiber_cond_init(&f->more, "more of the script");
}

void fake_done(struct fake *f)
{
	omap_free(f->objects);
	buf_done(&f->log);
}

void fake_tell(struct fake *f, const struct fake_step *steps, size_t n)
{
	f->steps = steps;
	f->n_steps = n;
	f->at = 0;
	fiber_cond_broadcast(&f->more);
}

struct frozen *fake_get(struct fake *f, const char *key) { return omap_get(f->objects, str_of(key)); }

str fake_log(struct fake *f, struct arena *a)
{
	str log = arena_str(a, buf_str(&f->log));
	buf_reset(&f->log);
	return log;
}
