/* events: what happens to containers, for those who follow (GetContainerEvents). */
#ifndef C8S_RUNTIME_EVENTS_H
#define C8S_RUNTIME_EVENTS_H

#include "runtime/container.h"

enum event_kind { EVENT_CREATED, EVENT_STARTED, EVENT_STOPPED, EVENT_DELETED };

/* Tells all followers; one that is too slow to take it misses it. */
void events_tell_container(struct container *c, enum event_kind kind);
void events_tell_sandbox(struct sandbox *s, enum event_kind kind);

#endif
