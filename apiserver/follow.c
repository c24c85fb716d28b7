/* What has happened is of no interest, only that something has: events are passed over. */
#include "apiserver/follow.h"

#include <assert.h>

static void wake(struct cache_watcher *w)
{
	struct follow *f = CONTAINER_OF(w, struct followed, watcher)->follow;
	f->changed = true;
	fiber_cond_signal(&f->woken);
}

void follow_init(struct follow *f, struct cache *cache, struct kind *const *kinds, size_t n)
{
	assert(n <= FOLLOW_MAX);
	*f = (struct follow){ .cache = cache, .n = n, .changed = true };
	fiber_cond_init(&f->woken, "a change of what is followed");
	for (size_t i = 0; i < n; i++)
		f->v[i] = (struct followed){ .watcher.wake = wake, .kind = kinds[i], .follow = f };
}

void follow_done(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++)
		cache_watch_end(&f->v[i].watcher);
}

/* Passes over the events that came; begins to hear of those from now on, also when it could not keep up. */
static void listen(struct followed *one)
{
	struct cache_watcher *w = &one->watcher;
	while (w->kind && cache_watch_next(w))
		;
	if (w->kind && !w->ended)
		return;
	cache_watch_end(w);
	(void)cache_watch_begin(one->kind, MAX(cache_revision(one->follow->cache), one->kind->floor), w, NULL);
}

int follow_wait(struct follow *f, struct err *err)
{
	int r = 0;
	while (!f->changed && r == 0)
		r = fiber_cond_wait(&f->woken, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].kind)
			listen(&f->v[i]);
	f->changed = false;
	return 0;
}
