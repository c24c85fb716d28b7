/* What happens to containers. Each follower has a queue of its own; an event is made once and shared. */
#include "runtime/events.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/atoms.h"
#include "runtime/cri.h"

enum { QUEUE = 1000 };

struct follower {
	struct list link;                /* in runtime->followers */
	struct channel queue;            /* of struct frozen */
};

static const char *const names[] = {
	[EVENT_CREATED] = "CONTAINER_CREATED_EVENT", [EVENT_STARTED] = "CONTAINER_STARTED_EVENT",
	[EVENT_STOPPED] = "CONTAINER_STOPPED_EVENT", [EVENT_DELETED] = "CONTAINER_DELETED_EVENT",
};

static void tell(struct sandbox *s, const char *id, enum event_kind kind)
{
	struct runtime *r = s->runtime;
	CLEANUP(arena_done) struct arena a = ARENA_INIT;
	struct val_builder containers = val_builder(&a);

	if (list_empty(&r->followers))
		return;
	LIST_EACH(struct container, c, &s->containers, in_sandbox)
		val_add_item(&containers, container_status(c, &a));
	struct val event = OBJECT(&a, F(containerId, VAL_STR(str_of(id))), F(containerEventType, VAL_STR(str_of(names[kind]))),
				  F(createdAt, val_of_int(clock_wall_ns())), F(podSandboxStatus, sandbox_status(s, &a)),
				  F(containersStatuses, val_end_list(&containers)));
	struct frozen *f = val_freeze(event);
	LIST_EACH(struct follower, to, &r->followers, link)
		if (!channel_try_send(&to->queue, frozen_ref(f))) {
			log_warn("a follower of events is too slow and misses one", KV("container", id));
			frozen_unref(f);
		}
	frozen_unref(f);
}

void events_tell_container(struct container *c, enum event_kind kind) { tell(c->sandbox, c->id, kind); }
void events_tell_sandbox(struct sandbox *s, enum event_kind kind) { tell(s, s->id, kind); }

static void follower_done(struct follower *f)
{
	void *item;

	list_remove(&f->link);
	while (channel_try_recv(&f->queue, &item))
		frozen_unref(item);
	channel_done(&f->queue);
}

int cri_get_container_events(struct runtime *r, struct cri_stream *s, struct val request, struct err *err)
{
	CLEANUP(follower_done) struct follower f = { 0 };
	void *item;
	int code = 0;

	(void)request;
	channel_init(&f.queue, QUEUE, "events of containers");
	list_add(&r->followers, &f.link);
	while (code >= 0 && (code = channel_recv(&f.queue, &item, err)) > 0) {
		struct frozen *event = item;
		code = cri_send(s, event->val, err);
		frozen_unref(event);
	}
	return code;
}
