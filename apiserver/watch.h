/*
 * Watches: the changes of a kind, as they happen, to one client. A watch is a source that is asked for more when the
 * connection takes more (net/http.h) and a place in the window of its kind's events (cache.h): no fiber, no queue, and
 * no bytes of its own as long as objects are shown as they are cached.
 *
 * It ends with its timeout, when its client reads too slowly for the window, when the cache was loaded anew, and with
 * the server.
 */
#ifndef C8S_APISERVER_WATCH_H
#define C8S_APISERVER_WATCH_H

#include "apiserver/apiserver.h"

/* Ends all watches; s->stopping is set already. */
void watches_end(struct apiserver *s);

#endif
