/* A watch on etcd; the engine's own. */
#ifndef C8S_STORE_ETCD_WATCH_H
#define C8S_STORE_ETCD_WATCH_H

#include "store/etcd_priv.h"

/* Ids of the watches of a stream: ours to choose. */
enum { WATCH_ALL = -1, WATCH_MAIN = 1, WATCH_FENCE = 2 };

enum fence_state {
	FENCE_IDLE,
	FENCE_ASKING, /* a fiber reads the newest revision */
	FENCE_ECHO,   /* nothing is newer than what was delivered: any answer of the member will do to say so */
	FENCE_SENT,   /* a fence is on its way */
};

/* See etcd_progress.c. */
struct etcd_fence {
	enum fence_state state;
	bool again;           /* progress was asked for once more */
	bool settled;         /* the member has caught the watch up with its store */
	bool second;          /* the fence that is out is the second of two */
	int64_t id;           /* its watch */
	int64_t proven;       /* the first one's revision */
	int64_t sent_ns;
	int64_t busy_ns;      /* when much came lately, */
	int64_t window_ns;    /* counted by the second: its start, and responses to the main watch since */
	unsigned responses;
};

struct etcd_watch {
	struct store_watch watch;
	struct arena arena;       /* of the range's ends */
	str from, to;
	int64_t next;             /* the first revision that was not delivered; 0: not known yet, from now on */
	struct grpc_stream *stream; /* NULL: to be opened */
	bool created;             /* the member has begun to watch */
	bool ordered;             /* it answers progress requests in order with events */
	unsigned failures;        /* to open a stream, in a row */
	/* What has come of a response in fragments: of its last revision there may be more. */
	struct arena *memory;
	struct store_event *events;
	size_t n, cap;
	size_t revisions;         /* in the response so far */
	bool wanted;              /* progress was asked for while there was no stream */
	struct etcd_fence fence;
	unsigned users;           /* a fiber that reads the revision, and whoever opened it: */
	bool gone;                /* who has freed it */
};

static inline struct etcd *etcd_watch_etcd(struct etcd_watch *w) { return etcd_of(w->watch.store); }

/* Sends a WatchRequest; false when the stream is no good any more. */
bool etcd_watch_send(struct etcd_watch *w, struct val request);
void etcd_watch_unref(struct etcd_watch *w);

/* The stream has begun (again): what was asked for before is asked again. */
void etcd_fence_start(struct etcd_watch *w);
/* A response to the main watch, with so many revisions in it. */
void etcd_fence_note(struct etcd_watch *w, size_t revisions);
/* A response to another id: the revision up to which everything has been delivered, or 0. */
int64_t etcd_fence_response(struct etcd_watch *w, struct val response);

#endif
