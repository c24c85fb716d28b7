#include "base/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <time.h>

/* What stands behind the two functions that everybody calls. */
struct source {
	int64_t (*now_ns)(void);
	int64_t (*wall_ns)(void);
};

static int64_t read_system(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t system_now_ns(void) { return read_system(CLOCK_MONOTONIC); }
static int64_t system_wall_ns(void) { return read_system(CLOCK_REALTIME); }

static const struct source system_source = { system_now_ns, system_wall_ns };
static const struct source *_Atomic source = &system_source;

static _Atomic int64_t virtual_now, virtual_wall;
static struct list hooks = LIST_INIT(hooks);

int64_t clock_now_ns(void) { return atomic_load_explicit(&source, memory_order_acquire)->now_ns(); }
int64_t clock_wall_ns(void) { return atomic_load_explicit(&source, memory_order_acquire)->wall_ns(); }

static int64_t read_virtual_now(void) { return atomic_load(&virtual_now); }
static int64_t read_virtual_wall(void) { return atomic_load(&virtual_wall); }

static const struct source virtual_source = { read_virtual_now, read_virtual_wall };

void clock_virtual_set(int64_t now_ns, int64_t wall_ns)
{
	atomic_store(&virtual_now, now_ns);
	atomic_store(&virtual_wall, wall_ns);
	atomic_store_explicit(&source, &virtual_source, memory_order_release);
}

bool clock_is_virtual(void) { return atomic_load(&source) == &virtual_source; }
void clock_virtual_off(void) { atomic_store_explicit(&source, &system_source, memory_order_release); }

/* Deadlines that are past are not counted: their hooks have been called, and act when they get to run. */
int64_t clock_virtual_next_ns(void)
{
	int64_t now = read_virtual_now(), next = INT64_MAX;
	LIST_EACH(struct clock_hook, hook, &hooks, link) {
		int64_t at = hook->next_ns(hook);
		if (at > now)
			next = MIN(next, at);
	}
	return next;
}

/* `moved` may add and remove hooks, so those that are still to be called wait in a list of their own. */
static void call_hooks(void)
{
	struct list todo;
	list_init(&todo);
	LIST_EACH_SAFE(struct clock_hook, hook, &hooks, link) {
		list_remove(&hook->link);
		list_add(&todo, &hook->link);
	}
	for (struct clock_hook *hook; (hook = LIST_FIRST(struct clock_hook, &todo, link));) {
		list_remove(&hook->link);
		list_add(&hooks, &hook->link);
		hook->moved(hook);
	}
}

void clock_virtual_advance(int64_t ns)
{
	assert(clock_is_virtual() && ns >= 0);
	int64_t now, end = read_virtual_now() + ns;
	do {
		/* A hook may have advanced the clock itself, perhaps beyond our end; it never goes back. */
		int64_t before = read_virtual_now(), next = MIN(clock_virtual_next_ns(), end);
		now = MAX(before, next);
		atomic_fetch_add(&virtual_now, now - before);
		atomic_fetch_add(&virtual_wall, now - before);
		call_hooks();
	} while (now < end);
}

void clock_hook_add(struct clock_hook *hook) { list_add(&hooks, &hook->link); }
void clock_hook_remove(struct clock_hook *hook) { list_remove(&hook->link); }
